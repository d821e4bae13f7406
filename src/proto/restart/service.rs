//! What an endpoint should be: administrative state and failures give the wanted service, and that with what the agent was told
//! gives the next message.

use super::{RestartMethod, Service};
use crate::proto::base::EndpointRange;

/// Why an endpoint is out of service: an MGCP reason code (Table C-2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Reason(pub u16);

impl Reason {
    /// Taken out of service by management.
    pub const MANAGEMENT: Reason = Reason(901);

    /// The code for commands to such an endpoint: 531 is for facilities that failed and agents not told yet.
    pub(super) fn return_code(self, told: bool) -> u16 {
        if !told && matches!(self.0, 902 | 905) { 531 } else { 501 }
    }
}

/// The service an endpoint should have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Want {
    /// Not looked at yet.
    Unknown,
    In,
    /// In service, going out.
    Leaving,
    Out(Reason),
}

impl Want {
    /// The order to an owner core; `told`: the agent was told.
    pub(super) fn order(self, endpoints: EndpointRange, told: bool) -> Option<Service> {
        let (in_service, method, reason, return_code) = match self {
            Want::Unknown => return None,
            Want::In => (true, RestartMethod::Restart, 0, 501),
            Want::Leaving => (true, RestartMethod::Graceful, Reason::MANAGEMENT.0, 501),
            Want::Out(reason) => (false, RestartMethod::Forced, reason.0, reason.return_code(told)),
        };
        Some(Service { endpoints, in_service, method, reason, return_code })
    }

    pub(super) fn is_out(self) -> bool {
        matches!(self, Want::Out(_))
    }
}

/// Administrative state of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admin {
    /// In service as far as operators are concerned.
    Unblocked,
    /// In service until a graceful block (by its number) is over.
    Leaving(u32),
    /// Out of service.
    Blocked,
}

/// What the agent believes of an endpoint, as far as we know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told {
    /// Nothing that holds: not announced since power-on, or an announcement about its service going or coming was cut short.
    Nothing,
    /// Perhaps that it is leaving: such an announcement was cut short. Its connections are intact.
    Unsure,
    /// The last announcement, sent or about to be sent, confirmed or not. `leave` tells graceful ones apart.
    Message { method: RestartMethod, leave: Leave, confirmed: bool },
}

/// Which departure a graceful announcement is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Leave {
    /// None.
    #[default]
    No,
    /// The gateway drains.
    Drain,
    /// The process ends.
    Shutdown,
    /// A graceful block, by its number.
    Block(u32),
}

/// What must be said next about an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    Nothing,
    Say(RestartMethod),
    /// Look again once the announcement under way is confirmed.
    Later,
}

/// Tables M-6 and M-11 turned into the next message. `leave`: the departure, when leaving; `cut_off`: disconnected.
pub(super) fn next(want: Want, leave: Leave, told: Told, cut_off: bool) -> Next {
    use RestartMethod::*;
    match (want, told) {
        (Want::Unknown, _) => Next::Nothing,
        (Want::Out(_), Told::Message { method: Forced, .. }) => Next::Nothing,
        (Want::Out(_), _) => Next::Say(Forced),
        // Ending before the first announcement: forced will be all there is to say.
        (Want::Leaving, Told::Nothing) if leave == Leave::Shutdown => Next::Nothing,
        (_, Told::Nothing | Told::Message { method: Forced, .. }) => Next::Say(Restart),
        (_, Told::Unsure) if cut_off => Next::Say(Disconnected),
        (_, Told::Message { method: Graceful | CancelGraceful, .. }) if cut_off => Next::Say(Disconnected),
        (Want::In, Told::Unsure) => Next::Say(CancelGraceful),
        (Want::In, Told::Message { method: Graceful, .. }) => Next::Say(CancelGraceful),
        (Want::Leaving, Told::Unsure) => Next::Say(Graceful),
        (Want::Leaving, Told::Message { method: Graceful, leave: told, .. }) if told == leave => Next::Nothing,
        (Want::Leaving, Told::Message { method: Graceful | CancelGraceful, .. }) => Next::Say(Graceful),
        // The restart (or the end of the disconnect) first, then that it leaves.
        (Want::Leaving, Told::Message { confirmed: false, .. }) => Next::Later,
        (_, Told::Message { confirmed: true, .. }) if cut_off => Next::Say(Disconnected),
        (Want::Leaving, Told::Message { .. }) => Next::Say(Graceful),
        (Want::In, Told::Message { .. }) => Next::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(method: RestartMethod, confirmed: bool) -> Told {
        Told::Message { method, leave: if method == RestartMethod::Graceful { Leave::Drain } else { Leave::No }, confirmed }
    }

    #[test]
    fn coming_back_is_restart_only_after_service_was_lost() {
        // G-RSI-03, G-RSI-04, G-RSI-07
        let back = |told| next(Want::In, Leave::No, told, false);
        assert_eq!(back(Told::Nothing), Next::Say(RestartMethod::Restart));
        assert_eq!(back(told(RestartMethod::Forced, false)), Next::Say(RestartMethod::Restart));
        assert_eq!(back(told(RestartMethod::Graceful, true)), Next::Say(RestartMethod::CancelGraceful));
        assert_eq!(back(Told::Unsure), Next::Say(RestartMethod::CancelGraceful));
        for method in [RestartMethod::Restart, RestartMethod::CancelGraceful, RestartMethod::Disconnected] {
            assert_eq!(back(told(method, false)), Next::Nothing);
        }
    }

    #[test]
    fn leaving_waits_for_the_restart_before_it() {
        let leave = |told| next(Want::Leaving, Leave::Drain, told, false);
        assert_eq!(leave(Told::Nothing), Next::Say(RestartMethod::Restart));
        assert_eq!(leave(told(RestartMethod::Restart, false)), Next::Later);
        assert_eq!(leave(told(RestartMethod::Restart, true)), Next::Say(RestartMethod::Graceful));
        assert_eq!(leave(told(RestartMethod::Graceful, false)), Next::Nothing);
        assert_eq!(next(Want::Leaving, Leave::Block(3), told(RestartMethod::Graceful, true), false), Next::Say(RestartMethod::Graceful));
        assert_eq!(next(Want::Leaving, Leave::Shutdown, Told::Nothing, false), Next::Nothing);
    }

    #[test]
    fn disconnected_is_said_of_what_was_announced() {
        // G-DIS-01, G-DIS-11
        assert_eq!(next(Want::In, Leave::No, told(RestartMethod::Restart, true), true), Next::Say(RestartMethod::Disconnected));
        assert_eq!(next(Want::In, Leave::No, told(RestartMethod::Restart, false), true), Next::Nothing);
        assert_eq!(next(Want::Out(Reason(905)), Leave::No, told(RestartMethod::Restart, true), true), Next::Say(RestartMethod::Forced));
        assert_eq!(next(Want::Leaving, Leave::Drain, told(RestartMethod::Disconnected, true), false), Next::Say(RestartMethod::Graceful));
    }

    #[test]
    fn a_failed_facility_is_531_until_it_was_told() {
        // G-SVC-01
        let code = |reason, told| Want::Out(Reason(reason)).order(EndpointRange::default(), told).map(|s| s.return_code);
        assert_eq!((code(905, false), code(905, true), code(901, false), code(902, false)), (Some(531), Some(501), Some(501), Some(531)));
    }
}
