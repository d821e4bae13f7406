//! What calls of the benches count in.

use tollgate::proto::cac::{Kind, Prefix, Scope, ScopeId, Tree};

/// The trunk group of [`tree`].
pub const NORTH: ScopeId = ScopeId(2);

/// A trunk group under two pools, a thousand peers and as many zones: 192.0.0.0/24 to 192.3.231.0/24, and the fiftieth address of each.
pub fn tree() -> Tree {
    let mut scopes = vec![
        Scope::new(Kind::Pool, "carrier"),
        Scope::new(Kind::Pool, "city").under(ScopeId(0)),
        Scope::new(Kind::TrunkGroup, "north").under(ScopeId(1)),
    ];
    for n in 0..1_000u32 {
        let at = |host, bits| vec![Prefix::new(std::net::Ipv4Addr::from(0xc000_0000 + (n << 8) + host).into(), bits).expect("a prefix")];
        scopes.push(Scope { prefixes: at(0, 24), ..Scope::new(Kind::Zone, &format!("zone-{n}")) });
        scopes.push(Scope { prefixes: at(50, 32), ..Scope::new(Kind::Peer, &format!("peer-{n}")) });
    }
    Tree::new(scopes).expect("a tree")
}
