//! Audio encodings a gateway can name, lists of them in order of preference, and the negotiation of RFC 3435 2.6.

use crate::proto::trunk::Coding;

/// What is known of one encoding (RFC 3551 table 4).
#[derive(Debug)]
pub struct EncodingFacts {
    /// The name in `L: a:` and in `a=rtpmap` (compared without case).
    pub name: &'static str,
    /// Its static payload type; `None` when it needs a dynamic one.
    pub payload_type: Option<u8>,
    /// RTP clock rate in Hz.
    pub clock: u32,
    /// Length of a codec frame in ms; the packetization period is a multiple of it.
    pub frame_ms: u16,
    /// Default packetization period in ms.
    pub default_ms: u16,
    /// Bit rate of the payload in bit/s.
    pub bits_per_second: u32,
    /// What a card for voice makes of it; `None`: it is only simulated.
    pub coding: Option<Coding>,
    /// The lines about it in a description of ours.
    pub attributes: &'static str,
}

const fn facts(
    name: &'static str,
    payload_type: Option<u8>,
    clock: u32,
    frame_ms: u16,
    default_ms: u16,
    bits_per_second: u32,
    coding: Option<Coding>,
) -> EncodingFacts {
    EncodingFacts { name, payload_type, clock, frame_ms, default_ms, bits_per_second, coding, attributes: "" }
}

/// With a payload type of our own choice, which the lines explain.
const fn dynamic(facts: EncodingFacts, attributes: &'static str) -> EncodingFacts {
    EncodingFacts { payload_type: None, attributes, ..facts }
}

/// Every encoding the program knows by name. Which of them a gateway offers is configuration and its card's ability.
pub const ENCODINGS: &[EncodingFacts] = &[
    facts("PCMU", Some(0), 8000, 1, 20, 64_000, Some(Coding::Mu)),
    facts("PCMA", Some(8), 8000, 1, 20, 64_000, Some(Coding::A)),
    facts("G729", Some(18), 8000, 10, 20, 8_000, None),
    facts("G723", Some(4), 8000, 30, 30, 6_300, None),
    facts("G728", Some(15), 8000, 1, 20, 16_000, None),
    facts("GSM", Some(3), 8000, 20, 20, 13_200, None),
    dynamic(facts("G726-32", None, 8000, 1, 20, 32_000, None), "a=rtpmap:102 G726-32/8000\r\n"),
    dynamic(facts("CLEARMODE", None, 8000, 1, 20, 64_000, Some(Coding::Clear)), "a=rtpmap:103 CLEARMODE/8000\r\n"),
];

/// The first payload type of the dynamic range (RFC 3551 3).
const DYNAMIC_FIRST: u8 = 96;

/// One encoding: its place in [`ENCODINGS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Encoding(u8);

impl Encoding {
    /// The encoding named `name`, letter case ignored.
    pub fn by_name(name: &[u8]) -> Option<Encoding> {
        // By far the most frequent ones, as they are written by nearly everybody.
        match name {
            b"PCMU" => return Some(Encoding(0)),
            b"PCMA" => return Some(Encoding(1)),
            b"G729" => return Some(Encoding(2)),
            _ => {}
        }
        let known = ENCODINGS.iter().position(|e| e.name.as_bytes().eq_ignore_ascii_case(name))?;
        Some(Encoding(known as u8))
    }

    /// The encoding with this static payload type.
    pub fn by_payload_type(payload_type: u8) -> Option<Encoding> {
        let known = ENCODINGS.iter().position(|e| e.payload_type == Some(payload_type))?;
        Some(Encoding(known as u8))
    }

    /// What is known of it.
    pub fn facts(self) -> &'static EncodingFacts {
        &ENCODINGS[usize::from(self.0) % ENCODINGS.len()]
    }

    fn bit(self) -> u8 {
        1 << (usize::from(self.0) % ENCODINGS.len())
    }

    /// The payload type we write for it: the static one, or one of our own choice from the dynamic range.
    pub fn payload_type(self) -> u8 {
        self.facts().payload_type.unwrap_or(DYNAMIC_FIRST + self.0)
    }

    /// What a card for voice makes of it; `None`: it is only simulated.
    pub fn coding(self) -> Option<Coding> {
        self.facts().coding
    }

    /// kbit/s on the wire at a packetization period of `period_ms`, IPv4, UDP and RTP headers included (RFC 3435 2.3.5).
    pub fn bandwidth_kbits(self, period_ms: u16) -> u32 {
        const HEADER_BITS: u32 = (20 + 8 + 12) * 8;
        let packets_per_second = 1000 / u32::from(period_ms.max(1));
        (self.facts().bits_per_second + packets_per_second * HEADER_BITS).div_ceil(1000)
    }

    /// The packetization period closest to `wanted_ms` that this encoding can do (RFC 3435 2.3.5: adapt, do not fail).
    pub fn closest_period(self, wanted_ms: u16) -> u16 {
        let frame = self.facts().frame_ms;
        let rounded = (wanted_ms.saturating_add(frame / 2) / frame) * frame;
        rounded.clamp(frame.max(PERIOD_MIN_MS.next_multiple_of(frame)), PERIOD_MAX_MS / frame * frame)
    }
}

/// Shortest packetization period in ms.
pub const PERIOD_MIN_MS: u16 = 5;
/// Longest packetization period in ms.
pub const PERIOD_MAX_MS: u16 = 200;

/// Encodings in order of preference, each at most once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Encodings {
    /// One bit for each that is in the list.
    members: u8,
    /// Four bits for each in order, the first one lowest.
    order: [u8; 4],
}

const _: () = assert!(Encodings::MAX <= 8);

impl Encodings {
    /// The most a list holds: every known encoding once.
    pub const MAX: usize = ENCODINGS.len();

    /// Appends `encoding` unless it is there already.
    pub fn push(&mut self, encoding: Encoding) {
        if !self.contains(encoding) {
            let order = u32::from_le_bytes(self.order) | u32::from(encoding.0) << (4 * self.members.count_ones());
            self.order = order.to_le_bytes();
            self.members |= encoding.bit();
        }
    }

    /// In order of preference.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Encoding> + '_ {
        let order = u32::from_le_bytes(self.order);
        (0..self.members.count_ones()).map(move |place| Encoding((order >> (4 * place)) as u8 & 15))
    }

    /// The most preferred one.
    pub fn first(&self) -> Option<Encoding> {
        self.iter().next()
    }

    /// Whether `encoding` is in the list.
    pub fn contains(&self, encoding: Encoding) -> bool {
        self.members & encoding.bit() != 0
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.members == 0
    }

    /// Those that are in `other` too, in this list's order.
    pub fn and(&self, other: &Encodings) -> Encodings {
        if self.members & !other.members == 0 {
            return *self;
        }
        self.iter().filter(|&e| other.contains(e)).collect()
    }
}

impl FromIterator<Encoding> for Encodings {
    fn from_iter<I: IntoIterator<Item = Encoding>>(iter: I) -> Encodings {
        let mut list = Encodings::default();
        iter.into_iter().for_each(|e| list.push(e));
        list
    }
}

/// The negotiation of RFC 3435 2.6 (F-7): approved = internal and `listed`; negotiated = approved and `remote`; the order comes from
/// `listed`, else from `remote`, else from `internal`. Empty means 534. Only what the current command carries takes part (G-LCO-15).
pub fn negotiate(internal: &Encodings, listed: Option<&Encodings>, remote: Option<&Encodings>) -> Encodings {
    match (listed, remote) {
        (None, None) => *internal,
        (Some(listed), None) => listed.and(internal),
        (None, Some(remote)) => remote.and(internal),
        (Some(listed), Some(remote)) => listed.and(internal).and(remote),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &str) -> Encodings {
        names.split_whitespace().map(|n| Encoding::by_name(n.as_bytes()).unwrap()).collect()
    }

    /// G-LCO-14, G-LCO-16.
    #[test]
    fn negotiation_orders_by_options_then_remote_then_internal() {
        let internal = list("PCMU PCMA");
        assert_eq!(negotiate(&internal, None, None), internal);
        assert_eq!(negotiate(&internal, Some(&list("PCMA G729 PCMU")), None), list("PCMA PCMU"));
        assert_eq!(negotiate(&internal, None, Some(&list("G729 PCMA"))), list("PCMA"));
        assert_eq!(negotiate(&internal, Some(&list("PCMU PCMA")), Some(&list("PCMA PCMU"))), list("PCMU PCMA"));
        assert!(negotiate(&internal, Some(&list("G729")), None).is_empty());
        assert!(negotiate(&internal, Some(&list("PCMU")), Some(&list("G729"))).is_empty());
    }

    /// G-LCO-03: the closest period the frame size allows.
    #[test]
    fn period_is_adapted_to_the_frame() {
        let period = |name: &str, ms| Encoding::by_name(name.as_bytes()).unwrap().closest_period(ms);
        assert_eq!(period("PCMU", 20), 20);
        assert!([20, 30].contains(&period("G729", 25)));
        assert_eq!(period("G723", 10), 30);
        assert_eq!(period("PCMU", 0), PERIOD_MIN_MS);
        assert_eq!(period("PCMU", 9999), PERIOD_MAX_MS);
        for facts in ENCODINGS {
            let e = Encoding::by_name(facts.name.as_bytes()).unwrap();
            assert_eq!(Encoding::by_name(facts.name.to_lowercase().as_bytes()), Some(e));
            assert_eq!(e.facts().name, facts.name);
            // G-SDP-04: the payload type as it is written elsewhere.
            let explained = format!("a=rtpmap:{} {}/{}\r\n", e.payload_type(), facts.name, facts.clock);
            assert_eq!(facts.attributes, if facts.payload_type.is_none() { &explained[..] } else { "" });
            assert!((0..1000).all(|ms| e.closest_period(ms) > 0 && e.closest_period(ms).is_multiple_of(e.facts().frame_ms)));
        }
    }

    /// G-LCO-04: payload plus IP, UDP and RTP overhead.
    #[test]
    fn bandwidth_counts_headers() {
        assert_eq!(Encoding::by_name(b"pcmu").unwrap().bandwidth_kbits(20), 80);
    }
}
