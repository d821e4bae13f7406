//! What a test sees of the gateway from inside: counters, connections, and whether all is quiet.

use super::card::CardWatch;
use super::world::World;
use crate::proto::base::{CoreId, Counter, EndpointIndex};
use crate::proto::core::{Answer, Ask, EndpointView, StateFilter};
use crate::proto::package::{find_item, find_package};
use crate::proto::trunk::{CardOrder, EventText, Facility};

impl World {
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
        self.nodes.iter().flat_map(|node| node.gateway_watches.iter().chain([&node.watch])).map(CardWatch::open).sum()
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

    /// Nothing that was refused is in place, on any core (G-TXN-02, G-SHD-06); and no event was left out that no counter knows of.
    pub(super) fn check_requests(&mut self) {
        let Some(journal) = self.wires.journal.take() else { return };
        let lost = [Counter::NotifiesLost, Counter::QuarantineLost, Counter::ObservedLost].map(|counter| self.counter(counter));
        let gaps = journal.notified.gaps();
        assert!(self.events_may_be_lost || lost != [0; 3] || gaps.is_empty(), "events are lost: {gaps:?}");
        let all = self.plan.topology.select_all();
        let owners = if self.requests_are_told_apart && journal.has_refused() { self.plan.owners.clone() } else { Vec::new() };
        for core in owners {
            let Answer::Endpoints(views) = self.ask_core(core, Ask::Endpoints(all, StateFilter::All)) else {
                panic!("a core does not answer")
            };
            let wrong = views.iter().find(|view| !view.request.is_empty() && journal.is_refused(&view.request));
            let which = |view: &EndpointView| format!("request {} was refused and is in place on {:?}", view.request, view.endpoint);
            assert!(wrong.is_none(), "{}", wrong.map(which).unwrap_or_default());
        }
        self.wires.journal = Some(journal);
    }

    /// The line of an endpoint shows the next of its numbered events, `T/oc(n)`, when the agent has asked for its events: whether it has.
    /// From then on every request for it must ask for `T/oc`.
    pub fn happen(&mut self, endpoint: EndpointIndex) -> bool {
        let (core, topology) = (self.plan.owner(endpoint), self.plan.topology.clone());
        let Some(one) = topology.selection_of(endpoint) else { return false };
        let Answer::Endpoints(views) = self.ask_core(core, Ask::Endpoints(one, StateFilter::All)) else { return false };
        let is_asked_for = views.first().is_some_and(|view| !matches!(view.request.as_str(), "" | "0") && view.service.in_service);
        let event = find_package(b"T").and_then(|package| find_item(package, b"oc"));
        if let (true, Some(event), Some(journal)) = (is_asked_for, event, &self.wires.journal) {
            let number = journal.notified.next(endpoint).to_string();
            let parameters = EventText::new(number.as_bytes());
            let answer = self.ask_core(core, Ask::Card(CardOrder::Event { endpoint, connection: None, event, parameters }));
            // A card whose core stands still sees no more than it can keep.
            if !matches!(answer, Answer::Refused(_)) {
                self.journal().notified.happens(endpoint);
            }
        }
        is_asked_for
    }

    /// Endpoints with events that were not told yet.
    pub fn untold(&self) -> Vec<EndpointIndex> {
        self.wires.journal.as_ref().map(|journal| journal.notified.untold()).unwrap_or_default()
    }

    /// Endpoints go out of service from now on, and what happened on them may be lost.
    pub fn lose_events(&mut self) {
        self.events_may_be_lost = true;
        self.journal().notified.restarts = true;
    }

    /// The agents use no identifier of a request for two.
    pub fn tell_requests_apart(&mut self) {
        self.requests_are_told_apart = true;
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
