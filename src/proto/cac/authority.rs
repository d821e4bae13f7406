//! Decides whether a leg of a call has room, over one [`Ledger`]. The same code for every role (R1): the central node keeps the calls of
//! all gateways in it, a gateway its own.
//!
//! A request is checked in all its scopes before it counts in any. Asking again about the same leg charges it once and gets the first
//! verdict (R26, I8).

use super::charge::{Charge, Class, Key, ScId};
use super::ledger::{Admission, Ccb, Ledger};
use super::limits::{self, Amount, Amounts, Bucket, Cause, Denial, Denied, Limits};
use super::scope::{ScopeId, Tree};
use super::threshold::{Crossing, Threshold};
use crate::proto::base::Time;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How long a refusal is remembered, so that a repeat of the request gets it again: as long as a node waits for the answer.
const DENIALS_FOR: Duration = Duration::from_secs(3);
/// How many refusals are remembered for that at a time.
const DENIALS_MAX: usize = 65_536;

/// What a request comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is admitted.
    Granted,
    /// It is not.
    Denied(Denial),
}

/// What happened in one scope so far (R44).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Requests that named it.
    pub attempts: u64,
    /// Those admitted.
    pub granted: u64,
    /// Those this scope refused, by [`Cause`] and [`Class`].
    pub denied: Denied,
    /// Calls told of that are up and were not here, by who let them in.
    pub told: [u64; Admission::ALL.len()],
    /// The most calls there were at a time.
    pub peak: u32,
    /// The most calls there were above the limit: emergencies, head room, calls admitted without the authority, a limit that was lowered.
    pub over: u32,
}

/// One scope's changing part.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    buckets: [Bucket; 2],
    threshold: Threshold,
    tally: Tally,
}

/// A part of a node's calls, looked at in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Slice {
    /// Calls looked at.
    pub seen: usize,
    /// The last of them.
    pub last: Option<Key>,
    /// Those removed.
    pub removed: usize,
    /// Whether there is none behind them.
    pub is_last: bool,
}

/// The authority over one set of calls.
#[derive(Debug)]
pub struct Authority {
    tree: Arc<Tree>,
    limits: Vec<Limits>,
    ledger: Ledger,
    states: Vec<State>,
    denials: BTreeMap<Key, Denial>,
    denied: VecDeque<(Time, Key)>,
    crossings: VecDeque<(ScopeId, Crossing)>,
    /// Places not given out, in parts of all: so many of so many nodes are missing and may have calls (R32).
    missing: (u32, u32),
    /// Places given to nodes as quotas, by scope, whether calls sit on them or not.
    promised: Vec<u32>,
}

impl Authority {
    /// An authority over `tree` with `limits` in its order (unlimited where there are too few), for at most so many call control blocks.
    pub fn new(tree: Arc<Tree>, limits: Vec<Limits>, ccbs: usize) -> Authority {
        let scopes = tree.len();
        let mut authority = Authority {
            ledger: Ledger::new(scopes, ccbs),
            states: vec![State::default(); scopes],
            limits: Vec::new(),
            tree,
            denials: BTreeMap::new(),
            denied: VecDeque::new(),
            crossings: VecDeque::new(),
            missing: (0, 1),
            promised: vec![0; scopes],
        };
        authority.set_limits(limits);
        authority
    }

    /// The calls.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The scopes.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// What `scope` allows.
    pub fn limits(&self, scope: ScopeId) -> Limits {
        self.limits.get(usize::from(scope.0)).copied().unwrap_or_default()
    }

    /// The same of all scopes, in the order of the tree.
    pub fn all_limits(&self) -> &[Limits] {
        &self.limits
    }

    /// What happened in `scope`.
    pub fn tally(&self, scope: ScopeId) -> Tally {
        self.states.get(usize::from(scope.0)).map(|state| state.tally).unwrap_or_default()
    }

    /// Other limits: no call is cut, new ones are refused until there is room (R21, I16).
    pub fn set_limits(&mut self, mut limits: Vec<Limits>) {
        limits.resize(self.tree.len(), Limits::default());
        self.limits = limits;
        for place in 0..self.limits.len() {
            self.watch(ScopeId(place as u16));
        }
    }

    /// So many of so many nodes have not said what they have: their equal part of every limit is kept free for it (R32).
    pub fn set_missing(&mut self, missing: u32, nodes: u32) {
        self.missing = (missing.min(nodes), nodes.max(1));
    }

    /// These nodes may always have so much of each scope, so others leave it free (R41).
    pub fn set_floors(&mut self, floors: Vec<Amounts>, nodes: &[ScId]) {
        self.ledger.set_floors(floors, nodes);
    }

    /// So many places of `scope` are given to nodes as quotas (I6).
    pub fn set_promised(&mut self, scope: ScopeId, places: u32) {
        if let Some(promised) = self.promised.get_mut(usize::from(scope.0)) {
            *promised = places;
        }
    }

    /// What calls take of `scope` that do not sit on quotas, what is kept for nodes that have not said what they have, and what is owed
    /// to nodes that use less than their floors.
    pub fn beside_quotas(&self, scope: ScopeId) -> u32 {
        let (missing, nodes) = self.missing;
        let kept = u64::from(self.limits(scope).calls) * u64::from(missing) / u64::from(nodes);
        let used = self.ledger.used(scope).minus(&self.ledger.leased(scope));
        // Of nobody's calls: what is owed to all.
        let owed = self.ledger.owed_to_others(ScId::default(), scope);
        used.plus(&owed).get(Amount::Calls).saturating_add(kept as u32)
    }

    /// A scope that came to a threshold, or left it.
    pub fn next_crossing(&mut self) -> Option<(ScopeId, Crossing)> {
        self.crossings.pop_front()
    }

    /// A node asks for `charge` under `key`.
    pub fn ask(&mut self, now: Time, key: Key, charge: Charge, session: u64) -> Verdict {
        if self.ledger.stamp(&key, session) {
            return Verdict::Granted;
        }
        self.forget_denials(now);
        if let Some(&denial) = self.denials.get(&key) {
            return Verdict::Denied(denial);
        }
        for scope in charge.scopes() {
            if let Some(state) = self.states.get_mut(usize::from(scope.0)) {
                state.tally.attempts += 1;
            }
        }
        let full = Denial { scope: charge.scopes().next().unwrap_or(ScopeId::NONE), cause: Cause::Full, used: 0, limit: 0 };
        let result = if self.ledger.is_full() { Err(full) } else { self.check(now, key.sc, &charge, |scope| charge.asks_in(scope), true) };
        let ccb = Ccb::new(now, charge, Admission::Granted, session);
        match result {
            Ok(()) if self.ledger.put(key, ccb) => {
                self.granted(now, &charge);
                Verdict::Granted
            }
            Ok(()) => self.deny(now, key, full, charge.class),
            Err(denial) => self.deny(now, key, denial, charge.class),
        }
    }

    /// A call changes to `charge`: refused, it stays what it was (R23). One that is not here is admitted like a new one.
    pub fn modify(&mut self, now: Time, key: Key, charge: Charge, session: u64) -> Verdict {
        let Some(old) = self.ledger.get(&key).copied() else { return self.ask(now, key, charge, session) };
        self.ledger.stamp(&key, session);
        let more = |scope: ScopeId| charge.asks_in(scope).minus(&old.charge.asks_in(scope));
        match self.check(now, key.sc, &charge, more, false) {
            Ok(()) => {
                self.ledger.put(key, Ccb { stamp: old.stamp.max(session), ..old.charged(now, charge) });
                self.watch_all(&charge);
                self.watch_all(&old.charge);
                Verdict::Granted
            }
            Err(denial) => {
                self.count_denial(&denial, charge.class);
                Verdict::Denied(denial)
            }
        }
    }

    /// A call that is up without having been asked for, or is told of in a sync: it counts, whatever the limits say (R31). False when
    /// there is no room in the table.
    pub fn fact(&mut self, now: Time, key: Key, charge: Charge, admission: Admission, session: u64) -> bool {
        self.denials.remove(&key);
        let known = self.ledger.get(&key).copied();
        let old = known.map(|ccb| ccb.charge);
        let ccb = known.map_or(Ccb::new(now, charge, admission, session), |known| known.charged(now, charge));
        let done = self.ledger.put(key, Ccb { admission, stamp: session, ..ccb });
        if done && known.is_none() {
            for scope in charge.scopes() {
                if let Some(state) = self.states.get_mut(usize::from(scope.0)) {
                    state.tally.told[admission as usize] += 1;
                }
            }
        }
        self.note_peak(&charge);
        old.iter().chain([&charge]).for_each(|charge| self.watch_all(charge));
        done
    }

    /// A call has ended, or was never begun; once more than once does nothing (I8).
    pub fn release(&mut self, key: &Key) -> bool {
        let Some(ccb) = self.ledger.take(key) else { return false };
        self.watch_all(&ccb.charge);
        true
    }

    /// Looks at no more than `most` calls of a node behind `after`, and removes those that `gone` holds for.
    pub fn sweep(&mut self, sc: ScId, after: Option<Key>, most: usize, gone: impl Fn(&Ccb) -> bool) -> Slice {
        let mut calls = self.ledger.of_node_behind(sc, after);
        let mut slice = Slice::default();
        let look = |(key, ccb): (&Key, &Ccb)| {
            (slice.seen, slice.last) = (slice.seen + 1, Some(*key));
            gone(ccb).then_some(*key)
        };
        let keys: Vec<Key> = calls.by_ref().take(most).filter_map(look).collect();
        slice.is_last = calls.next().is_none();
        drop(calls);
        slice.removed = keys.len();
        for key in &keys {
            self.release(key);
        }
        slice
    }

    /// Nothing need be remembered of this node any more.
    pub fn forget(&mut self, sc: ScId) {
        self.ledger.forget(sc);
    }

    /// Whether there is room beside what is used and what is owed to other nodes.
    fn check(&self, now: Time, sc: ScId, charge: &Charge, change: impl Fn(ScopeId) -> Amounts, is_new: bool) -> Result<(), Denial> {
        let owed = |scope: ScopeId| self.ledger.owed_to_others(sc, scope);
        self.check_beside(now, charge, &change, owed, is_new).map_err(|denial| {
            let is_owed = charge.scopes().any(|scope| !owed(scope).is_zero())
                && self.check_beside(now, charge, &change, |_| Amounts::ZERO, is_new).is_ok();
            if is_owed { Denial { cause: Cause::Reserved, ..denial } } else { denial }
        })
    }

    fn check_beside(
        &self,
        now: Time,
        charge: &Charge,
        change: impl Fn(ScopeId) -> Amounts,
        owed: impl Fn(ScopeId) -> Amounts,
        is_new: bool,
    ) -> Result<(), Denial> {
        let (missing, nodes) = self.missing;
        let scope = |id: ScopeId| {
            let place = usize::from(id.0);
            let (limits, state) = (self.limits.get(place)?, self.states.get(place)?);
            let kept = |limit: u32| (u64::from(limit) * u64::from(missing) / u64::from(nodes)) as u32;
            let free = |amount: u32, limit: u32| if limit < limits::UNLIMITED { amount.saturating_add(kept(limit)) } else { amount };
            let promised = self.promised.get(place).copied().filter(|_| limits.calls < limits::UNLIMITED).unwrap_or(0);
            let promised = Amounts::ZERO.with(Amount::Calls, promised).with(Amount::Normal, promised);
            let used = self.ledger.used(id).minus(&self.ledger.leased(id)).plus(&promised).plus(&owed(id));
            let used = used
                .with(Amount::Calls, free(used.get(Amount::Calls), limits.calls))
                .with(Amount::Inbound, free(used.get(Amount::Inbound), limits.inbound))
                .with(Amount::Outbound, free(used.get(Amount::Outbound), limits.outbound))
                .with(Amount::Kbits, free(used.get(Amount::Kbits), limits.kbits));
            Some((*limits, used, state.buckets))
        };
        limits::check(now, charge, change, scope, is_new)
    }

    fn granted(&mut self, now: Time, charge: &Charge) {
        for scope in charge.scopes() {
            let place = usize::from(scope.0);
            let (Some(state), Some(limits)) = (self.states.get_mut(place), self.limits.get(place)) else { continue };
            state.tally.granted += 1;
            if let Some(rate) = limits.rate(charge.direction).filter(|_| charge.class != Class::Emergency) {
                state.buckets[charge.direction as usize].take(now, rate);
            }
        }
        self.note_peak(charge);
        self.watch_all(charge);
    }

    fn note_peak(&mut self, charge: &Charge) {
        for scope in charge.scopes() {
            let calls = self.ledger.used(scope).get(Amount::Calls);
            if let Some(state) = self.states.get_mut(usize::from(scope.0)) {
                state.tally.peak = state.tally.peak.max(calls);
                let limit = self.limits.get(usize::from(scope.0)).map_or(limits::UNLIMITED, |limits| limits.calls);
                state.tally.over = state.tally.over.max(calls.saturating_sub(limit));
            }
        }
    }

    fn deny(&mut self, now: Time, key: Key, denial: Denial, class: Class) -> Verdict {
        self.count_denial(&denial, class);
        if self.denials.len() < DENIALS_MAX {
            self.denials.insert(key, denial);
            self.denied.push_back((now, key));
        }
        Verdict::Denied(denial)
    }

    fn count_denial(&mut self, denial: &Denial, class: Class) {
        if let Some(state) = self.states.get_mut(usize::from(denial.scope.0)) {
            state.tally.denied.count(denial.cause, class);
        }
    }

    fn forget_denials(&mut self, now: Time) {
        while let Some(&(at, key)) = self.denied.front() {
            if now.since(at) < DENIALS_FOR {
                return;
            }
            self.denied.pop_front();
            self.denials.remove(&key);
        }
    }

    fn watch_all(&mut self, charge: &Charge) {
        charge.scopes().for_each(|scope| self.watch(scope));
    }

    /// Bounded: a scope whose crossings nobody takes away tells the latest only.
    fn watch(&mut self, scope: ScopeId) {
        let place = usize::from(scope.0);
        let used = self.ledger.used(scope);
        let (Some(state), Some(limits)) = (self.states.get_mut(place), self.limits.get(place)) else { return };
        while let Some(crossing) = state.threshold.next(limits, &used) {
            self.crossings.push_back((scope, crossing));
            if self.crossings.len() > CROSSINGS_MAX {
                self.crossings.pop_front();
            }
        }
    }
}

/// Crossings kept for whoever tells operators.
const CROSSINGS_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::super::charge::{Direction, Guid};
    use super::super::limits::Rate;
    use super::super::scope::{Kind, Scope};
    use super::*;
    use crate::proto::base::Rng;

    const NOW: Time = Time::from_millis(1_000);

    fn tree() -> Arc<Tree> {
        let scopes = vec![
            Scope::new(Kind::Pool, "carrier"),
            Scope::new(Kind::TrunkGroup, "north").under(ScopeId(0)),
            Scope::new(Kind::TrunkGroup, "south").under(ScopeId(0)),
        ];
        Arc::new(Tree::new(scopes).unwrap())
    }

    fn key(number: u64) -> Key {
        Key { guid: Guid { number, ..Guid::default() }, ..Key::default() }
    }

    fn leg(tree: &Tree, group: u16, class: Class) -> Charge {
        tree.charge(ScopeId(group), None, Charge::new(Direction::Inbound, class, 80))
    }

    fn denied(verdict: Verdict) -> (u16, Cause) {
        match verdict {
            Verdict::Denied(denial) => (denial.scope.0, denial.cause),
            Verdict::Granted => panic!("granted"),
        }
    }

    /// I3, I8.
    #[test]
    fn never_more_than_the_limit_and_a_repeat_counts_once() {
        let tree = tree();
        let mut authority = Authority::new(tree.clone(), vec![Limits::of_calls(3), Limits::of_calls(2)], 100);
        let north = leg(&tree, 1, Class::Normal);
        for _ in 0..5 {
            assert_eq!(authority.ask(NOW, key(1), north, 1), Verdict::Granted);
        }
        assert_eq!(authority.ask(NOW, key(2), north, 1), Verdict::Granted);
        assert_eq!(denied(authority.ask(NOW, key(3), north, 1)), (1, Cause::Calls));
        assert_eq!(authority.ask(NOW, key(4), leg(&tree, 2, Class::Normal), 1), Verdict::Granted);
        assert_eq!(denied(authority.ask(NOW, key(5), leg(&tree, 2, Class::Normal), 1)), (0, Cause::Calls));
        assert!(authority.release(&key(1)) && !authority.release(&key(1)));
        // A repeat of a refused request is refused again, a new one finds the place.
        assert_eq!(denied(authority.ask(NOW, key(3), north, 1)), (1, Cause::Calls));
        assert_eq!(authority.ask(NOW, key(6), north, 1), Verdict::Granted);
        assert_eq!(authority.ledger().used(ScopeId(0)).get(Amount::Calls), 3);
        assert_eq!(authority.tally(ScopeId(0)).peak, 3);
        assert!(authority.ledger().audit());
    }

    /// R23.
    #[test]
    fn a_refused_change_keeps_what_was_reserved() {
        let tree = tree();
        let mut authority = Authority::new(tree.clone(), vec![Limits { kbits: 100, ..Limits::default() }], 100);
        let small = leg(&tree, 1, Class::Normal);
        assert_eq!(authority.ask(NOW, key(1), small, 1), Verdict::Granted);
        let large = small.with_kbits(101);
        assert_eq!(denied(authority.modify(NOW, key(1), large, 1)), (0, Cause::Bandwidth));
        assert_eq!(authority.ledger().used(ScopeId(0)).get(Amount::Kbits), 80);
        assert_eq!(authority.modify(NOW, key(1), small.with_kbits(100), 1), Verdict::Granted);
        assert_eq!(authority.ledger().used(ScopeId(0)).get(Amount::Kbits), 100);
        assert_eq!(authority.ledger().len(), 1);
    }

    /// R21, I16.
    #[test]
    fn a_lowered_limit_cuts_no_call_and_refuses_until_there_is_room() {
        let tree = tree();
        let mut authority = Authority::new(tree.clone(), vec![Limits::of_calls(3)], 100);
        let north = leg(&tree, 1, Class::Normal);
        for number in 0..3 {
            assert_eq!(authority.ask(NOW, key(number), north, 1), Verdict::Granted);
        }
        authority.set_limits(vec![Limits::of_calls(2)]);
        assert_eq!(authority.ledger().len(), 3);
        authority.release(&key(0));
        assert_eq!(denied(authority.ask(NOW, key(8), north, 1)), (0, Cause::Calls));
        authority.release(&key(1));
        assert_eq!(authority.ask(NOW, key(9), north, 1), Verdict::Granted);
        authority.set_limits(vec![Limits::of_calls(3)]);
        assert_eq!(authority.ask(NOW, key(10), north, 1), Verdict::Granted);
    }

    /// R18: and emergency calls do not wait for the bucket.
    #[test]
    fn calls_that_come_too_fast_are_refused() {
        let tree = tree();
        let rate = Some(Rate { per_second: 10, burst: 2 });
        let mut authority = Authority::new(tree.clone(), vec![Limits::default(), Limits { inbound_rate: rate, ..Limits::default() }], 100);
        let north = leg(&tree, 1, Class::Normal);
        assert_eq!(authority.ask(NOW, key(1), north, 1), Verdict::Granted);
        assert_eq!(authority.ask(NOW, key(2), north, 1), Verdict::Granted);
        assert_eq!(denied(authority.ask(NOW, key(3), north, 1)), (1, Cause::Rate));
        assert_eq!(authority.ask(NOW, key(4), leg(&tree, 1, Class::Emergency), 1), Verdict::Granted);
        assert_eq!(authority.ask(NOW + Duration::from_millis(100), key(5), north, 1), Verdict::Granted);
    }

    /// R12, R29: what the node did not speak of since its session began goes, and nothing else.
    #[test]
    fn a_sweep_removes_older_stamps_of_that_node_only() {
        let tree = tree();
        let mut authority = Authority::new(tree.clone(), Vec::new(), 100);
        let north = leg(&tree, 1, Class::Normal);
        let other = Key { sc: ScId(9), ..key(1) };
        authority.ask(NOW, other, north, 1);
        (0..4).for_each(|number| assert_eq!(authority.ask(NOW, key(number), north, 1), Verdict::Granted));
        authority.fact(NOW, key(1), north, Admission::Granted, 2);
        authority.ask(NOW, key(7), north, 2);
        let gone = |ccb: &Ccb| ccb.stamp < 2;
        let first = authority.sweep(ScId(0), None, 2, gone);
        assert_eq!((first.seen, first.is_last), (2, false));
        let rest = authority.sweep(ScId(0), first.last, 100, gone);
        assert_eq!((rest.seen, rest.is_last, first.removed + rest.removed), (3, true, 3));
        assert_eq!(authority.sweep(ScId(0), rest.last, 100, gone), Slice { is_last: true, ..Slice::default() });
        let mut left: Vec<u64> = authority.ledger().of_node(ScId(0)).map(|(key, _)| key.guid.number).collect();
        left.sort_unstable();
        assert_eq!(left, [1, 7]);
        assert!(authority.ledger().get(&other).is_some() && authority.ledger().audit());
    }

    /// R38: the table is bounded, and says so.
    #[test]
    fn a_full_table_refuses() {
        let tree = tree();
        let mut authority = Authority::new(tree.clone(), Vec::new(), 2);
        let north = leg(&tree, 1, Class::Normal);
        assert_eq!(authority.ask(NOW, key(1), north, 1), Verdict::Granted);
        assert_eq!(authority.ask(NOW, key(2), north, 1), Verdict::Granted);
        assert_eq!(denied(authority.ask(NOW, key(3), north, 1)), (1, Cause::Full));
        assert!(!authority.fact(NOW, key(4), north, Admission::Emergency, 1));
        assert!(authority.fact(NOW, key(2), north, Admission::Emergency, 1));
    }

    /// R32: of two nodes that have not spoken, half of the limit stays free.
    #[test]
    fn places_of_missing_nodes_are_kept() {
        let tree = tree();
        let mut authority = Authority::new(tree.clone(), vec![Limits::of_calls(8)], 100);
        let north = leg(&tree, 1, Class::Normal);
        authority.set_missing(2, 4);
        let granted = |authority: &mut Authority, numbers: std::ops::Range<u64>| {
            numbers.filter(|&number| authority.ask(NOW, key(number), north, 1) == Verdict::Granted).count()
        };
        assert_eq!(granted(&mut authority, 0..20), 4);
        authority.set_missing(0, 4);
        assert_eq!(granted(&mut authority, 20..40), 4);
    }

    /// I7 and I3, whatever is asked in whatever order.
    #[test]
    fn use_is_what_the_set_says_after_any_history() {
        for seed in 1..=20 {
            let mut rng = Rng::new(seed);
            let tree = tree();
            let limits =
                vec![Limits { kbits: 900, ..Limits::of_calls(9) }, Limits::of_calls(5), Limits { outbound: 3, ..Limits::default() }];
            let mut authority = Authority::new(tree.clone(), limits.clone(), 12);
            for step in 0..400 {
                let key = Key { sc: ScId(rng.below(2) as u32), ..key(rng.below(20)) };
                let class = [Class::Normal, Class::Priority, Class::Emergency][rng.below(3) as usize];
                let mut charge = leg(&tree, 1 + rng.below(2) as u16, class);
                charge.kbits = rng.below(200) as u32;
                let now = Time::from_millis(step * 7);
                let known = authority.ledger().get(&key).is_some();
                match rng.below(6) {
                    0 | 1 => {
                        let verdict = authority.ask(now, key, charge, step);
                        if let (Verdict::Granted, false, Some(_)) = (verdict, known, limits[0].ceiling(class)) {
                            for scope in charge.scopes() {
                                let ceiling = limits[usize::from(scope.0)].ceiling(class).expect("a ceiling");
                                let used = authority.ledger().used(scope);
                                assert_eq!(used.first_above(&ceiling, &charge.need()), None, "seed {seed} step {step}");
                            }
                        }
                    }
                    2 => drop(authority.modify(now, key, charge, step)),
                    3 => drop(authority.fact(now, key, charge, Admission::Disconnected, step)),
                    4 => drop(authority.release(&key)),
                    _ => drop(authority.sweep(key.sc, None, 5, |ccb| ccb.stamp < step.saturating_sub(60))),
                }
                assert!(authority.ledger().audit(), "seed {seed} step {step}");
                assert!(authority.ledger().len() <= 12);
            }
        }
    }
}
