//! H.248 gateways beside MGCP, in every layout of cores: calls end to end, alarms, operators, lossy links.

use super::{MS, S};
use std::net::SocketAddr;
use std::time::Duration;
use tollgate::proto::base::{AgentId, CoreId, Counter, EndpointIndex};
use tollgate::proto::cac::{Amount, Kind, Limits, Scope, ScopeId, Tree};
use tollgate::proto::core::{Administration, Answer, Ask};
use tollgate::proto::plan::{Admission, GatewayPlan, MessageEncoding, Plan, Settings};
use tollgate::proto::restart::BlockHow;
use tollgate::proto::trunk::{CardOrder, Defect, Facility};
use tollgate::sim::{Faults, Layout, Setup, World};

/// The listen address of the first gateway; the second has the next.
const FIRST: u8 = 2;

/// Where the controller of both gateways is.
pub(super) fn controller() -> SocketAddr {
    ([192, 0, 2, 61], 2944).into()
}

/// T1 6 is the second gateway's, 7 and 8 the first's, the others MGCP's. The gateways are on the first and the last core that owns endpoints.
fn world(layout: Layout, seed: u64) -> World {
    world_of(layout, seed, &[(6, 1), (7, 0), (8, 0)], false)
}

/// The same with these spans for the two gateways; `spread`: the channels of the first lie on the cores that the numbers of the spans say.
pub(super) fn world_of(layout: Layout, seed: u64, spans: &[(usize, u8)], spread: bool) -> World {
    world_with(layout, seed, spans, spread, |_, _| {})
}

fn world_with(layout: Layout, seed: u64, spans: &[(usize, u8)], spread: bool, change: impl Fn(&mut Plan, &mut Settings)) -> World {
    World::new(Setup::new(layout, seed), |plan, settings| {
        let owners = plan.owners.clone();
        for (place, core) in [owners[0], owners[owners.len() - 1]].into_iter().enumerate() {
            let address = SocketAddr::from(([192, 0, 2, 10], 2944 + place as u16));
            plan.listen.push(address);
            plan.gateways.push(GatewayPlan {
                name: format!("gw{place}"),
                message_id: format!("[192.0.2.10]:{}", address.port()),
                listen: FIRST + place as u8,
                streams: false,
                core,
                spread: spread && place == 0,
                controllers: vec![controller()],
                has_t3: false,
                encoding: MessageEncoding::Compact,
                max_message: 4000,
                connections: 96,
            });
        }
        for &(unit, gateway) in spans {
            plan.spans[unit - 1].gateway = Some(gateway);
            plan.spans[unit - 1].agent = AgentId(0);
        }
        settings.timers.max_waiting_delay = Some(MS);
        change(plan, settings);
    })
}

/// The controller of one gateway.
pub(super) struct Controller {
    local: u8,
    next: u32,
}

impl Controller {
    /// Takes the gateway when it registers.
    pub fn of(world: &mut World, gateway: u8) -> Controller {
        let mut controller = Controller { local: FIRST + gateway, next: 100 };
        let id = controller.wait_request(world, "ROOT");
        controller.send(world, &format!("P={id}{{C=-{{SC=ROOT{{SV{{V=1,20260101T00000012}}}}}}}}"));
        world.run_for(10 * MS);
        controller
    }

    pub fn send(&self, world: &mut World, body: &str) {
        world.send_from(controller(), self.local, format!("!/1 [192.0.2.61]:2944 {body}").as_bytes());
    }

    /// What came from this gateway since it was taken away last.
    pub fn mail(&self, world: &World) -> Vec<String> {
        let mine = world.mail().iter().filter(|mail| mail.to == controller() && mail.local == self.local);
        mine.map(|mail| String::from_utf8_lossy(&mail.bytes).into_owned()).collect()
    }

    /// Waits for a request of the gateway that holds this: its identifier.
    #[track_caller]
    pub fn wait_request(&mut self, world: &mut World, wanted: &str) -> u32 {
        for _ in 0..4000 {
            if let Some(text) = self.mail(world).iter().find(|text| text.contains("T=") && text.contains(wanted)) {
                return text.split("T=").nth(1).and_then(|rest| rest.split('{').next()?.parse().ok()).expect("an identifier");
            }
            world.run_for(5 * MS);
        }
        panic!("no request with {wanted}: {:?}", self.mail(world));
    }

    /// Answers a request of the gateway.
    pub fn answer(&self, world: &mut World, id: u32, name: &str) {
        self.send(world, &format!("P={id}{{C=-{{SC={name}}}}}"));
        world.run_for(5 * MS);
    }

    /// A transaction, repeated as long as nothing comes: what stands in the braces of its reply.
    #[track_caller]
    pub fn ask(&mut self, world: &mut World, actions: &str) -> String {
        self.next += 1;
        let (id, head) = (self.next, format!("P={}{{", self.next));
        for _ in 0..60 {
            self.send(world, &format!("T={id}{{{actions}}}"));
            for _ in 0..100 {
                world.run_for(2 * MS);
                if let Some(text) = self.mail(world).iter().find(|text| text.contains(&head)) {
                    let body = text.split_once(&head).expect("the head").1;
                    return body.strip_suffix('}').expect("its end").trim_start_matches("IA,").to_owned();
                }
            }
        }
        panic!("{actions}: no reply");
    }

    /// Adds a DS0 and RTP: the context and the name of the RTP termination.
    #[track_caller]
    pub fn call(&mut self, world: &mut World, name: &str) -> (u32, String) {
        let local = "M{O{MO=SR},L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}}";
        let reply = self.ask(world, &format!("C=${{A={name}{{M{{O{{MO=SR}}}}}},A=${{{local}}}}}"));
        let context = reply.strip_prefix("C=").and_then(|rest| rest.split('{').next()?.parse().ok()).unwrap_or_else(|| panic!("{reply}"));
        (context, reply.split("A=").nth(2).and_then(|rest| rest.split('{').next()).unwrap_or_else(|| panic!("{reply}")).to_owned())
    }
}

/// TRP-01, TXT-01, CTX-02, SUB-05: calls of two gateways and of MGCP on the same cores; a message comes to any core.
#[test]
fn calls_are_set_up_and_taken_down_in_every_layout() {
    for layout in Layout::ALL {
        let mut world = world(layout, 1);
        let mut gateways = [Controller::of(&mut world, 0), Controller::of(&mut world, 1)];
        for (controller, name) in gateways.iter_mut().zip(["ds/ds1_7/1", "ds/ds1_6/1"]) {
            let (context, rtp) = controller.call(&mut world, name);
            let remote = "R{\nv=0\nc=IN IP4 198.51.100.7\nm=audio 5004 RTP/AVP 0\n}";
            let reply = controller.ask(&mut world, &format!("C={context}{{MF={rtp}{{M{{{remote}}}}}}}"));
            assert!(!reply.contains("ER="), "{layout:?}: {reply}");
            world.run_for(S);
            let reply = controller.ask(&mut world, &format!("C={context}{{S=*}}"));
            assert!(reply.contains(&format!("S={name}")) && reply.contains(&format!("S={rtp}")) && reply.contains("rtp/ps=5"), "{reply}");
        }
        assert_eq!(world.counter(Counter::H248Adds), 4, "{layout:?}");
        assert_eq!(world.ask("CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly"]).code, Some(200));
        assert_eq!(world.ask("DLCX", "ds/ds1-2/1", &[]).code, Some(250));
        world.run_for(2 * S);
        world.check_quiet();
    }
}

/// I3: calls of both protocols and of all gateways count in one pool, wherever they are, and its places go from one to the other.
#[test]
fn calls_of_both_protocols_count_together() {
    for layout in Layout::ALL {
        let mut world = world_with(layout, 4, &[(6, 1), (7, 0), (8, 0)], false, |plan, settings| {
            let scopes = vec![Scope::new(Kind::Pool, "carrier"), Scope::new(Kind::TrunkGroup, "all").under(ScopeId(0))];
            let groups = vec![ScopeId(1); plan.topology.len() as usize];
            let tree = Tree::new(scopes).expect("a tree");
            plan.admission = Some(Admission { tree, groups, decide_within: 250 * MS, cluster: false, open: vec![] });
            settings.admission = vec![Limits::of_calls(3), Limits::NONE];
        });
        let (mut first, mut second) = (Controller::of(&mut world, 0), Controller::of(&mut world, 1));
        let used = |world: &mut World| {
            let owners = world.plan.owners.clone();
            let of = |owner: &CoreId| match world.ask_core(*owner, Ask::Admission) {
                Answer::Admission(view) => (view.used[0].get(Amount::Calls), view.denials.len()),
                other => panic!("{other:?}"),
            };
            owners.iter().map(of).fold((0, 0), |(calls, denials), (more, others)| (calls + more, denials + others))
        };
        let crcx = |world: &mut World, channel: u32| world.ask("CRCX", &format!("ds/ds1-2/{channel}"), &["C: A1", "M: recvonly"]).code;
        first.call(&mut world, "ds/ds1_7/1");
        second.call(&mut world, "ds/ds1_6/1");
        assert_eq!(crcx(&mut world, 1), Some(200), "{layout:?}");
        assert_eq!(crcx(&mut world, 2), Some(403), "{layout:?}");
        for (controller, name) in [(&mut first, "ds/ds1_8/1"), (&mut second, "ds/ds1_6/2")] {
            let reply = controller.ask(&mut world, &format!("C=${{A={name}}}"));
            assert!(reply.contains("ER=510{\"admission: limit reached\"}"), "{layout:?}: {reply}");
        }
        assert_eq!(used(&mut world), (3, 3), "{layout:?}");
        first.ask(&mut world, "C=*{W-S=*}");
        assert_eq!(crcx(&mut world, 2), Some(200), "{layout:?}");
        assert_eq!(world.ask("DLCX", "*", &[]).code, Some(250));
        first.call(&mut world, "ds/ds1_8/1");
        first.call(&mut world, "ds/ds1_7/1");
        assert!(first.ask(&mut world, "C=${A=ds/ds1_7/2}").contains("ER=510{"), "{layout:?}");
        // A span that ends leaves its context to the controller: the places are free when that has subtracted.
        first.ask(&mut world, "C=*{W-S=*}");
        second.ask(&mut world, "C=*{W-S=*}");
        world.run_for(S);
        assert_eq!(used(&mut world).0, 0, "{layout:?}");
    }
}

/// SC-22, CTX-09: neither protocol, and no other gateway, has the spans of the others; names and wildcards stop there.
#[test]
fn a_span_is_controlled_by_one_of_them() {
    for layout in [Layout::One, Layout::Two, Layout::Split3] {
        let mut world = world(layout, 2);
        let (mut first, mut second) = (Controller::of(&mut world, 0), Controller::of(&mut world, 1));
        assert_eq!(world.ask("CRCX", "ds/ds1-7/1", &["C: A1", "M: recvonly"]).code, Some(500));
        let names = world.ask("AUEP", "ds/*/1", &[]);
        assert_eq!(names.code, Some(200));
        let text = String::from_utf8(names.bytes).expect("text");
        assert!(text.contains("ds/ds1-5/1@") && !text.contains("ds1-6") && !text.contains("ds1-7"), "{text}");
        for name in ["ds/ds1_6/1", "ds/ds1_2/1"] {
            assert!(first.ask(&mut world, &format!("C=${{A={name}}}")).contains("ER=430{"), "{layout:?} {name}");
        }
        let (context, _) = first.call(&mut world, "ds/ds1_8/3");
        assert!(second.ask(&mut world, &format!("C={context}{{AV=*{{AT{{}}}}}}")).contains("ER="), "{layout:?}");
        // MGCP's wildcards touch no call of H.248.
        assert_eq!(world.ask("DLCX", "*", &[]).code, Some(250));
        assert!(first.ask(&mut world, &format!("C={context}{{AV=*{{AT{{}}}}}}")).contains("ds/ds1_8/3"));
        first.ask(&mut world, "C=*{W-S=*}");
    }
}

pub(super) fn defect(world: &mut World, unit: u32, present: bool) {
    let facility = world.plan.topology.lookup_facility(format!("ds/ds1-{unit}").as_bytes()).expect("a span");
    let Facility::Span(_) = facility else { panic!() };
    world.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present, at_once: true });
}

/// SC-05, SC-06, SC-17, TRM-15: a T1 that fails is one ServiceChange with a wildcard, and one when it is back; MGCP hears of it nothing.
#[test]
fn an_alarm_of_a_t1_is_one_service_change() {
    for layout in Layout::ALL {
        let mut world = world(layout, 3);
        let mut controller = Controller::of(&mut world, 0);
        controller.call(&mut world, "ds/ds1_7/5");
        world.run_for(S);
        world.take_mail();
        defect(&mut world, 7, true);
        let id = controller.wait_request(&mut world, "SC=ds/ds1_7/*{SV{MT=FO,RE=\"90");
        controller.answer(&mut world, id, "ds/ds1_7/*");
        assert!(controller.ask(&mut world, "C=${A=ds/ds1_7/6}").contains("ER=502{"));
        // What was up is the controller's to take down.
        let reply = controller.ask(&mut world, "C=*{S=ds/ds1_7/5}");
        assert!(reply.contains("S=ds/ds1_7/5{SA{"), "{reply}");
        controller.ask(&mut world, "C=*{W-S=*}");
        defect(&mut world, 7, false);
        let id = controller.wait_request(&mut world, "SC=ds/ds1_7/*{SV{MT=RS,RE=\"900 Service Restored\"");
        controller.answer(&mut world, id, "ds/ds1_7/*");
        let reply = controller.ask(&mut world, "C=${A=ds/ds1_7/6}");
        assert!(!reply.contains("ER="), "{layout:?}: {reply}");
        controller.ask(&mut world, "C=*{W-S=*}");
        assert!(!world.mail().iter().any(|mail| mail.bytes.starts_with(b"RSIP")), "{layout:?}");
    }
}

/// SC-03, SC-04: an operator blocks a span gracefully: the call on it ends by itself, then it is out; nothing new comes on it meanwhile.
#[test]
fn a_blocked_span_leaves_when_its_calls_have_ended() {
    for layout in [Layout::One, Layout::Four, Layout::Split1] {
        let mut world = world(layout, 4);
        let mut controller = Controller::of(&mut world, 0);
        controller.call(&mut world, "ds/ds1_7/1");
        world.run_for(S);
        let selection = world.plan.topology.resolve(b"ds/ds1-7/1", false).expect("a name");
        world.administer(Administration::Block(selection, BlockHow::Graceful(Duration::ZERO)));
        let id = controller.wait_request(&mut world, "SC=ds/ds1_7/1{SV{MT=GR");
        controller.answer(&mut world, id, "ds/ds1_7/1");
        world.run_for(5 * S);
        assert!(controller.ask(&mut world, "C=*{AV=ds/ds1_7/1{AT{}}}").contains("AV=ds/ds1_7/1"));
        controller.ask(&mut world, "C=*{W-S=*}");
        // Graceful said that, and nothing more is to be told.
        world.run_for(2 * S);
        let audited = controller.ask(&mut world, "C=-{AV=ds/ds1_7/1{AT{M}}}");
        assert!(audited.contains("SI=OS"), "{layout:?}: {audited}");
        assert!(controller.ask(&mut world, "C=${A=ds/ds1_7/1}").contains("ER=502{"), "{layout:?}");
    }
}

/// What an operator clears is in no context any more, and neither is what was in it with that.
#[test]
fn an_operator_ends_the_context_of_a_termination() {
    for layout in [Layout::One, Layout::Four, Layout::Split1] {
        let mut world = world(layout, 6);
        let mut controller = Controller::of(&mut world, 0);
        let (context, _) = controller.call(&mut world, "ds/ds1_7/1");
        world.free(world.plan.topology.lookup(b"ds/ds1-7/1").expect("a name"));
        world.run_for(S);
        assert!(controller.ask(&mut world, &format!("C={context}{{S=*}}")).contains("ER=411{"), "{layout:?}");
        assert_eq!(world.media_open(), 0);
        let (context, _) = controller.call(&mut world, "ds/ds1_7/1");
        controller.ask(&mut world, &format!("C={context}{{S=*}}"));
        world.run_for(S);
        world.check_quiet();
    }
}

/// UDP-01, UDP-05: on a link that loses, repeats and reorders, every transaction is executed once and every request of the gateway arrives.
#[test]
fn a_bad_link_loses_and_repeats_nothing() {
    for layout in [Layout::One, Layout::Two, Layout::Split3] {
        let mut world = world(layout, 5);
        let mut controller = Controller::of(&mut world, 0);
        world.set_faults(Faults { loss: 100_000, burst: 2, duplicate: 200_000, link_max: 20 * MS, ..Faults::none() });
        let mut contexts = Vec::new();
        for channel in 1..=12 {
            contexts.push(controller.call(&mut world, &format!("ds/ds1_8/{channel}")).0);
        }
        assert_eq!(world.counter(Counter::H248Adds), 24, "{layout:?}");
        for context in contexts {
            let reply = controller.ask(&mut world, &format!("C={context}{{S=*}}"));
            assert!(reply.matches("SA{").count() == 2, "{reply}");
        }
        assert_eq!(world.counter(Counter::H248Subtracts), 24, "{layout:?}");
        defect(&mut world, 8, true);
        controller.wait_request(&mut world, "SC=ds/ds1_8/*");
        world.set_faults(Faults::none());
    }
}

/// Operators see the terminations and connections of H.248 like those of MGCP.
#[test]
fn operators_see_calls_of_h248() {
    use tollgate::proto::core::{Answer, Ask, StateFilter};
    let mut world = world(Layout::Two, 6);
    let mut controller = Controller::of(&mut world, 0);
    let (context, _) = controller.call(&mut world, "ds/ds1_7/9");
    let endpoint: EndpointIndex = world.plan.topology.lookup(b"ds/ds1-7/9").expect("a channel");
    let core: CoreId = world.plan.owner(endpoint);
    let selection = world.plan.topology.selection_of(endpoint).expect("it");
    let Answer::Endpoints(list) = world.ask_core(core, Ask::Endpoints(selection, StateFilter::Busy)) else { panic!() };
    assert_eq!((list.len(), list[0].entity.as_str()), (1, "192.0.2.61:2944"));
    let connection = list[0].connections[0].connection;
    let mut room = [0; 32];
    assert_eq!(u32::from_str_radix(std::str::from_utf8(connection.call.text(&mut room)).unwrap(), 16), Ok(context));
}
