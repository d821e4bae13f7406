//! Hellos that are refused, however many there are: nobody else notices (R35, R38).

use super::super::central::Note;
use super::super::message::{Header, Refusal};
use super::*;

impl World {
    /// A hello of this node by a new connection, and what becomes of the connection: whether it was refused, and then closed.
    fn hello(&mut self, link: u64, sc: ScId, version: u16, fingerprint: u64) -> (bool, bool) {
        let (now, link) = (self.now, LinkId(1_000_000 + link));
        let central = self.central_mut();
        let message = ToCentral::Hello { version, attempt: 1, fingerprint, highest_epoch: 0, features: 0, rules: 0, cluster: 0 };
        let header = Header { sc, incarnation: 77, ..Header::default() };
        central.step(now, central::Event::LinkUp(link, sc));
        central.step(now, central::Event::Received(link, Framed { header, message }));
        let (mut is_refused, mut is_closed, mut notes) = (false, false, Vec::new());
        while let Some(action) = central.poll() {
            match action {
                central::Action::Send(to, Framed { message: ToNode::Refused { .. }, .. }) if to == link => is_refused = true,
                central::Action::Close(closed) if closed == link => is_closed = is_refused,
                central::Action::Note(note) => notes.push(note),
                _ => {}
            }
        }
        self.notes.extend(notes);
        (is_refused, is_closed)
    }
}

#[test]
fn a_refused_hello_leaves_no_connection_behind() {
    let mut world = World::new(1, 2, 10, Policy::Open);
    let fingerprint = world.tree.fingerprint();
    world.notes.clear();
    for number in 0..10_000 {
        let sc = ScId(1 + number as u32 % 40);
        let (version, fingerprint) = if number % 2 == 0 { (9, fingerprint) } else { (1, 4711) };
        assert_eq!(world.hello(number, sc, version, fingerprint), (true, true), "hello {number}");
    }
    assert_eq!((world.central().links(), world.central().counts().refused), (2, 10_000));
    assert!(world.all_in_sync(), "those that have a session keep it");
    // Each node is spoken of once for each reason, not for each hello.
    assert!(world.notes.len() <= 80, "{} notes", world.notes.len());
    assert!(world.notes.contains(&Note::Refused(ScId(40), Refusal::Configuration)), "{:?}", world.notes);
    world.run(Duration::from_secs(2));
    assert!(world.all_in_sync());
}

/// R35: of many that say they are one node the last waits, and the others have no connection any more; then it has none either.
#[test]
fn of_newcomers_with_one_name_one_at_a_time_waits() {
    let mut world = World::new(2, 2, 10, Policy::Open);
    let fingerprint = world.tree.fingerprint();
    for number in 0..1_000 {
        assert_eq!(world.hello(number, World::sc(0), 1, fingerprint), (false, false));
        assert!(world.central().links() <= 3);
    }
    // It says hello again by its own connection, and goes on waiting.
    assert_eq!(world.hello(999, World::sc(0), 1, fingerprint), (false, false));
    assert_eq!((world.central().links(), world.central().counts().refused), (3, 999));
    world.run(Duration::from_secs(2));
    assert_eq!((world.central().links(), world.central().counts().refused), (2, 1_000));
    assert!(world.all_in_sync());
}

/// A node with a session that says hello again, with other scopes, has no session any more; its calls count on.
#[test]
fn a_refused_hello_ends_the_session_of_its_connection() {
    let mut world = World::new(3, 2, 10, Policy::Open);
    let fingerprint = world.tree.fingerprint();
    assert_eq!(world.hello(7, ScId(9), 1, fingerprint), (false, false));
    assert_eq!(world.central().links(), 3);
    assert_eq!(world.hello(7, ScId(9), 1, 4711), (true, true));
    assert_eq!(world.central().links(), 2);
    assert_eq!(world.notes.last(), Some(&Note::Orphaned(ScId(9))));
}
