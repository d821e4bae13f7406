//! `tollgate reload` and SIGHUP: all or nothing, and no call and no command notices.

use super::agent::Agent;
use super::gateway::{Gateway, SOON, Tuning, Watch, eventually, pause};
use libc::SIGHUP;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Changes the file of a running gateway.
pub fn change(gateway: &mut Gateway, path: &str, value: &str) {
    let tuning = gateway.tuning.copy();
    gateway.tuning = tuning.set(path, value);
    gateway.tuning.write();
}

#[test]
fn settings_change_and_the_rest_needs_a_restart() {
    let mut gateway = Gateway::start(Tuning::new().layout(2, 0, 0));
    let mut agent = Agent::of(&gateway);
    let connection = agent.create("ds/ds3-1/ds1-2/3");
    assert!(gateway.order(&["reload"]).contains("nothing"), "{}", gateway.order(&["reload"]));
    change(&mut gateway, "agent.0.duplicates", "\"same-content\"");
    let shown = gateway.order(&["reload", "--dry-run"]);
    assert!(shown.contains("agent[ca].duplicates") && shown.contains("same-content"), "{shown}");
    assert_eq!(gateway.rows(&["agents"])[0]["duplicates"], "id-and-name", "a dry run changes nothing");
    // A changed span besides: nothing of it all takes effect.
    change(&mut gateway, "span.0.unit", "2");
    let refused = gateway.refused(&["reload"]);
    assert!(refused.contains("nothing was changed") && refused.contains("span[") && refused.contains("restart"), "{refused}");
    let dry = gateway.tollgate(&["reload", "--dry-run"]);
    let text = String::from_utf8_lossy(&dry.stdout);
    assert!(dry.status.code() == Some(1) && text.contains("would be refused") && text.contains("restart"), "{dry:?}");
    assert_eq!(gateway.rows(&["agents"])[0]["duplicates"], "id-and-name");
    // A file with mistakes: the same.
    change(&mut gateway, "span.0.unit", "1");
    change(&mut gateway, "timers.t_max", "\"1h\"");
    let refused = gateway.refused(&["reload"]);
    assert!(refused.contains("timers.t_max") && refused.contains("gateway.toml:"), "{refused}");
    assert_eq!(gateway.rows(&["agents"])[0]["duplicates"], "id-and-name");
    change(&mut gateway, "timers.t_max", "\"15s\"");
    let done = gateway.order(&["reload"]);
    assert!(done.contains("timers.t_max") && done.contains("agent[ca].duplicates"), "{done}");
    assert_eq!(gateway.rows(&["agents"])[0]["duplicates"], "same-content");
    assert_eq!(gateway.rows(&["connections"])[0]["connection"], connection.as_str());
}

#[test]
fn an_agent_comes_and_goes() {
    let mut gateway = Gateway::start(Tuning::new().layout(2, 0, 0));
    let mut agent = Agent::of(&gateway);
    let addresses = gateway.tuning.addresses;
    let mut stranger = Agent::at(addresses.stranger(), addresses.gateway());
    let audit = |stranger: &Agent| stranger.command("AUEP", "ds/ds3-1/ds1-2/3", &[]);
    audit(&stranger);
    eventually("it is dropped", SOON, || (gateway.counter("dropped_unlisted_source") == 1).then_some(()));
    let list = format!("[{:?}, {:?}]", addresses.agent().ip().to_string(), addresses.stranger().ip().to_string());
    change(&mut gateway, "agent.0.addresses", &list);
    gateway.signal(SIGHUP);
    eventually("it is taken over", SOON, || (gateway.rows(&["agents"])[0]["addresses"].as_array().unwrap().len() == 2).then_some(()));
    let id = audit(&stranger);
    assert_eq!(stranger.final_of(id, SOON).code, Some(200));
    assert!(gateway.log().contains("agent[ca].addresses"), "{}", gateway.log());
    change(&mut gateway, "agent.0.addresses", &format!("[{:?}]", addresses.agent().ip().to_string()));
    gateway.order(&["reload"]);
    let before = stranger.mail.len();
    audit(&stranger);
    eventually("it is dropped", SOON, || (gateway.counter("dropped_unlisted_source") == 2).then_some(()));
    stranger.listen(Duration::from_millis(50));
    assert_eq!(stranger.mail.len(), before);
    agent.create("ds/ds3-1/ds1-2/3");
    // A bad file by signal: the log says it, and the gateway goes on.
    change(&mut gateway, "agent.0.addresses", "[\"nowhere\"]");
    gateway.signal(SIGHUP);
    eventually("the log says it", SOON, || gateway.log().contains("agent[1].addresses").then_some(()));
    agent.create("ds/ds3-1/ds1-2/4");
}

struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn no_command_notices_a_reload() {
    let mut gateway = Gateway::start(Tuning::new().layout(2, 0, 0));
    let mut agent = Agent::of(&gateway);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let watch = Watch::start();
            let mut ids = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let name = format!("ds/ds3-1/ds1-{}/{}", ids.len() % 28 + 1, ids.len() % 24 + 1);
                ids.push(agent.command("AUEP", &name, &[]));
                // 100 a second by schedule.
                agent.listen((Duration::from_millis(10) * ids.len() as u32).saturating_sub(watch.elapsed()));
            }
            for &id in &ids {
                assert_eq!(agent.final_of(id, SOON).code, Some(200));
            }
            assert_eq!(agent.mail.len(), ids.len(), "one answer each, and nothing else");
            ids.len()
        });
        // Also when a reload fails, or the test would wait for ever.
        let ends = Ends(&over);
        for turn in 0..20 {
            change(&mut gateway, "timers.rto_initial", &format!("\"{}ms\"", 200 + turn % 2));
            change(&mut gateway, "agent.0.ranges", if turn % 2 == 0 { "true" } else { "false" });
            gateway.order(&["reload"]);
            pause(Duration::from_millis(20));
        }
        drop(ends);
        assert!(asking.join().unwrap() > 20);
    });
    gateway.assert_sound();
}

/// A profile and a switch beside it take effect at once; `show agents` says what is in force.
#[test]
fn an_agent_is_spoken_to_as_its_profile_says() {
    let mut gateway = Gateway::start(Tuning::new());
    let mut agent = Agent::of(&gateway);
    let code = |agent: &mut Agent, options: &str| {
        let response = agent.ask("CRCX", "ds/ds3-1/ds1-2/3", &["C: A1", "M: recvonly", options]);
        response.code.unwrap()
    };
    assert_eq!(code(&mut agent, "L: zz:1"), 541);
    change(&mut gateway, "agent.0.profile", "\"lenient\"");
    change(&mut gateway, "agent.0.descriptions", "\"short\"");
    let done = gateway.order(&["reload"]);
    assert!(done.contains("agent[ca].profile") && done.contains("agent[ca].descriptions"), "{done}");
    assert_eq!(code(&mut agent, "L: zz:1"), 200);
    let row = &gateway.rows(&["agents"])[0];
    assert_eq!((&row["profile"], &row["duplicates"]), (&"lenient".into(), &"same-content".into()), "{row}");
    assert_eq!((&row["interop"]["piggyback"], &row["interop"]["descriptions"]), (&false.into(), &"short".into()), "{row}");
    let table = gateway.order(&["show", "agents"]);
    assert!(table.contains("lenient: version any, no piggyback, provisional plain, short descriptions, ignore unknown options"), "{table}");
    change(&mut gateway, "agent.0.profile", "\"strict\"");
    assert!(gateway.refused(&["reload"]).contains("\"rfc3435\" or \"tgcp\" or \"lenient\""));
}
