//! The shape of a message: one pass that finds each pair of braces, so that every later step goes over a part without looking inside.
//!
//! The pass knows the three places where a brace is no brace: quoted strings, comments, and the octets of Local and Remote, in which
//! only `}` ends and `\}` does not (B.2, LR-11). Time is linear; the table has a fixed size and is used again for each message.

use super::fault::{Fault, Refusal};
use super::lex;

/// The deepest nesting that is read; the grammar reaches 12 (signal parameters of events embedded in events of a command).
pub const DEPTH_MAX: usize = 16;
/// Pairs of braces in one message. A call takes some 20, an audit of a T3 some 1,400.
pub const BLOCKS_MAX: usize = 4096;
/// The longest message in bytes: what a UDP datagram or a TPKT carries.
pub const MESSAGE_MAX: usize = 65_535;

/// One pair of braces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// Where the opening brace stands.
    pub open: u32,
    /// Where the closing one stands; the end of the message when it has none.
    pub close: u32,
    /// The first block behind this one.
    pub after: u16,
    /// Whether there is a closing brace.
    pub closed: bool,
}

/// The table of the braces of one message. A core has one and uses it for every message.
#[derive(Debug)]
pub struct Shape {
    blocks: Vec<Block>,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape::new()
    }
}

impl Shape {
    /// An empty table; all its memory is claimed here.
    pub fn new() -> Shape {
        Shape { blocks: Vec::with_capacity(BLOCKS_MAX) }
    }

    /// Finds the braces of `text`.
    pub(super) fn read(&mut self, text: &[u8]) -> Result<&[Block], Refusal> {
        self.blocks.clear();
        if text.len() > MESSAGE_MAX {
            return Err(Refusal::new(Fault::TooLong, MESSAGE_MAX));
        }
        let mut stack = [0u16; DEPTH_MAX];
        let mut depth = 0;
        // The latest separator in front of `at`.
        let mut separator = 0;
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            if !lex::is_mark(byte) {
                at += 1;
                continue;
            }
            match byte {
                b'{' => {
                    let refused = |fault| Err(Refusal::new(fault, at));
                    let number = self.blocks.len();
                    if number == BLOCKS_MAX {
                        return refused(Fault::TooManyBlocks);
                    }
                    let Some(slot) = stack.get_mut(depth) else { return refused(Fault::TooDeep) };
                    let block = Block { open: at as u32, close: text.len() as u32, after: number as u16 + 1, closed: false };
                    self.blocks.push(block);
                    if holds_octets(text, separator, at) {
                        let close = octets_end(text, at + 1);
                        if let (Some(close), Some(block)) = (close, self.blocks.last_mut()) {
                            (block.close, block.closed) = (close as u32, true);
                        }
                        at = close.unwrap_or(text.len());
                    } else {
                        *slot = number as u16;
                        depth += 1;
                    }
                    separator = at;
                }
                b'}' => {
                    depth = match depth.checked_sub(1) {
                        Some(depth) => depth,
                        None => return Err(Refusal::new(Fault::StrayBrace, at)),
                    };
                    self.close(stack.get(depth).copied(), at);
                    separator = at;
                }
                b'"' => at = lex::quote_end(text, at, text.len()).ok_or(Refusal::new(Fault::OpenQuote, at))?,
                b';' => at = lex::comment_end(text, at, text.len()).saturating_sub(1),
                _ => separator = at,
            }
            at += 1;
        }
        let total = self.blocks.len() as u16;
        for &open in stack.iter().take(depth) {
            if let Some(block) = self.blocks.get_mut(usize::from(open)) {
                block.after = total;
            }
        }
        Ok(&self.blocks)
    }

    fn close(&mut self, block: Option<u16>, at: usize) {
        let after = self.blocks.len() as u16;
        if let Some(block) = block.and_then(|number| self.blocks.get_mut(usize::from(number))) {
            (block.close, block.after, block.closed) = (at as u32, after, true);
        }
    }
}

/// Whether the brace at `open` begins the octets of a Local or Remote descriptor: the word in front of it is that token, and in front of
/// the word stands `{` or `,`, so that it is no name (`A=Local{…}` adds a termination of that name).
fn holds_octets(text: &[u8], separator: usize, open: usize) -> bool {
    if !matches!(text.get(separator), Some(b'{' | b',')) {
        return false;
    }
    let start = lex::skip(text, separator + 1, open);
    let end = lex::word_end(text, start, open);
    let Some(word) = text.get(start..end) else { return false };
    let token = match word.len() {
        1 => matches!(word, b"l" | b"L" | b"r" | b"R"),
        5 => word.eq_ignore_ascii_case(b"local"),
        6 => word.eq_ignore_ascii_case(b"remote"),
        _ => false,
    };
    token && lex::skip(text, end, open) == open
}

/// The `}` that ends octets which begin at `from`; one behind a backslash does not.
fn octets_end(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr(b'}', text.get(at..)?)?;
        if at == from || text.get(at - 1) != Some(&b'\\') {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Result<Vec<(u32, u32, u16, bool)>, Fault> {
        let mut shape = Shape::new();
        let blocks = shape.read(text.as_bytes()).map_err(|refusal| refusal.fault)?;
        Ok(blocks.iter().map(|b| (b.open, b.close, b.after, b.closed)).collect())
    }

    #[test]
    fn braces_are_paired_and_know_what_follows_them() {
        assert_eq!(shape("a{b{c}d}e{}").unwrap(), [(1, 7, 2, true), (3, 5, 2, true), (9, 10, 3, true)]);
        assert_eq!(shape("a{b{c}").unwrap(), [(1, 6, 2, false), (3, 5, 2, true)]);
        assert_eq!(shape("a}"), Err(Fault::StrayBrace));
        assert_eq!(shape(&"{".repeat(DEPTH_MAX + 1)), Err(Fault::TooDeep));
        assert_eq!(shape(&"a{}".repeat(BLOCKS_MAX + 1)), Err(Fault::TooManyBlocks));
        assert_eq!(shape(&" ".repeat(MESSAGE_MAX + 1)), Err(Fault::TooLong));
    }

    #[test]
    fn quotes_comments_and_octets_hide_braces() {
        // TXT-04, TXT-26, LR-11
        assert_eq!(shape("a{\"}{\"}").unwrap(), [(1, 6, 1, true)]);
        assert_eq!(shape("a{;}{\"\n}").unwrap(), [(1, 7, 1, true)]);
        assert_eq!(shape("a{\"").err(), Some(Fault::OpenQuote));
        assert_eq!(shape("M{L{a=\"{;\\}x}}").unwrap(), [(1, 13, 2, true), (3, 12, 2, true)]);
        assert_eq!(shape("M{O{},remote ;{\n {\"}}").unwrap().len(), 3);
        // A termination called Local is no octets.
        assert_eq!(shape("C{A=Local{M{}}}").unwrap().len(), 3);
    }
}
