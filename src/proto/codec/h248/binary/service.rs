//! The parameters of service changes, and times, both ways.

use super::ber::{Element, Malformed, Writer, tag};
use super::read::{Done, message_id, pick, word};
use super::text::{Commas, Text};
use super::{value, write};
use crate::proto::codec::h248::{ServiceAddress, Services, Style};

/// The keywords of methods (BIN-12).
const METHODS: [&[u8]; 6] = [b"FL", b"FO", b"GR", b"RS", b"DC", b"HO"];

/// A ServiceChangeParm, or a ServiceChangeResParm.
pub(super) fn services(services: &Element<'_>, is_request: bool, out: &mut Text<'_>) -> Done {
    // Where each component stands in the two.
    let [address, version, profile, mgc_id, stamp] = if is_request { [1, 2, 3, 6, 7] } else { [1, 2, 3, 0, 4] };
    let mut commas = Commas::default();
    out.put(b"SV{");
    if is_request {
        commas.next(out);
        out.put(b"MT=");
        out.put(pick(&METHODS, &services.needed(0)?)?);
        commas.next(out);
        out.put(b"RE=");
        let mut reason = services.needed(4)?.elements();
        out.quoted(value::string(reason.next().ok_or(Malformed)??.octets()?));
        if let Some(delay) = services.field(5)? {
            commas.next(out);
            out.put(b"DL=");
            out.number(i64::from(delay.number(u32::MAX)?));
        }
    }
    if let Some(address) = services.field(address)? {
        commas.next(out);
        out.put(b"AD=");
        let address = address.chosen()?;
        match address.number.checked_sub(1) {
            None => out.number(i64::from(address.number(65_535)?)),
            Some(number) => message_id(&Element { number, ..address }, out)?,
        }
    }
    if let Some(version) = services.field(version)? {
        commas.next(out);
        out.put(b"V=");
        out.number(i64::from(version.number(99)?));
    }
    if let Some(profile) = services.field(profile)? {
        commas.next(out);
        out.put(b"PF=");
        out.put(word(&profile.needed(0)?)?);
    }
    if let Some(id) = services.field(mgc_id)? {
        commas.next(out);
        out.put(b"MG=");
        message_id(&id.chosen()?, out)?;
    }
    if let Some(at) = services.field(stamp)? {
        commas.next(out);
        time(&at, out)?;
    }
    out.put(b"}");
    Ok(())
}

/// A TimeNotation (BIN-13).
pub(super) fn time(time: &Element<'_>, out: &mut Text<'_>) -> Done {
    let digits = |number| {
        let text = time.needed(number)?.octets()?;
        if text.len() == 8 && text.iter().all(u8::is_ascii_digit) { Ok(text) } else { Err(Malformed) }
    };
    out.put(digits(0)?);
    out.put(b"T");
    out.put(digits(1)?);
    Ok(())
}

/// A ServiceChangeParm, or a ServiceChangeResParm, as a component.
pub(super) fn write(number: u8, services: &Services<'_>, is_request: bool, w: &mut Writer<'_>) {
    w.begin(number);
    if is_request {
        let method = services.method.and_then(|method| method.token()).map(|token| token.name(Style::Compact).as_bytes());
        match METHODS.iter().position(|known| Some(*known) == method) {
            Some(number) => w.integer(0, number as i64),
            None => w.fail(),
        }
    } else {
        mgc_id(0, services, w);
    }
    if let Some(address) = &services.address {
        w.begin(1);
        match address {
            ServiceAddress::Port(port) => w.integer(0, i64::from(*port)),
            ServiceAddress::Id(id) => write::message_id(id, 1, w),
        }
        w.end();
    }
    if let Some(version) = services.version {
        w.integer(2, i64::from(version));
    }
    if let Some(profile) = services.profile {
        w.begin(3);
        let mut room = [0; 67];
        let version: &[u8] = &[b'0' + profile.version / 10, b'0' + profile.version % 10];
        let version = version.get(usize::from(profile.version < 10)..).unwrap_or_default();
        let length = profile.name.len() + 1 + version.len();
        match room.get_mut(..length) {
            Some(text) => {
                let (name, rest) = text.split_at_mut(profile.name.len());
                name.copy_from_slice(profile.name);
                if let Some((slash, digits)) = rest.split_first_mut() {
                    *slash = b'/';
                    digits.copy_from_slice(version);
                }
                w.octets(0, text);
            }
            None => w.fail(),
        }
        w.end();
    }
    if is_request {
        reason(services, w);
        if let Some(delay) = services.delay {
            w.integer(5, i64::from(delay));
        }
        mgc_id(6, services, w);
    }
    if let Some(at) = services.time {
        write_time(if is_request { 7 } else { 4 }, at, w);
    }
    w.end();
}

fn mgc_id(number: u8, services: &Services<'_>, w: &mut Writer<'_>) {
    if let Some(id) = &services.mgc_id {
        w.begin(number);
        write::message_id(id, 0, w);
        w.end();
    }
}

/// `code words`, an IA5String in an OCTET STRING (BIN-10).
fn reason(services: &Services<'_>, w: &mut Writer<'_>) {
    let Some((code, words)) = services.reason else { return w.fail() };
    let mut room = [0; 120];
    let mut text = Text::new(&mut room);
    text.number(i64::from(code));
    if !words.is_empty() {
        text.put(b" ");
        text.put(words.get(..words.len().min(100)).unwrap_or_default());
    }
    let length = text.finish().unwrap_or(0);
    w.begin(4);
    w.wrapped(|w| w.universal(tag::IA5, room.get(..length).unwrap_or_default()));
    w.end();
}

/// A TimeNotation (BIN-13).
pub(super) fn write_time(number: u8, time: &[u8], w: &mut Writer<'_>) {
    w.begin(number);
    w.octets(0, time.get(..8).unwrap_or_default());
    w.octets(1, time.get(9..17).unwrap_or_default());
    w.end();
}
