//! Reports that are not acknowledged yet: repeated, in order, until they are (R28).

use super::super::message::Report;
use crate::proto::base::Time;
use std::collections::VecDeque;

/// Reports repeated at a time.
const REPEAT_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Reports {
    waiting: VecDeque<(u64, Report)>,
    sent: Time,
    last: u64,
    limit: usize,
}

impl Reports {
    pub fn new(limit: usize) -> Reports {
        Reports { waiting: VecDeque::new(), sent: Time::ZERO, last: 0, limit }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// A new session: its sync tells what these would have.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.last = 0;
    }

    /// Takes `report`: its number, or `None` when it does not fit.
    pub fn push(&mut self, now: Time, report: Report) -> Option<u64> {
        if self.waiting.len() >= self.limit {
            return None;
        }
        if self.waiting.is_empty() {
            self.sent = now;
        }
        self.last += 1;
        self.waiting.push_back((self.last, report));
        Some(self.last)
    }

    /// All up to `number` have come.
    pub fn acknowledged(&mut self, now: Time, number: u64) {
        while self.waiting.front().is_some_and(|&(first, _)| first <= number) {
            self.waiting.pop_front();
            self.sent = now;
        }
    }

    /// Those to repeat, when none was acknowledged since `before`.
    pub fn take_overdue(&mut self, now: Time, before: Time) -> Vec<(u64, Report)> {
        if self.waiting.is_empty() || self.sent > before {
            return Vec::new();
        }
        self.sent = now;
        self.waiting.iter().copied().take(REPEAT_MAX).collect()
    }
}
