//! The quotas of a node: what the central node gave it, for how long, and which core has how much of it (I6).

use super::super::charge::{Charge, Class, Guid, Leg};
use super::super::ledger::Admission;
use super::super::message::{Quota, QuotaUse, Report, ToCentral, Told, features};
use super::super::quota::{Lessor, REPORT_EVERY, REPORT_SOON};
use super::super::scope::ScopeId;
use super::{Action, Node};
use crate::proto::base::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// Reports that may still be answered; an answer to an older one renews nothing.
const SENT_MAX: usize = 64;
/// Between two reports where nothing is given out in quotas.
const REPORT_IDLE: Duration = Duration::from_secs(1);
/// Cores are told of a longer lease when it is longer by so much.
const TELL_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Quotas {
    /// By scope, what the node may have; `None`: it is not given out in quotas.
    given: Vec<Option<u32>>,
    /// The quotas hold up to then, and up to when cores know of.
    until: Time,
    told_until: Time,
    /// Whether they hold.
    live: bool,
    cores: Lessor<u8>,
    count: u8,
    /// The last grant of the session, and the last report.
    seen: u64,
    number: u64,
    sent: VecDeque<(u64, Time)>,
    report_at: Time,
    reported_at: Time,
    /// By scope, what there would be at most, as it was reported last.
    reported: Vec<u32>,
}

/// What a node has of one scope, for operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuotaView {
    /// The scope.
    pub scope: ScopeId,
    /// What the node may have.
    pub quota: u32,
    /// Calls on it.
    pub live: u32,
    /// What cores have of it.
    pub cores: u32,
}

impl Quotas {
    pub fn new(scopes: usize, count: u8) -> Quotas {
        let mut cores = Lessor::new(scopes);
        (0..count).for_each(|core| cores.join(core, true));
        Quotas {
            given: vec![None; scopes],
            until: Time::ZERO,
            told_until: Time::ZERO,
            live: false,
            cores,
            count,
            seen: 0,
            number: 0,
            sent: VecDeque::new(),
            report_at: Time::NEVER,
            reported_at: Time::ZERO,
            reported: vec![0; scopes],
        }
    }

    pub fn deadline(&self) -> Time {
        self.report_at.min(if self.live { self.until } else { Time::NEVER })
    }

    fn given(&self, scope: ScopeId) -> Option<u32> {
        self.given.get(usize::from(scope.0)).copied().flatten()
    }

    /// What cores have of a scope: calls on quotas are never more.
    pub fn promised(&self, scope: ScopeId) -> u32 {
        self.cores.promised(scope)
    }

    /// There will never be more calls on quotas, unless more is given.
    pub fn bound(&self, scope: ScopeId) -> u32 {
        self.given(scope).unwrap_or(0).max(self.promised(scope))
    }

    fn usage(&self, scope: ScopeId) -> QuotaUse {
        let sum = |(live, want): (u32, u32), part: super::super::quota::Part| (live + part.live, want + part.want);
        let (live, want) = self.cores.parts(scope).map(|(_, part)| part).fold((0, 0), sum);
        QuotaUse { scope, live, bound: self.bound(scope), want }
    }

    fn scopes(&self) -> impl Iterator<Item = ScopeId> + use<> {
        (0..self.given.len() as u16).map(ScopeId)
    }
}

impl Node {
    /// What the node has of scopes that are given out in quotas, and up to when.
    pub fn quotas(&self) -> (Time, impl Iterator<Item = QuotaView>) {
        let quotas = &self.quotas;
        let view = |scope| {
            let QuotaUse { live, bound, .. } = quotas.usage(scope);
            let quota = quotas.given(scope);
            let view = QuotaView { scope, quota: quota.unwrap_or(0), live, cores: quotas.promised(scope) };
            (quota.is_some() || bound > 0).then_some(view)
        };
        (quotas.until, quotas.scopes().filter_map(view))
    }

    /// There will be at most so many calls on quotas in `scope`, unless the node gets more (I6).
    pub fn quota_bound(&self, scope: ScopeId) -> u32 {
        self.quotas.bound(scope)
    }

    fn leases(&self) -> bool {
        let knows = self.settings.features & features::QUOTAS != 0;
        knows && self.leader().and_then(|side| self.links.get(side)).is_some_and(|link| link.can(features::QUOTAS))
    }

    /// A session begins with the central node that leads, or goes on with another one that does: it is told at once what there is.
    pub(super) fn quotas_begin(&mut self, now: Time) {
        (self.quotas.seen, self.quotas.number) = (0, 0);
        self.quotas.sent.clear();
        self.quota_report(now);
    }

    /// No call is admitted by quota any more, as the central node will be told that all are over.
    pub(super) fn quotas_end(&mut self) {
        (self.quotas.until, self.quotas.told_until, self.quotas.report_at) = (Time::ZERO, Time::ZERO, Time::NEVER);
        self.actions.push_back(Action::Lease(Time::ZERO));
    }

    fn quota_report(&mut self, now: Time) {
        self.quotas.report_at = Time::NEVER;
        if !self.leases() {
            return;
        }
        let quotas = &mut self.quotas;
        quotas.number += 1;
        if quotas.sent.len() >= SENT_MAX {
            quotas.sent.pop_front();
        }
        quotas.sent.push_back((quotas.number, now));
        quotas.reported = quotas.scopes().map(|scope| quotas.bound(scope)).collect();
        let scopes: Vec<QuotaUse> =
            quotas.scopes().map(|scope| quotas.usage(scope)).filter(|told| (told.bound, told.want) != (0, 0)).collect();
        let pause = if quotas.given.iter().any(Option::is_some) { REPORT_EVERY } else { REPORT_IDLE };
        (quotas.reported_at, quotas.report_at) = (now, now + pause);
        let (number, seen) = (quotas.number, quotas.seen);
        self.ask_leader(ToCentral::QuotaReport { number, seen, scopes });
    }

    /// Something is to be told before the next report is due.
    fn quota_report_soon(&mut self, now: Time) {
        if self.quotas.report_at != Time::NEVER {
            let soon = (self.quotas.reported_at + REPORT_SOON).max(now);
            self.quotas.report_at = self.quotas.report_at.min(soon);
        }
    }

    /// What the node may have from now on; as the answer to a report it holds for so long from when that was sent (R37).
    pub(super) fn quota_granted(&mut self, now: Time, number: u64, answers: u64, lease: Duration, granted: &[Quota]) {
        self.quotas.seen = number;
        if let Some(&(_, sent)) = self.quotas.sent.iter().find(|(number, _)| *number == answers) {
            self.quotas.sent.retain(|(number, _)| *number > answers);
            // Some of it is left out, as clocks do not run equally fast.
            self.quotas.until = self.quotas.until.max(sent + (lease - lease / 10));
        }
        let mut given = vec![None; self.quotas.given.len()];
        for quota in granted {
            if let Some(place) = given.get_mut(usize::from(quota.scope.0)) {
                *place = Some(quota.calls);
            }
        }
        let before = std::mem::replace(&mut self.quotas.given, given);
        let began = !self.quotas.live && now < self.quotas.until;
        self.quotas.live |= began;
        // What is taken away goes to the cores before what makes the rest hold for longer.
        for scope in self.quotas.scopes() {
            let old = before.get(usize::from(scope.0)).copied().flatten();
            if began || old != self.quotas.given(scope) {
                self.quota_cores(now, scope);
            }
            if self.quotas.given(scope) < old {
                self.quota_kept(now, scope);
            }
        }
        if self.quotas.live && (began || self.quotas.until >= self.quotas.told_until + TELL_EVERY) {
            self.quotas.told_until = self.quotas.until;
            self.actions.push_back(Action::Lease(self.quotas.until));
        }
    }

    /// Gives out among the cores what there is of `scope`.
    fn quota_cores(&mut self, now: Time, scope: ScopeId) {
        let quotas = &mut self.quotas;
        let capacity = if now < quotas.until { quotas.given(scope).unwrap_or(0) } else { 0 };
        quotas.cores.balance(scope, capacity, quotas.count.into());
        while let Some(core) = quotas.cores.next_changed() {
            let part = quotas.cores.part(core, scope);
            self.actions.push_back(Action::Quota(core, scope, part.quota, part.number));
        }
    }

    /// A core goes by a change of its quota: what it no longer has is there for others, and counts no longer at the central node when that
    /// knows (I6).
    pub(super) fn quota_keeps(&mut self, now: Time, core: u8, scope: ScopeId, number: u32) {
        self.quotas.cores.keeps(core, scope, number);
        self.quota_cores(now, scope);
        self.quota_kept(now, scope);
    }

    /// Fewer places are in use, or can be: told when the central node waits for it.
    fn quota_kept(&mut self, now: Time, scope: ScopeId) {
        let reported = self.quotas.reported.get(usize::from(scope.0)).copied().unwrap_or(0);
        if reported > self.quotas.given(scope).unwrap_or(0) && self.quotas.bound(scope) < reported {
            self.quota_report_soon(now);
        }
    }

    /// A call, or a change of one, was asked for: its core has no place where it has none of a quota.
    pub(super) fn quota_short(&mut self, now: Time, guid: Guid, charge: &Charge) {
        if !self.quotas.live || charge.class == Class::Emergency {
            return;
        }
        for scope in charge.scopes().filter(|&scope| !charge.is_leased(scope)) {
            if self.quotas.given(scope).is_none() {
                continue;
            }
            self.quotas.cores.wants(core_of(guid), scope);
            self.quota_cores(now, scope);
            if self.quotas.usage(scope).want > 0 {
                self.quota_report_soon(now);
            }
        }
    }

    /// A call was asked for because its core has no place left, and there are places that no core has: it gets those.
    pub(super) fn quota_lends(&mut self, now: Time, guid: Guid, leg: Leg, charge: &Charge) -> bool {
        let lacks = |scope: &ScopeId| !charge.is_leased(*scope);
        let quotas = &self.quotas;
        let is_free = |scope: ScopeId| quotas.given(scope).is_some_and(|given| quotas.promised(scope) < given);
        if now >= quotas.until || charge.class == Class::Emergency || !charge.scopes().filter(lacks).all(is_free) {
            return false;
        }
        let mut lent = *charge;
        for scope in charge.scopes().filter(lacks) {
            self.quotas.cores.lend(core_of(guid), scope);
            lent = lent.lease(scope);
        }
        self.actions.push_back(Action::Lent(guid, leg, lent));
        self.leased(now, guid, leg, lent);
        true
    }

    /// A core admitted a call with places of its quotas: told afterwards (R31).
    pub(super) fn took(&mut self, now: Time, guid: Guid, leg: Leg, charge: Charge) {
        if self.told(guid, leg).is_some() {
            return;
        }
        self.quota_took(guid, &charge, &Charge::EMPTY);
        self.leased(now, guid, leg, charge);
    }

    fn leased(&mut self, now: Time, guid: Guid, leg: Leg, charge: Charge) {
        self.counts.leased += 1;
        self.put(now, guid, leg, charge, Admission::Lease);
        for scope in charge.leases() {
            if self.quotas.cores.part(core_of(guid), scope).is_low() {
                self.quota_cores(now, scope);
            }
        }
        self.report(now, Report::Fact(Told { guid, leg, charge, admission: Admission::Lease }));
    }

    /// A core has taken the places of its quotas that `charge` has and `has` has not: from now on, not only when it is decided about.
    pub(super) fn quota_took(&mut self, guid: Guid, charge: &Charge, has: &Charge) {
        for scope in charge.leases().filter(|&scope| !has.is_leased(scope)) {
            self.quotas.cores.moved(core_of(guid), scope, true);
        }
    }

    /// A core gives back those that `charge` has and `keeps` has not.
    pub(super) fn quota_freed(&mut self, now: Time, guid: Guid, charge: &Charge, keeps: &Charge) {
        for scope in charge.leases().filter(|&scope| !keeps.is_leased(scope)) {
            self.quotas.cores.moved(core_of(guid), scope, false);
            self.quota_kept(now, scope);
        }
    }

    pub(super) fn quotas_due(&mut self, now: Time) {
        if self.quotas.live && self.quotas.until <= now {
            // Cores have stopped by themselves; what they do not use comes back, so that it is known what there is.
            self.quotas.live = false;
            for scope in self.quotas.scopes() {
                if let Some(given) = self.quotas.given.get_mut(usize::from(scope.0)).filter(|given| given.is_some()) {
                    *given = Some(0);
                }
                self.quota_cores(now, scope);
            }
        }
        if self.quotas.report_at <= now {
            self.quota_report(now);
        }
    }
}

/// The core that has a call: the first eight bits of its number.
fn core_of(guid: Guid) -> u8 {
    guid.number.to_be_bytes()[0]
}
