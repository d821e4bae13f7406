//! Event and signal lists: R, S, T, O, ES and B/PR (RFC 3435 3.2.2.4, 3.2.2.16, 3.2.2.21, appendix A; G-EVT-01 to G-EVT-05, -12).
//!
//! [`EventList::parse`] checks a whole list once, actions, embedded requests and parameters included; the iterators then hand out its
//! parts, borrowed. Syntax only: whether a package, an event or a parameter exists is the package registry's business (G-EVT-14).
//!
//! In R and B/PR the first parenthesis is the list of actions; in the others it holds the parameters (G-REQ-16, G-EVT-15).

use super::digit_map::{DigitMap, SymbolSet, bracket_content};
use super::refusal::{Fault, Refusal};
use crate::proto::base::HexId;
use crate::proto::codec::scan;

/// How deep the parameters of an event may nest: parentheses and `=` together (G-SYN-13).
pub const NESTING_MAX: usize = 8;

/// How deep embedded requests may nest: one inside a request, none inside that (G-REQ-12).
pub const EMBEDDED_MAX: usize = 1;

/// Which list it is; it decides what an event may be followed by and whether ranges are allowed (G-EVT-04).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListKind {
    /// `R:` and `B/PR:`: actions, parameters, ranges.
    Requested,
    /// `S:`: parameters.
    Signals,
    /// `T:`: parameters, ranges.
    Detected,
    /// `O:`: parameters.
    Observed,
    /// `ES:`: parameters.
    States,
}

/// A well-formed list; empty when it names nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventList<'a> {
    text: &'a [u8],
    kind: ListKind,
    depth: usize,
}

/// The package an event name is qualified with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PackageRef<'a> {
    /// None: the default package of the endpoint, or a base name.
    Default,
    /// `*`: every package.
    All,
    /// This one.
    Named(&'a [u8]),
}

/// The name of an event inside its package.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventName<'a> {
    /// A name; one-character names are digit events (G-EVT-02).
    Id(&'a [u8]),
    /// `all`: every event of the package.
    All,
    /// `*` as a key of a telephone.
    Star,
    /// `#` as a key of a telephone.
    Hash,
    /// `[…]`: several digit events.
    Range {
        /// What the brackets hold, as written.
        content: &'a [u8],
        /// The events.
        symbols: SymbolSet,
    },
}

/// The connection an event name is bound to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionRef {
    /// `@$`: the connection of the command that holds the list.
    Current,
    /// `@*`: all present and future connections.
    All,
    /// `@id`.
    Id(HexId),
}

/// One event or signal of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event<'a> {
    /// The event as written, with all that belongs to it.
    pub raw: &'a [u8],
    /// Its package.
    pub package: PackageRef<'a>,
    /// Its name.
    pub name: EventName<'a>,
    /// Its connection.
    pub connection: Option<ConnectionRef>,
    /// Its actions; `None` means Notify (G-REQ-03). Always `None` outside R and B/PR.
    pub actions: Option<ActionList<'a>>,
    /// Its parameters; `None` when there are no parentheses for them.
    pub parameters: Option<ParameterList<'a>>,
}

impl<'a> EventList<'a> {
    /// Reads and checks the value of a list parameter.
    pub fn parse(text: &'a [u8], kind: ListKind) -> Result<EventList<'a>, Refusal> {
        let mut cursor = Cursor { text, at: 0 };
        cursor.list(kind, 0, None)?;
        Ok(EventList { text: scan::trim(text), kind, depth: 0 })
    }

    /// The events in order.
    pub fn iter(&self) -> Events<'a> {
        Events { cursor: Cursor { text: self.text, at: 0 }, kind: self.kind, depth: self.depth }
    }

    /// Whether it names nothing.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The list as written.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.text
    }
}

/// Iterator over the events of a list.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    cursor: Cursor<'a>,
    kind: ListKind,
    depth: usize,
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        self.cursor.skip_blanks();
        self.cursor.peek()?;
        let event = self.cursor.event(self.kind, self.depth).ok()?;
        self.cursor.eat(b',');
        Some(event)
    }
}

/// The base actions of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ActionSet(u8);

impl ActionSet {
    /// `N`: notify at once.
    pub const NOTIFY: ActionSet = ActionSet(1);
    /// `A`: accumulate.
    pub const ACCUMULATE: ActionSet = ActionSet(2);
    /// `D`: accumulate by digit map.
    pub const DIGIT_MAP: ActionSet = ActionSet(4);
    /// `S`: swap audio.
    pub const SWAP: ActionSet = ActionSet(8);
    /// `I`: ignore.
    pub const IGNORE: ActionSet = ActionSet(16);
    /// `K`: keep signals active.
    pub const KEEP_SIGNALS: ActionSet = ActionSet(32);
    /// `E`: embedded request.
    pub const EMBEDDED: ActionSet = ActionSet(64);

    /// Whether all of `other` are members.
    pub const fn has(self, other: ActionSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// Adds `one`; false when it was a member or cannot be combined with one (table M-4; N with E needs loop mode, which the list
    /// does not know).
    fn add(&mut self, one: ActionSet) -> bool {
        const N: u8 = 1;
        const A: u8 = 2;
        const D: u8 = 4;
        const S: u8 = 8;
        const I: u8 = 16;
        const K: u8 = 32;
        const E: u8 = 64;
        let partners = match one.0 {
            N => S | K | E,
            A => S | K | E,
            D => K,
            S => N | A | I,
            I => S | K,
            K => N | A | D | E | I,
            _ => N | A | K,
        };
        let fits = self.0 & !partners == 0;
        self.0 |= one.0;
        fits
    }
}

/// One action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action<'a> {
    /// A base action other than E: a set of one.
    Base(ActionSet),
    /// `E(…)`.
    Embedded(Embedded<'a>),
    /// `package/action`.
    Package {
        /// The package.
        package: &'a [u8],
        /// The action.
        name: &'a [u8],
        /// What stands in parentheses behind it.
        parameters: Option<ParameterList<'a>>,
    },
}

/// The actions of an event; never empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActionList<'a> {
    text: &'a [u8],
    set: ActionSet,
    depth: usize,
}

impl<'a> ActionList<'a> {
    /// The base actions among them; they can be combined (table M-4).
    pub fn set(&self) -> ActionSet {
        self.set
    }

    /// The actions in order.
    pub fn iter(&self) -> impl Iterator<Item = Action<'a>> + use<'a> {
        let mut cursor = Cursor { text: self.text, at: 0 };
        let depth = self.depth;
        std::iter::from_fn(move || {
            cursor.skip_blanks();
            cursor.peek()?;
            let action = cursor.action(depth).ok()?;
            cursor.eat(b',');
            Some(action)
        })
    }

    /// The embedded request, if there is one.
    pub fn embedded(&self) -> Option<Embedded<'a>> {
        self.iter().find_map(|action| match action {
            Action::Embedded(embedded) => Some(embedded),
            _ => None,
        })
    }
}

/// An embedded request; an absent list counts as empty, an absent map keeps the present one (G-REQ-11).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Embedded<'a> {
    /// `R(…)`.
    pub requested: Option<EventList<'a>>,
    /// `S(…)`.
    pub signals: Option<EventList<'a>>,
    /// `D(…)`.
    pub digit_map: Option<DigitMap<'a>>,
}

/// The parameters of an event; may be empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParameterList<'a> {
    text: &'a [u8],
}

/// One parameter of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parameter<'a> {
    /// A value.
    Value(ParameterValue<'a>),
    /// `name=value` or `name(value,…)`, which mean the same; `a=b=c` nests.
    Named {
        /// The name.
        name: &'a [u8],
        /// What it is given.
        values: ParameterList<'a>,
    },
}

impl<'a> ParameterList<'a> {
    /// The parameters in order.
    pub fn iter(&self) -> impl Iterator<Item = Parameter<'a>> + use<'a> {
        let mut cursor = Cursor { text: self.text, at: 0 };
        std::iter::from_fn(move || {
            cursor.skip_blanks();
            cursor.peek()?;
            let parameter = cursor.parameter(0).ok()?;
            cursor.eat(b',');
            Some(parameter)
        })
    }

    /// The list as written.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.text
    }
}

/// A value, quoted or not; both spellings of one value are equal in meaning (G-SYN-07).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParameterValue<'a> {
    content: &'a [u8],
    quoted: bool,
}

impl<'a> ParameterValue<'a> {
    /// The bytes of the value: no quotes around it, doubled quotes as one.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + use<'a> {
        let (mut rest, quoted) = (self.content, self.quoted);
        std::iter::from_fn(move || {
            let (&byte, behind) = rest.split_first()?;
            rest = if quoted && byte == b'"' { behind.get(1..).unwrap_or_default() } else { behind };
            Some(byte)
        })
    }

    /// Whether the value is `text`, letter case ignored.
    pub fn is(&self, text: &[u8]) -> bool {
        self.bytes().map(|b| b.to_ascii_lowercase()).eq(text.iter().map(u8::to_ascii_lowercase))
    }

    /// The value as a decimal number of at most 9 digits.
    pub fn decimal(&self) -> Option<u32> {
        scan::decimal(self.content, 9)
    }
}

/// A position in the text of a list. Every method stops at the first byte that does not fit.
#[derive(Clone, Debug)]
struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(scan::is_blank) {
            self.at += 1;
        }
    }

    /// Steps over `byte` and the blanks before it, if it is the next one that is not blank.
    fn eat(&mut self, byte: u8) -> bool {
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
    fn list(&mut self, kind: ListKind, depth: usize, end: Option<u8>) -> Result<(), Refusal> {
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

    fn event(&mut self, kind: ListKind, depth: usize) -> Result<Event<'a>, Refusal> {
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

    fn action(&mut self, depth: usize) -> Result<Action<'a>, Refusal> {
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
            self.take_while(|b| b != b')');
            self.eat(b')');
        }
        self.take_while(|b| b != b')');
        let map = DigitMap::parse(&self.text[start..self.at]).map_err(|refusal| refusal.behind(start))?;
        if self.eat(b')') { Ok(map) } else { self.fail(Fault::EmbeddedMalformed) }
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

    fn parameter(&mut self, depth: usize) -> Result<Parameter<'a>, Refusal> {
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

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
