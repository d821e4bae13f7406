//! `show cac`: what is in use of each scope, and why calls were refused.

use super::Gateway;
use super::lists::pick;
use super::names::{self, endpoint_name};
use super::protocol::{Failure, FailureKind};
use super::view::{List, Row};
use crate::host::cluster::view::{self as cluster, CcbRow, Cursor, LinkView, Page, Which};
use crate::proto::cac::{Amount, Amounts, Cause, Class, Denied, Limits, ScId, ScopeId, UNLIMITED};
use crate::proto::core::{AdmissionView, Answer, Ask, DenialView};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Refusals told at the most, of all cores together.
const DENIALS_MAX: usize = 64;

/// Admission.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Admission {
    /// The scopes.
    pub scopes: List<ScopeRow>,
    /// The latest refusals, newest first.
    pub denials: Vec<DenialRow>,
    /// In a cluster: the link to the central node. The uses above are this gateway's, the limits those of all.
    #[serde(default)]
    pub link: Option<Box<LinkView>>,
}

/// Calls of one class refused for one reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RefusedRow {
    /// What lacked.
    pub why: String,
    /// `normal`, `priority` or `emergency`.
    pub class: String,
    /// How many.
    pub count: u64,
}

/// One scope: what is in use of it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ScopeRow {
    /// Its name.
    pub name: String,
    /// `trunk-group`, `pool`, `zone` or `peer`.
    pub kind: String,
    /// The pool above it.
    pub pool: Option<String>,
    /// Calls, and how many there may be.
    pub calls: u32,
    /// See `calls`.
    pub calls_limit: Option<u32>,
    /// Calls from the trunk.
    pub inbound: u32,
    /// See `inbound`.
    pub inbound_limit: Option<u32>,
    /// Calls to the trunk.
    pub outbound: u32,
    /// See `outbound`.
    pub outbound_limit: Option<u32>,
    /// Bandwidth in kbit/s.
    pub kbits: u32,
    /// See `kbits`.
    pub kbits_limit: Option<u32>,
    /// Priority calls among them.
    pub priority: u32,
    /// Emergency calls among them.
    pub emergency: u32,
    /// New calls that asked for room here since the start, and those that got it; at the central node of a cluster by being asked for.
    #[serde(default)]
    pub attempts: u64,
    /// See `attempts`.
    #[serde(default)]
    pub granted: u64,
    /// At the central node of a cluster: calls told of, by who let them in.
    #[serde(default)]
    pub told: BTreeMap<String, u64>,
    /// Calls refused here since the start, by why.
    pub refused: BTreeMap<String, u64>,
    /// The same by class.
    #[serde(default)]
    pub refused_by: Vec<RefusedRow>,
    /// So much is in use that cores ask for each call.
    pub scarce: bool,
    /// At the central node of a cluster: the most calls there were at a time.
    #[serde(default)]
    pub peak: Option<u32>,
    /// At the central node of a cluster: the most calls there were above the limit.
    #[serde(default)]
    pub over: Option<u32>,
}

impl ScopeRow {
    /// What is in use, and what is allowed.
    pub fn of(used: &Amounts, limits: &Limits) -> ScopeRow {
        let (calls, normal, priority) = (used.get(Amount::Calls), used.get(Amount::Normal), used.get(Amount::Priority));
        let limit = |limit: u32| (limit < UNLIMITED).then_some(limit);
        ScopeRow {
            calls,
            calls_limit: limit(limits.calls),
            inbound: used.get(Amount::Inbound),
            inbound_limit: limit(limits.inbound),
            outbound: used.get(Amount::Outbound),
            outbound_limit: limit(limits.outbound),
            kbits: used.get(Amount::Kbits),
            kbits_limit: limit(limits.kbits),
            priority,
            emergency: calls.saturating_sub(normal + priority),
            ..ScopeRow::default()
        }
    }

    /// The same with what was refused.
    pub fn refused(mut self, denied: &Denied) -> ScopeRow {
        for cause in Cause::ALL {
            for class in Class::ALL {
                let (why, count) = (cause.text().to_owned(), denied.of(cause, class));
                if count > 0 {
                    *self.refused.entry(why.clone()).or_default() += count;
                    self.refused_by.push(RefusedRow { why, class: class.name().into(), count });
                }
            }
        }
        self
    }
}

impl Row for ScopeRow {
    const STATES: &'static [&'static str] = &["idle", "busy", "full"];

    fn name(&self) -> &str {
        &self.name
    }

    fn is(&self, state: &str) -> bool {
        let at = |used: u32, limit: Option<u32>| limit.is_some_and(|limit| used >= limit);
        match state {
            "idle" => self.calls == 0,
            "busy" => self.calls > 0,
            _ => at(self.calls, self.calls_limit) || at(self.inbound, self.inbound_limit) || at(self.outbound, self.outbound_limit),
        }
    }
}

/// One call that was refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DenialRow {
    /// When, in seconds before now.
    pub age_s: u64,
    /// The endpoint.
    pub endpoint: String,
    /// The call.
    pub call: String,
    /// `in` or `out`.
    pub direction: String,
    /// `normal`, `priority` or `emergency`.
    pub class: String,
    /// The bandwidth it wanted, in kbit/s.
    pub kbits: u32,
    /// The scope without room.
    pub scope: String,
    /// What lacked.
    pub why: String,
    /// What was in use of it.
    pub used: u32,
    /// What may be, for such a call.
    pub limit: u32,
}

impl Gateway {
    /// The scopes whose names fit, with the latest refusals in them.
    pub(super) fn admission(&self, name: Option<&str>, state: Option<&str>, silent: &mut Vec<u8>) -> Result<Admission, Failure> {
        let views: Vec<AdmissionView> = self.ask_owners(&Ask::Admission, silent).into_iter().filter_map(view).collect();
        let limits = crate::config::limits(&self.config());
        let tree = self.cores.plan.admission.as_ref().map(|admission| &admission.tree);
        let row = |(id, scope): (ScopeId, &crate::proto::cac::Scope)| {
            let place = usize::from(id.0);
            let limits = limits.get(place).copied().unwrap_or_default();
            ScopeRow {
                name: scope.name.clone(),
                kind: scope.kind.name().into(),
                pool: scope.parent.and_then(|parent| tree?.get(parent)).map(|pool| pool.name.clone()),
                ..scope_row(&views, place, &limits)
            }
        };
        let rows = tree.into_iter().flat_map(|tree| tree.iter()).map(row).collect();
        let now = self.clock.now();
        let scope_name = |id: ScopeId| tree.and_then(|tree| tree.get(id)).map_or(String::new(), |scope| scope.name.clone());
        let mut denials: Vec<&DenialView> = views.iter().flat_map(|view| &view.denials).collect();
        denials.sort_by_key(|denial| std::cmp::Reverse(denial.at));
        let denials = denials.into_iter().map(|view| DenialRow {
            age_s: now.since(view.at).as_secs(),
            endpoint: view.endpoint.map_or(String::new(), |endpoint| endpoint_name(&self.cores.plan.topology, endpoint)),
            call: view.call.to_string(),
            direction: view.charge.direction.name().into(),
            class: view.charge.class.name().into(),
            kbits: view.charge.kbits,
            scope: scope_name(view.denial.scope),
            why: view.denial.cause.text().into(),
            used: view.denial.used,
            limit: view.denial.limit,
        });
        let denials = denials.filter(|row| name.is_none_or(|pattern| names::fits(pattern, &row.scope))).take(DENIALS_MAX).collect();
        let link = match &self.cluster {
            Some(cluster) => Some(Box::new(cluster.view().ok_or_else(silent_link)?)),
            None => None,
        };
        Ok(Admission { scopes: pick(rows, name, state)?, denials, link })
    }
}

fn silent_link() -> Failure {
    Failure::new(FailureKind::Silent, "the link to the central node does not answer")
}

impl Gateway {
    /// The calls of this gateway as the cluster has them: all whose GUIDs fit, or one.
    pub(super) fn ccbs(&self, name: Option<&str>, state: Option<&str>) -> Result<List<CcbRow>, Failure> {
        let none = || Failure::new(FailureKind::Refused, "this gateway is in no cluster: cac.mode is not \"cluster\"");
        let cluster = self.cluster.as_ref().ok_or_else(none)?;
        let which = Which::of(name);
        cluster::list(name, state, |after| cluster.page(which, after).ok_or_else(silent_link))
    }

    /// Some of them.
    pub(super) fn calls(&self, node: u32, after: Option<Cursor>) -> Result<Page, Failure> {
        let none = || Failure::new(FailureKind::Refused, "this gateway is in no cluster: cac.mode is not \"cluster\"");
        self.cluster.as_ref().ok_or_else(none)?.page(Which::Node(ScId(node)), after).ok_or_else(silent_link)
    }
}

fn view((_, answer): (crate::proto::base::CoreId, Answer)) -> Option<AdmissionView> {
    match answer {
        Answer::Admission(view) => Some(view),
        _ => None,
    }
}

/// The numbers of one scope over all cores.
fn scope_row(views: &[AdmissionView], place: usize, limits: &Limits) -> ScopeRow {
    let sum = |of: fn(&AdmissionView) -> &Vec<Amounts>| {
        views.iter().filter_map(|view| of(view).get(place)).fold(Amounts::ZERO, |sum, amounts| sum.plus(amounts))
    };
    let denied = views.iter().filter_map(|view| view.denied.get(place)).fold(Denied::default(), Denied::plus);
    let granted = views.iter().filter_map(|view| view.begun.get(place)).sum();
    let row = ScopeRow {
        scarce: views.iter().any(|view| view.given.get(place).is_some_and(|(_, scarce)| *scarce)),
        ..ScopeRow::of(&sum(|view| &view.used), limits)
    };
    let row = row.refused(&denied);
    ScopeRow { granted, attempts: granted + row.refused.values().sum::<u64>(), ..row }
}
