//! The set of admitted calls, and what they use of each scope (R8, R24).
//!
//! Use is never kept for itself: it changes where a call control block is put in or taken out, and nowhere else, so a count cannot
//! drift from the set. [`Ledger::audit`] counts anew for those who do not believe it.

use super::charge::{Charge, Key, ScId};
use super::floor::Floors;
use super::limits::Amounts;
use super::scope::ScopeId;
use crate::proto::base::Time;
use std::collections::BTreeMap;

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

/// The set.
#[derive(Debug)]
pub struct Ledger {
    ccbs: BTreeMap<Key, Ccb>,
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
        self.floors = Floors::new(floors, nodes, self.ccbs.iter().map(|(key, ccb)| (key.sc, &ccb.charge)));
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
        self.ccbs.get(key)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Ccb)> {
        self.ccbs.iter()
    }

    /// Those of one node: its own list in the source text.
    pub fn of_node(&self, sc: ScId) -> impl Iterator<Item = (&Key, &Ccb)> {
        let first = Key { sc, ..Key::default() };
        self.ccbs.range(first..).take_while(move |(key, _)| key.sc == sc)
    }

    /// Those of the node of `first`, from that key on.
    pub fn from(&self, first: Key) -> impl Iterator<Item = (&Key, &Ccb)> {
        self.ccbs.range(first..).take_while(move |(key, _)| key.sc == first.sc)
    }

    /// Puts `ccb` in, in place of the one of the same key; false when there is none and no more fit.
    pub fn put(&mut self, key: Key, ccb: Ccb) -> bool {
        if !self.ccbs.contains_key(&key) && self.is_full() {
            return false;
        }
        self.add(&key, &ccb.charge);
        if let Some(old) = self.ccbs.insert(key, ccb) {
            self.subtract(&key, &old.charge);
        }
        true
    }

    /// Notes that the node spoke of this call in `session`; false when it is not here.
    pub fn stamp(&mut self, key: &Key, session: u64) -> bool {
        let found = self.ccbs.get_mut(key);
        found.map(|ccb| ccb.stamp = ccb.stamp.max(session)).is_some()
    }

    /// Takes one out.
    pub fn take(&mut self, key: &Key) -> Option<Ccb> {
        let ccb = self.ccbs.remove(key)?;
        self.subtract(key, &ccb.charge);
        Some(ccb)
    }

    /// Takes those of a node out that `gone` holds for: how many.
    pub fn take_of_node(&mut self, sc: ScId, gone: impl Fn(&Ccb) -> bool) -> usize {
        let keys: Vec<Key> = self.of_node(sc).filter(|(_, ccb)| gone(ccb)).map(|(key, _)| *key).collect();
        keys.iter().filter(|key| self.take(key).is_some()).count()
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
