//! Keys that are held: D/L two seconds after one went down, D/DD when it has lasted as long as was asked, or with its length when it goes up
//! (RFC 3660 2.2; D.17, D.19).
//!
//! The key that is down is remembered whoever asks, for a request may come while it is: of keys on the circuit, not of telephone events.

use super::list::{self, Meaning, ROOM};
use super::watch::{Occurrence, WatchSlot};
use super::{is_asked, occur};
use crate::proto::base::{EndpointIndex, Time};
use crate::proto::codec::mgcp::{EventList, ListKind};
use crate::proto::mgcp::Calls;
use crate::proto::package::{ChannelKind, EventId, EventParameters, PackageId, find_item};
use crate::proto::trunk::EventText;
use std::time::Duration;

/// When a key is a long one.
const LONG: Duration = Duration::from_secs(2);
/// The longest length that is told, in ms.
const LENGTH_MAX: u64 = 60_000;
/// Lengths are told in steps of so many ms.
const GRAIN: u64 = 10;

/// A key that is down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    key: u8,
    since: Time,
    /// Whether D/L and D/DD have been told of it.
    told: (bool, bool),
    /// When one of them is due.
    pub due: Time,
}

/// The key goes down.
pub(super) fn begin(calls: &mut Calls, now: Time, slot: WatchSlot, event: EventId) {
    let Some(key) = event.symbol().filter(|&key| event.package() == PackageId::D && key != b'T') else { return };
    if let Some(watch) = calls.watches.get_mut(slot) {
        watch.held = Some(Held { key, since: now, told: (false, false), due: Time::NEVER });
    }
    schedule(calls, slot);
}

/// The lists or the key have changed.
pub(super) fn schedule(calls: &mut Calls, slot: WatchSlot) {
    let Some(held) = calls.watches.get(slot).and_then(|watch| watch.held) else { return };
    let long = !held.told.0 && long().is_some_and(|event| is_asked(calls, slot, &event));
    let length = duration(calls, slot, held.key).flatten().filter(|_| !held.told.1);
    let due = length.map_or(Time::NEVER, |ms| held.since + Duration::from_millis(ms.into()));
    if let Some(held) = calls.watches.get_mut(slot).and_then(|watch| watch.held.as_mut()) {
        held.due = if long { due.min(held.since + LONG) } else { due };
    }
}

/// It has been down for so long now.
pub(super) fn expire(calls: &mut Calls, now: Time, slot: WatchSlot) {
    let Some(watch) = calls.watches.get_mut(slot) else { return };
    let endpoint = watch.endpoint;
    let Some(held) = watch.held.as_mut().filter(|held| held.due <= now) else { return };
    let (key, lasted) = (held.key, now.since(held.since));
    if lasted >= LONG
        && !std::mem::replace(&mut held.told.0, true)
        && let Some(long) = long()
    {
        occur(calls, now, endpoint, long);
    }
    if let Some(Some(ms)) = duration(calls, slot, key).filter(|ms| ms.is_some_and(|ms| lasted >= Duration::from_millis(ms.into())))
        && let Some(held) = calls.watches.get_mut(slot).and_then(|watch| watch.held.as_mut())
        && !std::mem::replace(&mut held.told.1, true)
    {
        told(calls, now, endpoint, key, ms.into());
    }
    schedule(calls, slot);
}

/// The key goes up: who asked for no length is told how long it was down.
pub fn end(calls: &mut Calls, now: Time, endpoint: EndpointIndex, key: u8) {
    let Some(slot) = calls.watch_slot(endpoint) else { return };
    let held = calls.watches.get_mut(slot).and_then(|watch| watch.held.take_if(|held| held.key == key));
    let Some(held) = held else { return };
    if !held.told.1 && duration(calls, slot, key) == Some(None) {
        let ms = (now.since(held.since).as_millis() as u64 + GRAIN / 2) / GRAIN * GRAIN;
        told(calls, now, endpoint, key, ms.min(LENGTH_MAX));
    }
    calls.watches.reschedule(slot);
}

fn long() -> Option<Occurrence> {
    Some(Occurrence { event: find_item(PackageId::D, b"L")?, connection: None, parameters: EventText::NONE })
}

fn told(calls: &mut Calls, now: Time, endpoint: EndpointIndex, key: u8, ms: u64) {
    let Some(event) = find_item(PackageId::D, b"DD") else { return };
    let mut parameters = EventText::new(b"dg=");
    parameters.push(&[key]);
    parameters.push(b",to=");
    parameters.push(ms.to_string().as_bytes());
    occur(calls, now, endpoint, Occurrence { event, connection: None, parameters });
}

/// What the first list that has D/DD asks of this key: the length at which it is to be told, or none for its whole length.
fn duration(calls: &Calls, slot: WatchSlot, key: u8) -> Option<Option<u32>> {
    let watch = calls.watches.get(slot)?;
    let (kind, blobs) = (calls.channel_kind(watch.endpoint), &calls.endpoints.blobs);
    let of = |blob, list_kind| {
        let mut room = ROOM;
        asked(list::kept(blobs, blob, &mut room, list_kind)?, kind, key)
    };
    of(watch.requested, ListKind::Requested)
        .or_else(|| of(watch.persistent, ListKind::Requested))
        .or_else(|| of(watch.detected, ListKind::Detected))
}

fn asked(list: EventList<'_>, kind: ChannelKind, key: u8) -> Option<Option<u32>> {
    let event = find_item(PackageId::D, b"DD")?;
    list.iter().filter(|one| one.connection.is_none()).find_map(|one| match list::meaning(&one, kind).ok()? {
        Meaning::One(meant) if meant == event => match event.event_parameters(one.parameters).ok()? {
            EventParameters::ToneDuration { key: wanted, ms, .. } => is_key(wanted, key).then_some(ms),
            _ => None,
        },
        meaning => (!matches!(meaning, Meaning::One(_)) && meaning.has(event)).then_some(None),
    })
}

/// Whether `key` is one that is asked for; nothing asks for all, `X` for the ten digits.
pub(super) fn is_key(wanted: Option<u8>, key: u8) -> bool {
    wanted.is_none_or(|wanted| if wanted.eq_ignore_ascii_case(&b'X') { key.is_ascii_digit() } else { wanted.eq_ignore_ascii_case(&key) })
}
