//! Digit maps as bounded automata: what a dialled string matches, and how long to wait for the next digit (RFC 3435 2.1.5, RFC 3660 2.2
//! and 2.7; G-DMP-01..16).
//!
//! A map becomes a row of positions, at most one for each of its bytes; a [`Matcher`] holds the set of positions that the digits so far
//! may have come to, one bit each. A digit costs four passes over the row, whatever the map looks like: there is no backtracking and
//! nothing to blow up. The map does not keep its text, and which events are digits is not decided here.

use crate::proto::base::Time;
use crate::proto::codec::h248;
use crate::proto::codec::mgcp::{self, SymbolSet};
use std::time::Duration;

/// The longest map, in bytes (2048 must be supported, G-DMP-13).
pub const MAP_MAX: usize = 4096;

/// A compiled digit map. Compiling another one into it uses its memory again.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DigitMap {
    /// The positions of all strings, each followed by an end.
    positions: Vec<Position>,
}

/// Why a map cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DigitMapError {
    /// It is no digit map: 510.
    Malformed,
    /// It has a letter of no package, or `P` elsewhere than at the end of a string: 537.
    Letter,
    /// It is longer than [`MAP_MAX`].
    TooLong,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Position {
    /// One of these comes next; `repeated`: any number of them, none included. `wait`: how long it is waited for.
    Symbol { symbols: SymbolSet, repeated: bool, wait: Wait },
    /// The string is complete. `yields` (letter `P`): that only counts while no other string may still match.
    End { yields: bool },
}

/// Which timer runs while a digit is awaited (RFC 3525 7.1.14.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Wait {
    /// Short when the digits are complete, long when they are not.
    #[default]
    ByState,
    /// `S` stands in the string.
    Short,
    /// `L` stands in the string.
    Long,
}

/// How far digits have come in a map where the longest string wins (RFC 3525 7.1.14.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// They are a string of it.
    pub complete: bool,
    /// More may come.
    pub open: bool,
    /// The timer until the next digit.
    pub wait: Wait,
}

/// What the digits so far are to the map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Match {
    /// The beginning of a string of it, not all of one.
    Partial,
    /// A string of it (G-DMP-07).
    Full,
    /// Neither (G-DMP-06).
    None,
}

/// How long to wait between digits; `None` in a [`Matcher::feed`] when timer T was not asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DigitTimers {
    /// T-partial: while more digits are needed.
    pub partial: Duration,
    /// T-critical: when only the timer is missing.
    pub critical: Duration,
}

/// How far the digits of one endpoint have come in its map.
#[derive(Clone, Debug)]
pub struct Matcher {
    /// One bit for each position that may come next; meaningless before the first digit.
    active: Vec<u64>,
    begun: bool,
    deadline: Time,
}

impl DigitMap {
    /// Compiles the text of a map.
    pub fn compile(text: &[u8]) -> Result<DigitMap, DigitMapError> {
        let mut map = DigitMap::default();
        map.recompile(text)?;
        Ok(map)
    }

    /// Compiles the text of another map into this one, which is of no use when that fails.
    pub fn recompile(&mut self, text: &[u8]) -> Result<(), DigitMapError> {
        self.positions.clear();
        each_position(text, |position| self.positions.push(position))
    }

    /// Compiles a map of H.248 into this one: E is `*` and F is `#` (RFC 3525 E.6), and no digit is a long one, so alternatives that want
    /// one with Z do not match. False: it is longer than [`MAP_MAX`].
    pub fn recompile_h248(&mut self, map: &h248::DigitMap<'_>) -> bool {
        self.positions.clear();
        if map.as_bytes().len() > MAP_MAX {
            return false;
        }
        for string in map.strings() {
            let (mut wait, mut held) = (Wait::ByState, false);
            for position in string.flatten() {
                wait = if position.short {
                    Wait::Short
                } else if position.long {
                    Wait::Long
                } else {
                    wait
                };
                held |= position.held;
                if position.symbols != 0 {
                    let symbols = if std::mem::take(&mut held) { SymbolSet::EMPTY } else { symbols_of(position.symbols) };
                    self.positions.push(Position::Symbol { symbols, repeated: position.repeated, wait });
                }
            }
            self.positions.push(Position::End { yields: false });
        }
        true
    }

    fn get(&self, place: usize) -> Option<Position> {
        self.positions.get(place).copied()
    }
}

/// Whether a map can be compiled; true when it uses the letter of package DM1.
pub fn check(map: &mgcp::DigitMap<'_>) -> Result<bool, DigitMapError> {
    let mut extended = false;
    positions_of(map, |position| extended |= position == Position::End { yields: true })?;
    Ok(extended)
}

/// The keys that a place of an H.248 map stands for; G to K are events of no package here.
fn symbols_of(bits: u32) -> SymbolSet {
    const KEYS: &[u8; 16] = b"0123456789ABCD*#";
    let keys = KEYS.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 != 0);
    keys.filter_map(|(_, key)| SymbolSet::of(*key)).fold(SymbolSet::EMPTY, SymbolSet::union)
}

fn each_position(text: &[u8], take: impl FnMut(Position)) -> Result<(), DigitMapError> {
    if text.len() > MAP_MAX {
        return Err(DigitMapError::TooLong);
    }
    positions_of(&mgcp::DigitMap::parse(text).map_err(|_| DigitMapError::Malformed)?, take)
}

fn positions_of(map: &mgcp::DigitMap<'_>, mut take: impl FnMut(Position)) -> Result<(), DigitMapError> {
    if map.as_bytes().len() > MAP_MAX {
        return Err(DigitMapError::TooLong);
    }
    let letter = SymbolSet::of(b'P').unwrap_or_default();
    for string in map.strings() {
        let mut yields = false;
        for position in string {
            if yields {
                return Err(DigitMapError::Letter);
            }
            yields = position.symbols == letter && !position.repeated;
            if !yields {
                if !position.symbols.without(SymbolSet::BASE).is_empty() {
                    return Err(DigitMapError::Letter);
                }
                take(Position::Symbol { symbols: position.symbols, repeated: position.repeated, wait: Wait::ByState });
            }
        }
        take(Position::End { yields });
    }
    Ok(())
}

impl Default for Matcher {
    fn default() -> Matcher {
        Matcher { active: Vec::new(), begun: false, deadline: Time::NEVER }
    }
}

impl Matcher {
    /// Forgets the digits so far (G-DMP-11).
    pub fn reset(&mut self) {
        self.begun = false;
        self.deadline = Time::NEVER;
    }

    /// The next digit, or `T` when the timer has run out. After [`Match::Full`] and [`Match::None`] it begins anew.
    pub fn feed(&mut self, map: &DigitMap, symbol: u8, now: Time, timers: Option<&DigitTimers>) -> Match {
        if !self.begun {
            self.begin(map);
        }
        self.step(map, symbol);
        self.close(map);
        let result = self.judge(map);
        if result != Match::Partial {
            self.reset();
            return result;
        }
        self.deadline = match timers {
            Some(timers) => now + if self.timer_completes(map) { timers.critical } else { timers.partial },
            None => Time::NEVER,
        };
        result
    }

    /// How far it is before the first digit.
    pub fn start(&mut self, map: &DigitMap) -> Progress {
        self.begin(map);
        self.progress(map)
    }

    /// The next digit; `None`: no string of the map goes on with it, and it is as if it had not come.
    pub fn advance(&mut self, map: &DigitMap, symbol: u8) -> Option<Progress> {
        let goes_on = |place| match map.get(place) {
            Some(Position::Symbol { symbols, .. }) => self.has(place) && symbols.has(symbol),
            _ => false,
        };
        if !(0..map.positions.len()).any(goes_on) {
            return None;
        }
        self.step(map, symbol);
        self.close(map);
        Some(self.progress(map))
    }

    fn progress(&self, map: &DigitMap) -> Progress {
        let mut progress = Progress { complete: false, open: false, wait: Wait::ByState };
        for (_, position) in map.positions.iter().enumerate().filter(|(place, _)| self.has(*place)) {
            match position {
                Position::End { .. } => progress.complete = true,
                Position::Symbol { symbols, wait, .. } if !symbols.is_empty() => {
                    // Where strings disagree, the long timer runs (RFC 3525 7.1.14.3).
                    (progress.open, progress.wait) = (true, progress.wait.max(*wait));
                }
                Position::Symbol { .. } => {}
            }
        }
        progress
    }

    /// When to feed `T`; [`Time::NEVER`] before the first digit and without timer.
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// Whether a digit was fed since the last end.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    fn begin(&mut self, map: &DigitMap) {
        self.begun = true;
        self.active.clear();
        self.active.resize(map.positions.len().div_ceil(64), 0);
        let mut first = true;
        for (place, position) in map.positions.iter().enumerate() {
            if first {
                self.set(place);
            }
            first = matches!(position, Position::End { .. });
        }
        self.close(map);
    }

    /// Moves every position over `symbol`. From the last to the first, so that what is set is not moved again.
    fn step(&mut self, map: &DigitMap, symbol: u8) {
        for place in (0..map.positions.len()).rev() {
            if !self.take(place) {
                continue;
            }
            if let Some(Position::Symbol { symbols, repeated, .. }) = map.get(place)
                && symbols.has(symbol)
            {
                self.set(if repeated { place } else { place + 1 });
            }
        }
    }

    /// What may be left out may already be behind us.
    fn close(&mut self, map: &DigitMap) {
        for place in 0..map.positions.len() {
            if self.has(place) && matches!(map.get(place), Some(Position::Symbol { repeated: true, .. })) {
                self.set(place + 1);
            }
        }
    }

    fn judge(&self, map: &DigitMap) -> Match {
        // How many strings may go on, whether the string in hand is one, and which are complete but yield: how many, and how many of
        // them go on themselves.
        let (mut open, mut this_open) = (0, false);
        let (mut yielding, mut open_and_yielding) = (0, 0);
        for (place, position) in map.positions.iter().enumerate() {
            let active = self.has(place);
            match position {
                Position::Symbol { .. } => this_open |= active,
                Position::End { yields: false } if active => return Match::Full,
                Position::End { .. } => {
                    open += usize::from(this_open);
                    yielding += usize::from(active);
                    open_and_yielding += usize::from(active && this_open);
                    this_open = false;
                }
            }
        }
        match (open, yielding) {
            (0, 0) => Match::None,
            // It waits for other strings only, not for itself.
            (open, 1..) if open == 0 || (open == 1 && open_and_yielding == 1) => Match::Full,
            _ => Match::Partial,
        }
    }

    /// Whether the timer is all that is missing for a match.
    fn timer_completes(&self, map: &DigitMap) -> bool {
        // From the last position to the first: whether the string is complete behind it, but for what may be left out.
        let mut complete = false;
        for (place, position) in map.positions.iter().enumerate().rev() {
            match position {
                Position::End { .. } => complete = true,
                Position::Symbol { symbols, .. } if complete && symbols.has(b'T') && self.has(place) => return true,
                Position::Symbol { repeated, .. } => complete &= repeated,
            }
        }
        false
    }

    fn has(&self, place: usize) -> bool {
        self.active.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 != 0)
    }

    fn set(&mut self, place: usize) {
        if let Some(word) = self.active.get_mut(place / 64) {
            *word |= 1 << (place % 64);
        }
    }

    fn take(&mut self, place: usize) -> bool {
        let had = self.has(place);
        if let Some(word) = self.active.get_mut(place / 64) {
            *word &= !(1 << (place % 64));
        }
        had
    }
}

#[cfg(test)]
mod tests;
