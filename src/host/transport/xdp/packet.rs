//! Frames on the wire: Ethernet with at most one VLAN tag, IPv4 without options or IPv6 without extension headers, UDP.
//!
//! Reading trusts nothing the XDP program has looked at already, and verifies checksums as the kernel would (RFC 791 3.1, RFC 768,
//! RFC 8200 8.1). One more value is right: the bare sum of the pseudo header. It stands where the sender's checksum was left to
//! hardware that does not exist (veth, virtio between machines of one host); a frame damaged on a wire has it by chance no
//! more often than the right one.

use std::net::{IpAddr, SocketAddr};

/// The longest headers: Ethernet with a tag, IPv6, UDP.
pub const HEADERS_MAX: usize = 18 + 40 + 8;
/// The longest headers of a packet: IPv6 and UDP.
pub const PACKET_HEADERS_MAX: usize = 40 + 8;

const ETHER_IPV4: [u8; 2] = [0x08, 0x00];
const ETHER_IPV6: [u8; 2] = [0x86, 0xdd];
const ETHER_VLAN: [u8; 2] = [0x81, 0x00];
const UDP: u8 = 17;
/// Time to live and hop limit: what the kernel sends with.
const HOPS: u8 = 64;

/// A MAC address.
pub type Mac = [u8; 6];

/// A datagram found in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The number of its VLAN; 0 without, and for a tag that only has a priority.
    pub vlan: u16,
    /// Who sent it.
    pub from: SocketAddr,
    /// Where to.
    pub to: SocketAddr,
    /// Where its bytes begin in the frame.
    pub start: usize,
    /// How many there are.
    pub len: usize,
}

/// Finds the datagram in a frame; `None` when it is none of the module's kind, cut short, or damaged.
#[inline]
pub fn parse(frame: &[u8]) -> Option<Found> {
    let (mut kind, mut at, mut vlan) = (two(frame, 12)?, 14, 0);
    if kind == ETHER_VLAN {
        vlan = u16::from_be_bytes(two(frame, 14)?) & 0x0fff;
        (kind, at) = (two(frame, 16)?, 18);
    }
    let packet = frame.get(at..)?;
    let (addresses, udp, from, to) = match kind {
        ETHER_IPV4 => {
            let header: &[u8; 20] = packet.first_chunk()?;
            let total = usize::from(u16::from_be_bytes(two(header, 2)?));
            let fragment = u16::from_be_bytes(two(header, 6)?) & 0x3fff;
            if header[0] != 0x45 || fragment != 0 || header[9] != UDP || fold(sum(header, 0)) != 0xffff {
                return None;
            }
            let [from, to] = [12, 16].map(|at| IpAddr::from([header[at], header[at + 1], header[at + 2], header[at + 3]]));
            at += 20;
            (&header[12..20], packet.get(20..total)?, from, to)
        }
        ETHER_IPV6 => {
            let header: &[u8; 40] = packet.first_chunk()?;
            let length = usize::from(u16::from_be_bytes(two(header, 4)?));
            if header[0] >> 4 != 6 || header[6] != UDP {
                return None;
            }
            let address = |at: usize| header.get(at..)?.first_chunk::<16>().map(|bytes| IpAddr::from(*bytes));
            at += 40;
            (&header[8..40], packet.get(40..40 + length)?, address(8)?, address(24)?)
        }
        _ => return None,
    };
    let (from_port, to_port) = (u16::from_be_bytes(two(udp, 0)?), u16::from_be_bytes(two(udp, 2)?));
    let (length, field) = (usize::from(u16::from_be_bytes(two(udp, 4)?)), u16::from_ne_bytes(two(udp, 6)?));
    let pseudo = sum(addresses, pseudo_tail(udp.len()));
    let right = if field == 0 { from.is_ipv4() } else { fold(sum(udp, pseudo)) == 0xffff || field == fold(pseudo) };
    (right && length == udp.len()).then(|| Found {
        vlan,
        from: SocketAddr::new(from, from_port),
        to: SocketAddr::new(to, to_port),
        start: at + 8,
        len: length - 8,
    })
}

fn two(bytes: &[u8], at: usize) -> Option<[u8; 2]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// How to reach a destination without asking the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// The MAC address of the next hop.
    pub to: Mac,
    /// Our own.
    pub from: Mac,
    /// The VLAN its tag names; 0: no tag.
    pub vlan: u16,
    /// The longest packet, IP header included.
    pub mtu: u16,
}

/// What is the same in every packet from one of our addresses.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// The address.
    pub address: SocketAddr,
    /// DiffServ code point, shifted to its place.
    pub traffic_class: u8,
}

/// Writes the headers of a datagram at the end of `head` ([`HEADERS_MAX`] bytes at least), so that it follows them; says how long
/// they are. `None` when the path cannot carry it in one packet. `id` numbers IPv4 packets, which routers may fragment.
#[inline]
pub fn build(head: &mut [u8], datagram: &[u8], path: &Path, sender: &Sender, to: SocketAddr, id: u16) -> Option<usize> {
    let udp_len = datagram.len() + 8;
    let ip_len = if to.is_ipv4() { 20 } else { 40 };
    if ip_len + udp_len > usize::from(path.mtu) {
        return None;
    }
    let ether_len = if path.vlan == 0 { 14 } else { 18 };
    let len = ether_len + ip_len + 8;
    let head = head.len().checked_sub(len).and_then(|at| head.get_mut(at..))?;
    let (ether, rest) = head.split_at_mut(ether_len);
    let (ip, udp) = rest.split_at_mut(ip_len);
    ether[..6].copy_from_slice(&path.to);
    ether[6..12].copy_from_slice(&path.from);
    if path.vlan != 0 {
        ether[12..14].copy_from_slice(&ETHER_VLAN);
        ether[14..16].copy_from_slice(&path.vlan.to_be_bytes());
    }
    let addresses = match (sender.address.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            ether[ether_len - 2..].copy_from_slice(&ETHER_IPV4);
            ip[..2].copy_from_slice(&[0x45, sender.traffic_class]);
            ip[2..4].copy_from_slice(&((ip_len + udp_len) as u16).to_be_bytes());
            ip[4..6].copy_from_slice(&id.to_be_bytes());
            ip[6..12].copy_from_slice(&[0, 0, HOPS, UDP, 0, 0]);
            ip[12..16].copy_from_slice(&from.octets());
            ip[16..20].copy_from_slice(&to.octets());
            let check = !fold(sum(ip, 0));
            ip[10..12].copy_from_slice(&check.to_ne_bytes());
            &ip[12..20]
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            ether[ether_len - 2..].copy_from_slice(&ETHER_IPV6);
            let first = 6 << 28 | u32::from(sender.traffic_class) << 20;
            ip[..4].copy_from_slice(&first.to_be_bytes());
            ip[4..6].copy_from_slice(&(udp_len as u16).to_be_bytes());
            ip[6..8].copy_from_slice(&[UDP, HOPS]);
            ip[8..24].copy_from_slice(&from.octets());
            ip[24..40].copy_from_slice(&to.octets());
            &ip[8..40]
        }
        _ => return None,
    };
    udp[..2].copy_from_slice(&sender.address.port().to_be_bytes());
    udp[2..4].copy_from_slice(&to.port().to_be_bytes());
    udp[4..6].copy_from_slice(&(udp_len as u16).to_be_bytes());
    udp[6..8].copy_from_slice(&[0, 0]);
    let pseudo = sum(addresses, pseudo_tail(udp_len));
    let check = !fold(sum(datagram, sum(udp, pseudo)));
    // A sum of zero is sent as its other form: zero means that there is none.
    udp[6..8].copy_from_slice(&if check == 0 { 0xffff } else { check }.to_ne_bytes());
    Some(len)
}

/// The rest of the pseudo header behind its addresses: protocol and length, the same for both families.
#[inline]
fn pseudo_tail(len: usize) -> u64 {
    let [high, low] = (len as u16).to_be_bytes();
    u64::from(u32::from_ne_bytes([0, UDP, high, low]))
}

/// Adds the 16-bit words of `bytes` to a ones' complement sum, in the machine's own byte order (RFC 1071 2(B)): all that are summed
/// one after the other must be of even length but the last.
#[inline]
fn sum(bytes: &[u8], before: u64) -> u64 {
    let mut total = u128::from(before);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        total += u128::from(u64::from_ne_bytes(eight));
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    total += u128::from(u64::from_ne_bytes(last));
    // Once more can carry by one at most.
    let (low, carry) = (total as u64).overflowing_add((total >> 64) as u64);
    low + u64::from(carry)
}

/// The 16-bit form of a sum.
#[inline]
fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Rng;

    const PATH: Path = Path { to: [2, 0, 0, 0, 0, 1], from: [2, 0, 0, 0, 0, 2], vlan: 0, mtu: 1500 };

    /// A frame with headers built in front of `datagram`.
    fn frame(datagram: &[u8], path: &Path, from: &str, to: &str) -> Option<Vec<u8>> {
        let mut bytes = vec![0xaa; 128 + datagram.len()];
        let sender = Sender { address: from.parse().expect("an address"), traffic_class: 40 << 2 };
        let (head, rest) = bytes.split_at_mut(128);
        rest.copy_from_slice(datagram);
        let len = build(head, datagram, path, &sender, to.parse().expect("an address"), 7)?;
        Some(bytes.split_off(128 - len))
    }

    const PAIRS: [[&str; 2]; 2] = [["192.0.2.1:2427", "192.0.2.9:2727"], ["[2001:db8::1]:2427", "[2001:db8::9]:2727"]];

    #[test]
    fn what_is_built_is_found_again() {
        let mut rng = Rng::new(7);
        for [from, to] in PAIRS {
            for vlan in [0, 1, 4094] {
                for len in (0..70).chain([999, 1440]) {
                    let datagram: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
                    let frame = frame(&datagram, &Path { vlan, ..PATH }, from, to).expect("short enough");
                    let found = parse(&frame).unwrap_or_else(|| panic!("{from} {vlan} {len}: {frame:02x?}"));
                    assert_eq!((found.vlan, found.from, found.to), (vlan, from.parse().expect("one"), to.parse().expect("one")));
                    assert_eq!(&frame[found.start..found.start + found.len], datagram);
                    assert_eq!(frame.len(), found.start + found.len);
                }
            }
        }
    }

    /// A packet of a kernel's, with its checksums: they agree with ours.
    #[test]
    fn checksums_are_those_of_the_rfc() {
        // The example of RFC 1071 3: its sum is ddf2.
        assert_eq!(fold(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7], 0)).to_ne_bytes(), [0xdd, 0xf2]);
        assert_eq!(fold(sum(&[0xff; 17], u64::MAX)), fold(sum(&[0xff; 17], 0)), "no carry is lost");
        let naive = |bytes: &[u8]| {
            let mut total = 0u32;
            for pair in bytes.chunks(2) {
                total += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
                total = (total & 0xffff) + (total >> 16);
            }
            (total as u16).to_be_bytes()
        };
        let mut rng = Rng::new(8);
        for len in 0..200 {
            let bytes: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
            assert_eq!(fold(sum(&bytes, 0)).to_ne_bytes(), naive(&bytes));
        }
    }

    #[test]
    fn damage_is_seen_and_nothing_panics() {
        for [from, to] in PAIRS {
            let whole = frame(b"AUEP 1 ds/ds1-1/1@tgw MGCP 1.0\r\n", &PATH, from, to).expect("short enough");
            assert!(parse(&whole).is_some());
            for cut in 0..whole.len() {
                assert!(parse(&whole[..cut]).is_none(), "cut at {cut}");
            }
            // What is covered by no checksum: the MAC addresses, and traffic class, flow label and hop limit of IPv6.
            let free = |at: usize| at < 12 || (from.starts_with('[') && (matches!(at, 15..18 | 21)));
            for at in (0..whole.len()).filter(|&at| !free(at)) {
                for bit in 0..8 {
                    let mut damaged = whole.clone();
                    damaged[at] ^= 1 << bit;
                    let low_nibble = from.starts_with('[') && at == 14 && bit < 4;
                    assert!(parse(&damaged).is_none() || low_nibble, "{from}: bit {bit} of octet {at}");
                }
            }
        }
    }

    #[test]
    fn a_checksum_left_to_hardware_is_taken_and_none_only_over_ipv4() {
        for [from, to] in PAIRS {
            let mut frame = frame(b"200 1 OK\r\n", &PATH, from, to).expect("short enough");
            let found = parse(&frame).expect("right");
            let (udp, ip) = (found.start - 8, if found.from.is_ipv4() { 26..34 } else { 22..54 });
            let bare = fold(sum(&frame[ip], pseudo_tail(found.len + 8)));
            frame[udp + 6..udp + 8].copy_from_slice(&bare.to_ne_bytes());
            assert_eq!(parse(&frame), Some(found));
            frame[udp + 6..udp + 8].copy_from_slice(&[0, 0]);
            assert_eq!(parse(&frame).is_some(), found.from.is_ipv4());
        }
    }

    #[test]
    fn what_needs_fragments_or_is_of_two_families_is_not_built() {
        assert!(frame(&[0; 1472], &PATH, PAIRS[0][0], PAIRS[0][1]).is_some());
        assert!(frame(&[0; 1473], &PATH, PAIRS[0][0], PAIRS[0][1]).is_none());
        assert!(frame(&[0; 1452], &PATH, PAIRS[1][0], PAIRS[1][1]).is_some());
        assert!(frame(&[0; 1453], &PATH, PAIRS[1][0], PAIRS[1][1]).is_none());
        assert!(frame(&[0; 10], &PATH, PAIRS[0][0], PAIRS[1][1]).is_none());
    }
}
