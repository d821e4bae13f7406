//! What a whole gateway on one core costs beside a bare UDP echo with the same transport, batching, requests and responses.
//!
//! `cargo bench --bench gateway [-- --rounds 15 --burst-ms 500 --real-time --mio|--xdp|--veth --latency]`; with `--xdp` AF_XDP at both ends of
//! a veth pair between two network namespaces (needs root), with `--veth` AF_XDP and io_uring there with a client in the kernel, else over
//! loopback; with `--latency` how long requests wait instead of what they cost. Calls in a closed loop, window 256: half of the
//! requests CRCX with a session description of 300 bytes, half DLCX. The core has told its restart and its history is full when a burst
//! begins, so that each command pushes an old response out. T-HIST is shortened to fit a burst: what a history of 30 s costs besides
//! (cache misses) shows in benches/core. Not a criterion bench: see `harness`.
#![allow(missing_docs, reason = "a program")]

#[path = "harness/calls.rs"]
mod calls;
mod harness;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use calls::{Calls, ID_DIGITS, ID_IN_REQUEST};
use harness::echo::{self, Variant};
use harness::{Agent, Plan, Running, Subject, Workload, compare};
use tollgate::host::books::Books;
use tollgate::host::clock::Clock;
use tollgate::host::core_loop::{CoreLoop, Exit, Spin};
use tollgate::host::cores::{Pulse, ToCore};
use tollgate::host::large::LargeTables;
use tollgate::host::transport::{Kind, Slot, Stats, Stray, Transport, Waker};
use tollgate::proto::base::{FrameRef, Time};
use tollgate::proto::core::exercise::{self, Lone};
use tollgate::proto::overload::Levels;
use tollgate::proto::trunk::{FacilityKind, FacilityPlan};

/// As in the program.
#[global_allocator]
static MEMORY: LargeTables = LargeTables;

const WINDOW: usize = 256;
/// How long responses are remembered.
const T_HIST: Duration = Duration::from_millis(400);
/// Commands a second that fill the history: about what the gateway then does.
const RATE: u32 = 200_000;
/// Commands per turn while the history fills.
const BATCH: usize = 32;

fn main() {
    let has = |word: &str| std::env::args().any(|argument| argument == word);
    let single = Variant { timestamps: true, coalesce: false };
    let run = Variant { timestamps: true, coalesce: true };
    let both = |kind| vec![(kind, single), (kind, run)];
    let (kinds, wire): (_, fn(_) -> _) = match (has("--xdp"), has("--veth"), has("--mio")) {
        (true, ..) => (vec![(Kind::Xdp, single)], harness::veth::past),
        (_, true, _) => (vec![(Kind::Xdp, single), (Kind::Uring, single)], harness::veth::kernel),
        (.., true) => (both(Kind::Mmsg), harness::wire::loopback),
        _ => (both(Kind::Uring), harness::wire::loopback),
    };
    for &(kind, _) in &kinds {
        if let Err(reason) = kind.probe() {
            return println!("skipped: transport {}: {reason}", kind.name());
        }
    }
    if (has("--xdp") || has("--veth"))
        && let Err(reason) = harness::veth::start()
    {
        return println!("skipped: {reason}");
    }
    let clock = Clock::new();
    let pair = |&(kind, variant)| [echo_subject(kind, clock, variant), gateway_subject(kind, clock, variant)];
    let subjects: Vec<Subject> = kinds.iter().flat_map(pair).collect();
    let workload = Arc::new(Workload { agent: Box::new(|| Box::new(Calls::new(2))), window: WINDOW, wire });
    let mut plan = Plan::from_arguments();
    if !has("--bench") {
        // `cargo test` runs benches once, quickly.
        plan = Plan { rounds: 1, burst: Duration::from_millis(50), ..plan };
    }
    if has("--latency") {
        return harness::latency::compare(&subjects, &workload, &plan);
    }
    let Some(reports) = compare(&subjects, &workload, &plan) else { return };
    println!();
    for pair in reports.chunks_exact(2) {
        let ((echo_best, echo_median), (best, median)) = (pair[0].best_and_median(), pair[1].best_and_median());
        let rounds = |compare: fn(f64, f64) -> f64| {
            let costs = pair[0].bursts.iter().zip(&pair[1].bursts);
            let mut all: Vec<f64> = costs.map(|(echo, own)| compare(own.ns_per_transaction(), echo.ns_per_transaction())).collect();
            all.sort_by(f64::total_cmp);
            (all[all.len() / 2], all[0], all[all.len() - 1])
        };
        let (ratio, least, most) = rounds(|own, echo| own / echo);
        println!(
            "{} to echo: {:.2} best to best, {:.2} median to median, {ratio:.2} ({least:.2} - {most:.2}) median of the rounds",
            pair[1].name,
            best / echo_best,
            median / echo_median,
        );
        let (difference, least, most) = rounds(|own, echo| own - echo);
        println!(
            "    its own: {:.0} ns best less best, {:.0} ns median less median, {difference:.0} ({least:.0} - {most:.0}) ns median of the rounds",
            best - echo_best,
            median - echo_median,
        );
    }
}

/// How a variant sends, for its name.
fn sends(variant: Variant) -> &'static str {
    if variant.coalesce { "UDP_SEGMENT" } else { "single sends" }
}

/// Answers each request with the bytes the gateway would, the identifier filled in.
fn echo_subject(kind: Kind, clock: Clock, variant: Variant) -> Subject {
    let (create, delete) = sample();
    println!("responses: CRCX {} bytes, DLCX {} bytes", create.len(), delete.len());
    let templates = Arc::new((create, delete));
    let start = move |placement: &harness::Placement| {
        let templates = Arc::clone(&templates);
        Running::start(placement, move |ready, idle_turns, stop| {
            let respond = |request: &[u8], response: &mut [u8]| {
                let template = if request.starts_with(b"C") { &templates.0 } else { &templates.1 };
                response[..template.len()].copy_from_slice(template);
                response[4..4 + ID_DIGITS].copy_from_slice(&request[ID_IN_REQUEST..ID_IN_REQUEST + ID_DIGITS]);
                template.len()
            };
            echo::serve(kind, clock, variant, respond, ready, idle_turns, stop);
        })
    };
    Subject { name: format!("echo over {}, {}", kind.name(), sends(variant)), start: Box::new(start) }
}

fn gateway_subject(kind: Kind, clock: Clock, variant: Variant) -> Subject {
    let start = move |placement: &harness::Placement| {
        Running::start(placement, move |ready, idle_turns, stop| serve(kind, clock, variant, ready, idle_turns, stop))
    };
    Subject { name: format!("gateway over {}, {}", kind.name(), sends(variant)), start: Box::new(start) }
}

/// A gateway of one T3 that takes commands over loopback.
fn lone(now: Time) -> Lone {
    let facility = FacilityPlan { kind: FacilityKind::T3, unit: 1, common_channel: false };
    let entries = (RATE as f64 * T_HIST.as_secs_f64() * 1.5) as u32;
    let plan = exercise::plan(&[facility], 2688, entries, 256).expect("one T3");
    let mut settings = exercise::settings();
    settings.agents[0].addresses.extend([[127, 0, 0, 1], harness::veth::CLIENT].map(IpAddr::from));
    settings.timers.history = T_HIST;
    // On a shared machine the core loses its CPU for milliseconds at a time: no reason to refuse calls here.
    settings.overload = Levels { enter: Duration::from_secs(60), exit: Duration::from_secs(30), ..Levels::default() };
    let card = exercise::card(&plan, [192, 0, 2, 20].into(), 2688, 1);
    let mut lone = Lone::new(plan, settings, Box::new(card), 1, now);
    assert!(lone.restart(), "the restart is told and answered");
    lone
}

/// One turn in memory: so many requests of the agent, answered.
fn turn(lone: &mut Lone, agent: &mut Calls, count: usize) {
    let mut requests = Vec::new();
    let length = agent.requests(count, &mut requests);
    for request in requests.chunks_exact(length) {
        let frame = lone.receive(|room| {
            room[..length].copy_from_slice(request);
            length
        });
        lone.handle(frame.expect("no frame is held between turns"));
    }
    lone.handle_time();
    assert!(lone.sent().all(|response| agent.response(response)));
    lone.end_turn();
    lone.pass(Duration::from_secs(1) / RATE * count as u32);
}

/// A response to a CreateConnection and one to a DeleteConnection.
fn sample() -> (Vec<u8>, Vec<u8>) {
    let mut lone = lone(Time::from_millis(1000));
    let mut agent = Calls::new(3);
    let mut response = |wanted: &[u8]| {
        for _ in 0..100 {
            let mut requests = Vec::new();
            let length = agent.requests(1, &mut requests);
            let frame = lone.receive(|room| {
                room[..length].copy_from_slice(&requests);
                length
            });
            lone.handle(frame.expect("a free frame"));
            let response = lone.sent().next().expect("an answer").to_vec();
            agent.response(&response);
            lone.end_turn();
            if response.starts_with(wanted) {
                return response;
            }
        }
        unreachable!("calls are set up and taken down");
    };
    (response(b"200"), response(b"250"))
}

fn serve(kind: Kind, clock: Clock, variant: Variant, ready: &dyn Fn(SocketAddr), idle_turns: &Arc<AtomicU64>, stop: &Arc<AtomicBool>) {
    let mut lone = lone(clock.now());
    let mut agent = Calls::new(1);
    let full = lone.now() + 2 * T_HIST;
    while lone.now() < full {
        turn(&mut lone, &mut agent, BATCH);
    }
    while clock.now() <= lone.now() {
        std::hint::spin_loop();
    }
    let counters = lone.counters().clone();
    let echo::Opened { table, transport, address, bypass } = echo::open(kind, clock, variant);
    let (control, orders) = crossbeam::channel::bounded(1);
    let past_the_kernel = bypass.is_some();
    let transport = Counting { inner: transport, past_the_kernel, idle: 0, idle_turns: idle_turns.clone(), stop: stop.clone(), control };
    ready(address);
    let core_loop = CoreLoop {
        link: None,
        books: Books::default(),
        core: lone.into_core(),
        transport: Box::new(transport),
        table,
        exit: Exit::Sockets,
        kept: None,
        outboxes: Vec::new(),
        inboxes: Vec::new(),
        control: orders,
        pulse: Arc::new(Pulse::default()),
        counters,
        inside: Arc::default(),
        tap: Arc::default(),
        spin: Spin::Always,
        clock,
    };
    core_loop.run();
}

/// Counts the turns that found nothing, and ends the loop.
struct Counting {
    inner: Box<dyn Transport>,
    past_the_kernel: bool,
    idle: u64,
    idle_turns: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    control: crossbeam::channel::Sender<ToCore>,
}

impl Transport for Counting {
    fn receive(&mut self, budget: usize, into: &mut Vec<FrameRef>) -> Time {
        let now = self.inner.receive(budget, into);
        if into.is_empty() {
            self.idle += 1;
            self.idle_turns.store(self.idle, Ordering::Relaxed);
        }
        if self.stop.load(Ordering::Relaxed) {
            if self.past_the_kernel {
                harness::veth::check(&self.inner.stats());
            }
            // Full: it was said before.
            let _ = self.control.try_send(ToCore::Stop);
        }
        now
    }

    fn adopt(&mut self, stray: &Stray<&[u8]>) -> Option<FrameRef> {
        self.inner.adopt(stray)
    }

    fn release(&mut self, frame: FrameRef) {
        self.inner.release(frame);
    }

    fn reserve(&mut self) -> Option<Slot> {
        self.inner.reserve()
    }

    fn buffer(&mut self, slot: &Slot) -> &mut [u8] {
        self.inner.buffer(slot)
    }

    fn send(&mut self, slot: Slot, len: usize, to: SocketAddr, local: u8) {
        self.inner.send(slot, len, to, local);
    }

    fn abandon(&mut self, slot: Slot) {
        self.inner.abandon(slot);
    }

    fn free_slots(&self) -> usize {
        self.inner.free_slots()
    }

    fn flush(&mut self) {
        self.inner.flush();
    }

    fn sleep(&mut self, timeout: Option<Duration>, idle: &mut dyn FnMut() -> bool) {
        self.inner.sleep(timeout, idle);
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }

    fn stats(&mut self) -> Stats {
        self.inner.stats()
    }
}
