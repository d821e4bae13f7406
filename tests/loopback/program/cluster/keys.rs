//! Who may be a node: keys.

use super::*;
use crate::gateway::Tuning;

fn has_curve(tuning: &Tuning) -> bool {
    let output = Command::new(PROGRAM).arg("cac-key").arg(tuning.directory.join("try")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        assert!(text.contains("libzmq3-dev"), "{text}");
        eprintln!("skipped: keys: this program's ZeroMQ has no CURVE");
    }
    output.status.success()
}

/// A file with keys in the directory of `tuning`: its path and the public key.
fn key(tuning: &Tuning, name: &str) -> (String, String) {
    let path = tuning.directory.join(name);
    let output = Command::new(PROGRAM).arg("cac-key").arg(&path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    (path.to_str().unwrap().into(), String::from_utf8(output.stdout).unwrap().trim().into())
}

/// R34: with keys a node is who its key says; another key gets no session, whatever number it says it has.
#[test]
fn a_node_is_who_its_key_says() {
    let list = scopes(3, "");
    let tuning = Central::tuning("[1, 2]", &list);
    if !has_curve(&tuning) {
        return;
    }
    let (secret, public) = key(&tuning, "central");
    let nodes = ["one", "two"].map(|name| key(&tuning, name));
    let stranger = key(&tuning, "stranger");
    let tuning = tuning.set("cac.secret_key", &format!("{secret:?}"));
    let central = Central::start(tuning.set("cac.node_keys", &format!("['{}', '{}']", nodes[0].1, nodes[1].1)));
    let with_key = |number: u32, key: &str| {
        let tuning = Node::tuning(number, central.address, &list).set("cac.secret_key", &format!("{key:?}"));
        Node::with(tuning.set("cac.cs_key", &format!("'{public}'")))
    };
    // It says it is 1, and has the key of 2.
    let mut two = with_key(1, &nodes[1].0);
    eventually("a session", SOON, || {
        let view = central.view();
        view["nodes"].as_array().unwrap().iter().any(|node| node["node"] == 2 && node["state"] == "in-sync").then_some(())
    });
    assert_eq!(two.call(1), 1);
    central.wait_for_calls(1);
    let other = with_key(1, &stranger.0);
    eventually("the stranger is refused", SOON, || (central.view()["strangers"].as_u64() > Some(0)).then_some(()));
    assert_eq!(other.link()["state"], "lost");
    // A key that others may read is no key.
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&nodes[0].0, std::fs::Permissions::from_mode(0o644)).unwrap();
    let tuning = Node::tuning(1, central.address, &list).set("cac.secret_key", &format!("{:?}", nodes[0].0));
    let tuning = tuning.set("cac.cs_key", &format!("'{public}'"));
    tuning.write();
    let output = Command::new(PROGRAM).arg("run").arg("--config").arg(tuning.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("others than its owner may read it"), "{output:?}");
}
