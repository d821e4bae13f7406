//! Gateways of the first minor version among others: nobody is told what it does not know, and all counts are right (R43, I17).

use super::super::message::LOAD_MAX;
use super::*;

/// What an end of the first minor version would have sent, or understood: fields it does not know are not there.
pub(super) fn aged(packet: Packet) -> Packet {
    match packet {
        Packet::ToCentral(place, side, link, mut framed) => {
            match &mut framed.message {
                ToCentral::Hello { rules, cluster, .. } => (*rules, *cluster) = (0, 0),
                ToCentral::Heartbeat { rules } => *rules = 0,
                _ => {}
            }
            Packet::ToCentral(place, side, link, framed)
        }
        Packet::ToNode(place, side, link, mut framed) => {
            match &mut framed.message {
                ToNode::Welcome { cluster, features, .. } => (*cluster, *features) = (0, 0),
                ToNode::Heartbeat { load } => *load = 0,
                ToNode::ReportAck { gap, .. } => *gap = 0,
                ToNode::Lead { .. } | ToNode::Reply { answer: Answer::Busy, .. } => panic!("it does not know {:?}", framed.message),
                _ => {}
            }
            Packet::ToNode(place, side, link, framed)
        }
        other => other,
    }
}

/// "Busy" is "learning" to one that does not know the word: its rule of being alone decides at once too.
#[test]
fn an_old_gateway_is_told_in_its_words_that_the_central_node_is_busy() {
    let mut world = World::kind(1, Kind { old: 1, ..Kind::PLAIN }, (2, 1), 10, Policy::Open, true);
    world.central_mut().set_load(LOAD_MAX);
    let charge = world.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Normal, 80));
    for place in 0..2 {
        let guid = world.guid(place);
        world.ask(place, guid, Leg::Ingress, charge);
    }
    world.run(Duration::from_millis(5));
    assert_eq!((world.decided.get("local"), world.central().counts().busy), (Some(&2), 2));
    let admissions: Vec<_> = world.gateways.iter().filter_map(|gateway| gateway.node.as_ref()).flat_map(World::told).collect();
    assert_eq!(admissions.iter().map(|told| told.admission).collect::<Vec<_>>(), [Admission::Learning, Admission::Deadline]);
    world.settle();
}

/// I17, I4: a central node of the version before floors gives all places to others, so a gateway that was welcomed by one has no floor.
#[test]
fn where_the_central_node_keeps_no_floors_nobody_has_one() {
    for (old, up) in [(2, 0), (0, 1)] {
        let mut world = World::kind(4, Kind { old, ..Kind::PLAIN }, (2, 1), 10, Policy::HoldLast, true);
        let charge = world.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Normal, 80));
        world.kill_central();
        world.run(Duration::from_secs(1));
        for _ in 0..3 {
            let guid = world.guid(1);
            world.ask(1, guid, Leg::Ingress, charge);
        }
        assert_eq!(world.live(), up);
    }
}
