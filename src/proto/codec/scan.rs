//! Scanning primitives under every text parser: line starts, blanks, bounded decimals, quoted strings, comma lists.
//!
//! Nothing here knows MGCP; everything borrows from its input and runs in time linear in it. RFC 3435 3.1 and appendix A give
//! the rules: a line ends in CR LF or LF (a lone CR is no line end), letter case does not matter, a quoted string may hold anything.

use memchr::memchr;

/// The longest quoted string in bytes, quotes included. A quote that is not closed within this many bytes is an ordinary byte.
pub const QUOTED_MAX: usize = 4096;

/// Space or tab.
#[inline(always)]
pub const fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// `text` without blanks in front.
#[inline]
pub fn trim_start(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text {
        if *first > b' ' || !is_blank(*first) {
            break;
        }
        text = rest;
    }
    text
}

/// `text` without blanks and carriage returns at the end.
#[inline]
pub fn trim_end(mut text: &[u8]) -> &[u8] {
    while let [rest @ .., last] = text {
        // Nearly always it is over here.
        if *last > b' ' || !(is_blank(*last) || *last == b'\r') {
            break;
        }
        text = rest;
    }
    text
}

/// `text` without blanks around it.
#[inline]
pub fn trim(text: &[u8]) -> &[u8] {
    trim_end(trim_start(text))
}

/// The first word of `text` and what follows it, both without blanks around them.
#[inline]
pub fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = trim(text);
    match find_blank(text) {
        Some(end) => (&text[..end], trim_start(&text[end..])),
        None => (text, &[]),
    }
}

/// The first position of `byte` in `text`, expected soon: over a few words a loop beats the call of a vector search.
#[inline]
pub fn find_near(text: &[u8], byte: u8) -> Option<usize> {
    find_in_words(text, 0, |word| zeros(word ^ (ONES * u64::from(byte))), |b| b == byte)
}

/// The first space or tab of `text`, expected soon.
#[inline]
pub fn find_blank(text: &[u8]) -> Option<usize> {
    // All bytes up to the space cost less to find than two of them, and the first one found is a blank nearly always.
    let control = |word: u64| word.wrapping_sub(ONES * (b' ' as u64 + 1)) & !word & (ONES << 7);
    let found = find_in_words(text, 0, control, |byte| byte <= b' ')?;
    if is_blank(text[found]) { Some(found) } else { text.iter().position(|&byte| is_blank(byte)) }
}

/// The first position of either byte in `text` at or behind `from`, expected soon.
#[inline]
pub fn find_near_either(text: &[u8], from: usize, a: u8, b: u8) -> Option<usize> {
    let hits = |word| zeros(word ^ (ONES * u64::from(a))) | zeros(word ^ (ONES * u64::from(b)));
    find_in_words(text, from, hits, |byte| byte == a || byte == b)
}

/// How long a text is at least that is searched sixteen bytes at once.
#[cfg(target_arch = "x86_64")]
const VECTOR: usize = 16;

/// The first line feed of `text`. Lines are a little longer than words: where the processor always compares sixteen bytes at once,
/// that is used, without the call that `memchr` makes to find out what else it has.
#[inline(always)]
pub fn find_line_feed(text: &[u8]) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if text.len() >= VECTOR
        && let Some(finder) = memchr::arch::x86_64::sse2::memchr::One::new(b'\n')
    {
        return finder.find(text);
    }
    find_near(text, b'\n')
}

/// The first line feed or double quote of `text`, in the same way.
#[inline(always)]
pub fn find_line_feed_or_quote(text: &[u8]) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if text.len() >= VECTOR
        && let Some(finder) = memchr::arch::x86_64::sse2::memchr::Two::new(b'\n', b'"')
    {
        return finder.find(text);
    }
    find_near_either(text, 0, b'\n', b'"')
}

/// A one in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// The high bit of each zero byte of a word, and maybe of bytes behind the first one.
#[inline(always)]
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & (ONES << 7)
}

/// The first position at or behind `from` that a search of words finds, its first hit in the lowest byte; `hit` is the same for
/// single bytes.
#[inline(always)]
fn find_in_words(text: &[u8], from: usize, hits: impl Fn(u64) -> u64, hit: impl Fn(u8) -> bool) -> Option<usize> {
    let mut rest = text.get(from..)?;
    while let Some((word, behind)) = rest.split_first_chunk::<8>() {
        let found = hits(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(text.len() - rest.len() + found.trailing_zeros() as usize / 8);
        }
        rest = behind;
    }
    let at = text.len() - rest.len();
    match text.last_chunk::<8>() {
        // The last word again, without what was searched.
        Some(last) => {
            let word = u64::from_le_bytes(*last).checked_shr(64 - 8 * rest.len() as u32)?;
            let found = hits(word).trailing_zeros() as usize / 8;
            (found < rest.len()).then_some(at + found)
        }
        None => rest.iter().position(|&byte| hit(byte)).map(|found| at + found),
    }
}

/// Where `part`, a part of `whole`, starts in it.
#[inline]
pub fn offset_in(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize).min(whole.len())
}

/// The value of 1 to `digits_max` (at most 9) decimal digits and nothing else.
#[inline]
pub fn decimal(text: &[u8], digits_max: usize) -> Option<u32> {
    if text.is_empty() || text.len() > digits_max.min(9) {
        return None;
    }
    let mut value = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u32::from(digit);
    }
    Some(value)
}

/// The value of the 1 to `digits_max` (at most 9) decimal digits that `text` begins with, and what follows them.
#[inline]
pub fn leading_decimal(text: &[u8], digits_max: usize) -> Option<(u32, &[u8])> {
    let mut value = 0;
    for (at, &byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return (at > 0).then(|| (value, &text[at..]));
        }
        if at == digits_max.min(9) {
            return None;
        }
        value = value * 10 + u32::from(digit);
    }
    (!text.is_empty()).then_some((value, &[]))
}

/// `low-high` or a single number, each of 1 to `digits_max` digits; blanks around the hyphen are accepted.
pub fn decimal_range(text: &[u8], digits_max: usize) -> Option<(u32, u32)> {
    let (low, rest) = leading_decimal(text, digits_max)?;
    if rest.is_empty() {
        return Some((low, low));
    }
    let high = trim_start(rest).strip_prefix(b"-")?;
    Some((low, decimal(trim(high), digits_max)?))
}

/// Whether `text` is 1 or more letters, digits and hyphens with no hyphen at either end: package names, event names.
pub fn is_hyphenated(text: &[u8]) -> bool {
    matches!((text.first(), text.last()), (Some(first), Some(last)) if *first != b'-' && *last != b'-')
        && text.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
}

/// Whether `text` can name a package; `x+` names are reserved but are names (G-PKG-01, G-PKG-04).
pub fn is_package_name(text: &[u8]) -> bool {
    match text {
        [b'x' | b'X', b'+', rest @ ..] => is_hyphenated(rest),
        _ => is_hyphenated(text),
    }
}

/// The first position at which a line starts (right behind a line feed at or after `from`) with a byte that is `wanted`.
///
/// Looks at blocks of bytes at once, without stopping at the line feeds between, because it runs over every datagram.
#[inline]
pub fn find_line_start(text: &[u8], from: usize, wanted: impl Fn(u8) -> bool) -> Option<usize> {
    const BLOCK: usize = LINE_START_BLOCK;
    let ends = text.get(from..)?;
    let starts = ends.get(1..)?;
    let ends = &ends[..starts.len()];
    let scan = |ends: &[u8], starts: &[u8]| ends.iter().zip(starts).position(|(&end, &start)| end == b'\n' && wanted(start));
    let (end_blocks, _) = ends.as_chunks::<BLOCK>();
    let (start_blocks, _) = starts.as_chunks::<BLOCK>();
    for (block, (e, s)) in end_blocks.iter().zip(start_blocks).enumerate() {
        if any_line_start(e, s, &wanted) {
            return scan(e, s).map(|i| from + block * BLOCK + i + 1);
        }
    }
    // The rest, as one block that overlaps the last one where the text is long enough.
    match (ends.last_chunk::<BLOCK>(), starts.last_chunk::<BLOCK>()) {
        (Some(e), Some(s)) if !any_line_start(e, s, &wanted) => None,
        _ => {
            let done = end_blocks.len() * BLOCK;
            scan(&ends[done..], &starts[done..]).map(|i| from + done + i + 1)
        }
    }
}

/// Bytes that [`find_line_start`] looks at together.
const LINE_START_BLOCK: usize = 32;

/// Whether any of these bytes is a line feed and the byte behind it `wanted`.
#[inline(always)]
fn any_line_start(ends: &[u8; LINE_START_BLOCK], starts: &[u8; LINE_START_BLOCK], wanted: impl Fn(u8) -> bool) -> bool {
    ends.iter().zip(starts).fold(false, |hit, (&end, &start)| hit | ((end == b'\n') & wanted(start)))
}

/// The end of the quoted string that begins at `at` (the position behind its closing quote); a doubled quote stands for one.
/// `None` when no quote closes it within [`QUOTED_MAX`] bytes.
pub fn quoted_end(text: &[u8], at: usize) -> Option<usize> {
    let limit = text.len().min(at.saturating_add(QUOTED_MAX));
    let mut next = at + 1;
    loop {
        let quote = next + memchr(b'"', text.get(next..limit)?)?;
        if text.get(quote + 1) != Some(&b'"') {
            return Some(quote + 1);
        }
        next = quote + 2;
    }
}

/// Plain lines without their ends (CR LF or LF), and without blanks before them. The last one needs no end; an empty text has no line.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    /// The lines of `text`.
    pub fn new(text: &'a [u8]) -> Lines<'a> {
        Lines { rest: text }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = match find_line_feed(self.rest) {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, &[][..]),
        };
        self.rest = rest;
        Some(trim_end(line))
    }
}

/// The items of a list, blanks around each removed; a separator inside a quoted string does not separate.
///
/// A blank text has no items; `a,,b` has an empty one, for the caller to judge.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    text: &'a [u8],
    at: usize,
    separator: u8,
}

impl<'a> Items<'a> {
    /// The items of `text` between `separator`s.
    pub fn new(text: &'a [u8], separator: u8) -> Items<'a> {
        let text = trim(text);
        // Behind the end there is no item: a blank text starts there.
        let at = if text.is_empty() { 1 } else { 0 };
        Items { text, at, separator }
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.at > self.text.len() {
            return None;
        }
        let mut from = self.at;
        let end = loop {
            match find_near_either(self.text, from, self.separator, b'"') {
                Some(quote) if self.text[quote] == b'"' => from = quoted_end(self.text, quote).unwrap_or(quote + 1),
                Some(separator) => break separator,
                None => break self.text.len(),
            }
        };
        let item = &self.text[self.at..end];
        self.at = end + 1;
        Some(trim(item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive_line_start(text: &[u8], from: usize, wanted: u8) -> Option<usize> {
        (from + 1..text.len()).find(|&i| text[i - 1] == b'\n' && text[i] == wanted)
    }

    fn naive_items(text: &[u8]) -> Vec<Vec<u8>> {
        let text = trim(text);
        let mut items = vec![Vec::new()];
        let mut i = 0;
        while i < text.len() {
            if text[i] == b'"'
                && let Some(end) = naive_quoted_end(text, i)
            {
                items.last_mut().unwrap().extend_from_slice(&text[i..end]);
                i = end;
                continue;
            }
            match text[i] {
                b',' => items.push(Vec::new()),
                byte => items.last_mut().unwrap().push(byte),
            }
            i += 1;
        }
        if text.is_empty() { Vec::new() } else { items.iter().map(|item| trim(item).to_vec()).collect() }
    }

    fn naive_quoted_end(text: &[u8], at: usize) -> Option<usize> {
        let mut i = at + 1;
        while i < text.len() {
            match (text[i], text.get(i + 1)) {
                (b'"', Some(b'"')) => i += 2,
                (b'"', _) => return Some(i + 1),
                _ => i += 1,
            }
        }
        None
    }

    proptest! {
        #[test]
        fn line_starts_agree_with_a_naive_search(text in prop::collection::vec(prop::sample::select(b"\n..\rab".to_vec()), 0..200), from in 0usize..210) {
            prop_assert_eq!(find_line_start(&text, from, |b| b == b'.'), naive_line_start(&text, from, b'.'));
        }

        #[test]
        fn sparse_line_starts_agree_too(at in 0usize..300, from in 0usize..300, length in 0usize..300) {
            let mut text = vec![b'.'; length];
            if let Some(byte) = text.get_mut(at) {
                *byte = b'\n';
            }
            prop_assert_eq!(find_line_start(&text, from, |b| b == b'.'), naive_line_start(&text, from, b'.'));
        }

        #[test]
        fn near_bytes_agree_with_a_naive_search(text in prop::collection::vec(prop::sample::select(b"\x00\x01ab\x80\xe1\xff".to_vec()), 0..40)) {
            for (a, b) in [(b'a', b'b'), (0, 1), (b'a', 0xe1), (0xff, 0x80)] {
                for from in 0..=text.len() {
                    let naive = text[from..].iter().position(|&byte| byte == a || byte == b).map(|at| from + at);
                    prop_assert_eq!(find_near_either(&text, from, a, b), naive);
                }
                prop_assert_eq!(find_near(&text, a), text.iter().position(|&byte| byte == a));
            }
        }

        #[test]
        fn blanks_agree_with_a_naive_search(text in prop::collection::vec(prop::sample::select(b"\x00 \x1f!\x7f\t\ra\x80\xa0\xff".to_vec()), 0..40), lead in 0usize..20) {
            let text = [vec![b'x'; lead], text].concat();
            prop_assert_eq!(find_blank(&text), text.iter().position(|&byte| is_blank(byte)));
        }

        #[test]
        fn line_feeds_and_quotes_agree_with_a_naive_search(text in prop::collection::vec(prop::sample::select(b"\n\"\x0b\r".to_vec()), 0..4), lead in 0usize..90) {
            let text = [vec![b'x'; lead], text, vec![b'y'; lead / 3]].concat();
            prop_assert_eq!(find_line_feed(&text), text.iter().position(|&byte| byte == b'\n'));
            prop_assert_eq!(find_line_feed_or_quote(&text), text.iter().position(|&byte| byte == b'\n' || byte == b'"'));
        }

        #[test]
        fn items_agree_with_a_naive_splitter(text in prop::collection::vec(prop::sample::select(b"ab,\", \t".to_vec()), 0..60)) {
            let items: Vec<Vec<u8>> = Items::new(&text, b',').map(<[u8]>::to_vec).collect();
            prop_assert_eq!(items, naive_items(&text));
        }

        #[test]
        fn lines_agree_with_a_naive_splitter(text in "[ab \r\n]{0,40}") {
            let naive: Vec<&str> = text.split_inclusive('\n').map(|l| l.trim_end_matches(['\n', '\r', ' '])).collect();
            let lines: Vec<&[u8]> = Lines::new(text.as_bytes()).collect();
            prop_assert_eq!(lines, naive.iter().map(|l| l.as_bytes()).collect::<Vec<_>>());
        }

        #[test]
        fn decimals_agree_with_the_library(text in "[0-9a+-]{0,12}") {
            let expected = if text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None };
            prop_assert_eq!(decimal(text.as_bytes(), 9), expected);
            let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let leading = decimal(&text.as_bytes()[..digits], 9).map(|value| (value, &text.as_bytes()[digits..]));
            prop_assert_eq!(leading_decimal(text.as_bytes(), 9), leading);
        }
    }

    #[test]
    fn quoted_strings_are_bounded() {
        assert_eq!(quoted_end(br#""a""b,(c)"x"#, 0), Some(10));
        assert_eq!(quoted_end(b"\"open", 0), None);
        let mut long = vec![b'x'; QUOTED_MAX + 10];
        long[0] = b'"';
        long[QUOTED_MAX - 1] = b'"';
        assert_eq!(quoted_end(&long, 0), Some(QUOTED_MAX));
        long[QUOTED_MAX - 1] = b'x';
        long[QUOTED_MAX] = b'"';
        assert_eq!(quoted_end(&long, 0), None);
    }

    #[test]
    fn names_ranges_and_words() {
        assert!(is_package_name(b"T") && is_package_name(b"x-foo") && is_package_name(b"X+foo"));
        assert!(!is_package_name(b"-t") && !is_package_name(b"t-") && !is_package_name(b"") && !is_package_name(b"a+b"));
        assert_eq!(decimal_range(b"10-20", 4), Some((10, 20)));
        assert_eq!(decimal_range(b"10", 4), Some((10, 10)));
        assert_eq!((decimal_range(b"10-", 4), decimal_range(b"-10", 4), decimal_range(b"10000", 4)), (None, None, None));
        assert_eq!(word(b"  MGCP \t 1.0 "), (&b"MGCP"[..], &b"1.0"[..]));
    }
}
