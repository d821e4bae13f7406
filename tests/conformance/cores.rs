//! What holds however the gateway is spread over cores, and against whoever would misuse it (SHD, SEC).

use super::{MS, S, agent, audit, code, create, own_commands, raw, raw_from, setup};
use std::collections::HashSet;
use tollgate::proto::base::Counter;
use tollgate::proto::trunk::CardOrder;
use tollgate::sim::{Faults, Layout, Reply, Setup, World};

fn each(dialogue: impl Fn(&mut World)) {
    for layout in Layout::ALL {
        let mut world = World::new(setup(layout, 1), |_, _| {});
        dialogue(&mut world);
        world.run_for(3 * S);
        world.check_quiet();
    }
}

/// G-SHD-01: a repeat of a wildcard command that comes to any core gets the stored response.
#[test]
fn repeats_of_wildcard_commands_meet_the_same_history() {
    each(|w| {
        // Every datagram comes to a core chosen at random.
        w.set_faults(Faults { missteer: 1_000_000, ..Faults::none() });
        let commands = [
            "CRCX 71 ds/ds1-3/$@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\n",
            "CRCX 72 $@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\n",
            "RQNT 73 ds/*/1@tgw.example.net MGCP 1.0\r\nX: 5\r\n",
            "DLCX 74 ds/ds1-8/*@tgw.example.net MGCP 1.0\r\n",
        ];
        for command in commands {
            let first = raw(w, command.as_bytes());
            assert!(first.len() == 1 && first[0].code < Some(300), "{first:?}");
            for _ in 0..8 {
                assert_eq!(raw(w, command.as_bytes()), first);
            }
        }
        assert_eq!(w.connections().iter().filter(|(_, endpoint)| endpoint.0 / 24 != 7).count(), w.connections().len());
        assert_eq!(w.counter(Counter::CommandsRepeated), 32);
    });
}

/// G-SHD-02, G-TRX-01: ids of the gateway's own commands are distinct over its cores.
#[test]
fn own_ids_are_distinct_over_the_cores() {
    each(|w| {
        for span in 1..=8 {
            for channel in 1..=4 {
                create(w, &format!("ds/ds1-{span}/{channel}"), "A1");
            }
        }
        w.take_mail();
        super::block(w, "*", true);
        let deletions = own_commands(w, "DLCX");
        let ids: HashSet<u32> = deletions.iter().map(|(_, command)| command.id).collect();
        assert_eq!((deletions.len(), ids.len()), (32, 32));
    });
}

/// G-SHD-04: parallel any-of commands of two agents get different endpoints.
#[test]
fn parallel_choices_are_distinct() {
    each(|w| {
        for n in 0..48 {
            let text = format!("CRCX {} ds/ds1-{}/$@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\n", 100 + n, 1 + n % 2);
            w.send_from(agent(1 + (n % 3 % 2) as u8, 2727), 0, text.as_bytes());
        }
        w.run_for(S);
        let chosen: HashSet<String> = super::replies(w).iter().map(|reply| reply.get("Z").expect("an endpoint").to_owned()).collect();
        assert_eq!((chosen.len(), w.connections().len()), (48, 48));
        assert_eq!(code(w, "CRCX", "ds/ds1-1/$", &["C: 1", "M: recvonly"]), 410);
    });
}

/// G-SHD-05: messages of one datagram for different cores are done in their order: a slow one first.
#[test]
fn messages_for_different_cores_keep_their_order() {
    each(|w| {
        w.order_cards(CardOrder::Delay(150));
        let text = b"CRCX 71 ds/ds1-1/1@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\n.\r\n\
            RQNT 72 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 5\r\n";
        w.send_from(agent(1, 2727), 0, text);
        w.run_for(100 * MS);
        assert!(super::replies(w).is_empty());
        assert_eq!(audit(w, "ds/ds1-2/1", "X"), "0");
        w.take_mail();
        w.run_for(100 * MS);
        assert_eq!(super::replies(w).iter().map(|reply| reply.id).collect::<Vec<_>>(), [71, 72]);
        assert_eq!(audit(w, "ds/ds1-2/1", "X"), "5");
        w.order_cards(CardOrder::Delay(0));
    });
}

/// G-SEC-02: who is not on the list is not answered, and counted.
#[test]
fn strangers_are_not_heard() {
    each(|w| {
        for (from, text) in [
            ("198.51.100.66:2727", &b"DLCX 7 *@tgw.example.net MGCP 1.0\r\n"[..]),
            ("198.51.100.66:2427", b"AUEP 8 ds/ds1-1/1@tgw.example.net MGCP 1.0\r\n"),
            ("[2001:db8::66]:2727", b"000 7\r\n"),
        ] {
            assert_eq!(raw_from(w, from.parse().unwrap(), text), []);
        }
        assert_eq!(w.counter(Counter::DroppedUnlistedSource), 3);
    });
}

/// G-SEC-04, G-ACK-03: a forged confirmation leaves the history as it is.
#[test]
fn forged_confirmations_do_no_harm() {
    each(|w| {
        let text = b"CRCX 71 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\n";
        let first = raw(w, text);
        for from in [agent(2, 2727), "198.51.100.66:2727".parse().unwrap()] {
            for forged in ["AUEP 9 ds/ds1-2/2@tgw.example.net MGCP 1.0\r\nK: 1-999999999\r\n", "000 71\r\n"] {
                raw_from(w, from, forged.as_bytes());
            }
        }
        assert_eq!(raw(w, text), first);
    });
}

/// G-SEC-05: gateways that start at the same moment wait different times.
#[test]
fn gateways_started_together_differ() {
    let times: HashSet<u64> = (1..=20)
        .map(|seed| {
            let mut w = World::new(Setup { told: false, ..setup(Layout::Two, seed) }, |_, settings| {
                settings.timers.max_waiting_delay = Some(2 * S);
            });
            w.run_for(3 * S);
            let first = w.mail().first().expect("a restart");
            assert!(Reply::all(&first.bytes)[0].line.starts_with("RSIP "));
            first.at.0 / 1_000_000
        })
        .collect();
    assert!(times.len() >= 19, "{times:?}");
}
