//! Cores and their bank with every order of messages there can be between them.

use super::super::charge::Direction;
use super::super::limits::{Amount, Cause, Rate};
use super::super::scope::{Kind, Scope, Tree};
use super::*;
use crate::proto::base::{Rng, Time};
use std::collections::VecDeque;
use std::time::Duration;

const NONE: Charge = Charge::EMPTY;

struct World {
    tree: Tree,
    limits: Vec<Limits>,
    bank: Bank,
    holders: Vec<Holder>,
    /// On their way, in order for each pair.
    up: Vec<VecDeque<ToBank>>,
    down: Vec<VecDeque<ToHolder>>,
    /// Calls that are up, and claims that wait.
    calls: Vec<(usize, Charge)>,
    claims: Vec<(usize, Ticket, Charge)>,
    tickets: u64,
    now: Time,
    granted: u32,
    denied: u32,
}

impl World {
    fn new(holders: usize, limits: Vec<Limits>) -> World {
        let scopes = vec![
            Scope::new(Kind::Pool, "carrier"),
            Scope::new(Kind::TrunkGroup, "north").under(ScopeId(0)),
            Scope::new(Kind::TrunkGroup, "south").under(ScopeId(0)),
        ];
        World {
            tree: Tree::new(scopes).unwrap(),
            bank: Bank::new(&limits, holders),
            holders: (0..holders).map(|_| Holder::new(&limits, holders)).collect(),
            up: vec![VecDeque::new(); holders],
            down: vec![VecDeque::new(); holders],
            calls: Vec::new(),
            claims: Vec::new(),
            tickets: 0,
            now: Time::from_millis(1_000),
            granted: 0,
            denied: 0,
            limits,
        }
    }

    fn charge(&self, group: u16, class: Class) -> Charge {
        self.tree.charge(ScopeId(group), None, Charge::new(Direction::Inbound, class, 80))
    }

    fn call(&mut self, holder: usize, charge: Charge) {
        match self.holders[holder].take(&charge, &NONE) {
            Taken::Now => self.admitted(holder, charge),
            Taken::Claim => {
                self.tickets += 1;
                self.claims.push((holder, Ticket(self.tickets), charge));
                self.holders[holder].claim(Ticket(self.tickets), &charge, &NONE);
            }
        }
        self.collect();
    }

    fn admitted(&mut self, holder: usize, charge: Charge) {
        self.granted += 1;
        self.calls.push((holder, charge));
    }

    fn end(&mut self, place: usize) {
        let (holder, charge) = self.calls.swap_remove(place);
        self.holders[holder].release(&charge, &NONE);
        self.collect();
    }

    fn collect(&mut self) {
        for (holder, up) in self.holders.iter_mut().zip(&mut self.up) {
            up.extend(std::iter::from_fn(|| holder.poll()));
        }
        while let Some((holder, message)) = self.bank.poll() {
            self.down[holder].push_back(message);
        }
    }

    fn set_limits(&mut self, limits: Vec<Limits>) {
        self.bank.set_limits(&limits);
        self.holders.iter_mut().for_each(|holder| holder.set_limits(&limits));
        self.limits = limits;
        self.collect();
    }

    /// One message arrives; false when none is on its way.
    fn deliver(&mut self, rng: &mut Rng) -> bool {
        let holders = self.holders.len();
        let first = rng.below(2 * holders as u64) as usize;
        for place in (0..2 * holders).map(|n| (first + n) % (2 * holders)) {
            let holder = place % holders;
            if place < holders {
                let Some(message) = self.up[holder].pop_front() else { continue };
                self.bank.handle(self.now, holder, message);
            } else {
                let Some(message) = self.down[holder].pop_front() else { continue };
                self.answered(holder, message);
            }
            self.collect();
            return true;
        }
        false
    }

    fn answered(&mut self, holder: usize, message: ToHolder) {
        let Some((ticket, wanted, result)) = self.holders[holder].handle(message) else { return };
        let place = self.claims.iter().position(|&(_, waiting, _)| waiting == ticket);
        let (_, _, charge) = self.claims.swap_remove(place.expect("a claim"));
        match result {
            Ok(()) => {
                assert_eq!(self.holders[holder].take(&charge, &NONE), Taken::Now);
                self.holders[holder].settle(&charge);
                self.admitted(holder, charge);
            }
            Err(_) => {
                self.holders[holder].settle(&wanted);
                self.denied += 1;
            }
        }
    }

    fn quiet(&mut self, rng: &mut Rng) {
        while self.deliver(rng) {}
        assert!(self.claims.is_empty(), "unanswered: {:?}", self.claims);
    }

    fn used(&self, scope: u16) -> Amounts {
        self.holders.iter().fold(Amounts::ZERO, |sum, holder| sum.plus(&holder.used(ScopeId(scope))))
    }

    /// What is in use is what the calls need (I7), within what is held; and without emergencies within the limits.
    fn check(&self, limited: bool) {
        for scope in 0..self.limits.len() as u16 {
            let id = ScopeId(scope);
            let needed = self.calls.iter().fold(Amounts::ZERO, |sum, (_, charge)| sum.plus(&charge.need_in(id)));
            assert!(self.used(scope).covers(&needed) && (!self.claims.is_empty() || self.used(scope) == needed));
            assert!(self.holders.iter().all(|holder| holder.held(id).covers(&holder.used(id))));
            if limited {
                let ceiling = self.limits[usize::from(scope)].ceiling(Class::Normal).unwrap();
                assert!(ceiling.covers(&self.used(scope)), "{:?} of {ceiling:?}", self.used(scope));
                assert!(ceiling.covers(&self.bank.given(id)), "{:?} of {ceiling:?}", self.bank.given(id));
            }
        }
    }
}

fn limits(pool: u32, north: u32) -> Vec<Limits> {
    vec![Limits::of_calls(pool), Limits { kbits: north * 60, ..Limits::of_calls(north) }, Limits::NONE]
}

/// I3, I6, I7: never more than the limit, whatever comes when; nothing given out is lost.
#[test]
fn cores_together_never_use_more_than_the_limit() {
    for seed in 1..=60 {
        let mut rng = Rng::new(seed);
        let holders = 1 + rng.below(5) as usize;
        let (pool, north) = (rng.below(60) as u32, rng.below(40) as u32);
        let mut world = World::new(holders, limits(pool, north));
        for _ in 0..600 {
            match rng.below(6) {
                0 | 1 => {
                    let charge = world.charge(1 + rng.below(2) as u16, Class::Normal);
                    world.call(rng.below(holders as u64) as usize, charge);
                }
                2 if !world.calls.is_empty() => world.end(rng.below(world.calls.len() as u64) as usize),
                _ => drop(world.deliver(&mut rng)),
            }
            world.check(true);
        }
        world.quiet(&mut rng);
        for scope in 0..3 {
            let held = world.holders.iter().fold(Amounts::ZERO, |sum, holder| sum.plus(&holder.held(ScopeId(scope))));
            assert_eq!(held, world.bank.given(ScopeId(scope)), "seed {seed}");
        }
    }
}

/// No call is refused while there is room on any core.
#[test]
fn the_last_place_is_found_wherever_it_lies() {
    for seed in 1..=40 {
        let mut rng = Rng::new(seed);
        let holders = 1 + rng.below(6) as usize;
        let pool = 1 + rng.below(50) as u32;
        let mut world = World::new(holders, vec![Limits::of_calls(pool), Limits::NONE, Limits::NONE]);
        for _ in 0..400 {
            if rng.chance(600_000) {
                let room = world.calls.len() < pool as usize;
                let (granted, charge) = (world.granted, world.charge(1, Class::Normal));
                world.call(rng.below(holders as u64) as usize, charge);
                world.quiet(&mut rng);
                assert_eq!(world.granted > granted, room, "seed {seed}: {} of {pool} up", world.calls.len());
            } else if !world.calls.is_empty() {
                // Its place is on its way when the next call comes.
                world.end(rng.below(world.calls.len() as u64) as usize);
            }
        }
        assert!(world.granted > 30 && (world.denied > 0 || pool > 40));
    }
}

/// While there is plenty, cores do not ask.
#[test]
fn calls_far_below_the_limit_ask_nobody() {
    let mut rng = Rng::new(1);
    let mut world = World::new(4, vec![Limits::of_calls(1_000), Limits::NONE, Limits::NONE]);
    let charge = world.charge(1, Class::Normal);
    for call in 0..400 {
        world.call(call % 4, charge);
        assert!(world.claims.is_empty());
    }
    world.quiet(&mut rng);
    let mut claims = 0;
    for call in 0..500 {
        world.call(call % 4, charge);
        claims += world.claims.len();
        world.quiet(&mut rng);
    }
    assert!(world.denied == 0 && claims < 60, "{claims} claims");
}

/// R17: emergency calls are never asked about, and count.
#[test]
fn an_emergency_call_waits_for_nobody() {
    let mut rng = Rng::new(2);
    let mut world = World::new(3, vec![Limits::of_calls(2), Limits::NONE, Limits::NONE]);
    let (normal, emergency) = (world.charge(1, Class::Normal), world.charge(1, Class::Emergency));
    for holder in 0..3 {
        world.call(holder, emergency);
        assert!(world.claims.is_empty());
        world.call(holder, emergency);
    }
    world.quiet(&mut rng);
    assert_eq!((world.used(0).get(Amount::Calls), world.bank.given(ScopeId(0)).get(Amount::Calls)), (6, 6));
    world.call(0, normal);
    world.quiet(&mut rng);
    assert_eq!(world.denied, 1);
    (0..5).for_each(|_| world.end(0));
    world.quiet(&mut rng);
    world.call(2, normal);
    world.quiet(&mut rng);
    assert_eq!((world.denied, world.calls.len()), (1, 2));
}

/// R17: an emergency call that is limited has its head room.
#[test]
fn a_limited_emergency_call_has_its_head_room() {
    let mut rng = Rng::new(3);
    let limited = Limits { emergency_limited: true, emergency_percent: 0, emergency_extra: 1, ..Limits::of_calls(2) };
    let mut world = World::new(2, vec![limited, Limits::NONE, Limits::NONE]);
    let emergency = world.charge(1, Class::Emergency);
    for call in 0..5 {
        world.call(call % 2, emergency);
        world.quiet(&mut rng);
    }
    assert_eq!((world.granted, world.denied), (3, 2));
}

/// R18: over all cores together.
#[test]
fn a_rate_holds_over_all_cores() {
    let mut rng = Rng::new(4);
    let rate = Some(Rate { per_second: 10, burst: 4 });
    let mut world = World::new(3, vec![Limits::NONE, Limits { inbound_rate: rate, ..Limits::NONE }, Limits::NONE]);
    let charge = world.charge(1, Class::Normal);
    for call in 0..12 {
        world.call(call % 3, charge);
    }
    world.quiet(&mut rng);
    assert_eq!((world.granted, world.denied), (4, 8));
    world.now += Duration::from_millis(200);
    for call in 0..6 {
        world.call(call % 3, charge);
    }
    world.quiet(&mut rng);
    assert_eq!((world.granted, world.denied), (6, 12));
}

/// R21, I16: with messages on their way all the time.
#[test]
fn limits_change_while_cores_use_them() {
    for seed in 1..=40 {
        let mut rng = Rng::new(seed);
        let mut world = World::new(3, limits(30, 20));
        for _ in 0..300 {
            match rng.below(8) {
                0..=2 => {
                    let charge = world.charge(1 + rng.below(2) as u16, Class::Normal);
                    world.call(rng.below(3) as usize, charge);
                }
                3 if !world.calls.is_empty() => world.end(rng.below(world.calls.len() as u64) as usize),
                4 => {
                    let (pool, north) = (rng.below(60) as u32, rng.below(30) as u32);
                    world.set_limits(limits(pool, north));
                }
                _ => drop(world.deliver(&mut rng)),
            }
            world.check(false);
        }
        world.quiet(&mut rng);
        // Above a lowered limit nothing new comes in.
        let up = world.calls.len();
        world.set_limits(limits(up.saturating_sub(1) as u32, 40));
        world.quiet(&mut rng);
        for holder in 0..3 {
            let charge = world.charge(2, Class::Normal);
            world.call(holder, charge);
        }
        world.quiet(&mut rng);
        assert_eq!(world.calls.len(), up, "seed {seed}");
        // A raised one is used at once.
        world.set_limits(limits(up as u32 + 2, 40));
        for holder in 0..3 {
            let charge = world.charge(2, Class::Normal);
            world.call(holder, charge);
        }
        world.quiet(&mut rng);
        assert_eq!(world.calls.len(), up + 2, "seed {seed}");
    }
}

/// R23: a change takes and frees the difference.
#[test]
fn a_change_takes_and_frees_the_difference() {
    let limits = vec![Limits { kbits: 150, ..Limits::NONE }, Limits::NONE, Limits::NONE];
    let (mut holder, mut bank) = (Holder::new(&limits, 1), Bank::new(&limits, 1));
    let tree = World::new(1, limits.clone()).tree;
    let small = tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Normal, 64));
    let large = small.with_kbits(150);
    assert_eq!(holder.take(&small, &NONE), Taken::Now);
    assert_eq!(holder.take(&large, &small), Taken::Now);
    holder.release(&small, &large);
    assert_eq!(holder.used(ScopeId(0)).get(Amount::Kbits), 150);
    assert_eq!(holder.take(&small.with_kbits(151), &large), Taken::Claim);
    holder.claim(Ticket(1), &small.with_kbits(151), &large);
    // Refused, when the bank has heard that nothing is unused.
    let mut answer = None;
    while answer.is_none() {
        let message = holder.poll().expect("a message");
        bank.handle(Time::ZERO, 0, message);
        answer = std::iter::from_fn(|| bank.poll()).find_map(|(_, message)| holder.handle(message));
    }
    assert!(matches!(answer, Some((Ticket(1), _, Err(Denial { cause: Cause::Bandwidth, .. })))), "{answer:?}");
    holder.release(&large, &small);
    assert_eq!((holder.used(ScopeId(0)).get(Amount::Kbits), holder.used(ScopeId(1)).get(Amount::Calls)), (64, 1));
}
