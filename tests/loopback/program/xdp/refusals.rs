//! It is no hole: who is left to the kernel, and where it refuses to run (issue 3, must hold 2).

use super::super::agent::{Agent, Message};
use super::super::gateway::{Gateway, Kept, PROGRAM, SOON, Tuning, Watch, eventually, signal_to};
use super::super::pair::{FAR, NEAR, ip};
use super::{counter, in_a_pair, nftables, tuning, warm_up};
use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The gateway's side refuses to start; what it says.
fn refused(tuning: &Tuning) -> String {
    tuning.write();
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg("--config").arg(tuning.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = Kept(command.spawn().unwrap());
    let status = eventually("it refuses to start", SOON, || child.0.try_wait().unwrap());
    let mut said = String::new();
    child.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(!status.success() && !said.is_empty(), "{status}: {said}");
    let _ = std::fs::remove_dir_all(&tuning.directory);
    said
}

/// The list of agents holds in the XDP program too, and follows a reload.
#[test]
fn strangers_are_left_to_the_kernel() {
    in_a_pair("strangers_are_left_to_the_kernel", |pair| {
        let mut gateway = Gateway::start(tuning());
        let mut agent = pair.within(|| Agent::of(&gateway));
        warm_up(&gateway, &mut agent);
        let addresses = gateway.tuning.addresses;
        let mut stranger = pair.within(|| Agent::at(addresses.stranger(), addresses.gateway()));
        let received = counter(&gateway, "bypass_received");
        stranger.command("AUEP", "ds/ds3-1/ds1-2/3", &[]);
        eventually("it is dropped", SOON, || (gateway.counter("dropped_unlisted_source") == 1).then_some(()));
        assert_eq!(counter(&gateway, "bypass_received"), received);
        let set = |gateway: &mut Gateway, value: &str| {
            let tuning = gateway.tuning.copy();
            gateway.tuning = tuning.set("agent.0.addresses", value);
            gateway.tuning.write();
            gateway.order(&["reload"]);
        };
        set(&mut gateway, "[\"10.0.0.6\", \"10.0.0.7\"]");
        assert_eq!(stranger.ask("AUEP", "ds/ds3-1/ds1-2/3", &[]).code, Some(200));
        assert_eq!(counter(&gateway, "bypass_received"), received + 1);
        set(&mut gateway, "[\"10.0.0.6\"]");
        stranger.command("AUEP", "ds/ds3-1/ds1-2/3", &[]);
        eventually("it is dropped", SOON, || (gateway.counter("dropped_unlisted_source") == 2).then_some(()));
        assert_eq!(counter(&gateway, "bypass_received"), received + 1);
        set(&mut gateway, "\"any\"");
        assert_eq!(stranger.ask("AUEP", "ds/ds3-1/ds1-2/3", &[]).code, Some(200));
        assert_eq!(counter(&gateway, "bypass_received"), received + 2);
        gateway.assert_sound();
    });
}

const POLICY: [&str; 14] =
    ["dir", "in", "src", "0.0.0.0/0", "dst", "10.0.0.4/32", "proto", "udp", "tmpl", "proto", "esp", "mode", "tunnel", "src"];

fn policy(order: &str) -> Output {
    let rest = ["10.0.0.6", "dst", "10.0.0.4"];
    let tmpl = POLICY.iter().position(|word| *word == "tmpl").unwrap();
    let (selector, template) = POLICY.split_at(tmpl);
    let mut command = Command::new("ip");
    command.args(["xfrm", "policy", order]);
    match order {
        "add" => command.args(&selector[..2]).args(&selector[2..]).args(template).args(rest),
        _ => command.args(selector),
    };
    command.output().unwrap()
}

/// Must hold 2: with an IPsec policy over the listen address AF_XDP is refused, and clear text gets no answer by any other transport.
#[test]
fn an_ipsec_policy_is_no_hole() {
    in_a_pair("an_ipsec_policy_is_no_hole", |pair| {
        let added = policy("add");
        if !added.status.success() {
            return eprintln!("skipped: an_ipsec_policy_is_no_hole: this kernel takes no IPsec policies: {added:?}");
        }
        let said = refused(&tuning());
        assert!(said.contains("IPsec policy covers what comes in to 10.0.0.4:2427"), "{said}");
        for kind in ["\"uring\"", "\"mio\""] {
            let gateway = Gateway::start(tuning().set("transport.kind", kind));
            let agent = pair.within(|| Agent::silent(&gateway));
            no_answer(agent);
        }
        assert!(policy("delete").status.success());
        // One that comes later: everything goes by the kernel, which lets nothing in, until it is gone again.
        let gateway = Gateway::start(tuning());
        let mut agent = pair.within(|| Agent::of(&gateway));
        warm_up(&gateway, &mut agent);
        assert!(policy("add").status.success());
        eventually("the log says it", SOON, || gateway.log().contains("IPsec policy covers").then_some(()));
        let agent = no_answer(agent);
        assert!(policy("delete").status.success());
        eventually("the log says it", SOON, || gateway.log().contains("served by AF_XDP again").then_some(()));
        let mut agent = agent;
        warm_up(&gateway, &mut agent);
    });
}

/// Nothing but what the gateway sends of itself comes.
fn no_answer(mut agent: Agent) -> Agent {
    agent.mail.clear();
    let id = agent.command("AUEP", "ds/ds3-1/ds1-1/1", &[]);
    agent.listen(Duration::from_millis(300));
    let answers: Vec<&Message> = agent.mail.iter().filter(|message| message.id == id && message.code.is_some()).collect();
    assert!(answers.is_empty(), "{answers:?}");
    agent
}

/// A packet filter that could match must be passed by knowingly.
#[test]
fn packet_filters_must_be_passed_by_knowingly() {
    in_a_pair("packet_filters_must_be_passed_by_knowingly", |pair| {
        if let Err(reason) = nftables::drop_everything() {
            return eprintln!("skipped: packet_filters_must_be_passed_by_knowingly: {reason}");
        }
        let said = refused(&tuning());
        assert!(said.contains("nftables chain guard in may match") && said.contains("xdp.bypass_firewall"), "{said}");
        let gateway = Gateway::start(tuning().set("xdp.bypass_firewall", "true"));
        assert!(gateway.log().contains("packet filters do not see"), "{}", gateway.log());
        let addresses = gateway.tuning.addresses;
        // The filter drops what the kernel gets: the answer shows the way the command came.
        let mut agent = pair.within(|| Agent::at(addresses.agent(), addresses.gateway()));
        agent.answers = true;
        assert_eq!(agent.ask("AUEP", "ds/ds3-1/ds1-1/1", &[]).code, Some(200));
        // Cores tell their counts now and then.
        eventually("it came past the kernel", SOON, || (counter(&gateway, "bypass_received") > 0).then_some(()));
        gateway.assert_sound();
    });
}

/// Where it cannot run the gateway says which interface it is and why.
#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    in_a_pair("what_cannot_be_is_refused_with_the_reason", |pair| {
        let says = |tuning: Tuning, wanted: &str| {
            let said = refused(&tuning);
            assert!(said.contains("transport.kind = \"xdp\"") && said.contains(wanted), "{wanted}: {said}");
        };
        let loopback = tuning().set("gateway.listen", "[\"127.0.0.1:2427\"]").set("metrics.address", "\"off\"");
        says(loopback, "not on loopback");
        says(tuning().set("xdp.interface", "\"eth9\""), "there is no interface eth9");
        says(tuning().set("xdp.queues", "2"), "gw0 has 1");
        ip(&["link", "add", "br0", "type", "bridge"]);
        says(tuning().set("xdp.interface", "\"br0\""), "br0 is a bridge");
        ip(&["link", "set", NEAR, "master", "br0"]);
        says(tuning(), "gw0 is a port of the bridge br0");
        ip(&["link", "set", NEAR, "nomaster"]);
        // Other interfaces on top of cards, as far as this kernel has them.
        for kind in ["bond", "macvlan", "ipvlan", "dummy"] {
            let on: &[&str] = if kind == "macvlan" || kind == "ipvlan" { &["link", NEAR] } else { &[] };
            let order = [&["link", "add"], on, &["name", "upper", "type", kind]].concat();
            if Command::new("ip").args(order).output().unwrap().status.success() {
                says(tuning().set("xdp.interface", "\"upper\""), &format!("upper is a {kind}"));
                ip(&["link", "delete", "upper"]);
            }
        }
        // The driver takes no program when what comes may be longer than a page.
        pair.within(|| ip(&["link", "set", FAR, "mtu", "9000"]));
        says(tuning().set("xdp.mode", "\"native\""), "gw0 takes no XDP program: native");
        pair.within(|| ip(&["link", "set", FAR, "mtu", "1500"]));
        let said = refused(&tuning().set("xdp.copy", "\"zero-copy\""));
        assert!(said.contains("gw0 queue 0: bind: its driver cannot do without copies"), "{said}");
    });
}

/// The program is gone with the process, however it ends; while it lives nobody else gets the interface.
#[test]
fn the_interface_is_free_again_after_a_crash() {
    in_a_pair("the_interface_is_free_again_after_a_crash", |pair| {
        let mut gateway = Gateway::start(tuning());
        let other = tuning().set("gateway.listen", "[\"10.0.0.5:2427\"]").set("metrics.address", "\"off\"");
        let said = refused(&other);
        assert!(said.contains("gw0 carries another XDP program"), "{said}");
        signal_to(gateway.pid(), libc::SIGKILL);
        gateway.wait(SOON);
        let watch = Watch::start();
        let gateway = Gateway::start(tuning());
        assert!(watch.elapsed() < SOON);
        let mut agent = pair.within(|| Agent::of(&gateway));
        warm_up(&gateway, &mut agent);
        let mut gateway = gateway;
        gateway.signal(libc::SIGTERM);
        agent.listen(Duration::from_millis(300));
        let (status, _) = gateway.wait(SOON);
        assert!(status.success());
        let shown = Command::new("ip").args(["-details", "link", "show", NEAR]).output().unwrap();
        assert!(!String::from_utf8_lossy(&shown.stdout).contains("prog/xdp"), "{shown:?}");
    });
}
