//! Facilities that fail and recover.

use super::*;

#[test]
fn a_t3_alarm_is_one_rsip_and_so_is_its_recovery() {
    // MAP-03, issue 2 must hold 5
    let mut bench = Bench::up(T3_1);
    bench.alarm("ds/ds3-1", true, false);
    for n in 1..=28 {
        bench.run(1);
        bench.alarm(&format!("ds/ds3-1/ds1-{n}"), true, false);
    }
    bench.run(2000);
    assert!(bench.log.is_empty(), "a defect is no failure yet");
    bench.run(1000);
    // Refused with 531 until the agent was told.
    assert_eq!(bench.services(), [(672, false, 531), (672, false, 501)]);
    assert_eq!(bench.said(), ["forced ds/ds3-1/*/* E 905"]);
    bench.answer_all(OK);
    bench.alarm("ds/ds3-1", false, false);
    (1..=28).for_each(|n| bench.alarm(&format!("ds/ds3-1/ds1-{n}"), false, false));
    bench.run(9900);
    assert_eq!(bench.said().len(), 0);
    bench.run(500);
    assert_eq!(bench.services(), [(24, true, 501); 28]);
    assert_eq!(bench.said(), ["restart ds/ds3-1/*/*"]);
}

#[test]
fn a_t3_alarm_is_one_rsip_whatever_was_out_before() {
    // MAP-03: what the agent knows to be out may be named again, if that saves messages.
    let mut bench = Bench::up(T3_1);
    bench.alarm("ds/ds3-1/ds1-7", true, true);
    bench.run(200);
    assert_eq!(bench.said(), ["forced ds/ds3-1/ds1-7/* E 905"]);
    bench.answer_all(OK);
    bench.block("ds/ds3-1/ds1-9/3", BlockHow::Force);
    bench.answer_all(OK);
    bench.alarm("ds/ds3-1", true, true);
    bench.run(200);
    assert_eq!(bench.said(), ["forced ds/ds3-1/*/* E 905"]);
    // Where it saves nothing it is left out.
    let mut bench = Bench::up(&[plan(T3, 1), plan(T3, 2)]);
    bench.alarm("ds/ds3-1/ds1-7", true, true);
    bench.alarm("ds/ds3-2", true, true);
    bench.run(200);
    bench.answer_all(OK);
    bench.alarm("ds/ds3-1/ds1-8", true, true);
    bench.run(200);
    assert_eq!(bench.said(), ["forced ds/ds3-1/ds1-8/* E 905"]);
}

#[test]
fn a_t3_that_returns_without_one_t1_names_the_others() {
    // MAP-01, MAP-04
    let mut bench = Bench::up(T3_1);
    bench.alarm("ds/ds3-1", true, true);
    bench.alarm("ds/ds3-1/ds1-7", true, true);
    bench.run(200);
    bench.answer_all(OK);
    bench.alarm("ds/ds3-1", false, true);
    bench.run(200);
    let said = bench.said();
    assert_eq!(said.len(), 27);
    assert!(said.iter().all(|s| s.starts_with("restart ds/ds3-1/ds1-") && !s.contains("ds1-7/")), "{said:?}");
    let alarms: Vec<_> = bench.coordinator.alarms().map(|a| (a.facility, a.severity, a.covered)).collect();
    assert_eq!(alarms, [(bench.facility("ds/ds3-1/ds1-7"), Severity::Major, false)]);
}

#[test]
fn failures_within_the_merge_time_are_told_together() {
    // MAP-12
    let mut bench = Bench::up(&[plan(T1, 1), plan(T1, 2), plan(T1, 3)]);
    bench.alarm("ds/ds1-1", true, true);
    bench.run(150);
    bench.alarm("ds/ds1-2", true, true);
    bench.alarm("ds/ds1-3", true, true);
    bench.run(49);
    assert_eq!(bench.said().len(), 0);
    bench.run(1);
    assert_eq!(bench.said(), ["forced * E 905"]);
}

#[test]
fn an_outage_too_short_to_be_told_is_still_a_restart() {
    // G-RSI-04: the connections are gone.
    let mut bench = Bench::up(T3_1);
    bench.alarm("ds/ds3-1/ds1-3", true, true);
    bench.alarm("ds/ds3-1/ds1-3", false, true);
    assert_eq!(bench.services(), [(24, false, 531), (24, true, 501)]);
    bench.run(1000);
    assert_eq!(bench.said(), ["restart ds/ds3-1/ds1-3/*"]);
}
