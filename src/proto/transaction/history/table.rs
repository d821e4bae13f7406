//! Where the entries of the history live: a slab of fixed size and an index by transaction id.
//!
//! The index is chained and keyed by the id alone, so that a confirmation, which names no endpoint, finds its entries too. A look-up
//! touches the head of a chain and, as a rule, one entry. Slots freed last are used first, while they are still in the cache.
//! Memory beyond the most entries ever used at once is never touched.

use crate::proto::base::{AgentId, Rng, Time, TransactionId};

/// "No slot"; slot 0 is never used. Heads of chains are zero from the start, so an untouched index costs no memory.
pub(super) const NONE: u32 = 0;

/// Heads of 2^this ids are neighbours.
const LINE_BITS: u32 = 4;

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
    /// The room promised to the response while it runs; the length of the response afterwards; when it is confirmed, how long after the
    /// response that was.
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
    secret: [u64; 2],
    live: usize,
    live_max: usize,
}

/// The bytes that `entries` transactions take beside their responses.
pub fn index_bytes(entries: u64) -> u64 {
    let chains = entries.checked_next_power_of_two().unwrap_or(entries);
    entries.saturating_mul(size_of::<Entry>() as u64).saturating_add(chains.saturating_mul(size_of::<u32>() as u64))
}

impl Table {
    /// A table of up to `limit` entries. The chains an id goes to depend on `rng`, so that nobody outside can choose ids that
    /// share one.
    pub fn new(limit: usize, rng: &mut Rng) -> Table {
        let limit = limit.clamp(1, u32::MAX as usize / 2);
        let chains = limit.next_power_of_two().max(1 << LINE_BITS);
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
        Table { entries, limit, free: NONE, heads: vec![NONE; chains], secret: [rng.next() | 1, rng.next() | 1], live: 0, live_max: 0 }
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

    /// Sixteen ids in a row have their heads in one cache line, since agents count up. Which line, and in which order, is secret.
    #[inline]
    fn bucket(&self, id: TransactionId) -> usize {
        let hash = u64::from(id >> LINE_BITS).wrapping_mul(self.secret[0]);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(self.secret[1]) >> 32;
        (hash as usize ^ (id & ((1 << LINE_BITS) - 1)) as usize) & (self.heads.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_stay_short_whatever_the_pattern_of_ids() {
        let entry = Entry {
            name: 0,
            content: 0,
            time: Time::ZERO,
            id: 0,
            next: NONE,
            later: NONE,
            place: NONE,
            generation: 0,
            length: 0,
            agent: AgentId(0),
            state: State::Running,
        };
        for seed in 0..4 {
            for stride in [1, 2, 7, 16, 64, 1000, 4096, 15_000] {
                let mut table = Table::new(1 << 16, &mut Rng::new(seed));
                for i in 0..1 << 16 {
                    table.insert(Entry { id: 1 + i * stride, ..entry }).unwrap();
                }
                let length =
                    |&head: &u32| std::iter::successors(Some(head), |&s| Some(table.at(s).next)).take_while(|&s| s != NONE).count();
                let longest = table.heads.iter().map(length).max();
                assert!(longest <= Some(12), "seed {seed}, stride {stride}: {longest:?}");
            }
        }
    }

    #[test]
    fn a_removed_entry_leaves_its_chain_whole_and_its_handle_stale() {
        let mut table = Table::new(4, &mut Rng::new(1));
        let entry = Entry { id: 9, state: State::Running, ..*table.at(NONE) };
        let slots: Vec<_> = (0..4).map(|name| table.insert(Entry { name, ..entry }).unwrap()).collect();
        assert!(table.insert(entry).is_none());
        for (removed, left) in [(slots[1], vec![3, 2, 0]), (slots[3], vec![2, 0]), (slots[0], vec![2])] {
            let generation = table.at(removed).generation;
            table.remove(removed);
            assert!(table.get(removed, generation).is_none());
            assert_eq!(table.chain(9).map(|(_, e)| e.name).collect::<Vec<_>>(), left);
        }
        let again = table.insert(entry).unwrap();
        assert_eq!((again, table.at(again).generation), (slots[0], 1));
    }
}
