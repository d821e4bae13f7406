//! The one parser of event lists: a cursor that checks and hands out one event, action or parameter at a time.
//!
//! [`EventList::parse`] runs it once over everything; the iterators run it again over the parts they are asked for. Recursion is bounded by
//! [`EMBEDDED_MAX`] and [`NESTING_MAX`].

use super::{
    Action, ActionList, ActionSet, ConnectionRef, EMBEDDED_MAX, Embedded, Event, EventList, EventName, ListKind, NESTING_MAX, PackageRef,
    Parameter, ParameterList, ParameterValue,
};
use crate::proto::base::HexId;
use crate::proto::codec::mgcp::digit_map::{DigitMap, bracket_content};
use crate::proto::codec::mgcp::refusal::{Fault, Refusal};
use crate::proto::codec::scan;

/// A position in the text of a list. Every method stops at the first byte that does not fit.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    /// All of it was found good before.
    read_before: bool,
}

impl<'a> Cursor<'a> {
    /// At the start of `text`.
    pub(super) fn new(text: &'a [u8]) -> Cursor<'a> {
        Cursor { text, at: 0, read_before: false }
    }

    /// The same for text that was found good before: digit maps, which may be long, are not read again.
    pub(super) fn again(text: &'a [u8]) -> Cursor<'a> {
        Cursor { text, at: 0, read_before: true }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.peek().is_some_and(scan::is_blank) {
            self.at += 1;
        }
    }

    /// Steps over `byte` and the blanks before it, if it is the next one that is not blank.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn fail<T>(&self, fault: Fault) -> Result<T, Refusal> {
        Err(Refusal::new(fault, self.at))
    }

    fn take_while(&mut self, fits: impl Fn(u8) -> bool) -> &'a [u8] {
        let start = self.at;
        while self.peek().is_some_and(&fits) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// Letters, digits, hyphens; a plus only in the reserved beginning `x+`.
    fn word(&mut self) -> &'a [u8] {
        let start = self.at;
        if let Some([b'x' | b'X', b'+', ..]) = self.text.get(start..) {
            self.at += 2;
        }
        self.take_while(|b| b.is_ascii_alphanumeric() || b == b'-');
        &self.text[start..self.at]
    }

    /// Events up to the end, or up to and including `end`.
    pub(super) fn list(&mut self, kind: ListKind, depth: usize, end: Option<u8>) -> Result<(), Refusal> {
        self.skip_blanks();
        if self.at_end(end) {
            return Ok(());
        }
        loop {
            self.event(kind, depth)?;
            if self.eat(b',') {
                continue;
            }
            return if self.at_end(end) { Ok(()) } else { self.fail(Fault::EventMalformed) };
        }
    }

    fn at_end(&mut self, end: Option<u8>) -> bool {
        match end {
            Some(end) => self.eat(end),
            None => self.peek().is_none(),
        }
    }

    pub(super) fn event(&mut self, kind: ListKind, depth: usize) -> Result<Event<'a>, Refusal> {
        self.skip_blanks();
        let start = self.at;
        let (package, name) = self.qualified_name(kind)?;
        let connection = if self.peek() == Some(b'@') { Some(self.connection()?) } else { None };
        let mut end = self.at;
        let (mut actions, mut parameters) = (None, None);
        if kind == ListKind::Requested && self.eat(b'(') {
            actions = Some(self.actions(depth)?);
            end = self.at;
        }
        // In R, parameters need actions before them.
        if (kind != ListKind::Requested || actions.is_some()) && self.eat(b'(') {
            parameters = Some(self.parameters(0)?);
            end = self.at;
        }
        Ok(Event { raw: &self.text[start..end], package, name, connection, actions, parameters })
    }

    fn qualified_name(&mut self, kind: ListKind) -> Result<(PackageRef<'a>, EventName<'a>), Refusal> {
        let start = self.at;
        if self.peek() == Some(b'*') {
            // All packages before a slash, otherwise the key.
            self.at += 1;
            if self.peek() != Some(b'/') {
                return Ok((PackageRef::Default, EventName::Star));
            }
            self.at += 1;
            return Ok((PackageRef::All, self.name(kind)?));
        }
        let word = self.word();
        if self.peek() == Some(b'/') {
            if !scan::is_package_name(word) {
                self.at = start;
                return self.fail(Fault::EventMalformed);
            }
            self.at += 1;
            return Ok((PackageRef::Named(word), self.name(kind)?));
        }
        self.at = start;
        Ok((PackageRef::Default, self.name(kind)?))
    }

    fn name(&mut self, kind: ListKind) -> Result<EventName<'a>, Refusal> {
        match self.peek() {
            Some(b'*') => {
                self.at += 1;
                Ok(EventName::Star)
            }
            Some(b'#') => {
                self.at += 1;
                Ok(EventName::Hash)
            }
            Some(b'[') => self.range(kind),
            _ => {
                let word = self.word();
                if !scan::is_hyphenated(word) {
                    return self.fail(Fault::EventMalformed);
                }
                Ok(if word.eq_ignore_ascii_case(b"all") { EventName::All } else { EventName::Id(word) })
            }
        }
    }

    fn range(&mut self, kind: ListKind) -> Result<EventName<'a>, Refusal> {
        if !matches!(kind, ListKind::Requested | ListKind::Detected) {
            return self.fail(Fault::EventRange);
        }
        self.at += 1;
        let content = self.take_while(|b| b != b']');
        match bracket_content(content, true) {
            Some(symbols) if self.peek() == Some(b']') => {
                self.at += 1;
                Ok(EventName::Range { content, symbols })
            }
            _ => self.fail(Fault::EventMalformed),
        }
    }

    fn connection(&mut self) -> Result<ConnectionRef, Refusal> {
        self.at += 1;
        match self.peek() {
            Some(b'$') => {
                self.at += 1;
                Ok(ConnectionRef::Current)
            }
            Some(b'*') => {
                self.at += 1;
                Ok(ConnectionRef::All)
            }
            _ => match HexId::parse(self.take_while(|b| b.is_ascii_alphanumeric())) {
                Some(id) => Ok(ConnectionRef::Id(id)),
                None => self.fail(Fault::EventConnection),
            },
        }
    }

    /// Actions up to and including the closing parenthesis; the opening one is behind us.
    fn actions(&mut self, depth: usize) -> Result<ActionList<'a>, Refusal> {
        let start = self.at;
        let mut set = ActionSet::default();
        loop {
            self.skip_blanks();
            let at = self.at;
            let one = match self.action(depth)? {
                Action::Base(one) => one,
                Action::Embedded(_) => ActionSet::EMBEDDED,
                Action::Package { .. } => ActionSet::default(),
            };
            if one != ActionSet::default() && !set.add(one) {
                return Err(Refusal::new(Fault::ActionCombination, at));
            }
            if self.eat(b',') {
                continue;
            }
            let end = self.at;
            if self.eat(b')') {
                return Ok(ActionList { text: scan::trim(&self.text[start..end]), set, depth });
            }
            return self.fail(if self.peek().is_none() { Fault::EventMalformed } else { Fault::ActionUnknown });
        }
    }

    pub(super) fn action(&mut self, depth: usize) -> Result<Action<'a>, Refusal> {
        let start = self.at;
        let word = self.word();
        if self.peek() == Some(b'/') && scan::is_package_name(word) {
            self.at += 1;
            let name = self.take_while(|b| b.is_ascii_alphabetic());
            if name.is_empty() {
                return self.fail(Fault::ActionUnknown);
            }
            let parameters = if self.eat(b'(') { Some(self.parameters(0)?) } else { None };
            return Ok(Action::Package { package: word, name, parameters });
        }
        Ok(match word {
            [b'N' | b'n'] => Action::Base(ActionSet::NOTIFY),
            [b'A' | b'a'] => Action::Base(ActionSet::ACCUMULATE),
            [b'D' | b'd'] => Action::Base(ActionSet::DIGIT_MAP),
            [b'S' | b's'] => Action::Base(ActionSet::SWAP),
            [b'I' | b'i'] => Action::Base(ActionSet::IGNORE),
            [b'K' | b'k'] => Action::Base(ActionSet::KEEP_SIGNALS),
            [b'E' | b'e'] => Action::Embedded(self.embedded(depth)?),
            _ => {
                self.at = start;
                return self.fail(if self.peek().is_none() { Fault::EventMalformed } else { Fault::ActionUnknown });
            }
        })
    }

    fn embedded(&mut self, depth: usize) -> Result<Embedded<'a>, Refusal> {
        if depth >= EMBEDDED_MAX {
            return self.fail(Fault::EmbeddedDepth);
        }
        if !self.eat(b'(') {
            return self.fail(Fault::EmbeddedMalformed);
        }
        let mut embedded = Embedded { requested: None, signals: None, digit_map: None };
        loop {
            self.skip_blanks();
            let group = self.word();
            if !self.eat(b'(') {
                return self.fail(Fault::EmbeddedMalformed);
            }
            let repeated = match group {
                [b'R' | b'r'] => embedded.requested.replace(self.embedded_list(ListKind::Requested, depth + 1)?).is_some(),
                [b'S' | b's'] => embedded.signals.replace(self.embedded_list(ListKind::Signals, depth + 1)?).is_some(),
                [b'D' | b'd'] => embedded.digit_map.replace(self.embedded_map()?).is_some(),
                _ => true,
            };
            if repeated {
                return self.fail(Fault::EmbeddedMalformed);
            }
            if self.eat(b',') {
                continue;
            }
            return if self.eat(b')') { Ok(embedded) } else { self.fail(Fault::EmbeddedMalformed) };
        }
    }

    fn embedded_list(&mut self, kind: ListKind, depth: usize) -> Result<EventList<'a>, Refusal> {
        let start = self.at;
        self.list(kind, depth, Some(b')'))?;
        Ok(EventList { text: scan::trim(&self.text[start..self.at - 1]), kind, depth })
    }

    /// A digit map up to and including the parenthesis that closes it; brackets hold none.
    fn embedded_map(&mut self) -> Result<DigitMap<'a>, Refusal> {
        let start = self.at;
        if self.eat(b'(') {
            self.find_closing();
            self.eat(b')');
        }
        self.find_closing();
        let text = &self.text[start..self.at];
        let map = match self.read_before {
            true => DigitMap::read_before(text),
            false => DigitMap::parse(text).map_err(|refusal| refusal.behind(start))?,
        };
        if self.eat(b')') { Ok(map) } else { self.fail(Fault::EmbeddedMalformed) }
    }

    /// To the next closing parenthesis, or the end.
    fn find_closing(&mut self) {
        let rest = &self.text[self.at..];
        self.at += memchr::memchr(b')', rest).unwrap_or(rest.len());
    }

    /// Parameters up to and including the closing parenthesis; the opening one is behind us.
    fn parameters(&mut self, depth: usize) -> Result<ParameterList<'a>, Refusal> {
        let start = self.at;
        let mut end = start;
        if !self.eat(b')') {
            loop {
                self.parameter(depth)?;
                end = self.at;
                if self.eat(b',') {
                    continue;
                }
                if self.eat(b')') {
                    break;
                }
                return self.fail(Fault::EventParameters);
            }
        }
        Ok(ParameterList { text: scan::trim(&self.text[start..end]) })
    }

    /// Parameters up to the end of the text.
    pub(super) fn all_parameters(&mut self) -> Result<ParameterList<'a>, Refusal> {
        self.skip_blanks();
        while self.peek().is_some() {
            self.parameter(0)?;
            if self.eat(b',') {
                continue;
            }
            if self.peek().is_some() {
                return self.fail(Fault::EventParameters);
            }
        }
        Ok(ParameterList { text: scan::trim(self.text) })
    }

    pub(super) fn parameter(&mut self, depth: usize) -> Result<Parameter<'a>, Refusal> {
        if depth >= NESTING_MAX {
            return self.fail(Fault::NestingTooDeep);
        }
        self.skip_blanks();
        let start = self.at;
        if self.peek() == Some(b'"') {
            let Some(end) = scan::quoted_end(self.text, start) else {
                return self.fail(Fault::QuoteOpen);
            };
            self.at = end;
            return Ok(Parameter::Value(ParameterValue { content: &self.text[start + 1..end - 1], quoted: true }));
        }
        let name = self.take_while(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'(' | b')' | b',' | b'='));
        if name.is_empty() {
            return self.fail(Fault::EventParameters);
        }
        let end = self.at;
        if self.eat(b'=') {
            let from = self.at;
            self.parameter(depth + 1)?;
            let values = ParameterList { text: scan::trim(&self.text[from..self.at]) };
            return Ok(Parameter::Named { name, values });
        }
        if self.eat(b'(') {
            return Ok(Parameter::Named { name, values: self.parameters(depth + 1)? });
        }
        self.at = end;
        Ok(Parameter::Value(ParameterValue { content: name, quoted: false }))
    }
}
