//! Names of agents, looked up in the DNS (RFC 3435 4.1, 4.3).
//!
//! [`table`] knows what was answered, for how long it holds and what to ask next; this asks, with the stub resolver of the `domain`
//! crate on a runtime that belongs to the calling thread. Nothing here is called by a core.

pub mod fit;
pub mod table;

use domain::base::name::Name;
use domain::base::{Message, Rtype};
use domain::rdata::{A, Aaaa, Cname};
use domain::resolv::stub::StubResolver;
use domain::resolv::stub::conf::{ResolvConf, ServerConf, Transport};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The addresses of a name, and how long they hold.
pub type Found = (Vec<IpAddr>, Duration);

/// When the IPv4 or the IPv6 half of an answer is missing, the other half holds no longer than this.
const HALF_HOLDS: Duration = Duration::from_secs(30);

/// Asks name servers. Belongs to one thread.
pub struct Resolver {
    runtime: tokio::runtime::Runtime,
    stub: Arc<StubResolver>,
    within: Duration,
}

impl Resolver {
    /// Asks `servers`, or those of `/etc/resolv.conf` when there are none, and waits at most `within` for an answer.
    ///
    /// # Errors
    /// When the system gives the runtime no event queue.
    pub fn new(servers: &[SocketAddr], within: Duration) -> io::Result<Resolver> {
        let mut conf = if servers.is_empty() { ResolvConf::default() } else { ResolvConf::new() };
        conf.servers.extend(servers.iter().map(|&address| ServerConf::new(address, Transport::UdpTcp)));
        conf.options.timeout = within;
        conf.finalize();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Resolver { runtime, stub: Arc::new(StubResolver::from_conf(conf)), within })
    }

    /// Looks up all of `names` at once; `None` for one that got no answer with an address.
    pub fn look_up(&self, names: &[String]) -> Vec<(String, Option<Found>)> {
        let mut halves: BTreeMap<&str, Vec<Option<Found>>> = names.iter().map(|name| (name.as_str(), Vec::new())).collect();
        let answers = self.runtime.block_on(async {
            let mut asked = tokio::task::JoinSet::new();
            for (place, name) in names.iter().enumerate() {
                let Ok(name) = Name::<Vec<u8>>::from_str(name) else { continue };
                for kind in [Rtype::A, Rtype::AAAA] {
                    let (stub, name, within) = (self.stub.clone(), name.clone(), self.within);
                    asked.spawn(async move {
                        let answer = tokio::time::timeout(within, stub.query((name, kind))).await;
                        (place, answer.ok().and_then(Result::ok).and_then(|answer| read(&answer)))
                    });
                }
            }
            let mut answers = Vec::new();
            while let Some(answer) = asked.join_next().await {
                answers.extend(answer.ok());
            }
            answers
        });
        for (place, half) in answers {
            if let Some(halves) = names.get(place).and_then(|name| halves.get_mut(name.as_str())) {
                halves.push(half);
            }
        }
        halves.into_iter().map(|(name, halves)| (name.to_owned(), join(halves))).collect()
    }
}

/// IPv4 and IPv6 addresses together.
fn join(halves: Vec<Option<Found>>) -> Option<Found> {
    let missing = halves.iter().any(Option::is_none);
    let found = halves.into_iter().flatten().filter(|(list, _)| !list.is_empty());
    let (list, holds) = found.reduce(|(mut list, holds), (more, other)| {
        list.extend(more);
        (list, holds.min(other))
    })?;
    Some((list, if missing { holds.min(HALF_HOLDS) } else { holds }))
}

/// The addresses in an answer, perhaps none, behind aliases; it holds as long as the shortest-lived of its records.
fn read(answer: &Message<bytes::Bytes>) -> Option<Found> {
    let name = answer.canonical_name()?;
    let section = answer.answer().ok()?;
    let (mut list, mut holds) = (Vec::new(), Duration::MAX);
    for record in section.limit_to_in::<A>().flatten().filter(|record| *record.owner() == name) {
        list.push(IpAddr::V4(record.data().addr()));
        holds = holds.min(record.ttl().into_duration());
    }
    for record in section.limit_to_in::<Aaaa>().flatten().filter(|record| *record.owner() == name) {
        list.push(IpAddr::V6(record.data().addr()));
        holds = holds.min(record.ttl().into_duration());
    }
    for alias in section.limit_to_in::<Cname<_>>().flatten() {
        holds = holds.min(alias.ttl().into_duration());
    }
    Some((list, holds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// A name server on loopback: each name is an alias, or has IPv4 addresses; others do not exist. It ends with the process.
    fn server(alias: Option<(&'static str, &'static str)>, name: &'static str, last: &'static [u8]) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let _ = socket.send_to(&answer(&buffer[..length], alias, name, last), from);
            }
        });
        address
    }

    fn labels(name: &str) -> Vec<u8> {
        let labels = name.split('.').flat_map(|label| std::iter::once(label.len() as u8).chain(label.bytes()));
        labels.chain([0]).collect()
    }

    fn record(owner: &str, kind: u8, holds: u8, data: &[u8]) -> Vec<u8> {
        [&labels(owner)[..], &[0, kind, 0, 1, 0, 0, 0, holds, 0, data.len() as u8], data].concat()
    }

    fn answer(query: &[u8], alias: Option<(&str, &str)>, name: &str, last: &[u8]) -> Vec<u8> {
        let end = 12 + query[12..].iter().position(|&b| b == 0).unwrap() + 5;
        let (asked, four) = (query[12..end - 4].to_ascii_lowercase(), query[end - 3] == 1);
        let mut records = Vec::new();
        let alias = alias.filter(|(from, _)| asked == labels(from));
        records.extend(alias.map(|(from, to)| record(from, 5, 7, &labels(to))));
        let known = alias.is_some() || asked == labels(name);
        if four && known {
            records.extend(last.iter().map(|&last| record(name, 1, 60, &[192, 0, 2, last])));
        }
        let code = if known { 0 } else { 3 };
        [&query[..2], &[0x85, 0x80 | code, 0, 1, 0, records.len() as u8, 0, 0, 0, 0], &query[12..end], &records.concat()].concat()
    }

    fn look_up(servers: &[SocketAddr], name: &str) -> Option<Found> {
        let resolver = Resolver::new(servers, Duration::from_secs(5)).unwrap();
        resolver.look_up(&[name.to_owned()]).pop().unwrap().1
    }

    #[test]
    fn a_name_has_several_addresses_and_a_time_to_live() {
        // G-NET-09, G-NET-11
        let servers = [server(Some(("ca.example.net", "host7.example.net")), "host7.example.net", &[2, 1])];
        let (list, holds) = look_up(&servers, "host7.example.net").unwrap();
        assert_eq!((list, holds), (vec![[192, 0, 2, 2].into(), [192, 0, 2, 1].into()], Duration::from_secs(60)));
        let (list, holds) = look_up(&servers, "ca.example.net").unwrap();
        assert_eq!((list.len(), holds), (2, Duration::from_secs(7)), "an alias holds no longer than itself");
        assert_eq!(look_up(&servers, "other.example.net"), None);
    }

    #[test]
    fn without_a_name_server_there_is_no_answer_in_the_time_allowed() {
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
        let resolver = Resolver::new(&[nobody.local_addr().unwrap()], Duration::from_millis(50)).unwrap();
        let names: Vec<String> = (0..20).map(|n| format!("ca{n}.example.net")).collect();
        let answers = resolver.look_up(&names);
        assert_eq!((answers.len(), answers.iter().filter(|(_, found)| found.is_some()).count()), (20, 0));
    }
}
