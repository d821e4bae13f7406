//! A gateway with two addresses, and one of them goes away (must hold 4).

use super::agent::Agent;
use super::gateway::{Gateway, SOON, Tuning, eventually};
use super::load::{load_between, report};
use super::network::{in_own_network, ip};
use std::process::Command;

/// Listens on both of its addresses.
fn two(tuning: Tuning) -> Tuning {
    let addresses = tuning.addresses;
    let list = format!("[{:?}, {:?}]", addresses.gateway().to_string(), addresses.gateway_too().to_string());
    tuning.set("gateway.listen", &list).set("limits.history_rate", "5000")
}

/// `tollgate load` to both.
fn load_both(gateway: &Gateway, arguments: &str) -> Command {
    let addresses = gateway.tuning.addresses;
    load_between(&[addresses.gateway(), addresses.gateway_too()], addresses.agent(), arguments)
}

#[test]
fn both_addresses_serve() {
    let gateway = Gateway::start(two(Tuning::new().layout(2, 0, 0)));
    let addresses = gateway.tuning.addresses;
    assert!(gateway.ready.contains(&format!("MGCP on {} {}", addresses.gateway(), addresses.gateway_too())), "{}", gateway.ready);
    let mut agent = Agent::of(&gateway);
    let connection = agent.create("ds/ds3-1/ds1-1/1");
    agent.gateway = addresses.gateway_too();
    // The answer comes from the address that was asked.
    let id = agent.command("AUEP", "ds/ds3-1/ds1-1/1", &["F: I"]);
    let mut datagram = [0; 4096];
    agent.socket.set_read_timeout(Some(SOON)).unwrap();
    let (length, from) = agent.socket.recv_from(&mut datagram).unwrap();
    let text = String::from_utf8_lossy(&datagram[..length]).into_owned();
    assert!(from == addresses.gateway_too() && text.starts_with(&format!("200 {id} ")) && text.contains(&connection), "{from}: {text}");
    // A repeat may come by the other one, and is a repeat.
    let text = Agent::text("CRCX", Agent::id(), "ds/ds3-1/ds1-2/2", &["C: A1", "M: recvonly"]);
    for gateway in [addresses.gateway(), addresses.gateway_too()] {
        agent.socket.send_to(text.as_bytes(), gateway).unwrap();
    }
    eventually("both are answered", SOON, || (gateway.counter("commands_repeated") == 1).then_some(()));
    assert_eq!(gateway.counter("crcx_done"), 2);
    drop(agent);
    report(&load_both(&gateway, "--scenario call --rate 1000 --duration 1").output().unwrap(), &gateway);
}

#[test]
fn every_transaction_ends_when_an_address_is_taken_away() {
    in_own_network("outage::every_transaction_ends_when_an_address_is_taken_away", || {
        let tuning = two(Tuning::new().layout(2, 0, 0));
        // Loopback as a whole is one network; here each address stands alone, so that one can go.
        let addresses = tuning.addresses;
        ip(&["addr", "flush", "dev", "lo"]);
        let address = |ip: std::net::IpAddr| format!("{ip}/32");
        for one in [addresses.gateway(), addresses.gateway_too(), addresses.agent()] {
            ip(&["addr", "add", &address(one.ip()), "dev", "lo"]);
        }
        let gateway = Gateway::start(tuning);
        let child = load_both(&gateway, "--scenario call --rate 1000 --duration 4 --standing 20").spawn().unwrap();
        eventually("calls are made", SOON, || (gateway.counter("crcx_done") > 300).then_some(()));
        // The one that the load prefers.
        ip(&["addr", "del", &address(addresses.gateway().ip()), "dev", "lo"]);
        let done = gateway.counter("crcx_done");
        eventually("calls go on by the other address", SOON, || (gateway.counter("crcx_done") > done + 200).then_some(()));
        let report = report(&child.wait_with_output().unwrap(), &gateway);
        assert!(report["lost"] == 0 && report["failovers"].as_u64().unwrap() > 0, "{report}");
        eventually("no connection is left", SOON, || gateway.rows(&["connections"]).is_empty().then_some(()));
        gateway.assert_sound();
    });
}

/// G-RTX-13: the kernel reports that nobody listens at the first address, and the first repeat of the restart goes to the second one. Without
/// the report, Max1 repeats to the first would take longer than this waits.
#[test]
fn a_closed_port_is_left_for_the_next_address_before_max1() {
    let tuning = Tuning::new();
    let (closed, open) = (tuning.addresses.stranger(), tuning.addresses.agent());
    let list = |one: String, other: String| format!("[{one:?}, {other:?}]");
    let tuning = tuning
        .set("agent.0.addresses", &list(closed.ip().to_string(), open.ip().to_string()))
        .set("agent.0.notify", &list(closed.to_string(), open.to_string()))
        .set("timers.max1", "20")
        .set("timers.max2", "30");
    let mut agent = Agent::at(open, tuning.addresses.gateway());
    agent.answers = true;
    let gateway = Gateway::start(tuning);
    agent.expect_restart("restart", SOON);
    assert!(gateway.counter("unreachable_believed") >= 1);
    gateway.assert_sound();
}
