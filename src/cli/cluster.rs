//! A cluster as text: the central node, a gateway's link, and the calls that count.

use super::table::Table;
use tollgate::host::cluster::view::{CcbRow, ClusterView, LinkView, QuotaRow};

/// `show cac` of the central node.
pub fn central(view: &ClusterView) -> String {
    let etcd = view.etcd.as_ref().map_or(String::new(), |etcd| format!(", of a pair, etcd {etcd}"));
    let dry = if view.dry_run { ", dry run: limits refuse nothing" } else { "" };
    let mut nodes = Table::new(&["NODE", "STATE", "SINCE", "CALLS", "LIFE", "SESSION", "DRAINED"]);
    for row in &view.nodes {
        nodes.row([
            row.node.to_string(),
            row.state.clone(),
            row.lost_s.map_or(String::new(), |seconds| format!("{seconds} s")),
            row.calls.to_string(),
            row.incarnation.to_string(),
            row.session.to_string(),
            if row.drained { "yes".into() } else { String::new() },
        ]);
    }
    let mut offenders = Table::new(&["REFUSED MOST", "SCOPE", "IN", "OUT", "FIRST", "LAST"]);
    for row in &view.offenders {
        offenders.row([
            format!("node {}", row.node),
            row.scope.clone(),
            row.refused_in.to_string(),
            row.refused_out.to_string(),
            format!("{} s ago", row.first_s),
            format!("{} s ago", row.last_s),
        ]);
    }
    let offenders = if view.offenders.is_empty() { String::new() } else { format!("{offenders}\n") };
    let alarms: String = view.alarms.iter().map(|alarm| format!("alarm: {alarm}\n")).collect();
    let quotas = view.nodes.iter().flat_map(|node| node.quotas.iter().map(|row| (node.node.to_string(), node.lease_ms, row)));
    let mut events = Table::new(&["HAPPENED", "WHAT"]);
    for line in &view.events {
        events.row([format!("{} s ago", line.age_s), line.what.clone()]);
    }
    format!(
        "central node {}{etcd}{dry}, epoch {}, load {}: {} calls; granted {}, refused {}, answered \"learning\" {}, \"busy\" {}, told of {}; parts that differed {}, stale messages {}, unreadable {}, too many {}, hellos refused {}, strangers {}\n{alarms}{}\n{nodes}\n{}{}{offenders}{events}",
        view.mode,
        view.epoch,
        view.load,
        view.calls,
        view.granted,
        view.denied,
        view.learning,
        view.busy,
        view.facts,
        view.differed,
        view.stale,
        view.unreadable,
        view.overrun,
        view.refused,
        view.strangers,
        super::admission::scopes(&view.scopes.rows),
        self::quotas("COUNTS", quotas),
        super::admission::denials(&view.denials),
    )
}

/// Who may have how much of what; `bound`: what the last column is. Nothing where nothing is given out in quotas.
fn quotas<'a>(bound: &'static str, rows: impl Iterator<Item = (String, Option<u64>, &'a QuotaRow)>) -> String {
    let mut table = Table::new(&["NODE", "SCOPE", "QUOTA", "LIVE", bound, "LEASE"]);
    let calls = |calls: Option<u32>| calls.map_or("no limit".into(), |calls| calls.to_string());
    let mut is_empty = true;
    for (node, lease_ms, row) in rows {
        is_empty = false;
        let lease = lease_ms.map_or("over".into(), |ms| format!("{} s", ms.div_ceil(1_000)));
        table.row([node, row.scope.clone(), calls(row.quota), row.live.to_string(), calls(row.bound), lease]);
    }
    if is_empty { String::new() } else { format!("{table}\n") }
}

/// A gateway's link, in front of its scopes.
pub fn link(view: &LinkView) -> String {
    let quotas = quotas("CORES", view.quotas.iter().map(|row| (view.node.to_string(), view.lease_ms, row)));
    let central = view.central.as_ref().map_or(String::new(), |central| format!(" with {central}"));
    let restored = if view.restored > 0 { format!(" ({} of the last life)", view.restored) } else { String::new() };
    let standby = view.standby.as_ref().map_or(String::new(), |standby| format!(", standby {standby}"));
    let decisions = self::decisions(&view.decisions);
    format!(
        "node {} of a cluster, {}{central}{standby}, epoch {}: {} calls{restored}; granted {}, refused {}, admitted by quota {}, admitted alone {}, refused alone {}; decisions p50 {} us, p99 {} us, overdue {}, late {}, central node busy {}; waiting: {} requests, {} reports; parts that differed {}, stale messages {}, unreadable {}, lost {}; syncs {}, the last of {} calls in {} us\n{decisions}{quotas}",
        view.node,
        view.state,
        view.epoch,
        view.calls,
        view.granted,
        view.denied,
        view.leased,
        view.local,
        view.refused,
        view.p50_us,
        view.p99_us,
        view.overdue,
        view.late,
        view.busy,
        view.requests,
        view.reports,
        view.mended,
        view.stale,
        view.unreadable,
        view.lost,
        view.syncs,
        view.synced,
        view.sync_us,
    )
}

/// How long decisions took; nothing before the first.
fn decisions(decisions: &[(u64, u64)]) -> String {
    let row = |&(us, count): &(u64, u64)| match us {
        u64::MAX => format!("more: {count}"),
        us => format!("{us} us: {count}"),
    };
    let rows: Vec<String> = decisions.iter().filter(|(_, count)| *count > 0).map(row).collect();
    if rows.is_empty() { String::new() } else { format!("decisions within {}\n", rows.join(", ")) }
}

/// Call control blocks.
pub fn ccbs(rows: &[CcbRow]) -> String {
    let mut table = Table::new(&["GUID", "LEG", "NODE", "SCOPES", "WAY", "CLASS", "KBIT/S", "ADMITTED", "AGE", "CHANGED"]);
    for row in rows {
        table.row([
            row.guid.clone(),
            row.leg.clone(),
            row.node.to_string(),
            row.scopes.join(" "),
            row.direction.clone(),
            row.class.clone(),
            row.kbits.to_string(),
            row.admitted.clone(),
            format!("{} s", row.age_s),
            row.changed_s.map_or(String::new(), |seconds| format!("{} times, last {seconds} s ago", row.changes)),
        ]);
    }
    table.to_string()
}
