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

/// What the gateway has replied to this transaction, if it has.
fn reply_to(bench: &Bench, id: u32) -> Option<&str> {
    let of = format!("\nP={id}{{");
    bench.sent.iter().find_map(|(_, text)| text.split_once(&of)).map(|(_, body)| body)
}

#[test]
fn two_transactions_that_change_one_termination_at_a_time_are_both_answered() {
    // UDP-05, TXN-03: a card that is changing a connection is not ordered to change it again, since it answers once.
    let mut bench = Bench::registered();
    let (context, rtp) = bench.call(1);
    bench.card(CardOrder::Delay(50));
    let modify = |mode: &str| format!("C={context}{{MF={rtp}{{M{{O{{MO={mode}}}}}}}}}");
    bench.sent.clear();
    bench.say(&format!("T=810{{{}}}", modify("RC")));
    bench.say(&format!("T=811{{{}}}", modify("IN")));
    bench.say(&format!("T=812{{C={context}{{MF=*{{M{{O{{MO=SO}}}}}}}}}}"));
    bench.run(200 * MS);
    assert!(reply_to(&bench, 810).is_some_and(|reply| !reply.contains("ER=")), "{:?}", bench.sent);
    assert!(reply_to(&bench, 811).is_some_and(|reply| reply.contains("ER=502{")), "{:?}", bench.sent);
    assert!(reply_to(&bench, 812).is_some_and(|reply| reply.contains(&format!("MF={rtp}{{ER=502{{"))), "{:?}", bench.sent);
    assert!(bench.ask(&format!("C={context}{{AV={rtp}{{AT{{M}}}}}}")).contains("MO=RC"));
}

const FAR: &str = "R{\nv=0\nc=IN IP4 198.51.100.7\nm=audio 5004 RTP/AVP 0\n}";

#[test]
fn a_move_whose_media_the_card_refuses_changes_nothing() {
    // MOV-01, TXN-03
    for (delay, alone) in [(0, false), (0, true), (50, false), (50, true)] {
        let mut bench = Bench::registered();
        let ((first, rtp), (second, _)) = (bench.call(1), bench.call(2));
        if alone {
            bench.ask(&format!("C={first}{{S=ds/ds1_3/1}}"));
        }
        let audits = [format!("C={first}{{AV=*{{AT{{M}}}}}}"), format!("C={second}{{AV=*{{AT{{M}}}}}}")];
        let before = audits.clone().map(|audit| bench.ask(&audit));
        bench.card(CardOrder::Delay(delay));
        bench.card(CardOrder::Refuse(1));
        bench.sent.clear();
        bench.say(&format!("T=820{{C={second}{{MV={rtp}{{M{{O{{MO=RC}},{FAR}}}}}}}}}"));
        bench.run(100 * MS);
        assert!(reply_to(&bench, 820).is_some_and(|reply| reply.contains(&format!("MV={rtp}{{ER=510{{"))), "{delay} {:?}", bench.sent);
        assert_eq!(audits.clone().map(|audit| bench.ask(&audit)), before, "{delay} {alone}");
        // The same that the card does: it waits for that.
        bench.sent.clear();
        bench.say(&format!("T=821{{C={second}{{MV={rtp}{{M{{O{{MO=RC}},{FAR}}}}}}}}}"));
        assert_eq!(reply_to(&bench, 821).is_some(), delay == 0);
        bench.run(100 * MS);
        assert!(reply_to(&bench, 821).is_some_and(|reply| !reply.contains("ER=")), "{delay} {:?}", bench.sent);
        assert_eq!(bench.gateway.contexts(), if alone { 1 } else { 2 }, "{delay}: what is empty goes");
        assert!(bench.ask(&format!("C={second}{{AV={rtp}{{AT{{M}}}}}}")).contains("m=audio 5004"));
    }
}

#[test]
fn a_channel_that_cannot_be_joined_where_it_moves_is_where_it_was() {
    // MOV-01, TXN-03
    for delay in [0, 50] {
        let mut bench = Bench::registered();
        let (second, _) = bench.call(2);
        let reply = bench.ask("C=${A=ds/ds1_3/1{M{O{MO=SR}}}}");
        let first: u32 = reply[2..].split('{').next().unwrap().parse().unwrap();
        let audit = format!("C={first}{{AV=*{{AT{{M}}}}}}");
        let before = bench.ask(&audit);
        bench.card(CardOrder::Delay(delay));
        bench.card(CardOrder::Refuse(1));
        bench.sent.clear();
        bench.say(&format!("T=830{{C={second}{{MV=ds/ds1_3/1{{M{{O{{MO=RC}}}}}}}}}}"));
        bench.run(100 * MS);
        assert!(reply_to(&bench, 830).is_some_and(|reply| reply.contains("ER=510{")), "{delay} {:?}", bench.sent);
        assert_eq!(bench.ask(&audit), before, "{delay}: its context and its mode");
    }
}

#[test]
fn a_mode_that_the_card_refuses_for_joined_channels_is_refused() {
    // TXN-03, LC-01
    let mut bench = Bench::registered();
    let reply = bench.ask("C=${A=ds/ds1_3/1{M{O{MO=SR}}},A=ds/ds1_4/1{M{O{MO=SR}}}}");
    let context: u32 = reply[2..].split('{').next().unwrap().parse().unwrap();
    for refused in ["ds/ds1_3/1", "ds/ds1_4/1"] {
        bench.card(CardOrder::Refuse(1));
        assert!(bench.ask(&format!("C={context}{{MF={refused}{{M{{O{{MO=IN}}}}}}}}")).contains("ER=510{"), "{refused}");
        assert!(bench.ask(&format!("C={context}{{AV={refused}{{AT{{M}}}}}}")).contains("MO=SR"), "{refused}");
        assert!(!bench.ask(&format!("C={context}{{MF={refused}{{M{{O{{MO=RC}}}}}}}}")).contains("ER="), "{refused}");
    }
}
