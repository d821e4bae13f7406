//! Commands over all endpoints of a name with `*`: prepared on every core that owns endpoints, then applied on all or none
//! (RFC 3435 4.4.3; G-TXN-02, G-SHD-03).
//!
//! The home core coordinates. It asks the cores one after another in ascending order, so that two such commands that meet do not wait
//! for each other in a circle; a core holds one share at a time and keeps a few waiting. A vote that does not come in time undoes the
//! command. Every Prepare is answered by one Vote, every Decide by one Applied: only then is the frame with the command given back.
//! Shares are worked on in slices.

use super::Core;
use super::command::Step;
use super::envelope::{Envelope, JobId, Message};
use super::jobs::Owner;
use super::jobs::{Job, Wait};
use super::outside::{Frames, Outside, Turn};
use super::receive::Received;
use super::respond::{Final, Preface};
use crate::proto::base::{CoreId, Counter, EndpointRange, HexId, Time};
use crate::proto::codec::mgcp::{Command, Verb};
use crate::proto::endpoint::Announcement as Told;
use crate::proto::mgcp::request::{self, RequestPlan};
use crate::proto::mgcp::{self, Outcome, Refused, configure, delete};
use crate::proto::transaction::history;
use crate::proto::trunk::{Cursor, Selection};
use std::collections::VecDeque;

/// Shares that wait for the one a core holds.
const SHARES_WAITING: usize = 256;

/// What one core does for a command over many endpoints.
struct Share {
    core: CoreId,
    job: JobId,
    message: Message,
    phase: Phase,
    cursor: Cursor,
    /// Blocks kept free for what a commit will store.
    reserved: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Validating,
    Held,
    Applying,
}

/// The share a core works on or holds, and those behind it.
pub(super) struct Shares {
    current: Option<Share>,
    waiting: VecDeque<(CoreId, JobId, Message)>,
}

impl Shares {
    pub fn new() -> Shares {
        Shares { current: None, waiting: VecDeque::with_capacity(SHARES_WAITING) }
    }

    /// Whether there is work to go on with.
    pub fn working(&self) -> bool {
        match &self.current {
            Some(share) => share.phase != Phase::Held,
            None => !self.waiting.is_empty(),
        }
    }
}

/// What a share does to each endpoint.
enum Change {
    Delete(Option<HexId>),
    Configure(configure::ConfigurePlan),
    Request(RequestPlan),
}

impl Core {
    /// Begins to coordinate.
    pub(super) fn start_everywhere<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        handle: history::Handle,
        command: &Command<'_>,
    ) -> Result<Step, Refused> {
        let deadline = turn.now + self.settings.timers.vote;
        let job = self.park(turn.now, received, handle, (command.verb, command.id), None, Wait::Votes(0), deadline)?;
        self.ask_for_vote(turn, job, received.message, 0);
        Ok(Step::Waiting)
    }

    fn ask_for_vote<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, job: JobId, message: Message, ordinal: usize) {
        let owner = self.plan.owner_at(ordinal);
        if !self.tell(turn, owner, Envelope::Prepare { job, message }) {
            // The ring to that core is full: it has not got the question, so it votes no.
            self.to_self.push_back(Envelope::Vote { job, code: mgcp::CORE_SILENT.code });
        }
    }

    pub(super) fn handle_vote<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId, code: u16) {
        let Some(job) = self.jobs.get(id).copied() else { return self.counters.add(Counter::EnvelopeStray) };
        match job.wait {
            Wait::Votes(ordinal) if code == 0 => {
                let next = usize::from(ordinal) + 1;
                if next < self.plan.owners.len() {
                    self.jobs.wait(id, Wait::Votes(next as u8), job.deadline);
                    self.ask_for_vote(turn, id, job.received.message, next);
                } else {
                    self.jobs.wait(id, Wait::Applying(next as u8), Time::NEVER);
                    self.decide(turn, id, next, true);
                }
            }
            Wait::Votes(ordinal) => {
                self.decide(turn, id, usize::from(ordinal), false);
                self.refuse_early(turn, id, &job, mgcp::refused_by_code(code), ordinal);
            }
            Wait::Late(answers) => self.one_answer_less(id, &job, answers),
            _ => self.counters.add(Counter::EnvelopeStray),
        }
    }

    /// Tells the first `count` cores what was decided.
    fn decide<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, job: JobId, count: usize, commit: bool) {
        for ordinal in 0..count {
            let owner = self.plan.owner_at(ordinal);
            self.must_tell(turn, owner, Envelope::Decide { job, commit });
        }
    }

    /// Answers with a refusal now; the message is finished when the last of `answers` has come.
    pub(super) fn refuse_early<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        id: JobId,
        job: &Job,
        refused: Refused,
        answers: u8,
    ) {
        if let Owner::Here(handle) = job.owner {
            let outcome = Outcome::Refused(refused);
            let preface = if mgcp::before_restart(refused.code) { Preface::None } else { Preface::Any };
            let Job { received, transaction, .. } = *job;
            self.respond(turn, Final { received, handle: Some(handle), id: transaction, preface, outcome: &outcome });
        }
        self.jobs.provisional_done(id);
        if answers == 0 {
            self.jobs.remove(id);
            self.finish(job.received.message);
        } else {
            self.jobs.wait(id, Wait::Late(answers), Time::NEVER);
        }
    }

    pub(super) fn one_answer_less(&mut self, id: JobId, job: &Job, answers: u8) {
        if answers <= 1 {
            self.jobs.remove(id);
            self.finish(job.received.message);
        } else {
            self.jobs.wait(id, Wait::Late(answers - 1), Time::NEVER);
        }
    }

    /// The vote of the core at `ordinal` did not come in time: nothing is changed anywhere.
    pub(super) fn votes_overdue<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId, ordinal: u8) {
        let Some(job) = self.jobs.get(id).copied() else { return };
        self.counters.add(Counter::VoteTimeout);
        self.decide(turn, id, usize::from(ordinal) + 1, false);
        // One answer to each Decide, and the vote that is late.
        self.refuse_early(turn, id, &job, mgcp::CORE_SILENT, ordinal + 2);
    }

    pub(super) fn handle_applied<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId) {
        let Some(job) = self.jobs.get(id).copied() else { return self.counters.add(Counter::EnvelopeStray) };
        match job.wait {
            Wait::Applying(1) => {
                self.jobs.remove(id);
                let outcome = if job.verb == Verb::Dlcx { Outcome::Deleted(None) } else { Outcome::Done };
                self.end(turn, &job, outcome);
            }
            Wait::Applying(cores) => {
                self.jobs.wait(id, Wait::Applying(cores - 1), Time::NEVER);
            }
            Wait::Late(answers) => self.one_answer_less(id, &job, answers),
            _ => self.counters.add(Counter::EnvelopeStray),
        }
    }

    pub(super) fn handle_prepare<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, core: CoreId, job: JobId, message: Message) {
        if self.shares.waiting.len() >= SHARES_WAITING {
            self.counters.add(Counter::WildcardContention);
            self.must_tell(turn, core, Envelope::Vote { job, code: mgcp::WILDCARD_BUSY.code });
            return;
        }
        self.shares.waiting.push_back((core, job, message));
        self.handle_shares(turn);
    }

    pub(super) fn handle_decide<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, core: CoreId, job: JobId, commit: bool) {
        let current = self.shares.current.as_mut().filter(|share| share.core == core && share.job == job);
        match current {
            Some(share) if commit && share.phase == Phase::Held => {
                share.phase = Phase::Applying;
                share.cursor = Cursor::default();
                self.handle_shares(turn);
                return;
            }
            Some(share) => {
                let voted = share.phase == Phase::Held;
                self.drop_share();
                if !voted {
                    self.must_tell(turn, core, Envelope::Vote { job, code: mgcp::ABORTED.code });
                }
            }
            None => {
                // Still waiting for its turn: its vote is owed as well.
                let before = self.shares.waiting.len();
                self.shares.waiting.retain(|&(other, waiting, _)| (other, waiting) != (core, job));
                if self.shares.waiting.len() < before {
                    self.must_tell(turn, core, Envelope::Vote { job, code: mgcp::ABORTED.code });
                }
            }
        }
        self.must_tell(turn, core, Envelope::Applied { job });
    }

    /// Goes on with the share in hand, and the next when there is none, for at most a slice of endpoints.
    pub(super) fn handle_shares<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        let mut budget = self.plan.limits.slice.max(1);
        while budget > 0 && self.shares.working() {
            budget = budget.saturating_sub(self.handle_share(turn).max(1));
        }
    }

    /// One step of a share: how many endpoints it looked at.
    fn handle_share<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) -> u32 {
        if self.shares.current.is_none() {
            let Some((core, job, message)) = self.shares.waiting.pop_front() else { return 0 };
            self.shares.current = Some(Share { core, job, message, phase: Phase::Validating, cursor: Cursor::default(), reserved: 0 });
        }
        let Some(share) = &self.shares.current else { return 0 };
        let (core, job, message) = (share.core, share.job, share.message);
        let phase = share.phase;
        let step = self.parsed(turn, message, |core, turn, command| match phase {
            Phase::Applying => core.apply_slice(turn, message, command),
            Phase::Validating | Phase::Held => core.validate_slice(turn, message, command),
        });
        let applying = self.shares.current.as_ref().is_some_and(|share| share.phase == Phase::Applying);
        match step {
            Ok(Some(endpoints)) => return endpoints,
            Ok(None) if applying => {
                self.drop_share();
                self.note_calls(turn);
                self.must_tell(turn, core, Envelope::Applied { job });
            }
            Ok(None) => {
                if let Some(share) = &mut self.shares.current {
                    share.phase = Phase::Held;
                }
                self.must_tell(turn, core, Envelope::Vote { job, code: 0 });
            }
            Err(refused) => {
                self.drop_share();
                self.must_tell(turn, core, Envelope::Vote { job, code: refused.code });
            }
        }
        0
    }

    fn drop_share(&mut self) {
        if let Some(share) = self.shares.current.take() {
            self.calls.endpoints.blobs.unreserve(share.reserved);
        }
    }

    /// Checks the next endpoints: how many; `None` when all are checked.
    fn validate_slice<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        message: Message,
        command: &Command<'_>,
    ) -> Result<Option<u32>, Refused> {
        let selection = self.selection(message, command)?;
        let change = self.change(command)?;
        if let Change::Request(_) = change {
            let map = command.digit_map()?.flatten().map_or(0, |map| map.as_bytes().len());
            self.reserve_maps(&selection, map)?;
        }
        let Some(range) = self.next_range(&selection) else { return Ok(None) };
        for endpoint in range.iter() {
            let Some(state) = self.calls.endpoints.get(endpoint) else { continue };
            // Endpoints out of service count as having no connections (O-4).
            if matches!(change, Change::Delete(_)) && !state.service.in_service {
                continue;
            }
            let waiting = state.announcement == Told::Waiting;
            mgcp::in_service(&self.calls, endpoint)?;
            if waiting {
                self.trigger_restart(turn, endpoint);
                return Err(mgcp::RESTARTING);
            }
        }
        Ok(Some(range.count))
    }

    /// Applies to the next endpoints: how many; `None` when all are done.
    fn apply_slice<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        message: Message,
        command: &Command<'_>,
    ) -> Result<Option<u32>, Refused> {
        let selection = self.selection(message, command)?;
        let change = self.change(command)?;
        if let Some(share) = &mut self.shares.current {
            self.calls.endpoints.blobs.unreserve(std::mem::take(&mut share.reserved));
        }
        let Some(range) = self.next_range(&selection) else { return Ok(None) };
        let received = Received::of(turn, message)?;
        let domain = mgcp::domain_of(&self.plan, &command.endpoint)?;
        let mut entity = None;
        for endpoint in range.iter() {
            if !self.calls.endpoints.owns(endpoint) {
                continue;
            }
            match &change {
                Change::Delete(call) => {
                    self.abort_at(turn, endpoint);
                    delete::disconnect_all(&mut self.calls, turn.now, endpoint, call.as_ref());
                    self.note_idle(turn, endpoint);
                }
                Change::Configure(plan) => configure::apply(&mut self.calls, endpoint, *plan),
                Change::Request(plan) => entity = request::apply(&mut self.calls, endpoint, plan, command).or(entity),
            }
            self.note_success(received, endpoint, domain);
        }
        if let Some((agent, port)) = entity {
            // Every core says the same of its own endpoints, so that the range may name those of others too.
            self.must_tell(turn, self.plan.lead(), Envelope::Entity { range, agent, port });
        }
        Ok(Some(range.count))
    }

    fn selection(&self, message: Message, command: &Command<'_>) -> Result<Selection, Refused> {
        let ranges = self.settings.agent(message.agent).is_some_and(|agent| agent.ranges);
        self.plan.topology.resolve(command.endpoint.local, ranges).map_err(|_| mgcp::ENDPOINT_UNKNOWN)
    }

    fn change(&self, command: &Command<'_>) -> Result<Change, Refused> {
        Ok(match command.verb {
            Verb::Dlcx => Change::Delete(command.call()?),
            Verb::Epcf => Change::Configure(configure::validate(&self.calls, command)?),
            _ => Change::Request(request::validate(&self.calls, command)?),
        })
    }

    /// Keeps room for a digit map of `length` bytes on each endpoint of the share, once.
    fn reserve_maps(&mut self, selection: &Selection, length: usize) -> Result<(), Refused> {
        let Some(share) = &mut self.shares.current else { return Ok(()) };
        if length == 0 || share.reserved > 0 {
            return Ok(());
        }
        let endpoints = self.calls.endpoints.count().min(selection.count(&self.plan.topology));
        let blocks = endpoints.saturating_mul(crate::proto::endpoint::Blobs::blocks_for(length));
        if !self.calls.endpoints.blobs.reserve(blocks) {
            return Err(mgcp::NO_MEMORY_LEFT);
        }
        share.reserved = blocks;
        Ok(())
    }

    /// The next endpoints named, at most a slice of them, whoever owns them; `None` when there are no more.
    fn next_range(&mut self, selection: &Selection) -> Option<EndpointRange> {
        let share = self.shares.current.as_mut()?;
        selection.next(&self.plan.topology, &mut share.cursor, self.plan.limits.slice.max(1))
    }
}
