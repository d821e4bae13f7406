//! The machine of one core: it routes messages to the core they belong to, runs the commands of its own endpoints, answers, and
//! talks to the other cores. It owns everything it touches; cores share no table.
//!
//! Drive it with `handle_datagram`, `handle_envelope` and `handle_request` as input comes, and with `handle_time` once per turn of the
//! loop and no later than `deadline`. Each takes a [`Turn`]: the time, the frames to read and the way out. Envelopes a core sends to
//! itself are delivered before the call returns, so that a gateway of one core needs no ring.
//!
//! Invariants: a received frame is released, or returned to its owner, exactly once; a command that was noted as running is finished
//! exactly once; every envelope that asks for an answer gets one.

mod admission;
mod ahead;
mod announce;
mod command;
mod datagrams;
mod disconnected;
mod envelope;
mod everywhere;
pub mod exercise;
mod found;
mod gateways;
mod groups;
mod halves;
mod handed;
mod held;
mod in_hand;
mod jobs;
mod lead;
mod lead_view;
mod media;
mod missed;
mod notify;
mod operator;
mod orders;
mod outside;
mod own;
mod parts;
mod performance;
mod preface;
mod receive;
mod repeats;
mod reports;
mod respond;
#[cfg(test)]
mod second;
mod settle;
mod survey;
mod tally;
mod verdicts;

pub use admission::{AdmissionView, DenialView};
pub use announce::Announcement;
pub use envelope::{Envelope, JobId, Message, SINGLE};
pub use in_hand::SHARERS;
pub use lead::Administration;
pub use lead_view::{FacilitiesView, HeldView, LockoutView, LossView, ShutdownView};
pub use missed::Missed;
pub use operator::{
    Answer, Ask, ConnectionView, CoreView, EndpointView, OwnCommand, PeerView, Request, SpanView, StateFilter, TransactionsView,
};
pub use outside::{Frames, Handled, Origin, Outside, Turn, Work};
pub use performance::PerformanceView;
pub use tally::Tally;
pub use verdicts::{Case, Verdicts};

use crate::proto::base::{AgentId, CoreId, Counter, Counters, EndpointRange, NameKey, Rng, Time};
use crate::proto::cac::asker::Asker;
use crate::proto::cac::share::Bank;
use crate::proto::cas::Lines;
use crate::proto::endpoint::{Endpoints, OwnedSpan, PoolLimits};
use crate::proto::h248::{self, Gateway};
use crate::proto::mgcp::Calls;
use crate::proto::overload::Detector;
use crate::proto::plan::{Plan, Settings};
use crate::proto::transaction::finals::Finals;
use crate::proto::transaction::history::History;
use crate::proto::transaction::outgoing::Outgoing;
use crate::proto::trunk::Card;
use admission::Admissions;
use announce::Announcements;
use datagrams::Datagrams;
use everywhere::Shares;
use found::Finds;
use handed::Handed;
use in_hand::InHand;
use jobs::Jobs;
use lead::Lead;
use orders::{Order, Orders};
use repeats::Repeats;
use reports::Reports;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use survey::Surveys;
use tally::Tallies;

/// What a core starts from.
pub struct Boot {
    /// Which core of the plan it is.
    pub core: CoreId,
    /// The plan, the same for all cores.
    pub plan: Arc<Plan>,
    /// Settings, the same for all cores.
    pub settings: Arc<Settings>,
    /// Where it counts.
    pub counters: Arc<Counters>,
    /// The card that carries its endpoints.
    pub card: Box<dyn Card + Send>,
    /// The cards of H.248 gateways that are on this core, as [`Plan::gateway_cards`] has them: whose, and the card.
    pub gateway_cards: Vec<(u8, Box<dyn Card + Send>)>,
    /// A seed that differs from core to core and from boot to boot.
    pub seed: u64,
    /// The time now.
    pub now: Time,
}

/// One core.
pub struct Core {
    id: CoreId,
    plan: Arc<Plan>,
    settings: Arc<Settings>,
    counters: Arc<Counters>,
    calls: Calls,
    names: NameKey,
    history: History,
    outgoing: Outgoing,
    finals: Finals,
    detector: Detector,
    datagrams: Datagrams,
    in_hand: InHand,
    handed: Handed,
    jobs: Jobs,
    shares: Shares,
    surveys: Surveys,
    announcements: Announcements,
    repeats: Repeats,
    finds: Finds,
    orders: Orders,
    reports: Reports,
    tallies: Tallies,
    admissions: Admissions,
    /// The H.248 gateways that this core runs.
    gateways: Vec<Gateway>,
    /// What it carries of others.
    parts: Vec<parts::Carried>,
    /// The restart coordinator, on the lead core.
    lead: Option<Box<Lead>>,
    /// Whether new calls are refused.
    draining: bool,
    /// The message handled last.
    handled: Option<Handled>,
    /// Messages nobody needs any more, given back before the call returns.
    finished: VecDeque<Message>,
    /// Envelopes to itself, delivered before the call returns.
    to_self: VecDeque<Envelope>,
    /// Envelopes that must arrive and found the ring full, in order.
    unsent: VecDeque<(CoreId, Envelope)>,
    /// To whom.
    unsent_to: CoreSet,
    /// When to try them again.
    unsent_retry: Time,
    /// A response that found no transmit frame is still written, to be remembered.
    scratch: Box<[u8]>,
}

impl Core {
    /// A core in the state after a restart. Sizes come from the plan; nothing is allocated per command afterwards.
    pub fn new(boot: Boot) -> Core {
        let Boot { core, plan, settings, counters, card, gateway_cards, seed, now } = boot;
        let mut rng = Rng::new(seed);
        let limits = plan.limits;
        let owned: Vec<OwnedSpan> = plan.owned_spans(core).collect();
        let pools = PoolLimits { connections: limits.connections, blob_blocks: limits.blob_blocks, entities: limits.entities };
        // What the core takes for its card runs the signalling of its channels on the real one.
        let channels = owned.iter().flat_map(|span| span.range.iter()).map(|endpoint| (endpoint, plan.signalling(endpoint)));
        let card = Box::new(Lines::new(card, channels, plan.times, now));
        let endpoints = Endpoints::new(&owned, pools, rng.fork("connections").next());
        let names = NameKey::new([rng.next(), rng.next()]);
        let timers = settings.transaction();
        let largest = settings.largest_response();
        let history = History::new(plan.limits.history(largest), timers.t_hist, settings.timers.transaction_limit, &mut rng);
        let ordinal = plan.ordinal(core).unwrap_or(0) as u32;
        let mut outgoing = Outgoing::new(now, &plan.limits.outgoing(ordinal, plan.owners.len() as u32), timers, rng.fork("own"));
        tell_agents(&mut outgoing, now, &settings);
        let finals = Finals::new(now, FINALS, timers, rng.fork("finals"));
        let (mut gateways, mut parts) = (Vec::new(), Vec::new());
        for (index, card) in gateway_cards {
            if plan.gateways.get(usize::from(index)).is_some_and(|gateway| gateway.core == core) {
                let (plan, settings, counters) = (plan.clone(), settings.clone(), counters.clone());
                let boot = h248::Boot { index, plan, settings, counters, card, rng: rng.fork("gateway"), now };
                gateways.extend(Gateway::new(boot));
            } else {
                parts.extend(parts::Carried::new(&plan, index, card, now));
            }
        }
        let detector = Detector::new(settings.overload);
        let lead = (plan.lead() == core).then(|| Box::new(Lead::new(&plan, &settings, rng.fork("restart"), now)));
        let in_cluster = plan.admission.as_ref().is_some_and(|admission| admission.cluster);
        let scopes = plan.admission.as_ref().map_or(0, |admission| admission.tree.len());
        let bank = (scopes > 0 && plan.lead() == core).then(|| Bank::new(&settings.admission, plan.owners.len()));
        let mut calls = Calls::new(now, endpoints, card, plan.clone(), settings.clone(), counters.clone());
        if let Some(desk) = &mut calls.desk {
            gateways.iter_mut().for_each(|gateway: &mut Gateway| gateway.set_first_slot(desk.grow(gateway.slots())));
            desk.asker = in_cluster.then(|| Asker::new(core.0, desk.slots(), scopes, limits.jobs));
        }
        Core {
            id: core,
            calls,
            names,
            history,
            outgoing,
            finals,
            detector,
            datagrams: Datagrams::new(limits.datagrams),
            handed: Handed::new(),
            in_hand: InHand::new(limits.datagrams, core, plan.cores),
            jobs: Jobs::new(limits.jobs, settings.load_control.marks()),
            shares: Shares::new(),
            surveys: Surveys::new(),
            announcements: Announcements::new(),
            repeats: Repeats::new(),
            finds: Finds::new(),
            orders: Orders::new(limits.slice),
            reports: Reports::new(plan.topology.len()),
            tallies: Tallies::new(),
            admissions: Admissions::new(bank, scopes),
            gateways,
            parts,
            lead,
            draining: false,
            handled: None,
            finished: VecDeque::with_capacity(64),
            to_self: VecDeque::with_capacity(64),
            unsent: VecDeque::new(),
            unsent_to: CoreSet::default(),
            unsent_retry: Time::NEVER,
            scratch: vec![0; usize::from(largest)].into(),
            plan,
            settings,
            counters,
        }
    }

    /// Which core this is.
    pub fn id(&self) -> CoreId {
        self.id
    }

    /// New settings, for what comes and for timers already running.
    pub fn set_settings(&mut self, now: Time, settings: Arc<Settings>) {
        let timers = settings.transaction();
        self.history.set_timers(timers.t_hist, settings.timers.transaction_limit);
        self.outgoing.set_timers(timers);
        tell_agents(&mut self.outgoing, now, &settings);
        self.jobs.set_marks(settings.load_control.marks());
        self.finals.set_timers(timers);
        self.detector.set_levels(settings.overload);
        if let Some(lead) = &mut self.lead {
            lead.set_settings(&self.plan, &self.settings, &settings, now);
        }
        if let Some(desk) = &mut self.calls.desk {
            desk.holder.set_limits(&settings.admission);
        }
        self.admissions.set_limits(&settings.admission);
        self.calls.settings = settings.clone();
        self.gateways.iter_mut().for_each(|gateway| gateway.set_settings(settings.clone()));
        self.settings = settings;
    }

    /// Agents whose names should be looked up again, by their bits; each is told once.
    pub fn take_lookups(&mut self) -> u64 {
        self.outgoing.take_lookups()
    }

    /// Of the time until `now` the core had work for `work`; see [`Detector::worked`].
    #[inline]
    pub fn note_work(&mut self, now: Time, work: Duration) {
        self.detector.worked(now, work);
    }

    /// Whether work goes on that is done slice by slice, and so whatever the time is.
    #[inline]
    pub fn has_slices(&self) -> bool {
        self.shares.working() || self.repeats.working() || !self.orders.is_done()
    }

    /// Everything that is due: deadlines, the card's indications, the next slice of work over many endpoints.
    pub fn handle_time<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        self.send_unsent(turn);
        self.tell_missed(turn);
        self.handle_orders(turn);
        self.handle_card(turn);
        self.handle_parts(turn);
        self.handle_gateways(turn);
        self.handle_jobs_due(turn);
        self.look_after_handed(turn);
        self.answer_questions(turn);
        self.answer_repeats(turn);
        self.make_found(turn);
        self.handle_events(turn);
        self.handle_own(turn);
        self.handle_shares(turn);
        self.handle_lead(turn);
        self.handle_admissions(turn.now);
        self.history.expire(turn.now, EXPIRE_PER_TURN);
        self.detector.rest(turn.now);
        self.deliver(turn);
    }

    /// When to call [`Core::handle_time`] at the latest; a time in the past while sliced work goes on.
    pub fn deadline(&self) -> Time {
        if self.has_slices() {
            return Time::ZERO;
        }
        let lead = self.lead.as_ref().map_or(Time::NEVER, |lead| lead.deadline());
        self.calls
            .card
            .deadline()
            .min(self.jobs.deadline())
            .min(self.handed.deadline())
            .min(self.outgoing.deadline())
            .min(self.calls.watches.deadline())
            .min(self.history.deadline())
            .min(lead)
            .min(self.finals.deadline())
            .min(self.repeats.deadline())
            .min(self.finds.deadline())
            .min(self.unsent_retry)
            .min(self.admissions.deadline())
            .min(self.gateways_deadline())
            .min(self.parts_deadline())
    }

    /// Whether so much waits for another core that what comes now had better wait in the sockets: take no datagrams in this turn.
    #[inline]
    pub fn is_pressed(&self, now: Time) -> bool {
        self.in_hand.is_pressed(now)
    }

    /// What became of the message handled last, once.
    #[inline]
    pub fn take_handled(&mut self) -> Option<Handled> {
        self.handled.take()
    }

    /// Something another core said.
    pub fn handle_envelope<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, from: CoreId, envelope: Envelope) {
        self.take(turn, from, envelope);
        self.deliver(turn);
    }

    /// Sends `envelope`, to this core itself as well.
    fn tell<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, to: CoreId, envelope: Envelope) -> bool {
        let sent = self.offer(turn, to, envelope);
        if !sent {
            self.counters.add(Counter::DroppedRingFull);
        }
        sent
    }

    /// The same for what is said again later when there is no room: nothing is dropped.
    fn offer<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, to: CoreId, envelope: Envelope) -> bool {
        if to == self.id {
            self.to_self.push_back(envelope);
            return true;
        }
        turn.out.forward(to, envelope)
    }

    /// Sends an envelope that must arrive: when the ring is full it is kept, with those after it to that core, and sent when there is room.
    fn must_tell<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, to: CoreId, envelope: Envelope) {
        if to == self.id {
            self.to_self.push_back(envelope);
        } else if self.unsent_to.contains(to) || !turn.out.forward(to, envelope) {
            self.unsent.push_back((to, envelope));
            self.unsent_to.insert(to);
            self.unsent_retry = self.unsent_retry.min(turn.now + UNSENT_RETRY);
        }
    }

    /// Orders `envelope` of every core that owns endpoints; on the lead core.
    fn tell_owners<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, envelope: Envelope) {
        for ordinal in 0..self.plan.owners.len() {
            let owner = self.plan.owner_at(ordinal);
            self.order_of(turn, owner, envelope);
        }
    }

    /// Orders `envelope` of every core; on the lead core.
    fn tell_all<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, envelope: Envelope) {
        for core in 0..self.plan.cores {
            self.order_of(turn, CoreId(core), envelope);
        }
    }

    /// Sends `envelope` to every other core that owns endpoints whose ring has room.
    fn tell_other_owners<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, envelope: Envelope) {
        for ordinal in 0..self.plan.owners.len() {
            let owner = self.plan.owner_at(ordinal);
            if owner != self.id {
                self.tell(turn, owner, envelope);
            }
        }
    }

    /// Tries again to send what found the rings full. Envelopes for other cores than a full one's overtake.
    fn send_unsent<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        self.unsent_retry = Time::NEVER;
        if self.unsent.is_empty() {
            return;
        }
        let mut full = CoreSet::default();
        self.unsent.retain(|&(to, envelope)| {
            let sent = !full.contains(to) && turn.out.forward(to, envelope);
            if !sent {
                full.insert(to);
            }
            !sent
        });
        self.unsent_to = full;
        self.calls.meetings.look_again();
        if !self.unsent.is_empty() {
            self.unsent_retry = turn.now + UNSENT_RETRY;
        }
    }

    /// Delivers what the core told itself, and hands out the next messages of datagrams whose message in hand is finished.
    fn deliver<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        loop {
            if let Some(message) = self.finished.pop_front() {
                self.give_back(turn, message);
            } else if let Some(envelope) = self.to_self.pop_front() {
                self.take(turn, self.id, envelope);
            } else if let Some(datagram) = self.datagrams.next_ready() {
                self.continue_datagram(turn, datagram);
            } else if !self.send_reports(turn) && !self.send_places(turn) && !self.send_meetings(turn) {
                return;
            }
        }
    }

    /// Never a part of [`Core::deliver`]: the room on the stack for all of this would be made ready for each command.
    #[inline(never)]
    fn take<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, from: CoreId, envelope: Envelope) {
        match envelope {
            Envelope::Message(message) => self.handle_message(turn, message),
            Envelope::Done { frame, datagram } => {
                self.in_hand.give_back(turn.now, from);
                self.handed.taken(frame);
                self.message_done(turn, frame, datagram);
            }
            Envelope::Prepare { job, message } => self.handle_prepare(turn, from, job, message),
            Envelope::Vote { job, refused } => self.handle_vote(turn, job, refused),
            Envelope::Decide { job, commit } => self.handle_decide(turn, from, job, commit),
            Envelope::Applied { job } => self.handle_applied(turn, job),
            Envelope::Try { job, message } => self.handle_try(turn, from, job, message),
            Envelope::TryFailed { job, refused } => self.handle_try_failed(turn, job, refused),
            Envelope::Key { endpoint, connection, local } => self.calls.endpoints.secrets.take_in(endpoint, connection, local.arrive()),
            Envelope::Made { job, created } => {
                self.handle_made(turn, job, created);
                self.calls.endpoints.secrets.let_out(created.endpoint, created.connection);
            }
            Envelope::Pair { job, message, first } => self.handle_pair(turn, (from, job, message), first),
            Envelope::FirstGranted { job, first } => self.first_granted(job, first),
            Envelope::Join { job, endpoint, connection, other, at } => {
                self.handle_join(turn, (from, job), endpoint, connection, (other, at));
            }
            Envelope::HalfGone(parting) => self.handle_half_gone(turn.now, parting),
            Envelope::Meet { endpoint, connection, other, at, answer } => self.handle_meet(turn, (endpoint, connection), other, at, answer),
            Envelope::TakeDown { endpoint, connection } => self.handle_take_down(turn, endpoint, connection),
            Envelope::Look { job, first, count, types } => {
                self.handle_look(turn, (from, job), EndpointRange { first, count: count.into() }, types);
            }
            Envelope::Seen { job, first, part } => self.handle_seen(turn, job, first, part),
            Envelope::Confirm { agent, low, high } => self.confirm_here(turn.now, agent, low, high),
            Envelope::Service { range, service } => self.order(turn, Order::Service(range, service)),
            Envelope::Anew { range, standing } => self.order(turn, Order::Anew(range, standing)),
            Envelope::Settle { states } => self.order(turn, Order::Settle(states)),
            Envelope::Settled { states } => self.lead_settled(turn, from, states),
            Envelope::Announce(announcement) => self.order(turn, Order::Announce(announcement)),
            Envelope::Announcing { key, range, until } => self.ask_announced(from, key, range, until),
            Envelope::Announced { key } => self.note_announced(turn, key),
            Envelope::Trigger { endpoint, source } => self.lead_trigger(turn, endpoint, source),
            Envelope::Unreachable { id, to } => self.note_unreachable(id, to),
            Envelope::EndedStream { gateway, peer } => self.note_ended_stream(turn.now, gateway, peer),
            Envelope::Unanswered { range } => self.lead_unanswered(turn.now, range),
            Envelope::Activity { endpoint } => self.lead_activity(turn.now, endpoint),
            Envelope::Disconnected { range } => self.order(turn, Order::Disconnected(range)),
            Envelope::Entity { range, agent, port } => self.lead_entity(turn, range, agent, port),
            Envelope::Calls { count } => self.lead_calls(turn, from, count),
            Envelope::Idle { range } => self.lead_idle(turn, range),
            Envelope::Lockout { range, on } => self.lead_lockout(turn.now, range, on),
            Envelope::Lost { span, count, reason } => self.lead_lost(span, count, reason),
            Envelope::Defect { facility, defect, on, at_once } => self.lead_defect(turn, facility, defect, on, at_once),
            Envelope::Violations { facility, violations } => self.lead_violations(turn, facility, violations),
            Envelope::NotifiedEntity { pattern, agent, port } => self.order(turn, Order::NotifiedEntity { pattern, agent, port }),
            Envelope::ToBank(message) => self.handle_to_bank(turn.now, from, message),
            Envelope::ToHolder(message) => self.handle_to_holder(turn, message),
            Envelope::PartOrder { gateway, order } => self.order_part(turn.now, gateway, order),
            Envelope::PartAnswer { gateway, overloaded, answer } => self.answer_gateway((gateway, from), overloaded, answer),
            Envelope::ServiceChange { gateway, restart } => self.announce_to_controller(turn, gateway, &restart),
            Envelope::Drain { on } => {
                self.draining = on;
                self.gateways.iter_mut().for_each(|gateway| gateway.set_draining(on));
                self.note_calls();
            }
        }
    }
}

/// Tells the table of our own commands what is known of the agents.
fn tell_agents(outgoing: &mut Outgoing, now: Time, settings: &Settings) {
    outgoing.set_pace(settings.load_control.pace);
    for (place, agent) in settings.agents.iter().enumerate().take(usize::from(u8::MAX) + 1) {
        outgoing.set_agent(now, AgentId(place as u8), &agent.notify, agent.resolved);
    }
}

/// Finals that can wait for their `000` at a time.
const FINALS: u32 = 1024;

/// How soon to try a full ring again.
const UNSENT_RETRY: Duration = Duration::from_millis(1);

/// A set of cores.
#[derive(Clone, Copy, Default)]
struct CoreSet([u64; 4]);

impl CoreSet {
    fn contains(&self, core: CoreId) -> bool {
        self.0[usize::from(core.0 / 64)] & (1 << (core.0 % 64)) != 0
    }

    fn insert(&mut self, core: CoreId) {
        self.0[usize::from(core.0 / 64)] |= 1 << (core.0 % 64);
    }
}

/// Remembered responses forgotten per turn at the most.
const EXPIRE_PER_TURN: usize = 256;
