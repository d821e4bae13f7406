//! Names and values of packages' items, both ways (BIN-02, BIN-03, BIN-06, BIN-07).
//!
//! A value is its type's BER inside an OCTET STRING. Controllers that write the text of a value there instead are understood: no tag of a
//! type that occurs is a character of a text.

use super::ber::{Element, Elements, Malformed, UNIVERSAL, Writer, tag};
use super::names::{self, Item, Kind, Known, Package, Sort};
use super::read::{Done, list, pick};
use super::text::Text;
use crate::proto::codec::h248::{PackagedName, Parameter, ParameterValue, Property, Value, lex};

/// Wildcards of packages and items.
const ALL: u16 = 0xffff;

fn split(name: &[u8]) -> Result<(u16, u16), Malformed> {
    let &[a, b, c, d] = name else { return Err(Malformed) };
    Ok((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// Writes the text of a PkgdName.
pub fn packaged(name: &[u8], sort: Sort, out: &mut Text<'_>) -> Done {
    let (package, item) = split(name)?;
    if package == ALL {
        out.put(b"*/*");
        return Ok(());
    }
    let (found, name) = names::package(package);
    out.known(name);
    out.put(b"/");
    if item == ALL {
        out.put(b"*")
    } else {
        out.known(names::item(found, sort, item).1)
    }
    Ok(())
}

/// The item that a PkgdName means, if it is known.
pub fn item_of(name: &[u8], sort: Sort) -> Option<&'static Item> {
    let (package, item) = split(name).ok()?;
    names::item(names::package(package).0, sort, item).0
}

/// Writes a PropertyParm of a package.
pub fn property(property: &Element<'_>, out: &mut Text<'_>) -> Done {
    let name = property.needed(0)?.octets()?;
    packaged(name, Sort::Property, out)?;
    assigned(&property.needed(1)?, property.field(2)?, item_of(name, Sort::Property), out)
}

/// Writes an EventParameter or SigParameter of `of`.
pub fn parameter(parameter: &Element<'_>, of: Option<&'static Item>, out: &mut Text<'_>) -> Done {
    let &[high, low] = parameter.needed(0)?.octets()? else { return Err(Malformed) };
    let (item, name) = names::parameter(of, u16::from_be_bytes([high, low]));
    out.known(name);
    assigned(&parameter.needed(1)?, parameter.field(2)?, item, out)
}

/// Writes `= value`, or what else a value and its extraInfo mean.
pub fn assigned(values: &Element<'_>, extra: Option<Element<'_>>, item: Option<&'static Item>, out: &mut Text<'_>) -> Done {
    let kind = item.map_or(Kind::Any, |item| item.kind);
    let extra = extra.map(|extra| extra.chosen()).transpose()?;
    let count = values.elements().count();
    let said = |number| extra.filter(|extra| extra.number == number);
    let set = |number| said(number).map_or(Ok(false), |flag| flag.boolean());
    let (relation, is_range, is_list) = (said(0), set(1)?, set(2)?);
    match (relation, count) {
        (Some(relation), 1) => out.put(pick(&[b">", b"<", b"#"], &relation)?),
        (Some(_), _) => return Err(Malformed),
        (None, _) => out.put(b"="),
    }
    if count == 0 {
        out.put(b"$");
        return Ok(());
    }
    if is_range {
        let mut ends = values.elements();
        let (Some(low), Some(high), None) = (ends.next(), ends.next(), ends.next()) else { return Err(Malformed) };
        out.put(b"[");
        single(low?.octets()?, kind, out)?;
        out.put(b":");
        single(high?.octets()?, kind, out)?;
        out.put(b"]");
        return Ok(());
    }
    let (open, close): (&[u8], &[u8]) = if is_list {
        (b"[", b"]")
    } else if count > 1 {
        (b"{", b"}")
    } else {
        (b"", b"")
    };
    out.put(open);
    list(values, out, |value, out| single(value.octets()?, kind, out))?;
    out.put(close);
    Ok(())
}

/// The type that an octet string holds, if it holds one.
fn unwrapped(octets: &[u8]) -> Option<Element<'_>> {
    let mut elements = Elements::of(octets);
    let element = elements.next()?.ok()?;
    (element.class == UNIVERSAL && !element.constructed && element.number < 0x1f && elements.next().is_none()).then_some(element)
}

/// The string that an octet string holds, or its octets.
pub fn string(octets: &[u8]) -> &[u8] {
    unwrapped(octets).filter(|inner| matches!(inner.number, tag::IA5 | tag::UTF8)).map_or(octets, |inner| inner.content)
}

fn single(octets: &[u8], kind: Kind, out: &mut Text<'_>) -> Done {
    let text = |text: &[u8], out: &mut Text<'_>| {
        if kind == Kind::Text { out.quoted(text) } else { out.word_or_quoted(text) }
    };
    let Some(inner) = unwrapped(octets) else {
        text(octets, out);
        return Ok(());
    };
    match inner.number {
        tag::BOOLEAN => out.put(if inner.boolean()? { b"on" } else { b"off" }),
        tag::INTEGER | tag::ENUMERATED => {
            let value = inner.integer()?;
            match kind.name_of(value) {
                Some(name) => out.put(name.as_bytes()),
                None if kind == Kind::Fixed => fixed(value, out),
                None => out.number(value),
            }
        }
        tag::IA5 | tag::UTF8 => text(inner.content, out),
        tag::OCTETS if kind == Kind::Name => packaged(inner.content, Sort::Signal, out)?,
        tag::OCTETS if inner.content.is_empty() => out.quoted(b""),
        tag::OCTETS => out.hex(inner.content),
        _ => return Err(Malformed),
    }
    Ok(())
}

/// Thousandths, as far as there are any.
fn fixed(value: i64, out: &mut Text<'_>) {
    let thousandths = ((value & 0xffff_ffff) * 1000 + (1 << 31)) >> 32;
    out.number((value >> 32) + thousandths / 1000);
    let mut rest = thousandths % 1000;
    if rest > 0 {
        out.put(b".");
        for scale in [100, 10, 1] {
            out.number(rest / scale);
            rest %= scale;
            if rest == 0 {
                break;
            }
        }
    }
}

/// The number of a name, its package and its item.
pub struct Numbered {
    octets: [u8; 4],
    item: Option<&'static Item>,
}

/// Looks a name up; one that has no number fails.
pub fn numbered(name: PackagedName<'_>, sort: Sort, w: &mut Writer<'_>) -> Numbered {
    let found = || -> Option<(u16, u16, Option<&'static Item>)> {
        if name.package == b"*" {
            return Some((ALL, ALL, None));
        }
        let (package, number): (Option<&'static Package>, u16) = names::package_number(name.package)?;
        if name.item == b"*" {
            return Some((number, ALL, None));
        }
        let (item, item_number) = names::item_number(package, sort, name.item)?;
        Some((number, item_number, item))
    };
    let Some((package, number, item)) = found() else {
        w.fail();
        return Numbered { octets: [0; 4], item: None };
    };
    let ([a, b], [c, d]) = (package.to_be_bytes(), number.to_be_bytes());
    Numbered { octets: [a, b, c, d], item }
}

impl Numbered {
    /// Writes it as a component.
    pub fn write(&self, number: u8, w: &mut Writer<'_>) {
        w.octets(number, &self.octets);
    }

    /// The item.
    pub fn item(&self) -> Option<&'static Item> {
        self.item
    }
}

/// A PropertyParm.
pub fn write_property(property: &Property<'_>, w: &mut Writer<'_>) {
    w.begin_sequence();
    let name = numbered(property.name, Sort::Property, w);
    name.write(0, w);
    write_values(&property.value, name.item, w);
    w.end();
}

/// Parameters of an event or signal, as a component.
pub fn write_parameters<'a>(number: u8, parameters: impl Iterator<Item = Parameter<'a>>, of: Option<&'static Item>, w: &mut Writer<'_>) {
    w.begin(number);
    for parameter in parameters {
        w.begin_sequence();
        match names::parameter_number(of, parameter.name) {
            Some((item, number)) => {
                w.octets(0, &number.to_be_bytes());
                write_values(&parameter.value, item, w);
            }
            None => w.fail(),
        }
        w.end();
    }
    w.end();
}

/// Value and extraInfo, components 1 and 2.
fn write_values(value: &ParameterValue<'_>, item: Option<&'static Item>, w: &mut Writer<'_>) {
    let kind = item.map_or(Kind::Any, |item| item.kind);
    w.begin(1);
    match value {
        ParameterValue::One(value) if value.text == b"$" && !value.quoted => {}
        ParameterValue::One(value) | ParameterValue::Greater(value) | ParameterValue::Less(value) | ParameterValue::Unequal(value) => {
            write_single(*value, kind, w);
        }
        ParameterValue::All(values) | ParameterValue::Any(values) => values.clone().for_each(|value| write_single(value, kind, w)),
        ParameterValue::Range(low, high) => {
            write_single(*low, kind, w);
            write_single(*high, kind, w);
        }
    }
    w.end();
    let (relation, flag) = match value {
        ParameterValue::One(_) | ParameterValue::Any(_) => return,
        ParameterValue::Greater(_) => (Some(0), 0),
        ParameterValue::Less(_) => (Some(1), 0),
        ParameterValue::Unequal(_) => (Some(2), 0),
        ParameterValue::Range(..) => (None, 1),
        ParameterValue::All(_) => (None, 2),
    };
    w.begin(2);
    match relation {
        Some(relation) => w.integer(0, relation),
        None => w.boolean(flag, true),
    }
    w.end();
}

/// A Value of one element, as a component.
pub fn write_value(number: u8, value: Value<'_>, item: Option<&'static Item>, w: &mut Writer<'_>) {
    w.begin(number);
    write_single(value, item.map_or(Kind::Any, |item| item.kind), w);
    w.end();
}

/// One element of a Value.
pub fn write_single(value: Value<'_>, kind: Kind, w: &mut Writer<'_>) {
    let text = value.text;
    let integer = || Some(lex_integer(value)?).filter(|_| !value.quoted);
    w.wrapped(|w| match kind {
        Kind::Boolean | Kind::Any if value.boolean().is_some() => w.universal(tag::BOOLEAN, &[if value.is("on") { 0xff } else { 0 }]),
        Kind::Named(_) if kind.number_of(text).is_some() => w.universal_integer(tag::ENUMERATED, kind.number_of(text).unwrap_or_default()),
        Kind::Integer | Kind::Any if integer().is_some() => w.universal_integer(tag::INTEGER, integer().unwrap_or_default()),
        Kind::Fixed if read_fixed(text).is_some() => w.universal_integer(tag::INTEGER, read_fixed(text).unwrap_or_default()),
        Kind::Name if PackagedName::parse(text).is_some() => {
            if let Some(name) = PackagedName::parse(text) {
                let octets = numbered(name, Sort::Signal, w).octets;
                w.universal(tag::OCTETS, &octets);
            }
        }
        _ => w.universal(names::string_tag(text), text),
    });
}

/// A whole number of 8 octets: statistics are longer than what texts of 4 octets read.
fn lex_integer(value: Value<'_>) -> Option<i64> {
    value.integer().or_else(|| {
        let digits = value.text.len() <= 18 && value.text.iter().all(u8::is_ascii_digit) && !value.text.is_empty();
        std::str::from_utf8(value.text).ok().filter(|_| digits)?.parse().ok()
    })
}

/// `12.5` as 32 bits of whole and 32 of fraction.
fn read_fixed(text: &[u8]) -> Option<i64> {
    let dot = text.iter().position(|&byte| byte == b'.').unwrap_or(text.len());
    let whole = lex::uint32(text.get(..dot)?).filter(|whole| *whole <= i32::MAX as u32)?;
    let digits = text.get(dot + 1..).unwrap_or_default();
    if digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let numerator = digits.iter().fold(0u64, |sum, digit| sum * 10 + u64::from(digit & 15));
    let fraction = (numerator << 32) / 10u64.pow(digits.len() as u32);
    Some(i64::from(whole) << 32 | fraction as i64)
}

/// The name of a digit map.
pub fn digit_map_name(name: &[u8], out: &mut Text<'_>) -> Done {
    let &[high, low] = name else { return Err(Malformed) };
    out.put(b"d");
    out.known(Known::Made(b'm', u16::from_be_bytes([high, low])));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_any_length_are_read_and_written_rounded() {
        let said = |value: i64| {
            let mut buffer = [0; 32];
            let mut text = Text::new(&mut buffer);
            fixed(value, &mut text);
            let length = text.finish().unwrap();
            String::from_utf8(buffer[..length].to_vec()).unwrap()
        };
        for (value, text) in [(0xc_ffff_ffff, "13"), (0xc_8000_0000, "12.5"), (0xc_0000_0000, "12"), (1 << 22, "0.001")] {
            assert_eq!(said(value), text);
        }
        assert_eq!(read_fixed(b"12.5"), Some(0xc_8000_0000));
        assert_eq!(read_fixed(b"0.999999999").map(|value| value >> 32), Some(0));
        for digits in [10, 20, 64, 500] {
            assert_eq!(read_fixed(format!("0.{}", "0".repeat(digits)).as_bytes()), None);
        }
        assert_eq!((read_fixed(b"0.x"), read_fixed(b"x"), read_fixed(b"2147483648")), (None, None, None));
    }
}
