//! Admission of calls on a core: claims of commands that found no place here, and on the lead core the bank that has the others
//! (docs/decisions/admission.md).

use super::Core;
use super::envelope::{Envelope, JobId};
use super::jobs::{Job, Owner, Wait};
use super::outside::{Frames, Outside, Turn};
use crate::proto::base::{CoreId, Counter, EndpointIndex, HexId, Time};
use crate::proto::cac::asker::{Asker, Call, FromLink, ToLink};
use crate::proto::cac::share::{Bank, Ticket, ToBank, ToHolder};
use crate::proto::cac::{Amount, Amounts, Cause, Charge, Class, Denial, Denied, ScopeId};
use crate::proto::endpoint::ConnectionSlot;
use crate::proto::h248;
use crate::proto::mgcp::create::Half;
use crate::proto::mgcp::{self, Created, Outcome, Refused};
use std::collections::VecDeque;
use std::time::Duration;

/// How often the bank hears of what is in use, when it changes.
const TELL_EVERY: Duration = Duration::from_millis(250);
/// Refusals remembered for operators, per core.
const DENIALS_MAX: usize = 64;

/// What goes on when a claim is granted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Resume {
    /// The command starts over.
    Start,
    /// So does the change of this connection.
    Change(ConnectionSlot),
    /// A connection for a command of another core is made.
    Made(EndpointIndex, Half),
    /// The first half of a pair is made.
    First(EndpointIndex, Created),
}

/// No first half that is asked for with the second one.
pub(super) const NO_FIRST: (u64, Charge) = (0, Charge::EMPTY);

/// A refusal, for operators who ask why (R46).
#[derive(Clone, Copy, Debug)]
pub struct DenialView {
    /// When.
    pub at: Time,
    /// The endpoint.
    pub endpoint: Option<EndpointIndex>,
    /// The call.
    pub call: HexId,
    /// What it wanted.
    pub charge: Charge,
    /// Why not.
    pub denial: Denial,
}

/// What operators see of admission on one core.
#[derive(Clone, Debug, Default)]
pub struct AdmissionView {
    /// In use, by scope.
    pub used: Vec<Amounts>,
    /// Held, used or not, by scope.
    pub held: Vec<Amounts>,
    /// New calls that found their places, by scope.
    pub begun: Vec<u64>,
    /// Refused, by scope.
    pub denied: Vec<Denied>,
    /// The last refusals, oldest first.
    pub denials: Vec<DenialView>,
    /// On the lead core: places given to all cores, and whether each call claims, by scope.
    pub given: Vec<(Amounts, bool)>,
}

/// What a core remembers of admission beside its desk.
pub(super) struct Admissions {
    /// On the lead core.
    bank: Option<Bank>,
    denied: Vec<Denied>,
    denials: VecDeque<DenialView>,
    tell_at: Time,
    /// The first half of the pair whose second one is being made here.
    pub first: (u64, Charge),
    /// First halves of this core that were granted with their second ones, until those are made.
    granted: Vec<(JobId, Call, Charge)>,
}

impl Admissions {
    pub fn new(bank: Option<Bank>, scopes: usize) -> Admissions {
        let denied = vec![Denied::default(); scopes];
        Admissions {
            bank,
            denied,
            denials: VecDeque::with_capacity(DENIALS_MAX),
            tell_at: Time::NEVER,
            first: NO_FIRST,
            granted: Vec::new(),
        }
    }

    /// When the bank is to hear of changes.
    pub fn deadline(&self) -> Time {
        self.tell_at
    }

    /// On the lead core: scopes of which much is in use.
    pub fn warnings(&self) -> Vec<(ScopeId, Amount)> {
        self.bank.iter().flat_map(Bank::warnings).collect()
    }

    pub fn set_limits(&mut self, limits: &[crate::proto::cac::Limits]) {
        if let Some(bank) = &mut self.bank {
            bank.set_limits(limits);
        }
    }
}

fn ticket(job: JobId) -> Ticket {
    Ticket(u64::from(job.generation) << 16 | u64::from(job.slot))
}

fn job_of(ticket: Ticket) -> JobId {
    JobId { slot: ticket.0 as u16, generation: (ticket.0 >> 16) as u32 }
}

impl Core {
    /// How long a claim is waited for; see [`Desk::patience`](crate::proto::cac::desk::Desk::patience).
    pub(super) fn decide_within(&self) -> Duration {
        let (Some(admission), Some(desk)) = (&self.plan.admission, &self.calls.desk) else { return Duration::ZERO };
        desk.patience(admission.decide_within)
    }

    /// Claims for a command that waits as `job`, which changes the connection in `slot` when there is one.
    pub(super) fn claim(&mut self, now: Time, job: JobId, charge: &Charge, has: &Charge, slot: Option<ConnectionSlot>) {
        self.counters.add(Counter::AdmissionClaims);
        if let Some(desk) = &mut self.calls.desk {
            desk.claim(now, ticket(job), charge, has, slot);
        }
    }

    /// A first half is to be charged this: its number, where the node of a cluster must be asked for it.
    pub(super) fn number_first(&mut self, charge: Charge) -> (u64, Charge) {
        let asks = !charge.is_empty() && charge.class != Class::Emergency;
        self.asker().filter(|_| asks).map_or(NO_FIRST, |asker| (asker.next(&charge).number(), charge))
    }

    /// Claims for a half that another core wants; for a second one, in a cluster, with the first.
    pub(super) fn claim_made(&mut self, now: Time, job: JobId, charge: &Charge, half: Half) {
        let (number, first) = std::mem::replace(&mut self.admissions.first, NO_FIRST);
        match self.asker() {
            Some(asker) if half == Half::Second && !first.is_empty() => {
                asker.ask_both(now, ticket(job), charge, (Call::of(number, &first), first));
                self.counters.add(Counter::AdmissionClaims);
            }
            _ => self.claim(now, job, charge, &Charge::EMPTY, None),
        }
    }

    /// What was granted for a second half was for the first one too: its core hears of that before it hears that the second one is made.
    fn hand_over<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId) {
        let Some((call, charge)) = self.asker().and_then(Asker::take_with) else { return };
        match self.jobs.get(id).map(|job| job.owner) {
            Some(Owner::There(core, job)) => {
                self.must_tell(turn, core, Envelope::FirstGranted { job, first: (call.number(), charge) });
            }
            _ => {
                if let Some(asker) = self.asker() {
                    asker.decline(call);
                }
            }
        }
    }

    /// A first half of this core was granted with its second one, about which the next thing that is heard decides.
    pub(super) fn first_granted(&mut self, job: JobId, (number, charge): (u64, Charge)) {
        self.admissions.granted.push((job, Call::of(number, &charge), charge));
    }

    fn take_first(&mut self, job: JobId) -> Option<(Call, Charge)> {
        let granted = &mut self.admissions.granted;
        let place = granted.iter().position(|(of, ..)| *of == job)?;
        let (_, call, charge) = granted.swap_remove(place);
        Some((call, charge))
    }

    /// The first half of a pair is made now, with what was granted for it; [`Core::settle_first`] comes next.
    pub(super) fn accept_first(&mut self, job: JobId) {
        let first = self.take_first(job);
        if let (Some(asker), Some((call, charge))) = (self.asker(), first) {
            asker.accept(call, charge);
        }
    }

    /// It is made, or is not.
    pub(super) fn settle_first(&mut self) {
        if let Some(asker) = self.asker() {
            asker.settle();
        }
    }

    /// A first half is not made.
    pub(super) fn decline_first(&mut self, job: JobId) {
        let first = self.take_first(job);
        if let (Some(asker), Some((call, _))) = (self.asker(), first) {
            asker.decline(call);
        }
    }

    /// In a cluster: the next message for the node, to be taken away with [`Core::sent_to_node`].
    pub fn for_node(&self) -> Option<ToLink> {
        self.calls.desk.as_ref()?.asker.as_ref()?.first()
    }

    /// The message for the node is on its way.
    pub fn sent_to_node(&mut self) {
        if let Some(asker) = self.asker() {
            asker.sent();
        }
    }

    /// In a cluster: what the node says.
    pub fn handle_node<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, message: FromLink) {
        let Some((ticket, _, result)) = self.asker().and_then(|asker| asker.handle(message)) else { return };
        self.claim_answered(turn, ticket, result);
        if let Some(asker) = self.asker() {
            asker.settle();
        }
        self.deliver(turn);
    }

    /// Sends the next message about places; false when there is none.
    pub(super) fn send_places<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) -> bool {
        let Some(desk) = &mut self.calls.desk else { return false };
        if desk.holder.has_news() && self.admissions.tell_at == Time::NEVER {
            self.admissions.tell_at = turn.now + TELL_EVERY;
        }
        if let Some(message) = desk.holder.poll() {
            self.must_tell(turn, self.plan.lead(), Envelope::ToBank(message));
            return true;
        }
        let Some((holder, message)) = self.admissions.bank.as_mut().and_then(Bank::poll) else { return false };
        let owner = self.plan.owner_at(holder);
        self.must_tell(turn, owner, Envelope::ToHolder(message));
        true
    }

    /// Tells the bank what is in use, when it is time.
    pub(super) fn handle_admissions(&mut self, now: Time) {
        // While something waits for room on the way there it would only pile up: the newest is told when there is room.
        if self.admissions.tell_at <= now && self.unsent_to.contains(self.plan.lead()) {
            self.admissions.tell_at = now + TELL_EVERY;
        } else if self.admissions.tell_at <= now {
            self.admissions.tell_at = Time::NEVER;
            if let Some(desk) = &mut self.calls.desk {
                desk.holder.tell();
            }
        }
    }

    pub(super) fn handle_to_bank(&mut self, now: Time, from: CoreId, message: ToBank) {
        let holder = self.plan.ordinal(from);
        if let (Some(bank), Some(holder)) = (&mut self.admissions.bank, holder) {
            bank.handle(now, holder, message);
        }
    }

    pub(super) fn handle_to_holder<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, message: ToHolder) {
        let Some((ticket, wanted, result)) = self.calls.desk.as_mut().and_then(|desk| desk.holder.handle(message)) else { return };
        self.claim_answered(turn, ticket, result);
        if let Some(desk) = &mut self.calls.desk {
            desk.holder.settle(&wanted);
        }
    }

    fn claim_answered<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, ticket: Ticket, result: Result<(), Denial>) {
        if let Some(index) = h248::claimant(ticket) {
            let answered = self.gateway_claim_answered(turn, (index, ticket), result);
            if let (Some((endpoint, call, charge)), Err(denial)) = (answered, result) {
                self.note_denial(DenialView { at: turn.now, endpoint, call, charge, denial });
            }
            return;
        }
        let id = job_of(ticket);
        // A command that was aborted or answered meanwhile has left the table; its places are spare.
        if let Some(Job { wait: Wait::Claim(charge, resume), .. }) = self.jobs.get(id).copied() {
            match result {
                Ok(()) => {
                    self.hand_over(turn, id);
                    self.resume(turn, id, resume);
                }
                Err(denial) => self.deny(turn, id, charge, denial),
            }
        }
    }

    /// A claim was granted: the command goes on, and takes what it claimed.
    fn resume<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId, resume: Resume) {
        if let Resume::Start | Resume::Change(_) = resume {
            return self.start_over(turn, id);
        }
        let Some(job) = self.jobs.remove(id) else { return };
        match (resume, job.owner) {
            (Resume::First(endpoint, second), _) => self.make_first(turn, job, endpoint, second),
            (Resume::Made(endpoint, half), Owner::There(core, coordinator)) => {
                let busy = self.calls.endpoints.get(endpoint).is_some_and(|state| state.connection_count() > 0);
                if half == Half::Whole && busy {
                    // It was idle; another command has taken it meanwhile.
                    return self.handle_try(turn, core, coordinator, job.received.message);
                }
                let made = self.parsed(turn, job.received.message, |here, turn, command| {
                    here.make_for(turn, (core, coordinator, job.received), command, endpoint, half)
                });
                if let Err(refused) = made {
                    self.end(turn, &job, Outcome::Refused(refused));
                }
            }
            _ => {}
        }
    }

    /// A command is refused for want of places.
    fn deny<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId, charge: Charge, denial: Denial) {
        let Some(job) = self.jobs.get(id).copied() else { return };
        self.counters.add(Counter::AdmissionRefused);
        let call = self.parsed(turn, job.received.message, |_, _, command| Ok(command.call()?.unwrap_or(HexId::NONE)));
        let call = call.unwrap_or(HexId::NONE);
        self.note_denial(DenialView { at: turn.now, endpoint: job.endpoint, call, charge, denial });
        self.refuse_claim(turn, id, denial.cause);
    }

    /// Remembers a refusal for operators.
    fn note_denial(&mut self, view: DenialView) {
        if let Some(denied) = self.admissions.denied.get_mut(usize::from(view.denial.scope.0)) {
            denied.count(view.denial.cause, view.charge.class);
        }
        if self.admissions.denials.len() >= DENIALS_MAX {
            self.admissions.denials.pop_front();
        }
        self.admissions.denials.push_back(view);
    }

    /// No answer came in time: a core, or in a cluster the node, stands still. Where the rule of being alone is to admit that is done.
    pub(super) fn claim_overdue<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId) {
        self.counters.add(Counter::AdmissionOverdue);
        let (resume, open) = match (self.jobs.get(id).map(|job| job.wait), &self.plan.admission) {
            (Some(Wait::Claim(charge, resume)), Some(admission)) => (Some(resume), admission.is_open_to(&charge)),
            _ => (None, false),
        };
        let resume = resume.filter(|_| self.calls.desk.as_mut().is_some_and(|desk| desk.overdue(ticket(id), open)));
        let Some(resume) = resume else { return self.refuse_claim(turn, id, Cause::Unreachable) };
        self.hand_over(turn, id);
        self.resume(turn, id, resume);
        if let Some(asker) = self.asker() {
            asker.settle();
        }
    }

    /// In a cluster: the way to the node.
    fn asker(&mut self) -> Option<&mut Asker> {
        self.calls.desk.as_mut()?.asker.as_mut()
    }

    fn refuse_claim<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, id: JobId, cause: Cause) {
        let Some(job) = self.jobs.remove(id) else { return };
        if let Wait::Claim(_, Resume::First(_, second)) = job.wait {
            self.take_down_second(turn, Some(second));
        }
        let refused = mgcp::admission_refused(cause);
        let code = self.settings.agent(job.received.message.agent).and_then(|agent| agent.admission_code);
        self.end(turn, &job, Outcome::Refused(Refused { code: code.unwrap_or(refused.code), ..refused }));
    }

    /// What operators see.
    pub(super) fn admission_view(&self) -> AdmissionView {
        let Some(desk) = &self.calls.desk else { return AdmissionView::default() };
        let scopes = || (0..self.admissions.denied.len()).map(|place| ScopeId(place as u16));
        let bank = self.admissions.bank.as_ref();
        AdmissionView {
            used: scopes().map(|scope| desk.holder.used(scope)).collect(),
            held: scopes().map(|scope| desk.holder.held(scope)).collect(),
            begun: scopes().map(|scope| desk.holder.begun(scope)).collect(),
            denied: self.admissions.denied.clone(),
            denials: self.admissions.denials.iter().copied().collect(),
            given: bank.map_or(Vec::new(), |bank| scopes().map(|scope| (bank.given(scope), bank.is_scarce(scope))).collect()),
        }
    }
}
