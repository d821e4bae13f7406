//! Blocks, draining, shutdown.

use super::*;

#[test]
fn a_graceful_block_with_a_delay_ends_forced() {
    // G-RSI-03, G-RSI-06, MAP-02
    let mut bench = Bench::up(T3_1);
    bench.block("ds/ds3-1/ds1-3/*", BlockHow::Graceful(Duration::from_secs(10)));
    assert_eq!(bench.services(), [(24, true, 501)]);
    bench.run(200);
    assert_eq!(bench.said(), ["graceful ds/ds3-1/ds1-3/* RD 10 E 901"]);
    bench.answer_all(OK);
    bench.run(9799);
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
    bench.run(200);
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
fn a_graceful_block_of_what_is_idle_is_told_forced_at_once() {
    // G-RSI-03, G-RSI-08: there is nothing to wait for, and nobody is told twice.
    let mut bench = Bench::up(T3_1);
    let endpoints = bench.topology.endpoints_of(bench.facility("ds/ds3-1/ds1-3"));
    bench.alarm("ds/ds3-1/ds1-4", true, true);
    bench.run(200);
    bench.answer_all(OK);
    bench.log.clear();
    bench.block("ds/ds3-1/ds1-[3-4]/*", BlockHow::Graceful(Duration::from_secs(10)));
    bench.handle(Event::Idle { endpoints });
    bench.run(20_000);
    assert_eq!(bench.said(), ["forced ds/ds3-1/ds1-3/* E 901"]);
    bench.answer_all(OK);
    // One is busy: all are told that they leave, and go together.
    let endpoints = bench.topology.endpoints_of(bench.facility("ds/ds3-1/ds1-5"));
    bench.block("ds/ds3-1/ds1-5/*", BlockHow::Graceful(Duration::from_secs(10)));
    bench.handle(Event::Idle { endpoints: EndpointRange { count: 23, ..endpoints } });
    bench.run(200);
    assert_eq!(bench.said(), ["graceful ds/ds3-1/ds1-5/* RD 10 E 901"]);
    bench.answer_all(OK);
    bench.handle(Event::Idle { endpoints });
    bench.run(9700);
    assert_eq!(bench.said().len(), 0);
    bench.run(100);
    assert_eq!(bench.said(), ["forced ds/ds3-1/ds1-5/* E 901"]);
}

#[test]
fn operators_see_since_when_they_hold_something() {
    let mut bench = Bench::up(T3_1);
    let span = bench.topology.span_of(bench.endpoint("ds/ds3-1/ds1-3/1")).unwrap();
    let since = |bench: &Bench| (bench.coordinator.held_since(span), bench.coordinator.leaving_since());
    assert_eq!(since(&bench), (None, None));
    bench.block("ds/ds3-1/ds1-3/1", BlockHow::Force);
    let blocked = bench.now;
    bench.run(1000);
    bench.handle(Event::Drain);
    let drained = bench.now;
    bench.block("ds/ds3-1/ds1-3/2", BlockHow::Force);
    bench.unblock("ds/ds3-1/ds1-3/1");
    bench.handle(Event::Drain);
    bench.run(1000);
    assert_eq!(since(&bench), (Some(blocked), Some(drained)));
    bench.unblock("ds/ds3-1/ds1-3/2");
    bench.handle(Event::Undrain);
    assert_eq!(since(&bench), (None, None));
    bench.block("ds/ds3-1/*/*", BlockHow::Graceful(Duration::from_secs(10)));
    assert_eq!(since(&bench).0, Some(bench.now));
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
    bench.run(200);
    assert_eq!(bench.said(), ["graceful * E 901"]);
}

#[test]
fn shutdown_is_graceful_then_forced() {
    let mut bench = Bench::up(T3_1);
    bench.handle(Event::Calls { core: CoreId(1), up: 3 });
    bench.shut_down(5);
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
    bench.shut_down(5);
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
    bench.shut_down(5);
    bench.run(2000);
    bench.handle(Event::Calls { core: CoreId(0), up: 0 });
    assert_eq!(bench.said(), ["graceful * RD 5 E 901", "cancel", "forced * E 901"]);
}

#[test]
fn a_shutdown_told_late_only_says_forced() {
    let mut bench = Bench::up(T3_1);
    bench.handle(Event::Calls { core: CoreId(1), up: 3 });
    bench.shut_down(0);
    assert_eq!(bench.said(), ["forced * E 901"]);
    bench.answer_all(OK);
    assert_eq!(bench.said(), ["complete"]);
    // Ordered again, as by one who does not know whether the first order was heard: it does not begin anew.
    bench.shut_down(5);
    bench.run(10_000);
    assert_eq!(bench.said().len(), 0);
}

#[test]
fn shutdown_during_power_on_only_says_forced() {
    let mut bench = Bench::new(&[plan(T1, 1)], 8, |_| {});
    bench.shut_down(5);
    assert_eq!(bench.said(), ["forced * E 901"]);
    bench.run(3000);
    assert_eq!(bench.said(), ["complete"]);
}
