//! Which of a core's endpoints are idle: one bit each, searched in rotation so that freed channels rest longest.

use std::ops::Range;

pub(super) struct IdleSet {
    words: Vec<u64>,
    cursor: u32,
}

impl IdleSet {
    /// All idle.
    pub fn new(count: usize) -> IdleSet {
        let mut words = vec![u64::MAX; count.div_ceil(64)];
        if let (Some(last), rest @ 1..) = (words.last_mut(), count % 64) {
            *last = (1 << rest) - 1;
        }
        IdleSet { words, cursor: 0 }
    }

    pub fn set(&mut self, place: u32, idle: bool) {
        if let Some(word) = self.words.get_mut(place as usize / 64) {
            let bit = 1 << (place % 64);
            *word = if idle { *word | bit } else { *word & !bit };
        }
    }

    /// The next idle place in `range` after the last one found, going round.
    pub fn next_in(&mut self, range: Range<u32>) -> Option<u32> {
        let from = if range.contains(&self.cursor) { self.cursor } else { range.start };
        let found = self.first_in(from..range.end).or_else(|| self.first_in(range.start..from))?;
        self.cursor = found + 1;
        Some(found)
    }

    fn first_in(&self, range: Range<u32>) -> Option<u32> {
        if range.is_empty() {
            return None;
        }
        let (first, last) = (range.start / 64, (range.end - 1) / 64);
        for index in first..=last {
            let mut word = *self.words.get(index as usize)?;
            if index == first {
                word &= u64::MAX << (range.start % 64);
            }
            if word != 0 {
                let place = index * 64 + word.trailing_zeros();
                return (place < range.end).then_some(place);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Rng;

    #[test]
    fn agrees_with_a_plain_list() {
        let mut rng = Rng::new(5);
        let mut idle = IdleSet::new(200);
        let mut model = [true; 200];
        for _ in 0..20_000 {
            let place = rng.below(200) as u32;
            let value = rng.below(8) == 0;
            idle.set(place, value);
            model[place as usize] = value;
            let (a, b) = (rng.below(200) as u32, rng.below(201) as u32);
            let range = a.min(b)..a.max(b);
            let found = idle.next_in(range.clone());
            assert_eq!(found.is_some(), range.clone().any(|p| model[p as usize]), "{range:?}");
            assert!(found.is_none_or(|p| model[p as usize] && range.contains(&p)));
        }
    }
}
