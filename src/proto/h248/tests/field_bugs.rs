//! Faults met in the field, O49 to O59: what the gateway does with each message (the codec's part is in `tests/wire/h248/field_bugs.rs`).

use super::{Bench, S, State, controller};
use std::net::SocketAddr;

/// A message of the field about a call that is up, in the names and numbers of the gateway.
fn input(name: &str, (context, rtp): &(u32, String)) -> String {
    let path = format!("{}/tests/data/field-bugs/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect(name);
    let names = [("ds/ds1-1", "ds/ds1_3"), ("DS/DS1-1", "DS/DS1_3"), ("ds1-9", "ds1_9"), ("ds/ds1-4", "ds/ds1_4"), ("rtp/7", rtp.as_str())];
    let text = names.into_iter().fold(text, |text, (from, to)| text.replace(from, to));
    text.replace("C=5{", &format!("C={context}{{")).replace("<mgc>", "[192.0.2.1]:2944").replace("<mgc2.example.net>", "[192.0.2.2]:2944")
}

/// A gateway with a call, and what it answers to a message.
struct Field {
    bench: Bench,
    call: (u32, String),
}

impl Field {
    fn new() -> Field {
        let mut bench = Bench::registered();
        let call = bench.call(3);
        Field { bench, call }
    }

    /// The body of the only answer.
    fn answer(&mut self, name: &str) -> String {
        self.bench.sent.clear();
        let text = input(name, &self.call);
        self.bench.raw(controller(1), text.as_bytes());
        let [(_, told)] = &self.bench.sent[..] else { panic!("{name}: {:?}", self.bench.sent) };
        told.strip_prefix("!/1 [192.0.2.10]:2944\n").unwrap_or(told).to_owned()
    }
}

#[test]
fn o49_o50_o51_what_is_not_supported_costs_its_command_only() {
    let mut field = Field::new();
    assert_eq!(field.answer("O49-h248.01"), "P=101{C=1{MF=rtp/1{ER=447{\"descriptor is not legal in this command\"}}}}");
    assert_eq!(field.answer("O49-h248.02"), "P=102{C=1{S=rtp/1}}", "no statistics");
    let mut field = Field::new();
    assert!(field.answer("O50-h248").starts_with("P=121{C=1{MF=rtp/1{ER=440{"));
    assert!(field.answer("O51-h248").starts_with("P=141{C=1{MF=ds/ds1_3/3{ER=454{"));
    assert_eq!(field.bench.gateway.contexts(), 1);
}

#[test]
fn o52_wildcards_have_one_reply_and_optional_commands_stop_nobody() {
    let mut field = Field::new();
    let told = field.answer("O52-h248.01");
    assert!(told.starts_with("P=161{C=-{AV=ds/*{M{") && told.matches("AV=").count() == 1, "{told}");
    assert_eq!(field.answer("O52-h248.02"), "P=162{C=-{MF=ds/ds1_9/1{ER=430{\"no such termination\"}},AV=ROOT}}");
}

#[test]
fn o53_copies_in_quick_succession_are_executed_once() {
    let mut field = Field::new();
    let text = input("O53-h248", &field.call);
    field.bench.sent.clear();
    for port in [2944, 2944, 4001, 4002] {
        field.bench.raw(SocketAddr::from(([192, 0, 2, 1], port)), text.as_bytes());
    }
    let sent = &field.bench.sent;
    assert!(sent.len() == 4 && sent.iter().all(|(_, told)| *told == sent[0].1 && told.contains("P=181{C=2{A=ds/ds1_3/4,")), "{sent:?}");
    assert_eq!(field.bench.gateway.contexts(), 2, "one more");
}

#[test]
fn o54_attributes_that_nobody_knows_do_no_harm() {
    let mut field = Field::new();
    let local = "C=1{MF=rtp/1{M{L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 8 101\na=rtpmap:101 telephone-event/8000\n}}}}";
    let agreed = field.bench.ask(local);
    assert!(agreed.contains("RTP/AVP 8"), "{agreed}");
    let told = field.answer("O54-h248");
    assert!(told.starts_with("P=191{C=1{MF=rtp/1{") && !told.contains("ER="), "{told}");
}

#[test]
fn o55_reserved_numbers_are_no_wildcards() {
    let mut field = Field::new();
    assert!(field.answer("O55-h248.01").starts_with("P=211{ER=422{"));
    assert!(field.answer("O55-h248.02").starts_with("P=212{C=99999{ER=411{"));
    assert_eq!((field.bench.gateway.contexts(), field.bench.gateway.view().connections), (1, 1));
}

#[test]
fn o56_half_an_acceptance_is_none() {
    let mut bench = Bench::started(2);
    bench.run(3 * S);
    let (to, request) = bench.sent[0].clone();
    let id = request.split_once("T=").and_then(|(_, rest)| rest.split('{').next()).expect("a request").to_owned();
    assert_eq!(to, controller(1));
    bench.sent.clear();
    bench.raw(controller(1), input("O56-h248", &(5, "rtp/7".into())).replace("{SC-tx}", &id).as_bytes());
    bench.run(30 * S);
    assert_ne!(bench.gateway.state(), State::Active);
    assert!(bench.sent.iter().any(|(to, text)| *to == controller(2) && text.contains("SC=ROOT")), "the next one: {:?}", bench.sent);
}

#[test]
fn o57_large_messages_are_answered() {
    let mut field = Field::new();
    let told = field.answer("O57-h248.01");
    assert!(told.starts_with("P=241{C=1{MF=rtp/1{"), "{told}");
    assert!(field.answer("O57-h248.02").starts_with("P=242{C=1{MF=rtp/1{ER=440{"));
    assert_eq!(field.bench.gateway.contexts(), 1);
}

#[test]
fn o58_empty_signals_stop_what_plays_in_whatever_case_it_was_named() {
    let mut field = Field::new();
    assert_eq!(field.answer("O58-h248.01"), "P=261{C=1{MF=ds/ds1_3/3}}");
    assert_eq!(field.bench.ask("C=1{AV=ds/ds1_3/3{AT{SG}}}"), "C=1{AV=ds/ds1_3/3{SG{cg/rt{SY=TO}}}}");
    assert_eq!(field.answer("O58-h248.02"), "P=262{C=1{MF=ds/ds1_3/3}}");
    assert_eq!(field.bench.ask("C=1{AV=ds/ds1_3/3{AT{SG}}}"), "C=1{AV=ds/ds1_3/3{SG}}");
}

#[test]
fn o59_what_is_out_of_service_takes_no_call() {
    let mut field = Field::new();
    field.bench.service(1, false, 905);
    let told = field.answer("O59-h248.01");
    assert!(told.starts_with("P=281{C=") && told.contains("A=ds/ds1_4/1{ER=5"), "{told}");
    assert_eq!(field.bench.gateway.contexts(), 1, "no context is left");
    assert!(field.answer("O59-h248.02").contains("SI=OS"));
}
