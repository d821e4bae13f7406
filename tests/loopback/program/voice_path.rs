//! The whole path of a voice (issue 5, must hold 1 and 3): far end of a T1, gateway, RTP, gateway, far end of a T1; the gateways in two
//! network namespaces joined by a veth pair, everything around them played by `tollgate load --voice`.

use super::gateway::{Addresses, Gateway, Kept, PROGRAM, SOON, Tuning, eventually, pause};
use super::pair::{NEAR, Pair};
use super::real_trunks::{had_no_cpu, undisturbed_or_skipped};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Where the gateway on this side is, the one on the far side, and the agent with the far ends.
const NEAR_GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 4);
const FAR_GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 6);
const AGENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);

/// A gateway with a T1 whose far end is at this port of the agent's address.
fn tuning(gateway: Ipv4Addr, far_end: u16) -> Tuning {
    let text = |value: String| format!("{value:?}");
    Tuning::at(Addresses::from(gateway))
        .set("agent.0.addresses", &format!("[\"{AGENT}\"]"))
        .set("agent.0.notify", &format!("[\"{AGENT}:2727\"]"))
        .set("span.0.kind", "\"t1\"")
        .set("span.0.unit", "1")
        .set("span.0.card", "\"cesopsn\"")
        .set("span.0.local", &text(format!("{gateway}:50000")))
        .set("span.0.peer", &text(format!("{AGENT}:{far_end}")))
        .set("cards.cesopsn.media_address", &text(gateway.to_string()))
        .set("cards.sim.codecs", "[\"PCMU\", \"PCMA\", \"CLEARMODE\"]")
        // A machine busy with other tests takes the CPU away for a tenth of a second now and then.
        .set("span.0.jitter", "\"120ms\"")
        .set("span.0.jitter_max", "\"200ms\"")
        .set("timers.alarm_declare", "\"2s\"")
        .set("timers.alarm_clear", "\"1s\"")
}

/// Makes calls, and says what arrived; what was complained of, when something was.
fn voice(arguments: &str) -> Result<Value, (String, bool)> {
    let mut command = Command::new(PROGRAM);
    command.args(["load", "--voice", "--json", "--listen", &format!("{AGENT}:2727"), "--channels", "4", "--trunk-jitter", "120"]);
    command.args(["--target", &format!("{NEAR_GATEWAY}:2427,{FAR_GATEWAY}:2427")]);
    command.args(["--trunk", &format!("ds/ds1-1={AGENT}:51000,{NEAR_GATEWAY}:50000")]);
    command.args(["--to-trunk", &format!("ds/ds1-1={AGENT}:52000,{FAR_GATEWAY}:50000")]);
    let output = command.args(arguments.split(' ')).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    if output.status.success() { Ok(report) } else { Err(failed(&report)) }
}

/// A failure, and whether the far ends were played late.
fn failed(report: &Value) -> (String, bool) {
    (report.to_string(), report["trunks"].as_array().is_some_and(|trunks| trunks.iter().any(had_no_cpu)))
}

/// Two gateways, and what is done with them; skipped, with the reason, where no namespaces can be made.
fn between_two_gateways(test: &str, body: impl FnOnce(&Gateway, &Gateway) + Send) {
    let run = || match Pair::new("1") {
        Err(reason) => eprintln!("skipped: {test}: {reason}"),
        Ok(pair) => {
            let near = Gateway::start(tuning(NEAR_GATEWAY, 51_000));
            let far = pair.within(|| Gateway::start(tuning(FAR_GATEWAY, 52_000)));
            body(&near, &far);
            for gateway in [&near, &far] {
                assert!(gateway.rows(&["connections"]).is_empty(), "no call is stuck");
                gateway.assert_sound();
            }
        }
    };
    if let Err(panic) = std::thread::scope(|scope| scope.spawn(run).join()) {
        std::panic::resume_unwind(panic);
    }
}

/// Packets between the gateways, as they are on the wire.
struct Capture(Kept, PathBuf);

impl Capture {
    /// `None`, with the reason printed, where nothing can be captured.
    fn start(directory: &Path) -> Option<Capture> {
        let path = directory.join("capture.pcapng");
        let mut dumpcap = Command::new("dumpcap");
        dumpcap.args(["-q", "-i", NEAR, "-w"]).arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match dumpcap.spawn() {
            Ok(child) => {
                let capture = Capture(Kept(child), path);
                // The descriptions that pass say which ports have RTP: none of them is to be missed.
                let has_begun = || std::fs::metadata(&capture.1).is_ok_and(|file| file.len() > 0).then_some(());
                eventually("the capture begins", SOON, has_begun);
                Some(capture)
            }
            Err(error) => {
                eprintln!("skipped: no capture: dumpcap: {error}");
                None
            }
        }
    }

    /// What tshark makes of them: for each packet its protocols, and what it finds wrong.
    fn read(mut self) -> Vec<(String, String)> {
        pause(Duration::from_millis(300));
        super::gateway::signal_to(self.0.0.id(), libc::SIGINT);
        self.0.0.wait().unwrap();
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&self.1).args(["-d", "udp.port==50000,pwcesopsn", "-T", "fields", "-e", "frame.protocols"]);
        tshark.args(["-e", "_ws.malformed"]);
        let output = tshark.args(["-e", "pwcesopsn.payload.size_invalid", "-e", "rtp.version"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let fields = |line: &str| line.split_once('\t').map(|(protocols, rest)| (protocols.to_owned(), rest.trim().to_owned()));
        text.lines().filter_map(fields).collect()
    }
}

/// Must hold 1 and 3: the tone keeps its level both ways and digits are notified at the other gateway; tshark reads every packet.
#[test]
fn a_voice_and_digits_pass_from_trunk_to_trunk() {
    between_two_gateways("a_voice_and_digits_pass_from_trunk_to_trunk", |near, _| {
        undisturbed_or_skipped("voice", || {
            let capture = Capture::start(&near.tuning.directory);
            let report = voice("--duration 1 --hold 2500 --digits 15#")?;
            let number = |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
            assert!((number("/level_dbm0/min") + 10.0).abs() < 0.2 && (number("/level_dbm0/max") + 10.0).abs() < 0.2, "{report}");
            assert!(number("/delay_ms/max") < 2_000.0 && number("/mos/min") > 1.0, "{report}");
            if (number("/calls"), number("/digits")) != (4.0, 24.0) || number("/rtp/received") < 400.0 {
                return Err(failed(&report));
            }
            let Some(packets) = capture.map(Capture::read) else { return Ok(()) };
            for (protocol, least) in [("udp:rtp", 400), ("udp:rtcp", 4), ("pwcesopsn", 2_000), ("rtpevent", 30)] {
                let of = packets.iter().filter(|(protocols, _)| protocols.contains(protocol)).count();
                if of < least {
                    return Err((format!("{of} packets of {protocol} in {}", packets.len()), failed(&report).1));
                }
            }
            let wrong = packets
                .iter()
                .find(|(protocols, rest)| !protocols.contains("icmp") && !protocols.contains("mgcp") && !rest.is_empty() && rest != "2");
            assert_eq!(wrong, None);
            Ok(())
        });
    });
}

/// Must hold 1: CLEARMODE is bit-exact from trunk to trunk.
#[test]
fn data_passes_from_trunk_to_trunk_without_a_wrong_bit() {
    between_two_gateways("data_passes_from_trunk_to_trunk_without_a_wrong_bit", |_, _| {
        undisturbed_or_skipped("data", || {
            let report = voice("--duration 0.5 --hold 1500 --coding clearmode --period 10")?;
            let pattern = &report["pattern"];
            assert_eq!(pattern["bit_errors"], 0, "{report}");
            if pattern["octets"].as_u64() > Some(8 * 6_000) { Ok(()) } else { Err(failed(&report)) }
        });
    });
}

/// Must hold 1: with 1 % of the packets lost and 20 ms of jitter no call is stuck, and what is lost is heard as a gap and not as a crack.
#[test]
fn a_bad_network_impairs_a_voice_and_ends_no_call() {
    between_two_gateways("a_bad_network_impairs_a_voice_and_ends_no_call", |_, _| {
        undisturbed_or_skipped("a bad network", || {
            let report = voice("--duration 1 --hold 2500 --rtp-loss 1 --rtp-jitter 20")?;
            let lost = report["rtp"]["lost_on_purpose"].as_u64() > Some(0) && report["rtp"]["lost"].as_u64() > Some(0);
            if lost && report["rtp_jitter_ms"]["max"].as_f64() > Some(2.0) { Ok(()) } else { Err(failed(&report)) }
        });
    });
}

/// A gateway that is not there: said, with exit code 1, and no call is claimed.
#[test]
fn without_a_gateway_no_voice_is_claimed() {
    let addresses = Tuning::new().addresses;
    let ip: IpAddr = addresses.agent().ip();
    let mut command = Command::new(PROGRAM);
    command.args(["load", "--voice", "--json", "--duration", "1", "--listen", &addresses.agent().to_string()]);
    command.args(["--target", &addresses.gateway().to_string(), "--trunk", &format!("ds/ds1-1={ip}:51000,{ip}:50000")]);
    let missing = command.output().unwrap();
    assert_eq!(missing.status.code(), Some(2), "--to-trunk is missing: {missing:?}");
    let mut child = command.args(["--to-trunk", &format!("ds/ds1-2={ip}:51001,{ip}:50001")]).stdout(Stdio::piped()).spawn().unwrap();
    let is_there = || std::net::UdpSocket::bind(addresses.agent()).is_err().then_some(());
    eventually("the agent is there", SOON, is_there);
    super::gateway::signal_to(child.id(), libc::SIGINT);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(1));
}
