//! Which interface serves a listen address, and whether AF_XDP can be used on it; if not, which interface it is and why.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use socket2::{Domain, Socket, Type};

use super::netlink::{self, Link, Netlink, interface_of, links};
use super::sys;

/// Where a listen address is served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The interface that has the address, as routes and neighbours name it.
    pub logical: u32,
    /// The card (or what stands for one) that frames come by.
    pub card: Link,
    /// The VLAN their tag names; 0: none.
    pub vlan: u16,
    /// The longest packet.
    pub mtu: u32,
}

/// Finds the place of each listen address, in order: the interface given, or the one that has the address.
///
/// # Errors
/// The first address that cannot be served, and why.
pub fn places(netlink: &mut Netlink, listen: &[SocketAddr], name: Option<&str>) -> Result<Vec<Place>, String> {
    let links = links(netlink).map_err(|error| format!("the kernel does not tell its interfaces: {error}"))?;
    let mut places = Vec::new();
    for address in listen {
        let index = match name {
            Some(name) => {
                let named = links.iter().find(|link| link.name == name);
                named.map(|link| link.index).ok_or_else(|| format!("xdp.interface: there is no interface {name}"))?
            }
            None => find(netlink, address.ip())?,
        };
        places.push(place(&links, index).map_err(|reason| format!("{address}: {reason}"))?);
    }
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).map_err(|error| error.to_string())?;
    for place in &places {
        // A card that takes tags out of frames hides from us which VLAN they belong to.
        if place.card.kind.as_deref() != Some("veth") && sys::strips_tags(socket.as_fd(), &place.card.name) {
            let name = &place.card.name;
            return Err(format!("{name} takes VLAN tags out of frames, so their VLAN cannot be told: ethtool -K {name} rxvlan off"));
        }
    }
    Ok(places)
}

/// The addresses of an interface.
///
/// # Errors
/// When there is no interface with this name, or the kernel does not tell.
pub fn addresses(netlink: &mut Netlink, name: &str) -> Result<Vec<IpAddr>, String> {
    let links = links(netlink).map_err(|error| format!("the kernel does not tell its interfaces: {error}"))?;
    let link = links.iter().find(|link| link.name == name).ok_or_else(|| format!("there is no interface {name}"))?;
    let all = netlink::addresses(netlink).map_err(|error| format!("the kernel does not tell its addresses: {error}"))?;
    Ok(all.into_iter().filter(|(index, _)| *index == link.index).map(|(_, address)| address).collect())
}

fn find(netlink: &mut Netlink, address: IpAddr) -> Result<u32, String> {
    let index = interface_of(netlink, address).map_err(|error| format!("the kernel does not tell its addresses: {error}"))?;
    // All of 127.0.0.0/8 is local, whatever addresses it has.
    let index =
        if index.is_none() && address.is_loopback() { interface_of(netlink, IpAddr::from([127, 0, 0, 1])).ok().flatten() } else { index };
    index.ok_or_else(|| format!("no interface has the address {address}; xdp.interface can name one"))
}

/// Follows an interface down to a card, or says what is in the way.
fn place(links: &[Link], index: u32) -> Result<Place, String> {
    let by_index = |index: u32| links.iter().find(|link| link.index == index);
    let link = by_index(index).ok_or_else(|| format!("interface {index} is gone"))?;
    let (card, vlan) = match link.vlan {
        Some((_, tag)) if tag != 0x8100 => {
            return Err(format!("{} is a VLAN with tags of kind {tag:#06x}; only 0x8100 (802.1Q) is read", link.name));
        }
        Some((vlan, _)) => {
            let lower = by_index(link.lower).ok_or_else(|| format!("{} is a VLAN on an interface out of sight", link.name))?;
            if lower.vlan.is_some() {
                return Err(format!("{} is a VLAN on the VLAN {}; one tag is read, not two", link.name, lower.name));
            }
            if lower.mac != link.mac {
                return Err(format!("{} has a MAC address of its own, other than that of {}", link.name, lower.name));
            }
            (lower, vlan)
        }
        None => (link, 0),
    };
    let name = if card.index == link.index { card.name.clone() } else { format!("{} (below {})", card.name, link.name) };
    if card.flags & libc::IFF_LOOPBACK as u32 != 0 {
        return Err(format!("{name} is the loopback, which AF_XDP does not work on"));
    }
    if let Some(kind) = card.kind.as_deref().filter(|kind| !matches!(*kind, "veth" | "tun")) {
        let ports: Vec<&str> = links.iter().filter(|port| port.master == card.index).map(|port| port.name.as_str()).collect();
        let of = if ports.is_empty() { String::new() } else { format!(" of {}", ports.join(", ")) };
        return Err(format!("{name} is a {kind}{of}: AF_XDP works on the queues of one card; give the card an address of its own"));
    }
    if let Some(master) = by_index(card.master).filter(|_| card.master != 0) {
        let kind = master.kind.as_deref().unwrap_or("interface");
        return Err(format!("{name} is a port of the {kind} {}, which would not see what is taken from it", master.name));
    }
    if card.hardware != libc::ARPHRD_ETHER {
        return Err(format!("{name} is no Ethernet interface"));
    }
    Ok(Place { logical: link.index, card: card.clone(), vlan, mtu: link.mtu })
}

/// How many receive queues of a card are in use.
pub fn queues(card: &Link) -> u32 {
    Socket::new(Domain::IPV4, Type::DGRAM, None).map_or(1, |socket| sys::queues(socket.as_fd(), &card.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str, kind: Option<&str>) -> Link {
        let (name, kind, hardware) = (name.into(), kind.map(str::to_owned), libc::ARPHRD_ETHER);
        Link { index, name, kind, hardware, mtu: 1500, mac: [2, 0, 0, 0, 0, index as u8], ..Link::default() }
    }

    fn refused(links: &[Link], index: u32, wanted: &str) {
        let reason = place(links, index).expect_err(wanted);
        assert!(reason.contains(wanted), "{reason}");
    }

    #[test]
    fn a_vlan_leads_to_its_card() {
        let vlan = Link { vlan: Some((100, 0x8100)), lower: 2, mtu: 1496, mac: [2, 0, 0, 0, 0, 2], ..link(7, "eth0.100", Some("vlan")) };
        let links = [link(2, "eth0", None), vlan];
        let place = super::place(&links, 7).expect("served");
        assert_eq!((place.logical, place.card.index, place.vlan, place.mtu), (7, 2, 100, 1496));
        let place = super::place(&links, 2).expect("served");
        assert_eq!((place.logical, place.card.index, place.vlan), (2, 2, 0));
    }

    #[test]
    fn what_is_no_card_is_refused_by_name() {
        let links = [
            Link { flags: libc::IFF_LOOPBACK as u32, hardware: libc::ARPHRD_LOOPBACK, ..link(1, "lo", None) },
            Link { master: 4, ..link(2, "eth0", None) },
            Link { master: 4, ..link(3, "eth1", None) },
            link(4, "bond0", Some("bond")),
            Link { vlan: Some((9, 0x8100)), lower: 4, mac: [2, 0, 0, 0, 0, 4], ..link(5, "bond0.9", Some("vlan")) },
            link(6, "br0", Some("bridge")),
            Link { vlan: Some((9, 0x88a8)), lower: 8, ..link(7, "eth2.9", Some("vlan")) },
            link(8, "eth2", None),
            Link { vlan: Some((9, 0x8100)), lower: 7, ..link(9, "eth2.9.9", Some("vlan")) },
            Link { hardware: libc::ARPHRD_NONE, ..link(10, "tun0", Some("tun")) },
            link(11, "wg0", Some("wireguard")),
        ];
        refused(&links, 1, "lo is the loopback");
        refused(&links, 2, "eth0 is a port of the bond bond0");
        refused(&links, 4, "bond0 is a bond of eth0, eth1");
        refused(&links, 5, "bond0 (below bond0.9) is a bond");
        refused(&links, 6, "br0 is a bridge: ");
        refused(&links, 7, "tags of kind 0x88a8");
        refused(&links, 9, "is a VLAN on the VLAN eth2.9");
        refused(&links, 10, "tun0 is no Ethernet interface");
        refused(&links, 11, "wg0 is a wireguard");
        let own = Link { vlan: Some((9, 0x8100)), lower: 2, ..link(12, "eth3.9", Some("vlan")) };
        refused(&[link(2, "eth3", None), own], 12, "eth3.9 has a MAC address of its own");
        refused(&links, 99, "interface 99 is gone");
        assert!(place(&links, 8).is_ok());
    }
}
