//! How much of its time a core needs, as its overload detector counts it.
//!
//! A core that polls has work in nearly each turn long before it is at its limit: with little waiting it takes datagrams one by one, each at the
//! price of a whole turn, and takes more of them a turn when there are more. So of a turn with few datagrams what a turn costs
//! by itself does not count, only of one that took all it may. The same holds for what comes through the rings from other cores.
//! Work that waits for nobody (slices of a command over many endpoints, deadlines) does not grow cheaper, and counts whole.

use crate::proto::base::Time;
use std::time::Duration;

/// How long the shortest turn is remembered.
const MEMORY: Duration = Duration::from_millis(500);

/// What a turn found to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// There was something.
    pub any: bool,
    /// It was due by the clock, or a slice of work that goes on.
    pub due: bool,
    /// Thousandths of what it may take, of the source that gave the greatest part.
    taken: u16,
}

impl Found {
    /// A source gave `count` where a turn takes `most`.
    #[inline]
    pub fn take(&mut self, count: usize, most: usize) {
        self.any |= count > 0;
        self.taken = self.taken.max((count.min(most) * 1000 / most.max(1)) as u16);
    }
}

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
    /// At `now` a turn has ended that found this; how much of it counts.
    #[inline]
    pub fn turn(&mut self, now: Time, found: Found) -> Duration {
        let lasted = now.since(self.turned);
        self.turned = now;
        if found.due {
            return lasted;
        }
        if !found.any {
            return Duration::ZERO;
        }
        self.coming = self.coming.min(lasted);
        if now.since(self.since) >= MEMORY {
            (self.least, self.coming, self.since) = (self.coming, Duration::MAX, now);
        }
        let least = self.least.min(self.coming).as_nanos() as u64;
        let left = 1000 - u64::from(found.taken);
        lasted.saturating_sub(Duration::from_nanos(least / 1000 * left + least % 1000 * left / 1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a turn takes at most.
    const BATCH: usize = 64;

    fn took(count: usize) -> Found {
        let mut found = Found::default();
        found.take(count, BATCH);
        found
    }

    /// The share that counts when datagrams come every `gap` ns, a turn costs 3 us and each datagram 3 us, over 200 ms.
    fn share(gap: u64) -> f64 {
        let (mut work, mut now, mut waits, mut counted) = (Work::default(), 1_000u64, 0u64, Duration::ZERO);
        let (mut last, mut taken, mut from) = (0u64, 0usize, 0u64);
        for _ in 0..200_000 {
            counted += work.turn(Time(now), took(taken));
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
        work.turn(now, took(0));
        now += Duration::from_micros(10);
        work.turn(now, took(1));
        // Few datagrams that are much work, one after another.
        now += Duration::from_millis(50);
        assert!(work.turn(now, took(10)) > Duration::from_micros(49_980));
    }

    /// The share that counts of equal turns of 100 us that found this.
    fn of_equal_turns(found: Found) -> f64 {
        let (mut work, mut counted) = (Work::default(), Duration::ZERO);
        for turn in 1..1000u64 {
            counted += work.turn(Time(turn * 100_000), found);
        }
        counted.as_nanos() as f64 / 99_900_000.0
    }

    #[test]
    fn a_core_that_is_fed_by_others_or_by_the_clock_comes_to_its_limit_too() {
        // A shard takes no datagrams: full rings are its limit, whichever is full.
        let mut found = took(3);
        found.take(128, 128);
        found.take(2, 128);
        assert!(of_equal_turns(found) > 0.999);
        assert!(of_equal_turns(took(1)) < 0.05);
        // Slices of a wildcard, one after another, with or without a datagram between them.
        assert!(of_equal_turns(Found { due: true, ..Found::default() }) > 0.999);
        assert!(of_equal_turns(Found { due: true, ..took(1) }) > 0.999);
        assert!(of_equal_turns(Found::default()) < 0.001);
    }
}
