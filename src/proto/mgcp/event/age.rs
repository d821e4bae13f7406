//! G/ld: a connection has been up for long (RFC 3660 2.1; G.05).
//!
//! It is looked for only while a list of the endpoint has it, and happens once for each connection: at the moment when that has been up
//! for long enough, or when it is asked for after that. Whether the connection takes media in is no matter.

use super::list;
use super::watch::{Occurrence, WatchSlot};
use super::{is_asked, occur};
use crate::proto::base::Time;
use crate::proto::codec::mgcp::EventList;
use crate::proto::endpoint::ConnectionSlot;
use crate::proto::mgcp::Calls;
use crate::proto::package::{ChannelKind, EventId, PackageId, find_item};
use crate::proto::trunk::EventText;

fn long_duration() -> Option<EventId> {
    find_item(PackageId::G, b"ld")
}

/// Whether `list` has it.
pub(super) fn is_in(list: EventList<'_>, kind: ChannelKind) -> bool {
    long_duration().is_some_and(|event| list.iter().any(|one| list::meaning(&one, kind).is_ok_and(|meaning| meaning.has(event))))
}

/// The connection that is asked for, has not been told of and has been up longest; when it has been up for long.
fn oldest(calls: &Calls, slot: WatchSlot) -> Option<(Time, ConnectionSlot, Occurrence)> {
    let watch = calls.watches.get(slot)?;
    let event = long_duration()?;
    let young = calls.connections_of(watch.endpoint).filter(|(_, connection)| !connection.told_of_age);
    let asked = young.filter_map(|(place, connection)| {
        let occurrence = Occurrence { event, connection: Some(connection.id), parameters: EventText::NONE };
        let at = connection.created + calls.settings.timers.long_duration;
        is_asked(calls, slot, &occurrence).then_some((at, place, occurrence))
    });
    asked.min_by_key(|(at, ..)| *at)
}

/// The lists or the connections have changed.
pub(super) fn schedule(calls: &mut Calls, slot: WatchSlot) {
    let asked = calls.watches.get(slot).is_some_and(|watch| watch.ages.are_asked());
    let oldest = if asked { oldest(calls, slot) } else { None };
    let due = oldest.map_or(Time::NEVER, |(at, ..)| at);
    if let Some(watch) = calls.watches.get_mut(slot) {
        watch.ages.due = due;
    }
}

/// Connections that have been up for long now.
pub(super) fn expire(calls: &mut Calls, now: Time, slot: WatchSlot) {
    if calls.watches.get(slot).is_none_or(|watch| watch.ages.due > now) {
        return;
    }
    while let Some((_, place, occurrence)) = oldest(calls, slot).filter(|(at, ..)| *at <= now) {
        if let Some(connection) = calls.endpoints.connections.get_mut(place) {
            connection.told_of_age = true;
        }
        let Some(endpoint) = calls.watches.get(slot).map(|watch| watch.endpoint) else { return };
        occur(calls, now, endpoint, occurrence);
    }
    schedule(calls, slot);
}
