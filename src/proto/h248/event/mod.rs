//! Events, signals and digit maps of a gateway's terminations, and the Notify commands that come of them (RFC 3525 7.1.9 to 7.1.11,
//! 7.1.14, 7.1.17, 7.2.7).
//!
//! It shares with MGCP's machine of events the catalogue of what cards play and detect, the automaton of digit maps, the queues, and the
//! lists kept as text; what H.248 wants of them is its own: an Events descriptor stays active, every recognised event is notified, lockstep
//! holds only what EventBuffer lists, digit maps match the longest string, and ends of signals are events.
//!
//! To drive it: `ask` for each command with its descriptors, which `check` has found possible; `occur` for whatever happens; `expire`
//! and `notify` as time passes; `forget` when a termination leaves its context.
//!
//! Invariants: what is held or to be notified was asked for; one Notify of a termination is out at a time (NTF-04), but for those about
//! overload; an event that is asked for is notified, held, or counted as lost.

pub(super) mod catalogue;
mod describe;
mod dial;
mod maps;
mod notify;
mod request;
mod signals;
mod watch;

pub(super) use catalogue::{PACKAGES, packages};
pub(super) use describe::write_capability;
pub(super) use request::Wanted;
pub use watch::Watches;

use super::table::Termination;
use super::{Failure, Gateway};
use crate::proto::base::{Counter, EndpointIndex, Time};
use crate::proto::codec::h248::{Embedded, Events};
use crate::proto::endpoint::{Blob, Blobs, ConnectionSlot};
use crate::proto::package::EventId;
use crate::proto::trunk::{EventText, Sounds};
use catalogue::{EventRef, Seen};
use watch::{LIST_MAX, Observed, WatchSlot, Which};

/// What a list says about an event.
#[derive(Clone, Copy, Default)]
struct Found {
    keep: bool,
    embeds: bool,
}

/// Room for one list.
type Room = [u8; LIST_MAX];

/// A kept text, copied into `room`.
fn text<'a>(blobs: &Blobs, blob: Blob, room: &'a mut Room) -> &'a [u8] {
    let mut length = 0;
    for piece in blobs.pieces(blob) {
        if let Some(place) = room.get_mut(length..length + piece.len()) {
            place.copy_from_slice(piece);
            length += piece.len();
        }
    }
    room.get(..length).unwrap_or_default()
}

impl Gateway {
    /// The watch of a termination.
    fn watch_slot(&self, termination: Termination) -> Option<WatchSlot> {
        match termination {
            Termination::Root => self.events.root,
            _ => self.tables.row(termination)?.watch,
        }
    }

    fn watch_slot_or_new(&mut self, termination: Termination) -> Option<WatchSlot> {
        if let Some(slot) = self.watch_slot(termination) {
            return Some(slot);
        }
        let slot = self.events.take(termination)?;
        match termination {
            Termination::Root => self.events.root = Some(slot),
            _ => self.tables.row_mut(termination)?.watch = Some(slot),
        }
        Some(slot)
    }

    /// A termination leaves its context: it detects and plays nothing any more, and its digit maps are gone (SUB-04).
    pub(super) fn forget(&mut self, now: Time, termination: Termination) {
        self.forget_maps(termination);
        let Some(slot) = self.watch_slot(termination) else { return };
        self.silence(now, slot);
        if let Termination::Physical(endpoint) = termination {
            self.calls.card.listen_for(now, endpoint, Sounds::NONE);
        }
        if let Some(watch) = self.events.get_mut(slot) {
            let mut blobs = [watch.events, watch.buffer, watch.dial.map];
            blobs.iter_mut().for_each(|blob| self.calls.endpoints.blobs.free(blob));
        }
        self.events.give_back(slot);
        match termination {
            Termination::Root => self.events.root = None,
            _ => {
                if let Some(row) = self.tables.row_mut(termination) {
                    row.watch = None;
                }
            }
        }
    }

    /// The card has seen something.
    pub(super) fn card_event(
        &mut self,
        now: Time,
        (endpoint, connection): (EndpointIndex, Option<ConnectionSlot>),
        event: EventId,
        parameters: EventText,
    ) {
        let termination = connection.map_or(Termination::Physical(endpoint), Termination::Ephemeral);
        if connection.is_none() && self.continuity_heard(now, endpoint, event) {
            return;
        }
        let Some(event) = catalogue::card_event(event) else { return };
        let mut told = EventText::NONE;
        match event.name() {
            name if name.is("rtp", "pltrans") && !parameters.is_empty() => {
                told.push(b"rtppltype=\"");
                told.push(parameters.as_bytes());
                told.push(b"\"");
            }
            name if name.is("nt", "netfail") => told.push(b"cs=\"nothing received\""),
            _ => {}
        }
        self.occur(now, termination, event, told);
    }

    /// Something happened that may have been asked for.
    pub(super) fn happened(&mut self, now: Time, termination: Termination, how: Seen, parameters: &[u8]) {
        if let Some(event) = catalogue::seen(how) {
            self.occur(now, termination, event, EventText::new(parameters));
        }
    }

    fn occur(&mut self, now: Time, termination: Termination, event: EventRef, parameters: EventText) {
        let Some(slot) = self.watch_slot(termination) else { return };
        self.events.pending.push_back((slot, Observed { event, parameters, at: now, request: 0 }));
        self.settle(now);
    }

    /// Looks at everything that happened, and at what comes of it in turn: an end of a signal is an event. Bounded: signals end once.
    fn settle(&mut self, now: Time) {
        if self.events.shape.is_none() {
            // Called from within: whoever has the lists goes on with it.
            return;
        }
        while let Some((slot, observed)) = self.events.pending.pop_front() {
            let paused = self.events.get(slot).is_some_and(|watch| watch.paused);
            if paused {
                self.hold(slot, observed)
            } else {
                self.detect(now, slot, observed)
            }
            self.events.reschedule(slot);
        }
    }

    /// Looks `event` up in a kept list, and lets `then` see what is embedded.
    fn find(&mut self, list: Blob, event: EventRef, then: impl FnOnce(&mut Gateway, Option<Embedded<'_>>)) -> Option<Found> {
        if list.is_empty() {
            return None;
        }
        let mut room: Room = [0; LIST_MAX];
        let text = text(&self.calls.endpoints.blobs, list, &mut room);
        let mut shape = self.events.shape.take()?;
        let spec = Events::kept(text, &mut shape).ok().and_then(|list| {
            let mut specs = list.iter().flatten();
            specs.find(|spec| event.is_meant(&spec.name))
        });
        let found = spec.as_ref().map(|spec| Found { keep: spec.keep_active, embeds: spec.embedded.is_some() });
        then(self, spec.and_then(|spec| spec.embedded));
        self.events.shape = Some(shape);
        found
    }

    /// LockStep: an event is held when EventBuffer has it, else lost (EB-01).
    fn hold(&mut self, slot: WatchSlot, observed: Observed) {
        let Some(watch) = self.events.get(slot) else { return };
        if self.find(watch.buffer, observed.event, |_, _| {}).is_none() {
            return;
        }
        let kept = self.events.push(slot, Which::Held, observed);
        if let (false, Some(watch)) = (kept, self.events.get_mut(slot)) {
            watch.overflowed = true;
            self.counters.add(Counter::QuarantineLost);
        }
    }

    /// Does what the Events descriptor says about an event (EVT-03 to EVT-06).
    fn detect(&mut self, now: Time, slot: WatchSlot, observed: Observed) {
        let completed = observed.event.key().and_then(|key| self.dialled(now, slot, key));
        let (first, second) = match completed {
            Some(completed) if completed.before => (completed.event, Some(observed)),
            Some(completed) => (observed, Some(completed.event)),
            None => (observed, None),
        };
        self.recognise(now, slot, first);
        let Some(second) = second else { return };
        if self.events.get(slot).is_some_and(|watch| watch.paused) { self.hold(slot, second) } else { self.recognise(now, slot, second) }
    }

    fn recognise(&mut self, now: Time, slot: WatchSlot, observed: Observed) {
        let Some(watch) = self.events.get(slot) else { return };
        let (list, request, termination) = (watch.events, watch.request, watch.termination);
        // The list may be replaced by what it embeds, so that is kept for last.
        let Some(found) = self.find(list, observed.event, |_, _| {}) else { return };
        if !found.keep {
            self.stop_by_event(now, slot);
        }
        if self.events.push(slot, Which::Observed, Observed { request, ..observed }) {
            self.events.queue(slot);
        } else {
            self.counters.add(Counter::ObservedLost);
        }
        if let Some(watch) = self.events.get_mut(slot) {
            watch.paused = self.tables.row(termination).is_some_and(|row| row.lockstep);
        }
        let mut renewed = false;
        if found.embeds {
            self.find(list, observed.event, |gateway, embedded| {
                renewed = embedded.is_some_and(|embedded| gateway.activate(now, slot, &embedded));
            });
        }
        if renewed {
            self.replay(now, slot);
        }
    }

    /// New Events: what is held is looked at again, until one is recognised (EB-02, EB-03).
    fn replay(&mut self, now: Time, slot: WatchSlot) {
        if let Some(watch) = self.events.get_mut(slot) {
            watch.paused = false;
        }
        while self.events.get(slot).is_some_and(|watch| !watch.paused)
            && let Some(observed) = self.events.pop(slot, Which::Held)
        {
            self.detect(now, slot, observed);
        }
        self.events.reschedule(slot);
    }

    /// EventBufferControl is off: nothing is held (EB-04).
    pub(super) fn end_lockstep(&mut self, termination: Termination) {
        let Some(slot) = self.watch_slot(termination) else { return };
        self.events.clear(slot, Which::Held);
        if let Some(watch) = self.events.get_mut(slot) {
            (watch.paused, watch.overflowed) = (false, false);
        }
    }

    /// Timers of signals and digit maps that have run out.
    pub(super) fn expire_events(&mut self, now: Time) {
        let mut budget = super::DUE as u32;
        while let Some(slot) = self.events.expired(now, &mut budget) {
            self.signals_expire(now, slot);
            self.dial_expires(now, slot);
            self.events.reschedule(slot);
        }
        self.settle(now);
    }
}

/// A list that does not fit, or has what cannot be kept.
const LIST_TOO_LONG: Failure = Failure { code: 510, text: "list of events is too long" };
