//! A central node with too much to do: it refuses early, and gateways decide at once instead of waiting (R38, race 16).

use super::super::message::LOAD_MAX;
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

/// What is asked about a call that counts already is answered, and emergencies pass.
#[test]
fn a_busy_central_node_answers_what_it_knows() {
    let mut world = World::new(2, 2, 100, Policy::Closed);
    let charge = world.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Emergency, 80));
    world.central_mut().set_load(LOAD_MAX);
    let guid = world.guid(0);
    world.ask(0, guid, Leg::Ingress, charge);
    world.run(Duration::from_millis(5));
    assert_eq!((world.outcomes(), world.central().counts().busy), ([0, 1, 0], 0));
    world.settle();
}
