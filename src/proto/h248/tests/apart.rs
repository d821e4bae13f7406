//! What has nothing to do with each other: the mode of a stream with signals and events, an audit with what waits, ours with what was given.

use super::events::notified;
use super::*;
use crate::proto::package::{PackageId, find_item};
use crate::proto::trunk::EventText;

#[test]
fn a_mode_touches_neither_signals_nor_events() {
    // LC-02
    let mut bench = Bench::registered();
    bench.call(1);
    bench.ask("C=*{MF=ds/ds1_3/1{E=9{dd/d5},SG{cg/rt{SY=OO}}}}");
    for mode in ["IN", "LB", "RC", "SO"] {
        bench.ask(&format!("C=*{{MF=ds/ds1_3/1{{M{{O{{MO={mode}}}}}}}}}"));
        assert!(bench.ask("C=*{AV=ds/ds1_3/1{AT{SG,E}}}").contains("SG{cg/rt{SY=OO}}"), "{mode}");
    }
    let event = find_item(PackageId::D, b"5").expect("a digit");
    let endpoint = bench.gateway.ranges().next().unwrap().iter().next().unwrap();
    bench.card(CardOrder::Event { endpoint, connection: None, event, parameters: EventText::NONE });
    bench.run(MS);
    assert_eq!(notified(&mut bench).len(), 1, "{:?}", bench.sent);
}

#[test]
fn an_audit_waits_for_nothing() {
    // AV-07: a call that waits for the card is no reason.
    let mut bench = Bench::registered();
    bench.card(CardOrder::Delay(500));
    bench.say("T=800{C=${A=ds/ds1_3/1,A=${M{L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}}}}}");
    assert!(bench.ask("C=-{AV=ROOT{AT{PG}},AV=ds/ds1_3/2{AT{M}}}").contains("SI=IV"));
    assert!(bench.ask("C=*{AV=ds/ds1_3/1{AT{M}}}").contains("AV=ds/ds1_3/1{"), "also of what waits");
}

#[test]
fn what_a_description_needs_and_the_controller_did_not_give_is_added() {
    // LR-06
    let mut bench = Bench::registered();
    let reply = bench.ask("C=${A=ds/ds1_3/1,A=${M{L{\nm=audio $ RTP/AVP 0\n}}}}");
    for line in ["v=0", "o=", "s=", "c=IN IP4 192.0.2.10", "t=0 0", "m=audio 16384 RTP/AVP 0"] {
        assert!(reply.contains(&format!("\n{line}")) || reply.contains(&format!("\r\n{line}")), "{line}: {reply}");
    }
}

#[test]
fn topology_and_a_second_stream_are_refused_by_name() {
    // TOP-01, STR-01: and nothing behind the refusal is done.
    let mut bench = Bench::registered();
    let (context, rtp) = bench.call(1);
    let reply = bench.ask(&format!("C={context}{{TP{{ds/ds1_3/1,{rtp},IS}},S=*}}"));
    assert!(reply.contains("ER=444{\"Topology is not supported\"}") && bench.gateway.contexts() == 1, "{reply}");
    let reply = bench.ask(&format!("C={context}{{MF={rtp}{{M{{ST=1{{O{{MO=SR}}}},ST=2{{O{{MO=SR}}}}}}}},S=*}}"));
    assert!(reply.contains("ER=501{\"a termination has one stream\"}") && bench.gateway.contexts() == 1, "{reply}");
}
