//! A pair of central nodes whose lease is in etcd.

use super::super::gateway::{Kept, signal_to};
use super::*;
use libc::{SIGCONT, SIGKILL, SIGSTOP, SIGTERM};
use std::process::Stdio;

/// etcd, or `None` where it is not installed.
struct Etcd {
    server: Kept,
    client: SocketAddr,
    data: std::path::PathBuf,
}

impl Etcd {
    fn start() -> Option<Etcd> {
        let tuning = Tuning::new();
        let ip = tuning.addresses.gateway().ip();
        let (client, peer) = (format!("http://{ip}:2379"), format!("http://{ip}:2380"));
        let data = tuning.directory.join("etcd");
        let mut command = Command::new("etcd");
        command.args(["--name", "one", "--initial-cluster", &format!("one={peer}"), "--log-level", "error"]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.arg("--data-dir").arg(&data).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(child) => Some(Etcd { server: Kept(child), client: (ip, 2379).into(), data }),
            Err(error) => {
                eprintln!("skipped: a pair of central nodes: no etcd (Debian's etcd-server): {error}");
                None
            }
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.server.0.kill();
        let _ = self.server.0.wait();
        let _ = std::fs::remove_dir_all(self.data.parent().unwrap());
    }
}

fn mode(central: &Central) -> String {
    central.view()["mode"].as_str().unwrap().into()
}

/// Must hold 5: the leader stands still, or is killed, or ends, with calls up; the other one leads, with all of them, and gives no place a
/// second time; whoever comes back is the standby, and nobody listens to what it said before.
#[test]
fn the_other_one_of_a_pair_leads_and_no_place_is_given_twice() {
    let Some(etcd) = Etcd::start() else { return };
    let list = scopes(10, ", disconnected = \"closed\"");
    let start = || {
        let tuning = Central::tuning("[1, 2]", &list).set("cac.etcd", &format!("[\"{}\"]", etcd.client));
        Central::start(tuning.set("cac.lease", "\"2s\""))
    };
    let (a, b) = (start(), start());
    let node = |number| {
        let tuning = Node::tuning(number, a.address, &list);
        Node::with(tuning.set("cac.cs", &format!("[\"{}\", \"{}\"]", a.address, b.address)))
    };
    let (mut one, mut two) = (node(1), node(2));
    let leads = |central: &Central| mode(central) == "active";
    eventually("one of both leads", SOON * 2, || (leads(&a) || leads(&b)).then_some(()));
    let (first, second) = if leads(&a) { (&a, &b) } else { (&b, &a) };
    first.wait_for(2);
    let copied = |node: &Node| node.link()["standby"] == "in-sync";
    eventually("the other one has copies", SOON, || (copied(&one) && copied(&two)).then_some(()));
    assert_eq!((one.call(3), two.call(3), mode(second)), (3, 3, "standby".into()));
    second.wait_for_calls(6);

    // It stands still for longer than its lease.
    first.process.signal(SIGSTOP);
    second.wait_for(2);
    assert_eq!(one.call(3) + two.call(3), 4);
    assert!(second.view()["epoch"].as_u64() > Some(0));
    first.process.signal(SIGCONT);
    eventually("it is the standby now", SOON, || (mode(first) == "standby").then_some(()));
    assert!(first.events().contains("leads no more"), "{}", first.events());
    eventually("it has copies", SOON, || (copied(&one) && copied(&two)).then_some(()));
    first.wait_for_calls(10);
    assert_eq!((one.call(1), two.call(1)), (0, 0));

    // The leader is killed: the one that led before leads again, in a higher epoch.
    let epoch = second.view()["epoch"].as_u64();
    signal_to(second.process.pid(), SIGKILL);
    first.wait_for(2);
    assert!(first.view()["epoch"].as_u64() > epoch);
    assert_eq!((one.call(1), first.calls().0), (0, 10));
    assert_same_calls(first, &[&one, &two]);
    one.hang_up();
    two.hang_up();
    first.wait_for_calls(0);

    // A leader that ends leaves the lease: a third one, started meanwhile in its place, need not wait for it to run out.
    let third = start_at(second, &list, &etcd);
    eventually("the third has copies", SOON * 2, || (copied(&one) && copied(&two)).then_some(()));
    signal_to(first.process.pid(), SIGTERM);
    third.wait_for(2);
    assert_eq!(one.call(12), 10);
    assert_same_calls(&third, &[&one, &two]);
    [&one, &two].iter().for_each(|node| node.gateway.assert_sound());
}

/// Two clusters on one etcd have a leader each. A gateway that has both in its list listens to one of them, the other one says what is
/// wrong, and they do not depose each other.
#[test]
fn two_clusters_on_one_etcd_do_not_disturb_each_other() {
    let Some(etcd) = Etcd::start() else { return };
    let list = scopes(10, "");
    let start = |name: &str| {
        let tuning = Central::tuning("[1]", &list).set("cac.etcd", &format!("[\"{}\"]", etcd.client));
        Central::start(tuning.set("cac.lease", "\"2s\"").set("cac.cluster", &format!("{name:?}")))
    };
    let (a, b) = (start("north"), start("south"));
    let (mut one, mut two) = (Node::start(1, &a, &list), Node::start(1, &b, &list));
    [&a, &b].iter().for_each(|central| central.wait_for(1));
    assert_eq!((one.call(11), two.call(11), a.calls().0, b.calls().0), (10, 10, 10, 10));
    let list_of_both = format!("[\"{}\", \"{}\"]", a.address, b.address);
    let mixed = Node::with(Node::tuning(2, a.address, &list).set("cac.cs", &list_of_both));
    let refuses = |central: &Central| central.events().contains("is of another cac.cluster");
    eventually("one of both says why", SOON, || (refuses(&a) || refuses(&b)).then_some(()));
    mixed.wait_for("in-sync");
    eventually("the gateway says so too", SOON, || mixed.gateway.log().contains("a pair has one name").then_some(()));
    for central in [&a, &b] {
        assert!(mode(central) == "active" && !central.events().contains("leads no more"), "{}", central.events());
    }
}

/// Another one where `dead` was.
fn start_at(dead: &Central, list: &str, etcd: &Etcd) -> Central {
    let tuning = Central::tuning_at(Tuning::at(dead.process.tuning.addresses), dead.address, "[1, 2]", list);
    Central::start_at(tuning.set("cac.etcd", &format!("[\"{}\"]", etcd.client)).set("cac.lease", "\"2s\""), dead.address)
}
