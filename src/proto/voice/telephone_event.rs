//! Telephone events (RFC 4733 2.3): the four octets of one.

use super::rtp::array;

/// What a packet says of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TelephoneEvent {
    /// Which; 0 to 15 are the keys of a telephone.
    pub code: u8,
    /// Whether it is over.
    pub end: bool,
    /// How loud, in -dBm0, 0..=63.
    pub volume: u8,
    /// How long it has lasted, in units of the timestamp.
    pub duration: u16,
}

impl TelephoneEvent {
    /// Octets of one.
    pub const OCTETS: usize = 4;

    /// Reads the first event of a payload.
    pub fn read(payload: &[u8]) -> Option<TelephoneEvent> {
        let [code, flags, high, low] = array(payload, 0)?;
        Some(TelephoneEvent { code, end: flags & 0x80 != 0, volume: flags & 0x3f, duration: u16::from_be_bytes([high, low]) })
    }

    /// As it is sent.
    pub fn write(&self) -> [u8; TelephoneEvent::OCTETS] {
        let [high, low] = self.duration.to_be_bytes();
        [self.code, self.volume & 0x3f | if self.end { 0x80 } else { 0 }, high, low]
    }

    /// The key of a telephone whose event this is.
    pub fn key(&self) -> Option<u8> {
        KEYS.get(usize::from(self.code)).copied()
    }

    /// The event of a key, letter case ignored.
    pub fn of_key(key: u8) -> Option<u8> {
        KEYS.iter().position(|known| known.eq_ignore_ascii_case(&key)).map(|code| code as u8)
    }
}

/// The keys of events 0 to 15 (RFC 4733 table 3).
const KEYS: &[u8; 16] = b"0123456789*#ABCD";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_four_octets() {
        let event = TelephoneEvent { code: 11, end: true, volume: 10, duration: 0x1234 };
        assert_eq!(event.write(), [11, 0x8a, 0x12, 0x34]);
        assert_eq!(TelephoneEvent::read(&[11, 0x8a, 0x12, 0x34, 99]), Some(event));
        assert_eq!(TelephoneEvent::read(&[11, 0x8a, 0x12]), None);
        assert_eq!((event.key(), TelephoneEvent::of_key(b'd')), (Some(b'#'), Some(15)));
    }
}
