//! What a repeat is (must hold 3; docs/decisions/duplicates.md).

use super::agent::{Agent, Message};
use super::gateway::{Gateway, Kept, SOON, Tuning, eventually};
use super::load::{load, load_from, report};
use std::collections::HashSet;
use std::time::Duration;

/// The call agent is killed in mid-load; the next one, from another port and with ids of its own, is served at once.
#[test]
fn the_agent_after_a_killed_one_is_served_at_once() {
    let gateway = Gateway::start(Tuning::new().layout(2, 0, 0).set("limits.history_rate", "5000"));
    let mut first = Kept(load(&gateway, "--scenario call --rate 2000 --duration 60 --standing 50").spawn().unwrap());
    eventually("it has calls up", SOON, || (gateway.counter("crcx_done") > 500).then_some(()));
    assert!(first.0.try_wait().unwrap().is_none());
    drop(first);
    assert!(gateway.rows(&["connections"]).len() >= 50, "its calls are up still");
    let addresses = gateway.tuning.addresses;
    let mut agent = Agent::at((addresses.agent().ip(), 2828).into(), addresses.gateway());
    let audit = agent.command("AUEP", "ds/ds3-1/ds1-9/9", &["F: I"]);
    assert_eq!(agent.final_of(audit, Duration::from_secs(1)).code, Some(200));
    let from = (addresses.agent().ip(), 2929).into();
    let second = load_from(&gateway, from, "--scenario call --rate 1000 --duration 1 --standing 10").output().unwrap();
    report(&second, &gateway);
    eventually("nothing is left of either", SOON, || gateway.rows(&["connections"]).is_empty().then_some(()));
    gateway.assert_sound();
}

/// An id used again with other content: by default the stored response, for an agent that restarts its ids a command.
#[test]
fn a_reused_id_is_a_repeat_or_a_command() {
    for (rule, executes) in [("\"id-and-name\"", false), ("\"same-content\"", true)] {
        let gateway = Gateway::start(Tuning::new().layout(2, 0, 0).set("agent.0.duplicates", rule));
        let mut agent = Agent::of(&gateway);
        let name = "ds/ds3-1/ds1-11/3";
        let id = Agent::id();
        let send = |agent: &mut Agent, call: &str| {
            agent.mail.clear();
            agent.send(&Agent::text("CRCX", id, name, &[call, "M: recvonly"]));
            agent.final_of(id, SOON)
        };
        let first = send(&mut agent, "C: A1");
        assert_eq!(first.code, Some(200));
        // The same again, byte for byte: the stored response in both cases.
        assert_eq!(send(&mut agent, "C: A1"), first);
        let second = send(&mut agent, "C: A2");
        assert_eq!((second == first, second.get("I") != first.get("I")), (!executes, executes), "{rule}: {second:?}");
        assert_eq!(gateway.rows(&["connections"]).len(), if executes { 2 } else { 1 });
        assert_eq!(send(&mut agent, "C: A2"), second, "a repeat of the second one is a repeat");
        assert_eq!(gateway.counter("crcx_done"), if executes { 2 } else { 1 });
        // Another endpoint with the same id is another command with either rule.
        agent.mail.clear();
        agent.send(&Agent::text("CRCX", id, "ds/ds3-1/ds1-12/3", &["C: A3", "M: recvonly"]));
        let other = agent.final_of(id, SOON);
        assert_eq!(other.code, Some(200));
        assert_eq!(gateway.counter("crcx_done"), if executes { 3 } else { 2 });
    }
}

/// G-RTX-16: the share of datagrams that had to be sent again is shown, once there were enough to tell.
#[test]
fn loss_towards_an_agent_is_shown() {
    let tuning = Tuning::new().set("span.0.kind", "\"t1\"").set("span.0.unit", "\"1-5\"").set("agent.0.rsip_form", "\"each\"");
    let agent = Agent::at(tuning.addresses.agent(), tuning.addresses.gateway());
    agent.socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let gateway = Gateway::start(tuning);
    let mut seen = HashSet::new();
    let mut datagram = [0; 4096];
    // The first copy of every third restart gets lost.
    eventually("loss is shown", SOON, || {
        while let Ok((length, from)) = agent.socket.recv_from(&mut datagram) {
            for Message { id, .. } in Message::all(&datagram[..length]) {
                if !seen.insert(id) || id % 3 > 0 {
                    agent.socket.send_to(format!("200 {id} OK\r\n").as_bytes(), from).unwrap();
                }
            }
        }
        let loss = gateway.rows(&["agents"])[0]["loss_ppm"].as_u64();
        loss.filter(|loss| (100_000..900_000).contains(loss))
    });
    gateway.assert_sound();
}
