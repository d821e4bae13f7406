//! Steering: the kernel puts each datagram into the socket of the core it is for (issue 3, must hold 3; G-SHD-01, G-SHD-02).

use super::agent::Agent;
use super::gateway::{Gateway, Tuning};

/// Calls on two channels of every T1, audits with names of every kind, and responses of the agent: all from one address and port.
fn dialogue(gateway: &Gateway) -> u64 {
    let mut agent = Agent::of(gateway);
    for span in 1..=28 {
        for name in [format!("ds/ds3-1/ds1-{span}/1"), format!("DS/DS3-1/DS1-{span}/24")] {
            let id = agent.create(&name);
            assert_eq!(agent.ask("AUEP", &name, &["F: I"]).get("I"), Some(&*id), "{name}");
            assert_eq!(agent.ask("DLCX", &name, &["C: A1", &format!("I: {id}")]).code, Some(250), "{name}");
        }
        assert_eq!(agent.ask("AUEP", &format!("ds/ds3-1/ds1-{span}/*"), &[]).code, Some(200));
        assert_eq!(agent.ask("CRCX", &format!("ds/ds3-1/ds1-{span}/$"), &["C: B2", "M: recvonly"]).code, Some(200));
    }
    assert_eq!(agent.ask("DLCX", "*", &["C: B2"]).code, Some(250));
    assert_eq!(agent.ask("AUEP", "aaln/1", &[]).code, Some(500));
    // The agent's responses find the core that asked.
    gateway.order(&["block", "ds/ds3-1/ds1-3/*", "--force"]);
    agent.expect("RSIP", super::gateway::SOON);
    gateway.assert_sound();
    gateway.counter("commands_new")
}

#[test]
fn one_port_of_an_agent_reaches_each_core_without_a_hop() {
    let gateway = Gateway::start(Tuning::new().layout(4, 0, 0));
    assert!(gateway.ready.contains("steered by name"), "{}", gateway.ready);
    let commands = dialogue(&gateway);
    let forwarded = gateway.counter("messages_forwarded");
    assert!(forwarded * 100 < commands, "{forwarded} messages forwarded, {commands} commands");
    let by_core = gateway.counter_by_core("commands_new");
    assert!(by_core.iter().all(|&count| count * 8 > commands), "{by_core:?}");
    assert!(gateway.rows(&["cores"]).iter().all(|core| core["steering"] == "by name"));
}

#[test]
fn without_steering_all_is_handled_right_by_hops() {
    let gateway = Gateway::start(Tuning::new().layout(4, 0, 0).set("transport.steering", "\"off\""));
    assert!(gateway.ready.contains("not steered"), "{}", gateway.ready);
    let commands = dialogue(&gateway);
    let forwarded = gateway.counter("messages_forwarded");
    assert!(forwarded * 2 > commands, "{forwarded} messages forwarded, {commands} commands: one socket gets them all");
    assert!(gateway.rows(&["cores"]).iter().all(|core| core["steering"] == "by hash"));
}

/// The transport core that serves a shard receives for it.
#[test]
fn several_transport_cores_share_one_port_of_an_agent() {
    let gateway = Gateway::start(Tuning::new().layout(0, 2, 2));
    assert!(gateway.ready.contains("steered by name"), "{}", gateway.ready);
    let commands = dialogue(&gateway);
    let by_core = gateway.counter_by_core("messages_forwarded");
    assert!(by_core[..2].iter().all(|&count| count * 4 > commands), "{by_core:?} of {commands}");
    assert_eq!(by_core[2..], [0, 0], "shards get their own only");
    let words: Vec<_> = gateway.rows(&["cores"]).iter().map(|core| core["steering"].as_str().unwrap().to_owned()).collect();
    assert_eq!(words, ["by name", "by name", "-", "-"]);
}
