//! What a core's own time is at 60 % load, and what becomes of it while the core works on something large beside the calls.
//!
//! `chrt -f 10 taskset -c 1 cargo bench --bench beside [-- --rounds 9 --ms 1000]` (without `chrt` the neighbours' time is in it). Agents
//! send CRCX, MDCX, AUEP and DLCX in equal parts to endpoints drawn at random among 100,000, at random intervals. The core takes what has
//! come, handles it, does what is due, and submits its responses, as the loop of the host does; its time is what these turns took, so
//! that neither the agents' work nor the kernel's is in it, and time without work is skipped.
//!
//! Beside them, in every second round: a T3 fails and comes back every 2 s; ten times a second an audit and a request over all endpoints
//! of a T1 and of a T3; four times a second 100,000 other endpoints but one are announced to leave service later, or not after all, in
//! the fewest names.
#![allow(missing_docs, reason = "a program")]

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use tollgate::proto::base::{EndpointIndex, FrameRef, Rng, Time, TransactionId};
use tollgate::proto::codec::peek::{self, Peek};
use tollgate::proto::core::exercise::{self, DOMAIN, Lone};
use tollgate::proto::core::{Administration, Ask};
use tollgate::proto::restart::BlockHow;
use tollgate::proto::trunk::{CardOrder, Defect, Facility, FacilityKind, FacilityPlan, T3Index, Topology};

/// As in the program.
#[cfg(feature = "host")]
#[global_allocator]
static MEMORY: tollgate::host::large::LargeTables = tollgate::host::large::LargeTables;

/// The share of its time that the core works, without what is beside.
const LOAD: f64 = 0.6;
/// The most datagrams taken in a turn.
const BATCH: usize = 32;
/// Calls that are up.
const UP: usize = 5000;
/// Requests that can be told apart at a time.
const OUTSTANDING: usize = 4096;
/// How long the agent takes to answer a command of the gateway.
const ANSWER: Duration = Duration::from_millis(1);
/// How long responses are remembered.
const T_HIST: Duration = Duration::from_secs(1);
/// How long the machine is taken at a time, and left to others.
const TAKEN: Duration = Duration::from_millis(200);

const SDP: &str = include_str!("harness/offer.sdp");

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str, default: u64| {
        let place = arguments.iter().position(|argument| argument == name);
        place.and_then(|place| arguments.get(place + 1)).and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    // `cargo test` runs benches once, quickly.
    let quick = !arguments.iter().any(|argument| argument == "--bench");
    let t3s = if quick { 4 } else { 149 };
    let (rounds, length) = if quick { (1, 20) } else { (number("--rounds", 9), number("--ms", 1000)) };
    let length = Duration::from_millis(length);
    let mut stand = Stand::new(t3s, if quick { 100 } else { UP });
    println!(
        "{} endpoints with calls, {} beside them; ns, median of {rounds} rounds of {length:?} (lowest - highest)\n",
        t3s * 672,
        t3s * 672
    );
    println!("| | % busy | handled p50 | p99 | p99.9 | taken to submitted p50 | p99 | arrived to submitted p50 | p99 | p99.9 |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut results = [Vec::new(), Vec::new()];
    let mut gap_ns = 4000.0;
    for _ in 0..rounds {
        // As many commands as the machine can take now.
        for _ in 0..3 {
            let [busy, ..] = stand.run(length / 4, gap_ns, false);
            gap_ns *= (busy / 100.0 / LOAD).clamp(0.5, 2.0);
        }
        for (large, results) in results.iter_mut().enumerate() {
            results.push(stand.run(length, gap_ns, large > 0));
        }
    }
    for (name, results) in ["calls alone", "beside large work"].iter().zip(&results) {
        let cells: String = (0..results[0].len()).map(|column| cell(results.iter().map(|row| row[column]).collect())).collect();
        println!("| {name} |{cells}");
    }
    println!("\nrefused {}, wrong {}, commands of the gateway {}", stand.refused, stand.wrong, stand.asked_by_core);
    assert_eq!(stand.wrong, 0);
}

fn cell(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    format!(" {:.0} ({:.0} - {:.0}) |", values[values.len() / 2], values[0], values[values.len() - 1])
}

/// One round: the share of time the core was busy in per cent, then times of messages.
type Row = [f64; 9];

/// Times of messages, in ns.
#[derive(Default)]
struct Times {
    handling: Vec<u32>,
    taken: Vec<u32>,
    arrived: Vec<u32>,
}

impl Times {
    fn row(mut self, busy: f64) -> Row {
        let mut at = |times: fn(&mut Times) -> &mut Vec<u32>, part: f64| {
            let times = times(&mut self);
            let place = ((times.len() as f64 * part) as usize).min(times.len().saturating_sub(1));
            if times.is_empty() { 0.0 } else { f64::from(*times.select_nth_unstable(place).1) }
        };
        [
            busy * 100.0,
            at(|t| &mut t.handling, 0.5),
            at(|t| &mut t.handling, 0.99),
            at(|t| &mut t.handling, 0.999),
            at(|t| &mut t.taken, 0.5),
            at(|t| &mut t.taken, 0.99),
            at(|t| &mut t.arrived, 0.5),
            at(|t| &mut t.arrived, 0.99),
            at(|t| &mut t.arrived, 0.999),
        ]
    }
}

/// What a request was.
#[derive(Clone, Copy)]
enum Asked {
    Nothing,
    Create(u32),
    Delete(u32),
    /// Of a call that is up, or over many endpoints.
    Other,
}

/// What is sent next.
#[derive(Clone, Copy)]
enum Next {
    Call,
    AuditT1,
    RequestT3,
    Answer(TransactionId),
}

/// What happens beside the calls, and when next.
struct Beside {
    flap: Time,
    failed: bool,
    wildcards: Time,
    announce: Time,
    leaving: bool,
}

/// A core with its agents.
struct Stand {
    lone: Lone,
    topology: std::sync::Arc<Topology>,
    rng: Rng,
    id: TransactionId,
    asked: Vec<Asked>,
    free: Vec<u32>,
    calls: Vec<(u32, [u8; 8])>,
    up: usize,
    /// Answers to commands of the gateway, by when they come.
    answers: VecDeque<(Time, TransactionId)>,
    beside: Beside,
    /// The others.
    swept: String,
    text: String,
    last_pause: Instant,
    refused: u64,
    wrong: u64,
    asked_by_core: u64,
}

impl Stand {
    /// A gateway whose first `t3s` have calls; as many more are only announced.
    fn new(t3s: u32, up: usize) -> Stand {
        let facilities: Vec<FacilityPlan> =
            (1..=2 * t3s).map(|unit| FacilityPlan { kind: FacilityKind::T3, unit, common_channel: false }).collect();
        let plan = exercise::plan(&facilities, 30_000, 1_000_000, 256).expect("facilities");
        let topology = plan.topology.clone();
        let mut settings = exercise::settings();
        settings.timers.history = T_HIST;
        let card = exercise::card(&plan, [192, 0, 2, 20].into(), 30_000, 1);
        let mut lone = Lone::new(plan, settings, Box::new(card), 1, Time::from_millis(1000));
        assert!(lone.restart(), "the restart is told and answered");
        let now = lone.now();
        let swept = format!("ds/ds3-[{}-{}]/*", t3s + 1, 2 * t3s);
        let mut stand = Stand {
            lone,
            topology,
            rng: Rng::new(2),
            id: 1000,
            asked: vec![Asked::Nothing; OUTSTANDING],
            // The first two fail and are asked about as a whole.
            free: (2 * 672..t3s * 672).collect(),
            calls: Vec::new(),
            up,
            answers: VecDeque::new(),
            beside: Beside { flap: now, failed: false, wildcards: now, announce: now, leaving: false },
            swept,
            text: String::new(),
            last_pause: clock(),
            refused: 0,
            wrong: 0,
            asked_by_core: 0,
        };
        // One of those announced is out of service, so that no single name says it.
        let name = format!("ds/ds3-{}/ds1-14/12", t3s + t3s / 2);
        stand.administer(&name, |selection| Administration::Block(selection, BlockHow::Force));
        stand
    }

    /// Runs for `length` of the core's time with a command every `gap_ns` on average.
    fn run(&mut self, length: Duration, gap_ns: f64, large: bool) -> Row {
        let start = self.lone.now();
        let end = start + length;
        let (mut times, mut busy) = (Times::default(), Duration::ZERO);
        let mut arrival = start;
        let (mut frames, mut arrivals, mut handled) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        let mut others: VecDeque<Next> = VecDeque::new();
        self.beside = Beside { flap: start, wildcards: start, announce: start, ..self.beside };
        while self.lone.now() < end {
            self.leave_machine();
            let now = self.lone.now();
            while self.answers.front().is_some_and(|&(due, _)| due <= now) {
                others.extend(self.answers.pop_front().map(|(_, id)| Next::Answer(id)));
            }
            if large && self.beside.wildcards <= now {
                self.beside.wildcards = now + Duration::from_millis(100);
                others.extend([Next::AuditT1, Next::RequestT3]);
            }
            let orders = if large { self.orders(now) } else { Vec::new() };
            let other_frames: Vec<FrameRef> = others.drain(..others.len().min(BATCH / 2)).filter_map(|next| self.send(next)).collect();
            while frames.len() + other_frames.len() < BATCH && arrival <= now {
                let Some(frame) = self.send(Next::Call) else { break };
                frames.push(frame);
                arrivals.push(arrival);
                arrival += Duration::from_nanos(self.gap(gap_ns));
            }
            let turn = clock();
            self.lone.read_ahead(&frames);
            other_frames.into_iter().for_each(|frame| self.lone.handle(frame));
            let mut before = clock();
            for &frame in &frames {
                self.lone.handle(frame);
                let after = clock();
                handled.push(after - before);
                before = after;
            }
            for order in orders {
                self.lone.ask(order);
            }
            self.lone.handle_time();
            let took = turn.elapsed();
            busy += took;
            times.handling.extend(handled.drain(..).map(nanoseconds));
            times.taken.extend(frames.drain(..).map(|_| nanoseconds(took)));
            times.arrived.extend(arrivals.drain(..).map(|arrival| nanoseconds((now + took).since(arrival))));
            self.end_turn(took);
            // Nothing to do: on to the next thing.
            let answer = self.answers.front().map_or(Time::NEVER, |&(due, _)| due);
            let next = arrival.min(answer).min(self.lone.deadline()).min(end);
            let next = if large { next.min(self.beside.next()) } else { next };
            if others.is_empty() && next > self.lone.now() {
                self.lone.pass(next.since(self.lone.now()));
            }
        }
        times.row(busy.as_secs_f64() / self.lone.now().since(start).as_secs_f64())
    }

    /// The time to the next command, in ns: they come by chance.
    fn gap(&mut self, mean_ns: f64) -> u64 {
        let chance = (self.rng.below(1 << 32) + 1) as f64 / (1u64 << 32) as f64;
        (-chance.ln() * mean_ns) as u64
    }

    /// The orders to the card and about service states that are due.
    fn orders(&mut self, now: Time) -> Vec<Ask> {
        let mut orders = Vec::new();
        let t3 = Facility::T3(T3Index(0));
        if self.beside.flap <= now {
            self.beside.flap = now + Duration::from_secs(1);
            self.beside.failed = !self.beside.failed;
            orders.push(Ask::Card(match self.beside.failed {
                true => CardOrder::Defect { facility: t3, defect: Defect::LossOfSignal, present: true, at_once: true },
                false => CardOrder::Clear { facility: t3, at_once: true },
            }));
        }
        if self.beside.announce <= now {
            self.beside.announce = now + Duration::from_millis(250);
            self.beside.leaving = !self.beside.leaving;
            let selection = self.topology.resolve(self.swept.as_bytes(), true).expect("a name");
            orders.push(Ask::Administer(match self.beside.leaving {
                true => Administration::Block(selection, BlockHow::Graceful(Duration::from_secs(3600))),
                false => Administration::Unblock(selection),
            }));
        }
        orders
    }

    fn administer(&mut self, name: &str, what: impl Fn(tollgate::proto::trunk::Selection) -> Administration) {
        let selection = self.topology.resolve(name.as_bytes(), true).expect("a name");
        self.lone.ask(Ask::Administer(what(selection)));
    }

    /// The agent sends something.
    fn send(&mut self, next: Next) -> Option<FrameRef> {
        self.text.clear();
        self.id += 1;
        let mut asked = Asked::Other;
        let id = self.id;
        match next {
            Next::Call => asked = self.write_call(id),
            Next::AuditT1 => self.text = format!("AUEP {id} ds/ds3-1/ds1-1/*@{DOMAIN} MGCP 1.0\r\n"),
            Next::RequestT3 => self.text = format!("RQNT {id} ds/ds3-2/*@{DOMAIN} MGCP 1.0\r\nX: {id:X}\r\n"),
            Next::Answer(id) => {
                asked = Asked::Nothing;
                self.text = format!("200 {id} OK\r\n");
            }
        }
        let text = self.text.as_bytes();
        let frame = self.lone.receive(|room| {
            room[..text.len()].copy_from_slice(text);
            text.len()
        });
        if frame.is_some() {
            self.asked[id as usize % OUTSTANDING] = asked;
        }
        frame
    }

    fn write_call(&mut self, id: TransactionId) -> Asked {
        let mut kind = self.rng.below(4);
        if self.calls.len() < self.up {
            kind = 0;
        } else if self.calls.len() > self.up + self.up / 10 && kind == 0 {
            kind = 3;
        }
        let (list, length) = if kind == 0 { (true, self.free.len()) } else { (false, self.calls.len()) };
        let place = self.rng.below(length as u64) as usize;
        let (endpoint, connection) = if list { (self.free.swap_remove(place), [b'0'; 8]) } else { self.calls[place] };
        let mut name = [0; 64];
        let length = self.topology.write_name(EndpointIndex(endpoint), &mut name);
        let name = std::str::from_utf8(&name[..length]).expect("names are ASCII");
        let connection = std::str::from_utf8(&connection).expect("hexadecimal digits");
        let text = &mut self.text;
        match kind {
            0 => write!(
                text,
                "CRCX {id} {name}@{DOMAIN} MGCP 1.0\r\nC: A3C47F{endpoint:08X}\r\nL: p:20, a:PCMU;PCMA;G729, e:on, s:off\r\n\
                 M: sendrecv\r\n\r\n{SDP}"
            ),
            1 => {
                write!(text, "MDCX {id} {name}@{DOMAIN} MGCP 1.0\r\nC: A3C47F{endpoint:08X}\r\nI: {connection}\r\nM: sendrecv\r\n\r\n{SDP}")
            }
            2 => write!(text, "AUEP {id} {name}@{DOMAIN} MGCP 1.0\r\nF: I, N, X\r\n"),
            _ => write!(text, "DLCX {id} {name}@{DOMAIN} MGCP 1.0\r\nC: A3C47F{endpoint:08X}\r\nI: {connection}\r\n"),
        }
        .expect("a string takes everything");
        match kind {
            0 => Asked::Create(endpoint),
            3 => {
                self.calls.swap_remove(place);
                Asked::Delete(endpoint)
            }
            _ => Asked::Other,
        }
    }

    /// What the core sent is read, and time goes on.
    fn end_turn(&mut self, took: Duration) {
        self.lone.pass(took);
        let due = self.lone.now() + ANSWER;
        for datagram in self.lone.sent() {
            for (range, message) in peek::split(datagram) {
                let (code, id) = match message {
                    Peek::Command(line) => {
                        self.asked_by_core += 1;
                        self.answers.push_back((due, line.id));
                        continue;
                    }
                    Peek::Response { code: 100..=199, .. } => continue,
                    Peek::Response { code, id } => (code, id),
                    Peek::Unreadable => (999, 0),
                };
                let asked = std::mem::replace(&mut self.asked[id as usize % OUTSTANDING], Asked::Nothing);
                match (asked, code) {
                    (Asked::Create(endpoint), 200) => {
                        let message = &datagram[range];
                        let at = message.windows(3).position(|window| window == b"I: ").expect("a connection identifier");
                        self.calls.push((endpoint, message[at + 3..at + 11].try_into().expect("eight digits")));
                    }
                    (Asked::Delete(endpoint), 250) => self.free.push(endpoint),
                    (Asked::Other, 200) => {}
                    // A wildcard over a T3 of which channels are out of service, or a call that another command has ended.
                    (_, 400..=599) => self.refused += 1,
                    _ => self.wrong += 1,
                }
            }
        }
        self.wrong += self.lone.end_turn() as u64;
    }

    /// Now and then the machine is left to others, who may have had to wait.
    fn leave_machine(&mut self) {
        if self.last_pause.elapsed() > TAKEN {
            pause();
            self.last_pause = clock();
        }
    }
}

impl Beside {
    fn next(&self) -> Time {
        self.flap.min(self.wildcards).min(self.announce)
    }
}

fn nanoseconds(time: Duration) -> u32 {
    time.as_nanos().try_into().unwrap_or(u32::MAX)
}

#[allow(clippy::disallowed_methods, reason = "a measurement")]
fn clock() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods, reason = "a measurement")]
fn pause() {
    std::thread::sleep(TAKEN / 2);
}
