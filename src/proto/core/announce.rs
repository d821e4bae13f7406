//! RestartInProgress commands that are out, as every core knows them: what stands in front of a response until they are answered
//! (RFC 3435 4.4.6, 4.4.7; G-RST-03, G-RST-05).

use super::jobs::{Owner, Wait};
use super::media::Covered;
use super::outside::{Frames, Outside, Turn};
use super::preface::Front;
use super::{Core, Envelope, JobId};
use crate::proto::base::{AgentId, Counter, EndpointIndex, EndpointRange, Time, TransactionId};
use crate::proto::codec::mgcp::Writer;
use crate::proto::endpoint::{Announcement as Told, EntityId, RestartMethod, Service};
use crate::proto::mgcp::{self, Outcome, Restart, delete, event};
use crate::proto::plan::{AgentSettings, Manners, Plan};
use crate::proto::trunk::{Selection, SpanIndex};
use std::net::IpAddr;
use std::time::Duration;

/// A RestartInProgress, and how far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Announcement {
    /// The lead core's number for it; used again after it ended.
    pub number: u32,
    /// Its transaction.
    pub transaction: TransactionId,
    /// What it says.
    pub restart: Restart,
    /// How far it is.
    pub stage: Stage,
}

/// How far a RestartInProgress is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Sent, not answered.
    Sent,
    /// Answered with success.
    Acknowledged,
    /// No longer to be put in front of anything.
    Withdrawn,
}

/// Those that are out, by number.
pub(super) struct Announcements {
    /// With the time at which this core heard of each.
    list: Vec<Option<(Announcement, Time)>>,
    any_sent: bool,
    /// When one was withdrawn last that went in front of responses.
    withdrawn: Option<Time>,
}

impl Announcements {
    pub fn new() -> Announcements {
        Announcements { list: Vec::new(), any_sent: false, withdrawn: None }
    }

    /// Whether there ever was one that goes in front.
    pub fn any_sent(&self) -> bool {
        self.any_sent
    }

    /// Whether one was withdrawn at that time or later that went in front of responses.
    pub fn withdrawn_since(&self, time: Time) -> bool {
        self.withdrawn.is_some_and(|withdrawn| withdrawn >= time)
    }

    /// The numbers of those that go in front of responses and name an endpoint that `meets` finds.
    pub fn about(&self, plan: &Plan, meets: impl Fn(&Selection) -> bool) -> impl Iterator<Item = u32> {
        let out = self.list.iter().flatten().filter(|(announcement, _)| goes_in_front(announcement.restart.method));
        let named = out.filter(move |(announcement, _)| meets(&announcement.restart.pattern.selection(&plan.topology)));
        named.map(|(announcement, _)| announcement.number)
    }

    /// Writes one: the length; `None` when it is not out or does not fit.
    pub fn write_alone(&self, plan: &Plan, number: u32, buffer: &mut [u8], manners: Manners) -> Option<usize> {
        let (announcement, _) = self.get(number)?;
        mgcp::write_restart(plan, buffer, announcement.transaction, &announcement.restart, manners)
    }

    /// Writes what goes in front of a response, each with the line that separates it from what follows: the length.
    pub fn write(&self, plan: &Plan, front: &Front, buffer: &mut [u8], manners: Manners) -> usize {
        let mut length = 0;
        for &number in front.numbers() {
            let rest = buffer.get_mut(length..).unwrap_or_default();
            length += self.write_separated(plan, number, rest, manners).unwrap_or(0);
        }
        length
    }

    fn write_separated(&self, plan: &Plan, number: u32, buffer: &mut [u8], manners: Manners) -> Option<usize> {
        let length = self.write_alone(plan, number, buffer, manners)?;
        let mut writer = Writer::new(buffer.get_mut(length..)?);
        writer.separator();
        Some(length + writer.finish()?)
    }

    /// One that is out, and since when.
    pub fn get(&self, number: u32) -> Option<(Announcement, Time)> {
        *self.list.get(number as usize)?
    }

    fn set(&mut self, now: Time, announcement: Announcement) {
        if goes_in_front(announcement.restart.method) {
            self.any_sent = true;
            self.withdrawn = if announcement.stage == Stage::Withdrawn { Some(now) } else { self.withdrawn };
        }
        let place = announcement.number as usize;
        if self.list.len() <= place {
            self.list.resize(place + 1, None);
        }
        if let Some(entry) = self.list.get_mut(place) {
            *entry = (announcement.stage == Stage::Sent).then_some((announcement, now));
        }
    }
}

/// Of these one must be the first that the agent sees of an endpoint; the others tell what an endpoint is about to do.
fn goes_in_front(method: RestartMethod) -> bool {
    begins_contact(method) || method == RestartMethod::Forced
}

/// Once it is answered the agent and the endpoint know of each other.
pub(super) fn begins_contact(method: RestartMethod) -> bool {
    matches!(method, RestartMethod::Restart | RestartMethod::Disconnected)
}

impl Core {
    /// A RestartInProgress is out, answered or withdrawn. True: endpoints of this core have to know. As long as some of them stand
    /// behind it, it can be put in front of a response.
    pub(super) fn begin_announcement(&mut self, now: Time, announcement: &Announcement) -> bool {
        let is_sent = announcement.stage == Stage::Sent;
        if is_sent {
            self.announcements.set(now, *announcement);
        }
        let method = announcement.restart.method;
        let concerns = goes_in_front(method) || method == RestartMethod::Graceful && is_sent;
        concerns && self.plan.ordinal(self.id).is_some()
    }

    pub(super) fn apply_announcement(&mut self, now: Time, announcement: &Announcement, endpoints: EndpointRange) {
        let (restart, stage) = (&announcement.restart, announcement.stage);
        if !goes_in_front(restart.method) {
            return self.note_leaving(now, restart, endpoints);
        }
        let told = match stage {
            Stage::Sent => Told::Outstanding(announcement.number),
            Stage::Acknowledged => Told::Done,
            Stage::Withdrawn => Told::Waiting,
        };
        let before = Told::Outstanding(announcement.number);
        let is_answered = told == Told::Done && begins_contact(restart.method);
        for endpoint in endpoints.iter() {
            let Some(state) = self.calls.endpoints.get_mut(endpoint) else { continue };
            // That it left service goes first only where the agent has not confirmed anything before.
            let is_first = begins_contact(restart.method) || !state.service.in_service && state.announcement != Told::Done;
            if state.announcement != before && !(stage == Stage::Sent && is_first) {
                continue;
            }
            state.announcement = told;
            state.disconnected &= told != Told::Done;
            if is_answered {
                event::in_contact(&mut self.calls, now, endpoint);
            }
        }
        if is_answered {
            self.release_deletes(now, endpoints);
        }
    }

    pub(super) fn end_announcement<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, announcement: &Announcement) {
        if announcement.stage != Stage::Sent {
            self.announcements.set(turn.now, *announcement);
        }
        if announcement.stage != Stage::Withdrawn && goes_in_front(announcement.restart.method) && self.plan.ordinal(self.id).is_some() {
            self.resume_announced(turn);
        }
    }

    /// What waited for endpoints to be announced looks again.
    pub(super) fn resume_announced<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        self.answer_repeats(turn);
        self.resume_waiting(turn);
        self.make_found(turn);
        self.shares.unblock();
        self.repeats.unblock();
    }

    /// Endpoints leave service: an audit says in how many seconds (G-AUE-10).
    fn note_leaving(&mut self, now: Time, restart: &Restart, endpoints: EndpointRange) {
        let leaves_at = (restart.delay_s > 0).then(|| now + Duration::from_secs(restart.delay_s.into()));
        for endpoint in endpoints.iter() {
            if let Some(state) = self.calls.endpoints.get_mut(endpoint) {
                state.leaves_at = leaves_at;
            }
        }
    }

    /// Commands that waited for a restart to be announced start over.
    fn resume_waiting<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        loop {
            let ready = |endpoint, old| match self.calls.endpoints.get(endpoint).map(|state| state.announcement) {
                Some(Told::Outstanding(number)) => self.announcements.get(number).is_none_or(|(new, _)| new.transaction != old),
                told => told == Some(Told::Done),
            };
            let waits = self.jobs.iter().filter(|(_, job)| matches!(job.wait, Wait::Restart(endpoint, old) if ready(endpoint, old)));
            // In the order in which they came.
            let Some((id, _)) = waits.min_by_key(|(id, job)| (job.received.origin.arrival, job.received.message.start, id.slot)) else {
                return;
            };
            self.start_over(turn, id);
        }
    }

    /// A command that waited for an announcement begins from the beginning.
    pub(super) fn start_over<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId) {
        let Some(job) = self.jobs.remove(id) else { return };
        let Owner::Here(handle) = job.owner else { return };
        let started = self.parsed(turn, job.received.message, |core, turn, command| {
            core.confirm(turn, job.received.message.agent, command);
            core.start(turn, job.received, handle, command, job.endpoint);
            Ok(())
        });
        if let Err(refused) = started {
            self.end(turn, &job, Outcome::Refused(refused));
        }
    }

    /// Asks the lead core to announce the restart of `endpoint`, or that it is disconnected, now; unless that is done or was just sent
    /// (G-RST-01, G-DIS-03).
    pub(super) fn trigger_restart<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        endpoint: EndpointIndex,
        source: Option<(AgentId, IpAddr)>,
    ) {
        let waiting = self.calls.endpoints.get(endpoint).is_some_and(|state| state.announcement == Told::Waiting);
        if waiting || self.replaceable(turn.now, endpoint).is_some() {
            // What anybody may send must not pile up before a stalled core: the next command asks again.
            self.tell(turn, self.plan.lead(), Envelope::Trigger { endpoint, source });
        }
    }

    /// From the lead core: the service state of endpoints. Going out of service ends their connections, with a DeleteConnection each
    /// when the agent wants that (G-RSI-04, G-DLX-06); coming back they are in the state after a restart, which is not announced yet.
    pub(super) fn apply_service<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, range: EndpointRange, service: Service) {
        self.apply_gateway_service(turn.now, range, service);
        let mut lost: Vec<(SpanIndex, u32)> = Vec::new();
        for endpoint in range.iter() {
            let Some(state) = self.calls.endpoints.get_mut(endpoint) else { continue };
            let before = std::mem::replace(&mut state.service, service);
            if before.in_service != service.in_service {
                self.calls.card.reset_line(turn.now, endpoint, service.in_service);
            }
            if before.in_service && !service.in_service {
                self.abort_at(turn, endpoint, Covered::Call(None));
                self.lose_held(turn.now, endpoint);
                // The RestartInProgress says that they are gone; an agent may want to be told of each as well.
                let told = |agent: &AgentSettings| agent.delete_on_failure;
                let count = self.take_connections(turn, endpoint, service.reason, told);
                if let (Some(span), true) = (self.plan.topology.span_of(endpoint), count > 0) {
                    match lost.last_mut() {
                        Some((last, sum)) if *last == span => *sum += count,
                        _ => lost.push((span, count)),
                    }
                }
                event::silence(&mut self.calls, turn.now, endpoint);
            }
            if !before.in_service && service.in_service {
                self.reset(turn, endpoint);
                if let Some(state) = self.calls.endpoints.get_mut(endpoint) {
                    (state.announcement, state.disconnected) = (Told::Waiting, false);
                }
            }
            self.calls.endpoints.refresh_idle(endpoint);
            self.note_idle(endpoint);
        }
        if !service.in_service {
            self.release_deletes(turn.now, range);
        }
        for (span, count) in lost {
            self.counters.add_many(Counter::ConnectionsLost, u64::from(count));
            self.note_lost(span, count, service.reason);
        }
        self.note_calls();
    }

    /// An operator clears an endpoint: what it does ends, and it is as after a restart. How many connections it had; the agent is
    /// told of each, because nothing else tells it (RFC 3435 2.3.8).
    pub(super) fn free<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, endpoint: EndpointIndex) -> u32 {
        if let Some(freed) = self.with_gateway(|gateway| gateway.has(endpoint), |gateway, _| gateway.free(turn.now, endpoint)) {
            self.counters.add_many(Counter::ConnectionsFreed, u64::from(freed));
            self.note_gateways();
            return freed;
        }
        self.abort_at(turn, endpoint, Covered::Call(None));
        let freed = self.take_connections(turn, endpoint, MANUAL_INTERVENTION, |_| true);
        self.counters.add_many(Counter::ConnectionsFreed, u64::from(freed));
        let in_service = self.calls.endpoints.get(endpoint).is_some_and(|state| state.service.in_service);
        self.calls.card.reset_line(turn.now, endpoint, in_service);
        self.reset(turn, endpoint);
        self.note_idle(endpoint);
        self.note_calls();
        freed
    }

    /// From the lead core: the answer to a restart named another notified entity (G-NET-12). Reported back: it counts also where a command
    /// that the lead core heard of since had named yet another.
    pub(super) fn apply_notified_entity(&mut self, range: EndpointRange, agent: AgentId, port: u16) {
        let settings = self.settings.clone();
        let Some(named) = settings.agent(agent) else { return };
        let text = named.entity_at(port);
        for endpoint in range.iter() {
            let endpoints = &mut self.calls.endpoints;
            if endpoints.owns(endpoint)
                && let Some(entity) = endpoints.entities.intern(&mut endpoints.blobs, text.as_bytes(), agent, port)
            {
                endpoints.set_entity(endpoint, entity);
            }
            self.report_entity(endpoint);
        }
        self.redirect_commands(range);
    }

    /// Back to the state after a restart. The lead core is told that the notified entity is the provisioned one again (G-RST-12).
    pub(super) fn reset<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, endpoint: EndpointIndex) {
        let named = self.calls.endpoints.get(endpoint).is_some_and(|state| state.entity != EntityId::PROVISIONED);
        self.lose_held(turn.now, endpoint);
        event::reset(&mut self.calls, turn.now, endpoint);
        self.calls.endpoints.reset(endpoint);
        if named {
            self.report_entity(endpoint);
        }
    }

    /// Takes all connections of an endpoint down, and tells its agent of each when it is to be told: how many there were.
    fn take_connections<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        endpoint: EndpointIndex,
        reason: u16,
        is_told: impl Fn(&AgentSettings) -> bool,
    ) -> u32 {
        let Some(state) = self.calls.endpoints.get(endpoint) else { return 0 };
        let mut taken = 0;
        for slot in state.connection_slots() {
            let Some(connection) = self.calls.endpoints.connections.get(slot).copied() else { continue };
            let report = delete::disconnect(&mut self.calls, turn.now, slot);
            if !connection.pending {
                taken += 1;
                self.send_delete(turn.now, &connection, &report, reason, &is_told);
            }
        }
        taken
    }
}

/// Reason code: manual intervention (RFC 3435 2.5).
const MANUAL_INTERVENTION: u16 = 904;
