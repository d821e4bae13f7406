//! Commands that are held: kept with their bytes, neither repeated nor given up, until whoever sent them says what becomes of them.
//!
//! For what stood behind a command that was given up and must not be said before something else has been (G-DIS-06, G-DIS-13). A final
//! that comes all the same counts. Also for one that must not leave yet. Held ones take places that other commands could have, a quarter of
//! all at most.

use super::Outgoing;
use super::slot::Phase;
use crate::proto::base::{AgentId, TransactionId};
use std::net::SocketAddr;

impl Outgoing {
    /// Holds an outstanding command: no more copies, and no end but an answer or [`Outgoing::cancel`]. False: it is not outstanding, or
    /// too many are held already; then it goes on as before.
    pub fn hold(&mut self, id: TransactionId) -> bool {
        let Some(key) = self.outstanding_key(id) else { return false };
        if self.is_held(id) {
            return true;
        }
        if self.held >= self.limit.div_ceil(4) {
            return false;
        }
        self.wheel.cancel(key, id);
        if let Some(slot) = self.slots.get_mut(key as usize) {
            slot.phase = Phase::Held;
            self.held += 1;
        }
        true
    }

    /// Whether this command is held.
    pub fn is_held(&self, id: TransactionId) -> bool {
        let slot = self.key(id).and_then(|key| self.slots.get(key as usize));
        slot.is_some_and(|slot| slot.phase == Phase::Held)
    }

    /// Lets a held command go of which no copy has left: its first one goes to `agent`, at these addresses in order. False: there is none,
    /// or no address.
    pub fn release(&mut self, id: TransactionId, agent: AgentId, addresses: &[SocketAddr]) -> bool {
        let Some(key) = self.outstanding_key(id).filter(|_| !addresses.is_empty() && self.is_held(id)) else { return false };
        let unsent = self.slots.get(key as usize).is_some_and(|slot| slot.first_sent.is_none());
        if unsent {
            self.held -= 1;
            self.readdress(key, agent, addresses);
        }
        unsent
    }

    /// How many commands are held.
    pub fn held(&self) -> u32 {
        self.held
    }
}
