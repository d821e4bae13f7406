//! `tollgate trace`: one call as text, and everything as a capture that tshark's MGCP dissector reads without a complaint.

use super::agent::Agent;
use super::gateway::{Gateway, Kept, PROGRAM, SOON, Tuning, eventually};
use super::reload::change;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Starts a trace; it has begun when this returns.
pub fn trace(gateway: &Gateway, arguments: &[&str]) -> Kept {
    let mut command = Command::new(PROGRAM);
    command.arg("--socket").arg(gateway.tuning.socket()).arg("trace").args(arguments);
    let output = fs::File::create(gateway.tuning.directory.join("trace")).unwrap();
    let child = command.stdout(output).stderr(Stdio::null()).spawn().unwrap();
    eventually("it traces", SOON, || gateway.log().contains(": trace ").then_some(()));
    Kept(child)
}

/// Each datagram once, whichever core has the socket; only what was asked for, with the answers.
#[test]
fn a_trace_shows_one_endpoint_and_its_answers() {
    for (both, transport, shard) in [(2, 0, 0), (0, 1, 1)] {
        let gateway = Gateway::start(Tuning::new().layout(both, transport, shard));
        let mut agent = Agent::of(&gateway);
        let running = trace(&gateway, &["ds/ds3-1/ds1-5/17", "--agent", "ca", "--seconds", "60"]);
        assert!(gateway.refused(&["trace"]).contains("somebody else traces"));
        agent.create("ds/ds3-1/ds1-6/1");
        let connection = agent.create("ds/ds3-1/ds1-5/17");
        gateway.order(&["block", "ds/ds3-1/ds1-5", "--force"]);
        agent.expect("RSIP", SOON);
        let text = || fs::read_to_string(gateway.tuning.directory.join("trace")).unwrap();
        let all = ["  CRCX ", &format!("  I: {connection}"), "  RSIP ", "  200 "];
        eventually("everything is shown", SOON, || all.iter().all(|part| text().contains(part)).then_some(()));
        assert!(text().matches("  CRCX ").count() == 1 && !text().contains("ds1-6"), "{}", text());
        assert!(text().contains(" received from ca: ") && text().contains(" sent to ca: "), "{}", text());
        drop(running);
        // Whoever went away is noticed, and the next one may.
        eventually("the trace is over", SOON, || gateway.tollgate(&["trace", "--count", "0"]).status.success().then_some(()));
        assert!(gateway.refused(&["trace", "--agent", "cx"]).contains("no agent"));
        gateway.assert_sound();
    }
}

/// Everything the gateway writes in a run with calls, audits, events, restarts, deletions of its own and refusals.
#[test]
fn tshark_reads_everything_the_gateway_writes() {
    if Command::new("tshark").arg("-v").output().is_err() {
        eprintln!("skipped: tshark_reads_everything_the_gateway_writes: no tshark here (Debian package tshark)");
        return;
    }
    let spans = "[{ kind = \"t3\", unit = 1 }, { kind = \"t1\", unit = 1, signalling = \"mf-wink\" }]";
    let tuning = Tuning::new().layout(2, 0, 0).set("agent.0.ranges", "true").list("span", spans);
    let mut gateway = Gateway::start(tuning);
    let file = gateway.tuning.directory.join("capture");
    let mut agent = Agent::silent(&gateway);
    let tracing = trace(&gateway, &["--pcap", file.to_str().unwrap()]);
    talk(&gateway, &mut agent);
    talk_of_packages(&gateway, &mut agent);
    take_long(&gateway, &mut agent);
    fall_silent(&mut gateway, &mut agent);
    let sent = gateway.counter("datagrams_sent");
    let read_as = |form: &[&str], filter: &str| {
        let mut command = Command::new("tshark");
        command.args(["-n", "-d", "udp.port==2727,mgcp", "-r"]).arg(&file).args(form).args(["-Y", filter]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let read = |filter: &str| read_as(&[], filter);
    let ours = format!("ip.src == {} && ", gateway.tuning.addresses.gateway().ip());
    eventually("all of it is in the file", SOON, || {
        let count = read(&format!("{ours}mgcp")).lines().count() as u64;
        // The first ones went before the trace.
        (count + 5 > sent && count > 40).then_some(())
    });
    drop(tracing);
    let captured = fs::read(&file).unwrap();
    for written in WRITTEN {
        assert!(captured.windows(written.len()).any(|octets| octets == written.as_bytes()), "{written:?} was sent");
    }
    let not_mgcp = read(&format!("{ours}!mgcp"));
    assert_eq!(not_mgcp, "", "every datagram is MGCP");
    // It does not know parameters of packages, which begin with the name of theirs (RFC 3624; base package B).
    let names = ["-T", "fields", "-E", "aggregator=|", "-e", "mgcp.param.invalid"];
    let unknown = read_as(&names, &format!("{ours}mgcp.param.invalid"));
    let unknown: Vec<&str> = unknown.trim_end().split(['|', '\n']).collect();
    assert!(unknown.iter().all(|parameter| parameter.starts_with("BA/") || parameter.starts_with("B/")), "{unknown:?}");
    let bad = "(_ws.malformed || mgcp.unknown_parameter || mgcp.rsp.malformed_parameter || mgcp.rsp.rspcode.invalid)";
    let found = read(&format!("{ours}{bad}"));
    assert_eq!(found, "", "{}", gateway.log());
}

/// What no agent writes, and is to be among what the gateway wrote.
const WRITTEN: [&str; 18] = [
    "RSIP ",
    "NTFY ",
    "\r\nE: 905 Facility failure",
    "\r\nRM: forced",
    "\r\nRM: graceful",
    "\r\nRM: cancel-graceful",
    "\r\nRM: disconnected",
    "\r\n.\r\n200 ",
    " in progress\r\n",
    "\r\nK:\r\n",
    "\r\nO: MS/sup",
    "MS/inf(k0,5,5,5,s0)",
    "\r\nPL: MS:",
    "\r\nO: SL/oc",
    "\r\nBA/Z: ",
    "\r\nBA/S: T",
    "\r\nB/PR: ",
    "c=LOCAL EPN ",
];

/// Trunks with signalling of their own, and packages with parameters of their own.
fn talk_of_packages(gateway: &Gateway, agent: &mut Agent) {
    let (name, trunk) = ("ds/ds3-1/ds1-5/18", "ds/ds1-1/1");
    agent.mail.clear();
    assert_eq!(agent.ask("RQNT", trunk, &["X: C1", "R: ms/sup(n), ms/inf(n)", "Q: process,loop"]).code, Some(200));
    gateway.order(&["sim", "seize", trunk, "k0,5,5,5,s0"]);
    eventually("address digits come", SOON, || {
        agent.listen(Duration::from_millis(20));
        agent.commands("NTFY").iter().any(|told| told.get("O").is_some_and(|told| told.contains("MS/inf"))).then_some(())
    });
    assert_eq!(agent.ask("RQNT", trunk, &["X: C2", "R: XYZ/ab"]).code, Some(518));
    agent.ask("RQNT", trunk, &["X: C3", "S: ms/rlc"]);
    agent.ask("AUEP", trunk, &["F: A, R, S, O, T, ES, PL"]);
    for report in ["BA/Z", "BA/C, BA/M", "BA/S(I)", "BA/X"] {
        assert_eq!(agent.ask("AUEP", "*", &[&format!("BA/F: {report}")]).code, Some(200), "{report}");
    }
    agent.ask("AUEP", "*", &["BA/F: BA/Q"]);
    let request = ["X: C4", "B/PR: T/co1(N), B/qbo", "R: SL/oc(N), SL/of(N)", "S: SL/s(d/1,T/nm(to=300))"];
    agent.mail.clear();
    assert_eq!(agent.ask("RQNT", name, &request).code, Some(200));
    agent.ask("AUEP", name, &["F: S, R, B/PR, B/NS"]);
    agent.expect("NTFY", SOON);
    agent.ask("CRCX", name, &["C: A1", "M: recvonly", "L: nt:LOCAL"]);
    agent.ask("DLCX", name, &[]);
}

/// What takes a while: a slow card, and a block that waits and is taken back.
fn take_long(gateway: &Gateway, agent: &mut Agent) {
    gateway.order(&["sim", "delay", "400"]);
    let id = agent.command("CRCX", "ds/ds3-1/ds1-5/19", &["C: A1", "M: recvonly"]);
    let made = agent.final_of(id, SOON);
    assert_eq!((made.code, made.get("K")), (Some(200), Some("")));
    agent.send(&format!("000 {id}\r\n"));
    gateway.order(&["sim", "delay", "0"]);
    agent.mail.clear();
    gateway.order(&["block", "ds/ds3-1/ds1-5/19", "--graceful", "60"]);
    agent.expect("RSIP", SOON);
    gateway.order(&["unblock", "ds/ds3-1/ds1-5/19"]);
    agent.ask("DLCX", "ds/ds3-1/ds1-5/19", &[]);
}

/// The agent answers a Notify no more; when it speaks again it is told of the disconnect in front of the response.
fn fall_silent(gateway: &mut Gateway, agent: &mut Agent) {
    let name = "ds/ds3-1/ds1-5/20";
    assert_eq!(agent.ask("RQNT", name, &["X: D1", "R: D/[0-9](N)"]).code, Some(200));
    for (key, value) in [("timers.max1", "1"), ("timers.max2", "2"), ("timers.t_max", "\"1s\"")] {
        change(gateway, key, value);
    }
    gateway.order(&["reload"]);
    agent.answers = false;
    gateway.order(&["sim", "digits", name, "5"]);
    eventually("it is disconnected", SOON, || (gateway.counter("endpoints_disconnected") > 0).then_some(()));
    agent.answers = true;
    agent.mail.clear();
    assert_eq!(agent.ask("RQNT", name, &["X: D2", "R: D/[0-9](N)"]).code, Some(200));
    agent.expect_restart("disconnected", SOON);
    // An agent of another profile.
    change(gateway, "agent.0.profile", "\"tgcp\"");
    gateway.order(&["reload"]);
    gateway.order(&["block", name, "--force"]);
    eventually("it is told in the profile's words", SOON, || {
        agent.listen(Duration::from_millis(20));
        agent.mail.iter().any(|told| told.lines[0].ends_with(" MGCP 1.0 TGCP 1.0")).then_some(())
    });
}

/// An agent that uses every verb, right and wrong.
fn talk(gateway: &Gateway, agent: &mut Agent) {
    agent.answers = true;
    agent.expect("RSIP", SOON);
    let name = "ds/ds3-1/ds1-5/17";
    let connection = agent.create(name);
    let sdp = "\r\nv=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0 8\r\na=ptime:20";
    let id = format!("I: {connection}");
    let options = "L: p:20, a:PCMU;PCMA, e:on, s:off, gc:auto, t:b8";
    assert_eq!(agent.ask("MDCX", name, &["C: A1", &id, "M: sendrecv", options, sdp]).code, Some(200));
    for mode in ["sendonly", "recvonly", "inactive", "loopback", "conttest", "netwloop", "netwtest", "confrnce"] {
        agent.ask("MDCX", name, &["C: A1", &id, &format!("M: {mode}")]);
    }
    agent.ask("AUCX", name, &[&id, "F: C, N, L, M, P, LC, RC"]);
    let everything = "F: A, R, D, S, X, N, I, T, O, ES, B, Q, E, RM, RD, PL, MD";
    agent.ask("AUEP", name, &[everything]);
    agent.ask("AUEP", "ds/ds3-1/ds1-5/*", &[]);
    agent.ask("AUEP", "ds/ds3-1/ds1-5/[1-12]", &[]);
    agent.ask("AUEP", "*", &["F: MD"]);
    agent.ask("EPCF", name, &["B: e:mu"]);
    agent.ask("CRCX", "ds/ds3-1/ds1-6/$", &["C: B2", "M: recvonly"]);
    agent.ask("CRCX", "ds/ds3-1/ds1-6/1", &["C: B3", "M: sendrecv", "Z2: ds/ds3-1/ds1-6/2@tgw.example.net"]);
    // Events, digits, an answer to each.
    let request = ["X: AB12", "R: D/[0-9#*](N), G/ft(N), G/mt(N)", "S: G/rt", "Q: process,loop"];
    assert_eq!(agent.ask("RQNT", name, &request).code, Some(200));
    for digits in ["1", "2#", "5"] {
        gateway.order(&["sim", "digits", name, digits]);
        agent.expect("NTFY", SOON);
        agent.mail.retain(|message| message.verb != "NTFY");
    }
    agent.ask("RQNT", name, &["X: AB13", "D: (5xxx|#)", "R: D/[0-9#](D)"]);
    agent.ask("AUEP", name, &[everything]);
    // What is wrong in all ways.
    agent.ask("CRCX", name, &[]);
    agent.ask("CRCX", name, &["C: A1", "M: nonsense"]);
    agent.ask("CRCX", "ds/ds3-1/ds1-99/1", &["C: A1", "M: recvonly"]);
    agent.ask("CRCX", name, &["C: A1", "M: recvonly", "L: a:UNKNOWN"]);
    agent.ask("RQNT", name, &["X: 1", "R: XYZ/ab"]);
    agent.ask("RQNT", name, &["X: 1", "R: L/hd"]);
    agent.ask("MDCX", name, &["C: A1", "I: FFFF"]);
    agent.ask("MESG", name, &[]);
    agent.ask("XYZW", name, &[]);
    agent.ask("AUEP", name, &["X-critical: 1", "X+critical: 1"]);
    agent.ask("DLCX", name, &["C: A1", &id]);
    // Failures, blocks, and what the gateway deletes by itself.
    agent.create("ds/ds3-1/ds1-7/3");
    agent.create("ds/ds3-1/ds1-8/3");
    agent.mail.clear();
    gateway.order(&["sim", "alarm", "ds/ds3-1/ds1-7", "los", "--now"]);
    agent.expect("DLCX", SOON);
    gateway.order(&["sim", "alarm", "ds/ds3-1/ds1-7", "clear", "--now"]);
    gateway.order(&["block", "ds/ds3-1/ds1-8/[1-5]", "--graceful", "1"]);
    agent.ask("DLCX", "ds/ds3-1/ds1-8/3", &[]);
    gateway.order(&["unblock", "ds/ds3-1/ds1-8/[1-5]"]);
    agent.ask("DLCX", "*", &[]);
}
