//! What is known of names: pure book-keeping of answers, their time to live, and when to ask again.

use crate::proto::base::Time;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// An answer is not asked for again within this time (RFC 3435 4.3).
pub const RECENT: Duration = Duration::from_secs(5);
/// Answers are kept at least and at most so long, whatever their time to live: no name is asked for in a loop, none for ever believed.
const KEPT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(86_400));
/// After a failure a name is asked for again after this, then after twice as long, up to the second.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Addresses of one name; the rest of an answer is left out.
const ADDRESSES: usize = 8;

/// The addresses of one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// Ascending: the order of an answer means nothing (RFC 3435 4.1).
    pub list: Arc<[IpAddr]>,
    /// When they were answered.
    pub at: Time,
}

/// The last good answer for each name, in lower case.
pub type Known = BTreeMap<String, Addresses>;

struct Entry {
    known: Option<Addresses>,
    due: Time,
    failures: u32,
}

/// The names that are wanted.
#[derive(Default)]
pub struct Table {
    entries: BTreeMap<String, Entry>,
}

impl Table {
    /// Exactly these names are wanted from now on; what is known of them is kept, new ones are due.
    pub fn want(&mut self, now: Time, names: impl Iterator<Item = String>) {
        let mut old = std::mem::take(&mut self.entries);
        self.entries = names
            .map(|name| {
                let entry = old.remove(&name).unwrap_or(Entry { known: None, due: now, failures: 0 });
                (name, entry)
            })
            .collect();
    }

    /// The names to ask for now.
    pub fn due(&self, now: Time) -> Vec<String> {
        self.entries.iter().filter(|(_, entry)| entry.due <= now).map(|(name, _)| name.clone()).collect()
    }

    /// When a name is due.
    pub fn deadline(&self) -> Time {
        self.entries.values().map(|entry| entry.due).min().unwrap_or(Time::NEVER)
    }

    /// Somebody cannot reach an address of `name`: it is asked for now, unless it just was.
    pub fn ask(&mut self, now: Time, name: &str) {
        if let Some(entry) = self.entries.get_mut(name)
            && entry.known.as_ref().is_none_or(|known| now.since(known.at) >= RECENT)
        {
            entry.due = now;
        }
    }

    /// An answer: whether the addresses are others than before.
    pub fn answered(&mut self, now: Time, name: &str, mut list: Vec<IpAddr>, time_to_live: Duration) -> bool {
        list.sort_unstable();
        list.dedup();
        list.truncate(ADDRESSES);
        if list.is_empty() {
            self.failed(now, name);
            return false;
        }
        let Some(entry) = self.entries.get_mut(name) else { return false };
        let changed = entry.known.as_ref().is_none_or(|known| *known.list != *list);
        entry.known = Some(Addresses { list: list.into(), at: now });
        (entry.due, entry.failures) = (now + time_to_live.clamp(KEPT.0, KEPT.1), 0);
        changed
    }

    /// No answer, or one without addresses: the last good one stays.
    pub fn failed(&mut self, now: Time, name: &str) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.due = now + (RETRY.0 * 2u32.pow(entry.failures.min(6))).min(RETRY.1);
            entry.failures += 1;
        }
    }

    /// What is known.
    pub fn known(&self) -> Known {
        self.entries.iter().filter_map(|(name, entry)| Some((name.clone(), entry.known.clone()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Time {
        Time::ZERO + S * seconds as u32
    }

    fn list(last: &[u8]) -> Vec<IpAddr> {
        last.iter().map(|&last| IpAddr::from([192, 0, 2, last])).collect()
    }

    fn table(names: &[&str]) -> Table {
        let mut table = Table::default();
        table.want(at(100), names.iter().map(|&name| name.to_owned()));
        table
    }

    #[test]
    fn an_answer_is_asked_for_again_when_its_time_has_passed() {
        // G-NET-11
        let mut table = table(&["ca.example.net"]);
        assert_eq!(table.due(at(100)), ["ca.example.net"]);
        assert!(table.answered(at(100), "ca.example.net", list(&[2, 1]), 5 * S));
        assert_eq!((table.deadline(), table.due(at(104)).len()), (at(105), 0));
        assert_eq!(table.due(at(105)).len(), 1);
        // The order of an answer means nothing; an answer without a time to live is kept for a second, one for years a day.
        assert!(!table.answered(at(105), "ca.example.net", list(&[1, 2, 1]), Duration::ZERO));
        assert_eq!(table.deadline(), at(106));
        assert!(table.answered(at(106), "ca.example.net", list(&[3]), 10_000_000 * S));
        assert_eq!(table.deadline(), at(106 + 86_400));
        assert_eq!(&*table.known()["ca.example.net"].list, list(&[3]));
    }

    #[test]
    fn without_an_answer_the_last_good_one_stays() {
        let mut table = table(&["ca.example.net", "cb.example.net"]);
        table.answered(at(100), "ca.example.net", list(&[1]), 5 * S);
        let mut now = at(105);
        let mut waits = Vec::new();
        for _ in 0..9 {
            if waits.len() % 2 == 0 {
                table.failed(now, "ca.example.net");
            } else {
                assert!(!table.answered(now, "ca.example.net", Vec::new(), S));
            }
            table.failed(now, "cb.example.net");
            waits.push(table.deadline().since(now).as_secs());
            now = table.deadline();
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(table.known().len(), 1);
        assert_eq!(&*table.known()["ca.example.net"].list, list(&[1]));
    }

    #[test]
    fn who_cannot_reach_an_address_may_ask_but_not_again_and_again() {
        // G-RTX-09: not within 5 s of an answer.
        let mut table = table(&["ca.example.net"]);
        table.answered(at(100), "ca.example.net", list(&[1]), 3600 * S);
        table.ask(at(104), "ca.example.net");
        assert_eq!(table.due(at(104)).len(), 0);
        table.ask(at(105), "ca.example.net");
        table.ask(at(105), "unknown.example.net");
        assert_eq!(table.due(at(105)).len(), 1);
    }

    #[test]
    fn names_come_and_go_with_the_configuration() {
        let mut table = table(&["ca.example.net", "cb.example.net"]);
        table.answered(at(100), "ca.example.net", list(&[1]), 3600 * S);
        table.want(at(200), ["ca.example.net", "cc.example.net"].into_iter().map(str::to_owned));
        assert_eq!(table.due(at(200)), ["cc.example.net"]);
        assert_eq!(table.known().len(), 1);
        assert!(!table.answered(at(200), "cb.example.net", list(&[1]), S), "nobody wants it");
    }
}
