//! A pool of byte strings of unequal length (remote session descriptions, lists of events, digit maps) in blocks sized at boot.
//!
//! Room can be kept for what a command will need when it is applied: in full ([`Blobs::reserve`]), or beside what the strings it replaces
//! have now ([`Blobs::hold`]): then what those lose meanwhile is kept as well, so that replacing needs no more room than there was.

use zeroize::Zeroize as _;

const BLOCK: usize = 240;
const END: u32 = u32::MAX;
/// Bytes that come into the cache together.
const LINE: usize = 64;

/// A string kept in [`Blobs`], or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blob {
    first: u32,
    length: u16,
    /// It is overwritten when it is given back.
    secret: bool,
}

impl Blob {
    /// No string.
    pub const NONE: Blob = Blob { first: END, length: 0, secret: false };

    /// The same string, which is overwritten when it is given back if it is `secret`.
    #[must_use]
    pub fn keep_secret(self, secret: bool) -> Blob {
        Blob { secret, ..self }
    }

    /// Whether there is none.
    pub fn is_none(self) -> bool {
        self.first == END
    }

    /// Length in bytes.
    pub fn len(self) -> usize {
        usize::from(self.length)
    }

    /// Whether it has no bytes.
    pub fn is_empty(self) -> bool {
        self.length == 0
    }
}

impl Default for Blob {
    fn default() -> Blob {
        Blob::NONE
    }
}

/// The pool. Allocates once; memory that was never used stays untouched.
pub struct Blobs {
    bytes: Vec<u8>,
    /// The next block of the same string, or of the free list. Zero means "the block behind this one was never used".
    next: Vec<u32>,
    free: u32,
    fresh: u32,
    used: u32,
    /// Kept free, the held part included.
    reserved: u32,
    held: Held,
}

/// Room for a command that replaces strings of many endpoints.
#[derive(Clone, Copy, Default)]
struct Held {
    /// What it will store.
    needed: u32,
    /// What is kept free for it; the rest is what it will replace.
    kept: u32,
}

impl Blobs {
    /// Room for `blocks` blocks of 240 bytes.
    pub fn new(blocks: u32) -> Blobs {
        let count = blocks as usize;
        Blobs { bytes: vec![0; count * BLOCK], next: vec![0; count], free: END, fresh: 0, used: 0, reserved: 0, held: Held::default() }
    }

    /// The bytes that so many blocks take.
    pub fn memory(blocks: u32) -> u64 {
        u64::from(blocks) * (BLOCK + size_of::<u32>()) as u64
    }

    /// How many blocks fit into so many bytes.
    pub fn blocks_in(bytes: u64) -> u32 {
        u32::try_from(bytes / Blobs::memory(1)).unwrap_or(u32::MAX - 1)
    }

    /// How many blocks a string of `length` bytes takes.
    pub fn blocks_for(length: usize) -> u32 {
        length.div_ceil(BLOCK).max(1) as u32
    }

    /// How many blocks `blob` has.
    pub fn blocks(blob: Blob) -> u32 {
        if blob.is_none() { 0 } else { Blobs::blocks_for(blob.len()) }
    }

    /// Blocks in use, blocks kept free for commands that wait, and how many there are.
    pub fn usage(&self) -> (u32, u32, u32) {
        (self.used, self.reserved, self.next.len() as u32)
    }

    /// Whether a string of `length` bytes fits now.
    pub fn fits(&self, length: usize) -> bool {
        length <= usize::from(u16::MAX) && Blobs::blocks_for(length) <= self.room()
    }

    /// Whether strings that take `blocks` blocks fit when others that have `replaced` blocks are given up by [`Blobs::replace`] before.
    pub fn fits_instead(&self, blocks: u32, replaced: u32) -> bool {
        blocks <= self.room() + replaced - replaced.min(self.held.needed - self.held.kept)
    }

    /// Keeps `blocks` blocks free for later; false when there are not so many.
    pub fn reserve(&mut self, blocks: u32) -> bool {
        let fits = blocks <= self.room();
        if fits {
            self.reserved += blocks;
        }
        fits
    }

    /// Gives up a reservation.
    pub fn unreserve(&mut self, blocks: u32) {
        self.reserved = self.reserved.saturating_sub(blocks);
    }

    /// Keeps room for strings that take `needed` blocks and will replace some that have `replaced` now; false when there is not enough.
    /// Only one command at a time can hold room, for as many strings as it likes.
    pub fn hold(&mut self, needed: u32, replaced: u32) -> bool {
        let kept = needed.saturating_sub(replaced);
        let fits = self.reserve(kept);
        if fits {
            self.held.needed += needed;
            self.held.kept += kept;
        }
        fits
    }

    /// Strings that take `needed` blocks are about to be stored where room was held for them; those they replace were given up by
    /// [`Blobs::replace`].
    pub fn draw(&mut self, needed: u32) {
        let drawn = needed.min(self.held.kept);
        self.held = Held { needed: self.held.needed.saturating_sub(needed), kept: self.held.kept - drawn };
        self.unreserve(drawn);
    }

    /// Gives up all that is held.
    pub fn let_go(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.unreserve(held.kept);
    }

    /// Gives up a string that will be replaced, of an endpoint for which room may be held.
    pub fn replace(&mut self, blob: &mut Blob) {
        let freed = Blobs::blocks(*blob);
        self.free(blob);
        let kept = freed.min(self.held.needed - self.held.kept);
        self.held.kept += kept;
        self.reserved += kept;
    }

    fn room(&self) -> u32 {
        (self.next.len() as u32).saturating_sub(self.used + self.reserved)
    }

    /// Keeps `text`; `None` when it does not fit.
    pub fn store(&mut self, text: &[u8]) -> Option<Blob> {
        if !self.fits(text.len()) {
            return None;
        }
        let mut first = END;
        // Back to front, so that each block knows its successor when it is written.
        for index in (0..Blobs::blocks_for(text.len()) as usize).rev() {
            let block = self.take()?;
            let part = text.get(index * BLOCK..).unwrap_or_default();
            let part = &part[..part.len().min(BLOCK)];
            let at = block as usize * BLOCK;
            self.bytes.get_mut(at..at + part.len())?.copy_from_slice(part);
            *self.next.get_mut(block as usize)? = first;
            first = block;
        }
        Some(Blob { first, length: text.len() as u16, secret: false })
    }

    /// The pieces of `blob` in order.
    pub fn pieces(&self, blob: Blob) -> impl Iterator<Item = &[u8]> {
        let mut block = blob.first;
        let mut left = blob.len();
        std::iter::from_fn(move || {
            if block == END || left == 0 {
                return None;
            }
            let at = block as usize * BLOCK;
            let piece = self.bytes.get(at..at + left.min(BLOCK))?;
            left -= piece.len();
            block = *self.next.get(block as usize)?;
            Some(piece)
        })
    }

    /// Reads the blocks that will be taken next, so that they are in the cache by then; the result means nothing.
    pub fn read_ahead(&self, blocks: usize) -> u64 {
        let (mut block, mut sum) = (self.free, 0);
        for _ in 0..blocks {
            let Some(&next) = self.next.get(block as usize) else { break };
            let at = block as usize * BLOCK;
            if let Some(bytes) = self.bytes.get(at..at + BLOCK) {
                sum = bytes.iter().step_by(LINE).fold(sum, |sum, &byte| sum + u64::from(byte));
            }
            block = next;
        }
        sum
    }

    /// Gives the room of `blob` back and makes it none.
    pub fn free(&mut self, blob: &mut Blob) {
        let Blob { first: mut block, secret, .. } = std::mem::take(blob);
        while let Some(next) = self.next.get_mut(block as usize) {
            let at = block as usize * BLOCK;
            if let Some(bytes) = self.bytes.get_mut(at..at + BLOCK).filter(|_| secret) {
                bytes.zeroize();
            }
            let following = std::mem::replace(next, self.free);
            self.free = block;
            self.used -= 1;
            block = following;
        }
    }

    fn take(&mut self) -> Option<u32> {
        let block = if self.free != END {
            let block = self.free;
            self.free = *self.next.get(block as usize)?;
            block
        } else {
            let block = self.fresh;
            self.next.get(block as usize)?;
            self.fresh += 1;
            block
        };
        self.used += 1;
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Rng;

    /// A string with a key in it leaves nothing behind.
    #[test]
    fn secret_strings_are_overwritten_when_they_are_given_back() {
        let mut blobs = Blobs::new(8);
        let text = [0x55; 600];
        let left = |blobs: &Blobs| blobs.bytes.iter().filter(|byte| **byte == 0x55).count();
        let mut secret = blobs.store(&text).unwrap().keep_secret(true);
        assert_eq!(left(&blobs), 600);
        blobs.free(&mut secret);
        assert_eq!(left(&blobs), 0);
        let mut plain = blobs.store(&text).unwrap().keep_secret(false);
        blobs.free(&mut plain);
        assert_eq!(left(&blobs), 600, "what is none costs nothing");
    }

    #[test]
    fn strings_come_back_and_room_is_neither_lost_nor_doubled() {
        let mut blobs = Blobs::new(64);
        let mut rng = Rng::new(3);
        let mut kept: Vec<(Blob, Vec<u8>)> = Vec::new();
        for _ in 0..20_000 {
            if rng.below(2) == 0 {
                let text: Vec<u8> = (0..rng.below(900)).map(|_| rng.next() as u8).collect();
                let fits = blobs.fits(text.len());
                blobs.read_ahead(rng.below(80) as usize);
                match blobs.store(&text) {
                    Some(blob) => kept.push((blob, text)),
                    None => assert!(!fits),
                }
            } else if !kept.is_empty() {
                let (mut blob, text) = kept.swap_remove(rng.below(kept.len() as u64) as usize);
                assert_eq!(blobs.pieces(blob).collect::<Vec<_>>().concat(), text);
                blobs.free(&mut blob);
                assert!(blob.is_none());
            }
            let blocks: u32 = kept.iter().map(|(_, text)| Blobs::blocks_for(text.len())).sum();
            assert_eq!(blobs.used, blocks);
        }
        for (mut blob, text) in kept {
            assert_eq!(blobs.pieces(blob).collect::<Vec<_>>().concat(), text);
            blobs.free(&mut blob);
        }
        assert_eq!(blobs.used, 0);
        assert!(blobs.fits(64 * BLOCK) && !blobs.fits(64 * BLOCK + 1));
    }

    /// A command that replaces the strings of many needs no more room than they and the rest of the pool have, whatever others do to the
    /// same strings meanwhile and as far as room is left for that.
    #[test]
    fn what_is_held_is_there_when_it_is_drawn() {
        let text = |blocks: u64| vec![b'x'; blocks as usize * BLOCK];
        let mut drawn = 0;
        for seed in 0..2000 {
            let mut rng = Rng::new(seed);
            let mut blobs = Blobs::new(24);
            let mut list: Vec<Blob> = (0..6).filter_map(|_| blobs.store(&text(1 + rng.below(4)))).collect();
            let needs: Vec<u32> = list.iter().map(|_| 1 + rng.below(4) as u32).collect();
            let held = list.iter().zip(&needs).all(|(&blob, &need)| blobs.hold(need, Blobs::blocks(blob)));
            for _ in 0..rng.below(20) {
                let place = rng.below(list.len() as u64) as usize;
                let new = rng.below(5);
                let need = if new == 0 { 0 } else { new as u32 };
                if blobs.fits_instead(need, Blobs::blocks(list[place])) {
                    blobs.replace(&mut list[place]);
                    list[place] = if new == 0 { Blob::NONE } else { blobs.store(&text(new)).unwrap() };
                }
            }
            if held {
                drawn += 1;
                for (blob, &need) in list.iter_mut().zip(&needs) {
                    blobs.replace(blob);
                    blobs.draw(need);
                    *blob = blobs.store(&text(need.into())).expect("it was held");
                }
            }
            blobs.let_go();
            assert_eq!((blobs.used, blobs.reserved), (list.iter().map(|&blob| Blobs::blocks(blob)).sum(), 0));
        }
        assert!(drawn > 500, "{drawn}");
    }
}
