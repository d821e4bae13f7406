//! Questions to the kernel by netlink: links, addresses, routes, neighbours, IPsec policies, packet filters.
//!
//! A few fixed messages, written and read here byte by byte (netlink(7), rtnetlink(7)); what they mean for us is decided by
//! `interface`, `resolver` and `policy`. Replies are the kernel's own, still nothing in them is indexed without a look. Sockets are
//! those of the calling thread's network namespace.

use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::packet::Mac;
use crate::host::transport::sys::set_option;

/// How long the kernel may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Room for any one message of the kernel's.
const BUFFER: usize = 1 << 16;
const HEADER: usize = 16;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_CREATE: u16 = 0x400;

/// A netlink socket of one family.
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

/// One message of the kernel's: its type and what follows the header.
pub type Message = (u16, Vec<u8>);

impl Netlink {
    /// Of a family (`NETLINK_ROUTE` and others).
    ///
    /// # Errors
    /// When the kernel has no such family.
    pub fn new(family: i32) -> io::Result<Netlink> {
        let socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(Protocol::from(family)))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// One that is told of changes to these groups, and does not block.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn listening(family: i32, groups: &[u32]) -> io::Result<Netlink> {
        const NLMSG_NOOP: u16 = 1;
        let mut netlink = Netlink::new(family)?;
        // A socket gets its number with its first message, and without one it is told nothing.
        netlink.order(NLMSG_NOOP, &[])?;
        for &group in groups {
            set_option(netlink.socket.as_fd(), libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, group as i32)?;
        }
        netlink.socket.set_nonblocking(true)?;
        Ok(netlink)
    }

    /// To wait for changes.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// What has changed since the last look; `None` when so much that the kernel dropped some of it.
    pub fn changes(&mut self) -> Option<Vec<Message>> {
        let (mut messages, mut buffer) = (Vec::new(), vec![0; BUFFER]);
        loop {
            match self.socket.read(&mut buffer) {
                Ok(length) => messages.extend(split(buffer.get(..length).unwrap_or_default()).map(|(kind, _, rest)| (kind, rest.to_vec()))),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => return None,
                Err(_) => return Some(messages),
            }
        }
    }

    /// One question with one answer.
    ///
    /// # Errors
    /// The kernel's.
    pub fn ask(&mut self, kind: u16, request: &[u8]) -> io::Result<Option<Message>> {
        Ok(self.exchange(kind, NLM_F_REQUEST, request)?.pop())
    }

    /// A question for everything there is of a kind.
    ///
    /// # Errors
    /// The kernel's.
    pub fn dump(&mut self, kind: u16, request: &[u8]) -> io::Result<Vec<Message>> {
        self.exchange(kind, NLM_F_REQUEST | NLM_F_DUMP, request)
    }

    /// An order.
    ///
    /// # Errors
    /// The kernel's.
    pub fn order(&mut self, kind: u16, request: &[u8]) -> io::Result<()> {
        self.exchange(kind, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, request).map(drop)
    }

    fn exchange(&mut self, kind: u16, flags: u16, request: &[u8]) -> io::Result<Vec<Message>> {
        const NLMSG_ERROR: u16 = 2;
        const NLMSG_DONE: u16 = 3;
        const NLM_F_MULTI: u16 = 2;
        self.sequence = self.sequence.wrapping_add(1);
        let mut message = ((HEADER + request.len()) as u32).to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(request);
        self.socket.write_all(&message)?;
        let (mut answers, mut buffer) = (Vec::new(), vec![0; BUFFER]);
        loop {
            let length = match self.socket.read(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            for (kind, header, rest) in split(buffer.get(..length).unwrap_or_default()) {
                // An answer to an earlier question, which was given up.
                if header[8..12] != self.sequence.to_ne_bytes() {
                    continue;
                }
                match kind {
                    NLMSG_ERROR => {
                        let code = rest.first_chunk().map_or(libc::EPROTO, |code| -i32::from_ne_bytes(*code));
                        return if code == 0 { Ok(answers) } else { Err(io::Error::from_raw_os_error(code)) };
                    }
                    NLMSG_DONE => return Ok(answers),
                    _ => {
                        answers.push((kind, rest.to_vec()));
                        if u16::from_ne_bytes([header[6], header[7]]) & NLM_F_MULTI == 0 && flags & NLM_F_ACK == 0 {
                            return Ok(answers);
                        }
                    }
                }
            }
        }
    }
}

/// The messages in what was received: type, header, rest.
fn split(mut bytes: &[u8]) -> impl Iterator<Item = (u16, [u8; HEADER], &[u8])> {
    std::iter::from_fn(move || {
        let header: [u8; HEADER] = *bytes.first_chunk()?;
        let length = u32::from_ne_bytes(*header.first_chunk()?) as usize;
        let rest = bytes.get(HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([header[4], header[5]]), header, rest))
    })
}

/// The attributes behind a message's fixed part: type and value.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// Flags in the type: nested, network byte order.
    const KIND: u16 = 0x3fff;
    std::iter::from_fn(move || {
        let header: [u8; 4] = *bytes.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([header[2], header[3]]) & KIND, value))
    })
}

/// The value of the first attribute of a type.
pub fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(known, _)| *known == kind).map(|(_, value)| value)
}

/// Appends an attribute.
pub fn put(request: &mut Vec<u8>, kind: u16, value: &[u8]) {
    request.extend(((4 + value.len()) as u16).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(value);
    request.resize(request.len().next_multiple_of(4), 0);
}

/// A 32-bit number in the machine's order.
pub fn word(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// A text that may end with a zero.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

/// An address of either family.
pub fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => bytes.first_chunk::<4>().map(|bytes| IpAddr::from(*bytes)),
        16 => bytes.first_chunk::<16>().map(|bytes| IpAddr::from(*bytes)),
        _ => None,
    }
}

/// The octets of an address.
pub fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// The kernel's number of a family.
pub fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 }
}

/// One interface.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Link {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// IFF_*.
    pub flags: u32,
    /// ARPHRD_*.
    pub hardware: u16,
    /// Its MAC address, where it has one.
    pub mac: Mac,
    /// The longest packet.
    pub mtu: u32,
    /// The interface it is a port of (a bridge, a bond); 0: none.
    pub master: u32,
    /// The interface it lies on (of a VLAN); 0: none.
    pub lower: u32,
    /// What it is, where that is not a card: `veth`, `vlan`, `bond`, ...
    pub kind: Option<String>,
    /// Of a VLAN: its number, and the kind of tag (0x8100).
    pub vlan: Option<(u16, u16)>,
}

impl Link {
    /// From an RTM_NEWLINK.
    pub fn parse(message: &[u8]) -> Option<Link> {
        const IFLA_ADDRESS: u16 = 1;
        const IFLA_IFNAME: u16 = 3;
        const IFLA_MTU: u16 = 4;
        const IFLA_LINK: u16 = 5;
        const IFLA_MASTER: u16 = 10;
        const IFLA_LINKINFO: u16 = 18;
        const INFO_KIND: u16 = 1;
        const INFO_DATA: u16 = 2;
        const VLAN_ID: u16 = 1;
        const VLAN_PROTOCOL: u16 = 5;
        let fixed: &[u8; 16] = message.first_chunk()?;
        let mut link = Link {
            index: word(&fixed[4..])?,
            flags: word(&fixed[8..])?,
            hardware: u16::from_ne_bytes([fixed[2], fixed[3]]),
            ..Link::default()
        };
        for (kind, value) in attributes(&message[16..]) {
            match kind {
                IFLA_ADDRESS => link.mac = value.first_chunk().copied().unwrap_or_default(),
                IFLA_IFNAME => link.name = text(value),
                IFLA_MTU => link.mtu = word(value)?,
                IFLA_LINK => link.lower = word(value)?,
                IFLA_MASTER => link.master = word(value)?,
                IFLA_LINKINFO => {
                    link.kind = attribute(value, INFO_KIND).map(text);
                    if let (Some("vlan"), Some(data)) = (link.kind.as_deref(), attribute(value, INFO_DATA)) {
                        let id = attribute(data, VLAN_ID).and_then(|id| id.first_chunk().copied()).map(u16::from_ne_bytes)?;
                        let tag = attribute(data, VLAN_PROTOCOL).and_then(|tag| tag.first_chunk().copied()).map(u16::from_be_bytes);
                        link.vlan = Some((id, tag.unwrap_or(0x8100)));
                    }
                }
                _ => {}
            }
        }
        Some(link)
    }

    /// Whether it is up and has a carrier.
    pub fn is_up(&self) -> bool {
        const UP: u32 = libc::IFF_UP as u32 | libc::IFF_LOWER_UP as u32;
        self.flags & UP == UP
    }
}

/// All interfaces.
///
/// # Errors
/// The kernel's.
pub fn links(netlink: &mut Netlink) -> io::Result<Vec<Link>> {
    let messages = netlink.dump(libc::RTM_GETLINK, &[0; 16])?;
    Ok(messages.iter().filter_map(|(_, message)| Link::parse(message)).collect())
}

/// All addresses of this host, each with the number of its interface.
///
/// # Errors
/// The kernel's.
pub fn addresses(netlink: &mut Netlink) -> io::Result<Vec<(u32, IpAddr)>> {
    const IFA_ADDRESS: u16 = 1;
    const IFA_LOCAL: u16 = 2;
    let read = |message: &[u8]| {
        let rest = message.get(8..)?;
        // The local address of a point-to-point link is the other attribute.
        let own = attribute(rest, IFA_LOCAL).or_else(|| attribute(rest, IFA_ADDRESS)).and_then(address)?;
        Some((message.get(4..8).and_then(word)?, own))
    };
    Ok(netlink.dump(libc::RTM_GETADDR, &[0; 8])?.iter().filter_map(|(_, message)| read(message)).collect())
}

/// The number of the interface that has an address.
///
/// # Errors
/// The kernel's.
pub fn interface_of(netlink: &mut Netlink, wanted: IpAddr) -> io::Result<Option<u32>> {
    Ok(addresses(netlink)?.into_iter().find(|(_, own)| *own == wanted).map(|(index, _)| index))
}

/// A route to one destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The interface packets leave by.
    pub interface: u32,
    /// The next hop; the destination itself when it is on the link.
    pub hop: IpAddr,
    /// The longest packet on the way, where it is known to be less than the link's.
    pub mtu: Option<u32>,
}

/// How packets from `from` get to `to`; `None` when they cannot, or only in a way of the kernel's own (tunnels, local delivery).
pub fn route(netlink: &mut Netlink, from: IpAddr, to: IpAddr) -> Option<Route> {
    const RTA_DST: u16 = 1;
    const RTA_SRC: u16 = 2;
    let octets = |address: IpAddr| octets(address);
    let bits = octets(to).len() as u8 * 8;
    let mut request = vec![family(to), bits, bits, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    put(&mut request, RTA_DST, &octets(to));
    put(&mut request, RTA_SRC, &octets(from));
    let (_, message) = netlink.ask(libc::RTM_GETROUTE, &request).ok()??;
    parse_route(&message, to)
}

fn parse_route(message: &[u8], to: IpAddr) -> Option<Route> {
    const RTA_OIF: u16 = 4;
    const RTA_GATEWAY: u16 = 5;
    const RTA_METRICS: u16 = 8;
    const RTA_VIA: u16 = 18;
    const RTA_ENCAP: u16 = 22;
    const RTAX_MTU: u16 = 2;
    const UNICAST: u8 = 1;
    let rest = message.get(12..)?;
    if message[7] != UNICAST || attribute(rest, RTA_ENCAP).is_some() {
        return None;
    }
    let via = attribute(rest, RTA_VIA).and_then(|via| via.get(2..)).and_then(address);
    let gateway = attribute(rest, RTA_GATEWAY).and_then(address);
    Some(Route {
        interface: attribute(rest, RTA_OIF).and_then(word)?,
        hop: gateway.or(via).unwrap_or(to),
        mtu: attribute(rest, RTA_METRICS).and_then(|metrics| attribute(metrics, RTAX_MTU)).and_then(word),
    })
}

fn neighbour_request(interface: u32, hop: IpAddr, flags: u8) -> Vec<u8> {
    const NDA_DST: u16 = 1;
    let mut request = vec![family(hop), 0, 0, 0];
    request.extend(interface.to_ne_bytes());
    request.extend([0, 0, flags, 0]);
    put(&mut request, NDA_DST, &octets(hop));
    request
}

/// The MAC address of a next hop, as far as the kernel knows it and takes it for right.
pub fn neighbour(netlink: &mut Netlink, interface: u32, hop: IpAddr) -> Option<Mac> {
    const NDA_LLADDR: u16 = 2;
    /// Reachable, stale, delay, probe, permanent.
    const VALID: u16 = 0x02 | 0x04 | 0x08 | 0x10 | 0x80;
    let (_, message) = netlink.ask(libc::RTM_GETNEIGH, &neighbour_request(interface, hop, 0)).ok()??;
    let state = message.get(8..10).and_then(|state| state.first_chunk().copied()).map(u16::from_ne_bytes)?;
    let mac: Mac = *attribute(message.get(12..)?, NDA_LLADDR)?.first_chunk()?;
    (state & VALID != 0 && mac != [0; 6]).then_some(mac)
}

/// Tells the kernel that a next hop is in use, so that it looks for it, or makes sure of one it has not heard of for long.
///
/// # Errors
/// The kernel's.
pub fn use_neighbour(netlink: &mut Netlink, interface: u32, hop: IpAddr) -> io::Result<()> {
    const NTF_USE: u8 = 1;
    netlink.order(libc::RTM_NEWNEIGH, &neighbour_request(interface, hop, NTF_USE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_far_as_they_are_whole() {
        let mut bytes = Vec::new();
        put(&mut bytes, 3, b"veth0\0");
        put(&mut bytes, 4 | 0x8000, &1500u32.to_ne_bytes());
        let found: Vec<_> = attributes(&bytes).collect();
        assert_eq!(found, [(3, b"veth0\0".as_slice()), (4, 1500u32.to_ne_bytes().as_slice())]);
        assert_eq!(attribute(&bytes, 4).and_then(word), Some(1500));
        for cut in 0..bytes.len() {
            assert!(attributes(&bytes[..cut]).count() < 2);
        }
        assert_eq!(attributes(&[0; 64]).count(), 0, "a length of zero does not loop");
        assert_eq!(split(&[0; 64]).count(), 0);
    }

    /// As the kernel tells of `eth0.100`, a VLAN on interface 2.
    #[test]
    fn a_vlan_names_its_number_and_its_card() {
        let mut data = Vec::new();
        put(&mut data, 1, &100u16.to_ne_bytes());
        put(&mut data, 5, &0x8100u16.to_be_bytes());
        let mut info = Vec::new();
        put(&mut info, 1, b"vlan\0");
        put(&mut info, 2 | 0x8000, &data);
        let mut message = vec![0; 16];
        message[2..4].copy_from_slice(&1u16.to_ne_bytes());
        message[4..8].copy_from_slice(&7u32.to_ne_bytes());
        message[8..12].copy_from_slice(&(libc::IFF_UP as u32 | libc::IFF_LOWER_UP as u32).to_ne_bytes());
        put(&mut message, 1, &[2, 0, 0, 0, 0, 9]);
        put(&mut message, 3, b"eth0.100\0");
        put(&mut message, 4, &1496u32.to_ne_bytes());
        put(&mut message, 5, &2u32.to_ne_bytes());
        put(&mut message, 18, &info);
        let link = Link::parse(&message).expect("whole");
        assert_eq!((link.index, link.lower, link.mtu, link.hardware, link.is_up()), (7, 2, 1496, 1, true));
        assert_eq!((link.name.as_str(), link.kind.as_deref(), link.vlan), ("eth0.100", Some("vlan"), Some((100, 0x8100))));
        assert_eq!(link.mac, [2, 0, 0, 0, 0, 9]);
        assert!(Link::parse(&message[..15]).is_none());
    }

    #[test]
    fn routes_the_kernel_keeps_to_itself_are_none() {
        let to: IpAddr = "192.0.2.9".parse().expect("an address");
        let message = |kind: u8, extra: &[(u16, &[u8])]| {
            let mut message = vec![2, 32, 0, 0, 254, 0, 0, kind, 0, 0, 0, 0];
            put(&mut message, 4, &3u32.to_ne_bytes());
            extra.iter().for_each(|(kind, value)| put(&mut message, *kind, value));
            message
        };
        assert_eq!(parse_route(&message(1, &[]), to), Some(Route { interface: 3, hop: to, mtu: None }));
        let gateway = parse_route(&message(1, &[(5, &[192, 0, 2, 1])]), to).expect("a route");
        assert_eq!(gateway.hop, IpAddr::from([192, 0, 2, 1]));
        let mut metrics = Vec::new();
        put(&mut metrics, 2, &1400u32.to_ne_bytes());
        assert_eq!(parse_route(&message(1, &[(8, &metrics)]), to).expect("a route").mtu, Some(1400));
        assert_eq!(parse_route(&message(2, &[]), to), None, "local");
        assert_eq!(parse_route(&message(1, &[(22, &[1, 0])]), to), None, "in a tunnel");
        assert_eq!(parse_route(&[0; 11], to), None);
    }

    /// The loopback interface is everywhere.
    #[test]
    fn the_kernel_answers() {
        let mut netlink = Netlink::new(libc::NETLINK_ROUTE).expect("netlink");
        let links = links(&mut netlink).expect("links");
        let lo = links.iter().find(|link| link.name == "lo").expect("lo");
        assert_eq!(lo.flags & libc::IFF_LOOPBACK as u32, libc::IFF_LOOPBACK as u32);
        if lo.is_up() {
            let local = IpAddr::from([127, 0, 0, 1]);
            assert_eq!(interface_of(&mut netlink, local).expect("addresses"), Some(lo.index));
            assert_eq!(route(&mut netlink, local, local), None, "local delivery");
        }
        assert_eq!(interface_of(&mut netlink, "203.0.113.77".parse().expect("one")).expect("addresses"), None);
    }
}
