//! Reading a description: one pass, lenient about what is missing and in which order it comes (field bugs O06, O14, O15).

use super::media::Attributes;
use super::{Address, Direction, Formats, Media};
use crate::proto::base::HexId;
use crate::proto::codec::mgcp::{Domain, Fault, Refusal, ip4};
use crate::proto::codec::scan::{self, Lines};

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
    tail: &'a [u8],
    media: Media,
}

impl<'a> Session<'a> {
    /// Reads one description. A malformed one is refused 509, one we cannot serve 505 (G-LCO-18).
    pub fn parse(text: &'a [u8]) -> Result<Session<'a>, Refusal> {
        let head = Head::parse(text)?;
        let media = Media::parse(head.tail()).map_err(|refusal| match refusal.offset {
            0 => Refusal::new(refusal.fault, head.media_at),
            _ => refusal.behind(scan::offset_in(text, head.tail)),
        })?;
        let address = head.address(&media)?;
        let Attributes { direction, ptime_ms, maxptime_ms, local_connection } = media.attributes().over(head.attributes);
        let direction = direction.unwrap_or_default();
        Ok(Session { address, port: head.port, direction, ptime_ms, maxptime_ms, local_connection, text, tail: head.tail, media })
    }

    /// The payload types in the order of preference of who wrote the description.
    pub fn formats(&self) -> Formats<'_, 'a> {
        self.media.formats(self.tail)
    }

    /// The description as written.
    pub fn text(&self) -> &'a [u8] {
        self.text
    }
}

/// Whether a description is the lone `v=0` that stands for one that does not exist (RFC 3435 3.3.7).
pub fn is_absent(text: &[u8]) -> bool {
    scan::trim(text.trim_ascii_end()) == b"v=0"
}

/// A description up to the port of its audio medium, for those who know what the rest meant before; [`Session`] is all of it.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    text: &'a [u8],
    /// The value of the `c=` of the session.
    connection: Option<&'a [u8]>,
    /// Of the session.
    attributes: Attributes,
    /// Where the line of the medium starts.
    media_at: usize,
    port: u16,
    /// What follows the port.
    tail: &'a [u8],
}

impl<'a> Head<'a> {
    /// Reads a description up to there.
    pub fn parse(text: &'a [u8]) -> Result<Head<'a>, Refusal> {
        if text.len() > usize::from(u16::MAX) {
            return Err(Refusal::new(Fault::SdpLine, usize::from(u16::MAX)));
        }
        let mut lines = Lines::new(text);
        match lines.next().unwrap_or_default().strip_prefix(b"v=") {
            Some(b"0") => {}
            Some(version) if scan::decimal(version, 9).is_some() => return Err(Refusal::new(Fault::SdpVersion, 2)),
            _ => return Err(Refusal::new(Fault::SdpVersionMissing, 0)),
        }
        let (mut connection, mut attributes, mut other_media) = (None, Attributes::default(), false);
        for line in lines.take_while(|line| !line.is_empty()) {
            let refuse = |fault| Refusal::new(fault, scan::offset_in(text, line));
            match line {
                [b'm', b'=', value @ ..] => match scan::word(value) {
                    // The first audio medium counts; any other is passed over.
                    (b"audio", rest) => {
                        let (number, _) = scan::word(rest);
                        let port = port(number).ok_or_else(|| refuse(Fault::SdpMedia))?;
                        let tail_at = scan::offset_in(text, number) + number.len();
                        let tail = text.get(tail_at..).unwrap_or_default();
                        return Ok(Head { text, connection, attributes, media_at: scan::offset_in(text, line), port, tail });
                    }
                    _ => other_media = true,
                },
                [b'c', b'=', value @ ..] if !other_media => connection = connection.or(Some(value)),
                [b'a', b'=', value @ ..] if !other_media => attributes.read(value).map_err(refuse)?,
                [b'a'..=b'z', b'=', ..] => {}
                _ => return Err(refuse(Fault::SdpLine)),
            }
        }
        let fault = if other_media { Fault::SdpAudioMissing } else { Fault::SdpMediaMissing };
        Err(Refusal::new(fault, text.len()))
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What follows the port, for [`Media::parse`]: the same in most descriptions of one writer.
    pub fn tail(&self) -> &'a [u8] {
        self.tail
    }

    /// Where media is received; `media` is what [`Head::tail`] means.
    pub fn address(&self, media: &Media) -> Result<Address<'a>, Refusal> {
        let connection = media.connection(self.tail).or(self.connection);
        let connection = connection.ok_or(Refusal::new(Fault::SdpConnectionMissing, self.media_at + 2))?;
        let at = scan::offset_in(self.text, connection);
        let address = parse_address(connection).map_err(|fault| Refusal::new(fault, at))?;
        // The LOCAL address and the LOCAL transport go together (G-SDP-05).
        if matches!(address, Address::Local(_)) != media.is_local() {
            return Err(Refusal::new(Fault::SdpConnection, at));
        }
        Ok(address)
    }

    /// The connection that the LOCAL form describes.
    pub fn local_connection(&self, media: &Media) -> Option<HexId> {
        media.attributes().over(self.attributes).local_connection
    }
}

/// A port; `port/count` announces further ones, which we do not use.
fn port(text: &[u8]) -> Option<u16> {
    let port = match text.iter().position(|&b| b == b'/') {
        Some(slash) => scan::decimal(&text[slash + 1..], 5).and(text.get(..slash))?,
        None => text,
    };
    scan::decimal(port, 5).and_then(|port| u16::try_from(port).ok())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::srtp::Suite;
    use crate::proto::codec::sdp::{Encoding, FORMATS_MAX, Format, static_encoding};
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
            ("m=audio 1 RTP/SAVPF 0", Fault::SdpTransport),
            ("m=audio 1 RTP/SAVP 0", Fault::SdpCrypto),
            ("m=audio 1 RTP/SAVP 0\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:x", Fault::SdpCrypto),
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
    fn what_follows_the_port_means_the_same_in_another_description() {
        let tail = " RTP/AVP 8 101\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\n";
        for own in ["", "c=IN IP4 203.0.113.7\r\n", "c=\r\n", "c=LOCAL EPN a\r\n"] {
            let tail = format!("{tail}{own}");
            let first = with(&format!("m=audio 40000{tail}"));
            let media = Media::parse(Head::parse(first.as_bytes()).unwrap().tail()).unwrap();
            let second = format!("v=0\r\nc=IN IP4 198.51.100.2\r\na=ptime:30\r\nm=image 5 udptl t38\r\nm=audio 50002{tail}");
            let (head, session) = (Head::parse(second.as_bytes()).unwrap(), Session::parse(second.as_bytes()));
            assert_eq!((head.port(), head.tail()), (50002, tail.as_bytes()));
            assert_eq!(head.address(&media), session.as_ref().map(|session| session.address).map_err(|refusal| *refusal), "{own}");
            if let Ok(session) = session {
                assert!(media.formats(head.tail()).eq(session.formats()) && session.formats().count() == 2);
            }
        }
    }

    /// RFC 4568 5.1.2: the first line that can be used is taken; those of a medium that is not protected say nothing.
    #[test]
    fn the_first_usable_key_is_taken() {
        let key = |letter: &str| letter.repeat(40);
        let lines = [
            format!("a=crypto:1 AEAD_AES_128_GCM inline:{}", key("A")),
            format!("a=crypto:2 AES_CM_128_HMAC_SHA1_80 inline:{}|2^20|1:4", key("B")),
            format!("a=crypto:3 AES_CM_128_HMAC_SHA1_32 inline:{}|2^20", key("C")),
            format!("a=crypto:4 AES_CM_128_HMAC_SHA1_80 inline:{}", key("D")),
        ]
        .join("\n");
        let found = |medium: &str| {
            let text = with(&format!("{medium}\n{lines}\nm=audio 2 RTP/AVP 8\na=crypto:9 AES_CM_128_HMAC_SHA1_80 inline:{}", key("E")));
            let head = Head::parse(text.as_bytes()).unwrap();
            let media = Media::parse(head.tail()).unwrap();
            (media.is_protected(), media.crypto(head.tail()).map(|crypto| (crypto.tag, crypto.suite, crypto.lifetime)))
        };
        assert_eq!(found("m=audio 1 RTP/SAVP 0"), (true, Some((3, Suite::Tag32, 1 << 20))));
        assert_eq!(found("m=audio 1 RTP/AVP 0"), (false, None));
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
