//! A command, its structure checked: command line, parameter names, table M-1 (RFC 3435 3.2). Values are read on demand.

use super::bearer::BearerInformation;
use super::code::{CODES, Code, CodeSet, Verb};
use super::digit_map::DigitMap;
use super::event::{EventList, ListKind};
use super::header::{CommandLine, HeaderLine, header_line};
use super::name::{EndpointName, NotifiedEntity};
use super::options::LocalConnectionOptions;
use super::refusal::{Fault, Refusal};
use super::value::{ConfirmedRanges, ConnectionParameters, Quarantine, ReasonCode, RequestedInfo, RestartMethod, parse_mode};
use crate::proto::base::{HexId, Mode, TransactionId};
use crate::proto::codec::scan;

/// The most package parameters (`package/name: value`) of one command.
pub const EXTENSIONS_MAX: usize = 16;

/// A place in a message.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u16,
    end: u16,
}

impl Span {
    fn of<'a>(&self, message: &'a [u8]) -> &'a [u8] {
        message.get(usize::from(self.start)..usize::from(self.end)).unwrap_or_default()
    }
}

/// The values of known parameters, as written; the first one where a code occurs more than once.
#[derive(Clone, Debug)]
pub(super) struct Parameters<'a> {
    message: &'a [u8],
    spans: [Span; CODES],
    present: CodeSet,
}

impl<'a> Parameters<'a> {
    /// No parameters yet, of a message that is at most 65,535 bytes long.
    #[inline]
    pub fn new(message: &'a [u8]) -> Parameters<'a> {
        Parameters { message, spans: [Span::default(); CODES], present: CodeSet::EMPTY }
    }

    #[inline]
    pub fn insert(&mut self, code: Code, start: usize, end: usize) {
        self.present.insert(code);
        self.spans[code as usize] = Span { start: start as u16, end: end as u16 };
    }

    #[inline]
    pub fn get(&self, code: Code) -> Option<&'a [u8]> {
        self.present.has(code).then(|| self.spans[code as usize].of(self.message))
    }

    #[inline]
    pub fn present(&self) -> CodeSet {
        self.present
    }

    pub fn offset(&self, code: Code) -> usize {
        usize::from(self.spans[code as usize].start)
    }
}

/// A parameter `package/name: value` that is not one of the base package.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extension<'a> {
    /// The package.
    pub package: &'a [u8],
    /// The name inside the package.
    pub name: &'a [u8],
    /// The value, blanks around it removed.
    pub value: &'a [u8],
}

/// A command whose line, parameter names and parameter presence are right.
#[derive(Clone, Debug)]
pub struct Command<'a> {
    /// What to do.
    pub verb: Verb,
    /// The transaction identifier.
    pub id: TransactionId,
    /// The name of a profile behind the version (RFC 3435 3.2.1.4); empty for none.
    pub profile: &'a [u8],
    /// To whom.
    pub endpoint: EndpointName<'a>,
    /// The session description that follows the parameters.
    pub description: Option<&'a [u8]>,
    parameters: Parameters<'a>,
    header_at: usize,
    extensions: u8,
}

/// One row of table M-1, seen from the receiver.
#[derive(Clone, Copy)]
struct Presence {
    mandatory: CodeSet,
    allowed: CodeSet,
}

/// What an encapsulated request may carry.
const REQUEST: CodeSet = CodeSet::of(&[Code::B, Code::T, Code::BPr, Code::D, Code::N, Code::Q, Code::R, Code::X, Code::S]);
/// What makes the request identifier mandatory in a connection command (note b).
const REQUEST_PARTS: CodeSet = CodeSet::of(&[Code::R, Code::S, Code::D, Code::Q, Code::T]);

impl Presence {
    const fn new(mandatory: &[Code], optional: &[Code], request: bool) -> Presence {
        let mandatory = CodeSet::of(mandatory);
        // G-PAR-06: K everywhere.
        let allowed = mandatory.union(CodeSet::of(optional)).union(CodeSet::of(&[Code::K]));
        Presence { mandatory, allowed: if request { allowed.union(REQUEST) } else { allowed } }
    }

    /// The row of a verb that the gateway receives.
    fn at_gateway(verb: Verb) -> Option<Presence> {
        const EPCF: Presence = Presence::new(&[], &[Code::B], false);
        const CRCX: Presence = Presence::new(&[Code::C, Code::M], &[Code::L, Code::Z2, Code::RC], true);
        const MDCX: Presence = Presence::new(&[Code::C, Code::I], &[Code::L, Code::M, Code::RC], true);
        // E is ignored in a DLCX of an agent (open point O-12).
        const DLCX: Presence = Presence::new(&[], &[Code::C, Code::I, Code::E], true);
        const RQNT: Presence = Presence::new(&[Code::X], &[], true);
        const AUEP: Presence = Presence::new(&[], &[Code::F], false);
        // A missing F is an existence check (G-AUC-01).
        const AUCX: Presence = Presence::new(&[Code::I], &[Code::F], false);
        Some(match verb {
            Verb::Epcf => EPCF,
            Verb::Crcx => CRCX,
            Verb::Mdcx => MDCX,
            Verb::Dlcx => DLCX,
            Verb::Rqnt => RQNT,
            Verb::Auep => AUEP,
            Verb::Aucx => AUCX,
            Verb::Ntfy | Verb::Rsip | Verb::Mesg => return None,
        })
    }

    /// The row of a verb that the call agent receives.
    fn at_agent(verb: Verb) -> Option<Presence> {
        const NTFY: Presence = Presence::new(&[Code::O, Code::X], &[Code::N], false);
        const DLCX: Presence = Presence::new(&[Code::C, Code::I], &[Code::E, Code::P], false);
        const RSIP: Presence = Presence::new(&[Code::RM], &[Code::RD, Code::E], false);
        const MESG: Presence = Presence::new(&[], &[], false);
        Some(match verb {
            Verb::Ntfy => NTFY,
            Verb::Dlcx => DLCX,
            Verb::Rsip => RSIP,
            Verb::Mesg => MESG,
            _ => return None,
        })
    }
}

impl<'a> Command<'a> {
    /// Reads a command that a call agent sent to a gateway. `message` is one message of a datagram ([`crate::proto::codec::peek`]).
    pub fn parse(message: &'a [u8]) -> Result<Command<'a>, Refusal> {
        Command::parse_as(message, Presence::at_gateway)
    }

    /// Reads a command that a gateway sent to its call agent.
    pub fn parse_at_agent(message: &'a [u8]) -> Result<Command<'a>, Refusal> {
        Command::parse_as(message, Presence::at_agent)
    }

    /// Reads a command that this gateway receives, whose first line was read already. `name`: its endpoint name, from those who know it
    /// to be well-formed.
    pub fn parse_behind(line: &CommandLine<'a>, name: Option<EndpointName<'a>>, message: &'a [u8]) -> Result<Command<'a>, Refusal> {
        Command::parse_rest(line, name, message, Presence::at_gateway)
    }

    fn parse_as(message: &'a [u8], presence: impl Fn(Verb) -> Option<Presence>) -> Result<Command<'a>, Refusal> {
        let line = CommandLine::parse(message).ok_or(Refusal::new(Fault::CommandLine, 0))?;
        Command::parse_rest(&line, None, message, presence)
    }

    #[inline]
    fn parse_rest(
        line: &CommandLine<'a>,
        name: Option<EndpointName<'a>>,
        message: &'a [u8],
        presence: impl Fn(Verb) -> Option<Presence>,
    ) -> Result<Command<'a>, Refusal> {
        let presence = line.verb.and_then(|verb| Some((verb, presence(verb)?)));
        let (verb, presence) = presence.ok_or(Refusal::new(Fault::VerbUnknown, 0))?;
        if message.len() > usize::from(u16::MAX) {
            return Err(Refusal::new(Fault::MessageTooLong, usize::from(u16::MAX)));
        }
        check_version(line.version).map_err(|fault| Refusal::new(fault, scan::offset_in(message, line.version)))?;
        let profile = profile(line.version);
        let endpoint = match name {
            Some(name) => name,
            None => EndpointName::parse(line.endpoint).map_err(|refusal| refusal.behind(line.endpoint_at))?,
        };
        let mut command = Command {
            verb,
            id: line.id,
            profile,
            endpoint,
            description: None,
            parameters: Parameters::new(message),
            header_at: line.next,
            extensions: 0,
        };
        let mut extended = false;
        let mut at = line.next;
        while at < message.len() {
            let (line, next) = header_line(message, at);
            match line {
                HeaderLine::Parameter { code: Some(code), value_at, value_end, .. } => {
                    command.add(code, presence, value_at, value_end).map_err(|fault| Refusal::new(fault, at))?;
                }
                HeaderLine::Parameter { name, code: None, .. } => {
                    extended = true;
                    command.add_extension(name).map_err(|fault| Refusal::new(fault, at))?;
                }
                HeaderLine::Blank => {
                    command.add_description(next, presence)?;
                    break;
                }
                HeaderLine::Folded => return Err(Refusal::new(Fault::HeaderFolded, at)),
                HeaderLine::Malformed => return Err(Refusal::new(Fault::HeaderLine, at)),
            }
            at = next;
        }
        command.check_presence(presence, extended).map_err(|fault| Refusal::new(fault, 0))?;
        Ok(command)
    }

    #[inline]
    fn add(&mut self, code: Code, presence: Presence, value_at: usize, value_end: usize) -> Result<(), Fault> {
        // The descriptions have names, for `F:`, but are no header lines.
        if !presence.allowed.has(code) || code == Code::RC {
            return Err(Fault::Forbidden(code));
        }
        if self.parameters.present().has(code) {
            return Err(Fault::Repeated(code));
        }
        // Empty identifiers pass the grammar for the sake of audits; in a command they say nothing.
        if value_at == value_end && (!code.may_be_empty() || matches!(code, Code::X | Code::I)) {
            return Err(Fault::Empty(code));
        }
        self.parameters.insert(code, value_at, value_end);
        Ok(())
    }

    fn add_extension(&mut self, name: &[u8]) -> Result<(), Fault> {
        if let [b'x' | b'X', b'+', ..] = name {
            return Err(Fault::CriticalExtension);
        }
        let Some(slash) = name.iter().position(|&b| b == b'/') else {
            return match name {
                [b'x' | b'X', b'-', ..] => Ok(()),
                _ if is_extension_name(name) => Err(Fault::ParameterUnknown),
                _ => Err(Fault::ParameterName),
            };
        };
        if !scan::is_package_name(&name[..slash]) || !is_extension_name(&name[slash + 1..]) {
            return Err(Fault::ParameterName);
        }
        let (package, name) = (&name[..slash], &name[slash + 1..]);
        let same = |other: Extension| other.package.eq_ignore_ascii_case(package) && other.name.eq_ignore_ascii_case(name);
        if self.extensions().any(same) {
            return Err(Fault::ExtensionRepeated);
        }
        if usize::from(self.extensions) == EXTENSIONS_MAX {
            return Err(Fault::TooManyExtensions);
        }
        self.extensions += 1;
        Ok(())
    }

    /// Takes what follows the empty line at the end of the parameters.
    fn add_description(&mut self, from: usize, presence: Presence) -> Result<(), Refusal> {
        let [description, second] = descriptions(self.parameters.message, from);
        if let Some(second) = second {
            return Err(Refusal::new(Fault::TwoDescriptions, scan::offset_in(self.parameters.message, second)));
        }
        if description.is_some() && !presence.allowed.has(Code::RC) {
            return Err(Refusal::new(Fault::Forbidden(Code::RC), from));
        }
        self.description = description;
        Ok(())
    }

    #[inline]
    fn check_presence(&self, presence: Presence, extended: bool) -> Result<(), Fault> {
        let present = self.parameters.present();
        if let Some(code) = presence.mandatory.without(present).first() {
            return Err(Fault::Missing(code));
        }
        match self.verb {
            // Note a: an extension parameter does instead.
            Verb::Epcf if !present.has(Code::B) && !extended => Err(Fault::Missing(Code::B)),
            Verb::Crcx | Verb::Mdcx | Verb::Dlcx if present.meets(REQUEST_PARTS) && !present.has(Code::X) => Err(Fault::RequestIdMissing),
            Verb::Dlcx if present.has(Code::I) && !present.has(Code::C) => Err(Fault::CallIdMissing),
            _ => Ok(()),
        }
    }

    /// The value of `code` as written, blanks around it removed; `None` when the command does not carry it.
    #[inline]
    pub fn get(&self, code: Code) -> Option<&'a [u8]> {
        self.parameters.get(code)
    }

    /// Which codes the command carries.
    #[inline]
    pub fn codes(&self) -> CodeSet {
        self.parameters.present()
    }

    /// The parameters that belong to packages (but for `B/PR`, which has a code), at most [`EXTENSIONS_MAX`]. They are found again in the
    /// message: they are rare, and a table of them would have to be moved with every command.
    #[inline]
    pub fn extensions(&self) -> impl Iterator<Item = Extension<'a>> + use<'a> {
        let (message, mut at) = (self.parameters.message, self.header_at);
        (0..self.extensions).map_while(move |_| next_extension(message, &mut at))
    }

    /// The message that was parsed.
    pub fn message(&self) -> &'a [u8] {
        self.parameters.message
    }

    /// Reads the value of `code` with `read`; a refusal is placed in the message.
    #[inline]
    fn typed<T>(&self, code: Code, read: impl FnOnce(&'a [u8]) -> Result<T, Refusal>) -> Result<Option<T>, Refusal> {
        match self.get(code) {
            Some(value) => read(value).map(Some).map_err(|refusal| refusal.behind(self.parameters.offset(code))),
            None => Ok(None),
        }
    }

    /// The same, in place of nothing the default.
    #[inline]
    fn typed_or_default<T: Default>(&self, code: Code, read: impl FnOnce(&'a [u8]) -> Result<T, Refusal>) -> Result<T, Refusal> {
        match self.get(code) {
            Some(value) => read(value).map_err(|refusal| refusal.behind(self.parameters.offset(code))),
            None => Ok(T::default()),
        }
    }

    #[inline]
    fn hex_id(&self, code: Code) -> Result<Option<HexId>, Refusal> {
        self.typed(code, |value| HexId::parse(value).ok_or(Refusal::new(Fault::Malformed(code), 0)))
    }

    /// `C:`, the call.
    #[inline]
    pub fn call(&self) -> Result<Option<HexId>, Refusal> {
        self.hex_id(Code::C)
    }

    /// `I:`, the connection.
    #[inline]
    pub fn connection(&self) -> Result<Option<HexId>, Refusal> {
        self.hex_id(Code::I)
    }

    /// `X:`, the request.
    #[inline]
    pub fn request(&self) -> Result<Option<HexId>, Refusal> {
        self.hex_id(Code::X)
    }

    /// `M:`, the connection mode.
    pub fn mode(&self) -> Result<Option<Mode>, Refusal> {
        self.typed(Code::M, |value| parse_mode(value).map_err(|fault| Refusal::new(fault, 0)))
    }

    /// `L:`, the local connection options; all absent when the command has none.
    pub fn options(&self) -> Result<LocalConnectionOptions<'a>, Refusal> {
        self.typed_or_default(Code::L, LocalConnectionOptions::parse)
    }

    /// The same; options that are not known are passed over.
    pub fn known_options(&self) -> Result<LocalConnectionOptions<'a>, Refusal> {
        self.typed_or_default(Code::L, LocalConnectionOptions::parse_known)
    }

    /// `B:`, the bearer information.
    #[inline]
    pub fn bearer(&self) -> Result<Option<BearerInformation<'a>>, Refusal> {
        self.typed(Code::B, BearerInformation::parse)
    }

    /// `N:`. `Some(None)` is an empty one, which clears the notified entity (G-NET-03).
    pub fn notified_entity(&self) -> Result<Option<Option<NotifiedEntity<'a>>>, Refusal> {
        self.typed(Code::N, |value| match value {
            [] => Ok(None),
            _ => NotifiedEntity::parse(value).map(Some).ok_or(Refusal::new(Fault::Malformed(Code::N), 0)),
        })
    }

    /// `K:`, the transactions whose final responses the sender has got.
    pub fn confirmed(&self) -> ConfirmedRanges<'a> {
        ConfirmedRanges::new(self.get(Code::K).unwrap_or_default())
    }

    /// `F:`, what an audit asks for; nothing when the command has none.
    pub fn requested_info(&self) -> RequestedInfo<'a> {
        RequestedInfo::new(self.get(Code::F).unwrap_or_default())
    }

    /// `R:`, the requested events with their actions.
    pub fn requested_events(&self) -> Result<Option<EventList<'a>>, Refusal> {
        self.typed(Code::R, |value| EventList::parse(value, ListKind::Requested))
    }

    /// `S:`, the signals to apply.
    pub fn signals(&self) -> Result<Option<EventList<'a>>, Refusal> {
        self.typed(Code::S, |value| EventList::parse(value, ListKind::Signals))
    }

    /// `T:`, the events to detect in quarantine.
    pub fn detect_events(&self) -> Result<Option<EventList<'a>>, Refusal> {
        self.typed(Code::T, |value| EventList::parse(value, ListKind::Detected))
    }

    /// `B/PR:`, the persistent events with their actions.
    pub fn persistent_events(&self) -> Result<Option<EventList<'a>>, Refusal> {
        self.typed(Code::BPr, |value| EventList::parse(value, ListKind::Requested))
    }

    /// `O:`, the events of a Notify.
    pub fn observed_events(&self) -> Result<Option<EventList<'a>>, Refusal> {
        self.typed(Code::O, |value| EventList::parse(value, ListKind::Observed))
    }

    /// `D:`. `Some(None)` is an empty one.
    pub fn digit_map(&self) -> Result<Option<Option<DigitMap<'a>>>, Refusal> {
        self.typed(Code::D, |value| match value {
            [] => Ok(None),
            _ => DigitMap::parse(value).map(Some),
        })
    }

    /// `Q:`; the defaults when the command has none (G-QUA-10).
    pub fn quarantine(&self) -> Result<Quarantine, Refusal> {
        Ok(self.typed(Code::Q, |value| Quarantine::parse(value).ok_or(Refusal::new(Fault::Quarantine, 0)))?.unwrap_or_default())
    }

    /// `Z2:`, the other endpoint of a CreateConnection.
    pub fn second_endpoint(&self) -> Result<Option<EndpointName<'a>>, Refusal> {
        self.typed(Code::Z2, EndpointName::parse)
    }

    /// `E:`, the reason of a RestartInProgress or a DeleteConnection.
    pub fn reason(&self) -> Result<Option<ReasonCode<'a>>, Refusal> {
        self.typed(Code::E, |value| ReasonCode::parse(value).ok_or(Refusal::new(Fault::Malformed(Code::E), 0)))
    }

    /// `RM:`, the restart method.
    pub fn restart_method(&self) -> Result<Option<RestartMethod<'a>>, Refusal> {
        self.typed(Code::RM, |value| RestartMethod::parse(value).ok_or(Refusal::new(Fault::RestartMethod, 0)))
    }

    /// `RD:`, the restart delay in seconds, 0..=999,999; 0 when the command has none.
    pub fn restart_delay(&self) -> Result<u32, Refusal> {
        let delay = self.typed(Code::RD, |value| scan::decimal(value, 6).ok_or(Refusal::new(Fault::Malformed(Code::RD), 0)))?;
        Ok(delay.unwrap_or(0))
    }

    /// `P:`, the counters of a connection the gateway deletes.
    pub fn connection_parameters(&self) -> Result<Option<ConnectionParameters>, Refusal> {
        self.typed(Code::P, |value| ConnectionParameters::parse(value).ok_or(Refusal::new(Fault::Malformed(Code::P), 0)))
    }
}

/// The first parameter of a package in the header line at `at` or one behind it; `at` moves behind it.
fn next_extension<'a>(message: &'a [u8], at: &mut usize) -> Option<Extension<'a>> {
    while *at < message.len() {
        let (line, next) = header_line(message, *at);
        *at = next;
        if let HeaderLine::Parameter { name, code: None, value_at, value_end } = line
            && let Some(slash) = name.iter().position(|&b| b == b'/')
        {
            return Some(Extension { package: &name[..slash], name: &name[slash + 1..], value: message.get(value_at..value_end)? });
        }
    }
    None
}

/// 1 to 32 letters, digits and hyphens (G-SYN-10).
fn is_extension_name(name: &[u8]) -> bool {
    (1..=32).contains(&name.len()) && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
}

/// `MGCP 1.0`, whatever profile is behind it; the numbers are compared as numbers (G-SYN-05).
#[inline]
fn check_version(text: &[u8]) -> Result<(), Fault> {
    // By far the most frequent spelling.
    if text.trim_ascii_end() == b"MGCP 1.0" {
        return Ok(());
    }
    let (protocol, rest) = scan::word(text);
    if protocol.is_empty() {
        return Err(Fault::VersionMissing);
    }
    let (number, _) = scan::word(rest);
    let mut parts = number.splitn(2, |&b| b == b'.').map(|part| scan::decimal(part, 9));
    let version = (parts.next().flatten(), parts.next().flatten());
    match version {
        (Some(1), Some(0)) if protocol.eq_ignore_ascii_case(b"MGCP") => Ok(()),
        _ => Err(Fault::VersionUnsupported),
    }
}

/// What is behind the version; empty for nothing.
#[inline]
fn profile(text: &[u8]) -> &[u8] {
    if text.len() <= b"MGCP 1.0".len() {
        return b"";
    }
    let (_, rest) = scan::word(text);
    scan::trim(scan::word(rest).1)
}

/// The session descriptions of `message` from `from` on, behind the first empty line: each ends at an empty line. A third one is left
/// out, as is a description without any text.
pub(super) fn descriptions(message: &[u8], from: usize) -> [Option<&[u8]>; 2] {
    let mut found = [None; 2];
    let mut rest = message.get(from..).unwrap_or_default();
    for slot in &mut found {
        while let [b'\r' | b'\n' | b' ' | b'\t', behind @ ..] = rest {
            rest = behind;
        }
        if rest.is_empty() {
            break;
        }
        let (description, behind) = cut_at_empty_line(rest);
        *slot = Some(description);
        rest = behind;
    }
    found
}

/// What stands before the first empty line of `text`, and what stands behind.
fn cut_at_empty_line(text: &[u8]) -> (&[u8], &[u8]) {
    let mut from = 0;
    // No line of a description begins with a blank or a control character, so a candidate nearly always is an empty line.
    while let Some(start) = scan::find_line_start(text, from, |b| b <= b' ') {
        let line_end = text[start..].iter().position(|&b| b == b'\n').map_or(text.len(), |i| start + i);
        if scan::trim(&text[start..line_end]).is_empty() {
            return (&text[..start], text.get(line_end + 1..).unwrap_or_default());
        }
        from = line_end;
    }
    (text, &[])
}

#[cfg(test)]
mod tests;
