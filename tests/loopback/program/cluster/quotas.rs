//! Leased quotas over real processes (R31, I6).

use super::super::gateway::Watch;
use super::*;
use libc::{SIGCONT, SIGKILL, SIGSTOP};

/// What the central node says a node may have of the pool: quota, what counts, and whether its lease may hold.
fn quota(central: &Central, node: u64) -> (u64, u64, bool) {
    let view = central.view();
    let row = view["nodes"].as_array().unwrap().iter().find(|row| row["node"] == node).unwrap().clone();
    let quotas = row["quotas"].as_array().unwrap();
    let of_pool = quotas.iter().find(|row| row["scope"] == "carrier");
    let number = |key: &str| of_pool.map_or(0, |row| row[key].as_u64().unwrap());
    (number("quota"), number("bound"), row["lease_ms"].is_u64())
}

/// R31, I6, must hold 4: calls are admitted by quotas, asking nobody, and are counted one by one; all gateways together get the limit and
/// no more; what a killed one had rests until it is forgotten and its lease is over; a central node that stands still is not missed.
#[test]
fn calls_within_a_quota_ask_nobody_and_no_limit_is_passed() {
    let list = scopes_by(48, ", disconnected = \"closed\"");
    let central = Central::start(Central::tuning("[1, 2, 3]", &list).set("cac.forget_after", "\"1s\""));
    let mut nodes: Vec<Node> = (1..=3).map(|number| Node::start(number, &central, &list)).collect();
    central.wait_for(3);
    for node in &nodes {
        eventually("quotas", SOON, || {
            node.link()["quotas"].as_array().is_some_and(|rows| rows.iter().any(|row| row["quota"] != 0)).then_some(())
        });
    }
    assert!(nodes.iter_mut().all(|node| node.call(2) == 2));
    central.wait_for_calls(6);
    assert_same_calls(&central, &nodes.iter().collect::<Vec<_>>());
    let leased: u64 = nodes.iter().map(|node| node.link()["leased"].as_u64().unwrap()).sum();
    assert!(leased > 0 && nodes[0].gateway.order(&["show", "cac"]).contains("by quota"));
    assert!(central.process.order(&["show", "cac"]).contains("QUOTA"));
    assert!(ccbs(&central.process).len() == 6 && central.process.rows(&["ccbs"]).iter().any(|row| row["admitted"] == "lease"));
    // More than there is: refused, and nothing above the limit.
    let asked: Vec<_> = nodes.iter_mut().map(|node| node.send(30)).collect();
    let admitted: u32 = nodes.iter_mut().zip(&asked).map(|(node, ids)| node.admitted(ids)).sum();
    assert!((20..=42).contains(&admitted), "{admitted}");
    // Whoever asks again gets what others do not use.
    let mut up = 6 + admitted;
    eventually("all places", SOON * 2, || {
        up += nodes[0].call(1);
        (up == 48).then_some(())
    });
    central.wait_for_calls(48);
    assert_same_calls(&central, &nodes.iter().collect::<Vec<_>>());
    assert!(central.calls().1 <= 48 && nodes.iter().all(|node| node.alone() == 0), "{:?}", central.calls());
    // A central node that stands still for longer than a decision, and even a session, takes: calls that end are replaced all the same.
    nodes[1].hang_up();
    eventually("they are gone", SOON, || (ccbs(&nodes[1].gateway).is_empty()).then_some(()));
    central.process.signal(SIGSTOP);
    let watch = Watch::start();
    let admitted = nodes[1].call(2);
    nodes[1].wait_for("lost");
    let later = nodes[1].call(1);
    assert!(admitted == 2 && later == 1 || watch.elapsed() > std::time::Duration::from_secs(5), "{admitted} {later}");
    central.process.signal(SIGCONT);
    central.wait_for(3);
    assert_same_calls(&central, &nodes.iter().collect::<Vec<_>>());
    // Killed: forgotten after a second, and what it could have admitted on its lease counts longer.
    let (_, bound, _) = quota(&central, 3);
    nodes[2].gateway.signal(SIGKILL);
    assert!(bound > 0);
    eventually("it is forgotten", SOON, || central.events().contains("node 3 ended or was lost").then_some(()));
    let mut two = nodes.remove(1);
    let left: u32 = two.call(30);
    assert!(central.calls().0 <= 48 && left <= 48 - bound as u32, "{left}");
    nodes[0].gateway.assert_sound();
}
