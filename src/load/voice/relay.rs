//! The network between two gateways, as bad as it is told to be: RTP and RTCP of a call pass through here, are lost and come late.

use crate::proto::base::{Rng, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

/// The longest packet.
const PACKET: usize = 1_500;
/// Packets taken from one socket in a turn.
const TURN: usize = 32;
/// Port pairs that are tried.
const TRIES: usize = 64;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Impairment {
    /// Share of packets lost, at random.
    pub loss: f64,
    /// A packet is late by up to so much, at random; packets overtake each other.
    pub jitter: Duration,
}

impl Impairment {
    pub fn is_none(&self) -> bool {
        self.loss == 0.0 && self.jitter.is_zero()
    }
}

/// A packet on its way: when it goes on, its ordinal, to which side, of which kind, its octets.
type Late = (Time, u64, usize, usize, Vec<u8>);

/// The two ends of a call's way.
pub struct Way {
    /// By side: the sockets of RTP and RTCP that face it.
    sides: [Side; 2],
    late: BinaryHeap<Reverse<Late>>,
    came: u64,
    pub lost: u64,
}

struct Side {
    sockets: [UdpSocket; 2],
    address: SocketAddr,
    /// Where its gateway receives.
    gateway: Option<SocketAddr>,
}

impl Side {
    fn open(address: IpAddr) -> io::Result<Side> {
        for _ in 0..TRIES {
            let rtp = UdpSocket::bind((address, 0))?;
            let address = rtp.local_addr()?;
            if address.port() % 2 == 1 {
                continue;
            }
            if let Ok(rtcp) = UdpSocket::bind((address.ip(), address.port() + 1)) {
                rtp.set_nonblocking(true)?;
                rtcp.set_nonblocking(true)?;
                return Ok(Side { sockets: [rtp, rtcp], address, gateway: None });
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }
}

impl Way {
    /// With a side at each of these addresses of this machine.
    ///
    /// # Errors
    /// No ports.
    pub fn open(addresses: [IpAddr; 2]) -> io::Result<Way> {
        let [a, b] = addresses;
        Ok(Way { sides: [Side::open(a)?, Side::open(b)?], late: BinaryHeap::new(), came: 0, lost: 0 })
    }

    /// The description of the gateway at `from`, as the other one is told it: its RTP comes here.
    pub fn through(&mut self, from: usize, description: &str) -> Option<String> {
        let line = |start: &str| description.lines().find_map(|line| line.strip_prefix(start));
        let address: IpAddr = line("c=")?.split_ascii_whitespace().nth(2)?.parse().ok()?;
        let port: u16 = line("m=audio ")?.split_ascii_whitespace().next()?.parse().ok()?;
        self.sides.get_mut(from)?.gateway = Some((address, port).into());
        let here = self.sides.get(1 - from)?.address;
        let family = if here.is_ipv4() { "IP4" } else { "IP6" };
        let rewrite = |line: &str| match line.strip_prefix("m=audio ") {
            Some(rest) => {
                let rest = rest.split_once(' ').map_or("", |(_, rest)| rest);
                format!("m=audio {} {rest}\r\n", here.port())
            }
            None if line.starts_with("c=") => format!("c=IN {family} {}\r\n", here.ip()),
            None => format!("{line}\r\n"),
        };
        Some(description.lines().map(rewrite).collect())
    }

    /// Takes what has come and sends on what is due.
    pub fn work(&mut self, now: Time, impairment: &Impairment, rng: &mut Rng) {
        let mut packet = [0; PACKET];
        let Way { sides, late, came, lost } = self;
        for (from, side) in sides.iter().enumerate() {
            for (kind, socket) in side.sockets.iter().enumerate() {
                for _ in 0..TURN {
                    // Nothing there, or an error about an earlier packet: both end the turn.
                    let Ok((length, _)) = socket.recv_from(&mut packet) else { break };
                    if rng.chance((impairment.loss * 1e6) as u32) {
                        *lost += 1;
                        continue;
                    }
                    *came += 1;
                    let wait = Duration::from_nanos(rng.below(impairment.jitter.as_nanos() as u64 + 1));
                    late.push(Reverse((now + wait, *came, 1 - from, kind, packet[..length].to_vec())));
                }
            }
        }
        while late.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((_, _, to, kind, octets))) = late.pop() else { break };
            if let Some(gateway) = sides[to].gateway {
                let _ = sides[to].sockets[kind].send_to(&octets, (gateway.ip(), gateway.port() + kind as u16));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn what_a_gateway_says_passes_through_and_its_description_leads_here() {
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let mut way = Way::open([here, here]).unwrap();
        let gateways = [(); 2].map(|()| UdpSocket::bind((here, 0)).unwrap());
        let mut told = Vec::new();
        for (side, gateway) in gateways.iter().enumerate() {
            let port = gateway.local_addr().unwrap().port();
            let description = format!("v=0\r\nc=IN IP4 127.0.0.1\r\nm=audio {port} RTP/AVP 0 97\r\na=ptime:20\r\n");
            let through = way.through(side, &description).unwrap();
            assert!(through.contains(" RTP/AVP 0 97\r\na=ptime:20\r\n") && !through.contains(&port.to_string()), "{through}");
            let port = through.split("audio ").nth(1).unwrap().split(' ').next().unwrap().parse::<u16>().unwrap();
            told.push(SocketAddr::from((here, port)));
        }
        let mut rng = Rng::new(1);
        for n in 0..100 {
            gateways[1].send_to(&[n], told[0]).unwrap();
        }
        let half = Impairment { loss: 0.5, jitter: Duration::from_millis(20) };
        for ms in 0..30 {
            way.work(Time::from_millis(ms), &half, &mut rng);
        }
        gateways[0].set_nonblocking(true).unwrap();
        let mut octets = [0; 8];
        let mut came = Vec::new();
        while let Ok((1, from)) = gateways[0].recv_from(&mut octets) {
            assert_eq!(from, told[1]);
            came.push(octets[0]);
        }
        assert!((30..70).contains(&came.len()) && came.len() as u64 + way.lost == 100 && !came.is_sorted(), "{came:?}");
    }
}
