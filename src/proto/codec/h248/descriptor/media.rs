//! Media: state of the termination, streams, what is received and sent (7.1.4 to 7.1.8).

use super::super::fault::{Fault, Refusal};
use super::super::lex::{self, Body, Item, Items};
use super::super::token::Token;
use super::super::value::Property;

/// The stream that Local, Remote and LocalControl directly inside Media mean (MED-01).
pub const DEFAULT_STREAM: u16 = 1;

/// A Media descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Media<'a>(Body<'a>);

/// A part of a Media descriptor.
#[derive(Clone, Debug)]
pub enum MediaPart<'a> {
    /// Properties of the termination that no stream has.
    State(TerminationState<'a>),
    /// A stream by its number.
    Stream(Stream<'a>),
    /// A part of stream 1.
    One(StreamPart<'a>),
}

impl<'a> Media<'a> {
    pub(super) fn of_item(item: &Item<'a>) -> Result<Media<'a>, Refusal> {
        item.block(Fault::Descriptor).map(Media)
    }

    /// Its parts, in order.
    pub fn parts(&self) -> impl Iterator<Item = Result<MediaPart<'a>, Refusal>> + use<'a> {
        self.0.items(Fault::Descriptor).map(|item| {
            let item = item?;
            match Token::parse(item.name) {
                Some(Token::TerminationState) => item.block(Fault::Descriptor).map(TerminationState).map(MediaPart::State),
                Some(Token::Stream) => Stream::of_item(&item).map(MediaPart::Stream),
                _ => StreamPart::of_item(&item).map(MediaPart::One),
            }
        })
    }

    /// Whether nothing stands in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_blank()
    }

    /// Where its inside begins in the message.
    pub fn offset(&self) -> usize {
        self.0.offset()
    }
}

/// A stream of a termination.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'a> {
    /// Its number, the controller's (CTX-11).
    pub id: u16,
    body: Body<'a>,
}

impl<'a> Stream<'a> {
    fn of_item(item: &Item<'a>) -> Result<Stream<'a>, Refusal> {
        let malformed = Refusal::new(Fault::Descriptor, item.offset);
        let id = lex::uint16(item.word(Fault::Descriptor)?).ok_or(malformed)?;
        Ok(Stream { id, body: item.body.ok_or(malformed)? })
    }

    /// Its parts, in order.
    pub fn parts(&self) -> impl Iterator<Item = Result<StreamPart<'a>, Refusal>> + use<'a> {
        self.body.items(Fault::Descriptor).map(|item| StreamPart::of_item(&item?))
    }
}

/// A part of a stream.
#[derive(Clone, Debug)]
pub enum StreamPart<'a> {
    /// What is received (LR-01).
    Local(Octets<'a>),
    /// What is sent (LR-01).
    Remote(Octets<'a>),
    /// Mode and properties (7.1.7).
    Control(LocalControl<'a>),
}

impl<'a> StreamPart<'a> {
    fn of_item(item: &Item<'a>) -> Result<StreamPart<'a>, Refusal> {
        let body = || item.block(Fault::Descriptor);
        match Token::parse(item.name) {
            Some(Token::Local) => body().map(|body| StreamPart::Local(Octets(body))),
            Some(Token::Remote) => body().map(|body| StreamPart::Remote(Octets(body))),
            Some(Token::LocalControl) => body().map(|body| StreamPart::Control(LocalControl(body))),
            // Version 3 counts by stream.
            Some(Token::Statistics) => item.refuse(Fault::LaterVersion),
            _ => item.refuse(Fault::ParameterUnknown),
        }
    }
}

/// The octets of Local or Remote: session descriptions, `}` written `\}` (LR-11, TXT-12).
#[derive(Clone, Copy, Debug)]
pub struct Octets<'a>(Body<'a>);

impl<'a> Octets<'a> {
    /// The text as it stands between the braces.
    pub fn raw(&self) -> &'a [u8] {
        self.0.bytes()
    }

    /// Where it begins in the message.
    pub fn offset(&self) -> usize {
        self.0.offset()
    }

    /// Whether it is empty: the resources of this direction are given back (LR-02).
    pub fn is_empty(&self) -> bool {
        self.raw().trim_ascii().is_empty()
    }

    /// Each session description, the alternatives in order of preference (LR-04, LR-07). Each begins with its `v=` line; the first
    /// may lack it.
    pub fn descriptions(&self) -> SessionTexts<'a> {
        SessionTexts { rest: self.raw().trim_ascii_start() }
    }
}

/// Iterator over session descriptions that stand behind each other. A `\}` in them is still escaped.
#[derive(Clone, Debug)]
pub struct SessionTexts<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for SessionTexts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let mut from = 0;
        let end = loop {
            // Lines end in CR, LF or both (TXT-13).
            let Some(line_end) = self.rest.get(from..).and_then(|rest| memchr::memchr2(b'\r', b'\n', rest)) else {
                break self.rest.len();
            };
            from += line_end + 1;
            if self.rest.get(from..).is_some_and(|line| line.starts_with(b"v=")) {
                break from;
            }
        };
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(text.trim_ascii_end())
    }
}

/// What a stream does with media, seen from outside the context (LC-01).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StreamMode {
    /// Media goes out only.
    SendOnly,
    /// Media comes in only.
    ReceiveOnly,
    /// Both.
    SendReceive,
    /// Neither.
    #[default]
    Inactive,
    /// What comes in goes back.
    Loopback,
}

impl StreamMode {
    /// Its keyword.
    pub const fn token(self) -> Token {
        match self {
            StreamMode::SendOnly => Token::SendOnly,
            StreamMode::ReceiveOnly => Token::ReceiveOnly,
            StreamMode::SendReceive => Token::SendReceive,
            StreamMode::Inactive => Token::Inactive,
            StreamMode::Loopback => Token::Loopback,
        }
    }

    fn parse(word: &[u8]) -> Option<StreamMode> {
        Some(match Token::parse(word)? {
            Token::SendOnly => StreamMode::SendOnly,
            Token::ReceiveOnly => StreamMode::ReceiveOnly,
            Token::SendReceive => StreamMode::SendReceive,
            Token::Inactive => StreamMode::Inactive,
            Token::Loopback => StreamMode::Loopback,
            _ => return None,
        })
    }
}

/// Mode and properties of a stream; replaces what was there before (LC-07).
#[derive(Clone, Copy, Debug)]
pub struct LocalControl<'a>(Body<'a>);

/// A part of it.
#[derive(Clone, Debug)]
pub enum LocalParameter<'a> {
    /// The mode.
    Mode(StreamMode),
    /// Resources for every value that is possible (LC-03).
    ReserveValue(bool),
    /// Resources for every group that is possible (LC-03).
    ReserveGroup(bool),
    /// A property of a package.
    Property(Property<'a>),
}

impl<'a> LocalControl<'a> {
    /// Its parts, in order.
    pub fn parameters(&self) -> impl Iterator<Item = Result<LocalParameter<'a>, Refusal>> + use<'a> {
        self.0.items(Fault::Descriptor).map(|item| {
            let item = item?;
            if item.name.contains(&b'/') {
                return Property::of_item(&item).map(LocalParameter::Property);
            }
            let value = item.word(Fault::Value)?;
            match Token::parse(item.name).filter(|_| item.body.is_none()) {
                Some(Token::Mode) => StreamMode::parse(value).map(LocalParameter::Mode).ok_or(Refusal::new(Fault::Mode, item.offset)),
                Some(Token::ReservedValue) => flag(&item, value).map(LocalParameter::ReserveValue),
                Some(Token::ReservedGroup) => flag(&item, value).map(LocalParameter::ReserveGroup),
                _ => item.refuse(Fault::ParameterUnknown),
            }
        })
    }
}

fn flag(item: &Item<'_>, value: &[u8]) -> Result<bool, Refusal> {
    match Token::parse(value) {
        Some(Token::On) => Ok(true),
        Some(Token::Off) => Ok(false),
        _ => item.refuse(Fault::Value),
    }
}

/// What a termination is there for (TS-01).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ServiceState {
    /// It is being tested.
    Test,
    /// It carries nothing.
    OutOfService,
    /// It may carry calls.
    #[default]
    InService,
}

impl ServiceState {
    /// Its keyword.
    pub const fn token(self) -> Token {
        match self {
            ServiceState::Test => Token::Test,
            ServiceState::OutOfService => Token::OutOfService,
            ServiceState::InService => Token::InService,
        }
    }
}

/// Properties of a termination that no stream has (7.1.5).
#[derive(Clone, Copy, Debug)]
pub struct TerminationState<'a>(Body<'a>);

/// A part of it.
#[derive(Clone, Debug)]
pub enum TerminationStateParameter<'a> {
    /// What it is there for.
    Service(ServiceState),
    /// EventBufferControl: whether events wait for the controller (TS-02).
    LockStep(bool),
    /// A property of a package.
    Property(Property<'a>),
}

impl<'a> TerminationState<'a> {
    /// Its parts, in order.
    pub fn parameters(&self) -> impl Iterator<Item = Result<TerminationStateParameter<'a>, Refusal>> + use<'a> {
        let items: Items<'a> = self.0.items(Fault::Descriptor);
        items.map(|item| {
            let item = item?;
            if item.name.contains(&b'/') {
                return Property::of_item(&item).map(TerminationStateParameter::Property);
            }
            let value = Token::parse(item.word(Fault::Value)?);
            match (Token::parse(item.name).filter(|_| item.body.is_none()), value) {
                (Some(Token::ServiceStates), Some(Token::Test)) => Ok(TerminationStateParameter::Service(ServiceState::Test)),
                (Some(Token::ServiceStates), Some(Token::OutOfService)) => {
                    Ok(TerminationStateParameter::Service(ServiceState::OutOfService))
                }
                (Some(Token::ServiceStates), Some(Token::InService)) => Ok(TerminationStateParameter::Service(ServiceState::InService)),
                (Some(Token::Buffer), Some(Token::LockStep)) => Ok(TerminationStateParameter::LockStep(true)),
                (Some(Token::Buffer), Some(Token::Off)) => Ok(TerminationStateParameter::LockStep(false)),
                (Some(Token::ServiceStates | Token::Buffer), _) => item.refuse(Fault::Value),
                _ => item.refuse(Fault::ParameterUnknown),
            }
        })
    }
}
