//! Restarts and failures as the agent sees them (RFC 3435 4.4.5 to 4.4.7; G-RST, G-RSI, G-SHD-07).

use super::{MS, S, create, rsips};
use std::net::SocketAddr;
use std::time::Duration;
use tollgate::proto::base::Counter;
use tollgate::proto::core::{Administration, Answer, Ask};
use tollgate::proto::restart::BlockHow;
use tollgate::proto::trunk::{CardOrder, Defect, FacilityKind, FacilityPlan};
use tollgate::sim::{Faults, Layout, Reply, Setup, World};

const AGENT: ([u8; 4], u16) = ([192, 0, 2, 1], 2727);

/// A gateway that has just started and told nobody yet.
fn starting(layout: Layout, change: impl FnOnce(&mut tollgate::proto::plan::Plan, &mut tollgate::proto::plan::Settings)) -> World {
    World::new(Setup { told: false, ..Setup::new(layout, 1) }, change)
}

/// Every message that came, in order.
fn messages(w: &World) -> Vec<Reply> {
    w.mail().iter().flat_map(|mail| Reply::all(&mail.bytes)).collect()
}

fn answer(w: &mut World, rsip: &Reply, code: u16) {
    w.send_from(SocketAddr::from(AGENT), 0, format!("{code} {} OK\r\n", rsip.id).as_bytes());
    w.run_for(10 * MS);
}

/// G-RST-01, G-RST-11, G-SHD-07: one RSIP for all cores within MWD, repeated until it is answered.
#[test]
fn one_restart_is_told_for_all_cores() {
    for layout in Layout::ALL {
        let mut w = starting(layout, |_, _| {});
        w.run_for(4 * S);
        let told = rsips(&w);
        assert!(told.len() > 1 && told.iter().all(|rsip| rsip == &told[0]), "{layout:?} {told:?}");
        assert!(told[0].line.starts_with("RSIP ") && told[0].line.ends_with(" *@tgw.example.net MGCP 1.0"), "{}", told[0].line);
        assert_eq!(told[0].get("RM"), Some("restart"));
        answer(&mut w, &told[0], 200);
        w.take_mail();
        w.run_for(30 * S);
        assert_eq!(w.mail(), []);
        create(&mut w, "ds/ds1-4/4", "A1");
        assert_eq!(w.mail().len(), 1, "nothing in front any more");
        w.run_for(S);
        w.check_quiet();
    }
}

/// G-RST-01, G-RST-03, G-RST-05: a command starts the procedure and its response has the RSIP in front, its repeats too; audits do not.
#[test]
fn a_command_before_the_restart_gets_it_in_front() {
    for layout in Layout::ALL {
        for name in ["ds/ds1-1/1", "ds/ds1-4/1", "ds/ds1-7/24"] {
            let mut w = starting(layout, |_, settings| settings.timers.max_waiting_delay = Some(600 * S));
            let audit = w.ask("AUEP", name, &[]);
            assert_eq!((audit.code, messages(&w)[0].code), (Some(200), Some(200)), "an audit is answered plainly");
            w.run_for(10 * MS);
            let refused = w.ask("CRCX", name, &["C: A1", "M: nonsense"]);
            assert_eq!(refused.code, Some(517));
            let id = w.command("CRCX", name, &["C: A1", "M: recvonly"]);
            assert_eq!(w.final_of(id).code, Some(200));
            let text = format!("CRCX {id} {name}@tgw.example.net MGCP 1.0\r\nC: A1\r\nM: recvonly\r\n");
            w.send_from(SocketAddr::from(AGENT), 0, text.as_bytes());
            w.run_for(10 * MS);
            // Whatever names the endpoint has the RSIP before it, in its datagram or as a datagram of its own.
            for mail in w.mail().iter().skip(1) {
                assert_eq!(Reply::all(&mail.bytes)[0].code, None, "{layout:?} {:?}", String::from_utf8_lossy(&mail.bytes));
            }
            assert!(w.replies_to(id).len() == 2 && w.replies_to(id)[0] == w.replies_to(id)[1]);
            let rsip = rsips(&w)[0].clone();
            answer(&mut w, &rsip, 200);
            w.take_mail();
            w.send_from(SocketAddr::from(AGENT), 0, text.as_bytes());
            w.run_for(S);
            assert_eq!(messages(&w).iter().map(|message| message.code).collect::<Vec<_>>(), [Some(200)]);
            w.check_quiet();
        }
    }
}

/// An agent that wants 405 until it has confirmed.
#[test]
fn an_agent_may_want_405_instead() {
    for layout in Layout::ALL {
        let mut w = starting(layout, |_, settings| settings.agents[0].refuse_while_restarting = true);
        for (verb, name) in [("CRCX", "ds/ds1-2/1"), ("RQNT", "ds/ds1-3/1"), ("DLCX", "ds/ds1-4/2")] {
            assert_eq!(w.ask(verb, name, &["C: A1"]).code, Some(405), "{layout:?} {verb}");
        }
        assert_eq!(w.ask("AUEP", "ds/ds1-2/1", &[]).code, Some(200));
        w.run_for(10 * MS);
        let rsip = rsips(&w)[0].clone();
        answer(&mut w, &rsip, 200);
        create(&mut w, "ds/ds1-2/1", "A1");
    }
}

/// Commands that are held until the restart can go in front keep their order.
#[test]
fn held_commands_keep_their_order() {
    for layout in Layout::ALL {
        let mut w = starting(layout, |_, settings| settings.timers.max_waiting_delay = Some(600 * S));
        w.set_faults(Faults { ring_max: 2 * MS, ..Faults::none() });
        let mut ids = Vec::new();
        for call in 1..=6 {
            ids.push(w.command("CRCX", "ds/ds1-4/1", &[&format!("C: {call}"), "M: recvonly"]));
            ids.push(w.command("DLCX", "ds/ds1-4/1", &[]));
        }
        let codes: Vec<_> = ids.iter().map(|&id| w.final_of(id).code).collect();
        assert!(codes.chunks(2).all(|pair| pair == [Some(200), Some(250)]), "{codes:?}");
        assert_eq!(w.connections().len(), 0);
    }
}

/// A wildcard command before the restart is told changes nothing (405) and starts the procedure on its way.
#[test]
fn a_command_over_all_waits_for_the_restart() {
    for layout in Layout::ALL {
        let mut w = starting(layout, |_, settings| settings.timers.max_waiting_delay = Some(600 * S));
        assert_eq!(w.ask("DLCX", "*", &[]).code, Some(405), "{layout:?}");
        w.run_for(20 * MS);
        let again = w.command("DLCX", "*", &[]);
        assert_eq!(w.final_of(again).code, Some(250));
        let first = w.mail().iter().map(|mail| Reply::all(&mail.bytes)).find(|all| all.iter().any(|reply| reply.id == again)).unwrap();
        assert!(first[0].line.starts_with("RSIP"), "{first:?}");
        w.run_for(S);
        w.check_quiet();
    }
}

/// A failed span: forced RSIP, its connections end with a DLCX each, commands get 501 or 531, and `restart` when it is back
/// (G-RSI-04, G-DLX-06, O-4).
#[test]
fn a_span_that_fails_takes_its_calls_with_it() {
    for layout in Layout::ALL {
        let mut w = World::new(Setup::new(layout, 1), |_, _| {});
        let kept = create(&mut w, "ds/ds1-4/1", "A1");
        let lost: Vec<String> = (1..=3).map(|n| create(&mut w, &format!("ds/ds1-3/{n}"), "A1")).collect();
        let facility = w.facility("ds/ds1-3");
        w.take_mail();
        w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present: true, at_once: false });
        w.run_for(2400 * MS);
        assert_eq!(w.mail(), [], "integrated for 2.5 s");
        w.run_for(2 * S);
        let told = rsips(&w);
        let restart = told.iter().find(|message| message.line.starts_with("RSIP")).unwrap();
        assert!(restart.line.ends_with(" ds/ds1-3/*@tgw.example.net MGCP 1.0"), "{}", restart.line);
        assert_eq!((restart.get("RM"), restart.get("E").map(|e| &e[..3])), (Some("forced"), Some("905")));
        let mut deleted: Vec<_> = told.iter().filter(|m| m.line.starts_with("DLCX")).map(|m| m.get("I").unwrap().to_owned()).collect();
        deleted.sort();
        let mut expected = lost.clone();
        expected.sort();
        assert_eq!(deleted, expected, "{layout:?}");
        assert!(matches!(w.ask("CRCX", "ds/ds1-3/1", &["C: A1", "M: recvonly"]).code, Some(501 | 531)));
        assert_eq!(w.ask("AUEP", "ds/ds1-3/1", &["F: RM"]).get("RM"), Some("forced"));
        assert_eq!(w.connections().iter().map(|(id, _)| id).collect::<Vec<_>>(), [&kept]);
        assert_eq!(w.ask("DLCX", "ds/ds1-3/*", &[]).code, Some(250));
        w.take_mail();
        w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present: false, at_once: true });
        w.run_for(2 * S);
        let told = rsips(&w);
        assert_eq!((told.len(), told[0].get("RM")), (1, Some("restart")), "{told:?}");
        let id = create(&mut w, "ds/ds1-3/1", "A1");
        assert_ne!(id, lost[0]);
        assert_eq!(w.media_open(), 2);
    }
}

/// A T3 alarm is one RSIP, wherever its spans live; it takes the fewest names otherwise.
#[test]
fn a_t3_that_fails_is_told_in_one_message() {
    for layout in Layout::ALL {
        let t3 = FacilityPlan { kind: FacilityKind::T3, unit: 1, common_channel: false };
        let t1 = FacilityPlan { kind: FacilityKind::T1, unit: 1, common_channel: false };
        let mut w = World::new(Setup { facilities: vec![t3, t1], ..Setup::new(layout, 1) }, |_, _| {});
        let facility = w.facility("ds/ds3-1");
        w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present: true, at_once: true });
        w.run_for(2 * S);
        let told = rsips(&w);
        assert_eq!(told.len(), 1, "{layout:?} {told:?}");
        assert!(told[0].line.contains(" ds/ds3-1/*/*@") || told[0].line.contains(" ds/*/*/*@"), "{}", told[0].line);
        create(&mut w, "ds/ds1-1/1", "A1");
    }
}

/// G-NET-02, G-RST-12: a span that comes back is told to the provisioned agent at once, from the first copy on, also when nothing is
/// held back; entities that mean the same address, and those that were cleared, make no message of their own.
#[test]
fn a_span_that_comes_back_is_told_to_the_provisioned_agent_alone() {
    for layout in Layout::ALL {
        let mut w = World::new(Setup::new(layout, 1), |_, settings| settings.timers.alarm_merge = Duration::ZERO);
        for span in ["ds/ds1-1", "ds/ds1-6"] {
            let facility = w.facility(span);
            let cases: [(&str, &[&str]); 4] = [
                ("*", &["ca1@[192.0.2.1]:3000"]),
                ("*", &["ca1@[192.0.2.1]:2727"]),
                ("5", &["ca1@[192.0.2.1]:2727"]),
                ("7", &["ca1@[192.0.2.1]:3000", ""]),
            ];
            for (names, entities) in cases {
                for entity in entities {
                    let named = w.ask("RQNT", &format!("{span}/{names}"), &["X: 1", &format!("N: {entity}")]);
                    assert_eq!(named.code, Some(200));
                }
                let entity = entities[entities.len() - 1];
                let mut alarm = |present| {
                    w.take_mail();
                    w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present, at_once: true });
                    w.run_for(S);
                    let mut ports: Vec<_> = w.mail().iter().map(|mail| mail.to.port()).collect();
                    ports.dedup();
                    (rsips(&w).len(), ports)
                };
                let port = if entity.ends_with(":3000") { 3000 } else { 2727 };
                assert_eq!(alarm(true), (1, vec![port]), "{layout:?} {span} {entity}");
                assert_eq!(alarm(false), (1, vec![2727]), "{layout:?} {span} {entity}");
            }
        }
    }
}

/// G-ACK-01: `K:` counts in a command that is held until the restart is announced as well.
#[test]
fn a_held_command_confirms_responses() {
    for layout in Layout::ALL {
        let mut w = starting(layout, |_, settings| settings.timers.max_waiting_delay = Some(600 * S));
        let audit = w.command("AUEP", "ds/ds1-6/*", &[]);
        assert_eq!(w.final_of(audit).code, Some(200));
        w.run_for(10 * MS);
        let made = w.ask("CRCX", "ds/ds1-6/2", &["C: A1", "M: recvonly", &format!("K: {audit}")]);
        w.run_for(10 * MS);
        assert_eq!((made.code, w.counter(Counter::ResponsesConfirmed)), (Some(200), 1), "{layout:?}");
    }
}

/// A block that waits for calls says `forced` at once of what has none, and `graceful` only of what has one; new calls are taken on
/// that meanwhile (G-RSI-03, G-SVC-02).
#[test]
fn a_block_says_graceful_only_of_what_is_busy() {
    for layout in Layout::ALL {
        let mut w = World::new(Setup::new(layout, 1), |_, settings| settings.timers.alarm_merge = Duration::ZERO);
        let id = create(&mut w, "ds/ds1-6/1", "A1");
        w.take_mail();
        let told = |w: &World| {
            rsips(w).iter().map(|m| format!("{} {}", m.get("RM").unwrap(), m.line.split([' ', '@']).nth(2).unwrap())).collect::<Vec<_>>()
        };
        let idle = w.plan.topology.resolve(b"ds/ds1-5/*", false).unwrap();
        w.administer(Administration::Block(idle, BlockHow::Graceful(Duration::ZERO)));
        w.run_for(S);
        assert_eq!(told(&w), ["forced ds/ds1-5/*"], "{layout:?}");
        w.take_mail();
        let busy = w.plan.topology.resolve(b"ds/ds1-6/*", false).unwrap();
        w.administer(Administration::Block(busy, BlockHow::Graceful(Duration::ZERO)));
        w.run_for(S);
        let all = told(&w);
        assert_eq!(all.iter().filter(|line| line.starts_with("graceful")).collect::<Vec<_>>(), ["graceful ds/ds1-6/1"], "{layout:?}");
        assert_eq!(all.iter().filter(|line| line.starts_with("forced")).count(), 23, "{layout:?} {all:?}");
        w.take_mail();
        let second = create(&mut w, "ds/ds1-6/1", "A1");
        w.ask("DLCX", "ds/ds1-6/1", &["C: A1", &format!("I: {id}")]);
        w.run_for(S);
        assert!(told(&w).is_empty(), "{:?}", told(&w));
        w.ask("DLCX", "ds/ds1-6/1", &["C: A1", &format!("I: {second}")]);
        w.run_for(S);
        assert_eq!(told(&w), ["forced ds/ds1-6/1"]);
        w.check_quiet();
    }
}

/// The operator clears an endpoint: the agent is told of each connection that ends, with what it counted, whatever it wants to be told
/// of failures, and nothing else (RFC 3435 2.3.8, 2.5; G-DLX-06).
#[test]
fn a_cleared_endpoint_is_told_to_its_agent() {
    for layout in Layout::ALL {
        let mut w = World::new(Setup::new(layout, 1), |_, settings| settings.agents[0].delete_on_failure = false);
        let mut expected: Vec<String> = (0..2).map(|_| create(&mut w, "ds/ds1-4/1", "A1")).collect();
        let kept = create(&mut w, "ds/ds1-4/2", "A1");
        w.take_mail();
        let endpoint = w.plan.topology.lookup(b"ds/ds1-4/1").unwrap();
        w.free(endpoint);
        w.run_for(S);
        let told = rsips(&w);
        assert!(told.iter().all(|message| message.line.starts_with("DLCX ") && message.line.contains(" ds/ds1-4/1@")), "{told:?}");
        assert!(told.iter().all(|m| m.get("E").is_some_and(|e| e.starts_with("904")) && m.get("P").is_some() && m.get("C") == Some("A1")));
        let mut deleted: Vec<_> = told.iter().map(|message| message.get("I").unwrap().to_owned()).collect();
        deleted.sort();
        expected.sort();
        assert_eq!(deleted, expected, "{layout:?}");
        assert_eq!(w.connections().iter().map(|(id, _)| id).collect::<Vec<_>>(), [&kept]);
        assert_eq!((w.counter(Counter::ConnectionsFreed), w.counter(Counter::ConnectionsLost)), (2, 0));
        w.run_for(S);
        w.check_quiet();
    }
}

/// Calls that are lost with a span are told to operators once, with their number (the log has a line for each span).
#[test]
fn lost_calls_are_told_to_operators_once() {
    for layout in Layout::ALL {
        let mut w = World::new(Setup::new(layout, 1), |_, _| {});
        for name in ["ds/ds1-3/1", "ds/ds1-3/2", "ds/ds1-6/1", "ds/ds1-5/1"] {
            create(&mut w, name, "A1");
        }
        let facility = w.facility("ds/ds1-3");
        w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present: true, at_once: true });
        w.administer(Administration::Block(w.plan.topology.resolve(b"ds/ds1-6/*", false).unwrap(), BlockHow::Force));
        w.run_for(S);
        let lead = w.plan.lead();
        let Answer::Losses(losses) = w.ask_core(lead, Ask::Losses) else { panic!("no answer") };
        let losses: Vec<_> = losses.iter().map(|loss| (loss.span.0, loss.reason, loss.connections)).collect();
        assert_eq!(losses, [(2, 905, 2), (5, 901, 1)], "{layout:?}");
        let Answer::Losses(again) = w.ask_core(lead, Ask::Losses) else { panic!("no answer") };
        assert_eq!(again, []);
    }
}

/// The operator takes a span out of service and back.
#[test]
fn a_blocked_span_refuses_and_comes_back() {
    for layout in Layout::ALL {
        let mut w = World::new(Setup::new(layout, 1), |_, _| {});
        let selection = w.plan.topology.resolve(b"ds/ds1-6/*", false).unwrap();
        w.administer(Administration::Block(selection, BlockHow::Force));
        w.run_for(S);
        assert_eq!(w.ask("CRCX", "ds/ds1-6/1", &["C: A1", "M: recvonly"]).code, Some(501));
        assert_eq!(w.ask("CRCX", "ds/ds1-6/$", &["C: A1", "M: recvonly"]).code, Some(410));
        w.administer(Administration::Unblock(selection));
        w.run_for(S);
        create(&mut w, "ds/ds1-6/1", "A1");
        assert_eq!(rsips(&w).iter().map(|rsip| rsip.get("RM").unwrap()).collect::<Vec<_>>(), ["forced", "restart"]);
    }
}

/// G-RST-08: 521 with N: the other agent is told from now on.
#[test]
fn a_redirected_restart_goes_to_the_other_agent() {
    for layout in Layout::ALL {
        let mut w = starting(layout, |_, _| {});
        w.run_for(3 * S);
        let rsip = rsips(&w)[0].clone();
        let other = SocketAddr::from(([192, 0, 2, 2], 2729));
        w.send_from(SocketAddr::from(AGENT), 0, format!("521 {} moved\r\nN: ca2@[192.0.2.2]:2729\r\n", rsip.id).as_bytes());
        w.run_for(20 * MS);
        w.take_mail();
        w.run_for(4 * S);
        let told = w.mail().iter().filter(|mail| mail.to == other).count();
        assert!(told > 0 && told == w.mail().len(), "{layout:?} {:?}", w.mail());
        let again = rsips(&w)[0].clone();
        assert_ne!(again.id, rsip.id);
        w.send_from(other, 0, format!("200 {} OK\r\n", again.id).as_bytes());
        w.run_for(S);
        assert_eq!(super::audit(&mut w, "ds/ds1-5/1", "N"), "ca2@[192.0.2.2]:2729");
    }
}

/// A stalled lead core: others serve what is told already; nothing piles up.
#[test]
fn a_stalled_lead_core_holds_nobody() {
    for layout in [Layout::Two, Layout::Four, Layout::Split3] {
        let mut w = World::new(Setup::new(layout, 1), |_, _| {});
        w.set_faults(Faults { missteer: 0, ring_capacity: 8, ..Faults::none() });
        let lead = w.plan.lead();
        w.stall(lead, 5 * S);
        let name = (1..=8).map(|n| format!("ds/ds1-{n}/1")).find(|name| w.plan.home(name.as_bytes()) != lead).unwrap();
        for n in 0..200 {
            let text = format!("AUEP {} {name}@tgw.example.net MGCP 1.0\r\nK: {}\r\n", 10_000 + n, 500_000 + n);
            w.send_from(SocketAddr::from(AGENT), 0, text.as_bytes());
            w.run_for(MS);
        }
        let id = create(&mut w, &name, "A1");
        assert_eq!(w.ask("DLCX", &name, &["C: A1", &format!("I: {id}")]).code, Some(250));
        assert!(w.counter(Counter::DroppedRingFull) > 100);
        w.run_for(6 * S);
        w.check_quiet();
    }
}

/// The grace of a shutdown is for calls on every core, also on one that tells of them only after the agent has answered (G-SHD-07).
#[test]
fn a_call_on_another_core_keeps_its_grace() {
    for layout in [Layout::Two, Layout::Four, Layout::Split3] {
        let mut w = World::new(Setup::new(layout, 1), |_, _| ());
        let owner = |w: &World, name: &str| w.plan.owner(w.plan.topology.lookup(name.as_bytes()).unwrap());
        let name = (1..=8).map(|n| format!("ds/ds1-{n}/1")).find(|name| owner(&w, name) != w.plan.lead()).unwrap();
        create(&mut w, &name, "A1");
        w.take_mail();
        w.set_faults(Faults { ring_max: 500 * MS, ..Faults::none() });
        w.administer(Administration::Shutdown(w.now + 5 * S));
        // Its owner is waited for, but not so long.
        w.run_for(260 * MS);
        let graceful = rsips(&w)[0].clone();
        assert_eq!(graceful.get("RM"), Some("graceful"));
        answer(&mut w, &graceful, 200);
        w.run_for(4 * S);
        assert!(rsips(&w).iter().all(|rsip| rsip == &graceful), "{layout:?} {:?}", rsips(&w));
        w.run_for(2 * S);
        // With the DLCX of the lost connection around it.
        assert!(rsips(&w).iter().any(|message| message.get("RM") == Some("forced")), "{layout:?} {:?}", rsips(&w));
    }
}

/// What a RestartInProgress says is true on every core when the agent has it: `restart` means that commands are executed, `forced`
/// that they are refused (G-RSI-04, G-RSI-07), however long envelopes take between the cores.
#[test]
fn what_a_restart_says_is_true_when_it_comes() {
    for layout in [Layout::Two, Layout::Four, Layout::Split3] {
        let mut w = World::new(Setup::new(layout, 1), |_, settings| settings.overload.enter = 10 * S);
        // Commands come to the owner of their endpoint at once; envelopes are slow.
        w.set_faults(Faults { missteer: 0, ring_max: 100 * MS, link_min: MS / 10, link_max: MS / 10, ..Faults::none() });
        let all = w.plan.topology.select_all();
        for (order, method, code) in [
            (Administration::Block(all, BlockHow::Force), "forced", 501),
            (Administration::Unblock(all), "restart", 200),
            (Administration::Block(all, BlockHow::Force), "forced", 501),
        ] {
            w.take_mail();
            w.administer(order);
            while rsips(&w).iter().all(|rsip| rsip.get("RM") != Some(method)) {
                w.run_for(MS / 10);
            }
            let ids: Vec<u32> = (1..=8).map(|n| w.command("CRCX", &format!("ds/ds1-{n}/1"), &["C: A1", "M: recvonly"])).collect();
            for id in ids {
                assert_eq!(w.final_of(id).code, Some(code), "{layout:?} {method}");
            }
        }
        assert_eq!(w.counter(Counter::RestartsUnconfirmed), 0);
    }
}

/// A core that stands still holds a RestartInProgress about its endpoints back for half the vote deadline, once; not one about others.
#[test]
fn a_stalled_core_holds_announcements_back_for_a_bounded_time() {
    for layout in [Layout::Two, Layout::Four, Layout::Split3] {
        let mut w = World::new(Setup::new(layout, 1), |_, settings| settings.overload.enter = 10 * S);
        let owner = |w: &World, n: u32| w.plan.owner(w.plan.topology.lookup(format!("ds/ds1-{n}/1").as_bytes()).unwrap());
        let mut spans: Vec<u32> = (1..=8).collect();
        spans.sort_by_key(|&n| owner(&w, n) == w.plan.lead());
        let stalled = owner(&w, spans[0]);
        let other = (1..=8).find(|&n| owner(&w, n) != stalled).unwrap();
        w.stall(stalled, 4 * S);
        let told_after = |w: &mut World, n: u32| {
            w.take_mail();
            let started = w.now;
            let name = format!("ds/ds1-{n}/*");
            let selection = w.plan.topology.resolve(name.as_bytes(), false).unwrap();
            w.administer(Administration::Block(selection, BlockHow::Force));
            while rsips(w).iter().all(|rsip| !rsip.line.contains(&name)) {
                w.run_for(MS);
            }
            w.now.since(started)
        };
        assert!(told_after(&mut w, other) < 50 * MS, "{layout:?}");
        let held = told_after(&mut w, spans[0]);
        assert!(held > 250 * MS && held < 300 * MS, "{layout:?} {held:?}");
        let next = (1..=8).filter(|&n| owner(&w, n) == stalled).nth(1).unwrap();
        assert!(told_after(&mut w, next) < 50 * MS, "the core is known to stand still");
        assert_eq!(w.counter(Counter::RestartsUnconfirmed), 2);
        // It goes on, and is waited for again.
        w.run_for(5 * S);
        assert_eq!(w.ask("CRCX", &format!("ds/ds1-{}/1", spans[0]), &["C: A1", "M: recvonly"]).code, Some(501));
        let selection = w.plan.topology.resolve(format!("ds/ds1-{next}/*").as_bytes(), false).unwrap();
        w.administer(Administration::Unblock(selection));
        w.run_for(S);
        create(&mut w, &format!("ds/ds1-{next}/1"), "A1");
        assert_eq!(w.counter(Counter::RestartsUnconfirmed), 2);
        w.run_for(S);
        w.check_quiet();
    }
}
