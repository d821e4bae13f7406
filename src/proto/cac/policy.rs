//! What a node does with new calls while nobody decides for it (R13, R40).

use super::limits::{Limits, UNLIMITED};

/// A number that tells apart what nodes may do without the central node: their policies, and under hold-last and share the limits and
/// the number of nodes. Never 0. Both ends must have the same, or a node takes more than what is kept for it.
pub fn fingerprint(policies: &[Policy], limits: &[Limits], nodes: u32) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |number: u32| hash = (hash ^ u64::from(number)).wrapping_mul(0x0000_0100_0000_01b3);
    for (place, &policy) in policies.iter().enumerate() {
        mix(policy as u32);
        let limits = limits.get(place).copied().unwrap_or_default();
        let counted = [limits.calls, limits.inbound, limits.outbound, limits.kbits];
        if matches!(policy, Policy::HoldLast | Policy::Share) && counted != [UNLIMITED; 4] {
            counted.into_iter().for_each(&mut mix);
            mix(nodes);
        }
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
