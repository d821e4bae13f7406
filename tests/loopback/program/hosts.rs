//! Agents known by name: what a name server says about them, good or bad, and what operators see of it.

use super::agent::Agent;
use super::gateway::{Gateway, SOON, Tuning, eventually, pause};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A name server that answers every question for an IPv4 address with these, to be kept for so many seconds.
struct NameServer {
    address: SocketAddr,
    answer: Arc<Mutex<Vec<Ipv4Addr>>>,
    /// Questions for an IPv4 address that came.
    asked: Arc<AtomicU32>,
}

impl NameServer {
    fn start(first: &[Ipv4Addr], keep: u32) -> NameServer {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let answer = Arc::new(Mutex::new(first.to_vec()));
        let asked = Arc::new(AtomicU32::new(0));
        let (given, count) = (answer.clone(), asked.clone());
        // It ends with the process.
        std::thread::spawn(move || {
            let mut query = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut query) {
                let list = given.lock().unwrap().clone();
                let (response, is_address) = respond(&query[..length], &list, keep);
                count.fetch_add(u32::from(is_address), Ordering::Relaxed);
                let _ = socket.send_to(&response, from);
            }
        });
        NameServer { address, answer, asked }
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }

    fn say(&self, list: &[Ipv4Addr]) {
        *self.answer.lock().unwrap() = list.to_vec();
    }
}

/// The response, and whether the question was for an IPv4 address.
fn respond(query: &[u8], list: &[Ipv4Addr], keep: u32) -> (Vec<u8>, bool) {
    let end = 12 + query[12..].iter().position(|&byte| byte == 0).unwrap() + 5;
    let is_address = query[end - 3] == 1;
    let list = if is_address { list } else { &[] };
    // The name of each record points at the question's.
    let record = |ip: &Ipv4Addr| [&[0xc0, 12, 0, 1, 0, 1][..], &keep.to_be_bytes(), &[0, 4], &ip.octets()].concat();
    let records: Vec<u8> = list.iter().flat_map(record).collect();
    let head = [0x85, 0x80, 0, 1, 0, list.len() as u8, 0, 0, 0, 0];
    ([&query[..2], &head, &query[12..end], &records].concat(), is_address)
}

fn ip(address: SocketAddr) -> Ipv4Addr {
    match address {
        SocketAddr::V4(v4) => *v4.ip(),
        SocketAddr::V6(_) => panic!("{address}"),
    }
}

fn by_name(first: impl Fn(&Tuning) -> Vec<Ipv4Addr>) -> (NameServer, Tuning) {
    by_name_kept(1, first)
}

fn by_name_kept(seconds: u32, first: impl Fn(&Tuning) -> Vec<Ipv4Addr>) -> (NameServer, Tuning) {
    let tuning = Tuning::new();
    let server = NameServer::start(&first(&tuning), seconds);
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

/// G-RTX-09, G-RTX-10, G-RTX-11, G-NET-11: an answer is kept for its time to live, but for an agent that does not answer: its name is asked for
/// again after Max1 repeats and after Max2, each as it is switched.
#[test]
fn an_agent_that_does_not_answer_is_looked_up_again() {
    // With the switch of Max1 alone, Max2 is not reached.
    let cases = [(true, false, 20, 2), (false, true, 2, 2), (false, false, 2, 1)];
    let running = cases.map(|(at_max1, at_max2, max2, expected)| {
        let (server, tuning) = by_name_kept(3_600, |tuning| vec![ip(tuning.addresses.agent())]);
        let tuning = tuning.set("dns.query_at_max1", &at_max1.to_string()).set("dns.query_at_max2", &at_max2.to_string());
        let gateway = Gateway::start(tuning.set("timers.max1", "1").set("timers.max2", &max2.to_string()));
        let agent = Agent::of(&gateway);
        (server, gateway, agent, expected)
    });
    // What was answered within 5 s is not asked for again (RFC 3435 4.3).
    pause(Duration::from_millis(5_100));
    for (server, gateway, ..) in &running {
        assert_eq!(server.asked(), 1, "the answer is kept");
        gateway.order(&["block", "ds/ds3-1/ds1-1", "--force"]);
    }
    for (nth, (server, gateway, _agent, expected)) in running.iter().enumerate() {
        let is_over = || if *expected == 2 { server.asked() == 2 } else { gateway.counter("own_lost") > 0 };
        eventually(&format!("case {nth} is over"), SOON, || is_over().then_some(()));
        assert_eq!(server.asked(), *expected, "case {nth}");
        gateway.assert_sound();
    }
}
