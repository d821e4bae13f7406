//! Writing descriptions: our own, strictly in the order and form of RFC 2327, and those of others again (G-SDP-01, G-SDP-02).

use std::fmt::Write as _;

use super::Address;
use super::crypto::inline;
use crate::proto::base::HexId;
use crate::proto::base::srtp::Crypto;
use crate::proto::codec::mgcp::Writer;
use crate::proto::codec::scan::Lines;

/// One payload type of our own description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payload<'a> {
    /// 0..=127.
    pub payload_type: u8,
    /// The lines about it, each ended by CR LF: from [`DYNAMIC_MIN`](super::DYNAMIC_MIN) on an `a=rtpmap` (G-SDP-04), with parameters an `a=fmtp`.
    /// Whoever offers a type knows them from the beginning, so they need not be put together for each call.
    pub attributes: &'a str,
}

/// What we say about one end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Description<'a> {
    /// Tells our sessions apart; the same for the life of a connection.
    pub session_id: u64,
    /// Grows with every change of the description.
    pub version: u64,
    /// Where we receive. [`Address::Local`] gives the LOCAL form (G-SDP-05).
    pub address: Address<'a>,
    /// Our RTP port; the LOCAL form always has 0.
    pub port: u16,
    /// The payload types in order of preference; at least one, or the `m=` line is not legal.
    pub payloads: &'a [Payload<'a>],
    /// `a=ptime` in ms.
    pub ptime_ms: Option<u16>,
    /// The connection, for `a=MGCPlocalcx` of the LOCAL form.
    pub connection: Option<HexId>,
    /// What protects what we send: RTP/SAVP. Nothing does in the LOCAL form.
    pub crypto: Option<&'a Crypto>,
}

/// The empty line and our description.
pub fn write(writer: &mut Writer<'_>, description: &Description<'_>) {
    write_lines(writer, description, true);
}

/// The same with no more than MGCP needs: `v=`, `c=`, `m=` and its payload types, for agents that know no more.
pub fn write_short(writer: &mut Writer<'_>, description: &Description<'_>) {
    write_lines(writer, description, false);
}

fn write_lines(writer: &mut Writer<'_>, description: &Description<'_>, full: bool) {
    let local = matches!(description.address, Address::Local(_));
    let crypto = description.crypto.filter(|_| !local);
    writer.begin_description();
    if full {
        writer.text("v=0\r\no=- ");
        writer.number(description.session_id);
        writer.byte(b' ');
        writer.number(description.version);
        writer.byte(b' ');
        let place = writer.written().len();
        address(writer, description.address);
        let end = writer.written().len();
        writer.text("\r\ns=-\r\nc=");
        writer.again(place..end);
        writer.text("\r\nt=0 0\r\n");
    } else {
        writer.text("v=0\r\nc=");
        address(writer, description.address);
        writer.end_line();
    }
    if let (true, Some(connection)) = (local, description.connection) {
        writer.text("a=MGCPlocalcx:");
        writer.hex_id(connection);
        writer.end_line();
    }
    writer.text("m=audio ");
    writer.number(if local { 0 } else { u64::from(description.port) });
    writer.text(match crypto {
        _ if local => " LOCAL",
        Some(_) => " RTP/SAVP",
        None => " RTP/AVP",
    });
    for payload in description.payloads {
        writer.byte(b' ');
        writer.octet(payload.payload_type);
    }
    writer.end_line();
    for payload in description.payloads {
        writer.text(payload.attributes);
    }
    if let Some(crypto) = crypto {
        writer.text("a=crypto:");
        writer.number(u64::from(crypto.tag));
        writer.byte(b' ');
        writer.text(crypto.suite.name());
        writer.text(" inline:");
        writer.bytes(&inline(&crypto.key)[..]);
        writer.end_line();
    }
    if let Some(ptime_ms) = description.ptime_ms.filter(|_| full) {
        writer.text("a=ptime:");
        writer.number(u64::from(ptime_ms));
        writer.end_line();
    }
}

fn address(writer: &mut Writer<'_>, address: Address<'_>) {
    match address {
        Address::Ip4(ip) => {
            writer.text("IN IP4 ");
            writer.ip4(ip);
        }
        Address::Ip6(ip) => {
            writer.text("IN IP6 ");
            // The one place with the formatting machinery: shortening IPv6 by hand is not worth its lines. An overflow sets its flag.
            let _ = write!(Formatter(writer), "{ip}");
        }
        Address::Local(name) => {
            writer.text("LOCAL EPN ");
            writer.bytes(name);
        }
    }
}

struct Formatter<'w, 'a>(&'w mut Writer<'a>);

impl std::fmt::Write for Formatter<'_, '_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.text(text);
        Ok(())
    }
}

/// The empty line and a description of somebody else, line ends made CR LF; nothing behind its first empty line.
pub fn write_raw(writer: &mut Writer<'_>, description: &[u8]) {
    writer.begin_description();
    for line in Lines::new(description).take_while(|line| !line.is_empty()) {
        writer.bytes(line);
        writer.end_line();
    }
}

/// The empty line and the lone `v=0` that stands for a description that does not exist (G-AUC-04).
pub fn write_absent(writer: &mut Writer<'_>) {
    writer.begin_description();
    writer.text("v=0\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::srtp::{LIFETIME, MasterKey, Suite};
    use crate::proto::codec::sdp::{Session, is_absent};

    const PCMU: Payload<'static> = Payload { payload_type: 0, attributes: "" };
    const G726: Payload<'static> = Payload { payload_type: 96, attributes: "a=rtpmap:96 G726-32/8000\r\na=fmtp:96 x=1\r\n" };

    fn written(write: impl FnOnce(&mut Writer<'_>)) -> String {
        let mut buffer = [0; 1000];
        let mut writer = Writer::new(&mut buffer);
        write(&mut writer);
        let length = writer.finish().unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    fn description(address: Address<'static>) -> Description<'static> {
        let connection = HexId::parse(b"ab");
        Description {
            session_id: 7,
            version: 8,
            address,
            port: 4000,
            payloads: &[PCMU, G726],
            ptime_ms: Some(20),
            connection,
            crypto: None,
        }
    }

    #[test]
    fn every_mandatory_line_in_order() {
        // G-SDP-01, G-SDP-02, G-SDP-04
        let text = written(|w| write(w, &description(Address::Ip4([192, 0, 2, 10].into()))));
        assert_eq!(
            text,
            "\r\nv=0\r\no=- 7 8 IN IP4 192.0.2.10\r\ns=-\r\nc=IN IP4 192.0.2.10\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0 96\r\n\
             a=rtpmap:96 G726-32/8000\r\na=fmtp:96 x=1\r\na=ptime:20\r\n"
        );
        let session = Session::parse(text.trim_ascii_start().as_bytes()).unwrap();
        assert_eq!((session.port, session.ptime_ms, session.formats().count()), (4000, Some(20), 2));
    }

    #[test]
    fn short_ones_have_what_mgcp_needs() {
        let text = written(|w| write_short(w, &description(Address::Ip4([192, 0, 2, 10].into()))));
        assert_eq!(text, "\r\nv=0\r\nc=IN IP4 192.0.2.10\r\nm=audio 4000 RTP/AVP 0 96\r\na=rtpmap:96 G726-32/8000\r\na=fmtp:96 x=1\r\n");
        assert!(Session::parse(text.trim_ascii_start().as_bytes()).is_ok());
    }

    #[test]
    fn a_protected_medium_has_its_key() {
        let crypto = Crypto { tag: 5, suite: Suite::Tag32, key: MasterKey::new([0; 30]), lifetime: LIFETIME };
        let ours = Description { crypto: Some(&crypto), ..description(Address::Ip4([192, 0, 2, 10].into())) };
        let text = written(|w| write_short(w, &ours));
        let key = "A".repeat(40);
        assert!(text.contains("\r\nm=audio 4000 RTP/SAVP 0 96\r\n"), "{text}");
        assert!(text.ends_with(&format!("\r\na=crypto:5 AES_CM_128_HMAC_SHA1_32 inline:{key}\r\n")), "{text}");
        assert!(Session::parse(text.trim_ascii_start().as_bytes()).is_ok());
        let inside = Description { address: Address::Local(b"ds/ds1-1/1"), ..ours };
        let text = written(|w| write(w, &inside));
        assert!(text.contains("m=audio 0 LOCAL 0 96\r\n") && !text.contains("crypto"), "{text}");
    }

    #[test]
    fn other_addresses() {
        let text = written(|w| write(w, &description(Address::Ip6("2001:db8::5".parse().unwrap()))));
        assert!(text.contains("\r\nc=IN IP6 2001:db8::5\r\n"));
        let text = written(|w| write(w, &description(Address::Local(b"ds/ds1-1/1"))));
        assert!(text.contains("\r\nc=LOCAL EPN ds/ds1-1/1\r\nt=0 0\r\na=MGCPlocalcx:AB\r\nm=audio 0 LOCAL 0 96\r\n"));
        let session = Session::parse(text.trim_ascii_start().as_bytes()).unwrap();
        assert_eq!((session.address, session.local_connection), (Address::Local(b"ds/ds1-1/1"), HexId::parse(b"AB")));
    }

    #[test]
    fn foreign_descriptions_get_strict_line_ends() {
        assert_eq!(written(|w| write_raw(w, b"v=0\na=x \r\nz=1\n\nm=y")), "\r\nv=0\r\na=x\r\nz=1\r\n");
        assert!(is_absent(written(write_absent).trim_ascii_start().as_bytes()));
    }
}
