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
/// (RFC 3435 3.2.2.2, 3.2.2.5, 3.2.2.18: `0A` is not `A`).
#[derive(Clone, Copy)]
pub struct HexId {
    length: u8,
    digits: [u8; HexId::MAX],
}

impl HexId {
    /// The longest identifier, in digits.
    pub const MAX: usize = 32;
    /// No digits: "none". Never equal to an identifier that was parsed.
    pub const NONE: HexId = HexId { length: 0, digits: [0; HexId::MAX] };

    /// Reads 1 to 32 hexadecimal digits; anything else is `None`.
    pub fn parse(text: &[u8]) -> Option<HexId> {
        if text.is_empty() || text.len() > HexId::MAX || !text.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let mut digits = [0; HexId::MAX];
        digits[..text.len()].copy_from_slice(text);
        Some(HexId { length: text.len() as u8, digits })
    }

    /// `value` in upper-case hexadecimal, padded with zeros to `width` digits (1..=16).
    pub fn from_u64(value: u64, width: usize) -> HexId {
        let width = width.clamp(1, 16);
        let mut digits = [0; HexId::MAX];
        for (i, digit) in digits[..width].iter_mut().enumerate() {
            *digit = b"0123456789ABCDEF"[(value >> (4 * (width - 1 - i))) as usize & 15];
        }
        HexId { length: width as u8, digits }
    }

    /// The digits as they were written.
    pub fn as_bytes(&self) -> &[u8] {
        &self.digits[..usize::from(self.length).min(HexId::MAX)]
    }

    /// Whether this is [`HexId::NONE`].
    pub fn is_none(&self) -> bool {
        self.length == 0
    }
}

impl PartialEq for HexId {
    fn eq(&self, other: &HexId) -> bool {
        self.as_bytes().eq_ignore_ascii_case(other.as_bytes())
    }
}

impl Eq for HexId {}

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
        self.as_bytes().iter().try_for_each(|&b| write!(f, "{}", char::from(b)))
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
    }
}
