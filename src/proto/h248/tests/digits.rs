//! Digit maps as a controller sees them.

use super::events::notified;
use super::*;

/// The dialling plan of RFC 3525 7.1.14.9.
const PLAN: &str = "(0|00|[1-7]xxx|8xxxxxxx|Fxxxxxxx|Exx|91xxxxxxxxxx|9011x.)";

fn dialled(map: &str, keys: &str, then: Duration) -> String {
    let mut bench = Bench::registered();
    bench.ask(&format!("C=-{{MF=ds/ds1_3/1{{E=4{{dd/ce{{DM={{{map}}}}}}}}}}}"));
    bench.keys(1, keys);
    bench.run(then);
    let told = notified(&mut bench).concat();
    told.strip_prefix("- N=ds/ds1_3/1{OE=4{:dd/ce{").and_then(|rest| rest.strip_suffix("}}}")).unwrap_or(&told).to_owned()
}

#[test]
fn digits_are_collected_until_they_match_or_cannot_any_more() {
    // DM-05, DM-07, DM-09 to DM-11, DM-18, DM-19
    for (keys, then, expected) in [
        ("5123", MS, "ds=\"5123\",Meth=UM"),
        ("00", MS, "ds=\"00\",Meth=UM"),
        ("0", 3800 * MS, ""),
        ("0", 4 * S, "ds=\"0\",Meth=FM"),
        ("51", 15 * S, ""),
        ("51", 17 * S, "ds=\"51\",Meth=PM"),
        ("01", MS, "ds=\"0\",Meth=FM"),
        ("5A", MS, "ds=\"5\",Meth=PM"),
        ("*12", MS, "ds=\"E12\",Meth=UM"),
        ("#1234567", MS, "ds=\"F1234567\",Meth=UM"),
        ("90115", 4 * S, "ds=\"90115\",Meth=FM"),
        ("9", 17 * S, "ds=\"9\",Meth=PM"),
    ] {
        assert_eq!(dialled(PLAN, keys, then), expected, "{keys}");
    }
}

#[test]
fn timers_are_those_of_the_map() {
    // DM-05, DM-06, DM-08
    assert_eq!(dialled("T:5,(1)", "", 4 * S), "");
    assert_eq!(dialled("T:5,(1)", "", 6 * S), "ds=\"\",Meth=PM");
    assert_eq!(dialled("T:0,(1)", "", 60 * S), "");
    assert_eq!(dialled("T:5,(x.)", "", 6 * S), "ds=\"\",Meth=FM");
    assert_eq!(dialled("S:1,L:2,(0|00)", "0", 1100 * MS), "ds=\"0\",Meth=FM");
    assert_eq!(dialled("S:1,L:2,(12)", "1", 1100 * MS), "");
    assert_eq!(dialled("S:1,L:2,(12)", "1", 2100 * MS), "ds=\"1\",Meth=PM");
    // S in an alternative shortens the wait that would be long; against an L the L wins.
    assert_eq!(dialled("S:1,L:5,(1S2)", "1", 1100 * MS), "ds=\"1\",Meth=PM");
    assert_eq!(dialled("S:1,L:5,(1S2|1L3)", "1", 1100 * MS), "");
    // DM-12: no digit is a long one.
    assert_eq!(dialled("(Z1|1)", "1", MS), "ds=\"1\",Meth=UM");
}

#[test]
fn a_named_map_is_found_on_the_termination_then_on_root() {
    // DM-01 to DM-04, AV-03
    let mut bench = Bench::registered();
    assert_eq!(bench.ask("C=-{MF=ROOT{DM=Plan{(12)}}}"), "C=-{MF=ROOT}");
    bench.ask("C=-{MF=ds/ds1_3/1{DM=plan{(34)}}}");
    for channel in [1, 2] {
        bench.ask(&format!("C=-{{MF=ds/ds1_3/{channel}{{E=1{{dd/ce{{DM=PLAN}}}}}}}}"));
    }
    assert_eq!(bench.ask("C=-{AV=ds/ds1_3/1{AT{DM}}}"), "C=-{AV=ds/ds1_3/1{DM=plan{(34)}}}");
    assert_eq!(bench.ask("C=-{AV=ROOT{AT{DM}}}"), "C=-{AV=ROOT{DM=Plan{(12)},DM=plan{(34)}}}");
    // What runs keeps its map; what begins in the command that changes it has the new one.
    bench.keys(2, "1");
    bench.ask("C=-{MF=ROOT{DM=plan{(77)}}}");
    bench.keys(2, "2");
    bench.keys(1, "34");
    let told = notified(&mut bench);
    assert_eq!(told, ["- N=ds/ds1_3/2{OE=1{:dd/ce{ds=\"12\",Meth=UM}}}", "- N=ds/ds1_3/1{OE=1{:dd/ce{ds=\"34\",Meth=UM}}}"]);
    bench.ask("C=-{MF=ds/ds1_3/3{E=2{dd/ce{DM=new}},DM=new{(9)}}}");
    bench.keys(3, "9");
    assert_eq!(notified(&mut bench).len(), 1);
    // Deleted.
    assert_eq!(bench.ask("C=-{MF=ROOT{DM=plan{}}}"), "C=-{MF=ROOT}");
    assert!(bench.ask("C=-{MF=ds/ds1_3/2{E=1{dd/ce{DM=plan}}}}").contains("ER=520{"));
    // DM-20
    for number in 0..62 {
        bench.ask(&format!("C=-{{MF=ROOT{{DM=m{number}{{(1)}}}}}}"));
    }
    assert!(bench.ask("C=-{MF=ROOT{DM=onemore{(1)}}}").contains("ER=519{"));
}

#[test]
fn digits_of_a_map_are_told_singly_only_when_asked_for() {
    // DM-13 to DM-17
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ds/ds1_3/1{E=1{dd/ce{DM={(123)}},dd/d2},SG{cg/dt}}}");
    bench.keys(1, "1");
    assert_eq!(bench.ask("C=-{AV=ds/ds1_3/1{AT{SG,OE}}}"), "C=-{AV=ds/ds1_3/1{SG,OE=1{dd/ce{ds=\"1\"}}}}");
    bench.keys(1, "23");
    let told = notified(&mut bench);
    assert_eq!(told, ["- N=ds/ds1_3/1{OE=1{:dd/d2}}", "- N=ds/ds1_3/1{OE=1{:dd/ce{ds=\"123\",Meth=UM}}}"]);
    // Complete: it is off.
    bench.keys(1, "123");
    let told = notified(&mut bench);
    assert_eq!(told, ["- N=ds/ds1_3/1{OE=1{:dd/d2}}"]);
    // A wildcard does both; KeepActive lets the tone play on.
    bench.ask("C=-{MF=ds/ds1_3/1{E=2{dd/*{KA,DM={(12)}}},SG{cg/dt}}}");
    bench.keys(1, "12");
    let told = notified(&mut bench).concat();
    assert!(told.contains(":dd/d1") && told.contains(":dd/d2") && told.contains(":dd/ce{ds=\"12\",Meth=UM}"), "{told}");
    assert!(bench.ask("C=-{AV=ds/ds1_3/1{AT{SG}}}").contains("cg/dt"));
}

#[test]
fn an_impossible_digit_ends_the_collection_and_is_an_event_of_its_own() {
    // DM-10
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ds/ds1_3/1{E=1{dd/ce{DM={(1x)}},dd/do}}}");
    bench.keys(1, "1#");
    let told = notified(&mut bench);
    assert_eq!(told.concat(), "- N=ds/ds1_3/1{OE=1{:dd/ce{ds=\"1\",Meth=PM},:dd/do}}");
}
