//! A gateway and controllers that send what a test says.

mod admission;
mod apart;
mod audits;
mod binary;
mod calls;
mod commands;
mod digits;
mod events;
mod field_bugs;
mod overload;
mod parts;
mod protected;
mod registration;
mod signals;
mod slow;

use super::{Boot, Gateway, State};
use crate::proto::base::{CoreId, Counters, Rng, Time};
use crate::proto::cas::{self};
use crate::proto::codec::h248::{Shape, binary as binary_codec};
use crate::proto::endpoint::Service;
use crate::proto::package::ChannelKind;
use crate::proto::plan::{AgentSettings, GatewayPlan, Limits, MessageEncoding, Plan, Settings, SpanPlan};
use crate::proto::trunk::{CardOrder, Facility, FacilityKind, FacilityPlan, SimCard, SimulatedPlan, SpanIndex, Srtp, Topology};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub(super) const S: Duration = Duration::from_secs(1);
pub(super) const MS: Duration = Duration::from_millis(1);

/// Controllers at 192.0.2.1, 192.0.2.2, ...
pub(super) fn controller(number: u8) -> SocketAddr {
    ([192, 0, 2, number], 2944).into()
}

/// T1 1 and 2 are MGCP's, 3 and 4 the gateway's.
pub(super) fn plan(controllers: u8) -> Plan {
    let t1 = |unit| FacilityPlan { kind: FacilityKind::T1, unit, common_channel: false };
    let topology = Topology::new(&[1, 2, 3, 4].map(t1)).unwrap();
    let span = |gateway| SpanPlan { gateway, ..SpanPlan::default() };
    let own = GatewayPlan {
        name: "gw".into(),
        message_id: "[192.0.2.10]:2944".into(),
        listen: 1,
        streams: false,
        core: CoreId(0),
        spread: false,
        controllers: (1..=controllers).map(controller).collect(),
        has_t3: false,
        encoding: MessageEncoding::Compact,
        max_message: 4000,
        connections: 48,
    };
    Plan {
        spans: vec![span(None), span(None), span(Some(0)), span(Some(0))],
        domains: vec![b"tgw.example.net"[..].into()],
        listen: vec!["192.0.2.10:2427".parse().unwrap(), "192.0.2.10:2944".parse().unwrap()],
        cores: 1,
        owners: vec![CoreId(0)],
        limits: Limits {
            connections: 192,
            connections_per_endpoint: 4,
            blob_blocks: 256,
            entities: 4,
            jobs: 64,
            datagrams: 16,
            messages_per_datagram: 32,
            slice: 1000,
            datagram: 4400,
            history_entries: 1000,
            history_bytes: 1 << 20,
            own_commands: 64,
        },
        times: cas::Times::default(),
        admission: None,
        gateways: vec![own],
        // The first of January 2026.
        epoch_ms: 1_767_225_600_000,
        topology: topology.into(),
    }
}

/// The gateway, the time, and what it sent.
pub(super) struct Bench {
    pub gateway: Gateway,
    pub now: Time,
    /// To whom and what, since it was looked at last.
    pub sent: Vec<(SocketAddr, String)>,
    next: u32,
    encoding: MessageEncoding,
}

impl Bench {
    /// Just started, with so many controllers.
    pub fn started(controllers: u8) -> Bench {
        Bench::with(plan(controllers))
    }

    /// Registered with its only controller, in this encoding. What is said and sent is text here all the same.
    pub fn speaking(encoding: MessageEncoding) -> Bench {
        let mut plan = plan(1);
        plan.gateways[0].encoding = encoding;
        let mut bench = Bench::with(plan);
        bench.run(3 * S);
        bench.accept(controller(1));
        bench
    }

    /// Registered with its only controller, with a card that protects media so.
    pub fn protecting(srtp: Srtp) -> Bench {
        let mut bench = Bench::with_card(plan(1), |card| card.with_srtp(srtp));
        bench.run(3 * S);
        bench.accept(controller(1));
        bench
    }

    pub fn with(plan: Plan) -> Bench {
        Bench::with_card(plan, |card| card)
    }

    fn with_card(plan: Plan, change: impl FnOnce(SimCard) -> SimCard) -> Bench {
        let encoding = plan.gateways[0].encoding;
        let plan = Arc::new(plan);
        let settings = Arc::new(Settings::new(vec![AgentSettings::at("ca", ([192, 0, 2, 99], 2727).into())]));
        let spans = [SpanIndex(2), SpanIndex(3)].map(Facility::Span);
        let card = SimCard::new(&SimulatedPlan {
            topology: &plan.topology,
            kinds: &[ChannelKind::default(); 4],
            facilities: &spans,
            address: [192, 0, 2, 10].into(),
            ports: 16_384..=17_383,
            part: (0, 1),
            connections: 48,
            seed: 1,
        });
        let now = Time::from_millis(1);
        let counters = Arc::new(Counters::new());
        let boot = Boot { index: 0, plan, settings, counters, card: Box::new(change(card)), rng: Rng::new(7), now };
        Bench { gateway: Gateway::new(boot).unwrap(), now, sent: Vec::new(), next: 1, encoding }
    }

    /// Registered with the first of so many controllers.
    pub fn registered_with(controllers: u8) -> Bench {
        let mut bench = Bench::started(controllers);
        bench.run(3 * S);
        bench.accept(controller(1));
        bench
    }

    /// Registered with its only controller.
    pub fn registered() -> Bench {
        Bench::registered_with(1)
    }

    /// The registration that was sent last is accepted by `by`.
    pub fn accept(&mut self, by: SocketAddr) {
        let (to, text) = self.sent.iter().rev().find(|(_, text)| text.contains("SC=ROOT")).expect("a registration").clone();
        assert_eq!(to, by);
        let id = id_of(&text);
        self.sent.clear();
        self.say_from(by, &format!("P={id}{{C=-{{SC=ROOT{{SV{{V=1,20260101T00000012}}}}}}}}"));
        assert_eq!(self.gateway.state(), State::Active, "{:?}", self.sent);
    }

    /// Time passes; everything that is due is done.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.turn();
            let next = self.gateway.deadline();
            if next > end {
                break;
            }
            self.now = next.max(self.now + MS);
        }
        self.now = end;
        self.turn();
    }

    fn turn(&mut self) {
        let Bench { gateway, now, sent, encoding, .. } = self;
        gateway.handle_time(*now, &mut |to, bytes| sent.push((to, text(*encoding, bytes))));
    }

    /// A message with this body from the first controller.
    pub fn say(&mut self, body: &str) {
        self.say_from(controller(1), body);
    }

    pub fn say_from(&mut self, from: SocketAddr, body: &str) {
        let message = format!("!/1 [{}]:2944 {body}", from.ip());
        self.raw(from, message.as_bytes());
    }

    /// The bytes of a text.
    pub fn raw(&mut self, from: SocketAddr, bytes: &[u8]) {
        match self.encoding {
            MessageEncoding::Binary => {
                let mut room = [0; 8000];
                let length = binary_codec::from_text(bytes, &mut Shape::new(), &mut room).unwrap();
                self.octets(from, &room[..length]);
            }
            _ => self.octets(from, bytes),
        }
    }

    /// Bytes as they are.
    pub fn octets(&mut self, from: SocketAddr, bytes: &[u8]) {
        let Bench { gateway, now, sent, encoding, .. } = self;
        gateway.handle_datagram(*now, from, bytes, &mut |to, bytes| sent.push((to, text(*encoding, bytes))));
        self.turn();
    }

    /// A transaction with these actions: what stands in the braces of its reply.
    #[track_caller]
    pub fn ask(&mut self, actions: &str) -> String {
        self.next += 1;
        let id = self.next;
        self.sent.clear();
        self.say(&format!("T={id}{{{actions}}}"));
        let head = format!("!/1 [192.0.2.10]:2944\nP={id}{{");
        let (_, reply) = self.sent.iter().find(|(_, text)| text.starts_with(&head)).unwrap_or_else(|| panic!("{actions}: {:?}", self.sent));
        reply.strip_prefix(&head).and_then(|rest| rest.strip_suffix('}')).expect("a whole reply").to_owned()
    }

    /// A call of a DS0 of T1 3 and RTP: the context and the name of the RTP termination.
    #[track_caller]
    pub fn call(&mut self, channel: u8) -> (u32, String) {
        let local = "M{O{MO=SR},L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0 8\n}}";
        let reply = self.ask(&format!("C=${{A=ds/ds1_3/{channel}{{M{{O{{MO=SR}}}}}},A=${{{local}}}}}"));
        let context = reply.strip_prefix("C=").and_then(|rest| rest.split('{').next()?.parse().ok()).unwrap_or_else(|| panic!("{reply}"));
        let name = reply.split("A=").nth(2).and_then(|rest| rest.split(['{', '}']).next()).unwrap_or_else(|| panic!("{reply}"));
        (context, name.to_owned())
    }

    /// The coordinator takes a span of the gateway (0 or 1) out of service or back.
    pub fn service(&mut self, span: usize, in_service: bool, reason: u16) {
        let range = self.gateway.ranges().nth(span).unwrap();
        let service = Service { in_service, reason, ..Service::default() };
        self.gateway.apply_service(self.now, range, service);
    }

    /// An order to the card.
    pub fn card(&mut self, order: CardOrder) {
        self.gateway.calls.card.operate(self.now, &order).unwrap();
    }
}

/// The identifier of the request in a message.
pub(super) fn id_of(text: &str) -> u32 {
    let digits = text.split("T=").nth(1).and_then(|rest| rest.split('{').next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("no request: {text}"))
}

fn text(encoding: MessageEncoding, bytes: &[u8]) -> String {
    let mut room = [0; 8000];
    let bytes = match encoding {
        MessageEncoding::Binary => {
            let length = binary_codec::to_text(bytes, &mut room).expect("a message");
            &room[..length]
        }
        _ => bytes,
    };
    String::from_utf8(bytes.to_vec()).unwrap().replace("\r\n", "\n")
}
