//! Descriptors that were read, written again: what was asked for is told in the writer's own form.

use super::{Completion, EventSpec, Events, EventsDescriptor, Refusal, Signal, SignalPart, Signals, Token, Writer};

/// An Events descriptor.
pub fn events(list: &EventsDescriptor<'_>, writer: &mut Writer<'_>) -> Result<(), Refusal> {
    // An empty descriptor is the keyword alone (TXT-24).
    writer.events(list.request.filter(|_| !list.events.is_empty()));
    list.events.iter().try_for_each(|one| event(&one?, writer))?;
    writer.end();
    Ok(())
}

/// One event of a list. Recursion is bounded by the check of the command: events embed events once.
pub fn event(one: &EventSpec<'_>, writer: &mut Writer<'_>) -> Result<(), Refusal> {
    writer.begin_name(one.name);
    if one.stream != 0 {
        writer.number_item(Token::Stream, u32::from(one.stream));
    }
    if one.keep_active {
        writer.flag(Token::KeepActive);
    }
    if let Some(map) = &one.digit_map {
        writer.event_digit_map(map);
    }
    one.parameters().for_each(|parameter| writer.parameter(parameter.name, &parameter.value));
    if let Some(embedded) = &one.embedded {
        writer.begin_list(Token::Embed);
        if let Some(list) = &embedded.signals {
            signals(list, writer)?;
        }
        if let Some(list) = &embedded.events {
            events(list, writer)?;
        }
        writer.end();
    }
    writer.end();
    Ok(())
}

/// A Signals descriptor.
pub fn signals(list: &Signals<'_>, writer: &mut Writer<'_>) -> Result<(), Refusal> {
    writer.begin_list(Token::Signals);
    for part in list.parts() {
        match part? {
            SignalPart::Signal(one) => signal(&one, writer),
            SignalPart::List { id, signals } => {
                writer.begin_number(Token::SignalList, u32::from(id));
                for part in signals {
                    if let SignalPart::Signal(one) = part? {
                        signal(&one, writer);
                    }
                }
                writer.end();
            }
        }
    }
    writer.end();
    Ok(())
}

fn signal(one: &Signal<'_>, writer: &mut Writer<'_>) {
    writer.begin_name(one.name);
    if one.stream != 0 {
        writer.number_item(Token::Stream, u32::from(one.stream));
    }
    if let Some(kind) = one.kind {
        writer.token_item(Token::SignalType, kind.token());
    }
    if let Some(duration) = one.duration {
        writer.number_item(Token::Duration, u32::from(duration));
    }
    if let Some(Completion { time_out, by_event, by_signals, other }) = one.completion {
        let told =
            [(time_out, Token::TimeOut), (by_event, Token::IntByEvent), (by_signals, Token::IntBySigDescr), (other, Token::OtherReason)];
        writer.token_set(Token::NotifyCompletion, told.into_iter().filter(|(told, _)| *told).map(|(_, token)| token));
    }
    if one.keep_active {
        writer.flag(Token::KeepActive);
    }
    one.parameters().for_each(|parameter| writer.parameter(parameter.name, &parameter.value));
    writer.end();
}

/// An EventBuffer descriptor.
pub fn event_buffer(list: &Events<'_>, writer: &mut Writer<'_>) -> Result<(), Refusal> {
    writer.begin(Token::EventBuffer);
    list.iter().try_for_each(|one| event(&one?, writer))?;
    writer.end();
    Ok(())
}
