//! What is seen of a DS0 from both its sides.

mod keys;
mod modes;
mod path;
mod protected;
mod quality;
mod reports;
mod tones;
mod world;

use super::*;
use crate::proto::base::{Mode, Time};
use crate::proto::trunk::{Coding, Media, MediaReport, Payloads, TelephoneEvents};
use std::net::SocketAddr;

/// The far end of connection `n`.
pub(super) fn remote(n: u32) -> SocketAddr {
    ([192, 0, 2, 1 + n as u8], 6_000).into()
}

pub(super) const MU: Payloads = Payloads {
    sent: Some((Coding::Mu, 0)),
    received: [Some(0), Some(8), Some(103)],
    events_sent: None,
    events_received: None,
    events: TelephoneEvents::None,
};

/// 20 ms of mu law to and from the far end of connection `n`.
pub(super) fn media(mode: Mode, n: u32) -> Media {
    Media { mode, packet_bytes: 160, period_ms: 20, remote: Some(remote(n)), payloads: MU, ..Media::default() }
}

/// The mean level of octets, in dBm0.
pub(super) fn level(law: Law, octets: &[u8]) -> f32 {
    let power: f64 = octets.iter().map(|&octet| f64::from(law.decode(octet)).powi(2)).sum();
    let sine = f64::from(law.amplitude(0.0)).powi(2) / 2.0;
    (10.0 * (power / octets.len() as f64 / sine).log10()) as f32
}
