//! One leg of a call as admission sees it: which scopes it counts in, and what it needs there.

use super::limits::{Amount, Amounts};
use super::scope::ScopeId;

/// Which way a call goes, seen from the trunk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Direction {
    /// It comes from the trunk: the ingress leg of the source text (IP_LOOKUP).
    #[default]
    Inbound = 0,
    /// It goes to the trunk: the egress leg (ALLOCATE).
    Outbound = 1,
}

impl Direction {
    /// As operators write it.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Inbound => "in",
            Direction::Outbound => "out",
        }
    }
}

/// How much a call matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Class {
    /// As most do.
    #[default]
    Normal,
    /// High-priority calls: they have head room above the limit.
    Priority,
    /// Emergency calls: they pass.
    Emergency,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 3] = [Class::Normal, Class::Priority, Class::Emergency];

    /// As operators write it.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Normal => "normal",
            Class::Priority => "priority",
            Class::Emergency => "emergency",
        }
    }
}

/// Scopes one leg can count in: a trunk group with two pools above it, a zone, a peer.
pub const SCOPES_PER_CHARGE: usize = 5;

/// The most bandwidth of one leg, in kbit/s: three times what speech needs in the shortest packets over IPv6. With so much of each
/// no sum over a table of calls leaves its range, so that what ends takes from it what it brought (I7).
pub const KBITS_MAX: u32 = 500;

/// What one leg of a call counts for, in which scopes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Charge {
    scopes: [ScopeId; SCOPES_PER_CHARGE],
    /// In which of them, by place, it has one of the places of its node's quota: a bit for each.
    leased: u8,
    /// Which way it goes.
    pub direction: Direction,
    /// How much it matters.
    pub class: Class,
    /// Its bandwidth in kbit/s, at most [`KBITS_MAX`].
    pub kbits: u32,
}

impl Charge {
    /// That of no call.
    pub const EMPTY: Charge =
        Charge { scopes: [ScopeId::NONE; SCOPES_PER_CHARGE], leased: 0, direction: Direction::Inbound, class: Class::Normal, kbits: 0 };

    /// A leg in no scope.
    pub fn new(direction: Direction, class: Class, kbits: u32) -> Charge {
        Charge { direction, class, kbits: kbits.min(KBITS_MAX), ..Charge::EMPTY }
    }

    /// Counts in `scope` too; one that is there already is not taken twice, one too many is left out.
    pub fn add(&mut self, scope: ScopeId) {
        if self.contains(scope) {
            return;
        }
        if let Some(free) = self.scopes.iter_mut().find(|place| **place == ScopeId::NONE) {
            *free = scope;
        }
    }

    /// The same with another bandwidth.
    pub fn with_kbits(self, kbits: u32) -> Charge {
        Charge { kbits: kbits.min(KBITS_MAX), ..self }
    }

    /// The scopes it counts in.
    pub fn scopes(&self) -> impl Iterator<Item = ScopeId> + use<> {
        self.scopes.into_iter().take_while(|&scope| scope != ScopeId::NONE)
    }

    /// Whether it counts in `scope`.
    pub fn contains(&self, scope: ScopeId) -> bool {
        self.scopes.contains(&scope)
    }

    /// Whether it counts nowhere.
    pub fn is_empty(&self) -> bool {
        self.scopes[0] == ScopeId::NONE
    }

    /// The same with a place of its node's quota in `scope`, where it counts.
    pub fn lease(mut self, scope: ScopeId) -> Charge {
        let place = self.scopes().position(|other| other == scope);
        self.leased |= place.map_or(0, |place| 1 << place);
        self
    }

    /// The same without any place of a quota.
    pub fn unleased(self) -> Charge {
        Charge { leased: 0, ..self }
    }

    /// Whether it has a place of its node's quota in `scope`.
    pub fn is_leased(&self, scope: ScopeId) -> bool {
        self.leased != 0 && self.leases().any(|leased| leased == scope)
    }

    /// The scopes in which it has a place of its node's quota.
    pub fn leases(&self) -> impl Iterator<Item = ScopeId> + use<> {
        let leased = self.leased;
        self.scopes().enumerate().filter(move |(place, _)| leased >> place & 1 == 1).map(|(_, scope)| scope)
    }

    /// Whether nobody need be asked about it: it has such a place wherever it counts.
    pub fn is_all_leased(&self) -> bool {
        self.leased.count_ones() as usize == self.scopes().count()
    }

    /// What it needs in `scope` of what the authority has to give: nothing where it has a place of its node's quota.
    pub fn asks_in(&self, scope: ScopeId) -> Amounts {
        if self.is_leased(scope) { Amounts::ZERO } else { self.need_in(scope) }
    }

    /// What it needs in each of its scopes.
    pub fn need(&self) -> Amounts {
        let direction = match self.direction {
            Direction::Inbound => Amount::Inbound,
            Direction::Outbound => Amount::Outbound,
        };
        let amounts = Amounts::ZERO.with(Amount::Calls, 1).with(direction, 1).with(Amount::Kbits, self.kbits);
        match self.class {
            Class::Normal => amounts.with(Amount::Normal, 1),
            Class::Priority => amounts.with(Amount::Priority, 1),
            Class::Emergency => amounts,
        }
    }

    /// What it needs in `scope`; nothing where it does not count.
    pub fn need_in(&self, scope: ScopeId) -> Amounts {
        if self.contains(scope) { self.need() } else { Amounts::ZERO }
    }
}

/// A gateway node of the cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ScId(pub u32);

/// Names one call for ever: the node that takes it, that node's life, and a number in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Guid {
    /// The node.
    pub sc: u32,
    /// Its life.
    pub incarnation: u32,
    /// The call.
    pub number: u64,
}

impl std::fmt::Display for Guid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}-{:08x}-{:016x}", self.sc, self.incarnation, self.number)
    }
}

/// Which leg of a call: each is admitted for itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Leg {
    /// Ingress: asked for by IP_LOOKUP.
    #[default]
    Ingress,
    /// Egress: asked for by ALLOCATE.
    Egress,
}

impl Leg {
    /// Both.
    pub const ALL: [Leg; 2] = [Leg::Ingress, Leg::Egress];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Leg::Ingress => "ingress",
            Leg::Egress => "egress",
        }
    }
}

/// What a call control block is known by (race 14: the same number at two nodes is two calls).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Key {
    /// Whose call it is.
    pub sc: ScId,
    /// The call.
    pub guid: Guid,
    /// Its leg.
    pub leg: Leg,
}

impl Key {
    /// A number that tells keys and what they are charged apart well, for digests: the same at both ends of a link, be it of this version
    /// or of one that knows no quotas.
    pub fn mixed(&self, charge: &Charge) -> u64 {
        let guid = [u64::from(self.sc.0) << 32 | u64::from(self.guid.sc), u64::from(self.guid.incarnation), self.guid.number];
        let rest = [u64::from(charge.kbits) << 8 | (charge.direction as u64) << 4 | charge.class as u64];
        let scopes = charge.scopes.iter().map(|scope| u64::from(scope.0));
        let mut hash = self.leg as u64 + 1;
        for word in guid.into_iter().chain(rest).chain(scopes) {
            hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 29;
        }
        hash.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (hash >> 32)
    }
}
