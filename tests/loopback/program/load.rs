//! `tollgate load` against the gateway, by every transport in every layout of cores (must hold 1 and 2; issue 3, must hold 1).

use super::gateway::{Gateway, PROGRAM, SOON, Tuning, Watch, eventually, signal_to};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tollgate::host::transport::Kind;

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

/// The layouts there are tests for: cores of role both, transport, shard.
pub const LAYOUTS: [(u8, u8, u8); 5] = [(1, 0, 0), (2, 0, 0), (4, 0, 0), (0, 1, 1), (0, 1, 3)];

/// Datagrams are lost and doubled both ways: every transaction ends, nothing is executed twice, and no connection is left.
pub fn no_check_fails(tuning: Tuning, run: impl FnOnce(&mut Command) -> Output) -> Gateway {
    let gateway = Gateway::start(tuning.set("limits.history_rate", "5000"));
    let arguments = "--scenario call --rate 2000 --duration 1 --loss 0.02 --duplicate 0.05 --standing 20 --seed 7";
    let report = report(&run(&mut load(&gateway, arguments)), &gateway);
    assert!(gateway.counter("crcx_done") > 300, "{report}");
    assert!(gateway.counter("commands_repeated") > 0, "the doubles came: {report}");
    eventually("no connection is left", SOON, || gateway.rows(&["connections"]).is_empty().then_some(()));
    // The load got as many final responses as there were executions: each of its commands one.
    for (verb, code, counter) in [("CRCX", "200", "crcx_done"), ("MDCX", "200", "mdcx_done"), ("DLCX", "250", "dlcx_done")] {
        assert_eq!(report["verbs"][verb]["codes"][code], gateway.counter(counter), "{verb}: {report}");
    }
    gateway.assert_sound();
    gateway
}

/// By one of the kernel's transports in each layout (past the kernel: xdp.rs).
fn in_each_layout(kind: Kind) {
    if let Err(reason) = kind.probe() {
        return eprintln!("skipped: transport {}: {reason}", kind.name());
    }
    let first = Tuning::new();
    for (both, transport, shard) in LAYOUTS {
        let tuning = Tuning::at(first.addresses).layout(both, transport, shard);
        let tuning = tuning.set("transport.kind", &format!("{:?}", kind.name()));
        let gateway = no_check_fails(tuning, |load| load.output().unwrap());
        assert!(gateway.ready.contains(&format!("transport {}", kind.name())), "{}", gateway.ready);
    }
    std::fs::remove_dir_all(&first.directory).unwrap();
}

#[test]
fn no_check_fails_by_io_uring_in_any_layout() {
    in_each_layout(Kind::Uring);
}

#[test]
fn no_check_fails_by_recvmmsg_in_any_layout() {
    in_each_layout(Kind::Mmsg);
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

/// A load of which no call was taken is no success: a script that watches a gateway by it must see that.
#[test]
fn a_load_whose_calls_are_all_refused_fails() {
    let gateway = Gateway::start(Tuning::new());
    gateway.order(&["drain"]);
    let output = load(&gateway, "--scenario call --rate 200 --duration 1").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["passed"], &found["failed_checks"]["every call or every audit was refused"]), (&false.into(), &1.into()));
    gateway.order(&["drain", "--off"]);
    report(&load(&gateway, "--scenario call --rate 200 --duration 1").output().unwrap(), &gateway);
}

/// Each Notify is answered together with the next request, in one datagram (RFC 3435 4.4.1); with the rule broken, apart.
#[test]
fn events_are_asked_for_again_with_the_answer() {
    for (more, joined) in [("", true), (" --break lockstep", false)] {
        let gateway = Gateway::start(Tuning::new());
        let arguments = "--scenario call --rate 10 --duration 4 --hold 2000 --endpoints ds/ds3-1/ds1-1/[1-2] --events D/[0-9](N)";
        let running = load(&gateway, &format!("{arguments}{more}")).spawn().unwrap();
        eventually("calls are up", SOON, || (gateway.rows(&["connections"]).len() == 2).then_some(()));
        for digit in ["1", "2", "3"] {
            let before = gateway.counter("notifies_sent");
            gateway.order(&["sim", "digits", "ds/ds3-1/ds1-1/1", digit]);
            eventually("it is notified", SOON, || (gateway.counter("notifies_sent") > before).then_some(()));
        }
        let report = report(&running.wait_with_output().unwrap(), &gateway);
        let count = |key: &str| report["rules"][key].as_u64().unwrap();
        assert!(count("requests") > 0 && (count("requests_with_answer") > 0) == joined, "{report}");
        gateway.assert_sound();
    }
}

/// Nobody there, or somebody who says nothing: that is said within seconds, with what the network says of it.
#[test]
fn a_load_without_a_gateway_says_so() {
    let (addresses, socket) = (Tuning::new().addresses, UdpSocket::bind("127.0.0.1:0").unwrap());
    let (nobody, silent) = (addresses.gateway(), socket.local_addr().unwrap());
    let arguments = "--scenario call --rate 100 --duration 1";
    let refused = load_between(&[nobody], addresses.agent(), arguments).spawn().unwrap();
    let unanswered = load_between(&[silent], addresses.stranger(), arguments).spawn().unwrap();
    let (ip, trunks) = (addresses.agent().ip(), ["ds/ds1-1=IP:51000,IP:50000", "ds/ds1-2=IP:51001,IP:50001"]);
    let [from, to] = trunks.map(|trunk| trunk.replace("IP", &ip.to_string()));
    let arguments = format!("--voice --duration 1 --trunk {from} --to-trunk {to}");
    let voice = load_between(&[nobody], SocketAddr::new(ip, 0), &arguments).spawn().unwrap();
    for (load, words) in [
        (refused, format!("nothing answers at {nobody}: connection refused (ECONNREFUSED)")),
        (voice, format!("nothing answers at {nobody}: connection refused (ECONNREFUSED)")),
        (unanswered, format!("nothing answers at {silent}\n")),
    ] {
        let watch = Watch::start();
        let output = load.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(&words) && output.stdout.is_empty(), "{error}");
        assert!(watch.elapsed() < Duration::from_secs(15), "{:?}", watch.elapsed());
    }
}

/// A signal ends the load before anything has answered, while it runs, and while calls are ended though the gateway is gone.
#[test]
fn a_signal_ends_a_load_in_every_phase() {
    let tuning = Tuning::new();
    let arguments = "--scenario call --rate 100 --duration 600 --standing 10";
    let mut opening = load_between(&[tuning.addresses.gateway()], tuning.addresses.agent(), arguments).spawn().unwrap();
    wait_for("clearing the endpoints", &mut opening);
    assert_eq!(terminate(opening), (Some(1), false));

    let mut gateway = Gateway::start(tuning);
    let mut running = load(&gateway, arguments).spawn().unwrap();
    wait_for("failed checks", &mut running);
    assert_eq!(terminate(running), (Some(0), true), "calls are ended, and every check holds");

    let mut orphan = load(&gateway, arguments).spawn().unwrap();
    wait_for("failed checks", &mut orphan);
    gateway.signal(libc::SIGKILL);
    gateway.wait(SOON);
    assert_eq!(terminate(orphan), (Some(1), true));
}

/// Waits for progress with these words.
fn wait_for(words: &str, load: &mut Child) {
    let lines = BufReader::new(load.stderr.as_mut().unwrap()).lines().map_while(Result::ok);
    assert!(lines.into_iter().any(|line| line.contains(words)), "{words}");
}

/// Sends SIGTERM: the exit status, and whether there is a report.
fn terminate(load: Child) -> (Option<i32>, bool) {
    let watch = Watch::start();
    signal_to(load.id(), libc::SIGTERM);
    let output = load.wait_with_output().unwrap();
    assert!(watch.elapsed() < SOON, "{:?}", watch.elapsed());
    (output.status.code(), !output.stdout.is_empty())
}
