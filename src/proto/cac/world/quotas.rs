//! Quotas, one story at a time.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

impl World {
    fn with_quotas(seed: u64, count: usize, limit: u32, policy: Policy) -> World {
        let mut world = World::kind(seed, Kind::QUOTAS, (count, 1), limit, policy, true);
        world.run(SECOND);
        world
    }

    /// So many calls at `place` that stay up.
    fn put_up(&mut self, place: usize, count: u32) -> Vec<Guid> {
        let charge = self.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Normal, 80));
        let guids: Vec<Guid> = (0..count).map(|_| self.guid(place)).collect();
        guids.iter().for_each(|&guid| self.ask(place, guid, Leg::Ingress, charge));
        guids
    }

    /// One call after the other until so many are up everywhere, which must not take for ever.
    fn ask_again(&mut self, place: usize, up: u32) {
        for _ in 0..200 {
            if self.live() >= up {
                break;
            }
            self.put_up(place, 1);
            self.run(SECOND / 20);
        }
        assert_eq!(self.live(), up, "seed {}: {:?}", self.seed, self.parts());
    }

    fn hang_up(&mut self, place: usize, guids: &[Guid]) {
        guids.iter().for_each(|&guid| self.end_call(place, guid, Leg::Ingress));
    }

    fn up_at(&self, place: usize) -> usize {
        self.gateways[place].node.as_ref().map_or(0, |node| node.calls().ledger().len())
    }

    /// What each gateway has of the pool.
    fn parts(&self) -> Vec<super::super::quota::Part> {
        let of = |place| self.central().quotas_of(World::sc(place)).find(|(scope, _)| *scope == POOL);
        (0..self.gateways.len()).filter_map(of).map(|(_, part)| part).collect()
    }

    fn tally(&self, what: &str) -> u64 {
        self.decided.get(what).copied().unwrap_or(0)
    }
}

/// R31, must hold 4: calls that quotas admit ask nobody, and the central node knows each of them.
#[test]
fn calls_with_a_quota_ask_nobody_and_are_all_counted() {
    let mut world = World::with_quotas(1, 3, 300, Policy::Open);
    for place in 0..3 {
        world.put_up(place, 12);
    }
    assert_eq!((world.tally("leased"), world.tally("granted")), (36, 0));
    world.run(SECOND);
    world.compare();
    let ledger = world.central().authority().ledger();
    assert_eq!((ledger.used(POOL).get(Amount::Calls), ledger.leased(POOL).get(Amount::Calls)), (36, 36));
    assert!(ledger.iter().all(|(_, ccb)| ccb.admission == Admission::Lease));
    assert_eq!(world.central().counts().granted, 0);
}

/// I6: three gateways that all want more than there is get all of it, and no more; what one does not use goes to the others.
#[test]
fn all_places_are_used_and_no_more() {
    for seed in 0..10 {
        let mut world = World::with_quotas(seed, 3, 60, Policy::Closed);
        let mine = world.put_up(0, 60);
        world.run(SECOND);
        // Some were refused while others had unused places; whoever asks again gets those.
        world.ask_again(1, 60);
        world.hang_up(0, &mine);
        world.ask_again(2, 60);
        world.settle();
    }
}

/// I6, I15: cut off, a gateway admits by its quota to the end of its lease, and then by its policy; what it has is nobody else's.
#[test]
fn a_gateway_that_is_cut_off_admits_by_its_quota_while_the_lease_holds() {
    let mut world = World::with_quotas(2, 2, 100, Policy::Closed);
    world.gateways[0].cut = true;
    world.run(5 * SECOND);
    world.put_up(0, 5);
    world.run(SECOND / 10);
    assert_eq!((world.tally("leased"), world.up_at(0)), (5, 5));
    world.run(6 * SECOND);
    world.put_up(0, 5);
    world.run(SECOND);
    assert_eq!((world.tally("leased"), world.tally("refused")), (5, 5));
    let bound = world.central().quotas_of(World::sc(0)).find(|(scope, _)| *scope == POOL).map(|(_, part)| part.bound);
    assert!(bound.is_some_and(|bound| bound >= 5), "{bound:?}");
    world.settle();
}

/// Races 7 and 12, I6: what a node had, which an operator took for dead, rests until its lease is over, however dead it is.
#[test]
fn the_quota_of_a_node_that_is_forgotten_rests_until_its_lease_is_over() {
    let mut world = World::with_quotas(3, 2, 100, Policy::Closed);
    let bound = world.central().quotas_of(World::sc(0)).find(|(scope, _)| *scope == POOL).map_or(0, |(_, part)| part.bound);
    world.gateways[0].cut = true;
    world.run(2 * SECOND);
    world.step_central(0, central::Event::Forget(World::sc(0)));
    for _ in 0..12 {
        world.put_up(1, 10);
        world.run(SECOND / 10);
    }
    assert_eq!(world.up_at(1), 100 - bound as usize);
    // It lives, and fills what it has.
    let late = world.put_up(0, bound);
    assert!(world.live() <= 100);
    world.hang_up(0, &late);
    world.kill(0);
    world.run(10 * SECOND);
    world.ask_again(1, 100);
}

/// R37: a life that begins while the lease of the one before holds gets no place that one may still give.
#[test]
fn a_new_life_does_not_get_what_the_old_one_had_before_its_lease_is_over() {
    let mut world = World::with_quotas(4, 2, 100, Policy::Closed);
    let before = world.central().promised(POOL);
    world.kill(0);
    world.run(SECOND / 10);
    world.start(0, Vec::new());
    world.run(3 * SECOND);
    let central = world.central();
    let has: u32 = central.quotas_of(World::sc(0)).filter(|(scope, _)| *scope == POOL).map(|(_, part)| part.bound).sum();
    assert!(has > 0 && central.promised(POOL) > before && central.promised(POOL) <= 100);
    world.run(10 * SECOND);
    world.settle();
}

/// I16, R21: a limit that is lowered cuts no call and is kept to as calls end; raised, it is used within a report.
#[test]
fn a_changed_limit_changes_the_quotas() {
    let mut world = World::with_quotas(5, 2, 100, Policy::Closed);
    world.strict = false;
    let calls = world.put_up(0, 40);
    world.put_up(1, 40);
    world.run(SECOND);
    let up = world.live();
    assert!(up > 60, "{up}");
    let set = |world: &mut World, calls: u32| {
        world.limits = vec![Limits::of_calls(calls)];
        let limits = world.limits.clone();
        world.central_mut().set_limits(limits);
        world.step_central(0, central::Event::Time);
        world.run(SECOND);
    };
    set(&mut world, 40);
    assert_eq!(world.live(), up);
    world.put_up(1, 5);
    world.run(SECOND);
    assert_eq!(world.live(), up);
    world.hang_up(0, &calls);
    world.run(SECOND);
    world.put_up(0, 40);
    world.run(SECOND);
    assert!(world.live() <= up.max(40) && world.central().promised(POOL) <= up.max(40));
    set(&mut world, 200);
    world.put_up(0, 30);
    world.run(SECOND);
    assert!(world.live() >= 65, "{}", world.live());
    world.settle();
}

/// R47: a gateway that is drained has no quota; emergency calls pass (I11).
#[test]
fn a_drained_gateway_admits_no_call_by_quota() {
    let mut world = World::with_quotas(6, 2, 100, Policy::Open);
    world.put_up(0, 3);
    world.step_central(0, central::Event::Drain(World::sc(0), true));
    world.run(SECOND);
    world.put_up(0, 3);
    let (guid, charge) = (world.guid(0), world.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Emergency, 80)));
    world.ask(0, guid, Leg::Ingress, charge);
    world.run(SECOND);
    assert_eq!((world.tally("refused"), world.up_at(0)), (3, 4));
    world.step_central(0, central::Event::Drain(World::sc(0), false));
    world.run(SECOND);
    world.put_up(0, 3);
    world.run(SECOND);
    assert_eq!(world.up_at(0), 7);
    world.settle();
}

/// I6, R32: a new central node learns which quotas its predecessor gave; calls go on by them meanwhile.
#[test]
fn a_new_central_node_learns_the_quotas_and_calls_go_on() {
    let mut world = World::with_quotas(7, 3, 90, Policy::Closed);
    (0..3).for_each(|place| drop(world.put_up(place, 6)));
    world.run(SECOND);
    let given = world.central().promised(POOL);
    world.kill_central();
    world.run(3 * SECOND);
    (0..3).for_each(|place| drop(world.put_up(place, 2)));
    assert_eq!(world.tally("leased"), 24);
    world.start_central();
    world.run(3 * SECOND);
    assert!(world.central().is_active() && world.central().promised(POOL) >= given);
    assert_eq!(world.central().authority().ledger().used(POOL).get(Amount::Calls), 24);
    world.settle();
}

/// R43, I17: a gateway of the version before has no quotas and asks for each call; a standby of that version gets its copy in its own
/// words, and when it leads calls are asked for again.
#[test]
fn the_version_before_goes_on_call_by_call() {
    for seed in 0..4 {
        let mut world = World::kind(seed, Kind::QUOTAS, (3, 2), 90, Policy::HoldLast, true);
        let old = 1 - world.place();
        world.old_office = Some(old);
        world.kill_office(old);
        world.start_office(old);
        world.gateways[2].is_old = true;
        world.kill(2);
        world.start(2, Vec::new());
        world.run(5 * SECOND);
        assert!(world.all_in_sync());
        (0..3).for_each(|place| drop(world.put_up(place, 4)));
        world.run(SECOND);
        assert_eq!((world.tally("leased"), world.tally("granted")), (8, 4), "seed {seed}");
        world.compare();
        world.kill_central();
        world.run(12 * SECOND);
        assert_eq!(world.place(), old);
        (0..3).for_each(|place| drop(world.put_up(place, 4)));
        world.run(SECOND);
        assert_eq!((world.tally("leased"), world.tally("granted")), (8, 16), "seed {seed}");
        world.settle();
    }
}

/// How much of the limit is used, on the average, while more calls come than there is room for.
fn utilisation(seed: u64, fault: impl Fn(&mut World)) -> f64 {
    let mut world = World::kind(seed, Kind::QUOTAS, (3, 1), 300, Policy::HoldLast, true);
    // 1.6 times what fits: 24 calls a second that last 20 s each.
    world.calls_last = 20 * SECOND;
    world.begin_calls(Duration::from_millis(125));
    world.run(40 * SECOND);
    fault(&mut world);
    let mut used = 0;
    for _ in 0..200 {
        world.run(SECOND / 5);
        used += world.live();
    }
    f64::from(used) / (200.0 * 300.0)
}

/// What lies idle in parts is little, and nothing passes the limit, on a good day and on bad ones (cac.md 5b; `docs/conformance/cac.md` has
/// the numbers).
#[test]
fn little_lies_idle_in_parts() {
    let cut = |world: &mut World| world.gateways[0].cut = true;
    let dead = |world: &mut World| drop(world.kill(0));
    let (good, cut, dead) = (utilisation(1, |_| {}), utilisation(2, cut), utilisation(3, dead));
    println!("used: {:.1} %, cut off {:.1} %, one dead {:.1} %", good * 100.0, cut * 100.0, dead * 100.0);
    assert!(good > 0.95 && cut > 0.8 && dead > 0.6, "{good} {cut} {dead}");
}
