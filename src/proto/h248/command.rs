//! The commands on one termination: Add, Modify, Move, Subtract, ServiceChange (RFC 3525 7.2). Each checks everything before it changes
//! anything; what the card refuses afterwards is undone (TXN-03).

use super::description;
use super::error::*;
use super::event::Wanted;
use super::media::{self, Before, ChosenRemote, MediaPlan, Side};
use super::modify::fill;
use super::name::{self, Room};
use super::parked::{self, Shown, Undo, Until, Waiting};
use super::table::{NULL, Row, Termination};
use super::transaction::Scope;
use super::{Gateway, TERMINATIONS_PER_CONTEXT};
use crate::proto::base::{Counter, EndpointIndex, HexId, Time};
use crate::proto::cac::Charge;
use crate::proto::codec::h248::{Audit, Command, Descriptor, Media, NAME_MAX, ServiceState, TerminationId, Token, Verb, Writer};
use crate::proto::endpoint::{Connection, ConnectionSlot, LocalMedia, NO_CONNECTION};
use crate::proto::mgcp::create::{Half, media as ordered};
use crate::proto::trunk::{Answer, MediaAddress, MediaReport};

/// The descriptors of a command that is not an audit.
#[derive(Default)]
pub(super) struct Given<'a> {
    media: Option<Media<'a>>,
    pub audit: Option<Audit>,
    pub wanted: Wanted<'a>,
}

impl<'a> Given<'a> {
    /// Reads them; what the gateway does not do is refused before anything is changed.
    fn read(command: &Command<'a>, termination: Option<Termination>) -> Result<Given<'a>, Failure> {
        let mut given = Given::default();
        for descriptor in command.descriptors() {
            match descriptor?.1 {
                Descriptor::Media(media) => given.media = Some(media),
                Descriptor::Audit(audit) => given.audit = Some(audit),
                Descriptor::Events(events) => given.wanted.events = Some(events),
                Descriptor::Signals(_) if termination == Some(Termination::Root) => return Err(DESCRIPTOR_ILLEGAL),
                Descriptor::Signals(signals) => given.wanted.signals = Some(signals),
                Descriptor::EventBuffer(events) => given.wanted.buffer = Some(events),
                Descriptor::DigitMap(map) => given.wanted.digit_map = Some(map),
                Descriptor::Modem(_) | Descriptor::Mux(_) => return Err(DESCRIPTOR_UNSUPPORTED),
                _ => return Err(DESCRIPTOR_ILLEGAL),
            }
        }
        Ok(given)
    }
}

impl Gateway {
    /// One command on one termination (`None`: to be chosen) with its reply written, unless it `waits` for the card, where it may.
    pub(super) fn one(
        &mut self,
        now: Time,
        command: &Command<'_>,
        scope: Scope,
        (target, waits): (Option<Termination>, bool),
        w: &mut Writer<'_>,
    ) -> Result<Option<Until>, Failure> {
        if matches!(command.verb, Verb::Add | Verb::Modify | Verb::Move) && target.is_some_and(|target| self.stands_still(target)) {
            return Err(CORE_SILENT);
        }
        match (command.verb, target) {
            (Verb::Add, target) => {
                let first = self.tables.context(scope.id).is_some_and(|context| context.members().is_empty());
                let done = self.add(now, command, scope, (target, waits), w);
                // What waits is told of when it has ended.
                if !matches!(done, Ok(Some(_))) {
                    self.note_add(now, first, false);
                }
                done
            }
            (Verb::Modify, Some(target)) => self.modify(now, command, (target, waits), w),
            (Verb::Move, Some(target)) => self.change_context(now, command, scope, (target, waits), w),
            (Verb::Subtract, Some(target)) => self.subtract(now, command, target, w).map(|()| None),
            (Verb::AuditValue | Verb::AuditCapability, Some(target)) => self.audit(now, command, target, w).map(|()| None),
            (Verb::ServiceChange, Some(target)) => self.service_change(now, command, target, w).map(|()| None),
            _ => Err(COMMAND_UNSUPPORTED),
        }
    }

    fn add(
        &mut self,
        now: Time,
        command: &Command<'_>,
        scope: Scope,
        (target, waits): (Option<Termination>, bool),
        w: &mut Writer<'_>,
    ) -> Result<Option<Until>, Failure> {
        let given = Given::read(command, target)?;
        if self.tables.context(scope.id).is_none_or(|context| context.members().len() >= TERMINATIONS_PER_CONTEXT) {
            return Err(CONTEXT_FULL);
        }
        let (named, chosen_before) = (target, self.last_chosen);
        let target = match target {
            None if name::chooses_ephemeral(&command.termination) => return self.add_ephemeral(now, command, scope, &given, w),
            None => self.idle(command.termination.text()).ok_or(NOTHING_FREE)?,
            Some(target) => target,
        };
        let Termination::Physical(endpoint) = target else { return Err(IN_A_CONTEXT) };
        if !self.is_in_service(endpoint) {
            return Err(OUT_OF_SERVICE);
        }
        let plan = self.plan_media(target, given.media.as_ref())?;
        self.check_wanted(target, &given.wanted, 0)?;
        let charge = match self.take_physical(now, scope, endpoint) {
            Ok(charge) => charge,
            Err(charge) => {
                // The same one is to be chosen when there is room for it.
                self.last_chosen = chosen_before;
                return self.claim(now, (charge, Charge::EMPTY), (named, waits));
            }
        };
        if !self.tables.join(now, scope.id, target) {
            self.drop_places(&charge);
            return Err(CONTEXT_FULL);
        }
        self.keep_places(target, charge);
        let shown = self.apply_row(target, &plan);
        self.rejoin(now, scope.id);
        if !self.is_joined(endpoint) {
            self.remove(now, target);
            return Err(NO_RESOURCES);
        }
        if waits && self.is_joining(endpoint) {
            return Ok(Some(waiting(command, endpoint, Undo::Add, shown, given.audit)));
        }
        self.ask(now, target, &given.wanted);
        self.counters.add(Counter::H248Adds);
        self.write_done(now, w, command.verb, target, shown, given.audit);
        Ok(None)
    }

    /// Whether the core that carries a termination stands still.
    fn stands_still(&self, target: Termination) -> bool {
        let endpoint = match target {
            Termination::Physical(endpoint) => Some(endpoint),
            Termination::Ephemeral(_) => self.tables.row(target).map(|row| row.carrier),
            Termination::Root => None,
        };
        endpoint.is_some_and(|endpoint| self.calls.card.stands_still(endpoint))
    }

    /// An idle physical termination whose name fits; the search goes on where the last one ended.
    fn idle(&mut self, pattern: &[u8]) -> Option<Termination> {
        let mut room: Room = [0; NAME_MAX];
        let free = |gateway: &Gateway, endpoint: EndpointIndex| {
            let row = gateway.tables.row(Termination::Physical(endpoint));
            let idle = row.is_some_and(|row| row.context == NULL) && gateway.is_in_service(endpoint);
            idle && !gateway.calls.card.stands_still(endpoint)
        };
        let last = self.last_chosen;
        let later = self.tables.physical().filter(|endpoint| *endpoint > last);
        let sooner = self.tables.physical().filter(|endpoint| *endpoint <= last);
        let found = later.chain(sooner).find(|endpoint| {
            free(self, *endpoint)
                && name::fits(pattern, name::write(&self.plan.topology, &self.tables, Termination::Physical(*endpoint), &mut room))
        })?;
        self.last_chosen = found;
        Some(Termination::Physical(found))
    }

    /// Whether a physical termination may carry calls (TRM-15).
    pub(super) fn is_in_service(&self, endpoint: EndpointIndex) -> bool {
        let row = self.tables.row(Termination::Physical(endpoint));
        self.calls.endpoints.get(endpoint).is_some_and(|state| state.service.in_service)
            && row.is_some_and(|row| row.service == ServiceState::InService && !row.leaving)
    }

    /// The endpoint that carries an ephemeral termination of a context: its first physical one; else any that works.
    fn carrier(&self, context: u32) -> Option<EndpointIndex> {
        let member = self.tables.context(context)?.members().iter().find_map(|member| match member {
            Termination::Physical(endpoint) => Some(*endpoint),
            _ => None,
        });
        let works = |endpoint: &EndpointIndex| self.is_in_service(*endpoint) && !self.calls.card.stands_still(*endpoint);
        member.or_else(|| self.tables.physical().find(works))
    }

    fn add_ephemeral(
        &mut self,
        now: Time,
        command: &Command<'_>,
        scope: Scope,
        given: &Given<'_>,
        w: &mut Writer<'_>,
    ) -> Result<Option<Until>, Failure> {
        let endpoint = self.carrier(scope.id).ok_or(NO_RESOURCES)?;
        if self.calls.card.stands_still(endpoint) {
            return Err(CORE_SILENT);
        }
        let connections = &mut self.calls.endpoints.connections;
        if !connections.room_for(1) {
            return Err(NO_RESOURCES);
        }
        let id = connections.fresh_id();
        let local = LocalMedia { encodings: self.calls.encodings(endpoint).iter().take(1).collect(), ..LocalMedia::default() };
        let call = HexId::from_u64(scope.id.into(), 8);
        let mut connection = Connection { endpoint, id, call, local, created: now, pending: true, ..Connection::default() };
        let row = Row { carrier: endpoint, ..Row::default() };
        let plan = self.plan_media_for(Termination::Ephemeral(0), &row, Some(&connection), given.media.as_ref())?;
        self.check_wanted(Termination::Ephemeral(NO_CONNECTION), &given.wanted, plan.remote_length())?;
        fill(&mut connection, &plan);
        let charge = match self.take_ephemeral(now, scope, &connection) {
            Ok(charge) => charge,
            Err(charge) => return self.claim(now, (charge, Charge::EMPTY), (None, true)),
        };
        let Some(slot) = self.insert(&mut connection, &plan) else {
            self.drop_places(&charge);
            return Err(NO_RESOURCES);
        };
        self.tables.make_ephemeral(slot);
        let termination = Termination::Ephemeral(slot);
        self.keep_places(termination, charge);
        if let Some(row) = self.tables.row_mut(termination) {
            row.carrier = endpoint;
        }
        self.tables.join(now, scope.id, termination);
        let shown = self.apply_row(termination, &plan);
        if self.prepare_keys(slot, &plan).is_err() {
            self.remove(now, termination);
            return Err(NO_RESOURCES);
        }
        let answer = self.calls.card.open(now, endpoint, slot, &ordered(&connection, Half::Whole));
        match answer {
            Answer::Now(address) => {
                self.media_ready(now, slot, address);
                self.commit_keys(slot);
                self.ask(now, termination, &given.wanted);
                self.counters.add(Counter::H248Adds);
                self.write_done(now, w, command.verb, termination, shown, given.audit);
                Ok(None)
            }
            Answer::Later => {
                let number = self.tables.row(termination).map_or(0, |row| row.number);
                let media = parked::Media::Of(slot);
                let (verb, optional, audit) = (command.verb, command.optional, given.audit);
                Ok(Some(Until::Done(Waiting { media, number, verb, optional, undo: Undo::Add, shown, audit, more: None })))
            }
            Answer::Refused(_) => {
                self.counters.add(Counter::CardRefused);
                self.remove(now, termination);
                Err(NO_RESOURCES)
            }
        }
    }

    fn modify(
        &mut self,
        now: Time,
        command: &Command<'_>,
        (target, waits): (Termination, bool),
        w: &mut Writer<'_>,
    ) -> Result<Option<Until>, Failure> {
        let given = Given::read(command, Some(target))?;
        let plan = self.plan_media(target, given.media.as_ref())?;
        self.check_wanted(target, &given.wanted, plan.remote_length())?;
        if let Some(root) = plan.root {
            self.root = root;
            self.responder.set_provisional_after(std::time::Duration::from_millis(root.provisional.into()));
        }
        if let Termination::Ephemeral(slot) = target
            && plan.concerns_media()
        {
            return self.modify_media(now, command, (slot, waits), (&plan, &given), w);
        }
        let before = self.tables.row(target).copied().unwrap_or_default();
        let shown = self.apply_row(target, &plan);
        if plan.control.is_some() && !self.set_pair_modes(now, before.context) {
            if let Some(row) = self.tables.row_mut(target) {
                *row = before;
            }
            // What the card took is as before as far as it takes that.
            self.set_pair_modes(now, before.context);
            self.counters.add(Counter::CardRefused);
            return Err(NO_RESOURCES);
        }
        self.ask(now, target, &given.wanted);
        self.write_done(now, w, command.verb, target, shown, given.audit);
        Ok(None)
    }

    /// The card has opened media, or changed it.
    pub(super) fn media_ready(&mut self, _now: Time, slot: ConnectionSlot, address: MediaAddress) {
        if let Some(connection) = self.calls.endpoints.connections.get_mut(slot) {
            (connection.local.address, connection.local.port, connection.pending) = (address.address, address.port, false);
        }
    }

    /// Move (MOV-01 to MOV-04).
    fn change_context(
        &mut self,
        now: Time,
        command: &Command<'_>,
        scope: Scope,
        (target, waits): (Termination, bool),
        w: &mut Writer<'_>,
    ) -> Result<Option<Until>, Failure> {
        let given = Given::read(command, Some(target))?;
        if let Termination::Physical(endpoint) = target
            && !self.is_in_service(endpoint)
        {
            return Err(OUT_OF_SERVICE);
        }
        if self.tables.context(scope.id).is_none_or(|context| context.members().len() >= TERMINATIONS_PER_CONTEXT) {
            return Err(CONTEXT_FULL);
        }
        let plan = self.plan_media(target, given.media.as_ref())?;
        self.check_wanted(target, &given.wanted, plan.remote_length())?;
        if let Termination::Ephemeral(slot) = target
            && !self.carry_to(now, slot, scope.id)
        {
            self.counters.add(Counter::CardRefused);
            return Err(NO_RESOURCES);
        }
        let before = self.tables.row(target).copied().unwrap_or_default();
        self.unpair(now, target);
        // What it leaves is kept until nothing can be refused any more.
        let left = self.tables.step_out(target).unwrap_or(NULL);
        self.tables.join(before.since, scope.id, target);
        let shown = self.apply_row(target, &plan);
        self.rejoin(now, scope.id);
        if let Termination::Physical(endpoint) = target
            && !self.is_joined(endpoint)
        {
            self.move_back(now, target, left, before);
            return Err(NO_RESOURCES);
        }
        self.rejoin(now, left);
        if let Termination::Ephemeral(slot) = target {
            self.note_context(slot, scope.id);
            if plan.concerns_media() {
                return match self.modify_media(now, command, (slot, waits), (&plan, &given), w) {
                    Ok(Some(Until::Done(waiting))) => {
                        let connection = if let Undo::Modify(connection, _) = waiting.undo { Some(connection) } else { None };
                        Ok(Some(Until::Done(Waiting { undo: Undo::Move(left, before, connection), ..waiting })))
                    }
                    Ok(None) => {
                        self.tables.drop_if_empty(left);
                        Ok(None)
                    }
                    // Refused, or it begins anew when it is admitted.
                    other => {
                        self.move_back(now, target, left, before);
                        other
                    }
                };
            }
        }
        if let Termination::Physical(endpoint) = target
            && waits
            && self.is_joining(endpoint)
        {
            return Ok(Some(waiting(command, endpoint, Undo::Move(left, before, None), shown, given.audit)));
        }
        self.tables.drop_if_empty(left);
        self.ask(now, target, &given.wanted);
        self.write_done(now, w, command.verb, target, shown, given.audit);
        Ok(None)
    }

    /// A termination that was moved is where it was and as it was, unless that context is gone or full.
    pub(super) fn move_back(&mut self, now: Time, target: Termination, left: u32, before: Row) {
        self.unpair(now, target);
        let moved = self.tables.leave(target);
        if !self.tables.join(before.since, left, target) {
            self.remove(now, target);
        } else if let Some(row) = self.tables.row_mut(target) {
            let Row { context, since, watch, leaving, due, told, carrier, .. } = *row;
            *row = Row { context, since, watch, leaving, due, told, carrier, pair: None, ..before };
        }
        if let Termination::Ephemeral(slot) = target {
            self.note_context(slot, left);
        }
        for context in moved.into_iter().chain([left]) {
            self.rejoin(now, context);
        }
    }

    /// What a command that waited for the card asks for besides media; it was checked before.
    pub(super) fn ask_late(&mut self, now: Time, termination: Termination, command: &Command<'_>) {
        if let Ok(given) = Given::read(command, Some(termination))
            && self.check_wanted(termination, &given.wanted, 0).is_ok()
        {
            self.ask(now, termination, &given.wanted);
        }
    }

    /// Operators see the context as the call of a connection.
    fn note_context(&mut self, slot: ConnectionSlot, context: u32) {
        if let Some(connection) = self.calls.endpoints.connections.get_mut(slot) {
            connection.call = HexId::from_u64(context.into(), 8);
        }
    }

    /// Subtract: the reply tells what was counted, unless the command says what it is to tell (SUB-01).
    fn subtract(&mut self, now: Time, command: &Command<'_>, target: Termination, w: &mut Writer<'_>) -> Result<(), Failure> {
        let audit = command.descriptors().find_map(|descriptor| match descriptor {
            Ok((_, Descriptor::Audit(audit))) => Some(audit),
            _ => None,
        });
        self.write_name(w, command.verb, target);
        let audit = audit.unwrap_or(Audit::of(&[Token::Statistics]));
        self.one_audited(w, |gateway, w| gateway.write_items(now, w, target, audit));
        w.end();
        self.remove(now, target);
        self.counters.add(Counter::H248Subtracts);
        Ok(())
    }

    /// Takes a termination out of its context; an ephemeral one goes (TRM-01), a physical one is as provisioned (SUB-04).
    pub(super) fn remove(&mut self, now: Time, target: Termination) -> MediaReport {
        self.forget(now, target);
        self.unpair(now, target);
        self.places_ended(target);
        let left = self.tables.leave(target);
        let report = match target {
            Termination::Ephemeral(slot) => {
                self.abandon(parked::Media::Of(slot));
                let carrier = self.tables.row(target).map(|row| row.carrier);
                self.tables.end_ephemeral(slot);
                self.calls.endpoints.disconnect(slot);
                carrier.map_or(MediaReport::default(), |carrier| self.calls.close_media(now, carrier, slot))
            }
            _ => {
                if let Termination::Physical(endpoint) = target {
                    self.abandon(parked::Media::Pair(endpoint));
                    self.freed.push_back(endpoint);
                }
                if let Some(row) = self.tables.row_mut(target) {
                    let service = if row.leaving { ServiceState::OutOfService } else { row.service };
                    let due = if row.leaving { Time::NEVER } else { row.due };
                    *row = Row { service, due, told: row.told, ..Row::default() };
                }
                MediaReport::default()
            }
        };
        if let Some(left) = left {
            self.rejoin(now, left);
        }
        report
    }

    fn service_change(&mut self, now: Time, command: &Command<'_>, target: Termination, w: &mut Writer<'_>) -> Result<(), Failure> {
        let services = command.descriptors().find_map(|descriptor| match descriptor {
            Ok((_, Descriptor::Services(services))) => Some(services),
            _ => None,
        });
        self.ordered(now, target, &services.ok_or(NOT_IMPLEMENTED)?)?;
        self.write_name(w, command.verb, target);
        w.end();
        Ok(())
    }

    fn plan_media<'a>(&self, target: Termination, media: Option<&Media<'a>>) -> Result<MediaPlan<'a>, Failure> {
        let row = self.tables.row(target).copied().unwrap_or_default();
        let connection = match target {
            Termination::Ephemeral(slot) => self.calls.endpoints.connections.get(slot),
            _ => None,
        };
        self.plan_media_for(target, &row, connection, media)
    }

    fn plan_media_for<'a>(
        &self,
        termination: Termination,
        row: &Row,
        connection: Option<&Connection>,
        media: Option<&Media<'a>>,
    ) -> Result<MediaPlan<'a>, Failure> {
        let internal = connection.map_or(self.calls.settings.encodings, |connection| self.calls.encodings(connection.endpoint));
        let srtp = self.calls.card.srtp(row.carrier);
        let before = Before { termination, row, connection, internal: &internal, root: self.root, srtp };
        media.map_or_else(|| Ok(media::unasked(&before)), |media| media::read(media, &before))
    }

    /// Applies what concerns no card order.
    pub(super) fn apply_row(&mut self, target: Termination, plan: &MediaPlan<'_>) -> Shown {
        let Some(row) = self.tables.row_mut(target) else { return Shown::default() };
        row.stream = plan.stream.unwrap_or(row.stream);
        let mut ends_lockstep = false;
        if let Some((service, lockstep)) = plan.state {
            ends_lockstep = row.lockstep && !lockstep;
            (row.service, row.lockstep) = (service, lockstep);
        }
        if let Some(control) = plan.control {
            (row.mode, row.reserve, row.jitter_ms) = (control.mode, control.reserve, control.jitter_ms);
            (row.echo_canceller, row.gain) = (control.echo_canceller, control.gain);
        }
        if plan.local_given {
            row.has_local = plan.local != Side::Freed;
        }
        row.has_remote = match plan.remote {
            Side::Absent => row.has_remote,
            Side::Freed => false,
            Side::Chosen(_) => true,
        };
        if ends_lockstep {
            self.end_lockstep(target);
        }
        let remote = matches!(plan.remote, Side::Chosen(ChosenRemote { surplus: true, .. }));
        Shown { stream: plan.stream, local: plan.local_given, remote }
    }

    /// The reply to a command that was done, and what was asked for besides.
    pub(super) fn write_done(
        &mut self,
        now: Time,
        w: &mut Writer<'_>,
        verb: Verb,
        target: Termination,
        shown: Shown,
        audit: Option<Audit>,
    ) {
        self.write_name(w, verb, target);
        self.write_shown(w, target, shown);
        if let Some(audit) = audit {
            self.one_audited(w, |gateway, w| gateway.write_items(now, w, target, audit));
        }
        w.end();
    }

    pub(super) fn write_name(&self, w: &mut Writer<'_>, verb: Verb, target: Termination) {
        let mut room: Room = [0; NAME_MAX];
        let name = name::write(&self.plan.topology, &self.tables, target, &mut room);
        w.command(verb, TerminationId::parse(name).unwrap_or(TerminationId::Root));
    }

    /// What was chosen of an under- or over-specified Local and Remote (PAR-02).
    fn write_shown(&self, w: &mut Writer<'_>, target: Termination, shown: Shown) {
        let Termination::Ephemeral(slot) = target else { return };
        let Some(connection) = self.calls.endpoints.connections.get(slot) else { return };
        if !shown.local && !shown.remote {
            return;
        }
        w.begin(Token::Media);
        if let Some(stream) = shown.stream {
            w.begin_number(Token::Stream, stream.into());
        }
        if shown.local {
            self.write_local(w, slot, connection);
        }
        if shown.remote {
            self.write_remote(w, connection);
        }
        if shown.stream.is_some() {
            w.end();
        }
        w.end();
    }

    pub(super) fn write_local(&self, w: &mut Writer<'_>, slot: ConnectionSlot, connection: &Connection) {
        let keys = self.calls.endpoints.secrets.get(slot).filter(|_| connection.local.protected);
        let crypto = keys.and_then(|keys| keys.local.as_ref());
        w.octets_with(Token::Local, |room| {
            // Reserved and nothing possible: an empty Local, and no error (LC-05).
            if connection.local.encodings.is_empty() {
                Some(0)
            } else {
                description::write(room, connection.id.0, &connection.local, crypto)
            }
        });
    }

    pub(super) fn write_remote(&self, w: &mut Writer<'_>, connection: &Connection) {
        w.octets_with(Token::Remote, |room| {
            let mut length = 0;
            for piece in self.calls.endpoints.blobs.pieces(connection.remote_text) {
                room.get_mut(length..length + piece.len())?.copy_from_slice(piece);
                length += piece.len();
            }
            Some(length)
        });
    }
}

/// A command that has joined a physical termination to others, which the card is still to do.
fn waiting(command: &Command<'_>, endpoint: EndpointIndex, undo: Undo, shown: Shown, audit: Option<Audit>) -> Until {
    let media = parked::Media::Pair(endpoint);
    Until::Done(Waiting { media, number: 0, verb: command.verb, optional: command.optional, undo, shown, audit, more: None })
}
