//! Events, EventBuffer and Notify as a controller sees them.

use super::*;
use crate::proto::package::parameters::Digits;
use crate::proto::package::{PackageId, find_item};
use crate::proto::trunk::{DigitKind, EventText, FarOrder, Indication};

/// What the Notify commands sent since it was looked at last say, without their times; each is answered, and so are those that follow.
pub(super) fn notified(bench: &mut Bench) -> Vec<String> {
    let (mut found, mut seen) = (Vec::new(), Vec::new());
    while !bench.sent.is_empty() {
        for (to, text) in std::mem::take(&mut bench.sent) {
            let Some(at) = text.find("N=").filter(|_| text.contains("T=")) else { continue };
            let id = id_of(&text);
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            let context = text.split("C=").nth(1).and_then(|rest| rest.split('{').next()).unwrap();
            found.push(without_times(&format!("{context} {}", &text[at..text.len() - 2])));
            bench.say_from(to, &format!("P={id}{{C={context}{{N=a}}}}"));
        }
    }
    found
}

/// `20260101T00000012:` is `:`
fn without_times(text: &str) -> String {
    let mut parts = text.split(':').peekable();
    let mut out = String::new();
    while let Some(part) = parts.next() {
        let stamped = parts.peek().is_some() && part.len() >= 17 && part.as_bytes()[part.len() - 9] == b'T';
        out += if stamped { &part[..part.len() - 17] } else { part };
        if parts.peek().is_some() {
            out.push(':');
        }
    }
    out
}

impl Bench {
    /// A channel of T1 3.
    pub fn channel(&self, number: u8) -> crate::proto::base::EndpointIndex {
        crate::proto::base::EndpointIndex(self.gateway.ranges().next().unwrap().first + u32::from(number) - 1)
    }

    /// The far end of a channel sends keys; the clock goes on until they are through.
    pub fn keys(&mut self, channel: u8, keys: &str) {
        let mut digits = Digits::NONE;
        assert!(keys.bytes().all(|key| digits.push(key)));
        let endpoint = self.channel(channel);
        self.card(CardOrder::Far(endpoint, FarOrder::Digits(DigitKind::Dtmf, digits)));
        self.run(150 * MS * keys.len() as u32);
    }

    /// The card sees an event.
    pub fn sees(&mut self, channel: u8, package: PackageId, name: &str) {
        let event = find_item(package, name.as_bytes()).unwrap();
        let endpoint = self.channel(channel);
        self.card(CardOrder::Event { endpoint, connection: None, event, parameters: EventText::NONE });
        self.run(MS);
    }
}

#[test]
fn an_event_that_is_asked_for_is_notified_each_time() {
    // EVT-01, EVT-03, EVT-04, EVT-11, NTF-01 to NTF-03, OE-01
    let mut bench = Bench::registered();
    assert_eq!(bench.ask("C=-{MF=ds/ds1_3/1{E=17{dd/d5,cd/bt}}}"), "C=-{MF=ds/ds1_3/1}");
    bench.keys(1, "565");
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=17{:dd/d5}}", "- N=ds/ds1_3/1{OE=17{:dd/d5}}"]);
    bench.sees(1, PackageId::CG, "bt");
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=17{:cd/bt}}"]);
    // A whole package, in a context; another termination says nothing.
    let (context, _) = bench.call(2);
    bench.ask(&format!("C={context}{{MF=ds/ds1_3/2{{E=18{{dd/*}}}}}}"));
    bench.keys(2, "*");
    bench.keys(3, "*");
    assert_eq!(notified(&mut bench), [format!("{context} N=ds/ds1_3/2{{OE=18{{:dd/ds}}}}")]);
    // EVT-09: none any more.
    bench.ask("C=-{MF=ds/ds1_3/1{E}}");
    bench.keys(1, "5");
    assert!(notified(&mut bench).is_empty());
    // SUB-04: nor when it left its context.
    bench.ask(&format!("C={context}{{S=ds/ds1_3/2{{AT{{}}}}}}"));
    bench.keys(2, "*");
    assert!(notified(&mut bench).is_empty());
}

#[test]
fn the_time_in_a_notify_is_that_of_the_event() {
    // OE-01, TXT-19
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ds/ds1_3/1{E=1{dd/d1}}}");
    bench.run(5 * S);
    let at = bench.now;
    bench.sees(1, PackageId::D, "1");
    let stamp = super::super::time::stamp(1_767_225_600_000, at);
    let expected = format!("OE=1{{{}:dd/d1}}", std::str::from_utf8(&stamp).unwrap());
    assert!(bench.sent.iter().any(|(_, text)| text.contains(&expected)), "{expected} {:?}", bench.sent);
}

#[test]
fn one_notify_of_a_termination_is_out_at_a_time() {
    // NTF-04, NTF-05, EVT-08, EVT-11
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ds/ds1_3/1{E=1{dd/*}}}");
    bench.sees(1, PackageId::D, "1");
    bench.sees(1, PackageId::D, "2");
    bench.sees(1, PackageId::D, "3");
    let (to, first) = bench.sent.iter().find(|(_, text)| text.contains("N=")).cloned().unwrap();
    assert!(first.contains("OE=1{") && first.contains(":dd/d1}"), "{first}");
    // Another descriptor: what was seen before is told under the request that asked for it.
    bench.ask("C=-{MF=ds/ds1_3/1{E=2{dd/*}}}");
    bench.sees(1, PackageId::D, "4");
    bench.sent.clear();
    bench.say_from(to, &format!("P={}{{C=-{{N=ds/ds1_3/1{{ER=500{{}}}}}}}}", id_of(&first)));
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=1{:dd/d2,:dd/d3}}", "- N=ds/ds1_3/1{OE=2{:dd/d4}}"]);
}

#[test]
fn events_that_cannot_be_detected_are_refused_with_the_code_that_says_why() {
    // EVT-10, EVT-13, PRP-12, DM-20
    let mut bench = Bench::registered();
    let (_, rtp) = bench.call(2);
    for (what, code) in [
        ("C=-{MF=ds/ds1_3/1{E=1{al/of}}}", 440),
        ("C=-{MF=ds/ds1_3/1{E=1{ocp/mg_overload}}}", 440),
        ("C=-{MF=ds/ds1_3/1{E=1{dd/d17}}}", 451),
        ("C=-{MF=ds/ds1_3/1{E=1{dd/etd}}}", 512),
        ("C=-{MF=ds/ds1_3/1{E=1{dd/ce}}}", 457),
        ("C=-{MF=ds/ds1_3/1{E=1{dd/ce{DM=nomap}}}}", 520),
        ("C=-{MF=ds/ds1_3/1{E=1{dd/d1{foo=1}}}}", 454),
        ("C=-{MF=ds/ds1_3/1{E=*{dd/d1}}}", 442),
        ("C=-{MF=ds/ds1_3/1{EB{cd/xx}}}", 451),
        ("C=-{MF=ds/ds1_3/1{SG{cg/xx}}}", 452),
        ("C=-{MF=ds/ds1_3/1{SG{cg/pt}}}", 513),
        ("C=-{MF=ROOT{SG{cg/rt}}}", 447),
        ("C=-{MF=ROOT{E=1{dd/d1}}}", 440),
        ("C=-{MF=ds/ds1_3/1{DM=plan{}}}", 520),
        ("C=-{MF=ds/ds1_3/1{E=1{dd/d1{EM{SG{cg/xx}}}}}}", 452),
    ] {
        let reply = bench.ask(what);
        assert!(reply.contains(&format!("ER={code}{{")), "{what}: {reply}");
    }
    let reply = bench.ask(&format!("C=*{{MF={rtp}{{SG{{cg/rt}}}}}}"));
    assert!(reply.contains("ER=440{"), "{reply}");
    // None of it was done.
    assert_eq!(bench.ask("C=-{AV=ds/ds1_3/1{AT{E,EB,SG,DM,OE}}}"), "C=-{AV=ds/ds1_3/1{E,SG,DM,OE,EB}}");
}

#[test]
fn in_lockstep_only_what_the_buffer_lists_is_held_and_told_later() {
    // TS-02, EB-01 to EB-03, EB-08, EVT-08
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ds/ds1_3/1{M{TS{BF=SP}},EB{dd/d1,dd/d2,dd/d3},E=1{dd/d1}}}");
    bench.keys(1, "1294");
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=1{:dd/d1}}"]);
    let reply = without_times(&bench.ask("C=-{AV=ds/ds1_3/1{AT{OE,EB}}}"));
    assert_eq!(reply, "C=-{AV=ds/ds1_3/1{OE=1{:dd/d2},EB{dd/d1,dd/d2,dd/d3}}}");
    bench.keys(1, "3");
    // d2 is not in the new list and is thrown away; d3 is told, with its own time, and the next are held.
    let before = bench.now;
    bench.run(3 * S);
    bench.sent.clear();
    bench.ask("C=-{MF=ds/ds1_3/1{E=2{dd/d3,dd/d1}}}");
    bench.run(MS);
    let told = bench.sent.iter().find(|(_, text)| text.contains("N=")).unwrap().1.clone();
    let stamp = told.split("OE=2{").nth(1).unwrap();
    assert!(stamp.as_bytes()[..17] <= super::super::time::stamp(1_767_225_600_000, before)[..], "{told}");
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=2{:dd/d3}}"]);
    bench.keys(1, "1");
    assert!(notified(&mut bench).is_empty());
    // EB-03: with nothing held it waits with the new list.
    bench.ask("C=-{MF=ds/ds1_3/1{E=3{dd/d9}}}");
    bench.keys(1, "9");
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=3{:dd/d9}}"]);
}

#[test]
fn the_buffer_is_emptied_by_an_empty_list_by_off_and_by_empty_events() {
    // EB-04 to EB-06, EVT-09
    for emptied in ["M{TS{BF=OFF}}", "EB", "E"] {
        let mut bench = Bench::registered();
        bench.ask("C=-{MF=ds/ds1_3/1{M{TS{BF=SP}},EB{dd/*},E=1{dd/d1}}}");
        bench.keys(1, "12");
        notified(&mut bench);
        assert!(bench.ask("C=-{AV=ds/ds1_3/1{AT{OE}}}").contains("dd/d2"));
        bench.ask(&format!("C=-{{MF=ds/ds1_3/1{{{emptied}}}}}"));
        assert_eq!(bench.ask("C=-{AV=ds/ds1_3/1{AT{OE}}}"), "C=-{AV=ds/ds1_3/1{OE}}", "{emptied}");
        bench.ask("C=-{MF=ds/ds1_3/1{E=2{dd/*}}}");
        bench.run(S);
        assert!(notified(&mut bench).is_empty(), "{emptied}");
        bench.keys(1, "7");
        assert_eq!(notified(&mut bench).len(), 1, "{emptied}");
    }
}

#[test]
fn a_buffer_that_is_full_says_so_in_the_next_notify() {
    // EB-07, ERD-03
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ds/ds1_3/1{M{TS{BF=SP}},EB{dd/*},E=1{dd/d1}}}");
    (0..40).for_each(|_| bench.sees(1, PackageId::D, "1"));
    notified(&mut bench);
    bench.ask("C=-{MF=ds/ds1_3/1{E=2{dd/d1}}}");
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=2{:dd/d1},ER=518{\"event buffer full\"}}"]);
    assert_eq!(bench.gateway.counters.get(crate::proto::base::Counter::QuarantineLost), 7);
}

#[test]
fn what_an_event_embeds_takes_the_place_of_the_descriptors() {
    // EVT-06, EVT-07, DM-13
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ds/ds1_3/1{E=1{dd/d1{EM{SG{cg/rt},E=2{dd/d2{EM{SG{cg/bt}}}}}}}}}");
    bench.keys(1, "21");
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=1{:dd/d1}}"]);
    let reply = bench.ask("C=-{AV=ds/ds1_3/1{AT{E,SG}}}");
    assert_eq!(reply, "C=-{AV=ds/ds1_3/1{E=2{dd/d2{EM{SG{cg/bt}}}},SG{cg/rt{SY=TO}}}}");
    bench.keys(1, "12");
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=2{:dd/d2}}"]);
    let reply = bench.ask("C=-{AV=ds/ds1_3/1{AT{SG}}}");
    assert_eq!(reply, "C=-{AV=ds/ds1_3/1{SG{cg/bt{SY=TO}}}}");
    assert!(bench.ask("C=-{MF=ds/ds1_3/1{E=1{dd/d1{KA,EM{SG{cg/rt}}}}}}").contains("ER=4"));
}

#[test]
fn embedded_events_in_lockstep_begin_with_what_is_held() {
    // EB-02
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ds/ds1_3/1{M{TS{BF=SP}},EB{dd/*},E=1{dd/d1{EM{E=2{dd/d3}}}}}}");
    bench.keys(1, "1233");
    assert_eq!(notified(&mut bench), ["- N=ds/ds1_3/1{OE=1{:dd/d1}}", "- N=ds/ds1_3/1{OE=2{:dd/d3}}"]);
    assert!(bench.ask("C=-{AV=ds/ds1_3/1{AT{OE}}}").contains("OE=2{"));
}

#[test]
fn a_span_that_fails_is_told_of_where_that_is_asked() {
    // N-5 of nt: netfail on terminations in a context; g/cause; PRP-02
    let mut bench = Bench::registered();
    let (context, _) = bench.call(1);
    bench.ask(&format!("C={context}{{MF=ds/ds1_3/1{{E=5{{tdmc/netfail,g/cause}}}}}}"));
    bench.ask("C=-{MF=ds/ds1_3/2{E=6{nt/netfail}}}");
    bench.service(0, false, 902);
    bench.run(MS);
    let told = notified(&mut bench);
    assert_eq!(
        told,
        [format!(
            "{context} N=ds/ds1_3/1{{OE=5{{:nt/netfail{{cs=\"span out of service\"}},\
             :g/cause{{Generalcause=FT,Failurecause=\"span out of service\"}}}}}}"
        )]
    );
}

/// The media time-out of the gateway (`cards.cesopsn.media_timeout`): told where that is asked, once, and the context stays.
#[test]
fn a_far_end_that_falls_silent_is_told_of_where_that_is_asked() {
    let mut bench = Bench::registered();
    let (context, rtp) = bench.call(1);
    bench.ask(&format!("C={context}{{MF={rtp}{{E=5{{nt/netfail}}}}}}"));
    let (now, endpoint) = (bench.now, bench.channel(1));
    for again in [false, true] {
        bench.gateway.indication(now, Indication::MediaLost { endpoint, connection: 0, again }, &mut |_, _| {});
    }
    bench.run(MS);
    assert_eq!(notified(&mut bench).concat(), format!("{context} N={rtp}{{OE=5{{:nt/netfail{{cs=\"nothing received\"}}}}}}"));
    assert!(bench.ask(&format!("C={context}{{AV={rtp}{{AT{{}}}}}}")).contains(&rtp));
}

#[test]
fn events_of_streams_come_from_the_card() {
    let mut bench = Bench::registered();
    let (context, rtp) = bench.call(1);
    bench.ask(&format!("C={context}{{MF={rtp}{{E=5{{nt/qualert{{th=10}},rtp/pltrans}}}}}}"));
    let endpoint = bench.channel(1);
    for (name, parameters) in [("qa", ""), ("uc", "PCMA"), ("ma", "")] {
        let event = find_item(PackageId::R, name.as_bytes()).unwrap();
        let parameters = EventText::new(parameters.as_bytes());
        bench.card(CardOrder::Event { endpoint, connection: Some(0), event, parameters });
    }
    bench.run(MS);
    let told = notified(&mut bench);
    assert_eq!(told.concat(), format!("{context} N={rtp}{{OE=5{{:nt/qualert,:rtp/pltrans{{rtppltype=\"PCMA\"}}}}}}"));
}

#[test]
fn a_controller_that_says_nothing_is_asked_for_a_sign_of_life() {
    // H.248.14: it/ito on ROOT
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ROOT{E=9{it/ito{mit=500}}}}");
    bench.run(4 * S);
    bench.ask("C=-{AV=ROOT{AT{}}}");
    bench.sent.clear();
    bench.run(4900 * MS);
    assert!(notified(&mut bench).is_empty());
    bench.run(200 * MS);
    assert_eq!(notified(&mut bench), ["- N=ROOT{OE=9{:it/ito}}"]);
    bench.run(4900 * MS);
    assert!(notified(&mut bench).is_empty());
    bench.run(200 * MS);
    assert_eq!(notified(&mut bench).len(), 1);
    // Asked for no more.
    bench.ask("C=-{MF=ROOT{E}}");
    bench.run(20 * S);
    assert!(notified(&mut bench).is_empty());
}

#[test]
fn what_a_command_asks_for_while_it_waits_for_the_card_is_done_when_the_card_has_answered() {
    let mut bench = Bench::registered();
    bench.card(CardOrder::Delay(50));
    bench.say("T=900{C=${A=ds/ds1_3/1,A=${M{O{MO=SR},L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}},E=3{nt/qualert}}}}");
    assert!(bench.sent.is_empty());
    bench.run(60 * MS);
    let reply = bench.sent.iter().find(|(_, text)| text.contains("P=900{")).unwrap().1.clone();
    let context: u32 = reply.split("C=").nth(1).unwrap().split('{').next().unwrap().parse().unwrap();
    assert!(bench.ask(&format!("C={context}{{AV=rtp/*{{AT{{E}}}}}}")).contains("E=3{nt/qualert}"));
}

#[test]
fn what_can_be_detected_and_played_is_told() {
    // AC-01, PRP-01, PD-01
    let mut bench = Bench::registered();
    let reply = bench.ask("C=-{AC=ds/ds1_3/1{AT{E,SG,OE,EB}}}");
    assert!(reply.contains("E=*{g/cause,g/sc,nt/netfail") && reply.contains("ct/cmp}") && reply.contains("SG{dg/d0"), "{reply}");
    assert!(!reply.contains("dd/etd") && !reply.contains("/pt"));
    assert_eq!(bench.ask("C=-{AC=ROOT{AT{E,SG}}}"), "C=-{AC=ROOT{E=*{it/ito,chp/mgcon,ocp/mg_overload},SG}}");
    assert_eq!(bench.ask("C=-{AV=ds/ds1_3/1{AT{PG}}}"), "C=-{AV=ds/ds1_3/1{PG{g-1,nt-1,tdmc-1,dd-1,dg-1,cd-1,cg-1,ct-1}}}");
}
