//! The lead core's part: it hosts the restart coordinator, tells every core what that orders, and sends its RestartInProgress
//! commands.
//!
//! The coordinator knows agents as groups ([`super::groups`]).

use super::announce::{Announcement, Stage};
use super::groups::Groups;
use super::lead_view::{LockoutView, LossView, ShutdownView};
use super::missed::Missed;
use super::outside::{Frames, Outside, Turn};
use super::own::Purpose;
use super::settle::{Ordered, Settling, Verdict};
use super::{Core, Envelope};
use crate::proto::aggregate::EndpointSet;
use crate::proto::base::{AgentId, CoreId, Counter, EndpointIndex, EndpointRange, Rng, Time, TransactionId};
use crate::proto::codec::mgcp::NotifiedEntity;
use crate::proto::endpoint::Service;
use crate::proto::mgcp::{self, Restart};
use crate::proto::plan::{Plan, Settings};
use crate::proto::restart::{self, Action, Activity, AnnouncementState, AnnouncementView, BlockHow, Coordinator, Event, Handle, Outcome};
use crate::proto::transaction::outgoing;
use crate::proto::trunk::performance::Signal;
use crate::proto::trunk::{Defect, Facility, IntegrationTimes, Selection, SpanIndex, Violations};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// How long the answers to the last RestartInProgress are waited for at shutdown.
const SHUTDOWN_WAIT: std::time::Duration = std::time::Duration::from_secs(3);
/// RestartInProgress commands to one group that may be unanswered at a time.
pub(super) const OUTSTANDING: u16 = 32;
/// What a core without room answers for its gateway: processing overload (RFC 3435 2.4).
const BUSY: u16 = 409;
/// Orders of the coordinator carried out per turn, which come from a slice of endpoints.
const ACTIONS: usize = 256;

/// What an operator may have done to service states.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Administration {
    /// Out of service.
    Block(Selection, BlockHow),
    /// Back in service.
    Unblock(Selection),
    /// The gateway takes no new calls, or takes them again.
    Drain(bool),
    /// The process ends: forced is told at this time, or before.
    Shutdown(Time),
}

/// The restart coordinator and what belongs to it.
pub(super) struct Lead {
    coordinator: Coordinator,
    /// The groups of the coordinator.
    groups: Groups,
    /// RestartInProgress commands that are out, by the number cores know them by.
    out: Vec<Option<(Handle, u16, Announcement)>>,
    /// Which of them wait for owners of their endpoints.
    pub(super) settling: Settling,
    /// What other cores had no room for.
    pub(super) missed: Missed,
    /// Calls lost since operators asked last, by span and reason.
    losses: BTreeMap<(SpanIndex, u16), u32>,
    /// Endpoints whose far end holds the line after its call, and since when a span has some of them.
    lockouts: EndpointSet,
    lockouts_since: BTreeMap<SpanIndex, Time>,
    shutdown_complete: bool,
}

impl Lead {
    pub fn new(plan: &Plan, settings: &Settings, rng: Rng, now: Time) -> Lead {
        let mut coordinator = Coordinator::new(now, plan.topology.clone(), coordinator_settings(plan, settings), rng);
        let groups = Groups::new(settings.agents.len(), plan.gateways.len());
        for (span, provisioned) in plan.spans.iter().enumerate() {
            let group = match provisioned.gateway {
                Some(gateway) => groups.of_gateway(gateway),
                None => u16::from(provisioned.agent.0),
            };
            if group != 0 {
                coordinator.provision(SpanIndex(span as u16), group);
            }
            if provisioned.superframe {
                coordinator.measure_as(now, SpanIndex(span as u16), Signal::D4);
            }
        }
        let mut lead = Lead {
            coordinator,
            groups,
            out: Vec::new(),
            settling: Settling::new(plan),
            missed: Missed::new(plan),
            losses: BTreeMap::new(),
            lockouts: EndpointSet::new(plan.topology.len()),
            lockouts_since: BTreeMap::new(),
            shutdown_complete: false,
        };
        lead.tell_forms(settings, now);
        lead
    }

    pub fn set_settings(&mut self, plan: &Plan, before: &Settings, settings: &Settings, now: Time) {
        self.coordinator.set_settings(coordinator_settings(plan, settings));
        self.tell_forms(settings, now);
        let has_address = |settings: &Settings, agent| settings.agent(agent).is_some_and(|agent| !agent.notify.is_empty());
        for (group, agent) in self.groups.agents() {
            if has_address(settings, agent) && !has_address(before, agent) {
                self.coordinator.handle(now, Event::Found { group });
            }
        }
    }

    pub fn deadline(&self) -> Time {
        self.coordinator.deadline().min(self.settling.deadline())
    }

    /// How many of these endpoints are locked out.
    fn lockouts_on(&self, range: EndpointRange) -> u32 {
        range.iter().filter(|&endpoint| self.lockouts.contains(endpoint)).count() as u32
    }

    /// The spans with endpoints that are locked out.
    pub fn lockouts<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = LockoutView> + 'a {
        self.lockouts_since.iter().map(|(&span, &since)| {
            let range = plan.topology.endpoints_of(Facility::Span(span));
            LockoutView { span, locked: self.lockouts_on(range), endpoints: range.count, since }
        })
    }

    pub fn coordinator(&self) -> &Coordinator {
        &self.coordinator
    }

    pub fn coordinator_mut(&mut self) -> &mut Coordinator {
        &mut self.coordinator
    }

    /// How far the shutdown is.
    pub fn shutdown_view(&self) -> ShutdownView {
        let untold = self.shutdown_complete.then(|| self.of_groups(|view| view.state != AnnouncementState::Confirmed));
        let begun = self.coordinator.is_shutting_down();
        ShutdownView { begun, complete: self.shutdown_complete, untold: untold.unwrap_or_default() }
    }

    /// Calls lost since this was asked last.
    pub fn take_losses(&mut self) -> Vec<LossView> {
        let losses = std::mem::take(&mut self.losses).into_iter();
        losses.map(|((span, reason), connections)| LossView { span, reason, connections }).collect()
    }

    /// Agents and ports that leave RestartInProgress commands without an answer, and are still to be told something.
    pub fn unanswering(&self) -> Vec<(AgentId, u16, Time)> {
        let open = |view: &AnnouncementView| matches!(view.state, AnnouncementState::Waiting(_) | AnnouncementState::Outstanding);
        let since = |(agent, port)| Some((agent, port, self.groups.unanswering(self.groups.number((agent, port))?)?));
        if !self.groups.is_any_unanswering() {
            return Vec::new();
        }
        self.of_groups(open).into_iter().filter_map(since).collect()
    }

    /// The agents and ports of announcements like this, each once.
    fn of_groups(&self, wanted: impl Fn(&AnnouncementView) -> bool) -> Vec<(AgentId, u16)> {
        let mut list: Vec<_> = self.coordinator.announcements().filter(wanted).map(|view| self.group_entity(view.group)).collect();
        list.sort_unstable();
        list.dedup();
        list
    }

    /// A command of these endpoints was not answered.
    pub fn note_unanswered(&mut self, now: Time, endpoints: EndpointRange) {
        let mut last = None;
        for endpoint in endpoints.iter() {
            let group = self.coordinator.group(endpoint);
            if last != Some(group) {
                self.groups.note_answer(group, Some(now));
                last = Some(group);
            }
        }
    }

    /// The agent and port of a group.
    pub fn group_entity(&self, group: u16) -> (AgentId, u16) {
        self.groups.entity(group)
    }

    #[cfg(test)]
    pub(super) fn groups(&self) -> &Groups {
        &self.groups
    }

    fn tell_forms(&mut self, settings: &Settings, now: Time) {
        for (group, agent) in self.groups.agents() {
            if let Some(agent) = settings.agent(agent) {
                self.coordinator.handle(now, Event::Forms { group, forms: agent.forms });
            }
        }
    }

    /// The number of the group that is `port` of `agent`; a new one when there is none. The port that the provisioned addresses have
    /// makes no other group of it.
    fn group(&mut self, settings: &Settings, now: Time, agent: AgentId, port: u16) -> u16 {
        let provisioned = settings.agent(agent).is_some_and(|agent| agent.notify.iter().all(|address| address.port() == port));
        let port = if provisioned { 0 } else { port };
        if let Some(known) = self.groups.number((agent, port)) {
            return known;
        }
        if self.groups.is_to_be_cleared() && self.coordinator.is_at_rest() {
            let mut used = self.coordinator.groups_in_use();
            used.extend(self.out.iter().flatten().map(|(_, group, _)| *group));
            self.groups.keep(&used);
        }
        let Some(group) = self.groups.make((agent, port)) else { return u16::from(agent.0) };
        self.coordinator.renew_group(group);
        if let Some(agent) = settings.agent(agent) {
            self.coordinator.handle(now, Event::Forms { group, forms: agent.forms });
        }
        group
    }

    /// The transaction of an announcement that is out.
    pub fn transaction_of(&self, handle: Handle) -> Option<TransactionId> {
        self.out.iter().flatten().find(|(known, ..)| *known == handle).map(|(.., announcement)| announcement.transaction)
    }

    /// The numbers of RestartInProgress commands that are out.
    #[cfg(test)]
    pub(super) fn out_numbers(&self) -> Vec<u32> {
        (0..self.out.len() as u32).filter(|&number| self.announcement(number).is_some()).collect()
    }

    /// The next RestartInProgress that waits for no owner, when the coordinator has no work left.
    fn next_settled(&mut self, now: Time) -> Option<Ordered> {
        if self.coordinator.deadline() <= now { None } else { self.settling.next_settled() }
    }

    /// The announcement of this number, when it is out.
    pub(super) fn announcement(&self, number: u32) -> Option<Announcement> {
        self.out.get(number as usize)?.map(|(.., announcement)| announcement)
    }

    pub(super) fn number_of(&self, handle: Handle) -> Option<u32> {
        self.out.iter().position(|out| out.as_ref().is_some_and(|(known, ..)| *known == handle)).map(|number| number as u32)
    }
}

fn coordinator_settings(plan: &Plan, settings: &Settings) -> restart::Settings {
    let timers = &settings.timers;
    let defaults = restart::Settings::for_gateway(&plan.topology);
    restart::Settings {
        power_on_wait_max: timers.max_waiting_delay.unwrap_or(defaults.power_on_wait_max),
        merge: timers.alarm_merge,
        disconnected_initial: timers.disconnected_initial,
        disconnected_min: timers.disconnected_min,
        disconnected_max: timers.disconnected_max,
        shutdown_wait: SHUTDOWN_WAIT,
        outstanding_max: OUTSTANDING,
        slice: plan.limits.slice,
        integration: IntegrationTimes { declare: timers.alarm_declare, clear: timers.alarm_clear, ..defaults.integration },
        ..defaults
    }
}

impl Core {
    /// Tells the coordinator something, on the lead core.
    pub(super) fn lead_event(&mut self, now: Time, event: Event) {
        if let Some(lead) = &mut self.lead {
            lead.coordinator.handle(now, event);
        }
    }

    /// Carries out what the coordinator orders.
    pub(super) fn handle_lead<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        while let Some(ordered) = self.lead.as_mut().and_then(|lead| lead.settling.next_overdue(turn.now)) {
            self.counters.add(Counter::RestartsUnconfirmed);
            self.send_restart(turn, ordered);
        }
        self.carry_out(turn);
        // What owners reported before they confirmed may redirect it: it goes when that is worked in.
        while let Some(ordered) = self.lead.as_mut().and_then(|lead| lead.next_settled(turn.now)) {
            self.send_restart(turn, ordered);
        }
    }

    fn carry_out<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        let mut budget = self.plan.limits.slice.max(1);
        for _ in 0..ACTIONS {
            let Some(action) = self.lead.as_mut().and_then(|lead| lead.coordinator.poll_within(turn.now, &mut budget)) else { return };
            match action {
                Action::Service(service) => {
                    let restart::Service { endpoints: range, in_service, method, reason, return_code: refusal } = service;
                    let service = Service { in_service, refusal, method, reason };
                    if let Some(lead) = &mut self.lead {
                        lead.settling.told(&self.plan, range);
                    }
                    self.tell_owners(turn, Envelope::Service { range, service });
                }
                Action::SendRsip { handle, group, pattern, method, delay_s, reason } => {
                    let restart = Restart { pattern, method, delay_s, reason };
                    self.order_restart(turn, Ordered { handle, group, restart });
                }
                Action::Cancel { handle } => self.withdraw(turn, handle, true),
                Action::Announced { handle, confirmed: true, .. } => self.conclude(turn, handle, Stage::Acknowledged),
                // The command itself says the rest.
                Action::Announced { confirmed: false, .. } => {}
                Action::NotifiedEntity { pattern, group } => {
                    let (agent, port) = self.lead.as_ref().map_or((AgentId(0), 0), |lead| lead.group_entity(group));
                    self.tell_owners(turn, Envelope::NotifiedEntity { pattern, agent, port });
                }
                Action::Disconnected { endpoints: range } => self.tell_owners(turn, Envelope::Disconnected { range }),
                Action::Redirect { handle, group } => self.redirect_restart(handle, group),
                Action::ShutdownComplete => {
                    if let Some(lead) = &mut self.lead {
                        lead.shutdown_complete = true;
                    }
                }
            }
        }
    }

    /// Sends a RestartInProgress, or holds it back until the owners of its endpoints confirm that it is true.
    fn order_restart<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, ordered: Ordered) {
        // Before commands that are held until their restart is announced give up.
        let until = turn.now + self.settings.timers.vote / 2;
        let Some(lead) = &mut self.lead else { return };
        match lead.settling.order(&self.plan, ordered, until) {
            Verdict::Send(confirmed) => {
                if !confirmed {
                    self.counters.add(Counter::RestartsUnconfirmed);
                }
                self.send_restart(turn, ordered);
            }
            Verdict::Wait(ask) => {
                for (owner, states) in ask {
                    self.order_of(turn, owner, Envelope::Settle { states });
                }
            }
        }
    }

    /// An owner has applied so many service states.
    pub(super) fn lead_settled<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, from: CoreId, states: u64) {
        if let Some(lead) = &mut self.lead {
            lead.settling.confirmed(from, states);
        }
        self.handle_lead(turn);
        // The first copy goes out now: what waits for it is answered with it in front.
        self.handle_own(turn);
    }

    fn send_restart<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, ordered: Ordered) {
        let Ordered { handle, group, restart } = ordered;
        let now = turn.now;
        let Some(lead) = &mut self.lead else { return };
        let gateway = lead.groups.gateway(group);
        if let Some((gateway, core)) = gateway.and_then(|place| Some((place, self.plan.gateways.get(usize::from(place))?.core))) {
            // The gateway answers for its controller, and tells it by a service change when one is in charge.
            let outcome = match self.offer(turn, core, Envelope::ServiceChange { gateway, restart }) {
                true => Outcome::Success(None),
                // Its core has no room: it is said again, as to an agent that is too busy.
                false => Outcome::Transient(BUSY),
            };
            return self.lead_event(now, Event::Outcome { handle, outcome });
        }
        let Some(lead) = &mut self.lead else { return };
        let number = match lead.out.iter().position(Option::is_none) {
            Some(free) => free,
            None => {
                lead.out.push(None);
                lead.out.len() - 1
            }
        };
        let (agent, port) = lead.group_entity(group);
        let (agent, addresses, count) = self.addresses(agent, port);
        let addresses = addresses.get(..count).unwrap_or_default();
        let (plan, manners) = (&self.plan, self.settings.manners(agent));
        let write = |id, buffer: &mut [u8]| mgcp::write_restart(plan, buffer, id, &restart, manners);
        match self.outgoing.send(now, agent, addresses, Purpose::Restart(number as u32).pack(), write) {
            Ok(transaction) => {
                self.counters.add(Counter::RestartsSent);
                let announcement = Announcement { number: number as u32, transaction, restart, stage: Stage::Sent };
                if let Some(lead) = &mut self.lead
                    && let Some(place) = lead.out.get_mut(number)
                {
                    *place = Some((handle, group, announcement));
                }
                self.tell_all(turn, Envelope::Announce(announcement));
            }
            Err(_) => {
                // No room, or an agent without an address: as if nobody had answered, so that it is tried again in time.
                self.counters.add(Counter::OwnFull);
                self.lead_event(now, Event::Outcome { handle, outcome: Outcome::Unanswered });
            }
        }
    }

    /// A RestartInProgress is no longer true, or is over without success: it is put in front of nothing any more.
    fn withdraw<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, handle: Handle, cancel: bool) {
        if cancel && let Some(lead) = &mut self.lead {
            lead.settling.cancel(handle);
            let found = lead.out.iter().flatten().find(|(known, ..)| *known == handle);
            if let Some((.., announcement)) = found {
                self.outgoing.cancel(turn.now, announcement.transaction);
            }
        }
        self.conclude(turn, handle, Stage::Withdrawn);
    }

    fn conclude<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, handle: Handle, stage: Stage) {
        let Some(lead) = &mut self.lead else { return };
        let Some(number) = lead.number_of(handle) else { return };
        if let Some((.., announcement)) = lead.out.get_mut(number as usize).and_then(Option::take) {
            self.tell_all(turn, Envelope::Announce(Announcement { stage, ..announcement }));
        }
    }

    /// The agent answered a RestartInProgress.
    pub(super) fn restart_answered<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        number: u32,
        outcome: outgoing::Outcome,
        code: u16,
        entity: Option<NotifiedEntity<'_>>,
    ) {
        let settings = self.settings.clone();
        let named = entity.map(|entity| settings.agent_named(&entity).map(|agent| (agent, entity.port)));
        if named == Some(None) {
            self.counters.add(Counter::RedirectRefused);
        }
        let Some(lead) = &mut self.lead else { return };
        let Some(&Some((handle, told, _))) = lead.out.get(number as usize) else { return };
        lead.groups.note_answer(told, None);
        let group = named.flatten().map(|(agent, port)| lead.group(&settings, turn.now, agent, port));
        let outcome = match (outcome, group) {
            (outgoing::Outcome::Success, group) => Outcome::Success(group),
            (outgoing::Outcome::Redirected, Some(group)) => Outcome::Redirect(group),
            (outgoing::Outcome::Transient, _) => Outcome::Transient(code),
            (outgoing::Outcome::Redirected | outgoing::Outcome::Permanent, _) => Outcome::Permanent(code),
        };
        if !matches!(outcome, Outcome::Success(_)) {
            self.counters.add(Counter::RestartsRefused);
            self.withdraw(turn, handle, false);
        }
        self.lead_event(turn.now, Event::Outcome { handle, outcome });
    }

    /// No address of the agent answered a RestartInProgress.
    pub(super) fn restart_unanswered<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, number: u32) {
        let out = self.lead.as_ref().and_then(|lead| *lead.out.get(number as usize)?);
        if let Some((handle, group, _)) = out {
            if let Some(lead) = &mut self.lead {
                lead.groups.note_answer(group, Some(turn.now));
            }
            self.withdraw(turn, handle, false);
            self.lead_event(turn.now, Event::Outcome { handle, outcome: Outcome::Unanswered });
        }
    }

    pub(super) fn lead_trigger<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        endpoint: EndpointIndex,
        source: Option<(AgentId, IpAddr)>,
    ) {
        if let Some((agent, from)) = source {
            self.outgoing.heard(agent, from);
        }
        self.lead_event(turn.now, Event::Trigger { endpoint, activity: Activity::Command });
        self.handle_lead(turn);
        // As in `lead_settled`, when nobody had to be waited for.
        self.handle_own(turn);
    }

    pub(super) fn lead_entity<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        range: EndpointRange,
        agent: AgentId,
        port: u16,
    ) {
        let settings = self.settings.clone();
        let Some(lead) = &mut self.lead else { return };
        let group = lead.group(&settings, turn.now, agent, port);
        self.lead_event(turn.now, Event::Group { endpoints: range, group });
    }

    pub(super) fn lead_calls<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, from: CoreId, count: u32) {
        self.lead_event(turn.now, Event::Calls { core: from, up: count });
    }

    pub(super) fn lead_idle<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, range: EndpointRange) {
        self.lead_event(turn.now, Event::Idle { endpoints: range });
    }

    pub(super) fn lead_defect<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        facility: Facility,
        defect: Defect,
        on: bool,
        skip_integration: bool,
    ) {
        self.lead_event(turn.now, Event::Defect { facility, defect, on, skip_integration });
    }

    pub(super) fn lead_violations<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, facility: Facility, violations: Violations) {
        self.lead_event(turn.now, Event::Violations { facility, violations });
    }

    /// Connections were lost on a span.
    pub(super) fn lead_lost(&mut self, span: SpanIndex, count: u32, reason: u16) {
        if let Some(lead) = &mut self.lead {
            *lead.losses.entry((span, reason)).or_default() += count;
        }
    }

    /// Far ends hold these lines off-hook though their calls are over, or do so no more.
    pub(super) fn lead_lockout(&mut self, now: Time, range: EndpointRange, on: bool) {
        let topology = &self.plan.topology;
        let Some(lead) = &mut self.lead else { return };
        if on {
            lead.lockouts.insert_range(range);
        } else {
            lead.lockouts.remove_range(range);
        }
        let mut spans: Vec<SpanIndex> = range.iter().filter_map(|endpoint| topology.span_of(endpoint)).collect();
        spans.dedup();
        for span in spans {
            if lead.lockouts_on(topology.endpoints_of(Facility::Span(span))) == 0 {
                lead.lockouts_since.remove(&span);
            } else {
                lead.lockouts_since.entry(span).or_insert(now);
            }
        }
    }

    /// An operator's order about service states; only the lead core takes it.
    pub(super) fn administer<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, order: Administration) {
        let event = match order {
            Administration::Block(selection, how) => Event::Block { selection, how },
            Administration::Unblock(selection) => Event::Unblock { selection },
            Administration::Drain(true) => Event::Drain,
            Administration::Drain(false) => Event::Undrain,
            Administration::Shutdown(until) => return self.shut_down(turn, until),
        };
        self.lead_event(turn.now, event);
        if let Administration::Drain(on) = order {
            self.tell_owners(turn, Envelope::Drain { on });
        }
    }

    /// The process ends. A second order changes nothing: who gives it may not know of the first.
    fn shut_down<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, until: Time) {
        if self.lead.as_ref().is_none_or(|lead| lead.coordinator.is_shutting_down()) {
            return;
        }
        // Until a core has told how many calls it has, it may have one: the grace must not end before the first report.
        for &core in &self.plan.clone().owners {
            self.lead_calls(turn, core, 1);
        }
        self.lead_event(turn.now, Event::Shutdown { until });
        self.tell_owners(turn, Envelope::Drain { on: true });
    }
}
