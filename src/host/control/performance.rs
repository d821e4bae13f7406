//! `show span`: one facility with its performance counters; and what of them goes into the metrics.

use super::Gateway;
use super::names::{self, facility_name};
use super::protocol::{Failure, FailureKind};
use super::view::{PerformanceRow, SpanPage};
use crate::proto::core::{Answer, Ask};
use crate::proto::trunk::Facility;
use crate::proto::trunk::performance::{Counts, INTERVAL_SECONDS, Signal};

impl Gateway {
    /// Everything about the facility with this name.
    pub(super) fn span_page(&self, name: Option<&str>, silent: &mut Vec<u8>) -> Result<SpanPage, Failure> {
        let plan = &self.cores.plan;
        let name = name.ok_or_else(|| Failure::new(FailureKind::BadRequest, "which facility?"))?;
        let facility = names::facility(plan, name)?;
        let lead = plan.lead();
        let unanswered = || Failure::new(FailureKind::Silent, format!("core {}, which watches the facilities, does not answer", lead.0));
        let answer = self.ask(&[lead], &Ask::Performance(facility), silent).pop();
        let Some((_, Answer::Performance(view))) = answer else { return Err(unanswered()) };
        let local = facility_name(&plan.topology, facility);
        let row = self.span_rows(silent).into_iter().find(|row| row.name == local).ok_or_else(unanswered)?;
        let (performance, history) = (&view.performance, view.performance.history());
        let signal = performance.signal();
        let (current, elapsed) = history.current();
        let intervals: Vec<_> = history.intervals().map(|interval| of(interval, signal, INTERVAL_SECONDS)).collect();
        let past = u32::try_from(intervals.len()).unwrap_or(u32::MAX).saturating_mul(INTERVAL_SECONDS);
        Ok(SpanPage {
            row,
            signal: signal.name().into(),
            defects: view.defects.iter().map(|defect| defect.name().into()).collect(),
            available: performance.is_available(),
            lag_s: performance.delay().as_secs(),
            current: of(&current, signal, elapsed),
            total: of(&history.total(), signal, past),
            intervals,
        })
    }

    /// What every facility has counted since the start; nothing when the lead core is silent.
    pub(super) fn performance_totals(&self) -> Vec<(Facility, Counts)> {
        match self.ask(&[self.cores.plan.lead()], &Ask::PerformanceTotals, &mut Vec::new()).pop() {
            Some((_, Answer::PerformanceTotals(list))) => list,
            _ => Vec::new(),
        }
    }
}

fn of(counts: &Counts, signal: Signal, seconds: u32) -> PerformanceRow {
    PerformanceRow { seconds, counts: counts.of(signal).into_iter().map(|(name, count)| (name.to_owned(), count)).collect() }
}
