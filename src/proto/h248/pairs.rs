//! How the terminations of a context are joined on the card: its first physical one carries the connections of the ephemeral ones, and
//! each other physical one has a connection inside the gateway with it (CTX-10: everyone hears everyone).

use super::Gateway;
use super::error::{Failure, NO_RESOURCES};
use super::media::mode;
use super::table::{Context, NULL, Termination};
use crate::proto::base::{Counter, EndpointIndex, HexId, Time};
use crate::proto::endpoint::{Connection, ConnectionSlot, LocalMedia, Remote};
use crate::proto::mgcp::create::{Half, media, meet};
use crate::proto::trunk::{Answer, MediaAddress};
use std::time::Duration;

/// How soon a card that refused to join terminations is asked again.
const REJOIN: Duration = Duration::from_secs(1);

fn physical(context: &Context) -> impl Iterator<Item = EndpointIndex> + '_ {
    context.members().iter().filter_map(|member| match member {
        Termination::Physical(endpoint) => Some(*endpoint),
        _ => None,
    })
}

impl Gateway {
    /// Puts the media of a context in order after a termination came or went. Where the card refuses that, it is asked again later.
    pub(super) fn rejoin(&mut self, now: Time, id: u32) {
        let Some(context) = self.tables.context(id).copied() else { return };
        let mut physical = physical(&context);
        let first = physical.next();
        for member in context.members() {
            if let Termination::Ephemeral(slot) = *member {
                self.calls.endpoints.relist(slot, first);
                // What the card does not take there it counts as refused; the controller has its reply already.
                if let Some(first) = first
                    && !self.carry(now, slot, first)
                {
                    self.counters.add(Counter::CardRefused);
                }
            }
        }
        let Some(first) = first else { return };
        self.unpair(now, Termination::Physical(first));
        for other in physical {
            let pair = self.tables.row(Termination::Physical(other)).and_then(|row| row.pair);
            let carrier = pair.and_then(|(far, _)| self.calls.endpoints.connections.get(far)).map(|connection| connection.endpoint);
            if carrier == Some(first) {
                continue;
            }
            self.unpair(now, Termination::Physical(other));
            if self.pair(now, id, first, other).is_err() {
                self.note_unjoined(now, id);
            }
        }
    }

    /// Has a physical termination carry an ephemeral one; false: the card leaves that where it is.
    fn carry(&mut self, now: Time, slot: ConnectionSlot, endpoint: EndpointIndex) -> bool {
        let Some(row) = self.tables.row_mut(Termination::Ephemeral(slot)) else { return false };
        if row.carrier != endpoint {
            if !self.calls.card.transfer(now, row.carrier, endpoint, slot) {
                return false;
            }
            row.carrier = endpoint;
        }
        true
    }

    /// The same, for the first physical one of a context that an ephemeral one is to come into.
    pub(super) fn carry_to(&mut self, now: Time, slot: ConnectionSlot, context: u32) -> bool {
        let first = self.tables.context(context).and_then(|context| physical(context).next());
        first.is_none_or(|first| self.carry(now, slot, first))
    }

    /// Terminations of a context do not hear each other because the card refused.
    fn note_unjoined(&mut self, now: Time, context: u32) {
        if !self.unjoined.contains(&context) {
            if self.unjoined.len() >= self.tables.contexts_max() as usize {
                self.unjoined.retain(|context| self.tables.context(*context).is_some());
            }
            self.unjoined.push(context);
            self.rejoin_at = self.rejoin_at.min(now + REJOIN);
        }
    }

    /// The card is asked again for what it refused.
    pub(super) fn rejoin_due(&mut self, now: Time) {
        if now < self.rejoin_at {
            return;
        }
        self.rejoin_at = Time::NEVER;
        for context in std::mem::take(&mut self.unjoined) {
            self.rejoin(now, context);
        }
    }

    /// Whether a physical termination is the first of its context, or has a pair with that.
    pub(super) fn is_joined(&self, endpoint: EndpointIndex) -> bool {
        let Some(row) = self.tables.row(Termination::Physical(endpoint)) else { return false };
        row.pair.is_some() || self.tables.context(row.context).is_some_and(|context| physical(context).next() == Some(endpoint))
    }

    fn pair(&mut self, now: Time, context: u32, first: EndpointIndex, other: EndpointIndex) -> Result<(), Failure> {
        let far = self.half(now, context, first).ok_or(NO_RESOURCES)?;
        let Some(own) = self.half(now, context, other) else {
            self.end_half(now, far);
            return Err(NO_RESOURCES);
        };
        self.see(far, own);
        self.see(own, far);
        if !self.open_half(now, far) || !self.open_half(now, own) {
            self.end_half(now, far);
            self.end_half(now, own);
            return Err(NO_RESOURCES);
        }
        if let Some(row) = self.tables.row_mut(Termination::Physical(other)) {
            row.pair = Some((far, own));
        }
        self.meet_halves(now, other);
        Ok(())
    }

    /// The halves hear of each other as soon as both are open: whether they are.
    fn meet_halves(&mut self, now: Time, other: EndpointIndex) -> bool {
        let Some((far, own)) = self.tables.row(Termination::Physical(other)).and_then(|row| row.pair) else { return false };
        let open = |slot| {
            let connection = self.calls.endpoints.connections.get(slot).filter(|connection| !connection.pending);
            connection.map(|connection| MediaAddress { address: connection.local.address, port: connection.local.port })
        };
        let (Some(far_at), Some(own_at)) = (open(far), open(own)) else { return false };
        meet(&mut self.calls, now, far, own_at);
        meet(&mut self.calls, now, own, far_at);
        // Their modes may have changed meanwhile.
        self.set_half_mode(now, far);
        self.set_half_mode(now, own);
        true
    }

    /// Whether the connections that join a physical termination to its context are still to be opened by the card.
    pub(super) fn is_joining(&self, endpoint: EndpointIndex) -> bool {
        let pending = |slot| self.calls.endpoints.connections.get(slot).is_some_and(|connection| connection.pending);
        let pair = self.tables.row(Termination::Physical(endpoint)).and_then(|row| row.pair);
        pair.is_some_and(|(far, own)| pending(far) || pending(own))
    }

    /// The card has opened a half, or refuses: the termination that the pair joins to its context when that is decided now, and whether it is
    /// joined. A pair is there whole or not at all.
    pub(super) fn half_answered(&mut self, now: Time, slot: ConnectionSlot, at: Option<MediaAddress>) -> Option<(EndpointIndex, bool)> {
        let connection = self.calls.endpoints.connections.get(slot).filter(|connection| connection.pending)?;
        let Remote::Local(there, _) = connection.remote else { return None };
        let is_of = |endpoint: &EndpointIndex| {
            let pair = self.tables.row(Termination::Physical(*endpoint)).and_then(|row| row.pair);
            pair.is_some_and(|(far, own)| far == slot || own == slot)
        };
        let other = [connection.endpoint, there].into_iter().find(is_of)?;
        let Some(at) = at else {
            self.unpair(now, Termination::Physical(other));
            let context = self.tables.row(Termination::Physical(other)).map_or(NULL, |row| row.context);
            self.note_unjoined(now, context);
            return Some((other, false));
        };
        self.media_ready(now, slot, at);
        self.meet_halves(now, other).then_some((other, true))
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

    /// False: the card refuses.
    fn open_half(&mut self, now: Time, slot: ConnectionSlot) -> bool {
        let Some(connection) = self.calls.endpoints.connections.get_mut(slot) else { return false };
        connection.pending = true;
        let connection = *connection;
        match self.calls.card.open(now, connection.endpoint, slot, &media(&connection, Half::Whole)) {
            Answer::Now(at) => {
                self.media_ready(now, slot, at);
                true
            }
            Answer::Later => true,
            Answer::Refused(_) => false,
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

    /// Connections inside the gateway do what the modes of their terminations say; false: the card has refused that for one of them, which
    /// is as it was.
    pub(super) fn set_pair_modes(&mut self, now: Time, context: u32) -> bool {
        let Some(context) = self.tables.context(context).copied() else { return true };
        let mut done = true;
        for member in context.members() {
            let Some((far, own)) = self.tables.row(*member).and_then(|row| row.pair) else { continue };
            for slot in [far, own] {
                done &= self.set_half_mode(now, slot);
            }
        }
        done
    }

    fn set_half_mode(&mut self, now: Time, slot: ConnectionSlot) -> bool {
        let Some(before) = self.calls.endpoints.connections.get(slot).copied() else { return true };
        let wanted = self.tables.row(Termination::Physical(before.endpoint)).map_or(before.mode, |row| mode(row.mode));
        let Some(connection) = self.calls.endpoints.connections.get_mut(slot).filter(|_| before.mode != wanted && !before.pending) else {
            return true;
        };
        connection.mode = wanted;
        let order = media(connection, Half::Whole);
        let refused = matches!(self.calls.card.modify(now, before.endpoint, slot, &order), Answer::Refused(_));
        if refused && let Some(connection) = self.calls.endpoints.connections.get_mut(slot) {
            connection.mode = before.mode;
        }
        !refused
    }
}
