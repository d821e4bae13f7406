//! The places of one core.

use super::super::charge::{Charge, Class};
use super::super::limits::{Amount, Amounts, Denial, Limits};
use super::super::scope::ScopeId;
use super::{Lacking, Ticket, ToBank, ToHolder, initial, need};
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
    /// New calls that found their places.
    begun: u64,
    /// Use has changed since it was told.
    untold: bool,
}

/// The places of one core.
#[derive(Debug)]
pub struct Holder {
    scopes: Vec<Held>,
    limits: Vec<Limits>,
    /// Claims that are not answered: what was wanted, what there was, and where places lacked.
    claims: Vec<(Ticket, Charge, Charge, Lacking)>,
    /// A claim that was granted for the call that is being handled.
    granted: Option<Charge>,
    untold: Vec<ScopeId>,
    out: VecDeque<ToBank>,
}

impl Holder {
    /// One of so many holders, at the start, under limits in the order of the tree.
    pub fn new(limits: &[Limits], holders: usize) -> Holder {
        let held = |limits: &Limits| Held { held: initial(limits, holders), used: Amounts::ZERO, scarce: false, begun: 0, untold: false };
        Holder {
            scopes: limits.iter().map(held).collect(),
            limits: limits.to_vec(),
            claims: Vec::with_capacity(64),
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

    /// New calls that found their places here, since the start.
    pub fn begun(&self, scope: ScopeId) -> u64 {
        self.scopes.get(usize::from(scope.0)).map_or(0, |scope| scope.begun)
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
            held.begun += u64::from(has.is_empty());
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

    /// Claims what [`Holder::take`] did not find, and keeps what it did find for it; the answer comes to [`Holder::handle`].
    pub fn claim(&mut self, ticket: Ticket, charge: &Charge, has: &Charge) {
        let mut lacking = Lacking::default();
        for (place, scope) in charge.scopes().enumerate() {
            let Some(held) = self.scopes.get_mut(usize::from(scope.0)) else { continue };
            let need = need(scope, charge, has);
            let after = held.used.plus(&need);
            for amount in Amount::ALL.into_iter().filter(|&amount| after.get(amount) > held.held.get(amount)) {
                lacking.0 |= Lacking::bit(place, amount);
            }
            held.used = held.used.plus(&lacking.part(place, &need, false));
        }
        self.claims.push((ticket, *charge, *has, lacking));
        self.out.push_back(ToBank::Claim(ticket, *charge, *has, lacking));
    }

    /// An answer to a claim: what was kept for it is unused again, and what was granted is here. What was wanted.
    fn answered(&mut self, ticket: Ticket, granted: bool) -> Option<Charge> {
        let place = self.claims.iter().position(|(waiting, ..)| *waiting == ticket)?;
        let (_, charge, has, lacking) = self.claims.swap_remove(place);
        for (place, scope) in charge.scopes().enumerate() {
            let Some(held) = self.scopes.get_mut(usize::from(scope.0)) else { continue };
            let need = need(scope, &charge, &has);
            held.used = held.used.minus(&lacking.part(place, &need, false));
            if granted {
                held.held = held.held.plus(&lacking.part(place, &need, true));
            }
        }
        Some(charge)
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

    /// What the bank says. The ticket of a claim that is answered, what it wanted, and the refusal if it is one; what was granted is to
    /// be taken at once, and [`Holder::settle`] called in any case.
    pub fn handle(&mut self, message: ToHolder) -> Option<(Ticket, Charge, Result<(), Denial>)> {
        match message {
            ToHolder::Granted(ticket) => {
                let charge = self.answered(ticket, true)?;
                self.granted = Some(charge);
                Some((ticket, charge, Ok(())))
            }
            ToHolder::Denied(ticket, denial) => {
                let charge = self.answered(ticket, false)?;
                Some((ticket, charge, Err(denial)))
            }
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

    /// The call that a claim was for has been handled; what it did not take of its `charge` is spare.
    pub fn settle(&mut self, charge: &Charge) {
        self.granted = None;
        charge.scopes().for_each(|scope| self.give_back(scope));
    }

    /// The next message for the bank.
    pub fn poll(&mut self) -> Option<ToBank> {
        self.out.pop_front()
    }
}
