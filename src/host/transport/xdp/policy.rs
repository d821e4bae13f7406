//! What must see our traffic before we do: IPsec policies and packet filters. AF_XDP takes datagrams before either looks at them.
//!
//! An IPsec policy that covers a listen address means that clear text must not get through: always a refusal. Packet filters cannot
//! be asked whether they would drop a datagram without doing their work over again; any that has rules where our traffic passes may, and the operator must
//! say that bypassing them is meant. Also looked at while running, because both can come later.

use std::net::{IpAddr, SocketAddr};

use super::netlink::{Message, Netlink, attribute, text};

/// The first IPsec policy that covers a listen address, in words; `Ok(None)` when there is none.
///
/// # Errors
/// When the kernel has IPsec and does not answer.
pub fn ipsec(listen: &[SocketAddr]) -> Result<Option<String>, String> {
    const XFRM_MSG_GETPOLICY: u16 = 0x15;
    const XFRM_MSG_GETDEFAULT: u16 = 0x28;
    let mut netlink = match Netlink::new(libc::NETLINK_XFRM) {
        Ok(netlink) => netlink,
        // A kernel without IPsec.
        Err(error) if error.raw_os_error() == Some(libc::EPROTONOSUPPORT) => return Ok(None),
        Err(error) => return Err(format!("the kernel does not tell its IPsec policies: {error}")),
    };
    // Older kernels know no default policy.
    if let Ok(Some((_, message))) = netlink.ask(XFRM_MSG_GETDEFAULT, &[0; 4])
        && let Some(direction) = blocked_by_default(&message)
    {
        return Ok(Some(format!("the IPsec default policy blocks {direction}")));
    }
    let policies =
        netlink.dump(XFRM_MSG_GETPOLICY, &[]).map_err(|error| format!("the kernel does not tell its IPsec policies: {error}"))?;
    Ok(policies.iter().find_map(|(_, policy)| covers(policy, listen)))
}

/// `struct xfrm_userpolicy_default`: in, fwd, out.
fn blocked_by_default(message: &[u8]) -> Option<&'static str> {
    const BLOCK: u8 = 1;
    match (message.first(), message.get(2)) {
        (Some(&BLOCK), _) => Some("what comes in"),
        (_, Some(&BLOCK)) => Some("what goes out"),
        _ => None,
    }
}

/// Whether a policy (`struct xfrm_userpolicy_info` and attributes) covers one of our addresses, and in which words to say it.
fn covers(policy: &[u8], listen: &[SocketAddr]) -> Option<String> {
    const SIZE: usize = 168;
    const XFRMA_TMPL: u16 = 5;
    const DIRECTION: usize = 160;
    const ACTION: usize = 161;
    let direction = *policy.get(DIRECTION)?;
    // Ours is the destination of what comes in and the source of what goes out; the rest is forwarded, or policies of other sockets.
    let (ours, port_at) = match direction {
        0 => (0, 32),
        1 => (16, 36),
        _ => return None,
    };
    // Let through as it is: nothing to protect.
    if policy.get(ACTION) == Some(&0) && attribute(policy.get(SIZE..)?, XFRMA_TMPL).is_none() {
        return None;
    }
    let number = |at: usize| policy.get(at..).and_then(|bytes| bytes.first_chunk().copied()).map(u16::from_be_bytes);
    let family = u16::from_ne_bytes(*policy.get(40..)?.first_chunk()?);
    let prefix = *policy.get(42 + usize::from(direction == 1))?;
    let protocol = *policy.get(44)?;
    let (port, mask) = (number(port_at)?, number(port_at + 2)?);
    let address: &[u8; 16] = policy.get(ours..)?.first_chunk()?;
    listen.iter().find_map(|own| {
        let same_family = family == 0 || i32::from(family) == if own.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let hit = same_family
            && (protocol == 0 || protocol == libc::IPPROTO_UDP as u8)
            && own.port() & mask == port & mask
            && within(own.ip(), address, prefix);
        let way = if direction == 0 { "what comes in to" } else { "what goes out from" };
        hit.then(|| format!("an IPsec policy covers {way} {own} (ip xfrm policy)"))
    })
}

/// Whether the first `prefix` bits of an address are those of `network`.
fn within(address: IpAddr, network: &[u8; 16], prefix: u8) -> bool {
    let octets = super::netlink::octets(address);
    let whole = usize::from(prefix / 8).min(octets.len());
    let rest = prefix % 8;
    octets[..whole] == network[..whole] && octets.get(whole).is_none_or(|octet| rest == 0 || (octet ^ network[whole]) >> (8 - rest) == 0)
}

/// The packet filters that may match our traffic, in words: none when the list is empty.
pub fn filters() -> Vec<String> {
    let mut found = nftables();
    for file in ["ip_tables_names", "ip6_tables_names"] {
        // Of the thread's own network namespace.
        let names = std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
        found
            .extend(names.lines().map(|table| format!("{} table {table}", if file.starts_with("ip6") { "ip6tables" } else { "iptables" })));
    }
    found
}

/// Chains of nftables that packets pass on their way in or out.
fn nftables() -> Vec<String> {
    const GET_CHAIN: u16 = 10 << 8 | 4;
    const GET_RULE: u16 = 10 << 8 | 7;
    let Ok(mut netlink) = Netlink::new(libc::NETLINK_NETFILTER) else { return Vec::new() };
    // All families, version 0.
    let mut dump = |kind| netlink.dump(kind, &[0; 4]).unwrap_or_default();
    let (chains, rules) = (dump(GET_CHAIN), dump(GET_RULE));
    chains.iter().filter_map(|chain| matters(chain, &rules)).collect()
}

/// The name of a chain that may touch our traffic: hooked where it passes, with rules or a policy to drop.
fn matters((_, chain): &Message, rules: &[Message]) -> Option<String> {
    const CHAIN_TABLE: u16 = 1;
    const CHAIN_NAME: u16 = 3;
    const CHAIN_HOOK: u16 = 4;
    const CHAIN_POLICY: u16 = 5;
    const HOOK_NUMBER: u16 = 1;
    const RULE_TABLE: u16 = 1;
    const RULE_CHAIN: u16 = 2;
    const ARP: u8 = 3;
    const NETDEV: u8 = 5;
    const FORWARD: u32 = 2;
    let (family, rest) = (*chain.first()?, chain.get(4..)?);
    let hook = attribute(rest, CHAIN_HOOK).and_then(|hook| attribute(hook, HOOK_NUMBER)).and_then(big_word)?;
    if family == ARP || (hook == FORWARD && family != NETDEV) {
        return None;
    }
    let (table, name) = (attribute(rest, CHAIN_TABLE).map(text)?, attribute(rest, CHAIN_NAME).map(text)?);
    let drops = attribute(rest, CHAIN_POLICY).and_then(big_word) == Some(0);
    let has_rules = rules.iter().any(|(_, rule)| {
        let rest = rule.get(4..).unwrap_or_default();
        rule.first() == Some(&family)
            && attribute(rest, RULE_TABLE).map(text).as_ref() == Some(&table)
            && attribute(rest, RULE_CHAIN).map(text).as_ref() == Some(&name)
    });
    (drops || has_rules).then(|| format!("nftables chain {table} {name}"))
}

fn big_word(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::super::netlink::put;
    use super::*;

    /// A policy as the kernel tells it.
    struct Policy {
        direction: u8,
        destination: ([u8; 4], u8),
        source: ([u8; 4], u8),
        ports: (u16, u16),
        protocol: u8,
        action: u8,
        protects: bool,
    }

    const ANY: Policy =
        Policy { direction: 0, destination: ([0; 4], 0), source: ([0; 4], 0), ports: (0, 0), protocol: 0, action: 0, protects: true };

    impl Policy {
        fn covers(&self, listen: &str) -> bool {
            let mut bytes = vec![0; 168];
            bytes[..4].copy_from_slice(&self.destination.0);
            bytes[16..20].copy_from_slice(&self.source.0);
            for (at, port) in [(32, self.ports.0), (36, self.ports.1)] {
                bytes[at..at + 2].copy_from_slice(&port.to_be_bytes());
                bytes[at + 2..at + 4].copy_from_slice(&if port == 0 { 0u16 } else { 0xffff }.to_be_bytes());
            }
            bytes[40..42].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            (bytes[42], bytes[43], bytes[44]) = (self.destination.1, self.source.1, self.protocol);
            (bytes[160], bytes[161]) = (self.direction, self.action);
            if self.protects {
                put(&mut bytes, 5, &[0; 64]);
            }
            for cut in 0..bytes.len() {
                let _ = super::covers(&bytes[..cut], &[listen.parse().expect("an address")]);
            }
            super::covers(&bytes, &[listen.parse().expect("an address")]).is_some()
        }
    }

    #[test]
    fn a_policy_covers_what_its_selector_says() {
        let own = "192.0.2.1:2427";
        assert!(ANY.covers(own) && !ANY.covers("[2001:db8::1]:2427"));
        assert!(Policy { destination: ([192, 0, 2, 0], 24), protocol: 17, ..ANY }.covers(own));
        assert!(Policy { destination: ([192, 0, 2, 1], 32), ports: (2427, 0), ..ANY }.covers(own));
        assert!(!Policy { destination: ([192, 0, 2, 2], 32), ..ANY }.covers(own));
        assert!(!Policy { destination: ([192, 0, 2, 128], 25), ..ANY }.covers(own));
        assert!(!Policy { ports: (2727, 0), ..ANY }.covers(own) && Policy { ports: (0, 2727), ..ANY }.covers(own));
        assert!(!Policy { protocol: 6, ..ANY }.covers(own));
        assert!(Policy { direction: 1, source: ([192, 0, 2, 1], 32), ports: (2727, 2427), ..ANY }.covers(own));
        assert!(!Policy { direction: 1, source: ([192, 0, 2, 9], 32), ..ANY }.covers(own));
        assert!(!Policy { direction: 2, ..ANY }.covers(own), "forwarded");
        assert!(!Policy { protects: false, ..ANY }.covers(own), "let through as it is");
        assert!(Policy { protects: false, action: 1, ..ANY }.covers(own), "blocked");
        assert_eq!(blocked_by_default(&[1, 2, 2, 0]), Some("what comes in"));
        assert_eq!(blocked_by_default(&[2, 1, 1, 0]), Some("what goes out"));
        assert_eq!(blocked_by_default(&[2, 1, 2, 0]), None);
    }

    #[test]
    fn a_chain_matters_with_rules_or_when_it_drops() {
        let chain = |family: u8, hook: Option<u32>, policy: u32| {
            let mut bytes = vec![family, 0, 0, 0];
            put(&mut bytes, 1, b"filter\0");
            put(&mut bytes, 3, b"in\0");
            if let Some(hook) = hook {
                let mut nested = Vec::new();
                put(&mut nested, 1, &hook.to_be_bytes());
                put(&mut bytes, 4 | 0x8000, &nested);
            }
            put(&mut bytes, 5, &policy.to_be_bytes());
            (0, bytes)
        };
        let mut rule = vec![2, 0, 0, 0];
        put(&mut rule, 1, b"filter\0");
        put(&mut rule, 2, b"in\0");
        let rules = [(0, rule)];
        assert_eq!(matters(&chain(2, Some(1), 1), &rules).as_deref(), Some("nftables chain filter in"));
        assert!(matters(&chain(2, Some(1), 0), &[]).is_some(), "it drops");
        assert!(matters(&chain(2, Some(1), 1), &[]).is_none(), "empty");
        assert!(matters(&chain(10, Some(1), 1), &rules).is_none(), "another family's rules");
        assert!(matters(&chain(2, Some(2), 0), &rules).is_none(), "forwarding only");
        assert!(matters(&chain(2, None, 0), &rules).is_none(), "not hooked");
    }

    #[test]
    fn this_machine_can_be_asked() {
        let listen = ["192.0.2.1:2427".parse().expect("an address")];
        if let Err(reason) = ipsec(&listen) {
            eprintln!("skipped: {reason}");
        }
        let _ = filters();
    }
}
