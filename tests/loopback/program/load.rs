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
    let mut command = Command::new(PROGRAM);
    let target = gateway.tuning.addresses.gateway().to_string();
    command.args(["load", "--json", "--target", &target, "--listen", &from.to_string()]);
    command.args(arguments.split(' ')).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a load that went well reports.
pub fn report(output: &Output, gateway: &Gateway) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}\n{}", String::from_utf8_lossy(&output.stderr), gateway.log());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn no_check_fails_with_losses_and_doubles_in_any_layout() {
    for (both, transport, shard) in [(1, 0, 0), (2, 0, 0), (0, 1, 1), (0, 1, 3)] {
        let tuning = Tuning::new().layout(both, transport, shard).set("limits.history_rate", "5000");
        let gateway = Gateway::start(tuning);
        let arguments = "--scenario call --rate 2000 --duration 2 --loss 0.02 --duplicate 0.05 --standing 20 --seed 7";
        let output = load(&gateway, arguments).output().unwrap();
        let report = report(&output, &gateway);
        assert!(gateway.counter("crcx_done") > 500, "{report}");
        assert!(gateway.counter("commands_repeated") > 0, "the doubles came: {report}");
        eventually("no connection is left", SOON, || gateway.rows(&["connections"]).is_empty().then_some(()));
        assert_eq!(gateway.counter("crcx_done"), gateway.counter("dlcx_done"), "{report}");
        gateway.assert_sound();
    }
}

#[test]
fn mixed_and_closed_loops_pass_too() {
    let gateway = Gateway::start(Tuning::new().layout(2, 0, 0).set("limits.history_rate", "100000").set("timers.t_hist", "\"30s\""));
    for arguments in ["--scenario mixed --window 20 --duration 1", "--scenario audit --rate 2000 --duration 1"] {
        report(&load(&gateway, arguments).output().unwrap(), &gateway);
    }
    assert!(gateway.counter("auep_done") > 1000 && gateway.counter("aucx_done") > 0);
    let wrong = load(&gateway, "--scenario call --rate 0 --duration 1").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    gateway.assert_sound();
}

/// Nobody there: the load ends, and not as if all were well.
#[test]
fn a_load_without_a_gateway_fails() {
    let mut gateway = Gateway::start(Tuning::new());
    gateway.signal(libc::SIGKILL);
    gateway.wait(SOON);
    let output = load(&gateway, "--scenario call --rate 100 --duration 1").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
