//! How fast new commands go to one agent (RFC 3435 4.4.8; G-LOD-02, G-LOD-03).
//!
//! The rate follows what the agent shows: while its smoothed response time stays near the best it had, the rate grows by a fixed step a
//! second up to the highest; when the response time rises beyond a multiple of that, or the agent says 101 or 409, the rate falls by a
//! share, at most once in each response time, down to the lowest. Only first copies are paced: repeats have their own back-off.

use super::Time;
use std::time::Duration;

/// How a rate is adapted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PaceSettings {
    /// New commands a second at first and at most; 0: no limit, and nothing is adapted.
    pub rate_max: u32,
    /// New commands a second at least.
    pub rate_min: u32,
    /// A response weighs 1 in so many in the smoothed response time.
    pub average: u32,
    /// The response time has risen when it is more than so many percent of the best one.
    pub rise_percent: u32,
    /// Below this the response time has not risen, whatever the best one was.
    pub rise_least: Duration,
    /// What is left of the rate after a fall, in percent.
    pub fall_percent: u32,
    /// What is added to the rate each second without trouble, in commands a second.
    pub step: u32,
}

impl Default for PaceSettings {
    fn default() -> PaceSettings {
        PaceSettings {
            rate_max: 1000,
            rate_min: 2,
            average: 8,
            rise_percent: 300,
            rise_least: Duration::from_millis(100),
            fall_percent: 50,
            step: 50,
        }
    }
}

/// What was not sent in this time may follow at once.
const BURST: Duration = Duration::from_millis(100);
/// Places are given out no further ahead: the rate may change.
const AHEAD: Duration = Duration::from_millis(100);
/// Falls come at most so often, however fast the agent is.
const FALL_EVERY: Duration = Duration::from_millis(50);
/// The best response time is forgotten by this share of it each time it is missed: an agent that moved further away is not slowed for ever.
const FORGET: u32 = 1024;

/// The pace towards one agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Thousandths of commands a second; `None`: as fast as may be.
    rate: Option<u64>,
    /// When the rate was last changed.
    changed: Time,
    /// When the place after those given out is.
    next: Time,
    smoothed: Option<Duration>,
    best: Option<Duration>,
}

impl Pace {
    /// When a new command may go: the place is its own then. `Err`: so many are before it that it is too early to say; ask again then.
    pub fn reserve(&mut self, now: Time, settings: &PaceSettings) -> Result<Time, Time> {
        let Some(rate) = self.limit(now, settings) else { return Ok(now) };
        let at = self.next.max(Time(now.0.saturating_sub(BURST.as_nanos() as u64)));
        if at > now + AHEAD {
            return Err(now + AHEAD);
        }
        self.next = at + Duration::from_nanos(1_000_000_000_000 / rate.max(1));
        Ok(at.max(now))
    }

    /// A command was answered `delay` after its only copy.
    pub fn answered(&mut self, now: Time, delay: Duration, settings: &PaceSettings) {
        let weight = settings.average.max(1);
        let smoothed = self.smoothed.map_or(delay, |old| old - old / weight + delay / weight);
        let best = self.best.map_or(smoothed, |best| (best + best / FORGET).min(smoothed));
        (self.smoothed, self.best) = (Some(smoothed), Some(best));
        let risen = (best * settings.rise_percent.max(100) / 100).max(settings.rise_least);
        if smoothed > risen {
            self.slow_down(now, settings);
        }
    }

    /// The agent said 101 or 409, or the response time rose.
    pub fn slow_down(&mut self, now: Time, settings: &PaceSettings) {
        let Some(rate) = self.limit(now, settings) else { return };
        let settled = self.smoothed.unwrap_or_default().max(FALL_EVERY);
        if self.rate.is_some() && now.since(self.changed) < settled {
            return;
        }
        let least = u64::from(settings.rate_min.max(1)) * 1000;
        let rate = (rate * u64::from(settings.fall_percent.min(99)) / 100).max(least);
        (self.rate, self.changed) = (Some(rate), now);
    }

    /// The rate now, in commands a second; `None`: no limit.
    pub fn rate(&self, now: Time, settings: &PaceSettings) -> Option<u64> {
        self.limit(now, settings).map(|thousandths| thousandths / 1000)
    }

    /// The smoothed response time.
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The rate now, in thousandths: it grows by itself.
    fn limit(&self, now: Time, settings: &PaceSettings) -> Option<u64> {
        if settings.rate_max == 0 {
            return None;
        }
        let most = u64::from(settings.rate_max) * 1000;
        let Some(rate) = self.rate else { return Some(most) };
        let grown = (now.since(self.changed).as_millis() as u64).saturating_mul(u64::from(settings.step));
        Some(rate.saturating_add(grown).min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// How many commands go in `time` when there is always one to send.
    fn sent(pace: &mut Pace, now: &mut Time, time: Duration, settings: &PaceSettings) -> u32 {
        let until = *now + time;
        let mut count = 0;
        while *now < until {
            match pace.reserve(*now, settings) {
                Ok(at) => count += u32::from(at < until),
                Err(at) => *now = at,
            }
        }
        count
    }

    #[test]
    fn a_slower_agent_gets_fewer_commands_and_a_recovered_one_as_many_as_before() {
        // G-LOD-02: 50 ms become 800 ms.
        let settings = PaceSettings { rate_max: 100, step: 10, ..PaceSettings::default() };
        let (mut pace, mut now) = (Pace::default(), Time::from_millis(1000));
        for _ in 0..50 {
            pace.answered(now, 50 * MS, &settings);
        }
        let full = sent(&mut pace, &mut now, 1000 * MS, &settings);
        assert!((95..=112).contains(&full), "{full}");
        for _ in 0..300 {
            now += 20 * MS;
            pace.answered(now, 800 * MS, &settings);
        }
        let slowed = sent(&mut pace, &mut now, 1000 * MS, &settings);
        assert!(slowed <= 40, "{slowed}");
        now += 20_000 * MS;
        let full = sent(&mut pace, &mut now, 1000 * MS, &settings);
        assert!((95..=112).contains(&full), "{full}");
    }

    #[test]
    fn overload_answers_slow_down_to_the_lowest_rate_but_once_each_response_time() {
        // G-LOD-02, G-LOD-03
        let settings = PaceSettings { rate_max: 64, rate_min: 4, step: 0, fall_percent: 50, ..PaceSettings::default() };
        let (mut pace, mut now) = (Pace::default(), Time::from_millis(1000));
        for _ in 0..10 {
            pace.slow_down(now, &settings);
        }
        assert_eq!(pace.rate(now, &settings), Some(32), "ten at a time are one");
        for _ in 0..10 {
            now += 100 * MS;
            pace.slow_down(now, &settings);
        }
        assert_eq!(pace.rate(now, &settings), Some(4));
        let gentle = PaceSettings { fall_percent: 90, ..settings };
        let mut other = Pace::default();
        other.slow_down(now, &gentle);
        assert_eq!(other.rate(now, &gentle), Some(57));
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let settings = PaceSettings { rate_max: 0, ..PaceSettings::default() };
        let mut pace = Pace::default();
        pace.slow_down(Time::from_millis(5), &settings);
        assert!((0..10_000).all(|_| pace.reserve(Time::from_millis(5), &settings) == Ok(Time::from_millis(5))));
        assert_eq!(pace.rate(Time::from_millis(5), &settings), None);
    }

    #[test]
    fn an_agent_that_moved_further_away_is_not_slowed_for_ever() {
        let settings = PaceSettings::default();
        let (mut pace, mut now) = (Pace::default(), Time::from_millis(1000));
        pace.answered(now, 50 * MS, &settings);
        for _ in 0..20_000 {
            now += 10 * MS;
            pace.answered(now, 200 * MS, &settings);
        }
        assert_eq!(pace.rate(now, &settings), Some(1000));
    }
}
