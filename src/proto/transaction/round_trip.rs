//! How long an agent takes to answer, and how long to wait for it (RFC 3435 3.5.3; F-2, F-3).
//!
//! Owns the estimates for one agent: average delay (AAD), average deviation (ADEV), and the share of datagrams lost. A [`Backoff`] is
//! the timer of one transaction that begins from them. Repeated transactions never move the estimates (G-RTX-04): nobody knows which
//! copy was answered.

use super::Timers;
use crate::proto::base::Rng;
use std::time::Duration;

/// N of F-2: deviations that the timer allows for.
const DEVIATIONS: u32 = 4;
/// What the timer allows beyond the average delay at least, once delays have been measured: their grain.
const GRAIN: Duration = Duration::from_millis(10);
/// Where Max1 follows the loss: the fewest repeats that are more than a hiccup of the agent.
const MAX1_LEAST: u8 = 3;
/// The loss estimate covers half of this to all of this many datagrams.
const LOSS_WINDOW: u32 = 8192;

/// The estimates for one agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrip {
    /// AAD and ADEV; none before the first measurement.
    measured: Option<(Duration, Duration)>,
    /// The timer of the last repeat that was answered, until a command is answered at the first try.
    carried: Option<Duration>,
    sent: u32,
    repeated: u32,
}

impl RoundTrip {
    /// The average delay, AAD; none before the first measurement.
    pub fn average(&self) -> Option<Duration> {
        self.measured.map(|(average, _)| average)
    }

    /// The average deviation, ADEV; none before the first measurement.
    pub fn deviation(&self) -> Option<Duration> {
        self.measured.map(|(_, deviation)| deviation)
    }

    /// The timer a new command begins with (RTO).
    pub fn rto(&self, timers: &Timers) -> Duration {
        self.start(timers).timer
    }

    /// Datagrams sent, and of these the ones that had to be sent again, of late: the loss to and from the agent (G-RTX-16).
    pub fn copies(&self) -> (u32, u32) {
        (self.sent, self.repeated)
    }

    /// The share of datagrams that had to be repeated, in parts per million; none before 100 were answered.
    pub fn loss_ppm(&self) -> Option<u32> {
        loss_ppm(self.sent, self.repeated)
    }

    /// Max1 towards the agent: by the loss, if that is wanted and known, as many repeats as are lost in a row once in 10^10 times.
    pub fn max1(&self, timers: &Timers) -> u8 {
        let Some(loss) = self.loss_ppm().filter(|_| timers.max1_by_loss) else { return timers.max1 };
        let most = timers.max2.saturating_sub(1).max(1);
        // In units of 10^-18.
        let (mut all_lost, mut repeats) = (1_000_000_000_000_000_000u128, 0);
        while all_lost > 100_000_000 && repeats < most {
            all_lost = all_lost * u128::from(loss) / 1_000_000;
            repeats += 1;
        }
        repeats.max(MAX1_LEAST.min(most))
    }

    /// The timer of a new transaction.
    pub fn start(&self, timers: &Timers) -> Backoff {
        let (average, spread) = match self.measured {
            Some((average, deviation)) => (average, (deviation * DEVIATIONS).max(GRAIN)),
            None => (timers.rto_initial, Duration::ZERO),
        };
        let timer = self.carried.unwrap_or(average + spread).clamp(timers.rto_min, timers.rto_max);
        // A carried timer is longer than the averages say: back-off goes on from there.
        Backoff { delay: average.max(timer.saturating_sub(spread)), spread, timer }
    }

    /// A transaction got its first response `delay` after it was sent, without a repeat.
    pub fn answered_at_first_try(&mut self, delay: Duration) {
        self.measured = Some(match self.measured {
            // As TCP begins (RFC 6298 2.2).
            None => (delay, delay / 2),
            Some((average, deviation)) => {
                let error = delay.abs_diff(average);
                (average - average / 8 + delay / 8, deviation - deviation / 4 + error / 4)
            }
        });
        self.carried = None;
        self.count(1, 0);
    }

    /// A transaction got its first response after repeats, `here` of them to the address it is at now, when its timer was `timer`.
    /// Copies to an address that was given up before say nothing about delay or loss.
    pub fn answered_after_repeats(&mut self, here: u32, timer: Duration) {
        if here > 0 {
            self.carried = Some(timer);
        }
        self.count(here + 1, here);
    }

    fn count(&mut self, sent: u32, repeated: u32) {
        self.sent += sent;
        self.repeated += repeated;
        if self.sent >= LOSS_WINDOW {
            (self.sent, self.repeated) = (self.sent / 2, self.repeated / 2);
        }
    }
}

/// The share of datagrams sent again, in parts per million; none when too few were sent to say.
pub fn loss_ppm(sent: u32, repeated: u32) -> Option<u32> {
    (sent >= 100).then(|| (u64::from(repeated) * 1_000_000 / u64::from(sent)) as u32)
}

/// The retransmission timer of one transaction.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// T-DELAY.
    delay: Duration,
    /// N * ADEV as it was when the transaction began.
    spread: Duration,
    /// How long to wait after the latest transmission.
    timer: Duration,
}

impl Backoff {
    /// How long to wait after the latest transmission.
    pub fn timer(&self) -> Duration {
        self.timer
    }

    /// After a repeat (F-3): the delay doubles, and the timer is drawn anew.
    pub fn repeat(&mut self, timers: &Timers, rng: &mut Rng) {
        // Beyond RTO-MAX doubling changes the draw no more.
        self.delay = (self.delay * 2).min(timers.rto_max * 2);
        let drawn = if timers.jitter { rng.duration(self.delay / 2, self.delay) } else { self.delay };
        self.timer = (drawn + self.spread).clamp(timers.rto_min, timers.rto_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_timer_follows_the_delay_between_its_bounds() {
        // G-RTX-02: a constant delay of 300 ms, then one of 10 s.
        let timers = Timers::default();
        let mut trip = RoundTrip::default();
        assert_eq!(trip.rto(&timers), timers.rto_initial);
        (0..100).for_each(|_| trip.answered_at_first_try(300 * MS));
        let rto = trip.rto(&timers);
        assert!(rto >= 305 * MS && rto <= 315 * MS, "{rto:?}");
        (0..100).for_each(|_| trip.answered_at_first_try(10_000 * MS));
        assert_eq!(trip.rto(&timers), timers.rto_max);
        (0..200).for_each(|_| trip.answered_at_first_try(MS / 10));
        assert_eq!(trip.rto(&timers), timers.rto_min);
    }

    #[test]
    fn repeats_are_spread_within_the_bounds() {
        // G-RTX-03, F-3.
        let timers = Timers::default();
        let mut trip = RoundTrip::default();
        (0..100).for_each(|i| trip.answered_at_first_try((190 + i % 20) * MS));
        let (average, spread) = (trip.average().unwrap(), trip.deviation().unwrap() * DEVIATIONS);
        let mut rng = Rng::new(9);
        let mut sum = Duration::ZERO;
        for _ in 0..1000 {
            let mut backoff = trip.start(&timers);
            assert_eq!(backoff.timer(), average + spread);
            let mut delay = average;
            for _ in 0..6 {
                backoff.repeat(&timers, &mut rng);
                delay *= 2;
                assert!(backoff.timer() >= (delay / 2 + spread).min(timers.rto_max));
                assert!(backoff.timer() <= (delay + spread).min(timers.rto_max));
            }
            let mut first = trip.start(&timers);
            first.repeat(&timers, &mut rng);
            sum += first.timer();
        }
        let middle = average + average / 2 + spread;
        assert!((sum / 1000).abs_diff(middle) < average / 20, "{:?} {middle:?}", sum / 1000);
    }

    #[test]
    fn a_repeated_transaction_moves_no_estimate_and_its_timer_is_carried_on() {
        // G-RTX-04.
        let timers = Timers::default();
        let mut trip = RoundTrip::default();
        (0..50).for_each(|_| trip.answered_at_first_try(200 * MS));
        let (average, deviation) = (trip.average(), trip.deviation());
        trip.answered_after_repeats(2, 730 * MS);
        assert_eq!((trip.average(), trip.deviation()), (average, deviation));
        assert_eq!(trip.rto(&timers), 730 * MS);
        trip.answered_at_first_try(200 * MS);
        assert!(trip.rto(&timers) < 220 * MS);
    }

    #[test]
    fn max1_follows_the_loss_where_that_is_wanted() {
        // G-RTX-16; RFC 3435 4.3 has five at 1 %.
        let by_loss = Timers { max1_by_loss: true, max2: 12, ..Timers::default() };
        for (lost, max1) in [(0, 3), (1, 4), (10, 5), (50, 8), (100, 10), (500, 11)] {
            let mut trip = RoundTrip::default();
            assert_eq!(trip.max1(&by_loss), 5, "not known yet");
            (0..1000 - 2 * lost).for_each(|_| trip.answered_at_first_try(MS));
            (0..lost).for_each(|_| trip.answered_after_repeats(1, MS));
            assert_eq!(trip.loss_ppm(), Some(lost * 1000));
            assert_eq!((trip.max1(&by_loss), trip.max1(&Timers::default())), (max1, 5), "{lost}");
            assert!(trip.max1(&Timers { max2: 7, ..by_loss }) <= 6);
        }
    }

    #[test]
    fn loss_is_estimated_from_repeats() {
        // G-RTX-16: 10 % of round trips lost.
        let mut rng = Rng::new(77);
        let mut trip = RoundTrip::default();
        assert_eq!(trip.loss_ppm(), None);
        for _ in 0..50_000 {
            let repeats = (0..).take_while(|_| rng.chance(100_000)).count() as u32;
            match repeats {
                0 => trip.answered_at_first_try(MS),
                n => trip.answered_after_repeats(n, MS),
            }
        }
        let loss = trip.loss_ppm().unwrap();
        assert!((80_000..120_000).contains(&loss), "{loss}");
    }
}
