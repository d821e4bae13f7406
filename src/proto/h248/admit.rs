//! Admission of terminations: each counts from its Add to whatever ends it (the table of cases is in docs/decisions/admission.md).
//!
//! A physical termination counts in its trunk group and the pools above that, an ephemeral one in the zone and the peer of its far end.
//! What they are charged stands on the desk of the core, which the gateway has while it runs; a command that finds no place there waits
//! like one that waits for the card, and begins anew when its claim is granted.

use super::error::{Failure, NO_BANDWIDTH, NOT_ADMITTED, NOT_DECIDED};
use super::parked::{Claimed, Until};
use super::table::{NULL, Termination};
use super::transaction::Scope;
use super::{Gateway, Send};
use crate::proto::base::{Counter, EndpointIndex, HexId, Time};
use crate::proto::cac::asker::Asker;
use crate::proto::cac::share::Ticket;
use crate::proto::cac::{Cause, Charge, Class, Denial, Direction, ScopeId};
use crate::proto::codec::h248::{Action, ActionPart, Descriptor, MediaPart, StreamPart, Verb};
use crate::proto::endpoint::{Connection, ConnectionSlot, LocalMedia, Remote};
use crate::proto::mgcp::admit::{address, kbits};
use crate::proto::plan::Admission;

/// A ticket with this bit is a gateway's; those of a core's jobs are shorter.
const GATEWAY: u64 = 1 << 63;

/// Whose claim of a gateway it is: its place among [`Plan::gateways`](crate::proto::plan::Plan::gateways); `None`: no gateway's.
pub fn claimant(ticket: Ticket) -> Option<u8> {
    (ticket.0 & GATEWAY != 0).then_some((ticket.0 >> 32) as u8)
}

/// A claim that was answered, for operators: the channel, the context and what it was to be charged.
pub type Answered = (Option<EndpointIndex>, HexId, Charge);

/// The refusal of admission for this cause.
fn refusal(cause: Cause) -> Failure {
    match cause {
        Cause::Bandwidth => NO_BANDWIDTH,
        Cause::Unreachable => NOT_DECIDED,
        _ => NOT_ADMITTED,
    }
}

/// Whether an action adds a termination with the description of a far end: then its call goes to the trunk.
pub(super) fn is_described(action: &Action<'_>) -> bool {
    let remote = |part: &StreamPart<'_>| matches!(part, StreamPart::Remote(_));
    action.parts().flatten().any(|part| match part {
        ActionPart::Command(command) if command.verb == Verb::Add => command.descriptors().flatten().any(|(_, descriptor)| {
            let Descriptor::Media(media) = descriptor else { return false };
            media.parts().flatten().any(|part| match part {
                MediaPart::One(part) => remote(&part),
                MediaPart::Stream(stream) => stream.parts().flatten().any(|part| remote(&part)),
                MediaPart::State(_) => false,
            })
        }),
        _ => false,
    })
}

impl Gateway {
    /// How many slots its terminations need on the desk.
    pub fn slots(&self) -> u32 {
        self.own().connections.saturating_add(self.calls.endpoints.count())
    }

    /// The first of these.
    pub fn set_first_slot(&mut self, first: u32) {
        self.first_slot = first;
    }

    /// Where the desk has a termination.
    fn slot_of(&self, termination: Termination) -> Option<u32> {
        match termination {
            Termination::Root => None,
            Termination::Ephemeral(slot) => Some(self.first_slot.saturating_add(slot)),
            Termination::Physical(endpoint) => {
                let place = self.tables.place(endpoint)? as u32;
                Some(self.first_slot.saturating_add(self.own().connections).saturating_add(place))
            }
        }
    }

    fn charge_of(&self, termination: Termination) -> Charge {
        let slot = self.slot_of(termination);
        self.calls.desk.as_ref().zip(slot).map_or(Charge::EMPTY, |(desk, slot)| desk.charge(slot))
    }

    /// How much the call of a context matters to its controller.
    fn class(&self, context: u32) -> Class {
        match self.tables.context(context) {
            Some(context) if context.emergency => Class::Emergency,
            Some(context) if context.priority > 0 => Class::Priority,
            _ => Class::Normal,
        }
    }

    /// The charge of the first physical termination of a context.
    fn first_charge(&self, context: u32) -> Option<Charge> {
        let context = self.tables.context(context)?;
        let first = context.members().iter().find(|member| matches!(member, Termination::Physical(_)))?;
        Some(self.charge_of(*first)).filter(|charge| !charge.is_empty())
    }

    fn physical_charge(&self, admission: &Admission, scope: Scope, endpoint: EndpointIndex) -> Charge {
        let group = admission.group(endpoint);
        let known = admission.tree.get(group);
        let to_trunk = scope.described
            || self.tables.context(scope.id).is_some_and(|context| {
                context.members().iter().any(|member| match member {
                    Termination::Physical(_) => true,
                    Termination::Ephemeral(slot) => {
                        self.calls.endpoints.connections.get(*slot).is_some_and(|far| address(&far.remote).is_some())
                    }
                    Termination::Root => false,
                })
            });
        let direction = match known.and_then(|group| group.one_way) {
            Some(direction) => direction,
            None if to_trunk => Direction::Outbound,
            None => known.map_or(Direction::Inbound, |group| group.undescribed),
        };
        let class = known.map_or(Class::Normal, |group| group.class).max(self.class(scope.id));
        let local = LocalMedia { encodings: self.calls.encodings(endpoint).iter().take(1).collect(), ..LocalMedia::default() };
        admission.tree.charge(group, None, Charge::new(direction, class, kbits(&local, &Remote::Unknown)))
    }

    fn ephemeral_charge(&self, admission: &Admission, (context, described): (u32, bool), has: Charge, connection: &Connection) -> Charge {
        let like = if has.is_empty() { self.first_charge(context) } else { Some(has) };
        let described = if described { Direction::Outbound } else { Direction::Inbound };
        let direction = like.map_or(described, |like| like.direction);
        let class = like.map_or(Class::Normal, |like| like.class).max(if has.is_empty() { self.class(context) } else { Class::Normal });
        let leg = Charge::new(direction, class, kbits(&connection.local, &connection.remote));
        admission.tree.charge(ScopeId::NONE, address(&connection.remote), leg)
    }

    /// Takes the places of a physical termination that is added: its charge, or what must be claimed first.
    pub(super) fn take_physical(&mut self, now: Time, scope: Scope, endpoint: EndpointIndex) -> Result<Charge, Charge> {
        let charge = match (&self.calls.desk, &self.plan.admission) {
            (Some(_), Some(admission)) => self.physical_charge(admission, scope, endpoint),
            _ => return Ok(Charge::EMPTY),
        };
        self.calls.desk.as_mut().map_or(Ok(Charge::EMPTY), |desk| desk.take_new(now, charge))
    }

    /// The same for an ephemeral one.
    pub(super) fn take_ephemeral(&mut self, now: Time, scope: Scope, connection: &Connection) -> Result<Charge, Charge> {
        let charge = match (&self.calls.desk, &self.plan.admission) {
            (Some(_), Some(admission)) => self.ephemeral_charge(admission, (scope.id, scope.described), Charge::EMPTY, connection),
            _ => return Ok(Charge::EMPTY),
        };
        self.calls.desk.as_mut().map_or(Ok(Charge::EMPTY), |desk| desk.take_new(now, charge))
    }

    /// A termination is in its context: it is charged this.
    pub(super) fn keep_places(&mut self, termination: Termination, charge: Charge) {
        let slot = self.slot_of(termination);
        if let Some((desk, slot)) = self.calls.desk.as_mut().zip(slot) {
            desk.keep(slot, charge);
        }
    }

    /// A termination is not added after all.
    pub(super) fn drop_places(&mut self, charge: &Charge) {
        if let Some(desk) = &mut self.calls.desk {
            desk.drop_new(charge);
        }
    }

    /// A termination has left its context, and moves to no other one.
    pub(super) fn places_ended(&mut self, termination: Termination) {
        let slot = self.slot_of(termination);
        if let Some((desk, slot)) = self.calls.desk.as_mut().zip(slot) {
            desk.ended(slot);
        }
    }

    /// Takes what an ephemeral termination needs to become this connection, or says what must be claimed first, and what it has.
    pub(super) fn take_more(&mut self, now: Time, slot: ConnectionSlot, after: &Connection) -> Result<(), (Charge, Charge)> {
        let termination = Termination::Ephemeral(slot);
        let context = self.tables.row(termination).map_or(NULL, |row| row.context);
        let has = self.charge_of(termination);
        let charge = match (&self.calls.desk, &self.plan.admission) {
            (Some(_), Some(admission)) => self.ephemeral_charge(admission, (context, false), has.unleased(), after),
            _ => return Ok(()),
        };
        let place = self.slot_of(termination);
        self.calls.desk.as_mut().zip(place).map_or(Ok(()), |(desk, place)| desk.take_more(now, place, charge))
    }

    /// The change is made.
    pub(super) fn places_changed(&mut self, slot: ConnectionSlot) {
        let place = self.slot_of(Termination::Ephemeral(slot));
        if let Some((desk, place)) = self.calls.desk.as_mut().zip(place) {
            desk.changed(place);
        }
    }

    /// The change is not made.
    pub(super) fn places_unchanged(&mut self, slot: ConnectionSlot) {
        let place = self.slot_of(Termination::Ephemeral(slot));
        if let Some((desk, place)) = self.calls.desk.as_mut().zip(place) {
            desk.unchanged(place);
        }
    }

    /// Claims what a command on `target` (`None`: still to be chosen) lacks, which waits for that; one that cannot wait is refused.
    pub(super) fn claim(
        &mut self,
        now: Time,
        (charge, has): (Charge, Charge),
        (target, waits): (Option<Termination>, bool),
    ) -> Result<Option<Until>, Failure> {
        if !waits {
            self.counters.add(Counter::AdmissionRefused);
            return Err(NOT_ADMITTED);
        }
        self.claims = self.claims.wrapping_add(1);
        let ticket = Ticket(GATEWAY | u64::from(self.index) << 32 | u64::from(self.claims));
        // Only what is charged already is changed.
        let slot = target.filter(|target| matches!(target, Termination::Ephemeral(_))).and_then(|target| self.slot_of(target));
        let (Some(desk), Some(admission)) = (&mut self.calls.desk, &self.plan.admission) else { return Err(NOT_ADMITTED) };
        self.counters.add(Counter::AdmissionClaims);
        desk.claim(now, ticket, &charge, &has, slot);
        let until = now + desk.patience(admission.decide_within);
        Ok(Some(Until::Claimed(Claimed { ticket, until, charge, target, more: None })))
    }

    /// The bank or the node has answered a claim; whoever tells calls `settle` afterwards. Whose it was, if its command waits still.
    pub fn claim_answered(&mut self, now: Time, ticket: Ticket, result: Result<(), Denial>, send: Send<'_>) -> Option<Answered> {
        let (place, Claimed { charge, target, .. }) = self.parking.claim(ticket)?;
        let endpoint = match target {
            Some(Termination::Physical(endpoint)) => Some(endpoint),
            Some(termination) => self.tables.row(termination).map(|row| row.carrier),
            None => None,
        };
        let context = HexId::from_u64(self.parking.context(place).into(), 8);
        let result = result.map_err(|denial| {
            self.counters.add(Counter::AdmissionRefused);
            refusal(denial.cause)
        });
        match self.binary.take() {
            Some(mut binary) => {
                let counters = self.counters.clone();
                self.go_on(now, place, result, &mut |to, text| binary.send(&counters, to, text, send));
                self.binary = Some(binary);
            }
            None => self.go_on(now, place, result, send),
        }
        Some((endpoint, context, charge))
    }

    /// Claims that nobody has answered in time: where being alone means to admit, that is done.
    pub(super) fn claims_due(&mut self, now: Time, send: Send<'_>) {
        for _ in 0..super::parked::PARKED_MAX {
            let Some((place, Claimed { ticket, charge, .. })) = self.parking.overdue(now) else { return };
            self.counters.add(Counter::AdmissionOverdue);
            let open = self.plan.admission.as_ref().is_some_and(|admission| admission.is_open_to(&charge));
            let alone = self.calls.desk.as_mut().is_some_and(|desk| desk.overdue(ticket, open));
            self.go_on(now, place, if alone { Ok(()) } else { Err(NOT_DECIDED) }, send);
            if let Some(asker) = self.calls.desk.as_mut().and_then(|desk| desk.asker.as_mut()) {
                Asker::settle(asker);
            }
        }
    }
}
