//! What protects the packets of a connection: SRTP and SRTCP (RFC 3711), with the keys of descriptions (RFC 4568).
//!
//! The ciphers are from libraries; what is ours is the transform: keys of a session from a master key, the index of a packet, its replays,
//! and where in a packet what is encrypted. A [`Guard`] has all of one connection: a packet goes in, and comes out of its one room changed,
//! without an allocation.
//!
//! Invariants: no two packets are encrypted under one key with one source and index; a packet that came counts for nothing before its tag is
//! right; without the far end's key nothing that comes is taken. MediaKeys are wiped when they are replaced, and with the guard.
//!
//! A new key begins anew with the roll-over counter at zero (RFC 4568 7.1.4), but for a source that goes on with its own (RFC 3711 3.3.1);
//! the same key again changes nothing.

mod inbound;
mod outbound;
mod session;
#[cfg(test)]
mod tests;

use self::inbound::Inbound;
pub use self::inbound::Rejected;
use self::outbound::Outbound;
use super::rtp::HEADER;
use super::sender::OCTETS_MAX;
use super::turn::Kind;
use crate::proto::base::srtp::{Crypto, MediaKeys};

/// The longest datagram that is taken, protected: beyond what one of ours is.
const ROOM: usize = HEADER + OCTETS_MAX + 64;
/// Octets of the tag of RTCP in every crypto-suite.
const CONTROL_TAG: usize = 10;
/// The word with E and the index behind an RTCP packet.
const INDEX: usize = 4;
/// In that word: what is before it is encrypted.
const ENCRYPTED: u32 = 1 << 31;

/// What protects the packets of a connection.
pub(super) struct Guard {
    out: Outbound,
    inbound: Option<Inbound>,
    room: [u8; ROOM],
}

impl Guard {
    /// One with these keys; `None` when there is none to send with.
    pub fn new(keys: &MediaKeys) -> Option<Box<Guard>> {
        let local = keys.local.as_ref()?;
        Some(Box::new(Guard { out: Outbound::new(local), inbound: keys.remote.as_ref().map(Inbound::new), room: [0; ROOM] }))
    }

    /// Whether it sends by this key.
    pub fn sends_by(&self, local: &Crypto) -> bool {
        self.out.has(local)
    }

    /// These are the keys from now on.
    pub fn change(&mut self, keys: &MediaKeys) {
        if let Some(local) = &keys.local {
            self.out.change(local);
        }
        match (&keys.remote, &mut self.inbound) {
            (Some(remote), Some(inbound)) => inbound.change(remote),
            (remote, inbound) => *inbound = remote.as_ref().map(Inbound::new),
        }
    }

    /// A packet of ours, protected; `None` when it is longer than any, or the key is used up.
    pub fn protect(&mut self, kind: Kind, packet: &[u8]) -> Option<&[u8]> {
        self.room.get_mut(..packet.len())?.copy_from_slice(packet);
        let length = match kind {
            Kind::Rtp => self.out.protect(&mut self.room, packet.len())?,
            Kind::Rtcp => self.out.protect_control(&mut self.room, packet.len())?,
        };
        self.room.get(..length)
    }

    /// The packet in a datagram that came.
    ///
    /// # Errors
    /// Why it is none of the far end's.
    pub fn unprotect(&mut self, kind: Kind, datagram: &[u8]) -> Result<&[u8], Rejected> {
        let inbound = self.inbound.as_mut().ok_or(Rejected::KeyUnknown)?;
        let room = self.room.get_mut(..datagram.len()).ok_or(Rejected::Unauthentic)?;
        room.copy_from_slice(datagram);
        let length = match kind {
            Kind::Rtp => inbound.unprotect(room)?,
            Kind::Rtcp => inbound.unprotect_control(room)?,
        };
        Ok(self.room.get(..length).unwrap_or_default())
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Guard")
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // It may hold what somebody said.
        zeroize::Zeroize::zeroize(&mut self.room);
    }
}
