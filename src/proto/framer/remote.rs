//! RAI (yellow alarm) as each format tells it (T1A-06, T1A-07).

use super::{Format, Frame};

/// What the far end says of what it receives.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Remote {
    is_alarm: bool,
    /// Bits of the data link that came last, and how many of the slot that runs.
    link: u16,
    link_bits: u8,
    /// Slots in which the pattern was, the newest the lowest.
    slots: u16,
    /// Second-sent bits of the superframe that runs, and frames of it.
    ones: u32,
    frames: u8,
    /// Superframes in a row that contradict `is_alarm`.
    doubts: u16,
}

/// RAI in the data link of ESF: eight ones and eight zeros, over and over.
pub(super) const PATTERN: u16 = 0xFF00;
/// Slots of 16 bits that are looked at, and those of them with the pattern that are RAI.
const SLOTS: u16 = (1 << 10) - 1;
const SLOTS_MIN: u32 = 7;
/// The second-sent bit of an octet, which is 0 in every channel while D4 tells RAI.
pub(super) const SECOND: u8 = 0x40;
/// So many of the 288 of a superframe may be wrong.
const ONES_MAX: u32 = 8;
/// Superframes until RAI is there (336 ms), and until it is gone (150 ms).
const DECLARE: u16 = 224;
const CLEAR: u16 = 100;

impl Remote {
    pub fn is_alarm(&self) -> bool {
        self.is_alarm
    }

    /// A bit of the data link of ESF came.
    pub fn link(&mut self, bit: bool) {
        self.link = self.link << 1 | u16::from(bit);
        self.slots |= u16::from(self.link == PATTERN);
        self.link_bits += 1;
        if self.link_bits < 16 {
            return;
        }
        self.link_bits = 0;
        match (self.slots & SLOTS).count_ones() {
            SLOTS_MIN.. => self.is_alarm = true,
            0 => self.is_alarm = false,
            _ => {}
        }
        self.slots <<= 1;
    }

    /// A frame came.
    pub fn frame(&mut self, format: Format, octets: &Frame) {
        if format != Format::D4 {
            return;
        }
        self.ones += octets.iter().map(|octet| u32::from(octet & SECOND != 0)).sum::<u32>();
        self.frames += 1;
        if self.frames < 12 {
            return;
        }
        let is_yellow = self.ones <= ONES_MAX;
        (self.ones, self.frames) = (0, 0);
        self.doubts = if is_yellow == self.is_alarm { 0 } else { self.doubts + 1 };
        if self.doubts >= if is_yellow { DECLARE } else { CLEAR } {
            (self.is_alarm, self.doubts) = (is_yellow, 0);
        }
    }
}
