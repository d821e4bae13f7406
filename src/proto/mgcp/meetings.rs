//! Connections that were told of another one inside the gateway, which is to learn of them: each listed once, however often it was told.
//! And those that have ended, whose other halves are not to send any more to where they received.

use crate::proto::base::EndpointIndex;
use crate::proto::endpoint::{Connection, ConnectionSlot, LocalMedia, Remote};
use crate::proto::trunk::MediaAddress;

/// Where a connection of `endpoint` sends in vain: its other half has gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parting {
    /// The endpoint of the half that is left.
    pub endpoint: EndpointIndex,
    /// Where the one that has gone received.
    pub at: MediaAddress,
}

/// See the module page.
pub struct Meetings {
    ready: Vec<ConnectionSlot>,
    /// Those that found no room on the way to the other one's core.
    held: Vec<ConnectionSlot>,
    /// One bit for each connection: it is in one of the lists.
    listed: Box<[u64]>,
    partings: Vec<Parting>,
    held_partings: Vec<Parting>,
    /// So many partings are kept at the most.
    most: usize,
}

impl Meetings {
    /// None yet, of so many connections.
    pub fn new(connections: u32) -> Meetings {
        let listed = vec![0; connections.div_ceil(64) as usize].into();
        let (partings, held_partings, most) = (Vec::new(), Vec::new(), connections as usize);
        Meetings { ready: Vec::new(), held: Vec::new(), listed, partings, held_partings, most }
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

    /// A connection has ended. False: there are as many partings as may be, and its other half sends on until it is ended or changed.
    #[must_use]
    pub fn part(&mut self, connection: &Connection) -> bool {
        let (Remote::Local(endpoint, _), Some(at)) = (connection.remote, receives_at(connection)) else { return true };
        let fits = self.partings.len() + self.held_partings.len() < self.most;
        if fits {
            self.partings.push(Parting { endpoint, at });
        }
        fits
    }

    /// The next half that has gone. Before anybody who may receive where it did is told of: see [`Meetings::take`].
    pub fn take_parting(&mut self) -> Option<Parting> {
        self.partings.pop()
    }

    /// There is no room for this one: it waits until [`Meetings::look_again`].
    pub fn hold_parting(&mut self, parting: Parting) {
        self.held_partings.push(parting);
    }

    /// There may be room now.
    pub fn look_again(&mut self) {
        self.ready.append(&mut self.held);
        self.partings.append(&mut self.held_partings);
    }

    /// How many are listed.
    pub fn count(&self) -> usize {
        self.ready.len() + self.held.len()
    }

    /// How many partings are kept.
    pub fn partings(&self) -> usize {
        self.partings.len() + self.held_partings.len()
    }
}

/// Where a connection receives; `None` on a card that moves no media.
pub fn receives_at(connection: &Connection) -> Option<MediaAddress> {
    let LocalMedia { address, port, .. } = connection.local;
    (port != 0).then_some(MediaAddress { address, port })
}
