//! Single tones: those of continuity tests, milliwatts, test lines and modems.
//!
//! The frequency is measured by how the phase goes on from block to block, so that 1000, 1004 and 1013.8 Hz are told apart.

use crate::proto::voice::g711::Law;
use std::f32::consts::TAU;

/// Octets of a block: 10 ms. Phases tell frequencies up to 50 Hz off.
const BLOCK: usize = 80;
/// So much of all energy is in the tone; 30 Hz off it is 0.74 of what it is in the middle.
const SHARE: f32 = 0.6;
const WEAKEST_DBM0: f32 = -36.0;
/// Blocks in a row that make a tone, after the one that only has the phase, and that end it.
const BEGINS: u8 = 4;
const ENDS: u8 = 3;
/// A milliwatt is measured over so many blocks before it is told which.
const MEASURED: u8 = 10;

/// A tone that can be listened for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SingleTone {
    /// 2010 Hz, 30 Hz off at most (T/co1).
    Co1,
    /// 1780 Hz, 30 Hz off at most (T/co2).
    Co2,
    /// 1000 Hz (T/om).
    OldMilliwatt,
    /// 1004 Hz (T/nm).
    NewMilliwatt,
    /// 1013.8 Hz (T/mm).
    NewestMilliwatt,
    /// 2225 Hz, 25 Hz off at most (T/tl).
    TestLine,
    /// 2100 Hz, 15 Hz off at most: the answer of a modem or fax (G/mt).
    Answer,
    /// 1100 Hz, 38 Hz off at most: a calling fax (G/ft).
    FaxCall,
}

/// Some of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SingleTones(u8);

impl SingleTones {
    /// None.
    pub const NONE: SingleTones = SingleTones(0);
    /// Those of continuity tests.
    pub const CHECK: SingleTones = SingleTones::NONE.with(SingleTone::Co1).with(SingleTone::Co2);

    /// These and `tone`.
    #[must_use]
    pub const fn with(self, tone: SingleTone) -> SingleTones {
        SingleTones(self.0 | 1 << tone as u8)
    }

    /// These and those.
    #[must_use]
    pub const fn and(self, others: SingleTones) -> SingleTones {
        SingleTones(self.0 | others.0)
    }

    /// Whether `tone` is among them.
    pub const fn has(self, tone: SingleTone) -> bool {
        self.0 & 1 << tone as u8 != 0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What is looked at: a frequency, how far off a tone may be, and what it is.
const WATCHED: [(f32, f32, Option<SingleTone>); 6] = [
    (2010.0, 30.0, Some(SingleTone::Co1)),
    (1780.0, 30.0, Some(SingleTone::Co2)),
    // Which milliwatt is told by its frequency.
    (1006.0, 10.0, None),
    (2225.0, 25.0, Some(SingleTone::TestLine)),
    (2100.0, 15.0, Some(SingleTone::Answer)),
    (1100.0, 38.0, Some(SingleTone::FaxCall)),
];

/// Listens for single tones.
#[derive(Clone, Copy, Debug)]
pub struct Singles {
    law: Law,
    wanted: SingleTones,
    watchers: [Watcher; WATCHED.len()],
    filled: usize,
    energy: f32,
}

#[derive(Clone, Copy, Debug)]
struct Watcher {
    /// What is looked for: its frequency, how far off it may be, and what it is.
    hz: f32,
    tolerance: f32,
    which: Option<SingleTone>,
    sin: f32,
    cos: f32,
    last: f32,
    before: f32,
    /// Of the last block; none when the tone was not in it.
    phase: Option<f32>,
    /// Blocks in a row with the tone, and without.
    with: u8,
    without: u8,
    /// Sum of how far off it was, in Hz.
    off: f32,
    on: Option<SingleTone>,
}

impl Singles {
    /// Listens for nothing.
    pub fn new(law: Law) -> Singles {
        Singles { law, wanted: SingleTones::NONE, watchers: WATCHED.map(Watcher::new), filled: 0, energy: 0.0 }
    }

    /// Listens for these from now on. What is not listened for any more ends without a word.
    pub fn listen(&mut self, wanted: SingleTones) {
        if wanted != self.wanted {
            let before = self.watchers;
            *self = Singles::new(self.law);
            self.wanted = wanted;
            for (watcher, before) in self.watchers.iter_mut().zip(before) {
                watcher.on = before.on.filter(|tone| wanted.has(*tone));
            }
        }
    }

    /// What it listens for.
    pub fn wanted(&self) -> SingleTones {
        self.wanted
    }

    /// Hears octets; tells of tones that begin or end.
    pub fn push(&mut self, mut octets: &[u8], tell: &mut impl FnMut(SingleTone, bool)) {
        if self.wanted.is_empty() {
            return;
        }
        while !octets.is_empty() {
            let (part, rest) = octets.split_at(octets.len().min(BLOCK - self.filled));
            let mut values = [0.0; BLOCK];
            values.iter_mut().zip(part).for_each(|(value, &octet)| *value = f32::from(self.law.decode(octet)));
            let values = values.get(..part.len()).unwrap_or_default();
            self.energy += values.iter().map(|value| value * value).sum::<f32>();
            self.watchers.iter_mut().filter(|watcher| watcher.is_wanted(self.wanted)).for_each(|watcher| watcher.push(values));
            self.filled += part.len();
            if self.filled == BLOCK {
                self.end_block(tell);
            }
            octets = rest;
        }
    }

    fn end_block(&mut self, tell: &mut impl FnMut(SingleTone, bool)) {
        let power = self.energy / BLOCK as f32;
        let loud = power > self.law.amplitude(WEAKEST_DBM0).powi(2) / 2.0;
        let wanted = self.wanted;
        self.watchers
            .iter_mut()
            .filter(|watcher| watcher.is_wanted(wanted))
            .for_each(|watcher| watcher.end_block(power, loud, wanted, tell));
        (self.filled, self.energy) = (0, 0.0);
    }
}

impl Watcher {
    fn new((hz, tolerance, which): (f32, f32, Option<SingleTone>)) -> Watcher {
        let (sin, cos) = (hz / 8_000.0 * TAU).sin_cos();
        let (last, before, off) = (0.0, 0.0, 0.0);
        Watcher { hz, tolerance, which, sin, cos, last, before, phase: None, with: 0, without: 0, off, on: None }
    }

    fn is_wanted(&self, wanted: SingleTones) -> bool {
        match self.which {
            Some(tone) => wanted.has(tone),
            None => MILLIWATTS.into_iter().any(|tone| wanted.has(tone)),
        }
    }

    fn push(&mut self, values: &[f32]) {
        for value in values {
            let next = value + 2.0 * self.cos * self.last - self.before;
            (self.before, self.last) = (self.last, next);
        }
    }

    fn end_block(&mut self, power: f32, loud: bool, wanted: SingleTones, tell: &mut impl FnMut(SingleTone, bool)) {
        let (re, im) = (self.last - self.before * self.cos, self.before * self.sin);
        (self.last, self.before) = (0.0, 0.0);
        let amplitude = (re * re + im * im) * (2.0 / BLOCK as f32).powi(2);
        let phase = (loud && amplitude / 2.0 > power * SHARE).then(|| im.atan2(re));
        let off = phase.zip(self.phase).map(|(now, before)| off_by(now - before, self.hz));
        self.phase = phase;
        match off.filter(|off| off.abs() <= self.tolerance) {
            Some(off) => {
                (self.with, self.without) = (self.with.saturating_add(1), 0);
                self.off += off;
                self.note(wanted, tell);
            }
            None => {
                (self.with, self.off) = (0, 0.0);
                self.without = self.without.saturating_add(1);
                if self.without >= ENDS
                    && let Some(tone) = self.on.take()
                {
                    tell(tone, false);
                }
            }
        }
    }

    /// The tone has been there for one more block.
    fn note(&mut self, wanted: SingleTones, tell: &mut impl FnMut(SingleTone, bool)) {
        let needed = if self.which.is_some() { BEGINS } else { MEASURED };
        if self.on.is_some() || self.with != needed {
            return;
        }
        let tone = self.which.unwrap_or_else(|| milliwatt(self.hz + self.off / f32::from(needed)));
        if wanted.has(tone) {
            self.on = Some(tone);
            tell(tone, true);
        }
    }
}

const MILLIWATTS: [SingleTone; 3] = [SingleTone::OldMilliwatt, SingleTone::NewMilliwatt, SingleTone::NewestMilliwatt];

/// How far off a frequency is whose phase went on by so much in a block.
fn off_by(advance: f32, hz: f32) -> f32 {
    let turns = advance / TAU - hz * BLOCK as f32 / 8_000.0;
    (turns - turns.round()) * 8_000.0 / BLOCK as f32
}

/// The borders lie in the middle.
fn milliwatt(hz: f32) -> SingleTone {
    match hz {
        _ if hz < 1002.0 => SingleTone::OldMilliwatt,
        _ if hz < 1008.9 => SingleTone::NewMilliwatt,
        _ => SingleTone::NewestMilliwatt,
    }
}
