//! The topology: which facilities the gateway has, the endpoints they carry, and the names of both.
//!
//! Owns the numbering. Facilities are sorted by kind (T3, T1, E1) and unit; endpoints are numbered in that order, so that the
//! timeslots of a span are consecutive and so are the spans of a T3. Nothing here changes after construction (a changed span plan
//! needs a restart); service state lives elsewhere.
//!
//! Names (RFC 3435 2.1.2 and Appendix E.2, G-EPN-01..12): `ds/ds3-<n>/ds1-<1..28>/<1..24>`, `ds/ds1-<n>/<1..24>`,
//! `ds/e1-<n>/<1..31>`, compared without regard to case, numbers without leading zeros. A span with common-channel signalling has
//! no endpoint on channel 24 (T1) or 16 (E1) (HIE-05). Names with wildcards are read in [`super::selection`].
//!
//! Cost: a lookup reads the name once and does one comparison per level where units are numbered without gaps, a binary search
//! otherwise; [`Topology::span_of`] is one load from a table of 2 bytes for each 16 endpoints.

use super::reader::{Prefix, Reader};
use super::text::Writer;
use crate::proto::base::{EndpointIndex, EndpointRange};

/// The T1s of a T3.
pub const T1S_PER_T3: usize = 28;
/// The largest unit number of a facility.
pub const UNIT_MAX: u32 = 99_999;
/// The most spans a topology may have.
pub const SPANS_MAX: usize = u16::MAX as usize;
/// The longest name of an endpoint or facility, in bytes (`ds/ds3-99999/ds1-28/24` has 22); buffers of this size always suffice.
pub const NAME_MAX: usize = 64;

/// Endpoints per entry of the table that finds a span; fewer than a span has (23 at least), so that a chunk holds parts of two
/// spans at most.
const CHUNK: usize = 16;

/// What a facility is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FacilityKind {
    /// A channelised T3: 28 T1s.
    T3,
    /// A T1: 24 channels.
    T1,
    /// An E1: 31 channels.
    E1,
}

/// One facility of the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FacilityPlan {
    /// What it is.
    pub kind: FacilityKind,
    /// Its number in names, 0..=[`UNIT_MAX`].
    pub unit: u32,
    /// Whether a channel of each span carries common-channel signalling: 24 of a T1, 16 of an E1.
    pub common_channel: bool,
}

/// A T3: its place among the T3s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct T3Index(pub u16);

/// A T1 or E1: its place among all spans.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SpanIndex(pub u16);

/// A node of the name hierarchy above the endpoints.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Facility {
    /// A T3.
    T3(T3Index),
    /// A T1 or E1, alone or within a T3.
    Span(SpanIndex),
}

/// One span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Its endpoints.
    pub endpoints: EndpointRange,
    /// T1 or E1.
    pub kind: FacilityKind,
    /// The number in its own term of the name: 1..=28 within a T3, the unit when it stands alone.
    pub number: u32,
    /// The T3 that carries it.
    pub t3: Option<T3Index>,
    /// The channels that are endpoints: bit `n` stands for channel `n`.
    pub channels: u32,
}

impl Span {
    /// The channel number of the endpoint at `position` (0-based) of this span.
    pub fn channel_at(&self, position: u32) -> u32 {
        position + 1 + u32::from(self.lacks_16() && position >= 15)
    }

    /// The positions of the endpoints on these `channels`: bit `n` of the result stands for the span's endpoint number `n`.
    pub fn positions(&self, channels: u32) -> u32 {
        let channels = channels & self.channels;
        if self.lacks_16() {
            let below = channels & 0xffff;
            (below | (channels >> 17 << 16)) >> 1
        } else {
            channels >> 1
        }
    }

    /// The channels of the endpoints at these `positions`: what [`Span::positions`] undoes.
    pub fn channels_at(&self, positions: u32) -> u32 {
        if self.lacks_16() { (positions & 0x7fff) << 1 | positions >> 15 << 17 } else { positions << 1 }
    }

    /// Whether this is an E1 whose channel 16 is signalling: the only gap there is between channel numbers.
    fn lacks_16(&self) -> bool {
        self.kind == FacilityKind::E1 && self.channels >> 16 & 1 == 0
    }

    /// The endpoint on `channel`.
    fn endpoint_on(&self, channel: u32) -> Option<EndpointIndex> {
        let positions = self.positions(1u32.checked_shl(channel)?);
        (positions != 0).then(|| EndpointIndex(self.endpoints.first + positions.trailing_zeros()))
    }
}

/// Every channel number a span can have, 1..=31.
pub const ALL_CHANNELS: u32 = u32::MAX - 1;

/// Why a plan is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanError {
    /// No facility at all.
    Empty,
    /// Two facilities have the same kind and unit.
    Duplicate(FacilityPlan),
    /// A unit above [`UNIT_MAX`].
    UnitTooLarge(FacilityPlan),
    /// More than [`SPANS_MAX`] spans.
    TooManySpans,
}

/// One T3.
#[derive(Clone, Copy, Debug)]
struct T3 {
    unit: u32,
    endpoints: EndpointRange,
    spans: SpanBounds,
}

/// The facilities, spans and endpoints of a gateway and their names.
#[derive(Clone, Debug)]
pub struct Topology {
    t3s: Box<[T3]>,
    /// Spans of T3s first (28 each), then single T1s by unit, then E1s by unit.
    spans: Box<[Span]>,
    t1s: SpanBounds,
    e1s: SpanBounds,
    /// The span of the first endpoint of each chunk.
    chunks: Box<[u16]>,
    endpoints: u32,
}

/// Consecutive spans, `from..to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SpanBounds {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Topology {
    /// Numbers the endpoints of `plan`, whose order does not matter.
    ///
    /// # Errors
    /// An empty plan, a facility named twice, a unit above [`UNIT_MAX`], more than [`SPANS_MAX`] spans.
    pub fn new(plan: &[FacilityPlan]) -> Result<Topology, PlanError> {
        Topology::shaped(plan, T1S_PER_T3, 24)
    }

    /// A topology whose T3s have `t1s` T1s and whose T1s have `channels` channels.
    pub(crate) fn shaped(plan: &[FacilityPlan], t1s: usize, channels: u32) -> Result<Topology, PlanError> {
        let plan = sorted(plan)?;
        let mut builder = Builder { channels, ..Builder::default() };
        let mut t3s = Vec::new();
        for facility in plan.iter().filter(|f| f.kind == FacilityKind::T3) {
            let first = builder.endpoints;
            let t3 = T3Index(t3s.len() as u16);
            (1..=t1s as u32).for_each(|n| builder.span(FacilityKind::T1, n, Some(t3), facility.common_channel));
            let spans = SpanBounds { from: (builder.spans.len() - t1s) as u32, to: builder.spans.len() as u32 };
            t3s.push(T3 { unit: facility.unit, endpoints: EndpointRange { first, count: builder.endpoints - first }, spans });
        }
        let t1s = builder.alone(&plan, FacilityKind::T1);
        let e1s = builder.alone(&plan, FacilityKind::E1);
        Ok(Topology { t3s: t3s.into(), chunks: builder.chunks(), endpoints: builder.endpoints, spans: builder.spans.into(), t1s, e1s })
    }

    /// How many endpoints there are; their indices are `0..len`.
    pub fn len(&self) -> u32 {
        self.endpoints
    }

    /// Whether there are none; a topology always has some.
    pub fn is_empty(&self) -> bool {
        self.endpoints == 0
    }

    /// All endpoints.
    pub fn endpoints(&self) -> EndpointRange {
        EndpointRange { first: 0, count: self.endpoints }
    }

    /// All spans in the order of their endpoints; a [`SpanIndex`] is a place in it.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// One span.
    pub fn span(&self, span: SpanIndex) -> Option<&Span> {
        self.spans.get(usize::from(span.0))
    }

    /// How many T3s there are; a [`T3Index`] counts from 0 by rising unit.
    pub fn t3_count(&self) -> usize {
        self.t3s.len()
    }

    /// The number of a T3 in names.
    pub fn t3_unit(&self, t3: T3Index) -> Option<u32> {
        self.t3s.get(usize::from(t3.0)).map(|t3| t3.unit)
    }

    /// The spans of a T3, as a range of [`SpanIndex`] values.
    pub fn t3_spans(&self, t3: T3Index) -> std::ops::Range<u16> {
        self.t3s.get(usize::from(t3.0)).map_or(0..0, |t3| t3.spans.from as u16..t3.spans.to as u16)
    }

    /// The endpoints within T3s, which are the first.
    pub fn endpoints_in_t3s(&self) -> EndpointRange {
        EndpointRange { first: 0, count: self.t3s.last().map_or(0, |t3| t3.endpoints.first + t3.endpoints.count) }
    }

    /// Whether a single T3, T1 or E1 is the whole gateway.
    pub fn has_one_facility(&self) -> bool {
        let alone = self.spans.len() as u32 - self.t1s.from;
        self.t3s.len() + alone as usize == 1
    }

    /// Every facility: the T3s, then the spans, those within T3s included.
    pub fn facilities(&self) -> impl Iterator<Item = Facility> + use<> {
        let t3s = (0..self.t3s.len() as u16).map(|n| Facility::T3(T3Index(n)));
        t3s.chain((0..self.spans.len() as u16).map(|n| Facility::Span(SpanIndex(n))))
    }

    /// The endpoints a facility carries; none when there is no such facility.
    pub fn endpoints_of(&self, facility: Facility) -> EndpointRange {
        match facility {
            Facility::T3(t3) => self.t3s.get(usize::from(t3.0)).map(|t3| t3.endpoints),
            Facility::Span(span) => self.span(span).map(|span| span.endpoints),
        }
        .unwrap_or_default()
    }

    /// The span an endpoint belongs to; `None` when there is no such endpoint.
    #[inline]
    pub fn span_of(&self, endpoint: EndpointIndex) -> Option<SpanIndex> {
        let mut span = *self.chunks.get(endpoint.0 as usize / CHUNK)?;
        // At most one step: a chunk holds the end of one span and the start of the next.
        while !self.spans.get(usize::from(span))?.endpoints.contains(endpoint) {
            span += 1;
        }
        Some(SpanIndex(span))
    }

    /// The channel number an endpoint has within its span.
    pub fn channel_of(&self, endpoint: EndpointIndex) -> Option<u32> {
        let span = self.span(self.span_of(endpoint)?)?;
        Some(span.channel_at(endpoint.0 - span.endpoints.first))
    }

    /// The endpoint with this local name; `None` for any other name, also for names of facilities and names with wildcards.
    #[inline]
    pub fn lookup(&self, local: &[u8]) -> Option<EndpointIndex> {
        let mut reader = Reader::new(local);
        let Facility::Span(span) = self.read_facility(&mut reader)? else { return None };
        let channel = if reader.skip(SLASH) { reader.number()? } else { return None };
        if !reader.is_at_end() {
            return None;
        }
        self.span(span)?.endpoint_on(channel)
    }

    /// The facility with this local name: `ds/ds3-1`, `ds/ds3-1/ds1-5`, `ds/ds1-1`, `ds/e1-1`.
    pub fn lookup_facility(&self, local: &[u8]) -> Option<Facility> {
        let mut reader = Reader::new(local);
        self.read_facility(&mut reader).filter(|_| reader.is_at_end())
    }

    /// Writes an endpoint's local name and gives its length; 0 when there is no such endpoint or `out` is too small
    /// ([`NAME_MAX`] bytes suffice).
    pub fn write_name(&self, endpoint: EndpointIndex, out: &mut [u8]) -> usize {
        let Some(span) = self.span_of(endpoint) else { return 0 };
        let Some(channel) = self.channel_of(endpoint) else { return 0 };
        let mut writer = Writer::new(out);
        self.put_facility(Facility::Span(span), &mut writer);
        writer.put(b"/").number(channel).finish()
    }

    /// The length of the longest endpoint name.
    pub fn longest_name(&self) -> usize {
        let last = |span: &Span| EndpointIndex((span.endpoints.first + span.endpoints.count).saturating_sub(1));
        self.spans.iter().map(|span| self.write_name(last(span), &mut [0; NAME_MAX])).max().unwrap_or(0)
    }

    /// Writes a facility's local name and gives its length; 0 when there is no such facility or `out` is too small.
    pub fn write_facility_name(&self, facility: Facility, out: &mut [u8]) -> usize {
        let mut writer = Writer::new(out);
        self.put_facility(facility, &mut writer);
        writer.finish()
    }

    /// Appends a facility's local name; nothing when there is no such facility.
    pub(crate) fn put_facility(&self, facility: Facility, writer: &mut Writer) {
        match facility {
            Facility::T3(t3) => {
                if let Some(unit) = self.t3_unit(t3) {
                    writer.put(b"ds/ds3-").number(unit);
                }
            }
            Facility::Span(index) => {
                let Some(span) = self.span(index) else { return };
                match (span.t3, span.kind) {
                    (Some(t3), _) => {
                        self.put_facility(Facility::T3(t3), writer);
                        writer.put(b"/ds1-");
                    }
                    (None, FacilityKind::E1) => drop(writer.put(b"ds/e1-")),
                    (None, _) => drop(writer.put(b"ds/ds1-")),
                }
                writer.number(span.number);
            }
        }
    }

    /// The spans that stand alone of one kind, or all spans within T3s.
    pub(crate) fn bounds_of(&self, kind: FacilityKind) -> SpanBounds {
        match kind {
            FacilityKind::T3 => SpanBounds { from: 0, to: self.t1s.from },
            FacilityKind::T1 => self.t1s,
            FacilityKind::E1 => self.e1s,
        }
    }

    /// The spans of one kind that stand alone, as a range of [`SpanIndex`] values.
    pub(crate) fn alone(&self, kind: FacilityKind) -> std::ops::Range<u16> {
        let bounds = self.bounds_of(kind);
        bounds.from as u16..bounds.to as u16
    }

    /// The facility directly below `ds` with this kind and number.
    pub(crate) fn unit(&self, kind: FacilityKind, unit: u32) -> Option<Facility> {
        if kind == FacilityKind::T3 {
            return find(&self.t3s, unit, |t3| t3.unit).map(|n| Facility::T3(T3Index(n as u16)));
        }
        let bounds = self.bounds_of(kind);
        let spans = self.spans.get(bounds.from as usize..bounds.to as usize)?;
        find(spans, unit, |span| span.number).map(|n| Facility::Span(SpanIndex((bounds.from as usize + n) as u16)))
    }

    /// Reads the longest facility name that comes next.
    #[inline]
    fn read_facility(&self, reader: &mut Reader) -> Option<Facility> {
        let kind = if reader.skip(DS_DS3) {
            FacilityKind::T3
        } else if reader.skip(DS_DS1) {
            FacilityKind::T1
        } else if reader.skip(DS_E1) {
            FacilityKind::E1
        } else {
            return None;
        };
        let facility = self.unit(kind, reader.number()?)?;
        match facility {
            Facility::T3(t3) if reader.skip(SLASH_DS1) => {
                let place = reader.number()?.checked_sub(1)? as usize;
                self.t3_spans(t3).nth(place).map(|span| Facility::Span(SpanIndex(span)))
            }
            _ => Some(facility),
        }
    }
}

const DS_DS3: Prefix = Prefix::new(b"ds/ds3-");
const DS_DS1: Prefix = Prefix::new(b"ds/ds1-");
const DS_E1: Prefix = Prefix::new(b"ds/e1-");
const SLASH_DS1: Prefix = Prefix::new(b"/ds1-");
const SLASH: Prefix = Prefix::new(b"/");

/// Reads `ds3-`, `ds1-` or `e1-`.
#[inline]
pub(crate) fn read_kind(term: &[u8]) -> Option<(FacilityKind, &[u8])> {
    if let Some(rest) = strip_ignoring_case(term, b"ds3-") {
        return Some((FacilityKind::T3, rest));
    }
    if let Some(rest) = strip_ignoring_case(term, b"ds1-") {
        return Some((FacilityKind::T1, rest));
    }
    strip_ignoring_case(term, b"e1-").map(|rest| (FacilityKind::E1, rest))
}

/// Reads a decimal number of at most 5 digits without leading zeros (G-EPN-12).
#[inline]
pub(crate) fn read_number(text: &[u8]) -> Option<(u32, &[u8])> {
    let digits = text.iter().take(6).take_while(|b| b.is_ascii_digit()).count();
    let (number, rest) = text.split_at_checked(digits)?;
    if digits == 0 || digits > 5 || (digits > 1 && number.first() == Some(&b'0')) {
        return None;
    }
    Some((number.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0')), rest))
}

/// What follows `prefix` (given in lower case).
#[inline]
pub(crate) fn strip_ignoring_case<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// The place of `unit` in a list sorted by unit: a guess that is right without gaps, then a binary search.
#[inline]
fn find<T>(list: &[T], unit: u32, unit_of: impl Fn(&T) -> u32) -> Option<usize> {
    let guess = unit.checked_sub(unit_of(list.first()?))? as usize;
    match list.get(guess) {
        Some(item) if unit_of(item) == unit => Some(guess),
        _ => list.binary_search_by_key(&unit, unit_of).ok(),
    }
}

/// The plan in the order of the numbering, checked.
fn sorted(plan: &[FacilityPlan]) -> Result<Vec<FacilityPlan>, PlanError> {
    let mut sorted = plan.to_vec();
    sorted.sort_by_key(|f| (f.kind, f.unit));
    if let Some(facility) = sorted.iter().find(|f| f.unit > UNIT_MAX) {
        return Err(PlanError::UnitTooLarge(*facility));
    }
    if let Some(pair) = sorted.windows(2).find(|pair| (pair[0].kind, pair[0].unit) == (pair[1].kind, pair[1].unit)) {
        return Err(PlanError::Duplicate(pair[0]));
    }
    let spans: usize = sorted.iter().map(|f| if f.kind == FacilityKind::T3 { T1S_PER_T3 } else { 1 }).sum();
    match spans {
        0 => Err(PlanError::Empty),
        1..=SPANS_MAX => Ok(sorted),
        _ => Err(PlanError::TooManySpans),
    }
}

/// Spans as they are numbered.
#[derive(Default)]
struct Builder {
    spans: Vec<Span>,
    /// Channels of a T1.
    channels: u32,
    endpoints: u32,
}

impl Builder {
    fn span(&mut self, kind: FacilityKind, number: u32, t3: Option<T3Index>, common_channel: bool) {
        let channels = match (kind, common_channel) {
            (FacilityKind::E1, false) => ALL_CHANNELS,
            (FacilityKind::E1, true) => ALL_CHANNELS & !(1 << 16),
            (_, signalling) => (1 << (self.channels + u32::from(!signalling))) - 2,
        };
        let endpoints = EndpointRange { first: self.endpoints, count: channels.count_ones() };
        self.endpoints += endpoints.count;
        self.spans.push(Span { endpoints, kind, number, t3, channels });
    }

    fn alone(&mut self, plan: &[FacilityPlan], kind: FacilityKind) -> SpanBounds {
        let from = self.spans.len() as u32;
        plan.iter().filter(|f| f.kind == kind).for_each(|f| self.span(kind, f.unit, None, f.common_channel));
        SpanBounds { from, to: self.spans.len() as u32 }
    }

    fn chunks(&self) -> Box<[u16]> {
        let mut chunks = Vec::with_capacity(self.endpoints as usize / CHUNK + 1);
        for (index, span) in self.spans.iter().enumerate() {
            let end = span.endpoints.first + span.endpoints.count;
            while chunks.len() * CHUNK < end as usize {
                chunks.push(index as u16);
            }
        }
        chunks.into()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn plan(kind: FacilityKind, unit: u32) -> FacilityPlan {
        FacilityPlan { kind, unit, common_channel: false }
    }

    pub(crate) fn signalled(kind: FacilityKind, unit: u32) -> FacilityPlan {
        FacilityPlan { kind, unit, common_channel: true }
    }

    /// Every kind, with and without signalling channels, units with gaps.
    pub(crate) fn mixed() -> Topology {
        use FacilityKind::*;
        Topology::new(&[
            signalled(E1, 3),
            plan(T1, 7),
            plan(T3, 2),
            signalled(T1, 1),
            plan(E1, 1),
            signalled(T3, 9),
            plan(T1, 2),
            plan(E1, 12),
        ])
        .unwrap()
    }

    pub(crate) fn name(topology: &Topology, endpoint: u32) -> String {
        let mut out = [0; NAME_MAX];
        let length = topology.write_name(EndpointIndex(endpoint), &mut out);
        String::from_utf8(out[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_t3_has_672_endpoints() {
        // HIE-01
        let topology = Topology::new(&[plan(FacilityKind::T3, 1)]).unwrap();
        assert_eq!((topology.len(), topology.spans().len()), (672, 28));
        assert_eq!(name(&topology, 0), "ds/ds3-1/ds1-1/1");
        assert_eq!(name(&topology, 671), "ds/ds3-1/ds1-28/24");
    }

    #[test]
    fn a_signalling_channel_is_no_endpoint() {
        // HIE-05
        let topology = Topology::new(&[signalled(FacilityKind::T1, 1), signalled(FacilityKind::E1, 1)]).unwrap();
        assert_eq!(topology.len(), 23 + 30);
        assert_eq!(topology.lookup(b"ds/ds1-1/24"), None);
        assert_eq!(topology.lookup(b"ds/ds1-1/23"), Some(EndpointIndex(22)));
        assert_eq!(topology.lookup(b"ds/e1-1/15"), Some(EndpointIndex(23 + 14)));
        assert_eq!(topology.lookup(b"ds/e1-1/16"), None);
        assert_eq!(topology.lookup(b"ds/e1-1/17"), Some(EndpointIndex(23 + 15)));
        assert_eq!(topology.lookup(b"ds/e1-1/31"), Some(EndpointIndex(23 + 29)));
    }

    #[test]
    fn every_name_leads_back_to_its_endpoint() {
        let topology = mixed();
        let mut seen = std::collections::HashSet::new();
        for endpoint in topology.endpoints().iter() {
            let written = name(&topology, endpoint.0);
            assert!(seen.insert(written.clone()), "{written} twice");
            assert_eq!(topology.lookup(written.as_bytes()), Some(endpoint), "{written}");
            // NAM-02, G-EPN-01
            assert_eq!(topology.lookup(written.to_ascii_uppercase().as_bytes()), Some(endpoint), "{written}");
            let span = topology.span(topology.span_of(endpoint).unwrap()).unwrap();
            assert!(span.endpoints.contains(endpoint));
        }
        assert_eq!(topology.span_of(EndpointIndex(topology.len())), None);
        assert_eq!(name(&topology, topology.len()), "");
    }

    #[test]
    fn spans_and_facilities_are_consecutive() {
        let topology = mixed();
        let mut next = 0;
        for span in topology.spans() {
            assert_eq!(span.endpoints.first, next);
            assert_eq!(span.positions(span.channels), ((1u64 << span.endpoints.count) - 1) as u32);
            assert_eq!(span.channels_at(span.positions(span.channels)), span.channels);
            assert_eq!(span.channels_at(0b101 << 14), 1 << span.channel_at(14) | 1 << span.channel_at(16));
            next += span.endpoints.count;
        }
        assert_eq!(next, topology.len());
        for facility in topology.facilities() {
            let mut out = [0; NAME_MAX];
            let length = topology.write_facility_name(facility, &mut out);
            assert_eq!(topology.lookup_facility(&out[..length]), Some(facility));
            assert_eq!(topology.lookup(&out[..length]), None);
        }
        let t3 = topology.lookup_facility(b"DS/ds3-9").unwrap();
        assert_eq!(topology.endpoints_of(t3), EndpointRange { first: 672, count: 28 * 23 });
    }

    #[test]
    fn other_names_are_unknown() {
        // NAM-01, G-EPN-02, G-EPN-12
        let topology = mixed();
        for local in [
            "",
            "ds",
            "ds/",
            "/ds/ds1-1/1",
            "ds//ds1-1/1",
            "ds/ds1-1/01",
            "ds/ds1-01/1",
            "ds/ds3-2/ds1-05/1",
            "ds/ds3-2/ds1-0/1",
            "ds/ds3-2/ds1-29/1",
            "ds/ds1-1/0",
            "ds/ds1-1/25",
            "ds/ds1-1/1/",
            "ds/ds1-1/1x",
            "ds/ds1-3/1",
            "ds/ds1-0/1",
            "ds/e1-2/1",
            "ds/e1-1/32",
            "ds/e1-1/999999999999",
            "ds/ds1-99999999999/1",
            "ds/ds3-2/1",
            "ds/ds1-1/*",
            "ds/ds1-*/1",
            "dt/ds1-1/1",
            "ds/ds3-2/e1-1/1",
            "ds/ds1-1/ds1-1/1",
            "ds/ds1-1/4294967297",
        ] {
            assert_eq!(topology.lookup(local.as_bytes()), None, "{local}");
        }
    }

    #[test]
    fn plans_are_checked() {
        assert_eq!(Topology::new(&[]).unwrap_err(), PlanError::Empty);
        let t1 = plan(FacilityKind::T1, 4);
        assert_eq!(Topology::new(&[t1, t1]).unwrap_err(), PlanError::Duplicate(t1));
        let far = plan(FacilityKind::T1, UNIT_MAX + 1);
        assert_eq!(Topology::new(&[far]).unwrap_err(), PlanError::UnitTooLarge(far));
        let many: Vec<_> = (1..2400).map(|unit| plan(FacilityKind::T3, unit)).collect();
        assert_eq!(Topology::new(&many).unwrap_err(), PlanError::TooManySpans);
    }
}
