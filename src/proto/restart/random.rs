//! Seeded random histories against a plain model: operators, failing lines, agents that answer anything or nothing. While it goes on
//! nothing wrong may be said; once the agents answer and nothing changes any more, owners and agents must know the truth.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::tests::Bench;
use super::*;
use crate::proto::aggregate::Widest;
use crate::proto::base::{Rng, Time};
use crate::proto::trunk::FacilityKind::*;
use crate::proto::trunk::topology::tests::plan;
use crate::proto::trunk::{FacilityPlan, SpanIndex, selection::Cursor};

/// What an operator made of an endpoint.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Ordered {
    Free,
    Until(Time),
    WhileBusy,
    Blocked,
}

/// The model of one endpoint.
#[derive(Clone, Copy, Debug)]
struct Endpoint {
    ordered: Ordered,
    group: u16,
    in_service: Option<bool>,
    /// Times it went out of service.
    losses: u32,
    /// It needs a restart: it is new, or was out since the last one that was confirmed.
    fresh: bool,
    /// What an agent last took in.
    told: Option<RestartMethod>,
    /// As its owner knows it: disconnected, and what goes in front of responses.
    disconnected: bool,
    front: Option<Handle>,
    /// As a core keeps it that misses no order.
    heard: Heard,
}

/// An RSIP on its way.
struct Sent {
    members: Vec<u32>,
    losses: Vec<u32>,
    method: RestartMethod,
    group: u16,
    due: Time,
    outcome: Outcome,
}

struct World {
    bench: Bench,
    rng: Rng,
    endpoints: Vec<Endpoint>,
    sent: BTreeMap<(u32, u32), (Handle, Sent)>,
    failed: Vec<Facility>,
    draining: bool,
    healed: bool,
    /// Events come while work is left.
    interleaved: bool,
    /// The last announcement that was told to owners before its RSIP.
    announced: Option<Handle>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let facilities: [FacilityPlan; 4] = [plan(T3, 1), plan(T3, 2), plan(T1, 1), plan(T1, 2)];
        let topology = Arc::new(Topology::shaped(&facilities, 3, 4).unwrap());
        let widest = [Widest::Endpoint, Widest::Span, Widest::Facility, Widest::Level, Widest::Gateway];
        let forms = Forms { widest: widest[rng.below(5) as usize], ranges: rng.chance(500_000) };
        let (few, small) = (rng.chance(300_000), rng.chance(500_000));
        let bench = Bench::over(topology.clone(), rng.next(), |settings| {
            settings.forms = forms;
            settings.outstanding_max = if few { 2 } else { 32 };
            settings.slice = if small { 3 } else { 64 };
        });
        let new = Endpoint {
            ordered: Ordered::Free,
            group: 0,
            in_service: None,
            losses: 0,
            fresh: true,
            told: None,
            disconnected: false,
            front: None,
            heard: Heard::Nothing,
        };
        World {
            bench,
            endpoints: vec![new; topology.len() as usize],
            sent: BTreeMap::new(),
            failed: Vec::new(),
            draining: false,
            healed: false,
            interleaved: small && rng.chance(500_000),
            announced: None,
            rng,
        }
    }

    fn members(&self, selection: Selection) -> Vec<u32> {
        let (topology, mut cursor) = (&self.bench.topology, Cursor::default());
        let pieces = std::iter::from_fn(|| selection.next(topology, &mut cursor, u32::MAX));
        pieces.flat_map(|piece| piece.iter().map(|e| e.0)).collect()
    }

    fn is_failed(&self, endpoint: u32) -> bool {
        let span = self.bench.topology.span_of(EndpointIndex(endpoint)).unwrap();
        let t3 = self.bench.topology.span(span).unwrap().t3.map(Facility::T3);
        self.failed.contains(&Facility::Span(span)) || t3.is_some_and(|t3| self.failed.contains(&t3))
    }

    /// The method that describes an endpoint's true state.
    fn truth(&self, endpoint: u32) -> RestartMethod {
        match self.endpoints[endpoint as usize].ordered {
            Ordered::Blocked => RestartMethod::Forced,
            Ordered::Until(until) if until <= self.bench.now => RestartMethod::Forced,
            _ if self.is_failed(endpoint) => RestartMethod::Forced,
            Ordered::Free if !self.draining => RestartMethod::Restart,
            _ => RestartMethod::Graceful,
        }
    }

    fn tell(&mut self, event: Event) {
        if self.interleaved {
            self.bench.coordinator.handle(self.bench.now, event);
            for _ in 0..self.rng.below(4) {
                if let Some(action) = self.bench.coordinator.poll(self.bench.now) {
                    self.bench.log.push((self.bench.now, action));
                }
            }
        } else {
            self.bench.handle(event);
        }
        self.take_in();
    }

    /// Plays owners and agents for everything that was ordered.
    fn take_in(&mut self) {
        let mut home = Vec::new();
        for (at, action) in std::mem::take(&mut self.bench.log) {
            match action {
                Action::Service(service) => {
                    for endpoint in service.endpoints.iter() {
                        let state = &mut self.endpoints[endpoint.0 as usize];
                        if !service.in_service && state.in_service != Some(false) {
                            state.losses += 1;
                            state.fresh = true;
                            state.disconnected = false;
                        }
                        if service.in_service && state.in_service == Some(false) && state.group != 0 {
                            state.group = 0;
                            home.push(endpoint);
                        }
                        if service.in_service && state.in_service != Some(true) {
                            state.heard = Heard::Nothing;
                        }
                        state.in_service = Some(service.in_service);
                        assert_eq!(service.in_service, service.method != RestartMethod::Forced);
                    }
                }
                Action::Announced { handle, confirmed, pattern } => {
                    self.announced = (!confirmed).then_some(handle);
                    for endpoint in self.members(pattern.selection(&self.bench.topology)).into_iter().filter(|_| confirmed) {
                        let state = &mut self.endpoints[endpoint as usize];
                        state.disconnected &= state.front != Some(handle);
                        if state.heard == Heard::UnderWay(handle) {
                            state.heard = Heard::All;
                        }
                    }
                }
                Action::Disconnected { endpoints } => {
                    for endpoint in endpoints.iter() {
                        let state = &mut self.endpoints[endpoint.0 as usize];
                        state.disconnected |= state.in_service == Some(true);
                        state.front = None;
                        if state.in_service == Some(true) && state.heard == Heard::All {
                            state.heard = Heard::CutOff;
                        }
                    }
                }
                Action::Redirect { handle, group } => {
                    let (_, sent) = self.sent.get_mut(&(handle.slot, handle.sending)).expect("redirected something not under way");
                    assert_ne!(std::mem::replace(&mut sent.group, group), group);
                }
                Action::SendRsip { handle, group, pattern, method, delay_s, reason } => {
                    assert_eq!(self.announced, Some(handle));
                    let members = self.members(pattern.selection(&self.bench.topology));
                    self.check(&members, group, method);
                    assert!(delay_s == 0 || matches!(method, RestartMethod::Graceful | RestartMethod::Disconnected));
                    assert_eq!(reason != 0, matches!(method, RestartMethod::Forced | RestartMethod::Graceful));
                    if matches!(method, RestartMethod::Restart | RestartMethod::Disconnected) {
                        for member in &members {
                            let state = &mut self.endpoints[*member as usize];
                            (state.front, state.heard) = (Some(handle), Heard::UnderWay(handle));
                        }
                    }
                    self.send(at, handle, group, method, members);
                }
                Action::Cancel { handle } => {
                    let (_, sent) = self.sent.remove(&(handle.slot, handle.sending)).expect("cancelled something that is not under way");
                    self.withdraw(handle, &sent);
                }
                Action::NotifiedEntity { .. } => {}
                Action::ShutdownComplete => panic!("nobody asked for it"),
            }
        }
        // The owner has heard nothing since the endpoint was out, and says whom it notifies now.
        for endpoint in home {
            self.tell(Event::Group { endpoints: EndpointRange { first: endpoint.0, count: 1 }, group: 0 });
        }
    }

    /// A RestartInProgress goes in front of nothing any more.
    fn withdraw(&mut self, handle: Handle, sent: &Sent) {
        let waiting = if sent.method == RestartMethod::Disconnected { Heard::CutOff } else { Heard::Nothing };
        for member in &sent.members {
            let heard = &mut self.endpoints[*member as usize].heard;
            *heard = if *heard == Heard::UnderWay(handle) { waiting } else { *heard };
        }
    }

    /// One that missed every order can be told what they amount to.
    fn check_standing(&self) {
        if !self.bench.coordinator.is_at_rest() {
            return;
        }
        for (endpoint, state) in (0..).zip(&self.endpoints) {
            let standing = self.bench.coordinator.standing(self.bench.now, EndpointIndex(endpoint));
            assert_eq!(standing.map(|standing| standing.service.in_service), state.in_service, "{endpoint}: {state:?}");
            if let Some(standing) = standing.filter(|standing| standing.service.in_service) {
                assert_eq!(standing.heard, state.heard, "{endpoint}: {state:?}");
                assert!(standing.cut_off.is_some() <= state.disconnected, "{endpoint}: {state:?}");
            }
        }
    }

    /// Whether this may be said now.
    fn check(&self, members: &[u32], group: u16, method: RestartMethod) {
        assert!(!members.is_empty());
        for (_, sent) in self.sent.values() {
            assert!(sent.members.iter().all(|e| !members.contains(e)), "two announcements for one endpoint");
        }
        for &endpoint in members {
            let state = &self.endpoints[endpoint as usize];
            assert_eq!(state.in_service, Some(method != RestartMethod::Forced), "{method:?} of {endpoint}: {state:?}");
            match method {
                RestartMethod::Forced => {}
                RestartMethod::Restart => assert!(state.fresh, "a restart would lose the calls of {endpoint}"),
                _ => assert!(!state.fresh, "{endpoint} needs a restart, not {method:?}"),
            }
            let about_leaving = matches!(method, RestartMethod::Graceful | RestartMethod::CancelGraceful);
            assert!(!(state.disconnected && about_leaving), "the agent must hear first that {endpoint} was disconnected");
            assert!(self.interleaved || state.group == group, "{endpoint} is of another group");
        }
    }

    fn send(&mut self, at: Time, handle: Handle, group: u16, method: RestartMethod, members: Vec<u32>) {
        let (outcome, taken_in) = match self.rng.below(if self.healed { 1 } else { 12 }) {
            0..=5 => (Outcome::Success(None), true),
            6 => (Outcome::Success(Some(self.rng.below(3) as u16)), true),
            7 => (Outcome::Transient(400), false),
            8 => (Outcome::Redirect(self.rng.below(3) as u16), false),
            9 => (Outcome::Permanent([500, 510, 521][self.rng.below(3) as usize]), false),
            10 => (Outcome::Unanswered, true),
            _ => (Outcome::Unanswered, false),
        };
        let wait = if outcome == Outcome::Unanswered { 60_000 } else { self.rng.below(1000) };
        if taken_in {
            members.iter().for_each(|e| self.endpoints[*e as usize].told = Some(method));
        }
        let losses = members.iter().map(|e| self.endpoints[*e as usize].losses).collect();
        let sent = Sent { members, losses, method, group, due: at + Duration::from_millis(wait), outcome };
        self.sent.insert((handle.slot, handle.sending), (handle, sent));
    }

    /// Lets time pass, with the answers that come meanwhile.
    fn pass(&mut self, ms: u64) {
        let until = self.bench.now + Duration::from_millis(ms);
        loop {
            self.bench.drain();
            self.take_in();
            let answer = self.sent.iter().min_by_key(|(_, (_, sent))| sent.due).map(|(key, (_, sent))| (sent.due, *key));
            let next = answer.map_or(Time::NEVER, |(due, _)| due).min(self.bench.coordinator.deadline());
            if next > until {
                break;
            }
            self.bench.now = self.bench.now.max(next);
            if let Some((due, key)) = answer
                && due <= next
                && let Some((handle, sent)) = self.sent.remove(&key)
            {
                self.conclude(handle, &sent);
            }
        }
        self.bench.now = until;
        self.bench.drain();
        self.take_in();
    }

    fn conclude(&mut self, handle: Handle, sent: &Sent) {
        if !matches!(sent.outcome, Outcome::Success(_)) {
            self.withdraw(handle, sent);
        }
        for (endpoint, losses) in sent.members.iter().zip(&sent.losses) {
            let state = &mut self.endpoints[*endpoint as usize];
            let is_success = matches!(sent.outcome, Outcome::Success(_));
            if is_success && sent.method == RestartMethod::Restart && state.losses == *losses {
                state.fresh = false;
            }
            if let Outcome::Success(Some(group)) | Outcome::Redirect(group) = sent.outcome
                && state.group == sent.group
            {
                state.group = group;
            }
        }
        self.tell(Event::Outcome { handle, outcome: sent.outcome });
    }

    /// Something happens.
    fn event(&mut self) {
        let topology = self.bench.topology.clone();
        let endpoint = self.rng.below(u64::from(topology.len())) as u32;
        let facility = topology.facilities().nth(self.rng.below(topology.facilities().count() as u64) as usize).unwrap();
        let range = if self.rng.chance(500_000) { topology.endpoints_of(facility) } else { EndpointRange { first: endpoint, count: 1 } };
        let names = ["*", "ds/ds3-1/*/*", "ds/ds3-2/ds1-2/*", "ds/ds1-1/*", "ds/*/*/1", "ds/ds3-1/ds1-1/[1-3]"];
        let selection = topology.resolve(names[self.rng.below(6) as usize].as_bytes(), true).unwrap();
        match self.rng.below(12) {
            0..=3 => {
                let on = !self.failed.contains(&facility);
                self.failed.retain(|failed| *failed != facility);
                self.failed.extend(on.then_some(facility));
                self.tell(Event::Defect { facility, defect: Defect::LossOfSignal, on, skip_integration: true });
            }
            4 => {
                let how = match self.rng.below(3) {
                    0 => BlockHow::Force,
                    // An outage that is over before it is looked at takes no connections, which the model does not know.
                    1 if !self.interleaved => BlockHow::Graceful(Duration::ZERO),
                    _ => BlockHow::Graceful(Duration::from_millis(1 + self.rng.below(100_000))),
                };
                self.block(selection, how);
            }
            5..=6 => {
                for endpoint in self.members(selection) {
                    self.endpoints[endpoint as usize].ordered = Ordered::Free;
                }
                self.tell(Event::Unblock { selection });
            }
            7 => {
                self.draining = !self.draining;
                self.tell(if self.draining { Event::Drain } else { Event::Undrain });
            }
            8 => {
                let group = self.rng.below(3) as u16;
                range.iter().for_each(|e| self.endpoints[e.0 as usize].group = group);
                self.tell(Event::Group { endpoints: range, group });
            }
            // Whether nothing of a block is busy when it begins is no matter of chance here.
            9 if range.iter().all(|e| !matches!(self.endpoints[e.0 as usize].ordered, Ordered::Until(_))) => {
                for endpoint in range.iter() {
                    let ordered = &mut self.endpoints[endpoint.0 as usize].ordered;
                    *ordered = if *ordered == Ordered::WhileBusy { Ordered::Blocked } else { *ordered };
                }
                self.tell(Event::Idle { endpoints: range });
            }
            9..=10 => self.tell(Event::Disconnected { endpoints: range }),
            _ => {
                let activity = if self.rng.chance(500_000) { Activity::Command } else { Activity::Local };
                self.tell(Event::Trigger { endpoint: EndpointIndex(endpoint), activity });
            }
        }
        self.settle_orders();
    }

    fn block(&mut self, selection: Selection, how: BlockHow) {
        let ordered = match how {
            BlockHow::Force => Ordered::Blocked,
            BlockHow::Graceful(Duration::ZERO) => Ordered::WhileBusy,
            BlockHow::Graceful(delay) => Ordered::Until(self.bench.now + delay),
        };
        for endpoint in self.members(selection) {
            let state = &mut self.endpoints[endpoint as usize];
            let over = matches!(state.ordered, Ordered::Until(until) if until <= self.bench.now);
            if state.ordered != Ordered::Blocked && !over {
                state.ordered = ordered;
            }
        }
        self.tell(Event::Block { selection, how });
    }

    /// What waits for its last connection and has failed has none, and a delay that ran out stays so.
    fn settle_orders(&mut self) {
        for endpoint in 0..self.endpoints.len() as u32 {
            let failed = self.is_failed(endpoint);
            let state = &mut self.endpoints[endpoint as usize];
            let over = matches!(state.ordered, Ordered::Until(until) if until <= self.bench.now);
            if over || failed && state.ordered == Ordered::WhileBusy {
                state.ordered = Ordered::Blocked;
            }
        }
    }

    /// Everything answers from now on; what was refused for good gets a command.
    fn heal(&mut self) {
        self.healed = true;
        self.pass(100_000);
        for endpoint in 0..self.endpoints.len() as u32 {
            self.tell(Event::Trigger { endpoint: EndpointIndex(endpoint), activity: Activity::Command });
        }
        self.pass(4 * 3_600_000);
        self.settle_orders();
    }

    fn check_quiet(&mut self) {
        assert!(self.sent.is_empty());
        for endpoint in 0..self.endpoints.len() as u32 {
            let (state, truth) = (self.endpoints[endpoint as usize], self.truth(endpoint));
            assert_eq!(state.in_service, Some(truth != RestartMethod::Forced), "{endpoint}: {state:?}");
            let told = state.told.map(|told| match told {
                RestartMethod::CancelGraceful | RestartMethod::Disconnected => RestartMethod::Restart,
                other => other,
            });
            assert_eq!(told, Some(truth), "{endpoint}: {state:?}");
            assert!(!state.disconnected, "{endpoint}: {state:?}");
            assert!(state.fresh == (truth == RestartMethod::Forced), "{endpoint}: {state:?}");
            let view = self.bench.coordinator.endpoint(EndpointIndex(endpoint)).unwrap();
            assert_eq!((view.in_service, view.group), (truth != RestartMethod::Forced, state.group));
            assert_eq!(view.failure.is_some(), self.is_failed(endpoint));
            assert!(matches!(view.announcement, Some(a) if a.state == AnnouncementState::Confirmed));
        }
        assert_eq!(self.bench.coordinator.deadline(), Time::NEVER);
        let members: u32 = self.bench.coordinator.announcements().map(|a| a.endpoints).sum();
        assert_eq!(members, self.bench.topology.len());
        assert_eq!(self.bench.coordinator.alarms().count(), self.failed.len());
    }
}

#[test]
fn whatever_happens_nothing_wrong_is_said_and_in_the_end_the_truth_is_known() {
    for seed in 0..300 {
        let outcome = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            for _ in 0..60 {
                world.event();
                let ms = [0, 0, 50, 300, 2000, 70_000][world.rng.below(6) as usize];
                if ms > 0 || !world.interleaved {
                    world.pass(ms);
                    world.settle_orders();
                }
                world.check_standing();
            }
            world.heal();
            world.check_quiet();
            world.check_standing();
        });
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

#[test]
fn a_span_of_a_t3_is_failed_by_either() {
    let mut world = World::new(1);
    let span = SpanIndex(1);
    world.tell(Event::Defect { facility: Facility::Span(span), defect: Defect::Ais, on: true, skip_integration: true });
    world.failed.push(Facility::Span(span));
    assert!(world.is_failed(4) && !world.is_failed(0));
    assert!(!world.bench.coordinator.endpoint(EndpointIndex(4)).unwrap().in_service);
}
