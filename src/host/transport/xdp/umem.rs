//! The memory shared with the card: the core's chunk frames to receive into, and behind them the send slots.
//!
//! Every access of ours to a chunk goes through here, and here it is known whose it is: a received chunk is ours from its receive
//! descriptor on until it is held (then it is read through the frame table) or given back; a slot is ours from `reserve` until it is
//! put into a send ring, and again from its completion on.

use std::os::fd::BorrowedFd;
use std::{io, slice};

use super::packet::HEADERS_MAX;
use super::sys;
use crate::host::frame::{CHUNK, ChunkLayout, FramePool, Meta};
use crate::proto::base::FrameRef;

/// Bytes in front of a datagram in its slot, for the headers: whole cache lines.
pub const SLOT_HEAD: usize = 128;
const _: () = assert!(HEADERS_MAX <= SLOT_HEAD);

/// The chunks a core needs for `frames` received frames and `slots` send slots of `slot_size` bytes.
pub fn layout(frames: u32, slots: u32, slot_size: u32) -> ChunkLayout {
    ChunkLayout { frames, others: slots * slot_chunks(slot_size as usize) as u32 }
}

/// Chunks a slot takes: a datagram the card can send lies in the first one, a longer one goes by the kernel from wherever it lies.
fn slot_chunks(slot_size: usize) -> usize {
    (SLOT_HEAD + slot_size).div_ceil(CHUNK)
}

/// Chunk frames and send slots of one core.
pub struct Umem {
    pool: FramePool,
    memory: (*mut u8, usize),
    slot_size: usize,
    slot_chunks: usize,
    /// Where the slots begin.
    slots_at: usize,
    free_slots: Vec<u32>,
    /// By slot: with the kernel, or waiting for it.
    queued: Box<[bool]>,
}

// SAFETY: the address is that of the frame table's chunks, which the pool keeps alive; who touches which chunk is decided here.
unsafe impl Send for Umem {}

impl Umem {
    /// Of the chunks of a pool; `None` when they are not as [`layout`] said.
    pub fn new(pool: FramePool, slots: u32, slot_size: u32) -> Option<Umem> {
        let memory = pool.chunk_memory()?;
        let slot_size = slot_size as usize;
        let (slot_chunks, slots_at) = (slot_chunks(slot_size), pool.frames() as usize * CHUNK);
        (slots_at + slots as usize * slot_chunks * CHUNK <= memory.1).then(|| Umem {
            pool,
            memory,
            slot_size,
            slot_chunks,
            slots_at,
            free_slots: (0..slots).rev().collect(),
            queued: vec![false; slots as usize].into_boxed_slice(),
        })
    }

    /// Lends the memory to a socket.
    pub fn register(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: the frame table keeps the memory mapped and the pool keeps the table; the transport closes its sockets before it
        // drops this. Chunks are accessed as this module says.
        unsafe { sys::register_memory(socket, self.memory, CHUNK as u32) }
    }

    /// Writes to every page: see [`FramePool::touch`]. Before the memory is lent.
    pub fn touch(&mut self) {
        self.pool.touch();
    }

    /// Whether it lies on huge pages.
    pub fn is_huge(&self) -> bool {
        self.pool.has_huge_chunks()
    }

    /// Whether a frame is one of the chunks.
    #[inline]
    pub fn owns(&self, frame: FrameRef) -> bool {
        self.pool.owns(frame)
    }

    /// Ends the holding of a frame: see [`FramePool::release`].
    #[inline]
    #[must_use]
    pub fn release(&mut self, frame: FrameRef) -> bool {
        self.pool.release(frame)
    }

    /// Frames to receive into, in all.
    pub fn frames(&self) -> u32 {
        self.pool.frames()
    }

    /// Frames that are neither held nor with the card.
    pub fn free_frames(&self) -> usize {
        self.pool.free()
    }

    /// A chunk for the fill ring.
    #[inline]
    pub fn take(&mut self) -> Option<u64> {
        let index = self.pool.take()?;
        Some(u64::from(index - self.pool.first()) * CHUNK as u64)
    }

    /// Takes a chunk back that the fill ring had no room for.
    pub fn give_back(&mut self, address: u64) {
        if let Some(index) = self.index(address) {
            // SAFETY: it came from `take` and was not put into a ring, so the kernel does not know it.
            unsafe { self.pool.give_back(index) };
        }
    }

    fn index(&self, address: u64) -> Option<u32> {
        let chunk = u32::try_from(address / CHUNK as u64).ok()?;
        (chunk < self.pool.frames()).then(|| chunk + self.pool.first())
    }

    /// Looks into a received chunk: `read` gets what the descriptor says was written, and what lies in front of it in the chunk, and
    /// says what the datagram is (its start counted from the beginning of what was written). Then the chunk is held, or free again when
    /// it says that there is none. `None` as well when the descriptor is none of ours.
    #[inline]
    pub fn receive(&mut self, descriptor: &libc::xdp_desc, read: impl FnOnce(&mut [u8], &[u8]) -> Option<Meta>) -> Option<FrameRef> {
        let index = self.index(descriptor.addr)?;
        let (start, len) = ((descriptor.addr % CHUNK as u64) as usize, descriptor.len as usize);
        if start + len > CHUNK {
            // SAFETY: received, so the kernel has let go of it.
            unsafe { self.pool.give_back(index) };
            return None;
        }
        // SAFETY: the frame is taken and came back in the receive ring, so the kernel does not write to it until it is in the fill ring
        // again; the chunk is `CHUNK` bytes long and initialised (mapped zeroed).
        let chunk = unsafe { slice::from_raw_parts_mut(self.pool.address(index), CHUNK) };
        let (before, written) = chunk.split_at_mut(start);
        match read(before, &written[..len]) {
            Some(meta) => {
                let meta = Meta { start: meta.start + start as u32, ..meta };
                // SAFETY: as above, and the slice is gone.
                Some(unsafe { self.pool.hold(index, meta) })
            }
            None => {
                // SAFETY: as above.
                unsafe { self.pool.give_back(index) };
                None
            }
        }
    }

    /// Slots in all.
    pub fn slots(&self) -> usize {
        self.queued.len()
    }

    /// Slots that can be reserved.
    #[inline]
    pub fn free_slots(&self) -> usize {
        self.free_slots.len()
    }

    /// Takes a free slot.
    #[inline]
    pub fn reserve(&mut self) -> Option<u32> {
        self.free_slots.pop()
    }

    /// Gives a reserved slot back.
    #[inline]
    pub fn abandon(&mut self, slot: u32) {
        debug_assert!(!self.queued[slot as usize] && self.free_slots.len() < self.queued.len(), "freed twice");
        self.free_slots.push(slot);
    }

    /// The head of a reserved slot and the bytes of its datagram behind it.
    #[inline]
    pub fn slot(&mut self, slot: u32) -> (&mut [u8], &mut [u8]) {
        assert!(!self.queued[slot as usize], "a slot that is ours");
        let at = self.slots_at + slot as usize * self.slot_chunks * CHUNK;
        // SAFETY: `new` checked that all slots lie inside the memory, behind the frames; this one is not with the kernel, and nobody
        // else has its number. Initialised (mapped zeroed).
        let bytes = unsafe { slice::from_raw_parts_mut(self.memory.0.wrapping_add(at), SLOT_HEAD + self.slot_size) };
        bytes.split_at_mut(SLOT_HEAD)
    }

    /// The longest datagram that can be sent from a slot without the kernel: what lies in its first chunk.
    pub fn sendable(&self) -> usize {
        (CHUNK - SLOT_HEAD).min(self.slot_size)
    }

    /// Marks a slot as the kernel's; the descriptor of its datagram of `len` bytes (at most [`Umem::sendable`]) and the headers in front.
    #[inline]
    pub fn queue(&mut self, slot: u32, headers: usize, len: usize) -> libc::xdp_desc {
        self.queued[slot as usize] = true;
        let at = self.slots_at + slot as usize * self.slot_chunks * CHUNK;
        libc::xdp_desc { addr: (at + SLOT_HEAD - headers) as u64, len: (headers + len) as u32, options: 0 }
    }

    /// Takes a slot back that was put into no ring after all.
    pub fn take_back(&mut self, slot: u32) {
        self.queued[slot as usize] = false;
    }

    /// Takes a slot back whose address came in a completion ring. `false` when it is none of ours.
    #[inline]
    pub fn complete(&mut self, address: u64) -> bool {
        let slot = (address as usize).checked_sub(self.slots_at).map(|at| at / (self.slot_chunks * CHUNK));
        let Some(queued) = slot.and_then(|slot| self.queued.get_mut(slot)).filter(|queued| **queued) else { return false };
        *queued = false;
        self.free_slots.push(slot.unwrap_or(0) as u32);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::frame::{FrameLayout, FrameTable};
    use crate::proto::base::Time;
    use std::net::SocketAddr;

    fn umem(frames: u32, slots: u32, slot_size: u32) -> Umem {
        let chunks = [layout(frames, slots, slot_size)];
        let (_, mut pools) = FrameTable::with_chunks(&[FrameLayout { frames: 1, size: 200 }], &chunks).expect("frames");
        Umem::new(pools[0].split_chunks().expect("chunks"), slots, slot_size).expect("as laid out")
    }

    fn meta(start: u32, len: u32) -> Meta {
        Meta { from: SocketAddr::from(([10, 0, 0, 1], 2727)), arrival: Time(5), start, len, local: 0 }
    }

    #[test]
    fn chunks_go_round() {
        let mut umem = umem(2, 1, 4096);
        let (first, second) = (umem.take().expect("free"), umem.take().expect("free"));
        assert!(umem.take().is_none() && first != second && first % CHUNK as u64 == 0);
        let descriptor = |address: u64, len: u32| libc::xdp_desc { addr: address + 256, len, options: 0 };
        let frame = umem.receive(&descriptor(second, 60), |before, bytes| {
            assert_eq!((before.len(), bytes.len()), (256, 60));
            Some(meta(42, 18))
        });
        let frame = frame.expect("held");
        assert!(umem.owns(frame) && umem.take().is_none());
        assert!(umem.receive(&descriptor(first, CHUNK as u32), |_, _| unreachable!("beyond the chunk")).is_none());
        assert!(umem.receive(&descriptor(first, 60), |_, _| None).is_none(), "not wanted");
        assert!(umem.receive(&descriptor(1 << 40, 60), |_, _| unreachable!("not ours")).is_none());
        assert!(umem.release(frame) && !umem.release(frame));
    }

    #[test]
    fn slots_are_ours_or_the_kernels() {
        let mut umem = umem(3, 2, 4608);
        let slot = umem.reserve().expect("free");
        umem.slot(slot).1[4607] = 9;
        assert_eq!((umem.sendable(), umem.slots(), umem.free_slots()), (CHUNK - SLOT_HEAD, 2, 1));
        let descriptor = umem.queue(slot, 42, 100);
        assert_eq!(descriptor.len, 142);
        assert!(descriptor.addr >= 3 * CHUNK as u64);
        assert!(!umem.complete(0) && !umem.complete(u64::MAX));
        assert!(umem.complete(descriptor.addr) && !umem.complete(descriptor.addr), "once");
        assert_eq!(umem.free_slots(), 2);
    }
}
