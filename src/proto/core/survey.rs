//! Bulk audits of states (RFC 3624): the core that has the command asks the owners of the endpoints, part by part, and writes the report when
//! it has all. They look only; nothing is kept there, and the command itself stays here.

use super::Core;
use super::command::Step;
use super::envelope::{Envelope, JobId};
use super::jobs::{Job, Owner, Wait};
use super::outside::{Frames, Outside, Turn};
use super::preface::Preface;
use super::receive::Received;
use super::respond::Way;
use crate::proto::base::{AgentId, CoreId, Counter, EndpointIndex, EndpointRange};
use crate::proto::codec::mgcp::Command;
use crate::proto::mgcp::bulk::{self, BulkAudit, Lists, Part, StateTypes};
use crate::proto::mgcp::{self, Outcome, Refused};
use crate::proto::transaction::history;
use crate::proto::trunk::Selection;

/// Bulk audits at a time; more are refused for now (409).
const SURVEYS: usize = 8;

/// Questions that are out at a time for one of them.
const OUTSTANDING: usize = 32;

/// A bulk audit under way.
struct Survey {
    job: JobId,
    audit: BulkAudit,
    selection: Selection,
    parts: Vec<(EndpointRange, Part)>,
    /// How many of the parts were asked for, and how many have come.
    asked: usize,
    answered: usize,
}

/// Those under way on a core.
pub(super) struct Surveys {
    list: Vec<Survey>,
}

impl Surveys {
    pub fn new() -> Surveys {
        Surveys { list: Vec::with_capacity(SURVEYS) }
    }

    fn place(&self, job: JobId) -> Option<usize> {
        self.list.iter().position(|survey| survey.job == job)
    }

    /// The command of this job is over.
    pub fn end(&mut self, job: JobId) {
        self.list.retain(|survey| survey.job != job);
    }
}

impl Core {
    /// A bulk audit of `selection`: names are known to every core, states are asked for.
    pub(super) fn audit_in_bulk<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        handle: history::Handle,
        command: &Command<'_>,
        selection: Selection,
    ) -> Result<Step, Refused> {
        let audit = bulk::read(&self.plan.topology, command, &selection)?;
        if let Lists::Names { .. } = audit.lists {
            let fitted = self.respond_with(turn, &received, Some(handle), command.id, Preface::None, |writer, calls| {
                bulk::write_names(calls, writer, command, &audit, &selection);
            });
            self.audited(received.message.agent, fitted);
            self.finish(received.message);
            return Ok(Step::Waiting);
        }
        if self.surveys.list.len() >= SURVEYS {
            return Err(mgcp::TOO_MANY_WAITING);
        }
        let deadline = turn.now + self.settings.timers.vote;
        let (job, _) = self.park(turn, received, handle, (command.verb, command.id), None, Wait::Survey, deadline)?;
        let largest = self.settings.agent(received.message.agent).map_or(mgcp::SMALLEST_MAX_RESPONSE, |agent| agent.max_response);
        let most = audit.endpoints_in(largest) as u32;
        let mut left = most;
        let runs = audit.runs(&self.plan, &selection, u32::MAX).take_while(|run| {
            let room = left > 0;
            left = left.saturating_sub(run.count);
            room
        });
        let parts = runs.flat_map(cut).map(|range| (range, Part::default())).collect();
        self.surveys.list.push(Survey { job, audit, selection, parts, asked: 0, answered: 0 });
        self.ask_on(turn, job);
        Ok(Step::Waiting)
    }

    /// Asks for the next parts.
    fn ask_on<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, job: JobId) {
        while let Some(place) = self.surveys.place(job) {
            let Some(survey) = self.surveys.list.get_mut(place) else { return };
            let Some(&(range, _)) = survey.parts.get(survey.asked).filter(|_| survey.asked < survey.answered + OUTSTANDING) else { return };
            survey.asked += 1;
            let types = survey.audit.types();
            let owner = self.plan.owner(EndpointIndex(range.first));
            self.must_tell(turn, owner, Envelope::Look { job, first: range.first, count: range.count as u8, types });
        }
    }

    pub(super) fn handle_look<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        (core, job): (CoreId, JobId),
        range: EndpointRange,
        types: StateTypes,
    ) {
        let part = bulk::look(&self.calls, range, types);
        self.must_tell(turn, core, Envelope::Seen { job, first: range.first, part });
    }

    pub(super) fn handle_seen<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, job: JobId, first: u32, part: Part) {
        // One that comes too late is nobody's.
        let Some(survey) = self.surveys.place(job).and_then(|place| self.surveys.list.get_mut(place)) else {
            return self.counters.add(Counter::EnvelopeStray);
        };
        let Ok(place) = survey.parts.binary_search_by_key(&first, |(range, _)| range.first) else {
            return self.counters.add(Counter::EnvelopeStray);
        };
        survey.parts[place].1 = part;
        survey.answered += 1;
        if survey.answered < survey.parts.len() {
            return self.ask_on(turn, job);
        }
        let (Some(job), Some(place)) = (self.jobs.remove(job), self.surveys.place(job)) else { return };
        let Survey { audit, selection, parts, .. } = self.surveys.list.swap_remove(place);
        let (Owner::Here(handle), id) = (job.owner, job.transaction) else { return };
        let asks_ack = self.history.provisional_sent(handle);
        let fitted = self.respond_with(turn, &job.received, Some(handle), id, Preface::None, |writer, calls| {
            writer.response(200, id, None, "OK");
            mgcp::acknowledgement(writer, asks_ack);
            bulk::write_states(calls, writer, &audit, &selection, &parts);
        });
        self.audited(job.received.message.agent, fitted);
        if asks_ack {
            self.await_acknowledgement(turn.now, handle, id, Way::back(&job.received), Preface::None);
        }
        self.finish(job.received.message);
    }

    /// A bulk audit that waits looks whether a core stands still.
    pub(super) fn look_for_answers<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId, job: &Job) {
        match self.patience(turn) {
            Some(patience) => {
                self.jobs.wait(id, Wait::Survey, turn.now + patience);
            }
            None => {
                self.counters.add(Counter::VoteTimeout);
                self.jobs.remove(id);
                self.surveys.end(id);
                self.end(turn, job, Outcome::Refused(mgcp::CORE_SILENT));
            }
        }
    }

    /// Counts an audit.
    fn audited(&mut self, agent: AgentId, fitted: bool) {
        self.count_final(agent, 200, fitted);
        self.counters.add(Counter::AuepDone);
    }
}

/// A run in parts.
fn cut(run: EndpointRange) -> impl Iterator<Item = EndpointRange> {
    (0..run.count.div_ceil(bulk::PART)).map(move |n| {
        let first = run.first + n * bulk::PART;
        EndpointRange { first, count: (run.first + run.count - first).min(bulk::PART) }
    })
}
