//! Reading a description: one pass, lenient about what is missing and in which order it comes (field bugs O06, O14, O15).

use super::{Address, Encoding, static_encoding};
use crate::proto::base::HexId;
use crate::proto::codec::mgcp::{Domain, Fault, Refusal, ip4};
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

/// The audio medium of a description.
#[derive(Clone, Debug)]
pub struct Session<'a> {
    /// Where its media is received.
    pub address: Address<'a>,
    /// The RTP port, 0..=65535; 0 in the LOCAL form and for a medium that is not wanted.
    pub port: u16,
    /// Which way media may go.
    pub direction: Direction,
    /// `a=ptime` in ms.
    pub ptime_ms: Option<u16>,
    /// `a=maxptime` in ms.
    pub maxptime_ms: Option<u16>,
    /// `a=MGCPlocalcx`: the connection that the LOCAL form describes.
    pub local_connection: Option<HexId>,
    text: &'a [u8],
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

/// Where a line belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Session,
    Audio,
    OtherMedia,
}

/// What the pass over the lines collects.
struct Reader<'a> {
    text: &'a [u8],
    section: Section,
    session_connection: Option<&'a [u8]>,
    audio_connection: Option<&'a [u8]>,
    media: Option<&'a [u8]>,
    other_media: bool,
    session: Session<'a>,
    /// For each payload type the place behind its slot; 0: not announced.
    places: [u8; 128],
    local_transport: bool,
}

impl<'a> Session<'a> {
    /// Reads one description. A malformed one is refused 509, one we cannot serve 505 (G-LCO-18).
    pub fn parse(text: &'a [u8]) -> Result<Session<'a>, Refusal> {
        if text.len() > usize::from(u16::MAX) {
            return Err(Refusal::new(Fault::SdpLine, usize::from(u16::MAX)));
        }
        let session = Session {
            address: Address::Local(&[]),
            port: 0,
            direction: Direction::SendRecv,
            ptime_ms: None,
            maxptime_ms: None,
            local_connection: None,
            text,
            slots: [Slot::default(); FORMATS_MAX],
            count: 0,
        };
        let mut reader = Reader {
            text,
            section: Section::Session,
            session_connection: None,
            audio_connection: None,
            media: None,
            other_media: false,
            session,
            places: [0; 128],
            local_transport: false,
        };
        let mut lines = Lines::new(text);
        match lines.next().unwrap_or_default().strip_prefix(b"v=") {
            Some(b"0") => {}
            Some(version) if scan::decimal(version, 9).is_some() => return Err(Refusal::new(Fault::SdpVersion, 2)),
            _ => return Err(Refusal::new(Fault::SdpVersionMissing, 0)),
        }
        for line in lines {
            if line.is_empty() {
                break;
            }
            reader.line(line).map_err(|fault| Refusal::new(fault, scan::offset_in(text, line)))?;
        }
        reader.finish()
    }

    /// The payload types in the order of preference of who wrote the description.
    pub fn formats(&self) -> Formats<'_, 'a> {
        Formats { session: self, next: 0 }
    }

    /// The description as written.
    pub fn text(&self) -> &'a [u8] {
        self.text
    }
}

/// Iterator over the payload types of a description.
#[derive(Clone, Debug)]
pub struct Formats<'s, 'a> {
    session: &'s Session<'a>,
    next: usize,
}

impl<'a> Iterator for Formats<'_, 'a> {
    type Item = Format<'a>;

    #[inline]
    fn next(&mut self) -> Option<Format<'a>> {
        let slot = self.session.slots.get(..usize::from(self.session.count))?.get(self.next)?;
        self.next += 1;
        Some(Format {
            payload_type: slot.payload_type,
            encoding: match slot.encoding.of(self.session.text) {
                Some(text) => parse_encoding(text),
                None => static_encoding(slot.payload_type),
            },
            parameters: slot.parameters.of(self.session.text),
        })
    }
}

/// Whether a description is the lone `v=0` that stands for one that does not exist (RFC 3435 3.3.7).
pub fn is_absent(text: &[u8]) -> bool {
    scan::trim(text.trim_ascii_end()) == b"v=0"
}

impl<'a> Reader<'a> {
    #[inline]
    fn line(&mut self, line: &'a [u8]) -> Result<(), Fault> {
        let [letter @ b'a'..=b'z', b'=', value @ ..] = line else {
            return Err(Fault::SdpLine);
        };
        match (letter, self.section) {
            (b'm', _) => self.media(value),
            (b'c', Section::Session) => {
                self.session_connection = self.session_connection.or(Some(value));
                Ok(())
            }
            (b'c', Section::Audio) => {
                self.audio_connection = self.audio_connection.or(Some(value));
                Ok(())
            }
            (b'a', Section::Session | Section::Audio) => self.attribute(value),
            _ => Ok(()),
        }
    }

    /// The first audio medium counts; any other is passed over.
    fn media(&mut self, value: &'a [u8]) -> Result<(), Fault> {
        let (kind, rest) = scan::word(value);
        if kind != b"audio" || self.media.is_some() {
            self.other_media = true;
            self.section = Section::OtherMedia;
            return Ok(());
        }
        self.section = Section::Audio;
        self.media = Some(value);
        let (port, rest) = scan::word(rest);
        let (transport, formats) = scan::word(rest);
        // `port/count` announces further ports, which we do not use.
        let (port, count) = match port.iter().position(|&b| b == b'/') {
            Some(slash) => (&port[..slash], &port[slash + 1..]),
            None => (port, &b"1"[..]),
        };
        let number = scan::decimal(port, 5).and_then(|port| u16::try_from(port).ok());
        self.session.port = number.filter(|_| scan::decimal(count, 5).is_some()).ok_or(Fault::SdpMedia)?;
        self.local_transport = match transport {
            b"RTP/AVP" => false,
            b"LOCAL" => true,
            b"" => return Err(Fault::SdpMedia),
            _ => return Err(Fault::SdpTransport),
        };
        self.formats(formats)
    }

    fn formats(&mut self, mut rest: &'a [u8]) -> Result<(), Fault> {
        if rest.is_empty() {
            return Err(Fault::SdpMedia);
        }
        while !rest.is_empty() {
            let payload_type;
            (payload_type, rest) = payload_type_and_rest(rest).ok_or(Fault::SdpMedia)?;
            let place = self.places.get_mut(usize::from(payload_type)).ok_or(Fault::SdpMedia)?;
            if *place == 0
                && let Some(slot) = self.session.slots.get_mut(usize::from(self.session.count))
            {
                slot.payload_type = payload_type;
                self.session.count += 1;
                *place = self.session.count;
            }
        }
        Ok(())
    }

    #[inline]
    fn slot(&mut self, payload_type: u8) -> Option<&mut Slot> {
        let place = *self.places.get(usize::from(payload_type))?;
        self.session.slots.get_mut(usize::from(place).checked_sub(1)?)
    }

    fn attribute(&mut self, value: &'a [u8]) -> Result<(), Fault> {
        if let Some(argument) = value.strip_prefix(b"rtpmap:") {
            self.map(scan::trim_start(argument), true);
        } else if let Some(argument) = value.strip_prefix(b"fmtp:") {
            self.map(scan::trim_start(argument), false);
        } else if let Some(argument) = value.strip_prefix(b"ptime:") {
            self.session.ptime_ms = milliseconds(argument);
        } else if let Some(argument) = value.strip_prefix(b"maxptime:") {
            self.session.maxptime_ms = milliseconds(argument);
        } else if let Some(direction) = Direction::parse(value) {
            // What an attribute of the medium says comes later and wins over one of the session.
            self.session.direction = direction;
        } else if let Some((name, argument)) = value.split_at_checked(LOCAL_CONNECTION.len())
            && name.eq_ignore_ascii_case(LOCAL_CONNECTION)
        {
            self.session.local_connection = Some(HexId::parse(scan::trim(argument)).ok_or(Fault::SdpLocalConnection)?);
        }
        Ok(())
    }

    /// `payload-type text`; one for a payload type that was not announced is ignored.
    fn map(&mut self, argument: &[u8], encoding: bool) {
        let Some((payload_type, text)) = payload_type_and_rest(argument) else {
            return;
        };
        let span = Span::of_part(self.text, text);
        let Some(slot) = self.slot(payload_type) else {
            return;
        };
        if encoding {
            slot.encoding = span;
        } else {
            slot.parameters = span;
        }
    }

    fn finish(mut self) -> Result<Session<'a>, Refusal> {
        let Some(media) = self.media else {
            let fault = if self.other_media { Fault::SdpAudioMissing } else { Fault::SdpMediaMissing };
            return Err(Refusal::new(fault, self.text.len()));
        };
        let connection = self.audio_connection.or(self.session_connection);
        let connection = connection.ok_or(Refusal::new(Fault::SdpConnectionMissing, scan::offset_in(self.text, media)))?;
        let at = scan::offset_in(self.text, connection);
        self.session.address = parse_address(connection).map_err(|fault| Refusal::new(fault, at))?;
        // The LOCAL address and the LOCAL transport go together (G-SDP-05).
        if matches!(self.session.address, Address::Local(_)) != self.local_transport {
            return Err(Refusal::new(Fault::SdpConnection, at));
        }
        Ok(self.session)
    }
}

/// A payload type, 0..=127, at the start of `text`, and what follows it behind blanks.
#[inline]
fn payload_type_and_rest(text: &[u8]) -> Option<(u8, &[u8])> {
    let (number, rest) = scan::leading_decimal(text, 3).filter(|&(number, _)| number <= 127)?;
    let behind = scan::trim_start(rest);
    (rest.is_empty() || behind.len() < rest.len()).then_some((number as u8, behind))
}

/// The value of a `c=` line.
fn parse_address(value: &[u8]) -> Result<Address<'_>, Fault> {
    // By far the most frequent form.
    if let Some(ip) = value.strip_prefix(b"IN IP4 ").and_then(ip4) {
        return Ok(Address::Ip4(ip));
    }
    let (network, rest) = scan::word(value);
    let (kind, rest) = scan::word(rest);
    let (address, rest) = scan::word(rest);
    if address.is_empty() || !rest.is_empty() {
        return Err(Fault::SdpConnection);
    }
    if network == b"LOCAL" && kind == b"EPN" {
        return Ok(Address::Local(address));
    }
    if network != b"IN" || (kind != b"IP4" && kind != b"IP6") {
        return Err(Fault::SdpAddress);
    }
    let found = match kind {
        b"IP4" => ip4(address).map(Address::Ip4),
        _ => std::str::from_utf8(address).ok().and_then(|text| text.parse().ok()).map(Address::Ip6),
    };
    found.ok_or_else(|| match Domain::parse(address) {
        // A host name of letters would have to be looked up; a multicast address has a slash. Neither is malformed.
        Some(Domain::Name(name)) if name.iter().any(u8::is_ascii_alphabetic) => Fault::SdpAddress,
        _ if address.contains(&b'/') => Fault::SdpAddress,
        _ => Fault::SdpConnection,
    })
}

/// `name/clock[/channels]`.
fn parse_encoding(text: &[u8]) -> Option<Encoding<'_>> {
    let slash = text.iter().position(|&b| b == b'/' || !b.is_ascii_graphic()).filter(|&slash| slash > 0)?;
    let (name, rest) = text.split_at(slash);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn parse(text: &str) -> Result<Session<'_>, Fault> {
        Session::parse(text.as_bytes()).map_err(|refusal| refusal.fault)
    }

    fn with(lines: &str) -> String {
        format!("v=0\r\no=- 1 1 IN IP4 192.0.2.50\r\ns=-\r\nc=IN IP4 192.0.2.50\r\nt=0 0\r\n{lines}")
    }

    #[test]
    fn a_full_description() {
        // G-SDP-01, G-SDP-04
        let text = with(
            "b=AS:64\r\na=recvonly\r\nm=audio 40000 RTP/AVP 8 18 101 0\r\nk=clear:x\r\na=ptime:20\r\na=fmtp:18 annexb=no\r\n\
             a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=foo:bar\r\na=rtpmap:99 nonsense\r\na=sendrecv\r\n",
        );
        let session = parse(&text).unwrap();
        assert_eq!((session.address, session.port), (Address::Ip4(Ipv4Addr::new(192, 0, 2, 50)), 40000));
        assert_eq!((session.direction, session.ptime_ms), (Direction::SendRecv, Some(20)));
        let formats: Vec<Format<'_>> = session.formats().collect();
        assert_eq!(formats.iter().map(|f| f.payload_type).collect::<Vec<_>>(), [8, 18, 101, 0]);
        assert_eq!(formats[0].encoding, static_encoding(8));
        assert_eq!(formats[1].parameters, Some(&b"annexb=no"[..]));
        assert_eq!(formats[2].encoding, Some(Encoding { name: b"telephone-event", clock_rate: 8000, channels: 1 }));
    }

    #[test]
    fn the_medium_wins_over_the_session() {
        let session = |lines: &str| parse(&with(lines)).map(|session| (session.port, format!("{:?}", session.address), session.direction));
        let media = "m=image 1 udptl t38\nc=IN IP4 10.0.0.1\na=inactive\nm=audio 2 RTP/AVP 0\nc=IN IP6 2001:db8::1\na=sendonly\nm=audio 3 RTP/AVP 8\n";
        assert_eq!(
            session(media),
            Ok((2, format!("{:?}", Address::Ip6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))), Direction::SendOnly))
        );
    }

    #[test]
    fn little_is_enough() {
        // Field bug O15
        let session = parse("v=0\nc=IN IP4 192.0.2.50\nm=audio 40000/2 RTP/AVP 0").unwrap();
        assert_eq!((session.port, session.formats().count()), (40000, 1));
        assert!(parse("v=0\nm=audio 1 RTP/AVP 0\nc=IN IP4 192.0.2.50\n\nm=garbage").is_ok());
    }

    #[test]
    fn the_local_form() {
        // G-SDP-05
        let text = "v=0\r\no=- A7453949499 0 LOCAL EPN X35V3+A4/13\r\ns=-\r\nc=LOCAL EPN X35V3+A4/13\r\nt=0 0\r\na=mgcplocalcx:FDE234C8\r\nm=audio 0 LOCAL 0\r\n";
        let session = parse(text).unwrap();
        assert_eq!((session.address, session.port), (Address::Local(b"X35V3+A4/13"), 0));
        assert_eq!(session.local_connection, HexId::parse(b"fde234c8"));
        assert_eq!(parse("v=0\nc=LOCAL EPN a\nm=audio 0 RTP/AVP 0").unwrap_err(), Fault::SdpConnection);
        assert_eq!(parse("v=0\nc=IN IP4 1.1.1.1\nm=audio 0 LOCAL 0").unwrap_err(), Fault::SdpConnection);
    }

    #[test]
    fn what_is_wrong_is_told_apart() {
        // G-LCO-18, G-SDP-03, field bug O06
        for (lines, fault) in [
            ("m=audio 40000", Fault::SdpMedia),
            ("m=audio 70000 RTP/AVP 0", Fault::SdpMedia),
            ("m=audio x RTP/AVP 0", Fault::SdpMedia),
            ("m=audio 1 RTP/AVP", Fault::SdpMedia),
            ("m=audio 1 RTP/AVP 128", Fault::SdpMedia),
            ("m=audio 1 RTP/AVP PCMU", Fault::SdpMedia),
            ("m=audio 1 RTP/SAVP 0", Fault::SdpTransport),
            ("M=audio 1 RTP/AVP 0", Fault::SdpLine),
            ("nonsense", Fault::SdpLine),
            ("m=image 1 udptl t38", Fault::SdpAudioMissing),
            ("m=AUDIO 1 RTP/AVP 0", Fault::SdpAudioMissing),
            ("", Fault::SdpMediaMissing),
            ("a=MGCPlocalcx:xyz\nm=audio 1 RTP/AVP 0", Fault::SdpLocalConnection),
            ("m=audio 1 RTP/AVP 0\nc=IN IP4 gw.example.net", Fault::SdpAddress),
            ("m=audio 1 RTP/AVP 0\nc=IN IP4 224.2.1.1/127", Fault::SdpAddress),
            ("m=audio 1 RTP/AVP 0\nc=ATM NSAP 47.0091", Fault::SdpAddress),
            ("m=audio 1 RTP/AVP 0\nc=IN IP4 192.0.2.500", Fault::SdpConnection),
            ("m=audio 1 RTP/AVP 0\nc=IN IP4", Fault::SdpConnection),
        ] {
            assert_eq!(parse(&with(lines)).err(), Some(fault), "{lines}");
        }
        assert_eq!(parse("v=0\nm=audio 1 RTP/AVP 0").err(), Some(Fault::SdpConnectionMissing));
        assert_eq!(parse("v=1\n").err(), Some(Fault::SdpVersion));
        for none in ["", "V=0\n", "c=IN IP4 1.1.1.1\nv=0\n", "v=x"] {
            assert_eq!(parse(none).err(), Some(Fault::SdpVersionMissing));
        }
        let text = with("m=audio 40000");
        assert_eq!(Session::parse(text.as_bytes()).unwrap_err().offset, text.find("m=").unwrap());
    }

    #[test]
    fn payload_types_are_bounded() {
        let list = (0..128).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(parse(&with(&format!("m=audio 1 RTP/AVP {list} 0 0 0"))).unwrap().formats().count(), FORMATS_MAX);
        assert_eq!(parse(&with("m=audio 1 RTP/AVP 0 8 0 8")).unwrap().formats().count(), 2);
    }

    #[test]
    fn absence_is_a_lone_version() {
        assert!(is_absent(b"v=0\r\n") && is_absent(b"v=0") && !is_absent(b"v=0\r\ns=-\r\n") && !is_absent(b""));
    }
}
