//! Events: what to detect, what to hold, what was detected (7.1.9, 7.1.10, 7.1.17).

use super::super::fault::{Fault, Refusal};
use super::super::lex::{self, Assigned, Body, Item, Items};
use super::super::shape::Shape;
use super::super::token::Token;
use super::super::value::{PackagedName, Parameter};
use super::digit_map::DigitMap;
use super::signals::Signals;
use super::small::Parameters;

/// Which request an event answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestId {
    /// This one.
    Number(u32),
    /// `*`: in a reply to AuditCapability.
    All,
}

impl RequestId {
    fn parse(text: &[u8]) -> Option<RequestId> {
        if text == b"*" { Some(RequestId::All) } else { lex::uint32(text).map(RequestId::Number) }
    }
}

/// The Events descriptor; replaces what was there before (EVT-01).
#[derive(Clone, Debug)]
pub struct EventsDescriptor<'a> {
    /// Comes back in each Notify; none in an empty descriptor only.
    pub request: Option<RequestId>,
    /// What to detect; empty: nothing.
    pub events: Events<'a>,
}

impl<'a> EventsDescriptor<'a> {
    pub(super) fn of_item(item: &Item<'a>) -> Result<EventsDescriptor<'a>, Refusal> {
        if item.is_bare() {
            return Ok(EventsDescriptor { request: None, events: Events(None) });
        }
        let request = match item.value {
            // `Events { }`, which the grammar has not and the field has.
            Assigned::Nothing if item.body.is_some_and(|body| body.is_blank()) => None,
            Assigned::Nothing => return item.refuse(Fault::RequestIdMissing),
            _ => Some(
                item.word(Fault::Descriptor).ok().and_then(RequestId::parse).ok_or(Refusal::new(Fault::RequestIdMissing, item.offset))?,
            ),
        };
        Ok(EventsDescriptor { request, events: Events(item.body.filter(|body| !body.is_blank())) })
    }
}

/// A list of events to detect or to hold.
#[derive(Clone, Copy, Debug)]
pub struct Events<'a>(Option<Body<'a>>);

impl<'a> Events<'a> {
    /// The EventBuffer descriptor.
    pub(super) fn buffer(item: &Item<'a>) -> Result<Events<'a>, Refusal> {
        if item.is_bare() {
            Ok(Events(None))
        } else {
            item.block(Fault::Descriptor).map(|body| Events(Some(body).filter(|b| !b.is_blank())))
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The list as it is written, without the braces around it.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0.map_or(&[], |body| body.bytes().trim_ascii())
    }

    /// A list that was kept as [`Events::as_bytes`] gave it.
    pub fn kept(text: &'a [u8], shape: &'a mut Shape) -> Result<Events<'a>, Refusal> {
        let body = Body::of_message(text, shape.read(text)?, 0);
        Ok(Events(Some(body).filter(|body| !body.is_blank())))
    }

    /// Each event, in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<EventSpec<'a>, Refusal>> + use<'a> {
        let items = self.0.map(|body| body.items(Fault::Descriptor));
        items.into_iter().flatten().map(|item| EventSpec::of_item(&item?))
    }
}

/// How an event says which digit map collects for it (DM-04).
#[derive(Clone, Debug)]
pub enum EventDigitMap<'a> {
    /// One that was defined by this name.
    Name(&'a [u8]),
    /// This one.
    Value(DigitMap<'a>),
}

/// What takes the place of the descriptors when the event is recognised (EVT-06).
#[derive(Clone, Debug)]
pub struct Embedded<'a> {
    /// What to play then.
    pub signals: Option<Signals<'a>>,
    /// What to detect then.
    pub events: Option<EventsDescriptor<'a>>,
}

/// One event to detect or to hold.
#[derive(Clone, Debug)]
pub struct EventSpec<'a> {
    /// Which one; `package/*` for all of a package (EVT-02).
    pub name: PackagedName<'a>,
    /// Where it begins in the message.
    pub offset: usize,
    /// The stream it is tied to; 0 for none.
    pub stream: u16,
    /// Signals go on when it is recognised (EVT-05).
    pub keep_active: bool,
    /// The digit map that collects.
    pub digit_map: Option<EventDigitMap<'a>>,
    /// What comes then.
    pub embedded: Option<Embedded<'a>>,
    items: Option<Items<'a>>,
}

impl<'a> EventSpec<'a> {
    /// The parameters that have no keyword.
    pub fn parameters(&self) -> Parameters<'a> {
        Parameters(self.items.clone())
    }

    fn of_item(item: &Item<'a>) -> Result<EventSpec<'a>, Refusal> {
        let name = PackagedName::of_item(item)?;
        if item.relation.is_some() || item.time.is_some() || !matches!(item.value, Assigned::Nothing) {
            return item.refuse(Fault::Descriptor);
        }
        let items = item.body.map(|body| body.items(Fault::Descriptor));
        let mut event =
            EventSpec { name, offset: item.offset, stream: 0, keep_active: false, digit_map: None, embedded: None, items: items.clone() };
        let mut seen = 0u8;
        for part in items.into_iter().flatten() {
            let part = part?;
            match Token::parse(part.name) {
                Some(Token::Stream) => {
                    part.once(&mut seen, 1)?;
                    event.stream = stream(&part)?;
                }
                Some(Token::KeepActive) if part.is_bare() => {
                    part.once(&mut seen, 2)?;
                    event.keep_active = true;
                }
                Some(Token::DigitMap) => {
                    part.once(&mut seen, 4)?;
                    event.digit_map = Some(event_digit_map(&part)?);
                }
                Some(Token::Embed) => {
                    part.once(&mut seen, 8)?;
                    event.embedded = Some(embedded(&part)?);
                }
                _ => {
                    Parameter::of_item(&part)?;
                }
            }
        }
        if event.keep_active && event.embedded.as_ref().is_some_and(|embedded| embedded.signals.is_some()) {
            return item.refuse(Fault::KeepActiveWithSignals);
        }
        Ok(event)
    }
}

/// `Stream = number`
pub(super) fn stream(item: &Item<'_>) -> Result<u16, Refusal> {
    let value = item.word(Fault::Value)?;
    lex::uint16(value).filter(|_| item.body.is_none()).ok_or(Refusal::new(Fault::Value, item.offset))
}

fn event_digit_map<'a>(item: &Item<'a>) -> Result<EventDigitMap<'a>, Refusal> {
    match item.value {
        Assigned::Word(name) if item.body.is_none() && lex::is_name(name) => Ok(EventDigitMap::Name(name)),
        Assigned::Braces(body) => DigitMap::of_body(body).map(EventDigitMap::Value),
        _ => item.refuse(Fault::DigitMap),
    }
}

fn embedded<'a>(item: &Item<'a>) -> Result<Embedded<'a>, Refusal> {
    let mut embedded = Embedded { signals: None, events: None };
    for part in item.block(Fault::Descriptor)?.items(Fault::Descriptor) {
        let part = part?;
        match Token::parse(part.name) {
            Some(Token::Signals) if embedded.signals.is_none() && embedded.events.is_none() => {
                embedded.signals = Some(Signals::of_item(&part)?)
            }
            Some(Token::Events) if embedded.events.is_none() => embedded.events = Some(EventsDescriptor::of_item(&part)?),
            _ => return part.refuse(Fault::Descriptor),
        }
    }
    if embedded.signals.is_none() && embedded.events.is_none() { item.refuse(Fault::Descriptor) } else { Ok(embedded) }
}

/// The ObservedEvents descriptor (OE-01).
#[derive(Clone, Debug)]
pub struct ObservedEvents<'a> {
    /// Which request asked for them.
    pub request: RequestId,
    items: Items<'a>,
}

impl<'a> ObservedEvents<'a> {
    pub(super) fn of_item(item: &Item<'a>) -> Result<ObservedEvents<'a>, Refusal> {
        let malformed = Refusal::new(Fault::Descriptor, item.offset);
        let request = RequestId::parse(item.word(Fault::Descriptor)?).ok_or(Refusal::new(Fault::RequestIdMissing, item.offset))?;
        let body = item.body.filter(|body| !body.is_blank()).ok_or(malformed)?;
        Ok(ObservedEvents { request, items: body.items(Fault::Descriptor) })
    }

    /// Each event, in the order of detection.
    pub fn iter(&self) -> impl Iterator<Item = Result<ObservedEvent<'a>, Refusal>> + use<'a> {
        self.items.clone().map(|item| ObservedEvent::of_item(&item?))
    }
}

/// An event that was detected.
#[derive(Clone, Debug)]
pub struct ObservedEvent<'a> {
    /// When: `yyyymmddThhmmssss`, in hundredths of a second (TXT-19).
    pub time: Option<&'a [u8]>,
    /// Which one.
    pub name: PackagedName<'a>,
    /// The stream it is tied to; 0 for none.
    pub stream: u16,
    items: Option<Items<'a>>,
}

impl<'a> ObservedEvent<'a> {
    /// The parameters that have no keyword.
    pub fn parameters(&self) -> Parameters<'a> {
        Parameters(self.items.clone())
    }

    fn of_item(item: &Item<'a>) -> Result<ObservedEvent<'a>, Refusal> {
        let name = PackagedName::of_item(item)?;
        if item.relation.is_some() || item.time.is_some_and(|time| !is_time(time)) || !matches!(item.value, Assigned::Nothing) {
            return item.refuse(Fault::Descriptor);
        }
        let items = item.body.map(|body| body.items(Fault::Descriptor));
        let mut number = None;
        for part in items.clone().into_iter().flatten() {
            let part = part?;
            match Token::parse(part.name) {
                Some(Token::Stream) if number.is_none() => number = Some(stream(&part)?),
                Some(Token::Stream) => return part.refuse(Fault::ParameterRepeated),
                _ => {
                    Parameter::of_item(&part)?;
                }
            }
        }
        Ok(ObservedEvent { time: item.time, name, stream: number.unwrap_or(0), items })
    }
}

/// Eight digits, `T`, eight digits (TXT-19).
pub(super) fn is_time(text: &[u8]) -> bool {
    text.len() == 17
        && text.iter().enumerate().all(|(at, byte)| if at == 8 { byte.eq_ignore_ascii_case(&b'T') } else { byte.is_ascii_digit() })
}
