//! How much of its time a core needs, as its overload detector counts it.
//!
//! A core that polls has work in nearly each turn long before it is at its limit: with little waiting it takes datagrams one by one, each at the
//! price of a whole turn, and takes more of them a turn when there are more. So of a turn with few datagrams what a turn costs
//! by itself does not count, only of one that took all it may.

use super::transport::BATCH;
use crate::proto::base::Time;
use std::time::Duration;

/// How long the shortest turn is remembered.
const MEMORY: Duration = Duration::from_millis(500);

/// The turns of one core.
#[derive(Debug)]
pub struct Work {
    turned: Time,
    /// The shortest turn with work of the time before, and of the time that runs since `since`.
    least: Duration,
    coming: Duration,
    since: Time,
}

impl Default for Work {
    fn default() -> Work {
        Work { turned: Time::ZERO, least: Duration::MAX, coming: Duration::MAX, since: Time::ZERO }
    }
}

impl Work {
    /// At `now` a turn has ended that took so many datagrams and found work or not; how much of it counts.
    #[inline]
    pub fn turn(&mut self, now: Time, worked: bool, taken: usize) -> Duration {
        let lasted = now.since(self.turned);
        self.turned = now;
        if !worked {
            return Duration::ZERO;
        }
        self.coming = self.coming.min(lasted);
        if now.since(self.since) >= MEMORY {
            (self.least, self.coming, self.since) = (self.coming, Duration::MAX, now);
        }
        let least = self.least.min(self.coming).as_nanos() as u64;
        let left = BATCH.saturating_sub(taken) as u64;
        lasted.saturating_sub(Duration::from_nanos(least / BATCH as u64 * left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share that counts when datagrams come every `gap` ns, a turn costs 3 us and each datagram 3 us, over 200 ms.
    fn share(gap: u64) -> f64 {
        let (mut work, mut now, mut waits, mut counted) = (Work::default(), 1_000u64, 0u64, Duration::ZERO);
        let (mut last, mut taken, mut from) = (0u64, 0usize, 0u64);
        for _ in 0..200_000 {
            counted += work.turn(Time(now), taken > 0, taken);
            if now >= 20_000_000 && from == 0 {
                (from, counted) = (now, Duration::ZERO);
            }
            waits += now / gap - last / gap;
            last = now;
            taken = (waits as usize).min(BATCH);
            waits -= taken as u64;
            now += 3_000 + 3_000 * taken as u64;
            if now > 200_000_000 {
                break;
            }
        }
        counted.as_nanos() as f64 / (now - from) as f64
    }

    #[test]
    fn a_core_that_could_take_more_at_once_is_not_at_its_limit() {
        let limit = 3_000 + 3_000 / BATCH as u64;
        assert!(share(limit * 100 / 70) < 0.7, "{}", share(limit * 100 / 70));
        assert!(share(limit * 100 / 90) < 0.95, "{}", share(limit * 100 / 90));
        assert!(share(limit * 100 / 150) > 0.995, "{}", share(limit * 100 / 150));
        let (mut work, mut now) = (Work::default(), Time::from_millis(1));
        work.turn(now, false, 0);
        now += Duration::from_micros(10);
        work.turn(now, true, 1);
        // Few datagrams that are much work, one after another.
        now += Duration::from_millis(50);
        assert!(work.turn(now, true, 10) > Duration::from_micros(49_980));
    }
}
