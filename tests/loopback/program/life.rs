//! From the start to the end of a gateway process (G-SHD-07, G-RST-01).

use super::agent::Agent;
use super::gateway::{Gateway, Kept, LOOK, PROGRAM, SOON, Tuning, Watch, eventually, pause};
use super::network::in_own_network;
use libc::{SIGINT, SIGKILL, SIGTERM};
use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A gateway that must not start; what it said.
fn fails_to_start(tuning: &Tuning, more: &[&str]) -> Output {
    tuning.write();
    let output = Command::new(PROGRAM).args(["run", "--config"]).arg(tuning.path()).args(more).output().unwrap();
    fs::remove_dir_all(&tuning.directory).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{output:?}");
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn one_line_says_that_it_is_ready() {
    let mut gateway = Gateway::start(Tuning::new());
    let addresses = gateway.tuning.addresses;
    let socket = gateway.tuning.socket().display().to_string();
    for part in [
        &format!("MGCP on {}", addresses.gateway()),
        "672 endpoints on simulated cards (no voice)",
        "1 core (",
        &socket,
        &format!("http://{}/metrics", addresses.metrics()),
        "try: tollgate show cores",
    ] {
        assert!(gateway.ready.contains(part), "{part:?} is not in {:?}", gateway.ready);
    }
    let mut agent = Agent::of(&gateway);
    agent.mail.clear();
    assert!(gateway.order(&["show", "cores"]).contains("simulated"), "{}", gateway.order(&["show", "cores"]));
    gateway.signal(SIGTERM);
    eventually("the end is told", SOON, || {
        agent.listen(LOOK);
        agent.commands("RSIP").iter().any(|restart| restart.get("RM") == Some("forced")).then_some(())
    });
    let (status, rest) = gateway.wait(SOON);
    assert_eq!((status.code(), &*rest), (Some(0), ""), "{}", gateway.log());
}

/// "Fresh clone: the two commands work as written", with every default; nothing is named on the command line.
#[test]
fn everything_has_a_default() {
    in_own_network("life::everything_has_a_default", || {
        let tuning = Tuning::new();
        let runtime = tuning.directory.clone();
        let mut command = Command::new(PROGRAM);
        command.arg("run").env("XDG_RUNTIME_DIR", &runtime);
        let mut gateway = Gateway::spawn(tuning, command);
        assert!(gateway.ready.contains("MGCP on 127.0.0.1:2427, 672 endpoints on simulated cards"), "{}", gateway.ready);
        let mut agent = Agent::at("127.0.0.1:2727".parse().unwrap(), "127.0.0.1:2427".parse().unwrap());
        agent.answers = true;
        let restart = agent.expect("RSIP", SOON);
        assert_eq!((&*restart.name, restart.get("RM")), ("*@tgw.example.net", Some("restart")));
        let ask = |name: &str| format!("AUEP {} {name} MGCP 1.0\r\n", Agent::id());
        for name in ["ds/ds3-1/ds1-28/24@tgw.example.net", "ds/ds3-1/ds1-1/1@[127.0.0.1]"] {
            let text = ask(name);
            agent.send(&text);
            let id = text.split(' ').nth(1).unwrap().parse().unwrap();
            assert_eq!(agent.final_of(id, SOON).code, Some(200), "{name}");
        }
        drop(agent);
        let tollgate = |arguments: &[&str]| Command::new(PROGRAM).args(arguments).env("XDG_RUNTIME_DIR", &runtime).output().unwrap();
        let load = tollgate(&["load", "--scenario", "call", "--rate", "1000", "--duration", "1"]);
        assert!(load.status.success(), "{load:?}");
        let show = tollgate(&["show", "spans"]);
        assert!(show.status.success() && String::from_utf8_lossy(&show.stdout).contains("ds/ds3-1/ds1-28"), "{show:?}");
        let reload = tollgate(&["reload"]);
        assert!(!reload.status.success() && said(&reload).contains("built-in"), "{reload:?}");
        gateway.signal(SIGINT);
        assert_eq!(gateway.wait(SOON * 2).0.code(), Some(0), "{}", gateway.log());
        assert!(!runtime.join("tollgate.sock").exists());
    });
}

/// Nobody reads what is printed, or the disk is full: no fault of the gateway, and none of its commands panics.
#[test]
fn what_cannot_be_printed_harms_nothing() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let tuning = Tuning::new();
    tuning.write();
    let path = tuning.path();
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg("--config").arg(&path).stdout(full()).stderr(full());
    let gateway = Kept(command.spawn().unwrap());
    let program = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.arg("--socket").arg(tuning.socket()).args(arguments);
        command
    };
    eventually("it serves", SOON, || program(&["show", "cores"]).output().unwrap().status.success().then_some(()));
    let check = ["check", path.to_str().unwrap()];
    for arguments in [&check[..], &["show", "cores"]] {
        let output = program(arguments).stdout(full()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && error.contains("No space left"), "{arguments:?}: {error}");
        let mut unread = program(arguments).stdout(Stdio::piped()).spawn().unwrap();
        drop(unread.stdout.take());
        assert_eq!(unread.wait().unwrap().code(), Some(0), "{arguments:?}");
    }
    drop(gateway);
    fs::remove_dir_all(&tuning.directory).unwrap();
}

#[test]
fn a_second_gateway_is_refused_what_the_first_one_has() {
    let gateway = Gateway::start(Tuning::new().layout(2, 0, 0));
    let first = gateway.tuning.addresses;
    let quoted = |address: std::net::SocketAddr| format!("{:?}", address.to_string());
    let port = said(&fails_to_start(&Tuning::new().set("gateway.listen", &format!("[{}]", quoted(first.gateway()))), &[]));
    assert!(
        port.contains(&format!("gateway.listen {}", first.gateway())) && port.contains("in use") && port.contains("give another address"),
        "{port}"
    );
    let metrics = said(&fails_to_start(&Tuning::new().set("metrics.address", &quoted(first.metrics())), &[]));
    assert!(metrics.contains(&format!("metrics.address {}", first.metrics())) && metrics.contains("give another address"), "{metrics}");
    let socket = gateway.tuning.socket().display().to_string();
    let operators = said(&fails_to_start(&Tuning::new(), &["--socket", &socket]));
    assert!(operators.contains(&socket) && operators.contains("a running gateway answers there"), "{operators}");
    // None of this has hurt the first one.
    gateway.order(&["show", "cores"]);
    let mut agent = Agent::of(&gateway);
    agent.create("ds/ds3-1/ds1-1/1");
}

#[test]
fn simulated_cards_stay_on_loopback() {
    let beyond = || Tuning::new().set("gateway.listen", "[\"0.0.0.0:0\"]").set("metrics.address", "\"off\"");
    let refused = said(&fails_to_start(&Tuning::new().set("gateway.listen", "[\"192.0.2.1:2427\"]"), &[]));
    assert!(refused.contains("allow_network"), "{refused}");
    assert!(said(&fails_to_start(&beyond(), &[])).contains("gateway.listen"), "a wildcard address is no interface of its own");
}

#[test]
fn the_end_is_told_graceful_then_forced() {
    let mut gateway = Gateway::start(Tuning::new().layout(2, 0, 0));
    let mut agent = Agent::of(&gateway);
    agent.create("ds/ds3-1/ds1-7/9");
    let watch = Watch::start();
    gateway.signal(SIGTERM);
    let graceful = agent.expect("RSIP", SOON);
    assert_eq!((&*graceful.name, graceful.get("RM")), ("*@tgw.example.net", Some("graceful")));
    // The calls that are up go on, new ones do not begin.
    assert_eq!(agent.ask("AUEP", "ds/ds3-1/ds1-7/9", &["F: I"]).code, Some(200));
    assert_ne!(agent.ask("CRCX", "ds/ds3-1/ds1-7/10", &["C: A2", "M: recvonly"]).code, Some(200));
    agent.mail.retain(|message| message.id != graceful.id);
    let forced = agent.expect("RSIP", SOON);
    assert!(watch.elapsed() >= Duration::from_millis(300), "shutdown_grace");
    assert_eq!((&*forced.name, forced.get("RM")), ("*@tgw.example.net", Some("forced")));
    assert_eq!(gateway.wait(SOON).0.code(), Some(0), "{}", gateway.log());
    assert!(!gateway.tuning.socket().exists());
}

#[test]
fn an_end_without_calls_is_quick() {
    let mut gateway = Gateway::start(Tuning::new().set("timers.shutdown_grace", "\"600s\""));
    let mut agent = Agent::of(&gateway);
    let connection = agent.create("ds/ds3-1/ds1-7/9");
    assert_eq!(agent.ask("DLCX", "ds/ds3-1/ds1-7/9", &["C: A1", &format!("I: {connection}")]).code, Some(250));
    gateway.signal(SIGINT);
    agent.listen(LOOK * 10);
    assert_eq!(gateway.wait(SOON).0.code(), Some(0), "{}", gateway.log());
    assert_eq!(agent.commands("RSIP").last().unwrap().get("RM"), Some("forced"), "{:?}", agent.mail);
}

/// Nobody answers the restart messages: the end comes all the same, a little later.
#[test]
fn an_end_nobody_answers_is_bounded() {
    let mut gateway = Gateway::start(Tuning::new());
    gateway.signal(SIGTERM);
    assert_eq!(gateway.wait(SOON).0.code(), Some(0), "{}", gateway.log());
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut gateway = Gateway::start(Tuning::new().set("timers.shutdown_grace", "\"600s\""));
    let mut agent = Agent::of(&gateway);
    agent.create("ds/ds3-1/ds1-7/9");
    gateway.signal(SIGTERM);
    agent.expect_restart("graceful", SOON);
    pause(LOOK * 5);
    assert!(gateway.is_running(), "{}", gateway.log());
    gateway.signal(SIGINT);
    assert_eq!(gateway.wait(SOON).0.code(), Some(128 + SIGINT));
}

/// What a killed gateway leaves behind does not keep the next one from starting.
#[test]
fn a_killed_gateway_can_be_started_again() {
    let mut gateway = Gateway::start(Tuning::new());
    Agent::of(&gateway).create("ds/ds3-1/ds1-7/9");
    gateway.signal(SIGKILL);
    gateway.wait(SOON);
    assert!(gateway.tuning.socket().exists());
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg("--config").arg(gateway.tuning.path());
    let again = Gateway::spawn(gateway.tuning.copy(), command);
    let mut agent = Agent::of(&again);
    assert_eq!(agent.ask("AUEP", "ds/ds3-1/ds1-7/9", &["F: I"]).get("I").unwrap_or_default(), "");
}
