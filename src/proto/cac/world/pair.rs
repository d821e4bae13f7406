//! A pair of central nodes: who leads, what a gateway obeys, and what is counted while that changes (R42, I9).

use super::super::central::Note;
use super::*;

const SECOND: Duration = Duration::from_secs(1);

impl World {
    fn pair(seed: u64, count: usize, limit: u32, policy: Policy) -> World {
        World::of(seed, count, 2, limit, policy, true)
    }

    /// So many calls at `place` that stay up.
    fn stay(&mut self, place: usize, count: u32) {
        let charge = self.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Normal, 80));
        for _ in 0..count {
            let guid = self.guid(place);
            self.ask(place, guid, Leg::Ingress, charge);
        }
        self.run(SECOND / 2);
    }

    fn used(&self, side: usize) -> u32 {
        let machine = self.offices[side].machine.as_ref().expect("a central node");
        machine.authority().ledger().used(POOL).get(Amount::Calls)
    }

    fn active(&self) -> bool {
        self.offices.iter().any(|office| office.machine.as_ref().is_some_and(Central::is_active))
    }

    /// How long it takes until one grants again.
    fn until_active(&mut self) -> Duration {
        let begin = self.now;
        while !self.active() {
            self.run(Duration::from_millis(10));
            assert!(self.now.since(begin) < 60 * SECOND, "nobody leads");
        }
        self.now.since(begin)
    }
}

/// Both are up: one leads, the other has the same calls, and never grants.
#[test]
fn the_standby_has_the_calls_of_the_leader_and_grants_nothing() {
    let mut world = World::pair(1, 3, 10, Policy::Open);
    (0..3).for_each(|place| world.stay(place, 5));
    let leader = world.place();
    assert_eq!((world.used(0), world.used(1)), (10, 10));
    let standby = world.offices[1 - leader].machine.as_ref().expect("a standby");
    assert_eq!((standby.leads(), standby.counts().granted), (false, 0));
    world.compare();
}

/// Must hold 5: the leader is killed; within twice the lease another one has learned and grants, and no place is given twice.
#[test]
fn a_killed_leader_is_followed_within_twice_the_lease() {
    for seed in 0..10 {
        let mut world = World::pair(seed, 3, 10, Policy::Closed);
        (0..3).for_each(|place| world.stay(place, 2));
        world.kill_central();
        world.notes.clear();
        let took = world.until_active();
        assert!(took < 2 * store::LENGTH, "seed {seed}: {took:?}");
        // Warm: nothing was told anew.
        assert!(world.notes.iter().any(|note| matches!(note, Note::Leads(_, 3))), "seed {seed}: {:?}", world.notes);
        let syncs: u64 = world.gateways.iter().filter_map(|gateway| gateway.node.as_ref()).map(|node| node.counts().syncs).sum();
        assert_eq!(syncs, 2 * 3, "seed {seed}");
        (0..3).for_each(|place| world.stay(place, 4));
        assert_eq!((world.live(), world.used(world.place())), (10, 10), "seed {seed}");
        world.settle();
    }
}

/// I9: a leader that stood still grants nothing on a lease that is over, and nobody would listen.
#[test]
fn a_deposed_leader_is_not_obeyed() {
    for seed in 0..10 {
        let mut world = World::pair(seed, 2, 10, Policy::Closed);
        let old = world.place();
        world.stay(0, 3);
        world.offices[old].paused = true;
        // On their way to it when another one leads.
        world.stay(1, 2);
        world.run(2 * store::LENGTH);
        assert_ne!(world.place(), old);
        world.stay(0, 7);
        assert_eq!(world.live(), 10);
        world.offices[old].paused = false;
        world.run(2 * SECOND);
        assert_eq!(world.live(), 10, "seed {seed}");
        assert!(world.notes.contains(&Note::SteppedDown));
        world.settle();
        assert!(!world.offices[old].machine.as_ref().is_some_and(Central::leads));
    }
}

/// I4, R32: a gateway that only the leader reached for longer than the standby remembers it is expected by the standby that leads: it learns
/// as long as it may, and then keeps an equal part of the limit for calls it knows nothing of.
#[test]
fn a_gateway_that_the_standby_forgot_is_kept_its_part() {
    for seed in 0..3 {
        let mut world = World::pair(seed, 3, 12, Policy::Closed);
        let leader = world.place();
        world.gateways[0].apart[1 - leader] = true;
        world.stay(0, 4);
        world.run(40 * SECOND);
        assert_eq!((world.used(leader), world.used(1 - leader)), (4, 0), "seed {seed}");
        world.kill_central();
        world.notes.clear();
        let took = world.until_active();
        assert!(took > 10 * SECOND && world.notes.contains(&Note::Active(1)), "seed {seed}: {took:?}");
        (1..3).for_each(|place| world.stay(place, 8));
        assert_eq!((world.live(), world.used(world.place())), (12, 8), "seed {seed}");
        world.settle();
    }
}

/// The store is away for longer than the lease: nobody leads, gateways go by their policy, and one leads again afterwards. For a
/// third of it nothing happens.
#[test]
fn without_the_store_nobody_leads_for_longer_than_the_lease() {
    let mut world = World::pair(3, 2, 10, Policy::Open);
    world.stay(0, 3);
    world.store.away = true;
    world.run(SECOND);
    world.store.away = false;
    world.run(5 * SECOND);
    assert!(!world.notes.contains(&Note::SteppedDown));
    world.store.away = true;
    world.run(4 * SECOND);
    assert!(!world.active() && world.notes.contains(&Note::SteppedDown));
    world.stay(1, 12);
    assert_eq!(world.decided.get("local"), Some(&12));
    world.store.away = false;
    let took = world.until_active();
    assert!(took < 2 * SECOND, "{took:?}");
    world.settle();
    assert_eq!((world.used(0), world.used(1)), (15, 15));
}

/// A gateway that cannot reach the leader goes by its policy, and the others keep the leader: the pair does not fight over it.
#[test]
fn a_gateway_that_reaches_only_the_standby_goes_on_alone() {
    let mut world = World::pair(4, 2, 10, Policy::HoldLast);
    world.stay(0, 3);
    let leader = world.place();
    world.gateways[0].apart[leader] = true;
    world.run(2 * SECOND);
    world.stay(0, 2);
    assert_eq!((world.place(), world.decided.get("refused")), (leader, Some(&2)));
    world.stay(1, 7);
    assert_eq!(world.live(), 10);
    world.settle();
}

/// A leader that ends in an orderly way is followed at once.
#[test]
fn a_leader_that_resigns_is_followed_at_once() {
    let mut world = World::pair(5, 2, 10, Policy::Closed);
    let leader = world.place();
    world.step_lease(leader, lease::Event::Resign);
    let took = world.until_active();
    assert!(took < SECOND && world.place() != leader, "{took:?}");
    world.settle();
}

/// Two central nodes in the `cs` of a gateway that are no pair, because their `cac.cluster` differ: both lead, and gateways listen to the
/// higher epoch; the other one says why nobody listens to it, and they do not depose each other in turn.
#[test]
fn two_clusters_in_one_list_do_not_depose_each_other() {
    for seed in 0..4 {
        let mut world = World::pair(seed, 2, 10, Policy::Closed);
        (0..2).for_each(|side| world.kill_office(side));
        (world.clusters, world.store.gives) = ([7, 8], store::Gives::Each);
        world.notes.clear();
        (0..2).for_each(|side| world.start_office(side));
        world.run(30 * SECOND);
        let count = |wanted: fn(&Note) -> bool| world.notes.iter().filter(|note| wanted(note)).count();
        assert_eq!(count(|note| matches!(note, Note::Leads(..))), 2, "seed {seed}: {:?}", world.notes);
        assert_eq!(count(|note| matches!(note, Note::SteppedDown | Note::HigherEpoch(_))), 0, "seed {seed}");
        assert!(count(|note| matches!(note, Note::Refused(_, super::super::message::Refusal::OtherCluster))) >= 2);
        (0..2).for_each(|place| world.stay(place, 6));
        assert_eq!((world.live(), world.used(world.place())), (10, 10), "seed {seed}");
    }
}

/// I9: a store that gives the lease to both in the same revision: gateways listen to the one they listened to first, and no place is
/// given twice.
#[test]
fn of_two_leaders_in_one_epoch_the_first_is_listened_to() {
    for seed in 0..4 {
        let mut world = World::pair(seed, 3, 10, Policy::Closed);
        let leader = world.place();
        world.store.gives = store::Gives::Same;
        world.run(5 * SECOND);
        let leads = |side: usize| world.offices[side].machine.as_ref().is_some_and(Central::leads);
        assert!(leads(leader) && leads(1 - leader), "seed {seed}");
        (0..3).for_each(|place| world.stay(place, 6));
        assert_eq!((world.live(), world.used(leader)), (10, 10), "seed {seed}");
        let other = world.offices[1 - leader].machine.as_ref().expect("a central node");
        assert_eq!(other.counts().granted, 0, "seed {seed}");
    }
}

/// R43: a gateway of the first minor version takes no part in copies: it is sent away by the standby, and goes to the one that leads.
#[test]
fn a_gateway_without_copies_is_sent_away_by_the_standby() {
    let mut world = World::pair(6, 1, 10, Policy::Open);
    let standby = 1 - world.place();
    let link = LinkId(900);
    let message = ToCentral::Hello {
        version: 1,
        attempt: 1,
        fingerprint: world.tree.fingerprint(),
        highest_epoch: 0,
        features: 0,
        rules: 0,
        cluster: 0,
    };
    world.step_central(standby, central::Event::LinkUp(link, ScId(50)));
    world.step_central(standby, central::Event::Received(link, Framed { header: Default::default(), message }));
    assert_eq!(world.notes.last(), Some(&Note::Refused(ScId(50), super::super::message::Refusal::NotLeader)));
}

/// What a gateway has on quotas counts at the one that takes over, though the gateway is cut off from both (I3, I4).
#[test]
fn calls_on_quotas_count_after_a_takeover_when_their_gateway_is_cut_off() {
    for seed in 0..4 {
        let mut world = World::kind(seed, Kind::QUOTAS, (3, 2), 100, Policy::HoldLast, true);
        world.run(SECOND);
        for _ in 0..20 {
            world.stay(0, 4);
        }
        let up = world.live();
        assert!(up > 50, "seed {seed}: {up}");
        world.gateways[0].cut = true;
        world.unlink_all(0);
        world.kill_central();
        world.until_active();
        (0..10).for_each(|_| (1..3).for_each(|place| world.stay(place, 6)));
        assert!(world.live() <= 100, "seed {seed}: {} up", world.live());
    }
}
