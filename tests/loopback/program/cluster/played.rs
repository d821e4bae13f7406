//! `tollgate load --cluster`: gateways that are played, against a central node that is not.

use super::*;

fn play(central: &Central, list: &str, arguments: &[&str]) -> Value {
    let tuning = Node::tuning(1, central.address, list);
    tuning.write();
    let mut command = Command::new(PROGRAM);
    command.arg("--config").arg(tuning.path()).args(["load", "--cluster", "--json", "--seed", "5"]).args(arguments);
    let output = command.output().unwrap();
    let _ = std::fs::remove_dir_all(&tuning.directory);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Must hold 6: three gateways that want more than there is: who was admitted by whom, who was refused why, the most calls at a time, how
/// long decisions took, and how long it took to tell what was up before.
#[test]
fn a_cluster_is_played_and_measured() {
    let list = scopes(30, "");
    let central = Central::start(Central::tuning("[1, 2, 3]", &list));
    let report = play(&central, &list, &["--rate", "400", "--duration", "1", "--hold", "500", "--standing", "5"]);
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{report:#}"));
    let (asked, admitted) = (number(&report["asked"]), number(&report["admitted"]["all"]));
    let refused: u64 = report["refused"].as_object().unwrap().values().map(number).sum();
    assert!(asked > 200 && asked == admitted + refused, "{report:#}");
    assert_eq!(admitted, number(&report["admitted"]["by_central"]) + number(&report["admitted"]["alone"]));
    let alone = number(&report["admitted"]["alone"]);
    let peak = number(&report["peak"]["carrier"]["calls"]);
    assert!(peak <= 30 + alone && (peak == 30 || alone > 0), "{report:#}");
    assert!(number(&report["refused"]["call limit reached"]) > 0 && number(&report["latency_us"]["p99"]) > 0);
    let told: u64 = report["sync"].as_array().unwrap().iter().map(|row| number(&row["calls"])).sum();
    assert_eq!(told, 15);
    // They have said goodbye: nothing of it is left.
    central.wait_for_calls(0);
    let closed = play(&central, &list, &["--window", "4", "--duration", "0.3", "--gateways", "2"]);
    assert!(closed["decisions_per_second"].as_f64() > Some(100.0) && closed["gateways"] == 2, "{closed:#}");
}
