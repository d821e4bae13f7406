//! Reads the parts of a short name eight bytes at a time, without a branch per byte: the length of the numbers in a name is as good
//! as random, and a mispredicted branch costs more than all the rest of a lookup.

/// A text and a place in it.
pub(crate) struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

/// A word to expect, its letters in either case.
#[derive(Clone, Copy)]
pub(crate) struct Prefix {
    text: u64,
    /// The case bit of each letter.
    letters: u64,
    mask: u64,
    length: usize,
}

impl Prefix {
    /// From 1 to 7 bytes in lower case.
    pub(crate) const fn new(text: &[u8]) -> Prefix {
        assert!(!text.is_empty() && text.len() < 8);
        let mut prefix = Prefix { text: 0, letters: 0, mask: (1 << (8 * text.len())) - 1, length: text.len() };
        let mut n = 0;
        while n < text.len() {
            prefix.text |= (text[n] as u64) << (8 * n);
            prefix.letters |= if text[n].is_ascii_lowercase() { 0x20 << (8 * n) } else { 0 };
            n += 1;
        }
        prefix
    }
}

impl<'a> Reader<'a> {
    /// Starts at the beginning of `text`.
    #[inline]
    pub(crate) fn new(text: &'a [u8]) -> Reader<'a> {
        Reader { text, at: 0 }
    }

    /// Whether everything was read.
    #[inline]
    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// Goes past `prefix` when it is next.
    #[inline]
    pub(crate) fn skip(&mut self, prefix: Prefix) -> bool {
        let found = ((self.word() | prefix.letters) ^ prefix.text) & prefix.mask == 0;
        self.at += if found { prefix.length } else { 0 };
        found
    }

    /// Reads a decimal number of 1 to 5 digits without leading zeros (G-EPN-12).
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u32> {
        // Lanes of a digit become 0..=9; a lane above 9 shows in its high half once 6 is added (or before). A carry only spoils
        // lanes behind the first one that is no digit.
        let values = self.word() ^ 0x3030_3030_3030_3030;
        let others = (values | values.wrapping_add(0x0606_0606_0606_0606)) & 0xf0f0_f0f0_f0f0_f0f0;
        let digits = others.trailing_zeros() / 8;
        if !(1..=5).contains(&digits) || (digits > 1 && values & 0xff == 0) {
            return None;
        }
        self.at += digits as usize;
        // Right-align the digits behind zeros, then add up pairs, pairs of pairs, and halves.
        let tens = values << (8 * (8 - digits));
        let hundreds = (tens * 10 + (tens >> 8)) & 0x00ff_00ff_00ff_00ff;
        let thousands = (hundreds * 100 + (hundreds >> 16)) & 0x0000_ffff_0000_ffff;
        Some(((thousands * 10_000 + (thousands >> 32)) & 0xffff_ffff) as u32)
    }

    /// The next 8 bytes, zeros beyond the end of the text.
    #[inline]
    fn word(&self) -> u64 {
        let Some(last) = self.text.last_chunk::<8>() else { return self.short_word() };
        // Near the end, take the last 8 bytes and drop what was read.
        match self.text.get(self.at..).and_then(|rest| rest.first_chunk()) {
            Some(next) => u64::from_le_bytes(*next),
            None => {
                let read = self.at + 8 - self.text.len();
                u64::from_le_bytes(*last).checked_shr(8 * read as u32).unwrap_or(0)
            }
        }
    }

    /// The same for a text of less than 8 bytes.
    fn short_word(&self) -> u64 {
        self.text.iter().skip(self.at).rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Option<(u32, usize)> {
        let mut reader = Reader::new(text.as_bytes());
        Some((reader.number()?, reader.at))
    }

    #[test]
    fn numbers_up_to_five_digits() {
        for n in (0..1000).chain([9999, 10_000, 12_345, 98_765, 99_999]) {
            let digits = n.to_string().len();
            for after in ["", "/", "-1", "x", ":", "\u{ff}", "/12345678"] {
                assert_eq!(number(&format!("{n}{after}")), Some((n, digits)), "{n}{after}");
                let text = format!("ds/ds3-{n}{after}");
                let mut reader = Reader::new(text.as_bytes());
                assert!(reader.skip(Prefix::new(b"ds/ds3-")));
                assert_eq!((reader.number(), reader.is_at_end()), (Some(n), after.is_empty()), "{text}");
            }
        }
        for text in ["", "/", "x1", "01", "00", "100000", "12345678901", ":", "\u{1}"] {
            assert_eq!(number(text), None, "{text}");
        }
        for byte in (0..=255u8).filter(|b| !b.is_ascii_digit()) {
            assert_eq!(Reader::new(&[b'7', byte]).number(), Some(7), "{byte}");
            assert_eq!(Reader::new(&[byte, b'7']).number(), None, "{byte}");
        }
    }

    #[test]
    fn prefixes_in_either_case() {
        let prefix = Prefix::new(b"/ds1-");
        for text in ["/ds1-", "/DS1-5", "/dS1-x"] {
            let mut reader = Reader::new(text.as_bytes());
            assert!(reader.skip(prefix) && !reader.skip(prefix), "{text}");
            assert_eq!(reader.is_at_end(), text.len() == 5);
        }
        for text in ["", "/ds1", "/ds2-", "\u{f}ds1-", "/ds1\r", "/ds\u{11}-"] {
            assert!(!Reader::new(text.as_bytes()).skip(prefix), "{text:?}");
        }
    }
}
