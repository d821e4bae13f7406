//! One limit over several gateways on a good day.

use super::super::metrics::{get, samples};
use super::*;

/// Must hold 1: of forty calls that come at three gateways at once ten get in, every time, and none without the central node.
#[test]
fn ten_of_forty_calls_get_in_however_often() {
    let list = scopes(10, "");
    let central = Central::start(Central::tuning("[1, 2, 3]", &list));
    let mut nodes: Vec<Node> = (1..=3).map(|number| Node::start(number, &central, &list)).collect();
    central.wait_for(3);
    let rounds = std::env::var("TOLLGATE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let (mut before, mut rounds_alone) = ([0; 3], 0);
    for round in 0..rounds {
        let asked: Vec<_> = nodes.iter_mut().zip([14, 13, 13]).map(|(node, calls)| node.send(calls)).collect();
        let admitted: u32 = nodes.iter_mut().zip(&asked).map(|(node, ids)| node.admitted(ids)).sum();
        let counts = counted(&nodes);
        let [granted, alone, late] = std::array::from_fn(|which| counts[which] - before[which]);
        // The authority never grants an eleventh; what was admitted after the time of a decision is counted apart, and only where that
        // time was over.
        assert!(
            granted <= 10 && u64::from(admitted) == granted + alone,
            "round {round}: {admitted} admitted, {granted} granted, {alone} alone"
        );
        assert!(if late == 0 { (granted, alone) == (10, 0) } else { admitted >= 10 }, "round {round}: {granted}, {alone}, {late} late");
        central.wait_for_calls(u64::from(admitted));
        assert_same_calls(&central, &nodes.iter().collect::<Vec<_>>());
        nodes.iter_mut().for_each(Node::hang_up);
        central.wait_for_calls(0);
        (before, rounds_alone) = (counted(&nodes), rounds_alone + u32::from(alone > 0));
    }
    let [granted, alone, late] = counted(&nodes);
    eprintln!("{rounds} rounds: {granted} granted, {alone} admitted alone in {rounds_alone} of them, {late} decisions late");
    assert!(central.calls().1 <= 10 + alone, "the most calls: {:?}", central.calls());
    // Told one by one, unless a session ended on a machine too busy for heartbeats: then by a sync.
    let steady = nodes.iter().all(|node| node.link()["syncs"] == 1);
    assert!(!steady || central.view()["facts"].as_u64() == Some(alone));
    nodes.iter().for_each(|node| node.gateway.assert_sound());
}

/// Calls granted, calls admitted alone, and decisions that nobody made in time or that came without contact, at all of them.
fn counted(nodes: &[Node]) -> [u64; 3] {
    let links: Vec<Value> = nodes.iter().map(Node::link).collect();
    let sum = |key: &str| links.iter().map(|link| link[key].as_u64().unwrap()).sum::<u64>();
    let unheard: u64 = nodes.iter().map(|node| node.gateway.counter("admission_overdue")).sum();
    // A session more than the first: there was no contact meanwhile.
    [sum("granted"), sum("local"), unheard + sum("overdue") + sum("busy") + sum("syncs") - nodes.len() as u64]
}

/// An Add of H.248 asks the central node as CRCX does, Subtract gives the place back, and both count together; 510 is the refusal.
#[test]
fn calls_of_controllers_count_with_those_of_agents() {
    let list = scopes(2, "").replace("\"ds/ds3-1/*\"", "\"ds/ds3-1/*\", \"ds/ds1-7/*\"");
    let central = Central::start(Central::tuning("[1]", &list));
    let tuning = Node::tuning(1, central.address, &list);
    let (gateway, controller) = (tuning.addresses.gateway().ip(), tuning.addresses.agent().ip());
    let h248 = format!("[{{ name = \"north\", listen = \"{gateway}:2944\", controllers = [\"{controller}:2944\"] }}]");
    let spans = "[{ kind = \"t3\", unit = 1 }, { kind = \"t1\", unit = 7, h248 = \"north\" }]";
    let tuning = tuning.list("span", spans).list("h248", &h248);
    let mut controller = Controller::bind(&tuning);
    let gateway = Gateway::start(tuning);
    controller.accept("RS");
    let mut agent = Agent::silent(&gateway);
    agent.answers = true;
    agent.expect("RSIP", SOON);
    let mut node = Node { gateway, agent, next: 0 };
    central.wait_for(1);
    let add = |channel: u32| {
        let local = "M{O{MO=SR},L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}}";
        format!("C=${{A=ds/ds1_7/{channel}{{M{{O{{MO=SR}}}}}},A=${{{local}}}}}")
    };
    let reply = controller.ask(&add(1));
    assert!(reply.contains("A=ds/ds1_7/1,A=rtp/"), "{reply}");
    assert_eq!(node.call(2), 1);
    central.wait_for_calls(2);
    assert_same_calls(&central, &[&node]);
    let reply = controller.ask(&add(2));
    assert!(reply.contains("ER=510{\"admission: limit reached\"}"), "{reply}");
    // An emergency passes, and counts.
    let reply = controller.ask(&add(3).replace("C=${", "C=${EG,"));
    assert!(reply.contains("A=ds/ds1_7/3,A=rtp/"), "{reply}");
    central.wait_for_calls(3);
    assert_eq!(controller.ask("C=*{W-S=*}"), "C=*{S=*}");
    central.wait_for_calls(1);
    assert_same_calls(&central, &[&node]);
    node.gateway.assert_sound();
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
    let (_, _, metrics) = get(node.gateway.tuning.addresses.metrics(), "/metrics");
    let metrics = samples(&metrics);
    assert_eq!((metrics["tollgate_cluster_granted_total"], metrics["tollgate_cluster_denied_total"]), (3.0, 1.0));
    let within = |end: &str| metrics[&*format!("tollgate_cluster_decision_seconds_bucket{{le=\"{end}\"}}")];
    assert_eq!((metrics["tollgate_cluster_decision_seconds_count"], within("+Inf")), (4.0, 4.0), "{metrics:?}");
    assert!(within("0.00005") <= within("0.25") && metrics["tollgate_cluster_decision_seconds_sum"] > 0.0, "{metrics:?}");
    assert_eq!((metrics["tollgate_cluster_calls"], metrics["tollgate_cluster_in_sync"]), (3.0, 1.0));
    let (_, _, metrics) = get(central.process.tuning.addresses.metrics(), "/metrics");
    let metrics = samples(&metrics);
    assert_eq!(
        (metrics["tollgate_cac_granted_total"], metrics["tollgate_cac_denied_total"], metrics["tollgate_cac_active"]),
        (3.0, 1.0, 1.0)
    );
    let of_scope = |what: &str, more: &str| metrics[&*format!("tollgate_cac_scope_{what}{{scope=\"carrier\"{more}}}")];
    assert_eq!([of_scope("calls", ""), of_scope("attempts_total", ""), of_scope("granted_total", "")], [3.0, 4.0, 3.0], "{metrics:?}");
    assert_eq!(of_scope("refused_total", ",why=\"call limit reached\",class=\"normal\""), 1.0, "{metrics:?}");
    // Of a node, and of a call what happened to it.
    assert_eq!(central.process.show(&["cac", "1"])["cluster"]["nodes"].as_array().map(Vec::len), Some(1));
    assert!(central.process.refused(&["show", "cac", "7"]).contains("no node 7"));
    let text = node.gateway.order(&["show", "cac"]);
    assert!(text.contains("node 1 of a cluster, in-sync") && text.contains("\ndecisions within "), "{text}");
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
    let view = central.view();
    assert!(view["refused"].as_u64() > Some(0) && view["nodes"].as_array().unwrap().is_empty(), "{view}");
    eventually("the alarm", SOON, || node.gateway.rows(&["alarms"]).iter().any(|row| row["kind"] == "central-lost").then_some(()));
}

const NEAR: &str = "\r\nv=0\r\no=- 1 1 IN IP4 192.0.2.7\r\ns=-\r\nc=IN IP4 192.0.2.7\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0";

/// The scopes in which each call of a gateway counts.
fn places(node: &Node) -> Vec<String> {
    let rows = node.gateway.rows(&["ccbs"]);
    let text = |row: &Value| row["scopes"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect::<Vec<_>>().join(" ");
    let mut places: Vec<String> = rows.iter().map(text).collect();
    places.sort();
    places
}

/// R15, R23: a call counts where it turns out to be, is what it was when the change is refused, and so are both halves of a pair;
/// I11: an emergency passes whatever is full.
#[test]
fn calls_change_come_in_pairs_and_pass_in_emergencies() {
    let list = r#"[
        { kind = "trunk-group", name = "north", members = ["ds/ds3-1/ds1-1/*"], calls = 4 },
        { kind = "trunk-group", name = "rescue", members = ["ds/ds3-1/ds1-2/*"], calls = 0, class = "emergency" },
        { kind = "zone", name = "near", prefixes = ["192.0.2.0/24"], calls = 1 } ]"#;
    let list = list.replace('\n', " ");
    let central = Central::start(Central::tuning("[1]", &list));
    let mut node = Node::start(1, &central, &list);
    central.wait_for(1);
    let create = |node: &mut Node, name: &str, more: &[&str]| {
        let response = node.agent.ask("CRCX", name, &[&["C: A1", "M: recvonly"], more].concat());
        (response.code, response.get("I").unwrap_or_default().to_owned())
    };
    let (code, first) = create(&mut node, "ds/ds3-1/ds1-1/1", &[]);
    let (_, second) = create(&mut node, "ds/ds3-1/ds1-1/2", &[]);
    assert_eq!(code, Some(200));
    let modify = |node: &mut Node, name: &str, id: &str| node.agent.ask("MDCX", name, &["C: A1", &format!("I: {id}"), NEAR]).code;
    assert_eq!(modify(&mut node, "ds/ds3-1/ds1-1/1", &first), Some(200));
    assert_eq!(modify(&mut node, "ds/ds3-1/ds1-1/2", &second), Some(403));
    assert_eq!(places(&node), ["north", "north near"]);
    for process in [&central.process, &node.gateway] {
        let changed = |row: &Value| (row["changes"].as_u64().unwrap_or(0), row["changed_s"].is_u64());
        let mut changes: Vec<_> = process.rows(&["ccbs"]).iter().map(changed).collect();
        changes.sort_unstable();
        assert_eq!(changes, [(0, false), (1, true)]);
    }
    assert_same_calls(&central, &[&node]);
    // Gone at one, it has its place at the other.
    assert_eq!(node.agent.ask("DLCX", "ds/ds3-1/ds1-1/1", &["C: A1", &format!("I: {first}")]).code, Some(250));
    assert_eq!(modify(&mut node, "ds/ds3-1/ds1-1/2", &second), Some(200));
    assert_eq!(places(&node), ["north near"]);
    // Two halves; the next pair has room for one of them, and gets none.
    let pair = |node: &mut Node, a: u32, b: u32| {
        let other = format!("Z2: ds/ds3-1/ds1-1/{b}@tgw.example.net");
        create(node, &format!("ds/ds3-1/ds1-1/{a}"), &[&other]).0
    };
    assert_eq!(pair(&mut node, 3, 4), Some(200));
    assert_eq!(places(&node), ["north", "north", "north near"]);
    assert_eq!(pair(&mut node, 5, 6), Some(403));
    eventually("the half is free", SOON, || (places(&node).len() == 3).then_some(()));
    assert_eq!(create(&mut node, "ds/ds3-1/ds1-2/1", &[]).0, Some(200), "an emergency");
    assert_same_calls(&central, &[&node]);
    central.process.signal(libc::SIGSTOP);
    assert_eq!(create(&mut node, "ds/ds3-1/ds1-2/2", &[]).0, Some(200), "and nobody is waited for");
    central.process.signal(libc::SIGCONT);
    node.hang_up();
    eventually("nothing counts", SOON, || ccbs(&central.process).is_empty().then_some(()));
    node.gateway.assert_sound();
}
