//! Signals and the continuity test as a controller sees them.

use super::events::notified;
use super::*;
use crate::proto::package::PackageId;
use crate::proto::trunk::{Echo, FarOrder};

fn playing(bench: &mut Bench) -> String {
    let reply = bench.ask("C=-{AV=ds/ds1_3/1{AT{SG}}}");
    reply.strip_prefix("C=-{AV=ds/ds1_3/1{").and_then(|rest| rest.strip_suffix("}}")).unwrap_or_else(|| panic!("{reply}")).to_owned()
}

#[test]
fn a_descriptor_says_what_plays_and_everything_else_stops() {
    // SIG-01, SIG-02, SIG-06
    let mut bench = Bench::registered();
    assert_eq!(bench.ask("C=-{MF=ds/ds1_3/1{SG{cg/rt,cg/cw{SY=OO}}}}"), "C=-{MF=ds/ds1_3/1}");
    assert_eq!(playing(&mut bench), "SG{cg/rt{SY=TO},cg/cw{SY=OO}}");
    bench.ask("C=-{MF=ds/ds1_3/1{SG{cg/rt{KA},cg/bt{KA}}}}");
    assert_eq!(playing(&mut bench), "SG{cg/rt{SY=TO}}", "kept; and what does not play is not begun by KeepActive");
    bench.ask("C=-{MF=ds/ds1_3/1{SG{}}}");
    assert_eq!(playing(&mut bench), "SG");
    bench.ask("C=-{MF=ds/ds1_3/1{SG{dg/d1}}}");
    assert_eq!(playing(&mut bench), "SG{dg/d1{SY=BR}}");
    bench.run(S);
    assert_eq!(playing(&mut bench), "SG");
}

#[test]
fn a_signal_ends_as_the_command_or_its_package_says() {
    // SIG-03, SIG-04, SIG-11
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ds/ds1_3/1{E=1{g/sc},SG{cg/rt{DR=300,NC={TO}}}}}");
    bench.run(2900 * MS);
    assert!(notified(&mut bench).is_empty());
    bench.run(200 * MS);
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=1{:g/sc{SigID=cg/rt,Meth=TO}}}"]);
    // Named again without KeepActive it begins anew (SIG-02).
    bench.ask("C=-{MF=ds/ds1_3/1{SG{cg/rt{DR=300,NC={TO}}}}}");
    bench.run(2 * S);
    bench.ask("C=-{MF=ds/ds1_3/1{SG{cg/rt{DR=300,NC={TO}}}}}");
    bench.run(2 * S);
    assert!(notified(&mut bench).is_empty());
    bench.run(1100 * MS);
    assert_eq!(notified(&mut bench).len(), 1);
    // On until switched off; the duration means nothing.
    bench.ask("C=-{MF=ds/ds1_3/1{SG{cg/rt{SY=OO,DR=1}}}}");
    bench.run(10 * S);
    assert_eq!(playing(&mut bench), "SG{cg/rt{SY=OO,DR=1}}");
    let reply = bench.ask("C=-{MF=ds/ds1_3/1{SG{ct/rsp{SY=TO}}}}");
    assert!(reply.contains("ER=457{"), "{reply}");
}

#[test]
fn how_a_signal_ended_is_told_when_it_was_asked_for() {
    // SIG-10, SIG-11, EVT-05, G-1 of package g
    for (told, how, expected) in [
        ("NC={IBE}", "event", Some("EV")),
        ("NC={TO}", "event", None),
        ("NC={IBS}", "descriptor", Some("SD")),
        ("NC={IBE,OR}", "descriptor", None),
        ("NC={OR}", "service", Some("NC")),
        ("DR=9000", "service", Some("NC")),
        ("DR=9000", "event", None),
    ] {
        let mut bench = Bench::registered();
        bench.ask(&format!("C=-{{MF=ds/ds1_3/1{{E=1{{g/sc,dd/d1}},SG{{cg/rt{{{told}}}}}}}}}"));
        match how {
            "event" => bench.sees(1, PackageId::D, "1"),
            "descriptor" => drop(bench.ask("C=-{MF=ds/ds1_3/1{SG{}}}")),
            _ => bench.service(0, false, 900),
        }
        bench.run(MS);
        let text = notified(&mut bench).concat();
        let found = text.split("g/sc{SigID=cg/rt,Meth=").nth(1).map(|rest| &rest[..2]);
        assert_eq!(found, expected, "{told} {how}: {text}");
    }
    // Not without g/sc in the Events descriptor.
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ds/ds1_3/1{E=1{dd/d1},SG{cg/rt{DR=10,NC={TO}}}}}");
    bench.run(S);
    assert!(notified(&mut bench).is_empty());
}

#[test]
fn signals_of_a_list_are_played_one_after_the_other() {
    // SIG-06, SIG-07, SIG-08, SIG-10, SIG-11
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ds/ds1_3/1{E=1{g/sc{KA},dd/d1},SG{cg/cw{SY=OO},SL=7{cg/rt{DR=100,NC={TO}},dg/d1{NC={TO}},cg/bt{SY=OO}}}}}");
    let list = "SL=7{cg/rt{SY=TO,DR=100,NC={TO}},dg/d1{SY=BR,NC={TO}},cg/bt{SY=OO}}";
    assert_eq!(playing(&mut bench), format!("SG{{cg/cw{{SY=OO}},{list}}}"));
    bench.run(500 * MS);
    // The list with the same number goes on whatever it says now; another signal is stopped as ever.
    bench.ask("C=-{MF=ds/ds1_3/1{SG{SL=7{cg/ct}}}}");
    assert_eq!(playing(&mut bench), format!("SG{{{list}}}"));
    assert!(notified(&mut bench).is_empty());
    bench.run(600 * MS);
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=1{:g/sc{SigID=cg/rt,Meth=TO}}}"]);
    bench.run(S);
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=1{:g/sc{SigID=dg/d1,Meth=TO}}}"]);
    bench.run(60 * S);
    assert_eq!(playing(&mut bench), "SG{SL=7{cg/bt{SY=OO}}}");
    // What stops it, stops all of it, and what was not played yet has not ended.
    for stop in ["event", "descriptor", "another list"] {
        bench.ask("C=-{MF=ds/ds1_3/1{E=1{g/sc{KA},dd/d1},SG{SL=8{cg/rt{NC={IBE,IBS}},cg/bt{NC={IBE,IBS}}}}}}");
        notified(&mut bench);
        match stop {
            "event" => bench.sees(1, PackageId::D, "1"),
            "descriptor" => drop(bench.ask("C=-{MF=ds/ds1_3/1{SG{}}}")),
            _ => drop(bench.ask("C=-{MF=ds/ds1_3/1{SG{SL=9{cg/ct}}}}")),
        }
        bench.run(MS);
        assert_eq!(notified(&mut bench).concat().matches("g/sc{SigID=cg/rt,").count(), 1, "{stop}");
        assert_eq!(playing(&mut bench), if stop == "another list" { "SG{SL=9{cg/ct{SY=TO}}}" } else { "SG" }, "{stop}");
    }
    // What the card does not play holds nothing up.
    bench.ask("C=-{MF=ds/ds1_3/1{SG{}}}");
    bench.card(CardOrder::Refuse(1));
    bench.ask("C=-{MF=ds/ds1_3/1{E=1{g/sc{KA}},SG{SL=1{cg/rt,cg/bt}}}}");
    bench.run(MS);
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=1{:g/sc{SigID=cg/rt,Meth=NC}}}"]);
    assert_eq!(playing(&mut bench), "SG{SL=1{cg/bt{SY=TO}}}");
    for (list, code) in [("SL=1{cg/rt{SY=OO},cg/bt}", 449), ("SL=1{SL=2{cg/rt}}", 442), ("SL=1{cg/xx}", 452)] {
        let reply = bench.ask(&format!("C=-{{MF=ds/ds1_3/1{{SG{{{list}}}}}}}"));
        assert!(reply.contains(&format!("ER={code}{{")), "{list}: {reply}");
    }
    let many: Vec<&str> = ["cg/rt"; 9].to_vec();
    assert!(bench.ask(&format!("C=-{{MF=ds/ds1_3/1{{SG{{SL=1{{{}}}}}}}}}", many.join(","))).contains("ER=510{"));
}

#[test]
fn an_event_stops_signals_unless_it_keeps_them_active() {
    // EVT-05
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ds/ds1_3/1{E=1{dd/d1{KA},dd/d2},SG{cg/rt}}}");
    bench.sees(1, PackageId::D, "1");
    assert_eq!(playing(&mut bench), "SG{cg/rt{SY=TO}}");
    bench.sees(1, PackageId::D, "3");
    assert_eq!(playing(&mut bench), "SG{cg/rt{SY=TO}}");
    bench.sees(1, PackageId::D, "2");
    assert_eq!(playing(&mut bench), "SG");
}

#[test]
fn what_the_card_cannot_play_is_told_as_not_completed() {
    // G-2 of package g
    let mut bench = Bench::registered();
    bench.card(CardOrder::Refuse(1));
    bench.ask("C=-{MF=ds/ds1_3/1{E=1{g/sc},SG{cg/rt}}}");
    bench.run(MS);
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=1{:g/sc{SigID=cg/rt,Meth=NC}}}"]);
}

#[test]
fn a_continuity_test_tells_success_or_failure_and_nothing_else() {
    // CT-01 to CT-03, CT-05, CT-06
    for (echo, expected) in [(Echo::Loop, "success"), (Echo::Transponder, "success"), (Echo::Open, "failure"), (Echo::Stuck, "failure")] {
        let mut bench = Bench::registered();
        let endpoint = bench.channel(1);
        bench.card(CardOrder::Far(endpoint, FarOrder::Echo(echo)));
        bench.ask("C=-{MF=ds/ds1_3/1{E=1{ct/cmp,g/sc},SG{ct/ct{NC={TO,OR}}}}}");
        bench.run(4 * S);
        assert_eq!(notified(&mut bench), [format!("- N=ds/ds1_3/1{{OE=1{{:ct/cmp{{res={expected}}}}}}}")], "{echo:?}");
        assert_eq!(playing(&mut bench), "SG");
    }
    let mut bench = Bench::registered();
    bench.card(CardOrder::Refuse(1));
    bench.ask("C=-{MF=ds/ds1_3/1{E=1{ct/cmp},SG{ct/ct}}}");
    bench.run(MS);
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=1{:ct/cmp{res=failure}}}"]);
    // The other end's part, until the controller takes it off.
    bench.ask("C=-{MF=ds/ds1_3/1{SG{ct/rsp}}}");
    bench.run(60 * S);
    assert_eq!(playing(&mut bench), "SG{ct/rsp{SY=OO}}");
}
