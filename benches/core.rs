//! What a command costs one core without IO: from the received frame to the written and remembered response.
//!
//! `cargo bench --bench core [-- --rounds 9 --pairs 20000 | --criterion | --instructions]`. Endpoints are drawn at random, calls end at
//! random, and the history is full of T-HIST's worth of responses, so that each command pushes an old one out. Gateways take turns in
//! short bursts, because machines swing; the table shows the median and the spread of the bursts. Reading the datagram into its frame and
//! the agent's side are not timed.
//!
//! `cargo bench --bench core -- --instructions` counts instead what no neighbour on the machine can change: the instructions of each
//! kind of command, by running itself (`--counted`) under callgrind, which must be installed; with `--large` at 100,000 endpoints, with
//! `--varied` of commands whose options and descriptions have not come before, so that none is remembered.
//!
//! With `--admission` either is done three times: without admission control, with it in the gateway (`cac.mode = "local"`), and by quotas in
//! a cluster. Each call then counts in five scopes, which have room: its trunk group, two pools, a zone and a peer.
#![allow(missing_docs, reason = "a program")]

#[path = "harness/scopes.rs"]
mod scopes;

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use tollgate::proto::base::{Counter, EndpointIndex, FrameRef, Rng, Time};
use tollgate::proto::cac::asker::FromLink;
use tollgate::proto::cac::{Amount, Limits, ScopeId};
use tollgate::proto::core::exercise::{self, DOMAIN, Lone};
use tollgate::proto::core::{Answer as CoreAnswer, Ask};
use tollgate::proto::package::EventId;
use tollgate::proto::plan::{Admission, Plan, Settings};
use tollgate::proto::trunk::{
    Answer, Card, CardFault, CardOrder, FacilityKind, FacilityPlan, Hook, Indication, Media, MediaAddress, MediaReport, SimCard, Topology,
};

/// Commands the core gets per turn of its loop.
const BATCH: usize = 16;
/// Commands a second, in the core's time: with T-HIST of 30 s, 600,000 remembered responses (the default of the tuning file).
const RATE: u32 = 20_000;
/// Of the batches of a burst, one in this many, the slowest, is left out: those that other work on the machine interrupted.
const TRIMMED: usize = 50;
/// Connections of one simulated card: as many as it has ports.
const CARD: u32 = 30_000;

const SDP: &str = include_str!("harness/offer.sdp");

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let number = |name: &str, default: usize| {
        let place = arguments.iter().position(|argument| argument == name);
        place.and_then(|place| arguments.get(place + 1)).and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    if has("--counted") {
        return counted();
    }
    let control = if has("--admission") { &Control::ALL[..] } else { &Control::ALL[..1] };
    if has("--instructions") {
        return control.iter().for_each(|&control| instructions(control));
    }
    if has("--criterion") {
        return headline(&mut Criterion::default());
    }
    // `cargo test` runs benches once, quickly: unoptimised, filling the large ones takes minutes.
    let sizes =
        |sizes: &[Size]| -> Vec<Size> { sizes.iter().flat_map(|size| control.iter().map(|&control| Size { control, ..*size })).collect() };
    if has("--test") || !has("--bench") {
        let controlled = Control::ALL.map(|control| Size { control, ..SIZES[0] });
        table(&[&controlled[..], &SIZES[1..2]].concat(), 1000, 1, 500);
    } else if has("--admission") {
        table(&sizes(&[SIZES[1], SIZES[3]]), RATE, number("--rounds", 9), number("--pairs", 20_000));
    } else {
        table(&SIZES, RATE, number("--rounds", 9), number("--pairs", 20_000));
    }
}

/// Sizes of a gateway, and how many responses it remembers.
#[derive(Clone, Copy)]
struct Size {
    name: &'static str,
    t1s: u32,
    t3s: u32,
    standing: usize,
    control: Control,
}

/// Who admits calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    Off,
    Local,
    Quota,
}

impl Control {
    const ALL: [Control; 3] = [Control::Off, Control::Local, Control::Quota];

    /// What it is called, by an option and in the table.
    const fn name(self) -> &'static str {
        match self {
            Control::Off => "--off",
            Control::Local => "--local",
            Control::Quota => "--quota",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Control::Off => "",
            Control::Local => ", admission in the gateway",
            Control::Quota => ", admission by quotas",
        }
    }

    /// What counts calls, with room for all of them.
    fn set_up(self, plan: &mut Plan, settings: &mut Settings) {
        if self == Control::Off {
            return;
        }
        let tree = scopes::tree();
        settings.admission = vec![if self == Control::Local { Limits::of_calls(1_000_000) } else { Limits::NONE }; tree.len()];
        let groups = vec![scopes::NORTH; plan.topology.len() as usize];
        plan.admission =
            Some(Admission { tree, groups, decide_within: Duration::from_millis(250), cluster: self == Control::Quota, open: vec![] });
    }

    /// Quotas of every scope.
    fn grant(self, lone: &mut Lone, scopes: usize) {
        if self == Control::Quota {
            (0..scopes as u16).for_each(|scope| lone.hear(FromLink::Quota(ScopeId(scope), 1_000_000, 1)));
            lone.hear(FromLink::Lease(Time::NEVER));
        }
    }
}

const SIZES: [Size; 7] = [
    Size { name: "24 endpoints, 0 calls", t1s: 1, t3s: 0, standing: 0, control: Control::Off },
    Size { name: "672 endpoints, 0 calls", t1s: 0, t3s: 1, standing: 0, control: Control::Off },
    Size { name: "10,000 endpoints, 0 calls", t1s: 0, t3s: 15, standing: 0, control: Control::Off },
    Size { name: "10,000 endpoints, 10,000 calls", t1s: 0, t3s: 15, standing: 10_000, control: Control::Off },
    Size { name: "100,000 endpoints, 0 calls", t1s: 0, t3s: 149, standing: 0, control: Control::Off },
    Size { name: "100,000 endpoints, 10,000 calls", t1s: 0, t3s: 149, standing: 10_000, control: Control::Off },
    Size { name: "100,000 endpoints, 50,000 calls", t1s: 0, t3s: 149, standing: 50_000, control: Control::Off },
];

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Crcx,
    Dlcx,
    Mdcx,
    Auep,
    Rqnt,
    Repeat,
}

const KINDS: [(Kind, &str); 6] = [
    (Kind::Crcx, "CRCX with SDP"),
    (Kind::Dlcx, "DLCX"),
    (Kind::Mdcx, "MDCX with SDP"),
    (Kind::Auep, "AUEP F: I, N, X"),
    (Kind::Rqnt, "RQNT without events"),
    (Kind::Repeat, "repeat of CRCX"),
];

/// The order in which a call's commands come.
const CALL: [Kind; 6] = [Kind::Crcx, Kind::Repeat, Kind::Mdcx, Kind::Auep, Kind::Rqnt, Kind::Dlcx];

/// Mean time per command of each kind, the mean of CRCX and DLCX in front.
type Costs = [f64; KINDS.len() + 1];

fn table(sizes: &[Size], rate: u32, rounds: usize, calls: usize) {
    let mut stands: Vec<Stand> = sizes.iter().map(|size| Stand::new(*size, rate)).collect();
    let mut bursts: Vec<Vec<Costs>> = vec![Vec::new(); sizes.len()];
    for round in 0..rounds {
        for step in 0..stands.len() {
            let place = (step + round) % stands.len();
            // The others have taken the cache.
            stands[place].calls(calls / 4);
            bursts[place].push(stands[place].calls(calls));
        }
    }
    println!("ns per command: median (lowest - highest) of {rounds} bursts of {calls} calls, history of {} responses\n", rate * 30);
    let names: String = KINDS.iter().map(|(_, name)| format!(" {name} |")).collect();
    println!("| gateway | CRCX and DLCX, mean |{names}\n|---|---|{}", "---|".repeat(KINDS.len()));
    let mut medians = Vec::new();
    for (size, bursts) in sizes.iter().zip(&bursts) {
        let mut line = String::new();
        for kind in 0..=KINDS.len() {
            let mut costs: Vec<f64> = bursts.iter().map(|burst| burst[kind]).collect();
            costs.sort_by(f64::total_cmp);
            let (median, lowest, highest) = (costs[costs.len() / 2], costs[0], costs[costs.len() - 1]);
            let _ = write!(line, " {median:.0} ({lowest:.0} - {highest:.0}) |");
            if kind == 0 {
                medians.push(median);
            }
        }
        println!("| {}{} |{line}", size.name, size.control.words());
    }
    let (base, worst) = (medians[0], medians.iter().copied().fold(0.0, f64::max));
    println!("\nbase {base:.0} ns, worst {worst:.0} ns, difference {:.0} ns; {:.0} pairs a second at worst", worst - base, 5e8 / worst);
}

fn headline(criterion: &mut Criterion) {
    for size in [SIZES[1], SIZES[6]] {
        let mut stand = Stand::new(size, RATE);
        let mut group = criterion.benchmark_group("core");
        group.throughput(Throughput::Elements(2));
        group.bench_function(format!("CRCX and DLCX, {}", size.name), |bencher| {
            bencher.iter_custom(|pairs| {
                let batches = pairs.div_ceil(BATCH as u64);
                let spent: Duration = (0..batches).map(|_| stand.batch(Kind::Crcx) + stand.batch(Kind::Dlcx)).sum();
                spent.mul_f64(pairs as f64 / (batches * BATCH as u64) as f64)
            });
        });
        group.finish();
    }
    criterion.final_summary();
}

/// Commands of each kind that are counted.
const COUNTED: usize = 4000;

/// Instructions per command of each kind: callgrind counts within one `handle_*` at a time.
fn instructions(control: Control) {
    let large = std::env::args().any(|argument| argument == "--large");
    let varied = if is_varied() { ", no option or description twice" } else { "" };
    let name = if large { SIZES[6].name } else { SIZES[1].name };
    println!("instructions per command, {COUNTED} of each kind, {name}{varied}{}", control.words());
    for (kind, name) in KINDS {
        let function = match kind {
            Kind::Crcx => "*handle_crcx*",
            Kind::Dlcx => "*handle_dlcx*",
            Kind::Mdcx => "*handle_mdcx*",
            Kind::Auep => "*handle_auep*",
            Kind::Rqnt => "*handle_rqnt*",
            Kind::Repeat => "*handle_repeat*",
        };
        let mut valgrind = std::process::Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(format!("--toggle-collect={function}"));
        valgrind.arg(std::env::current_exe().expect("a program")).arg("--counted").args(large.then_some("--large"));
        valgrind.args(is_varied().then_some("--varied")).arg(control.name());
        let output = valgrind.output().expect("valgrind is installed");
        let text = String::from_utf8_lossy(&output.stderr);
        let collected = text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse::<usize>().ok());
        println!("{name}: {}", collected.unwrap_or_else(|| panic!("{text}")) / COUNTED);
    }
}

fn is_varied() -> bool {
    std::env::args().any(|argument| argument == "--varied")
}

/// The program that [`instructions`] counts.
fn counted() {
    let has = |name: &str| std::env::args().any(|argument| argument == name);
    let control = Control::ALL.into_iter().find(|control| has(control.name())).unwrap_or(Control::Off);
    Stand::new(Size { control, ..if has("--large") { SIZES[6] } else { SIZES[1] } }, 1000).calls(COUNTED);
}

/// A call that is up.
#[derive(Clone, Copy)]
struct Call {
    endpoint: EndpointIndex,
    connection: [u8; 8],
}

/// A core with its agent.
struct Stand {
    lone: Lone,
    topology: std::sync::Arc<Topology>,
    rng: Rng,
    step: Duration,
    id: u32,
    calls: Vec<Call>,
    /// Per endpoint: whether it has a call.
    busy: Vec<bool>,
    text: String,
    frames: Vec<FrameRef>,
    /// Whether the stand is set up, so that its commands count.
    measured: bool,
}

impl Stand {
    /// A gateway with its calls up and its history full, that runs at `rate` commands a second.
    fn new(size: Size, rate: u32) -> Stand {
        let plan_of = |kind, count| (1..=count).map(move |unit| FacilityPlan { kind, unit, common_channel: false });
        let facilities: Vec<FacilityPlan> = plan_of(FacilityKind::T3, size.t3s).chain(plan_of(FacilityKind::T1, size.t1s)).collect();
        let connections = size.standing as u32 + 64;
        let mut plan = exercise::plan(&facilities, connections, rate * 32, 448).expect("facilities");
        let mut settings = exercise::settings();
        size.control.set_up(&mut plan, &mut settings);
        let scopes = settings.admission.len();
        let topology = plan.topology.clone();
        let rack = Rack((0..connections.div_ceil(CARD)).map(|n| exercise::card(&plan, address(n), CARD, u64::from(n))).collect());
        let mut lone = Lone::new(plan, settings, Box::new(rack), 1, Time::from_millis(1000));
        assert!(lone.restart(), "the restart is told and answered");
        size.control.grant(&mut lone, scopes);
        let busy = vec![false; topology.len() as usize];
        let step = Duration::from_secs(1) / rate;
        let mut stand = Stand {
            lone,
            topology,
            rng: Rng::new(2),
            step,
            id: 1000,
            calls: Vec::new(),
            busy,
            text: String::new(),
            frames: Vec::with_capacity(BATCH),
            measured: false,
        };
        while stand.calls.len() < size.standing {
            stand.batch(Kind::Crcx);
        }
        for _ in 0..(rate as usize * 16).div_ceil(BATCH) {
            stand.batch(Kind::Crcx);
            stand.batch(Kind::Dlcx);
        }
        assert!(stand.is_counted(), "calls count in their scopes");
        stand.measured = true;
        stand
    }

    /// So many calls as agents make them: set up, audited, modified, taken down; beside it the repeats.
    fn calls(&mut self, calls: usize) -> Costs {
        let mut batches = KINDS.map(|_| Vec::with_capacity(calls / BATCH + 1));
        for kind in (0..calls.div_ceil(BATCH)).flat_map(|_| CALL) {
            let spent = self.batch(kind).as_nanos() as f64 / BATCH as f64;
            let place = KINDS.iter().position(|(known, _)| *known == kind).expect("every kind is in the list");
            batches[place].push(spent);
        }
        let means = batches.map(|mut batches| {
            batches.sort_by(f64::total_cmp);
            batches.truncate(batches.len() - batches.len() / TRIMMED);
            batches.iter().sum::<f64>() / batches.len() as f64
        });
        let mut costs = [0.0; KINDS.len() + 1];
        costs[0] = (means[0] + means[1]) / 2.0;
        costs[1..].copy_from_slice(&means);
        costs
    }

    /// One batch of a kind, as one turn of the core's loop: how long it took.
    fn batch(&mut self, kind: Kind) -> Duration {
        let chosen: [usize; BATCH] = std::array::from_fn(|n| match kind {
            Kind::Crcx => self.free_endpoint(),
            Kind::Repeat => 0,
            Kind::Mdcx | Kind::Auep | Kind::Rqnt => self.rng.below(self.calls.len() as u64) as usize,
            Kind::Dlcx => {
                // Calls to delete go to the end, where they are taken from.
                let last = self.calls.len() - 1 - n;
                let place = self.rng.below(last as u64 + 1) as usize;
                self.calls.swap(place, last);
                last
            }
        });
        if kind == Kind::Repeat {
            self.id -= BATCH as u32;
        }
        let repeated = self.calls.len().saturating_sub(BATCH);
        let is_varied = is_varied();
        for (n, &place) in chosen.iter().enumerate() {
            self.id += 1;
            self.text.clear();
            let (text, id) = (&mut self.text, self.id);
            let endpoint = match kind {
                Kind::Crcx => EndpointIndex(place as u32),
                Kind::Repeat => self.calls[repeated + n].endpoint,
                Kind::Mdcx | Kind::Auep | Kind::Rqnt | Kind::Dlcx => self.calls[place].endpoint,
            };
            let mut name = [0; 64];
            let length = self.topology.write_name(endpoint, &mut name);
            let name = std::str::from_utf8(&name[..length]).expect("names are ASCII");
            let call = endpoint.0;
            let (option, line) = match is_varied {
                true => (format!(", x-id:{id}"), format!("a=id:{id}\r\n")),
                false => Default::default(),
            };
            match kind {
                Kind::Crcx | Kind::Repeat => write!(
                    text,
                    "CRCX {id} {name}@{DOMAIN} MGCP 1.0\r\nC: A3C47F{call:08X}\r\nL: p:20, a:PCMU;PCMA;G729, e:on, s:off{option}\r\n\
                     M: sendrecv\r\n\r\n{SDP}{line}"
                ),
                Kind::Mdcx => write!(
                    text,
                    "MDCX {id} {name}@{DOMAIN} MGCP 1.0\r\nC: A3C47F{call:08X}\r\nI: {}\r\nM: sendrecv\r\n\r\n{SDP}{line}",
                    hex(&self.calls[place].connection)
                ),
                Kind::Auep => write!(text, "AUEP {id} {name}@{DOMAIN} MGCP 1.0\r\nF: I, N, X\r\n"),
                Kind::Rqnt => write!(text, "RQNT {id} {name}@{DOMAIN} MGCP 1.0\r\nX: {id:X}\r\n"),
                Kind::Dlcx => write!(
                    text,
                    "DLCX {id} {name}@{DOMAIN} MGCP 1.0\r\nC: A3C47F{call:08X}\r\nI: {}\r\n",
                    hex(&self.calls[place].connection)
                ),
            }
            .expect("a string takes everything");
            let text = self.text.as_bytes();
            let frame = self.lone.receive(|room| {
                room[..text.len()].copy_from_slice(text);
                text.len()
            });
            self.frames.push(frame.expect("no frame is held between batches"));
        }
        self.lone.pass(self.step * BATCH as u32);
        let start = now();
        match kind {
            _ if !self.measured => handle_others(&mut self.lone, &self.frames),
            Kind::Crcx => handle_crcx(&mut self.lone, &self.frames),
            Kind::Repeat => handle_repeat(&mut self.lone, &self.frames),
            Kind::Mdcx => handle_mdcx(&mut self.lone, &self.frames),
            Kind::Auep => handle_auep(&mut self.lone, &self.frames),
            Kind::Rqnt => handle_rqnt(&mut self.lone, &self.frames),
            Kind::Dlcx => handle_dlcx(&mut self.lone, &self.frames),
        }
        let spent = start.elapsed();
        self.answers(kind, &chosen);
        spent
    }

    /// Whether each call is charged in its five scopes, where there are any.
    fn is_counted(&mut self) -> bool {
        let Some(CoreAnswer::Admission(view)) = self.lone.ask(Ask::Admission) else { return false };
        let used: u32 = view.used.iter().map(|used| used.get(Amount::Calls)).sum();
        used as usize == if view.used.is_empty() { 0 } else { 5 * self.calls.len() }
    }

    /// What came back: every command was answered, and right.
    fn answers(&mut self, kind: Kind, chosen: &[usize; BATCH]) {
        let expected = if kind == Kind::Dlcx { &b"250 "[..] } else { b"200 " };
        let mut count = 0;
        for (response, &place) in self.lone.sent().zip(chosen) {
            assert!(response.starts_with(expected), "{}", String::from_utf8_lossy(response));
            count += 1;
            if kind == Kind::Crcx {
                let at = response.windows(3).position(|window| window == b"I: ").expect("a connection identifier");
                let connection = response[at + 3..at + 11].try_into().expect("eight digits");
                self.calls.push(Call { endpoint: EndpointIndex(place as u32), connection });
            }
        }
        assert_eq!((count, self.lone.end_turn(), self.lone.held()), (BATCH, 0, 0));
        self.frames.clear();
        if kind == Kind::Dlcx {
            for call in self.calls.drain(self.calls.len() - BATCH..) {
                self.busy[call.endpoint.0 as usize] = false;
            }
        }
        debug_assert_eq!(self.lone.counters().get(Counter::HistoryFull), 0);
    }

    /// An endpoint without a call, at random.
    fn free_endpoint(&mut self) -> usize {
        loop {
            let place = self.rng.below(self.busy.len() as u64) as usize;
            if !std::mem::replace(&mut self.busy[place], true) {
                return place;
            }
        }
    }
}

fn hex(digits: &[u8; 8]) -> &str {
    std::str::from_utf8(digits).expect("hexadecimal digits")
}

/// One turn of the loop. A function for each kind, so that a profiler can tell them apart.
macro_rules! turns {
    ($($name:ident)+) => {
        $(#[inline(never)]
        fn $name(lone: &mut Lone, frames: &[FrameRef]) {
            // Not to be merged with its likes.
            std::hint::black_box(stringify!($name));
            lone.read_ahead(frames);
            for &frame in frames {
                lone.handle(frame);
            }
            lone.handle_time();
            while lone.take_for_node().is_some() {}
        })+
    };
}

turns! { handle_crcx handle_repeat handle_mdcx handle_auep handle_rqnt handle_dlcx handle_others }

#[allow(clippy::disallowed_methods, reason = "a measurement")]
fn now() -> Instant {
    Instant::now()
}

fn address(card: u32) -> IpAddr {
    [192, 0, 2, 20 + card as u8].into()
}

/// As many simulated cards as the calls need ports; connections go to them by slot.
struct Rack(Vec<SimCard>);

impl Rack {
    fn card(&mut self, connection: u32) -> (&mut SimCard, u32) {
        (&mut self.0[(connection / CARD) as usize], connection % CARD)
    }
}

impl Card for Rack {
    fn open(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        let (card, slot) = self.card(connection);
        card.open(now, endpoint, slot, media)
    }

    fn modify(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        let (card, slot) = self.card(connection);
        card.modify(now, endpoint, slot, media)
    }

    fn close(&mut self, now: Time, endpoint: EndpointIndex, connection: u32) -> MediaReport {
        let (card, slot) = self.card(connection);
        card.close(now, endpoint, slot)
    }

    fn report(&self, now: Time, connection: u32) -> MediaReport {
        self.0[(connection / CARD) as usize].report(now, connection % CARD)
    }

    fn start_signal(
        &mut self,
        now: Time,
        endpoint: EndpointIndex,
        connection: Option<u32>,
        signal: EventId,
        parameters: &[u8],
    ) -> Result<(), CardFault> {
        let (card, slot) = self.card(connection.unwrap_or(0));
        card.start_signal(now, endpoint, connection.map(|_| slot), signal, parameters)
    }

    fn stop_signal(&mut self, now: Time, endpoint: EndpointIndex, connection: Option<u32>, signal: EventId) {
        let (card, slot) = self.card(connection.unwrap_or(0));
        card.stop_signal(now, endpoint, connection.map(|_| slot), signal);
    }

    fn hook(&self, endpoint: EndpointIndex) -> Option<Hook> {
        self.0.first().and_then(|card| card.hook(endpoint))
    }

    fn holds(&self, endpoint: EndpointIndex, event: EventId) -> bool {
        self.0.first().is_some_and(|card| card.holds(endpoint, event))
    }

    /// The cards answer at once and have no defects: nothing to say.
    fn poll(&mut self, now: Time) -> Option<Indication> {
        self.0.iter_mut().find_map(|card| card.poll(now))
    }

    fn deadline(&self) -> Time {
        self.0.iter().map(|card| card.deadline()).min().unwrap_or(Time::NEVER)
    }

    fn operate(&mut self, now: Time, order: &CardOrder) -> Result<(), &'static str> {
        self.0.iter_mut().try_for_each(|card| card.operate(now, order))
    }
}
