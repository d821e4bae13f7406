//! Commands over all endpoints of a name with `*`: all cores or none (G-TXN-02, G-SHD-03).

use super::{MS, S, audit, create, each_layout, world};
use std::time::Duration;
use tollgate::proto::base::{CoreId, Counter};
use tollgate::proto::core::Administration;
use tollgate::proto::package::ChannelKind;
use tollgate::proto::restart::BlockHow;
use tollgate::sim::{Faults, Layout, Setup, World};

const SAMPLE: [&str; 5] = ["ds/ds1-1/1", "ds/ds1-2/24", "ds/ds1-4/7", "ds/ds1-7/1", "ds/ds1-8/24"];

/// Takes one endpoint out of service, or back, and waits until the agent knows.
fn set_service(w: &mut World, name: &str, in_service: bool) {
    let endpoint = w.plan.topology.lookup(name.as_bytes()).unwrap();
    let selection = w.plan.topology.selection_of(endpoint).unwrap();
    w.administer(if in_service { Administration::Unblock(selection) } else { Administration::Block(selection, BlockHow::Force) });
    w.run_for(S);
    w.take_mail();
}

#[test]
fn a_command_over_all_reaches_all() {
    each_layout(|w| {
        for name in SAMPLE {
            create(w, name, "A1");
            create(w, name, "B1");
        }
        assert_eq!(w.ask("RQNT", "*", &["X: 77", "D: (xx|[0-9]x)"]).code, Some(200));
        assert_eq!(w.ask("EPCF", "ds/ds1-7/*", &["B: e:A"]).code, Some(200));
        for name in SAMPLE {
            assert_eq!(audit(w, name, "X"), "77");
            assert_eq!(audit(w, name, "D"), "(xx|[0-9]x)");
            assert_eq!(audit(w, name, "B"), if name.contains("ds1-7") { "e:A" } else { "e:mu" });
        }
        let deleted = w.ask("DLCX", "*", &["C: A1"]);
        assert_eq!((deleted.code, deleted.get("P")), (Some(250), None));
        assert_eq!(w.connections().len(), SAMPLE.len());
        assert_eq!(w.ask("DLCX", "ds/ds1-4/*", &[]).code, Some(250));
        assert_eq!(w.connections().len(), SAMPLE.len() - 1);
        assert_eq!(w.ask("DLCX", "*", &["C: A1", "X: 5"]).code, Some(510));
        assert_eq!(w.ask("DLCX", "*", &[]).code, Some(250));
        assert_eq!(w.connections().len(), 0);
    });
}

/// One endpoint of one core cannot: nothing is changed anywhere. For DLCX an endpoint out of service has no connections (O-4).
#[test]
fn one_core_that_refuses_leaves_all_as_they_were() {
    each_layout(|w| {
        for out in ["ds/ds1-1/3", "ds/ds1-6/20", "ds/ds1-8/23"] {
            assert_eq!(w.ask("RQNT", "*", &["X: 11"]).code, Some(200));
            set_service(w, out, false);
            for (verb, parameter) in [("RQNT", "X: 22"), ("EPCF", "B: e:A")] {
                assert_eq!(w.ask(verb, "*", &[parameter]).code, Some(501));
            }
            create(w, "ds/ds1-3/3", "A1");
            assert_eq!(w.ask("DLCX", "*", &[]).code, Some(250));
            assert_eq!(w.connections().len(), 0);
            for name in SAMPLE {
                assert_eq!((audit(w, name, "X"), audit(w, name, "B")), ("11".into(), "e:mu".into()));
            }
            set_service(w, out, true);
        }
    });
}

/// A syntax error or an unsupported package is found before anything changes, in the right words.
#[test]
fn what_is_wrong_everywhere_is_refused_with_its_code() {
    each_layout(|w| {
        assert_eq!(w.ask("RQNT", "*", &["X: 1", "R: L/hd(N)"]).code, Some(518));
        assert_eq!(w.ask("RQNT", "*", &["X: 1", "N: nobody@elsewhere.example.com"]).code, Some(539));
        assert_eq!(w.ask("RQNT", "ds/ds1-99/*", &["X: 1"]).code, Some(500));
        for name in SAMPLE {
            assert_eq!(audit(w, name, "X"), "0");
        }
    });
}

/// Several at once are done one after another, and all of them end.
#[test]
fn commands_that_meet_wait_for_each_other() {
    each_layout(|w| {
        let ids: Vec<_> = (1..=12)
            .map(|n| {
                let x = format!("X: {n}");
                let name = ["*", "ds/*/*", "ds/ds1-3/*"][n % 3];
                match n % 4 {
                    0 => w.command("EPCF", name, &["B: e:A"]),
                    _ => w.command("RQNT", name, &[&x]),
                }
            })
            .collect();
        for id in ids {
            assert_eq!(w.final_of(id).code, Some(200));
        }
        // The last one for all, so that each has the request of one and the same command.
        let left = SAMPLE.map(|name| audit(w, name, "X"));
        assert!(left.iter().all(|x| *x == left[0]), "{left:?}");
    });
}

/// More than can wait: some are refused, none hangs.
#[test]
fn too_many_at_once_are_refused() {
    each_layout(|w| {
        let ids: Vec<_> = (0..320).map(|_| w.command("EPCF", "*", &["B: e:A"])).collect();
        let codes: Vec<_> = ids.into_iter().map(|id| w.final_of(id).code).collect();
        assert!(codes.iter().all(|code| matches!(code, Some(200 | 409))), "{codes:?}");
        assert!(codes.iter().filter(|code| **code == Some(200)).count() >= 16, "{codes:?}");
    });
}

/// A queue that takes longer than a core may be silent for is worked off all the same: nobody is silent. More than the gateway keeps
/// waiting are refused at once, with the code that says so.
#[test]
fn a_long_queue_of_commands_is_worked_off() {
    for layout in Layout::ALL {
        let mut w = World::new(Setup::new(layout, 1), |plan, settings| {
            // Little is done per turn, so that each command takes milliseconds.
            plan.limits.slice = 1;
            settings.timers.vote = 200 * MS;
        });
        let started = w.now;
        let ids: Vec<_> = (0..60).map(|n| w.command("RQNT", "*", &[&format!("X: {n}"), "R: D/[0-9#*](N),T/co1(N)"])).collect();
        let codes: Vec<_> = ids.into_iter().map(|id| w.final_of(id).code).collect();
        assert!(codes.iter().all(|&code| code == Some(200)), "{layout:?}: {codes:?}");
        assert!(w.now.since(started) > 300 * MS, "{layout:?}: it took {:?}", w.now.since(started));
        assert_eq!(w.counter(Counter::VoteTimeout), 0);
        w.run_for(3 * S);
        w.check_quiet();
    }
}

/// A core that is silent: 400 when the vote is overdue, nothing changed, others go on; afterwards all is as before.
#[test]
fn a_stalled_core_makes_it_fail_cleanly() {
    for layout in [Layout::Two, Layout::Four, Layout::Split3] {
        for silent in world(layout).plan.owners.clone() {
            let mut w = world(layout);
            // A wildcard name whose home is another core than the silent one.
            let name = ["*", "ds/*/*", "ds/ds1-*/*", "ds/ds1-1/*", "ds/ds1-2/*", "ds/ds1-3/*", "ds/ds1-4/*"]
                .into_iter()
                .find(|name| w.plan.topology.resolve(name.as_bytes(), false).is_ok() && w.plan.home(name.as_bytes()) != silent)
                .unwrap();
            w.set_faults(Faults { missteer: 0, ..Faults::none() });
            w.stall(silent, 3 * S);
            let started = w.now;
            let id = w.command("RQNT", name, &["X: 5"]);
            assert_eq!(w.final_of(id).code, Some(400), "{layout:?} {silent:?}");
            let took = w.now.since(started);
            assert!(took > 400 * MS && took < 700 * MS, "{took:?}");
            assert_eq!(w.counter(Counter::VoteTimeout), 1);
            // The others serve.
            let served = (1..=8).map(|n| format!("ds/ds1-{n}/1")).filter(|name| w.plan.home(name.as_bytes()) != silent).collect::<Vec<_>>();
            for name in served {
                assert_eq!(audit(&mut w, &name, "X"), "0");
            }
            w.run_for(4 * S);
            w.check_quiet();
            for name in SAMPLE {
                assert_eq!(audit(&mut w, name, "X"), "0");
            }
            assert_eq!(w.ask("RQNT", name, &["X: 6"]).code, Some(200));
            w.run_for(S);
            w.check_quiet();
        }
    }
}

/// A command over many whose home stands still gets 400 when that is known, also when it was sent before anybody knew, and is executed
/// nowhere, whatever copies of it lie where (G-TRX-03, G-SHD-01, G-SHD-03).
#[test]
fn a_command_whose_home_stands_still_is_refused_and_never_executed() {
    for (layout, missteer) in [Layout::Two, Layout::Four, Layout::Split3].into_iter().flat_map(|layout| [(layout, 0), (layout, 1_000_000)])
    {
        let mut w = world(layout);
        w.set_faults(Faults { missteer, ..Faults::none() });
        let name = away(&w, layout.receivers()[0]);
        w.stall(w.plan.home(name.as_bytes()), 5 * S);
        // Sent once before anybody knows, where each core may receive it; repeated; sent when it is known.
        send(&mut w, (900_001, name, "X: 5"), 1);
        send(&mut w, (900_002, name, "X: 6"), 40);
        w.run_for(S);
        send(&mut w, (900_002, name, "X: 6"), 20);
        send(&mut w, (900_003, name, "X: 7"), 20);
        w.run_for(10 * MS);
        for id in 900_001..=900_003 {
            assert!(finals(&w, id).contains(&400), "{layout:?}: {id}");
        }
        w.run_for(5 * S);
        for (id, line) in [(900_001, "X: 5"), (900_002, "X: 6"), (900_003, "X: 7")] {
            send(&mut w, (id, name, line), 1);
            w.run_for(S);
            assert!(finals(&w, id).iter().all(|&code| code == 400), "{layout:?}: {id}");
        }
        assert!(SAMPLE.into_iter().all(|name| audit(&mut w, name, "X") == "0"), "{layout:?}");
        assert_eq!(w.ask("RQNT", name, &["X: 8"]).code, Some(200));
        w.check_quiet();
    }
}

/// What its home has executed, or begun, is not told otherwise while that stands still: repeats get the stored response when it goes on.
#[test]
fn a_command_whose_home_stops_after_it_began_is_not_refused() {
    for layout in [Layout::Two, Layout::Four, Layout::Split3] {
        let mut w = world(layout);
        let name = away(&w, layout.receivers()[0]);
        let home = w.plan.home(name.as_bytes());
        // The answer is lost.
        w.set_faults(Faults { missteer: 0, ..Faults::none() });
        send(&mut w, (900_001, name, "X: 5"), 1);
        w.run_for(100 * MS);
        assert_eq!(finals(&w, 900_001), [200], "{layout:?}");
        w.stall(home, 5 * S);
        w.run_for(S);
        send(&mut w, (900_001, name, "X: 5"), 3);
        send(&mut w, (900_002, name, "X: 6"), 3);
        w.run_for(S);
        assert_eq!((finals(&w, 900_001), finals(&w, 900_002)), (vec![200], vec![400, 400, 400]), "{layout:?}");
        w.run_for(4 * S);
        assert_eq!(finals(&w, 900_001), [200; 4], "{layout:?}");
        w.check_quiet();
    }
}

/// A name over many endpoints whose home is another core than this one.
fn away(w: &World, core: CoreId) -> &'static str {
    let names = ["*", "ds/*/*", "ds/ds1-1/*", "ds/ds1-2/*", "ds/ds1-3/*", "ds/ds1-4/*"];
    names.into_iter().find(|name| w.plan.home(name.as_bytes()) != core).unwrap()
}

fn send(w: &mut World, (id, name, line): (u32, &str, &str), times: usize) {
    let text = text(id, name, line);
    (0..times).for_each(|_| w.send_from(AGENT.into(), 0, &text));
}

/// The codes of the finals to a command so far.
fn finals(w: &World, id: u32) -> Vec<u16> {
    w.replies_to(id).iter().filter_map(|reply| reply.code.filter(|&code| code > 199)).collect()
}

const AGENT: ([u8; 4], u16) = ([192, 0, 2, 1], 2727);

fn text(id: u32, name: &str, line: &str) -> Vec<u8> {
    format!("RQNT {id} {name}@tgw.example.net MGCP 1.0\r\n{line}\r\n").into_bytes()
}

/// What a commit will need is kept from the vote on: entities and room for digit maps may be used up to the last, and settings may
/// change in between.
#[test]
fn a_commit_never_lacks_room() {
    for layout in Layout::ALL {
        let mut w = World::new(Setup::new(layout, 1), |plan, _| {
            plan.limits.entities = 1;
            // For one core exactly: a map for each endpoint, the text of the entity.
            plan.limits.blob_blocks = 192 + 1;
            plan.limits.slice = 5;
        });
        let (mut expected, mut done) = (["", "ca1@[192.0.2.1]:2727"], 0);
        for (round, map) in ["D: (1x)", "D: (2xx)", "D: (3)", "D: (4xxxxx)", "D: (5|6)", "D: (6x)"].into_iter().enumerate() {
            let id = w.command("RQNT", "*", &["X: 9", map, "N: ca2@ca2.example.net:2728"]);
            w.run_for(Duration::from_micros(550 + 800 * round as u64));
            w.reload(|settings| settings.agents[1].domains = vec!["renamed.example.net".into()]);
            // A core that has not read it yet when the settings change refuses it, for all of them.
            match w.final_of(id).code {
                Some(200) => (expected, done) = ([&map[3..], "ca2@ca2.example.net:2728"], done + 1),
                code => assert_eq!(code, Some(539), "{layout:?}"),
            }
            w.reload(|settings| settings.agents[1].domains = vec!["ca2.example.net".into()]);
            for name in SAMPLE {
                assert_eq!([audit(&mut w, name, "D"), audit(&mut w, name, "N")], expected, "{layout:?} {round}");
            }
        }
        assert!(done > 1, "{layout:?}");
        assert_eq!(w.ask("RQNT", "*", &["X: 9", "N: ca1@ca1.example.net"]).code, Some(403), "the only entity is in use");
        assert_eq!(w.ask("RQNT", "ds/ds1-5/5", &["X: 9", "N: ca2@ca2.example.net:2728"]).code, Some(200), "it is this one");
    }
}

/// A request over channels of several kinds is judged on each of them: a digit map with the letter of a package that only some have is
/// refused for all, and one that all can follow is kept by all (G-DMP-02, G-TXN-02).
#[test]
fn a_digit_map_is_judged_on_every_kind_of_channel() {
    for layout in Layout::ALL {
        let kinds = [ChannelKind::Clear, ChannelKind::CasMf, ChannelKind::PbxFxs, ChannelKind::Clear];
        let mut w = World::new(Setup::new(layout, 1), |plan, _| {
            plan.spans.iter_mut().zip(kinds.iter().cycle()).for_each(|(span, &kind)| span.signalling.kind = kind);
        });
        let long = format!("D: ({}|3xxP)", vec!["1[2-9]xxxxxxx"; 100].join("|"));
        assert_eq!(w.ask("RQNT", "*", &["X: 5", &long]).code, Some(537), "{layout:?}");
        assert_eq!(w.ask("RQNT", "ds/ds1-2/*", &["X: 5", &long]).code, Some(537), "{layout:?}");
        for name in SAMPLE {
            assert_eq!(audit(&mut w, name, "D"), "", "{layout:?}");
        }
        assert_eq!(w.ask("RQNT", "ds/ds1-4/*", &["X: 5", &long]).code, Some(200), "{layout:?}");
        let plain = format!("D: ({})", vec!["1[2-9]xxxxxxx"; 100].join("|"));
        assert_eq!(w.ask("RQNT", "*", &["X: 5", &plain]).code, Some(200), "{layout:?}");
        for name in SAMPLE {
            assert_eq!(audit(&mut w, name, "D"), plain[3..], "{layout:?}");
        }
        w.run_for(2 * S);
        w.check_quiet();
    }
}

/// G-AUE-01, G-AUE-02: the names of a span fit, those of the gateway do not.
#[test]
fn an_audit_of_many_lists_their_names() {
    each_layout(|w| {
        let names = w.ask("AUEP", "ds/ds1-6/*", &[]);
        assert_eq!((names.code, names.values("Z").len()), (Some(200), 24));
        assert_eq!(names.values("Z")[23], "ds/ds1-6/24@tgw.example.net");
        assert_eq!(w.ask("AUEP", "*", &[]).code, Some(533));
    });
}
