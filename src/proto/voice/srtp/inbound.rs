//! What comes to a connection.

use super::session::Session;
use super::{CONTROL_TAG, ENCRYPTED, INDEX};
use crate::proto::base::srtp::Crypto;
use crate::proto::voice::rtp::{self, array};

/// Sources that are told apart under one key. Each keeps its replays apart for as long as the key lasts, so none is forgotten for another one.
const SOURCES: usize = 32;
/// Octets of an RTCP packet that stay readable.
const CONTROL_HEAD: usize = 8;

/// Why a datagram was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rejected {
    /// The far end's key is not known yet: it may send before the answer with it is here.
    KeyUnknown,
    /// It came before, or is older than what is known of that.
    Replayed,
    /// It was made by somebody without the key, was changed on its way, is none, or the key is used up.
    Unauthentic,
}

/// The receiving half.
pub(super) struct Inbound {
    crypto: Crypto,
    sessions: Option<(Session, Session)>,
    media: Sources,
    control: Sources,
    /// RTP packets taken under this key.
    taken: u64,
    /// A source that sent under the key before, and how far it was.
    carried: Option<(u32, u64)>,
}

impl Inbound {
    pub fn new(crypto: &Crypto) -> Inbound {
        let sessions = Session::media(&crypto.key).zip(Session::control(&crypto.key));
        let (media, control) = (Sources::default(), Sources::default());
        Inbound { crypto: crypto.clone(), sessions, media, control, taken: 0, carried: None }
    }

    pub fn change(&mut self, crypto: &Crypto) {
        if self.crypto.key == crypto.key {
            self.crypto = crypto.clone();
        } else {
            *self = Inbound { carried: self.media.latest(), ..Inbound::new(crypto) };
        }
    }

    /// Decrypts the RTP packet in place: its length.
    pub fn unprotect(&mut self, room: &mut [u8]) -> Result<usize, Rejected> {
        let (session, _) = self.sessions.as_ref().ok_or(Rejected::Unauthentic)?;
        let length = room.len().checked_sub(self.crypto.suite.tag_octets()).ok_or(Rejected::Unauthentic)?;
        let (packet, tag) = room.split_at_mut(length);
        let (at, ssrc, sequence) = header(packet).ok_or(Rejected::Unauthentic)?;
        if self.taken >= self.crypto.lifetime {
            return Err(Rejected::Unauthentic);
        }
        let known = self.media.find(ssrc);
        let carried = self.carried.filter(|(source, last)| known.is_none() && *source == ssrc && *last > 0xffff);
        let guesses = match known {
            Some(window) => [window.guess(sequence), None],
            None => [Some(sequence.into()), carried.and_then(|(_, last)| near(last, sequence))],
        };
        let is_right = |index: &u64| session.is_tag(packet, &((index >> 16) as u32).to_be_bytes(), tag);
        if guesses[0].is_none() || guesses[0].is_some_and(|index| known.is_some_and(|window| window.has(index))) {
            return Err(Rejected::Replayed);
        }
        let index = guesses.into_iter().flatten().find(is_right).ok_or(Rejected::Unauthentic)?;
        self.media.note(ssrc, index)?;
        self.taken += 1;
        session.apply(ssrc, index, packet.get_mut(at..).unwrap_or_default());
        Ok(length)
    }

    /// The same of an RTCP packet.
    pub fn unprotect_control(&mut self, room: &mut [u8]) -> Result<usize, Rejected> {
        let (_, session) = self.sessions.as_ref().ok_or(Rejected::Unauthentic)?;
        let length = room.len().checked_sub(CONTROL_TAG).filter(|length| *length >= CONTROL_HEAD + INDEX).ok_or(Rejected::Unauthentic)?;
        let (octets, tag) = room.split_at_mut(length);
        let (packet, word) = octets.split_at(length - INDEX);
        let word = array(word, 0).map_or(0, u32::from_be_bytes);
        let ssrc = array(packet, 4).map_or(0, u32::from_be_bytes);
        let index = u64::from(word & !ENCRYPTED);
        if self.control.find(ssrc).is_some_and(|window| window.has(index)) {
            return Err(Rejected::Replayed);
        }
        if !session.is_tag(octets, &[], tag) {
            return Err(Rejected::Unauthentic);
        }
        self.control.note(ssrc, index)?;
        let length = length - INDEX;
        if word & ENCRYPTED != 0 {
            session.apply(ssrc, index, octets.get_mut(CONTROL_HEAD..length).unwrap_or_default());
        }
        Ok(length)
    }
}

/// Where the payload of a packet begins, its source and its sequence number.
fn header(packet: &[u8]) -> Option<(usize, u32, u16)> {
    Some((rtp::payload_at(packet)?, u32::from_be_bytes(array(packet, 8)?), u16::from_be_bytes(array(packet, 2)?)))
}

/// The index with this sequence number that is nearest to another one (RFC 3711 3.3.1); `None`: it would be below the first.
fn near(last: u64, sequence: u16) -> Option<u64> {
    last.checked_add_signed(i64::from(sequence.wrapping_sub(last as u16) as i16))
}

/// Sources that sent under a key.
#[derive(Default)]
struct Sources {
    windows: [Window; SOURCES],
    count: usize,
    /// That of the last packet.
    last: usize,
}

impl Sources {
    fn find(&self, ssrc: u32) -> Option<&Window> {
        let last = self.windows.get(self.last).filter(|window| self.last < self.count && window.ssrc == ssrc);
        last.or_else(|| self.windows.iter().take(self.count).find(|window| window.ssrc == ssrc))
    }

    /// A packet has come, whose tag is right.
    fn note(&mut self, ssrc: u32, index: u64) -> Result<(), Rejected> {
        let Sources { windows, count, last } = self;
        *last = match windows.iter().take(*count).position(|window| window.ssrc == ssrc) {
            Some(place) => place,
            None => {
                let window = windows.get_mut(*count).ok_or(Rejected::Unauthentic)?;
                *window = Window { ssrc, highest: index, seen: 0 };
                *count += 1;
                *count - 1
            }
        };
        if let Some(window) = windows.get_mut(*last) {
            window.note(index);
        }
        Ok(())
    }

    fn latest(&self) -> Option<(u32, u64)> {
        self.windows.get(self.last).filter(|_| self.last < self.count).map(|window| (window.ssrc, window.highest))
    }
}

/// What has come of a source: its highest index, and which of the 64 up to it (RFC 3711 3.3.2).
#[derive(Clone, Copy, Default)]
struct Window {
    ssrc: u32,
    highest: u64,
    /// Bit n: the one n below the highest.
    seen: u64,
}

impl Window {
    /// The index of a packet with this sequence number.
    fn guess(&self, sequence: u16) -> Option<u64> {
        near(self.highest, sequence)
    }

    /// Whether it came before, or cannot be told any more.
    fn has(&self, index: u64) -> bool {
        match self.highest.checked_sub(index) {
            None => false,
            Some(below @ 0..64) => self.seen >> below & 1 != 0,
            Some(_) => true,
        }
    }

    fn note(&mut self, index: u64) {
        if let Some(above) = index.checked_sub(self.highest) {
            self.seen = self.seen.checked_shl(u32::try_from(above).unwrap_or(64)).unwrap_or(0);
            self.highest = index;
        }
        self.seen |= 1u64.checked_shl((self.highest - index) as u32).unwrap_or(0);
    }
}
