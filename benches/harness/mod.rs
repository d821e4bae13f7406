//! What a request and its response cost a server's core: interleaved closed-loop runs over the loopback interface.
//!
//! The measure is the CPU time of the server's thread per transaction, read from outside by its thread clock: it is fair between a server
//! that spins and one that sleeps, and between a bare echo and a whole gateway. Turns of the server that found nothing are counted by
//! the server, priced while nobody asks anything, and subtracted.
//!
//! The client keeps a window of requests under way from another core. It sends with UDP_SEGMENT, so that it is cheaper than any
//! server and never the bottleneck; each request still reaches the server's socket as a datagram of its own. Over loopback the sender
//! pays for the receiver's softirq, so the client pays the server's and the server the client's: one full send and one receive
//! per transaction, as behind a network card.
//!
//! Machines swing: subjects take turns in short bursts with pauses, and the result is best and median of the bursts.
//!
//! To measure something, make it a [`Subject`] and give all subjects to [`compare`]. Over a veth pair instead of loopback: `veth`.

pub mod echo;
#[allow(dead_code, reason = "not every bench measures it")]
pub mod latency;
#[allow(dead_code, reason = "tests need more of it")]
#[path = "../../tests/loopback/pair.rs"]
pub mod pair;
#[allow(dead_code, reason = "not every bench is past the kernel at both ends")]
pub mod veth;
#[allow(dead_code, reason = "not every bench is past the kernel at both ends")]
pub mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tollgate::host::cpu;
pub use wire::Wire;

/// The most requests sent by one call (the kernel takes 64 segments).
const SEGMENTS: usize = 64;
/// After this long without any response the requests under way count as lost.
const LOST_AFTER: Duration = Duration::from_millis(100);
/// Over a veth pair, before anything is measured.
const FIND_THE_WAY: Duration = Duration::from_millis(300);

/// Something that answers datagrams on one thread.
pub struct Subject {
    /// What the table calls it.
    pub name: String,
    /// Starts it on a CPU.
    pub start: Box<dyn Fn(&Placement) -> Running>,
}

/// Where and how a subject's thread runs.
#[derive(Clone, Copy)]
pub struct Placement {
    /// The CPU to pin to.
    pub cpu: usize,
    /// Run under SCHED_FIFO.
    pub real_time: bool,
}

/// A started subject.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// The CPU clock of its thread.
    pub clock: ThreadClock,
    /// Turns of its loop that found nothing to do.
    pub idle_turns: Arc<AtomicU64>,
    /// Set to end it.
    pub stop: Arc<AtomicBool>,
    /// Its thread.
    pub thread: JoinHandle<()>,
}

impl Running {
    /// Starts a server on its own pinned thread. `serve` first calls the function it is given, with its address, and then works until `stop`.
    pub fn start<F>(placement: &Placement, serve: F) -> Running
    where
        F: FnOnce(&dyn Fn(SocketAddr), &Arc<AtomicU64>, &Arc<AtomicBool>) + Send + 'static,
    {
        let (idle_turns, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (ready, started) = channel();
        let (turns, ended, placement) = (Arc::clone(&idle_turns), Arc::clone(&stop), *placement);
        let thread = thread::spawn(move || {
            let clock = ThreadClock::of_current();
            // Threads of its own must not inherit a CPU that it never leaves.
            let settled = |address| {
                settle(&placement);
                ready.send((address, clock)).expect("the harness waits");
            };
            serve(&settled, &turns, &ended);
        });
        let (address, clock) = started.recv().expect("the server started");
        Running { address, clock, idle_turns, stop, thread }
    }

    fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the server ended in order");
    }
}

/// Asks and is answered.
pub trait Agent {
    /// Writes `count` requests, all equally long, one behind the other, and says how long one is.
    fn requests(&mut self, count: usize, into: &mut Vec<u8>) -> usize;

    /// A response; false when it is not what was asked for.
    fn response(&mut self, response: &[u8]) -> bool;
}

/// What is asked.
pub struct Workload {
    /// Makes whoever asks, a new one for each burst.
    pub agent: Box<dyn Fn() -> Box<dyn Agent> + Send + Sync>,
    /// Requests under way.
    pub window: usize,
    /// What whoever asks reaches a subject by.
    pub wire: fn(SocketAddr) -> Box<dyn Wire>,
}

/// How long and how often.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Bursts per subject.
    pub rounds: usize,
    /// One burst.
    pub burst: Duration,
    /// Between bursts: the machine's other work.
    pub pause: Duration,
    /// Run client and server under SCHED_FIFO: nobody else gets their CPUs during a burst. Needs CAP_SYS_NICE.
    pub real_time: bool,
}

impl Plan {
    /// From the command line: `--rounds N`, `--burst-ms N`, `--real-time`; a few seconds by default.
    pub fn from_arguments() -> Plan {
        let arguments: Vec<String> = std::env::args().collect();
        let number = |name: &str, default: u64| {
            let place = arguments.iter().position(|argument| argument == name);
            place.and_then(|place| arguments.get(place + 1)).and_then(|value| value.parse().ok()).unwrap_or(default)
        };
        Plan {
            rounds: number("--rounds", 5).clamp(1, 1000) as usize,
            burst: Duration::from_millis(number("--burst-ms", 350)),
            pause: Duration::from_millis(120),
            real_time: arguments.iter().any(|argument| argument == "--real-time"),
        }
    }
}

/// What one burst showed.
#[derive(Clone, Copy)]
pub struct Burst {
    /// Responses received.
    pub transactions: u64,
    /// Requests without a response.
    pub lost: u64,
    /// Responses that were not what was asked for.
    pub wrong: u64,
    /// CPU time of the server's thread, idle turns subtracted.
    pub cpu_ns: f64,
    /// Wall time.
    pub wall_ns: f64,
}

impl Burst {
    /// CPU time per transaction.
    pub fn ns_per_transaction(&self) -> f64 {
        self.cpu_ns / self.transactions.max(1) as f64
    }
}

/// All bursts of one subject.
pub struct Report {
    /// The subject.
    pub name: String,
    /// Its bursts.
    pub bursts: Vec<Burst>,
}

impl Report {
    /// CPU ns per transaction: best burst and median burst.
    pub fn best_and_median(&self) -> (f64, f64) {
        let costs = sorted(self.bursts.iter().map(Burst::ns_per_transaction));
        (costs[0], costs[costs.len() / 2])
    }
}

/// Runs all subjects in turns and prints a table. `None`, with the reason printed, on a machine with one CPU.
pub fn compare(subjects: &[Subject], workload: &Arc<Workload>, plan: &Plan) -> Option<Vec<Report>> {
    let cpus = cpu::allowed();
    let [client, .., server] = cpus[..] else {
        println!("skipped: client and server need a CPU each");
        return None;
    };
    let mut reports: Vec<Report> = subjects.iter().map(|s| Report { name: s.name.clone(), bursts: Vec::new() }).collect();
    for round in 0..plan.rounds {
        for step in 0..subjects.len() {
            // Every subject comes after every other one equally often.
            let place = (step + round) % subjects.len();
            reports[place].bursts.push(burst(&subjects[place], workload, plan, client.id, server.id));
            thread::park_timeout(plan.pause);
        }
    }
    print(&reports);
    Some(reports)
}

fn burst(subject: &Subject, workload: &Arc<Workload>, plan: &Plan, client: usize, server: usize) -> Burst {
    let running = (subject.start)(&Placement { cpu: server, real_time: plan.real_time });
    let idle_turn_ns = price_of_idle(&running);
    let (workload, to, length) = (Arc::clone(workload), running.address, plan.burst);
    let (clock, turns) = (running.clock, Arc::clone(&running.idle_turns));
    let placement = Placement { cpu: client, real_time: plan.real_time };
    let asking = thread::spawn(move || {
        let mut client = Client::new(to, &workload);
        if veth::listen().is_some() {
            // Until both sides know the way past the kernel, which threads at their side find out.
            client.run(FIND_THE_WAY);
        }
        settle(&placement);
        client.run(length / 5);
        let (transactions, lost, wrong) = (client.transactions, client.lost, client.wrong);
        let (start, cpu, idle) = (now(), clock.read_ns(), turns.load(Ordering::Relaxed));
        client.run(length);
        let wall_ns = start.elapsed().as_nanos() as f64;
        let spent = (clock.read_ns() - cpu) as f64 - (turns.load(Ordering::Relaxed) - idle) as f64 * idle_turn_ns;
        let (transactions, lost, wrong) = (client.transactions - transactions, client.lost - lost, client.wrong - wrong);
        Burst { transactions, lost, wrong, cpu_ns: spent, wall_ns }
    });
    let burst = asking.join().expect("the client ended in order");
    running.finish();
    burst
}

/// CPU time of a turn that finds nothing, measured while nobody asks anything.
fn price_of_idle(running: &Running) -> f64 {
    let (cpu, turns) = (running.clock.read_ns(), running.idle_turns.load(Ordering::Relaxed));
    thread::park_timeout(Duration::from_millis(20));
    let turns = running.idle_turns.load(Ordering::Relaxed) - turns;
    if turns == 0 { 0.0 } else { (running.clock.read_ns() - cpu) as f64 / turns as f64 }
}

/// Keeps a window of requests under way.
struct Client {
    wire: Box<dyn Wire>,
    agent: Box<dyn Agent>,
    window: usize,
    requests: Vec<u8>,
    /// Length of the requests that are ready.
    segment: usize,
    under_way: usize,
    transactions: u64,
    lost: u64,
    wrong: u64,
}

impl Client {
    fn new(to: SocketAddr, workload: &Workload) -> Client {
        Client {
            wire: (workload.wire)(to),
            agent: (workload.agent)(),
            window: workload.window,
            requests: Vec::with_capacity(65_536),
            segment: 0,
            under_way: 0,
            transactions: 0,
            lost: 0,
            wrong: 0,
        }
    }

    fn run(&mut self, length: Duration) {
        let start = now();
        let mut heard = start;
        loop {
            self.ask();
            let answered = self.listen();
            let now = now();
            if answered > 0 {
                heard = now;
            } else if now.duration_since(heard) > LOST_AFTER {
                self.lost += self.under_way as u64;
                self.under_way = 0;
                heard = now;
            }
            if now.duration_since(start) >= length {
                return;
            }
        }
    }

    /// Fills the window, in whole calls of as many requests as fit (or half the window when it is small).
    fn ask(&mut self) {
        let lot = SEGMENTS.min(self.window.div_ceil(2));
        while self.under_way + lot <= self.window {
            if self.requests.is_empty() {
                self.segment = self.agent.requests(lot, &mut self.requests);
            }
            if !self.wire.send(&self.requests, self.segment) {
                // No room: listen first, and send the same again.
                return;
            }
            self.under_way += lot;
            self.requests.clear();
        }
    }

    fn listen(&mut self) -> usize {
        let Client { wire, agent, wrong, .. } = self;
        let answered = wire.receive(&mut |response| *wrong += u64::from(!agent.response(response)));
        self.transactions += answered as u64;
        self.under_way = self.under_way.saturating_sub(answered);
        answered
    }
}

/// The CPU-time clock of a thread, readable from any other while the thread lives.
#[derive(Clone, Copy)]
pub struct ThreadClock(libc::clockid_t);

impl ThreadClock {
    /// The calling thread's.
    pub fn of_current() -> ThreadClock {
        let mut id = 0;
        // SAFETY: takes no arguments and cannot fail.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: `this` is a living thread, the caller; `id` is written.
        let result = unsafe { libc::pthread_getcpuclockid(this, &mut id) };
        assert_eq!(result, 0, "every thread has a CPU clock");
        ThreadClock(id)
    }

    /// CPU time the thread has used, in nanoseconds.
    pub fn read_ns(self) -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is written; a clock of a thread that has ended is an error, not undefined.
        let result = unsafe { libc::clock_gettime(self.0, &mut time) };
        assert_eq!(result, 0, "the thread lives");
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

/// Pins the calling thread and, when asked, lifts it above everything else on that CPU.
fn settle(placement: &Placement) {
    assert!(cpu::pin(placement.cpu), "CPU {} cannot be used", placement.cpu);
    if placement.real_time {
        let parameters = libc::sched_param { sched_priority: 10 };
        // SAFETY: the parameters live through the call; 0 is the calling thread.
        let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) };
        assert_eq!(result, 0, "--real-time needs CAP_SYS_NICE");
    }
}

#[allow(clippy::disallowed_methods, reason = "a measurement")]
fn now() -> Instant {
    Instant::now()
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn print(reports: &[Report]) {
    println!("| subject | bursts | CPU ns/transaction, best | median | worst | transactions/s, best | median | lost | wrong |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for report in reports {
        let (best, median) = report.best_and_median();
        let worst = report.bursts.iter().map(Burst::ns_per_transaction).fold(0.0, f64::max);
        let rates = sorted(report.bursts.iter().map(|b| b.transactions as f64 / b.wall_ns * 1e9));
        let lost: u64 = report.bursts.iter().map(|b| b.lost).sum();
        let wrong: u64 = report.bursts.iter().map(|b| b.wrong).sum();
        println!(
            "| {} | {} | {best:.0} | {median:.0} | {worst:.0} | {:.0} | {:.0} | {lost} | {wrong} |",
            report.name,
            report.bursts.len(),
            rates[rates.len() - 1],
            rates[rates.len() / 2],
        );
    }
}
