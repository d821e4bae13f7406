//! What texts meant that came before. Call agents write the same options into nearly every command, and far ends the same lists of
//! payload types into nearly every description: comparing a text with the one before costs a small part of reading it.
//!
//! A [`Memo`] is a cache of pure readings, bounded, allocated once, and without influence on what is read: a text that is not in it is
//! read, and takes the place of another one.

/// The longest text that is kept, in bytes.
const TEXT_MAX: usize = 256;
/// Texts that are kept.
const PLACES: usize = 64;

/// The length of a text that is not kept.
const NOT_KEPT: usize = usize::MAX;

/// The last texts and their meanings.
pub struct Memo<T> {
    /// [`PLACES`] and one more, for what is not kept.
    kept: Box<[Kept<T>]>,
}

struct Kept<T> {
    meaning: Option<T>,
    /// [`NOT_KEPT`], which no text has, without one.
    length: usize,
    text: [u8; TEXT_MAX],
}

impl<T: Copy> Memo<T> {
    /// Nothing has come yet.
    pub fn new() -> Memo<T> {
        Memo { kept: (0..=PLACES).map(|_| Kept { meaning: None, length: NOT_KEPT, text: [0; TEXT_MAX] }).collect() }
    }

    /// What `text` means: as `read` said when it came before, or says now. Refusals are not kept.
    #[inline]
    pub fn read<'a, E>(&mut self, text: &'a [u8], read: impl FnOnce(&'a [u8]) -> Result<T, E>) -> Result<&T, E> {
        let kept = &mut self.kept[place(text)];
        if kept.text.get(..kept.length) != Some(text) {
            kept.meaning = None;
        }
        match kept.meaning {
            Some(ref meaning) => Ok(meaning),
            None => {
                let meaning = read(text)?;
                kept.length = NOT_KEPT;
                if let Some(room) = kept.text.get_mut(..text.len()) {
                    room.copy_from_slice(text);
                    kept.length = text.len();
                }
                Ok(kept.meaning.insert(meaning))
            }
        }
    }
}

impl<T: Copy> Default for Memo<T> {
    fn default() -> Memo<T> {
        Memo::new()
    }
}

/// The one place where `text` may be, [`PLACES`] for one that is not kept. Texts that differ nearly always do so in their length or one of
/// their ends; should those of two agents meet in one place, they are read as if there were no memo.
#[inline]
fn place(text: &[u8]) -> usize {
    let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) else { return PLACES };
    let ends = u64::from_le_bytes(*first).wrapping_add(u64::from_le_bytes(*last)).wrapping_add(text.len() as u64);
    // A multiplication by a number without pattern carries every bit into the highest ones (2^64 over the golden ratio).
    let mixed = ends.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    if text.len() <= TEXT_MAX { mixed as usize % PLACES } else { PLACES }
}

#[cfg(test)]
mod tests {
    use super::super::Rng;
    use super::*;

    #[test]
    fn every_text_means_what_it_means_without_a_memo() {
        let read = |text: &[u8]| if text.ends_with(b"x") { Err(()) } else { Ok(text.iter().map(|&b| u64::from(b)).sum::<u64>()) };
        let (mut memo, mut rng, mut readings) = (Memo::new(), Rng::new(1), 0);
        for _ in 0..20_000 {
            let length = [0, 7, 8, 9, 20, 255, 256, 257][rng.below(8) as usize];
            let text: Vec<u8> = (0..length).map(|_| b'w' + rng.below(1 + u64::from(length % 2 == 0)) as u8).collect();
            let got = memo.read(&text, |text| {
                readings += 1;
                read(text)
            });
            assert_eq!(got.copied(), read(&text));
        }
        assert!(readings < 19_000, "{readings}");
    }
}
