//! A gateway whose last life's calls go on counting: `tollgate cac dump` and `restore` (SC switchover).

use super::*;
use libc::{SIGKILL, SIGTERM};
use std::process::Output;

/// `tollgate cac restore`, with this much of what was dumped.
fn restore(tuning: &Tuning, dump: &str, percent: usize, seconds: &str) -> Output {
    let mut saved: Value = serde_json::from_str(dump).unwrap();
    let calls = saved["calls"].as_array_mut().unwrap();
    calls.truncate(calls.len() * percent / 100);
    let file = tuning.directory.join("calls.json");
    std::fs::create_dir_all(&tuning.directory).unwrap();
    std::fs::write(&file, saved.to_string()).unwrap();
    tuning.write();
    let mut command = Command::new(PROGRAM);
    command.arg("--config").arg(tuning.path()).args(["cac", "restore"]).arg(file).args(["--for", seconds]);
    command.output().unwrap()
}

/// The number of calls of node 1 at the central node, as soon as it says that it is in sync; until then it had all.
fn in_sync_with(central: &Central, before: u64) -> u64 {
    eventually("node 1 is in sync", SOON * 2, || {
        let view = central.view();
        let row = view["nodes"].as_array().unwrap().iter().find(|row| row["node"] == 1).unwrap().clone();
        let calls = row["calls"].as_u64().unwrap();
        let is_in_sync = row["state"] == "in-sync";
        assert!(is_in_sync || calls == before, "{row}");
        is_in_sync.then_some(calls)
    })
}

/// Must hold 2: the same node comes up in another process with 0, 90 and 100 % of the calls: exactly the missing ones are removed, and
/// not before it has told all.
pub fn switched_over(calls: u32) {
    let list = scopes(calls + 10, "");
    let central = Central::start(Central::tuning("[1]", &list));
    let mut node = Node::start(1, &central, &list);
    central.wait_for(1);
    assert_eq!(node.call(calls), calls);
    let dump = node.gateway.order(&["cac", "dump"]);
    let guids = |dump: &str| -> BTreeSet<String> {
        let calls = serde_json::from_str::<Value>(dump).unwrap()["calls"].take();
        calls.as_array().unwrap().iter().map(|call| format!("{} {}", call["guid"], call["leg"])).collect()
    };
    assert_eq!(guids(&central.process.order(&["cac", "dump", "--node", "1"])), guids(&dump));
    assert!(central.process.refused(&["cac", "dump", "--node", "7"]).contains("there is no node 7"));
    let mut up = u64::from(calls);
    // Most first: what is restored next is part of what counts now.
    for percent in [100, 90, 0] {
        node.gateway.signal(SIGKILL);
        eventually("the loss is seen", SOON, || (central.view()["nodes"][0]["state"] == "lost").then_some(()));
        // Elsewhere: another socket, other addresses.
        let tuning = Node::tuning(1, central.address, &list);
        let output = restore(&tuning, &dump, percent, "0");
        assert!(output.status.success(), "{output:?}");
        node = Node::with(tuning);
        let kept = u64::from(calls) * percent as u64 / 100;
        assert_eq!(in_sync_with(&central, up), kept, "{percent} %");
        assert_eq!((node.link()["restored"].as_u64(), central.calls().0), (Some(kept), kept));
        assert_same_calls(&central, &[&node]);
        up = kept;
    }
    node.gateway.assert_sound();
}

#[test]
fn exactly_the_calls_that_are_missing_are_removed() {
    switched_over(40);
}

/// What was restored ends when its time is over, or when an operator says so; new calls are counted beside it.
#[test]
fn restored_calls_end_by_time_or_by_order() {
    let list = scopes(10, "");
    let central = Central::start(Central::tuning("[1]", &list));
    let mut node = Node::start(1, &central, &list);
    central.wait_for(1);
    assert_eq!(node.call(6), 6);
    let dump = node.gateway.order(&["cac", "dump"]);
    let guid = serde_json::from_str::<Value>(&dump).unwrap()["calls"][0]["guid"].as_str().unwrap().to_owned();
    assert!(node.gateway.refused(&["cac", "release", &guid]).contains("no call"));
    let other = Node::tuning(2, central.address, &list);
    let output = restore(&other, &dump, 100, "0");
    assert!(String::from_utf8_lossy(&output.stderr).contains("this is node 2"), "{output:?}");
    node.gateway.signal(SIGKILL);
    let tuning = Node::tuning(1, central.address, &list);
    assert!(restore(&tuning, &dump, 100, "0").status.success());
    let mut node = Node::with(tuning);
    central.wait_for(1);
    assert_eq!((node.call(6), central.calls().0), (4, 10));
    assert!(node.gateway.order(&["cac", "release", &guid]).contains("1 calls"));
    central.wait_for_calls(9);
    node.gateway.order(&["cac", "release"]);
    central.wait_for_calls(4);
    node.gateway.signal(SIGKILL);
    let tuning = Node::tuning(1, central.address, &list);
    assert!(restore(&tuning, &dump, 100, "1").status.success());
    let node = Node::with(tuning);
    central.wait_for_calls(0);
    assert_same_calls(&central, &[&node]);
    // Taken once: the start after it has none.
    let node = node.restart();
    node.wait_for("in-sync");
    assert_eq!(node.link()["restored"].as_u64(), Some(0));
}

/// Must hold 2 in a planned switchover: the gateway is told of the calls for its next life while it runs, and is then stopped. Not one
/// place is given back in between, and a start that fails does not lose them.
#[test]
fn a_planned_switchover_gives_no_place_back() {
    let list = scopes(10, "");
    let central = Central::start(Central::tuning("[1, 2]", &list));
    let mut node = Node::start(1, &central, &list);
    let mut other = Node::start(2, &central, &list);
    central.wait_for(2);
    assert_eq!(node.call(10), 10);
    let dump = node.gateway.order(&["cac", "dump"]);
    let tuning = node.gateway.tuning.copy();
    let output = restore(&tuning, &dump, 100, "0");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(".calls: 10 calls will count") && said.contains("gives no place back when it ends"), "{output:?}");
    // Its agent answers nothing more.
    let Node { mut gateway, agent, .. } = node;
    drop(agent);
    gateway.signal(SIGTERM);
    gateway.wait(SOON * 2);
    eventually("the loss is seen", SOON, || (central.view()["nodes"][0]["state"] == "lost").then_some(()));
    assert_eq!((other.call(3), central.calls()), (0, (10, 10)));
    // Whoever has the address of its metrics still, the calls are there for the next attempt.
    let busy = std::net::TcpListener::bind(tuning.addresses.metrics()).unwrap();
    let mut command = Command::new(PROGRAM);
    let output = command.args(["run", "--config"]).arg(tuning.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("metrics.address"), "{output:?}");
    drop(busy);
    let node = Node::with(tuning);
    assert_eq!((in_sync_with(&central, 10), other.call(3)), (10, 0));
    assert_eq!((node.link()["restored"].as_u64(), central.calls()), (Some(10), (10, 10)));
}
