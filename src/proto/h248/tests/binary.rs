//! A gateway that speaks BER does what one does that speaks text.

use super::*;
use crate::proto::base::Counter;

/// What a controller sees of a call, audits, events and refusals, as texts.
fn told(bench: &mut Bench) -> Vec<String> {
    let (context, rtp) = bench.call(1);
    let mut told = vec![rtp.clone()];
    for body in [
        "C=-{AV=ROOT{AT{M,PG,E}}}".to_owned(),
        "C=-{AV=ds/ds1_3/2{AT{M,E,SG,EB,OE,DM,SA,PG}}}".to_owned(),
        "C=-{W-AV=*{AT{PG}}}".to_owned(),
        "C=-{AC=ds/ds1_3/2{AT{M,E,SG,SA}}}".to_owned(),
        "C=*{AV=*{AT{}}}".to_owned(),
        "C=-{MF=ds/ds1_3/2{E=5{dd/*,dd/ce{DM={S:3,(x.)}},g/sc},SG{cg/rt{DR=100,NC={TO}}},DM=dm0007{(xx)}}}".to_owned(),
        "C=-{AV=ds/ds1_3/2{AT{E,SG,DM}}}".to_owned(),
        format!("C={context}{{PR=3,MF={rtp}{{M{{O{{MO=SO}},R{{\nv=0\nc=IN IP4 192.0.2.9\nm=audio 4000 RTP/AVP 8\n}}}}}}}}"),
        format!("C={context}{{AV={rtp}{{AT{{M,SA}}}}}}"),
        "C=-{MF=ds/ds1_3/2{E=1{p0077/i0001}}}".to_owned(),
        "C=-{MF=ds/ds1_3/99}".to_owned(),
        "C=-{SC=ds/ds1_3/4{SV{MT=FO,RE=\"905 test\"}}}".to_owned(),
        "C=77{S=*}".to_owned(),
        format!("C={context}{{S=ds/ds1_3/1,S={rtp}}}"),
    ] {
        told.push(bench.ask(&body));
    }
    bench.run(2 * S);
    told.extend(bench.sent.drain(..).filter(|(_, text)| text.contains("OE=")).map(|(_, text)| text.split_once('{').unwrap().1.to_owned()));
    told
}

#[test]
fn in_octets_it_does_what_it_does_in_text() {
    let all = [MessageEncoding::Compact, MessageEncoding::Binary].map(|encoding| told(&mut Bench::speaking(encoding)));
    assert_eq!(all[0].len(), all[1].len());
    for (text, octets) in all[0].iter().zip(&all[1]) {
        // Parts stand in another order there.
        let parts = |text: &str| {
            let mut parts: Vec<String> =
                text.split([',', '{', '}', '\n', '\r']).map(str::to_ascii_lowercase).filter(|part| !part.is_empty()).collect();
            parts.sort();
            parts
        };
        assert_eq!(parts(text), parts(octets), "{text}\n{octets}");
    }
    assert!(all[0].iter().any(|text| text.contains("g/sc{SigID=cg/rt,Meth=TO}")), "{:?}", all[0]);
}

#[test]
fn octets_that_are_no_message_are_counted_and_answered_when_there_is_a_header() {
    let mut bench = Bench::speaking(MessageEncoding::Binary);
    bench.sent.clear();
    let count = |bench: &Bench| bench.gateway.calls.counters.get(Counter::H248Unreadable);
    for raw in [&b"!/1 [192.0.2.1]:2944 T=1{C=-{AV=ROOT{AT{}}}}"[..], b"", b"\x30\x80"] {
        bench.octets(controller(1), raw);
    }
    assert_eq!((count(&bench), bench.sent.len()), (3, 0));
    // A body that is none of the two there are.
    let mut message = [0; 100];
    let length = binary_codec::from_text(b"!/1 [192.0.2.1]:2944 PN=1{}", &mut Shape::new(), &mut message).unwrap();
    let at = message.windows(2).rposition(|pair| pair[0] == 0xa1).unwrap();
    message[at] = 0xa7;
    bench.octets(controller(1), &message[..length]);
    assert_eq!(count(&bench), 4);
    assert!(bench.sent.iter().any(|(_, text)| text.ends_with("ER=400{\"message body is malformed\"}")), "{:?}", bench.sent);
}

/// The octets of a message, and what must become what to ask for something that no text says.
fn forged(body: &str, from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut room = [0; 4000];
    let length = binary_codec::from_text(format!("!/1 [192.0.2.1]:2944 {body}").as_bytes(), &mut Shape::new(), &mut room).unwrap();
    let mut message = room[..length].to_vec();
    let at = message.windows(from.len()).position(|window| window == from).unwrap_or_else(|| panic!("{from:02x?} in {message:02x?}"));
    message[at..at + to.len()].copy_from_slice(to);
    message
}

#[test]
fn what_our_version_does_not_have_costs_its_command_only() {
    // TRM-01, MSG-01: the transaction is answered by its identifier, and the one behind it is done.
    let mut bench = Bench::speaking(MessageEncoding::Binary);
    bench.call(1);
    let name = [1, 1, 0, 3, 0, 1];
    for (command, from, to, code) in [
        ("MF=ds/ds1_3/1", &name[..], &[3, 0, 0, 0, 0, 1][..], 430),
        ("MF=ds/ds1_3/1", &name, &[1, 1, 0, 0, 0, 1], 430),
        ("MF=rtp/9", &[2, 0, 0, 0, 0, 9], &[2, 0, 0, 0, 0, 0], 430),
        // A mode that there is not.
        ("MF=ds/ds1_3/2{M{O{MO=SR}}}", &[0x80, 1, 2], &[0x80, 1, 9], 0),
    ] {
        bench.sent.clear();
        bench.octets(controller(1), &forged(&format!("T=901{{C=-{{{command}}}}}T=902{{C=-{{AV=ROOT{{AT{{}}}}}}}}"), from, to));
        let reply = |id: u32| bench.sent.iter().find(|(_, text)| text.contains(&format!("P={id}{{"))).map(|(_, text)| text.clone());
        let first = reply(901).unwrap_or_else(|| panic!("{command} {to:02x?}: {:?}", bench.sent));
        assert!(first.contains(&if code == 0 { "ER=".to_owned() } else { format!("ER={code}{{") }), "{command}: {first}");
        assert!(reply(902).is_some_and(|text| text.contains("AV=ROOT}")), "{command}: {:?}", bench.sent);
    }
}

#[test]
fn a_wildcard_of_one_unit_of_every_kind_takes_no_channel_that_was_not_named() {
    let mut bench = Bench::speaking(MessageEncoding::Binary);
    let (context, rtp) = bench.call(5);
    bench.sent.clear();
    // `A7` with unit 7 was taken for `ds/*/5`.
    let message = forged(&format!("T=901{{C={context}{{S=ds/*/5}}}}"), &[1, 0, 0, 0, 0, 5], &[1, 0, 0, 7, 0, 5]);
    bench.octets(controller(1), &message);
    assert!(bench.sent.iter().any(|(_, text)| text.contains("P=901{") && text.contains("ER=4")), "{:?}", bench.sent);
    let audit = bench.ask(&format!("C={context}{{AV=*{{AT{{}}}}}}"));
    assert_eq!(audit, format!("C={context}{{AV=ds/ds1_3/5,AV={rtp}}}"));
}

#[test]
fn what_would_be_too_long_in_octets_is_not_done() {
    // AC-04: each line of a description takes 14 octets besides its text, so its text alone is no measure.
    let mut plan = plan(1);
    (plan.gateways[0].encoding, plan.gateways[0].max_message) = (MessageEncoding::Binary, 2000);
    let mut bench = Bench::with(plan);
    bench.run(3 * S);
    bench.accept(controller(1));
    let remote = |lines| format!("R{{\nv=0\nc=IN IP4 192.0.2.9\nm=audio 4000 RTP/AVP 0 96\n{}}}", "a=x\n".repeat(lines));
    // More encodings than we have: what was chosen is told.
    let reply = bench.ask(&format!("C=${{A=${{M{{O{{MO=SR}},{}}}}}}}", remote(300)));
    assert!(reply.contains("ER=533{") && bench.gateway.contexts() == 0, "{reply}");
    let reply = bench.ask(&format!("C=${{A=${{M{{O{{MO=SR}},{}}}}}}}", remote(100)));
    assert!(reply.contains("a=x") && bench.gateway.contexts() == 1, "{reply}");
    assert_eq!(bench.gateway.calls.counters.get(Counter::H248Unwritable), 0);
}

#[test]
fn a_reply_that_has_no_octets_is_answered_all_the_same() {
    let counters = Counters::new();
    let mut both = super::super::binary::Binary::new(100);
    let mut sent = Vec::new();
    let reply = format!("!/1 [192.0.2.10]:2944\nP=7{{IA,C=1{{AV=rtp/1{{M{{R{{\n{}}}}}}}}}}}", "a=x\n".repeat(50));
    both.send(&counters, controller(1), reply.as_bytes(), &mut |_, octets| sent.push(text(MessageEncoding::Binary, octets)));
    assert_eq!(sent, ["!/1 [192.0.2.10]:2944\nP=7{IA,ER=533{\"response exceeds the maximum size\"}}"]);
    assert_eq!(counters.get(Counter::H248Unwritable), 1);
}
