//! What operators see and do: `show`, `block`, `unblock`, `free`, `drain`, `sim`, and who may.

use super::agent::Agent;
use super::gateway::{Gateway, PROGRAM, SOON, Tuning, Watch, eventually};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

fn names(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["name"].as_str().unwrap()).collect()
}

#[test]
fn everything_can_be_shown_in_both_forms() {
    let gateway = Gateway::start(Tuning::new().layout(2, 0, 0));
    let mut agent = Agent::of(&gateway);
    let connection = agent.create("ds/ds3-1/ds1-5/17");
    for what in ["cores", "spans", "alarms", "history", "endpoints", "connections", "agents", "transactions", "counters"] {
        let json = gateway.show(&[what]);
        assert_eq!(json["gateway"]["simulated"], true, "{what}: {json}");
        assert!(json[what].is_object(), "{what}: {json}");
        let table = gateway.order(&["show", what]);
        assert!(table.contains("simulated") && serde_json::from_str::<Value>(&table).is_err(), "{what}: {table}");
    }
    let cores = gateway.rows(&["cores"]);
    assert_eq!(cores.iter().map(|core| core["load"]["endpoints"].as_u64().unwrap()).sum::<u64>(), 672);
    assert!(cores.iter().all(|core| core["role"] == "both" && core["state"] == "up"), "{cores:?}");
    assert_eq!(gateway.rows(&["spans"]).len(), 29);
    assert_eq!(gateway.rows(&["endpoints"]).len(), 672);
    assert_eq!(gateway.rows(&["endpoints", "ds/ds3-1/ds1-5/*"]).len(), 24);
    assert_eq!(names(&gateway.rows(&["endpoints", "--state", "busy"])), ["ds/ds3-1/ds1-5/17"]);
    assert_eq!(gateway.rows(&["endpoints", "--state", "busy,up"]).len(), 1, "both words hold");
    assert_eq!(gateway.rows(&["endpoints", "--state", "up,unblocked"]).len(), 672);
    assert_eq!(gateway.rows(&["endpoints", "--state", "busy,down"]).len(), 0);
    assert!(gateway.refused(&["show", "endpoints", "--state", "idle,asleep"]).contains("asleep"));
    assert_eq!(agent.ask("CRCX", "ds/ds3-1/ds1-29/1", &["C: 1", "M: recvonly"]).code, Some(500));
    let of_agent = &gateway.rows(&["agents"])[0];
    assert_eq!((&of_agent["commands_done"], &of_agent["commands_refused"]), (&1.into(), &1.into()));
    assert_eq!((&of_agent["own_done"], &of_agent["own_lost"]), (&1.into(), &0.into()), "the restart");
    assert!(of_agent["heard_ms"].as_u64().is_some_and(|ms| ms < 60_000), "{of_agent}");
    assert_eq!(gateway.rows(&["connections"])[0]["connection"], connection.as_str());
    let endpoint = &gateway.show(&["endpoint", "ds/ds3-1/ds1-5/17"])["endpoint"];
    assert_eq!((&endpoint["administrative"], &endpoint["operational"]), (&"unblocked".into(), &"up".into()));
    assert_eq!(endpoint["connections"][0]["call"], "A1");
    let table = gateway.order(&["show", "endpoint", "ds/ds3-1/ds1-5/17"]);
    assert!(table.contains(&connection) && table.contains("unblocked"), "{table}");
    assert!(gateway.counter("crcx_done") == 1 && gateway.counter("datagrams_received") > 1);
    assert!(gateway.refused(&["show", "endpoints", "--state", "asleep"]).contains("idle"), "the words there are");
    gateway.refused(&["show", "endpoint", "ds/ds3-1/ds1-29/1"]);
}

/// What the signalling of a trunk waits for is a column and a state of its own; a trunk in use is not idle.
#[test]
fn lines_show_what_they_wait_for() {
    let tuning = Tuning::new().layout(2, 0, 0).set("span.0.signalling", "\"mf-wink\"");
    let gateway = Gateway::start(tuning);
    let mut agent = Agent::of(&gateway);
    let trunk = "ds/ds3-1/ds1-1/1";
    let in_state = |state: &str| gateway.rows(&["endpoints", "--state", state]);
    assert_eq!((in_state("idle").len(), in_state("lockout").len()), (672, 0));
    gateway.order(&["sim", "far", trunk, "hangs"]);
    agent.create(trunk);
    let call = ["X: 1", "S: MS/sup(addr(k0,5,5,5,s0))"];
    assert_eq!(agent.ask("RQNT", trunk, &call).code, Some(200));
    eventually("it is answered", SOON, || (names(&in_state("answered")) == [trunk]).then_some(()));
    assert_eq!((in_state("busy").len(), in_state("idle").len()), (1, 671));
    let table = gateway.order(&["show", "endpoints", trunk]);
    let cells: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((cells[1][5], cells[2][5]), ("LINE", "answered"), "{table}");
    // The agent hangs up and the far end does not: first it is waited for, then it holds the line.
    assert_eq!(agent.ask("RQNT", trunk, &["X: 2", "S: MS/rel"]).code, Some(200));
    eventually("it is waited for", SOON, || (names(&in_state("releases")) == [trunk]).then_some(()));
    let endpoint = &gateway.show(&["endpoint", trunk])["endpoint"];
    assert!(endpoint["line_left_ms"].as_u64().is_some_and(|ms| ms <= 30_000), "{endpoint}");
    // What its page tells the operator is what an audit tells the agent.
    let events = &endpoint["events"];
    let audit = agent.ask("AUEP", trunk, &["F: R, ES"]);
    assert_eq!(
        (events["audit"]["R"].as_str(), events["audit"]["ES"].as_str()),
        (audit.get("R"), audit.get("ES").filter(|it| !it.is_empty()))
    );
    assert_eq!((events["unanswered"].as_u64(), events["state"].as_str()), (Some(0), Some("detected")), "{endpoint}");
    let table = gateway.order(&["show", "endpoint", trunk]);
    assert!(table.contains("line            releases (") && table.contains("0 Notify unanswered"), "{table}");
    let refused = gateway.refused(&["show", "endpoints", "--state", "asleep"]);
    assert!(refused.contains("lockout") && refused.contains("far-blocked"), "{refused}");
    gateway.assert_sound();
}

/// What was wrong in the night is still to be seen in the morning, though it is over.
#[test]
fn alarms_that_are_over_have_a_history() {
    let gateway = Gateway::start(Tuning::new());
    gateway.order(&["drain"]);
    let states = || -> Vec<bool> {
        let rows = gateway.rows(&["history", "gateway"]);
        rows.iter().filter(|row| row["kind"] == "draining").map(|row| row["over"].as_bool().unwrap()).collect()
    };
    eventually("its begin is kept", SOON, || (states() == [false]).then_some(()));
    gateway.order(&["drain", "--off"]);
    eventually("its end too", SOON, || (states() == [false, true]).then_some(()));
    assert!(gateway.order(&["show", "history"]).contains("draining: no new calls are taken"));
    assert_eq!(gateway.rows(&["history", "--state", "over"]).len(), 1);
}

#[test]
fn nobody_answers_where_no_gateway_runs() {
    let output = Command::new(PROGRAM).args(["show", "cores", "--socket", "/nowhere/tollgate.sock"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no gateway is running"), "{output:?}");
}

/// Two hundred who connect and say nothing keep nobody out; each is told why it was sent away.
#[test]
fn idle_operators_make_room() {
    let gateway = Gateway::start(Tuning::new());
    let mut idle: Vec<_> = (0..200).map(|_| UnixStream::connect(gateway.tuning.socket()).unwrap()).collect();
    for _ in 0..5 {
        assert_eq!(gateway.rows(&["cores"]).len(), 1);
    }
    let mut told = String::new();
    idle[0].read_to_string(&mut told).unwrap();
    assert!(told.contains("busy"), "{told}");
}

#[test]
fn blocked_endpoints_refuse_until_they_are_unblocked() {
    let gateway = Gateway::start(Tuning::new().layout(2, 0, 0));
    let mut agent = Agent::of(&gateway);
    gateway.order(&["block", "ds/ds3-1/ds1-3/*", "--force"]);
    let forced = agent.expect("RSIP", SOON);
    assert_eq!((&*forced.name, forced.get("RM")), ("ds/ds3-1/ds1-3/*@tgw.example.net", Some("forced")));
    // The lead core tells the agent and the owner of the span at once: the agent may be faster by a moment.
    let request = |agent: &mut Agent| agent.ask("RQNT", "ds/ds3-1/ds1-3/1", &["X: 1"]).code.unwrap();
    eventually("the owner knows", SOON, || (request(&mut agent) != 200).then_some(()));
    assert_eq!(agent.ask("CRCX", "ds/ds3-1/ds1-3/1", &["C: A1", "M: recvonly"]).code, Some(501));
    let span = &gateway.rows(&["spans", "ds/ds3-1/ds1-3"])[0];
    assert_eq!((&span["administrative"], &span["operational"], &span["usage"]["in_service"]), (&"blocked".into(), &"up".into(), &0.into()));
    agent.create("ds/ds3-1/ds1-4/1");
    agent.mail.clear();
    gateway.order(&["unblock", "ds/ds3-1/ds1-3/*"]);
    let restart = agent.expect("RSIP", SOON);
    assert_eq!((&*restart.name, restart.get("RM")), ("ds/ds3-1/ds1-3/*@tgw.example.net", Some("restart")));
    eventually("the owner knows", SOON, || (request(&mut agent) == 200).then_some(()));
    agent.create("ds/ds3-1/ds1-3/1");
    gateway.refused(&["block", "ds/ds3-9/*"]);
}

/// Without an option a block waits for the call; `--graceful` waits so many seconds, and says so (RD).
#[test]
fn a_graceful_block_waits() {
    let gateway = Gateway::start(Tuning::new().layout(2, 0, 0));
    let mut agent = Agent::of(&gateway);
    for (name, options, delay) in [("ds/ds3-1/ds1-3/7", &[][..], None), ("ds/ds3-1/ds1-4/7", &["--graceful", "1"], Some("1"))] {
        let full = format!("{name}@tgw.example.net");
        let connection = agent.create(name);
        let watch = Watch::start();
        let said = gateway.order(&[&["block", name], options].concat());
        assert!(said.contains(if delay.is_some() { "in 1 s" } else { "when its calls have ended" }), "{said}");
        let graceful = agent.expect("RSIP", SOON);
        assert_eq!((&*graceful.name, graceful.get("RM"), graceful.get("RD")), (&*full, Some("graceful"), delay));
        assert_eq!(gateway.show(&["endpoint", name])["endpoint"]["administrative"], "leaving");
        agent.mail.clear();
        if delay.is_none() {
            assert_eq!(agent.ask("DLCX", name, &["C: A1", &format!("I: {connection}")]).code, Some(250));
        }
        let forced = agent.expect("RSIP", SOON);
        assert_eq!((&*forced.name, forced.get("RM")), (&*full, Some("forced")));
        assert!(delay.is_none() || watch.elapsed() >= Duration::from_secs(1));
        assert_eq!(gateway.show(&["endpoint", name])["endpoint"]["administrative"], "blocked");
        agent.mail.clear();
    }
    eventually("no call is left", SOON, || gateway.rows(&["connections"]).is_empty().then_some(()));
}

#[test]
fn free_clears_one_endpoint() {
    let gateway = Gateway::start(Tuning::new());
    let mut agent = Agent::of(&gateway);
    let (stuck, other) = ("ds/ds3-1/ds1-3/7", "ds/ds3-1/ds1-3/8");
    agent.create(stuck);
    agent.create(other);
    gateway.order(&["free", stuck]);
    eventually("the connection ends", SOON, || (gateway.rows(&["connections"]).len() == 1).then_some(()));
    assert_eq!(gateway.rows(&["connections"])[0]["endpoint"], other);
    agent.create(stuck);
    gateway.refused(&["free", "ds/ds3-1/ds1-3/*"]);
}

#[test]
fn a_drained_gateway_takes_no_new_calls() {
    let gateway = Gateway::start(Tuning::new().layout(2, 0, 0));
    let mut agent = Agent::of(&gateway);
    let names: Vec<_> = (1..=8).map(|n| format!("ds/ds3-1/ds1-{n}/1")).collect();
    let kept = agent.create(&names[0]);
    gateway.order(&["drain"]);
    eventually("every core drains", SOON, || gateway.rows(&["cores"]).iter().all(|core| core["load"]["draining"] == true).then_some(()));
    for name in &names {
        let code = agent.ask("CRCX", name, &["C: A2", "M: recvonly"]).code;
        assert!(code.is_some_and(|code| code >= 400), "{name}: {code:?}");
    }
    assert_eq!(agent.ask("MDCX", &names[0], &["C: A1", &format!("I: {kept}"), "M: inactive"]).code, Some(200));
    assert_eq!(agent.ask("DLCX", &names[0], &["C: A1", &format!("I: {kept}")]).code, Some(250));
    assert!(gateway.counter("drain_refused") >= 8);
    gateway.order(&["drain", "--off"]);
    eventually("no core drains", SOON, || gateway.rows(&["cores"]).iter().all(|core| core["load"]["draining"] == false).then_some(()));
    names.iter().for_each(|name| drop(agent.create(name)));
}

#[test]
fn cards_do_what_sim_says() {
    let gateway = Gateway::start(Tuning::new());
    let mut agent = Agent::of(&gateway);
    gateway.order(&["sim", "refuse", "1"]);
    let refused = agent.ask("CRCX", "ds/ds3-1/ds1-3/7", &["C: A1", "M: recvonly"]).code.unwrap();
    assert!(refused >= 400, "{refused}");
    assert_eq!(gateway.counter("card_refused"), 1);
    agent.create("ds/ds3-1/ds1-3/7");
    gateway.order(&["sim", "delay", "400"]);
    let id = agent.command("CRCX", "ds/ds3-1/ds1-3/8", &["C: A1", "M: recvonly"]);
    assert_eq!(agent.final_of(id, SOON).code, Some(200));
    assert!(agent.mail.iter().any(|message| message.id == id && message.code == Some(100)), "{:?}", agent.mail);
    gateway.order(&["sim", "delay", "0"]);
    for bad in [&["sim", "loss", "1000001"][..], &["sim", "stall", "9", "10"], &["sim", "alarm", "ds/ds3-1", "flood"]] {
        gateway.refused(bad);
    }
}

/// The socket is for the owner and the group; only the owner (and root) changes things, only who may open it reads.
#[test]
fn changes_are_for_the_owner_of_the_socket() {
    let gateway = Gateway::start(Tuning::new());
    let socket = gateway.tuning.socket();
    let file = fs::metadata(&socket).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o660);
    if file.uid() != 0 {
        eprintln!("skipped in part: another user than the owner is needed, and only root can become one");
        return;
    }
    // Another user, first of another group, then of the group of the socket. The program must be where everybody may run it.
    let program = gateway.tuning.directory.join("tollgate");
    fs::copy(PROGRAM, &program).unwrap();
    fs::set_permissions(&gateway.tuning.directory, fs::Permissions::from_mode(0o755)).unwrap();
    let as_other = |group: u32, arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", &group.to_string(), "--clear-groups"]).arg(&program);
        command.arg("--socket").arg(&socket).args(arguments).output()
    };
    match as_other(65534, &["--version"]) {
        Ok(output) if output.status.success() => {}
        tried => {
            eprintln!("skipped in part: setpriv does not work here: {tried:?}");
            return;
        }
    }
    let stranger = as_other(65534, &["show", "cores"]).unwrap();
    assert!(!stranger.status.success() && String::from_utf8_lossy(&stranger.stderr).contains("denied"), "{stranger:?}");
    let group = file.gid();
    for reads in [&["show", "cores"][..], &["show", "endpoints"], &["reload", "--dry-run"]] {
        let output = as_other(group, reads).unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    for changes in [
        &["block", "*", "--force"][..],
        &["unblock", "*"],
        &["free", "ds/ds3-1/ds1-1/1"],
        &["drain"],
        &["reload"],
        &["sim", "alarm", "ds/ds3-1", "los", "--now"],
        &["sim", "stall", "0", "1000"],
    ] {
        let output = as_other(group, changes).unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && text.contains("user 65534 may look only"), "{changes:?}: {output:?}");
    }
    let spans = gateway.rows(&["spans"]);
    assert!(spans.iter().all(|span| span["administrative"] == "unblocked" && span["operational"] == "up"), "{spans:?}");
}
