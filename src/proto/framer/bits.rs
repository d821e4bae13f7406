//! A queue of bits that are written and read many at a time, in whichever place of an octet they begin.

use super::{CHANNELS, FRAME_BITS, Frame};

/// A queue of bits. The first bit of an octet is its highest (SAT-06).
#[derive(Debug)]
pub struct BitQueue {
    octets: Box<[u8]>,
    /// The first bit there is, and the one behind the last.
    start: usize,
    end: usize,
}

/// What is read beyond the last bit, in octets.
const BEYOND: usize = 4;

impl BitQueue {
    /// A queue for so many bits.
    pub fn new(bits: usize) -> BitQueue {
        BitQueue { octets: vec![0; bits.div_ceil(8) + 1 + BEYOND].into(), start: 0, end: 0 }
    }

    /// Bits in it.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Puts the first `bits` bits of `octets` behind; what there is no room for is left out.
    pub fn push(&mut self, octets: &[u8], bits: usize) {
        self.compact();
        let room = (self.octets.len() - BEYOND) * 8 - self.end;
        let bits = bits.min(octets.len() * 8).min(room);
        let octets = octets.get(..bits.div_ceil(8)).unwrap_or_default();
        let (place, shift) = (self.end / 8, self.end % 8);
        let Some(behind) = self.octets.get_mut(place..=place + octets.len()) else { return };
        if shift == 0 {
            behind.iter_mut().zip(octets).for_each(|(place, octet)| *place = *octet);
        } else {
            // What lies before in the first octet stays; the bits behind it are 0.
            let mut carried = behind.first().copied().unwrap_or_default();
            for (place, octet) in behind.iter_mut().zip(octets) {
                *place = carried | octet >> shift;
                carried = octet << (8 - shift);
            }
            if let Some(last) = behind.last_mut() {
                *last = carried;
            }
        }
        self.end += bits;
        self.clear_behind();
    }

    /// Leaves the first `bits` bits out.
    pub fn skip(&mut self, bits: usize) {
        self.start += bits.min(self.len());
    }

    /// The frame that begins `at` bits behind the first one, which is there as a whole.
    pub fn frame(&self, at: usize) -> (bool, Frame) {
        let bit = self.start + at;
        let first = self.octets.get(bit / 8).is_some_and(|octet| octet << (bit % 8) & 0x80 != 0);
        (first, self.octets_at(bit + 1))
    }

    /// 193 bits from the first on, 64 in each word, the first being the highest; of the last word only the highest counts.
    pub fn row(&self) -> [u64; 4] {
        let octets = self.octets_at(self.start);
        let (words, _) = octets.as_chunks::<8>();
        let word = |place: usize| words.get(place).map_or(0, |octets| u64::from_be_bytes(*octets));
        let last = self.frame(FRAME_BITS - 1).0;
        [word(0), word(1), word(2), u64::from(last) << 63]
    }

    /// Takes as many bits as `out` has room for, when there are so many.
    pub fn pop(&mut self, out: &mut [u8]) -> bool {
        if self.len() < out.len() * 8 {
            return false;
        }
        let (place, shift) = (self.start / 8, self.start % 8);
        let from = self.octets.get(place..).unwrap_or_default();
        shifted(from, shift, out);
        self.start += out.len() * 8;
        true
    }

    fn octets_at(&self, bit: usize) -> Frame {
        let mut octets = [0; CHANNELS];
        shifted(self.octets.get(bit / 8..).unwrap_or_default(), bit % 8, &mut octets);
        octets
    }

    /// Moves what there is to the front, but for the place in its octet.
    fn compact(&mut self) {
        let octets = self.start / 8;
        if octets > 0 {
            self.octets.copy_within(octets..self.end.div_ceil(8), 0);
            self.start -= octets * 8;
            self.end -= octets * 8;
        }
    }

    /// The bits behind the last one, in its octet, are 0.
    fn clear_behind(&mut self) {
        let (place, used) = (self.end / 8, self.end % 8);
        if let Some(octet) = self.octets.get_mut(place) {
            *octet &= !(0xFF >> used);
        }
    }
}

/// Octets that begin `shift` bits behind the first one of `from`.
fn shifted(from: &[u8], shift: usize, out: &mut [u8]) {
    let behind = from.get(1..).unwrap_or_default();
    for ((place, high), low) in out.iter_mut().zip(from).zip(behind) {
        *place = ((u16::from(*high) << 8 | u16::from(*low)) << shift >> 8) as u8;
    }
}
