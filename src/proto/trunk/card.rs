//! What a trunk card does for the core that owns its spans: orders to it, indications from it.
//!
//! Media belongs to the card: it hands out the local address and port of a connection, moves audio as the mode says, counts, and sees
//! the line. Every order may be answered at once or later by an [`Indication`]; a connection is named by the slot of its core.

use super::{Defect, Facility};
use crate::proto::base::{EndpointIndex, Mode, Time};
use std::net::{IpAddr, SocketAddr};

/// A card driver, as one core sees it. It never blocks: what takes time is answered later by an indication.
pub trait Card {
    /// Takes a media resource for a connection of `endpoint` and says where it receives.
    fn open(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress>;

    /// Changes what an open connection does.
    fn modify(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<()>;

    /// Ends a connection, open or still opening (its late answer is then dropped by the card), and says what it counted.
    fn close(&mut self, now: Time, endpoint: EndpointIndex, connection: u32) -> MediaReport;

    /// What a connection has counted so far.
    fn report(&self, now: Time, connection: u32) -> MediaReport;

    /// The next thing the card has to say.
    fn poll(&mut self, now: Time) -> Option<Indication>;

    /// When to poll again at the latest; [`Time::NEVER`] when nothing will come by itself.
    fn deadline(&self) -> Time;

    /// An operator's order that only some cards understand; the error is for the operator.
    fn operate(&mut self, now: Time, order: &CardOrder) -> Result<(), &'static str>;
}

/// What a connection is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Media {
    /// Its mode.
    pub mode: Mode,
    /// Payload bytes per packet of the encoding in use.
    pub packet_bytes: u16,
    /// Packetization period in ms.
    pub period_ms: u16,
    /// Where it sends, when that is known.
    pub remote: Option<SocketAddr>,
    /// Whether the far end is another endpoint of this gateway: no RTP port is needed.
    pub inside: bool,
}

/// Where a connection receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MediaAddress {
    /// The address.
    pub address: IpAddr,
    /// The RTP port, even; RTCP is the next one. 0 for a connection inside the gateway.
    pub port: u16,
}

/// The answer to an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer<T> {
    /// Done.
    Now(T),
    /// An indication follows.
    Later,
    /// Not possible now.
    Refused(CardFault),
}

/// Why a card refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CardFault {
    /// No port or signal processor is free.
    Exhausted,
    /// The card, or this part of it, does not work.
    Broken,
}

/// What a card says by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Indication {
    /// The answer to an open that came later.
    Opened {
        /// The endpoint.
        endpoint: EndpointIndex,
        /// The connection.
        connection: u32,
        /// Where it receives.
        result: Result<MediaAddress, CardFault>,
    },
    /// The answer to a modify that came later.
    Modified {
        /// The endpoint.
        endpoint: EndpointIndex,
        /// The connection.
        connection: u32,
        /// Whether it was done.
        result: Result<(), CardFault>,
    },
    /// A defect of the line began or ended.
    Defect {
        /// Where.
        facility: Facility,
        /// What.
        defect: Defect,
        /// Whether it is present now.
        present: bool,
        /// Whether to take it for a failure (or the end of one) at once, without integration.
        at_once: bool,
    },
}

/// What a connection has counted (RFC 3435 3.2.2.7); saturating at 999,999,999 when written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MediaReport {
    /// PS: packets sent.
    pub packets_sent: u32,
    /// OS: payload octets sent.
    pub octets_sent: u32,
    /// PR: packets received.
    pub packets_received: u32,
    /// OR: payload octets received.
    pub octets_received: u32,
    /// PL: packets lost.
    pub packets_lost: u32,
    /// JI: interarrival jitter in ms.
    pub jitter_ms: u32,
    /// LA: latency in ms.
    pub latency_ms: u32,
}

/// What an operator can order a simulated card to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CardOrder {
    /// A defect begins or ends.
    Defect {
        /// Where.
        facility: Facility,
        /// What.
        defect: Defect,
        /// Whether it begins.
        present: bool,
        /// Without integration.
        at_once: bool,
    },
    /// All defects of a facility end.
    Clear {
        /// Where.
        facility: Facility,
        /// Without integration.
        at_once: bool,
    },
    /// Orders take so many milliseconds from now on; 0: at once, `u32::MAX`: they are never answered.
    Delay(u32),
    /// The next so many orders are refused.
    Refuse(u32),
    /// So many packets per million are lost on the way here from now on.
    Loss(u32),
}
