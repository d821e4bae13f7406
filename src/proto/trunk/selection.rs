//! Names with wildcards: what a local name as received selects.
//!
//! Rules (RFC 3435 2.1.2 and Appendix E.5, G-EPN-05..14; choices of the design, "depth of `*`"):
//! - `*` and `$` replace a whole term; inside a term (`ds1-*`) they make no name. `*` covers endpoints whatever their service state.
//! - A trailing `*` or `$` covers all deeper levels (`ds/ds3-1/*` is everything below); alone it covers the gateway. Anywhere else
//!   it stands for one term.
//! - With `ranges`, `[1-12]` and `[1,3,20-24]` may stand for a term of digits or end a term (`ds1-[1-2]`). Without, `[` is an
//!   ordinary character and so the name is unknown here.
//! - `$` chooses left to right: [`Selection::choose`].
//!
//! A [`Selection`] is a few masks, never a list of endpoints: it is found in one pass over the name, iterates lazily in the order
//! of the endpoints, and costs at most one step per span. A name with more terms than the hierarchy has is unknown after its fifth.

use super::topology::{
    ALL_CHANNELS, Facility, FacilityKind, Span, SpanBounds, SpanIndex, T1S_PER_T3, T3Index, Topology, read_kind, read_number,
    strip_ignoring_case,
};
use crate::proto::base::{EndpointIndex, EndpointRange};

/// The most intervals in a range over units (`ds1-[1,3,5-9]`); channels and T1s of a T3 have no such limit.
pub const UNIT_RANGES_MAX: usize = 16;
/// The longest range wildcard, in bytes with its brackets (Appendix E.5).
pub const RANGE_TEXT_MAX: usize = 128;

/// Why a name selects nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameError {
    /// Not a legal local name (500): an empty term, a wildcard inside a term, a character outside 0x21..=0x7E or `@`, over 255 bytes.
    Malformed,
    /// Legal, and names nothing of this gateway (500, G-EPN-10).
    Unknown,
    /// Legal, but a range with more intervals than [`UNIT_RANGES_MAX`] or longer than [`RANGE_TEXT_MAX`] (503).
    TooComplex,
}

/// How one term of the name chooses among the values of its level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Choice {
    /// One named value.
    #[default]
    Plain,
    /// `*` or a range.
    AllOf,
    /// `$`.
    AnyOf,
}

/// Which facilities below `ds`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Units {
    All,
    One(FacilityKind, u32),
    Some(FacilityKind, u8, [(u32, u32); UNIT_RANGES_MAX]),
}

/// The endpoints a name stands for; never empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selection {
    choices: [Choice; 4],
    units: Units,
    /// Which T1s of a T3: bit `n` is `ds1-<n>`.
    t1s: u32,
    /// Which channels of a T1 within a T3, and of a span that stands alone.
    t3_channels: u32,
    channels: u32,
    /// No span outside is selected.
    bounds: SpanBounds,
}

/// Where an iteration over a [`Selection`] stands; the default is its beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor {
    span: u32,
    position: u32,
}

impl Topology {
    /// What `local` selects: one endpoint or, with wildcards, several. `ranges`: whether the agent uses range wildcards.
    ///
    /// # Errors
    /// See [`NameError`].
    pub fn resolve(&self, local: &[u8], ranges: bool) -> Result<Selection, NameError> {
        if let Some(endpoint) = self.lookup(local) {
            return self.selection_of(endpoint).ok_or(NameError::Unknown);
        }
        let mut selection = Selection::read(local, ranges)?;
        selection.bounds = self.bounds(&selection.units);
        if selection.next(self, &mut Cursor::default(), 1).is_none() {
            return Err(NameError::Unknown);
        }
        Ok(selection)
    }

    /// The selection that holds one endpoint.
    pub fn selection_of(&self, endpoint: EndpointIndex) -> Option<Selection> {
        let index = self.span_of(endpoint)?;
        let span = self.span(index)?;
        let channels = 1 << self.channel_of(endpoint)?;
        let bounds = self.bounds_of_span(index);
        let (units, t1s) = match span.t3 {
            Some(t3) => (Units::One(FacilityKind::T3, self.t3_unit(t3)?), 1 << span.number),
            None => (Units::One(span.kind, span.number), 0),
        };
        Some(Selection { choices: [Choice::Plain; 4], units, t1s, t3_channels: channels, channels, bounds })
    }

    /// The selection that holds all endpoints, as `*` does.
    pub fn select_all(&self) -> Selection {
        Selection { bounds: self.bounds(&Units::All), ..Selection::everything(Choice::AllOf) }
    }

    /// The endpoints of the units of one kind within any of `ranges` (both ends included, at most [`UNIT_RANGES_MAX`]).
    pub(crate) fn select_units(&self, kind: FacilityKind, ranges: &[(u32, u32)]) -> Selection {
        let mut slots = [(1, 0); UNIT_RANGES_MAX];
        slots.iter_mut().zip(ranges).for_each(|(slot, range)| *slot = *range);
        let units = Units::Some(kind, ranges.len().min(UNIT_RANGES_MAX) as u8, slots);
        Selection { units, bounds: self.bounds(&units), ..Selection::everything(Choice::AllOf) }
    }

    /// The endpoints of these T1s (bit `n` is `ds1-<n>`) of one T3.
    pub(crate) fn select_t1s(&self, t3: T3Index, t1s: u32) -> Selection {
        let units = Units::One(FacilityKind::T3, self.t3_unit(t3).unwrap_or(u32::MAX));
        Selection { units, t1s, bounds: self.bounds(&units), ..Selection::everything(Choice::AllOf) }
    }

    /// The endpoints on these channels (bit `n` is channel `n`) of one span.
    pub(crate) fn select_channels(&self, span: SpanIndex, channels: u32) -> Selection {
        let bounds = self.bounds_of_span(span);
        Selection { t3_channels: channels, channels, bounds, ..Selection::everything(Choice::AllOf) }
    }

    fn bounds_of_span(&self, span: SpanIndex) -> SpanBounds {
        let from = u32::from(span.0);
        SpanBounds { from, to: from + u32::from(self.span(span).is_some()) }
    }

    fn bounds(&self, units: &Units) -> SpanBounds {
        match *units {
            Units::All => SpanBounds { from: 0, to: self.spans().len() as u32 },
            Units::Some(kind, ..) => self.bounds_of(kind),
            Units::One(kind, unit) => match self.unit(kind, unit) {
                Some(Facility::T3(t3)) => {
                    let spans = self.t3_spans(t3);
                    SpanBounds { from: u32::from(spans.start), to: u32::from(spans.end) }
                }
                Some(Facility::Span(span)) => self.bounds_of_span(span),
                None => SpanBounds::default(),
            },
        }
    }
}

impl Selection {
    /// The only endpoint of a name without wildcards.
    pub fn single(&self, topology: &Topology) -> Option<EndpointIndex> {
        if self.choices.iter().any(|c| *c != Choice::Plain) {
            return None;
        }
        self.next(topology, &mut Cursor::default(), 1).map(|range| EndpointIndex(range.first))
    }

    /// Whether the name uses `*` or a range.
    pub fn all_of(&self) -> bool {
        self.choices.contains(&Choice::AllOf)
    }

    /// Whether the name uses `$`.
    pub fn any_of(&self) -> bool {
        self.choices.contains(&Choice::AnyOf)
    }

    /// Whether `endpoint` is selected (for `$`: is one of those to choose from).
    pub fn contains(&self, topology: &Topology, endpoint: EndpointIndex) -> bool {
        let Some(index) = topology.span_of(endpoint) else { return false };
        let Some(span) = topology.span(index) else { return false };
        if !(self.bounds.from..self.bounds.to).contains(&u32::from(index.0)) {
            return false;
        }
        let positions = self.positions(topology, span);
        positions >> (endpoint.0 - span.endpoints.first) & 1 == 1
    }

    /// The first and the last span that may have selected endpoints; none outside has any.
    pub fn outer_spans(&self) -> (SpanIndex, SpanIndex) {
        (SpanIndex(self.bounds.from as u16), SpanIndex(self.bounds.to.saturating_sub(1) as u16))
    }

    /// Whether an endpoint of these spans, both ends included, is selected. One step per span.
    pub fn meets(&self, topology: &Topology, (first, last): (SpanIndex, SpanIndex)) -> bool {
        let (from, to) = (self.bounds.from.max(first.0.into()), self.bounds.to.min(u32::from(last.0) + 1));
        Selection { bounds: SpanBounds { from, to }, ..*self }.next(topology, &mut Cursor::default(), 1).is_some()
    }

    /// How many endpoints are selected (for `$`: how many there are to choose from). One step per span.
    pub fn count(&self, topology: &Topology) -> u32 {
        self.spans(topology).iter().map(|span| self.positions(topology, span).count_ones()).sum()
    }

    /// The next run of selected endpoints from `cursor` on, at most `limit` of them (at least 1), in the order of their indices;
    /// `None` at the end. Runs join over spans, so that a whole T3 is one run.
    pub fn next(&self, topology: &Topology, cursor: &mut Cursor, limit: u32) -> Option<EndpointRange> {
        let limit = limit.max(1);
        let mut run = EndpointRange::default();
        cursor.span = cursor.span.max(self.bounds.from);
        while cursor.span < self.bounds.to {
            let span = topology.spans().get(cursor.span as usize)?;
            let ahead = self.positions(topology, span).checked_shr(cursor.position).unwrap_or(0);
            if run.count > 0 && ahead & 1 == 0 {
                break;
            }
            if ahead == 0 {
                *cursor = Cursor { span: cursor.span + 1, position: 0 };
                continue;
            }
            let skipped = ahead.trailing_zeros();
            let length = (ahead >> skipped).trailing_ones().min(limit - run.count);
            if run.count == 0 {
                run.first = span.endpoints.first + cursor.position + skipped;
            }
            run.count += length;
            cursor.position += skipped + length;
            if cursor.position < span.endpoints.count || run.count == limit {
                break;
            }
            *cursor = Cursor { span: cursor.span + 1, position: 0 };
        }
        (run.count > 0).then_some(run)
    }

    /// Resolves `$` left to right (G-EPN-08): calls `take` for each endpoint of the result. `*` takes all values of its term, `$`
    /// the first value below which something is `eligible`: `$/*` gives all eligible children of one term, `*/$` one child of each.
    /// Gives how many were taken. Without `$` this takes every eligible endpoint.
    pub fn choose(&self, topology: &Topology, mut eligible: impl FnMut(EndpointIndex) -> bool, mut take: impl FnMut(EndpointIndex)) -> u32 {
        let [_, of_units, of_third, of_fourth] = self.choices;
        let mut total = 0;
        let mut spans = self.spans(topology);
        while let Some(first) = spans.first() {
            let facility = if first.t3.is_some() { spans.iter().take_while(|span| span.t3 == first.t3).count() } else { 1 };
            let (of_facility, rest) = spans.split_at_checked(facility).unwrap_or((spans, &[]));
            spans = rest;
            let mut taken = 0;
            for span in of_facility {
                let of_channels = if span.t3.is_some() { of_fourth } else { of_third };
                let mut positions = self.positions(topology, span);
                let before = taken;
                while positions != 0 {
                    let endpoint = EndpointIndex(span.endpoints.first + positions.trailing_zeros());
                    positions &= positions - 1;
                    if eligible(endpoint) {
                        take(endpoint);
                        taken += 1;
                        if of_channels == Choice::AnyOf {
                            break;
                        }
                    }
                }
                if span.t3.is_some() && of_third == Choice::AnyOf && taken > before {
                    break;
                }
            }
            total += taken;
            if of_units == Choice::AnyOf && taken > 0 {
                break;
            }
        }
        total
    }

    fn spans<'a>(&self, topology: &'a Topology) -> &'a [Span] {
        topology.spans().get(self.bounds.from as usize..self.bounds.to as usize).unwrap_or(&[])
    }

    /// Which endpoints of `span` are selected, bit `n` for its endpoint number `n`.
    #[inline]
    fn positions(&self, topology: &Topology, span: &Span) -> u32 {
        match span.t3 {
            Some(t3) if self.t1s >> span.number & 1 == 1 => {
                let unit = topology.t3_unit(t3).unwrap_or(u32::MAX);
                if self.units.contain(FacilityKind::T3, unit) { span.positions(self.t3_channels) } else { 0 }
            }
            Some(_) => 0,
            None if self.units.contain(span.kind, span.number) => span.positions(self.channels),
            None => 0,
        }
    }

    /// Everything, chosen by one trailing wildcard.
    fn everything(choice: Choice) -> Selection {
        Selection {
            choices: [choice; 4],
            units: Units::All,
            t1s: ALL_T1S,
            t3_channels: ALL_CHANNELS,
            channels: ALL_CHANNELS,
            bounds: SpanBounds::default(),
        }
    }

    /// Reads a name; `bounds` is left empty.
    fn read(local: &[u8], ranges: bool) -> Result<Selection, NameError> {
        if local.is_empty() || local.len() > 255 {
            return Err(NameError::Malformed);
        }
        let mut terms = [Term::Other; 4];
        let mut count = 0;
        for text in local.split(|b| *b == b'/') {
            let slot = terms.get_mut(count).ok_or(NameError::Unknown)?;
            *slot = Term::read(text, ranges)?;
            count += 1;
        }
        let trailing = match terms.get(count - 1) {
            Some(Term::Wildcard(choice)) => Some(*choice),
            _ => None,
        };
        if let (1, Some(choice)) = (count, trailing) {
            return Ok(Selection::everything(choice));
        }
        if !matches!(terms[0], Term::Ds | Term::Wildcard(_)) || count < 2 {
            return Err(NameError::Unknown);
        }
        let mut selection = Selection { t1s: 0, t3_channels: 0, channels: 0, ..Selection::everything(Choice::Plain) };
        // A level beyond the last term is covered by a trailing wildcard and by nothing else.
        let level = |n: usize| if n < count { terms[n] } else { trailing.map_or(Term::Other, Term::Wildcard) };
        selection.choices = [0, 1, 2, 3].map(|n| level(n).choice());
        selection.units = terms[1].units().ok_or(NameError::Unknown)?;
        if count <= 3 {
            selection.channels = level(2).channels();
        }
        if count == 4 || trailing.is_some() {
            selection.t1s = level(2).t1s();
            selection.t3_channels = level(3).channels();
        }
        Ok(selection)
    }
}

impl Units {
    fn contain(&self, kind: FacilityKind, unit: u32) -> bool {
        match self {
            Units::All => true,
            Units::One(k, u) => (*k, *u) == (kind, unit),
            Units::Some(k, count, ranges) => *k == kind && ranges.iter().take(usize::from(*count)).any(|&(a, b)| a <= unit && unit <= b),
        }
    }
}

/// All T1s of a T3, bit `n` for number `n`.
const ALL_T1S: u32 = (1 << (T1S_PER_T3 + 1)) - 2;

/// One term of a name.
#[derive(Clone, Copy)]
enum Term<'a> {
    Ds,
    Wildcard(Choice),
    /// `ds1-5`
    Unit(FacilityKind, u32),
    /// `ds1-[..]`, the text within the brackets
    UnitRange(FacilityKind, &'a [u8]),
    Number(u32),
    Range(&'a [u8]),
    /// Legal, and no part of any name here.
    Other,
}

impl<'a> Term<'a> {
    fn read(text: &'a [u8], ranges: bool) -> Result<Term<'a>, NameError> {
        match text {
            b"*" => return Ok(Term::Wildcard(Choice::AllOf)),
            b"$" => return Ok(Term::Wildcard(Choice::AnyOf)),
            _ => {}
        }
        if text.is_empty() || !text.iter().all(|b| b.is_ascii_graphic() && !matches!(b, b'*' | b'$' | b'@')) {
            return Err(NameError::Malformed);
        }
        if ranges && let Some(open) = text.iter().position(|b| *b == b'[') {
            return Term::read_range(text, open);
        }
        if text.eq_ignore_ascii_case(b"ds") {
            return Ok(Term::Ds);
        }
        Ok(match (read_kind(text), read_number(text)) {
            (Some((kind, rest)), _) => match read_number(rest) {
                Some((unit, [])) => Term::Unit(kind, unit),
                _ => Term::Other,
            },
            (None, Some((number, []))) => Term::Number(number),
            _ => Term::Other,
        })
    }

    /// A term with a `[` at `open`: the range must be well formed and end the term.
    fn read_range(text: &'a [u8], open: usize) -> Result<Term<'a>, NameError> {
        let (prefix, range) = text.split_at_checked(open).ok_or(NameError::Malformed)?;
        let inside = range.strip_prefix(b"[").and_then(|r| r.strip_suffix(b"]")).ok_or(NameError::Malformed)?;
        if range.len() > RANGE_TEXT_MAX {
            return Err(NameError::TooComplex);
        }
        let mut count = 0;
        for interval in inside.split(|b| *b == b',') {
            read_interval(interval).ok_or(NameError::Malformed)?;
            count += 1;
        }
        Ok(match read_kind(prefix) {
            _ if prefix.is_empty() => Term::Range(inside),
            Some((kind, [])) if count <= UNIT_RANGES_MAX || kind == FacilityKind::T1 => Term::UnitRange(kind, inside),
            Some((_, [])) => return Err(NameError::TooComplex),
            _ => Term::Other,
        })
    }

    fn choice(self) -> Choice {
        match self {
            Term::Wildcard(choice) => choice,
            Term::UnitRange(..) | Term::Range(_) => Choice::AllOf,
            Term::Ds | Term::Unit(..) | Term::Number(_) | Term::Other => Choice::Plain,
        }
    }

    /// As the term below `ds`.
    fn units(self) -> Option<Units> {
        match self {
            Term::Wildcard(_) => Some(Units::All),
            Term::Unit(kind, unit) => Some(Units::One(kind, unit)),
            Term::UnitRange(kind, text) => {
                let mut ranges = [(1, 0); UNIT_RANGES_MAX];
                let mut count = 0;
                for interval in text.split(|b| *b == b',') {
                    *ranges.get_mut(count)? = read_interval(interval)?;
                    count += 1;
                }
                Some(Units::Some(kind, count as u8, ranges))
            }
            _ => None,
        }
    }

    /// As the T1s of a T3.
    fn t1s(self) -> u32 {
        match self {
            Term::Wildcard(_) => ALL_T1S,
            Term::Unit(FacilityKind::T1, number) => 1u32.checked_shl(number).unwrap_or(0) & ALL_T1S,
            Term::UnitRange(FacilityKind::T1, text) => mask(text) & ALL_T1S,
            _ => 0,
        }
    }

    /// As channel numbers.
    fn channels(self) -> u32 {
        match self {
            Term::Wildcard(_) => ALL_CHANNELS,
            Term::Number(number) => 1u32.checked_shl(number).unwrap_or(0) & ALL_CHANNELS,
            Term::Range(text) => mask(text) & ALL_CHANNELS,
            _ => 0,
        }
    }
}

/// `5` or `1-12`.
fn read_interval(text: &[u8]) -> Option<(u32, u32)> {
    let (low, rest) = read_number(text)?;
    let Some(rest) = strip_ignoring_case(rest, b"-") else { return rest.is_empty().then_some((low, low)) };
    match read_number(rest)? {
        (high, []) if low <= high => Some((low, high)),
        _ => None,
    }
}

/// The numbers 0..=31 of a range that was found well formed.
fn mask(text: &[u8]) -> u32 {
    let intervals = text.split(|b| *b == b',').filter_map(read_interval);
    let bits = intervals.filter(|&(low, _)| low < 32).map(|(low, high)| (u32::MAX << low) & (u32::MAX >> (31 - high.min(31))));
    bits.fold(0, |mask, bits| mask | bits)
}

#[cfg(test)]
mod tests {
    use super::super::topology::tests::{mixed, name, plan, signalled};
    use super::*;
    use FacilityKind::*;

    fn select(topology: &Topology, local: &str) -> Result<Vec<String>, NameError> {
        let selection = topology.resolve(local.as_bytes(), true)?;
        let (mut cursor, mut names) = (Cursor::default(), Vec::new());
        while let Some(range) = selection.next(topology, &mut cursor, 10) {
            assert!((1..=10).contains(&range.count));
            names.extend(range.iter().map(|e| name(topology, e.0)));
        }
        assert_eq!(names.len() as u32, selection.count(topology), "{local}");
        let contained = topology.endpoints().iter().filter(|e| selection.contains(topology, *e));
        assert_eq!(contained.map(|e| name(topology, e.0)).collect::<Vec<_>>(), names, "{local}");
        Ok(names)
    }

    /// A model of the rules on names as text: each pattern term against each name term.
    fn model(topology: &Topology, local: &str) -> Vec<String> {
        let pattern: Vec<&str> = local.split('/').collect();
        let number_in = |text: &str, number: &str| {
            let value = |s: &str| s.parse::<u32>().unwrap();
            text.split(',').any(|i| {
                let (low, high) = i.split_once('-').unwrap_or((i, i));
                (value(low)..=value(high)).contains(&value(number))
            })
        };
        let term = |pattern: &str, term: &str| match pattern.split_once('[') {
            _ if pattern == "*" || pattern == "$" => true,
            Some((prefix, range)) => term.strip_prefix(prefix).is_some_and(|number| {
                !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) && number_in(range.trim_end_matches(']'), number)
            }),
            None => pattern.eq_ignore_ascii_case(term),
        };
        let matches = |name: &String| {
            let terms: Vec<&str> = name.split('/').collect();
            let deeper = terms.len() > pattern.len() && matches!(pattern[pattern.len() - 1], "*" | "$");
            (terms.len() == pattern.len() || deeper) && pattern.iter().zip(&terms).all(|(p, t)| term(p, t))
        };
        topology.endpoints().iter().map(|e| name(topology, e.0)).filter(matches).collect()
    }

    #[test]
    fn patterns_select_what_the_rules_say() {
        // G-EPN-06, G-EPN-07, G-EPN-13, NAM-03..05: every combination of these terms, up to four.
        let topology = mixed();
        let first = ["*", "$", "ds", "DS", "x"];
        let second = ["*", "ds3-2", "ds1-7", "E1-3", "ds3-[1-9]", "e1-[1,12]", "ds1-3", "[1-2]", "$"];
        let third = ["*", "$", "ds1-5", "ds1-[2,27-28]", "17", "16", "[1-3,15-17,31]", "e1-1", "ds1-29"];
        let fourth = ["*", "$", "24", "[23-24]", "ds1-1", "0"];
        let mut names: Vec<String> = first.iter().map(|a| a.to_string()).collect();
        for a in first {
            for b in second {
                names.push(format!("{a}/{b}"));
                for c in third {
                    names.push(format!("{a}/{b}/{c}"));
                    names.extend(fourth.iter().map(|d| format!("{a}/{b}/{c}/{d}")));
                }
            }
        }
        for local in names {
            let expected = model(&topology, &local);
            let expected = if expected.is_empty() { Err(NameError::Unknown) } else { Ok(expected) };
            assert_eq!(select(&topology, &local), expected, "{local}");
        }
    }

    #[test]
    fn names_that_are_none_are_malformed() {
        // G-EPN-02, G-EPN-03, G-EPN-06
        let topology = mixed();
        let long = format!("ds/{}", "a".repeat(253));
        for local in ["", "/", "/ds", "ds/", "ds//*", "ds/ds1-*", "ds/ds1-*/1", "ds/$1", "ds/a b", "ds/ds1-1\u{e9}", "a@b", &long] {
            assert_eq!(topology.resolve(local.as_bytes(), true), Err(NameError::Malformed), "{local}");
        }
        for local in ["ds/ds1-[", "ds/ds1-[]/1", "ds/[1,]", "ds/[2-1]", "ds/[1-]", "ds/[01]", "ds/[1]x", "ds/[1 ]", "ds/[a]"] {
            assert_eq!(topology.resolve(local.as_bytes(), true), Err(NameError::Malformed), "{local}");
        }
    }

    #[test]
    fn without_ranges_a_bracket_is_an_ordinary_character() {
        // G-EPN-14
        let topology = mixed();
        for local in ["ds/ds1-1/[1-12]", "ds/ds1-[1-2]/*", "ds/ds1-[", "[1]"] {
            assert_eq!(topology.resolve(local.as_bytes(), false), Err(NameError::Unknown), "{local}");
        }
    }

    #[test]
    fn ranges_are_bounded() {
        let topology = mixed();
        let list = |n: usize, separator: &str| vec!["1"; n].join(separator);
        let units = |n: usize| topology.resolve(format!("ds/e1-[{}]/1", list(n, ",")).as_bytes(), true);
        assert!(units(UNIT_RANGES_MAX).is_ok());
        assert_eq!(units(UNIT_RANGES_MAX + 1), Err(NameError::TooComplex));
        let channels = |n: usize| topology.resolve(format!("ds/e1-1/[{}]", list(n, ",")).as_bytes(), true);
        assert!(channels(63).is_ok());
        assert_eq!(channels(64), Err(NameError::TooComplex));
        // Many intervals over the T1s of a T3 are fine: they are a mask.
        assert!(topology.resolve(format!("ds/ds3-2/ds1-[{}]/1", list(20, ",")).as_bytes(), true).is_ok());
    }

    #[test]
    fn many_terms_cost_nothing() {
        let topology = mixed();
        let hostile = vec!["*"; 127].join("/");
        assert_eq!(topology.resolve(hostile.as_bytes(), true), Err(NameError::Unknown));
        assert_eq!(topology.resolve(vec!["*"; 200].join("/").as_bytes(), true), Err(NameError::Malformed));
    }

    #[test]
    fn runs_join_over_spans_and_resume_anywhere() {
        let topology = Topology::new(&[plan(T3, 1), signalled(T1, 1)]).unwrap();
        let all = topology.select_all();
        let mut cursor = Cursor::default();
        assert_eq!(all.next(&topology, &mut cursor, 100), Some(EndpointRange { first: 0, count: 100 }));
        assert_eq!(all.next(&topology, &mut cursor, 1000), Some(EndpointRange { first: 100, count: 595 }));
        assert_eq!(all.next(&topology, &mut cursor, 1000), None);
        assert_eq!(all.next(&topology, &mut cursor, 0), None);
        assert_eq!(all, topology.resolve(b"*", false).unwrap());
    }

    #[test]
    fn a_plain_name_is_single() {
        let topology = mixed();
        for endpoint in topology.endpoints().iter() {
            let selection = topology.resolve(name(&topology, endpoint.0).as_bytes(), false).unwrap();
            assert_eq!(selection.single(&topology), Some(endpoint));
            assert_eq!((selection.count(&topology), selection.all_of(), selection.any_of()), (1, false, false));
        }
        assert_eq!(topology.resolve(b"ds/ds1-7/*", false).unwrap().single(&topology), None);
        assert!(topology.resolve(b"ds/*/$", false).unwrap().any_of());
    }

    #[test]
    fn any_of_chooses_left_to_right() {
        // G-EPN-08: two T1s with channels, like {a, b} x {1, 2}.
        let topology = Topology::new(&[plan(T1, 1), plan(T1, 2), plan(T3, 1)]).unwrap();
        let choose = |local: &str, eligible: &dyn Fn(&str) -> bool| {
            let mut taken = Vec::new();
            let selection = topology.resolve(local.as_bytes(), true).unwrap();
            let count = selection.choose(&topology, |e| eligible(&name(&topology, e.0)), |e| taken.push(name(&topology, e.0)));
            assert_eq!(count as usize, taken.len());
            taken
        };
        assert_eq!(choose("ds/ds1-[1-2]/$", &|_| true), ["ds/ds1-1/1", "ds/ds1-2/1"]);
        assert_eq!(choose("ds/$/[1-2]", &|n| !n.starts_with("ds/ds1-1")), ["ds/ds1-2/1", "ds/ds1-2/2"]);
        assert_eq!(choose("$", &|_| true), ["ds/ds3-1/ds1-1/1"]);
        assert_eq!(choose("ds/ds3-1/$", &|n| n.ends_with("ds1-3/7")), ["ds/ds3-1/ds1-3/7"]);
        assert_eq!(choose("ds/ds3-1/*/$", &|n| n.contains("ds1-3/") || n.contains("ds1-9/")).len(), 2);
        assert_eq!(choose("ds/ds3-1/$/*", &|n| n.contains("ds1-3/") || n.contains("ds1-9/")).len(), 24);
        assert_eq!(choose("$", &|_| false).len(), 0);
        assert_eq!(choose("ds/*/*", &|_| true).len() as u32, topology.len());
    }
}
