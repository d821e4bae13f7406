//! Identifiers.

use std::fmt;

/// An MGCP transaction identifier, 1..=999,999,999 (RFC 3435 3.2.1.2); 0 is accepted from others and never sent (O-3).
pub type TransactionId = u32;

/// The largest transaction identifier.
pub const TRANSACTION_ID_MAX: TransactionId = 999_999_999;

/// A core: its place in the list of all cores of the plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CoreId(pub u8);

/// A received datagram's buffer: the core that received it and the buffer's number there. It only names the buffer; the bytes
/// are read through the host's frame table, and the frame stays occupied until its owner releases it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FrameRef {
    /// The core that received the datagram and alone may release the frame.
    pub core: CoreId,
    /// The frame's number on that core.
    pub index: u32,
}

/// A configured agent: its place in the list of agents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct AgentId(pub u8);

/// An endpoint (one timeslot): its place in the order of the topology, which keeps a span's timeslots together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct EndpointIndex(pub u32);

/// Consecutive endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EndpointRange {
    /// The first one.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl EndpointRange {
    /// Whether `endpoint` is one of them.
    pub fn contains(self, endpoint: EndpointIndex) -> bool {
        endpoint.0.wrapping_sub(self.first) < self.count
    }

    /// Each of them in order.
    pub fn iter(self) -> impl Iterator<Item = EndpointIndex> + use<> {
        (self.first..self.first.saturating_add(self.count)).map(EndpointIndex)
    }
}

/// A call, connection or request identifier: 1 to 32 hexadecimal digits, compared as a string with letter case ignored
/// (RFC 3435 3.2.2.2, 3.2.2.5, 3.2.2.18: `0A` is not `A`). Kept as a number and its width: half the size of the text, and compared
/// at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HexId {
    length: u8,
    value: [u8; HexId::MAX / 2],
}

impl HexId {
    /// The longest identifier, in digits.
    pub const MAX: usize = 32;
    /// No digits: "none". Never equal to an identifier that was parsed.
    pub const NONE: HexId = HexId { length: 0, value: [0; HexId::MAX / 2] };

    /// Reads 1 to 32 hexadecimal digits; anything else is `None`.
    pub fn parse(text: &[u8]) -> Option<HexId> {
        if text.is_empty() || text.len() > HexId::MAX {
            return None;
        }
        let (high, low) = text.split_at(text.len().saturating_sub(16));
        let high = if high.is_empty() { 0 } else { hex_value(high)? };
        let value = u128::from(high) << 64 | u128::from(hex_value(low)?);
        Some(HexId { length: text.len() as u8, value: value.to_ne_bytes() })
    }

    /// The lowest `width` digits (1..=16) of `value`, padded with zeros.
    pub fn from_u64(value: u64, width: usize) -> HexId {
        let width = width.clamp(1, 16);
        HexId { length: width as u8, value: u128::from(value & (u64::MAX >> (64 - 4 * width))).to_ne_bytes() }
    }

    /// How many digits it has, 0..=32.
    pub fn width(&self) -> usize {
        usize::from(self.length)
    }

    /// The value of an identifier of exactly `width` digits, at most 8.
    pub fn to_u32(&self, width: usize) -> Option<u32> {
        (self.width() == width && width <= 8).then_some(u128::from_ne_bytes(self.value) as u32)
    }

    /// Writes the digits, in upper case, into `out`, which is [`HexId::width`] bytes long.
    pub fn write(&self, out: &mut [u8]) {
        let mut value = u128::from_ne_bytes(self.value);
        let (front, words) = out.as_rchunks_mut::<8>();
        for word in words.iter_mut().rev() {
            *word = eight_digits_of(value as u32);
            value >>= 32;
        }
        let skipped = 8 - front.len();
        front.iter_mut().zip(eight_digits_of(value as u32).iter().skip(skipped)).for_each(|(to, &digit)| *to = digit);
    }

    /// The digits, in upper case, of an identifier that has at most 8, the first one in the lowest byte.
    #[inline]
    pub fn short_text(&self) -> Option<u64> {
        let digits = || u64::from_le_bytes(eight_digits_of(u128::from_ne_bytes(self.value) as u32));
        (1..=8).contains(&self.width()).then(|| digits() >> (8 * (8 - self.width())))
    }

    /// The digits, in upper case, in `room`.
    pub fn text<'b>(&self, room: &'b mut [u8; HexId::MAX]) -> &'b [u8] {
        let text = room.get_mut(..self.width()).unwrap_or_default();
        self.write(text);
        text
    }

    /// Whether this is [`HexId::NONE`].
    pub fn is_none(&self) -> bool {
        self.length == 0
    }
}

/// The value of up to 16 hexadecimal digits and nothing else.
#[inline]
fn hex_value(text: &[u8]) -> Option<u64> {
    let (front, words) = text.as_rchunks::<8>();
    let mut value = 0;
    if !front.is_empty() {
        value = match text.first_chunk::<8>() {
            // The first eight, without those that come again.
            Some(first) => eight_digits(*first)? >> (4 * (8 - front.len())),
            None => {
                // Behind as many zeros as are missing.
                let word = front.iter().fold(u64::from_be_bytes([b'0'; 8]), |word, &digit| word << 8 | u64::from(digit));
                eight_digits(word.to_be_bytes())?
            }
        };
    }
    words.iter().try_fold(value, |value, word| Some(value << 32 | eight_digits(*word)?))
}

/// A one in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// The value of eight hexadecimal digits, all at once.
#[inline]
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    let word = u64::from_be_bytes(text);
    // Only letters have this bit; they are folded to lower case.
    let letters = word >> 6 & ONES;
    let values = (word & (15 * ONES)).wrapping_add(9 * letters);
    // Written again they must be what they were.
    let beyond_nine = (values & (15 * ONES)).wrapping_add(6 * ONES) >> 4 & ONES;
    let again = (values & (15 * ONES)) + u64::from(b'0') * ONES + u64::from(b'a' - b'9' - 1) * beyond_nine;
    if again != word | letters << 5 {
        return None;
    }
    let pairs = (values | values >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some((fours | fours >> 16) & 0xffff_ffff)
}

/// The eight hexadecimal digits of `value`, all at once.
#[inline]
fn eight_digits_of(value: u32) -> [u8; 8] {
    let fours = (u64::from(value) | u64::from(value) << 16) & 0x0000_ffff_0000_ffff;
    let pairs = (fours | fours << 8) & 0x00ff_00ff_00ff_00ff;
    let values = (pairs | pairs << 4) & (15 * ONES);
    let beyond_nine = (values + 6 * ONES) >> 4 & ONES;
    (values + u64::from(b'0') * ONES + u64::from(b'A' - b'9' - 1) * beyond_nine).to_be_bytes()
}

impl Default for HexId {
    fn default() -> HexId {
        HexId::NONE
    }
}

impl fmt::Debug for HexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for HexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.width() {
            0 => Ok(()),
            width => write!(f, "{:0width$X}", u128::from_ne_bytes(self.value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_ids_are_strings_without_case() {
        let id = |text: &str| HexId::parse(text.as_bytes());
        assert_eq!(id("fde234c8"), id("FDE234C8"));
        assert_ne!(id("0A"), id("A"));
        assert!(id("").is_none() && id("xyz").is_none());
        assert!(id(&"1".repeat(32)).is_some() && id(&"1".repeat(33)).is_none());
        assert_eq!(HexId::from_u64(0xbeef, 8).to_string(), "0000BEEF");
        assert_eq!((HexId::from_u64(u64::MAX, 4), HexId::from_u64(0xbeef, 8)), (id("FfFf").unwrap(), id("0000bEEf").unwrap()));
        assert_eq!((id("0000BEEF").unwrap().to_u32(8), id("BEEF").unwrap().to_u32(8)), (Some(0xbeef), None));
    }

    #[test]
    fn hex_ids_are_written_as_they_are_compared() {
        let digits = "0123456789ABCDEFfedcba9876543210";
        for length in 1..=HexId::MAX {
            for text in [&digits[..length], &digits[32 - length..]] {
                let id = HexId::parse(text.as_bytes()).unwrap();
                let mut written = vec![b'.'; length];
                id.write(&mut written);
                assert_eq!(String::from_utf8(written).unwrap(), text.to_ascii_uppercase());
                let short = id.short_text().map(|word| String::from_utf8(word.to_le_bytes()[..length].to_vec()).unwrap());
                assert_eq!(short, (length <= 8).then(|| text.to_ascii_uppercase()));
                assert_eq!((id.to_string(), id.width()), (text.to_ascii_uppercase(), length));
                assert_eq!(HexId::parse(text.to_ascii_lowercase().as_bytes()), Some(id));
                let mut bytes = text.as_bytes().to_vec();
                for at in 0..length {
                    let right = bytes[at];
                    for byte in (0..=255u8).filter(|byte| !byte.is_ascii_hexdigit()) {
                        bytes[at] = byte;
                        assert_eq!(HexId::parse(&bytes), None, "{}", bytes.escape_ascii());
                    }
                    bytes[at] = right;
                }
            }
        }
    }
}
