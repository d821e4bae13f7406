//! What the central node gives nodes to admit calls with (R31, I6): of scopes whose limit is large, quotas that hold as long as the node
//! reports, and that count whether calls sit on them or not.
//!
//! What a lost node had goes on counting as its calls do. Of a life that is over nothing is given again before its lease is.

use super::super::charge::ScId;
use super::super::limits::UNLIMITED;
use super::super::message::{Quota, QuotaUse, ToNode};
use super::super::quota::{self, Giving, LEASE, Lessor, Part};
use super::super::scope::ScopeId;
use super::nodes::Contact;
use super::{Central, Record};
use crate::proto::base::Time;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Quotas {
    giving: Vec<Giving>,
    nodes: Lessor<ScId>,
    /// What counts up to then for lives that are over, and by scope the sum.
    resting: BTreeMap<Time, Vec<(ScopeId, u32)>>,
    rests: Vec<u32>,
}

impl Quotas {
    pub fn new(giving: Vec<Giving>) -> Quotas {
        Quotas { nodes: Lessor::new(giving.len()), rests: vec![0; giving.len()], giving, resting: BTreeMap::new() }
    }

    fn rests(&self, scope: ScopeId) -> u32 {
        self.rests.get(usize::from(scope.0)).copied().unwrap_or(0)
    }

    fn sum_up(&mut self) {
        self.rests.fill(0);
        for &(scope, bound) in self.resting.values().flatten() {
            if let Some(sum) = self.rests.get_mut(usize::from(scope.0)) {
                *sum = sum.saturating_add(bound);
            }
        }
    }
}

impl Central {
    /// What a node has of each scope.
    pub fn quotas_of(&self, sc: ScId) -> impl Iterator<Item = (ScopeId, Part)> {
        self.scopes().map(move |scope| (scope, self.quotas.nodes.part(sc, scope))).filter(|(_, part)| (part.quota, part.bound) != (0, 0))
    }

    /// What counts of `scope` for quotas, whether calls sit on them or not.
    pub fn promised(&self, scope: ScopeId) -> u32 {
        self.quotas.nodes.promised(scope).saturating_add(self.quotas.rests(scope)).min(UNLIMITED)
    }

    /// Which scopes are given out in quotas from now on.
    pub fn set_giving(&mut self, giving: &[Giving]) {
        for (place, giving) in self.quotas.giving.iter_mut().zip(giving) {
            *place = *giving;
        }
        self.give_quotas();
    }

    fn scopes(&self) -> impl Iterator<Item = ScopeId> + use<> {
        (0..self.quotas.giving.len() as u16).map(ScopeId)
    }

    fn is_given(&self, scope: ScopeId) -> bool {
        let giving = self.quotas.giving.get(usize::from(scope.0)).copied().unwrap_or(Giving::Never);
        quota::is_given(giving, &self.authority.limits(scope), self.settings.expected.len() as u32)
    }

    /// How long after its start no quota of a life before can hold any more.
    pub(super) fn learn_for(&self) -> std::time::Duration {
        let quotas = self.scopes().any(|scope| self.is_given(scope));
        if quotas { self.settings.learn_for.max(LEASE) } else { self.settings.learn_for }
    }

    /// What of `scope` all quotas together may be.
    fn capacity(&self, scope: ScopeId) -> u32 {
        let limit = if self.is_given(scope) { self.authority.limits(scope).calls } else { 0 };
        if limit >= UNLIMITED {
            return UNLIMITED;
        }
        limit.saturating_sub(self.authority.beside_quotas(scope)).saturating_sub(self.quotas.rests(scope))
    }

    fn balance(&mut self, scope: ScopeId) {
        let (capacity, among) = (self.capacity(scope), self.settings.expected.len() as u32);
        self.quotas.nodes.balance(scope, capacity, among);
    }

    /// All scopes, because something else than what nodes report has changed.
    pub(super) fn give_quotas(&mut self) {
        if self.is_active() {
            self.scopes().for_each(|scope| self.balance(scope));
        }
        self.tell_quotas();
    }

    /// Whoever has other quotas than before is told, and requests are decided by what is left.
    fn tell_quotas(&mut self) {
        while let Some(sc) = self.quotas.nodes.next_changed() {
            self.grant_quotas(sc, 0);
        }
        for scope in self.scopes() {
            let promised = self.promised(scope);
            self.authority.set_promised(scope, promised);
        }
    }

    fn grant_quotas(&mut self, sc: ScId, answers: u64) {
        let part = |scope| Quota { scope, calls: self.quotas.nodes.part(sc, scope).quota };
        let quotas = self.scopes().filter(|&scope| self.is_given(scope)).map(part).collect();
        let Some(Contact::Up(session)) = self.nodes.get_mut(&sc).map(|node| &mut node.contact) else { return };
        session.granted += 1;
        let number = session.granted;
        self.send(sc, ToNode::QuotaGrant { number, answers, lease: LEASE, quotas });
    }

    /// What a node has, and wants.
    pub(super) fn quota_report(&mut self, now: Time, sc: ScId, number: u64, seen: u64, told: &[QuotaUse]) {
        let drained = self.drained.contains(&sc);
        let Some(node) = self.nodes.get_mut(&sc) else { return };
        let has_told = node.told && node.has_copy();
        let Contact::Up(session) = &mut node.contact else { return };
        if !session.leases {
            self.counts.stale += 1;
            return;
        }
        let is_first = !std::mem::replace(&mut session.reported, true);
        // What it admitted alone may sit where calls on quotas were: before that is told, no less counts.
        let is_latest = seen == session.granted && has_told;
        node.quota_told = true;
        node.lease_over = now + LEASE;
        self.quotas.nodes.join(sc, !drained);
        let mut told = told.iter().peekable();
        for scope in self.scopes() {
            while told.peek().is_some_and(|told| told.scope < scope) {
                told.next();
            }
            let nothing = QuotaUse { scope, live: 0, bound: 0, want: 0 };
            let told = told.peek().filter(|told| told.scope == scope).map_or(nothing, |told| **told);
            if is_first {
                self.quotas.nodes.adopt(sc, &told);
            }
            let is_new = is_first || self.quotas.nodes.heard(sc, &told, is_latest);
            if self.is_active() && (is_new || self.quotas.nodes.promised(scope) > self.capacity(scope)) {
                self.balance(scope);
            }
        }
        if drained {
            self.quotas.nodes.empty(sc);
        }
        self.grant_quotas(sc, number);
        self.tell_quotas();
    }

    /// A node begins a session: what counted for the life it is in goes on counting until it has told what it has; a life before has it
    /// until its lease is over.
    pub(super) fn quota_session(&mut self, now: Time, sc: ScId, incarnation: u32, leases: bool) {
        self.quotas.nodes.lose(sc);
        let Some(node) = self.nodes.get_mut(&sc) else { return };
        node.quota_told |= !leases;
        if std::mem::replace(&mut node.life, incarnation) != incarnation {
            self.rest(now, sc, |_| true);
        }
    }

    /// A node cannot be reached.
    pub(super) fn quota_lost(&mut self, sc: ScId) {
        self.quotas.nodes.lose(sc);
    }

    /// No new calls of a node, or again.
    pub(super) fn quota_drained(&mut self, sc: ScId, drained: bool) {
        let reports = matches!(self.nodes.get(&sc).map(|node| &node.contact), Some(Contact::Up(session)) if session.reported);
        match drained {
            true => self.quotas.nodes.empty(sc),
            false if reports => self.quotas.nodes.join(sc, true),
            false => {}
        }
        self.give_quotas();
    }

    /// What a node had in these scopes counts no longer than its lease.
    pub(super) fn rest(&mut self, now: Time, sc: ScId, which: impl Fn(ScopeId) -> bool) {
        let over = self.nodes.get(&sc).map_or(now, |node| node.lease_over);
        let had = self.quotas.nodes.forget(sc, which);
        if over > now && !had.is_empty() {
            self.quotas.resting.entry(over).or_default().extend(had);
            self.quotas.sum_up();
        }
        self.give_quotas();
    }

    /// Whether quotas of a node count.
    pub(super) fn quotas_count(&self, sc: ScId) -> bool {
        self.quotas.nodes.counts(sc)
    }

    /// Another life of the central node: what it gave before, nodes tell. Until one has, what its calls on quotas take counts for it: it may
    /// be cut off from this one too.
    pub(super) fn quotas_anew(&mut self) {
        self.quotas = Quotas::new(std::mem::take(&mut self.quotas.giving));
        let nodes: Vec<ScId> = self.nodes.keys().copied().collect();
        for sc in nodes {
            let mut leased: BTreeMap<ScopeId, u32> = BTreeMap::new();
            let calls = self.authority.ledger().of_node(sc);
            calls.flat_map(|(_, ccb)| ccb.charge.leases()).for_each(|scope| *leased.entry(scope).or_default() += 1);
            if !leased.is_empty() {
                self.quotas.nodes.join(sc, false);
            }
            for (scope, live) in leased {
                self.quotas.nodes.adopt(sc, &QuotaUse { scope, live, bound: live, want: 0 });
            }
        }
        for Record { contact, quota_told, .. } in self.nodes.values_mut() {
            *quota_told = false;
            if let Contact::Up(session) = contact {
                (session.reported, session.granted) = (false, 0);
                *quota_told = !session.leases;
            }
        }
        self.tell_quotas();
    }

    pub(super) fn quota_deadline(&self) -> Time {
        self.quotas.resting.first_key_value().map_or(Time::NEVER, |(&over, _)| over)
    }

    pub(super) fn quotas_due(&mut self, now: Time) {
        if self.quota_deadline() <= now {
            self.quotas.resting.retain(|&over, _| over > now);
            self.quotas.sum_up();
            self.give_quotas();
        }
    }
}
