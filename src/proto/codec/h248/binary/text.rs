//! A text message as it is put together from octets: compact, and with nothing in it that could be taken for the grammar's own marks.

use super::names::Known;
use crate::proto::codec::h248::lex;

/// Writes text into the caller's buffer. What does not fit sets a flag, and [`Text::finish`] then gives nothing.
#[derive(Debug)]
pub struct Text<'a> {
    buffer: &'a mut [u8],
    length: usize,
    failed: bool,
}

impl<'a> Text<'a> {
    /// Nothing written yet; the limit is the length of `buffer`.
    pub fn new(buffer: &'a mut [u8]) -> Text<'a> {
        Text { buffer, length: 0, failed: false }
    }

    /// The number of octets written, or `None` when not everything fitted.
    pub fn finish(self) -> Option<usize> {
        (!self.failed).then_some(self.length)
    }

    /// As it is.
    pub fn put(&mut self, octets: &[u8]) {
        match self.buffer.get_mut(self.length..self.length.saturating_add(octets.len())).filter(|_| !self.failed) {
            Some(room) => {
                room.copy_from_slice(octets);
                self.length += octets.len();
            }
            None => self.failed = true,
        }
    }

    /// Decimal digits.
    pub fn number(&mut self, value: i64) {
        let mut digits = [0; 20];
        let (mut at, mut rest) = (digits.len(), value.unsigned_abs());
        loop {
            at -= 1;
            if let Some(digit) = digits.get_mut(at) {
                *digit = b'0' + (rest % 10) as u8;
            }
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            self.put(b"-");
        }
        self.put(digits.get(at..).unwrap_or_default());
    }

    /// Hexadecimal digits, capitals.
    pub fn hex(&mut self, octets: &[u8]) {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        for octet in octets {
            self.put(&[DIGITS[usize::from(octet >> 4)], DIGITS[usize::from(octet & 15)]]);
        }
    }

    /// The name of a package, item or parameter.
    pub fn known(&mut self, name: Known) {
        match name {
            Known::Listed(name) => self.put(name.as_bytes()),
            Known::Made(letter, number) => {
                self.put(&[letter]);
                self.hex(&number.to_be_bytes());
            }
        }
    }

    /// In quotes; what may not stand in them becomes `'` or a blank.
    pub fn quoted(&mut self, text: &[u8]) {
        self.put(b"\"");
        for &octet in text {
            self.put(&[match octet {
                b'"' => b'\'',
                b'\t' | b' '..=b'~' => octet,
                _ => b' ',
            }]);
        }
        self.put(b"\"");
    }

    /// A word, or in quotes when it is none.
    pub fn word_or_quoted(&mut self, text: &[u8]) {
        if !text.is_empty() && lex::word_end(text, 0, text.len()) == text.len() { self.put(text) } else { self.quoted(text) }
    }

    /// A line of a session description: one line, with `}` as it must be there.
    pub fn line(&mut self, letter: u8, text: &[u8]) {
        self.put(&[letter, b'=']);
        for &octet in text {
            match octet {
                b'}' => self.put(b"\\}"),
                b'\r' | b'\n' | 0 => self.put(b" "),
                _ => self.put(&[octet]),
            }
        }
        self.put(b"\n");
    }
}

/// Puts a mark in front of each item but the first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Commas {
    any: bool,
}

impl Commas {
    /// Another item follows.
    pub fn next(&mut self, out: &mut Text<'_>) {
        if std::mem::replace(&mut self.any, true) {
            out.put(b",");
        }
    }
}
