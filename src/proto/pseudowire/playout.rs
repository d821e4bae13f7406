//! When packets are played: the far end's clock, regained from the packets it sends (adaptive clock recovery, RFC 4553 4.3.2 and 6.2.2).
//!
//! A [`Playout`] says when each packet period ends. It begins with the nominal period of the local clock and is told, for each packet,
//! when it came and how many periods later its turn is: that is how long it waits in the jitter buffer. A control loop holds the mean
//! wait at a target by making periods a little longer or shorter, so that in the long run exactly as many are played as are sent. The
//! target itself follows the network: it grows at once when packets come too late, and shrinks slowly when they never do.
//!
//! Invariants: a period is within 0.1 % of the nominal one; one packet or period costs the same whatever came before.

use crate::proto::base::Time;
use std::time::Duration;

/// How long packets may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlayoutSettings {
    /// One packet period by the nominal clock.
    pub period: Duration,
    /// The shortest mean wait to aim at.
    pub wait_min: Duration,
    /// The longest.
    pub wait_max: Duration,
    /// The trunk's clock is the local one: periods are nominal, whatever the packets say. The far end follows then.
    pub own_clock: bool,
}

/// The clock of one pseudowire.
#[derive(Clone, Debug)]
pub struct Playout {
    /// Nanoseconds.
    period: f64,
    wait_min: f64,
    wait_max: f64,
    own_clock: bool,
    /// When the period that runs ends, and the part of a nanosecond behind it.
    next: Time,
    fraction: f64,
    target: f64,
    /// Correction of the period, as a share of it: what the far end's clock is off by, and what the present error adds.
    drift: f64,
    pull: f64,
    window: Window,
    /// Windows in a row in which the target was more than enough.
    calm: u32,
}

/// What was seen lately.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Nanoseconds of it that are over.
    elapsed: f64,
    packets: u32,
    sum: f64,
    least: f64,
}

/// How often the period and the target are corrected, in nanoseconds.
const WINDOW: f64 = 250e6;
/// An error is corrected in about so many seconds.
const PULL_S: f64 = 10.0;
/// The greatest difference between the clocks that is followed: T1 and E1 are within 50 ppm by their standards, free-running hosts within 100.
const DRIFT_MAX: f64 = 250e-6;
/// The greatest correction.
const CORRECTION_MAX: f64 = 1000e-6;
/// Nobody's packets may come later than so many nanoseconds before their turn.
const GUARD: f64 = 250e3;
/// After so many calm windows (30 s) the target shrinks.
const CALM: u32 = 120;
const NS: f64 = 1e9;

impl Playout {
    /// Of a pseudowire that begins to play one period after `now`.
    pub fn new(now: Time, settings: &PlayoutSettings) -> Playout {
        let ns = |duration: Duration| duration.as_secs_f64() * NS;
        let wait_min = ns(settings.wait_min);
        Playout {
            period: ns(settings.period),
            wait_min,
            wait_max: ns(settings.wait_max).max(wait_min),
            own_clock: settings.own_clock,
            next: now + settings.period,
            fraction: 0.0,
            target: wait_min,
            drift: 0.0,
            pull: 0.0,
            window: Window::default(),
            calm: 0,
        }
    }

    /// When the period that runs ends.
    pub fn due(&self) -> Time {
        self.next
    }

    /// What the far end's clock is faster by than the local one, in parts per million.
    pub fn drift_ppm(&self) -> f64 {
        -self.drift * 1e6
    }

    /// The mean wait that is aimed at.
    pub fn target(&self) -> Duration {
        Duration::from_nanos(self.target as u64)
    }

    /// A packet came at `arrival` that is played `ahead` periods after the one that runs, less than 0: it came too late.
    pub fn arrived(&mut self, arrival: Time, ahead: i32) {
        let until_next = self.next.0 as f64 - arrival.0 as f64;
        let wait = until_next + f64::from(ahead) * self.period;
        let window = &mut self.window;
        window.least = if window.packets == 0 { wait } else { window.least.min(wait) };
        window.packets += 1;
        window.sum += wait;
    }

    /// The period that runs is over. How many periods everything is to be played later from now on, because packets came too late; less
    /// than 0: sooner, because they wait longer than they ever may.
    pub fn step(&mut self) -> i32 {
        let length = self.period * (1.0 + (self.drift + self.pull).clamp(-CORRECTION_MAX, CORRECTION_MAX));
        let exact = length + self.fraction;
        let whole = exact.max(0.0) as u64;
        self.fraction = exact - whole as f64;
        self.next = Time(self.next.0.saturating_add(whole));
        self.window.elapsed += length;
        if self.window.elapsed < WINDOW {
            return 0;
        }
        let window = std::mem::take(&mut self.window);
        if window.packets == 0 {
            // Nothing came: go on as it was.
            self.pull = 0.0;
            return 0;
        }
        self.correct(&window)
    }

    /// Everything that was missed is forgotten: the next period ends one period after `now`.
    pub fn skip_to(&mut self, now: Time) {
        self.next = Time(now.0.saturating_add(self.period as u64));
        self.window = Window::default();
    }

    /// The far end begins anew, maybe another one: its clock is unknown.
    pub fn forget(&mut self) {
        (self.drift, self.pull, self.calm) = (0.0, 0.0, 0);
        self.window = Window::default();
    }

    fn correct(&mut self, window: &Window) -> i32 {
        let mut held = 0;
        let mean = window.sum / f64::from(window.packets);
        let missing = GUARD - window.least;
        if missing > 0.0 {
            self.calm = 0;
            // Small steps are walked, large ones jumped: the packets of many seconds would be late else. An own clock never walks.
            let jumps = self.own_clock || missing > self.period / 2.0;
            let missing = if self.own_clock { (missing / self.period).ceil() * self.period } else { missing };
            let target = (self.target + missing).min(self.wait_max);
            if jumps {
                held = ((target - self.target) / self.period).ceil() as i32;
            }
            self.target = target;
        } else if mean > self.wait_max + self.period {
            // This machine or the network stood still, and all that came meanwhile waits. Walking back would take minutes.
            self.calm = 0;
            held = -(((mean - self.target) / self.period) as i32);
        } else if -missing > self.period {
            self.calm += 1;
            if self.calm >= CALM {
                self.calm = 0;
                self.target = (self.target + missing / 4.0).max(self.wait_min);
            }
        } else {
            self.calm = 0;
        }
        if self.own_clock {
            return held;
        }
        let wait = mean + f64::from(held) * self.period;
        // Positive: packets wait too long, periods must be shorter.
        let error = (self.target - wait) / NS;
        self.pull = error / PULL_S;
        let gain = 1.0 / (4.0 * PULL_S * PULL_S);
        self.drift = (self.drift + error * gain * window.elapsed / NS).clamp(-DRIFT_MAX, DRIFT_MAX);
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Rng;
    use std::collections::VecDeque;

    const PERIOD: Duration = Duration::from_millis(4);
    const SETTINGS: PlayoutSettings =
        PlayoutSettings { period: PERIOD, wait_min: Duration::from_millis(6), wait_max: Duration::from_millis(60), own_clock: false };

    /// What was played with an empty buffer, and the extremes of the wait, in the second half of so many seconds.
    fn run(seconds: u64, ppm: f64, jitter_us: u64, playout: &mut Playout) -> (u64, f64, f64, u64) {
        let mut rng = Rng::new(7);
        let (mut sent, mut played, mut empty, mut slips) = (0u64, 0i64, 0, 0);
        let mut on_the_way: VecDeque<(u64, u64)> = VecDeque::new();
        let mut arrived = 0u64;
        let (mut least, mut most) = (f64::MAX, f64::MIN);
        let length = PERIOD.as_nanos() as f64 / (1.0 + ppm * 1e-6);
        let mut held = 0u16;
        while playout.due().0 < seconds * 1_000_000_000 {
            let now = playout.due();
            while (sent as f64 * length) as u64 <= now.0 {
                let at = (sent as f64 * length) as u64 + 5_000_000 + rng.below(jitter_us * 1000 + 1);
                let at = at.max(on_the_way.back().map_or(0, |(at, _)| *at));
                on_the_way.push_back((at, sent));
                sent += 1;
            }
            while let Some((at, number)) = on_the_way.front().copied().filter(|(at, _)| *at <= now.0) {
                on_the_way.pop_front();
                let ahead = number as i64 - played + i64::from(held);
                playout.arrived(Time(at), ahead as i32);
                arrived = number + 1;
                if now.0 > seconds * 500_000_000 {
                    let wait = (playout.due().0 as f64 - at as f64) / 1e6 + ahead as f64 * 4.0;
                    (least, most) = (least.min(wait), most.max(wait));
                }
            }
            let steps = playout.step();
            slips += u64::from(steps.unsigned_abs());
            held += u16::try_from(steps).expect("nothing waits too long");
            if held > 0 {
                held -= 1;
            } else if arrived < 3 {
            } else {
                empty += u64::from(played as u64 >= arrived && now.0 > seconds * 500_000_000);
                played += 1;
            }
        }
        (empty, least, most, slips)
    }

    #[test]
    fn a_far_end_50_ppm_off_is_followed_for_two_hours_without_a_slip() {
        for ppm in [-50.0, 50.0, -100.0] {
            let mut playout = Playout::new(Time::ZERO, &SETTINGS);
            let (empty, least, most, slips) = run(7200, ppm, 2000, &mut playout);
            assert_eq!((empty, slips), (0, 0), "{ppm}");
            assert!(least > 0.0 && most < 12.0, "{ppm}: {least} to {most} ms");
            assert!((playout.drift_ppm() - ppm).abs() < 5.0, "{ppm}: {}", playout.drift_ppm());
        }
    }

    #[test]
    fn the_wait_grows_with_the_jitter_of_the_network() {
        let mut playout = Playout::new(Time::ZERO, &SETTINGS);
        let (empty, _, most, slips) = run(600, 20.0, 20_000, &mut playout);
        assert!(empty == 0 && most < 60.0, "{empty} empty, {most} ms, {slips} slips");
        assert!(playout.target() > Duration::from_millis(9), "{:?}", playout.target());
    }

    #[test]
    fn what_waits_longer_than_it_ever_may_is_jumped_over() {
        let mut playout = Playout::new(Time::ZERO, &SETTINGS);
        let mut jumped = 0;
        for _ in 0..100 {
            // 25 packets, so 100 ms, wait behind the one that runs, where 60 ms is the most and 6 ms is aimed at.
            playout.arrived(playout.due(), 25 + jumped);
            jumped += playout.step();
        }
        assert_eq!(jumped, -23, "100 ms to 8 ms");
    }

    #[test]
    fn the_local_clock_goes_on_when_nothing_comes() {
        let mut playout = Playout::new(Time::ZERO, &SETTINGS);
        assert!((0..1_000).all(|_| playout.step() == 0));
        assert_eq!(playout.due(), Time::ZERO + PERIOD * 1_001);
    }
}
