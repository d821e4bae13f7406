//! How many announcements there are, and of what.

use super::*;

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
