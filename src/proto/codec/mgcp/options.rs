//! LocalConnectionOptions and Capabilities (RFC 3435 3.2.2.10, 3.2.2.3; G-LCO-01, -03, -05, -08, -11, -12, -19).
//!
//! Syntax and ranges of values only; what this gateway supports is decided where the connection is made.

use super::format::{self, Format};
use super::refusal::{Fault, Refusal};
use crate::proto::codec::scan::{self, Items};

/// The most items of packages in one `L:` or `B:`.
pub const PACKAGE_OPTIONS_MAX: usize = 8;

/// An inclusive range of the numbers of `p:` (ms) or `b:` (kbit/s), 0..=9999.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The lowest value.
    pub low: u16,
    /// The highest value; equal to `low` when a single value was given.
    pub high: u16,
}

/// `gc:`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gain {
    /// `auto`.
    Auto,
    /// A fixed gain in dB, -9999..=9999.
    Decibels(i16),
}

/// `r:`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reservation {
    /// `g`: guaranteed service.
    Guaranteed,
    /// `cl`: controlled load.
    ControlledLoad,
    /// `be`: best effort.
    BestEffort,
}

/// `k:`; keys are as written, quotes included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encryption<'a> {
    /// `clear:key`.
    Clear(&'a [u8]),
    /// `base64:key`.
    Base64(&'a [u8]),
    /// `uri:where`.
    Uri(&'a [u8]),
}

/// `nt:`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Network<'a> {
    /// `IN`, the Internet.
    Internet,
    /// `ATM`.
    Atm,
    /// `LOCAL`: between two endpoints of this gateway.
    Local,
    /// Any other.
    Other(&'a [u8]),
}

/// The names of a `;` list, such as `a:`, in order of preference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NameList<'a>(&'a [u8]);

impl<'a> NameList<'a> {
    /// One or more names of legal characters.
    fn parse(text: &'a [u8]) -> Option<NameList<'a>> {
        // Names and single semicolons and nothing else, as nearly everybody writes it.
        let mut in_name = false;
        let plain = |&byte: &u8| {
            let fits = if byte == b';' { in_name } else { is_option_byte(byte) };
            in_name = byte != b';';
            fits
        };
        if text.iter().all(plain) && in_name {
            return Some(NameList(text));
        }
        // No legal name holds a quote, so that a semicolon always separates.
        let legal = |name: &[u8]| !name.is_empty() && name.iter().all(|&b| is_option_byte(b));
        NameList(text).iter().all(legal).then_some(NameList(text))
    }

    /// The names in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.0.split(|&b| b == b';').map(scan::trim)
    }

    /// The list as written.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }
}

/// An option `package/name[:value]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PackageOption<'a> {
    /// The package.
    pub package: &'a [u8],
    /// The name inside the package.
    pub name: &'a [u8],
    /// The value as written; empty when there is none.
    pub value: &'a [u8],
}

/// The items of packages in an `L:` or a `B:`, found again when they are asked for: they are rare, and a table of them would have to be
/// moved with every command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PackageOptions<'a> {
    /// The whole parameter.
    pub value: &'a [u8],
    /// How many of its items, read from the first on, belong to packages.
    pub count: u8,
}

impl<'a> PackageOptions<'a> {
    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = PackageOption<'a>> + use<'a> {
        // Without any, the parameter need not be read again.
        let value = if self.count == 0 { &[] } else { self.value };
        let items = Items::new(value, b',').filter_map(|item| {
            let (key, value) = key_and_value(item);
            let slash = key.iter().position(|&b| b == b'/')?;
            Some(PackageOption { package: &key[..slash], name: &key[slash + 1..], value: value.unwrap_or_default() })
        });
        items.take(usize::from(self.count))
    }

    /// Counts the next item, of this key, unless it occurred before or there are too many.
    pub fn add(&mut self, key: &[u8], repeated: Fault, too_many: Fault) -> Result<(), Fault> {
        let slash = key.iter().position(|&b| b == b'/').unwrap_or(0);
        let (package, name) = (&key[..slash], key.get(slash + 1..).unwrap_or_default());
        let same = |other: PackageOption| other.package.eq_ignore_ascii_case(package) && other.name.eq_ignore_ascii_case(name);
        if self.iter().any(same) {
            return Err(repeated);
        }
        if usize::from(self.count) == PACKAGE_OPTIONS_MAX {
            return Err(too_many);
        }
        self.count += 1;
        Ok(())
    }
}

/// The key of an item and what follows its first colon.
#[inline]
pub(super) fn key_and_value(item: &[u8]) -> (&[u8], Option<&[u8]>) {
    match item.iter().position(|&b| b == b':') {
        Some(colon) => (scan::trim_end(&item[..colon]), Some(scan::trim_start(&item[colon + 1..]))),
        None => (item, None),
    }
}

/// The options of an `L:`; what is absent was not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LocalConnectionOptions<'a> {
    /// `a:`, codecs in order of preference.
    pub codecs: Option<NameList<'a>>,
    /// `p:`, packetization period in ms.
    pub period_ms: Option<Range>,
    /// `b:`, bandwidth in kbit/s.
    pub bandwidth_kbps: Option<Range>,
    /// `e:`, echo cancellation.
    pub echo_cancellation: Option<bool>,
    /// `s:`, silence suppression.
    pub silence_suppression: Option<bool>,
    /// `gc:`, gain control.
    pub gain: Option<Gain>,
    /// `t:`, the type of service octet.
    pub type_of_service: Option<u8>,
    /// `r:`, resource reservation.
    pub reservation: Option<Reservation>,
    /// `k:`, the encryption key.
    pub encryption: Option<Encryption<'a>>,
    /// `nt:`, the network type.
    pub network: Option<Network<'a>>,
    packages: PackageOptions<'a>,
    has_formats: bool,
}

impl<'a> LocalConnectionOptions<'a> {
    /// Reads the value of `L:`.
    pub fn parse(value: &'a [u8]) -> Result<LocalConnectionOptions<'a>, Refusal> {
        LocalConnectionOptions::parse_but(value, |_| false)
    }

    /// Reads a value, and passes over options that are not known.
    pub fn parse_known(value: &'a [u8]) -> Result<LocalConnectionOptions<'a>, Refusal> {
        LocalConnectionOptions::parse_but(value, |fault| fault == Fault::OptionUnknown)
    }

    fn parse_but(value: &'a [u8], skips: impl Fn(Fault) -> bool) -> Result<LocalConnectionOptions<'a>, Refusal> {
        let mut options = LocalConnectionOptions { packages: PackageOptions { value, count: 0 }, ..Default::default() };
        for item in Items::new(value, b',') {
            match options.add(item) {
                Err(fault) if !skips(fault) => return Err(Refusal::new(fault, scan::offset_in(value, item))),
                _ => {}
            }
        }
        Ok(options)
    }

    /// The options that belong to packages, in order.
    pub fn packages(&self) -> impl Iterator<Item = PackageOption<'a>> + use<'a> {
        self.packages.iter()
    }

    /// What `fmtp:` and `o-fmtp:` ask for, in order. Read again when they are asked for: they are rare.
    pub fn formats(&self) -> impl Iterator<Item = Format<'a>> + use<'a> {
        format::formats(if self.has_formats { self.packages.value } else { &[] })
    }

    #[inline]
    fn add(&mut self, item: &'a [u8]) -> Result<(), Fault> {
        // The first colon ends the key: `a:image/t38` is no package option.
        let (key, value) = key_and_value(item);
        let given = value.unwrap_or_default();
        match Key::parse(key) {
            Some(Key::Codecs) => once(&mut self.codecs, NameList::parse(given), Fault::OptionCodecs),
            Some(Key::Period) => once(&mut self.period_ms, range(given, Fault::OptionPeriod)?, Fault::OptionPeriod),
            Some(Key::Bandwidth) => once(&mut self.bandwidth_kbps, range(given, Fault::OptionBandwidth)?, Fault::OptionBandwidth),
            Some(Key::Echo) => once(&mut self.echo_cancellation, switch(given), Fault::OptionEcho),
            Some(Key::Silence) => once(&mut self.silence_suppression, switch(given), Fault::OptionSilence),
            Some(Key::Gain) => once(&mut self.gain, gain(given), Fault::OptionGain),
            Some(Key::Service) => once(&mut self.type_of_service, service(given), Fault::OptionService),
            Some(Key::Reservation) => once(&mut self.reservation, reservation(given), Fault::OptionReservation),
            Some(Key::Encryption) => once(&mut self.encryption, encryption(given), Fault::OptionEncryption),
            Some(Key::Network) => once(&mut self.network, network(given), Fault::OptionNetwork),
            None => self.add_extension(key, value),
        }
    }

    fn add_extension(&mut self, key: &'a [u8], value: Option<&'a [u8]>) -> Result<(), Fault> {
        let slash = key.iter().position(|&b| b == b'/');
        match (key, slash) {
            ([b'x' | b'X', b'+', ..], None) => Err(Fault::OptionCritical),
            ([b'x' | b'X', b'-', ..], None) => extension(key, value).then_some(()).ok_or(Fault::OptionMalformed),
            (_, None) if format::key(key).is_some() => {
                self.has_formats = true;
                value.is_some_and(format::is_value).then_some(()).ok_or(Fault::OptionFormat)
            }
            (_, None) if extension(key, value) => Err(Fault::OptionUnknown),
            (_, None) => Err(Fault::OptionMalformed),
            (_, Some(slash)) => {
                if !scan::is_package_name(&key[..slash]) || !extension(&key[slash + 1..], value) {
                    return Err(Fault::OptionMalformed);
                }
                self.packages.add(key, Fault::OptionRepeated, Fault::TooManyOptions)
            }
        }
    }
}

/// Keeps a value that is well-formed and the first of its key (G-LCO-01).
fn once<T>(slot: &mut Option<T>, value: Option<T>, malformed: Fault) -> Result<(), Fault> {
    if slot.is_some() {
        return Err(Fault::OptionRepeated);
    }
    *slot = Some(value.ok_or(malformed)?);
    Ok(())
}

/// The keys of the base protocol.
#[derive(Clone, Copy)]
enum Key {
    Codecs,
    Period,
    Bandwidth,
    Echo,
    Silence,
    Gain,
    Service,
    Reservation,
    Encryption,
    Network,
}

impl Key {
    fn parse(key: &[u8]) -> Option<Key> {
        Some(match key {
            [b'a' | b'A'] => Key::Codecs,
            [b'p' | b'P'] => Key::Period,
            [b'b' | b'B'] => Key::Bandwidth,
            [b'e' | b'E'] => Key::Echo,
            [b's' | b'S'] => Key::Silence,
            [b'g' | b'G', b'c' | b'C'] => Key::Gain,
            [b't' | b'T'] => Key::Service,
            [b'r' | b'R'] => Key::Reservation,
            [b'k' | b'K'] => Key::Encryption,
            [b'n' | b'N', b't' | b'T'] => Key::Network,
            _ => return None,
        })
    }
}

fn range(text: &[u8], malformed: Fault) -> Result<Option<Range>, Fault> {
    let (low, high) = scan::decimal_range(text, 4).ok_or(malformed)?;
    if low > high {
        return Err(Fault::OptionRange);
    }
    // Four digits fit.
    Ok(Some(Range { low: low as u16, high: high as u16 }))
}

fn switch(text: &[u8]) -> Option<bool> {
    if text.eq_ignore_ascii_case(b"on") {
        Some(true)
    } else if text.eq_ignore_ascii_case(b"off") {
        Some(false)
    } else {
        None
    }
}

fn gain(text: &[u8]) -> Option<Gain> {
    if text.eq_ignore_ascii_case(b"auto") {
        return Some(Gain::Auto);
    }
    let decibels = |digits: &[u8]| scan::decimal(digits, 4).map(|n| n as i16);
    Some(Gain::Decibels(match text.strip_prefix(b"-") {
        Some(digits) => -decibels(digits)?,
        None => decibels(text)?,
    }))
}

/// Two hexadecimal digits: one digit is for capabilities only (G-LCO-05).
fn service(text: &[u8]) -> Option<u8> {
    match *text {
        [high, low] => {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            Some((digit(high)? * 16 + digit(low)?) as u8)
        }
        _ => None,
    }
}

fn reservation(text: &[u8]) -> Option<Reservation> {
    match text {
        [b'g' | b'G'] => Some(Reservation::Guaranteed),
        [b'c' | b'C', b'l' | b'L'] => Some(Reservation::ControlledLoad),
        [b'b' | b'B', b'e' | b'E'] => Some(Reservation::BestEffort),
        _ => None,
    }
}

/// `prompt` cannot be used (G-LCO-11).
fn encryption(text: &[u8]) -> Option<Encryption<'_>> {
    let colon = text.iter().position(|&b| b == b':')?;
    let (method, key) = (scan::trim_end(&text[..colon]), scan::trim_start(&text[colon + 1..]));
    let quoted_or = |legal: fn(u8) -> bool| is_quoted(key) || (!key.is_empty() && key.iter().all(|&b| legal(b)));
    if method.eq_ignore_ascii_case(b"clear") {
        quoted_or(is_option_byte).then_some(Encryption::Clear(key))
    } else if method.eq_ignore_ascii_case(b"base64") {
        (!is_quoted(key) && quoted_or(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='))).then_some(Encryption::Base64(key))
    } else if method.eq_ignore_ascii_case(b"uri") {
        // The grammar forgets the colon, without which no URI can be written.
        quoted_or(|b| is_option_byte(b) || b == b':').then_some(Encryption::Uri(key))
    } else {
        None
    }
}

fn network(text: &[u8]) -> Option<Network<'_>> {
    if text.eq_ignore_ascii_case(b"IN") {
        Some(Network::Internet)
    } else if text.eq_ignore_ascii_case(b"ATM") {
        Some(Network::Atm)
    } else if text.eq_ignore_ascii_case(b"LOCAL") {
        Some(Network::Local)
    } else {
        (!text.is_empty() && text.iter().all(|&b| is_option_byte(b))).then_some(Network::Other(text))
    }
}

/// Whether an extension option has a legal name and, if any, a legal value: words or quoted strings between `;`.
pub(super) fn extension(name: &[u8], value: Option<&[u8]>) -> bool {
    let legal_name = (1..=32).contains(&name.len()) && name.iter().all(|&b| is_option_byte(b));
    let legal_value = |value: &[u8]| {
        let legal_item = |item: &[u8]| is_quoted(item) || (!item.is_empty() && item.iter().all(|&b| is_option_byte(b) || b == b':'));
        !value.is_empty() && Items::new(value, b';').all(legal_item)
    };
    legal_name && value.is_none_or(legal_value)
}

fn is_quoted(text: &[u8]) -> bool {
    text.first() == Some(&b'"') && scan::quoted_end(text, 0) == Some(text.len())
}

/// A character of names and words in options.
fn is_option_byte(byte: u8) -> bool {
    const LEGAL: [bool; 256] = {
        let mut legal = [false; 256];
        let mut byte = 0x21;
        while byte <= 0x7e {
            legal[byte] = !matches!(byte as u8, b'"' | b'%' | b'(' | b')' | b',' | b':' | b';' | b'<' | b'>' | b'\\');
            byte += 1;
        }
        legal
    };
    LEGAL[usize::from(byte)]
}

/// Capabilities, as a call agent reads them from an audit: keys and values, in order (G-AUE-14).
#[derive(Clone, Debug)]
pub struct Capabilities<'a>(Items<'a>);

impl<'a> Capabilities<'a> {
    /// The items of the value of one `A:` line.
    pub fn new(value: &'a [u8]) -> Capabilities<'a> {
        Capabilities(Items::new(value, b','))
    }

    /// The names of the first `key:` list: `a` codecs, `v` packages, `m` modes.
    pub fn list(&self, key: &str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let list = self.clone().find(|(name, _)| name.eq_ignore_ascii_case(key.as_bytes()));
        Items::new(list.map_or(&[], |(_, value)| value), b';')
    }
}

impl<'a> Iterator for Capabilities<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (key, value) = key_and_value(self.0.next()?);
        Some((key, value.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<LocalConnectionOptions<'_>, Fault> {
        LocalConnectionOptions::parse(text.as_bytes()).map_err(|refusal| refusal.fault)
    }

    #[test]
    fn all_options() {
        let options = parse(
            "p:10-20 ,  a:pcmu;G729;image/t38, B : 64, e:ON, s:off, gc:-3, t:b8, r:cl, k:clear:\"a,b\", nt:in, x-q:\"a,b\", f/o:1;\"2\"",
        )
        .unwrap();
        assert_eq!(options.period_ms, Some(Range { low: 10, high: 20 }));
        assert_eq!(options.codecs.unwrap().iter().collect::<Vec<_>>(), [&b"pcmu"[..], b"G729", b"image/t38"]);
        assert_eq!(options.bandwidth_kbps, Some(Range { low: 64, high: 64 }));
        assert_eq!((options.echo_cancellation, options.silence_suppression), (Some(true), Some(false)));
        assert_eq!((options.gain, options.type_of_service), (Some(Gain::Decibels(-3)), Some(0xb8)));
        assert_eq!((options.reservation, options.network), (Some(Reservation::ControlledLoad), Some(Network::Internet)));
        assert_eq!(options.encryption, Some(Encryption::Clear(b"\"a,b\"")));
        assert_eq!(options.packages().collect::<Vec<_>>(), [PackageOption { package: b"f", name: b"o", value: b"1;\"2\"" }]);
        assert_eq!(parse(""), Ok(LocalConnectionOptions::default()));
    }

    #[test]
    fn each_option_occurs_once_in_any_case() {
        // G-LCO-01, field bug O11
        for twice in ["p:20, a:PCMU, P:10", "gc:auto,GC:1", "f/o:1,F/O", "nt:IN,nt:IN"] {
            assert_eq!(parse(twice), Err(Fault::OptionRepeated), "{twice}");
        }
    }

    #[test]
    fn unknown_options_are_told_apart() {
        // G-LCO-12
        assert_eq!(parse("x+a:1"), Err(Fault::OptionCritical));
        assert!(parse("x-a:1,x-b").is_ok());
        assert_eq!(parse("qq:1"), Err(Fault::OptionUnknown));
        assert_eq!(parse("v:T"), Err(Fault::OptionUnknown));
        assert_eq!(parse("zz/a:1").unwrap().packages().count(), 1);
        for bad in ["a:PCMU,", ",", ":", "x-:\"", "x-a:", "/a:1", "zz/", "-z/a:1", "a b:1", "x-a:\"b\"c"] {
            assert!(matches!(parse(bad), Err(Fault::OptionMalformed | Fault::OptionUnknown)), "{bad}: {:?}", parse(bad));
        }
    }

    #[test]
    fn values_are_checked() {
        for (bad, fault) in [
            ("a:", Fault::OptionCodecs),
            ("a:PCMU;;G729", Fault::OptionCodecs),
            ("a:PC MU", Fault::OptionCodecs),
            ("p:x", Fault::OptionPeriod),
            ("p:12345", Fault::OptionPeriod),
            ("p", Fault::OptionPeriod),
            ("b:-1", Fault::OptionBandwidth),
            ("b:64-32", Fault::OptionRange),
            ("e:maybe", Fault::OptionEcho),
            ("s:1", Fault::OptionSilence),
            ("gc:+3", Fault::OptionGain),
            ("gc:--3", Fault::OptionGain),
            ("t:5", Fault::OptionService),
            ("t:gg", Fault::OptionService),
            ("r:x", Fault::OptionReservation),
            ("k:prompt", Fault::OptionEncryption),
            ("k:clear:", Fault::OptionEncryption),
            ("k:base64:\"x\"", Fault::OptionEncryption),
            ("nt:", Fault::OptionNetwork),
        ] {
            assert_eq!(parse(bad), Err(fault), "{bad}");
        }
        assert_eq!(parse("k:uri:http://x/y").unwrap().encryption, Some(Encryption::Uri(b"http://x/y")));
        assert_eq!(LocalConnectionOptions::parse(b"p:10, e:x").unwrap_err().offset, 6);
    }

    #[test]
    fn package_options_are_bounded() {
        let list = |n: usize| (0..n).map(|i| format!("zz/a{i}")).collect::<Vec<_>>().join(",");
        assert_eq!(parse(&list(PACKAGE_OPTIONS_MAX)).unwrap().packages().count(), PACKAGE_OPTIONS_MAX);
        assert_eq!(parse(&list(PACKAGE_OPTIONS_MAX + 1)), Err(Fault::TooManyOptions));
    }

    #[test]
    fn capabilities() {
        let capabilities = Capabilities::new(b"a:PCMU;G729, p:10-100, t:1, v:T;D, m:sendonly;inactive, x-foo");
        assert_eq!(capabilities.list("A").collect::<Vec<_>>(), [&b"PCMU"[..], b"G729"]);
        assert_eq!(capabilities.list("m").count(), 2);
        assert_eq!(capabilities.list("k").count(), 0);
        assert_eq!(capabilities.clone().last(), Some((&b"x-foo"[..], &b""[..])));
    }
}
