//! `tuning/check` and `tuning/apply`: on this host they only look; on a made-up one they set and take back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::gateway::PROGRAM;

fn script(arguments: &[&str]) -> Command {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tuning").join(arguments[0]);
    let mut command = Command::new("sh");
    command.arg(path).args(&arguments[1..]).env("TOLLGATE_NIC_SECONDS", "0").env("TOLLGATE", PROGRAM);
    command
}

#[test]
fn a_network_card_is_described_with_what_af_xdp_says_of_it() {
    let card = script(&["check", "--nic", "lo"]).output().unwrap();
    let text = String::from_utf8_lossy(&card.stdout).into_owned();
    assert!(text.contains("interface lo") && text.contains("queues 1 receive, 1 send") && text.contains("the kernel counted"), "{card:?}");
    // The loopback suits no AF_XDP, where it is allowed at all.
    let said = [&*text, &String::from_utf8_lossy(&card.stderr)].concat();
    assert!(!card.status.success() && (said.contains("native, copy: no: ") || said.contains("not permitted")), "{card:?}");
}

#[test]
fn wrong_words_are_refused() {
    for wrong in [&["check", "--nic", "no-such-card"][..], &["check", "--nic"], &["check", "x"], &["apply", "--now"], &["apply", "x"]] {
        assert_eq!(script(wrong).output().unwrap().status.code(), Some(2), "{wrong:?}");
    }
    assert!(script(&["apply", "--dry-run"]).output().unwrap().status.success());
}

/// A host with one card that is set up badly, and an `ethtool` that keeps its settings in files.
struct Host {
    directory: PathBuf,
}

const FILES: [(&str, &str); 11] = [
    ("proc/sys/net/core/rmem_max", "212992"),
    ("proc/sys/net/core/wmem_max", "212992"),
    ("proc/sys/net/core/optmem_max", "10240"),
    ("proc/sys/kernel/io_uring_disabled", "2"),
    ("proc/sys/vm/nr_hugepages", "0"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
    ("proc/irq/41/smp_affinity_list", "0-3"),
    ("sys/class/net/eth7/queues/rx-0/rps_cpus", "f"),
    ("sys/class/net/eth7/device/msi_irqs/41", ""),
    ("combined", "63"),
    ("features", "off"),
];

const ETHTOOL: &str = r#"#!/bin/sh
cd "$(dirname "$0")"
case $1 in
-l) printf 'Pre-set maximums:\nCombined:\t63\nCurrent hardware settings:\nCombined:\t%s\n' "$(cat combined)" ;;
-L) echo "$4" >combined ;;
-k) printf 'tx-checksumming: %s\ntx-udp-segmentation: off [fixed]\n' "$(cat features)" ;;
-K) [ "$3" = tx-checksumming ] && echo "$4" >features ;;
esac
"#;

impl Host {
    fn new() -> Host {
        let host = Host { directory: std::env::temp_dir().join(format!("tollgate-host-{}", std::process::id())) };
        for (path, text) in FILES {
            let path = host.directory.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        let ethtool = host.directory.join("ethtool");
        fs::write(&ethtool, ETHTOOL).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(ethtool, executable).unwrap();
        host
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let path = format!("{}:{}", self.directory.display(), std::env::var("PATH").unwrap());
        let mut command = script(arguments);
        command.env("PATH", path).env("TOLLGATE_ROOT", &self.directory).env("TOLLGATE_SAVED", self.directory.join("saved"));
        command.env("TOLLGATE_QUEUES", "2").output().unwrap()
    }

    fn state(&self) -> Vec<String> {
        FILES.iter().map(|(path, _)| fs::read_to_string(self.directory.join(path)).unwrap().trim().to_owned()).collect()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn what_is_wanting_is_told_set_and_taken_back() {
    let host = Host::new();
    let before = host.state();
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let checked = host.run(&["check"]);
    let names = ["rmem_max", "wmem_max", "optmem_max", "io_uring", "huge_pages", "governor", "queues", "offloads", "rps"];
    for name in names {
        assert!(text(&checked).contains(&format!("!!  {name} = ")), "{name}: {checked:?}");
    }
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    let planned = host.run(&["apply", "--dry-run"]);
    for word in ["why: ", "effect: ", "undo: "] {
        assert!(text(&planned).matches(word).count() >= names.len(), "{word}: {planned:?}");
    }
    assert_eq!(host.state(), before, "only told");

    let applied = host.run(&["apply"]);
    assert!(applied.status.success(), "{applied:?}");
    let after = host.state();
    assert_eq!(after[..4], ["4194304", "1048576", "20480", "0"], "{applied:?}");
    assert!(after[4].parse::<u32>().unwrap() >= 8, "{applied:?}");
    assert_eq!(after[5], "performance", "{applied:?}");
    assert_eq!((&*after[7], &*after[9], &*after[10]), ("0", "2", "on"), "{applied:?}");
    if std::thread::available_parallelism().unwrap().get() > 1 {
        assert_eq!(after[6], "0", "the interrupt is on the first CPU: {applied:?}");
    }
    // On this host CPUs cannot be isolated: nothing else is left.
    let checked = text(&host.run(&["check"]));
    assert!(checked.lines().all(|line| !line.contains("!!") || line.contains("isolation")), "{checked}");
    let undone = host.run(&["apply", "--undo"]);
    assert!(undone.status.success(), "{undone:?}");
    assert_eq!(host.state(), before, "{undone:?}");
}
