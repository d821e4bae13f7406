//! `tollgate check`.

use super::gateway::{PROGRAM, Tuning};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn check(tuning: &Tuning, text: &str) -> Output {
    fs::write(tuning.path(), text).unwrap();
    let output = Command::new(PROGRAM).arg("check").arg(tuning.path()).output().unwrap();
    fs::remove_dir_all(&tuning.directory).unwrap();
    output
}

#[test]
fn a_good_file_gives_the_plan() {
    let tuning = Tuning::new().layout(0, 1, 3);
    let output = check(&tuning, &tuning.text());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    for heading in ["core", "cpu", "node", "role", "endpoints", "memory", "spans"] {
        assert!(rows[0].contains(&heading), "{heading}: {text}");
    }
    let roles: Vec<_> = rows[1..5].iter().map(|row| row[3]).collect();
    assert_eq!(roles, ["transport", "shard", "shard", "shard"]);
    let endpoints: u32 = rows[1..5].iter().map(|row| row[4].parse::<u32>().unwrap()).sum();
    assert_eq!(endpoints, 672);
    for part in ["transport auto", "history 2000/s x 30s x 256B", "simulated"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// As most machines are; where the driver is, what it says is its own.
#[test]
fn a_machine_without_the_driver_is_told_of_by_probe_and_refused_by_run() {
    if Path::new("/dev/dahdi/ctl").exists() {
        println!("skipped: this machine has the driver");
        return;
    }
    let tuning = Tuning::new().set("span.0.kind", "\"t1\"").set("span.0.card", "\"dahdi\"").set("span.0.dahdi_span", "1");
    tuning.write();
    for verb in ["probe", "run"] {
        let output = Command::new(PROGRAM).arg(verb).arg("--config").arg(tuning.path()).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("/dev/dahdi/ctl: the driver is not there: load the module dahdi and the one of the card"), "{verb}: {said}");
    }
    fs::remove_dir_all(&tuning.directory).unwrap();
    let without = Tuning::new();
    without.write();
    let output = Command::new(PROGRAM).arg("probe").arg("--config").arg(without.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stdout).unwrap().contains("no span of the file is on a card of the driver"));
    fs::remove_dir_all(&without.directory).unwrap();
}

/// Profiles are for other machines than the one that tests them, which is described to `check`.
#[test]
fn every_profile_gives_the_plan_it_promises() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tuning/profiles");
    let mut profiles = BTreeMap::from([
        ("laptop.toml", ("0-3", 1, "0")),
        ("single-socket-8.toml", ("0-7", 7, "0")),
        ("numa-2x32.toml", ("0-31/32-63", 28, "0,1")),
        ("transport-shard.toml", ("0-15", 12, "0")),
        ("xdp-transport-shard.toml", ("0-15", 12, "0")),
        ("trunks.toml", ("0-3", 1, "0")),
        ("cesopsn.toml", ("0-3", 1, "0")),
        ("h248.toml", ("0-3", 1, "0")),
    ]);
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("central.toml") {
            // No gateway: it has no cores to plan for.
            let output = Command::new(PROGRAM).arg("check").arg(&path).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success() && text.contains("a central node of admission: 2 scopes, 3 gateways expected"), "{text}");
            continue;
        }
        let (cpus, cores, nodes) = profiles.remove(path.file_name().unwrap().to_str().unwrap()).unwrap_or_else(|| panic!("{path:?}"));
        let output = Command::new(PROGRAM).arg("check").arg(&path).args(["--cpus", cpus]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{path:?}: {}", String::from_utf8_lossy(&output.stderr));
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).skip(1).take(cores).collect();
        assert!(rows.iter().enumerate().all(|(core, row)| row[0] == core.to_string()), "{path:?}: {text}");
        assert!(rows.iter().all(|row| row[3] == "transport" || row[4] != "0"), "each core has endpoints, {path:?}: {text}");
        let mut used: Vec<&str> = rows.iter().map(|row| row[2]).collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.join(","), nodes, "{path:?}: {text}");
        assert!(!text.contains("share"), "{path:?}: {text}");
    }
    assert!(profiles.is_empty(), "{profiles:?}");
}

#[test]
fn a_machine_that_is_described_wrong_is_an_error() {
    let output = Command::new(PROGRAM).args(["check", "tuning/gateway.toml", "--cpus", "0-1/1"]).output().unwrap();
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("--cpus 0-1/1"), "{output:?}");
}

#[test]
fn a_bad_file_gives_all_errors_with_their_lines() {
    let tuning = Tuning::new();
    let text = [
        "[gateway]",
        "domain = \"two words\"",
        "[[agent]]",
        "name = \"ca\"",
        "addresses = [\"127.0.0.1\"]",
        "notify = [\"127.0.0.1:70000\"]",
        "[timers]",
        "t_max = \"5min\"",
        "t_mix = \"5s\"",
        "[cores]",
        "both = 0",
        "[[span]]",
        "kind = \"t2\"",
        "unit = 1",
    ];
    let output = check(&tuning, &text.join("\n"));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{errors}");
    for (line, key, value) in [
        (2, "gateway.domain", "two words"),
        (6, "agent[1].notify[1]", "127.0.0.1:70000"),
        (8, "timers.t_max", "1s..=290s"),
        (9, "timers.t_mix", ""),
        (11, "cores.both", "1..=64"),
        (13, "span[1].kind", "t2"),
    ] {
        let at = format!("gateway.toml:{line}: {key}");
        assert!(errors.lines().any(|error| error.contains(&at) && error.contains(value)), "{at} {value}: {errors}");
    }
}

#[test]
fn what_is_no_file_is_an_error_too() {
    for text in ["[gateway", "\u{0}", "[[gateway]]"] {
        let output = check(&Tuning::new(), text);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("gateway.toml"), "{output:?}");
    }
    let output = Command::new(PROGRAM).args(["check", "/nowhere/gateway.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere/gateway.toml"), "{output:?}");
}

#[test]
fn a_log_filter_that_is_none_is_an_error() {
    for verb in [&["check", "gateway.toml"][..], &["run"]] {
        let output = Command::new(PROGRAM).args(verb).args(["--log", "garbage=[[["]).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("garbage"), "{output:?}");
    }
}
