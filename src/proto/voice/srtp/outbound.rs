//! What a connection sends.

use super::session::Session;
use super::{CONTROL_TAG, ENCRYPTED};
use crate::proto::base::srtp::{Crypto, LIFETIME};
use crate::proto::voice::rtp::{self, array};

/// The most RTCP packets under a key (RFC 3711 9.2).
const CONTROL_LIFETIME: u32 = 1 << 31;

/// The sending half.
pub(super) struct Outbound {
    crypto: Crypto,
    /// Without one nothing is sent.
    sessions: Option<(Session, Session)>,
    /// The source that sends, and the index of its last packet; one that has not sent has none.
    last: Option<(u32, u64)>,
    /// The index of the next RTCP packet.
    control: u32,
}

impl Outbound {
    pub fn new(crypto: &Crypto) -> Outbound {
        Outbound { crypto: crypto.clone(), sessions: sessions(crypto), last: None, control: 0 }
    }

    /// Whether it is this key.
    pub fn has(&self, crypto: &Crypto) -> bool {
        self.crypto.key == crypto.key
    }

    /// With another key all begins anew, but for the index of RTCP packets (RFC 3711 3.4).
    pub fn change(&mut self, crypto: &Crypto) {
        if !self.has(crypto) {
            (self.sessions, self.last) = (sessions(crypto), None);
        }
        self.crypto = crypto.clone();
    }

    /// Protects the RTP packet of this length in front of `room`: its new length.
    pub fn protect(&mut self, room: &mut [u8], length: usize) -> Option<usize> {
        let (session, _) = self.sessions.as_ref()?;
        let packet = room.get(..length)?;
        let at = rtp::payload_at(packet)?;
        let (ssrc, sequence) = (u32::from_be_bytes(array(packet, 8)?), u16::from_be_bytes(array(packet, 2)?));
        let index = match self.last {
            // A sender goes on from packet to packet, so a lower number is a wrap.
            Some((source, last)) if source == ssrc => last + u64::from(sequence.wrapping_sub(last as u16)),
            // A source has no past, and its key none with it: it must not have been one before (see `Leg::change`).
            _ => u64::from(sequence),
        };
        if self.last == Some((ssrc, index)) || index >= LIFETIME {
            return None;
        }
        session.apply(ssrc, index, room.get_mut(at..length)?);
        let rollover = (index >> 16) as u32;
        let tag = session.tag(room.get(..length)?, &rollover.to_be_bytes());
        self.last = Some((ssrc, index));
        append(room, length, tag.get(..self.crypto.suite.tag_octets())?)
    }

    /// The same of an RTCP packet.
    pub fn protect_control(&mut self, room: &mut [u8], length: usize) -> Option<usize> {
        let (_, session) = self.sessions.as_ref()?;
        let index = self.control;
        if index >= CONTROL_LIFETIME {
            return None;
        }
        let ssrc = u32::from_be_bytes(array(room.get(..length)?, 4)?);
        session.apply(ssrc, index.into(), room.get_mut(8..length)?);
        self.control += 1;
        let length = append(room, length, &(ENCRYPTED | index).to_be_bytes())?;
        let tag = session.tag(room.get(..length)?, &[]);
        append(room, length, tag.get(..CONTROL_TAG)?)
    }
}

fn sessions(crypto: &Crypto) -> Option<(Session, Session)> {
    Some((Session::media(&crypto.key)?, Session::control(&crypto.key)?))
}

fn append(room: &mut [u8], length: usize, octets: &[u8]) -> Option<usize> {
    room.get_mut(length..length + octets.len())?.copy_from_slice(octets);
    Some(length + octets.len())
}
