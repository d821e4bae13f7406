//! A cursor that writes text into bytes of a fixed length; what does not fit is left out and remembered.

/// Text being written.
#[derive(Debug)]
pub struct Text<'a> {
    bytes: &'a mut [u8],
    length: usize,
    overflowed: bool,
}

impl<'a> Text<'a> {
    /// Empty text that may grow to the length of `bytes`.
    pub fn new(bytes: &'a mut [u8]) -> Text<'a> {
        Text { bytes, length: 0, overflowed: false }
    }

    /// Appends `part`, or nothing of it when it does not fit.
    #[inline]
    pub fn push(&mut self, part: &[u8]) {
        match self.bytes.get_mut(self.length..self.length + part.len()) {
            Some(room) => {
                room.copy_from_slice(part);
                self.length += part.len();
            }
            None => self.overflowed = true,
        }
    }

    /// Appends `count` blanks.
    #[inline]
    pub fn blanks(&mut self, count: usize) {
        match self.bytes.get_mut(self.length..self.length + count) {
            Some(room) => {
                room.fill(b' ');
                self.length += count;
            }
            None => self.overflowed = true,
        }
    }

    /// Appends `value` in decimal.
    #[inline]
    pub fn number(&mut self, mut value: u32) {
        let mut digits = [0; 10];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.push(&digits[at..]);
    }

    /// What was written.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// How many bytes were written.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether something did not fit.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_until_full() {
        let mut bytes = [0; 16];
        let mut text = Text::new(&mut bytes);
        text.push(b"K: ");
        text.number(0);
        text.blanks(1);
        text.number(4_294_967_295);
        assert_eq!(text.as_bytes(), b"K: 0 4294967295");
        assert!(!text.overflowed());
        text.push(b"ab");
        assert!(text.overflowed());
        assert_eq!(text.len(), 15);
    }
}
