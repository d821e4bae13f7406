//! When a core is overloaded: commands wait too long before it gets to them, or it never comes to rest. MGCP then takes no new calls (G-RTN-04),
//! H.248 tells its controllers (H.248.11, clause 9.3).
//!
//! Owns the smoothed sojourn of one core, its utilisation, and whether it is overloaded. Sojourn is the time from the arrival of a datagram (the
//! kernel's timestamp) to the start of its handling; a core that runs to completion queues in the socket, and this is how it sees it.
//! Overload begins when either is high for a minimum time, and ends when both are low.
//! The caller refuses CreateConnection with 409 while [`Detector::refuse_new`] says so; deletions, audits, responses and repeats pass.
//!
//! To drive it: [`Detector::record`] once for each batch, before the batch is handled, with the sojourn of its oldest datagram; with
//! zero when nothing waited. [`Detector::worked`] after each turn, with the time it had work.

mod busy;
pub mod telling;
pub mod throttle;

use crate::proto::base::Time;
use busy::Busy;
use std::time::Duration;

/// The time over which the sojourn is smoothed: a sample weighs dt / (dt + this), where dt is the time since the one before.
const SMOOTHING: Duration = Duration::from_millis(10);

/// When a core is overloaded, and when it is not any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Levels {
    /// The smoothed sojourn is high above this.
    pub enter: Duration,
    /// It is low when it is at most this; below `enter`.
    pub exit: Duration,
    /// Overload begins when the sojourn was high for so long; zero: at once.
    pub enter_after: Duration,
    /// The utilisation is high from so many percent of `busy_over` on; above 100: never.
    pub busy_enter: u8,
    /// Overload begins when the utilisation was high for so long.
    pub busy_after: Duration,
    /// It is low when it is at most so many percent; below `busy_enter`.
    pub busy_exit: u8,
    /// The time over which work is counted, a second at most.
    pub busy_over: Duration,
}

impl Default for Levels {
    fn default() -> Levels {
        Levels {
            // A call agent repeats after some 200 ms, so 50 ms leaves room; a scheduler with other work makes a core wait 20 ms.
            enter: Duration::from_millis(50),
            exit: Duration::from_millis(10),
            // Longer than a core works at what one interruption left.
            enter_after: Duration::from_millis(20),
            busy_enter: 100,
            busy_after: Duration::from_secs(5),
            busy_exit: 99,
            busy_over: Duration::from_secs(1),
        }
    }
}

impl Levels {
    /// Whether the values can work together, or what is wrong in words for an operator.
    pub fn validate(&self) -> Result<(), &'static str> {
        if self.exit >= self.enter {
            return Err("the exit level must be below the enter level");
        }
        if self.busy_exit >= self.busy_enter {
            Err("the utilisation that ends an overload must be below the one that begins it")
        } else {
            Ok(())
        }
    }
}

/// A change that a sample caused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Overloaded from now on.
    Entered,
    /// Not any more.
    Left {
        /// How long it lasted.
        after: Duration,
    },
}

/// One core's detector. See the module's page.
#[derive(Clone, Copy, Debug)]
pub struct Detector {
    levels: Levels,
    sojourn: Duration,
    recorded: Option<Time>,
    /// Since when the sojourn is above the level without a break.
    high: Option<Time>,
    /// It was high for long enough, as of the latest sample: time alone says nothing of what waits.
    waits: bool,
    busy: Busy,
    /// Since when the utilisation is above the level without a break.
    full: Option<Time>,
    /// It lasted, and is not low since.
    kept: bool,
    entered: Option<Time>,
}

impl Detector {
    /// Not overloaded.
    pub fn new(levels: Levels) -> Detector {
        Detector {
            levels,
            sojourn: Duration::ZERO,
            recorded: None,
            high: None,
            waits: false,
            busy: Busy::new(levels.busy_over),
            full: None,
            kept: false,
            entered: None,
        }
    }

    /// New levels, from the next sample on. What was found of the utilisation by other levels is forgotten.
    pub fn set_levels(&mut self, levels: Levels) {
        let busy = |levels: &Levels| (levels.busy_enter, levels.busy_after, levels.busy_exit, levels.busy_over);
        if busy(&levels) != busy(&self.levels) {
            (self.full, self.kept) = (None, false);
        }
        self.levels = levels;
        self.busy.set_window(levels.busy_over);
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
        self.high = if self.sojourn > self.levels.enter { self.high.or(Some(now)) } else { None };
        self.waits = self.high.is_some_and(|since| now.since(since) >= self.levels.enter_after);
        self.judge(now)
    }

    /// The core had work for `work` of the time since it was told of before, which ends at `now`.
    #[inline]
    pub fn worked(&mut self, now: Time, work: Duration) -> Option<Change> {
        if !self.busy.worked(now, work) {
            return None;
        }
        let full = self.busy.per_mille() >= u16::from(self.levels.busy_enter) * 10;
        self.full = if full { self.full.or(Some(now)) } else { None };
        self.judge(now)
    }

    /// Enters on any, leaves when all are low. A core that catches up comes to no rest meanwhile: utilisation keeps an overload up only when
    /// it has lasted so long that it would have begun one.
    fn judge(&mut self, now: Time) -> Option<Change> {
        let Levels { exit, busy_after, busy_exit, .. } = self.levels;
        let lasted = self.full.is_some_and(|since| now.since(since) >= busy_after);
        self.kept |= lasted;
        self.kept &= self.busy.per_mille() > u16::from(busy_exit) * 10;
        match self.entered {
            None if self.waits || lasted => {
                self.entered = Some(now);
                Some(Change::Entered)
            }
            Some(at) if self.sojourn <= exit && !self.kept => {
                self.entered = None;
                Some(Change::Left { after: now.since(at) })
            }
            _ => None,
        }
    }

    /// Nothing has arrived for a second: nothing waits (a core without traffic is not overloaded).
    pub fn rest(&mut self, now: Time) {
        const QUIET: Duration = Duration::from_secs(1);
        if (!self.sojourn.is_zero() || self.entered.is_some()) && self.recorded.is_some_and(|at| now.since(at) >= QUIET) {
            self.record(now, Duration::ZERO);
        }
    }

    /// Whether it is overloaded: new calls are refused, or told of.
    #[inline]
    pub fn refuse_new(&self) -> bool {
        self.entered.is_some()
    }

    /// The smoothed sojourn as of the latest sample.
    pub fn sojourn(&self) -> Duration {
        self.sojourn
    }

    /// Thousandths of the latest `busy_over` that were work.
    pub fn busy_per_mille(&self) -> u16 {
        self.busy.per_mille()
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
    /// What some tests see begins at once.
    const SHORT: Levels = Levels {
        enter: Duration::from_millis(50),
        exit: Duration::from_millis(10),
        enter_after: Duration::ZERO,
        busy_enter: 100,
        busy_after: Duration::ZERO,
        busy_exit: 90,
        busy_over: Duration::from_secs(1),
    };

    #[test]
    fn the_level_is_left_below_the_exit_level_only() {
        let mut detector = Detector::new(SHORT);
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
        let mut detector = Detector::new(SHORT);
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
        let mut detector = Detector::new(SHORT);
        assert_eq!(detector.record(Time::NEVER, Duration::MAX), Some(Change::Entered));
        detector.record(Time::ZERO, Duration::ZERO);
        detector.record(Time::NEVER, Duration::ZERO);
        assert!(Levels { enter: MS, exit: MS, ..SHORT }.validate().is_err() && Levels::default().validate().is_ok());
        assert!(Levels { busy_enter: 90, ..SHORT }.validate().is_err());
    }

    #[test]
    fn a_core_without_traffic_is_not_overloaded() {
        let mut detector = Detector::new(SHORT);
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

    #[test]
    fn a_high_wait_must_last_before_it_is_overload() {
        let mut detector = Detector::new(Levels { enter_after: 20 * MS, ..SHORT });
        let mut now = Time::from_millis(1);
        // Stopped for 80 ms, then all is well within 15 ms: no overload, and neither is the next time.
        for _ in 0..3 {
            now += 80 * MS;
            assert_eq!(detector.record(now, 80 * MS), None);
            now += 15 * MS;
            assert_eq!(detector.record(now, MS), None);
        }
        now += 80 * MS;
        assert_eq!(detector.record(now, 80 * MS), None);
        now += 19 * MS;
        assert_eq!(detector.record(now, 80 * MS), None);
        now += MS;
        assert_eq!(detector.record(now, 80 * MS), Some(Change::Entered));
        // Other levels hold from the next sample on.
        detector.set_levels(Levels { exit: 90 * MS, enter: 100 * MS, ..SHORT });
        now += MS;
        assert!(matches!(detector.record(now, 80 * MS), Some(Change::Left { .. })));
    }

    #[test]
    fn one_interruption_is_no_overload_however_long_nothing_comes_behind_it() {
        let mut detector = Detector::new(Levels::default());
        assert_eq!(detector.worked(Time::ZERO, Duration::ZERO), None);
        assert_eq!(detector.record(Time::from_millis(80), 80 * MS), None);
        for at in [100, 120, 200, 500] {
            assert_eq!(detector.worked(Time::from_millis(at), Duration::ZERO), None, "nothing was seen to wait at {at} ms");
        }
        assert_eq!(detector.record(Time::from_millis(540), Duration::ZERO), None);
        assert!(!detector.refuse_new());
    }

    #[test]
    fn a_reload_ends_what_utilisation_began() {
        let mut detector = Detector::new(SHORT);
        let mut now = Time::ZERO;
        let mut full = |detector: &mut Detector| {
            for _ in 0..2000 {
                now += MS;
                detector.worked(now, MS);
            }
            detector.refuse_new()
        };
        assert!(full(&mut detector));
        // The same levels anew change nothing; 101 %: never.
        detector.set_levels(SHORT);
        assert!(full(&mut detector));
        detector.set_levels(Levels { busy_enter: 101, ..SHORT });
        assert!(!full(&mut detector));
    }

    #[test]
    fn any_of_the_two_begins_an_overload_and_both_must_be_low_to_end_it() {
        let mut detector = Detector::new(SHORT);
        let mut now = Time::from_millis(1);
        let mut work = |detector: &mut Detector, for_: Duration, per_mille: u32, sojourn: Duration| {
            let end = now + for_;
            let mut changes = Vec::new();
            while now < end {
                now += MS;
                changes.extend(detector.record(now, sojourn));
                changes.extend(detector.worked(now, MS * per_mille / 1000));
            }
            changes
        };
        let second = Duration::from_secs(1);
        assert_eq!(work(&mut detector, 5 * second, 990, MS), [], "there is time to spare");
        assert_eq!(work(&mut detector, 2 * second, 1000, MS), [Change::Entered]);
        assert_eq!(detector.busy_per_mille(), 1000);
        assert_eq!(work(&mut detector, 3 * second, 950, MS), [], "not low yet");
        assert_eq!(work(&mut detector, second, 500, 20 * MS), [], "it waits still");
        assert!(matches!(work(&mut detector, second, 500, MS)[..], [Change::Left { .. }]));
        assert_eq!(work(&mut detector, second, 500, 80 * MS), [Change::Entered], "by the wait alone");
    }
}
