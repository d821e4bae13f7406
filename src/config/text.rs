//! What settings that are text may be: names, addresses, keys.

use super::value::TextRule;
use crate::proto::codec::h248::MessageId;
use std::net::IpAddr;

/// A domain name or a bracketed address, as behind the `@` of an endpoint name (RFC 3435 3.2.1.3).
pub(super) static DOMAIN: TextRule =
    TextRule { allowed: "a domain name of 1..=255 letters, digits, `-` and `.`, or an address in brackets", accepts: is_domain };

pub(super) static MEMBER: TextRule =
    TextRule { allowed: "the name of an endpoint, or one with `*`, such as `ds/ds1-1/*`, of 1..=255 octets", accepts: is_member };

pub(super) static CURVE_KEY: TextRule = TextRule { allowed: "a key of 40 printable characters (Z85)", accepts: is_curve_key };

pub(super) static PREFIX: TextRule =
    TextRule { allowed: "an address, or one with the number of bits that count, such as `10.1.0.0/16`", accepts: is_prefix };

pub(super) static MESSAGE_ID: TextRule = TextRule {
    allowed: "an address in brackets, a domain name in angle brackets, each with an optional port, or a plain name, of 1..=70 octets",
    accepts: is_message_id,
};

pub(super) static IDENTIFIER: TextRule =
    TextRule { allowed: "a name of 1..=32 letters, digits, `-`, `_` and `.`, other than \"auto\"", accepts: is_identifier };

pub(super) static INTERFACE: TextRule =
    TextRule { allowed: "\"auto\" or the name of an interface, 1..=15 octets without blanks and `/`", accepts: is_interface };

pub(super) static LOG_FILTER: TextRule =
    TextRule { allowed: "a log filter such as \"info\" or \"info,tollgate::host=debug\"", accepts: is_log_filter };

fn is_message_id(text: &str) -> bool {
    text.len() <= 70 && MessageId::parse(text.as_bytes()).is_some()
}

fn is_member(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.bytes().all(|octet| octet.is_ascii_graphic() && octet != b'$')
}

/// The alphabet of Z85 (ZeroMQ RFC 32).
fn is_curve_key(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|octet| octet.is_ascii_alphanumeric() || b".-:+=^!/*?&<>()[]{}@%$#".contains(&octet))
}

fn is_prefix(text: &str) -> bool {
    crate::proto::cac::Prefix::parse(text).is_some()
}

pub(super) fn is_domain(text: &str) -> bool {
    if let Some(address) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<IpAddr>().is_ok();
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 255 && text.split('.').all(label)
}

fn is_identifier(text: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    (1..=32).contains(&text.len()) && text != "auto" && text.bytes().all(legal)
}

fn is_interface(text: &str) -> bool {
    (1..=15).contains(&text.len()) && text != "auto" && text.bytes().all(|b| b.is_ascii_graphic() && b != b'/')
}

fn is_log_filter(text: &str) -> bool {
    (1..=1000).contains(&text.len()) && tracing_subscriber::EnvFilter::try_new(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_rules() {
        for good in ["tgw.example.net", "a", "[127.0.0.1]", "[2001:db8::1]", "A-1.b"] {
            assert!(is_domain(good), "{good}");
        }
        for bad in ["", ".", "a..b", "-a", "a-", "a_b", "[ca]", "[127.0.0.1", "a@b", "é", &"a".repeat(64), &"a.".repeat(200)] {
            assert!(!is_domain(bad), "{bad}");
        }
        assert!(is_identifier("ca-1.east_2") && !is_identifier("auto") && !is_identifier("") && !is_identifier("a b"));
        assert!(is_log_filter("info,tollgate::host=debug") && !is_log_filter("") && !is_log_filter("tollgate=loud"));
    }
}
