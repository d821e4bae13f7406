//! The tree of scopes (R15): trunk groups under pools, at most three levels, and zones and peers known by address prefixes.

use super::charge::{Charge, Class, Direction};
use super::prefix::{Prefix, Prefixes};
use crate::proto::base::fnv;
use std::net::IpAddr;

/// Places for a trunk group and pools above one another (R15).
const LEVELS_MAX: usize = 3;

/// One scope, by its place in the [`Tree`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ScopeId(pub u16);

impl ScopeId {
    /// No scope.
    pub const NONE: ScopeId = ScopeId(u16::MAX);
}

/// What a scope is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Channels that lead to the same place.
    TrunkGroup,
    /// Part of the packet network.
    Zone,
    /// A node of the packet network.
    Peer,
    /// What several trunk groups share.
    Pool,
}

impl Kind {
    /// As operators write it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::TrunkGroup => "trunk-group",
            Kind::Zone => "zone",
            Kind::Peer => "peer",
            Kind::Pool => "pool",
        }
    }
}

/// One scope.
#[derive(Clone, PartialEq, Debug)]
pub struct Scope {
    /// What operators call it.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The pool above it.
    pub parent: Option<ScopeId>,
    /// A zone's or peer's addresses.
    pub prefixes: Vec<Prefix>,
    /// A trunk group whose calls only go one way.
    pub one_way: Option<Direction>,
    /// Which way a call of a trunk group goes whose connection is created without a remote description, when the line does not say.
    pub undescribed: Direction,
    /// How much the calls of a trunk group matter.
    pub class: Class,
}

impl Scope {
    /// A scope with nothing above it.
    pub fn new(kind: Kind, name: &str) -> Scope {
        Scope {
            name: name.into(),
            kind,
            parent: None,
            prefixes: Vec::new(),
            one_way: None,
            undescribed: Direction::Inbound,
            class: Class::Normal,
        }
    }

    /// The same under a pool.
    pub fn under(self, parent: ScopeId) -> Scope {
        Scope { parent: Some(parent), ..self }
    }
}

/// Why scopes make no tree; each with the place of the scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScopeError {
    /// More scopes than there may be.
    TooMany,
    /// Two scopes of a kind have this one's name.
    NameTaken(usize),
    /// What is above it is no pool.
    ParentNoPool(usize),
    /// A zone or a peer stands alone.
    ParentRefused(usize),
    /// More than two pools are above it, or it is above itself.
    TooDeep(usize),
}

impl ScopeError {
    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            ScopeError::TooMany => "too many scopes",
            ScopeError::NameTaken(_) => "another one of its kind has this name",
            ScopeError::ParentNoPool(_) => "what is above it is no pool",
            ScopeError::ParentRefused(_) => "zones and peers have no pool above them",
            ScopeError::TooDeep(_) => "at most two pools stand above a trunk group, and none above itself",
        }
    }
}

/// All scopes; never changes while the gateway runs, only their limits do.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tree {
    scopes: Vec<Scope>,
    zones: Prefixes,
    peers: Prefixes,
}

impl Tree {
    /// The most scopes.
    pub const SCOPES_MAX: usize = 4096;

    /// The tree of `scopes`, checked.
    pub fn new(scopes: Vec<Scope>) -> Result<Tree, ScopeError> {
        if scopes.len() > Tree::SCOPES_MAX {
            return Err(ScopeError::TooMany);
        }
        let prefixes = |kind: Kind| {
            let of_kind = scopes.iter().enumerate().filter(move |(_, scope)| scope.kind == kind);
            Prefixes::new(of_kind.flat_map(|(place, scope)| scope.prefixes.iter().map(move |&prefix| (prefix, ScopeId(place as u16)))))
        };
        let (zones, peers) = (prefixes(Kind::Zone), prefixes(Kind::Peer));
        let tree = Tree { scopes, zones, peers };
        for (place, scope) in tree.scopes.iter().enumerate() {
            let taken = |other: &Scope| other.kind == scope.kind && other.name == scope.name;
            if tree.scopes[..place].iter().any(taken) {
                return Err(ScopeError::NameTaken(place));
            }
            let Some(parent) = scope.parent else { continue };
            if matches!(scope.kind, Kind::Zone | Kind::Peer) {
                return Err(ScopeError::ParentRefused(place));
            }
            if tree.get(parent).is_none_or(|parent| parent.kind != Kind::Pool) {
                return Err(ScopeError::ParentNoPool(place));
            }
            // A pool is never the lowest level.
            let below = usize::from(scope.kind == Kind::Pool);
            if tree.chain(ScopeId(place as u16)).count() + below > LEVELS_MAX {
                return Err(ScopeError::TooDeep(place));
            }
        }
        Ok(tree)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.scopes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.scopes.is_empty()
    }

    /// One scope.
    pub fn get(&self, scope: ScopeId) -> Option<&Scope> {
        self.scopes.get(usize::from(scope.0))
    }

    /// All with their places.
    pub fn iter(&self) -> impl Iterator<Item = (ScopeId, &Scope)> {
        self.scopes.iter().enumerate().map(|(place, scope)| (ScopeId(place as u16), scope))
    }

    /// The scope of this name, of any kind; the first when several kinds have it.
    pub fn named(&self, name: &str) -> Option<ScopeId> {
        self.iter().find(|(_, scope)| scope.name == name).map(|(id, _)| id)
    }

    /// `scope` and the pools above it; one level more than there may be when it goes on.
    fn chain(&self, scope: ScopeId) -> impl Iterator<Item = ScopeId> {
        std::iter::successors(Some(scope), |&scope| self.get(scope)?.parent).take(LEVELS_MAX + 1)
    }

    /// What a leg counts in: its trunk group and the pools above it, and the zone and the peer it goes to or comes from, when the
    /// address is known.
    pub fn charge(&self, trunk_group: ScopeId, remote: Option<IpAddr>, leg: Charge) -> Charge {
        let mut charge = leg;
        if self.get(trunk_group).is_some() {
            self.chain(trunk_group).for_each(|scope| charge.add(scope));
        }
        if let Some(address) = remote {
            self.zones.longest(address).into_iter().chain(self.peers.longest(address)).for_each(|scope| charge.add(scope));
        }
        charge
    }

    /// A number that differs when scopes do: nodes with different trees must not count together.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = fnv::BEGIN;
        let mut mix = |byte: u8| hash = fnv::mix(hash, byte.into());
        for scope in &self.scopes {
            scope.name.bytes().for_each(&mut mix);
            mix(0xff);
            mix(scope.kind as u8);
            let parent = scope.parent.unwrap_or(ScopeId::NONE).0;
            parent.to_le_bytes().into_iter().for_each(&mut mix);
            for prefix in &scope.prefixes {
                prefix.bytes().for_each(&mut mix);
            }
        }
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        Prefix::parse(text).unwrap()
    }

    fn with_prefixes(kind: Kind, name: &str, prefixes: &[&str]) -> Scope {
        Scope { prefixes: prefixes.iter().map(|text| prefix(text)).collect(), ..Scope::new(kind, name) }
    }

    fn leg() -> Charge {
        Charge::new(Direction::Inbound, Class::Normal, 80)
    }

    /// R15.
    #[test]
    fn a_leg_counts_in_its_trunk_group_the_pools_above_and_where_its_remote_side_is() {
        let tree = Tree::new(vec![
            Scope::new(Kind::Pool, "carrier"),
            Scope::new(Kind::Pool, "city").under(ScopeId(0)),
            Scope::new(Kind::TrunkGroup, "north").under(ScopeId(1)),
            with_prefixes(Kind::Zone, "core", &["10.0.0.0/8", "2001:db8::/32"]),
            with_prefixes(Kind::Zone, "edge", &["10.9.0.0/16"]),
            with_prefixes(Kind::Peer, "sbc", &["10.9.1.7"]),
        ])
        .unwrap();
        let scopes = |remote: Option<&str>| {
            let charge = tree.charge(ScopeId(2), remote.map(|text| text.parse().unwrap()), leg());
            charge.scopes().map(|scope| scope.0).collect::<Vec<_>>()
        };
        assert_eq!(scopes(None), [2, 1, 0]);
        assert_eq!(scopes(Some("10.1.2.3")), [2, 1, 0, 3]);
        assert_eq!(scopes(Some("10.9.1.8")), [2, 1, 0, 4]);
        assert_eq!(scopes(Some("10.9.1.7")), [2, 1, 0, 4, 5]);
        assert_eq!(scopes(Some("2001:db8:1::1")), [2, 1, 0, 3]);
        assert_eq!(scopes(Some("192.0.2.1")), [2, 1, 0]);
        assert_eq!(tree.charge(ScopeId::NONE, None, leg()).scopes().count(), 0);
        assert_eq!(tree.named("north"), Some(ScopeId(2)));
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let group = |parent: u16| Scope::new(Kind::TrunkGroup, "group").under(ScopeId(parent));
        let pool = |name: &str| Scope::new(Kind::Pool, name);
        let refused = |scopes: Vec<Scope>| Tree::new(scopes).unwrap_err();
        assert_eq!(refused(vec![pool("a"), pool("a")]), ScopeError::NameTaken(1));
        assert_eq!(refused(vec![group(7)]), ScopeError::ParentNoPool(0));
        assert_eq!(refused(vec![Scope::new(Kind::TrunkGroup, "top"), group(0)]), ScopeError::ParentNoPool(1));
        assert_eq!(refused(vec![pool("a"), Scope::new(Kind::Zone, "z").under(ScopeId(0))]), ScopeError::ParentRefused(1));
        assert_eq!(refused(vec![pool("a").under(ScopeId(0))]), ScopeError::TooDeep(0));
        let deep = vec![pool("a"), pool("b").under(ScopeId(0)), pool("c").under(ScopeId(1)), group(2)];
        assert_eq!(refused(deep), ScopeError::TooDeep(2));
        let many = (0..=Tree::SCOPES_MAX).map(|n| pool(&n.to_string())).collect();
        assert_eq!(refused(many), ScopeError::TooMany);
    }
}
