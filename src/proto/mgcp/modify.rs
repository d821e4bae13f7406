//! ModifyConnection (RFC 3435 2.3.6).

use super::create::{Half, media};
use super::delete::find;
use super::describe::{self, Described};
use super::event::{self, Carrier};
use super::options::{choose, given};
use super::request::{self, RequestPlan};
use super::{Calls, Created, NO_MEDIA, NO_MEMORY_LEFT, REMOTE_MISSING, Refused};
use crate::proto::base::{Counter, EndpointIndex, Mode, Time};
use crate::proto::codec::mgcp::{Code, Command};
use crate::proto::endpoint::{Connection, ConnectionSlot, LocalMedia, Options, Remote};
use crate::proto::trunk::Answer;

/// A change of a connection; everything is checked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ModifyPlan {
    mode: Mode,
    options: Options,
    local: LocalMedia,
    described: Option<Described>,
    request: RequestPlan,
}

impl ModifyPlan {
    /// Whether there is a request with it.
    pub fn requests(&self) -> bool {
        self.request.requests()
    }
}

/// How far the card got.
pub enum Modified {
    /// Done; the local description when it changed, and whether the notified entity did.
    Ready(Option<Created>, bool),
    /// The card says later.
    Waiting,
}

/// Checks `command` for a connection of `endpoint`.
pub fn validate(calls: &Calls, command: &Command<'_>, endpoint: EndpointIndex) -> Result<(ConnectionSlot, ModifyPlan), Refused> {
    let (slot, connection) = find(calls, command, endpoint)?;
    let connection = *connection;
    let mode = command.mode()?.unwrap_or(connection.mode);
    let given = given(command)?;
    let options = given.over(connection.options);
    let described = describe::remote(calls, command, &options)?;
    if mode.needs_remote() && described.is_none() && connection.remote == Remote::Unknown {
        return Err(REMOTE_MISSING);
    }
    let mut local = connection.local;
    // Only what this command carries takes part in the choice (G-LCO-15); without either nothing is chosen anew.
    if command.get(Code::L).is_some() || described.is_some() {
        let offered = described.map(|described| described.encodings);
        let chooses = described.is_some() || given.encodings.is_some() || given.bandwidth_kbits.is_some() || given.period_ms.is_some();
        if chooses {
            // A bandwidth without a list makes the gateway choose among all it has; a period alone keeps what there is.
            let present = (described.is_none() && given.bandwidth_kbits.is_none()).then_some(connection.local.encodings);
            let listed = Options { encodings: given.encodings.or(present), ..given };
            (local.encodings, local.period_ms) = choose(calls, &listed, &connection.options, offered.as_ref())?;
        }
    }
    if local != connection.local {
        local.version = local.version.wrapping_add(1);
    }
    if !calls.endpoints.blobs.fits(command.description.map_or(0, <[u8]>::len)) {
        return Err(NO_MEMORY_LEFT);
    }
    let request = request::validate(calls, command, endpoint, Carrier::Known(connection.id, described.is_some()))?;
    Ok((slot, ModifyPlan { mode, options, local, described, request }))
}

/// Checks the request again, for a command that had to wait (G-RQN-06).
pub fn still_possible(calls: &Calls, slot: ConnectionSlot, plan: &ModifyPlan, command: &Command<'_>) -> Result<(), Refused> {
    match calls.endpoints.connections.get(slot) {
        Some(connection) if plan.requests() => {
            let carrier = Carrier::Known(connection.id, plan.described.is_some());
            request::check(calls, command, connection.endpoint, carrier).map(drop)
        }
        _ => Ok(()),
    }
}

/// Asks the card; the connection stays as it is until the card agrees.
pub fn begin(calls: &mut Calls, now: Time, slot: ConnectionSlot, plan: &ModifyPlan, command: &Command<'_>) -> Result<Modified, Refused> {
    let Some(connection) = calls.endpoints.connections.get(slot) else { return Err(NO_MEDIA) };
    let changed = Connection {
        mode: plan.mode,
        local: plan.local,
        remote: plan.described.map_or(connection.remote, |described| described.remote),
        ..*connection
    };
    match calls.card.modify(now, changed.endpoint, slot, &media(&changed, Half::Whole)) {
        Answer::Now(()) => apply(calls, now, slot, plan, command),
        Answer::Later => Ok(Modified::Waiting),
        Answer::Refused(_) => {
            calls.counters.add(Counter::CardRefused);
            Err(NO_MEDIA)
        }
    }
}

/// The command is aborted while the card is busy: it is to do what it did before. Its answer tells nobody anything.
pub fn undo(calls: &mut Calls, now: Time, slot: ConnectionSlot) {
    if let Some(connection) = calls.endpoints.connections.get(slot) {
        let _ = calls.card.modify(now, connection.endpoint, slot, &media(connection, Half::Whole));
    }
}

/// The card agreed.
pub fn apply(calls: &mut Calls, now: Time, slot: ConnectionSlot, plan: &ModifyPlan, command: &Command<'_>) -> Result<Modified, Refused> {
    let undescribed = calls.endpoints.connections.get(slot).is_some_and(|connection| connection.remote == Remote::Unknown);
    if let Some(described) = plan.described
        && !describe::keep(calls, slot, described, command)
    {
        return Err(NO_MEMORY_LEFT);
    }
    let connection = calls.endpoints.connections.get_mut(slot).ok_or(NO_MEDIA)?;
    let described_anew = connection.local != plan.local;
    connection.mode = plan.mode;
    connection.options = plan.options;
    connection.local = plan.local;
    let created = Created { endpoint: connection.endpoint, connection: connection.id, local: connection.local };
    if undescribed && plan.described.is_some() {
        event::connection_described(calls, now, created.endpoint, slot);
    }
    let entity = request::apply(calls, now, created.endpoint, &plan.request, command, Some(created.connection));
    Ok(Modified::Ready(described_anew.then_some(created), entity))
}
