//! `show span`: one facility with its performance counters; and what of them goes into the metrics.

use super::Gateway;
use super::names::{self, facility_name};
use super::protocol::{Failure, FailureKind};
use super::view::{CircuitRow, DriverRow, PerformanceRow, SpanPage};
use crate::host::card;
use crate::proto::base::CoreId;
use crate::proto::core::{Answer, Ask};
use crate::proto::dahdi::abi;
use crate::proto::pseudowire::State;
use crate::proto::trunk::performance::{Counts, INTERVAL_SECONDS, Signal};
use crate::proto::trunk::{CarrierView, CircuitView, DriverView, Facility};

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
        let carrier = match (row.core, facility) {
            (Some(core), Facility::Span(_)) => match self.ask(&[CoreId(core)], &Ask::Carrier(facility), silent).pop() {
                Some((_, Answer::Carrier(view))) => view,
                _ => None,
            },
            _ => None,
        };
        let (circuit, driver) = match carrier {
            Some(CarrierView::Wire(view)) => (Some(circuit_row(view)), None),
            Some(CarrierView::Driver(view)) => (None, Some(driver_row(view))),
            None => (None, None),
        };
        let (performance, history) = (&view.performance, view.performance.history());
        let signal = performance.signal();
        let (current, elapsed) = history.current();
        let intervals: Vec<_> = history.intervals().map(|interval| of(interval, signal, INTERVAL_SECONDS)).collect();
        let past = u32::try_from(intervals.len()).unwrap_or(u32::MAX).saturating_mul(INTERVAL_SECONDS);
        Ok(SpanPage {
            row,
            card: card::kind(&self.config(), &plan.topology, facility).into(),
            circuit,
            driver,
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

fn circuit_row(view: CircuitView) -> CircuitRow {
    let CircuitView { state, counts, waiting, target, drift_ppm, .. } = view;
    CircuitRow {
        state: match state {
            State::Filling => "filling",
            State::Normal => "normal",
            State::PacketLoss => "packet-loss",
        }
        .into(),
        received: counts.received,
        sent: counts.sent,
        lost: counts.buffer.lost,
        late: counts.buffer.late,
        duplicate: counts.buffer.duplicate,
        overrun: counts.buffer.overrun,
        strays: counts.strays,
        malformed: counts.malformed,
        local_faults: counts.local_faults,
        remote_losses: counts.remote_losses,
        remote_defects: counts.remote_defects,
        restarted: counts.buffer.restarted,
        slips: counts.slips,
        violations: counts.violations,
        frame_losses: counts.frame_losses,
        errored_blocks: counts.errored_blocks,
        waiting,
        wait_ms: (target.as_secs_f64() * 1e6).round() / 1e3,
        drift_ppm: (drift_ppm * 10.0).round() / 10.0,
    }
}

fn driver_row(view: DriverView) -> DriverRow {
    let DriverView { number, is_there, alarms, counts } = view;
    DriverRow {
        span: number,
        present: is_there,
        alarms: abi::alarm_words(alarms),
        blocks: counts.blocks,
        dropped: counts.dropped,
        overruns: counts.overruns,
        underruns: counts.underruns,
        refused: counts.refused,
        unknown: counts.unknown,
        losses: counts.losses,
    }
}

fn of(counts: &Counts, signal: Signal, seconds: u32) -> PerformanceRow {
    PerformanceRow { seconds, counts: counts.of(signal).into_iter().map(|(name, count)| (name.to_owned(), count)).collect() }
}
