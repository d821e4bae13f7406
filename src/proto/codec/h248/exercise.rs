//! The whole codec, driven by bytes from anywhere: what fuzzers, property tests and benches call.
//!
//! [`transcribe`] reads all there is in a message and writes it anew, in either style; [`message`] does so and returns a digest. None of
//! it may panic, allocate, or take time that is not proportional to the input.

use super::super::exercise::Digest;
use super::*;

/// Units whose repetition makes hostile messages, with what each attacks.
pub const HOSTILE_UNITS: &[(&str, &str)] = &[
    ("open braces", "{"),
    ("empty transactions", "T=1{}"),
    ("nested blocks", "a{a{a{a{a{a{a{a{}}}}}}}}"),
    ("contexts", "C=1{A=a},"),
    ("commands", "A=a{M{L{v=0}}},"),
    ("properties", "foo/b=1,"),
    ("lists", "foo/b=[1,1,1,1],"),
    ("alternatives", "foo/b={1,1},"),
    ("open brackets", "foo/b=["),
    ("comments", ";x\n"),
    ("comments in front of octets", "L;x\n{},"),
    ("open comments", ";"),
    ("quotes", "\"\","),
    ("open quotes", "\""),
    ("acknowledgements", "1-4294967295,"),
    ("events", "dd/ce{DM={x}},"),
    ("embedded events", "a/b{EM{E=1{a/b{EM{SG{a/b}}}}}},"),
    ("signal lists", "SL=1{a/b},"),
    ("digit maps", "[0-9]x.|"),
    ("descriptions", "v=0\n"),
    ("topology", "a,b,BW,"),
    ("white space", " \t\r\n"),
    ("NUL", "\0"),
];

/// A message of `length` bytes in which `unit` repeats, in one of [`PLACES`].
pub fn hostile(unit: &str, place: usize, length: usize) -> Vec<u8> {
    let front = PLACES.get(place % PLACES.len()).copied().unwrap_or_default();
    let mut message = front.as_bytes().to_vec();
    message.extend(unit.bytes().cycle().take(length.saturating_sub(front.len())));
    message
}

/// Where [`hostile`] puts its unit.
pub const PLACES: &[&str] = &[
    "!/1 <a> ",
    "!/1 <a> K{",
    "!/1 <a> T=1{",
    "!/1 <a> T=1{C=1{",
    "!/1 <a> T=1{C=1{TP{",
    "!/1 <a> T=1{C=1{MF=a{",
    "!/1 <a> T=1{C=1{MF=a{M{O{",
    "!/1 <a> T=1{C=1{MF=a{M{L{",
    "!/1 <a> T=1{C=1{MF=a{E=1{",
    "!/1 <a> T=1{C=1{MF=a{SG{",
    "!/1 <a> T=1{C=1{MF=a{DM={",
    "!/1 <a> P=1{C=1{AV=a{SA{",
];

/// Reads `bytes` as a message, writes it both ways, and keeps what came of it.
pub fn message(bytes: &[u8], shape: &mut Shape, buffer: &mut [u8]) -> Digest {
    let mut digest = Digest::default();
    for style in [Style::Compact, Style::Pretty] {
        match transcribe(bytes, shape, buffer, style) {
            Ok(length) => digest.number(length as u64),
            Err(refusal) => digest.number(u64::from(refusal.code()) << 32 | refusal.offset as u64),
        }
    }
    // A part that is refused does not hide what can be read behind it.
    if let Ok(Ok(Content::Transactions(transactions))) = Message::parse(bytes, shape).map(|message| message.content()) {
        transactions.for_each(|transaction| digest.number(transaction.map_or_else(|refusal| u64::from(refusal.code()), |t| parts(&t))));
    }
    digest
}

/// Reads `bytes` as a message in BER, its text as any other text, and writes it in octets again, into buffers for text and for both.
pub fn octets(bytes: &[u8], shape: &mut Shape, [text, buffer]: [&mut [u8]; 2]) -> Digest {
    let Some(text) = binary::to_text(bytes, text).and_then(|length| text.get(..length)) else { return Digest::default() };
    let mut digest = message(text, shape, buffer);
    match binary::from_text(text, shape, buffer) {
        Ok(length) => digest.number(length as u64),
        Err(refusal) => digest.number(u64::from(refusal.code())),
    }
    digest
}

/// The commands of a transaction that can be read, as the machine would: each checked, those behind a fault too.
fn parts(transaction: &Transaction<'_>) -> u64 {
    let count = |action: &Action<'_>, side| {
        let good = action.parts().filter(|part| match part {
            Ok(ActionPart::Command(command)) => command.check(side).is_ok(),
            part => part.is_ok(),
        });
        good.count() as u64
    };
    match transaction {
        Transaction::Request(request) => request.actions().flatten().map(|action| count(&action, Side::Request)).sum(),
        Transaction::Reply(reply) => reply
            .actions()
            .flatten()
            .map(|part| match part {
                ReplyPart::Action(action) => count(&action, Side::Reply),
                ReplyPart::Error(error) => u64::from(error.code),
            })
            .sum(),
        Transaction::Pending(id) => u64::from(*id),
        Transaction::Acknowledgement(ranges) => ranges.clone().map(|(first, last)| u64::from(first ^ last)).sum(),
    }
}

/// Reads all of the message `bytes` and writes it into `buffer`: its length, or the first refusal. What does not fit is refused as too long.
pub fn transcribe(bytes: &[u8], shape: &mut Shape, buffer: &mut [u8], style: Style) -> Result<usize, Refusal> {
    let message = Message::parse(bytes, shape)?;
    let mut writer = Writer::new(buffer, style);
    writer.header(message.header.version, &message.header.from);
    match message.content()? {
        Content::Error(error) => writer.error(error.code, error.text.unwrap_or_default()),
        Content::Transactions(transactions) => {
            for transaction in transactions {
                write_transaction(&transaction?, &mut writer)?;
            }
        }
    }
    writer.finish().ok_or(Refusal::new(Fault::TooLong, 0))
}

fn write_transaction(transaction: &Transaction<'_>, writer: &mut Writer<'_>) -> Result<(), Refusal> {
    match transaction {
        Transaction::Request(request) => {
            writer.request(request.id);
            request.actions().try_for_each(|action| write_action(&action?, Side::Request, writer))?;
            writer.end();
        }
        Transaction::Reply(reply) => {
            writer.reply(reply.id, reply.immediate_ack);
            for part in reply.actions() {
                match part? {
                    ReplyPart::Error(error) => writer.error(error.code, error.text.unwrap_or_default()),
                    ReplyPart::Action(action) => write_action(&action, Side::Reply, writer)?,
                }
            }
            writer.end();
        }
        Transaction::Pending(id) => writer.pending(*id),
        Transaction::Acknowledgement(ranges) => writer.acknowledge(ranges.clone()),
    }
    Ok(())
}

fn write_action(action: &Action<'_>, side: Side, writer: &mut Writer<'_>) -> Result<(), Refusal> {
    writer.context(action.context);
    for part in action.parts() {
        match part? {
            ActionPart::Priority(priority) => writer.number_item(Token::Priority, u32::from(priority)),
            ActionPart::Emergency => writer.flag(Token::Emergency),
            ActionPart::Topology(topology) => write_topology(topology, writer),
            ActionPart::Audit(audit) => {
                let asked = [(audit.topology, Token::Topology), (audit.emergency, Token::Emergency), (audit.priority, Token::Priority)];
                writer.begin_list(Token::ContextAudit);
                asked.into_iter().filter(|(asked, _)| *asked).for_each(|(_, token)| writer.flag(token));
                writer.end();
            }
            ActionPart::Error(error) => writer.error(error.code, error.text.unwrap_or_default()),
            ActionPart::Command(command) => write_command(&command, side, writer)?,
        }
    }
    writer.end();
    Ok(())
}

fn write_topology(topology: Topology<'_>, writer: &mut Writer<'_>) {
    writer.begin_list(Token::Topology);
    for triple in topology {
        writer.name(triple.from.text());
        writer.name(triple.to.text());
        writer.flag(match triple.way {
            Way::Bothway => Token::Bothway,
            Way::Isolate => Token::Isolate,
            Way::Oneway => Token::Oneway,
        });
    }
    writer.end();
}

fn write_command(command: &Command<'_>, side: Side, writer: &mut Writer<'_>) -> Result<(), Refusal> {
    command.check(side)?;
    if command.lists_terminations() {
        writer.begin_word(command.verb.token(), Token::Context.name(Style::Compact).as_bytes());
        match (command.terminations_error(), command.terminations()) {
            (Some(error), _) => writer.error(error.code, error.text.unwrap_or_default()),
            (None, Some(list)) => list?.for_each(|termination| writer.name(termination.text())),
            (None, None) => {}
        }
    } else {
        writer.marked_command(command.verb, command.termination, command.optional, command.wildcarded);
        for descriptor in command.descriptors() {
            write_descriptor(&descriptor?.1, writer)?;
        }
    }
    writer.end();
    Ok(())
}

fn write_descriptor(descriptor: &Descriptor<'_>, writer: &mut Writer<'_>) -> Result<(), Refusal> {
    match descriptor {
        Descriptor::Media(media) => write_media(media, writer)?,
        Descriptor::Modem(modem) => {
            writer.begin_modem(modem.kinds());
            modem.properties().for_each(|property| writer.property(property.name, &property.value));
            writer.end();
        }
        Descriptor::Mux(mux) => {
            writer.begin_word(Token::Mux, mux.kind);
            mux.terminations.clone().for_each(|termination| writer.name(termination.text()));
            writer.end();
        }
        Descriptor::Events(events) => rewrite::events(events, writer)?,
        Descriptor::EventBuffer(events) => {
            rewrite::event_buffer(events, writer)?;
        }
        Descriptor::Signals(signals) => rewrite::signals(signals, writer)?,
        Descriptor::DigitMap(map) => writer.digit_map(map.name, map.map.as_ref(), map.deleted),
        Descriptor::Audit(audit) => {
            writer.begin_list(Token::Audit);
            audit.iter().for_each(|token| writer.flag(token));
            writer.end();
        }
        Descriptor::ObservedEvents(events) => {
            writer.observed_events(events.request);
            for event in events.iter() {
                let event = event?;
                writer.begin_observed(event.time, event.name);
                if event.stream != 0 {
                    writer.number_item(Token::Stream, u32::from(event.stream));
                }
                event.parameters().for_each(|parameter| writer.parameter(parameter.name, &parameter.value));
                writer.end();
            }
            writer.end();
        }
        Descriptor::Statistics(statistics) => {
            writer.begin_list(Token::Statistics);
            statistics.clone().for_each(|statistic| writer.statistic(statistic.name, statistic.value));
            writer.end();
        }
        Descriptor::Packages(packages) => {
            writer.begin_list(Token::Packages);
            packages.clone().for_each(|package| writer.package(package.name, package.version));
            writer.end();
        }
        Descriptor::Services(services) => write_services(services, writer),
        Descriptor::Error(error) => writer.error(error.code, error.text.unwrap_or_default()),
        Descriptor::Empty(token) => writer.flag(*token),
    }
    Ok(())
}

fn write_media(media: &Media<'_>, writer: &mut Writer<'_>) -> Result<(), Refusal> {
    writer.begin_list(Token::Media);
    for part in media.parts() {
        match part? {
            MediaPart::State(state) => {
                writer.begin_list(Token::TerminationState);
                for parameter in state.parameters() {
                    match parameter? {
                        TerminationStateParameter::Service(state) => writer.token_item(Token::ServiceStates, state.token()),
                        TerminationStateParameter::LockStep(on) => {
                            writer.token_item(Token::Buffer, if on { Token::LockStep } else { Token::Off });
                        }
                        TerminationStateParameter::Property(property) => writer.property(property.name, &property.value),
                    }
                }
                writer.end();
            }
            MediaPart::Stream(stream) => {
                writer.begin_number(Token::Stream, u32::from(stream.id));
                stream.parts().try_for_each(|part| write_stream_part(&part?, writer))?;
                writer.end();
            }
            MediaPart::One(part) => write_stream_part(&part, writer)?,
        }
    }
    writer.end();
    Ok(())
}

fn write_stream_part(part: &StreamPart<'_>, writer: &mut Writer<'_>) -> Result<(), Refusal> {
    let on = |on| if on { Token::On } else { Token::Off };
    match part {
        StreamPart::Local(octets) => writer.octets(Token::Local, octets.raw().trim_ascii()),
        StreamPart::Remote(octets) => writer.octets(Token::Remote, octets.raw().trim_ascii()),
        StreamPart::Control(control) => {
            writer.begin_list(Token::LocalControl);
            for parameter in control.parameters() {
                match parameter? {
                    LocalParameter::Mode(mode) => writer.token_item(Token::Mode, mode.token()),
                    LocalParameter::ReserveValue(value) => writer.token_item(Token::ReservedValue, on(value)),
                    LocalParameter::ReserveGroup(value) => writer.token_item(Token::ReservedGroup, on(value)),
                    LocalParameter::Property(property) => writer.property(property.name, &property.value),
                }
            }
            writer.end();
        }
    }
    Ok(())
}

fn write_services(services: &Services<'_>, writer: &mut Writer<'_>) {
    writer.begin_list(Token::Services);
    match &services.method {
        Some(Method::Extension(name)) => writer.word_item(Token::Method, name),
        Some(method) => method.token().into_iter().for_each(|token| writer.token_item(Token::Method, token)),
        None => {}
    }
    if let Some(version) = services.version {
        writer.number_item(Token::Version, u32::from(version));
    }
    if let Some((code, words)) = services.reason {
        writer.reason(code, words);
    }
    if let Some(delay) = services.delay {
        writer.number_item(Token::Delay, delay);
    }
    match &services.address {
        Some(ServiceAddress::Port(port)) => writer.number_item(Token::ServiceChangeAddress, u32::from(*port)),
        Some(ServiceAddress::Id(id)) => writer.message_id_item(Token::ServiceChangeAddress, id),
        None => {}
    }
    if let Some(id) = &services.mgc_id {
        writer.message_id_item(Token::MgcIdToTry, id);
    }
    if let Some(profile) = services.profile {
        writer.profile(profile.name, profile.version);
    }
    if let Some(extension) = &services.extension {
        writer.parameter(extension.name, &extension.value);
    }
    if let Some(time) = services.time {
        writer.name(time);
    }
    writer.end();
}
