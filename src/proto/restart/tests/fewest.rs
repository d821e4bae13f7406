//! The fewest names for what is still to be told, also when much changes before the agent answers.

use super::*;

#[test]
fn what_is_true_of_nothing_any_more_is_taken_back_before_the_truth_is_told() {
    // At most one live announcement covers an endpoint.
    let mut bench = Bench::up(&[plan(T1, 1), plan(T1, 2)]);
    bench.alarm("ds/ds1-2", true, true);
    bench.run(200);
    assert_eq!(bench.said(), ["forced ds/ds1-2/* E 905"]);
    // Back before the answer: the agent may have seen it or not, so it is told restart.
    bench.alarm("ds/ds1-2", false, true);
    bench.run(200);
    assert_eq!(bench.said(), ["cancel", "restart ds/ds1-2/*"]);
}

#[test]
fn what_is_still_true_of_others_stays_and_the_truth_follows_its_answer() {
    // G-RSI-08, MAP-03: taken back, the others would have to be named one by one.
    let mut bench = Bench::new(T3_1, 5, |_| {});
    bench.run(60);
    assert_eq!(bench.said(), ["restart *"]);
    bench.alarm("ds/ds3-1/ds1-2", true, true);
    bench.run(200);
    assert_eq!(bench.said().len(), 0);
    bench.answer_all(OK);
    assert_eq!(bench.said(), ["forced ds/ds3-1/ds1-2/* E 905"]);
    // When the rest has failed as well there is nothing it is true of.
    let mut bench = Bench::new(T3_1, 5, |_| {});
    bench.run(60);
    bench.alarm("ds/ds3-1/ds1-2", true, true);
    bench.run(200);
    bench.alarm("ds/ds3-1", true, true);
    bench.run(200);
    assert_eq!(bench.said(), ["restart *", "cancel", "forced ds/ds3-1/*/* E 905"]);
}

#[test]
fn flaps_before_the_first_restart_is_answered_cost_one_message_each() {
    let flap = |bench: &mut Bench| {
        bench.alarm("ds/ds3-1/ds1-2", true, true);
        bench.run(300);
        bench.alarm("ds/ds3-1/ds1-2", false, true);
        bench.run(300);
    };
    let mut bench = Bench::new(T3_1, 5, |_| {});
    bench.run(60);
    flap(&mut bench);
    flap(&mut bench);
    assert_eq!(bench.said(), ["restart *"]);
    bench.answer_all(OK);
    assert_eq!(bench.said(), ["restart ds/ds3-1/ds1-2/*"]);
    // Nobody answers: all are in the same state when it is said again.
    let mut bench = Bench::new(T3_1, 5, |_| {});
    bench.run(60);
    flap(&mut bench);
    bench.block("ds/ds3-1/ds1-7/*", BlockHow::Force);
    bench.unblock("*");
    bench.answer_all(Outcome::Unanswered);
    bench.run(16_000);
    assert_eq!(bench.said(), ["restart ds/ds3-1/*/*"]);
    bench.answer_all(OK);
    bench.run(3_600_000);
    assert_eq!(bench.said().len(), 0);
}

#[test]
fn a_command_for_what_is_held_back_is_answered_behind_its_own_restart() {
    // G-RST-03: the restart of the gateway may have reached the agent before the T1 failed.
    let mut bench = Bench::new(T3_1, 5, |_| {});
    bench.run(60);
    bench.alarm("ds/ds3-1/ds1-2", true, true);
    bench.run(300);
    bench.command("ds/ds3-1/ds1-2/1");
    assert_eq!(bench.said(), ["restart *"], "what is out of service refuses anyway");
    bench.alarm("ds/ds3-1/ds1-2", false, true);
    bench.run(300);
    bench.command("ds/ds3-1/ds1-1/1");
    assert_eq!(bench.said().len(), 0);
    bench.command("ds/ds3-1/ds1-2/1");
    assert_eq!(bench.said(), ["cancel", "restart ds/ds3-1/*/*"]);
}

#[test]
fn a_wider_forced_overtakes_narrower_ones_under_way() {
    let mut bench = Bench::up(T3_1);
    bench.block("ds/ds3-1/ds1-1/1", BlockHow::Force);
    bench.block("ds/ds3-1/ds1-1/2", BlockHow::Force);
    bench.block("ds/ds3-1/ds1-5/1", BlockHow::Force);
    assert_eq!(bench.said().len(), 3);
    bench.block("ds/ds3-1/ds1-1/*", BlockHow::Force);
    assert_eq!(bench.said(), ["cancel", "cancel", "forced ds/ds3-1/ds1-1/* E 901"]);
    bench.answer_all(OK);
    // Where it saves nothing what is under way goes on.
    bench.block("ds/ds3-1/ds1-6/1", BlockHow::Force);
    bench.block("ds/ds3-1/ds1-6/2", BlockHow::Force);
    assert_eq!(bench.said(), ["forced ds/ds3-1/ds1-6/1 E 901", "forced ds/ds3-1/ds1-6/2 E 901"]);
}

#[test]
fn what_a_silent_agent_is_to_be_told_joins_what_it_was_told_before() {
    // Announcements that nobody answered, each T1 by itself, because one was out.
    let mut bench = Bench::new(T3_1, 5, |_| {});
    bench.alarm("ds/ds3-1/ds1-7", true, true);
    bench.run(60);
    assert_eq!(bench.said().len(), 28);
    bench.answer_all(Outcome::Unanswered);
    bench.log.clear();
    bench.alarm("ds/ds3-1/ds1-7", false, true);
    bench.run(16_000);
    assert_eq!(bench.said(), ["restart ds/ds3-1/*/*"]);
    // While it is silent it is asked by one message at a time.
    bench.block("ds/ds3-1/ds1-1/*", BlockHow::Force);
    bench.block("ds/ds3-1/ds1-4/*", BlockHow::Force);
    bench.answer_all(Outcome::Unanswered);
    bench.run(16_000);
    assert_eq!(bench.said(), ["forced ds/ds3-1/ds1-1/* E 901"]);
    bench.unblock("*");
    bench.run(20_000);
    assert_eq!(bench.said(), ["cancel", "restart ds/ds3-1/*/*"]);
    bench.answer_all(OK);
    bench.run(3_600_000);
    assert_eq!(bench.said().len(), 0);
}

#[test]
fn what_an_agent_refuses_for_now_is_told_again_in_the_fewest_names() {
    let mut bench = Bench::new(T3_1, 5, |_| {});
    bench.alarm("ds/ds3-1/ds1-7", true, true);
    bench.run(60);
    bench.answer_all(Outcome::Transient(400));
    bench.log.clear();
    bench.alarm("ds/ds3-1", true, true);
    bench.run(1500);
    assert_eq!(bench.said(), ["forced ds/ds3-1/*/* E 905"]);
}

#[test]
fn endpoints_that_leave_once_they_are_announced_are_told_so_together() {
    let mut bench = Bench::up(&[plan(T1, 1), plan(T1, 2)]);
    bench.block("*", BlockHow::Force);
    bench.answer_all(OK);
    bench.unblock("ds/ds1-1/*");
    bench.unblock("ds/ds1-2/*");
    bench.handle(Event::Drain);
    assert_eq!(bench.said(), ["restart ds/ds1-1/*", "restart ds/ds1-2/*"]);
    bench.answer_all(OK);
    bench.run(200);
    assert_eq!(bench.said(), ["graceful * E 901"]);
}

#[test]
fn what_comes_back_is_of_its_provisioned_agent_before_its_owner_says_so() {
    // G-RST-12: 24 names while one channel is taken for another agent's.
    let mut bench = Bench::up(&[plan(T1, 1), plan(T1, 2)]);
    let named = EndpointRange { first: bench.endpoint("ds/ds1-1/5").0, count: 1 };
    let span = bench.topology.span_of(bench.endpoint("ds/ds1-2/1")).unwrap();
    bench.coordinator.provision(span, 1);
    for (name, endpoints, group) in [("ds/ds1-1/*", named, 1), ("ds/ds1-2/*", EndpointRange { first: 24, count: 2 }, 2)] {
        bench.handle(Event::Group { endpoints, group });
        bench.block(name, BlockHow::Force);
        bench.answer_all(OK);
    }
    bench.log.clear();
    bench.unblock("*");
    assert_eq!(bench.said(), ["restart ds/ds1-1/*", "restart ds/ds1-2/* to 1"]);
}
