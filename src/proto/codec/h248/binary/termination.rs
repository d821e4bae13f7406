//! Names of terminations in octets (A.1; TRM-13, BIN-04): six of them, each level of the gateway's names its own.
//!
//! | octets | `ds/...`: a channel of a trunk | `rtp/number` |
//! |---|---|---|
//! | 1 | 1 | 2 |
//! | 2 | 1 `ds1_`, 2 `e1_`, 3 `ds3_` | 0 |
//! | 3, 4 | the unit | the number |
//! | 5 | the T1 in a T3, or 0 | |
//! | 6 | the channel, or 0 for the span itself | |
//!
//! A wildcard octet says where in these 48 bits a level begins that stands for all (or any), alone or with all below it. ROOT is eight times
//! FF.

use super::ber::{Element, Malformed, Writer, tag};
use super::text::Text;

const ROOT: [u8; 8] = [0xff; 8];
const TRUNK: u8 = 1;
const STREAM: u8 = 2;
/// What names say of a kind of unit, by its number.
const KINDS: [(u8, &[u8]); 3] = [(1, b"ds1"), (2, b"e1"), (3, b"ds3")];

/// Where levels begin, counted from the last bit.
const CLASS: u8 = 47;
const KIND: u8 = 39;
const UNIT: u8 = 31;
const SPAN: u8 = 15;
const CHANNEL: u8 = 7;

/// A wildcard: `*` or `$`, and whether it covers what is below its level.
#[derive(Clone, Copy)]
struct Wildcard {
    letter: u8,
    below: bool,
}

/// The wildcards of an identifier, by level.
#[derive(Default)]
struct Wildcards([Option<Wildcard>; 5]);

const LEVELS: [u8; 5] = [CLASS, KIND, UNIT, SPAN, CHANNEL];

impl Wildcards {
    fn read(list: &Element<'_>) -> Result<Wildcards, Malformed> {
        let mut wildcards = Wildcards::default();
        for octet in list.elements() {
            let &[octet] = octet?.octets()? else { return Err(Malformed) };
            let level = LEVELS.iter().position(|level| *level == octet & 0x3f).ok_or(Malformed)?;
            let wildcard = Wildcard { letter: if octet & 0x80 != 0 { b'*' } else { b'$' }, below: octet & 0x40 != 0 };
            if let Some(place) = wildcards.0.get_mut(level) {
                *place = Some(wildcard);
            }
        }
        Ok(wildcards)
    }

    fn at(&self, level: u8) -> Option<Wildcard> {
        LEVELS.iter().zip(&self.0).find(|(known, _)| **known == level).and_then(|(_, wildcard)| *wildcard)
    }
}

/// Writes the name of a TerminationID.
pub fn read(id: &Element<'_>, out: &mut Text<'_>) -> Result<(), Malformed> {
    let octets = id.needed(1)?.octets()?;
    let wildcards = id.field(0)?.map_or(Ok(Wildcards::default()), |list| Wildcards::read(&list))?;
    if octets == ROOT {
        out.put(b"ROOT");
        return Ok(());
    }
    if let Some(Wildcard { letter, .. }) = wildcards.at(CLASS) {
        out.put(&[letter]);
        return Ok(());
    }
    let &[class, kind, high, low, span, channel] = octets else { return Err(Malformed) };
    match class {
        STREAM => {
            out.put(b"rtp/");
            match wildcards.at(KIND) {
                Some(Wildcard { letter, .. }) => out.put(&[letter]),
                None => out.number(i64::from(u32::from_be_bytes([high, low, span, channel]))),
            }
            Ok(())
        }
        TRUNK => trunk((kind, u16::from_be_bytes([high, low]), span, channel), &wildcards, out),
        _ => Err(Malformed),
    }
}

fn trunk((kind, unit, span, channel): (u8, u16, u8, u8), wildcards: &Wildcards, out: &mut Text<'_>) -> Result<(), Malformed> {
    out.put(b"ds/");
    let part = |level, out: &mut Text<'_>| match wildcards.at(level) {
        Some(Wildcard { letter, below }) => {
            out.put(&[letter]);
            Some(below)
        }
        None => None,
    };
    let all = part(KIND, out);
    if all == Some(true) {
        return Ok(());
    }
    if all.is_none() {
        out.put(KINDS.iter().find(|(number, _)| *number == kind).ok_or(Malformed)?.1);
        out.put(b"_");
        match part(UNIT, out) {
            Some(true) => return Ok(()),
            Some(false) => {}
            None => out.number(i64::from(unit)),
        }
    }
    if wildcards.at(SPAN).is_some() {
        out.put(b"/");
        if part(SPAN, out) == Some(true) {
            return Ok(());
        }
    } else if span != 0 {
        out.put(b"/ds1_");
        out.number(i64::from(span));
    }
    if wildcards.at(CHANNEL).is_some() {
        out.put(b"/");
        part(CHANNEL, out);
    } else if channel != 0 {
        out.put(b"/");
        out.number(i64::from(channel));
    }
    Ok(())
}

/// Writes the components of the TerminationID that has this name; a name that has none fails.
pub fn write(name: &[u8], w: &mut Writer<'_>) {
    if name.eq_ignore_ascii_case(b"root") {
        return parts(&[], &ROOT, w);
    }
    match octets(name) {
        Some((octets, wildcards, count)) => parts(wildcards.get(..count).unwrap_or_default(), &octets, w),
        None => w.fail(),
    }
}

fn parts(wildcards: &[u8], id: &[u8], w: &mut Writer<'_>) {
    w.begin(0);
    wildcards.iter().for_each(|octet| w.universal(tag::OCTETS, &[*octet]));
    w.end();
    w.octets(1, id);
}

/// The octets of a name, its wildcard octets, and how many of those.
fn octets(name: &[u8]) -> Option<([u8; 6], [u8; 3], usize)> {
    let mut found = Found { octets: [0; 6], wildcards: [0; 3], count: 0 };
    let mut terms = name.split(|&byte| byte == b'/').peekable();
    let first = terms.next()?;
    if let Some(letter) = wildcard(first).filter(|_| terms.peek().is_none()) {
        found.wild(letter, CLASS, true)?;
    } else if first.eq_ignore_ascii_case(b"rtp") {
        found.octets[0] = STREAM;
        let term = terms.next()?;
        match wildcard(term) {
            Some(letter) => found.wild(letter, KIND, true)?,
            None => found.octets[2..].copy_from_slice(&number(term)?.to_be_bytes()),
        }
    } else if first.eq_ignore_ascii_case(b"ds") {
        found.octets[0] = TRUNK;
        found.trunk(&mut terms)?;
    } else {
        return None;
    }
    if terms.next().is_some() { None } else { Some((found.octets, found.wildcards, found.count)) }
}

/// What the terms of a name have given so far.
struct Found {
    octets: [u8; 6],
    wildcards: [u8; 3],
    count: usize,
}

impl Found {
    fn wild(&mut self, letter: u8, level: u8, below: bool) -> Option<()> {
        let all = if letter == b'*' { 0x80 } else { 0 };
        *self.wildcards.get_mut(self.count)? = all | if below { 0x40 } else { 0 } | level;
        self.count += 1;
        Some(())
    }

    fn trunk<'n>(&mut self, terms: &mut std::iter::Peekable<impl Iterator<Item = &'n [u8]>>) -> Option<()> {
        let term = terms.next()?;
        let mut has_spans = true;
        if let Some(letter) = wildcard(term) {
            self.wild(letter, KIND, terms.peek().is_none())?;
        } else {
            let mark = term.iter().position(|&byte| matches!(byte, b'_' | b'-'))?;
            let (kind, unit) = (term.get(..mark)?, term.get(mark + 1..)?);
            self.octets[1] = KINDS.iter().find(|(_, known)| known.eq_ignore_ascii_case(kind))?.0;
            has_spans = self.octets[1] == 3;
            match wildcard(unit) {
                Some(letter) => self.wild(letter, UNIT, false)?,
                None => self.octets[2..4].copy_from_slice(&u16::try_from(number(unit)?).ok()?.to_be_bytes()),
            }
        }
        if !has_spans || terms.peek().is_none() {
            return self.channel(terms.next());
        }
        let term = terms.next()?;
        if let Some(letter) = wildcard(term) {
            // `ds/*/5` has no term for the span: of a T1 or E1.
            self.wild(letter, SPAN, terms.peek().is_none())?;
        } else if let Some(span) = term.get(..4).filter(|head| head.eq_ignore_ascii_case(b"ds1_") || head.eq_ignore_ascii_case(b"ds1-")) {
            self.octets[4] = u8::try_from(number(term.get(span.len()..)?)?).ok()?;
        } else {
            return self.channel(Some(term));
        }
        self.channel(terms.next())
    }

    fn channel(&mut self, term: Option<&[u8]>) -> Option<()> {
        let Some(term) = term else { return Some(()) };
        match wildcard(term) {
            Some(letter) => self.wild(letter, CHANNEL, false),
            None => {
                self.octets[5] = u8::try_from(number(term)?).ok()?;
                Some(())
            }
        }
    }
}

fn wildcard(term: &[u8]) -> Option<u8> {
    match term {
        [letter @ (b'*' | b'$')] => Some(*letter),
        _ => None,
    }
}

/// Digits without a sign or leading zeros, not 0.
fn number(text: &[u8]) -> Option<u32> {
    let good = text.first().is_some_and(|first| (b'1'..=b'9').contains(first));
    std::str::from_utf8(text).ok().filter(|_| good)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::ber::Elements;
    use super::*;

    fn bytes(name: &str) -> Option<Vec<u8>> {
        let mut buffer = [0; 64];
        let mut w = Writer::new(&mut buffer);
        w.begin_sequence();
        write(name.as_bytes(), &mut w);
        w.end();
        w.finish().map(|length| buffer[..length].to_vec())
    }

    fn name(octets: &[u8]) -> Option<String> {
        let mut buffer = [0; 64];
        let mut text = Text::new(&mut buffer);
        read(&Elements::of(octets).next()?.ok()?, &mut text).ok()?;
        let length = text.finish()?;
        String::from_utf8(buffer[..length].to_vec()).ok()
    }

    #[test]
    fn names_are_levels_of_bits_and_wildcards_say_where_they_begin() {
        // TRM-13, BIN-04
        let names = [
            "ROOT",
            "*",
            "$",
            "ds/*",
            "ds/$",
            "ds/ds1_7/5",
            "ds/ds1_7/*",
            "ds/ds1_7/$",
            "ds/ds1_7",
            "ds/e1_999/31",
            "ds/ds3_1/ds1_28/24",
            "ds/ds3_1/ds1_2/*",
            "ds/ds3_1/*",
            "ds/ds3_1/*/5",
            "ds/ds1_*/5",
            "ds/*/*",
            "ds/*/*/*",
            "ds/ds3_1/*/*",
            "rtp/1",
            "rtp/4294967295",
            "rtp/*",
            "rtp/$",
        ];
        for text in names {
            assert_eq!(name(&bytes(text).unwrap_or_else(|| panic!("{text}"))).as_deref(), Some(text), "{:02x?}", bytes(text));
        }
        assert_eq!(bytes("ds/ds1-7/5"), bytes("DS/ds1_7/5"));
        assert_eq!(bytes("ds/ds1_7/*").unwrap(), [0x30, 13, 0xa0, 3, 4, 1, 0x87, 0x81, 6, 1, 1, 0, 7, 0, 0]);
        assert_eq!(bytes("*").unwrap(), [0x30, 13, 0xa0, 3, 4, 1, 0xef, 0x81, 6, 0, 0, 0, 0, 0, 0]);
        for none in ["ds", "ds/ds1_7/5/6", "ds/ds1_07/5", "ds/t1_7/5", "rtp/x", "tdm/1", "", "ds/ds1_7/300", "rtp/1/2"] {
            assert_eq!(bytes(none), None, "{none}");
        }
        // Octets that are no name: a class, a place of a wildcard, a length there is not.
        for none in [
            &[0x30, 10, 0xa0, 0, 0x81, 6, 3, 0, 0, 0, 0, 1][..],
            &[0x30, 13, 0xa0, 3, 4, 1, 0x83, 0x81, 6, 1, 1, 0, 7, 0, 0],
            &[0x30, 7, 0xa0, 0, 0x81, 3, 1, 1, 0],
        ] {
            assert_eq!(name(none), None, "{none:?}");
        }
    }
}
