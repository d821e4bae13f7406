//! Pairs of legs that are asked for together: both begin or none, whatever happens on the way and whoever knows such requests.

use super::*;

impl World {
    /// Both legs of a pair come to a node. The second one's core never gives it up before it is decided.
    pub(super) fn new_pair(&mut self, place: usize, one: (Guid, Leg, Charge)) {
        let (guid, leg, charge) = one;
        let (with, other) = (self.guid(place), if leg == Leg::Ingress { Leg::Egress } else { Leg::Ingress });
        let direction = if other == Leg::Ingress { Direction::Inbound } else { Direction::Outbound };
        let mut with_charge = Charge::new(direction, charge.class, charge.kbits);
        charge.scopes().for_each(|scope| with_charge.add(scope));
        self.gateways[place].asked.insert((guid, leg), self.now);
        self.step_node(place, node::Event::AskBoth(one, (with, other, with_charge)));
        let life = self.gateways[place].incarnation;
        let ends = self.rng.duration(Duration::from_millis(1), self.calls_last * 2);
        self.push(ends, Packet::EndCall(place, life, guid, leg));
        self.push(ends + Duration::from_millis(300), Packet::EndCall(place, life, with, other));
    }

    fn ask_pair(&mut self, place: usize) {
        let charge = self.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Normal, 0));
        let guid = self.guid(place);
        self.calls_last = Duration::from_secs(3600);
        self.new_pair(place, (guid, Leg::Ingress, charge));
    }

    fn calls_up(&self) -> (usize, usize) {
        let here = self.gateways.iter().filter_map(|gateway| gateway.node.as_ref()).map(|node| node.calls().ledger().len()).sum();
        (here, self.central().authority().ledger().len())
    }
}

/// The first pair has room, of the second one leg has: it gets none, and the place goes to somebody else. With a central node of this
/// version and of the one before, and whether one gateway asks or two.
#[test]
fn both_legs_begin_or_none() {
    for (old, with) in [(0, 0), (0, 1), (2, 0), (2, 1)] {
        let mut world = World::kind(5, Kind { old, ..Kind::PLAIN }, (2, 1), 3, Policy::Closed, true);
        world.ask_pair(0);
        world.run(Duration::from_millis(20));
        assert_eq!(world.calls_up(), (2, 2));
        let sent = world.central().counts().granted + world.central().counts().denied;
        world.ask_pair(with);
        world.run(Duration::from_millis(20));
        assert_eq!(world.calls_up(), (2, 2), "{old} {with}");
        assert!(world.central().counts().granted + world.central().counts().denied > sent);
        let guid = world.guid(with);
        let charge = world.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Normal, 0));
        world.ask(with, guid, Leg::Ingress, charge);
        world.run(Duration::from_millis(20));
        assert_eq!(world.calls_up(), (3, 3));
        world.settle();
    }
}

/// One message takes both there, and one answer comes back; a central node that knows no pairs is asked twice.
#[test]
fn a_pair_is_one_message() {
    for (old, messages) in [(0, 1), (1, 2)] {
        let mut world = World::kind(6, Kind { old, ..Kind::PLAIN }, (1, 1), 10, Policy::Open, true);
        let now = world.now;
        let charge = world.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Normal, 0));
        let (one, other) = (world.guid(0), world.guid(0));
        let node = world.gateways[0].node.as_mut().unwrap();
        node.step(now, node::Event::AskBoth((one, Leg::Ingress, charge), (other, Leg::Egress, charge)));
        let sent: Vec<_> = std::iter::from_fn(|| node.poll()).filter(|action| matches!(action, node::Action::Send(..))).collect();
        assert_eq!(sent.len(), messages, "{sent:?}");
    }
}

/// Nobody answers: the rule of being alone lets both in or none, at once and in time; what comes too late is given back, or counts.
#[test]
fn a_pair_is_decided_in_time_without_the_central_node() {
    for (policy, up) in [(Policy::Open, 2), (Policy::Closed, 0)] {
        let mut world = World::kind(7, Kind::PLAIN, (1, 1), 10, policy, true);
        world.offices[0].paused = true;
        world.ask_pair(0);
        world.run(Duration::from_millis(251));
        assert_eq!(world.calls_up().0, up);
        world.offices[0].paused = false;
        world.settle();
        assert_eq!(world.calls_up(), (up, up));
    }
}
