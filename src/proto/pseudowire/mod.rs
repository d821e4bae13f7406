//! Pseudowires: a T1 or E1 carried in UDP packets, structure-aware by CESoPSN (RFC 5086) or bit by bit by SAToP (RFC 4553).
//!
//! Pure, for one direction of one pseudowire each:
//! - [`packet`]: what is in a packet: optional RTP header, control word, payload, signalling bits. Reading borrows the packet.
//! - [`receiver`]: the way from the packet network to the trunk: the jitter buffer, lost packets, the state of packet loss.
//! - [`playout`]: when a packet is played: the far end's clock, regained from its packets.
//!
//! `proto::circuit` makes a span of them; sockets belong to the card that has it.

pub mod packet;
pub mod playout;
pub mod receiver;

pub use packet::{Fragment, Header, Layout, Malformed, Packet, RtpSettings, Structure};
pub use playout::{Playout, PlayoutSettings};
pub use receiver::{Counted, Played, Receiver, ReceiverSettings, State};
