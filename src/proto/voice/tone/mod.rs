//! What is played: tones in their cadence, digits, test patterns. Nothing is computed ahead and nothing allocated.

mod oscillator;
mod score;

pub(super) use score::{COLUMNS, KEYPAD, MF_HZ, MF_SYMBOLS, ROWS, Score};

use self::oscillator::Oscillator;
use super::g711::Law;

/// A piece of one sound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Part {
    /// Frequencies in Hz and their levels in dBm0; 0 Hz: none.
    pub waves: [(f32, f32); 2],
    /// How long, in ms; 0: for ever.
    pub ms: u32,
}

impl Part {
    pub const fn silence(ms: u32) -> Part {
        Part { waves: [(0.0, 0.0); 2], ms }
    }

    pub const fn one(hz: f32, dbm0: f32, ms: u32) -> Part {
        Part { waves: [(hz, dbm0), (0.0, 0.0)], ms }
    }

    /// Two frequencies at the same level.
    pub const fn two(low: f32, high: f32, dbm0: f32, ms: u32) -> Part {
        Part { waves: [(low, dbm0), (high, dbm0)], ms }
    }
}

/// Plays a score.
#[derive(Clone, Copy, Debug)]
pub(super) struct Player {
    score: Score,
    /// The number of the next part.
    next: usize,
    /// Octets of the present part; `None`: it lasts.
    left: Option<u32>,
    waves: [Oscillator; 2],
    ended: bool,
}

impl Player {
    pub fn new(score: Score) -> Player {
        Player { score, next: 0, left: Some(0), waves: [Oscillator::SILENT; 2], ended: false }
    }

    /// Whether all is played.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Plays as much as there is; what remains is idle.
    pub fn play(&mut self, law: Law, mut out: &mut [u8]) {
        if let Score::Pattern(octet) = self.score {
            return out.fill(octet);
        }
        while !out.is_empty() {
            if self.left == Some(0) {
                self.begin_part(law);
            }
            if self.ended {
                return out.fill(law.idle());
            }
            let length = self.left.map_or(out.len(), |left| out.len().min(left as usize));
            let (part, rest) = out.split_at_mut(length);
            self.fill(law, part);
            self.left = self.left.map(|left| left - length as u32);
            out = rest;
        }
    }

    fn begin_part(&mut self, law: Law) {
        let Some(part) = self.score.part(self.next) else {
            self.ended = true;
            return;
        };
        self.next += 1;
        self.left = (part.ms > 0).then_some(part.ms * 8);
        self.waves = part.waves.map(|(hz, dbm0)| if hz > 0.0 { Oscillator::new(hz, law.amplitude(dbm0)) } else { Oscillator::SILENT });
    }

    fn fill(&mut self, law: Law, out: &mut [u8]) {
        if self.waves.iter().all(Oscillator::is_silent) {
            return out.fill(law.idle());
        }
        let [one, other] = &mut self.waves;
        out.iter_mut().for_each(|octet| *octet = law.encode((one.next() + other.next()).round() as i32));
        self.waves.iter_mut().for_each(Oscillator::settle);
    }
}
