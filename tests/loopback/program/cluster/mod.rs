//! A cluster of real processes: gateways, their agents, and a central node, over ZeroMQ on loopback.

mod bad_days;
mod keys;
mod limits;
mod long;
mod pair;
mod played;
mod quotas;
mod switch;

use super::agent::Agent;
use super::gateway::{Gateway, PROGRAM, SOON, Tuning, eventually};
use super::h248::Controller;
use super::network::ip;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;

/// The port of central nodes.
const PORT: u16 = 2428;

/// What is counted, call by call: a pool of all, and a trunk group at every gateway.
fn scopes(calls: u32, more: &str) -> String {
    scopes_by(calls, &format!("{more}, quota = \"never\""))
}

/// The same as the central node gives it out.
fn scopes_by(calls: u32, more: &str) -> String {
    let pool = format!("{{ kind = \"pool\", name = \"carrier\", calls = {calls}{more} }}");
    let north = format!("{{ kind = \"trunk-group\", name = \"north\", pool = \"carrier\", members = [\"ds/ds3-1/*\"]{more} }}");
    format!("[{pool}, {north}]")
}

/// A central node, which is a gateway to those who order and watch it.
struct Central {
    process: Gateway,
    address: SocketAddr,
}

impl Central {
    /// The tuning of one that expects these nodes.
    fn tuning(nodes: &str, scopes: &str) -> Tuning {
        let tuning = Tuning::new();
        let address: SocketAddr = (tuning.addresses.gateway().ip(), PORT).into();
        Central::tuning_at(tuning, address, nodes, scopes)
    }

    fn tuning_at(tuning: Tuning, address: SocketAddr, nodes: &str, scopes: &str) -> Tuning {
        let tuning = tuning.set("cac.mode", "\"central\"").set("cac.listen", &format!("[\"{address}\"]"));
        tuning.set("cac.nodes", nodes).set("cac.learn_for", "\"5s\"").scopes(scopes)
    }

    fn start(tuning: Tuning) -> Central {
        let address = (tuning.addresses.gateway().ip(), PORT).into();
        Central::start_at(tuning, address)
    }

    fn start_at(tuning: Tuning, address: SocketAddr) -> Central {
        tuning.write();
        let mut command = Command::new(PROGRAM);
        command.arg("cac").arg("--config").arg(tuning.path());
        Central { process: Gateway::spawn(tuning, command), address }
    }

    /// The same, killed and started again.
    fn restart(self) -> Central {
        let (tuning, address) = (self.process.tuning.copy(), self.address);
        drop(self);
        std::fs::create_dir_all(&tuning.directory).unwrap();
        Central::start_at(tuning, address)
    }

    fn view(&self) -> Value {
        self.process.show(&["cac"])["cluster"].clone()
    }

    /// Calls that count in the pool, and the most there were.
    fn calls(&self) -> (u64, u64) {
        let view = self.view();
        let row = view["scopes"]["rows"].as_array().unwrap().iter().find(|row| row["name"] == "carrier").unwrap().clone();
        (row["calls"].as_u64().unwrap(), row["peak"].as_u64().unwrap())
    }

    /// Waits until it grants and these gateways have told what they have.
    fn wait_for(&self, nodes: usize) {
        eventually("the cluster is in sync", SOON * 2, || {
            let view = self.view();
            let in_sync = view["nodes"].as_array().unwrap().iter().filter(|node| node["state"] == "in-sync").count();
            (view["mode"] == "active" && in_sync == nodes).then_some(())
        });
    }

    fn wait_for_calls(&self, calls: u64) {
        let mut last = 0;
        eventually("that many calls count", SOON * 2, || {
            last = self.calls().0;
            (last == calls).then_some(())
        });
    }

    fn alarms(&self) -> String {
        self.view()["alarms"].to_string()
    }

    fn events(&self) -> String {
        self.view()["events"].to_string()
    }
}

/// A gateway of a cluster with its agent.
struct Node {
    gateway: Gateway,
    agent: Agent,
    next: u32,
}

impl Node {
    fn tuning(number: u32, central: SocketAddr, scopes: &str) -> Tuning {
        let tuning = Tuning::new().set("cac.mode", "\"cluster\"").set("cac.node", &number.to_string());
        tuning.set("cac.cs", &format!("[\"{central}\"]")).set("cac.nodes", "[1, 2, 3]").scopes(scopes)
    }

    fn start(number: u32, central: &Central, scopes: &str) -> Node {
        Node::with(Node::tuning(number, central.address, scopes))
    }

    fn with(tuning: Tuning) -> Node {
        let gateway = Gateway::start(tuning);
        let agent = Agent::of(&gateway);
        Node { gateway, agent, next: 0 }
    }

    /// The same gateway, killed and started again: its calls are gone.
    fn restart(self) -> Node {
        let tuning = self.gateway.tuning.copy();
        drop(self);
        std::fs::create_dir_all(&tuning.directory).unwrap();
        Node::with(tuning)
    }

    /// Asks for so many calls at once, each on a channel of its own: the ids of the commands.
    fn send(&mut self, calls: u32) -> Vec<u32> {
        let ids = (0..calls).map(|_| {
            self.next += 1;
            let name = format!("ds/ds3-1/ds1-{}/{}", 1 + self.next / 24 % 28, 1 + self.next % 24);
            self.agent.command("CRCX", &name, &[&format!("C: {}", self.next), "M: recvonly"])
        });
        ids.collect()
    }

    /// How many of these were admitted; the others must have been refused for want of room.
    fn admitted(&mut self, ids: &[u32]) -> u32 {
        let codes = ids.iter().map(|&id| self.agent.final_of(id, SOON).code.unwrap());
        let codes: Vec<u16> = codes.collect();
        assert!(codes.iter().all(|code| [200, 403].contains(code)), "{codes:?}");
        codes.iter().filter(|code| **code == 200).count() as u32
    }

    /// So many calls, of which a receive buffer takes the answers: nothing is repeated here.
    fn call(&mut self, calls: u32) -> u32 {
        let parts = (0..calls).step_by(50).map(|done| (calls - done).min(50));
        parts.fold(0, |admitted, part| {
            let ids = self.send(part);
            admitted + self.admitted(&ids)
        })
    }

    /// Ends all calls.
    fn hang_up(&mut self) {
        let code = self.agent.ask("DLCX", "*", &[]).code;
        assert!([Some(250), Some(200)].contains(&code), "{code:?}");
    }

    fn link(&self) -> Value {
        self.gateway.show(&["cac"])["cac"]["link"].clone()
    }

    /// Calls that were admitted without the central node.
    fn alone(&self) -> u64 {
        self.link()["local"].as_u64().unwrap()
    }

    fn wait_for(&self, state: &str) {
        eventually(state, SOON * 2, || (self.link()["state"] == state).then_some(()));
    }
}

/// The calls by GUID and leg, as this process has them.
fn ccbs(process: &Gateway) -> BTreeSet<(String, String)> {
    let rows = process.rows(&["ccbs"]);
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "guid"), text(row, "leg"))).collect()
}

/// Must hold 4: the central node has the calls of the gateways, each by its GUID, and no others.
fn assert_same_calls(central: &Central, nodes: &[&Node]) {
    let mut both = (BTreeSet::new(), BTreeSet::new());
    eventually("both ends have the same calls", SOON, || {
        let here = nodes.iter().flat_map(|node| ccbs(&node.gateway)).collect();
        both = (ccbs(&central.process), here);
        (both.0 == both.1).then_some(())
    });
}

/// The address of a central node whose links can be cut: in a network of one's own.
const CUTTABLE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));

/// Lets its links pass, or cuts them: the address is there, or it is not.
fn let_pass(passes: bool) {
    ip(&["addr", if passes { "add" } else { "del" }, &format!("{CUTTABLE}/32"), "dev", "lo"]);
}

/// A central node whose links can be cut, in sync with two gateways; the pool has so many places.
fn cuttable(places: u32) -> (Central, Node, Node) {
    let list = scopes(places, "");
    let address = SocketAddr::new(CUTTABLE, PORT);
    let_pass(true);
    let tuning = Central::tuning_at(Tuning::new(), address, "[1, 2]", &list).set("cac.plain", "true");
    let central = Central::start_at(tuning, address);
    let node = |number| Node::with(Node::tuning(number, address, &list).set("cac.plain", "true"));
    let (one, two) = (node(1), node(2));
    central.wait_for(2);
    (central, one, two)
}
