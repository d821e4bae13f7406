//! The parameters of a service change (7.2.8, B.2 serviceChangeDescriptor).

use super::super::fault::{Fault, Refusal};
use super::super::lex::{self, Assigned, Item};
use super::super::name::MessageId;
use super::super::token::Token;
use super::super::value::ParameterValue;
use super::events::is_time;

/// The methods (SC-03 to SC-09).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method<'a> {
    /// Out of service when what is there has ended.
    Graceful,
    /// Out of service at once.
    Forced,
    /// In service after the delay.
    Restart,
    /// Back with the same controller.
    Disconnected,
    /// To another controller.
    HandOff,
    /// From a failed controller, or to a spare gateway.
    Failover,
    /// `X-…` or `X+…`.
    Extension(&'a [u8]),
}

impl Method<'_> {
    /// Its keyword; none for an extension.
    pub const fn token(&self) -> Option<Token> {
        Some(match self {
            Method::Graceful => Token::Graceful,
            Method::Forced => Token::Forced,
            Method::Restart => Token::Restart,
            Method::Disconnected => Token::Disconnected,
            Method::HandOff => Token::HandOff,
            Method::Failover => Token::Failover,
            Method::Extension(_) => return None,
        })
    }

    fn parse(word: &[u8]) -> Option<Method<'_>> {
        Some(match Token::parse(word) {
            Some(Token::Graceful) => Method::Graceful,
            Some(Token::Forced) => Method::Forced,
            Some(Token::Restart) => Method::Restart,
            Some(Token::Disconnected) => Method::Disconnected,
            Some(Token::HandOff) => Method::HandOff,
            Some(Token::Failover) => Method::Failover,
            _ if is_extension(word) => Method::Extension(word),
            _ => return None,
        })
    }
}

/// `X-` or `X+` and 1 to 6 letters or digits (TXT-21).
fn is_extension(word: &[u8]) -> bool {
    matches!(word, [b'x' | b'X', b'-' | b'+', rest @ ..] if (1..=6).contains(&rest.len()) && rest.iter().all(u8::is_ascii_alphanumeric))
}

/// The profile spoken, `name/version` (SC-20).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile<'a> {
    /// Its name, as written; compared without letter case.
    pub name: &'a [u8],
    /// Its version, 0..=99.
    pub version: u8,
}

/// A parameter `X-…` or `X+…` with its value.
#[derive(Clone, Debug)]
pub struct Extension<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its value.
    pub value: ParameterValue<'a>,
}

/// Where later requests of the association go (SC-13, SC-14).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServiceAddress<'a> {
    /// To this port of the same address.
    Port(u16),
    /// There.
    Id(MessageId<'a>),
}

/// A Services descriptor: each parameter at most once, Address and MgcIdToTry never together (SC-01).
#[derive(Clone, Debug, Default)]
pub struct Services<'a> {
    /// The method; always there in a request.
    pub method: Option<Method<'a>>,
    /// The reason, a code and maybe words; always there in a request.
    pub reason: Option<(u16, &'a [u8])>,
    /// The delay in seconds; 0 when absent (SC-16).
    pub delay: Option<u32>,
    /// Where later requests go.
    pub address: Option<ServiceAddress<'a>>,
    /// Another controller to try (SC-15).
    pub mgc_id: Option<MessageId<'a>>,
    /// The profile.
    pub profile: Option<Profile<'a>>,
    /// The protocol version (SC-11).
    pub version: Option<u8>,
    /// `yyyymmddThhmmssss` (SC-10).
    pub time: Option<&'a [u8]>,
    /// The first extension.
    pub extension: Option<Extension<'a>>,
}

impl<'a> Services<'a> {
    pub(super) fn of_item(item: &Item<'a>) -> Result<Services<'a>, Refusal> {
        let mut services = Services::default();
        let mut count = 0;
        for part in item.block(Fault::Descriptor)?.items(Fault::Descriptor) {
            services.parameter(&part?)?;
            count += 1;
        }
        if services.address.is_some() && services.mgc_id.is_some() {
            return item.refuse(Fault::ServiceChangeContradicts);
        }
        if count == 0 { item.refuse(Fault::Descriptor) } else { Ok(services) }
    }

    fn parameter(&mut self, part: &Item<'a>) -> Result<(), Refusal> {
        let bad = |fault| Refusal::new(fault, part.offset);
        if part.is_bare() && is_time(part.name) {
            return once(&mut self.time, part.name, part);
        }
        if is_extension(part.name) {
            let extension = Extension { name: part.name, value: ParameterValue::of_item(part)? };
            self.extension.get_or_insert(extension);
            return Ok(());
        }
        match Token::parse(part.name).filter(|_| part.time.is_none() && !part.quoted) {
            Some(Token::Method) => once(&mut self.method, Method::parse(part.word(Fault::Value)?).ok_or(bad(Fault::Value))?, part),
            Some(Token::Reason) => once(&mut self.reason, reason(part)?, part),
            Some(Token::Delay) => once(&mut self.delay, lex::uint32(part.word(Fault::Value)?).ok_or(bad(Fault::Value))?, part),
            Some(Token::ServiceChangeAddress) => {
                let port = part.word(Fault::Value).ok().and_then(lex::uint16);
                let address = match port {
                    Some(port) => ServiceAddress::Port(port),
                    None => ServiceAddress::Id(message_id(part)?),
                };
                once(&mut self.address, address, part)
            }
            Some(Token::MgcIdToTry) => once(&mut self.mgc_id, message_id(part)?, part),
            Some(Token::Profile) => once(&mut self.profile, profile(part.word(Fault::Value)?).ok_or(bad(Fault::Value))?, part),
            Some(Token::Version) => {
                let version = lex::number(part.word(Fault::Value)?, 2).ok_or(bad(Fault::Value))?;
                once(&mut self.version, version as u8, part)
            }
            _ => part.refuse(if super::super::token::is_later(part.name) { Fault::LaterVersion } else { Fault::ParameterUnknown }),
        }
    }
}

fn once<T>(place: &mut Option<T>, value: T, item: &Item<'_>) -> Result<(), Refusal> {
    if place.is_some() {
        return item.refuse(Fault::ParameterRepeated);
    }
    *place = Some(value);
    Ok(())
}

/// `"901 Cold Boot"`; lenient about quotes around a bare code (SC-02).
fn reason<'a>(item: &Item<'a>) -> Result<(u16, &'a [u8]), Refusal> {
    let text = match item.value {
        Assigned::Quoted(text) | Assigned::Word(text) => text,
        _ => return item.refuse(Fault::Value),
    };
    let digits = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (code, words) = text.split_at(digits);
    match lex::number(code, 4) {
        Some(code) => Ok((code as u16, words.trim_ascii())),
        None => item.refuse(Fault::Value),
    }
}

/// A message identifier as a value.
fn message_id<'a>(item: &Item<'a>) -> Result<MessageId<'a>, Refusal> {
    let refused = Refusal::new(Fault::Value, item.offset);
    match (item.value, item.body) {
        (Assigned::Word(word), Some(digits)) if Token::parse(word) == Some(Token::Mtp) => {
            let digits = digits.items(Fault::Value).next().transpose()?.filter(|digits| digits.is_bare()).ok_or(refused)?.name;
            let good = (4..=8).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
            good.then_some(MessageId::Mtp(digits)).ok_or(refused)
        }
        (Assigned::Word(text), None) | (Assigned::Brackets { whole: text, .. }, None) => MessageId::parse(text).ok_or(refused),
        _ => Err(refused),
    }
}

fn profile(text: &[u8]) -> Option<Profile<'_>> {
    let slash = text.iter().position(|&byte| byte == b'/')?;
    let name = text.get(..slash).filter(|name| lex::is_name(name))?;
    Some(Profile { name, version: lex::number(text.get(slash + 1..)?, 2)? as u8 })
}
