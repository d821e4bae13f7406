//! A card that takes its time.

use super::*;

const ADD: &str = "C=${A=ds/ds1_3/1,A=${M{L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}}},MF=ds/ds1_3/1{M{O{MO=SR}}}}";

#[test]
fn a_slow_card_is_told_by_pending_and_the_reply_asks_for_an_acknowledgement() {
    // PND-01, PND-03, TXT-17
    let mut bench = Bench::registered();
    bench.card(CardOrder::Delay(500));
    bench.sent.clear();
    bench.say(&format!("T=800{{{ADD}}}"));
    assert!(bench.sent.is_empty());
    bench.run(300 * MS);
    assert_eq!(bench.sent.iter().map(|(_, text)| text.split_once('\n').unwrap().1).collect::<Vec<_>>(), ["PN=800{}"]);
    // A repeat as well.
    bench.say(&format!("T=800{{{ADD}}}"));
    bench.sent.clear();
    bench.run(300 * MS);
    let reply = &bench.sent[0].1;
    assert!(reply.contains("\nP=800{IA,C=") && reply.contains("m=audio 16384 ") && reply.ends_with("MF=ds/ds1_3/1}}"), "{reply}");
    assert!(crate::proto::codec::h248::Message::parse(reply.as_bytes(), &mut Default::default()).is_ok());
    // The rest of the transaction was done when the card had answered.
    bench.card(CardOrder::Delay(0));
    assert!(bench.ask("C=*{AV=ds/ds1_3/1{AT{M}}}").contains("MO=SR"));
}

#[test]
fn a_card_that_is_slow_but_not_too_slow_makes_no_pending() {
    let mut bench = Bench::registered();
    bench.card(CardOrder::Delay(50));
    bench.sent.clear();
    bench.say(&format!("T=801{{{ADD}}}"));
    bench.run(100 * MS);
    assert!(bench.sent.len() == 1 && bench.sent[0].1.contains("\nP=801{C="), "{:?}", bench.sent);
}

#[test]
fn a_card_that_refuses_leaves_nothing_behind() {
    // TXN-03, LC-06
    for delay in [0, 50] {
        let mut bench = Bench::registered();
        bench.card(CardOrder::Delay(delay));
        bench.card(CardOrder::Refuse(1));
        bench.sent.clear();
        bench.say(&format!("T=802{{{ADD}}}"));
        bench.run(100 * MS);
        let reply = &bench.sent[0].1;
        assert!(reply.contains("A=ds/ds1_3/1,A=") && reply.contains("ER=510{") && !reply.contains("MF="), "{delay}: {reply}");
        assert_eq!((bench.gateway.contexts(), bench.gateway.calls.endpoints.connections.count()), (1, 0), "{delay}");
    }
}

#[test]
fn a_modification_that_is_refused_changes_nothing() {
    for delay in [0, 50] {
        let mut bench = Bench::registered();
        let (context, rtp) = bench.call(1);
        let before = bench.ask(&format!("C={context}{{AV={rtp}{{AT{{M}}}}}}"));
        bench.card(CardOrder::Delay(delay));
        bench.card(CardOrder::Refuse(1));
        bench.sent.clear();
        let remote = "R{\nv=0\nc=IN IP4 198.51.100.7\nm=audio 5004 RTP/AVP 0\n}";
        bench.say(&format!("T=803{{C={context}{{MF={rtp}{{M{{O{{MO=RC}},{remote}}}}}}}}}"));
        bench.run(100 * MS);
        assert!(bench.sent[0].1.contains("ER=510{"), "{delay}: {:?}", bench.sent);
        assert_eq!(bench.ask(&format!("C={context}{{AV={rtp}{{AT{{M}}}}}}")), before, "{delay}");
    }
}

#[test]
fn a_termination_that_goes_while_its_card_works_ends_the_transaction() {
    let mut bench = Bench::registered();
    bench.card(CardOrder::Delay(5000));
    bench.say(&format!("T=804{{{ADD}}}"));
    bench.sent.clear();
    bench.say("T=805{C=*{W-S=*}}");
    let replies: Vec<&str> = bench.sent.iter().map(|(_, text)| text.split_once('\n').unwrap().1).collect();
    assert!(replies.iter().any(|reply| reply.starts_with("P=805{C=*{S=*}}")), "{replies:?}");
    assert!(replies.iter().any(|reply| reply.starts_with("P=804{") && reply.contains("ER=435{")), "{replies:?}");
    assert_eq!((bench.gateway.contexts(), bench.gateway.calls.endpoints.connections.count()), (0, 0));
}

#[test]
fn a_card_that_never_answers_is_given_up() {
    let mut bench = Bench::registered();
    bench.card(CardOrder::Delay(u32::MAX));
    bench.sent.clear();
    bench.say(&format!("T=806{{{ADD}}}"));
    bench.run(15 * S);
    let last = &bench.sent.last().unwrap().1;
    assert!(last.contains("P=806{IA,") && last.contains("ER=510{"), "{:?}", bench.sent);
    assert_eq!(bench.gateway.calls.endpoints.connections.count(), 0);
}
