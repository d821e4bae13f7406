//! Signals: begun and ended by lists, ended by time, by events, by the card, and with their connection (RFC 3435 2.1.7, 2.3.3; G-SIG).

use super::list;
use super::playing::{Ending, Signal};
use super::sequence;
use super::watch::{Occurrence, Place, WatchSlot};
use crate::proto::base::{Counter, EndpointIndex, Time};
use crate::proto::codec::mgcp::{ConnectionRef, Event, EventList, Writer};
use crate::proto::endpoint::{Blob, CONNECTIONS_PER_ENDPOINT, ConnectionId, ConnectionSlot, Remote};
use crate::proto::mgcp::Calls;
use crate::proto::package::parameters::{Detail, Signal as Parameters};
use crate::proto::package::{ChannelKind, EventId, PackageId, SignalClass, SignalParameters, find_item};
use crate::proto::trunk::EventText;
use std::time::Duration;

/// A new list (G-SIG-01..04, G-SIG-09): time-out signals that are not in it stop, brief ones that wait are dropped, those that are in it go
/// on or begin; all was checked. `current` is what `@$` means. The caller reschedules the watch.
pub(super) fn replace(calls: &mut Calls, now: Time, slot: WatchSlot, list: Option<EventList<'_>>, current: Option<ConnectionId>) {
    let Some(watch) = calls.watches.get(slot) else { return };
    let asked = list.map(|list| (list, calls.channel_kind(watch.endpoint)));
    let listed = |signal: &Signal| {
        let is = |event, kind| named(&event, kind, current) == Some((signal.signal, signal.place));
        asked.is_some_and(|(list, kind)| list.iter().any(|event| is(event, kind)))
    };
    for n in taken(calls, slot) {
        match at(calls, slot, n) {
            Some((_, signal)) if signal.ending == Ending::Pending => remove(calls, slot, n),
            Some((_, signal)) if matches!(signal.ending, Ending::TimeOut(_)) && !listed(&signal) => stop(calls, now, slot, n),
            _ => {}
        }
    }
    let Some((list, kind)) = asked else { return };
    for event in list.iter() {
        if let Some((signal, place)) = named(&event, kind, current) {
            apply(calls, now, slot, signal, place, &event, kind);
        }
    }
}

/// Where a signal of a list is asked for: on the connection behind its `@`, or in its parameters (G/rbk, the old form of G/rt).
pub(super) fn connection_of(event: &Event<'_>, told: &SignalParameters) -> Option<ConnectionRef> {
    match told.detail {
        Detail::Connection(connection) => Some(connection),
        _ => event.connection,
    }
}

/// The signal that an event of a list is, and where.
fn named(event: &Event<'_>, kind: ChannelKind, current: Option<ConnectionId>) -> Option<(EventId, Place)> {
    let Ok(list::Meaning::One(signal)) = list::meaning(event, kind) else { return None };
    let told = signal.signal_parameters(event.parameters, kind).ok()?;
    let place = list::place(connection_of(event, &told)).or(current.map(Place::Connection))?;
    Some((signal, place))
}

fn apply(calls: &mut Calls, now: Time, slot: WatchSlot, signal: EventId, place: Place, event: &Event<'_>, kind: ChannelKind) {
    let (Some(traits), Ok(told)) = (signal.signal(), signal.signal_parameters(event.parameters, kind)) else { return };
    let Some(watch) = calls.watches.get(slot) else { return };
    let present = watch.signals.position(|one| one.signal == signal && one.place == place);
    let playing = watch.signals.iter().any(|one| matches!(one.ending, Ending::Brief(_)));
    let after = |ms: u32| if ms == 0 { Time::NEVER } else { now + Duration::from_millis(ms.into()) };
    let ending = match traits.class {
        SignalClass::OnOff => match (told.on, present) {
            (true, None) => Ending::Order,
            (false, Some(n)) => return stop(calls, now, slot, n),
            _ => return,
        },
        // It goes on with its timer and its parameters (G-SIG-02).
        SignalClass::TimeOut { .. } if present.is_some() => return,
        SignalClass::TimeOut { default_ms, .. } => Ending::TimeOut(after(told.time_out_ms.or(default_ms).unwrap_or(0))),
        SignalClass::Brief { .. } if playing => Ending::Pending,
        SignalClass::Brief { ms } => Ending::Brief(now + Duration::from_millis(ms.into())),
    };
    let mut room = list::ROOM;
    let text = parameters_text(event, place, &told, &mut room);
    let parameters = if text.is_empty() { Blob::NONE } else { calls.endpoints.blobs.store(text).unwrap_or(Blob::NONE) };
    let Some(watch) = calls.watches.get_mut(slot) else { return };
    let Some(n) = watch.signals.add(Signal { signal, place, ending, parameters }) else { return };
    if ending != Ending::Pending {
        begin(calls, now, slot, n);
    }
}

/// The parameters of a signal as they are kept: `$` in them is the connection that it meant.
fn parameters_text<'a>(event: &Event<'a>, place: Place, told: &SignalParameters, room: &'a mut list::Room) -> &'a [u8] {
    let text = event.parameters.map_or(&[][..], |parameters| parameters.as_bytes());
    let (Detail::Connection(ConnectionRef::Current), Place::Connection(id)) = (told.detail, place) else { return text };
    let mut writer = Writer::new(room);
    for &byte in text {
        if byte == b'$' { writer.hex_id(id.hex()) } else { writer.byte(byte) }
    }
    let length = writer.finish().unwrap_or(0);
    room.get(..length).unwrap_or_default()
}

/// What a card plays of a signal: G/rbk is G/rt on a connection, by its old name.
fn sound(signal: EventId) -> EventId {
    if is_old_ringback(signal) { find_item(PackageId::G, b"rt").unwrap_or(signal) } else { signal }
}

fn is_old_ringback(signal: EventId) -> bool {
    signal.signal().is_some_and(|traits| traits.parameters == Parameters::Connection)
}

/// Orders the card to play it. What cannot be played has failed (G-SIG-06).
fn begin(calls: &mut Calls, now: Time, slot: WatchSlot, n: usize) {
    let Some((endpoint, signal)) = at(calls, slot, n) else { return };
    let mut room = list::ROOM;
    let text = list::text(&calls.endpoints.blobs, signal.parameters, &mut room);
    let begun = match signal.place {
        _ if sequence::is(signal.signal) => sequence::play(calls, now, slot, n, 0).map(drop),
        Place::Endpoint => calls.card.start_signal(now, endpoint, None, signal.signal, text),
        Place::Connection(id) => match calls.endpoints.find(endpoint, id) {
            Some((connection, _)) => calls.card.start_signal(now, endpoint, Some(connection), sound(signal.signal), text),
            None => Ok(()),
        },
        Place::All => {
            let described = connections(calls, endpoint, Place::All);
            described
                .into_iter()
                .flatten()
                .try_for_each(|connection| calls.card.start_signal(now, endpoint, Some(connection), sound(signal.signal), text))
        }
    };
    if begun.is_err() {
        fail(calls, slot, n);
    }
}

/// The card cannot play it. The rest of the list is dealt with first.
fn fail(calls: &mut Calls, slot: WatchSlot, n: usize) {
    calls.counters.add(Counter::CardRefused);
    if let Some(signal) = calls.watches.get_mut(slot).and_then(|watch| watch.signals.get_mut(n)) {
        signal.ending = Ending::Failed;
    }
}

/// The connections of `endpoint` that a signal at `place` is played on: those with a remote description.
fn connections(calls: &Calls, endpoint: EndpointIndex, place: Place) -> [Option<ConnectionSlot>; CONNECTIONS_PER_ENDPOINT] {
    let wanted = |id| match place {
        Place::Endpoint => false,
        Place::Connection(wanted) => wanted == id,
        Place::All => true,
    };
    let mut all = calls.connections_of(endpoint).filter(|(_, connection)| wanted(connection.id) && connection.remote != Remote::Unknown);
    std::array::from_fn(|_| all.next().map(|(slot, _)| slot))
}

/// The places of the signals there are now.
fn taken(calls: &Calls, slot: WatchSlot) -> impl Iterator<Item = usize> + use<> {
    calls.watches.get(slot).map(|watch| watch.signals.places()).into_iter().flatten()
}

fn at(calls: &Calls, slot: WatchSlot, n: usize) -> Option<(EndpointIndex, Signal)> {
    let watch = calls.watches.get(slot)?;
    Some((watch.endpoint, watch.signals.get(n)?))
}

/// Ends a signal without a word (G-SIG-05: what is cancelled gives no `oc`).
fn stop(calls: &mut Calls, now: Time, slot: WatchSlot, n: usize) {
    if let Some((endpoint, signal)) = at(calls, slot, n) {
        match sequence::is(signal.signal) {
            true => sequence::stop(calls, now, slot),
            false => stop_playing(calls, now, endpoint, &signal),
        }
        remove(calls, slot, n);
    }
}

fn stop_playing(calls: &mut Calls, now: Time, endpoint: EndpointIndex, signal: &Signal) {
    match (signal.ending, signal.place) {
        (Ending::Pending | Ending::Failed, _) => {}
        (_, Place::Endpoint) => calls.card.stop_signal(now, endpoint, None, signal.signal),
        (_, place) => {
            for connection in connections(calls, endpoint, place).into_iter().flatten() {
                calls.card.stop_signal(now, endpoint, Some(connection), sound(signal.signal));
            }
        }
    }
}

fn remove(calls: &mut Calls, slot: WatchSlot, n: usize) {
    if let Some(mut signal) = calls.watches.get_mut(slot).and_then(|watch| watch.signals.remove(n)) {
        calls.endpoints.blobs.free(&mut signal.parameters);
    }
}

/// How a signal came to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Complete,
    Failed,
}

/// It has ended: time-out signals tell by `oc` or `of` (G-SIG-05, G-SIG-06), after a brief one the next one begins.
fn end(calls: &mut Calls, now: Time, slot: WatchSlot, n: usize, how: Option<Ended>) {
    let Some((endpoint, signal)) = at(calls, slot, n) else { return };
    if sequence::is(signal.signal) {
        sequence::stop(calls, now, slot);
    }
    remove(calls, slot, n);
    let reported = match (signal.ending, how) {
        (Ending::TimeOut(_), Some(Ended::Complete)) => Some(&b"oc"[..]),
        (_, Some(Ended::Failed)) => Some(&b"of"[..]),
        _ => None,
    };
    if let Some(event) = reported.and_then(|name| find_item(signal.signal.package(), name)) {
        let mut text = [0; EventText::MAX];
        let mut writer = Writer::new(&mut text);
        write_name(&mut writer, &signal);
        let length = writer.finish().unwrap_or(0);
        let parameters = EventText::new(text.get(..length).unwrap_or_default());
        super::occur(calls, now, endpoint, Occurrence { event, connection: None, parameters });
    }
    play_pending(calls, now, slot);
}

/// The next brief signal begins when none is played.
fn play_pending(calls: &mut Calls, now: Time, slot: WatchSlot) {
    let Some(watch) = calls.watches.get_mut(slot) else { return };
    if watch.signals.iter().any(|signal| matches!(signal.ending, Ending::Brief(_))) {
        return;
    }
    let Some(n) = watch.signals.position(|one| one.ending == Ending::Pending) else { return };
    if let Some(signal) = watch.signals.get_mut(n)
        && let Some(SignalClass::Brief { ms }) = signal.signal.signal().map(|traits| traits.class)
    {
        signal.ending = Ending::Brief(now + Duration::from_millis(ms.into()));
        begin(calls, now, slot, n);
    }
}

/// Signals whose time is over.
pub(super) fn expire(calls: &mut Calls, now: Time, slot: WatchSlot) {
    while let Some(watch) = calls.watches.get(slot) {
        let over = |one: &Signal| match one.ending {
            Ending::TimeOut(at) | Ending::Brief(at) => at <= now,
            Ending::Failed => true,
            Ending::Order | Ending::Pending => false,
        };
        let Some(n) = watch.signals.position(over) else { break };
        let Some((endpoint, signal)) = at(calls, slot, n) else { break };
        if sequence::is(signal.signal) && signal.ending != Ending::Failed {
            next_member(calls, now, slot, n);
            continue;
        }
        if matches!(signal.ending, Ending::TimeOut(_)) {
            stop_playing(calls, now, endpoint, &signal);
        }
        let how = if signal.ending == Ending::Failed { Ended::Failed } else { Ended::Complete };
        end(calls, now, slot, n, Some(how));
    }
}

/// A member of a signal list has ended: the next one is played; behind the last one the list has ended.
fn next_member(calls: &mut Calls, now: Time, slot: WatchSlot, n: usize) {
    let before = calls.watches.get(slot).and_then(|watch| watch.member);
    sequence::stop(calls, now, slot);
    match sequence::play(calls, now, slot, n, before.map_or(0, |member| member.number + 1)) {
        Ok(true) => {}
        Ok(false) => end(calls, now, slot, n, Some(Ended::Complete)),
        Err(_) => fail(calls, slot, n),
    }
}

/// A requested event was detected: time-out signals stop, brief ones that wait are dropped (G-SIG-09, G-SIG-10). Those that end with their
/// work go on: the wink a set-up waits for is an event too, and its `oc` is to follow (RFC 3064 5.3 C3 to C5).
pub(super) fn stop_time_outs(calls: &mut Calls, now: Time, slot: WatchSlot) {
    let variable =
        |signal: EventId| matches!(signal.signal().map(|traits| traits.class), Some(SignalClass::TimeOut { variable: true, .. }));
    let works = |signal: EventId| variable(signal) && !sequence::is(signal);
    for n in taken(calls, slot) {
        let ends = |one: Signal| matches!(one.ending, Ending::TimeOut(_) | Ending::Pending) && !works(one.signal);
        if at(calls, slot, n).is_some_and(|(_, one)| ends(one)) {
            stop(calls, now, slot, n);
        }
    }
    calls.watches.reschedule(slot);
}

/// Every signal stops: the endpoint leaves service or restarts.
pub(super) fn stop_all(calls: &mut Calls, now: Time, slot: WatchSlot) {
    for n in taken(calls, slot) {
        stop(calls, now, slot, n);
    }
    calls.watches.reschedule(slot);
}

/// The card says that a signal has ended by itself. False: nobody waits for it.
pub(super) fn ended(
    calls: &mut Calls,
    now: Time,
    slot: WatchSlot,
    connection: Option<ConnectionId>,
    signal: EventId,
    failed: bool,
) -> bool {
    let Some(watch) = calls.watches.get(slot) else { return false };
    let here = |place| match (place, connection) {
        (Place::Endpoint, None) | (Place::All, Some(_)) => true,
        (Place::Connection(wanted), Some(connection)) => wanted == connection,
        _ => false,
    };
    let is = |one: &Signal| one.signal == signal && one.ending != Ending::Pending && here(one.place);
    let is_member = connection.is_none() && watch.member.is_some_and(|member| member.signal == signal);
    let list = |one: &Signal| is_member && sequence::is(one.signal);
    if let Some(n) = watch.signals.position(is) {
        end(calls, now, slot, n, Some(if failed { Ended::Failed } else { Ended::Complete }));
    } else if let Some(n) = watch.signals.position(list) {
        match failed {
            true => end(calls, now, slot, n, Some(Ended::Failed)),
            false => next_member(calls, now, slot, n),
        }
    } else {
        return false;
    }
    calls.watches.reschedule(slot);
    true
}

/// A connection is gone: so are the signals on it, and time-out signals have failed (G-EVT-09, G-SIG-06).
pub(super) fn connection_gone(calls: &mut Calls, now: Time, slot: WatchSlot, connection: ConnectionId) {
    for n in taken(calls, slot) {
        match at(calls, slot, n) {
            Some((_, signal)) if signal.place == Place::Connection(connection) => {
                let failed = matches!(signal.ending, Ending::TimeOut(_));
                end(calls, now, slot, n, failed.then_some(Ended::Failed));
            }
            _ => {}
        }
    }
    calls.watches.reschedule(slot);
}

/// A connection has got its remote description: signals on all connections begin there (O-17).
pub(super) fn connection_described(calls: &mut Calls, now: Time, slot: WatchSlot, connection: ConnectionSlot) {
    for n in taken(calls, slot) {
        if let Some((endpoint, signal)) = at(calls, slot, n)
            && signal.place == Place::All
            && !matches!(signal.ending, Ending::Pending | Ending::Brief(_))
        {
            let mut room = list::ROOM;
            let text = list::text(&calls.endpoints.blobs, signal.parameters, &mut room);
            if calls.card.start_signal(now, endpoint, Some(connection), sound(signal.signal), text).is_err() {
                calls.counters.add(Counter::CardRefused);
            }
        }
    }
}

/// The name of a signal with its connection, as `oc` and `of` report it: without its parameters.
fn write_name(writer: &mut Writer<'_>, signal: &Signal) {
    signal.signal.write(writer);
    match signal.place {
        Place::Endpoint => {}
        // Its connection is a parameter.
        _ if is_old_ringback(signal.signal) => {}
        Place::All => writer.text("@*"),
        Place::Connection(id) => {
            writer.byte(b'@');
            writer.hex_id(id.hex());
        }
    }
}

/// `S:`: time-out signals and on/off signals that are on, brief ones that wait (SIG-16).
pub(super) fn audit(calls: &Calls, writer: &mut Writer<'_>, slot: WatchSlot) {
    let signals = calls.watches.get(slot).into_iter().flat_map(|watch| watch.signals.iter());
    for (n, signal) in signals.filter(|signal| !matches!(signal.ending, Ending::Brief(_))).enumerate() {
        writer.text(if n == 0 { "" } else { "," });
        write_name(writer, &signal);
        if !signal.parameters.is_none() {
            writer.byte(b'(');
            for piece in calls.endpoints.blobs.pieces(signal.parameters) {
                writer.bytes(piece);
            }
            writer.byte(b')');
        }
    }
}
