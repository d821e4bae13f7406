//! Performance monitoring: the 15-minute and 24-hour counters of a facility (RFC 4805 3.4.3 and Appendix B, RFC 3896 2.4.2; T1P-01..16,
//! T3P-01..07).
//!
//! A [`Performance`] is told which defects there are, whether a failure is declared, and what violations were counted. It divides time
//! into seconds from its start. Each second passes a delay line before it counts, because ten severely errored seconds in a row were
//! unavailable time from the first of them on (T1P-13): the counters lag by [`Performance::delay`] and never fall.
//!
//! It needs no ticks: time is caught up with when something is told or read, in one step for as long as nothing changes.
//!
//! Choices: LOS, a dead card and packet loss of a pseudowire count as out of frame, since no framer keeps its frame without a signal.
//! Failures are those of the near end; RAI and loops leave it available. A facility begins available. Degraded minutes (deprecated)
//! and the far end's counters are not kept.

mod counts;
mod history;
mod line;
#[cfg(test)]
mod tests;

pub use counts::{Counts, Signal, Violations};
pub use history::{History, INTERVAL_SECONDS, INTERVALS};

use counts::{Impairments, Second};
use line::Line;
use std::time::Duration;

use super::alarm::Defect;
use crate::proto::base::Time;

const SECOND: Duration = Duration::from_secs(1);

/// The performance of one facility.
#[derive(Clone, Debug)]
pub struct Performance {
    signal: Signal,
    /// What is wrong now.
    present: Impairments,
    failed: bool,
    /// The second that runs.
    gathering: Second,
    /// When it began.
    began: Time,
    line: Line,
    history: History,
}

impl Performance {
    /// What one takes, in bytes.
    pub const BYTES: u64 = (size_of::<Performance>() + INTERVALS * size_of::<Counts>() + line::BYTES) as u64;

    /// A facility without defects.
    pub fn new(now: Time, signal: Signal) -> Performance {
        Performance {
            signal,
            present: Impairments::default(),
            failed: false,
            gathering: Second::default(),
            began: now,
            line: Line::new(),
            history: History::new(),
        }
    }

    /// The defects that are present from now on, and whether a failure of the near end is declared. `clear`: absence of defects until
    /// it is cleared, up to 20 s.
    pub fn set(&mut self, now: Time, is_present: impl Fn(Defect) -> bool, failed: bool, clear: Duration) {
        self.advance(now);
        self.line.set_clearing(clear);
        if now == self.began {
            // What ends as the second begins was not in it.
            self.gathering.forget_defects();
        }
        self.gathering.failure_declared |= failed && !self.failed;
        (self.present, self.failed) = (Impairments::of(is_present), failed);
        self.gathering.note(self.present, failed);
    }

    /// What the framer has counted since the last time.
    pub fn count(&mut self, now: Time, violations: &Violations) {
        self.advance(now);
        self.gathering.violations.add(violations);
    }

    /// Counts everything until [`Performance::delay`] before `now`.
    pub fn read(&mut self, now: Time) -> &History {
        self.advance(now);
        &self.history
    }

    /// What was counted when it was read last.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The kind of signal it is measured as.
    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// Whether the facility is available, as far as that is certain.
    pub fn is_available(&self) -> bool {
        self.line.is_available()
    }

    /// How far the counters lag.
    pub fn delay(&self) -> Duration {
        SECOND * self.line.seconds()
    }

    /// Ends the seconds that are over.
    fn advance(&mut self, now: Time) {
        let mut over = now.since(self.began).as_secs();
        self.began += Duration::from_secs(over);
        while over > 0 {
            let second = self.gathering;
            self.gathering = Second::default();
            self.gathering.note(self.present, self.failed);
            if second == self.gathering && self.line.is_steady(&second, self.signal) {
                self.history.count(second.counts(self.signal, self.line.is_available()), over);
                return;
            }
            if let Some((second, available)) = self.line.pass(second, self.signal) {
                self.history.count(second.counts(self.signal, available), 1);
            }
            over -= 1;
        }
    }
}
