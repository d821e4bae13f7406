//! A T1 or E1 in a pseudowire, as the machine that plays it: packets in, octets and bits of its channels out, and the other way
//! round (RFC 5086; CES-01..20).
//!
//! A [`Circuit`] is loop-timed: for each packet period of the far end's clock it takes one packet out of the jitter buffer and makes one
//! packet to send, so towards the trunk nothing ever slips. [`wire::Wire`] is what the signalling bits of a channel mean. Sockets and
//! the meaning of the octets belong to others: a [`Channels`] has them.
//!
//! What goes out in a fault: the channels go on as they are (idle where nothing is connected), R says that packets are lost here, and
//! M = 10 (RDI) that the far end's trunk is bad, as a T1 terminal answers AIS by RAI.

pub mod digroup;
mod sounds;
pub mod wire;

pub use digroup::{Digroup, DigroupSettings};
pub use wire::{Coding, Wire};

use crate::proto::base::Time;
use crate::proto::pseudowire::{
    Fragment, Header, Layout, Malformed, Packet, Played, Playout, PlayoutSettings, Receiver, ReceiverSettings, State, Structure,
};
use crate::proto::trunk::{Alarms, CircuitCounts, CircuitView};
use std::time::Duration;

/// What a circuit is made of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CircuitSettings {
    /// What is in a packet, both ways; of whole frames.
    pub layout: Layout,
    /// The shortest mean wait in the jitter buffer.
    pub jitter: Duration,
    /// The longest.
    pub jitter_max: Duration,
    /// Whether the trunk's clock is the local one; else it is regained from what comes.
    pub own_clock: bool,
    /// The octet that stands for what did not come (CES-16).
    pub idle: u8,
    /// The number of the first packet.
    pub sequence: u16,
}

/// Whose octets a circuit carries.
pub trait Channels {
    /// One period of channel `channel`, counted from 0: these octets came, or stand for what did not (`filler`); those to send are
    /// wanted in `send`, which holds idle octets.
    fn exchange(&mut self, channel: u8, came: &[u8], filler: bool, send: &mut [u8]);

    /// The ABCD bits of a channel came.
    fn take_bits(&mut self, channel: u8, bits: u8);

    /// The ABCD bits of a channel to send.
    fn give_bits(&mut self, channel: u8) -> u8;
}

/// One pseudowire and the channels in it.
#[derive(Debug)]
pub struct Circuit {
    layout: Layout,
    idle: u8,
    frames: u16,
    channels: u8,
    period: Duration,
    receiver: Receiver,
    playout: Playout,
    alarms: Alarms,
    /// Packets in a row that contradict `alarms.ais` and `alarms.rai`.
    doubts: (u32, u32),
    /// So many with R or RDI are RAI.
    rai_after: u32,
    /// The part of the multiframe that goes out next.
    place: u8,
    sequence: u16,
    timestamp: u32,
    /// What came and what goes, channel after channel.
    came: Box<[u8]>,
    goes: Box<[u8]>,
    /// What goes, frame after frame, with the bits behind.
    frame_order: Box<[u8]>,
    packet: Box<[u8]>,
    counts: CircuitCounts,
}

/// A change of L, and the end of R and RDI, counts after so many packets.
const DOUBTS: u32 = 3;
/// R and RDI count after so long. A framer takes up to a second to see RAI, whose integration counts on that and is short; and a network that
/// stood still for a moment is no reason to end calls, whichever end saw it.
const RAI_AFTER: Duration = Duration::from_secs(2);
/// So long a machine may stand still; later it leaves out what it missed.
const BEHIND_MAX: Duration = Duration::from_millis(250);
/// Loss of packets for so long is the state of packet loss (RFC 4553 6.2.2 leaves the number to us).
const LOSS_AFTER: Duration = Duration::from_millis(30);
/// So long without loss ends it.
const NORMAL_AFTER: Duration = Duration::from_millis(60);
/// One frame.
const FRAME: Duration = Duration::from_micros(125);

impl Circuit {
    /// A circuit that begins to play one period after `now`.
    ///
    /// # Errors
    /// The layout is one of bits (SAToP).
    pub fn new(now: Time, settings: &CircuitSettings) -> Result<Circuit, &'static str> {
        let layout = settings.layout;
        let (channels, frames) = match layout.structure() {
            Structure::Frames { channels, frames } => (channels, frames),
            Structure::Signalled { channels, frames, .. } => (channels, u16::from(frames)),
            Structure::Bits(_) => return Err("a circuit of whole frames is needed"),
        };
        let period = FRAME * u32::from(frames);
        let periods = |time: Duration| time.as_nanos().div_ceil(period.as_nanos()).min(1024) as u16;
        let receiver = ReceiverSettings {
            depth: periods(settings.jitter),
            // Beside the longest mean wait, as much again for packets that come early.
            depth_max: (2 * periods(settings.jitter_max)).max(8),
            loss_after: periods(LOSS_AFTER),
            normal_after: periods(NORMAL_AFTER),
        };
        let playout = PlayoutSettings { period, wait_min: settings.jitter, wait_max: settings.jitter_max, own_clock: settings.own_clock };
        let octets = layout.data_octets();
        Ok(Circuit {
            layout,
            idle: settings.idle,
            frames,
            channels,
            period,
            receiver: Receiver::new(&layout, receiver),
            playout: Playout::new(now, &playout),
            alarms: Alarms::default(),
            doubts: (0, 0),
            rai_after: (RAI_AFTER.as_nanos() / period.as_nanos().max(1)) as u32,
            place: 0,
            sequence: settings.sequence,
            timestamp: 0,
            came: vec![settings.idle; octets].into(),
            goes: vec![settings.idle; octets].into(),
            frame_order: vec![settings.idle; octets + layout.signalling_octets()].into(),
            packet: vec![0; layout.packet_octets()].into(),
            counts: CircuitCounts::default(),
        })
    }

    /// The longest packet, in octets.
    pub fn packet_octets(&self) -> usize {
        self.packet.len()
    }

    /// One packet period.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// When to play the next period.
    pub fn due(&self) -> Time {
        self.playout.due()
    }

    /// What is wrong.
    pub fn alarms(&self) -> Alarms {
        self.alarms
    }

    /// How it is.
    pub fn view(&self) -> CircuitView {
        let counts = CircuitCounts { buffer: *self.receiver.counted(), ..self.counts };
        let (target, drift_ppm) = (self.playout.target(), self.playout.drift_ppm());
        CircuitView { state: self.receiver.state(), alarms: self.alarms, counts, waiting: self.receiver.waiting(), target, drift_ppm }
    }

    /// A packet came that is not from the far end.
    pub fn note_stray(&mut self) {
        self.counts.strays = self.counts.strays.saturating_add(1);
    }

    /// Octets came from the far end at `arrival`; everything due before is played.
    pub fn receive(&mut self, arrival: Time, octets: &[u8]) {
        let packet = match self.layout.read(octets) {
            Ok(packet) => packet,
            Err(Malformed::Stray) => return self.note_stray(),
            Err(_) => {
                self.counts.malformed = self.counts.malformed.saturating_add(1);
                return;
            }
        };
        let count = |counter: &mut u64, is: bool| *counter = counter.saturating_add(u64::from(is));
        count(&mut self.counts.received, true);
        count(&mut self.counts.local_faults, packet.header.local_fault);
        count(&mut self.counts.remote_losses, packet.header.remote_loss);
        count(&mut self.counts.remote_defects, packet.header.remote_defect);
        let restarts = self.receiver.counted().restarted;
        if let Some(ahead) = self.receiver.receive(&packet) {
            self.playout.arrived(arrival, ahead);
        }
        if self.receiver.counted().restarted != restarts {
            self.playout.forget();
        }
        self.note_remote(&packet.header);
    }

    /// What the control word says of the far end.
    fn note_remote(&mut self, header: &Header) {
        let rai = header.remote_loss || header.remote_defect;
        for (alarm, doubts, is, after) in [
            (&mut self.alarms.ais, &mut self.doubts.0, header.local_fault, DOUBTS),
            (&mut self.alarms.rai, &mut self.doubts.1, rai, if rai { self.rai_after } else { DOUBTS }),
        ] {
            *doubts = if is == *alarm { 0 } else { *doubts + 1 };
            if *doubts >= after {
                (*alarm, *doubts) = (is, 0);
            }
        }
    }

    /// Whether so much was missed that it had better be left out, which is then done.
    pub fn catch_up(&mut self, now: Time) -> bool {
        let behind = now.since(self.due());
        if behind <= BEHIND_MAX {
            return false;
        }
        let missed = behind.as_nanos() / self.period.as_nanos().max(1);
        self.counts.slips = self.counts.slips.saturating_add(missed as u64);
        self.playout.skip_to(now);
        true
    }

    /// Plays one period and gives the packet to send.
    pub fn play(&mut self, channels: &mut impl Channels) -> &[u8] {
        let held = self.playout.step();
        let periods = u16::try_from(held.unsigned_abs()).unwrap_or(u16::MAX);
        self.counts.slips = self.counts.slips.saturating_add(periods.into());
        match held {
            0 => {}
            1.. => self.receiver.hold(periods),
            _ => self.receiver.skip(periods),
        }
        let frames = usize::from(self.frames);
        let filler = match self.receiver.play() {
            Played::Packet(kept) => {
                for (frame, octets) in kept.data.chunks_exact(usize::from(self.channels)).enumerate() {
                    for (channel, octet) in octets.iter().enumerate() {
                        if let Some(place) = self.came.get_mut(channel * frames + frame) {
                            *place = *octet;
                        }
                    }
                }
                for channel in 0..self.channels {
                    let octet = kept.signalling.get(usize::from(channel / 2)).copied();
                    if let Some(octet) = octet {
                        channels.take_bits(channel, if channel % 2 == 0 { octet >> 4 } else { octet & 0x0F });
                    }
                }
                false
            }
            // The bits stay as they were: a lost packet is no hook (RFC 5086 5.4 leaves it to us).
            Played::Fault | Played::Lost | Played::Silent => {
                self.came.fill(self.idle);
                true
            }
        };
        let lost = self.receiver.state() == State::PacketLoss;
        if lost && !self.alarms.packet_loss {
            self.playout.forget();
            // What the far end said last is not known to be true any more.
            self.alarms = Alarms::default();
        }
        self.alarms.packet_loss = lost;
        self.goes.fill(self.idle);
        for ((channel, came), goes) in (0..self.channels).zip(self.came.chunks_exact(frames)).zip(self.goes.chunks_exact_mut(frames)) {
            channels.exchange(channel, came, filler, goes);
        }
        self.send(channels)
    }

    fn send(&mut self, channels: &mut impl Channels) -> &[u8] {
        let count = usize::from(self.channels);
        let (data, bits) = self.frame_order.split_at_mut(self.goes.len());
        for (channel, octets) in self.goes.chunks_exact(usize::from(self.frames)).enumerate() {
            for (frame, octet) in octets.iter().enumerate() {
                if let Some(place) = data.get_mut(frame * count + channel) {
                    *place = *octet;
                }
            }
        }
        let fragments = self.layout.fragments();
        let fragment = Fragment::at(self.place, fragments);
        self.place = (self.place + 1) % fragments.max(1);
        let signalling = if fragment.ends() { bits } else { &mut [] };
        for (place, channel) in signalling.iter_mut().zip((0..self.channels).step_by(2)) {
            let second = if channel + 1 < self.channels { channels.give_bits(channel + 1) } else { 0 };
            *place = channels.give_bits(channel) << 4 | second & 0x0F;
        }
        let header =
            Header { local_fault: false, remote_loss: self.alarms.packet_loss, remote_defect: self.alarms.ais, sequence: self.sequence };
        let packet = Packet { header, timestamp: Some(self.timestamp), fragment, data, signalling };
        let length = self.layout.write(&packet, &mut self.packet).unwrap_or(0);
        self.sequence = self.sequence.wrapping_add(1);
        self.timestamp = self.timestamp.wrapping_add(self.frames.into());
        self.counts.sent = self.counts.sent.saturating_add(1);
        self.packet.get(..length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
