//! Agents known by name: what a name server says about them, good or bad, and what operators see of it.

use super::agent::Agent;
use super::gateway::{Gateway, SOON, Tuning, eventually};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

/// A name server that answers every question for an IPv4 address with these, to be kept for a second.
struct NameServer {
    address: SocketAddr,
    answer: Arc<Mutex<Vec<Ipv4Addr>>>,
}

impl NameServer {
    fn start(first: &[Ipv4Addr]) -> NameServer {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let answer = Arc::new(Mutex::new(first.to_vec()));
        let given = answer.clone();
        // It ends with the process.
        std::thread::spawn(move || {
            let mut query = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut query) {
                let list = given.lock().unwrap().clone();
                let _ = socket.send_to(&respond(&query[..length], &list), from);
            }
        });
        NameServer { address, answer }
    }

    fn say(&self, list: &[Ipv4Addr]) {
        *self.answer.lock().unwrap() = list.to_vec();
    }
}

fn respond(query: &[u8], list: &[Ipv4Addr]) -> Vec<u8> {
    let end = 12 + query[12..].iter().position(|&byte| byte == 0).unwrap() + 5;
    let list = if query[end - 3] == 1 { list } else { &[] };
    // The name of each record points at the question's.
    let record = |ip: &Ipv4Addr| [&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4][..], &ip.octets()].concat();
    let records: Vec<u8> = list.iter().flat_map(record).collect();
    [&query[..2], &[0x85, 0x80, 0, 1, 0, list.len() as u8, 0, 0, 0, 0], &query[12..end], &records].concat()
}

fn ip(address: SocketAddr) -> Ipv4Addr {
    match address {
        SocketAddr::V4(v4) => *v4.ip(),
        SocketAddr::V6(_) => panic!("{address}"),
    }
}

fn by_name(first: impl Fn(&Tuning) -> Vec<Ipv4Addr>) -> (NameServer, Tuning) {
    let tuning = Tuning::new();
    let server = NameServer::start(&first(&tuning));
    let tuning = tuning
        .set("agent.0.hosts", "[\"ca.test\"]")
        .set("agent.0.addresses", "[]")
        .set("agent.0.notify", "[]")
        .set("dns.servers", &format!("[{:?}]", server.address.to_string()));
    (server, tuning)
}

fn unresolved(gateway: &Gateway) -> Option<Value> {
    gateway.rows(&["alarms"]).into_iter().find(|alarm| alarm["kind"] == "unresolved")
}

/// The total of a counter no core has.
fn total(gateway: &Gateway, name: &str) -> u64 {
    let all = gateway.show(&["counters", name]);
    all["counters"]["counters"][0]["total"].as_u64().unwrap_or_else(|| panic!("{all}"))
}

/// An answer that no machine can have changes nothing: the agent goes on, and an alarm says what is wrong until it is mended.
#[test]
fn an_answer_of_no_use_takes_no_agent_away() {
    let (server, tuning) = by_name(|tuning| vec![ip(tuning.addresses.agent())]);
    let gateway = Gateway::start(tuning);
    let mut agent = Agent::of(&gateway);
    agent.create("ds/ds3-1/ds1-1/1");
    assert!(unresolved(&gateway).is_none());
    server.say(&[Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 1), Ipv4Addr::new(0, 0, 0, 7)]);
    let alarm = eventually("an alarm", SOON, || unresolved(&gateway));
    assert_eq!((&alarm["name"], &alarm["severity"]), (&"ca".into(), &"minor".into()), "{alarm}");
    assert!(alarm["what"].as_str().unwrap().contains("ca.test: all of its addresses in the DNS are of no use"), "{alarm}");
    agent.create("ds/ds3-1/ds1-1/2");
    assert_eq!(gateway.rows(&["agents"])[0]["addresses"].as_array().unwrap().len(), 1);
    assert!(total(&gateway, "dns_addresses_unfit") >= 4 && total(&gateway, "dns_failures") >= 1);
    let said = |words: &str| gateway.log().lines().filter(|line| line.contains(words)).count();
    eventually("the log has it", SOON, || (said("ca: ca.test: all of its addresses") > 0).then_some(()));
    server.say(&[ip(gateway.tuning.addresses.agent())]);
    eventually("the alarm ends", SOON, || unresolved(&gateway).is_none().then_some(()));
    assert_eq!(said("0.0.0.0 is left out: the wildcard"), 1, "{}", gateway.log());
    agent.create("ds/ds3-1/ds1-1/3");
    gateway.assert_sound();
}

/// A name with more addresses than fit: those in use stay, and it is said what is left out.
#[test]
fn of_too_many_addresses_those_in_use_stay() {
    let (server, tuning) = by_name(|tuning| vec![ip(tuning.addresses.agent())]);
    let gateway = Gateway::start(tuning);
    let mut agent = Agent::of(&gateway);
    let mut many: Vec<Ipv4Addr> = (1..=39).map(|last| Ipv4Addr::new(127, 0, 9, last)).collect();
    many.push(ip(gateway.tuning.addresses.agent()));
    server.say(&many);
    let addresses = || gateway.rows(&["agents"])[0]["addresses"].as_array().unwrap().clone();
    eventually("the answer is taken", SOON, || (addresses().len() == 8).then_some(()));
    assert!(addresses().contains(&gateway.tuning.addresses.agent().ip().to_string().into()), "{:?}", addresses());
    agent.create("ds/ds3-1/ds1-1/1");
    eventually("it is counted", SOON, || (total(&gateway, "dns_addresses_left_out") >= 32).then_some(()));
    assert_eq!(gateway.log().matches("32 addresses are left out").count(), 1, "{}", gateway.log());
}

/// A gateway whose agent has no address at all says so, and goes on by itself when there is one.
#[test]
fn an_agent_without_an_address_is_an_alarm() {
    let (server, tuning) = by_name(|_| Vec::new());
    // The restart is tried again as for an agent that does not answer.
    let gateway = Gateway::start(tuning.set("timers.tdinit", "\"1s\"").set("timers.tdmin", "\"1s\""));
    let alarm = eventually("an alarm", SOON, || unresolved(&gateway));
    assert_eq!(alarm["severity"], "major", "{alarm}");
    assert!(alarm["what"].as_str().unwrap().contains("has no address"), "{alarm}");
    eventually("the log says it", SOON, || gateway.log().contains("ca: has no address").then_some(()));
    server.say(&[ip(gateway.tuning.addresses.agent())]);
    eventually("the alarm ends", SOON * 2, || unresolved(&gateway).is_none().then_some(()));
    let mut agent = Agent::of(&gateway);
    agent.create("ds/ds3-1/ds1-1/1");
}
