//! Admission control of a running gateway: what an operator sets, an agent meets and `tollgate show cac` tells.

use super::agent::Agent;
use super::gateway::{Gateway, SOON, Tuning, eventually};

const SCOPES: &str = r#"[
    { kind = "pool", name = "carrier", calls = 3 },
    { kind = "trunk-group", name = "north", pool = "carrier", members = ["ds/ds3-1/ds1-1/*", "ds/ds3-1/ds1-2/*"], calls = CALLS },
    { kind = "zone", name = "core", prefixes = ["192.0.2.0/24"], kbits = 100 },
]"#;

fn scopes(calls: u32) -> String {
    SCOPES.replace("CALLS", &calls.to_string()).replace("\n", " ").replace("},  ]", "}]")
}

/// R15, R21, R46: limits hold over the cores, `show cac` says what is in use and why calls were refused, a reload changes limits.
#[test]
fn limits_are_set_met_shown_and_changed() {
    let mut gateway = Gateway::start(Tuning::new().layout(2, 0, 0).scopes(&scopes(2)));
    let mut agent = Agent::of(&gateway);
    let ask = |agent: &mut Agent, endpoint: &str, call: &str| {
        agent.ask("CRCX", endpoint, &[&format!("C: {call}"), "M: recvonly"]).code.expect("a response")
    };
    // On two cores.
    assert_eq!(ask(&mut agent, "ds/ds3-1/ds1-1/3", "A1"), 200);
    assert_eq!(ask(&mut agent, "ds/ds3-1/ds1-2/3", "A2"), 200);
    assert_eq!(ask(&mut agent, "ds/ds3-1/ds1-1/4", "A3"), 403);
    assert_eq!(ask(&mut agent, "ds/ds3-1/ds1-9/4", "A4"), 200);
    let shown = gateway.show(&["cac"]);
    let row = |name: &str| {
        let rows = shown["cac"]["scopes"]["rows"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["name"] == name).unwrap()
    };
    assert_eq!((row("north")["calls"].as_u64(), row("north")["calls_limit"].as_u64()), (Some(2), Some(2)));
    assert_eq!((row("carrier")["calls"].as_u64(), row("north")["kbits"].as_u64()), (Some(2), Some(160)));
    let denial = &shown["cac"]["denials"][0];
    assert_eq!((denial["endpoint"].as_str(), denial["call"].as_str()), (Some("ds/ds3-1/ds1-1/4"), Some("A3")), "{shown}");
    assert_eq!((denial["scope"].as_str(), denial["used"].as_u64()), (Some("north"), Some(2)));
    let text = gateway.order(&["show", "cac", "n*"]);
    assert!(text.contains("2/2") && text.contains("call limit reached") && !text.contains("\ncarrier"), "{text}");
    assert!(gateway.refused(&["show", "cac", "east"]).contains("no scope"));
    let full = gateway.show(&["cac", "--state", "full"]);
    assert_eq!(full["cac"]["scopes"]["rows"].as_array().unwrap().len(), 1, "{full}");
    // The warning stands.
    eventually("the alarm", SOON, || {
        gateway.rows(&["alarms"]).iter().any(|row| row["name"] == "scope north" && row["kind"] == "admission-calls").then_some(())
    });
    // A raised limit is used; the pool is the next.
    gateway.tuning = gateway.tuning.copy().scopes(&scopes(9));
    gateway.tuning.write();
    let changed = gateway.order(&["reload"]);
    assert!(changed.contains("scope[north].calls"), "{changed}");
    eventually("room", SOON, || (ask(&mut agent, "ds/ds3-1/ds1-1/4", "A5") == 200).then_some(()));
    assert_eq!(ask(&mut agent, "ds/ds3-1/ds1-2/4", "A6"), 403);
    assert_eq!(agent.ask("DLCX", "ds/ds3-1/ds1-1/3", &[]).code, Some(250));
    assert_eq!(ask(&mut agent, "ds/ds3-1/ds1-2/4", "A7"), 200);
    assert!(gateway.counter("admission_refused") >= 2);
    gateway.assert_sound();
}
