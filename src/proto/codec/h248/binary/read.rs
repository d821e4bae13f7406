//! From octets to text: each type of Annex A becomes what Annex B has for it.
//!
//! What the octets cannot be is refused here, the whole message at once (400). What they mean is read from the text by the same reader as
//! any other text, so both encodings are refused by the same codes there.

use super::ber::{CONTEXT, Element, Elements, Malformed, UNIVERSAL, is_whole, tag};
use super::media;
use super::names::{self, Sort};
use super::text::{Commas, Text};
use super::value;
use super::{service, termination, watch};

pub(super) type Done = Result<(), Malformed>;

/// A MegacoMessage.
pub fn message(octets: &[u8], out: &mut Text<'_>) -> Done {
    let mut elements = Elements::of(octets);
    let whole = elements.next().ok_or(Malformed)??;
    if whole.class != UNIVERSAL || whole.number != tag::SEQUENCE || !whole.constructed || elements.next().is_some() || !is_whole(octets) {
        return Err(Malformed);
    }
    header(&whole, out)?;
    let body = whole.needed(1)?.needed(2)?.chosen()?;
    match body.number {
        0 => error(&body, out),
        1 => {
            for one in body.elements() {
                transaction(&one?, out)?;
            }
            Ok(())
        }
        _ => Err(Malformed),
    }
}

/// What stands in front of the body; read also where the rest cannot be.
pub fn header(whole: &Element<'_>, out: &mut Text<'_>) -> Done {
    if let Some(authentication) = whole.field(0)? {
        out.put(b"AU=0x");
        out.hex(authentication.needed(0)?.octets()?);
        out.put(b":0x");
        out.hex(authentication.needed(1)?.octets()?);
        out.put(b":0x");
        out.hex(authentication.needed(2)?.octets()?);
        out.put(b" ");
    }
    let message = whole.needed(1)?;
    out.put(b"!/");
    out.number(i64::from(message.needed(0)?.number(99)?));
    out.put(b" ");
    message_id(&message.needed(1)?.chosen()?, out)?;
    out.put(b"\n");
    Ok(())
}

/// An alternative of MId; of ServiceChangeAddress with `number` one less.
pub(super) fn message_id(id: &Element<'_>, out: &mut Text<'_>) -> Done {
    match id.number {
        0 => {
            let &[a, b, c, d] = id.needed(0)?.octets()? else { return Err(Malformed) };
            out.put(b"[");
            for (at, octet) in [a, b, c, d].into_iter().enumerate() {
                out.put(if at > 0 { b"." } else { b"" });
                out.number(i64::from(octet));
            }
            out.put(b"]");
            port(id, out)
        }
        1 => {
            let octets: [u8; 16] = id.needed(0)?.octets()?.try_into().map_err(|_| Malformed)?;
            out.put(b"[");
            for (at, pair) in octets.chunks(2).enumerate() {
                out.put(if at > 0 { b":" } else { b"" });
                out.hex(pair);
            }
            out.put(b"]");
            port(id, out)
        }
        2 => {
            out.put(b"<");
            out.put(word(&id.needed(0)?)?);
            out.put(b">");
            port(id, out)
        }
        3 => {
            out.put(word(id)?);
            Ok(())
        }
        4 => {
            out.put(b"MTP{");
            out.hex(id.octets()?);
            out.put(b"}");
            Ok(())
        }
        _ => Err(Malformed),
    }
}

fn port(id: &Element<'_>, out: &mut Text<'_>) -> Done {
    if let Some(port) = id.field(1)? {
        out.put(b":");
        out.number(i64::from(port.number(65_535)?));
    }
    Ok(())
}

/// A string in which nothing stands but letters, digits and a few marks that no grammar takes for its own.
pub(super) fn word<'a>(string: &Element<'a>) -> Result<&'a [u8], Malformed> {
    let text = string.octets()?;
    let good = !text.is_empty() && text.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"-._/@+*$".contains(&byte));
    if good { Ok(text) } else { Err(Malformed) }
}

fn transaction(one: &Element<'_>, out: &mut Text<'_>) -> Done {
    if one.class != CONTEXT {
        return Err(Malformed);
    }
    let id = |out: &mut Text<'_>| {
        out.number(i64::from(one.needed(0)?.number(u32::MAX)?));
        Ok(())
    };
    match one.number {
        0 => {
            out.put(b"T=");
            id(out)?;
            out.put(b"{");
            list(&one.needed(1)?, out, |action, out| self::action(action, true, out))?;
        }
        1 => {
            out.put(b"PN=");
            id(out)?;
            out.put(b"{");
        }
        2 => {
            out.put(b"P=");
            id(out)?;
            out.put(if one.field(1)?.is_some() { b"{IA,".as_slice() } else { b"{" });
            let result = one.needed(2)?.chosen()?;
            match result.number {
                0 => error(&result, out)?,
                1 => list(&result, out, |action, out| self::action(action, false, out))?,
                _ => return Err(Malformed),
            }
        }
        3 => {
            out.put(b"K{");
            list(one, out, |range, out| {
                out.number(i64::from(range.needed(0)?.number(u32::MAX)?));
                if let Some(last) = range.field(1)? {
                    out.put(b"-");
                    out.number(i64::from(last.number(u32::MAX)?));
                }
                Ok(())
            })?;
        }
        // What a later version has, or nobody.
        _ => return Err(Malformed),
    }
    out.put(b"}");
    Ok(())
}

/// Each element of a SEQUENCE OF, with commas between them.
pub(super) fn list<'a, 't>(of: &Element<'a>, out: &mut Text<'t>, mut each: impl FnMut(&Element<'a>, &mut Text<'t>) -> Done) -> Done {
    let mut commas = Commas::default();
    for element in of.elements() {
        commas.next(out);
        each(&element?, out)?;
    }
    Ok(())
}

fn error(error: &Element<'_>, out: &mut Text<'_>) -> Done {
    out.put(b"ER=");
    out.number(i64::from(error.needed(0)?.number(9999)?));
    out.put(b"{");
    if let Some(text) = error.field(1)? {
        out.quoted(text.octets()?);
    }
    out.put(b"}");
    Ok(())
}

/// An ActionRequest, or an ActionReply.
fn action(action: &Element<'_>, is_request: bool, out: &mut Text<'_>) -> Done {
    out.put(b"C=");
    match action.needed(0)?.number(u32::MAX)? {
        0 => out.put(b"-"),
        0xffff_fffe => out.put(b"$"),
        0xffff_ffff => out.put(b"*"),
        number => out.number(i64::from(number)),
    }
    out.put(b"{");
    let mut commas = Commas::default();
    let properties = action.field(if is_request { 1 } else { 2 })?;
    if let Some(properties) = properties {
        context_properties(&properties, &mut commas, out)?;
    }
    if let Some(asked) = action.field(2)?.filter(|_| is_request) {
        commas.next(out);
        out.put(b"CA{");
        let mut inside = Commas::default();
        for (number, token) in [(0, b"TP"), (1, b"EG"), (2, b"PR")] {
            if asked.field(number)?.is_some() {
                inside.next(out);
                out.put(token);
            }
        }
        out.put(b"}");
    }
    for command in action.needed(3)?.elements() {
        commas.next(out);
        if is_request { self::command(&command?, out)? } else { reply(&command?, out)? }
    }
    if let Some(failure) = action.field(1)?.filter(|_| !is_request) {
        commas.next(out);
        error(&failure, out)?;
    }
    out.put(b"}");
    Ok(())
}

fn context_properties(properties: &Element<'_>, commas: &mut Commas, out: &mut Text<'_>) -> Done {
    if let Some(priority) = properties.field(0)? {
        commas.next(out);
        out.put(b"PR=");
        out.number(i64::from(priority.number(15)?));
    }
    if let Some(emergency) = properties.field(1)?
        && emergency.boolean()?
    {
        commas.next(out);
        out.put(b"EG");
    }
    if let Some(topology) = properties.field(2)? {
        commas.next(out);
        out.put(b"TP{");
        list(&topology, out, |triple, out| {
            termination::read(&triple.needed(0)?, out)?;
            out.put(b",");
            termination::read(&triple.needed(1)?, out)?;
            out.put(pick(&[b",BW", b",IS", b",OW"], &triple.needed(2)?)?);
            Ok(())
        })?;
        out.put(b"}");
    }
    Ok(())
}

/// The word for an enumeration. A value that is none of them (most of the types may grow) is a word that is none either, so that what
/// reads the text refuses the command.
pub(super) fn pick<'w>(words: &[&'w [u8]], number: &Element<'_>) -> Result<&'w [u8], Malformed> {
    Ok(words.get(number.number(u32::MAX)? as usize).copied().unwrap_or(UNKNOWN))
}

/// Stands for what this version of Annex A does not have where it may be extended: a word that no grammar has either.
const UNKNOWN: &[u8] = b"x-unknown";

/// The keywords of commands, by the number of their alternative.
pub(super) const COMMANDS: [&[u8]; 8] = [b"A=", b"MV=", b"MF=", b"S=", b"AC=", b"AV=", b"N=", b"SC="];

fn command(request: &Element<'_>, out: &mut Text<'_>) -> Done {
    let command = request.needed(0)?.chosen()?;
    out.put(if request.field(1)?.is_some() { b"O-" } else { b"" });
    out.put(if request.field(2)?.is_some() { b"W-" } else { b"" });
    let Some(keyword) = COMMANDS.get(usize::from(command.number)) else {
        out.put(UNKNOWN);
        out.put(b"=x");
        return Ok(());
    };
    out.put(keyword);
    let body = command.field(1)?;
    if matches!(command.number, 4 | 5) {
        termination::read(&command.needed(0)?, out)?;
    } else {
        only(&command.needed(0)?, out)?;
    }
    let Some(body) = body else {
        // Only Subtract may go without.
        return if command.number == 3 { Ok(()) } else { Err(Malformed) };
    };
    match command.number {
        0..=2 => {
            if body.elements().next().is_some() {
                out.put(b"{");
                list(&body, out, |descriptor, out| match descriptor.number {
                    number @ 0..7 => self::descriptor(descriptor, number + 1, out),
                    7 => audit(descriptor, out),
                    _ => {
                        out.put(UNKNOWN);
                        Ok(())
                    }
                })?;
                out.put(b"}");
            }
        }
        3..=5 => {
            out.put(b"{");
            audit(&body, out)?;
            out.put(b"}");
        }
        6 => {
            out.put(b"{");
            watch::observed(&body, out)?;
            if let Some(failure) = command.field(2)? {
                out.put(b",");
                error(&failure, out)?;
            }
            out.put(b"}");
        }
        _ => {
            out.put(b"{");
            service::services(&body, true, out)?;
            out.put(b"}");
        }
    }
    Ok(())
}

/// The one termination of a list (BIN-08).
fn only(terminations: &Element<'_>, out: &mut Text<'_>) -> Done {
    let mut elements = terminations.elements();
    termination::read(&elements.next().ok_or(Malformed)??, out)?;
    if elements.next().is_some() { Err(Malformed) } else { Ok(()) }
}

fn reply(reply: &Element<'_>, out: &mut Text<'_>) -> Done {
    out.put(COMMANDS.get(usize::from(reply.number)).ok_or(Malformed)?);
    let audited = |audit: Option<Element<'_>>, out: &mut Text<'_>| {
        let Some(audit) = audit.filter(|audit| audit.elements().next().is_some()) else { return Ok(()) };
        out.put(b"{");
        list(&audit, out, |descriptor, out| self::descriptor(descriptor, descriptor.number, out))?;
        out.put(b"}");
        Ok(())
    };
    match reply.number {
        0..=3 => {
            only(&reply.needed(0)?, out)?;
            audited(reply.field(1)?, out)
        }
        4 | 5 => {
            let result = reply.chosen()?;
            match result.number {
                0 => {
                    out.put(b"C{");
                    list(&result, out, termination::read)?;
                    out.put(b"}");
                    Ok(())
                }
                1 => {
                    out.put(b"C{");
                    error(&result, out)?;
                    out.put(b"}");
                    Ok(())
                }
                2 => {
                    termination::read(&result.needed(0)?, out)?;
                    audited(result.field(1)?, out)
                }
                _ => Err(Malformed),
            }
        }
        6 => {
            only(&reply.needed(0)?, out)?;
            if let Some(failure) = reply.field(1)? {
                out.put(b"{");
                error(&failure, out)?;
                out.put(b"}");
            }
            Ok(())
        }
        _ => {
            only(&reply.needed(0)?, out)?;
            let result = reply.needed(1)?.chosen()?;
            match result.number {
                0 => {
                    out.put(b"{");
                    error(&result, out)?;
                    out.put(b"}");
                    Ok(())
                }
                1 if result.elements().next().is_none() => Ok(()),
                1 => {
                    out.put(b"{");
                    service::services(&result, false, out)?;
                    out.put(b"}");
                    Ok(())
                }
                _ => Err(Malformed),
            }
        }
    }
}

/// A descriptor, by its number in AuditReturnParameter up to 8; an AmmDescriptor's is one less.
fn descriptor(descriptor: &Element<'_>, number: u8, out: &mut Text<'_>) -> Done {
    match number {
        0 => error(descriptor, out),
        1 => media::media(descriptor, out),
        2 => media::modem(descriptor, out),
        3 => media::mux(descriptor, out),
        4 => watch::events(descriptor, true, out),
        5 => watch::event_buffer(descriptor, out),
        6 => watch::signals(descriptor, out),
        7 => watch::digit_map(descriptor, out),
        8 => watch::observed(descriptor, out),
        9 => {
            out.put(b"SA{");
            list(descriptor, out, |statistic, out| {
                value::packaged(statistic.needed(0)?.octets()?, Sort::Statistic, out)?;
                let item = value::item_of(statistic.needed(0)?.octets()?, Sort::Statistic);
                match statistic.field(1)? {
                    Some(value) => value::assigned(&value, None, item, out),
                    None => Ok(()),
                }
            })?;
            out.put(b"}");
            Ok(())
        }
        10 => {
            out.put(b"PG{");
            list(descriptor, out, |package, out| {
                let &[high, low] = package.needed(0)?.octets()? else { return Err(Malformed) };
                out.known(names::package(u16::from_be_bytes([high, low])).1);
                out.put(b"-");
                out.number(i64::from(package.needed(1)?.number(99)?));
                Ok(())
            })?;
            out.put(b"}");
            Ok(())
        }
        11 => audit_tokens(descriptor, out),
        _ => {
            out.put(UNKNOWN);
            Ok(())
        }
    }
}

/// The keywords of an audit, the first one in bit 15 (BIN-11).
pub(super) const AUDITED: [&[u8]; 10] = [b"MX", b"MD", b"M", b"E", b"SG", b"DM", b"SA", b"OE", b"PG", b"EB"];

fn audit(audit: &Element<'_>, out: &mut Text<'_>) -> Done {
    out.put(b"AT{");
    audit_tokens(audit, out)?;
    out.put(b"}");
    Ok(())
}

fn audit_tokens(audit: &Element<'_>, out: &mut Text<'_>) -> Done {
    let asked = audit.field(0)?.map_or(Ok(0), |bits| bits.bits())?;
    let mut commas = Commas::default();
    for (bit, token) in AUDITED.iter().enumerate() {
        if asked & 0x8000 >> bit != 0 {
            commas.next(out);
            out.put(token);
        }
    }
    // Audits of single properties, which version 2 has: not to be taken for one of nothing.
    if audit.field(1)?.is_some() {
        commas.next(out);
        out.put(UNKNOWN);
    }
    Ok(())
}
