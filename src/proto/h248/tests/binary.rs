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
