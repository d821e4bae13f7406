//! What is wrong, or not as usual, in one list: `show alarms`, the metric and the log are made of it.

use super::Gateway;
use super::lead::{pattern_name, restart_row};
use super::names::facility_name;
use super::view::AlarmRow;
use crate::config;
use crate::proto::base::{AgentId, Time};
use crate::proto::cac::{Amount, ScopeId};
use crate::proto::core::{FacilitiesView, HeldView, LockoutView};
use crate::proto::plan::AgentSettings;
use crate::proto::restart::{Alarm, AnnouncementState, Severity};
use crate::proto::trunk::{Facility, T3Index};

/// One condition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    /// What it is about: a facility, a name of endpoints, an agent, a core, `gateway`.
    pub name: String,
    /// Its kind, in one word; there is one condition of a kind for each name.
    pub kind: &'static str,
    /// How grave it is.
    pub severity: Severity,
    /// In words.
    pub what: String,
    /// What its end means, in words.
    pub over: String,
    /// Since when, if that is known.
    pub since: Option<Time>,
    /// Another one explains it: shown, but not told in the log.
    pub explained: bool,
}

impl Condition {
    pub(super) fn new(name: impl Into<String>, kind: &'static str, severity: Severity, what: impl Into<String>) -> Condition {
        let what = what.into();
        let over = format!("{what} is over");
        Condition { name: name.into(), kind, severity, what, over, since: None, explained: false }
    }

    pub(super) fn over(self, over: &str) -> Condition {
        Condition { over: over.into(), ..self }
    }

    pub(super) fn since(self, since: Time) -> Condition {
        Condition { since: Some(since), ..self }
    }

    /// As `show alarms` lists it.
    pub fn row(&self, now: Time) -> AlarmRow {
        AlarmRow {
            name: self.name.clone(),
            kind: self.kind.into(),
            severity: self.severity_word().into(),
            what: self.what.clone(),
            age_s: self.since.map(|since| now.since(since).as_secs()),
        }
    }

    /// `critical`, `major` or `minor`.
    pub fn severity_word(&self) -> &'static str {
        match self.severity {
            Severity::Minor => "minor",
            Severity::Major => "major",
            Severity::Critical => "critical",
        }
    }
}

impl Gateway {
    /// The central node of the cluster does not answer (R45).
    fn central_lost(&self) -> Option<Condition> {
        let cluster = self.cluster.as_ref()?;
        let since = cluster.lost_since()?;
        let at: Vec<String> = cluster.centrals().iter().map(ToString::to_string).collect();
        let what = format!("the central node at {} does not answer: calls are admitted by cac.disconnected", at.join(" or "));
        Some(Condition::new("gateway", "central-lost", Severity::Major, what).since(since).over("the central node answers"))
    }

    /// Cores that are silent, and everything else, as the lead core said last when it does not answer now.
    pub(super) fn conditions(&self, silent: &mut Vec<u8>) -> Vec<Condition> {
        let now = self.clock.now();
        let core = |(core, silence): (crate::proto::base::CoreId, std::time::Duration)| {
            let what = format!("silent for {} ms: what it owns is not served", silence.as_millis());
            Condition::new(format!("core {}", core.0), "core-silent", Severity::Critical, what)
                .since(Time(now.0.saturating_sub(silence.as_nanos() as u64)))
        };
        let mut list: Vec<_> = self.cores.stalled(now, self.config().limits.stall_alarm).map(core).collect();
        list.extend(self.unresolved());
        list.extend(self.central_lost());
        list.extend(self.abandoned(silent));
        list.extend(self.facilities_as_known(silent).map(|view| self.conditions_of(&view)).unwrap_or_default());
        list
    }

    /// Agents whose names have no answer of use, and what that means for them.
    pub(super) fn unresolved(&self) -> Vec<Condition> {
        let config = self.config();
        let settings = (self.settings)(&config, &self.known());
        let troubles = self.troubles();
        let condition = |(agent, effective): (&config::Agent, &AgentSettings)| {
            let failing = || troubles.iter().filter(|trouble| agent.hosts.iter().any(|host| host.name == trouble.name));
            let mut words: Vec<_> = failing().map(|trouble| format!("{}: {}", trouble.name, trouble.why)).collect();
            let severity = match effective.notify.is_empty() {
                true => {
                    words.insert(0, "has no address: it is told nothing".to_owned());
                    Severity::Major
                }
                false if words.is_empty() => return None,
                false => {
                    words.push("the addresses known stay".to_owned());
                    Severity::Minor
                }
            };
            let condition = Condition::new(&agent.name, "unresolved", severity, words.join("; ")).over("its names have addresses");
            Some(match failing().map(|trouble| trouble.since).min() {
                Some(since) => condition.since(since),
                None => condition,
            })
        };
        config.agents.iter().zip(&settings.agents).filter_map(condition).collect()
    }

    /// What the lead core tells of.
    pub(super) fn conditions_of(&self, view: &FacilitiesView) -> Vec<Condition> {
        let mut list: Vec<_> = view.alarms.iter().map(|alarm| self.failure(alarm)).collect();
        for &(agent, port, since) in &view.unanswering {
            let what = "leaves what the gateway sends unanswered until it is given up, for some endpoints (show endpoints --state disconnected) or all; it is tried again ever more slowly";
            list.push(
                Condition::new(self.agent_name(agent, port), "agent-silent", Severity::Major, what).over("answers again").since(since),
            );
        }
        list.extend(view.announcements.iter().filter_map(|row| self.refused(row)));
        if view.draining {
            let what = "draining: no new calls are taken";
            let draining = Condition::new("gateway", "draining", Severity::Minor, what).over("new calls are taken again");
            list.push(Condition { since: view.draining_since, ..draining });
        }
        list.extend(self.held(&view.held));
        list.extend(view.lockouts.iter().map(|lockout| self.locked_out(lockout)));
        list.extend(view.warnings.iter().filter_map(|&(scope, amount)| self.nearly_full(scope, amount)));
        list
    }

    /// Much of what a scope of admission may have is in use.
    fn nearly_full(&self, scope: ScopeId, amount: Amount) -> Option<Condition> {
        let name = &self.cores.plan.admission.as_ref()?.tree.get(scope)?.name;
        let (kind, what) = match amount {
            Amount::Inbound => ("admission-in", "calls from the trunk"),
            Amount::Outbound => ("admission-out", "calls to the trunk"),
            Amount::Kbits => ("admission-bandwidth", "bandwidth"),
            Amount::Calls | Amount::Normal | Amount::Priority => ("admission-calls", "calls"),
        };
        let what = format!("{what}: so much of the limit is in use that it warns (scope.warn_percent)");
        Some(Condition::new(format!("scope {name}"), kind, Severity::Minor, what).over("use is below scope.clear_percent again"))
    }

    fn failure(&self, alarm: &Alarm) -> Condition {
        let name = facility_name(&self.cores.plan.topology, alarm.facility);
        let explained = alarm.covered && matches!(alarm.facility, Facility::Span(_));
        let what = format!("{}{}", alarm.failure.name(), if explained { " (explained by its T3)" } else { "" });
        Condition { explained, ..Condition::new(name, "failure", alarm.severity, what).since(alarm.since) }
    }

    /// A RestartInProgress that is refused for good: somebody has to look at the agent.
    fn refused(&self, (view, agent, port): &(crate::proto::restart::AnnouncementView, AgentId, u16)) -> Option<Condition> {
        if view.state != AnnouncementState::Stopped || view.reply == 0 {
            return None;
        }
        let row = restart_row(&self.cores.plan, self.clock.now(), view, *port);
        let agent = self.agent_name(*agent, *port);
        let what = match view.reply {
            521 => format!("{agent} redirected the {} of {} endpoints to no agent that is configured (521)", row.method, row.endpoints),
            code => format!("{agent} refused the {} of {} endpoints with {code}", row.method, row.endpoints),
        };
        let name = pattern_name(&self.cores.plan, &view.pattern);
        Some(Condition::new(name, "restart-refused", Severity::Major, what).over("the restart is told again").since(view.sent))
    }

    /// What operators hold out of service: a T3 as one when all its spans are.
    fn held(&self, held: &[HeldView]) -> Vec<Condition> {
        let topology = &self.cores.plan.topology;
        let whole = |t3: T3Index| {
            let spans = topology.t3_spans(t3);
            let count = spans.len();
            let blocked = held.iter().filter(|held| spans.contains(&held.span.0) && held.blocked == held.endpoints).count();
            count > 0 && blocked == count
        };
        let t3s: Vec<T3Index> = (0..topology.t3_count() as u16).map(T3Index).filter(|&t3| whole(t3)).collect();
        let all = t3s.iter().map(|&t3| {
            let spans = topology.t3_spans(t3);
            // The last of its spans made it whole.
            let since = held.iter().filter(|held| spans.contains(&held.span.0)).filter_map(|held| held.since).max();
            let name = facility_name(topology, Facility::T3(t3));
            Condition { since, ..Condition::new(name, "blocked", Severity::Minor, "blocked by an operator") }
        });
        let single = held.iter().filter(|held| topology.span(held.span).is_none_or(|span| span.t3.is_none_or(|t3| !t3s.contains(&t3))));
        let single = single.map(|held| {
            let HeldView { span, blocked, leaving, endpoints, since } = *held;
            let what = match (blocked, leaving) {
                (blocked, 0) if blocked == endpoints => "blocked by an operator".into(),
                (blocked, 0) => format!("{blocked} of {endpoints} endpoints blocked by an operator"),
                (0, leaving) => format!("{leaving} of {endpoints} endpoints leaving service by an operator"),
                (blocked, leaving) => format!("{blocked} of {endpoints} endpoints blocked, {leaving} leaving by an operator"),
            };
            Condition { since, ..Condition::new(facility_name(topology, Facility::Span(span)), "blocked", Severity::Minor, what) }
        });
        all.chain(single).map(|condition| condition.over("given back by an operator")).collect()
    }

    /// Far ends hold lines off-hook though their calls are over.
    fn locked_out(&self, lockout: &LockoutView) -> Condition {
        let LockoutView { span, locked, endpoints, since } = *lockout;
        let severity = if locked == endpoints { Severity::Major } else { Severity::Minor };
        let what = format!("{locked} of {endpoints} endpoints are locked out: the far end stays off-hook after its call");
        let name = facility_name(&self.cores.plan.topology, Facility::Span(span));
        Condition::new(name, "locked-out", severity, what).over("every far end is on-hook again").since(since)
    }

    /// An agent, with the port a command named for it.
    pub(super) fn agent_name(&self, agent: AgentId, port: u16) -> String {
        let config = self.config();
        let name = config.agents.get(usize::from(agent.0)).map_or_else(|| format!("agent {}", agent.0), |agent| agent.name.clone());
        if port == 0 { name } else { format!("{name} (port {port})") }
    }
}
