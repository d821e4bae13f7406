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
//!
//! What is no name of ours, or has a wildcard that no name can say, is `x` with its octets, and `w` with its wildcards: a name like any that
//! the gateway does not have, so that the machine refuses its command and nothing else, and the answer has the octets that were asked for.

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

/// An identifier, and its wildcard octets as they came.
struct Id<'a> {
    octets: &'a [u8],
    wildcards: &'a [u8],
}

impl Id<'_> {
    fn at(&self, level: u8) -> Option<Wildcard> {
        let octet = self.wildcards.iter().find(|octet| **octet & 0x3f == level)?;
        Some(Wildcard { letter: if octet & 0x80 != 0 { b'*' } else { b'$' }, below: octet & 0x40 != 0 })
    }

    /// Writes the name that says all of it; `None` when there is none.
    fn name(&self, out: &mut Text<'_>) -> Option<()> {
        if self.octets == ROOT {
            out.put(b"ROOT");
            return self.says(0);
        }
        let &[class, kind, high, low, span, channel] = self.octets else { return None };
        if let Some(Wildcard { letter, below: true }) = self.at(CLASS) {
            out.put(&[letter]);
            return self.says(1);
        }
        let number = u32::from_be_bytes([high, low, span, channel]);
        match class {
            STREAM => {
                out.put(b"rtp/");
                let all = self.at(KIND).filter(|wildcard| wildcard.below).or(self.at(UNIT).filter(|_| kind == 0));
                match all {
                    Some(Wildcard { letter, .. }) => {
                        out.put(&[letter]);
                        self.says(1)
                    }
                    None if kind == 0 && number != 0 => {
                        out.number(i64::from(number));
                        self.says(0)
                    }
                    None => None,
                }
            }
            TRUNK => self.trunk((kind, u16::from_be_bytes([high, low]), span, channel), out),
            _ => None,
        }
    }

    /// Whether it has just so many wildcards: all of them are in the name.
    fn says(&self, wildcards: usize) -> Option<()> {
        (self.wildcards.len() == wildcards).then_some(())
    }

    fn trunk(&self, (kind, unit, span, channel): (u8, u16, u8, u8), out: &mut Text<'_>) -> Option<()> {
        out.put(b"ds/");
        let mut said = 0;
        let mut part = |level, out: &mut Text<'_>| {
            let Wildcard { letter, below } = self.at(level)?;
            out.put(&[letter]);
            said += 1;
            Some((below, said))
        };
        match part(KIND, out) {
            Some((true, said)) => return self.says(said),
            // `ds/*/5` is any unit of any kind: no name has one unit of all kinds.
            Some((false, _)) if unit == 0 => {}
            Some((false, _)) => return None,
            None => {
                out.put(KINDS.iter().find(|(number, _)| *number == kind)?.1);
                out.put(b"_");
                match part(UNIT, out) {
                    Some((true, said)) => return self.says(said),
                    Some((false, _)) => {}
                    None if unit == 0 => return None,
                    None => out.number(i64::from(unit)),
                }
            }
        }
        if self.at(SPAN).is_some() {
            out.put(b"/");
            if let Some((true, said)) = part(SPAN, out) {
                return self.says(said);
            }
            // Only a T3 has spans in it.
            if matches!(kind, 1 | 2) && self.at(KIND).is_none() {
                return None;
            }
        } else if span != 0 {
            out.put(b"/ds1_");
            out.number(i64::from(span));
        }
        if self.at(CHANNEL).is_some() {
            out.put(b"/");
            part(CHANNEL, out);
        } else if channel != 0 {
            out.put(b"/");
            out.number(i64::from(channel));
        }
        self.says(said)
    }
}

/// The longest identifier, and the most wildcards of one (A.1).
const OCTETS_MAX: usize = 8;

/// Writes the name of a TerminationID.
pub fn read(id: &Element<'_>, out: &mut Text<'_>) -> Result<(), Malformed> {
    let octets = id.needed(1)?.octets()?;
    let (mut wildcards, mut count) = ([0; OCTETS_MAX], 0);
    for octet in id.field(0)?.iter().flat_map(Element::elements) {
        let &[octet] = octet?.octets()? else { return Err(Malformed) };
        *wildcards.get_mut(count).ok_or(Malformed)? = octet;
        count += 1;
    }
    if octets.is_empty() || octets.len() > OCTETS_MAX {
        return Err(Malformed);
    }
    let id = Id { octets, wildcards: wildcards.get(..count).unwrap_or_default() };
    let mut room = [0; 40];
    let mut name = Text::new(&mut room);
    let known = id.name(&mut name).and_then(|()| name.finish()).and_then(|length| room.get(..length));
    // What could not be written back would cost the reply.
    match known.filter(|name| *name == b"ROOT" || self::octets(name).is_some()) {
        Some(name) => out.put(name),
        None => {
            out.put(b"x");
            out.hex(id.octets);
            if !id.wildcards.is_empty() {
                out.put(b"w");
                out.hex(id.wildcards);
            }
        }
    }
    Ok(())
}

/// Writes the components of the TerminationID that has this name; a name that has none fails.
pub fn write(name: &[u8], w: &mut Writer<'_>) {
    if name.eq_ignore_ascii_case(b"root") {
        return parts(&[], &ROOT, w);
    }
    if let Some((octets, wildcards, count)) = octets(name) {
        return parts(wildcards.get(..count).unwrap_or_default(), &octets, w);
    }
    if unknown(name, w).is_none() {
        w.fail();
    }
}

/// Writes the octets that a name of the form `x...w...` has.
fn unknown(name: &[u8], w: &mut Writer<'_>) -> Option<()> {
    let digits = name.strip_prefix(b"x").or(name.strip_prefix(b"X"))?;
    let end = digits.iter().position(|byte| byte.eq_ignore_ascii_case(&b'w'));
    let (mut id, mut wildcards) = ([0; OCTETS_MAX], [0; OCTETS_MAX]);
    let id = from_hex(digits.get(..end.unwrap_or(digits.len()))?, &mut id)?;
    let wildcards = end.map_or(Some(&[][..]), |end| from_hex(digits.get(end + 1..)?, &mut wildcards))?;
    parts(wildcards, id, w);
    Some(())
}

/// The octets of these digits, at least one.
fn from_hex<'r>(digits: &[u8], room: &'r mut [u8; OCTETS_MAX]) -> Option<&'r [u8]> {
    let count = digits.len() / 2;
    if count == 0 || !digits.len().is_multiple_of(2) {
        return None;
    }
    for (pair, place) in digits.chunks(2).zip(room.get_mut(..count)?) {
        *place = pair.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)? as u8))?;
    }
    room.get(..count)
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
        // Octets that are no TerminationID.
        for none in
            [&[0x30, 4, 0xa0, 0, 0x81, 0][..], &[0x30, 14, 0xa0, 4, 4, 2, 0x87, 0x87, 0x81, 6, 1, 1, 0, 7, 0, 0], &[0x30, 2, 0xa0, 0]]
        {
            assert_eq!(name(none), None, "{none:?}");
        }
    }

    /// The name of these octets with these wildcards, and the octets of that name.
    fn named(wildcards: &[u8], id: &[u8]) -> String {
        let mut buffer = [0; 64];
        let mut w = Writer::new(&mut buffer);
        w.begin_sequence();
        parts(wildcards, id, &mut w);
        w.end();
        let length = w.finish().unwrap();
        let name = name(&buffer[..length]).unwrap();
        if name.starts_with('x') {
            assert_eq!(bytes(&name).as_deref(), buffer.get(..length), "{name}");
        } else {
            assert!(bytes(&name).is_some(), "{name}");
        }
        name
    }

    #[test]
    fn a_wildcard_names_what_it_covers_and_nothing_else() {
        // The number of a stream begins at bit 31.
        assert_eq!(named(&[0x5f], &[2, 0, 0, 0, 0, 0]), "rtp/$");
        assert_eq!(named(&[0x1f], &[2, 0, 0, 0, 0, 0]), "rtp/$");
        assert_eq!(named(&[0xdf], &[2, 0, 0, 0, 0, 9]), "rtp/*");
        assert_eq!(named(&[0xcf], &[1, 3, 0, 1, 0, 0]), "ds/ds3_1/*");
        assert_eq!(named(&[0xcf], &[1, 1, 0, 7, 0, 0]), "ds/ds1_7/*");
        assert_eq!(named(&[0xa7, 0x87], &[1, 0, 0, 0, 0, 0]), "ds/*/*");
        for (wildcards, id) in [
            // Unit 7 of any kind, channel 5: not channel 5 of all spans.
            (&[0xa7][..], [1, 0, 0, 7, 0, 5]),
            // A number of which some bits are any.
            (&[0x87], [2, 0, 0, 0, 0, 0]),
            (&[0x8f], [2, 0, 0, 0, 0, 1]),
            (&[0xa7], [2, 0, 0, 0, 0, 0]),
            // Any class, of the rest as it stands.
            (&[0xaf], [0, 1, 0, 7, 0, 5]),
            // Below all there is nothing; no level begins there; a T1 has no spans.
            (&[0xef, 0x87], [0; 6]),
            (&[0xe7, 0x87], [1, 0, 0, 0, 0, 0]),
            (&[0x83], [1, 1, 0, 7, 0, 0]),
            (&[0x87, 0x07], [1, 1, 0, 7, 0, 0]),
            (&[0x8f], [1, 1, 0, 7, 0, 5]),
            // No unit, number or class.
            (&[], [1, 1, 0, 0, 0, 5]),
            (&[], [1, 1, 0, 7, 3, 5]),
            (&[], [2, 0, 0, 0, 0, 0]),
            (&[], [2, 1, 0, 0, 0, 1]),
            (&[], [3, 0, 0, 0, 0, 1]),
        ] {
            assert!(named(wildcards, &id).starts_with('x'), "{wildcards:02x?} {id:02x?}: {}", named(wildcards, &id));
        }
        assert_eq!(named(&[0x87], &ROOT), "xFFFFFFFFFFFFFFFFw87");
        assert_eq!(named(&[], &[1, 1, 0, 0, 0, 7, 0, 5]), "x0101000000070005");
        for none in ["x", "x0", "x0w", "x03w", "x0g", "x010203040506070809"] {
            assert_eq!(bytes(none), None, "{none}");
        }
    }
}
