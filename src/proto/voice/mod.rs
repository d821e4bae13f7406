//! The media of a DS0: octets of the trunk to and from RTP (RFC 3550, RFC 3551, RFC 4040, RFC 4733), who hears whom (RFC 3435 2.3.1).
//!
//! Pure: octets of the trunk, packets and orders go in; octets, packets and events come out; the trunk's clock drives it. One [`Ds0`] has all of
//! one channel: its connections, called legs here. A card calls [`Ds0::exchange`] for every span of time of the channel it has received, and
//! moves packets to and from the ports of the connections.
#![allow(dead_code)]

mod conceal;
mod ds0;
pub mod g711;
mod inbound;
mod leg;
pub mod playout;
pub mod rtp;
mod sender;
mod statistics;
mod telephone_event;

pub use ds0::{Ds0, Kind, Settings};
pub use g711::Law;
pub use playout::Depths;
pub use telephone_event::TelephoneEvent;

#[cfg(test)]
mod tests;
