//! Which command is possible where, what fails how, and how far a failure reaches.

use super::*;

#[test]
fn commands_fail_with_the_code_of_what_is_wrong() {
    let mut bench = Bench::registered();
    let (context, rtp) = bench.call(1);
    for (actions, code) in [
        // CTX-01, TRM-01, TRM-09, PRP-11
        ("C=${A=ds/ds1_3/1}", 433),
        ("C=${A=rtp/9999}", 430),
        ("C=${A=ds/ds1_9/1}", 430),
        // Another span's, which MGCP has.
        ("C=${A=ds/ds1_1/1}", 430),
        ("C=${A=ROOT}", 410),
        ("C=-{S=ROOT}", 421),
        ("C=*{S=ROOT}", 410),
        ("C=-{MF=${M{O{MO=SR}}}}", 410),
        ("C=*{S=$}", 410),
        ("C=-{AV=ds/ds1_3/${AT{M}}}", 410),
        ("C=-{A=ds/ds1_3/2}", 421),
        ("C=-{S=ds/ds1_3/2}", 421),
        ("C=-{MF=ds/ds1_3/1{M{O{MO=SR}}}}", 435),
        ("C=-{AV=x/*{AT{M}}}", 431),
        ("C=4000000000{S=*}", 411),
        ("C=${MF=ds/ds1_3/1{M{O{MO=SR}}}}", 421),
        // CMD-01, MDM-01, MUX-01, TOP-01
        ("C=-{N=ds/ds1_3/2{OE=1{nt/netfail}}}", 443),
        ("C=-{FOO=ds/ds1_3/2}", 443),
        ("C=-{MF=ds/ds1_3/2{MD=V90}}", 444),
        ("C=-{MF=ds/ds1_3/2{MX=H221{a,b}}}", 444),
        // PRP-10, PRP-12, properties of packages
        ("C=-{MF=ROOT{M{TS{root/maxNumberOfContexts=5}}}}", 534),
        ("C=-{MF=ROOT{M{TS{root/nonsense=5}}}}", 450),
        ("C=-{MF=ROOT{SG{cg/dt}}}", 447),
        ("C=-{MF=ds/ds1_3/2{M{O{MO=SR,tdmc/nonsense=1}}}}", 450),
        ("C=-{MF=ds/ds1_3/2{M{O{MO=SR,xyz/a=1}}}}", 440),
        ("C=-{MF=ds/ds1_3/2{M{O{MO=SR,nt/jit=soon}}}}", 449),
        ("C=-{MF=ds/ds1_3/2{M{O{MO=SR,MO=SR}}}}", 456),
        ("C=-{MF=ds/ds1_3/2{M{O{MO=LB}}}}", 517),
        ("C=-{MF=ds/ds1_3/2{M{L{\nv=0\n}}}}", 447),
        ("C=-{MF=ds/ds1_3/2{E=1{xyz/abc}}}", 440),
        ("C=-{MF=ROOT{M{TS{BF=SP}}}}", 501),
        // PAR-06, and what the codec refuses
        ("C=-{MF=ds/ds1_3/2{M{O{MO=SR}},M{O{MO=SR}}}}", 448),
        ("C=-{SC=ds/ds1_3/2{SV{MT=FO}}}", 442),
    ] {
        let reply = bench.ask(actions);
        assert!(reply.contains(&format!("ER={code}{{")), "{actions}: {reply}");
    }
    // Nothing of it has changed anything.
    assert_eq!(bench.gateway.contexts(), 1);
    let audit = bench.ask(&format!("C={context}{{AV=*{{AT{{}}}}}}"));
    assert_eq!(audit, format!("C={context}{{AV=ds/ds1_3/1,AV={rtp}}}"));
    // TOP-01
    assert!(bench.ask(&format!("C={context}{{TP{{ds/ds1_3/1,{rtp},IS}}}}")).contains("ER=444{"));
}

#[test]
fn a_failure_ends_the_transaction_unless_the_command_is_optional() {
    // TXN-01, TXN-02, TXN-04, TXN-06: what was done stays done.
    let mut bench = Bench::registered();
    let (context, rtp) = bench.call(1);
    let reply = bench.ask(&format!("C={context}{{MF=x1{{M{{O{{MO=SR}}}}}},S={rtp}}}"));
    assert!(reply.starts_with(&format!("C={context}{{MF=x1{{ER=430{{")) && !reply.contains("S="), "{reply}");
    assert_eq!(bench.gateway.calls.endpoints.connections.count(), 1);
    let reply = bench.ask(&format!("C={context}{{O-MF=x1{{M{{O{{MO=SR}}}}}},S={rtp}}}"));
    assert!(reply.contains("MF=x1{ER=430{") && reply.contains(&format!("S={rtp}{{SA{{")), "{reply}");
    let reply = bench.ask(&format!("C={context}{{S=ds/ds1_3/1,S=ds/ds1_3/1}},C=-{{AV=ROOT{{AT{{}}}}}}"));
    assert!(reply.contains("S=ds/ds1_3/1{SA{") && reply.contains("ER=4") && !reply.contains("C=-"), "{reply}");
    assert_eq!(bench.gateway.contexts(), 0);
}

#[test]
fn all_matches_of_a_wildcard_are_tried_and_told() {
    // TRM-04, TRM-07, TXN-05, ADD-04, TRM-10
    let mut bench = Bench::registered();
    bench.call(2);
    let reply = bench.ask("C=-{MF=ds/ds1_3/*{M{O{MO=RC}}},MF=ds/ds1_4/1{M{O{MO=RC}}}}");
    assert_eq!(reply.matches("MF=ds/ds1_3/").count(), 23, "{reply}");
    assert!(reply.ends_with("MF=ds/ds1_4/1}"), "{reply}");
    let reply = bench.ask("C=-{W-MF=ds/ds1_3/1*{M{O{MO=SR}}}}");
    assert_eq!(reply, "C=-{MF=ds/ds1_3/1*}");
    assert!(bench.ask("C=-{AV=ds/ds1_3/17{AT{M}}}").contains("MO=SR"));
    assert!(bench.ask("C=-{AV=ds/ds1_3/3{AT{M}}}").contains("MO=RC"));
    let reply = bench.ask("C=${A=ds/ds1_3/*}");
    // No more than a context holds; all were tried.
    assert_eq!((reply.matches("A=ds").count(), reply.matches("ER=434{").count()), (23, 7), "{reply}");
}

#[test]
fn the_level_of_a_malformed_part_decides_what_is_lost() {
    // TXN-08 to TXN-12, MSG-04, MSG-05
    let mut bench = Bench::registered();
    let mut say = |body: &str| {
        bench.sent.clear();
        bench.say(body);
        bench.sent.iter().map(|(_, text)| text.split_once('\n').unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    assert!(say("T=71{C=-{}}")[0].starts_with("P=71{C=-{ER=422{"));
    assert!(say("T=72{C=1*{S=x}}")[0].starts_with("P=72{ER=422{"));
    assert!(say("T=73{}")[0].starts_with("P=73{ER=422{"));
    assert!(say("T=x{C=-{AV=ROOT{AT{M}}}}")[0].starts_with("P=0{ER=403{"));
    assert!(say("nonsense")[0].starts_with("P=0{ER=403{"));
    assert!(say("T=74{C=-{S=%%}}")[0].starts_with("P=74{C=-{ER=442{"));
    let two = say("T=x{}T=75{C=-{AV=ROOT{AT{}}}}");
    assert!(two[0].starts_with("P=0{ER=403{") && two[1] == "P=75{C=-{AV=ROOT}}", "{two:?}");
    let from = controller(1);
    bench.sent.clear();
    bench.raw(from, b"MEGACO/9 [192.0.2.1] T=1{C=-{AV=ROOT{AT{}}}}");
    assert!(bench.sent[0].1.contains("ER=406{"), "{:?}", bench.sent);
    bench.sent.clear();
    bench.raw(from, b"!/1 [192.0.2.1] ER=400{\"bad\"}");
    bench.raw(from, b"\0\xff");
    assert!(bench.sent.is_empty(), "{:?}", bench.sent);
}

#[test]
fn a_transaction_is_executed_once_and_its_reply_repeated_to_where_the_repeat_comes_from() {
    // UDP-01, UDP-02, TRP-03
    let mut bench = Bench::registered();
    let message = b"!/1 [192.0.2.1]:2944 T=500{C=${A=ds/ds1_3/5}}";
    (0..20).for_each(|port| bench.raw(SocketAddr::from(([192, 0, 2, 1], 4000 + port)), message));
    assert_eq!((bench.gateway.contexts(), bench.sent.len()), (1, 20));
    assert!(bench.sent.iter().all(|(to, text)| *text == bench.sent[0].1 && to.port() >= 4000));
    bench.say("K{500}");
    bench.sent.clear();
    bench.raw(controller(1), message);
    assert!(bench.sent.is_empty(), "{:?}", bench.sent);
}

#[test]
fn a_reply_that_is_too_long_is_an_error() {
    // AC-04, UDP-08
    let mut bench = Bench::registered();
    assert_eq!(bench.ask("C=-{AV=*{AT{M,SA,PG}}}"), "C=-{AV=*{ER=533{\"response exceeds the maximum size\"}}}");
    // The names alone fit.
    assert_eq!(bench.ask("C=-{AV=*{AT{}}}").matches("AV=ds/").count(), 48);
}

#[test]
fn what_cannot_be_told_is_not_done() {
    // AC-04, TXN-02: what comes before it is done and told, and it itself is not.
    let mut bench = Bench::registered();
    let calls: Vec<_> = (1..=20).map(|channel| bench.call(channel).0).collect();
    let reply = bench.ask("C=-{MF=ds/ds1_3/24{E=7{dd/*}}},C=*{S=*}");
    assert_eq!(reply, "C=-{MF=ds/ds1_3/24},C=*{S=*{ER=533{\"response exceeds the maximum size\"}}}");
    assert_eq!(bench.ask("C=*{AV=*{AT{}}}").matches("AV=").count(), 40, "all calls are there");
    // As one reply, or without the figures, it fits.
    let reply = bench.ask(&format!("C={}{{S=*}}", calls[0]));
    assert_eq!(reply.matches("SA{").count(), 2, "{reply}");
    assert_eq!(bench.ask("C=*{W-S=*{AT{}}}"), "C=*{S=*}");
    assert_eq!(bench.ask("C=*{AV=*{AT{}}}").matches("ER=431").count(), 1);
    // An audit behind what was done leaves that as it is, and an O- goes on.
    let reply = bench.ask("C=${A=ds/ds1_3/1,A=ds/ds1_3/2},C=-{O-AV=*{AT{M,SA,PG}},AV=ds/ds1_3/3{AT{}}}");
    assert!(reply.starts_with("C=") && reply.contains("A=ds/ds1_3/1,A=ds/ds1_3/2},C=-{AV=*{ER=533{"), "{reply}");
    assert!(reply.ends_with("AV=ds/ds1_3/3}"), "{reply}");
}

#[test]
fn the_properties_of_a_context_are_set_and_told() {
    // CTX-05, CA-01, CA-02
    let mut bench = Bench::registered();
    let (context, _) = bench.call(1);
    assert_eq!(bench.ask(&format!("C={context}{{PR=3,EG,CA{{PR,EG}}}}")), format!("C={context}{{PR=3,EG}}"));
    assert_eq!(bench.ask(&format!("C={context}{{CA{{PR}}}}")), format!("C={context}{{PR=3}}"));
    assert!(bench.ask("C=-{PR=3}").contains("ER=421{"));
}

#[test]
fn what_was_done_is_told_whatever_fails_behind_it() {
    // AC-04, TXN-02: errors of optional commands and properties of contexts take room too.
    let long = "x".repeat(64);
    let property = |context: u32| format!("C={context}{{CA{{PR}}}}");
    for (fails, code) in
        [("O-MF=x", 430), (&*format!("O-MF={long}"), 430), ("O-MF=ds/ds1_3/1{SG{},SG{}}", 448), ("O-AV=*{AT{M,SA,PG}}", 533)]
    {
        let mut bench = Bench::registered();
        let reply = bench.ask(&format!("C=${{A=ds/ds1_3/1}},C=-{{{}}}", vec![fails; 110].join(",")));
        assert!(reply.starts_with("C=1{A=ds/ds1_3/1},C=-{") && reply.len() < 4000, "{fails}: {reply}");
        assert!(
            reply.contains(&format!("ER={code}{{")) && reply.ends_with("ER=533{\"response exceeds the maximum size\"}}}"),
            "{fails}: {reply}"
        );
    }
    let mut bench = Bench::registered();
    let (context, _) = bench.call(2);
    let reply = bench.ask(&format!("C=${{A=ds/ds1_3/1}},{}", vec![property(context); 400].join(",")));
    assert!(
        reply.starts_with("C=2{A=ds/ds1_3/1},C=1{PR=0},") && reply.ends_with("C=1{ER=533{\"response exceeds the maximum size\"}}"),
        "{reply}"
    );
}
