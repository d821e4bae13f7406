//! Connections of this core's endpoints: a slab sized at boot.

use super::blobs::Blob;
use super::encoding::Encodings;
use super::options::{Network, Options};
use crate::proto::base::{EndpointIndex, HexId, Mode, Time};
use crate::proto::trunk::TelephoneEvents;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU8;

/// The identifier the gateway gives a connection: eight hexadecimal digits on the wire. A 32-bit counter run through a bijection, so
/// no value returns before 2^32 connections of the core (G-CRX-02: never within 3 minutes) and none can be guessed from the last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ConnectionId(pub u32);

impl ConnectionId {
    /// Digits on the wire.
    pub const DIGITS: usize = 8;

    /// As it is written.
    pub fn hex(self) -> HexId {
        HexId::from_u64(u64::from(self.0), ConnectionId::DIGITS)
    }

    /// The identifier an agent wrote; `None` when it cannot be one of ours (identifiers are strings: `0A` is not `A`).
    pub fn from_hex(id: &HexId) -> Option<ConnectionId> {
        id.to_u32(ConnectionId::DIGITS).map(ConnectionId)
    }
}

/// Our half of the session: what the local description says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalMedia {
    /// Where media is received.
    pub address: IpAddr,
    /// The RTP port.
    pub port: u16,
    /// What may be received and sent, in order of preference.
    pub encodings: Encodings,
    /// Packetization period in ms.
    pub period_ms: u16,
    /// The telephone events (RFC 4733) that may be received, as type [`TELEPHONE_EVENTS`].
    pub events: TelephoneEvents,
    /// Whether it is protected (RTP/SAVP): its keys are among the [`Secrets`](super::Secrets).
    pub protected: bool,
    /// Session version of the `o=` line; grows with every change (G-SDP-02).
    pub version: u32,
}

impl Default for LocalMedia {
    fn default() -> LocalMedia {
        let (address, encodings) = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), Encodings::default());
        LocalMedia { address, port: 0, encodings, period_ms: 20, events: TelephoneEvents::None, protected: false, version: 1 }
    }
}

/// The payload type we write for telephone events; no encoding has it.
pub const TELEPHONE_EVENTS: u8 = 101;

/// Payload types of the far end's own choice; `None`: it has not named any.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RemoteTypes {
    /// Of CLEARMODE; type 0 is never its.
    pub clear: Option<NonZeroU8>,
    /// Of telephone events.
    pub events: Option<NonZeroU8>,
}

/// The other end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Remote {
    /// None yet: the connection is half-open (G-CRX-10).
    #[default]
    Unknown,
    /// RTP to this address and port.
    Rtp(IpAddr, u16),
    /// Another endpoint of this gateway, by a second endpoint or `c=LOCAL` (RFC 3435 3.4.2).
    Local(EndpointIndex, ConnectionId),
}

/// One connection. Two cache lines: with tens of thousands up, bringing them in is what a command on one costs most.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub struct Connection {
    /// The endpoint it belongs to.
    pub endpoint: EndpointIndex,
    /// Its identifier.
    pub id: ConnectionId,
    /// The call it belongs to.
    pub call: HexId,
    /// Its mode.
    pub mode: Mode,
    /// What the agent asked for so far.
    pub options: Options,
    /// Our half.
    pub local: LocalMedia,
    /// The other half.
    pub remote: Remote,
    /// Its payload types.
    pub remote_types: RemoteTypes,
    /// The remote description as it came.
    pub remote_text: Blob,
    /// When it was created.
    pub created: Time,
    /// Not there yet for anybody: its media is being opened, or its other half made.
    pub pending: bool,
    /// That it has been up for long was an event already (G/ld).
    pub told_of_age: bool,
}

impl Connection {
    /// Whether it is one between two endpoints of this gateway, or is to be (`nt:LOCAL`): its description has the form of those (RFC 3435 3.4.2).
    pub fn is_inside(&self) -> bool {
        match self.remote {
            Remote::Local(..) => true,
            Remote::Rtp(..) => false,
            Remote::Unknown => self.options.network == Some(Network::Local),
        }
    }
}

const _: () = assert!(size_of::<Option<Connection>>() == 128);

/// The place of a connection in the slab of its core.
pub type ConnectionSlot = u32;

/// No connection.
pub const NO_CONNECTION: ConnectionSlot = u32::MAX;

/// The slab. Slots are given out again last freed first; a slot never used stays untouched memory.
pub struct Connections {
    slots: Vec<Option<Connection>>,
    free: Vec<ConnectionSlot>,
    limit: usize,
    count: u32,
    ids: Ids,
}

impl Connections {
    /// Room for `limit` connections; `seed` starts the identifiers.
    pub fn new(limit: u32, seed: u64) -> Connections {
        let limit = limit as usize;
        Connections {
            slots: Vec::with_capacity(limit),
            free: Vec::with_capacity(limit),
            limit,
            count: 0,
            ids: Ids { next: seed as u32, mask: (seed >> 32) as u32 },
        }
    }

    /// The most there can be.
    pub fn limit(&self) -> u32 {
        self.limit as u32
    }

    /// Connections up now.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether `n` more fit.
    pub fn room_for(&self, n: usize) -> bool {
        self.limit - self.slots.len() + self.free.len() >= n
    }

    /// A fresh identifier.
    pub fn fresh_id(&mut self) -> ConnectionId {
        self.ids.next()
    }

    /// Keeps `connection`; `None` when the slab is full.
    pub fn insert(&mut self, connection: Connection) -> Option<ConnectionSlot> {
        let slot = match self.free.pop() {
            Some(slot) => {
                *self.slots.get_mut(slot as usize)? = Some(connection);
                slot
            }
            None if self.slots.len() < self.limit => {
                self.slots.push(Some(connection));
                (self.slots.len() - 1) as ConnectionSlot
            }
            None => return None,
        };
        self.count += 1;
        Some(slot)
    }

    /// Takes a connection out.
    pub fn remove(&mut self, slot: ConnectionSlot) -> Option<Connection> {
        let connection = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        self.count -= 1;
        Some(connection)
    }

    /// The connection in `slot`.
    pub fn get(&self, slot: ConnectionSlot) -> Option<&Connection> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// The connection in `slot`, to change.
    pub fn get_mut(&mut self, slot: ConnectionSlot) -> Option<&mut Connection> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }
}

/// The counter behind [`ConnectionId`].
struct Ids {
    next: u32,
    mask: u32,
}

impl Ids {
    fn next(&mut self) -> ConnectionId {
        self.next = self.next.wrapping_add(1);
        // Multiplication by an odd number and exclusive-or are bijections on 32 bits.
        let mixed = self.next.wrapping_mul(0x9e37_79b1) ^ self.mask;
        ConnectionId(mixed ^ (mixed >> 15))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G-CRX-02.
    #[test]
    fn identifiers_do_not_return_in_a_hundred_thousand_cycles() {
        let mut connections = Connections::new(2, 0xfeed_f00d_1234_5678);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..100_000 {
            let id = connections.fresh_id();
            assert!(seen.insert(id));
            assert_eq!(ConnectionId::from_hex(&id.hex()), Some(id));
            let slot = connections.insert(Connection { id, ..Connection::default() }).unwrap();
            assert_eq!(connections.remove(slot).unwrap().id, id);
        }
        assert_eq!(connections.count(), 0);
    }

    #[test]
    fn the_slab_is_bounded_and_forgets_nothing() {
        let mut connections = Connections::new(2, 1);
        let a = connections.insert(Connection::default()).unwrap();
        let b = connections.insert(Connection::default()).unwrap();
        assert!(connections.insert(Connection::default()).is_none() && !connections.room_for(1));
        assert!(connections.remove(a).is_some() && connections.remove(a).is_none());
        assert!(connections.room_for(1) && connections.get(b).is_some());
    }

    /// `0A` is not `A`: an identifier of another length is none of ours.
    #[test]
    fn only_eight_digits_name_a_connection() {
        assert_eq!(ConnectionId::from_hex(&HexId::parse(b"0000000a").unwrap()), Some(ConnectionId(10)));
        assert_eq!(ConnectionId::from_hex(&HexId::parse(b"A").unwrap()), None);
    }
}
