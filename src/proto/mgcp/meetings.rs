//! Connections that were told of another one inside the gateway, which is to learn of them: each listed once, however often it was told.

use crate::proto::endpoint::ConnectionSlot;

/// See the module page.
pub struct Meetings {
    ready: Vec<ConnectionSlot>,
    /// Those that found no room on the way to the other one's core.
    held: Vec<ConnectionSlot>,
    /// One bit for each connection: it is in one of the lists.
    listed: Box<[u64]>,
}

impl Meetings {
    /// None yet, of so many connections.
    pub fn new(connections: u32) -> Meetings {
        Meetings { ready: Vec::new(), held: Vec::new(), listed: vec![0; connections.div_ceil(64) as usize].into() }
    }

    /// This connection was told of another one.
    pub fn note(&mut self, slot: ConnectionSlot) {
        if self.list(slot) {
            self.ready.push(slot);
        }
    }

    /// Whether it was not listed; it is now.
    fn list(&mut self, slot: ConnectionSlot) -> bool {
        let Some(word) = self.listed.get_mut(slot as usize / 64) else { return false };
        let bit = 1 << (slot % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// The next one, which is listed no longer.
    pub fn take(&mut self) -> Option<ConnectionSlot> {
        let slot = self.ready.pop()?;
        if let Some(word) = self.listed.get_mut(slot as usize / 64) {
            *word &= !(1 << (slot % 64));
        }
        Some(slot)
    }

    /// There is no room for what was taken: it waits until [`Meetings::look_again`].
    pub fn hold(&mut self, slot: ConnectionSlot) {
        if self.list(slot) {
            self.held.push(slot);
        }
    }

    /// There may be room now.
    pub fn look_again(&mut self) {
        self.ready.append(&mut self.held);
    }

    /// How many are listed.
    pub fn count(&self) -> usize {
        self.ready.len() + self.held.len()
    }
}
