//! A T1 or E1 in a pseudowire, as the machine that plays it: packets in, octets and bits of its channels out, and the other way
//! round (RFC 5086, RFC 4553; CES-01..20, SAT-01..19).
//!
//! A [`Circuit`] is loop-timed: for each packet period of the far end's clock it takes one packet out of the jitter buffer and makes one
//! packet to send, so towards the trunk nothing ever slips. [`wire::Wire`] is what the signalling bits of a channel mean. Sockets and
//! the meaning of the octets belong to others: a [`Channels`] has them.
//!
//! What goes out in a fault: the channels go on as they are (idle where nothing is connected), R says that packets are lost here, and
//! M = 10 (RDI) that the far end's trunk is bad, as a T1 terminal answers AIS by RAI. L and no octets (AIS) when an operator wants that. Where packets hold the framing of the trunk as well,
//! RAI is told in it, once nothing was heard for two seconds, and until a signal was there for one.

mod bits;
mod carrier;
mod dark;
pub mod digroup;
mod frames;
pub mod slots;
mod sounds;
pub mod wire;

pub use digroup::{Digroup, DigroupSettings};
pub use slots::{PacketsOut, Slots};
pub use wire::{Coding, Wire};

use self::carrier::Carrier;
use self::dark::Dark;
use crate::proto::base::Time;
use crate::proto::framer::{FRAME_BITS, Format};
use crate::proto::pseudowire::{Header, Layout, Malformed, Packet, Played, Playout, PlayoutSettings, Receiver, ReceiverSettings, State};
use crate::proto::trunk::{Alarms, CircuitCounts, CircuitView};
use std::time::Duration;

/// What a circuit is made of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CircuitSettings {
    /// What is in a packet, both ways.
    pub layout: Layout,
    /// How bits are framed; for layouts of bits only.
    pub framing: Option<Framing>,
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

/// How the bits of a T1 are framed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// The format.
    pub format: Format,
    /// Whether signalling bits are robbed from the octets of its channels.
    pub signalled: bool,
}

/// Whose octets a circuit carries.
pub trait Channels {
    /// Some frames of channel `channel`, counted from 0, those of a period in one or more turns: these octets came, or stand for what did not (`filler`); those to send are
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
    carrier: Carrier,
    period: Duration,
    receiver: Receiver,
    playout: Playout,
    alarms: Alarms,
    /// What control words say: L, and R or RDI.
    told: (bool, bool),
    /// Packets in a row that contradict `told`.
    doubts: (u32, u32),
    /// So many with R or RDI are RAI.
    rai_after: u32,
    /// Periods without a signal.
    dark: Dark,
    /// Whether AIS is sent.
    sends_ais: bool,
    sequence: u16,
    /// Bits of the trunk that were sent.
    passed: u64,
    /// The block of the trunk that is being played.
    block: Block,
    packet: Box<[u8]>,
    counts: CircuitCounts,
}

/// What of a trunk is errored as a whole when a packet of it is replaced (RFC 4553 6.4).
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// Its length.
    bits: u64,
    /// Bits of it that were played, and whether a packet of it was replaced.
    played: u64,
    errored: bool,
}

impl Block {
    /// Plays so many bits, of a replaced packet or another: errored blocks that ended with it.
    fn pass(&mut self, bits: u64, replaced: bool) -> u64 {
        self.errored |= replaced;
        self.played += bits;
        let mut errored = 0;
        while self.played >= self.bits.max(1) {
            self.played -= self.bits.max(1);
            errored += u64::from(self.errored);
            // The rest of the packet is of the next one.
            self.errored = replaced && self.played > 0;
        }
        errored
    }
}

/// A change of L, and the end of R and RDI, counts after so many packets.
const DOUBTS: u32 = 3;
/// R and RDI count after so long. A framer takes up to a second to see RAI, whose integration counts on that and is short; and a network that
/// stood still for a moment is no reason to end calls, whichever end saw it.
const RAI_AFTER: Duration = Duration::from_secs(2);
/// RAI is told at least so long beyond what it tells of.
const RAI_HOLD: Duration = Duration::from_secs(1);
/// So long a machine may stand still; later it leaves out what it missed.
const BEHIND_MAX: Duration = Duration::from_millis(250);
/// Loss of packets for so long is the state of packet loss (RFC 4553 6.2.2 leaves the number to us).
const LOSS_AFTER: Duration = Duration::from_millis(30);
/// So long without loss ends it.
const NORMAL_AFTER: Duration = Duration::from_millis(60);
impl Circuit {
    /// A circuit that begins to play one period after `now`.
    ///
    /// # Errors
    /// The layout is one of bits (SAToP), and how they are framed is not said.
    pub fn new(now: Time, settings: &CircuitSettings) -> Result<Circuit, &'static str> {
        let layout = settings.layout;
        let carrier = Carrier::new(settings)?;
        let period = carrier.period();
        let periods = |time: Duration| time.as_nanos().div_ceil(period.as_nanos()).min(1024) as u16;
        let count = |time: Duration| (time.as_nanos() / period.as_nanos().max(1)) as u32;
        let receiver = ReceiverSettings {
            depth: periods(settings.jitter),
            // Beside the longest mean wait, as much again for packets that come early.
            depth_max: (2 * periods(settings.jitter_max)).max(8),
            loss_after: periods(LOSS_AFTER),
            normal_after: periods(NORMAL_AFTER),
        };
        let playout = PlayoutSettings { period, wait_min: settings.jitter, wait_max: settings.jitter_max, own_clock: settings.own_clock };
        Ok(Circuit {
            layout,
            carrier,
            period,
            receiver: Receiver::new(&layout, receiver),
            playout: Playout::new(now, &playout),
            alarms: Alarms::default(),
            told: (false, false),
            doubts: (0, 0),
            rai_after: count(RAI_AFTER),
            dark: Dark::new(count(RAI_AFTER), count(RAI_HOLD)),
            sends_ais: false,
            sequence: settings.sequence,
            passed: 0,
            block: Block { bits: (layout.block_frames() * FRAME_BITS) as u64, ..Block::default() },
            packet: vec![0; layout.packet_octets()].into(),
            counts: CircuitCounts::default(),
        })
    }

    /// The longest packet, in octets.
    pub fn packet_octets(&self) -> usize {
        self.packet.len()
    }

    /// Frames of a period at the most.
    pub fn frames(&self) -> usize {
        self.carrier.bits().div_ceil(FRAME_BITS as u64) as usize
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
        let framer = self.carrier.counted();
        let (violations, frame_losses) = (framer.violations, framer.frame_losses);
        let counts = CircuitCounts { buffer: *self.receiver.counted(), violations, frame_losses, ..self.counts };
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
            (&mut self.told.0, &mut self.doubts.0, header.local_fault, DOUBTS),
            (&mut self.told.1, &mut self.doubts.1, rai, if rai { self.rai_after } else { DOUBTS }),
        ] {
            *doubts = if is == *alarm { 0 } else { *doubts + 1 };
            if *doubts >= after {
                (*alarm, *doubts) = (is, 0);
            }
        }
    }

    /// AIS goes to the far end from now on, or does not any more: L, and no octets of channels (CES-08, SAT-10).
    pub fn send_ais(&mut self, on: bool) {
        self.sends_ais = on;
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
        let played = self.receiver.play();
        let errored = self.block.pass(self.carrier.bits(), matches!(played, Played::Lost));
        self.counts.errored_blocks = self.counts.errored_blocks.saturating_add(errored);
        self.carrier.play(played, channels);
        self.note_alarms();
        self.send(channels)
    }

    /// What is wrong after a period.
    fn note_alarms(&mut self) {
        let state = self.receiver.state();
        let packet_loss = state == State::PacketLoss;
        if packet_loss && !self.alarms.packet_loss {
            self.playout.forget();
            // What the far end said last is not known to be true any more.
            (self.told, self.doubts) = ((false, false), (0, 0));
        }
        // What a framer makes of nothing is nothing.
        let seen = if state == State::Normal { self.carrier.take_defects() } else { Default::default() };
        self.alarms = Alarms {
            packet_loss,
            ais: self.told.0 || seen.ais,
            rai: self.told.1 || seen.remote_alarm,
            out_of_frame: seen.out_of_frame,
            no_signal: seen.no_signal,
        };
        let is_dark = packet_loss || self.alarms.ais || self.alarms.out_of_frame;
        let tells = self.dark.pass(is_dark);
        self.carrier.tell_remote_alarm(tells);
    }

    fn send(&mut self, channels: &mut impl Channels) -> &[u8] {
        let goes = self.carrier.outgoing(channels);
        let Alarms { packet_loss, ais, .. } = self.alarms;
        let header = Header { local_fault: self.sends_ais, remote_loss: packet_loss, remote_defect: ais, sequence: self.sequence };
        // In eighths of a millisecond: the clock is that of 8 kHz (SAT-04).
        let timestamp = Some((self.passed / FRAME_BITS as u64) as u32);
        let (data, signalling) = if self.sends_ais { Default::default() } else { (goes.data, goes.signalling) };
        let packet = Packet { header, timestamp, fragment: goes.fragment, data, signalling };
        let length = self.layout.write(&packet, &mut self.packet).unwrap_or(0);
        self.sequence = self.sequence.wrapping_add(1);
        self.passed = self.passed.wrapping_add(self.carrier.bits());
        self.counts.sent = self.counts.sent.saturating_add(1);
        self.packet.get(..length).unwrap_or_default()
    }
}

/// Rows of `width` octets become columns.
fn transpose(rows: &[u8], width: usize, columns: &mut [u8]) {
    let height = rows.len() / width.max(1);
    for (y, row) in rows.chunks_exact(width.max(1)).enumerate() {
        for (x, octet) in row.iter().enumerate() {
            if let Some(place) = columns.get_mut(x * height + y) {
                *place = *octet;
            }
        }
    }
}

#[cfg(test)]
mod tests;
