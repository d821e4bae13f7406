//! Events, EventBuffer, Signals, DigitMap and ObservedEvents descriptors, both ways.

use super::ber::{Element, Malformed, Writer};
use super::media::place;
use super::names::{self, Sort};
use super::read::{Done, list, pick};
use super::service::{self, time};
use super::text::{Commas, Text};
use super::{value, write};
use crate::proto::codec::h248::{
    Completion, DigitMap, DigitMapDescriptor, Embedded, EventDigitMap, EventSpec, Events, EventsDescriptor, ObservedEvents, RequestId,
    Signal, SignalPart, Signals,
};

/// RequestID ALL (BIN-09).
pub(super) const ALL: u32 = u32::MAX;
/// The words of signal types, by their numbers (BIN-12).
pub(super) const TYPES: [&[u8]; 3] = [b"BR", b"OO", b"TO"];
/// What ends of signals are told, the first one in bit 15.
pub(super) const ENDS: [&[u8]; 4] = [b"TO", b"IBE", b"IBS", b"OR"];

fn request(id: &Element<'_>, out: &mut Text<'_>) -> Done {
    match id.number(u32::MAX)? {
        ALL => out.put(b"*"),
        number => out.number(i64::from(number)),
    }
    Ok(())
}

/// An EventsDescriptor, or one that is embedded: then events embed none.
pub(super) fn events(events: &Element<'_>, may_embed: bool, out: &mut Text<'_>) -> Done {
    out.put(b"E");
    let all = events.needed(1)?;
    let Some(id) = events.field(0)?.filter(|_| all.elements().next().is_some()) else {
        // Without a request an empty list is one, and anything else is refused as the text it becomes.
        if all.elements().next().is_some() {
            out.put(b"{");
            list(&all, out, |one, out| event(one, may_embed, out))?;
            out.put(b"}");
        }
        return Ok(());
    };
    out.put(b"=");
    request(&id, out)?;
    out.put(b"{");
    list(&all, out, |one, out| event(one, may_embed, out))?;
    out.put(b"}");
    Ok(())
}

fn event(one: &Element<'_>, may_embed: bool, out: &mut Text<'_>) -> Done {
    let name = one.needed(0)?.octets()?;
    value::packaged(name, Sort::Event, out)?;
    let mut inside = Inside::new(out);
    if let Some(stream) = one.field(1)? {
        inside.stream(&stream)?;
    }
    if let Some(action) = one.field(2)? {
        // Embedded actions have no further list, so what follows it has one number less.
        let (nested, signals) = if may_embed { (action.field(2)?, action.field(3)?) } else { (None, action.field(2)?) };
        if let Some(keep) = action.field(0)?
            && keep.boolean()?
        {
            inside.next().put(b"KA");
        }
        if let Some(map) = action.field(1)? {
            event_digit_map(&map.chosen()?, inside.next())?;
        }
        if nested.is_some() || signals.is_some() {
            let out = inside.next();
            let mut commas = Commas::default();
            out.put(b"EM{");
            if let Some(list) = signals {
                commas.next(out);
                self::signals(&list, out)?;
            }
            if let Some(list) = nested {
                commas.next(out);
                events(&list, false, out)?;
            }
            out.put(b"}");
        }
    }
    for parameter in one.needed(3)?.elements() {
        value::parameter(&parameter?, value::item_of(name, Sort::Event), inside.next())?;
    }
    inside.end();
    Ok(())
}

/// What stands between the braces of an event or signal; without anything there are none.
struct Inside<'o, 't> {
    out: &'o mut Text<'t>,
    any: bool,
}

impl<'o, 't> Inside<'o, 't> {
    fn new(out: &'o mut Text<'t>) -> Inside<'o, 't> {
        Inside { out, any: false }
    }

    fn next(&mut self) -> &mut Text<'t> {
        self.out.put(if std::mem::replace(&mut self.any, true) { b"," } else { b"{" });
        self.out
    }

    fn stream(&mut self, stream: &Element<'_>) -> Done {
        let number = stream.number(65_535)?;
        if number != 0 {
            let out = self.next();
            out.put(b"ST=");
            out.number(i64::from(number));
        }
        Ok(())
    }

    fn end(self) {
        if self.any {
            self.out.put(b"}");
        }
    }
}

fn event_digit_map(map: &Element<'_>, out: &mut Text<'_>) -> Done {
    out.put(b"DM=");
    match map.number {
        0 => value::digit_map_name(map.octets()?, out),
        1 => {
            out.put(b"{");
            digit_map_value(map, out)?;
            out.put(b"}");
            Ok(())
        }
        _ => Err(Malformed),
    }
}

fn digit_map_value(map: &Element<'_>, out: &mut Text<'_>) -> Done {
    for (number, letter) in [(0, b"T:"), (1, b"S:"), (2, b"L:")] {
        if let Some(seconds) = map.field(number)? {
            out.put(letter);
            out.number(i64::from(seconds.number(99)?));
            out.put(b",");
        }
    }
    let body = map.needed(3)?.octets()?;
    let good = body.iter().all(|&byte| byte.is_ascii_alphanumeric() || b" \t\r\n()[].|-*#".contains(&byte));
    let enclosed = body.trim_ascii_start().starts_with(b"(");
    out.put(if enclosed { b"" } else { b"(" });
    out.put(body);
    out.put(if enclosed { b"" } else { b")" });
    if good { Ok(()) } else { Err(Malformed) }
}

/// A DigitMapDescriptor. A map with an empty body deletes the one of that name (DM-01).
pub(super) fn digit_map(map: &Element<'_>, out: &mut Text<'_>) -> Done {
    out.put(b"DM=");
    if let Some(name) = map.field(0)? {
        let name = name.octets()?;
        if name == [0xff, 0xff] { out.put(b"*") } else { value::digit_map_name(name, out)? }
    }
    if let Some(map) = map.field(1)? {
        out.put(b"{");
        if !map.needed(3)?.octets()?.trim_ascii().is_empty() {
            digit_map_value(&map, out)?;
        }
        out.put(b"}");
    }
    Ok(())
}

/// An EventBufferDescriptor: a SEQUENCE OF EventSpec.
pub(super) fn event_buffer(events: &Element<'_>, out: &mut Text<'_>) -> Done {
    out.put(b"EB");
    if events.elements().next().is_none() {
        return Ok(());
    }
    out.put(b"{");
    list(events, out, event_spec)?;
    out.put(b"}");
    Ok(())
}

/// An EventSpec, and what an ObservedEvent has beside its time: the event, its stream, its parameters.
fn event_spec(one: &Element<'_>, out: &mut Text<'_>) -> Done {
    let name = one.needed(0)?.octets()?;
    value::packaged(name, Sort::Event, out)?;
    let mut inside = Inside::new(out);
    if let Some(stream) = one.field(1)? {
        inside.stream(&stream)?;
    }
    for parameter in one.needed(2)?.elements() {
        value::parameter(&parameter?, value::item_of(name, Sort::Event), inside.next())?;
    }
    inside.end();
    Ok(())
}

pub(super) fn signals(signals: &Element<'_>, out: &mut Text<'_>) -> Done {
    out.put(b"SG{");
    list(signals, out, |one, out| match one.number {
        0 => signal(one, out),
        1 => {
            out.put(b"SL=");
            out.number(i64::from(one.needed(0)?.number(65_535)?));
            out.put(b"{");
            list(&one.needed(1)?, out, signal)?;
            out.put(b"}");
            Ok(())
        }
        _ => Err(Malformed),
    })?;
    out.put(b"}");
    Ok(())
}

fn signal(one: &Element<'_>, out: &mut Text<'_>) -> Done {
    let name = one.needed(0)?.octets()?;
    value::packaged(name, Sort::Signal, out)?;
    let mut inside = Inside::new(out);
    if let Some(stream) = one.field(1)? {
        inside.stream(&stream)?;
    }
    if let Some(kind) = one.field(2)? {
        let word = pick(&TYPES, &kind)?;
        let out = inside.next();
        out.put(b"SY=");
        out.put(word);
    }
    if let Some(duration) = one.field(3)? {
        let duration = duration.number(65_535)?;
        let out = inside.next();
        out.put(b"DR=");
        out.number(i64::from(duration));
    }
    if let Some(told) = one.field(4)? {
        let bits = told.bits()?;
        let out = inside.next();
        out.put(b"NC={");
        let mut commas = Commas::default();
        for (bit, word) in ENDS.iter().enumerate() {
            if bits & 0x8000 >> bit != 0 {
                commas.next(out);
                out.put(word);
            }
        }
        out.put(b"}");
    }
    if let Some(keep) = one.field(5)?
        && keep.boolean()?
    {
        inside.next().put(b"KA");
    }
    for parameter in one.needed(6)?.elements() {
        value::parameter(&parameter?, value::item_of(name, Sort::Signal), inside.next())?;
    }
    inside.end();
    Ok(())
}

/// An ObservedEventsDescriptor.
pub(super) fn observed(events: &Element<'_>, out: &mut Text<'_>) -> Done {
    out.put(b"OE=");
    request(&events.needed(0)?, out)?;
    out.put(b"{");
    list(&events.needed(1)?, out, |one, out| {
        if let Some(at) = one.field(3)? {
            time(&at, out)?;
            out.put(b":");
        }
        event_spec(one, out)
    })?;
    out.put(b"}");
    Ok(())
}

fn write_request(number: u8, id: RequestId, w: &mut Writer<'_>) {
    w.integer(
        number,
        match id {
            RequestId::All => i64::from(ALL),
            RequestId::Number(number) => i64::from(number),
        },
    );
}

fn write_stream(stream: u16, w: &mut Writer<'_>) {
    if stream != 0 {
        w.integer(1, i64::from(stream));
    }
}

/// An EventsDescriptor, as a component; one that is embedded has events that embed none.
pub(super) fn write_events(number: u8, events: &EventsDescriptor<'_>, may_embed: bool, w: &mut Writer<'_>) -> write::Done {
    w.begin(number);
    if let Some(id) = events.request {
        write_request(0, id, w);
    }
    w.begin(1);
    events.events.iter().try_for_each(|one| write_event(&one?, may_embed, w))?;
    w.end();
    w.end();
    Ok(())
}

fn write_event(one: &EventSpec<'_>, may_embed: bool, w: &mut Writer<'_>) -> write::Done {
    w.begin_sequence();
    let name = value::numbered(one.name, Sort::Event, w);
    name.write(0, w);
    write_stream(one.stream, w);
    if one.keep_active || one.digit_map.is_some() || one.embedded.is_some() {
        w.begin(2);
        if one.keep_active {
            w.boolean(0, true);
        }
        if let Some(map) = &one.digit_map {
            w.begin(1);
            match map {
                EventDigitMap::Name(name) => write_map_name(0, name, w),
                EventDigitMap::Value(map) => write_map_value(1, map, w),
            }
            w.end();
        }
        if let Some(Embedded { signals, events }) = &one.embedded {
            match events {
                Some(events) if may_embed => write_events(2, events, false, w)?,
                Some(_) => w.fail(),
                None => {}
            }
            if let Some(signals) = signals {
                write_signals(if may_embed { 3 } else { 2 }, signals, w)?;
            }
        }
        w.end();
    }
    value::write_parameters(3, one.parameters(), name.item(), w);
    w.end();
    Ok(())
}

fn write_map_name(number: u8, name: &[u8], w: &mut Writer<'_>) {
    match names::digit_map_number(name) {
        Some(code) => w.octets(number, &code.to_be_bytes()),
        None if name == b"*" => w.octets(number, &[0xff, 0xff]),
        None => w.fail(),
    }
}

fn write_map_value(number: u8, map: &DigitMap<'_>, w: &mut Writer<'_>) {
    w.begin(number);
    for (number, seconds) in [(0, map.start), (1, map.short), (2, map.long)] {
        if let Some(seconds) = seconds {
            w.integer(number, i64::from(seconds));
        }
    }
    w.octets_of(3, [b"(", map.as_bytes(), b")"]);
    w.end();
}

/// A DigitMapDescriptor, as a component.
pub(super) fn write_digit_map(number: u8, map: &DigitMapDescriptor<'_>, w: &mut Writer<'_>) {
    w.begin(number);
    if let Some(name) = map.name {
        write_map_name(0, name, w);
    }
    match &map.map {
        Some(map) => write_map_value(1, map, w),
        None if map.deleted => {
            w.begin(1);
            w.octets(3, &[]);
            w.end();
        }
        None => {}
    }
    w.end();
}

/// An EventBufferDescriptor, as a component.
pub(super) fn write_event_buffer(number: u8, events: &Events<'_>, w: &mut Writer<'_>) -> write::Done {
    w.begin(number);
    for one in events.iter() {
        let one = one?;
        w.begin_sequence();
        let name = value::numbered(one.name, Sort::Event, w);
        name.write(0, w);
        write_stream(one.stream, w);
        value::write_parameters(2, one.parameters(), name.item(), w);
        w.end();
    }
    w.end();
    Ok(())
}

/// A SignalsDescriptor, as a component.
pub(super) fn write_signals(number: u8, signals: &Signals<'_>, w: &mut Writer<'_>) -> write::Done {
    w.begin(number);
    for part in signals.parts() {
        match part? {
            SignalPart::Signal(one) => {
                w.begin(0);
                write_signal(&one, w);
                w.end();
            }
            SignalPart::List { id, signals } => {
                w.begin(1);
                w.integer(0, i64::from(id));
                w.begin(1);
                for one in signals {
                    if let SignalPart::Signal(one) = one? {
                        w.begin_sequence();
                        write_signal(&one, w);
                        w.end();
                    }
                }
                w.end();
                w.end();
            }
        }
    }
    w.end();
    Ok(())
}

fn write_signal(one: &Signal<'_>, w: &mut Writer<'_>) {
    let name = value::numbered(one.name, Sort::Signal, w);
    name.write(0, w);
    write_stream(one.stream, w);
    if let Some(kind) = one.kind {
        w.integer(2, place(&TYPES, kind.token()));
    }
    if let Some(duration) = one.duration {
        w.integer(3, i64::from(duration));
    }
    if let Some(Completion { time_out, by_event, by_signals, other }) = one.completion {
        let told = [time_out, by_event, by_signals, other].into_iter().enumerate();
        w.bits(4, told.fold(0, |bits, (at, told)| bits | if told { 0x8000 >> at } else { 0 }), 4);
    }
    if one.keep_active {
        w.boolean(5, true);
    }
    value::write_parameters(6, one.parameters(), name.item(), w);
}

/// An ObservedEventsDescriptor, as a component.
pub(super) fn write_observed(number: u8, events: &ObservedEvents<'_>, w: &mut Writer<'_>) -> write::Done {
    w.begin(number);
    write_request(0, events.request, w);
    w.begin(1);
    for one in events.iter() {
        let one = one?;
        w.begin_sequence();
        let name = value::numbered(one.name, Sort::Event, w);
        name.write(0, w);
        write_stream(one.stream, w);
        value::write_parameters(2, one.parameters(), name.item(), w);
        if let Some(at) = one.time {
            service::write_time(3, at, w);
        }
        w.end();
    }
    w.end();
    w.end();
    Ok(())
}
