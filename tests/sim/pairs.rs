//! CreateConnection with a second endpoint: both connections or none, on one core or two (G-CRX-08, G-SHD-06).

use super::{MS, S, connection, each_layout, world};
use tollgate::proto::trunk::CardOrder;
use tollgate::sim::{Faults, Layout};

#[test]
fn a_pair_is_made_on_any_two_endpoints() {
    each_layout(|w| {
        for (first, second) in [("ds/ds1-1/1", "ds/ds1-1/2"), ("ds/ds1-1/3", "ds/ds1-2/3"), ("ds/ds1-4/1", "ds/ds1-3/1")] {
            let made = w.ask("CRCX", first, &["C: A1", "M: sendrecv", &format!("Z2: {second}@tgw.example.net")]);
            assert_eq!(made.code, Some(200), "{made:?}");
            assert_eq!((made.get("Z"), made.get("Z2")), (None, None));
            let (one, two) = (connection(&made), made.get("I2").unwrap().to_owned());
            for (endpoint, id) in [(first, &one), (second, &two)] {
                let audited = w.ask("AUCX", endpoint, &[&format!("I: {id}"), "F: C,M"]);
                assert_eq!((audited.code, audited.get("C"), audited.get("M")), (Some(200), Some("A1"), Some("sendrecv")));
            }
            // Each is deleted on its own.
            assert_eq!(w.ask("DLCX", first, &["C: A1", &format!("I: {one}")]).code, Some(250));
            assert_eq!(w.connections().len(), 1);
            assert_eq!(w.ask("DLCX", second, &["C: A1", &format!("I: {two}")]).code, Some(250));
        }
    });
}

/// RFC 3435 2.3.5: the two connections "can be manipulated separately": one that gets a description of the network leaves the gateway,
/// with a port and a description of its own; one that gets a local one comes back. The other half is as it was.
#[test]
fn either_half_can_leave_the_gateway_and_come_back() {
    each_layout(|w| {
        for (half, delay) in [(0, 0), (1, 0), (0, 50), (1, 50)] {
            let names = ["ds/ds1-1/1", "ds/ds1-2/1"];
            let made = w.ask("CRCX", names[0], &["C: A1", "M: sendrecv", "Z2: ds/ds1-2/1@tgw.example.net"]);
            let ids = [connection(&made), made.get("I2").unwrap().to_owned()].map(|id| format!("I: {id}"));
            w.order_cards(CardOrder::Delay(delay));
            let other = w.ask("AUCX", names[1 - half], &[&ids[1 - half], "F: M,LC,RC"]);
            let far = ["", "v=0", "c=IN IP4 192.0.2.50", "m=audio 40000 RTP/AVP 0"];
            let left = w.ask("MDCX", names[half], &[&["C: A1", &ids[half], "M: sendrecv"][..], &far].concat());
            assert_eq!(left.code, Some(200), "{left:?}");
            let media = left.description.lines().find(|line| line.starts_with("m=audio ")).expect("a description").to_owned();
            let port: u16 = media.split(' ').nth(1).unwrap().parse().unwrap();
            assert!(port > 0 && media.contains("RTP/AVP") && left.description.contains("c=IN IP4 "), "{left:?}");
            let audited = w.ask("AUCX", names[half], &[&ids[half], "F: LC"]);
            assert_eq!(audited.description, left.description);
            let same = w.ask("MDCX", names[half], &["C: A1", &ids[half], "M: recvonly"]);
            assert_eq!((same.code, same.description.as_str()), (Some(200), ""), "nothing is new");
            let id = ids[1 - half][3..].to_owned();
            let near = ["", "v=0", &format!("c=LOCAL EPN {}", names[1 - half]), &format!("a=MGCPlocalcx:{id}"), "m=audio 0 LOCAL 0"];
            let back = w.ask("MDCX", names[half], &[&["C: A1", &ids[half], "M: sendrecv"][..], &near].concat());
            assert!(back.code == Some(200) && back.description.contains("c=LOCAL EPN "), "{back:?}");
            let after = w.ask("AUCX", names[1 - half], &[&ids[1 - half], "F: M,LC,RC"]);
            assert_eq!((after.parameters, after.description), (other.parameters, other.description));
            w.order_cards(CardOrder::Delay(0));
            assert_eq!(w.ask("DLCX", "*", &["C: A1"]).code, Some(250));
        }
    });
}

#[test]
fn the_second_endpoint_may_be_any_free_one() {
    each_layout(|w| {
        for n in 0..23 {
            let made = w.ask("CRCX", "ds/ds1-1/1", &["C: A1", "M: inactive", "Z2: ds/ds1-1/$@tgw.example.net"]);
            assert_eq!(made.code, Some(if n < 4 { 200 } else { 540 }), "{made:?}");
            if n < 4 {
                let name = made.get("Z2").unwrap();
                assert!(name.starts_with("ds/ds1-1/") && name != "ds/ds1-1/1@tgw.example.net");
            }
        }
        // Only the first endpoint itself is free in its span: the second one is found elsewhere, and not there at all in its span.
        assert_eq!(w.ask("DLCX", "*", &[]).code, Some(250));
        for n in 2..=24 {
            super::create(w, &format!("ds/ds1-1/{n}"), "B");
        }
        let in_span = w.ask("CRCX", "ds/ds1-1/1", &["C: A1", "M: inactive", "Z2: ds/ds1-1/$@tgw.example.net"]);
        assert_eq!(in_span.code, Some(410), "{in_span:?}");
        let anywhere = w.ask("CRCX", "ds/ds1-1/1", &["C: A1", "M: inactive", "Z2: $@tgw.example.net"]);
        assert_eq!(anywhere.code, Some(200), "{anywhere:?}");
        assert!(!anywhere.get("Z2").unwrap().starts_with("ds/ds1-1/"), "{anywhere:?}");
    });
}

#[test]
fn what_is_wrong_with_either_half_leaves_none() {
    each_layout(|w| {
        let second = "Z2: ds/ds1-2/1@tgw.example.net";
        let refused = |code: Option<u16>| code.is_some_and(|code| code >= 400);
        assert_eq!(
            w.ask("CRCX", "ds/ds1-1/1", &["C: A1", "M: sendrecv", second, "", "v=0", "c=IN IP4 192.0.2.50", "m=audio 40000 RTP/AVP 0"])
                .code,
            Some(510)
        );
        for z2 in ["ds/ds1-1/1@tgw.example.net", "ds/ds1-2/*@tgw.example.net", "ds/ds1-2/25@tgw.example.net", "ds/ds1-2/1@elsewhere"] {
            let reply = w.ask("CRCX", "ds/ds1-1/1", &["C: A1", "M: sendrecv", &format!("Z2: {z2}")]);
            assert!(refused(reply.code), "{z2}: {reply:?}");
        }
        assert!(refused(w.ask("CRCX", "$", &["C: A1", "M: sendrecv", second]).code));
        // The second is full, then the first.
        for _ in 0..4 {
            super::create(w, "ds/ds1-2/1", "B");
        }
        assert_eq!(w.ask("CRCX", "ds/ds1-1/1", &["C: A1", "M: sendrecv", second]).code, Some(540));
        assert_eq!(w.ask("CRCX", "ds/ds1-2/1", &["C: A1", "M: sendrecv", "Z2: ds/ds1-1/1@tgw.example.net"]).code, Some(540));
        // The card refuses one or the other half.
        for _ in 0..2 {
            w.order_cards(CardOrder::Refuse(1));
            assert_eq!(w.ask("CRCX", "ds/ds1-3/1", &["C: A1", "M: sendrecv", "Z2: ds/ds1-4/1@tgw.example.net"]).code, Some(403));
            w.order_cards(CardOrder::Refuse(0));
        }
        assert_eq!(w.connections().len(), 4);
    });
}

/// A DLCX of either endpoint ends a pair that is being made: 407 and none of the two (G-TXN-07, G-SHD-06).
#[test]
fn a_deletion_of_either_endpoint_ends_a_pair_being_made() {
    for doomed in ["ds/ds1-1/1", "ds/ds1-2/1", "ds/ds1-1/*", "ds/ds1-2/*", "*"] {
        // While the second half is being opened, and while the first is.
        for wait in [50 * MS, 150 * MS] {
            each_layout(|w| {
                w.order_cards(CardOrder::Delay(100));
                let pair = w.command("CRCX", "ds/ds1-1/1", &["C: A1", "M: sendrecv", "Z2: ds/ds1-2/1@tgw.example.net"]);
                w.run_for(wait);
                assert_eq!(w.ask("DLCX", doomed, &[]).code, Some(250));
                assert_eq!(w.final_of(pair).code, Some(407), "{doomed} after {wait:?}");
                w.run_for(S);
                assert_eq!(w.connections().len(), 0);
            });
        }
    }
}

/// A pair on a core that does not answer ends with 406 and leaves nothing when the core is back.
#[test]
fn a_pair_with_a_silent_core_is_undone() {
    let mut w = world(Layout::Two);
    let silent = w.plan.home(b"ds/ds1-2/1");
    assert_ne!(silent, w.plan.home(b"ds/ds1-1/1"));
    w.set_faults(Faults { missteer: 0, ..Faults::none() });
    w.stall(silent, 15 * S);
    let pair = w.command("CRCX", "ds/ds1-1/1", &["C: A1", "M: sendrecv", "Z2: ds/ds1-2/1@tgw.example.net"]);
    w.run_for(S);
    assert_eq!(w.replies_to(pair)[0].code, Some(100));
    assert_eq!(w.final_of(pair).code, Some(406));
    w.run_for(20 * S);
    w.check_quiet();
    assert_eq!(w.connections().len(), 0);
}
