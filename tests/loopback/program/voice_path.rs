//! The whole path of a voice (issue 5, must hold 1 and 3): far end of a T1, gateway, RTP, gateway, far end of a T1; the gateways in two
//! network namespaces joined by a veth pair, everything around them played by `tollgate load --voice`.

use super::gateway::{Addresses, Gateway, Kept, PROGRAM, SOON, Tuning, eventually, pause};
use super::pair::{FAR, NEAR, Pair, complete_checksums};
use super::real_trunks::{is_the_machines, undisturbed_or_skipped};
use super::starved::CpuWatch;
use super::trace::trace;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Where the gateway on this side is, the one on the far side, and the agent with the far ends.
const NEAR_GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 4);
const FAR_GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 6);
const AGENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);

/// What the E-model (G.107, G.113) says of this path. Two trunk buffers of 120 ms, packets of 20 ms and the buffer behind them are 280 ms one
/// way, and a busy machine makes the buffers grow: 400 ms at the most (R falls by 34). 2 % impaired, which is what is taken for clean, cost 7
/// more: R 52, a score of 2.7. With 1 % lost and 20 ms of jitter a lost packet impairs two or three blocks of 10 ms, and some packets come too
/// late until the buffer has grown: 4 % impaired at the most, R 46, 2.4.
const GOOD: f64 = 2.7;
const FAIR: f64 = 2.4;
const FAIR_IMPAIRED: f64 = 0.04;

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

/// What was said of calls, and for how long a thread had no CPU meanwhile.
struct Said {
    report: Value,
    starved: Option<Duration>,
}

impl Said {
    fn number(&self, path: &str) -> f64 {
        self.report.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// A failure, and whether it is the machine's.
    fn failed(&self, why: &str) -> (String, bool) {
        let trunks = self.report["trunks"].as_array().unwrap();
        (format!("{why}: {} {:?}", self.report, self.starved), is_the_machines(self.starved, trunks))
    }
}

/// Makes calls between the gateways, and says what arrived; what was complained of, when something was.
fn voice(gateways: [&Gateway; 2], arguments: &str) -> Result<Said, (String, bool)> {
    let mut command = Command::new(PROGRAM);
    command.args(["load", "--voice", "--json", "--listen", &format!("{AGENT}:2727"), "--channels", "4", "--trunk-jitter", "120"]);
    command.args(["--target", &format!("{NEAR_GATEWAY}:2427,{FAR_GATEWAY}:2427")]);
    command.args(["--trunk", &format!("ds/ds1-1={AGENT}:51000,{NEAR_GATEWAY}:50000")]);
    command.args(["--to-trunk", &format!("ds/ds1-1={AGENT}:52000,{FAR_GATEWAY}:50000")]);
    command.args(arguments.split(' ')).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let watch = CpuWatch::over(&gateways.map(Gateway::pid));
    let load = command.spawn().unwrap();
    watch.add(load.id());
    let output = load.wait_with_output().unwrap();
    let starved = watch.starved();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let said = Said { report, starved };
    if output.status.success() { Ok(said) } else { Err(said.failed("calls did not go well")) }
}

/// Two gateways, and what is done with them; skipped, with the reason, where no namespaces can be made.
fn between_two_gateways(test: &str, body: impl FnOnce(&Gateway, &Gateway) + Send) {
    between_two(test, ["off"; 2], body);
}

/// The same with what they do about the protection of media.
fn between_two(test: &str, srtp: [&str; 2], body: impl FnOnce(&Gateway, &Gateway) + Send) {
    let tuning = |gateway, far_end, srtp| tuning(gateway, far_end).set("cards.cesopsn.srtp", &format!("{srtp:?}"));
    let run = || match Pair::new("1") {
        Err(reason) => eprintln!("skipped: {test}: {reason}"),
        Ok(pair) => {
            // A veth pair passes datagrams that are sent at once on as one, for hardware to cut: what is captured would be none that is sent.
            complete_checksums(NEAR);
            pair.within(|| complete_checksums(FAR));
            let near = Gateway::start(tuning(NEAR_GATEWAY, 51_000, srtp[0]));
            let far = pair.within(|| Gateway::start(tuning(FAR_GATEWAY, 52_000, srtp[1])));
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
    /// `None`, with the reason printed, where there is no tshark. Where it is, dumpcap must be too: the one is of no use without the other.
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
                let tshark = Command::new("tshark").arg("-v").output();
                assert!(
                    tshark.is_err(),
                    "tshark is installed, and dumpcap, which captures for it, is not (wireshark-common has it): {error}"
                );
                eprintln!("skipped: the packets on the wire are not looked at: neither dumpcap nor tshark is installed: {error}");
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

/// What sox makes of a recording: its rate, channels and seconds, and, of the second that ends half a second before it does, the effective value
/// (full scale is 1) and roughly the frequency.
#[derive(Debug)]
struct Played {
    rate: f64,
    channels: f64,
    seconds: f64,
    effective: f64,
    frequency: f64,
}

/// Plays a recording; `None`, with the reason printed, where there is no sox.
fn play(recording: &Path) -> Option<Played> {
    let run = |arguments: &[&str]| {
        let output = Command::new("sox").args(arguments).output().ok()?;
        assert!(output.status.success(), "sox {arguments:?}: {output:?}");
        Some(String::from_utf8_lossy(if output.stdout.is_empty() { &output.stderr } else { &output.stdout }).into_owned())
    };
    let name = recording.to_str().unwrap();
    let Some(statistics) = run(&[name, "-n", "trim", "-1.5", "1", "stat"]) else {
        eprintln!("skipped: recordings are not played: sox is not installed");
        return None;
    };
    let number = |text: &str| text.trim().parse().unwrap_or_else(|error| panic!("{error}: {text:?}"));
    let value = |line: &str| {
        let words = |line: &str| line.split_whitespace().collect::<String>();
        number(statistics.lines().find_map(|given| words(given).strip_prefix(line).map(str::to_owned)).expect(line).trim_start_matches(':'))
    };
    let about = |what: &str| number(&run(&["--info", what, name]).unwrap());
    let (effective, frequency) = (value("RMSamplitude"), value("Roughfrequency"));
    Some(Played { rate: about("-r"), channels: about("-c"), seconds: about("-D"), effective, frequency })
}

/// Must hold 3: what both ends of each of four calls heard is the tone at its level, and as long as the call.
fn assert_recordings_play(directory: &Path) {
    let mut names: Vec<_> = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    names.sort();
    let shown: Vec<_> = names.iter().map(|name| name.file_name().unwrap().to_str().unwrap()).collect();
    assert!(names.len() == 8 && shown[0].starts_with("00001-a-ds-ds1-1-") && shown[7].starts_with("00004-b-ds-ds1-1-"), "{shown:?}");
    for name in &names {
        let Some(played) = play(name) else { return };
        let Played { rate, channels, seconds, effective, frequency } = played;
        assert_eq!((rate, channels), (8_000.0, 1.0), "{name:?}");
        // Digits, half a second of silence, 2.5 s of the tone, and what a busy machine adds. Its level is judged where it is heard.
        assert!((3.0..30.0).contains(&seconds), "{name:?}: {played:?}");
        let dbm0 = 20.0 * (effective * 2f64.sqrt()).log10() + 3.17;
        assert!((dbm0 + 10.0).abs() < 0.5 && (900.0..1_100.0).contains(&frequency), "{name:?}: {dbm0} dBm0, {played:?}");
    }
}

/// Must hold 1 and 3: the tone keeps its level both ways and digits are notified at the other gateway; tshark reads every packet, and sox plays
/// what was heard.
#[test]
fn a_voice_and_digits_pass_from_trunk_to_trunk() {
    between_two_gateways("a_voice_and_digits_pass_from_trunk_to_trunk", |near, far| {
        let mut attempts = 0..;
        undisturbed_or_skipped("voice", || {
            let capture = Capture::start(&near.tuning.directory);
            let recordings = near.tuning.directory.join(format!("recordings-{}", attempts.next().unwrap()));
            let said = voice([near, far], &format!("--duration 1 --hold 2500 --digits 15# --record {}", recordings.display()))?;
            let (report, number) = (&said.report, |path: &str| said.number(path));
            assert!((number("/level_dbm0/min") + 10.0).abs() < 0.2 && (number("/level_dbm0/max") + 10.0).abs() < 0.2, "{report}");
            assert!(number("/delay_ms/max") < 2_000.0, "{report}");
            if number("/mos/min").max(0.0) < GOOD {
                return Err(said.failed("the voice is worse than the path"));
            }
            if (number("/calls"), number("/digits")) != (4.0, 24.0) || number("/rtp/received") < 400.0 {
                return Err(said.failed("too little"));
            }
            assert_recordings_play(&recordings);
            let Some(packets) = capture.map(Capture::read) else { return Ok(()) };
            for (protocol, least) in [("udp:rtp", 400), ("udp:rtcp", 4), ("pwcesopsn", 2_000), ("rtpevent", 30), ("mgcp:sdp", 4)] {
                let of = packets.iter().filter(|(protocols, _)| protocols.contains(protocol)).count();
                if of < least {
                    return Err(said.failed(&format!("{of} packets of {protocol} in {}", packets.len())));
                }
            }
            // What an ICMP message quotes ends where it ends.
            let wrong = packets.iter().find(|(protocols, rest)| !protocols.contains("icmp") && !rest.is_empty() && rest != "2");
            assert_eq!(wrong, None);
            Ok(())
        });
    });
}

/// Must hold 1: CLEARMODE is bit-exact from trunk to trunk.
#[test]
fn data_passes_from_trunk_to_trunk_without_a_wrong_bit() {
    between_two_gateways("data_passes_from_trunk_to_trunk_without_a_wrong_bit", |near, far| {
        undisturbed_or_skipped("data", || {
            let said = voice([near, far], "--duration 0.5 --hold 1500 --coding clearmode --period 10")?;
            let pattern = &said.report["pattern"];
            assert_eq!(pattern["bit_errors"], 0, "{}", said.report);
            if pattern["octets"].as_u64() > Some(8 * 6_000) { Ok(()) } else { Err(said.failed("too little")) }
        });
    });
}

/// Must hold 1: with 1 % of the packets lost and 20 ms of jitter no call is stuck, and what is lost is heard as a gap and not as a crack.
#[test]
fn a_bad_network_impairs_a_voice_and_ends_no_call() {
    between_two_gateways("a_bad_network_impairs_a_voice_and_ends_no_call", |near, far| {
        undisturbed_or_skipped("a bad network", || {
            let said = voice([near, far], "--duration 1 --hold 2500 --rtp-loss 1 --rtp-jitter 20")?;
            let number = |path: &str| said.number(path);
            let is_bad = number("/rtp/lost_on_purpose") > 0.0 && number("/rtp/lost") > 0.0 && number("/rtp_jitter_ms/max") > 2.0;
            match (number("/mos/min"), number("/impaired_share/mean")) {
                _ if !is_bad => Err(said.failed("the network was not bad")),
                (mos, impaired) if mos >= FAIR && impaired <= FAIR_IMPAIRED => Ok(()),
                _ => Err(said.failed("the voice is worse than the network")),
            }
        });
    });
}

/// RFC 3711, RFC 4568: one gateway requires protection, the other one accepts it, and a voice passes with its digits, also with packets lost;
/// what is not protected is refused. Keys are shown to nobody who traces.
#[test]
fn a_protected_voice_passes_from_trunk_to_trunk() {
    between_two("a_protected_voice_passes_from_trunk_to_trunk", ["require", "accept"], |near, far| {
        let _traced = trace(near, &["--seconds", "600"]);
        undisturbed_or_skipped("a protected voice", || {
            let said = voice([near, far], "--srtp --duration 0.5 --hold 1500 --digits 15# --rtp-loss 1")?;
            let number = |path: &str| said.number(path);
            if (number("/calls"), number("/digits")) != (4.0, 24.0) || number("/rtp/received") < 200.0 {
                return Err(said.failed("too little"));
            }
            let counters = |gateway: &Gateway| ["srtp_replayed", "srtp_unauthentic"].map(|name| gateway.counter(name));
            assert_eq!([counters(near), counters(far)], [[0; 2]; 2], "{}", said.report);
            Ok(())
        });
        let traced = std::fs::read_to_string(near.tuning.directory.join("trace")).unwrap();
        let stars = "*".repeat(40);
        assert!(traced.contains(" RTP/SAVP ") && traced.split("inline:").count() > 8, "{traced}");
        assert!(traced.split("inline:").skip(1).all(|rest| rest.starts_with(&stars)), "{traced}");
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
    let child = command
        .args(["--to-trunk", &format!("ds/ds1-2={ip}:51001,{ip}:50001")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let is_there = || std::net::UdpSocket::bind(addresses.agent()).is_err().then_some(());
    eventually("the agent is there", SOON, is_there);
    super::gateway::signal_to(child.id(), libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert_eq!([&report["calls"], &report["well"], &report["set_up"], &report["mos"]], [&0.into(), &0.into(), &0.into(), &Value::Null]);
    assert!(report["trunks"].as_array().is_some_and(|trunks| trunks.len() == 2 && trunks.iter().all(|trunk| trunk["received"] == 0)));
}
