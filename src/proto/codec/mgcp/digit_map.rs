//! Digit maps and sets of digit symbols (RFC 3435 2.1.5, appendix A; G-DMP-01 to G-DMP-05).
//!
//! Syntax only. Which letters an endpoint knows, and matching, belong to the endpoint.

use super::refusal::{Fault, Refusal};
use crate::proto::codec::scan;

/// A set of the symbols of digit maps: digits, letters, `*` and `#`. `X` stands for the ten digits and is never a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SymbolSet(u64);

impl SymbolSet {
    /// No symbol.
    pub const EMPTY: SymbolSet = SymbolSet(0);
    /// `0` to `9`: what `X` stands for (G-DMP-03).
    pub const DIGITS: SymbolSet = SymbolSet(0x3ff);
    /// Everything that is not an extension letter: `0-9 * # A-D T`.
    pub const BASE: SymbolSet = SymbolSet(0x3ff | (0xf << 10) | (1 << (10 + (b'T' - b'A'))) | (1 << 36) | (1 << 37));

    /// The set of one symbol, `X` being ten; `None` for a byte that is no symbol.
    pub fn of(symbol: u8) -> Option<SymbolSet> {
        let bit = match symbol.to_ascii_uppercase() {
            b'X' => return Some(SymbolSet::DIGITS),
            digit @ b'0'..=b'9' => digit - b'0',
            letter @ b'A'..=b'Z' => letter - b'A' + 10,
            b'*' => 36,
            b'#' => 37,
            _ => return None,
        };
        Some(SymbolSet(1 << bit))
    }

    /// `low` to `high`, both digits or, where `letters` are allowed, both of A to D; `None` for anything else.
    fn of_range(low: u8, high: u8, letters: bool) -> Option<SymbolSet> {
        let (low, high) = (low.to_ascii_uppercase(), high.to_ascii_uppercase());
        let digits = low.is_ascii_digit() && high.is_ascii_digit();
        let keys = letters && (b'A'..=b'D').contains(&low) && (b'A'..=b'D').contains(&high);
        if !(digits || keys) || low > high {
            return None;
        }
        let mut set = SymbolSet::EMPTY;
        for symbol in low..=high {
            set = set.union(SymbolSet::of(symbol)?);
        }
        Some(set)
    }

    /// Whether `symbol` is a member, in either letter case; never for `X`.
    pub fn has(self, symbol: u8) -> bool {
        !symbol.eq_ignore_ascii_case(&b'X') && SymbolSet::of(symbol).is_some_and(|one| self.0 & one.0 != 0)
    }

    /// What is in either.
    pub const fn union(self, other: SymbolSet) -> SymbolSet {
        SymbolSet(self.0 | other.0)
    }

    /// What is in this one and not in `other`.
    pub const fn without(self, other: SymbolSet) -> SymbolSet {
        SymbolSet(self.0 & !other.0)
    }

    /// Whether both have a member in common.
    pub const fn meets(self, other: SymbolSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether it has no member.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many members.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The symbols in order: digits, letters in upper case, `*`, `#`.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ*#".iter().enumerate().filter(move |(bit, _)| self.0 & (1 << bit) != 0).map(|(_, &b)| b)
    }
}

/// Reads the content of brackets: symbols and ranges, at least one. `letters` allows `A-D` (events, not digit maps).
pub(super) fn bracket_content(content: &[u8], letters: bool) -> Option<SymbolSet> {
    let mut set = SymbolSet::EMPTY;
    let mut rest = content;
    while let [first, behind @ ..] = rest {
        if let [b'-', last, behind @ ..] = behind {
            set = set.union(SymbolSet::of_range(*first, *last, letters)?);
            rest = behind;
        } else {
            set = set.union(SymbolSet::of(*first)?);
            rest = behind;
        }
    }
    (!content.is_empty()).then_some(set)
}

/// A well-formed digit map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DigitMap<'a> {
    raw: &'a [u8],
    strings: &'a [u8],
}

/// One position of a digit string.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// What matches here.
    pub symbols: SymbolSet,
    /// Whether a dot follows: zero or more of it (G-DMP-05).
    pub repeated: bool,
}

impl<'a> DigitMap<'a> {
    /// Reads one string, or several between `|`; parentheses around them are optional, though only those around one string should be.
    pub fn parse(value: &'a [u8]) -> Result<DigitMap<'a>, Refusal> {
        #[cfg(test)]
        READ.with(|read| read.set(read.get() + 1));
        let map = DigitMap::read_before(value);
        for mut positions in map.strings() {
            if positions.by_ref().count() == 0 || !positions.rest.is_empty() {
                return Err(Refusal::new(Fault::DigitMap, scan::offset_in(value, positions.rest)));
            }
        }
        Ok(map)
    }

    /// The same of a value that [`DigitMap::parse`] has accepted before: nothing is looked at again.
    pub(super) fn read_before(value: &'a [u8]) -> DigitMap<'a> {
        let raw = scan::trim(value);
        let strings = match raw {
            [b'(', strings @ .., b')'] => strings,
            string => string,
        };
        DigitMap { raw, strings }
    }

    /// The alternatives, each a sequence of positions.
    pub fn strings(&self) -> impl Iterator<Item = Positions<'a>> + use<'a> {
        self.strings.split(|&b| b == b'|').map(|string| Positions { rest: scan::trim(string) })
    }

    /// Every symbol that occurs; `without(SymbolSet::BASE)` are the extension letters (G-DMP-02).
    pub fn symbols(&self) -> SymbolSet {
        self.strings().flatten().fold(SymbolSet::EMPTY, |all, position| all.union(position.symbols))
    }

    /// The map as written.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.raw
    }
}

/// The positions of a digit string, in order; ends at what is none.
#[derive(Clone, Debug)]
pub struct Positions<'a> {
    rest: &'a [u8],
}

impl Iterator for Positions<'_> {
    type Item = Position;

    fn next(&mut self) -> Option<Position> {
        let (symbols, behind) = match self.rest {
            [b'[', behind @ ..] => {
                let end = behind.iter().position(|&b| b == b']')?;
                (bracket_content(&behind[..end], false)?, &behind[end + 1..])
            }
            [symbol, behind @ ..] => (SymbolSet::of(*symbol)?, behind),
            [] => return None,
        };
        let (repeated, behind) = match behind {
            [b'.', behind @ ..] => (true, behind),
            _ => (false, behind),
        };
        self.rest = behind;
        Some(Position { symbols, repeated })
    }
}

#[cfg(test)]
thread_local! {
    /// How many maps were read on this thread.
    pub(super) static READ: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(map: &str) -> bool {
        DigitMap::parse(map.as_bytes()).is_ok()
    }

    #[test]
    fn legal_maps() {
        // G-DMP-01, G-DMP-04
        for map in
            ["5xxx", "(0T|00T|[1-7]xxx)", "(0[12].|00|1[12].1|2x.#)", "[0-9#T]", "[x]", "( 1 | 2 )", "(P5)", "*#aBcD", " xx ", "x.x.x."]
        {
            assert!(ok(map), "{map}");
        }
        assert!(ok(&"x.".repeat(1024)));
    }

    #[test]
    fn illegal_maps() {
        for map in [
            "", "()", "[]", "[A-C]", "[9-1]", ".", ".1", "1..", "(1|)", "(|1)", "1|2|", "(1", "1)", "((1))", "1 2", "[1", "1]", "[1-]",
            "[-1]", "1,2", "[ 1]",
        ] {
            assert!(!ok(map), "{map}");
        }
    }

    #[test]
    fn positions_and_symbols() {
        let map = DigitMap::parse(b"(1[2-4#].|xP)").unwrap();
        let strings: Vec<Vec<Position>> = map.strings().map(Iterator::collect).collect();
        assert_eq!(strings.len(), 2);
        assert_eq!(strings[0][1].symbols.iter().collect::<Vec<_>>(), b"234#");
        assert!(strings[0][1].repeated && !strings[0][0].repeated);
        assert_eq!(strings[1][0].symbols, SymbolSet::DIGITS);
        assert_eq!(map.symbols().without(SymbolSet::BASE).iter().collect::<Vec<_>>(), b"P");
    }

    #[test]
    fn sets() {
        assert_eq!(bracket_content(b"0-9*#A-d", true).unwrap().len(), 16);
        assert_eq!(bracket_content(b"A-D", false), None);
        assert!(SymbolSet::BASE.has(b't') && SymbolSet::BASE.has(b'#') && !SymbolSet::BASE.has(b'E') && !SymbolSet::BASE.has(b'x'));
    }
}
