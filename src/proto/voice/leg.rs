//! One connection of a DS0.

use super::ds0::Settings;
use super::g711::Law;
use super::inbound::Inbound;
use super::rtp::Packet;
use super::sender::{Format, Sender};
use crate::proto::base::{Mode, Time};
use crate::proto::trunk::{Coding, Media, MediaReport};
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
    /// What it heard in this turn, in the trunk's law.
    pub heard: [u8; BLOCK],
    /// Its gain, when it has one.
    gain: Option<Box<Gain>>,
}

/// Octets after gain and conversion: of the trunk to packets; of mu law and A law to the trunk.
#[derive(Debug)]
struct Gain {
    out: [u8; 256],
    from: [[u8; 256]; 2],
}

impl Leg {
    pub fn new(settings: &Settings) -> Leg {
        Leg {
            connection: 0,
            media: Media::default(),
            inbound: Inbound::new(settings.law, settings.depths),
            sender: Sender::new(),
            heard: [settings.law.idle(); BLOCK],
            gain: None,
        }
    }

    /// A new connection takes this place.
    pub fn start(&mut self, law: Law, connection: u32, media: &Media, seed: u64) {
        self.connection = connection;
        self.inbound.start();
        self.sender.start(format(media), seed);
        self.heard = [law.idle(); BLOCK];
        self.change(law, media);
    }

    pub fn change(&mut self, law: Law, media: &Media) {
        self.inbound.change(&self.media, media);
        self.sender.set_format(format(media));
        if self.media.gain_db != media.gain_db || self.media.payloads != media.payloads {
            self.gain = gain(law, media);
        }
        self.media = *media;
    }

    /// An RTP packet came to its port; false when it was not taken.
    pub fn receive(&mut self, law: Law, now: Time, packet: &Packet<'_>) -> bool {
        let coding = self.media.payloads.coding(packet.payload_type);
        if !self.media.mode.receives() || coding.is_none() {
            return false;
        }
        if self.inbound.statistics.note(now, packet) {
            self.inbound.playout.stop();
        }
        let convert = match (coding, &self.gain) {
            (Some(Coding::Mu), None) => Law::Mu.conversion(law),
            (Some(Coding::A), None) => Law::A.conversion(law),
            (Some(Coding::Mu), Some(gain)) => Some(&gain.from[0]),
            (Some(Coding::A), Some(gain)) => Some(&gain.from[1]),
            (Some(Coding::Clear) | None, _) => None,
        };
        self.inbound.playout.insert(packet.timestamp, packet.payload, convert);
        true
    }

    /// Where it sends; `None` as long as that is not known.
    pub fn destination(&self, symmetric: bool) -> Option<SocketAddr> {
        match self.inbound.source() {
            Some(source) if symmetric && self.media.remote.is_some() => Some(source),
            _ if self.media.inside => Some(SocketAddr::from(([0, 0, 0, 0], 0))),
            _ => self.media.remote,
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
        self.sender.push(octets, convert, emit);
    }

    /// The octets of its packets are data, not voice.
    pub fn is_data(&self) -> bool {
        matches!(self.media.payloads.sent, Some((Coding::Clear, _)))
    }

    pub fn report(&self) -> MediaReport {
        let (packets_sent, octets_sent) = self.sender.counted();
        let statistics = &self.inbound.statistics;
        MediaReport {
            packets_sent,
            octets_sent,
            packets_received: statistics.packets,
            octets_received: statistics.octets,
            packets_lost: statistics.lost(),
            jitter_ms: statistics.jitter_ms(),
            latency_ms: 0,
        }
    }

    /// Whether what the circuit hears goes out on it (RFC 3435 2.3.1).
    pub fn sends_circuit(&self) -> bool {
        matches!(self.media.mode, Mode::SendOnly | Mode::SendRecv | Mode::Conference)
    }

    /// Whether what it hears goes to the circuit.
    pub fn feeds_circuit(&self) -> bool {
        matches!(self.media.mode, Mode::RecvOnly | Mode::SendRecv | Mode::Conference)
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
