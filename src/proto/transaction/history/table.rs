//! Where the entries of the history live: a slab of fixed size and an index by transaction id.
//!
//! The index is chained and keyed by the id alone, so that a confirmation, which names no endpoint, finds its entries too. A look-up
//! touches the head of a chain and, as a rule, one entry. Slots freed last are used first, while they are still in the cache.
//! Memory beyond the most entries ever used at once is never touched.

use crate::proto::base::{AgentId, Rng, Time, TransactionId};

/// "No slot"; slot 0 is never used. Heads of chains are zero from the start, so an untouched index costs no memory.
pub(super) const NONE: u32 = 0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum State {
    Free,
    /// Being executed.
    Running,
    /// Being executed, and a provisional response was sent.
    Provisional,
    /// Answered, the response is kept.
    Finished,
    /// Answered and confirmed: the id alone is kept.
    Confirmed,
}

impl State {
    pub fn is_running(self) -> bool {
        matches!(self, State::Running | State::Provisional)
    }
}

/// One command, running or answered.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// Hash of the endpoint name.
    pub name: u64,
    /// Hash of the content; 0: not compared.
    pub content: u64,
    /// When it began, while it runs; when it finished, afterwards. `NEVER`: it runs and was reported overdue.
    pub time: Time,
    pub id: TransactionId,
    /// The next entry of the same chain, or of the free slots.
    pub next: u32,
    /// The one that began after this one, or finished after it.
    pub later: u32,
    /// While it runs: the one that began before it. Afterwards: where its body is (or was) in the ring.
    pub place: u32,
    /// Counts the uses of the slot.
    pub generation: u32,
    /// The room promised to the response while it runs; the length of the response afterwards.
    pub length: u16,
    pub agent: AgentId,
    pub state: State,
}

const _: () = assert!(size_of::<Entry>() <= 48);

pub(super) struct Table {
    entries: Vec<Entry>,
    limit: usize,
    free: u32,
    heads: Vec<u32>,
    multiplier: u64,
    shift: u32,
    live: usize,
    live_max: usize,
}

impl Table {
    /// A table of up to `limit` entries. The chains an id goes to depend on `rng`, so that nobody outside can choose ids that
    /// share one.
    pub fn new(limit: usize, rng: &mut Rng) -> Table {
        let limit = limit.clamp(1, u32::MAX as usize / 2);
        let chains = limit.next_power_of_two();
        let mut entries = Vec::with_capacity(limit + 1);
        entries.push(Entry {
            name: 0,
            content: 0,
            time: Time::NEVER,
            id: 0,
            next: NONE,
            later: NONE,
            place: NONE,
            generation: 0,
            length: 0,
            agent: AgentId(0),
            state: State::Free,
        });
        Table {
            entries,
            limit,
            free: NONE,
            heads: vec![NONE; chains],
            multiplier: rng.next() | 1,
            shift: (64 - chains.trailing_zeros()).min(63),
            live: 0,
            live_max: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.live
    }

    /// The most entries there ever were at once.
    pub fn len_max(&self) -> usize {
        self.live_max
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The entry in a slot that [`Table::insert`], a chain or a list of the history gave.
    #[inline]
    pub fn at(&self, slot: u32) -> &Entry {
        &self.entries[slot as usize]
    }

    #[inline]
    pub fn at_mut(&mut self, slot: u32) -> &mut Entry {
        &mut self.entries[slot as usize]
    }

    /// The entry a handle names, if the slot has not been used for another one since.
    pub fn get(&self, slot: u32, generation: u32) -> Option<&Entry> {
        self.entries.get(slot as usize).filter(|e| e.generation == generation && e.state != State::Free)
    }

    /// The slots whose entries have this id, the newest first.
    #[inline]
    pub fn chain(&self, id: TransactionId) -> impl Iterator<Item = (u32, &Entry)> {
        let mut slot = self.heads[self.bucket(id)];
        std::iter::from_fn(move || {
            while slot != NONE {
                let (found, entry) = (slot, self.at(slot));
                slot = entry.next;
                if entry.id == id {
                    return Some((found, entry));
                }
            }
            None
        })
    }

    /// Adds an entry and returns its slot; `entry.next` and `entry.generation` are set here. `None` when the table is full.
    pub fn insert(&mut self, mut entry: Entry) -> Option<u32> {
        let bucket = self.bucket(entry.id);
        entry.next = self.heads[bucket];
        let slot = if self.free != NONE {
            let slot = self.free;
            let freed = self.at(slot);
            (self.free, entry.generation) = (freed.next, freed.generation);
            *self.at_mut(slot) = entry;
            slot
        } else if self.entries.len() <= self.limit {
            entry.generation = 0;
            self.entries.push(entry);
            (self.entries.len() - 1) as u32
        } else {
            return None;
        };
        self.heads[bucket] = slot;
        self.live += 1;
        self.live_max = self.live_max.max(self.live);
        Some(slot)
    }

    /// Frees a slot.
    pub fn remove(&mut self, slot: u32) {
        let Entry { id, next, .. } = *self.at(slot);
        let bucket = self.bucket(id);
        let mut before = self.heads[bucket];
        if before == slot {
            self.heads[bucket] = next;
        } else {
            while before != NONE && self.at(before).next != slot {
                before = self.at(before).next;
            }
            self.at_mut(before).next = next;
        }
        let free = self.free;
        let entry = self.at_mut(slot);
        entry.state = State::Free;
        entry.generation = entry.generation.wrapping_add(1);
        entry.next = free;
        self.free = slot;
        self.live -= 1;
    }

    #[inline]
    fn bucket(&self, id: TransactionId) -> usize {
        // The top bits of a product with a secret odd number: any two ids share a chain with the odds of chance only.
        ((u64::from(id).wrapping_mul(self.multiplier)) >> self.shift) as usize & (self.heads.len() - 1)
    }
}
