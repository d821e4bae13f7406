//! NotificationRequest and EndpointConfiguration, alone and encapsulated (RQN, EPC).

use super::{audit, code, connection, create, each_layout, snapshot};
use tollgate::proto::trunk::CardOrder;

/// G-RQN-01: the request identifier is mandatory, 1 to 32 hexadecimal digits, and a string.
#[test]
fn a_request_has_an_identifier() {
    each_layout(|w| {
        let ask = |w: &mut _, x: &str| code(w, "RQNT", "ds/ds1-2/1", &[&format!("X: {x}")]);
        assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &[]), 510);
        for bad in ["", "G", "1 2", &"1".repeat(33)] {
            assert_eq!(ask(w, bad), 510, "{bad}");
        }
        assert_eq!(audit(w, "ds/ds1-2/1", "X"), "0");
        for good in ["A", "0A", "0123456789AC", &"F".repeat(32)] {
            assert_eq!(ask(w, good), 200);
            assert_eq!(audit(w, "ds/ds1-2/1", "X"), good);
        }
    });
}

/// G-RQN-02: all of a pattern, one bare response; never any-of.
#[test]
fn a_request_for_all_has_one_bare_response() {
    each_layout(|w| {
        let reply = w.ask("RQNT", "ds/ds1-1/*", &["X: 77"]);
        assert_eq!((reply.code, reply.parameters.len(), reply.description.as_str()), (Some(200), 0, ""));
        for n in 1..=24 {
            assert_eq!(audit(w, &format!("ds/ds1-1/{n}"), "X"), "77");
        }
        assert_eq!(audit(w, "ds/ds1-2/1", "X"), "0");
        assert_eq!(code(w, "RQNT", "ds/ds1-1/$", &["X: 78"]), 500);
    });
}

/// G-RQN-03: what belongs to a request needs X, in every connection command.
#[test]
fn parts_of_a_request_need_its_identifier() {
    each_layout(|w| {
        let id = format!("I: {}", create(w, "ds/ds1-2/1", "A1"));
        for part in ["R:", "S:", "D: xx", "Q: loop", "T:"] {
            assert_eq!(code(w, "CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly", part]), 510, "{part}");
            assert_eq!(code(w, "MDCX", "ds/ds1-2/1", &["C: A1", &id, "M: inactive", part]), 510, "{part}");
            assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &["C: A1", &id, part]), 510, "{part}");
        }
        assert_eq!(w.connections().len(), 1);
        assert_eq!(w.ask("AUCX", "ds/ds1-2/1", &[&id, "F: M"]).get("M"), Some("recvonly"));
    });
}

/// G-RQN-04, G-EPC-05: carrier and what it carries are done together or not at all.
#[test]
fn carrier_and_request_stand_and_fall_together() {
    each_layout(|w| {
        let id = format!("I: {}", create(w, "ds/ds1-2/1", "A1"));
        let before = snapshot(w, "ds/ds1-2/1");
        let carried = ["X: 5", "D: (xx)", "Q: loop", "N: ca2@ca2.example.net", "B: e:A"];
        let with = |own: &[&'static str], more: &[&'static str]| [own, &carried, more].concat();
        // The request is wrong, so the carrier is not done.
        assert_eq!(code(w, "CRCX", "ds/ds1-2/1", &with(&["C: A1", "M: recvonly"], &["R: L/hd(N)"])), 518);
        assert_eq!(code(w, "MDCX", "ds/ds1-2/1", &[&["C: A1", &id, "M: inactive"][..], &with(&[], &["S: zz/rt"])].concat()), 518);
        assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &[&["C: A1", &id][..], &with(&[], &["R: zz/x(N)"])].concat()), 518);
        // The carrier fails, at once and by the card, so the request is not done.
        assert_eq!(code(w, "CRCX", "ds/ds1-2/1", &with(&["C: A1", "M: sendrecv"], &[])), 527);
        w.order_cards(CardOrder::Refuse(1));
        let refused = w.ask("CRCX", "ds/ds1-2/1", &with(&["C: A1", "M: recvonly"], &[]));
        assert_eq!((refused.code, refused.get("I")), (Some(403), None));
        w.order_cards(CardOrder::Refuse(0));
        assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &with(&["C: A1", "I: 12345678"], &[])), 515);
        assert_eq!(snapshot(w, "ds/ds1-2/1"), before);
        // Both are right.
        let made = w.ask("CRCX", "ds/ds1-2/1", &with(&["C: A1", "M: recvonly"], &[]));
        assert_eq!(made.code, Some(200));
        let expected = [("X", "5"), ("D", "(xx)"), ("Q", "loop,process"), ("N", "ca2@ca2.example.net"), ("B", "e:A")];
        for (info, value) in expected {
            assert_eq!(audit(w, "ds/ds1-2/1", info), value, "{info}");
        }
        // Q is of each request, D stays.
        assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &["C: A1", &format!("I: {}", connection(&made)), "X: 6"]), 250);
        for (info, value) in [("X", "6"), ("D", "(xx)"), ("Q", "step,process"), ("B", "e:A")] {
            assert_eq!(audit(w, "ds/ds1-2/1", info), value, "{info}");
        }
    });
}

/// G-DMP-02, G-DMP-10: letters of packages are 537, and the map that was there stays; it also stays when none is given.
#[test]
fn a_map_with_unknown_letters_is_537() {
    each_layout(|w| {
        assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &["X: 5", "D: (0t|[1-7]xxx|*#A)"]), 200);
        for map in ["(P5)", "1|2E", "[0-9z]"] {
            for name in ["ds/ds1-2/1", "ds/ds1-2/*"] {
                assert_eq!(code(w, "RQNT", name, &["X: 6", &format!("D: {map}")]), 537, "{map}");
            }
        }
        assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &["X: 7"]), 200);
        assert_eq!(audit(w, "ds/ds1-2/1", "D"), "(0t|[1-7]xxx|*#A)");
    });
}

/// G-RQN-05: the request is for the endpoint the gateway chose, and not for a second one.
#[test]
fn the_request_is_for_the_first_endpoint() {
    each_layout(|w| {
        let made = w.ask("CRCX", "ds/ds1-2/$", &["C: A1", "M: recvonly", "X: 5"]);
        assert_eq!(audit(w, made.get("Z").unwrap(), "X"), "5");
        for second in ["ds/ds1-3/2", "ds/ds1-4/2"] {
            let z2 = format!("Z2: {second}@tgw.example.net");
            assert_eq!(code(w, "CRCX", "ds/ds1-3/1", &["C: A1", "M: inactive", "X: 6", "B: e:A", &z2]), 200);
            assert_eq!((audit(w, "ds/ds1-3/1", "X"), audit(w, "ds/ds1-3/1", "B")), ("6".into(), "e:A".into()));
            assert_eq!((audit(w, second, "X"), audit(w, second, "B")), ("0".into(), "e:mu".into()));
        }
    });
}

/// G-EPC-02, G-EPC-04: line coding of one endpoint or of all of a pattern.
#[test]
fn line_coding_is_configured() {
    each_layout(|w| {
        assert_eq!(code(w, "EPCF", "ds/ds1-1/*", &["B: e:A"]), 200);
        for n in [1, 12, 24] {
            assert_eq!(audit(w, &format!("ds/ds1-1/{n}"), "B"), "e:A");
        }
        assert_eq!(code(w, "EPCF", "ds/ds1-1/12", &["B: E : MU"]), 200);
        assert_eq!(audit(w, "ds/ds1-1/12", "B"), "e:mu");
        for bad in ["e:xx", "e", "q:1", "e:A, e:mu"] {
            assert!(code(w, "EPCF", "ds/ds1-1/13", &[&format!("B: {bad}")]) >= 500, "{bad}");
        }
        assert_eq!(code(w, "EPCF", "ds/ds1-1/$", &["B: e:mu"]), 500);
        assert_eq!(audit(w, "ds/ds1-1/13", "B"), "e:A");
    });
}

/// G-EPC-03: B, or some extension parameter instead.
#[test]
fn configuration_says_something() {
    each_layout(|w| {
        assert_eq!(code(w, "EPCF", "ds/ds1-1/1", &[]), 510);
        assert_eq!(code(w, "EPCF", "ds/ds1-1/1", &["K: 5"]), 510);
        assert_eq!(code(w, "EPCF", "ds/ds1-1/1", &["B: e:A"]), 200);
        for other in [&["X-foo: 1"][..], &["B:"]] {
            assert_eq!(code(w, "EPCF", "ds/ds1-1/1", other), 200);
            assert_eq!(audit(w, "ds/ds1-1/1", "B"), "e:A");
        }
    });
}
