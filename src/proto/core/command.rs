//! A command at its home core: seen before, allowed in, parsed, executed (design section 3, steps 4 to 7; table M-10).

use super::Core;
use super::envelope::{Envelope, JobId, Message};
use super::jobs::{Job, Owner, Wait};
use super::outside::{Frames, Outside, Turn};
use super::preface::Preface;
use super::receive::{Received, local_of};
use super::respond::{Final, Way};
use crate::proto::base::{AgentId, Counter, EndpointIndex, Time, TransactionId};
use crate::proto::codec::mgcp::{Code, Command, CommandLine, EndpointName, Verb};
use crate::proto::codec::scan;
use crate::proto::endpoint::{Announcement as Told, EntityId};
use crate::proto::mgcp::event::Carrier;
use crate::proto::mgcp::{self, Outcome, Refused, refused};
use crate::proto::plan::Plan;
use crate::proto::transaction::history::{self, CONFIRM_BUDGET, Class, Confirm, Seen, Start};
use crate::proto::trunk::Selection;
use std::time::Duration;

/// Ranges in one `K:` that are looked at; the rest is ignored (the responses expire by themselves).
const CONFIRM_RANGES: usize = 8;

/// A command that waited for longer may be a repeat of one that is forgotten: T-HIST is at least so much longer than T-MAX, in which agents
/// repeat (RFC 3435 4.3).
const WAIT_MAX: Duration = Duration::from_secs(10);

/// What became of a command for now.
pub(super) enum Step {
    /// It is finished: this is the response.
    Done(Outcome),
    /// An audit: the response is written from the command.
    Audit(EndpointIndex),
    /// It waits in the table of jobs, which will finish the message.
    Waiting,
}

/// What a name in a command means.
enum Target {
    One(EndpointIndex),
    Many(Selection),
}

impl Core {
    pub(super) fn handle_command<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        bytes: &[u8],
        line: &CommandLine<'_>,
    ) {
        let Received { message, .. } = received;
        let CommandLine { verb, id, endpoint: name, .. } = *line;
        let agent = message.agent;
        if turn.now.since(received.origin.arrival) >= WAIT_MAX {
            self.counters.add(Counter::CommandsLate);
            return self.finish(message);
        }
        self.tallies.of(agent).heard = Some(turn.now);
        let (same_content, room) =
            self.settings.agent(agent).map_or((false, mgcp::SMALLEST_MAX_RESPONSE), |agent| (agent.same_content, agent.max_response));
        let content = same_content.then(|| self.names.exact(bytes));
        let known = history::Command { id, name: self.names.fold(name), content };
        let superseded = match self.history.lookup_arrived(turn.now, received.origin.arrival, &known) {
            Seen::New { superseded, reused } => {
                if reused {
                    self.counters.add(Counter::CommandsReused);
                }
                superseded
            }
            Seen::Running(handle) => {
                self.counters.add(Counter::CommandsRepeatedRunning);
                let preface = self.preface(verb, line.local(), None, 100);
                self.respond_provisional(turn, received, handle, id, preface);
                return self.finish(message);
            }
            Seen::Finished { handle, body } => {
                self.counters.add(Counter::CommandsRepeated);
                let preface = self.preface(verb, line.local(), chosen_in(&self.plan, line.local(), body), leading_code(body));
                if self.hold_repeat(turn, received, handle, preface) {
                    return;
                }
                self.respond_again(turn, Way::back(&received), handle, preface);
                return self.finish(message);
            }
            Seen::Confirmed => {
                self.counters.add(Counter::CommandsRepeatedConfirmed);
                return self.finish(message);
            }
        };
        if let Some(handle) = superseded {
            self.abort_transaction(turn, handle);
        }
        let endpoint = self.plan.topology.lookup(line.local());
        if endpoint.is_none() && self.was_refused(turn, received, line, bytes) {
            return;
        }
        // While the agent has not been told of the endpoint the restart comes first, overloaded or not.
        if verb == Some(Verb::Crcx) && self.detector.refuse_new() && !self.waits_for_restart(name) {
            self.counters.add(Counter::OverloadRefused);
            return self.refuse_unremembered(turn, received, (verb, id, name), mgcp::OVERLOADED);
        }
        let class = if verb == Some(Verb::Dlcx) { Class::Release } else { Class::Ordinary };
        let Ok(handle) = self.history.begin(turn.now, &Start { command: known, agent, class, room: room as u16 }) else {
            self.counters.add(Counter::HistoryFull);
            return self.refuse_unremembered(turn, received, (verb, id, name), mgcp::HISTORY_FULL);
        };
        self.counters.add(Counter::CommandsNew);
        if self.restart_first(turn, received, handle, (verb, id), endpoint) {
            return;
        }
        // What is the name of an endpoint need not be looked at letter by letter.
        let known = endpoint.and_then(|_| mgcp::own_name(&self.plan, line));
        match Command::parse_behind(line, known, bytes) {
            Ok(command) if !self.settings.manners(agent).takes_profile(command.profile) => {
                let outcome = Outcome::Refused(mgcp::PROFILE_UNSUPPORTED);
                let preface = self.preface(verb, line.local(), endpoint, outcome.code());
                self.respond(turn, Final { received: &received, handle: Some(handle), id, preface, outcome: &outcome });
                self.finish(message);
            }
            Ok(command) => {
                self.confirm(turn, agent, &command);
                self.start(turn, received, handle, &command, endpoint);
            }
            Err(refusal) => {
                // Of an endpoint that is out of service nothing else may come before that is told (G-RST-03).
                let out = endpoint
                    .filter(|_| !matches!(verb, Some(Verb::Auep | Verb::Aucx)))
                    .and_then(|endpoint| mgcp::in_service(&self.calls, endpoint).err());
                let outcome = Outcome::Refused(out.unwrap_or(refused(refusal)));
                let preface = self.preface(verb, line.local(), endpoint, outcome.code());
                self.respond(turn, Final { received: &received, handle: Some(handle), id, preface, outcome: &outcome });
                self.finish(message);
            }
        }
    }

    /// Executes a command that is noted as running, from its beginning. `endpoint`: the one its name is of, if it is one's.
    pub(super) fn start<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        handle: history::Handle,
        command: &Command<'_>,
        endpoint: Option<EndpointIndex>,
    ) {
        self.calls.manners = self.settings.manners(received.message.agent);
        let step = self.execute(turn, received, handle, command, endpoint).unwrap_or_else(|refused| Step::Done(Outcome::Refused(refused)));
        let id = command.id;
        match step {
            Step::Waiting => return,
            Step::Done(outcome) => {
                self.count(command.verb, &outcome);
                let preface = self.preface(Some(command.verb), command.endpoint.local, endpoint, outcome.code());
                self.respond(turn, Final { received: &received, handle: Some(handle), id, preface, outcome: &outcome });
            }
            Step::Audit(endpoint) => {
                let now = turn.now;
                let fitted = self.respond_with(turn, &received, Some(handle), id, Preface::None, |writer, calls| {
                    mgcp::write_audit(calls, now, writer, command, endpoint);
                });
                self.count_final(received.message.agent, 200, fitted);
                self.counters.add(if command.verb == Verb::Auep { Counter::AuepDone } else { Counter::AucxDone });
            }
        }
        self.finish(received.message);
    }

    fn execute<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        handle: history::Handle,
        command: &Command<'_>,
        endpoint: Option<EndpointIndex>,
    ) -> Result<Step, Refused> {
        let verb = command.verb;
        let audit = matches!(verb, Verb::Auep | Verb::Aucx);
        let domain = mgcp::domain_of(&self.plan, &command.endpoint)?;
        let target = self.target(received.message.agent, &command.endpoint, endpoint)?;
        mgcp::packages_supported(command)?;
        let endpoint = match target {
            Target::One(endpoint) => endpoint,
            Target::Many(selection) => return self.execute_many(turn, received, handle, command, selection),
        };
        if audit {
            if verb == Verb::Aucx {
                mgcp::audit_connection::validate(&self.calls, command, endpoint)?;
            }
            // An audit is answered plainly and starts the restart all the same (O-5, G-AUE-16).
            self.trigger_restart(turn, endpoint, received.source());
            if mgcp::bulk::is_asked(command) {
                let selection = self.plan.topology.selection_of(endpoint).ok_or(mgcp::ENDPOINT_UNKNOWN)?;
                return self.audit_in_bulk(turn, received, handle, command, selection);
            }
            return Ok(Step::Audit(endpoint));
        }
        if self.draining && verb == Verb::Crcx {
            self.counters.add(Counter::DrainRefused);
            return Err(mgcp::DRAINING);
        }
        mgcp::in_service(&self.calls, endpoint)?;
        if command.get(Code::X).is_some() {
            self.abort_requests(turn, endpoint);
        }
        let outcome = match verb {
            Verb::Crcx => return self.create(turn, received, handle, command, (endpoint, domain)),
            Verb::Mdcx => return self.modify(turn, received, handle, command, (endpoint, domain)),
            Verb::Dlcx => self.delete(turn, command, endpoint)?,
            Verb::Epcf => {
                let plan = mgcp::configure::validate(&self.calls, command)?;
                mgcp::configure::apply(&mut self.calls, endpoint, plan);
                Outcome::Done
            }
            Verb::Rqnt => {
                let plan = mgcp::request::validate(&self.calls, command, endpoint, Carrier::None)?;
                self.apply_request(turn, endpoint, &plan, command);
                Outcome::Done
            }
            Verb::Auep | Verb::Aucx | Verb::Ntfy | Verb::Rsip | Verb::Mesg => return Err(mgcp::VERB_UNKNOWN),
        };
        self.note_success(received, endpoint, domain);
        Ok(Step::Done(outcome))
    }

    fn execute_many<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        handle: history::Handle,
        command: &Command<'_>,
        selection: Selection,
    ) -> Result<Step, Refused> {
        // Table M-3: which verb may name many.
        match (command.verb, selection.any_of()) {
            (Verb::Auep, false) if mgcp::bulk::is_asked(command) => self.audit_in_bulk(turn, received, handle, command, selection),
            (Verb::Auep, false) => Ok(self.audit_many(turn, received, handle, command, selection)),
            (Verb::Epcf | Verb::Rqnt | Verb::Dlcx, false) => {
                if command.verb == Verb::Dlcx {
                    mgcp::delete::validate_many(command)?;
                }
                self.start_everywhere(turn, received, handle, command)
            }
            (Verb::Crcx, true) if !selection.all_of() => {
                if self.draining {
                    self.counters.add(Counter::DrainRefused);
                    return Err(mgcp::DRAINING);
                }
                self.start_search(turn, received, handle, command)
            }
            (Verb::Epcf | Verb::Crcx | Verb::Mdcx | Verb::Dlcx | Verb::Rqnt | Verb::Auep | Verb::Aucx, true) => Err(mgcp::ANY_OF_REFUSED),
            (Verb::Crcx | Verb::Mdcx | Verb::Aucx, false) => Err(mgcp::ALL_OF_REFUSED),
            (Verb::Ntfy | Verb::Rsip | Verb::Mesg, _) => Err(mgcp::VERB_UNKNOWN),
        }
    }

    /// AuditEndpoint over many: the names are known to every core (G-AUE-01).
    fn audit_many<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        handle: history::Handle,
        command: &Command<'_>,
        selection: Selection,
    ) -> Step {
        let fitted = self.respond_with(turn, &received, Some(handle), command.id, Preface::None, |writer, calls| {
            mgcp::audit_endpoint::write_names(calls, writer, command, &selection);
        });
        self.count_final(received.message.agent, 200, fitted);
        self.counters.add(Counter::AuepDone);
        self.finish(received.message);
        Step::Waiting
    }

    /// The endpoint or endpoints that `name`, whose domain is one of ours, means: 500 when there is none (G-EPN-10). `endpoint`: the one it is the name of.
    fn target(&self, agent: AgentId, name: &EndpointName<'_>, endpoint: Option<EndpointIndex>) -> Result<Target, Refused> {
        if let Some(endpoint) = endpoint {
            // Its home is its owner; a name that comes out elsewhere was forwarded by a core with another plan.
            return if self.calls.endpoints.owns(endpoint) { Ok(Target::One(endpoint)) } else { Err(mgcp::ENDPOINT_UNKNOWN) };
        }
        let ranges = self.settings.agent(agent).is_some_and(|agent| agent.ranges);
        self.plan.topology.resolve(name.local, ranges).map(Target::Many).map_err(|_| mgcp::ENDPOINT_UNKNOWN)
    }

    /// Holds a command for an endpoint whose restart the agent has not been told of until there is a restart to put in front of the
    /// response, or refuses it with 405 (G-RST-03, G-SVC-03). True: it is held, or answered.
    fn restart_first<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        handle: history::Handle,
        (verb, id): (Option<Verb>, TransactionId),
        endpoint: Option<EndpointIndex>,
    ) -> bool {
        if matches!(verb, Some(Verb::Auep | Verb::Aucx)) {
            return false;
        }
        // An unknown verb will be refused, but the answer is one the agent may not see first either.
        let verb = verb.unwrap_or(Verb::Mesg);
        let Some(endpoint) = endpoint else { return false };
        let Some(state) = self.calls.endpoints.get(endpoint) else { return false };
        if state.announcement == Told::Done || !state.service.in_service {
            return false;
        }
        let replaced = self.replaceable(turn.now, endpoint);
        let waiting = state.announcement == Told::Waiting || replaced.is_some();
        // 405 may be heard before a restart, but not before a disconnect (4.4.7).
        let refuses = !state.disconnected && self.settings.agent(received.message.agent).is_some_and(|agent| agent.refuse_while_restarting);
        self.trigger_restart(turn, endpoint, received.source());
        if !refuses && !waiting {
            return false;
        }
        let deadline = turn.now + self.settings.timers.vote;
        let wait = Wait::Restart(endpoint, replaced.unwrap_or(0));
        let held = !refuses && self.park(turn, received, handle, (verb, id), Some(endpoint), wait, deadline).is_ok();
        if !held && replaced.is_some() {
            return false;
        }
        if !held {
            let outcome = Outcome::Refused(mgcp::RESTARTING);
            self.respond(turn, Final { received: &received, handle: Some(handle), id, preface: Preface::None, outcome: &outcome });
            self.finish(received.message);
        }
        true
    }

    /// Puts a command aside: its job, and the message where it waits. It answers 100 by itself when it takes long.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn park<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        handle: history::Handle,
        (verb, transaction): (Verb, TransactionId),
        endpoint: Option<EndpointIndex>,
        wait: Wait,
        deadline: Time,
    ) -> Result<(JobId, Message), Refused> {
        if !self.may_wait(received.message) {
            return Err(mgcp::TOO_MANY_WAITING);
        }
        let received = self.set_aside(turn, received).ok_or(mgcp::TOO_MANY_WAITING)?;
        // An agent that sends more than is done hears of it at once.
        let provisional_after = if self.jobs.is_queueing() { Duration::ZERO } else { self.settings.timers.provisional_after };
        let job = Job {
            owner: Owner::Here(handle),
            verb,
            transaction,
            received,
            wait,
            endpoint,
            provisional_at: turn.now + provisional_after,
            deadline,
        };
        let id = self.jobs.insert(job).ok_or(mgcp::TOO_MANY_WAITING)?;
        Ok((id, received.message))
    }

    /// A refusal that leaves no trace: the repeat is tried afresh (409; 405 while the agent has not been told of the endpoint).
    pub(super) fn refuse_unremembered<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        command: (Option<Verb>, TransactionId, &[u8]),
        refused: Refused,
    ) {
        self.answer_unremembered(turn, received, command, refused);
        self.finish(received.message);
    }

    /// The answer alone.
    pub(super) fn answer_unremembered<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        (verb, id, name): (Option<Verb>, TransactionId, &[u8]),
        mut refused: Refused,
    ) {
        let mut preface = self.preface(verb, local_of(name), None, refused.code);
        if preface != Preface::None && self.waits_for_restart(name) {
            if let Preface::Endpoint(endpoint) = preface {
                self.trigger_restart(turn, endpoint, received.source());
            }
            (refused, preface) = (mgcp::RESTARTING, Preface::None);
        }
        let outcome = Outcome::Refused(refused);
        self.respond(turn, Final { received: &received, handle: None, id, preface, outcome: &outcome });
    }

    /// Whether `name` is an endpoint in service whose restart was not sent yet.
    fn waits_for_restart(&self, name: &[u8]) -> bool {
        let state = self.plan.topology.lookup(local_of(name)).and_then(|endpoint| self.calls.endpoints.get(endpoint));
        state.is_some_and(|state| state.announcement == Told::Waiting && state.service.in_service)
    }

    /// `K:` of a command: responses the agent has. Ids not known here travel to the other cores (G-ACK-01..05).
    pub(super) fn confirm<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, agent: AgentId, command: &Command<'_>) {
        if command.get(Code::K).is_none() {
            return;
        }
        let mut budget = CONFIRM_BUDGET;
        for (low, high) in command.confirmed().take(CONFIRM_RANGES) {
            let result = self.history.confirm_range(turn.now, agent, low, high, &mut budget);
            self.counters.add_many(Counter::ResponsesConfirmed, u64::from(result.released));
            self.counters.add_many(Counter::ConfirmForeign, u64::from(result.foreign));
            if result.kept || result.unknown != 0 {
                self.tell_other_owners(turn, Envelope::Confirm { agent, low, high });
            }
        }
    }

    /// Responses confirmed to another core.
    pub(super) fn confirm_here(&mut self, now: Time, agent: AgentId, low: TransactionId, high: TransactionId) {
        if low == high {
            self.acknowledged_here(now, agent, low);
            return;
        }
        let mut budget = CONFIRM_BUDGET;
        let result = self.history.confirm_range(now, agent, low, high, &mut budget);
        self.counters.add_many(Counter::ResponsesConfirmed, u64::from(result.released));
    }

    /// One response confirmed, by `000` or alone in a `K:`. False when it is not known here.
    pub(super) fn acknowledged_here(&mut self, now: Time, agent: AgentId, id: TransactionId) -> bool {
        self.acknowledged_final(agent, id);
        match self.history.confirm_one(now, agent, id) {
            Confirm::Released => self.counters.add(Counter::ResponsesConfirmed),
            Confirm::Known => {}
            Confirm::Foreign => {
                self.counters.add(Counter::ConfirmForeign);
                return false;
            }
            Confirm::Unknown => return false,
        }
        true
    }

    /// The latest successful command for `endpoint` came from there, under this domain name (G-NET-03, G-EPN-05).
    pub(super) fn note_success(&mut self, received: Received, endpoint: EndpointIndex, domain: u8) {
        let source = Some((received.message.agent, received.origin.from));
        if let Some(state) = self.calls.endpoints.get_mut(endpoint) {
            state.domain = domain;
            if state.source != source {
                state.source = source;
                if state.entity == EntityId::SOURCE {
                    self.report_entity(endpoint);
                }
            }
        }
    }

    pub(super) fn count(&self, verb: Verb, outcome: &Outcome) {
        if matches!(outcome, Outcome::Refused(_)) {
            return;
        }
        self.counters.add(match verb {
            Verb::Epcf => Counter::EpcfDone,
            Verb::Crcx => Counter::CrcxDone,
            Verb::Mdcx => Counter::MdcxDone,
            Verb::Dlcx => Counter::DlcxDone,
            Verb::Rqnt => Counter::RqntDone,
            Verb::Auep => Counter::AuepDone,
            Verb::Aucx => Counter::AucxDone,
            Verb::Ntfy | Verb::Rsip | Verb::Mesg => return,
        });
    }
}

/// The endpoint that the response to a command for any of several says was chosen.
fn chosen_in(plan: &Plan, local: &[u8], response: &[u8]) -> Option<EndpointIndex> {
    scan::find_near(local, b'$')?;
    let chosen = response.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"Z: "))?;
    plan.topology.lookup(local_of(chosen))
}

/// The code a response begins with.
fn leading_code(response: &[u8]) -> u16 {
    response.iter().take(3).fold(0, |code, &digit| code * 10 + u16::from(digit.wrapping_sub(b'0') % 10))
}
