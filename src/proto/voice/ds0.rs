//! The media of one DS0: orders, packets, octets of the circuit.

use super::circuit::Circuit;
use super::detect::{Awaited, SingleTones};
use super::ears::Ears;
use super::event::{Counted, Event, Events, Wanted};
use super::leg::{Arrival, Leg};
use super::patch::Patch;
use super::rtp::Packet;
use super::settings::Settings;
use super::signals::Signals;
use super::tone::{Player, Score};
use super::transponder::Transponder;
use super::turn::{Kind, control};
use super::voiceband::Voiceband;
use crate::proto::base::srtp::MediaKeys;
use crate::proto::base::{Mode, Time};
use crate::proto::package::parameters::Digits;
use crate::proto::package::{EventId, PackageId};
use crate::proto::trunk::{CardFault, CheckTone, DigitKind, Measure, Media, MediaReport, Sounds};
use std::net::SocketAddr;

/// The media of one DS0.
#[derive(Debug)]
pub struct Ds0 {
    pub(super) settings: Settings,
    /// The first `open` ones are connections.
    pub(super) legs: Box<[Leg]>,
    pub(super) open: usize,
    pub(super) circuit: Circuit,
    pub(super) transponder: Option<Transponder>,
    /// What T/lb and T/ct say.
    ordered: (bool, Option<CheckTone>),
    pub(super) signals: Signals,
    pub(super) ears: Ears,
    /// Of a DS0 with one connection.
    pub(super) voiceband: Voiceband,
    /// What a line listens for, and what an agent waits for.
    pub(super) listened: Option<DigitKind>,
    pub(super) wanted: Wanted,
    /// The key that is heard.
    pub(super) key: Option<u8>,
    pub(super) events: Events,
    /// When to look at reports and silence.
    pub(super) look: Time,
    patch: Patch,
    counted: Counted,
}

impl Ds0 {
    /// A DS0 without connections. All memory it will need is taken here, but for tables of gain.
    pub fn new(settings: Settings) -> Ds0 {
        Ds0 {
            settings,
            legs: (0..settings.connections).map(|_| Leg::new(&settings)).collect(),
            open: 0,
            circuit: Circuit::Connections,
            transponder: None,
            ordered: (false, None),
            signals: Signals::default(),
            ears: Ears::new(settings.law),
            voiceband: Voiceband::new(settings.law),
            listened: None,
            wanted: Wanted::default(),
            key: None,
            events: Events::new(),
            look: Time::ZERO,
            patch: Patch::new(settings.law),
            counted: Counted::default(),
        }
    }

    /// Begins the media of a connection; `seed` decides source, sequence and timestamp of what it sends. False when there are as many
    /// as there may be, or this one is there already.
    pub fn open(&mut self, now: Time, connection: u32, media: &Media, seed: u64) -> bool {
        if self.leg(connection).is_some() {
            return false;
        }
        let Some(leg) = self.legs.get_mut(self.open) else { return false };
        leg.start(&self.settings, now, connection, media, seed);
        // A call that follows another one at once, without an idle span between them.
        if self.open == 0 {
            self.patch.forget(self.settings.law);
        }
        self.open += 1;
        self.plan();
        true
    }

    /// Changes what a connection does.
    pub fn modify(&mut self, _: Time, connection: u32, media: &Media) {
        let settings = self.settings;
        if let Some(leg) = self.leg_mut(connection) {
            leg.change(&settings, media);
        }
        self.plan();
    }

    /// A connection goes to another DS0 of the same law, with all it has. False: it stays, as there is none, the law is another one, or the
    /// other has as many as there may be.
    pub fn hand_over(&mut self, connection: u32, other: &mut Ds0) -> bool {
        let Some(place) = self.legs().iter().position(|leg| leg.connection == connection) else { return false };
        let (Some(leg), Some(free)) = (self.legs.get_mut(place), other.legs.get_mut(other.open)) else { return false };
        if self.settings.law != other.settings.law {
            return false;
        }
        std::mem::swap(leg, free);
        self.open -= 1;
        self.legs.swap(place, self.open);
        if other.open == 0 {
            other.patch.forget(other.settings.law);
        }
        other.open += 1;
        self.plan();
        other.plan();
        true
    }

    /// A connection sends to nobody from now on, and hears whoever was described to it no more.
    pub fn leave(&mut self, connection: u32) {
        let settings = self.settings;
        if let Some(leg) = self.leg_mut(connection) {
            let media = Media { remote: None, ..leg.media };
            leg.change(&settings, &media);
        }
    }

    /// What protects the packets of a connection from now on (SRTP); no local key: nothing does.
    pub fn protect(&mut self, connection: u32, keys: &MediaKeys) {
        if let Some(leg) = self.leg_mut(connection) {
            leg.protect(keys);
        }
    }

    /// Ends a connection, whose far end is told by RTCP, and says what it counted; nothing when there is none.
    pub fn close(&mut self, now: Time, connection: u32, out: &mut impl FnMut(u32, SocketAddr, Kind, &[u8])) -> MediaReport {
        let settings = self.settings;
        let Some(leg) = self.leg_mut(connection) else { return MediaReport::default() };
        let report = leg.report();
        control(&settings, now, leg, true, out);
        leg.end();
        let played = leg.inbound.playout.counted();
        self.counted.played = self.counted.played.and(played);
        if let Some(place) = self.legs().iter().position(|leg| leg.connection == connection) {
            self.open -= 1;
            self.legs.swap(place, self.open);
        }
        self.plan();
        report
    }

    /// What a connection has counted so far.
    pub fn report(&self, connection: u32) -> MediaReport {
        self.leg(connection).map_or_else(MediaReport::default, Leg::report)
    }

    /// What was counted since the DS0 was made.
    pub fn counted(&self) -> Counted {
        let played = self.legs().iter().fold(self.counted.played, |all, leg| all.and(leg.inbound.playout.counted()));
        Counted { played, dropped: self.events.dropped, ..self.counted }
    }

    /// An RTP or RTCP packet came to the port of a connection.
    pub fn packet(&mut self, now: Time, connection: u32, source: SocketAddr, kind: Kind, octets: &[u8]) {
        let Settings { law, symmetric, wall, .. } = self.settings;
        let Some(leg) = self.leg_mut(connection) else { return };
        if !leg.accepts(symmetric, source, kind) {
            self.counted.strangers += 1;
            return;
        }
        let take = |leg: &mut Leg, octets: &[u8]| match kind {
            Kind::Rtp => {
                leg.inbound.note_source(&leg.media, symmetric, source);
                Packet::read(octets).map_or(Arrival::Refused, |packet| leg.receive(law, now, &packet))
            }
            Kind::Rtcp if leg.receive_control(now, wall, octets) => Arrival::Control,
            Kind::Rtcp => Arrival::Refused,
        };
        let Some(arrived) = leg.let_in(kind, octets, take) else { return };
        let first = leg.inbound.statistics.packets == 1;
        match arrived {
            Arrival::Control => {}
            Arrival::Refused => self.counted.unknown += 1,
            Arrival::Taken { key, codec, period_ms } => {
                if first {
                    self.events.push(Event::MediaArrived { connection });
                }
                if let Some(key) = key {
                    self.events.push(Event::Key { connection, key });
                }
                if let Some(payload_type) = codec.filter(|_| self.wanted.others.has(Sounds::FAR_CODEC)) {
                    self.events.push(Event::Codec { connection, payload_type });
                }
                if let Some(ms) = period_ms.filter(|_| self.wanted.others.has(Sounds::FAR_PERIOD)) {
                    self.events.push(Event::Period { connection, ms });
                }
            }
        }
    }

    /// Begins a signal towards the circuit, or towards the far end of a connection; one that is on goes on. `parameters` is the text in its
    /// parentheses.
    ///
    /// # Errors
    /// [`CardFault::State`] when it has no sound; [`CardFault::Broken`] when there is no such connection.
    pub fn start_signal(&mut self, connection: Option<u32>, signal: EventId, parameters: &[u8]) -> Result<(), CardFault> {
        match (signal.package(), signal.item().name) {
            (PackageId::T, "lb") => self.ordered.0 = true,
            (PackageId::T, "ct") => self.ordered.1 = Some(transponder_hears(parameters)),
            // A timer and nothing else (RFC 3660 2.2).
            (PackageId::D, "T") => {}
            _ => {
                let score = Score::of(signal, parameters).ok_or(CardFault::State)?;
                match connection {
                    None => self.signals.start(signal, score),
                    Some(connection) => {
                        let leg = self.leg_mut(connection).ok_or(CardFault::Broken)?;
                        if leg.signal.is_none_or(|(on, _)| on != signal) {
                            leg.signal = Some((signal, Player::new(score)));
                        }
                    }
                }
            }
        }
        self.plan();
        Ok(())
    }

    /// Ends a signal, if it is on.
    pub fn stop_signal(&mut self, connection: Option<u32>, signal: EventId) {
        match (connection, signal.package(), signal.item().name) {
            (Some(connection), _, _) => {
                if let Some(leg) = self.leg_mut(connection) {
                    leg.signal = leg.signal.filter(|(on, _)| *on != signal);
                }
            }
            (None, PackageId::T, "lb") => self.ordered.0 = false,
            (None, PackageId::T, "ct") => self.ordered.1 = None,
            (None, _, _) => self.signals.stop(signal),
        }
        self.plan();
    }

    /// Sends digits on the circuit; [`Event::Sent`] follows. False for dial pulses, which are no sound.
    pub fn send_digits(&mut self, kind: DigitKind, digits: Digits) -> bool {
        if kind == DigitKind::Pulse {
            return false;
        }
        self.signals.send(kind, digits);
        true
    }

    /// Stops sending digits, without a word.
    pub fn stop_sending(&mut self) {
        self.signals.stop_sending();
    }

    /// The line listens for such digits, or not.
    pub fn listen(&mut self, digits: Option<DigitKind>) {
        self.listened = digits;
        self.plan();
    }

    /// Somebody waits for these, and for nothing else.
    pub fn watch(&mut self, wanted: Wanted) {
        self.wanted = wanted;
        self.plan();
    }

    /// From now on this is waited for on a connection, once: [`Event::Silent`], [`Event::Lossy`].
    pub fn measure(&mut self, now: Time, connection: u32, what: Measure) {
        let Some(leg) = self.leg_mut(connection) else { return };
        match what {
            Measure::Silence { seconds, after_report } => leg.silence.ask(now, Some((seconds, after_report))),
            Measure::Loss(limit) => leg.loss.ask(limit, &leg.inbound.statistics),
            // Of sockets, which are not here.
            Measure::Unreachable(_) => {}
        }
    }

    /// Whether somebody waits for these.
    pub fn awaits(&self, sounds: Sounds) -> bool {
        self.wanted.others.has(sounds)
    }

    /// The next thing that was heard or has happened.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// What a DS0 of these settings takes, in octets, when it is made.
    pub fn bytes(settings: &Settings) -> u64 {
        let leg = size_of::<Leg>() + Leg::BEHIND;
        (size_of::<Ds0>() + Patch::BEHIND + Events::BEHIND + settings.connections * leg) as u64
    }

    /// A span of time of the circuit that [`Ds0::exchange`] gets next: with `filler` it did not come, and the voice is made to go on for a moment.
    /// Data is left as it is. What an idle channel or data leaves behind is no voice to go on with.
    pub fn mend(&mut self, octets: &mut [u8], filler: bool) {
        if self.is_idle() || self.legs().iter().any(Leg::is_data) {
            return self.patch.forget(self.settings.law);
        }
        self.counted.mended += self.patch.pass(self.settings.law, octets, filler) as u64;
    }

    /// Whether there is nothing to do for a span of time but to fill it with idle octets.
    pub fn is_idle(&self) -> bool {
        self.open == 0 && self.circuit == Circuit::Connections && self.signals.is_empty() && self.ears.is_empty()
    }

    /// Decides what the circuit meets, and what is listened for.
    fn plan(&mut self) {
        // Who joins or leaves makes another call of it.
        if self.open != 1 {
            self.voiceband = Voiceband::new(self.settings.law);
        }
        let modem = self.voiceband.is_on();
        self.legs.iter_mut().take(self.open).for_each(|leg| leg.inbound.playout.keep_deep(modem));
        let any = |mode| self.legs().iter().any(|leg| leg.media.mode == mode);
        let hears = self.ordered.1.or_else(|| any(Mode::ContinuityTest).then_some(self.settings.transponder_hears));
        self.circuit = match hears {
            _ if self.ordered.0 || any(Mode::Loopback) => Circuit::Itself,
            Some(hears) => Circuit::Transponder(hears),
            None => Circuit::Connections,
        };
        self.transponder = match (self.circuit, self.transponder.take()) {
            (Circuit::Transponder(hears), Some(there)) if there.hears() == hears => Some(there),
            (Circuit::Transponder(hears), _) => Some(Transponder::new(self.settings.law, hears)),
            _ => None,
        };
        let relays = self.circuit == Circuit::Connections && self.legs().iter().any(Leg::relays_keys);
        let keys = relays || self.wanted.keys || self.listened == Some(DigitKind::Dtmf);
        self.key = self.key.filter(|_| keys);
        if !relays {
            self.legs.iter_mut().take(self.open).for_each(Leg::drop_key);
        }
        // Who sends a check tone waits for one.
        let tested = if self.signals.tests_continuity() { SingleTones::CHECK } else { SingleTones::NONE };
        let others = self.wanted.others;
        let tones = [Sounds::REORDER, Sounds::INFORMATION, Sounds::NO_CIRCUIT, Sounds::FAX].into_iter().any(|tone| others.has(tone));
        let awaited = Awaited { tones, pattern: others.has(Sounds::PATTERN) };
        self.ears.listen(keys, self.listened == Some(DigitKind::Mf), self.wanted.tones.and(tested), awaited);
        let far = self.wanted.far_tones;
        self.legs.iter_mut().take(self.open).for_each(|leg| leg.ears.listen(far));
    }

    fn legs(&self) -> &[Leg] {
        self.legs.get(..self.open).unwrap_or_default()
    }

    fn leg(&self, connection: u32) -> Option<&Leg> {
        self.legs().iter().find(|leg| leg.connection == connection)
    }

    fn leg_mut(&mut self, connection: u32) -> Option<&mut Leg> {
        self.legs.get_mut(..self.open)?.iter_mut().find(|leg| leg.connection == connection)
    }
}

/// The tone that T/ct waits for: the one in `in=`.
fn transponder_hears(parameters: &[u8]) -> CheckTone {
    let co2 = |text: &[u8]| text.trim_ascii().eq_ignore_ascii_case(b"in=co2");
    if parameters.split(|&byte| byte == b',').any(co2) { CheckTone::Co2 } else { CheckTone::Co1 }
}
