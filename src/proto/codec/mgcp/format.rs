//! `fmtp:` and `o-fmtp:` of LocalConnectionOptions: parameters of media formats (RFC 3660 2.9; FM-01, FM-02).
//!
//! `fmtp:"PCMU:2 something";"G729 other"`: each quoted string names an encoding, which of its occurrences in `a:` is meant, and what is
//! asked of it. The two options are the only ones that may occur more than once.

use super::options::key_and_value;
use crate::proto::codec::scan::{self, Items};

/// What is asked of one encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format<'a> {
    /// `o-fmtp`: it may be ignored.
    pub optional: bool,
    /// The name of the encoding.
    pub codec: &'a [u8],
    /// Which of the occurrences of the encoding in `a:`, from 1; `None` where it need not be said.
    pub occurrence: Option<u32>,
    /// The parameters, as an `a=fmtp` would have them.
    pub parameters: &'a [u8],
}

/// Whether `key` is one of the two options, and which: `Some(true)` for the optional one.
pub(super) fn key(key: &[u8]) -> Option<bool> {
    match key.split_at_checked(key.len().wrapping_sub(4)) {
        Some((front, name)) if name.eq_ignore_ascii_case(b"fmtp") => match front {
            [] => Some(false),
            [b'o' | b'O', b'-'] => Some(true),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the value of one of them is well-formed.
pub(super) fn is_value(value: &[u8]) -> bool {
    !value.is_empty() && Items::new(value, b';').all(|item| format(item, false).is_some())
}

fn format(item: &[u8], optional: bool) -> Option<Format<'_>> {
    if scan::quoted_end(item, 0) != Some(item.len()) {
        return None;
    }
    let text = scan::trim(item.strip_prefix(b"\"")?.strip_suffix(b"\"")?);
    let blank = text.iter().position(|&byte| byte == b' ')?;
    let (name, parameters) = text.split_at_checked(blank)?;
    let (codec, occurrence) = match name.iter().position(|&byte| byte == b':') {
        Some(colon) => (name.get(..colon)?, Some(scan::decimal(name.get(colon + 1..)?, 4)?)),
        None => (name, None),
    };
    (!codec.is_empty()).then_some(Format { optional, codec, occurrence, parameters: scan::trim(parameters) })
}

/// Those of a whole `L:`, which was found well-formed, in order.
pub(super) fn formats(value: &[u8]) -> impl Iterator<Item = Format<'_>> {
    Items::new(value, b',').flat_map(|item| {
        let (name, value) = key_and_value(item);
        let optional = key(name);
        let values = Items::new(value.filter(|_| optional.is_some()).unwrap_or_default(), b';');
        values.filter_map(move |item| format(item, optional?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_string_is_one_format() {
        let value = b"a:PCMU;PCMU;G729, FMTP:\"PCMU:2 x=1\" ; \"G729 annexb=no\", p:20, o-fmtp:\"telephone-event 16,70\"";
        let found: Vec<Format<'_>> = formats(value).collect();
        let format = |optional, codec, occurrence, parameters| Format { optional, codec, occurrence, parameters };
        let expected = [
            format(false, &b"PCMU"[..], Some(2), &b"x=1"[..]),
            format(false, b"G729", None, b"annexb=no"),
            format(true, b"telephone-event", None, b"16,70"),
        ];
        assert_eq!(found, expected);
        for wrong in ["", "PCMU x", "\"PCMU\"", "\"\"", "\" x\"", "\":1 x\"", "\"PCMU: x\"", "\"PCMU:a x\"", "\"PCMU x\";", "\"PCMU x"] {
            assert!(!is_value(wrong.as_bytes()), "{wrong}");
        }
        for other in ["fmt", "xfmtp", "o-o-fmtp", "o-", "", "fmtpo"] {
            assert_eq!(key(other.as_bytes()), None, "{other}");
        }
    }
}
