//! A stranger: nobody the gateway was told of, who sends what an agent would, forged answers to the gateway's commands among it. It must
//! never get a datagram, and nothing may come of what it sends (which the checks of the others show).

use super::actor::{Actor, Mail, Outbound};
use crate::proto::base::{Rng, Time};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The stranger.
pub struct Stranger {
    address: IpAddr,
    rng: Rng,
    next: Time,
    winding_down: bool,
    sent: u32,
}

impl Stranger {
    /// One that begins at `now`.
    pub fn new(address: IpAddr, now: Time, rng: Rng) -> Stranger {
        Stranger { address, rng, next: now, winding_down: false, sent: 0 }
    }

    fn datagram(&mut self) -> Vec<u8> {
        let id = 1 + self.rng.below(999_999_999);
        let endpoint = ["*", "ds/*", "ds/ds1-1/*", "ds/ds1-1/1", "ds/ds1-2/1", "ds/ds1-1/$"][self.rng.below(6) as usize];
        let command = match self.rng.below(8) {
            0 => format!("DLCX {id} {endpoint}@tgw.example.net MGCP 1.0\r\n"),
            1 => format!("CRCX {id} {endpoint}@tgw.example.net MGCP 1.0\r\nC: BAD\r\nM: recvonly\r\n"),
            2 => format!("RQNT {id} {endpoint}@tgw.example.net MGCP 1.0\r\nX: BAD\r\nN: x@[198.51.100.7]:2727\r\n"),
            3 => format!("AUEP {id} {endpoint}@tgw.example.net MGCP 1.0\r\nK: 1-999999999\r\n"),
            4 => format!("EPCF {id} {endpoint}@tgw.example.net MGCP 1.0\r\nB: e:A\r\n"),
            5 => format!("521 {id} REDIRECT\r\nN: x@[198.51.100.7]:2727\r\n"),
            6 => format!("000 {id}\r\n"),
            _ => format!("200 {id} OK\r\n"),
        };
        command.into_bytes()
    }
}

impl Actor for Stranger {
    fn owns(&self, address: IpAddr) -> bool {
        address == self.address
    }

    fn handle(&mut self, _: Time, mail: &Mail, _: &mut Vec<Outbound>) {
        panic!("a stranger was sent {:?}", String::from_utf8_lossy(&mail.bytes));
    }

    fn poll(&mut self, now: Time, out: &mut Vec<Outbound>) {
        if self.winding_down || now < self.next {
            return;
        }
        self.next = now + self.rng.duration(Duration::ZERO, Duration::from_millis(60));
        self.sent += 1;
        let bytes = self.datagram();
        out.push(Outbound { from: SocketAddr::new(self.address, 2727), local: 0, bytes });
    }

    fn deadline(&self) -> Time {
        if self.winding_down { Time::NEVER } else { self.next }
    }

    fn wind_down(&mut self, _: Time) {
        self.winding_down = true;
    }

    fn is_done(&self) -> bool {
        self.winding_down
    }

    fn pending(&self) -> String {
        String::new()
    }

    fn summary(&self) -> String {
        format!("{}: a stranger, {} datagrams", self.address, self.sent)
    }
}
