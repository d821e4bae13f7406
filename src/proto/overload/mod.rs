//! Overload, first step: when commands wait too long before a core gets to them, it takes no new calls (G-RTN-04).
//!
//! Owns the smoothed sojourn of one core and whether it is above the level. Sojourn is the time from the arrival of a datagram (the
//! kernel's timestamp) to the start of its handling; a core that runs to completion queues in the socket, and this is how it sees it.
//! The caller refuses CreateConnection with 409 while [`Detector::refuse_new`] says so; deletions, audits, responses and repeats pass.
//!
//! To drive it: [`Detector::record`] once for each batch, before the batch is handled, with the sojourn of its oldest datagram; with
//! zero when nothing waited.

pub mod telling;
pub mod throttle;

use crate::proto::base::Time;
use std::time::Duration;

/// The time over which the sojourn is smoothed: a sample weighs dt / (dt + this), where dt is the time since the one before.
const SMOOTHING: Duration = Duration::from_millis(10);

/// When new calls are refused, and when they are taken again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Levels {
    /// New calls are refused when the smoothed sojourn exceeds this.
    pub enter: Duration,
    /// They are taken again when it is at most this; below `enter`.
    pub exit: Duration,
}

impl Default for Levels {
    fn default() -> Levels {
        // A call agent repeats after some 200 ms, so 50 ms leaves room; a scheduler with other work makes a core wait 20 ms.
        Levels { enter: Duration::from_millis(50), exit: Duration::from_millis(10) }
    }
}

impl Levels {
    /// Whether the values can work together, or what is wrong in words for an operator.
    pub fn validate(&self) -> Result<(), &'static str> {
        if self.exit >= self.enter { Err("the exit level must be below the enter level") } else { Ok(()) }
    }
}

/// A change that [`Detector::record`] caused, for the log and the alarm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// New calls are refused from now on.
    Entered,
    /// New calls are taken again.
    Left {
        /// How long they were refused.
        after: Duration,
    },
}

/// One core's detector. See the module's page.
#[derive(Clone, Copy, Debug)]
pub struct Detector {
    levels: Levels,
    sojourn: Duration,
    recorded: Option<Time>,
    entered: Option<Time>,
}

impl Detector {
    /// Not overloaded.
    pub fn new(levels: Levels) -> Detector {
        Detector { levels, sojourn: Duration::ZERO, recorded: None, entered: None }
    }

    /// New levels, from the next sample on.
    pub fn set_levels(&mut self, levels: Levels) {
        self.levels = levels;
    }

    /// At `now` a batch begins whose oldest datagram has waited `sojourn`.
    pub fn record(&mut self, now: Time, sojourn: Duration) -> Option<Change> {
        if self.recorded == Some(now) {
            // The rest of a batch: no time has passed, so it weighs nothing.
            return None;
        }
        let since = self.recorded.map_or(Duration::MAX, |at| now.since(at));
        self.recorded = Some(now);
        self.sojourn = smooth(self.sojourn, sojourn, since);
        match self.entered {
            None if self.sojourn > self.levels.enter => {
                self.entered = Some(now);
                Some(Change::Entered)
            }
            Some(at) if self.sojourn <= self.levels.exit => {
                self.entered = None;
                Some(Change::Left { after: now.since(at) })
            }
            _ => None,
        }
    }

    /// Nothing has arrived for a second: nothing waits (a core without traffic is not overloaded).
    pub fn rest(&mut self, now: Time) {
        const QUIET: Duration = Duration::from_secs(1);
        if !self.sojourn.is_zero() && self.recorded.is_some_and(|at| now.since(at) >= QUIET) {
            self.record(now, Duration::ZERO);
        }
    }

    /// Whether new calls are refused.
    #[inline]
    pub fn refuse_new(&self) -> bool {
        self.entered.is_some()
    }

    /// The smoothed sojourn as of the latest sample.
    pub fn sojourn(&self) -> Duration {
        self.sojourn
    }
}

/// `old` moved towards `sample` by the share dt / (dt + SMOOTHING).
fn smooth(old: Duration, sample: Duration, since: Duration) -> Duration {
    let step = sample.abs_diff(old).as_nanos();
    let since = since.as_nanos();
    let moved = step.saturating_mul(since) / (since.saturating_add(SMOOTHING.as_nanos())).max(1);
    let moved = Duration::from_nanos(u64::try_from(moved).unwrap_or(u64::MAX));
    if sample > old { old.saturating_add(moved) } else { old.saturating_sub(moved) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const US: Duration = Duration::from_micros(1);

    #[test]
    fn the_level_is_left_below_the_exit_level_only() {
        let mut detector = Detector::new(Levels { enter: 50 * MS, exit: 10 * MS });
        let mut now = Time::ZERO;
        let mut feed = |detector: &mut Detector, sojourn: Duration, for_: Duration| {
            let end = now + for_;
            let mut changes = Vec::new();
            while now < end {
                now += 100 * US;
                changes.extend(detector.record(now, sojourn));
            }
            changes
        };
        assert_eq!(feed(&mut detector, MS, 100 * MS), []);
        assert_eq!(feed(&mut detector, 80 * MS, 100 * MS), [Change::Entered]);
        // Between the levels nothing changes, in either direction.
        assert_eq!(feed(&mut detector, 30 * MS, 500 * MS), []);
        assert!(detector.refuse_new());
        let changes = feed(&mut detector, MS, 100 * MS);
        assert!(matches!(changes[..], [Change::Left { after }] if after > 500 * MS && after < 700 * MS), "{changes:?}");
        assert_eq!(feed(&mut detector, 30 * MS, 500 * MS), []);
        assert!(!detector.refuse_new());
    }

    #[test]
    fn one_late_batch_among_many_is_no_overload_and_a_pause_forgets() {
        let mut detector = Detector::new(Levels { enter: 50 * MS, exit: 10 * MS });
        let mut now = Time::ZERO;
        for i in 0..1000 {
            now += 100 * US;
            assert_eq!(detector.record(now, if i % 100 == 50 { 500 * MS } else { 100 * US }), None);
        }
        while !detector.refuse_new() {
            now += 100 * US;
            detector.record(now, 200 * MS);
        }
        // Nothing came for a second: what waited before says nothing now.
        now += Duration::from_secs(1);
        assert!(matches!(detector.record(now, Duration::ZERO), Some(Change::Left { .. })));
        assert!(detector.sojourn() < MS);
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let mut detector = Detector::new(Levels::default());
        assert_eq!(detector.record(Time::NEVER, Duration::MAX), Some(Change::Entered));
        detector.record(Time::ZERO, Duration::ZERO);
        detector.record(Time::NEVER, Duration::ZERO);
        assert!(Levels { enter: MS, exit: MS }.validate().is_err() && Levels::default().validate().is_ok());
    }

    #[test]
    fn a_core_without_traffic_is_not_overloaded() {
        let mut detector = Detector::new(Levels::default());
        detector.record(Time::from_millis(1), Duration::from_secs(3));
        assert!(detector.refuse_new());
        detector.rest(Time::from_millis(900));
        assert!(detector.refuse_new());
        for second in 2..20 {
            detector.rest(Time::from_millis(second * 1000));
        }
        assert!(!detector.refuse_new());
        assert!(detector.sojourn() < Duration::from_millis(1));
    }
}
