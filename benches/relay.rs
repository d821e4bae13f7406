//! What it costs a core to pass RTP on, beside other gateways, and what calls cost the signalling.
//!
//! `cargo bench --bench relay` (best in a network namespace of its own, and under `chrt -r 1` where the machine has other work) has, in each of
//! `--rounds 3`, one after the other, this gateway and, where they are installed, osmo-mgw (Debian's `osmo-mgw`) and rtpengine
//! (`rtpengine-daemon`, in user space) pass `--calls 48` calls on: two connections each, 50 packets of G.711 a second from both ends. It tells the
//! CPU time of the server for each packet that came out again, less what it needs with the same connections and no packets. This gateway takes each packet apart,
//! plays it by the clock of a trunk and mixes it for the other connection (mode `confrnce`); the others hand datagrams over, which is the least that can be done.
//!
//! `cargo bench --bench relay -- --capacity 0,96,384,672` makes so many calls between a trunk and RTP of this gateway, on one core, and tells the share of the core, and how
//! long audits took meanwhile, sent one after the other, `--probes 200` a second.
#![allow(missing_docs, clippy::disallowed_methods, reason = "a program, which measures time and waits")]

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tollgate");
/// Where everybody is: nothing leaves the machine.
const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// The packet period.
const PERIOD: Duration = Duration::from_millis(20);
/// RTP with 20 ms of G.711.
const PACKET: usize = 172;
/// An answer comes within this.
const PATIENCE: Duration = Duration::from_secs(2);
/// So long packets are sent before anything is measured, and connections without packets are looked at.
const SETTLE: Duration = Duration::from_millis(700);
const IDLE: Duration = Duration::from_millis(1_500);
/// The longest that is measured: trunks that nobody plays are out of service after ten seconds.
const MEASURE_MAX: Duration = Duration::from_secs(5);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| arguments.iter().position(|argument| argument == name).and_then(|place| arguments.get(place + 1));
    let number = |name: &str, default: usize| value(name).and_then(|value| value.parse().ok()).unwrap_or(default);
    // `cargo test` runs benches once, quickly.
    let quick = !arguments.iter().any(|argument| argument == "--bench");
    let length = if quick { Duration::from_millis(200) } else { MEASURE_MAX.min(Duration::from_secs(number("--seconds", 5) as u64)) };
    let here = Place::new();
    println!("load average {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    if let Some(steps) = value("--capacity") {
        println!("calls    core %   ns/packet   audits   p50 us   p99 us  p99.9 us   longest   back of sent");
        for _ in 0..number("--rounds", 1) {
            for calls in steps.split(',').filter_map(|step| step.parse().ok()) {
                capacity(&here, calls, length, number("--probes", 200) as u32);
            }
        }
        return;
    }
    let (calls, rounds) = if quick { (2, 1) } else { (number("--calls", 48), number("--rounds", 3)) };
    println!("round server       ns/packet   idle %   core %   back of sent");
    for round in 1..=rounds {
        for kind in [Kind::Tollgate, Kind::OsmoMgw, Kind::Rtpengine] {
            if kind != Kind::Tollgate && (quick || !is_installed(kind.program())) {
                continue;
            }
            let mut server = Server::start(&here, kind, calls);
            let mut legs = server.relay(calls);
            let idle = server.share(IDLE);
            play(&mut legs, SETTLE);
            let (before, began) = (server.cpu_ns(), Instant::now());
            let (sent, back) = play(&mut legs, length);
            let (cpu, took) = (server.cpu_ns() - before, began.elapsed());
            let net = cpu as f64 - idle * took.as_nanos() as f64;
            println!(
                "{round:5} {:12} {:9.0} {:8.1} {:8.1}   {back} of {sent}",
                kind.program(),
                net / back.max(1) as f64,
                100.0 * idle,
                100.0 * cpu as f64 / took.as_nanos() as f64
            );
            assert!(!quick || back > sent / 2, "it passes packets on: {back} of {sent}");
        }
    }
}

/// So many calls between trunks and RTP, and audits meanwhile.
fn capacity(here: &Place, calls: usize, length: Duration, rate: u32) {
    let mut server = Server::start(here, Kind::Tollgate, calls.max(1));
    let mut legs: Vec<Leg> = (0..calls).map(|call| server.connect(&channel(call), call, "sendrecv").0).collect();
    play(&mut legs, SETTLE);
    let agent = server.agent.try_clone().unwrap();
    let prober = std::thread::spawn(move || probe(&agent, length, rate));
    let (before, began) = (server.cpu_ns(), Instant::now());
    let (sent, back) = play(&mut legs, length);
    let (cpu, took) = (server.cpu_ns() - before, began.elapsed());
    let mut times = prober.join().unwrap();
    times.sort_unstable();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).or(times.last()).map_or(f64::NAN, |t| t.as_secs_f64() * 1e6);
    println!(
        "{calls:5} {:9.1} {:11.0} {:8} {:8.0} {:8.0} {:9.0} {:9.0}   {back} of {sent}",
        100.0 * cpu as f64 / took.as_nanos() as f64,
        cpu as f64 / (sent + back).max(1) as f64,
        times.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

/// How long audits took that were sent at this rate, each after the answer to the one before.
fn probe(agent: &UdpSocket, length: Duration, rate: u32) -> Vec<Duration> {
    let begin = Instant::now();
    let mut times = Vec::new();
    let mut answer = [0; 4096];
    for n in 0u32.. {
        let due = begin + n * (Duration::from_secs(1) / rate.max(1));
        if due.duration_since(begin) >= length {
            break;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let id = 500_000 + n;
        let sent = Instant::now();
        agent.send(format!("AUEP {id} ds/ds1-1/1@tgw.example.net MGCP 1.0\r\nF: I\r\n").as_bytes()).unwrap();
        // What the gateway says of its own accord is no answer.
        while let Ok(length) = agent.recv(&mut answer) {
            if String::from_utf8_lossy(&answer[..length]).lines().any(|line| line.starts_with(&format!("200 {id} "))) {
                times.push(sent.elapsed());
                break;
            }
        }
    }
    times
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tollgate,
    OsmoMgw,
    Rtpengine,
}

impl Kind {
    fn program(self) -> &'static str {
        match self {
            Kind::Tollgate => "tollgate",
            Kind::OsmoMgw => "osmo-mgw",
            Kind::Rtpengine => "rtpengine",
        }
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is = std::env::split_paths(&path).any(|folder| folder.join(program).exists());
    if !is {
        println!("      {program}: not installed");
    }
    is
}

/// A folder for files of servers, which goes with this.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        let folder = std::env::temp_dir().join(format!("tollgate-relay-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Place(folder)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server, and whom it takes orders from.
struct Server {
    kind: Kind,
    child: Child,
    agent: UdpSocket,
    transaction: u32,
    /// Where the packets of trunks go.
    _sinks: Vec<UdpSocket>,
}

/// The name of the endpoint of a call.
fn channel(call: usize) -> String {
    format!("ds/ds1-{}/{}@tgw.example.net", call / 24 + 1, call % 24 + 1)
}

impl Server {
    fn start(here: &Place, kind: Kind, calls: usize) -> Server {
        let (agent, control) = (UdpSocket::bind((HERE, 2727)).unwrap(), if kind == Kind::Rtpengine { 2223 } else { 2427 });
        // The one before goes on for a moment behind its end.
        let until = Instant::now() + PATIENCE;
        while UdpSocket::bind((HERE, control)).is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        agent.connect((HERE, control)).unwrap();
        agent.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut sinks = Vec::new();
        let mut command = match kind {
            Kind::Tollgate => {
                let spans = calls.div_ceil(24) as u16;
                sinks.extend((0..spans).map(|n| UdpSocket::bind((HERE, 51_000 + n)).unwrap()));
                let mut command = Command::new(PROGRAM);
                command.args(["run", "--config"]).arg(here.file("tollgate.toml", &tollgate(&here.0, spans)));
                command
            }
            Kind::OsmoMgw => {
                let mut command = Command::new("osmo-mgw");
                command.args(["-s", "-c"]).arg(here.file("osmo-mgw.cfg", &osmo_mgw(calls)));
                command
            }
            Kind::Rtpengine => {
                let mut command = Command::new("rtpengine");
                command.args(["--foreground", "--table=-1", "--interface=127.0.0.1", "--listen-ng=127.0.0.1:2223", "--num-threads=1"]);
                command.args(["--port-min=16384", "--port-max=32767", "--log-level=3", "--log-stderr", "--config-file=none"]);
                command
            }
        };
        let log = || Stdio::from(std::fs::File::create(here.0.join("log")).unwrap());
        let child = command.stdin(Stdio::null()).stdout(log()).stderr(log()).spawn();
        let child = child.unwrap_or_else(|error| panic!("{}: {error}", kind.program()));
        let mut server = Server { kind, child, agent, transaction: 1000, _sinks: sinks };
        server.await_start(&here.0.join("log"));
        server
    }

    /// Until it says something, or is there.
    fn await_start(&mut self, log: &Path) {
        let port: u16 = if self.kind == Kind::Rtpengine { 2223 } else { 2427 };
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
            let table = std::fs::read_to_string("/proc/net/udp").unwrap_or_default();
            if table.contains(&format!(": 0100007F:{port:04X} ")) {
                std::thread::sleep(Duration::from_millis(200));
                return;
            }
        }
        panic!("{} does not listen: {}", self.kind.program(), std::fs::read_to_string(log).unwrap_or_default());
    }

    /// So many calls of two connections that hear each other: the legs, two and two.
    fn relay(&mut self, calls: usize) -> Vec<Leg> {
        let mut legs = Vec::new();
        for call in 0..calls {
            match self.kind {
                Kind::Tollgate | Kind::OsmoMgw => {
                    let bridge = self.kind == Kind::OsmoMgw;
                    let mode = if bridge { "sendrecv" } else { "confrnce" };
                    let name = if bridge { "rtpbridge/*@mgw".into() } else { channel(call) };
                    let (first, chosen) = self.connect(&name, call, mode);
                    legs.push(first);
                    legs.push(self.connect(&chosen.unwrap_or(name), call, mode).0);
                }
                Kind::Rtpengine => {
                    let mut pair = [Leg::new(2 * call), Leg::new(2 * call + 1)];
                    let (a, b) = (pair[0].description(), pair[1].description());
                    let id = format!("call{call}");
                    let offered = self.ng(&[("call-id", &id), ("command", "offer"), ("from-tag", "a"), ("sdp", &a)]);
                    let answered = self.ng(&[("call-id", &id), ("command", "answer"), ("from-tag", "a"), ("sdp", &b), ("to-tag", "b")]);
                    // What was offered to the callee is where it sends, and the other way round.
                    pair[1].to = Some(port_of(&offered));
                    pair[0].to = Some(port_of(&answered));
                    legs.extend(pair);
                }
            }
        }
        legs
    }

    /// A connection by MGCP, and the endpoint that was chosen.
    fn connect(&mut self, name: &str, call: usize, mode: &str) -> (Leg, Option<String>) {
        let mut leg = Leg::new(self.transaction as usize);
        self.transaction += 1;
        let id = self.transaction;
        let text = format!("CRCX {id} {name} MGCP 1.0\r\nC: {:x}\r\nL: p:20, a:PCMU\r\nM: {mode}\r\n\r\n{}", call + 1, leg.description());
        let answer = self.ask(text.as_bytes(), &format!("200 {id} "));
        leg.to = Some(port_of(&answer));
        let chosen = answer.lines().find_map(|line| line.strip_prefix("Z: ")).map(str::to_owned);
        (leg, chosen)
    }

    /// By rtpengine's own protocol: a cookie and a dictionary.
    fn ng(&mut self, pairs: &[(&str, &str)]) -> String {
        self.transaction += 1;
        let mut text = format!("{} d", self.transaction);
        for (key, value) in pairs {
            let _ = write!(text, "{}:{key}{}:{value}", key.len(), value.len());
        }
        text.push('e');
        self.ask(text.as_bytes(), &format!("{} d", self.transaction))
    }

    /// Sends this and waits for a line that begins so.
    fn ask(&self, octets: &[u8], beginning: &str) -> String {
        self.agent.send(octets).unwrap();
        let mut room = [0; 8192];
        loop {
            let length = self.agent.recv(&mut room).unwrap_or_else(|error| panic!("{} does not answer: {error}", self.kind.program()));
            let answer = String::from_utf8_lossy(&room[..length]).into_owned();
            if answer.lines().any(|line| line.starts_with(beginning)) {
                return answer;
            }
            assert!(!answer.lines().any(|line| line.starts_with(['4', '5']) && line.contains(" 1")), "refused: {answer}");
        }
    }

    /// CPU time of all its threads.
    fn cpu_ns(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let of = |task: &Path| std::fs::read_to_string(task.join("schedstat")).ok()?.split(' ').next()?.parse::<u64>().ok();
        tasks.flatten().filter_map(|task| of(&task.path())).sum()
    }

    /// The share of a core it takes when nothing comes.
    fn share(&self, length: Duration) -> f64 {
        let (before, began) = (self.cpu_ns(), Instant::now());
        std::thread::sleep(length);
        (self.cpu_ns() - before) as f64 / began.elapsed().as_nanos() as f64
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The port of the first `m=` line.
fn port_of(answer: &str) -> u16 {
    let from = answer.find("m=audio ").unwrap_or_else(|| panic!("no description: {answer}")) + 8;
    answer[from..].split(' ').next().unwrap().parse().unwrap()
}

fn tollgate(folder: &Path, spans: u16) -> String {
    format!(
        "[gateway]\ndomain = \"tgw.example.net\"\nlisten = [\"127.0.0.1:2427\"]\n[[agent]]\nname = \"ca\"\naddresses = [\"127.0.0.1\"]\n\
         notify = [\"127.0.0.1:2727\"]\n[cores]\nboth = 1\n[operator]\nsocket = {:?}\n[metrics]\naddress = \"127.0.0.1:9499\"\n[timers]\nalarm_declare = \"10s\"\n[cards.cesopsn]\n\
         media_address = \"127.0.0.1\"\n[[span]]\nkind = \"t1\"\nunit = \"1-{spans}\"\ncard = \"cesopsn\"\nlocal = \"127.0.0.1:50000\"\n\
         peer = \"127.0.0.1:51000\"\n",
        folder.join("socket")
    )
}

fn osmo_mgw(calls: usize) -> String {
    format!(
        "mgcp\n bind ip 127.0.0.1\n bind port 2427\n rtp port-range 16384 32767\n rtp bind-ip 127.0.0.1\n no rtp ip-probing\n \
         number endpoints {}\n no rtp keep-alive\n",
        calls.max(2)
    )
}

/// One end of a connection.
struct Leg {
    socket: UdpSocket,
    to: Option<u16>,
    packet: [u8; PACKET],
    sequence: u16,
}

impl Leg {
    fn new(number: usize) -> Leg {
        let socket = UdpSocket::bind((HERE, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut packet = [0; PACKET];
        packet[0] = 0x80;
        packet[8..12].copy_from_slice(&(number as u32 + 1).to_be_bytes());
        for (place, octet) in packet[12..].iter_mut().enumerate() {
            *octet = (place * 7) as u8;
        }
        Leg { socket, to: None, packet, sequence: 0 }
    }

    fn description(&self) -> String {
        let port = self.socket.local_addr().unwrap().port();
        format!("v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {port} RTP/AVP 0\r\na=ptime:20\r\n")
    }

    /// Takes what has come, and sends a packet: how many came.
    fn turn(&mut self) -> u64 {
        let mut room = [0; 2048];
        let mut came = 0;
        while self.socket.recv(&mut room).is_ok() {
            came += 1;
        }
        let Some(port) = self.to else { return came };
        self.packet[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        self.packet[4..8].copy_from_slice(&(u32::from(self.sequence) * 160).to_be_bytes());
        self.sequence = self.sequence.wrapping_add(1);
        // What does not fit is lost, and is missing in what comes back.
        let _ = self.socket.send_to(&self.packet, SocketAddr::from((HERE, port)));
        came
    }
}

/// All legs send for so long, evenly over each period: packets sent and come.
fn play(legs: &mut [Leg], length: Duration) -> (u64, u64) {
    let began = Instant::now();
    let (mut sent, mut came) = (0, 0);
    let count = legs.len() as u32;
    if count == 0 {
        std::thread::sleep(length);
    }
    for period in 0..(length.as_nanos() / PERIOD.as_nanos()) as u32 {
        for (leg, n) in legs.iter_mut().zip(0..) {
            let due = began + PERIOD * period + PERIOD * n / count;
            let early = due.saturating_duration_since(Instant::now());
            if early > Duration::from_micros(300) {
                std::thread::sleep(early);
            }
            came += leg.turn();
            sent += 1;
        }
    }
    (sent, came)
}
