//! Signals: begun and ended by descriptors, by time, by events, by the card (RFC 3525 7.1.11), and the continuity test (E.10).

use super::catalogue::{self, Seen, SignalRef};
use super::watch::{Ending, Observed, Playing, SIGNALS_MAX, WatchSlot};
use super::{Gateway, Termination};
use crate::proto::base::{Counter, EndpointIndex, Time};
use crate::proto::codec::h248::{Completion, Signal, SignalPart, SignalType, Signals};
use crate::proto::package::{EventId, PackageId, SignalClass};
use crate::proto::trunk::EventText;
use std::time::Duration;

/// Why a signal is not played any more (E.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    /// Its time was over.
    TimeOut,
    /// An event stopped it.
    ByEvent,
    /// Another Signals descriptor stopped it.
    BySignals,
    /// It could not be played, or not to its end.
    Other,
}

impl Ended {
    /// `Meth` of `g/sc`.
    fn method(self) -> &'static str {
        match self {
            Ended::TimeOut => "TO",
            Ended::ByEvent => "EV",
            Ended::BySignals => "SD",
            Ended::Other => "NC",
        }
    }

    /// Whether it is told (SIG-11): without NotifyCompletion only what nobody foresaw is.
    fn is_told(self, told: Option<Completion>) -> bool {
        match (self, told) {
            (Ended::Other, None) => true,
            (_, None) => false,
            (Ended::TimeOut, Some(told)) => told.time_out,
            (Ended::ByEvent, Some(told)) => told.by_event,
            (Ended::BySignals, Some(told)) => told.by_signals,
            (Ended::Other, Some(told)) => told.other,
        }
    }
}

impl Gateway {
    /// A Signals descriptor: what is not in it stops, what is in it begins, or goes on when it says so (SIG-01, SIG-02).
    pub(super) fn play(&mut self, now: Time, slot: WatchSlot, signals: Signals<'_>) {
        let Some(watch) = self.events.get(slot) else { return };
        let (termination, before) = (watch.termination, watch.signals);
        let find = |signal: &Signal<'_>| catalogue::find_signal(&signal.name, termination).ok();
        for (n, playing) in before.iter().enumerate() {
            let Some(playing) = playing else { continue };
            let goes_on = signals.parts().flatten().any(|part| match part {
                SignalPart::Signal(signal) => {
                    let same = playing.list.is_none() && signal.stream == playing.stream && find(&signal) == Some(playing.signal);
                    same && signal.keep_active
                }
                // Whatever it says now (SIG-08).
                SignalPart::List { id, .. } => playing.list == Some(id),
            });
            if !goes_on {
                self.end(now, slot, n, Ended::BySignals);
            }
        }
        for part in signals.parts().flatten() {
            match part {
                // Kept active and not playing: nothing to keep (SIG-02).
                SignalPart::Signal(signal) => {
                    if let Some(found) = find(&signal).filter(|_| !signal.keep_active)
                        && let Some(n) = self.keep(slot, &playing(found, &signal, None))
                    {
                        self.begin(now, slot, n);
                    }
                }
                SignalPart::List { id, signals } => self.play_list(now, slot, id, signals.filter_map(Result::ok)),
            }
        }
        self.events.reschedule(slot);
    }

    /// A list of signals, unless one with its number is played (SIG-08).
    fn play_list<'a>(&mut self, now: Time, slot: WatchSlot, id: u16, members: impl Iterator<Item = SignalPart<'a>>) {
        let Some(watch) = self.events.get(slot) else { return };
        if watch.signals.iter().flatten().any(|playing| playing.list == Some(id)) {
            return;
        }
        let termination = watch.termination;
        for member in members {
            if let SignalPart::Signal(signal) = member
                && let Ok(found) = catalogue::find_signal(&signal.name, termination)
            {
                self.keep(slot, &playing(found, &signal, Some(id)));
            }
        }
        self.play_next(now, slot, id);
    }

    /// The next member of a list begins; members keep the order of their places.
    fn play_next(&mut self, now: Time, slot: WatchSlot, id: u16) {
        let waits = |playing: &Option<Playing>| playing.is_some_and(|playing| playing.list == Some(id) && playing.ending == Ending::Waits);
        let next = self.events.get(slot).and_then(|watch| watch.signals.iter().position(waits));
        if let Some(n) = next {
            self.begin(now, slot, n);
        }
    }

    /// Notes a signal that is to be played: its place.
    fn keep(&mut self, slot: WatchSlot, playing: &Playing) -> Option<usize> {
        let watch = self.events.get_mut(slot)?;
        // Behind all of its list, which is played in the order of the places.
        let last = watch.signals.iter().rposition(|place| place.is_some_and(|other| playing.list.is_some() && other.list == playing.list));
        let from = last.map_or(0, |last| last + 1);
        let n = (from..SIGNALS_MAX).find(|n| watch.signals.get(*n).is_some_and(Option::is_none))?;
        *watch.signals.get_mut(n)? = Some(*playing);
        Some(n)
    }

    /// Signal `n` is played from now on.
    fn begin(&mut self, now: Time, slot: WatchSlot, n: usize) {
        let Some(watch) = self.events.get_mut(slot) else { return };
        let (Termination::Physical(endpoint), Some(Some(playing))) = (watch.termination, watch.signals.get_mut(n)) else { return };
        playing.ending = match playing.kind {
            SignalType::OnOff => Ending::Order,
            SignalType::TimeOut if playing.length.is_zero() => Ending::Order,
            SignalType::TimeOut => Ending::TimeOut(now + playing.length),
            SignalType::Brief => Ending::Brief(now + playing.length),
        };
        let playing = *playing;
        if self.calls.card.start_signal(now, endpoint, None, playing.signal.plays, b"").is_ok() {
            return;
        }
        if let Some(place) = watch.signals.get_mut(n) {
            *place = None;
        }
        self.counters.add(Counter::CardRefused);
        if playing.signal.tests_continuity() {
            self.test_ended(now, slot, false);
        } else {
            self.completed(now, slot, &playing, Ended::Other);
        }
        if let Some(list) = playing.list {
            self.play_next(now, slot, list);
        }
    }

    /// Signal `n` is not played any more. Behind one that has ended by itself the next of its list begins.
    fn end(&mut self, now: Time, slot: WatchSlot, n: usize, why: Ended) {
        let Some(watch) = self.events.get_mut(slot) else { return };
        let Some(playing) = watch.signals.get_mut(n).and_then(Option::take) else { return };
        if playing.ending == Ending::Waits {
            return;
        }
        let termination = watch.termination;
        // A brief one is played to its end by the card.
        if let (Termination::Physical(endpoint), Ending::Order | Ending::TimeOut(_)) = (termination, playing.ending) {
            self.calls.card.stop_signal(now, endpoint, None, playing.signal.plays);
        }
        match (playing.signal.tests_continuity(), why) {
            // Whatever else ends it, the test has failed (CT-02); but for the controller's own doing.
            (true, Ended::TimeOut | Ended::Other) => self.test_ended(now, slot, false),
            _ => self.completed(now, slot, &playing, why),
        }
        if let (Some(list), Ended::TimeOut) = (playing.list, why) {
            self.play_next(now, slot, list);
        }
    }

    /// `g/sc`, when the command wants to know (SIG-11).
    fn completed(&mut self, now: Time, slot: WatchSlot, playing: &Playing, why: Ended) {
        if !why.is_told(playing.told) {
            return;
        }
        let name = playing.signal.name();
        let mut parameters = EventText::new(b"SigID=");
        [name.package, b"/", name.item, b",Meth=", why.method().as_bytes()].into_iter().for_each(|text| parameters.push(text));
        self.note(now, slot, Seen::Completion, parameters);
    }

    /// `ct/cmp` (CT-01).
    fn test_ended(&mut self, now: Time, slot: WatchSlot, success: bool) {
        self.note(now, slot, Seen::Continuity, EventText::new(if success { b"res=success" } else { b"res=failure" }));
    }

    fn note(&mut self, now: Time, slot: WatchSlot, how: Seen, parameters: EventText) {
        if let Some(event) = catalogue::seen(how) {
            self.events.pending.push_back((slot, Observed { event, parameters, at: now, request: 0 }));
        }
    }

    /// A recognised event stops what is played (EVT-05, SIG-10).
    pub(super) fn stop_by_event(&mut self, now: Time, slot: WatchSlot) {
        (0..SIGNALS_MAX).for_each(|n| self.end(now, slot, n, Ended::ByEvent));
    }

    /// Everything stops, and nobody is told.
    pub(super) fn silence(&mut self, now: Time, slot: WatchSlot) {
        for n in 0..SIGNALS_MAX {
            if let Some(playing) = self.events.get_mut(slot).and_then(|watch| watch.signals.get_mut(n)?.as_mut()) {
                playing.told = Some(Completion::default());
                self.end(now, slot, n, Ended::BySignals);
            }
        }
    }

    /// A termination went out of service: what it plays has ended.
    pub(in crate::proto::h248) fn stop_signals(&mut self, now: Time, termination: Termination) {
        if let Some(slot) = self.watch_slot(termination) {
            (0..SIGNALS_MAX).for_each(|n| self.end(now, slot, n, Ended::Other));
            self.events.reschedule(slot);
            self.settle(now);
        }
    }

    /// Signals whose time is over.
    pub(super) fn signals_expire(&mut self, now: Time, slot: WatchSlot) {
        for n in 0..SIGNALS_MAX {
            let ending = self.events.get(slot).and_then(|watch| *watch.signals.get(n)?).map(|playing| playing.ending);
            if let Some(Ending::TimeOut(at) | Ending::Brief(at)) = ending
                && at <= now
            {
                self.end(now, slot, n, Ended::TimeOut);
            }
        }
    }

    /// The card says that a signal has ended by itself.
    pub(in crate::proto::h248) fn signal_ended(&mut self, now: Time, endpoint: EndpointIndex, signal: EventId, failed: bool) {
        let Some(slot) = self.watch_slot(Termination::Physical(endpoint)) else { return };
        let place = self
            .events
            .get(slot)
            .and_then(|watch| watch.signals.iter().position(|playing| playing.is_some_and(|playing| playing.is_played(signal))));
        let Some(n) = place else { return };
        self.end(now, slot, n, if failed { Ended::Other } else { Ended::TimeOut });
        self.events.reschedule(slot);
        self.settle(now);
    }

    /// A check tone came back; whether a test waits for it (CT-02).
    pub(super) fn continuity_heard(&mut self, now: Time, endpoint: EndpointIndex, event: EventId) -> bool {
        if event.package() != PackageId::T || !matches!(event.item().name, "co1" | "co2") {
            return false;
        }
        let Some(slot) = self.watch_slot(Termination::Physical(endpoint)) else { return false };
        let Some(watch) = self.events.get_mut(slot) else { return false };
        let mut places = watch.signals.iter_mut();
        let tests = |place: &Playing| place.signal.tests_continuity() && place.ending != Ending::Waits;
        let Some(place) = places.find(|place| place.as_ref().is_some_and(tests)) else { return false };
        let list = place.take().and_then(|playing| playing.list);
        self.test_ended(now, slot, true);
        if let Some(list) = list {
            self.play_next(now, slot, list);
        }
        self.events.reschedule(slot);
        self.settle(now);
        true
    }
}

/// What is to be played, and how it ends: as the command says, else as its package does (SIG-03). Its turn is to come.
fn playing(found: SignalRef, signal: &Signal<'_>, list: Option<u16>) -> Playing {
    let given = signal.duration.map(|hundredths| Duration::from_millis(10) * u32::from(hundredths));
    let ms = |ms: u32| Duration::from_millis(ms.into());
    let (class, default) = match found.class() {
        SignalClass::OnOff => (SignalType::OnOff, None),
        SignalClass::TimeOut { default_ms, .. } => (SignalType::TimeOut, default_ms.map(ms)),
        SignalClass::Brief { ms: length } => (SignalType::Brief, Some(ms(length))),
    };
    let kind = signal.kind.unwrap_or(class);
    let length = match (kind, given.or(default)) {
        (SignalType::Brief, length) => length.unwrap_or(BRIEF),
        (_, length) => length.unwrap_or(Duration::ZERO),
    };
    let Signal { stream, duration, completion: told, .. } = *signal;
    Playing { signal: found, stream, list, kind, length, ending: Ending::Waits, duration, told }
}

/// A brief signal that has no length of its own.
const BRIEF: Duration = Duration::from_millis(500);
