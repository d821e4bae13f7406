//! Dialogues with a gateway in the simulation, requirement by requirement: a command goes in, and what comes out is what
//! docs/conformance/mgcp.md says. One module per area; ids of requirements stand in front of the tests.

mod admission;
mod audits;
mod bulk;
mod connections;
mod continuity;
mod cores;
mod deletions;
mod descriptions;
mod disconnected;
mod entities;
mod events;
mod interop;
mod items;
mod lines;
mod memory;
mod modifications;
mod names;
mod options;
mod packages;
mod parameters;
mod persistent;
mod protection;
mod quarantine;
mod requests;
mod responses;
mod restarts;
mod signals;
mod syntax;
mod transactions;
mod trunk_items;

use std::net::SocketAddr;
use std::time::Duration;
use tollgate::proto::core::Administration;
use tollgate::proto::plan::{Plan, Settings};
use tollgate::proto::restart::BlockHow;
use tollgate::proto::trunk::{FacilityKind, FacilityPlan};
use tollgate::sim::{Layout, Reply, Setup, World};

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

/// A session description of the far end, as the last lines of a command.
const SDP: [&str; 4] = ["", "v=0", "c=IN IP4 192.0.2.50", "m=audio 40000 RTP/AVP 0"];

/// One core, two cores, and one that only moves datagrams.
const LAYOUTS: [Layout; 3] = [Layout::One, Layout::Two, Layout::Split1];

/// Runs a dialogue in every layout, with eight T1s whose restart is told, and checks that nothing is left undone.
fn each_layout(dialogue: impl Fn(&mut World)) {
    each_layout_with(|_, _| {}, dialogue);
}

/// The same with another plan or other settings.
fn each_layout_with(change: impl Fn(&mut Plan, &mut Settings), dialogue: impl Fn(&mut World)) {
    for layout in LAYOUTS {
        let mut world = World::new(setup(layout, 1), &change);
        dialogue(&mut world);
        world.run_for(3 * S);
        world.check_quiet();
    }
}

/// Eight T1s.
fn setup(layout: Layout, seed: u64) -> Setup {
    Setup { replay: "cargo test --test conformance".into(), ..Setup::new(layout, seed) }
}

/// A T3 with its 28 T1s, and responses as large as a datagram.
fn large_world(layout: Layout) -> World {
    let facilities = vec![FacilityPlan { kind: FacilityKind::T3, unit: 1, common_channel: false }];
    World::new(Setup { facilities, ..setup(layout, 1) }, |plan, settings| {
        plan.limits.datagram = 65_507;
        settings.agents[0].max_response = 65_507;
    })
}

/// Both agents' addresses.
fn agent(number: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number], port))
}

/// Sends bytes from the first agent and takes what comes back within 100 ms.
fn raw(world: &mut World, bytes: &[u8]) -> Vec<Reply> {
    raw_from(world, agent(1, 2727), bytes)
}

/// The same from another source.
fn raw_from(world: &mut World, from: SocketAddr, bytes: &[u8]) -> Vec<Reply> {
    world.take_mail();
    world.send_from(from, 0, bytes);
    world.run_for(100 * MS);
    replies(world)
}

/// Every message that came to the agents and was not taken.
fn replies(world: &World) -> Vec<Reply> {
    world.mail().iter().flat_map(|mail| Reply::all(&mail.bytes)).collect()
}

/// Commands of the gateway with this verb that came to the agents: where, and what.
fn own_commands(world: &World, verb: &str) -> Vec<(SocketAddr, Reply)> {
    let all = world.mail().iter().flat_map(|mail| Reply::all(&mail.bytes).into_iter().map(|reply| (mail.to, reply)));
    all.filter(|(_, reply)| reply.code.is_none() && reply.line.starts_with(verb)).collect()
}

/// The Notify commands that came since the mail was taken last, each once: request identifier and events.
fn notified(world: &mut World) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    let mut list = Vec::new();
    for (_, notify) in own_commands(world, "NTFY") {
        if !seen.contains(&notify.id) {
            seen.push(notify.id);
            let value = |name| notify.get(name).unwrap_or_else(|| panic!("no {name}: {notify:?}")).to_owned();
            list.push((value("X"), value("O")));
        }
    }
    world.take_mail();
    list
}

/// The events of the only Notify since the mail was taken last; empty when there was none.
fn told(world: &mut World) -> String {
    let all = notified(world);
    assert!(all.len() < 2, "{all:?}");
    all.first().map_or(String::new(), |(_, events)| events.clone())
}

/// The code of the final response.
fn code(world: &mut World, verb: &str, endpoint: &str, parameters: &[&str]) -> u16 {
    world.ask(verb, endpoint, parameters).code.expect("a response")
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

/// The value of one requested info of an endpoint.
fn audit(world: &mut World, endpoint: &str, info: &str) -> String {
    let answer = world.ask("AUEP", endpoint, &[&format!("F: {info}")]);
    assert_eq!(answer.code, Some(200), "{answer:?}");
    answer.get(info).unwrap_or_else(|| panic!("no {info}: {answer:?}")).to_owned()
}

/// All that an agent can see of an endpoint.
fn snapshot(world: &mut World, endpoint: &str) -> Vec<(String, String)> {
    let answer = world.ask("AUEP", endpoint, &["F: R,D,S,X,Q,N,I,T,O,ES,B,RM,RD,E"]);
    assert_eq!(answer.code, Some(200), "{answer:?}");
    answer.parameters
}

/// All that an agent can see of a connection, but for its counters.
fn connection_snapshot(world: &mut World, endpoint: &str, id: &str) -> (Vec<(String, String)>, String) {
    let answer = world.ask("AUCX", endpoint, &[&format!("I: {id}"), "F: C,N,L,M,LC,RC"]);
    assert_eq!(answer.code, Some(200), "{answer:?}");
    (answer.parameters, answer.description)
}

/// A transaction id that no command of this world has had.
fn fresh_id(world: &World) -> u64 {
    1_000_000 + world.steps()
}

/// Takes endpoints out of service at once, or gives them back.
fn block(world: &mut World, name: &str, blocked: bool) {
    // The journal only knows deletions that an agent ordered.
    world.without_journal();
    let topology = &world.plan.topology;
    let selection = match topology.lookup(name.as_bytes()) {
        Some(endpoint) => topology.selection_of(endpoint).expect("an endpoint"),
        None => topology.resolve(name.as_bytes(), false).expect("a pattern"),
    };
    world.administer(if blocked { Administration::Block(selection, BlockHow::Force) } else { Administration::Unblock(selection) });
    world.run_for(S);
}
