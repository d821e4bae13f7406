//! Parameters of commands and responses (PAR).

use super::{SDP, audit, code, connection, create, each_layout, own_commands, raw, snapshot};
use tollgate::proto::trunk::CardOrder;
use tollgate::sim::{Reply, World};

const NAME: &str = "ds/ds1-2/1";

/// A value for each parameter that the gateway accepts where the parameter may stand.
const VALUES: [(&str, &str); 28] = [
    ("B", "e:A"),
    ("C", "A1"),
    ("A", "a:PCMU"),
    ("I", ""),
    ("M", "inactive"),
    ("P", "PS=1"),
    ("T", ""),
    ("D", "(xx)"),
    ("ES", ""),
    ("L", "p:20"),
    ("MD", "4000"),
    ("N", "ca2@ca2.example.net"),
    ("O", "L/hd"),
    ("PL", ""),
    ("Q", "loop"),
    ("E", "900"),
    ("R", ""),
    ("X", "5"),
    ("F", "N"),
    ("K", "5"),
    ("RD", "1"),
    ("RM", "restart"),
    ("I2", "AB"),
    ("Z2", "ds/ds1-3/1@tgw.example.net"),
    ("S", ""),
    ("Z", "ds/ds1-3/1@tgw.example.net"),
    ("RC", "x"),
    ("LC", "x"),
];

/// Per verb: what it needs, and what it may have besides (table M-1, with X always there for the verbs that can carry a request, and
/// E in a DLCX as open point O-12 has it).
const TABLE: [(&str, &[&str], &[&str]); 7] = [
    ("EPCF", &["B"], &["K"]),
    ("CRCX", &["C", "M", "X"], &["B", "T", "D", "L", "N", "Q", "R", "K", "Z2", "S"]),
    ("MDCX", &["C", "I", "X"], &["B", "M", "T", "D", "L", "N", "Q", "R", "K", "S"]),
    ("DLCX", &["C", "I", "X"], &["B", "T", "D", "N", "Q", "E", "R", "K", "S"]),
    ("RQNT", &["X"], &["B", "T", "D", "N", "Q", "R", "K", "S"]),
    ("AUEP", &[], &["F", "K"]),
    ("AUCX", &["I"], &["F", "K"]),
];

/// G-PAR-01, G-PAR-02, G-PAR-06: table M-1: what may stand, what must, and nothing twice.
#[test]
fn every_verb_has_its_parameters() {
    each_layout(|w| {
        for (verb, mandatory, optional) in TABLE {
            let compose = |id: &str, names: &[&str]| -> Vec<String> {
                let value = |name: &str| VALUES.iter().find(|(n, _)| *n == name).map(|(_, value)| *value).unwrap();
                names.iter().map(|name| format!("{name}: {}", if *name == "I" { id } else { value(name) })).collect()
            };
            let ask = |w: &mut World, names: &[&str]| {
                w.take_mail();
                assert_eq!(code(w, "DLCX", "*", &[]), 250);
                let id = create(w, NAME, "A1");
                let lines = compose(&id, names);
                code(w, verb, NAME, &lines.iter().map(String::as_str).collect::<Vec<_>>())
            };
            for (name, _) in VALUES {
                let with = [mandatory, &[name][..]].concat();
                let answered = ask(w, &with);
                if mandatory.contains(&name) {
                    assert_eq!(answered, 510, "{verb} with {name} twice");
                } else if optional.contains(&name) {
                    assert!(answered < 300, "{verb} with {name}: {answered}");
                } else if !(verb == "AUEP" && name == "X") {
                    assert_eq!(answered, 539, "{verb} with {name}");
                }
            }
            let left_out = |name: &str| (name == "X" && verb != "RQNT") || (name == "I" && verb == "DLCX");
            for missing in mandatory.iter().filter(|name| !left_out(name)) {
                let names: Vec<&str> = mandatory.iter().copied().filter(|name| name != missing).collect();
                assert_eq!(ask(w, &names), 510, "{verb} without {missing}");
            }
        }
        assert_eq!(code(w, "DLCX", "*", &[]), 250);
    });
}

/// G-PAR-03, G-PAR-04: parameters of vendors and of nobody.
#[test]
fn unknown_parameters_are_told_apart() {
    each_layout(|w| {
        let before = snapshot(w, NAME);
        for (parameter, refused) in
            [("X+foo: 1", 511), ("x+FOO:", 511), ("QQ: 1", 539), ("zz/foo: 1", 518), ("RC: x", 539), ("B/NS: o", 539), ("_: 1", 510)]
        {
            assert_eq!(code(w, "RQNT", NAME, &["X: 5", "D: (1)", parameter]), refused, "{parameter}");
        }
        assert_eq!(snapshot(w, NAME), before);
        for ignored in ["X-Flower: Daisy", "x-f:", "X-a: \"b, (c\""] {
            assert_eq!(code(w, "RQNT", NAME, &["X: 5", ignored]), 200, "{ignored}");
        }
    });
}

/// G-PAR-05: what a response must not have does not make it invalid: the restart is not told again.
#[test]
fn responses_with_unknown_parameters_are_valid() {
    for layout in super::LAYOUTS {
        let mut w = World::new(tollgate::sim::Setup { told: false, ..super::setup(layout, 1) }, |_, _| {});
        w.run_for(super::S);
        let (to, command) = own_commands(&w, "RSIP").remove(0);
        w.take_mail();
        w.send_from(to, 0, format!("200 {} OK\r\nI: 5\r\nZZ: 1\r\nI: 6\r\nnonsense\r\n", command.id).as_bytes());
        w.run_for(100 * super::S);
        assert!(own_commands(&w, "RSIP").is_empty(), "{layout:?}");
    }
}

/// G-PAR-07: parameters in any order and case; which may be empty.
#[test]
fn parameters_have_no_order() {
    each_layout(|w| {
        let lines = ["x: 5", "q: loop", "d: (1)", "b: e:A", "k: 7", "s:", "r:", "t:", "n: ca2@ca2.example.net"];
        for turn in 0..lines.len() {
            let mut turned = lines;
            turned.rotate_left(turn);
            assert_eq!(code(w, "RQNT", NAME, &turned), 200);
        }
        assert_eq!((audit(w, NAME, "X"), audit(w, NAME, "D")), ("5".into(), "(1)".into()));
        for empty in ["B:", "N:", "R:", "S:", "D:", "T:", "K:", "X-a:"] {
            assert_eq!(code(w, "RQNT", NAME, &["X: 5", empty]), 200, "{empty}");
        }
        assert_eq!(code(w, "RQNT", NAME, &["X: 5", "Q:"]), 510);
        assert_eq!(audit(w, NAME, "D"), "");
        assert_eq!(code(w, "CRCX", NAME, &["C: A1", "M: recvonly", "L:"]), 200);
        for empty in [["C: A1", "M:"], ["C:", "M: recvonly"]] {
            assert_eq!(code(w, "CRCX", NAME, &empty), 510, "{empty:?}");
        }
    });
}

/// What table M-2 lets a response to `verb` have.
fn allowed(verb: &str, reply: &Reply) -> Vec<&'static str> {
    let code = reply.code.unwrap();
    let mut list: Vec<&str> = match (verb, code) {
        ("CRCX", 200) => vec!["I", "I2", "Z", "Z2"],
        ("DLCX", 250) => vec!["P"],
        ("AUEP", 200) => vec!["A", "B", "D", "E", "ES", "I", "MD", "N", "O", "PL", "Q", "R", "RD", "RM", "S", "T", "X", "Z"],
        ("AUCX", 200) => vec!["C", "L", "M", "N", "P"],
        _ => vec![],
    };
    if code == 518 {
        list.push("PL");
    }
    list
}

/// G-PAR-08, G-RSL-01, G-RSL-05: every response of a session follows table M-2, in form too, and says something when it refuses.
#[test]
fn responses_have_their_parameters() {
    each_layout(|w| {
        let mut answered = 0;
        let mut check = |w: &mut World, verb: &str, name: &str, parameters: &[&str]| {
            let reply = w.ask(verb, name, parameters);
            answered += 1;
            let allowed = allowed(verb, &reply);
            for (name, _) in &reply.parameters {
                assert!(
                    allowed.contains(&name.as_str()) || (name == "K" && reply.get("K") == Some("")),
                    "{verb} {parameters:?}: {reply:?}"
                );
            }
            let code = reply.code.unwrap();
            let described = !reply.description.is_empty();
            assert!(!described || (code == 200 && ["CRCX", "MDCX", "AUCX"].contains(&verb)), "{reply:?}");
            assert_eq!(code == 250, verb == "DLCX" && code < 300, "{reply:?}");
            let words: Vec<&str> = reply.line.splitn(3, ' ').collect();
            assert!(words[0].len() == 3 && (code < 300 || words.len() == 3 && words[2].len() > 5), "{reply:?}");
            reply
        };
        for round in 0..2 {
            if round == 1 {
                w.order_cards(CardOrder::Delay(300));
            }
            let made = check(w, "CRCX", NAME, &[&["C: A1", "M: sendrecv", "L: p:10"][..], &SDP].concat());
            let id = format!("I: {}", connection(&made));
            check(w, "CRCX", "ds/ds1-3/$", &["C: A1", "M: recvonly"]);
            check(w, "CRCX", NAME, &["C: A1", "M: recvonly", "Z2: ds/ds1-4/$@tgw.example.net"]);
            for parameters in [&["C: A1", &id, "M: inactive"][..], &["C: A1", &id, "L: p:20"], &["C: A1", &id, "L: zz/a:1"]] {
                check(w, "MDCX", NAME, parameters);
            }
            check(w, "AUEP", NAME, &["F: A,R,D,S,X,Q,N,I,T,O,ES,B,RM,RD,E,PL,MD"]);
            check(w, "AUEP", "ds/ds1-2/*", &[]);
            check(w, "AUCX", NAME, &[&id, "F: C,N,L,M,RC,LC,P"]);
            for (verb, parameters) in
                [("RQNT", &["X: 5"][..]), ("RQNT", &["X: 5", "R: zz/a"]), ("RQNT", &[]), ("EPCF", &["B: e:A"]), ("XYZW", &[])]
            {
                check(w, verb, NAME, parameters);
            }
            check(w, "DLCX", NAME, &["C: A1", &id]);
            check(w, "DLCX", NAME, &["C: A1", &id]);
            check(w, "DLCX", "*", &[]);
        }
        assert!(answered > 30);
        w.order_cards(CardOrder::Delay(0));
        raw(w, b"AUEP 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nK: 1-900000\r\n");
    });
}
