//! Calls from Add to Subtract.

use super::*;
use crate::proto::trunk::Defect;

#[test]
fn a_call_is_set_up_modified_and_taken_down() {
    // CTX-02, TRM-01, TRM-02, TRM-08, PAR-02, ADD-01, ADD-02, SUB-01, SUB-05, STA-01, LR-03
    let mut bench = Bench::registered();
    let reply =
        bench.ask("C=${A=ds/ds1_3/17{M{O{MO=SR,tdmc/ec=on}}},A=${M{O{MO=RC,nt/jit=40},L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0 8\n}}}}");
    let head = "C=48{A=ds/ds1_3/17,A=rtp/48{M{L{\nv=0\no=- ";
    assert!(reply.starts_with("C=") && reply.contains("{A=ds/ds1_3/17,A=rtp/"), "{reply} {head}");
    assert!(reply.contains("\ns=-\nc=IN IP4 192.0.2.10\nt=0 0\nm=audio 16384 RTP/AVP 0\n"), "{reply}");
    let context: u32 = reply[2..].split('{').next().unwrap().parse().unwrap();
    let name = reply.split("A=").nth(2).unwrap().split('{').next().unwrap().to_owned();
    assert_eq!(bench.gateway.contexts(), 1);
    let remote = "R{\nv=0\nc=IN IP4 198.51.100.7\nm=audio 5004 RTP/AVP 0\n}";
    assert_eq!(bench.ask(&format!("C={context}{{MF={name}{{M{{O{{MO=SR}},{remote}}}}}}}")), format!("C={context}{{MF={name}}}"));
    bench.run(10 * S);
    let reply = bench.ask(&format!("C={context}{{S={name},S=ds/ds1_3/17}}"));
    assert!(reply.starts_with(&format!("C={context}{{S={name}{{SA{{nt/dur=10")), "{reply}");
    // 50 packets of 160 octets a second.
    assert!(reply.contains("nt/os=80") && reply.contains("rtp/ps=50") && reply.contains("rtp/pl=0"), "{reply}");
    assert!(reply.contains("S=ds/ds1_3/17{SA{nt/dur=1000") && reply.contains("nt/os=8000"), "{reply}");
    assert_eq!((bench.gateway.contexts(), bench.gateway.calls.endpoints.connections.count()), (0, 0));
    assert!(bench.ask(&format!("C={context}{{S={name}}}")).starts_with(&format!("C={context}{{ER=411{{")));
    assert!(bench.ask(&format!("C=*{{S={name}}}")).contains("ER=430{"));
}

#[test]
fn the_order_of_the_two_does_not_matter_and_operators_see_the_connection_on_the_channel() {
    let mut bench = Bench::registered();
    let reply = bench.ask("C=${A=${M{L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}}},A=ds/ds1_3/1}");
    assert!(reply.contains("A=rtp/") && reply.contains(",A=ds/ds1_3/1}"), "{reply}");
    let endpoint = bench.gateway.ranges().next().unwrap().iter().next().unwrap();
    assert_eq!(bench.gateway.calls.endpoints.get(endpoint).unwrap().connection_count(), 1);
    assert!(bench.ask("C=*{W-S=*}").starts_with("C=*{S=*}"));
    assert_eq!(bench.gateway.calls.endpoints.get(endpoint).unwrap().connection_count(), 0);
}

#[test]
fn media_is_given_back_whatever_channel_it_was_joined_to() {
    let mut bench = Bench::registered();
    // More often than there are connections.
    for n in 0..60 {
        let reply = bench.ask("C=${A=${M{O{MO=SR},L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}}},A=ds/ds1_4/7}");
        assert!(reply.contains("m=audio ") && !reply.contains("ER="), "{n}: {reply}");
        let reply = bench.ask("C=*{MF=rtp/*{M{O{MO=RC}}}}");
        assert!(!reply.contains("ER="), "{n}: {reply}");
        assert!(!bench.ask("C=*{S=ds/ds1_4/7,S=rtp/*}").contains("ER="), "{n}");
    }
    assert_eq!(bench.gateway.contexts(), 0);
}

#[test]
fn choices_are_made_as_the_reserve_flags_say() {
    // LC-04, LC-05, LC-06, LR-07, PAR-01
    let mut bench = Bench::registered();
    let mut add = |media: &str| {
        let reply = bench.ask(&format!("C=${{A=${{M{{{media}}}}}}}"));
        bench.say("T=900000{C=*{W-S=*}}");
        bench.now += 40 * S;
        bench.turn();
        reply
    };
    assert!(add("L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 8 0\n}").contains("RTP/AVP 8\n"));
    assert!(add("O{RV=ON},L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 8 0 18\n}").contains("RTP/AVP 8 0\n"));
    assert!(add("L{\nv=0\nm=audio $ RTP/AVP 18\nv=0\nm=audio $ RTP/AVP 0\n}").contains("RTP/AVP 0\n"));
    assert!(add("L{\nv=0\nm=audio $ RTP/AVP 18\n}").contains("ER=510{"));
    assert!(add("O{RV=ON},L{\nv=0\nm=audio $ RTP/AVP 18\n}").contains("{M{L{\n}}}"));
    assert!(add("L{\nv=0\nm=audio $ RTP/AVP $\n}").contains("RTP/AVP 0\n"));
    // The first alternative of Local for which some Remote works.
    let both = add("L{\nv=0\nm=audio $ RTP/AVP 0 8\n},R{\nv=0\nc=IN IP4 198.51.100.7\nm=audio 4000 RTP/AVP 8\n}");
    assert!(both.contains("RTP/AVP 8\n"), "{both}");
    assert!(add("R{\nv=0\nc=IN IP4 198.51.100.7\nm=audio 4000 RTP/AVP 18\n}").contains("ER=510{"));
    assert!(add("R{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}").contains("ER=441{"));
    assert!(add("L{\nv=0\nm=video $ RTP/AVP 31\n}").contains("ER=515{"));
    assert!(add("ST=1{L{\nv=0\nm=audio $ RTP/AVP 0\n}}").contains("M{ST=1{L{\nv=0"));
    assert!(add("ST=1{O{MO=SR}},ST=2{O{MO=SR}}").contains("ER=501{"));
}

#[test]
fn two_channels_hear_each_other_inside_the_gateway() {
    // CTX-10
    let mut bench = Bench::registered();
    let reply = bench.ask("C=${A=ds/ds1_3/1{M{O{MO=SR}}},A=ds/ds1_4/1{M{O{MO=SR}}}}");
    let context: u32 = reply[2..].split('{').next().unwrap().parse().unwrap();
    assert_eq!(bench.gateway.calls.endpoints.connections.count(), 2);
    // A third one, and the first goes: the others are joined anew.
    bench.ask(&format!("C={context}{{A=ds/ds1_4/2{{M{{O{{MO=SR}}}}}}}}"));
    assert_eq!(bench.gateway.calls.endpoints.connections.count(), 4);
    bench.ask(&format!("C={context}{{S=ds/ds1_3/1}}"));
    assert_eq!(bench.gateway.calls.endpoints.connections.count(), 2);
    bench.ask(&format!("C={context}{{S=*}}"));
    assert_eq!((bench.gateway.calls.endpoints.connections.count(), bench.gateway.contexts()), (0, 0));
}

#[test]
fn any_idle_channel_of_a_group_is_chosen() {
    // TRM-05: never one that is out of service or in a context
    let mut bench = Bench::registered();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..24 {
        let reply = bench.ask("C=${A=ds/ds1_4/$}");
        assert!(reply.contains("A=ds/ds1_4/") && seen.insert(reply.split("A=").nth(1).unwrap().to_owned()), "{reply}");
    }
    assert!(bench.ask("C=${A=ds/ds1_4/$}").contains("ER=432{"));
    bench.service(0, false, 905);
    assert!(bench.ask("C=${A=ds/ds1_3/$}").contains("ER=432{"));
    assert_eq!(bench.gateway.contexts(), 24);
}

#[test]
fn a_termination_moves_between_contexts_with_what_it_counted() {
    // MOV-01 to MOV-04
    let mut bench = Bench::registered();
    let ((first, rtp), (second, other)) = (bench.call(1), bench.call(2));
    assert_eq!(bench.ask(&format!("C={second}{{S={other}}}")).split("S=").count(), 2);
    bench.run(5 * S);
    assert_eq!(bench.ask(&format!("C={second}{{MV={rtp}}}")), format!("C={second}{{MV={rtp}}}"));
    assert!(bench.ask(&format!("C={first}{{AV={rtp}{{AT{{}}}}}}")).contains("ER=435{"));
    let statistics = bench.ask(&format!("C={second}{{AV={rtp}{{AT{{SA}}}}}}"));
    assert!(statistics.contains("nt/dur=500") || statistics.contains("nt/dur=501"), "{statistics}");
    // The last one out takes the context along; into a new one.
    let reply = bench.ask("C=${MV=ds/ds1_3/1}");
    assert!(reply.contains("MV=ds/ds1_3/1") && !reply.contains("ER"), "{reply}");
    assert!(bench.ask(&format!("C={first}{{AV=*{{AT{{}}}}}}")).contains("ER=411{"));
    for (action, code) in [
        (format!("C={second}{{MV=ds/ds1_3/9}}"), 435),
        ("C=-{MV=ds/ds1_3/2}".into(), 421),
        (format!("C={second}{{MV=$}}"), 410),
        (format!("C={second}{{MV=ROOT}}"), 410),
    ] {
        assert!(bench.ask(&action).contains(&format!("ER={code}{{")), "{action}");
    }
}

const FAR: &str = "R{\nv=0\nc=IN IP4 198.51.100.7\nm=audio 5004 RTP/AVP 0\n}";

/// A call as [`Bench::call`] makes it, with a far end to send to.
fn whole_call(bench: &mut Bench) -> (u32, String) {
    let (context, rtp) = bench.call(1);
    assert!(!bench.ask(&format!("C={context}{{MF={rtp}{{M{{{FAR}}}}}}}")).contains("ER="));
    (context, rtp)
}

/// What the card counts of an RTP termination in a second, while only this span (0 or 1) works.
fn sent_by(bench: &mut Bench, span: u16, context: u32, rtp: &str) -> u64 {
    let order = |span: u16, present| CardOrder::Defect {
        facility: Facility::Span(SpanIndex(2 + span)),
        defect: Defect::Equipment,
        present,
        at_once: false,
    };
    let sent = |bench: &mut Bench| {
        let reply = bench.ask(&format!("C={context}{{AV={rtp}{{AT{{SA}}}}}}"));
        let digits = reply.split("rtp/ps=").nth(1).and_then(|rest| rest.split([',', '}']).next());
        digits.and_then(|digits| digits.parse::<u64>().ok()).unwrap_or_else(|| panic!("{reply}"))
    };
    bench.card(order(1 - span, true));
    let before = sent(bench);
    bench.run(S);
    let after = sent(bench);
    bench.card(order(1 - span, false));
    after - before
}

#[test]
fn media_is_carried_by_the_channel_that_it_is_joined_to_wherever_it_was_opened() {
    // MOV-01, CTX-10
    let mut bench = Bench::registered();
    let far = "A=ds/ds1_4/1{M{O{MO=SR}}}";
    let media = format!("A=${{M{{O{{MO=SR}},L{{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}},{FAR}}}}}");
    let id = |reply: &str| reply[2..].split('{').next().and_then(|id| id.parse::<u32>().ok()).unwrap_or_else(|| panic!("{reply}"));
    // It moves.
    let (first, rtp) = whole_call(&mut bench);
    let second = id(&bench.ask(&format!("C=${{{far}}}")));
    assert_eq!(sent_by(&mut bench, 0, first, &rtp), 50);
    let whole = bench.ask(&format!("C={first}{{AV={rtp}{{AT{{M}}}}}}"));
    assert!(!bench.ask(&format!("C={second}{{MV={rtp}}}")).contains("ER="));
    assert_eq!((sent_by(&mut bench, 1, second, &rtp), sent_by(&mut bench, 0, second, &rtp)), (50, 0));
    // Its port and what it does are the same.
    assert_eq!(bench.ask(&format!("C={second}{{AV={rtp}{{AT{{M}}}}}}")).split_once('{').unwrap().1, whole.split_once('{').unwrap().1);
    bench.ask("C=*{W-S=*}");
    // It comes before the channel.
    let reply = bench.ask(&format!("C=${{{media},{far}}}"));
    let rtp = reply.split("A=").nth(1).and_then(|rest| rest.split('{').next()).unwrap().to_owned();
    assert_eq!((sent_by(&mut bench, 1, id(&reply), &rtp), sent_by(&mut bench, 0, id(&reply), &rtp)), (50, 0));
    bench.ask("C=*{W-S=*}");
    // The channel that carried it goes, and another one is there.
    let (context, rtp) = whole_call(&mut bench);
    bench.ask(&format!("C={context}{{{far}}}"));
    bench.ask(&format!("C={context}{{S=ds/ds1_3/1}}"));
    assert_eq!((sent_by(&mut bench, 1, context, &rtp), sent_by(&mut bench, 0, context, &rtp)), (50, 0));
    bench.ask("C=*{W-S=*}");
    assert_eq!((bench.gateway.contexts(), bench.gateway.calls.endpoints.connections.count()), (0, 0));
}

#[test]
fn a_move_to_where_the_card_cannot_carry_the_media_is_refused_and_changes_nothing() {
    // MOV-02, TXN-03
    let mut bench = Bench::registered();
    let (first, rtp) = whole_call(&mut bench);
    let reply = bench.ask("C=${A=ds/ds1_4/1}");
    let second = reply[2..].split('{').next().unwrap();
    let broken = Facility::Span(SpanIndex(3));
    bench.card(CardOrder::Defect { facility: broken, defect: Defect::Equipment, present: true, at_once: false });
    assert!(bench.ask(&format!("C={second}{{MV={rtp}}}")).contains("ER=510{"));
    assert_eq!(sent_by(&mut bench, 0, first, &rtp), 50);
    assert!(!bench.ask(&format!("C={second}{{MV={rtp}}}")).contains("ER="), "it works again");
}
