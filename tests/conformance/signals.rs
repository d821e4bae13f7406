//! Signals (SIG): lists, time-outs, what ends them and what is told of it.

use super::{MS, S, SDP, audit, code, connection, each_layout, told};
use tollgate::proto::trunk::{CardOrder, Echo, FarOrder};
use tollgate::sim::World;

const E: &str = "ds/ds1-2/1";

fn request(w: &mut World, parameters: &[&str]) {
    assert_eq!(code(w, "RQNT", E, &[&["X: 1", "Q: discard"], parameters].concat()), 200, "{parameters:?}");
}

/// A connection whose far end is known.
fn create_described(w: &mut World) -> String {
    let made = w.ask("CRCX", E, &[&["C: A1", "M: sendrecv"][..], &SDP].concat());
    assert_eq!(made.code, Some(200), "{made:?}");
    connection(&made)
}

/// G-SIG-05, G-SIG-07: a time-out is told by the name of the signal; 0 is no time-out, and a short one is kept short.
#[test]
fn a_signal_times_out() {
    each_layout(|w| {
        for (signal, after) in [("T/nm", 3000), ("T/nm(to=2000)", 2000), ("T/nm(to(1400))", 1400), ("T/nm(to=200)", 200)] {
            request(w, &["R: T/oc(N)", &format!("S: {signal}")]);
            assert_eq!(audit(w, E, "S"), signal);
            w.take_mail();
            w.run_for((after - 60) * MS);
            assert_eq!(told(w), "", "{signal}");
            w.run_for(120 * MS);
            assert_eq!(told(w), "T/oc(T/nm)");
            assert_eq!(audit(w, E, "S"), "");
        }
        request(w, &["R: T/oc(N)", "S: T/nm(to=0)"]);
        w.run_for(600 * S);
        assert_eq!((told(w), audit(w, E, "S")), (String::new(), "T/nm(to=0)".into()));
        // Nobody asked to be told.
        request(w, &["S: T/nm"]);
        w.run_for(5 * S);
        assert_eq!(told(w), "");
    });
}

/// G-SIG-01, G-SIG-02: a new list stops what is not in it without a word, and leaves the rest as it is.
#[test]
fn a_new_list_replaces_the_signals() {
    each_layout(|w| {
        request(w, &["R: T/oc(N)", "S: T/bz"]);
        request(w, &["R: T/oc(N)", "S: T/ro, G/cg"]);
        assert_eq!(audit(w, E, "S"), "T/ro,G/cg");
        request(w, &["R: T/oc(N)"]);
        assert_eq!(audit(w, E, "S"), "");
        w.run_for(40 * S);
        assert_eq!(told(w), "");
        request(w, &["R: T/oc(N)", "S: T/nm(to=6000)"]);
        w.run_for(3 * S);
        request(w, &["R: T/oc(N)", "S: T/nm(to=20000)"]);
        assert_eq!(audit(w, E, "S"), "T/nm(to=6000)");
        w.run_for(2900 * MS);
        assert_eq!(told(w), "");
        w.run_for(200 * MS);
        assert_eq!(told(w), "T/oc(T/nm)");
    });
}

/// G-SIG-03, G-SIG-13: on the endpoint and on each connection it is another signal; on a connection it needs a far end.
#[test]
fn each_connection_has_its_own_signals() {
    each_layout(|w| {
        let (one, two) = (create_described(w), create_described(w));
        request(w, &[&format!("S: G/rt@{one},G/rt@{two},G/rt")]);
        assert_eq!(audit(w, E, "S"), format!("G/rt@{one},G/rt@{two},G/rt"));
        for list in ["G/rt,G/rt".to_owned(), format!("G/rt@{one},G/rt@{one}")] {
            assert_eq!(code(w, "RQNT", E, &["X: 2", &format!("S: {list}")]), 510, "{list}");
        }
        let half = w.ask("CRCX", E, &["C: A1", "M: recvonly"]);
        let half = connection(&half);
        for list in [format!("G/rt@{half}"), "G/rt@*".to_owned()] {
            assert_eq!(code(w, "RQNT", E, &["X: 2", &format!("S: {list}")]), 527, "{list}");
        }
        assert_eq!(audit(w, E, "S"), format!("G/rt@{one},G/rt@{two},G/rt"));
        assert_eq!(code(w, "DLCX", E, &["C: A1", &format!("I: {half}")]), 250);
        request(w, &["S: G/rt@*"]);
        assert_eq!(audit(w, E, "S"), "G/rt@*");
    });
}

/// G-SIG-04: on/off signals are switched by order only, as often as anybody likes.
#[test]
fn on_off_signals_stay() {
    each_layout(|w| {
        request(w, &["R: T/co1(N)", "S: T/lb(+)"]);
        assert_eq!(audit(w, E, "S"), "T/lb(+)");
        w.occur(E, "T/co1", None);
        assert_eq!(told(w), "T/co1");
        request(w, &["S: T/lb"]);
        request(w, &[]);
        assert_eq!(audit(w, E, "S"), "T/lb(+)");
        for _ in 0..2 {
            request(w, &["S: T/lb(-)"]);
            assert_eq!(audit(w, E, "S"), "");
        }
    });
}

/// G-SIG-06, G-EVT-09: a signal whose connection goes has failed, and so has one that the card cannot play.
#[test]
fn a_signal_that_fails_is_told() {
    each_layout(|w| {
        let id = create_described(w);
        request(w, &["R: G/of(N)", &format!("S: G/rt@{id}")]);
        w.take_mail();
        assert_eq!(code(w, "DLCX", E, &["C: A1", &format!("I: {id}")]), 250);
        w.run_for(100 * MS);
        assert_eq!(told(w), format!("G/of(G/rt@{id})"));
        w.order_cards(CardOrder::Refuse(1));
        request(w, &["R: T/of(N)", "S: T/bz"]);
        w.run_for(100 * MS);
        assert_eq!((told(w), audit(w, E, "S")), ("T/of(T/bz)".into(), String::new()));
        w.order_cards(CardOrder::Refuse(0));
    });
}

/// G-SIG-09: a brief signal plays to its end; one that waits for it is dropped by an event or by a new list.
#[test]
fn brief_signals_follow_each_other() {
    each_layout(|w| {
        request(w, &["S: D/1"]);
        request(w, &["R: T/co1(N)", "S: D/2"]);
        assert_eq!(audit(w, E, "S"), "D/2");
        w.occur(E, "T/co1", None);
        assert_eq!(audit(w, E, "S"), "");
        w.run_for(S);
        // One after the other, and nothing is left.
        request(w, &["S: D/1,D/2,D/3"]);
        assert_eq!(audit(w, E, "S"), "D/2,D/3");
        w.run_for(150 * MS);
        assert_eq!(audit(w, E, "S"), "D/3");
        w.run_for(300 * MS);
        assert_eq!(audit(w, E, "S"), "");
    });
}

/// G-SIG-10, O-13: any requested event stops time-out signals unless it says K, ignored and quarantined ones too.
#[test]
fn a_requested_event_stops_signals() {
    each_layout(|w| {
        for (action, after) in [("I", ""), ("A", ""), ("N", ""), ("K,I", "T/bz"), ("K,A", "T/bz"), ("N,K", "T/bz")] {
            request(w, &[&format!("R: T/co1({action})"), "S: T/bz"]);
            w.occur(E, "T/co2", None);
            assert_eq!(audit(w, E, "S"), "T/bz");
            w.occur(E, "T/co1", None);
            assert_eq!(audit(w, E, "S"), after, "{action}");
        }
        // In quarantine: the Notify of co1 with K is answered, and the next request is awaited.
        request(w, &["R: T/co1(N,K),T/co2(N)", "S: T/bz"]);
        w.occur(E, "T/co1", None);
        assert_eq!((audit(w, E, "B/NS"), audit(w, E, "S")), ("ls".into(), "T/bz".into()));
        w.occur(E, "T/co2", None);
        assert_eq!(audit(w, E, "S"), "");
    });
}

/// What one endpoint plays at a time is bounded.
#[test]
fn there_is_a_limit_to_signals() {
    each_layout(|w| {
        let eight = "T/bz,G/cg,G/it,T/nm,T/mm,T/om,T/pst,T/qt";
        request(w, &[&format!("S: {eight}")]);
        assert_eq!(code(w, "RQNT", E, &["X: 2", &format!("S: {eight},T/ro")]), 403);
        assert_eq!(audit(w, E, "S"), eight);
        request(w, &["S: T/lb"]);
        assert_eq!(code(w, "RQNT", E, &["X: 2", &format!("S: {eight}")]), 403);
        assert_eq!(audit(w, E, "S"), "T/lb");
    });
}

/// SL.01, SL.02, SL.03: the members of a list are played one after the other; its end is told once, by the name of the list alone, and so is
/// that one of them cannot be played.
#[test]
fn a_list_of_signals_is_played_member_by_member() {
    each_layout(|w| {
        let whole = "SL/s(d/1,T/nm(to=1000),d/dd(dg=5,to=500))";
        request(w, &["R: SL/oc(N),SL/of(N)", &format!("S: {whole}")]);
        w.take_mail();
        for _ in 0..2 {
            w.run_for(700 * MS);
            assert_eq!((told(w), audit(w, E, "S")), (String::new(), whole.into()));
        }
        w.run_for(300 * MS);
        assert_eq!((told(w), audit(w, E, "S")), ("SL/oc(SL/s)".into(), String::new()));
        request(w, &["R: SL/oc(N),SL/of(N)", &format!("S: {whole}")]);
        w.take_mail();
        w.run_for(500 * MS);
        w.order_cards(CardOrder::Refuse(1));
        w.run_for(700 * MS);
        assert_eq!((told(w), audit(w, E, "S")), ("SL/of(SL/s)".into(), String::new()));
        w.order_cards(CardOrder::Refuse(0));
        // What has no end keeps the rest waiting for ever.
        request(w, &["R: SL/oc(N)", "S: SL/s(G/cg,d/1)"]);
        w.run_for(4000 * S);
        assert_eq!((told(w), audit(w, E, "S")), (String::new(), "SL/s(G/cg,d/1)".into()));
    });
}

/// SL.01: an event stops the list, whichever member is played, without a word; so does a list without it. One that is in the new list goes on
/// where it is.
#[test]
fn an_event_stops_a_list_of_signals() {
    each_layout(|w| {
        for played in [50, 600] {
            request(w, &["R: SL/oc(N),G/ft(A)", "S: SL/s(d/1,T/nm(to=1000),d/2)"]);
            w.run_for(played * MS);
            w.occur(E, "G/ft", None);
            assert_eq!(audit(w, E, "S"), "");
            w.run_for(3 * S);
            assert_eq!(told(w), "");
        }
        request(w, &["R: SL/oc(N)", "S: SL/s(T/nm(to=1000),d/2)"]);
        w.run_for(600 * MS);
        request(w, &["R: SL/oc(N)", "S: SL/s(T/nm(to=9000))"]);
        w.take_mail();
        w.run_for(600 * MS);
        assert_eq!(told(w), "SL/oc(SL/s)");
        request(w, &["R: SL/oc(N)", "S: SL/s(T/nm(to=1000))"]);
        request(w, &["R: SL/oc(N)", "S: T/bz"]);
        w.run_for(3 * S);
        assert_eq!((told(w), audit(w, E, "S")), (String::new(), "T/bz".into()));
    });
}

/// SL.01: 538 for what stays on, for a list in a list and for what is not there; a continuity test in a list is a test.
#[test]
fn members_of_a_list_are_signals_that_end() {
    each_layout(|w| {
        for list in ["SL/s", "SL/s(T/lb)", "SL/s(SL/s(d/1))", "SL/s(d/1,zz/1)", "SL/s(1)", "SL/s(T/oc)", "SL/s(R/co1)", "SL/s(d/1,to=5)"] {
            assert_eq!(code(w, "RQNT", E, &["X: 1", &format!("S: {list}")]), 538, "{list}");
        }
        let endpoint = w.plan.topology.lookup(E.as_bytes()).unwrap();
        w.order_cards(CardOrder::Far(endpoint, FarOrder::Echo(Echo::Loop)));
        request(w, &["R: T/co1(N),SL/oc(N)", "S: SL/s(d/1,T/co1)"]);
        w.take_mail();
        w.run_for(2 * S);
        assert_eq!(told(w), "T/co1");
    });
}
