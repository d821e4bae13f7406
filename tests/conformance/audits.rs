//! AuditEndpoint and AuditConnection (AUE, AUC).

use super::{MS, S, audit, block, code, connection, create, each_layout, large_world, raw, setup, snapshot};
use std::time::Duration;
use tollgate::proto::core::Administration;
use tollgate::proto::restart::BlockHow;
use tollgate::proto::trunk::CardOrder;
use tollgate::sim::World;

const NAME: &str = "ds/ds1-2/1";

/// G-AUE-01: one Z for each endpoint, in any service state, and nothing else; F says nothing; no any-of.
#[test]
fn an_audit_of_many_names_them() {
    each_layout(|w| {
        block(w, "ds/ds1-1/7", true);
        for f in [&[][..], &["F: A"], &["F:"]] {
            let names = w.ask("AUEP", "ds/ds1-1/*", f);
            let expected: Vec<String> = (1..=24).map(|n| format!("ds/ds1-1/{n}@tgw.example.net")).collect();
            assert_eq!((names.code, names.values("Z")), (Some(200), expected.iter().map(String::as_str).collect()));
            assert_eq!(names.parameters.len(), 24);
        }
        assert_eq!(code(w, "AUEP", "ds/ds1-1/$", &[]), 500);
    });
}

/// G-AUE-02: a list is whole or refused.
#[test]
fn a_list_is_never_cut() {
    let mut w = large_world(tollgate::sim::Layout::Two);
    for limit in [65_507, 40_000, 8000, 4000] {
        w.reload(|settings| settings.agents[0].max_response = limit);
        for (name, count) in [("*", 672), ("ds/ds3-1/*/1", 28), ("ds/ds3-1/ds1-2/*", 24)] {
            let reply = w.ask("AUEP", name, &[]);
            match reply.code {
                Some(200) => assert!(reply.values("Z").len() == count && reply.bytes.len() <= limit),
                other => {
                    let needed = count * "Z: ds/ds3-1/ds1-1/1@tgw.example.net\r\n".len();
                    assert!(other == Some(533) && needed > limit, "{name}: {reply:?}");
                }
            }
        }
    }
    assert_eq!(code(&mut w, "AUEP", "*", &[]), 533);
}

/// G-AUE-03: without F, whether the endpoint exists, in any service state.
#[test]
fn an_audit_without_info_says_whether_it_exists() {
    each_layout(|w| {
        block(w, "ds/ds1-2/2", true);
        for name in [NAME, "ds/ds1-2/2"] {
            for f in [&[][..], &["F:"]] {
                let reply = w.ask("AUEP", name, f);
                assert_eq!((reply.code, reply.parameters.len()), (Some(200), 0));
            }
        }
        assert_eq!(code(w, "AUEP", "ds/ds1-2/25", &[]), 500);
    });
}

/// G-AUE-04, G-AUE-05, G-AUE-08: every info there is, in the order asked for, empty where there is nothing; others are left out.
#[test]
fn every_info_of_a_fresh_endpoint() {
    each_layout(|w| {
        let reply = w.ask("AUEP", NAME, &["F: R,D,S,X,Q,N,I,T,O,ES,B,RM,RD,E,PL,ZZ9,foo/bar,C,M"]);
        let expected = [
            ("R", ""),
            ("D", ""),
            ("S", ""),
            ("X", "0"),
            ("Q", "step,process"),
            ("N", "ca1@[192.0.2.1]:2727"),
            ("I", ""),
            ("T", ""),
            ("O", ""),
            ("ES", ""),
            ("B", "e:mu"),
            ("RM", "restart"),
            ("RD", "0"),
            ("E", "000"),
            ("PL", "T:1,G:1,D:1,R:1,SL:0,DM1:0,FM:0,BA:0,B:0"),
        ];
        let got: Vec<_> = reply.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(got, expected);
        let unknown = w.ask("AUEP", NAME, &["F: N,ZZ9,foo/bar,D"]);
        assert_eq!(unknown.parameters.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["N", "D"]);
    });
}

/// G-AUE-08: X, Q, D, N and B are those of the latest commands, and those of the start after a restart (G-RST-12).
#[test]
fn an_audit_says_what_was_given_last() {
    each_layout(|w| {
        let fresh = snapshot(w, NAME);
        assert_eq!(code(w, "RQNT", NAME, &["X: 1f", "Q: loop,discard", "D: (0T|xx)", "N: ca2@ca2.example.net", "B: e:A"]), 200);
        let given = [("X", "1F"), ("Q", "loop,discard"), ("D", "(0T|xx)"), ("N", "ca2@ca2.example.net"), ("B", "e:A")];
        for (info, value) in given {
            assert!(audit(w, NAME, info).eq_ignore_ascii_case(value), "{info}");
        }
        create(w, NAME, "A1");
        // A request that fails leaves all of it (G-QUA-23).
        let before = snapshot(w, NAME);
        for failing in [&["X: 2", "D: (", "Q: step"][..], &["X: 2", "Q: foo"], &["X: 2", "D: (1)", "R: zz/a(N)"], &["X: 2", "N: a:b"]] {
            assert!(code(w, "RQNT", NAME, failing) >= 500);
        }
        assert_eq!(snapshot(w, NAME), before);
        block(w, NAME, true);
        block(w, NAME, false);
        let restarted: Vec<_> = snapshot(w, NAME).into_iter().filter(|(name, _)| name != "B").collect();
        assert_eq!(restarted, fresh.into_iter().filter(|(name, _)| name != "B").collect::<Vec<_>>());
    });
}

/// G-AUE-09: connections on one line.
#[test]
fn connections_stand_on_one_line() {
    each_layout(|w| {
        let ids = [create(w, NAME, "A1"), create(w, NAME, "B1")];
        let reply = w.ask("AUEP", NAME, &["F: I"]);
        assert_eq!(reply.values("I"), [ids.join(", ")]);
    });
}

/// G-AUE-10, G-AUE-17, G-RSI-03: method, delay and reason, as a RestartInProgress sent now would carry them.
#[test]
fn an_audit_says_method_delay_and_reason() {
    each_layout(|w| {
        let state = |w: &mut World| {
            let reply = w.ask("AUEP", NAME, &["F: RM,RD,E"]);
            let get = |name: &str| reply.get(name).unwrap().to_owned();
            (get("RM"), get("RD"), get("E").split(' ').next().unwrap().to_owned())
        };
        let text = |method: &str, delay: &str, reason: &str| (method.to_owned(), delay.to_owned(), reason.to_owned());
        assert_eq!(state(w), text("restart", "0", "000"));
        let selection = w.plan.topology.resolve(b"ds/ds1-2/*", false).unwrap();
        create(w, "ds/ds1-2/9", "A1");
        w.administer(Administration::Block(selection, BlockHow::Graceful(Duration::from_secs(100))));
        w.run_for(S);
        let (method, delay, reason) = state(w);
        assert_eq!((method.as_str(), reason.as_str()), ("graceful", "901"));
        let first: u32 = delay.parse().unwrap();
        assert!((98..=100).contains(&first), "{delay}");
        w.run_for(40 * S);
        let later: u32 = state(w).1.parse().unwrap();
        assert!((first - 41..=first - 39).contains(&later), "{later} after {first}");
        // G-SVC-02: still in service.
        assert_eq!(code(w, "RQNT", NAME, &["X: 1"]), 200);
        w.run_for(70 * S);
        assert_eq!(state(w), text("forced", "0", "901"));
        assert_eq!(code(w, "RQNT", NAME, &["X: 1"]), 501);
        w.administer(Administration::Unblock(selection));
        w.run_for(S);
        assert_eq!(state(w), text("restart", "0", "000"));
        // Revoked: no delay is left.
        create(w, "ds/ds1-2/9", "A1");
        w.administer(Administration::Block(selection, BlockHow::Graceful(Duration::from_secs(100))));
        w.run_for(S);
        w.administer(Administration::Unblock(selection));
        w.run_for(S);
        assert_eq!(state(w), text("restart", "0", "000"));
        // Without a delay: with the last connection.
        create(w, NAME, "A1");
        w.administer(Administration::Block(selection, BlockHow::Graceful(Duration::ZERO)));
        w.run_for(S);
        assert_eq!(state(w), text("graceful", "0", "901"));
    });
}

/// G-AUE-12, G-PIG-04: a command as large as the audited limit is executed.
#[test]
fn the_largest_datagram_is_told_and_taken() {
    each_layout(|w| {
        let largest: usize = audit(w, NAME, "MD").parse().unwrap();
        assert!((4000..=65_507).contains(&largest));
        let mut text = format!("RQNT 77 {NAME}@tgw.example.net MGCP 1.0\r\nX: 55\r\nX-Pad: ");
        text.push_str(&"p".repeat(largest - text.len() - 2));
        text.push_str("\r\n");
        assert_eq!(raw(w, text.as_bytes())[0].code, Some(200));
        assert_eq!(audit(w, NAME, "X"), "55");
    });
}

/// G-AUE-13, G-AUE-14, G-AUE-15, G-SYN-08: a line for each codec group, never folded, in the syntax of L.
#[test]
fn capabilities_are_legal() {
    each_layout(|w| {
        let reply = w.ask("AUEP", NAME, &["F: A"]);
        let lines = reply.values("A");
        assert_eq!(lines.len(), 2);
        for (line, codec) in lines.iter().zip(["PCMU", "PCMA"]) {
            let items: Vec<(&str, &str)> = line.split(", ").map(|item| item.split_once(':').expect("key:value")).collect();
            let keys: Vec<&str> = items.iter().map(|(key, _)| *key).collect();
            assert_eq!(keys, ["a", "p", "e", "gc", "s", "t", "r", "nt", "v", "m"]);
            assert_eq!(items[0].1, codec);
            let (low, high) = items[1].1.split_once('-').unwrap();
            assert!(low.parse::<u16>().unwrap() < high.parse::<u16>().unwrap());
            for (key, value) in &items {
                match *key {
                    "e" | "s" => assert!(["on", "off"].contains(value)),
                    "gc" => assert_eq!(*value, "0"),
                    "t" => assert!(value.bytes().all(|b| b.is_ascii_hexdigit()) && value.len() <= 2),
                    "r" => assert_eq!(*value, "be"),
                    "v" => assert_eq!(*value, "T;G;D;R;SL;DM1;FM;BA;B"),
                    "nt" => assert!(value.split(';').all(|network| ["IN", "LOCAL"].contains(&network))),
                    _ => {}
                }
            }
        }
    });
}

/// G-AUE-16, G-TXN-09: an audit waits for nothing, changes nothing, and nothing stands in front of its answer.
#[test]
fn audits_wait_for_nothing_and_change_nothing() {
    each_layout(|w| {
        let before = snapshot(w, NAME);
        w.order_cards(CardOrder::Delay(500));
        let slow = w.command("CRCX", NAME, &["C: A1", "M: recvonly", "X: 5"]);
        w.run_for(20 * MS);
        let started = w.now;
        assert_eq!(snapshot(w, NAME), before);
        assert_eq!(code(w, "AUEP", "ds/ds1-2/*", &[]), 200);
        assert!(w.now.since(started) < 50 * MS);
        assert_eq!(w.final_of(slow).code, Some(200));
        w.order_cards(CardOrder::Delay(0));
        raw(w, format!("000 {slow}\r\n").as_bytes());
    });
    for layout in super::LAYOUTS {
        let mut w = World::new(tollgate::sim::Setup { told: false, ..setup(layout, 1) }, |_, settings| {
            settings.timers.max_waiting_delay = Some(60 * S);
        });
        let reply = raw(&mut w, b"AUEP 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nF: RM\r\n");
        let plain = w.mail().iter().find(|mail| mail.bytes.starts_with(b"200 7 ")).expect("a plain answer");
        assert_eq!(tollgate::sim::Reply::all(&plain.bytes).len(), 1);
        // And starts the restart (open point O-5).
        assert!(reply.iter().any(|r| r.line.starts_with("RSIP ")), "{reply:?}");
    }
}

/// G-AUC-01, G-AUC-06: a connection exists or is 515.
#[test]
fn an_audit_of_a_connection_says_whether_it_exists() {
    each_layout(|w| {
        let id = format!("I: {}", create(w, NAME, "A1"));
        for f in [&[&id[..]][..], &[&id, "F:"]] {
            let reply = w.ask("AUCX", NAME, f);
            assert_eq!((reply.code, reply.parameters.len(), reply.description.as_str()), (Some(200), 0, ""));
        }
        assert_eq!(code(w, "AUCX", NAME, &["F: M"]), 510);
        for wrong in ["I: 12345678", "I: 1"] {
            assert_eq!(code(w, "AUCX", NAME, &[wrong, "F:"]), 515);
        }
        assert_eq!(code(w, "AUCX", "ds/ds1-2/2", &[&id]), 515);
        assert_eq!(code(w, "AUCX", "ds/ds1-2/*", &[&id]), 503);
        block(w, NAME, true);
        assert_eq!(code(w, "AUCX", NAME, &[&id]), 515);
    });
}

/// G-AUC-02: each info, in the order asked for, descriptions last.
#[test]
fn every_info_of_a_connection() {
    each_layout(|w| {
        let id = format!("I: {}", create(w, NAME, "A1"));
        let reply = w.ask("AUCX", NAME, &[&id, "F: P,RC,M,LC,N,L,C,X,foo/bar"]);
        let names: Vec<_> = reply.parameters.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["P", "M", "N", "L", "C"]);
        assert_eq!((reply.get("M"), reply.get("N"), reply.get("C")), (Some("recvonly"), Some("ca1@[192.0.2.1]:2727"), Some("A1")));
        // G-AUC-05: empty, not left out.
        assert_eq!(reply.get("L"), Some(""));
        // G-AUC-04: ours, an empty line, and the lone version of what there is not.
        let (ours, theirs) = reply.description.split_once("\r\n\r\n").unwrap();
        assert!(ours.contains("m=audio ") && theirs == "v=0\r\n", "{reply:?}");
    });
}

/// G-AUC-03: the options last given, with earlier ones that still hold; no defaults.
#[test]
fn options_are_audited_as_given() {
    each_layout(|w| {
        let made = w.ask("CRCX", NAME, &["C: A1", "M: recvonly", "L: p:10, a:PCMU"]);
        let id = format!("I: {}", connection(&made));
        let options = |w: &mut World| w.ask("AUCX", NAME, &[&id, "F: L"]).get("L").unwrap().to_owned();
        assert_eq!(options(w), "p:10, a:PCMU");
        assert_eq!(code(w, "MDCX", NAME, &["C: A1", &id, "L: e:off"]), 200);
        assert_eq!(options(w), "p:10, a:PCMU, e:off");
        assert_eq!(code(w, "MDCX", NAME, &["C: A1", &id, "L: a:PCMA;PCMU, p:10-20, s:on, gc:-3, t:B8, r:be, nt:IN, b:64"]), 200);
        assert_eq!(options(w), "p:10-20, a:PCMA;PCMU, b:64, e:off, gc:-3, s:on, t:B8, r:be, nt:IN");
        assert_eq!(code(w, "MDCX", NAME, &["C: A1", &id, "L: gc:auto, L: p:20"]), 541);
        assert_eq!(options(w), "p:10-20, a:PCMA;PCMU, b:64, e:off, gc:-3, s:on, t:B8, r:be, nt:IN");
    });
}
