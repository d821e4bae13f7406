//! A cluster whose processes are killed and stopped, and whose links are cut.

use super::super::gateway::{LOOK, Watch, pause};
use super::super::network::in_own_network;
use super::*;
use libc::{SIGCONT, SIGKILL, SIGSTOP, SIGTERM};
use std::time::Duration;

/// Must hold 2: the calls of a gateway that was killed go on counting for `forget_after`, and no longer. One that comes back before that
/// frees them when it has told all.
#[test]
fn calls_of_a_killed_gateway_count_until_it_is_forgotten_or_back() {
    let list = scopes(10, "");
    let central = Central::start(Central::tuning("[1, 2]", &list).set("cac.forget_after", "\"4s\""));
    assert!(central.alarms().contains("learning: 2 gateways"), "{}", central.alarms());
    let (mut one, mut two) = (Node::start(1, &central, &list), Node::start(2, &central, &list));
    central.wait_for(2);
    assert_eq!((one.call(6), two.call(6)), (6, 4));
    one.gateway.signal(SIGKILL);
    eventually("the loss is seen", SOON, || central.events().contains("node 1 is lost").then_some(()));
    assert!(central.alarms().contains("node 1 is lost since"), "{}", central.alarms());
    let watch = Watch::start();
    assert_eq!((two.call(1), central.calls().0), (0, 10), "{:?}", watch.elapsed());
    central.wait_for_calls(4);
    assert_eq!(two.call(7), 6);
    // Back after it was forgotten: it registers anew.
    let mut one = one.restart();
    central.wait_for(2);
    two.hang_up();
    central.wait_for_calls(0);
    assert_eq!(one.call(5), 5);
    // Killed and back before it is forgotten: the calls of the life before go at sync-complete.
    let one = one.restart();
    central.wait_for(2);
    central.wait_for_calls(0);
    assert!(central.events().contains("5 others were removed"), "{}", central.events());
    assert_same_calls(&central, &[&one, &two]);
    // One that ends in an orderly way says so: its calls need not wait to be forgotten.
    assert_eq!(two.call(3), 3);
    central.wait_for_calls(3);
    two.gateway.signal(SIGTERM);
    two.gateway.wait(SOON);
    assert!(central.events().contains("node 2 ended or"), "{}", central.events());
    assert_eq!(central.calls().0, 0);
}

/// R36, R39: a central node that stands still keeps no call waiting for more than the time of a decision, and both ends agree afterwards.
#[test]
fn a_central_node_that_stands_still_keeps_no_call_waiting() {
    let list = scopes(10, "");
    let central = Central::start(Central::tuning("[1]", &list));
    let mut node = Node::start(1, &central, &list);
    central.wait_for(1);
    assert_eq!(node.call(8), 8);
    central.process.signal(SIGSTOP);
    assert_eq!(node.call(6), 6, "the default takes all");
    node.wait_for("lost");
    assert_eq!(node.call(6), 6);
    central.process.signal(SIGCONT);
    central.wait_for(1);
    central.wait_for_calls(20);
    assert!(central.alarms().contains("carrier: 20 calls, 10 above the limit"), "{}", central.alarms());
    assert_eq!(node.call(1), 0);
    assert_same_calls(&central, &[&node]);
    // R21: nothing was cut, and there is room again when enough have ended.
    node.hang_up();
    central.wait_for_calls(0);
    assert_eq!(node.call(11), 10);
    node.gateway.assert_sound();
}

/// Must hold 3: the central node is killed under load and comes back. Under hold-last no gateway ever has more calls than it had, and the
/// sum stays below the limit; by default all are taken, and counted exactly when it is back.
#[test]
fn a_central_node_that_dies_is_learned_from_anew() {
    for (more, rule) in [(", disconnected = \"hold-last\"", "hold-last"), ("", "open")] {
        let list = scopes(10, more);
        let central = Central::start(Central::tuning("[1, 2]", &list));
        let (mut one, mut two) = (Node::start(1, &central, &list), Node::start(2, &central, &list));
        central.wait_for(2);
        assert_eq!((one.call(5), two.call(3)), (5, 3), "{rule}");
        central.process.signal(SIGKILL);
        one.wait_for("lost");
        two.wait_for("lost");
        let taken = (one.call(4), two.call(4));
        assert_eq!(taken, if rule == "open" { (4, 4) } else { (0, 0) }, "{rule}");
        one.hang_up();
        assert_eq!(one.call(9), if rule == "open" { 9 } else { 5 }, "{rule}");
        let epoch = central.restart();
        epoch.wait_for(2);
        epoch.wait_for_calls(if rule == "open" { 16 } else { 8 });
        assert_same_calls(&epoch, &[&one, &two]);
        assert_eq!(one.call(4) + two.call(4), if rule == "open" { 0 } else { 2 }, "{rule}");
        assert!(rule == "open" || epoch.calls().1 <= 10, "{:?}", epoch.calls());
    }
}

/// R41: cut off, a gateway that had no call has its floor, and together they never have more than the limit.
#[test]
fn a_gateway_that_is_cut_off_without_a_call_has_its_floor() {
    let list = scopes(10, ", disconnected = \"hold-last\"");
    let central = Central::start(Central::tuning("[1, 2]", &list));
    let node = |number| Node::with(Node::tuning(number, central.address, &list).set("cac.nodes", "[1, 2]"));
    let (mut one, mut two) = (node(1), node(2));
    central.wait_for(2);
    assert_eq!(one.call(12), 9, "the last one is kept for the other");
    let refused = central.process.order(&["show", "cac"]);
    assert!(refused.contains("places left are reserved") && refused.contains("REFUSED MOST"), "{refused}");
    central.process.signal(SIGSTOP);
    one.wait_for("lost");
    two.wait_for("lost");
    assert_eq!((two.call(3), one.call(2)), (1, 0));
    one.hang_up();
    assert_eq!(one.call(11), 9);
    central.process.signal(SIGCONT);
    central.wait_for(2);
    central.wait_for_calls(10);
    assert_same_calls(&central, &[&one, &two]);
    let alarms = central.alarms();
    assert!(alarms.contains("all 10 calls are up") && !central.events().contains("has another cac.disconnected"), "{alarms}");
    // With other limits, or another number of gateways, in its file it would take more than is kept for it.
    let _other = Node::with(Node::tuning(2, central.address, &list).set("cac.nodes", "[1, 2, 3]"));
    eventually("it is told", SOON, || central.events().contains("node 2 has another cac.disconnected").then_some(()));
}

/// Must hold 2: a link that is cut with both ends alive loses nothing and counts nothing twice.
#[test]
fn a_link_that_is_cut_loses_nothing() {
    in_own_network("cluster::bad_days::a_link_that_is_cut_loses_nothing", || {
        let (central, mut one, mut two) = cuttable(50);
        for cut in [100, 4_000] {
            assert_eq!((one.call(5), two.call(5)), (5, 5));
            let_pass(false);
            let watch = Watch::start();
            // Begun while nothing passes; those that ask before the loss is seen wait for their time and are taken then.
            assert_eq!((one.call(3), two.call(3)), (3, 3));
            pause(Duration::from_millis(cut).saturating_sub(watch.elapsed()));
            let_pass(true);
            central.wait_for(2);
            assert_same_calls(&central, &[&one, &two]);
            central.wait_for_calls(16);
            one.hang_up();
            two.hang_up();
            central.wait_for_calls(0);
        }
    });
}

/// R35: two gateways with one number: the living one stays, the newcomer is refused and goes on alone, and neither flaps.
#[test]
fn of_two_gateways_with_one_number_the_first_stays() {
    let list = scopes(10, "");
    let central = Central::start(Central::tuning("[1]", &list));
    let mut one = Node::start(1, &central, &list);
    central.wait_for(1);
    assert_eq!(one.call(4), 4);
    let twin = Node::start(1, &central, &list);
    eventually("the twin is refused", SOON, || twin.gateway.log().contains("another node of this number is alive").then_some(()));
    assert!(central.events().contains("two nodes say they are 1"));
    assert_eq!((twin.link()["state"].as_str(), one.link()["state"].as_str()), (Some("lost"), Some("in-sync")));
    assert_eq!((one.call(1), central.calls().0), (1, 5));
    // When the first is gone the other takes its place, and its calls.
    one.gateway.signal(SIGKILL);
    twin.wait_for("in-sync");
    central.wait_for_calls(0);
    pause(LOOK);
    assert_same_calls(&central, &[&twin]);
}
