//! One connection of a DS0.

use super::control::Control;
use super::detect::Singles;
use super::g711::Law;
use super::inbound::Inbound;
use super::keys::Keys;
use super::playout::RING;
use super::quality::{Grade, Loss, Quality};
use super::rtcp;
use super::rtp::{HEADER, Packet};
use super::sender::{Format, OCTETS_MAX, Sender};
use super::settings::Settings;
use super::silence::Silence;
use super::srtp::{Guard, Rejected};
use super::tone::Player;
use super::transponder::Transponder;
use super::turn::Kind;
use crate::proto::base::srtp::MediaKeys;
use crate::proto::base::{Mode, Time};
use crate::proto::package::{EventId, PackageId};
use crate::proto::trunk::{CheckTone, Coding, Media, MediaReport, Payloads};
use std::net::SocketAddr;

/// Octets handled at once.
pub(super) const BLOCK: usize = 80;

/// A connection.
#[derive(Debug)]
pub(super) struct Leg {
    pub connection: u32,
    pub media: Media,
    pub inbound: Inbound,
    pub sender: Sender,
    pub control: Control,
    pub silence: Silence,
    pub loss: Loss,
    quality: Grade,
    /// Payload type and octets of the last packet with voice.
    voice: Option<(u8, usize)>,
    /// What it heard in this turn, in the trunk's law.
    pub heard: [u8; BLOCK],
    /// What is played to its far end.
    pub signal: Option<(EventId, Player)>,
    /// The event that is sent in place of a signal, or of one that is sent back.
    held: Option<u8>,
    /// What is listened for in what its far end says.
    pub ears: Singles,
    /// In mode netwtest.
    transponder: Option<Transponder>,
    keys: Keys,
    /// Its gain, when it has one.
    gain: Option<Box<Gain>>,
    /// What protects its packets, when something does.
    guard: Option<Box<Guard>>,
    /// Packets that its guard did not let in.
    replayed: u32,
    unauthentic: u32,
}

/// Octets after gain and conversion: of the trunk to packets; of mu law and A law to the trunk.
#[derive(Debug)]
struct Gain {
    out: [u8; 256],
    from: [[u8; 256]; 2],
}

/// What has come of a packet.
pub(super) enum Arrival {
    /// It was not taken.
    Refused,
    /// It was.
    Taken {
        /// A telephone event that began with it.
        key: Option<u8>,
        /// Its payload type, when the packet before was of another.
        codec: Option<u8>,
        /// How long it is, in ms, when the packet before was longer or shorter.
        period_ms: Option<u16>,
    },
    /// It was, and is RTCP.
    Control,
}

impl Leg {
    /// What one has elsewhere, in octets, but for a gain.
    pub const BEHIND: usize = RING + size_of::<[u8; HEADER + OCTETS_MAX]>();

    /// Whether it carries data, not voice.
    pub fn is_data(&self) -> bool {
        matches!(self.media.payloads.sent, Some((Coding::Clear, _)))
    }

    pub fn new(settings: &Settings) -> Leg {
        Leg {
            connection: 0,
            media: Media::default(),
            inbound: Inbound::new(settings.law, settings.depths),
            sender: Sender::new(),
            control: Control::new(),
            silence: Silence::default(),
            loss: Loss::default(),
            quality: Grade::default(),
            voice: None,
            heard: [settings.law.idle(); BLOCK],
            signal: None,
            held: None,
            ears: Singles::new(settings.law),
            transponder: None,
            keys: Keys::default(),
            gain: None,
            guard: None,
            replayed: 0,
            unauthentic: 0,
        }
    }

    /// A new connection takes this place.
    pub fn start(&mut self, settings: &Settings, now: Time, connection: u32, media: &Media, seed: u64) {
        let law = settings.law;
        self.connection = connection;
        self.inbound.start();
        self.sender.start(format(media), seed);
        self.control.start(now, seed);
        (self.silence, self.signal, self.transponder, self.keys) = (Silence::default(), None, None, Keys::default());
        (self.loss, self.quality, self.voice, self.held) = (Loss::default(), Grade::default(), None, None);
        (self.heard, self.ears) = ([law.idle(); BLOCK], Singles::new(law));
        (self.guard, self.replayed, self.unauthentic) = (None, 0, 0);
        self.media = Media::default();
        self.change(settings, media);
    }

    /// What protects its packets from now on.
    pub fn protect(&mut self, keys: &MediaKeys) {
        // Another key has another source, which begins at the beginning: whoever gives a key a second time gets nothing encrypted twice.
        let goes_on = self.guard.as_ref().is_some_and(|guard| keys.local.as_ref().is_some_and(|local| guard.sends_by(local)));
        if keys.local.is_some() && !goes_on {
            self.sender.renew(self.control.draw());
        }
        match &mut self.guard {
            Some(guard) if keys.local.is_some() => guard.change(keys),
            guard => *guard = Guard::new(keys),
        }
    }

    /// It has ended.
    pub fn end(&mut self) {
        self.guard = None;
    }

    pub fn change(&mut self, settings: &Settings, media: &Media) {
        // Who is somewhere else now may know the key, but not how far its packets have come: a new source begins at the beginning.
        if self.guard.is_some() && self.media.remote.is_some() && self.media.remote != media.remote {
            self.sender.renew(self.control.draw());
        }
        self.inbound.change(&self.media, media);
        self.sender.set_format(format(media));
        if self.media.gain_db != media.gain_db || self.media.payloads != media.payloads {
            self.gain = gain(settings.law, media);
        }
        if self.media.mode != media.mode {
            let tested = media.mode == Mode::NetworkTest;
            self.transponder = tested.then(|| Transponder::new(settings.law, settings.transponder_hears));
            self.silence.disarm();
            self.keys.stop();
        }
        self.media = *media;
    }

    /// An RTP packet came to its port.
    pub fn receive(&mut self, law: Law, now: Time, packet: &Packet<'_>) -> Arrival {
        if !self.media.mode.receives() {
            return Arrival::Refused;
        }
        let payloads = &self.media.payloads;
        let event = payloads.events_received == Some(packet.payload_type);
        let coding = payloads.coding(packet.payload_type);
        if !event && coding.is_none() {
            return Arrival::Refused;
        }
        if self.inbound.statistics.note(now, packet) {
            self.inbound.playout.stop();
            self.keys = Keys::default();
        }
        self.silence.note(now, self.media.mode, false);
        if event {
            let key = self.keys.receive(payloads.events, packet.timestamp, packet.payload);
            return Arrival::Taken { key, codec: None, period_ms: None };
        }
        let before = self.voice.replace((packet.payload_type, packet.payload.len()));
        let codec = before.filter(|(codec, _)| *codec != packet.payload_type).map(|_| packet.payload_type);
        let period_ms = before.filter(|(_, octets)| *octets != packet.payload.len()).map(|_| (packet.payload.len() / 8) as u16);
        let convert = match (coding, &self.gain) {
            (Some(Coding::Mu), None) => Law::Mu.conversion(law),
            (Some(Coding::A), None) => Law::A.conversion(law),
            (Some(Coding::Mu), Some(gain)) => Some(&gain.from[0]),
            (Some(Coding::A), Some(gain)) => Some(&gain.from[1]),
            (Some(Coding::Clear) | None, _) => None,
        };
        self.inbound.playout.insert(packet.timestamp, packet.payload, convert);
        Arrival::Taken { key: None, codec, period_ms }
    }

    /// Takes what protects it off a datagram, and has `take` take what is in it; `None`: it is not one of its far end's, and was counted.
    pub fn let_in(&mut self, kind: Kind, datagram: &[u8], take: impl FnOnce(&mut Leg, &[u8]) -> Arrival) -> Option<Arrival> {
        let Some(mut guard) = self.guard.take() else { return Some(take(self, datagram)) };
        let taken = match guard.unprotect(kind, datagram) {
            Ok(packet) => Some(take(self, packet)),
            Err(Rejected::KeyUnknown) => Some(Arrival::Refused),
            Err(Rejected::Replayed) => {
                self.replayed = self.replayed.saturating_add(1);
                None
            }
            Err(Rejected::Unauthentic) => {
                self.unauthentic = self.unauthentic.saturating_add(1);
                None
            }
        };
        self.guard = Some(guard);
        taken
    }

    /// An RTCP packet came to its port; false when it was none.
    pub fn receive_control(&mut self, now: Time, wall: u64, octets: &[u8]) -> bool {
        let heard = self.control.receive(now, wall, self.sender.ssrc(), octets);
        if heard.is_some() {
            self.silence.note(now, self.media.mode, true);
        }
        heard.is_some()
    }

    /// What its far end says for a span of time, into [`Leg::heard`].
    pub fn hear(&mut self, law: Law, length: usize) {
        let Some(heard) = self.heard.get_mut(..length) else { return };
        self.inbound.playout.play(heard);
        self.keys.play(law, heard);
    }

    /// Where it sends; `None` as long as that is not known.
    pub fn destination(&self, symmetric: bool) -> Option<SocketAddr> {
        match self.inbound.source() {
            Some(source) if symmetric && self.media.remote.is_some() => Some(source),
            _ if self.media.inside => Some(SocketAddr::from(([0, 0, 0, 0], 0))),
            _ => self.media.remote,
        }
    }

    /// Whether packets from `source` can be its own.
    pub fn accepts(&self, symmetric: bool, source: SocketAddr, kind: Kind) -> bool {
        match kind {
            Kind::Rtp => self.inbound.accepts(&self.media, symmetric, source),
            Kind::Rtcp => self.destination(symmetric).is_some_and(|remote| self.media.inside || remote.ip() == source.ip()),
        }
    }

    /// Sends octets of the trunk's law.
    pub fn send(&mut self, law: Law, octets: &[u8], emit: &mut impl FnMut(&[u8])) {
        let convert = match (self.media.payloads.sent, &self.gain) {
            (Some((Coding::Clear, _)), _) => None,
            (_, Some(gain)) => Some(&gain.out),
            (Some((Coding::Mu, _)), None) => law.conversion(Law::Mu),
            (Some((Coding::A, _)), None) => law.conversion(Law::A),
            (None, None) => None,
        };
        let Leg { sender, guard, .. } = self;
        sender.push(octets, convert, &mut |packet| protected(guard, Kind::Rtp, packet, emit));
    }

    /// The key that goes out as an event is released.
    pub fn end_event(&mut self, emit: &mut impl FnMut(&[u8])) {
        let Leg { sender, guard, .. } = self;
        sender.end_event(&mut |packet| protected(guard, Kind::Rtp, packet, emit));
    }

    /// Sends an event in place of what is pushed, where one goes out for its signal or for what it sends back.
    pub fn hold_event(&mut self, emit: &mut impl FnMut(&[u8])) {
        let Payloads { events_sent, events, .. } = self.media.payloads;
        let event = match (&self.signal, self.media.mode) {
            _ if events_sent.is_none() => None,
            (Some((signal, _)), _) => check_tone(*signal).and_then(|tone| events.of_tone(tone)),
            (None, Mode::NetworkLoop) => self.keys.code(),
            (None, _) => None,
        };
        if self.held == event && (event.is_none() || self.sender.event() == event) {
            return;
        }
        if self.held.is_some() {
            self.end_event(emit);
        }
        if let Some(code) = event {
            self.sender.begin_event(code);
        }
        self.held = event;
    }

    /// Nobody will say when the key that goes out as an event is released.
    pub fn drop_key(&mut self) {
        if self.held.is_none() {
            self.sender.drop_event();
        }
    }

    /// Sends back what came in, or in mode netwtest what its transponder says.
    pub fn send_back(&mut self, law: Law, length: usize, emit: &mut impl FnMut(&[u8])) {
        let heard = self.heard;
        let mut octets = heard;
        let (Some(heard), Some(out)) = (heard.get(..length), octets.get_mut(..length)) else { return };
        if let Some(transponder) = &mut self.transponder {
            transponder.turn(law, heard, out);
        }
        self.send(law, out, emit);
    }

    /// Sends the report that is due, or the last one.
    pub fn report_control(&mut self, now: (Time, u64), bye: bool, emit: &mut impl FnMut(&[u8])) {
        let mut room = [0; rtcp::OCTETS_MAX];
        let packet = self.control.write(&mut room, now, &self.sender, &mut self.inbound.statistics, bye);
        protected(&mut self.guard, Kind::Rtcp, packet, emit);
    }

    pub fn report(&self) -> MediaReport {
        let (packets_sent, octets_sent) = self.sender.counted();
        let statistics = &self.inbound.statistics;
        let played = self.inbound.playout.counted();
        MediaReport {
            packets_sent,
            octets_sent,
            packets_received: statistics.packets,
            octets_received: statistics.octets,
            packets_lost: statistics.lost(),
            jitter_ms: statistics.jitter_ms(),
            latency_ms: self.control.latency_ms(),
            late: capped(played.late),
            concealed_octets: capped(played.concealed),
            slips: capped(played.slips),
            replayed: self.replayed,
            unauthentic: self.unauthentic,
        }
    }

    /// Whether its far end is heard worse than is allowed, since now.
    pub fn grade(&mut self, now: Time, quality: &Quality) -> bool {
        self.quality.is_poor(now, quality, &self.inbound.statistics, self.control.latency_ms())
    }

    /// Whether what the circuit hears goes out on it (RFC 3435 2.3.1).
    pub fn sends_circuit(&self) -> bool {
        matches!(self.media.mode, Mode::SendOnly | Mode::SendRecv | Mode::Conference)
    }

    /// Whether what it hears goes to the circuit.
    pub fn feeds_circuit(&self) -> bool {
        matches!(self.media.mode, Mode::RecvOnly | Mode::SendRecv | Mode::Conference)
    }

    /// Whether keys heard on the circuit go out as telephone events.
    pub fn relays_keys(&self) -> bool {
        self.sends_circuit() && self.media.payloads.events_sent.is_some()
    }
}

fn capped(count: u64) -> u32 {
    count.try_into().unwrap_or(u32::MAX)
}

/// Hands a packet on, protected where it is to be.
fn protected(guard: &mut Option<Box<Guard>>, kind: Kind, packet: &[u8], emit: &mut impl FnMut(&[u8])) {
    match guard {
        None => emit(packet),
        Some(guard) => {
            if let Some(packet) = guard.protect(kind, packet) {
                emit(packet);
            }
        }
    }
}

/// The continuity tone that a signal towards a far end is.
fn check_tone(signal: EventId) -> Option<CheckTone> {
    match (signal.package(), signal.item().name) {
        (PackageId::R, "co1") => Some(CheckTone::Co1),
        (PackageId::R, "co2") => Some(CheckTone::Co2),
        _ => None,
    }
}

fn format(media: &Media) -> Format {
    Format {
        payload_type: media.payloads.sent.map_or(0, |(_, payload_type)| payload_type),
        octets: media.packet_bytes,
        events: media.payloads.events_sent,
    }
}

/// The tables of a gain; none for none, and for data.
fn gain(law: Law, media: &Media) -> Option<Box<Gain>> {
    let sent = match media.payloads.sent {
        Some((Coding::Mu, _)) => Law::Mu,
        Some((Coding::A, _)) => Law::A,
        Some((Coding::Clear, _)) | None => return None,
    };
    let db = f32::from(media.gain_db.clamp(-60, 60));
    if media.gain_db == 0 {
        return None;
    }
    let table = |from: Law, to: Law, db: f32| {
        let factor = 10f32.powf(db / 20.0);
        std::array::from_fn(|octet| to.encode(from.value_in(to, (f32::from(from.decode(octet as u8)) * factor) as i32)))
    };
    Some(Box::new(Gain { out: table(law, sent, -db), from: [table(Law::Mu, law, db), table(Law::A, law, db)] }))
}
