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
        let listed = || {
            signals.parts().filter_map(|part| match part {
                Ok(SignalPart::Signal(signal)) => Some((catalogue::find_signal(&signal.name, termination).ok()?, signal)),
                _ => None,
            })
        };
        for (n, playing) in before.iter().enumerate() {
            let Some(playing) = playing else { continue };
            let goes_on = listed().any(|(found, signal)| found == playing.signal && signal.stream == playing.stream && signal.keep_active);
            if !goes_on {
                self.end(now, slot, n, Ended::BySignals);
            }
        }
        for (found, signal) in listed() {
            // Kept active and not playing: nothing to keep (SIG-02).
            if !signal.keep_active {
                self.begin(now, slot, found, &signal);
            }
        }
        self.events.reschedule(slot);
    }

    fn begin(&mut self, now: Time, slot: WatchSlot, found: SignalRef, signal: &Signal<'_>) {
        let ending = ending(now, found, signal);
        let playing = Playing { signal: found, stream: signal.stream, ending, duration: signal.duration, told: signal.completion };
        let Some(watch) = self.events.get_mut(slot) else { return };
        let Termination::Physical(endpoint) = watch.termination else { return };
        let Some(place) = watch.signals.iter_mut().find(|place| place.is_none()) else { return };
        if self.calls.card.start_signal(now, endpoint, None, found.plays, b"").is_ok() {
            *place = Some(playing);
            return;
        }
        self.counters.add(Counter::CardRefused);
        if found.tests_continuity() {
            self.test_ended(now, slot, false);
        } else {
            self.completed(now, slot, &playing, Ended::Other);
        }
    }

    /// Signal `n` is not played any more.
    fn end(&mut self, now: Time, slot: WatchSlot, n: usize, why: Ended) {
        let Some(watch) = self.events.get_mut(slot) else { return };
        let Some(playing) = watch.signals.get_mut(n).and_then(Option::take) else { return };
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
            .and_then(|watch| watch.signals.iter().position(|playing| playing.is_some_and(|playing| playing.signal.plays == signal)));
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
        let Some(place) = places.find(|place| place.is_some_and(|playing| playing.signal.tests_continuity())) else { return false };
        *place = None;
        self.test_ended(now, slot, true);
        self.events.reschedule(slot);
        self.settle(now);
        true
    }
}

/// How a signal ends: as the command says, else as its package does (SIG-03).
fn ending(now: Time, found: SignalRef, signal: &Signal<'_>) -> Ending {
    let given = signal.duration.map(|hundredths| Duration::from_millis(10) * u32::from(hundredths));
    let ms = |ms: u32| Duration::from_millis(ms.into());
    let (class, default) = match found.class() {
        SignalClass::OnOff => (SignalType::OnOff, None),
        SignalClass::TimeOut { default_ms, .. } => (SignalType::TimeOut, default_ms.map(ms)),
        SignalClass::Brief { ms: length } => (SignalType::Brief, Some(ms(length))),
    };
    match signal.kind.unwrap_or(class) {
        SignalType::OnOff => Ending::Order,
        SignalType::TimeOut => given.or(default).map_or(Ending::Order, |length| Ending::TimeOut(now + length)),
        SignalType::Brief => Ending::Brief(now + given.or(default).unwrap_or(BRIEF)),
    }
}

/// A brief signal that has no length of its own.
const BRIEF: Duration = Duration::from_millis(500);
