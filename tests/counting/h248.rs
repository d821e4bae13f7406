//! A gateway as its H.248 controller sees it allocates nothing per transaction once it is warm, in text and in binary (PRF-09).

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tollgate::proto::base::{CoreId, Counter, Counters, Rng, Time};
use tollgate::proto::cas::Times;
use tollgate::proto::codec::h248::{Shape, binary};
use tollgate::proto::h248::{Boot, Gateway, State};
use tollgate::proto::plan::{AgentSettings, GatewayPlan, Limits, MessageEncoding, Plan, Settings, SpanPlan};
use tollgate::proto::trunk::{Facility, FacilityKind, FacilityPlan, SimCard, SimulatedPlan, SpanIndex, Topology};

use crate::counting::allocations;

const ROOM: usize = 4000;

/// A gateway of one T1 and what its controller needs; nothing of it grows.
struct Bench {
    gateway: Gateway,
    counters: Arc<Counters>,
    encoding: MessageEncoding,
    now: Time,
    id: u32,
    shape: Shape,
    said: [u8; ROOM],
    octets: [u8; ROOM],
    heard: [u8; ROOM],
    length: usize,
}

fn controller() -> SocketAddr {
    ([192, 0, 2, 1], 2944).into()
}

fn bench(encoding: MessageEncoding) -> Box<Bench> {
    let topology = Arc::new(Topology::new(&[FacilityPlan { kind: FacilityKind::T1, unit: 1, common_channel: false }]).unwrap());
    let card = SimCard::new(&SimulatedPlan {
        topology: &topology,
        kinds: &[],
        facilities: &[Facility::Span(SpanIndex(0))],
        address: IpAddr::from([192, 0, 2, 20]),
        ports: 16384..=32767,
        part: (0, 1),
        connections: 96,
        seed: 5,
    });
    let own = GatewayPlan {
        name: "gw".into(),
        message_id: "[192.0.2.10]:2944".into(),
        listen: 1,
        streams: false,
        core: CoreId(0),
        spread: false,
        controllers: vec![controller()],
        has_t3: false,
        encoding,
        max_message: 2000,
        connections: 96,
    };
    let plan = Plan {
        spans: vec![SpanPlan { gateway: Some(0), ..SpanPlan::default() }],
        topology,
        domains: vec![b"tgw.example.net"[..].into()],
        listen: vec!["192.0.2.10:2427".parse().unwrap(), "192.0.2.10:2944".parse().unwrap()],
        cores: 1,
        owners: vec![CoreId(0)],
        limits: Limits {
            connections: 96,
            connections_per_endpoint: 4,
            blob_blocks: 512,
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
        gateways: vec![own],
        epoch_ms: 0,
    };
    let settings = Settings::new(vec![AgentSettings::at("ca", ([192, 0, 2, 99], 2727).into())]);
    let (now, counters) = (Time::from_millis(1000), Arc::new(Counters::new()));
    let (plan, settings, shared) = (Arc::new(plan), Arc::new(settings), counters.clone());
    let boot = Boot { index: 0, plan, settings, counters: shared, card: Box::new(card), rng: Rng::new(7), now };
    let gateway = Gateway::new(boot).unwrap();
    let [said, octets, heard] = [[0; ROOM]; 3];
    Box::new(Bench { gateway, counters, encoding, now, id: 0, shape: Shape::new(), said, octets, heard, length: 0 })
}

impl Bench {
    /// A message of the controller; what comes last of the gateway is heard, as text.
    fn say(&mut self, body: std::fmt::Arguments<'_>) {
        self.now += Duration::from_millis(10);
        let mut rest = &mut self.said[..];
        write!(rest, "!/1 [192.0.2.1]:2944\n{body}").unwrap();
        let length = ROOM - rest.len();
        let Bench { gateway, encoding, now, shape, said, octets, heard, length: got, .. } = self;
        let is_binary = *encoding == MessageEncoding::Binary;
        let message = if is_binary {
            let length = binary::from_text(&said[..length], shape, octets).unwrap();
            &octets[..length]
        } else {
            &said[..length]
        };
        let mut hear = |_: SocketAddr, bytes: &[u8]| {
            *got = if is_binary {
                binary::to_text(bytes, heard).unwrap()
            } else {
                heard[..bytes.len()].copy_from_slice(bytes);
                bytes.len()
            };
        };
        gateway.handle_datagram(*now, controller(), message, &mut hear);
        gateway.handle_time(*now, &mut hear);
        while gateway.take_freed().is_some() {}
    }

    fn heard(&self) -> &str {
        std::str::from_utf8(&self.heard[..self.length]).unwrap()
    }

    /// A transaction that goes well; the reply before it is acknowledged with it.
    fn ask(&mut self, actions: std::fmt::Arguments<'_>) {
        self.id += 1;
        let id = self.id;
        self.say(format_args!("K{{{}}}T={id}{{{actions}}}", id.max(2) - 1));
        assert!(self.heard().contains("P=") && !self.heard().contains("ER="), "{actions}: {}", self.heard());
    }

    fn register(&mut self) {
        while !self.heard().contains("SC=ROOT") {
            self.now += Duration::from_millis(50);
            self.say(format_args!("PN=1{{}}"));
        }
        let id: u32 = self.heard().split_once("T=").unwrap().1.split('{').next().unwrap().parse().unwrap();
        self.say(format_args!("P={id}{{C=-{{SC=ROOT{{SV{{V=1,20260101T00000012}}}}}}}}"));
        assert_eq!(self.gateway.state(), State::Active);
        self.id = 1000;
    }

    /// A call with everything around it.
    fn call(&mut self, n: u32) {
        let channel = 1 + n % 24;
        self.ask(format_args!(
            "C=${{A=ds/ds1_1/{channel}{{M{{O{{MO=SR}}}},E=5{{dd/*,g/cause}},SG{{cg/rt}}}},\
             A=${{M{{O{{MO=RC}},L{{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0 8\na=ptime:20\n}}}}}}}}"
        ));
        let number = |text: &str, mark: &str| -> u32 {
            let rest = text.split_once(mark).unwrap_or_else(|| panic!("{text}")).1;
            rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
        };
        let (context, rtp) = (number(self.heard(), "C="), number(self.heard(), "rtp/"));
        self.ask(format_args!("C={context}{{MF=rtp/{rtp}{{M{{O{{MO=SR}},R{{\nv=0\nc=IN IP4 192.0.2.50\nm=audio 4000 RTP/AVP 0\n}}}}}}}}"));
        self.ask(format_args!("C={context}{{MF=ds/ds1_1/{channel}{{SG{{}},E=6{{dd/ce{{DM={{(xx|0x.)}}}}}}}},AV=rtp/{rtp}{{AT{{M,SA}}}}}}"));
        self.ask(format_args!("C={context}{{S=ds/ds1_1/{channel},S=rtp/{rtp}}}"));
        assert!(self.heard().contains("nt/dur"), "{}", self.heard());
        // A copy of it.
        let id = self.id;
        self.say(format_args!("T={id}{{C={context}{{S=ds/ds1_1/{channel},S=rtp/{rtp}}}}}"));
    }
}

#[test]
fn calls_of_a_controller_allocate_nothing() {
    for encoding in [MessageEncoding::Compact, MessageEncoding::Binary] {
        let mut bench = bench(encoding);
        bench.register();
        // Longer than the history remembers.
        (0..700).for_each(|n| bench.call(n));
        let before = allocations();
        (700..900).for_each(|n| bench.call(n));
        assert_eq!(allocations() - before, 0, "{encoding:?}: allocations in 800 transactions");
        assert_eq!((bench.counters.get(Counter::H248Adds), bench.gateway.contexts()), (1800, 0));
    }
}
