//! The bytes of outstanding commands: a small place for each slot of the table, and a few large ones for the commands that need it.

/// Most commands of a gateway fit here.
pub(super) const SMALL: usize = 256;
/// The longest command: what every agent must accept in a datagram (RFC 3435 3.5.4).
pub(super) const LARGE: usize = 4000;

pub(super) struct Bodies {
    small: Vec<u8>,
    large: Vec<u8>,
    free: Vec<u32>,
    scratch: Vec<u8>,
}

/// Where a command's bytes are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stored {
    length: u16,
    large: Option<u32>,
}

impl Bodies {
    /// Places for `slots` commands, of which `large` may be longer than [`SMALL`] at one time.
    pub fn new(slots: usize, large: usize) -> Bodies {
        Bodies {
            small: vec![0; slots * SMALL],
            large: vec![0; large * LARGE],
            free: (0..large as u32).rev().collect(),
            scratch: vec![0; LARGE],
        }
    }

    /// Where a command is written before its length is known.
    pub fn scratch(&mut self) -> &mut [u8] {
        &mut self.scratch
    }

    /// Keeps the first `length` bytes of the scratch place for `slot`. `None` when they are too many or no large place is left.
    pub fn keep(&mut self, slot: u32, length: usize) -> Option<Stored> {
        let written = self.scratch.get(..length)?;
        let large = if length > SMALL { Some(self.free.pop()?) } else { None };
        let (place, start) = match large {
            Some(index) => (&mut self.large, index as usize * LARGE),
            None => (&mut self.small, slot as usize * SMALL),
        };
        place.get_mut(start..start + length)?.copy_from_slice(written);
        Some(Stored { length: length as u16, large })
    }

    /// The bytes kept for `slot`.
    pub fn get(&self, slot: u32, stored: Stored) -> &[u8] {
        let (place, start) = match stored.large {
            Some(index) => (&self.large, index as usize * LARGE),
            None => (&self.small, slot as usize * SMALL),
        };
        place.get(start..start + usize::from(stored.length)).unwrap_or_default()
    }

    /// Gives a place back.
    pub fn release(&mut self, stored: Stored) {
        self.free.extend(stored.large);
    }
}
