//! The look that every datagram gets first: where its messages are, what each is, and its transaction identifier.
//!
//! Messages are separated by a line that holds only a dot, which also ends a session description (RFC 3435 3.5.5, G-PIG-01). Three
//! digits make a response, a letter a command (G-SYN-12); nothing else of the message is checked, so that a command with a readable
//! identifier can be answered however broken the rest is (G-SYN-11).

use std::ops::Range;

use memchr::memchr;

use super::mgcp::CommandLine;
use super::mgcp::header::{HeaderLine, ResponseLine, header_line};
use super::scan;
use crate::proto::base::TransactionId;

/// The most messages of one datagram that are handled; what follows them is dropped ([`Messages::overflowed`]).
pub const MESSAGES_MAX: usize = 32;

/// What a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peek<'a> {
    /// A command: its first line.
    Command(CommandLine<'a>),
    /// A response.
    Response {
        /// The response code, 0..=999.
        code: u16,
        /// The transaction identifier of the command it answers.
        id: TransactionId,
    },
    /// Neither: nothing can be answered.
    Unreadable,
}

impl Peek<'_> {
    /// Looks at the first line of `message`.
    #[inline]
    pub fn at(message: &[u8]) -> Peek<'_> {
        if message.first().is_some_and(u8::is_ascii_digit) {
            match ResponseLine::parse(message) {
                Some(line) => Peek::Response { code: line.code, id: line.id },
                None => Peek::Unreadable,
            }
        } else {
            match CommandLine::parse(message) {
                Some(line) => Peek::Command(line),
                None => Peek::Unreadable,
            }
        }
    }
}

/// The longest name that [`local_name`] looks for.
const NEAR: usize = 64;

/// A guess at the local name of the endpoint of the first command in `datagram`, much cheaper than [`split`]: what stands between the
/// second blank and an `@`. For those who can use a name before the datagram is read, and do without.
#[inline]
pub fn local_name(datagram: &[u8]) -> Option<&[u8]> {
    let line = datagram.get(..NEAR).unwrap_or(datagram);
    // Behind the verb.
    let rest = line.get(5..)?;
    let name = rest.get(scan::find_near(rest, b' ')? + 1..)?;
    name.get(..scan::find_near(name, b'@')?)
}

/// The messages of `datagram` in order, each with its place in the datagram. Empty ones are left out.
pub fn split(datagram: &[u8]) -> Messages<'_> {
    Messages { datagram, at: 0, count: 0, overflowed: false }
}

/// Iterator over the messages of a datagram; made by [`split`].
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    datagram: &'a [u8],
    at: usize,
    count: usize,
    overflowed: bool,
}

impl Messages<'_> {
    /// Whether the datagram, read to its end, held more than [`MESSAGES_MAX`] messages.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = (Range<usize>, Peek<'a>);

    #[inline]
    fn next(&mut self) -> Option<(Range<usize>, Peek<'a>)> {
        let start = next_start(self.datagram, self.at)?;
        if self.count == MESSAGES_MAX {
            self.overflowed = true;
            self.at = self.datagram.len();
            return None;
        }
        self.count += 1;
        let (end, next) = message_end(self.datagram, start);
        self.at = next;
        Some((start..end, Peek::at(&self.datagram[start..end])))
    }
}

/// The start of the next message at or behind `at`: empty lines and empty messages are skipped.
#[inline]
fn next_start(datagram: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match datagram.get(at)? {
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            b'.' => match dot_line(datagram, at) {
                Some(next) => at = next,
                None => return Some(at),
            },
            _ => return Some(at),
        }
    }
}

/// If the line at `at` holds a dot and nothing else but blanks: where the next one starts.
fn dot_line(datagram: &[u8], at: usize) -> Option<usize> {
    let rest = datagram.get(at..)?.strip_prefix(b".")?;
    let blanks = rest.iter().take_while(|&&b| scan::is_blank(b) || b == b'\r').count();
    match rest.get(blanks) {
        None => Some(datagram.len()),
        Some(b'\n') => Some(at + 1 + blanks + 1),
        Some(_) => None,
    }
}

/// The end of the message at `start`, and where the next one may start.
#[inline]
fn message_end(datagram: &[u8], start: usize) -> (usize, usize) {
    match next_dot_line(datagram, start) {
        None => (datagram.len(), datagram.len()),
        Some((end, _)) if memchr(b'"', &datagram[start..end]).is_some() => quoting_message_end(datagram, start),
        Some(found) => found,
    }
}

/// The first dot line behind the line at `from`, quotes not regarded.
#[inline]
fn next_dot_line(datagram: &[u8], mut from: usize) -> Option<(usize, usize)> {
    loop {
        from = scan::find_line_start(datagram, from, |b| b == b'.')?;
        if let Some(next) = dot_line(datagram, from) {
            return Some((from, next));
        }
    }
}

/// [`message_end`] when there are quotes: goes line by line, because a quoted string may hold a dot line.
#[cold]
fn quoting_message_end(datagram: &[u8], start: usize) -> (usize, usize) {
    let mut at = memchr(b'\n', &datagram[start..]).map_or(datagram.len(), |i| start + i + 1);
    while at < datagram.len() {
        if let Some(next) = dot_line(datagram, at) {
            return (at, next);
        }
        let (line, next) = header_line(datagram, at);
        if let HeaderLine::Blank = line {
            // A session description: no quoted strings from here.
            return match dot_line(datagram, next) {
                Some(behind) => (next, behind),
                None => next_dot_line(datagram, next).unwrap_or((datagram.len(), datagram.len())),
            };
        }
        at = next;
    }
    (datagram.len(), datagram.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::codec::mgcp::Verb;
    use proptest::prelude::*;

    fn texts(datagram: &str) -> Vec<&str> {
        split(datagram.as_bytes()).map(|(range, _)| &datagram[range]).collect()
    }

    #[test]
    fn dot_lines_separate_messages() {
        // G-PIG-01
        assert_eq!(texts("A\r\nb\r\n.\r\nC\n. \t\r\nD"), ["A\r\nb\r\n", "C\n", "D"]);
        assert_eq!(texts("A\n..\n.x\n .\nB\n."), ["A\n..\n.x\n .\nB\n"]);
        assert_eq!(texts(".\n.\nA\n.\n.\n\r\n"), ["A\n"]);
        assert_eq!(texts(""), Vec::<&str>::new());
        assert_eq!(texts("A\n\nv=0\n.\nB"), ["A\n\nv=0\n", "B"]);
    }

    #[test]
    fn quoted_dot_lines_do_not_separate() {
        // G-SYN-07: but a quote in a session description or a first line means nothing.
        assert_eq!(texts("A\nS: a(\"\n.\n\")\n.\nB"), ["A\nS: a(\"\n.\n\")\n", "B"]);
        assert_eq!(texts("A \"\nC: 1\n.\nB \""), ["A \"\nC: 1\n", "B \""]);
        assert_eq!(texts("A\n\ns=\"\n.\nS: \"\n"), ["A\n\ns=\"\n", "S: \"\n"]);
        assert_eq!(texts("A\nS: \"\"\n\n.\nB"), ["A\nS: \"\"\n\n", "B"]);
    }

    #[test]
    fn the_first_line_classifies() {
        let command = |text: &'static [u8]| match Peek::at(text) {
            Peek::Command(line) => (line.verb, line.id, line.endpoint),
            other => panic!("{other:?}"),
        };
        let endpoint = &b"ds/1@gw"[..];
        assert_eq!(command(b"crcx 0012 ds/1@gw MGCP 1.0"), (Some(Verb::Crcx), 12, endpoint));
        assert_eq!(command(b"XPER 5 ds/1@gw MGCP 1.0"), (None, 5, endpoint));
        assert_eq!(command(b"CRCX 77 bad"), (Some(Verb::Crcx), 77, &b"bad"[..]));
        assert_eq!(command(b"CRCX 77\n"), (Some(Verb::Crcx), 77, &b""[..]));
        assert_eq!(Peek::at(b"000 1204"), Peek::Response { code: 0, id: 1204 });
        assert_eq!(Peek::at(b"200 7 OK\n"), Peek::Response { code: 200, id: 7 });
        for text in ["", "A", "CRCX ", "!/1 <mgc>\nT=261{}", "MEGACO/1 [192.0.2.1]:2944 T=1{}", "2000 1", "\0\0\0"] {
            assert_eq!(Peek::at(text.as_bytes()), Peek::Unreadable, "{text}");
        }
    }

    #[test]
    fn a_name_is_guessed() {
        assert_eq!(local_name(b"CRCX 1204 ds/ds3-1/ds1-5/7@tgw.example.net MGCP 1.0\r\n"), Some(&b"ds/ds3-1/ds1-5/7"[..]));
        for text in ["", "CRCX", "CRCX 1", "CRCX 1 ", "200 1204 OK", "CRCX 1204 ds/1 MGCP 1.0"] {
            assert_eq!(local_name(text.as_bytes()), None, "{text}");
        }
        assert_eq!(local_name(format!("AUEP 1 {}@gw MGCP 1.0", "x".repeat(100)).as_bytes()), None);
    }

    #[test]
    fn more_messages_than_the_limit_are_reported() {
        let datagram = "AUEP 1 a@b MGCP 1.0\n.\n".repeat(MESSAGES_MAX);
        let mut messages = split(datagram.as_bytes());
        assert_eq!(messages.by_ref().count(), MESSAGES_MAX);
        assert!(!messages.overflowed());
        let datagram = datagram + "AUEP 2 a@b MGCP 1.0";
        let mut messages = split(datagram.as_bytes());
        assert_eq!(messages.by_ref().count(), MESSAGES_MAX);
        assert!(messages.overflowed());
    }

    #[test]
    fn hostile_quotes_and_dots_cost_linear_time() {
        // 65,507 bytes of each pattern; the quadratic forms of this would take minutes.
        for pattern in ["\n.x", "\"\n.\n", "S:\"\n", "S:\"\"\"\n.\n", "\n.\n\"", "X-a: \"\n", "S: \"\n\"\"\n"] {
            let datagram = format!("A 1{}", pattern.repeat(65_000 / pattern.len()));
            assert!(split(datagram.as_bytes()).count() <= MESSAGES_MAX);
        }
    }

    proptest! {
        #[test]
        fn messages_lie_in_order_and_lose_nothing_but_separators(text in "[A.\" \n\r:S]{0,80}") {
            let mut end = 0;
            for (range, _) in split(text.as_bytes()) {
                prop_assert!(range.start >= end && range.end > range.start && range.end <= text.len());
                prop_assert!(text[end..range.start].bytes().all(|b| b". \t\r\n".contains(&b)));
                end = range.end;
            }
        }

        #[test]
        fn without_quotes_the_split_agrees_with_a_naive_one(lines in prop::collection::vec("(\\.|\\. |a|\\.\\.|b:[a-z.])", 0..20)) {
            let text = lines.join("\n");
            let mut naive: Vec<Vec<&str>> = vec![vec![]];
            for line in text.split('\n') {
                if line.trim_end() == "." { naive.push(vec![]) } else { naive.last_mut().unwrap().push(line) }
            }
            let naive: Vec<String> = naive.iter().map(|m| m.join("\n").trim().to_string()).filter(|m| !m.is_empty()).collect();
            prop_assert_eq!(texts(&text).iter().map(|m| m.trim().to_string()).collect::<Vec<_>>(), naive);
        }
    }
}
