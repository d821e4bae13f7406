//! A gateway with two addresses, and one of them goes away (must hold 4).

use super::agent::Agent;
use super::gateway::{Gateway, Kept, SOON, Tuning, eventually, pause};
use super::load::{load, report};
use super::network::{in_own_network, ip};
use std::time::Duration;

/// Listens on both of its addresses.
fn two(tuning: Tuning) -> Tuning {
    let addresses = tuning.addresses;
    let list = format!("[{:?}, {:?}]", addresses.gateway().to_string(), addresses.gateway_too().to_string());
    tuning.set("gateway.listen", &list).set("limits.history_rate", "5000")
}

fn targets(gateway: &Gateway) -> String {
    let addresses = gateway.tuning.addresses;
    format!("--target {},{}", addresses.gateway(), addresses.gateway_too())
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
    let arguments = format!("--scenario call --rate 1000 --duration 1 {}", targets(&gateway));
    report(&load(&gateway, &arguments).output().unwrap(), &gateway);
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
        let arguments = format!("--scenario call --rate 1000 --duration 4 --standing 20 {}", targets(&gateway));
        let child = load(&gateway, &arguments).spawn().unwrap();
        let mut child = Kept(child);
        eventually("calls are made", SOON, || (gateway.counter("crcx_done") > 300).then_some(()));
        // The one that the load prefers.
        ip(&["addr", "del", &address(addresses.gateway().ip()), "dev", "lo"]);
        let done = gateway.counter("crcx_done");
        eventually("calls go on by the other address", SOON * 2, || (gateway.counter("crcx_done") > done + 200).then_some(()));
        let status = eventually("the load ends", SOON * 6, || child.0.try_wait().unwrap());
        let read = |pipe: Option<&mut dyn std::io::Read>| {
            let mut text = String::new();
            pipe.unwrap().read_to_string(&mut text).unwrap();
            text
        };
        let text = read(child.0.stdout.as_mut().map(|pipe| pipe as &mut dyn std::io::Read));
        assert!(status.success(), "{text}\n{}", gateway.log());
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(report["lost"] == 0 && report["failovers"].as_u64().unwrap() > 0, "{report}");
        eventually("no connection is left", SOON, || gateway.rows(&["connections"]).is_empty().then_some(()));
        pause(Duration::from_millis(100));
        gateway.assert_sound();
    });
}
