//! RestartInProgress, service states and the restart procedure (RSI, SVC, RST), as an agent sees them.

use super::{LAYOUTS, MS, S, agent, audit, block, code, create, each_layout, own_commands, raw, replies, setup};
use std::time::Duration;
use tollgate::proto::core::Administration;
use tollgate::proto::restart::BlockHow;
use tollgate::proto::trunk::{CardOrder, Defect};
use tollgate::sim::{Layout, Reply, Setup, World};

/// A gateway that has just started; nothing of its own is answered but by the test.
fn fresh(layout: Layout, wait: Duration) -> World {
    World::new(Setup { told: false, ..setup(layout, 1) }, |_, settings| settings.timers.max_waiting_delay = Some(wait))
}

/// Answers every RestartInProgress that comes within 3 s with success.
pub(super) fn confirm_all(w: &mut World) {
    for _ in 0..30 {
        w.run_for(S / 10);
        for (to, command) in own_commands(w, "RSIP") {
            w.send_from(to, 0, format!("200 {} OK\r\n", command.id).as_bytes());
        }
        w.take_mail();
    }
}

/// The RestartInProgress commands that came, each once.
fn restarts(w: &World) -> Vec<Reply> {
    let mut list: Vec<Reply> = Vec::new();
    for (_, command) in own_commands(w, "RSIP") {
        if list.iter().all(|known| known.id != command.id) {
            list.push(command);
        }
    }
    list
}

fn name(command: &Reply) -> &str {
    command.line.split(' ').nth(2).unwrap()
}

fn administer(w: &mut World, pattern: &str, how: Option<BlockHow>) {
    let selection = w.plan.topology.resolve(pattern.as_bytes(), false).unwrap();
    w.take_mail();
    w.administer(match how {
        Some(how) => Administration::Block(selection, how),
        None => Administration::Unblock(selection),
    });
}

/// Every RestartInProgress of a run follows the grammar: method, delay only where it may stand, reason of the table, nothing else
/// (G-RSI-01, G-RSI-02, G-RTN-05).
fn check_legal(commands: &[Reply]) {
    for command in commands {
        let method = command.get("RM").expect("RM");
        assert!(["graceful", "forced", "restart", "disconnected", "cancel-graceful"].contains(&method), "{command:?}");
        assert!(command.parameters.iter().all(|(name, _)| ["RM", "RD", "E", "K"].contains(&name.as_str())), "{command:?}");
        if let Some(delay) = command.get("RD") {
            assert!(["graceful", "restart", "disconnected"].contains(&method) && delay.len() <= 6, "{command:?}");
        }
        if let Some(reason) = command.get("E") {
            let code: u16 = reason.split(' ').next().unwrap().parse().unwrap();
            assert!((900..=905).contains(&code), "{command:?}");
        }
        assert!(!command.line.contains('$'), "{command:?}");
    }
}

/// G-RSI-01, G-RSI-02, G-RSI-03, G-RSI-04, G-RSI-06, G-RSI-07, G-RSI-08, G-RSI-09: every change of service and what is said of it.
#[test]
fn every_change_of_service_is_told() {
    each_layout(|w| {
        w.without_journal();
        // Graceful with a delay: calls go on, then forced.
        let id = create(w, "ds/ds1-2/1", "A1");
        administer(w, "ds/ds1-2/*", Some(BlockHow::Graceful(10 * S)));
        w.run_for(5 * S);
        let told = restarts(w);
        check_legal(&told);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!((name(&told[0]), told[0].get("RM"), told[0].get("RD")), ("ds/ds1-2/*@tgw.example.net", Some("graceful"), Some("10")));
        assert_eq!(code(w, "AUCX", "ds/ds1-2/1", &[&format!("I: {id}")]), 200);
        w.take_mail();
        w.run_for(6 * S);
        let told = restarts(w);
        check_legal(&told);
        assert_eq!((told.len(), told[0].get("RM"), told[0].get("RD")), (1, Some("forced"), None));
        assert_eq!((w.connections().len(), own_commands(w, "DLCX").len()), (0, 1));
        // Back: restart without a delay, in the state of the start.
        administer(w, "ds/ds1-2/*", None);
        w.run_for(S);
        let told = restarts(w);
        check_legal(&told);
        assert_eq!((told.len(), told[0].get("RM"), told[0].get("RD"), told[0].get("E")), (1, Some("restart"), None, None));
        assert_eq!(audit(w, "ds/ds1-2/1", "I"), "");
        // Graceful and revoked.
        create(w, "ds/ds1-2/1", "A1");
        administer(w, "ds/ds1-2/*", Some(BlockHow::Graceful(300 * S)));
        w.run_for(S);
        assert_eq!((restarts(w)[0].get("RM"), restarts(w)[0].get("RD")), (Some("graceful"), Some("300")));
        administer(w, "ds/ds1-2/*", None);
        w.run_for(S);
        let told = restarts(w);
        check_legal(&told);
        assert_eq!((told.len(), told[0].get("RM")), (1, Some("cancel-graceful")));
        assert_eq!(w.connections().len(), 1);
        // A whole T1 fails and comes back.
        let facility = w.facility("ds/ds1-2");
        w.take_mail();
        w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present: true, at_once: true });
        w.run_for(S);
        let told = restarts(w);
        check_legal(&told);
        assert_eq!((told.len(), name(&told[0]), told[0].get("RM")), (1, "ds/ds1-2/*@tgw.example.net", Some("forced")));
        assert!(told[0].get("E").is_some_and(|e| e.starts_with("905 ") || e.starts_with("902 ")), "{told:?}");
        assert_eq!(code(w, "CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly"]), 501);
        w.take_mail();
        w.order_cards(CardOrder::Clear { facility, at_once: true });
        w.run_for(S);
        let told = restarts(w);
        check_legal(&told);
        assert_eq!((told.len(), told[0].get("RM")), (1, Some("restart")));
    });
}

/// G-SVC-01, G-RTN-02: out of service only audits are answered with success.
#[test]
fn out_of_service_only_audits_are_done() {
    each_layout(|w| {
        let id = format!("I: {}", create(w, "ds/ds1-2/1", "A1"));
        block(w, "ds/ds1-2/1", true);
        for (verb, parameters) in [
            ("CRCX", &["C: A1", "M: recvonly"][..]),
            ("RQNT", &["X: 1"]),
            ("EPCF", &["B: e:A"]),
            ("MDCX", &["C: A1", &id, "M: inactive"]),
            ("DLCX", &["C: A1", &id]),
            ("DLCX", &[]),
        ] {
            assert_eq!(code(w, verb, "ds/ds1-2/1", parameters), 501, "{verb}");
        }
        assert_eq!(audit(w, "ds/ds1-2/1", "RM"), "forced");
        assert_eq!((audit(w, "ds/ds1-2/1", "X"), audit(w, "ds/ds1-2/1", "B")), ("0".into(), "e:mu".into()));
        assert_eq!(code(w, "CRCX", "ds/ds1-2/2", &["C: A1", "M: recvonly"]), 200);
    });
}

/// G-RSI-03: a block with a delay that finds no call up is told once, at once.
#[test]
fn what_is_idle_leaves_at_once() {
    each_layout(|w| {
        administer(w, "ds/ds1-2/*", Some(BlockHow::Graceful(300 * S)));
        w.run_for(S);
        let told = restarts(w);
        assert_eq!((told.len(), name(&told[0]), told[0].get("RM")), (1, "ds/ds1-2/*@tgw.example.net", Some("forced")));
        w.take_mail();
        w.run_for(400 * S);
        assert!(restarts(w).is_empty());
    });
}

/// G-SVC-02: leaving gracefully, and having revoked that, an endpoint is in service.
#[test]
fn graceful_and_revoked_endpoints_serve() {
    each_layout(|w| {
        create(w, "ds/ds1-2/9", "A1");
        for how in [Some(BlockHow::Graceful(100 * S)), None] {
            administer(w, "ds/ds1-2/*", how);
            w.run_for(S);
            let id = create(w, "ds/ds1-2/1", "A1");
            assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &["C: A1", &format!("I: {id}")]), 250);
        }
    });
}

/// G-RST-01, G-RST-02: the restart is told within MWD, at a time that differs from gateway to gateway.
#[test]
fn the_restart_is_told_within_mwd() {
    let mut times = std::collections::BTreeSet::new();
    for seed in 1..=30 {
        let mut w = World::new(Setup { told: false, ..setup(Layout::Two, seed) }, |_, settings| {
            settings.timers.max_waiting_delay = Some(2500 * MS);
        });
        let started = w.now;
        w.run_for(2600 * MS);
        let first = w.mail().first().unwrap_or_else(|| panic!("seed {seed}: nothing within MWD")).at;
        times.insert(first.since(started).as_millis() / 100);
        assert_eq!((restarts(&w).len(), name(&restarts(&w)[0])), (1, "*@tgw.example.net"));
    }
    assert!(times.len() > 10, "{times:?}");
}

/// G-RST-01: a command ends the wait.
#[test]
fn a_command_ends_the_wait_after_power_on() {
    for layout in LAYOUTS {
        let mut w = fresh(layout, 600 * S);
        w.run_for(100 * MS);
        assert!(w.mail().is_empty());
        assert!(raw(&mut w, b"AUEP 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\n").iter().any(|reply| reply.line.starts_with("RSIP ")));
    }
}

/// G-RST-01: so does what happens on a line.
#[test]
fn what_happens_on_a_line_ends_the_wait_after_power_on() {
    for layout in LAYOUTS {
        let mut w = fresh(layout, 600 * S);
        w.run_for(100 * MS);
        assert!(w.mail().is_empty());
        w.occur("ds/ds1-2/1", "T/co1", None);
        w.run_for(100 * MS);
        assert_eq!(restarts(&w).iter().map(name).collect::<Vec<_>>(), ["*@tgw.example.net"], "{layout:?}");
    }
}

/// G-RST-03, G-SVC-03: the first the agent sees is the RestartInProgress, alone or in front of the response, whatever the command.
#[test]
fn the_restart_comes_before_any_other_answer() {
    let commands = [
        "RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 1\r\n",
        "CRCX 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\n",
        "CRCX 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: sendrecv\r\n",
        "DLCX 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\n",
        "EPCF 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\n",
        "RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 2.0\r\n",
        "NTFY 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\n",
        "XPER 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\n",
        "CRCX 7 ds/ds1-2/$@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\n",
        "RQNT 7 ds/ds1-2/*@tgw.example.net MGCP 1.0\r\nX: 1\r\n",
    ];
    for layout in LAYOUTS {
        for command in commands {
            let mut w = fresh(layout, 600 * S);
            w.run_for(100 * MS);
            let replies = raw(&mut w, command.as_bytes());
            let answer = replies.iter().position(|reply| reply.id == 7 && reply.is_final()).unwrap_or_else(|| panic!("{command}"));
            let before = replies[..answer].iter().any(|reply| reply.line.starts_with("RSIP "));
            let code = replies[answer].code.unwrap();
            assert!([405, 501, 520].contains(&code) || before, "{layout:?}: {command} {replies:?}");
            // One endpoint by name is not refused: the restart goes in front, in the same datagram.
            if !command.contains("/$") && !command.contains("/*") {
                assert_ne!(code, 405, "{command}");
                let with = w.mail().iter().map(|mail| Reply::all(&mail.bytes)).find(|all| all.iter().any(|reply| reply.id == 7)).unwrap();
                assert!(with[0].line.starts_with("RSIP ") && with.len() == 2, "{layout:?}: {command} {with:?}");
            }
        }
    }
}

/// G-SVC-03: an agent that wants 405 instead gets it.
#[test]
fn an_agent_may_have_405_until_the_restart_is_confirmed() {
    for layout in LAYOUTS {
        let mut w = World::new(Setup { told: false, ..setup(layout, 1) }, |_, settings| settings.agents[0].refuse_while_restarting = true);
        w.run_for(100 * MS);
        assert_eq!(code(&mut w, "RQNT", "ds/ds1-2/1", &["X: 1"]), 405);
        assert_eq!(code(&mut w, "AUEP", "ds/ds1-2/1", &[]), 200);
        confirm_all(&mut w);
        assert_eq!(code(&mut w, "RQNT", "ds/ds1-2/1", &["X: 1"]), 200);
    }
}

/// G-RST-05, G-RST-06: repeats have the restart in front as well, until it is confirmed.
#[test]
fn repeats_have_the_restart_in_front_until_it_is_confirmed() {
    for layout in LAYOUTS {
        let mut w = fresh(layout, 10 * MS);
        w.run_for(100 * MS);
        let text = b"RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 1\r\n";
        let mut ids = std::collections::HashSet::new();
        for _ in 0..3 {
            raw(&mut w, text);
            let all = w.mail().iter().map(|mail| Reply::all(&mail.bytes)).find(|all| all.iter().any(|reply| reply.id == 7)).unwrap();
            assert_eq!((all.len(), all[0].get("RM"), all[1].code), (2, Some("restart"), Some(200)), "{layout:?}");
            ids.insert(all[0].id);
        }
        assert_eq!(ids.len(), 1, "one and the same transaction");
        confirm_all(&mut w);
        let after = raw(&mut w, text);
        assert_eq!((after.len(), after[0].code), (1, Some(200)));
    }
}

/// G-RST-05, G-ACK-08: so have the gateway's own repeats of a final that waits for its `000` (seed 858 of the random worlds).
#[test]
fn finals_sent_again_have_the_restart_in_front() {
    for layout in LAYOUTS {
        let mut w = fresh(layout, 10 * MS);
        w.run_for(100 * MS);
        w.order_cards(CardOrder::Delay(300));
        w.send_from(agent(1, 2727), 0, b"CRCX 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\n");
        w.run_for(5 * S);
        let finals = |w: &World| -> Vec<Vec<Reply>> {
            let all = w.mail().iter().map(|mail| Reply::all(&mail.bytes));
            all.filter(|all| all.iter().any(|reply| reply.id == 7 && reply.is_final())).collect()
        };
        let sent = finals(&w);
        assert!(sent.len() > 3, "{layout:?}: {sent:?}");
        for datagram in sent {
            assert!(datagram.len() == 2 && datagram[0].get("RM") == Some("restart"), "{layout:?}: {datagram:?}");
        }
        confirm_all(&mut w);
        w.run_for(100 * MS);
        w.take_mail();
        w.run_for(10 * S);
        let after = finals(&w);
        assert!(!after.is_empty() && after.iter().all(|datagram| datagram.len() == 1), "{layout:?}: {after:?}");
        w.order_cards(CardOrder::Delay(0));
    }
}

/// G-RST-03, G-RST-05: when the endpoint leaves service before its restart was confirmed, that goes in front of what is sent again
/// (seed 2011 of the random worlds), for the agent as for the gateway's own repeats.
#[test]
fn what_is_sent_again_from_out_of_service_goes_behind_that() {
    for layout in LAYOUTS {
        let mut w = fresh(layout, 10 * MS);
        confirm_all(&mut w);
        let facility = w.facility("ds/ds1-2");
        let fail = |w: &mut World, present| {
            w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present, at_once: true });
        };
        fail(&mut w, true);
        confirm_all(&mut w);
        fail(&mut w, false);
        w.run_for(15 * S);
        w.order_cards(CardOrder::Delay(300));
        let text = b"CRCX 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\n";
        w.send_from(agent(1, 2727), 0, text);
        w.run_for(S / 2);
        w.order_cards(CardOrder::Delay(0));
        fail(&mut w, true);
        w.run_for(300 * MS);
        w.take_mail();
        w.run_for(S);
        w.send_from(agent(1, 2727), 0, text);
        w.run_for(100 * MS);
        let finals = |w: &mut World| -> Vec<Vec<Reply>> {
            let all = w.take_mail().into_iter().map(|mail| Reply::all(&mail.bytes));
            all.filter(|all| all.iter().any(|reply| reply.id == 7 && reply.is_final())).collect()
        };
        let sent = finals(&mut w);
        assert!(sent.len() > 1, "{layout:?}: {sent:?}");
        for datagram in sent {
            assert!(datagram.len() == 2 && datagram[0].get("RM") == Some("forced"), "{layout:?}: {datagram:?}");
        }
        w.run_for(3 * S);
        confirm_all(&mut w);
        w.send_from(agent(1, 2727), 0, text);
        w.run_for(10 * MS);
        let after = finals(&mut w);
        assert!(after.len() == 1 && after[0].len() == 1, "{layout:?}: {after:?}");
    }
}

/// G-RST-03: what cannot be read is 501 as well where the endpoint is out of service, which the agent may not know yet (seed 194 of the
/// random worlds).
#[test]
fn what_is_wrong_at_an_endpoint_out_of_service_is_501() {
    for layout in LAYOUTS {
        let mut w = fresh(layout, 10 * MS);
        w.administer(Administration::Block(w.plan.topology.resolve(b"ds/ds1-2/*", false).unwrap(), BlockHow::Force));
        w.run_for(100 * MS);
        assert_eq!(code(&mut w, "CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly", "X+CRITICAL: 1"]), 501);
        assert_eq!(code(&mut w, "MDCX", "ds/ds1-2/1", &["C: A1"]), 501);
    }
}

/// G-RST-04: what is down at the start is told forced, the rest restart, each in the fewest names.
#[test]
fn what_is_down_at_the_start_is_told_forced() {
    for layout in LAYOUTS {
        let mut w = fresh(layout, 2500 * MS);
        let facility = w.facility("ds/ds1-2");
        w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present: true, at_once: true });
        w.run_for(3 * S);
        let told = restarts(&w);
        check_legal(&told);
        let forced: Vec<_> = told.iter().filter(|c| c.get("RM") == Some("forced")).map(name).collect();
        let restarted: Vec<_> = told.iter().filter(|c| c.get("RM") == Some("restart")).map(name).collect();
        assert_eq!(forced, ["ds/ds1-2/*@tgw.example.net"], "{layout:?}");
        assert!(!restarted.is_empty() && restarted.iter().all(|name| !name.contains("ds1-2/")), "{restarted:?}");
    }
}

/// G-RST-07, G-RST-08, G-RST-09: what an error makes of the restart.
#[test]
fn errors_are_retried_redirected_or_final() {
    for layout in LAYOUTS {
        let answer = |w: &mut World, text: &str| {
            let (to, command) = own_commands(w, "RSIP").into_iter().next_back().expect("a restart");
            w.take_mail();
            w.send_from(to, 0, format!("{} {} {}", &text[..3], command.id, &text[4..]).as_bytes());
            command.id
        };
        let mut w = fresh(layout, 10 * MS);
        w.run_for(100 * MS);
        let first = answer(&mut w, "400 busy\r\n");
        w.run_for(5 * S);
        let again = restarts(&w);
        assert!(again.iter().all(|c| c.id != first) && again[0].get("RM") == Some("restart"), "{again:?}");
        answer(&mut w, "521 there\r\nN: ca2@ca2.example.net\r\n");
        w.run_for(3 * S);
        assert!(own_commands(&w, "RSIP").iter().all(|(to, _)| *to == agent(2, 2727)) && !restarts(&w).is_empty());
        // 521 without an entity, and any other error: silence, until a command comes.
        for text in ["521 where\r\n", "510 no\r\n", "536 what\r\n"] {
            answer(&mut w, text);
            w.run_for(100 * S);
            assert!(restarts(&w).is_empty(), "{text}");
            let id = w.now.0 / 1_000_000_000;
            raw(&mut w, format!("RQNT {id} ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 1\r\n").as_bytes());
            assert!(!restarts(&w).is_empty(), "{layout:?}: {text}");
        }
        // A redirection to a stranger is not followed.
        answer(&mut w, "521 there\r\nN: ca@evil.example.net\r\n");
        w.run_for(30 * S);
        assert!(own_commands(&w, "RSIP").iter().all(|(to, _)| to.ip() == agent(2, 0).ip()));
    }
}

/// G-RST-11, G-SHD-07, G-EPN-15: one command for all of one agent, whatever the cores; separate ones for two.
#[test]
fn the_restart_is_told_in_the_fewest_names() {
    for layout in Layout::ALL {
        let mut w = fresh(layout, 10 * MS);
        w.run_for(S);
        assert_eq!(restarts(&w).iter().map(name).collect::<Vec<_>>(), ["*@tgw.example.net"], "{layout:?}");
        let mut w = World::new(Setup { told: false, ..setup(layout, 1) }, |plan, settings| {
            settings.timers.max_waiting_delay = Some(10 * MS);
            plan.spans[3].agent = tollgate::proto::base::AgentId(1);
        });
        w.run_for(S);
        let mut told: Vec<_> = own_commands(&w, "RSIP").into_iter().map(|(to, c)| (to.ip(), name(&c).to_owned())).collect();
        told.sort();
        told.dedup();
        let second: Vec<_> = told.iter().filter(|(to, _)| *to == agent(2, 0).ip()).collect();
        assert_eq!(second.len(), 1);
        assert_eq!(second[0].1, "ds/ds1-4/*@tgw.example.net");
        assert!(told.iter().all(|(to, name)| *to == agent(2, 0).ip() || !name.starts_with('*') && !name.contains("ds1-4/")), "{told:?}");
    }
}

/// G-RST-12: after a restart everything is as provisioned.
#[test]
fn after_a_restart_everything_is_as_provisioned() {
    each_layout(|w| {
        create(w, "ds/ds1-2/1", "A1");
        assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &["X: 5", "D: (xx)", "Q: loop", "N: ca2@ca2.example.net"]), 200);
        block(w, "ds/ds1-2/*", true);
        block(w, "ds/ds1-2/*", false);
        let expected =
            [("X", "0"), ("D", ""), ("Q", "step,process"), ("N", "ca1@[192.0.2.1]:2727"), ("I", ""), ("R", ""), ("S", ""), ("T", "")];
        for (info, value) in expected {
            assert_eq!(audit(w, "ds/ds1-2/1", info), value, "{info}");
        }
    });
}

/// G-RST-10, G-DIS-05: an agent that is silent at the start is told restart again and again, ever more slowly, under new ids.
#[test]
fn a_silent_agent_is_told_restart_at_a_growing_pace() {
    let mut w = fresh(Layout::Two, 10 * MS);
    w.run_for(3600 * S);
    let mut firsts: Vec<(u32, f64)> = Vec::new();
    for mail in w.mail() {
        let all = Reply::all(&mail.bytes);
        assert!(all.iter().all(|c| c.get("RM") == Some("restart")));
        if firsts.iter().all(|(id, _)| *id != all[0].id) {
            firsts.push((all[0].id, mail.at.0 as f64 / 1e9));
        }
    }
    let gaps: Vec<f64> = firsts.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    assert!((5..30).contains(&gaps.len()), "{gaps:?}");
    assert!(gaps.windows(2).all(|pair| pair[1] >= pair[0] - 5.0) && gaps.last().unwrap() <= &660.0, "{gaps:?}");
    assert_eq!(replies(&w).iter().filter(|reply| reply.code.is_some()).count(), 0);
}

/// G-RST-10, G-DIS-04: and when something happens on a line, once Tdmin has passed since the last attempt.
#[test]
fn a_silent_agent_is_told_restart_when_something_happens_on_a_line() {
    for layout in LAYOUTS {
        let mut w = World::new(Setup { told: false, ..setup(layout, 1) }, |_, settings| {
            settings.timers.max_waiting_delay = Some(10 * MS);
            (settings.timers.disconnected_initial, settings.timers.disconnected_min) = (600 * S, 15 * S);
        });
        // The first attempt is given up before this.
        w.run_for(25 * S);
        let first = restarts(&w)[0].id;
        w.take_mail();
        w.occur("ds/ds1-2/1", "T/co1", None);
        w.run_for(S);
        assert!(w.mail().is_empty(), "{layout:?}: within Tdmin");
        w.run_for(15 * S);
        assert!(w.mail().is_empty(), "{layout:?}: a seed with a short wait");
        w.occur("ds/ds1-2/1", "T/co1", None);
        w.run_for(100 * MS);
        let again = restarts(&w);
        assert!(again.len() == 1 && again[0].get("RM") == Some("restart") && again[0].id != first, "{layout:?}: {again:?}");
    }
}

/// G-RST-01, G-NET-09: an agent whose name has no address yet cannot be told; when it has one it is told at once, however long the wait has
/// become meanwhile.
#[test]
fn an_agent_whose_name_is_found_late_is_told_at_once() {
    for layout in LAYOUTS {
        let mut addresses = Vec::new();
        let mut w = World::new(Setup { told: false, ..setup(layout, 1) }, |_, settings| {
            settings.timers.max_waiting_delay = Some(S / 10);
            addresses = std::mem::take(&mut settings.agents[0].notify);
        });
        w.run_for(300 * S);
        assert!(restarts(&w).is_empty(), "{layout:?}: there is nobody to tell");
        let now = w.now;
        w.reload(|settings| (settings.agents[0].notify, settings.agents[0].resolved) = (addresses, Some(now)));
        w.run_for(S / 2);
        assert_eq!(restarts(&w).iter().map(name).collect::<Vec<_>>(), ["*@tgw.example.net"], "{layout:?}");
    }
}
