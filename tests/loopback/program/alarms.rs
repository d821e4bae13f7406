//! Alarms of simulated cards as the agent is told them (must hold 5; G-RSI-04, G-DLX-06, O-4).

use super::agent::{Agent, Message};
use super::gateway::{Gateway, SOON, Tuning, eventually};
use std::time::Duration;

/// Longer than `alarm_merge`: what is not told by then is not told.
const QUIET: Duration = Duration::from_millis(500);

fn told(message: &Message) -> (&str, &str) {
    (message.name.strip_suffix("@tgw.example.net").unwrap(), message.get("RM").unwrap())
}

/// The one RSIP there is, and no other.
fn only(agent: &mut Agent) -> Message {
    agent.expect("RSIP", SOON);
    agent.listen(QUIET);
    let all = agent.commands("RSIP");
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

#[test]
fn a_t3_and_a_t1_are_told_in_one_message_each() {
    for (facility, name) in [("ds/ds3-1", "ds/ds3-1/*/*"), ("ds/ds3-1/ds1-5", "ds/ds3-1/ds1-5/*")] {
        let gateway = Gateway::start(Tuning::new().layout(2, 0, 0));
        let mut agent = Agent::of(&gateway);
        gateway.order(&["sim", "alarm", facility, "los", "--now"]);
        let forced = only(&mut agent);
        // A gateway of one T3 is that T3: both names cover the same endpoints, and the shorter one is as good.
        assert_eq!(told(&forced), (name, "forced"));
        assert_eq!(forced.get("E").and_then(|reason| reason.split(' ').next()), Some("905"));
        let alarms = gateway.rows(&["alarms"]);
        assert!(alarms.iter().any(|alarm| alarm["name"] == facility && alarm["what"].as_str().unwrap().contains("los")), "{alarms:?}");
        let spans = gateway.rows(&["spans", "--state", "down"]);
        assert_eq!(spans.len(), if facility == "ds/ds3-1" { 29 } else { 1 }, "{spans:?}");
        agent.mail.clear();
        gateway.order(&["sim", "alarm", facility, "clear", "--now"]);
        assert_eq!(told(&only(&mut agent)), (name, "restart"));
        assert_eq!(gateway.rows(&["alarms"]).len(), 0);
        agent.create("ds/ds3-1/ds1-5/1");
    }
}

/// The counters lag by ten seconds (RFC 4805 3.4.3), the state does not.
#[test]
fn the_page_of_a_facility_shows_its_defects_and_its_performance() {
    let gateway = Gateway::start(Tuning::new());
    gateway.order(&["sim", "alarm", "ds/ds3-1", "los", "--now"]);
    let unavailable = || Some(gateway.show(&["span", "ds/ds3-1/ds1-5"])["span"].clone()).filter(|page| page["available"] == false);
    let page = eventually("a T1 of a dead T3 is unavailable", SOON, unavailable);
    assert_eq!((&page["row"]["operational"], &page["signal"], &page["lag_s"]), (&"down".into(), &"ESF".into(), &10.into()));
    assert_eq!(page["current"]["ES"], 0);
    let page = gateway.show(&["span", "ds/ds3-1"])["span"].clone();
    assert_eq!((&page["defects"][0], &page["current"]["PSES"]), (&"los".into(), &0.into()));
    assert!(gateway.refused(&["show", "span", "ds/ds3-2"]).contains("no facility"));
    assert!(gateway.refused(&["show", "spans", "--history"]).contains("one facility"));
}

/// Without `--now` a defect is integrated: one that is shorter than `alarm_declare` tells nobody anything.
#[test]
fn a_short_defect_is_no_failure() {
    let gateway = Gateway::start(Tuning::new().set("timers.alarm_declare", "\"2s\""));
    let mut agent = Agent::of(&gateway);
    gateway.order(&["sim", "alarm", "ds/ds3-1/ds1-5", "ais"]);
    agent.listen(Duration::from_secs(1));
    gateway.order(&["sim", "alarm", "ds/ds3-1/ds1-5", "clear"]);
    agent.listen(Duration::from_millis(1500));
    assert_eq!(agent.mail, []);
    gateway.order(&["sim", "alarm", "ds/ds3-1/ds1-5", "ais"]);
    agent.listen(Duration::from_secs(1));
    assert_eq!(agent.mail, []);
    assert_eq!(told(&agent.expect("RSIP", SOON)), ("ds/ds3-1/ds1-5/*", "forced"));
}

/// Calls on a dead span: the agent hears of each by a DLCX; commands get 531 until the RSIP is out and 501 from then on.
#[test]
fn a_dead_span_takes_its_calls_with_it() {
    let gateway = Gateway::start(Tuning::new().layout(2, 0, 0).set("timers.alarm_merge", "\"1s\""));
    let mut agent = Agent::of(&gateway);
    let kept = agent.create("ds/ds3-1/ds1-6/1");
    let mut lost: Vec<_> = (1..=3).map(|n| agent.create(&format!("ds/ds3-1/ds1-5/{n}"))).collect();
    gateway.order(&["sim", "alarm", "ds/ds3-1/ds1-5", "los", "--now"]);
    let create = |agent: &mut Agent| agent.ask("CRCX", "ds/ds3-1/ds1-5/9", &["C: A1", "M: recvonly"]).code;
    eventually("the span is out", SOON, || (agent.ask("RQNT", "ds/ds3-1/ds1-5/9", &["X: 1"]).code != Some(200)).then_some(()));
    assert_eq!((create(&mut agent), agent.commands("RSIP").len()), (Some(531), 0));
    assert_eq!(told(&agent.expect("RSIP", SOON)), ("ds/ds3-1/ds1-5/*", "forced"));
    let mut deleted = eventually("a DLCX for each", SOON, || {
        agent.listen(Duration::from_millis(20));
        Some(agent.commands("DLCX")).filter(|all| all.len() >= lost.len())
    });
    deleted.sort_by_key(|message| message.get("I").unwrap().to_owned());
    lost.sort();
    assert_eq!(deleted.iter().map(|message| message.get("I").unwrap()).collect::<Vec<_>>(), lost);
    for message in &deleted {
        assert!(message.name.starts_with("ds/ds3-1/ds1-5/") && message.get("C") == Some("A1"), "{message:?}");
        assert!(message.get("E").is_some_and(|reason| reason.starts_with("905")) && message.get("P").is_some(), "{message:?}");
    }
    eventually("the owner knows that it is told", SOON, || (create(&mut agent) == Some(501)).then_some(()));
    let left: Vec<_> = gateway.rows(&["connections"]).iter().map(|row| row["connection"].as_str().unwrap().to_owned()).collect();
    assert_eq!(left, [kept]);
    assert_eq!((gateway.counter("connections_lost"), gateway.counter("gateway_dlcx_sent")), (3, 3));
}

/// Channels 1 to 12 of a T1 belong to another entity than 13 to 24: each is told about its own in the fewest names there are.
#[test]
fn two_entities_on_one_span_are_told_in_the_minimum() {
    for (form, ranges, minimum) in [("\"wildcard\"", "false", 24), ("\"ranges\"", "true", 2)] {
        let tuning = Tuning::new().set("span.0.kind", "\"t1\"");
        let gateway = Gateway::start(tuning.set("agent.0.rsip_form", form).set("agent.0.ranges", ranges));
        let mut agent = Agent::of(&gateway);
        let home = gateway.tuning.addresses.agent();
        let mut other = Agent::at((home.ip(), home.port() + 1).into(), gateway.tuning.addresses.gateway());
        other.answers = true;
        for channel in 1..=12 {
            let entity = format!("N: other@[{}]:{}", home.ip(), home.port() + 1);
            let response = agent.ask("RQNT", &format!("ds/ds1-1/{channel}"), &["X: 1", &entity]);
            assert_eq!(response.code, Some(200), "{response:?}");
        }
        gateway.order(&["sim", "alarm", "ds/ds1-1", "los", "--now"]);
        eventually("all is told", SOON, || {
            agent.listen(Duration::from_millis(50));
            other.listen(Duration::from_millis(50));
            (gateway.counter("restarts_sent") > minimum).then_some(())
        });
        agent.listen(QUIET);
        other.listen(QUIET);
        let (told_here, told_there) = (agent.commands("RSIP"), other.commands("RSIP"));
        let mut all: Vec<_> = told_here.iter().chain(&told_there).map(told).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len() as u64, minimum, "{all:?}");
        assert_eq!(told_here.len(), told_there.len());
        if minimum == 2 {
            assert_eq!((told(&told_here[0]), told(&told_there[0])), (("ds/ds1-1/[13-24]", "forced"), ("ds/ds1-1/[1-12]", "forced")));
        } else {
            assert!(all.iter().all(|(name, method)| !name.contains(['*', '[']) && *method == "forced"), "{all:?}");
            assert!(told_there.iter().all(|message| (1..=12).any(|n| told(message).0 == format!("ds/ds1-1/{n}"))), "{told_there:?}");
        }
    }
}
