//! What a node does with new calls while nobody decides for it (R13, R40).

use super::charge::ScId;
use super::limits::{Limits, UNLIMITED};
use crate::proto::base::fnv;

/// A number that tells apart what nodes may do without the central node: their policies, and under hold-last and share the limits and
/// which nodes there are, in any order. Never 0. Both ends must have the same, or a node takes more than what is kept for it.
pub fn fingerprint(policies: &[Policy], limits: &[Limits], nodes: &[ScId]) -> u64 {
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    let mut hash = fnv::BEGIN;
    let mut mix = |number: u32| hash = fnv::mix(hash, number.into());
    let mut together = false;
    for (place, &policy) in policies.iter().enumerate() {
        mix(policy as u32);
        let limits = limits.get(place).copied().unwrap_or_default();
        let counted = [limits.calls, limits.inbound, limits.outbound, limits.kbits];
        if matches!(policy, Policy::HoldLast | Policy::Share) && counted != [UNLIMITED; 4] {
            counted.into_iter().for_each(&mut mix);
            let reserved = [limits.reserved_inbound, limits.reserved_outbound, limits.reserved_priority, limits.priority_percent];
            reserved.into_iter().for_each(&mut mix);
            together = true;
        }
    }
    if together {
        nodes.iter().for_each(|node| mix(node.0));
    }
    hash.max(1)
}

/// The rule of one scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// All are taken: the rule of the source text, and the default.
    #[default]
    Open,
    /// As many as there were when the contact was lost: a call that ends may be replaced. The central node goes on counting the calls
    /// of a node that it has lost, so the limit holds whatever happens.
    HoldLast,
    /// As many as an equal part of the limit among the nodes.
    Share,
    /// None.
    Closed,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 4] = [Policy::Open, Policy::HoldLast, Policy::Share, Policy::Closed];

    /// As operators write it.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Open => "open",
            Policy::HoldLast => "hold-last",
            Policy::Share => "share",
            Policy::Closed => "closed",
        }
    }

    /// Whether the calls of a lost node go on counting until it is known to be dead (R41); otherwise it is forgotten after 30 s (R9).
    pub const fn keeps_counting(self) -> bool {
        matches!(self, Policy::HoldLast)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R41: whatever makes both ends keep or take something else is another number; what makes no difference is not.
    #[test]
    fn other_rules_have_another_fingerprint() {
        let ends = |policy, limits, nodes: &[u32]| fingerprint(&[policy], &[limits], &nodes.iter().copied().map(ScId).collect::<Vec<_>>());
        let limits = Limits::of_calls(10);
        let mine = ends(Policy::HoldLast, limits, &[1, 2, 4]);
        assert_eq!(mine, ends(Policy::HoldLast, limits, &[4, 1, 2]));
        for other in [
            ends(Policy::HoldLast, limits, &[1, 2, 3]),
            ends(Policy::HoldLast, limits, &[1, 2]),
            ends(Policy::Share, limits, &[1, 2, 4]),
            ends(Policy::HoldLast, Limits::of_calls(11), &[1, 2, 4]),
            ends(Policy::HoldLast, Limits { reserved_priority: 2, ..limits }, &[1, 2, 4]),
        ] {
            assert_ne!(mine, other);
        }
        assert_eq!(ends(Policy::Open, limits, &[1]), ends(Policy::Open, Limits::of_calls(99), &[2, 3]));
    }
}
