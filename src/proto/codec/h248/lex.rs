//! Words and white space, and [`Items`]: the one form that everything inside braces has, `name [relation value] [{ inside }]`, separated
//! by commas. What an item means is its reader's business.

use super::fault::{Fault, Refusal};
use super::shape::Block;

/// A character of words: B.2 SafeChar.
const WORD: u8 = 1;
/// White space: blank, tab, line ends.
const BLANK: u8 = 2;
/// What [`super::Shape`] stops at: braces, quotes, comments, separators.
const MARK: u8 = 4;

/// What each byte is.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let safe = b"+-&!_/'?@^`~*$\\()%|.";
    let mut i = 0;
    while i < 256 {
        if (i as u8).is_ascii_alphanumeric() {
            classes[i] = WORD;
        }
        i += 1;
    }
    let mut i = 0;
    while i < safe.len() {
        classes[safe[i] as usize] = WORD;
        i += 1;
    }
    classes[b' ' as usize] = BLANK;
    classes[b'\t' as usize] = BLANK;
    classes[b'\r' as usize] = BLANK;
    classes[b'\n' as usize] = BLANK;
    let marks = b"{}\";,=";
    let mut i = 0;
    while i < marks.len() {
        classes[marks[i] as usize] = MARK;
        i += 1;
    }
    classes
};

#[inline(always)]
fn class(byte: u8) -> u8 {
    CLASSES[byte as usize]
}

#[inline(always)]
pub(super) fn is_mark(byte: u8) -> bool {
    class(byte) == MARK
}

/// The first position at or behind `at` that is neither white space nor part of a comment; `end` at most.
#[inline]
pub(super) fn skip(text: &[u8], mut at: usize, end: usize) -> usize {
    while at < end {
        match text.get(at) {
            Some(&byte) if class(byte) == BLANK => at += 1,
            Some(b';') => at = comment_end(text, at, end),
            _ => break,
        }
    }
    at
}

/// Behind the line end of the comment that begins at `at`.
pub(super) fn comment_end(text: &[u8], at: usize, end: usize) -> usize {
    let line = text.get(at..end).unwrap_or_default();
    memchr::memchr2(b'\r', b'\n', line).map_or(end, |length| at + length + 1)
}

/// Behind the word that begins at `at`.
#[inline]
pub(super) fn word_end(text: &[u8], at: usize, end: usize) -> usize {
    let rest = text.get(at..end).unwrap_or_default();
    at + rest.iter().position(|&byte| class(byte) != WORD).unwrap_or(rest.len())
}

/// The closing quote of the string that opens at `at`.
#[inline]
pub(super) fn quote_end(text: &[u8], at: usize, end: usize) -> Option<usize> {
    memchr::memchr(b'"', text.get(at + 1..end)?).map(|length| at + 1 + length)
}

/// The inside of a pair of braces or brackets, or a whole message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body<'a> {
    text: &'a [u8],
    blocks: &'a [Block],
    at: u32,
    end: u32,
    /// The first block at or behind `at`.
    next: u16,
    closed: bool,
}

impl<'a> Body<'a> {
    /// All of a message behind `at`.
    pub fn of_message(text: &'a [u8], blocks: &'a [Block], at: usize) -> Body<'a> {
        let next = blocks.iter().take_while(|block| (block.open as usize) < at).count();
        Body { text, blocks, at: at as u32, end: text.len() as u32, next: next as u16, closed: true }
    }

    /// The bytes as they are.
    pub fn bytes(&self) -> &'a [u8] {
        self.text.get(self.at as usize..self.end as usize).unwrap_or_default()
    }

    /// Where it begins in the message.
    pub fn offset(&self) -> usize {
        self.at as usize
    }

    /// Whether it has a closing brace.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether nothing but white space and comments is inside.
    pub fn is_blank(&self) -> bool {
        skip(self.text, self.at as usize, self.end as usize) == self.end as usize
    }

    /// Its items, separated by commas; what is malformed is `fault`.
    pub fn items(self, fault: Fault) -> Items<'a> {
        Items { body: self, fault, state: State::First, commas: true }
    }

    /// Its items, one behind the other without commas, as transactions stand in a message.
    pub fn sequence(self, fault: Fault) -> Items<'a> {
        Items { body: self, fault, state: State::First, commas: false }
    }
}

/// How an item relates its name to its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// `=`
    Equal,
    /// `>`
    Greater,
    /// `<`
    Less,
    /// `#`
    Unequal,
}

/// The value of an item.
#[derive(Clone, Copy, Debug)]
pub(super) enum Assigned<'a> {
    Nothing,
    /// A word; also an address with its brackets and port.
    Word(&'a [u8]),
    /// A quoted string without its quotes.
    Quoted(&'a [u8]),
    /// `[…]`: a list or a range, or an address: `whole` is all of it with a port behind.
    Brackets {
        inside: Body<'a>,
        whole: &'a [u8],
    },
    /// `{…}` right behind the relation.
    Braces(Body<'a>),
}

/// `[time :] name [relation value] [{ inside }]`
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    /// Where it begins in the message.
    pub offset: usize,
    /// The word in front of a colon.
    pub time: Option<&'a [u8]>,
    /// The name; a quoted string without its quotes when `quoted`.
    pub name: &'a [u8],
    pub quoted: bool,
    pub relation: Option<Relation>,
    pub value: Assigned<'a>,
    pub body: Option<Body<'a>>,
}

impl<'a> Item<'a> {
    pub fn refuse<T>(&self, fault: Fault) -> Result<T, Refusal> {
        Err(Refusal::new(fault, self.offset))
    }

    /// The word behind `=`; `fault` for anything else.
    pub fn word(&self, fault: Fault) -> Result<&'a [u8], Refusal> {
        match (self.relation, self.value) {
            (Some(Relation::Equal), Assigned::Word(word)) => Ok(word),
            _ => self.refuse(fault),
        }
    }

    /// Notes in `seen` that a parameter was there, by its bit; refuses it the second time.
    pub fn once(&self, seen: &mut u8, bit: u8) -> Result<(), Refusal> {
        if *seen & bit != 0 {
            return self.refuse(Fault::ParameterRepeated);
        }
        *seen |= bit;
        Ok(())
    }

    /// Whether it is a word and nothing else.
    pub fn is_bare(&self) -> bool {
        self.relation.is_none() && self.body.is_none() && !self.quoted && self.time.is_none() && matches!(self.value, Assigned::Nothing)
    }

    /// Its inside, when it has neither a value nor a time.
    pub fn block(&self, fault: Fault) -> Result<Body<'a>, Refusal> {
        match self.body {
            Some(body) if self.relation.is_none() && !self.quoted && self.time.is_none() && matches!(self.value, Assigned::Nothing) => {
                Ok(body)
            }
            _ => self.refuse(fault),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    First,
    /// An item has been read, and a comma behind it.
    Comma,
    /// Something was refused, or all has been read.
    Done,
}

/// Iterator over items. Ends after the first refusal.
#[derive(Clone, Debug)]
pub(super) struct Items<'a> {
    body: Body<'a>,
    fault: Fault,
    state: State,
    commas: bool,
}

impl<'a> Items<'a> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        if self.body.at < self.body.end { self.body.text.get(self.body.at as usize).copied() } else { None }
    }

    #[inline]
    fn skip(&mut self) {
        self.body.at = skip(self.body.text, self.body.at as usize, self.body.end as usize) as u32;
    }

    fn malformed<T>(&self) -> Result<T, Refusal> {
        Err(Refusal::new(self.fault, self.body.at as usize))
    }

    #[inline]
    fn take_word(&mut self) -> Result<&'a [u8], Refusal> {
        let start = self.body.at as usize;
        let end = word_end(self.body.text, start, self.body.end as usize);
        self.body.at = end as u32;
        match self.body.text.get(start..end) {
            Some(word) if !word.is_empty() => Ok(word),
            _ => self.malformed(),
        }
    }

    fn take_quoted(&mut self) -> Result<&'a [u8], Refusal> {
        let start = self.body.at as usize;
        let Some(end) = quote_end(self.body.text, start, self.body.end as usize) else { return self.malformed() };
        self.body.at = end as u32 + 1;
        let inside = self.body.text.get(start + 1..end).unwrap_or_default();
        // No line end, no other control character (TXT-06).
        if inside.iter().any(|&byte| byte < b' ' && byte != b'\t') { self.malformed() } else { Ok(inside) }
    }

    #[inline]
    fn take_block(&mut self) -> Result<Body<'a>, Refusal> {
        let Some(block) = self.body.blocks.get(usize::from(self.body.next)).filter(|block| block.open == self.body.at) else {
            return self.malformed();
        };
        let inside = Body { at: block.open + 1, end: block.close, next: self.body.next + 1, closed: block.closed, ..self.body };
        self.body.next = block.after;
        self.body.at = if block.closed { block.close + 1 } else { block.close };
        Ok(inside)
    }

    /// `[…]` or `<…>`, and a port behind it.
    fn take_enclosed(&mut self, close: u8) -> Result<Assigned<'a>, Refusal> {
        let start = self.body.at as usize;
        let end = self.body.end as usize;
        let mut at = start + 1;
        let inside_end = loop {
            match self.body.text.get(at).filter(|_| at < end) {
                None | Some(b'{' | b'}') => return self.malformed(),
                Some(b'"') => match quote_end(self.body.text, at, end) {
                    Some(quote) => at = quote + 1,
                    None => return self.malformed(),
                },
                Some(b';') if close == b']' => at = comment_end(self.body.text, at, end),
                Some(&byte) if byte == close => break at,
                Some(_) => at += 1,
            }
        };
        let inside = Body { at: start as u32 + 1, end: inside_end as u32, closed: true, ..self.body };
        let mut whole_end = inside_end + 1;
        let port = self.body.text.get(whole_end).is_some_and(|&byte| byte == b':' && whole_end < end);
        if port {
            whole_end = word_end(self.body.text, whole_end + 1, end);
        }
        self.body.at = whole_end as u32;
        let whole = self.body.text.get(start..whole_end).unwrap_or_default();
        Ok(if close == b']' { Assigned::Brackets { inside, whole } } else { Assigned::Word(whole) })
    }

    #[inline]
    fn take_value(&mut self) -> Result<Assigned<'a>, Refusal> {
        match self.peek() {
            Some(b'"') => self.take_quoted().map(Assigned::Quoted),
            Some(b'[') => self.take_enclosed(b']'),
            Some(b'<') => self.take_enclosed(b'>'),
            Some(b'{') => self.take_block().map(Assigned::Braces),
            _ => self.take_word().map(Assigned::Word),
        }
    }

    #[inline]
    fn item(&mut self) -> Result<Item<'a>, Refusal> {
        let offset = self.body.at as usize;
        let quoted = self.peek() == Some(b'"');
        let name = if quoted { self.take_quoted()? } else { self.take_word()? };
        let mut item = Item { offset, time: None, name, quoted, relation: None, value: Assigned::Nothing, body: None };
        self.skip();
        if self.peek() == Some(b':') && !quoted {
            self.body.at += 1;
            self.skip();
            item.time = Some(item.name);
            item.quoted = self.peek() == Some(b'"');
            item.name = if item.quoted { self.take_quoted()? } else { self.take_word()? };
            self.skip();
        }
        item.relation = match self.peek() {
            Some(b'=') => Some(Relation::Equal),
            Some(b'>') => Some(Relation::Greater),
            Some(b'<') => Some(Relation::Less),
            Some(b'#') => Some(Relation::Unequal),
            _ => None,
        };
        if item.relation.is_some() {
            self.body.at += 1;
            self.skip();
            item.value = self.take_value()?;
            self.skip();
        } else if self.peek() == Some(b'[') {
            item.value = self.take_enclosed(b']')?;
            self.skip();
        }
        if self.peek() == Some(b'{') {
            item.body = Some(self.take_block()?);
            self.skip();
        }
        match self.peek() {
            None => self.state = State::Done,
            Some(b',') if self.commas => {
                self.body.at += 1;
                self.state = State::Comma;
            }
            Some(_) if !self.commas => self.state = State::Comma,
            Some(_) => return self.malformed(),
        }
        Ok(item)
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Item<'a>, Refusal>;

    #[inline]
    fn next(&mut self) -> Option<Result<Item<'a>, Refusal>> {
        if self.state == State::Done {
            return None;
        }
        self.skip();
        if self.body.at >= self.body.end {
            let dangling = self.state == State::Comma && self.commas;
            self.state = State::Done;
            return dangling.then(|| self.malformed());
        }
        let item = self.item();
        if item.is_err() {
            self.state = State::Done;
        }
        Some(item)
    }
}

/// The value of 1 to `digits_max` (at most 10) decimal digits that fits 32 bits (TXT-11).
#[inline]
pub(super) fn number(text: &[u8], digits_max: usize) -> Option<u32> {
    if text.is_empty() || text.len() > digits_max.min(10) {
        return None;
    }
    let mut value = 0u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    u32::try_from(value).ok()
}

/// A UINT32 (TXT-11).
#[inline]
pub(super) fn uint32(text: &[u8]) -> Option<u32> {
    number(text, 10)
}

/// A UINT16 (TXT-11).
#[inline]
pub(super) fn uint16(text: &[u8]) -> Option<u16> {
    number(text, 5).and_then(|value| u16::try_from(value).ok())
}

/// A NAME: a letter, then letters, digits and `_`, 64 characters at most (PRP-14).
pub(super) fn is_name(text: &[u8]) -> bool {
    text.len() <= 64
        && text.first().is_some_and(u8::is_ascii_alphabetic)
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}
