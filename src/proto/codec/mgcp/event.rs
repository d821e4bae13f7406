//! Event and signal lists: R, S, T, O, ES and B/PR (RFC 3435 3.2.2.4, 3.2.2.16, 3.2.2.21, appendix A; G-EVT-01 to G-EVT-05, -12).
//!
//! [`EventList::parse`] checks a whole list once, actions, embedded requests and parameters included; the iterators then hand out its
//! parts, borrowed. Syntax only: whether a package, an event or a parameter exists is the package registry's business (G-EVT-14).
//!
//! In R and B/PR the first parenthesis is the list of actions; in the others it holds the parameters (G-REQ-16, G-EVT-15).

mod cursor;

use self::cursor::Cursor;
use super::digit_map::{DigitMap, SymbolSet};
use super::refusal::Refusal;
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
        let mut cursor = Cursor::new(text);
        cursor.list(kind, 0, None)?;
        Ok(EventList { text: scan::trim(text), kind, depth: 0 })
    }

    /// A list that [`EventList::parse`] took before, without another look at its embedded lists and digit maps.
    pub fn accepted(text: &'a [u8], kind: ListKind) -> EventList<'a> {
        EventList { text: scan::trim(text), kind, depth: 0 }
    }

    /// The events in order.
    pub fn iter(&self) -> Events<'a> {
        Events { cursor: Cursor::again(self.text), kind: self.kind, depth: self.depth }
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
        let mut cursor = Cursor::again(self.text);
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
    /// Reads and checks what stands between the parentheses of an event.
    pub fn parse(text: &'a [u8]) -> Result<ParameterList<'a>, Refusal> {
        Cursor::new(text).all_parameters()
    }

    /// The parameters in order.
    pub fn iter(&self) -> impl Iterator<Item = Parameter<'a>> + use<'a> {
        let mut cursor = Cursor::new(self.text);
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

#[cfg(test)]
mod tests;
