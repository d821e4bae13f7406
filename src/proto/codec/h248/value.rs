//! Names with their package, values and parameters (B.2 pkgdName, parmValue; 12.1.2).

use super::fault::{Fault, Refusal};
use super::lex::{self, Assigned, Body, Item, Items, Relation};

/// `package/item`; either part may be `*` where wildcards are legal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PackagedName<'a> {
    /// The package, as written; compared without letter case.
    pub package: &'a [u8],
    /// The item of the package: property, event, signal or statistic.
    pub item: &'a [u8],
}

impl<'a> PackagedName<'a> {
    /// Reads `package/item`, `package/*` or `*/*`.
    #[inline]
    pub fn parse(text: &'a [u8]) -> Option<PackagedName<'a>> {
        let slash = text.iter().position(|&byte| byte == b'/')?;
        let (package, item) = (text.get(..slash)?, text.get(slash + 1..)?);
        let good = match (package, item) {
            (b"*", b"*") => true,
            (_, b"*") => lex::is_name(package),
            _ => lex::is_name(package) && lex::is_name(item),
        };
        good.then_some(PackagedName { package, item })
    }

    /// Whether it stands for several items.
    pub fn is_wildcard(&self) -> bool {
        self.item == b"*"
    }

    /// Whether it is this item, letter case ignored.
    pub fn is(&self, package: &str, item: &str) -> bool {
        self.package.eq_ignore_ascii_case(package.as_bytes()) && self.item.eq_ignore_ascii_case(item.as_bytes())
    }

    pub(super) fn of_item(item: &Item<'a>) -> Result<PackagedName<'a>, Refusal> {
        PackagedName::parse(item.name).filter(|_| !item.quoted).ok_or(Refusal::new(Fault::PackageName, item.offset))
    }

    /// One item, no wildcard.
    pub(super) fn single(item: &Item<'a>) -> Result<PackagedName<'a>, Refusal> {
        let name = PackagedName::of_item(item)?;
        if name.is_wildcard() { item.refuse(Fault::Wildcard) } else { Ok(name) }
    }
}

/// One value: a word or a quoted string (B.2 VALUE).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Value<'a> {
    /// The text without quotes.
    pub text: &'a [u8],
    /// Whether it stood in quotes.
    pub quoted: bool,
}

impl<'a> Value<'a> {
    /// As a whole number, decimal or `0x` hexadecimal; only decimal ones may be negative, and there is no octal form (TXT-08).
    pub fn integer(&self) -> Option<i64> {
        if self.quoted {
            return None;
        }
        match self.text {
            [b'0', b'x' | b'X', digits @ ..] if (1..=8).contains(&digits.len()) => {
                let digit = |byte: u8| char::from(byte).to_digit(16).map(i64::from);
                digits.iter().try_fold(0, |value, &byte| Some(value * 16 + digit(byte)?))
            }
            [b'-', digits @ ..] => lex::uint32(digits).map(|value| -i64::from(value)),
            digits => lex::uint32(digits).map(i64::from),
        }
    }

    /// As a boolean: `on` or `off` (TXT-09).
    pub fn boolean(&self) -> Option<bool> {
        match self.text {
            text if self.quoted || text.len() > 3 => None,
            text if text.eq_ignore_ascii_case(b"on") => Some(true),
            text if text.eq_ignore_ascii_case(b"off") => Some(false),
            _ => None,
        }
    }

    /// Whether it is this word, letter case ignored.
    pub fn is(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word.as_bytes())
    }
}

/// Several values, checked when they were read.
#[derive(Clone, Debug)]
pub struct Values<'a>(Items<'a>);

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let item = self.0.next()?.ok()?;
        Some(Value { text: item.name, quoted: item.quoted })
    }
}

/// What a property or parameter is to be or may be (B.2 parmValue; TXT-10, TS-03).
#[derive(Clone, Debug)]
pub enum ParameterValue<'a> {
    /// `= value`; `$` leaves the choice to the gateway.
    One(Value<'a>),
    /// `> value`
    Greater(Value<'a>),
    /// `< value`
    Less(Value<'a>),
    /// `# value`: anything else
    Unequal(Value<'a>),
    /// `= [a, b]`: all of them
    All(Values<'a>),
    /// `= {a, b}`: one of them, the best first
    Any(Values<'a>),
    /// `= [a:b]`: the ends included
    Range(Value<'a>, Value<'a>),
}

impl<'a> ParameterValue<'a> {
    /// The value, when it is one that is fully given.
    pub fn one(&self) -> Option<Value<'a>> {
        match self {
            ParameterValue::One(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn of_item(item: &Item<'a>) -> Result<ParameterValue<'a>, Refusal> {
        let malformed = || Refusal::new(Fault::Value, item.offset);
        let relation = item.relation.filter(|_| item.body.is_none() && item.time.is_none()).ok_or_else(malformed)?;
        let value = match item.value {
            Assigned::Word(text) => Value { text, quoted: false },
            Assigned::Quoted(text) => Value { text, quoted: true },
            Assigned::Brackets { inside, whole } if relation == Relation::Equal && whole.ends_with(b"]") => {
                return Ok(match range(inside)? {
                    Some((low, high)) => ParameterValue::Range(low, high),
                    None => ParameterValue::All(values(inside)?),
                });
            }
            Assigned::Braces(inside) if relation == Relation::Equal => return values(inside).map(ParameterValue::Any),
            _ => return Err(malformed()),
        };
        Ok(match relation {
            Relation::Equal => ParameterValue::One(value),
            Relation::Greater => ParameterValue::Greater(value),
            Relation::Less => ParameterValue::Less(value),
            Relation::Unequal => ParameterValue::Unequal(value),
        })
    }
}

/// `low : high` and nothing else.
fn range(inside: Body<'_>) -> Result<Option<(Value<'_>, Value<'_>)>, Refusal> {
    let mut items = inside.items(Fault::Value);
    match (items.next().transpose()?, items.next().transpose()?) {
        (Some(item), None) if item.relation.is_none() && item.body.is_none() => {
            Ok(item.time.map(|low| (Value { text: low, quoted: false }, Value { text: item.name, quoted: item.quoted })))
        }
        _ => Ok(None),
    }
}

/// One value or more, each nothing but a value.
fn values(inside: Body<'_>) -> Result<Values<'_>, Refusal> {
    let items = inside.items(Fault::Value);
    let mut count = 0;
    for item in items.clone() {
        let item = item?;
        if item.time.is_some() || item.relation.is_some() || item.body.is_some() || !matches!(item.value, Assigned::Nothing) {
            return item.refuse(Fault::Value);
        }
        count += 1;
    }
    if count == 0 { Err(Refusal::new(Fault::Value, inside.offset())) } else { Ok(Values(items)) }
}

/// A property of a package.
#[derive(Clone, Debug)]
pub struct Property<'a> {
    /// Which one.
    pub name: PackagedName<'a>,
    /// What it is to be, or is.
    pub value: ParameterValue<'a>,
}

impl<'a> Property<'a> {
    pub(super) fn of_item(item: &Item<'a>) -> Result<Property<'a>, Refusal> {
        Ok(Property { name: PackagedName::single(item)?, value: ParameterValue::of_item(item)? })
    }
}

/// A parameter of an event or signal.
#[derive(Clone, Debug)]
pub struct Parameter<'a> {
    /// Its name, as written; compared without letter case.
    pub name: &'a [u8],
    /// Its value.
    pub value: ParameterValue<'a>,
}

impl<'a> Parameter<'a> {
    pub(super) fn of_item(item: &Item<'a>) -> Result<Parameter<'a>, Refusal> {
        if item.quoted || !lex::is_name(item.name) {
            return item.refuse(Fault::ParameterUnknown);
        }
        Ok(Parameter { name: item.name, value: ParameterValue::of_item(item)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_booleans_as_annex_b_writes_them() {
        // TXT-08, TXT-09
        let read = |text: &'static str| Value { text: text.as_bytes(), quoted: false }.integer();
        for (text, value) in [("0x1F", Some(31)), ("-5", Some(-5)), ("017", Some(17)), ("4294967295", Some(4_294_967_295))] {
            assert_eq!(read(text), value, "{text}");
        }
        for none in ["4294967296", "-0x1", "", "-", "0x", "1.5", "12345678901", "0x123456789"] {
            assert_eq!(read(none), None, "{none}");
        }
        assert_eq!(Value { text: b"5", quoted: true }.integer(), None);
        assert_eq!(Value { text: b"oN", quoted: false }.boolean(), Some(true));
        assert_eq!(Value { text: b"off", quoted: true }.boolean(), None);
    }

    #[test]
    fn names_with_packages() {
        for good in ["g/sc", "*/*", "dd/*", "rtp/os"] {
            assert!(PackagedName::parse(good.as_bytes()).is_some(), "{good}");
        }
        for bad in ["g", "*/a", "g/", "/a", "g/a/b", "g-x/a", "1g/a", "g/*x"] {
            assert!(PackagedName::parse(bad.as_bytes()).is_none(), "{bad}");
        }
        assert!(PackagedName::parse(b"OCP/MG_Overload").unwrap().is("ocp", "mg_overload"));
    }
}
