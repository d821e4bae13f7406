//! Calls on one endpoint, wherever its core is.

use super::{S, connection, create, each_layout};
use tollgate::proto::trunk::CardOrder;

const SDP: [&str; 4] = ["", "v=0", "c=IN IP4 192.0.2.50", "m=audio 40000 RTP/AVP 0"];

#[test]
fn a_call_is_created_modified_and_deleted() {
    each_layout(|w| {
        let made = w.ask("CRCX", "ds/ds1-3/7", &["C: A1", "M: recvonly"]);
        assert_eq!(made.code, Some(200), "{made:?}");
        assert!(made.description.contains("m=audio") && made.description.contains("c=IN IP4 192.0.2.20"));
        let id = format!("I: {}", connection(&made));
        let changed = w.ask("MDCX", "ds/ds1-3/7", &[&["C: A1", &id, "M: sendrecv"], &SDP[..]].concat());
        assert_eq!(changed.code, Some(200), "{changed:?}");
        w.run_for(S);
        let audited = w.ask("AUCX", "ds/ds1-3/7", &[&id, "F: C,M,LC,RC,P"]);
        assert_eq!((audited.code, audited.get("M")), (Some(200), Some("sendrecv")));
        assert!(audited.description.contains("m=audio 40000"), "{audited:?}");
        let deleted = w.ask("DLCX", "ds/ds1-3/7", &["C: A1", &id]);
        assert_eq!(deleted.code, Some(250), "{deleted:?}");
        // A second of packets of 20 ms.
        assert!(deleted.get("P").is_some_and(|p| p.contains("PS=50") || p.contains("PS=51")), "{deleted:?}");
        assert_eq!(w.ask("DLCX", "ds/ds1-3/7", &["C: A1", &id]).code, Some(515));
    });
}

/// G-CRX: an endpoint has four connections at most, then 540; a DLCX for a call or the endpoint ends those it names.
#[test]
fn an_endpoint_has_four_connections_and_loses_them_by_call_or_all() {
    each_layout(|w| {
        for call in ["A1", "A1", "B2", "B3"] {
            create(w, "ds/ds1-4/9", call);
        }
        assert_eq!(w.ask("CRCX", "ds/ds1-4/9", &["C: A1", "M: recvonly"]).code, Some(540));
        assert_eq!(w.ask("DLCX", "ds/ds1-4/9", &["C: a1"]).code, Some(250));
        assert_eq!(w.connections().len(), 2);
        assert_eq!(w.ask("DLCX", "ds/ds1-4/9", &[]).code, Some(250));
        assert_eq!(w.connections().len(), 0);
    });
}

/// A card without media leaves no connection (403).
#[test]
fn a_card_that_refuses_leaves_nothing() {
    each_layout(|w| {
        w.order_cards(CardOrder::Refuse(1));
        assert_eq!(w.ask("CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly"]).code, Some(403));
        create(w, "ds/ds1-2/1", "A1");
    });
}

/// Nobody but an agent is answered.
#[test]
fn a_stranger_is_not_answered() {
    each_layout(|w| {
        w.send_from("198.51.100.66:2727".parse().unwrap(), 0, b"AUEP 7 ds/ds1-1/1@tgw.example.net MGCP 1.0\r\n");
        w.run_for(S);
        assert!(w.mail().is_empty());
        assert_eq!(w.counter(tollgate::proto::base::Counter::DroppedUnlistedSource), 1);
    });
}

/// The response comes from the address and goes to the port the command came with (G-NET-08).
#[test]
fn responses_go_back_the_way_the_command_came() {
    each_layout(|w| {
        let from = "192.0.2.2:40001".parse().unwrap();
        w.send_from(from, 1, b"AUEP 7 ds/ds1-2/1@[192.0.2.10] MGCP 1.0\r\n");
        w.run_for(S);
        assert_eq!(w.mail().len(), 1);
        assert_eq!((w.mail()[0].to, w.mail()[0].local), (from, 1));
    });
}
