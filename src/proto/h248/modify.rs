//! Connections of ephemeral terminations: made, and changed so that either everything is as a command says or nothing (TXN-03).

use super::Gateway;
use super::command::Given;
use super::error::{Failure, NO_RESOURCES, TERMINATION_UNKNOWN};
use super::media::{self, ChosenLocal, ChosenRemote, MediaPlan, Side};
use super::parked::{self, Undo, Until, Waiting};
use super::table::{Row, Termination};
use crate::proto::base::{Counter, Time};
use crate::proto::codec::h248::{Command, Writer};
use crate::proto::codec::sdp::crypto;
use crate::proto::endpoint::{Connection, ConnectionSlot, Remote};
use crate::proto::mgcp::create::{Half, media as ordered};
use crate::proto::mgcp::{Refused, secure};
use crate::proto::trunk::Answer;

const NOT_READY: Failure = Failure { code: 502, text: "termination is being added or changed" };

impl Gateway {
    /// Room for a connection and the text of its far end.
    pub(super) fn insert(&mut self, connection: &mut Connection, plan: &MediaPlan<'_>) -> Option<ConnectionSlot> {
        if let Side::Chosen(ChosenRemote { text, line, .. }) = plan.remote {
            connection.remote_text = self.calls.endpoints.blobs.store(text)?.keep_secret(line.is_some());
        }
        let slot = self.calls.endpoints.connect(*connection).or_else(|| self.calls.endpoints.connections.insert(*connection));
        if slot.is_none() {
            self.calls.endpoints.blobs.free(&mut connection.remote_text);
        }
        slot
    }

    pub(super) fn modify_media(
        &mut self,
        now: Time,
        command: &Command<'_>,
        (slot, waits): (ConnectionSlot, bool),
        (plan, given): (&MediaPlan<'_>, &Given<'_>),
        w: &mut Writer<'_>,
    ) -> Result<Option<Until>, Failure> {
        let termination = Termination::Ephemeral(slot);
        let before = *self.calls.endpoints.connections.get(slot).ok_or(TERMINATION_UNKNOWN)?;
        let row = *self.tables.row(termination).ok_or(TERMINATION_UNKNOWN)?;
        // A card answers the last order about a connection, and what waits for one before it would wait in vain.
        if before.pending || self.parking.waits_for(parked::Media::Of(slot)) {
            return Err(NOT_READY);
        }
        let mut after = before;
        fill(&mut after, plan);
        if let Err(lacks) = self.take_more(now, slot, &after) {
            return self.claim(now, lacks, (Some(termination), waits));
        }
        let done = self.modify_taken(now, (command, waits), slot, (before, after, row), (plan, given), w);
        if done.is_err() {
            self.places_unchanged(slot);
        }
        done
    }

    /// The same, with the places that it takes.
    fn modify_taken(
        &mut self,
        now: Time,
        (command, waits): (&Command<'_>, bool),
        slot: ConnectionSlot,
        (before, mut after, row): (Connection, Connection, Row),
        (plan, given): (&MediaPlan<'_>, &Given<'_>),
        w: &mut Writer<'_>,
    ) -> Result<Option<Until>, Failure> {
        let termination = Termination::Ephemeral(slot);
        match plan.remote {
            Side::Chosen(ChosenRemote { text, line, .. }) => {
                after.remote_text = self.calls.endpoints.blobs.store(text).ok_or(NO_RESOURCES)?.keep_secret(line.is_some());
            }
            Side::Freed => after.remote_text = Default::default(),
            Side::Absent => {}
        }
        let rekeyed = match self.prepare_keys(slot, plan) {
            Ok(rekeyed) => rekeyed,
            Err(_) => {
                if after.remote_text != before.remote_text {
                    self.calls.endpoints.blobs.free(&mut after.remote_text);
                }
                return Err(NO_RESOURCES);
            }
        };
        if rekeyed || after.local != before.local {
            after.local.version = before.local.version.wrapping_add(1);
        }
        let Some(place) = self.calls.endpoints.connections.get_mut(slot) else { return Err(TERMINATION_UNKNOWN) };
        *place = after;
        let shown = self.apply_row(termination, plan);
        match self.calls.card.modify(now, row.carrier, slot, &ordered(&after, Half::Whole)) {
            Answer::Later if waits => {
                let undo = Undo::Modify(before, row);
                let media = parked::Media::Of(slot);
                let (verb, optional, audit) = (command.verb, command.optional, given.audit);
                Ok(Some(Until::Done(Waiting { media, number: row.number, verb, optional, undo, shown, audit, more: None })))
            }
            Answer::Refused(_) => {
                self.counters.add(Counter::CardRefused);
                self.restore(slot, before, row);
                Err(NO_RESOURCES)
            }
            // One of many is not waited for: where it receives stays the same.
            Answer::Now(_) | Answer::Later => {
                self.places_changed(slot);
                self.forget_text(slot, &before);
                self.commit_keys(slot);
                self.ask(now, termination, &given.wanted);
                self.write_done(now, w, command.verb, termination, shown, given.audit);
                Ok(None)
            }
        }
    }

    /// The remote description that a modification replaced is not needed any more.
    pub(super) fn forget_text(&mut self, slot: ConnectionSlot, before: &Connection) {
        let mut old = before.remote_text;
        if self.calls.endpoints.connections.get(slot).is_some_and(|connection| connection.remote_text != old) {
            self.calls.endpoints.blobs.free(&mut old);
        }
    }

    /// What a modification changed is as before.
    pub(super) fn restore(&mut self, slot: ConnectionSlot, before: Connection, row: Row) {
        self.places_unchanged(slot);
        self.calls.endpoints.secrets.forget_next(slot);
        let Some(connection) = self.calls.endpoints.connections.get_mut(slot) else { return };
        let mut text = connection.remote_text;
        let (endpoint, call) = (connection.endpoint, connection.call);
        *connection = Connection { endpoint, call, ..before };
        if text != before.remote_text {
            self.calls.endpoints.blobs.free(&mut text);
        }
        if let Some(place) = self.tables.row_mut(Termination::Ephemeral(slot)) {
            let Row { context, since, watch, carrier, .. } = *place;
            *place = Row { context, since, watch, carrier, ..row };
        }
    }

    /// Puts down the keys that a command has chosen; whether the description of Local changes by them.
    pub(super) fn prepare_keys(&mut self, slot: ConnectionSlot, plan: &MediaPlan<'_>) -> Result<bool, Refused> {
        let line = match plan.remote {
            Side::Chosen(ChosenRemote { line, .. }) => line,
            Side::Freed | Side::Absent => None,
        };
        let given = plan.local_line.and_then(crypto::read);
        secure::prepare_with(&mut self.calls, slot, plan.protection, line.and_then(crypto::read), given)
    }

    /// The card agreed to a command: the keys it has chosen hold.
    pub(super) fn commit_keys(&mut self, slot: ConnectionSlot) {
        if let Some(carrier) = self.tables.row(Termination::Ephemeral(slot)).map(|row| row.carrier) {
            secure::commit(&mut self.calls, slot, carrier);
        }
    }
}

/// What the plan says of a connection; its texts are kept by whoever calls this.
pub(super) fn fill(connection: &mut Connection, plan: &MediaPlan<'_>) {
    if let Some(control) = plan.control {
        connection.mode = media::mode(control.mode);
    }
    match plan.local {
        Side::Chosen(ChosenLocal { encodings, period_ms }) => {
            (connection.local.encodings, connection.local.period_ms) = (encodings, period_ms);
        }
        Side::Freed | Side::Absent => {}
    }
    connection.local.protected = plan.protection.holds(connection.local.protected);
    match plan.remote {
        Side::Chosen(ChosenRemote { remote, .. }) => connection.remote = remote,
        Side::Freed => connection.remote = Remote::Unknown,
        Side::Absent => {}
    }
}
