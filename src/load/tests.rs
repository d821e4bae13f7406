use super::*;
use clap::Parser;

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    args: Args,
}

fn plan(line: &str) -> Result<Plan, String> {
    let words = std::iter::once("load").chain(line.split_whitespace());
    Program::try_parse_from(words).map_err(|e| e.to_string())?.args.plan().map_err(|e| format!("{e:#}"))
}

fn calls(line: &str) -> (Settings, Plan) {
    let plan = plan(line).unwrap();
    match &plan.played {
        Played::Calls(settings) => (*settings.clone(), plan),
        other => panic!("{other:?}"),
    }
}

#[test]
fn defaults_are_those_of_the_embedded_gateway() {
    let (settings, plan) = calls("--scenario call --rate 20000 --duration 10");
    assert_eq!((settings.endpoints.len(), plan.kind, plan.duration), (672, Loop::Rate(20_000.0), Duration::from_secs(10)));
    assert_eq!(plan.gateway(), ["127.0.0.1:2427".parse().unwrap()]);
    assert_eq!(settings.clearing[0], "ds/ds3-1/ds1-1/*@tgw.example.net");
    assert!(settings.verify);
}

#[test]
fn both_address_families_can_be_played_to() {
    let (settings, _) = calls("--scenario call --window 4 --duration 1 --target [::1]:2427,[::1]:2428 --listen [::1]:2727");
    assert_eq!(settings.gateway, ["[::1]:2427".parse().unwrap(), "[::1]:2428".parse().unwrap()]);
}

#[test]
fn calls_over_trunks_have_far_ends_and_hold_longer_than_a_wink() {
    let plan = plan("--scenario cas-md --rate 5 --duration 1 --misbehave 0.25 --endpoints ds/ds1-1/[1-24]").unwrap();
    let Played::Trunks(settings) = &plan.played else { panic!("{plan:?}") };
    assert_eq!((settings.kind, settings.misbehave, settings.endpoints.len()), (trunks::Kind::Md, 250_000, 24));
    assert_eq!(settings.hold, TRUNK_HOLD_MIN);
}

#[test]
fn senseless_arguments_are_refused() {
    for (line, word) in [
        ("--scenario call --duration 1", "--rate"),
        ("--scenario call --rate 1 --window 1 --duration 1", "cannot be used"),
        ("--scenario call --rate 0 --duration 1", "--rate 0"),
        ("--scenario call --rate 1 --duration 0", "--duration"),
        ("--scenario call --window 4 --duration 1 --loss 1.5", "--loss"),
        ("--scenario call --window 4 --duration 1 --endpoints ds/*", "--endpoints"),
        ("--scenario call --window 4 --duration 1 --endpoints a[1-4] --standing 4", "--standing"),
        ("--scenario call --window 4 --duration 1 --target [::1]:2427", "--listen [::]:2727"),
        ("--scenario call --window 4 --duration 1 --target 127.0.0.1:1,[::1]:1", "127.0.0.1:1 and [::1]:1 are of two address families"),
        ("--scenario call --window 4 --duration 1 --target [::1]:1,127.0.0.1:1 --listen [::]:2727", "name those of one family"),
        ("--scenario call --window 4 --duration 1 --target 127.0.0.1:1,127.0.0.1:2,127.0.0.1:1", "127.0.0.1:1: named twice"),
        ("--scenario call --window 4 --duration 1 --target 127.0.0.1:2727", "is --listen itself"),
        ("--scenario call --window 4 --duration 1 --target 0.0.0.0:2427", "one gateway"),
        ("--scenario call --window 4 --duration 1 --target 127.0.0.1:0", "one gateway"),
        ("--scenario call --window 4 --duration 1 --target nowhere:2427", "--target"),
        ("--scenario call --window 0 --duration 1", "--window, above 0"),
        ("--scenario call --window 99999999999 --duration 1", "the pattern has 672"),
        ("--scenario call --rate NaN --duration 1", "--rate NaN"),
        ("--scenario call --rate inf --duration 1", "--rate inf"),
        ("--scenario call --rate -1 --duration 1", "-1"),
        ("--scenario call --rate 1 --duration 1e300", "--duration"),
        ("--scenario call --rate 1 --duration 1000000", "at most 604800"),
        ("--scenario call --rate 1 --duration 1 --hold 18446744073709551615", "--hold"),
        ("--scenario call --rate 1 --duration 1 --endpoints a[1-3,2]", "--endpoints a[1-3,2]: an endpoint is named twice"),
        ("--scenario call --window 4 --duration 1 --misbehave 0.5", "--misbehave"),
        ("--scenario cas-ms --window 4 --duration 1 --misbehave 2", "--misbehave"),
        ("--scenario cas-ms --window 4 --duration 1 --standing 2", "--standing"),
        ("--scenario call --window 4 --duration 1 --throttle", "--rate"),
        ("--scenario cas-ms --rate 4 --duration 1 --throttle", "--throttle"),
        ("--scenario call --rate 4 --duration 1 --throttle --throttle-goal 0", "--throttle-goal 0"),
        ("--scenario call --window 4 --duration 1 --break everything", "no such rule; there are lockstep, one-command"),
        ("--scenario rest --window 4 --duration 1", "rest"),
        ("--protocol h248 --scenario audit --rate 4 --duration 1", "there is call"),
        ("--protocol h248 --scenario call --rate 4 --duration 1 --standing 2", "--standing"),
        ("--protocol h248 --scenario call --rate 4 --duration 1 --listen 0.0.0.0:3944", "knows its controller"),
        ("--protocol h248 --scenario call --rate 4 --duration 1 --target 127.0.0.1:1,127.0.0.1:2", "one address"),
        ("--scenario call --window 4 --duration 1 --arrivals poisson", "--rate"),
    ] {
        let error = plan(line).expect_err(line);
        assert!(error.contains(word), "{line}: {error}");
    }
}
