//! One limit over several gateways on a good day.

use super::*;

/// Must hold 1: of forty calls that come at three gateways at once ten get in, every time, and none without the central node.
#[test]
fn ten_of_forty_calls_get_in_however_often() {
    let list = scopes(10, "");
    let central = Central::start(Central::tuning("[1, 2, 3]", &list));
    let mut nodes: Vec<Node> = (1..=3).map(|number| Node::start(number, &central, &list)).collect();
    central.wait_for(3);
    let rounds = std::env::var("TOLLGATE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    for round in 0..rounds {
        let asked: Vec<_> = nodes.iter_mut().zip([14, 13, 13]).map(|(node, calls)| node.send(calls)).collect();
        let admitted: u32 = nodes.iter_mut().zip(&asked).map(|(node, ids)| node.admitted(ids)).sum();
        let alone: u64 = nodes.iter().map(Node::alone).sum();
        // Refused or not, calls that were decided alone after the deadline are counted apart.
        assert!(admitted == 10 || alone > 0, "round {round}: {admitted} admitted");
        central.wait_for_calls(u64::from(admitted));
        assert_same_calls(&central, &nodes.iter().collect::<Vec<_>>());
        nodes.iter_mut().for_each(Node::hang_up);
        central.wait_for_calls(0);
    }
    let alone: u64 = nodes.iter().map(Node::alone).sum();
    assert!(central.calls().1 <= 10 + alone, "the most calls: {:?}", central.calls());
    assert_eq!(central.view()["facts"].as_u64(), Some(alone));
    nodes.iter().for_each(|node| node.gateway.assert_sound());
}

/// R46, R47: what operators see at both ends, and what they can order.
#[test]
fn operators_see_and_order_the_cluster() {
    let list = scopes(3, "");
    let mut central = Central::start(Central::tuning("[1]", &list));
    let mut node = Node::start(1, &central, &list);
    central.wait_for(1);
    assert_eq!(node.call(4), 3);
    central.wait_for_calls(3);
    let (guid, leg) = ccbs(&node.gateway).first().unwrap().clone();
    for process in [&central.process, &node.gateway] {
        let rows = process.show(&["cac", &guid])["ccbs"]["rows"].as_array().unwrap().clone();
        assert_eq!((rows.len(), rows[0]["leg"].as_str()), (1, Some(&*leg)), "{rows:?}");
    }
    let text = central.process.order(&["show", "cac"]);
    assert!(text.contains("central node active") && text.contains("3/3") && text.contains("call limit reached"), "{text}");
    assert!(text.contains("in-sync"), "{text}");
    let text = node.gateway.order(&["show", "cac"]);
    assert!(text.contains("node 1 of a cluster, in-sync"), "{text}");
    assert!(central.process.refused(&["show", "spans"]).contains("central node"));
    assert!(node.gateway.refused(&["cac", "resync"]).contains("central node"));
    assert!(central.process.refused(&["cac", "drain", "9"]).contains("no node 9"));
    // A dry run refuses nothing and counts what would be.
    central.process.order(&["cac", "dry-run"]);
    assert_eq!(node.call(1), 1);
    central.process.order(&["cac", "dry-run", "--off"]);
    assert_eq!(node.call(1), 0);
    // R21: a limit is raised by a reload.
    central.process.tuning = central.process.tuning.copy().scopes(&scopes(9, ""));
    central.process.tuning.write();
    assert!(central.process.order(&["reload"]).contains("scope[carrier].calls"));
    assert_eq!(node.call(1), 1);
    // A drained gateway gets no new calls and keeps those it has.
    central.process.order(&["cac", "drain", "1"]);
    assert_eq!(node.call(1), 0);
    central.process.order(&["cac", "drain", "1", "--off"]);
    assert_eq!(node.call(1), 1);
    central.process.order(&["cac", "resync", "1"]);
    assert_same_calls(&central, &[&node]);
    assert!(central.events().contains("told 6 calls, 0 others were removed"), "{}", central.events());
    node.gateway.assert_sound();
}

/// R43, the configurations of a cluster: who has other scopes is refused, goes on by its policy, and says why.
#[test]
fn a_gateway_with_other_scopes_is_refused_and_goes_on_alone() {
    let central = Central::start(Central::tuning("[]", &scopes(3, "")));
    let mut node = Node::start(1, &central, &scopes(3, "").replace("carrier", "carriers"));
    eventually("the refusal", SOON, || node.gateway.log().contains("[[scope]] tables are others").then_some(()));
    assert_eq!(node.call(5), 5);
    assert_eq!((node.alone(), central.calls().0), (5, 0));
    eventually("the alarm", SOON, || node.gateway.rows(&["alarms"]).iter().any(|row| row["kind"] == "central-lost").then_some(()));
}
