//! A central node with too much to do: it refuses early, and gateways decide at once instead of waiting (R38, race 16).

use super::super::message::{Handle, Header, LOAD_MAX, Request};
use super::*;

impl World {
    fn take(&mut self, place: usize, count: u32) {
        let charge = self.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Normal, 80));
        for _ in 0..count {
            let guid = self.guid(place);
            self.ask(place, guid, Leg::Ingress, charge);
        }
        self.run(Duration::from_millis(5));
    }

    fn outcomes(&self) -> [u64; 3] {
        ["granted", "local", "refused"].map(|what| self.decided.get(what).copied().unwrap_or(0))
    }
}

/// The rule of being alone decides in no time; from the next heartbeat on it is not even asked for; and then all is as before.
#[test]
fn a_busy_central_node_keeps_no_call_waiting() {
    for (policy, alone) in [(Policy::Open, [0, 6, 0]), (Policy::HoldLast, [0, 0, 6]), (Policy::Closed, [0, 0, 6])] {
        let mut world = World::new(1, 2, 100, policy);
        world.central_mut().set_load(LOAD_MAX);
        world.take(0, 4);
        assert_eq!(world.central().counts().busy, 4, "{policy:?}");
        world.run(Duration::from_millis(250));
        world.take(0, 2);
        assert_eq!((world.central().counts().busy, world.outcomes()), (4, alone), "{policy:?}");
        assert_eq!(world.gateways[0].node.as_ref().map(|node| node.counts().busy), Some(6));
        world.central_mut().set_load(LOAD_MAX - 1);
        world.run(Duration::from_millis(250));
        world.take(0, 3);
        assert_eq!(world.outcomes()[0], 3, "{policy:?}");
        // What was admitted alone is counted all the same.
        world.settle();
        assert_eq!(world.central().authority().ledger().used(POOL).get(Amount::Calls), 3 + alone[1] as u32);
    }
}

/// What is asked about a call that counts already is answered, and emergencies pass; asked at the central node itself, for a gateway keeps
/// such questions to itself.
#[test]
fn a_busy_central_node_answers_what_it_knows() {
    let mut world = World::new(2, 1, 100, Policy::Closed);
    let normal = world.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Normal, 80));
    let mut emergency = normal;
    emergency.class = Class::Emergency;
    let (known, fresh) = (world.guid(0), world.guid(0));
    world.ask(0, known, Leg::Ingress, normal);
    world.run(Duration::from_millis(5));
    assert_eq!(world.outcomes(), [1, 0, 0]);
    world.central_mut().set_load(LOAD_MAX);
    let mut number = 1_000;
    let mut asked = |guid, leg, charge| {
        number += 1;
        let view = world.central().nodes().next().expect("the gateway");
        let epoch = world.central().epoch();
        let header = Header { sc: view.sc, incarnation: view.incarnation, epoch, session: view.session, number };
        let message = ToCentral::Ask(Request { handle: Handle::default(), guid, leg, charge });
        let link = world.gateways[0].links[0].expect("a link");
        let before = world.central().counts();
        world.step_central(0, central::Event::Received(link, Framed { header, message }));
        let after = world.central().counts();
        (after.granted - before.granted, after.busy - before.busy)
    };
    assert_eq!(asked(known, Leg::Ingress, normal), (1, 0), "a repeat");
    assert_eq!(asked(known, Leg::Egress, emergency), (1, 0), "an emergency");
    assert_eq!(asked(fresh, Leg::Ingress, normal), (0, 1), "a new call");
}

/// R4, I14: where no more requests can wait, those that are too many are decided at once; the others in their time, and late grants are given
/// back.
#[test]
fn requests_beyond_the_table_are_decided_at_once() {
    for (policy, alone) in [(Policy::Open, [0, 12, 0]), (Policy::Closed, [0, 0, 12])] {
        let mut world = World::new(5, 2, 100, policy);
        world.requests_max = 8;
        world.kill(0);
        world.start(0, Vec::new());
        world.run(Duration::from_secs(1));
        world.offices[0].paused = true;
        world.take(0, 20);
        assert_eq!(world.outcomes(), alone, "{policy:?}");
        world.run(Duration::from_millis(250));
        let all = alone.map(|count| if count > 0 { 20 } else { 0 });
        assert_eq!(world.outcomes(), all, "{policy:?}");
        world.settle();
        assert_eq!(world.central().authority().ledger().used(POOL).get(Amount::Calls), all[1] as u32);
    }
}

/// A change is not asked for either: it is decided as if the answer came too late.
#[test]
fn a_busy_central_node_is_not_asked_for_changes() {
    for (policy, kbits) in [(Policy::Open, 160), (Policy::Closed, 80)] {
        let mut world = World::new(3, 1, 100, policy);
        let charge = world.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Normal, 80));
        let guid = world.guid(0);
        world.ask(0, guid, Leg::Ingress, charge);
        world.run(Duration::from_millis(5));
        world.central_mut().set_load(LOAD_MAX);
        world.run(Duration::from_millis(250));
        world.step_node(0, node::Event::Change(guid, Leg::Ingress, charge.with_kbits(160)));
        assert_eq!(world.decided.get("changed"), Some(&1), "{policy:?}: at once");
        world.settle();
        let counts = world.gateways[0].node.as_ref().map(|node| node.counts().busy);
        assert_eq!((counts, world.in_use(Amount::Kbits)), (Some(1), kbits), "{policy:?}");
    }
}

/// A core did not wait for a node that stood still: its call counts, whatever was or will be decided about it, and ends like any other.
#[test]
fn a_call_that_began_without_the_node_counts() {
    let mut world = World::new(4, 1, 1, Policy::Open);
    let charge = world.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Normal, 80));
    world.take(0, 1);
    assert_eq!(world.outcomes(), [1, 0, 0]);
    let [pending, refused] = [world.guid(0), world.guid(0)];
    world.ask(0, refused, Leg::Ingress, charge);
    world.run(Duration::from_millis(5));
    assert_eq!(world.outcomes(), [1, 0, 1]);
    world.ask(0, pending, Leg::Ingress, charge);
    for guid in [pending, refused, refused] {
        // Nobody waits for the decision any more.
        world.gateways[0].asked.remove(&(guid, Leg::Ingress));
        world.step_node(0, node::Event::Alone(guid, Leg::Ingress, charge));
    }
    world.settle();
    let calls = |world: &World| world.central().authority().ledger().used(POOL).get(Amount::Calls);
    assert_eq!((calls(&world), world.outcomes()), (3, [1, 0, 1]));
    for guid in [pending, refused] {
        world.step_node(0, node::Event::End(guid, Leg::Ingress));
    }
    world.settle();
    assert_eq!(calls(&world), 1);
}
