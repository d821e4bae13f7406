//! Spans that come bit by bit (SAToP), with `tollgate far-end` and `tollgate load --voice` on the other side: the framing is the gateway's.

use super::agent::Agent;
use super::gateway::{Gateway, PROGRAM, SOON, eventually};
use super::real_trunks::{FarEnd, channel, is_the_machines, told, tuning, undisturbed_or_skipped, wires};
use super::starved::CpuWatch;
use serde_json::Value;
use std::process::{Command, Stdio};

/// A call from an extended superframe to another one and back.
#[test]
fn a_call_between_t1s_with_their_framing_carries_a_voice() {
    let gateway = Gateway::start(tuning(&[("card", "\"satop\"")]).set("timers.alarm_declare", "\"10s\""));
    let (near, far) = wires(&gateway.tuning);
    let trunk = |unit: u16| {
        let (mut near, mut far) = (near, far);
        near.set_port(near.port() + unit - 1);
        far.set_port(far.port() + unit - 1);
        format!("ds/ds1-{unit}={far},{near}")
    };
    undisturbed_or_skipped("a voice", || {
        let mut command = Command::new(PROGRAM);
        command.args(["load", "--voice", "--satop", "--json", "--channels", "2", "--trunk-jitter", "120", "--duration", "2"]);
        command.args([
            "--listen",
            &gateway.tuning.addresses.agent().to_string(),
            "--target",
            &gateway.tuning.addresses.gateway().to_string(),
        ]);
        command.args(["--trunk", &trunk(1), "--to-trunk", &trunk(2)]).stdin(Stdio::null());
        let watch = CpuWatch::over(&[gateway.pid()]);
        let load = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        watch.add(load.id());
        let output = load.wait_with_output().unwrap();
        let starved = watch.starved();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let trunks = report["trunks"].as_array().unwrap();
        let is_framed = trunks.iter().all(|trunk| trunk["frame_losses"] == 0 && trunk["alarms"]["lof"] == false);
        if output.status.success() && is_framed {
            return Ok(());
        }
        Err((format!("{report} {starved:?}"), is_the_machines(starved, trunks)))
    });
    gateway.assert_sound();
}

/// A superframe, octet-aligned: bits robbed from its octets are its signalling, and its seconds are those of D4.
#[test]
fn a_seizure_by_robbed_bits_is_winked_at_and_a_far_end_that_stops_is_an_alarm() {
    let more = [
        ("unit", "1"),
        ("card", "\"satop\""),
        ("framing", "\"d4\""),
        ("octet_aligned", "true"),
        ("rtp", "97"),
        ("signalling", "\"mf-wink\""),
    ];
    let codecs = "[\"PCMU\", \"PCMA\", \"CLEARMODE\"]";
    let gateway = Gateway::start(tuning(&more).set("cards.sim.codecs", codecs));
    let mut agent = Agent::of(&gateway);
    let far = FarEnd::start(&gateway.tuning, 1, "6", &["--satop", "--d4", "--octet-aligned", "--rtp", "97", "--cas", "--seize", "5"]);
    eventually("the far end seizes", SOON, || {
        let rows = gateway.rows(&["endpoints", "ds/ds1-1/5"]);
        (rows[0]["line"] == "awaits-digits").then_some(())
    });
    let page = gateway.show(&["span", "ds/ds1-1"])["span"].clone();
    assert_eq!((&page["card"], &page["signal"]), (&"satop".into(), &"D4".into()));
    assert_eq!(page["circuit"]["malformed"], 0);
    // Data would not come out as it went in: it is neither offered nor taken.
    let data = ["C: 1", "M: recvonly", "L: a:CLEARMODE"];
    assert_eq!(agent.ask("CRCX", "ds/ds1-1/7", &data).code, Some(534));
    let capabilities = agent.ask("AUEP", "ds/ds1-1/7", &["F: A"]);
    let offers = |name: &str| capabilities.lines.iter().any(|line| line.starts_with("A:") && line.contains(name));
    assert!(offers("PCMU") && !offers("CLEARMODE"), "{capabilities:?}");
    let response = agent.ask("RQNT", "ds/ds1-1/5", &["X: 1", "R: ms/rel(n)"]);
    assert!(response.code.is_some_and(|code| code < 500), "{response:?}");
    agent.mail.clear();
    let report = far.report();
    let hooks = channel(&report, 5)["hooks"].as_array().unwrap().clone();
    let at = |place: usize| hooks[place][0].as_i64().unwrap();
    assert!(hooks.len() == 2 && hooks[0][1] == "off" && (150..250).contains(&(at(1) - at(0))), "one wink of 200 ms: {hooks:?}");
    assert!(channel(&report, 6)["hooks"].as_array().unwrap().is_empty());
    assert_eq!(told(&agent.expect("RSIP", SOON)), ("ds/ds1-1/*", "forced", "902"));
    gateway.assert_sound();
}
