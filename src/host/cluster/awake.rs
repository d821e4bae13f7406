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
}

impl Awake {
    /// The same time as that of `clock` until the machine is suspended.
    pub fn new(clock: Clock) -> Awake {
        let suspended = sys::suspended_for();
        Awake { clock, first: suspended, last: suspended }
    }

    /// Now.
    pub fn now(&mut self) -> Time {
        let added = self.added(sys::suspended_for());
        self.clock.now() + added
    }

    /// What is added, when the machine has been suspended for so long in all.
    fn added(&mut self, in_all: Duration) -> Duration {
        if in_all >= self.last + SUSPENDED_MIN {
            tracing::warn!("cluster: the machine was suspended for {} ms: leases went on", (in_all - self.last).as_millis());
            self.last = in_all;
        }
        self.last - self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_suspension_counts_once() {
        let millis = Duration::from_millis;
        let mut awake = Awake::new(Clock::new());
        assert_eq!(awake.added(sys::suspended_for()), Duration::ZERO, "a reading is no suspension");
        let before = awake.last;
        let added = [20, 49, 50, 60, 99, 100, 90, 3_000].map(|more| awake.added(before + millis(more)).as_millis());
        assert_eq!(added, [0, 0, 50, 50, 50, 100, 100, 3_000]);
        assert!(awake.now() >= Time::from_millis(3_000));
    }
}
