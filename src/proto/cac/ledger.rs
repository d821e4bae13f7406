//! The set of admitted calls, and what they use of each scope (R8, R24).
//!
//! Use is never kept for itself: it changes where a call control block is put in or taken out, and nowhere else, so a count cannot
//! drift from the set. [`Ledger::audit`] counts anew for those who do not believe it.

use super::charge::{Charge, Guid, Key, Leg, ScId};
use super::floor::Floors;
use super::limits::Amounts;
use super::scope::ScopeId;
use crate::proto::base::Time;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Who let a call in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// The authority.
    Granted,
    /// Its node, because the authority could not be reached.
    Disconnected,
    /// Its node, because the authority is learning what is up.
    Learning,
    /// Its node, because the authority took longer than the deadline.
    Deadline,
    /// Its node, because it is an emergency call.
    Emergency,
    /// Its node, with places of its quota.
    Lease,
}

impl Admission {
    /// All of them.
    pub const ALL: [Admission; 6] =
        [Admission::Granted, Admission::Disconnected, Admission::Learning, Admission::Deadline, Admission::Emergency, Admission::Lease];

    /// As operators read it.
    pub const fn name(self) -> &'static str {
        match self {
            Admission::Granted => "granted",
            Admission::Disconnected => "disconnected",
            Admission::Learning => "learning",
            Admission::Deadline => "deadline",
            Admission::Emergency => "emergency",
            Admission::Lease => "lease",
        }
    }
}

/// A call control block: one admitted leg of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ccb {
    /// What it counts for and where.
    pub charge: Charge,
    /// Who let it in.
    pub admission: Admission,
    /// Since when it is here.
    pub since: Time,
    /// The latest session of its node that spoke of it: what `retainCcb` of the source text must mean (R29).
    pub stamp: u64,
    /// How often it has changed what it is charged, and when last.
    pub changes: u32,
    /// See `changes`.
    pub changed: Time,
}

impl Ccb {
    /// A call that is here since now.
    pub fn new(now: Time, charge: Charge, admission: Admission, stamp: u64) -> Ccb {
        Ccb { charge, admission, since: now, stamp, changes: 0, changed: now }
    }

    /// The same with another charge.
    pub fn charged(self, now: Time, charge: Charge) -> Ccb {
        let changes = self.changes.saturating_add(1);
        if charge == self.charge { self } else { Ccb { charge, changes, changed: now, ..self } }
    }
}

/// Parts that a node's calls are compared in (R33).
pub const BUCKETS: usize = 256;

/// How many calls there are in one part of a node's calls, and which: equal at both ends of a link when the calls are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digest {
    /// How many.
    pub count: u32,
    /// [`Key::mixed`] of each, added up.
    pub sum: u64,
}

/// The digests of one node.
pub type Digests = [Digest; BUCKETS];

/// The part that a call belongs to, both its legs the same.
pub fn bucket_of(key: &Key) -> u8 {
    (key.guid.number ^ u64::from(key.guid.incarnation)).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

/// Where a call stands: those of one part of a node's calls are together, so that a part can be mended without a look at the others.
type Place = (ScId, u8, Key);

fn place(key: &Key) -> Place {
    (key.sc, bucket_of(key), *key)
}

/// The first place of a part.
fn first_of(sc: ScId, bucket: u8) -> Place {
    (sc, bucket, Key::default())
}

fn entry<'a>((place, ccb): (&'a Place, &'a Ccb)) -> (&'a Key, &'a Ccb) {
    (&place.2, ccb)
}

/// The set.
#[derive(Debug)]
pub struct Ledger {
    ccbs: BTreeMap<Place, Ccb>,
    used: Vec<Amounts>,
    /// What of it sits on places of a node's quota.
    leased: Vec<Amounts>,
    digests: BTreeMap<ScId, Box<Digests>>,
    floors: Floors,
    limit: usize,
}

impl Ledger {
    /// An empty set over so many scopes, for at most `limit` call control blocks.
    pub fn new(scopes: usize, limit: usize) -> Ledger {
        let none = vec![Amounts::ZERO; scopes];
        Ledger { ccbs: BTreeMap::new(), used: none.clone(), leased: none, digests: BTreeMap::new(), floors: Floors::default(), limit }
    }

    /// How many call control blocks there are.
    pub fn len(&self) -> usize {
        self.ccbs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ccbs.is_empty()
    }

    /// Whether no more fit.
    pub fn is_full(&self) -> bool {
        self.ccbs.len() >= self.limit
    }

    /// What is used of `scope`.
    pub fn used(&self, scope: ScopeId) -> Amounts {
        self.used.get(usize::from(scope.0)).copied().unwrap_or_default()
    }

    /// These nodes may always have so much of each scope (R41).
    pub fn set_floors(&mut self, floors: Vec<Amounts>, nodes: &[ScId]) {
        self.floors = Floors::new(floors, nodes, self.ccbs.iter().map(|(place, ccb)| (place.0, &ccb.charge)));
    }

    /// What must stay free in `scope` for other nodes than `sc`, which use less than their floors.
    pub fn owed_to_others(&self, sc: ScId, scope: ScopeId) -> Amounts {
        self.floors.owed_to_others(sc, scope)
    }

    /// What of `scope` is used by calls on places of quotas.
    pub fn leased(&self, scope: ScopeId) -> Amounts {
        self.leased.get(usize::from(scope.0)).copied().unwrap_or_default()
    }

    /// One call control block.
    pub fn get(&self, key: &Key) -> Option<&Ccb> {
        self.ccbs.get(&place(key))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Ccb)> {
        self.ccbs.iter().map(entry)
    }

    /// Those behind `after`, which need not be here any more, in the order of [`Ledger::iter`]; without it all.
    pub fn behind(&self, after: Option<Key>) -> impl Iterator<Item = (&Key, &Ccb)> {
        let first = after.map_or(Bound::Unbounded, |after| Bound::Excluded(place(&after)));
        self.ccbs.range((first, Bound::Unbounded)).map(entry)
    }

    /// Those of one node: its own list in the source text.
    pub fn of_node(&self, sc: ScId) -> impl Iterator<Item = (&Key, &Ccb)> {
        self.ccbs.range(first_of(sc, 0)..).take_while(move |(place, _)| place.0 == sc).map(entry)
    }

    /// How many one node has.
    pub fn count_of(&self, sc: ScId) -> usize {
        self.digests.get(&sc).map_or(0, |digests| digests.iter().map(|digest| digest.count as usize).sum())
    }

    /// The legs of one call, whosever.
    pub fn of_call(&self, guid: Guid) -> impl Iterator<Item = (&Key, &Ccb)> {
        let legs = move |&sc: &ScId| Leg::ALL.map(|leg| place(&Key { sc, guid, leg }));
        self.digests.keys().flat_map(legs).filter_map(move |place| self.ccbs.get_key_value(&place).map(entry))
    }

    /// Those in one part of a node's calls.
    pub fn of_bucket(&self, sc: ScId, bucket: u8) -> impl Iterator<Item = (&Key, &Ccb)> {
        self.ccbs.range(first_of(sc, bucket)..).take_while(move |(place, _)| (place.0, place.1) == (sc, bucket)).map(entry)
    }

    /// Those of the node of `first` in their order, from that key on, which need not be here any more; from [`Key::default`] with its
    /// `sc` on: all.
    pub fn from(&self, first: Key) -> impl Iterator<Item = (&Key, &Ccb)> {
        self.ccbs.range(place(&first)..).take_while(move |(place, _)| place.0 == first.sc).map(entry)
    }

    /// Those of one node behind `after`, which need not be here any more; without it all.
    pub fn of_node_behind(&self, sc: ScId, after: Option<Key>) -> impl Iterator<Item = (&Key, &Ccb)> {
        let first = after.map_or(Bound::Included(first_of(sc, 0)), |after| Bound::Excluded(place(&after)));
        self.ccbs.range((first, Bound::Unbounded)).take_while(move |(place, _)| place.0 == sc).map(entry)
    }

    /// Puts `ccb` in, in place of the one of the same key; false when there is none and no more fit.
    pub fn put(&mut self, key: Key, ccb: Ccb) -> bool {
        if !self.ccbs.contains_key(&place(&key)) && self.is_full() {
            return false;
        }
        self.add(&key, &ccb.charge);
        if let Some(old) = self.ccbs.insert(place(&key), ccb) {
            self.subtract(&key, &old.charge);
        }
        true
    }

    /// Notes that the node spoke of this call in `session`; false when it is not here.
    pub fn stamp(&mut self, key: &Key, session: u64) -> bool {
        let found = self.ccbs.get_mut(&place(key));
        found.map(|ccb| ccb.stamp = ccb.stamp.max(session)).is_some()
    }

    /// Takes one out.
    pub fn take(&mut self, key: &Key) -> Option<Ccb> {
        let ccb = self.ccbs.remove(&place(key))?;
        self.subtract(key, &ccb.charge);
        Some(ccb)
    }

    /// Whether what is used is what the set says (I7).
    pub fn audit(&self) -> bool {
        let none = vec![Amounts::ZERO; self.used.len()];
        let (mut counted, mut leased) = (none.clone(), none);
        for ccb in self.ccbs.values() {
            each(&mut counted, ccb.charge.scopes(), |used| *used = used.plus(&ccb.charge.need()));
            each(&mut leased, ccb.charge.leases(), |used| *used = used.plus(&ccb.charge.need()));
        }
        counted == self.used && leased == self.leased
    }

    /// The digests of one node's calls.
    pub fn digests(&self, sc: ScId) -> Digests {
        self.digests.get(&sc).map_or([Digest::default(); BUCKETS], |digests| **digests)
    }

    /// Forgets that there ever was this node, when it has no call.
    pub fn forget(&mut self, sc: ScId) {
        if self.of_node(sc).next().is_none() {
            self.digests.remove(&sc);
        }
    }

    fn digest(&mut self, key: &Key) -> &mut Digest {
        let digests = self.digests.entry(key.sc).or_insert_with(|| Box::new([Digest::default(); BUCKETS]));
        &mut digests[usize::from(bucket_of(key))]
    }

    fn add(&mut self, key: &Key, charge: &Charge) {
        self.floors.add(key.sc, charge);
        let digest = self.digest(key);
        digest.count += 1;
        digest.sum = digest.sum.wrapping_add(key.mixed(charge));
        each(&mut self.used, charge.scopes(), |used| *used = used.plus(&charge.need()));
        each(&mut self.leased, charge.leases(), |used| *used = used.plus(&charge.need()));
    }

    fn subtract(&mut self, key: &Key, charge: &Charge) {
        self.floors.subtract(key.sc, charge);
        let digest = self.digest(key);
        digest.count = digest.count.saturating_sub(1);
        digest.sum = digest.sum.wrapping_sub(key.mixed(charge));
        each(&mut self.used, charge.scopes(), |used| *used = used.minus(&charge.need()));
        each(&mut self.leased, charge.leases(), |used| *used = used.minus(&charge.need()));
    }
}

fn each(amounts: &mut [Amounts], scopes: impl Iterator<Item = ScopeId>, mut change: impl FnMut(&mut Amounts)) {
    for scope in scopes {
        if let Some(amounts) = amounts.get_mut(usize::from(scope.0)) {
            change(amounts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::charge::{Class, Direction};
    use super::*;

    /// The parts are all of a node's calls, each once, in the order of a walk that can be left off and taken up anywhere.
    #[test]
    fn the_parts_of_a_node_are_its_calls() {
        let key = |sc, number| Key { sc: ScId(sc), guid: Guid { number, ..Guid::default() }, ..Key::default() };
        let charge = Charge::new(Direction::Inbound, Class::Normal, 80);
        let ccb = Ccb::new(Time::ZERO, charge, Admission::Granted, 0);
        let mut ledger = Ledger::new(1, 10_000);
        (0..3 * 700).for_each(|number| assert!(ledger.put(key(number as u32 % 3, number), ccb)));
        let of_node: Vec<Key> = ledger.of_node(ScId(1)).map(|(key, _)| *key).collect();
        let parts = (0..=255).flat_map(|bucket| ledger.of_bucket(ScId(1), bucket).map(move |(key, _)| (bucket, *key)));
        let first = Key { sc: ScId(1), ..Key::default() };
        let mut walked: Vec<Key> = ledger.from(first).take(300).map(|(key, _)| *key).collect();
        walked.extend(ledger.from(walked[299]).skip(1).map(|(key, _)| *key));
        let parts: Vec<Key> = parts.inspect(|(bucket, key)| assert_eq!(*bucket, bucket_of(key))).map(|(_, key)| key).collect();
        assert_eq!((of_node.len(), ledger.count_of(ScId(1)), ledger.count_of(ScId(7))), (700, 700, 0));
        assert!(of_node == parts && of_node == walked);
        assert_eq!(ledger.of_call(of_node[7].guid).map(|(key, _)| *key).collect::<Vec<_>>(), [of_node[7]]);
        assert!(ledger.take(&of_node[0]).is_some() && ledger.get(&of_node[0]).is_none() && ledger.count_of(ScId(1)) == 699);
    }
}
