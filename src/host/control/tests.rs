//! The control loop over real sockets, in front of real cores that have no network.

use super::protocol::{Failure, FailureKind, How, Request, Response, Sim, Timed, What};
use super::view::Body;
use super::{Control, Setup};
use crate::config::{self, Config, CpuFacts};
use crate::host::boot;
use crate::host::clock::Clock;
use crate::host::cores::{CorePort, Cores, Pulse, ToCore};
use crate::host::dns::table::{Known, Table};
use crate::host::transport::wake;
use crate::proto::base::{CoreId, Counter, Counters, FrameRef};
use crate::proto::core::{Boot, Core, Envelope, Frames, Origin, Outside, Turn};
use crate::proto::plan::Plan;
use crossbeam::channel::{Receiver, Sender, bounded, unbounded};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A directory that goes away.
pub(in crate::host) struct Scratch(PathBuf);

impl Scratch {
    pub(in crate::host) fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tollgate-control-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(in crate::host) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Two T1 and so many cores of role both.
pub(in crate::host) fn text(cores: u8) -> String {
    format!(
        r#"
        [cores]
        both = {cores}
        [[agent]]
        name = "ca"
        addresses = ["127.0.0.1"]
        notify = ["127.0.0.1"]
        [[span]]
        kind = "t1"
        unit = "1-2"
        [timers]
        shutdown_grace = "100ms"
        mwd = "0s"
        [metrics]
        address = "off"
        "#
    )
}

fn facts() -> CpuFacts {
    CpuFacts { cpus: vec![(0, 0), (1, 0)] }
}

pub(super) fn plan(cores: u8) -> Plan {
    let config = Config::parse(&text(cores), "test").unwrap();
    let layout = config::plan(&config, &facts()).unwrap();
    boot::plan(&config, &layout).unwrap()
}

/// Cores that run in threads, hear each other, and send to nobody.
struct Machines {
    cores: Arc<Cores>,
    clock: Clock,
    config: Config,
    threads: Vec<JoinHandle<()>>,
}

impl Machines {
    fn start(config: Config) -> Machines {
        let clock = Clock::new();
        let layout = config::plan(&config, &facts()).unwrap();
        let plan = Arc::new(boot::plan(&config, &layout).unwrap());
        let settings = Arc::new(boot::settings(&config, &Known::new()));
        let rings: Vec<_> = (0..plan.cores).map(|_| unbounded()).collect();
        let all: Vec<Sender<(CoreId, Envelope)>> = rings.iter().map(|(sender, _)| sender.clone()).collect();
        let (mut ports, mut threads) = (Vec::new(), Vec::new());
        for (number, (_, envelopes)) in rings.into_iter().enumerate() {
            let id = CoreId(number as u8);
            let (inbox, orders) = bounded(crate::host::cores::REQUESTS);
            let (waker, _) = wake::pair().unwrap();
            let (counters, pulse) = (Arc::new(Counters::new()), Arc::new(Pulse::default()));
            let card = crate::host::card::of_core(&config, &plan, id, &clock).unwrap();
            let (plan, settings, now) = (plan.clone(), settings.clone(), clock.now());
            let core =
                Core::new(Boot { core: id, plan, settings, counters: counters.clone(), card, gateway_cards: Vec::new(), seed: 7, now });
            let wires = Wires { id, all: all.clone() };
            let beats = pulse.clone();
            ports.push(CorePort { core: id, cpu: None, steering: "-", counters, inside: Arc::default(), pulse, inbox, waker });
            threads.push(std::thread::spawn(move || turn_round(core, &clock, &orders, &envelopes, wires, &beats)));
        }
        Machines { cores: Arc::new(Cores { ports, plan, clock, tap: Arc::default() }), clock, config, threads }
    }

    /// The control loop in front of them, and the operator's way in.
    fn control(&self, scratch: &Scratch, path: Option<PathBuf>) -> (Control, Operator) {
        let socket = scratch.path().join("socket");
        let control = Control::new(Setup {
            bypass: None,
            cluster: None,
            cores: self.cores.clone(),
            config: self.config.clone(),
            config_path: path,
            socket: Some(socket.clone()),
            facts: facts(),
            layout: config::plan(&self.config, &facts()).unwrap(),
            settings: boot::settings,
            names: Table::default(),
            clock: self.clock,
        });
        (control.unwrap(), Operator { socket, clock: self.clock })
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        self.cores.stop();
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

fn config(cores: u8) -> Config {
    Config::parse(&text(cores), "test").unwrap()
}

fn turn_round(
    mut core: Core,
    clock: &Clock,
    orders: &Receiver<ToCore>,
    envelopes: &Receiver<(CoreId, Envelope)>,
    mut wires: Wires,
    pulse: &Pulse,
) {
    loop {
        pulse.beat.store(clock.now().0, Ordering::Relaxed);
        let order = orders.recv_timeout(Duration::from_millis(1)).ok();
        let mut turn = Turn { now: clock.now(), frames: &NoFrames, out: &mut wires };
        while let Ok((from, envelope)) = envelopes.try_recv() {
            core.handle_envelope(&mut turn, from, envelope);
        }
        core.handle_time(&mut turn);
        match order {
            Some(ToCore::Request(mut request, reply)) => {
                while !core.handle_request(&mut turn, &mut request) {}
                let _ = reply.send(request);
            }
            Some(ToCore::Settings(settings)) => core.set_settings(clock.now(), settings),
            Some(ToCore::Hold(time)) => std::thread::park_timeout(time),
            Some(ToCore::Stop) => return,
            None | Some(ToCore::Strays(_)) => {}
        }
    }
}

struct NoFrames;

impl Frames for NoFrames {
    type Datagram<'a> = &'a [u8];

    fn read(&self, _: FrameRef) -> Option<(&[u8], Origin)> {
        None
    }
}

struct Wires {
    id: CoreId,
    all: Vec<Sender<(CoreId, Envelope)>>,
}

impl Outside for Wires {
    fn transmit(&mut self, _: SocketAddr, _: u8, write: impl FnOnce(&mut [u8]) -> usize) -> bool {
        write(&mut [0; 4096]) > 0
    }

    fn forward(&mut self, to: CoreId, envelope: Envelope) -> bool {
        self.all[usize::from(to.0)].send((self.id, envelope)).is_ok()
    }

    fn release(&mut self, _: FrameRef) {}
}

/// Whoever asks.
struct Operator {
    socket: PathBuf,
    clock: Clock,
}

impl Operator {
    fn line(&self, line: &[u8]) -> Response {
        let stream = UnixStream::connect(&self.socket).unwrap();
        let mut timed = Timed::new(&stream, self.clock, Duration::from_secs(10));
        timed.write_line(line.to_vec()).unwrap();
        serde_json::from_slice(&timed.read_line(super::protocol::RESPONSE_MAX).unwrap()).unwrap()
    }

    fn ask(&self, request: &Request) -> Response {
        self.line(&serde_json::to_vec(request).unwrap())
    }

    fn show(&self, what: What, name: Option<&str>, state: Option<&str>) -> Body {
        self.ask(&Request::Show { what, name: name.map(Into::into), state: state.map(Into::into) }).body
    }

    fn refused(&self, request: &Request) -> Failure {
        match self.ask(request).body {
            Body::Error(failure) => failure,
            body => panic!("{body:?}"),
        }
    }

    fn done(&self, request: &Request) -> String {
        match self.ask(request).body {
            Body::Done(words) => words,
            body => panic!("{body:?}"),
        }
    }

    /// Names of the endpoints in a state, once there are `count`: orders take effect on the way through the lead core.
    fn endpoints(&self, state: &str, count: usize) -> Vec<String> {
        let names = || match self.show(What::Endpoints, None, Some(state)) {
            Body::Endpoints(list) => list.rows.into_iter().map(|row| row.name).collect::<Vec<_>>(),
            body => panic!("{body:?}"),
        };
        for _ in 0..500 {
            let names = names();
            if names.len() == count {
                return names;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        panic!("{state}: {:?}, not {count}", names())
    }
}

fn alarm(facility: &str, defect: &str) -> Request {
    Request::Sim(Sim::Alarm { facility: facility.into(), defect: defect.into(), now: true })
}

#[test]
fn lists_tell_of_every_core() {
    for cores in [1, 2] {
        let (scratch, machines) = (Scratch::new(), Machines::start(config(cores)));
        let (_control, operator) = machines.control(&scratch, None);
        let response = operator.ask(&Request::Show { what: What::Cores, name: None, state: None });
        assert!(response.gateway.simulated && response.silent_cores.is_empty(), "{response:?}");
        let Body::Cores(list) = response.body else { panic!("{response:?}") };
        assert_eq!(list.rows.iter().map(|row| row.load.unwrap().endpoints).sum::<u32>(), 48);
        assert!(list.rows.iter().all(|row| row.role == "both" && row.state == "up" && row.beat_age_ms < 500));
        let Body::Spans(spans) = operator.show(What::Spans, None, None) else { panic!() };
        let states: Vec<_> = spans.rows.iter().map(|row| (&*row.name, &*row.administrative, &*row.operational, row.endpoints)).collect();
        assert_eq!(states, [("ds/ds1-1", "unblocked", "up", 24), ("ds/ds1-2", "unblocked", "up", 24)]);
        assert!(spans.rows.iter().all(|row| row.usage.unwrap().in_service == 24 && row.usage.unwrap().busy == 0));
        assert_eq!(operator.endpoints("idle", 48)[47], "ds/ds1-2/24");
        let Body::Endpoints(some) = operator.show(What::Endpoints, Some("ds/*-2/2*"), None) else { panic!() };
        assert_eq!(
            some.rows.iter().map(|row| &*row.name).collect::<Vec<_>>(),
            ["ds/ds1-2/2", "ds/ds1-2/20", "ds/ds1-2/21", "ds/ds1-2/22", "ds/ds1-2/23", "ds/ds1-2/24"]
        );
        let Body::Endpoint(one) = operator.show(What::Endpoint, Some("ds/ds1-2/7@tgw.example.net"), None) else { panic!() };
        assert_eq!((one.index, &*one.law, &*one.entity, one.in_service), (30, "mu", "ca@[127.0.0.1]:2727", true));
        assert!(matches!(operator.show(What::Connections, None, None), Body::Connections(list) if list.rows.is_empty()));
        assert!(matches!(operator.show(What::Agents, Some("c*"), None), Body::Agents(list) if list.rows[0].notify == ["127.0.0.1:2727"]));
        assert!(matches!(operator.show(What::Transactions, None, None), Body::Transactions(t) if t.cores.len() == usize::from(cores)));
        for (what, pattern) in [
            (What::Cores, "x"),
            (What::Spans, "ds/ds1-3"),
            (What::Alarms, "ds/*-9"),
            (What::Endpoints, "ds/*-9/*"),
            (What::Connections, "nowhere*"),
            (What::Agents, "mallory"),
            (What::Transactions, "mallory"),
            (What::Counters, "crcs_*"),
        ] {
            let Body::Error(failure) = operator.show(what, Some(pattern), None) else { panic!("{pattern}") };
            assert!(failure.kind == FailureKind::Unknown && failure.message.starts_with(pattern), "{failure:?}");
        }
        assert!(matches!(operator.show(What::Alarms, Some("ds/ds1-1"), None), Body::Alarms(list) if list.rows.is_empty()));
        assert!(matches!(operator.show(What::Connections, Some("ds/*/1"), None), Body::Connections(list) if list.rows.is_empty()));
        assert!(matches!(operator.show(What::Cores, Some("0"), None), Body::Cores(list) if list.rows.len() == 1));
        machines.cores.ports[0].counters.add(Counter::CrcxDone);
        let Body::Counters(counters) = operator.show(What::Counters, Some("crcx_*"), None) else { panic!() };
        assert_eq!(counters.counters.iter().map(|row| (&*row.name, row.total)).collect::<Vec<_>>(), [("crcx_done", 1)]);
    }
}

#[test]
fn blocking_and_failing_are_apart() {
    let (scratch, machines) = (Scratch::new(), Machines::start(config(2)));
    let (_control, operator) = machines.control(&scratch, None);
    operator.done(&Request::Block { name: "ds/ds1-1/[1-12]".into(), how: How::Force });
    assert_eq!(operator.endpoints("blocked", 12)[11], "ds/ds1-1/12");
    operator.done(&alarm("ds/ds1-1", "los"));
    operator.endpoints("down", 24);
    operator.endpoints("out", 24);
    let Body::Endpoint(both) = operator.show(What::Endpoint, Some("ds/ds1-1/12"), None) else { panic!() };
    assert_eq!((&*both.administrative, &*both.operational, both.failure.as_deref()), ("blocked", "down", Some("los")));
    let Body::Endpoint(failed) = operator.show(What::Endpoint, Some("ds/ds1-1/13"), None) else { panic!() };
    assert_eq!((&*failed.administrative, &*failed.operational, failed.reason), ("unblocked", "down", 905));
    let Body::Spans(spans) = operator.show(What::Spans, None, Some("down")) else { panic!() };
    assert_eq!(spans.rows.iter().map(|row| (&*row.name, &*row.administrative)).collect::<Vec<_>>(), [("ds/ds1-1", "mixed")]);
    let Body::Alarms(alarms) = operator.show(What::Alarms, None, None) else { panic!() };
    let rows: Vec<_> = alarms.rows.iter().map(|row| (&*row.name, &*row.severity, &*row.what)).collect();
    assert_eq!(rows, [("ds/ds1-1", "major", "los"), ("ds/ds1-1", "minor", "12 of 24 endpoints blocked by an operator")]);
    operator.done(&alarm("ds/ds1-1", "clear"));
    operator.endpoints("down", 0);
    operator.endpoints("out", 12);
    operator.done(&Request::Unblock { name: "*".into() });
    operator.endpoints("out", 0);
}

#[test]
fn draining_is_said_and_taken_back() {
    let (scratch, machines) = (Scratch::new(), Machines::start(config(2)));
    let (_control, operator) = machines.control(&scratch, None);
    for (on, draining) in [(true, 2), (false, 0)] {
        operator.done(&Request::Drain { on });
        let count = || matches!(operator.show(What::Cores, None, Some("draining")), Body::Cores(list) if list.rows.len() == draining);
        assert!(
            (0..500).any(|_| count() || {
                std::thread::park_timeout(Duration::from_millis(5));
                false
            }),
            "{on}"
        );
    }
}

#[test]
fn orders_that_cannot_be_are_refused_with_a_reason() {
    let (scratch, machines) = (Scratch::new(), Machines::start(config(1)));
    let (_control, operator) = machines.control(&scratch, None);
    let show = |what, name: &str, state: &str| Request::Show { what, name: Some(name.into()), state: Some(state.into()) };
    for (request, words) in [
        (Request::Free { name: "ds/ds1-1".into() }, "ds/ds1-1/1"),
        (Request::Block { name: "ds/ds1-9/*".into(), how: How::Idle }, "no endpoint"),
        (Request::Unblock { name: "ds/ds1-1/1@other.net".into() }, "other.net"),
        (alarm("ds/ds1-1/1", "los"), "no facility"),
        (alarm("ds/ds1-1", "fire"), "los"),
        (Request::Sim(Sim::Loss { ppm: 1_000_001 }), "0..=1000000"),
        (Request::Sim(Sim::Stall { core: 9, ms: 1 }), "no core 9"),
        (show(What::Endpoints, "*", "asleep"), "blocked"),
        (show(What::Endpoints, "ds/ds1-3/1", "idle"), "no endpoint"),
        (show(What::Endpoint, "ds/ds1-3/1", "idle"), "no endpoint"),
        (Request::Reload { dry_run: true }, "built-in"),
    ] {
        let failure = operator.refused(&request);
        assert!(failure.message.contains(words), "{request:?}: {failure:?}");
    }
    for order in [Sim::Hang, Sim::Delay { ms: 0 }, Sim::Refuse { orders: 3 }, Sim::Loss { ppm: 10 }] {
        operator.done(&Request::Sim(order));
    }
    assert!(operator.done(&Request::Free { name: "ds/ds1-1/1".into() }).starts_with("ds/ds1-1/1 is free"));
}

#[test]
fn hostile_clients_get_an_answer_or_nothing_and_harm_nobody() {
    let (scratch, machines) = (Scratch::new(), Machines::start(config(1)));
    let (_control, operator) = machines.control(&scratch, None);
    let deep = "[".repeat(4000);
    for line in ["", "{", "\u{0}", "GET / HTTP/1.1", &deep, r#"{"show":{"what":"cores","name":7}}"#] {
        let Body::Error(failure) = operator.line(line.as_bytes()).body else { panic!("{line}") };
        assert_eq!(failure.kind, FailureKind::BadRequest, "{line}");
    }
    let Body::Error(failure) = operator.line(&[0xff, 0xfe]).body else { panic!() };
    assert_eq!(failure.kind, FailureKind::BadRequest);
    let Body::Error(failure) = operator.line(&[b'x'; 5000]).body else { panic!() };
    assert!(failure.message.contains("too long"), "{failure:?}");
    // Those who say nothing make room for those who do, and are told why.
    let idle: Vec<_> = (0..40).map(|_| UnixStream::connect(&operator.socket).unwrap()).collect();
    assert!(matches!(operator.show(What::Cores, None, None), Body::Cores(_)));
    let told = Timed::new(&idle[0], operator.clock, Duration::from_secs(5)).read_line(4096).unwrap();
    assert!(String::from_utf8_lossy(&told).contains("busy"));
}

#[test]
fn a_silent_core_is_told_and_the_others_still_answer() {
    let mut config = config(2);
    config.limits.stall_alarm = Duration::from_millis(100);
    let (scratch, machines) = (Scratch::new(), Machines::start(config));
    let (_control, operator) = machines.control(&scratch, None);
    let other = u8::from(machines.cores.plan.lead().0 == 0);
    operator.done(&Request::Sim(Sim::Stall { core: other, ms: 1500 }));
    // At once, before anybody can know that it is silent: it is not waited for until it answers.
    let response = operator.ask(&Request::Show { what: What::Endpoints, name: None, state: None });
    assert_eq!(response.silent_cores, [other]);
    assert!(matches!(response.body, Body::Endpoints(list) if list.rows.len() == 24));
    let Body::Alarms(alarms) = operator.show(What::Alarms, None, None) else { panic!() };
    assert_eq!((&*alarms.rows[0].name, &*alarms.rows[0].severity), (&*format!("core {other}"), "critical"));
    assert!(matches!(operator.show(What::Cores, None, Some("silent")), Body::Cores(list) if list.rows.len() == 1));
}

#[test]
fn what_is_not_as_usual_shows_as_an_alarm() {
    let mut config = config(2);
    (config.timers.max1, config.timers.max2) = (0, 1);
    let (scratch, machines) = (Scratch::new(), Machines::start(config));
    let (_control, operator) = machines.control(&scratch, None);
    let agent = machines.config.agents[0].name.clone();
    let alarms = || {
        let Body::Alarms(alarms) = operator.show(What::Alarms, None, None) else { panic!() };
        assert!(alarms.rows.iter().all(|row| row.age_s.is_some()), "{:?}", alarms.rows);
        alarms.rows.into_iter().map(|row| (row.name, row.kind, row.severity)).collect::<Vec<_>>()
    };
    let until = |wanted: &[(&str, &str, &str)]| {
        let wanted: Vec<_> = wanted.iter().map(|(a, b, c)| (a.to_string(), b.to_string(), c.to_string())).collect();
        let reached = (0..1000).any(|_| {
            std::thread::park_timeout(Duration::from_millis(5));
            alarms() == wanted
        });
        assert!(reached, "{:?} instead of {wanted:?}", alarms());
    };
    // Nobody answers here.
    let silent = (&*agent, "agent-silent", "major");
    until(&[silent]);
    operator.done(&Request::Drain { on: true });
    until(&[silent, ("gateway", "draining", "minor")]);
    operator.done(&Request::Drain { on: false });
    operator.done(&Request::Block { name: "ds/ds1-1".into(), how: How::Force });
    operator.done(&Request::Block { name: "ds/ds1-2/3".into(), how: How::Force });
    until(&[silent, ("ds/ds1-1", "blocked", "minor"), ("ds/ds1-2", "blocked", "minor")]);
    operator.done(&Request::Unblock { name: "*".into() });
    until(&[silent]);
}

#[test]
fn a_reload_is_whole_or_nothing() {
    let (scratch, machines) = (Scratch::new(), Machines::start(config(2)));
    let file = scratch.path().join("gateway.toml");
    let write = |text: String| std::fs::write(&file, text).unwrap();
    let (control, operator) = machines.control(&scratch, Some(file.clone()));
    let reload = |dry_run| operator.ask(&Request::Reload { dry_run }).body;
    assert!(matches!(reload(false), Body::Error(failure) if failure.message.contains("cannot be read")));
    write(text(2) + "[limits]\nstall_exit = \"7s\"\n[log]\nlevel = \"debug\"\n");
    let Body::Reload(dry) = reload(true) else { panic!() };
    let keys = dry.changes.iter().map(|change| (&*change.key, change.needs_restart)).collect::<Vec<_>>();
    assert_eq!((dry.done, keys), (false, vec![("limits.stall_exit", false), ("log.level", false)]));
    write(text(1) + "[limits]\nstall_exit = \"7s\"\n");
    assert!(matches!(reload(false), Body::Error(failure) if failure.message.contains("cores.both") && failure.message.contains("restart")));
    write(text(2) + "[limits]\nstall_exit = \"never\"\n");
    assert!(matches!(reload(false), Body::Error(failure) if failure.message.contains("limits.stall_exit")));
    assert_eq!(control.gateway.config().limits.stall_exit, Duration::from_secs(30), "nothing was taken over so far");
    write(text(2).replace("notify = [\"127.0.0.1\"]", "notify = [\"127.0.0.1:2999\"]") + "[limits]\nstall_exit = \"7s\"\n");
    let Body::Reload(done) = reload(false) else { panic!() };
    assert!(done.done && done.changes.len() == 2, "{done:?}");
    assert_eq!(control.gateway.config().limits.stall_exit, Duration::from_secs(7));
    let told = || matches!(operator.show(What::Endpoint, Some("ds/ds1-2/1"), None), Body::Endpoint(row) if row.entity.ends_with(":2999"));
    assert!(
        (0..500).any(|_| told() || {
            std::thread::park_timeout(Duration::from_millis(5));
            false
        }),
        "the cores have the new address"
    );
    assert!(matches!(reload(false), Body::Reload(again) if again.done && again.changes.is_empty()));
}

#[test]
fn a_gateway_shuts_down_although_no_agent_answers() {
    let (scratch, machines) = (Scratch::new(), Machines::start(config(1)));
    let (control, _) = machines.control(&scratch, None);
    let before = machines.clock.now();
    control.gateway.shut_down();
    let took = machines.clock.now().since(before);
    assert!(took < Duration::from_secs(6), "{took:?}");
}

#[test]
fn metrics_are_open_metrics() {
    let mut config = config(2);
    config.metrics.address = Some(([127, 0, 0, 1], 0).into());
    let agent = config.agents[0].name.clone();
    let (scratch, machines) = (Scratch::new(), Machines::start(config));
    let (control, _) = machines.control(&scratch, None);
    machines.cores.ports[1].counters.add_many(Counter::CrcxDone, 5);
    machines.cores.ports[1].counters.response(200);
    let get = |head: &str| {
        let mut stream = std::net::TcpStream::connect(control.metrics().unwrap()).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let text = get("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text") && text.ends_with("# EOF\n"), "{text}");
    for line in [
        "tollgate_crcx_done_total{core=\"1\"} 5",
        "tollgate_crcx_done_total{core=\"0\"} 0",
        "tollgate_responses_total{core=\"1\",code=\"200\"} 1",
        "tollgate_core_endpoints{core=\"0\"} 24.0",
        "tollgate_core_silent{core=\"0\"} 0.0",
        &format!("tollgate_agent_commands_total{{agent=\"{agent}\",from=\"gateway\",result=\"lost\"}} 0"),
        "tollgate_simulated 1",
        "tollgate_build_info{version=\"0.1.0\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    for name in ["core_beat_age_seconds", "core_sojourn_seconds", "history_entries", "core_connections"] {
        assert!(text.contains(&format!("tollgate_{name}{{core=\"1\"}} ")), "{name}");
    }
    assert!(get("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(get(&("x".repeat(3000) + "\r\n\r\n")).starts_with("HTTP/1.1 400"));
    let mut endless = std::net::TcpStream::connect(control.metrics().unwrap()).unwrap();
    assert!((0..1000).any(|_| endless.write_all(&[b'x'; 4096]).is_err()), "a head without end is cut off");
    // One who says nothing delays the next by the deadline and no more.
    let _silent = std::net::TcpStream::connect(control.metrics().unwrap()).unwrap();
    assert!(get("GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200"));
}
