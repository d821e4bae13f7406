//! Reading a command whole, before anything is done for it.

use super::super::fault::{Fault, Refusal};
use super::super::message::{Command, Verb};
use super::super::token::Token;
use super::media::{Media, MediaPart, StreamPart};
use super::{Descriptor, Events, EventsDescriptor, SignalPart, Signals};

/// Whether a command is a request or the reply to one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// It is to be done.
    Request,
    /// It was done.
    Reply,
}

/// Streams in one Media descriptor whose repetition is noticed.
const STREAMS: usize = 16;

impl Command<'_> {
    /// Reads all of it and says what is wrong first: syntax, descriptors that this command must not carry (447) or carries twice (448),
    /// parameters twice, what excludes each other. What it means to this gateway is not looked at.
    pub fn check(&self, side: Side) -> Result<(), Refusal> {
        if let Some(list) = self.terminations() {
            return match self.terminations_error() {
                Some(_) => Ok(()),
                None => list.map(drop),
            };
        }
        let mut seen: u128 = 0;
        let mut count = 0;
        for descriptor in self.descriptors() {
            let (token, descriptor) = descriptor?;
            let refused = |fault| Err(Refusal::new(fault, self.offset));
            if !is_legal(self.verb, side, token, &descriptor) {
                return refused(Fault::DescriptorIllegal);
            }
            // The reply to an audit may list a descriptor several times: alternatives (AV-01).
            let may_repeat = side == Side::Reply && matches!(self.verb, Verb::AuditValue | Verb::AuditCapability);
            if seen & 1 << token as u8 != 0 && !may_repeat {
                return refused(Fault::DescriptorRepeated);
            }
            seen |= 1 << token as u8;
            count += 1;
            check_descriptor(&descriptor)?;
            if let (Verb::ServiceChange, Side::Request, Descriptor::Services(services)) = (self.verb, side, &descriptor)
                && (services.method.is_none() || services.reason.is_none())
            {
                return refused(Fault::ServiceChangeIncomplete);
            }
        }
        let needs = matches!(self.verb, Verb::AuditValue | Verb::AuditCapability | Verb::Notify | Verb::ServiceChange);
        let empty = count == 0 && (self.has_body() || (needs && side == Side::Request));
        if empty { Err(Refusal::new(Fault::DescriptorMissing, self.offset)) } else { Ok(()) }
    }
}

/// Which descriptors a command may carry (B.2 ammRequest to serviceChangeReply).
fn is_legal(verb: Verb, side: Side, token: Token, descriptor: &Descriptor<'_>) -> bool {
    match (verb, side) {
        (Verb::Notify, Side::Request) => matches!(descriptor, Descriptor::ObservedEvents(_) | Descriptor::Error(_)),
        (Verb::Notify, Side::Reply) => token == Token::Error,
        (Verb::ServiceChange, Side::Request) => token == Token::Services,
        (Verb::ServiceChange, Side::Reply) => matches!(token, Token::Services | Token::Error),
        (Verb::Subtract | Verb::AuditValue | Verb::AuditCapability, Side::Request) => token == Token::Audit,
        (Verb::Add | Verb::Move | Verb::Modify, Side::Request) => match descriptor {
            // Media { } and the like are no requests, the empty lists of events and signals are.
            Descriptor::Empty(_) => false,
            _ => matches!(
                token,
                Token::Media
                    | Token::Modem
                    | Token::Mux
                    | Token::Events
                    | Token::Signals
                    | Token::DigitMap
                    | Token::EventBuffer
                    | Token::Audit
            ),
        },
        (_, Side::Reply) => !matches!(token, Token::Services | Token::Audit),
    }
}

fn check_descriptor(descriptor: &Descriptor<'_>) -> Result<(), Refusal> {
    match descriptor {
        Descriptor::Media(media) => check_media(media),
        Descriptor::Events(events) => check_events(events, 0),
        Descriptor::EventBuffer(events) => check_buffer(events),
        Descriptor::Signals(signals) => check_signals(signals),
        Descriptor::ObservedEvents(events) => events.iter().try_for_each(|event| event.map(drop)),
        // These are read whole when they are recognised.
        _ => Ok(()),
    }
}

fn check_media(media: &Media<'_>) -> Result<(), Refusal> {
    let (mut state, mut one) = (false, 0);
    let mut ids = [0; STREAMS];
    let mut streams = 0;
    let refuse = |fault| Err(Refusal::new(fault, media.offset()));
    for part in media.parts() {
        match part? {
            MediaPart::State(parameters) => {
                if std::mem::replace(&mut state, true) {
                    return refuse(Fault::DescriptorRepeated);
                }
                parameters.parameters().try_for_each(|parameter| parameter.map(drop))?;
            }
            MediaPart::Stream(stream) => {
                if ids.iter().take(streams).any(|id| *id == stream.id) {
                    return refuse(Fault::StreamRepeated);
                }
                if let Some(id) = ids.get_mut(streams) {
                    *id = stream.id;
                    streams += 1;
                }
                let mut seen = 0;
                stream.parts().try_for_each(|part| check_part(&part?, &mut seen))?;
            }
            MediaPart::One(part) => check_part(&part, &mut one)?,
        }
        if streams > 0 && one != 0 {
            return refuse(Fault::StreamsMixed);
        }
    }
    Ok(())
}

fn check_part(part: &StreamPart<'_>, seen: &mut u8) -> Result<(), Refusal> {
    let (bit, offset) = match part {
        StreamPart::Local(octets) => (1, octets.offset()),
        StreamPart::Remote(octets) => (2, octets.offset()),
        StreamPart::Control(_) => (4, 0),
    };
    if *seen & bit != 0 {
        return Err(Refusal::new(Fault::DescriptorRepeated, offset));
    }
    *seen |= bit;
    match part {
        StreamPart::Control(control) => control.parameters().try_for_each(|parameter| parameter.map(drop)),
        _ => Ok(()),
    }
}

/// `depth`: 0 for the descriptor of a command, 1 for an embedded one, which may embed signals only (EVT-06).
fn check_events(events: &EventsDescriptor<'_>, depth: u8) -> Result<(), Refusal> {
    for event in events.events.iter() {
        let event = event?;
        let Some(embedded) = event.embedded else { continue };
        if let Some(signals) = embedded.signals {
            check_signals(&signals)?;
        }
        match embedded.events {
            Some(_) if depth > 0 => return Err(Refusal::new(Fault::EmbeddedTooDeep, event.offset)),
            Some(inner) => check_events(&inner, depth + 1)?,
            None => {}
        }
    }
    Ok(())
}

/// Events to hold have a stream and parameters, nothing else (B.2 eventSpecParameter).
fn check_buffer(events: &Events<'_>) -> Result<(), Refusal> {
    for event in events.iter() {
        let event = event?;
        if event.keep_active || event.digit_map.is_some() || event.embedded.is_some() {
            return Err(Refusal::new(Fault::ParameterUnknown, event.offset));
        }
    }
    Ok(())
}

fn check_signals(signals: &Signals<'_>) -> Result<(), Refusal> {
    for part in signals.parts() {
        if let SignalPart::List { signals, .. } = part? {
            for part in signals {
                if let SignalPart::List { .. } = part? {
                    return Err(Refusal::new(Fault::Descriptor, 0));
                }
            }
        }
    }
    Ok(())
}
