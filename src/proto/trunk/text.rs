//! Names are written into a caller's buffer: a cursor that never writes past its end and remembers that it would have.

/// Writes bytes and numbers into a borrowed buffer.
pub(crate) struct Writer<'a> {
    out: &'a mut [u8],
    length: usize,
    overflow: bool,
}

impl<'a> Writer<'a> {
    /// Starts at the beginning of `out`.
    pub(crate) fn new(out: &'a mut [u8]) -> Writer<'a> {
        Writer { out, length: 0, overflow: false }
    }

    /// Appends `bytes`; nothing when they do not fit.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> &mut Self {
        match self.out.get_mut(self.length..self.length + bytes.len()) {
            Some(space) if !self.overflow => {
                space.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            _ => self.overflow = true,
        }
        self
    }

    /// Appends a decimal number without leading zeros (G-EPN-12).
    pub(crate) fn number(&mut self, mut value: u32) -> &mut Self {
        let mut digits = [0; 10];
        let mut start = digits.len();
        loop {
            start -= 1;
            digits[start] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                return self.put(&digits[start..]);
            }
        }
    }

    /// How many bytes were written; 0 when the buffer was too small.
    pub(crate) fn finish(&self) -> usize {
        if self.overflow { 0 } else { self.length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_fits_and_says_when_it_does_not() {
        let mut out = [0; 8];
        let length = Writer::new(&mut out).put(b"ds1-").number(100).finish();
        assert_eq!(&out[..length], b"ds1-100");
        assert_eq!(Writer::new(&mut out).put(b"ds1-").number(u32::MAX).finish(), 0);
        assert_eq!(Writer::new(&mut out).number(0).finish(), 1);
    }
}
