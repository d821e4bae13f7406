//! Overload, and settings that change while the gateway runs.

use super::{MS, S, create, each_layout, world};
use std::net::SocketAddr;
use tollgate::proto::base::Counter;
use tollgate::sim::Layout;

/// G-RTN-04: when datagrams wait too long new calls get 409 and are not remembered; everything else passes.
#[test]
fn an_overloaded_core_refuses_new_calls_only() {
    for layout in [Layout::One, Layout::Two, Layout::Four] {
        let mut w = world(layout);
        w.reload(|settings| settings.overload.enter_after = std::time::Duration::ZERO);
        let call = create(&mut w, "ds/ds1-2/1", "A1");
        for core in w.plan.owners.clone() {
            w.stall(core, 300 * MS);
        }
        let crcx = w.command("CRCX", "ds/ds1-2/2", &["C: A1", "M: recvonly"]);
        for _ in 0..40 {
            w.command("AUEP", "ds/ds1-1/1", &[]);
            w.command("AUEP", "ds/ds1-2/1", &[]);
            w.run_for(MS);
        }
        w.run_for(261 * MS);
        let refused = w.command("CRCX", "ds/ds1-2/3", &["C: A1", "M: recvonly"]);
        let deleted = w.command("DLCX", "ds/ds1-2/1", &["C: A1", &format!("I: {call}")]);
        assert_eq!((w.final_of(refused).code, w.final_of(deleted).code), (Some(409), Some(250)), "{layout:?}");
        assert!(matches!(w.final_of(crcx).code, Some(409)));
        assert!(w.counter(Counter::OverloadRefused) >= 1);
        // It is left again, and the same command is new.
        for _ in 0..100 {
            w.ask("AUEP", "ds/ds1-1/1", &[]);
            w.ask("AUEP", "ds/ds1-2/1", &[]);
        }
        let text = format!("CRCX {refused} ds/ds1-2/3@tgw.example.net MGCP 1.0\r\nC: A1\r\nM: recvonly\r\n");
        w.take_mail();
        w.send_from(SocketAddr::from(([192, 0, 2, 1], 2727)), 0, text.as_bytes());
        assert_eq!(w.final_of(refused).code, Some(200));
        w.check_quiet();
    }
}

/// O45: settings change under load; no response is missing, calls stay, repeats still find theirs.
#[test]
fn a_reload_touches_no_call() {
    each_layout(|w| {
        let calls: Vec<_> = (1..=8).map(|n| create(w, &format!("ds/ds1-{n}/1"), "A1")).collect();
        let text = b"CRCX 7 ds/ds1-3/2@tgw.example.net MGCP 1.0\r\nC: B1\r\nM: recvonly\r\n";
        w.send_from("192.0.2.1:2727".parse().unwrap(), 0, text);
        w.run_for(S);
        for round in 0..20 {
            w.reload(|settings| {
                settings.timers.vote = S;
                settings.agents[0].max_response = if round % 2 == 0 { 65_507 } else { 4000 };
                settings.agents[1].name = format!("other{round}");
            });
            for n in 1..=5 {
                assert_eq!(w.ask("AUEP", &format!("ds/ds1-{n}/1"), &["F: I"]).code, Some(200));
            }
        }
        w.take_mail();
        w.send_from("192.0.2.1:2727".parse().unwrap(), 0, text);
        w.run_for(S);
        assert_eq!(w.replies_to(7).len(), 1);
        assert_eq!(w.connections().len(), calls.len() + 1);
    });
}

/// A larger limit on responses than the history was built for must not leave a transaction that never ends.
#[test]
fn a_larger_response_limit_after_a_reload_stays_within_the_history() {
    each_layout(|w| {
        w.reload(|settings| (settings.agents[0].max_response, settings.agents[0].ranges) = (65_507, true));
        // More than the 4000 bytes the history promised, less than a transmit frame holds.
        assert_eq!(w.ask("AUEP", "ds/ds1-[1-6]/*", &[]).code, Some(533));
        w.run_for(15 * S);
    });
}

/// An agent that is taken off the list is not heard any more; one that is put on it is.
#[test]
fn agents_come_and_go() {
    each_layout(|w| {
        let other = SocketAddr::from(([192, 0, 2, 77], 2727));
        let ask = b"AUEP 5 ds/ds1-1/1@tgw.example.net MGCP 1.0\r\n";
        w.send_from(other, 0, ask);
        w.run_for(S);
        assert_eq!(w.mail(), []);
        w.reload(|settings| settings.agents[1].addresses.push(other.ip()));
        w.send_from(other, 0, ask);
        w.run_for(S);
        assert_eq!(w.mail().len(), 1);
        w.reload(|settings| settings.agents[1].addresses.retain(|address| *address != other.ip()));
        w.send_from(other, 0, b"AUEP 6 ds/ds1-1/1@tgw.example.net MGCP 1.0\r\n");
        w.run_for(S);
        assert_eq!(w.mail().len(), 1);
    });
}
