//! Admission control: from `[[scope]]` tables to the scopes and limits of the machines.

use super::cluster;
use super::defaults::{Cac, ScopeEntry};
use super::file::{Findings, Raw};
use super::types::{CacMode, CallClass, CallDirection, CallSide, Disconnected, QuotaMode, ScopeKind, SpanKind};
use super::valid::{Config, Span};
use crate::proto::base::EndpointIndex;
use crate::proto::cac::quota::{self, Giving};
use crate::proto::cac::{Class, Direction, Kind, Limits, Policy, Prefix, Rate, Scope, ScopeError, ScopeId, Tree, UNLIMITED};
use crate::proto::trunk::{Cursor, FacilityKind, FacilityPlan, Topology};

impl Cac {
    /// Whether anything is limited.
    fn limits(&self, scopes: &[ScopeEntry]) -> bool {
        self.mode != CacMode::Off && !scopes.is_empty()
    }
}

/// The scopes of a valid configuration; `None` when nothing is limited.
pub fn tree(config: &Config) -> Option<Tree> {
    if !config.cac.limits(&config.scopes) {
        return None;
    }
    Tree::new(scopes(&config.scopes)).ok()
}

/// What each of them allows.
pub fn limits(config: &Config) -> Vec<Limits> {
    if config.cac.limits(&config.scopes) { config.scopes.iter().map(limits_of).collect() } else { Vec::new() }
}

/// What cores are told that each of them allows: nothing in a cluster, where the central node has the limits.
pub fn limits_of_cores(config: &Config) -> Vec<Limits> {
    if config.cac.mode == CacMode::Cluster { vec![Limits::default(); config.scopes.len()] } else { limits(config) }
}

/// What each scope's rule is while the central node of a cluster cannot be reached.
pub fn policies(config: &Config) -> Vec<Policy> {
    let policy = |word: Disconnected| match word {
        Disconnected::Open => Policy::Open,
        Disconnected::HoldLast => Policy::HoldLast,
        Disconnected::Share => Policy::Share,
        Disconnected::Closed => Policy::Closed,
    };
    config.scopes.iter().map(|scope| policy(scope.disconnected.fixed().copied().unwrap_or(config.cac.disconnected))).collect()
}

/// Which scopes the central node gives out in quotas.
pub fn giving(config: &Config) -> Vec<Giving> {
    let giving = |scope: &ScopeEntry| match scope.quota {
        QuotaMode::Auto => Giving::Auto,
        QuotaMode::Always => Giving::Always,
        QuotaMode::Never => Giving::Never,
    };
    config.scopes.iter().map(giving).collect()
}

/// The trunk group of each endpoint, or what cannot be one: the place of the scope, the member, and why.
pub fn groups(topology: &Topology, scopes: &[ScopeEntry]) -> Result<Vec<ScopeId>, (usize, usize, String)> {
    let mut groups = vec![ScopeId::NONE; topology.len() as usize];
    for (place, scope) in scopes.iter().enumerate() {
        for (n, member) in scope.members.iter().enumerate() {
            let unknown = || (place, n, "must name an endpoint, or with `*` endpoints, of this gateway".to_owned());
            let selection = match topology.lookup(member.as_bytes()) {
                Some(endpoint) => topology.selection_of(endpoint).ok_or_else(unknown)?,
                None => topology.resolve(member.as_bytes(), true).map_err(|_| unknown())?,
            };
            let mut cursor = Cursor::default();
            while let Some(range) = selection.next(topology, &mut cursor, u32::MAX) {
                for EndpointIndex(endpoint) in range.iter() {
                    let Some(group) = groups.get_mut(endpoint as usize) else { continue };
                    if *group != ScopeId::NONE && *group != ScopeId(place as u16) {
                        let other = scopes.get(usize::from(group.0)).map_or("another", |scope| &scope.name);
                        return Err((place, n, format!("must not hold channels that are in scope {other} too")));
                    }
                    *group = ScopeId(place as u16);
                }
            }
        }
    }
    Ok(groups)
}

fn scopes(entries: &[ScopeEntry]) -> Vec<Scope> {
    let place = |name: &str| entries.iter().position(|entry| entry.name == name);
    let scope = |entry: &ScopeEntry| {
        let kind = match entry.kind {
            ScopeKind::TrunkGroup => Kind::TrunkGroup,
            ScopeKind::Pool => Kind::Pool,
            ScopeKind::Zone => Kind::Zone,
            ScopeKind::Peer => Kind::Peer,
        };
        Scope {
            // A pool that is not there is nobody's place.
            parent: entry.pool.as_deref().map(|pool| place(pool).map_or(ScopeId::NONE, |place| ScopeId(place as u16))),
            prefixes: entry.prefixes.iter().filter_map(|text| Prefix::parse(text)).collect(),
            one_way: match entry.direction {
                CallDirection::Both => None,
                CallDirection::In => Some(Direction::Inbound),
                CallDirection::Out => Some(Direction::Outbound),
            },
            undescribed: match entry.undescribed {
                CallSide::In => Direction::Inbound,
                CallSide::Out => Direction::Outbound,
            },
            class: match entry.class {
                CallClass::Normal => Class::Normal,
                CallClass::Priority => Class::Priority,
                CallClass::Emergency => Class::Emergency,
            },
            ..Scope::new(kind, &entry.name)
        }
    };
    entries.iter().map(scope).collect()
}

fn limits_of(entry: &ScopeEntry) -> Limits {
    let rate = |per_second: Option<u32>, burst| per_second.map(|per_second| Rate { per_second, burst });
    Limits {
        calls: entry.calls.unwrap_or(UNLIMITED),
        inbound: entry.inbound.unwrap_or(UNLIMITED),
        outbound: entry.outbound.unwrap_or(UNLIMITED),
        kbits: entry.kbits.unwrap_or(UNLIMITED),
        inbound_rate: rate(entry.inbound_rate, entry.inbound_burst),
        outbound_rate: rate(entry.outbound_rate, entry.outbound_burst),
        reserved_inbound: entry.reserved_inbound,
        reserved_outbound: entry.reserved_outbound,
        reserved_priority: entry.reserved_priority,
        priority_percent: entry.priority_percent,
        emergency_percent: entry.emergency_percent,
        emergency_extra: entry.emergency_extra,
        emergency_limited: entry.emergency_limited,
        warn_percent: entry.warn_percent,
        clear_percent: entry.clear_percent,
    }
}

/// Reports what scopes must not be to each other, and to the spans.
pub(super) fn check(raw: &Raw, spans: &[Span], findings: &mut Findings<'_>) {
    let (is_central, in_cluster) = (raw.cac.mode == CacMode::Central, raw.cac.mode == CacMode::Cluster);
    cluster::check(raw, findings);
    for (place, (path, entry)) in raw.scopes.iter().enumerate() {
        check_one(path, entry, is_central || in_cluster, findings);
        let nobody_counts = is_central && raw.cac.nodes.is_empty();
        if entry.quota == QuotaMode::Always && (nobody_counts || !quota::is_leasable(&limits_of(entry))) {
            let problem = "must not be \"always\" where anything but calls is limited or reserved, or cac.nodes is not said";
            findings.cross(&format!("{path}.quota"), &["cac.nodes"], &entry.quota, problem);
        }
        if raw.scopes.iter().take(place).any(|(_, other)| other.name == entry.name) {
            findings.cross(&format!("{path}.name"), &[], &entry.name, "must differ from the names of the scopes before it");
        }
    }
    let entries: Vec<ScopeEntry> = raw.scopes.iter().map(|(_, entry)| entry.clone()).collect();
    match Tree::new(scopes(&entries)) {
        Err(error @ (ScopeError::ParentNoPool(place) | ScopeError::ParentRefused(place) | ScopeError::TooDeep(place))) => {
            if let Some((path, entry)) = raw.scopes.get(place) {
                findings.cross(&format!("{path}.pool"), &[], &entry.pool, format!("does not fit: {}", error.text()));
            }
        }
        // Names are compared above.
        Err(ScopeError::NameTaken(_) | ScopeError::TooMany) | Ok(_) => {}
    }
    if is_central || findings.any_fault_below("span") {
        return;
    }
    if let Some(topology) = topology(spans)
        && let Err((place, member, problem)) = groups(&topology, &entries)
        && let Some((path, entry)) = raw.scopes.get(place)
    {
        findings.cross_text(&format!("{path}.members[{}]", member + 1), &[], entry.members[member].clone(), problem);
    }
}

fn check_one(path: &str, entry: &ScopeEntry, elsewhere: bool, findings: &mut Findings<'_>) {
    let key = |setting: &str| format!("{path}.{setting}");
    let is_group = entry.kind == ScopeKind::TrunkGroup;
    let has_prefixes = matches!(entry.kind, ScopeKind::Zone | ScopeKind::Peer);
    // In a cluster the channels of a trunk group may all be at other gateways.
    if is_group == entry.members.is_empty() && !(is_group && elsewhere) {
        let problem =
            if is_group { "must name channels: a trunk group has some" } else { "must be empty: only a trunk group has channels" };
        findings.cross(&key("members"), &[&key("kind")], &entry.members, problem);
    }
    if has_prefixes == entry.prefixes.is_empty() {
        let problem = if has_prefixes { "must name addresses" } else { "must be empty: only zones and peers have addresses" };
        findings.cross(&key("prefixes"), &[&key("kind")], &entry.prefixes, problem);
    }
    if !is_group && entry.class != CallClass::Normal {
        findings.cross(&key("class"), &[&key("kind")], &entry.class, "must be \"normal\": the trunk group says what calls are");
    }
    if !is_group && entry.direction != CallDirection::Both {
        findings.cross(&key("direction"), &[&key("kind")], &entry.direction, "must be \"both\": the trunk group says which way calls go");
    }
    if entry.warn_percent.is_some_and(|warn| entry.clear_percent >= warn) {
        findings.cross(&key("clear_percent"), &[&key("warn_percent")], &entry.clear_percent, "must be below warn_percent");
    }
    if entry.calls.is_some_and(|calls| entry.reserved_inbound.saturating_add(entry.reserved_outbound) > calls) {
        let problem = "must be, with reserved_outbound, at most calls";
        findings.cross(&key("reserved_inbound"), &[&key("calls"), &key("reserved_outbound")], &entry.reserved_inbound, problem);
    }
}

/// The endpoints that these spans make.
fn topology(spans: &[Span]) -> Option<Topology> {
    let facility = |span: &Span| FacilityPlan {
        kind: match span.kind {
            SpanKind::T3 => FacilityKind::T3,
            SpanKind::T1 => FacilityKind::T1,
            SpanKind::E1 => FacilityKind::E1,
        },
        unit: span.unit.into(),
        common_channel: span.common_channel,
    };
    Topology::new(&spans.iter().map(facility).collect::<Vec<_>>()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EMBEDDED;

    fn with(scopes: &str) -> Result<Config, String> {
        Config::parse(&format!("{EMBEDDED}\n{scopes}"), "f").map_err(|errors| errors.to_string())
    }

    const NORTH: &str = "[[scope]]\nkind = \"trunk-group\"\nname = \"north\"\nmembers = [\"ds/ds3-1/ds1-1/*\"]\n";

    /// R15, R16: what the file says is what the machines get.
    #[test]
    fn scopes_and_limits_come_from_the_file() {
        let pool = "[[scope]]\nkind = \"pool\"\nname = \"carrier\"\ncalls = 100\nkbits = 8000\n";
        let zone = "[[scope]]\nkind = \"zone\"\nname = \"core\"\nprefixes = [\"10.0.0.0/8\"]\n";
        let config = with(&format!("{pool}{NORTH}pool = \"carrier\"\ncalls = 20\ninbound_rate = 5\n{zone}")).unwrap();
        let (tree, limits) = (tree(&config).unwrap(), limits(&config));
        assert_eq!((tree.len(), limits.len()), (3, 3));
        assert_eq!(tree.get(ScopeId(1)).unwrap().parent, Some(ScopeId(0)));
        assert_eq!((limits[0].calls, limits[0].kbits, limits[1].calls), (100, 8000, 20));
        assert_eq!(limits[1].inbound_rate, Some(Rate { per_second: 5, burst: 10 }));
        let groups = groups(&topology(&config.spans).unwrap(), &config.scopes).unwrap();
        assert_eq!(groups.iter().filter(|group| **group == ScopeId(1)).count(), 24);
        assert!(super::tree(&Config::default_embedded()).is_none());
    }

    /// Every mistake has its key and says what would be right.
    #[test]
    fn mistakes_in_scopes_are_told() {
        let refused = |scopes: &str, key: &str, problem: &str| {
            let errors = with(scopes).unwrap_err();
            assert!(errors.contains(key) && errors.contains(problem), "{errors}");
        };
        refused("[[scope]]\nkind = \"trunk-group\"\nname = \"a\"\n", "scope[1].members", "must name channels");
        refused("[[scope]]\nkind = \"peer\"\nname = \"a\"\n", "scope[1].prefixes", "must name addresses");
        refused("[[scope]]\nkind = \"pool\"\nname = \"a\"\npool = \"a\"\n", "scope[1].pool", "does not fit");
        refused(&format!("{NORTH}pool = \"nowhere\"\n"), "scope[1].pool", "no pool");
        refused(&format!("{NORTH}{NORTH}"), "scope[2].name", "must differ");
        refused(&NORTH.replace("ds3-1", "ds3-9"), "scope[1].members[1]", "of this gateway");
        let south = NORTH.replace("north", "south").replace("ds1-1/*", "*");
        refused(&format!("{NORTH}{south}"), "scope[2].members[1]", "in scope north too");
        refused(&format!("{NORTH}clear_percent = 90\n"), "scope[1].clear_percent", "below warn_percent");
        refused(&format!("{NORTH}calls = 5\nreserved_inbound = 6\n"), "scope[1].reserved_inbound", "at most calls");
        refused(&format!("{NORTH}calls = -1\n"), "scope[1].calls", "must be");
        refused(&format!("{NORTH}calls = 90\nkbits = 90\nquota = \"always\"\n"), "scope[1].quota", "anything but calls");
    }

    /// R21: limits change by a reload, what the scopes are does not.
    #[test]
    fn limits_reload_and_scopes_need_a_restart() {
        let old = with(NORTH).unwrap();
        let changes = |text: &str| crate::config::diff(&old, &with(text).unwrap());
        let limit = changes(&format!("{NORTH}calls = 7\n"));
        assert!(limit.len() == 1 && limit[0].reloadable && limit[0].key == "scope[north].calls", "{limit:?}");
        let quota = changes(&format!("{NORTH}quota = \"never\"\n"));
        assert!(quota.len() == 1 && quota[0].reloadable && quota[0].key == "scope[north].quota", "{quota:?}");
        let members = changes(&NORTH.replace("ds1-1", "ds1-2"));
        assert!(members.len() == 1 && !members[0].reloadable, "{members:?}");
        assert!(changes("").iter().any(|change| !change.reloadable));
    }
}
