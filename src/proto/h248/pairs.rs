//! How the terminations of a context are joined on the card: its first physical one carries the connections of the ephemeral ones, and
//! each other physical one has a connection inside the gateway with it (CTX-10: everyone hears everyone).

use super::Gateway;
use super::error::{Failure, NO_RESOURCES};
use super::media::mode;
use super::table::Termination;
use crate::proto::base::{EndpointIndex, HexId, Time};
use crate::proto::endpoint::{Connection, ConnectionSlot, LocalMedia, Remote};
use crate::proto::mgcp::create::{Half, media, meet};
use crate::proto::trunk::{Answer, MediaAddress};

impl Gateway {
    /// Puts the media of a context in order after a termination came or went.
    pub(super) fn rejoin(&mut self, now: Time, id: u32) -> Result<(), Failure> {
        let Some(context) = self.tables.context(id).copied() else { return Ok(()) };
        let physical = context.members().iter().filter_map(|member| match member {
            Termination::Physical(endpoint) => Some(*endpoint),
            _ => None,
        });
        let first = physical.clone().next();
        for member in context.members() {
            if let Termination::Ephemeral(slot) = *member {
                self.calls.endpoints.relist(slot, first);
            }
        }
        let Some(first) = first else { return Ok(()) };
        self.unpair(now, Termination::Physical(first));
        for other in physical.skip(1) {
            let pair = self.tables.row(Termination::Physical(other)).and_then(|row| row.pair);
            let carrier = pair.and_then(|(far, _)| self.calls.endpoints.connections.get(far)).map(|connection| connection.endpoint);
            if carrier != Some(first) {
                self.unpair(now, Termination::Physical(other));
                self.pair(now, id, first, other)?;
            }
        }
        Ok(())
    }

    fn pair(&mut self, now: Time, context: u32, first: EndpointIndex, other: EndpointIndex) -> Result<(), Failure> {
        let far = self.half(now, context, first).ok_or(NO_RESOURCES)?;
        let Some(own) = self.half(now, context, other) else {
            self.end_half(now, far);
            return Err(NO_RESOURCES);
        };
        self.see(far, own);
        self.see(own, far);
        let opened = self.open_half(now, far).and_then(|at| Some((at, self.open_half(now, own)?)));
        let Some((far_at, own_at)) = opened else {
            self.end_half(now, far);
            self.end_half(now, own);
            return Err(NO_RESOURCES);
        };
        meet(&mut self.calls, now, far, own_at);
        meet(&mut self.calls, now, own, far_at);
        if let Some(row) = self.tables.row_mut(Termination::Physical(other)) {
            row.pair = Some((far, own));
        }
        Ok(())
    }

    fn half(&mut self, now: Time, context: u32, endpoint: EndpointIndex) -> Option<ConnectionSlot> {
        let row = self.tables.row(Termination::Physical(endpoint))?;
        let mode = mode(row.mode);
        let id = self.calls.endpoints.connections.fresh_id();
        let encodings = self.calls.settings.encodings.iter().take(1).collect();
        let local = LocalMedia { encodings, ..LocalMedia::default() };
        let call = HexId::from_u64(context.into(), 8);
        let connection = Connection { endpoint, id, call, mode, local, created: now, ..Connection::default() };
        // Beyond what an endpoint lists there are conferences.
        self.calls.endpoints.connect(connection).or_else(|| self.calls.endpoints.connections.insert(connection))
    }

    fn see(&mut self, slot: ConnectionSlot, other: ConnectionSlot) {
        let far = self.calls.endpoints.connections.get(other).map(|far| Remote::Local(far.endpoint, far.id));
        if let (Some(connection), Some(far)) = (self.calls.endpoints.connections.get_mut(slot), far) {
            connection.remote = far;
        }
    }

    /// Where it receives.
    fn open_half(&mut self, now: Time, slot: ConnectionSlot) -> Option<MediaAddress> {
        let connection = self.calls.endpoints.connections.get(slot).copied()?;
        match self.calls.card.open(now, connection.endpoint, slot, &media(&connection, Half::Whole)) {
            Answer::Now(at) => Some(at),
            // A card that takes its time is a simulated one, which moves no media.
            Answer::Later => Some(MediaAddress { address: connection.local.address, port: 0 }),
            Answer::Refused(_) => None,
        }
    }

    fn end_half(&mut self, now: Time, slot: ConnectionSlot) {
        if let Some(connection) = self.calls.endpoints.disconnect(slot) {
            self.calls.card.close(now, connection.endpoint, slot);
        }
    }

    /// Takes down the connection inside the gateway of a physical termination.
    pub(super) fn unpair(&mut self, now: Time, termination: Termination) {
        let Some((far, own)) = self.tables.row_mut(termination).and_then(|row| row.pair.take()) else { return };
        self.end_half(now, far);
        self.end_half(now, own);
    }

    /// Connections inside the gateway do what the modes of their terminations say.
    pub(super) fn set_pair_modes(&mut self, now: Time, context: u32) {
        let Some(context) = self.tables.context(context).copied() else { return };
        for member in context.members() {
            let Some((far, own)) = self.tables.row(*member).and_then(|row| row.pair) else { continue };
            for slot in [far, own] {
                self.set_half_mode(now, slot);
            }
        }
    }

    fn set_half_mode(&mut self, now: Time, slot: ConnectionSlot) {
        let Some(endpoint) = self.calls.endpoints.connections.get(slot).map(|connection| connection.endpoint) else { return };
        let wanted = self.tables.row(Termination::Physical(endpoint)).map(|row| mode(row.mode));
        let (Some(connection), Some(wanted)) = (self.calls.endpoints.connections.get_mut(slot), wanted) else { return };
        if connection.mode != wanted {
            connection.mode = wanted;
            let connection = *connection;
            // A refusal leaves it as it was; the next change tries again.
            self.calls.card.modify(now, endpoint, slot, &media(&connection, Half::Whole));
        }
    }
}
