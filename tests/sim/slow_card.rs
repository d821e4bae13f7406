//! Cards that take their time: 100, the final with `K:`, 000, time limits, and commands that meet (RFC 3435 3.5.6, 4.4.4).

use super::{MS, S, connection, create, each_layout};
use tollgate::proto::base::Counter;
use tollgate::proto::trunk::CardOrder;

/// G-PRV-01, G-ACK-06, G-ACK-08: 100 after 200 ms, the final asks for 000 and comes again until it is there.
#[test]
fn a_slow_creation_is_answered_100_and_then_for_good() {
    each_layout(|w| {
        w.order_cards(CardOrder::Delay(500));
        let started = w.now;
        let id = w.command("CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly"]);
        w.run_for(190 * MS);
        assert!(w.replies_to(id).is_empty());
        w.run_for(30 * MS);
        assert_eq!(w.replies_to(id).iter().map(|reply| reply.code).collect::<Vec<_>>(), [Some(100)]);
        // G-TXN-09: an audit does not wait.
        assert_eq!(w.ask("AUEP", "ds/ds1-2/1", &["F: I"]).get("I"), Some(""));
        let made = w.final_of(id);
        assert_eq!((made.code, made.get("K")), (Some(200), Some("")));
        assert!(w.now.since(started) >= 500 * MS);
        w.run_for(5 * S);
        let copies = w.replies_to(id).len();
        assert!(copies >= 4, "{copies} copies");
        w.send_from("192.0.2.1:2727".parse().unwrap(), 0, format!("000 {id}\r\n").as_bytes());
        w.run_for(MS * 10);
        let copies = w.replies_to(id).len();
        w.run_for(30 * S);
        assert_eq!(w.replies_to(id).len(), copies, "no more copies after 000");
        w.order_cards(CardOrder::Delay(0));
        // G-PRV-03: what was created is there.
        assert_eq!(w.ask("AUEP", "ds/ds1-2/1", &["F: I"]).get("I"), Some(connection(&made).as_str()));
    });
}

/// G-TRX-04: a repeat of a running command gets 100 at once and does not run again.
#[test]
fn a_repeat_of_a_running_command_gets_100() {
    each_layout(|w| {
        w.order_cards(CardOrder::Delay(150));
        let text = b"CRCX 77 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nC: A1\r\nM: recvonly\r\n";
        for _ in 0..3 {
            w.send_from("192.0.2.1:2727".parse().unwrap(), 0, text);
        }
        w.run_for(20 * MS);
        assert_eq!(w.replies_to(77).iter().filter(|reply| reply.code == Some(100)).count(), 2);
        assert_eq!(w.final_of(77).code, Some(200));
        w.send_from("192.0.2.1:2727".parse().unwrap(), 0, b"000 77\r\n");
        w.run_for(S);
        assert_eq!(w.connections().len(), 1);
    });
}

/// G-PRV-05: a card that never answers: 406 at the limit, the media is given back.
#[test]
fn a_hung_card_ends_with_406_and_gives_everything_back() {
    each_layout(|w| {
        create(w, "ds/ds1-3/1", "B1");
        w.order_cards(CardOrder::Delay(u32::MAX));
        let started = w.now;
        let ids = ["ds/ds1-3/2", "ds/ds1-4/2", "$"].map(|name| w.command("CRCX", name, &["C: A1", "M: recvonly"]));
        let pair = w.command("CRCX", "ds/ds1-5/1", &["C: A1", "M: sendrecv", "Z2: ds/ds1-6/1@tgw.example.net"]);
        for id in ids.into_iter().chain([pair]) {
            assert_eq!(w.final_of(id).code, Some(406));
            assert_eq!(w.replies_to(id)[0].code, Some(100));
        }
        let took = w.now.since(started);
        assert!(took >= 10 * S && took < 11 * S, "{took:?}");
        assert!(w.counter(Counter::TimeLimit) >= 4);
        w.run_for(30 * S);
        assert_eq!((w.connections().len(), w.media_open()), (1, 1));
    });
}

/// A hung modification ends with 406 and the connection is as it was.
#[test]
fn a_hung_modification_leaves_the_connection_as_it_was() {
    each_layout(|w| {
        let id = format!("I: {}", create(w, "ds/ds1-3/1", "B1"));
        w.order_cards(CardOrder::Delay(u32::MAX));
        let changed = w.ask("MDCX", "ds/ds1-3/1", &["C: B1", &id, "M: inactive"]);
        assert_eq!(changed.code, Some(406));
        w.order_cards(CardOrder::Delay(0));
        let audited = w.ask("AUCX", "ds/ds1-3/1", &[&id, "F: M"]);
        assert_eq!(audited.get("M"), Some("recvonly"));
        w.run_for(30 * S);
    });
}

/// G-DLX-05, G-TXN-07, G-PRV-07: a deletion ends what is being created there: 407, also when repeated, and nothing is left.
#[test]
fn a_deletion_ends_a_creation_under_way() {
    for name in ["ds/ds1-2/1", "ds/ds1-2/*", "*"] {
        each_layout(|w| {
            w.order_cards(CardOrder::Delay(100));
            let id = w.command("CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly"]);
            w.run_for(50 * MS);
            assert_eq!(w.ask("DLCX", name, &[]).code, Some(250));
            let ended = w.final_of(id);
            assert_eq!(ended.code, Some(407));
            let text = format!("CRCX {id} ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nC: A1\r\nM: recvonly\r\n");
            w.send_from("192.0.2.1:2727".parse().unwrap(), 0, text.as_bytes());
            w.run_for(S);
            assert_eq!(w.replies_to(id), [ended.clone(), ended], "the repeat gets the same");
            assert_eq!((w.connections().len(), w.media_open()), (0, 0));
        });
    }
}

/// A deletion covers what it names: another call's creation on the same endpoint goes on (G-TXN-07, G-TXN-09).
#[test]
fn a_deletion_leaves_the_commands_of_other_calls_alone() {
    each_layout(|w| {
        let old = format!("I: {}", create(w, "ds/ds1-2/1", "A1"));
        w.order_cards(CardOrder::Delay(100));
        let id = w.command("CRCX", "ds/ds1-2/1", &["C: B1", "M: recvonly"]);
        let pair = w.command("CRCX", "ds/ds1-2/1", &["C: B2", "M: sendrecv", "Z2: ds/ds1-3/1@tgw.example.net"]);
        w.run_for(50 * MS);
        assert_eq!(w.ask("DLCX", "ds/ds1-2/1", &["C: A1", &old]).code, Some(250));
        assert_eq!(w.ask("DLCX", "ds/ds1-2/1", &["C: A1"]).code, Some(250));
        assert_eq!(w.ask("DLCX", "ds/ds1-2/*", &["C: A1"]).code, Some(250));
        assert_eq!((w.final_of(id).code, w.final_of(pair).code), (Some(200), Some(200)));
        assert_eq!(w.connections().len(), 3);
        w.run_for(30 * S);
    });
}

/// G-TXN-08: the older command stays aborted even when the newer one fails.
#[test]
fn a_newer_modification_ends_the_older_one() {
    each_layout(|w| {
        let id = format!("I: {}", create(w, "ds/ds1-3/1", "B1"));
        w.order_cards(CardOrder::Delay(100));
        let older = w.command("MDCX", "ds/ds1-3/1", &["C: B1", &id, "M: inactive"]);
        w.run_for(20 * MS);
        let newer = w.ask("MDCX", "ds/ds1-3/1", &["C: B1", &id, "M: recvonly", "L: p:10"]);
        assert_eq!((w.final_of(older).code, newer.code), (Some(407), Some(200)));
        let audited = w.ask("AUCX", "ds/ds1-3/1", &[&id, "F: M,L"]);
        assert_eq!((audited.get("M"), audited.get("L")), (Some("recvonly"), Some("p:10")));
        let older = w.command("MDCX", "ds/ds1-3/1", &["C: B1", &id, "M: inactive"]);
        w.run_for(20 * MS);
        // A deletion that fails still ends it, and changes nothing.
        assert_eq!(w.ask("DLCX", "ds/ds1-3/1", &["C: B1", &id, "X: 1", "R: L/hd(N)"]).code, Some(518));
        assert_eq!(w.final_of(older).code, Some(407));
        w.run_for(S);
        w.order_cards(CardOrder::Delay(0));
        assert_eq!(w.ask("AUCX", "ds/ds1-3/1", &[&id, "F: M"]).get("M"), Some("recvonly"));
    });
}

/// The time-out of media: one that is told while the connection is being made is no stray and ends nothing; when it is told again, the connection
/// is deleted and the agent told why.
#[test]
fn a_far_end_that_falls_silent_while_the_connection_is_made_is_timed_out_later() {
    each_layout(|w| {
        w.order_cards(CardOrder::Delay(500));
        let id = w.command("CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly"]);
        w.run_for(100 * MS);
        assert_eq!(w.media_open(), 1);
        w.lose_media();
        assert_eq!(w.final_of(id).code, Some(200));
        assert_eq!((w.connections().len(), w.counter(Counter::CardStray), w.counter(Counter::MediaTimedOut)), (1, 0, 0));
        w.lose_media();
        w.run_for(S);
        assert_eq!((w.connections().len(), w.media_open(), w.counter(Counter::MediaTimedOut)), (0, 0, 1));
        w.run_for(30 * S);
    });
}
