//! CreateConnection that needs another core: an any-of name whose free endpoint may be anywhere, and a second endpoint (`Z2:`).
//!
//! An any-of name is searched core by core, beginning at home; the core that finds a free endpoint makes the connection, so no two
//! can choose the same one (G-SHD-04). Of a pair the second half is made first, then the first; both stay unseen until the second
//! one's core says that it is still there and shows it, then the first one appears: both or none (G-CRX-08, G-SHD-06).

use super::Core;
use super::admission::{NO_FIRST, Resume};
use super::command::Step;
use super::envelope::{Envelope, JobId, Message};
use super::jobs::{Job, Wait};
use super::outside::{Frames, Outside, Turn};
use super::receive::Received;
use crate::proto::base::{CoreId, Counter, EndpointIndex, Time};
use crate::proto::cac::Charge;
use crate::proto::codec::mgcp::{Command, Verb};
use crate::proto::endpoint::{ConnectionId, ConnectionSlot, Remote};
use crate::proto::mgcp::create::{self, Begun, Half};
use crate::proto::mgcp::meetings::{Parting, receives_at};
use crate::proto::mgcp::{self, CreatePlan, Created, Outcome, Refused, admit, delete};
use crate::proto::transaction::history;
use crate::proto::trunk::{Cursor, MediaAddress, Selection};

/// Runs of endpoints of a selection looked at in one search.
const SEARCH_RANGES: usize = 4096;

impl Core {
    /// An any-of CreateConnection begins its search.
    pub(super) fn start_search<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        handle: history::Handle,
        command: &Command<'_>,
    ) -> Result<Step, Refused> {
        if command.second_endpoint()?.is_some() {
            return Err(mgcp::SECOND_REFUSED);
        }
        let ordinal = self.plan.ordinal(self.id).unwrap_or(0) as u8;
        let left = self.plan.owners.len() as u8 - 1;
        let deadline = turn.now + self.settings.timers.transaction_limit;
        let (job, message) = self.park(turn, received, handle, (command.verb, command.id), None, Wait::Search(ordinal, left), deadline)?;
        self.ask(turn, ordinal, Envelope::Try { job, message });
        Ok(Step::Waiting)
    }

    /// A CreateConnection with a second endpoint begins with that one's half.
    pub(super) fn start_pair<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        handle: history::Handle,
        command: &Command<'_>,
        endpoint: EndpointIndex,
    ) -> Result<Step, Refused> {
        // Whatever can be wrong with the first half is found before anything is asked of the second.
        create::validate(&self.calls, command, endpoint, Half::First)?;
        let (ordinal, left) = match self.second(received.message, command)? {
            Second::One(other) if other == endpoint => return Err(mgcp::SECOND_REFUSED),
            Second::One(other) => (self.plan.ordinal(self.plan.owner(other)).unwrap_or(0), 0),
            Second::Any(_) => (self.plan.ordinal(self.id).unwrap_or(0), self.plan.owners.len() - 1),
        };
        let wait = Wait::Second(endpoint, ordinal as u8, left as u8);
        let deadline = turn.now + self.settings.timers.transaction_limit;
        let (job, message) = self.park(turn, received, handle, (command.verb, command.id), Some(endpoint), wait, deadline)?;
        self.ask_for_second(turn, ordinal as u8, (job, message), endpoint);
        Ok(Step::Waiting)
    }

    /// Asks a core for the second half. Where the node of a cluster must be asked for the first one, it is with the second one.
    fn ask_for_second<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        ordinal: u8,
        (job, message): (JobId, Message),
        endpoint: EndpointIndex,
    ) {
        let first = self.number_first(admit::first_of_pair(&self.calls, endpoint));
        self.ask(turn, ordinal, Envelope::Pair { job, message, first });
    }

    fn ask<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, ordinal: u8, envelope: Envelope) {
        self.must_tell(turn, self.plan.owner_at(usize::from(ordinal)), envelope);
    }

    /// Another core's search has come here.
    pub(super) fn handle_try<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, core: CoreId, job: JobId, message: Message) {
        let result = self.parsed(turn, message, |here, turn, command| {
            let ranges = here.settings.agent(message.agent).is_some_and(|agent| agent.ranges);
            let selection = here.plan.topology.resolve(command.endpoint.local, ranges).map_err(|_| mgcp::ENDPOINT_UNKNOWN)?;
            let endpoint = here.find_idle(&selection, None).ok_or(mgcp::NOTHING_FREE)?;
            if !here.may_make(turn, (core, job, message), endpoint, Half::Whole)? {
                return Ok(());
            }
            let received = Received::of(turn, message)?;
            here.make_for(turn, (core, job, received), command, endpoint, Half::Whole)
        });
        if let Err(refused) = result {
            self.must_tell(turn, core, Envelope::TryFailed { job, refused });
        }
    }

    /// Another core wants the second half of a pair made here.
    pub(super) fn handle_pair<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        (core, job, message): (CoreId, JobId, Message),
        first: (u64, Charge),
    ) {
        self.admissions.first = first;
        let result = self.parsed(turn, message, |here, turn, command| {
            let first = here.plan.topology.lookup(command.endpoint.local);
            let endpoint = match here.second(message, command)? {
                Second::One(endpoint) => endpoint,
                Second::Any(selection) => here.find_idle(&selection, first).ok_or(mgcp::NOTHING_FREE)?,
            };
            if !here.may_make(turn, (core, job, message), endpoint, Half::Second)? {
                return Ok(());
            }
            let received = Received::of(turn, message)?;
            here.make_for(turn, (core, job, received), command, endpoint, Half::Second)
        });
        self.admissions.first = NO_FIRST;
        if let Err(refused) = result {
            self.must_tell(turn, core, Envelope::TryFailed { job, refused });
        }
    }

    /// An idle endpoint of this core among `selection`, other than `except`.
    fn find_idle(&mut self, selection: &Selection, except: Option<EndpointIndex>) -> Option<EndpointIndex> {
        let mut cursor = Cursor::default();
        for _ in 0..SEARCH_RANGES {
            let range = selection.next(&self.plan.topology, &mut cursor, u32::MAX)?;
            let found = self.calls.endpoints.find_idle(range, except);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    pub(super) fn handle_try_failed<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId, refused: Refused) {
        self.decline_first(id);
        let Some(job) = self.jobs.get(id).copied() else { return self.counters.add(Counter::EnvelopeStray) };
        let next = |ordinal: u8| (ordinal + 1) % self.plan.owners.len() as u8;
        match job.wait {
            Wait::Search(ordinal, left) if refused == mgcp::NOTHING_FREE && left > 0 => {
                let ordinal = next(ordinal);
                self.jobs.wait(id, Wait::Search(ordinal, left - 1), job.deadline);
                self.ask(turn, ordinal, Envelope::Try { job: id, message: job.received.message });
            }
            Wait::Second(endpoint, ordinal, left) if refused == mgcp::NOTHING_FREE && left > 0 => {
                let ordinal = next(ordinal);
                self.jobs.wait(id, Wait::Second(endpoint, ordinal, left - 1), job.deadline);
                self.ask_for_second(turn, ordinal, (id, job.received.message), endpoint);
            }
            Wait::Search(..) | Wait::Second(..) => {
                self.jobs.remove(id);
                self.end(turn, &job, Outcome::Refused(refused));
            }
            Wait::Joining(..) => {
                self.jobs.remove(id);
                self.undo(turn, &job);
                self.end(turn, &job, Outcome::Refused(refused));
            }
            Wait::Late(answers) => self.one_answer_less(id, &job, answers),
            _ => self.counters.add(Counter::EnvelopeStray),
        }
    }

    pub(super) fn handle_made<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId, created: Created) {
        let Some(job) = self.jobs.get(id).copied() else {
            self.decline_first(id);
            return self.take_down_second(turn, Some(created));
        };
        if !matches!(job.wait, Wait::Second(..)) {
            self.decline_first(id);
        }
        match job.wait {
            Wait::Search(..) => {
                self.jobs.remove(id);
                let domain = self.parsed(turn, job.received.message, |core, _, command| mgcp::domain_of(&core.plan, &command.endpoint));
                self.end(turn, &job, Outcome::Created { created, chosen: Some(domain.unwrap_or(0)), second: None });
            }
            Wait::Second(endpoint, ..) => {
                self.jobs.remove(id);
                self.accept_first(id);
                self.make_first(turn, job, endpoint, created);
                self.settle_first();
            }
            Wait::Late(answers) => {
                // The command was answered without it.
                self.take_down_second(turn, Some(created));
                self.one_answer_less(id, &job, answers);
            }
            _ => self.counters.add(Counter::EnvelopeStray),
        }
    }

    /// The second half is made: now the first, checked again because time has passed (G-RQN-06).
    pub(super) fn make_first<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        job: Job,
        endpoint: EndpointIndex,
        second: Created,
    ) {
        // A claim has a shorter time than what comes after it.
        let job = Job { deadline: turn.now + self.settings.timers.transaction_limit, ..job };
        let result = self.parsed(turn, job.received.message, |core, turn, command| {
            mgcp::in_service(&core.calls, endpoint)?;
            let mut plan = create::validate(&core.calls, command, endpoint, Half::First)?;
            Ok((create::begin(&mut core.calls, turn.now, &mut plan, command)?, plan))
        });
        match result {
            Ok((Begun::Ready(slot, first, _), plan)) => self.join_halves(turn, &job, slot, plan, first, second),
            Ok((Begun::Opening(slot), plan)) => {
                let waiting = Job { wait: Wait::First(slot, plan, second), ..job };
                if self.jobs.insert(waiting).is_none() {
                    self.undo(turn, &waiting);
                    self.end(turn, &waiting, Outcome::Refused(mgcp::TOO_MANY_WAITING));
                }
            }
            Ok((Begun::Claims(charge), _)) => {
                let wait = Wait::Claim(charge, Resume::First(endpoint, second));
                match self.jobs.insert(Job { wait, deadline: turn.now + self.decide_within(), ..job }) {
                    Some(id) => self.claim(turn.now, id, &charge, &Charge::EMPTY, None),
                    None => {
                        self.take_down_second(turn, Some(second));
                        self.end(turn, &job, Outcome::Refused(mgcp::TOO_MANY_WAITING));
                    }
                }
            }
            Err(refused) => {
                self.take_down_second(turn, Some(second));
                self.end(turn, &job, Outcome::Refused(refused));
            }
        }
    }

    /// Both halves are there: the second one is to be shown, and to learn of the first.
    pub(super) fn join_halves<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        job: &Job,
        slot: ConnectionSlot,
        plan: CreatePlan,
        first: Created,
        second: Created,
    ) {
        let joining = Job { wait: Wait::Joining(slot, plan, first, second), ..*job };
        match self.jobs.insert(joining) {
            Some(id) => {
                let other = (first.endpoint, first.connection);
                let at = first.media_address();
                let join = Envelope::Join { job: id, endpoint: second.endpoint, connection: second.connection, other, at };
                self.must_tell(turn, self.plan.owner(second.endpoint), join);
            }
            None => {
                self.undo(turn, &joining);
                self.end(turn, &joining, Outcome::Refused(mgcp::TOO_MANY_WAITING));
            }
        }
    }

    /// The second half is shown: the first one is too, and the command is answered.
    pub(super) fn halves_joined<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        job: &Job,
        slot: ConnectionSlot,
        plan: CreatePlan,
        first: Created,
        second: Created,
    ) {
        plan.room().give_back(&mut self.calls);
        let other = (second.endpoint, second.connection);
        let entity = self.parsed(turn, job.received.message, |core, turn, command| {
            Ok(create::joined(&mut core.calls, turn.now, slot, &plan, other, command))
        });
        create::meet(&mut self.calls, turn.now, slot, second.media_address());
        self.note_entity(first.endpoint, entity.unwrap_or(false));
        let chosen = self.second_chosen(turn, job);
        let second = Some((second.endpoint, second.connection, chosen));
        self.end(turn, job, Outcome::Created { created: first, chosen: None, second });
    }

    /// Whether the gateway chose the second endpoint: the domain name to say it with.
    fn second_chosen<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, job: &Job) -> Option<u8> {
        let chosen = |core: &mut Core, _: &mut Turn<'_, F, O>, command: &Command<'_>| {
            let name = command.second_endpoint()?.filter(|name| name.has_any_of());
            name.map(|name| mgcp::domain_of(&core.plan, &name)).transpose()
        };
        self.parsed(turn, job.received.message, chosen).unwrap_or(None)
    }

    /// The connection that was made on another core is not wanted after all.
    pub(super) fn take_down_second<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, second: Option<Created>) {
        if let Some(Created { endpoint, connection, .. }) = second {
            self.must_tell(turn, self.plan.owner(endpoint), Envelope::TakeDown { endpoint, connection });
        }
    }

    pub(super) fn handle_join<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        (core, job): (CoreId, JobId),
        endpoint: EndpointIndex,
        id: ConnectionId,
        (other, at): ((EndpointIndex, ConnectionId), MediaAddress),
    ) {
        let slot = self.half(endpoint, id);
        let answer = match slot.and_then(|slot| self.calls.endpoints.connections.get_mut(slot)) {
            Some(connection) => {
                connection.pending = false;
                connection.remote = Remote::Local(other.0, other.1);
                Envelope::Applied { job }
            }
            // A deletion, or the end of the line, has taken it meanwhile.
            None => Envelope::TryFailed { job, refused: mgcp::ABORTED },
        };
        if let Some(slot) = slot {
            create::meet(&mut self.calls, turn.now, slot, at);
        }
        self.must_tell(turn, core, answer);
    }

    /// A connection that was told of another one by a description of this gateway's own form (RFC 3435 3.4.2) tells that one where it receives;
    /// before that, those whose other halves have gone are told.
    pub(super) fn send_meetings<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) -> bool {
        if let Some(parting) = self.calls.meetings.take_parting() {
            let owner = self.plan.owner(parting.endpoint);
            if self.unsent_to.contains(owner) {
                self.calls.meetings.hold_parting(parting);
            } else {
                self.must_tell(turn, owner, Envelope::HalfGone(parting));
            }
            return true;
        }
        let Some(slot) = self.calls.meetings.take() else { return false };
        if let Some(connection) = self.calls.endpoints.connections.get(slot).copied()
            && let (Remote::Local(endpoint, id), Some(at)) = (connection.remote, receives_at(&connection))
        {
            let (owner, other) = (self.plan.owner(endpoint), (connection.endpoint, connection.id));
            if self.unsent_to.contains(owner) {
                // They wait for room, each connection once; those on other cores meet meanwhile.
                self.calls.meetings.hold(slot);
            } else {
                self.must_tell(turn, owner, Envelope::Meet { endpoint, connection: id, other, at, answer: true });
            }
        }
        true
    }

    /// Another connection, `other`, receives there. Which of the two was described first does not matter: each learns of the other.
    pub(super) fn handle_meet<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        (endpoint, id): (EndpointIndex, ConnectionId),
        other: (EndpointIndex, ConnectionId),
        at: MediaAddress,
        answer: bool,
    ) {
        let slot = if id == ConnectionId::default() { self.only_half(endpoint) } else { self.half(endpoint, id) };
        let found = slot.and_then(|slot| Some((slot, *self.calls.endpoints.connections.get(slot)?)));
        let Some((slot, connection)) = found.filter(|(_, connection)| !connection.pending) else { return };
        let Some(here) = receives_at(&connection) else { return };
        if matches!(connection.remote, Remote::Local(endpoint, id) if endpoint == other.0 && (id == other.1 || id == ConnectionId::default()))
        {
            create::meet(&mut self.calls, turn.now, slot, at);
        }
        if answer {
            let this = (endpoint, connection.id);
            let told = Envelope::Meet { endpoint: other.0, connection: other.1, other: this, at: here, answer: false };
            self.must_tell(turn, self.plan.owner(other.0), told);
        }
    }

    /// The other half of a connection here has gone. Whether it is the one that it sends to, the card knows.
    pub(super) fn handle_half_gone(&mut self, now: Time, Parting { endpoint, at }: Parting) {
        let Some(state) = self.calls.endpoints.get(endpoint) else { return };
        for slot in state.connection_slots() {
            if self.calls.endpoints.connections.get(slot).is_some_and(|connection| matches!(connection.remote, Remote::Local(..))) {
                self.calls.card.half_gone(now, endpoint, slot, (at.address, at.port).into());
            }
        }
    }

    pub(super) fn handle_take_down<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, endpoint: EndpointIndex, id: ConnectionId) {
        if let Some(slot) = self.half(endpoint, id) {
            delete::disconnect(&mut self.calls, turn.now, slot);
            self.note_calls();
        }
    }

    /// The slot of a connection of this core, seen or unseen.
    fn half(&self, endpoint: EndpointIndex, id: ConnectionId) -> Option<ConnectionSlot> {
        let mut slots = self.calls.endpoints.get(endpoint)?.connection_slots();
        slots.find(|&slot| self.calls.endpoints.connections.get(slot).is_some_and(|connection| connection.id == id))
    }

    /// The slot of the only connection that an endpoint of this core has.
    fn only_half(&self, endpoint: EndpointIndex) -> Option<ConnectionSlot> {
        let mut slots = self.calls.endpoints.get(endpoint)?.connection_slots();
        slots.next().filter(|_| slots.next().is_none())
    }

    /// The answer of another core did not come within the transaction limit.
    pub(super) fn answer_overdue<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId, job: &Job) {
        self.counters.add(Counter::TimeLimit);
        self.stop_asking(turn, id, job, mgcp::TIME_LIMIT);
    }

    /// Answers a command that waits for another core's answer, which will come too late.
    pub(super) fn stop_asking<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId, job: &Job, refused: Refused) {
        self.undo(turn, job);
        self.refuse_early(turn, id, job, refused, 1);
    }

    fn second(&self, message: Message, command: &Command<'_>) -> Result<Second, Refused> {
        let name = command.second_endpoint()?.ok_or(mgcp::SECOND_REFUSED)?;
        mgcp::domain_of(&self.plan, &name)?;
        if let Some(endpoint) = self.plan.topology.lookup(name.local) {
            return Ok(Second::One(endpoint));
        }
        let ranges = self.settings.agent(message.agent).is_some_and(|agent| agent.ranges);
        let selection = self.plan.topology.resolve(name.local, ranges).map_err(|_| mgcp::ENDPOINT_UNKNOWN)?;
        if selection.all_of() || !selection.any_of() || command.verb != Verb::Crcx {
            return Err(mgcp::ALL_OF_REFUSED);
        }
        Ok(Second::Any(selection))
    }
}

/// What `Z2:` names.
enum Second {
    One(EndpointIndex),
    Any(Selection),
}

#[cfg(test)]
mod tests {
    use super::super::second::{Ring, second_core};
    use super::*;
    use crate::proto::endpoint::{Connection, LocalMedia};
    use std::time::Duration;

    /// However often connections are told of each other while the core of one stands still: nothing piles up, and each hears once.
    #[test]
    fn connections_that_meet_do_not_pile_up_before_a_stalled_core() {
        let mut core = second_core(|_| {});
        let first = core.calls.endpoints.ranges().next().unwrap().first;
        let elsewhere = core.plan.topology.endpoints().iter().find(|&endpoint| !core.calls.endpoints.owns(endpoint)).unwrap();
        let local = LocalMedia { port: 4000, ..LocalMedia::default() };
        let made = [first, first + 1].map(|endpoint| {
            let remote = Remote::Local(elsewhere, ConnectionId::default());
            let connection = Connection { endpoint: EndpointIndex(endpoint), remote, local, ..Connection::default() };
            core.calls.endpoints.connections.insert(connection).unwrap()
        });
        let mut ring = Ring::default();
        for _ in 0..1000 {
            made.iter().for_each(|&slot| core.calls.meetings.note(slot));
            ring.turn(&mut core, Duration::from_millis(1));
        }
        assert!(core.unsent.len() == 1 && core.calls.meetings.count() <= 2);
        ring.room = 10;
        for at in 2..6 {
            ring.turn(&mut core, Duration::from_millis(at));
        }
        let met = ring.told.iter().filter(|envelope| matches!(envelope, Envelope::Meet { answer: true, .. })).count();
        assert!(core.unsent.is_empty() && core.calls.meetings.count() == 0 && (2..=3).contains(&met), "{met}");
    }

    /// However many connections end while the core of their other halves stands still: so many are told as there may be connections, each before
    /// whoever receives there next.
    #[test]
    fn halves_that_have_gone_do_not_pile_up_before_a_stalled_core() {
        let mut core = second_core(|_| {});
        let first = core.calls.endpoints.ranges().next().unwrap().first;
        let elsewhere = core.plan.topology.endpoints().iter().find(|&endpoint| !core.calls.endpoints.owns(endpoint)).unwrap();
        let local = LocalMedia { port: 4000, ..LocalMedia::default() };
        let remote = Remote::Local(elsewhere, ConnectionId::default());
        let connection = Connection { endpoint: EndpointIndex(first), remote, local, ..Connection::default() };
        let mut ring = Ring::default();
        let most = core.plan.limits.connections as usize;
        for _ in 0..most + 100 {
            let slot = core.calls.endpoints.connect(connection).unwrap();
            core.calls.meetings.note(slot);
            delete::disconnect(&mut core.calls, Time::ZERO, slot);
            ring.turn(&mut core, Duration::from_millis(1));
        }
        assert_eq!((core.unsent.len(), core.calls.meetings.partings()), (1, most));
        assert_eq!(core.counters.get(Counter::PartingsDropped), 99);
        let slot = core.calls.endpoints.connect(connection).unwrap();
        core.calls.meetings.note(slot);
        ring.room = most + 10;
        for at in 2..6 {
            ring.turn(&mut core, Duration::from_millis(at));
        }
        let place = |envelope: fn(&Envelope) -> bool| ring.told.iter().rposition(envelope);
        let gone = |envelope: &Envelope| matches!(envelope, Envelope::HalfGone(..));
        let met = |envelope: &Envelope| matches!(envelope, Envelope::Meet { .. });
        assert_eq!((ring.told.iter().filter(|e| gone(e)).count(), ring.told.iter().filter(|e| met(e)).count()), (most + 1, 1));
        assert!(place(gone) < place(met) && core.calls.meetings.partings() == 0);
    }
}
