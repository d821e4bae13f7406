//! Everything the codec does, driven by bytes from anywhere: the functions that fuzzers, property tests and benches call.
//!
//! Each walks all that a parser hands out and returns a digest of it, so that nothing is optimised away and two runs can be compared.
//! None of them may panic, allocate, or take time that is not proportional to the input. [`hostile`] makes the inputs that try.

use super::mgcp::{
    Action, Capabilities, Command, EventList, EventName, ListKind, Parameter, ParameterList, Refusal, Response, SymbolSet, Writer,
};
use super::peek::{self, Peek};
use super::sdp::{self, Session};
use super::{mgcp, scan};

/// Units whose repetition makes hostile datagrams, with what each attacks.
pub const HOSTILE_UNITS: &[(&str, &str)] = &[
    ("empty lines", "\n"),
    ("dot lines", "\n.\nA 1"),
    ("open quotes", "S:\"\n"),
    ("quotes and dots", "S:\"\"\"\n.\n"),
    ("quoted line ends", "\"\n\"\n"),
    ("events", "a,"),
    ("nested parameters", "a(b="),
    ("nested requests", "a(E(R("),
    ("embedded requests", "a(E(R(b),S(c))),"),
    ("ranges", "D/[0-9A-D],"),
    ("digit map", "[1-9]."),
    ("codecs", "a;"),
    ("package options", "z/a:1,"),
    ("acknowledgements", "1-9,"),
    ("package parameters", "1\nz/a:"),
    ("vendor parameters", "\nX-a: b"),
    ("endpoints", "1\r\nZ: a@b"),
    ("SDP attributes", "a=rtpmap:0 PCMU/8000\r\n"),
    ("SDP payload types", "127 "),
    ("SDP media", "m=audio 1 RTP/AVP 0\n"),
    ("NUL", "\0"),
];

/// The largest UDP datagram.
pub const DATAGRAM_MAX: usize = 65_507;

/// A datagram of [`DATAGRAM_MAX`] bytes in which `unit` repeats, once in each place that might mind: every list parameter of a command, a
/// response and a session description share it in equal parts.
pub fn hostile(unit: &str) -> Vec<u8> {
    const PLACES: [&str; 10] = [
        "RQNT 1 a@b MGCP 1.0\nX: 1\nR: ",
        "RQNT 1 a@b MGCP 1.0\nX: 1\nS: ",
        "RQNT 1 a@b MGCP 1.0\nX: 1\nD: ",
        "CRCX 1 a@b MGCP 1.0\nC: 1\nM: inactive\nL: a:",
        "CRCX 1 a@b MGCP 1.0\nC: 1\nM: inactive\nL: ",
        "AUEP 1 a@b MGCP 1.0\nK: ",
        "200 1 OK\nA: a:",
        "CRCX 1 a@b MGCP 1.0\nC: 1\nM: inactive\n\nv=0\nc=IN IP4 1.1.1.1\nm=audio 1 RTP/AVP 0\n",
        "CRCX 1 a@b MGCP 1.0\nC: 1\nM: inactive\n\nv=0\nc=IN IP4 1.1.1.1\nm=audio 1 RTP/AVP ",
        "AUEP 1 ",
    ];
    let mut datagram = Vec::with_capacity(DATAGRAM_MAX);
    for place in PLACES {
        datagram.extend_from_slice(place.as_bytes());
        let end = (datagram.len() + DATAGRAM_MAX / PLACES.len()).min(DATAGRAM_MAX);
        datagram.extend(unit.bytes().cycle().take(end.saturating_sub(datagram.len() + 100)));
        datagram.extend_from_slice(b"\n.\n");
    }
    datagram.truncate(DATAGRAM_MAX);
    datagram
}

/// A running digest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digest(pub u64);

impl Digest {
    pub(super) fn number(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
    }

    fn length(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
    }

    /// Keeps what was read, or the refusal.
    fn result<T>(&mut self, result: Result<T, Refusal>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(refusal) => {
                self.number(u64::from(refusal.code()));
                self.number(refusal.offset as u64);
                self.number(refusal.text().len() as u64);
                None
            }
        }
    }
}

/// Splits a datagram and reads each message as everything it might be.
pub fn datagram(bytes: &[u8]) -> Digest {
    let mut digest = Digest::default();
    for (range, peek) in peek::split(bytes) {
        let message = bytes.get(range).unwrap_or_default();
        match peek {
            Peek::Command(line) => {
                digest.number(u64::from(line.id));
                digest.length(line.endpoint);
                command(message, &mut digest);
            }
            Peek::Response { code, id } => {
                digest.number(u64::from(code) << 32 | u64::from(id));
                response(message, &mut digest);
            }
            Peek::Unreadable => digest.number(1),
        }
    }
    digest
}

/// Reads `bytes` as a session description and writes it again.
pub fn description(bytes: &[u8]) -> Digest {
    let mut digest = Digest::default();
    session(bytes, &mut digest);
    digest
}

/// Reads `bytes` as the value of every typed parameter.
pub fn value(bytes: &[u8]) -> Digest {
    let mut digest = Digest::default();
    for kind in [ListKind::Requested, ListKind::Signals, ListKind::Detected, ListKind::Observed, ListKind::States] {
        if let Some(list) = digest.result(EventList::parse(bytes, kind)) {
            events(list, &mut digest);
        }
    }
    if let Some(map) = digest.result(mgcp::DigitMap::parse(bytes)) {
        digit_map(map, &mut digest);
    }
    if let Some(options) = digest.result(mgcp::LocalConnectionOptions::parse(bytes)) {
        local_options(&options, &mut digest);
    }
    if let Some(bearer) = digest.result(mgcp::BearerInformation::parse(bytes)) {
        digest.number(bearer.packages().count() as u64);
    }
    if let Some(name) = digest.result(mgcp::EndpointName::parse(bytes)) {
        digest.number(name.terms().count() as u64);
    }
    digest.number(u64::from(mgcp::NotifiedEntity::parse(bytes).map_or(0, |entity| entity.port)));
    digest.number(mgcp::parse_mode(bytes).map_or(99, |mode| mode as u64));
    digest.number(mgcp::Quarantine::parse(bytes).map_or(0, |quarantine| quarantine.name().len() as u64));
    digest.number(u64::from(mgcp::ReasonCode::parse(bytes).map_or(0, |reason| reason.code)));
    digest.number(mgcp::RestartMethod::parse(bytes).map_or(0, |method| method.name().len() as u64));
    digest.number(mgcp::ConnectionParameters::parse(bytes).map_or(0, |p| u64::from(p.packets_sent.unwrap_or(1))));
    digest.number(Capabilities::new(bytes).count() as u64);
    digest
}

fn command(message: &[u8], digest: &mut Digest) {
    for parsed in [Command::parse(message), Command::parse_at_agent(message)] {
        let Some(command) = digest.result(parsed) else { continue };
        for code in command.codes().iter() {
            digest.length(command.get(code).unwrap_or_default());
        }
        for extension in command.extensions() {
            digest.length(extension.package);
            digest.length(extension.name);
            digest.length(extension.value);
        }
        for id in [command.call(), command.connection(), command.request()] {
            digest.result(id);
        }
        digest.result(command.mode());
        digest.result(command.notified_entity());
        digest.result(command.quarantine());
        digest.result(command.second_endpoint());
        digest.result(command.reason());
        digest.result(command.restart_method());
        digest.result(command.restart_delay());
        digest.result(command.connection_parameters());
        digest.number(command.confirmed().count() as u64);
        digest.number(command.requested_info().count() as u64);
        if let Some(options) = digest.result(command.options()) {
            local_options(&options, digest);
        }
        if let Some(bearer) = digest.result(command.bearer()).flatten() {
            digest.number(bearer.packages().count() as u64);
        }
        let lists = [
            command.requested_events(),
            command.signals(),
            command.detect_events(),
            command.persistent_events(),
            command.observed_events(),
        ];
        for list in lists {
            if let Some(Some(list)) = digest.result(list) {
                events(list, digest);
            }
        }
        if let Some(Some(Some(map))) = digest.result(command.digit_map()) {
            digit_map(map, digest);
        }
        if let Some(text) = command.description {
            session(text, digest);
        }
    }
}

fn response(message: &[u8], digest: &mut Digest) {
    let Some(response) = digest.result(Response::parse(message)) else { return };
    digest.number(u64::from(response.effective_code()));
    digest.length(response.text);
    digest.length(response.package.unwrap_or_default());
    for code in response.codes().iter() {
        digest.number(response.values(code).map(<[u8]>::len).sum::<usize>() as u64);
    }
    digest.number(response.connections().count() as u64);
    digest.number(response.endpoints().count() as u64);
    digest.number(response.connection_parameters().map_or(0, |p| u64::from(p.jitter_ms.unwrap_or(1))));
    digest.number(u64::from(response.reason().map_or(0, |reason| reason.code)));
    for value in response.values(mgcp::Code::A) {
        digest.number(Capabilities::new(value).list("a").count() as u64);
    }
    for text in response.descriptions.into_iter().flatten() {
        session(text, digest);
    }
}

fn session(text: &[u8], digest: &mut Digest) {
    if let Some(session) = digest.result(Session::parse(text)) {
        digest.number(u64::from(session.port));
        for format in session.formats() {
            digest.number(u64::from(format.payload_type));
            digest.length(format.parameters.unwrap_or_default());
            digest.number(format.encoding.map_or(0, |encoding| u64::from(encoding.clock_rate)));
        }
    }
    let mut buffer = [0; 1024];
    let mut writer = Writer::new(&mut buffer);
    sdp::write_raw(&mut writer, text);
    digest.number(writer.finish().unwrap_or(0) as u64);
}

fn local_options(options: &mgcp::LocalConnectionOptions<'_>, digest: &mut Digest) {
    digest.number(options.codecs.map_or(0, |codecs| codecs.iter().count() as u64));
    digest.number(options.packages().count() as u64);
}

fn digit_map(map: mgcp::DigitMap<'_>, digest: &mut Digest) {
    for string in map.strings() {
        digest.number(string.fold(SymbolSet::EMPTY, |all, position| all.union(position.symbols)).len().into());
    }
}

/// Recursion is bounded by [`mgcp::EMBEDDED_MAX`].
fn events(list: EventList<'_>, digest: &mut Digest) {
    for event in list.iter() {
        digest.length(event.raw);
        if let EventName::Range { symbols, .. } = event.name {
            digest.number(symbols.iter().count() as u64);
        }
        for action in event.actions.iter().flat_map(|actions| actions.iter()) {
            match action {
                Action::Base(_) => digest.number(2),
                Action::Package { parameters: list, .. } => list.into_iter().for_each(|list| parameters(list, digest)),
                Action::Embedded(embedded) => {
                    embedded.requested.into_iter().chain(embedded.signals).for_each(|list| events(list, digest));
                    embedded.digit_map.into_iter().for_each(|map| digit_map(map, digest));
                }
            }
        }
        event.parameters.into_iter().for_each(|list| parameters(list, digest));
    }
}

/// Recursion is bounded by [`mgcp::NESTING_MAX`].
fn parameters(list: ParameterList<'_>, digest: &mut Digest) {
    for parameter in list.iter() {
        match parameter {
            Parameter::Value(value) => digest.number(value.bytes().map(u64::from).sum::<u64>() + u64::from(value.decimal().unwrap_or(0))),
            Parameter::Named { name, values } => {
                digest.length(scan::trim(name));
                parameters(values, digest);
            }
        }
    }
}
