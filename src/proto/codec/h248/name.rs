//! Who and what is named: terminations, and the senders of messages (B.2 TerminationID, mId).

use std::net::{Ipv4Addr, Ipv6Addr};

use super::lex;

/// The longest termination name (TRM-11).
pub const NAME_MAX: usize = 64;

/// A termination, or a pattern of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TerminationId<'a> {
    /// `ROOT`: the gateway as a whole.
    Root,
    /// `$`: one that the gateway chooses.
    Choose,
    /// `*`: every one.
    All,
    /// A name, in which `*` and `$` may stand; compared without letter case (TRM-12).
    Name(&'a [u8]),
}

impl<'a> TerminationId<'a> {
    /// Reads one. Lenient about `-` in front of the `@`, which the grammar has not and the field has (TRM-11).
    #[inline]
    pub fn parse(text: &'a [u8]) -> Option<TerminationId<'a>> {
        match text {
            b"$" => return Some(TerminationId::Choose),
            b"*" => return Some(TerminationId::All),
            _ if text.eq_ignore_ascii_case(b"root") => return Some(TerminationId::Root),
            _ => {}
        }
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'/' | b'*' | b'$' | b'-' | b'.' | b'@');
        let begins = match text {
            [b'*', second, ..] => second.is_ascii_alphanumeric() || *second == b'/',
            [first, ..] => first.is_ascii_alphabetic(),
            [] => false,
        };
        let at = text.iter().position(|&byte| byte == b'@').unwrap_or(text.len());
        let (local, domain) = text.split_at(at);
        let good = begins
            && text.len() <= NAME_MAX
            && text.iter().all(|&byte| letter(byte))
            && !local.contains(&b'.')
            && (domain.is_empty() || (domain.len() > 1 && !domain.iter().skip(1).any(|byte| b"@/_$".contains(byte))));
        good.then_some(TerminationId::Name(text))
    }

    /// Whether the gateway is to choose: `$` stands in it (TRM-05).
    pub fn chooses(&self) -> bool {
        match self {
            TerminationId::Choose => true,
            TerminationId::Name(name) => name.contains(&b'$'),
            _ => false,
        }
    }

    /// Whether it stands for several: `*` stands in it (TRM-04).
    pub fn is_wildcard(&self) -> bool {
        match self {
            TerminationId::All => true,
            TerminationId::Name(name) => name.contains(&b'*'),
            _ => false,
        }
    }

    /// The text as it was written, `ROOT` in capitals.
    pub fn text(&self) -> &'a [u8] {
        match self {
            TerminationId::Root => b"ROOT",
            TerminationId::Choose => b"$",
            TerminationId::All => b"*",
            TerminationId::Name(name) => name,
        }
    }
}

/// How a sender names itself (TXT-14).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageId<'a> {
    /// `[192.0.2.1]:2944`
    Ip4(Ipv4Addr, Option<u16>),
    /// `[2001:db8::1]:2944`
    Ip6(Ipv6Addr, Option<u16>),
    /// `<gw.example.net>:2944`; the name without its brackets.
    Domain(&'a [u8], Option<u16>),
    /// `MTP{…}`: the hexadecimal digits.
    Mtp(&'a [u8]),
    /// A path name of the device.
    Device(&'a [u8]),
}

impl<'a> MessageId<'a> {
    /// Reads one, all of `text`; the MTP form as `MTP{digits}` without white space.
    pub fn parse(text: &'a [u8]) -> Option<MessageId<'a>> {
        match text {
            [b'[', rest @ ..] => {
                let (address, port) = until(rest, b']')?;
                let address = std::str::from_utf8(address).ok()?.trim();
                if address.contains(':') {
                    address.parse().ok().map(|address| MessageId::Ip6(address, port))
                } else {
                    ip4(address).map(|address| MessageId::Ip4(address, port))
                }
            }
            [b'<', rest @ ..] => {
                let (name, port) = until(rest, b'>')?;
                let good = name.first().is_some_and(u8::is_ascii_alphanumeric)
                    && name.len() <= 64
                    && name.iter().all(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
                good.then_some(MessageId::Domain(name, port))
            }
            _ if text.len() > 5 && text.get(..3).is_some_and(|token| token.eq_ignore_ascii_case(b"mtp")) && text.get(3) == Some(&b'{') => {
                let digits = text.strip_suffix(b"}")?.get(4..)?;
                ((4..=8).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit)).then_some(MessageId::Mtp(digits))
            }
            _ => match TerminationId::parse(text)? {
                TerminationId::Name(name) => Some(MessageId::Device(name)),
                TerminationId::Root => Some(MessageId::Device(text)),
                TerminationId::Choose | TerminationId::All => None,
            },
        }
    }

    /// Whether both name the same sender: addresses by value, names without letter case, ports as written (UDP-09, MSG-01).
    pub fn same(&self, other: &MessageId<'_>) -> bool {
        match (self, other) {
            (MessageId::Ip4(a, p), MessageId::Ip4(b, q)) => a == b && p == q,
            (MessageId::Ip6(a, p), MessageId::Ip6(b, q)) => a == b && p == q,
            (MessageId::Domain(a, p), MessageId::Domain(b, q)) => a.eq_ignore_ascii_case(b) && p == q,
            (MessageId::Mtp(a), MessageId::Mtp(b)) | (MessageId::Device(a), MessageId::Device(b)) => a.eq_ignore_ascii_case(b),
            _ => false,
        }
    }
}

/// What stands in front of `close`, and the port behind it.
fn until(text: &[u8], close: u8) -> Option<(&[u8], Option<u16>)> {
    let end = text.iter().position(|&byte| byte == close)?;
    let port = match text.get(end + 1..)? {
        [] => None,
        [b':', digits @ ..] => Some(lex::uint16(digits)?),
        _ => return None,
    };
    Some((text.get(..end)?, port))
}

/// Four decimal numbers; leading zeros are allowed by the grammar (V4hex) and mean nothing.
fn ip4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?.as_bytes();
        *octet = lex::number(part, 3).and_then(|value| u8::try_from(value).ok())?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminations() {
        // TRM-11, TRM-12, TXT-02
        for good in ["ds/ds3_1/ds1_5/17", "Add", "R13/3/*", "rtp/$", "*a", "*/1", "a@gw.example.net", "ds/ds1-1/3", "a1*$"] {
            assert_eq!(TerminationId::parse(good.as_bytes()), Some(TerminationId::Name(good.as_bytes())), "{good}");
        }
        let long = "a".repeat(65);
        for bad in ["", "1a", "_a", "**", "a.b", "a@", "a@b@c", "a\u{1}", "/a", "a+b", long.as_str()] {
            assert_eq!(TerminationId::parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(TerminationId::parse(b"rOOt"), Some(TerminationId::Root));
        assert!(TerminationId::parse(b"rtp/$").unwrap().chooses() && TerminationId::parse(b"ds/*").unwrap().is_wildcard());
    }

    #[test]
    fn senders_in_five_forms() {
        // TXT-14, and the IPv6 form that field stacks did not read
        for (text, id) in [
            ("[192.0.2.1]:2944", MessageId::Ip4([192, 0, 2, 1].into(), Some(2944))),
            ("[192.000.002.001]", MessageId::Ip4([192, 0, 2, 1].into(), None)),
            ("[2409:8050::51]:55555", MessageId::Ip6("2409:8050::51".parse().unwrap(), Some(55555))),
            ("<gw-1.example.net>", MessageId::Domain(b"gw-1.example.net", None)),
            ("mtp{00ff}", MessageId::Mtp(b"00ff")),
            ("mg/1", MessageId::Device(b"mg/1")),
        ] {
            assert_eq!(MessageId::parse(text.as_bytes()), Some(id), "{text}");
        }
        for bad in ["[1.2.3]", "[1.2.3.256]", "[1.2.3.4]:65536", "[::1", "<>", "<-a>", "MTP{0}", "MTP{xyzw}", "$", "", "[1.2.3.4]x"] {
            assert_eq!(MessageId::parse(bad.as_bytes()), None, "{bad}");
        }
        let same =
            |a: &'static str, b: &'static str| MessageId::parse(a.as_bytes()).unwrap().same(&MessageId::parse(b.as_bytes()).unwrap());
        assert!(same("<GW>:1", "<gw>:1") && !same("<gw>:1", "<gw>") && same("[::1]", "[0:0::1]"));
    }
}
