//! Transaction ids of our own (RFC 3435 3.2.1.2; G-TRX-01, F-11, G-SHD-02).
//!
//! A core draws the ids whose remainder by the number of cores is its own ordinal, so ids are unique over the gateway and a response
//! tells its core. They are drawn in order from a random start and wrap. The whole sequence is divided into segments; one is entered
//! again only when nothing in it is outstanding and its last id was completed three minutes ago.

use crate::proto::base::id::TRANSACTION_ID_MAX;
use crate::proto::base::{Rng, Time, TransactionId};
use std::time::Duration;

/// An id may be used again so long after its transaction was completed.
pub(super) const REUSE_AFTER: Duration = Duration::from_secs(180);
const SEGMENTS: u32 = 64;

#[derive(Clone, Copy, Default)]
struct Segment {
    outstanding: u32,
    completed: Option<Time>,
}

pub(super) struct Ids {
    first: TransactionId,
    step: u32,
    /// Ids there are, and the place of the one to try next.
    count: u32,
    next: u32,
    segment_len: u32,
    segments: [Segment; SEGMENTS as usize],
}

impl Ids {
    /// The ids up to `largest` whose remainder by `owners` is `ordinal`.
    pub fn new(ordinal: u32, owners: u32, largest: TransactionId, rng: &mut Rng) -> Ids {
        let step = owners.max(1);
        let ordinal = ordinal % step;
        let first = if ordinal == 0 { step } else { ordinal };
        let count = largest.min(TRANSACTION_ID_MAX).saturating_sub(first) / step + 1;
        let next = rng.below(u64::from(count)) as u32;
        Ids { first, step, count, next, segment_len: count.div_ceil(SEGMENTS), segments: [Segment::default(); SEGMENTS as usize] }
    }

    /// The place of an id in the sequence; `None` for an id that is not ours.
    pub fn place(&self, id: TransactionId) -> Option<u32> {
        let distance = id.checked_sub(self.first)?;
        (distance % self.step == 0 && distance / self.step < self.count).then_some(distance / self.step)
    }

    /// The next id whose place `usable` accepts, with its place; at most `attempts` are tried. `None` when there is none, or when the
    /// next ones were in use less than three minutes ago.
    pub fn draw(&mut self, now: Time, attempts: u32, usable: impl Fn(u32) -> bool) -> Option<(TransactionId, u32)> {
        for _ in 0..attempts {
            let place = self.next;
            let segment = *self.segments.get((place / self.segment_len) as usize)?;
            let entering = place.is_multiple_of(self.segment_len);
            let rested = segment.completed.is_none_or(|at| at + REUSE_AFTER <= now);
            if entering && (segment.outstanding > 0 || !rested) {
                return None;
            }
            self.next = if place + 1 >= self.count { 0 } else { place + 1 };
            if usable(place) {
                self.segments[(place / self.segment_len) as usize].outstanding += 1;
                return Some((self.first + place * self.step, place));
            }
        }
        None
    }

    /// The transaction of the id at `place` is completed.
    pub fn complete(&mut self, now: Time, place: u32) {
        if let Some(segment) = self.segments.get_mut((place / self.segment_len) as usize) {
            segment.outstanding = segment.outstanding.saturating_sub(1);
            segment.completed = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn ids_of_all_cores_are_distinct_and_tell_their_core() {
        // G-SHD-02, G-TRX-01: 1..=999,999,999, never 0.
        for owners in [1, 2, 3, 7] {
            let mut seen = HashSet::new();
            for ordinal in 0..owners {
                let mut ids = Ids::new(ordinal, owners, TRANSACTION_ID_MAX, &mut Rng::new(u64::from(ordinal)));
                for _ in 0..10_000 {
                    let (id, place) = ids.draw(Time::ZERO, 1, |_| true).unwrap();
                    assert!(id % owners == ordinal && (1..=TRANSACTION_ID_MAX).contains(&id) && seen.insert(id));
                    assert_eq!(ids.place(id), Some(place));
                    assert!(owners == 1 || ids.place(id + 1).is_none());
                }
            }
        }
    }

    #[test]
    fn the_sequence_wraps_at_its_end() {
        let mut ids = Ids::new(0, 1, TRANSACTION_ID_MAX, &mut Rng::new(1));
        ids.next = ids.count - 1;
        let drawn: Vec<_> = (0..3).map(|_| ids.draw(Time::ZERO, 1, |_| true).unwrap().0).collect();
        assert_eq!(drawn, [999_999_999, 1, 2]);
        let mut ids = Ids::new(2, 4, TRANSACTION_ID_MAX, &mut Rng::new(1));
        ids.next = ids.count - 1;
        let drawn: Vec<_> = (0..2).map(|_| ids.draw(Time::ZERO, 1, |_| true).unwrap().0).collect();
        assert_eq!(drawn, [999_999_998, 2]);
        assert_eq!((ids.place(0), ids.place(1), ids.place(u32::MAX)), (None, None, None));
    }

    #[test]
    fn no_id_returns_within_three_minutes_of_its_completion() {
        // F-11, with few ids and as many commands as they allow.
        let mut rng = Rng::new(4);
        for largest in [3, 64, 1000] {
            let mut ids = Ids::new(0, 1, largest, &mut rng);
            let mut now = Time::ZERO;
            let mut completed: HashMap<TransactionId, Time> = HashMap::new();
            let mut outstanding: Vec<(TransactionId, u32)> = Vec::new();
            let (mut drawn, mut refused) = (0, 0);
            for _ in 0..40_000 {
                now += rng.duration(Duration::ZERO, Duration::from_millis(400));
                if rng.chance(500_000) {
                    match ids.draw(now, 8, |place| place % 5 != 0) {
                        Some((id, place)) => {
                            assert!(completed.get(&id).is_none_or(|&at| at + REUSE_AFTER <= now));
                            assert!(outstanding.iter().all(|&(other, _)| other != id));
                            outstanding.push((id, place));
                            drawn += 1;
                        }
                        None => refused += 1,
                    }
                } else if !outstanding.is_empty() {
                    let (id, place) = outstanding.swap_remove(rng.below(outstanding.len() as u64) as usize);
                    ids.complete(now, place);
                    completed.insert(id, now);
                }
            }
            assert!(drawn > 2 * largest && refused > 0, "{drawn} {refused}");
        }
    }
}
