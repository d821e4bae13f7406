//! Digits gathered by the digit map (action D), and the timer between them (RFC 3435 2.1.5, RFC 3660 2.2; G-DMP-06, G-DMP-09, G-DMP-11).
//!
//! A map is compiled when a digit comes, into memory that is used again: that takes microseconds, and no endpoint has to keep more than
//! the text.

use super::list::{self, ROOM};
use super::watch::{Occurrence, State, Watch, WatchSlot};
use crate::proto::base::Time;
use crate::proto::codec::mgcp::{ActionSet, DigitMap as Text, ListKind};
use crate::proto::mgcp::{self, Calls, Refused};
use crate::proto::package::digits::{self, DigitMap, DigitMapError, DigitTimers, Match, Matcher};
use crate::proto::package::{ChannelKind, EventId, PackageId, find_item, packages};
use crate::proto::trunk::EventText;

/// How far the digits of each watch have come, and a map to match with.
pub(super) struct Dials {
    map: DigitMap,
    matchers: Vec<Matcher>,
}

impl Dials {
    /// For so many watches.
    pub(super) fn new(watches: usize) -> Dials {
        Dials { map: DigitMap::default(), matchers: Vec::with_capacity(watches) }
    }
}

/// Whether a digit map can be followed on a channel of this kind (G-DMP-02).
pub(super) fn check(map: Text<'_>, kind: ChannelKind) -> Result<(), Refused> {
    match digits::check(&map) {
        Ok(false) => Ok(()),
        Ok(true) if packages(kind).contains(&PackageId::DM1) => Ok(()),
        Ok(true) | Err(DigitMapError::Letter | DigitMapError::Malformed) => Err(mgcp::DIGIT_MAP_LETTER),
        Err(DigitMapError::TooLong) => Err(mgcp::DIGIT_MAP_UNUSABLE),
    }
}

/// The dial string is empty again, and events are gathered anew: the timer runs at once when D/T is asked for by itself.
pub(super) fn begin(calls: &mut Calls, now: Time, slot: WatchSlot) {
    if let Some(matcher) = calls.watches.dials().matchers.get_mut(slot as usize) {
        matcher.reset();
    }
    let alone = timer_actions(calls, slot).is_some_and(|actions| !actions.has(ActionSet::DIGIT_MAP));
    let critical = calls.settings.timers.digit_critical;
    if let Some(watch) = calls.watches.get_mut(slot) {
        watch.digit_timer = if alone && watch.state == State::Normal { now + critical } else { Time::NEVER };
    }
}

/// The event of the timer.
fn timer() -> Option<Occurrence> {
    let event = find_item(PackageId::D, b"T")?;
    Some(Occurrence { event, connection: None, parameters: EventText::NONE })
}

/// What the requested events say about the timer.
#[inline]
fn timer_actions(calls: &Calls, slot: WatchSlot) -> Option<ActionSet> {
    let watch = calls.watches.get(slot).filter(|watch| !watch.requested.is_empty())?;
    listed_timer_actions(calls, watch)
}

/// Never a part of others: the room for a list would be made ready for who has none.
#[inline(never)]
fn listed_timer_actions(calls: &Calls, watch: &Watch) -> Option<ActionSet> {
    let mut room = ROOM;
    let requested = list::kept(&calls.endpoints.blobs, watch.requested, &mut room, ListKind::Requested)?;
    list::find(requested, calls.channel_kind(watch.endpoint), &timer()?).map(|found| found.actions)
}

/// An event with action D. True: more may come; false: the string is complete, or never will be.
pub(super) fn add(calls: &mut Calls, now: Time, slot: WatchSlot, event: EventId) -> bool {
    let Some(symbol) = event.symbol() else { return false };
    let timed = timer_actions(calls, slot).is_some_and(|actions| actions.has(ActionSet::DIGIT_MAP));
    let timers = &calls.settings.timers;
    let timers = DigitTimers { partial: timers.digit_partial, critical: timers.digit_critical };
    let Some(watch) = calls.watches.get(slot) else { return false };
    let mut room = ROOM;
    let text = list::text(&calls.endpoints.blobs, watch.digit_map, &mut room);
    let Dials { map, matchers } = calls.watches.dials();
    if map.recompile(text).is_err() {
        return false;
    }
    if matchers.len() <= slot as usize {
        matchers.resize_with(slot as usize + 1, Matcher::default);
    }
    let Some(matcher) = matchers.get_mut(slot as usize) else { return false };
    let partial = matcher.feed(map, symbol, now, timed.then_some(&timers)) == Match::Partial;
    let deadline = matcher.deadline();
    if let Some(watch) = calls.watches.get_mut(slot) {
        watch.digit_timer = if partial { deadline } else { Time::NEVER };
    }
    partial
}

/// A key with another action than D: a timer that runs for itself ends.
pub(super) fn key_pressed(calls: &mut Calls, slot: WatchSlot, event: EventId) {
    let alone = calls.watches.dials().matchers.get(slot as usize).is_none_or(|matcher| !matcher.has_begun());
    if event.symbol().is_some()
        && alone
        && let Some(watch) = calls.watches.get_mut(slot)
    {
        watch.digit_timer = Time::NEVER;
    }
}

/// The timer has run out: that is an event.
pub(super) fn expire(calls: &mut Calls, now: Time, slot: WatchSlot) {
    let Some(watch) = calls.watches.get_mut(slot).filter(|watch| watch.digit_timer <= now) else { return };
    watch.digit_timer = Time::NEVER;
    let endpoint = watch.endpoint;
    if let Some(timer) = timer() {
        super::occur(calls, now, endpoint, timer);
    }
}
