//! Parameters of events and signals: what a request may carry and what it means; anything else is refused with 538 (PKG-08).

use super::{ChannelKind, EventId, SignalClass, find_item, find_package, packages};
use crate::proto::base::HexId;
use crate::proto::codec::mgcp::{ConnectionRef, Parameter, ParameterList, ParameterValue};

/// The longest digit string of `sup` and `inf`, in symbols.
pub const DIGITS_MAX: usize = 40;
/// The most members of a signal list.
pub const LIST_MAX: usize = 32;

/// The parameters do not fit: 538.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadParameters;

/// What a request for an event may say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Nothing.
    None,
    /// A number from the first to the second; without one the third is meant, and without that it is compulsory.
    Number(u32, u32, Option<u32>),
    /// A pattern that both ends were provisioned with (G/pat): there is none, so nothing fits.
    Pattern,
    /// `dg=`, `to=` and `su=` of D/DD.
    ToneDuration,
    /// A number of seconds and `st=` of R/rto.
    Silence,
}

/// What a signal may say beside `+`, `-` and `to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// Nothing.
    None,
    /// A sign, though it is not an OO signal (T/bl as version 0 had it).
    Sign,
    /// A number, as for events.
    Number(u32, u32, Option<u32>),
    /// As for events.
    Pattern,
    /// `dg=` of D/DD.
    ToneDuration,
    /// `dg=` of D/DO.
    Tone,
    /// A connection or a wildcard for one (G/rbk).
    Connection,
    /// `in=` and `out=` of T/ct.
    Transponder,
    /// Signals with their parameters (SL/s).
    List,
    /// MF digits (MD/inf).
    DigitsMf,
    /// `addr` of MF digits.
    SetupMf,
    /// `addr` of keys.
    SetupDtmf,
    /// `ct` and `id`, perhaps `ca` and `addr`.
    SetupFeatureGroupD,
    /// `id` and `addr`.
    SetupOperator,
}

/// What a request for an event asks for in particular.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventParameters {
    /// Nothing in particular.
    None,
    /// This number.
    Number(u32),
    /// A tone of some length (D/DD).
    ToneDuration {
        /// The key; `None`: any, `X`: any digit.
        key: Option<u8>,
        /// Reported when it has lasted so long, in ms; `None`: at its end.
        ms: Option<u32>,
        /// Whether the digit is kept off the connections.
        suppress: bool,
    },
    /// Silence on a connection (R/rto).
    Silence {
        /// For so long, in seconds.
        seconds: u16,
        /// Measured from the next RTCP packet on, not from now.
        after_report: bool,
    },
}

/// What a signal is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignalParameters {
    /// Whether it is turned on; only OO signals are ever turned off.
    pub on: bool,
    /// `to`, in ms; 0: it never times out.
    pub time_out_ms: Option<u32>,
    /// What it is told in particular.
    pub detail: Detail,
}

/// What a signal is told in particular.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// Nothing.
    None,
    /// This number.
    Number(u32),
    /// This key.
    Tone(u8),
    /// On this connection of the endpoint.
    Connection(ConnectionRef),
    /// Answer co1 with co2 (true) or co2 with co1.
    Transponder {
        /// Which comes in.
        co1_in: bool,
    },
    /// The signals of a list; read them with [`members`].
    List,
    /// Digits; read them with [`Digits`] or [`setup`].
    Digits,
}

impl EventId {
    /// What the parameters of a request for this event say.
    pub fn event_parameters(self, list: Option<ParameterList<'_>>) -> Result<EventParameters, BadParameters> {
        let rule = self.event().ok_or(BadParameters)?.parameters;
        match rule {
            Event::None => nothing(list).map(|()| EventParameters::None),
            Event::Number(low, high, default) => {
                let mut number = None;
                each(list, |parameter| match parameter {
                    Parameter::Value(value) if number.is_none() => {
                        number = Some(number_of(value, low, high)?);
                        Ok(())
                    }
                    _ => Err(BadParameters),
                })?;
                number.or(default).map(EventParameters::Number).ok_or(BadParameters)
            }
            Event::Pattern => Err(BadParameters),
            Event::ToneDuration => {
                let (mut key, mut ms, mut suppress) = (None, None, None);
                each(list, |parameter| {
                    let (name, value) = named(parameter)?;
                    match lower(name) {
                        [b'd', b'g', 0] if key.is_none() => key = Some(key_of(value, true)?),
                        [b't', b'o', 0] if ms.is_none() => ms = Some(number_of(value, 40, 60_000)?),
                        [b's', b'u', 0] if suppress.is_none() => suppress = Some(either(value, b"true", b"false")?),
                        _ => return Err(BadParameters),
                    }
                    Ok(())
                })?;
                Ok(EventParameters::ToneDuration { key, ms, suppress: suppress.unwrap_or(false) })
            }
            Event::Silence => {
                let (mut seconds, mut after_report) = (None, None);
                each(list, |parameter| match parameter {
                    Parameter::Value(value) if seconds.is_none() => {
                        seconds = Some(number_of(value, 1, 65_535)? as u16);
                        Ok(())
                    }
                    _ => {
                        let (name, value) = named(parameter)?;
                        if lower(name) != [b's', b't', 0] || after_report.is_some() {
                            return Err(BadParameters);
                        }
                        after_report = Some(either(value, b"ra", b"im")?);
                        Ok(())
                    }
                })?;
                Ok(EventParameters::Silence { seconds: seconds.unwrap_or(60), after_report: after_report.unwrap_or(false) })
            }
        }
    }

    /// What the parameters of this signal say; `kind` decides which members a signal list may have.
    pub fn signal_parameters(self, list: Option<ParameterList<'_>>, kind: ChannelKind) -> Result<SignalParameters, BadParameters> {
        let traits = self.signal().ok_or(BadParameters)?;
        let signed = matches!(traits.class, SignalClass::OnOff) || traits.parameters == Signal::Sign;
        let timed = matches!(traits.class, SignalClass::TimeOut { variable: false, .. }) && self.package().package().version > 0;
        let mut reader = Reader { rule: traits.parameters, kind, detail: None, pair: None, given: [false; 4] };
        let (mut on, mut time_out_ms) = (None, None);
        each(list, |parameter| {
            if let (true, Parameter::Value(value)) = (signed && on.is_none(), parameter)
                && (value.is(b"+") || value.is(b"-"))
            {
                on = Some(value.is(b"+"));
                return Ok(());
            }
            if let (true, Ok((name, value))) = (timed && time_out_ms.is_none(), named(parameter))
                && lower(name) == [b't', b'o', 0]
            {
                let low_high = if traits.parameters == Signal::ToneDuration { (50, 60_000) } else { (0, 999_999_999) };
                time_out_ms = Some(number_of(value, low_high.0, low_high.1)?);
                return Ok(());
            }
            reader.take(parameter)
        })?;
        Ok(SignalParameters { on: on.unwrap_or(true), time_out_ms, detail: reader.end()? })
    }
}

/// Reads what a signal says beside sign and time-out.
struct Reader {
    rule: Signal,
    kind: ChannelKind,
    detail: Option<Detail>,
    /// `in` and `out` of T/ct: whether each is co1.
    pair: Option<(Option<bool>, Option<bool>)>,
    /// `ct`, `ca`, `id`, `addr`.
    given: [bool; 4],
}

impl Reader {
    fn take(&mut self, parameter: Parameter<'_>) -> Result<(), BadParameters> {
        match self.rule {
            Signal::None | Signal::Sign | Signal::Pattern => Err(BadParameters),
            Signal::Number(low, high, _) => {
                let Parameter::Value(value) = parameter else { return Err(BadParameters) };
                self.set(Detail::Number(number_of(value, low, high)?))
            }
            Signal::ToneDuration | Signal::Tone => {
                let (name, value) = named(parameter)?;
                if lower(name) != [b'd', b'g', 0] {
                    return Err(BadParameters);
                }
                self.set(Detail::Tone(key_of(value, false)?))
            }
            Signal::Connection => {
                let Parameter::Value(value) = parameter else { return Err(BadParameters) };
                let text = bounded(value).ok_or(BadParameters)?;
                self.set(Detail::Connection(match text.as_slice() {
                    b"*" => ConnectionRef::All,
                    b"$" => ConnectionRef::Current,
                    id => ConnectionRef::Id(HexId::parse(id).ok_or(BadParameters)?),
                }))
            }
            Signal::Transponder => {
                let (name, value) = named(parameter)?;
                let co1 = either(value, b"co1", b"co2")?;
                let (input, output) = self.pair.get_or_insert((None, None));
                let place = match lower(name) {
                    [b'i', b'n', 0] => input,
                    [b'o', b'u', b't'] => output,
                    _ => return Err(BadParameters),
                };
                if place.replace(co1).is_some() { Err(BadParameters) } else { Ok(()) }
            }
            Signal::List => {
                member(parameter, self.kind)?;
                self.detail = Some(Detail::List);
                Ok(())
            }
            Signal::DigitsMf => {
                let Parameter::Value(value) = parameter else { return Err(BadParameters) };
                mf_symbol(value).ok_or(BadParameters)?;
                self.detail = Some(Detail::Digits);
                Ok(())
            }
            Signal::SetupMf | Signal::SetupDtmf | Signal::SetupFeatureGroupD | Signal::SetupOperator => {
                let Parameter::Named { name, values } = parameter else { return Err(BadParameters) };
                let part = SetupPart::named(name).ok_or(BadParameters)?;
                let seen = self.given.get_mut(part as usize).ok_or(BadParameters)?;
                if std::mem::replace(seen, true) {
                    return Err(BadParameters);
                }
                match part {
                    SetupPart::Ct => access_type(values).map(|_| ()),
                    _ if self.rule == Signal::SetupDtmf => Digits::keys(values).map(|_| ()),
                    _ => Digits::mf(values).map(|_| ()),
                }
            }
        }
    }

    fn set(&mut self, detail: Detail) -> Result<(), BadParameters> {
        if self.detail.replace(detail).is_some() { Err(BadParameters) } else { Ok(()) }
    }

    fn end(self) -> Result<Detail, BadParameters> {
        let [ct, ca, id, addr] = self.given;
        match (self.rule, self.detail) {
            (Signal::None | Signal::Sign, _) => Ok(Detail::None),
            (Signal::Number(_, _, default), detail) => detail.or(default.map(Detail::Number)).ok_or(BadParameters),
            (Signal::Transponder, _) => match self.pair {
                Some((Some(co1_in), Some(co1_out))) if co1_in != co1_out => Ok(Detail::Transponder { co1_in }),
                _ => Err(BadParameters),
            },
            // Which of the four parts must, may and may not be there (RFC 3064 table 13).
            (Signal::SetupMf | Signal::SetupDtmf, _) => (addr && !ct && !ca && !id).then_some(Detail::Digits).ok_or(BadParameters),
            (Signal::SetupOperator, _) => (addr && id && !ct && !ca).then_some(Detail::Digits).ok_or(BadParameters),
            (Signal::SetupFeatureGroupD, _) => (ct && id).then_some(Detail::Digits).ok_or(BadParameters),
            (_, detail) => detail.ok_or(BadParameters),
        }
    }
}

/// A part of `sup`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SetupPart {
    Ct,
    Ca,
    Id,
    Addr,
}

impl SetupPart {
    fn named(name: &[u8]) -> Option<SetupPart> {
        let parts: [(&[u8], SetupPart); 4] =
            [(b"ct", SetupPart::Ct), (b"ca", SetupPart::Ca), (b"id", SetupPart::Id), (b"addr", SetupPart::Addr)];
        parts.into_iter().find(|(text, _)| text.eq_ignore_ascii_case(name)).map(|(_, part)| part)
    }
}

/// A digit string to send: keys as they are, of MF symbols the second character of KP and ST is folded in (see [`MfDigit`]).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digits {
    symbols: [u8; DIGITS_MAX],
    count: u8,
}

/// KP, KP', KP'' and ST, ST', ST'', ST''' as one byte each: what a digit string of an MF trunk holds beside `0` to `9`.
pub struct MfDigit;

impl MfDigit {
    /// KP; KP' and KP'' follow.
    pub const KP: u8 = b'k';
    /// ST; ST', ST'' and ST''' follow.
    pub const ST: u8 = b's';

    /// The symbol as MGCP writes it: one character, or `K0` and so on as two.
    pub fn name(symbol: u8) -> &'static str {
        const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        const KP: [&str; 3] = ["k0", "k1", "k2"];
        const ST: [&str; 4] = ["s0", "s1", "s2", "s3"];
        let among = |names: &'static [&'static str], first: u8| names.get(usize::from(symbol.wrapping_sub(first))).copied();
        among(&ST, MfDigit::ST).or(among(&KP, MfDigit::KP)).or(among(&DIGITS, b'0')).unwrap_or("")
    }

    /// Whether it ends a string.
    pub const fn is_st(symbol: u8) -> bool {
        matches!(symbol, b's'..=b'v')
    }

    /// Whether it begins a string.
    pub const fn is_kp(symbol: u8) -> bool {
        matches!(symbol, b'k'..=b'm')
    }
}

impl Digits {
    /// The most there can be.
    pub const MAX: usize = DIGITS_MAX;

    /// None.
    pub const NONE: Digits = Digits { symbols: [0; DIGITS_MAX], count: 0 };

    /// The symbols in order.
    pub fn as_slice(&self) -> &[u8] {
        self.symbols.get(..usize::from(self.count)).unwrap_or_default()
    }

    /// Adds one; false when it is full.
    pub fn push(&mut self, symbol: u8) -> bool {
        match self.symbols.get_mut(usize::from(self.count)) {
            Some(place) => {
                *place = symbol;
                self.count += 1;
                true
            }
            None => false,
        }
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A comma separated list of MF symbols, at least one.
    pub fn mf(list: ParameterList<'_>) -> Result<Digits, BadParameters> {
        Digits::read(list, mf_symbol)
    }

    /// A comma separated list of keys, at least one.
    pub fn keys(list: ParameterList<'_>) -> Result<Digits, BadParameters> {
        Digits::read(list, |value| key_of(value, false).ok())
    }

    fn read(list: ParameterList<'_>, symbol: impl Fn(ParameterValue<'_>) -> Option<u8>) -> Result<Digits, BadParameters> {
        let mut digits = Digits::NONE;
        for parameter in list.iter() {
            let Parameter::Value(value) = parameter else { return Err(BadParameters) };
            if !digits.push(symbol(value).ok_or(BadParameters)?) {
                return Err(BadParameters);
            }
        }
        if digits.is_empty() { Err(BadParameters) } else { Ok(digits) }
    }
}

impl std::fmt::Debug for Digits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.as_slice()))
    }
}

/// What `sup` tells the trunk to send (RFC 3064 2.7, tables 13 to 16).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// `ct(nta)`, EAIN; `ct(nda)`, EANA, is false. `None` without `ct`.
    pub tandem: Option<bool>,
    /// `ca`.
    pub country: Digits,
    /// `id`.
    pub identity: Digits,
    /// `addr`.
    pub address: Digits,
}

/// What the parameters of a `sup`, which were checked, say. `keys`: its digits are DTMF.
pub fn setup(list: ParameterList<'_>, keys: bool) -> Result<Setup, BadParameters> {
    let mut setup = Setup { tandem: None, country: Digits::NONE, identity: Digits::NONE, address: Digits::NONE };
    for parameter in list.iter() {
        let Parameter::Named { name, values } = parameter else { return Err(BadParameters) };
        let digits = || if keys { Digits::keys(values) } else { Digits::mf(values) };
        match SetupPart::named(name).ok_or(BadParameters)? {
            SetupPart::Ct => setup.tandem = Some(access_type(values)?),
            SetupPart::Ca => setup.country = digits()?,
            SetupPart::Id => setup.identity = digits()?,
            SetupPart::Addr => setup.address = digits()?,
        }
    }
    Ok(setup)
}

/// `nta` (true) or `nda`.
fn access_type(values: ParameterList<'_>) -> Result<bool, BadParameters> {
    let mut found = None;
    each(Some(values), |parameter| match parameter {
        Parameter::Value(value) if found.is_none() => {
            found = Some(either(value, b"nta", b"nda")?);
            Ok(())
        }
        _ => Err(BadParameters),
    })?;
    found.ok_or(BadParameters)
}

/// The members of a signal list, each with its parameters, read and as they were written.
pub fn members<'a>(list: ParameterList<'a>, kind: ChannelKind) -> impl Iterator<Item = (EventId, SignalParameters, &'a [u8])> + use<'a> {
    list.iter().map_while(move |parameter| {
        let (signal, told) = member(parameter, kind).ok()?;
        let text = match parameter {
            Parameter::Named { values, .. } => values.as_bytes(),
            Parameter::Value(_) => &[],
        };
        Some((signal, told, text))
    })
}

fn member(parameter: Parameter<'_>, kind: ChannelKind) -> Result<(EventId, SignalParameters), BadParameters> {
    let (text, values) = match parameter {
        Parameter::Value(value) => (bounded(value).ok_or(BadParameters)?, None),
        Parameter::Named { name, values } => {
            let mut text = Text::EMPTY;
            name.iter().try_for_each(|&byte| text.push(byte)).ok_or(BadParameters)?;
            (text, Some(values))
        }
    };
    let text = text.as_slice();
    let slash = text.iter().position(|&b| b == b'/').ok_or(BadParameters)?;
    let package = find_package(text.get(..slash).ok_or(BadParameters)?).filter(|id| packages(kind).contains(id)).ok_or(BadParameters)?;
    let signal = find_item(package, text.get(slash + 1..).ok_or(BadParameters)?).ok_or(BadParameters)?;
    let traits = signal.signal().ok_or(BadParameters)?;
    // What stays on cannot be waited for, a list in a list would be a way to write endless ones, and a member has no connection.
    let allowed = !matches!(traits.class, SignalClass::OnOff) && !matches!(traits.parameters, Signal::List | Signal::Connection);
    if !allowed || traits.place == super::Place::Connection {
        return Err(BadParameters);
    }
    Ok((signal, signal.signal_parameters(values, kind)?))
}

/// A short copy of a value without its quotes.
struct Text {
    bytes: [u8; 40],
    count: usize,
}

impl Text {
    const EMPTY: Text = Text { bytes: [0; 40], count: 0 };

    fn push(&mut self, byte: u8) -> Option<()> {
        *self.bytes.get_mut(self.count)? = byte;
        self.count += 1;
        Some(())
    }

    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.count).unwrap_or_default()
    }
}

fn bounded(value: ParameterValue<'_>) -> Option<Text> {
    let mut text = Text::EMPTY;
    value.bytes().try_for_each(|byte| text.push(byte))?;
    Some(text)
}

/// Every parameter of a list, at most [`LIST_MAX`].
fn each<'a>(
    list: Option<ParameterList<'a>>,
    mut take: impl FnMut(Parameter<'a>) -> Result<(), BadParameters>,
) -> Result<(), BadParameters> {
    for (n, parameter) in list.into_iter().flat_map(|list| list.iter()).enumerate() {
        if n >= LIST_MAX {
            return Err(BadParameters);
        }
        take(parameter)?;
    }
    Ok(())
}

fn nothing(list: Option<ParameterList<'_>>) -> Result<(), BadParameters> {
    each(list, |_| Err(BadParameters))
}

/// `name=value`.
fn named<'a>(parameter: Parameter<'a>) -> Result<(&'a [u8], ParameterValue<'a>), BadParameters> {
    let Parameter::Named { name, values } = parameter else { return Err(BadParameters) };
    let mut values = values.iter();
    match (values.next(), values.next()) {
        (Some(Parameter::Value(value)), None) => Ok((name, value)),
        _ => Err(BadParameters),
    }
}

/// A name of at most three letters in lower case.
fn lower(name: &[u8]) -> [u8; 3] {
    let mut short = [0; 3];
    if name.len() <= short.len() {
        short.iter_mut().zip(name).for_each(|(place, byte)| *place = byte.to_ascii_lowercase());
    }
    short
}

fn number_of(value: ParameterValue<'_>, low: u32, high: u32) -> Result<u32, BadParameters> {
    value.decimal().filter(|number| (low..=high).contains(number)).ok_or(BadParameters)
}

/// A key of a telephone in upper case; `wild` allows `X`.
fn key_of(value: ParameterValue<'_>, wild: bool) -> Result<u8, BadParameters> {
    let mut bytes = value.bytes();
    match (bytes.next().map(|byte| byte.to_ascii_uppercase()), bytes.next()) {
        (Some(key @ (b'0'..=b'9' | b'*' | b'#' | b'A'..=b'D')), None) => Ok(key),
        (Some(b'X'), None) if wild => Ok(b'X'),
        _ => Err(BadParameters),
    }
}

/// An MF symbol as one byte (see [`MfDigit`]).
fn mf_symbol(value: ParameterValue<'_>) -> Option<u8> {
    let mut bytes = value.bytes().map(|byte| byte.to_ascii_lowercase());
    match (bytes.next()?, bytes.next(), bytes.next()) {
        (digit @ b'0'..=b'9', None, None) => Some(digit),
        (b'k', Some(place @ b'0'..=b'2'), None) => Some(MfDigit::KP + (place - b'0')),
        (b's', Some(place @ b'0'..=b'3'), None) => Some(MfDigit::ST + (place - b'0')),
        _ => None,
    }
}

/// True for the first word, false for the second.
fn either(value: ParameterValue<'_>, first: &[u8], second: &[u8]) -> Result<bool, BadParameters> {
    if value.is(first) { Ok(true) } else { value.is(second).then_some(false).ok_or(BadParameters) }
}
