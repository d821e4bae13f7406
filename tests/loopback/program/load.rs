//! `tollgate load` against the gateway, in every layout of cores (must hold 1 and 2).

use super::gateway::{Gateway, PROGRAM, SOON, Tuning, eventually};
use serde_json::Value;
use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};

/// `tollgate load` about this gateway, with more arguments.
pub fn load(gateway: &Gateway, arguments: &str) -> Command {
    load_from(gateway, gateway.tuning.addresses.agent(), arguments)
}

/// The same, from this address.
pub fn load_from(gateway: &Gateway, from: SocketAddr, arguments: &str) -> Command {
    load_between(&[gateway.tuning.addresses.gateway()], from, arguments)
}

/// The same, to these addresses of a gateway.
pub fn load_between(to: &[SocketAddr], from: SocketAddr, arguments: &str) -> Command {
    let to: Vec<_> = to.iter().map(ToString::to_string).collect();
    let mut command = Command::new(PROGRAM);
    command.args(["load", "--json", "--target", &to.join(","), "--listen", &from.to_string()]);
    command.args(arguments.split(' ')).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a load that went well reports.
pub fn report(output: &Output, gateway: &Gateway) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}\n{}", String::from_utf8_lossy(&output.stderr), gateway.log());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Datagrams are lost and doubled both ways: every transaction ends, nothing is executed twice, and no connection is left.
fn no_check_fails(tuning: Tuning) {
    let gateway = Gateway::start(tuning.set("limits.history_rate", "5000"));
    let arguments = "--scenario call --rate 2000 --duration 2 --loss 0.02 --duplicate 0.05 --standing 20 --seed 7";
    let report = report(&load(&gateway, arguments).output().unwrap(), &gateway);
    assert!(gateway.counter("crcx_done") > 500, "{report}");
    assert!(gateway.counter("commands_repeated") > 0, "the doubles came: {report}");
    eventually("no connection is left", SOON, || gateway.rows(&["connections"]).is_empty().then_some(()));
    // The load got as many final responses as there were executions: each of its commands one.
    for (verb, code, counter) in [("CRCX", "200", "crcx_done"), ("MDCX", "200", "mdcx_done"), ("DLCX", "250", "dlcx_done")] {
        assert_eq!(report["verbs"][verb]["codes"][code], gateway.counter(counter), "{verb}: {report}");
    }
    gateway.assert_sound();
}

#[test]
fn no_check_fails_on_one_core() {
    no_check_fails(Tuning::new().layout(1, 0, 0));
}

#[test]
fn no_check_fails_on_two_cores() {
    no_check_fails(Tuning::new().layout(2, 0, 0));
}

#[test]
fn no_check_fails_on_a_transport_core_and_a_shard() {
    no_check_fails(Tuning::new().layout(0, 1, 1));
}

#[test]
fn no_check_fails_on_a_transport_core_and_three_shards() {
    no_check_fails(Tuning::new().layout(0, 1, 3));
}

#[test]
fn mixed_and_closed_loops_pass_too() {
    let gateway = Gateway::start(Tuning::new().layout(2, 0, 0).set("limits.history_rate", "100000").set("timers.t_hist", "\"30s\""));
    let mut answered = 0;
    for arguments in ["--scenario mixed --window 20 --duration 1", "--scenario audit --rate 1000 --duration 1 --standing 40"] {
        let report = report(&load(&gateway, arguments).output().unwrap(), &gateway);
        answered += report["verbs"]["AUEP"]["codes"]["200"].as_u64().unwrap();
    }
    assert_eq!(gateway.counter("auep_done"), answered);
    assert!(gateway.counter("aucx_done") > 0);
    let wrong = load(&gateway, "--scenario call --rate 0 --duration 1").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    gateway.assert_sound();
}
