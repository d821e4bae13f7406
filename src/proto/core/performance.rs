//! What operators see of the performance of facilities, which the lead core measures.

use super::Core;
use super::operator::{Answer, Ask, Request};
use crate::proto::base::Time;
use crate::proto::trunk::performance::{Counts, Performance};
use crate::proto::trunk::{Defect, Facility};

/// One facility.
#[derive(Clone, Debug)]
pub struct PerformanceView {
    /// The defects it has now.
    pub defects: Vec<Defect>,
    /// Its counters.
    pub performance: Performance,
}

impl Core {
    /// Answers what only the lead core knows; true when the answer is whole.
    pub(super) fn performance_answer(&mut self, now: Time, request: &mut Request) -> bool {
        let slice = self.plan.limits.slice.max(1) as usize;
        let Some(lead) = &mut self.lead else {
            request.answer = Answer::Refused("only the lead core knows");
            return true;
        };
        let coordinator = lead.coordinator_mut();
        if let Ask::Performance(facility) = request.ask {
            request.answer = match coordinator.performance(now, facility) {
                None => Answer::Refused("no such facility"),
                Some((monitor, performance)) => {
                    let defects = Defect::ALL.into_iter().filter(|defect| monitor.is_present(*defect)).collect();
                    Answer::Performance(Box::new(PerformanceView { defects, performance: performance.clone() }))
                }
            };
            return true;
        }
        let mut list: Vec<(Facility, Counts)> = match std::mem::replace(&mut request.answer, Answer::Done) {
            Answer::PerformanceTotals(list) => list,
            _ => Vec::new(),
        };
        let before = list.len();
        for facility in self.plan.topology.facilities().skip(before).take(slice) {
            if let Some((_, performance)) = coordinator.performance(now, facility) {
                list.push((facility, *performance.history().ever()));
            }
        }
        let whole = list.len() < before + slice;
        request.answer = Answer::PerformanceTotals(list);
        whole
    }
}
