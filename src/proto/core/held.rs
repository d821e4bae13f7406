//! Notify commands that were sent behind one that is given up (RFC 3435 4.4.1, 4.4.7; G-DIS-06, G-DIS-13, G-QUA-19).
//!
//! The one that nobody answered until T-MAX is lost. Those behind it are younger, and what they tell is told nowhere else; but the agent
//! has to hear first that the endpoint was disconnected. So they are held, and when it has heard they are sent anew, oldest first and
//! in front of each other as before: as new transactions, because an agent forgets the old ids while the endpoint is cut off.
//! One is not held when one behind it was answered, which it must not come after. An agent that had them already and whose answers were lost is told twice, as with everything that is sent again after a disconnect.

use super::Core;
use super::notify::SEPARATOR;
use super::outside::{Frames, Outside, Turn};
use super::own::Purpose;
use crate::proto::base::{Counter, EndpointIndex, Time, TransactionId};
use crate::proto::mgcp::{self, event};
use crate::proto::transaction::outgoing::{COMMAND_MAX, Delivery, SendError};

impl Core {
    /// The Notify `id` got no response: the endpoint will be disconnected, and must not say more before it has told so.
    pub(super) fn notify_lost<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, endpoint: EndpointIndex, id: TransactionId) {
        self.counters.add(Counter::NotifiesLost);
        event::lost(&mut self.calls, endpoint, id);
        for behind in self.notifies_out(endpoint) {
            let overtaken = self.calls.watch(endpoint).is_some_and(|watch| watch.is_overtaken(behind));
            if overtaken || !self.outgoing.hold(behind) {
                self.lose_notify(turn.now, endpoint, behind);
            }
        }
        self.note_unanswered(endpoint);
    }

    /// What is held of `endpoint` will not be told: it leaves service, or begins anew.
    pub(super) fn lose_held(&mut self, now: Time, endpoint: EndpointIndex) {
        for held in self.notifies_out(endpoint) {
            if self.outgoing.is_held(held) {
                self.lose_notify(now, endpoint, held);
            }
        }
    }

    fn lose_notify(&mut self, now: Time, endpoint: EndpointIndex, id: TransactionId) {
        self.outgoing.cancel(now, id);
        self.counters.add(Counter::NotifiesLost);
        event::lost(&mut self.calls, endpoint, id);
    }

    /// The Notify `id` is answered: the held ones before it stood in front of it, so that the agent has them too.
    pub(super) fn forget_held_before(&mut self, now: Time, endpoint: EndpointIndex, id: TransactionId) {
        for older in self.notifies_out(endpoint).take_while(|older| *older != id) {
            if self.outgoing.is_held(older) {
                self.outgoing.cancel(now, older);
                event::answered(&mut self.calls, now, endpoint, older);
            }
        }
    }

    /// Sends anew what is held of an endpoint whose agent knows of the disconnect. False: there was no room for all.
    pub(super) fn resend_held(&mut self, now: Time, endpoint: EndpointIndex) -> bool {
        let (mut behind, mut before) = (None, 0);
        for id in self.notifies_out(endpoint) {
            let id = if self.outgoing.is_held(id) { self.resend(now, endpoint, id, behind, before) } else { Some(id) };
            let Some(id) = id else { return false };
            before += self.outgoing.body(id).map_or(0, <[u8]>::len) + SEPARATOR;
            behind = Some(id);
        }
        true
    }

    /// Sends the held Notify `id` under a new id, which is returned, behind another one; `before` octets stand in front of it.
    fn resend(
        &mut self,
        now: Time,
        endpoint: EndpointIndex,
        id: TransactionId,
        behind: Option<TransactionId>,
        before: usize,
    ) -> Option<TransactionId> {
        let (agent, addresses, count) = self.destination(endpoint)?;
        if behind.is_some() && !self.settings.manners(agent).piggyback {
            return None;
        }
        let mut room = [0; COMMAND_MAX];
        let held = self.outgoing.body(id)?;
        let text = room.get_mut(..held.len())?;
        text.copy_from_slice(held);
        let write = |new, buffer: &mut [u8]| {
            let length = mgcp::write_under(text, new, buffer)?;
            (before + length <= COMMAND_MAX).then_some(length)
        };
        let (user, delivery) = (Purpose::Notify(endpoint).pack(), Delivery { behind, until_t_max: true });
        match self.outgoing.send_with(now, agent, addresses.get(..count).unwrap_or_default(), user, delivery, write) {
            Ok(new) => {
                self.outgoing.cancel(now, id);
                if let Some(watch) = self.calls.watch_slot(endpoint).and_then(|slot| self.calls.watches.get_mut(slot)) {
                    watch.renamed(id, new);
                }
                self.counters.add(Counter::NotifiesSent);
                Some(new)
            }
            // A response to one of those before it makes room.
            Err(SendError::TooLong) if behind.is_some() => None,
            Err(_) => {
                self.retry_notify(now, endpoint);
                None
            }
        }
    }

    /// The Notify commands of `endpoint` that are out, oldest first.
    fn notifies_out(&self, endpoint: EndpointIndex) -> impl Iterator<Item = TransactionId> + use<> {
        self.calls.watch(endpoint).map(|watch| watch.outstanding()).into_iter().flatten()
    }
}
