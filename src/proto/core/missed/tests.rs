//! A core that missed orders, beside one that heard all of them.

use super::*;
use crate::proto::base::{FrameRef, Rng};
use crate::proto::codec::mgcp::NotifiedEntity;
use crate::proto::core::envelope::JobId;
use crate::proto::core::lead::Administration;
use crate::proto::core::second::{NoFrames, Ring, core_of, core_of_two, second_core};
use crate::proto::endpoint::{Connection, EntityId};
use crate::proto::restart::BlockHow;
use crate::proto::transaction::outgoing;
use crate::proto::trunk::{Defect, Facility, SpanIndex};
use std::net::SocketAddr;

/// Its service, and while it serves how far its announcement is, whether it is disconnected, and the port it notifies.
type Serving = (Told, bool, Option<u16>);

/// And its connections.
type State = (Service, Option<Serving>, usize);

/// The seconds that audits tell of both, in which one may have heard of something a second before the other (G-AUE-10).
fn about_equal(one: &[u32], other: &[u32]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.abs_diff(*other) <= 1)
}

/// A lead core with its way to the other core, and that core.
struct Side {
    lead: Core,
    ring: Ring,
    second: Core,
}

impl Side {
    fn new(room: usize) -> Side {
        let mut second = second_core(|plan| plan.limits.slice = 7);
        // Whoever comes back into service notifies its provisioned entity again.
        for endpoint in range(&second).iter() {
            let endpoints = &mut second.calls.endpoints;
            let name = b"ca@ca.example.net:4000";
            let entity = endpoints.entities.intern(&mut endpoints.blobs, name, AgentId(0), 4000).unwrap();
            endpoints.set_entity(endpoint, entity);
        }
        Side { lead: core_of_two(CoreId(0), |plan| plan.limits.slice = 5), ring: Ring { room, ..Ring::default() }, second }
    }

    /// The second core takes what has come, and works on it to the end.
    fn deliver(&mut self, now: Time) {
        let mut silent = Ring::default();
        for order in std::mem::take(&mut self.ring.told) {
            silent.with(now, |turn| self.second.handle_envelope(turn, CoreId(0), order));
        }
        while self.second.deadline() == Time::ZERO {
            silent.turn(&mut self.second, now.since(Time::ZERO));
        }
    }

    /// A Notify of these endpoints is lost there.
    fn lose_notifies(&mut self, some: EndpointRange) {
        for endpoint in some.iter() {
            let calls = &mut self.second.calls;
            let Some(state) = calls.endpoints.get_mut(endpoint) else { continue };
            if state.service.in_service {
                state.watch = state.watch.or_else(|| calls.watches.take(endpoint));
                event::lost(calls, endpoint, 1);
            }
        }
    }

    /// Some endpoints have a connection while they serve.
    fn connect(&mut self) {
        for endpoint in range(&self.second).iter().step_by(5) {
            let endpoints = &mut self.second.calls.endpoints;
            let state = endpoints.get(endpoint).unwrap();
            if state.service.in_service && state.connection_count() == 0 {
                endpoints.connect(Connection { endpoint, ..Connection::default() }).unwrap();
            }
        }
    }

    /// Endpoints whose agent is in contact, though a Notify waits for that.
    fn stuck(&self) -> Vec<EndpointIndex> {
        let calls = &self.second.calls;
        let is_stuck = |endpoint: &EndpointIndex| {
            let state = calls.endpoints.get(*endpoint).unwrap();
            let is_in_contact = state.service.in_service && state.announcement == Told::Done && !state.disconnected;
            is_in_contact && calls.watch(*endpoint).is_some_and(|watch| watch.cut_off)
        };
        range(&self.second).iter().filter(is_stuck).collect()
    }

    /// The delay that an audit tells of each endpoint there that serves.
    fn delays(&self, now: Time) -> Vec<u32> {
        let states = range(&self.second).iter().map(|endpoint| self.second.calls.endpoints.get(endpoint).unwrap());
        states.filter(|state| state.service.in_service).map(|state| state.delay(now)).collect()
    }

    /// What is known of each endpoint there.
    fn states(&self) -> Vec<State> {
        let endpoints = &self.second.calls.endpoints;
        let state = |endpoint| {
            let state = endpoints.get(endpoint).unwrap();
            let named = (state.entity != EntityId::PROVISIONED).then(|| endpoints.entities.get(state.entity).unwrap().1);
            // Named by its provisioned addresses it is as provisioned.
            let port = named.filter(|port| *port != 0);
            // The code is 531 again while what was told of a failure is to be told once more, which who heard all does not see.
            let service = Service { refusal: 0, ..state.service };
            let serving = service.in_service.then_some((state.announcement, state.disconnected, port));
            (service, serving, state.connection_count())
        };
        range(&self.second).iter().map(state).collect()
    }
}

fn range(core: &Core) -> EndpointRange {
    core.calls.endpoints.ranges().next().unwrap()
}

/// The same happens to both: operators, lines, an agent that answers or not.
fn happen(rng: &mut Rng, now: Time, side: &mut Side) {
    let Side { lead, ring, .. } = side;
    let mut second_lost = None;
    let topology = lead.plan.topology.clone();
    let names = ["*", "ds/ds1-2/*", "ds/*/3", "ds/ds1-2/[1-9]"];
    let selection = topology.resolve(names[rng.below(4) as usize].as_bytes(), true).unwrap();
    let (out, some) = (lead.lead.as_ref().unwrap().out_numbers(), EndpointRange { first: 24 + rng.below(20) as u32, count: 3 });
    // No command is answered twice: the answer before must be worked in.
    let answerable = !out.is_empty() && lead.lead.as_ref().unwrap().coordinator().is_at_rest();
    let number = answerable.then(|| out[rng.below(out.len() as u64) as usize]);
    let what = rng.below(10);
    let span = Facility::Span(SpanIndex(rng.below(2) as u16));
    ring.with(now, |turn| match (what, number) {
        (0, _) => lead.administer(turn, Administration::Block(selection, BlockHow::Force)),
        (1, _) => lead.administer(turn, Administration::Block(selection, BlockHow::Graceful(Duration::from_secs(2)))),
        (2, _) => lead.administer(turn, Administration::Unblock(selection)),
        (3, _) => lead.administer(turn, Administration::Drain(some.first % 2 == 0)),
        (4, _) => lead.lead_defect(turn, span, Defect::LossOfSignal, some.first % 2 == 0, true),
        (5, _) => {
            second_lost = Some(some);
            lead.lead_unanswered(now, some);
        }
        (6..=8, Some(number)) => {
            let entity = (what == 8).then(|| NotifiedEntity::parse(b"ca@ca.example.net:3000").unwrap());
            lead.restart_answered(turn, number, outgoing::Outcome::Success, 200, entity);
        }
        (9, Some(number)) => lead.restart_unanswered(turn, number),
        _ => {}
    });
    if let Some(some) = second_lost {
        side.lose_notifies(some);
    }
}

/// Whatever is ordered while a core has no room, or only a little now and then: nothing piles up, and once there is room it is as if it
/// had heard all of it.
#[test]
fn a_core_that_missed_orders_is_told_what_holds() {
    let mut missed = 0;
    for seed in 0..40 {
        let (mut heard, mut late) = (Side::new(usize::MAX), Side::new(0));
        let mut rng = Rng::new(seed);
        let mut now = Time::ZERO;
        for step in 0..120 {
            let last = step % 40 == 39;
            let pass = Duration::from_millis([1, 1, 20, 300, 2500][rng.below(5) as usize]);
            let mut same = rng.fork("both");
            happen(&mut same.clone(), now, &mut heard);
            happen(&mut same, now, &mut late);
            late.ring.room = if last { usize::MAX } else { rng.below(3) as usize * rng.below(2) as usize };
            now += pass;
            // The last time all that goes on comes to rest.
            let turns = if last { 400 } else { 1 + rng.below(30) };
            for turn in 0..turns {
                now += Duration::from_millis(1);
                for side in [&mut heard, &mut late] {
                    side.ring.turn(&mut side.lead, now.since(Time::ZERO));
                    if last || turn % 8 == 0 {
                        side.deliver(now);
                    }
                }
            }
            assert!(late.lead.unsent.is_empty() && late.lead.to_self.is_empty(), "seed {seed}");
            if last {
                assert!(!late.lead.lead.as_ref().unwrap().missed.is_anybody_behind(), "seed {seed}");
                assert_eq!(late.states(), heard.states(), "seed {seed}, step {step}");
                let (delays, as_heard) = (late.delays(now), heard.delays(now));
                assert!(about_equal(&delays, &as_heard), "seed {seed}, step {step}: {delays:?} {as_heard:?}");
                assert_eq!((late.stuck(), heard.stuck()), (vec![], vec![]), "seed {seed}, step {step}");
                late.connect();
                heard.connect();
            }
        }
        missed += late.lead.counters.get(Counter::OrdersMissed);
    }
    assert!(missed > 1000, "{missed}");
}

/// A core that stands still has lost a Notify before, and hears neither of the disconnect nor of its end: the Notify goes on.
#[test]
fn a_notify_lost_before_orders_were_missed_waits_no_longer() {
    let mut side = Side::new(usize::MAX);
    let mut now = Time::ZERO;
    let mut run = |side: &mut Side, turns: u32, answers: bool| {
        for _ in 0..turns {
            now += Duration::from_millis(100);
            side.ring.turn(&mut side.lead, now.since(Time::ZERO));
            if side.ring.room > 0 {
                side.deliver(now);
            }
            for number in side.lead.lead.as_ref().unwrap().out_numbers().into_iter().filter(|_| answers) {
                let Side { lead, ring, .. } = side;
                ring.with(now, |turn| lead.restart_answered(turn, number, outgoing::Outcome::Success, 200, None));
            }
        }
        now
    };
    let all = range(&side.second);
    let now = run(&mut side, 50, true);
    assert!(all.iter().all(|endpoint| side.second.calls.endpoints.get(endpoint).unwrap().announcement == Told::Done));
    side.ring.room = 0;
    side.lose_notifies(all);
    side.lead.lead_unanswered(now, all);
    assert_eq!(side.stuck().len(), all.count as usize);
    run(&mut side, 600, true);
    assert_eq!(side.stuck().len(), all.count as usize);
    side.ring.room = usize::MAX;
    run(&mut side, 600, true);
    assert_eq!(side.stuck(), []);
}

/// What must arrive and found no room comes before what was ordered later, though there is room by then.
#[test]
fn orders_do_not_overtake_what_waits_for_room() {
    let mut side = Side::new(0);
    let first = Envelope::Vote { job: JobId { slot: 1, generation: 1 }, refused: None };
    let topology = side.lead.plan.topology.clone();
    let selection = topology.resolve(b"ds/ds1-2/*", false).unwrap();
    let Side { lead, ring, .. } = &mut side;
    ring.with(Time::ZERO, |turn| lead.must_tell(turn, CoreId(1), first));
    ring.room = 1000;
    ring.with(Time::ZERO, |turn| lead.administer(turn, Administration::Block(selection, BlockHow::Force)));
    for at in 1..50 {
        ring.turn(lead, Duration::from_millis(at));
    }
    let told = &ring.told;
    assert!(matches!(told.first(), Some(Envelope::Vote { .. })), "{:?}", told.first());
    assert!(told.iter().any(|envelope| matches!(envelope, Envelope::Anew { .. } | Envelope::Service { .. })));
}

/// The ways to several cores: what each was told, and whether there is room.
#[derive(Default)]
struct Rings {
    told: [Vec<Envelope>; 3],
    has_room: [bool; 3],
}

impl Outside for Rings {
    fn transmit(&mut self, _: SocketAddr, _: u8, _: impl FnOnce(&mut [u8]) -> usize) -> bool {
        false
    }

    fn forward(&mut self, to: CoreId, envelope: Envelope) -> bool {
        let core = usize::from(to.0);
        if self.has_room[core] {
            self.told[core].push(envelope);
        }
        self.has_room[core]
    }

    fn release(&mut self, _: FrameRef) {}
}

/// One core takes nothing: the other hears everything at once, in order, and the first hears what holds when it goes on.
#[test]
fn a_core_without_room_keeps_no_other_from_hearing() {
    let mut lead = core_of(3, CoreId(0), |_| ());
    let mut rings = Rings { has_room: [true, false, true], ..Rings::default() };
    let mut now = Time::ZERO;
    let mut run = |rings: &mut Rings, mut order: Option<Administration>| {
        for _ in 0..100 {
            now += Duration::from_millis(1);
            let turn = &mut Turn { now, frames: &NoFrames, out: rings };
            if let Some(order) = order.take() {
                lead.administer(turn, order);
            }
            lead.handle_time(turn);
        }
    };
    run(&mut rings, None);
    rings.told = Default::default();
    // Whether its endpoints serve, each time that changed.
    let services = |told: &[Envelope]| -> Vec<bool> {
        let service = |envelope: &Envelope| match envelope {
            Envelope::Service { service, .. } => Some(service.in_service),
            Envelope::Anew { standing, .. } => Some(standing.service.in_service),
            _ => None,
        };
        let mut services: Vec<bool> = told.iter().filter_map(service).collect();
        services.dedup();
        services
    };
    let all = core_of(3, CoreId(0), |_| ()).plan.topology.resolve(b"*", true).unwrap();
    for (blocks, heard) in [(true, vec![false]), (false, vec![false, true]), (true, vec![false, true, false])] {
        let order = if blocks { Administration::Block(all, BlockHow::Force) } else { Administration::Unblock(all) };
        run(&mut rings, Some(order));
        assert_eq!((services(&rings.told[1]), services(&rings.told[2])), (vec![], heard));
    }
    rings.has_room[1] = true;
    run(&mut rings, None);
    assert_eq!((services(&rings.told[1]), services(&rings.told[2])), (vec![false], vec![false, true, false]));
}
