//! `a=crypto` (RFC 4568): the keys of a protected medium, and how they are kept from the eyes of who reads along.

use crate::proto::base::srtp::{Crypto, LIFETIME, MasterKey, Suite};
use crate::proto::codec::scan;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::{Zeroize as _, Zeroizing};

/// Characters of a key and its salt in base64.
pub const INLINE: usize = 40;
/// How key parameters begin.
const METHOD: &[u8] = b"inline:";

/// A line of an offer, with its key left open where H.248 lets the gateway choose it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenCrypto {
    /// As [`Crypto::tag`].
    pub tag: u32,
    /// As [`Crypto::suite`].
    pub suite: Suite,
    /// Key and lifetime; `None` for `inline:$`.
    pub key: Option<(MasterKey, u64)>,
}

/// Reads the value behind `a=crypto:`. `None` for one that cannot be used: another crypto-suite, several keys or one with an identifier (MKI),
/// a key of another length, or a session parameter that would have to be followed.
pub fn read(value: &[u8]) -> Option<Crypto> {
    let OpenCrypto { tag, suite, key } = read_open(value)?;
    let (key, lifetime) = key?;
    Some(Crypto { tag, suite, key, lifetime })
}

/// The same, where the key may be left open.
pub fn read_open(value: &[u8]) -> Option<OpenCrypto> {
    let (tag, rest) = scan::word(value);
    let (suite, rest) = scan::word(rest);
    let (key, mut rest) = scan::word(rest);
    while !rest.is_empty() {
        let parameter;
        (parameter, rest) = scan::word(rest);
        // The size of the replay window is a hint, and what begins with a hyphen may be passed over (RFC 4568 6.3.7, 6.3.8).
        let ignored = parameter.first() == Some(&b'-') || parameter.get(..4).is_some_and(|name| name.eq_ignore_ascii_case(b"WSH="));
        if !ignored {
            return None;
        }
    }
    let tag = scan::decimal(tag, 9)?;
    Some(OpenCrypto { tag, suite: Suite::by_name(suite)?, key: key_parameters(key)? })
}

/// `inline:` key and salt, and perhaps `|` lifetime. The inner `None`: `inline:$`.
fn key_parameters(text: &[u8]) -> Option<Option<(MasterKey, u64)>> {
    let (method, text) = text.split_at_checked(METHOD.len())?;
    if !method.eq_ignore_ascii_case(METHOD) {
        return None;
    }
    if text == b"$" {
        return Some(None);
    }
    let mut parts = text.split(|&byte| byte == b'|');
    let (key, life) = (parts.next()?, parts.next());
    let lifetime = life.map_or(Some(LIFETIME), lifetime).filter(|_| parts.next().is_none())?;
    let mut octets = [0; MasterKey::OCTETS];
    let length = STANDARD.decode_slice(key, &mut octets).ok();
    let key = MasterKey::new(octets);
    octets.zeroize();
    (length == Some(MasterKey::OCTETS)).then_some(Some((key, lifetime)))
}

/// A number of packets, in decimal or as a power of two; what is more than a key is good for is that.
fn lifetime(text: &[u8]) -> Option<u64> {
    let packets = match text.strip_prefix(b"2^") {
        Some(power) => 1u64.checked_shl(scan::decimal(power, 2)?)?,
        None => std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?.parse().ok()?,
    };
    (packets > 0).then_some(packets.min(LIFETIME))
}

/// A key in base64, as it is written behind `inline:`.
pub fn inline(key: &MasterKey) -> Zeroizing<[u8; INLINE]> {
    let mut text = Zeroizing::new([0; INLINE]);
    // 30 octets are 40 characters.
    let _ = STANDARD.encode_slice(key.octets(), &mut text[..]);
    text
}

/// Overwrites each key in what is shown of a datagram; its length stays.
pub fn mask(datagram: &mut [u8]) {
    let mut from = 0;
    while let Some(found) = memchr::memchr(b':', datagram.get(from..).unwrap_or_default()) {
        let (head, tail) = datagram.split_at_mut(from + found + 1);
        if head.last_chunk().is_some_and(|method: &[u8; METHOD.len()]| method.eq_ignore_ascii_case(METHOD)) {
            tail.iter_mut().take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(*byte)).for_each(|byte| *byte = b'*');
        }
        from = head.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 4568 4.
    const KEY: &str = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz";

    fn parse(value: &str) -> Option<(u32, Suite, u64)> {
        read(value.as_bytes()).map(|crypto| (crypto.tag, crypto.suite, crypto.lifetime))
    }

    #[test]
    fn a_line_is_read_and_written_again() {
        let crypto = read(format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}|2^20").as_bytes()).unwrap();
        assert_eq!((crypto.tag, crypto.suite, crypto.lifetime), (1, Suite::Tag80, 1 << 20));
        assert_eq!(crypto.key.octets(), b"YS___semctl () {\t220;}\n}\nunles");
        assert_eq!(inline(&crypto.key)[..], *KEY.as_bytes());
        let with = |rest: &str| format!("9 aes_cm_128_hmac_sha1_32 INLINE:{KEY}{rest}");
        assert_eq!(parse(&with("")), Some((9, Suite::Tag32, LIFETIME)));
        assert_eq!(parse(&with("|1066000")), Some((9, Suite::Tag32, 1_066_000)));
        assert_eq!(parse(&with("|2^60 WSH=128 -FOO=1")), Some((9, Suite::Tag32, LIFETIME)));
    }

    #[test]
    fn what_cannot_be_followed_is_not_used() {
        let good = format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}");
        assert!(parse(&good).is_some());
        for rest in [
            "|2^20|1:4",
            "|1:32",
            "|2^20|",
            "|",
            "|0",
            "|2^",
            "|2^64",
            "|-1",
            ";inline:",
            " KDR=1",
            " UNENCRYPTED_SRTP",
            " UNENCRYPTED_SRTCP",
            " UNAUTHENTICATED_SRTP",
            " FEC_ORDER=FEC_SRTP",
            " FEC_KEY=inline:x",
            " WSH=64 FOO=1",
            "=",
            "AAAA",
        ] {
            assert_eq!(parse(&format!("{good}{rest}")), None, "{rest}");
        }
        for value in [
            "",
            "1",
            "1 AES_CM_128_HMAC_SHA1_80",
            "1 AES_CM_128_HMAC_SHA1_80 inline:",
            "1 AES_CM_128_HMAC_SHA1_80 inline:$",
            "x AES_CM_128_HMAC_SHA1_80 inline:KEY",
            "1234567890 AES_CM_128_HMAC_SHA1_80 inline:KEY",
            "1 F8_128_HMAC_SHA1_80 inline:KEY",
            "1 AES_CM_128_HMAC_SHA1_80 uri:KEY",
            "1 AES_CM_128_HMAC_SHA1_80 KEY",
            "-1 AES_CM_128_HMAC_SHA1_80 inline:KEY",
        ] {
            assert_eq!(parse(&value.replace("KEY", KEY)), None, "{value}");
        }
        assert_eq!(parse(&good.replace(KEY, &KEY[1..])), None, "a key that is too short");
        assert_eq!(parse(&good.replace(KEY, &KEY.replace('W', "-"))), None, "no base64");
    }

    #[test]
    fn a_key_may_be_left_open() {
        let open = read_open(b"3 AES_CM_128_HMAC_SHA1_32 inline:$").unwrap();
        assert_eq!(open, OpenCrypto { tag: 3, suite: Suite::Tag32, key: None });
    }

    #[test]
    fn keys_are_masked_and_nothing_else() {
        let text =
            format!("v=0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}|2^20\r\na=x:Inline:ab/+=;inline:c\r\na=ptime:20\r\ninline:");
        let mut masked = text.clone().into_bytes();
        mask(&mut masked);
        let masked = String::from_utf8(masked).unwrap();
        let stars = "*".repeat(INLINE);
        let expected =
            format!("v=0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:{stars}|2^20\r\na=x:Inline:*****;inline:*\r\na=ptime:20\r\ninline:");
        assert_eq!(masked, expected);
        mask(&mut []);
    }
}
