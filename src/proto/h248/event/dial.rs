//! Digits collected by a digit map until it is complete (RFC 3525 7.1.14.4 to 7.1.14.8).

use super::catalogue::{self, Seen};
use super::watch::{DIGITS_MAX, Dial, LIST_MAX, Observed, WatchSlot};
use super::{Gateway, Room, text};
use crate::proto::base::Time;
use crate::proto::codec::h248::{DigitMap, Events};
use crate::proto::endpoint::Blob;
use crate::proto::package::digits::{Matcher, Progress, Wait};
use crate::proto::trunk::EventText;
use std::time::Duration;

/// What a digit did to the map.
pub(super) struct Completed {
    /// The completion event.
    pub event: Observed,
    /// The digit is no part of it, and comes behind it (DM-10).
    pub before: bool,
}

/// Before the first digit, when neither the map nor the configuration says: not at all.
const START: u8 = 0;

impl Gateway {
    /// The first event of a list that has a map activates it (DM-13, DM-16).
    pub(super) fn begin_dial(&mut self, now: Time, slot: WatchSlot, events: &Events<'_>) {
        let mut specs = events.iter().flatten();
        let Some(spec) = specs.find(|spec| spec.digit_map.is_some()) else { return };
        let Some(termination) = self.events.get(slot).map(|watch| watch.termination) else { return };
        let mut room: Room = [0; LIST_MAX];
        let copied = spec.digit_map.and_then(|map| {
            self.with_map(termination, &map, |map| {
                let source = map.source();
                room.get_mut(..source.len())?.copy_from_slice(source);
                Some((source.len(), map.start, (map.short, map.long)))
            })?
        });
        let Some((length, start, timers)) = copied else { return };
        let Some(map) = room.get(..length).and_then(|text| self.calls.endpoints.blobs.store(text)) else { return };
        let progress = self.match_digit(slot, map, None);
        let deadline = match start.unwrap_or(START) {
            0 => Time::NEVER,
            seconds => now + Duration::from_secs(seconds.into()),
        };
        if let Some(watch) = self.events.get_mut(slot) {
            watch.dial = Dial { map, timers, digits: EventText::NONE, progress, deadline, keep: spec.keep_active };
        }
    }

    /// Matches the next digit, or begins; `None`: the map does not go on with it.
    fn match_digit(&mut self, slot: WatchSlot, map: Blob, key: Option<u8>) -> Option<Progress> {
        let mut room: Room = [0; LIST_MAX];
        let source = text(&self.calls.endpoints.blobs, map, &mut room);
        let watches = &mut self.events;
        watches.map.recompile_h248(&DigitMap::kept(source).ok()?);
        if watches.matchers.len() <= slot as usize {
            watches.matchers.resize_with(slot as usize + 1, Matcher::default);
        }
        let matcher = watches.matchers.get_mut(slot as usize)?;
        match key {
            None => Some(matcher.start(&watches.map)),
            Some(key) => matcher.advance(&watches.map, key),
        }
    }

    /// A digit, while a map collects: it is not told by itself (DM-14). What it completes.
    pub(super) fn dialled(&mut self, now: Time, slot: WatchSlot, key: u8) -> Option<Completed> {
        let dial = self.events.get(slot).map(|watch| watch.dial).filter(|dial| !dial.map.is_none())?;
        if !dial.keep {
            self.stop_by_event(now, slot);
        }
        let Some(progress) = self.match_digit(slot, dial.map, Some(key)) else {
            let method = if dial.progress.is_some_and(|progress| progress.complete) { "FM" } else { "PM" };
            return Some(Completed { event: self.complete(now, slot, method)?, before: true });
        };
        // A map is written with E for the star and F for the hash (DM-18).
        let letter = match key {
            b'*' => b'E',
            b'#' => b'F',
            key => key,
        };
        let wait = self.wait(&dial, &progress);
        let watch = self.events.get_mut(slot)?;
        watch.dial.digits.push(&[letter]);
        watch.dial.progress = Some(progress);
        watch.dial.deadline = now + wait;
        let full = watch.dial.digits.as_bytes().len() >= DIGITS_MAX;
        match progress.complete {
            true if !progress.open => Some(Completed { event: self.complete(now, slot, "UM")?, before: false }),
            complete if full => Some(Completed { event: self.complete(now, slot, if complete { "FM" } else { "PM" })?, before: false }),
            _ => None,
        }
    }

    /// How long the next digit is waited for (DM-05, DM-08).
    fn wait(&self, dial: &Dial, progress: &Progress) -> Duration {
        let timers = &self.calls.settings.timers;
        let seconds = |given: Option<u8>| given.map(|seconds| Duration::from_secs(seconds.into()));
        let short = seconds(dial.timers.0).unwrap_or(timers.digit_critical);
        let long = seconds(dial.timers.1).unwrap_or(timers.digit_partial);
        match progress.wait {
            Wait::Short => short,
            Wait::Long => long,
            Wait::ByState if progress.complete => short,
            Wait::ByState => long,
        }
    }

    /// The timer has run out (DM-11).
    pub(super) fn dial_expires(&mut self, now: Time, slot: WatchSlot) {
        let Some(dial) = self.events.get(slot).map(|watch| watch.dial).filter(|dial| dial.deadline <= now) else { return };
        let method = if dial.progress.is_some_and(|progress| progress.complete) { "FM" } else { "PM" };
        if let Some(event) = self.complete(now, slot, method) {
            self.events.pending.push_back((slot, event));
        }
    }

    /// The collection is over until there are new events to detect (DM-15).
    fn complete(&mut self, now: Time, slot: WatchSlot, method: &str) -> Option<Observed> {
        let mut dial = std::mem::replace(&mut self.events.get_mut(slot)?.dial, Dial::NONE);
        self.calls.endpoints.blobs.free(&mut dial.map);
        let mut parameters = dialled(&dial);
        parameters.push(b",Meth=");
        parameters.push(method.as_bytes());
        Some(Observed { event: catalogue::seen(Seen::DigitMap)?, parameters, at: now, request: 0 })
    }
}

/// `ds="12"`
pub(super) fn dialled(dial: &Dial) -> EventText {
    let mut text = EventText::new(b"ds=\"");
    text.push(dial.digits.as_bytes());
    text.push(b"\"");
    text
}
