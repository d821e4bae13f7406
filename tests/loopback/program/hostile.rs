//! Datagrams from people who mean harm, or have a bad day (must hold 4).

use super::agent::Agent;
use super::gateway::{Gateway, SOON, Tuning, Watch, eventually};
use std::time::Duration;
use tollgate::proto::base::Rng;
use tollgate::proto::codec::exercise::{HOSTILE_UNITS, hostile};

/// How long; in seconds in the environment, for the five minutes of the requirement.
const SECONDS: &str = "TOLLGATE_HOSTILE_SECONDS";
const SECONDS_DEFAULT: u64 = 20;
/// What the process may grow by once everything was touched, in KiB.
const GROWTH_MAX: u64 = 8 << 10;

/// Resident memory of a process, in KiB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Good commands to begin with.
const SEEDS: [&str; 8] = [
    "CRCX 1 ds/ds3-1/ds1-3/7@tgw.example.net MGCP 1.0\r\nC: A1\r\nM: sendrecv\r\nL: p:20, a:PCMU\r\n\r\nv=0\r\no=- 1 1 IN IP4 127.0.0.1\r\n\
     s=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 5000 RTP/AVP 0 8\r\na=ptime:20\r\n",
    "CRCX 2 ds/ds3-1/*/$@tgw.example.net MGCP 1.0\r\nC: B1\r\nM: recvonly\r\nZ2: ds/ds3-1/ds1-4/$@tgw.example.net\r\n",
    "MDCX 3 ds/ds3-1/ds1-3/7@tgw.example.net MGCP 1.0\r\nC: A1\r\nI: 1\r\nM: inactive\r\nK: 1-9, 12\r\n",
    "DLCX 4 ds/ds3-1/ds1-*/*@tgw.example.net MGCP 1.0\r\n",
    "RQNT 5 ds/ds3-1/ds1-3/7@tgw.example.net MGCP 1.0\r\nN: ca@[127.0.0.1]:2727\r\nX: 1F\r\nR: L/hd(N)\r\nD: (xx|[0-9]T)\r\n",
    "AUEP 6 ds/ds3-1/ds1-3/7@tgw.example.net MGCP 1.0\r\nF: A,R,S,X,N,I,ES,RM,RD\r\n.\r\nAUCX 7 ds/ds3-1/ds1-3/7@tgw.example.net MGCP 1.0\r\nI: 1\r\n",
    "200 8 OK\r\nI: 1\r\n\r\nv=0\r\n.\r\n000 9\r\n",
    "EPCF 10 *@tgw.example.net MGCP 1.0\r\nB: e:A\r\n",
];

/// Makes datagrams: noise, good ones with a few bytes changed, and the worst that the codec knows of.
struct Maker {
    rng: Rng,
    worst: Vec<Vec<u8>>,
    count: u32,
}

impl Maker {
    fn new(seed: u64) -> Maker {
        // As long as a receive frame takes, and longer.
        let worst = HOSTILE_UNITS.iter().enumerate().map(|(i, (_, unit))| {
            let mut datagram = hostile(unit);
            datagram.truncate(if i % 8 == 0 { 65_507 } else { 4000 });
            datagram
        });
        Maker { rng: Rng::new(seed), worst: worst.collect(), count: 0 }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.rng.below(limit as u64) as usize
    }

    fn next(&mut self) -> Vec<u8> {
        self.count += 1;
        match self.below(16) {
            0 => (0..self.below(300)).map(|_| self.rng.below(256) as u8).collect(),
            1 if self.count.is_multiple_of(8) => {
                let which = self.below(self.worst.len());
                self.worst[which].clone()
            }
            _ => self.mutated(),
        }
    }

    fn mutated(&mut self) -> Vec<u8> {
        let seed = SEEDS[self.below(SEEDS.len())];
        // An id of its own mostly, so that it is executed.
        let (verb, rest) = seed.split_once(' ').unwrap();
        let rest = rest.split_once(' ').unwrap().1;
        let mut bytes = format!("{verb} {} {rest}", 100_000 + self.count).into_bytes();
        for _ in 0..self.below(4) {
            let (at, byte) = (self.below(bytes.len()), self.rng.below(256) as u8);
            match self.below(4) {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => bytes.truncate(at.max(1)),
                _ => {
                    let end = (at + self.below(40)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        bytes
    }
}

#[test]
fn hostile_datagrams_do_no_harm() {
    let time = std::env::var(SECONDS).map_or(SECONDS_DEFAULT, |seconds| seconds.parse().unwrap());
    let time = Duration::from_secs(time);
    // A history that is full soon, so that what it takes is not mistaken for growth.
    let tuning =
        Tuning::new().layout(2, 0, 0).set("limits.history_rate", "500").set("timers.t_hist", "\"11s\"").set("timers.t_max", "\"1s\"");
    let mut gateway = Gateway::start(tuning.set("timers.tdinit", "\"1s\""));
    let agent = Agent::of(&gateway);
    let mut maker = Maker::new(4);
    let (watch, mut settled, mut sent) = (Watch::start(), None, 0u64);
    while watch.elapsed() < time {
        for _ in 0..64 {
            // What the socket has no room for is lost, as on any network.
            sent += u64::from(agent.socket.send_to(&maker.next(), agent.gateway).is_ok());
        }
        if settled.is_none() && watch.elapsed() > time / 2 {
            settled = Some(resident(gateway.pid()));
        }
    }
    assert!(gateway.is_running(), "{}", gateway.log());
    let (before, after) = (settled.unwrap(), resident(gateway.pid()));
    assert!(after < before + GROWTH_MAX, "{before} KiB at half time, {after} KiB at the end, {sent} datagrams");
    // Another port: what is under way to the first one is none of its business.
    let mut later = Agent::at((gateway.tuning.addresses.agent().ip(), 2828).into(), agent.gateway);
    drop(agent);
    // Its core's socket may still be full, so the agent asks again; the history takes new commands when the old ones are forgotten.
    let code = eventually("an audit is answered", SOON * 2, || {
        let id = later.command("AUEP", "ds/ds3-1/ds1-20/20", &[]);
        later.listen(Duration::from_millis(200));
        later.mail.iter().find(|message| message.id == id).map(|message| message.code).filter(|&code| code != Some(409))
    });
    assert_eq!(code, Some(200), "{}", gateway.log());
    for counter in ["dropped_unreadable", "dropped_truncated", "commands_new"] {
        assert!(gateway.counter(counter) > 0, "{counter}, {sent} sent");
    }
    gateway.assert_sound();
}

/// Whoever is no agent gets no answer, whatever it sends, and is counted.
#[test]
fn strangers_are_dropped_and_counted() {
    let gateway = Gateway::start(Tuning::new().layout(2, 0, 0));
    let addresses = gateway.tuning.addresses;
    let mut agent = Agent::of(&gateway);
    let mut stranger = Agent::at(addresses.stranger(), addresses.gateway());
    let mut maker = Maker::new(9);
    for _ in 0..50 {
        stranger.socket.send_to(&maker.mutated(), addresses.gateway()).unwrap();
    }
    let id = stranger.command("CRCX", "ds/ds3-1/ds1-1/1", &["C: A1", "M: recvonly"]);
    eventually("all are counted", SOON, || (gateway.counter("dropped_unlisted_source") == 51).then_some(()));
    stranger.listen(Duration::from_millis(50));
    assert!(stranger.mail.is_empty(), "{id}: {:?}", stranger.mail);
    assert_eq!(gateway.counter("commands_new"), 0);
    agent.create("ds/ds3-1/ds1-1/1");
}
