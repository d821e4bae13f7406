//! How cores wait for work, and what they do not do meanwhile (issue 3, "Loops").

use super::agent::Agent;
use super::gateway::{Gateway, Tuning};

/// Wake-ups of cores by cores while 200 commands take the hop to the other core.
fn wakes(busy_poll: &str) -> u64 {
    let tuning = Tuning::new().layout(2, 0, 0).set("transport.steering", "\"off\"").set("cores.busy_poll", busy_poll);
    let gateway = Gateway::start(tuning);
    let mut agent = Agent::of(&gateway);
    let mut audit = |count: u32| {
        for n in 0..count {
            assert_eq!(agent.ask("AUEP", &format!("ds/ds3-1/ds1-{}/1", 1 + n % 2), &[]).code, Some(200));
        }
    };
    audit(20);
    let (before, forwarded) = (gateway.counter("wakes_sent"), gateway.counter("messages_forwarded"));
    audit(200);
    assert_eq!(gateway.counter("messages_forwarded") - forwarded, 100);
    gateway.counter("wakes_sent") - before
}

#[test]
fn a_core_that_spins_is_not_woken() {
    assert_eq!(wakes("\"1s\""), 0);
    assert!(wakes("\"off\"") > 50, "a core that sleeps is");
}
