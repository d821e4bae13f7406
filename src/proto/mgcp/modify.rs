//! ModifyConnection (RFC 3435 2.3.6).

use super::admit;
use super::create::{Half, media};
use super::delete::find;
use super::describe::{self, Described};
use super::event::{self, Carrier};
use super::options::{choose, choose_events, given};
use super::request::{self, RequestPlan};
use super::secure::{self, Protection};
use super::{Calls, Created, NO_MEDIA, REMOTE_MISSING, Refused, Room};
use crate::proto::base::{Counter, EndpointIndex, Mode, Time};
use crate::proto::cac::Charge;
use crate::proto::codec::mgcp::{Code, Command};
use crate::proto::endpoint::{Connection, ConnectionSlot, LocalMedia, Network, Options, Remote};
use crate::proto::trunk::{Answer, MediaAddress};

/// A change of a connection; everything is checked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ModifyPlan {
    mode: Mode,
    options: Options,
    local: LocalMedia,
    described: Option<Described>,
    protection: Protection,
    /// Its own key changes.
    rekeyed: bool,
    request: RequestPlan,
    /// Kept for it while it waits.
    room: Room,
}

impl ModifyPlan {
    /// Whether there is a request with it.
    pub fn requests(&self) -> bool {
        self.request.requests()
    }

    /// What is kept for it while it waits.
    pub fn room(&self) -> Room {
        self.room
    }
}

/// How far the card got.
pub enum Modified {
    /// Done; the local description when it changed, and whether the notified entity did.
    Ready(Option<Created>, bool),
    /// The card says later.
    Waiting,
    /// Nothing is done: these places must be claimed first, beyond those there are.
    Claims(Charge, Charge),
}

/// Checks `command` for a connection of `endpoint`.
pub fn validate(calls: &Calls, command: &Command<'_>, endpoint: EndpointIndex) -> Result<(ConnectionSlot, ModifyPlan), Refused> {
    let (slot, connection) = find(calls, command, endpoint)?;
    let connection = *connection;
    let mode = command.mode()?.unwrap_or(connection.mode);
    let given = given(calls, command)?;
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
            (local.encodings, local.period_ms) = choose(calls, endpoint, &listed, &connection.options, offered.as_ref())?;
            local.events = choose_events(&given, described.as_ref(), local.events);
        }
    }
    let remote = described.map_or(connection.remote, |described| described.remote);
    let inside = options.network == Some(Network::Local);
    let protection = secure::choose(calls, endpoint, remote, described.map(|described| described.line), inside)?;
    local.protected = protection.holds(local.protected);
    let request = request::validate(calls, command, endpoint, Carrier::Known(connection.id, described.is_some()))?;
    Ok((slot, ModifyPlan { mode, options, local, described, protection, rekeyed: false, request, room: Room::default() }))
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

/// Asks the card; the connection stays as it is until the card agrees. What it needs then is kept for it.
pub fn begin(
    calls: &mut Calls,
    now: Time,
    slot: ConnectionSlot,
    plan: &mut ModifyPlan,
    command: &Command<'_>,
) -> Result<Modified, Refused> {
    let Some(connection) = calls.endpoints.connections.get(slot) else { return Err(NO_MEDIA) };
    let changed = Connection {
        mode: plan.mode,
        local: plan.local,
        remote: plan.described.map_or(connection.remote, |described| described.remote),
        remote_types: plan.described.map_or(connection.remote_types, |described| described.types),
        ..*connection
    };
    if let Err((charge, has)) = admit::take_more(calls, now, slot, &changed.local, &changed.remote) {
        return Ok(Modified::Claims(charge, has));
    }
    match secure::prepare(calls, slot, plan.protection, || describe::crypto(command)) {
        Ok(rekeyed) => plan.rekeyed = rekeyed,
        Err(refused) => {
            admit::unchanged(calls, slot);
            return Err(refused);
        }
    }
    match calls.card.modify(now, changed.endpoint, slot, &media(&changed, Half::Whole)) {
        Answer::Now(address) => apply(calls, now, slot, plan, address, command),
        Answer::Later => match Room::keep(calls, changed.endpoint, Some(&plan.request), command) {
            Ok(room) => {
                plan.room = room;
                Ok(Modified::Waiting)
            }
            Err(refused) => {
                undo(calls, now, slot);
                Err(refused)
            }
        },
        Answer::Refused(_) => {
            calls.counters.add(Counter::CardRefused);
            calls.endpoints.secrets.forget_next(slot);
            admit::unchanged(calls, slot);
            Err(NO_MEDIA)
        }
    }
}

/// The command is aborted while the card is busy: it is to do what it did before. Its answer tells nobody anything.
pub fn undo(calls: &mut Calls, now: Time, slot: ConnectionSlot) {
    admit::unchanged(calls, slot);
    calls.endpoints.secrets.forget_next(slot);
    if let Some(connection) = calls.endpoints.connections.get(slot) {
        let _ = calls.card.modify(now, connection.endpoint, slot, &media(connection, Half::Whole));
    }
}

/// The card agreed; `address`: where it receives now.
pub fn apply(
    calls: &mut Calls,
    now: Time,
    slot: ConnectionSlot,
    plan: &ModifyPlan,
    address: MediaAddress,
    command: &Command<'_>,
) -> Result<Modified, Refused> {
    let inside = |calls: &Calls| calls.endpoints.connections.get(slot).is_some_and(Connection::is_inside);
    let was_inside = inside(calls);
    let undescribed = calls.endpoints.connections.get(slot).is_some_and(|connection| connection.remote == Remote::Unknown);
    if let Some(described) = plan.described
        && !describe::keep(calls, slot, described, command)
    {
        admit::unchanged(calls, slot);
        calls.endpoints.secrets.forget_next(slot);
        return Err(calls.no_room());
    }
    admit::changed(calls, slot);
    let moved = inside(calls) != was_inside;
    let connection = calls.endpoints.connections.get_mut(slot).ok_or(NO_MEDIA)?;
    let mut local = LocalMedia { address: address.address, port: address.port, ..plan.local };
    // Its description takes another form when it leaves the gateway or comes inside (RFC 3435 3.4.2).
    let described_anew = moved || plan.rekeyed || local != connection.local;
    if described_anew {
        local.version = connection.local.version.wrapping_add(1);
    }
    connection.mode = plan.mode;
    connection.options = plan.options;
    connection.local = local;
    let created = Created { endpoint: connection.endpoint, connection: connection.id, local: connection.local };
    secure::commit(calls, slot, created.endpoint);
    if undescribed && plan.described.is_some() {
        event::connection_described(calls, now, created.endpoint, slot);
    }
    let entity = request::apply(calls, now, created.endpoint, &plan.request, command, Some(created.connection));
    Ok(Modified::Ready(described_anew.then_some(created), entity))
}
