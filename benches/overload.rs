//! The scenario matrix of overload control in virtual time, drawn: `cargo bench --bench overload -- --write` writes a picture for each
//! scenario and a table into docs/overload. The figures depend on nothing but the code: one seed, one outcome. Otherwise it plays one scenario
//! and writes nothing.
//!
//! What the figures must hold is asserted here too, so that no page shows what the tests would not pass: useful work, that no priority call is
//! lost, and response times but those of the bursts, which end before the control has settled.

#[path = "../tests/sim/overload/model.rs"]
#[allow(dead_code, reason = "the tests ask more of an outcome")]
mod model;

use std::path::Path;
use std::time::Duration;

use model::{Arrivals, Outcome, Scenario, Second, run};
use tollgate::load::plot::{self, Panel};
use tollgate::proto::overload::Levels;

/// A scenario, its file, and what could be admitted a second at best.
struct Case {
    file: &'static str,
    scenario: Scenario,
    best: f64,
}

fn case(file: &'static str, scenario: Scenario) -> Case {
    let best = (scenario.capacity)(0.0);
    Case { file, scenario, best }
}

fn by_time(demand: impl Fn(f64) -> f64 + 'static) -> Vec<Box<dyn Fn(f64) -> f64>> {
    vec![Box::new(demand)]
}

fn matrix() -> Vec<Case> {
    let halved = |t: f64| if (30.0..60.0).contains(&t) { 500.0 } else { 1000.0 };
    let unequal = [4.0, 2.0, 1.0, 1.0, 0.5, 0.5, 0.05, 0.05];
    let stops = |until: f64| Box::new(move |t: f64| if t < until { 1000.0 } else { 0.0 }) as Box<dyn Fn(f64) -> f64>;
    vec![
        case("step-1-3", Scenario::new("step to 1.3", &[1.3])),
        case("step-2", Scenario::new("step to 2", &[2.0])),
        case("step-4", Scenario::new("step to 4", &[4.0])),
        case("step-10", Scenario::new("step to 10", &[10.0])),
        case("step-2-constant", Scenario { arrivals: Arrivals::Constant, ..Scenario::new("step to 2, constant", &[2.0]) }),
        case("ramp", Scenario { demands: by_time(|t| 50.0 * t), from: 40.0, seconds: 100.0, ..Scenario::new("ramp to 5", &[]) }),
        Case {
            // Of 20 s two at capacity, the others as offered.
            best: 550.0,
            ..case(
                "bursts",
                Scenario { demands: by_time(|t| if t % 20.0 < 2.0 { 4000.0 } else { 500.0 }), ..Scenario::new("bursts of 4", &[]) },
            )
        },
        case("halved", Scenario { capacity: halved, seconds: 120.0, from: 75.0, ..Scenario::new("capacity halved for 30 s", &[2.0]) }),
        case("controllers-2", Scenario::new("2 controllers, 3.0 and 0.8", &[3.0, 0.8])),
        case("controllers-8", Scenario::new("8 controllers, 4.0 to 0.05", &unequal)),
        case(
            "one-stops",
            Scenario {
                demands: vec![stops(1e9), stops(1e9), stops(40.0)],
                seconds: 100.0,
                from: 55.0,
                ..Scenario::new("3 virtual gateways, one stops", &[])
            },
        ),
        case("conferences", Scenario { adds: 8, first_only: true, ..Scenario::new("conferences of 8 legs", &[3.0]) }),
        case("two-adds", Scenario { adds: 2, ..Scenario::new("two Adds a call", &[2.0]) }),
        case("loss", Scenario { loss: 0.01, ..Scenario::new("loss 1 %", &[2.0]) }),
        case("priority", Scenario { priority: 0.05, ..Scenario::new("priority 5 %", &[10.0]) }),
        Case { best: 1900.0, ..case("hot-core", Scenario { cores: 4, ..Scenario::new("a hot core of four", &[2.0, 0.3, 0.3, 0.3]) }) },
        case("refusals", Scenario { refuses: true, ..Scenario::new("MGCP: 409", &[2.0]) }),
    ]
}

/// What must hold; of response times, in sustained overload.
fn check(case: &Case, outcome: &Outcome) {
    let Case { file, scenario, best } = case;
    assert!(outcome.priority_lost < 0.001, "{file}: priority calls lost");
    let useful = outcome.useful * (scenario.capacity)(scenario.from) / best;
    assert!(useful >= 0.95, "{file}: useful {useful}");
    assert!(*file == "bursts" || outcome.p99 <= 2 * Levels::default().enter, "{file}: p99 {:?}", outcome.p99);
}

fn picture(case: &Case, outcome: &Outcome) -> String {
    let Scenario { name, capacity, cores, .. } = &case.scenario;
    let series = |of: &dyn Fn(&Second) -> f64| outcome.seconds.iter().map(of).collect::<Vec<f64>>();
    let able = (0..outcome.seconds.len()).map(|second| capacity(second as f64) * *cores as f64).collect::<Vec<f64>>();
    let offered = series(&|second| f64::from(second.offered));
    // What is offered beyond three times the capacity says nothing more.
    let shown = offered.iter().zip(&able).map(|(offered, able)| offered.min(3.0 * able)).collect();
    let admitted = series(&|second| f64::from(second.admitted));
    let calls = vec![("#bbb", shown), ("#3a3", able), ("#06c", admitted)];
    let panels = [
        Panel { title: "calls a second: offered (grey, cut at 3 times), possible (green), admitted (blue)", lines: calls },
        Panel { title: "notifications a second", lines: vec![("#c60", series(&|second| f64::from(second.notified)))] },
        Panel { title: "p99 of set-up in ms", lines: vec![("#a0a", series(&|second| 1e3 * quantile(&second.times, 0.99).as_secs_f64()))] },
    ];
    plot::picture(&format!("{name}, {} s", outcome.seconds.len()), &panels)
}

fn quantile(times: &[Duration], share: f64) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default()
}

fn row(case: &Case, outcome: &Outcome) -> String {
    let Case { file, scenario, best } = case;
    let useful = outcome.useful * (scenario.capacity)(scenario.from) / best;
    let settled = outcome.settled(*best).map_or("-".into(), |second| format!("{second} s"));
    let refused = 1.0
        - outcome.seconds.iter().map(|second| f64::from(second.admitted)).sum::<f64>()
            / outcome.seconds.iter().map(|second| f64::from(second.offered)).sum::<f64>();
    let each: Vec<String> = outcome.admitted.iter().map(|(rate, _)| format!("{rate:.0}")).collect();
    let each = if each.len() > 1 { each.join(", ") } else { String::new() };
    let goals = scenario.parameters.goal * scenario.demands.len() as f64;
    format!(
        "| [{}]({file}.svg) | {useful:.3} | {refused:.2} | {:.0?}, {:.0?} | {:.1} ({goals:.0}) | {settled} | {each} |\n",
        scenario.name, outcome.p50, outcome.p99, outcome.notified
    )
}

const HEAD: &str = "# Overload control: the scenario matrix

Written by `cargo bench --bench overload -- --write`; virtual time, one seed, the product's throttle (H.248.11, the controller's half) before the
product's detector at its default levels, a gateway (each core) of 1,000 set-ups a second, no parameter changed between scenarios. Figures over 60 s from t = 10 s
where the scenario does not say otherwise. Useful: set-ups served, of what could be (at any time the lesser of what is offered and what can be
done). Settled: the second from which on any five in a row admit 0.95 of what could be; none where that is not asked all the time. How it works: [h248.md](../decisions/h248.md).

| scenario | useful | refused | set-up p50, p99 | notifications/s (sum of goals) | settled | admitted/s by controller |
|---|---|---|---|---|---|---|
";

/// What follows the table.
const TAIL: &str = "
## The same for real

`tollgate load --plot FILE` draws a run against a real gateway second by second: what was asked for, sent and set up, notifications, set-up times. A
gateway of 200 calls a second and core to exceed, and each scenario:

```
tollgate run --config h248.toml    # as tuning/profiles/h248.toml, with T1s 1 to 8 for north and cards.sim.open_cost = \"5ms\"
load=\"tollgate load --protocol h248 --scenario call --endpoints ds/ds1-[1-8]/[1-24] --throttle --duration 70\"
$load --rate 400 --plot step-2.svg
$load --rate 2000 --plot step-10.svg
$load --rate 400 --arrivals poisson --plot poisson.svg
$load --rate 400 --loss 0.01 --plot loss.svg
$load --rate 400 --hold 0 --hold-max 1500 --plot mixed-holds.svg
```

On a machine that does other things too the pictures show those: a core that loses its CPU for 50 ms has made its callers wait as long.
";

fn main() {
    let mut cases = matrix();
    let writes = std::env::args().any(|word| word == "--write");
    if !writes {
        cases.truncate(1);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/overload");
    let mut table = String::from(HEAD);
    for case in &cases {
        let outcome = run(&case.scenario, 1);
        check(case, &outcome);
        table += &row(case, &outcome);
        if writes {
            std::fs::create_dir_all(&folder).expect("the folder");
            std::fs::write(folder.join(case.file).with_extension("svg"), picture(case, &outcome)).expect("a picture");
        }
    }
    table += TAIL;
    print!("{table}");
    if writes {
        std::fs::write(folder.join("README.md"), table).expect("the table");
    }
}
