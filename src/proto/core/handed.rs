//! Commands with wildcards whose home core stands still: the core that receives for all answers 400, so that it fails cleanly instead
//! of waiting unseen (G-SHD-03).
//!
//! Never for a command that may have reached the home: it may be executed yet, or has been, and a repeat must not get another answer
//! (G-TRX-03). Where several cores receive nobody can know that, because a copy may lie in the home's own socket. Where one core receives, it
//! remembers which commands with wildcards it has handed over or refused lately. When it cannot be sure it says nothing, as for a command for one
//! endpoint, and the agent's repeats find the home when it goes on.

use super::Core;
use super::outside::{Frames, Outside, Turn};
use super::receive::{Received, local_of};
use crate::proto::base::{CoreId, Counter, Time, TransactionId};
use crate::proto::codec::mgcp::Verb;
use crate::proto::mgcp;
use std::collections::VecDeque;
use std::time::Duration;

/// Commands remembered.
const REMEMBERED: usize = 256;

/// Commands with wildcards that were handed to other cores.
pub(super) struct Handed {
    list: VecDeque<(Time, TransactionId, u64)>,
    /// When the latest that had to be forgotten was handed over.
    forgotten: Option<Time>,
    /// What was refused instead, and is to be refused again for as long as a repeat may come.
    refused: VecDeque<(Time, TransactionId, u64)>,
}

impl Handed {
    pub fn new() -> Handed {
        Handed { list: VecDeque::with_capacity(REMEMBERED), forgotten: None, refused: VecDeque::with_capacity(REMEMBERED) }
    }

    fn note(&mut self, now: Time, id: TransactionId, name: u64) {
        if self.list.len() == REMEMBERED {
            self.forgotten = self.list.pop_front().map(|(at, ..)| at);
        }
        self.list.push_back((now, id, name));
    }

    fn was_refused(&mut self, now: Time, id: TransactionId, name: u64, history: Duration) -> bool {
        while self.refused.front().is_some_and(|&(at, ..)| now.since(at) > history) {
            self.refused.pop_front();
        }
        self.refused.iter().any(|&(_, i, n)| (i, n) == (id, name))
    }

    /// Remembers a refusal. False: no room, so it must not be refused.
    fn refuse(&mut self, now: Time, id: TransactionId, name: u64) -> bool {
        let room = self.refused.len() < REMEMBERED;
        if room {
            self.refused.push_back((now, id, name));
        }
        room
    }

    /// Whether this is certainly none that was handed over within `history`.
    fn is_new(&self, now: Time, id: TransactionId, name: u64, history: Duration) -> bool {
        let recent = |at: Time| now.since(at) <= history;
        !self.forgotten.is_some_and(recent) && !self.list.iter().any(|&(at, i, n)| (i, n) == (id, name) && recent(at))
    }
}

impl Core {
    /// A command for the core `home`, before it is handed over. True: it was answered here.
    pub(super) fn refuse_for<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        home: CoreId,
        (verb, id, name): (Option<Verb>, TransactionId, &[u8]),
    ) -> bool {
        if !self.watches_for(name) {
            return false;
        }
        let key = self.names.fold(name);
        let history = self.settings.timers.history;
        let silent = turn.out.silence(home, turn.now) > self.settings.timers.stall;
        // Before a restart was ever sent it would be the first thing the agent sees (G-RST-03).
        let may = silent && self.announcements.any_sent() && self.handed.is_new(turn.now, id, key, history);
        if self.handed.was_refused(turn.now, id, key, history) || may && self.handed.refuse(turn.now, id, key) {
            self.counters.add(Counter::HomeSilent);
            self.refuse_unremembered(turn, received, (verb, id, name), mgcp::CORE_SILENT);
            return true;
        }
        false
    }

    /// A command was handed over.
    pub(super) fn note_handed(&mut self, now: Time, id: TransactionId, name: &[u8]) {
        if self.watches_for(name) {
            self.handed.note(now, id, self.names.fold(name));
        }
    }

    /// Whether commands with this name are refused when their home stands still.
    fn watches_for(&self, name: &[u8]) -> bool {
        self.plan.receivers == 1 && local_of(name).iter().any(|byte| matches!(byte, b'*' | b'$' | b'['))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_handed_over_or_forgotten_is_not_new() {
        let history = Duration::from_secs(30);
        let mut handed = Handed::new();
        let is_new = |handed: &Handed, second: u64, id| handed.is_new(Time::from_millis(second * 1000), id, 7, history);
        assert!(is_new(&handed, 1, 5));
        handed.note(Time::from_millis(1000), 5, 7);
        assert!(!is_new(&handed, 31, 5) && is_new(&handed, 32, 5) && is_new(&handed, 2, 6));
        (0..REMEMBERED as u32).for_each(|n| handed.note(Time::from_millis(2000), 100 + n, 7));
        assert!(!is_new(&handed, 31, 6), "5 is forgotten, so nobody can know");
        assert!(is_new(&handed, 32, 6));
    }

    #[test]
    fn what_was_refused_is_refused_again_and_never_too_much() {
        let history = Duration::from_secs(30);
        let mut handed = Handed::new();
        assert!((0..REMEMBERED as u32).all(|id| handed.refuse(Time::from_millis(1000), id, 7)));
        assert!(!handed.refuse(Time::from_millis(2000), 1000, 7), "nobody could refuse it again");
        assert!(handed.was_refused(Time::from_millis(31_000), 5, 7, history));
        assert!(!handed.was_refused(Time::from_millis(31_001), 5, 7, history));
        assert!(handed.refuse(Time::from_millis(31_001), 1000, 7));
    }
}
