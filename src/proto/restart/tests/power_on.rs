//! The first announcement after power-on.

use super::*;

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
