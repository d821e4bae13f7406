//! Decimal digits as words of text, several at a time; the first one in the lowest byte.

/// Eight zeros, as text.
pub(super) const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The eight decimal digits of a number below 10^8 as text, the first one in the lowest byte: halves, then quarters, then digits are
/// split from each other all at once.
#[inline]
pub(super) fn digits(value: u64) -> u64 {
    let halves = (value / 10_000) | (value % 10_000) << 32;
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | (halves - 100 * hundreds) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    (tens | (pairs - 10 * tens) << 8) + ZEROS
}

/// The two decimal digits of a number below 100 as text, the first one in the lowest byte.
#[inline]
pub(super) fn two_digits(value: u64) -> u64 {
    let tens = (value * 103) >> 10;
    (tens | ((value - 10 * tens) << 8)) + (ZEROS & 0xffff)
}

/// The decimal digits of an octet and a dot behind them, the first one in the lowest byte, and how many digits.
pub(super) const OCTETS: [(u32, u8); 256] = {
    let mut octets = [(0, 0); 256];
    let mut value = 0;
    while value < 256 {
        let (mut text, mut length, mut rest) = (b'.' as u32, 0, value as u32);
        while rest > 0 || length == 0 {
            text = text << 8 | (b'0' as u32 + rest % 10);
            rest /= 10;
            length += 1;
        }
        octets[value] = (text, length);
        value += 1;
    }
    octets
};
