//! What was counted: the interval that runs, those before, the last 24 hours.

use super::counts::Counts;
use std::collections::VecDeque;

/// The length of an interval in seconds.
pub const INTERVAL_SECONDS: u32 = 900;
/// How many past intervals are kept: 24 hours.
pub const INTERVALS: usize = 96;

/// The counters of one facility.
#[derive(Clone, Debug)]
pub struct History {
    current: Counts,
    elapsed: u32,
    past: VecDeque<Counts>,
    ever: Counts,
}

impl History {
    /// Nothing yet, with room for all.
    pub(super) fn new() -> History {
        History { current: Counts::default(), elapsed: 0, past: VecDeque::with_capacity(INTERVALS), ever: Counts::default() }
    }

    /// The interval that runs, and how many of its seconds are counted (0 to 899).
    pub fn current(&self) -> (Counts, u32) {
        (self.current, self.elapsed)
    }

    /// The past intervals, the newest first; at most [`INTERVALS`].
    pub fn intervals(&self) -> impl ExactSizeIterator<Item = &Counts> {
        self.past.iter().rev()
    }

    /// The sum of the past intervals.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.past.iter().for_each(|interval| total.add(interval, 1));
        total
    }

    /// Everything counted since the start; saturating.
    pub fn ever(&self) -> &Counts {
        &self.ever
    }

    /// Counts so many seconds of one kind.
    pub(super) fn count(&mut self, second: Counts, seconds: u64) {
        self.ever.add(&second, u32::try_from(seconds).unwrap_or(u32::MAX));
        // What lies further back than all that is kept makes no difference.
        let interval = u64::from(INTERVAL_SECONDS);
        let kept = (INTERVALS as u64 + 1) * interval;
        let mut left = if seconds > kept { kept + seconds % interval } else { seconds };
        while left > 0 {
            let take = (INTERVAL_SECONDS - self.elapsed).min(u32::try_from(left).unwrap_or(u32::MAX));
            self.current.add(&second, take);
            self.elapsed += take;
            left -= u64::from(take);
            if self.elapsed == INTERVAL_SECONDS {
                if self.past.len() == INTERVALS {
                    self.past.pop_front();
                }
                self.past.push_back(std::mem::take(&mut self.current));
                self.elapsed = 0;
            }
        }
    }
}
