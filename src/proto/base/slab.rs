//! Places for so many values, named by their number.

/// Values in numbered places; a place that is given back is used again. All memory is claimed at construction.
#[derive(Debug)]
pub struct Slab<T> {
    list: Vec<T>,
    free: Vec<u32>,
    limit: usize,
}

impl<T> Slab<T> {
    /// Room for so many.
    pub fn new(limit: usize) -> Slab<T> {
        Slab { list: Vec::with_capacity(limit), free: Vec::with_capacity(limit), limit }
    }

    /// How many there are places for.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.list.len() - self.free.len()
    }

    /// The value in `slot`; one that was given back is there until the place is used again.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&T> {
        self.list.get(slot as usize)
    }

    /// See [`Slab::get`].
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.list.get_mut(slot as usize)
    }

    /// A place for `value`; `None` when all are taken.
    pub fn take(&mut self, value: T) -> Option<u32> {
        match self.free.pop() {
            Some(slot) => {
                *self.get_mut(slot)? = value;
                Some(slot)
            }
            None if self.list.len() < self.limit => {
                self.list.push(value);
                Some((self.list.len() - 1) as u32)
            }
            None => None,
        }
    }

    /// Gives a taken place back.
    pub fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_and_there_are_no_more_than_the_limit() {
        let mut slab = Slab::new(2);
        assert_eq!((slab.take('a'), slab.take('b'), slab.take('c')), (Some(0), Some(1), None));
        slab.give_back(0);
        assert_eq!((slab.taken(), slab.limit()), (1, 2));
        assert_eq!(slab.get(0), Some(&'a'));
        assert_eq!(slab.take('c'), Some(0));
        assert_eq!((slab.get(0), slab.get(2)), (Some(&'c'), None));
    }
}
