//! Tests that need a network, or a user, of their own.

use std::process::Command;

/// Set in the process that runs inside.
const INSIDE: &str = "TOLLGATE_TEST_NETWORK";

/// Runs `body` of the test with this full name in a network namespace of its own, where only `lo` is and up: the test binary starts
/// itself again in there. Where that is not allowed the test is skipped and says so.
pub fn in_own_network(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        ip(&["link", "set", "lo", "up"]);
        return body();
    }
    let Some(options) = ["-n", "-rn"].into_iter().find(|&options| is_allowed(options)) else {
        eprintln!("skipped: {test}: no network namespace can be made here (unshare -n, ip link)");
        return;
    };
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("unshare");
    command.arg(options).arg(program).args(["--exact", test, "--include-ignored", "--nocapture"]).env(INSIDE, "1");
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Orders something of the network inside.
pub fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "ip {arguments:?}: {output:?}");
}

fn is_allowed(options: &str) -> bool {
    let tried = Command::new("unshare").args([options, "ip", "link", "set", "lo", "up"]).output();
    tried.is_ok_and(|output| output.status.success())
}
