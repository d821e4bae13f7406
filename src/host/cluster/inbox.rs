//! What has come to the central node and waits: how long it did says how busy the central node is (R38, race 16).
//!
//! A gateway decides alone when an answer takes too long, and takes the late one for nothing. So what has waited for a good part of that
//! time is answered "busy", which costs little, and heartbeats tell gateways not to ask at all until it is better.
//!
//! Connections take turns, so that one that sends without end keeps itself waiting and not the others; what it sends beyond its part is
//! lost, which the machines mend.

use crate::proto::base::Time;
use crate::proto::cac::message::LOAD_MAX;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Messages that wait here; more wait in the queues of the connections, which have an end too.
pub const INBOX_MAX: usize = 65_536;
/// Their octets, as they came.
const OCTETS_MAX: usize = 64 << 20;
/// One connection may have such a part of both.
const PART: usize = 4;

/// What waits of one connection.
struct Queue<M> {
    waiting: VecDeque<(Time, usize, M)>,
    octets: usize,
}

/// The queue.
pub struct Inbox<M> {
    queues: BTreeMap<Vec<u8>, Queue<M>>,
    /// Connections of which something waits, in the order of their turns.
    turns: VecDeque<Vec<u8>>,
    waiting: usize,
    octets: usize,
    /// From these waits on the load is 1, 2, 3.
    steps: [Duration; LOAD_MAX as usize],
}

impl<M> Inbox<M> {
    /// An empty one, of a central node whose answers are waited for so long.
    pub fn new(decide_within: Duration) -> Inbox<M> {
        let steps = [decide_within / 20, decide_within / 5, decide_within * 2 / 5];
        Inbox { queues: BTreeMap::new(), turns: VecDeque::new(), waiting: 0, octets: 0, steps }
    }

    /// Whether no more is to be taken for now.
    pub fn is_full(&self) -> bool {
        self.waiting >= INBOX_MAX || self.octets >= OCTETS_MAX
    }

    /// Whether something of this connection waits.
    pub fn has(&self, name: &[u8]) -> bool {
        self.queues.contains_key(name)
    }

    /// One of so many octets has come; false: this connection has more than its part, and it is lost.
    pub fn push(&mut self, now: Time, name: Vec<u8>, octets: usize, message: M) -> bool {
        let queue = match self.queues.entry(name) {
            std::collections::btree_map::Entry::Occupied(queue) => queue.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                self.turns.push_back(place.key().clone());
                place.insert(Queue { waiting: VecDeque::new(), octets: 0 })
            }
        };
        // The first of a connection is always taken.
        if queue.waiting.len() >= INBOX_MAX / PART || queue.octets > 0 && queue.octets + octets > OCTETS_MAX / PART {
            return false;
        }
        queue.waiting.push_back((now, octets, message));
        queue.octets += octets;
        self.waiting += 1;
        self.octets += octets;
        true
    }

    /// The first one of the connection whose turn it is, and the load that its wait shows.
    pub fn pop(&mut self, now: Time) -> Option<(Vec<u8>, M, u8)> {
        let name = self.turns.pop_front()?;
        let queue = self.queues.get_mut(&name)?;
        let (came, octets, message) = queue.waiting.pop_front()?;
        queue.octets -= octets;
        self.waiting -= 1;
        self.octets -= octets;
        if queue.waiting.is_empty() {
            self.queues.remove(&name);
        } else {
            self.turns.push_back(name.clone());
        }
        let waited = now.since(came);
        Some((name, message, self.steps.iter().filter(|step| waited >= **step).count() as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox() -> Inbox<u32> {
        Inbox::new(Duration::from_millis(250))
    }

    #[test]
    fn the_longer_a_message_waits_the_higher_is_the_load() {
        let mut inbox = inbox();
        let came = Time::from_millis(1_000);
        let waits = [0, 12, 13, 50, 99, 100, 10_000];
        waits.iter().for_each(|_| assert!(inbox.push(came, b"a".to_vec(), 48, 0)));
        let loads = waits.map(|wait| inbox.pop(came + Duration::from_millis(wait)).map(|(.., load)| load));
        assert_eq!(loads, [0, 0, 1, 2, 2, 3, 3].map(Some));
        assert!(!inbox.has(b"a") && inbox.pop(came).is_none());
    }

    /// One that sends without end keeps itself waiting: the others are next, and find room.
    #[test]
    fn connections_take_turns() {
        let (mut inbox, now) = (inbox(), Time::ZERO);
        let wild = (0..INBOX_MAX as u32).filter(|&number| inbox.push(now, b"wild".to_vec(), 48, number)).count();
        assert_eq!((wild, inbox.is_full()), (INBOX_MAX / PART, false));
        assert!(inbox.push(now, b"a".to_vec(), 48, 1) && inbox.push(now, b"a".to_vec(), 48, 2));
        let order: Vec<_> = (0..5).filter_map(|_| inbox.pop(now)).map(|(name, message, _)| (name, message)).collect();
        let order: Vec<_> = order.iter().map(|(name, message)| (std::str::from_utf8(name).unwrap(), *message)).collect();
        assert_eq!(order, [("wild", 0), ("a", 1), ("wild", 1), ("a", 2), ("wild", 2)]);
        assert!(inbox.has(b"wild") && !inbox.has(b"a"));
    }

    /// What waits is bounded in octets too.
    #[test]
    fn long_messages_leave_room_for_those_of_others() {
        let (mut inbox, now) = (inbox(), Time::ZERO);
        let long = 8 << 20;
        let taken = |inbox: &mut Inbox<u32>, name: &str| (0..100).filter(|_| inbox.push(now, name.into(), long, 0)).count();
        assert_eq!((taken(&mut inbox, "wild"), inbox.is_full()), (2, false));
        assert_eq!([taken(&mut inbox, "b"), taken(&mut inbox, "c"), taken(&mut inbox, "d")], [2; 3]);
        assert!(inbox.is_full());
        while inbox.pop(now).is_some() {}
        assert!(!inbox.is_full() && inbox.octets == 0 && inbox.waiting == 0);
    }
}
