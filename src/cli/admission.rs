//! `show cac` as text: the scopes, then why calls were refused.

use super::table::Table;
use tollgate::host::control::view::{Admission, DenialRow, ScopeRow};

/// The tables.
pub fn text(admission: &Admission) -> String {
    if admission.scopes.rows.is_empty() {
        return "nothing is limited: there is no such [[scope]], or cac.mode is \"off\"\n".into();
    }
    let link = admission.link.as_ref().map_or(String::new(), |link| super::cluster::link(link));
    format!(
        "{link}{}{}",
        scopes(&admission.scopes.rows),
        match denials(&admission.denials) {
            text if text.is_empty() => text,
            text => format!("\n{text}"),
        }
    )
}

/// A table of scopes.
pub fn scopes(rows: &[ScopeRow]) -> String {
    let mut table = Table::new(&["SCOPE", "KIND", "POOL", "CALLS", "IN", "OUT", "KBIT/S", "PRIORITY", "EMERGENCY", "ASKED", "REFUSED"]);
    for row in rows {
        table.row([
            row.name.clone(),
            row.kind.clone(),
            row.pool.clone().unwrap_or_default(),
            of(row.calls, row.calls_limit),
            of(row.inbound, row.inbound_limit),
            of(row.outbound, row.outbound_limit),
            of(row.kbits, row.kbits_limit),
            row.priority.to_string(),
            row.emergency.to_string(),
            row.attempts.to_string(),
            refused(row),
        ]);
    }
    table.to_string()
}

/// A table of refusals; nothing when there is none.
pub fn denials(rows: &[DenialRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut denials = Table::new(&["REFUSED", "ENDPOINT", "CALL", "WAY", "CLASS", "KBIT/S", "SCOPE", "WHY", "IN USE"]);
    for row in rows {
        denials.row([
            format!("{} s ago", row.age_s),
            row.endpoint.clone(),
            row.call.clone(),
            row.direction.clone(),
            row.class.clone(),
            row.kbits.to_string(),
            row.scope.clone(),
            row.why.clone(),
            of(row.used, Some(row.limit)),
        ]);
    }
    denials.to_string()
}

/// `5/10`, or `5` without a limit.
fn of(used: u32, limit: Option<u32>) -> String {
    limit.map_or(used.to_string(), |limit| format!("{used}/{limit}"))
}

fn refused(row: &ScopeRow) -> String {
    row.refused.values().sum::<u64>().to_string()
}
