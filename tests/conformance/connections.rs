//! CreateConnection and connection modes (CRX, MOD).

use super::{SDP, code, connection, connection_snapshot, create, each_layout};
use tollgate::proto::trunk::CardOrder;

/// G-CRX-01: call and mode are mandatory; a call is 1 to 32 hexadecimal digits, a string, and may be shared.
#[test]
fn a_connection_has_a_call_and_a_mode() {
    each_layout(|w| {
        assert_eq!(code(w, "CRCX", "ds/ds1-2/1", &["C: A1"]), 510);
        assert_eq!(code(w, "CRCX", "ds/ds1-2/1", &["M: recvonly"]), 510);
        for bad in ["", "XYZ", &"1".repeat(33)] {
            assert_eq!(code(w, "CRCX", "ds/ds1-2/1", &[&format!("C: {bad}"), "M: recvonly"]), 510, "{bad}");
        }
        assert_eq!((w.connections().len(), w.media_open()), (0, 0));
        let long = "1".repeat(32);
        let id = create(w, "ds/ds1-2/1", &long);
        create(w, "ds/ds1-2/1", &long);
        create(w, "ds/ds1-3/1", &long);
        // 0A is another call than A.
        let other = create(w, "ds/ds1-2/1", "0A");
        assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &["C: A", &format!("I: {other}")]), 516);
        assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &["C: 0a", &format!("I: {other}")]), 250);
        assert_eq!(w.ask("AUCX", "ds/ds1-2/1", &[&format!("I: {id}"), "F: C"]).get("C"), Some(long.as_str()));
    });
}

/// G-CRX-02: identifiers are 1 to 32 hexadecimal digits and all distinct.
#[test]
fn connection_identifiers_do_not_return() {
    each_layout(|w| {
        let mut seen = std::collections::HashSet::new();
        for n in 0..300 {
            w.take_mail();
            let made = w.ask("CRCX", ["ds/ds1-2/1", "ds/ds1-3/1"][n % 2], &["C: A1", "M: recvonly"]);
            let id = connection(&made);
            assert!((1..=32).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_lowercase()));
            assert!(seen.insert(id.clone()), "{id} again");
            assert_eq!(code(w, "DLCX", ["ds/ds1-2/1", "ds/ds1-3/1"][n % 2], &["C: A1", &format!("I: {id}")]), 250);
        }
    });
}

/// G-CRX-03: a positive response has I and a description, a negative one neither.
#[test]
fn only_a_positive_response_describes_a_connection() {
    each_layout(|w| {
        let made = w.ask("CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly"]);
        assert_eq!((made.parameters.len(), made.get("I").is_some()), (1, true));
        assert!(made.description.starts_with("v=0\r\n") && made.description.contains("m=audio "));
        w.order_cards(CardOrder::Refuse(1));
        let cases: [(&[&str], u16); 6] = [
            (&["C: A1", "M: recvonly"], 403),
            (&["C: A1", "M: sendrecv"], 527),
            (&["C: A1", "M: foo"], 517),
            (&["C: A1", "M: recvonly", "L: a:FOO"], 534),
            (&["C: A1", "M: recvonly", "", "v=0"], 509),
            (&["M: recvonly"], 510),
        ];
        for (parameters, code) in cases {
            let reply = w.ask("CRCX", "ds/ds1-2/1", parameters);
            assert_eq!(reply.code, Some(code), "{parameters:?}");
            assert!(reply.parameters.is_empty() && reply.description.is_empty(), "{reply:?}");
        }
        assert_eq!(w.connections().len(), 1);
    });
}

/// G-CRX-05, G-MOD-01: every mode that an audit lists is taken, every other is 517, one of a package 518.
#[test]
fn modes_are_those_of_the_capabilities() {
    each_layout(|w| {
        let audited = w.ask("AUEP", "ds/ds1-2/1", &["F: A"]);
        let modes: Vec<String> = audited.get("A").unwrap().rsplit_once("m:").unwrap().1.split(';').map(str::to_owned).collect();
        assert_eq!(modes.len(), 9);
        let id = format!("I: {}", create(w, "ds/ds1-2/1", "A1"));
        assert_eq!(code(w, "MDCX", "ds/ds1-2/1", &[&["C: A1", &id][..], &SDP].concat()), 200);
        for mode in &modes {
            let made = w.ask("CRCX", "ds/ds1-2/2", &[&["C: A1", &format!("M: {}", mode.to_uppercase())][..], &SDP].concat());
            assert_eq!(made.code, Some(200), "{mode}");
            assert_eq!(code(w, "MDCX", "ds/ds1-2/1", &["C: A1", &id, &format!("M: {mode}")]), 200, "{mode}");
            assert_eq!(w.ask("AUCX", "ds/ds1-2/1", &[&id, "F: M"]).get("M"), Some(mode.as_str()));
            assert_eq!(code(w, "DLCX", "ds/ds1-2/2", &[]), 250);
        }
        for (mode, refused) in [("foo", 517), ("data", 517), ("send recv", 517), ("zz/foo", 518)] {
            assert_eq!(code(w, "CRCX", "ds/ds1-2/2", &["C: A1", &format!("M: {mode}")]), refused, "{mode}");
            assert_eq!(code(w, "MDCX", "ds/ds1-2/1", &["C: A1", &id, &format!("M: {mode}")]), refused, "{mode}");
        }
    });
}

/// G-CRX-06: modes that send need a remote description.
#[test]
fn modes_that_send_need_a_remote_description() {
    each_layout(|w| {
        for mode in ["sendonly", "sendrecv", "confrnce", "netwloop", "netwtest"] {
            assert_eq!(code(w, "CRCX", "ds/ds1-2/1", &["C: A1", &format!("M: {mode}")]), 527, "{mode}");
        }
        assert_eq!(w.connections().len(), 0);
        for mode in ["recvonly", "inactive", "loopback", "conttest"] {
            assert_eq!(code(w, "CRCX", "ds/ds1-2/1", &["C: A1", &format!("M: {mode}")]), 200, "{mode}");
        }
    });
}

/// G-CRX-08: a second endpoint makes two connections, each with a life of its own; the second is sendrecv; with a description it is
/// an error.
#[test]
fn a_second_endpoint_makes_two_connections() {
    each_layout(|w| {
        for second in ["ds/ds1-1/2", "ds/ds1-2/2"] {
            let z2 = format!("Z2: {second}@tgw.example.net");
            let made = w.ask("CRCX", "ds/ds1-1/1", &["C: A1", "M: recvonly", &z2]);
            assert_eq!((made.code, made.get("Z2")), (Some(200), None), "{made:?}");
            let (one, two) = (connection(&made), made.get("I2").expect("I2").to_owned());
            let (_, description) = connection_snapshot(w, "ds/ds1-1/1", &one);
            assert!(description.contains("c=LOCAL EPN ds/ds1-1/1") && made.description.contains("c=LOCAL EPN ds/ds1-1/1"));
            let (second_view, _) = connection_snapshot(w, second, &two);
            assert!(second_view.contains(&("M".into(), "sendrecv".into())), "{second_view:?}");
            assert_eq!(code(w, "MDCX", second, &["C: A1", &format!("I: {two}"), "M: inactive"]), 200);
            assert_eq!(w.ask("AUCX", "ds/ds1-1/1", &[&format!("I: {one}"), "F: M"]).get("M"), Some("recvonly"));
            assert_eq!(code(w, "DLCX", "ds/ds1-1/1", &["C: A1", &format!("I: {one}")]), 250);
            assert_eq!(code(w, "AUCX", second, &[&format!("I: {two}"), "F: M"]), 200);
            assert_eq!(code(w, "CRCX", "ds/ds1-1/1", &[&["C: A1", "M: recvonly", &z2][..], &SDP].concat()), 510);
            assert_eq!(code(w, "DLCX", "*", &[]), 250);
        }
    });
}

/// G-CRX-09: four connections, the fifth is 540.
#[test]
fn a_fifth_connection_is_540() {
    each_layout(|w| {
        for _ in 0..4 {
            create(w, "ds/ds1-2/1", "A1");
        }
        assert_eq!(code(w, "CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly"]), 540);
    });
}

/// G-CRX-10, G-MDX-05: half-open until a remote description is there; a failed modification leaves it so.
#[test]
fn a_connection_is_half_open_until_the_far_end_is_known() {
    each_layout(|w| {
        let id = create(w, "ds/ds1-2/1", "A1");
        let own = format!("I: {id}");
        let remote = |w: &mut tollgate::sim::World| w.ask("AUCX", "ds/ds1-2/1", &[&own, "F: RC"]).description;
        assert_eq!(remote(w), "v=0\r\n");
        assert_eq!(code(w, "MDCX", "ds/ds1-2/1", &[&["C: A1", &own, "L: a:FOO"][..], &SDP].concat()), 534);
        assert_eq!(remote(w), "v=0\r\n");
        assert_eq!(code(w, "MDCX", "ds/ds1-2/1", &[&["C: A1", &own][..], &SDP].concat()), 200);
        let open = remote(w);
        assert_eq!(open, SDP[1..].iter().map(|line| format!("{line}\r\n")).collect::<String>());
        assert_eq!(code(w, "MDCX", "ds/ds1-2/1", &["C: A1", &own, "", "v=0", "c=IN IP4 192.0.2.51", "m=audio 1 RTP/AVP 99"]), 534);
        assert_eq!(remote(w), open);
        assert!(w.ask("DLCX", "ds/ds1-2/1", &["C: A1", &own]).get("P").is_some());
    });
}
