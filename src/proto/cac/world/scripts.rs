//! One story at a time: what operators would try first.

use super::super::central::Note;
use super::super::message::{Header, Refusal};
use super::*;

const SECOND: Duration = Duration::from_secs(1);

impl World {
    fn charge(&self, class: Class) -> Charge {
        self.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, class, 80))
    }

    /// So many calls at `place` that stay up.
    fn calls(&mut self, place: usize, count: u32) -> Vec<Guid> {
        let charge = self.charge(Class::Normal);
        let guids: Vec<Guid> = (0..count).map(|_| self.guid(place)).collect();
        guids.iter().for_each(|&guid| self.ask(place, guid, Leg::Ingress, charge));
        guids
    }

    fn counted(&self) -> u32 {
        self.offices[self.place()].machine.as_ref().map_or(0, |central| central.authority().ledger().used(POOL).get(Amount::Calls))
    }

    fn decided(&self, what: &str) -> u64 {
        self.decided.get(what).copied().unwrap_or(0)
    }

    fn up(&self, place: usize) -> usize {
        self.gateways[place].node.as_ref().map_or(0, |node| node.calls().ledger().len())
    }
}

/// Must hold 1: forty at once at three gateways, ten get in, and nobody was admitted without the authority.
#[test]
fn ten_places_are_given_ten_times() {
    for seed in 0..20 {
        let mut world = World::new(seed, 3, 10, Policy::Open);
        world.weather.late = if seed % 2 == 0 { 0 } else { 300_000 };
        (0..40).for_each(|call| drop(world.calls(call % 3, 1)));
        world.run(SECOND);
        let total = world.decided("granted") + world.decided("local") + world.decided("refused");
        assert_eq!(total, 40, "seed {seed}");
        assert!(world.decided("granted") <= 10);
        if world.weather.late == 0 {
            assert_eq!((world.decided("granted"), world.decided("local"), world.decided("refused")), (10, 0, 30));
        }
        world.settle();
    }
}

/// Must hold 2, R9: a gateway is gone; 30 s later the others have its places.
#[test]
fn the_places_of_a_dead_gateway_are_free_after_thirty_seconds() {
    let mut world = World::new(1, 2, 500, Policy::Open);
    world.calls(0, 500);
    world.run(SECOND);
    assert_eq!(world.counted(), 500);
    world.kill(0);
    world.run(29 * SECOND);
    world.calls(1, 1);
    world.run(SECOND / 2);
    assert_eq!((world.counted(), world.decided("refused")), (500, 1));
    world.run(2 * SECOND);
    assert_eq!(world.counted(), 0);
    world.calls(1, 3);
    world.run(SECOND);
    assert_eq!(world.counted(), 3);
    assert!(world.notes.contains(&Note::Forgotten(World::sc(0), 500)), "{:?}", world.notes);
}

/// Must hold 2, R10, R12: it is back before; its calls are free when its sync is complete, not before.
#[test]
fn a_restarted_gateway_frees_its_old_calls_when_it_has_told_all() {
    for (percent, kept) in [(0, 0), (90, 450), (100, 500)] {
        let mut world = World::new(2, 2, 500, Policy::Open);
        world.calls_last = Duration::from_secs(3600);
        world.calls(0, 500);
        world.run(SECOND);
        let mut saved = world.kill(0);
        saved.truncate(500 * percent / 100);
        world.run(10 * SECOND);
        assert_eq!(world.counted(), 500, "{percent} %");
        world.start(0, saved);
        world.run(SECOND);
        assert_eq!((world.counted(), world.up(0)), (kept, kept as usize), "{percent} %");
        world.compare();
    }
}

/// Must hold 2: the link is cut for 10 s, the process lives: nothing is lost, nothing counted twice.
#[test]
fn a_cut_link_loses_nothing_and_counts_nothing_twice() {
    let mut world = World::new(3, 2, 100, Policy::Open);
    let calls = world.calls(0, 50);
    world.run(SECOND);
    world.gateways[0].cut = true;
    world.run(5 * SECOND);
    world.calls(0, 20);
    calls.iter().take(10).for_each(|&guid| world.step_node(0, node::Event::End(guid, Leg::Ingress)));
    world.run(5 * SECOND);
    assert_eq!((world.counted(), world.up(0), world.decided("local")), (50, 60, 20));
    world.gateways[0].cut = false;
    world.run(5 * SECOND);
    assert_eq!(world.counted(), 60);
    world.compare();
}

/// Must hold 3, R13: without the central node all are taken, and counted afterwards.
#[test]
fn without_the_central_node_all_calls_are_taken_and_counted_later() {
    let mut world = World::new(4, 3, 10, Policy::Open);
    world.calls(0, 10);
    world.run(SECOND);
    world.kill_central();
    world.run(SECOND);
    (0..3).for_each(|place| drop(world.calls(place, 20)));
    world.run(60 * SECOND);
    assert_eq!((world.decided("local"), world.decided("refused")), (60, 0));
    world.start_central();
    world.run(10 * SECOND);
    assert_eq!(world.counted(), 70);
    world.compare();
    // No call is cut, and no new one taken, until there is room again (R21).
    world.calls(1, 1);
    world.run(SECOND);
    assert_eq!((world.counted(), world.decided("refused")), (70, 1));
}

/// Must hold 3, R40, R41: under hold-last what ends may be replaced, and no more; one that had nothing has its floor.
#[test]
fn under_hold_last_a_lone_gateway_replaces_its_calls_one_for_one() {
    let mut world = World::new(5, 3, 10, Policy::HoldLast);
    let calls = world.calls(0, 4);
    world.calls(1, 6);
    world.run(SECOND);
    // The last place is the floor of the third.
    assert_eq!((world.up(0), world.up(1), world.decided("refused")), (4, 5, 1));
    let why = world.central().denials().last().map(|refused| refused.denial.cause);
    assert_eq!(why, Some(super::super::Cause::Reserved));
    world.gateways[0].cut = true;
    world.run(60 * SECOND);
    world.calls(0, 2);
    assert_eq!(world.decided("refused"), 3);
    calls.iter().take(3).for_each(|&guid| world.step_node(0, node::Event::End(guid, Leg::Ingress)));
    world.calls(0, 5);
    assert_eq!((world.up(0), world.decided("local")), (4, 3));
    // The others get nothing of it, however long it is away.
    world.calls(2, 3);
    world.run(SECOND);
    assert_eq!((world.live(), world.up(2)), (10, 1));
    // But for ten minutes at most.
    world.run(600 * SECOND);
    assert_eq!(world.counted(), 6);
}

/// R41: all are cut off, and each takes its floor where it had nothing; together they never have more than the limit.
#[test]
fn a_gateway_that_had_no_call_has_its_floor() {
    let mut world = World::new(6, 3, 300, Policy::HoldLast);
    world.calls(0, 400);
    world.run(SECOND);
    // Three each are kept for the other two.
    assert_eq!(world.up(0), 294);
    world.kill_central();
    world.run(SECOND);
    (1..3).for_each(|place| drop(world.calls(place, 50)));
    assert_eq!((world.up(1), world.up(2), world.live()), (3, 3, 300));
    // One that begins a new life meanwhile has nothing but its floor.
    world.kill(0);
    world.start(0, Vec::new());
    world.run(SECOND);
    world.calls(0, 50);
    assert_eq!(world.up(0), 3);
    world.settle();
    assert_eq!(world.counted(), 9);
}

/// R41: what is held is held in every amount that is limited, not in calls alone.
#[test]
fn under_hold_last_no_limit_of_a_scope_is_passed() {
    let mut world = World::new(7, 2, 100, Policy::HoldLast);
    let limits = Limits { inbound: 10, kbits: 4_000, ..Limits::of_calls(100) };
    world.limits[0] = limits;
    world.central_mut().set_limits(vec![limits]);
    (0..2).for_each(|place| world.gateways[place].node.as_mut().unwrap().set_limits(vec![limits]));
    let charge = |world: &World, direction, kbits| world.tree.charge(ScopeId(1), None, Charge::new(direction, Class::Normal, kbits));
    let begin = |world: &mut World, direction, kbits| {
        let (guid, charge) = (world.guid(0), charge(world, direction, kbits));
        world.ask(0, guid, Leg::Ingress, charge);
        guid
    };
    let out: Vec<Guid> = (0..20).map(|_| begin(&mut world, Direction::Outbound, 80)).collect();
    for _ in 0..3 {
        begin(&mut world, Direction::Inbound, 80);
    }
    world.run(SECOND);
    assert_eq!(world.up(0), 23);
    world.kill_central();
    world.run(SECOND);
    out.iter().take(10).for_each(|&guid| world.step_node(0, node::Event::End(guid, Leg::Ingress)));
    // There are ten places free, but none for calls from the trunk, and bandwidth for eight at a hundred.
    begin(&mut world, Direction::Inbound, 80);
    for _ in 0..10 {
        begin(&mut world, Direction::Outbound, 100);
    }
    assert_eq!((world.up(0), world.decided("refused")), (21, 3));
    // What needs no more may change.
    let changed = world.decided("changed");
    let less = charge(&world, Direction::Outbound, 64);
    world.step_node(0, node::Event::Change(out[15], Leg::Ingress, less));
    assert_eq!(world.decided("changed"), changed + 1);
    let told = world.gateways[0].node.as_ref().unwrap().calls().ledger().used(POOL).get(Amount::Kbits);
    assert_eq!(told, 21 * 80 + 8 * 20 - 16);
}

impl World {
    /// Other limits at both ends.
    fn set_limits(&mut self, limits: Limits) {
        self.limits[0] = limits;
        self.central_mut().set_limits(vec![limits]);
        self.set_limits_of_gateways(limits);
    }

    fn set_limits_of_gateways(&mut self, limits: Limits) {
        let nodes = self.gateways.iter_mut().filter_map(|gateway| gateway.node.as_mut());
        nodes.for_each(|node| node.set_limits(vec![limits]));
    }

    fn begin(&mut self, place: usize, direction: Direction, class: Class, count: usize) -> Vec<Guid> {
        let charge = self.tree.charge(ScopeId(1), None, Charge::new(direction, class, 80));
        let guids: Vec<Guid> = (0..count).map(|_| self.guid(place)).collect();
        guids.iter().for_each(|&guid| self.ask(place, guid, Leg::Ingress, charge));
        self.run(SECOND);
        guids
    }

    fn end(&mut self, place: usize, guids: &[Guid]) {
        guids.iter().for_each(|&guid| self.step_node(place, node::Event::End(guid, Leg::Ingress)));
    }
}

/// R41, I4: a normal call does not come in the place of a priority call in its head room.
#[test]
fn under_hold_last_the_head_room_of_priority_calls_stays_theirs() {
    let mut world = World::new(24, 2, 10, Policy::HoldLast);
    world.begin(1, Direction::Inbound, Class::Normal, 1);
    world.begin(0, Direction::Inbound, Class::Normal, 9);
    let priority = world.begin(0, Direction::Inbound, Class::Priority, 1);
    assert_eq!((world.up(0), world.up(1)), (10, 1));
    world.gateways[0].cut = true;
    world.run(SECOND);
    world.end(0, &priority);
    world.begin(0, Direction::Inbound, Class::Normal, 1);
    assert_eq!((world.up(0), world.decided("refused")), (9, 1));
    world.begin(0, Direction::Inbound, Class::Priority, 1);
    assert_eq!(world.up(0), 10);
}

/// R19, R41: places reserved for one direction stay free of the other.
#[test]
fn under_hold_last_reserved_places_stay_reserved() {
    let mut world = World::new(25, 2, 10, Policy::HoldLast);
    world.set_limits(Limits { reserved_outbound: 4, ..Limits::of_calls(10) });
    let out = world.begin(0, Direction::Outbound, Class::Normal, 3);
    world.begin(0, Direction::Inbound, Class::Normal, 3);
    world.begin(1, Direction::Inbound, Class::Normal, 4);
    assert_eq!((world.in_use(Amount::Inbound), world.decided("refused")), (6, 1));
    world.gateways[0].cut = true;
    world.run(SECOND);
    world.end(0, &out);
    world.begin(0, Direction::Inbound, Class::Normal, 3);
    assert_eq!((world.in_use(Amount::Inbound), world.decided("refused")), (6, 4));
    world.begin(0, Direction::Outbound, Class::Normal, 4);
    assert_eq!(world.up(0), 6);
}

/// R21: a limit that is lowered while a gateway is cut off holds there too.
#[test]
fn under_hold_last_a_lowered_limit_is_not_filled_up_again() {
    let mut world = World::new(26, 2, 100, Policy::HoldLast);
    let calls = world.begin(0, Direction::Inbound, Class::Normal, 60);
    world.gateways[0].cut = true;
    world.run(SECOND);
    world.set_limits_of_gateways(Limits::of_calls(50));
    world.end(0, &calls[..15]);
    world.begin(0, Direction::Inbound, Class::Normal, 20);
    assert_eq!(world.up(0), 50);
}

/// R41: a gateway whose file lets it take more alone than the central node keeps for it is told of.
#[test]
fn a_gateway_with_other_rules_for_being_alone_is_told_of() {
    let mut world = World::new(8, 2, 10, Policy::HoldLast);
    assert!(!world.notes.iter().any(|note| matches!(note, Note::OtherRules(_))), "{:?}", world.notes);
    world.gateways[1].node.as_mut().unwrap().set_limits(vec![Limits::of_calls(1_000)]);
    world.unlink_all(1);
    world.run(2 * SECOND);
    assert!(world.notes.contains(&Note::OtherRules(World::sc(1))), "{:?}", world.notes);
}

/// R21, R41: a reload changes one end after the other; when the second one does not come, operators are told, once.
#[test]
fn limits_that_are_reloaded_at_one_end_only_are_told_of() {
    let mut world = World::new(27, 2, 10, Policy::HoldLast);
    let told = |world: &World| world.notes.iter().filter(|note| matches!(note, Note::OtherRules(_))).count();
    let limits = Limits::of_calls(20);
    world.limits[0] = limits;
    world.central_mut().set_limits(vec![limits]);
    world.run(2 * SECOND);
    world.set_limits_of_gateways(limits);
    world.run(20 * SECOND);
    assert_eq!(told(&world), 0, "{:?}", world.notes);
    world.central_mut().set_limits(vec![Limits::of_calls(30)]);
    world.run(20 * SECOND);
    assert_eq!(told(&world), 2, "{:?}", world.notes);
}

/// R41: for a gateway that is not among the nodes nothing is kept, and operators are told.
#[test]
fn a_gateway_that_is_not_listed_has_no_floor() {
    let mut world = World::new(28, 2, 10, Policy::HoldLast);
    let (stranger, tree) = (ScId(9), world.tree.clone());
    let settings = node::Settings { nodes: (0..2).map(World::sc).collect(), ..node::Settings::new(stranger, 1) };
    let mut node = Node::new(world.now, settings, tree, world.limits.clone(), vec![Policy::HoldLast; 3]);
    let guid = Guid { sc: 9, incarnation: 1, number: 1 };
    node.step(world.now, node::Event::Ask(guid, Leg::Ingress, world.charge(Class::Normal)));
    let decided = std::iter::from_fn(|| node.poll()).find_map(|action| match action {
        node::Action::Decided(_, _, decision) => Some(decision),
        _ => None,
    });
    assert!(matches!(decided, Some(Decision::Refused(_))), "{decided:?}");
    let link = LinkId(900);
    world.step_central(0, central::Event::LinkUp(link, stranger));
    let fingerprint = world_fingerprint();
    let message = ToCentral::Hello { version: 1, attempt: 1, fingerprint, highest_epoch: 0, features: 0, rules: 0, cluster: 0 };
    world.step_central(0, central::Event::Received(link, Framed { header: Header::default(), message }));
    assert!(world.notes.contains(&Note::Unlisted(stranger)), "{:?}", world.notes);
}

/// R40: an equal part, or none.
#[test]
fn share_and_closed_take_their_part_and_nothing() {
    for (policy, taken) in [(Policy::Share, 3), (Policy::Closed, 0)] {
        let mut world = World::new(6, 3, 10, policy);
        world.kill_central();
        world.run(SECOND);
        world.strict = true;
        (0..3).for_each(|place| drop(world.calls(place, 10)));
        world.run(SECOND);
        assert_eq!((0..3).map(|place| world.up(place)).collect::<Vec<_>>(), [taken; 3], "{policy:?}");
        world.settle();
    }
}

/// I11: emergency calls pass, with and without the authority, and are counted.
#[test]
fn emergency_calls_pass_whatever_happens() {
    let mut world = World::new(7, 2, 0, Policy::Closed);
    let emergency = world.charge(Class::Emergency);
    let call = |world: &mut World| {
        let guid = world.guid(0);
        world.ask(0, guid, Leg::Egress, emergency);
        world.run(SECOND);
    };
    call(&mut world);
    world.gateways[0].cut = true;
    world.run(2 * SECOND);
    call(&mut world);
    world.gateways[0].cut = false;
    world.run(5 * SECOND);
    assert_eq!((world.decided("local"), world.counted()), (2, 2));
    world.compare();
}

/// R39, I10: the central node stands still; a call waits for a quarter of a second.
#[test]
fn no_call_waits_for_a_central_node_that_stands_still() {
    let mut world = World::new(8, 2, 100, Policy::Open);
    world.offices[0].paused = true;
    world.calls(0, 5);
    world.run(Duration::from_millis(249));
    assert_eq!(world.decided("local"), 0);
    world.run(Duration::from_millis(1));
    assert_eq!(world.decided("local"), 5);
    world.run(Duration::from_secs(4));
    world.settle();
    assert_eq!(world.counted(), 5);
}

/// R5, R27: a call that was refused for want of an answer is not counted when the answer comes after all.
#[test]
fn a_grant_that_comes_too_late_is_given_back() {
    let mut world = World::new(9, 2, 100, Policy::Closed);
    world.offices[0].paused = true;
    world.calls(0, 5);
    world.run(Duration::from_millis(500));
    world.offices[0].paused = false;
    world.run(Duration::from_secs(2));
    assert_eq!((world.decided("refused"), world.counted(), world.up(0)), (5, 0, 0));
    assert!(world.is_calm());
}

impl World {
    fn is_calm(&self) -> bool {
        self.gateways.iter().filter_map(|gateway| gateway.node.as_ref()).all(|node| node.queued().1 == 0)
    }
}

/// R32: a new central node grants nothing before it knows what is up.
#[test]
fn a_new_central_node_learns_before_it_grants() {
    let mut world = World::new(10, 3, 10, Policy::Closed);
    world.calls(0, 6);
    world.calls(1, 4);
    world.run(SECOND);
    world.kill_central();
    world.gateways[1].cut = true;
    world.run(SECOND);
    world.start_central();
    world.run(3 * SECOND);
    assert!(!world.central().is_active());
    world.calls(0, 1);
    world.run(SECOND);
    assert_eq!((world.up(0), world.decided("refused")), (6, 1));
    world.gateways[1].cut = false;
    world.run(5 * SECOND);
    assert!(world.central().is_active());
    assert_eq!(world.counted(), 10);
}

/// R35: a second node of the same name is refused while the first one answers, and takes its place when it does not.
#[test]
fn of_two_nodes_with_one_name_the_living_one_stays() {
    let mut world = World::new(11, 2, 10, Policy::Open);
    world.calls(0, 2);
    world.run(SECOND);
    let twin = LinkId(900);
    let hello = |attempt| {
        let message =
            ToCentral::Hello { version: 1, attempt, fingerprint: world_fingerprint(), highest_epoch: 0, features: 0, rules: 0, cluster: 0 };
        Framed { header: Header { sc: World::sc(0), incarnation: 77, ..Header::default() }, message }
    };
    world.step_central(0, central::Event::LinkUp(twin, World::sc(0)));
    world.step_central(0, central::Event::Received(twin, hello(1)));
    world.run(2 * SECOND);
    assert!(world.notes.contains(&Note::DuplicateId(World::sc(0))), "{:?}", world.notes);
    assert!(world.all_in_sync() && world.counted() == 2);
    world.gateways[0].cut = true;
    world.step_central(0, central::Event::LinkUp(twin, World::sc(0)));
    world.step_central(0, central::Event::Received(twin, hello(2)));
    world.run(Duration::from_millis(900));
    assert_eq!(world.notes.iter().filter(|note| **note == Note::Joined(World::sc(0))).count(), 2);
}

/// R35: the newcomer waits while the old node says goodbye: what is forgotten is the old one, not the session of the new one.
#[test]
fn a_newcomer_takes_the_place_of_a_node_that_ends() {
    let mut world = World::new(13, 2, 10, Policy::Open);
    world.calls(0, 2);
    world.run(SECOND);
    let (twin, sc) = (LinkId(900), World::sc(0));
    let message =
        ToCentral::Hello { version: 1, attempt: 1, fingerprint: world_fingerprint(), highest_epoch: 0, features: 0, rules: 0, cluster: 0 };
    let hello = Framed { header: Header { sc, incarnation: 77, ..Header::default() }, message };
    world.step_central(0, central::Event::LinkUp(twin, sc));
    world.step_central(0, central::Event::Received(twin, hello));
    world.notes.clear();
    world.step_node(0, node::Event::Leave);
    world.run(SECOND / 100);
    assert_eq!(world.notes, [Note::Orphaned(sc), Note::Forgotten(sc, 2), Note::Joined(sc)]);
    let view = world.central().nodes().find(|view| view.sc == sc).expect("the newcomer");
    assert_eq!((view.reach, view.incarnation, view.calls), (central::Reach::Syncing, 77, 0));
}

fn world_fingerprint() -> u64 {
    World::new(0, 1, 1, Policy::Open).tree.fingerprint()
}

/// Nodes that count in other scopes, or speak a version far away, get no session.
#[test]
fn a_node_with_another_configuration_is_refused() {
    let mut world = World::new(12, 1, 10, Policy::Open);
    let link = LinkId(900);
    for (version, fingerprint, why) in [(1, 4711, Refusal::Configuration), (9, world_fingerprint(), Refusal::Version)] {
        world.step_central(0, central::Event::LinkUp(link, ScId(50)));
        let message = ToCentral::Hello { version, attempt: 1, fingerprint, highest_epoch: 0, features: 0, rules: 0, cluster: 0 };
        world.step_central(0, central::Event::Received(link, Framed { header: Header::default(), message }));
        assert_eq!(world.notes.last(), Some(&Note::Refused(ScId(50), why)));
    }
    assert_eq!(world.central().missing(), 0);
}

/// I12, R30: a sync that is cut in half removes nothing; calls that come in it are not removed by it.
#[test]
fn a_sync_that_is_cut_removes_nothing() {
    let mut gaps = 0;
    for seed in 13..21 {
        let mut world = World::new(seed, 2, 5_000, Policy::Open);
        world.calls_last = Duration::from_secs(3600);
        world.calls(0, 600);
        world.run(5 * SECOND);
        assert_eq!(world.counted(), 600);
        let saved = world.kill(0);
        world.run(SECOND);
        // Some chunks come, others do not; the end often does.
        world.weather.lost = 250_000;
        world.start(0, saved);
        for _ in 0..40 {
            world.run(Duration::from_millis(100));
            assert!(world.counted() >= 600, "seed {seed}: {}", world.counted());
        }
        gaps += world.notes.iter().filter(|note| matches!(note, Note::SyncIncomplete(_))).count();
        world.settle();
        assert_eq!(world.counted(), 600);
    }
    assert!(gaps > 0, "every sync came whole, or its end did not come");
}

/// I13, R25: what comes from an old session, or a second time, changes nothing.
#[test]
fn messages_of_an_old_session_change_nothing() {
    let mut world = World::new(14, 2, 10, Policy::Open);
    let calls = world.calls(0, 3);
    world.run(SECOND);
    let link = world.gateways[0].links[0].expect("a link");
    let before = world.central().counts();
    let release = |header: Header| {
        let report = super::super::message::Report::Release(calls[0], Leg::Ingress);
        Framed { header, message: ToCentral::Report { number: 1, report } }
    };
    for header in [
        Header { epoch: 1, session: 99, number: 1_000, ..Header::default() },
        Header { epoch: 7, session: 1, number: 1_000, ..Header::default() },
        Header { epoch: 1, session: 1, number: 1, ..Header::default() },
    ] {
        world.step_central(0, central::Event::Received(link, release(header)));
    }
    world.step_central(
        0,
        central::Event::Received(LinkId(12_345), release(Header { epoch: 1, session: 1, number: 9_999, ..Header::default() })),
    );
    assert_eq!(world.counted(), 3);
    assert_eq!(world.central().counts().stale, before.stale + 4);
}

/// R33, I2: a call that one end lost track of is found by comparing.
#[test]
fn what_differs_is_found_and_mended() {
    let mut world = World::new(15, 2, 100, Policy::Open);
    world.calls(0, 20);
    world.run(SECOND);
    // A fault in memory at the centre: one call too few, one too many.
    let ghost = Key { sc: World::sc(0), guid: Guid { number: 4711, ..Guid::default() }, leg: Leg::Egress };
    let charge = world.charge(Class::Normal);
    let now = world.now;
    let central = world.central_mut();
    let lost = *central.authority().ledger().iter().next().expect("a call").0;
    central.disturb(now, &lost, ghost, charge);
    world.run(6 * SECOND);
    world.compare();
    assert!(world.notes.contains(&Note::Mended(World::sc(0), 1, 0)) || world.notes.contains(&Note::Mended(World::sc(0), 1, 1)));
}

/// R38, I14: more reports than are kept end the session; the sync of the next one tells all.
#[test]
fn a_queue_that_overflows_ends_the_session_and_loses_nothing() {
    let mut world = World::new(16, 1, 100_000, Policy::Open);
    world.calls_last = Duration::from_secs(3600);
    let calls = world.calls(0, 800);
    world.run(SECOND);
    // Nothing comes through, but the session is not seen to be dead yet.
    world.gateways[0].cut = true;
    calls.iter().take(700).for_each(|&guid| world.step_node(0, node::Event::End(guid, Leg::Ingress)));
    assert!(!world.all_in_sync());
    world.settle();
    assert_eq!(world.counted(), 100);
}

/// I16, R21.
#[test]
fn limits_change_while_calls_are_up() {
    let mut world = World::new(17, 2, 10, Policy::Open);
    let calls = world.calls(0, 10);
    world.run(SECOND);
    let set = |world: &mut World, calls: u32| {
        world.limits = vec![Limits::of_calls(calls)];
        let limits = world.limits.clone();
        world.central_mut().set_limits(limits);
    };
    set(&mut world, 8);
    world.calls(1, 1);
    world.run(SECOND);
    assert_eq!((world.counted(), world.decided("refused")), (10, 1));
    calls.iter().take(3).for_each(|&guid| world.step_node(0, node::Event::End(guid, Leg::Ingress)));
    world.calls(1, 3);
    world.run(SECOND);
    assert_eq!(world.counted(), 8);
    set(&mut world, 12);
    world.calls(1, 9);
    world.run(SECOND);
    assert_eq!(world.counted(), 12);
}

/// R47: a node that is drained gets no new call but emergencies, keeps those it has, and gets calls again afterwards.
#[test]
fn a_drained_node_gets_no_new_calls() {
    let mut world = World::new(18, 2, 10, Policy::Open);
    world.calls(0, 2);
    world.run(SECOND);
    world.step_central(0, central::Event::Drain(World::sc(0), true));
    world.calls(0, 3);
    world.calls(1, 1);
    let (guid, charge) = (world.guid(0), world.charge(Class::Emergency));
    world.ask(0, guid, Leg::Ingress, charge);
    world.run(SECOND);
    assert_eq!((world.up(0), world.up(1), world.decided("refused")), (3, 1, 3));
    let central = world.central();
    assert!(central.nodes().any(|node| node.sc == World::sc(0) && node.drained && node.calls == 3));
    assert_eq!(central.denials().count(), 3);
    world.step_central(0, central::Event::Drain(World::sc(0), false));
    world.calls(0, 1);
    world.run(SECOND);
    assert_eq!(world.up(0), 4);
}

/// R47: dry-run counts what limits would refuse, and refuses nothing.
#[test]
fn a_dry_run_counts_and_refuses_nothing() {
    let mut world = World::new(19, 2, 3, Policy::Open);
    world.central_mut().set_dry_run(true);
    world.calls(0, 5);
    world.run(SECOND);
    let central = world.central();
    assert_eq!((central.counts().denied, world.decided("refused"), world.counted()), (2, 0, 5));
    world.compare();
    world.central_mut().set_dry_run(false);
    world.calls(1, 1);
    world.run(SECOND);
    assert_eq!((world.decided("refused"), world.counted()), (1, 5));
}

/// R47: told to, nodes tell all again, and nothing changes when both ends agreed.
#[test]
fn a_resync_on_order_changes_nothing_that_is_right() {
    let mut world = World::new(20, 2, 100, Policy::Open);
    world.calls(0, 20);
    world.calls(1, 5);
    world.run(SECOND);
    world.notes.clear();
    world.step_central(0, central::Event::Resync(None));
    world.run(SECOND);
    let synced = |place, calls| Note::InSync(World::sc(place), calls, 0);
    assert!(world.notes.contains(&synced(0, 20)) && world.notes.contains(&synced(1, 5)), "{:?}", world.notes);
    world.compare();
}

/// R23: what a call needs less is told and never refused, though the central node says no to all else.
#[test]
fn a_call_that_needs_less_is_told_and_not_asked() {
    let mut world = World::new(21, 1, 1, Policy::Open);
    let guid = world.calls(0, 1)[0];
    world.run(SECOND);
    let less = world.charge(Class::Normal).with_kbits(40);
    world.step_node(0, node::Event::Fact(guid, Leg::Ingress, less));
    world.run(SECOND);
    let used = world.central().authority().ledger().used(POOL);
    assert_eq!(used.get(Amount::Kbits), 40);
    world.compare();
}

/// I10: every change that is asked for is answered, also when its call ends first, is charged otherwise, or is not up.
#[test]
fn every_change_is_answered_once() {
    let mut world = World::new(22, 1, 10, Policy::Open);
    let guids = world.calls(0, 3);
    world.run(SECOND);
    let more = world.charge(Class::Normal).with_kbits(96);
    let change = |world: &mut World, guid| world.step_node(0, node::Event::Change(guid, Leg::Ingress, more));
    guids.iter().for_each(|&guid| change(&mut world, guid));
    world.step_node(0, node::Event::End(guids[0], Leg::Ingress));
    let less = more.with_kbits(40);
    world.step_node(0, node::Event::Fact(guids[1], Leg::Ingress, less));
    assert_eq!(world.decided("changed"), 2);
    world.run(SECOND);
    assert_eq!(world.decided("changed"), 3);
    change(&mut world, guids[0]);
    assert_eq!(world.decided("changed"), 4);
    let used = world.central().authority().ledger().used(POOL);
    assert_eq!(used.get(Amount::Kbits), 40 + 96);
    world.compare();
}

/// GOODBYE: a gateway that ends in an orderly way leaves nothing that counts for half a minute; and one whose central node ends knows at once.
#[test]
fn whoever_ends_says_goodbye() {
    let mut world = World::new(23, 2, 10, Policy::Open);
    world.calls(0, 6);
    world.run(SECOND);
    world.step_node(0, node::Event::Leave);
    world.run(Duration::from_millis(10));
    assert_eq!(world.counted(), 0);
    assert!(world.notes.contains(&Note::Forgotten(World::sc(0), 6)), "{:?}", world.notes);
    world.step_central(0, central::Event::Goodbye);
    world.run(Duration::from_millis(10));
    assert_eq!(world.gateways[1].node.as_ref().map(|node| node.contact().0), Some(false));
    world.settle();
    assert_eq!(world.counted(), 6, "it did not end after all");
}
