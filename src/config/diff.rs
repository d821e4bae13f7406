//! What a reload would change.

use std::collections::BTreeSet;

use super::defaults::*;
use super::file::Section;
use super::types::T1Framing;
use super::valid::{Config, Span};
use super::value::Written;

/// One difference between two configurations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The key; tables of a list by name, such as `agent[ca].notify` or `span[ds/ds3-1]`.
    pub key: String,
    /// The old value as written in a file; empty for what is new.
    pub old: String,
    /// The new value; empty for what is gone.
    pub new: String,
    /// Whether it takes effect while calls are up; otherwise it needs a restart.
    pub reloadable: bool,
}

impl std::fmt::Display for Change {
    /// `timers.t_max: "20s" -> "15s"`, with a mark when it needs a restart.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = |value: &str| if value.is_empty() { "none".to_owned() } else { value.to_owned() };
        let mark = if self.reloadable { "" } else { " (needs a restart)" };
        write!(f, "{}: {} -> {}{mark}", self.key, word(&self.old), word(&self.new))
    }
}

/// Every difference, in the order of the register.
pub fn diff(old: &Config, new: &Config) -> Vec<Change> {
    let mut changes = Vec::new();
    section(&mut changes, Gateway::TABLE, &old.gateway, &new.gateway);
    agents(&mut changes, &old.agents, &new.agents);
    section(&mut changes, Dns::TABLE, &old.dns, &new.dns);
    section(&mut changes, Cores::TABLE, &old.cores, &new.cores);
    section(&mut changes, Transport::TABLE, &old.transport, &new.transport);
    section(&mut changes, Xdp::TABLE, &old.xdp, &new.xdp);
    section(&mut changes, SimCard::TABLE, &old.sim, &new.sim);
    section(&mut changes, CesopsnCard::TABLE, &old.cesopsn, &new.cesopsn);
    section(&mut changes, DahdiCard::TABLE, &old.dahdi, &new.dahdi);
    spans(&mut changes, &old.spans, &new.spans);
    h248(&mut changes, &old.h248, &new.h248);
    section(&mut changes, Cas::TABLE, &old.cas, &new.cas);
    section(&mut changes, Timers::TABLE, &old.timers, &new.timers);
    section(&mut changes, Limits::TABLE, &old.limits, &new.limits);
    section(&mut changes, Overload::TABLE, &old.overload, &new.overload);
    section(&mut changes, LoadControl::TABLE, &old.load_control, &new.load_control);
    section(&mut changes, Cac::TABLE, &old.cac, &new.cac);
    scopes(&mut changes, &old.scopes, &new.scopes);
    section(&mut changes, Operator::TABLE, &old.operator, &new.operator);
    section(&mut changes, Metrics::TABLE, &old.metrics, &new.metrics);
    section(&mut changes, Log::TABLE, &old.log, &new.log);
    changes
}

fn section<S: Section>(changes: &mut Vec<Change>, path: &str, old: &S, new: &S) {
    for ((setting, old), (_, new)) in old.show().into_iter().zip(new.show()) {
        if old != new {
            changes.push(Change { key: format!("{path}.{}", setting.key), old, new, reloadable: setting.reloadable });
        }
    }
}

/// Agents are the same when their names are; coming, going and their order are changes of their own.
fn agents(changes: &mut Vec<Change>, old: &[Agent], new: &[Agent]) {
    let change = |name: &str, old: String, new: String| Change { key: format!("agent[{name}]"), old, new, reloadable: true };
    for agent in old {
        match new.iter().find(|other| other.name == agent.name) {
            Some(other) => section(changes, &format!("agent[{}]", agent.name), agent, other),
            None => changes.push(change(&agent.name, agent.addresses.show(), String::new())),
        }
    }
    for agent in new.iter().filter(|agent| !old.iter().any(|other| other.name == agent.name)) {
        changes.push(change(&agent.name, String::new(), agent.addresses.show()));
    }
    let order = |these: &[Agent], others: &[Agent]| -> Vec<String> {
        these.iter().filter(|agent| others.iter().any(|other| other.name == agent.name)).map(|agent| agent.name.clone()).collect()
    };
    let (before, after) = (order(old, new), order(new, old));
    if before != after {
        changes.push(Change { key: "agent (order)".into(), old: before.join(", "), new: after.join(", "), reloadable: true });
    }
}

/// Scopes are the same when their names are. Their coming, going and order need a restart; limits do not.
fn scopes(changes: &mut Vec<Change>, old: &[ScopeEntry], new: &[ScopeEntry]) {
    let names = |scopes: &[ScopeEntry]| scopes.iter().map(|scope| scope.name.clone()).collect::<Vec<_>>();
    let (before, after) = (names(old), names(new));
    if before != after {
        changes.push(Change { key: "scope (names)".into(), old: before.join(", "), new: after.join(", "), reloadable: false });
    }
    for scope in old {
        if let Some(other) = new.iter().find(|other| other.name == scope.name) {
            section(changes, &format!("scope[{}]", scope.name), scope, other);
        }
    }
}

/// H.248 gateways are the same when their names are. Any change needs a restart.
fn h248(changes: &mut Vec<Change>, old: &[H248], new: &[H248]) {
    let names = |list: &[H248]| list.iter().map(|gateway| gateway.name.clone()).collect::<Vec<_>>();
    let (before, after) = (names(old), names(new));
    if before != after {
        changes.push(Change { key: "h248 (names)".into(), old: before.join(", "), new: after.join(", "), reloadable: false });
    }
    for gateway in old {
        if let Some(other) = new.iter().find(|other| other.name == gateway.name) {
            section(changes, &format!("h248[{}]", gateway.name), gateway, other);
        }
    }
}

/// Spans are the same when their names are. Any change needs a restart.
fn spans(changes: &mut Vec<Change>, old: &[Span], new: &[Span]) {
    let find = |spans: &[Span], name: &str| spans.iter().find(|span| span.name() == name).map(span_text).unwrap_or_default();
    let names: BTreeSet<(usize, String)> = old.iter().chain(new).map(|span| (usize::from(span.unit), span.name())).collect();
    for (_, name) in names {
        let (old, new) = (find(old, &name), find(new, &name));
        if old != new {
            changes.push(Change { key: format!("span[{name}]"), old, new, reloadable: false });
        }
    }
}

fn span_text(span: &Span) -> String {
    let Span { kind: _, unit: _, card, wire, dahdi, common_channel, law, signalling, direction, yields, agent, h248 } = span;
    let (card, law, agent) = (card.show(), law.show(), agent.show());
    let line = format!("signalling = {}, direction = {}, yields = {yields}", signalling.show(), direction.show());
    let wire = wire.as_ref().map_or(String::new(), |wire| format!(" ({wire})"));
    let driver = dahdi.as_ref().map_or(String::new(), |driver| {
        let framing = if driver.superframe { T1Framing::D4 } else { T1Framing::Esf };
        format!(" (dahdi_span = {}, framing = {}, transponder = {})", driver.number, framing.show(), driver.transponder.show())
    });
    let protocol = h248.as_ref().map_or(String::new(), |name| format!(", h248 = {}", name.show()));
    format!("{{ card = {card}{wire}{driver}, common_channel = {common_channel}, law = {law}, {line}, agent = {agent}{protocol} }}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::types::{Direction, Law, Signalling, SpanKind};

    #[test]
    fn nothing_changes_without_a_change() {
        assert_eq!(diff(&Config::default_embedded(), &Config::default_embedded()), []);
    }

    const LINE: &str = "signalling = \"clear\", direction = \"both\", yields = false";

    #[test]
    fn every_change_of_a_span_needs_a_restart() {
        let old = Config::default_embedded();
        let changes: [fn(&mut Span); 4] = [
            |span| span.signalling = Signalling::MfWink,
            |span| span.direction = Direction::Incoming,
            |span| span.yields = true,
            |span| span.common_channel = true,
        ];
        for change in changes {
            let mut new = old.clone();
            change(&mut new.spans[0]);
            let found = diff(&old, &new);
            assert!(found.len() == 1 && !found[0].reloadable, "{found:?}");
        }
    }

    #[test]
    fn changes_say_what_they_need() {
        let old = Config::default_embedded();
        let mut new = old.clone();
        new.timers.t_max = Duration::from_secs(15);
        new.cores.transport = 1;
        new.agents[0].max_response = 4096;
        new.agents.insert(0, Agent { name: "other".into(), ..old.agents[0].clone() });
        new.spans[0].law = Law::A;
        new.spans.push(Span { kind: SpanKind::T1, unit: 9, ..old.spans[0].clone() });
        let found: Vec<_> = diff(&old, &new).iter().map(Change::to_string).collect();
        let span = |law: &str| format!("{{ card = \"sim\", common_channel = false, law = \"{law}\", {LINE}, agent = \"ca\" }}");
        assert_eq!(
            found,
            [
                "agent[ca].max_response: 4000 -> 4096".into(),
                "agent[other]: none -> [\"127.0.0.1\"]".into(),
                "cores.transport: 0 -> 1 (needs a restart)".into(),
                format!("span[ds/ds3-1]: {} -> {} (needs a restart)", span("mu"), span("A")),
                format!("span[ds/ds1-9]: none -> {} (needs a restart)", span("mu")),
                "timers.t_max: \"20s\" -> \"15s\"".to_owned(),
            ]
        );
        new = old.clone();
        new.agents.push(Agent { name: "other".into(), ..old.agents[0].clone() });
        let two = new.clone();
        new.agents.swap(0, 1);
        assert_eq!(diff(&two, &new).iter().map(Change::to_string).collect::<Vec<_>>(), ["agent (order): ca, other -> other, ca"]);
    }
}
