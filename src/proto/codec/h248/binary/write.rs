//! From text to octets: what the gateway writes, as Annex A has it. What has no place there fails ([`Writer::fail`]), and nothing is sent.

use super::ber::Writer;
use super::names::{self, Sort};
use super::read::COMMANDS;
use super::{media, service, termination, value, watch};
use crate::proto::codec::h248::{
    Action, ActionPart, Audit, Command, Content, ContextId, Descriptor, ErrorDescriptor, Header, Message, MessageId, Refusal, Reply,
    ReplyPart, Style, Token, TopologyTriple, Transaction, Verb, Way,
};

pub(super) type Done = Result<(), Refusal>;

/// A MegacoMessage.
pub fn message(message: &Message<'_>, w: &mut Writer<'_>) -> Done {
    w.begin_sequence();
    header(&message.header, w);
    w.begin(2);
    match message.content()? {
        Content::Error(failure) => error(0, &failure, w),
        Content::Transactions(transactions) => {
            w.begin(1);
            for one in transactions {
                transaction(&one?, w)?;
            }
            w.end();
        }
    }
    w.end();
    w.end();
    w.end();
    Ok(())
}

/// Authentication is nothing the gateway writes. The body follows inside the component that is open then.
fn header(header: &Header<'_>, w: &mut Writer<'_>) {
    w.begin(1);
    w.integer(0, i64::from(header.version));
    w.begin(1);
    message_id(&header.from, 0, w);
    w.end();
}

/// An alternative of MId; of ServiceChangeAddress, whose numbers are one more, with `shift` 1.
pub(super) fn message_id(id: &MessageId<'_>, shift: u8, w: &mut Writer<'_>) {
    let with_port = |number, address: &[u8], port: &Option<u16>, w: &mut Writer<'_>| {
        w.begin(number + shift);
        w.octets(0, address);
        if let Some(port) = port {
            w.integer(1, i64::from(*port));
        }
        w.end();
    };
    match id {
        MessageId::Ip4(address, port) => with_port(0, &address.octets(), port, w),
        MessageId::Ip6(address, port) => with_port(1, &address.octets(), port, w),
        MessageId::Domain(name, port) => with_port(2, name, port, w),
        MessageId::Device(name) => w.octets(3 + shift, name),
        MessageId::Mtp(digits) => {
            let mut octets = [0; 4];
            for (octet, pair) in octets.iter_mut().zip(digits.chunks(2)) {
                *octet = std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or(0);
            }
            w.octets(4 + shift, octets.get(..digits.len().div_ceil(2)).unwrap_or_default());
        }
    }
}

fn transaction(one: &Transaction<'_>, w: &mut Writer<'_>) -> Done {
    match one {
        Transaction::Request(request) => {
            w.begin(0);
            w.integer(0, i64::from(request.id));
            w.begin(1);
            request.actions().try_for_each(|one| action(&one?, true, w))?;
            w.end();
            w.end();
        }
        Transaction::Pending(id) => {
            w.begin(1);
            w.integer(0, i64::from(*id));
            w.end();
        }
        Transaction::Reply(one) => reply(one, w)?,
        Transaction::Acknowledgement(ranges) => {
            w.begin(3);
            for (first, last) in ranges.clone() {
                w.begin_sequence();
                w.integer(0, i64::from(first));
                if last != first {
                    w.integer(1, i64::from(last));
                }
                w.end();
            }
            w.end();
        }
    }
    Ok(())
}

fn reply(reply: &Reply<'_>, w: &mut Writer<'_>) -> Done {
    w.begin(2);
    w.integer(0, i64::from(reply.id));
    if reply.immediate_ack {
        w.null(1);
    }
    w.begin(2);
    let mut parts = reply.actions().peekable();
    if let Some(Ok(ReplyPart::Error(failure))) = parts.peek() {
        error(0, failure, w);
    } else {
        w.begin(1);
        for part in parts {
            match part? {
                ReplyPart::Action(one) => action(&one, false, w)?,
                // Behind actions there is no place for it.
                ReplyPart::Error(_) => w.fail(),
            }
        }
        w.end();
    }
    w.end();
    w.end();
    Ok(())
}

pub(super) fn error(number: u8, failure: &ErrorDescriptor<'_>, w: &mut Writer<'_>) {
    w.begin(number);
    w.integer(0, i64::from(failure.code));
    if let Some(text) = failure.text.filter(|text| !text.is_empty()) {
        w.octets(1, text);
    }
    w.end();
}

/// An ActionRequest, or an ActionReply. Its parts stand in another order there than in a text, so each kind is looked for in turn.
fn action(action: &Action<'_>, is_request: bool, w: &mut Writer<'_>) -> Done {
    w.begin_sequence();
    w.integer(
        0,
        match action.context {
            ContextId::Null => 0,
            ContextId::Choose => 0xffff_fffe,
            ContextId::All => 0xffff_ffff,
            ContextId::Number(number) => i64::from(number),
        },
    );
    if !is_request {
        for part in action.parts() {
            if let ActionPart::Error(failure) = part? {
                error(1, &failure, w);
            }
        }
    }
    properties(action, if is_request { 1 } else { 2 }, w)?;
    for part in action.parts() {
        if let ActionPart::Audit(asked) = part?
            && is_request
        {
            w.begin(2);
            for (number, asked) in [asked.topology, asked.emergency, asked.priority].into_iter().enumerate() {
                if asked {
                    w.null(number as u8);
                }
            }
            w.end();
        }
    }
    w.begin(3);
    for part in action.parts() {
        if let ActionPart::Command(one) = part? {
            if is_request { command(&one, w)? } else { command_reply(&one, w)? }
        }
    }
    w.end();
    w.end();
    Ok(())
}

fn properties(action: &Action<'_>, number: u8, w: &mut Writer<'_>) -> Done {
    let is_property = |part: &ActionPart<'_>| matches!(part, ActionPart::Priority(_) | ActionPart::Emergency | ActionPart::Topology(_));
    if !action.parts().flatten().any(|part| is_property(&part)) {
        return Ok(());
    }
    w.begin(number);
    for wanted in 0..3 {
        for part in action.parts() {
            match (wanted, part?) {
                (0, ActionPart::Priority(priority)) => w.integer(0, i64::from(priority)),
                (1, ActionPart::Emergency) => w.boolean(1, true),
                (2, ActionPart::Topology(triples)) => {
                    w.begin(2);
                    triples.for_each(|one| triple(&one, w));
                    w.end();
                }
                _ => {}
            }
        }
    }
    w.end();
    Ok(())
}

fn triple(triple: &TopologyTriple<'_>, w: &mut Writer<'_>) {
    w.begin_sequence();
    for (number, id) in [(0, &triple.from), (1, &triple.to)] {
        w.begin(number);
        termination::write(id.text(), w);
        w.end();
    }
    w.integer(
        2,
        match triple.way {
            Way::Bothway => 0,
            Way::Isolate => 1,
            Way::Oneway => 2,
        },
    );
    w.end();
}

/// The number of a command's alternative.
fn alternative(verb: Verb) -> u8 {
    let word = verb.token().name(Style::Compact).as_bytes();
    COMMANDS.iter().position(|known| known.strip_suffix(b"=") == Some(word)).unwrap_or(0) as u8
}

/// Component 0: one termination, or a list of one.
fn one_termination(command: &Command<'_>, is_list: bool, w: &mut Writer<'_>) {
    w.begin(0);
    if is_list {
        w.begin_sequence();
    }
    termination::write(command.termination.text(), w);
    if is_list {
        w.end();
    }
    w.end();
}

fn command(command: &Command<'_>, w: &mut Writer<'_>) -> Done {
    w.begin_sequence();
    w.begin(0);
    w.begin(alternative(command.verb));
    let audits = matches!(command.verb, Verb::AuditValue | Verb::AuditCapability);
    one_termination(command, !audits, w);
    match command.verb {
        Verb::Add | Verb::Move | Verb::Modify => {
            w.begin(1);
            for one in command.descriptors() {
                // An AmmDescriptor's number is one less than that of an AuditReturnParameter.
                let (token, one) = one?;
                let number = if token == Token::Audit { 7 } else { number_of(token).saturating_sub(1) };
                descriptor(number, &one, w)?;
            }
            w.end();
        }
        _ => {
            for one in command.descriptors() {
                match one?.1 {
                    Descriptor::Audit(one) => audit(1, one, w),
                    Descriptor::ObservedEvents(events) => watch::write_observed(1, &events, w)?,
                    Descriptor::Error(failure) => error(2, &failure, w),
                    Descriptor::Services(one) => service::write(1, &one, true, w),
                    _ => w.fail(),
                }
            }
        }
    }
    w.end();
    w.end();
    for (number, mark) in [(1, command.optional), (2, command.wildcarded)] {
        if mark {
            w.null(number);
        }
    }
    w.end();
    Ok(())
}

fn command_reply(command: &Command<'_>, w: &mut Writer<'_>) -> Done {
    let number = alternative(command.verb);
    w.begin(number);
    match command.verb {
        Verb::AuditValue | Verb::AuditCapability if command.lists_terminations() => {
            match (command.terminations_error(), command.terminations()) {
                (Some(failure), _) => error(1, &failure, w),
                (None, list) => {
                    w.begin(0);
                    for id in list.transpose()?.into_iter().flatten() {
                        w.begin_sequence();
                        termination::write(id.text(), w);
                        w.end();
                    }
                    w.end();
                }
            }
        }
        Verb::AuditValue | Verb::AuditCapability => {
            w.begin(2);
            one_termination(command, false, w);
            audited(command, w)?;
            w.end();
        }
        Verb::Add | Verb::Move | Verb::Modify | Verb::Subtract => {
            one_termination(command, true, w);
            if command.has_body() {
                audited(command, w)?;
            }
        }
        Verb::Notify => {
            one_termination(command, true, w);
            for one in command.descriptors() {
                match one?.1 {
                    Descriptor::Error(failure) => error(1, &failure, w),
                    _ => w.fail(),
                }
            }
        }
        Verb::ServiceChange => {
            one_termination(command, true, w);
            w.begin(1);
            let mut any = false;
            for one in command.descriptors() {
                any = true;
                match one?.1 {
                    Descriptor::Error(failure) => error(0, &failure, w),
                    Descriptor::Services(one) => service::write(1, &one, false, w),
                    _ => w.fail(),
                }
            }
            if !any {
                w.begin(1);
                w.end();
            }
            w.end();
        }
    }
    w.end();
    Ok(())
}

/// A TerminationAudit. Descriptors that are empty stand together in one of their own.
fn audited(command: &Command<'_>, w: &mut Writer<'_>) -> Done {
    w.begin(1);
    let mut empty = 0;
    for one in command.descriptors() {
        let (token, one) = one?;
        match one {
            Descriptor::Empty(token) => empty |= bit(token),
            // Decoders that take a request for compulsory (OTP's) could not read an empty list.
            Descriptor::Events(events) if events.request.is_none() => empty |= bit(token),
            one => descriptor(number_of(token), &one, w)?,
        }
    }
    if empty != 0 {
        w.begin(11);
        w.bits(0, empty, 10);
        w.end();
    }
    w.end();
    Ok(())
}

/// The bit of a descriptor in an audit (BIN-11).
fn bit(token: Token) -> u16 {
    let word = token.name(Style::Compact).as_bytes();
    super::read::AUDITED.iter().position(|known| *known == word).map_or(0, |at| 0x8000 >> at)
}

/// The number of a descriptor in AuditReturnParameter.
fn number_of(token: Token) -> u8 {
    match token {
        Token::Media => 1,
        Token::Modem => 2,
        Token::Mux => 3,
        Token::Events => 4,
        Token::EventBuffer => 5,
        Token::Signals => 6,
        Token::DigitMap => 7,
        Token::ObservedEvents => 8,
        Token::Statistics => 9,
        Token::Packages => 10,
        _ => 0,
    }
}

fn descriptor(number: u8, one: &Descriptor<'_>, w: &mut Writer<'_>) -> Done {
    match one {
        Descriptor::Error(failure) => error(number, failure, w),
        Descriptor::Media(one) => media::write_media(number, one, w)?,
        Descriptor::Modem(one) => media::write_modem(number, one, w),
        Descriptor::Mux(one) => media::write_mux(number, one, w),
        Descriptor::Events(events) => watch::write_events(number, events, true, w)?,
        Descriptor::EventBuffer(events) => watch::write_event_buffer(number, events, w)?,
        Descriptor::Signals(signals) => watch::write_signals(number, signals, w)?,
        Descriptor::DigitMap(map) => watch::write_digit_map(number, map, w),
        Descriptor::Audit(one) => audit(number, *one, w),
        Descriptor::ObservedEvents(events) => watch::write_observed(number, events, w)?,
        Descriptor::Statistics(statistics) => {
            w.begin(number);
            for statistic in statistics.clone() {
                w.begin_sequence();
                let name = value::numbered(statistic.name, Sort::Statistic, w);
                name.write(0, w);
                if let Some(value) = statistic.value {
                    value::write_value(1, value, name.item(), w);
                }
                w.end();
            }
            w.end();
        }
        Descriptor::Packages(packages) => {
            w.begin(number);
            for package in packages.clone() {
                w.begin_sequence();
                match names::package_number(package.name) {
                    Some((_, number)) => w.octets(0, &number.to_be_bytes()),
                    None => w.fail(),
                }
                w.integer(1, i64::from(package.version));
                w.end();
            }
            w.end();
        }
        Descriptor::Services(_) => w.fail(),
        // An empty descriptor in a request: a list without anything.
        Descriptor::Empty(_) => {
            w.begin(number);
            w.end();
        }
    }
    Ok(())
}

fn audit(number: u8, audit: Audit, w: &mut Writer<'_>) {
    w.begin(number);
    w.bits(0, audit.iter().fold(0, |bits, token| bits | bit(token)), 10);
    w.end();
}
