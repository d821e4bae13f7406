//! The world: cores, rings, links, agents, and the one heap of events that moves them.

use super::card::{CardWatch, WatchedCard};
use super::frames::FrameTable;
use super::journal::Journal;
use super::layout::{self, Layout};
use super::reply::Reply;
use crate::proto::base::{CoreId, Counter, Counters, EndpointIndex, FrameRef, Rng, Time};
use crate::proto::core::{Administration, Answer, Ask, Boot, Core, Envelope, Origin, Outside, Request, StateFilter, Turn};
use crate::proto::endpoint::Announcement as Told;
use crate::proto::package::{find_item, find_package};
use crate::proto::plan::{Plan, Settings};
use crate::proto::trunk::{Card, CardOrder, EventText, Facility, FacilityKind, FacilityPlan, SimCard, SimulatedPlan};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);

/// Turns in a row in which a core said it must be called at once and did nothing: it would spin for ever.
const SPINS_MAX: u32 = 20_000;

/// What a world starts from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The cores.
    pub layout: Layout,
    /// Decides everything.
    pub seed: u64,
    /// The trunks.
    pub facilities: Vec<FacilityPlan>,
    /// Frames of a core to receive into, beside those that may stay in hand.
    pub frames: u32,
    /// Whether the restart is over, and all commands of the gateway to agents without an actor are answered with success.
    pub told: bool,
    /// How a failed run is repeated.
    pub replay: String,
}

impl Setup {
    /// Eight T1s, restarts told.
    pub fn new(layout: Layout, seed: u64) -> Setup {
        let t1 = |unit| FacilityPlan { kind: FacilityKind::T1, unit, common_channel: false };
        let replay = format!("TOLLGATE_SEED={seed} cargo test --test sim");
        Setup { layout, seed, facilities: (1..=8).map(t1).collect(), frames: 256, told: true, replay }
    }
}

/// What goes wrong, and how long things take. Rates are in parts per million.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Faults {
    /// Shortest time on a link between agents and gateway.
    pub link_min: Duration,
    /// Longest; datagrams overtake each other when it differs.
    pub link_max: Duration,
    /// A datagram is lost, and begins a burst of losses.
    pub loss: u32,
    /// Longest burst, in datagrams.
    pub burst: u32,
    /// A datagram comes twice.
    pub duplicate: u32,
    /// Longest time an envelope takes between cores.
    pub ring_max: Duration,
    /// Envelopes a ring holds.
    pub ring_capacity: usize,
    /// A ring says it is full though it is not.
    pub ring_full: u32,
    /// Transmit frames of a core.
    pub transmit_slots: usize,
    /// Longest time a transmit frame is in use.
    pub transmit_max: Duration,
    /// A datagram comes to another core than its home's.
    pub missteer: u32,
}

impl Faults {
    /// Nothing goes wrong, links take half a millisecond.
    pub fn none() -> Faults {
        Faults {
            link_min: MS / 2,
            link_max: MS / 2,
            loss: 0,
            burst: 0,
            duplicate: 0,
            ring_max: 20 * US,
            ring_capacity: 1024,
            ring_full: 0,
            transmit_slots: 1024,
            transmit_max: 20 * US,
            missteer: 500_000,
        }
    }
}

/// A datagram that reached an agent without an [`Actor`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mail {
    /// When.
    pub at: Time,
    /// To which address.
    pub to: SocketAddr,
    /// From which listen address.
    pub local: u8,
    /// It.
    pub bytes: Vec<u8>,
}

/// A datagram an agent sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outbound {
    /// From which address.
    pub from: SocketAddr,
    /// To which listen address of the gateway.
    pub local: u8,
    /// It.
    pub bytes: Vec<u8>,
}

/// An agent that acts by itself.
pub trait Actor {
    /// Whether datagrams to this address are its.
    fn owns(&self, address: IpAddr) -> bool;

    /// Takes a datagram.
    fn handle(&mut self, now: Time, mail: &Mail, out: &mut Vec<Outbound>);

    /// Does what is due.
    fn poll(&mut self, now: Time, out: &mut Vec<Outbound>);

    /// When to poll again.
    fn deadline(&self) -> Time;

    /// No new transactions from now on.
    fn wind_down(&mut self, now: Time);

    /// Whether every transaction has ended and it wants nothing more.
    fn is_done(&self) -> bool;

    /// What it waits for, for a message.
    fn pending(&self) -> String;

    /// What became of its commands, for a message.
    fn summary(&self) -> String;
}

enum Event {
    /// A datagram reaches a core's socket.
    ToCore(CoreId, SocketAddr, u8, Vec<u8>),
    /// A datagram reaches an agent.
    ToAgent(Mail),
    /// A core's turn.
    Turn(CoreId),
    /// An agent's timer.
    Poll(usize),
}

struct Entry {
    at: Time,
    sequence: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

#[derive(Default)]
struct Ring {
    queue: VecDeque<(Time, Envelope)>,
    last: Time,
}

/// Everything around the cores that a core can reach.
struct Wires {
    heap: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
    rng: Rng,
    faults: Faults,
    cores: usize,
    /// `from * cores + to`.
    rings: Vec<Ring>,
    /// When each core has its next turn.
    turns: Vec<Time>,
    stalled_until: Vec<Time>,
    stalled_since: Vec<Time>,
    /// When each core's transmit frames are free again.
    transmitting: Vec<Vec<Time>>,
    /// Datagrams still to be lost in the present burst.
    burst: u32,
    /// Links that pass nothing: agents' addresses.
    partitioned: Vec<IpAddr>,
    journal: Option<Journal>,
    digest: u64,
    /// What the present turn of a core did.
    active: bool,
}

impl Wires {
    fn push(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        self.heap.push(Reverse(Entry { at, sequence: self.sequence, event }));
    }

    fn fold(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Lets `core` have a turn not later than `at`, or when it is not stalled any more.
    fn turn_at(&mut self, core: CoreId, at: Time) {
        let place = usize::from(core.0);
        let at = at.max(self.stalled_until[place]);
        if at < self.turns[place] {
            self.turns[place] = at;
            self.push(at, Event::Turn(core));
        }
    }

    /// When a datagram sent now arrives: nothing when it is lost, twice when duplicated.
    fn cross_link(&mut self, now: Time, agent: IpAddr) -> Vec<Time> {
        let Faults { link_min, link_max, loss, burst, duplicate, .. } = self.faults;
        if self.partitioned.contains(&agent) {
            return Vec::new();
        }
        if self.burst > 0 {
            self.burst -= 1;
            return Vec::new();
        }
        if self.rng.chance(loss) {
            self.burst = self.rng.below(u64::from(burst) + 1) as u32;
            return Vec::new();
        }
        let copies = 1 + usize::from(self.rng.chance(duplicate));
        (0..copies).map(|_| now + self.rng.duration(link_min, link_max)).collect()
    }
}

/// A core's way out, for one turn.
struct Out<'a> {
    core: CoreId,
    now: Time,
    wires: &'a mut Wires,
    frames: &'a FrameTable,
    /// The largest datagram it can send.
    size: usize,
}

impl Outside for Out<'_> {
    fn transmit(&mut self, to: SocketAddr, local: u8, write: impl FnOnce(&mut [u8]) -> usize) -> bool {
        let now = self.now;
        let wires = &mut *self.wires;
        wires.active = true;
        let in_use = &mut wires.transmitting[usize::from(self.core.0)];
        in_use.retain(|&until| until > now);
        if in_use.len() >= wires.faults.transmit_slots {
            if let Some(journal) = &mut wires.journal {
                journal.in_order = false;
            }
            return false;
        }
        in_use.push(now + wires.rng.duration(US, wires.faults.transmit_max));
        let mut buffer = vec![0xaa; self.size];
        let length = write(&mut buffer);
        assert!(length > 0, "an empty datagram");
        buffer.truncate(length);
        wires.fold(&buffer);
        if let Some(journal) = &mut wires.journal {
            journal.sent(self.core, self.now, (to, local), &buffer);
        }
        for at in wires.cross_link(now, to.ip()) {
            wires.push(at, Event::ToAgent(Mail { at, to, local, bytes: buffer.clone() }));
        }
        true
    }

    fn forward(&mut self, to: CoreId, envelope: Envelope) -> bool {
        assert_ne!(to, self.core, "a core has no ring to itself");
        let wires = &mut *self.wires;
        wires.active = true;
        let injected = wires.rng.chance(wires.faults.ring_full);
        let delay = wires.rng.duration(Duration::ZERO, wires.faults.ring_max);
        let ring = &mut wires.rings[usize::from(self.core.0) * wires.cores + usize::from(to.0)];
        if injected || ring.queue.len() >= wires.faults.ring_capacity {
            return false;
        }
        ring.last = ring.last.max(self.now + delay);
        ring.queue.push_back((ring.last, envelope));
        let at = ring.last;
        wires.turn_at(to, at);
        true
    }

    fn release(&mut self, frame: FrameRef) {
        self.wires.active = true;
        self.frames.release(self.core, frame);
    }

    fn keep(&mut self, message: &[u8], origin: Origin) -> Option<FrameRef> {
        self.frames.keep(self.core, message, origin)
    }

    fn silence(&self, core: CoreId, now: Time) -> Duration {
        let place = usize::from(core.0);
        if now < self.wires.stalled_until[place] { now.since(self.wires.stalled_since[place]) } else { Duration::ZERO }
    }
}

struct Arrival {
    from: SocketAddr,
    local: u8,
    at: Time,
    bytes: Vec<u8>,
}

struct Node {
    core: Core,
    counters: Arc<Counters>,
    watch: CardWatch,
    /// Datagrams that arrived and were not read yet.
    socket: VecDeque<Arrival>,
    spins: u32,
}

/// The world.
pub struct World {
    /// The time.
    pub now: Time,
    /// The plan of the gateway.
    pub plan: Arc<Plan>,
    settings: Arc<Settings>,
    setup: Setup,
    nodes: Vec<Node>,
    frames: FrameTable,
    wires: Wires,
    agents: Vec<Box<dyn Actor>>,
    /// When each is polled next.
    polls: Vec<Time>,
    mail: Vec<Mail>,
    /// The responses in it, by transaction.
    replies: HashMap<u32, Vec<Reply>>,
    answers_own: bool,
    receivers: Vec<CoreId>,
    next_id: u32,
    steps: u64,
}

impl World {
    /// A world with the gateway just started, changed by `change` before it was.
    pub fn new(setup: Setup, change: impl FnOnce(&mut Plan, &mut Settings)) -> World {
        let now = Time::from_millis(1000);
        let (mut plan, mut settings) = (layout::plan(setup.layout, &setup.facilities), layout::settings());
        change(&mut plan, &mut settings);
        let (plan, settings) = (Arc::new(plan), Arc::new(settings));
        let mut rng = Rng::new(setup.seed);
        let cores = usize::from(plan.cores);
        let node = |core: u8| {
            let core = CoreId(core);
            let (card, watch) = WatchedCard::new(card(&plan, core, rng.next()));
            let counters = Arc::new(Counters::new());
            let boot = Boot {
                core,
                plan: plan.clone(),
                settings: settings.clone(),
                counters: counters.clone(),
                card: Box::new(card),
                gateway_cards: gateway_cards(&plan, core, &mut rng),
                seed: rng.next(),
                now,
            };
            Node { core: Core::new(boot), counters, watch, socket: VecDeque::new(), spins: 0 }
        };
        let nodes: Vec<Node> = (0..plan.cores).map(node).collect();
        let wires = Wires {
            heap: BinaryHeap::new(),
            sequence: 0,
            rng: rng.fork("wires"),
            faults: Faults::none(),
            cores,
            rings: (0..cores * cores).map(|_| Ring::default()).collect(),
            turns: vec![Time::NEVER; cores],
            stalled_until: vec![Time::ZERO; cores],
            stalled_since: vec![Time::ZERO; cores],
            transmitting: vec![Vec::new(); cores],
            burst: 0,
            partitioned: Vec::new(),
            journal: Some(Journal::new(plan.clone(), settings.clone())),
            digest: 0xcbf2_9ce4_8422_2325,
            active: false,
        };
        let mut world = World {
            now,
            frames: FrameTable::new(plan.cores, setup.frames + u32::from(plan.limits.datagrams), u32::from(plan.limits.jobs) + 64),
            receivers: setup.layout.receivers(),
            plan,
            settings,
            nodes,
            wires,
            agents: Vec::new(),
            polls: Vec::new(),
            mail: Vec::new(),
            replies: HashMap::new(),
            answers_own: false,
            next_id: 1000,
            steps: 0,
            setup,
        };
        for core in 0..world.plan.cores {
            world.wires.turn_at(CoreId(core), now);
        }
        if world.setup.told {
            world.boot();
        }
        world
    }

    /// Waits until every restart is announced and confirmed.
    fn boot(&mut self) {
        self.answers_own = true;
        self.run_for(Duration::from_secs(3));
        let all = self.plan.topology.select_all();
        for core in self.plan.owners.clone() {
            let Answer::Endpoints(views) = self.ask_core(core, Ask::Endpoints(all, StateFilter::All)) else { panic!("no answer") };
            assert!(views.iter().all(|view| view.announcement == Told::Done), "a restart is not confirmed after 3 s");
        }
        self.take_mail();
    }

    /// What goes wrong from now on.
    pub fn set_faults(&mut self, faults: Faults) {
        if faults.ring_full > 0 || faults.transmit_slots < 8 {
            self.journal().in_order = false;
        }
        self.wires.faults = faults;
        if faults.loss == 0 {
            self.wires.burst = 0;
        }
    }

    /// The journal, which must not have been put away.
    pub fn journal(&mut self) -> &mut Journal {
        self.wires.journal.as_mut().expect("the journal is kept")
    }

    /// Keeps no journal from now on: for scenarios in which agents break the rules its checks rest on.
    pub fn without_journal(&mut self) {
        self.wires.journal = None;
    }

    /// Adds an agent that acts by itself.
    pub fn add_agent(&mut self, agent: Box<dyn Actor>) {
        self.wires.push(self.now, Event::Poll(self.agents.len()));
        self.polls.push(self.now);
        self.agents.push(agent);
    }

    /// Takes all agents away; what comes for them is mail from now on.
    pub fn clear_agents(&mut self) {
        self.agents.clear();
        self.polls.clear();
    }

    /// The agents.
    pub fn agents(&mut self) -> &mut [Box<dyn Actor>] {
        &mut self.agents
    }

    /// Nothing passes between the gateway and this address until it is joined again.
    pub fn partition(&mut self, agent: IpAddr, apart: bool) {
        self.wires.partitioned.retain(|&address| address != agent);
        if apart {
            self.wires.partitioned.push(agent);
        }
    }

    /// `core` does nothing for `time`.
    pub fn stall(&mut self, core: CoreId, time: Duration) {
        let place = usize::from(core.0);
        let (since, until) = (&mut self.wires.stalled_since[place], &mut self.wires.stalled_until[place]);
        if self.now >= *until {
            *since = self.now;
        }
        *until = (*until).max(self.now + time);
        let (since, until) = (*since, *until);
        if let Some(journal) = &mut self.wires.journal {
            journal.stands_still(core, since, until);
        }
        self.wires.turns[place] = Time::NEVER;
        self.wires.turn_at(core, until);
    }

    /// Gives every core new settings.
    pub fn reload(&mut self, change: impl FnOnce(&mut Settings)) {
        let mut settings = (*self.settings).clone();
        change(&mut settings);
        self.settings = Arc::new(settings);
        for node in &mut self.nodes {
            node.core.set_settings(self.now, self.settings.clone());
        }
        if let Some(journal) = &mut self.wires.journal {
            journal.set_settings(self.settings.clone());
        }
        for core in 0..self.plan.cores {
            self.wires.turn_at(CoreId(core), self.now);
        }
    }

    /// An order to the card of every core, those that do not understand it left out.
    pub fn order_cards(&mut self, order: CardOrder) {
        for core in 0..self.plan.cores {
            self.ask_core(CoreId(core), Ask::Card(order));
        }
    }

    /// The line of an endpoint, or one of its connections, shows an event: `T/co1` or `T/sit(2)`.
    ///
    /// # Panics
    /// When there is no such endpoint, connection or event.
    pub fn occur(&mut self, local: &str, event: &str, connection: Option<&str>) {
        let endpoint = self.plan.topology.lookup(local.as_bytes()).expect("an endpoint");
        let (name, parameters) = event.split_once('(').unwrap_or((event, ""));
        let parameters = EventText::new(parameters.trim_end_matches(')').as_bytes());
        let (package, item) = name.split_once('/').expect("package/event");
        let event = find_package(package.as_bytes()).and_then(|package| find_item(package, item.as_bytes())).expect("an event");
        let core = self.plan.owner(endpoint);
        let connection = connection.map(|id| {
            let all = self.plan.topology.select_all();
            let Answer::Connections(views) = self.ask_core(core, Ask::Connections(all)) else { panic!("a core does not answer") };
            let view = views.iter().find(|view| view.connection.id.hex().to_string() == id).expect("a connection");
            view.slot
        });
        self.ask_core(core, Ask::Card(CardOrder::Event { endpoint, connection, event, parameters }));
        self.run_for(20 * MS);
    }

    /// Asks one core, and gets its whole answer.
    pub fn ask_core(&mut self, core: CoreId, ask: Ask) -> Answer {
        let mut request = Request::new(ask);
        while !self.with_core(core, |core, turn| core.handle_request(turn, &mut request)) {}
        request.answer
    }

    /// The operator clears one endpoint: what is on it is gone without a word to the agent.
    pub fn free(&mut self, endpoint: EndpointIndex) {
        let core = self.plan.owner(endpoint);
        self.ask_core(core, Ask::Free(endpoint));
        if let Some(journal) = &mut self.wires.journal {
            journal.freed(endpoint);
        }
    }

    /// An operator's order about service states.
    pub fn administer(&mut self, order: Administration) {
        self.ask_core(self.plan.lead(), Ask::Administer(order));
    }

    fn with_core<T>(&mut self, core: CoreId, then: impl FnOnce(&mut Core, &mut Turn<'_, FrameTable, Out<'_>>) -> T) -> T {
        let size = usize::from(self.plan.limits.datagram) + 200;
        let World { nodes, wires, frames, now, .. } = self;
        let node = &mut nodes[usize::from(core.0)];
        let mut out = Out { core, now: *now, wires, frames, size };
        let result = then(&mut node.core, &mut Turn { now: *now, frames, out: &mut out });
        let at = node.core.deadline().max(*now);
        self.wires.turn_at(core, at);
        result
    }

    /// Sends a datagram to a listen address, over the link.
    pub fn send_from(&mut self, from: SocketAddr, local: u8, bytes: &[u8]) {
        self.wires.fold(bytes);
        for at in self.wires.cross_link(self.now, from.ip()) {
            let core = self.steer(bytes);
            self.wires.push(at, Event::ToCore(core, from, local, bytes.to_vec()));
        }
    }

    /// Which core's socket a datagram comes to: its home's, when that receives and nothing goes wrong, else any.
    fn steer(&mut self, bytes: &[u8]) -> CoreId {
        let any = self.receivers[self.wires.rng.below(self.receivers.len() as u64) as usize];
        if self.wires.rng.chance(self.wires.faults.missteer) {
            return any;
        }
        let name = bytes.split(|&b| b == b' ').nth(2).unwrap_or_default();
        let local = name.split(|&b| b == b'@').next().unwrap_or(name);
        Some(self.plan.home(local)).filter(|home| self.receivers.contains(home)).unwrap_or(any)
    }

    /// Sends one command of the agent at 192.0.2.1:2727 with a fresh transaction id: the id. `parameters` are lines without their ends.
    pub fn command(&mut self, verb: &str, local: &str, parameters: &[&str]) -> u32 {
        self.next_id += 1;
        let id = self.next_id;
        self.send_from(agent(), 0, &compose(verb, id, local, parameters));
        id
    }

    /// Sends a command and waits for its final, at most 60 s.
    ///
    /// # Panics
    /// When none comes.
    pub fn ask(&mut self, verb: &str, local: &str, parameters: &[&str]) -> Reply {
        let id = self.command(verb, local, parameters);
        self.final_of(id)
    }

    /// Waits for the final of a transaction, at most 60 s.
    ///
    /// # Panics
    /// When none comes.
    pub fn final_of(&mut self, id: u32) -> Reply {
        let end = self.now + Duration::from_secs(60);
        loop {
            if let Some(reply) = self.replies.get(&id).and_then(|replies| replies.iter().find(|reply| reply.is_final())) {
                return reply.clone();
            }
            assert!(self.step_until(end), "no final for {id}; mail: {:?}", self.mail);
        }
    }

    /// Every response to a transaction so far, in order.
    pub fn replies_to(&self, id: u32) -> Vec<Reply> {
        self.replies.get(&id).cloned().unwrap_or_default()
    }

    /// What came to agents without an actor.
    pub fn mail(&self) -> &[Mail] {
        &self.mail
    }

    /// Takes it away.
    pub fn take_mail(&mut self) -> Vec<Mail> {
        self.replies.clear();
        std::mem::take(&mut self.mail)
    }

    /// Lets `time` pass.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step_until(end) {}
    }

    /// Runs until no agent wants anything more, at most for `limit`.
    ///
    /// # Panics
    /// When an agent still waits then.
    pub fn run_until_done(&mut self, limit: Duration) {
        let end = self.now + limit;
        while !self.agents.iter().all(|agent| agent.is_done()) {
            let pending = || self.agents.iter().map(|agent| agent.pending()).collect::<Vec<_>>().join("\n");
            assert!(self.now < end, "agents still wait after {limit:?}:\n{}", pending());
            self.step_until(end);
        }
    }

    /// The next event, if it lies before `end`; else the time is `end`.
    fn step_until(&mut self, end: Time) -> bool {
        match self.wires.heap.peek() {
            Some(Reverse(entry)) if entry.at <= end => {}
            _ => {
                self.now = end;
                return false;
            }
        }
        let Some(Reverse(Entry { at, event, .. })) = self.wires.heap.pop() else { return false };
        self.now = self.now.max(at);
        self.steps += 1;
        match event {
            Event::ToCore(core, from, local, bytes) => {
                self.nodes[usize::from(core.0)].socket.push_back(Arrival { from, local, at, bytes });
                self.wires.turn_at(core, at);
            }
            Event::ToAgent(mail) => self.deliver(mail),
            Event::Turn(core) => self.turn(core, at),
            Event::Poll(place) if self.polls.get(place) == Some(&at) => {
                self.polls[place] = Time::NEVER;
                let mut out = Vec::new();
                self.agents[place].poll(self.now, &mut out);
                self.after_agent(place, out);
            }
            // An earlier poll took its place.
            Event::Poll(_) => {}
        }
        true
    }

    fn deliver(&mut self, mail: Mail) {
        match self.agents.iter().position(|agent| agent.owns(mail.to.ip())) {
            Some(agent) => {
                let mut out = Vec::new();
                self.agents[agent].handle(self.now, &mail, &mut out);
                self.after_agent(agent, out);
            }
            // What H.248 gateways send is read by those who ask for it.
            None if self.plan.gateway_at(mail.local).is_some() => self.mail.push(mail),
            None => {
                for message in Reply::all(&mail.bytes) {
                    if message.code.is_some() {
                        self.replies.entry(message.id).or_default().push(message);
                    } else if self.answers_own {
                        self.send_from(mail.to, mail.local, format!("200 {} OK\r\n", message.id).as_bytes());
                    }
                }
                self.mail.push(mail);
            }
        }
    }

    fn after_agent(&mut self, agent: usize, out: Vec<Outbound>) {
        for Outbound { from, local, bytes } in out {
            self.send_from(from, local, &bytes);
        }
        let at = self.agents[agent].deadline().max(self.now + US);
        if at < self.polls[agent] {
            self.polls[agent] = at;
            self.wires.push(at, Event::Poll(agent));
        }
    }

    /// One turn of a core: envelopes that have come, a batch of datagrams, what is due.
    fn turn(&mut self, core: CoreId, at: Time) {
        let place = usize::from(core.0);
        if self.wires.turns[place] != at {
            // An earlier turn took its place.
            return;
        }
        self.wires.turns[place] = Time::NEVER;
        self.wires.active = false;
        let (now, cores) = (self.now, self.wires.cores);
        let size = usize::from(self.plan.limits.datagram) + 200;
        let World { nodes, wires, frames, .. } = self;
        let node = &mut nodes[place];
        let offset = wires.rng.below(cores as u64) as usize;
        for from in (0..cores).map(|n| (n + offset) % cores) {
            for _ in 0..32 {
                let ring = &mut wires.rings[from * cores + place];
                let Some((_, envelope)) = ring.queue.pop_front_if(|(ready, _)| *ready <= now) else { break };
                wires.active = true;
                let mut out = Out { core, now, wires, frames, size };
                node.core.handle_envelope(&mut Turn { now, frames, out: &mut out }, CoreId(from as u8), envelope);
            }
        }
        for _ in 0..if node.core.is_pressed(now) { 0 } else { 32 } {
            let Some(Arrival { from, local, at, bytes }) = node.socket.front() else { break };
            let Some(frame) = frames.hold(core, bytes, Origin { from: *from, local: *local, arrival: *at }) else { break };
            if let Some(journal) = &mut wires.journal {
                journal.received((*from, *local), bytes);
            }
            wires.active = true;
            node.socket.pop_front();
            let mut out = Out { core, now, wires, frames, size };
            node.core.handle_datagram(&mut Turn { now, frames, out: &mut out }, frame);
        }
        let mut out = Out { core, now, wires, frames, size };
        node.core.handle_time(&mut Turn { now, frames, out: &mut out });
        let deadline = node.core.deadline();
        node.spins = if deadline > now || wires.active { 0 } else { node.spins + 1 };
        assert!(node.spins < SPINS_MAX, "{core:?} wants to be called again and again and does nothing");
        let ready = (0..cores).filter_map(|from| wires.rings[from * cores + place].queue.front().map(|&(ready, _)| ready)).min();
        let socket = if node.socket.is_empty() { Time::NEVER } else { now };
        let next = deadline.min(ready.unwrap_or(Time::NEVER)).min(socket);
        // A turn takes a while, and longer when there is nothing to do.
        let pause = if wires.active { 5 * US } else { 20 * US };
        if next != Time::NEVER {
            self.wires.turn_at(core, next.max(now + pause));
        }
    }

    /// A counter, over all cores.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.nodes.iter().map(|node| node.counters.get(counter)).sum()
    }

    /// Connections as the cores have them: identifier, endpoint.
    ///
    /// # Panics
    /// When one is pending.
    pub fn connections(&mut self) -> Vec<(String, EndpointIndex)> {
        let mut list = Vec::new();
        for core in self.plan.owners.clone() {
            let all = self.plan.topology.select_all();
            let Answer::Connections(views) = self.ask_core(core, Ask::Connections(all)) else { panic!("a core does not answer") };
            for view in views {
                assert!(!view.connection.pending, "connection {} is still pending", view.connection.id.hex());
                list.push((view.connection.id.hex().to_string(), view.connection.endpoint));
            }
        }
        list
    }

    /// Responses the cores remember.
    pub fn remembered(&mut self) -> usize {
        let entries = |world: &mut World, core| match world.ask_core(CoreId(core), Ask::Transactions) {
            Answer::Transactions(view) => view.history.entries,
            _ => 0,
        };
        (0..self.plan.cores).map(|core| entries(self, core)).sum()
    }

    /// Answers all commands of the gateway to agents without an actor with success from now on, or none.
    pub fn answer_own(&mut self, answers: bool) {
        self.answers_own = answers;
    }

    /// Media resources the cards have given out.
    pub fn media_open(&self) -> usize {
        self.nodes.iter().map(|node| node.watch.open()).sum()
    }

    /// Everything that must hold when all transactions have ended: frames are back, no core has work left, connections are those the
    /// agents were told of, the cards have as many open.
    ///
    /// # Panics
    /// When something does not hold.
    pub fn check_quiet(&mut self) {
        assert_eq!(self.frames.held(), 0, "frames still held: {:?}", self.frames.held_lines());
        for core in 0..self.plan.cores {
            let Answer::Core(view) = self.ask_core(CoreId(core), Ask::Core) else { panic!("a core does not answer") };
            assert_eq!((view.waiting, view.datagrams, view.frames), (0, 0, 0), "core {core} has work left: {view:?}");
            assert_eq!(view.texts.1, 0, "core {core} keeps room for nobody: {view:?}");
            let Answer::Transactions(view) = self.ask_core(CoreId(core), Ask::Transactions) else { panic!("a core does not answer") };
            assert_eq!(view.history.running, 0, "core {core} still runs transactions: {view:?}");
        }
        let present = self.connections();
        assert_eq!(self.media_open(), present.len(), "media open on the cards against connections");
        if let Some(journal) = &self.wires.journal {
            journal.check_connections(&present);
        }
    }

    /// The facility of a span, by its name.
    ///
    /// # Panics
    /// When there is none.
    pub fn facility(&self, name: &str) -> Facility {
        self.plan.topology.lookup_facility(name.as_bytes()).expect("a facility")
    }

    /// One number for all that happened so far.
    pub fn digest(&self) -> u64 {
        self.wires.digest ^ self.steps.rotate_left(32) ^ self.now.0
    }

    /// Events so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Setup { layout, seed, replay, .. } = &self.setup;
            eprintln!("world: {layout:?}, seed {seed}, step {}, time {:?} ms", self.steps, self.now.0 as f64 / 1e6);
            eprintln!("repeat with: {replay}");
        }
    }
}

/// The address scripted commands come from.
fn agent() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 2727))
}

/// A command as bytes. An empty parameter begins the session description.
fn compose(verb: &str, id: u32, local: &str, parameters: &[&str]) -> Vec<u8> {
    let name = if local.contains('@') { local.to_owned() } else { format!("{local}@tgw.example.net") };
    let mut text = format!("{verb} {id} {name} MGCP 1.0\r\n");
    for line in parameters {
        text.push_str(line);
        text.push_str("\r\n");
    }
    text.into_bytes()
}

/// The simulated card of one core: the spans it owns; the lead core's sees the T3s.
/// The cards of the H.248 gateways that `core` runs.
fn gateway_cards(plan: &Plan, core: CoreId, rng: &mut Rng) -> Vec<Box<dyn Card + Send>> {
    let here = plan.gateways.iter().enumerate().filter(|(_, gateway)| gateway.core == core);
    here.map(|(place, gateway)| {
        let owned: Vec<_> = plan.gateway_spans(place as u8).map(|span| span.range).collect();
        let carried = |facility: &Facility| matches!(facility, Facility::Span(_)) && owned.contains(&plan.topology.endpoints_of(*facility));
        let facilities: Vec<Facility> = plan.topology.facilities().filter(carried).collect();
        let part = ((plan.owners.len() + place) as u32, (plan.owners.len() + plan.gateways.len()) as u32);
        let card = SimCard::new(&SimulatedPlan {
            topology: &plan.topology,
            kinds: &plan.kinds(),
            facilities: &facilities,
            address: IpAddr::from([192, 0, 2, 20]),
            ports: 16384..=49151,
            part,
            connections: gateway.connections,
            seed: rng.next(),
        });
        Box::new(card) as Box<dyn Card + Send>
    })
    .collect()
}

fn card(plan: &Plan, core: CoreId, seed: u64) -> SimCard {
    let owned: Vec<_> = plan.owned_spans(core).map(|span| span.range).collect();
    let carried = |facility: &Facility| match facility {
        Facility::T3(_) => core == plan.lead(),
        Facility::Span(_) => owned.contains(&plan.topology.endpoints_of(*facility)),
    };
    let facilities: Vec<Facility> = plan.topology.facilities().filter(carried).collect();
    let part = (plan.ordinal(core).unwrap_or(0) as u32, (plan.owners.len() + plan.gateways.len()) as u32);
    SimCard::new(&SimulatedPlan {
        topology: &plan.topology,
        kinds: &plan.kinds(),
        facilities: &facilities,
        address: IpAddr::from([192, 0, 2, 20]),
        ports: 16384..=49151,
        part,
        connections: plan.limits.connections,
        seed,
    })
}
