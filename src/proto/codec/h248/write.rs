//! Writing messages: strict, pretty or compact, into the caller's buffer.
//!
//! A message is a tree of items, and the writer keeps its place in it: [`Writer::begin`] and its kin go one level down,
//! [`Writer::end`] up again; commas, braces and white space come by themselves. Braces of a level without items are left out, except
//! where the grammar wants them ([`Writer::begin_list`]). What does not fit, what is no word where a word must stand, and levels left
//! open set a flag, and [`Writer::finish`] then gives nothing: a message is sent whole or not at all.

use super::descriptor::{DigitMap, EventDigitMap, RequestId};
use super::lex;
use super::message::{ContextId, Verb};
use super::name::{MessageId, TerminationId};
use super::shape::DEPTH_MAX;
use super::token::{Style, Token};
use super::value::{PackagedName, ParameterValue, Value, Values};

/// Writes one message.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    length: usize,
    failed: bool,
    style: Style,
    depth: usize,
    /// Bit of a level: its opening brace is written.
    opened: u32,
    /// Bit of a level: it has an item.
    filled: u32,
}

/// A place in a message to which [`Writer::rewind`] goes back.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    length: usize,
    failed: bool,
    depth: usize,
    opened: u32,
    filled: u32,
}

impl<'a> Writer<'a> {
    /// Nothing written yet; the limit is the length of `buffer`.
    pub fn new(buffer: &'a mut [u8], style: Style) -> Writer<'a> {
        Writer { buffer, length: 0, failed: false, style, depth: 0, opened: 0, filled: 0 }
    }

    /// Goes on with the message that is in `buffer` up to `mark`, which a writer of the same style took there.
    pub fn resume(buffer: &'a mut [u8], style: Style, mark: Mark) -> Writer<'a> {
        let Mark { length, failed, depth, opened, filled } = mark;
        Writer { buffer, length, failed, style, depth, opened, filled }
    }

    /// The number of bytes written, or `None` when not everything fitted or was fit to be written.
    pub fn finish(self) -> Option<usize> {
        (!self.failed && self.depth == 0).then_some(self.length)
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Bytes that fit still; none when something did not.
    pub fn room(&self) -> usize {
        if self.failed { 0 } else { self.buffer.len() - self.length.min(self.buffer.len()) }
    }

    /// Whether nothing is written yet.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// How many lines were ended so far.
    pub fn lines(&self) -> usize {
        self.buffer.get(..self.length).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count()
    }

    /// What was written since `mark`; nothing when something failed.
    pub fn since(&self, mark: Mark) -> &[u8] {
        self.buffer.get(mark.length..self.length).filter(|_| !self.failed).unwrap_or_default()
    }

    /// Whether something did not fit, or was not fit to be written.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// The present place.
    pub fn mark(&self) -> Mark {
        Mark { length: self.length, failed: self.failed, depth: self.depth, opened: self.opened, filled: self.filled }
    }

    /// Forgets everything written since `mark`, a failure included.
    pub fn rewind(&mut self, mark: Mark) {
        self.length = mark.length.min(self.length);
        (self.failed, self.depth, self.opened, self.filled) = (mark.failed, mark.depth, mark.opened, mark.filled);
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        let end = self.length.saturating_add(bytes.len());
        match self.buffer.get_mut(self.length..end).filter(|_| !self.failed) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.length = end;
            }
            None => self.failed = true,
        }
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        match self.buffer.get_mut(self.length).filter(|_| !self.failed) {
            Some(room) => {
                *room = byte;
                self.length += 1;
            }
            None => self.failed = true,
        }
    }

    /// A word: characters that need no quotes, at least one.
    fn word(&mut self, word: &[u8]) {
        if word.is_empty() || lex::word_end(word, 0, word.len()) != word.len() {
            self.failed = true;
        }
        self.bytes(word);
    }

    fn digits(&mut self, mut value: u32) {
        let mut text = [0; 10];
        let mut at = text.len();
        loop {
            at -= 1;
            if let Some(digit) = text.get_mut(at) {
                *digit = b'0' + (value % 10) as u8;
            }
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.bytes(text.get(at..).unwrap_or_default());
    }

    #[inline]
    fn token(&mut self, token: Token) {
        self.bytes(token.name(self.style).as_bytes());
    }

    #[inline]
    fn pretty(&self) -> bool {
        self.style == Style::Pretty
    }

    fn mark_sign(&mut self, sign: u8) {
        if self.pretty() {
            self.bytes(&[b' ', sign, b' ']);
        } else {
            self.byte(sign);
        }
    }

    /// What stands between the item before and the next one.
    #[inline]
    fn next_item(&mut self) {
        let bit = 1 << self.depth;
        if self.depth > 0 {
            if self.opened & bit == 0 {
                self.open_brace();
            }
            if self.filled & bit != 0 {
                self.byte(b',');
            }
        }
        self.filled |= bit;
        if self.pretty() {
            self.new_line();
        }
    }

    fn new_line(&mut self) {
        const TABS: [u8; DEPTH_MAX + 1] = *b"\n\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t";
        // The header ends its line itself.
        let from = usize::from(self.depth == 0);
        self.bytes(TABS.get(from..=self.depth.min(DEPTH_MAX)).unwrap_or_default());
    }

    fn open_brace(&mut self) {
        self.opened |= 1 << self.depth;
        self.bytes(if self.style == Style::Pretty { b" {" } else { b"{" });
    }

    #[inline]
    fn down(&mut self) {
        if self.depth >= DEPTH_MAX {
            self.failed = true;
            return;
        }
        self.depth += 1;
        self.opened &= !(1 << self.depth);
        self.filled &= !(1 << self.depth);
    }

    /// Ends a level.
    #[inline]
    pub fn end(&mut self) {
        let bit = 1 << self.depth;
        if self.depth == 0 {
            self.failed = true;
            return;
        }
        self.depth -= 1;
        if self.opened & bit != 0 {
            if self.pretty() && self.filled & bit != 0 {
                self.bytes(b"\n");
                for _ in 0..self.depth {
                    self.byte(b'\t');
                }
            }
            self.byte(b'}');
        }
        if self.depth == 0 && self.pretty() {
            self.byte(b'\n');
        }
    }

    /// The header: version 1..=3 and the sender.
    pub fn header(&mut self, version: u8, from: &MessageId<'_>) {
        self.token(Token::Megaco);
        self.byte(b'/');
        self.digits(u32::from(version));
        self.byte(b' ');
        self.message_id(from);
        self.byte(b'\n');
    }

    /// A message identifier.
    fn message_id(&mut self, id: &MessageId<'_>) {
        use std::io::Write as _;
        let mut text = [0; 48];
        let room = text.len();
        let mut rest = &mut text[..];
        let (written, port) = match id {
            MessageId::Ip4(address, port) => (write!(rest, "[{address}]"), *port),
            MessageId::Ip6(address, port) => (write!(rest, "[{address}]"), *port),
            MessageId::Domain(name, port) => {
                self.failed |=
                    MessageId::parse(name).is_none() && !name.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
                self.byte(b'<');
                self.bytes(name);
                self.byte(b'>');
                (Ok(()), *port)
            }
            MessageId::Mtp(digits) => {
                self.token(Token::Mtp);
                self.byte(b'{');
                self.word(digits);
                self.byte(b'}');
                (Ok(()), None)
            }
            MessageId::Device(name) => {
                self.word(name);
                (Ok(()), None)
            }
        };
        self.failed |= written.is_err();
        let length = room - rest.len();
        self.bytes(text.get(..length).unwrap_or_default());
        if let Some(port) = port {
            self.byte(b':');
            self.digits(u32::from(port));
        }
    }

    /// `token {`; braces also without items.
    pub fn begin_list(&mut self, token: Token) {
        self.begin(token);
        self.open_brace();
    }

    /// `token {`
    pub fn begin(&mut self, token: Token) {
        self.next_item();
        self.token(token);
        self.down();
    }

    /// `token = number {`
    pub fn begin_number(&mut self, token: Token, number: u32) {
        self.next_item();
        self.token(token);
        self.mark_sign(b'=');
        self.digits(number);
        self.down();
    }

    /// `Modem [kind, …] {`
    pub fn begin_modem<'k>(&mut self, kinds: impl Iterator<Item = &'k [u8]>) {
        self.next_item();
        self.token(Token::Modem);
        self.byte(b'[');
        for (number, kind) in kinds.enumerate() {
            if number > 0 {
                self.byte(b',');
            }
            self.word(kind);
        }
        self.byte(b']');
        self.down();
    }

    /// `name {`: an event or signal.
    pub fn begin_name(&mut self, name: PackagedName<'_>) {
        self.next_item();
        self.packaged(name);
        self.down();
    }

    /// `time:name {`: an event that was observed.
    pub fn begin_observed(&mut self, time: Option<&[u8]>, name: PackagedName<'_>) {
        self.next_item();
        if let Some(time) = time {
            self.word(time);
            self.byte(b':');
        }
        self.packaged(name);
        self.down();
    }

    fn packaged(&mut self, name: PackagedName<'_>) {
        self.word(name.package);
        self.byte(b'/');
        self.word(name.item);
    }

    /// A transaction request.
    pub fn request(&mut self, id: u32) {
        self.begin_number(Token::Transaction, id);
    }

    /// A reply; `immediate_ack` asks for an acknowledgement at once (PND-03).
    pub fn reply(&mut self, id: u32, immediate_ack: bool) {
        self.begin_number(Token::Reply, id);
        if immediate_ack {
            self.flag(Token::ImmAckRequired);
        }
    }

    /// A request is being worked on.
    pub fn pending(&mut self, id: u32) {
        self.begin_number(Token::Pending, id);
        self.open_brace();
        self.end();
    }

    /// Acknowledges replies: each a first and a last identifier. Nothing is written for none.
    pub fn acknowledge(&mut self, ranges: impl IntoIterator<Item = (u32, u32)>) {
        let mut ranges = ranges.into_iter().peekable();
        if ranges.peek().is_none() {
            return;
        }
        self.begin_list(Token::TransactionResponseAck);
        for (first, last) in ranges {
            self.next_item();
            self.digits(first);
            if last != first {
                self.byte(b'-');
                self.digits(last);
            }
        }
        self.end();
    }

    /// An action; what is in it follows.
    pub fn context(&mut self, context: ContextId) {
        match context {
            ContextId::Number(number) => self.begin_number(Token::Context, number),
            ContextId::Null => self.begin_word(Token::Context, b"-"),
            ContextId::Choose => self.begin_word(Token::Context, b"$"),
            ContextId::All => self.begin_word(Token::Context, b"*"),
        }
    }

    /// `token = word {`
    pub fn begin_word(&mut self, token: Token, word: &[u8]) {
        self.word_item(token, word);
        self.down();
    }

    /// A command or the reply to one; its descriptors follow.
    pub fn command(&mut self, verb: Verb, termination: TerminationId<'_>) {
        self.marked_command(verb, termination, false, false);
    }

    /// The same with `O-` and `W-` (TXT-16).
    pub fn marked_command(&mut self, verb: Verb, termination: TerminationId<'_>, optional: bool, wildcarded: bool) {
        self.next_item();
        if optional {
            self.bytes(b"O-");
        }
        if wildcarded {
            self.bytes(b"W-");
        }
        self.token(verb.token());
        self.mark_sign(b'=');
        self.word(termination.text());
        self.down();
    }

    /// A keyword alone.
    pub fn flag(&mut self, token: Token) {
        self.next_item();
        self.token(token);
    }

    /// A word alone, such as a termination in a list.
    pub fn name(&mut self, word: &[u8]) {
        self.next_item();
        self.word(word);
    }

    /// `token = word`
    pub fn word_item(&mut self, token: Token, word: &[u8]) {
        self.next_item();
        self.token(token);
        self.mark_sign(b'=');
        self.word(word);
    }

    /// `token = number`
    pub fn number_item(&mut self, token: Token, number: u32) {
        self.next_item();
        self.token(token);
        self.mark_sign(b'=');
        self.digits(number);
    }

    /// `token = value`, both keywords.
    pub fn token_item(&mut self, token: Token, value: Token) {
        self.next_item();
        self.token(token);
        self.mark_sign(b'=');
        self.token(value);
    }

    /// `token = message identifier`
    pub fn message_id_item(&mut self, token: Token, id: &MessageId<'_>) {
        self.next_item();
        self.token(token);
        self.mark_sign(b'=');
        self.message_id(id);
    }

    /// `token = { token, … }`
    pub fn token_set(&mut self, token: Token, values: impl IntoIterator<Item = Token>) {
        self.next_item();
        self.token(token);
        self.mark_sign(b'=');
        self.byte(b'{');
        for (number, value) in values.into_iter().enumerate() {
            if number > 0 {
                self.byte(b',');
            }
            self.token(value);
        }
        self.byte(b'}');
    }

    /// An error: code 0..=9999 and words (TXT-23).
    pub fn error(&mut self, code: u16, text: &[u8]) {
        self.begin_number(Token::Error, u32::from(code.min(9999)));
        self.open_brace();
        if !text.is_empty() {
            self.quoted(text);
        }
        self.end();
    }

    /// A quoted string; what may not stand in one becomes `'` or a blank.
    fn quoted(&mut self, text: &[u8]) {
        self.byte(b'"');
        self.quoted_text(text);
        self.byte(b'"');
    }

    fn quoted_text(&mut self, text: &[u8]) {
        for &byte in text {
            self.byte(match byte {
                b'"' => b'\'',
                b'\t' | b' '..=b'~' => byte,
                _ => b' ',
            });
        }
    }

    /// `token = "text"`
    pub fn quoted_item(&mut self, token: Token, text: &[u8]) {
        self.next_item();
        self.token(token);
        self.mark_sign(b'=');
        self.quoted(text);
    }

    /// `Reason = "code words"` (SC-02)
    pub fn reason(&mut self, code: u16, words: &[u8]) {
        self.next_item();
        self.token(Token::Reason);
        self.mark_sign(b'=');
        self.byte(b'"');
        self.digits(u32::from(code));
        if !words.is_empty() {
            self.byte(b' ');
            self.quoted_text(words);
        }
        self.byte(b'"');
    }

    fn value(&mut self, value: Value<'_>) {
        if value.quoted { self.quoted(value.text) } else { self.word(value.text) }
    }

    fn values(&mut self, open: u8, values: &Values<'_>, close: u8) {
        self.byte(open);
        for (number, value) in values.clone().enumerate() {
            if number > 0 {
                self.byte(b',');
            }
            self.value(value);
        }
        self.byte(close);
    }

    fn parameter_value(&mut self, value: &ParameterValue<'_>) {
        let sign = match value {
            ParameterValue::Greater(_) => b'>',
            ParameterValue::Less(_) => b'<',
            ParameterValue::Unequal(_) => b'#',
            _ => b'=',
        };
        self.mark_sign(sign);
        match value {
            ParameterValue::One(value) | ParameterValue::Greater(value) | ParameterValue::Less(value) | ParameterValue::Unequal(value) => {
                self.value(*value);
            }
            ParameterValue::All(values) => self.values(b'[', values, b']'),
            ParameterValue::Any(values) => self.values(b'{', values, b'}'),
            ParameterValue::Range(low, high) => {
                self.byte(b'[');
                self.value(*low);
                self.byte(b':');
                self.value(*high);
                self.byte(b']');
            }
        }
    }

    /// `package/item = value`
    pub fn property(&mut self, name: PackagedName<'_>, value: &ParameterValue<'_>) {
        self.next_item();
        self.packaged(name);
        self.parameter_value(value);
    }

    /// `name = value`
    pub fn parameter(&mut self, name: &[u8], value: &ParameterValue<'_>) {
        self.next_item();
        self.word(name);
        self.parameter_value(value);
    }

    /// `package/item` or `package/item = value`
    pub fn statistic(&mut self, name: PackagedName<'_>, value: Option<Value<'_>>) {
        self.next_item();
        self.packaged(name);
        if let Some(value) = value {
            self.mark_sign(b'=');
            self.value(value);
        }
    }

    /// `name-version` (TXT-20)
    pub fn package(&mut self, name: &[u8], version: u16) {
        self.next_item();
        self.word(name);
        self.byte(b'-');
        self.digits(u32::from(version));
    }

    /// `name/version` behind a keyword (SC-20)
    pub fn profile(&mut self, name: &[u8], version: u8) {
        self.next_item();
        self.token(Token::Profile);
        self.mark_sign(b'=');
        self.word(name);
        self.byte(b'/');
        self.digits(u32::from(version));
    }

    /// An Events descriptor; its events follow. Without a request it is empty and needs no [`Writer::end`] other than the usual one.
    pub fn events(&mut self, request: Option<RequestId>) {
        match request {
            None => self.begin(Token::Events),
            Some(RequestId::Number(number)) => self.begin_number(Token::Events, number),
            Some(RequestId::All) => self.begin_word(Token::Events, b"*"),
        }
    }

    /// Events that were observed follow.
    pub fn observed_events(&mut self, request: RequestId) {
        match request {
            RequestId::Number(number) => self.begin_number(Token::ObservedEvents, number),
            RequestId::All => self.begin_word(Token::ObservedEvents, b"*"),
        }
    }

    /// The digit map of an event.
    pub fn event_digit_map(&mut self, map: &EventDigitMap<'_>) {
        match map {
            EventDigitMap::Name(name) => self.word_item(Token::DigitMap, name),
            EventDigitMap::Value(map) => {
                self.next_item();
                self.token(Token::DigitMap);
                self.mark_sign(b'=');
                self.byte(b'{');
                self.digit_map_text(map);
                self.byte(b'}');
            }
        }
    }

    /// A digit map descriptor: a name, a map, or both; `deleted` for a name with nothing in its braces (DM-01).
    pub fn digit_map(&mut self, name: Option<&[u8]>, map: Option<&DigitMap<'_>>, deleted: bool) {
        self.next_item();
        self.token(Token::DigitMap);
        self.mark_sign(b'=');
        if let Some(name) = name {
            self.word(name);
        }
        if map.is_some() || deleted {
            self.byte(b'{');
            if let Some(map) = map {
                self.digit_map_text(map);
            }
            self.byte(b'}');
        }
    }

    fn digit_map_text(&mut self, map: &DigitMap<'_>) {
        for (letter, timer) in [(b'T', map.start), (b'S', map.short), (b'L', map.long)] {
            if let Some(seconds) = timer {
                self.byte(letter);
                self.byte(b':');
                self.digits(u32::from(seconds));
                self.byte(b',');
            }
        }
        self.byte(b'(');
        for &byte in map.as_bytes() {
            if !byte.is_ascii_whitespace() {
                self.byte(byte);
            }
        }
        self.byte(b')');
    }

    /// Local or Remote: session descriptions as they are, with `}` already written `\}`. A bare `}` fails.
    pub fn octets(&mut self, token: Token, text: &[u8]) {
        self.octets_with(token, |room| {
            room.get_mut(..text.len())?.copy_from_slice(text);
            Some(text.len())
        });
    }

    /// Local or Remote: `fill` writes the session descriptions into the room left and says how long they are; `None` when they do not fit.
    pub fn octets_with(&mut self, token: Token, fill: impl FnOnce(&mut [u8]) -> Option<usize>) {
        self.next_item();
        self.token(token);
        self.bytes(if self.style == Style::Pretty { b" {\n" } else { b"{\n" });
        let start = self.length;
        let filled = self.buffer.get_mut(start..).filter(|_| !self.failed).and_then(|room| {
            let length = fill(room)?;
            room.get(..length)
        });
        let Some(text) = filled else {
            self.failed = true;
            return;
        };
        let bare = text.iter().enumerate().any(|(at, &byte)| byte == 0 || (byte == b'}' && (at == 0 || text.get(at - 1) != Some(&b'\\'))));
        let ends = text.ends_with(b"\n") || text.is_empty();
        self.length += text.len();
        self.failed |= bare;
        self.bytes(if ends { b"}" } else { b"\n}" });
    }
}
