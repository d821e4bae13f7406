//! What is played where nothing has come: the last period of the voice again, fading (the idea of G.711 appendix I, simpler).

use super::g711::Law;
use super::playout::RING;

/// Voice is repeated as it is for so many octets: 10 ms.
const HOLD: u32 = 80;
/// From then on it fades, until it is silent: 60 ms.
const END: u32 = 480;
/// The periods looked for, in octets: 200 Hz and its multiples down to 50 Hz.
const LAGS: std::ops::RangeInclusive<u32> = 40..=160;
/// So many octets must be alike.
const ALIKE: u32 = 80;

/// The octets of a ring by their timestamps, as linear values.
pub(super) fn value(octets: &[u8; RING], law: Law, timestamp: u32) -> i32 {
    i32::from(law.decode(octets[timestamp as usize % RING]))
}

/// How unlike the octets at two timestamps are, every other octet looked at.
pub(super) fn difference(octets: &[u8; RING], law: Law, (one, other): (u32, u32), length: u32) -> u64 {
    let step = |i: u32| value(octets, law, one.wrapping_add(i)).abs_diff(value(octets, law, other.wrapping_add(i)));
    (0..length).step_by(2).map(|i| u64::from(step(i))).sum()
}

/// A gap that is being filled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Concealment {
    /// Behind the last octet that had come.
    end: u32,
    /// The period that is repeated; 0: no gap.
    lag: u32,
    /// Octets made up so far.
    run: u32,
}

impl Concealment {
    /// A gap that begins at `end`.
    pub fn begin(octets: &[u8; RING], law: Law, end: u32) -> Concealment {
        let template = end.wrapping_sub(ALIKE);
        let unlike = |lag: &u32| difference(octets, law, (template, template.wrapping_sub(*lag)), ALIKE);
        Concealment { end, lag: LAGS.min_by_key(unlike).unwrap_or(ALIKE), run: 0 }
    }

    /// Whether there is a gap.
    pub fn runs(&self) -> bool {
        self.lag != 0
    }

    /// Whether it has begun at or before `timestamp`.
    pub fn covers(&self, timestamp: u32) -> bool {
        self.runs() && timestamp.wrapping_sub(self.end) as i32 >= 0
    }

    /// The next value.
    pub fn next(&mut self, octets: &[u8; RING], law: Law) -> i32 {
        let run = self.run;
        if run >= END {
            return 0;
        }
        self.run += 1;
        let from = self.end.wrapping_sub(self.lag).wrapping_add(run % self.lag.max(1));
        let left = (END - run.max(HOLD)) as i32;
        value(octets, law, from) * left / (END - HOLD) as i32
    }
}
