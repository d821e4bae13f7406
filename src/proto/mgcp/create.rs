//! CreateConnection on one endpoint (RFC 3435 2.3.5).

use super::admit;
use super::describe::{self, Described};
use super::event::{self, Carrier};
use super::options::{choose, choose_events, given};
use super::request::{self, RequestPlan};
use super::secure::{self, Protection};
use super::{
    Calls, Created, ENDPOINT_UNKNOWN, NO_CONNECTION_LEFT, NO_MEDIA, REMOTE_MISSING, Refused, Room, SECOND_AND_REMOTE, TOO_MANY_CONNECTIONS,
};
use crate::proto::base::{Counter, EndpointIndex, HexId, Mode, Time};
use crate::proto::cac::Charge;
use crate::proto::codec::mgcp::{Code, Command};
use crate::proto::endpoint::{
    Connection, ConnectionId, ConnectionSlot, Encoding, Gain, LocalMedia, Network, Options, Remote, RemoteTypes, TELEPHONE_EVENTS,
};
use crate::proto::trunk::{Answer, Coding, Media, MediaAddress, Payloads, TelephoneEvents};
use std::num::NonZeroU8;

/// Which end of a connection inside the gateway is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// Not inside the gateway: the far end is described by SDP, or later.
    Whole,
    /// The endpoint the command is addressed to.
    First,
    /// The endpoint in `Z2:`; always sendrecv (G-CRX-08).
    Second,
}

/// A connection to create; everything is checked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CreatePlan {
    endpoint: EndpointIndex,
    half: Half,
    call: HexId,
    mode: Mode,
    options: Options,
    local: LocalMedia,
    described: Option<Described>,
    protection: Protection,
    request: Option<RequestPlan>,
    /// Kept for it while it waits.
    room: Room,
}

impl CreatePlan {
    /// Whether it is no half of a pair.
    pub fn is_whole(&self) -> bool {
        self.half == Half::Whole
    }

    /// Whether there is a request with it.
    pub fn requests(&self) -> bool {
        self.request.is_some_and(|request| request.requests())
    }

    /// What is kept for it while it waits.
    pub fn room(&self) -> Room {
        self.room
    }
}

/// How far the card got.
pub enum Begun {
    /// The connection is there; whether the notified entity changed.
    Ready(ConnectionSlot, Created, bool),
    /// The card says later where media is received.
    Opening(ConnectionSlot),
    /// Nothing is done: these places must be claimed first.
    Claims(Charge),
}

/// Checks `command` for `endpoint`, which is in service.
pub fn validate(calls: &Calls, command: &Command<'_>, endpoint: EndpointIndex, half: Half) -> Result<CreatePlan, Refused> {
    let call = command.call()?.unwrap_or(HexId::NONE);
    let mode = match half {
        Half::Second => Mode::SendRecv,
        Half::Whole | Half::First => command.mode()?.unwrap_or_default(),
    };
    let options = given(calls, command)?;
    let described = describe::remote(calls, command, &options)?;
    if command.get(Code::Z2).is_some() && described.is_some() {
        return Err(SECOND_AND_REMOTE);
    }
    if mode.needs_remote() && described.is_none() && half == Half::Whole {
        return Err(REMOTE_MISSING);
    }
    let offered = described.map(|described| described.encodings);
    let (encodings, period_ms) = choose(calls, endpoint, &options, &Options::default(), offered.as_ref())?;
    let state = calls.endpoints.get(endpoint).ok_or(ENDPOINT_UNKNOWN)?;
    if state.connection_count() >= usize::from(calls.plan.limits.connections_per_endpoint) {
        return Err(TOO_MANY_CONNECTIONS);
    }
    if !calls.endpoints.connections.room_for(1) {
        return Err(NO_CONNECTION_LEFT);
    }
    let request = match half {
        // The encapsulated request is the first endpoint's (G-RQN-05).
        Half::Second => None,
        Half::Whole | Half::First => Some(request::validate(calls, command, endpoint, carrier(half, described.is_some()))?),
    };
    let events = choose_events(&options, described.as_ref(), TelephoneEvents::None);
    let remote = described.map_or(Remote::Unknown, |described| described.remote);
    let inside = half != Half::Whole || options.network == Some(Network::Local);
    let protection = secure::choose(calls, endpoint, remote, described.map(|described| described.line), inside)?;
    let local = LocalMedia { encodings, period_ms, events, protected: protection.holds(false), ..LocalMedia::default() };
    Ok(CreatePlan { endpoint, half, call, mode, options, local, described, protection, request, room: Room::default() })
}

/// What `@$` means while the connection is made: the far end of a pair is as good as described.
fn carrier(half: Half, described: bool) -> Carrier {
    Carrier::New(described || half == Half::First)
}

/// Checks the request again, for a command that had to wait: what it rests on must hold from the start to the end (G-RQN-06).
pub fn still_possible(calls: &Calls, plan: &CreatePlan, command: &Command<'_>) -> Result<(), Refused> {
    match plan.request {
        Some(request) if request.requests() => {
            request::check(calls, command, plan.endpoint, carrier(plan.half, plan.described.is_some())).map(drop)
        }
        _ => Ok(()),
    }
}

/// Takes a place for the connection, which nobody sees yet, and asks the card for media. What it needs when it goes on is kept for it, unless
/// it is there already.
pub fn begin(calls: &mut Calls, now: Time, plan: &mut CreatePlan, command: &Command<'_>) -> Result<Begun, Refused> {
    let id = calls.endpoints.connections.fresh_id();
    let connection = Connection {
        endpoint: plan.endpoint,
        id,
        call: plan.call,
        mode: plan.mode,
        options: plan.options,
        local: plan.local,
        remote: plan.described.map_or(Remote::Unknown, |described| described.remote),
        remote_types: plan.described.map_or(RemoteTypes::default(), |described| described.types),
        created: now,
        pending: true,
        ..Connection::default()
    };
    let charge = match admit::take_new(calls, now, plan.endpoint, plan.half, &connection.local, &connection.remote) {
        Ok(charge) => charge,
        Err(charge) => return Ok(Begun::Claims(charge)),
    };
    let Some(slot) = calls.endpoints.connect(connection) else {
        admit::drop_new(calls, &charge);
        return Err(NO_CONNECTION_LEFT);
    };
    admit::keep(calls, slot, charge);
    if let Err(refused) = secure::prepare(calls, slot, plan.protection, || describe::crypto(command)) {
        calls.disconnect(slot);
        return Err(refused);
    }
    let answer = calls.card.open(now, plan.endpoint, slot, &media(&connection, plan.half));
    let waits = matches!(answer, Answer::Later) || plan.half == Half::First;
    if waits && !matches!(answer, Answer::Refused(_)) {
        match Room::keep(calls, plan.endpoint, plan.request.as_ref(), command) {
            Ok(room) => plan.room = room,
            Err(refused) => {
                super::delete::disconnect(calls, now, slot);
                return Err(refused);
            }
        }
    }
    match answer {
        Answer::Now(address) => opened(calls, now, slot, plan, address, command),
        Answer::Later => Ok(Begun::Opening(slot)),
        Answer::Refused(_) => {
            calls.counters.add(Counter::CardRefused);
            calls.disconnect(slot);
            Err(NO_MEDIA)
        }
    }
}

/// The card has opened the media: the connection is there. A half of a pair stays unseen until it is joined.
pub fn opened(
    calls: &mut Calls,
    now: Time,
    slot: ConnectionSlot,
    plan: &CreatePlan,
    address: MediaAddress,
    command: &Command<'_>,
) -> Result<Begun, Refused> {
    if let Some(described) = plan.described
        && !describe::keep(calls, slot, described, command)
    {
        return Err(calls.no_room());
    }
    let connection = calls.endpoints.connections.get_mut(slot).ok_or(NO_MEDIA)?;
    connection.local.address = address.address;
    connection.local.port = address.port;
    connection.pending = plan.half != Half::Whole;
    let connection = *connection;
    secure::commit(calls, slot, connection.endpoint);
    let created = Created { endpoint: connection.endpoint, connection: connection.id, local: connection.local };
    let request = plan.request.as_ref().filter(|_| plan.half == Half::Whole);
    if plan.half == Half::Whole {
        if plan.described.is_some() {
            event::connection_described(calls, now, plan.endpoint, slot);
        }
        event::connection_up(calls, now, plan.endpoint, slot);
    }
    let current = Some(created.connection);
    let entity = request.is_some_and(|request| request::apply(calls, now, plan.endpoint, request, command, current));
    Ok(Begun::Ready(slot, created, entity))
}

/// The second half of a pair is shown, so the first one is too: whether its notified entity changed.
pub fn joined(
    calls: &mut Calls,
    now: Time,
    slot: ConnectionSlot,
    plan: &CreatePlan,
    other: (EndpointIndex, ConnectionId),
    command: &Command<'_>,
) -> bool {
    let Some(connection) = calls.endpoints.connections.get_mut(slot) else { return false };
    connection.pending = false;
    connection.remote = Remote::Local(other.0, other.1);
    let current = Some(connection.id);
    event::connection_described(calls, now, plan.endpoint, slot);
    event::connection_up(calls, now, plan.endpoint, slot);
    plan.request.as_ref().is_some_and(|request| request::apply(calls, now, plan.endpoint, request, command, current))
}

/// The other half of a pair receives there: the card is told, if it moves media. It keeps the address, as later orders do without.
pub fn meet(calls: &mut Calls, now: Time, slot: ConnectionSlot, other: MediaAddress) {
    if other.port == 0 {
        return;
    }
    if let Some(connection) = calls.endpoints.connections.get(slot).copied() {
        let media = Media { remote: Some((other.address, other.port).into()), ..media(&connection, Half::First) };
        // A refusal leaves the pair without a voice; it has no cause while both halves are open.
        calls.card.modify(now, connection.endpoint, slot, &media);
    }
}

/// What the card is to do for `connection`.
pub fn media(connection: &Connection, half: Half) -> Media {
    let local = &connection.local;
    let bits_per_ms = local.encodings.first().map_or(0, |encoding| encoding.facts().bits_per_second / 1000);
    let (remote, inside) = match connection.remote {
        Remote::Unknown => (None, half != Half::Whole || connection.is_inside()),
        Remote::Rtp(address, port) => (Some((address, port).into()), false),
        Remote::Local(..) => (None, true),
    };
    Media {
        mode: connection.mode,
        packet_bytes: (bits_per_ms * u32::from(local.period_ms) / 8) as u16,
        period_ms: local.period_ms,
        remote,
        inside,
        other: match connection.remote {
            Remote::Local(endpoint, id) => Some((endpoint, id.0)),
            Remote::Unknown | Remote::Rtp(..) => None,
        },
        payloads: payloads(local, &connection.remote_types),
        gain_db: match connection.options.gain {
            Some(Gain::Db(db)) => db,
            Some(Gain::Auto) | None => 0,
        },
        type_of_service: connection.options.type_of_service,
    }
}

/// The first encoding is sent, as the type the far end named if any; each of them is received (G-LCO-17).
fn payloads(local: &LocalMedia, remote: &RemoteTypes) -> Payloads {
    let coding = |encoding: Encoding| Some((encoding.coding()?, encoding.payload_type()));
    let sent = local.encodings.first().and_then(coding).map(|(coding, own)| match coding {
        Coding::Clear => (coding, remote.clear.map_or(own, NonZeroU8::get)),
        Coding::Mu | Coding::A => (coding, own),
    });
    let mut payloads = Payloads {
        sent,
        received: [None; 3],
        events_sent: remote.events.filter(|_| local.events.is_some()).map(NonZeroU8::get),
        events_received: local.events.is_some().then_some(TELEPHONE_EVENTS),
        events: local.events,
    };
    for (coding, payload_type) in local.encodings.iter().filter_map(coding) {
        if let Some(place) = payloads.received.get_mut(coding as usize) {
            *place = Some(payload_type);
        }
    }
    payloads
}
