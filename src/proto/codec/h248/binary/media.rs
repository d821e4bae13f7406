//! Media, Modem and Mux descriptors, both ways. Session descriptions are properties of Annex C.11, one for each line (BIN-06).

use super::ber::{Element, Malformed, Writer, tag};
use super::names;
use super::read::{Done, list, pick};
use super::text::{Commas, Text};
use super::{termination, value, write};
use crate::proto::codec::h248::{
    LocalControl, LocalParameter, Media, MediaPart, Modem, Mux, Octets, StreamPart, Style, TerminationState, TerminationStateParameter,
    Token,
};

/// The words of modes, service states, event buffers, multiplexes and modems, by their numbers (BIN-12).
pub(super) const MODES: [&[u8]; 5] = [b"SO", b"RC", b"SR", b"IN", b"LB"];
pub(super) const STATES: [&[u8]; 3] = [b"TE", b"OS", b"IV"];
pub(super) const MUXES: [&[u8]; 4] = [b"H221", b"H223", b"H226", b"V76"];
pub(super) const MODEMS: [&[u8]; 9] = [b"V18", b"V22", b"V22b", b"V32", b"V32b", b"V34", b"V90", b"V91", b"SN"];

pub(super) fn media(media: &Element<'_>, out: &mut Text<'_>) -> Done {
    let mut commas = Commas::default();
    out.put(b"M{");
    if let Some(state) = media.field(0)? {
        commas.next(out);
        termination_state(&state, out)?;
    }
    if let Some(streams) = media.field(1)? {
        let streams = streams.chosen()?;
        match streams.number {
            0 => parameters(&streams, &mut commas, out)?,
            1 => {
                for stream in streams.elements() {
                    let stream = stream?;
                    commas.next(out);
                    out.put(b"ST=");
                    out.number(i64::from(stream.needed(0)?.number(65_535)?));
                    out.put(b"{");
                    parameters(&stream.needed(1)?, &mut Commas::default(), out)?;
                    out.put(b"}");
                }
            }
            _ => return Err(Malformed),
        }
    }
    out.put(b"}");
    Ok(())
}

fn termination_state(state: &Element<'_>, out: &mut Text<'_>) -> Done {
    let mut commas = Commas::default();
    out.put(b"TS{");
    for property in state.field(0)?.iter().flat_map(Element::elements) {
        commas.next(out);
        value::property(&property?, out)?;
    }
    if let Some(control) = state.field(1)? {
        commas.next(out);
        out.put(b"BF=");
        out.put(pick(&[b"OFF", b"SP"], &control)?);
    }
    if let Some(service) = state.field(2)? {
        commas.next(out);
        out.put(b"SI=");
        out.put(pick(&STATES, &service)?);
    }
    out.put(b"}");
    Ok(())
}

fn parameters(stream: &Element<'_>, commas: &mut Commas, out: &mut Text<'_>) -> Done {
    if let Some(control) = stream.field(0)? {
        commas.next(out);
        local_control(&control, out)?;
    }
    for (number, token) in [(1, b"L{"), (2, b"R{")] {
        if let Some(side) = stream.field(number)? {
            commas.next(out);
            out.put(token);
            descriptions(&side.needed(0)?, out)?;
            out.put(b"}");
        }
    }
    Ok(())
}

fn local_control(control: &Element<'_>, out: &mut Text<'_>) -> Done {
    let mut commas = Commas::default();
    out.put(b"O{");
    if let Some(mode) = control.field(0)? {
        commas.next(out);
        out.put(b"MO=");
        out.put(pick(&MODES, &mode)?);
    }
    for (number, token) in [(1, b"RV="), (2, b"RG=")] {
        if let Some(flag) = control.field(number)? {
            commas.next(out);
            out.put(token);
            out.put(if flag.boolean()? { b"ON" } else { b"OFF" });
        }
    }
    for property in control.field(3)?.iter().flat_map(Element::elements) {
        commas.next(out);
        value::property(&property?, out)?;
    }
    out.put(b"}");
    Ok(())
}

/// Groups of lines, each a session description.
fn descriptions(groups: &Element<'_>, out: &mut Text<'_>) -> Done {
    let (_, first) = names::LINES.first().copied().unwrap_or_default();
    for (at, group) in groups.elements().enumerate() {
        let group = group?;
        if at == 0 {
            out.put(b"\n");
        }
        for (place, line) in group.elements().enumerate() {
            let line = line?;
            // Annex C has codes beside those of SDP: no text says them.
            let &[0, 0, high, low] = line.needed(0)?.octets()? else { return Err(Malformed) };
            let number = u16::from_be_bytes([high, low]);
            let letter = names::LINES.iter().find(|(_, known)| *known == number).ok_or(Malformed)?.0;
            // The line that tells one description from the next is needed where a text has several.
            if place == 0 && at > 0 && number != first {
                out.line(b'v', b"0");
            }
            let mut values = line.needed(1)?.elements();
            match values.next() {
                Some(text) => out.line(letter, value::string(text?.octets()?)),
                None => out.line(letter, b"$"),
            }
            for text in values {
                // Several values of `a=` or `r=` are several lines; of others they are alternatives, which no text of SDP has.
                if !matches!(letter, b'a' | b'r') {
                    return Err(Malformed);
                }
                out.line(letter, value::string(text?.octets()?));
            }
        }
    }
    Ok(())
}

pub(super) fn modem(modem: &Element<'_>, out: &mut Text<'_>) -> Done {
    out.put(b"MD[");
    list(&modem.needed(0)?, out, |kind, out| {
        out.put(pick(&MODEMS, kind)?);
        Ok(())
    })?;
    out.put(b"]");
    let properties = modem.needed(1)?;
    if properties.elements().next().is_some() {
        out.put(b"{");
        list(&properties, out, value::property)?;
        out.put(b"}");
    }
    Ok(())
}

pub(super) fn mux(mux: &Element<'_>, out: &mut Text<'_>) -> Done {
    out.put(b"MX=");
    out.put(pick(&MUXES, &mux.needed(0)?)?);
    out.put(b"{");
    list(&mux.needed(1)?, out, termination::read)?;
    out.put(b"}");
    Ok(())
}

/// The place of a keyword in a list of them.
pub(super) fn place(words: &[&[u8]], token: Token) -> i64 {
    let word = token.name(Style::Compact).as_bytes();
    words.iter().position(|known| *known == word).unwrap_or(0) as i64
}

/// A MediaDescriptor, as a component.
pub(super) fn write_media(number: u8, media: &Media<'_>, w: &mut Writer<'_>) -> write::Done {
    w.begin(number);
    for part in media.parts() {
        if let MediaPart::State(state) = part? {
            write_state(&state, w)?;
        }
    }
    let parts = || media.parts().flatten();
    if parts().any(|part| matches!(part, MediaPart::Stream(_))) {
        w.begin(1);
        w.begin(1);
        for part in parts() {
            if let MediaPart::Stream(stream) = part {
                w.begin_sequence();
                w.integer(0, i64::from(stream.id));
                w.begin(1);
                write_parameters(|| stream.parts().flatten(), w)?;
                w.end();
                w.end();
            }
        }
        w.end();
        w.end();
    } else if parts().any(|part| matches!(part, MediaPart::One(_))) {
        w.begin(1);
        w.begin(0);
        write_parameters(|| parts().filter_map(|part| if let MediaPart::One(part) = part { Some(part) } else { None }), w)?;
        w.end();
        w.end();
    }
    w.end();
    Ok(())
}

fn write_state(state: &TerminationState<'_>, w: &mut Writer<'_>) -> write::Done {
    w.begin(0);
    w.begin(0);
    for parameter in state.parameters() {
        if let TerminationStateParameter::Property(property) = parameter? {
            value::write_property(&property, w);
        }
    }
    w.end();
    for parameter in state.parameters().flatten() {
        if let TerminationStateParameter::LockStep(on) = parameter {
            w.integer(1, i64::from(on));
        }
    }
    for parameter in state.parameters().flatten() {
        if let TerminationStateParameter::Service(state) = parameter {
            w.integer(2, place(&STATES, state.token()));
        }
    }
    w.end();
    Ok(())
}

/// StreamParms: control, Local, Remote, in this order whatever the text has.
fn write_parameters<'a, I: Iterator<Item = StreamPart<'a>>>(parts: impl Fn() -> I, w: &mut Writer<'_>) -> write::Done {
    for part in parts() {
        if let StreamPart::Control(control) = part {
            write_control(&control, w)?;
        }
    }
    for part in parts() {
        if let StreamPart::Local(octets) = part {
            write_descriptions(1, &octets, w);
        }
    }
    for part in parts() {
        if let StreamPart::Remote(octets) = part {
            write_descriptions(2, &octets, w);
        }
    }
    Ok(())
}

fn write_control(control: &LocalControl<'_>, w: &mut Writer<'_>) -> write::Done {
    w.begin(0);
    for number in 0..3 {
        for parameter in control.parameters() {
            match (number, parameter?) {
                (0, LocalParameter::Mode(mode)) => w.integer(0, place(&MODES, mode.token())),
                (1, LocalParameter::ReserveValue(on)) => w.boolean(1, on),
                (2, LocalParameter::ReserveGroup(on)) => w.boolean(2, on),
                _ => {}
            }
        }
    }
    w.begin(3);
    for parameter in control.parameters().flatten() {
        if let LocalParameter::Property(property) = parameter {
            value::write_property(&property, w);
        }
    }
    w.end();
    w.end();
    Ok(())
}

/// A LocalRemoteDescriptor: a group for each session description, a property for each line.
fn write_descriptions(number: u8, octets: &Octets<'_>, w: &mut Writer<'_>) {
    w.begin(number);
    w.begin(0);
    for text in octets.descriptions() {
        w.begin_sequence();
        for line in text.split(|&byte| matches!(byte, b'\r' | b'\n')).filter(|line| !line.trim_ascii().is_empty()) {
            write_line(line, w);
        }
        w.end();
    }
    w.end();
    w.end();
}

fn write_line(line: &[u8], w: &mut Writer<'_>) {
    let [letter, b'=', text @ ..] = line.trim_ascii_start() else { return w.fail() };
    let Some((_, code)) = names::LINES.iter().find(|(known, _)| known.eq_ignore_ascii_case(letter)) else { return w.fail() };
    let [high, low] = code.to_be_bytes();
    w.begin_sequence();
    w.octets(0, &[0, 0, high, low]);
    w.begin(1);
    if text != b"$" {
        w.wrapped(|w| w.unescaped(names::string_tag(text), text));
    }
    w.end();
    w.end();
}

/// A ModemDescriptor, as a component.
pub(super) fn write_modem(number: u8, modem: &Modem<'_>, w: &mut Writer<'_>) {
    w.begin(number);
    w.begin(0);
    for kind in modem.kinds() {
        match MODEMS.iter().position(|known| known.eq_ignore_ascii_case(kind)) {
            Some(number) => w.universal_integer(tag::ENUMERATED, number as i64),
            None => w.fail(),
        }
    }
    w.end();
    w.begin(1);
    modem.properties().for_each(|property| value::write_property(&property, w));
    w.end();
    w.end();
}

/// A MuxDescriptor, as a component.
pub(super) fn write_mux(number: u8, mux: &Mux<'_>, w: &mut Writer<'_>) {
    w.begin(number);
    match MUXES.iter().position(|known| known.eq_ignore_ascii_case(mux.kind)) {
        Some(number) => w.integer(0, number as i64),
        None => w.fail(),
    }
    w.begin(1);
    for id in mux.terminations.clone() {
        w.begin_sequence();
        termination::write(id.text(), w);
        w.end();
    }
    w.end();
    w.end();
}
