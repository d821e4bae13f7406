//! Where many calls go at once, they go a slice a turn, and everybody else is served in between.

use super::super::central::Note;
use super::*;

const MANY: u32 = 6_000;

impl World {
    /// The first gateway has all the places there are, and the central node looks at 20 calls a turn.
    fn full(policy: Policy) -> World {
        let mut world = World::new(20, 2, MANY, policy);
        world.slice = 20;
        world.kill_central();
        world.start_central();
        world.run(Duration::from_secs(3));
        for _ in 0..MANY / 100 {
            world.ask_many(0, 100);
            world.run(Duration::from_millis(10));
        }
        // Under hold-last the floor of the other one stays free.
        let floor = if policy == Policy::HoldLast { MANY / 100 } else { 0 };
        assert_eq!((world.count_at(0), world.count_at(1)), ((MANY - floor) as usize, 0));
        world.notes.clear();
        world
    }

    fn ask_many(&mut self, place: usize, count: u32) {
        let charge = self.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Normal, 80));
        for _ in 0..count {
            let guid = self.guid(place);
            self.ask(place, guid, Leg::Ingress, charge);
        }
    }

    fn count_at(&self, place: usize) -> usize {
        self.central().authority().ledger().count_of(World::sc(place))
    }

    /// Goes on until something is so, for some seconds at the most.
    fn until(&mut self, what: &str, is_so: impl Fn(&World) -> bool) {
        let end = self.now + Duration::from_secs(5);
        while !is_so(self) {
            assert!(self.now < end, "seed {}: not in time: {what}", self.seed);
            self.run(Duration::from_micros(100));
        }
    }

    /// Goes on until some calls of the first gateway are taken out, and most are not.
    fn until_half_swept(&mut self, before: usize) {
        self.until("some calls go", |world| world.count_at(0) <= before - before / 4);
        assert!(self.count_at(0) > before / 2);
    }

    /// The second gateway asks for a few calls, which wait for nothing: each has its answer before a fortieth of the others is gone.
    fn serve_the_other(&mut self) {
        let (before, granted) = (self.count_at(0), self.count_at(1));
        self.ask_many(1, 10);
        self.run(Duration::from_micros(700));
        assert_eq!(self.count_at(1), granted + 10);
        assert!(before - self.count_at(0) <= 160 && self.count_at(0) > 0, "{before} {}", self.count_at(0));
        assert!(self.central().authority().ledger().audit());
    }
}

/// R9, R24: a dead gateway's places come free one by one, and never more of them are given than are free; the last of it is what forgets it.
#[test]
fn a_gateway_with_many_calls_is_forgotten_while_others_are_served() {
    let mut world = World::full(Policy::Open);
    world.kill(0);
    world.run(Duration::from_secs(29));
    world.ask_many(1, 10);
    world.run(Duration::from_millis(10));
    assert_eq!((world.count_at(0), world.count_at(1)), (MANY as usize, 0));
    world.until_half_swept(MANY as usize);
    let forgotten = |world: &World| world.notes.contains(&Note::Forgotten(World::sc(0), MANY));
    (0..10).for_each(|_| world.serve_the_other());
    assert!(!forgotten(&world) && world.central().nodes().count() == 2);
    world.run(Duration::from_secs(1));
    assert!(forgotten(&world) && world.central().nodes().count() == 1);
    assert_eq!((world.count_at(0), world.count_at(1)), (0, 100));
}

/// R12: the same of what a sync did not tell; and the gateway is in sync when it is over.
#[test]
fn what_a_sync_did_not_tell_is_swept_while_others_are_served() {
    let mut world = World::full(Policy::Open);
    let saved = world.kill(0).split_off(MANY as usize - 600);
    world.run(Duration::from_millis(100));
    world.start(0, saved);
    world.until_half_swept(MANY as usize);
    let swept = |world: &World| world.notes.iter().any(|note| matches!(note, Note::InSync(_, 600, removed) if *removed == MANY - 600));
    (0..10).for_each(|_| world.serve_the_other());
    let reach = |world: &World| world.central().nodes().next().map(|view| view.reach);
    assert!(!swept(&world) && reach(&world) == Some(central::Reach::Syncing));
    world.ask_many(0, 30);
    world.run(Duration::from_secs(1));
    assert!(swept(&world) && reach(&world) == Some(central::Reach::InSync));
    assert_eq!((world.count_at(0), world.count_at(1)), (630, 100));
    world.settle();
}

/// Its node dies and comes back in the midst of a sweep: the next sync begins it anew, and exactly what that did not tell is gone.
#[test]
fn a_sweep_begins_anew_when_the_gateway_does() {
    let mut world = World::full(Policy::Open);
    let mut saved = world.kill(0).split_off(1_000);
    world.run(Duration::from_millis(100));
    world.start(0, saved.clone());
    world.until("the sweep begins", |world| world.count_at(0) < MANY as usize);
    assert!(world.count_at(0) > saved.len());
    world.kill(0);
    saved.truncate(2_000);
    world.run(Duration::from_millis(50));
    world.start(0, saved);
    world.run(Duration::from_secs(2));
    assert_eq!(world.count_at(0), 2_000);
    world.settle();
}

/// A gateway that comes back while it is being forgotten because it was lost for too long keeps the rest, and tells what is lacking.
#[test]
fn a_gateway_that_comes_back_while_it_is_forgotten_keeps_the_rest() {
    let mut world = World::full(Policy::Open);
    let saved = world.kill(0);
    world.run(Duration::from_secs(29));
    world.until_half_swept(MANY as usize);
    world.start(0, saved);
    world.run(Duration::from_secs(1));
    let kept = |note: &Note| matches!(note, Note::Forgotten(_, removed) if *removed < MANY / 2);
    assert!(world.notes.iter().any(kept), "{:?}", world.notes);
    assert!(world.notes.contains(&Note::InSync(World::sc(0), MANY, 0)), "{:?}", world.notes);
    assert_eq!(world.count_at(0), MANY as usize);
    world.settle();
}

/// One that an operator said is dead begins with nothing but what it tells, and is not forgotten with the life before.
#[test]
fn who_comes_by_the_name_of_a_dead_gateway_is_another_one() {
    let mut world = World::full(Policy::Open);
    let saved = world.kill(0);
    world.run(Duration::from_secs(2));
    world.step_central(0, central::Event::Forget(World::sc(0)));
    world.until_half_swept(MANY as usize);
    world.start(0, saved);
    world.until("it is back", |world| world.notes.contains(&Note::Joined(World::sc(0))));
    // It says no more for a moment, in which the sweep comes to its end.
    world.gateways[0].paused = true;
    world.run(Duration::from_millis(100));
    let view = world.central().nodes().next().expect("the newcomer");
    assert_eq!((view.sc, view.reach, view.told, view.calls), (World::sc(0), central::Reach::Syncing, false, 0));
    assert!(world.notes.contains(&Note::Forgotten(World::sc(0), MANY)), "{:?}", world.notes);
    world.gateways[0].paused = false;
    world.run(Duration::from_secs(1));
    assert_eq!(world.count_at(0), MANY as usize);
    world.settle();
}

/// R41: of those that a policy keeps none goes, however often they are looked at, until the last time for it.
#[test]
fn calls_that_are_kept_are_looked_at_in_slices_too() {
    let mut world = World::full(Policy::HoldLast);
    let before = world.count_at(0);
    world.kill(0);
    world.run(Duration::from_secs(40));
    assert_eq!(world.count_at(0), before);
    world.run(Duration::from_secs(559));
    assert_eq!(world.count_at(0), before);
    world.run(Duration::from_secs(3));
    assert_eq!((world.count_at(0), world.central().nodes().count()), (0, 1));
}
