//! Seeded: facilities flap and operators block and unblock while the agent is silent; then it is back and answers everything.

use std::collections::BTreeMap;

use super::*;
use crate::proto::aggregate::{Cover, EndpointSet};
use crate::proto::trunk::selection::Cursor;

/// How long an RSIP is repeated to an agent that does not answer.
const T_MAX: Duration = Duration::from_secs(20);

struct World {
    bench: Bench,
    rng: Rng,
    /// RSIPs under way: what they say, and until when they are repeated.
    out: BTreeMap<(u32, u32), (Handle, Pattern, RestartMethod, Time)>,
    /// What the agent took in last of each endpoint.
    believes: Vec<Option<RestartMethod>>,
    failed: Vec<Facility>,
    answers: bool,
    sent: u32,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let plan = [plan(T3, 1), plan(T3, 2), plan(T1, 1), plan(T1, 2)];
        let topology = Arc::new(Topology::shaped(&plan, 3, 4).unwrap());
        let forms = Forms { widest: Widest::Gateway, ranges: rng.chance(300_000) };
        let small = rng.chance(300_000);
        let mut bench = Bench::over(topology.clone(), rng.next(), |settings| {
            settings.forms = forms;
            settings.slice = if small { 3 } else { 64 };
        });
        if rng.chance(300_000) {
            let endpoints = bench.topology.endpoints_of(bench.facility("ds/ds3-2"));
            bench.handle(Event::Group { endpoints, group: 1 });
        }
        let believes = vec![None; topology.len() as usize];
        World { bench, rng, out: BTreeMap::new(), believes, failed: Vec::new(), answers: true, sent: 0 }
    }

    fn take_in(&mut self) {
        for (at, action) in std::mem::take(&mut self.bench.log) {
            match action {
                Action::SendRsip { handle, pattern, method, .. } => {
                    self.sent += 1;
                    self.out.insert((handle.slot, handle.sending), (handle, pattern, method, at + T_MAX));
                }
                Action::Cancel { handle } => assert!(self.out.remove(&(handle.slot, handle.sending)).is_some()),
                _ => {}
            }
        }
    }

    /// Lets time pass. An agent that answers does so at once.
    fn pass(&mut self, time: Duration) {
        let until = self.bench.now + time;
        loop {
            self.bench.drain();
            self.take_in();
            let first = self.out.iter().map(|(key, (.., end))| (if self.answers { self.bench.now } else { *end }, *key)).min();
            let next = first.map_or(Time::NEVER, |(due, _)| due).min(self.bench.coordinator.deadline());
            if next > until {
                break;
            }
            self.bench.now = self.bench.now.max(next);
            if let Some((due, key)) = first
                && due <= next
                && let Some((handle, pattern, method, _)) = self.out.remove(&key)
            {
                let outcome = if self.answers { OK } else { Outcome::Unanswered };
                if self.answers {
                    self.members(pattern).for_each(|endpoint| self.believes[endpoint.0 as usize] = Some(method));
                }
                self.bench.handle(Event::Outcome { handle, outcome });
            }
        }
        self.bench.now = until;
    }

    fn members(&self, pattern: Pattern) -> impl Iterator<Item = EndpointIndex> + use<> {
        let (topology, mut cursor) = (self.bench.topology.clone(), Cursor::default());
        let selection = pattern.selection(&topology);
        std::iter::from_fn(move || selection.next(&topology, &mut cursor, u32::MAX)).flat_map(|piece| piece.iter())
    }

    fn event(&mut self) {
        let topology = self.bench.topology.clone();
        let names = ["*", "ds/ds3-1/*/*", "ds/ds3-2/ds1-2/*", "ds/ds1-1/*", "ds/ds1-1/2", "ds/ds3-1/ds1-1/[1-3]", "ds/ds3-1/ds1-1/4"];
        let name = names[self.rng.below(names.len() as u64) as usize];
        match self.rng.below(5) {
            0..=1 => {
                let facility = topology.facilities().nth(self.rng.below(topology.facilities().count() as u64) as usize).unwrap();
                let on = !self.failed.contains(&facility);
                self.failed.retain(|failed| *failed != facility);
                self.failed.extend(on.then_some(facility));
                self.bench.handle(Event::Defect { facility, defect: Defect::LossOfSignal, on, skip_integration: true });
            }
            2..=3 => self.bench.block(name, BlockHow::Force),
            _ => self.bench.unblock(name),
        }
    }

    /// The fewest names for what is still to be said: what nobody was told yet, and what waits to be said again. Endpoints that are
    /// out may be named again, so they need no more names than all that are out.
    fn fewest(&self) -> u32 {
        let (coordinator, topology) = (&self.bench.coordinator, &self.bench.topology);
        let mut classes: BTreeMap<(u16, u16), (EndpointSet, EndpointSet)> = BTreeMap::new();
        for endpoint in topology.endpoints().iter() {
            let view = coordinator.endpoint(endpoint).unwrap();
            let reason = match (view.in_service, view.admin, view.failure) {
                (true, ..) => 0,
                (_, Admin::Blocked, _) | (.., None) => 901,
                (.., Some(failure)) => failure.reason(),
            };
            let empty = || (EndpointSet::new(topology.len()), EndpointSet::new(topology.len()));
            let (unsaid, all) = classes.entry((view.group, reason)).or_insert_with(empty);
            let waits = view.announcement.is_some_and(|announcement| matches!(announcement.state, AnnouncementState::Waiting(_)));
            all.insert(endpoint);
            if waits || coordinator.dirty.contains(endpoint) {
                unsaid.insert(endpoint);
            }
        }
        let names = |set: &EndpointSet| {
            let mut cover = Cover::new(coordinator.settings.forms);
            std::iter::from_fn(|| cover.next(topology, set)).count() as u32
        };
        let least = |((_, reason), (unsaid, all)): (&(u16, u16), &(EndpointSet, EndpointSet))| match (unsaid.is_empty(), reason) {
            (true, _) => 0,
            (false, 0) => names(unsaid),
            (false, _) => names(unsaid).min(names(all)),
        };
        classes.iter().map(least).sum()
    }
}

#[test]
fn an_agent_that_returns_gets_the_fewest_messages_and_knows_the_truth() {
    // G-RSI-08, G-DIS-12
    for seed in 0..400 {
        let outcome = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            if world.rng.chance(500_000) {
                world.pass(Duration::from_secs(5));
            }
            world.answers = false;
            for _ in 0..1 + world.rng.below(40) {
                world.event();
                let ms = [0, 50, 300, 2000, 30_000, 700_000][world.rng.below(6) as usize];
                world.pass(Duration::from_millis(ms));
            }
            world.pass(Duration::ZERO);
            let (under_way, fewest) = (world.out.len() as u32, world.fewest());
            assert!(under_way <= 2 * 32);
            (world.answers, world.sent) = (true, 0);
            world.pass(Duration::from_secs(2 * 3600));
            assert!(world.sent <= fewest + under_way, "{} messages instead of {fewest} behind {under_way}", world.sent);
            assert_eq!((world.out.len(), world.bench.coordinator.deadline()), (0, Time::NEVER));
            for endpoint in world.bench.topology.endpoints().iter() {
                let in_service = world.bench.coordinator.endpoint(endpoint).unwrap().in_service;
                let truth = if in_service { RestartMethod::Restart } else { RestartMethod::Forced };
                assert_eq!(world.believes[endpoint.0 as usize], Some(truth), "{endpoint:?}");
            }
        });
        assert!(outcome.is_ok(), "seed {seed}");
    }
}
