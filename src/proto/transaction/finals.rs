//! Final responses that followed a provisional one: repeated until `000` comes, at most until T-MAX (RFC 3435 3.5.6; G-ACK-06, -08).
//!
//! Owns which finals wait for their `000` and when the next copy of each is due; the bytes stay in the [`History`]. A final that
//! never gets its `000` ends quietly: nobody is disconnected and no estimate moves (G-ACK-09).
//!
//! To drive it: [`Finals::add`] after `History::finish`; [`Finals::acknowledge`] for each `000` (and `History::confirm_one`); at
//! [`Finals::deadline`], [`Finals::poll`] until it yields nothing.

use super::Timers;
use super::history::{Handle, History};
use super::round_trip::{Backoff, RoundTrip};
use crate::proto::base::{AgentId, Rng, Time, TransactionId};
use crate::proto::timer::TimerWheel;
use std::net::SocketAddr;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(1);
const POLL_BUDGET: u32 = 64;
/// A search through all ids is a scan; this many take less than a microsecond.
const CAPACITY_MAX: u32 = 4096;

/// A final that waits for its `000`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Final {
    /// Its place in the history.
    pub handle: Handle,
    /// The transaction's id.
    pub id: TransactionId,
    /// Who sent the command: the only one whose `000` counts.
    pub agent: AgentId,
    /// Where the response goes: the source of the command (G-NET-08).
    pub to: SocketAddr,
    /// The caller's word for it, such as the local address the command came to (G-NET-14).
    pub user: u64,
}

/// A copy to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repeat<'a> {
    /// Which final it is.
    pub response: Final,
    /// The response, byte for byte as it was sent first.
    pub body: &'a [u8],
}

struct Waiting {
    response: Final,
    first_sent: Time,
    backoff: Backoff,
}

/// The finals of one core that wait for their `000`.
pub struct Finals {
    /// The id in each slot, 0 for none; apart from the rest so that a search is short.
    ids: Vec<TransactionId>,
    slots: Vec<Option<Waiting>>,
    free: Vec<u32>,
    wheel: TimerWheel,
    timers: Timers,
    rng: Rng,
}

impl Finals {
    /// Room for `capacity` finals, at most 4096.
    pub fn new(now: Time, capacity: u32, timers: Timers, rng: Rng) -> Finals {
        let capacity = capacity.min(CAPACITY_MAX);
        Finals {
            ids: vec![0; capacity as usize],
            slots: (0..capacity).map(|_| None).collect(),
            free: (0..capacity).rev().collect(),
            wheel: TimerWheel::new(capacity, TICK, now),
            timers,
            rng,
        }
    }

    /// New timers, from the next copy of each final on.
    pub fn set_timers(&mut self, timers: Timers) {
        self.timers = timers;
    }

    /// A final with an empty `K:` was sent just now. False when there is no room: then it is repeated only when the command is, as any
    /// other response.
    pub fn add(&mut self, now: Time, response: Final, round_trip: &RoundTrip) -> bool {
        let Some(key) = self.free.pop() else { return false };
        let backoff = round_trip.start(&self.timers);
        self.wheel.schedule(key, 0, now + backoff.timer());
        self.ids[key as usize] = response.id;
        self.slots[key as usize] = Some(Waiting { response, first_sent: now, backoff });
        true
    }

    /// A `000` for `id` has come from `agent`. Whether a final waited for it.
    pub fn acknowledge(&mut self, agent: AgentId, id: TransactionId) -> bool {
        let waits = |waiting: &Option<Waiting>| waiting.as_ref().is_some_and(|w| w.response.agent == agent && w.response.id == id);
        let found = self.ids.iter().zip(&self.slots).position(|(&candidate, slot)| candidate == id && waits(slot));
        if let Some(key) = found {
            self.remove(key as u32);
        }
        found.is_some()
    }

    /// The next copy to send at `now`. Finals whose body the history has given up are dropped on the way.
    pub fn poll<'a>(&mut self, now: Time, history: &'a History) -> Option<Repeat<'a>> {
        let mut budget = POLL_BUDGET;
        while let Some(expired) = self.wheel.advance(now, &mut budget) {
            let key = expired.key;
            let Some(waiting) = self.slots.get_mut(key as usize).and_then(Option::as_mut) else { continue };
            let response = waiting.response;
            match history.body(response.handle) {
                Some(body) if now.since(waiting.first_sent) <= self.timers.t_max => {
                    waiting.backoff.repeat(&self.timers, &mut self.rng);
                    self.wheel.schedule(key, 0, now + waiting.backoff.timer());
                    return Some(Repeat { response, body });
                }
                _ => self.remove(key),
            }
        }
        None
    }

    /// When to call [`Finals::poll`] again.
    pub fn deadline(&self) -> Time {
        self.wheel.deadline()
    }

    /// How many finals wait.
    pub fn len(&self) -> usize {
        self.ids.len() - self.free.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn remove(&mut self, key: u32) {
        self.wheel.cancel(key, 0);
        self.ids[key as usize] = 0;
        self.slots[key as usize] = None;
        self.free.push(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::transaction::history::{Class, Command, Limits, Start};

    const S: Duration = Duration::from_secs(1);
    const CA: AgentId = AgentId(4);

    fn history() -> History {
        let limits = Limits { entries: 100, bytes: 100_000, reserve_entries: 0, reserve_bytes: 0, largest: 4000 };
        History::new(limits, 30 * S, 10 * S, &mut Rng::new(1))
    }

    /// A finished command in the history, as a final that waits.
    fn final_of(history: &mut History, id: TransactionId) -> Final {
        let command = Command { id, name: 9, content: None };
        let handle = history.begin(Time::ZERO, &Start { command, agent: CA, class: Class::Ordinary, room: 4000 }).unwrap();
        history.note_provisional(handle);
        assert!(history.provisional_sent(handle));
        history.finish(Time::ZERO, handle, b"200 7 OK\r\nK:\r\n").unwrap();
        Final { handle, id, agent: CA, to: "192.0.2.1:40001".parse().unwrap(), user: u64::from(id) }
    }

    fn copies(finals: &mut Finals, history: &History, until: Time) -> Vec<u64> {
        let mut at = Vec::new();
        while finals.deadline() <= until {
            let now = finals.deadline();
            while let Some(repeat) = finals.poll(now, history) {
                assert_eq!(repeat.body, b"200 7 OK\r\nK:\r\n");
                at.push(now.0 / 1_000_000);
            }
        }
        at
    }

    #[test]
    fn copies_back_off_until_t_max_and_end_quietly() {
        // G-ACK-08, G-ACK-09.
        let mut history = history();
        let timers = Timers { jitter: false, ..Timers::default() };
        let mut finals = Finals::new(Time::ZERO, 10, timers, Rng::new(1));
        let round_trip = RoundTrip::default();
        assert!(finals.add(Time::ZERO, final_of(&mut history, 7), &round_trip));
        let at = copies(&mut finals, &history, Time::ZERO + 100 * S);
        assert_eq!(at, [200, 600, 1400, 3000, 6200, 10_200, 14_200, 18_200]);
        assert!(finals.is_empty() && finals.deadline() == Time::NEVER);
        assert_eq!(round_trip.average(), None);
    }

    #[test]
    fn only_the_agents_own_000_ends_the_copies() {
        let mut history = history();
        let mut finals = Finals::new(Time::ZERO, 2, Timers::default(), Rng::new(1));
        for id in [7, 8] {
            assert!(finals.add(Time::ZERO, final_of(&mut history, id), &RoundTrip::default()));
        }
        assert!(!finals.add(Time::ZERO, final_of(&mut history, 9), &RoundTrip::default()), "no room");
        assert!(!finals.acknowledge(AgentId(5), 7) && !finals.acknowledge(CA, 9));
        assert!(finals.acknowledge(CA, 7) && !finals.acknowledge(CA, 7));
        assert_eq!(finals.len(), 1);
        // A K: for the other one frees its body: no more copies either.
        history.confirm_one(Time::ZERO, CA, 8);
        assert!(copies(&mut finals, &history, Time::ZERO + 100 * S).is_empty());
        assert!(finals.is_empty());
    }
}
