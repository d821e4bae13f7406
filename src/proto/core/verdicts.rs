//! The fate of commands over many endpoints: begun by their home core, or refused by another while that stands still (G-SHD-03).
//!
//! One command must not get two answers, nor be refused and executed (G-TRX-03), whatever copies of it lie in sockets, rings and batches of
//! the home. So its fate is decided once, in the book of its home: by the home when it begins it, or by whoever refuses it instead. Who comes
//! second keeps to that: the home refuses what was refused in its place, and the others say nothing to what it has begun. The books are
//! what cores share, and commands for one endpoint never touch them.

use crate::proto::base::{NameKey, Time, TransactionId};
use std::collections::VecDeque;
use std::time::Duration;

/// Begun commands remembered by one book: 136 a second are all known for a T-HIST of 30 s.
const BEGUN: usize = 4096;
/// Refused commands remembered.
const REFUSED: usize = 1024;

/// A command whose fate is to be decided.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The time now.
    pub now: Time,
    /// How long a repeat may come: T-HIST.
    pub history: Duration,
    /// Its transaction.
    pub id: TransactionId,
    /// Its endpoint name as written.
    pub name: &'a [u8],
    /// All of it, where another content is another command.
    pub content: Option<&'a [u8]>,
}

/// When a command was decided on, and the hash of what it is known by.
type Entry = (Time, u64);

/// The book of one core.
pub struct Verdicts {
    key: NameKey,
    begun: VecDeque<Entry>,
    /// When the latest that had to be forgotten was begun.
    forgotten: Option<Time>,
    refused: VecDeque<Entry>,
}

impl Verdicts {
    /// An empty book; `secret` is drawn at boot.
    pub fn new(secret: [u64; 2]) -> Verdicts {
        let (begun, refused) = (VecDeque::with_capacity(BEGUN), VecDeque::with_capacity(REFUSED));
        Verdicts { key: NameKey::new(secret), begun, forgotten: None, refused }
    }

    /// The home is about to begin the command. False: it was refused in its place.
    pub fn begin(&mut self, case: &Case<'_>) -> bool {
        let key = self.hash(case);
        if self.was_refused(case, key) {
            return false;
        }
        if self.begun.len() == BEGUN {
            self.forgotten = self.begun.pop_front().map(|(at, _)| at);
        }
        self.begun.push_back((case.now, key));
        true
    }

    /// Whether the command is to be refused in place of the home. False: it may have begun it.
    pub fn refuse(&mut self, case: &Case<'_>) -> bool {
        let key = self.hash(case);
        if self.was_refused(case, key) {
            return true;
        }
        let recent = |at: Time| case.now.since(at) <= case.history;
        let known =
            self.forgotten.is_some_and(recent) || self.begun.iter().rev().take_while(|entry| recent(entry.0)).any(|entry| entry.1 == key);
        // What could not be refused again must not be refused.
        let refuses = !known && self.refused.len() < REFUSED;
        if refuses {
            self.refused.push_back((case.now, key));
        }
        refuses
    }

    fn was_refused(&mut self, case: &Case<'_>, key: u64) -> bool {
        while self.refused.front().is_some_and(|&(at, _)| case.now.since(at) > case.history) {
            self.refused.pop_front();
        }
        self.refused.iter().any(|entry| entry.1 == key)
    }

    fn hash(&self, case: &Case<'_>) -> u64 {
        let content = case.content.map_or(0, |content| self.key.exact(content));
        self.key.exact([self.key.fold(case.name), case.id.into(), content].map(u64::to_le_bytes).as_flattened())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(second: u64, id: TransactionId) -> Case<'static> {
        Case { now: Time::from_millis(second * 1000), history: Duration::from_secs(30), id, name: b"ds/*@x", content: None }
    }

    #[test]
    fn what_was_begun_or_forgotten_is_not_refused() {
        let mut verdicts = Verdicts::new([1, 2]);
        assert!(verdicts.begin(&case(1, 5)));
        assert!(
            !verdicts.refuse(&Case { name: b"DS/*@x", ..case(31, 5) }) && verdicts.refuse(&case(32, 5)) && verdicts.refuse(&case(2, 6))
        );
        assert!((0..BEGUN as u32).all(|n| verdicts.begin(&case(2, 100 + n))));
        assert!(!verdicts.refuse(&case(31, 7)), "5 is forgotten, so nobody can know");
        assert!(verdicts.refuse(&case(32, 7)));
    }

    #[test]
    fn what_was_refused_is_not_begun_and_never_too_much_is() {
        let mut verdicts = Verdicts::new([1, 2]);
        assert!((0..REFUSED as u32).all(|id| verdicts.refuse(&case(1, id))));
        assert!(!verdicts.refuse(&case(2, 5000)), "nobody could refuse it again");
        assert!(verdicts.refuse(&case(31, 5)) && !verdicts.begin(&case(31, 5)) && verdicts.begin(&case(31, 5000)));
        assert!(verdicts.begin(&case(32, 5)), "no repeat comes so late");
        assert!(verdicts.begin(&Case { name: b"ds/ds1-1/*@x", ..case(2, 6) }), "another name is another command");
    }

    #[test]
    fn content_counts_where_it_does() {
        let mut verdicts = Verdicts::new([1, 2]);
        let with = |content| Case { content: Some(content), ..case(1, 5) };
        assert!(verdicts.refuse(&with(b"X: 1")) && !verdicts.begin(&with(b"X: 1")) && verdicts.begin(&with(b"X: 2")));
    }
}
