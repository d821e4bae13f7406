//! Which of the addresses a name server gives an agent are of use.
//!
//! Whoever answers for a name decides who may command the gateway, so an answer is believed only as far as it can be true: an address
//! nobody can have, one that cannot be reached from where the gateway listens, its own, or one that the file gives to another agent is
//! left out, and what was known before stays.

use crate::config::{self, Agent, Config, Sources};
use std::net::{IpAddr, SocketAddr};

/// Why `agent` cannot be at `address`; `None` when it can.
pub fn unfit(config: &Config, agent: &Agent, address: SocketAddr) -> Option<&'static str> {
    let ip = address.ip();
    let listen = &config.gateway.listen;
    let elsewhere = |other: &&Agent| other.name != agent.name && matches!(&other.addresses, Sources::Only(list) if list.contains(&ip));
    if ip.is_unspecified() {
        return Some("the wildcard");
    }
    if config::unfit_address(ip).is_some() || is_reserved(ip) {
        return Some("no address of a machine");
    }
    if !listen.iter().any(|own| own.is_ipv4() == ip.is_ipv4()) {
        return Some("of a family the gateway does not listen on");
    }
    if ip.is_loopback() && !listen.iter().any(|own| own.ip().is_loopback()) {
        return Some("on loopback, where the gateway does not listen");
    }
    if listen.contains(&address) {
        return Some("the gateway's own");
    }
    config.agents.iter().find(elsewhere).map(|_| "another agent's by the tuning file")
}

/// Addresses that are never a machine's, or not without more than the address.
fn is_reserved(ip: IpAddr) -> bool {
    match ip {
        // RFC 1122 3.2.1.3: "this network"; RFC 1112 4: class E.
        IpAddr::V4(v4) => v4.octets()[0] == 0 || v4.octets()[0] >= 240,
        // Link-local: nothing says on which link.
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_believed_as_far_as_it_can_be_true() {
        let text = |listen: &str| {
            format!(
                "[gateway]\nlisten = [{listen}]\n[cards.sim]\nallow_network = true\n[[span]]\nkind = \"t1\"\nunit = 1\n\
                 [[agent]]\nname = \"a\"\naddresses = []\nnotify = []\nhosts = [\"a.net\"]\n\
                 [[agent]]\nname = \"b\"\naddresses = [\"192.0.2.9\"]\nnotify = []\nhosts = [\"b.net\"]\n"
            )
        };
        let check = |listen: &str, address: &str| {
            let config = Config::parse(&text(listen), "f").unwrap();
            unfit(&config, &config.agents[0], address.parse().unwrap())
        };
        let both = "\"192.0.2.1\", \"[2001:db8::1]\"";
        for good in ["192.0.2.2:2727", "192.0.2.1:2727", "10.0.0.1:2727", "[2001:db8::2]:2727", "239.255.255.255:1"] {
            assert_eq!(check(both, good).is_none(), !good.starts_with("239"), "{good}");
        }
        for bad in [
            "0.0.0.0:1",
            "0.1.2.3:1",
            "224.0.0.1:1",
            "240.0.0.1:1",
            "255.255.255.255:1",
            "[::]:1",
            "[ff02::1]:1",
            "[fe80::1]:1",
            "[::ffff:192.0.2.2]:1",
            "127.0.0.1:1",
            "[::1]:1",
            "192.0.2.1:2427",
            "192.0.2.9:2727",
        ] {
            assert!(check(both, bad).is_some(), "{bad}");
        }
        assert!(check("\"192.0.2.1\"", "[2001:db8::2]:2727").is_some(), "nothing to send from");
        assert!(check("\"127.0.0.1\"", "127.0.0.2:2727").is_none());
    }
}
