//! One core, without IO, allocates nothing per command once it is warm, and protected media nothing per packet: a counting allocator watches them
//! (design section 3, step 7).

mod counting;
#[path = "counting/h248.rs"]
mod h248;
#[path = "counting/voice.rs"]
mod voice;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tollgate::proto::base::{CoreId, Counters, EndpointIndex, FrameRef, Time};
use tollgate::proto::cas::Times;
use tollgate::proto::core::{Ask, Boot, Core, Envelope, Frames, Origin, Outside, Request, Turn};
use tollgate::proto::package::{PackageId, find_item};
use tollgate::proto::plan::{AgentSettings, Limits, Plan, Settings, SpanPlan};
use tollgate::proto::trunk::{CardOrder, EventText, Facility, FacilityKind, FacilityPlan, SimCard, SimulatedPlan, SpanIndex, Topology};

use counting::allocations;

const AGENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 2727);
const FRAME: usize = 2048;

/// The one received frame.
struct OneFrame {
    bytes: [u8; FRAME],
    length: usize,
    arrival: Time,
}

impl Frames for OneFrame {
    type Datagram<'a> = &'a [u8];

    fn read(&self, _: FrameRef) -> Option<(&[u8], Origin)> {
        Some((&self.bytes[..self.length], Origin { from: AGENT, local: 0, arrival: self.arrival }))
    }
}

/// The last datagram sent, and how often the frame came back.
struct Sent {
    bytes: [u8; FRAME],
    length: usize,
    released: u32,
}

impl Outside for Sent {
    fn transmit(&mut self, _: SocketAddr, _: u8, write: impl FnOnce(&mut [u8]) -> usize) -> bool {
        self.length = write(&mut self.bytes);
        true
    }

    fn forward(&mut self, _: CoreId, _: Envelope) -> bool {
        unreachable!("there is one core")
    }

    fn release(&mut self, _: FrameRef) {
        self.released += 1;
    }
}

/// The core with its frame, its way out and the time.
struct Bench {
    core: Core,
    frame: OneFrame,
    sent: Sent,
    now: Time,
    id: u32,
}

impl Bench {
    /// Lets the core take a datagram that `write` writes, and do what is due.
    fn play(&mut self, write: impl FnOnce(&mut dyn Write)) {
        self.now += Duration::from_millis(5);
        self.sent.length = 0;
        self.sent.released = 0;
        let mut rest = &mut self.frame.bytes[..];
        write(&mut rest);
        self.frame.length = FRAME - rest.len();
        self.frame.arrival = self.now;
        let mut turn = Turn { now: self.now, frames: &self.frame, out: &mut self.sent };
        self.core.handle_time(&mut turn);
        self.core.handle_datagram(&mut turn, FrameRef::default());
        self.core.handle_time(&mut turn);
        assert_eq!(self.sent.released, 1);
    }

    /// A command: its response has this code.
    fn command(&mut self, code: &str, verb: &str, channel: u32, parameters: std::fmt::Arguments<'_>) {
        self.id += 1;
        let id = self.id;
        self.play(|out| write!(out, "{verb} {id} ds/ds1-{}/{channel}@tgw.example.net MGCP 1.0\r\n{parameters}", 1 + id % 4).unwrap());
        assert!(self.response().starts_with(code), "{verb}: {}", self.response());
    }

    fn response(&self) -> &str {
        std::str::from_utf8(&self.sent.bytes[..self.sent.length]).unwrap()
    }

    /// The connection the response names.
    fn connection(&self) -> [u8; 8] {
        let response = self.response();
        let at = response.find("\nI: ").expect("a connection") + 4;
        response.as_bytes()[at..at + 8].try_into().unwrap()
    }

    /// Presses a key on the line of the latest command.
    fn press(&mut self, channel: u32, key: &[u8]) {
        let endpoint = EndpointIndex(24 * (self.id % 4) + channel - 1);
        let event = find_item(PackageId::D, key).unwrap();
        let order = CardOrder::Event { endpoint, connection: None, event, parameters: EventText::NONE };
        let mut turn = Turn { now: self.now, frames: &self.frame, out: &mut self.sent };
        while !self.core.handle_request(&mut turn, &mut Request::new(Ask::Card(order))) {}
        self.core.handle_time(&mut turn);
    }

    /// Answers the Notify that was sent last.
    fn answer(&mut self) {
        assert!(self.response().starts_with("NTFY ") && self.response().ends_with("O: D/1,D/9\r\n"), "{}", self.response());
        let id: u32 = self.response().split(' ').nth(1).unwrap().parse().unwrap();
        self.play(|out| write!(out, "200 {id} OK\r\n").unwrap());
    }

    /// A call with everything around it: seven commands on one endpoint.
    fn call(&mut self, n: u32) {
        let channel = 1 + n / 7 % 24;
        // The endpoint must be the same for the whole call, and the id decides the span.
        let step = |bench: &mut Bench| bench.id = bench.id / 4 * 4 + 3 + n % 4;
        step(self);
        self.command("200", "CRCX", channel, format_args!("C: {n:X}\r\nM: recvonly\r\nL: p:20, a:PCMU;PCMA\r\n"));
        let id = self.connection();
        let id = std::str::from_utf8(&id).unwrap();
        step(self);
        let sdp = "v=0\r\no=- 1 1 IN IP4 192.0.2.50\r\ns=-\r\nc=IN IP4 192.0.2.50\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0 8\r\na=ptime:20\r\n";
        self.command("200", "MDCX", channel, format_args!("C: {n:X}\r\nI: {id}\r\nM: sendrecv\r\nK: {}\r\n\r\n{sdp}", self.id - 3));
        step(self);
        self.command(
            "200",
            "RQNT",
            channel,
            format_args!(
                "X: {n:X}\r\nD: (xx|[0-7]xxx)\r\nN: ca1@[192.0.2.1]:2727\r\nR: D/[0-9T](D),T/oc(N)\r\nS: G/cg,T/bz(to=900)\r\nQ: loop\r\n"
            ),
        );
        self.press(channel, b"1");
        self.press(channel, b"9");
        self.answer();
        step(self);
        self.command("200", "AUEP", channel, format_args!("F: I,X,N,D,A,RM\r\n"));
        step(self);
        self.command("200", "AUCX", channel, format_args!("I: {id}\r\nF: C,L,M,LC,RC,P\r\n"));
        step(self);
        self.command("515", "MDCX", channel, format_args!("C: {n:X}\r\nI: 0\r\nM: inactive\r\n"));
        step(self);
        self.command("250", "DLCX", channel, format_args!("C: {n:X}\r\nI: {id}\r\n"));
        // A repeat of it.
        let id = self.id;
        self.play(|out| write!(out, "DLCX {id} ds/ds1-{}/{channel}@tgw.example.net MGCP 1.0\r\n", 1 + id % 4).unwrap());
        assert!(self.response().starts_with("250"));
    }
}

fn bench() -> Bench {
    let facility = |unit| FacilityPlan { kind: FacilityKind::T1, unit, common_channel: false };
    let topology = Arc::new(Topology::new(&(1..=4).map(facility).collect::<Vec<_>>()).unwrap());
    let facilities: Vec<Facility> = (0..4).map(|n| Facility::Span(SpanIndex(n))).collect();
    let card = SimCard::new(&SimulatedPlan {
        topology: &topology,
        kinds: &[],
        facilities: &facilities,
        address: IpAddr::from([192, 0, 2, 20]),
        ports: 16384..=32767,
        part: (0, 1),
        connections: 384,
        seed: 5,
    });
    let plan = Plan {
        spans: vec![SpanPlan::default(); 4],
        topology,
        domains: vec![b"tgw.example.net"[..].into()],
        listen: vec!["192.0.2.10:2427".parse().unwrap()],
        cores: 1,
        owners: vec![CoreId(0)],
        limits: Limits {
            connections: 384,
            connections_per_endpoint: 4,
            blob_blocks: 1024,
            entities: 16,
            jobs: 64,
            datagrams: 16,
            messages_per_datagram: 32,
            slice: 64,
            datagram: 2048,
            history_entries: 8000,
            history_bytes: 8 << 20,
            own_commands: 32,
        },
        times: Times::default(),
        admission: None,
        gateways: Vec::new(),
        epoch_ms: 0,
    };
    let agent = AgentSettings { delete_on_failure: false, ..AgentSettings::at("ca1", AGENT) };
    let mut settings = Settings::new(vec![agent]);
    settings.timers.max_waiting_delay = Some(Duration::ZERO);
    let now = Time::from_millis(1000);
    let boot = Boot {
        core: CoreId(0),
        plan: Arc::new(plan),
        settings: Arc::new(settings),
        counters: Arc::new(Counters::new()),
        card: Box::new(card),
        gateway_cards: Vec::new(),
        seed: 7,
        now,
    };
    let frame = OneFrame { bytes: [0; FRAME], length: 0, arrival: now };
    Bench { core: Core::new(boot), frame, sent: Sent { bytes: [0; FRAME], length: 0, released: 0 }, now, id: 1000 }
}

/// Confirms the restart.
fn confirm_restart(bench: &mut Bench) {
    for _ in 0..200 {
        bench.now += Duration::from_millis(5);
        let mut turn = Turn { now: bench.now, frames: &bench.frame, out: &mut bench.sent };
        bench.core.handle_time(&mut turn);
        if let Some(id) = bench.response().strip_prefix("RSIP ").and_then(|rest| rest.split(' ').next()) {
            let id: u32 = id.parse().unwrap();
            bench.play(|out| write!(out, "200 {id} OK\r\n").unwrap());
            return;
        }
    }
    panic!("no restart");
}

#[test]
fn ten_thousand_commands_allocate_nothing() {
    let mut bench = bench();
    confirm_restart(&mut bench);
    // Longer than T-HIST, so that the history forgets as much as it learns.
    (0..1000).for_each(|n| bench.call(n));
    let before = allocations();
    (1000..2500).for_each(|n| bench.call(n));
    assert_eq!(allocations() - before, 0, "allocations in 10,500 commands");
    // The counter counts.
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(allocations() - before, 1);
}
