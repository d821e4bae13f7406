//! The final responses of finished transactions, by digest: a repeat of one must carry the same bytes (RFC 3435 3.5.1, G-TRX-03).

use crate::proto::base::{NameKey, TransactionId};

#[derive(Clone, Copy, Default)]
struct Entry {
    /// 0: none.
    id: TransactionId,
    digest: u64,
}

/// What is known about a final response that arrives for a finished transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeat {
    /// The same bytes as the first.
    Same,
    /// Other bytes than the first.
    Differs,
    /// The transaction is not remembered: never ours, or finished too long ago.
    Unknown,
}

/// The digests of the youngest final responses; an identifier takes the place of an older one with the same low bits.
pub struct Finals {
    entries: Box<[Entry]>,
    key: NameKey,
}

impl Finals {
    /// Remembers about `capacity` responses.
    pub fn new(capacity: usize, key: NameKey) -> Finals {
        Finals { entries: vec![Entry::default(); capacity.max(1).next_power_of_two()].into(), key }
    }

    /// Remembers the final response `message` of `id`.
    pub fn insert(&mut self, id: TransactionId, message: &[u8]) {
        let digest = self.key.exact(message);
        let place = self.place(id);
        if let Some(entry) = self.entries.get_mut(place) {
            *entry = Entry { id, digest };
        }
    }

    /// Compares `message` with the final response of `id`.
    pub fn compare(&self, id: TransactionId, message: &[u8]) -> Repeat {
        match self.entries.get(self.place(id)) {
            Some(entry) if entry.id == id && id != 0 => {
                if entry.digest == self.key.exact(message) {
                    Repeat::Same
                } else {
                    Repeat::Differs
                }
            }
            _ => Repeat::Unknown,
        }
    }

    fn place(&self, id: TransactionId) -> usize {
        id as usize & (self.entries.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_compared_with_the_first() {
        let mut finals = Finals::new(4, NameKey::new([1, 2]));
        finals.insert(9, b"200 9 OK\r\n");
        assert_eq!(finals.compare(9, b"200 9 OK\r\n"), Repeat::Same);
        assert_eq!(finals.compare(9, b"250 9 OK\r\n"), Repeat::Differs);
        assert_eq!(finals.compare(5, b"200 9 OK\r\n"), Repeat::Unknown);
        finals.insert(13, b"200 13 OK\r\n");
        assert_eq!(finals.compare(9, b"200 9 OK\r\n"), Repeat::Unknown);
        assert_eq!(Finals::new(4, NameKey::new([1, 2])).compare(0, b""), Repeat::Unknown);
    }
}
