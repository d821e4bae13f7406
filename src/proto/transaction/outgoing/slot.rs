//! One outstanding command, and the table of addresses it is tried at.

use super::super::Timers;
use super::super::round_trip::{Backoff, RoundTrip};
use super::ADDRESSES;
use super::delivery::Delivery;
use super::store::Stored;
use crate::proto::base::{AgentId, Time, TransactionId};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub(super) const UNSPECIFIED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Free,
    /// Nothing heard.
    Waiting,
    /// A provisional response came.
    Provisional,
    /// No copy leaves, and it is not given up: see [`Outgoing::hold`](super::Outgoing::hold).
    Held,
}

#[derive(Clone, Copy)]
/// A command that is outstanding, or room for one.
pub(super) struct Slot {
    /// The id; of a free slot, the one that ended last.
    pub(super) id: TransactionId,
    pub(super) phase: Phase,
    pub(super) agent: AgentId,
    pub(super) user: u64,
    pub(super) addresses: [SocketAddr; ADDRESSES],
    pub(super) address_count: u8,
    /// The address it is at.
    pub(super) current: u8,
    /// N of M-9: repeats to that address.
    pub(super) repeats: u8,
    /// It has its place among the new commands to its agent.
    pub(super) placed: bool,
    /// Its agent changed: the next copy is no repeat to the address.
    pub(super) moved: bool,
    /// The last address was given up, and the names are being looked up once more.
    pub(super) last_hope: bool,
    /// All copies.
    pub(super) copies: u32,
    pub(super) first_sent: Option<Time>,
    pub(super) last_sent: Time,
    /// When its next copy is due.
    pub(super) due: Time,
    /// The latest copy was reported not to have arrived.
    pub(super) unreachable: bool,
    pub(super) backoff: Backoff,
    pub(super) stored: Stored,
    pub(super) delivery: Delivery,
    /// When it got its final response.
    pub(super) ended: Option<Time>,
}

impl Slot {
    /// Room for a command.
    pub(super) fn free(timers: &Timers) -> Slot {
        Slot {
            id: 0,
            phase: Phase::Free,
            agent: AgentId(0),
            user: 0,
            addresses: [UNSPECIFIED; ADDRESSES],
            address_count: 0,
            current: 0,
            repeats: 0,
            placed: false,
            moved: false,
            last_hope: false,
            copies: 0,
            first_sent: None,
            last_sent: Time::ZERO,
            due: Time::ZERO,
            unreachable: false,
            backoff: RoundTrip::default().start(timers),
            stored: Stored::default(),
            delivery: Delivery::default(),
            ended: None,
        }
    }

    /// The address it is at.
    pub(super) fn to(&self) -> SocketAddr {
        self.addresses.get(usize::from(self.current)).copied().unwrap_or(UNSPECIFIED)
    }

    /// Where it is tried, from the first on.
    pub(super) fn set_addresses(&mut self, addresses: &[SocketAddr]) {
        (self.addresses, self.address_count) = list(addresses);
    }

    /// Whether there is an address it was not sent to yet.
    pub(super) fn untried(&self) -> bool {
        self.current + 1 < self.address_count
    }
}

/// The first [`ADDRESSES`] of `addresses`, and how many they are.
pub(super) fn list(addresses: &[SocketAddr]) -> ([SocketAddr; ADDRESSES], u8) {
    let mut list = [UNSPECIFIED; ADDRESSES];
    let count = addresses.len().min(ADDRESSES);
    for (place, address) in list.iter_mut().zip(addresses) {
        *place = *address;
    }
    (list, count as u8)
}
