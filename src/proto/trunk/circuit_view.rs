//! How what carries a span is, for a display: what a card tells of a pseudowire, or of the kernel's driver.

use crate::proto::pseudowire::{Counted, State};
use std::time::Duration;

/// What is wrong with a circuit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Alarms {
    /// The state of packet loss: nothing, or too little, comes.
    pub packet_loss: bool,
    /// L: the far end's trunk is bad. Or, bit by bit, nothing but ones.
    pub ais: bool,
    /// R or RDI: the far end loses our packets, or its trunk does not hear it. Or, bit by bit, the trunk says so itself.
    pub rai: bool,
    /// Bit by bit only: where frames begin is not known.
    pub out_of_frame: bool,
    /// Bit by bit only: nothing but zeros.
    pub no_signal: bool,
}

/// What a circuit has counted; saturating.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CircuitCounts {
    /// Packets of the pseudowire that came.
    pub received: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that came and were none of it: of another stream, malformed, reserved.
    pub strays: u64,
    /// See `strays`.
    pub malformed: u64,
    /// Packets with L, R and RDI among those received.
    pub local_faults: u64,
    /// See `local_faults`.
    pub remote_losses: u64,
    /// See `local_faults`.
    pub remote_defects: u64,
    /// Periods by which playing was put off because packets came too late, or that were left out because the machine stood still.
    pub slips: u64,
    /// Bit by bit only: PCV, errors of the framing or of the CRC.
    pub violations: u64,
    /// Bit by bit only: times the framing was lost.
    pub frame_losses: u64,
    /// Blocks of 3 ms of a T1, or of 1 ms of an E1, in which a packet did not come that was to be played.
    pub errored_blocks: u64,
    /// What the jitter buffer counted.
    pub buffer: Counted,
}

/// How a circuit is, for a display.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CircuitView {
    /// What it does.
    pub state: State,
    /// What is wrong.
    pub alarms: Alarms,
    /// What it counted.
    pub counts: CircuitCounts,
    /// Packets that wait to be played.
    pub waiting: u16,
    /// The mean wait that is aimed at.
    pub target: Duration,
    /// What the far end's clock is faster by, in parts per million.
    pub drift_ppm: f64,
}

/// How a span on a card of the kernel's driver is, for a display.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverView {
    /// Its number in the driver.
    pub number: u16,
    /// Whether its device is there and its channels are held.
    pub is_there: bool,
    /// The alarms as the driver has them.
    pub alarms: u32,
    /// What was counted.
    pub counts: DriverCounts,
}

/// What was counted of a span of the kernel's driver; saturating.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DriverCounts {
    /// Blocks of channels that were read.
    pub blocks: u64,
    /// Blocks that were not sent, because the core was late or the driver had no room.
    pub dropped: u64,
    /// Times the driver had no room for what came.
    pub overruns: u64,
    /// Times the driver had nothing to send.
    pub underruns: u64,
    /// Orders that the driver refused.
    pub refused: u64,
    /// Events that mean nothing here.
    pub unknown: u64,
    /// Times the device was gone.
    pub losses: u64,
}

/// How what carries a span is, for a display.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CarrierView {
    /// A pseudowire.
    Wire(CircuitView),
    /// The kernel's driver.
    Driver(DriverView),
}
