//! Endpoints whose agent is lost, and the disconnected procedure (DIS; RFC 3435 4.3, 4.4.7), as an agent sees them. What finds the
//! agent gone is the announcement that endpoints are about to leave: they stay in service meanwhile.

use super::{MS, S, agent, code, create, each_layout, own_commands, raw_from, setup};
use std::collections::{BTreeMap, BTreeSet};
use tollgate::proto::base::Counter;
use tollgate::proto::cas::Signalling;
use tollgate::proto::core::{Administration, Answer, Ask};
use tollgate::proto::package::ChannelKind;
use tollgate::proto::package::parameters::{Digits, MfDigit};
use tollgate::proto::restart::BlockHow;
use tollgate::proto::trunk::{CardOrder, Defect, DigitKind, FarOrder, Hook};
use tollgate::sim::{Layout, Mail, Reply, Setup, World};

/// The agents fall silent, and the endpoints of `pattern` find it out.
fn lose(w: &mut World, pattern: &str) {
    w.without_journal();
    // What is all idle leaves at once.
    create(w, &if pattern == "*" { "ds/ds1-8/24".into() } else { pattern.replace('*', "24") }, "A0");
    w.answer_own(false);
    let topology = &w.plan.topology;
    let selection = match topology.lookup(pattern.as_bytes()) {
        Some(endpoint) => topology.selection_of(endpoint).unwrap(),
        None => topology.resolve(pattern.as_bytes(), false).unwrap(),
    };
    w.administer(Administration::Block(selection, BlockHow::Graceful(3600 * S)));
    while w.counter(Counter::EndpointsDisconnected) == 0 {
        w.run_for(10 * MS);
        assert!(w.now.0 < 120_000_000_000, "nobody became disconnected");
    }
    w.administer(Administration::Unblock(selection));
    w.run_for(10 * MS);
    w.take_mail();
}

/// What was announced, each transaction once: when, to whom, what.
fn announced(mail: &[Mail]) -> Vec<(f64, std::net::SocketAddr, Reply)> {
    let mut list: Vec<(f64, std::net::SocketAddr, Reply)> = Vec::new();
    for mail in mail {
        for reply in Reply::all(&mail.bytes) {
            if reply.line.starts_with("RSIP") && list.iter().all(|(_, _, known)| known.id != reply.id) {
                list.push((mail.at.0 as f64 / 1e9, mail.to, reply));
            }
        }
    }
    list
}

fn name(command: &Reply) -> &str {
    command.line.split(' ').nth(2).unwrap().split('@').next().unwrap()
}

fn wait_for_announcement(w: &mut World) -> Reply {
    wait_for(w).1
}

/// The same, and whom it is for.
fn wait_for(w: &mut World) -> (std::net::SocketAddr, Reply) {
    while own_commands(w, "RSIP").is_empty() {
        w.run_for(10 * MS);
    }
    own_commands(w, "RSIP").remove(0)
}

/// Answers the latest announcement, and nothing else.
fn confirm_last(w: &mut World) {
    let (to, command) = own_commands(w, "RSIP").pop().expect("an announcement");
    w.take_mail();
    w.send_from(to, 0, format!("200 {} OK\r\n", command.id).as_bytes());
}

fn confirm(w: &mut World) {
    for (to, command) in own_commands(w, "RSIP") {
        w.send_from(to, 0, format!("200 {} OK\r\n", command.id).as_bytes());
    }
    w.run_for(10 * MS);
    w.take_mail();
}

/// G-NTF-05, G-DLX-06, G-DIS-01: a Notify or a DeleteConnection that nobody answers has the agent shown as silent (alarm `agent-silent`)
/// at once, before anything else is tried; and no longer when it answers.
#[test]
fn who_leaves_a_notify_or_a_delete_unanswered_is_silent() {
    for deletes in [false, true] {
        each_layout(|w| {
            let endpoint = w.plan.topology.lookup(b"ds/ds1-3/1").unwrap();
            let silent = |w: &mut World| match w.ask_core(w.plan.lead(), Ask::Facilities) {
                Answer::Facilities(view) => view.unanswering,
                answer => panic!("{answer:?}"),
            };
            create(w, "ds/ds1-3/1", "A1");
            assert_eq!(w.ask("RQNT", "ds/ds1-3/1", &["X: 1", "R: T/co1(N)"]).code, Some(200));
            w.answer_own(false);
            w.take_mail();
            if deletes {
                w.free(endpoint);
            } else {
                w.occur("ds/ds1-3/1", "T/co1", None);
            }
            w.run_for(10 * S);
            assert_eq!((silent(w), w.counter(Counter::OwnLost)), (Vec::new(), 0));
            // Operators see which command it is.
            let verb = if deletes { "DLCX" } else { "NTFY" };
            let Answer::Transactions(view) = w.ask_core(w.plan.owner(endpoint), Ask::Transactions) else { panic!("transactions") };
            assert_eq!(view.own.iter().map(|own| &*own.text).collect::<Vec<_>>(), [format!("{verb} ds/ds1-3/1")]);
            while w.counter(Counter::OwnLost) == 0 {
                w.run_for(10 * MS);
                assert!(w.now.0 < 120_000_000_000, "nothing was lost");
            }
            // What is to be said of endpoints is gathered this long.
            w.run_for(250 * MS);
            assert!(own_commands(w, "RSIP").is_empty() && own_commands(w, verb).len() == 8);
            let list = silent(w);
            assert!(list.len() == 1 && w.now.since(list[0].2) <= 270 * MS, "{list:?}");
            w.answer_own(true);
            w.run_for(20 * S);
            assert_eq!(silent(w), []);
        });
    }
}

/// G-DIS-01, G-DIS-16, G-RTX-14: an agent that is gone makes nobody disconnected but those that had something to say; calls go on.
#[test]
fn only_those_that_tried_become_disconnected() {
    each_layout(|w| {
        let id = create(w, "ds/ds1-2/1", "A1");
        w.answer_own(false);
        w.take_mail();
        w.run_for(100 * S);
        assert!(w.mail().is_empty());
        lose(w, "ds/ds1-2/1");
        assert_eq!(w.counter(Counter::EndpointsDisconnected), 1);
        w.run_for(600 * S);
        assert!(announced(w.mail()).iter().all(|(_, _, rsip)| name(rsip) == "ds/ds1-2/1"));
        assert_eq!(code(w, "AUCX", "ds/ds1-2/1", &[&format!("I: {id}")]), 200);
        w.answer_own(true);
        w.run_for(700 * S);
        assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &["C: A1", &format!("I: {id}")]), 250);
        assert_eq!(code(w, "RQNT", "ds/ds1-3/1", &["X: 1"]), 200);
    });
}

/// G-RTX-12: the procedure begins when the last repeat was not answered; G-DIS-02: after a random time of 1 to 15 s, which differs from
/// gateway to gateway; G-RSI-05: it says for how long; G-DIS-05: then each wait is twice as long, up to 600 s, under a new id.
#[test]
fn the_disconnect_is_told_at_a_growing_pace() {
    let mut firsts = BTreeSet::new();
    for seed in 1..=12 {
        let mut w = World::new(Setup { ..setup(Layout::Two, seed) }, |_, _| {});
        lose(&mut w, "ds/ds1-2/*");
        let lost = w.now.0 as f64 / 1e9;
        w.run_for(3600 * S);
        let told = announced(w.mail());
        assert!(told.iter().all(|(_, to, rsip)| *to == agent(1, 2727) && name(rsip) == "ds/ds1-2/*"), "{told:?}");
        assert!(told.iter().all(|(_, _, rsip)| rsip.get("RM") == Some("disconnected") && rsip.get("E").is_none()), "{told:?}");
        let first = told[0].0 - lost;
        assert!((0.9..15.5).contains(&first), "{first}");
        firsts.insert((first * 10.0) as u32);
        for (at, _, rsip) in &told {
            let said: f64 = rsip.get("RD").expect("RD").parse().unwrap();
            assert!((said - (at - lost)).abs() < 1.5, "{said} {at}");
        }
        let mut gaps: Vec<f64> = told.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        // Between two lies the time until the first one is given up.
        gaps.iter_mut().for_each(|gap| *gap -= 20.0);
        assert!(gaps.windows(2).all(|pair| pair[1] > 1.5 * pair[0] - 8.0 || pair[1] > 590.0), "{gaps:?}");
        assert!(gaps.iter().all(|gap| *gap < 605.0) && gaps.last().unwrap() > &200.0, "{gaps:?}");
    }
    assert!(firsts.len() > 8, "{firsts:?}");
}

/// G-DIS-03, G-DIS-06, G-DIS-07, G-DIS-08, G-DIS-09, G-QUA-18: a command is done, and answered behind the announcement, in one datagram
/// to its source; the announcement goes to the notified entity as well, which alone gets repeats of it.
#[test]
fn a_command_is_answered_behind_the_announcement() {
    each_layout(|w| {
        lose(w, "ds/ds1-2/*");
        w.run_for(2 * S);
        w.take_mail();
        let text = b"RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 5\r\n";
        for round in 0..3 {
            raw_from(w, agent(2, 4000), text);
            let mail = w.take_mail();
            let there: Vec<_> = mail.iter().filter(|mail| mail.to == agent(2, 4000)).collect();
            assert_eq!(there.len(), 1, "{mail:?}");
            let both = Reply::all(&there[0].bytes);
            assert_eq!((both.len(), both[0].get("RM"), both[1].code, both[1].id), (2, Some("disconnected"), Some(200), 7));
            let alone: Vec<_> = mail.iter().filter(|mail| mail.to == agent(1, 2727)).flat_map(|mail| Reply::all(&mail.bytes)).collect();
            if round == 0 {
                assert!(!alone.is_empty() && alone.iter().all(|reply| reply.id == both[0].id), "{alone:?}");
            }
        }
        // Nothing more comes to the source by itself; the entity gets it again and again.
        w.run_for(15 * S);
        let repeats = own_commands(w, "RSIP");
        assert!(repeats.len() > 2 && repeats.iter().all(|(to, _)| *to == agent(1, 2727)), "{repeats:?}");
        // Also while the next announcement waits for its time, which this ends.
        w.run_for(20 * S);
        raw_from(w, agent(2, 4000), text);
        let there: Vec<_> = w.mail().iter().filter(|mail| mail.to == agent(2, 4000)).collect();
        assert_eq!(there.len(), 1, "{there:?}");
        let both = Reply::all(&there[0].bytes);
        assert_eq!((both.len(), both[0].get("RM"), both[1].code, both[1].id), (2, Some("disconnected"), Some(200), 7));
        // Confirmed, it is not in front any more.
        confirm(w);
        let replies = raw_from(w, agent(2, 4000), text);
        assert_eq!((replies.len(), replies[0].code), (1, Some(200)));
        w.run_for(2000 * S);
        assert!(own_commands(w, "RSIP").is_empty());
    });
}

/// G-DIS-03: another command replaces the announcement that is under way by a new one; not within half a second.
#[test]
fn a_command_replaces_the_announcement_under_way() {
    each_layout(|w| {
        lose(w, "ds/ds1-2/*");
        let mut ids = Vec::new();
        for (id, pause) in [(7, 100 * MS), (8, 3 * S), (9, MS)] {
            let text = format!("RQNT {id} ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: {id}\r\n");
            raw_from(w, agent(1, 2727), text.as_bytes());
            let mail = w.take_mail();
            let both = mail.iter().map(|mail| Reply::all(&mail.bytes)).find(|all| all.len() == 2).expect("an announcement in front");
            assert_eq!((both[0].get("RM"), both[1].id), (Some("disconnected"), id));
            ids.push(both[0].id);
            w.run_for(pause);
        }
        assert!(ids[0] == ids[1] || ids[1] != ids[2]);
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 2, "{ids:?}");
        w.answer_own(true);
        w.run_for(600 * S);
    });
}

/// G-DIS-06 for agents that want 405 until a restart is confirmed: before a disconnect nothing else may be heard.
#[test]
fn a_disconnect_is_never_told_by_405() {
    for layout in super::LAYOUTS {
        let mut w = World::new(setup(layout, 1), |_, settings| settings.agents[0].refuse_while_restarting = true);
        lose(&mut w, "ds/ds1-2/1");
        let replies = raw_from(&mut w, agent(1, 2727), b"RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 5\r\n");
        let answer = replies.iter().position(|reply| reply.id == 7).unwrap();
        assert_eq!((replies[answer].code, replies[answer - 1].get("RM")), (Some(200), Some("disconnected")));
    }
}

/// G-DIS-10: success ends it; errors are followed as for a restart, at the pace of the disconnect.
#[test]
fn errors_are_followed_at_the_pace_of_the_disconnect() {
    each_layout(|w| {
        lose(w, "ds/ds1-2/*");
        let first = wait_for_announcement(w);
        w.take_mail();
        w.send_from(agent(1, 2727), 0, format!("400 {} busy\r\n", first.id).as_bytes());
        w.run_for(900 * MS);
        assert!(own_commands(w, "RSIP").is_empty(), "not before the timer");
        let second = wait_for_announcement(w);
        assert!(second.id != first.id && second.get("RM") == Some("disconnected"));
        w.take_mail();
        w.send_from(agent(1, 2727), 0, format!("521 {} there\r\nN: ca2@ca2.example.net\r\n", second.id).as_bytes());
        w.run_for(900 * MS);
        assert!(own_commands(w, "RSIP").is_empty(), "nor is a redirection followed before it");
        wait_for_announcement(w);
        let third = own_commands(w, "RSIP");
        assert!(third.iter().all(|(to, rsip)| *to == agent(2, 2727) && rsip.get("RM") == Some("disconnected")), "{third:?}");
        let id = third[0].1.id;
        w.take_mail();
        w.send_from(agent(2, 2727), 0, format!("510 {id} no\r\n").as_bytes());
        w.run_for(2000 * S);
        assert!(own_commands(w, "RSIP").is_empty());
        let replies = raw_from(w, agent(2, 2727), b"RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 5\r\n");
        assert_eq!(replies[0].get("RM"), Some("disconnected"), "a command starts it again");
        confirm(w);
        w.run_for(2000 * S);
        assert!(own_commands(w, "RSIP").is_empty());
    });
}

/// G-DIS-11: what fails while it is disconnected is told forced, and no DeleteConnection comes before that.
#[test]
fn what_fails_while_disconnected_is_told_forced() {
    each_layout(|w| {
        create(w, "ds/ds1-2/1", "A1");
        lose(w, "ds/ds1-2/*");
        let facility = w.facility("ds/ds1-2");
        w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present: true, at_once: true });
        w.run_for(100 * S);
        let mail = w.take_mail();
        let all: Vec<Reply> = mail.iter().flat_map(|mail| Reply::all(&mail.bytes)).collect();
        assert!(!all.is_empty() && all.iter().all(|reply| reply.get("RM") == Some("forced")), "{all:?}");
        w.answer_own(true);
        w.run_for(700 * S);
    });
}

/// G-DIS-06, G-DIS-13: the DeleteConnection of an endpoint that serves waits until its agent has heard of the disconnect, and goes to
/// whom it notifies then.
#[test]
fn a_deletion_while_disconnected_is_told_after_the_announcement() {
    for moved in [false, true] {
        each_layout(|w| {
            lose(w, "ds/ds1-2/5");
            let id = w.connections()[0].0.clone();
            w.free(w.plan.topology.lookup(b"ds/ds1-2/5").unwrap());
            w.run_for(2 * S);
            assert!(own_commands(w, "DLCX").is_empty());
            let n = if moved { "N: ca2@ca2.example.net\r\n" } else { "" };
            raw_from(w, agent(2, 4000), format!("RQNT 7 ds/ds1-2/5@tgw.example.net MGCP 1.0\r\nX: 5\r\n{n}").as_bytes());
            w.run_for(2 * S);
            assert!(own_commands(w, "DLCX").is_empty());
            confirm_last(w);
            w.run_for(100 * MS);
            let told = own_commands(w, "DLCX");
            let to = if moved { agent(2, 2727) } else { agent(1, 2727) };
            assert!(told.len() == 1 && told[0].0 == to && told[0].1.get("I") == Some(&id), "{told:?}");
            w.answer_own(true);
            w.run_for(30 * S);
        });
    }
}

/// G-DIS-12, G-DIS-17: another entity for one of them: it is told there, the others one by one.
#[test]
fn another_entity_for_one_divides_the_announcement() {
    each_layout(|w| {
        lose(w, "ds/ds1-2/*");
        let wildcard = wait_for_announcement(w);
        assert_eq!(name(&wildcard), "ds/ds1-2/*");
        let replies = raw_from(w, agent(2, 2727), b"RQNT 7 ds/ds1-2/5@tgw.example.net MGCP 1.0\r\nX: 5\r\nN: ca2@ca2.example.net\r\n");
        assert!(replies.iter().any(|reply| reply.get("RM") == Some("disconnected")) && replies.iter().any(|reply| reply.code == Some(200)));
        w.run_for(5 * S);
        let divided = |w: &World| -> Vec<_> { announced(w.mail()).into_iter().filter(|(_, _, rsip)| name(rsip) != "ds/ds1-2/*").collect() };
        assert_eq!(divided(w).len(), 2, "a silent agent is told one at a time");
        w.answer_own(true);
        w.run_for(60 * S);
        let divided = divided(w);
        assert_eq!(divided.len(), 24);
        for (_, to, rsip) in divided {
            assert_eq!(to == agent(2, 2727), name(&rsip) == "ds/ds1-2/5", "{}", rsip.line);
        }
        w.run_for(700 * S);
    });
}

/// G-NET-13, G-DIS-17: another entity for all of them: the announcement goes on there, under its id.
#[test]
fn another_entity_for_all_gets_the_announcement_under_way() {
    each_layout(|w| {
        lose(w, "ds/ds1-2/5");
        let replies = raw_from(w, agent(2, 4000), b"RQNT 7 ds/ds1-2/5@tgw.example.net MGCP 1.0\r\nX: 5\r\nN: ca2@ca2.example.net\r\n");
        assert!(replies.iter().all(|reply| reply.get("RM") == Some("disconnected") || reply.code == Some(200)));
        w.run_for(5 * S);
        let moved: Vec<_> = own_commands(w, "RSIP").into_iter().filter(|(to, _)| *to == agent(2, 2727)).collect();
        assert!(!moved.is_empty() && moved.iter().all(|(_, rsip)| rsip.id == replies[0].id), "{moved:?}");
        assert!(w.counter(Counter::OwnRedirected) > 0);
        w.take_mail();
        w.run_for(5 * S);
        assert!(own_commands(w, "RSIP").iter().all(|(to, _)| *to == agent(2, 2727)));
        w.answer_own(true);
        w.run_for(700 * S);
    });
}

/// G-DIS-06 for a command over all of them: done, behind the announcement.
#[test]
fn a_wildcard_command_is_answered_behind_the_announcement() {
    each_layout(|w| {
        lose(w, "ds/ds1-2/*");
        let replies = raw_from(w, agent(1, 2727), b"RQNT 7 ds/ds1-2/*@tgw.example.net MGCP 1.0\r\nX: 5\r\n");
        let answer = replies.iter().position(|reply| reply.id == 7).expect("an answer");
        assert_eq!(replies[answer].code, Some(200), "{replies:?}");
        assert_eq!((answer > 0, replies[0].get("RM")), (true, Some("disconnected")));
        w.answer_own(true);
        w.run_for(700 * S);
    });
}

/// G-DIS-06 for a free endpoint, and for the second of a pair: 405 must not be heard before a disconnect, so they wait for the announcement.
#[test]
fn an_endpoint_that_is_found_is_used_behind_the_announcement() {
    let pair = |second| format!("M: sendrecv\r\nZ2: {second}@tgw.example.net\r\n");
    let commands = [("ds/ds1-2/$", "M: recvonly\r\n".to_owned()), ("ds/ds1-3/1", pair("ds/ds1-2/7")), ("ds/ds1-3/1", pair("ds/ds1-2/$"))];
    for (name, rest) in commands {
        each_layout(|w| {
            lose(w, "ds/ds1-2/*");
            let text = format!("CRCX 7 {name}@tgw.example.net MGCP 1.0\r\nC: 1\r\n{rest}");
            let replies = raw_from(w, agent(2, 4000), text.as_bytes());
            let told: Vec<_> = replies.iter().filter(|reply| reply.is_final()).map(|reply| reply.code).collect();
            assert_eq!(told, [Some(200)], "{name} {rest} {replies:?}");
            w.answer_own(true);
            w.run_for(700 * S);
        });
    }
}

/// G-DIS-06, G-DIS-09 while several announcements are out: in front of a response goes what is said of the endpoints it is about.
#[test]
fn a_wildcard_command_is_answered_behind_all_that_concerns_it() {
    each_layout(|w| {
        assert_eq!(code(w, "RQNT", "ds/ds1-3/*", &["X: 1", "N: ca2@ca2.example.net"]), 200);
        lose(w, "ds/ds1-2/*");
        create(w, "ds/ds1-3/24", "A0");
        let selection = w.plan.topology.resolve(b"ds/ds1-3/*", false).unwrap();
        w.administer(Administration::Block(selection, BlockHow::Graceful(3600 * S)));
        while w.counter(Counter::EndpointsDisconnected) < 48 {
            w.run_for(10 * MS);
        }
        w.administer(Administration::Unblock(selection));
        let under_way = |w: &World| announced(w.mail()).into_iter().filter(|(at, ..)| w.now.0 as f64 / 1e9 - at < 14.0).count();
        while under_way(w) < 2 {
            w.run_for(100 * MS);
            assert!(w.now.0 < 3_000_000_000_000, "never two at a time");
        }
        let commands = [
            ("RQNT 7 ds/ds1-2/*", "X: 5\r\n", &["ds/ds1-2/*"][..]),
            ("CRCX 8 ds/ds1-3/$", "C: 1\r\nM: recvonly\r\n", &["ds/ds1-3/*"]),
            ("RQNT 9 ds/*/2", "X: 5\r\n", &["ds/ds1-2/*", "ds/ds1-3/*"]),
            ("DLCX 10 *", "", &["ds/ds1-2/*", "ds/ds1-3/*"]),
        ];
        for _ in 0..2 {
            for (command, parameters, names) in commands {
                raw_from(w, agent(2, 4000), format!("{command}@tgw.example.net MGCP 1.0\r\n{parameters}").as_bytes());
                let mail = w.take_mail();
                let there: Vec<_> = mail.iter().filter(|mail| mail.to == agent(2, 4000)).map(|mail| Reply::all(&mail.bytes)).collect();
                assert_eq!(there.len(), 1, "{command} {there:?}");
                let (answer, front) = there[0].split_last().unwrap();
                assert!(matches!(answer.code, Some(200 | 250)), "{answer:?}");
                let mut told: Vec<_> = front.iter().map(name).collect();
                told.sort_unstable();
                assert_eq!(told, names, "{command}");
            }
        }
        w.answer_own(true);
        w.run_for(700 * S);
    });
}

/// G-DIS-09: what was said of some endpoints was refused, and waits to be said again: it is said before the response to a command about
/// many of them, or about one that was chosen, is given once more.
#[test]
fn a_repeat_about_many_endpoints_asks_for_what_waits() {
    each_layout(|w| {
        lose(w, "ds/ds1-2/*");
        wait_for_announcement(w);
        let commands = [("RQNT 7 ds/ds1-2/*", "X: 5\r\n"), ("CRCX 8 ds/ds1-2/$", "C: 1\r\nM: recvonly\r\n"), ("DLCX 9 *", "")];
        let there = |w: &mut World| -> Vec<Vec<Reply>> {
            let mail = w.take_mail().into_iter().filter(|mail| mail.to == agent(2, 4000));
            mail.map(|mail| Reply::all(&mail.bytes)).collect()
        };
        let text = |(command, rest): (&str, &str)| format!("{command}@tgw.example.net MGCP 1.0\r\n{rest}");
        for command in commands {
            raw_from(w, agent(2, 4000), text(command).as_bytes());
            assert_eq!(there(w).len(), 1, "{command:?}");
        }
        for command in commands {
            w.run_for(S);
            let (to, told) = wait_for(w);
            w.take_mail();
            w.send_from(to, 0, format!("400 {} no\r\n", told.id).as_bytes());
            w.run_for(10 * MS);
            assert!(own_commands(w, "RSIP").iter().all(|(_, again)| again.id == told.id), "it waits");
            w.take_mail();
            w.send_from(agent(2, 4000), 0, text(command).as_bytes());
            w.run_for(100 * MS);
            let there = there(w);
            assert_eq!(there.len(), 1, "{command:?} {there:?}");
            let (answer, front) = there[0].split_last().unwrap();
            assert!(matches!(answer.code, Some(200 | 250)), "{answer:?}");
            let front: Vec<_> = front.iter().map(|reply| (name(reply), reply.id != told.id)).collect();
            assert_eq!(front, [("ds/ds1-2/*", true)], "{command:?}");
        }
        w.answer_own(true);
        w.run_for(700 * S);
    });
}

/// G-DIS-04: what happens on the line starts the procedure, once Tdmin has passed since it became disconnected or the last one ended.
#[test]
fn what_happens_on_the_line_is_told_each_tdmin() {
    // The far end seizes and gives up, again and again, or does nothing: when what was announced then.
    let told = |layout: Layout, seed: u64, busy: bool| {
        let mut w = World::new(setup(layout, seed), |plan, settings| {
            settings.timers.disconnected_initial = 600 * S;
            plan.spans[1].signalling = Signalling { kind: ChannelKind::CasMf, wink_start: true, ..Signalling::default() };
        });
        lose(&mut w, "ds/ds1-2/5");
        let lost = w.now;
        let endpoint = w.plan.topology.lookup(b"ds/ds1-2/5").unwrap();
        let core = w.plan.owner(endpoint);
        let mut digits = Digits::NONE;
        assert!([MfDigit::KP, b'5', MfDigit::ST].into_iter().all(|symbol| digits.push(symbol)));
        while w.now.since(lost) < 150 * S {
            for order in [FarOrder::Seize(DigitKind::Mf, digits), FarOrder::Show(Hook::On)] {
                if busy {
                    w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, order)));
                }
                w.run_for(3 * S);
            }
        }
        announced(w.mail()).iter().map(|(at, ..)| at - lost.0 as f64 / 1e9).collect::<Vec<f64>>()
    };
    for layout in super::LAYOUTS {
        let seed = (1..20).find(|&seed| told(layout, seed, false).is_empty()).expect("a seed with a long wait");
        let told = told(layout, seed, true);
        assert!(told.len() >= 2 && told[0] > 15.0, "{layout:?} {told:?}");
        assert!(told.windows(2).all(|pair| pair[1] - pair[0] > 15.0), "{layout:?} {told:?}");
    }
}

/// G-NET-09, G-RTX-08: an agent with two addresses of which the first is gone hears at the second, and nobody becomes disconnected.
#[test]
fn another_address_of_the_agent_takes_over() {
    let addresses = |settings: &mut tollgate::proto::plan::Settings| {
        settings.agents[0].addresses.push(agent(11, 0).ip());
        settings.agents[0].notify.push(agent(11, 2727));
    };
    super::each_layout_with(
        |_, settings| addresses(settings),
        |w| {
            w.without_journal();
            w.partition(agent(1, 0).ip(), true);
            w.take_mail();
            let selection = w.plan.topology.resolve(b"ds/ds1-2/*", false).unwrap();
            w.administer(Administration::Block(selection, BlockHow::Graceful(3600 * S)));
            w.run_for(60 * S);
            let told = announced(w.mail());
            assert_eq!((told.len(), told[0].1), (1, agent(11, 2727)), "{told:?}");
            assert_eq!(w.counter(Counter::EndpointsDisconnected), 0);
            // The one that answered is tried first from now on, also when the other is back.
            w.partition(agent(1, 0).ip(), false);
            w.take_mail();
            w.administer(Administration::Unblock(selection));
            w.run_for(S);
            assert!(announced(w.mail()).iter().all(|(_, to, _)| *to == agent(11, 2727)));
        },
    );
}

/// G-AUE-10: an audit says that an endpoint is disconnected, and for how long.
#[test]
fn an_audit_says_for_how_long_it_is_disconnected() {
    each_layout(|w| {
        lose(w, "ds/ds1-2/5");
        w.run_for(S / 2);
        let state = |w: &mut World| {
            let reply = w.ask("AUEP", "ds/ds1-2/5", &["F: RM,RD,E"]);
            let get = |name: &str| reply.get(name).unwrap().to_owned();
            (get("RM"), get("RD").parse::<u32>().unwrap(), get("E")[..3].to_owned())
        };
        let first = state(w);
        assert_eq!((first.0.as_str(), first.2.as_str()), ("disconnected", "000"));
        w.run_for(40 * S);
        let later = state(w);
        assert!(later.0 == "disconnected" && (40..=41).contains(&(later.1 - first.1)), "{later:?} after {first:?}");
        w.answer_own(true);
        w.run_for(30 * S);
        assert_eq!(state(w), ("restart".to_owned(), 0, "000".to_owned()));
    });
}

/// G-DIS-15, G-RTX-05: no copy of a command comes later than T-MAX after the first, whether it had to wait for the announcement or not.
#[test]
fn repeats_end_with_t_max() {
    each_layout(|w| {
        w.without_journal();
        let mut mail = Vec::new();
        let name = "ds/ds1-2/5";
        assert_eq!(code(w, "RQNT", name, &["X: 1", "R: T/co1(N)"]), 200);
        w.take_mail();
        w.answer_own(false);
        w.occur(name, "T/co1", None);
        w.run_for(60 * S);
        mail.extend(w.take_mail());
        assert_eq!(code(w, "RQNT", name, &["X: 2", "R: T/co2(N)"]), 200);
        // It waits for the announcement, which the agent answers after a while; then the agent is silent again.
        w.occur(name, "T/co2", None);
        w.run_for(8 * S);
        assert!(own_commands(w, "NTFY").is_empty());
        mail.extend(w.mail().iter().cloned());
        confirm_last(w);
        w.run_for(100 * S);
        mail.extend(w.take_mail());
        let mut copies: BTreeMap<u32, (String, f64, f64, u32)> = BTreeMap::new();
        for mail in &mail {
            for command in Reply::all(&mail.bytes).into_iter().filter(|message| message.code.is_none()) {
                let at = mail.at.0 as f64 / 1e9;
                let verb = command.line[..4].to_owned();
                let copy = copies.entry(command.id).or_insert((verb, at, at, 0));
                (copy.2, copy.3) = (at, copy.3 + 1);
            }
        }
        let lasted: Vec<_> = copies.values().map(|(verb, first, last, count)| (verb.as_str(), last - first, *count)).collect();
        assert!(lasted.iter().filter(|(verb, _, count)| *verb == "NTFY" && *count > 3).count() == 2, "{lasted:?}");
        assert!(lasted.iter().all(|(_, time, _)| *time <= 20.1), "{lasted:?}");
    });
}

/// Everything is lost at once and for long: the agent that returns is told in one message, and every command is answered again.
#[test]
fn an_agent_that_returns_is_told_once() {
    each_layout(|w| {
        let calls: Vec<String> = (1..=8).map(|span| create(w, &format!("ds/ds1-{span}/1"), "A1")).collect();
        lose(w, "*");
        w.run_for(1800 * S);
        w.take_mail();
        w.answer_own(true);
        w.run_for(700 * S);
        let told = announced(w.mail());
        assert_eq!((told.len(), name(&told[0].2)), (1, "*"), "{told:?}");
        for (span, id) in (1..=8).zip(calls) {
            assert_eq!(code(w, "DLCX", &format!("ds/ds1-{span}/1"), &["C: A1", &format!("I: {id}")]), 250);
        }
    });
}
