//! Calls over trunks that signal, made by the agent of the load generator against the gateway, both as they ship: every event is the one
//! that what the far end did must bring, and at the end every trunk is idle, also when far ends misbehave (RFC 3064; CAS and COT rows).

use super::{MS, S};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use tollgate::proto::agent::rules::Rule;
use tollgate::proto::agent::trunks::{Kind, Settings, Trunks};
use tollgate::proto::agent::{Ended, Failure, Observer, Phase, Tally, Timers};
use tollgate::proto::base::{CoreId, EndpointIndex, Rng, Time};
use tollgate::proto::cas::{Direction, Signalling};
use tollgate::proto::core::Ask;
use tollgate::proto::package::ChannelKind;
use tollgate::proto::package::parameters::{Digits, MfDigit};
use tollgate::proto::trunk::{Behaviour, CardOrder, DigitKind, Echo, FarOrder, Hook};
use tollgate::sim::{Actor, Faults, Layout, Mail, Outbound, Setup, World};

const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 2727);
const GATEWAY: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 10)), 2427);
/// How long an order to a far end is under way.
const TICK: std::time::Duration = MS.saturating_mul(10);

/// What the agent told.
#[derive(Default)]
struct Told(Vec<(Failure, String)>);

impl Observer for Told {
    fn ended(&mut self, _: Time, _: &Ended, _: Option<u16>) {}

    fn failed(&mut self, failure: Failure, evidence: &[u8]) {
        self.0.push((failure, String::from_utf8_lossy(evidence).into_owned()));
    }
}

/// The agent, and what passes between it and the cards.
struct Shared {
    agent: Trunks,
    told: Told,
    /// Orders to far ends.
    orders: Vec<(u32, String, String)>,
    /// Those carried out.
    done: Vec<u32>,
    /// When to look again, and when the next call is due.
    look: Time,
    next: Time,
    pause: std::time::Duration,
}

struct Caller(Rc<RefCell<Shared>>);

impl Actor for Caller {
    fn owns(&self, address: IpAddr) -> bool {
        address == ADDRESS.ip()
    }

    fn handle(&mut self, now: Time, mail: &Mail, out: &mut Vec<Outbound>) {
        let Shared { agent, told, .. } = &mut *self.0.borrow_mut();
        agent.handle(now, &mail.bytes, GATEWAY, told);
        // What it sends comes with the poll that follows.
        let _ = out;
    }

    fn poll(&mut self, now: Time, out: &mut Vec<Outbound>) {
        let Shared { agent, told, orders, done, look, next, pause } = &mut *self.0.borrow_mut();
        *look = now + TICK;
        done.drain(..).for_each(|line| agent.handle_far(now, line, Ok(()), told));
        while *next <= now {
            agent.start(now);
            *next += *pause;
        }
        let mut send = |_: SocketAddr, bytes: &[u8]| out.push(Outbound { from: ADDRESS, local: 0, bytes: bytes.to_vec() });
        let mut far = |line, name: &str, order: &str| orders.push((line, name.to_owned(), order.to_owned()));
        for _ in 0..100 {
            agent.poll(now, &mut send, &mut far, told);
            if agent.deadline() > now {
                break;
            }
        }
    }

    fn deadline(&self) -> Time {
        let shared = self.0.borrow();
        shared.agent.deadline().min(shared.look)
    }

    fn wind_down(&mut self, _: Time) {
        let mut shared = self.0.borrow_mut();
        shared.next = Time::NEVER;
        shared.agent.wind_down();
    }

    fn is_done(&self) -> bool {
        self.0.borrow().agent.phase() == Phase::Done
    }

    fn pending(&self) -> String {
        self.summary()
    }

    fn summary(&self) -> String {
        let agent = &self.0.borrow().agent;
        format!("{:?} {} calls {:?}", agent.phase(), agent.calls(), agent.tally())
    }
}

/// An order in the words of `tollgate sim`.
fn order(words: &str, signalling: Signalling) -> FarOrder {
    let (verb, argument) = words.split_once(' ').unwrap_or((words, ""));
    match (verb, argument) {
        ("answer", _) => FarOrder::Show(Hook::Off),
        ("release", _) => FarOrder::Show(Hook::On),
        ("wink", _) => FarOrder::Wink,
        ("flash", _) => FarOrder::Flash,
        ("seize", digits) => FarOrder::Seize(signalling.digits(), symbols(digits, signalling.digits())),
        ("digits", digits) => FarOrder::Digits(signalling.digits(), symbols(digits, signalling.digits())),
        ("far", "answers") => FarOrder::Behave(Behaviour::Answers),
        ("far", "no-answer") => FarOrder::Behave(Behaviour::NoAnswer),
        ("far", "silent") => FarOrder::Behave(Behaviour::Silent),
        ("far", "collides") => FarOrder::Behave(Behaviour::Collides),
        ("far", "holds") => FarOrder::Behave(Behaviour::Holds),
        ("far", "hangs") => FarOrder::Behave(Behaviour::Hangs),
        ("far", "manual") => FarOrder::Behave(Behaviour::Manual),
        ("echo", "loop") => FarOrder::Echo(Echo::Loop),
        ("echo", "transponder") => FarOrder::Echo(Echo::Transponder),
        ("echo", "open") => FarOrder::Echo(Echo::Open),
        ("echo", "stuck") => FarOrder::Echo(Echo::Stuck),
        _ => panic!("{words}"),
    }
}

fn symbols(text: &str, kind: DigitKind) -> Digits {
    let mut digits = Digits::NONE;
    let mut rest = text.bytes().filter(|byte| *byte != b',');
    while let Some(byte) = rest.next() {
        let symbol = match (kind, byte) {
            (DigitKind::Mf, b'k') => MfDigit::KP + rest.next().unwrap() - b'0',
            (DigitKind::Mf, b's') => MfDigit::ST + rest.next().unwrap() - b'0',
            _ => byte,
        };
        assert!(digits.push(symbol));
    }
    digits
}

/// What the channels of a span are, in the ways that one kind may be provisioned.
fn signalling(kind: Kind, span: usize) -> Signalling {
    let other = span % 2 == 1;
    let base = Signalling { yields: span % 4 >= 2, ..Signalling::default() };
    match kind {
        Kind::Ms => Signalling { kind: ChannelKind::CasMf, wink_start: !other, ..base },
        Kind::Dt => Signalling { kind: ChannelKind::CasDtmf, wink_start: !other, dial_pulse: span == 2, ..base },
        Kind::Md => Signalling { kind: ChannelKind::FeatureGroupD, wink_start: true, ..base },
        Kind::Mo => Signalling { kind: ChannelKind::Operator, wink_start: true, direction: Direction::Outgoing, ..base },
        Kind::Bl => Signalling { kind: ChannelKind::PbxFxs, ground_start: other, ..base },
        Kind::Cot => base,
    }
}

/// What goes wrong: of a million far ends, and of a million datagrams; how long cores stand still at most, every now and then; and the
/// rule that the agent breaks.
#[derive(Clone, Copy, Default)]
struct Trouble {
    misbehave: u32,
    loss: u32,
    late: std::time::Duration,
    broken: Option<Rule>,
}

/// Makes calls for `time`, and gives what the agent counted.
fn play(layout: Layout, seed: u64, kind: Kind, trouble: Trouble, time: std::time::Duration) -> Tally {
    let Trouble { misbehave, loss, late, broken } = trouble;
    let mut w = World::new(Setup { told: false, ..Setup::new(layout, seed) }, |plan, _| {
        plan.spans.iter_mut().enumerate().for_each(|(n, span)| span.signalling = signalling(kind, n));
    });
    let endpoints = (1..=8).flat_map(|span| (1..=24).map(move |channel| format!("ds/ds1-{span}/{channel}@tgw.example.net")));
    let settings = Settings {
        gateway: vec![GATEWAY],
        endpoints: endpoints.collect(),
        kind,
        hold: 500 * MS,
        misbehave,
        verify: true,
        broken: broken.into_iter().collect(),
        timers: Timers::default(),
    };
    let agent = Trunks::new(&settings, &mut Rng::new(seed)).unwrap();
    let (told, pause) = (Told::default(), 30 * MS);
    let shared = Rc::new(RefCell::new(Shared { agent, told, orders: Vec::new(), done: Vec::new(), look: w.now, next: w.now, pause }));
    w.set_faults(Faults { loss, duplicate: loss, link_max: 20 * MS, ..Faults::none() });
    w.add_agent(Box::new(Caller(shared.clone())));
    let until = w.now + time;
    let limit = until + 300 * S;
    let (mut rng, mut busy_until) = (Rng::new(seed).fork("late"), w.now);
    while shared.borrow().agent.phase() != Phase::Done && w.now < limit {
        w.run_for(TICK);
        if !late.is_zero() && w.now < until && w.now >= busy_until + late && rng.below(20) == 0 {
            let time = rng.duration(MS, late);
            (0..w.plan.cores).for_each(|core| w.stall(CoreId(core), time));
            busy_until = busy_until.max(w.now + time);
        }
        // Orders to far ends wait for the cores too.
        let orders = if w.now < busy_until { Vec::new() } else { std::mem::take(&mut shared.borrow_mut().orders) };
        for (line, name, words) in orders {
            let endpoint: EndpointIndex = w.plan.topology.lookup(name.split('@').next().unwrap().as_bytes()).unwrap();
            let core = w.plan.owner(endpoint);
            let far = order(&words, w.plan.signalling(endpoint));
            w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, far)));
            shared.borrow_mut().done.push(line);
        }
        if w.now >= until {
            let now = w.now;
            w.agents()[0].wind_down(now);
        }
    }
    let shared = shared.borrow();
    let table: Vec<String> = shared.agent.outcomes().map(|(name, _, outcomes)| format!("{name}: {outcomes:?}")).collect();
    assert_eq!(shared.told.0, [], "{layout:?} {kind:?} seed {seed}: {table:#?}");
    assert_eq!(shared.agent.phase(), Phase::Done, "{layout:?} {kind:?} seed {seed}: {table:#?}");
    for (name, odd, outcomes) in shared.agent.outcomes() {
        let made = odd != (misbehave > 0) || outcomes.begun > 0 || !late.is_zero();
        assert!(
            made && outcomes.begun == outcomes.well + outcomes.refused && (outcomes.refused == 0 || !late.is_zero()),
            "seed {seed} {kind:?} {name}: {outcomes:?}"
        );
    }
    let tally = *shared.agent.tally();
    drop(shared);
    w.run_for(25 * S);
    w.check_quiet();
    assert_eq!((w.connections().len(), w.media_open()), (0, 0));
    tally
}

/// CAS-05, CAS-07, CAS-14 to CAS-17, E6: calls in and out in all forms, in every layout.
#[test]
fn calls_over_every_kind_of_trunk_go_well() {
    for (place, layout) in Layout::ALL.into_iter().enumerate() {
        let kinds = if place == 0 { &Kind::ALL[..] } else { &Kind::ALL[place % 6..][..1] };
        for kind in kinds {
            play(layout, 100 + place as u64, *kind, Trouble::default(), 6 * S);
        }
    }
}

/// The same with datagrams lost and doubled both ways.
#[test]
fn calls_go_well_over_a_lossy_network() {
    for (place, kind) in Kind::ALL.into_iter().enumerate() {
        play(Layout::ALL[place % Layout::ALL.len()], 200 + place as u64, kind, Trouble { loss: 10_000, ..Trouble::default() }, 6 * S);
    }
}

/// Every far end misbehaves: it collides, holds, hangs, stays silent, sends too little. No trunk stays stuck.
#[test]
fn no_trunk_stays_stuck_when_far_ends_misbehave() {
    for (place, kind) in Kind::ALL.into_iter().enumerate() {
        play(
            Layout::ALL[(place + 1) % Layout::ALL.len()],
            300 + place as u64,
            kind,
            Trouble { misbehave: 800_000, ..Trouble::default() },
            8 * S,
        );
    }
}

/// The same on cores that stand still for up to 300 ms every now and then, and refuse calls that came too late.
#[test]
fn calls_go_well_on_cores_that_are_late() {
    let seeds = super::random::number("TOLLGATE_SEED").map_or(402..405, |seed| seed..seed + 1);
    for seed in seeds {
        let kind = Kind::ALL[seed as usize % 6];
        let layout = Layout::ALL[seed as usize % 5];
        play(layout, seed, kind, Trouble { misbehave: 300_000, late: 300 * MS, ..Trouble::default() }, 5 * S);
    }
}

/// 4.4.1: what a script sends next goes with the answer to the Notify; an agent that breaks this rule is served all the same.
#[test]
fn the_next_command_of_a_call_follows_the_answer_to_a_notify() {
    let told = |broken| play(Layout::ALL[0], 500, Kind::Dt, Trouble { broken, ..Trouble::default() }, 3 * S);
    let kept = told(None);
    assert!(kept.requests > 50 && kept.requests_with_answer == kept.requests, "{kept:?}");
    let apart = told(Some(Rule::Lockstep));
    assert!(apart.requests > 50 && apart.requests_with_answer == 0, "{apart:?}");
}
