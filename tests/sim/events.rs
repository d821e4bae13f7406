//! Events and requests at random, over links that lose, repeat and reorder: every event reaches the agent once, in order, as long as
//! there is contact (4.4.1; G-QUA-13, G-PIG-03, G-SHD-09).
//!
//! `TOLLGATE_SEED=n` runs one seed, `TOLLGATE_SEEDS=n` so many.

use super::random::number;
use super::{MS, S};
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tollgate::proto::base::{Counter, Rng, Time};
use tollgate::sim::{Actor, Faults, Layout, Mail, Outbound, Reply, Setup, World};

const ENDPOINTS: usize = 6;

fn name(place: usize) -> String {
    format!("ds/ds1-{}/{}", 1 + place % 3, 1 + place)
}

/// What the agent knows of one endpoint.
#[derive(Default)]
struct Line {
    /// The number of each event, in the order in which they were told.
    told: Vec<u32>,
    /// Notify commands seen.
    seen: HashSet<u32>,
    /// Requests given so far.
    requests: u32,
    /// The request that is out: its bytes, its transaction, when to repeat it.
    out: Option<(Vec<u8>, u32, Time)>,
    /// When to give the next one.
    next: Option<Time>,
}

/// An agent that answers every Notify and gives one request after another.
struct Agent {
    lines: Arc<Mutex<Vec<Line>>>,
    rng: Rng,
    winding_down: bool,
}

const HERE: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 2727);

impl Agent {
    /// The next request for an endpoint: every one of them wants every numbered event.
    fn request(&mut self, place: usize, count: u32) -> (Vec<u8>, u32) {
        let id = 100_000 + place as u32 * 10_000 + count;
        let list = match (self.winding_down, self.rng.below(4)) {
            (false, 0) => "T/oc(A),T/co1(N)",
            (false, 1) => "T/oc(A),T/co1(A,E(R(T/oc(N))))",
            _ => "T/oc(N),T/co1(I)",
        };
        let quarantine = ["step", "loop", "process,loop"][self.rng.below(3) as usize];
        let text = format!("RQNT {id} {}@tgw.example.net MGCP 1.0\r\nX: {count:X}\r\nR: {list}\r\nQ: {quarantine}\r\n", name(place));
        (text.into_bytes(), id)
    }
}

impl Actor for Agent {
    fn owns(&self, address: IpAddr) -> bool {
        address == HERE.ip()
    }

    fn handle(&mut self, now: Time, mail: &Mail, out: &mut Vec<Outbound>) {
        let lines = self.lines.clone();
        let mut lines = lines.lock().unwrap();
        let mut answer = Vec::new();
        for message in Reply::all(&mail.bytes) {
            if message.code.is_none() {
                answer.push(format!("200 {} OK\r\n", message.id));
            }
            if message.line.starts_with("NTFY") {
                let place = (0..ENDPOINTS).find(|&place| message.line.contains(&format!(" {}@", name(place)))).expect("a line");
                let line = &mut lines[place];
                if line.seen.insert(message.id) {
                    let numbers = message.get("O").unwrap().split(',').filter_map(|event| event.strip_prefix("T/oc("));
                    line.told.extend(numbers.map(|number| number.trim_end_matches(')').parse::<u32>().unwrap()));
                    line.next = line.next.or(Some(now + self.rng.duration(Duration::ZERO, 300 * MS)));
                }
            }
            for line in lines.iter_mut() {
                if message.code.is_some_and(|code| code >= 200) && line.out.as_ref().is_some_and(|(_, id, _)| *id == message.id) {
                    assert_eq!(message.code, Some(200), "{message:?}");
                    line.out = None;
                    line.next = line.next.or(Some(now + self.rng.duration(MS, 2 * S)));
                }
            }
        }
        if !answer.is_empty() {
            out.push(Outbound { from: HERE, local: mail.local, bytes: answer.join(".\r\n").into_bytes() });
        }
    }

    fn poll(&mut self, now: Time, out: &mut Vec<Outbound>) {
        let lines = self.lines.clone();
        let mut lines = lines.lock().unwrap();
        for (place, line) in lines.iter_mut().enumerate() {
            if line.out.is_none() && line.next.is_some_and(|at| at <= now) {
                line.requests += 1;
                line.next = None;
                let (bytes, id) = self.request(place, line.requests);
                line.out = Some((bytes, id, now));
            }
            if let Some((bytes, _, repeat)) = &mut line.out
                && *repeat <= now
            {
                *repeat = now + 300 * MS;
                out.push(Outbound { from: HERE, local: 0, bytes: bytes.clone() });
            }
        }
    }

    fn deadline(&self) -> Time {
        let lines = self.lines.lock().unwrap();
        let next = |line: &Line| line.out.as_ref().map(|(_, _, repeat)| *repeat).or(line.next).unwrap_or(Time::NEVER);
        lines.iter().map(next).min().unwrap_or(Time::NEVER)
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
        String::new()
    }
}

/// Runs one seed; the digest of everything that happened.
fn run(seed: u64) -> u64 {
    let layout = Layout::ALL[seed as usize % 5];
    let mut rng = Rng::new(seed).fork("events");
    let replay = format!("TOLLGATE_SEED={seed} cargo test --test sim events");
    let mut w = World::new(Setup { replay, ..Setup::new(layout, seed) }, |plan, _| plan.limits.own_commands = 2048);
    let lines: Vec<Line> = (0..ENDPOINTS).map(|_| Line { next: Some(w.now), ..Line::default() }).collect();
    let lines = Arc::new(Mutex::new(lines));
    w.add_agent(Box::new(Agent { lines: lines.clone(), rng: rng.fork("agent"), winding_down: false }));
    w.run_for(S);
    w.set_faults(Faults {
        link_max: rng.duration(MS, 60 * MS),
        loss: [0, 50_000, 150_000][rng.below(3) as usize],
        burst: 2,
        duplicate: 50_000,
        ..Faults::none()
    });
    let mut happened = [0; ENDPOINTS];
    for _ in 0..120 {
        let place = rng.below(ENDPOINTS as u64) as usize;
        if rng.below(3) == 0 {
            w.occur(&name(place), "T/co1", None);
        } else {
            w.occur(&name(place), &format!("T/oc({})", happened[place]), None);
            happened[place] += 1;
        }
        w.run_for(rng.duration(Duration::ZERO, 400 * MS));
        for line in lines.lock().unwrap().iter() {
            assert!(line.told.iter().copied().eq(0..line.told.len() as u32), "out of order, twice or lost: {:?}", line.told);
        }
    }
    w.set_faults(Faults::none());
    w.agents()[0].wind_down(Time::ZERO);
    w.run_for(120 * S);
    assert_eq!(w.counter(Counter::NotifiesLost) + w.counter(Counter::QuarantineLost) + w.counter(Counter::ObservedLost), 0);
    for (line, happened) in lines.lock().unwrap().iter().zip(happened) {
        assert!(line.told.iter().copied().eq(0..happened), "{:?} of {happened}", line.told);
    }
    w.check_quiet();
    w.digest()
}

/// G-QUA-09, G-QUA-13, G-QUA-15, G-PIG-03, G-SHD-09: none is lost, none comes twice, none overtakes another.
#[test]
fn every_event_is_told_once_and_in_order() {
    if let Some(seed) = number("TOLLGATE_SEED") {
        run(seed);
        return;
    }
    for seed in 1..=number("TOLLGATE_SEEDS").unwrap_or(60) {
        let digest = run(seed);
        if seed % 10 == 0 {
            assert_eq!(digest, run(seed), "seed {seed} gives two results");
        }
    }
}
