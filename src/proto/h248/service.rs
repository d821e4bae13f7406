//! Service changes of terminations: what the coordinator of the process decides is told to the controller, and what the controller
//! orders is done (RFC 3525 7.2.8).

use super::association::{Change, Purpose};
use super::error::*;
use super::event::catalogue::Seen;
use super::name::{self, Room};
use super::table::{NULL, Termination, Told};
use super::{Gateway, State};
use crate::proto::aggregate::PATTERN_NAME_MAX;
use crate::proto::base::{EndpointIndex, EndpointRange, Time};
use crate::proto::codec::h248::{Method, NAME_MAX, ServiceState, Services, TerminationId};
use crate::proto::endpoint::{RestartMethod, Service};
use crate::proto::mgcp::Restart;
use std::time::Duration;

impl Gateway {
    /// The coordinator changed the service state of endpoints. Those that leave service lose their media; the controller is told by
    /// [`Gateway::announce`], and takes them out of their contexts (SC-05).
    pub fn apply_service(&mut self, now: Time, range: EndpointRange, service: Service) -> u32 {
        let mut lost = 0;
        for endpoint in range.iter() {
            let Some(state) = self.calls.endpoints.get_mut(endpoint) else { continue };
            let before = std::mem::replace(&mut state.service, service);
            self.calls.endpoints.refresh_idle(endpoint);
            if before.in_service && !service.in_service {
                let termination = Termination::Physical(endpoint);
                if self.tables.row(termination).is_some_and(|row| row.context != NULL) {
                    lost += 1;
                    self.happened(now, termination, Seen::NetworkFailure, b"cs=\"span out of service\"");
                    self.happened(now, termination, Seen::Cause, b"Generalcause=FT,Failurecause=\"span out of service\"");
                }
                self.stop_signals(now, termination);
            }
            if before.in_service != service.in_service {
                self.calls.card.reset_line(now, endpoint, service.in_service);
            }
        }
        lost
    }

    /// The coordinator would announce this by a RestartInProgress: the controller gets a service change instead. Without a controller
    /// in charge nothing is sent: whoever takes the gateway is told how things are.
    pub fn announce(&mut self, now: Time, restart: &Restart) {
        if self.state() != State::Active {
            return;
        }
        let told = match restart.method {
            RestartMethod::Graceful => Told::Leaving,
            RestartMethod::Forced => Told::Out,
            RestartMethod::Restart | RestartMethod::CancelGraceful => Told::In,
            RestartMethod::Disconnected => return,
        };
        let selection = restart.pattern.selection(&self.plan.topology);
        let mut changes = false;
        let mut all = true;
        let list: Vec<EndpointIndex> = self.tables.physical().collect();
        for endpoint in list {
            if !selection.contains(&self.plan.topology, endpoint) {
                all = false;
            } else if let Some(row) = self.tables.row_mut(Termination::Physical(endpoint)) {
                changes |= std::mem::replace(&mut row.told, told) != told;
            }
        }
        if !changes {
            return;
        }
        if all && self.draining && told == Told::Out {
            let reason = (908, "MG Impending Failure");
            return self.tell(now, &Change { termination: TerminationId::Root, method: Method::Forced, reason, delay_s: 0 });
        }
        let mut room = [0; PATTERN_NAME_MAX];
        let length = restart.pattern.write_name(&self.plan.topology, &mut room);
        let name = room.get_mut(..length).unwrap_or_default();
        name::underscores(name);
        let termination = if all { TerminationId::All } else { TerminationId::Name(name) };
        let (method, reason) = wording(restart);
        let delay_s = if told == Told::Leaving { restart.delay_s } else { 0 };
        self.tell(now, &Change { termination, method, reason, delay_s });
    }

    /// A service change to the controller in charge.
    fn tell(&mut self, now: Time, change: &Change<'_>) {
        if let Some((controller, to)) = self.in_charge() {
            self.send_change(now, controller, to, Purpose::Change, change);
        }
    }

    /// A controller has taken the gateway, and takes everything for in service: what is not, it is told, by whole spans where that is true.
    pub(super) fn tell_states(&mut self, now: Time) {
        let spans: Vec<EndpointRange> = self.ranges().collect();
        let is_out = |gateway: &Gateway, endpoint| gateway.calls.endpoints.get(endpoint).is_some_and(|state| !state.service.in_service);
        for span in spans {
            let out = span.iter().filter(|endpoint| is_out(self, *endpoint)).count();
            let whole = out == span.count as usize;
            for endpoint in span.iter() {
                let told = if is_out(self, endpoint) { Told::Out } else { Told::In };
                if let Some(row) = self.tables.row_mut(Termination::Physical(endpoint)) {
                    row.told = told;
                }
                if told == Told::Out && (!whole || endpoint.0 == span.first) {
                    self.tell_out(now, endpoint, whole);
                }
            }
        }
    }

    /// Tells that a termination, or with `whole` all of its span, is out of service.
    fn tell_out(&mut self, now: Time, endpoint: EndpointIndex, whole: bool) {
        let mut room: Room = [0; NAME_MAX];
        let name = name::write(&self.plan.topology, &self.tables, Termination::Physical(endpoint), &mut room);
        let mut length = name.len();
        if whole && let Some(slash) = name.iter().rposition(|byte| *byte == b'/') {
            length = slash + 2;
            if let Some(place) = room.get_mut(slash + 1) {
                *place = b'*';
            }
        }
        let code = self.calls.endpoints.get(endpoint).map_or(0, |state| state.service.reason);
        let termination = TerminationId::Name(room.get(..length).unwrap_or_default());
        self.tell(now, &Change { termination, method: Method::Forced, reason: reason(code), delay_s: 0 });
    }

    /// The controller orders a service change (SC-18).
    pub(super) fn ordered(&mut self, now: Time, termination: Termination, services: &Services<'_>) -> Result<(), Failure> {
        let due = services.delay.filter(|delay| *delay > 0).map_or(now, |delay| now + Duration::from_secs(delay.into()));
        match (services.method, termination) {
            (Some(Method::HandOff), Termination::Root) => {
                let to = services.mgc_id.ok_or(HANDOFF_TO)?;
                if self.hand_off(now, &to) { Ok(()) } else { Err(HANDOFF_UNKNOWN) }
            }
            (Some(Method::Forced), _) if due > now => Err(DELAY),
            // One ends with its context; nobody waits for a time of its own.
            (_, Termination::Ephemeral(_)) if due > now => Err(DELAY_EPHEMERAL),
            (Some(method @ (Method::Forced | Method::Graceful | Method::Restart)), Termination::Root) => {
                let list: Vec<EndpointIndex> = self.tables.physical().collect();
                list.into_iter().for_each(|endpoint| self.order_one(now, Termination::Physical(endpoint), method, due));
                Ok(())
            }
            (Some(method @ (Method::Forced | Method::Graceful | Method::Restart)), _) => {
                self.order_one(now, termination, method, due);
                Ok(())
            }
            _ => Err(METHOD),
        }
    }

    /// One termination is ordered into service or out of it, at `due` where the method may wait.
    fn order_one(&mut self, now: Time, termination: Termination, method: Method<'_>, due: Time) {
        let Some(row) = self.tables.row_mut(termination) else { return };
        row.due = if due > now { due } else { Time::NEVER };
        match method {
            Method::Restart if due > now => row.leaving = false,
            Method::Restart => (row.service, row.leaving) = (ServiceState::InService, false),
            // When the delay ends or it leaves its context, whichever is first (SC-03); without one not before it is in the null context (SC-04).
            Method::Graceful if due > now || row.context != NULL => row.leaving = true,
            _ => (row.service, row.leaving) = (ServiceState::OutOfService, false),
        }
        self.ordered_due = self.ordered_due.min(row.due);
    }

    /// Delays of ordered service changes that have ended.
    pub(super) fn end_delays(&mut self, now: Time) {
        if now < self.ordered_due {
            return;
        }
        self.ordered_due = Time::NEVER;
        let list: Vec<EndpointIndex> = self.tables.physical().collect();
        for endpoint in list {
            let Some(row) = self.tables.row_mut(Termination::Physical(endpoint)) else { continue };
            if row.due <= now {
                row.service = if row.leaving { ServiceState::OutOfService } else { ServiceState::InService };
                (row.leaving, row.due) = (false, Time::NEVER);
            }
            self.ordered_due = self.ordered_due.min(row.due);
        }
    }
}

const DELAY: Failure = Failure { code: 501, text: "Forced has no delay" };
const DELAY_EPHEMERAL: Failure = Failure { code: 501, text: "no delay for an ephemeral termination" };
const METHOD: Failure = Failure { code: 501, text: "ServiceChange method is not supported" };
const HANDOFF_TO: Failure = Failure { code: 442, text: "HandOff needs MgcIdToTry" };
const HANDOFF_UNKNOWN: Failure = Failure { code: 402, text: "MgcIdToTry is no controller of this gateway" };

/// Method and reason in H.248's words.
fn wording(restart: &Restart) -> (Method<'static>, (u16, &'static str)) {
    match restart.method {
        RestartMethod::Graceful => (Method::Graceful, reason(restart.reason)),
        RestartMethod::Forced => (Method::Forced, reason(restart.reason)),
        _ => (Method::Restart, (900, "Service Restored")),
    }
}

/// A reason of MGCP (RFC 3435 2.5) in H.248's words (RFC 3525 7.2.8).
fn reason(code: u16) -> (u16, &'static str) {
    match code {
        900 => (904, "Termination malfunctioning"),
        902 => (906, "Loss of lower layer connectivity"),
        905 => (907, "Transmission Failure"),
        _ => (905, "Termination taken out of service"),
    }
}
