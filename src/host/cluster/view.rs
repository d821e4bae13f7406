//! What operators see of a cluster: at a gateway its link, at the central node everything.

use crate::host::control::lists::pick;
use crate::host::control::protocol::Failure;
use crate::host::control::view::{DenialRow, List, ROWS_MAX, Row, ScopeRow};
use crate::proto::base::Time;
use crate::proto::cac::charge::Key;
use crate::proto::cac::node::QuotaView;
use crate::proto::cac::quota::Part;
use crate::proto::cac::{Admission, Authority, Ccb, Guid, Leg, ScId, ScopeId, Tree, UNLIMITED};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A gateway's link to the central node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LinkView {
    /// The number of this gateway.
    pub node: u32,
    /// Its life.
    pub incarnation: u32,
    /// `in-sync`, `syncing`, or `lost`.
    pub state: String,
    /// The central node's life, the highest seen.
    pub epoch: u64,
    /// The central node that decides; none while it is lost.
    pub central: Option<String>,
    /// Of a pair: whether the other one has a copy of the calls: `in-sync` or `lost`.
    pub standby: Option<String>,
    /// Calls of this gateway that count.
    pub calls: usize,
    /// Those of the last life among them, which have no connection here.
    #[serde(default)]
    pub restored: usize,
    /// Requests on their way, those given up a moment ago included.
    pub requests: usize,
    /// Reports that are not acknowledged.
    pub reports: usize,
    /// Calls the central node admitted, and refused.
    pub granted: u64,
    /// See `granted`.
    pub denied: u64,
    /// Calls admitted with quotas that it gave.
    #[serde(default)]
    pub leased: u64,
    /// Calls admitted, and refused, without it.
    pub local: u64,
    /// Those admitted without it, by why.
    #[serde(default)]
    pub local_by: BTreeMap<String, u64>,
    /// See `local`.
    pub refused: u64,
    /// Requests not answered in time; answers that came too late.
    pub overdue: u64,
    /// See `overdue`.
    pub late: u64,
    /// Messages of an old session or older than the last.
    pub stale: u64,
    /// Messages that could not be read.
    pub unreadable: u64,
    /// Messages for which a queue had no room.
    pub lost: u64,
    /// Syncs begun.
    pub syncs: u64,
    /// Calls decided here because the central node has too much to do.
    #[serde(default)]
    pub busy: u64,
    /// Parts of the calls in which both ends were found to differ.
    #[serde(default)]
    pub mended: u64,
    /// The last sync that came to its end: calls told, and how long it took, in microseconds.
    #[serde(default)]
    pub synced: u64,
    /// See `synced`.
    #[serde(default)]
    pub sync_us: u64,
    /// How long decisions of the central node took, in microseconds: the middle one, and that of which one in a hundred took longer.
    pub p50_us: u64,
    /// See `p50_us`.
    pub p99_us: u64,
    /// The same as a histogram (R44): how many took at most so many microseconds and more than those before; of the last, any time.
    #[serde(default)]
    pub decisions: Vec<(u64, u64)>,
    /// How long all of them took, in microseconds.
    #[serde(default)]
    pub decisions_us: u64,
    /// Quotas hold for so much longer; none: they hold no more, and calls are asked for.
    #[serde(default)]
    pub lease_ms: Option<u64>,
    /// What this gateway may have of scopes that are given out in quotas.
    #[serde(default)]
    pub quotas: Vec<QuotaRow>,
}

/// Upper ends of the histogram of decisions, in microseconds.
const DECISION_US: [u64; 12] = [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 250_000];

/// See [`LinkView::decisions`].
pub fn histogram(times: &hdrhistogram::Histogram<u64>) -> Vec<(u64, u64)> {
    let mut from = 0;
    let ends = DECISION_US.into_iter().chain([u64::MAX]);
    ends.map(|end| (end, times.count_between(std::mem::replace(&mut from, end.saturating_add(1)), end))).collect()
}

/// The central node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClusterView {
    /// Its life.
    pub epoch: u64,
    /// `active` or `learning`; `standby` of a pair.
    pub mode: String,
    /// Of a pair: whether etcd, which says who leads, `answers` or is `silent`.
    pub etcd: Option<String>,
    /// Limits only count what they would refuse.
    pub dry_run: bool,
    /// Calls that count.
    pub calls: usize,
    /// How busy it is: 0 idle, to 3: it answers new requests that they are better decided without it.
    #[serde(default)]
    pub load: u8,
    /// Requests it answered so.
    #[serde(default)]
    pub busy: u64,
    /// Requests granted, refused, and answered "learning".
    pub granted: u64,
    /// See `granted`.
    pub denied: u64,
    /// See `granted`.
    pub learning: u64,
    /// Calls told of that were admitted without this node.
    pub facts: u64,
    /// Messages of an old session or older than the last.
    pub stale: u64,
    /// Messages that could not be read.
    pub unreadable: u64,
    /// Parts of calls that were found to differ from what their gateways have.
    #[serde(default)]
    pub differed: u64,
    /// Hellos of gateways refused.
    #[serde(default)]
    pub refused: u64,
    /// Messages lost because their connection had more waiting than its part.
    pub overrun: u64,
    /// Connections refused for their key.
    pub strangers: u64,
    /// The scopes.
    pub scopes: List<ScopeRow>,
    /// The gateway nodes.
    pub nodes: Vec<NodeRow>,
    /// The latest refusals, newest first. Their endpoint is the node.
    pub denials: Vec<DenialRow>,
    /// Who was refused most, the most first.
    #[serde(default)]
    pub offenders: Vec<OffenderRow>,
    /// What is wrong now.
    #[serde(default)]
    pub alarms: Vec<String>,
    /// What happened last, newest first.
    pub events: Vec<EventLine>,
}

/// A gateway whose calls were refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OffenderRow {
    /// The gateway.
    pub node: u32,
    /// The peer, zone or trunk group of the calls.
    pub scope: String,
    /// Calls refused from the trunk.
    pub refused_in: u64,
    /// Calls refused towards it.
    pub refused_out: u64,
    /// The first one, and the last, in seconds before now.
    pub first_s: u64,
    /// See `first_s`.
    pub last_s: u64,
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EventLine {
    /// When, in seconds before now.
    pub age_s: u64,
    /// What.
    pub what: String,
}

/// One gateway node, seen from the central one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeRow {
    /// Its number.
    pub node: u32,
    /// `in-sync`, `syncing`, or `lost`.
    pub state: String,
    /// When it is lost: since so many seconds.
    pub lost_s: Option<u64>,
    /// Its life; 0 when it is lost.
    pub incarnation: u32,
    /// Its session.
    pub session: u64,
    /// Calls that count for it.
    pub calls: usize,
    /// It may have no new ones.
    pub drained: bool,
    /// Its quotas hold for so much longer, at most; none: they hold no more.
    #[serde(default)]
    pub lease_ms: Option<u64>,
    /// What it may have of scopes that are given out in quotas.
    #[serde(default)]
    pub quotas: Vec<QuotaRow>,
}

/// What one gateway may have of one scope.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QuotaRow {
    /// The scope.
    pub scope: String,
    /// So many calls at a time; none: it is not limited.
    pub quota: Option<u32>,
    /// Calls on it, as the gateway told last.
    pub live: u32,
    /// At a gateway what its cores have of it; at the central node what counts for the gateway, until it keeps to less.
    pub bound: Option<u32>,
}

impl QuotaRow {
    /// What a central node has given.
    pub fn of(tree: &Tree, scope: ScopeId, part: &Part) -> QuotaRow {
        QuotaRow::new(tree, scope, [part.quota, part.live, part.bound])
    }

    /// What a gateway has.
    pub fn at(tree: &Tree, view: &QuotaView) -> QuotaRow {
        QuotaRow::new(tree, view.scope, [view.quota, view.live, view.cores])
    }

    fn new(tree: &Tree, scope: ScopeId, [quota, live, bound]: [u32; 3]) -> QuotaRow {
        let limited = |calls: u32| Some(calls).filter(|calls| *calls < UNLIMITED);
        let scope = tree.get(scope).map_or(String::new(), |scope| scope.name.clone());
        QuotaRow { scope, quota: limited(quota), live, bound: limited(bound) }
    }
}

/// One call control block.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CcbRow {
    /// The call.
    pub guid: String,
    /// `ingress` or `egress`.
    pub leg: String,
    /// Whose it is.
    pub node: u32,
    /// Where it counts.
    pub scopes: Vec<String>,
    /// `in` or `out`.
    pub direction: String,
    /// `normal`, `priority` or `emergency`.
    pub class: String,
    /// Its bandwidth.
    pub kbits: u32,
    /// Who let it in.
    pub admitted: String,
    /// Since when it is here, in seconds.
    pub age_s: u64,
    /// How often it has changed what it is charged since.
    #[serde(default, skip_serializing_if = "is_none")]
    pub changes: u32,
    /// When last, in seconds before now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_s: Option<u64>,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

impl Row for CcbRow {
    const STATES: &'static [&'static str] = &["granted", "disconnected", "learning", "deadline", "emergency", "lease"];

    fn name(&self) -> &str {
        &self.guid
    }

    fn is(&self, state: &str) -> bool {
        self.admitted == state
    }
}

/// The GUID that `text` is.
pub fn guid(text: &str) -> Option<Guid> {
    let mut parts = text.split('-');
    let mut part = |digits: usize| parts.next().filter(|part| part.len() == digits);
    let sc = u32::from_str_radix(part(8)?, 16).ok()?;
    let incarnation = u32::from_str_radix(part(8)?, 16).ok()?;
    let number = u64::from_str_radix(part(16)?, 16).ok()?;
    parts.next().is_none().then_some(Guid { sc, incarnation, number })
}

/// A place in a list of calls: behind this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor(Key);

impl From<Cursor> for String {
    fn from(Cursor(Key { sc, guid, leg }): Cursor) -> String {
        format!("{}/{guid}/{}", sc.0, leg.name())
    }
}

impl TryFrom<String> for Cursor {
    type Error = String;

    fn try_from(text: String) -> Result<Cursor, String> {
        let read = || {
            let mut parts = text.split('/');
            let sc = ScId(parts.next()?.parse().ok()?);
            let (guid, leg) = (guid(parts.next()?)?, parts.next()?);
            let leg = Leg::ALL.into_iter().find(|known| known.name() == leg)?;
            parts.next().is_none().then_some(Cursor(Key { sc, guid, leg }))
        };
        read().ok_or_else(|| format!("{text} is no place in a list of calls"))
    }
}

/// Some calls of a list, which is looked at a part at a time: whoever counts them has no more time for it than for one part.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Page {
    /// The calls.
    pub rows: Vec<CcbRow>,
    /// Where to go on; none: these were the last ones.
    pub next: Option<Cursor>,
    /// How many there are at most, before these, in them and behind.
    pub count: usize,
}

/// Calls of one page.
const PAGE: usize = 256;

/// Call control blocks that are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// All.
    All,
    /// Those of one node.
    Node(ScId),
    /// Those of one call.
    Call(Guid),
}

impl Which {
    /// Those that a pattern for GUIDs can fit: `00000001-*` fits the calls of node 1 only.
    pub fn of(pattern: Option<&str>) -> Which {
        let Some(pattern) = pattern else { return Which::All };
        let node = || pattern.split_once('-').filter(|(node, _)| node.len() == 8).and_then(|(node, _)| u32::from_str_radix(node, 16).ok());
        guid(pattern).map(Which::Call).or_else(|| node().map(|node| Which::Node(ScId(node)))).unwrap_or(Which::All)
    }

    /// How many rows that is at most, and without a look at each.
    pub fn count(self, authority: &Authority) -> usize {
        match self {
            Which::All => authority.ledger().len(),
            Which::Node(sc) => authority.ledger().count_of(sc),
            Which::Call(_) => 2,
        }
    }
}

/// A page of the call control blocks of an authority.
pub fn page(now: Time, authority: &Authority, which: Which, after: Option<Cursor>) -> Page {
    let tree = authority.tree();
    let name = |scope: ScopeId| tree.get(scope).map_or(String::new(), |scope| scope.name.clone());
    let row = |(key, ccb): (&Key, &Ccb)| CcbRow {
        guid: key.guid.to_string(),
        leg: key.leg.name().into(),
        node: key.sc.0,
        scopes: ccb.charge.scopes().map(name).collect(),
        direction: ccb.charge.direction.name().into(),
        class: ccb.charge.class.name().into(),
        kbits: ccb.charge.kbits,
        admitted: ccb.admission.name().into(),
        age_s: now.since(ccb.since).as_secs(),
        changes: ccb.changes,
        changed_s: (ccb.changes > 0).then(|| now.since(ccb.changed).as_secs()),
    };
    let (ledger, after) = (authority.ledger(), after.map(|Cursor(key)| key));
    let calls: Vec<(&Key, &Ccb)> = match which {
        Which::All => ledger.behind(after).take(PAGE).collect(),
        Which::Node(sc) => {
            let after = after.filter(|key| key.sc == sc);
            let from = ledger.from(after.unwrap_or(Key { sc, ..Key::default() }));
            from.filter(|(key, _)| Some(**key) != after).take(PAGE).collect()
        }
        Which::Call(guid) => ledger.of_call(guid).collect(),
    };
    let next = calls.last().filter(|_| calls.len() == PAGE).map(|(key, _)| Cursor(**key));
    Page { rows: calls.into_iter().map(row).collect(), next, count: which.count(authority) }
}

/// The calls that `name` and `state` fit, page by page: as many as a list may have.
///
/// # Errors
/// A state that there is not, and whatever keeps a page from coming.
pub fn list(
    name: Option<&str>,
    state: Option<&str>,
    mut page: impl FnMut(Option<Cursor>) -> Result<Page, Failure>,
) -> Result<List<CcbRow>, Failure> {
    let (mut list, mut after, mut looked_at) = (List { rows: Vec::new(), left_out: 0 }, None, 0);
    loop {
        let Page { rows, next, count } = page(after)?;
        looked_at += rows.len();
        list.rows.extend(pick(rows, name, state)?.rows);
        after = next;
        if after.is_none() || list.rows.len() + PAGE > ROWS_MAX {
            list.left_out = if after.is_some() { count.saturating_sub(looked_at) as u32 } else { 0 };
            return Ok(list);
        }
    }
}

/// Counts by who let calls in; those that are none are left out.
pub fn counts_by(counts: &[u64; Admission::ALL.len()]) -> BTreeMap<String, u64> {
    let named = Admission::ALL.into_iter().zip(counts).filter(|(_, count)| **count > 0);
    named.map(|(admission, count)| (admission.name().to_owned(), *count)).collect()
}

/// The scopes of an authority: use and limits.
pub fn scopes(authority: &Authority) -> Vec<ScopeRow> {
    let tree = authority.tree();
    let row = |(id, scope): (ScopeId, &crate::proto::cac::Scope)| {
        let (limits, tally) = (authority.limits(id), authority.tally(id));
        ScopeRow {
            name: scope.name.clone(),
            kind: scope.kind.name().into(),
            pool: scope.parent.and_then(|parent| tree.get(parent)).map(|pool| pool.name.clone()),
            attempts: tally.attempts,
            granted: tally.granted,
            told: counts_by(&tally.told),
            peak: Some(tally.peak),
            over: Some(tally.over),
            ..ScopeRow::of(&authority.ledger().used(id), &limits).refused(&tally.denied)
        }
    };
    tree.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::cac::{Admission, Charge, Class, Direction, Kind, Limits, Scope};
    use std::sync::Arc;

    /// The calls of three nodes.
    fn authority(calls: u64) -> Authority {
        let tree = Arc::new(Tree::new(vec![Scope::new(Kind::TrunkGroup, "north")]).unwrap());
        let charge = tree.charge(ScopeId(0), None, Charge::new(Direction::Inbound, Class::Normal, 80));
        let mut authority = Authority::new(tree, vec![Limits::default()], 10_000);
        for number in 0..calls {
            let sc = number as u32 % 3;
            let key = Key { sc: ScId(sc), guid: Guid { sc, incarnation: 1, number }, leg: Leg::ALL[number as usize % 2] };
            assert!(authority.fact(Time::ZERO, key, charge, Admission::ALL[number as usize % 4], 0));
        }
        authority
    }

    /// However many calls there are, one look is at a few of them; together they are all, each once, though calls end meanwhile.
    #[test]
    fn calls_are_shown_page_by_page() {
        let mut authority = authority(3_000);
        let (mut seen, mut after, mut looks) = (Vec::new(), None, 0);
        loop {
            let page = page(Time::ZERO, &authority, Which::Node(ScId(1)), after);
            assert!(page.rows.len() <= PAGE && page.rows.iter().all(|row| row.node == 1));
            seen.extend(page.rows.iter().map(|row| row.guid.clone()));
            looks += 1;
            let Some(Cursor(last)) = page.next else { break };
            // As it travels; and the call it names is gone before the next look.
            let text = serde_json::to_string(&page.next).unwrap();
            after = serde_json::from_str(&text).unwrap();
            assert_eq!(after, page.next, "{text}");
            authority.release(&last);
        }
        seen.sort();
        seen.dedup();
        assert_eq!((seen.len(), looks), (1_000, 1_000usize.div_ceil(PAGE)));
    }

    #[test]
    fn a_list_of_calls_is_of_all_pages() {
        let authority = authority(3_000);
        let list = |name: Option<&str>, state| list(name, state, |after| Ok(page(Time::ZERO, &authority, Which::of(name), after)));
        assert_eq!(list(None, None).map(|list| (list.rows.len(), list.left_out)), Ok((3_000, 0)));
        assert_eq!(list(Some("00000002-*"), Some("learning")).map(|list| list.rows.len()), Ok(250));
        assert_eq!(list(Some("00000002-00000001-0000000000000005"), None).map(|list| list.rows.len()), Ok(1));
        assert_eq!(list(Some("00000009-*"), None).map(|list| list.rows.len()), Ok(0));
        assert!(list(None, Some("lost")).is_err());
    }

    #[test]
    fn a_guid_is_read_as_it_is_shown() {
        let shown = Guid { sc: 7, incarnation: 0xffff_ffff, number: 1 << 56 | 9 };
        assert_eq!(guid(&shown.to_string()), Some(shown));
        for wrong in ["", "north", "00000007-ffffffff", "00000007-ffffffff-010000000000000g", "00000007-ffffffff-0100000000000009-1"] {
            assert_eq!(guid(wrong), None, "{wrong}");
        }
    }
}
