//! A core that stands still while the others serve (must hold 4; G-SHD-03).

use super::agent::Agent;
use super::gateway::{Gateway, LOOK, SOON, Tuning, Watch, eventually};
use super::load::{load_from, report};
use libc::{SIGINT, SIGTERM};
use std::net::SocketAddr;
use std::time::Duration;

/// The first endpoint of each core, by core.
fn endpoint_of(gateway: &Gateway, core: u64) -> String {
    let rows = gateway.rows(&["endpoints"]);
    let row = rows.iter().find(|row| row["core"] == core).unwrap();
    row["name"].as_str().unwrap().to_owned()
}

/// An agent whose datagrams the kernel hands to this core: it picks one of the sockets of a port by the addresses and ports.
fn agent_at_core(gateway: &Gateway, core: usize) -> Agent {
    let addresses = gateway.tuning.addresses;
    let leads_here = |agent: &mut Agent| {
        let before = gateway.counter_by_core("datagrams_received")[core];
        agent.ask("AUEP", "ds/ds3-1/ds1-1/1", &[]);
        // Statistics of the transport go into the counters a little later.
        (0..3).any(|_| {
            agent.listen(Duration::from_millis(150));
            gateway.counter_by_core("datagrams_received")[core] > before
        })
    };
    for port in 3000..3200 {
        let mut agent = Agent::at((addresses.agent().ip(), port).into(), addresses.gateway());
        // Twice: the first may be what somebody else sent, and is only counted now.
        if leads_here(&mut agent) && leads_here(&mut agent) {
            return agent;
        }
    }
    panic!("no port leads to core {core}");
}

/// A name with `*` whose home is another core than this one: commands for it are taken while that core stands still.
fn wildcard_away_from(gateway: &Gateway, agent: &mut Agent, core: usize) -> &'static str {
    let names = ["*", "ds/*", "ds/ds3-1/*", "ds/*/*", "ds/*/*/*", "ds/ds3-1/*/*"];
    let away = |name: &&'static str| {
        let before = gateway.counter_by_core("commands_new")[core];
        assert_eq!(agent.ask("DLCX", name, &["C: ABCDEF"]).code, Some(250), "{name}");
        gateway.counter_by_core("commands_new")[core] == before
    };
    names.into_iter().find(away).unwrap()
}

/// Whether `show alarms` tells of this core.
fn alarm_shows(gateway: &Gateway, core: u64) -> bool {
    gateway.rows(&["alarms"]).iter().any(|alarm| alarm["name"] == format!("core {core}"))
}

/// Each layout with a core that stops, and one that receives, which may be the same; with steering the agent's datagrams go past the core
/// that stands still, whatever their port. Nothing is repeated: what is not answered is seen.
#[test]
fn the_others_serve_while_a_core_stands_still() {
    for (both, transport, shard, stops, receives, kind) in
        [(2, 0, 0, 1, None, "mio"), (2, 0, 0, 1, Some(0), "auto"), (2, 0, 0, 1, Some(1), "auto"), (0, 1, 3, 2, None, "auto")]
    {
        let tuning = Tuning::new().layout(both, transport, shard).set("limits.history_rate", "5000");
        let tuning = tuning.set("transport.kind", &format!("{kind:?}"));
        let steering = if receives.is_some() { "\"off\"" } else { "\"auto\"" };
        let gateway = Gateway::start(tuning.set("transport.steering", steering));
        let mut agent = Agent::of(&gateway);
        if let Some(core) = receives {
            drop(agent);
            agent = agent_at_core(&gateway, core);
        }
        let cores = gateway.rows(&["cores"]);
        let other = cores
            .iter()
            .map(|core| core["core"].as_str().unwrap().parse().unwrap())
            .find(|&core: &u64| core != stops && cores[core as usize]["role"] != "transport");
        let (dead, live) = (endpoint_of(&gateway, stops), endpoint_of(&gateway, other.unwrap()));
        let all = wildcard_away_from(&gateway, &mut agent, stops as usize);
        let own = format!("{}/*", dead.rsplit_once('/').unwrap().0);
        assert_eq!(agent.ask("RQNT", &own, &["X: 1"]).code, Some(200));
        let timeouts = gateway.counter("vote_timeout");
        let watch = Watch::start();
        gateway.order(&["sim", "stall", &stops.to_string(), "3000"]);
        // The core may have had something else to do first.
        agent.listen(Duration::from_millis(100));
        let waiting = agent.command("CRCX", &dead, &["C: D1", "M: recvonly"]);
        let everywhere = agent.command("DLCX", all, &["C: ABCDEF"]);
        let unseen = agent.command("RQNT", &own, &["X: 2"]);
        for call in 0..50 {
            let id = agent.create(&live);
            assert_eq!(agent.ask("DLCX", &live, &["C: A1", &format!("I: {id}")]).code, Some(250), "{call}");
        }
        // The vote deadline is 500 ms.
        assert_eq!(agent.final_of(everywhere, Duration::from_millis(2500)).code, Some(400));
        assert!(gateway.counter("vote_timeout") > timeouts);
        eventually("the alarm shows", Duration::from_millis(2500), || alarm_shows(&gateway, stops).then_some(()));
        // Its own core's commands over many are refused too, whether they came before or after somebody knew.
        assert_eq!(agent.final_of(unseen, Duration::from_millis(2500)).code, Some(400));
        let seen = agent.command("RQNT", &own, &["X: 3"]);
        assert_eq!(agent.final_of(seen, Duration::from_millis(2500)).code, Some(400));
        assert_eq!(gateway.counter("datagrams_taken_over") > 0, both > 1 && receives != Some(0), "{kind}");
        assert!(watch.elapsed() < Duration::from_secs(3), "all of this while the core stood still");
        let shown = gateway.show(&["endpoints"]);
        assert_eq!(shown["silent_cores"], serde_json::json!([stops]), "what is missing is said");
        // Afterwards: what waited is done, once, or refused because it waited too long; the alarm is over; everything works again.
        let late = agent.final_of(waiting, SOON).code;
        assert!(matches!(late, Some(200 | 409)), "{late:?}");
        // What was refused is executed by no copy that comes late, and refused again.
        agent.mail.clear();
        agent.send(&Agent::text("RQNT", unseen, &own, &["X: 2"]));
        assert_eq!(agent.final_of(unseen, SOON).code, Some(400));
        assert_eq!(agent.ask("AUEP", &dead, &["F: X"]).get("X"), Some("1"));
        eventually("the alarm is over", SOON, || (!alarm_shows(&gateway, stops)).then_some(()));
        assert_eq!(agent.ask("DLCX", "*", &["C: D1"]).code, Some(250));
        assert!(gateway.rows(&["connections"]).is_empty());
        assert!(gateway.log().contains(&format!("core {stops}: silent for")), "{}", gateway.log());
        eventually("the log says that it goes on", SOON, || gateway.log().contains(&format!("core {stops}: goes on")).then_some(()));
        let kept = gateway.rows(&["history", &format!("core {stops}")]);
        assert!(kept.iter().any(|row| row["over"] == false) && kept.iter().any(|row| row["over"] == true), "{kept:?}");
        gateway.assert_sound();
    }
}

/// More than the gateway keeps for the core that stands still: what is beyond that is dropped and counted, and nobody else waits.
#[test]
fn a_flood_for_a_core_that_stands_still_takes_nothing_from_the_others() {
    let gateway = Gateway::start(Tuning::new().layout(0, 1, 3).set("limits.history_rate", "5000"));
    let mut agent = Agent::of(&gateway);
    let (dead, live) = (endpoint_of(&gateway, 2), endpoint_of(&gateway, 1));
    let all = wildcard_away_from(&gateway, &mut agent, 2);
    let flood = Agent::at((gateway.tuning.addresses.agent().ip(), 3000).into(), gateway.tuning.addresses.gateway());
    gateway.order(&["sim", "stall", "2", "5000"]);
    eventually("the alarm shows", SOON, || alarm_shows(&gateway, 2).then_some(()));
    for _ in 0..20 {
        (0..100).for_each(|_| _ = flood.command("AUEP", &dead, &[]));
        let id = agent.create(&live);
        assert_eq!(agent.ask("DLCX", &live, &["C: A1", &format!("I: {id}")]).code, Some(250));
    }
    assert_eq!(agent.ask("RQNT", all, &["X: 1"]).code, Some(400));
    assert!(gateway.counter("dropped_home_behind") > 0);
    assert!(alarm_shows(&gateway, 2), "all of this while the core stood still");
    eventually("the alarm is over", SOON, || (!alarm_shows(&gateway, 2)).then_some(()));
    assert_eq!(agent.ask("AUEP", &dead, &[]).code, Some(200));
    assert_eq!(agent.ask("RQNT", all, &["X: 1"]).code, Some(200));
    gateway.assert_sound();
}

/// The same under load: every transaction ends, and no check fails.
#[test]
fn a_load_outlives_a_core_that_stands_still() {
    let gateway = Gateway::start(Tuning::new().layout(0, 1, 3).set("limits.history_rate", "5000"));
    let from: SocketAddr = gateway.tuning.addresses.agent();
    let load = load_from(&gateway, from, "--scenario call --rate 1000 --duration 3").spawn().unwrap();
    eventually("calls are made", SOON, || (gateway.counter("crcx_done") > 200).then_some(()));
    gateway.order(&["sim", "stall", "2", "1000"]);
    eventually("the alarm shows", SOON, || alarm_shows(&gateway, 2).then_some(()));
    let done = gateway.counter("crcx_done");
    eventually("the others serve", SOON, || (gateway.counter("crcx_done") > done).then_some(()));
    report(&load.wait_with_output().unwrap(), &gateway);
    gateway.assert_sound();
}

/// Told to end while a core stands still, which it does to the end: agents are told for it by the lead core, and nobody waits for it.
#[test]
fn an_end_waits_for_no_core_that_stands_still() {
    let mut gateway = Gateway::start(Tuning::new().layout(2, 0, 0));
    let mut agent = Agent::of(&gateway);
    gateway.order(&["sim", "stall", "1", "600000"]);
    eventually("it stands still", SOON, || alarm_shows(&gateway, 1).then_some(()));
    gateway.signal(SIGTERM);
    let graceful = agent.expect("RSIP", SOON);
    assert_eq!((&*graceful.name, graceful.get("RM")), ("*@tgw.example.net", Some("graceful")));
    agent.mail.retain(|message| message.id != graceful.id);
    let forced = agent.expect("RSIP", SOON);
    assert_eq!((&*forced.name, forced.get("RM")), ("*@tgw.example.net", Some("forced")));
    assert_eq!(gateway.wait(SOON).0.code(), Some(70), "{}", gateway.log());
    let log = gateway.log();
    for part in ["shutdown: core 1 stands still: core 0 told the agents for it", "core 1: does not end: the process ends without it"] {
        assert!(log.contains(part), "{part:?} is not in {log}");
    }
    assert!(!gateway.tuning.socket().exists());
}

/// The lead core itself, or the one that sends for it: the agents cannot be told, which is said, and the end is bounded all the same.
#[test]
fn an_end_that_cannot_be_told_comes_all_the_same() {
    for (both, transport, shard, says) in [
        (2, 0, 0, "shutdown: core 0 does not answer"),
        (0, 1, 1, "shutdown: core 0 stands still: what other cores send through it has not gone out"),
    ] {
        let mut gateway = Gateway::start(Tuning::new().layout(both, transport, shard));
        let _agent = Agent::of(&gateway);
        gateway.order(&["drain"]);
        let drains = || gateway.rows(&["alarms"]).iter().any(|alarm| alarm["name"] == "gateway");
        assert!(drains());
        gateway.order(&["sim", "stall", "0", "600000"]);
        eventually("it stands still", SOON, || alarm_shows(&gateway, 0).then_some(()));
        assert!(drains(), "what the lead core said last is shown");
        gateway.signal(SIGTERM);
        assert_eq!(gateway.wait(SOON).0.code(), Some(70), "{}", gateway.log());
        assert!(gateway.log().contains(says), "{}", gateway.log());
        assert!(gateway.log().contains("core 0: does not end"), "{}", gateway.log());
    }
}

/// A lead core that goes on in time still tells the agents: forced alone when the grace is over by then.
#[test]
fn an_end_is_told_by_a_lead_core_that_goes_on() {
    let mut gateway = Gateway::start(Tuning::new().layout(2, 0, 0));
    let mut agent = Agent::of(&gateway);
    gateway.order(&["sim", "stall", "0", "2000"]);
    eventually("it stands still", SOON, || alarm_shows(&gateway, 0).then_some(()));
    gateway.signal(SIGTERM);
    agent.expect_restart("forced", SOON);
    assert_eq!(gateway.wait(SOON).0.code(), Some(0), "{}", gateway.log());
}

#[test]
fn a_second_signal_ends_at_once_whatever_core_stands_still() {
    let mut gateway = Gateway::start(Tuning::new().layout(2, 0, 0).set("timers.shutdown_grace", "\"600s\""));
    let mut agent = Agent::of(&gateway);
    gateway.order(&["sim", "stall", "1", "600000"]);
    gateway.signal(SIGTERM);
    agent.expect_restart("graceful", SOON);
    assert!(gateway.is_running(), "{}", gateway.log());
    gateway.signal(SIGINT);
    assert_eq!(gateway.wait(SOON).0.code(), Some(128 + SIGINT));
}

/// Longer than stall_exit while the end is under way: the agents are told all the same.
#[test]
fn an_end_is_not_cut_short_by_stall_exit() {
    let tuning = Tuning::new().layout(2, 0, 0).set("limits.stall_exit", "\"1s\"").set("timers.shutdown_grace", "\"2s\"");
    let mut gateway = Gateway::start(tuning);
    let mut agent = Agent::of(&gateway);
    gateway.order(&["sim", "stall", "1", "600000"]);
    gateway.signal(SIGTERM);
    eventually("forced", SOON, || {
        agent.listen(LOOK);
        agent.commands("RSIP").iter().any(|restart| restart.get("RM") == Some("forced")).then_some(())
    });
    assert_eq!(gateway.wait(SOON).0.code(), Some(70), "{}", gateway.log());
    assert!(gateway.log().contains("core 1: silent for"), "{}", gateway.log());
}

#[test]
fn a_core_that_stands_still_for_too_long_ends_the_process() {
    let mut gateway = Gateway::start(Tuning::new().layout(2, 0, 0).set("limits.stall_exit", "\"1s\""));
    gateway.order(&["sim", "stall", "1", "600000"]);
    let (status, _) = gateway.wait(SOON);
    assert_eq!(status.code(), Some(70), "{}", gateway.log());
    assert!(gateway.log().contains("the process ends"), "{}", gateway.log());
    assert!(!gateway.tuning.socket().exists());
}
