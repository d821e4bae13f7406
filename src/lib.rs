//! Tollgate, a trunking gateway's control plane.
//!
//! Two halves that never mix. [`proto`] is plain state machines: bytes and a timestamp go in, bytes and orders come out; it does
//! no IO, reads no clock and no randomness and has no `unsafe`. `host` is the machine-facing shell: cores, rings, sockets, cards,
//! clocks. `docs/architecture.md` is the map.

pub mod proto;

#[cfg(feature = "host")]
pub mod config;
#[cfg(feature = "host")]
pub mod host;
#[cfg(feature = "host")]
pub mod load;
#[cfg(feature = "sim")]
pub mod sim;
