//! The values of small parameters: modes, identifiers in lists, keywords, counters (RFC 3435 3.2.2 and appendix A).

use super::code::Code;
use super::refusal::Fault;
use crate::proto::base::{Mode, TransactionId};
use crate::proto::codec::scan::{self, Items};

/// Reads a mode; `package/mode` is [`Fault::ModePackage`], anything else unknown [`Fault::ModeUnknown`] (G-CRX-05).
pub fn parse_mode(text: &[u8]) -> Result<Mode, Fault> {
    Mode::parse(text).ok_or_else(|| match text.iter().position(|&b| b == b'/') {
        Some(slash) if scan::is_package_name(&text[..slash]) => Fault::ModePackage,
        _ => Fault::ModeUnknown,
    })
}

/// The ranges of a ResponseAck. Inverted ones and what is no range are left out; nothing is enumerated (G-ACK).
#[derive(Clone, Debug)]
pub struct ConfirmedRanges<'a>(Items<'a>);

impl<'a> ConfirmedRanges<'a> {
    /// The ranges of the value of `K:`.
    pub fn new(value: &'a [u8]) -> ConfirmedRanges<'a> {
        ConfirmedRanges(Items::new(value, b','))
    }
}

impl Iterator for ConfirmedRanges<'_> {
    type Item = (TransactionId, TransactionId);

    /// The lowest and the highest identifier of the next range.
    fn next(&mut self) -> Option<(TransactionId, TransactionId)> {
        self.0.by_ref().find_map(|item| scan::decimal_range(item, 9).filter(|(low, high)| low <= high))
    }
}

/// One thing an audit asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InfoCode<'a> {
    /// A parameter of the base protocol or of the base package.
    Code(Code),
    /// Any other name; to be left out of the response when it is not understood (G-AUE-05).
    Other(&'a [u8]),
}

/// What an audit asks for, in order.
#[derive(Clone, Debug)]
pub struct RequestedInfo<'a>(Items<'a>);

impl<'a> RequestedInfo<'a> {
    /// The codes of the value of `F:`.
    pub fn new(value: &'a [u8]) -> RequestedInfo<'a> {
        RequestedInfo(Items::new(value, b','))
    }
}

impl<'a> Iterator for RequestedInfo<'a> {
    type Item = InfoCode<'a>;

    fn next(&mut self) -> Option<InfoCode<'a>> {
        self.0.next().map(|item| match Code::parse(item) {
            Some(code) => InfoCode::Code(code),
            None => InfoCode::Other(item),
        })
    }
}

/// QuarantineHandling (G-QUA-10, G-QUA-11).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quarantine {
    /// `loop`: more than one Notify for one request; otherwise `step`.
    pub looping: bool,
    /// `discard`: quarantined events are dropped; otherwise `process`.
    pub discard: bool,
}

impl Quarantine {
    /// Reads one keyword of each kind, in either order.
    pub fn parse(value: &[u8]) -> Option<Quarantine> {
        let (mut looping, mut discard) = (None, None);
        for item in Items::new(value, b',') {
            let (slot, on) = match item {
                _ if item.eq_ignore_ascii_case(b"step") => (&mut looping, false),
                _ if item.eq_ignore_ascii_case(b"loop") => (&mut looping, true),
                _ if item.eq_ignore_ascii_case(b"process") => (&mut discard, false),
                _ if item.eq_ignore_ascii_case(b"discard") => (&mut discard, true),
                _ => return None,
            };
            if slot.replace(on).is_some() {
                return None;
            }
        }
        Some(Quarantine { looping: looping.unwrap_or(false), discard: discard.unwrap_or(false) })
    }

    /// The value as it is sent.
    pub const fn name(self) -> &'static str {
        match (self.looping, self.discard) {
            (false, false) => "step,process",
            (false, true) => "step,discard",
            (true, false) => "loop,process",
            (true, true) => "loop,discard",
        }
    }
}

/// ReasonCode: why a connection or an endpoint went (table C-2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReasonCode<'a> {
    /// 0..=999.
    pub code: u16,
    /// The package that defines an 8xx code.
    pub package: Option<&'a [u8]>,
    /// The commentary; may be empty.
    pub text: &'a [u8],
}

impl<'a> ReasonCode<'a> {
    /// Reads `code [/package] [text]`.
    pub fn parse(value: &'a [u8]) -> Option<ReasonCode<'a>> {
        let (code, rest) = scan::word(value);
        if code.len() != 3 {
            return None;
        }
        let code = scan::decimal(code, 3)? as u16;
        let (package, text) = package_and_text(code, rest);
        Some(ReasonCode { code, package, text })
    }
}

/// What follows a response code or a reason code; only 8xx codes name a package.
pub(super) fn package_and_text(code: u16, rest: &[u8]) -> (Option<&[u8]>, &[u8]) {
    if let (800..=899, Some(named)) = (code, rest.strip_prefix(b"/")) {
        let (package, text) = scan::word(named);
        if scan::is_package_name(package) {
            return (Some(package), text);
        }
    }
    (None, rest)
}

/// RestartMethod (G-RSI-01).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RestartMethod<'a> {
    /// Going out of service when the delay has run out.
    Graceful,
    /// Out of service now, connections lost.
    Forced,
    /// Back in service.
    Restart,
    /// Was out of reach of its agent.
    Disconnected,
    /// A graceful one is revoked.
    CancelGraceful,
    /// `package/method`.
    Package(&'a [u8]),
}

impl<'a> RestartMethod<'a> {
    /// Reads a method; `None` for an unknown one.
    pub fn parse(value: &'a [u8]) -> Option<RestartMethod<'a>> {
        const BASE: [RestartMethod<'static>; 5] = [
            RestartMethod::Graceful,
            RestartMethod::Forced,
            RestartMethod::Restart,
            RestartMethod::Disconnected,
            RestartMethod::CancelGraceful,
        ];
        if let Some(method) = BASE.into_iter().find(|method| value.eq_ignore_ascii_case(method.name())) {
            return Some(method);
        }
        let slash = value.iter().position(|&b| b == b'/')?;
        let name = &value[slash + 1..];
        let legal = (1..=32).contains(&name.len()) && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-');
        (scan::is_package_name(&value[..slash]) && legal).then_some(RestartMethod::Package(value))
    }

    /// The method as it is sent.
    pub const fn name(self) -> &'a [u8] {
        match self {
            RestartMethod::Graceful => b"graceful",
            RestartMethod::Forced => b"forced",
            RestartMethod::Restart => b"restart",
            RestartMethod::Disconnected => b"disconnected",
            RestartMethod::CancelGraceful => b"cancel-graceful",
            RestartMethod::Package(name) => name,
        }
    }
}

/// The largest value of a connection parameter: counters stay there (G-STA-01).
pub const COUNTER_MAX: u32 = 999_999_999;

/// ConnectionParameters; what is absent was not reported. Extensions are left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConnectionParameters {
    /// `PS`, packets sent.
    pub packets_sent: Option<u32>,
    /// `OS`, octets sent.
    pub octets_sent: Option<u32>,
    /// `PR`, packets received.
    pub packets_received: Option<u32>,
    /// `OR`, octets received.
    pub octets_received: Option<u32>,
    /// `PL`, packets lost.
    pub packets_lost: Option<u32>,
    /// `JI`, interarrival jitter in ms.
    pub jitter_ms: Option<u32>,
    /// `LA`, latency in ms.
    pub latency_ms: Option<u32>,
}

impl ConnectionParameters {
    /// Reads `name=value` items. A negative value counts as 0, a longer one as [`COUNTER_MAX`]; `None` for what has no `=` or no number.
    pub fn parse(value: &[u8]) -> Option<ConnectionParameters> {
        let mut parameters = ConnectionParameters::default();
        for item in Items::new(value, b',') {
            let equals = item.iter().position(|&b| b == b'=')?;
            let number = counter(scan::trim(&item[equals + 1..]))?;
            let name = scan::trim_end(&item[..equals]);
            let slot = match name {
                [a, b] => match &[a.to_ascii_uppercase(), b.to_ascii_uppercase()] {
                    b"PS" => &mut parameters.packets_sent,
                    b"OS" => &mut parameters.octets_sent,
                    b"PR" => &mut parameters.packets_received,
                    b"OR" => &mut parameters.octets_received,
                    b"PL" => &mut parameters.packets_lost,
                    b"JI" => &mut parameters.jitter_ms,
                    b"LA" => &mut parameters.latency_ms,
                    _ => continue,
                },
                _ => continue,
            };
            *slot = Some(number);
        }
        Some(parameters)
    }
}

fn counter(text: &[u8]) -> Option<u32> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if negative {
        return Some(0);
    }
    Some(scan::decimal(digits, 9).unwrap_or(COUNTER_MAX))
}

/// The code an unknown received response code is treated as (G-RSL-04).
pub fn effective_code(code: u16) -> u16 {
    match code {
        0 | 100 | 101 | 200 | 250 | 400..=407 | 409 | 410 | 500..=541 | 800..=899 => code,
        0..=99 => 0,
        100..=199 => 100,
        200..=299 => 200,
        300..=399 => 521,
        400..=499 => 400,
        _ => 510,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes() {
        // G-MOD-01, G-CRX-05, G-SYN-03
        for mode in Mode::ALL {
            assert_eq!(parse_mode(mode.keyword().to_ascii_uppercase().as_bytes()), Ok(mode));
        }
        assert_eq!(parse_mode(b"foo"), Err(Fault::ModeUnknown));
        assert_eq!(parse_mode(b"zz/foo"), Err(Fault::ModePackage));
        assert_eq!(parse_mode(b"/foo"), Err(Fault::ModeUnknown));
    }

    #[test]
    fn confirmed_ranges_skip_what_is_none() {
        let ranges = |text: &'static str| ConfirmedRanges::new(text.as_bytes()).collect::<Vec<_>>();
        assert_eq!(ranges("6234-6255, 6257,19030 - 19044"), [(6234, 6255), (6257, 6257), (19030, 19044)]);
        assert_eq!(ranges("9-3, x, 5,, 0001234567890, 1-2-3"), [(5, 5)]);
        assert_eq!(ranges(""), []);
    }

    #[test]
    fn requested_info() {
        let info: Vec<_> = RequestedInfo::new(b"A, rc,b/ns , ZZTOP,foo/bar").collect();
        assert_eq!(
            info,
            [
                InfoCode::Code(Code::A),
                InfoCode::Code(Code::RC),
                InfoCode::Code(Code::BNs),
                InfoCode::Other(b"ZZTOP"),
                InfoCode::Other(b"foo/bar")
            ]
        );
    }

    #[test]
    fn quarantine() {
        // G-QUA-11
        assert_eq!(Quarantine::parse(b"Discard, LOOP"), Some(Quarantine { looping: true, discard: true }));
        assert_eq!(Quarantine::parse(b"step"), Some(Quarantine::default()));
        for bad in [&b"foo"[..], b"loop,step", b"loop,loop", b"loop,process,discard", b"loop,"] {
            assert_eq!(Quarantine::parse(bad), None);
        }
        for looping in [false, true] {
            for discard in [false, true] {
                let quarantine = Quarantine { looping, discard };
                assert_eq!(Quarantine::parse(quarantine.name().as_bytes()), Some(quarantine));
            }
        }
    }

    #[test]
    fn reasons_and_methods() {
        let reason = |text: &'static str| ReasonCode::parse(text.as_bytes());
        assert_eq!(reason("900 - Hardware error"), Some(ReasonCode { code: 900, package: None, text: b"- Hardware error" }));
        assert_eq!(reason("801 /BA  x"), Some(ReasonCode { code: 801, package: Some(b"BA"), text: b"x" }));
        assert_eq!(reason("900 /BA"), Some(ReasonCode { code: 900, package: None, text: b"/BA" }));
        assert_eq!((reason("90"), reason("9000"), reason("x00")), (None, None, None));
        assert_eq!(RestartMethod::parse(b"Cancel-Graceful"), Some(RestartMethod::CancelGraceful));
        assert_eq!(RestartMethod::parse(b"x/soft"), Some(RestartMethod::Package(b"x/soft")));
        assert_eq!((RestartMethod::parse(b"soft"), RestartMethod::parse(b"x/")), (None, None));
    }

    #[test]
    fn counters_saturate_and_clamp() {
        // G-STA-01, G-STA-04
        let parameters = ConnectionParameters::parse(b"PS=1245, os=62345,PL=-10, JI=27,LA=48, X-foo=1,pk/x=2,OR=1234567890").unwrap();
        assert_eq!((parameters.packets_sent, parameters.octets_sent, parameters.packets_lost), (Some(1245), Some(62345), Some(0)));
        assert_eq!((parameters.octets_received, parameters.packets_received), (Some(COUNTER_MAX), None));
        assert_eq!(ConnectionParameters::parse(b"PS"), None);
        assert_eq!(ConnectionParameters::parse(b"PS=x"), None);
        assert_eq!(ConnectionParameters::parse(b""), Some(ConnectionParameters::default()));
    }

    #[test]
    fn unknown_response_codes_have_a_meaning() {
        // G-RSL-04
        for (code, meaning) in [
            (0, 0),
            (42, 0),
            (199, 100),
            (250, 250),
            (299, 200),
            (333, 521),
            (408, 400),
            (541, 541),
            (599, 510),
            (777, 510),
            (850, 850),
            (999, 510),
        ] {
            assert_eq!(effective_code(code), meaning, "{code}");
        }
    }
}
