//! What follows the port of an audio medium: its payload types and attributes. It says nothing about one call: who describes many
//! media writes the same over and over, so that a reader may remember what it meant.

use super::{Encoding, crypto, static_encoding};
use crate::proto::base::HexId;
use crate::proto::base::srtp::Crypto;
use crate::proto::codec::mgcp::{Fault, Refusal};
use crate::proto::codec::scan::{self, Lines};

/// The most payload types that are kept; further ones cannot be negotiated.
pub const FORMATS_MAX: usize = 16;

/// Which way media may go, seen from who wrote the description.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// Both ways; also when nothing is said.
    #[default]
    SendRecv,
    /// It sends only.
    SendOnly,
    /// It receives only.
    RecvOnly,
    /// Neither.
    Inactive,
}

impl Direction {
    /// Reads the attribute that is nothing but its name.
    fn parse(attribute: &[u8]) -> Option<Direction> {
        Some(match attribute {
            b"sendrecv" => Direction::SendRecv,
            b"sendonly" => Direction::SendOnly,
            b"recvonly" => Direction::RecvOnly,
            b"inactive" => Direction::Inactive,
            _ => return None,
        })
    }
}

/// The attribute of the LOCAL form; letter case does not matter in this one (RFC 3435 3.4.2).
const LOCAL_CONNECTION: &[u8] = b"MGCPlocalcx:";

/// The attributes that say something about the medium as a whole; what is absent was not given.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attributes {
    pub direction: Option<Direction>,
    pub ptime_ms: Option<u16>,
    pub maxptime_ms: Option<u16>,
    pub local_connection: Option<HexId>,
}

impl Attributes {
    /// Reads the value of an `a=` line; one that is not known says nothing.
    pub fn read(&mut self, value: &[u8]) -> Result<(), Fault> {
        if let Some(argument) = value.strip_prefix(b"ptime:") {
            self.ptime_ms = milliseconds(argument);
        } else if let Some(argument) = value.strip_prefix(b"maxptime:") {
            self.maxptime_ms = milliseconds(argument);
        } else if let Some(direction) = Direction::parse(value) {
            self.direction = Some(direction);
        } else if let Some((name, argument)) = value.split_at_checked(LOCAL_CONNECTION.len())
            && name.eq_ignore_ascii_case(LOCAL_CONNECTION)
        {
            self.local_connection = Some(HexId::parse(scan::trim(argument)).ok_or(Fault::SdpLocalConnection)?);
        }
        Ok(())
    }

    /// These where given, else those of `session`: what is said of the medium wins.
    pub fn over(&self, session: Attributes) -> Attributes {
        Attributes {
            direction: self.direction.or(session.direction),
            ptime_ms: self.ptime_ms.or(session.ptime_ms),
            maxptime_ms: self.maxptime_ms.or(session.maxptime_ms),
            local_connection: self.local_connection.or(session.local_connection),
        }
    }
}

/// A place in the text.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u16,
    end: u16,
}

impl Span {
    fn of_part(text: &[u8], part: &[u8]) -> Span {
        let start = scan::offset_in(text, part);
        Span { start: start as u16, end: (start + part.len()) as u16 }
    }

    /// The text of the place; `None` for an empty one.
    fn of(self, text: &[u8]) -> Option<&[u8]> {
        text.get(usize::from(self.start)..usize::from(self.end)).filter(|part| !part.is_empty())
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    payload_type: u8,
    encoding: Span,
    parameters: Span,
}

/// How media is carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Transport {
    /// `RTP/AVP`.
    Plain,
    /// `RTP/SAVP`.
    Protected,
    /// `LOCAL`: inside the gateway.
    Local,
}

/// Whether what follows the port of an audio medium is protected, and so has a key in it, which nobody remembers who need not.
pub fn is_protected(tail: &[u8]) -> bool {
    scan::trim_start(tail).starts_with(b"RTP/SAVP")
}

/// What follows the port of an audio medium, read. Its places are those in the text it was read from: the same text in another description
/// has the same meaning.
#[derive(Clone, Copy, Debug)]
pub struct Media {
    transport: Transport,
    connection: Option<Span>,
    attributes: Attributes,
    /// The first `a=crypto` that can be used.
    crypto: Span,
    slots: [Slot; FORMATS_MAX],
    count: u8,
}

/// A payload type of the audio medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format<'a> {
    /// 0..=127.
    pub payload_type: u8,
    /// Its `a=rtpmap`, or else its static meaning; `None` for a dynamic type without one and for a malformed one.
    pub encoding: Option<Encoding<'a>>,
    /// Its `a=fmtp`.
    pub parameters: Option<&'a [u8]>,
}

impl Media {
    /// Reads what follows the port, up to the end of the description. What is wrong in the first line is refused at 0.
    pub fn parse(tail: &[u8]) -> Result<Media, Refusal> {
        let mut lines = Lines::new(tail);
        // For each payload type the place behind its slot; 0: not announced.
        let mut places = [0; 128];
        let (transport, formats) = scan::word(lines.next().unwrap_or_default());
        let transport = match transport {
            b"RTP/AVP" => Transport::Plain,
            b"RTP/SAVP" => Transport::Protected,
            b"LOCAL" => Transport::Local,
            b"" => return Err(Refusal::new(Fault::SdpMedia, 0)),
            _ => return Err(Refusal::new(Fault::SdpTransport, 0)),
        };
        let (attributes, slots) = (Attributes::default(), [Slot::default(); FORMATS_MAX]);
        let mut media = Media { transport, connection: None, attributes, crypto: Span::default(), slots, count: 0 };
        media.read_formats(formats, &mut places).ok_or(Refusal::new(Fault::SdpMedia, 0))?;
        let mut ours = true;
        for line in lines.take_while(|line| !line.is_empty()) {
            let refuse = |fault| Refusal::new(fault, scan::offset_in(tail, line));
            match line {
                // No other medium is looked at.
                [b'm', b'=', ..] => ours = false,
                [b'c', b'=', value @ ..] if ours => media.connection = media.connection.or(Some(Span::of_part(tail, value))),
                [b'a', b'=', value @ ..] if ours => media.attribute(tail, value, &places).map_err(refuse)?,
                [b'a'..=b'z', b'=', ..] => {}
                _ => return Err(refuse(Fault::SdpLine)),
            }
        }
        if media.is_protected() && media.crypto.of(tail).is_none() {
            return Err(Refusal::new(Fault::SdpCrypto, 0));
        }
        Ok(media)
    }

    /// Whether its transport is RTP/SAVP; then it has a [`Media::crypto`].
    pub fn is_protected(&self) -> bool {
        self.transport == Transport::Protected
    }

    /// What protects what comes from who wrote it: the first `a=crypto` that can be used; `tail` is what it was read from.
    pub fn crypto(&self, tail: &[u8]) -> Option<Crypto> {
        crypto::read(self.crypto.of(tail)?)
    }

    /// Whether its transport is LOCAL.
    pub(super) fn is_local(&self) -> bool {
        self.transport == Transport::Local
    }

    /// The value of its own `c=`; `tail` is what it was read from.
    pub(super) fn connection<'a>(&self, tail: &'a [u8]) -> Option<&'a [u8]> {
        self.connection.map(|place| place.of(tail).unwrap_or_default())
    }

    pub(super) fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Its payload types in the order of preference of who wrote them; `tail` is what it was read from.
    pub fn formats<'m, 'a>(&'m self, tail: &'a [u8]) -> Formats<'m, 'a> {
        Formats { slots: self.slots.get(..usize::from(self.count)).unwrap_or_default().iter(), tail }
    }

    /// Notes payload types; `None` when there is none, or what is none.
    fn read_formats(&mut self, mut rest: &[u8], places: &mut [u8; 128]) -> Option<()> {
        if rest.is_empty() {
            return None;
        }
        while !rest.is_empty() {
            let payload_type;
            (payload_type, rest) = payload_type_and_rest(rest)?;
            let place = places.get_mut(usize::from(payload_type))?;
            if *place == 0
                && let Some(slot) = self.slots.get_mut(usize::from(self.count))
            {
                slot.payload_type = payload_type;
                self.count += 1;
                *place = self.count;
            }
        }
        Some(())
    }

    fn attribute(&mut self, tail: &[u8], value: &[u8], places: &[u8; 128]) -> Result<(), Fault> {
        if self.is_protected()
            && let Some(crypto) = value.strip_prefix(b"crypto:")
        {
            if self.crypto.of(tail).is_none() && crypto::read(crypto).is_some() {
                self.crypto = Span::of_part(tail, crypto);
            }
            return Ok(());
        }
        let (argument, is_encoding) = match (value.strip_prefix(b"rtpmap:"), value.strip_prefix(b"fmtp:")) {
            (Some(argument), _) => (argument, true),
            (_, Some(argument)) => (argument, false),
            _ => return self.attributes.read(value),
        };
        // One for a payload type that was not announced is ignored.
        let named = payload_type_and_rest(scan::trim_start(argument));
        if let Some((payload_type, text)) = named
            && let Some(place) = places.get(usize::from(payload_type)).and_then(|&place| usize::from(place).checked_sub(1))
            && let Some(slot) = self.slots.get_mut(place)
        {
            let span = if is_encoding { &mut slot.encoding } else { &mut slot.parameters };
            *span = Span::of_part(tail, text);
        }
        Ok(())
    }
}

/// Iterator over payload types.
#[derive(Clone, Debug)]
pub struct Formats<'m, 'a> {
    slots: std::slice::Iter<'m, Slot>,
    tail: &'a [u8],
}

impl<'a> Iterator for Formats<'_, 'a> {
    type Item = Format<'a>;

    fn next(&mut self) -> Option<Format<'a>> {
        let slot = self.slots.next()?;
        let encoding = match slot.encoding.of(self.tail) {
            Some(text) => parse_encoding(text),
            None => static_encoding(slot.payload_type),
        };
        Some(Format { payload_type: slot.payload_type, encoding, parameters: slot.parameters.of(self.tail) })
    }
}

/// A payload type, 0..=127, at the start of `text`, and what follows it behind blanks.
#[inline]
fn payload_type_and_rest(text: &[u8]) -> Option<(u8, &[u8])> {
    let (number, rest) = scan::leading_decimal(text, 3).filter(|&(number, _)| number <= 127)?;
    let behind = scan::trim_start(rest);
    (rest.is_empty() || behind.len() < rest.len()).then_some((number as u8, behind))
}

/// `name/clock[/channels]`.
fn parse_encoding(text: &[u8]) -> Option<Encoding<'_>> {
    let (name, rest) = text.split_at(scan::find_near(text, b'/').filter(|&slash| slash > 0)?);
    if !name.iter().fold(true, |graphic, b| graphic & b.is_ascii_graphic()) {
        return None;
    }
    // By far the most frequent clock.
    if rest == b"/8000" {
        return Some(Encoding { name, clock_rate: 8000, channels: 1 });
    }
    let (clock_rate, rest) = scan::leading_decimal(rest.strip_prefix(b"/")?, 9).filter(|&(rate, _)| rate > 0)?;
    let channels = match rest {
        [] => 1,
        [b'/', channels @ ..] => u8::try_from(scan::decimal(channels, 3)?).ok().filter(|&n| n > 0)?,
        _ => return None,
    };
    Some(Encoding { name, clock_rate, channels })
}

/// Whole milliseconds; a fraction is cut off, anything else ignored.
fn milliseconds(text: &[u8]) -> Option<u16> {
    let whole = text.split(|&b| b == b'.').next()?;
    scan::decimal(scan::trim(whole), 5).and_then(|ms| u16::try_from(ms).ok()).filter(|&ms| ms > 0)
}
