//! How one value is written in the tuning file: reading it, saying what is allowed, writing it back.
//!
//! Every type a setting can have implements [`Written`]; the register in `defaults` names the type, and the reader, the range check,
//! the error text, `docs/configuration.md` and the reload difference all follow from it. Durations and sizes are strings with a
//! unit (`"200ms"`, `"4MiB"`), so that nobody has to remember which unit a bare number has.

use std::net::{IpAddr, SocketAddr};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::time::Duration;

use toml_edit::Value;

/// What is wrong with one value: where, and what would be right.
pub(super) struct Fault {
    /// Behind the setting's key: `[2]` for the second item of a list, else empty.
    pub path: String,
    /// The bytes of the file.
    pub span: Option<Range<usize>>,
    /// Completes the sentence "must be ...".
    pub allowed: String,
}

/// A type a setting can have.
pub(super) trait Written: Sized + PartialEq {
    /// What the register says beside the type: a range, a default port, a rule.
    type Allowed;
    /// The name of the type in the documentation.
    const KIND: &'static str;

    /// The values allowed, completing the sentence "must be ...".
    fn allowed(allowed: &Self::Allowed) -> String;

    /// The value, if it is allowed.
    fn accept(value: &Value, allowed: &Self::Allowed) -> Option<Self>;

    /// As it is written in the file.
    fn show(&self) -> String;

    /// The value, or every fault in it.
    fn read(value: &Value, allowed: &Self::Allowed) -> Result<Self, Vec<Fault>> {
        Self::accept(value, allowed).ok_or_else(|| vec![fault(value, Self::allowed(allowed))])
    }
}

fn fault(value: &Value, allowed: String) -> Fault {
    Fault { path: String::new(), span: value.span(), allowed }
}

impl Written for bool {
    type Allowed = ();
    const KIND: &'static str = "switch";

    fn allowed(_: &()) -> String {
        "true or false".into()
    }

    fn accept(value: &Value, _: &()) -> Option<bool> {
        value.as_bool()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

macro_rules! counts {
    ($($type:ty)+) => {$(
        impl Written for $type {
            type Allowed = RangeInclusive<$type>;
            const KIND: &'static str = "count";

            fn allowed(range: &Self::Allowed) -> String {
                format!("{}..={}", range.start(), range.end())
            }

            fn accept(value: &Value, range: &Self::Allowed) -> Option<$type> {
                <$type>::try_from(value.as_integer()?).ok().filter(|n| range.contains(n))
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )+};
}

counts! { u8 u16 u32 }

impl Written for Duration {
    type Allowed = RangeInclusive<Duration>;
    const KIND: &'static str = "duration";

    fn allowed(range: &Self::Allowed) -> String {
        format!("{}..={}", duration_text(*range.start()), duration_text(*range.end()))
    }

    fn accept(value: &Value, range: &Self::Allowed) -> Option<Duration> {
        parse_duration(value.as_str()?).filter(|d| range.contains(d))
    }

    fn show(&self) -> String {
        format!("\"{}\"", duration_text(*self))
    }
}

/// Decimal number and unit: `us`, `ms`, `s`, `min` or `h`, exact to the nanosecond.
fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let unit_ns: u64 = match unit.trim_start_matches(' ') {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let whole_ns = whole.parse::<u64>().ok()?.checked_mul(unit_ns)?;
    let scaled = fraction.parse::<u64>().ok()?.checked_mul(unit_ns)?;
    let divisor = 10u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    scaled.is_multiple_of(divisor).then_some(())?;
    whole_ns.checked_add(scaled / divisor).map(Duration::from_nanos)
}

/// The shortest exact form: `2.5s`, `200ms`, `50us`.
pub(super) fn duration_text(duration: Duration) -> String {
    let us = duration.as_micros();
    if us == 0 {
        return "0s".into();
    }
    match us {
        1_000_000.. if us.is_multiple_of(1_000_000) => format!("{}s", us / 1_000_000),
        1_000_000.. if us.is_multiple_of(1_000) => {
            format!("{}s", format!("{}.{:03}", us / 1_000_000, us / 1_000 % 1_000).trim_end_matches('0'))
        }
        _ if us.is_multiple_of(1_000) => format!("{}ms", us / 1_000),
        _ => format!("{us}us"),
    }
}

/// A number of octets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bytes(pub u64);

impl std::fmt::Display for Bytes {
    /// The largest unit that is exact: `4MiB`, `1536KiB`, `100B`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (unit, name) = SIZE_UNITS.into_iter().rev().find(|(unit, _)| self.0 != 0 && self.0.is_multiple_of(*unit)).unwrap_or((1, "B"));
        write!(f, "{}{name}", self.0 / unit)
    }
}

const SIZE_UNITS: [(u64, &str); 4] = [(1, "B"), (1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB")];

impl Written for Bytes {
    type Allowed = RangeInclusive<Bytes>;
    const KIND: &'static str = "size";

    fn allowed(range: &Self::Allowed) -> String {
        format!("{}..={}", range.start(), range.end())
    }

    fn accept(value: &Value, range: &Self::Allowed) -> Option<Bytes> {
        let text = value.as_str()?;
        let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
        let (unit, _) = SIZE_UNITS.into_iter().find(|(_, name)| *name == unit.trim_start_matches(' '))?;
        number.parse::<u64>().ok()?.checked_mul(unit).map(Bytes).filter(|size| range.contains(size))
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

/// What a text must look like.
pub(super) struct TextRule {
    /// Completes the sentence "must be ...".
    pub allowed: &'static str,
    /// Whether a text does.
    pub accepts: fn(&str) -> bool,
}

impl Written for String {
    type Allowed = &'static TextRule;
    const KIND: &'static str = "text";

    fn allowed(rule: &Self::Allowed) -> String {
        rule.allowed.into()
    }

    fn accept(value: &Value, rule: &Self::Allowed) -> Option<String> {
        value.as_str().filter(|text| (rule.accepts)(text)).map(str::to_owned)
    }

    fn show(&self) -> String {
        quoted(self)
    }
}

impl Written for PathBuf {
    type Allowed = ();
    const KIND: &'static str = "path";

    fn allowed(_: &()) -> String {
        "an absolute path of at most 107 octets".into()
    }

    /// 107: what the address of a Unix socket holds (unix(7), `sun_path` less its final zero).
    fn accept(value: &Value, _: &()) -> Option<PathBuf> {
        value.as_str().filter(|text| text.starts_with('/') && text.len() <= 107 && !text.contains('\0')).map(PathBuf::from)
    }

    fn show(&self) -> String {
        quoted(&self.to_string_lossy())
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

impl Written for IpAddr {
    type Allowed = ();
    const KIND: &'static str = "address";

    fn allowed(_: &()) -> String {
        "an IPv4 or IPv6 address".into()
    }

    fn accept(value: &Value, _: &()) -> Option<IpAddr> {
        parse_ip(value.as_str()?)
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

/// An address with or without brackets.
fn parse_ip(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok()
}

/// The port of an address written without one.
pub(super) struct DefaultPort(pub u16);

impl Written for SocketAddr {
    type Allowed = DefaultPort;
    const KIND: &'static str = "address and port";

    fn allowed(port: &DefaultPort) -> String {
        format!("an address with an optional port 1..=65535 (else {0}), such as \"192.0.2.1:{0}\" or \"[2001:db8::1]:{0}\"", port.0)
    }

    fn accept(value: &Value, port: &DefaultPort) -> Option<SocketAddr> {
        let text = value.as_str()?;
        let address = text.parse().ok().or_else(|| parse_ip(text).map(|ip| SocketAddr::new(ip, port.0)))?;
        (address.port() != 0).then_some(address)
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

impl<T: Written> Written for Vec<T> {
    type Allowed = (RangeInclusive<usize>, T::Allowed);
    const KIND: &'static str = "list";

    fn allowed((count, item): &Self::Allowed) -> String {
        format!("a list of {}..={} different items, each {}", count.start(), count.end(), T::allowed(item))
    }

    fn accept(value: &Value, allowed: &Self::Allowed) -> Option<Vec<T>> {
        Self::read(value, allowed).ok()
    }

    fn show(&self) -> String {
        format!("[{}]", self.iter().map(T::show).collect::<Vec<_>>().join(", "))
    }

    /// Names every bad item by its place, the first being `[1]`.
    fn read(value: &Value, allowed: &Self::Allowed) -> Result<Vec<T>, Vec<Fault>> {
        let whole = || vec![fault(value, Self::allowed(allowed))];
        let array = value.as_array().filter(|array| allowed.0.contains(&array.len())).ok_or_else(whole)?;
        let (mut items, mut faults) = (Vec::with_capacity(array.len()), Vec::new());
        for (place, item) in array.iter().enumerate() {
            let path = format!("[{}]", place + 1);
            match T::read(item, &allowed.1) {
                Ok(good) if items.contains(&good) => faults.push(Fault { path, ..fault(item, "listed once".into()) }),
                Ok(good) => items.push(good),
                Err(bad) => faults.extend(bad.into_iter().map(|f| Fault { path: format!("{path}{}", f.path), ..f })),
            }
        }
        if faults.is_empty() { Ok(items) } else { Err(faults) }
    }
}

/// A value that may be left to the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Auto<T> {
    /// `"auto"`: the program decides.
    Auto,
    /// The operator decided.
    Fixed(T),
}

impl<T> Auto<T> {
    /// The operator's value, if there is one.
    pub fn fixed(&self) -> Option<&T> {
        match self {
            Auto::Auto => None,
            Auto::Fixed(value) => Some(value),
        }
    }
}

impl<T: Written> Written for Auto<T> {
    type Allowed = T::Allowed;
    const KIND: &'static str = T::KIND;

    fn allowed(allowed: &Self::Allowed) -> String {
        format!("\"auto\" or {}", T::allowed(allowed))
    }

    fn accept(value: &Value, allowed: &Self::Allowed) -> Option<Auto<T>> {
        Self::read(value, allowed).ok()
    }

    fn show(&self) -> String {
        self.fixed().map_or_else(|| "\"auto\"".into(), T::show)
    }

    fn read(value: &Value, allowed: &Self::Allowed) -> Result<Auto<T>, Vec<Fault>> {
        match value.as_str() {
            Some("auto") => Ok(Auto::Auto),
            Some(_) => T::accept(value, allowed).map(Auto::Fixed).ok_or_else(|| vec![fault(value, Self::allowed(allowed))]),
            None if value.is_array() => T::read(value, allowed).map(Auto::Fixed),
            None => T::accept(value, allowed).map(Auto::Fixed).ok_or_else(|| vec![fault(value, Self::allowed(allowed))]),
        }
    }
}

/// `None` is written `"off"`.
impl<T: Written> Written for Option<T> {
    type Allowed = T::Allowed;
    const KIND: &'static str = T::KIND;

    fn allowed(allowed: &Self::Allowed) -> String {
        format!("\"off\" or {}", T::allowed(allowed))
    }

    fn accept(value: &Value, allowed: &Self::Allowed) -> Option<Option<T>> {
        if value.as_str() == Some("off") { Some(None) } else { T::accept(value, allowed).map(Some) }
    }

    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "\"off\"".into(), T::show)
    }
}

/// Enumerations: one word for each variant.
macro_rules! words {
    ($($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $help:literal])+ $variant:ident = $word:literal,)+ }
       $(refused { $(#[doc = $why:literal])+ $unfit:ident = $known:literal })?)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum $name { $($(#[doc = $help])+ $variant,)+ $($(#[doc = $why])+ $unfit,)? }

        impl $name {
            /// The word of the tuning file.
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)+ $($name::$unfit => $known,)? }
            }
        }

        impl $crate::config::value::Written for $name {
            type Allowed = ();
            const KIND: &'static str = "word";

            fn allowed(_: &()) -> String {
                [$(concat!("\"", $word, "\""),)+].join(" or ")
            }

            fn accept(value: &toml_edit::Value, _: &()) -> Option<$name> {
                match value.as_str()? { $($word => Some($name::$variant),)+ $($known => Some($name::$unfit),)? _ => None }
            }

            fn show(&self) -> String {
                format!("\"{}\"", self.word())
            }
        }
    )+};
}
pub(super) use words;

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        text.parse().unwrap()
    }

    #[test]
    fn durations_have_a_unit_and_are_exact() {
        let cases = [
            ("200ms", 200_000),
            ("2.5s", 2_500_000),
            ("50us", 50),
            ("0s", 0),
            ("1.25ms", 1_250),
            ("2min", 120_000_000),
            ("10 s", 10_000_000),
        ];
        for (text, us) in cases {
            let duration = parse_duration(text).unwrap();
            assert_eq!(duration, Duration::from_micros(us), "{text}");
            assert_eq!(parse_duration(&duration_text(duration)), Some(duration), "{text}");
        }
        for bad in ["", "5", "s", "5 sec", "-5s", "5s ", ".5s", "5.s", "1.2.3s", "99999999999999999999s", "1e3s", "0.0000000001h", "5S"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
        assert_eq!(duration_text(Duration::from_millis(2500)), "2.5s");
    }

    #[test]
    fn sizes_have_a_unit() {
        let range = Bytes(0)..=Bytes(u64::MAX);
        let read = |text: &str| Bytes::accept(&value(text), &range);
        assert_eq!(read("\"4MiB\""), Some(Bytes(4 << 20)));
        assert_eq!(read("\"1536 KiB\"").unwrap().to_string(), "1536KiB");
        assert_eq!(read("\"0B\"").unwrap().to_string(), "0B");
        for bad in ["4096", "\"4\"", "\"4MB\"", "\"-1B\"", "\"99999999999GiB\"", "\"\"", "\"MiB\""] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn addresses_take_a_default_port() {
        let read = |text: &str| SocketAddr::accept(&value(text), &DefaultPort(2727)).map(|a| a.to_string());
        assert_eq!(read("\"192.0.2.1\"").as_deref(), Some("192.0.2.1:2727"));
        assert_eq!(read("\"192.0.2.1:5000\"").as_deref(), Some("192.0.2.1:5000"));
        assert_eq!(read("\"2001:db8::1\"").as_deref(), Some("[2001:db8::1]:2727"));
        assert_eq!(read("\"[2001:db8::1]\"").as_deref(), Some("[2001:db8::1]:2727"));
        assert_eq!(read("\"[2001:db8::1]:9\"").as_deref(), Some("[2001:db8::1]:9"));
        for bad in ["\"\"", "\"ca.example.net\"", "\"192.0.2.1:0\"", "\"192.0.2.1:65536\"", "\"192.0.2.256\"", "5"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn lists_name_each_bad_item() {
        let faults = Vec::<u8>::read(&value("[1, 9, 2, \"x\", 2]"), &(1..=5, 1..=5)).unwrap_err();
        let paths: Vec<_> = faults.iter().map(|f| (f.path.as_str(), f.allowed.as_str())).collect();
        assert_eq!(paths, [("[2]", "1..=5"), ("[4]", "1..=5"), ("[5]", "listed once")]);
        assert!(Vec::<u8>::read(&value("[]"), &(1..=5, 1..=5)).is_err());
    }
}
