//! Datagrams of several messages that this core received and hands out one message at a time (RFC 3435 3.5.5, G-PIG-02, G-SHD-05).

use crate::proto::base::{AgentId, FrameRef};

/// One datagram in hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram {
    pub frame: FrameRef,
    pub agent: AgentId,
    /// Where the messages not handed out yet begin.
    pub next: usize,
    /// How many more may be handed out.
    pub left: u8,
    /// The message in hand waits on this core, and its frame counts as this core's.
    pub waits_here: bool,
}

/// The table: bounded, and allocated once.
pub(super) struct Datagrams {
    entries: Vec<Option<Datagram>>,
    free: Vec<u16>,
    /// Entries whose message in hand is finished.
    ready: Vec<u16>,
}

impl Datagrams {
    pub fn new(limit: u16) -> Datagrams {
        let limit = limit.min(super::envelope::KEPT - 1);
        Datagrams {
            entries: vec![None; usize::from(limit)],
            free: (0..limit).rev().collect(),
            ready: Vec::with_capacity(usize::from(limit)),
        }
    }

    /// Keeps `datagram`; `None` when the table is full.
    pub fn insert(&mut self, datagram: Datagram) -> Option<u16> {
        let slot = self.free.pop()?;
        *self.entries.get_mut(usize::from(slot))? = Some(datagram);
        Some(slot)
    }

    pub fn get_mut(&mut self, slot: u16) -> Option<&mut Datagram> {
        self.entries.get_mut(usize::from(slot))?.as_mut()
    }

    /// Whether the message in hand of `slot` waits on this core.
    pub fn waits_here(&self, slot: u16) -> bool {
        self.entries.get(usize::from(slot)).is_some_and(|entry| entry.is_some_and(|datagram| datagram.waits_here))
    }

    pub fn remove(&mut self, slot: u16) -> Option<Datagram> {
        let datagram = self.entries.get_mut(usize::from(slot))?.take()?;
        self.free.push(slot);
        Some(datagram)
    }

    /// The message of `slot` that was handed out is finished. False: no such datagram.
    pub fn finished(&mut self, slot: u16) -> bool {
        let known = self.get_mut(slot).is_some();
        if known {
            self.ready.push(slot);
        }
        known
    }

    /// A datagram whose next message may be handed out.
    pub fn next_ready(&mut self) -> Option<u16> {
        self.ready.pop()
    }

    /// How many are in hand.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}
