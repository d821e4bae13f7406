//! A gateway as its H.248 controllers see it (RFC 3525): association, contexts, terminations, commands.
//!
//! A [`Gateway`] has spans of its own and one core runs all of it, because a context joins any of its terminations; several gateways
//! share the cores (`docs/decisions/h248.md`). Physical terminations are endpoints and ephemeral ones connections of the same machine
//! that MGCP drives, on the same card. It sends nothing itself: whoever calls it gives a way out ([`Send`]).
//!
//! To drive it: [`Gateway::handle_datagram`] and [`Gateway::announce`] as things come, [`Gateway::handle_time`] once per turn and no
//! later than [`Gateway::deadline`].
//!
//! Invariants: those of `table`; a transaction is executed at most once; nothing is said to a controller before it was asked to
//! take the gateway (SC-19); a reply has at most the configured size.

mod admit;
mod association;
mod audit;
mod binary;
mod command;
mod description;
mod error;
mod event;
mod media;
mod modify;
mod name;
mod overload;
mod pairs;
mod parked;
mod room;
mod service;
mod table;
#[cfg(test)]
mod tests;
mod time;
mod transaction;

pub use admit::{Answered, claimant};
pub use association::State;
pub use error::Failure;
pub use table::{TERMINATIONS_PER_CONTEXT, Termination};

use crate::proto::base::{AgentId, Counter, Counters, EndpointIndex, EndpointRange, NameKey, Rng, Time, TransactionId};
use crate::proto::cas::Lines;
use crate::proto::codec::h248::{Content, Header, Message, MessageId, Shape, Style, Transaction, Writer};
use crate::proto::endpoint::{Announcement, Endpoint, Endpoints, OwnedSpan, PoolLimits, RestartMethod};
use crate::proto::mgcp::Calls;
use crate::proto::plan::{GatewayPlan, MessageEncoding, Plan, Settings};
use crate::proto::transaction::Timers;
use crate::proto::transaction::history::CONFIRM_BUDGET;
use crate::proto::transaction::outgoing::{Due, Limits, Outstanding};
use crate::proto::transaction::requester::{Reply, Requester};
use crate::proto::transaction::responder::{self, Responder, Sender};
use crate::proto::trunk::{Apart, Card, Defect, Facility, Indication, Violations};
use association::{Association, Purpose};
use binary::Binary;
use event::Watches;
use event::catalogue::Seen;
use media::RootTimes;
use overload::Overload;
use parked::Parking;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use table::Tables;

/// Where datagrams go: the address and the bytes.
pub type Send<'s> = &'s mut dyn FnMut(SocketAddr, &[u8]);

/// The version that is spoken.
const VERSION: u8 = 1;
/// Requests of the gateway's own outstanding at a time.
const OWN: u32 = 1024;
/// Indications of the card taken in one turn.
const INDICATIONS: usize = 256;
/// How soon at the latest what waits for another core looks again whether that stands still.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Things due done in one turn.
const DUE: usize = 256;

/// One gateway. See the module's page.
pub struct Gateway {
    /// Its place among [`Plan::gateways`].
    index: u8,
    plan: Arc<Plan>,
    /// Its endpoints, connections and card. The desk of admission is there while the gateway runs: it is that of the core.
    pub calls: Calls,
    counters: Arc<Counters>,
    names: NameKey,
    rng: Rng,
    tables: Tables,
    association: Association,
    responder: Responder,
    requester: Requester,
    parking: Parking,
    root: RootTimes,
    /// What its terminations detect and play.
    events: Watches,
    /// What it tells of overload.
    overload: Overload,
    /// New contexts are refused.
    draining: bool,
    /// What the card says of its lines, for the coordinator of the process; bounded by what the card keeps.
    defects: VecDeque<(Facility, Defect, bool, bool)>,
    /// What framers counted, for the same.
    violations: VecDeque<(Facility, Violations)>,
    /// Physical terminations that left their contexts, until they are looked at.
    freed: VecDeque<EndpointIndex>,
    /// Braces of the message in hand; taken while it is read.
    shape: Option<Box<Shape>>,
    /// The reply in hand; taken while it is written.
    reply: Option<Box<[u8]>>,
    /// Terminations that a wildcard means; taken while they are gone through.
    matches: Vec<Termination>,
    /// The physical termination that `$` chose last.
    last_chosen: EndpointIndex,
    /// When the delay of a service change that the controller ordered ends, the first of all.
    ordered_due: Time,
    /// Contexts in which the card has refused to join terminations, and when it is asked again.
    unjoined: Vec<u32>,
    rejoin_at: Time,
    /// Its channels lie on several cores.
    spread: bool,
    /// When the clock looked last.
    looked: Time,
    /// The first slot of its terminations on the desk of admission.
    first_slot: u32,
    /// The number of its last claim there.
    claims: u32,
    /// Where messages of the binary encoding become text and text becomes them; taken while that goes on.
    binary: Option<Box<Binary>>,
}

/// How a gateway is.
#[derive(Clone, Debug)]
pub struct GatewayView {
    /// Its place among [`Plan::gateways`].
    pub index: u8,
    /// Its association.
    pub state: State,
    /// The controller in charge, or the one that is asked.
    pub controller: Option<SocketAddr>,
    /// Since when one is in charge, or none.
    pub since: Time,
    /// When anything came from a controller last.
    pub heard: Option<Time>,
    /// Contexts up.
    pub contexts: u32,
    /// Ephemeral terminations, and connections between channels.
    pub connections: u32,
    /// Its core is overloaded.
    pub overloaded: bool,
    /// The share of calls that controllers are asked to block, in percent.
    pub reduction: u8,
    /// Its requests that nobody has answered.
    pub own: Vec<Outstanding>,
}

/// What a gateway starts from.
pub struct Boot {
    /// Which one of the plan it is.
    pub index: u8,
    /// The plan.
    pub plan: Arc<Plan>,
    /// Settings.
    pub settings: Arc<Settings>,
    /// Where it counts.
    pub counters: Arc<Counters>,
    /// The card that carries its spans.
    pub card: Box<dyn Card + std::marker::Send>,
    /// Decides waits and identifiers.
    pub rng: Rng,
    /// The time now.
    pub now: Time,
}

/// A stream loses nothing while it lasts, so what goes over one is not repeated in haste (TCP-03, TCP-04): only one that has ended does.
const PATIENCE: Duration = Duration::from_secs(2);

fn timers(own: &GatewayPlan, settings: &Settings) -> Timers {
    let timers = settings.transaction();
    if !own.streams {
        return timers;
    }
    let (rto_initial, rto_min) = (timers.rto_initial.max(PATIENCE), timers.rto_min.max(PATIENCE));
    Timers { rto_initial, rto_min, rto_max: timers.rto_max.max(PATIENCE), ..timers }
}

/// The bytes that a gateway with so many physical terminations and connections takes beside its endpoints and its history.
pub fn memory(physical: u32, connections: u32) -> u64 {
    let terminations = physical.saturating_add(connections).saturating_add(1);
    let listed = u64::from(physical.saturating_add(connections)) * (size_of::<Termination>() + size_of::<EndpointIndex>()) as u64;
    Tables::memory(physical, connections).saturating_add(Watches::memory(terminations)).saturating_add(listed)
}

impl Gateway {
    /// A gateway after a restart: nothing in any context, registered nowhere. All memory is claimed here.
    pub fn new(boot: Boot) -> Option<Gateway> {
        let Boot { index, plan, settings, counters, card, mut rng, now } = boot;
        let own = plan.gateways.get(usize::from(index))?.clone();
        let spans: Vec<OwnedSpan> = plan.gateway_spans(index).collect();
        let limits = plan.limits;
        let pools = PoolLimits { connections: own.connections, blob_blocks: limits.blob_blocks, entities: 1 };
        let mut endpoints = Endpoints::new(&spans, pools, rng.fork("connections").next());
        for endpoint in spans.iter().flat_map(|span| span.range.iter()) {
            // There is no RestartInProgress to wait for.
            if let Some(state) = endpoints.get_mut(endpoint) {
                state.announcement = Announcement::Done;
            }
        }
        let tables = Tables::new(spans.iter().map(|span| span.range), own.connections);
        let timers = timers(&own, &settings);
        let provisional = settings.timers.provisional_after;
        let responder = Responder::new(limits.history(own.max_message), &timers, provisional, &mut rng);
        let outgoing = Limits { commands: OWN + overload::ROOM as u32, large: OWN / 4, ordinal: 0, owners: 1 };
        let requester = Requester::new(now, &outgoing, timers, rng.fork("own"));
        let ms = |time: Duration| time.as_millis() as u32;
        let root = RootTimes { execution: 100, controller_execution: 100, provisional: ms(provisional), controller_provisional: 2000 };
        let association = Association::new(now, &own, &settings, &mut rng);
        let terminations = endpoints.count().saturating_add(own.connections).saturating_add(1);
        // What a line means is one machine's business; channels with hooks are no spans of a gateway.
        let card: Box<dyn Card + std::marker::Send> = Box::new(Lines::new(card, std::iter::empty(), plan.times, now));
        let carried = plan.gateway_spans(index).map(|span| (span.range, plan.carrier(EndpointIndex(span.range.first))));
        let elsewhere: Vec<_> = carried.filter(|(_, core)| *core != own.core).collect();
        let spread = !elsewhere.is_empty();
        let card = if spread { Box::new(Apart::new(card, elsewhere.into_iter(), own.connections)) } else { card };
        let matches = Vec::with_capacity(endpoints.count() as usize + own.connections as usize);
        let mut calls = Calls::new(now, endpoints, card, plan.clone(), settings, counters.clone());
        calls.desk = None;
        Some(Gateway {
            index,
            calls,
            counters,
            names: NameKey::new([rng.next(), rng.next()]),
            rng,
            tables,
            association,
            responder,
            requester,
            parking: Parking::new(own.max_message),
            root,
            events: Watches::new(now, terminations),
            overload: Overload::new(),
            draining: false,
            defects: VecDeque::new(),
            violations: VecDeque::new(),
            freed: VecDeque::with_capacity(matches.capacity()),
            shape: Some(Box::default()),
            reply: Some(vec![0; usize::from(own.max_message)].into()),
            matches,
            last_chosen: EndpointIndex(u32::MAX),
            ordered_due: Time::NEVER,
            unjoined: Vec::new(),
            rejoin_at: Time::NEVER,
            spread,
            looked: now,
            first_slot: 0,
            claims: 0,
            binary: (own.encoding == MessageEncoding::Binary).then(|| Box::new(Binary::new(own.max_message))),
            plan,
        })
    }

    fn own(&self) -> &GatewayPlan {
        // The index was checked when the gateway was made, and plans do not change.
        &self.plan.gateways[usize::from(self.index) % self.plan.gateways.len()]
    }

    /// Its place among [`Plan::gateways`].
    pub fn index(&self) -> u8 {
        self.index
    }

    /// Whether a termination is to leave service and is in no context.
    pub fn is_leaving_and_idle(&self, endpoint: EndpointIndex) -> bool {
        let leaves = |state: &Endpoint| state.service.in_service && state.service.method == RestartMethod::Graceful;
        self.calls.endpoints.get(endpoint).is_some_and(leaves)
            && self.tables.row(Termination::Physical(endpoint)).is_some_and(|row| row.context == table::NULL)
    }

    /// A physical termination that left its context, once.
    pub fn take_freed(&mut self) -> Option<EndpointIndex> {
        self.freed.pop_front()
    }

    /// How it is, for operators.
    pub fn view(&self) -> GatewayView {
        let (since, heard) = self.association.times();
        GatewayView {
            index: self.index,
            state: self.state(),
            controller: self.controller(),
            since,
            heard,
            contexts: self.contexts(),
            connections: self.calls.endpoints.connections.count(),
            overloaded: self.overload.is_overloaded(),
            reduction: self.reduction(),
            own: self.requester.iter().collect(),
        }
    }

    /// What is in use: connections, or at least the contexts there are.
    pub fn in_use(&self) -> u32 {
        self.calls.endpoints.connections.count().max(self.contexts())
    }

    /// Whether `endpoint` is one of its terminations.
    pub fn has(&self, endpoint: EndpointIndex) -> bool {
        self.calls.endpoints.owns(endpoint)
    }

    /// How its association stands.
    pub fn state(&self) -> State {
        self.association.state()
    }

    /// The controller it is registered with, or is trying.
    pub fn controller(&self) -> Option<SocketAddr> {
        self.own().controllers.get(self.association.controller()).copied()
    }

    /// Contexts up.
    pub fn contexts(&self) -> u32 {
        self.tables.contexts_up()
    }

    /// New settings, for what comes and for timers already running.
    pub fn set_settings(&mut self, settings: Arc<Settings>) {
        let timers = timers(self.own(), &settings);
        self.requester.set_timers(timers);
        self.responder.set_timers(&timers);
        self.calls.settings = settings;
    }

    /// Stop or resume taking new contexts.
    pub fn set_draining(&mut self, on: bool) {
        self.draining = on;
    }

    /// An operator clears a termination: the context it is in ends, with all in it. How many connections that had.
    pub fn free(&mut self, now: Time, endpoint: EndpointIndex) -> u32 {
        let context = self.tables.row(Termination::Physical(endpoint)).map_or(table::NULL, |row| row.context);
        let mut ended = 0;
        while let Some(&member) = self.tables.context(context).and_then(|context| context.members().last()) {
            ended += u32::from(matches!(member, Termination::Ephemeral(_)));
            self.remove(now, member);
        }
        ended
    }

    /// A datagram from `from`. Whoever is no controller of this gateway is counted and not answered (SEC-05).
    pub fn handle_datagram(&mut self, now: Time, from: SocketAddr, bytes: &[u8], send: Send<'_>) {
        let Some(controller) = self.own().controllers.iter().position(|known| known.ip() == from.ip()) else {
            return self.counters.add(Counter::DroppedUnlistedSource);
        };
        self.counters.add(Counter::H248Messages);
        match self.binary.take() {
            Some(mut binary) => {
                self.handle_octets(now, (controller, from), bytes, &mut binary, send);
                self.binary = Some(binary);
            }
            None => self.handle_text(now, (controller, from), bytes, send),
        }
    }

    fn handle_text(&mut self, now: Time, (controller, from): (usize, SocketAddr), bytes: &[u8], send: Send<'_>) {
        let Some(mut shape) = self.shape.take() else { return };
        match Message::parse(bytes, &mut shape) {
            Ok(message) => self.message(now, (controller as u8, from), bytes, &message, send),
            Err(refusal) => {
                self.counters.add(Counter::H248Unreadable);
                if Header::parse(bytes).is_ok() && self.association.may_speak() {
                    self.send_error(from, Failure::from(refusal), send);
                }
            }
        }
        self.shape = Some(shape);
        if self.has_abandoned() {
            self.end_abandoned(now, send);
        }
        self.send_overload(now, send);
    }

    fn message(&mut self, now: Time, source: (u8, SocketAddr), bytes: &[u8], message: &Message<'_>, send: Send<'_>) {
        let (controller, from) = source;
        let transactions = match message.content() {
            Ok(Content::Transactions(transactions)) => transactions,
            // An error about a message of ours: its requests are repeated and given up as if nobody had answered.
            Ok(Content::Error(_)) => return self.counters.add(Counter::H248ErrorMessages),
            Err(refusal) => return self.send_error(from, Failure::from(refusal), send),
        };
        let agent = AgentId(controller);
        let sender = Sender { agent, message_id: self.sender(&message.header.from) };
        self.association.heard(now, controller);
        let mut budget = CONFIRM_BUDGET;
        for (ordinal, transaction) in transactions.enumerate() {
            match transaction {
                Ok(Transaction::Request(request)) => self.request(now, (sender, from), bytes, (ordinal, &request), send),
                Ok(Transaction::Pending(id)) => {
                    self.requester.handle_pending(now, id);
                }
                Ok(Transaction::Reply(reply)) => match self.requester.handle_reply(now, reply.id, reply.immediate_ack) {
                    Reply::Ends { user, agent, acknowledge } => {
                        if acknowledge {
                            self.acknowledge(from, reply.id, send);
                        }
                        self.counters.add(Counter::ResponsesMatched);
                        self.answered(now, Purpose::unpack(user), agent.0, &reply);
                    }
                    Reply::Stray { acknowledge } => {
                        if acknowledge {
                            self.acknowledge(from, reply.id, send);
                        }
                        self.counters.add(Counter::ResponsesUnmatched);
                    }
                },
                Ok(Transaction::Acknowledgement(ranges)) => {
                    for (first, last) in ranges {
                        self.responder.acknowledge(now, agent, first, last, &mut budget);
                    }
                }
                // What stands behind its end is not read: the identifier is not known (TXN-11).
                Err(refusal) => {
                    self.counters.add(Counter::H248Unreadable);
                    if self.association.may_speak() {
                        self.send_failure(from, 0, Failure::from(refusal), send);
                    }
                }
            }
        }
    }

    /// One space of transaction identifiers for each message identifier, wherever it comes from (UDP-09).
    fn sender(&self, id: &MessageId<'_>) -> u64 {
        let (text, port): (&[u8], _) = match id {
            MessageId::Ip4(address, port) => (&address.octets(), *port),
            MessageId::Ip6(address, port) => (&address.octets(), *port),
            MessageId::Domain(name, port) => (name, *port),
            MessageId::Mtp(digits) => (digits, None),
            MessageId::Device(name) => (name, None),
        };
        self.names.fold(text) ^ port.map_or(0, |port| u64::from(port) << 32 | 1)
    }

    fn style(&self) -> Style {
        if self.own().encoding == MessageEncoding::Pretty { Style::Pretty } else { Style::Compact }
    }

    /// Begins a message of ours.
    fn header(&self, w: &mut Writer<'_>) {
        match MessageId::parse(self.own().message_id.as_bytes()) {
            Some(id) => w.header(self.association.version(), &id),
            // The configuration is checked; without an identifier nothing is sent.
            None => w.end(),
        }
    }

    /// Writes a short message and sends it.
    fn send_with(&mut self, to: SocketAddr, send: Send<'_>, write: impl FnOnce(&mut Writer<'_>)) {
        let Some(mut buffer) = self.reply.take() else { return };
        let mut w = Writer::new(&mut buffer, self.style());
        self.header(&mut w);
        write(&mut w);
        if let Some(text) = w.finish().and_then(|length| buffer.get(..length)) {
            send(to, text);
        }
        self.reply = Some(buffer);
    }

    /// A message that is an error (MSG-04).
    fn send_error(&mut self, to: SocketAddr, failure: Failure, send: Send<'_>) {
        self.counters.add(Counter::H248Failed);
        self.send_with(to, send, |w| w.error(failure.code, failure.text.as_bytes()));
    }

    /// The reply to a transaction that failed as a whole; it is not remembered.
    fn send_failure(&mut self, to: SocketAddr, id: TransactionId, failure: Failure, send: Send<'_>) {
        self.counters.add(Counter::H248Failed);
        self.send_with(to, send, |w| {
            w.reply(id, false);
            w.error(failure.code, failure.text.as_bytes());
            w.end();
        });
    }

    fn acknowledge(&mut self, to: SocketAddr, id: TransactionId, send: Send<'_>) {
        self.send_with(to, send, |w| w.acknowledge([(id, id)]));
    }

    /// Everything that is due.
    pub fn handle_time(&mut self, now: Time, send: Send<'_>) {
        match self.binary.take() {
            Some(mut binary) => {
                let counters = self.counters.clone();
                self.do_due(now, &mut |to, text| binary.send(&counters, to, text, send));
                self.binary = Some(binary);
            }
            None => self.do_due(now, send),
        }
    }

    fn do_due(&mut self, now: Time, send: Send<'_>) {
        for _ in 0..INDICATIONS {
            let Some(indication) = self.calls.card.poll(now) else { break };
            self.indication(now, indication, send);
        }
        while let Some(ticket) = self.calls.card.apart().and_then(Apart::take_ticket) {
            self.counted(now, ticket, send);
        }
        self.rejoin_due(now);
        self.claims_due(now, send);
        self.end_silent(now, send);
        if self.has_abandoned() {
            self.end_abandoned(now, send);
        }
        self.looked = now;
        for _ in 0..DUE {
            match self.responder.poll(now) {
                Some(responder::Due::Pending(handle)) => self.tell_pending(handle, send),
                Some(responder::Due::Overdue(handle)) => self.give_up(now, handle, send),
                None => break,
            }
        }
        self.expire_events(now);
        self.end_delays(now);
        self.associate(now);
        self.watch_activity(now);
        self.tell_overload(now);
        self.notify(now);
        self.send_own(now, send);
    }

    /// Requests of the gateway that are due, and those nobody answered.
    fn send_own(&mut self, now: Time, send: Send<'_>) {
        for _ in 0..DUE {
            match self.requester.poll(now) {
                Some(Due::Transmit { to, body, repeat, .. }) => {
                    self.counters.add(if repeat { Counter::OwnRepeats } else { Counter::OwnCommands });
                    send(to, body);
                }
                Some(Due::Unanswered { user, agent, .. }) => {
                    self.counters.add(Counter::OwnLost);
                    self.unanswered(now, Purpose::unpack(user), agent.0);
                }
                None => break,
            }
        }
    }

    fn indication(&mut self, now: Time, indication: Indication, send: Send<'_>) {
        match indication {
            Indication::Opened { connection, result, .. } | Indication::Modified { connection, result, .. } => {
                self.media_answered(now, connection, result.ok(), send);
            }
            // Defects go to the coordinator of the whole process, which orders what becomes of them; see `take_defect`.
            Indication::Defect { facility, defect, present, at_once } => {
                self.defects.push_back((facility, defect, present, at_once));
            }
            Indication::Event { endpoint, connection, event, parameters } => {
                self.card_event(now, (endpoint, connection), event, parameters);
            }
            Indication::MediaLost { again: true, .. } => {}
            // What becomes of it is the controller's to say: a context ends by Subtract only.
            Indication::MediaLost { connection, .. } => {
                self.counters.add(Counter::MediaTimedOut);
                self.happened(now, Termination::Ephemeral(connection), Seen::NetworkFailure, b"cs=\"nothing received\"");
            }
            Indication::Violations { facility, violations } => self.violations.push_back((facility, violations)),
            Indication::SignalEnded { endpoint, signal, failed, .. } => self.signal_ended(now, endpoint, signal, failed),
            Indication::KeyUp { .. } => {}
            Indication::Line { .. } | Indication::Trouble { .. } => self.counters.add(Counter::CardStray),
        }
    }

    /// A defect that began or ended: where, which, whether it is present, and whether at once.
    pub fn take_defect(&mut self) -> Option<(Facility, Defect, bool, bool)> {
        self.defects.pop_front()
    }

    /// What a framer counted, and where.
    pub fn take_violations(&mut self) -> Option<(Facility, Violations)> {
        self.violations.pop_front()
    }

    /// When to call [`Gateway::handle_time`] at the latest.
    pub fn deadline(&self) -> Time {
        let card = self.calls.card.deadline();
        let own = self.requester.deadline().min(self.association.deadline()).min(self.notify_deadline()).min(self.overload_deadline());
        card.min(self.ordered_due)
            .min(self.responder.deadline())
            .min(self.events.deadline())
            .min(own)
            .min(self.look_again())
            .min(self.parking.deadline())
            .min(self.rejoin_at)
    }

    /// When to look again whether a core stands still that carries what somebody waits for.
    fn look_again(&self) -> Time {
        if self.spread && !self.parking.is_empty() { self.looked + LOOK_AGAIN } else { Time::NEVER }
    }

    /// The endpoints of its spans, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = EndpointRange> + '_ {
        self.tables.spans()
    }
}
