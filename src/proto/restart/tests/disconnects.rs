//! The disconnected procedure, and other notified entities.

use super::*;

#[test]
fn another_notified_entity_splits_what_is_tried_again() {
    // G-DIS-12, G-DIS-17
    let mut bench = Bench::new(&[plan(T1, 1)], 4, |_| {});
    bench.run(2500);
    bench.answer_all(Outcome::Unanswered);
    let endpoint = bench.endpoint("ds/ds1-1/5");
    bench.handle(Event::Group { endpoints: EndpointRange { first: endpoint.0, count: 1 }, group: 2 });
    bench.command("ds/ds1-1/5");
    let mut said = bench.said();
    assert_eq!(said.len(), 2, "one to each, as long as that is silent");
    bench.command("ds/ds1-1/7");
    said.extend(bench.said());
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
    bench.run(200);
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

#[test]
fn an_agent_that_commands_soon_after_it_was_lost_hears_of_the_t3_once() {
    // G-DIS-03, G-DIS-12: whatever is under way or waits for a longer time when its command comes.
    for seed in 0..40 {
        let mut bench = Bench::up(T3_1);
        let (mut rng, mut order): (Rng, Vec<u32>) = (Rng::new(seed), (0..672).collect());
        order.sort_by_cached_key(|_| rng.next());
        let mut given_up: Vec<(Time, Handle)> = Vec::new();
        let mut silent = |bench: &mut Bench, ms: u64| {
            bench.run(ms);
            let open: Vec<Handle> = std::mem::take(&mut bench.open);
            given_up.extend(open.into_iter().map(|handle| (bench.now + Duration::from_secs(20), handle)));
            let (over, left) = given_up.iter().copied().partition(|(at, _)| *at <= bench.now);
            given_up = left;
            for (_, handle) in over {
                bench.handle(Event::Outcome { handle, outcome: Outcome::Unanswered });
            }
        };
        for endpoint in order {
            bench.handle(Event::Disconnected { endpoints: EndpointRange { first: endpoint, count: 1 } });
            silent(&mut bench, 60);
        }
        for _ in 0..rng.below(30) {
            silent(&mut bench, 1000);
        }
        // It is back, and what is under way still reaches it.
        bench.log.clear();
        bench.command("ds/ds3-1/ds1-1/1");
        let mut said = bench.said();
        for (_, handle) in given_up {
            bench.handle(Event::Outcome { handle, outcome: OK });
        }
        while !bench.open.is_empty() || bench.coordinator.deadline() < Time::NEVER {
            bench.answer_all(OK);
            bench.run(60_000);
            said.extend(bench.said());
        }
        said.retain(|said| said != "cancel");
        assert_eq!(said.len(), 1, "seed {seed}: {said:?}");
    }
}
