//! Where frames begin. Every place of 193 and every frame of a multiframe is a hypothesis; each row of 193 bits strikes out those whose
//! framing bit it contradicts, 64 at a time.
//!
//! D4 is found when a single hypothesis has passed all of 48 framing bits (6 ms). A payload that looks the same keeps it from being found
//! until it looks different; only the alignment there was before has precedence then. ESF is found when a hypothesis has passed 24 framing
//! bits and its CRC was right twice: no payload has that by chance, however it imitates framing bits.
//!
//! A search is over after a while and begins anew, for the right hypothesis may have been struck out by a bit error while a wrong one lives on.

use super::bits::BitQueue;
use super::multiframe::Multiframe;
use super::{FRAME_BITS, FRAMES, Format, FramingBit};

/// A search.
#[derive(Debug)]
pub(super) struct Search {
    format: Format,
    /// By the frame of the first row: the places that are not struck out.
    alive: [[u64; 4]; FRAMES as usize],
    /// Rows since it began, and those of them that came.
    rows: u32,
    seen: u32,
    /// Searches in a row that ended with several hypotheses.
    ties: u32,
    /// Of ESF: hypotheses whose CRC is looked at.
    trials: [Option<Trial>; TRIALS],
    /// The frame that would be next in the first place of a row, if all were as it was before.
    before: Option<u8>,
}

/// A hypothesis whose CRC is looked at.
#[derive(Clone, Copy, Debug)]
struct Trial {
    place: usize,
    /// The frame it takes the first row for.
    first: u8,
    multiframe: Multiframe,
    matches: u8,
}

/// An alignment that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Where in the row.
    pub place: usize,
    /// The stream behind the frame that begins there in the row that was looked at.
    pub multiframe: Multiframe,
}

/// Hypotheses looked at together.
const TRIALS: usize = 8;
/// Rows of a search: of ESF twelve multiframes.
const D4_ROWS: u32 = 48;
const ESF_ROWS: u32 = 288;
/// Framing bits of ESF passed before a hypothesis counts.
const ESF_CHECKS: u32 = 24;
/// Framing bits of ESF passed before the CRC is looked at: one of 193 x 24 is then left by chance.
const TRY_AFTER: u32 = 12;
/// CRCs that must be right.
const MATCHES: u8 = 2;
/// Where several look alike in so many searches, the one there was before is taken.
const TIES: u32 = 10;
/// The 193 places of a row.
const PLACES: [u64; 4] = [u64::MAX, u64::MAX, u64::MAX, 1 << 63];

impl Search {
    /// A search that begins; `before`: the frame that is next at the first place, as it was until now.
    pub fn new(format: Format, before: Option<u8>) -> Search {
        // The two superframes of D4 that are taken together look alike: one of them is enough.
        let period = if format == Format::D4 { 12 } else { usize::from(FRAMES) };
        let alive = std::array::from_fn(|first| if first < period { PLACES } else { [0; 4] });
        Search { format, alive, rows: 0, seen: 0, ties: 0, trials: [None; TRIALS], before }
    }

    /// Looks at the row in front of `bits`, behind which there is one more; with `known` false it did not come.
    pub fn look(&mut self, bits: &BitQueue, known: bool) -> Option<Found> {
        if known {
            self.strike(&bits.row());
        }
        self.try_on(bits, known);
        let found = self.decide();
        self.rows += 1;
        let none_left = self.alive.iter().flatten().all(|places| *places == 0);
        if none_left || self.is_over() {
            let ties = if none_left { 0 } else { self.ties + 1 };
            *self = Search { ties, ..Search::new(self.format, self.before.map(|frame| self.frame(frame))) };
        }
        found
    }

    fn is_over(&self) -> bool {
        self.seen >= if self.format == Format::D4 { D4_ROWS } else { ESF_ROWS }
    }

    /// What is the frame of the present row to who takes the first one for `first`.
    fn frame(&self, first: u8) -> u8 {
        ((u32::from(first) + self.rows) % u32::from(FRAMES)) as u8
    }

    fn strike(&mut self, row: &[u64; 4]) {
        self.seen += 1;
        for first in 0..FRAMES {
            let FramingBit::Alignment(wanted) = self.format.framing_bit(self.frame(first)) else { continue };
            for (places, bits) in self.alive.get_mut(usize::from(first)).into_iter().flatten().zip(row) {
                *places &= if wanted { *bits } else { !bits };
            }
        }
    }

    /// Framing bits that each hypothesis has passed: every fourth one of ESF is for alignment.
    fn passed(&self) -> u32 {
        if self.format == Format::D4 { self.seen } else { self.seen / 4 }
    }

    /// The hypotheses that are left, `most` of them at most.
    fn left(&self, most: usize) -> impl Iterator<Item = (u8, usize)> {
        let places = |(first, alive): (u8, [u64; 4])| {
            (0..FRAME_BITS).filter(move |place| alive[place / 64] << (place % 64) & 1 << 63 != 0).map(move |place| (first, place))
        };
        let some = self.alive.into_iter().enumerate().filter(|(_, alive)| *alive != [0; 4]);
        some.map(|(first, alive)| (first as u8, alive)).flat_map(places).take(most)
    }

    fn is_left(&self, (first, place): (u8, usize)) -> bool {
        let places = self.alive.get(usize::from(first)).and_then(|alive| alive.get(place / 64));
        places.is_some_and(|places| places << (place % 64) & 1 << 63 != 0)
    }

    /// Looks at the CRC of the few hypotheses that are left.
    fn try_on(&mut self, bits: &BitQueue, known: bool) {
        if self.format == Format::D4 || self.passed() < TRY_AFTER {
            return;
        }
        let mut trials = self.trials.map(|trial| trial.filter(|trial| self.is_left((trial.first, trial.place))));
        for (first, place) in self.left(TRIALS) {
            if trials.iter().flatten().any(|trial| (trial.first, trial.place) == (first, place)) {
                continue;
            }
            let multiframe = Multiframe::new(self.format, self.frame(first));
            if let Some(room) = trials.iter_mut().find(|trial| trial.is_none()) {
                *room = Some(Trial { place, first, multiframe, matches: 0 });
            }
        }
        for trial in trials.iter_mut().flatten() {
            let (bit, frame) = bits.frame(trial.place);
            if trial.multiframe.pass(known.then_some((bit, &frame))).check == Some(true) {
                trial.matches += 1;
            }
        }
        self.trials = trials;
    }

    fn decide(&self) -> Option<Found> {
        if self.format == Format::Esf {
            let trial = self.trials.iter().flatten().find(|trial| trial.matches >= MATCHES && self.passed() >= ESF_CHECKS)?;
            return Some(Found { place: trial.place, multiframe: trial.multiframe });
        }
        if !self.is_over() {
            return None;
        }
        let mut left = self.left(2);
        let (first, place) = match (left.next(), left.next()) {
            (Some(only), None) => only,
            _ => self.left(TRIALS).find(|(first, place)| {
                let as_before = self.before.is_some_and(|before| before % 12 == *first);
                self.ties >= TIES && *place == 0 && as_before
            })?,
        };
        Some(Found { place, multiframe: Multiframe::new(self.format, (self.frame(first) + 1) % FRAMES) })
    }
}
