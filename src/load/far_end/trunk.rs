//! A T1 or E1 in a pseudowire as its far end plays it: with the trunk's clock beside that of the machine, and a way that may lose packets.

use crate::host::card::wire::{Paced, WireSocket};
use crate::host::clock::{Clock, WallClock};
use crate::host::transport::burst::Burst;
use crate::proto::base::Time;
use crate::proto::circuit::{Channels, Circuit, CircuitSettings, Framing};
use crate::proto::framer::Format;
use crate::proto::pseudowire::{Layout, RtpSettings, State, Structure};
use anyhow::{Result, anyhow, ensure};
use std::net::SocketAddr;
use std::time::Duration;

/// Packets are not fragmented and sent as media is (SAT-17).
const DSCP: u8 = 46;
/// A turn plays so many periods at the most; there is nothing else to do.
const BUDGET: usize = 1000;

/// What a trunk is made of.
#[derive(Clone, Copy, Debug)]
pub struct TrunkSettings {
    /// Where packets come to.
    pub listen: SocketAddr,
    /// Where the gateway is.
    pub peer: SocketAddr,
    /// What is in a packet.
    pub layout: Layout,
    /// How its bits are framed; for layouts of bits only.
    pub framing: Option<Framing>,
    /// An E1, with A law.
    pub e1: bool,
    /// The shortest mean wait in the jitter buffer.
    pub jitter: Duration,
    /// How much faster its clock is than the machine's, in parts per million.
    pub ppm: f64,
    /// Share of packets lost on purpose on the way to the gateway.
    pub loss: f64,
}

/// Whether a trunk comes bit by bit, and how.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Satop {
    /// T1s come bit by bit with their framing (SAToP, RFC 4553), an extended superframe; else without (CESoPSN).
    #[arg(long)]
    pub satop: bool,
    /// With --satop: a superframe (D4).
    #[arg(long, requires = "satop")]
    pub d4: bool,
    /// With --satop: each 193 bits are padded to 25 octets.
    #[arg(long, requires = "satop")]
    pub octet_aligned: bool,
}

/// What is in a packet of a T1 or E1, with CAS or without: `frames` of them, by default those of a multiframe, or 1 ms; or bits, and how
/// they are framed.
///
/// # Errors
/// What does not fit.
pub fn layout(satop: Satop, e1: bool, cas: bool, frames: Option<u8>, rtp: Option<u8>) -> Result<(Layout, Option<Framing>)> {
    let rtp = rtp.map(|payload_type| RtpSettings { payload_type, ssrc: None });
    if satop.satop {
        ensure!(!e1 && frames.is_none(), "--satop: T1s only, and without --frames");
        let structure = if satop.octet_aligned { Structure::Groups(8) } else { Structure::Bits(192) };
        let format = if satop.d4 { Format::D4 } else { Format::Esf };
        let layout = Layout::new(structure, rtp).map_err(|problem| anyhow!("--rtp: {problem}"))?;
        return Ok((layout, Some(Framing { format, signalled: cas })));
    }
    let structure = match (e1, cas) {
        (false, false) => Structure::Frames { channels: 24, frames: frames.unwrap_or(8).into() },
        (true, false) => Structure::Frames { channels: 31, frames: frames.unwrap_or(8).into() },
        (false, true) => Structure::Signalled { channels: 24, multiframe: 24, frames: frames.unwrap_or(24) },
        (true, true) => Structure::Signalled { channels: 30, multiframe: 16, frames: frames.unwrap_or(16) },
    };
    let layout = Layout::new(structure, rtp).map_err(|problem| anyhow!("--frames or --rtp: {problem}"))?;
    Ok((layout, None))
}

/// The numbers of its channels: with CAS an E1 has no channel 16.
pub fn channel_numbers(e1: bool, cas: bool) -> Vec<u8> {
    let last = if e1 { 31 } else { 24 };
    (1..=last).filter(|number| !(e1 && cas && *number == 16)).collect()
}

/// Whose channels they are.
pub trait Bank: Channels {
    /// The period that is played next ends at this time of the trunk's clock, which is this one of the machine's.
    fn begin(&mut self, trunk: Time, machine: Time);
}

/// A trunk.
pub struct Trunk<B> {
    socket: WireSocket,
    burst: Burst,
    far: Far<B>,
}

/// The trunk but for its socket.
struct Far<B> {
    circuit: Circuit,
    bank: B,
    clock: TrunkClock,
    loss: Loss,
}

/// The trunk's clock beside that of the machine.
#[derive(Clone, Copy)]
struct TrunkClock {
    rate: f64,
}

impl TrunkClock {
    fn of(self, time: Time) -> Time {
        Time((time.0 as f64 * self.rate) as u64)
    }

    fn back(self, time: Time) -> Time {
        // Rounded up, so that what is due then is due by the trunk's clock as well.
        Time((time.0 as f64 / self.rate).ceil() as u64 + 1)
    }
}

/// Packets lost on purpose, evenly.
struct Loss {
    share: f64,
    sum: f64,
}

impl Loss {
    fn next(&mut self) -> bool {
        self.sum += self.share;
        let is_lost = self.sum >= 1.0;
        self.sum -= f64::from(u8::from(is_lost));
        is_lost
    }
}

impl<B: Bank> Paced for Far<B> {
    fn due(&self) -> Time {
        self.clock.back(self.circuit.due())
    }

    fn catch_up(&mut self, now: Time) {
        self.circuit.catch_up(self.clock.of(now));
    }

    fn receive(&mut self, arrival: Time, octets: &[u8]) {
        self.circuit.receive(self.clock.of(arrival), octets);
    }

    fn note_stray(&mut self) {
        self.circuit.note_stray();
    }

    fn play(&mut self) -> Option<&[u8]> {
        let due = self.circuit.due();
        self.bank.begin(due, self.clock.back(due));
        let is_lost = self.loss.next();
        let packet = self.circuit.play(&mut self.bank);
        (!is_lost).then_some(packet)
    }
}

impl<B: Bank> Trunk<B> {
    /// Binds its socket; the trunk begins now.
    ///
    /// # Errors
    /// What the machine refused.
    pub fn new(clock: &Clock, settings: &TrunkSettings, bank: B) -> Result<Trunk<B>> {
        let circuit = CircuitSettings {
            layout: settings.layout,
            framing: settings.framing,
            jitter: settings.jitter,
            jitter_max: (settings.jitter * 10).min(Duration::from_millis(200)),
            own_clock: true,
            idle: if settings.e1 { 0xD5 } else { 0xFF },
            sequence: 0,
        };
        let trunk = TrunkClock { rate: 1.0 + settings.ppm * 1e-6 };
        let circuit = Circuit::new(trunk.of(clock.now()), &circuit).map_err(|problem| anyhow!(problem))?;
        let loss = Loss { share: settings.loss, sum: 0.0 };
        Ok(Trunk {
            socket: WireSocket::bind(settings.listen, settings.peer, DSCP)?,
            burst: Burst::new(settings.layout.packet_octets() + 1),
            far: Far { circuit, bank, clock: trunk, loss },
        })
    }

    /// Takes what has come and plays what is due; `wall` is fresh.
    pub fn work(&mut self, now: Time, wall: &WallClock) {
        self.socket.work(now, &mut self.far, &mut self.burst, wall, &mut { BUDGET });
    }

    /// When it has something to play.
    pub fn due(&self) -> Time {
        self.far.due()
    }

    /// The time of its clock when the machine's is `now`.
    pub fn time(&self, now: Time) -> Time {
        self.far.clock.of(now)
    }

    /// Its channels.
    pub fn bank(&self) -> &B {
        &self.far.bank
    }

    /// Its channels, to be told something.
    pub fn bank_mut(&mut self) -> &mut B {
        &mut self.far.bank
    }

    /// How its circuit is.
    pub fn report(&self) -> serde_json::Value {
        let view = self.far.circuit.view();
        let counts = view.counts;
        serde_json::json!({
            "state": match view.state { State::Filling => "filling", State::Normal => "normal", State::PacketLoss => "packet-loss" },
            "alarms": {
                "packet_loss": view.alarms.packet_loss,
                "ais": view.alarms.ais,
                "rai": view.alarms.rai,
                "lof": view.alarms.out_of_frame,
                "los": view.alarms.no_signal,
            },
            "received": counts.received,
            "sent": counts.sent,
            "lost": counts.buffer.lost,
            "late": counts.buffer.late,
            "strays": counts.strays,
            "malformed": counts.malformed,
            "remote_losses": counts.remote_losses,
            "slips": counts.slips,
            "violations": counts.violations,
            "frame_losses": counts.frame_losses,
        })
    }
}
