//! The delay line, and what is available time (RFC 4805 3.4.3; T1P-09, T1P-10, T1P-13).

use super::counts::{Second, Signal};
use std::collections::VecDeque;
use std::time::Duration;

/// How many seconds in a row decide about being available.
const DECISION: u32 = 10;
/// The longest line: the longest clearing time of the RFCs, and the second in which it began.
const LONGEST: u32 = 21;

/// What a line takes besides itself, in bytes.
pub(super) const BYTES: usize = (LONGEST as usize + 1) * size_of::<(Second, bool)>();

/// The seconds that are not counted yet, each with whether it was available time.
#[derive(Clone, Debug)]
pub(super) struct Line {
    seconds: u32,
    /// A failure takes longer to clear than the decision: it has to be gone first.
    slow_clearing: bool,
    waiting: VecDeque<(Second, bool)>,
    available: bool,
    /// How many seconds in a row, up to the newest one, speak for a change.
    run: u32,
}

impl Line {
    pub(super) fn new() -> Line {
        let waiting = VecDeque::with_capacity(LONGEST as usize + 1);
        Line { seconds: DECISION, slow_clearing: false, waiting, available: true, run: 0 }
    }

    /// How long a failure takes to clear from now on. A line that has grown stays so long, so that no second is counted out of order.
    pub(super) fn set_clearing(&mut self, clear: Duration) {
        self.slow_clearing = clear > Duration::from_secs(DECISION.into());
        if self.slow_clearing {
            let clearing = u32::try_from(clear.as_secs()).unwrap_or(LONGEST).saturating_add(1);
            self.seconds = self.seconds.max(clearing.min(LONGEST));
        }
    }

    pub(super) fn seconds(&self) -> u32 {
        self.seconds
    }

    pub(super) fn is_available(&self) -> bool {
        self.available
    }

    /// Whether more such seconds change nothing, and come out as they go in.
    pub(super) fn is_steady(&self, second: &Second, signal: Signal) -> bool {
        second.is_severe(signal) != self.available
            && self.waiting.len() == self.seconds as usize
            && self.waiting.iter().all(|(waiting, available)| waiting == second && *available == self.available)
    }

    /// Takes in the second that has just ended; gives the one that is ripe, and whether it was available time.
    pub(super) fn pass(&mut self, second: Second, signal: Signal) -> Option<(Second, bool)> {
        self.waiting.push_back((second, self.available));
        self.run = if second.is_severe(signal) == self.available { self.run + 1 } else { 0 };
        let decided = self.run >= DECISION;
        let changes = match self.available {
            true => decided || second.failure_declared,
            false => decided && !(self.slow_clearing && second.failed),
        };
        if changes {
            self.available = !self.available;
            for (_, available) in self.waiting.iter_mut().rev().take(self.run.max(1) as usize) {
                *available = self.available;
            }
            self.run = 0;
        }
        if self.waiting.len() > self.seconds as usize { self.waiting.pop_front() } else { None }
    }
}
