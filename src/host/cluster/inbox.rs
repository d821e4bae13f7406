//! What has come to the central node and waits: how long it did says how busy the central node is (R38, race 16).
//!
//! A gateway decides alone when an answer takes too long, and takes the late one for nothing. So what has waited for a good part of that
//! time is answered "busy", which costs little, and heartbeats tell gateways not to ask at all until it is better.

use crate::proto::base::Time;
use crate::proto::cac::message::LOAD_MAX;
use std::collections::VecDeque;
use std::time::Duration;

/// Messages that wait here; more wait in the queues of the connections, which have an end too.
pub const INBOX_MAX: usize = 65_536;

/// The queue.
pub struct Inbox<M> {
    waiting: VecDeque<(Time, M)>,
    done: u64,
    /// From these waits on the load is 1, 2, 3.
    steps: [Duration; LOAD_MAX as usize],
}

impl<M> Inbox<M> {
    /// An empty one, of a central node whose answers are waited for so long.
    pub fn new(decide_within: Duration) -> Inbox<M> {
        Inbox { waiting: VecDeque::new(), done: 0, steps: [decide_within / 20, decide_within / 5, decide_within * 2 / 5] }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// How many were done, and how many have come.
    pub fn counts(&self) -> (u64, u64) {
        (self.done, self.done + self.waiting.len() as u64)
    }

    /// One has come.
    pub fn push(&mut self, now: Time, message: M) {
        self.waiting.push_back((now, message));
    }

    /// The one that came first, and the load that its wait shows.
    pub fn pop(&mut self, now: Time) -> Option<(M, u8)> {
        let (came, message) = self.waiting.pop_front()?;
        self.done += 1;
        let waited = now.since(came);
        Some((message, self.steps.iter().filter(|step| waited >= **step).count() as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_a_message_waits_the_higher_is_the_load() {
        let mut inbox = Inbox::new(Duration::from_millis(250));
        let came = Time::from_millis(1_000);
        let waits = [0, 12, 13, 50, 99, 100, 10_000];
        waits.iter().for_each(|_| inbox.push(came, ()));
        let loads = waits.map(|wait| inbox.pop(came + Duration::from_millis(wait)).map(|(_, load)| load));
        assert_eq!(loads, [0, 0, 1, 2, 2, 3, 3].map(Some));
        inbox.push(came, ());
        assert_eq!((inbox.counts(), inbox.len()), ((7, 8), 1));
        assert!(inbox.pop(came).is_some() && inbox.pop(came).is_none());
    }
}
