//! What only the lead core knows or does: administrative state, alarms of facilities, the restart messages of a shutdown.

use super::Gateway;
use super::protocol::{Failure, FailureKind, How};
use super::view::AlarmRow;
use crate::proto::endpoint::Service;
use crate::proto::trunk::Selection;
use std::time::Duration;

/// Longer than the grace the agents' answers to the last restart messages are not awaited.
pub const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Administrative and operational state, as far as the service state of an endpoint tells: what operators want, and what the line does.
pub fn states(service: &Service) -> (&'static str, &'static str) {
    let administrative = match service {
        service if service.blocked() => "blocked",
        service if service.leaving() => "leaving",
        _ => "unblocked",
    };
    let operational = if service.in_service || service.blocked() { "up" } else { "down" };
    (administrative, operational)
}

/// Takes endpoints out of service.
pub fn block(_: &Gateway, _: Selection, _: How) -> Result<String, Failure> {
    Err(Failure::new(FailureKind::Refused, "endpoints cannot be blocked: this gateway has no restart coordinator"))
}

/// Gives endpoints back.
pub fn unblock(_: &Gateway, _: Selection) -> Result<String, Failure> {
    Err(Failure::new(FailureKind::Refused, "endpoints cannot be unblocked: this gateway has no restart coordinator"))
}

/// The alarms of facilities.
pub fn alarms(_: &Gateway) -> Result<Vec<AlarmRow>, Failure> {
    Ok(Vec::new())
}

/// Tells the agents that the gateway ends: graceful, then forced; returns when they know, or do not answer.
pub fn shutdown(_: &Gateway) {}
