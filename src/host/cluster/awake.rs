//! The time of leases, which goes on while the machine is suspended (R37).
//!
//! CLOCK_MONOTONIC stands still then, CLOCK_BOOTTIME does not, and neither do other machines: whoever woke up must find that its lease is
//! over before it does anything by it. What the clocks differ by is added in steps, so that time never goes back.

use crate::host::clock::Clock;
use crate::host::transport::sys;
use crate::proto::base::Time;
use std::time::Duration;

/// A suspension is at least so long; readings of two clocks differ by less.
const SUSPENDED_MIN: Duration = Duration::from_millis(50);

/// The process clock with the suspensions of the machine added.
pub struct Awake {
    clock: Clock,
    /// How long the machine had been suspended in all at the start, and when it was looked at last.
    first: Duration,
    last: Duration,
    slept: Duration,
}

impl Awake {
    /// The same time as that of `clock` until the machine is suspended.
    pub fn new(clock: Clock) -> Awake {
        let suspended = sys::suspended_for();
        Awake { clock, first: suspended, last: suspended, slept: Duration::ZERO }
    }

    /// Now.
    pub fn now(&mut self) -> Time {
        let added = self.added(sys::suspended_for());
        self.clock.now() + added
    }

    /// What operators should know of a suspension since this was asked last.
    pub fn remark(&mut self) -> Option<String> {
        let slept = std::mem::take(&mut self.slept);
        (!slept.is_zero()).then(|| format!("cluster: the machine was suspended for {} ms: leases went on", slept.as_millis()))
    }

    /// This time as the process clock has it, for those who go by that; what suspensions took is over.
    pub fn on_clock(&self, time: Time) -> Time {
        Time(time.0.saturating_sub((self.last - self.first).as_nanos() as u64))
    }

    /// What is added, when the machine has been suspended for so long in all.
    fn added(&mut self, in_all: Duration) -> Duration {
        if in_all >= self.last + SUSPENDED_MIN {
            self.slept += in_all - self.last;
            self.last = in_all;
        }
        self.last - self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lease of nine seconds is one of nine seconds for the cores too, which read the process clock, however long the machine slept.
    #[test]
    fn who_goes_by_the_process_clock_is_told_its_time() {
        let mut awake = Awake::new(Clock::new());
        let lease = Duration::from_secs(9);
        assert_eq!(awake.on_clock(Time::ZERO + lease), Time::ZERO + lease);
        awake.added(awake.last + Duration::from_secs(3_600));
        let (before, until) = (awake.clock.now(), awake.now() + lease);
        let told = awake.on_clock(until);
        assert!(until >= Time::ZERO + Duration::from_secs(3_600) && told >= before + lease, "{until:?} {told:?}");
        assert!(told <= awake.clock.now() + lease && awake.on_clock(Time::ZERO) == Time::ZERO, "{told:?}");
    }

    #[test]
    fn each_suspension_counts_once() {
        let millis = Duration::from_millis;
        let mut awake = Awake::new(Clock::new());
        assert_eq!(awake.added(sys::suspended_for()), Duration::ZERO, "a reading is no suspension");
        let before = awake.last;
        let added = [20, 49, 50, 60, 99, 100, 90, 3_000].map(|more| awake.added(before + millis(more)).as_millis());
        assert_eq!(added, [0, 0, 50, 50, 50, 100, 100, 3_000]);
        assert!(awake.remark().is_some_and(|remark| remark.contains("3000 ms")) && awake.remark().is_none());
        assert!(awake.now() >= Time::from_millis(3_000));
    }
}
