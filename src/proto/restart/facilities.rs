//! The failures of all facilities and what they mean for spans: a T3's failure covers its T1s, whose own state goes on underneath.

use std::collections::BTreeSet;

use super::service::Reason;
use crate::proto::base::{EndpointRange, Time};
use crate::proto::trunk::{Defect, Facility, FacilityKind, Failure, IntegrationTimes, Monitor, SpanIndex, T3Index, Topology};

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
        let state = |facility| State { monitor: Monitor::new(kind(facility)), due: Time::NEVER, failure: None, since: now };
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
        if failure == state.failure {
            return None;
        }
        if failure.is_some() != state.failure.is_some() {
            state.since = now;
        }
        state.failure = failure;
        let (facility, spans) = match place.checked_sub(self.t3s) {
            None => (Facility::T3(T3Index(place as u16)), topology.t3_spans(T3Index(place as u16))),
            Some(span) => (Facility::Span(SpanIndex(span as u16)), span as u16..span as u16 + 1),
        };
        for span in spans {
            let t3 = topology.span(SpanIndex(span)).and_then(|span| span.t3).map(Facility::T3);
            let failure = t3.and_then(|t3| self.failure(t3)).or(self.failure(Facility::Span(SpanIndex(span))));
            if let Some(reason) = self.reasons.get_mut(usize::from(span)) {
                *reason = failure.map(|failure| Reason(failure.reason()));
            }
        }
        Some(topology.endpoints_of(facility))
    }
}
