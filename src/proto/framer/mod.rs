//! DS1 framing, found in a stream of bits and made for one: superframe (D4) and extended superframe (ESF) (ANSI T1.403, ITU-T G.704 2.1;
//! RFC 4805 3.4; T1A-01..07).
//!
//! Pure, for one direction of one T1 each:
//! - [`receive`]: bits in, frames of 24 octets out, with the ABCD bits robbed from them, and what is wrong;
//! - [`send`]: frames in, bits out, with framing bits, CRC-6, data link and robbed bits;
//! - [`search`]: where frames begin, for all 193 places and all frames of a multiframe at once.
//!
//! A frame is 193 bits: the framing bit and an octet of each channel. Frames are counted from 0 to 23 in both formats; two superframes of D4
//! are taken together, so robbed bits of four frames are A, B, C and D in ESF, and A, B, A, B in D4 (CES-14).
//!
//! What is not done: the framing of J1 (another CRC), ESF without a CRC, reports and loop codes in the data link, zero-byte
//! time-slot interchange. Pulses cannot be seen here, so bipolar violations are never counted.

pub mod bits;
mod crc;
mod multiframe;
pub mod receive;
mod remote;
pub mod search;
pub mod send;
#[cfg(test)]
mod tests;

pub use receive::{Defects, Deframer};
pub use send::Framer;

/// Bits of a frame.
pub const FRAME_BITS: usize = 193;
/// Channels of a T1.
pub const CHANNELS: usize = 24;
/// Frames that are counted together.
pub const FRAMES: u8 = 24;

/// The octets of a frame, by channel.
pub type Frame = [u8; CHANNELS];

/// How a T1 is framed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Superframe: twelve frames, framing bits only.
    D4,
    /// Extended superframe: 24 frames, with CRC-6 and a data link of 4 kbit/s.
    Esf,
}

/// What a framing bit is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FramingBit {
    /// It has this value.
    Alignment(bool),
    /// A bit of the data link.
    DataLink,
    /// Bit `n` of the CRC of the multiframe before, the highest being 0.
    Check(u8),
}

/// Framing bits of a superframe: those of odd frames (counted from 1) are Ft, of even ones Fs.
const D4: [bool; 12] = [true, false, false, false, true, true, false, true, true, true, false, false];
/// Framing bits of frames 4, 8, ... 24 of an extended superframe.
const ESF: [bool; 6] = [false, false, true, false, true, true];

impl Format {
    /// What the framing bit of frame `frame` is for.
    pub fn framing_bit(self, frame: u8) -> FramingBit {
        let frame = usize::from(frame % FRAMES);
        match self {
            Format::D4 => FramingBit::Alignment(D4[frame % 12]),
            Format::Esf if frame % 4 == 3 => FramingBit::Alignment(ESF[frame / 4]),
            Format::Esf if frame % 4 == 1 => FramingBit::Check((frame / 4) as u8),
            Format::Esf => FramingBit::DataLink,
        }
    }
}

/// The bit of ABCD that is robbed from the octets of frame `frame`: 0 for A.
fn robbed(frame: u8) -> Option<u8> {
    (frame % 6 == 5).then_some(frame / 6)
}
