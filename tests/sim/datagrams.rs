//! Several messages in one datagram (RFC 3435 3.5.5; G-PIG-01, G-PIG-02, G-SHD-05).

use super::{MS, S, each_layout};
use std::net::SocketAddr;
use tollgate::proto::base::Counter;
use tollgate::proto::trunk::CardOrder;
use tollgate::sim::{Layout, Setup, World};

fn send(w: &mut World, messages: &[String]) {
    w.send_from(SocketAddr::from(([192, 0, 2, 1], 2727)), 0, messages.join(".\r\n").as_bytes());
}

fn command(verb: &str, id: u32, name: &str, rest: &str) -> String {
    format!("{verb} {id} {name}@tgw.example.net MGCP 1.0\r\n{rest}")
}

fn order(w: &World) -> Vec<u32> {
    let replies = w.mail().iter().flat_map(|mail| tollgate::sim::Reply::all(&mail.bytes));
    replies.filter(|reply| reply.is_final()).map(|reply| reply.id).collect()
}

/// The core of each message differs; each is answered in its turn.
#[test]
fn messages_for_several_cores_are_answered_in_order() {
    each_layout(|w| {
        let messages: Vec<String> = (1..=20).map(|n| command("AUEP", n, &format!("ds/ds1-{}/{n}", 1 + n * 5 % 8), "")).collect();
        send(w, &messages);
        w.run_for(S);
        assert_eq!(order(w), (1..=20).collect::<Vec<_>>());
    });
}

/// A slow one holds those behind it, not those of another datagram; an error stays its own.
#[test]
fn a_slow_message_holds_those_behind_it() {
    each_layout(|w| {
        w.order_cards(CardOrder::Delay(300));
        let crcx =
            command("CRCX", 1, "ds/ds1-1/1", "C: A1\r\nM: recvonly\r\n\r\nv=0\r\nc=IN IP4 192.0.2.50\r\nm=audio 40000 RTP/AVP 0\r\n");
        let rest = [
            command("XYZW", 2, "ds/ds1-2/1", ""),
            "garbage\r\n".into(),
            command("RQNT", 3, "*", "X: 5\r\n"),
            command("AUEP", 4, "ds/ds1-4/1", "F: X\r\n"),
        ];
        send(w, &[&[crcx][..], &rest[..]].concat());
        w.run_for(20 * MS);
        assert_eq!(w.ask("AUEP", "ds/ds1-1/2", &[]).code, Some(200));
        w.take_mail();
        w.run_for(S);
        assert_eq!(
            order(w).into_iter().filter(|id| *id < 10).fold(Vec::new(), |mut ids, id| {
                if !ids.contains(&id) {
                    ids.push(id)
                }
                ids
            }),
            [1, 2, 3, 4]
        );
        assert_eq!(w.replies_to(4)[0].get("X"), Some("5"));
        assert_eq!(w.replies_to(2)[0].code, Some(504));
        assert_eq!(w.counter(Counter::DroppedUnreadable), 1);
        w.send_from("192.0.2.1:2727".parse().unwrap(), 0, b"000 1\r\n");
    });
}

/// More messages than the limit are dropped and counted. Of datagrams of many that wait, so many that frames are left for others: more are
/// refused where they would wait, or dropped and counted where another core has them.
#[test]
fn bounds_hold() {
    for layout in Layout::ALL {
        let mut world = World::new(Setup::new(layout, 1), |plan, _| plan.limits.datagrams = 64);
        let w = &mut world;
        let messages: Vec<String> = (1..=60).map(|n| command("AUEP", n, "ds/ds1-1/1", "")).collect();
        send(w, &messages);
        w.run_for(S);
        assert_eq!(order(w).len(), 32);
        assert_eq!(w.counter(Counter::DroppedPiggybackLimit), 1);
        w.order_cards(CardOrder::Delay(100));
        for n in 0..400 {
            let first = command("CRCX", 1000 + 2 * n, &format!("ds/ds1-{}/{}", 1 + n % 8, 1 + n / 8 % 24), "C: A1\r\nM: recvonly\r\n");
            send(w, &[first, command("AUEP", 1001 + 2 * n, "ds/ds1-1/1", "")]);
        }
        w.run_for(S);
        let refused = (0..400).any(|n| w.replies_to(1000 + 2 * n).iter().any(|reply| reply.code == Some(409)));
        assert!(refused || w.counter(Counter::DroppedHomeBehind) > 0, "{layout:?}");
        assert_eq!(w.counter(Counter::DroppedDatagramTable), 0, "{layout:?}");
        w.run_for(2 * S);
        w.check_quiet();
    }
}
