//! From frames to bits.

use super::bits::BitQueue;
use super::crc::Crc;
use super::remote::{PATTERN, SECOND};
use super::{CHANNELS, FRAME_BITS, FRAMES, Format, Frame, FramingBit, robbed};

/// The sending half of a T1.
#[derive(Debug)]
pub struct Framer {
    format: Format,
    signalled: bool,
    bits: BitQueue,
    frame: u8,
    /// Of the multiframe that runs, and of the one before, which is told in it.
    crc: Crc,
    check: Crc,
    /// What the data link repeats, the bit that is next the highest.
    link: u16,
    remote_alarm: bool,
    abcd: Frame,
}

/// The data link says nothing: flags of HDLC.
const IDLE: u16 = 0x7E7E;

impl Framer {
    /// One that begins with a multiframe. `bits_max`: see [`Framer::take`]. With `signalled` bits of the octets are robbed.
    pub fn new(format: Format, signalled: bool, bits_max: usize) -> Framer {
        Framer {
            format,
            signalled,
            bits: BitQueue::new(bits_max + 2 * FRAME_BITS),
            frame: 0,
            crc: Crc::default(),
            check: Crc::default(),
            link: IDLE,
            remote_alarm: false,
            abcd: [0; CHANNELS],
        }
    }

    /// Whether the far end is told that it is not heard (RAI).
    pub fn tell_remote_alarm(&mut self, is: bool) {
        if self.remote_alarm != is {
            self.remote_alarm = is;
            self.link = if is { PATTERN } else { IDLE };
        }
    }

    /// Frames that are needed for so many bits.
    pub fn frames_for(&self, bits: usize) -> usize {
        bits.saturating_sub(self.bits.len()).div_ceil(FRAME_BITS)
    }

    /// Whether the ABCD bits of the channels are needed for the next frame.
    pub fn wants_bits(&self) -> bool {
        self.signalled && self.frame == 0
    }

    /// The ABCD bits of the multiframe that begins.
    pub fn give_bits(&mut self, abcd: &Frame) {
        self.abcd = *abcd;
    }

    /// A frame.
    pub fn push(&mut self, mut octets: Frame) {
        if let Some(place) = robbed(self.frame).filter(|_| self.signalled) {
            // A superframe of D4 has A and B only, twice in 24 frames.
            let place = if self.format == Format::D4 { place % 2 } else { place };
            for (octet, bits) in octets.iter_mut().zip(self.abcd) {
                *octet = *octet & 0xFE | bits >> (3 - place) & 1;
            }
        }
        if self.format == Format::D4 && self.remote_alarm {
            octets.iter_mut().for_each(|octet| *octet &= !SECOND);
        }
        let bit = match self.format.framing_bit(self.frame) {
            FramingBit::Alignment(is) => is,
            FramingBit::Check(place) => self.check.bit(place),
            FramingBit::DataLink => {
                let next = self.link & 0x8000 != 0;
                self.link = self.link.rotate_left(1);
                next
            }
        };
        self.bits.push(&[if bit { 0x80 } else { 0 }], 1);
        self.bits.push(&octets, CHANNELS * 8);
        if self.format == Format::Esf {
            self.crc = self.crc.with(&octets);
        }
        self.frame = (self.frame + 1) % FRAMES;
        if self.frame == 0 {
            self.check = std::mem::take(&mut self.crc);
        }
    }

    /// Takes as many bits as `out` has room for, at most `bits_max`; false when there are not so many.
    pub fn take(&mut self, out: &mut [u8]) -> bool {
        self.bits.pop(out)
    }

    /// Takes a frame into 25 octets, with seven bits of padding (RFC 4553 5.2); false when there is none.
    pub fn take_padded(&mut self, out: &mut [u8]) -> bool {
        if self.bits.len() < FRAME_BITS {
            return false;
        }
        let row = self.bits.row();
        let octets = row.iter().flat_map(|word| word.to_be_bytes());
        out.iter_mut().zip(octets).for_each(|(place, octet)| *place = octet);
        self.bits.skip(FRAME_BITS);
        true
    }
}
