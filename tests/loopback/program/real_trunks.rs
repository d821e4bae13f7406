//! Spans in pseudowires, with `tollgate far-end` on the other side: alarms, signalling, and calls that carry a tone.

use super::agent::{Agent, Message};
use super::gateway::{Gateway, PROGRAM, SOON, Tuning, eventually};
use super::starved::CpuWatch;
use serde_json::Value;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where the first span of the gateway is, and its far end.
pub fn wires(tuning: &Tuning) -> (SocketAddr, SocketAddr) {
    ((tuning.addresses.gateway().ip(), 50_000).into(), (tuning.addresses.agent().ip(), 51_000).into())
}

/// Two T1s in pseudowires; `more` is set in their table.
pub fn tuning(more: &[(&str, &str)]) -> Tuning {
    let tuning = Tuning::new();
    let (local, peer) = wires(&tuning);
    let media = format!("{:?}", tuning.addresses.gateway().ip().to_string());
    let tuning = tuning
        .set("span.0.kind", "\"t1\"")
        .set("span.0.unit", "\"1-2\"")
        .set("span.0.card", "\"cesopsn\"")
        .set("span.0.local", &format!("{:?}", local.to_string()))
        .set("span.0.peer", &format!("{:?}", peer.to_string()))
        .set("cards.cesopsn.media_address", &media)
        // A machine busy with other tests takes the CPU away for a tenth of a second now and then: buffers are as deep.
        .set("span.0.jitter", "\"120ms\"")
        .set("span.0.jitter_max", "\"200ms\"")
        .set("timers.alarm_declare", "\"2s\"")
        .set("timers.alarm_clear", "\"1s\"");
    more.iter().fold(tuning, |tuning, (key, value)| tuning.set(&format!("span.0.{key}"), value))
}

/// Media is lost when a machine takes the CPU away for longer than the buffers are deep: then a test of it begins anew, twice at the most.
pub fn undisturbed(what: &str, attempt: impl Fn() -> Result<(), String>) {
    let failures: Vec<String> = (0..3).map_while(|_| attempt().err()).collect();
    assert!(failures.len() < 3, "{what}: {failures:?}");
}

/// The same for a test that no buffer is deep enough for: when in each attempt the machine had no CPU for what is to be played in time (the
/// second word of the failure; [`CpuWatch`] knows), that is said and the test passes.
pub fn undisturbed_or_skipped(what: &str, mut attempt: impl FnMut() -> Result<(), (String, bool)>) {
    let failures: Vec<(String, bool)> = (0..3).map_while(|_| attempt().err()).collect();
    match &failures[..] {
        [_, _, _] if failures.iter().all(|(_, no_cpu)| *no_cpu) => eprintln!("skipped: {what}: no CPU to play in time: {failures:?}"),
        all => assert!(all.len() < 3, "{what}: {failures:?}"),
    }
}

/// Whether it is the machine's fault that a circuit was not played as it came: a thread was starved of its CPU, and most of what came was in
/// time. What is late most of the time is so for a reason of its own.
pub fn is_the_machines(starved: Option<Duration>, circuits: &[Value]) -> bool {
    let of = |key: &str| circuits.iter().filter_map(|circuit| circuit[key].as_u64()).sum::<u64>();
    starved.is_some() && 2 * of("late") < of("received")
}

/// The far end of the T1 of this number, for so many seconds.
pub struct FarEnd(Option<Child>);

impl FarEnd {
    pub fn start(tuning: &Tuning, unit: u16, duration: &str, more: &[&str]) -> FarEnd {
        let (mut local, mut peer) = wires(tuning);
        local.set_port(local.port() + unit - 1);
        peer.set_port(peer.port() + unit - 1);
        let mut command = Command::new(PROGRAM);
        command.args([
            "far-end",
            "--json",
            "--listen",
            &peer.to_string(),
            "--peer",
            &local.to_string(),
            "--duration",
            duration,
            "--jitter",
            "120",
        ]);
        FarEnd(Some(command.args(more).stdout(Stdio::piped()).spawn().unwrap()))
    }

    /// Waits for its end; what it measured.
    pub fn report(mut self) -> Value {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn channel(report: &Value, number: u8) -> &Value {
    let channels = report["channels"].as_array().unwrap();
    channels.iter().find(|channel| channel["channel"] == number).unwrap_or_else(|| panic!("no channel {number}: {report}"))
}

pub fn told(message: &Message) -> (&str, &str, &str) {
    let reason = message.get("E").and_then(|reason| reason.split(' ').next()).unwrap_or("");
    (message.name.strip_suffix("@tgw.example.net").unwrap(), message.get("RM").unwrap(), reason)
}

/// Must hold 4: a far end that is not there, comes, and stops.
#[test]
fn a_far_end_that_stops_is_an_alarm_and_one_that_comes_ends_it() {
    let gateway = Gateway::start(tuning(&[("unit", "1"), ("rtp", "97")]));
    let mut agent = Agent::of(&gateway);
    assert_eq!(told(&agent.expect("RSIP", SOON)), ("ds/ds1-1/*", "forced", "902"));
    agent.mail.clear();
    let far = FarEnd::start(&gateway.tuning, 1, "4", &["--rtp", "97"]);
    assert_eq!(told(&agent.expect("RSIP", SOON)).1, "restart");
    let page = || Some(gateway.show(&["span", "ds/ds1-1"])["span"].clone()).filter(|page| page["circuit"]["state"] == "normal");
    let page = eventually("it plays", SOON, page);
    assert_eq!((&page["card"], &page["defects"]), (&"cesopsn".into(), &Value::Array(vec![])));
    assert!(page["circuit"]["received"].as_u64().unwrap() > 500 && page["circuit"]["malformed"] == 0, "{page}");
    agent.mail.clear();
    let report = far.report();
    assert_eq!(report["alarms"]["rai"], false, "{report}");
    assert_eq!(told(&agent.expect("RSIP", SOON)), ("ds/ds1-1/*", "forced", "902"));
    let alarms = gateway.rows(&["alarms"]);
    assert_eq!((alarms.len(), &alarms[0]["what"]), (1, &"packet-loss".into()), "{alarms:?}");
    gateway.assert_sound();
}

/// AIS towards the far end, by the operator's order: its endpoints are out of service, and the far end sees it until the order is taken back.
#[test]
fn a_span_sends_ais_while_an_operator_wants_it() {
    let gateway = Gateway::start(tuning(&[("unit", "1")]));
    let mut agent = Agent::of(&gateway);
    assert_eq!(told(&agent.expect("RSIP", SOON)), ("ds/ds1-1/*", "forced", "902"));
    agent.mail.clear();
    let far = FarEnd::start(&gateway.tuning, 1, "4", &[]);
    assert_eq!(told(&agent.expect("RSIP", SOON)).1, "restart");
    agent.mail.clear();
    assert!(gateway.order(&["ais", "ds/ds1-1"]).contains("out of service until `ais ds/ds1-1 --off`"));
    assert_eq!(told(&agent.expect("RSIP", SOON)), ("ds/ds1-1/*", "forced", "904"));
    let row = gateway.rows(&["spans"])[0].clone();
    assert_eq!((&row["failure"], row["line_status"].as_u64().unwrap() & 16), (&"ais-sent".into(), 16), "{row}");
    let report = far.report();
    assert_eq!((&report["alarms"]["ais"], &report["alarms"]["packet_loss"]), (&true.into(), &false.into()), "{report}");
    let far = FarEnd::start(&gateway.tuning, 1, "2", &[]);
    gateway.order(&["ais", "ds/ds1-1", "--off"]);
    let report = far.report();
    assert_eq!(report["alarms"]["ais"], false, "{report}");
    gateway.assert_sound();
}

/// Must hold 2: a seizure on the far end's bits is winked at, and its end is told to the agent.
#[test]
fn a_seizure_by_the_far_ends_bits_is_winked_at() {
    let gateway = Gateway::start(tuning(&[("unit", "1"), ("signalling", "\"mf-wink\"")]));
    let mut agent = Agent::of(&gateway);
    let far = FarEnd::start(&gateway.tuning, 1, "7", &["--cas", "--seize", "5"]);
    eventually("the far end seizes", SOON, || {
        let rows = gateway.rows(&["endpoints", "ds/ds1-1/5"]);
        (rows[0]["line"] == "awaits-digits").then_some(())
    });
    let response = agent.ask("RQNT", "ds/ds1-1/5", &["X: 1", "R: ms/rel(n)"]);
    assert!(response.code.is_some_and(|code| code < 500), "{response:?}");
    let report = far.report();
    let hooks = channel(&report, 5)["hooks"].as_array().unwrap().clone();
    let at = |place: usize| hooks[place][0].as_i64().unwrap();
    assert!(hooks.len() == 2 && hooks[0][1] == "off" && (150..250).contains(&(at(1) - at(0))), "one wink of 200 ms: {hooks:?}");
    assert!(channel(&report, 6)["hooks"].as_array().unwrap().is_empty());
    gateway.assert_sound();
}

/// Must hold 1: keys on a channel are told to the agent.
#[test]
fn keys_of_the_far_end_are_notified() {
    let gateway = Gateway::start(tuning(&[("unit", "1")]));
    let mut agent = Agent::of(&gateway);
    let agent = std::cell::RefCell::new(&mut agent);
    undisturbed("keys", || {
        let mut agent = agent.borrow_mut();
        agent.mail.clear();
        let far = FarEnd::start(&gateway.tuning, 1, "5", &["--dtmf", "7=159#"]);
        let response = agent.ask("RQNT", "ds/ds1-1/7", &["X: 1", "Q: process,loop", "R: d/[0-9*#](n)"]);
        assert_eq!(response.code, Some(200), "{response:?}");
        agent.listen(Duration::from_secs(5));
        let report = far.report();
        let observed: Vec<String> = agent.commands("NTFY").iter().filter_map(|told| told.get("O").map(str::to_lowercase)).collect();
        if observed.join(" ") == "d/1 d/5 d/9 d/#" { Ok(()) } else { Err(format!("{observed:?} {report}")) }
    });
    gateway.assert_sound();
}

/// Must hold 2: a call from the far end with its MF digits, and one to it with the gateway's, over a trunk that loses 1 % of its packets.
#[test]
fn calls_over_a_trunk_with_mf_digits_both_ways() {
    undisturbed("MF digits", || {
        let gateway = Gateway::start(tuning(&[("unit", "1"), ("signalling", "\"mf-wink\"")]));
        let mut agent = Agent::of(&gateway);
        let wanted = agent.ask("RQNT", "ds/ds1-1/5", &["X: 1", "R: ms/sup(n)"]);
        assert_eq!(wanted.code, Some(200), "{wanted:?}");
        let more = ["--cas", "--answer", "--seize", "5", "--mf", "5=k5551234s", "--hear-mf", "--loss", "1"];
        let far = FarEnd::start(&gateway.tuning, 1, "9", &more);
        assert_eq!(agent.expect("NTFY", SOON).get("O").map(str::to_lowercase).as_deref(), Some("ms/sup"));
        let wanted = agent.ask("RQNT", "ds/ds1-1/5", &["X: 2", "R: ms/inf(n)"]);
        assert_eq!(wanted.code, Some(200), "{wanted:?}");
        let order = agent.ask("RQNT", "ds/ds1-1/9", &["X: 3", "R: ms/ans(n)", "S: ms/sup(addr(k0,6,1,7,s0))"]);
        assert_eq!(order.code, Some(200), "{order:?}");
        agent.listen(Duration::from_millis(8_500));
        let report = far.report();
        gateway.assert_sound();
        let told: Vec<String> =
            agent.commands("NTFY").iter().filter_map(|told| told.get("O").map(|o| o.to_lowercase().replace(' ', ""))).collect();
        let came =
            told.iter().any(|observed| observed == "ms/inf(k0,5,5,5,1,2,3,4,s0)") && told.iter().any(|observed| observed == "ms/ans");
        if came && channel(&report, 9)["heard"] == "k617s" { Ok(()) } else { Err(format!("{told:?} {report}")) }
    });
}

/// The description in a response.
fn description(response: &Message) -> String {
    let from = response.lines.iter().position(|line| line.starts_with("v=")).unwrap_or_else(|| panic!("no description: {response:?}"));
    response.lines[from..].join("\r\n")
}

/// Connects two channels by two connections; the options of both.
fn connect(agent: &mut Agent, from: &str, to: &str, options: &str) {
    let first = agent.ask("CRCX", from, &["C: A1", options, "M: recvonly"]);
    assert_eq!(first.code, Some(200), "{first:?}");
    let second = agent.ask("CRCX", to, &["C: A1", options, "M: sendrecv", "", &description(&first)]);
    assert_eq!(second.code, Some(200), "{second:?}");
    let id = format!("I: {}", first.get("I").unwrap());
    let changed = agent.ask("MDCX", from, &["C: A1", &id, "M: sendrecv", "", &description(&second)]);
    assert_eq!(changed.code, Some(200), "{changed:?}");
}

/// Must hold 1: from one T1 to the other by RTP and back, a tone keeps its level and a pattern its bits.
#[test]
fn calls_between_two_t1s_carry_a_tone_both_ways() {
    undisturbed("tones", || {
        let gateway = Gateway::start(tuning(&[]).set("timers.alarm_declare", "\"10s\""));
        let mut agent = Agent::of(&gateway);
        let first = FarEnd::start(&gateway.tuning, 1, "9", &["--ppm", "20", "--tone", "1", "--tone", "3", "--tone", "5"]);
        let second = FarEnd::start(&gateway.tuning, 2, "10", &["--loop", "1", "--tone", "4", "--tone", "6"]);
        let is_up = |name| gateway.show(&["span", name])["span"]["circuit"]["received"].as_u64() > Some(100);
        eventually("both far ends are there", SOON, || (is_up("ds/ds1-1") && is_up("ds/ds1-2")).then_some(()));
        // Over RTP, and inside the gateway with one command.
        connect(&mut agent, "ds/ds1-1/1", "ds/ds1-2/1", "L: p:20, a:PCMU");
        let pair = agent.ask("CRCX", "ds/ds1-1/3", &["C: A3", "M: sendrecv", "Z2: ds/ds1-2/4@tgw.example.net"]);
        assert_eq!(pair.code, Some(200), "{pair:?}");
        // Inside the gateway, by descriptions that name endpoints (RFC 3435 3.4.2).
        connect(&mut agent, "ds/ds1-1/5", "ds/ds1-2/6", "L: p:20, a:PCMU, nt:LOCAL");
        let (first, second) = (first.report(), second.report());
        let moved = |row: &Value, key: &str| row[key].as_u64() > Some(50);
        let rows = gateway.rows(&["connections"]);
        assert!(rows.len() == 6 && rows.iter().all(|row| moved(row, "packets_sent") && moved(row, "packets_received")), "{rows:?}");
        gateway.assert_sound();
        // Through RTP, the loop, and back; and both ways of the pairs.
        let near = |channel: &Value| channel["tone_dbm0"].as_f64().is_some_and(|level| (level + 10.0).abs() < 0.2);
        let all = [channel(&first, 1), channel(&first, 3), channel(&second, 4), channel(&first, 5), channel(&second, 6)];
        if all.into_iter().all(near) { Ok(()) } else { Err(format!("{first} {second}")) }
    });
}

/// Of two connections joined by descriptions, or by `Z2:`, one is deleted: the other one sends nothing to the port that is free again, where
/// somebody else may be by now.
#[test]
fn a_half_that_is_left_sends_nothing_to_where_the_other_one_was() {
    for options in ["L: p:20, a:PCMU, nt:LOCAL", "Z2"] {
        // Nobody plays the trunks, so they would be in alarm. Each is on a core of its own.
        let gateway = Gateway::start(tuning(&[]).set("timers.alarm_declare", "\"10s\"").set("cores.both", "2"));
        let mut agent = Agent::of(&gateway);
        if options == "Z2" {
            let pair = agent.ask("CRCX", "ds/ds1-1/5", &["C: A1", "M: sendrecv", "Z2: ds/ds1-2/6@tgw.example.net"]);
            assert_eq!(pair.code, Some(200), "{pair:?}");
        } else {
            connect(&mut agent, "ds/ds1-1/5", "ds/ds1-2/6", options);
        }
        let row = |name| gateway.rows(&["connections", name]).into_iter().next();
        let moved = |name| row(name).is_some_and(|row| row["packets_received"].as_u64() > Some(5));
        eventually("both hear each other", SOON, || (moved("ds/ds1-1/5") && moved("ds/ds1-2/6")).then_some(()));
        let port = gateway.show(&["endpoint", "ds/ds1-1/5"])["endpoint"]["connections"][0]["local"].as_str().unwrap().to_owned();
        assert_eq!(agent.ask("DLCX", "ds/ds1-1/5", &["C: A1"]).code, Some(250));
        let stranger = std::net::UdpSocket::bind(&port).unwrap();
        stranger.set_read_timeout(Some(Duration::from_millis(400))).unwrap();
        let mut packet = [0; 2000];
        // What was on its way when the ports changed hands is let through.
        let came = (0..100).map_while(|_| stranger.recv(&mut packet).ok()).count();
        assert!(came < 5, "{options}: {came} packets");
        assert!(row("ds/ds1-2/6").is_some(), "it is up");
        gateway.assert_sound();
    }
}

/// Must hold 1: continuity tests pass and fail as they should, test tones are told apart, and digits arrive: on the trunk that hears them, and
/// by RFC 4733 at the far end of a connection.
#[test]
fn tones_and_digits_of_real_trunks_are_notified() {
    let gateway = Gateway::start(tuning(&[]));
    let mut agent = Agent::of(&gateway);
    let first = FarEnd::start(&gateway.tuning, 1, "10", &["--loop", "1", "--loop", "2", "--tone", "3"]);
    let second = FarEnd::start(&gateway.tuning, 2, "10", &[]);
    let up = || (gateway.rows(&["spans", "--state", "up"]).len() == 2).then_some(());
    eventually("both far ends are there", SOON, up);
    let observed = |agent: &mut Agent, name: &str, parameters: &[&str]| {
        agent.mail.clear();
        let parameters = [&["X: 1"][..], parameters].concat();
        assert_eq!(agent.ask("RQNT", name, &parameters).code, Some(200), "{parameters:?}");
        agent.expect("NTFY", SOON).get("O").unwrap_or_default().to_lowercase()
    };
    assert_eq!(observed(&mut agent, "ds/ds1-1/2", &["S: t/co1", "R: t/co1(N),t/oc(N),t/of(N)"]), "t/co1", "the loop is there");
    assert_eq!(observed(&mut agent, "ds/ds1-1/4", &["S: t/co1(to=1000)", "R: t/co1(N),t/oc(N),t/of(N)"]), "t/oc(t/co1)", "no loop");
    assert_eq!(observed(&mut agent, "ds/ds1-1/3", &["R: t/om(N),t/nm(N),t/mm(N)"]), "t/nm");
    assert_eq!(observed(&mut agent, "ds/ds1-1/2", &["S: d/5", "R: d/[0-9*#](N)"]), "d/5", "the loop returns it");
    // What is heard on the first trunk goes to the second one as a telephone event.
    let options = "L: p:20, a:PCMU;telephone-event";
    let receiver = agent.ask("CRCX", "ds/ds1-2/1", &["C: A1", options, "M: recvonly"]);
    let sender = agent.ask("CRCX", "ds/ds1-1/1", &["C: A1", options, "M: sendonly", "", &description(&receiver)]);
    assert_eq!(sender.code, Some(200), "{sender:?}");
    let id = receiver.get("I").unwrap();
    assert_eq!(agent.ask("RQNT", "ds/ds1-2/1", &["X: 2", &format!("R: d/[0-9*#]@{id}(N)")]).code, Some(200));
    agent.mail.clear();
    assert_eq!(agent.ask("RQNT", "ds/ds1-1/1", &["X: 3", "S: d/7"]).code, Some(200));
    let notify = agent.expect("NTFY", SOON);
    assert!(notify.name.starts_with("ds/ds1-2/1@"), "{notify:?}");
    assert_eq!(notify.get("O").unwrap_or_default().to_lowercase(), format!("d/7@{}", id.to_lowercase()));
    // The sender goes, and nothing comes any more: R/rto.
    assert_eq!(agent.ask("DLCX", "ds/ds1-1/1", &["C: A1"]).code, Some(250));
    agent.mail.clear();
    assert_eq!(agent.ask("RQNT", "ds/ds1-2/1", &["X: 4", &format!("R: r/rto@{id}(N)(1)")]).code, Some(200));
    let notify = agent.expect("NTFY", SOON);
    assert_eq!(notify.get("O").unwrap_or_default().to_lowercase(), format!("r/rto@{}(1)", id.to_lowercase()));
    drop((first, second));
    gateway.assert_sound();
}

/// T.15, T.16, T.18, T.19, D.17, D.22, R.03: what is played on a looped trunk is told of as it comes back, a timer times out, and packets
/// that nobody takes are told of by the ICMP messages they cause.
#[test]
fn real_trunks_hear_what_they_play_and_that_nobody_takes_their_packets() {
    let gateway = Gateway::start(tuning(&[("unit", "1")]));
    let mut agent = Agent::of(&gateway);
    let far = FarEnd::start(&gateway.tuning, 1, "15", &["--loop", "2"]);
    eventually("the far end is there", SOON, || (gateway.rows(&["spans", "--state", "up"]).len() == 1).then_some(()));
    let observed = |agent: &mut Agent, parameters: &[&str]| {
        agent.mail.clear();
        let parameters = [&["X: 1"][..], parameters].concat();
        assert_eq!(agent.ask("RQNT", "ds/ds1-1/2", &parameters).code, Some(200), "{parameters:?}");
        agent.expect("NTFY", SOON).get("O").unwrap_or_default().to_lowercase()
    };
    for (signal, event, expected) in [
        ("t/tp(95)", "t/tp(N)(95)", "t/tp(95)"),
        ("t/sit(6)", "t/sit(N)(6)", "t/sit(6)"),
        ("t/zz", "t/zz(N)", "t/zz"),
        ("t/ro", "t/ro(N)", "t/ro"),
        ("d/dd(dg=5,to=800)", "d/dd(N)(dg=5,to=300)", "d/dd(dg=5,to=300)"),
        ("d/t(to=300)", "d/oc(N)", "d/oc(d/t)"),
    ] {
        let listed = [format!("S: {signal}"), format!("R: {event},t/oc(N),t/of(N),d/of(N)")];
        assert_eq!(observed(&mut agent, &[&listed[0], &listed[1]]), expected);
    }
    let gone = std::net::UdpSocket::bind((gateway.tuning.addresses.agent().ip(), 0)).unwrap().local_addr().unwrap();
    let offer = format!("v=0\r\nc=IN IP4 {}\r\nm=audio {} RTP/AVP 0", gone.ip(), gone.port());
    let made = agent.ask("CRCX", "ds/ds1-1/2", &["C: A1", "M: sendrecv", "", &offer]);
    let id = made.get("I").unwrap_or_else(|| panic!("{made:?}")).to_lowercase();
    assert_eq!(observed(&mut agent, &[&format!("R: r/iu@{id}(N)(4)")]), format!("r/iu@{id}(4,3)"));
    drop(far);
    gateway.assert_sound();
}

/// A connection that a far end sent to and sends to no more is deleted after the configured time, and the agent told why; one that nobody has
/// answered yet, and one that only receives, are not.
#[test]
fn a_far_end_that_falls_silent_ends_its_call_after_the_configured_time() {
    let tuning = tuning(&[("unit", "1")]).set("cards.cesopsn.media_timeout", "\"700ms\"").set("timers.alarm_declare", "\"10s\"");
    let gateway = Gateway::start(tuning);
    let mut agent = Agent::of(&gateway);
    let far = std::net::UdpSocket::bind((gateway.tuning.addresses.agent().ip(), 0)).unwrap();
    let here = far.local_addr().unwrap();
    let offer = format!("v=0\r\nc=IN IP4 {}\r\nm=audio {} RTP/AVP 0", here.ip(), here.port());
    let mut ports = Vec::new();
    for (channel, mode) in [(1, "M: sendrecv"), (2, "M: recvonly"), (3, "M: sendrecv")] {
        let made = agent.ask("CRCX", &format!("ds/ds1-1/{channel}"), &["C: A1", mode, "", &offer]);
        assert_eq!(made.code, Some(200), "{made:?}");
        let port = made.lines.iter().find_map(|line| line.strip_prefix("m=audio ")).unwrap().split(' ').next().unwrap();
        ports.push(port.parse::<u16>().unwrap());
    }
    let mut packet = [0xFF; 172];
    packet[..12].copy_from_slice(&[0x80, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4]);
    for port in &ports[..2] {
        far.send_to(&packet, (gateway.tuning.addresses.gateway().ip(), *port)).unwrap();
    }
    agent.mail.clear();
    let deleted = agent.expect("DLCX", SOON);
    assert_eq!(told_of(&deleted), ("ds/ds1-1/1", "902"), "{deleted:?}");
    assert!(deleted.get("P").is_some_and(|counts| counts.contains("PR=1,")), "{deleted:?}");
    agent.listen(Duration::from_millis(1_500));
    assert!(agent.commands("DLCX").len() <= 1, "no other");
    let left: Vec<String> = gateway.rows(&["connections"]).iter().map(|row| row["endpoint"].as_str().unwrap().to_owned()).collect();
    assert_eq!(left, ["ds/ds1-1/2", "ds/ds1-1/3"]);
    assert_eq!(gateway.counter("media_timed_out"), 1);
    gateway.assert_sound();
}

/// Which endpoint, and why.
fn told_of(message: &Message) -> (&str, &str) {
    let reason = message.get("E").and_then(|reason| reason.split(' ').next()).unwrap_or("");
    (message.name.strip_suffix("@tgw.example.net").unwrap(), reason)
}

#[test]
fn without_a_port_left_a_connection_is_refused_with_403() {
    let tuning = tuning(&[("unit", "1")]).set("cards.cesopsn.media_ports", "\"20000-20003\"").set("timers.alarm_declare", "\"10s\"");
    let gateway = Gateway::start(tuning);
    let mut agent = Agent::of(&gateway);
    let create = |agent: &mut Agent, channel: u8| agent.ask("CRCX", &format!("ds/ds1-1/{channel}"), &["C: A1", "M: recvonly"]);
    let first = create(&mut agent, 1);
    assert_eq!((first.code, create(&mut agent, 2).code, create(&mut agent, 3).code), (Some(200), Some(200), Some(403)));
    let id = format!("I: {}", first.get("I").unwrap());
    assert_eq!(agent.ask("DLCX", "ds/ds1-1/1", &["C: A1", &id]).code, Some(250));
    assert_eq!(create(&mut agent, 3).code, Some(200));
    let said: SocketAddr = (gateway.tuning.addresses.gateway().ip(), 20_000).into();
    assert!(std::net::UdpSocket::bind(said).is_err(), "the port is held");
}

/// How soon after the far end stopped the alarm may be told at the earliest.
#[test]
fn a_far_end_that_pauses_for_less_than_the_integration_is_no_alarm() {
    let gateway = Gateway::start(tuning(&[("unit", "1")]));
    let mut agent = Agent::of(&gateway);
    drop(FarEnd::start(&gateway.tuning, 1, "1", &[]).report());
    agent.mail.clear();
    drop(FarEnd::start(&gateway.tuning, 1, "1.5", &[]).report());
    agent.listen(Duration::from_millis(200));
    assert_eq!(agent.commands("RSIP"), [], "{:?}", gateway.show(&["span", "ds/ds1-1"]));
}

/// Must hold 2: the calls of a scenario over a T1 in a pseudowire that loses 1 % of its packets, with far ends that behave and that do not; what
/// they do is done by bits and tones.
fn calls(card: &str, scenario: &str, signalling: &str, seconds: u8) {
    undisturbed_or_skipped(scenario, || {
        let (signalling, card) = (format!("{signalling:?}"), format!("{card:?}"));
        let tuning = tuning(&[("unit", "1"), ("card", &card), ("signalling", &signalling), ("jitter", "\"40ms\"")]);
        let tuning = tuning.set("cas.first_digit", "\"2s\"").set("cas.between_digits", "\"1s\"").set("cas.wink_limit", "\"1500ms\"");
        let gateway = Gateway::start(tuning.set("cas.glare", "\"1500ms\"").set("cas.glare_hold", "\"2s\""));
        let file = gateway.tuning.path();
        let run = format!("--scenario {scenario} --endpoints ds/ds1-1/[1-24] --rate 4 --duration {seconds} --misbehave 0.4 --seed 3");
        let run = format!("{run} --far-ends --trunk-loss 1 --config {}", file.to_str().unwrap());
        let watch = CpuWatch::over(&[gateway.pid()]);
        let load = super::load::load(&gateway, &run).spawn().unwrap();
        watch.add(load.id());
        let output = load.wait_with_output().unwrap();
        let starved = watch.starved();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let all = &report["outcomes"]["all"];
        gateway.assert_sound();
        let circuit = gateway.show(&["span", "ds/ds1-1"])["span"]["circuit"].clone();
        assert!(circuit["lost"].as_u64() > Some(0), "1 % is lost: {circuit}");
        if !output.status.success() || all["begun"].as_u64() < Some(8) || all["begun"] != all["well"] {
            return Err((format!("{report} {circuit} {starved:?}"), is_the_machines(starved, &[circuit])));
        }
        assert!(gateway.rows(&["connections"]).is_empty());
        Ok(())
    });
}

#[test]
fn calls_over_real_mf_trunks() {
    calls("cesopsn", "cas-ms", "mf-wink", 3);
}

#[test]
fn calls_over_real_trunks_with_robbed_bits() {
    calls("satop", "cas-md", "feature-group-d", 3);
}

#[test]
fn continuity_tests_over_real_trunks() {
    calls("cesopsn", "cot", "clear", 3);
}

/// All kinds of calls, for longer, in packets of both kinds.
#[test]
#[ignore = "five minutes"]
fn calls_over_every_kind_of_real_trunk() {
    for card in ["cesopsn", "satop"] {
        for (scenario, signalling) in [
            ("cas-ms", "mf-wink"),
            ("cas-ms", "mf-immediate"),
            ("cas-dt", "dtmf-wink"),
            ("cas-dt", "dtmf-immediate"),
            ("cas-dt", "pulse-wink"),
            ("cas-dt", "pulse-immediate"),
            ("cas-md", "feature-group-d"),
            ("cas-mo", "operator"),
            ("cas-bl", "pbx-ground-start"),
            ("cas-bl", "pbx-loop-start"),
            ("cot", "clear"),
        ] {
            calls(card, scenario, signalling, 8);
        }
    }
}
