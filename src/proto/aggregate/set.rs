//! A set of endpoints: one bit each, with whole ranges handled a word at a time.

use crate::proto::base::{EndpointIndex, EndpointRange};

/// A set of endpoints of one topology. Sized once; endpoints beyond its size are never members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndpointSet {
    words: Box<[u64]>,
    size: u32,
    count: u32,
}

impl EndpointSet {
    /// An empty set for endpoints `0..size`.
    pub fn new(size: u32) -> EndpointSet {
        EndpointSet { words: vec![0; (size as usize).div_ceil(64)].into(), size, count: 0 }
    }

    /// How many members there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether every endpoint is a member.
    pub fn is_full(&self) -> bool {
        self.count == self.size
    }

    /// Whether `endpoint` is a member.
    pub fn contains(&self, endpoint: EndpointIndex) -> bool {
        self.words.get(endpoint.0 as usize / 64).is_some_and(|word| word >> (endpoint.0 % 64) & 1 == 1)
    }

    /// Adds one.
    pub fn insert(&mut self, endpoint: EndpointIndex) {
        self.insert_range(EndpointRange { first: endpoint.0, count: 1 });
    }

    /// Removes one.
    pub fn remove(&mut self, endpoint: EndpointIndex) {
        self.remove_range(EndpointRange { first: endpoint.0, count: 1 });
    }

    /// Adds all of `range`.
    pub fn insert_range(&mut self, range: EndpointRange) {
        for (index, mask) in masks(range, self.size) {
            if let Some(word) = self.words.get_mut(index) {
                self.count += (mask & !*word).count_ones();
                *word |= mask;
            }
        }
    }

    /// Removes all of `range`.
    pub fn remove_range(&mut self, range: EndpointRange) {
        for (index, mask) in masks(range, self.size) {
            if let Some(word) = self.words.get_mut(index) {
                self.count -= (mask & *word).count_ones();
                *word &= !mask;
            }
        }
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.count = 0;
    }

    /// Whether all of `range` are members; an empty range always is.
    pub fn contains_range(&self, range: EndpointRange) -> bool {
        let inside = range.count == 0 || range.first.saturating_add(range.count) <= self.size;
        inside && masks(range, self.size).all(|(index, mask)| self.words.get(index).is_some_and(|word| word & mask == mask))
    }

    /// Which of the first 32 endpoints of `range` are members: bit `n` for its endpoint number `n`.
    pub fn bits(&self, range: EndpointRange) -> u32 {
        let (index, shift) = (range.first as usize / 64, range.first % 64);
        let word = |index: usize| u128::from(self.words.get(index).copied().unwrap_or(0));
        let bits = (word(index) | word(index + 1) << 64) >> shift;
        bits as u32 & ((1u64 << range.count.min(32)) - 1) as u32
    }

    /// The first member at or after `from`.
    pub fn next(&self, from: u32) -> Option<EndpointIndex> {
        let mut index = from as usize / 64;
        let mut word = self.words.get(index)? & (u64::MAX << (from % 64));
        while word == 0 {
            index += 1;
            word = *self.words.get(index)?;
        }
        Some(EndpointIndex(index as u32 * 64 + word.trailing_zeros()))
    }
}

/// The words that hold `range`, cut at `size`, each with the bits of the range in it.
fn masks(range: EndpointRange, size: u32) -> impl Iterator<Item = (usize, u64)> {
    let end = range.first.saturating_add(range.count).min(size) as usize;
    let mut at = range.first as usize;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let (index, low) = (at / 64, at % 64);
        let length = (64 - low).min(end - at);
        at += length;
        Some((index, (u64::MAX >> (64 - length)) << low))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Rng;
    use std::collections::BTreeSet;

    #[test]
    fn behaves_like_a_set_of_numbers() {
        let mut rng = Rng::new(5);
        let (mut set, mut model) = (EndpointSet::new(300), BTreeSet::new());
        for _ in 0..3000 {
            let range = EndpointRange { first: rng.below(320) as u32, count: [0, 1, 2, 31, 64, 200][rng.below(6) as usize] };
            if rng.chance(500_000) {
                set.insert_range(range);
                model.extend(range.iter().map(|e| e.0).filter(|e| *e < 300));
            } else {
                set.remove_range(range);
                model.retain(|e| !range.contains(EndpointIndex(*e)));
            }
            let probe = EndpointRange { first: rng.below(310) as u32, count: rng.below(40) as u32 };
            assert_eq!(set.count() as usize, model.len());
            assert_eq!(set.contains_range(probe), probe.iter().all(|e| model.contains(&e.0)));
            assert_eq!(set.next(probe.first).map(|e| e.0), model.range(probe.first..).next().copied());
            assert_eq!(set.contains(EndpointIndex(probe.first)), model.contains(&probe.first));
            let bits = probe.iter().take(32).enumerate().filter(|(_, e)| model.contains(&e.0)).map(|(n, _)| 1 << n).sum::<u32>();
            assert_eq!(set.bits(probe), bits);
        }
        set.insert_range(EndpointRange { first: 0, count: u32::MAX });
        assert!(set.is_full());
        set.clear();
        assert!(set.is_empty());
    }
}
