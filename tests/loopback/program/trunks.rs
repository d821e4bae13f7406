//! `tollgate load --scenario cas-...` and `cot` against the gateway: calls over simulated trunks whose far ends, told over the operator
//! socket, play their part or misbehave; afterwards every trunk is idle.

use super::gateway::{Gateway, SOON, Tuning, eventually};
use super::load::{load, report};

/// A few hundred calls over 96 trunks of this kind. The guard times are short, so that far ends that hang do not hold up the test.
fn calls(scenario: &str, signalling: &str) {
    let tuning = Tuning::new().layout(2, 0, 0).set("span.0.kind", "\"t1\"").set("span.0.unit", "\"1-4\"");
    let tuning = tuning.set("span.0.signalling", &format!("\"{signalling}\""));
    let tuning = tuning.set("cas.first_digit", "\"2s\"").set("cas.between_digits", "\"1s\"").set("cas.wink_limit", "\"1500ms\"");
    let gateway = Gateway::start(tuning.set("cas.glare", "\"1500ms\"").set("cas.glare_hold", "\"2s\""));
    let socket = gateway.tuning.socket();
    let run = format!("--scenario {scenario} --endpoints ds/ds1-[1-4]/[1-24] --rate 30 --duration 5 --misbehave 0.4 --seed 3");
    let output = load(&gateway, &format!("{run} --socket {}", socket.to_str().unwrap())).output().unwrap();
    let report = report(&output, &gateway);
    let all = &report["outcomes"]["all"];
    assert!(all["begun"].as_u64().unwrap() >= 100 && all["begun"] == all["well"], "{report}");
    let odd = report["outcomes"].as_object().unwrap().values().filter(|calls| calls["misbehaves"] == true);
    assert!(odd.map(|calls| calls["begun"].as_u64().unwrap()).sum::<u64>() >= 20, "{report}");
    assert!(gateway.rows(&["connections"]).is_empty());
    let idle = ["idle", "-"];
    for row in gateway.rows(&["endpoints"]) {
        assert!(row["line"].as_str().is_none_or(|line| idle.contains(&line)), "{row}");
    }
    gateway.assert_sound();
}

#[test]
fn calls_over_mf_trunks() {
    calls("cas-ms", "mf-wink");
}

#[test]
fn calls_over_dial_pulse_trunks() {
    calls("cas-dt", "pulse-immediate");
}

#[test]
fn calls_over_feature_group_d() {
    calls("cas-md", "feature-group-d");
}

#[test]
fn calls_to_operators() {
    calls("cas-mo", "operator");
}

#[test]
fn calls_from_and_to_a_pbx() {
    calls("cas-bl", "pbx-ground-start");
}

#[test]
fn continuity_tests() {
    calls("cot", "clear");
}

/// Without the operator socket no far end can be told anything: that is said, and no call is made.
#[test]
fn without_an_operator_socket_no_far_end_is_told_anything() {
    let gateway = Gateway::start(Tuning::new());
    let run = "--scenario cot --endpoints ds/ds3-1/ds1-1/[1-2] --rate 5 --duration 0.5 --socket /nonexistent";
    let output = load(&gateway, run).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("the far end cannot be told: no gateway is running") && text.contains("\"begun\":0"), "{text}");
}

/// A trunk that its far end does not let go is an alarm, counted and kept, until the far end goes on-hook; `free` does not hide it.
#[test]
fn a_trunk_that_is_locked_out_is_an_alarm() {
    let tuning = Tuning::new().layout(2, 0, 0).set("span.0.kind", "\"t1\"").set("span.0.unit", "\"1-2\"");
    let tuning = tuning.set("span.0.signalling", "\"mf-wink\"").set("cas.guard", "\"1s\"");
    let gateway = Gateway::start(tuning);
    let trunk = "ds/ds1-2/7";
    gateway.order(&["sim", "far", trunk, "manual"]);
    gateway.order(&["sim", "seize", trunk]);
    eventually("a call", SOON, || (gateway.rows(&["endpoints", trunk, "--state", "awaits-digits"]).len() == 1).then_some(()));
    gateway.order(&["free", trunk]);
    assert_eq!((gateway.rows(&["endpoints", trunk, "--state", "releases"]).len(), gateway.rows(&["alarms"]).len()), (1, 0));
    let alarm = eventually("an alarm", SOON, || gateway.rows(&["alarms"]).into_iter().next());
    assert_eq!((&alarm["name"], &alarm["kind"], &alarm["severity"]), (&"ds/ds1-2".into(), &"locked-out".into(), &"minor".into()));
    assert_eq!(alarm["what"], "1 of 24 endpoints are locked out: the far end stays off-hook after its call");
    assert_eq!(gateway.rows(&["endpoints", "--state", "lockout"])[0]["name"], trunk);
    gateway.order(&["free", trunk]);
    assert_eq!((gateway.rows(&["alarms"]).len(), gateway.counter("trunk_lockouts")), (1, 1));
    let history = || gateway.rows(&["history", "ds/ds1-2"]).iter().filter(|row| row["kind"] == "locked-out").count();
    eventually("its begin is kept", SOON, || (history() == 1).then_some(()));
    gateway.order(&["sim", "release", trunk]);
    eventually("its end", SOON, || gateway.rows(&["alarms"]).is_empty().then_some(()));
    assert_eq!(gateway.rows(&["endpoints", trunk, "--state", "idle"]).len(), 1);
    eventually("its end too", SOON, || (history() == 2).then_some(()));
    gateway.assert_sound();
}
