//! Tones that are known by how they go on: reorder, special information tones, the preamble of a fax; and a digital pattern.
//!
//! Blocks of 30 ms, overlapping by half, are each one of a few sounds. Blocks of one sound are a segment, whose length is known to within
//! two blocks; what is heard is told by the last segments.

use super::bank::{Found, Overlapping};
use crate::proto::voice::g711::Law;
use crate::proto::voice::leg::BLOCK;

/// Octets of a block, and ms from one to the next.
const LENGTH: usize = 240;
const STEP_MS: u32 = 15;
/// Reorder; first, second and third special information tone; the upper channel of V.21: zero, one, and the line that its flags have beside one.
const HZ: [f32; 10] = [480.0, 620.0, 913.8, 985.2, 1370.6, 1428.5, 1776.7, 1850.0, 1650.0, 1613.0];
/// So many blocks in a row of another sound end a segment.
const IN_A_ROW: u8 = 3;
/// So much of all energy is in a tone, or in two.
const SHARE: f32 = 0.7;
/// The same of the flags of V.21, which are spread by their keying: of the ones, and of the zeros, of which there are few.
const ONES_SHARE: f32 = 0.38;
const ZEROS_SHARE: f32 = 0.025;
/// The weakest that counts, in dBm0.
const WEAKEST_DBM0: f32 = -42.0;
/// The first two special information tones are short (274 ms) or long (380 ms); in between lies the border. Segments of neither are none.
const SHORT_MS: u32 = 327;
const INFORMATION_MS: std::ops::RangeInclusive<u32> = 200..=460;
/// The third is known after so long.
const THIRD_MS: u32 = 225;
/// A pulse or a pause of reorder is 250 ms.
const REORDER_MS: std::ops::RangeInclusive<u32> = 180..=330;
/// The preamble of a fax lasts a second; it is known after so long.
const PREAMBLE_MS: u32 = 400;
/// So many octets in a row are a pattern: 100 ms.
const PATTERN: u32 = 800;

/// Special information tones: first and second frequency, and which of them are long (RFC 3660 2.3, T.16).
const INFORMATION: [(usize, usize, bool, bool); 7] = [
    (2, 5, false, true),
    (3, 4, false, true),
    (3, 5, true, true),
    (2, 4, true, true),
    (2, 4, false, false),
    (3, 4, true, false),
    (2, 5, true, false),
];

/// What is listened for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::proto::voice) struct Awaited {
    pub tones: bool,
    pub pattern: bool,
}

/// What is heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Reorder: 480 and 620 Hz, four times a second on and off.
    Reorder,
    /// The special information tone with this number, 1 to 7.
    Information(u8),
    /// The preamble of V.21, with which a fax begins to answer.
    Preamble,
    /// This octet, again and again.
    Pattern(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sound {
    Silence,
    Tone(usize),
    Pair,
    Keyed,
    Other,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    sound: Sound,
    blocks: u32,
}

impl Segment {
    fn ms(self) -> u32 {
        self.blocks.saturating_mul(STEP_MS)
    }
}

/// Listens on one circuit.
#[derive(Clone, Copy, Debug)]
pub(in crate::proto::voice) struct Progresses {
    law: Law,
    awaited: Awaited,
    banks: Overlapping<10>,
    weakest: f32,
    /// The present segment, and those before, the latest first.
    now: Segment,
    before: [Segment; 3],
    /// The sound that may come next, and for how many blocks.
    next: (Sound, u8),
    /// The present segment was told of.
    told: bool,
    /// The last octet, and how often it has come in a row.
    run: (u8, u32),
}

impl Progresses {
    /// For one circuit of this law.
    pub fn new(law: Law, awaited: Awaited) -> Progresses {
        let silence = Segment { sound: Sound::Silence, blocks: 0 };
        Progresses {
            law,
            awaited,
            banks: Overlapping::new(&HZ, LENGTH),
            weakest: law.amplitude(WEAKEST_DBM0).powi(2) / 2.0,
            now: silence,
            before: [silence; 3],
            next: (Sound::Silence, 0),
            told: false,
            run: (0, 0),
        }
    }

    /// What it listens for.
    pub fn awaited(&self) -> Awaited {
        self.awaited
    }

    /// Hears octets, at most [`BLOCK`] of them.
    pub fn push(&mut self, octets: &[u8], tell: &mut impl FnMut(Progress)) {
        if self.awaited.pattern {
            for &octet in octets {
                self.run = if octet == self.run.0 { (octet, self.run.1.saturating_add(1)) } else { (octet, 1) };
                if self.run.1 == PATTERN {
                    tell(Progress::Pattern(octet));
                }
            }
        }
        if !self.awaited.tones {
            return;
        }
        let mut values = [0.0; BLOCK];
        values.iter_mut().zip(octets).for_each(|(value, &octet)| *value = f32::from(self.law.decode(octet)));
        let Some(values) = values.get(..octets.len()) else { return };
        let mut banks = self.banks;
        banks.push(values, &mut |found| {
            if let Some(progress) = self.note(sound(found, self.weakest)) {
                tell(progress);
            }
        });
        self.banks = banks;
    }

    fn note(&mut self, sound: Sound) -> Option<Progress> {
        self.next = if sound == self.next.0 { (sound, self.next.1.saturating_add(1)) } else { (sound, 1) };
        self.now.blocks = self.now.blocks.saturating_add(1);
        if sound != self.now.sound && self.next.1 >= IN_A_ROW {
            let blocks = u32::from(self.next.1);
            let [first, second, _] = self.before;
            self.before = [Segment { blocks: self.now.blocks - blocks, ..self.now }, first, second];
            (self.now, self.told) = (Segment { sound, blocks }, false);
        }
        let known = self.judge().filter(|_| !self.told)?;
        self.told = true;
        Some(known)
    }

    /// What the present segment ends.
    fn judge(&self) -> Option<Progress> {
        let [last, before, first] = self.before;
        match self.now.sound {
            Sound::Keyed if self.now.ms() >= PREAMBLE_MS => Some(Progress::Preamble),
            Sound::Tone(6) if self.now.ms() >= THIRD_MS => {
                let long = |segment: Segment| INFORMATION_MS.contains(&segment.ms()).then_some(segment.ms() > SHORT_MS);
                let (Sound::Tone(one), Sound::Tone(two)) = (before.sound, last.sound) else { return None };
                let tones = (one, two, long(before)?, long(last)?);
                let place = INFORMATION.iter().position(|known| *known == tones)?;
                Some(Progress::Information(place as u8 + 1))
            }
            // On, off, on, and off again.
            Sound::Silence => {
                let sounds = [last.sound, before.sound, first.sound] == [Sound::Pair, Sound::Silence, Sound::Pair];
                let lengths = [last, before, first].into_iter().all(|segment| REORDER_MS.contains(&segment.ms()));
                (sounds && lengths).then_some(Progress::Reorder)
            }
            _ => None,
        }
    }
}

/// What a block is.
fn sound((powers, energy): Found<10>, weakest: f32) -> Sound {
    if energy < weakest {
        return Sound::Silence;
    }
    let share = |place: usize| powers.get(place).map_or(0.0, |power| power / 2.0 / energy);
    let (low, high) = (share(0), share(1));
    if low + high > SHARE && low > 0.15 && high > 0.15 {
        return Sound::Pair;
    }
    if let Some(tone) = (2..=6).find(|&place| share(place) > SHARE) {
        return Sound::Tone(tone);
    }
    if share(8) + share(9) > ONES_SHARE && share(7) > ZEROS_SHARE { Sound::Keyed } else { Sound::Other }
}
