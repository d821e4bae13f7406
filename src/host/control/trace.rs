//! `trace`: what is received and sent, as it happens, to one operator at a time.
//!
//! The answer to the request is one line as always; behind it comes a line for each datagram that fits, until so many have passed, the
//! time is over, or the operator goes away. Keys of media are stars in it.

use super::Gateway;
use super::names;
use super::protocol::{Failure, FailureKind, Request, Timed};
use crate::host::clock;
use crate::host::tap::{Captured, Tapped};
use crate::proto::base::Time;
use crate::proto::codec::peek::{self, Peek};
use crate::proto::codec::sdp::crypto;
use crate::proto::plan::STREAM;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Transactions whose responses are looked out for.
const TRANSACTIONS: usize = 4096;
/// How long a line may take to pass.
const LINE_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked whether the operator is still there.
const LOOK: Duration = Duration::from_millis(100);
/// The longest trace.
pub const SECONDS_MAX: u32 = 86_400;

/// One line of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceLine {
    /// A datagram.
    Datagram(TraceRow),
    /// So many were too fast for the trace.
    Lost(u64),
}

/// A datagram.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TraceRow {
    /// When, in microseconds since 1970.
    pub at_us: u64,
    /// The core that received or sent it.
    pub core: u8,
    /// Whether the gateway sent it.
    pub sent: bool,
    /// The gateway's address.
    pub local: String,
    /// The other side's.
    pub remote: String,
    /// The agent that is there; nothing for somebody else.
    pub agent: Option<String>,
    /// Its octets, two hexadecimal digits each.
    pub octets: String,
}

impl TraceRow {
    /// Its octets; none when they cannot be read.
    pub fn bytes(&self) -> Vec<u8> {
        let digits: Vec<u8> = self.octets.bytes().filter_map(|digit| char::from(digit).to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }
}

/// What is traced.
#[derive(Default)]
struct Filter {
    name: Option<String>,
    call: Option<String>,
    /// Transactions of commands that fitted, and whether they were ours.
    ids: VecDeque<(u32, bool)>,
}

impl Filter {
    /// Whether one of the messages is about what is asked for, or answers one that was.
    fn takes(&mut self, sent: bool, datagram: &[u8]) -> bool {
        if self.name.is_none() && self.call.is_none() {
            return true;
        }
        let mut any = false;
        for (range, peek) in peek::split(datagram) {
            match peek {
                Peek::Command(line) => {
                    let message = datagram.get(range).unwrap_or_default();
                    if self.fits(line.endpoint, message) {
                        any = true;
                        self.ids.truncate(TRANSACTIONS - 1);
                        self.ids.push_front((line.id, sent));
                    }
                }
                Peek::Response { id, .. } => any |= self.ids.contains(&(id, !sent)),
                Peek::Unreadable => {}
            }
        }
        any
    }

    /// Whether a message of H.248 names the channel, which has no hyphens there. There are no calls that one could ask for, only contexts.
    fn takes_h248(&self, message: &[u8]) -> bool {
        let text = message.to_ascii_lowercase();
        let named = |name: &String| {
            let name = name.replace('-', "_").to_ascii_lowercase();
            let mut words = text.split(|byte| !(byte.is_ascii_alphanumeric() || b"_/*$".contains(byte)));
            words.any(|word| word.contains(&b'/') && names::fits(&name, &String::from_utf8_lossy(word)))
        };
        self.call.is_none() && self.name.as_ref().is_none_or(named)
    }

    fn fits(&self, endpoint: &[u8], message: &[u8]) -> bool {
        let local = endpoint.split(|&byte| byte == b'@').next().unwrap_or_default();
        let local = String::from_utf8_lossy(local);
        // A wildcard in the message covers the name, as one in the name covers the message.
        let name = self.name.as_ref().is_none_or(|name| names::fits(name, &local) || names::fits(&local, name));
        name && self.call.as_ref().is_none_or(|call| call_of(message).is_some_and(|found| found.eq_ignore_ascii_case(call)))
    }
}

/// The call identifier of a command, however broken the rest is.
fn call_of(message: &[u8]) -> Option<String> {
    let mut lines = message.split(|&byte| byte == b'\n').skip(1);
    let value = lines.find_map(|line| line.strip_prefix(b"C:").or_else(|| line.strip_prefix(b"c:")))?;
    Some(String::from_utf8_lossy(value).trim().to_owned())
}

impl Gateway {
    /// Traces until it is over; `begin` says to the operator that it begins.
    pub(super) fn trace(&self, stream: &UnixStream, request: &Request, begin: impl FnOnce(String)) -> Result<(), Failure> {
        let Request::Trace { name, agent, call, seconds, count } = request else { return Ok(()) };
        let refuse = |kind, message: String| Failure::new(kind, message);
        if let Some(agent) = agent
            && !self.config().agents.iter().any(|known| known.name == *agent)
            && !self.cores.plan.gateways.iter().any(|gateway| gateway.name == *agent)
        {
            return Err(refuse(FailureKind::Unknown, format!("{agent}: no agent and no H.248 gateway has this name")));
        }
        if seconds.is_some_and(|seconds| seconds > SECONDS_MAX) {
            return Err(refuse(FailureKind::BadRequest, format!("a trace lasts {SECONDS_MAX} seconds at the most")));
        }
        let Some(tapped) = self.cores.tap.open() else {
            return Err(refuse(FailureKind::Busy, "somebody else traces".into()));
        };
        let name = name.as_deref().map(|name| name.split('@').next().unwrap_or_default().to_owned());
        let filter = Filter { name, call: call.clone(), ids: VecDeque::new() };
        begin("tracing".into());
        let until = self.clock.now() + Duration::from_secs(seconds.unwrap_or(SECONDS_MAX).into());
        self.pass_on(stream, &tapped, filter, agent.as_deref(), until, count.unwrap_or(u64::MAX));
        Ok(())
    }

    fn pass_on(&self, stream: &UnixStream, tapped: &Tapped<'_>, mut filter: Filter, agent: Option<&str>, until: Time, mut left: u64) {
        let wall_us = clock::wall_us_at_zero(&self.clock);
        let mut agents = self.agent_addresses();
        let mut looked = self.clock.now();
        while left > 0 && self.clock.now() < until {
            if self.clock.now().since(looked) >= LOOK {
                looked = self.clock.now();
                agents = self.agent_addresses();
                if is_gone(stream) {
                    return;
                }
            }
            let lost = tapped.take_lost();
            if lost > 0 && self.write(stream, &TraceLine::Lost(lost)).is_none() {
                return;
            }
            let Some(captured) = tapped.next(LOOK.min(until.since(self.clock.now()))) else { continue };
            let gateway = self.gateway_served_at(captured.local);
            let known = agents.iter().find(|(ip, _)| ip.is_none_or(|ip| ip == captured.remote.ip())).map(|(_, name)| name.clone());
            let known = gateway.map(str::to_owned).or(known);
            let fits = if gateway.is_some() { filter.takes_h248(&captured.bytes) } else { filter.takes(captured.sent, &captured.bytes) };
            if (agent.is_some() && known.as_deref() != agent) || !fits {
                continue;
            }
            left -= 1;
            if self.write(stream, &TraceLine::Datagram(self.trace_row(wall_us, &captured, known))).is_none() {
                return;
            }
        }
    }

    /// Each address of an agent, then who may come from anywhere.
    fn agent_addresses(&self) -> Vec<(Option<IpAddr>, String)> {
        let settings = (self.settings)(&self.config(), &self.known());
        let listed = settings.agents.iter().flat_map(|agent| agent.addresses.iter().map(|ip| (Some(*ip), agent.name.clone())));
        let any = settings.agents.iter().filter(|agent| agent.any_address).map(|agent| (None, agent.name.clone()));
        listed.chain(any).collect()
    }

    fn trace_row(&self, wall_us: u64, captured: &Captured, agent: Option<String>) -> TraceRow {
        let local = self.cores.plan.listen.get(usize::from(captured.local & !STREAM)).map(ToString::to_string).unwrap_or_default();
        TraceRow {
            at_us: wall_us + captured.at.0 / 1000,
            core: captured.core.0,
            sent: captured.sent,
            local,
            remote: captured.remote.to_string(),
            agent,
            octets: shown(&captured.bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    fn write(&self, stream: &UnixStream, line: &TraceLine) -> Option<()> {
        let line = serde_json::to_vec(line).ok()?;
        Timed::new(stream, self.clock, LINE_WITHIN).write_line(line).ok()
    }
}

/// A datagram as it is shown: without the keys in it.
fn shown(datagram: &[u8]) -> Vec<u8> {
    let mut shown = datagram.to_vec();
    crypto::mask(&mut shown);
    shown
}

/// Whether the operator has ended the connection. (More of a request is nothing.)
fn is_gone(mut stream: &UnixStream) -> bool {
    if stream.set_nonblocking(true).is_err() {
        return true;
    }
    let gone = match stream.read(&mut [0; 64]) {
        Ok(length) => length == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock && error.kind() != ErrorKind::Interrupted,
    };
    gone || stream.set_nonblocking(false).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_h248_is_taken_by_the_channel_it_names() {
        let filter = |name: Option<&str>, call: Option<&str>| Filter {
            name: name.map(str::to_owned),
            call: call.map(str::to_owned),
            ids: VecDeque::new(),
        };
        let message = b"!/1 [192.0.2.1]:2944 T=1{C=${A=ds/DS1_7/3{M{O{MO=SR}}},A=$}}";
        assert!(filter(None, None).takes_h248(message));
        assert!(filter(Some("ds/ds1-7/3"), None).takes_h248(message) && filter(Some("ds/ds1-7/*"), None).takes_h248(message));
        assert!(!filter(Some("ds/ds1-7/4"), None).takes_h248(message) && !filter(None, Some("5")).takes_h248(message));
    }

    #[test]
    fn a_filter_takes_a_command_and_what_answers_it() {
        let filter = |name: Option<&str>, call: Option<&str>| Filter {
            name: name.map(str::to_owned),
            call: call.map(str::to_owned),
            ids: VecDeque::new(),
        };
        let create = b"CRCX 7 ds/ds3-1/ds1-5/17@gw MGCP 1.0\r\nC: a1\r\nM: recvonly\r\n";
        let restart = b"RSIP 9 ds/ds3-1/*@gw MGCP 1.0\r\nRM: restart\r\n";
        let mut one = filter(Some("ds/ds3-1/ds1-5/17"), None);
        assert!(one.takes(false, create) && one.takes(true, b"200 7 OK\r\n"));
        assert!(!one.takes(false, b"200 7 OK\r\n"), "the other side's 7");
        assert!(one.takes(true, restart) && one.takes(false, b"200 9 OK\r\n"), "a wildcard covers it");
        assert!(!one.takes(false, b"CRCX 8 ds/ds3-1/ds1-5/18@gw MGCP 1.0\r\nC: a1\r\n") && !one.takes(true, b"200 8 OK\r\n"));
        let piggyback = [&restart[..], b".\r\n", create].concat();
        assert!(filter(Some("ds/ds3-1/ds1-5/*"), None).takes(false, &piggyback));
        let mut call = filter(None, Some("A1"));
        assert!(call.takes(false, create) && !call.takes(true, restart));
        assert!(filter(None, None).takes(false, b"\xff"));
        let mut bounded = filter(Some("*"), None);
        for id in 1..=2 * TRANSACTIONS {
            assert!(bounded.takes(true, format!("AUEP {id} x@gw MGCP 1.0\r\n").as_bytes()));
        }
        assert_eq!(bounded.ids.len(), TRANSACTIONS);
    }

    #[test]
    fn octets_come_back_as_they_were() {
        let row =
            TraceRow { at_us: 0, core: 0, sent: true, local: String::new(), remote: String::new(), agent: None, octets: "00ff0d0a".into() };
        assert_eq!(row.bytes(), [0, 255, 13, 10]);
    }
}
