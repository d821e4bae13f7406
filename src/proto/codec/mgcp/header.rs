//! The first line and the header lines of a message (RFC 3435 3.2, 3.3): where each ends, and what stands in it.
//!
//! A quoted string may hold line ends, so quotes are looked at before a line is cut (G-SYN-07); but only in parameters that have
//! quoted strings, because response texts, reason texts and endpoint names may hold a single quote.

use memchr::{memchr, memchr2};

use super::code::{Code, Verb};
use crate::proto::base::TransactionId;
use crate::proto::codec::scan;

/// A command line; blanks between its words removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandLine<'a> {
    /// The verb; `None` for one that is not known, which is answered 504.
    pub verb: Option<Verb>,
    /// The transaction identifier; 0 is possible (O-3).
    pub id: TransactionId,
    /// The endpoint name as written, `local@domain`; empty or garbage when the line is broken.
    pub endpoint: &'a [u8],
    /// How much of it stands before its first `@`: all of it without one.
    pub local_length: usize,
    /// Where the endpoint name starts in the message.
    pub endpoint_at: usize,
    /// What follows the endpoint name.
    pub version: &'a [u8],
    /// Where the next line starts.
    pub next: usize,
}

impl<'a> CommandLine<'a> {
    /// Reads the first line of `message`; `None` when it has no verb or no transaction identifier.
    #[inline]
    pub fn parse(message: &'a [u8]) -> Option<CommandLine<'a>> {
        let (line, next) = first_line(message);
        if !line.first()?.is_ascii_alphabetic() {
            return None;
        }
        let verb_end = scan::find_blank(line)?;
        let rest = scan::trim_start(&line[verb_end..]);
        let (id, rest) = transaction_id(rest)?;
        let rest = scan::trim(rest);
        let endpoint_at = scan::offset_in(message, rest);
        let (endpoint, version) = match scan::find_blank(rest) {
            Some(end) => (&rest[..end], scan::trim_start(&rest[end..])),
            None => (rest, &[][..]),
        };
        let local_length = scan::find_near(endpoint, b'@').unwrap_or(endpoint.len());
        Some(CommandLine { verb: Verb::parse(&line[..verb_end]), id, endpoint, local_length, endpoint_at, version, next })
    }

    /// The local part of the endpoint name as written: what stands before the first `@`.
    #[inline]
    pub fn local(&self) -> &'a [u8] {
        self.endpoint.get(..self.local_length).unwrap_or_default()
    }

    /// What stands behind it; `None` without an `@`.
    #[inline]
    pub fn domain(&self) -> Option<&'a [u8]> {
        self.endpoint.get(self.local_length + 1..)
    }
}

/// A response line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseLine<'a> {
    /// The response code.
    pub code: u16,
    /// The transaction identifier.
    pub id: TransactionId,
    /// The package and the text, as written.
    pub rest: &'a [u8],
    /// Where the next line starts.
    pub next: usize,
}

impl<'a> ResponseLine<'a> {
    /// Reads the first line of `message`; `None` when it does not begin with three digits and a transaction identifier.
    #[inline]
    pub fn parse(message: &'a [u8]) -> Option<ResponseLine<'a>> {
        let (line, next) = first_line(message);
        let (code, rest) = line.split_first_chunk::<3>()?;
        let code = scan::decimal(code, 3)? as u16;
        if !scan::is_blank(*rest.first()?) {
            return None;
        }
        let (id, rest) = transaction_id(scan::trim_start(rest))?;
        Some(ResponseLine { code, id, rest: scan::trim(rest), next })
    }
}

/// 1 to 9 digits that end at a blank or the end (O-3: 0 is accepted).
#[inline]
fn transaction_id(text: &[u8]) -> Option<(TransactionId, &[u8])> {
    scan::leading_decimal(text, 9).filter(|(_, rest)| rest.first().is_none_or(|&b| scan::is_blank(b) || b == b'\r'))
}

#[inline(always)]
fn first_line(message: &[u8]) -> (&[u8], usize) {
    match scan::find_line_feed(message) {
        Some(end) => (&message[..end], end + 1),
        None => (message, message.len()),
    }
}

/// A header line of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HeaderLine<'a> {
    /// `name: value`.
    Parameter {
        /// The name, blanks around it removed.
        name: &'a [u8],
        /// The code of that name.
        code: Option<Code>,
        /// Where the value, blanks around it removed, starts in the message.
        value_at: usize,
        /// Where it ends.
        value_end: usize,
    },
    /// Nothing but blanks: a session description may follow.
    Blank,
    /// A line that begins with a blank.
    Folded,
    /// A line without a name and a colon.
    Malformed,
}

/// Reads the header line that starts at `at` (inside `message`); also says where the next one starts.
#[inline(always)]
pub(crate) fn header_line(message: &[u8], at: usize) -> (HeaderLine<'_>, usize) {
    let rest = message.get(at..).unwrap_or_default();
    // Names are short: a byte loop beats a vector search. Blanks before the colon are accepted.
    let name_end = rest.iter().position(|&b| matches!(b, b':' | b'\n')).unwrap_or(rest.len());
    if rest.get(name_end) != Some(&b':') {
        let line = match scan::trim(&rest[..name_end]) {
            [] => HeaderLine::Blank,
            _ if rest.first().is_some_and(|&b| scan::is_blank(b)) => HeaderLine::Folded,
            _ => HeaderLine::Malformed,
        };
        return (line, at + (name_end + 1).min(rest.len()));
    }
    let name = scan::trim_end(&rest[..name_end]);
    let code = Code::parse(name);
    let value_from = name_end + 1;
    let end = value_end(rest, value_from, code);
    let next = at + (end + 1).min(rest.len());
    if name.first().is_some_and(|&b| scan::is_blank(b)) {
        return (HeaderLine::Folded, next);
    }
    let value = scan::trim_start(&rest[value_from..end]);
    let value_at = at + end - value.len();
    let value_end = value_at + scan::trim_end(value).len();
    (HeaderLine::Parameter { name, code, value_at, value_end }, next)
}

/// The position of the line feed that ends the value starting at `from`, or the end of `text`.
#[inline(always)]
fn value_end(text: &[u8], from: usize, code: Option<Code>) -> usize {
    let value = &text[from..];
    match scan::find_line_feed_or_quote(value) {
        None => text.len(),
        Some(i) if value[i] == b'\n' => from + i,
        Some(i) => value_end_behind_quote(text, from, from + i, code),
    }
}

#[cold]
fn value_end_behind_quote(text: &[u8], from: usize, quote: usize, code: Option<Code>) -> usize {
    let quotes_count = match code {
        Some(code) => code.holds_quotes(),
        // A parameter string is quoted when its first character is the quote (appendix A).
        None => scan::trim_start(&text[from..quote]).is_empty(),
    };
    let mut at = quote;
    if quotes_count {
        while let Some(end) = scan::quoted_end(text, at) {
            match memchr2(b'\n', b'"', &text[end..]) {
                Some(i) if text[end + i] == b'"' => at = end + i,
                Some(i) => return end + i,
                None => return text.len(),
            }
        }
    }
    memchr(b'\n', &text[at..]).map_or(text.len(), |i| at + i)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(message: &[u8]) -> Vec<String> {
        let mut at = 0;
        let mut found = Vec::new();
        while at < message.len() {
            let (line, next) = header_line(message, at);
            found.push(match line {
                HeaderLine::Parameter { name, value_at, value_end, .. } => {
                    format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(&message[value_at..value_end]))
                }
                other => format!("{other:?}"),
            });
            assert!(next > at);
            at = next;
        }
        found
    }

    #[test]
    fn lines_end_where_the_grammar_says() {
        assert_eq!(
            lines(b"C: A1\r\nm :  recvonly \nX:\r\n\r\n \t\r\nfoo\n bar\n b: c"),
            ["C=A1", "m=recvonly", "X=", "Blank", "Blank", "Malformed", "Folded", "Folded"]
        );
    }

    #[test]
    fn quotes_hide_line_ends_only_where_quoted_strings_can_stand() {
        assert_eq!(lines(b"S: A/ann(\"x\r\ny\",\"\n\")\nC: 1"), ["S=A/ann(\"x\r\ny\",\"\n\")", "C=1"]);
        assert_eq!(lines(b"E: 900 5\" disk\nS: A/a(\"\")"), ["E=900 5\" disk", "S=A/a(\"\")"]);
        assert_eq!(lines(b"X-a: b\"\nX-b: \"\n\"\n"), ["X-a=b\"", "X-b=\"\n\""]);
        assert_eq!(lines(b"S: A/a(\"open)\nC: 1"), ["S=A/a(\"open)", "C=1"]);
    }

    #[test]
    fn first_lines() {
        let line = CommandLine::parse(b"AUEP\t 0012   ds/1@gw  MGCP  1.0 \r\nF: A").unwrap();
        assert_eq!((line.verb, line.id, line.endpoint, line.version), (Some(Verb::Auep), 12, &b"ds/1@gw"[..], &b"MGCP  1.0"[..]));
        assert_eq!((line.endpoint_at, line.next), (13, 34));
        for bad in [&b"CRCX "[..], b"A", b"", b"CRCX 1234567890 x@y MGCP 1.0", b"CRCX x", b"CRCX 12x y", b"1RCX 1 x@y MGCP 1.0"] {
            assert!(CommandLine::parse(bad).is_none(), "{}", String::from_utf8_lossy(bad));
        }
        let line = ResponseLine::parse(b"200 1234\r\n").unwrap();
        assert_eq!((line.code, line.id, line.rest), (200, 1234, &b""[..]));
        for bad in [&b"2001 5 OK"[..], b"200", b"200 x", b"20 5", b"200 1234567890", b"2a0 5"] {
            assert!(ResponseLine::parse(bad).is_none(), "{}", String::from_utf8_lossy(bad));
        }
    }
}
