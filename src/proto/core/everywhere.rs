//! Commands over all endpoints of a name with `*`: prepared on every core that owns endpoints, then applied on all or none
//! (RFC 3435 4.4.3; G-TXN-02, G-SHD-03).
//!
//! The home core coordinates. It asks the cores one after another in ascending order, so that two such commands that meet do not wait
//! for each other in a circle; a core holds one share at a time and keeps some waiting, which takes as long as it takes. When a core that
//! owns endpoints stands still the command is undone. Every Prepare is answered by one Vote, every Decide by one Applied: only then is the frame with the command given back.
//! Shares are worked on in slices.

use super::Core;
use super::command::Step;
use super::envelope::{Envelope, JobId, Message};
use super::jobs::Owner;
use super::jobs::{Job, Wait};
use super::media::Covered;
use super::outside::{Frames, Outside, Turn};
use super::receive::Received;
use super::respond::Final;
use crate::proto::base::{CoreId, Counter, EndpointRange, HexId, Time};
use crate::proto::codec::mgcp::{Command, Verb};
use crate::proto::endpoint::{Announcement as Told, EntityId};
use crate::proto::mgcp::event::Lists;
use crate::proto::mgcp::request::{self, RequestPlan, Shapes};
use crate::proto::mgcp::{self, Outcome, Refused, configure, delete};
use crate::proto::transaction::history;
use crate::proto::trunk::{Cursor, Selection};
use std::collections::VecDeque;
use std::time::Duration;

/// Shares that wait for the one a core holds; more are refused at once (409).
const SHARES_WAITING: usize = 256;

/// How soon at the earliest a command that waits looks again whether a core stands still.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What one core does for a command over many endpoints.
struct Share {
    core: CoreId,
    job: JobId,
    message: Message,
    phase: Phase,
    /// An endpoint must be announced as disconnected before the share goes on.
    blocked: bool,
    /// What is to be done, once the command was read.
    work: Option<Work>,
}

/// The command as it was read when the share began: a change of settings meanwhile cannot make a commit fail.
#[derive(Clone, Copy)]
struct Work {
    received: Received,
    domain: u8,
    selection: Selection,
    change: Change,
    cursor: Cursor,
    /// What is known of its lists by the kind of channel.
    shapes: Shapes,
    /// The notified entity of the command, kept in its table until the share is done.
    entity: EntityId,
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
            Some(share) => share.phase != Phase::Held && !share.blocked,
            None => !self.waiting.is_empty(),
        }
    }

    /// An announcement is out: a share that waited for one looks again.
    pub fn unblock(&mut self) {
        if let Some(share) = &mut self.current {
            share.blocked = false;
        }
    }
}

/// What a share does to each endpoint.
#[derive(Clone, Copy)]
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
        // A core that stands still already would not vote in time either, and would keep what it was asked.
        if self.patience(turn).is_none() {
            self.counters.add(Counter::VoteTimeout);
            return Err(mgcp::CORE_SILENT);
        }
        let deadline = turn.now + self.settings.timers.vote;
        let (job, message) = self.park(turn, received, handle, (command.verb, command.id), None, Wait::Votes(0), deadline)?;
        self.ask_for_vote(turn, job, message, 0);
        Ok(Step::Waiting)
    }

    fn ask_for_vote<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, job: JobId, message: Message, ordinal: usize) {
        self.must_tell(turn, self.plan.owner_at(ordinal), Envelope::Prepare { job, message });
    }

    pub(super) fn handle_vote<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId, refused: Option<Refused>) {
        let Some(job) = self.jobs.get(id).copied() else { return self.counters.add(Counter::EnvelopeStray) };
        match (job.wait, refused) {
            (Wait::Votes(ordinal), None) => {
                let next = usize::from(ordinal) + 1;
                if next < self.plan.owners.len() {
                    self.jobs.wait(id, Wait::Votes(next as u8), job.deadline);
                    self.ask_for_vote(turn, id, job.received.message, next);
                } else {
                    self.jobs.wait(id, Wait::Applying(next as u8), Time::NEVER);
                    self.decide(turn, id, next, true);
                }
            }
            (Wait::Votes(ordinal), Some(refused)) => {
                self.decide(turn, id, usize::from(ordinal), false);
                self.refuse_early(turn, id, &job, refused, ordinal);
            }
            (Wait::Late(answers), _) => self.one_answer_less(id, &job, answers),
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
            let preface = self.preface_of(turn, job, None, refused.code);
            let Job { received, transaction, .. } = *job;
            self.respond(turn, Final { received: &received, handle: Some(handle), id: transaction, preface, outcome: &outcome });
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

    /// A command has waited for votes for a while. While every core goes round its loop it waits its turn, however long the queue is; when
    /// one of them stands still it fails: that one's vote will not come, or it keeps others from ending.
    pub(super) fn look_for_votes<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId, ordinal: u8) {
        match self.patience(turn) {
            Some(patience) => {
                self.jobs.wait(id, Wait::Votes(ordinal), turn.now + patience);
            }
            None => {
                self.counters.add(Counter::VoteTimeout);
                self.stop_voting(turn, id, ordinal, mgcp::CORE_SILENT);
            }
        }
    }

    /// How long to wait before looking again whether one of the cores that own endpoints stands still; `None`: one does.
    pub(super) fn patience<F: Frames, O: Outside>(&self, turn: &Turn<'_, F, O>) -> Option<Duration> {
        let others = self.plan.owners.iter().filter(|&&owner| owner != self.id);
        let silence = others.map(|&owner| turn.out.silence(owner, turn.now)).max().unwrap_or_default();
        let left = self.settings.timers.vote.saturating_sub(silence);
        (!left.is_zero()).then_some(left.max(LOOK_AGAIN))
    }

    /// The vote of the core at `ordinal` is not waited for any more: nothing is changed anywhere.
    pub(super) fn stop_voting<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId, ordinal: u8, refused: Refused) {
        let Some(job) = self.jobs.get(id).copied() else { return };
        self.decide(turn, id, usize::from(ordinal) + 1, false);
        // One answer to each Decide, and the vote that is late.
        self.refuse_early(turn, id, &job, refused, ordinal + 2);
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
            Wait::Joining(slot, plan, first, second) => {
                self.jobs.remove(id);
                self.halves_joined(turn, &job, slot, plan, first, second);
            }
            Wait::Late(answers) => self.one_answer_less(id, &job, answers),
            _ => self.counters.add(Counter::EnvelopeStray),
        }
    }

    pub(super) fn handle_prepare<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, core: CoreId, job: JobId, message: Message) {
        if self.shares.waiting.len() >= SHARES_WAITING {
            self.counters.add(Counter::WildcardContention);
            self.must_tell(turn, core, Envelope::Vote { job, refused: Some(mgcp::TOO_MANY_WAITING) });
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
                if let Some(work) = &mut share.work {
                    work.cursor = Cursor::default();
                }
                self.handle_shares(turn);
                return;
            }
            Some(share) => {
                let voted = share.phase == Phase::Held;
                self.drop_share();
                if !voted {
                    self.must_tell(turn, core, Envelope::Vote { job, refused: Some(mgcp::ABORTED) });
                }
            }
            None => {
                // Still waiting for its turn: its vote is owed as well.
                let before = self.shares.waiting.len();
                self.shares.waiting.retain(|&(other, waiting, _)| (other, waiting) != (core, job));
                if self.shares.waiting.len() < before {
                    self.must_tell(turn, core, Envelope::Vote { job, refused: Some(mgcp::ABORTED) });
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
            self.shares.current = Some(Share { core, job, message, phase: Phase::Validating, blocked: false, work: None });
        }
        let Some(share) = &self.shares.current else { return 0 };
        let (core, job, message) = (share.core, share.job, share.message);
        let phase = share.phase;
        let step = match phase {
            Phase::Held => return 0,
            Phase::Validating => self.validate_slice(turn, message),
            Phase::Applying => Ok(self.apply_slice(turn, message)),
        };
        match step {
            Ok(Some(endpoints)) => return endpoints,
            Ok(None) if phase == Phase::Applying => {
                self.drop_share();
                self.note_calls();
                self.must_tell(turn, core, Envelope::Applied { job });
            }
            Ok(None) => {
                if let Some(share) = &mut self.shares.current {
                    share.phase = Phase::Held;
                }
                self.must_tell(turn, core, Envelope::Vote { job, refused: None });
            }
            Err(refused) => {
                self.drop_share();
                self.must_tell(turn, core, Envelope::Vote { job, refused: Some(refused) });
            }
        }
        0
    }

    fn drop_share(&mut self) {
        if let Some(Work { entity, .. }) = self.shares.current.take().and_then(|share| share.work) {
            let endpoints = &mut self.calls.endpoints;
            endpoints.blobs.let_go();
            endpoints.entities.release(&mut endpoints.blobs, entity);
        }
    }

    /// Reads the command and keeps what applying it will need.
    fn begin_work<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, message: Message) -> Result<Work, Refused> {
        let received = Received::of(turn, message)?;
        self.parsed(turn, message, |core, _, command| {
            let ranges = core.settings.agent(message.agent).is_some_and(|agent| agent.ranges);
            let selection = core.plan.topology.resolve(command.endpoint.local, ranges).map_err(|_| mgcp::ENDPOINT_UNKNOWN)?;
            let domain = mgcp::domain_of(&core.plan, &command.endpoint)?;
            let change = match command.verb {
                Verb::Dlcx => Change::Delete(command.call()?),
                Verb::Epcf => Change::Configure(configure::validate(&core.calls, command)?),
                _ => Change::Request(request::read(&core.calls, command)?),
            };
            let entity = match &change {
                Change::Request(plan) => request::hold_entity(&mut core.calls, plan, command)?,
                _ => EntityId::PROVISIONED,
            };
            let (cursor, shapes) = (Cursor::default(), Shapes::default());
            Ok(Work { received, domain, selection, change, cursor, shapes, entity })
        })
    }

    /// Checks the next endpoints: how many; `None` when all are checked.
    fn validate_slice<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, message: Message) -> Result<Option<u32>, Refused> {
        if self.shares.current.as_ref().is_some_and(|share| share.work.is_none()) {
            let work = self.begin_work(turn, message)?;
            if let Some(share) = &mut self.shares.current {
                share.work = Some(work);
            }
        }
        let before = self.shares.current.as_ref().and_then(|share| share.work).map(|work| work.cursor);
        let Some((range, work)) = self.next_range() else { return Ok(None) };
        for endpoint in range.iter() {
            let Some(state) = self.calls.endpoints.get(endpoint) else { continue };
            // Endpoints out of service count as having no connections (O-4).
            if matches!(work.change, Change::Delete(_)) && !state.service.in_service {
                continue;
            }
            let (waiting, disconnected) = (state.announcement == Told::Waiting, state.disconnected);
            mgcp::in_service(&self.calls, endpoint)?;
            if waiting {
                self.trigger_restart(turn, endpoint, None);
                if !disconnected {
                    return Err(mgcp::RESTARTING);
                }
                // 405 must not be heard before a disconnect (4.4.7): looked at again when that is told.
                if let Some(share) = &mut self.shares.current {
                    share.blocked = true;
                    share.work.iter_mut().zip(before).for_each(|(work, before)| work.cursor = before);
                }
                return Ok(Some(range.count));
            }
        }
        if matches!(work.change, Change::Request(plan) if plan.requests()) {
            let mut shapes = work.shapes;
            self.parsed(turn, message, |core, _, command| {
                let lists = request::lists(command)?;
                let mut all = range.iter();
                all.try_for_each(|endpoint| match core.calls.endpoints.owns(endpoint) {
                    true => request::hold(&mut core.calls, &lists, &mut shapes, endpoint),
                    false => Ok(()),
                })
            })?;
            if let Some(work) = self.shares.current.as_mut().and_then(|share| share.work.as_mut()) {
                work.shapes = shapes;
            }
        }
        Ok(Some(range.count))
    }

    /// Applies to the next endpoints: how many; `None` when all are done.
    fn apply_slice<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, message: Message) -> Option<u32> {
        let (range, work) = self.next_range()?;
        // It was read before, so it can be read again.
        let _ = self.parsed(turn, message, |core, turn, command| {
            core.apply_to(turn, range, &work, command);
            Ok(())
        });
        Some(range.count)
    }

    fn apply_to<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, range: EndpointRange, work: &Work, command: &Command<'_>) {
        let mut moved = false;
        let lists = match &work.change {
            Change::Request(plan) if plan.requests() => request::lists(command).unwrap_or_default(),
            _ => Lists::default(),
        };
        for endpoint in range.iter() {
            if !self.calls.endpoints.owns(endpoint) {
                continue;
            }
            match &work.change {
                Change::Delete(call) => {
                    self.abort_at(turn, endpoint, Covered::Call(*call));
                    delete::disconnect_all(&mut self.calls, turn.now, endpoint, call.as_ref());
                    self.note_idle(endpoint);
                }
                Change::Configure(plan) => configure::apply(&mut self.calls, endpoint, *plan),
                Change::Request(plan) => {
                    self.abort_requests(turn, endpoint);
                    if plan.requests() {
                        request::draw(&mut self.calls, &lists, &work.shapes, endpoint);
                    }
                    if request::apply_lists(&mut self.calls, turn.now, endpoint, (plan, &lists), command, None) {
                        moved = true;
                        self.report_entity(endpoint);
                    }
                }
            }
            self.note_success(work.received, endpoint, work.domain);
        }
        if moved {
            self.redirect_commands(range);
        }
    }

    /// The next endpoints named, at most a slice of them, whoever owns them; `None` when there are no more.
    fn next_range(&mut self) -> Option<(EndpointRange, Work)> {
        let work = self.shares.current.as_mut()?.work.as_mut()?;
        let range = work.selection.next(&self.plan.topology, &mut work.cursor, self.plan.limits.slice.max(1))?;
        Some((range, *work))
    }
}
