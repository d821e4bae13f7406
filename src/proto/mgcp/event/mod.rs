//! The event machine of an endpoint: what happens is looked up in the lists of the request in place, accumulated, matched against the
//! digit map, notified, quarantined; signals run beside it (RFC 3435 2.1.7, 2.3.3, 2.3.4, 4.4.1, appendix B).
//!
//! It owns the [`Watches`] of a core and orders the card to play signals. It sends nothing: an endpoint that has something to notify is in
//! the queue of [`Watches`], from which the core takes it, sends the Notify and says what came of it by [`answered`] or [`lost`].
//!
//! To drive it: [`request`] for each accepted request, which [`check`] has found possible; [`occur`] for whatever the card sees;
//! [`expire`] when [`Watches::poll`] says so; [`connection_up`], [`connection_described`] and [`connection_gone`] as connections change; [`reset`] when an
//! endpoint restarts.
//!
//! Invariants: in the notification state there is exactly one trigger; in the normal state nothing is in quarantine between two calls; an
//! event that is to be detected is processed, quarantined, or counted as lost.

mod age;
mod audit;
pub mod check;
mod dial;
mod hold;
mod list;
mod playing;
mod sequence;
mod signals;
mod watch;

pub use audit::{EventsView, view, write, write_notify};
pub use check::{Carrier, Check, Lists};
pub use hold::end as key_released;
pub use watch::{NOTIFIES_MAX, Occurrence, Quarantine, State, Watch, WatchSlot, Watches};

use crate::proto::base::{Counter, EndpointIndex, HexId, Time, TransactionId};
use crate::proto::codec::mgcp::{ActionSet, Embedded, EventList, ListKind, Writer};
use crate::proto::endpoint::{Blob, Blobs, CONNECTIONS_PER_ENDPOINT, ConnectionId, ConnectionSlot, EntityId};
use crate::proto::mgcp::{self, Calls, Refused};
use crate::proto::package::{ChannelKind, EventId, EventParameters, PackageId, find_item};
use crate::proto::trunk::{EventText, Measure, Sounds};
use list::{Found, ROOM, Room};
use watch::Which;

/// What an accepted request says.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// `X:`.
    pub id: HexId,
    /// `Q:`.
    pub quarantine: Quarantine,
    /// `N:`, its use counted; `None` when it has none.
    pub named: Option<EntityId>,
    /// Its lists.
    pub lists: &'a Lists<'a>,
    /// What `@$` means.
    pub current: Option<ConnectionId>,
}

/// How many blocks of the blobs the lists of a request take on a channel of this kind, at most; or it is refused because one is too long.
pub fn blocks(kind: ChannelKind, lists: &Lists<'_>) -> Result<u32, Refused> {
    let mut blocks = 0;
    if let Some(Some(map)) = lists.digit_map {
        blocks += Blobs::blocks_for(map.as_bytes().len());
    }
    for list in [lists.requested, lists.detected, lists.persistent].into_iter().flatten().filter(|list| !list.is_empty()) {
        let mut room = ROOM;
        let mut writer = Writer::new(&mut room);
        // Any identifier is as long as the one that `@$` will mean.
        list::write(&mut writer, list, kind, Some(ConnectionId::default()));
        blocks += Blobs::blocks_for(writer.finish().ok_or(mgcp::TOO_MANY_EVENTS)?);
    }
    let parameters = |event: crate::proto::codec::mgcp::Event<'_>| event.parameters.map_or(0, |parameters| parameters.as_bytes().len());
    for length in lists.signals.into_iter().flat_map(|list| list.iter()).map(parameters).filter(|&length| length > 0) {
        blocks += Blobs::blocks_for(length);
    }
    Ok(blocks)
}

/// Whether `endpoint` keeps persistent events, which may name a connection.
pub fn keeps_persistent(calls: &Calls, endpoint: EndpointIndex) -> bool {
    calls.watch(endpoint).is_some_and(|watch| !watch.persistent.is_empty())
}

/// How many blocks the lists have now that a request replaces.
pub fn replaced(calls: &Calls, endpoint: EndpointIndex, lists: &Lists<'_>) -> u32 {
    let Some(watch) = calls.watch(endpoint) else { return 0 };
    let of = |list, blob| if replaces(lists, list) { Blobs::blocks(blob) } else { 0 };
    of(List::Requested, watch.requested)
        + of(List::Detected, watch.detected)
        + of(List::Persistent, watch.persistent)
        + of(List::DigitMap, watch.digit_map)
}

/// Whether a request replaces this list: the requested events always, the others when it has them.
fn replaces(lists: &Lists<'_>, which: List) -> bool {
    match which {
        List::Requested => true,
        List::Detected => lists.detected.is_some(),
        List::Persistent => lists.persistent.is_some(),
        List::DigitMap => lists.digit_map.is_some(),
    }
}

/// Gives up the lists that a request replaces, which is applied next: its own may need their room.
pub fn make_room(calls: &mut Calls, slot: WatchSlot, lists: &Lists<'_>) {
    let Some(watch) = calls.watches.get_mut(slot) else { return };
    for which in [List::Requested, List::Detected, List::Persistent, List::DigitMap] {
        if replaces(lists, which) {
            calls.endpoints.blobs.replace(which.of_mut(watch));
        }
    }
}

/// A request takes effect; it was checked and there is room for it (G-REQ-01, G-QUA-12, G-QUA-15, G-QUA-16).
pub fn request(calls: &mut Calls, now: Time, endpoint: EndpointIndex, request: &Request<'_>) {
    let Some(slot) = calls.watch_slot_or_new(endpoint) else { return };
    let Some(watch) = calls.watches.get_mut(slot) else { return };
    watch.request = request.id;
    watch.quarantine = request.quarantine;
    let named = std::mem::replace(&mut watch.named, request.named);
    let (state, unsent) = (watch.state, std::mem::take(&mut watch.unsent));
    watch.state = State::Normal;
    watch.awaited = None;
    watch.retry = Time::NEVER;
    watch.observed_full = false;
    if let Some(named) = named {
        calls.endpoints.entities.release(&mut calls.endpoints.blobs, named);
    }
    if state == State::Notification {
        match calls.watches.pop(slot, Which::Trigger) {
            // What was to be notified and was not sent is not notified yet.
            Some(trigger) if unsent => {
                calls.watches.push(slot, Which::Observed, trigger);
            }
            _ => calls.watches.clear(slot, Which::Observed),
        }
    }
    if request.quarantine.discard {
        calls.watches.clear(slot, Which::Observed);
        calls.watches.clear(slot, Which::Quarantined);
        if let Some(watch) = calls.watches.get_mut(slot) {
            watch.overflowed = false;
        }
    } else {
        calls.watches.quarantine_observed(slot);
    }
    make_room(calls, slot, request.lists);
    if let Some(list) = request.lists.detected {
        keep(calls, slot, List::Detected, Some(list), request.current);
    }
    if let Some(list) = request.lists.persistent {
        keep(calls, slot, List::Persistent, Some(list), request.current);
    }
    install(calls, now, slot, request.lists, request.current);
    drain(calls, now, slot);
}

/// One of the lists of a watch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Requested,
    Detected,
    Persistent,
    DigitMap,
}

impl List {
    fn of_mut(self, watch: &mut Watch) -> &mut Blob {
        match self {
            List::Requested => &mut watch.requested,
            List::Detected => &mut watch.detected,
            List::Persistent => &mut watch.persistent,
            List::DigitMap => &mut watch.digit_map,
        }
    }
}

/// Keeps a list in place of one that was given up.
#[inline]
fn keep(calls: &mut Calls, slot: WatchSlot, which: List, list: Option<EventList<'_>>, current: Option<ConnectionId>) {
    let Some(watch) = calls.watches.get_mut(slot) else { return };
    match list.filter(|list| !list.is_empty()) {
        Some(list) => store(calls, slot, which, list, current),
        None => watch.listens(which as usize, Sounds::NONE, false),
    }
}

/// Never a part of [`keep`]: the room for a list would be made ready for who has none.
#[inline(never)]
fn store(calls: &mut Calls, slot: WatchSlot, which: List, list: EventList<'_>, current: Option<ConnectionId>) {
    let Some(watch) = calls.watches.get_mut(slot) else { return };
    let kind = calls.plan.channel_kind(watch.endpoint);
    watch.listens(which as usize, list::sounds(list, kind), age::is_in(list, kind));
    let place = which.of_mut(watch);
    let mut room = ROOM;
    let mut writer = Writer::new(&mut room);
    list::write(&mut writer, list, kind, current);
    let written = writer.finish().and_then(|length| room.get(..length));
    *place = written.and_then(|text| calls.endpoints.blobs.store(text)).unwrap_or(Blob::NONE);
}

/// The part of a request that an embedded one has too: events, signals, digit map. Those it replaces were given up.
fn install(calls: &mut Calls, now: Time, slot: WatchSlot, lists: &Lists<'_>, current: Option<ConnectionId>) {
    keep(calls, slot, List::Requested, lists.requested, current);
    if let Some(map) = lists.digit_map
        && let Some(watch) = calls.watches.get_mut(slot)
    {
        let stored = map.and_then(|map| calls.endpoints.blobs.store(map.as_bytes()));
        watch.digit_map = stored.unwrap_or(Blob::NONE);
    }
    listen(calls, now, slot);
    measure(calls, now, slot, None);
    dial::begin(calls, now, slot);
    age::schedule(calls, slot);
    hold::schedule(calls, slot);
    signals::replace(calls, now, slot, lists.signals, current);
}

/// The card listens for what the lists wait for, and for nothing else.
fn listen(calls: &mut Calls, now: Time, slot: WatchSlot) {
    let Some(watch) = calls.watches.get_mut(slot) else { return };
    let sounds = watch.sounds.into_iter().collect();
    if watch.listening != sounds {
        watch.listening = sounds;
        calls.card.listen_for(now, watch.endpoint, sounds);
    }
}

/// R/rto, R/pl, R/iu: the card measures, from now on, the connections that are there and asked for, or this one.
fn measure(calls: &mut Calls, now: Time, slot: WatchSlot, only: Option<ConnectionSlot>) {
    let Some(watch) = calls.watches.get(slot).filter(|watch| watch.listening.has(Sounds::FAR_MEASURED)) else { return };
    let (endpoint, kind) = (watch.endpoint, calls.channel_kind(watch.endpoint));
    let (mut first, mut second) = (ROOM, ROOM);
    let blobs = &calls.endpoints.blobs;
    // What the request says goes before what is persistent, so it is ordered last.
    let persistent = list::kept(blobs, watch.persistent, &mut first, ListKind::Requested);
    let requested = list::kept(blobs, watch.requested, &mut second, ListKind::Requested);
    for event in [persistent, requested].into_iter().flatten().flat_map(|list| list.iter()) {
        let Ok(list::Meaning::One(one)) = list::meaning(&event, kind) else { continue };
        let what = match one.event_parameters(event.parameters) {
            Ok(EventParameters::Silence { seconds, after_report }) => Measure::Silence { seconds, after_report },
            Ok(EventParameters::Number(limit)) if one.package() == PackageId::R => match one.item().name {
                "pl" => Measure::Loss(limit),
                "iu" => Measure::Unreachable(u8::try_from(limit).unwrap_or(u8::MAX)),
                _ => continue,
            },
            _ => continue,
        };
        let wanted = list::place(event.connection);
        for connection in there(calls, endpoint, wanted).into_iter().flatten().filter(|&one| only.is_none_or(|only| only == one)) {
            calls.card.measure(now, endpoint, connection, what);
        }
    }
}

/// The connections of `endpoint` that are meant; without a place, all of them.
fn there(calls: &Calls, endpoint: EndpointIndex, wanted: Option<watch::Place>) -> [Option<ConnectionSlot>; CONNECTIONS_PER_ENDPOINT] {
    let is_wanted = |id| !matches!(wanted, Some(watch::Place::Connection(one)) if one != id);
    let mut there = calls.connections_of(endpoint).filter(|(_, connection)| is_wanted(connection.id));
    std::array::from_fn(|_| there.next().map(|(slot, _)| slot))
}

/// Something happened: on the line, on a connection, or to a signal.
pub fn occur(calls: &mut Calls, now: Time, endpoint: EndpointIndex, occurrence: Occurrence) {
    let slot = match calls.watch_slot(endpoint) {
        Some(slot) => Some(slot),
        // It waits for the first request (G-PER-01).
        None if is_persistent(occurrence.event) => calls.watch_slot_or_new(endpoint),
        None => None,
    };
    let Some(slot) = slot else { return };
    if occurrence.connection.is_none() {
        hold::begin(calls, now, slot, occurrence.event);
    }
    match calls.watches.get(slot).map(|watch| watch.state) {
        Some(State::Normal) => process(calls, now, slot, occurrence),
        Some(State::Lockstep | State::Notification) => quarantine(calls, now, slot, occurrence),
        None => {}
    }
    calls.watches.reschedule(slot);
}

fn is_persistent(event: EventId) -> bool {
    event.event().is_some_and(|traits| traits.persistent)
}

/// What the request in place says about an event: R, then B/PR, then that it is persistent (G-PER-01, G-PER-02, G-PER-05).
fn lookup<'a>(calls: &Calls, slot: WatchSlot, occurrence: &Occurrence, (first, second): (&'a mut Room, &'a mut Room)) -> Option<Found<'a>> {
    let watch = calls.watches.get(slot)?;
    let kind = calls.channel_kind(watch.endpoint);
    let blobs = &calls.endpoints.blobs;
    let requested = list::kept(blobs, watch.requested, first, ListKind::Requested);
    if let Some(found) = requested.and_then(|list| list::find(list, kind, occurrence)) {
        return Some(found);
    }
    let persistent = list::kept(blobs, watch.persistent, second, ListKind::Requested);
    if let Some(found) = persistent.and_then(|list| list::find(list, kind, occurrence)) {
        return Some(found);
    }
    is_persistent(occurrence.event).then_some(Found { actions: ActionSet::NOTIFY, embedded: None })
}

/// Whether DetectEvents has it (G-QUA-03).
fn is_detected(calls: &Calls, slot: WatchSlot, occurrence: &Occurrence) -> bool {
    let Some(watch) = calls.watches.get(slot) else { return false };
    let mut room = ROOM;
    let list = list::kept(&calls.endpoints.blobs, watch.detected, &mut room, ListKind::Detected);
    list.is_some_and(|list| list::find(list, calls.channel_kind(watch.endpoint), occurrence).is_some())
}

/// Whether any list has it.
fn is_asked(calls: &Calls, slot: WatchSlot, occurrence: &Occurrence) -> bool {
    let (mut first, mut second) = (ROOM, ROOM);
    lookup(calls, slot, occurrence, (&mut first, &mut second)).is_some() || is_detected(calls, slot, occurrence)
}

/// Puts an event that is to be detected in quarantine; it stops signals all the same (O-13).
fn quarantine(calls: &mut Calls, now: Time, slot: WatchSlot, occurrence: Occurrence) {
    let (mut first, mut second) = (ROOM, ROOM);
    let found = lookup(calls, slot, &occurrence, (&mut first, &mut second)).map(|found| found.actions);
    if found.is_none() && !is_detected(calls, slot, &occurrence) {
        return;
    }
    if found.is_some_and(|actions| !actions.has(ActionSet::KEEP_SIGNALS)) {
        signals::stop_time_outs(calls, now, slot);
    }
    let Some(watch) = calls.watches.get_mut(slot) else { return };
    // There may be room again: first for the event that says what was lost before.
    let mut fits = !watch.overflowed;
    if watch.overflowed
        && let Some(overflow) = base_event(b"qbo")
    {
        fits = calls.watches.push(slot, Which::Quarantined, overflow);
    }
    let kept = fits && calls.watches.push(slot, Which::Quarantined, occurrence);
    if let Some(watch) = calls.watches.get_mut(slot) {
        watch.overflowed = !kept;
    }
    if !kept {
        calls.counters.add(Counter::QuarantineLost);
    }
}

/// An event of package B without parameters.
fn base_event(name: &[u8]) -> Option<Occurrence> {
    let event = find_item(PackageId::B, name)?;
    Some(Occurrence { event, connection: None, parameters: EventText::NONE })
}

/// Does what the request in place says about an event (G-REQ-07).
fn process(calls: &mut Calls, now: Time, slot: WatchSlot, occurrence: Occurrence) {
    let (mut first, mut second) = (ROOM, ROOM);
    if let Some(found) = lookup(calls, slot, &occurrence, (&mut first, &mut second)) {
        act(calls, now, slot, occurrence, found);
    }
}

fn act(calls: &mut Calls, now: Time, slot: WatchSlot, occurrence: Occurrence, found: Found<'_>) {
    let Found { actions, embedded } = found;
    if calls.watches.get(slot).is_some_and(|watch| watch.state == State::Notification) {
        // What came of the same event has been triggered before.
        return quarantine(calls, now, slot, occurrence);
    }
    if !actions.has(ActionSet::KEEP_SIGNALS) {
        signals::stop_time_outs(calls, now, slot);
    }
    if actions.has(ActionSet::IGNORE) {
        return;
    }
    if actions.has(ActionSet::DIGIT_MAP) {
        match dial::add(calls, now, slot, occurrence.event) {
            true => observe(calls, now, slot, occurrence),
            // Complete, or never to be (G-DMP-06).
            false => trigger(calls, slot, occurrence),
        }
    } else {
        dial::key_pressed(calls, slot, occurrence.event);
    }
    if actions.has(ActionSet::ACCUMULATE) {
        observe(calls, now, slot, occurrence);
    }
    if actions.has(ActionSet::NOTIFY) {
        trigger(calls, slot, occurrence);
    }
    if let Some(embedded) = embedded {
        activate(calls, now, slot, embedded);
    }
}

/// Accumulates an event (G-QUA-20).
fn observe(calls: &mut Calls, now: Time, slot: WatchSlot, occurrence: Occurrence) {
    if calls.watches.push(slot, Which::Observed, occurrence) {
        return;
    }
    calls.counters.add(Counter::ObservedLost);
    let first = calls.watches.get_mut(slot).is_some_and(|watch| !std::mem::replace(&mut watch.observed_full, true));
    if let Some(full) = base_event(b"oef").filter(|_| first) {
        process(calls, now, slot, full);
    }
}

/// A notification is to be sent: everything accumulated, then this event.
fn trigger(calls: &mut Calls, slot: WatchSlot, occurrence: Occurrence) {
    if !calls.watches.push(slot, Which::Trigger, occurrence) {
        return;
    }
    if let Some(watch) = calls.watches.get_mut(slot) {
        watch.state = State::Notification;
        watch.unsent = true;
        watch.awaited = None;
        watch.digit_timer = Time::NEVER;
    }
    calls.watches.queue(slot);
}

/// An embedded request is activated: as a new one with the same X, N, Q and T, but what was accumulated stays (G-REQ-10, G-REQ-11,
/// G-QUA-17).
fn activate(calls: &mut Calls, now: Time, slot: WatchSlot, embedded: Embedded<'_>) {
    let Some(watch) = calls.watches.get(slot) else { return };
    let (endpoint, looping) = (watch.endpoint, watch.quarantine.looping);
    let Embedded { requested, signals, digit_map } = embedded;
    let lists = Lists { requested, signals, digit_map: digit_map.map(Some), looping, ..Lists::default() };
    let possible = Check::new(calls, endpoint, Carrier::None).request(&lists).and_then(|()| {
        let (blocks, replaced) = (blocks(calls.channel_kind(endpoint), &lists)?, replaced(calls, endpoint, &lists));
        calls.room_for(blocks, replaced)
    });
    match possible {
        Ok(()) => {
            make_room(calls, slot, &lists);
            install(calls, now, slot, &lists, None);
        }
        Err(refused) => {
            calls.counters.add(Counter::EmbeddedFailed);
            let Some(mut failure) = base_event(b"enf") else { return };
            let digit = |n: u16| b'0' + (n % 10) as u8;
            failure.parameters = EventText::new(&[digit(refused.code / 100), digit(refused.code / 10), digit(refused.code)]);
            // It should be asked for in the very request that failed (appendix B.1).
            let kind = calls.channel_kind(endpoint);
            match requested.and_then(|list| list::find(list, kind, &failure)).filter(|found| found.embedded.is_none()) {
                Some(found) => act(calls, now, slot, failure, found),
                None => process(calls, now, slot, failure),
            }
        }
    }
}

/// Processes what is in quarantine until something is notified or nothing is left (G-QUA-09, G-QUA-15).
fn drain(calls: &mut Calls, now: Time, slot: WatchSlot) {
    while calls.watches.get(slot).is_some_and(|watch| watch.state == State::Normal) {
        let next = calls.watches.pop(slot, Which::Quarantined).or_else(|| {
            let watch = calls.watches.get_mut(slot)?;
            if std::mem::take(&mut watch.overflowed) { base_event(b"qbo") } else { None }
        });
        let Some(occurrence) = next else { break };
        process(calls, now, slot, occurrence);
    }
    calls.watches.reschedule(slot);
}

/// The notification state ends (G-QUA-06..09).
fn leave(calls: &mut Calls, now: Time, slot: WatchSlot) {
    calls.watches.clear(slot, Which::Observed);
    calls.watches.clear(slot, Which::Trigger);
    let Some(watch) = calls.watches.get_mut(slot) else { return };
    watch.awaited = None;
    watch.observed_full = false;
    if watch.quarantine.looping {
        watch.state = State::Normal;
        dial::begin(calls, now, slot);
        drain(calls, now, slot);
    } else {
        watch.state = State::Lockstep;
    }
}

/// The Notify `id` got its final response, whatever it says.
pub fn answered(calls: &mut Calls, now: Time, endpoint: EndpointIndex, id: TransactionId) {
    let Some(slot) = calls.watch_slot(endpoint) else { return };
    let Some(watch) = calls.watches.get_mut(slot) else { return };
    watch.answered(id);
    // Another one may have waited for this response (G-QUA-14).
    let waits = watch.unsent || watch.outstanding().next().is_some();
    if watch.awaited == Some(id) {
        leave(calls, now, slot);
    } else if waits {
        calls.watches.queue(slot);
    }
}

/// The Notify `id` got no response in time: it is lost, and the notification state stays until contact is restored (G-QUA-19).
pub fn lost(calls: &mut Calls, endpoint: EndpointIndex, id: TransactionId) {
    let Some(watch) = calls.watch_slot(endpoint).and_then(|slot| calls.watches.get_mut(slot)) else { return };
    watch.ended(id);
    watch.cut_off = true;
    if watch.awaited == Some(id) {
        watch.awaited = None;
    }
}

/// The agent knows of the endpoint, after a restart or a disconnect: what waited for that is sent, and a notification state whose Notify
/// was lost ends (G-QUA-19, G-DIS-10).
pub fn in_contact(calls: &mut Calls, now: Time, endpoint: EndpointIndex) {
    let Some(slot) = calls.watch_slot(endpoint) else { return };
    let Some(watch) = calls.watches.get_mut(slot) else { return };
    watch.cut_off = false;
    let ends = watch.state == State::Notification && !watch.unsent && watch.awaited.is_none();
    if watch.unsent || watch.outstanding().next().is_some() {
        calls.watches.queue(slot);
    }
    if ends {
        leave(calls, now, slot);
    }
}

/// What is due for the endpoint at `now`.
pub fn expire(calls: &mut Calls, now: Time, endpoint: EndpointIndex) {
    let Some(slot) = calls.watch_slot(endpoint) else { return };
    signals::expire(calls, now, slot);
    if let Some(watch) = calls.watches.get_mut(slot).filter(|watch| watch.retry <= now) {
        watch.retry = Time::NEVER;
        calls.watches.queue(slot);
    }
    dial::expire(calls, now, slot);
    age::expire(calls, now, slot);
    hold::expire(calls, now, slot);
    calls.watches.reschedule(slot);
}

/// The card says that a signal ended by itself. False: none such is on.
pub fn signal_ended(
    calls: &mut Calls,
    now: Time,
    endpoint: EndpointIndex,
    connection: Option<ConnectionId>,
    signal: EventId,
    failed: bool,
) -> bool {
    calls.watch_slot(endpoint).is_some_and(|slot| signals::ended(calls, now, slot, connection, signal, failed))
}

/// `endpoint` has got a connection; what was asked for of all of them is measured there too (SIG-15).
pub fn connection_up(calls: &mut Calls, now: Time, endpoint: EndpointIndex, connection: ConnectionSlot) {
    if let Some(slot) = calls.watch_slot(endpoint) {
        measure(calls, now, slot, Some(connection));
        age::schedule(calls, slot);
        calls.watches.reschedule(slot);
    }
}

/// A connection of `endpoint` is gone (G-EVT-09, G-SIG-06).
pub fn connection_gone(calls: &mut Calls, now: Time, endpoint: EndpointIndex, connection: ConnectionId) {
    if let Some(slot) = calls.watch_slot(endpoint) {
        signals::connection_gone(calls, now, slot, connection);
    }
}

/// A connection of `endpoint` has got its remote description (O-17).
pub fn connection_described(calls: &mut Calls, now: Time, endpoint: EndpointIndex, connection: ConnectionSlot) {
    if let Some(slot) = calls.watch_slot(endpoint) {
        signals::connection_described(calls, now, slot, connection);
    }
}

/// Every signal of an endpoint that leaves service stops; its lists stay to be audited.
pub fn silence(calls: &mut Calls, now: Time, endpoint: EndpointIndex) {
    if let Some(slot) = calls.watch_slot(endpoint) {
        signals::stop_all(calls, now, slot);
    }
}

/// Back to the state after a restart (G-RST-12).
pub fn reset(calls: &mut Calls, now: Time, endpoint: EndpointIndex) {
    let Some(slot) = calls.watch_slot(endpoint) else { return };
    signals::stop_all(calls, now, slot);
    if let Some(watch) = calls.watches.get_mut(slot) {
        watch.sounds = [Sounds::NONE; 3];
    }
    listen(calls, now, slot);
    if let Some(watch) = calls.watches.get_mut(slot) {
        for blob in [&mut watch.requested, &mut watch.detected, &mut watch.persistent, &mut watch.digit_map] {
            calls.endpoints.blobs.free(blob);
        }
        if let Some(named) = watch.named.take() {
            calls.endpoints.entities.release(&mut calls.endpoints.blobs, named);
        }
    }
    calls.watches.give_back(slot);
    if let Some(state) = calls.endpoints.get_mut(endpoint) {
        state.watch = None;
    }
}
