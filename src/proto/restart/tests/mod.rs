//! Scripts in virtual time, one per rule.

mod answers;
mod disconnects;
mod failures;
mod fewest;
mod names;
mod operators;
mod power_on;
mod silent;

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::proto::aggregate::Widest;
use crate::proto::aggregate::name::PATTERN_NAME_MAX;
use crate::proto::base::{Rng, Time};
use crate::proto::trunk::topology::tests::plan;
use crate::proto::trunk::{FacilityKind::*, FacilityPlan};

/// A coordinator, its clock, and everything it ordered.
pub(super) struct Bench {
    pub(super) coordinator: Coordinator,
    pub(super) topology: Arc<Topology>,
    pub(super) now: Time,
    /// Orders not looked at yet.
    pub(super) log: Vec<(Time, Action)>,
    /// RSIPs neither answered nor cancelled.
    pub(super) open: Vec<Handle>,
}

impl Bench {
    fn new(plan: &[FacilityPlan], seed: u64, change: impl FnOnce(&mut Settings)) -> Bench {
        let topology = Arc::new(Topology::new(plan).unwrap());
        Bench::over(topology, seed, change)
    }

    pub(super) fn over(topology: Arc<Topology>, seed: u64, change: impl FnOnce(&mut Settings)) -> Bench {
        let mut settings = Settings::for_gateway(&topology);
        change(&mut settings);
        let coordinator = Coordinator::new(Time::ZERO, topology.clone(), settings, Rng::new(seed));
        Bench { coordinator, topology, now: Time::ZERO, log: Vec::new(), open: Vec::new() }
    }

    /// Booted, announced and confirmed; the log is empty.
    fn up(plan: &[FacilityPlan]) -> Bench {
        let mut bench = Bench::new(plan, 1, |_| {});
        bench.run(3000);
        bench.answer_all(Outcome::Success(None));
        bench.log.clear();
        bench
    }

    pub(super) fn handle(&mut self, event: Event) {
        self.coordinator.handle(self.now, event);
        self.drain();
    }

    /// Polls until nothing is due now.
    pub(super) fn drain(&mut self) {
        for _ in 0..100_000 {
            while let Some(action) = self.coordinator.poll(self.now) {
                match action {
                    Action::SendRsip { handle, .. } => self.open.push(handle),
                    Action::Cancel { handle } => self.open.retain(|open| *open != handle),
                    _ => {}
                }
                self.log.push((self.now, action));
            }
            if self.coordinator.deadline() > self.now {
                return;
            }
        }
        panic!("work does not end at {:?}", self.now);
    }

    /// Lets `ms` pass, waking only when asked to.
    pub(super) fn run(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
        self.drain();
        while self.coordinator.deadline() <= until {
            self.now = self.coordinator.deadline();
            self.drain();
        }
        self.now = until;
        self.drain();
    }

    fn sent(&self) -> Vec<(Time, Handle, Pattern)> {
        let sent = self.log.iter().filter_map(|(at, action)| match action {
            Action::SendRsip { handle, pattern, .. } => Some((*at, *handle, *pattern)),
            _ => None,
        });
        sent.collect()
    }

    /// Empties the log and answers every open RSIP.
    fn answer_all(&mut self, outcome: Outcome) {
        self.log.clear();
        for handle in std::mem::take(&mut self.open) {
            self.handle(Event::Outcome { handle, outcome });
        }
    }

    fn facility(&self, name: &str) -> Facility {
        self.topology.lookup_facility(name.as_bytes()).unwrap()
    }

    fn selection(&self, name: &str) -> Selection {
        self.topology.resolve(name.as_bytes(), true).unwrap()
    }

    fn endpoint(&self, name: &str) -> EndpointIndex {
        self.topology.lookup(name.as_bytes()).unwrap()
    }

    fn alarm(&mut self, name: &str, on: bool, skip_integration: bool) {
        let facility = self.facility(name);
        self.handle(Event::Defect { facility, defect: Defect::LossOfSignal, on, skip_integration });
    }

    fn block(&mut self, name: &str, how: BlockHow) {
        let selection = self.selection(name);
        self.handle(Event::Block { selection, how });
    }

    fn unblock(&mut self, name: &str) {
        let selection = self.selection(name);
        self.handle(Event::Unblock { selection });
    }

    /// The process is told to end, within so many seconds.
    fn shut_down(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        self.handle(Event::Shutdown { until });
    }

    fn command(&mut self, name: &str) {
        let endpoint = self.endpoint(name);
        self.handle(Event::Trigger { endpoint, activity: Activity::Command });
    }

    pub(super) fn name(&self, pattern: Pattern) -> String {
        let mut out = [0; PATTERN_NAME_MAX];
        let length = pattern.write_name(&self.topology, &mut out);
        String::from_utf8(out[..length].to_vec()).unwrap()
    }

    /// RSIPs and cancellations in the log, as text; the log is emptied.
    fn said(&mut self) -> Vec<String> {
        let log = std::mem::take(&mut self.log);
        let said = log.iter().filter_map(|(_, action)| match *action {
            Action::SendRsip { group, pattern, method, delay_s, reason, .. } => {
                let mut text = format!("{} {}", method.keyword(), self.name(pattern));
                text += &if delay_s > 0 { format!(" RD {delay_s}") } else { String::new() };
                text += &if reason > 0 { format!(" E {reason}") } else { String::new() };
                text += &if group > 0 { format!(" to {group}") } else { String::new() };
                Some(text)
            }
            Action::Cancel { .. } => Some("cancel".to_string()),
            Action::ShutdownComplete => Some("complete".to_string()),
            _ => None,
        });
        said.collect()
    }

    /// Service orders in the log: endpoints, in or out, code.
    fn services(&self) -> Vec<(u32, bool, u16)> {
        let orders = self.log.iter().filter_map(|(_, action)| match action {
            Action::Service(service) => Some((service.endpoints.count, service.in_service, service.return_code)),
            _ => None,
        });
        orders.collect()
    }
}

const OK: Outcome = Outcome::Success(None);
const T3_1: &[FacilityPlan] = &[FacilityPlan { kind: T3, unit: 1, common_channel: false }];
