//! Frames: the buffers datagrams are received into, a fixed number per core, allocated at boot.
//!
//! A transport takes free frames from its core's [`FramePool`], lets the kernel fill them, and *holds* each filled one together
//! with its [`Meta`]; from then on the frame is known by a [`FrameRef`], which may travel to other cores. Any core reads a held
//! frame through the shared [`FrameTable`]; the owning core alone releases it, after which the kernel may fill it again.
//!
//! What keeps reader and kernel apart is one atomic word per frame:
//!
//! | state | value | bytes and meta belong to |
//! |---|---|---|
//! | free | 0 | nobody; on the pool's free list |
//! | taken | `u32::MAX` | the owner's transport, that is the kernel |
//! | held | 1 + readers | everybody, to read |
//!
//! Only the owner moves a frame between states; a reader moves `held` up by one and back. Holding is a release store, reading an
//! acquire, the reader's end a release and the owner's release of the frame an acquire: so the kernel's writes come before
//! every read and every read before the kernel's next write. A `FrameRef` that came out of nowhere, or outlived its frame, reads
//! `None` or a later datagram, never memory that is being written. Cost: two locked instructions per read, about 10 ns.
//!
//! A core that bypasses the kernel has *chunks* besides: frames of one page each, numbered behind the others, in memory of their own
//! that is lent to the network card as a whole. [`FramePool::split_chunks`] makes a pool of them; readers see no difference.

use std::cell::UnsafeCell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::{Deref, Range};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::cpu;
use crate::proto::base::{CoreId, FrameRef, Time};

/// A message that did not come by the transport's own sockets: taken from the socket of a core that stands still, or read from a stream.
#[derive(Debug)]
pub struct Stray<B = Box<[u8]>> {
    /// Who sent it.
    pub from: SocketAddr,
    /// The listen address it came to.
    pub local: u8,
    /// When it was taken.
    pub arrival: Time,
    /// What it says.
    pub bytes: B,
}

impl Stray {
    /// The same, lent.
    pub fn lent(&self) -> Stray<&[u8]> {
        Stray { from: self.from, local: self.local, arrival: self.arrival, bytes: &self.bytes }
    }
}

/// Bytes kept free in front of a datagram, for what the kernel writes there (io_uring: sizes, source address, timestamp).
pub const HEADROOM: usize = 96;

/// Frames start at multiples of this: a cache line.
const ALIGNMENT: usize = 64;

const FREE: u32 = 0;
const TAKEN: u32 = u32::MAX;
const HELD: u32 = 1;

/// What is known of a received datagram besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Who sent it.
    pub from: SocketAddr,
    /// When it arrived: the kernel's receive timestamp, or when it was taken from the socket.
    pub arrival: Time,
    /// Where its bytes begin in the frame.
    pub start: u32,
    /// How many bytes it has.
    pub len: u32,
    /// The listen socket it came in by: its place in the transport's list.
    pub local: u8,
}

/// How many frames a core has, and how large.
#[derive(Clone, Copy, Debug)]
pub struct FrameLayout {
    /// Frames per core.
    pub frames: u32,
    /// Bytes per frame, [`HEADROOM`] included. Memory is rounded up to a multiple of 64, the longest datagram is not.
    pub size: u32,
}

impl Default for FrameLayout {
    /// 1024 frames of 4,608 bytes: room for the 4,000 bytes every MGCP entity must take (RFC 3435 3.5.4) and then some.
    fn default() -> FrameLayout {
        FrameLayout { frames: 1024, size: 4608 }
    }
}

/// The size of a chunk: what the kernel takes at most, so that a frame of the network and a long datagram both fit.
pub const CHUNK: usize = 4096;

/// How many chunks a core has, for a transport that lends them to the network card.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChunkLayout {
    /// Chunks to receive into; they are frames, numbered behind the core's others.
    pub frames: u32,
    /// Chunks behind those, which the transport sends from; they are no frames.
    pub others: u32,
}

/// The frames of all cores, to read.
pub struct FrameTable {
    regions: Box<[Region]>,
}

impl FrameTable {
    /// The frames of as many cores as there are layouts, and each core's pool. The memory is mapped, not touched:
    /// [`FramePool::touch`] on the core's own thread places it on that core's NUMA node.
    ///
    /// # Errors
    /// When the memory cannot be mapped, there are more than 255 cores, or a layout is beyond 2^31 bytes.
    pub fn new(layouts: &[FrameLayout]) -> io::Result<(Arc<FrameTable>, Vec<FramePool>)> {
        FrameTable::with_chunks(layouts, &[])
    }

    /// The same, with chunks for the first cores.
    ///
    /// # Errors
    /// As for [`FrameTable::new`].
    pub fn with_chunks(layouts: &[FrameLayout], chunks: &[ChunkLayout]) -> io::Result<(Arc<FrameTable>, Vec<FramePool>)> {
        FrameTable::placed(layouts, chunks, &[])
    }

    /// The same, the first cores' states of frames on the NUMA nodes of these CPUs.
    ///
    /// # Errors
    /// As for [`FrameTable::new`].
    pub fn placed(layouts: &[FrameLayout], chunks: &[ChunkLayout], cpus: &[usize]) -> io::Result<(Arc<FrameTable>, Vec<FramePool>)> {
        if layouts.len() > usize::from(u8::MAX) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "more than 255 cores"));
        }
        let chunks = chunks.iter().copied().chain(std::iter::repeat(ChunkLayout::default()));
        let region = |(core, (layout, chunks)): (usize, (&FrameLayout, ChunkLayout))| match cpus.get(core) {
            Some(&cpu) => cpu::on(cpu, || Region::new(layout, chunks)),
            None => Region::new(layout, chunks),
        };
        let regions = layouts.iter().zip(chunks).enumerate().map(region).collect::<io::Result<Box<[Region]>>>()?;
        let table = Arc::new(FrameTable { regions });
        let pools = (0..layouts.len()).map(|core| FramePool::new(&table, CoreId(core as u8), 0..table.regions[core].frames)).collect();
        Ok((table, pools))
    }

    /// The datagram in a held frame; `None` when the frame is not held. The frame cannot be released while the value lives: keep
    /// the [`FrameRef`], not this, across turns of the loop.
    #[inline]
    pub fn read(&self, frame: FrameRef) -> Option<Datagram<'_>> {
        let region = self.regions.get(usize::from(frame.core.0))?;
        let head = region.heads.get(frame.index as usize)?;
        let mut state = head.state.load(Ordering::Relaxed);
        loop {
            if state == FREE || state >= TAKEN - 1 {
                return None;
            }
            match head.state.compare_exchange_weak(state, state + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        // SAFETY: the frame is held and counts this reader, so the owner can neither release nor rewrite it until `Datagram` is
        // dropped; the acquire above saw the owner's release store of `held`, which followed its write of the meta.
        let meta = unsafe { &*head.meta.get() };
        let (address, _) = region.locate(frame.index);
        let start = address.wrapping_add(meta.start as usize);
        // SAFETY: `hold` checked that start..start + len lies inside the frame. The bytes are initialised (mapped zeroed, then
        // written by the kernel), and nobody writes them while this reader is counted, as above.
        let bytes = unsafe { std::slice::from_raw_parts(start, meta.len as usize) };
        Some(Datagram { head, meta, bytes })
    }
}

/// A received datagram being read: its bytes and its [`Meta`].
pub struct Datagram<'a> {
    head: &'a Head,
    meta: &'a Meta,
    bytes: &'a [u8],
}

impl Datagram<'_> {
    /// What is known besides the bytes.
    #[inline]
    pub fn meta(&self) -> &Meta {
        self.meta
    }
}

impl Deref for Datagram<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl Drop for Datagram<'_> {
    #[inline]
    fn drop(&mut self) {
        self.head.state.fetch_sub(1, Ordering::Release);
    }
}

/// One core's frames, to fill and release: the owner's half. Each frame is in one pool and that is not `Clone`.
pub struct FramePool {
    table: Arc<FrameTable>,
    core: CoreId,
    /// The frames it owns.
    range: Range<u32>,
    /// Free frames; the last released is taken first, while it is still in the cache.
    free: Vec<u32>,
}

impl FramePool {
    fn new(table: &Arc<FrameTable>, core: CoreId, range: Range<u32>) -> FramePool {
        FramePool { table: Arc::clone(table), core, free: range.clone().rev().collect(), range }
    }

    /// The pool of the core's chunks, once; `None` when it has none.
    pub fn split_chunks(&mut self) -> Option<FramePool> {
        let region = self.region();
        let (first, end) = (region.frames, region.heads.len() as u32);
        (first < end && self.range.end <= first && !region.split.swap(true, Ordering::Relaxed))
            .then(|| FramePool::new(&self.table, self.core, first..end))
    }

    /// The memory of all chunks, those that are no frames at its end: address and length, whole pages. `None` when there are none.
    pub fn chunk_memory(&self) -> Option<(*mut u8, usize)> {
        self.region().chunks.as_ref().map(|memory| (memory.address(0), memory.bytes))
    }

    /// Whether the chunks lie on huge pages.
    pub fn has_huge_chunks(&self) -> bool {
        self.region().chunks.as_ref().is_some_and(|memory| memory.huge)
    }

    /// Whether the frame is one of this pool.
    #[inline]
    pub fn owns(&self, frame: FrameRef) -> bool {
        frame.core == self.core && self.range.contains(&frame.index)
    }

    /// The core whose frames these are.
    pub fn core(&self) -> CoreId {
        self.core
    }

    /// The shared view of all frames.
    pub fn table(&self) -> &Arc<FrameTable> {
        &self.table
    }

    /// Frames in all.
    pub fn frames(&self) -> u32 {
        self.range.end - self.range.start
    }

    /// The number of the first frame; the others follow it.
    pub fn first(&self) -> u32 {
        self.range.start
    }

    /// Frames on the free list.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Bytes per frame, headroom included.
    pub fn frame_size(&self) -> usize {
        let region = self.region();
        if self.range.start < region.frames || region.chunks.is_none() { region.size } else { CHUNK }
    }

    /// The longest datagram that may be received into a frame, in bytes.
    pub fn room(&self) -> usize {
        self.region().room
    }

    /// Writes to every page, so that the kernel places the memory near the calling thread and no page is missing later.
    pub fn touch(&mut self) {
        let region = self.region();
        for &index in &self.free {
            let (address, size) = region.locate(index);
            for offset in (0..size).step_by(ALIGNMENT) {
                // SAFETY: a frame on the free list belongs to nobody else, and `offset` lies inside it.
                unsafe { address.wrapping_add(offset).write_volatile(0) };
            }
        }
    }

    /// Takes a free frame: from now on its bytes are the caller's (and may be lent to the kernel) until [`FramePool::hold`] or
    /// [`FramePool::give_back`].
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        let index = self.free.pop()?;
        // Relaxed: no other core acts on the difference between free and taken.
        self.region().heads[index as usize].state.store(TAKEN, Ordering::Relaxed);
        Some(index)
    }

    /// Where a frame's bytes begin ([`FramePool::frame_size`] of them). Only those of a taken frame may be written.
    #[inline]
    pub fn address(&self, index: u32) -> *mut u8 {
        assert!(self.range.contains(&index), "a frame of this pool");
        self.region().locate(index).0
    }

    /// Makes a taken and filled frame readable by everybody until it is released. A datagram that would not lie inside the frame
    /// is shortened.
    ///
    /// # Safety
    /// The caller took the frame, and neither the kernel nor anything else writes to it until it is taken again.
    #[inline]
    pub unsafe fn hold(&mut self, index: u32, meta: Meta) -> FrameRef {
        let region = self.region();
        let head = &region.heads[index as usize];
        let size = region.locate(index).1 as u32;
        let start = meta.start.min(size);
        let meta = Meta { start, len: meta.len.min(size - start), ..meta };
        // SAFETY: the frame is taken, so no reader looks at its meta; this pool is the only writer.
        unsafe { *head.meta.get() = meta };
        head.state.store(HELD, Ordering::Release);
        FrameRef { core: self.core, index }
    }

    /// Puts a taken frame back unused.
    ///
    /// # Safety
    /// The caller took the frame, and neither the kernel nor anything else writes to it until it is taken again.
    #[inline]
    pub unsafe fn give_back(&mut self, index: u32) {
        self.region().heads[index as usize].state.store(FREE, Ordering::Relaxed);
        self.free.push(index);
    }

    /// Takes a frame, lets `write` fill it and holds it: for transports that copy. `None` when no frame is free.
    pub fn fill(&mut self, write: impl FnOnce(&mut [u8]) -> Meta) -> Option<FrameRef> {
        let index = self.take()?;
        let (address, size) = (self.address(index), self.frame_size());
        // SAFETY: the frame is taken by this call and lent to nobody, so these bytes are ours alone; they are initialised.
        let meta = write(unsafe { std::slice::from_raw_parts_mut(address, size) });
        // SAFETY: taken above, and the slice is gone.
        Some(unsafe { self.hold(index, meta) })
    }

    /// Copies a datagram that was received elsewhere into a frame and holds it. `None` when no frame is free or it is too long.
    pub fn copy_in(&mut self, stray: &Stray<&[u8]>) -> Option<FrameRef> {
        let Stray { from, local, arrival, bytes } = *stray;
        if bytes.len() > self.room() {
            return None;
        }
        self.fill(|frame| {
            frame[HEADROOM..HEADROOM + bytes.len()].copy_from_slice(bytes);
            Meta { from, local, arrival, start: HEADROOM as u32, len: bytes.len() as u32 }
        })
    }

    /// Ends the holding of a frame. `false`, and nothing happens, when it is not ours, not held, or being read: a fault of the
    /// caller, worth counting.
    #[inline]
    #[must_use]
    pub fn release(&mut self, frame: FrameRef) -> bool {
        if !self.owns(frame) {
            return false;
        }
        let Some(head) = self.region().heads.get(frame.index as usize) else { return false };
        // Acquire: what readers did comes before anything the kernel writes next.
        let released = head.state.compare_exchange(HELD, FREE, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if released {
            self.free.push(frame.index);
        }
        released
    }

    #[inline]
    fn region(&self) -> &Region {
        &self.table.regions[usize::from(self.core.0)]
    }
}

/// One core's frames.
struct Region {
    memory: Memory,
    /// Of the frames, then of the chunks that are frames.
    heads: Box<[Head]>,
    frames: u32,
    size: usize,
    /// The longest datagram.
    room: usize,
    /// The chunks.
    chunks: Option<Memory>,
    /// They have a pool of their own already.
    split: AtomicBool,
}

impl Region {
    fn new(layout: &FrameLayout, chunks: ChunkLayout) -> io::Result<Region> {
        let room = (layout.size as usize).saturating_sub(HEADROOM);
        let size = (HEADROOM + room).next_multiple_of(ALIGNMENT);
        let bytes = size * layout.frames as usize;
        if bytes > i32::MAX as usize {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "more than 2^31 bytes of frames for one core"));
        }
        let heads = (0..layout.frames + chunks.frames).map(|_| Head::default()).collect();
        let lent = (chunks.frames as usize + chunks.others as usize) * CHUNK;
        let chunks = if lent == 0 { None } else { Some(Memory::huge(lent)?) };
        Ok(Region { memory: Memory::new(bytes)?, heads, frames: layout.frames, size, room, chunks, split: AtomicBool::new(false) })
    }

    /// Where a frame begins, and its size. The number must have a head.
    #[inline]
    fn locate(&self, index: u32) -> (*mut u8, usize) {
        match &self.chunks {
            Some(chunks) if index >= self.frames => (chunks.address((index - self.frames) as usize * CHUNK), CHUNK),
            _ => (self.memory.address(index as usize * self.size), self.size),
        }
    }
}

/// State and meta of one frame, on a cache line of its own.
#[repr(align(64))]
struct Head {
    state: AtomicU32,
    meta: UnsafeCell<Meta>,
}

impl Default for Head {
    fn default() -> Head {
        let from = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        Head { state: AtomicU32::new(FREE), meta: UnsafeCell::new(Meta { from, arrival: Time::ZERO, start: 0, len: 0, local: 0 }) }
    }
}

// SAFETY: `meta` is written by the owner only while the frame is taken and read by others only while it is held; `state` orders the two.
unsafe impl Sync for Head {}

/// A huge page, in bytes.
pub(super) const HUGE: usize = 2 << 20;

/// Zeroed pages that the kernel may write to: never referenced by `&mut` as a whole, handed out as addresses only.
pub(super) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    huge: bool,
}

impl Memory {
    /// Maps at least `bytes` bytes, page-aligned, not touched yet. On huge pages that the system puts together, if it does that for who asks.
    pub(super) fn new(bytes: usize) -> io::Result<Memory> {
        let page = if bytes < HUGE { 4096 } else { HUGE };
        let memory = Memory::map(bytes.max(1).next_multiple_of(page), 0)?;
        if bytes >= HUGE {
            // SAFETY: the range is the mapping just made. Who says no gives small pages.
            unsafe { libc::madvise(memory.start.as_ptr().cast(), memory.bytes, libc::MADV_HUGEPAGE) };
        }
        Ok(memory)
    }

    /// The same, on pages set apart as huge ones when the system has some to give.
    fn huge(bytes: usize) -> io::Result<Memory> {
        Memory::map(bytes.next_multiple_of(HUGE), libc::MAP_HUGETLB | libc::MAP_HUGE_2MB).or_else(|_| Memory::new(bytes))
    }

    fn map(bytes: usize, flags: i32) -> io::Result<Memory> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no memory that exists.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags, -1, 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Memory { start, bytes, huge: flags & libc::MAP_HUGETLB != 0 }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The address of the byte at `offset`.
    #[inline]
    pub(super) fn address(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.bytes, "inside the mapping");
        // SAFETY: `offset` is within (or one past) the mapping, checked above.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Forgets the mapping without unmapping it: for memory the kernel might still write to.
    pub(super) fn leak(self) {
        std::mem::forget(self);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; everything that holds addresses into it is gone by its own contract.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

// SAFETY: `Memory` is an address range; who may touch which bytes is decided by the types around it.
unsafe impl Send for Memory {}
// SAFETY: as for `Send`: a shared `Memory` gives out addresses only.
unsafe impl Sync for Memory {}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(len: u32) -> Meta {
        Meta { from: SocketAddr::from(([10, 0, 0, 1], 2727)), arrival: Time(5), start: HEADROOM as u32, len, local: 1 }
    }

    fn fill(pool: &mut FramePool, text: &[u8]) -> Option<FrameRef> {
        pool.fill(|bytes| {
            bytes[HEADROOM..HEADROOM + text.len()].copy_from_slice(text);
            meta(text.len() as u32)
        })
    }

    fn one_core(frames: u32) -> (Arc<FrameTable>, FramePool) {
        let (table, mut pools) = FrameTable::new(&[FrameLayout { frames, size: 200 }]).expect("frames");
        (table, pools.remove(0))
    }

    #[test]
    fn a_filled_frame_is_read_and_released_once() {
        let (table, mut pool) = one_core(2);
        pool.touch();
        let frame = fill(&mut pool, b"AUEP 1 x MGCP 1.0").expect("a free frame");
        {
            let datagram = table.read(frame).expect("held");
            assert_eq!(&*datagram, b"AUEP 1 x MGCP 1.0");
            assert_eq!(datagram.meta(), &meta(17));
        }
        assert!(pool.release(frame));
        assert!(!pool.release(frame), "released twice");
        assert!(table.read(frame).is_none(), "released");
        assert_eq!(pool.free(), 2);
    }

    #[test]
    fn a_frame_being_read_is_not_released() {
        let (table, mut pool) = one_core(1);
        let frame = fill(&mut pool, b"x").expect("a free frame");
        let (first, second) = (table.read(frame), table.read(frame));
        assert!(!pool.release(frame));
        drop(first);
        assert!(!pool.release(frame));
        drop(second);
        assert!(pool.release(frame));
    }

    #[test]
    fn an_exhausted_pool_and_foreign_references_are_refused() {
        let (table, mut pools) = FrameTable::new(&[FrameLayout { frames: 1, size: 200 }; 2]).expect("frames");
        let frame = fill(&mut pools[0], b"x").expect("a free frame");
        assert!(fill(&mut pools[0], b"y").is_none());
        assert!(!pools[1].release(frame), "another core's");
        for (core, index) in [(0, 1), (2, 0), (1, 0), (255, u32::MAX)] {
            let nowhere = FrameRef { core: CoreId(core), index };
            assert!(table.read(nowhere).is_none());
            assert!(!pools[1].release(nowhere));
        }
    }

    #[test]
    fn a_meta_beyond_the_frame_is_cut() {
        let (table, mut pool) = one_core(1);
        let frame = pool.fill(|_| Meta { start: 150, len: u32::MAX, ..meta(0) }).expect("a free frame");
        assert_eq!(table.read(frame).expect("held").len(), pool.frame_size() - 150);
    }

    #[test]
    fn chunks_are_frames_of_a_pool_of_their_own() {
        let chunks = ChunkLayout { frames: 2, others: 3 };
        let (table, mut pools) = FrameTable::with_chunks(&[FrameLayout { frames: 2, size: 200 }; 2], &[chunks]).expect("frames");
        let mut pool = pools.remove(0);
        let mut lent = pool.split_chunks().expect("chunks");
        assert!(pool.split_chunks().is_none() && lent.split_chunks().is_none() && pools[0].split_chunks().is_none());
        assert_eq!((lent.first(), lent.frames(), lent.frame_size(), pool.frames(), pool.frame_size()), (2, 2, CHUNK, 2, 256));
        let (memory, bytes) = lent.chunk_memory().expect("chunks");
        assert!(bytes >= 5 * CHUNK && lent.address(3) == memory.wrapping_add(CHUNK) && pools[0].chunk_memory().is_none());
        lent.touch();
        let write = |bytes: &mut [u8]| {
            bytes[CHUNK - 1] = 7;
            Meta { start: CHUNK as u32 - 1, ..meta(5) }
        };
        let frame = lent.fill(write).expect("a free chunk");
        assert_eq!(&*table.read(frame).expect("held"), [7]);
        assert!(!pool.release(frame) && lent.owns(frame) && lent.release(frame));
        assert!(fill(&mut pool, b"x").is_some_and(|other| !lent.release(other) && pool.release(other)));
    }

    #[test]
    fn frames_cross_cores_and_come_back() {
        const ROUNDS: u32 = if cfg!(miri) { 100 } else { 20_000 };
        let (table, mut pool) = one_core(4);
        let (mut out, mut inbox) = crate::host::ring::pair::<FrameRef>(4);
        let (mut back, mut returned) = crate::host::ring::pair::<FrameRef>(4);
        let reader = std::thread::spawn(move || {
            let mut seen = 0;
            while seen < ROUNDS {
                let Some(frame) = inbox.receive() else {
                    std::thread::yield_now();
                    continue;
                };
                {
                    let datagram = table.read(frame).expect("held until returned");
                    assert!(datagram.iter().all(|&b| b == seen as u8), "{seen}");
                    assert_eq!(datagram.meta().len, seen % 100);
                }
                seen += 1;
                back.send(frame).expect("as much room as frames");
            }
        });
        let mut filled = 0;
        while filled < ROUNDS {
            while let Some(frame) = returned.receive() {
                assert!(pool.release(frame));
            }
            let write = |bytes: &mut [u8]| {
                bytes[HEADROOM..].fill(filled as u8);
                meta(filled % 100)
            };
            match pool.fill(write) {
                Some(frame) => out.send(frame).expect("as much room as frames"),
                None => {
                    std::thread::yield_now();
                    continue;
                }
            }
            filled += 1;
        }
        reader.join().expect("every frame read whole");
    }
}
