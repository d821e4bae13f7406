//! What is fixed for a DS0.

use super::g711::Law;
use super::playout::Depths;
use super::quality::Quality;
use crate::proto::trunk::CheckTone;
use std::time::Duration;

/// What is fixed for a DS0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The law of the span's octets.
    pub law: Law,
    /// The most connections.
    pub connections: usize,
    /// Octets of a period, which may come in several turns; 0: as many as come in one.
    pub grain: usize,
    /// How deep the buffers of connections may be.
    pub depths: Depths,
    /// Whether a connection sends to where packets come from, and takes them from wherever the first one came.
    pub symmetric: bool,
    /// The tone that the transponder of modes conttest and netwtest answers with the other one.
    pub transponder_hears: CheckTone,
    /// After so long without a packet of a far end that has sent and is to send, [`super::Event::TimedOut`]; zero: never.
    pub time_out: Duration,
    /// What is poor quality.
    pub quality: Quality,
    /// NTP time of the origin of [`crate::proto::base::Time`]; 0 when it is not known.
    pub wall: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            law: Law::Mu,
            connections: 4,
            grain: 0,
            depths: Depths::default(),
            symmetric: false,
            transponder_hears: CheckTone::Co1,
            time_out: Duration::ZERO,
            quality: Quality::default(),
            wall: 0,
        }
    }
}
