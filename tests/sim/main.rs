//! Simulations: several real cores, cards, agents and links under one seed. One module per subject.

mod any_of;
mod calls;
mod controller;
mod datagrams;
mod dialogues;
mod events;
mod everywhere;
mod fewest;
mod field_bugs;
mod h248;
mod h248_cores;
mod lines;
mod load_agent;
mod overload;
mod pairs;
mod random;
mod restart;
mod settings;
mod slow_card;
mod stalled;
mod storms;
mod transactions;
mod trunks;

use std::time::Duration;
use tollgate::sim::{Layout, Reply, Setup, World};

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

/// Eight T1s, nothing goes wrong.
fn world(layout: Layout) -> World {
    World::new(Setup::new(layout, 1), |_, _| {})
}

/// Runs a scenario in every layout, and checks that nothing is left undone.
fn each_layout(scenario: impl Fn(&mut World)) {
    for layout in Layout::ALL {
        let mut world = world(layout);
        scenario(&mut world);
        world.run_for(2 * S);
        world.check_quiet();
    }
}

/// Creates a connection, whose identifier it returns.
fn create(world: &mut World, endpoint: &str, call: &str) -> String {
    let made = world.ask("CRCX", endpoint, &[&format!("C: {call}"), "M: recvonly"]);
    assert_eq!(made.code, Some(200), "{made:?}");
    connection(&made)
}

/// The connection a response names.
fn connection(made: &Reply) -> String {
    made.get("I").unwrap_or_else(|| panic!("no connection: {made:?}")).to_owned()
}

/// Commands of the gateway that came, in order.
fn rsips(world: &World) -> Vec<Reply> {
    let messages = world.mail().iter().flat_map(|mail| Reply::all(&mail.bytes));
    messages.filter(|message| message.code.is_none()).collect()
}

/// The value of one requested info of an endpoint.
fn audit(world: &mut World, endpoint: &str, info: &str) -> String {
    let answer = world.ask("AUEP", endpoint, &[&format!("F: {info}")]);
    assert_eq!(answer.code, Some(200), "{answer:?}");
    answer.get(info).unwrap_or_else(|| panic!("no {info}: {answer:?}")).to_owned()
}
