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
/// Addresses of one name; the rest of an answer is left out, and said to be.
pub const ADDRESSES: usize = 8;
/// Addresses of no use that a remark names one by one.
const NAMED: usize = 4;

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

/// A name that is wanted and has no answer of use now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// The name.
    pub name: String,
    /// Since when.
    pub since: Time,
    /// Why, in words.
    pub why: &'static str,
}

/// What came of an answer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// The name has other addresses than before.
    pub changed: bool,
    /// Addresses that are of no use.
    pub unfit: usize,
    /// Addresses beyond [`ADDRESSES`].
    pub left_out: usize,
    /// What to say of these, when the answer before did not say the same.
    pub remark: Option<String>,
}

struct Entry {
    known: Option<Addresses>,
    due: Time,
    failures: u32,
    trouble: Option<(Time, &'static str)>,
    remark: Option<String>,
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
                let entry = old.remove(&name).unwrap_or(Entry { known: None, due: now, failures: 0, trouble: None, remark: None });
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

    /// An answer. Addresses that `unfit` has a reason against are left out; without any other the last good ones stay. When there are
    /// too many, those known already stay, so that nobody who is in use is lost.
    pub fn answered(
        &mut self,
        now: Time,
        name: &str,
        mut list: Vec<IpAddr>,
        time_to_live: Duration,
        unfit: impl Fn(IpAddr) -> Option<&'static str>,
    ) -> Outcome {
        let Some(entry) = self.entries.get_mut(name) else { return Outcome::default() };
        list.sort_unstable();
        list.dedup();
        let mut refused = Vec::new();
        list.retain(|&address| unfit(address).map(|why| refused.push((address, why))).is_none());
        let known = entry.known.as_ref().map(|known| known.list.clone()).unwrap_or_default();
        list.sort_by_key(|address| (!known.contains(address), *address));
        let left_out = list.len().saturating_sub(ADDRESSES);
        list.truncate(ADDRESSES);
        list.sort_unstable();
        let said = remark(&refused, left_out);
        let fresh = if entry.remark == said { None } else { said.clone() };
        entry.remark = said;
        let outcome = Outcome { changed: false, unfit: refused.len(), left_out, remark: fresh };
        if list.is_empty() {
            let why = if refused.is_empty() { NO_ADDRESS } else { "all of its addresses in the DNS are of no use" };
            entry.fail(now, why);
            return outcome;
        }
        let changed = *known != *list;
        entry.known = Some(Addresses { list: list.into(), at: now });
        (entry.due, entry.failures, entry.trouble) = (now + time_to_live.clamp(KEPT.0, KEPT.1), 0, None);
        Outcome { changed, ..outcome }
    }

    /// No answer: the last good one stays.
    pub fn failed(&mut self, now: Time, name: &str) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.fail(now, NO_ADDRESS);
        }
    }

    /// The names without an answer of use, in order.
    pub fn troubles(&self) -> Vec<Trouble> {
        let trouble = |(name, entry): (&String, &Entry)| entry.trouble.map(|(since, why)| Trouble { name: name.clone(), since, why });
        self.entries.iter().filter_map(trouble).collect()
    }

    /// What is known.
    pub fn known(&self) -> Known {
        self.entries.iter().filter_map(|(name, entry)| Some((name.clone(), entry.known.clone()?))).collect()
    }
}

/// Said of a name that does not exist, has no address, or whose servers do not answer.
const NO_ADDRESS: &str = "no name server has an address for it";

impl Entry {
    fn fail(&mut self, now: Time, why: &'static str) {
        self.due = now + (RETRY.0 * 2u32.pow(self.failures.min(6))).min(RETRY.1);
        self.failures += 1;
        let since = self.trouble.map_or(now, |(since, _)| since);
        self.trouble = Some((since, why));
    }
}

/// What an operator should know of an answer that is not taken as it is.
fn remark(refused: &[(IpAddr, &'static str)], left_out: usize) -> Option<String> {
    let mut parts: Vec<String> = refused.iter().take(NAMED).map(|(address, why)| format!("{address} is left out: {why}")).collect();
    if refused.len() > NAMED {
        parts.push(format!("{} more are left out likewise", refused.len() - NAMED));
    }
    if left_out > 0 {
        parts.push(format!("{left_out} addresses are left out: a name has {ADDRESSES} at the most here"));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
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

    fn answer(table: &mut Table, now: Time, name: &str, list: Vec<IpAddr>, holds: Duration) -> bool {
        table.answered(now, name, list, holds, |_| None).changed
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
        assert!(answer(&mut table, at(100), "ca.example.net", list(&[2, 1]), 5 * S));
        assert_eq!((table.deadline(), table.due(at(104)).len()), (at(105), 0));
        assert_eq!(table.due(at(105)).len(), 1);
        // The order of an answer means nothing; an answer without a time to live is kept for a second, one for years a day.
        assert!(!answer(&mut table, at(105), "ca.example.net", list(&[1, 2, 1]), Duration::ZERO));
        assert_eq!(table.deadline(), at(106));
        assert!(answer(&mut table, at(106), "ca.example.net", list(&[3]), 10_000_000 * S));
        assert_eq!(table.deadline(), at(106 + 86_400));
        assert_eq!(&*table.known()["ca.example.net"].list, list(&[3]));
    }

    #[test]
    fn without_an_answer_the_last_good_one_stays() {
        let mut table = table(&["ca.example.net", "cb.example.net"]);
        answer(&mut table, at(100), "ca.example.net", list(&[1]), 5 * S);
        let mut now = at(105);
        let mut waits = Vec::new();
        for _ in 0..9 {
            if waits.len() % 2 == 0 {
                table.failed(now, "ca.example.net");
            } else {
                assert!(!answer(&mut table, now, "ca.example.net", Vec::new(), S));
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
        answer(&mut table, at(100), "ca.example.net", list(&[1]), 3600 * S);
        table.ask(at(104), "ca.example.net");
        assert_eq!(table.due(at(104)).len(), 0);
        table.ask(at(105), "ca.example.net");
        table.ask(at(105), "unknown.example.net");
        assert_eq!(table.due(at(105)).len(), 1);
    }

    #[test]
    fn names_come_and_go_with_the_configuration() {
        let mut table = table(&["ca.example.net", "cb.example.net"]);
        answer(&mut table, at(100), "ca.example.net", list(&[1]), 3600 * S);
        table.want(at(200), ["ca.example.net", "cc.example.net"].into_iter().map(str::to_owned));
        assert_eq!(table.due(at(200)), ["cc.example.net"]);
        assert_eq!(table.known().len(), 1);
        assert!(!answer(&mut table, at(200), "cb.example.net", list(&[1]), S), "nobody wants it");
    }

    #[test]
    fn addresses_of_no_use_do_not_replace_good_ones() {
        // 192.0.2.200 and up are of no use.
        let unfit = |ip: IpAddr| matches!(ip, IpAddr::V4(v4) if v4.octets()[3] >= 200).then_some("no address of a machine");
        let mut table = table(&["ca.example.net"]);
        let mut answered = |at: Time, last: &[u8]| {
            let outcome = table.answered(at, "ca.example.net", list(last), S, unfit);
            (outcome, table.known().get("ca.example.net").map(|known| known.list.to_vec()), table.troubles())
        };
        let (outcome, known, troubles) = answered(at(100), &[1, 200]);
        assert_eq!((outcome.changed, outcome.unfit, known, troubles.len()), (true, 1, Some(list(&[1])), 0));
        assert_eq!(outcome.remark.as_deref(), Some("192.0.2.200 is left out: no address of a machine"));
        let (outcome, ..) = answered(at(101), &[200, 1]);
        assert_eq!((outcome.changed, outcome.remark), (false, None), "said once");
        let (outcome, known, troubles) = answered(at(102), &[200, 201, 202, 203, 204]);
        assert_eq!((outcome.changed, outcome.unfit, known), (false, 5, Some(list(&[1]))));
        assert!(outcome.remark.unwrap().ends_with("; 1 more are left out likewise"));
        assert_eq!((troubles[0].since, troubles[0].why), (at(102), "all of its addresses in the DNS are of no use"));
        assert_eq!(answered(at(104), &[]).2[0].since, at(102), "the trouble lasts");
        assert_eq!(answered(at(106), &[2]).2, []);
    }

    #[test]
    fn of_too_many_addresses_those_in_use_stay() {
        let mut table = table(&["ca.example.net"]);
        assert!(answer(&mut table, at(100), "ca.example.net", list(&[40, 39]), S));
        let many: Vec<u8> = (1..=40).collect();
        let outcome = table.answered(at(101), "ca.example.net", list(&many), S, |_| None);
        assert_eq!((outcome.left_out, outcome.changed), (32, true));
        assert_eq!(outcome.remark.as_deref(), Some("32 addresses are left out: a name has 8 at the most here"));
        assert_eq!(&*table.known()["ca.example.net"].list, list(&[1, 2, 3, 4, 5, 6, 39, 40]));
        let outcome = table.answered(at(102), "ca.example.net", list(&many), S, |_| None);
        assert_eq!((outcome.left_out, outcome.changed, outcome.remark), (32, false, None));
    }
}
