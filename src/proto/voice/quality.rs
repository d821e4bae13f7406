//! How well a far end is heard: R/pl, as an agent asks for it, and R/qa, by what is provisioned (RFC 3660 2.10).

use super::statistics::Statistics;
use crate::proto::base::Time;
use std::time::Duration;

/// Loss is judged from so many packets on: a second of them, so that one of the first few that is lost is no rate.
const PACKETS_MIN: u32 = 50;
/// Quality is judged over so long.
const SPAN: Duration = Duration::from_secs(5);

/// What is poor (R/qa). Zero: it is not looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quality {
    /// More packets than so many of 1,000 are lost within five seconds.
    pub loss_per_mille: u16,
    /// The far end is further away than so many ms, one way.
    pub delay_ms: u16,
    /// The arrival of its packets varies by more than so many ms.
    pub jitter_ms: u16,
}

impl Default for Quality {
    fn default() -> Quality {
        Quality { loss_per_mille: 50, delay_ms: 400, jitter_ms: 60 }
    }
}

/// Packets expected and lost up to now.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    expected: u32,
    lost: u32,
}

impl Mark {
    fn of(statistics: &Statistics) -> Mark {
        let lost = statistics.lost();
        Mark { expected: statistics.packets.saturating_add(lost), lost }
    }

    /// Packets since then, and those lost of them; none before there are enough to judge.
    fn since(self, statistics: &Statistics) -> Option<(u64, u64)> {
        let now = Mark::of(statistics);
        let expected = now.expected.saturating_sub(self.expected);
        (expected >= PACKETS_MIN).then(|| (expected.into(), now.lost.saturating_sub(self.lost).into()))
    }
}

/// What an agent waits for on a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loss {
    asked: Option<(u32, Mark)>,
    /// It looked like that before: a packet that only came out of order is not lost the next time.
    seen: bool,
}

impl Loss {
    /// It waits for more than so many of 100,000, from now on.
    pub fn ask(&mut self, limit: u32, statistics: &Statistics) {
        *self = Loss { asked: Some((limit, Mark::of(statistics))), seen: false };
    }

    /// The limit that is passed; once.
    pub fn is_over(&mut self, statistics: &Statistics) -> Option<u32> {
        let (limit, from) = self.asked?;
        let over = from.since(statistics).is_some_and(|(expected, lost)| lost * 100_000 > u64::from(limit) * expected);
        if !std::mem::replace(&mut self.seen, over) || !over {
            return None;
        }
        self.asked = None;
        Some(limit)
    }
}

/// How it was judged last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Grade {
    begun: Time,
    from: Mark,
    poor: bool,
}

impl Grade {
    /// Whether it has become poor.
    pub fn is_poor(&mut self, now: Time, quality: &Quality, statistics: &Statistics, delay_ms: u32) -> bool {
        if now.since(self.begun) < SPAN {
            return false;
        }
        let judged = self.from.since(statistics);
        (self.begun, self.from) = (now, Mark::of(statistics));
        let Some((expected, lost)) = judged else { return false };
        let over = |is: u32, limit: u16| limit > 0 && is > u32::from(limit);
        let lossy = quality.loss_per_mille > 0 && lost * 1_000 > u64::from(quality.loss_per_mille) * expected;
        let poor = lossy || over(delay_ms, quality.delay_ms) || over(statistics.jitter_ms(), quality.jitter_ms);
        let before = std::mem::replace(&mut self.poor, poor);
        poor && !before
    }
}
