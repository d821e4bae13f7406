//! The agent against a scripted gateway in virtual time: losses, duplicates, reordering, slow commands, dead addresses, faults.

mod rules;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::scripted::{Gateway, Script};
use super::*;

#[derive(Default)]
struct Seen {
    measured: usize,
    lost: usize,
    codes: HashMap<u16, usize>,
    verbs: std::collections::HashSet<Verb>,
    failures: Vec<Failure>,
}

impl Observer for Seen {
    fn ended(&mut self, now: Time, ended: &Ended, code: Option<u16>) {
        self.verbs.insert(ended.verb);
        self.measured += usize::from(ended.intended != Time::NEVER);
        assert!(ended.intended == Time::NEVER || ended.intended <= now);
        match code {
            Some(code) => *self.codes.entry(code).or_default() += 1,
            None => self.lost += 1,
        }
    }

    fn failed(&mut self, failure: Failure, _: &[u8]) {
        self.failures.push(failure);
    }
}

/// Arrival in ns, sequence, whether to the gateway, bytes.
type Transit = (u64, u64, bool, Vec<u8>);

struct World {
    agent: Agent,
    gateway: Gateway,
    seen: Seen,
    rng: Rng,
    loss: u32,
    duplicate: u32,
    /// The longest delay of a datagram, uniformly drawn: beyond the gap between commands it reorders.
    delay: Duration,
    /// The addresses at which the gateway does not listen.
    dead: Vec<u16>,
    /// When all of them die.
    dies_at: Time,
    in_transit: BinaryHeap<Reverse<Transit>>,
    sequence: u64,
    digest: u64,
    watch: rules::Watch,
    /// Called whenever the schedule starts a command.
    scheduled: fn(&World),
}

impl World {
    fn new(seed: u64, script: Script, change: impl FnOnce(&mut Settings)) -> World {
        let mut settings = Settings {
            gateway: vec![([127, 0, 0, 1], 2427).into()],
            endpoints: (1..=24).map(|i| format!("ds/ds1-1/{i}@gw")).collect(),
            clearing: vec!["ds/ds1-1/*@gw".into()],
            scenario: Scenario::Call,
            hold: Duration::from_millis(50),
            standing: 0,
            transactions_max: 64,
            pad_to: 32,
            verify: true,
            events: String::new(),
            broken: Broken::default(),
            timers: Timers::default(),
            throttle: None,
        };
        change(&mut settings);
        let mut rng = Rng::new(seed);
        World {
            agent: Agent::new(&settings, &mut rng).unwrap(),
            gateway: Gateway::new(script),
            seen: Seen::default(),
            rng,
            loss: 0,
            duplicate: 0,
            delay: Duration::from_millis(1),
            dead: Vec::new(),
            dies_at: Time::NEVER,
            in_transit: BinaryHeap::new(),
            sequence: 0,
            digest: 0,
            watch: rules::Watch::default(),
            scheduled: |_| (),
        }
    }

    fn transmit(&mut self, now: Time, to_gateway: bool, bytes: &[u8]) {
        for byte in bytes {
            self.digest = (self.digest ^ u64::from(*byte) ^ now.0).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let copies = 1 + usize::from(self.rng.chance(self.duplicate));
        for _ in 0..copies {
            if !self.rng.chance(self.loss) {
                let at = now + self.rng.duration(Duration::from_micros(10), self.delay);
                self.sequence += 1;
                self.in_transit.push(Reverse((at.0, self.sequence, to_gateway, bytes.to_vec())));
            }
        }
    }

    /// Starts a command each `gap` until `end`, winds down, and runs until the agent is done; gives when that is.
    fn run(&mut self, gap: Duration, end: Time) -> Time {
        let mut now = Time::ZERO;
        let mut next_start = Time::ZERO;
        for _ in 0..2_000_000 {
            let mut sent = Vec::new();
            self.agent.poll(now, &mut |to, bytes| sent.push((to.port(), bytes.to_vec())), &mut self.seen);
            for (port, bytes) in sent {
                self.watch.sent(&bytes);
                if !self.dead.contains(&port) && now < self.dies_at {
                    self.transmit(now, true, &bytes);
                }
            }
            if self.agent.phase() == Phase::Done {
                break;
            }
            if self.agent.phase() == Phase::Running {
                next_start = Time(next_start.0.max(now.0));
                if now >= end {
                    self.agent.wind_down();
                    continue;
                }
                if next_start <= now {
                    (self.scheduled)(self);
                    self.agent.start(now, now);
                    next_start = now + gap;
                    continue;
                }
            }
            if self.gateway.script.restart_at.is_some_and(|at| at <= now) {
                self.gateway.script.restart_at = None;
                self.gateway.connections.clear();
                self.transmit(now, false, b"RSIP 900 ds/ds1-1/*@gw MGCP 1.0\r\nRM: forced\r\n");
            }
            let transit = self.in_transit.peek().map_or(Time::NEVER, |Reverse(item)| Time(item.0));
            let running = self.agent.phase() == Phase::Running;
            let schedule = if running { next_start } else { Time::NEVER };
            let until = transit.min(schedule).min(self.agent.deadline());
            assert_ne!(until, Time::NEVER, "nothing will ever happen again in {:?}", self.agent.phase());
            now = now.max(until);
            if transit <= now {
                let Some(Reverse((_, _, to_gateway, bytes))) = self.in_transit.pop() else { continue };
                if to_gateway {
                    for (delay, answer) in self.gateway.handle(&bytes) {
                        self.transmit(now + Duration::from_millis(delay), false, answer.as_bytes());
                    }
                } else {
                    self.watch.received(&bytes);
                    self.agent.handle(now, &bytes, ([127, 0, 0, 1], 2427).into(), &mut self.seen);
                }
            }
        }
        assert_eq!(self.agent.phase(), Phase::Done);
        assert_eq!(self.agent.in_flight(), 0);
        now
    }

    fn connections_left(&self) -> usize {
        self.gateway.connections.values().map(Vec::len).sum()
    }
}

const GAP: Duration = Duration::from_millis(2);
const END: Time = Time::from_millis(3_000);

#[test]
fn a_clean_run_makes_calls_and_leaves_nothing() {
    let mut world = World::new(1, Script::default(), |_| ());
    world.run(GAP, END);
    assert_eq!((world.seen.failures.as_slice(), world.seen.lost, world.connections_left()), (&[][..], 0, 0));
    assert!(world.seen.measured > 700, "{}", world.seen.measured);
    assert_eq!((world.gateway.largest, world.agent.tally().restarts, world.agent.is_disturbed()), (1, 1, false));
    assert!(world.gateway.confirmed.iter().map(|(low, high)| high - low + 1).sum::<u32>() > 500);
    assert_eq!(world.agent.transactions().repeats(), 0);
}

#[test]
fn losses_duplicates_and_reordering_fail_no_check() {
    for seed in 0..20 {
        for scenario in [Scenario::Call, Scenario::Audit, Scenario::Mixed] {
            let mut world = World::new(seed, Script { slow_every: 9, ..Script::default() }, |s| s.scenario = scenario);
            (world.loss, world.duplicate, world.delay) = (50_000, 100_000, Duration::from_millis(20));
            world.run(GAP, END);
            assert_eq!(world.seen.failures, [], "seed {seed} {scenario:?}");
            assert_eq!((world.connections_left(), world.gateway.largest <= 1), (0, true), "seed {seed} {scenario:?}");
            assert!(world.agent.transactions().repeats() > 0 && world.agent.tally().responses_repeated > 0);
            assert_eq!(world.gateway.executed, world.agent.tally().commands, "seed {seed} {scenario:?}");
        }
    }
}

#[test]
fn the_seed_decides_everything() {
    let digest = |seed| {
        let mut world = World::new(seed, Script { slow_every: 5, ..Script::default() }, |s| s.scenario = Scenario::Mixed);
        (world.loss, world.duplicate) = (50_000, 50_000);
        world.run(GAP, Time::from_millis(500));
        world.digest
    };
    assert_eq!(digest(4), digest(4));
    assert_ne!(digest(4), digest(5));
}

#[test]
fn slow_commands_are_acknowledged() {
    // G-ACK-07
    let mut world = World::new(2, Script { slow_every: 3, ..Script::default() }, |_| ());
    world.run(GAP, END);
    assert_eq!(world.seen.failures, []);
    assert!(world.agent.tally().provisional > 0 && world.agent.tally().acknowledged == world.agent.tally().provisional);
}

#[test]
fn standing_calls_stay_up_beside_the_load() {
    let mut world = World::new(3, Script::default(), |s| s.standing = 10);
    world.scheduled = |world| assert_eq!(world.agent.calls().standing(), 10);
    world.run(GAP, END);
    assert_eq!((world.seen.failures.as_slice(), world.connections_left()), (&[][..], 0));
    assert!(world.agent.calls().calls_started() > 100);
    // Audits take standing calls out one at a time, and check them.
    let mut world = World::new(3, Script::default(), |s| (s.standing, s.scenario) = (10, Scenario::Audit));
    world.run(GAP, END);
    assert_eq!((world.seen.failures.as_slice(), world.connections_left()), (&[][..], 0));
    assert!(world.seen.verbs.contains(&Verb::Aucx) && world.seen.verbs.contains(&Verb::Auep));
}

#[test]
fn a_dead_address_is_left_for_the_other_one() {
    let mut world = World::new(4, Script::default(), |s| s.gateway.push(([127, 0, 0, 1], 2428).into()));
    world.dead.push(2427);
    world.run(GAP, Time::from_millis(20_000));
    assert_eq!((world.seen.failures.as_slice(), world.seen.lost, world.connections_left()), (&[][..], 0, 0));
    assert!(world.agent.transactions().failovers() > 0 && world.seen.measured > 1000);
}

#[test]
fn a_gateway_that_is_not_there_ends_the_run() {
    let mut world = World::new(5, Script::default(), |_| ());
    world.dead.push(2427);
    world.run(GAP, END);
    assert_eq!(world.seen.failures, [Failure::NotCleared]);
}

#[test]
fn a_gateway_that_dies_is_not_waited_for_endlessly() {
    let mut world = World::new(5, Script::default(), |s| s.hold = Duration::from_millis(10));
    world.dies_at = Time::from_millis(2_990);
    let done = world.run(GAP, END);
    assert!(done < END + Duration::from_secs(40), "{done:?}");
    assert_eq!(world.seen.failures.iter().filter(|f| **f == Failure::Silent).count(), 1);
}

#[test]
fn a_busy_gateway_is_asked_again_to_clear() {
    let mut world = World::new(5, Script { busy_clearing: 3, ..Script::default() }, |_| ());
    world.run(GAP, Time::from_millis(100));
    assert_eq!((world.seen.failures.as_slice(), world.seen.codes[&400]), (&[][..], 3));
    let mut world = World::new(5, Script { busy_clearing: 1000, ..Script::default() }, |_| ());
    world.run(GAP, Time::from_millis(100));
    assert_eq!((world.seen.failures.as_slice(), world.seen.codes[&400]), (&[Failure::NotCleared][..], 4));
}

#[test]
fn every_fault_of_the_gateway_fails_its_check() {
    let failures = |script, loss| {
        let mut world = World::new(6, script, |_| ());
        (world.loss, world.duplicate) = (loss, loss);
        world.run(GAP, END);
        world.seen.failures
    };
    let only = |found: Vec<Failure>, expected: &[Failure]| {
        assert!(expected.iter().all(|e| found.contains(e)) && found.iter().all(|f| expected.contains(f)), "{found:?}");
    };
    let none = Script::default();
    only(failures(Script { vary_repeats: true, ..none }, 50_000), &[Failure::RepeatDiffers]);
    only(failures(Script { no_parameters: true, ..none }, 0), &[Failure::ParametersMissing]);
    only(failures(Script { same_identifier: true, ..none }, 0), &[Failure::ConnectionIdReused]);
    only(failures(Script { refuse: Some(502), ..none }, 0), &[Failure::UnexpectedCode, Failure::NothingDone]);
    // Each refusal may be right; that there is nothing else is told once.
    assert_eq!(failures(Script { refuse: Some(403), ..none }, 0), [Failure::NothingDone]);
}

#[test]
fn calls_are_held_back_when_the_gateway_says_that_it_is_overloaded() {
    let throttle = Some(throttle::Parameters::default());
    let run = |throttle| {
        let mut world = World::new(9, Script { refuse: Some(409), ..Script::default() }, |s| {
            s.throttle = throttle;
            s.broken = [crate::proto::agent::rules::Rule::LoadControl].into_iter().collect();
        });
        world.run(Duration::from_millis(1), END);
        (*world.agent.tally(), world.agent.throttle().map(Throttle::statistics))
    };
    let (free, none) = run(None);
    assert!(none.is_none() && free.held_back == 0 && free.overloads > 1000, "{free:?}");
    let (held, statistics) = run(throttle);
    // A gateway that refuses everything is asked at the lowest rate.
    assert!(held.held_back > 1000 && held.overloads < free.overloads / 10, "{held:?}");
    let statistics = statistics.unwrap();
    assert_eq!((statistics.started, statistics.refused, statistics.notifications), (1, held.held_back, held.overloads));
}

#[test]
fn a_connection_left_is_found_and_swept() {
    let mut world = World::new(7, Script { keep_connections: true, ..Script::default() }, |s| s.endpoints.truncate(4));
    // One call on each endpoint: the gateway of this script would refuse the next ModifyConnection.
    world.run(Duration::from_millis(700), Time::from_millis(5_000));
    assert!(world.seen.failures.contains(&Failure::ConnectionLeft), "{:?}", world.seen.failures);
    assert_eq!(world.connections_left(), 0);
}

#[test]
fn a_forced_restart_explains_errors() {
    let mut world = World::new(8, Script { restart_at: Some(Time::from_millis(1_000)), ..Script::default() }, |_| ());
    // The scripted gateway insists on the connection in MDCX; hold calls so that only DLCX meets the loss.
    world.run(Duration::from_millis(20), END);
    assert_eq!(world.seen.failures, []);
    assert!(world.agent.is_disturbed() && world.seen.codes.get(&515).is_some_and(|n| *n > 0));
    assert_eq!(world.connections_left(), 0);
}
