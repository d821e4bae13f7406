//! The descriptors of a command that ask for events and signals: checked whole, then applied (RFC 3525 7.1.9 to 7.1.11, 7.1.14).

use super::super::error::*;
use super::catalogue::{self, Seen};
use super::watch::{Dial, LIST_MAX, WatchSlot, Which};
use super::{Gateway, LIST_TOO_LONG, Termination};
use crate::proto::base::Time;
use crate::proto::codec::h248::{
    DigitMapDescriptor, Embedded, EventSpec, Events, EventsDescriptor, RequestId, Signal, SignalPart, SignalType, Signals,
};
use crate::proto::endpoint::{Blob, Blobs};
use crate::proto::package::SignalClass;
use std::time::Duration;

/// What a command asks for.
#[derive(Default)]
pub(in crate::proto::h248) struct Wanted<'a> {
    pub events: Option<EventsDescriptor<'a>>,
    pub buffer: Option<Events<'a>>,
    pub signals: Option<Signals<'a>>,
    pub digit_map: Option<DigitMapDescriptor<'a>>,
}

impl Wanted<'_> {
    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        self.events.is_none() && self.buffer.is_none() && self.signals.is_none() && self.digit_map.is_none()
    }
}

/// Without `mit` (H.248.14): a controller that says nothing for so long.
const INACTIVITY: Duration = Duration::from_secs(10);

impl Gateway {
    /// Whether a command can be done; changes nothing. `also` blocks of the texts' memory are needed besides.
    pub(in crate::proto::h248) fn check_wanted(&self, termination: Termination, wanted: &Wanted<'_>, also: usize) -> Result<(), Failure> {
        let mut blocks = if also == 0 { 0 } else { Blobs::blocks_for(also) };
        let mut replaced = 0;
        let watch = self.watch_slot(termination).and_then(|slot| self.events.get(slot));
        if let Some(map) = &wanted.digit_map {
            blocks += self.check_map(termination, map)?;
        }
        if let Some(events) = &wanted.events {
            blocks += self.check_events(termination, events, wanted.digit_map.as_ref())?;
            replaced += watch.map_or(0, |watch| Blobs::blocks(watch.events) + Blobs::blocks(watch.dial.map));
        }
        if let Some(buffer) = &wanted.buffer {
            for spec in buffer.iter() {
                catalogue::check_event(&spec?.name, termination)?;
            }
            blocks += list_blocks(buffer)?;
            replaced += watch.map_or(0, |watch| Blobs::blocks(watch.buffer));
        }
        if let Some(signals) = &wanted.signals {
            self.check_signals(termination, signals)?;
        }
        let fits = blocks == 0 || self.calls.endpoints.blobs.fits_instead(blocks, replaced);
        if fits { Ok(()) } else { Err(NO_RESOURCES) }
    }

    fn check_events(
        &self,
        termination: Termination,
        events: &EventsDescriptor<'_>,
        defined: Option<&DigitMapDescriptor<'_>>,
    ) -> Result<u32, Failure> {
        if let Some(RequestId::All) = events.request {
            return Err(IDENTIFIER_OF_REQUEST);
        }
        let mut blocks = list_blocks(&events.events)?;
        for spec in events.events.iter() {
            let spec = spec?;
            let event = catalogue::check_event(&spec.name, termination)?;
            self.check_spec(&spec, event)?;
            if let Some(map) = &spec.digit_map {
                blocks += Blobs::blocks_for(self.map_length(termination, map, defined)?);
            }
            if let Some(Embedded { signals, events }) = &spec.embedded {
                if let Some(signals) = signals {
                    self.check_signals(termination, signals)?;
                }
                if let Some(events) = events {
                    self.check_events(termination, events, defined)?;
                }
            }
        }
        Ok(blocks)
    }

    fn check_spec(&self, spec: &EventSpec<'_>, event: Option<&catalogue::Event>) -> Result<(), Failure> {
        let collects = spec.name.package.eq_ignore_ascii_case(b"dd") && event.is_none_or(|event| event.seen == Seen::DigitMap);
        match (&spec.digit_map, event) {
            (Some(_), _) if !collects => return Err(PARAMETER_ILLEGAL),
            (None, Some(event)) if event.seen == Seen::DigitMap => return Err(NO_MAP_GIVEN),
            _ => {}
        }
        for parameter in spec.parameters() {
            let known = event.is_some_and(|event| event.parameters.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(parameter.name)));
            if !known {
                return Err(NO_SUCH_PARAMETER);
            }
            parameter.value.one().and_then(|value| value.integer()).filter(|value| *value >= 0).ok_or(PROPERTY_VALUE)?;
        }
        Ok(())
    }

    fn check_signals(&self, termination: Termination, signals: &Signals<'_>) -> Result<(), Failure> {
        let mut count = 0;
        for part in signals.parts() {
            match part? {
                SignalPart::Signal(signal) => {
                    check_signal(termination, &signal)?;
                    count += 1;
                }
                SignalPart::List { signals, .. } => {
                    let mut endless = false;
                    for member in signals {
                        // A list has no lists, which its syntax says.
                        let SignalPart::Signal(signal) = member? else { return Err(DESCRIPTOR_ILLEGAL) };
                        // Nothing behind it would ever be played (SIG-07).
                        if endless {
                            return Err(ENDLESS);
                        }
                        endless = check_signal(termination, &signal)?;
                        count += 1;
                    }
                }
            }
        }
        if count > super::watch::SIGNALS_MAX { Err(NO_RESOURCES) } else { Ok(()) }
    }

    /// Does what was checked.
    pub(in crate::proto::h248) fn ask(&mut self, now: Time, termination: Termination, wanted: &Wanted<'_>) {
        if wanted.is_empty() {
            return;
        }
        if let Some(map) = &wanted.digit_map {
            self.define_map(termination, map);
        }
        let asks = wanted.events.is_some() || wanted.buffer.is_some() || wanted.signals.is_some();
        let Some(slot) = asks.then(|| self.watch_slot_or_new(termination)).flatten() else { return };
        if let Some(buffer) = &wanted.buffer {
            self.set_buffer(slot, buffer);
        }
        if let Some(events) = &wanted.events {
            self.set_events(now, slot, events);
        }
        if let Some(signals) = wanted.signals {
            self.play(now, slot, signals);
        }
        if wanted.events.is_some() {
            self.replay(now, slot);
        }
        self.events.reschedule(slot);
        self.settle(now);
    }

    fn set_buffer(&mut self, slot: WatchSlot, buffer: &Events<'_>) {
        let stored = self.calls.endpoints.blobs.store(buffer.as_bytes()).filter(|_| !buffer.is_empty());
        let Some(watch) = self.events.get_mut(slot) else { return };
        let mut old = std::mem::replace(&mut watch.buffer, stored.unwrap_or(Blob::NONE));
        self.calls.endpoints.blobs.free(&mut old);
        if buffer.is_empty() {
            // EB-06
            self.events.clear(slot, Which::Held);
        }
    }

    /// A new Events descriptor replaces the old one and ends what it collected (EVT-01).
    fn set_events(&mut self, now: Time, slot: WatchSlot, events: &EventsDescriptor<'_>) {
        let Some(watch) = self.events.get_mut(slot) else { return };
        let mut old = [std::mem::take(&mut watch.events), std::mem::replace(&mut watch.dial, Dial::NONE).map];
        let termination = watch.termination;
        watch.request = match events.request {
            Some(RequestId::Number(number)) => number,
            _ => 0,
        };
        old.iter_mut().for_each(|blob| self.calls.endpoints.blobs.free(blob));
        if events.events.is_empty() {
            // EVT-09
            self.events.clear(slot, Which::Held);
        } else {
            let kept = self.calls.endpoints.blobs.store(events.events.as_bytes()).unwrap_or(Blob::NONE);
            if let Some(watch) = self.events.get_mut(slot) {
                watch.events = kept;
            }
            self.begin_dial(now, slot, &events.events);
        }
        if let Termination::Physical(endpoint) = termination {
            let sounds = events.events.iter().flatten().map(|spec| catalogue::sounds(&spec.name)).collect();
            self.calls.card.listen_for(now, endpoint, sounds);
        }
        if termination == Termination::Root {
            self.set_inactivity(now, &events.events);
        }
    }

    /// What an event embeds takes the place of the descriptors (EVT-06). Whether there are new events to detect.
    pub(super) fn activate(&mut self, now: Time, slot: WatchSlot, embedded: &Embedded<'_>) -> bool {
        if let Some(events) = &embedded.events {
            self.set_events(now, slot, events);
        }
        if let Some(signals) = embedded.signals {
            self.play(now, slot, signals);
        }
        embedded.events.is_some()
    }

    /// `it/ito` in the Events descriptor of ROOT (H.248.14): `mit` is in hundredths of a second.
    fn set_inactivity(&mut self, now: Time, events: &Events<'_>) {
        let mut specs = events.iter().flatten();
        let asked = specs.find(|spec| catalogue::seen(Seen::Inactivity).is_some_and(|event| event.is_meant(&spec.name)));
        let limit = asked.map(|spec| {
            let mut given = spec.parameters();
            let mit = given.find(|parameter| parameter.name.eq_ignore_ascii_case(b"mit"));
            let value = mit.and_then(|parameter| parameter.value.one()?.integer()).and_then(|value| u32::try_from(value).ok());
            value.map_or(INACTIVITY, |value| Duration::from_millis(10) * value.max(1))
        });
        self.association.expect_activity(now, limit);
    }
}

/// Whether a signal lasts until it is switched off; or why it cannot be played.
fn check_signal(termination: Termination, signal: &Signal<'_>) -> Result<bool, Failure> {
    let found = catalogue::find_signal(&signal.name, termination)?;
    if signal.parameters().next().is_some() {
        return Err(NO_SUCH_PARAMETER);
    }
    // It has no time of its own (SIG-03).
    let timed = matches!(found.class(), SignalClass::TimeOut { default_ms: Some(_), .. });
    if signal.kind == Some(SignalType::TimeOut) && !timed && signal.duration.is_none() {
        return Err(NO_DURATION);
    }
    let timed_by_package = matches!(found.class(), SignalClass::TimeOut { .. } | SignalClass::Brief { .. });
    let by_order = match signal.kind {
        Some(kind) => kind == SignalType::OnOff,
        None => !timed_by_package,
    };
    Ok(by_order || matches!(found.class(), SignalClass::TimeOut { default_ms: None, .. }) && signal.duration.is_none())
}

/// Blocks that a list takes.
fn list_blocks(list: &Events<'_>) -> Result<u32, Failure> {
    match list.as_bytes().len() {
        0 => Ok(0),
        length if length > LIST_MAX => Err(LIST_TOO_LONG),
        length => Ok(Blobs::blocks_for(length)),
    }
}

const IDENTIFIER_OF_REQUEST: Failure = Failure { code: 442, text: "request identifier of Events is no number" };
const NO_MAP_GIVEN: Failure = Failure { code: 457, text: "digit map completion without a digit map" };
const NO_DURATION: Failure = Failure { code: 457, text: "signal is to time out and has no duration" };
const PARAMETER_ILLEGAL: Failure = Failure { code: 446, text: "only dd/ce has a digit map" };
const NO_SUCH_PARAMETER: Failure = Failure { code: 454, text: "event or signal has no such parameter" };
const ENDLESS: Failure = Failure { code: 449, text: "only the last signal of a list may be on until it is switched off" };
