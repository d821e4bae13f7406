//! Received frames of all cores, with every rule about them enforced: a frame is taken by its core, read only while it is held,
//! released once, by its core, and by nobody while it is read.

use crate::proto::base::{CoreId, FrameRef};
use crate::proto::core::{Frames, Origin};
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;

struct Held {
    bytes: Rc<[u8]>,
    origin: Origin,
    readers: Rc<Cell<u32>>,
}

struct Pool {
    slots: Vec<Option<Held>>,
    free: Vec<u32>,
}

/// The table.
pub struct FrameTable {
    pools: Vec<RefCell<Pool>>,
    cores: u8,
}

impl FrameTable {
    /// `frames` for each of `cores`, and `kept` for messages that wait on it.
    pub fn new(cores: u8, frames: u32, kept: u32) -> FrameTable {
        let pool = |frames| RefCell::new(Pool { slots: (0..frames).map(|_| None).collect(), free: (0..frames).rev().collect() });
        let pools = (0..cores).map(|_| pool(frames)).chain((0..cores).map(|_| pool(kept))).collect();
        FrameTable { pools, cores }
    }

    /// Puts a datagram into a free frame of `core`; `None` when all are held.
    pub fn hold(&self, core: CoreId, bytes: &[u8], origin: Origin) -> Option<FrameRef> {
        let mut pool = self.pool(core).borrow_mut();
        let index = pool.free.pop()?;
        pool.slots[index as usize] = Some(Held { bytes: bytes.into(), origin, readers: Rc::default() });
        Some(FrameRef { core, index })
    }

    /// Keeps a message that waits on `core`; `None` when there is no room.
    pub fn keep(&self, core: CoreId, bytes: &[u8], origin: Origin) -> Option<FrameRef> {
        self.hold(CoreId(self.cores + core.0), bytes, origin)
    }

    /// `core` gives `frame` back.
    ///
    /// # Panics
    /// When it is not its frame, not held, or being read.
    pub fn release(&self, core: CoreId, frame: FrameRef) {
        assert_eq!(core.0, frame.core.0 % self.cores, "a core released the frame {frame:?} of another");
        let mut pool = self.pool(frame.core).borrow_mut();
        let held = pool.slots[frame.index as usize].take();
        let held = held.unwrap_or_else(|| panic!("{frame:?} released twice"));
        assert_eq!(held.readers.get(), 0, "{frame:?} released while it is read");
        pool.free.push(frame.index);
    }

    /// Frames held now.
    pub fn held(&self) -> usize {
        self.pools.iter().map(|pool| pool.borrow().slots.iter().flatten().count()).sum()
    }

    /// The first line of each datagram that is held, for a message.
    pub fn held_lines(&self) -> Vec<String> {
        let line = |held: &Held| String::from_utf8_lossy(&held.bytes).lines().next().unwrap_or_default().to_owned();
        self.pools.iter().flat_map(|pool| pool.borrow().slots.iter().flatten().map(line).collect::<Vec<_>>()).collect()
    }

    fn pool(&self, core: CoreId) -> &RefCell<Pool> {
        &self.pools[usize::from(core.0)]
    }
}

impl Frames for FrameTable {
    type Datagram<'a> = SimDatagram;

    /// Reading a frame that is not held is a fault of the gateway, so it panics.
    fn read(&self, frame: FrameRef) -> Option<(SimDatagram, Origin)> {
        let pool = self.pool(frame.core).borrow();
        let held = pool.slots[frame.index as usize].as_ref().unwrap_or_else(|| panic!("{frame:?} read after it was released"));
        held.readers.set(held.readers.get() + 1);
        Some((SimDatagram { bytes: held.bytes.clone(), readers: held.readers.clone() }, held.origin))
    }
}

/// A datagram being read.
pub struct SimDatagram {
    bytes: Rc<[u8]>,
    readers: Rc<Cell<u32>>,
}

impl Deref for SimDatagram {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for SimDatagram {
    fn drop(&mut self) {
        self.readers.set(self.readers.get() - 1);
    }
}
