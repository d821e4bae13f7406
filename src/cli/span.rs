//! The page of one facility.

use super::render::{page, with};
use super::table::Table;
use tollgate::host::control::view::{CircuitRow, DriverRow, PerformanceRow, SpanPage};

/// The order of the MIBs' tables; a facility has those that its signal has.
const COLUMNS: [&str; 13] = ["ES", "SES", "PES", "PSES", "SEFS", "UAS", "CSS", "LES", "BES", "CES", "CSES", "PCV", "LCV"];

/// State, and the counters of the interval that runs and of the last 24 hours; with `history` also those of each interval.
pub fn text(span: &SpanPage, history: bool) -> String {
    let row = &span.row;
    let core = row.core.map(|core| format!(", on core {core}")).unwrap_or_default();
    let usage = row.usage.map(|usage| format!("{} in service, {} busy, {} connections", usage.in_service, usage.busy, usage.connections));
    let lines = [
        ("facility", format!("{} ({}{core})", row.name, span.signal)),
        ("administrative", row.administrative.clone()),
        ("operational", with(&row.operational, row.failure.as_deref())),
        ("defects", span.defects.join(" ")),
        ("line status", row.line_status.to_string()),
        ("card", span.card.clone()),
        ("available", if span.available { "yes" } else { "no" }.into()),
        ("endpoints", with(&row.endpoints.to_string(), usage.as_deref())),
        ("counters lag", format!("{} s", span.lag_s)),
    ];
    let circuit = span.circuit.as_ref().map(|circuit| format!("\n{}", page(pseudowire(circuit, span.card == "satop")))).unwrap_or_default();
    let driver = span.driver.as_ref().map(|row| format!("\n{}", page(driver(row)))).unwrap_or_default();
    format!("{}{circuit}{driver}\n{}", page(lines), counters(span, history))
}

/// What the kernel's driver does with it.
fn driver(row: &DriverRow) -> Vec<(&'static str, String)> {
    let DriverRow { span, present, alarms, blocks, dropped, overruns, underruns, refused, unknown, losses } = row;
    vec![
        ("dahdi span", format!("{span}{}", if *present { "" } else { ", gone" })),
        ("alarms", alarms.clone()),
        ("blocks", format!("{blocks} in, {dropped} not sent, {overruns} overruns, {underruns} underruns")),
        ("driver", format!("{refused} orders refused, {unknown} events passed over, gone {losses} times")),
    ]
}

/// What its pseudowire does; `framed`: with the framing of the trunk.
fn pseudowire(row: &CircuitRow, framed: bool) -> Vec<(&'static str, String)> {
    let CircuitRow { received, sent, lost, late, duplicate, overrun, strays, malformed, slips, restarted, .. } = row;
    let CircuitRow {
        local_faults,
        remote_losses,
        remote_defects,
        waiting,
        wait_ms,
        drift_ppm,
        violations,
        frame_losses,
        errored_blocks,
        ..
    } = row;
    let mut lines = vec![
        ("pseudowire", row.state.clone()),
        ("packets", format!("{received} in, {sent} out, {lost} lost, {late} late, {duplicate} twice, {overrun} too early")),
        ("lost", format!("parts of {errored_blocks} blocks of the trunk")),
        ("foreign", format!("{strays} strays, {malformed} malformed")),
        ("far end", format!("{local_faults} L, {remote_losses} R, {remote_defects} RDI, {restarted} new sequences")),
        ("buffer", format!("{waiting} packets wait, {wait_ms} ms aimed at, {slips} slips")),
        ("clock", format!("{drift_ppm} ppm faster than ours")),
    ];
    if framed {
        lines.push(("framing", format!("{violations} violations, lost {frame_losses} times")));
    }
    lines
}

fn counters(span: &SpanPage, history: bool) -> String {
    let columns: Vec<&'static str> = COLUMNS.into_iter().filter(|name| span.current.counts.contains_key(*name)).collect();
    let mut table = Table::new(&[&["INTERVAL", "SECONDS"][..], &columns].concat());
    let mut row = |name: String, counted: &PerformanceRow| {
        let counts = columns.iter().map(|name| counted.counts.get(*name).map(u32::to_string).unwrap_or_default());
        table.row([name, counted.seconds.to_string()].into_iter().chain(counts));
    };
    row("running".into(), &span.current);
    row("24 hours".into(), &span.total);
    if history {
        span.intervals.iter().enumerate().for_each(|(place, interval)| row((place + 1).to_string(), interval));
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::host::control::view::{SpanRow, SpanUsage};

    fn counted(seconds: u32, uas: u32) -> PerformanceRow {
        let counts = [("UAS", uas), ("ES", 2), ("LCV", 7)].map(|(name, count)| (name.to_owned(), count));
        PerformanceRow { seconds, counts: counts.into_iter().collect() }
    }

    #[test]
    fn the_page_of_a_facility_has_its_state_and_its_counters_in_the_order_of_the_mib() {
        let row = SpanRow {
            name: "ds/ds3-1/ds1-5".into(),
            kind: "t1".into(),
            core: Some(1),
            administrative: "unblocked".into(),
            operational: "down".into(),
            failure: Some("los".into()),
            line_status: 100,
            endpoints: 24,
            usage: Some(SpanUsage { in_service: 0, busy: 0, connections: 0 }),
        };
        let span = SpanPage {
            row,
            card: "sim".into(),
            circuit: None,
            driver: None,
            signal: "ESF".into(),
            defects: vec!["los".into(), "ais".into()],
            available: false,
            lag_s: 10,
            current: counted(20, 12),
            total: counted(1800, 0),
            intervals: vec![counted(900, 3), counted(900, 4)],
        };
        let brief = text(&span, false);
        for line in [
            "facility        ds/ds3-1/ds1-5 (ESF, on core 1)",
            "operational     down (los)",
            "defects         los ais",
            "available       no",
        ] {
            assert!(brief.contains(line), "{line}\n{brief}");
        }
        let table: Vec<Vec<&str>> = brief.lines().skip(10).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            table,
            [
                vec!["INTERVAL", "SECONDS", "ES", "UAS", "LCV"],
                vec!["running", "20", "2", "12", "7"],
                vec!["24", "hours", "1800", "2", "0", "7"]
            ]
        );
        let whole = text(&span, true);
        assert_eq!(whole.lines().count(), brief.lines().count() + 2);
        assert!(whole.lines().last().is_some_and(|line| line.split_whitespace().eq(["2", "900", "2", "4", "7"])), "{whole}");
    }
}
