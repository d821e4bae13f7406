//! Session descriptions as far as a trunking gateway needs them (RFC 2327, RFC 3264 for direction, RFC 4568 for
//! keys, RFC 3435 3.4; G-SDP-01 to -06).
//!
//! [`Session::parse`] reads the connection of the first audio medium of a description from outside and ignores every line it does not
//! know; the text itself is kept by whoever needs it again ([`write_raw`]). [`Description`] is what we write about ourselves. Unlike
//! the rest of MGCP, session descriptions are case-sensitive.

pub mod crypto;
mod media;
mod read;
mod write;

use std::net::{Ipv4Addr, Ipv6Addr};

pub use media::{Direction, FORMATS_MAX, Format, Formats, Media, is_protected};
pub use read::{Head, Session, is_absent};
pub use write::{Description, Payload, write, write_absent, write_raw, write_short};

/// Where media of a connection goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address<'a> {
    /// `IN IP4`.
    Ip4(Ipv4Addr),
    /// `IN IP6`.
    Ip6(Ipv6Addr),
    /// `LOCAL EPN`: an endpoint of this gateway, by its local name (G-SDP-05).
    Local(&'a [u8]),
}

/// An encoding: what an `a=rtpmap` says about a payload type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Encoding<'a> {
    /// The name, as written; compared without letter case (RFC 3551 3).
    pub name: &'a [u8],
    /// The RTP clock rate in Hz.
    pub clock_rate: u32,
    /// Audio channels, at least 1.
    pub channels: u8,
}

/// The lowest dynamic payload type.
pub const DYNAMIC_MIN: u8 = 96;

/// The encoding of a static audio payload type (RFC 3551 table 4).
pub const fn static_encoding(payload_type: u8) -> Option<Encoding<'static>> {
    let (name, clock_rate, channels): (&[u8], u32, u8) = match payload_type {
        0 => (b"PCMU", 8_000, 1),
        3 => (b"GSM", 8_000, 1),
        4 => (b"G723", 8_000, 1),
        5 => (b"DVI4", 8_000, 1),
        6 => (b"DVI4", 16_000, 1),
        7 => (b"LPC", 8_000, 1),
        8 => (b"PCMA", 8_000, 1),
        9 => (b"G722", 8_000, 1),
        10 => (b"L16", 44_100, 2),
        11 => (b"L16", 44_100, 1),
        12 => (b"QCELP", 8_000, 1),
        13 => (b"CN", 8_000, 1),
        14 => (b"MPA", 90_000, 1),
        15 => (b"G728", 8_000, 1),
        16 => (b"DVI4", 11_025, 1),
        17 => (b"DVI4", 22_050, 1),
        18 => (b"G729", 8_000, 1),
        _ => return None,
    };
    Some(Encoding { name, clock_rate, channels })
}
