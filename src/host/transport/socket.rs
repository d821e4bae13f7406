//! Listen sockets: bound here with everything the gateway wants of them; and socket addresses in the kernel's own form.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, Socket, Type};

use super::sys::set_option;

/// How listen sockets are set up.
#[derive(Clone, Copy, Debug)]
pub struct SocketSettings {
    /// Bytes of the kernel's receive buffer (SO_RCVBUF); a datagram takes about 768 and its size. Beyond `net.core.rmem_max` only with
    /// CAP_NET_ADMIN.
    pub receive_buffer: usize,
    /// Bytes of the kernel's send buffer (SO_SNDBUF).
    pub send_buffer: usize,
    /// The differentiated services code point of what is sent: 0..=63. 24 (CS3) is usual for signalling.
    pub dscp: u8,
    /// Several cores bind the same address (SO_REUSEPORT); each then has a socket and a queue of its own.
    pub shared: bool,
    /// The kernel notes when each datagram arrived (SO_TIMESTAMPNS), so that waiting in the socket counts.
    pub timestamps: bool,
    /// No packet is fragmented on its way (the DF bit), and what could not be delivered is not reported: for media.
    pub media: bool,
}

impl SocketSettings {
    /// What a socket for media has.
    pub fn media() -> SocketSettings {
        SocketSettings { media: true, ..SocketSettings::default() }
    }
}

impl Default for SocketSettings {
    fn default() -> SocketSettings {
        SocketSettings { receive_buffer: 4 << 20, send_buffer: 1 << 20, dscp: 0, shared: false, timestamps: true, media: false }
    }
}

/// Binds one UDP socket per address, in order; IPv6 sockets take IPv6 only. Fragmentation of large responses is allowed (no path MTU
/// discovery). What could not be delivered is reported (IP_RECVERR).
///
/// # Errors
/// The first address that could not be bound, and why.
pub fn bind(addresses: &[SocketAddr], settings: &SocketSettings) -> io::Result<Vec<UdpSocket>> {
    addresses
        .iter()
        .map(|&address| {
            let about = |error: io::Error| io::Error::new(error.kind(), format!("listen address {address}: {}", explain_bind(error)));
            bind_one(address, settings).map_err(about)
        })
        .collect()
}

/// An error of binding, with what to do about it.
pub fn explain_bind(error: io::Error) -> io::Error {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => "another gateway or program has it: end that one, or give another address or port",
        io::ErrorKind::AddrNotAvailable => "no interface of this machine has this address",
        io::ErrorKind::PermissionDenied => "ports below 1024 need CAP_NET_BIND_SERVICE",
        _ => return error,
    };
    io::Error::new(error.kind(), format!("{error}: {advice}"))
}

fn bind_one(address: SocketAddr, settings: &SocketSettings) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if settings.shared {
        socket.set_reuse_port(true)?;
    }
    let traffic_class = u32::from(settings.dscp & 63) << 2;
    let fragments = |discover: i32, dont: i32| if settings.media { discover } else { dont };
    let reports = i32::from(!settings.media);
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
        socket.set_tclass_v6(traffic_class)?;
        set_option(
            socket.as_fd(),
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            fragments(libc::IPV6_PMTUDISC_DO, libc::IPV6_PMTUDISC_DONT),
        )?;
        set_option(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_RECVERR, reports)?;
    } else {
        socket.set_tos_v4(traffic_class)?;
        set_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, fragments(libc::IP_PMTUDISC_DO, libc::IP_PMTUDISC_DONT))?;
        set_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_RECVERR, reports)?;
    }
    let receive_buffer = i32::try_from(settings.receive_buffer).unwrap_or(i32::MAX);
    if set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, receive_buffer).is_err() {
        socket.set_recv_buffer_size(settings.receive_buffer)?;
    }
    socket.set_send_buffer_size(settings.send_buffer)?;
    if settings.timestamps {
        set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    }
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// A socket address as the kernel reads and writes it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct RawAddress {
    bytes: [u8; RawAddress::SIZE],
    len: u32,
}

impl RawAddress {
    /// Room for the longer of the two families (`sockaddr_in6`).
    pub const SIZE: usize = 28;
    /// No address.
    pub const NONE: RawAddress = RawAddress { bytes: [0; RawAddress::SIZE], len: 0 };
    /// The length of a `sockaddr_in`.
    const SIZE_V4: usize = 16;

    /// How many of the bytes count.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is no address.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the bytes are.
    pub fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    /// The address; `None` when there is none.
    pub fn address(&self) -> Option<SocketAddr> {
        RawAddress::parse(&self.bytes[..self.len as usize])
    }

    /// Reads an address of either family.
    pub fn parse(bytes: &[u8]) -> Option<SocketAddr> {
        let family = i32::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
        match family {
            libc::AF_INET => {
                let address: [u8; 4] = *bytes.get(4..)?.first_chunk()?;
                Some(SocketAddrV4::new(Ipv4Addr::from(address), port).into())
            }
            libc::AF_INET6 => {
                let flow = u32::from_be_bytes(*bytes.get(4..)?.first_chunk()?);
                let address: [u8; 16] = *bytes.get(8..)?.first_chunk()?;
                let scope = u32::from_ne_bytes(*bytes.get(24..)?.first_chunk()?);
                Some(SocketAddrV6::new(Ipv6Addr::from(address), port, flow, scope).into())
            }
            _ => None,
        }
    }
}

impl From<SocketAddr> for RawAddress {
    #[inline]
    fn from(address: SocketAddr) -> RawAddress {
        let mut bytes = [0; RawAddress::SIZE];
        let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 } as u16;
        bytes[..2].copy_from_slice(&family.to_ne_bytes());
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        match address {
            SocketAddr::V4(v4) => {
                bytes[4..8].copy_from_slice(&v4.ip().octets());
                RawAddress { bytes, len: RawAddress::SIZE_V4 as u32 }
            }
            SocketAddr::V6(v6) => {
                bytes[4..8].copy_from_slice(&v6.flowinfo().to_be_bytes());
                bytes[8..24].copy_from_slice(&v6.ip().octets());
                bytes[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
                RawAddress { bytes, len: RawAddress::SIZE as u32 }
            }
        }
    }
}

/// Room for the control message of a receive timestamp: header and `timespec`.
pub const CONTROL_SIZE: usize = 32;

/// The kernel's receive timestamp among control messages, in nanoseconds since 1970.
pub fn receive_timestamp(mut control: &[u8]) -> Option<u64> {
    const HEADER: usize = 16;
    while let Some(length) = control.first_chunk().map(|bytes| usize::from_ne_bytes(*bytes)) {
        let level = i32::from_ne_bytes(*control.get(8..)?.first_chunk()?);
        let kind = i32::from_ne_bytes(*control.get(12..)?.first_chunk()?);
        if (level, kind) == (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) {
            let seconds = u64::from_ne_bytes(*control.get(HEADER..)?.first_chunk()?);
            let nanoseconds = u64::from_ne_bytes(*control.get(HEADER + 8..)?.first_chunk()?);
            return seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds);
        }
        control = control.get(length.max(HEADER).next_multiple_of(8)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_kernel_form_and_agree_with_socket2() {
        for text in ["127.0.0.1:2427", "203.0.113.9:65535", "[::1]:2427", "[fe80::1%3]:1"] {
            let address: SocketAddr = text.parse().expect("an address");
            let raw = RawAddress::from(address);
            assert_eq!(RawAddress::parse(&raw.bytes), Some(address));
            assert_eq!(raw.len(), socket2::SockAddr::from(address).len());
        }
        assert_eq!(RawAddress::parse(&[]), None);
        assert_eq!(RawAddress::parse(&[0; 28]), None);
        assert_eq!(RawAddress::parse(&RawAddress::from(SocketAddr::from(([1; 4], 1))).bytes[..7]), None);
    }

    #[test]
    fn sockets_are_set_up_as_asked() {
        let settings = SocketSettings { dscp: 24, receive_buffer: 1 << 16, shared: true, ..SocketSettings::default() };
        let sockets = bind(&[SocketAddr::from(([127, 0, 0, 1], 0))], &settings).expect("loopback can be bound");
        let socket = socket2::SockRef::from(&sockets[0]);
        assert_eq!(socket.tos_v4().expect("read"), 24 << 2);
        // The kernel doubles what is asked for, for its own bookkeeping.
        assert_eq!(socket.recv_buffer_size().expect("read"), 2 << 16);
        assert!(socket.reuse_port().expect("read") && socket.nonblocking().expect("read"));
        if let Ok(sockets) = bind(&[SocketAddr::from((Ipv6Addr::LOCALHOST, 0))], &settings) {
            let socket = socket2::SockRef::from(&sockets[0]);
            assert!(socket.only_v6().expect("read"));
            assert_eq!(socket.tclass_v6().expect("read"), 24 << 2);
        }
    }

    #[test]
    fn an_address_that_cannot_be_bound_is_named() {
        let elsewhere: SocketAddr = "203.0.113.7:2427".parse().expect("an address");
        assert!(bind(&[elsewhere], &SocketSettings::default()).is_err_and(|e| e.to_string().contains("203.0.113.7:2427")));
    }

    #[test]
    fn the_timestamp_is_found_behind_other_messages() {
        let message = |kind: i32, payload: &[u8]| {
            let mut bytes = (16 + payload.len()).to_ne_bytes().to_vec();
            bytes.extend(libc::SOL_SOCKET.to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(payload);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            bytes
        };
        let stamp = [3u64.to_ne_bytes(), 5u64.to_ne_bytes()].concat();
        let mut control = message(libc::SO_RXQ_OVFL, &[1, 2, 3, 4]);
        assert_eq!(receive_timestamp(&control), None);
        control.extend(message(libc::SO_TIMESTAMPNS, &stamp));
        assert_eq!(receive_timestamp(&control), Some(3_000_000_005));
        for cut in 0..control.len() {
            assert_eq!(receive_timestamp(&control[..cut]), None);
        }
        assert_eq!(receive_timestamp(&[0; 64]), None, "a length of zero does not loop");
    }
}
