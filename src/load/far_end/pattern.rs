//! The tone and the pattern that far ends send and measure.

/// The frequency of the tone, in Hz: the usual one of line tests, which is no divisor of 8000.
pub const FREQUENCY: f64 = 1004.0;
/// Its level, in dBm0.
pub const LEVEL: f64 = -10.0;
/// The peak of a tone of 0 dBm0 in the linear form of G.711 (3.17 dBm0 is the largest, 8159 of 14 bits), in 16 bits.
pub const PEAK_0_DBM0: f64 = 22_663.0;
/// Octets in a second.
pub const RATE: f64 = 8_000.0;

/// A pattern of 2^15-1 bits (ITU-T O.150: x^15 + x^14 + 1), not inverted.
#[derive(Clone, Copy)]
pub struct Pattern {
    register: u16,
}

impl Pattern {
    pub fn new() -> Pattern {
        Pattern { register: 0x7FFF }
    }

    /// Where in the pattern it is; equal for equal places.
    pub fn register(self) -> u16 {
        self.register
    }

    /// The next eight bits, the first one sent highest.
    pub fn next(&mut self) -> u8 {
        let mut octet = 0;
        for _ in 0..8 {
            let bit = (self.register >> 14 ^ self.register >> 13) & 1;
            self.register = (self.register << 1 | bit) & 0x7FFF;
            octet = octet << 1 | bit as u8;
        }
        octet
    }
}

/// The errors of a pattern that comes.
#[derive(Default)]
pub struct Errors {
    /// The octets before: two of them say all that follow.
    seen: [u8; 2],
    count: u8,
    expected: Option<Pattern>,
    bad_in_row: u8,
    pub compared: u64,
    pub bits: u64,
    pub resyncs: u64,
}

/// So many octets in a row with errors are another place of the pattern.
const LOST_AFTER: u8 = 4;

impl Errors {
    /// The place of the pattern that comes next, once it is known.
    pub fn expected(&self) -> Option<Pattern> {
        self.expected
    }

    pub fn take(&mut self, octet: u8) {
        let Some(expected) = &mut self.expected else {
            self.seen = [self.seen[1], octet];
            self.count = (self.count + 1).min(2);
            let register = u16::from_be_bytes(self.seen) & 0x7FFF;
            // All zeros or all ones are silence, not the pattern.
            if self.count == 2 && register != 0 && self.seen[0] != self.seen[1] {
                self.expected = Some(Pattern { register });
            }
            return;
        };
        let wrong = (expected.next() ^ octet).count_ones();
        self.bad_in_row = if wrong == 0 { 0 } else { self.bad_in_row + 1 };
        if self.bad_in_row < LOST_AFTER {
            self.compared += 1;
            self.bits += u64::from(wrong);
            return;
        }
        (self.expected, self.count, self.bad_in_row) = (None, 0, 0);
        self.resyncs += u64::from(self.compared > 100);
    }
}
