//! The calls of a gateway for its next life (`tollgate cac dump` and `restore`): what they are charged goes on counting, the calls do not.
//!
//! The calls of a gateway end with its process, and without this its next life tells the central node that it has none. A gateway that
//! is given what its last life had tells these, and the central node removes exactly those that are missing (SC switchover). They have no
//! connection here: somebody else has them, or is clearing them at the far ends of the trunks, which are busy until then. So they count
//! until an operator releases them, or for as long as `restore` was told.

use super::staged;
use super::view::CcbRow;
use crate::config::{self, Config};
use crate::proto::base::Time;
use crate::proto::cac::message::Told;
use crate::proto::cac::node::{Event, Node};
use crate::proto::cac::{Admission, Charge, Class, Direction, Guid, KBITS_MAX, Leg, Tree};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Ends told at a time, so that the calls of now are not kept waiting by thousands of others.
pub const ENDS_PER_STEP: usize = 64;
/// Reports that may wait while there are ends to be told.
const REPORTS_MAX: usize = 1024;

/// What `cac dump` prints.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    /// The gateway.
    pub node: u32,
    /// How long the calls count in the next life, in seconds; 0: until they are released.
    #[serde(default)]
    pub for_s: u64,
    /// When they were put there for the next start, in seconds since 1970; 0: they are not.
    #[serde(default)]
    pub put_s: u64,
    /// The calls.
    pub calls: Vec<CcbRow>,
}

impl Saved {
    /// The calls as the machines know them, of the gateway `node` with the scopes of `tree`.
    ///
    /// # Errors
    /// When they are not those of this gateway.
    pub fn told(&self, node: u32, tree: &Tree) -> Result<Vec<Told>> {
        if self.node != node {
            bail!("these are calls of node {}, and this is node {node}", self.node);
        }
        self.calls.iter().map(|row| told(row, node, tree).with_context(|| format!("call {}", row.guid))).collect()
    }
}

fn told(row: &CcbRow, node: u32, tree: &Tree) -> Result<Told> {
    let guid = super::view::guid(&row.guid).context("is no GUID")?;
    if guid.sc != node || row.node != node {
        bail!("is a call of node {}", row.node);
    }
    let pick = |what: &str, words: &[&str], word: &str| {
        words.iter().position(|known| *known == word).with_context(|| format!("{what} \"{word}\" is none"))
    };
    let leg = [Leg::Ingress, Leg::Egress][pick("leg", &["ingress", "egress"], &row.leg)?];
    let directions = [Direction::Inbound, Direction::Outbound];
    let direction = directions[pick("direction", &directions.map(Direction::name), &row.direction)?];
    let classes = [Class::Normal, Class::Priority, Class::Emergency];
    let class = classes[pick("class", &classes.map(Class::name), &row.class)?];
    let admission = Admission::ALL[pick("admitted", &Admission::ALL.map(Admission::name), &row.admitted)?];
    if row.kbits > KBITS_MAX {
        bail!("{} kbit/s is more than a call can have ({KBITS_MAX})", row.kbits);
    }
    let mut charge = Charge::new(direction, class, row.kbits);
    for name in &row.scopes {
        let scope = tree.iter().find(|(_, scope)| scope.name == *name).with_context(|| format!("there is no scope {name}"))?;
        charge.add(scope.0);
    }
    if charge.is_empty() {
        bail!("it counts nowhere");
    }
    Ok(Told { guid, leg, charge, admission })
}

/// Checks what was saved against the file of its gateway, and puts it where the next start of that gateway takes it. `running`: the
/// operator socket of the gateway, which may run; `now`: seconds since 1970.
///
/// # Errors
/// When these are not calls of this gateway, when its file does not say where they would be looked for, or what the system says.
pub fn restore(config: &Config, running: &Path, saved: &str, keep: Duration, now: u64) -> Result<String> {
    let tree = config::tree(config).context("this gateway has no [[scope]] to count in")?;
    if config.cac.mode != config::CacMode::Cluster {
        bail!("this is not the file of a gateway in a cluster: cac.mode is not \"cluster\"");
    }
    let mut saved: Saved = serde_json::from_str(saved).context("not what `tollgate cac dump` prints")?;
    (saved.for_s, saved.put_s) = (keep.as_secs(), now);
    let calls = saved.told(config.cac.node, &tree)?.len();
    let place = staged::place(config).context(
        "operator.socket is \"auto\", that is somewhere else for everybody who starts a gateway: set it, for the calls are put beside it",
    )?;
    staged::put(&place, &saved)?;
    let until = if keep.is_zero() { "until `tollgate cac release`".to_owned() } else { format!("for {} s", keep.as_secs()) };
    let ends = match UnixStream::connect(running) {
        Ok(_) => "; the gateway that runs gives no place back when it ends",
        Err(_) => "",
    };
    let within = staged::FRESH_FOR.as_secs() / 60;
    let node = config.cac.node;
    Ok(format!("{}: {calls} calls will count at the next start of node {node} within {within} minutes, {until}{ends}", place.display()))
}

/// Calls of the last life that count in this one.
#[derive(Debug, Default)]
pub struct Restored {
    calls: VecDeque<(Guid, Leg)>,
    until: Time,
}

impl Restored {
    /// Gives them to the node of this life.
    pub fn begin(now: Time, node: &mut Node, told: Vec<Told>, keep: Duration) -> Restored {
        let calls = told.iter().map(|told| (told.guid, told.leg)).collect();
        node.restore(now, told);
        Restored { calls, until: if keep.is_zero() { Time::NEVER } else { now + keep } }
    }

    /// How many there are.
    pub fn left(&self) -> usize {
        self.calls.len()
    }

    /// When some are to end; while too much waits, the central node's answer comes first.
    pub fn deadline(&self, node: &Node) -> Time {
        if self.calls.is_empty() || node.queued().1 >= REPORTS_MAX { Time::NEVER } else { self.until }
    }

    /// The next end to be told, when their time is over and not too much waits.
    pub fn next_end(&mut self, now: Time, node: &Node) -> Option<Event> {
        if self.until > now || node.queued().1 >= REPORTS_MAX {
            return None;
        }
        self.calls.pop_front().map(|(guid, leg)| Event::End(guid, leg))
    }

    /// All of them are over: how many.
    pub fn end_all(&mut self, now: Time) -> usize {
        self.until = now;
        self.calls.len()
    }

    /// The legs of one of them, which are over.
    pub fn take(&mut self, guid: Guid) -> Vec<(Guid, Leg)> {
        let (gone, left): (VecDeque<_>, VecDeque<_>) = self.calls.drain(..).partition(|(its, _)| *its == guid);
        self.calls = left;
        gone.into()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::proto::cac::{Kind, ScId, Scope};
    use std::sync::Arc;

    fn tree() -> Tree {
        Tree::new(vec![Scope::new(Kind::Pool, "carrier"), Scope::new(Kind::TrunkGroup, "north")]).unwrap()
    }

    fn row(number: u64) -> CcbRow {
        CcbRow {
            guid: Guid { sc: 3, incarnation: 9, number }.to_string(),
            leg: "egress".into(),
            node: 3,
            scopes: vec!["north".into(), "carrier".into()],
            direction: "out".into(),
            class: "priority".into(),
            kbits: 80,
            admitted: "granted".into(),
            age_s: 12,
            changes: 0,
            changed_s: None,
        }
    }

    /// One call of node 3 in the pool `carrier`, for seven seconds.
    pub fn saved() -> Saved {
        Saved { node: 3, for_s: 7, put_s: 0, calls: vec![CcbRow { scopes: vec!["carrier".into()], ..row(1) }] }
    }

    /// Only calls of this gateway, in scopes it has, count for it.
    #[test]
    fn what_was_saved_is_read_or_refused() {
        let saved = |change: fn(&mut CcbRow)| {
            let mut row = row(1);
            change(&mut row);
            Saved { node: 3, for_s: 0, put_s: 0, calls: vec![row] }
        };
        let told = saved(|_| {}).told(3, &tree()).unwrap();
        assert_eq!((told.len(), told[0].leg, told[0].charge.class), (1, Leg::Egress, Class::Priority));
        assert_eq!(told[0].charge.scopes().map(|scope| scope.0).collect::<Vec<_>>(), [1, 0]);
        let refused = |saved: Saved, words: &str| {
            let error = format!("{:#}", saved.told(3, &tree()).unwrap_err());
            assert!(error.contains(words), "{error}");
        };
        refused(Saved { node: 4, ..saved(|_| {}) }, "calls of node 4");
        refused(saved(|row| row.node = 4), "call of node 4");
        refused(saved(|row| row.guid = "1".into()), "is no GUID");
        refused(saved(|row| row.scopes = vec!["south".into()]), "no scope south");
        refused(saved(|row| row.scopes.clear()), "counts nowhere");
        refused(saved(|row| row.class = "vip".into()), "class \"vip\"");
        refused(saved(|row| row.kbits = u32::MAX), "more than a call can have");
    }

    /// They count for as long as was said, or until they are released; and end a few at a time.
    #[test]
    fn restored_calls_end_when_their_time_is_over() {
        use crate::proto::cac::node::Settings;
        let tree = Arc::new(tree());
        let begin = |keep| {
            let mut node = Node::new(Time::ZERO, Settings::new(ScId(3), 10), tree.clone(), Vec::new(), Vec::new());
            let calls = (1..=4).map(row).collect();
            let told = Saved { node: 3, for_s: 0, put_s: 0, calls }.told(3, &tree).unwrap();
            let restored = Restored::begin(Time::ZERO, &mut node, told, keep);
            assert_eq!((node.calls().ledger().len(), restored.left()), (4, 4));
            (node, restored)
        };
        let (node, mut restored) = begin(Duration::from_secs(5));
        let due = Time::from_millis(5_000);
        assert_eq!((restored.deadline(&node), restored.next_end(Time::from_millis(4_999), &node)), (due, None));
        let ends: Vec<_> = std::iter::from_fn(|| restored.next_end(due, &node)).collect();
        assert_eq!((ends.len(), restored.deadline(&node)), (4, Time::NEVER));
        let (node, mut restored) = begin(Duration::ZERO);
        assert_eq!(restored.deadline(&node), Time::NEVER);
        assert_eq!(restored.take(Guid { sc: 3, incarnation: 9, number: 2 }).len(), 1);
        assert_eq!((restored.end_all(due), restored.deadline(&node)), (3, due));
        assert!(restored.next_end(due, &node).is_some());
    }
}
