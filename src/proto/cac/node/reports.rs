//! Reports that are not acknowledged yet: sent in order, and from the first one that is missing on again when it is lost (R28).
//!
//! The central node takes reports in their order only. An acknowledgement says up to which one they have come, and whether one came behind a
//! gap: then those from the gap on are sent again at once (go-back-N), so a loss costs the time of one way there and back, however many
//! reports a second there are. Only what was sent after that can tell of another loss. Where nothing at all is acknowledged the first
//! one is sent alone until it is: a central node that stands still is not sent more and more.

use super::super::message::Report;
use crate::proto::base::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// Reports on their way: those behind them wait here.
const WINDOW: u64 = 1024;

#[derive(Debug)]
pub(super) struct Reports {
    waiting: VecDeque<Report>,
    /// The number of the first one waiting; the last one sent.
    first: u64,
    sent: u64,
    /// Only the first one is sent until it is acknowledged.
    alone: bool,
    /// When it is sent again though nobody said that it is missing.
    again_at: Time,
    again_after: Duration,
    /// What was sent up to this message of the session tells of no gap that is not known.
    known: u64,
    limit: usize,
}

impl Reports {
    /// None: at most so many wait, and where none is acknowledged for so long the first one is sent again.
    pub fn new(limit: usize, again_after: Duration) -> Reports {
        Reports { waiting: VecDeque::new(), first: 1, sent: 0, alone: false, again_at: Time::NEVER, again_after, known: 0, limit }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether each one was sent, behind all before it.
    pub fn are_sent(&self) -> bool {
        self.sent + 1 == self.first + self.waiting.len() as u64
    }

    /// A new session: its sync tells what these would have.
    pub fn clear(&mut self) {
        *self = Reports::new(self.limit, self.again_after);
    }

    /// Takes `report`; false when it does not fit.
    pub fn push(&mut self, report: Report) -> bool {
        let fits = self.waiting.len() < self.limit;
        if fits {
            self.waiting.push_back(report);
        }
        fits
    }

    /// The next one to send, which counts as sent now, and its number.
    pub fn next(&mut self, now: Time) -> Option<(u64, Report)> {
        let number = self.sent + 1;
        let window = if self.alone { 1 } else { WINDOW };
        let place = number.checked_sub(self.first).filter(|place| *place < window)?;
        let report = *self.waiting.get(place as usize)?;
        if place == 0 {
            self.again_at = now + self.again_after;
        }
        self.sent = number;
        Some((number, report))
    }

    /// All up to `number` have come. `gap`: by which message of the session came one behind a gap; 0: none. `messages` of it were sent.
    pub fn acknowledged(&mut self, now: Time, number: u64, gap: u64, messages: u64) {
        // Nobody can have more than there are.
        let number = number.min(self.first + self.waiting.len() as u64 - 1);
        if let Some(come) = (number + 1).checked_sub(self.first).filter(|come| *come > 0) {
            self.waiting.drain(..come as usize);
            self.first = number + 1;
            self.sent = self.sent.max(number);
            self.alone = false;
            self.again_at = now + self.again_after;
        }
        if gap > self.known && number + 1 == self.first {
            self.sent = number;
            self.known = messages;
        }
        if self.waiting.is_empty() {
            self.again_at = Time::NEVER;
        }
    }

    /// When [`Reports::go_back`] must be called.
    pub fn deadline(&self) -> Time {
        self.again_at
    }

    /// Where nothing was acknowledged for too long, the first one is sent again. `messages` of the session were sent.
    pub fn go_back(&mut self, now: Time, messages: u64) {
        if self.again_at <= now {
            (self.sent, self.alone, self.known) = (self.first - 1, true, messages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::charge::{Guid, Leg};
    use super::*;

    const NOW: Time = Time::from_millis(1_000);
    const AGAIN: Duration = Duration::from_millis(200);

    fn some(count: u64) -> Reports {
        let mut reports = Reports::new(5_000, AGAIN);
        (0..count).for_each(|_| assert!(reports.push(Report::Release(Guid::default(), Leg::Ingress))));
        reports
    }

    fn sent(reports: &mut Reports, now: Time) -> Vec<u64> {
        std::iter::from_fn(|| reports.next(now).map(|(number, _)| number)).collect()
    }

    #[test]
    fn what_is_behind_a_gap_is_sent_again_once() {
        let mut reports = some(6);
        assert_eq!(sent(&mut reports, NOW), [1, 2, 3, 4, 5, 6]);
        // Messages 1 to 6; 3 is lost, and 4 to 6 say so.
        reports.acknowledged(NOW, 2, 0, 6);
        reports.acknowledged(NOW, 2, 4, 6);
        assert_eq!(sent(&mut reports, NOW), [3, 4, 5, 6]);
        reports.acknowledged(NOW, 2, 5, 10);
        reports.acknowledged(NOW, 2, 6, 10);
        assert_eq!(sent(&mut reports, NOW), [0; 0]);
        // 3 is lost again, by message 7.
        reports.acknowledged(NOW, 2, 8, 10);
        assert_eq!(sent(&mut reports, NOW), [3, 4, 5, 6]);
        reports.acknowledged(NOW, 6, 0, 14);
        assert_eq!((reports.len(), reports.deadline()), (0, Time::NEVER));
    }

    #[test]
    fn only_so_many_are_on_their_way() {
        let mut reports = some(3_000);
        assert_eq!(sent(&mut reports, NOW).len(), 1024);
        assert!(!reports.are_sent());
        reports.acknowledged(NOW, 10, 0, 1024);
        assert_eq!(sent(&mut reports, NOW), (1025..=1034).collect::<Vec<_>>());
        reports.acknowledged(NOW, u64::MAX - 1, 0, 1034);
        assert_eq!((reports.len(), reports.are_sent()), (0, true), "a number that is nonsense");
    }

    /// Whoever stands still is asked with one message at a time, and told the rest when it goes on.
    #[test]
    fn without_an_answer_the_first_one_is_sent_alone() {
        let mut reports = some(100);
        assert_eq!((sent(&mut reports, NOW).len(), reports.deadline()), (100, NOW + AGAIN));
        for round in 1..4 {
            let now = NOW + AGAIN * round;
            reports.go_back(now, 100);
            assert_eq!(sent(&mut reports, now), [1]);
        }
        let now = NOW + AGAIN * 4;
        reports.acknowledged(now, 1, 0, 103);
        assert_eq!(sent(&mut reports, now), (2..=100).collect::<Vec<_>>());
        // The first copies had come after all: copies behind them are no gap.
        reports.acknowledged(now, 100, 0, 202);
        reports.push(Report::Release(Guid::default(), Leg::Ingress));
        assert_eq!(sent(&mut reports, now), [101]);
        reports.acknowledged(now, 100, 0, 203);
        assert_eq!(sent(&mut reports, now), [0; 0]);
    }
}
