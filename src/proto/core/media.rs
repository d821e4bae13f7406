//! Connection commands on one endpoint: created, modified and deleted with the card's help, at once or when the card says so.

use super::Core;
use super::admission::Resume;
use super::command::Step;
use super::envelope::{Envelope, JobId, Message};
use super::jobs::{Job, Owner, Wait};
use super::outside::{Frames, Outside, Turn};
use super::receive::{Received, text};
use super::respond::Final;
use crate::proto::base::srtp::Passed;
use crate::proto::base::{CoreId, Counter, EndpointIndex, EndpointRange, HexId, Time};
use crate::proto::cac::Charge;
use crate::proto::codec::mgcp::{Code, Command, Verb};
use crate::proto::endpoint::{Announcement as Told, ConnectionId, ConnectionSlot};
use crate::proto::mgcp::create::{self, Begun, Half};
use crate::proto::mgcp::delete::{self, DeletePlan};
use crate::proto::mgcp::modify::{self, Modified};
use crate::proto::mgcp::request::{self, RequestPlan};
use crate::proto::mgcp::{self, CreatePlan, Created, Outcome, Refused};
use crate::proto::transaction::history;
use crate::proto::trunk::{Indication, MediaAddress};

/// Reason code: loss of lower layer connectivity (RFC 3435 2.5).
const LOWER_LAYER_LOST: u16 = 902;

/// Which commands under way on an endpoint a deletion covers.
#[derive(Clone, Copy)]
pub(super) enum Covered {
    /// Those of this call; all when none is named.
    Call(Option<HexId>),
    /// Those about this connection; `None`: an identifier that is none of ours.
    Connection(Option<ConnectionId>),
}

impl Core {
    /// CreateConnection on an endpoint of this core, named with this of the gateway's domain names.
    pub(super) fn create<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        handle: history::Handle,
        command: &Command<'_>,
        (endpoint, domain): (EndpointIndex, u8),
    ) -> Result<Step, Refused> {
        if command.get(Code::Z2).is_some() {
            return self.start_pair(turn, received, handle, command, endpoint);
        }
        let mut plan = create::validate(&self.calls, command, endpoint, Half::Whole)?;
        if !self.may_wait(received.message) {
            return Err(mgcp::TOO_MANY_WAITING);
        }
        match create::begin(&mut self.calls, turn.now, &mut plan, command)? {
            Begun::Ready(_, created, entity) => {
                self.note_entity(endpoint, entity);
                self.note_success(received, endpoint, domain);
                Ok(Step::Done(Outcome::Created { created, chosen: None, second: None }))
            }
            Begun::Opening(slot) => {
                self.park(turn, received, handle, (command.verb, command.id), Some(endpoint), Wait::Opening(slot, plan), Time::NEVER)?;
                Ok(Step::Waiting)
            }
            Begun::Claims(charge) => {
                let wait = Wait::Claim(charge, Resume::Start);
                let deadline = turn.now + self.decide_within();
                let (job, _) = self.park(turn, received, handle, (command.verb, command.id), Some(endpoint), wait, deadline)?;
                self.claim(turn.now, job, &charge, &Charge::EMPTY, None);
                Ok(Step::Waiting)
            }
        }
    }

    /// The same for ModifyConnection. An older one of the same connection that still waits is aborted (G-TXN-05).
    pub(super) fn modify<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        handle: history::Handle,
        command: &Command<'_>,
        (endpoint, domain): (EndpointIndex, u8),
    ) -> Result<Step, Refused> {
        let (slot, mut plan) = modify::validate(&self.calls, command, endpoint)?;
        while let Some(older) =
            self.jobs.find(|job| matches!(job.wait, Wait::Modifying(other, _) | Wait::Claim(_, Resume::Change(other)) if other == slot))
        {
            self.abort(turn, older);
        }
        if !self.may_wait(received.message) {
            return Err(mgcp::TOO_MANY_WAITING);
        }
        match modify::begin(&mut self.calls, turn.now, slot, &mut plan, command)? {
            Modified::Ready(created, entity) => {
                self.note_entity(endpoint, entity);
                self.note_success(received, endpoint, domain);
                Ok(Step::Done(Outcome::Modified(created)))
            }
            Modified::Waiting => {
                self.park(turn, received, handle, (command.verb, command.id), Some(endpoint), Wait::Modifying(slot, plan), Time::NEVER)?;
                Ok(Step::Waiting)
            }
            Modified::Claims(charge, has) => {
                let wait = Wait::Claim(charge, Resume::Change(slot));
                let deadline = turn.now + self.decide_within();
                let (job, _) = self.park(turn, received, handle, (command.verb, command.id), Some(endpoint), wait, deadline)?;
                self.claim(turn.now, job, &charge, &has, Some(slot));
                Ok(Step::Waiting)
            }
        }
    }

    /// DeleteConnection for one endpoint; aborts what it covers of what is being created or modified there, even when it fails itself
    /// (G-DLX-05, G-TXN-07, G-TXN-08).
    pub(super) fn delete<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        command: &Command<'_>,
        endpoint: EndpointIndex,
    ) -> Result<Outcome, Refused> {
        // As a rule nothing waits, and the parameters need not be read twice.
        if self.jobs.len() > 0 {
            let covered = match command.connection()? {
                Some(id) => Covered::Connection(ConnectionId::from_hex(&id)),
                None => Covered::Call(command.call()?),
            };
            self.abort_at(turn, endpoint, covered);
        }
        let outcome = match delete::validate(&self.calls, command, endpoint)? {
            DeletePlan::One(slot, request) => {
                let report = delete::disconnect(&mut self.calls, turn.now, slot);
                self.apply_request(turn, endpoint, &request, command);
                Outcome::Deleted(Some(report))
            }
            DeletePlan::All(call) => {
                delete::disconnect_all(&mut self.calls, turn.now, endpoint, call.as_ref());
                Outcome::Deleted(None)
            }
        };
        self.note_idle(endpoint);
        self.note_calls();
        Ok(outcome)
    }

    /// The request part of a command.
    #[inline]
    pub(super) fn apply_request<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        endpoint: EndpointIndex,
        plan: &RequestPlan,
        command: &Command<'_>,
    ) {
        let entity = request::apply(&mut self.calls, turn.now, endpoint, plan, command, None);
        self.note_entity(endpoint, entity);
    }

    /// Tells the lead core that an endpoint notifies somebody else now.
    pub(super) fn note_entity(&mut self, endpoint: EndpointIndex, moved: bool) {
        if moved {
            self.redirect_commands(EndpointRange { first: endpoint.0, count: 1 });
            self.report_entity(endpoint);
        }
    }

    /// Parses the command in `message` again, for one that has waited, and does something with it.
    pub(super) fn parsed<F: Frames, O: Outside, T>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        message: Message,
        then: impl FnOnce(&mut Core, &mut Turn<'_, F, O>, &Command<'_>) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let frames = turn.frames;
        let Some((datagram, _)) = frames.read(message.frame) else { return Err(mgcp::CORE_SILENT) };
        let command = Command::parse(text(&datagram, message))?;
        self.calls.manners = self.settings.manners(message.agent);
        then(self, turn, &command)
    }

    /// What the card has to say.
    pub(super) fn handle_card<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        for _ in 0..self.plan.limits.slice {
            let Some(indication) = self.calls.card.poll(turn.now) else { return };
            if let Indication::Event { endpoint, connection: None, .. } = indication {
                self.note_activity(turn, endpoint);
            }
            self.handle_indication(turn, indication);
        }
    }

    fn handle_indication<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, indication: Indication) {
        match indication {
            Indication::Opened { connection, result, .. } => {
                let waits = |job: &Job| matches!(job.wait, Wait::Opening(slot, _) | Wait::First(slot, ..) if slot == connection);
                match self.jobs.find(waits) {
                    Some(job) => self.media_opened(turn, job, connection, result.ok()),
                    None => self.counters.add(Counter::CardStray),
                }
            }
            Indication::Modified { connection, result, .. } => {
                match self.jobs.find(|job| matches!(job.wait, Wait::Modifying(slot, _) if slot == connection)) {
                    Some(job) => self.media_modified(turn, job, connection, result.ok()),
                    None => self.counters.add(Counter::CardStray),
                }
            }
            Indication::Defect { facility, defect, present, at_once } => {
                self.reports.note_defect(facility, defect, present, at_once);
            }
            Indication::Event { endpoint, connection, event, parameters } => {
                self.event_seen(turn, endpoint, connection, event, parameters);
            }
            Indication::MediaLost { endpoint, connection, .. } => self.media_lost(turn.now, endpoint, connection),
            Indication::Violations { facility, violations } => self.reports.note_violations(facility, &violations),
            Indication::SignalEnded { endpoint, connection, signal, failed } => {
                self.signal_ended(turn.now, endpoint, connection, signal, failed);
            }
            Indication::KeyUp { endpoint, key } => mgcp::event::key_released(&mut self.calls, turn.now, endpoint, key),
            Indication::Trouble { endpoint, trouble } => self.note_trouble(endpoint, trouble),
            // The signalling of the channels is in front of the card, and takes these.
            Indication::Line { .. } => self.counters.add(Counter::CardStray),
        }
    }

    /// The far end of a connection is silent for too long: the connection is deleted, and the agent told (RFC 3435 2.3.8).
    fn media_lost(&mut self, now: Time, endpoint: EndpointIndex, slot: ConnectionSlot) {
        let connection = self.calls.endpoints.connections.get(slot).copied();
        let Some(connection) = connection.filter(|connection| connection.endpoint == endpoint) else {
            return self.counters.add(Counter::CardStray);
        };
        // The command that makes it is still under way, and has its own end. If it succeeds and the far end stays silent, the card tells again.
        if connection.pending {
            return;
        }
        let report = delete::disconnect(&mut self.calls, now, slot);
        self.counters.add(Counter::MediaTimedOut);
        self.send_delete(now, &connection, &report, LOWER_LAYER_LOST, |_| true);
        self.note_idle(endpoint);
        self.note_calls();
    }

    fn media_opened<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        id: JobId,
        slot: ConnectionSlot,
        address: Option<MediaAddress>,
    ) {
        let Some(job) = self.jobs.remove(id) else { return };
        let (plan, second) = match job.wait {
            Wait::Opening(_, plan) => (plan, None),
            Wait::First(_, plan, second) => (plan, Some(second)),
            _ => return,
        };
        // The first half of a pair takes what is kept for it when it is joined.
        if second.is_none() {
            plan.room().give_back(&mut self.calls);
        }
        let result = match address {
            Some(address) => self.parsed(turn, job.received.message, |core, turn, command| {
                create::still_possible(&core.calls, &plan, command)?;
                create::opened(&mut core.calls, turn.now, slot, &plan, address, command)
            }),
            None => {
                self.counters.add(Counter::CardRefused);
                Err(mgcp::NO_MEDIA)
            }
        };
        match result {
            Ok(Begun::Ready(_, created, entity)) => {
                self.note_entity(created.endpoint, entity);
                match second {
                    Some(second) => self.join_halves(turn, &job, slot, plan, created, second),
                    None => self.end_created(turn, &job, &plan, created),
                }
            }
            Ok(Begun::Opening(_) | Begun::Claims(_)) => {}
            Err(refused) => {
                delete::disconnect(&mut self.calls, turn.now, slot);
                if second.is_some() {
                    plan.room().give_back(&mut self.calls);
                }
                self.take_down_second(turn, second);
                self.end(turn, &job, Outcome::Refused(refused));
            }
        }
    }

    fn media_modified<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        id: JobId,
        slot: ConnectionSlot,
        address: Option<MediaAddress>,
    ) {
        let Some(job) = self.jobs.remove(id) else { return };
        let Wait::Modifying(_, plan) = job.wait else { return };
        plan.room().give_back(&mut self.calls);
        let result = if let Some(address) = address {
            let done = self.parsed(turn, job.received.message, |core, turn, command| {
                modify::still_possible(&core.calls, slot, &plan, command)?;
                modify::apply(&mut core.calls, turn.now, slot, &plan, address, command)
            });
            if done.is_err() {
                modify::undo(&mut self.calls, turn.now, slot);
            }
            done
        } else {
            self.counters.add(Counter::CardRefused);
            mgcp::admit::unchanged(&mut self.calls, slot);
            Err(mgcp::NO_MEDIA)
        };
        let outcome = match result {
            Ok(Modified::Ready(created, entity)) => {
                if let Some(endpoint) = job.endpoint {
                    self.note_entity(endpoint, entity);
                }
                Outcome::Modified(created)
            }
            Ok(Modified::Waiting | Modified::Claims(..)) => return,
            Err(refused) => Outcome::Refused(refused),
        };
        self.end(turn, &job, outcome);
    }

    /// A connection was created for a command that waited.
    fn end_created<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, job: &Job, plan: &CreatePlan, created: Created) {
        match job.owner {
            Owner::Here(_) => self.end(turn, job, Outcome::Created { created, chosen: None, second: None }),
            Owner::There(core, coordinator) => {
                if plan.is_whole() {
                    self.note_addressed(turn, job.received, created.endpoint);
                }
                self.tell_made(turn, core, coordinator, created);
            }
        }
    }

    /// Tells the coordinator of a command that a connection was made here for it, with its key if it is protected.
    fn tell_made<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, core: CoreId, job: JobId, created: Created) {
        let Created { endpoint, connection, local } = created;
        if local.protected
            && let Some((slot, _)) = self.calls.endpoints.find(endpoint, connection)
            && let Some(local) = self.calls.endpoints.secrets.get(slot).and_then(|keys| keys.local.as_ref())
        {
            let local = Passed::from(local);
            self.must_tell(turn, core, Envelope::Key { endpoint, connection, local });
        }
        self.must_tell(turn, core, Envelope::Made { job, created });
    }

    /// The end of a command that waited and has left the table.
    pub(super) fn end<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, job: &Job, outcome: Outcome) {
        match job.owner {
            Owner::Here(handle) => {
                self.count(job.verb, &outcome);
                let chosen = if let Outcome::Created { created, .. } = &outcome { Some(created.endpoint) } else { None };
                let preface = self.preface_of(turn, job, chosen, outcome.code());
                if let (Some(endpoint), false) = (job.endpoint, matches!(outcome, Outcome::Refused(_))) {
                    self.note_addressed(turn, job.received, endpoint);
                }
                let Job { received, transaction: id, .. } = *job;
                self.respond(turn, Final { received: &received, handle: Some(handle), id, preface, outcome: &outcome });
                self.finish(received.message);
            }
            Owner::There(core, coordinator) => {
                let refused = if let Outcome::Refused(refused) = outcome { refused } else { mgcp::ABORTED };
                self.must_tell(turn, core, Envelope::TryFailed { job: coordinator, refused });
            }
        }
    }

    /// A command that has waited has succeeded on `endpoint`, by the domain name in it.
    fn note_addressed<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, received: Received, endpoint: EndpointIndex) {
        let domain = self.parsed(turn, received.message, |core, _, command| mgcp::domain_of(&core.plan, &command.endpoint));
        self.note_success(received, endpoint, domain.unwrap_or(0));
    }

    /// Undoes what a waiting command has begun.
    pub(super) fn undo<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, job: &Job) {
        job.room().give_back(&mut self.calls);
        match job.wait {
            Wait::Opening(slot, _) => {
                delete::disconnect(&mut self.calls, turn.now, slot);
            }
            Wait::First(slot, _, second) | Wait::Joining(slot, _, _, second) => {
                delete::disconnect(&mut self.calls, turn.now, slot);
                self.take_down_second(turn, Some(second));
            }
            Wait::Modifying(slot, _) => modify::undo(&mut self.calls, turn.now, slot),
            Wait::Claim(_, Resume::First(_, second)) => self.take_down_second(turn, Some(second)),
            Wait::Claim(..)
            | Wait::Restart(..)
            | Wait::Votes(_)
            | Wait::Applying(_)
            | Wait::Late(_)
            | Wait::Survey
            | Wait::Search(..)
            | Wait::Second(..) => {}
        }
    }

    /// Aborts one waiting command that can be aborted: 407.
    pub(super) fn abort<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId) {
        self.counters.add(Counter::Aborted);
        self.abort_with(turn, id, mgcp::ABORTED);
    }

    /// Undoes one waiting command and refuses it.
    pub(super) fn abort_with<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId, refused: Refused) {
        let Some(job) = self.jobs.get(id).copied() else { return };
        if let Wait::Search(..) | Wait::Second(..) | Wait::Joining(..) = job.wait {
            return self.stop_asking(turn, id, &job, refused);
        }
        self.jobs.remove(id);
        self.surveys.end(id);
        self.undo(turn, &job);
        self.end(turn, &job, Outcome::Refused(refused));
    }

    /// Aborts what is being created or modified at `endpoint`, as far as it is covered.
    pub(super) fn abort_at<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, endpoint: EndpointIndex, covered: Covered) {
        let frames = turn.frames;
        loop {
            let connections = &self.calls.endpoints.connections;
            let found = self.jobs.find(|job| {
                let connection = match job.wait {
                    Wait::Opening(slot, _) | Wait::Modifying(slot, _) | Wait::First(slot, ..) | Wait::Joining(slot, ..) => {
                        connections.get(slot)
                    }
                    Wait::Claim(_, Resume::Change(slot)) => connections.get(slot),
                    Wait::Second(..) | Wait::Claim(..) => None,
                    _ => return false,
                };
                let call = || match connection {
                    Some(connection) => Some(connection.call),
                    // Its first half is not begun yet: the call stands in the command.
                    None => frames
                        .read(job.received.message.frame)
                        .and_then(|(datagram, _)| Command::parse(text(&datagram, job.received.message)).ok()?.call().ok()?),
                };
                job.endpoint == Some(endpoint)
                    && match covered {
                        Covered::Call(None) => true,
                        Covered::Call(wanted) => call() == wanted,
                        Covered::Connection(id) => connection.is_some_and(|connection| Some(connection.id) == id),
                    }
            });
            match found {
                Some(job) => self.abort(turn, job),
                None => return,
            }
        }
    }

    /// Aborts the command of a transaction that is superseded by one with its id and other content.
    pub(super) fn abort_transaction<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, handle: history::Handle) {
        let waits = |job: &Job| {
            matches!(job.owner, Owner::Here(own) if own == handle)
                && !matches!(job.wait, Wait::Votes(_) | Wait::Applying(_) | Wait::Late(_))
        };
        if let Some(job) = self.jobs.find(waits) {
            self.abort(turn, job);
        }
    }

    /// Commands whose time is up, and those that owe a 100 (G-PRV-01, G-PRV-05).
    pub(super) fn handle_jobs_due<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        for _ in 0..self.plan.limits.slice {
            let Some(id) = self.jobs.next_due(turn.now) else { break };
            let Some(job) = self.jobs.get(id).copied() else { break };
            if job.provisional_at <= turn.now {
                if let Owner::Here(handle) = job.owner {
                    let preface = self.preface_of(turn, &job, None, 100);
                    self.respond_provisional(turn, job.received, handle, job.transaction, preface);
                }
                self.jobs.provisional_done(id);
                continue;
            }
            match job.wait {
                // What it is answered with goes behind the announcement that was not replaced in time.
                Wait::Restart(endpoint, _)
                    if self.calls.endpoints.get(endpoint).is_some_and(|state| state.announcement != Told::Waiting) =>
                {
                    self.start_over(turn, id);
                }
                Wait::Restart(..) => {
                    self.jobs.remove(id);
                    self.end(turn, &job, Outcome::Refused(mgcp::RESTARTING));
                }
                Wait::Votes(ordinal) => self.look_for_votes(turn, id, ordinal),
                Wait::Survey => self.look_for_answers(turn, id, &job),
                Wait::Search(..) | Wait::Second(..) | Wait::Joining(..) => self.answer_overdue(turn, id, &job),
                Wait::Opening(..) | Wait::Modifying(..) | Wait::First(..) => self.time_limit(turn, id),
                Wait::Claim(..) => self.claim_overdue(turn, id),
                // These only wait for answers that must come, to return the frame.
                Wait::Applying(_) | Wait::Late(_) => {
                    self.jobs.wait(id, job.wait, Time::NEVER);
                }
            }
        }
        while let Some(handle) = self.history.overdue(turn.now) {
            if let Some(id) = self.jobs.find(|job| matches!(job.owner, Owner::Here(own) if own == handle)) {
                self.time_limit(turn, id);
            }
        }
    }

    /// A command that took longer than the transaction limit: undone, 406.
    fn time_limit<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId) {
        let Some(job) = self.jobs.get(id).copied() else { return };
        match job.wait {
            Wait::Opening(..) | Wait::Modifying(..) | Wait::First(..) | Wait::Claim(..) | Wait::Restart(..) | Wait::Survey => {
                self.jobs.remove(id);
                self.surveys.end(id);
                self.undo(turn, &job);
                self.counters.add(Counter::TimeLimit);
                self.end(turn, &job, Outcome::Refused(mgcp::TIME_LIMIT));
            }
            Wait::Votes(ordinal) => {
                self.counters.add(Counter::TimeLimit);
                self.stop_voting(turn, id, ordinal, mgcp::TIME_LIMIT);
            }
            Wait::Search(..) | Wait::Second(..) | Wait::Joining(..) => self.answer_overdue(turn, id, &job),
            Wait::Applying(_) | Wait::Late(_) => {}
        }
    }

    /// A share of a command another core coordinates: makes the connection here, now or when the card says.
    pub(super) fn make_for<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        (core, job, received): (CoreId, JobId, Received),
        command: &Command<'_>,
        endpoint: EndpointIndex,
        half: Half,
    ) -> Result<(), Refused> {
        mgcp::in_service(&self.calls, endpoint)?;
        let mut plan = create::validate(&self.calls, command, endpoint, half)?;
        if self.jobs.is_full() {
            return Err(mgcp::TOO_MANY_WAITING);
        }
        let waiting = |wait, deadline| Job {
            owner: Owner::There(core, job),
            verb: Verb::Crcx,
            transaction: command.id,
            received,
            wait,
            endpoint: Some(endpoint),
            provisional_at: Time::NEVER,
            deadline,
        };
        match create::begin(&mut self.calls, turn.now, &mut plan, command)? {
            Begun::Ready(_, created, entity) => {
                self.note_entity(endpoint, entity);
                if plan.is_whole() {
                    let domain = mgcp::domain_of(&self.plan, &command.endpoint)?;
                    self.note_success(received, endpoint, domain);
                }
                self.tell_made(turn, core, job, created);
            }
            Begun::Opening(slot) => {
                let deadline = turn.now + self.settings.timers.transaction_limit;
                self.jobs.insert(waiting(Wait::Opening(slot, plan), deadline)).ok_or(mgcp::TOO_MANY_WAITING)?;
            }
            Begun::Claims(charge) => {
                let wait = Wait::Claim(charge, Resume::Made(endpoint, half));
                let id = self.jobs.insert(waiting(wait, turn.now + self.decide_within())).ok_or(mgcp::TOO_MANY_WAITING)?;
                self.claim_made(turn.now, id, &charge, half);
            }
        }
        Ok(())
    }
}
