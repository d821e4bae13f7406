//! Where in a multiframe a stream is that is aligned, and what its framing bits say of it.

use super::crc::Crc;
use super::{FRAMES, Format, Frame, FramingBit};

/// An aligned stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Multiframe {
    format: Format,
    /// The frame that comes next.
    frame: u8,
    /// Of the multiframe that runs, and of the one before.
    crc: Crc,
    before: Option<Crc>,
    /// The CRC that came, of the one before.
    came: Crc,
    /// Whether all of the one that runs is there.
    whole: bool,
}

/// What a frame was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    /// Its number.
    pub frame: u8,
    /// Whether its framing bit is wrong; `None` when it is none for alignment.
    pub wrong: Option<bool>,
    /// A bit of the data link.
    pub link: Option<bool>,
    /// At the end of a multiframe: whether the CRC of the one before was right; `None` when that is not known.
    pub check: Option<bool>,
}

impl Multiframe {
    /// One whose frame `frame` comes next.
    pub fn new(format: Format, frame: u8) -> Multiframe {
        Multiframe { format, frame, crc: Crc::default(), before: None, came: Crc::default(), whole: frame == 0 }
    }

    /// The frame that comes next.
    pub fn next(&self) -> u8 {
        self.frame
    }

    /// A frame came, or with `None` one is missing.
    pub fn pass(&mut self, came: Option<(bool, &Frame)>) -> Passed {
        let frame = self.frame;
        self.frame = (frame + 1) % FRAMES;
        let mut passed = Passed { frame, wrong: None, link: None, check: None };
        self.whole &= came.is_some();
        if let Some((bit, octets)) = came {
            match self.format.framing_bit(frame) {
                FramingBit::Alignment(wanted) => passed.wrong = Some(bit != wanted),
                FramingBit::DataLink => passed.link = Some(bit),
                FramingBit::Check(place) => self.came = self.came.with_bit(place, bit),
            }
            if self.format == Format::Esf {
                self.crc = self.crc.with(octets);
            }
        }
        if self.frame == 0 {
            let came = self.whole.then_some(self.came).filter(|_| self.format == Format::Esf);
            passed.check = self.before.and_then(|before| came.map(|came| came == before));
            self.before = self.whole.then_some(self.crc);
            (self.crc, self.came, self.whole) = (Crc::default(), Crc::default(), true);
        }
        passed
    }
}
