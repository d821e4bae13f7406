//! What is told of parts that differ is bounded, whatever there is in them.

use super::super::central::Note;
use super::super::ledger::bucket_of;
use super::super::message::Header;
use super::*;

/// R30, R33: what differs is told in messages of bounded length, however many calls there are in one part, and in rounds of bounded
/// length, however many parts differ.
#[test]
fn much_that_differs_is_mended_in_pages() {
    let mut world = World::new(15, 1, 20_000, Policy::Open);
    let charge = world.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Normal, 80));
    let mut in_part = 0;
    // Twelve hundred calls in one part, and some nine thousand in all the others.
    while in_part < 1_200 {
        let guid = world.guid(0);
        let key = Key { sc: World::sc(0), guid, leg: Leg::Ingress };
        in_part += u32::from(bucket_of(&key) == 7);
        if bucket_of(&key) == 7 || guid.number.is_multiple_of(32) {
            world.ask(0, guid, Leg::Ingress, charge);
        }
        if guid.number.is_multiple_of(1_024) {
            world.run(Duration::from_millis(2));
        }
    }
    world.run(Duration::from_secs(1));
    let (up, now) = (world.central().authority().ledger().len(), world.now);
    assert!(up > 10_000 && world.in_use(Amount::Calls) as usize == up, "{up}");
    // A fault in memory at the centre: in each part one call too few, and one too many.
    for bucket in 0..=255 {
        let ledger = world.central().authority().ledger();
        let lost = *ledger.of_bucket(World::sc(0), bucket).nth(3).expect("a call").0;
        let number = (1 << 40..).find(|&number| bucket_of(&Key { guid: Guid { number, ..lost.guid }, ..lost }) == bucket);
        let ghost = Key { guid: Guid { number: number.expect("a number"), ..lost.guid }, leg: Leg::Egress, ..lost };
        world.central_mut().disturb(now, &lost, ghost, charge);
    }
    world.notes.clear();
    world.run(Duration::from_secs(6));
    world.compare();
    let mended = |note: &&Note| matches!(note, Note::Mended(..));
    assert!(world.notes.iter().filter(mended).count() >= 256, "{} notes", world.notes.len());
}

/// R38: where the central node goes on having other calls, whatever it is told, both ends do not compare without end.
#[test]
fn what_cannot_be_mended_is_told_again_after_a_while() {
    let mut world = World::new(16, 1, 100, Policy::Open);
    world.run(Duration::from_secs(1));
    let view = world.central().nodes().next().expect("the gateway");
    let header = Header { sc: view.sc, incarnation: view.incarnation, epoch: world.central().epoch(), session: view.session, number: 0 };
    let compared = |world: &World| {
        let is_compare = |packet: &&Packet| matches!(packet, Packet::ToCentral(_, _, _, Framed { message: ToCentral::Compare(_), .. }));
        world.packets.values().filter(is_compare).count()
    };
    // Ten thousand calls, of which one round tells some.
    let charge = world.tree.charge(ScopeId(1), None, Charge::new(Direction::Inbound, Class::Emergency, 80));
    for _ in 0..20 {
        for _ in 0..500 {
            let guid = world.guid(0);
            world.ask(0, guid, Leg::Ingress, charge);
        }
        world.run(Duration::from_millis(20));
    }
    let before = compared(&world);
    for number in 0..100 {
        let header = Header { number: 1_000_000 + number, ..header };
        let message = ToNode::Differ((0..=255).collect());
        world.step_node(0, node::Event::Received(Side(0), Framed { header, message }));
    }
    assert_eq!(compared(&world) - before, 1, "once at once");
}
