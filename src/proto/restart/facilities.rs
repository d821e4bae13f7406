//! The failures of all facilities and what they mean for spans: a T3's failure covers its T1s, whose own state goes on underneath.

use std::collections::BTreeSet;

use super::service::Reason;
use crate::proto::base::{EndpointRange, Time};
use crate::proto::trunk::performance::{Performance, Signal};
use crate::proto::trunk::{Defect, Facility, FacilityKind, Failure, IntegrationTimes, Monitor, SpanIndex, T3Index, Topology, Violations};

/// Monitors and failures of the T3s, then of the spans.
pub(super) struct Facilities {
    t3s: usize,
    monitors: Box<[State]>,
    due: BTreeSet<(Time, u32)>,
    /// Why each span is out of service.
    reasons: Box<[Option<Reason>]>,
}

struct State {
    monitor: Monitor,
    performance: Performance,
    /// Its place in `due`.
    due: Time,
    failure: Option<Failure>,
    /// Since when it is failed, or up.
    since: Time,
}

/// A failed facility.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Failed {
    pub(super) facility: Facility,
    pub(super) failure: Failure,
    pub(super) since: Time,
    /// Its T3 failed as well.
    pub(super) covered: bool,
}

impl Facilities {
    pub(super) fn new(now: Time, topology: &Topology) -> Facilities {
        let kind = |facility| match facility {
            Facility::T3(_) => FacilityKind::T3,
            Facility::Span(span) => topology.span(span).map_or(FacilityKind::T1, |span| span.kind),
        };
        let state = |facility| {
            let kind = kind(facility);
            let performance = Performance::new(now, Signal::usual(kind));
            State { monitor: Monitor::new(kind), performance, due: Time::NEVER, failure: None, since: now }
        };
        Facilities {
            t3s: topology.t3_count(),
            monitors: topology.facilities().map(state).collect(),
            due: BTreeSet::new(),
            reasons: vec![None; topology.spans().len()].into(),
        }
    }

    /// A defect came or went. Gives the endpoints whose state may have changed.
    pub(super) fn set(
        &mut self,
        now: Time,
        topology: &Topology,
        facility: Facility,
        (defect, on, skip): (Defect, bool, bool),
        times: &IntegrationTimes,
    ) -> Option<EndpointRange> {
        let place = self.place(facility);
        self.monitors.get_mut(place)?.monitor.set(now, defect, on, skip, times);
        self.update(now, topology, place, times)
    }

    /// The first facility that is due, integrated to `now`; `None` when none is. Gives the endpoints whose state may have changed.
    pub(super) fn advance(&mut self, now: Time, topology: &Topology, times: &IntegrationTimes) -> Option<EndpointRange> {
        let &(due, place) = self.due.first()?;
        if due > now {
            return None;
        }
        self.monitors.get_mut(place as usize)?.monitor.advance(now, times);
        Some(self.update(now, topology, place as usize, times).unwrap_or_default())
    }

    /// When [`Facilities::advance`] has something to do.
    pub(super) fn deadline(&self) -> Time {
        self.due.first().map_or(Time::NEVER, |(due, _)| *due)
    }

    /// Why the span is out of service.
    pub(super) fn reason(&self, span: SpanIndex) -> Option<Reason> {
        self.reasons.get(usize::from(span.0)).copied().flatten()
    }

    /// Every failed facility.
    pub(super) fn failed<'a>(&'a self, topology: &'a Topology) -> impl Iterator<Item = Failed> + 'a {
        topology.facilities().zip(self.monitors.iter()).filter_map(|(facility, state)| {
            let t3 = match facility {
                Facility::Span(span) => topology.span(span).and_then(|span| span.t3),
                Facility::T3(_) => None,
            };
            let covered = t3.is_some_and(|t3| self.failure(Facility::T3(t3)).is_some());
            state.failure.map(|failure| Failed { facility, failure, since: state.since, covered })
        })
    }

    /// The facility's own failure.
    pub(super) fn failure(&self, facility: Facility) -> Option<Failure> {
        self.monitors.get(self.place(facility))?.failure
    }

    /// The facility's line status word.
    pub(super) fn line_status(&self, facility: Facility) -> u32 {
        self.monitors.get(self.place(facility)).map_or(1, |state| state.monitor.line_status())
    }

    /// The facility's defects and its performance, counted until now.
    pub(super) fn performance(&mut self, now: Time, facility: Facility) -> Option<(&Monitor, &Performance)> {
        let place = self.place(facility);
        let state = self.monitors.get_mut(place)?;
        state.performance.read(now);
        Some((&state.monitor, &state.performance))
    }

    /// Counts anew, as for this kind of signal.
    pub(super) fn measure_as(&mut self, now: Time, facility: Facility, signal: Signal) {
        let place = self.place(facility);
        if let Some(state) = self.monitors.get_mut(place) {
            state.performance = Performance::new(now, signal);
        }
    }

    /// A framer of the facility counted this.
    pub(super) fn count(&mut self, now: Time, facility: Facility, violations: &Violations) {
        let place = self.place(facility);
        if let Some(state) = self.monitors.get_mut(place) {
            state.performance.count(now, violations);
        }
    }

    fn place(&self, facility: Facility) -> usize {
        match facility {
            Facility::T3(t3) => usize::from(t3.0),
            Facility::Span(span) => self.t3s + usize::from(span.0),
        }
    }

    /// Keeps the list of what is due, the failure and the reasons of the spans.
    fn update(&mut self, now: Time, topology: &Topology, place: usize, times: &IntegrationTimes) -> Option<EndpointRange> {
        let state = self.monitors.get_mut(place)?;
        let due = state.monitor.deadline(times);
        if due != state.due {
            self.due.remove(&(state.due, place as u32));
            if due != Time::NEVER {
                self.due.insert((due, place as u32));
            }
            state.due = due;
        }
        let failure = state.monitor.failure();
        let changed = failure != state.failure;
        if failure.is_some() != state.failure.is_some() {
            state.since = now;
        }
        state.failure = failure;
        let (facility, spans) = match place.checked_sub(self.t3s) {
            None => (Facility::T3(T3Index(place as u16)), topology.t3_spans(T3Index(place as u16))),
            Some(span) => (Facility::Span(SpanIndex(span as u16)), span as u16..span as u16 + 1),
        };
        self.measure(now, topology, facility, times);
        if !changed {
            return None;
        }
        for span in spans {
            let t3 = topology.span(SpanIndex(span)).and_then(|span| span.t3).map(Facility::T3);
            let failure = t3.and_then(|t3| self.failure(t3)).or(self.failure(Facility::Span(SpanIndex(span))));
            if let Some(reason) = self.reasons.get_mut(usize::from(span)) {
                *reason = failure.map(|failure| Reason(failure.reason()));
            }
        }
        Some(topology.endpoints_of(facility))
    }

    /// Tells the performance of a facility, and of what it carries, how they are now. A T3 without a signal sends AIS down its T1s.
    fn measure(&mut self, now: Time, topology: &Topology, facility: Facility, times: &IntegrationTimes) {
        let (above, below) = match facility {
            Facility::T3(t3) => (Some(facility), topology.t3_spans(t3)),
            Facility::Span(span) => (topology.span(span).and_then(|span| span.t3).map(Facility::T3), span.0..span.0 + 1),
        };
        let near_end = |state: &State| state.failure.is_some_and(Failure::is_near_end);
        let above = above.map(|t3| self.place(t3));
        let (dark, failed) = above.and_then(|t3| self.monitors.get(t3)).map_or((false, false), |t3| (t3.monitor.is_dark(), near_end(t3)));
        let t3 = above.filter(|_| matches!(facility, Facility::T3(_)));
        for (place, from_above) in t3.map(|t3| (t3, false)).into_iter().chain(below.map(|span| (self.t3s + usize::from(span), true))) {
            let Some(state) = self.monitors.get_mut(place) else { continue };
            let (monitor, failed) = (&state.monitor, near_end(state) || from_above && failed);
            let present = |defect| monitor.is_present(defect) || from_above && dark && defect == Defect::Ais;
            state.performance.set(now, present, failed, times.clear);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::trunk::FacilityPlan;
    use std::time::Duration;

    #[test]
    fn a_t3_without_signal_takes_the_performance_of_its_t1s_with_it_and_of_no_other() {
        let t3 = |unit| FacilityPlan { kind: FacilityKind::T3, unit, common_channel: false };
        let topology = Topology::new(&[t3(1), t3(2)]).unwrap();
        let times = IntegrationTimes::default();
        let mut facilities = Facilities::new(Time::ZERO, &topology);
        let dead = Facility::T3(T3Index(0));
        facilities.set(Time::ZERO, &topology, dead, (Defect::LossOfSignal, true, false), &times);
        while facilities.deadline() < Time::from_millis(60_000) {
            facilities.advance(facilities.deadline(), &topology, &times);
        }
        let end = Time::ZERO + Duration::from_secs(60);
        let mut unavailable = |facility| facilities.performance(end, facility).unwrap().1.history().current().0.uas;
        assert_eq!(unavailable(dead), 50);
        assert!(topology.t3_spans(T3Index(0)).all(|span| unavailable(Facility::Span(SpanIndex(span))) == 50));
        assert!(topology.t3_spans(T3Index(1)).all(|span| unavailable(Facility::Span(SpanIndex(span))) == 0));
    }

    /// T1P-05: a second with slips is a CSS and an ES, whatever their number.
    #[test]
    fn slips_that_a_framer_counted_are_seconds_with_controlled_slips() {
        let topology = Topology::new(&[FacilityPlan { kind: FacilityKind::T1, unit: 1, common_channel: false }]).unwrap();
        let mut facilities = Facilities::new(Time::ZERO, &topology);
        let span = Facility::Span(SpanIndex(0));
        for ms in [500, 600, 3_000, 7_900] {
            facilities.count(Time::from_millis(ms), span, &Violations { slips: 3, ..Violations::default() });
        }
        let counted = facilities.performance(Time::from_millis(40_000), span).unwrap().1.history().current().0;
        assert_eq!((counted.css, counted.es, counted.ses, counted.uas), (3, 3, 0, 0));
    }
}
