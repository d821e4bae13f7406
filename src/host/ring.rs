//! Rings between cores: one single-producer single-consumer ring for each ordered pair of cores.
//!
//! A thin face over `rtrb` (docs/decisions/rings.md has the comparison): it fixes the words the cores use and keeps the batch
//! operations, which publish their index once per batch instead of once per entry. Waking a sleeping receiver is the business of
//! `transport::wake`. Entries are meant to be `Copy` and one cache line long.

/// The sending half: one core's.
pub struct Sender<T> {
    producer: rtrb::Producer<T>,
}

/// The receiving half: the other core's.
pub struct Receiver<T> {
    consumer: rtrb::Consumer<T>,
}

/// A ring with room for `capacity` entries (at least 1), allocated here and never again.
pub fn pair<T: Copy>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let (producer, consumer) = rtrb::RingBuffer::new(capacity.max(1));
    (Sender { producer }, Receiver { consumer })
}

impl<T: Copy> Sender<T> {
    /// Sends one entry.
    ///
    /// # Errors
    /// Gives the entry back when the ring is full.
    #[inline]
    pub fn send(&mut self, entry: T) -> Result<(), T> {
        self.producer.push(entry).map_err(|rtrb::PushError::Full(entry)| entry)
    }

    /// Sends as many of `entries` as there is room for, in order, and says how many. They become visible together.
    #[inline]
    pub fn send_batch(&mut self, entries: &[T]) -> usize {
        self.producer.push_partial_slice(entries).0.len()
    }

    /// How many entries there is room for now; the receiver can only make it more.
    pub fn room(&self) -> usize {
        self.producer.slots()
    }
}

impl<T: Copy> Receiver<T> {
    /// The oldest entry.
    #[inline]
    pub fn receive(&mut self) -> Option<T> {
        self.consumer.pop().ok()
    }

    /// Gives `handle` at most `limit` entries, oldest first, and says how many. Their room is given back together, at the end.
    #[inline]
    pub fn receive_batch(&mut self, limit: usize, mut handle: impl FnMut(T)) -> usize {
        // The sender's index is another core's cache line: look at it only when what is known does not suffice.
        let known = self.consumer.cached_slots();
        let count = if known >= limit { limit } else { self.consumer.slots().min(limit) };
        let Ok(chunk) = self.consumer.read_chunk(count) else { return 0 };
        let (first, second) = chunk.as_slices();
        first.iter().chain(second).for_each(|entry| handle(*entry));
        chunk.commit_all();
        count
    }

    /// Whether nothing has been sent that was not received.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.consumer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::proto::base::Rng;

    #[test]
    fn behaves_as_a_bounded_queue() {
        let mut rng = Rng::new(7);
        for capacity in [1, 2, 3, 8, 13] {
            let (mut sender, mut receiver) = pair(capacity);
            let mut model = VecDeque::new();
            let mut next = 0u64;
            for _ in 0..4_000 {
                match rng.below(4) {
                    0 => {
                        let sent = sender.send(next);
                        assert_eq!(sent.is_ok(), model.len() < capacity);
                        if sent.is_ok() {
                            model.push_back(next);
                        }
                        next += 1;
                    }
                    1 => {
                        let batch: Vec<u64> = (next..next + rng.below(6)).collect();
                        let sent = sender.send_batch(&batch);
                        assert_eq!(sent, batch.len().min(capacity - model.len()));
                        model.extend(&batch[..sent]);
                        next += 6;
                    }
                    2 => assert_eq!(receiver.receive(), model.pop_front()),
                    _ => {
                        let limit = rng.below(6) as usize;
                        let expected: Vec<u64> = model.drain(..limit.min(model.len())).collect();
                        let mut got = Vec::new();
                        assert_eq!(receiver.receive_batch(limit, |entry| got.push(entry)), expected.len());
                        assert_eq!(got, expected);
                    }
                }
                assert_eq!(receiver.is_empty(), model.is_empty());
                assert_eq!(sender.room(), capacity - model.len());
            }
        }
    }

    #[test]
    fn entries_cross_threads_in_order_and_whole() {
        const COUNT: u64 = 100_000;
        let (mut sender, mut receiver) = pair::<[u64; 8]>(64);
        let receiving = std::thread::spawn(move || {
            let mut expected = 0;
            while expected < COUNT {
                if receiver.receive_batch(16, |entry| {
                    assert_eq!(entry, [expected; 8]);
                    expected += 1;
                }) == 0
                {
                    std::thread::yield_now();
                }
            }
        });
        let mut next = 0;
        while next < COUNT {
            match sender.send([next; 8]) {
                Ok(()) => next += 1,
                Err(_) => std::thread::yield_now(),
            }
        }
        receiving.join().expect("received in order");
    }
}
