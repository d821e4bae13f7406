//! Where frames begin. Every place of 193 and every frame of a multiframe is a hypothesis; each row of 193 bits strikes out those whose
//! framing bit it contradicts, 64 at a time.
//!
//! D4 is found when the same hypothesis alone has passed all of 48 framing bits (6 ms) three times in a row: once may be that a bit error struck
//! out the right one and left an imitation. A payload that looks the same keeps it from being found until it looks different; only the
//! alignment there was before has precedence then.
//!
//! ESF is found when a hypothesis has passed 24 framing bits and its CRC was right twice in a row, four times where others are left as well: a
//! payload that imitates framing bits has that by chance once in 64^4 times. One whose CRC was wrong twice is struck out, and another has
//! its place; which ones are looked at goes round, so however many imitate, the right one has its turn. On a line with so many errors
//! that hardly a CRC is right, framing bits where they were before are enough.
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
    /// Searches that ended with several hypotheses, up to [`TIES`].
    ties: u32,
    /// Of D4: the hypothesis that was left alone by the search before, and by how many in a row.
    winner: Option<(u8, usize)>,
    wins: u32,
    /// Of ESF: hypotheses whose CRC is looked at.
    trials: [Option<Trial>; TRIALS],
    /// The hypothesis that was taken for a trial last; the next is one behind it.
    turn: (u8, usize),
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
    /// CRCs that were right in a row, and that were wrong.
    matches: u8,
    wrong: u8,
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
const TRIALS: usize = 16;
/// Rows of a search: of ESF twelve multiframes.
const D4_ROWS: u32 = 48;
const ESF_ROWS: u32 = 288;
/// Framing bits of ESF passed before a hypothesis counts.
const ESF_CHECKS: u32 = 24;
/// Framing bits of ESF passed before the CRC is looked at: one of 193 x 24 is then left by chance.
const TRY_AFTER: u32 = 12;
/// Rows after which no trial is begun, for it could not end: a part of a multiframe, a whole one, and four that are told to be right.
const LAST_TRIAL: u32 = ESF_ROWS - 144;
/// CRCs that must be right in a row: of the only hypothesis that is left, and of one among several.
const MATCHES_ALONE: u8 = 2;
const MATCHES: u8 = 4;
/// A hypothesis with so many wrong ones is struck out.
const WRONG_MAX: u8 = 2;
/// Searches of D4 in a row that the same hypothesis must win.
const WINS: u32 = 3;
/// Where several look alike in so many searches, the one there was before is taken.
const TIES: u32 = 10;
/// The 193 places of a row.
const PLACES: [u64; 4] = [u64::MAX, u64::MAX, u64::MAX, 1 << 63];

impl Search {
    /// A search that begins; `before`: the frame that is next at the first place, as it was until now.
    pub fn new(format: Format, before: Option<u8>) -> Search {
        // The two superframes of D4 that are taken together look alike: one of them is enough.
        let alive = std::array::from_fn(|first| if first < usize::from(period(format)) { PLACES } else { [0; 4] });
        let (trials, turn) = ([None; TRIALS], (0, 0));
        Search { format, alive, rows: 0, seen: 0, ties: 0, winner: None, wins: 0, trials, turn, before }
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
            self.begin_anew(none_left);
        }
        found
    }

    /// The next search, which knows how this one ended.
    fn begin_anew(&mut self, none_left: bool) {
        let is_tie = self.left(2).count() == 2;
        let ties = if none_left { self.ties.saturating_sub(1) } else { TIES.min(self.ties + u32::from(is_tie)) };
        let moved = |(first, place): (u8, usize)| (self.frame(first) % period(self.format), place);
        let next = Search::new(self.format, self.before.map(|frame| self.frame(frame)));
        let (winner, wins) = if none_left { (None, 0) } else { (self.winner.map(moved), self.wins) };
        *self = Search { ties, winner, wins, turn: moved(self.turn), ..next };
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

    /// The first hypothesis behind `after` that is left and not in a trial, all round.
    fn next_for_trial(&self, after: (u8, usize), trials: &[Option<Trial>]) -> Option<(u8, usize)> {
        let is_tried = |hypothesis: (u8, usize)| trials.iter().flatten().any(|trial| (trial.first, trial.place) == hypothesis);
        let mut first = None;
        let mut free = self.left(usize::MAX).filter(|hypothesis| !is_tried(*hypothesis)).inspect(|one| first = first.or(Some(*one)));
        let behind = free.find(|hypothesis| *hypothesis > after);
        drop(free);
        behind.or(first)
    }

    fn strike_out(&mut self, (first, place): (u8, usize)) {
        if let Some(places) = self.alive.get_mut(usize::from(first)).and_then(|alive| alive.get_mut(place / 64)) {
            *places &= !(1 << 63 >> (place % 64));
        }
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
        while self.seen <= LAST_TRIAL
            && let Some(room) = trials.iter().position(Option::is_none)
            && let Some((first, place)) = self.next_for_trial(self.turn, &trials)
        {
            let multiframe = Multiframe::new(self.format, self.frame(first));
            trials[room] = Some(Trial { place, first, multiframe, matches: 0, wrong: 0 });
            self.turn = (first, place);
        }
        for trial in trials.iter_mut().flatten() {
            let (bit, frame) = bits.frame(trial.place);
            match trial.multiframe.pass(known.then_some((bit, &frame))).check {
                Some(true) => trial.matches += 1,
                Some(false) => (trial.matches, trial.wrong) = (0, trial.wrong + 1),
                None => {}
            }
            if trial.wrong >= WRONG_MAX {
                self.strike_out((trial.first, trial.place));
            }
        }
        self.trials = trials;
    }

    fn decide(&mut self) -> Option<Found> {
        match self.format {
            Format::D4 => self.decide_d4(),
            Format::Esf => self.decide_esf(),
        }
    }

    /// The only hypothesis that is left.
    fn only(&self) -> Option<(u8, usize)> {
        let mut left = self.left(2);
        left.next().filter(|_| left.next().is_none())
    }

    /// The alignment there was before, when it is left.
    fn as_before(&self) -> Option<(u8, usize)> {
        self.before.map(|before| (before % period(self.format), 0)).filter(|before| self.is_left(*before))
    }

    fn decide_esf(&self) -> Option<Found> {
        if self.passed() < ESF_CHECKS {
            return None;
        }
        let only = self.only();
        let matches = if only.is_some() { MATCHES_ALONE } else { MATCHES };
        if let Some(trial) = self.trials.iter().flatten().find(|trial| trial.matches >= matches) {
            return Some(Found { place: trial.place, multiframe: trial.multiframe });
        }
        let before = self.as_before()?;
        (only == Some(before) || self.is_over()).then(|| self.found(before))
    }

    fn decide_d4(&mut self) -> Option<Found> {
        if !self.is_over() {
            return None;
        }
        let only = self.only();
        self.wins = match only {
            None => 0,
            Some(_) if only == self.winner => self.wins + 1,
            Some(_) => 1,
        };
        self.winner = only;
        let before = self.as_before();
        let won = only.filter(|_| self.wins >= WINS || only == before);
        won.or(before.filter(|_| self.ties >= TIES)).map(|hypothesis| self.found(hypothesis))
    }

    fn found(&self, (first, place): (u8, usize)) -> Found {
        Found { place, multiframe: Multiframe::new(self.format, (self.frame(first) + 1) % FRAMES) }
    }
}

/// Frames until the framing bits repeat.
fn period(format: Format) -> u8 {
    if format == Format::D4 { FRAMES / 2 } else { FRAMES }
}
