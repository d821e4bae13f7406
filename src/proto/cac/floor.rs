//! The floor of hold-last (R41): places of a scope that each gateway may use when it is cut off, whatever it had.
//!
//! Under hold-last a gateway that is cut off replaces what it had, one for one. One that had no call on a trunk would refuse all, so it
//! may have its floor there. The bound stays, because the floor is part of the limit: what a gateway does not use of
//! its floor the central node gives to nobody else, so the sum over the gateways of the larger of use and floor never passes the limit.

use super::charge::{Charge, Class, ScId};
use super::limits::{Amount, Amounts, Limits, UNLIMITED};
use super::scope::ScopeId;
use std::collections::BTreeMap;

/// Bandwidth of one call, in kbit/s: that of G.711 in packets of 10 ms over IPv6. Less is no floor.
const KBITS_MIN: u32 = 112;

/// What every one of `nodes` gateways may have of a scope with these limits: a hundredth of each and at least one call, but an equal part
/// of half the limit at most; nothing of an amount where that is less than one call, and of one without a limit. A larger limit
/// never has a smaller floor, so that limits can be raised at the central node first and lowered at the gateways first.
pub fn floor(limits: &Limits, nodes: u32) -> Amounts {
    let bounds = limits.bounds();
    let part = |amount: Amount, least: u32| {
        let limit = bounds.get(amount);
        let part = (limit / 100).max(least).min((limit / 2).checked_div(nodes).unwrap_or(0));
        if limit < UNLIMITED && part >= least { part } else { 0 }
    };
    Amounts::ZERO
        .with(Amount::Calls, part(Amount::Calls, 1))
        .with(Amount::Inbound, part(Amount::Inbound, 1))
        .with(Amount::Outbound, part(Amount::Outbound, 1))
        .with(Amount::Normal, part(Amount::Normal, 1))
        .with(Amount::Kbits, part(Amount::Kbits, KBITS_MIN))
}

/// What a call needs of a floor, and of what is held: emergency calls take nobody's place.
pub fn need(charge: &Charge) -> Amounts {
    match charge.class {
        Class::Emergency => Amounts::ZERO,
        Class::Normal | Class::Priority => charge.need(),
    }
}

/// What is owed to gateways that use less than their floors.
#[derive(Debug, Default)]
pub struct Floors {
    /// Of each scope.
    floors: Vec<Amounts>,
    /// What each gateway that has floors uses of each scope.
    used: BTreeMap<ScId, Vec<Amounts>>,
    /// Of each scope: the sum of what is missing to the floors.
    owed: Vec<Amounts>,
}

impl Floors {
    /// These gateways have these floors, and use these calls.
    pub fn new<'a>(floors: Vec<Amounts>, nodes: &[ScId], calls: impl Iterator<Item = (ScId, &'a Charge)>) -> Floors {
        if floors.iter().all(Amounts::is_zero) {
            return Floors::default();
        }
        let each = |floor: &Amounts| floor.zip(floor, |floor, _| floor.saturating_mul(nodes.len() as u32));
        let mut made = Floors {
            owed: floors.iter().map(each).collect(),
            used: nodes.iter().map(|&sc| (sc, vec![Amounts::ZERO; floors.len()])).collect(),
            floors,
        };
        calls.for_each(|(sc, charge)| made.add(sc, charge));
        made
    }

    /// A call of `sc` counts.
    pub fn add(&mut self, sc: ScId, charge: &Charge) {
        self.change(sc, charge, Amounts::plus);
    }

    /// It no longer does.
    pub fn subtract(&mut self, sc: ScId, charge: &Charge) {
        self.change(sc, charge, Amounts::minus);
    }

    fn change(&mut self, sc: ScId, charge: &Charge, change: impl Fn(&Amounts, &Amounts) -> Amounts) {
        let Some(used) = self.used.get_mut(&sc) else { return };
        for scope in charge.scopes() {
            let place = usize::from(scope.0);
            let (Some(used), Some(floor), Some(owed)) = (used.get_mut(place), self.floors.get(place), self.owed.get_mut(place)) else {
                continue;
            };
            let before = floor.minus(used);
            *used = change(used, &need(charge));
            *owed = owed.minus(&before).plus(&floor.minus(used));
        }
    }

    /// What must stay free in `scope` for others than `sc`.
    pub fn owed_to_others(&self, sc: ScId, scope: ScopeId) -> Amounts {
        let place = usize::from(scope.0);
        let Some(owed) = self.owed.get(place) else { return Amounts::ZERO };
        let used = self.used.get(&sc).and_then(|used| used.get(place));
        let own = used.zip(self.floors.get(place)).map_or(Amounts::ZERO, |(used, floor)| floor.minus(used));
        owed.minus(&own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::cac::charge::Direction;

    #[test]
    fn a_floor_is_a_hundredth_and_at_least_one_call_where_that_leaves_half() {
        let calls = |limit, nodes| floor(&Limits::of_calls(limit), nodes).get(Amount::Calls);
        assert_eq!([calls(10, 3), calls(1_000, 3), calls(6, 3), calls(5, 3)], [1, 10, 1, 0]);
        assert_eq!([calls(10_000, 60), calls(199, 60), calls(200, 60), calls(119, 60)], [83, 1, 1, 0]);
        assert_eq!([calls(10, 0), calls(UNLIMITED, 3), calls(0, 3)], [0, 0, 0]);
        assert_eq!(floor(&Limits { kbits: 1_000, inbound: 400, ..Limits::default() }, 3).get(Amount::Kbits), KBITS_MIN);
    }

    /// The order in which limits are reloaded rests on this.
    #[test]
    fn a_larger_limit_never_has_a_smaller_floor() {
        for nodes in [1, 2, 3, 49, 50, 51, 60, 254] {
            let mut before = Amounts::ZERO;
            for limit in 0..30_000 {
                let now = floor(&Limits { kbits: limit, inbound: limit, ..Limits::of_calls(limit) }, nodes);
                assert!(now.covers(&before), "{nodes} nodes, limit {limit}: {now:?} after {before:?}");
                assert!(u64::from(now.get(Amount::Calls)) * u64::from(nodes) <= u64::from(limit / 2));
                before = now;
            }
        }
    }

    /// A priority call does not use the floor of normal ones: it can end, and a normal one come in its place.
    #[test]
    fn a_floor_for_normal_calls_stays_while_a_priority_call_uses_it() {
        let (a, b, scope) = (ScId(1), ScId(2), ScopeId(0));
        let mut charge = Charge::new(Direction::Inbound, Class::Priority, 80);
        charge.add(scope);
        let floors = Floors::new(vec![floor(&Limits::of_calls(10), 2)], &[a, b], [(a, &charge)].into_iter());
        let owed = floors.owed_to_others(b, scope);
        assert_eq!((owed.get(Amount::Calls), owed.get(Amount::Normal)), (0, 1));
    }

    /// What is owed to the others is what they do not use of their floors, whatever came and went.
    #[test]
    fn what_others_do_not_use_of_their_floors_is_owed_to_them() {
        let (a, b, scope) = (ScId(1), ScId(2), ScopeId(0));
        let charge = |class| {
            let mut charge = Charge::new(Direction::Inbound, class, 80);
            charge.add(scope);
            charge
        };
        let (normal, emergency) = (charge(Class::Normal), charge(Class::Emergency));
        let mut floors = Floors::new(vec![floor(&Limits::of_calls(300), 2)], &[a, b], [(a, &normal)].into_iter());
        let owed = |floors: &Floors, sc| floors.owed_to_others(sc, scope).get(Amount::Calls);
        assert_eq!((owed(&floors, a), owed(&floors, b), owed(&floors, ScId(9))), (3, 2, 5));
        (0..5).for_each(|_| floors.add(b, &normal));
        floors.add(a, &emergency);
        assert_eq!((owed(&floors, a), owed(&floors, b)), (0, 2));
        (0..4).for_each(|_| floors.subtract(b, &normal));
        floors.add(ScId(9), &normal);
        assert_eq!((owed(&floors, a), owed(&floors, b)), (2, 2));
    }
}
