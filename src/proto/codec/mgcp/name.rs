//! Endpoint names and notified entities (RFC 3435 2.1.2, 3.2.1.3; G-EPN-02 to G-EPN-06, G-NET-07).
//!
//! Syntax only: which names exist, and what a wildcard covers, is the endpoint's business. A range `[1-12]` is an ordinary name here.

use std::net::{Ipv4Addr, Ipv6Addr};

use memchr::{memchr, memrchr};

use super::refusal::{Fault, Refusal};
use crate::proto::codec::scan;

/// The longest local name and the longest domain, in bytes each.
pub const NAME_MAX: usize = 255;

/// The port of a notified entity that names none (G-NET-06).
pub const AGENT_PORT: u16 = 2727;

/// A well-formed `local@domain`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndpointName<'a> {
    /// All of it, as written.
    pub raw: &'a [u8],
    /// The part before the `@`.
    pub local: &'a [u8],
    /// The part behind the `@`, as written, brackets included.
    pub domain: &'a [u8],
}

/// One term of a local name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Term<'a> {
    /// `$`: any one.
    AnyOf,
    /// `*`: all.
    AllOf,
    /// A name.
    Name(&'a [u8]),
}

impl<'a> EndpointName<'a> {
    /// Checks lengths, terms and domain.
    pub fn parse(raw: &'a [u8]) -> Result<EndpointName<'a>, Refusal> {
        let at = scan::find_near(raw, b'@').ok_or(Refusal::new(Fault::EndpointIncomplete, raw.len()))?;
        let (local, domain) = (&raw[..at], &raw[at + 1..]);
        if local.len() > NAME_MAX || domain.len() > NAME_MAX {
            return Err(Refusal::new(Fault::EndpointTooLong, 0));
        }
        check_local(local).map_err(|offset| Refusal::new(Fault::EndpointMalformed, offset))?;
        if domain.is_empty() {
            return Err(Refusal::new(Fault::EndpointIncomplete, raw.len()));
        }
        Domain::parse(domain).ok_or(Refusal::new(Fault::DomainMalformed, at + 1))?;
        Ok(EndpointName { raw, local, domain })
    }

    /// The terms of the local name in order.
    pub fn terms(&self) -> impl Iterator<Item = Term<'a>> + use<'a> {
        self.local.split(|&b| b == b'/').map(|term| match term {
            b"$" => Term::AnyOf,
            b"*" => Term::AllOf,
            name => Term::Name(name),
        })
    }

    /// Whether any term is `$`.
    pub fn has_any_of(&self) -> bool {
        memchr(b'$', self.local).is_some()
    }

    /// Whether any term is `*`.
    pub fn has_all_of(&self) -> bool {
        memchr(b'*', self.local).is_some()
    }
}

/// What a byte is in a local name.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Class {
    No,
    Name,
    Wildcard,
    Slash,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::No; 256];
    let mut byte = 0x21;
    while byte <= 0x7e {
        classes[byte] = match byte as u8 {
            b'@' => Class::No,
            b'$' | b'*' => Class::Wildcard,
            b'/' => Class::Slash,
            _ => Class::Name,
        };
        byte += 1;
    }
    classes
};

/// Terms of at least one character between single slashes, wildcards alone in their term; `Err` says where not.
fn check_local(local: &[u8]) -> Result<(), usize> {
    // Most names are plain: no wildcard, and no slash behind a slash.
    let (mut plain, mut before) = (true, Class::Slash);
    for &byte in local {
        let class = CLASSES[usize::from(byte)];
        plain &= (class == Class::Name) | ((class == Class::Slash) & (before == Class::Name));
        before = class;
    }
    if plain && before == Class::Name {
        return Ok(());
    }
    // The class before decides which class may follow; the start counts as a slash.
    let mut before = Class::Slash;
    for (at, &byte) in local.iter().enumerate() {
        let class = CLASSES[usize::from(byte)];
        let fits = match class {
            Class::No => false,
            Class::Name => before != Class::Wildcard,
            Class::Wildcard => before == Class::Slash,
            Class::Slash => before != Class::Slash,
        };
        if !fits {
            return Err(at);
        }
        before = class;
    }
    if before == Class::Slash { Err(local.len()) } else { Ok(()) }
}

/// The domain of a name, or the host of a notified entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Domain<'a> {
    /// A DNS name: letters, digits, dots and hyphens.
    Name(&'a [u8]),
    /// `[192.0.2.1]`.
    Ip4(Ipv4Addr),
    /// `[2001:db8::1]`.
    Ip6(Ipv6Addr),
    /// `#123`: the digits.
    Number(&'a [u8]),
}

impl<'a> Domain<'a> {
    /// Reads one of the four forms (G-EPN-04).
    pub fn parse(text: &'a [u8]) -> Option<Domain<'a>> {
        match text {
            [b'[', address @ .., b']'] => {
                let address = std::str::from_utf8(address).ok()?;
                match address.parse() {
                    Ok(ip) => Some(Domain::Ip6(ip)),
                    Err(_) => ip4(address.as_bytes()).map(Domain::Ip4),
                }
            }
            [b'#', digits @ ..] => (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit)).then_some(Domain::Number(digits)),
            name => {
                let legal = name.iter().fold(true, |legal, &b| legal & DOMAIN_BYTES[usize::from(b)]);
                (!name.is_empty() && legal && name.len() <= NAME_MAX).then_some(Domain::Name(name))
            }
        }
    }
}

/// The bytes of a DNS name.
const DOMAIN_BYTES: [bool; 256] = {
    let mut legal = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        legal[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'.' || byte as u8 == b'-';
        byte += 1;
    }
    legal
};

/// Four groups of 1 to 3 digits, each up to 255; leading zeros are decimal, as the grammar has them.
pub(crate) fn ip4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut rest = text;
    for (n, octet) in octets.iter_mut().enumerate() {
        if n > 0 {
            rest = rest.strip_prefix(b".")?;
        }
        let value;
        (value, rest) = scan::leading_decimal(rest, 3)?;
        *octet = u8::try_from(value).ok()?;
    }
    rest.is_empty().then_some(Ipv4Addr::from(octets))
}

/// Where the commands of an endpoint go (RFC 3435 2.1.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotifiedEntity<'a> {
    /// All of it, as written.
    pub raw: &'a [u8],
    /// The part before the `@`; it has no structure and says nothing about the address.
    pub local: Option<&'a [u8]>,
    /// The host.
    pub domain: Domain<'a>,
    /// The port, 1..=65535; [`AGENT_PORT`] when none is written.
    pub port: u16,
}

impl<'a> NotifiedEntity<'a> {
    /// Reads `[local@]domain[:port]`.
    pub fn parse(raw: &'a [u8]) -> Option<NotifiedEntity<'a>> {
        let (local, host) = match memrchr(b'@', raw) {
            Some(at) => (Some(&raw[..at]), &raw[at + 1..]),
            None => (None, raw),
        };
        if let Some(local) = local
            && (local.is_empty() || local.len() > NAME_MAX || !local.iter().all(|b| b.is_ascii_graphic() && *b != b'@'))
        {
            return None;
        }
        // The colons of an IPv6 address stand inside brackets.
        let colon = memrchr(b':', host).filter(|&colon| memchr(b']', &host[colon..]).is_none());
        let (domain, port) = match colon {
            Some(colon) => {
                let port = u16::try_from(scan::decimal(&host[colon + 1..], 5)?).ok()?;
                (&host[..colon], Some(port).filter(|&port| port != 0)?)
            }
            None => (host, AGENT_PORT),
        };
        Some(NotifiedEntity { raw, local, domain: Domain::parse(domain)?, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(name: &str) -> Option<Fault> {
        EndpointName::parse(name.as_bytes()).err().map(|refusal| refusal.fault)
    }

    #[test]
    fn legal_names() {
        // G-EPN-02, G-EPN-04, G-EPN-08
        for name in ["ds/ds1-1/1@tgw.example.net", "X35V3+A4/13@gw", "*@gw", "$/*@gw", "*/$@gw", "ds/ds1-[1-2]/[1,3]@gw", "a@[10.0.0.5]"] {
            assert_eq!(fault(name), None, "{name}");
        }
        for name in ["a@[2001:db8::5]", "a@#12", "a@[::ffff:10.0.0.1]", "\"a'#/-@GW"] {
            assert_eq!(fault(name), None, "{name}");
        }
        let name = EndpointName::parse(b"ds/$/*@Gw").unwrap();
        assert_eq!(name.terms().collect::<Vec<_>>(), [Term::Name(b"ds"), Term::AnyOf, Term::AllOf]);
        assert_eq!((name.local, name.domain, name.has_any_of(), name.has_all_of()), (&b"ds/$/*"[..], &b"Gw"[..], true, true));
    }

    #[test]
    fn illegal_names() {
        // G-EPN-02, G-EPN-06
        for name in ["ds//ds1-1/1@gw", "/ds/1@gw", "ds/1/@gw", "ds1-*@gw", "*a@gw", "**@gw", "@gw", "a b@gw", "a\u{1}@gw", "\u{e9}@gw"] {
            assert_eq!(fault(name), Some(Fault::EndpointMalformed), "{name}");
        }
        for name in ["a@b@c", "a@b_c", "a@[10.0.0.256]", "a@[x]", "a@#", "a@#x", "a@[", "a@[]"] {
            assert_eq!(fault(name), Some(Fault::DomainMalformed), "{name}");
        }
        assert_eq!(
            (fault("bad"), fault("a@"), fault("")),
            (Some(Fault::EndpointIncomplete), Some(Fault::EndpointIncomplete), Some(Fault::EndpointIncomplete))
        );
    }

    #[test]
    fn length_limits_are_exact() {
        // G-EPN-03
        let name = |local, domain| format!("{}@{}", "a".repeat(local), "b".repeat(domain));
        assert_eq!(fault(&name(255, 255)), None);
        assert_eq!(fault(&name(256, 1)), Some(Fault::EndpointTooLong));
        assert_eq!(fault(&name(1, 256)), Some(Fault::EndpointTooLong));
    }

    #[test]
    fn notified_entities() {
        // G-NET-06, G-NET-07
        let entity = |text: &'static str| NotifiedEntity::parse(text.as_bytes());
        let full = entity("ca@ca1.example.net:5678").unwrap();
        assert_eq!((full.local, full.domain, full.port), (Some(&b"ca"[..]), Domain::Name(b"ca1.example.net"), 5678));
        assert_eq!(entity("[128.96.41.12]").unwrap().domain, Domain::Ip4(Ipv4Addr::new(128, 96, 41, 12)));
        assert_eq!(entity("[2001:db8::1]:2427").unwrap().port, 2427);
        assert_eq!(entity("[2001:db8::1]").unwrap().port, AGENT_PORT);
        assert_eq!(entity("ca1.example.net:65535").unwrap().port, 65535);
        for bad in ["", "@x", "x:", "x:0", "x:65536", "x:123456", "x y", "a@", "a@b c", "[::1", "x:-1"] {
            assert_eq!(entity(bad), None, "{bad}");
        }
    }
}
