//! Session descriptions of a controller, in which `$` and lists leave the choice to the gateway, and our own, which are complete
//! (RFC 3525 7.1.8; LR-03 to LR-07).

use super::error::{DESCRIPTION, Failure, MEDIA_TYPE};
use crate::proto::base::srtp::Crypto;
use crate::proto::codec::sdp::crypto;
use crate::proto::endpoint::{Encoding, Encodings, LocalMedia};
use std::io::Write as _;
use std::net::IpAddr;

/// Payload types in one description that are looked at.
const FORMATS: usize = 16;

/// One description of a controller: an alternative.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offer<'a> {
    /// The address; none for `$` or when it is missing.
    pub address: Option<IpAddr>,
    /// The port; none for `$`.
    pub port: Option<u16>,
    /// What is known of the formats, in its order.
    pub encodings: Encodings,
    /// Formats in all, those that are not known included.
    pub formats: u8,
    /// Any format will do: `$`, or no `m=` line.
    pub any: bool,
    /// `a=ptime`.
    pub period_ms: Option<u16>,
    /// Whether it is protected (RTP/SAVP); none for `$`.
    pub protected: Option<bool>,
    /// The first `a=crypto` that can be used, its key given or left open: what stands behind the colon.
    pub line: Option<&'a [u8]>,
}

impl<'a> Offer<'a> {
    /// Reads one description.
    pub fn read(text: &'a [u8]) -> Result<Offer<'a>, Failure> {
        let mut offer = Offer::default();
        let mut types = [None; FORMATS];
        let mut media = 0;
        for line in text.split(|byte| matches!(byte, b'\r' | b'\n')).map(<[u8]>::trim_ascii) {
            match line {
                [] | [b'v' | b'o' | b's' | b't' | b'i' | b'u' | b'e' | b'p' | b'b' | b'z' | b'k' | b'r', b'=', ..] => {}
                [b'c', b'=', value @ ..] => offer.address = connection(value)?,
                [b'm', b'=', value @ ..] if media == 0 => {
                    media = 1;
                    offer.media(value, &mut types)?;
                }
                [b'a', b'=', value @ ..] => offer.attribute(value, &mut types),
                // A second medium needs its own Stream (LR-04).
                _ => return Err(DESCRIPTION),
            }
        }
        offer.any |= media == 0;
        let known = types.iter().flatten().filter_map(|(_, encoding)| *encoding);
        offer.encodings = known.collect();
        Ok(offer)
    }

    /// `audio 49170 RTP/AVP 0 8`
    fn media(&mut self, value: &[u8], types: &mut [Option<(u8, Option<Encoding>)>; FORMATS]) -> Result<(), Failure> {
        let mut words = value.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let (Some(kind), Some(port), Some(transport)) = (words.next(), words.next(), words.next()) else { return Err(DESCRIPTION) };
        if !(kind == b"$" || kind.eq_ignore_ascii_case(b"audio")) {
            return Err(MEDIA_TYPE);
        }
        self.protected = match transport {
            b"$" => None,
            _ if transport.eq_ignore_ascii_case(b"RTP/AVP") => Some(false),
            _ if transport.eq_ignore_ascii_case(b"RTP/SAVP") => Some(true),
            _ => return Err(MEDIA_TYPE),
        };
        let port = port.split(|byte| *byte == b'/').next().unwrap_or_default();
        self.port = if port == b"$" { None } else { Some(number(port).ok_or(DESCRIPTION)?) };
        let mut places = types.iter_mut();
        for word in words {
            if word == b"$" {
                self.any = true;
                continue;
            }
            let payload: u8 = number(word).filter(|payload| *payload < 128).ok_or(DESCRIPTION)? as u8;
            self.formats = self.formats.saturating_add(1);
            if let Some(place) = places.next() {
                *place = Some((payload, Encoding::by_payload_type(payload)));
            }
        }
        self.any |= self.formats == 0;
        Ok(())
    }

    /// `ptime:20`, `rtpmap:96 G726-32/8000`; everything else is passed over.
    fn attribute(&mut self, value: &'a [u8], types: &mut [Option<(u8, Option<Encoding>)>; FORMATS]) {
        if let Some(period) = value.strip_prefix(b"ptime:") {
            self.period_ms = number(period.trim_ascii());
        } else if let Some(line) = value.strip_prefix(b"crypto:") {
            self.line = self.line.or(Some(line).filter(|line| crypto::read_open(line).is_some()));
        } else if let Some(map) = value.strip_prefix(b"rtpmap:") {
            let mut words = map.split(|byte| matches!(byte, b' ' | b'/')).filter(|word| !word.is_empty());
            let (Some(payload), Some(name)) = (words.next().and_then(number), words.next()) else { return };
            let encoding = Encoding::by_name(name);
            types.iter_mut().flatten().filter(|(known, _)| u16::from(*known) == payload).for_each(|(_, place)| *place = encoding);
        }
    }

    /// Its formats that are in `list`, in its own order.
    pub fn common(&self, list: &Encodings) -> Encodings {
        if self.any && self.encodings.is_empty() { *list } else { self.encodings.and(list) }
    }
}

fn number(text: &[u8]) -> Option<u16> {
    std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?.parse().ok()
}

/// `IN IP4 192.0.2.1`, `IN IP4 $`, `$`
fn connection(value: &[u8]) -> Result<Option<IpAddr>, Failure> {
    let text = std::str::from_utf8(value).map_err(|_| DESCRIPTION)?;
    let address = text.split_ascii_whitespace().last().ok_or(DESCRIPTION)?;
    if address == "$" {
        return Ok(None);
    }
    let address = address.split('/').next().unwrap_or_default();
    address.parse().map(Some).map_err(|_| DESCRIPTION)
}

/// Octets that [`write`] writes of so many encodings, at most.
pub const fn longest(encodings: usize) -> usize {
    190 + 38 * encodings + 96
}

/// Its lines, at most.
pub const fn most_lines(encodings: usize) -> usize {
    8 + encodings
}

/// Writes our description of `local` (LR-03): its length, or `None` when it does not fit.
pub fn write(room: &mut [u8], session: u32, local: &LocalMedia, crypto: Option<&Crypto>) -> Option<usize> {
    let whole = room.len();
    let mut rest = &mut room[..];
    let LocalMedia { address, port, encodings, period_ms, version, .. } = local;
    let family = if address.is_ipv4() { "IP4" } else { "IP6" };
    write!(rest, "v=0\r\no=- {session} {version} IN {family} {address}\r\ns=-\r\nc=IN {family} {address}\r\nt=0 0\r\n").ok()?;
    write!(rest, "m=audio {port} {}", if crypto.is_some() { "RTP/SAVP" } else { "RTP/AVP" }).ok()?;
    for encoding in encodings.iter() {
        write!(rest, " {}", encoding.payload_type()).ok()?;
    }
    write!(rest, "\r\na=ptime:{period_ms}\r\n").ok()?;
    for encoding in encodings.iter().filter(|encoding| encoding.facts().payload_type.is_none()) {
        let facts = encoding.facts();
        write!(rest, "a=rtpmap:{} {}/{}\r\n", encoding.payload_type(), facts.name, facts.clock).ok()?;
    }
    if let Some(Crypto { tag, suite, key, .. }) = crypto {
        let inline = crypto::inline(key);
        write!(rest, "a=crypto:{tag} {} inline:{}\r\n", suite.name(), std::str::from_utf8(&inline[..]).ok()?).ok()?;
    }
    Some(whole - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &Encodings) -> Vec<&'static str> {
        list.iter().map(|encoding| encoding.facts().name).collect()
    }

    #[test]
    fn what_a_controller_leaves_open_is_read_as_such() {
        // LR-03, PAR-01
        let offer = Offer::read(b"v=0\r\nc=IN IP4 $\r\nm=audio $ RTP/AVP 8 0 101\r\na=ptime:30\r\n").unwrap();
        assert_eq!((offer.address, offer.port, names(&offer.encodings), offer.formats), (None, None, vec!["PCMA", "PCMU"], 3));
        assert_eq!(offer.period_ms, Some(30));
        let offer = Offer::read(b"c=IN IP4 192.0.2.7\nm=audio 4000/2 RTP/AVP 96\na=rtpmap:96 G726-32/8000").unwrap();
        assert_eq!((offer.address, offer.port), (Some([192, 0, 2, 7].into()), Some(4000)));
        assert_eq!(names(&offer.encodings), ["G726-32"]);
        let all: Encodings = [&b"PCMU"[..], b"PCMA"].into_iter().filter_map(Encoding::by_name).collect();
        for open in ["m=audio $ RTP/AVP $", "v=0", "m=$ $ $ $"] {
            assert_eq!(Offer::read(open.as_bytes()).unwrap().common(&all), all, "{open}");
        }
        assert!(Offer::read(b"m=audio $ RTP/AVP 18").unwrap().common(&all).is_empty());
    }

    #[test]
    fn what_is_none_is_refused() {
        for (text, failure) in [
            ("m=audio 1 RTP/AVP 0\nm=audio 2 RTP/AVP 0", DESCRIPTION),
            ("m=video 1 RTP/AVP 31", MEDIA_TYPE),
            ("m=audio 1 UDP 0", MEDIA_TYPE),
            ("m=audio x RTP/AVP 0", DESCRIPTION),
            ("m=audio 65536 RTP/AVP 0", DESCRIPTION),
            ("m=audio 1 RTP/AVP 128", DESCRIPTION),
            ("m=audio", DESCRIPTION),
            ("c=IN IP4 nowhere", DESCRIPTION),
            ("nonsense", DESCRIPTION),
        ] {
            assert_eq!(Offer::read(text.as_bytes()), Err(failure), "{text}");
        }
    }

    #[test]
    fn ours_is_complete_and_is_read_back() {
        let encodings: Encodings = [&b"PCMA"[..], b"G726-32"].into_iter().filter_map(Encoding::by_name).collect();
        let local = LocalMedia { address: [192, 0, 2, 10].into(), port: 16_384, encodings, version: 3, ..LocalMedia::default() };
        let mut room = [0; 400];
        let length = write(&mut room, 7, &local, None).unwrap();
        let text = &room[..length];
        assert!(text.starts_with(b"v=0\r\no=- 7 3 IN IP4 192.0.2.10\r\ns=-\r\nc=IN IP4 192.0.2.10\r\nt=0 0\r\nm=audio 16384 RTP/AVP 8 "));
        assert!(crate::proto::codec::sdp::Session::parse(text).is_ok());
        let read = Offer::read(text).unwrap();
        assert_eq!((read.address, read.port, read.encodings), (Some(local.address), Some(16_384), encodings));
        assert_eq!(write(&mut room[..100], 7, &local, None), None);
    }
}
