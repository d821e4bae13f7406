//! The scenario matrix of overload control, as far as it needs no H.248 messages: the product's throttle in front of the product's detector,
//! no parameter changed between scenarios. Figures over 60 s from t = 10 s; `--nocapture` prints them.
//!
//! What must hold in every sustained overload: useful work at least 0.95 of capacity, p99 of set-up at most twice the level at which the
//! detector begins, notifications within a factor of two of the sum of the goals.

mod model;

use std::time::Duration;

use model::{Arrivals, Outcome, Scenario, run};
use tollgate::proto::overload::Levels;
use tollgate::proto::overload::throttle::Parameters;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=1;

fn show(scenario: &Scenario, outcome: &Outcome) {
    let admitted: Vec<String> = outcome.admitted.iter().map(|(rate, share)| format!("{rate:.0}/s ({share:.3})")).collect();
    println!(
        "{:32} useful {:.3} p50 {:.0?} p99 {:.0?} notifications {:.1}/s priority lost {:.5} admitted {}",
        scenario.name,
        outcome.useful,
        outcome.p50,
        outcome.p99,
        outcome.notified,
        outcome.priority_lost,
        admitted.join(" ")
    );
}

/// Plays a scenario of sustained overload with each seed and checks what must hold in all of them.
fn sustained(scenario: &Scenario, mut look: impl FnMut(&Outcome)) {
    for seed in SEEDS {
        let outcome = run(scenario, seed);
        show(scenario, &outcome);
        assert!(outcome.useful >= 0.95, "{}: useful {}", scenario.name, outcome.useful);
        assert!(outcome.p99 <= 2 * Levels::default().enter, "{}: p99 {:?}", scenario.name, outcome.p99);
        // Each Add of a call is notified: the rate counts calls.
        let counted = if scenario.first_only { 1 } else { scenario.adds };
        let ratio = outcome.notified / f64::from(counted) / (scenario.parameters.goal * scenario.demands.len() as f64);
        assert!((0.5..=2.0).contains(&ratio), "{}: {} notifications a second", scenario.name, outcome.notified);
        look(&outcome);
    }
}

/// The rates differ from their mean by a tenth at most.
fn fair(rates: &[(f64, f64)]) {
    let mean = rates.iter().map(|(rate, _)| rate).sum::<f64>() / rates.len() as f64;
    assert!(rates.iter().all(|(rate, _)| (rate / mean - 1.0).abs() <= 0.1), "{rates:?}");
}

#[test]
fn a_step_to_any_multiple_of_capacity_settles_at_full_capacity() {
    for multiple in [1.3, 2.0, 4.0, 10.0] {
        for arrivals in [Arrivals::Poisson, Arrivals::Constant] {
            let scenario = Scenario { arrivals, ..Scenario::new("step", &[multiple]) };
            sustained(&scenario, |outcome| assert!(outcome.settled(1000.0).is_some_and(|second| second <= 10)));
        }
    }
}

#[test]
fn a_ramp_is_followed() {
    let ramp = || Box::new(|t: f64| 50.0 * t) as Box<dyn Fn(f64) -> f64>;
    // From twice the capacity on at 40 s; the ramp goes on to 5 times.
    sustained(&Scenario { demands: vec![ramp()], from: 40.0, seconds: 100.0, ..Scenario::new("ramp", &[]) }, |_| {});
}

#[test]
fn bursts_between_calm_do_not_last_longer_than_they_are() {
    let bursts = || Box::new(|t: f64| if t % 20.0 < 2.0 { 4000.0 } else { 500.0 }) as Box<dyn Fn(f64) -> f64>;
    for seed in SEEDS {
        let all = Scenario { demands: vec![bursts()], ..Scenario::new("bursts", &[]) };
        let outcome = run(&all, seed);
        show(&all, &outcome);
        // Offered are 0.5 and a burst of four times the capacity in a tenth of the time: of the calm nothing is lost.
        assert!(outcome.useful >= 0.5, "{}", outcome.useful);
        let calm = Scenario { demands: vec![bursts()], from: 26.0, seconds: 39.9, ..Scenario::new("calm behind a burst", &[]) };
        let outcome = run(&calm, seed);
        show(&calm, &outcome);
        assert!(outcome.admitted[0].1 > 0.999, "{:?}", outcome.admitted);
    }
}

#[test]
fn half_the_capacity_and_all_of_it_again() {
    let capacity = |t: f64| if (30.0..60.0).contains(&t) { 500.0 } else { 1000.0 };
    let part = |name, from, seconds| Scenario { capacity, from, seconds, ..Scenario::new(name, &[2.0]) };
    for seed in SEEDS {
        let outcomes = [("halved", 32.0, 60.0), ("restored", 75.0, 120.0)].map(|(name, from, seconds)| {
            let scenario = part(name, from, seconds);
            let outcome = run(&scenario, seed);
            show(&scenario, &outcome);
            outcome
        });
        for outcome in outcomes {
            assert!(outcome.useful >= 0.95 && outcome.p99 <= 2 * Levels::default().enter, "{} {:?}", outcome.useful, outcome.p99);
        }
    }
}

#[test]
fn controllers_with_equal_goals_get_equal_rates_whatever_they_ask() {
    sustained(&Scenario::new("2, equal", &[1.0; 2]), |outcome| fair(&outcome.admitted));
    sustained(&Scenario::new("2, unequal", &[3.0, 0.8]), |outcome| fair(&outcome.admitted));
    sustained(&Scenario::new("8, equal", &[0.3; 8]), |outcome| fair(&outcome.admitted));
    sustained(&Scenario::new("8, unequal", &[4.0, 2.0, 1.0, 1.0, 0.5, 0.5, 0.05, 0.05]), |outcome| {
        fair(&outcome.admitted[..6]);
        // Who asks less than its share loses nothing to speak of.
        assert!(outcome.admitted[6..].iter().all(|(_, share)| *share > 0.98), "{:?}", outcome.admitted);
    });
}

#[test]
fn who_asks_two_thirds_of_its_share_loses_next_to_nothing() {
    sustained(&Scenario::new("8, one near its share", &[0.5, 0.4, 0.3, 0.2, 0.2, 0.2, 0.1, 0.02]), |outcome| {
        fair(&outcome.admitted[..6]);
        assert!(outcome.admitted[6].1 > 0.96 && outcome.admitted[7].1 > 0.99, "{:?}", outcome.admitted);
    });
}

#[test]
fn priority_calls_pass() {
    sustained(&Scenario { priority: 0.05, ..Scenario::new("priority", &[2.0]) }, |outcome| assert!(outcome.priority_lost < 0.001));
    // Half of what the gateway can do are priority calls.
    sustained(&Scenario { priority: 0.05, ..Scenario::new("priority, 10 times", &[10.0]) }, |outcome| {
        assert!(outcome.priority_lost < 0.001, "{}", outcome.priority_lost);
    });
}

#[test]
fn lost_notifications_do_not_matter() {
    sustained(&Scenario { loss: 0.01, ..Scenario::new("loss", &[2.0]) }, |_| {});
    sustained(&Scenario { loss: 0.01, ..Scenario::new("loss, 8", &[1.0; 8]) }, |outcome| fair(&outcome.admitted));
}

#[test]
fn one_notification_for_a_call_or_two() {
    // The 2008 corrigendum: each Add, or only the first of a context.
    sustained(&Scenario { adds: 2, ..Scenario::new("two adds", &[2.0]) }, |_| {});
    sustained(&Scenario { adds: 2, first_only: true, ..Scenario::new("two adds, the first told", &[2.0]) }, |_| {});
}

#[test]
fn conference_calls_of_many_legs_are_held_back_as_calls() {
    // OVL-21: eight Adds a call, of which the first is told.
    sustained(&Scenario { adds: 8, first_only: true, ..Scenario::new("conferences", &[3.0]) }, |_| {});
}

#[test]
fn a_hot_core_of_four_leaves_the_others_alone() {
    // OVL-21: one core is offered twice its capacity, the others 30 %; each runs a gateway of its own.
    let scenario = Scenario { cores: 4, ..Scenario::new("a hot core of four", &[2.0, 0.3, 0.3, 0.3]) };
    for seed in SEEDS {
        let outcome = run(&scenario, seed);
        show(&scenario, &outcome);
        assert!(outcome.useful >= 0.9 * 1.9, "of what the skew allows: {}", outcome.useful);
        assert!(outcome.admitted[1..].iter().all(|(_, share)| *share == 1.0), "{:?}", outcome.admitted);
        assert!((5.0..=20.0).contains(&outcome.notified), "{}", outcome.notified);
    }
}

#[test]
fn gateways_on_one_core_that_overload_it_leave_what_one_gives_up_to_the_others() {
    // OVL-21: three virtual gateways with a controller each; at 40 s one stops.
    let asked = |until: f64| Box::new(move |t: f64| if t < until { 1000.0 } else { 0.0 }) as Box<dyn Fn(f64) -> f64>;
    let gateways = |from, seconds| {
        let demands = vec![asked(1e9), asked(1e9), asked(40.0)];
        Scenario { demands, from, seconds, ..Scenario::new("three virtual gateways, one stops", &[]) }
    };
    for seed in SEEDS {
        let scenario = gateways(55.0, 100.0);
        let outcome = run(&scenario, seed);
        show(&scenario, &outcome);
        assert!(outcome.useful >= 0.95 && outcome.p99 <= 2 * Levels::default().enter);
        fair(&outcome.admitted[..2]);
    }
}

#[test]
fn a_gateway_that_refuses_instead_of_telling_works_as_well() {
    // MGCP's 409: the refusal is the notification.
    sustained(&Scenario { refuses: true, ..Scenario::new("409", &[2.0]) }, |_| {});
    sustained(&Scenario { refuses: true, ..Scenario::new("409, 2", &[2.0, 2.0]) }, |outcome| fair(&outcome.admitted));
}

#[test]
fn a_slow_and_a_fast_gateway_need_no_other_parameters() {
    sustained(&Scenario { capacity: |_| 200.0, ..Scenario::new("200 a second", &[0.4]) }, |_| {});
    // Where one overload gives hundreds of notifications the default goal is exceeded; capacity and times are not.
    let fast = Scenario { capacity: |_| 5000.0, ..Scenario::new("5,000 a second", &[10.0]) };
    let outcome = run(&fast, 1);
    show(&fast, &outcome);
    assert!(outcome.useful >= 0.95 && outcome.p99 <= 2 * Levels::default().enter);
    assert!(outcome.notified < 0.02 * 5000.0, "{}", outcome.notified);
    let goal = Parameters { goal: 50.0, ..Parameters::default() };
    sustained(&Scenario { capacity: |_| 5000.0, parameters: goal, ..Scenario::new("5,000 a second, goal 50", &[10.0]) }, |_| {});
}

#[test]
fn below_capacity_nothing_is_refused_and_the_control_ends_with_the_overload() {
    for multiple in [0.7, 0.9] {
        let calm = Scenario { from: 0.0, ..Scenario::new("calm", &[multiple]) };
        let outcome = run(&calm, 1);
        show(&calm, &outcome);
        assert_eq!((outcome.notified, outcome.admitted[0].1, outcome.statistics[0].started), (0.0, 1.0, 0));
    }
    let over = Box::new(|t: f64| if t < 20.0 { 2000.0 } else { 600.0 });
    let outcome = run(&Scenario { demands: vec![over], seconds: 60.0, from: 30.0, ..Scenario::new("over", &[]) }, 1);
    assert_eq!((outcome.on[0], outcome.statistics[0].started, outcome.statistics[0].ended), (false, 1, 1));
    assert!(outcome.p99 < Duration::from_millis(30) && outcome.admitted[0].1 > 0.999);
}
