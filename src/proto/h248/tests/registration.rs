//! Registration, failover, handoff, and service changes both ways.

use super::*;
use crate::proto::aggregate::Pattern;
use crate::proto::endpoint::RestartMethod;
use crate::proto::mgcp::Restart;

/// Registrations sent: to whom, with which method and reason.
fn registrations(bench: &mut Bench) -> Vec<(SocketAddr, String)> {
    let sent = std::mem::take(&mut bench.sent);
    let mut list: Vec<(SocketAddr, String)> = sent.into_iter().filter(|(_, text)| text.contains("SC=ROOT{SV{MT=")).collect();
    list.dedup();
    list
}

#[test]
fn a_gateway_registers_first_with_its_primary_controller() {
    // ASC-01, ASC-14, SC-10, SC-11, SC-02, TXT-19
    let mut bench = Bench::started(2);
    bench.run(2600 * MS);
    let sent = registrations(&mut bench);
    let text = "!/1 [192.0.2.10]:2944\nT=ID{C=-{SC=ROOT{SV{MT=RS,V=1,RE=\"901 Cold Boot\",20260101T0000";
    let id = id_of(&sent[0].1);
    assert!(sent[0].0 == controller(1) && sent[0].1.starts_with(&text.replace("ID", &id.to_string())), "{sent:?}");
    assert_eq!(bench.gateway.state(), State::Registering);
}

#[test]
fn nothing_reaches_a_controller_before_the_registration() {
    // SC-19, ASC-04: a command ends the wait, and is answered 505 until the registration is.
    let mut bench = Bench::started(1);
    bench.say("T=1{C=-{AV=ROOT{AT{M}}}}");
    assert!(bench.sent.len() == 1 && bench.sent[0].1.contains("SC=ROOT"), "{:?}", bench.sent);
    bench.sent.clear();
    bench.say("T=1{C=-{AV=ROOT{AT{M}}}}");
    assert!(bench.sent[0].1.contains("P=1{ER=505{"), "{:?}", bench.sent);
    // It was not remembered: now it is done.
    bench.sent.clear();
    bench.run(S);
    bench.accept(controller(1));
    bench.say("T=1{C=-{AV=ROOT{AT{}}}}");
    assert!(bench.sent[0].1.contains("P=1{C=-{AV=ROOT}}"), "{:?}", bench.sent);
}

#[test]
fn who_is_no_controller_is_not_answered_and_who_is_not_in_charge_is_refused() {
    // SEC-05, CTX-09
    let mut bench = Bench::registered_with(2);
    bench.raw(([198, 51, 100, 1], 2944).into(), b"!/1 [192.0.2.1]:2944 T=1{C=-{AV=ROOT{AT{}}}}");
    assert!(bench.sent.is_empty());
    bench.say_from(controller(2), "T=1{C=-{AV=ROOT{AT{}}}}");
    assert!(bench.sent[0].0 == controller(2) && bench.sent[0].1.contains("ER=504{"), "{:?}", bench.sent);
}

#[test]
fn controllers_that_do_not_answer_are_passed_over_and_asked_again_later() {
    // ASC-03
    let mut bench = Bench::started(3);
    bench.run(90 * S);
    let asked: Vec<SocketAddr> = registrations(&mut bench).into_iter().map(|(to, _)| to).collect();
    assert_eq!(asked[..3], [controller(1), controller(2), controller(3)], "{asked:?}");
    assert!(asked[3..].first() == Some(&controller(1)), "{asked:?}");
}

#[test]
fn a_controller_may_name_another_one_of_the_list() {
    // ASC-02, SC-15; one that is not listed is not followed.
    let mut bench = Bench::started(2);
    bench.run(3 * S);
    let id = id_of(&bench.sent[0].1);
    bench.sent.clear();
    bench.say(&format!("P={id}{{C=-{{SC=ROOT{{SV{{MG=[192.0.2.2]:2944,20260101T00000012}}}}}}}}"));
    assert_eq!(registrations(&mut bench)[0].0, controller(2));
    let mut bench = Bench::started(2);
    bench.run(3 * S);
    let id = id_of(&bench.sent[0].1);
    bench.sent.clear();
    bench.say(&format!("P={id}{{C=-{{SC=ROOT{{SV{{MG=[198.51.100.9]:2944,20260101T00000012}}}}}}}}"));
    assert_eq!(registrations(&mut bench)[0].0, controller(2), "the next of the list");
    // ASC-13: the present one is asked again, as any other would be.
    let mut bench = Bench::started(2);
    bench.run(3 * S);
    let id = id_of(&bench.sent[0].1);
    bench.sent.clear();
    bench.say(&format!("P={id}{{C=-{{SC=ROOT{{SV{{MG=[192.0.2.1]:2944,20260101T00000012}}}}}}}}"));
    let again = registrations(&mut bench);
    assert!(again[0].0 == controller(1) && bench.gateway.state() != State::Active, "{again:?}");
    // An error is no acceptance.
    let mut bench = Bench::started(2);
    bench.run(3 * S);
    let id = id_of(&bench.sent[0].1);
    bench.sent.clear();
    bench.say(&format!("P={id}{{C=-{{SC=ROOT{{ER=502{{\"not now\"}}}}}}}}"));
    assert_eq!(registrations(&mut bench)[0].0, controller(2));
}

/// The coordinator says that a span of the gateway went.
fn announce(bench: &mut Bench, method: RestartMethod, channels: u32) {
    let pattern = Pattern::Channels { span: SpanIndex(2), channels };
    let restart = Restart { pattern, method, delay_s: 0, reason: 905 };
    bench.gateway.announce(bench.now, &restart);
    bench.turn();
}

#[test]
fn a_controller_that_fails_is_followed_by_the_next_one_and_calls_stay() {
    // ASC-09, ASC-10, ASC-16
    let mut bench = Bench::registered_with(2);
    bench.call(5);
    bench.sent.clear();
    announce(&mut bench, RestartMethod::Forced, 2);
    assert!(bench.sent[0].1.contains("C=-{SC=ds/ds1_3/1{SV{MT=FO,RE=\"907 Transmission Failure\"}}}"), "{:?}", bench.sent);
    bench.sent.clear();
    bench.run(30 * S);
    let asked = registrations(&mut bench);
    assert!(asked[0].0 == controller(2) && asked[0].1.contains("MT=FL,V=1,RE=\"909 MGC Impending Failure\""), "{asked:?}");
    // Nor that one: back to the one that had it, which is told so.
    bench.run(22 * S);
    let asked = registrations(&mut bench);
    let back = asked.iter().find(|(to, _)| *to == controller(1)).expect("the first one again");
    assert!(back.1.contains("MT=DC,V=1,RE=\"900 Service Restored\""), "{asked:?}");
    assert_eq!(bench.gateway.contexts(), 1);
    bench.sent.push(back.clone());
    bench.accept(controller(1));
    assert_eq!(bench.gateway.contexts(), 1);
}

#[test]
fn operators_see_who_is_in_charge_and_since_when_nobody_is() {
    let mut bench = Bench::registered_with(2);
    let registered = bench.now;
    bench.call(5);
    let view = bench.gateway.view();
    assert_eq!(
        (view.state, view.controller, view.since, view.contexts, view.connections),
        (State::Active, Some(controller(1)), registered, 1, 1)
    );
    announce(&mut bench, RestartMethod::Forced, 2);
    assert_eq!(bench.gateway.view().own.len(), 1);
    bench.run(40 * S);
    let view = bench.gateway.view();
    assert!(view.state != State::Active && view.since > registered + 10 * S && view.since < bench.now, "{view:?}");
}

#[test]
fn a_handoff_keeps_the_old_controller_in_charge_until_the_new_one_has_accepted() {
    // SC-08, ASC-11, ASC-12
    let mut bench = Bench::registered_with(2);
    let (context, rtp) = bench.call(1);
    let reply = bench.ask("C=-{SC=ROOT{SV{MT=HO,RE=\"903 MGC Directed Change\",MG=[192.0.2.2]:2944}}}");
    assert_eq!(reply, "C=-{SC=ROOT}");
    let asked = registrations(&mut bench);
    assert!(asked[0].0 == controller(2) && asked[0].1.contains("MT=HO,V=1,RE=\"903 MGC Directed Change\""), "{asked:?}");
    assert!(bench.ask(&format!("C={context}{{AV={rtp}{{AT{{}}}}}}")).contains(&rtp));
    bench.say_from(controller(2), "T=1{C=-{AV=ROOT{AT{}}}}");
    assert!(bench.sent.last().unwrap().1.contains("ER=505{"));
    bench.sent.extend(asked);
    bench.accept(controller(2));
    bench.say_from(controller(2), &format!("T=2{{C={context}{{AV={rtp}{{AT{{}}}}}}}}"));
    assert!(bench.sent.last().unwrap().1.contains(&format!("AV={rtp}")));
    bench.say("T=3{C=-{AV=ROOT{AT{}}}}");
    assert!(bench.sent.last().unwrap().1.contains("ER=504{"));
    // To nobody that is listed.
    bench.sent.clear();
    bench.say_from(controller(2), "T=4{C=-{SC=ROOT{SV{MT=HO,RE=\"903\",MG=[198.51.100.9]}}}}");
    assert!(bench.sent[0].1.contains("ER=402{"), "{:?}", bench.sent);
}

#[test]
fn a_new_controller_is_told_what_is_out_of_service() {
    let mut bench = Bench::started(1);
    bench.run(3 * S);
    bench.service(1, false, 902);
    bench.accept(controller(1));
    let told = &bench.sent[0].1;
    assert!(told.contains("C=-{SC=ds/ds1_4/*{SV{MT=FO,RE=\"906 Loss of lower layer connectivity\"}}}"), "{:?}", bench.sent);
    assert_eq!(bench.sent.len(), 1);
    // TRM-15, ADD-03
    assert!(bench.ask("C=${A=ds/ds1_4/1}").contains("ER=502{"));
    assert!(bench.ask("C=-{AV=ds/ds1_4/1{AT{M}}}").contains("SI=OS"));
    assert_eq!(bench.gateway.contexts(), 0);
}

#[test]
fn what_the_coordinator_announces_is_a_service_change() {
    // SC-05, SC-06: one command for a span; nothing for what the controller knows.
    let mut bench = Bench::registered();
    bench.sent.clear();
    let all = (1 << 25) - 2;
    announce(&mut bench, RestartMethod::Restart, all);
    assert!(bench.sent.is_empty(), "{:?}", bench.sent);
    bench.service(0, false, 905);
    announce(&mut bench, RestartMethod::Forced, 0b100);
    bench.service(0, true, 0);
    announce(&mut bench, RestartMethod::Restart, 0b100);
    let texts: Vec<&str> = bench.sent.iter().map(|(_, text)| text.as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("MT=FO,RE=\"907 Transmission Failure\"")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("MT=RS,RE=\"900 Service Restored\"")), "{texts:?}");
}

#[test]
fn a_controller_orders_terminations_out_and_back() {
    // SC-18, SC-04, SC-17
    let mut bench = Bench::registered();
    let (context, _) = bench.call(1);
    let reply = bench.ask("C=-{SC=ds/ds1_3/2{SV{MT=FO,RE=\"905\"}}}");
    assert_eq!(reply, "C=-{SC=ds/ds1_3/2}");
    assert!(bench.ask("C=${A=ds/ds1_3/2}").contains("ER=502{"));
    bench.ask("C=-{SC=ds/ds1_3/2{SV{MT=RS,RE=\"900\"}}}");
    assert!(bench.ask("C=${A=ds/ds1_3/2}").contains("A=ds/ds1_3/2}"));
    // Gracefully: when it leaves its context.
    bench.ask("C=-{SC=ds/ds1_3/1{SV{MT=GR,RE=\"905\"}}}");
    assert!(bench.ask(&format!("C={context}{{AV=ds/ds1_3/1{{AT{{M}}}}}}")).contains("SI=IV"));
    bench.ask(&format!("C={context}{{S=ds/ds1_3/1}}"));
    assert!(bench.ask("C=-{AV=ds/ds1_3/1{AT{M}}}").contains("SI=OS"));
    assert!(bench.ask("C=-{SC=ds/ds1_3/${SV{MT=FO,RE=\"905\"}}}").contains("ER=410{"));
    assert!(bench.ask("C=-{SC=ds/ds1_3/3{SV{MT=FO,RE=\"905\",DL=5}}}").contains("ER=501{"), "at once is at once");
    assert!(bench.ask("C=-{SC=ds/ds1_3/3{SV{MT=DC,RE=\"905\"}}}").contains("ER=501{"));
    // What would never be done is not acknowledged.
    let (context, rtp) = bench.call(4);
    for (method, reason) in [("GR", 905), ("RS", 900)] {
        let reply = bench.ask(&format!("C={context}{{SC={rtp}{{SV{{MT={method},RE=\"{reason}\",DL=10}}}}}}"));
        assert!(reply.contains("ER=501{\"no delay for an ephemeral termination\"}"), "{reply}");
    }
}

#[test]
fn a_delay_of_an_ordered_change_is_waited_for() {
    // SC-03, SC-16, SC-06: out of service when the delay ends or the termination leaves its context, whichever is first.
    let mut bench = Bench::registered();
    let (context, _) = bench.call(1);
    let is_out =
        |bench: &mut Bench, context, channel| bench.ask(&format!("C={context}{{AV=ds/ds1_3/{channel}{{AT{{M}}}}}}")).contains("SI=OS");
    let state = |bench: &mut Bench, channel: u32| ["-", "*"].iter().any(|context| is_out(bench, context, channel));
    for channel in [1, 2, 3] {
        let reply = bench.ask(&format!("C=*{{SC=ds/ds1_3/{channel}{{SV{{MT=GR,RE=\"905\",DL=10}}}}}}"));
        assert!(reply.contains(&format!("SC=ds/ds1_3/{channel}")) && !reply.contains("ER"), "{reply}");
    }
    assert!(bench.ask("C=${A=ds/ds1_3/2}").contains("ER=502{"), "no new work");
    bench.run(5 * S);
    assert_eq!([1, 2, 3].map(|channel| state(&mut bench, channel)), [false; 3]);
    bench.ask(&format!("C={context}{{S=ds/ds1_3/1}}"));
    assert!(state(&mut bench, 1));
    // Called off, or ended.
    bench.ask("C=-{SC=ds/ds1_3/3{SV{MT=RS,RE=\"900\"}}}");
    bench.run(5 * S);
    assert_eq!([1, 2, 3].map(|channel| state(&mut bench, channel)), [true, true, false]);
    // Back after a delay; ROOT means all of them.
    bench.ask("C=-{SC=ROOT{SV{MT=RS,RE=\"900\",DL=3}}}");
    bench.run(2 * S);
    assert!(state(&mut bench, 1) && state(&mut bench, 2));
    bench.run(2 * S);
    assert_eq!([1, 2, 3].map(|channel| state(&mut bench, channel)), [false; 3]);
    assert!(bench.ask("C=${A=ds/ds1_3/2}").contains("A=ds/ds1_3/2}"));
}

#[test]
fn later_requests_go_where_the_controller_says() {
    // SC-13: another port; never to a host that is not listed.
    for (address, port) in [("AD=3000", 3000), ("AD=[192.0.2.1]:3001", 3001), ("AD=[198.51.100.9]:3002", 2944)] {
        let mut bench = Bench::started(1);
        bench.run(3 * S);
        let id = id_of(&bench.sent[0].1);
        bench.sent.clear();
        bench.say(&format!("P={id}{{C=-{{SC=ROOT{{SV{{V=1,{address},20260101T00000012}}}}}}}}"));
        announce(&mut bench, RestartMethod::Forced, 2);
        assert_eq!(bench.sent[0].0, SocketAddr::from(([192, 0, 2, 1], port)), "{address}: {:?}", bench.sent);
    }
}
