//! Events on their way to the agent: what the card saw goes to the event machine, and what that wants notified is sent to the notified
//! entity of the endpoint, behind the Notify commands that are still unanswered (RFC 3435 2.3.4, 4.4.1; G-NTF, G-QUA-12..14).

use super::Core;
use super::jobs::Wait;
use super::outside::{Frames, Outside, Turn};
use super::own::Purpose;
use crate::proto::base::{Counter, EndpointIndex, Time, TransactionId};
use crate::proto::endpoint::{ConnectionId, ConnectionSlot};
use crate::proto::mgcp::event::{self, Occurrence};
use crate::proto::mgcp::{create, modify};
use crate::proto::package::EventId;
use crate::proto::transaction::outgoing::{COMMAND_MAX, Delivery, Outcome as Answered, SendError};
use crate::proto::trunk::EventText;
use std::time::Duration;

/// When to try again to send a Notify for which there was no room, or no address.
const RETRY: Duration = Duration::from_millis(500);

impl Core {
    /// The card saw an event.
    pub(super) fn event_seen<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        endpoint: EndpointIndex,
        connection: Option<ConnectionSlot>,
        event: EventId,
        parameters: EventText,
    ) {
        let connection = match connection.map(|slot| self.hearing(endpoint, slot)) {
            None => None,
            Some(Some(id)) => Some(id),
            // It is gone, or its mode takes no media in (G-EVT-10).
            Some(None) => return,
        };
        if !self.calls.endpoints.get(endpoint).is_some_and(|state| state.service.in_service) {
            return self.counters.add(Counter::CardStray);
        }
        event::occur(&mut self.calls, turn.now, endpoint, Occurrence { event, connection, parameters });
        self.check_waiting(turn, endpoint);
    }

    /// The identifier of a connection that takes media in.
    fn hearing(&self, endpoint: EndpointIndex, slot: ConnectionSlot) -> Option<ConnectionId> {
        let connection = self.calls.endpoints.connections.get(slot)?;
        (connection.endpoint == endpoint && !connection.pending && connection.mode.receives()).then_some(connection.id)
    }

    /// The card ended a signal.
    pub(super) fn signal_ended(
        &mut self,
        now: Time,
        endpoint: EndpointIndex,
        connection: Option<ConnectionSlot>,
        signal: EventId,
        failed: bool,
    ) {
        let id = connection.map(|slot| self.calls.endpoints.connections.get(slot).map(|connection| connection.id));
        let known = match id {
            Some(None) => false,
            None => event::signal_ended(&mut self.calls, now, endpoint, None, signal, failed),
            Some(id) => event::signal_ended(&mut self.calls, now, endpoint, id, signal, failed),
        };
        if !known {
            self.counters.add(Counter::CardStray);
        }
    }

    /// Commands that wait for the card fail when what their request rests on does not hold any more (G-RQN-06).
    fn check_waiting<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, endpoint: EndpointIndex) {
        let Some(id) = self.jobs.find(|job| job.endpoint == Some(endpoint) && job.requests()) else { return };
        let Some(job) = self.jobs.get(id).copied() else { return };
        let possible = self.parsed(turn, job.received.message, |core, _, command| match job.wait {
            Wait::Opening(_, plan) | Wait::First(_, plan, _) | Wait::Joining(_, plan, ..) => {
                create::still_possible(&core.calls, &plan, command)
            }
            Wait::Modifying(slot, plan) => modify::still_possible(&core.calls, slot, &plan, command),
            _ => Ok(()),
        });
        if let Err(refused) = possible {
            self.abort_with(turn, id, refused);
        }
    }

    /// An older command with a request for `endpoint` that still waits is aborted by a newer one, even when that one fails itself
    /// (G-TXN-05, G-TXN-08).
    pub(super) fn abort_requests<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, endpoint: EndpointIndex) {
        while let Some(older) = self.jobs.find(|job| job.endpoint == Some(endpoint) && job.requests()) {
            self.abort(turn, older);
        }
    }

    /// What is due of events and signals.
    pub(super) fn handle_events<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        let mut budget = self.plan.limits.slice.max(1);
        while let Some(endpoint) = self.calls.watches.poll(turn.now, &mut budget) {
            event::expire(&mut self.calls, turn.now, endpoint);
        }
        self.send_notifies(turn.now);
    }

    /// Sends the Notify of every endpoint that has one to send.
    pub(super) fn send_notifies(&mut self, now: Time) {
        while let Some(endpoint) = {
            let endpoints = &self.calls.endpoints;
            self.calls.watches.next_due(|endpoint| endpoints.get(endpoint)?.watch)
        } {
            self.send_notify(now, endpoint);
        }
    }

    /// Sends the Notify of `endpoint`, unless something else has to come before it: then it waits for that.
    fn send_notify(&mut self, now: Time, endpoint: EndpointIndex) {
        // It waits until the agent knows of the restart or the disconnect (G-DIS-13); `apply_announcement` comes back to it.
        if self.is_disconnected(endpoint) || self.calls.watch(endpoint).is_none_or(|watch| watch.cut_off) {
            return;
        }
        if !self.resend_held(now, endpoint) {
            return;
        }
        let Some(watch) = self.calls.watch(endpoint).filter(|watch| watch.unsent) else { return };
        let (behind, older) = (watch.outstanding().last(), watch.outstanding().count());
        let before: usize = watch.outstanding().filter_map(|id| self.outgoing.body(id)).map(|body| body.len() + SEPARATOR).sum();
        if older >= event::NOTIFIES_MAX {
            return;
        }
        let Some((agent, addresses, count)) = self.destination(endpoint) else { return };
        let addresses = addresses.get(..count).unwrap_or_default();
        let (calls, manners) = (&self.calls, self.settings.manners(agent));
        // A response to the one before makes it due (G-QUA-14).
        if older > 0 && !manners.piggyback {
            return;
        }
        let write = |id, buffer: &mut [u8]| {
            let length = event::write_notify(calls, endpoint, id, buffer, manners)?;
            // All that is unanswered has to fit in one datagram with it (G-QUA-13, G-QUA-14).
            (before + length <= COMMAND_MAX).then_some(length)
        };
        let user = Purpose::Notify(endpoint).pack();
        let sent = self.outgoing.send_with(now, agent, addresses, user, Delivery { behind, until_t_max: true }, write);
        match sent {
            Ok(id) => {
                if let Some(watch) = self.calls.watch_slot(endpoint).and_then(|slot| self.calls.watches.get_mut(slot)) {
                    watch.sent(id);
                }
                self.counters.add(Counter::NotifiesSent);
            }
            // A response to one of those before it makes room.
            Err(SendError::TooLong) if older > 0 => {}
            Err(_) => self.retry_notify(now, endpoint),
        }
    }

    /// There was no room for a Notify of `endpoint`: it is tried again later.
    pub(super) fn retry_notify(&mut self, now: Time, endpoint: EndpointIndex) {
        self.counters.add(Counter::OwnFull);
        let Some(slot) = self.calls.watch_slot(endpoint) else { return };
        if let Some(watch) = self.calls.watches.get_mut(slot) {
            watch.retry = now + RETRY;
        }
        self.calls.watches.reschedule(slot);
    }

    /// The Notify `id` got its final response.
    pub(super) fn notify_answered(&mut self, now: Time, endpoint: EndpointIndex, id: TransactionId, outcome: Answered) {
        if outcome != Answered::Success {
            self.counters.add(Counter::NotifiesRefused);
        }
        self.forget_held_before(now, endpoint, id);
        event::answered(&mut self.calls, now, endpoint, id);
        self.send_notifies(now);
    }
}

/// The line between two messages of a datagram.
pub(super) const SEPARATOR: usize = 3;
