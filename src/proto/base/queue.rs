//! Queues of small things of many owners in one pool: an owner has two numbers, the pool the memory, claimed at construction.

/// No place.
const NONE: u32 = u32::MAX;

/// Things in order, oldest first; they live in a [`QueuePool`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    first: u32,
    last: u32,
    count: u32,
}

impl Queue {
    /// Nothing in it.
    pub const EMPTY: Queue = Queue { first: NONE, last: NONE, count: 0 };

    /// How many are in it.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The pool. Places are given out again last freed first; one never used stays untouched memory.
pub struct QueuePool<T> {
    nodes: Vec<(T, u32)>,
    free: u32,
    limit: usize,
    used: usize,
}

impl<T: Copy> QueuePool<T> {
    /// Room for `limit` things in all queues together.
    pub fn new(limit: usize) -> QueuePool<T> {
        QueuePool { nodes: Vec::with_capacity(limit), free: NONE, limit, used: 0 }
    }

    /// The bytes that room for `limit` things takes.
    pub fn memory(limit: usize) -> u64 {
        (limit * size_of::<(T, u32)>()) as u64
    }

    /// How many things are in queues.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Room for so many more.
    pub fn left(&self) -> usize {
        self.limit.saturating_sub(self.used)
    }

    /// Adds `thing` at the end of `queue`; false when there is no room.
    pub fn push(&mut self, queue: &mut Queue, thing: T) -> bool {
        let place = if let Some(node) = self.nodes.get_mut(self.free as usize) {
            let place = self.free;
            self.free = node.1;
            *node = (thing, NONE);
            place
        } else if self.nodes.len() < self.limit {
            self.nodes.push((thing, NONE));
            (self.nodes.len() - 1) as u32
        } else {
            return false;
        };
        match self.nodes.get_mut(queue.last as usize) {
            Some(last) => last.1 = place,
            None => queue.first = place,
        }
        queue.last = place;
        queue.count += 1;
        self.used += 1;
        true
    }

    /// Takes the oldest thing of `queue`.
    pub fn pop(&mut self, queue: &mut Queue) -> Option<T> {
        let (thing, next) = self.nodes.get_mut(queue.first as usize)?;
        let taken = *thing;
        let following = std::mem::replace(next, self.free);
        self.free = queue.first;
        queue.first = following;
        queue.count -= 1;
        if following == NONE {
            queue.last = NONE;
        }
        self.used -= 1;
        Some(taken)
    }

    /// Both in one: `front` before `behind`.
    pub fn join(&mut self, front: Queue, behind: Queue) -> Queue {
        let Some(last) = self.nodes.get_mut(front.last as usize) else { return behind };
        last.1 = behind.first;
        let last = if behind.count == 0 { front.last } else { behind.last };
        Queue { first: front.first, last, count: front.count + behind.count }
    }

    /// What is in `queue`, oldest first.
    pub fn iter(&self, queue: Queue) -> impl Iterator<Item = &T> + use<'_, T> {
        let mut place = queue.first;
        std::iter::from_fn(move || {
            let (thing, next) = self.nodes.get(place as usize)?;
            place = *next;
            Some(thing)
        })
    }
}
