//! What gives places out.

use super::super::charge::{Charge, Class};
use super::super::limits::{self, Amount, Amounts, Bucket, Cause, Denial, Limits, UNLIMITED};
use super::super::scope::ScopeId;
use super::super::threshold::Threshold;
use super::{Lacking, Ticket, ToBank, ToHolder, initial, need, ordinary};
use crate::proto::base::Time;
use std::collections::VecDeque;

/// Claims that wait; each is a command that waits on its core.
const CLAIMS_MAX: usize = 65_536;

/// One scope at the bank.
#[derive(Clone, Debug)]
struct Account {
    limits: Limits,
    /// Places given out.
    given: Amounts,
    scarce: bool,
    /// Answers to a recall that have not come.
    answers: usize,
    /// When the latest recall began, and when the latest one that is over did; in messages handled.
    began: u64,
    over: u64,
    buckets: [Bucket; 2],
    /// In use, by holder, as told last.
    used: Vec<Amounts>,
    threshold: Threshold,
}

impl Account {
    /// What can still be given to normal calls.
    fn free(&self) -> Amounts {
        ordinary(&self.limits).minus(&self.given)
    }

    /// What one of so many holders may get on top.
    fn part(&self, holders: usize) -> Amounts {
        self.free().zip(&Amounts::ZERO, |free, _| free / (2 * holders.max(1) as u32))
    }

    /// Whether a quarter of everything that is limited is free.
    fn is_plenty(&self, holders: usize) -> bool {
        let enough =
            ordinary(&self.limits).zip(&Amounts::ZERO, |limit, _| if limit < UNLIMITED { (limit / 4).max(2 * holders as u32) } else { 0 });
        self.free().covers(&enough)
    }
}

#[derive(Clone, Copy, Debug)]
struct Claim {
    holder: usize,
    ticket: Ticket,
    charge: Charge,
    has: Charge,
    /// Where the holder lacks places.
    lacking: Lacking,
    /// When it came, in messages handled.
    came: u64,
}

impl Claim {
    /// What the bank must give in `scope`.
    fn need(&self, scope: ScopeId) -> Amounts {
        let place = self.charge.scopes().position(|other| other == scope);
        place.map_or(Amounts::ZERO, |place| self.lacking.part(place, &need(scope, &self.charge, &self.has), true))
    }
}

/// What a claim comes to for now.
enum Outcome {
    Granted,
    Denied(Denial),
    /// These scopes must be recalled first, or are being recalled.
    Waits,
}

/// Gives places out.
#[derive(Debug)]
pub struct Bank {
    accounts: Vec<Account>,
    holders: usize,
    /// Messages handled.
    handled: u64,
    /// Claims that wait for a recall, in the order they came.
    claims: VecDeque<Claim>,
    out: VecDeque<(usize, ToHolder)>,
}

impl Bank {
    /// The bank of so many holders, at the start, under limits in the order of the tree.
    pub fn new(limits: &[Limits], holders: usize) -> Bank {
        let account = |limits: &Limits| Account {
            limits: *limits,
            given: initial(limits, holders).zip(&Amounts::ZERO, |each, _| each.saturating_mul(holders as u32)),
            scarce: false,
            answers: 0,
            began: 0,
            over: 0,
            buckets: [Bucket::default(); 2],
            used: vec![Amounts::ZERO; holders],
            threshold: Threshold::default(),
        };
        Bank { accounts: limits.iter().map(account).collect(), holders, handled: 0, claims: VecDeque::new(), out: VecDeque::new() }
    }

    /// What is in use of `scope`, as far as it was told.
    pub fn used(&self, scope: ScopeId) -> Amounts {
        let account = self.accounts.get(usize::from(scope.0));
        account.map_or(Amounts::ZERO, |account| account.used.iter().fold(Amounts::ZERO, |sum, used| sum.plus(used)))
    }

    /// Places of `scope` given out, used or not.
    pub fn given(&self, scope: ScopeId) -> Amounts {
        self.accounts.get(usize::from(scope.0)).map(|account| account.given).unwrap_or_default()
    }

    /// Whether each call in `scope` asks.
    pub fn is_scarce(&self, scope: ScopeId) -> bool {
        self.accounts.get(usize::from(scope.0)).is_some_and(|account| account.scarce)
    }

    /// Other limits (R21): no call is cut; what is held unused beyond them is recalled.
    pub fn set_limits(&mut self, limits: &[Limits]) {
        for (place, limits) in limits.iter().enumerate().take(self.accounts.len()) {
            let scope = ScopeId(place as u16);
            let Some(account) = self.accounts.get_mut(place) else { continue };
            if account.limits == *limits {
                continue;
            }
            account.limits = *limits;
            if !ordinary(limits).covers(&account.given) {
                self.recall(scope);
            } else {
                self.relax(scope);
            }
            self.watch(scope);
        }
    }

    /// What a holder says.
    pub fn handle(&mut self, now: Time, holder: usize, message: ToBank) {
        self.handled += 1;
        let came = self.handled;
        match message {
            ToBank::Claim(ticket, charge, has, lacking) => self.claim(now, Claim { holder, ticket, charge, has, lacking, came }),
            ToBank::Return(scope, amounts) => {
                if let Some(account) = self.accounts.get_mut(usize::from(scope.0)) {
                    account.given = account.given.minus(&amounts);
                }
                self.relax(scope);
            }
            ToBank::Recalled(scope, amounts) => {
                let Some(account) = self.accounts.get_mut(usize::from(scope.0)) else { return };
                account.given = account.given.minus(&amounts);
                account.answers = account.answers.saturating_sub(1);
                if account.answers == 0 {
                    account.over = account.began;
                    self.claim_again(now);
                    self.relax(scope);
                }
            }
            ToBank::Overdrawn(scope, amounts) => {
                if let Some(account) = self.accounts.get_mut(usize::from(scope.0)) {
                    account.given = account.given.plus(&amounts);
                }
            }
            ToBank::Used(scope, used) => {
                let place = self.accounts.get_mut(usize::from(scope.0)).and_then(|account| account.used.get_mut(holder));
                if let Some(place) = place {
                    *place = used;
                    self.watch(scope);
                }
            }
        }
    }

    /// The next message, and for which holder.
    pub fn poll(&mut self) -> Option<(usize, ToHolder)> {
        self.out.pop_front()
    }

    /// Warnings that stand: much of this amount of this scope is in use.
    pub fn warnings(&self) -> impl Iterator<Item = (ScopeId, Amount)> {
        let raised = |(place, account): (usize, &Account)| {
            let threshold = account.threshold;
            threshold.raised().map(move |amount| (ScopeId(place as u16), amount)).collect::<Vec<_>>()
        };
        self.accounts.iter().enumerate().flat_map(raised)
    }

    fn claim(&mut self, now: Time, claim: Claim) {
        match self.examine(now, &claim) {
            Outcome::Granted => self.grant(now, claim),
            Outcome::Denied(denial) => self.out.push_back((claim.holder, ToHolder::Denied(claim.ticket, denial))),
            Outcome::Waits if self.claims.len() < CLAIMS_MAX => self.claims.push_back(claim),
            Outcome::Waits => {
                let scope = claim.charge.scopes().next().unwrap_or(ScopeId::NONE);
                let denial = Denial { scope, cause: Cause::Full, used: 0, limit: 0 };
                self.out.push_back((claim.holder, ToHolder::Denied(claim.ticket, denial)));
            }
        }
    }

    /// Claims that waited, now that a recall is over.
    fn claim_again(&mut self, now: Time) {
        for _ in 0..self.claims.len() {
            if let Some(claim) = self.claims.pop_front() {
                self.claim(now, claim);
            }
        }
    }

    fn examine(&mut self, now: Time, claim: &Claim) -> Outcome {
        let accounts = &self.accounts;
        let scope = |id: ScopeId| accounts.get(usize::from(id.0)).map(|account| (account.limits, account.given, account.buckets));
        let is_new = claim.has.is_empty();
        let result = limits::check(now, &claim.charge, |scope| claim.need(scope), scope, is_new);
        let Err(denial) = result else { return Outcome::Granted };
        let Some(account) = self.accounts.get(usize::from(denial.scope.0)) else { return Outcome::Denied(denial) };
        // Whatever was unused, or on its way here, when the claim came has arrived with the answers to a recall that began later.
        if denial.cause == Cause::Rate || account.over >= claim.came {
            return Outcome::Denied(denial);
        }
        self.recall(denial.scope);
        Outcome::Waits
    }

    fn grant(&mut self, now: Time, claim: Claim) {
        let Claim { holder, ticket, charge, has, .. } = claim;
        self.out.push_back((holder, ToHolder::Granted(ticket)));
        for scope in charge.scopes() {
            let holders = self.holders;
            let Some(account) = self.accounts.get_mut(usize::from(scope.0)) else { continue };
            account.given = account.given.plus(&claim.need(scope));
            if has.is_empty()
                && charge.class != Class::Emergency
                && let Some(rate) = account.limits.rate(charge.direction)
            {
                account.buckets[charge.direction as usize].take(now, rate);
            }
            let part = account.part(holders);
            if !account.scarce && !part.is_zero() {
                account.given = account.given.plus(&part);
                self.out.push_back((holder, ToHolder::Share(scope, part)));
            }
        }
    }

    fn recall(&mut self, scope: ScopeId) {
        let Some(account) = self.accounts.get_mut(usize::from(scope.0)) else { return };
        if account.answers > 0 {
            return;
        }
        account.scarce = true;
        account.answers = self.holders;
        account.began = self.handled;
        self.out.extend((0..self.holders).map(|holder| (holder, ToHolder::Recall(scope))));
    }

    /// A scarce scope of which there is plenty again is no longer scarce.
    fn relax(&mut self, scope: ScopeId) {
        let holders = self.holders;
        let Some(account) = self.accounts.get_mut(usize::from(scope.0)) else { return };
        if !account.scarce || account.answers > 0 || !account.is_plenty(holders) {
            return;
        }
        account.scarce = false;
        let part = account.part(holders);
        for holder in 0..holders {
            account.given = account.given.plus(&part);
            self.out.push_back((holder, ToHolder::Share(scope, part)));
        }
    }

    fn watch(&mut self, scope: ScopeId) {
        let used = self.used(scope);
        let Some(account) = self.accounts.get_mut(usize::from(scope.0)) else { return };
        while account.threshold.next(&account.limits, &used).is_some() {}
    }
}
