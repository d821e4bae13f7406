//! The page of one facility: the shape of `show span --json`.

use super::view::SpanRow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything about one facility.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SpanPage {
    /// What the list of facilities says.
    pub row: SpanRow,
    /// The card it is on.
    pub card: String,
    /// Its pseudowire, when it is in one; nothing too when its core is silent.
    pub circuit: Option<CircuitRow>,
    /// Its span of the kernel's driver, when it is on such a card; nothing too when its core is silent.
    #[serde(default)]
    pub driver: Option<DriverRow>,
    /// The kind of signal that is counted.
    pub signal: String,
    /// The defects there are now, integrated or not.
    pub defects: Vec<String>,
    /// Whether the facility is available (RFC 4805 3.4.3), as far as that is certain.
    pub available: bool,
    /// How far the counters lag, in seconds: so long it takes to know what was available time.
    pub lag_s: u64,
    /// The 15-minute interval that runs.
    pub current: PerformanceRow,
    /// The past intervals together, 24 hours at the most.
    pub total: PerformanceRow,
    /// The past intervals, the newest first, 96 at the most.
    pub intervals: Vec<PerformanceRow>,
}

/// A pseudowire.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CircuitRow {
    /// `filling`, `normal` or `packet-loss`.
    pub state: String,
    /// Packets that came.
    pub received: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packet periods for which nothing had come.
    pub lost: u64,
    /// Packets that came too late, twice, or too early to be kept.
    pub late: u64,
    /// See `late`.
    pub duplicate: u64,
    /// See `late`.
    pub overrun: u64,
    /// Packets of another sender or stream, and such as are none of a pseudowire.
    pub strays: u64,
    /// See `strays`.
    pub malformed: u64,
    /// Packets with L (bad trunk at the far end), R (the far end loses ours) and RDI.
    pub local_faults: u64,
    /// See `local_faults`.
    pub remote_losses: u64,
    /// See `local_faults`.
    pub remote_defects: u64,
    /// Times the far end began anew.
    pub restarted: u64,
    /// Packet periods by which playing was put off, or that were left out.
    pub slips: u64,
    /// With SAToP: errors of the framing or its CRC, and times the framing was lost.
    pub violations: u64,
    /// See `violations`.
    pub frame_losses: u64,
    /// Blocks of 3 ms of a T1, or of 1 ms of an E1, in which a packet did not come.
    pub errored_blocks: u64,
    /// Packets that wait to be played.
    pub waiting: u16,
    /// The mean wait that is aimed at, in ms.
    pub wait_ms: f64,
    /// What the far end's clock is faster by, in parts per million.
    pub drift_ppm: f64,
}

/// A span of the kernel's driver (DAHDI).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DriverRow {
    /// Its number in the driver.
    pub span: u16,
    /// Whether its device is there and its channels are held.
    pub present: bool,
    /// The alarms as the driver has them: `none`, or `red`, `blue`, `yellow`, ...
    pub alarms: String,
    /// Blocks of channels that were read.
    pub blocks: u64,
    /// Blocks that were not sent, because the core was late or the driver had no room.
    pub dropped: u64,
    /// Times the driver had no room for what came, and nothing to send.
    pub overruns: u64,
    /// See `overruns`.
    pub underruns: u64,
    /// Orders that the driver refused.
    pub refused: u64,
    /// Events that mean nothing here.
    pub unknown: u64,
    /// Times the device was gone.
    pub losses: u64,
}

/// The counters of some time, by their names in DS1-MIB and DS3-MIB.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PerformanceRow {
    /// Seconds counted.
    pub seconds: u32,
    /// Each counter.
    #[serde(flatten)]
    pub counts: BTreeMap<String, u32>,
}
