//! The places of one core.

use super::super::charge::{Charge, Class};
use super::super::limits::{Amounts, Denial, Limits};
use super::super::scope::ScopeId;
use super::{Ticket, ToBank, ToHolder, initial, need};
use std::collections::VecDeque;

/// What became of a wish for places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// They are in use now.
    Now,
    /// They must be claimed with [`Holder::claim`] first.
    Claim,
}

/// One scope at a holder.
#[derive(Clone, Copy, Debug)]
struct Held {
    held: Amounts,
    used: Amounts,
    scarce: bool,
    /// Use has changed since it was told.
    untold: bool,
}

/// The places of one core.
#[derive(Debug)]
pub struct Holder {
    scopes: Vec<Held>,
    limits: Vec<Limits>,
    /// A claim that was granted for the call that is being handled.
    granted: Option<Charge>,
    untold: Vec<ScopeId>,
    out: VecDeque<ToBank>,
}

impl Holder {
    /// One of so many holders, at the start, under limits in the order of the tree.
    pub fn new(limits: &[Limits], holders: usize) -> Holder {
        let held = |limits: &Limits| Held { held: initial(limits, holders), used: Amounts::ZERO, scarce: false, untold: false };
        Holder {
            scopes: limits.iter().map(held).collect(),
            limits: limits.to_vec(),
            granted: None,
            untold: Vec::with_capacity(limits.len()),
            out: VecDeque::with_capacity(64),
        }
    }

    /// Other limits: the bank sees to it.
    pub fn set_limits(&mut self, limits: &[Limits]) {
        self.limits.clear();
        self.limits.extend_from_slice(limits);
    }

    /// What is in use here.
    pub fn used(&self, scope: ScopeId) -> Amounts {
        self.scopes.get(usize::from(scope.0)).map(|scope| scope.used).unwrap_or_default()
    }

    /// What is held here, used or not.
    pub fn held(&self, scope: ScopeId) -> Amounts {
        self.scopes.get(usize::from(scope.0)).map(|scope| scope.held).unwrap_or_default()
    }

    /// A call wants `charge` and has `has` (an empty one when it is new): both its own from now on, or to be claimed.
    #[inline]
    pub fn take(&mut self, charge: &Charge, has: &Charge) -> Taken {
        let was_granted = self.granted.take().is_some_and(|granted| granted == *charge);
        let passes = charge.class == Class::Emergency && charge.scopes().all(|scope| self.limits(scope).emergency_limited.eq(&false));
        if !passes && !was_granted && has.is_empty() && charge.scopes().any(|scope| self.limits(scope).rate(charge.direction).is_some()) {
            return Taken::Claim;
        }
        if !passes && charge.scopes().any(|scope| !self.has_room(scope, charge, has)) {
            return Taken::Claim;
        }
        for scope in charge.scopes() {
            let need = need(scope, charge, has);
            let Some(held) = self.scopes.get_mut(usize::from(scope.0)) else { continue };
            held.used = held.used.plus(&need);
            let lack = held.used.minus(&held.held);
            if !lack.is_zero() {
                held.held = held.held.plus(&lack);
                self.out.push_back(ToBank::Overdrawn(scope, lack));
            }
            self.changed(scope);
        }
        Taken::Now
    }

    fn has_room(&self, scope: ScopeId, charge: &Charge, has: &Charge) -> bool {
        let Some(held) = self.scopes.get(usize::from(scope.0)) else { return true };
        held.held.covers(&held.used.plus(&need(scope, charge, has)))
    }

    fn limits(&self, scope: ScopeId) -> &Limits {
        const NONE: &Limits = &Limits::NONE;
        self.limits.get(usize::from(scope.0)).unwrap_or(NONE)
    }

    /// Claims what [`Holder::take`] did not find; the answer comes to [`Holder::handle`].
    pub fn claim(&mut self, ticket: Ticket, charge: &Charge, has: &Charge) {
        self.out.push_back(ToBank::Claim(ticket, *charge, *has));
    }

    /// What `charge` has beyond `keeps` is not in use any more.
    pub fn release(&mut self, charge: &Charge, keeps: &Charge) {
        for scope in charge.scopes() {
            let Some(held) = self.scopes.get_mut(usize::from(scope.0)) else { continue };
            held.used = held.used.minus(&need(scope, charge, keeps));
            self.give_back(scope);
            self.changed(scope);
        }
    }

    /// Returns what is unused of a scarce scope.
    fn give_back(&mut self, scope: ScopeId) {
        let Some(held) = self.scopes.get_mut(usize::from(scope.0)) else { return };
        let unused = held.held.minus(&held.used);
        if held.scarce && !unused.is_zero() {
            held.held = held.used;
            self.out.push_back(ToBank::Return(scope, unused));
        }
    }

    fn changed(&mut self, scope: ScopeId) {
        if let Some(held) = self.scopes.get_mut(usize::from(scope.0))
            && !held.untold
        {
            held.untold = true;
            self.untold.push(scope);
        }
    }

    /// Whether the bank has not heard of the latest use.
    pub fn has_news(&self) -> bool {
        !self.untold.is_empty()
    }

    /// Tells the bank what is in use where that has changed.
    pub fn tell(&mut self) {
        while let Some(scope) = self.untold.pop() {
            if let Some(held) = self.scopes.get_mut(usize::from(scope.0)) {
                held.untold = false;
                self.out.push_back(ToBank::Used(scope, held.used));
            }
        }
    }

    /// What the bank says. The ticket of a claim that is answered, with the refusal if it is one; what was granted is to be taken at
    /// once, and [`Holder::settle`] called then.
    pub fn handle(&mut self, message: ToHolder) -> Option<(Ticket, Result<(), Denial>)> {
        match message {
            ToHolder::Granted(ticket, charge, has) => {
                for scope in charge.scopes() {
                    if let Some(held) = self.scopes.get_mut(usize::from(scope.0)) {
                        held.held = held.held.plus(&need(scope, &charge, &has));
                    }
                }
                self.granted = Some(charge);
                Some((ticket, Ok(())))
            }
            ToHolder::Denied(ticket, denial) => Some((ticket, Err(denial))),
            ToHolder::Share(scope, amounts) => {
                if let Some(held) = self.scopes.get_mut(usize::from(scope.0)) {
                    held.held = held.held.plus(&amounts);
                    held.scarce = false;
                }
                None
            }
            ToHolder::Recall(scope) => {
                if let Some(held) = self.scopes.get_mut(usize::from(scope.0)) {
                    let unused = held.held.minus(&held.used);
                    held.held = held.used;
                    held.scarce = true;
                    self.out.push_back(ToBank::Recalled(scope, unused));
                }
                None
            }
        }
    }

    /// The call that a claim was for has been handled; what it did not take of `charge` is spare.
    pub fn settle(&mut self, charge: &Charge) {
        self.granted = None;
        charge.scopes().for_each(|scope| self.give_back(scope));
    }

    /// The next message for the bank.
    pub fn poll(&mut self) -> Option<ToBank> {
        self.out.pop_front()
    }
}
