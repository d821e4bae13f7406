//! A cluster under virtual time: the machines that ship, gateways and a central node, over links that lose, duplicate, delay and are
//! cut, with nodes that die, come back and stand still. What must always hold is checked after each step; when all is well again for
//! some seconds, both ends must agree about every call (I1 to I16).

mod busy;
mod cores;
mod hellos;
mod mending;
mod pair;
mod pairs;
mod quotas;
mod random;
mod reports;
mod scripts;
mod store;
mod sweeps;
mod versions;

use super::central::{self, Central, LinkId};
use super::charge::{Charge, Class, Direction, Guid, Key, Leg, ScId};
use super::lease;
use super::ledger::Admission;
use super::limits::{Amount, Limits};
use super::message::{Answer, Framed, Report, Side, ToCentral, ToNode, Told, features};
use super::node::{self, Decision, Node};
use super::policy::Policy;
use super::quota::{Giving, Lessee};
use super::scope::{self, Scope, ScopeId, Tree};
use super::wire;
use crate::proto::base::{Rng, Time};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The pool all calls count in.
const POOL: ScopeId = ScopeId(0);
/// Reports a gateway keeps.
const REPORTS_MAX: usize = 500;
/// Between two ends of a link.
const DELAY: Duration = Duration::from_micros(300);
/// From one turn of a central node to the next while it has something to do.
const TURN: Duration = Duration::from_micros(100);

/// What is on its way.
#[derive(Clone, Debug)]
enum Packet {
    ToCentral(usize, usize, LinkId, Framed<ToCentral>),
    ToNode(usize, usize, LinkId, Framed<ToNode>),
    Connected(usize, usize, LinkId),
    Closed(usize, usize, LinkId),
    /// From a life of a central node to the store, and back.
    ToStore(usize, u64, lease::Action),
    FromStore(usize, u64, lease::Event),
    /// From the node of a gateway's life to one of its cores, and back.
    ToCore(usize, u32, node::Action),
    FromCore(usize, u32, node::Event),
    NewCall(usize),
    EndCall(usize, u32, Guid, Leg),
}

/// What links do to messages, in parts per million.
#[derive(Clone, Copy, Default, Debug)]
struct Weather {
    lost: u32,
    twice: u32,
    late: u32,
}

/// One gateway.
struct Gateway {
    node: Option<Node>,
    incarnation: u32,
    /// To each central node, and whether nothing passes to it.
    links: [Option<LinkId>; 2],
    apart: [bool; 2],
    cut: bool,
    paused: bool,
    asked: BTreeMap<(Guid, Leg), Time>,
    calls: u64,
    cores: Vec<cores::Core>,
    /// What waits in the rings while the gateway stands still.
    rings: std::collections::VecDeque<Packet>,
    /// Only its node stands still, not its cores.
    node_paused: bool,
    /// It is of the version before quotas.
    is_old: bool,
    /// As the central node knows it: its quotas hold no longer.
    lease_over: Time,
}

/// One central node.
#[derive(Default)]
struct Office {
    machine: Option<Central>,
    /// Of a pair: its part in who leads.
    lease: Option<lease::Lease>,
    life: u64,
    paused: bool,
    /// Whether it cannot reach the store.
    apart: bool,
}

/// What gateways are like, and how limits are given to them.
#[derive(Clone, Copy)]
struct Kind {
    /// So many of the gateways speak the first minor version.
    old: usize,
    giving: Giving,
}

impl Kind {
    const PLAIN: Kind = Kind { old: 0, giving: Giving::Never };
    const QUOTAS: Kind = Kind { old: 0, giving: Giving::Auto };
}

struct World {
    seed: u64,
    now: Time,
    rng: Rng,
    tree: Arc<Tree>,
    limits: Vec<Limits>,
    policy: Policy,
    gateways: Vec<Gateway>,
    offices: Vec<Office>,
    store: store::Store,
    /// Which life of which central node granted in each epoch (I9).
    granted_in: BTreeMap<u64, (usize, u64)>,
    epoch: u64,
    weather: Weather,
    packets: BTreeMap<(Time, u64), Packet>,
    sequence: u64,
    links: u64,
    /// New calls of each gateway come so far apart; `None`: none come.
    calls_every: Option<Duration>,
    calls_last: Duration,
    emergencies: u32,
    priorities: u32,
    /// So many of the calls are pairs.
    pairs: u32,
    /// Whether the ends compare what they have from time to time.
    compares: bool,
    /// Whether the sum of normal calls may not pass the limit now (I4).
    strict: bool,
    /// The names of the clusters that the central nodes are of.
    clusters: [u64; 2],
    kind: Kind,
    /// The central node that is of the version before quotas.
    old_office: Option<usize>,
    /// How many calls a central node looks at in one turn, where many go.
    slice: usize,
    requests_max: u32,
    notes: Vec<central::Note>,
    decided: BTreeMap<&'static str, u64>,
}

impl World {
    /// `count` gateways that may have `limit` calls together; everything is up and in sync.
    fn new(seed: u64, count: usize, limit: u32, policy: Policy) -> World {
        World::with(seed, count, limit, policy, true)
    }

    /// The same; without `compares` both ends must agree by the other rules alone.
    fn with(seed: u64, count: usize, limit: u32, policy: Policy, compares: bool) -> World {
        World::of(seed, count, 1, limit, policy, compares)
    }

    /// The same with so many central nodes.
    fn of(seed: u64, count: usize, centrals: usize, limit: u32, policy: Policy, compares: bool) -> World {
        World::kind(seed, Kind::PLAIN, (count, centrals), limit, policy, compares)
    }

    /// The same with other gateways, or quotas.
    fn kind(seed: u64, kind: Kind, (count, centrals): (usize, usize), limit: u32, policy: Policy, compares: bool) -> World {
        let scopes = vec![
            Scope::new(scope::Kind::Pool, "carrier"),
            Scope::new(scope::Kind::TrunkGroup, "north").under(POOL),
            Scope::new(scope::Kind::TrunkGroup, "south").under(POOL),
        ];
        let gateway = || Gateway {
            node: None,
            incarnation: 0,
            links: [None; 2],
            apart: [false; 2],
            cut: false,
            paused: false,
            asked: BTreeMap::new(),
            calls: 0,
            cores: Vec::new(),
            rings: std::collections::VecDeque::new(),
            node_paused: false,
            is_old: false,
            lease_over: Time::ZERO,
        };
        let mut world = World {
            seed,
            now: Time::from_millis(1_000),
            rng: Rng::new(seed),
            tree: Arc::new(Tree::new(scopes).unwrap()),
            limits: vec![Limits::of_calls(limit)],
            policy,
            gateways: (0..count).map(|_| gateway()).collect(),
            offices: (0..centrals).map(|_| Office::default()).collect(),
            store: store::Store::default(),
            granted_in: BTreeMap::new(),
            epoch: 0,
            weather: Weather::default(),
            packets: BTreeMap::new(),
            sequence: 0,
            links: 0,
            calls_every: None,
            calls_last: Duration::from_secs(2),
            emergencies: 0,
            priorities: 0,
            pairs: 0,
            compares,
            clusters: [7; 2],
            kind,
            strict: policy == Policy::HoldLast || policy == Policy::Closed,
            old_office: None,
            // Most sweeps are over in one turn, or take many.
            slice: if seed % 3 == 2 { 2 } else { 256 },
            requests_max: 16_384,
            notes: Vec::new(),
            decided: BTreeMap::new(),
        };
        (0..centrals).for_each(|side| world.start_office(side));
        (0..count).for_each(|place| world.start(place, Vec::new()));
        world.run(Duration::from_secs(1));
        assert!(world.all_in_sync(), "seed {seed}");
        world
    }

    fn sc(place: usize) -> ScId {
        ScId(place as u32 + 1)
    }

    /// The central node: of a pair the one that leads in the highest epoch, or the first.
    fn place(&self) -> usize {
        let epoch = |side: &usize| self.offices[*side].machine.as_ref().filter(|central| central.leads()).map(Central::epoch);
        (0..self.offices.len()).rev().max_by_key(epoch).unwrap_or(0)
    }

    fn central(&self) -> &Central {
        self.offices[self.place()].machine.as_ref().expect("a central node")
    }

    fn central_mut(&mut self) -> &mut Central {
        let place = self.place();
        self.offices[place].machine.as_mut().expect("a central node")
    }

    fn start_central(&mut self) {
        self.start_office(0);
    }

    fn start_office(&mut self, side: usize) {
        let is_pair = self.offices.len() > 1;
        self.epoch += 1;
        let expected = (0..self.gateways.len()).map(World::sc).collect();
        let mut settings = central::Settings::new(if is_pair { 0 } else { self.epoch }, expected);
        settings.cluster = self.clusters[side];
        settings.slice = self.slice;
        settings.giving = vec![self.kind.giving; self.tree.len()];
        if self.old_office == Some(side) {
            settings.features = features::COPY;
        }
        let policies = vec![self.policy; self.tree.len()];
        let machine = Central::new(self.now, settings, self.tree.clone(), self.limits.clone(), policies);
        let office = &mut self.offices[side];
        office.machine = Some(machine);
        office.life += 1;
        office.lease = is_pair.then(|| lease::Lease::new(self.now, store::LENGTH));
        self.step_central(side, central::Event::Time);
    }

    /// The central node dies: its connections are gone with it.
    fn kill_central(&mut self) {
        self.kill_office(self.place());
    }

    fn kill_office(&mut self, side: usize) {
        self.offices[side].machine = None;
        self.offices[side].lease = None;
        (0..self.gateways.len()).for_each(|place| self.unlink(place, side, DELAY));
    }

    /// A gateway begins a life with these calls up.
    fn start(&mut self, place: usize, saved: Vec<Told>) {
        self.gateways[place].incarnation += 1;
        let mut settings = node::Settings::new(World::sc(place), self.gateways[place].incarnation);
        settings.nodes = (0..self.gateways.len()).map(World::sc).collect();
        settings.centrals = self.offices.len() as u8;
        settings.reports_max = REPORTS_MAX;
        settings.requests_max = self.requests_max;
        settings.cores = cores::COUNT;
        if place < self.kind.old {
            settings.features = 0;
        } else if self.gateways[place].is_old {
            settings.features = features::COPY;
        }
        if !self.compares {
            settings.compare_every = Duration::from_secs(86_400);
        }
        let policies = vec![self.policy; self.tree.len()];
        let mut node = Node::new(self.now, settings, self.tree.clone(), self.limits.clone(), policies);
        node.restore(self.now, saved.iter().copied());
        self.gateways[place].cores = cores::Core::all(self.tree.len(), &saved);
        self.gateways[place].node = Some(node);
        let ending = if self.calls_every.is_some() { saved } else { Vec::new() };
        for told in ending {
            let ends = self.rng.duration(Duration::from_millis(100), self.calls_last * 2);
            self.push(ends, Packet::EndCall(place, self.gateways[place].incarnation, told.guid, told.leg));
        }
        self.step_node(place, node::Event::Time);
    }

    /// A gateway dies: what it had up.
    fn kill(&mut self, place: usize) -> Vec<Told> {
        self.unlink_all(place);
        self.gateways[place].asked.clear();
        self.gateways[place].cores.clear();
        self.gateways[place].rings.clear();
        self.gateways[place].node.take().map_or(Vec::new(), |node| World::told(&node))
    }

    fn told(node: &Node) -> Vec<Told> {
        let told = |(key, ccb): (&Key, &super::Ccb)| Told { guid: key.guid, leg: key.leg, charge: ccb.charge, admission: ccb.admission };
        node.calls().ledger().iter().map(told).collect()
    }

    fn unlink_all(&mut self, place: usize) {
        (0..self.offices.len()).for_each(|side| self.unlink(place, side, DELAY));
    }

    fn unlink(&mut self, place: usize, side: usize, after: Duration) {
        if let Some(link) = self.gateways[place].links[side].take() {
            self.push(after, Packet::Closed(place, side, link));
        }
    }

    /// Whether nothing passes between these two.
    fn is_cut(&self, place: usize, side: usize) -> bool {
        self.gateways[place].cut || self.gateways[place].apart[side]
    }

    fn push(&mut self, after: Duration, packet: Packet) {
        self.sequence += 1;
        self.packets.insert((self.now + after, self.sequence), packet);
    }

    /// A message, as the weather is, by way of its octets.
    fn mail(&mut self, place: usize, side: usize, packet: Packet) {
        let mut octets = Vec::new();
        let packet = if place < self.kind.old { versions::aged(packet) } else { packet };
        let packet = match packet {
            Packet::ToCentral(place, side, link, framed) => {
                assert!(self.old_office != Some(side) || !cores::is_new(&framed.message), "it cannot read {:?}", framed.message);
                if let ToCentral::Bucket { calls, .. } | ToCentral::SyncChunk { calls, .. } = &framed.message {
                    assert!(self.old_office == Some(side) || calls.len() <= 512, "R30: {} calls in one message", calls.len());
                }
                wire::put_to_central(&framed, &mut octets);
                Packet::ToCentral(place, side, link, wire::get_to_central(&octets).expect("what was written"))
            }
            Packet::ToNode(place, side, link, framed) => {
                wire::put_to_node(&framed, &mut octets);
                Packet::ToNode(place, side, link, wire::get_to_node(&octets).expect("what was written"))
            }
            other => other,
        };
        if self.is_cut(place, side) || self.rng.chance(self.weather.lost) {
            return;
        }
        let copies = 1 + u64::from(self.rng.chance(self.weather.twice));
        for _ in 0..copies {
            let late = self.rng.chance(self.weather.late);
            let after = if late { self.rng.duration(DELAY, Duration::from_millis(400)) } else { DELAY };
            self.push(after, packet.clone());
        }
    }

    /// Goes on for so long.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let packet = self.packets.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
            let nodes = self.gateways.iter().filter(|gateway| !gateway.is_still()).filter_map(|gateway| gateway.node.as_ref());
            // What is to go on goes on in the next turn.
            let turn = |deadline: Time| if deadline <= self.now { self.now + TURN } else { deadline };
            let offices = self.offices.iter().filter(|office| !office.paused).map(|office| turn(office.deadline()));
            let deadline = nodes.map(Node::deadline).chain(offices).min().unwrap_or(Time::NEVER);
            let next = packet.min(deadline);
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            (0..self.gateways.len()).for_each(|place| self.drain_rings(place));
            if packet <= deadline {
                let (_, packet) = self.packets.pop_first().expect("a packet");
                self.deliver(packet);
            } else {
                for place in 0..self.gateways.len() {
                    self.step_node(place, node::Event::Time);
                }
                (0..self.offices.len()).for_each(|side| self.step_central(side, central::Event::Time));
            }
            self.check();
        }
    }

    fn deliver(&mut self, packet: Packet) {
        match packet {
            Packet::ToCentral(place, side, link, framed) => match (self.offices[side].paused, self.is_cut(place, side)) {
                // It waits in a buffer, and comes when the central node goes on.
                (true, _) => self.push(Duration::from_millis(50), Packet::ToCentral(place, side, link, framed)),
                (false, true) => {}
                (false, false) => self.step_central(side, central::Event::Received(link, framed)),
            },
            Packet::ToNode(place, side, link, framed) => {
                if self.gateways[place].is_still() {
                    return self.push(Duration::from_millis(50), Packet::ToNode(place, side, link, framed));
                }
                if self.gateways[place].links[side] == Some(link) && !self.is_cut(place, side) {
                    self.receive_at_node(place, side, framed);
                }
            }
            Packet::Connected(place, side, link) => {
                let name = Side(side as u8);
                if self.offices[side].machine.is_none() || self.is_cut(place, side) || self.gateways[place].node.is_none() {
                    return self.step_node(place, node::Event::LinkDown(name));
                }
                if self.offices[side].paused {
                    return self.push(Duration::from_millis(50), Packet::Connected(place, side, link));
                }
                if self.gateways[place].links[side] != Some(link) {
                    return;
                }
                self.step_central(side, central::Event::LinkUp(link, World::sc(place)));
                self.step_node(place, node::Event::LinkUp(name));
            }
            Packet::Closed(place, side, link) => {
                if self.offices[side].paused || self.gateways[place].is_still() {
                    return self.push(Duration::from_millis(50), Packet::Closed(place, side, link));
                }
                self.step_central(side, central::Event::LinkDown(link));
                if self.gateways[place].links[side].is_none_or(|current| current == link) {
                    self.gateways[place].links[side] = None;
                    self.step_node(place, node::Event::LinkDown(Side(side as u8)));
                }
            }
            Packet::ToStore(side, life, action) => self.at_store(side, life, action),
            Packet::FromStore(side, life, event) => self.store_answers(side, life, event),
            Packet::ToCore(place, ..) | Packet::FromCore(place, ..) => {
                self.gateways[place].rings.push_back(packet);
                self.drain_rings(place);
            }
            Packet::NewCall(place) => self.new_call(place),
            Packet::EndCall(place, incarnation, guid, leg) => {
                if self.gateways[place].paused {
                    return self.push(Duration::from_millis(50), Packet::EndCall(place, incarnation, guid, leg));
                }
                if self.gateways[place].incarnation == incarnation {
                    self.end_call(place, guid, leg);
                }
            }
        }
    }

    fn begin_calls(&mut self, every: Duration) {
        self.calls_every = Some(every);
        (0..self.gateways.len()).for_each(|place| self.push(every, Packet::NewCall(place)));
    }

    fn new_call(&mut self, place: usize) {
        let Some(every) = self.calls_every else { return };
        let pause = self.rng.duration(Duration::ZERO, every * 2);
        self.push(pause, Packet::NewCall(place));
        if self.gateways[place].paused || self.gateways[place].node.is_none() {
            return;
        }
        let group = ScopeId(1 + self.rng.below(2) as u16);
        let (leg, direction) = [(Leg::Ingress, Direction::Inbound), (Leg::Egress, Direction::Outbound)][self.rng.below(2) as usize];
        let class = match (self.rng.chance(self.emergencies), self.rng.chance(self.priorities)) {
            (true, _) => Class::Emergency,
            (_, true) => Class::Priority,
            _ => Class::Normal,
        };
        let charge = self.tree.charge(group, None, Charge::new(direction, class, 80));
        let guid = self.guid(place);
        if self.pairs > 0 && class != Class::Emergency && self.rng.chance(self.pairs) {
            return self.new_pair(place, (guid, leg, charge));
        }
        self.ask(place, guid, leg, charge);
        let ends = self.rng.duration(Duration::from_millis(1), self.calls_last * 2);
        self.push(ends, Packet::EndCall(place, self.gateways[place].incarnation, guid, leg));
        if self.rng.chance(200_000) {
            self.change(place, guid, leg, charge.with_kbits(64), true);
        }
        // A change that was granted and not made, or needs less: told, not asked for.
        if self.rng.chance(100_000) {
            self.change(place, guid, leg, charge.with_kbits(40), false);
        }
    }

    fn guid(&mut self, place: usize) -> Guid {
        let gateway = &mut self.gateways[place];
        gateway.calls += 1;
        let number = cores::number(gateway.calls);
        Guid { sc: World::sc(place).0, incarnation: gateway.incarnation, number }
    }

    fn ask(&mut self, place: usize, guid: Guid, leg: Leg, charge: Charge) {
        if self.kind.giving != Giving::Never {
            return self.ask_core(place, guid, leg, charge);
        }
        self.gateways[place].asked.insert((guid, leg), self.now);
        self.step_node(place, node::Event::Ask(guid, leg, charge));
    }

    fn step_node(&mut self, place: usize, event: node::Event) {
        let now = self.now;
        if self.gateways[place].is_still() {
            return;
        }
        let Some(node) = self.gateways[place].node.as_mut() else { return };
        node.step(now, event);
        while let Some(action) = self.gateways[place].node.as_mut().and_then(Node::poll) {
            match action {
                node::Action::Connect(Side(side)) => {
                    let side = usize::from(side);
                    self.links += 1;
                    let link = LinkId(self.links);
                    self.gateways[place].links[side] = Some(link);
                    self.push(DELAY, Packet::Connected(place, side, link));
                }
                node::Action::Disconnect(Side(side)) => self.unlink(place, side.into(), DELAY),
                node::Action::Send(Side(side), framed) => {
                    let side = usize::from(side);
                    if let Some(link) = self.gateways[place].links[side] {
                        self.mail(place, side, Packet::ToCentral(place, side, link, framed));
                    }
                }
                node::Action::Decided(guid, leg, decision) => {
                    // I10: exactly one decision for each request.
                    let asked = self.gateways[place].asked.remove(&(guid, leg));
                    assert!(asked.is_some(), "seed {}: decided twice: {guid} {leg:?}", self.seed);
                    let what = match decision {
                        Decision::Admitted(Admission::Granted) => "granted",
                        Decision::Admitted(_) => "local",
                        Decision::Refused(_) => "refused",
                    };
                    *self.decided.entry(what).or_default() += 1;
                    self.tell_core(place, action);
                }
                node::Action::Lent(guid, leg, _) => {
                    let asked = self.gateways[place].asked.remove(&(guid, leg));
                    assert!(asked.is_some(), "seed {}: decided twice: {guid} {leg:?}", self.seed);
                    *self.decided.entry("leased").or_default() += 1;
                    self.tell_core(place, action);
                }
                node::Action::Changed(..) => {
                    *self.decided.entry("changed").or_default() += 1;
                    self.tell_core(place, action);
                }
                node::Action::Quota(..) | node::Action::Lease(_) => self.tell_core(place, action),
                node::Action::Note(_) => {}
            }
        }
    }

    /// A message for a node. I9: no grant of an epoch below the highest it saw counts.
    fn receive_at_node(&mut self, place: usize, side: usize, framed: Framed<ToNode>) {
        let Some(node) = &self.gateways[place].node else { return };
        let (epoch, highest, granted) = (framed.header.epoch, node.contact().1, node.counts().granted);
        self.step_node(place, node::Event::Received(Side(side as u8), framed));
        let obeyed = self.gateways[place].node.as_ref().is_some_and(|node| node.counts().granted > granted);
        assert!(!obeyed || epoch >= highest, "seed {}: I9: a grant of epoch {epoch} counts behind {highest}", self.seed);
    }

    fn step_central(&mut self, side: usize, event: central::Event) {
        if self.offices[side].paused {
            return;
        }
        self.step_lease(side, lease::Event::Time);
        self.step_machine(side, event);
    }

    fn step_machine(&mut self, side: usize, event: central::Event) {
        let now = self.now;
        let Some(central) = self.offices[side].machine.as_mut() else { return };
        let (before, promised) = (central.authority().ledger().len(), central.promised(POOL));
        let reports = match &event {
            central::Event::Received(_, Framed { header, message: ToCentral::QuotaReport { .. } }) => Some(header.sc),
            _ => None,
        };
        let mends = matches!(&event, central::Event::Received(_, Framed { message: ToCentral::Bucket { .. }, .. }));
        central.step(now, event);
        let gone = before.saturating_sub(central.authority().ledger().len());
        // With the one that a report is of.
        assert!(mends || gone <= self.slice + 1, "seed {}: {gone} calls go in one step", self.seed);
        self.check_given(side, promised);
        let Some(central) = self.offices[side].machine.as_mut() else { return };
        if let Some(sc) = reports.filter(|_| central.leads()) {
            self.note_lease(sc);
        }
        let Some(central) = self.offices[side].machine.as_mut() else { return };
        let grew = central.authority().ledger().len() > before;
        while let Some(action) = self.offices[side].machine.as_mut().and_then(Central::poll) {
            match action {
                central::Action::Send(link, framed) => {
                    if let ToNode::Reply { answer: Answer::Granted, .. } = &framed.message {
                        self.check_grant(side, framed.header.epoch, grew);
                    }
                    if let Some(place) = self.gateways.iter().position(|gateway| gateway.links[side] == Some(link)) {
                        self.mail(place, side, Packet::ToNode(place, side, link, framed));
                    }
                }
                central::Action::Close(link) => {
                    if let Some(place) = self.gateways.iter().position(|gateway| gateway.links[side] == Some(link)) {
                        self.unlink(place, side, DELAY);
                    }
                }
                central::Action::Note(note) => self.noted(side, note),
            }
        }
    }

    /// I3: with what was just granted, no scope has more ordinary calls than it may have.
    /// I9: and no other grants in this epoch.
    fn check_grant(&mut self, side: usize, epoch: u64, grew: bool) {
        let granter = (side, self.offices[side].life);
        let first = *self.granted_in.entry(epoch).or_insert(granter);
        assert!(first == granter && epoch > 0, "seed {}: I9: two grant in epoch {epoch}", self.seed);
        let Some(central) = &self.offices[side].machine else { return };
        if !grew {
            return;
        }
        let used = central.authority().ledger().used(POOL);
        assert!(
            central.is_dry_run() || used.get(Amount::Normal) <= self.limits[0].calls,
            "seed {}: granted beyond the limit: {used:?}",
            self.seed
        );
    }

    /// Normal calls that are up in all gateways.
    fn live(&self) -> u32 {
        let cores = self.gateways.iter().flat_map(|gateway| &gateway.cores);
        self.in_use(Amount::Normal).max(cores.map(cores::Core::normal).sum())
    }

    /// What calls use in all gateways.
    fn in_use(&self, amount: Amount) -> u32 {
        let nodes = self.gateways.iter().filter_map(|gateway| gateway.node.as_ref());
        nodes.map(|node| node.calls().ledger().used(POOL).get(amount)).sum()
    }

    fn all_in_sync(&self) -> bool {
        self.gateways.iter().all(|gateway| gateway.node.as_ref().is_some_and(Node::is_in_sync))
    }

    /// What holds after each step.
    fn check(&self) {
        let seed = self.seed;
        // Counting anew costs more than all else.
        let audited = self.sequence.is_multiple_of(64);
        for gateway in &self.gateways {
            let Some(node) = &gateway.node else { continue };
            assert!(!audited || node.calls().ledger().audit(), "seed {seed}: I7 at a node");
            let (requests, reports) = node.queued();
            assert!(requests <= self.requests_max as usize && reports <= REPORTS_MAX, "seed {seed}: I14");
            for (call, &asked) in gateway.asked.iter().filter(|_| !gateway.is_still()) {
                assert!(self.now.since(asked) <= Duration::from_millis(250), "seed {seed}: I10: {call:?} waits");
            }
        }
        for central in self.offices.iter().filter_map(|office| office.machine.as_ref()) {
            assert!(!audited || central.authority().ledger().audit(), "seed {seed}: I7 at the central node");
        }
        self.check_quotas();
        if self.strict {
            let (normal, priority) = (self.live(), self.in_use(Amount::Priority));
            let all = self.limits[0].ceiling(Class::Priority).map_or(u32::MAX, |ceiling| ceiling.get(Amount::Calls));
            assert!(normal <= self.limits[0].calls && normal + priority <= all, "seed {seed}: I4: {normal} and {priority} calls are up");
        }
    }

    /// Nothing goes wrong any more and no call begins; some seconds later both ends have the same calls (I1, I2).
    fn settle(&mut self) {
        self.weather = Weather::default();
        self.calls_every = None;
        self.store.away = false;
        for side in 0..self.offices.len() {
            (self.offices[side].paused, self.offices[side].apart) = (false, false);
            if self.offices[side].machine.is_none() {
                self.start_office(side);
            }
        }
        for place in 0..self.gateways.len() {
            self.gateways[place].cut = false;
            self.gateways[place].apart = [false; 2];
            self.gateways[place].paused = false;
            self.gateways[place].node_paused = false;
            if self.gateways[place].node.is_none() {
                self.start(place, Vec::new());
            }
        }
        self.run(Duration::from_secs(10));
        assert!(self.all_in_sync(), "seed {}: not in sync", self.seed);
        self.compare();
    }

    /// Both ends have the same calls; of a pair the standby too.
    fn compare(&self) {
        (0..self.offices.len()).for_each(|side| self.compare_with(side));
    }

    fn compare_with(&self, side: usize) {
        let Some(central) = &self.offices[side].machine else { return };
        // One of the version before quotas knows of none.
        let known = |charge: Charge| if self.old_office == Some(side) { charge.unleased() } else { charge };
        let there: BTreeMap<Key, Charge> = central.authority().ledger().iter().map(|(key, ccb)| (*key, ccb.charge)).collect();
        let nodes = self.gateways.iter().filter_map(|gateway| gateway.node.as_ref());
        let here: BTreeMap<Key, Charge> =
            nodes.flat_map(|node| node.calls().ledger().iter()).map(|(key, ccb)| (*key, known(ccb.charge))).collect();
        let leaked: Vec<_> = there.iter().filter(|(key, charge)| here.get(key) != Some(charge)).collect();
        let lacking: Vec<_> = here.keys().filter(|key| !there.contains_key(key)).collect();
        assert!(leaked.is_empty() && lacking.is_empty(), "seed {}: I1: {leaked:?} {lacking:?}", self.seed);
    }
}
