//! Metrics of the central node (R44): what `show cac` says, for collectors.

use super::operators::Desk;
use super::view::{ClusterView, NodeRow};
use crate::host::control::metrics::family;
use crate::host::control::protocol::{Request, What};
use crate::host::control::server::Answers;
use crate::host::control::view::{Body, RefusedRow, ScopeRow};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use std::sync::Arc;

/// What is told on each request.
pub struct Metrics(pub(super) Arc<Desk>);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let request = Request::Show { what: What::Cac, name: None, state: None };
        // One that does not answer has no metrics, which collectors see.
        let Ok(Body::Cluster(view)) = self.0.answer(request, &mut Vec::new()) else { return Err(fmt::Error) };
        numbers(&mut encoder, &view)?;
        scopes(&mut encoder, &view.scopes.rows)?;
        nodes(&mut encoder, &view.nodes)
    }
}

fn numbers(encoder: &mut DescriptorEncoder, view: &ClusterView) -> fmt::Result {
    let counters = [
        ("cac_granted", "Requests granted", view.granted),
        ("cac_denied", "Requests refused", view.denied),
        ("cac_learning", "Requests answered that nothing is decided yet", view.learning),
        ("cac_busy", "Requests answered that there is too much to do", view.busy),
        ("cac_facts", "Calls told of that were admitted without this node", view.facts),
        ("cac_stale", "Messages of an old session, or older than the last", view.stale),
        ("cac_unreadable", "Messages that could not be read", view.unreadable),
        ("cac_differed", "Parts of calls found to differ from what their gateways have", view.differed),
        ("cac_refused_hellos", "Sessions refused to gateways", view.refused),
        ("cac_overrun", "Messages of connections that send more than their part", view.overrun),
        ("cac_strangers", "Connections refused for their key", view.strangers),
    ];
    for (name, help, value) in counters {
        ConstCounter::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)?;
    }
    let gauges = [
        ("cac_epoch", "The life of this central node, or of its lead", view.epoch),
        ("cac_active", "1 while it grants", u64::from(view.mode == "active")),
        ("cac_leads", "1 while it decides, granting or learning", u64::from(view.mode != "standby")),
        ("cac_load", "How busy it is, 0 to 3", u64::from(view.load)),
        ("cac_calls", "Call legs that count", view.calls as u64),
        ("cac_alarms", "What is wrong now: so many lines in show cac", view.alarms.len() as u64),
    ];
    for (name, help, value) in gauges {
        ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
    }
    Ok(())
}

/// What is in use of scopes, and who asked for it.
pub fn scopes(encoder: &mut DescriptorEncoder, rows: &[ScopeRow]) -> fmt::Result {
    let label = |row: &ScopeRow| [("scope", row.name.clone())];
    let mut gauge = |name, help, of: fn(&ScopeRow) -> Option<u32>| {
        let values = rows.iter().filter_map(|row| Some((label(row), ConstGauge::new(u64::from(of(row)?)))));
        family(encoder, name, help, values)
    };
    gauge("cac_scope_calls", "Calls in the scope", |row| Some(row.calls))?;
    gauge("cac_scope_limit", "Calls there may be", |row| row.calls_limit)?;
    gauge("cac_scope_kbits", "Bandwidth in use, kbit/s", |row| Some(row.kbits))?;
    gauge("cac_scope_peak", "The most calls at a time", |row| row.peak)?;
    gauge("cac_scope_overshoot", "Calls above the limit", |row| Some(row.calls.saturating_sub(row.calls_limit?)))?;
    gauge("cac_scope_overshoot_peak", "The most calls above the limit at a time", |row| row.over)?;
    let mut counter =
        |name, help, of: fn(&ScopeRow) -> u64| family(encoder, name, help, rows.iter().map(|row| (label(row), ConstCounter::new(of(row)))));
    counter("cac_scope_attempts", "New calls that asked for room", |row| row.attempts)?;
    counter("cac_scope_granted", "Those that got it", |row| row.granted)?;
    let told = rows.iter().flat_map(|row| {
        row.told.iter().map(move |(by, count)| ([("scope", row.name.clone()), ("by", by.clone())], ConstCounter::new(*count)))
    });
    family(encoder, "cac_scope_told", "Calls told of, by who let them in", told)?;
    let labels = |row: &ScopeRow, by: &RefusedRow| [("scope", row.name.clone()), ("why", by.why.clone()), ("class", by.class.clone())];
    let refused = rows.iter().flat_map(|row| row.refused_by.iter().map(move |by| (labels(row, by), ConstCounter::new(by.count))));
    family(encoder, "cac_scope_refused", "Calls refused, by why and class", refused)
}

fn nodes(encoder: &mut DescriptorEncoder, rows: &[NodeRow]) -> fmt::Result {
    let label = |row: &NodeRow| [("node", row.node.to_string())];
    let mut gauge =
        |name, help, of: fn(&NodeRow) -> u64| family(encoder, name, help, rows.iter().map(|row| (label(row), ConstGauge::new(of(row)))));
    gauge("cac_node_in_sync", "1 while all calls of the gateway are known", |row| u64::from(row.state == "in-sync"))?;
    gauge("cac_node_calls", "Call legs of the gateway that count", |row| row.calls as u64)
}
