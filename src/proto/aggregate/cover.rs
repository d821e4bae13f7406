//! The fewest names for a set of endpoints.
//!
//! The names we may write form a tree: `*` (the gateway), below it `ds/*/*/*` (all T3s), below that each T3 (`ds/ds3-1/*/*`), each
//! T1 in it (`ds/ds3-1/ds1-5/*`), each channel; spans that stand alone hang below `*`, and below `ds/*/*` where there is no T3 (with
//! T3s an agent could read that name as covering them too, so it is never written). A range names several children of one node that
//! carry the same unit (`ds1-`, `ds3-`, `e1-`, a channel); among units of the gateway at most [`RUNS_MAX`] runs of consecutive
//! numbers, which keeps every name within 128 bytes; T1s of a T3 and channels of a span fit always.
//!
//! **The result is exact and minimal.** Call a node *full* when all its endpoints are in the set, and *maximal* when it is full and
//! no allowed node above it is. Maximal nodes are disjoint and together are the set.
//!
//! 1. Without ranges: a name may stand for no endpoint outside the set, so it is a full node and lies within one maximal node. Each
//!    maximal node therefore needs a name of its own; taking the maximal nodes themselves reaches that bound.
//! 2. With ranges: let a range name some children of a node P. All are full. If one of them is not maximal, the maximal node above
//!    it is P or above P, so the whole name lies within that one maximal node. Otherwise it names only maximal siblings with the same
//!    unit. So a name never serves maximal nodes of two sibling groups, and within a group it serves at most [`RUNS_MAX`] runs of
//!    consecutive numbers (units of the gateway) or all of them (elsewhere): a name's runs each lie within one run of the group. A
//!    group of r runs needs at least ⌈r / RUNS_MAX⌉ names, or one; filling names in ascending order reaches that bound.
//!
//! Agents that accept less say so in [`Forms`]; leaving out a level or ranges changes which nodes are allowed, not the argument.
//!
//! Cost: one look at each T3, span and channel mask: linear, a few nanoseconds per span, no memory beyond the cursor. The work can be
//! cut anywhere with [`Cover::step`]; the set must not change until the end.

use super::name::{Pattern, RUNS_MAX, Run, unit_number};
use super::set::EndpointSet;
use crate::proto::base::EndpointIndex;
use crate::proto::trunk::{Facility, FacilityKind, SpanIndex, T3Index, Topology};

/// The widest wildcard an agent accepts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Widest {
    /// One name per endpoint, no wildcard at all.
    Endpoint,
    /// All channels of one span.
    Span,
    /// All channels of one T3.
    Facility,
    /// `*` in place of the facility: `ds/*/*/*`, `ds/*/*`.
    Level,
    /// A bare `*` for the gateway.
    Gateway,
}

/// Which names an agent accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forms {
    /// The widest wildcard.
    pub widest: Widest,
    /// Whether ranges may stand below the widest wildcard (Appendix E.5: both sides must agree). Not used with
    /// [`Widest::Endpoint`].
    pub ranges: bool,
}

impl Default for Forms {
    /// Every wildcard, no ranges: what any agent must accept.
    fn default() -> Forms {
        Forms { widest: Widest::Gateway, ranges: false }
    }
}

/// What a bounded piece of work brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The next name.
    Name(Pattern),
    /// Nothing yet; call again.
    More,
    /// All names were given.
    Done,
}

/// Finds the names of a set one after the other, widest kinds of names first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cover {
    forms: Forms,
    stage: Stage,
    /// The unit, T3 or span to look at next.
    next: u16,
    /// Children of it still to be named.
    pending: u32,
    runs: [Run; RUNS_MAX],
    count: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Whole,
    Units(FacilityKind),
    T1s,
    Channels,
    Done,
}

impl Cover {
    /// Starts over a set that is given to each step.
    pub fn new(forms: Forms) -> Cover {
        Cover { forms, stage: Stage::Whole, next: 0, pending: 0, runs: [Run::default(); RUNS_MAX], count: 0 }
    }

    /// The next name, `None` after the last.
    pub fn next(&mut self, topology: &Topology, set: &EndpointSet) -> Option<Pattern> {
        loop {
            match self.step(topology, set, u32::MAX) {
                Step::Name(pattern) => return Some(pattern),
                Step::More => {}
                Step::Done => return None,
            }
        }
    }

    /// Looks at up to `budget` facilities (at least 1).
    pub fn step(&mut self, topology: &Topology, set: &EndpointSet, budget: u32) -> Step {
        for _ in 0..budget.max(1) {
            let found = match self.stage {
                Stage::Whole => self.whole(topology, set),
                Stage::Units(kind) => self.unit(topology, set, kind),
                Stage::T1s => self.t1s(topology, set),
                Stage::Channels => self.channels(topology, set),
                Stage::Done => return Step::Done,
            };
            if let Some(pattern) = found {
                return Step::Name(pattern);
            }
        }
        Step::More
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.next = 0;
    }

    fn allows(&self, widest: Widest) -> bool {
        self.forms.widest >= widest
    }

    /// The gateway or a whole level.
    fn whole(&mut self, topology: &Topology, set: &EndpointSet) -> Option<Pattern> {
        self.enter(Stage::Units(FacilityKind::T3));
        if set.is_empty() {
            self.enter(Stage::Done);
            return None;
        }
        if set.is_full() && self.allows(Widest::Gateway) {
            self.enter(Stage::Done);
            return Some(Pattern::Gateway);
        }
        if !self.allows(Widest::Level) {
            return None;
        }
        // A level of one unit is named by its unit.
        let t3s = topology.t3_count();
        if t3s > 1 && set.contains_range(topology.endpoints_in_t3s()) {
            self.enter(Stage::Units(FacilityKind::T1));
            return Some(Pattern::T3s);
        }
        if t3s == 0 && topology.spans().len() > 1 && set.is_full() {
            self.enter(Stage::Done);
            return Some(Pattern::Spans);
        }
        None
    }

    /// Looks at one unit of `kind`.
    fn unit(&mut self, topology: &Topology, set: &EndpointSet, kind: FacilityKind) -> Option<Pattern> {
        let place = self.next;
        let (units, widest) = match kind {
            FacilityKind::T3 => (topology.t3_count() as u16, Widest::Facility),
            _ => (topology.alone(kind).len() as u16, Widest::Span),
        };
        if place >= units || !self.allows(widest) {
            let rest = self.take_units(kind);
            self.enter(match kind {
                FacilityKind::T3 => Stage::Units(FacilityKind::T1),
                FacilityKind::T1 => Stage::Units(FacilityKind::E1),
                FacilityKind::E1 => Stage::T1s,
            });
            return rest;
        }
        let facility = match kind {
            FacilityKind::T3 => Facility::T3(T3Index(place)),
            _ => Facility::Span(SpanIndex(topology.alone(kind).start + place)),
        };
        if !set.contains_range(topology.endpoints_of(facility)) {
            self.next += 1;
            return None;
        }
        let grouped = self.forms.ranges && self.allows(Widest::Level);
        match self.runs.get_mut(..usize::from(self.count)).and_then(<[Run]>::last_mut) {
            Some(run) if grouped && follows(topology, kind, run.last, place) => run.last = place,
            Some(_) if !grouped || usize::from(self.count) == RUNS_MAX => return self.take_units(kind),
            _ => {
                if let Some(run) = self.runs.get_mut(usize::from(self.count)) {
                    *run = Run { first: place, last: place };
                    self.count += 1;
                }
            }
        }
        self.next += 1;
        None
    }

    /// The units collected so far as one name.
    fn take_units(&mut self, kind: FacilityKind) -> Option<Pattern> {
        let pattern = Pattern::Units { kind, count: self.count, runs: self.runs };
        let any = self.count > 0;
        self.count = 0;
        self.runs = [Run::default(); RUNS_MAX];
        any.then_some(pattern)
    }

    /// Looks at the T1s of one T3.
    fn t1s(&mut self, topology: &Topology, set: &EndpointSet) -> Option<Pattern> {
        let t3 = T3Index(self.next);
        if usize::from(self.next) >= topology.t3_count() || !self.allows(Widest::Span) {
            self.enter(Stage::Channels);
            return None;
        }
        if self.pending == 0 && !(self.allows(Widest::Facility) && set.contains_range(topology.endpoints_of(Facility::T3(t3)))) {
            let full = |span: &SpanIndex| set.contains_range(topology.endpoints_of(Facility::Span(*span)));
            let numbers = topology.t3_spans(t3).map(SpanIndex).filter(full).filter_map(|span| topology.span(span));
            self.pending = numbers.fold(0, |bits, span| bits | 1 << span.number);
        }
        let grouped = self.forms.ranges && self.allows(Widest::Facility);
        self.take_pending(grouped).map(|t1s| Pattern::T1s { t3, t1s })
    }

    /// Looks at the channels of one span.
    fn channels(&mut self, topology: &Topology, set: &EndpointSet) -> Option<Pattern> {
        let index = SpanIndex(self.next);
        let Some(span) = topology.span(index) else {
            self.enter(Stage::Done);
            return None;
        };
        if self.pending == 0 {
            let channels = span.channels_at(set.bits(span.endpoints));
            let named = channels == span.channels && self.allows(Widest::Span);
            self.pending = if named { 0 } else { channels };
        }
        if self.pending == 0 {
            // Most of a large gateway is not in a set: go on at the next member.
            let after = EndpointIndex(span.endpoints.first + span.endpoints.count);
            let member = set.next(after.0).and_then(|member| topology.span_of(member));
            self.next = member.map_or(u16::MAX, |span| span.0);
            return None;
        }
        let grouped = self.forms.ranges && self.allows(Widest::Span);
        self.take_pending(grouped).map(|channels| Pattern::Channels { span: index, channels })
    }

    /// All pending children when they are `grouped`, else the lowest; on to the next node when none is left.
    fn take_pending(&mut self, grouped: bool) -> Option<u32> {
        let bits = if grouped { self.pending } else { self.pending & self.pending.wrapping_neg() };
        self.pending &= !bits;
        self.next += u16::from(self.pending == 0);
        (bits != 0).then_some(bits)
    }
}

/// Whether the unit at `place` has the number after that of the unit at `last`, its neighbour.
fn follows(topology: &Topology, kind: FacilityKind, last: u16, place: u16) -> bool {
    let numbers = (unit_number(topology, kind, last), unit_number(topology, kind, place));
    last + 1 == place && matches!(numbers, (Some(a), Some(b)) if a + 1 == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::aggregate::name::PATTERN_NAME_MAX;
    use crate::proto::base::{EndpointRange, Rng};
    use crate::proto::trunk::FacilityPlan;
    use crate::proto::trunk::topology::tests::{mixed, name, plan};
    use FacilityKind::*;
    use std::collections::HashMap;

    const ALL_FORMS: [Forms; 10] = {
        let mut forms = [Forms { widest: Widest::Endpoint, ranges: false }; 10];
        let widest = [Widest::Endpoint, Widest::Span, Widest::Facility, Widest::Level, Widest::Gateway];
        let mut n = 0;
        while n < 10 {
            forms[n] = Forms { widest: widest[n / 2], ranges: n % 2 == 1 };
            n += 1;
        }
        forms
    };

    fn names(topology: &Topology, set: &EndpointSet, forms: Forms) -> Vec<String> {
        let (mut cover, mut names) = (Cover::new(forms), Vec::new());
        while let Some(pattern) = cover.next(topology, set) {
            let mut out = [0; PATTERN_NAME_MAX];
            let length = pattern.write_name(topology, &mut out);
            assert!(length > 0);
            names.push(String::from_utf8(out[..length].to_vec()).unwrap());
        }
        names
    }

    fn set_of(topology: &Topology, members: impl IntoIterator<Item = u32>) -> EndpointSet {
        let mut set = EndpointSet::new(topology.len());
        members.into_iter().for_each(|e| set.insert(EndpointIndex(e)));
        set
    }

    fn facility(topology: &Topology, name: &str) -> EndpointRange {
        topology.endpoints_of(topology.lookup_facility(name.as_bytes()).unwrap())
    }

    /// Every name of the forms as text, and the endpoints it stands for as a bit mask, found by comparing terms.
    fn all_names(topology: &Topology, forms: Forms) -> Vec<(String, u32)> {
        let mut names = vec![];
        let endpoints: Vec<Vec<String>> =
            topology.endpoints().iter().map(|e| name(topology, e.0).split('/').map(str::to_string).collect()).collect();
        let has_t3 = topology.t3_count() > 0;
        let mut prefixes = vec![vec![]];
        for terms in &endpoints {
            (1..terms.len()).for_each(|n| prefixes.push(terms[..n].to_vec()));
        }
        prefixes.sort();
        prefixes.dedup();
        for prefix in &prefixes {
            let below: Vec<_> = endpoints.iter().filter(|t| t.len() > prefix.len() && t.starts_with(prefix)).collect();
            for depth in [3, 4] {
                let widest = match (prefix.len(), depth) {
                    (length, depth) if length == 0 || length >= depth => continue,
                    (1, _) => Widest::Level,
                    (2, 4) => Widest::Facility,
                    _ => Widest::Span,
                };
                // The children of this node by the word before their number.
                let mut children: HashMap<String, Vec<u32>> = HashMap::new();
                for terms in below.iter().filter(|t| t.len() == depth) {
                    let child = &terms[prefix.len()];
                    let (unit, number) = child.rsplit_once('-').map_or(("", child.as_str()), |(a, b)| (a, b));
                    let numbers = children.entry(unit.to_string()).or_default();
                    let number = number.parse().unwrap();
                    if !numbers.contains(&number) {
                        numbers.push(number);
                    }
                }
                let stars = "/*".repeat(depth - prefix.len() - 1);
                let written = prefix.join("/");
                if forms.widest >= widest && !children.is_empty() && !(prefix.len() == 1 && depth == 3 && has_t3) {
                    names.push(format!("{written}/*{stars}"));
                }
                let child_allowed = match depth - prefix.len() {
                    1 => true,
                    2 => forms.widest >= Widest::Span,
                    _ => forms.widest >= Widest::Facility,
                };
                for (unit, numbers) in children {
                    let dash = if unit.is_empty() { "" } else { "-" };
                    for subset in 1..1u32 << numbers.len() {
                        let chosen: Vec<_> = numbers.iter().enumerate().filter(|(n, _)| subset >> n & 1 == 1).map(|(_, v)| v).collect();
                        let list = chosen.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(",");
                        if chosen.len() == 1 && child_allowed {
                            names.push(format!("{written}/{unit}{dash}{list}{stars}"));
                        } else if chosen.len() > 1 && child_allowed && forms.ranges && forms.widest >= widest {
                            names.push(format!("{written}/{unit}{dash}[{list}]{stars}"));
                        }
                    }
                }
            }
        }
        if forms.widest == Widest::Gateway {
            names.push("*".into());
        }
        let mask = |pattern: &String| {
            let matches = |t: &&Vec<String>| strict_match(pattern, t);
            endpoints.iter().enumerate().filter(|(_, t)| matches(t)).fold(0, |bits, (n, _)| bits | 1 << n)
        };
        names.into_iter().map(|name| (name.clone(), mask(&name))).collect()
    }

    /// Term by term: `*` stands for one term, alone for everything.
    fn strict_match(pattern: &str, terms: &[String]) -> bool {
        let pattern: Vec<&str> = pattern.split('/').collect();
        let within = |list: &str, number: &str| {
            let number: u32 = number.parse().unwrap();
            list.split(',').any(|i| {
                let (low, high) = i.split_once('-').unwrap_or((i, i));
                (low.parse().unwrap()..=high.parse().unwrap()).contains(&number)
            })
        };
        let term = |(pattern, term): (&&str, &String)| match pattern.split_once('[') {
            Some((unit, list)) => {
                let number = term.strip_prefix(unit).filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
                number.is_some_and(|n| within(list.trim_end_matches(']'), n))
            }
            None => *pattern == "*" || pattern == term,
        };
        pattern == ["*"] || pattern.len() == terms.len() && pattern.iter().zip(terms).all(term)
    }

    /// The fewest names for every subset of a topology of up to 16 endpoints, overlaps allowed.
    fn fewest(names: &[(String, u32)], set: u32) -> u32 {
        let inside: Vec<u32> = names.iter().map(|n| n.1).filter(|mask| mask & !set == 0).collect();
        let mut reached = vec![u32::MAX; set as usize + 1];
        reached[0] = 0;
        // Masks only grow, so ascending order visits each before it is extended; extend at the lowest missing endpoint.
        for covered in 0..=set {
            let so_far = reached[covered as usize];
            if covered & !set != 0 || so_far == u32::MAX || covered == set {
                continue;
            }
            let missing = 1 << (set & !covered).trailing_zeros();
            for mask in inside.iter().filter(|mask| *mask & missing != 0) {
                let entry = &mut reached[(covered | mask) as usize];
                *entry = (*entry).min(so_far + 1);
            }
        }
        reached[set as usize]
    }

    #[test]
    fn covers_are_exact_disjoint_and_minimal() {
        // G-RSI-08, MAP-03: exact minimum set cover over all names of each form, on trees small enough for it.
        let signalled = |kind, unit| FacilityPlan { common_channel: true, ..plan(kind, unit) };
        let trees: [(&[FacilityPlan], usize, u32); 6] = [
            (&[plan(T3, 1)], 2, 4),
            (&[plan(T3, 1), plan(T3, 2)], 2, 2),
            (&[plan(T3, 1), plan(T3, 3), plan(T1, 1)], 2, 2),
            (&[plan(T1, 1), plan(T1, 2), plan(T1, 4)], 2, 3),
            (&[signalled(T1, 1), plan(T1, 2), plan(T3, 5)], 2, 2),
            (&[plan(T1, 7)], 2, 6),
        ];
        let mut rng = Rng::new(17);
        for (plan, t1s, channels) in trees {
            let topology = Topology::shaped(plan, t1s, channels).unwrap();
            let all = (1u32 << topology.len()) - 1;
            for forms in ALL_FORMS {
                let candidates = all_names(&topology, forms);
                for _ in 0..60 {
                    // Dense sets have the interesting covers.
                    let bits = all & !(rng.next() & rng.next() & rng.next()) as u32 & !(rng.next() & rng.next()) as u32;
                    let set = set_of(&topology, (0..topology.len()).filter(|e| bits >> e & 1 == 1));
                    let given = names(&topology, &set, forms);
                    let mut covered = 0;
                    for name in &given {
                        let (_, mask) = candidates
                            .iter()
                            .find(|c| same_name(&c.0, name))
                            .unwrap_or_else(|| panic!("{name} is not allowed by {forms:?}"));
                        assert_eq!(covered & mask, 0, "{name} overlaps in {given:?}");
                        covered |= mask;
                    }
                    assert_eq!(covered, bits, "{given:?}");
                    assert_eq!(given.len() as u32, fewest(&candidates, bits), "{given:?} {forms:?} {plan:?}");
                }
            }
        }
    }

    /// Ranges list numbers one by one in the model and in intervals in ours.
    fn same_name(listed: &str, given: &str) -> bool {
        let Some((before, rest)) = given.split_once('[') else { return listed == given };
        let (inside, after) = rest.split_once(']').unwrap();
        let numbers = inside.split(',').flat_map(|i| {
            let (low, high) = i.split_once('-').unwrap_or((i, i));
            low.parse::<u32>().unwrap()..=high.parse().unwrap()
        });
        let list = numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        listed == format!("{before}[{list}]{after}")
    }

    #[test]
    fn covers_of_real_shapes_are_exact_under_both_readings() {
        let topology = mixed();
        let mut rng = Rng::new(3);
        let terms: Vec<Vec<String>> =
            topology.endpoints().iter().map(|e| name(&topology, e.0).split('/').map(str::to_string).collect()).collect();
        for round in 0..60 {
            let mut set = EndpointSet::new(topology.len());
            for index in topology.facilities() {
                if rng.chance(300_000) {
                    set.insert_range(topology.endpoints_of(index));
                }
            }
            (0..rng.below(40)).for_each(|_| set.remove(EndpointIndex(rng.below(u64::from(topology.len())) as u32)));
            let forms = ALL_FORMS[round % 10];
            let mut times = vec![0; topology.len() as usize];
            for name in names(&topology, &set, forms) {
                let read = topology.resolve(name.as_bytes(), true).unwrap();
                for (endpoint, count) in topology.endpoints().iter().zip(&mut times) {
                    let strict = strict_match(&name, &terms[endpoint.0 as usize]);
                    assert_eq!(read.contains(&topology, endpoint), strict, "{name} is read in two ways");
                    *count += u32::from(strict);
                }
            }
            for endpoint in topology.endpoints().iter() {
                assert_eq!(times[endpoint.0 as usize], u32::from(set.contains(endpoint)));
            }
        }
    }

    #[test]
    fn a_t3_and_a_t1_are_one_name_each() {
        let topology = Topology::new(&[plan(T3, 1), plan(T3, 2)]).unwrap();
        let mut set = EndpointSet::new(topology.len());
        set.insert_range(facility(&topology, "ds/ds3-1"));
        assert_eq!(names(&topology, &set, Forms::default()), ["ds/ds3-1/*/*"]);
        set.insert_range(facility(&topology, "ds/ds3-2/ds1-5"));
        assert_eq!(names(&topology, &set, Forms::default()), ["ds/ds3-1/*/*", "ds/ds3-2/ds1-5/*"]);
        set.insert_range(topology.endpoints());
        assert_eq!(names(&topology, &set, Forms::default()), ["*"]);
        assert_eq!(names(&topology, &set, Forms { widest: Widest::Level, ranges: true }), ["ds/*/*/*"]);
        set.remove_range(facility(&topology, "ds/ds3-1/ds1-7"));
        // MAP-04: a T3 that returns without one T1 is named by its T1s.
        assert_eq!(names(&topology, &set, Forms::default()).len(), 1 + 27);
        assert_eq!(names(&topology, &set, Forms { ranges: true, ..Forms::default() }), ["ds/ds3-2/*/*", "ds/ds3-1/ds1-[1-6,8-28]/*"]);
    }

    #[test]
    fn a_t1_split_between_two_notified_entities() {
        // Issue 2, must hold 5: channels 1-12 elsewhere: 24 messages without ranges, 2 with.
        let topology = Topology::new(&[plan(T1, 1)]).unwrap();
        let (half, rest) = (set_of(&topology, 0..12), set_of(&topology, 12..24));
        let count = |forms| names(&topology, &half, forms).len() + names(&topology, &rest, forms).len();
        assert_eq!(count(Forms::default()), 24);
        let ranges = Forms { ranges: true, ..Forms::default() };
        assert_eq!(count(ranges), 2);
        assert_eq!(names(&topology, &half, ranges), ["ds/ds1-1/[1-12]"]);
    }

    #[test]
    fn many_units_are_cut_by_the_length_of_a_name() {
        let plan: Vec<_> = (0..20).map(|n| plan(T3, 5 * n + 1)).collect();
        let topology = Topology::new(&plan).unwrap();
        let mut set = EndpointSet::new(topology.len());
        (0..19).for_each(|n| set.insert_range(topology.endpoints_of(Facility::T3(T3Index(n)))));
        let given = names(&topology, &set, Forms { ranges: true, ..Forms::default() });
        assert_eq!(given.len(), 19usize.div_ceil(RUNS_MAX), "{given:?}");
        assert!(given.iter().all(|name| name.len() <= PATTERN_NAME_MAX));
    }

    #[test]
    fn small_steps_give_the_same_names() {
        let topology = mixed();
        let mut rng = Rng::new(23);
        for forms in ALL_FORMS {
            let set = set_of(&topology, (0..topology.len()).filter(|_| rng.chance(900_000)));
            let (mut whole, mut sliced) = (Cover::new(forms), Cover::new(forms));
            loop {
                let step = std::iter::repeat_with(|| sliced.step(&topology, &set, 1)).find(|s| *s != Step::More).unwrap();
                match whole.next(&topology, &set) {
                    Some(pattern) => assert_eq!(step, Step::Name(pattern)),
                    None => break assert_eq!(step, Step::Done),
                }
            }
        }
    }
}
