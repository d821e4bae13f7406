//! Repeats, confirmation and the bounds of the history (RFC 3435 3.5.1, 3.5.2).

use super::{MS, S, create, each_layout};
use std::net::SocketAddr;
use tollgate::proto::base::{CoreId, Counter};
use tollgate::proto::core::{Answer, Ask};
use tollgate::sim::{Layout, Reply, Setup, World};

fn agent(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

fn crcx(id: u32, name: &str, call: &str) -> Vec<u8> {
    format!("CRCX {id} {name}@tgw.example.net MGCP 1.0\r\nC: {call}\r\nM: recvonly\r\n").into_bytes()
}

/// G-TRX-03, G-TRX-02, G-SHD-01: a repeat gets the same bytes at its own source, whatever the case of the name, also 20 s later.
#[test]
fn a_repeat_gets_the_stored_response() {
    for name in ["ds/ds1-3/1", "$"] {
        each_layout(|w| {
            w.send_from(agent(2727), 0, &crcx(7, name, "A1"));
            w.run_for(20 * S);
            w.send_from(agent(40001), 0, &crcx(7, &name.to_uppercase(), "A1"));
            w.run_for(S);
            assert_eq!(w.mail().len(), 2);
            assert_eq!(w.mail()[1].to, agent(40001));
            assert_eq!(w.mail()[0].bytes, w.mail()[1].bytes);
            assert_eq!(w.connections().len(), 1);
        });
    }
}

/// G-TRX-05: after T-HIST the id is new.
#[test]
fn an_old_id_is_new_after_t_hist() {
    for layout in Layout::ALL {
        let mut w = World::new(Setup::new(layout, 1), |_, _| {});
        w.without_journal();
        w.send_from(agent(2727), 0, &crcx(7, "ds/ds1-3/1", "A1"));
        w.run_for(31 * S);
        w.send_from(agent(2727), 0, &crcx(7, "ds/ds1-3/1", "A1"));
        w.run_for(S);
        assert_eq!(w.connections().len(), 2);
    }
}

/// By default id and name decide; with `same_content` a reused id with other content is a new command (for agents that restart).
#[test]
fn a_reused_id_with_other_content_is_new_where_that_is_set() {
    for (same_content, connections) in [(false, 1), (true, 2)] {
        for layout in Layout::ALL {
            let mut w = World::new(Setup::new(layout, 1), |_, settings| settings.agents[0].same_content = same_content);
            w.without_journal();
            for call in ["A1", "A1", "B1", "B1"] {
                w.send_from(agent(2727), 0, &crcx(7, "ds/ds1-3/1", call));
                w.run_for(S);
            }
            assert_eq!(w.connections().len(), connections, "{layout:?}");
            assert_eq!(w.mail().len(), 4);
            w.check_quiet();
        }
    }
}

/// G-ACK-01, G-SHD-08: a `K:` range confirms the ids of every core; the bodies are released, repeats are not answered (G-TRX-06).
#[test]
fn a_range_of_confirmed_ids_reaches_all_cores() {
    for wide in [false, true] {
        each_layout(|w| {
            let ids: Vec<u32> = (1..=8).map(|n| w.command("AUEP", &format!("ds/ds1-{n}/1"), &["F: X"])).collect();
            w.run_for(S);
            let (low, high) = (ids[0], ids[7] + if wide { 100_000 } else { 0 });
            assert_eq!(w.ask("AUEP", "ds/ds1-1/2", &[&format!("K: {low}-{high}")]).code, Some(200));
            w.run_for(S);
            let kept: u64 = (0..w.plan.cores)
                .map(|core| match w.ask_core(CoreId(core), Ask::Transactions) {
                    Answer::Transactions(view) => view.history.bytes,
                    other => panic!("{other:?}"),
                })
                .sum();
            // Only the last audit's own response is kept, and what stands behind it in a ring.
            assert!(kept < 400, "{kept} bytes kept");
            w.take_mail();
            for (n, id) in ids.iter().enumerate() {
                let text = format!("AUEP {id} ds/ds1-{}/1@tgw.example.net MGCP 1.0\r\nF: X\r\n", n + 1);
                w.send_from(agent(2727), 0, text.as_bytes());
            }
            w.run_for(S);
            assert_eq!(w.mail(), []);
        });
    }
}

/// G-ACK-03: only the agent that sent the command can confirm.
#[test]
fn another_agents_confirmation_counts_for_nothing() {
    each_layout(|w| {
        let id = w.command("AUEP", "ds/ds1-2/1", &[]);
        w.run_for(S);
        let text = format!("AUEP 5 ds/ds1-1/1@tgw.example.net MGCP 1.0\r\nK: {id}\r\n");
        w.send_from("192.0.2.2:2727".parse().unwrap(), 0, text.as_bytes());
        w.send_from("192.0.2.2:2727".parse().unwrap(), 0, format!("000 {id}\r\n").as_bytes());
        w.run_for(S);
        w.take_mail();
        w.send_from(agent(2727), 0, format!("AUEP {id} ds/ds1-2/1@tgw.example.net MGCP 1.0\r\n").as_bytes());
        w.run_for(S);
        assert_eq!(w.replies_to(id).len(), 1);
    });
}

/// G-TRX-08: a full history refuses with 409 and executes nothing; deletions have a reserve.
#[test]
fn a_full_history_refuses_all_but_deletions() {
    for layout in Layout::ALL {
        let mut w = World::new(Setup::new(layout, 1), |plan, _| plan.limits.history_entries = 64);
        let call = create(&mut w, "ds/ds1-2/1", "A1");
        let codes: Vec<_> = (0..80).map(|_| w.ask("AUEP", "ds/ds1-2/2", &[]).code).collect();
        assert_eq!(codes.iter().filter(|code| **code == Some(200)).count(), 64 - 4 - 1, "{layout:?}");
        assert_eq!(codes[79], Some(409));
        assert!(w.counter(Counter::HistoryFull) > 0);
        assert_eq!(w.ask("CRCX", "ds/ds1-2/3", &["C: A1", "M: recvonly"]).code, Some(409));
        assert_eq!(w.ask("DLCX", "ds/ds1-2/1", &["C: A1", &format!("I: {call}")]).code, Some(250));
        assert_eq!(w.connections().len(), 0);
        // Room comes back by time.
        w.run_for(31 * S);
        assert_eq!(w.ask("AUEP", "ds/ds1-2/2", &[]).code, Some(200));
        w.run_for(S);
        w.check_quiet();
    }
}

/// G-RSL-02: responses to commands nobody sent are ignored.
#[test]
fn responses_nobody_waits_for_are_ignored() {
    each_layout(|w| {
        for text in ["200 987654321 OK\r\n", "000 987654322\r\n", "100 5\r\n", "200 0 OK\r\n", "999 1\r\n"] {
            w.send_from(agent(2727), 0, text.as_bytes());
        }
        w.run_for(S);
        assert_eq!(w.mail(), []);
        assert_eq!(w.counter(Counter::ResponsesUnmatched), 4);
    });
}

/// Transmit frames run out: what could not be sent is sent when the agent repeats.
#[test]
fn a_response_that_could_not_be_sent_is_kept_for_the_repeat() {
    each_layout(|w| {
        w.set_faults(tollgate::sim::Faults { transmit_slots: 0, ..tollgate::sim::Faults::none() });
        w.send_from(agent(2727), 0, &crcx(7, "ds/ds1-3/1", "A1"));
        w.run_for(50 * MS);
        assert_eq!(w.mail(), []);
        assert!(w.counter(Counter::TransmitFull) > 0);
        w.set_faults(tollgate::sim::Faults::none());
        w.send_from(agent(2727), 0, &crcx(7, "ds/ds1-3/1", "A1"));
        w.run_for(50 * MS);
        let replies: Vec<Reply> = w.replies_to(7);
        assert_eq!(replies.iter().map(|reply| reply.code).collect::<Vec<_>>(), [Some(200)]);
        assert_eq!(w.connections().len(), 1);
    });
}
