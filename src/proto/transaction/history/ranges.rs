//! Wide ranges of confirmed ids, per agent: kept as intervals, never counted out (G-ACK-10).
//!
//! An interval confirms the responses that had been sent when it came; later ones it says nothing about. The union of the recent
//! intervals of an agent holds, in whatever order they came (G-ACK-04). Each agent has room for a few: the oldest gives way, which
//! only means that some bodies stay until T-HIST and a repeat of their commands is answered. An interval dies T-HIST after it
//! came: by then every response it speaks about has been forgotten (G-ACK-05).

use crate::proto::base::{AgentId, Time, TransactionId};
use std::time::Duration;

/// Intervals remembered per agent.
pub(super) const INTERVALS: usize = 8;
const AGENTS: usize = 256;

#[derive(Clone, Copy, Default)]
struct Interval {
    low: TransactionId,
    high: TransactionId,
    at: Time,
}

#[derive(Clone, Copy, Default)]
struct Ranges {
    count: usize,
    intervals: [Interval; INTERVALS],
}

pub(super) struct ConfirmedRanges {
    agents: Vec<Ranges>,
}

impl ConfirmedRanges {
    pub fn new() -> ConfirmedRanges {
        ConfirmedRanges { agents: vec![Ranges::default(); AGENTS] }
    }

    /// Notes that `agent` has confirmed `low..=high` now; intervals older than `t_hist` go.
    pub fn add(&mut self, now: Time, agent: AgentId, low: TransactionId, high: TransactionId, t_hist: Duration) {
        let Some(ranges) = self.agents.get_mut(usize::from(agent.0)) else { return };
        let mut kept = 0;
        for i in 0..ranges.count.min(INTERVALS) {
            let old = ranges.intervals[i];
            let contained = low <= old.low && old.high <= high;
            if !contained && old.at + t_hist > now {
                ranges.intervals[kept] = old;
                kept += 1;
            }
        }
        if kept == INTERVALS {
            // In order of arrival: the first one is the oldest.
            ranges.intervals.copy_within(1.., 0);
            kept -= 1;
        }
        ranges.intervals[kept] = Interval { low, high, at: now };
        ranges.count = kept + 1;
    }

    /// Whether `agent` has confirmed the response to `id` that was sent at `finished`.
    #[inline]
    pub fn covers(&self, agent: AgentId, id: TransactionId, finished: Time) -> bool {
        self.covered_at(agent, id, finished).is_some()
    }

    /// The same: when.
    #[inline]
    pub fn covered_at(&self, agent: AgentId, id: TransactionId, finished: Time) -> Option<Time> {
        let ranges = self.agents.get(usize::from(agent.0))?;
        let covers = |interval: &&Interval| interval.low <= id && id <= interval.high && finished <= interval.at;
        ranges.intervals.iter().take(ranges.count).find(covers).map(|interval| interval.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn an_interval_speaks_about_earlier_responses_of_its_agent_only() {
        let (a, b, at) = (AgentId(1), AgentId(255), Time::from_millis);
        let mut ranges = ConfirmedRanges::new();
        ranges.add(at(10), a, 100, 5000, HOUR);
        assert!(ranges.covers(a, 100, at(10)) && ranges.covers(a, 5000, at(1)));
        assert!(!ranges.covers(a, 99, at(1)) && !ranges.covers(a, 5001, at(1)));
        assert!(!ranges.covers(a, 100, at(11)) && !ranges.covers(b, 100, at(1)));
    }

    #[test]
    fn the_union_does_not_depend_on_the_order_and_is_bounded() {
        let (agent, now) = (AgentId(0), Time::from_millis(5));
        let spans = [(1, 1000), (900, 2000), (5000, 9000), (6000, 7000), (20_000, 30_000)];
        let (mut forward, mut backward) = (ConfirmedRanges::new(), ConfirmedRanges::new());
        spans.iter().for_each(|&(low, high)| forward.add(now, agent, low, high, HOUR));
        spans.iter().rev().for_each(|&(low, high)| backward.add(now, agent, low, high, HOUR));
        for id in 0..31_000 {
            let union = spans.iter().any(|&(low, high)| low <= id && id <= high);
            assert_eq!((forward.covers(agent, id, now), backward.covers(agent, id, now)), (union, union), "{id}");
        }
        (0..100).for_each(|i| forward.add(now, agent, 100_000 + i * 1000, 100_500 + i * 1000, HOUR));
        assert!(forward.covers(agent, 199_200, now) && !forward.covers(agent, 500, now));
        // Out of date after T-HIST: they make room for others.
        forward.add(now + HOUR, agent, 1, 2, HOUR);
        assert_eq!(forward.agents[0].count, 1);
    }
}
