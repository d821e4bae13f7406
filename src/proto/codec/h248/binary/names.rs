//! Packages and their items by name and by number (RFC 3525 annex E; H.248.10, H.248.11, H.248.14), with the types of their values, which
//! only the binary encoding needs. What is not listed has a name made of its number (`p0077/i0001`), so that nothing is lost on the way
//! to whoever refuses it.

use super::ber::tag;

/// What a value is (BIN-02, BIN-03).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// By its look: a number, `on` or `off`, or else a string.
    Any,
    /// INTEGER, of 4 or of 8 octets.
    Integer,
    /// INTEGER whose lower 32 bits are the fraction (`rtp/pl`).
    Fixed,
    /// BOOLEAN
    Boolean,
    /// IA5String, or UTF8String.
    Text,
    /// ENUMERATED, by these names.
    Named(&'static [(&'static str, i64)]),
    /// OCTET STRING: the number of a signal or event (`g/sc`).
    Name,
}

/// An item of a package, or a parameter of one.
#[derive(Debug)]
pub struct Item {
    name: &'static str,
    number: u16,
    /// Of a property, a statistic or a parameter.
    pub kind: Kind,
    /// Of an event or signal.
    parameters: &'static [Item],
}

/// A package.
#[derive(Debug)]
pub struct Package {
    name: &'static str,
    number: u16,
    /// The package it extends.
    base: Option<&'static Package>,
    /// By [`Sort`].
    items: [&'static [Item]; 4],
}

/// What an item is: numbers are scoped by it (PRP-04).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    /// Property.
    Property,
    /// Event.
    Event,
    /// Signal.
    Signal,
    /// Statistic.
    Statistic,
}

const fn value(name: &'static str, number: u16, kind: Kind) -> Item {
    Item { name, number, kind, parameters: &[] }
}

const fn plain(name: &'static str, number: u16) -> Item {
    value(name, number, Kind::Any)
}

const fn with(name: &'static str, number: u16, parameters: &'static [Item]) -> Item {
    Item { name, number, kind: Kind::Any, parameters }
}

const NONE: &[Item] = &[];
const GENERAL_CAUSE: Kind = Kind::Named(&[("NR", 1), ("UR", 2), ("FT", 3), ("FP", 4), ("IW", 5), ("UN", 6)]);
const METHOD: Kind = Kind::Named(&[("TO", 1), ("EV", 2), ("SD", 3), ("NC", 4)]);
const MATCH: Kind = Kind::Named(&[("UM", 1), ("PM", 2), ("FM", 3)]);
const STRICT: Kind = Kind::Named(&[("exact", 0), ("state", 1), ("failWrong", 2)]);
const RESULT: Kind = Kind::Named(&[("failure", 0), ("success", 1)]);
const TONES: &[Item] = &[value("tl", 1, Kind::Any), value("dur", 2, Kind::Integer), value("tid", 3, Kind::Any)];
const HOOK: &[Item] = &[value("strict", 1, STRICT), value("init", 2, Kind::Boolean)];

static TONEGEN: Package = Package {
    name: "tonegen",
    number: 3,
    base: None,
    items: [NONE, NONE, &[with("pt", 1, &[plain("tl", 1), value("ind", 2, Kind::Integer)])], NONE],
};
static TONEDET: Package = Package {
    name: "tonedet",
    number: 4,
    base: None,
    items: [NONE, &[with("std", 1, TONES), with("etd", 2, TONES), with("ltd", 3, TONES)], NONE, NONE],
};
static NETWORK: Package = Package {
    name: "nt",
    number: 0xb,
    base: None,
    items: [
        &[value("jit", 7, Kind::Integer)],
        &[with("netfail", 5, &[value("cs", 1, Kind::Text)]), with("qualert", 6, &[value("th", 1, Kind::Integer)])],
        NONE,
        &[value("dur", 1, Kind::Integer), value("os", 2, Kind::Integer), value("or", 3, Kind::Integer)],
    ],
};

/// These items and the sixteen keys.
macro_rules! keys {
    ($($item:expr,)*) => {
        &[
            $($item,)*
            plain("d0", 0x10),
            plain("d1", 0x11),
            plain("d2", 0x12),
            plain("d3", 0x13),
            plain("d4", 0x14),
            plain("d5", 0x15),
            plain("d6", 0x16),
            plain("d7", 0x17),
            plain("d8", 0x18),
            plain("d9", 0x19),
            plain("da", 0x1a),
            plain("db", 0x1b),
            plain("dc", 0x1c),
            plain("dd", 0x1d),
            plain("ds", 0x20),
            plain("do", 0x21),
        ]
    };
}

const PROGRESS: &[Item] = &[
    plain("dt", 0x30),
    plain("rt", 0x31),
    plain("bt", 0x32),
    plain("ct", 0x33),
    plain("sit", 0x34),
    plain("wt", 0x35),
    plain("prt", 0x36),
    plain("cw", 0x37),
    plain("cr", 0x38),
];

static PACKAGES: &[Package] = &[
    Package {
        name: "g",
        number: 1,
        base: None,
        items: [
            NONE,
            &[
                with("cause", 1, &[value("Generalcause", 1, GENERAL_CAUSE), value("Failurecause", 2, Kind::Text)]),
                with("sc", 2, &[value("SigID", 1, Kind::Name), value("Meth", 2, METHOD), value("SLID", 3, Kind::Integer)]),
            ],
            NONE,
            NONE,
        ],
    },
    Package {
        name: "root",
        number: 2,
        base: None,
        items: [
            &[
                value("maxNumberOfContexts", 1, Kind::Integer),
                value("maxTerminationsPerContext", 2, Kind::Integer),
                value("normalMGExecutionTime", 3, Kind::Integer),
                value("normalMGCExecutionTime", 4, Kind::Integer),
                value("MGProvisionalResponseTimerValue", 5, Kind::Integer),
                value("MGCProvisionalResponseTimerValue", 6, Kind::Integer),
            ],
            NONE,
            NONE,
            NONE,
        ],
    },
    Package { name: "dg", number: 5, base: Some(&TONEGEN), items: [NONE, NONE, keys!(), NONE] },
    Package {
        name: "dd",
        number: 6,
        base: Some(&TONEDET),
        items: [NONE, keys!(with("ce", 4, &[value("ds", 1, Kind::Text), value("Meth", 3, MATCH)]),), NONE, NONE],
    },
    Package { name: "cg", number: 7, base: Some(&TONEGEN), items: [NONE, NONE, PROGRESS, NONE] },
    Package { name: "cd", number: 8, base: Some(&TONEDET), items: [NONE, PROGRESS, NONE, NONE] },
    Package {
        name: "al",
        number: 9,
        base: None,
        items: [
            NONE,
            &[
                with("on", 4, HOOK),
                with("of", 5, HOOK),
                with("fl", 6, &[value("mindur", 4, Kind::Integer), value("maxdur", 5, Kind::Integer)]),
            ],
            &[with("ri", 2, &[plain("cad", 6), value("freq", 7, Kind::Integer)])],
            NONE,
        ],
    },
    Package {
        name: "ct",
        number: 0xa,
        base: None,
        items: [NONE, &[with("cmp", 5, &[value("res", 8, RESULT)])], &[plain("ct", 3), plain("rsp", 4)], NONE],
    },
    Package {
        name: "rtp",
        number: 0xc,
        base: Some(&NETWORK),
        items: [
            NONE,
            &[with("pltrans", 1, &[plain("rtppltype", 1)])],
            NONE,
            &[
                value("ps", 4, Kind::Integer),
                value("pr", 5, Kind::Integer),
                value("pl", 6, Kind::Fixed),
                value("jit", 7, Kind::Integer),
                value("delay", 8, Kind::Integer),
            ],
        ],
    },
    Package {
        name: "tdmc",
        number: 0xd,
        base: Some(&NETWORK),
        items: [&[value("ec", 8, Kind::Boolean), value("gain", 0xa, Kind::Integer)], NONE, NONE, NONE],
    },
    Package {
        name: "chp",
        number: 0x29,
        base: None,
        items: [NONE, &[with("mgcon", 1, &[value("reduction", 1, Kind::Integer)])], NONE, NONE],
    },
    Package { name: "it", number: 0x45, base: None, items: [NONE, &[with("ito", 1, &[value("mit", 1, Kind::Integer)])], NONE, NONE] },
    Package { name: "ocp", number: 0x51, base: None, items: [NONE, &[plain("mg_overload", 1)], NONE, NONE] },
];

fn packages() -> impl Iterator<Item = &'static Package> {
    PACKAGES.iter().chain([&TONEGEN, &TONEDET, &NETWORK])
}

/// The number that is written as `letter` and four digits.
fn made(name: &[u8], letter: u8) -> Option<u16> {
    match name {
        [first, digits @ ..] if first.eq_ignore_ascii_case(&letter) && digits.len() == 4 => {
            u16::from_str_radix(std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?, 16).ok()
        }
        _ => None,
    }
}

/// A name that stands in a text: one of the table, or one made of the number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// Of the table.
    Listed(&'static str),
    /// Not listed.
    Made(u8, u16),
}

impl Package {
    fn items(&self, sort: Sort) -> impl Iterator<Item = &'static Item> + use<> {
        let at = sort as usize;
        let of = move |package: &Package| package.items.get(at).copied().unwrap_or_default().iter();
        of(self).chain(self.base.map(of).into_iter().flatten())
    }
}

/// The package with this number, and its name.
pub fn package(number: u16) -> (Option<&'static Package>, Known) {
    let found = packages().find(|package| package.number == number);
    (found, found.map_or(Known::Made(b'p', number), |package| Known::Listed(package.name)))
}

/// The package with this name, and its number.
pub fn package_number(name: &[u8]) -> Option<(Option<&'static Package>, u16)> {
    let found = packages().find(|package| package.name.as_bytes().eq_ignore_ascii_case(name));
    Some((found, found.map(|package| package.number).or_else(|| made(name, b'p'))?))
}

/// The item with this number of a package, and its name.
pub fn item(package: Option<&'static Package>, sort: Sort, number: u16) -> (Option<&'static Item>, Known) {
    named(package.and_then(|package| package.items(sort).find(|item| item.number == number)), number)
}

/// The item with this name of a package, and its number.
pub fn item_number(package: Option<&'static Package>, sort: Sort, name: &[u8]) -> Option<(Option<&'static Item>, u16)> {
    numbered(package.and_then(|package| package.items(sort).find(|item| item.is(name))), name)
}

/// The parameter with this number of an item, and its name.
pub fn parameter(of: Option<&'static Item>, number: u16) -> (Option<&'static Item>, Known) {
    named(of.and_then(|item| item.parameters.iter().find(|parameter| parameter.number == number)), number)
}

/// The parameter with this name of an item, and its number.
pub fn parameter_number(of: Option<&'static Item>, name: &[u8]) -> Option<(Option<&'static Item>, u16)> {
    numbered(of.and_then(|item| item.parameters.iter().find(|parameter| parameter.is(name))), name)
}

fn named(found: Option<&'static Item>, number: u16) -> (Option<&'static Item>, Known) {
    (found, found.map_or(Known::Made(b'i', number), |item| Known::Listed(item.name)))
}

fn numbered(found: Option<&'static Item>, name: &[u8]) -> Option<(Option<&'static Item>, u16)> {
    Some((found, found.map(|item| item.number).or_else(|| made(name, b'i'))?))
}

/// The number in a digit map's name, which has two octets here and letters in a text: `dm` and four digits.
pub fn digit_map_number(name: &[u8]) -> Option<u16> {
    let (head, rest) = name.split_first()?;
    if head.eq_ignore_ascii_case(&b'd') { made(rest, b'm') } else { None }
}

impl Item {
    fn is(&self, name: &[u8]) -> bool {
        self.name.as_bytes().eq_ignore_ascii_case(name)
    }
}

impl Kind {
    /// The name that this number has.
    pub fn name_of(self, number: i64) -> Option<&'static str> {
        match self {
            Kind::Named(names) => names.iter().find(|(_, known)| *known == number).map(|(name, _)| *name),
            _ => None,
        }
    }

    /// The number that this name has.
    pub fn number_of(self, name: &[u8]) -> Option<i64> {
        match self {
            Kind::Named(names) => names.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name)).map(|(_, number)| *number),
            _ => None,
        }
    }
}

/// The tag of a string: IA5String when it is ASCII (note 4 of A.2).
pub fn string_tag(text: &[u8]) -> u8 {
    if text.is_ascii() { tag::IA5 } else { tag::UTF8 }
}

/// The number of an SDP line in Annex C.11, by its letter.
pub const LINES: &[(u8, u16)] = &[
    (b'v', 0xb001),
    (b'o', 0xb002),
    (b's', 0xb003),
    (b'i', 0xb004),
    (b'u', 0xb005),
    (b'e', 0xb006),
    (b'p', 0xb007),
    (b'c', 0xb008),
    (b'b', 0xb009),
    (b'z', 0xb00a),
    (b'k', 0xb00b),
    (b'a', 0xb00c),
    (b't', 0xb00d),
    (b'r', 0xb00e),
    (b'm', 0xb00f),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_keep_to_the_rules_of_packages() {
        // PRP-16: nothing is called like a keyword that may stand where it does. PRP-17: what no standard has has a number of its own kind.
        let keywords = [
            "st",
            "stream",
            "sy",
            "signaltype",
            "dr",
            "duration",
            "nc",
            "notifycompletion",
            "ka",
            "keepactive",
            "eb",
            "embed",
            "dm",
            "digitmap",
        ];
        for one in packages() {
            assert!(one.number < 0x8000 || one.name.len() >= 8, "{}", one.name);
            for parameter in one.items.iter().flat_map(|items| items.iter()).flat_map(|item| item.parameters) {
                let name = parameter.name.to_ascii_lowercase();
                assert!(!keywords.contains(&name.as_str()) && !name.starts_with("epa") && !name.starts_with("spa"), "{}/{name}", one.name);
            }
        }
    }

    #[test]
    fn names_and_numbers_lead_to_each_other() {
        let mut numbers = BTreeSet::new();
        for one in packages() {
            assert!(numbers.insert(one.number) && package_number(one.name.as_bytes()).unwrap().1 == one.number, "{}", one.name);
            for sort in [Sort::Property, Sort::Event, Sort::Signal, Sort::Statistic] {
                for of in one.items(sort) {
                    assert_eq!(item(Some(one), sort, of.number).1, Known::Listed(of.name));
                    assert_eq!(item_number(Some(one), sort, of.name.as_bytes()).unwrap().1, of.number);
                    for of_item in of.parameters {
                        assert_eq!(parameter_number(Some(of), of_item.name.as_bytes()).unwrap().1, of_item.number);
                        assert_eq!(parameter(Some(of), of_item.number).1, Known::Listed(of_item.name));
                    }
                }
            }
        }
        // BIN-06: H.248.11 and H.248.10, in any letter case.
        let (ocp, number) = package_number(b"OCP").unwrap();
        assert_eq!((number, item_number(ocp, Sort::Event, b"MG_Overload").unwrap().1), (0x51, 1));
        let (chp, number) = package_number(b"chp").unwrap();
        let (mgcon, event) = item_number(chp, Sort::Event, b"mgcon").unwrap();
        assert_eq!((number, event, parameter_number(mgcon, b"reduction").unwrap().1), (0x29, 1, 1));
        // Items of a base by the name of what extends it (PRP-02).
        assert_eq!(item_number(package_number(b"rtp").unwrap().0, Sort::Event, b"netfail").unwrap().1, 5);
        assert_eq!((package(0x77).1, package_number(b"p0077").unwrap().1), (Known::Made(b'p', 0x77), 0x77));
        assert_eq!((package_number(b"p+077").is_none(), package_number(b"px").is_none()), (true, true));
        assert_eq!((digit_map_number(b"dm00fF"), digit_map_number(b"plan")), (Some(0xff), None));
    }
}
