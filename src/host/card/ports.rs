//! RTP ports of connections: held while a connection is up, looked at when the card works.

use crate::host::transport::burst::{BURST, Burst, Received};
use crate::host::transport::reports;
use crate::host::transport::{SocketSettings, bind};
use crate::proto::trunk::simulated::PortPool;
use crate::proto::voice::Kind;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// The buffers of an RTP socket, in octets: some tenths of a second.
const BUFFER: usize = 128 << 10;
/// Ports whose sockets are tried when others have those of the pool.
const TRIES: usize = 16;
/// Room for sockets that are ready.
const READY: usize = 4096;
/// Bursts taken from one socket in one turn: more would be a flood.
const BURSTS: usize = 2;

/// The ports of a card.
pub(super) struct Ports {
    address: IpAddr,
    pool: PortPool,
    dscp: u8,
    poll: Poll,
    events: Events,
    /// By connection.
    open: Box<[Option<Pair>]>,
    /// Sockets that had more than was taken.
    ready: Vec<usize>,
}

/// The sockets of a connection.
struct Pair {
    rtp: UdpSocket,
    rtcp: UdpSocket,
    port: u16,
    /// While somebody waits for reports that what is sent does not arrive (R/iu): so many, and how many have come.
    undelivered: Option<(u8, u8)>,
}

impl Pair {
    fn sockets(&self) -> [&UdpSocket; 2] {
        [&self.rtp, &self.rtcp]
    }

    /// Counts the reports that have come: the limit and the last code, when it is reached. Then nobody waits any more.
    fn reports(&mut self, is_v4: bool) -> Option<(u8, u8)> {
        let (limit, mut seen) = self.undelivered?;
        let mut last = None;
        for socket in self.sockets() {
            let waiting = std::iter::from_fn(|| reports::unreachable(socket.as_fd())).take(BURST).flatten();
            for code in waiting.take(usize::from(limit - seen)) {
                (seen, last) = (seen + 1, Some(code));
            }
        }
        if let Some(code) = last.filter(|_| seen >= limit) {
            for socket in self.sockets() {
                let _ = reports::ask(socket.as_fd(), is_v4, false);
            }
            self.undelivered = None;
            return Some((limit, code));
        }
        self.undelivered = Some((limit, seen));
        None
    }
}

impl Ports {
    /// Of this pool at this address, for connections in slots below `connections`.
    ///
    /// # Errors
    /// What the machine refused.
    pub fn new(address: IpAddr, pool: PortPool, connections: u32, dscp: u8) -> io::Result<Ports> {
        let open = (0..connections).map(|_| None).collect();
        Ok(Ports { address, pool, dscp, poll: Poll::new()?, events: Events::with_capacity(1024), open, ready: Vec::with_capacity(READY) })
    }

    /// Where all connections receive.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The port of a connection.
    pub fn port(&self, connection: u32) -> Option<u16> {
        Some(self.open.get(connection as usize)?.as_ref()?.port)
    }

    /// Opens a pair of ports for a connection that has none; `None` when there is none left.
    pub fn open(&mut self, connection: u32, type_of_service: Option<u8>) -> Option<u16> {
        let place = connection as usize;
        if self.open.get(place)?.is_some() {
            return None;
        }
        for _ in 0..TRIES {
            let port = self.pool.take()?;
            // Somebody else may have it: then it comes to the end of the line.
            match self.bind(place, port, type_of_service) {
                Ok(pair) => {
                    *self.open.get_mut(place)? = Some(pair);
                    return Some(port);
                }
                Err(_) => self.pool.give_back(port),
            }
        }
        None
    }

    fn bind(&self, place: usize, port: u16, type_of_service: Option<u8>) -> io::Result<Pair> {
        let dscp = type_of_service.map_or(self.dscp, |octet| octet >> 2);
        let settings = SocketSettings { receive_buffer: BUFFER, send_buffer: BUFFER, dscp, timestamps: false, ..SocketSettings::media() };
        let addresses = [port, port + 1].map(|port| SocketAddr::new(self.address, port));
        let mut sockets = bind(&addresses, &settings)?.into_iter();
        let (Some(rtp), Some(rtcp)) = (sockets.next(), sockets.next()) else { return Err(io::ErrorKind::NotFound.into()) };
        for (socket, kind) in [(&rtp, 0), (&rtcp, 1)] {
            self.poll.registry().register(&mut SourceFd(&socket.as_raw_fd()), Token(place * 2 + kind), Interest::READABLE)?;
        }
        Ok(Pair { rtp, rtcp, port, undelivered: None })
    }

    /// Changes the type of service octet of what a connection sends.
    pub fn mark(&self, connection: u32, type_of_service: Option<u8>) {
        let Some(Some(pair)) = self.open.get(connection as usize) else { return };
        let octet = type_of_service.unwrap_or(self.dscp << 2).into();
        for socket in pair.sockets() {
            let socket = socket2::SockRef::from(socket);
            // A refusal leaves it as it was, which is no reason to refuse the connection.
            let _ = if self.address.is_ipv4() { socket.set_tos_v4(octet) } else { socket.set_tclass_v6(octet) };
        }
    }

    /// From now on reports are counted that what a connection sends cannot be delivered; [`Ports::receive`] tells of so many, once.
    pub fn count_undelivered(&mut self, connection: u32, limit: u8) {
        let is_v4 = self.address.is_ipv4();
        let Some(Some(pair)) = self.open.get_mut(connection as usize) else { return };
        // What came before is not counted: off and on again empties the queue. A kernel that refuses has none to tell of.
        for (socket, on) in [false, true].into_iter().flat_map(|on| pair.sockets().map(|socket| (socket, on))) {
            let _ = reports::ask(socket.as_fd(), is_v4, on);
        }
        pair.undelivered = Some((limit.max(1), 0));
    }

    /// Gives the ports of a connection back.
    pub fn close(&mut self, connection: u32) {
        if let Some(pair) = self.open.get_mut(connection as usize).and_then(Option::take) {
            self.pool.give_back(pair.port);
        }
    }

    /// Sends a packet of a connection; `to` is the RTP address of the far end for both kinds.
    pub fn send(&self, connection: u32, to: SocketAddr, kind: Kind, octets: &[u8]) {
        let Some(Some(pair)) = self.open.get(connection as usize) else { return };
        // What the kernel refuses is lost on the way, as far as the far end can see.
        let (socket, to) = match kind {
            Kind::Rtp => (&pair.rtp, to),
            Kind::Rtcp => match to.port().checked_add(1) {
                Some(port) => (&pair.rtcp, SocketAddr::new(to.ip(), port)),
                None => return,
            },
        };
        // With reports on, the call after one fails, whatever it is about.
        let sent = socket.send_to(octets, to);
        if sent.is_err() && pair.undelivered.is_some() {
            let _ = socket.send_to(octets, to);
        }
    }

    /// Hands what has arrived to `take`: connection, kind and datagram; and to `lost` a connection of which as many reports have come as
    /// are waited for ([`Ports::count_undelivered`]), how many, and the code of the last.
    pub fn receive(&mut self, burst: &mut Burst, mut take: impl FnMut(u32, Kind, &Received<'_>), mut lost: impl FnMut(u32, u8, u8)) {
        let Ports { poll, events, open, ready, address, .. } = self;
        // An interrupted look is made up for at the next one.
        if poll.poll(events, Some(Duration::ZERO)).is_err() {
            return;
        }
        // A socket that is there already gets a second, empty look at the worst.
        ready.extend(events.iter().map(|event| event.token().0));
        ready.retain(|&token| {
            let Some(Some(pair)) = open.get_mut(token / 2) else { return false };
            if let Some((limit, code)) = pair.reports(address.is_ipv4()) {
                lost((token / 2) as u32, limit, code);
            }
            let (socket, kind) = if token % 2 == 0 { (&pair.rtp, Kind::Rtp) } else { (&pair.rtcp, Kind::Rtcp) };
            for _ in 0..BURSTS {
                // A report may have come since: that fails once.
                let count = burst.receive(socket.as_fd()).or_else(|_| burst.receive(socket.as_fd())).unwrap_or(0);
                for received in (0..count).filter_map(|place| burst.get(place)) {
                    take((token / 2) as u32, kind, &received);
                }
                if count < BURST {
                    return false;
                }
            }
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn ports(first: u16, pairs: u16) -> Ports {
        Ports::new(HERE, PortPool::new(first..=first + 2 * pairs - 1, 0, 1), 8, 46).unwrap()
    }

    #[test]
    fn ports_are_held_while_a_connection_is_up_and_there_are_no_more_than_the_pool_has() {
        let mut ports = ports(47_110, 2);
        let first = ports.open(3, None).unwrap();
        assert_eq!((first % 2, ports.port(3)), (0, Some(first)));
        assert!(UdpSocket::bind((HERE, first)).is_err() && UdpSocket::bind((HERE, first + 1)).is_err());
        assert!(ports.open(3, None).is_none() && ports.open(99, None).is_none());
        let second = ports.open(4, Some(0xB8)).unwrap();
        assert!(second != first && ports.open(5, None).is_none());
        ports.close(3);
        assert_eq!(ports.open(5, None), Some(first));
    }

    #[test]
    fn a_port_that_somebody_else_has_is_passed_over() {
        let other = UdpSocket::bind((HERE, 47_121)).unwrap();
        let mut ports = ports(47_120, 2);
        assert_eq!(ports.open(0, None), Some(47_122));
        drop(other);
        assert_eq!(ports.open(1, None), Some(47_120));
    }

    /// G-LCO-05: the type of service octet that an agent asks for is on RTP and RTCP, the configured code point else.
    #[test]
    fn packets_are_marked_as_the_agent_asks() {
        let mut ports = ports(47_140, 2);
        let octets = |ports: &Ports, connection: usize| {
            let pair = ports.open[connection].as_ref().unwrap();
            [&pair.rtp, &pair.rtcp].map(|socket| socket2::SockRef::from(socket).tos_v4().unwrap())
        };
        ports.open(0, None).unwrap();
        ports.open(1, Some(0x68)).unwrap();
        assert_eq!((octets(&ports, 0), octets(&ports, 1)), ([46 << 2; 2], [0x68; 2]));
        ports.mark(1, Some(0x20));
        ports.mark(0, None);
        assert_eq!((octets(&ports, 0), octets(&ports, 1)), ([46 << 2; 2], [0x20; 2]));
    }

    #[test]
    fn packets_go_out_and_come_in_by_connection_and_kind() {
        let mut ports = ports(47_130, 2);
        let (a, b) = (ports.open(0, None).unwrap(), ports.open(1, None).unwrap());
        let to_b = SocketAddr::new(HERE, b);
        for n in 0..40 {
            ports.send(0, to_b, Kind::Rtp, &[n]);
        }
        ports.send(0, to_b, Kind::Rtcp, &[200]);
        let mut burst = Burst::new(64);
        let mut seen = Vec::new();
        for _ in 0..3 {
            let take = |connection, kind, received: &Received<'_>| {
                let from = a + u16::from(kind == Kind::Rtcp);
                assert_eq!((connection, received.from), (1, SocketAddr::new(HERE, from)));
                seen.push(received.octets[0]);
            };
            ports.receive(&mut burst, take, |_, _, _| {});
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..40).chain([200]).collect::<Vec<u8>>());
    }

    /// R/iu: packets to a port that nobody has are reported; so many are told of, with the code of the last, and packets go on to leave and to
    /// come meanwhile.
    #[test]
    fn reports_that_nothing_arrives_are_counted_while_somebody_waits() {
        let mut ports = ports(47_150, 2);
        let (a, b) = (ports.open(0, None).unwrap(), ports.open(1, None).unwrap());
        let nobody = SocketAddr::new(HERE, 47_190);
        let mut burst = Burst::new(64);
        let mut told = Vec::new();
        let mut look = |ports: &mut Ports, told: &mut Vec<_>| {
            let mut came = 0;
            ports.receive(&mut burst, |_, _, _| came += 1, |connection, count, code| told.push((connection, count, code)));
            came
        };
        for (waits, expected) in [(false, vec![]), (true, vec![(0, 5, 3)]), (true, vec![(0, 5, 3)]), (false, vec![])] {
            if waits {
                ports.count_undelivered(0, 5);
            }
            let mut came = 0;
            for n in 0..12 {
                ports.send(0, nobody, if n % 2 == 0 { Kind::Rtp } else { Kind::Rtcp }, &[n]);
                ports.send(0, SocketAddr::new(HERE, b), Kind::Rtp, &[n]);
                ports.send(1, SocketAddr::new(HERE, a), Kind::Rtp, &[n]);
                came += look(&mut ports, &mut told);
            }
            came += look(&mut ports, &mut told);
            assert_eq!(std::mem::take(&mut told), expected);
            assert_eq!(came, 24, "nothing is lost for it");
        }
    }
}
