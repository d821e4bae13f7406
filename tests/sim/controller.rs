//! The load generator's H.248 controller against real gateways on one core of a known capacity, in virtual time: every message is written,
//! read and answered by the product. The core works off its datagrams one by one, and each Add of an RTP stream costs a fixed time.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tollgate::proto::agent::controller::{Controller, Settings as ControllerSettings};
use tollgate::proto::agent::{Ended, Failure, Observer, Phase, Started};
use tollgate::proto::aggregate::Pattern;
use tollgate::proto::base::{CoreId, Counter, Counters, Rng, Time};
use tollgate::proto::cas::{self};
use tollgate::proto::endpoint::{RestartMethod, Service};
use tollgate::proto::h248::{Boot, Gateway};
use tollgate::proto::mgcp::Restart;
use tollgate::proto::overload::telling::Load;
use tollgate::proto::overload::throttle::Parameters;
use tollgate::proto::overload::{Detector, Levels};
use tollgate::proto::package::ChannelKind;
use tollgate::proto::plan::{AgentSettings, GatewayPlan, Limits, MessageEncoding, Plan, Settings, SpanPlan};
use tollgate::proto::trunk::{CardOrder, Defect, Facility, FacilityKind, FacilityPlan, SimCard, SimulatedPlan, SpanIndex, Topology};

const MS: Duration = Duration::from_millis(1);
/// One way between controller and gateway.
const DELAY: Duration = Duration::from_millis(2);
/// T1s of each gateway.
const SPANS: u16 = 8;

/// What a controller is asked for, and what came of it.
struct Asked {
    controller: Controller,
    rate: f64,
    next: Time,
    figures: Figures,
}

/// What is measured from `from` on.
#[derive(Default)]
struct Figures {
    from: Time,
    set_up: Vec<Duration>,
    offered: u64,
    failures: Vec<(Failure, String)>,
    notified: u64,
}

impl Observer for Figures {
    fn ended(&mut self, _: Time, _: &Ended, _: Option<u16>) {}

    fn transaction(&mut self, now: Time, name: &'static str, intended: Time, code: Option<u16>) {
        if name == "Add" && code == Some(0) && intended >= self.from {
            self.set_up.push(now.since(intended));
        }
    }

    fn failed(&mut self, failure: Failure, evidence: &[u8]) {
        self.failures.push((failure, String::from_utf8_lossy(evidence).into_owned()));
    }
}

struct World {
    now: Time,
    gateways: Vec<Gateway>,
    counters: Vec<Arc<Counters>>,
    asked: Vec<Asked>,
    detector: Detector,
    /// For the core: when it came, for which gateway, from where.
    queue: VecDeque<(Time, usize, Vec<u8>)>,
    /// For controllers: when it comes.
    answers: VecDeque<(Time, usize, Vec<u8>)>,
    /// Until when the core works.
    busy: Time,
    cost: Duration,
    /// Audits and alarms beside the calls: how often both, when next, and how many there were.
    beside: Option<(Duration, Time, u32)>,
    /// Audits answered.
    audited: u32,
}

/// Identifiers of audits: no controller gets so far.
const AUDITS: u32 = 4_000_000_000;

fn plan(gateways: usize) -> Plan {
    let t1 = |unit| FacilityPlan { kind: FacilityKind::T1, unit, common_channel: false };
    let count = SPANS * gateways as u16;
    let topology = Topology::new(&(1..=u32::from(count)).map(t1).collect::<Vec<_>>()).unwrap();
    let span = |n: u16| SpanPlan { gateway: Some((n / SPANS) as u8), ..SpanPlan::default() };
    let own = |n: usize| GatewayPlan {
        name: format!("gw{n}"),
        message_id: format!("[192.0.2.{}]:2944", 100 + n),
        listen: 1 + n as u8,
        streams: false,
        core: CoreId(0),
        spread: false,
        controllers: vec![controller(n)],
        has_t3: true,
        encoding: MessageEncoding::Compact,
        max_message: 4000,
        connections: 4 * 24 * u32::from(SPANS),
    };
    Plan {
        spans: (0..count).map(span).collect(),
        domains: vec![b"tgw.example.net"[..].into()],
        listen: (0..=gateways as u8).map(|n| ([192, 0, 2, 100 + n], 2944).into()).collect(),
        cores: 1,
        owners: vec![CoreId(0)],
        limits: Limits {
            connections: 192,
            connections_per_endpoint: 4,
            blob_blocks: 4096,
            entities: 4,
            jobs: 64,
            datagrams: 16,
            messages_per_datagram: 32,
            slice: 1000,
            datagram: 4400,
            history_entries: 40_000,
            history_bytes: 32 << 20,
            own_commands: 64,
        },
        times: cas::Times::default(),
        admission: None,
        gateways: (0..gateways).map(own).collect(),
        epoch_ms: 1_767_225_600_000,
        topology: topology.into(),
    }
}

fn controller(n: usize) -> SocketAddr {
    ([192, 0, 2, 1 + n as u8], 2944).into()
}

impl World {
    /// A gateway for each rate, all on one core that does so many calls a second; with or without the throttle.
    fn new(capacity: f64, rates: &[f64], throttle: Option<Parameters>, from: Duration) -> World {
        World::holding(Duration::ZERO, capacity, rates, throttle, from)
    }

    /// The same with calls that last up to `hold_max`, at random.
    fn holding(hold_max: Duration, capacity: f64, rates: &[f64], throttle: Option<Parameters>, from: Duration) -> World {
        let plan = Arc::new(plan(rates.len()));
        let settings = Arc::new(Settings::new(vec![AgentSettings::at("ca", ([192, 0, 2, 99], 2727).into())]));
        let mut world = World {
            now: Time::from_millis(1),
            gateways: Vec::new(),
            counters: Vec::new(),
            asked: Vec::new(),
            detector: Detector::new(Levels::default()),
            queue: VecDeque::new(),
            answers: VecDeque::new(),
            busy: Time::ZERO,
            cost: Duration::from_secs_f64(1.0 / capacity),
            beside: None,
            audited: 0,
        };
        for (n, rate) in rates.iter().enumerate() {
            let spans: Vec<SpanIndex> = (0..SPANS).map(|span| SpanIndex(n as u16 * SPANS + span)).collect();
            let card = SimCard::new(&SimulatedPlan {
                topology: &plan.topology,
                kinds: &vec![ChannelKind::default(); plan.spans.len()],
                facilities: &spans.iter().map(|span| Facility::Span(*span)).collect::<Vec<_>>(),
                address: [192, 0, 2, 10].into(),
                ports: 16_384..=32_767,
                part: (n as u32, rates.len() as u32),
                connections: 4 * 24 * u32::from(SPANS),
                seed: 1,
            });
            let counters = Arc::new(Counters::new());
            let (plan, settings, rng) = (plan.clone(), settings.clone(), Rng::new(7 + n as u64));
            let boot = Boot { index: n as u8, plan, settings, counters: counters.clone(), card: Box::new(card), rng, now: world.now };
            world.gateways.push(Gateway::new(boot).unwrap());
            world.counters.push(counters);
            let first = n as u16 * SPANS + 1;
            // The last one is without calls.
            let names = (first..first + SPANS - 1).flat_map(|span| (1..=24).map(move |channel| format!("ds/ds1_{span}/{channel}")));
            let settings = ControllerSettings {
                gateway: ([192, 0, 2, 100 + n as u8], 2944).into(),
                message_id: format!("[192.0.2.{}]:2944", 1 + n),
                channels: names.collect(),
                hold: Duration::ZERO,
                hold_max,
                verify: true,
                throttle,
            };
            let controller = Controller::new(&settings, &mut Rng::new(3 + n as u64)).unwrap();
            let figures = Figures { from: Time::ZERO + from, ..Figures::default() };
            world.asked.push(Asked { controller, rate: *rate, next: Time::NEVER, figures });
        }
        world
    }

    /// Plays until `end`, or until every controller is done.
    fn run(&mut self, end: Time) {
        while self.now <= end && self.asked.iter().any(|asked| asked.controller.phase() != Phase::Done) {
            self.turn();
            self.now = self.next().max(self.now + Duration::from_micros(10)).min(end + MS);
        }
    }

    fn next(&self) -> Time {
        let work = self.queue.front().map_or(Time::NEVER, |(at, ..)| (*at).max(self.busy));
        let answers = self.answers.front().map_or(Time::NEVER, |(at, ..)| *at);
        // A core that works looks at nothing else.
        let gateways = self.gateways.iter().map(|gateway| gateway.deadline().max(self.busy)).min().unwrap_or(Time::NEVER);
        let controllers = self.asked.iter().map(|asked| asked.controller.deadline().min(asked.next)).min().unwrap_or(Time::NEVER);
        let beside = self.beside.map_or(Time::NEVER, |(_, next, _)| next);
        work.min(answers).min(gateways).min(controllers).min(beside)
    }

    /// What a controller and the trunks do besides calls: an audit of a T1, and an alarm of the one without calls that comes or goes.
    fn ask_beside(&mut self) {
        let Some((every, next, count)) = self.beside else { return };
        if next > self.now {
            return;
        }
        self.beside = Some((every, next + every, count + 1));
        for n in 0..self.gateways.len() {
            let span = n as u16 * SPANS + SPANS - 1;
            let audit = format!("!/1 [192.0.2.{}]:2944 T={}{{C=*{{AV=ds/ds1_{}/*{{AT{{M,E,SG,PG}}}}}}}}", 1 + n, AUDITS + count, span);
            self.queue.push_back((self.now + DELAY, n, audit.into_bytes()));
            let (gateway, down) = (&mut self.gateways[n], count.is_multiple_of(2));
            let facility = Facility::Span(SpanIndex(span));
            let order = CardOrder::Defect { facility, defect: Defect::LossOfSignal, present: down, at_once: true };
            gateway.calls.card.operate(self.now, &order).unwrap();
            let range = gateway.ranges().last().unwrap();
            gateway.apply_service(self.now, range, Service { in_service: !down, reason: 905, ..Service::default() });
            // One name of them: the coordinator gives a gateway of H.248 none with ranges.
            let pattern = Pattern::Channels { span: SpanIndex(span), channels: 1 << 1 };
            let method = if down { RestartMethod::Forced } else { RestartMethod::Restart };
            gateway.announce(self.now, &Restart { pattern, method, delay_s: 0, reason: 905 });
        }
        self.queue.make_contiguous().sort_by_key(|(at, ..)| *at);
    }

    fn turn(&mut self) {
        if self.now >= self.busy {
            self.work();
        }
        self.ask_beside();
        while let Some((_, n, text)) = self.answers.front().cloned().filter(|(at, ..)| *at <= self.now) {
            self.answers.pop_front();
            if text.windows(6).any(|window| window == b"P=4000") {
                self.audited += 1;
                continue;
            }
            let Asked { controller, figures, .. } = &mut self.asked[n];
            let before = controller.tally().overloads;
            controller.handle(self.now, &text, ([192, 0, 2, 100 + n as u8], 2944).into(), figures);
            if self.now >= figures.from {
                figures.notified += controller.tally().overloads - before;
            }
        }
        for (n, asked) in self.asked.iter_mut().enumerate() {
            let Asked { controller, rate, next, figures } = asked;
            if controller.phase() == Phase::Running && *next == Time::NEVER {
                *next = self.now;
            }
            while *next <= self.now && controller.phase() == Phase::Running {
                figures.offered += u64::from(*next >= figures.from);
                if controller.start(self.now, *next) == Started::Starved {
                    figures.failures.push((Failure::NothingDone, "no channel is idle".into()));
                }
                *next += Duration::from_secs_f64(1.0 / *rate);
            }
            let queue = &mut self.queue;
            controller.poll(self.now, &mut |_, bytes| queue.push_back((self.now + DELAY, n, bytes.to_vec())), figures);
        }
        self.queue.make_contiguous().sort_by_key(|(at, ..)| *at);
    }

    /// The core takes the next datagram, or looks what is due.
    fn work(&mut self) {
        let load = |detector: &Detector| Load { overloaded: detector.refuse_new(), sojourn: detector.sojourn() };
        let (now, mut done) = (self.now, self.now);
        if let Some((at, n, text)) = self.queue.front().cloned().filter(|(at, ..)| *at <= now) {
            self.queue.pop_front();
            self.detector.record(now, now.since(at));
            let before = self.counters[n].get(Counter::H248Adds);
            let mut sent = Vec::new();
            self.gateways[n].set_load(load(&self.detector));
            self.gateways[n].handle_datagram(now, controller(n), &text, &mut |_, bytes| sent.push(bytes.to_vec()));
            // A call has two Adds; an audit of a T1 is as much work as two.
            let audits = u32::from(text.windows(3).any(|window| window == b"AV="));
            done = now + self.cost * (self.counters[n].get(Counter::H248Adds) - before) as u32 / 2 + 2 * self.cost * audits;
            sent.into_iter().for_each(|bytes| self.answers.push_back((done + DELAY, n, bytes)));
        }
        self.detector.rest(now);
        for n in 0..self.gateways.len() {
            self.gateways[n].set_load(load(&self.detector));
            let answers = &mut self.answers;
            while self.gateways[n].take_defect().is_some() {}
            self.gateways[n].handle_time(now, &mut |_, bytes| answers.push_back((done + DELAY, n, bytes.to_vec())));
        }
        self.detector.worked(done, done.since(now));
        self.busy = done;
        self.answers.make_contiguous().sort_by_key(|(at, ..)| *at);
    }

    /// No more calls; then everything ends, and nothing is left.
    fn end(&mut self) {
        self.asked.iter_mut().for_each(|asked| asked.controller.wind_down());
        self.run(self.now + Duration::from_secs(60));
        for (asked, gateway) in self.asked.iter().zip(&self.gateways) {
            assert_eq!(asked.controller.phase(), Phase::Done);
            assert_eq!(asked.figures.failures, []);
            assert_eq!(gateway.contexts(), 0);
        }
    }

    /// Set-ups a second by controller, over so many seconds, and their p99.
    fn figures(&mut self, seconds: f64) -> Vec<(f64, Duration)> {
        let figures = self.asked.iter_mut().map(|asked| {
            let times = &mut asked.figures.set_up;
            times.sort_unstable();
            let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
            println!(
                "offered {:.0}/s set up {:.0}/s p99 {p99:.0?} notified {:.1}/s refused {} held back {}",
                asked.figures.offered as f64 / seconds,
                times.len() as f64 / seconds,
                asked.figures.notified as f64 / seconds,
                asked.controller.tally().refused,
                asked.controller.tally().held_back
            );
            (times.len() as f64 / seconds, p99)
        });
        figures.collect()
    }
}

fn at(seconds: u64) -> Time {
    Time::from_millis(1000 * seconds)
}

#[test]
fn a_controller_registers_a_gateway_makes_calls_and_leaves_nothing() {
    let mut world = World::new(1000.0, &[40.0], None, Duration::ZERO);
    world.run(at(5));
    world.end();
    let tally = *world.asked[0].controller.tally();
    assert!(world.asked[0].controller.calls_started() > 150 && tally.refused == 0 && tally.notifies == 0, "{tally:?}");
    assert_eq!(tally.restarts, 1);
}

#[test]
fn an_overloaded_gateway_of_h248_works_at_full_capacity_in_bounded_time() {
    // OVL-08 in spirit with real messages: the figures of clause 8.5 from t = 10 s.
    let mut world = World::new(250.0, &[1000.0], Some(Parameters::default()), Duration::from_secs(10));
    world.run(at(22));
    let (rate, p99) = world.figures(12.0)[0];
    assert!(rate >= 0.95 * 250.0, "{rate}");
    assert!(p99 <= 2 * Levels::default().enter, "{p99:?}");
    let notified = world.asked[0].figures.notified as f64 / 12.0;
    assert!((5.0..=20.0).contains(&notified), "{notified} a second");
    world.end();
}

#[test]
fn calls_of_mixed_lengths_are_held_back_as_others_are() {
    // OVL-21: some last no time, some two seconds; what ends them is done in overload too.
    let mut world = World::holding(Duration::from_secs(2), 120.0, &[240.0], Some(Parameters::default()), Duration::from_secs(10));
    world.run(at(22));
    let (rate, p99) = world.figures(12.0)[0];
    assert!(rate >= 0.95 * 120.0, "{rate}");
    assert!(p99 <= 2 * Levels::default().enter, "{p99:?}");
    let notified = world.asked[0].figures.notified as f64 / 12.0;
    assert!((5.0..=20.0).contains(&notified), "{notified} a second");
    world.end();
}

#[test]
fn gateways_of_one_core_share_it_evenly_and_a_calm_one_loses_nothing() {
    // OVL-21: virtual gateways with a controller each.
    let mut world = World::new(250.0, &[500.0, 210.0, 15.0], Some(Parameters::default()), Duration::from_secs(10));
    world.run(at(25));
    let figures = world.figures(15.0);
    let total: f64 = figures.iter().map(|(rate, _)| rate).sum();
    assert!(total >= 0.95 * 250.0, "{figures:?}");
    let mean = (figures[0].0 + figures[1].0) / 2.0;
    assert!((figures[0].0 / mean - 1.0).abs() < 0.1, "{figures:?}");
    assert!(figures[2].0 > 0.98 * 15.0, "{figures:?}");
    world.end();
}

#[test]
fn a_controller_that_ignores_notifications_leaves_the_gateway_its_work() {
    // Must hold 5: ten times what the gateway can do, and nobody holds back.
    let mut world = World::new(50.0, &[500.0], None, Duration::from_secs(5));
    world.run(at(15));
    let (rate, _) = world.figures(10.0)[0];
    assert!(rate >= 0.9 * 50.0, "{rate}");
    assert!(world.asked[0].controller.tally().refused > 1000);
    world.end();
}

/// Must hold 4b: at 70 % of what the gateway can do, with alarms and audits at once, and a stall now and then, nobody is told of an overload.
#[test]
fn at_seven_tenths_of_its_capacity_no_gateway_tells_of_an_overload() {
    let mut world = World::new(250.0, &[0.7 * 250.0 - 20.0], Some(Parameters::default()), Duration::ZERO);
    // Ten audits a second are as much as twenty calls.
    world.beside = Some((100 * MS, at(2), 0));
    for second in 3..17 {
        world.run(at(second));
        // The machine has other work for 30 ms.
        world.busy = world.busy.max(world.now + 30 * MS);
    }
    let (rate, _) = world.figures(16.0)[0];
    assert!(rate > 140.0, "{rate}");
    let told = world.counters[0].get(Counter::H248OverloadNotified);
    assert_eq!((told, world.asked[0].controller.tally().overloads, world.asked[0].controller.tally().held_back), (0, 0, 0));
    let told = world.counters[0].get(Counter::OwnCommands);
    assert!(world.audited > 120 && told > 120, "{} audits, {told} alarms", world.audited);
    world.beside = None;
    world.end();
}
