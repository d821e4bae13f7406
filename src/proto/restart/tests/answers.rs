//! What follows an answer, or none: Table M-11.

use super::*;

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
