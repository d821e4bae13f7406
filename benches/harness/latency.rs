//! How long a request waits for its response: one at a time, and at random moments at half of what the slowest subject can do.
//!
//! Measured at the client, from just before the request is sent, so that the way through the kernel, twice, is in it; it is the same
//! for all subjects. Under `--real-time` nobody else of this machine has a part in it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tollgate::host::cpu;
use tollgate::proto::base::Rng;

use super::{Agent, LOST_AFTER, Placement, Plan, Subject, Wire, Workload, burst, now, settle, sorted};

/// When requests are sent.
#[derive(Clone, Copy)]
enum Pace {
    /// When the one before is answered.
    One,
    /// At random moments, so far apart in the mean.
    Random(Duration),
}

/// What one burst showed, in ns.
#[derive(Clone, Copy)]
struct Times {
    p50: f64,
    p99: f64,
    lost: u64,
}

/// Runs all subjects in turns, those of a pair beside each other, and prints for each pair what the second takes longer than the first.
pub fn compare(subjects: &[Subject], workload: &Arc<Workload>, plan: &Plan) {
    let cpus = cpu::allowed();
    let [client, .., server] = cpus[..] else { return println!("skipped: client and server need a CPU each") };
    let full = subjects.iter().map(|subject| burst(subject, workload, plan, client.id, server.id));
    let slowest = full.map(|burst| burst.transactions as f64 / burst.wall_ns * 1e9).fold(f64::INFINITY, f64::min);
    let half = Duration::from_secs_f64(2.0 / slowest.max(1000.0));
    let paces = [("one at a time".to_owned(), Pace::One), (format!("{:.0} a second", slowest / 2.0), Pace::Random(half))];
    println!("| subject | requests | p50 us, median of the bursts | least | most | p99 us, median of the bursts | least | most | lost |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, pace) in paces {
        let mut all: Vec<Vec<Times>> = subjects.iter().map(|_| Vec::new()).collect();
        for round in 0..plan.rounds {
            for step in 0..subjects.len() {
                let place = (step + round) % subjects.len();
                let seed = round as u64;
                all[place].push(times(&subjects[place], workload, plan, [client.id, server.id], (pace, seed)));
                thread::park_timeout(plan.pause);
            }
        }
        for (subject, times) in subjects.iter().zip(&all) {
            let (p50, p99) = (sorted(times.iter().map(|t| t.p50 / 1e3)), sorted(times.iter().map(|t| t.p99 / 1e3)));
            let three = |all: &[f64]| format!("{:.1} | {:.1} | {:.1}", all[all.len() / 2], all[0], all[all.len() - 1]);
            let lost: u64 = times.iter().map(|times| times.lost).sum();
            println!("| {} | {name} | {} | {} | {lost} |", subject.name, three(&p50), three(&p99));
        }
        for (pair, names) in all.chunks_exact(2).zip(subjects.chunks_exact(2)) {
            let ratio = |part: fn(&Times) -> f64| {
                let ratios = sorted(pair[0].iter().zip(&pair[1]).map(|(echo, own)| part(own) / part(echo)));
                format!("{:.2} ({:.2} - {:.2})", ratios[ratios.len() / 2], ratios[0], ratios[ratios.len() - 1])
            };
            println!("{} to echo, {name}, median of the rounds: p50 {}, p99 {}", names[1].name, ratio(|t| t.p50), ratio(|t| t.p99));
        }
    }
}

fn times(subject: &Subject, workload: &Arc<Workload>, plan: &Plan, cpus: [usize; 2], (pace, seed): (Pace, u64)) -> Times {
    let [client, server] = cpus;
    let running = (subject.start)(&Placement { cpu: server, real_time: plan.real_time });
    let (workload, to, length) = (Arc::clone(workload), running.address, plan.burst);
    let placement = Placement { cpu: client, real_time: plan.real_time };
    let asking = thread::spawn(move || {
        let mut client = Client::new((workload.wire)(to), (workload.agent)(), pace, seed);
        settle(&placement);
        client.run(length / 5);
        client.waited.reset();
        client.lost = 0;
        client.run(length);
        let at = |quantile| client.waited.value_at_quantile(quantile) as f64;
        Times { p50: at(0.5), p99: at(0.99), lost: client.lost }
    });
    let times = asking.join().expect("the client ended in order");
    running.finish();
    times
}

/// Sends single requests and notes how long each waits.
struct Client {
    wire: Box<dyn Wire>,
    agent: Box<dyn Agent>,
    pace: Pace,
    rng: Rng,
    request: Vec<u8>,
    /// When those under way were sent; a core answers them in this order.
    under_way: VecDeque<Instant>,
    waited: Histogram<u64>,
    lost: u64,
}

impl Client {
    fn new(wire: Box<dyn Wire>, agent: Box<dyn Agent>, pace: Pace, seed: u64) -> Client {
        let waited = Histogram::new_with_bounds(1, 1_000_000_000, 3).expect("up to a second, to three digits");
        let rng = Rng::new(seed);
        Client { wire, agent, pace, rng, request: Vec::new(), under_way: VecDeque::with_capacity(512), waited, lost: 0 }
    }

    fn run(&mut self, length: Duration) {
        let start = now();
        let mut due = start;
        loop {
            let time = now();
            if time.duration_since(start) >= length {
                return;
            }
            let asks = match self.pace {
                Pace::One => self.under_way.is_empty(),
                Pace::Random(_) => time >= due,
            };
            if asks
                && self.send(time)
                && let Pace::Random(mean) = self.pace
            {
                // Exponential: moments that know nothing of each other.
                let unit = (self.rng.below(1 << 32) + 1) as f64 / (1u64 << 32) as f64;
                due += mean.mul_f64(-unit.ln());
            }
            self.listen();
            if self.under_way.front().is_some_and(|&sent| now().duration_since(sent) > LOST_AFTER) {
                self.lost += self.under_way.len() as u64;
                self.under_way.clear();
            }
        }
    }

    fn send(&mut self, time: Instant) -> bool {
        if self.request.is_empty() {
            self.agent.requests(1, &mut self.request);
        }
        let length = self.request.len();
        if !self.wire.send(&self.request, length) {
            return false;
        }
        self.request.clear();
        self.under_way.push_back(time);
        true
    }

    fn listen(&mut self) {
        let Client { wire, agent, under_way, waited, .. } = self;
        wire.receive(&mut |response| {
            agent.response(response);
            if let Some(sent) = under_way.pop_front() {
                waited.saturating_record(now().duration_since(sent).as_nanos() as u64);
            }
        });
    }
}
