//! Calls, losses, queues and layouts of cores; the load generator and the bring-up of a card past the kernel (issue 3, must hold 1).

use super::super::agent::Agent;
use super::super::gateway::{Gateway, PROGRAM, Tuning, pause};
use super::super::load::{LAYOUTS, load, no_check_fails, report};
use super::super::pair::{FAR, NEAR, Pair, complete_checksums};
use super::{counter, in_a_pair, in_a_pair_of, tuning};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Calls as `load` plays them: all answered, none lost, and past the kernel both ways.
fn calls(pair: &Pair, tuning: Tuning, expected: &str) {
    let gateway = Gateway::start(tuning.set("limits.history_rate", "5000"));
    assert!(gateway.ready.contains(expected), "{}", gateway.ready);
    let output = pair.within(|| load(&gateway, "--scenario call --rate 1500 --duration 1 --standing 20 --seed 7").output().unwrap());
    let report: Value = report(&output, &gateway);
    let commands: u64 = ["CRCX", "MDCX", "DLCX"].iter().map(|verb| answered(&report, verb)).sum();
    assert!(commands > 1000, "{report}");
    let (received, sent) = (counter(&gateway, "bypass_received"), gateway.counter("bypass_sent"));
    assert!(received >= commands && sent > commands / 2, "{received} received, {sent} sent past the kernel of {commands}");
    // Nothing was lost on either side of the wire, and nothing had to wait for want of room.
    assert_eq!(report["lost"], 0, "{report}");
    for lost in ["dropped_kernel", "dropped_bypass_invalid", "receive_starved", "send_errors", "transmit_full"] {
        assert_eq!(gateway.counter(lost), 0, "{lost}: {report}");
    }
    gateway.assert_sound();
}

fn answered(report: &Value, verb: &str) -> u64 {
    report["verbs"][verb]["codes"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
}

#[test]
fn calls_pass_in_the_driver() {
    in_a_pair("calls_pass_in_the_driver", |pair| {
        calls(pair, tuning().set("xdp.mode", "\"native\""), "transport xdp on gw0 native 1 queue");
    });
}

#[test]
fn calls_pass_behind_the_driver() {
    in_a_pair("calls_pass_behind_the_driver", |pair| {
        pair.within(|| complete_checksums(FAR));
        calls(pair, tuning().set("xdp.mode", "\"generic\"").set("xdp.need_wakeup", "false"), "transport xdp on gw0 generic 1 queue");
    });
}

/// Behind the driver several datagrams in one packet can come (the load sends such): they are left to the kernel, which takes them
/// apart. Taken as one they would be nonsense.
#[test]
fn datagrams_in_one_packet_are_taken_apart() {
    in_a_pair("datagrams_in_one_packet_are_taken_apart", |pair| {
        let gateway = Gateway::start(tuning().set("xdp.mode", "\"generic\"").set("limits.history_rate", "5000"));
        let output = pair.within(|| load(&gateway, "--scenario call --window 32 --duration 1 --seed 7").output().unwrap());
        let report = report(&output, &gateway);
        assert!(report["sent_by"] == "UDP_SEGMENT" && answered(&report, "CRCX") > 100, "{report}");
        assert_eq!(counter(&gateway, "dropped_unreadable") + gateway.counter("dropped_bypass_invalid"), 0);
        gateway.assert_sound();
    });
}

/// Must hold 1: losses and doubles both ways, in each layout of cores. Of several cores with sockets one has the only queue; the others
/// answer by the kernel.
#[test]
fn no_check_fails_in_any_layout() {
    for layout in LAYOUTS {
        in_a_pair("no_check_fails_in_any_layout", |pair| {
            let tuning = tuning().layout(layout.0, layout.1, layout.2);
            let gateway = no_check_fails(tuning, |load| pair.within(|| load.output().unwrap()));
            assert!(counter(&gateway, "bypass_received") > 0 && gateway.ready.contains("transport xdp"), "{}", gateway.ready);
        });
    }
}

/// Flows of agents are spread over the queues, and each core has one of them.
#[test]
fn several_queues_serve_several_cores() {
    in_a_pair_of("several_queues_serve_several_cores", "2", |pair| {
        let gateway = Gateway::start(tuning().layout(2, 0, 0));
        assert!(gateway.ready.contains("transport xdp on gw0 native 2 queues"), "{}", gateway.ready);
        let addresses = gateway.tuning.addresses;
        for port in 2727..2743 {
            let mut agent = pair.within(|| Agent::at((addresses.agent().ip(), port).into(), addresses.gateway()));
            agent.answers = true;
            for span in 1..=4 {
                assert_eq!(agent.ask("AUEP", &format!("ds/ds3-1/ds1-{span}/1"), &[]).code, Some(200), "{port}");
            }
        }
        pause(Duration::from_millis(300));
        let (received, sent) = (gateway.counter_by_core("bypass_received"), gateway.counter_by_core("bypass_sent"));
        assert!(received.iter().chain(&sent).all(|&count| count > 0), "{received:?} received, {sent:?} sent past the kernel, by core");
        gateway.assert_sound();
    });
}

/// One core can have all queues.
#[test]
fn one_core_serves_all_queues() {
    in_a_pair_of("one_core_serves_all_queues", "4", |pair| {
        let gateway = Gateway::start(tuning().layout(0, 1, 1));
        assert!(gateway.ready.contains("4 queues"), "{}", gateway.ready);
        let addresses = gateway.tuning.addresses;
        for port in 2727..2735 {
            let mut agent = pair.within(|| Agent::at((addresses.agent().ip(), port).into(), addresses.gateway()));
            agent.answers = true;
            assert_eq!(agent.ask("AUEP", "ds/ds3-1/ds1-1/1", &[]).code, Some(200), "{port}");
        }
        assert!(counter(&gateway, "bypass_received") >= 8);
        gateway.assert_sound();
    });
}

/// The load generator goes past the kernel too, and keeps pace.
#[test]
fn the_load_goes_past_the_kernel_too() {
    in_a_pair("the_load_goes_past_the_kernel_too", |pair| {
        let gateway = Gateway::start(tuning().set("limits.history_rate", "20000").set("cores.busy_poll", "\"50us\""));
        let run = |arguments: &str| pair.within(|| load(&gateway, arguments).output().unwrap());
        let line = format!("--xdp {FAR} --scenario call --rate 2000 --duration 1 --standing 20 --seed 7");
        let report = report(&run(&line), &gateway);
        let by = report["sent_by"].as_str().unwrap().to_owned();
        assert!(by.starts_with("AF_XDP on ca0 native 1 queue, past the kernel 9") || by.contains("100.0% out"), "{by}");
        assert!(report["lost"] == 0 && report["completed"] == report["sent"] && answered(&report, "CRCX") > 300, "{report}");
        // What cannot be is said in the words of the gateway.
        let wrong = run("--xdp lo --scenario call --rate 10 --duration 1");
        let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
        assert!(wrong.status.code() == Some(1) && said.contains("--xdp lo") && said.contains("lo is the loopback"), "{said}");
        gateway.assert_sound();
    });
}

/// `tollgate nic` tells which ways a card has, and echoes what `tollgate nic --ask` sends.
#[test]
fn a_card_is_brought_up_and_echoes() {
    in_a_pair("a_card_is_brought_up_and_echoes", |pair| {
        let nic = |arguments: &[&str]| {
            let mut command = Command::new(PROGRAM);
            command.arg("nic").args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        let echo = nic(&[NEAR, "--seconds", "4"]);
        let asking = pair.within(|| nic(&["--ask", "10.0.0.4:12427", "--seconds", "4"]));
        let (echo, asking) = (echo.wait_with_output().unwrap(), asking.wait_with_output().unwrap());
        let (told, asked) = (String::from_utf8_lossy(&echo.stdout), String::from_utf8_lossy(&asking.stdout));
        assert!(echo.status.success() && asking.status.success(), "{echo:?} {asking:?}");
        for line in [
            "AF_XDP native, zero-copy: no: gw0 queue 0: bind: its driver cannot do without copies",
            "AF_XDP native, copy: works on gw0 native 1 queue",
            "AF_XDP generic, copy: works on gw0 generic 1 queue",
            "echo at 10.0.0.4:12427 for 4 s, native, copy",
            "dropped by the kernel 0, wrong headers or checksums 0, send errors 0",
        ] {
            assert!(told.contains(line), "{line}: {told}");
        }
        assert!(!told.contains("(0 past the kernel)") && !told.contains("nobody asked"), "{told}");
        assert!(asked.contains("round trip us: p50") && !asked.contains("answered 0"), "{asked}");
        let wrong = nic(&["eth9"]).wait_with_output().unwrap();
        assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("there is no interface eth9"), "{wrong:?}");
    });
}
