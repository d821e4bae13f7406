//! The world: cores, rings, links, agents, and the one heap of events that moves them.

use super::actor::{Actor, Mail, Outbound};
use super::card::{CardWatch, WatchedCard, card};
use super::frames::FrameTable;
use super::journal::Journal;
use super::layout;
use super::notified::UNSEEN;
use super::reply::Reply;
use super::setup::{Faults, Setup};
use super::unchanged::Before;
use super::wires::{Entry, Event, Out, Ring, Wires};
use crate::proto::base::{CoreId, Counters, EndpointIndex, Rng, Time};
use crate::proto::core::{Administration, Answer, Ask, Boot, Core, Origin, Request, StateFilter, Turn, Verdicts};
use crate::proto::endpoint::Announcement as Told;
use crate::proto::package::{find_item, find_package};
use crate::proto::plan::{Plan, Settings};
use crate::proto::trunk::{Card, CardOrder, EventText, Measure};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);

/// How much later than it can be known the stall watch sees that a core stands still.
const WATCH: Duration = Duration::from_millis(125);

/// Turns in a row in which a core said it must be called at once and did nothing: it would spin for ever.
const SPINS_MAX: u32 = 20_000;

struct Arrival {
    from: SocketAddr,
    local: u8,
    at: Time,
    bytes: Vec<u8>,
}

pub(super) struct Node {
    pub(super) core: Core,
    pub(super) counters: Arc<Counters>,
    pub(super) watch: CardWatch,
    /// Of the cards of H.248 gateways on it.
    pub(super) gateway_watches: Vec<CardWatch>,
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
    pub(super) settings: Arc<Settings>,
    pub(super) setup: Setup,
    pub(super) nodes: Vec<Node>,
    pub(super) frames: FrameTable,
    pub(super) wires: Wires,
    pub(super) agents: Vec<Box<dyn Actor>>,
    /// When each is polled next.
    pub(super) polls: Vec<Time>,
    pub(super) mail: Vec<Mail>,
    /// The responses in it, by transaction.
    pub(super) replies: HashMap<u32, Vec<Reply>>,
    pub(super) answers_own: bool,
    pub(super) receivers: Vec<CoreId>,
    pub(super) next_id: u32,
    pub(super) steps: u64,
    /// Whether endpoints may go out of service, with what happened on them.
    pub(super) events_may_be_lost: bool,
    /// Whether no identifier of a request is used for two, so that one that was refused must be in place nowhere.
    pub(super) requests_are_told_apart: bool,
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
            let (card, watch) = WatchedCard::new(card(&plan, core, rng.next()).with_srtp(setup.srtp));
            let (mut gateway_cards, mut gateway_watches) = (Vec::new(), Vec::new());
            for (gateway, card, watch) in super::card::gateway_cards(&plan, core, &mut rng) {
                gateway_cards.push((gateway, Box::new(card) as Box<dyn Card + Send>));
                gateway_watches.push(watch);
            }
            let counters = Arc::new(Counters::new());
            let boot = Boot {
                core,
                plan: plan.clone(),
                settings: settings.clone(),
                counters: counters.clone(),
                card: Box::new(card),
                gateway_cards,
                seed: rng.next(),
                now,
            };
            Node { core: Core::new(boot), counters, watch, gateway_watches, socket: VecDeque::new(), spins: 0 }
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
            verdicts: (0..cores).map(|_| Verdicts::new([rng.next(), rng.next()])).collect(),
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
            events_may_be_lost: false,
            requests_are_told_apart: false,
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
            let notified = &mut self.journal().notified;
            (notified.unseen, notified.loses_answers) = (UNSEEN, true);
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
            journal.notified.loses_answers = true;
        }
        self.wires.turns[place] = Time::NEVER;
        self.wires.turn_at(core, until);
        self.wires.push(since + self.settings.timers.stall + WATCH, Event::Watch(core));
    }

    /// Whether the stall watch has seen that a core stands still: what comes for it is led to others then.
    fn is_passed_by(&self, core: CoreId) -> bool {
        self.wires.silence(core, self.now) >= self.settings.timers.stall + WATCH
    }

    /// The core that receives instead of one that stands still, if there is one.
    fn instead_of(&self, core: CoreId) -> CoreId {
        let place = self.receivers.iter().position(|&receiver| receiver == core).unwrap_or(0);
        let others = self.receivers.iter().cycle().skip(place).take(self.receivers.len());
        others.copied().find(|&other| !self.is_passed_by(other)).unwrap_or(core)
    }

    /// What lies in the socket of a core that stands still is given to another one.
    fn watch(&mut self, core: CoreId) {
        let other = self.instead_of(core);
        if other != core {
            let waiting = std::mem::take(&mut self.nodes[usize::from(core.0)].socket);
            self.nodes[usize::from(other.0)].socket.extend(waiting);
            self.wires.turn_at(other, self.now);
        }
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

    /// The cards tell of all connections, those that are being made included, that nothing comes from their far ends.
    pub fn lose_media(&mut self) {
        for core in 0..self.plan.cores {
            let node = &self.nodes[usize::from(core)];
            node.gateway_watches.iter().chain([&node.watch]).for_each(CardWatch::lose_media);
            self.ask_core(CoreId(core), Ask::Core);
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
        let carrier = self.plan.carrier(endpoint);
        self.ask_core(carrier, Ask::Card(CardOrder::Event { endpoint, connection, event, parameters }));
        self.run_for(20 * MS);
    }

    /// What cards were to measure since this was asked last, of connections by their ids.
    pub fn measured(&mut self) -> Vec<(String, Measure)> {
        let all = self.plan.topology.select_all();
        let mut measured = Vec::new();
        for core in self.plan.owners.clone() {
            let Answer::Connections(views) = self.ask_core(core, Ask::Connections(all)) else { panic!("a core does not answer") };
            for (slot, what) in self.nodes[usize::from(core.0)].watch.take_measured() {
                let view = views.iter().find(|view| view.slot == slot).expect("a connection");
                measured.push((view.connection.id.hex().to_string(), what));
            }
        }
        measured
    }

    /// What the card plays on an endpoint and its connections, such as `G/rt@7A T/bz`.
    pub fn playing(&mut self, local: &str) -> String {
        let endpoint = self.plan.topology.lookup(local.as_bytes()).expect("an endpoint");
        let core = self.plan.owner(endpoint);
        let all = self.plan.topology.select_all();
        let Answer::Connections(views) = self.ask_core(core, Ask::Connections(all)) else { panic!("a core does not answer") };
        let id = |slot: u32| views.iter().find(|view| view.slot == slot).expect("a connection").connection.id.hex();
        let playing = self.nodes[usize::from(core.0)].watch.playing(endpoint);
        let words =
            playing.into_iter().map(|(connection, signal)| connection.map_or(signal.clone(), |slot| format!("{signal}@{}", id(slot))));
        words.collect::<Vec<_>>().join(" ")
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
            let core = self.steer(local, bytes);
            self.wires.push(at, Event::ToCore(core, from, local, bytes.to_vec()));
        }
    }

    /// Which core's socket a datagram comes to: its home's, when that receives and nothing goes wrong, else any; and none that is
    /// known to stand still.
    fn steer(&mut self, local: u8, bytes: &[u8]) -> CoreId {
        let core = self.choose(local, bytes);
        self.instead_of(core)
    }

    fn choose(&mut self, local: u8, bytes: &[u8]) -> CoreId {
        let any = self.receivers[self.wires.rng.below(self.receivers.len() as u64) as usize];
        if self.wires.rng.chance(self.wires.faults.missteer) {
            return any;
        }
        if let Some(gateway) = self.plan.gateway_at(local) {
            let core = self.plan.gateways[usize::from(gateway)].core;
            return if self.receivers.contains(&core) { core } else { any };
        }
        let name = bytes.split(|&b| b == b' ').nth(2).unwrap_or_default();
        let local = name.split(|&b| b == b'@').next().unwrap_or(name);
        Some(self.plan.home(local)).filter(|home| self.receivers.contains(home)).unwrap_or(any)
    }

    /// Lets `time` pass.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step_until(end) {}
        self.check_requests();
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
    pub(super) fn step_until(&mut self, end: Time) -> bool {
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
            Event::Watch(core) => self.watch(core),
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
        let World { nodes, wires, frames, plan, .. } = self;
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
            let origin = Origin { from: *from, local: *local, arrival: *at };
            let Some(frame) = frames.hold(core, bytes, origin) else { break };
            if let Some(journal) = &mut wires.journal {
                journal.received((*from, *local), bytes);
            }
            wires.active = true;
            let bytes = node.socket.pop_front().map(|arrival| arrival.bytes).unwrap_or_default();
            let journal = wires.journal.take();
            let mut out = Out { core, now, wires, frames, size };
            let mut turn = Turn { now, frames, out: &mut out };
            let before =
                journal.as_ref().and_then(|journal| Before::of(plan, journal, &mut node.core, &mut turn, origin.from.ip(), &bytes));
            turn.out.wires.journal = journal;
            node.core.handle_datagram(&mut turn, frame);
            let journal = turn.out.wires.journal.take();
            if let (Some(before), Some(journal)) = (before, &journal) {
                before.check(journal, &mut node.core, &mut turn);
            }
            turn.out.wires.journal = journal;
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
