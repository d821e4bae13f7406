//! The clock: the one place that reads time.
//!
//! Owns the origin of [`Time`] (the moment the [`Clock`] was made, on CLOCK_BOOTTIME) and the translation of the kernel's receive
//! timestamps, which are wall-clock times, to it. It keeps no timers and does not sleep.
//!
//! Time goes on while the machine is suspended, as it does for all it talks to: whoever wakes up finds the lease it admits calls by, or leads
//! by, over before it does anything by it.

use super::transport::sys;
use crate::proto::base::Time;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How old the relation between wall clock and [`Time`] may grow before it is measured again. A step of the wall clock falsifies
/// arrivals for at most this long.
const WALL_REFRESH: Duration = Duration::from_millis(1);

/// The source of [`Time`]. Copies share the origin.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// CLOCK_BOOTTIME at [`Time::ZERO`].
    origin_ns: u64,
}

impl Clock {
    /// A clock whose [`Time::ZERO`] is now. One per process.
    #[allow(clippy::new_without_default, reason = "reading the clock is not a default")]
    pub fn new() -> Clock {
        Clock { origin_ns: sys::boot_time_ns() }
    }

    /// The time now; never goes back. About 25 ns.
    #[inline]
    pub fn now(&self) -> Time {
        Time(sys::boot_time_ns().saturating_sub(self.origin_ns))
    }
}

/// Works for so long: a simulated cost, for tests of overload.
pub fn spin(time: Duration) {
    let clock = Clock::new();
    while clock.now().since(Time::ZERO) < time {
        std::hint::spin_loop();
    }
}

/// Translates wall-clock timestamps of the kernel to [`Time`].
#[derive(Debug)]
pub struct WallClock {
    /// Wall time at [`Time::ZERO`], in nanoseconds since 1970.
    wall_at_zero_ns: i128,
    measured: Time,
}

impl WallClock {
    /// Measures the relation between both clocks.
    pub fn new(clock: &Clock) -> WallClock {
        let now = clock.now();
        WallClock { wall_at_zero_ns: wall_ns() - i128::from(now.0), measured: now }
    }

    /// Measures again when the last measurement is older than a millisecond. `now` must have been read just before.
    #[inline]
    pub fn refresh(&mut self, now: Time) {
        if now.since(self.measured) >= WALL_REFRESH {
            self.wall_at_zero_ns = wall_ns() - i128::from(now.0);
            self.measured = now;
        }
    }

    /// The [`Time`] of a wall-clock time (nanoseconds since 1970), never later than `now` and never before [`Time::ZERO`].
    #[inline]
    pub fn time(&self, wall_ns: u64, now: Time) -> Time {
        Time(u64::try_from((i128::from(wall_ns) - self.wall_at_zero_ns).max(0)).unwrap_or(u64::MAX).min(now.0))
    }
}

/// The wall clock in seconds since 1970.
pub fn wall_s(clock: &Clock) -> u64 {
    wall_us_at_zero(clock).saturating_add(clock.now().0 / 1_000) / 1_000_000
}

/// The wall-clock time of [`Time::ZERO`] as of now, in microseconds since 1970.
pub fn wall_us_at_zero(clock: &Clock) -> u64 {
    u64::try_from(WallClock::new(clock).wall_at_zero_ns / 1000).unwrap_or(0)
}

/// Nanoseconds since 1970; 0 before that.
#[allow(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
fn wall_ns() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i128::try_from(d.as_nanos()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R37: the kernel's time since boot, suspensions included.
    #[test]
    fn time_goes_on_while_the_machine_is_suspended() {
        let uptime = || {
            let text = std::fs::read_to_string("/proc/uptime").expect("the time since boot");
            Duration::from_secs_f64(text.split(' ').next().and_then(|seconds| seconds.parse().ok()).expect("seconds"))
        };
        let before = uptime();
        let read = Duration::from_nanos(Clock::new().origin_ns);
        let after = uptime();
        // It is told in hundredths of a second.
        let hundredth = Duration::from_millis(10);
        assert!(before <= read + hundredth && read <= after + hundredth, "{before:?} {read:?} {after:?}");
    }

    #[test]
    fn a_wall_time_taken_now_is_now() {
        let clock = Clock::new();
        let mut wall = WallClock::new(&clock);
        std::thread::park_timeout(Duration::from_millis(5));
        let before = clock.now();
        wall.refresh(before);
        let taken = u64::try_from(wall_ns()).expect("after 1970");
        let after = clock.now();
        let translated = wall.time(taken, after);
        assert!(translated.0 + 1_000_000 >= before.0 && translated <= after, "{before:?} {translated:?} {after:?}");
    }

    #[test]
    fn translation_is_confined_to_the_past_and_the_origin() {
        let clock = Clock::new();
        let wall = WallClock { wall_at_zero_ns: 1_000, measured: clock.now() };
        assert_eq!(wall.time(1_500, Time(10_000)), Time(500));
        assert_eq!(wall.time(999, Time(10_000)), Time::ZERO);
        assert_eq!(wall.time(u64::MAX, Time(10_000)), Time(10_000));
    }
}
