//! A name as we write it: one endpoint, or several by wildcards.
//!
//! One `*` for each level from the right, down to the channels (`ds/ds3-1/*/*`); a bare `*` only for the whole gateway; a range
//! only in the last term that is not `*`. Such a name means the same to an agent that lets a trailing `*` cover deeper levels and
//! to one that does not.

use crate::proto::base::EndpointIndex;
use crate::proto::trunk::text::Writer;
use crate::proto::trunk::{Facility, FacilityKind, Selection, SpanIndex, T3Index, Topology};

/// The longest name a [`Pattern`] writes, in bytes (Appendix E.5 suggests this bound).
pub const PATTERN_NAME_MAX: usize = 128;
/// The most intervals of a range over units: what keeps the longest name (7 times `99998-99999`) within [`PATTERN_NAME_MAX`].
pub const RUNS_MAX: usize = 7;

/// Consecutive units, by their place among the facilities of their kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Run {
    pub(crate) first: u16,
    pub(crate) last: u16,
}

/// A name that stands for one or more endpoints, small enough to copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// `*`: every endpoint.
    Gateway,
    /// `ds/*/*/*`: every endpoint within a T3.
    T3s,
    /// `ds/*/*`: every endpoint of a span that stands alone; written only where there is no T3.
    Spans,
    /// `ds/ds3-1/*/*`, `ds/ds1-[1-3,7]/*`: units of one kind.
    Units {
        /// Their kind.
        kind: FacilityKind,
        /// How many of `runs` count.
        count: u8,
        /// Which units, ascending.
        runs: [Run; RUNS_MAX],
    },
    /// `ds/ds3-1/ds1-5/*`, `ds/ds3-1/ds1-[5-7]/*`: T1s of one T3.
    T1s {
        /// The T3.
        t3: T3Index,
        /// Which: bit `n` is `ds1-<n>`.
        t1s: u32,
    },
    /// `ds/ds1-1/7`, `ds/ds3-1/ds1-5/[1-12]`: channels of one span.
    Channels {
        /// The span.
        span: SpanIndex,
        /// Which: bit `n` is channel `n`.
        channels: u32,
    },
}

impl Pattern {
    /// The name of one endpoint.
    pub fn endpoint(topology: &Topology, endpoint: EndpointIndex) -> Option<Pattern> {
        let channels = 1 << topology.channel_of(endpoint)?;
        Some(Pattern::Channels { span: topology.span_of(endpoint)?, channels })
    }

    /// Whether the name contains a range.
    pub fn has_range(&self) -> bool {
        match self {
            Pattern::Gateway | Pattern::T3s | Pattern::Spans => false,
            Pattern::Units { count, runs, .. } => *count > 1 || runs[0].first != runs[0].last,
            Pattern::T1s { t1s: bits, .. } | Pattern::Channels { channels: bits, .. } => bits.count_ones() > 1,
        }
    }

    /// The endpoints it stands for, to iterate over, count and ask.
    pub fn selection(&self, topology: &Topology) -> Selection {
        match *self {
            Pattern::Gateway => topology.select_all(),
            Pattern::T3s => topology.select_units(FacilityKind::T3, &[(0, u32::MAX)]),
            Pattern::Spans => topology.select_all(),
            Pattern::Units { kind, count, runs } => {
                let mut units = [(1, 0); RUNS_MAX];
                for (unit, run) in units.iter_mut().zip(runs).take(usize::from(count)) {
                    let number = |place| unit_number(topology, kind, place).unwrap_or(u32::MAX);
                    *unit = (number(run.first), number(run.last));
                }
                topology.select_units(kind, &units)
            }
            Pattern::T1s { t3, t1s } => topology.select_t1s(t3, t1s),
            Pattern::Channels { span, channels } => topology.select_channels(span, channels),
        }
    }

    /// Whether it stands for `endpoint`.
    pub fn contains(&self, topology: &Topology, endpoint: EndpointIndex) -> bool {
        self.selection(topology).contains(topology, endpoint)
    }

    /// Writes the local name and gives its length, at most [`PATTERN_NAME_MAX`]; 0 when `out` is too small or the pattern is of
    /// another topology.
    pub fn write_name(&self, topology: &Topology, out: &mut [u8]) -> usize {
        let mut writer = Writer::new(out);
        match *self {
            Pattern::Gateway => drop(writer.put(b"*")),
            Pattern::T3s => drop(writer.put(b"ds/*/*/*")),
            Pattern::Spans => drop(writer.put(b"ds/*/*")),
            Pattern::Units { kind, count, runs } => {
                let (prefix, stars): (&[u8], &[u8]) = match kind {
                    FacilityKind::T3 => (b"ds/ds3-", b"/*/*"),
                    FacilityKind::T1 => (b"ds/ds1-", b"/*"),
                    FacilityKind::E1 => (b"ds/e1-", b"/*"),
                };
                let runs = runs.iter().take(usize::from(count));
                let numbers = runs.map_while(|run| Some((unit_number(topology, kind, run.first)?, unit_number(topology, kind, run.last)?)));
                put_range(writer.put(prefix), numbers);
                writer.put(stars);
            }
            Pattern::T1s { t3, t1s } => {
                topology.put_facility(Facility::T3(t3), &mut writer);
                put_range(writer.put(b"/ds1-"), intervals(t1s));
                writer.put(b"/*");
            }
            Pattern::Channels { span, channels } => {
                topology.put_facility(Facility::Span(span), &mut writer);
                put_range(writer.put(b"/"), intervals(channels));
            }
        }
        writer.finish()
    }
}

/// The unit number of the facility at `place` among those of its kind.
pub(crate) fn unit_number(topology: &Topology, kind: FacilityKind, place: u16) -> Option<u32> {
    if kind == FacilityKind::T3 {
        return topology.t3_unit(T3Index(place));
    }
    let span = topology.alone(kind).start.checked_add(place)?;
    topology.span(SpanIndex(span)).map(|span| span.number)
}

/// The runs of ones in a mask, as pairs of the first and last bit number.
fn intervals(mut bits: u32) -> impl Iterator<Item = (u32, u32)> {
    std::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let first = bits.trailing_zeros();
        let last = first + (bits >> first).trailing_ones() - 1;
        bits &= u32::MAX.checked_shl(last + 1).unwrap_or(0);
        Some((first, last))
    })
}

/// Writes one number as it is and anything else as a range.
fn put_range(writer: &mut Writer, numbers: impl Iterator<Item = (u32, u32)>) {
    let mut numbers = numbers.peekable();
    let Some((first, last)) = numbers.next() else { return };
    if first == last && numbers.peek().is_none() {
        writer.number(first);
        return;
    }
    writer.put(b"[");
    for (n, (first, last)) in std::iter::once((first, last)).chain(numbers).enumerate() {
        writer.put(if n == 0 { b"" } else { b"," }).number(first);
        if last != first {
            writer.put(b"-").number(last);
        }
    }
    writer.put(b"]");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::trunk::topology::tests::mixed;
    use crate::proto::trunk::topology::{ALL_CHANNELS, UNIT_MAX};
    use crate::proto::trunk::{FacilityPlan, selection::Cursor};

    fn text(topology: &Topology, pattern: Pattern) -> String {
        let mut out = [0; PATTERN_NAME_MAX];
        let length = pattern.write_name(topology, &mut out);
        String::from_utf8(out[..length].to_vec()).unwrap()
    }

    fn units(kind: FacilityKind, list: &[(u16, u16)]) -> Pattern {
        let mut runs = [Run::default(); RUNS_MAX];
        list.iter().zip(&mut runs).for_each(|(&(first, last), run)| *run = Run { first, last });
        Pattern::Units { kind, count: list.len() as u8, runs }
    }

    #[test]
    fn names_are_written_as_they_are_read() {
        let topology = mixed();
        let span = |name: &str| match topology.lookup_facility(name.as_bytes()) {
            Some(Facility::Span(span)) => span,
            _ => panic!("{name}"),
        };
        let t3 = T3Index(1);
        for (pattern, expected) in [
            (Pattern::Gateway, "*"),
            (Pattern::T3s, "ds/*/*/*"),
            (units(FacilityKind::T3, &[(1, 1)]), "ds/ds3-9/*/*"),
            (units(FacilityKind::T1, &[(0, 1)]), "ds/ds1-[1-2]/*"),
            (units(FacilityKind::E1, &[(0, 0), (2, 2)]), "ds/e1-[1,12]/*"),
            (Pattern::T1s { t3, t1s: 1 << 5 }, "ds/ds3-9/ds1-5/*"),
            (Pattern::T1s { t3, t1s: 0b1011 << 25 }, "ds/ds3-9/ds1-[25-26,28]/*"),
            (Pattern::Channels { span: span("ds/ds1-7"), channels: 1 << 24 }, "ds/ds1-7/24"),
            (Pattern::Channels { span: span("ds/e1-1"), channels: ALL_CHANNELS & !(1 << 2) }, "ds/e1-1/[1,3-31]"),
            (Pattern::Channels { span: span("ds/ds3-2/ds1-28"), channels: 0x1ffe }, "ds/ds3-2/ds1-28/[1-12]"),
        ] {
            assert_eq!(text(&topology, pattern), expected);
            assert_eq!(pattern.has_range(), expected.contains('['));
            let (read, meant) = (topology.resolve(expected.as_bytes(), true).unwrap(), pattern.selection(&topology));
            assert!(meant.count(&topology) > 0);
            for endpoint in topology.endpoints().iter() {
                assert_eq!(read.contains(&topology, endpoint), meant.contains(&topology, endpoint), "{expected}");
            }
        }
    }

    #[test]
    fn patterns_are_small_and_their_names_short() {
        assert!(size_of::<Pattern>() <= 32);
        let plan: Vec<_> =
            (0..21).map(|n| FacilityPlan { kind: FacilityKind::T3, unit: UNIT_MAX - 3 * (n / 2) - n % 2, common_channel: false }).collect();
        let topology = Topology::new(&plan).unwrap();
        let pairs: Vec<_> = (0..7).map(|n| (2 * n + 1, 2 * n + 2)).collect();
        let longest = text(&topology, units(FacilityKind::T3, &pairs));
        assert_eq!(longest.matches('-').count(), 8, "{longest}");
        assert!(!longest.is_empty() && longest.len() <= PATTERN_NAME_MAX);
        // Pairs of channels make the longest list of channels.
        let channels = (0..10).fold(0, |bits, n| bits | 0b11 << (3 * n + 1));
        let span = SpanIndex(27);
        assert!(text(&topology, Pattern::Channels { span, channels }).len() <= PATTERN_NAME_MAX);
    }

    #[test]
    fn one_endpoint_has_its_own_name() {
        let topology = mixed();
        let endpoint = topology.lookup(b"ds/e1-3/17").unwrap();
        let pattern = Pattern::endpoint(&topology, endpoint).unwrap();
        assert_eq!(text(&topology, pattern), "ds/e1-3/17");
        assert_eq!(pattern.selection(&topology).next(&topology, &mut Cursor::default(), 9).unwrap().first, endpoint.0);
        assert_eq!(Pattern::endpoint(&topology, EndpointIndex(topology.len())), None);
    }
}
