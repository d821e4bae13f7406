//! Scripts in virtual time, one per rule.

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

#[test]
fn power_on_waits_a_random_time_within_mwd() {
    // G-RST-01, G-RST-02, MAP-08
    for (gateway, mwd_ms) in [(vec![plan(T1, 1)], 2500), (vec![plan(T3, 1)], 60), (vec![plan(T3, 1), plan(T3, 2)], 60)] {
        let mut quarters = [0; 4];
        for seed in 0..400 {
            let mut bench = Bench::new(&gateway, seed, |_| {});
            bench.run(mwd_ms);
            let sent = bench.sent();
            assert_eq!(sent.len(), 1);
            quarters[(sent[0].0.since(Time::ZERO).as_micros() as u64 * 4 / (mwd_ms * 1000 + 1)) as usize] += 1;
            // G-RST-11
            assert_eq!(bench.said(), ["restart *"]);
        }
        assert!(quarters.iter().all(|n| (60..140).contains(n)), "{quarters:?}");
    }
}

#[test]
fn a_command_ends_the_wait_after_power_on() {
    // G-RST-01
    for activity in [Activity::Command, Activity::Local] {
        let mut bench = Bench::new(&[plan(T1, 1)], 8, |_| {});
        bench.run(100);
        assert_eq!(bench.said().len(), 0);
        let endpoint = bench.endpoint("ds/ds1-1/7");
        bench.handle(Event::Trigger { endpoint, activity });
        assert_eq!(bench.said(), ["restart *"]);
        bench.run(5000);
        assert_eq!(bench.said().len(), 0);
    }
}

#[test]
fn what_is_down_at_power_on_is_announced_forced() {
    // G-RST-04
    let mut bench = Bench::new(&[plan(T1, 1), plan(T1, 2)], 3, |s| s.power_on_wait_max = Duration::from_secs(1));
    bench.alarm("ds/ds1-2", true, true);
    bench.run(1000);
    assert_eq!(bench.said(), ["restart ds/ds1-1/*", "forced ds/ds1-2/* E 905"]);
}

#[test]
fn a_t3_alarm_is_one_rsip_and_so_is_its_recovery() {
    // MAP-03, issue 2 must hold 5
    let mut bench = Bench::up(T3_1);
    bench.alarm("ds/ds3-1", true, false);
    for n in 1..=28 {
        bench.run(1);
        bench.alarm(&format!("ds/ds3-1/ds1-{n}"), true, false);
    }
    bench.run(2000);
    assert!(bench.log.is_empty(), "a defect is no failure yet");
    bench.run(1000);
    // Refused with 531 until the agent was told.
    assert_eq!(bench.services(), [(672, false, 531), (672, false, 501)]);
    assert_eq!(bench.said(), ["forced ds/ds3-1/*/* E 905"]);
    bench.answer_all(OK);
    bench.alarm("ds/ds3-1", false, false);
    (1..=28).for_each(|n| bench.alarm(&format!("ds/ds3-1/ds1-{n}"), false, false));
    bench.run(9900);
    assert_eq!(bench.said().len(), 0);
    bench.run(500);
    assert_eq!(bench.services(), [(24, true, 501); 28]);
    assert_eq!(bench.said(), ["restart ds/ds3-1/*/*"]);
}

#[test]
fn a_t3_alarm_is_one_rsip_whatever_was_out_before() {
    // MAP-03: what the agent knows to be out may be named again, if that saves messages.
    let mut bench = Bench::up(T3_1);
    bench.alarm("ds/ds3-1/ds1-7", true, true);
    bench.run(200);
    assert_eq!(bench.said(), ["forced ds/ds3-1/ds1-7/* E 905"]);
    bench.answer_all(OK);
    bench.block("ds/ds3-1/ds1-9/3", BlockHow::Force);
    bench.answer_all(OK);
    bench.alarm("ds/ds3-1", true, true);
    bench.run(200);
    assert_eq!(bench.said(), ["forced ds/ds3-1/*/* E 905"]);
    // Where it saves nothing it is left out.
    let mut bench = Bench::up(&[plan(T3, 1), plan(T3, 2)]);
    bench.alarm("ds/ds3-1/ds1-7", true, true);
    bench.alarm("ds/ds3-2", true, true);
    bench.run(200);
    bench.answer_all(OK);
    bench.alarm("ds/ds3-1/ds1-8", true, true);
    bench.run(200);
    assert_eq!(bench.said(), ["forced ds/ds3-1/ds1-8/* E 905"]);
}

#[test]
fn a_t3_that_returns_without_one_t1_names_the_others() {
    // MAP-01, MAP-04
    let mut bench = Bench::up(T3_1);
    bench.alarm("ds/ds3-1", true, true);
    bench.alarm("ds/ds3-1/ds1-7", true, true);
    bench.run(200);
    bench.answer_all(OK);
    bench.alarm("ds/ds3-1", false, true);
    bench.run(200);
    let said = bench.said();
    assert_eq!(said.len(), 27);
    assert!(said.iter().all(|s| s.starts_with("restart ds/ds3-1/ds1-") && !s.contains("ds1-7/")), "{said:?}");
    let alarms: Vec<_> = bench.coordinator.alarms().map(|a| (a.facility, a.severity, a.covered)).collect();
    assert_eq!(alarms, [(bench.facility("ds/ds3-1/ds1-7"), Severity::Major, false)]);
}

#[test]
fn failures_within_the_merge_time_are_told_together() {
    // MAP-12
    let mut bench = Bench::up(&[plan(T1, 1), plan(T1, 2), plan(T1, 3)]);
    bench.alarm("ds/ds1-1", true, true);
    bench.run(150);
    bench.alarm("ds/ds1-2", true, true);
    bench.alarm("ds/ds1-3", true, true);
    bench.run(49);
    assert_eq!(bench.said().len(), 0);
    bench.run(1);
    assert_eq!(bench.said(), ["forced * E 905"]);
}

#[test]
fn a_4xx_is_tried_again_under_a_new_handle_ever_more_slowly() {
    // G-RST-07, O-7
    let mut bench = Bench::new(T3_1, 5, |_| {});
    bench.run(60);
    let mut handles = vec![];
    let mut last = Time::ZERO;
    for round in 0..14 {
        let (at, handle, _) = bench.sent()[0];
        assert_eq!(bench.said(), ["restart *"]);
        assert!(!handles.contains(&handle));
        handles.push(handle);
        if round > 0 {
            let wait = Duration::from_secs(1 << (round - 1)).min(Duration::from_secs(600));
            let waited = at.since(last);
            assert!(waited >= wait / 2 && waited <= wait, "round {round}: {waited:?}");
        }
        bench.handle(Event::Outcome { handle, outcome: Outcome::Transient(400) });
        last = bench.now;
        while bench.sent().is_empty() {
            bench.run(100);
        }
    }
    bench.answer_all(OK);
    bench.run(3_600_000);
    assert_eq!(bench.said().len(), 0);
    // A late answer to an earlier sending changes nothing.
    bench.handle(Event::Outcome { handle: handles[0], outcome: Outcome::Unanswered });
    bench.run(3_600_000);
    assert_eq!(bench.said().len(), 0);
}

#[test]
fn a_redirection_is_followed_and_a_loop_of_them_is_slowed() {
    // G-RST-08, G-NET-12
    let mut bench = Bench::new(T3_1, 5, |_| {});
    bench.run(60);
    for round in 1..=5 {
        let group = round % 2;
        bench.answer_all(Outcome::Redirect(group));
        let entity = Action::NotifiedEntity { pattern: Pattern::Gateway, group };
        assert!(bench.log.iter().any(|(_, action)| *action == entity));
        assert_eq!(bench.sent().len(), 1, "at once");
    }
    bench.answer_all(Outcome::Redirect(2));
    assert_eq!(bench.said().len(), 0);
    bench.run(1000);
    assert_eq!(bench.sent().len(), 1);
    bench.answer_all(Outcome::Success(Some(3)));
    bench.log.clear();
    bench.alarm("ds/ds3-1/ds1-4", true, true);
    bench.run(200);
    assert_eq!(bench.said(), ["forced ds/ds3-1/ds1-4/* E 905 to 3"]);
}

#[test]
fn a_permanent_error_stops_it_until_a_command_comes() {
    // G-RST-09
    let mut bench = Bench::new(T3_1, 5, |_| {});
    bench.run(60);
    bench.answer_all(Outcome::Permanent(510));
    bench.run(3_600_000);
    assert_eq!(bench.said().len(), 0);
    let endpoint = bench.endpoint("ds/ds3-1/ds1-1/1");
    bench.handle(Event::Trigger { endpoint, activity: Activity::Local });
    assert_eq!(bench.said().len(), 0);
    bench.command("ds/ds3-1/ds1-1/1");
    assert_eq!(bench.sent().len(), 1);
    bench.answer_all(Outcome::Permanent(510));
    // A failure is news; the rest stays quiet.
    bench.alarm("ds/ds3-1/ds1-4", true, true);
    bench.run(3_600_000);
    assert_eq!(bench.said(), ["forced ds/ds3-1/ds1-4/* E 905"]);
    // Started again without the T1 that is out.
    bench.command("ds/ds3-1/ds1-1/1");
    assert_eq!(bench.said().len(), 27);
}

#[test]
fn an_agent_that_is_silent_is_told_restart_at_the_pace_of_a_disconnect() {
    // G-RST-10, G-DIS-02, G-DIS-05, F-6
    let mut bench = Bench::new(T3_1, 6, |_| {});
    bench.run(60);
    let mut waits = vec![];
    for _ in 0..12 {
        bench.answer_all(Outcome::Unanswered);
        let from = bench.now;
        while bench.sent().is_empty() {
            bench.run(100);
        }
        waits.push(bench.sent()[0].0.since(from).as_millis() as u64);
        assert!(bench.log.iter().any(|(_, a)| matches!(a, Action::SendRsip { method: RestartMethod::Restart, .. })));
    }
    assert!((1000..=15_000).contains(&waits[0]), "{waits:?}");
    for pair in waits.windows(2) {
        assert!(pair[1].abs_diff((2 * pair[0]).min(600_000)) < 100, "{waits:?}");
    }
    // A command of the agent is answered with the restart at once.
    bench.answer_all(Outcome::Unanswered);
    bench.run(1000);
    bench.command("ds/ds3-1/ds1-1/1");
    assert_eq!(bench.said(), ["restart *"]);
}

#[test]
fn what_became_wrong_is_taken_back_before_the_truth_is_told() {
    // At most one live announcement covers an endpoint.
    let mut bench = Bench::new(&[plan(T1, 1), plan(T1, 2)], 5, |_| {});
    bench.run(2500);
    assert_eq!(bench.said(), ["restart *"]);
    bench.alarm("ds/ds1-2", true, true);
    bench.run(200);
    assert_eq!(bench.said(), ["cancel", "restart ds/ds1-1/*", "forced ds/ds1-2/* E 905"]);
    // Back before the answer: the agent may have seen either, so it is told restart.
    bench.alarm("ds/ds1-2", false, true);
    bench.run(200);
    assert_eq!(bench.said(), ["cancel", "restart ds/ds1-2/*"]);
}

#[test]
fn a_graceful_block_with_a_delay_ends_forced() {
    // G-RSI-03, G-RSI-06, MAP-02
    let mut bench = Bench::up(T3_1);
    bench.block("ds/ds3-1/ds1-3/*", BlockHow::Graceful(Duration::from_secs(10)));
    assert_eq!(bench.services(), [(24, true, 501)]);
    assert_eq!(bench.said(), ["graceful ds/ds3-1/ds1-3/* RD 10 E 901"]);
    bench.answer_all(OK);
    bench.run(9999);
    assert_eq!(bench.said().len(), 0);
    bench.run(1);
    assert_eq!(bench.services(), [(24, false, 501)]);
    assert_eq!(bench.said(), ["forced ds/ds3-1/ds1-3/* E 901"]);
    let view = bench.coordinator.endpoint(bench.endpoint("ds/ds3-1/ds1-3/1")).unwrap();
    assert_eq!((view.admin, view.failure, view.in_service), (Admin::Blocked, None, false));
    // Administrative and operational state are apart.
    bench.alarm("ds/ds3-1/ds1-3", true, true);
    bench.unblock("ds/ds3-1/ds1-3/*");
    bench.run(1000);
    assert_eq!(bench.said().len(), 0);
    bench.alarm("ds/ds3-1/ds1-3", false, true);
    bench.run(1000);
    assert_eq!(bench.said(), ["cancel", "restart ds/ds3-1/ds1-3/*"]);
}

#[test]
fn a_graceful_block_is_revoked_by_cancel_graceful() {
    // G-RSI-03
    let mut bench = Bench::up(T3_1);
    bench.block("ds/ds3-1/ds1-3/*", BlockHow::Graceful(Duration::from_secs(300)));
    bench.run(100_000);
    bench.answer_all(OK);
    bench.unblock("*");
    assert_eq!(bench.services(), [(24, true, 501)]);
    assert_eq!(bench.said(), ["cancel-graceful ds/ds3-1/ds1-3/*"]);
    bench.run(1_000_000);
    assert_eq!(bench.said().len(), 0);
    // Revoked before the answer: the agent may have seen it.
    bench.answer_all(OK);
    bench.block("ds/ds3-1/ds1-4/*", BlockHow::Graceful(Duration::from_secs(300)));
    bench.unblock("ds/ds3-1/ds1-4/*");
    assert_eq!(bench.said(), ["graceful ds/ds3-1/ds1-4/* RD 300 E 901", "cancel", "cancel-graceful ds/ds3-1/ds1-4/*"]);
}

#[test]
fn a_graceful_block_without_a_delay_ends_with_the_connections() {
    // G-RSI-03
    let mut bench = Bench::up(&[plan(T1, 1)]);
    bench.block("*", BlockHow::Graceful(Duration::ZERO));
    bench.run(200);
    assert_eq!(bench.said(), ["graceful * E 901"]);
    bench.answer_all(OK);
    bench.handle(Event::Idle { endpoints: EndpointRange { first: 0, count: 23 } });
    bench.run(200);
    assert_eq!(bench.said().len(), 23);
    bench.answer_all(OK);
    bench.run(600_000);
    assert_eq!(bench.said().len(), 0);
    // A failure takes the last connection.
    bench.alarm("ds/ds1-1", true, true);
    bench.run(200);
    assert_eq!(bench.said(), ["forced ds/ds1-1/24 E 901"]);
    assert_eq!(bench.coordinator.endpoint(EndpointIndex(23)).unwrap().admin, Admin::Blocked);
}

#[test]
fn a_forced_block_and_its_end() {
    // G-RSI-04, G-RSI-07
    let mut bench = Bench::up(T3_1);
    bench.block("ds/ds3-1/ds1-3/7", BlockHow::Force);
    assert_eq!(bench.said(), ["forced ds/ds3-1/ds1-3/7 E 901"]);
    bench.answer_all(OK);
    bench.unblock("ds/ds3-1/ds1-3/7");
    assert_eq!(bench.said(), ["restart ds/ds3-1/ds1-3/7"]);
}

#[test]
fn an_outage_too_short_to_be_told_is_still_a_restart() {
    // G-RSI-04: the connections are gone.
    let mut bench = Bench::up(T3_1);
    bench.alarm("ds/ds3-1/ds1-3", true, true);
    bench.alarm("ds/ds3-1/ds1-3", false, true);
    assert_eq!(bench.services(), [(24, false, 531), (24, true, 501)]);
    bench.run(1000);
    assert_eq!(bench.said(), ["restart ds/ds3-1/ds1-3/*"]);
}

#[test]
fn draining_leaves_without_a_limit() {
    let mut bench = Bench::up(T3_1);
    bench.alarm("ds/ds3-1/ds1-3", true, true);
    bench.run(200);
    bench.answer_all(OK);
    bench.handle(Event::Drain);
    assert_eq!(bench.said().len(), 27);
    bench.answer_all(OK);
    // A recovery meanwhile is a restart first, then graceful.
    bench.alarm("ds/ds3-1/ds1-3", false, true);
    bench.run(200);
    assert_eq!(bench.said(), ["restart ds/ds3-1/ds1-3/*"]);
    let mut bench = Bench::up(T3_1);
    bench.handle(Event::Drain);
    assert_eq!(bench.said(), ["graceful * E 901"]);
    bench.run(100_000);
    bench.handle(Event::Undrain);
    assert_eq!(bench.said(), ["cancel", "cancel-graceful *"]);
}

#[test]
fn an_endpoint_that_recovers_while_leaving_is_told_both() {
    let mut bench = Bench::up(T3_1);
    bench.alarm("ds/ds3-1", true, true);
    bench.run(200);
    bench.answer_all(OK);
    bench.handle(Event::Drain);
    bench.alarm("ds/ds3-1", false, true);
    bench.run(200);
    assert_eq!(bench.sent().len(), 1);
    bench.answer_all(OK);
    assert_eq!(bench.said(), ["graceful * E 901"]);
}

#[test]
fn shutdown_is_graceful_then_forced() {
    let mut bench = Bench::up(T3_1);
    bench.handle(Event::Calls { core: CoreId(1), up: 3 });
    bench.handle(Event::Shutdown);
    assert_eq!(bench.said(), ["graceful * RD 5 E 901"]);
    bench.answer_all(OK);
    bench.run(4999);
    assert_eq!(bench.said().len(), 0);
    bench.run(1);
    assert_eq!(bench.services(), [(672, false, 501)]);
    assert_eq!(bench.sent().len(), 1);
    bench.answer_all(OK);
    assert_eq!(bench.said(), ["complete"]);
    bench.run(1_000_000);
    assert_eq!(bench.said().len(), 0);
}

#[test]
fn shutdown_without_calls_does_not_wait_for_them() {
    let mut bench = Bench::up(T3_1);
    bench.handle(Event::Shutdown);
    assert_eq!(bench.sent().len(), 1);
    bench.answer_all(OK);
    assert_eq!(bench.said(), ["forced * E 901"]);
    // No answer: it ends all the same.
    bench.run(2999);
    assert_eq!(bench.said().len(), 0);
    bench.run(1);
    assert_eq!(bench.said(), ["complete"]);
    // The calls end meanwhile, and the agent is silent.
    let mut bench = Bench::up(T3_1);
    bench.handle(Event::Calls { core: CoreId(0), up: 1 });
    bench.handle(Event::Shutdown);
    bench.run(2000);
    bench.handle(Event::Calls { core: CoreId(0), up: 0 });
    assert_eq!(bench.said(), ["graceful * RD 5 E 901", "cancel", "forced * E 901"]);
}

#[test]
fn shutdown_during_power_on_only_says_forced() {
    let mut bench = Bench::new(&[plan(T1, 1)], 8, |_| {});
    bench.handle(Event::Shutdown);
    assert_eq!(bench.said(), ["forced * E 901"]);
    bench.run(3000);
    assert_eq!(bench.said(), ["complete"]);
}

#[test]
fn groups_are_told_apart_and_ranges_help() {
    // G-RST-11, G-EPN-15, MAP-03, issue 2 must hold 5
    let half = Event::Group { endpoints: EndpointRange { first: 0, count: 12 }, group: 1 };
    let mut bench = Bench::new(&[plan(T1, 1)], 4, |_| {});
    bench.handle(half);
    bench.run(2500);
    bench.answer_all(OK);
    assert_eq!(bench.coordinator.announcements().count(), 24);
    let ranges = Forms { widest: Widest::Gateway, ranges: true };
    let mut bench = Bench::new(&[plan(T1, 1)], 4, |settings| settings.forms = ranges);
    bench.handle(half);
    bench.run(2500);
    assert_eq!(bench.said(), ["restart ds/ds1-1/[1-12] to 1", "restart ds/ds1-1/[13-24]"]);
}

#[test]
fn a_range_that_is_refused_is_told_in_plain_names() {
    // G-EPN-14, NAM-04
    let ranges = Forms { widest: Widest::Gateway, ranges: true };
    let mut bench = Bench::new(&[plan(T1, 1)], 4, |settings| settings.forms = ranges);
    bench.handle(Event::Group { endpoints: EndpointRange { first: 0, count: 2 }, group: 1 });
    bench.handle(Event::Group { endpoints: EndpointRange { first: 2, count: 22 }, group: 2 });
    bench.run(2500);
    let first = bench.sent()[0].1;
    assert_eq!(bench.said(), ["restart ds/ds1-1/[1-2] to 1", "restart ds/ds1-1/[3-24] to 2"]);
    bench.handle(Event::Outcome { handle: first, outcome: Outcome::Permanent(500) });
    assert_eq!(bench.said(), ["restart ds/ds1-1/1 to 1", "restart ds/ds1-1/2 to 1"]);
}

#[test]
fn another_notified_entity_splits_what_is_tried_again() {
    // G-DIS-12, G-DIS-17
    let mut bench = Bench::new(&[plan(T1, 1)], 4, |_| {});
    bench.run(2500);
    bench.answer_all(Outcome::Unanswered);
    let endpoint = bench.endpoint("ds/ds1-1/5");
    bench.handle(Event::Group { endpoints: EndpointRange { first: endpoint.0, count: 1 }, group: 2 });
    bench.command("ds/ds1-1/5");
    let said = bench.said();
    assert_eq!(said.len(), 24);
    assert!(said.contains(&"restart ds/ds1-1/5 to 2".to_string()) && said.contains(&"restart ds/ds1-1/6".to_string()));
}

#[test]
fn disconnected_endpoints_wait_and_tell_how_long_they_were_cut_off() {
    // G-DIS-02, G-DIS-03, G-DIS-04, G-DIS-10, G-RSI-05
    let mut bench = Bench::up(T3_1);
    let endpoints = bench.topology.endpoints_of(bench.facility("ds/ds3-1/ds1-9"));
    bench.handle(Event::Disconnected { endpoints });
    bench.run(900);
    assert_eq!(bench.said().len(), 0);
    bench.run(14_500);
    let sent = bench.sent();
    let seconds = sent[0].0.since(Time::from_millis(3000)).as_secs();
    let text = format!("disconnected ds/ds3-1/ds1-9/* RD {seconds}");
    assert_eq!(bench.said(), [text]);
    bench.handle(Event::Outcome { handle: sent[0].1, outcome: Outcome::Unanswered });
    // Local activity counts after Tdmin only.
    let endpoint = EndpointIndex(endpoints.first);
    bench.handle(Event::Trigger { endpoint, activity: Activity::Local });
    assert_eq!(bench.said().len(), 0);
    bench.command("ds/ds3-1/ds1-9/2");
    assert_eq!(bench.sent().len(), 1);
    bench.answer_all(OK);
    bench.run(3_600_000);
    assert_eq!(bench.said().len(), 0);
    // It may happen again, and a failure meanwhile is told as such (G-DIS-11).
    bench.handle(Event::Disconnected { endpoints });
    bench.alarm("ds/ds3-1/ds1-9", true, true);
    bench.run(60_000);
    assert_eq!(bench.said(), ["forced ds/ds3-1/ds1-9/* E 905"]);
}

#[test]
fn local_activity_after_tdmin_ends_the_wait() {
    // G-DIS-04
    let mut bench = Bench::new(T3_1, 6, |s| s.disconnected_initial = Duration::from_secs(60));
    bench.run(60);
    bench.answer_all(Outcome::Unanswered);
    let wait = bench.coordinator.announcements().next().unwrap().state;
    assert!(matches!(wait, AnnouncementState::Waiting(due) if due > Time::from_millis(17_000)), "the seed gives a long wait: {wait:?}");
    bench.run(14_000);
    let endpoint = bench.endpoint("ds/ds3-1/ds1-1/1");
    bench.handle(Event::Trigger { endpoint, activity: Activity::Local });
    assert_eq!(bench.said().len(), 0);
    bench.run(1000);
    bench.handle(Event::Trigger { endpoint, activity: Activity::Local });
    assert_eq!(bench.said(), ["restart *"]);
}

#[test]
fn no_more_than_so_many_announcements_are_under_way() {
    let each = Forms { widest: Widest::Endpoint, ranges: false };
    let mut bench = Bench::new(&[plan(T1, 1), plan(T1, 2)], 4, |settings| settings.forms = each);
    let to_another = bench.topology.endpoints_of(bench.facility("ds/ds1-2"));
    bench.handle(Event::Group { endpoints: EndpointRange { count: 1, ..to_another }, group: 1 });
    bench.run(2500);
    let sent = bench.sent();
    assert_eq!(sent.len(), 32 + 1, "each group has its own bound");
    bench.log.clear();
    for (n, (_, handle, _)) in sent.into_iter().enumerate() {
        bench.handle(Event::Outcome { handle, outcome: OK });
        assert!(bench.sent().len() <= n + 1);
    }
    assert_eq!(bench.sent().len(), 48 - 33);
}

#[test]
fn announcements_say_that_they_are_not_confirmed_and_then_that_they_are() {
    // G-RST-03, G-RST-06
    let mut bench = Bench::new(T3_1, 5, |_| {});
    bench.run(60);
    let at = bench.log.iter().position(|(_, a)| matches!(a, Action::SendRsip { .. })).unwrap();
    let (handle, pattern) = (bench.sent()[0].1, Pattern::Gateway);
    assert_eq!(bench.log[at - 1].1, Action::Announced { handle, pattern, confirmed: false });
    bench.answer_all(OK);
    assert_eq!(bench.log[0].1, Action::Announced { handle, pattern, confirmed: true });
}

#[test]
fn work_on_a_large_gateway_is_cut_into_slices() {
    let facilities: Vec<_> = (1..=149).map(|unit| plan(T3, unit)).collect();
    let mut bench = Bench::new(&facilities, 5, |_| {});
    let slice = 2048;
    bench.run(60);
    let counts: Vec<_> = bench.services().iter().map(|s| s.0).collect();
    assert_eq!(counts.iter().sum::<u32>(), 149 * 672);
    assert!(counts.iter().all(|n| *n <= slice), "{counts:?}");
    assert_eq!(bench.said(), ["restart *"]);
    // Each endpoint is looked at four times (what it should be, its class, under its old and its new announcement); between polls
    // the core does other work.
    bench.answer_all(OK);
    bench.coordinator.handle(bench.now, Event::Drain);
    let mut polls = 0;
    while bench.coordinator.deadline() <= bench.now {
        bench.coordinator.poll(bench.now);
        polls += 1;
    }
    assert!(polls >= 3 * 149 * 672 / slice, "{polls}");
}

#[test]
fn many_disconnects_become_one_announcement() {
    // G-DIS-12, and what an agent that returns is told: every endpoint of a T3 loses it at another time.
    let mut bench = Bench::up(T3_1);
    let (mut rng, mut order): (Rng, Vec<u32>) = (Rng::new(4), (0..672).collect());
    order.sort_by_cached_key(|_| rng.next());
    let lost_at = bench.now;
    for endpoint in order {
        bench.handle(Event::Disconnected { endpoints: EndpointRange { first: endpoint, count: 1 } });
        bench.run(30);
    }
    // Nobody answers for an hour; what is under way is given up after 20 s.
    let mut most = 0;
    for _ in 0..180 {
        let open = std::mem::take(&mut bench.open);
        most = most.max(open.len());
        bench.log.clear();
        bench.run(20_000);
        for handle in open {
            bench.handle(Event::Outcome { handle, outcome: Outcome::Unanswered });
        }
    }
    assert!(most <= 32, "{most}");
    // The agent is back: it hears of the whole T3 once.
    bench.answer_all(Outcome::Unanswered);
    bench.run(601_000);
    let seconds = bench.sent()[0].0.since(lost_at + Duration::from_millis(200)).as_secs();
    let said = bench.said();
    assert!([seconds, seconds + 1].iter().any(|s| said == [format!("disconnected ds/ds3-1/*/* RD {s}")]), "{said:?}");
    bench.answer_all(OK);
    bench.run(3_600_000);
    assert_eq!(bench.said().len(), 0);
}

#[test]
fn an_announcement_about_leaving_that_is_not_heard_disconnects() {
    // G-DIS-06
    let mut bench = Bench::up(T3_1);
    bench.handle(Event::Drain);
    bench.log.clear();
    bench.answer_all(Outcome::Unanswered);
    assert!(bench.log.contains(&(bench.now, Action::Disconnected { endpoints: EndpointRange { first: 0, count: 672 } })));
    bench.log.clear();
    bench.run(15_500);
    let said = bench.said();
    assert!(said.len() == 1 && said[0].starts_with("disconnected ds/ds3-1/*/* RD "), "{said:?}");
    bench.answer_all(OK);
    assert_eq!(bench.said(), ["graceful * E 901"], "then that they leave");
}

#[test]
fn an_announcement_under_way_follows_its_endpoints_to_another_entity() {
    // G-NET-13
    let mut bench = Bench::new(&[plan(T1, 1)], 4, |_| {});
    bench.run(2500);
    let handle = bench.sent()[0].1;
    bench.log.clear();
    bench.handle(Event::Group { endpoints: bench.topology.endpoints(), group: 3 });
    bench.run(300);
    assert_eq!(bench.log, [(bench.log[0].0, Action::Redirect { handle, group: 3 })]);
    bench.handle(Event::Outcome { handle, outcome: OK });
    assert!(matches!(bench.coordinator.announcements().next().unwrap().state, AnnouncementState::Confirmed));
}
