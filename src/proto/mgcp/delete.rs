//! DeleteConnection from the agent: one connection, or those of a call or an endpoint (RFC 3435 2.3.7, 2.3.9).

use super::event::{self, Carrier};
use super::request::{self, RequestPlan};
use super::{CALL_MISMATCH, CONNECTION_UNKNOWN, Calls, MANY_WITH_REQUEST, Refused, STILL_CREATING};
use crate::proto::base::{EndpointIndex, HexId, Time};
use crate::proto::codec::mgcp::{Code, Command, Verb};
use crate::proto::endpoint::{Connection, ConnectionId, ConnectionSlot};
use crate::proto::trunk::MediaReport;

/// What to delete; everything is checked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum DeletePlan {
    /// One connection, with what the command carries besides.
    One(ConnectionSlot, RequestPlan),
    /// All of the endpoint, of this call when one is named.
    All(Option<HexId>),
}

/// The connection that `I:` names, of the call that `C:` names (G-MDX-01, G-DLX-01). One whose creation still runs is not there yet;
/// to modify it is refused for now only (G-TXN-06).
pub(super) fn find<'a>(
    calls: &'a Calls,
    command: &Command<'_>,
    endpoint: EndpointIndex,
) -> Result<(ConnectionSlot, &'a Connection), Refused> {
    let id = command.connection()?.and_then(|id| ConnectionId::from_hex(&id)).ok_or(CONNECTION_UNKNOWN)?;
    let found = calls.endpoints.find(endpoint, id);
    if found.is_none() && command.verb == Verb::Mdcx && calls.endpoints.is_pending(endpoint, id) {
        return Err(STILL_CREATING);
    }
    let (slot, connection) = found.ok_or(CONNECTION_UNKNOWN)?;
    match command.call()? {
        Some(call) if call != connection.call => Err(CALL_MISMATCH),
        _ => Ok((slot, connection)),
    }
}

/// Checks `command` for `endpoint`.
pub fn validate(calls: &Calls, command: &Command<'_>, endpoint: EndpointIndex) -> Result<DeletePlan, Refused> {
    if command.get(Code::I).is_none() {
        validate_many(command)?;
        return Ok(DeletePlan::All(command.call()?));
    }
    let (slot, connection) = find(calls, command, endpoint)?;
    Ok(DeletePlan::One(slot, request::validate(calls, command, endpoint, Carrier::Gone(connection.id))?))
}

/// The forms for many connections carry no connection, request or configuration (G-DLX-03).
pub fn validate_many(command: &Command<'_>) -> Result<(), Refused> {
    let carried = [Code::I, Code::X, Code::R, Code::S, Code::D, Code::Q, Code::T, Code::BPr, Code::B, Code::N];
    if carried.into_iter().any(|code| command.get(code).is_some()) {
        return Err(MANY_WITH_REQUEST);
    }
    command.call()?;
    Ok(())
}

/// Takes one connection down: what the card counted.
pub fn disconnect(calls: &mut Calls, now: Time, slot: ConnectionSlot) -> MediaReport {
    match calls.disconnect(slot) {
        Some(connection) => {
            event::connection_gone(calls, now, connection.endpoint, connection.id);
            calls.close_media(now, connection.endpoint, slot)
        }
        None => MediaReport::default(),
    }
}

/// Takes the connections of `endpoint` down, those of `call` when one is named. What is still being created there was aborted before;
/// second halves nobody has seen go too, and their pair fails.
pub fn disconnect_all(calls: &mut Calls, now: Time, endpoint: EndpointIndex, call: Option<&HexId>) {
    let Some(state) = calls.endpoints.get(endpoint) else { return };
    for slot in state.connection_slots() {
        let named = calls.endpoints.connections.get(slot).is_some_and(|c| call.is_none_or(|call| *call == c.call));
        if named {
            disconnect(calls, now, slot);
        }
    }
}
