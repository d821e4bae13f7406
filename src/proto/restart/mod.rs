//! Service states and their announcement: the one place that decides, for the whole gateway, which endpoints are in service, and
//! tells the agents by RestartInProgress.
//!
//! A [`Coordinator`] lives in one core and drives the others by [`Action`]s. It owns three things per endpoint: its administrative
//! state, what the owner core was ordered ([`Service`]), and the announcement that last covered it. It does not send: the core that
//! is home to a pattern's name makes the transaction and reports its [`Outcome`]. It knows agents only as *groups*: numbers for sets
//! of endpoints that share a notified entity.
//!
//! Rules it keeps (RFC 3435 2.3.12, 4.4.5..4.4.7; Tables M-6 and M-11; G-RST, G-RSI, G-SVC, G-DIS-02..05 and -12, MAP-01..12):
//! - Service follows the truth at once; announcements follow within the merge time, in the fewest names for each group, method and
//!   reason. At most one live announcement covers an endpoint: one that became wrong is cancelled before a new one is sent.
//! - An endpoint the agent was never told of, or that lost its connections, comes back by `restart`; one that was only leaving, by
//!   `cancel-graceful`.
//! - A T3's failure covers its T1s, whose own failures go on underneath.
//!
//! Contract: `handle` is one change, then `poll` until it yields nothing, then sleep until `deadline`. A poll looks at no more than
//! twice [`Settings::slice`] endpoints; when work is left it yields nothing and the deadline has passed already.

mod coordinator;
mod disconnected;
mod facilities;
mod jobs;
mod ledger;
mod outcome;
#[cfg(test)]
mod random;
mod service;
mod standing;
mod sweep;
#[cfg(test)]
mod tests;
mod view;

use std::time::Duration;

use crate::proto::aggregate::{Forms, Pattern};
use crate::proto::base::{CoreId, EndpointIndex, EndpointRange, Time};
use crate::proto::endpoint::RestartMethod;
use crate::proto::trunk::{Defect, Facility, IntegrationTimes, Selection, Topology, Violations};

pub use coordinator::Coordinator;
pub use ledger::Handle;
pub use service::{Admin, Reason};
pub use standing::{Heard, Standing};
pub use view::{Alarm, AnnouncementState, AnnouncementView, EndpointView, Severity};

/// An announcement sent longer ago than this is replaced when a command comes for one of its endpoints.
pub const REPLACE_AFTER: Duration = Duration::from_millis(500);

/// Times and bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// MWD: the longest wait after power-on (G-RST-01, G-RST-02).
    pub power_on_wait_max: Duration,
    /// How long changes are gathered before they are announced (MAP-12).
    pub merge: Duration,
    /// The longest first wait after a 4xx; it doubles up to `disconnected_max` (open point O-7).
    pub retry: Duration,
    /// Tdinit: the longest first wait of a disconnected endpoint, at least 1 s (F-6).
    pub disconnected_initial: Duration,
    /// Tdmin: local activity before this has passed does not end the wait (G-DIS-04).
    pub disconnected_min: Duration,
    /// Tdmax: the longest wait.
    pub disconnected_max: Duration,
    /// How long the answers to the forced restarts are awaited at shutdown.
    pub shutdown_wait: Duration,
    /// Announcements to one group that may be unanswered at a time.
    pub outstanding_max: u16,
    /// Endpoints looked at in one poll.
    pub slice: u32,
    /// From defects to failures.
    pub integration: IntegrationTimes,
    /// Names the agents accept, unless [`Event::Forms`] says otherwise for a group.
    pub forms: Forms,
}

impl Settings {
    /// The defaults for a gateway of this size. MWD is 60 s divided by the endpoints, which gives the RFC's 2.5 s for a T1, but
    /// 60 ms from a T3 on.
    pub fn for_gateway(topology: &Topology) -> Settings {
        let endpoints = topology.len().max(24);
        let wait = if endpoints >= 644 { Duration::from_millis(60) } else { Duration::from_secs(60) / endpoints };
        Settings {
            power_on_wait_max: wait,
            merge: Duration::from_millis(200),
            retry: Duration::from_secs(1),
            disconnected_initial: Duration::from_secs(15),
            disconnected_min: Duration::from_secs(15),
            disconnected_max: Duration::from_secs(600),
            shutdown_wait: Duration::from_secs(3),
            outstanding_max: 32,
            slice: 2048,
            integration: IntegrationTimes::default(),
            forms: Forms::default(),
        }
    }
}

/// What the coordinator is told.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Event {
    /// A card sees a defect come or go.
    Defect {
        /// Where.
        facility: Facility,
        /// What.
        defect: Defect,
        /// Come or gone.
        on: bool,
        /// It counts at once.
        skip_integration: bool,
    },
    /// A card counted what a framer saw.
    Violations {
        /// Where.
        facility: Facility,
        /// What.
        violations: Violations,
    },
    /// An operator takes endpoints out of service.
    Block {
        /// Which.
        selection: Selection,
        /// How fast.
        how: BlockHow,
    },
    /// An operator gives endpoints back.
    Unblock {
        /// Which.
        selection: Selection,
    },
    /// No new calls on the whole gateway: everything leaves gracefully, without a limit.
    Drain,
    /// Takes [`Event::Drain`] back.
    Undrain,
    /// The process ends: graceful, then forced when no call is up, at the latest at this time; forced alone when it has passed.
    Shutdown {
        /// The end of the grace.
        until: Time,
    },
    /// These endpoints have this notified entity now.
    Group {
        /// Which.
        endpoints: EndpointRange,
        /// The number of the entity; that of [`Coordinator::provision`] at first, and whenever they are back in service.
        group: u16,
    },
    /// The agent of a group accepts these names.
    Forms {
        /// The group.
        group: u16,
        /// The names.
        forms: Forms,
    },
    /// How many calls are up on a core; matters at shutdown only.
    Calls {
        /// The core.
        core: CoreId,
        /// Its calls.
        up: u32,
    },
    /// These endpoints have no connection. To be told of endpoints that were ordered to leave gracefully: at once for those that
    /// are idle, later when their last connection ends.
    Idle {
        /// Which.
        endpoints: EndpointRange,
    },
    /// Something happened on an endpoint whose announcement is not confirmed.
    Trigger {
        /// Where.
        endpoint: EndpointIndex,
        /// What.
        activity: Activity,
    },
    /// What became of an RSIP.
    Outcome {
        /// Which; one that is no longer awaited is ignored.
        handle: Handle,
        /// What.
        outcome: Outcome,
    },
    /// The agent of a group has an address, and had none: what was to be said to it need not wait any longer.
    Found {
        /// Which.
        group: u16,
    },
    /// Commands of these endpoints could not be delivered to their notified entity (G-DIS-01).
    Disconnected {
        /// Which.
        endpoints: EndpointRange,
    },
}

/// How fast endpoints are taken out of service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockHow {
    /// At once; connections are lost.
    Force,
    /// After this delay; zero: each as soon as its connections have ended by themselves (G-RSI-03).
    Graceful(Duration),
}

/// What ends a wait before an announcement (Table M-11).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// The agent sent a command, audits included (O-5).
    Command,
    /// The trunk did something of its own.
    Local,
}

/// What became of an RSIP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// 2xx; with a new notified entity for the endpoints named (G-NET-12).
    Success(Option<u16>),
    /// 4xx, with its code.
    Transient(u16),
    /// 521 (or 3xx) with a notified entity.
    Redirect(u16),
    /// Any other error, with its code; also 521 without a notified entity.
    Permanent(u16),
    /// No final answer from any address.
    Unanswered,
}

/// What the owner of endpoints must make them (Table M-6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Service {
    /// Which.
    pub endpoints: EndpointRange,
    /// Whether non-audit commands are executed. Going out of service ends all connections without a command of ours (MAP-06).
    pub in_service: bool,
    /// The method an audit shows: restart, graceful or forced.
    pub method: RestartMethod,
    /// The reason an audit shows; 0 is normal.
    pub reason: u16,
    /// The code for refused commands: 501, or 531 while the failure of a facility has not been announced.
    pub return_code: u16,
}

/// What the coordinator orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// To the owners of the endpoints.
    Service(Service),
    /// To the core that is home to the pattern's name: send this RSIP to the group's notified entity.
    SendRsip {
        /// To report the outcome under. A repeat is a new transaction under a new handle.
        handle: Handle,
        /// The notified entity.
        group: u16,
        /// The endpoints.
        pattern: Pattern,
        /// RM.
        method: RestartMethod,
        /// RD in seconds; 0 (left out) with forced and cancel-graceful (G-RSI-02).
        delay_s: u32,
        /// E; 0 is left out.
        reason: u16,
    },
    /// To the owners: these endpoints are disconnected; whatever the agent hears of them next must be that.
    Disconnected {
        /// Which.
        endpoints: EndpointRange,
    },
    /// Everything this RSIP names has another notified entity now: the copies that are still due go there (G-NET-13).
    Redirect {
        /// The handle it was sent under.
        handle: Handle,
        /// The notified entity.
        group: u16,
    },
    /// Stop repeating this RSIP and forget it: it is no longer true. No outcome is expected.
    Cancel {
        /// The handle it was sent under.
        handle: Handle,
    },
    /// To the owners of the endpoints: whether the announcement under way is confirmed. Until it is, an RSIP goes in front of their
    /// responses (G-RST-03, G-DIS-06). All endpoints begin unconfirmed; going back in service makes them so again.
    Announced {
        /// The handle of the RSIP that comes next, or was answered.
        handle: Handle,
        /// The endpoints.
        pattern: Pattern,
        /// Whether the agent knows.
        confirmed: bool,
    },
    /// To the owners of the endpoints: the agent named another notified entity for them.
    NotifiedEntity {
        /// The endpoints; those that got another group meanwhile are corrected by the [`Event::Group`] that gave it to them.
        pattern: Pattern,
        /// The entity.
        group: u16,
    },
    /// Everything was said; the process may end.
    ShutdownComplete,
}
