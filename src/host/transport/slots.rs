//! Send slots: the buffers datagrams are written into and sent from, a fixed number per core.
//!
//! Owns the bytes and, for each slot on its way, length, destination and socket. When a sent slot is free again is the transport's knowledge.

use std::net::SocketAddr;

use super::socket::RawAddress;
use super::{DATAGRAM_MAX, TransportSettings};

/// Slots start at multiples of this: a cache line.
const ALIGNMENT: usize = 64;

/// A reserved send slot. Give it to `send` or `abandon`; one that is dropped is lost for good.
#[derive(Debug)]
#[must_use = "send it or abandon it"]
pub struct Slot(pub(super) u32);

/// A slot on its way.
#[derive(Clone, Copy)]
pub struct Outgoing {
    /// The destination.
    pub to: RawAddress,
    /// Bytes to send.
    pub len: u32,
    /// The listen socket to send from.
    pub local: u8,
    /// The slot that follows in its run.
    next: u32,
}

/// All send slots of a core.
pub struct SendSlots {
    bytes: Box<[u8]>,
    size: usize,
    stride: usize,
    free: Vec<u32>,
    outgoing: Box<[Outgoing]>,
}

impl SendSlots {
    /// All free.
    pub fn new(settings: &TransportSettings) -> SendSlots {
        let count = settings.send_slots.clamp(1, 4096);
        let size = (settings.slot_size as usize).clamp(64, DATAGRAM_MAX);
        let stride = size.next_multiple_of(ALIGNMENT);
        SendSlots {
            bytes: vec![0; stride * count as usize].into_boxed_slice(),
            size,
            stride,
            free: (0..count).rev().collect(),
            outgoing: vec![Outgoing { to: RawAddress::NONE, len: 0, local: 0, next: 0 }; count as usize].into_boxed_slice(),
        }
    }

    /// Slots in all.
    pub fn count(&self) -> usize {
        self.outgoing.len()
    }

    /// Slots that can be reserved.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Takes a free slot; the last freed first, while it is still in the cache.
    #[inline]
    pub fn reserve(&mut self) -> Option<Slot> {
        self.free.pop().map(Slot)
    }

    /// The bytes of a reserved slot.
    #[inline]
    pub fn buffer(&mut self, slot: &Slot) -> &mut [u8] {
        let start = slot.0 as usize * self.stride;
        &mut self.bytes[start..start + self.size]
    }

    /// Notes what to send; from here on the slot goes by its number, until [`SendSlots::release`].
    #[inline]
    pub fn queue(&mut self, slot: Slot, len: usize, to: SocketAddr, local: u8) -> u32 {
        self.outgoing[slot.0 as usize] = Outgoing { to: to.into(), len: len.min(self.size) as u32, local, next: slot.0 };
        slot.0
    }

    /// What was noted for a queued slot.
    #[inline]
    pub fn outgoing(&self, index: u32) -> &Outgoing {
        &self.outgoing[index as usize]
    }

    /// The bytes to send of a queued slot.
    #[inline]
    pub fn bytes(&self, index: u32) -> &[u8] {
        let start = index as usize * self.stride;
        &self.bytes[start..start + self.outgoing(index).len as usize]
    }

    /// Notes that `next` follows `slot` in its run.
    #[inline]
    pub(super) fn link(&mut self, slot: u32, next: u32) {
        self.outgoing[slot as usize].next = next;
    }

    /// The slot that follows in its run.
    #[inline]
    pub(super) fn next(&self, slot: u32) -> u32 {
        self.outgoing[slot as usize].next
    }

    /// Makes a queued slot free again.
    #[inline]
    pub fn release(&mut self, index: u32) {
        debug_assert!(self.free.len() < self.outgoing.len(), "freed twice");
        self.free.push(index);
    }

    /// Gives a reserved slot back unsent.
    pub fn abandon(&mut self, slot: Slot) {
        self.release(slot.0);
    }
}
