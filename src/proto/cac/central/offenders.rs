//! Who is refused most (R46): a gateway's trunk group, or the zone or peer at the other end of its calls where one is known.

use super::super::charge::{Charge, ScId};
use super::super::scope::{Kind, ScopeId, Tree};
use crate::proto::base::Time;
use std::collections::BTreeMap;

/// Those counted at a time; of a newcomer beyond that the one refused least recently goes.
const OFFENDERS_MAX: usize = 256;

/// A gateway and where its calls go to or come from: the peer, else the zone, else the trunk group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Who {
    /// The gateway.
    pub sc: ScId,
    /// The scope.
    pub scope: ScopeId,
}

/// How often it was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offender {
    /// Calls refused, by [`Direction`](super::super::Direction).
    pub refused: [u64; 2],
    /// When first.
    pub first: Time,
    /// When last.
    pub last: Time,
}

impl Offender {
    /// In both directions.
    pub fn total(&self) -> u64 {
        self.refused[0] + self.refused[1]
    }
}

#[derive(Debug, Default)]
pub(super) struct Offenders(BTreeMap<Who, Offender>);

impl Offenders {
    /// A call of `sc` was refused.
    pub fn refused(&mut self, now: Time, tree: &Tree, sc: ScId, charge: &Charge) {
        let of = |kind| charge.scopes().find(|&scope| tree.get(scope).is_some_and(|scope| scope.kind == kind));
        let Some(scope) = of(Kind::Peer).or_else(|| of(Kind::Zone)).or_else(|| charge.scopes().next()) else { return };
        let who = Who { sc, scope };
        if !self.0.contains_key(&who)
            && self.0.len() >= OFFENDERS_MAX
            && let Some(oldest) = self.0.iter().min_by_key(|(_, offender)| offender.last).map(|(who, _)| *who)
        {
            self.0.remove(&oldest);
        }
        let offender = self.0.entry(who).or_insert(Offender { first: now, ..Offender::default() });
        offender.refused[charge.direction as usize] += 1;
        offender.last = now;
    }

    /// All of them, those refused most first.
    pub fn most(&self) -> Vec<(Who, Offender)> {
        let mut all: Vec<_> = self.0.iter().map(|(who, offender)| (*who, *offender)).collect();
        all.sort_by_key(|(_, offender)| std::cmp::Reverse(offender.total()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::charge::{Class, Direction};
    use super::super::super::scope::Scope;
    use super::*;

    #[test]
    fn those_refused_most_come_first_and_there_is_an_end_to_them() {
        let tree = Tree::new(vec![Scope::new(Kind::TrunkGroup, "north"), Scope::new(Kind::Zone, "near")]).unwrap();
        let charge = |direction, far: bool| {
            let mut charge = Charge::new(direction, Class::Normal, 80);
            charge.add(ScopeId(0));
            if far {
                charge.add(ScopeId(1));
            }
            charge
        };
        let mut offenders = Offenders::default();
        offenders.refused(Time::from_millis(1), &tree, ScId(1), &charge(Direction::Inbound, false));
        (2..5).for_each(|at| offenders.refused(Time::from_millis(at), &tree, ScId(2), &charge(Direction::Outbound, true)));
        let (who, offender) = offenders.most()[0];
        assert_eq!(who, Who { sc: ScId(2), scope: ScopeId(1) });
        let (first, last) = (Time::from_millis(2), Time::from_millis(4));
        assert_eq!(offender, Offender { refused: [0, 3], first, last });
        (10..1_000).for_each(|sc| offenders.refused(Time::from_millis(sc), &tree, ScId(sc as u32), &charge(Direction::Inbound, true)));
        assert_eq!(offenders.most().len(), OFFENDERS_MAX);
    }
}
