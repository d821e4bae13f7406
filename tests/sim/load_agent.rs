//! The load generator's agent against the gateway, both as they ship: 2 % lost and 5 % doubled each way, every layout. Its own checks
//! must all hold, every transaction ends, nothing is left.

use super::{MS, S};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tollgate::proto::agent::rules::Rule;
use tollgate::proto::agent::{Agent, Ended, Failure, Observer, Phase, Scenario, Settings, Started, Timers};
use tollgate::proto::base::{EndpointIndex, Rng, Time};
use tollgate::proto::trunk::CardOrder;
use tollgate::sim::{Actor, Faults, Layout, Mail, Outbound, Setup, World};

const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 2727);
const GATEWAY: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 10)), 2427);

/// What the agent told.
#[derive(Default)]
struct Told {
    ended: usize,
    failures: Vec<(Failure, String)>,
}

impl Observer for Told {
    fn ended(&mut self, _: Time, _: &Ended, _: Option<u16>) {
        self.ended += 1;
    }

    fn failed(&mut self, failure: Failure, evidence: &[u8]) {
        self.failures.push((failure, String::from_utf8_lossy(evidence).into_owned()));
    }
}

/// An agent that starts a command of its scenario every so often.
struct Load {
    agent: Agent,
    told: Rc<RefCell<Told>>,
    pause: Duration,
    next: Time,
}

impl Actor for Load {
    fn owns(&self, address: IpAddr) -> bool {
        address == ADDRESS.ip()
    }

    fn handle(&mut self, now: Time, mail: &Mail, out: &mut Vec<Outbound>) {
        self.agent.handle(now, &mail.bytes, GATEWAY, &mut *self.told.borrow_mut());
        self.poll(now, out);
    }

    fn poll(&mut self, now: Time, out: &mut Vec<Outbound>) {
        while self.next <= now {
            if self.agent.start(now, self.next) == Started::Full {
                break;
            }
            self.next += self.pause;
        }
        let mut send = |_: SocketAddr, bytes: &[u8]| out.push(Outbound { from: ADDRESS, local: 0, bytes: bytes.to_vec() });
        self.agent.poll(now, &mut send, &mut *self.told.borrow_mut());
    }

    fn deadline(&self) -> Time {
        self.agent.deadline().min(self.next)
    }

    fn wind_down(&mut self, _: Time) {
        self.next = Time::NEVER;
        self.agent.wind_down();
    }

    fn is_done(&self) -> bool {
        self.agent.phase() == Phase::Done
    }

    fn pending(&self) -> String {
        self.summary()
    }

    fn summary(&self) -> String {
        format!("{:?} {} in flight {:?}", self.agent.phase(), self.agent.in_flight(), self.agent.tally())
    }
}

fn play(layout: Layout, seed: u64, scenario: Scenario, delay: u32) {
    let told = run(layout, seed, scenario, delay, None, 12 * S);
    assert_eq!(told.failures, [], "{layout:?} {scenario:?}");
    assert!(told.ended > 1000, "{layout:?}: {}", told.ended);
}

/// Calls for `time` by an agent that keeps the rules of docs/conformance/agent.md, or all but one; the gateway keeps its own.
fn run(layout: Layout, seed: u64, scenario: Scenario, delay: u32, broken: Option<Rule>, time: Duration) -> Told {
    let mut w = World::new(Setup { told: false, ..Setup::new(layout, seed) }, |_, _| {});
    let endpoints = (1..=8).flat_map(|span| (1..=24).map(move |channel| format!("ds/ds1-{span}/{channel}@tgw.example.net")));
    let settings = Settings {
        gateway: vec![GATEWAY],
        endpoints: endpoints.collect(),
        clearing: vec!["*@tgw.example.net".into()],
        scenario,
        hold: 300 * MS,
        standing: 20,
        transactions_max: 100,
        pad_to: 1,
        verify: true,
        timers: Timers::default(),
        throttle: None,
        events: if broken.is_some() { "T/oc(N)".into() } else { String::new() },
        broken: broken.into_iter().collect(),
    };
    let agent = Agent::new(&settings, &mut Rng::new(seed)).unwrap();
    let told = Rc::new(RefCell::new(Told::default()));
    w.set_faults(Faults { loss: 20_000, duplicate: 50_000, link_max: 20 * MS, ..Faults::none() });
    w.add_agent(Box::new(Load { agent, told: told.clone(), pause: 4 * MS, next: w.now }));
    w.order_cards(CardOrder::Delay(delay));
    let end = w.now + time;
    while w.now < end {
        w.run_for(20 * MS);
        if broken.is_some() {
            // Events of lines with and without a call.
            (0..4).for_each(|place| _ = w.happen(EndpointIndex(((w.now.0 / 20_000_000 + 48 * place) % 192) as u32)));
        }
    }
    let now = w.now;
    w.agents()[0].wind_down(now);
    w.run_until_done(120 * S);
    w.run_for(25 * S);
    w.check_quiet();
    assert_eq!((w.connections().len(), w.media_open()), (0, 0));
    std::mem::take(&mut *told.borrow_mut())
}

#[test]
fn the_load_generators_agent_finds_no_fault() {
    for (place, layout) in Layout::ALL.into_iter().enumerate() {
        play(layout, 10 + place as u64, Scenario::Call, 0);
        play(layout, 20 + place as u64, Scenario::Mixed, 0);
    }
}

/// The same with cards that take so long that 100 comes first.
#[test]
fn nor_with_slow_cards() {
    for (place, layout) in Layout::ALL.into_iter().enumerate() {
        play(layout, 30 + place as u64, Scenario::Call, 250);
    }
}

/// Whatever rule the agent breaks: the gateway answers all, tells every event in order, and nothing is left.
#[test]
fn an_agent_that_breaks_a_rule_harms_nobody_else() {
    for (place, rule) in Rule::ALL.iter().enumerate() {
        let layout = Layout::ALL[place % Layout::ALL.len()];
        let told = run(layout, 40 + place as u64, Scenario::Call, 0, Some(*rule), 3 * S);
        assert!(told.ended > 200, "{rule:?}: {}", told.ended);
    }
}
