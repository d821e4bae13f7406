//! What audits tell of events, signals and digit maps (RFC 3525 7.2.5, 7.2.6).

use super::catalogue::{self, Seen};
use super::notify::{write_event, write_observed};
use super::watch::{LIST_MAX, Playing};
use super::{Gateway, Room, Termination, dial, text};
use crate::proto::codec::h248::{Completion, Events, PackagedName, RequestId, Shape, SignalType, Token, Writer, rewrite};
use crate::proto::endpoint::Blob;

impl Gateway {
    /// One descriptor of an audit; false: it is empty.
    pub(in crate::proto::h248) fn write_events_item(
        &self,
        w: &mut Writer<'_>,
        termination: Termination,
        item: Token,
        shape: &mut Shape,
    ) -> bool {
        if item == Token::DigitMap {
            return self.write_maps(w, termination);
        }
        let Some(watch) = self.watch_slot(termination).and_then(|slot| self.events.get(slot)) else { return false };
        match item {
            Token::Events if !watch.events.is_none() => {
                w.events(Some(watch.request_id()));
                self.write_list(w, watch.events, shape);
                w.end();
                true
            }
            Token::EventBuffer if !watch.buffer.is_none() => {
                w.begin(Token::EventBuffer);
                self.write_list(w, watch.buffer, shape);
                w.end();
                true
            }
            Token::Signals if watch.signals.iter().any(Option::is_some) => {
                w.begin_list(Token::Signals);
                for (n, playing) in watch.signals.iter().enumerate() {
                    let Some(playing) = playing else { continue };
                    let of = |list| watch.signals.iter().flatten().filter(move |other| other.list == Some(list));
                    match playing.list {
                        None => write_playing(w, playing),
                        // With its first member.
                        Some(list) if watch.signals.iter().take(n).flatten().all(|other| other.list != Some(list)) => {
                            w.begin_number(Token::SignalList, list.into());
                            of(list).for_each(|member| write_playing(w, member));
                            w.end();
                        }
                        Some(_) => {}
                    }
                }
                w.end();
                true
            }
            // What is held, and what a digit map has collected so far (EB-08, DM-17).
            Token::ObservedEvents if !watch.held.is_empty() || !watch.dial.digits.is_empty() => {
                w.observed_events(watch.request_id());
                self.events.iter(watch.held).for_each(|observed| write_observed(w, self.plan.epoch_ms, observed));
                if let (false, Some(event)) = (watch.dial.digits.is_empty(), catalogue::seen(Seen::DigitMap)) {
                    write_event(w, None, event, dial::dialled(&watch.dial).as_bytes());
                }
                w.end();
                true
            }
            _ => false,
        }
    }

    fn write_list(&self, w: &mut Writer<'_>, list: Blob, shape: &mut Shape) {
        let mut room: Room = [0; LIST_MAX];
        let text = text(&self.calls.endpoints.blobs, list, &mut room);
        if let Ok(list) = Events::kept(text, shape) {
            // It was read before, so it can be read again.
            let _ = list.iter().flatten().try_for_each(|spec| rewrite::event(&spec, w));
        }
    }
}

/// What can be detected and played (AC-01); false: nothing.
pub(in crate::proto::h248) fn write_capability(w: &mut Writer<'_>, termination: Termination, item: Token) -> bool {
    let events = || {
        let all = catalogue::packages(termination).flat_map(|package| package.events.iter().map(|event| (package.name, event)));
        all.filter(|(_, event)| event.seen != Seen::Never)
    };
    match item {
        Token::Events | Token::EventBuffer | Token::ObservedEvents => {
            match item {
                Token::Events => w.events(Some(RequestId::All)),
                Token::EventBuffer => w.begin(Token::EventBuffer),
                _ => w.observed_events(RequestId::All),
            }
            for (package, event) in events() {
                w.begin_name(PackagedName { package: package.as_bytes(), item: event.name.as_bytes() });
                w.end();
            }
            w.end();
        }
        Token::Signals => {
            let playable = |package: &&catalogue::Package| package.signals.iter().any(|signal| signal.plays.is_some());
            if catalogue::packages(termination).find(playable).is_none() {
                return false;
            }
            w.begin_list(Token::Signals);
            for package in catalogue::packages(termination) {
                for signal in package.signals.iter().filter(|signal| signal.plays.is_some()) {
                    w.begin_name(PackagedName { package: package.name.as_bytes(), item: signal.name.as_bytes() });
                    w.end();
                }
            }
            w.end();
        }
        _ => return false,
    }
    true
}

fn write_playing(w: &mut Writer<'_>, playing: &Playing) {
    w.begin_name(playing.signal.name());
    if playing.stream != 0 {
        w.number_item(Token::Stream, playing.stream.into());
    }
    // What has no time of its own lasts until it is switched off.
    let kind = if playing.kind == SignalType::TimeOut && playing.length.is_zero() { SignalType::OnOff } else { playing.kind };
    w.token_item(Token::SignalType, kind.token());
    if let Some(duration) = playing.duration {
        w.number_item(Token::Duration, duration.into());
    }
    if let Some(Completion { time_out, by_event, by_signals, other }) = playing.told {
        let told =
            [(time_out, Token::TimeOut), (by_event, Token::IntByEvent), (by_signals, Token::IntBySigDescr), (other, Token::OtherReason)];
        w.token_set(Token::NotifyCompletion, told.into_iter().filter(|(told, _)| *told).map(|(_, token)| token));
    }
    w.end();
}
