//! The watch over the cores: one that does not go round its loop raises an alarm, later it ends the process.
//!
//! Pure: what it sees (the time, the last beat of each core) is handed in. When the watch itself did not run for a while (the process
//! was stopped, the machine slept), nobody is blamed for that time: silence counts from when the watch goes on.

use crate::proto::base::{CoreId, Time};
use std::time::Duration;

/// What is seen of a core.
#[derive(Clone, Copy, Debug)]
pub struct Sign {
    /// Which.
    pub core: CoreId,
    /// When it last went round its loop.
    pub beat: Time,
    /// Whether its thread has ended.
    pub ended: bool,
}

/// What there is to tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// A core is silent for so long: an alarm.
    Silent(CoreId, Duration),
    /// It goes round again; it was silent for so long.
    Back(CoreId, Duration),
    /// It is silent for too long: the process must end.
    TooLong(CoreId, Duration),
    /// It has ended by itself: the process must end.
    Ended(CoreId),
}

impl News {
    /// Which core it is about.
    pub fn core(self) -> CoreId {
        match self {
            News::Silent(core, _) | News::Back(core, _) | News::TooLong(core, _) | News::Ended(core) => core,
        }
    }
}

/// The watch.
pub struct Watch {
    /// When it last looked.
    looked: Time,
    /// Since when it looks without a gap.
    since: Time,
    /// How long each core is silent, as told in the latest alarm about it.
    silent: Vec<Option<Duration>>,
    /// Of each whether it was told that the process must end for its sake.
    lost: Vec<bool>,
}

/// A gap between two looks this many times longer than the alarm limit's quarter is one in which the watch did not run.
const GAP: u32 = 4;

impl Watch {
    /// A watch over so many cores that begins now.
    pub fn new(now: Time, cores: usize) -> Watch {
        Watch { looked: now, since: now, silent: vec![None; cores], lost: vec![false; cores] }
    }

    /// How often to look: often enough to tell of a silence soon after `alarm`.
    pub fn interval(alarm: Duration) -> Duration {
        (alarm / 4).clamp(Duration::from_millis(20), Duration::from_millis(250))
    }

    /// Looks at the cores. `alarm` and `exit` are the limits of silence.
    pub fn look(&mut self, now: Time, signs: impl Iterator<Item = Sign>, alarm: Duration, exit: Duration) -> Vec<News> {
        if now.since(self.looked) > Watch::interval(alarm) * GAP {
            self.since = now;
        }
        self.looked = now;
        let mut news = Vec::new();
        for ((sign, told), lost) in signs.zip(&mut self.silent).zip(&mut self.lost) {
            let silence = now.since(sign.beat.max(self.since));
            if sign.ended || silence > exit {
                if !std::mem::replace(lost, true) {
                    news.push(if sign.ended { News::Ended(sign.core) } else { News::TooLong(sign.core, silence) });
                }
            } else if silence > alarm {
                if told.is_none() {
                    news.push(News::Silent(sign.core, silence));
                }
                *told = Some(silence);
            } else if sign.beat >= self.since
                && let Some(was) = told.take()
            {
                news.push(News::Back(sign.core, was));
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALARM: Duration = Duration::from_millis(500);
    const EXIT: Duration = Duration::from_secs(5);

    /// Looks every 100 ms at a core that beats until `stops` and again from `starts` on, all in ms.
    fn watch(until: u64, stops: u64, starts: u64, asleep: std::ops::Range<u64>) -> Vec<(u64, News)> {
        let mut watch = Watch::new(Time::ZERO, 1);
        let mut news = Vec::new();
        for now in (0..=until).step_by(100).filter(|now| !asleep.contains(now)) {
            let beat = if now >= starts { now } else { now.min(stops) };
            // A process that sleeps beats no more than it looks.
            let beat = if (asleep.start..=asleep.end).contains(&beat) { asleep.start } else { beat };
            let sign = Sign { core: CoreId(0), beat: Time::from_millis(beat), ended: false };
            news.extend(watch.look(Time::from_millis(now), [sign].into_iter(), ALARM, EXIT).into_iter().map(|news| (now, news)));
        }
        news
    }

    #[test]
    fn a_silent_core_is_told_once_and_so_is_its_return() {
        let news = watch(4000, 1000, 3000, 0..0);
        let (silent, back) = (Duration::from_millis(600), Duration::from_millis(1900));
        assert_eq!(news, [(1600, News::Silent(CoreId(0), silent)), (3000, News::Back(CoreId(0), back))]);
    }

    #[test]
    fn a_core_silent_too_long_ends_the_process() {
        let news = watch(6100, 1000, u64::MAX, 0..0);
        assert_eq!(news.last(), Some(&(6100, News::TooLong(CoreId(0), Duration::from_millis(5100)))));
    }

    #[test]
    fn nobody_is_blamed_while_the_whole_process_slept() {
        assert_eq!(watch(20_000, u64::MAX, u64::MAX, 1000..9000), []);
        // A core that does not come back afterwards is blamed from then on.
        let news = watch(16_000, 500, u64::MAX, 1000..9000);
        assert_eq!(news.first(), Some(&(9600, News::Silent(CoreId(0), Duration::from_millis(600)))));
        assert_eq!(news.get(1).map(|(at, _)| *at), Some(14_100));
    }

    #[test]
    fn a_core_that_ended_is_told() {
        let mut watch = Watch::new(Time::ZERO, 1);
        let sign = Sign { core: CoreId(3), beat: Time::ZERO, ended: true };
        assert_eq!(watch.look(Time::ZERO, [sign].into_iter(), ALARM, EXIT), [News::Ended(CoreId(3))]);
    }
}
