//! Events asked for and notified (EVT, REQ, NTF, and digit maps in use: DMP).

use super::{MS, S, SDP, agent, audit, code, connection, create, each_layout, each_layout_with, notified, own_commands, snapshot, told};
use tollgate::proto::trunk::{CardOrder, Measure};
use tollgate::sim::World;

const E: &str = "ds/ds1-2/1";

/// The code of a request with identifier 1.
fn request(w: &mut World, parameters: &[&str]) -> u16 {
    code(w, "RQNT", E, &[&["X: 1"], parameters].concat())
}

/// Keys, one after another.
fn press(w: &mut World, keys: &str) {
    for key in keys.chars() {
        w.occur(E, &format!("D/{key}"), None);
    }
}

/// G-REQ-01, G-REQ-03, G-NTF-02, G-NTF-03: without an action an event is notified at once; with others only those count.
#[test]
fn an_event_is_notified_under_its_request() {
    each_layout(|w| {
        for (x, list) in [("A1", "T/co1"), ("0a", "T/co1(N)")] {
            assert_eq!(code(w, "RQNT", E, &[&format!("X: {x}"), &format!("R: {list}")]), 200);
            w.take_mail();
            w.occur(E, "T/co1", None);
            let all = own_commands(w, "NTFY");
            assert_eq!(all.len(), 1);
            let (to, notify) = &all[0];
            assert_eq!(*to, agent(1, 2727));
            assert_eq!(notify.line, format!("NTFY {} ds/ds1-2/1@tgw.example.net MGCP 1.0", notify.id));
            let names: Vec<_> = notify.parameters.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["X", "O"]);
            assert_eq!(notified(w), [(x.to_uppercase(), "T/co1".to_owned())]);
        }
        assert_eq!(request(w, &["R: T/co1(A)"]), 200);
        w.occur(E, "T/co1", None);
        assert_eq!(told(w), "");
        assert_eq!(audit(w, E, "O"), "T/co1");
        // The list is of one request.
        assert_eq!(request(w, &["Q: discard"]), 200);
        w.occur(E, "T/co1", None);
        assert_eq!((told(w), audit(w, E, "R")), (String::new(), String::new()));
    });
}

/// G-REQ-07, G-NTF-03, G-NTF-04, G-DMP-12: accumulated events come first, in order, each by itself; what was not asked for does not
/// come.
#[test]
fn accumulated_events_come_first() {
    each_layout(|w| {
        assert_eq!(request(w, &["R: D/1(A),D/2(A),D/3(N),G/ft(A),T/co2(I)"]), 200);
        press(w, "12");
        w.occur(E, "G/ft", None);
        w.occur(E, "T/co2", None);
        assert_eq!(audit(w, E, "O"), "D/1,D/2,G/ft");
        press(w, "93");
        assert_eq!(told(w), "D/1,D/2,G/ft,D/3");
    });
}

/// G-EVT-02, G-EVT-03, G-EVT-04, G-EVT-05: ranges, keys and groups; letter case does not matter.
#[test]
fn events_are_named_one_by_one_or_together() {
    each_layout(|w| {
        let cases = [
            ("D/[0-9#](N)", "D/5"),
            ("d/[0-9*#a-d](N)", "D/A"),
            ("D/*(N)", "D/*"),
            ("D/#(N)", "D/#"),
            ("D/x(N)", "D/7"),
            ("D/b(N)", "D/B"),
            ("T/all(N)", "T/ro"),
            ("*/co1(N)", "T/co1"),
            ("*/all(N)", "G/mt"),
            ("co1(N)", "T/co1"),
            ("T/sit(N)(2)", "T/sit(2)"),
        ];
        for (list, event) in cases {
            assert_eq!(request(w, &["Q: discard", &format!("R: {list}")]), 200, "{list}");
            w.occur(E, event, None);
            assert_eq!(told(w), event, "{list}");
        }
        for (list, event) in [("D/[0-9](N)", "D/#"), ("D/*(N)", "D/#"), ("T/all(N)", "G/mt"), ("T/sit(N)(2)", "T/sit(3)")] {
            assert_eq!(request(w, &["Q: discard", &format!("R: {list}")]), 200, "{list}");
            w.occur(E, event, None);
            assert_eq!(told(w), "", "{list}");
        }
        assert!(request(w, &["S: D/[0-9]"]) >= 500);
    });
}

/// G-EVT-06, G-EVT-13, G-EVT-14, G-EVT-15: package, name and parameters are checked in this order; nothing changes.
#[test]
fn what_cannot_be_detected_is_refused() {
    each_layout(|w| {
        assert_eq!(request(w, &["R: T/co1(A)", "T: T/co2", "D: xx"]), 200);
        let before = snapshot(w, E);
        let cases = [
            ("R: ZZ/a", 518),
            ("R: L/hd", 518),
            ("R: MS/sup", 518),
            ("R: T/nosuch", 522),
            ("R: G/cg", 522),
            ("R: D/[0-9p]", 522),
            ("S: G/ft", 522),
            ("S: T/nosuch", 522),
            ("S: T/co1(bad=1)", 538),
            ("S: T/ct(in=co1,out=co1)", 538),
            ("R: G/oc(N)(G/rt)", 538),
            ("R: T/co1(N)(to=5)", 538),
            ("R: T/sit(N)", 538),
            ("R: T/sit(N)(9)", 538),
            ("R: T/co1@*(N)", 538),
            ("S: T/bz@*", 538),
            ("T: D/[0-9](N)", 538),
            ("R: R/qa@DEAD(N)", 515),
            ("S: G/rt@DEADBEEF", 515),
            ("S: G/rt@$", 510),
        ];
        for (parameter, expected) in cases {
            let reply = w.ask("RQNT", E, &["X: 2", "D: (1|2)", parameter]);
            assert_eq!(reply.code, Some(expected), "{parameter}: {reply:?}");
            assert_eq!(reply.get("PL").is_some(), expected == 518, "{parameter}");
        }
        assert_eq!(snapshot(w, E), before);
    });
}

/// G-REQ-02, G-REQ-04, G-REQ-05, G-REQ-06, G-REQ-08, G-REQ-12, G-REQ-16: which actions there are and which go together.
#[test]
fn actions_that_cannot_be_done_are_refused() {
    each_layout(|w| {
        assert_eq!(request(w, &["R: D/[0-9](D)"]), 519);
        assert_eq!(request(w, &["R: T/co1(E(R(D/[0-9](D))))"]), 519);
        for list in ["N", "A", "I", "N,K", "A,K", "K,I", "E(S(T/bz))", "A,E(S(T/bz))", "K,E(S(T/bz))", "A,K,E(R(T/co2))"] {
            assert_eq!(request(w, &[&format!("R: T/co1({list})")]), 200, "{list}");
        }
        for list in ["N,A", "A,I", "S,K", "I,E(S(T/bz))", "N,N", "S", "N,S", "Z", "T/foo", "N,E(S(T/bz))", "E(R(T/co2(E(S(T/bz)))))"] {
            assert_eq!(request(w, &[&format!("R: T/co1({list})")]), 523, "{list}");
        }
        assert_eq!(request(w, &["Q: loop", "R: T/co1(N,E(S(T/bz)))"]), 200);
        assert_eq!(request(w, &["D: xx", "R: D/[0-9](D,K),T/co1(D)"]), 200);
        for list in ["D/5(N), D/[0-9](A)", "T/co1, t/CO1(A)", "D/x, D/0"] {
            assert_eq!(request(w, &[&format!("R: {list}")]), 510, "{list}");
        }
        let many: Vec<_> = ["A", "B", "C", "D", "*", "#"].iter().cycle().take(65).map(|key| format!("D/{key}")).collect();
        assert_eq!(request(w, &[&format!("R: {}", many.join(","))]), 510);
    });
}

/// G-EVT-07, G-EVT-08, G-EVT-09, G-EVT-10, G-EVT-11: events on connections carry the connection; `@*` stays as it is, `@$` does not.
#[test]
fn events_on_connections_name_the_connection() {
    each_layout(|w| {
        let first = create(w, E, "A1");
        assert_eq!(request(w, &["R: R/qa@*(N)"]), 200);
        assert_eq!(audit(w, E, "R"), "R/qa@*(N)");
        w.occur(E, "R/qa", Some(&first));
        assert_eq!(told(w), format!("R/qa@{first}"));
        // A later connection, and one that takes no media in.
        assert_eq!(request(w, &["R: R/qa@*(N)"]), 200);
        let second = create(w, E, "A1");
        assert_eq!(code(w, "MDCX", E, &["C: A1", &format!("I: {first}"), "M: inactive"]), 200);
        w.occur(E, "R/qa", Some(&first));
        assert_eq!(told(w), "");
        w.occur(E, "R/qa", Some(&second));
        assert_eq!(told(w), format!("R/qa@{second}"));
        // Of one connection only, whichever mode it has.
        assert_eq!(request(w, &[&format!("R: R/qa@{first}(N)")]), 200);
        w.occur(E, "R/qa", Some(&second));
        assert_eq!(told(w), "");
        // The connection of the command.
        let made = w.ask("CRCX", E, &["C: A1", "M: recvonly", "X: 3", "R: R/qa@$(N)"]);
        let third = connection(&made);
        assert_eq!(audit(w, E, "R"), format!("R/qa@{third}(N)"));
        w.occur(E, "R/qa", Some(&second));
        w.occur(E, "R/qa", Some(&third));
        assert_eq!(notified(w), [("3".to_owned(), format!("R/qa@{third}"))]);
        // When it is gone nothing is heard of it.
        assert_eq!(code(w, "MDCX", E, &["C: A1", &format!("I: {third}"), "X: 4", "R: R/qa@$(N)"]), 200);
        assert_eq!(code(w, "DLCX", E, &["C: A1", &format!("I: {third}")]), 250);
        w.run_for(S);
        assert_eq!(told(w), "");
    });
}

/// G-REQ-10, G-REQ-11, G-REQ-14, G-QUA-17: an embedded request keeps identifier and accumulated events, not the event that activated it.
#[test]
fn an_embedded_request_takes_over() {
    each_layout(|w| {
        for (list, expected) in [("A,E(D(xx),R(D/[0-9](D)))", "T/co1,D/4,D/2"), ("E(R(D/[0-9](D)),D(xx))", "D/4,D/2")] {
            assert_eq!(code(w, "RQNT", E, &["X: 7", "Q: discard", &format!("R: T/co1({list}),G/ft(A)")]), 200, "{list}");
            w.occur(E, "T/co1", None);
            assert_eq!((audit(w, E, "R"), audit(w, E, "D"), audit(w, E, "X")), ("D/[0-9](D)".into(), "xx".into(), "7".into()));
            w.take_mail();
            press(w, "42");
            assert_eq!(notified(w), [("7".to_owned(), expected.to_owned())]);
        }
        // Absent lists are empty, an absent map stays.
        assert_eq!(request(w, &["Q: discard", "R: T/co1(E(S(T/bz)))", "S: T/ro"]), 200);
        assert_eq!(audit(w, E, "R"), "T/co1(E(S(T/bz)))");
        w.occur(E, "T/co1", None);
        assert_eq!((audit(w, E, "R"), audit(w, E, "S"), audit(w, E, "D")), (String::new(), "T/bz".into(), "xx".into()));
        assert_eq!(told(w), "");
        // What was accumulated stays and is not looked at again.
        assert_eq!(request(w, &["Q: discard", "R: G/ft(A),T/co1(E(R(G/ft(N),T/co2(N))))"]), 200);
        w.occur(E, "G/ft", None);
        w.occur(E, "T/co1", None);
        assert_eq!((told(w), audit(w, E, "O")), (String::new(), "G/ft".into()));
        w.occur(E, "T/co2", None);
        assert_eq!(told(w), "G/ft,T/co2");
    });
}

/// G-REQ-13: what cannot be activated is an event, in the request that failed or the one in place.
#[test]
fn an_embedded_request_that_fails_is_an_event() {
    each_layout(|w| {
        let id = create(w, E, "A1");
        for list in [format!("T/co1(E(R(B/enf(N)),S(G/rt@{id})))"), format!("B/enf(N),T/co1(E(S(G/rt@{id})))")] {
            assert_eq!(request(w, &["Q: discard", &format!("R: {list}")]), 200);
            w.occur(E, "T/co1", None);
            assert_eq!(told(w), "B/enf(527)", "{list}");
        }
    });
}

/// G-NTF-01, G-NTF-02: a Notify goes to the notified entity of the moment and says whom its request named.
#[test]
fn a_notify_goes_to_the_present_entity() {
    each_layout(|w| {
        let id = create(w, E, "A1");
        assert_eq!(request(w, &["N: ca1@ca1.example.net", "R: T/co1(N)"]), 200);
        assert_eq!(code(w, "MDCX", E, &["C: A1", &format!("I: {id}"), "N: ca2@ca2.example.net"]), 200);
        w.take_mail();
        w.occur(E, "T/co1", None);
        let all = own_commands(w, "NTFY");
        assert_eq!((all[0].0, all[0].1.get("N")), (agent(2, 2727), Some("ca1@ca1.example.net")));
    });
}

/// G-RQN-02, G-TXN-02: a request for all of a pattern is in place on each, or on none.
#[test]
fn a_request_for_all_is_in_place_on_each() {
    each_layout(|w| {
        assert_eq!(code(w, "RQNT", "ds/ds1-1/*", &["X: 77", "R: T/co1(N)", "T: T/co2"]), 200);
        for n in [1, 9, 24] {
            let name = format!("ds/ds1-1/{n}");
            assert_eq!((audit(w, &name, "R"), audit(w, &name, "T")), ("T/co1(N)".into(), "T/co2".into()));
            w.take_mail();
            w.occur(&name, "T/co1", None);
            let all = own_commands(w, "NTFY");
            assert!(all.len() == 1 && all[0].1.line.contains(&format!(" {name}@")), "{all:?}");
        }
        // One of them has no digit map.
        assert_eq!(code(w, "RQNT", "ds/ds1-1/*", &["X: 78", "D: xx"]), 200);
        w.free(w.plan.topology.lookup(b"ds/ds1-1/9").unwrap());
        w.run_for(3 * S);
        let before: Vec<_> = (1..=24).map(|n| snapshot(w, &format!("ds/ds1-1/{n}"))).collect();
        assert_eq!(code(w, "RQNT", "ds/ds1-1/*", &["X: 79", "R: D/[0-9](D)"]), 519);
        let after: Vec<_> = (1..=24).map(|n| snapshot(w, &format!("ds/ds1-1/{n}"))).collect();
        assert_eq!(before, after);
    });
}

/// G-DMP-03, G-DMP-05, G-DMP-06, G-DMP-07, G-REQ-09: the first complete match is notified, and what cannot become one.
#[test]
fn digits_are_notified_when_they_match_or_cannot() {
    each_layout(|w| {
        let cases = [
            ("12", "15", "D/1,D/5"),
            ("xx", "1#", "D/1,D/#"),
            ("(xxxxxxx|x11)", "411", "D/4,D/1,D/1"),
            ("(0[12].|00|1[12].1|2x.#)", "0", "D/0"),
            ("(0[12].|00|1[12].1|2x.#)", "121", "D/1,D/2,D/1"),
            ("(0[12].|00|1[12].1|2x.#)", "2345#", "D/2,D/3,D/4,D/5,D/#"),
        ];
        for (map, keys, expected) in cases {
            assert_eq!(request(w, &["Q: discard", "R: D/[0-9#*](D),T/co1(D)", &format!("D: {map}")]), 200);
            let (last, first) = keys.chars().rev().fold((None, String::new()), |(last, first), key| match last {
                None => (Some(key), first),
                Some(_) => (last, format!("{key}{first}")),
            });
            press(w, &first);
            assert_eq!(told(w), "", "{map} {keys}");
            press(w, &last.unwrap().to_string());
            assert_eq!(told(w), expected, "{map} {keys}");
        }
        // The map stays (G-DMP-10), the digits do not (G-DMP-11), and what is no digit never matches.
        assert_eq!(request(w, &["Q: discard", "R: D/[0-9](D),T/co1(D)", "D: xx"]), 200);
        press(w, "1");
        assert_eq!(request(w, &["Q: discard", "R: D/[0-9](D),T/co1(D)"]), 200);
        press(w, "34");
        assert_eq!(told(w), "D/3,D/4");
        assert_eq!(request(w, &["Q: discard", "R: D/[0-9](D),T/co1(D)"]), 200);
        press(w, "1");
        w.occur(E, "T/co1", None);
        assert_eq!(told(w), "D/1,T/co1");
    });
}

/// G-DMP-08, G-DMP-09: the timer is a digit of its own; it is long while digits are missing and short when only it is.
#[test]
fn the_timer_between_digits() {
    each_layout(|w| {
        let ask = |w: &mut World| assert_eq!(request(w, &["Q: discard", "R: D/[0-9T](D)", "D: (xxxxxxx|x11T)"]), 200);
        ask(w);
        press(w, "411");
        w.run_for(3 * S);
        assert_eq!(told(w), "");
        w.run_for(S + 100 * MS);
        assert_eq!(told(w), "D/4,D/1,D/1,D/T");
        ask(w);
        press(w, "41");
        w.run_for(15 * S);
        assert_eq!(told(w), "");
        w.run_for(S + 100 * MS);
        assert_eq!(told(w), "D/4,D/1,D/T");
        // Asked for by itself it runs at once, until a key is pressed.
        assert_eq!(request(w, &["Q: discard", "R: D/[0-9](A),D/T(N)"]), 200);
        w.run_for(4 * S + 100 * MS);
        assert_eq!(told(w), "D/T");
        assert_eq!(request(w, &["Q: discard", "R: D/[0-9](A),D/T(N)"]), 200);
        press(w, "1");
        w.run_for(20 * S);
        assert_eq!(told(w), "");
    });
}

/// G-DMP-13, G-DMP-15: long maps, and more digits than are kept.
#[test]
fn matching_goes_on_when_the_list_is_full() {
    each_layout(|w| {
        let last = "7".repeat(40);
        let mut map = String::from("(");
        while map.len() < 2000 {
            map.push_str("1[2-5]x.#|");
        }
        map.push_str(&last);
        map.push(')');
        assert!(map.len() > 2040);
        assert_eq!(request(w, &["R: D/[0-9#](D)", &format!("D: {map}")]), 200);
        press(w, &"7".repeat(39));
        assert_eq!(told(w), "");
        press(w, "7");
        assert_eq!(told(w).split(',').count(), 33);
    });
}

/// G-RQN-04: what a carried request cannot do keeps the carrier from being done.
#[test]
fn a_carried_request_that_is_refused_refuses_the_carrier() {
    each_layout(|w| {
        let refused = w.ask("CRCX", E, &["C: A1", "M: recvonly", "X: 5", "S: G/rt@$"]);
        assert_eq!((refused.code, refused.get("I")), (Some(527), None));
        let id = create(w, E, "A1");
        assert_eq!(code(w, "DLCX", E, &["C: A1", &format!("I: {id}"), "X: 5", "R: T/nosuch"]), 522);
        assert_eq!(code(w, "DLCX", E, &["C: A1", &format!("I: {id}"), "X: 5", &format!("R: R/qa@{id}")]), 515);
        assert_eq!(w.connections().len(), 1);
        let made = w.ask("CRCX", E, &[&["C: A1", "M: sendrecv", "X: 5", "S: G/rt@$"][..], &SDP].concat());
        let made = connection(&made);
        assert_eq!(audit(w, E, "S"), format!("G/rt@{made}"));
    });
}

/// G-TXN-03, G-TXN-04, G-RQN-06: until a slow command is done the old request is in place; when it is done the new one is, and what it
/// rests on has held all the time.
#[test]
fn a_slow_command_changes_events_when_it_is_done() {
    each_layout(|w| {
        assert_eq!(request(w, &["R: T/co1(N)"]), 200);
        w.order_cards(CardOrder::Delay(500));
        let slow = w.command("CRCX", E, &["C: A1", "M: recvonly", "X: 2", "R: T/co2(N)"]);
        w.run_for(100 * MS);
        w.occur(E, "T/co1", None);
        assert_eq!((notified(w), audit(w, E, "B/NS")), (vec![("1".to_owned(), "T/co1".to_owned())], "ls".into()));
        let made = w.final_of(slow);
        assert_eq!((made.code, audit(w, E, "B/NS"), audit(w, E, "X")), (Some(200), "o".into(), "2".into()));
        let other = connection(&made);
        w.take_mail();
        // The connection its request is about goes meanwhile.
        let slow = w.command("CRCX", E, &["C: A2", "M: recvonly", "X: 3", &format!("R: R/qa@{other}(N)")]);
        w.run_for(100 * MS);
        assert_eq!(code(w, "DLCX", E, &["C: A1", &format!("I: {other}")]), 250);
        assert_eq!(w.final_of(slow).code, Some(515));
        assert_eq!((audit(w, E, "X"), w.connections().len()), ("2".into(), 0));
        w.order_cards(CardOrder::Delay(0));
    });
}

/// G-TXN-05, G-TXN-08: a request aborts a command with an older one that still waits, even when it is refused itself.
#[test]
fn a_newer_request_ends_an_older_one() {
    each_layout(|w| {
        w.order_cards(CardOrder::Delay(500));
        for (parameters, expected) in [(["X: 3", "R: T/co2(N)"], 200), (["X: 4", "R: T/nosuch"], 522)] {
            let slow = w.command("CRCX", E, &["C: A1", "M: recvonly", "X: 2", "R: T/co1(N)"]);
            w.run_for(100 * MS);
            assert_eq!(code(w, "RQNT", E, &parameters), expected);
            assert_eq!(w.final_of(slow).code, Some(407));
            assert_eq!((audit(w, E, "X"), w.connections().len()), ("3".into(), 0));
        }
        // One without a request goes on.
        let slow = w.command("CRCX", E, &["C: A1", "M: recvonly"]);
        w.run_for(100 * MS);
        assert_eq!(code(w, "RQNT", E, &["X: 5"]), 200);
        assert_eq!(w.final_of(slow).code, Some(200));
        w.order_cards(CardOrder::Delay(0));
    });
}

/// G.05: a connection that has been up for longer than `timers.long_duration` is an event, once; also one made later, one that takes nothing
/// in, and one that is old when it is asked for.
#[test]
fn a_connection_that_is_up_for_long_is_an_event() {
    let minute = |_: &mut _, settings: &mut tollgate::proto::plan::Settings| settings.timers.long_duration = 60 * S;
    each_layout_with(minute, |w| {
        let first = create(w, E, "A1");
        assert_eq!(request(w, &["R: G/ld(N)"]), 200);
        w.take_mail();
        w.run_for(59 * S);
        assert_eq!(told(w), "");
        let second = connection(&w.ask("CRCX", E, &["C: A1", "M: inactive", "X: 2", "Q: loop", "R: G/ld@*(N)"]));
        w.take_mail();
        w.run_for(2 * S);
        assert_eq!(told(w), format!("G/ld@{first}"));
        w.run_for(60 * S);
        assert_eq!(told(w), format!("G/ld@{second}"));
        w.run_for(200 * S);
        assert_eq!(request(w, &["R: G/ld(N)"]), 200);
        w.run_for(S);
        assert_eq!(told(w), "", "they were told of");
        // Nobody asks while it grows old.
        assert_eq!(request(w, &["R:"]), 200);
        let third = create(w, E, "A1");
        let fourth = create(w, E, "A1");
        w.run_for(100 * S);
        assert_eq!(request(w, &[&format!("R: G/ld@{fourth}(N)")]), 200);
        w.run_for(100 * MS);
        assert_eq!(told(w), format!("G/ld@{fourth}"));
        assert_eq!(request(w, &["R: T/co1(E(R(G/ld@*(N))))"]), 200);
        w.occur(E, "T/co1", None);
        w.run_for(100 * MS);
        assert_eq!(told(w), format!("G/ld@{third}"));
        // One that is gone has no age.
        assert_eq!(code(w, "DLCX", E, &["C: A1"]), 250);
        assert_eq!(request(w, &["R: G/ld(N)"]), 200);
        let last = create(w, E, "B1");
        assert_eq!(code(w, "DLCX", E, &["C: B1", &format!("I: {last}")]), 250);
        w.take_mail();
        w.run_for(100 * S);
        assert_eq!(told(w), "");
    });
}

/// R.03, R.08, R.10, SIG-15: what is asked for of connections is measured on those that are there and on later ones, those that are named
/// only there; a persistent one too, and what the request says of it goes before.
#[test]
fn what_is_asked_for_of_all_connections_is_measured_on_later_ones() {
    each_layout(|w| {
        let endpoint = "ds/ds1-2/1";
        let first = create(w, endpoint, "A1");
        let ask = |w: &mut World, lines: &[&str]| assert_eq!(code(w, "RQNT", endpoint, &[&["X: 1"][..], lines].concat()), 200, "{lines:?}");
        assert_eq!(w.measured(), []);
        let silence = |seconds| Measure::Silence { seconds, after_report: false };
        ask(w, &["R: r/rto@*(N)(5), r/pl(N)(100)"]);
        assert_eq!(w.measured(), [(first.clone(), silence(5)), (first.clone(), Measure::Loss(100))]);
        let second = create(w, endpoint, "A2");
        assert_eq!(w.measured(), [(second.clone(), silence(5)), (second.clone(), Measure::Loss(100))]);
        ask(w, &[&format!("R: r/iu@{second}(N)")]);
        assert_eq!(w.measured(), [(second.clone(), Measure::Unreachable(3))]);
        create(w, endpoint, "A3");
        assert_eq!(w.measured(), []);
        ask(w, &[&format!("R: r/rto@{second}(N)(7,st=ra)"), &format!("B/PR: r/rto@{second}(N)(9)")]);
        assert_eq!(w.measured().last(), Some(&(second.clone(), Measure::Silence { seconds: 7, after_report: true })));
        ask(w, &["R:"]);
        assert_eq!(w.measured(), [(second, silence(9))]);
    });
}
