//! `tollgate load --cluster`: plays the gateways of a cluster against its central node, with calls of their own.
//!
//! Each gateway is what ships: its node, its link thread and its connection; only the core that asks is played here, for all of them on
//! one thread. So what is measured is what a call waits for: the way to the link thread, to the central node, and back.

use super::{Args, random_seed};
use crate::config::{self, CacMode, Config};
use crate::host::clock::Clock;
use crate::host::cluster::gateway::{Cluster, CoreLink};
use crate::host::cluster::view::LinkView;
use crate::host::transport::wake::{self, Sleeper};
use crate::proto::base::{Rng, Time};
use crate::proto::cac::asker::{Call, FromLink, ToLink};
use crate::proto::cac::message::Told;
use crate::proto::cac::{Admission, Amount, Amounts, Charge, Class, Direction, Guid, Kind, Leg, Limits, ScopeId, Tree, UNLIMITED};
use anyhow::{Context, Result, bail};
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Bandwidth of a call, in kbit/s: G.711 with 20 ms in a packet.
const KBITS: u32 = 80;
/// How long gateways may take to tell what they have.
const SYNC_WITHIN: Duration = Duration::from_secs(120);
/// How long decisions that are on their way are waited for at the end.
const LAST_WITHIN: Duration = Duration::from_secs(1);
/// Between two looks whether all gateways are in sync.
const LOOK: Duration = Duration::from_millis(20);

/// One gateway that is played.
struct Player {
    number: u32,
    cluster: Arc<Cluster>,
    core: CoreLink,
    last: u64,
    asked: BTreeMap<Call, (Time, Charge)>,
    up: BTreeMap<Call, Charge>,
}

/// A whole cluster under load.
struct Cast {
    players: Vec<Player>,
    tree: Arc<Tree>,
    groups: Vec<ScopeId>,
    clock: Clock,
    rng: Rng,
    sleeper: Sleeper,
    hold: Duration,
    ends: BinaryHeap<Reverse<(Time, usize, Call)>>,
    used: Vec<Amounts>,
    outcome: Outcome,
}

/// What came of it.
struct Outcome {
    asked: u64,
    admitted: u64,
    refused: BTreeMap<&'static str, u64>,
    not_sent: u64,
    times: Histogram<u64>,
    peaks: Vec<u32>,
}

/// Runs the load on the cluster whose gateway file `config` is.
///
/// # Errors
/// When that is no such file, or a gateway cannot begin or is not welcome.
pub fn run(args: &Args, config: &Config) -> Result<ExitCode> {
    if config.cac.mode != CacMode::Cluster {
        bail!("--cluster: --config must be the file of a gateway in a cluster (cac.mode = \"cluster\")");
    }
    if let Some(rate) = args.rate.filter(|rate| !(0.001..=1e6).contains(rate)) {
        bail!("--rate: {rate} is not between 0.001 and 1000000 calls per second");
    }
    let mut cast = Cast::begin(args, config)?;
    let synced = cast.wait_for_sync()?;
    let (began, ended) = cast.play(args);
    cast.finish();
    let views = cast.players.iter().map(|player| player.cluster.view().context("a link does not answer")).collect::<Result<Vec<_>>>()?;
    let undecided: usize = cast.players.iter().map(|player| player.asked.len()).sum();
    let report =
        Report { cast: &cast, limits: &config::limits(config), seconds: ended.since(began).as_secs_f64(), synced, views, undecided };
    let text = if args.json { format!("{}\n", report.json()) } else { report.text() };
    cast.players.iter().for_each(|player| player.cluster.leave());
    std::io::stdout().write_all(text.as_bytes()).context("the report cannot be printed")?;
    Ok(if undecided == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Cast {
    fn begin(args: &Args, config: &Config) -> Result<Cast> {
        let tree = Arc::new(config::tree(config).context("--cluster: there is no [[scope]] to count in")?);
        let groups: Vec<ScopeId> = tree.iter().filter(|(_, scope)| scope.kind == Kind::TrunkGroup).map(|(id, _)| id).collect();
        if groups.is_empty() {
            bail!("--cluster: there is no trunk group for calls to be in");
        }
        let numbers = match args.gateways {
            Some(count) => (1..=count).collect(),
            None if config.cac.nodes.is_empty() => vec![config.cac.node],
            None => config.cac.nodes.clone(),
        };
        if config.cac.cs_key.is_some() && numbers.len() > 1 {
            bail!("--cluster: with keys every gateway has its own, and this file has that of one: --gateways 1, or without keys");
        }
        let clock = Clock::new();
        let (waker, sleeper) = wake::pair().context("an event to be woken by")?;
        let mut players = Vec::new();
        for number in numbers {
            let mut its = config.clone();
            its.cac.node = number;
            let standing = |sc| standing(&tree, &groups, sc, args.standing);
            let waker = std::slice::from_ref(&waker);
            let (cluster, mut links) = Cluster::start_with(&its, waker, clock, standing(number), Duration::ZERO)?;
            let core = links.pop().context("--cluster: no link")?;
            players.push(Player { number, cluster, core, last: 0, asked: BTreeMap::new(), up: BTreeMap::new() });
        }
        let mut used = vec![Amounts::ZERO; tree.len()];
        for told in players.iter().flat_map(|player| standing(&tree, &groups, player.number, args.standing)) {
            told.charge.scopes().for_each(|scope| used[usize::from(scope.0)] = used[usize::from(scope.0)].plus(&told.charge.need()));
        }
        let outcome = Outcome {
            asked: 0,
            admitted: 0,
            refused: BTreeMap::new(),
            not_sent: 0,
            times: Histogram::new_with_bounds(1, 60_000_000, 3).unwrap_or_else(|_| unreachable!("bounds that are right")),
            peaks: used.iter().map(|used| used.get(Amount::Calls)).collect(),
        };
        let rng = Rng::new(args.seed.unwrap_or_else(random_seed));
        let hold = Duration::from_millis(args.hold);
        Ok(Cast { players, tree, groups, clock, rng, sleeper, hold, ends: BinaryHeap::new(), used, outcome })
    }

    /// Waits until every gateway has told what it has: how many calls that were and how long it took, by gateway.
    fn wait_for_sync(&mut self) -> Result<Vec<(u32, u64, u64)>> {
        let begin = self.clock.now();
        loop {
            let views: Vec<_> = self.players.iter().map(|player| (player.number, player.cluster.view())).collect();
            if views.iter().all(|(_, view)| view.as_ref().is_some_and(|view| view.state == "in-sync")) {
                let synced = |(number, view): (u32, Option<LinkView>)| view.map(|view| (number, view.synced, view.sync_us));
                return Ok(views.into_iter().filter_map(synced).collect());
            }
            if self.clock.now().since(begin) > SYNC_WITHIN {
                let (number, _) =
                    views.iter().find(|(_, view)| view.as_ref().is_none_or(|view| view.state != "in-sync")).unwrap_or(&views[0]);
                bail!("gateway {number} has no session with a central node, or cannot tell all: the log says more");
            }
            self.wait(LOOK);
        }
    }

    /// Plays: when it began and ended.
    fn play(&mut self, args: &Args) -> (Time, Time) {
        let begin = self.clock.now();
        let end = begin + Duration::try_from_secs_f64(args.duration).unwrap_or(Duration::ZERO);
        let every = args.rate.map(|rate| Duration::from_secs_f64(1.0 / rate));
        let (mut due, mut turn) = (begin, 0);
        loop {
            let now = self.clock.now();
            if now >= end {
                return (begin, now);
            }
            self.end_due(now);
            self.receive(now);
            let on_the_way = || self.players.iter().map(|player| player.asked.len()).sum::<usize>();
            let mut room = match every {
                Some(every) => (now.since(due).as_nanos() / every.as_nanos().max(1)) as usize,
                None => args.window.unwrap_or(1).saturating_sub(on_the_way()),
            };
            while room > 0 {
                let players = self.players.len();
                self.ask(now, turn % players);
                (turn, room) = (turn + 1, room - 1);
                due = every.map_or(due, |every| due + every);
            }
            self.wake();
            let next = self.ends.peek().map_or(end, |Reverse((at, ..))| *at).min(end).min(every.map_or(end, |every| due + every));
            self.wait(next.since(self.clock.now()));
        }
    }

    fn wake(&self) {
        for player in &self.players {
            player.core.waker.wake();
        }
    }

    fn ask(&mut self, now: Time, place: usize) {
        let group = self.groups[self.rng.below(self.groups.len() as u64) as usize];
        let one_way = self.tree.get(group).and_then(|scope| scope.one_way);
        let direction = one_way.unwrap_or(if self.rng.below(2) == 0 { Direction::Inbound } else { Direction::Outbound });
        let class = self.tree.get(group).map_or(Class::Normal, |scope| scope.class);
        let charge = self.tree.charge(group, None, Charge::new(direction, class, KBITS));
        let player = &mut self.players[place];
        player.last += 1;
        let call = Call::new(player.last, if direction == Direction::Inbound { Leg::Ingress } else { Leg::Egress });
        if player.core.to.send(ToLink::Ask(call, charge)).is_err() {
            return self.outcome.not_sent += 1;
        }
        self.outcome.asked += 1;
        player.asked.insert(call, (now, charge));
    }

    fn receive(&mut self, now: Time) {
        for place in 0..self.players.len() {
            while let Some(message) = self.players[place].core.from.receive() {
                let FromLink::Decided(call, result) = message else { continue };
                let Some((asked, charge)) = self.players[place].asked.remove(&call) else { continue };
                self.outcome.times.saturating_record((now.since(asked).as_nanos() as u64 / 1_000).max(1));
                match result {
                    Ok(()) => {
                        self.outcome.admitted += 1;
                        self.players[place].up.insert(call, charge);
                        self.count(&charge, Amounts::plus);
                        self.ends.push(Reverse((now + self.hold, place, call)));
                    }
                    Err(denial) => *self.outcome.refused.entry(denial.cause.text()).or_default() += 1,
                }
            }
        }
    }

    fn count(&mut self, charge: &Charge, change: impl Fn(&Amounts, &Amounts) -> Amounts) {
        for scope in charge.scopes() {
            let place = usize::from(scope.0);
            self.used[place] = change(&self.used[place], &charge.need());
            self.outcome.peaks[place] = self.outcome.peaks[place].max(self.used[place].get(Amount::Calls));
        }
    }

    /// Ends the calls whose time is over, as far as the rings have room.
    fn end_due(&mut self, now: Time) {
        while let Some(&Reverse((at, place, call))) = self.ends.peek() {
            if at > now || self.players[place].core.to.send(ToLink::End(call)).is_err() {
                return;
            }
            self.ends.pop();
            if let Some(charge) = self.players[place].up.remove(&call) {
                self.count(&charge, Amounts::minus);
            }
        }
    }

    /// Takes the last decisions, and ends all calls.
    fn finish(&mut self) {
        let end = self.clock.now() + LAST_WITHIN;
        loop {
            let now = self.clock.now();
            self.receive(now);
            self.end_due(Time::NEVER);
            self.wake();
            let decided = self.players.iter().all(|player| player.asked.is_empty());
            if decided && self.ends.is_empty() || now >= end {
                return;
            }
            self.wait(Duration::from_millis(5));
        }
    }

    /// Sleeps until a decision comes, or for so long.
    fn wait(&mut self, time: Duration) {
        self.sleeper.announce();
        if self.players.iter().all(|player| player.core.from.is_empty()) {
            let timeout = (time.as_nanos().div_ceil(1_000_000)).min(100) as i64;
            let mut events = [zmq::PollItem::from_fd(self.sleeper.event().as_raw_fd(), zmq::POLLIN)];
            // Interrupted: the next turn looks again.
            let _ = zmq::poll(&mut events, timeout);
        }
        self.sleeper.awake();
        self.sleeper.drain();
    }
}

/// Calls that gateway `sc` has up before the load begins.
fn standing<'a>(tree: &'a Tree, groups: &'a [ScopeId], sc: u32, count: usize) -> Vec<Told> {
    let told = |number: usize| {
        let group = groups[number % groups.len()];
        let charge = tree.charge(group, None, Charge::new(Direction::Inbound, Class::Normal, KBITS));
        let guid = Guid { sc, incarnation: 0, number: number as u64 + 1 };
        Told { guid, leg: Leg::Ingress, charge, admission: Admission::Granted }
    };
    (0..count).map(told).collect()
}
/// What is told at the end.
struct Report<'a> {
    cast: &'a Cast,
    limits: &'a [Limits],
    seconds: f64,
    /// Gateway, calls, and microseconds.
    synced: Vec<(u32, u64, u64)>,
    views: Vec<LinkView>,
    undecided: usize,
}

impl Report<'_> {
    fn sum(&self, of: fn(&LinkView) -> u64) -> u64 {
        self.views.iter().map(of).sum()
    }

    fn decided(&self) -> u64 {
        let outcome = &self.cast.outcome;
        outcome.admitted + outcome.refused.values().sum::<u64>()
    }

    /// Name, most calls at a time, and how many there may be.
    fn peaks(&self) -> impl Iterator<Item = (&str, u32, Option<u32>)> {
        self.cast.tree.iter().zip(&self.cast.outcome.peaks).map(|((id, scope), peak)| {
            let limit = self.limits.get(usize::from(id.0)).map(|limits| limits.calls).filter(|limit| *limit < UNLIMITED);
            (scope.name.as_str(), *peak, limit)
        })
    }

    fn json(&self) -> Value {
        let outcome = &self.cast.outcome;
        let (times, synced) = (&outcome.times, &self.synced);
        json!({
            "gateways": self.views.len(),
            "duration_s": self.seconds,
            "asked": outcome.asked,
            "unsent": outcome.not_sent,
            "undecided": self.undecided,
            "decisions_per_second": self.decided() as f64 / self.seconds.max(1e-9),
            "admitted": { "all": outcome.admitted, "by_central": self.sum(|view| view.granted), "alone": self.sum(|view| view.local) },
            "refused": outcome.refused,
            "refused_alone": self.sum(|view| view.refused),
            "overdue": self.sum(|view| view.overdue),
            "busy": self.sum(|view| view.busy),
            "latency_us": { "p50": times.value_at_quantile(0.5), "p99": times.value_at_quantile(0.99), "max": times.max() },
            "peak": self.peaks().map(|(name, peak, limit)| (name.to_owned(), json!({ "calls": peak, "limit": limit }))).collect::<Map<_, _>>(),
            "sync": synced.iter().map(|(node, calls, us)| json!({ "node": node, "calls": calls, "ms": *us as f64 / 1e3 })).collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let outcome = &self.cast.outcome;
        let mut lines = vec![format!(
            "{} gateways, {:.1} s: {} calls asked for, {:.0} decisions/s",
            self.views.len(),
            self.seconds,
            outcome.asked,
            self.decided() as f64 / self.seconds.max(1e-9)
        )];
        let (central, alone) = (self.sum(|view| view.granted), self.sum(|view| view.local));
        lines.push(format!("admitted {}: by the central node {central}, alone {alone}", outcome.admitted));
        lines.extend(outcome.refused.iter().map(|(why, count)| format!("refused {count}: {why}")));
        let (overdue, busy) = (self.sum(|view| view.overdue), self.sum(|view| view.busy));
        lines.push(format!(
            "no answer in time {overdue}, central node busy {busy}, not sent {}, undecided {}",
            outcome.not_sent, self.undecided
        ));
        let times = &outcome.times;
        let (p50, p99) = (times.value_at_quantile(0.5), times.value_at_quantile(0.99));
        lines.push(format!("decision: p50 {p50} us, p99 {p99} us, the longest {} us", times.max()));
        lines.extend(self.peaks().map(|(name, peak, limit)| {
            let limit = limit.map_or(String::new(), |limit| format!(" of {limit}"));
            format!("scope {name}: at most {peak}{limit} calls at a time")
        }));
        let synced = self.synced.iter().filter(|(_, calls, _)| *calls > 0);
        lines.extend(synced.map(|(node, calls, us)| format!("node {node} told {calls} calls in {:.1} ms", *us as f64 / 1e3)));
        lines.join("\n") + "\n"
    }
}
