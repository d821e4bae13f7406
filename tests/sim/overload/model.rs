//! A gateway of a known capacity and the controllers that overload it, in virtual time.
//!
//! The gateway is a queue served at a fixed cost a set-up; whether it is overloaded says the product's own detector, fed as a core feeds
//! it. While it is, each set-up gives one notification (H.248.11), or is refused quickly (MGCP's 409). Each controller has a throttle of the
//! product in front of its offered calls. Several cores are several such queues; each has virtual gateways of its own, with a controller each.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use tollgate::proto::base::{Rng, Time};
use tollgate::proto::overload::throttle::{Event, Parameters, Statistics, Throttle, Verdict};
use tollgate::proto::overload::{Detector, Levels};

/// One way between controller and gateway.
const DELAY: Duration = Duration::from_millis(5);
/// What refusing costs, of what serving costs.
const REFUSAL_COST: f64 = 0.1;

/// How calls come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrivals {
    Poisson,
    Constant,
}

/// A scenario. Rates are calls a second; functions of the time in seconds.
pub struct Scenario {
    pub name: &'static str,
    /// Of each core.
    pub capacity: fn(f64) -> f64,
    /// Controllers go round them.
    pub cores: usize,
    /// What each controller is asked for.
    pub demands: Vec<Box<dyn Fn(f64) -> f64>>,
    pub arrivals: Arrivals,
    /// Adds of a call: their notifications count each, or only the first of a context.
    pub adds: u32,
    pub first_only: bool,
    /// Of all calls, those with priority.
    pub priority: f64,
    /// Of all notifications, those lost.
    pub loss: f64,
    /// Overloaded, it refuses instead of notifying.
    pub refuses: bool,
    pub seconds: f64,
    /// Figures are taken from here on.
    pub from: f64,
    pub parameters: Parameters,
}

impl Scenario {
    /// A gateway of 1,000 calls a second, figures over 60 s from t = 10 s, offered these multiples of its capacity.
    pub fn new(name: &'static str, multiples: &[f64]) -> Scenario {
        Scenario {
            name,
            capacity: |_| 1000.0,
            cores: 1,
            demands: multiples.iter().map(|&multiple| Box::new(move |_| multiple * 1000.0) as Box<dyn Fn(f64) -> f64>).collect(),
            arrivals: Arrivals::Poisson,
            adds: 1,
            first_only: false,
            priority: 0.0,
            loss: 0.0,
            refuses: false,
            seconds: 70.0,
            from: 10.0,
            parameters: Parameters::default(),
        }
    }
}

/// What came of a second.
#[derive(Clone, Default)]
pub struct Second {
    pub offered: u32,
    pub admitted: u32,
    pub notified: u32,
    /// Set-up times of the calls that were up in it.
    pub times: Vec<Duration>,
}

/// What came of a scenario.
pub struct Outcome {
    /// Second by second, from the start.
    pub seconds: Vec<Second>,
    /// Set-ups served, of what the capacity of one core allows.
    pub useful: f64,
    /// Calls admitted a second, by controller, and of what was offered to it.
    pub admitted: Vec<(f64, f64)>,
    /// Set-up times.
    pub p50: Duration,
    pub p99: Duration,
    /// Notifications a second that came in, all controllers together.
    pub notified: f64,
    /// Priority calls refused, of those offered.
    pub priority_lost: f64,
    /// When the control was last started, and how it counted.
    pub statistics: Vec<Statistics>,
    /// Whether controls are on at the end.
    pub on: Vec<bool>,
}

impl Outcome {
    /// The second from which on any five admit at least 0.95 of this rate.
    pub fn settled(&self, rate: f64) -> Option<usize> {
        let enough = |five: &[Second]| five.iter().map(|second| f64::from(second.admitted)).sum::<f64>() >= 0.95 * rate * five.len() as f64;
        let last = self.seconds.windows(5).rposition(|five| !enough(five));
        let settled = last.map_or(0, |last| last + 1);
        (settled + 5 <= self.seconds.len()).then_some(settled)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Call(usize),
    Add { controller: usize, call: usize, first: bool, last: bool },
    Served(usize),
    Notified(usize),
}

struct Job {
    controller: usize,
    call: usize,
    first: bool,
    last: bool,
    arrived: Time,
}

/// A core.
struct Station {
    detector: Detector,
    queue: VecDeque<Job>,
    /// What is being served; whether it is refused, and since when.
    serving: Option<(Job, bool, Time)>,
}

struct World<'s> {
    scenario: &'s Scenario,
    events: BinaryHeap<Reverse<(Time, u64, What)>>,
    sequence: u64,
    rng: Rng,
    throttles: Vec<Throttle>,
    stations: Vec<Station>,
    seconds: Vec<Second>,
    calls: Vec<Time>,
    times: Vec<Duration>,
    served: f64,
    offered: Vec<[u64; 2]>,
    admitted: Vec<u64>,
    priority_refused: u64,
    notified: u64,
}

fn seconds(time: Time) -> f64 {
    time.0 as f64 / 1e9
}

fn after(now: Time, seconds: f64) -> Time {
    now + Duration::from_secs_f64(seconds.clamp(1e-9, 1e6))
}

impl World<'_> {
    fn push(&mut self, at: Time, what: What) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, what)));
    }

    fn unit(&mut self) -> f64 {
        (self.rng.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn measured(&self, now: Time) -> bool {
        seconds(now) >= self.scenario.from
    }

    fn second(&mut self, now: Time) -> &mut Second {
        let second = (seconds(now) as usize).min(self.seconds.len() - 1);
        &mut self.seconds[second]
    }

    fn next_call(&mut self, now: Time, controller: usize) {
        let rate = (self.scenario.demands[controller])(seconds(now));
        if rate <= 0.0 {
            return self.push(after(now, 0.1), What::Call(controller + self.throttles.len()));
        }
        let gap = match self.scenario.arrivals {
            Arrivals::Poisson => -(1.0 - self.unit()).ln() / rate,
            Arrivals::Constant => 1.0 / rate,
        };
        // A rate that grows must not be waited for at the old one.
        let what = if gap > 0.5 { What::Call(controller + self.throttles.len()) } else { What::Call(controller) };
        self.push(after(now, gap.min(0.5)), what);
    }

    fn call(&mut self, now: Time, controller: usize) {
        let priority = self.unit() < self.scenario.priority;
        let verdict = self.throttles[controller].step(now, Event::Call { priority });
        let second = self.second(now);
        second.offered += 1;
        second.admitted += u32::from(verdict == Verdict::Admit);
        if self.measured(now) {
            self.offered[controller][usize::from(priority)] += 1;
            self.admitted[controller] += u64::from(verdict == Verdict::Admit);
            self.priority_refused += u64::from(priority && verdict == Verdict::Refuse);
        }
        if verdict == Verdict::Admit {
            self.calls.push(now);
            for add in 1..=self.scenario.adds {
                let what = What::Add { controller, call: self.calls.len() - 1, first: add == 1, last: add == self.scenario.adds };
                self.push(now + DELAY, what);
            }
        }
    }

    fn serve(&mut self, now: Time, core: usize) {
        let station = &mut self.stations[core];
        let Some(job) = station.queue.pop_front() else { return };
        station.detector.worked(now, Duration::ZERO);
        station.detector.record(now, now.since(job.arrived));
        let overloaded = station.detector.refuse_new();
        let refused = self.scenario.refuses && overloaded;
        let cost = 1.0 / (self.scenario.capacity)(seconds(now)) / f64::from(self.scenario.adds);
        self.push(after(now, if refused { cost * REFUSAL_COST } else { cost }), What::Served(core));
        if overloaded && (job.first || !self.scenario.first_only) && self.unit() >= self.scenario.loss {
            self.push(now + DELAY, What::Notified(job.controller));
        }
        self.stations[core].serving = Some((job, refused, now));
    }

    fn served(&mut self, now: Time, core: usize) {
        let Some((job, refused, began)) = self.stations[core].serving.take() else { return };
        self.stations[core].detector.worked(now, now.since(began));
        if job.last && !refused {
            let time = (now + DELAY).since(self.calls[job.call]);
            self.second(now).times.push(time);
            if self.measured(now) {
                self.served += 1.0 / (self.scenario.capacity)(seconds(now));
                self.times.push(time);
            }
        }
        self.serve(now, core);
    }

    fn run(&mut self) {
        let controllers = self.throttles.len();
        (0..controllers).for_each(|controller| self.next_call(Time::ZERO, controller));
        let end = after(Time::ZERO, self.scenario.seconds);
        while let Some(Reverse((now, _, what))) = self.events.pop() {
            if now > end {
                break;
            }
            match what {
                What::Call(controller) => {
                    // The numbers behind the controllers only look again what is asked.
                    if controller < controllers {
                        self.call(now, controller);
                    }
                    self.next_call(now, controller % controllers);
                }
                What::Add { controller, call, first, last } => {
                    let core = controller % self.stations.len();
                    self.stations[core].queue.push_back(Job { controller, call, first, last, arrived: now });
                    if self.stations[core].serving.is_none() {
                        self.serve(now, core);
                    }
                }
                What::Served(core) => self.served(now, core),
                What::Notified(controller) => {
                    self.second(now).notified += 1;
                    self.notified += u64::from(self.measured(now));
                    self.throttles[controller].step(now, Event::Notification);
                }
            }
        }
    }
}

/// Plays a scenario; one seed, one outcome.
pub fn run(scenario: &Scenario, seed: u64) -> Outcome {
    let controllers = scenario.demands.len();
    let station = || Station { detector: Detector::new(Levels::default()), queue: VecDeque::new(), serving: None };
    let mut world = World {
        scenario,
        events: BinaryHeap::new(),
        sequence: 0,
        rng: Rng::new(seed),
        throttles: vec![Throttle::new(scenario.parameters); controllers],
        stations: (0..scenario.cores).map(|_| station()).collect(),
        seconds: vec![Second::default(); scenario.seconds.ceil() as usize + 1],
        calls: Vec::new(),
        times: Vec::new(),
        served: 0.0,
        offered: vec![[0; 2]; controllers],
        admitted: vec![0; controllers],
        priority_refused: 0,
        notified: 0,
    };
    world.run();
    world.seconds.truncate(scenario.seconds as usize);
    let span = scenario.seconds - scenario.from;
    world.times.sort_unstable();
    let quantile = |share: f64| world.times.get((world.times.len() as f64 * share) as usize).copied().unwrap_or_default();
    let priority: u64 = world.offered.iter().map(|offered| offered[1]).sum();
    let of_offered = |admitted: u64, offered: [u64; 2]| (admitted as f64 / span, admitted as f64 / (offered[0] + offered[1]).max(1) as f64);
    Outcome {
        seconds: std::mem::take(&mut world.seconds),
        useful: world.served / span,
        admitted: world.admitted.iter().zip(&world.offered).map(|(&admitted, &offered)| of_offered(admitted, offered)).collect(),
        p50: quantile(0.5),
        p99: quantile(0.99),
        notified: world.notified as f64 / span,
        priority_lost: world.priority_refused as f64 / priority.max(1) as f64,
        statistics: world.throttles.iter().map(Throttle::statistics).collect(),
        on: world.throttles.iter().map(|throttle| throttle.rate().is_some()).collect(),
    }
}
