//! The bodies of stored responses: one ring of bytes, filled in the order in which commands finish.
//!
//! Room is reserved when a command begins, so that its response always fits when it ends. The oldest body is given back first;
//! bodies freed out of order (by a confirmation) come back when the ring's tail passes over them. A body never wraps: when it does
//! not fit between head and end, the rest up to the end is skipped. One body of the largest size is kept free for that skip.

/// Bodies start at multiples of this, so that a 32-bit offset reaches 32 GiB.
const GRANULE: u64 = 8;

pub(super) struct Bodies {
    bytes: Vec<u8>,
    /// Size, in granules.
    size: u64,
    /// Where the next body goes and where the oldest one starts, in granules from the start of `bytes`.
    head: u64,
    tail: u64,
    /// From tail to head, skipped granules included.
    used: u64,
    /// Promised to commands that run.
    reserved: u64,
    /// The largest body: what a skip can cost.
    largest: u64,
}

fn granules(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(GRANULE)
}

impl Bodies {
    /// A ring of `bytes` whose bodies are at most `largest` long. The memory is zeroed pages that are not touched before use.
    pub fn new(bytes: usize, largest: u16) -> Bodies {
        let largest = granules(usize::from(largest));
        // Fewer than two bodies could not even wrap.
        let size = (bytes as u64 / GRANULE).max(2 * largest).min(u64::from(u32::MAX));
        Bodies { bytes: vec![0; (size * GRANULE) as usize], size, head: 0, tail: 0, used: 0, reserved: 0, largest }
    }

    /// Whether a body of up to `room` can be promised while `spare` bytes stay free beyond it.
    pub fn fits(&self, room: u16, spare: usize) -> bool {
        self.used + self.reserved + granules(usize::from(room)) + self.largest + granules(spare) <= self.size
    }

    /// Promises `room` bytes; the caller asked [`Bodies::fits`] first.
    pub fn reserve(&mut self, room: u16) {
        self.reserved += granules(usize::from(room));
    }

    /// Takes a promise back.
    pub fn unreserve(&mut self, room: u16) {
        self.reserved = self.reserved.saturating_sub(granules(usize::from(room)));
    }

    /// Stores `body`, which is no longer than the `room` promised, and returns its offset.
    pub fn push(&mut self, room: u16, body: &[u8]) -> u32 {
        self.unreserve(room);
        let need = granules(body.len());
        if self.size - self.head < need {
            self.used += self.size - self.head;
            self.head = 0;
        }
        let offset = self.head;
        let start = (offset * GRANULE) as usize;
        if let Some(place) = self.bytes.get_mut(start..start + body.len()) {
            place.copy_from_slice(body);
        }
        self.head += need;
        self.used += need;
        offset as u32
    }

    /// The body stored at `offset`.
    pub fn get(&self, offset: u32, length: u16) -> &[u8] {
        let start = (u64::from(offset) * GRANULE) as usize;
        self.bytes.get(start..start + usize::from(length)).unwrap_or_default()
    }

    /// Gives back everything before the body at `offset`, which is now the oldest one.
    pub fn release_before(&mut self, offset: u32) {
        let offset = u64::from(offset);
        let passed = if offset >= self.tail { offset - self.tail } else { offset + self.size - self.tail };
        self.tail = offset;
        self.used -= passed;
    }

    /// Gives back everything.
    pub fn release_all(&mut self) {
        self.tail = self.head;
        self.used = 0;
    }

    /// Bytes in use, bytes promised, and all there are.
    pub fn usage(&self) -> (u64, u64, u64) {
        (self.used * GRANULE, self.reserved * GRANULE, self.size * GRANULE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Rng;
    use std::collections::VecDeque;

    #[test]
    fn what_was_promised_always_fits_and_nothing_kept_is_overwritten() {
        let mut rng = Rng::new(3);
        for size in [512, 1000, 4096] {
            let mut ring = Bodies::new(size, 100);
            let mut kept: VecDeque<(u32, Vec<u8>)> = VecDeque::new();
            let mut promised: VecDeque<u16> = VecDeque::new();
            let mut laps = 0;
            for step in 0..20_000u32 {
                match rng.below(8) {
                    0..4 => {
                        let room = rng.below(101) as u16;
                        if ring.fits(room, 0) {
                            ring.reserve(room);
                            promised.push_back(room);
                        }
                    }
                    4..7 => {
                        if let Some(room) = promised.pop_front() {
                            let length = if rng.chance(700_000) { room } else { rng.below(u64::from(room) + 1) as u16 };
                            let body = vec![step as u8; usize::from(length)];
                            let offset = ring.push(room, &body);
                            if kept.is_empty() {
                                ring.release_before(offset);
                            }
                            laps += u32::from(offset == 0);
                            kept.push_back((offset, body));
                        }
                    }
                    _ => {
                        kept.pop_front();
                        match kept.front() {
                            Some((offset, _)) => ring.release_before(*offset),
                            None => ring.release_all(),
                        }
                    }
                }
                assert!(ring.used <= ring.size);
                for (offset, body) in &kept {
                    assert_eq!(ring.get(*offset, body.len() as u16), body);
                }
            }
            assert!(laps > 10, "{laps} laps");
        }
    }
}
