//! The media of a DS0: octets of the trunk to and from RTP (RFC 3550, RFC 3551, RFC 3711, RFC 4040, RFC 4733), who hears whom (RFC 3435 2.3.1).
//!
//! Pure: octets of the trunk, packets and orders go in; octets, packets and events come out; the trunk's clock drives it. One [`Ds0`] has all of
//! one channel: its connections, called legs here, the signals on it and what is listened for. A card calls [`Ds0::exchange`] for every span
//! of time of the channel it has received, and moves packets to and from the ports of the connections.
//!
//! Invariants: memory is taken when the DS0 is made (but for the tables of a gain and the keys of a connection that asks for them); a block costs what its
//! connections cost; nothing is listened for that nobody waits for.

mod circuit;
mod conceal;
mod control;
mod detect;
mod ds0;
mod ears;
mod event;
pub mod g711;
mod inbound;
mod keys;
mod leg;
mod patch;
pub mod playout;
mod quality;
mod rtcp;
pub mod rtp;
mod sender;
mod settings;
mod signals;
mod silence;
mod srtp;
mod statistics;
mod telephone_event;
mod tone;
mod transponder;
mod turn;
mod voiceband;

pub use detect::{Progress, SingleTone, SingleTones};
pub use ds0::Ds0;
pub use event::{Counted, Event, Wanted};
pub use g711::Law;
pub use playout::{Depths, Played};
pub use quality::Quality;
pub use settings::Settings;
pub use telephone_event::TelephoneEvent;
pub use turn::Kind;

#[cfg(test)]
mod tests;
