//! The four rings of an AF_XDP socket: single-producer single-consumer queues in memory shared with the kernel.
//!
//! We produce into fill and send, the kernel into receive and completion. Each side owns one index and reads the other's. An entry
//! is written before the producer's index is released, and read after it was acquired; the consumer's index works the other way
//! round for reuse of the place. Both indices run freely over 32 bits; the place is the index modulo the power-of-two size.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use super::sys::{self, Mapping};

/// One ring, of entries `T`: addresses (fill, completion) or descriptors (receive, send).
struct Ring<T> {
    mapping: Mapping,
    offsets: libc::xdp_ring_offset,
    size: u32,
    /// Our own index, not necessarily told to the kernel yet.
    own: u32,
    /// The kernel's index as last seen.
    seen: u32,
    entries: std::marker::PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn new(socket: BorrowedFd<'_>, page: i64, offsets: libc::xdp_ring_offset, size: u32) -> io::Result<Ring<T>> {
        let bytes = offsets.desc as usize + size as usize * size_of::<T>();
        Ok(Ring { mapping: Mapping::new(socket, page, bytes)?, offsets, size, own: 0, seen: 0, entries: std::marker::PhantomData })
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        let address = self.mapping.address(offset as usize, 4).cast::<u32>();
        // SAFETY: inside the mapping, which lives as long as `self`, aligned by the kernel, and accessed atomically by both sides.
        unsafe { AtomicU32::from_ptr(address) }
    }

    fn place(&self, index: u32) -> *mut T {
        let offset = (index & (self.size - 1)) as usize * size_of::<T>();
        self.mapping.address(self.offsets.desc as usize + offset, size_of::<T>()).cast()
    }

    /// The kernel wants to be woken for this ring.
    #[inline]
    fn wants_wakeup(&self) -> bool {
        self.word(self.offsets.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A ring we put entries into: `own` is the producer's index.
pub struct Giving<T>(Ring<T>);

impl<T: Copy> Giving<T> {
    /// Puts an entry; the kernel sees it with the next [`Giving::publish`]. `false` when the ring is full.
    #[inline]
    pub fn put(&mut self, entry: T) -> bool {
        let ring = &mut self.0;
        if ring.own.wrapping_sub(ring.seen) >= ring.size {
            ring.seen = ring.word(ring.offsets.consumer).load(Ordering::Acquire);
            if ring.own.wrapping_sub(ring.seen) >= ring.size {
                return false;
            }
        }
        // SAFETY: the place is inside the mapping, and the kernel has consumed what was there: it does not read it before `publish`.
        unsafe { ring.place(ring.own).write(entry) };
        ring.own = ring.own.wrapping_add(1);
        true
    }

    /// Shows the kernel all entries put so far.
    #[inline]
    pub fn publish(&mut self) {
        self.0.word(self.0.offsets.producer).store(self.0.own, Ordering::Release);
    }

    /// Entries the kernel has not taken yet.
    #[inline]
    pub fn pending(&self) -> u32 {
        self.0.own.wrapping_sub(self.0.word(self.0.offsets.consumer).load(Ordering::Acquire))
    }

    /// The kernel wants to be woken to take entries.
    #[inline]
    pub fn wants_wakeup(&self) -> bool {
        self.0.wants_wakeup()
    }
}

/// A ring we take entries from: `own` is the consumer's index.
pub struct Taking<T>(Ring<T>);

impl<T: Copy> Taking<T> {
    /// The next entry; the kernel may reuse its place after the next [`Taking::done`].
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        let ring = &mut self.0;
        if ring.own == ring.seen {
            ring.seen = ring.word(ring.offsets.producer).load(Ordering::Acquire);
            if ring.own == ring.seen {
                return None;
            }
        }
        // SAFETY: the place is inside the mapping and the kernel wrote it before it released its index, acquired above; it does not
        // write it again before `done`.
        let entry = unsafe { ring.place(ring.own).read() };
        ring.own = ring.own.wrapping_add(1);
        Some(entry)
    }

    /// Gives the places of all entries taken back.
    #[inline]
    pub fn done(&mut self) {
        self.0.word(self.0.offsets.consumer).store(self.0.own, Ordering::Release);
    }

    /// Whether there is nothing to take.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.own == self.0.word(self.0.offsets.producer).load(Ordering::Acquire)
    }
}

/// All rings of one socket.
pub struct Rings {
    /// Free chunks on their way to the card.
    pub fill: Giving<u64>,
    /// Filled ones.
    pub receive: Taking<libc::xdp_desc>,
    /// What is to be sent.
    pub send: Giving<libc::xdp_desc>,
    /// Chunks that have been sent.
    pub completion: Taking<u64>,
}

impl Rings {
    /// Makes the rings of a socket whose memory is registered: `received` entries for receiving and `sent` for sending, powers of two.
    pub fn new(socket: BorrowedFd<'_>, received: u32, sent: u32) -> io::Result<Rings> {
        sys::size_ring(socket, libc::XDP_UMEM_FILL_RING, received)?;
        sys::size_ring(socket, libc::XDP_UMEM_COMPLETION_RING, sent)?;
        sys::size_ring(socket, libc::XDP_RX_RING, received)?;
        sys::size_ring(socket, libc::XDP_TX_RING, sent)?;
        let offsets = sys::ring_offsets(socket)?;
        Ok(Rings {
            fill: Giving(Ring::new(socket, libc::XDP_UMEM_PGOFF_FILL_RING as i64, offsets.fr, received)?),
            receive: Taking(Ring::new(socket, libc::XDP_PGOFF_RX_RING, offsets.rx, received)?),
            send: Giving(Ring::new(socket, libc::XDP_PGOFF_TX_RING, offsets.tx, sent)?),
            completion: Taking(Ring::new(socket, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, offsets.cr, sent)?),
        })
    }
}
