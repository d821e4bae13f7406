//! Continuity tests and test modes (COT rows of the packages T and R).

use super::{MS, S, SDP, audit, code, connection, create, each_layout, told};
use tollgate::proto::core::Ask;
use tollgate::proto::trunk::{CardOrder, Defect, Echo, FarOrder};
use tollgate::sim::World;

const E: &str = "ds/ds1-2/1";

fn request(w: &mut World, parameters: &[&str]) {
    assert_eq!(code(w, "RQNT", E, &[&["X: 1"], parameters].concat()), 200, "{parameters:?}");
}

fn echo(w: &mut World, echo: Echo) {
    let endpoint = w.plan.topology.lookup(E.as_bytes()).unwrap();
    let core = w.plan.owner(endpoint);
    w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, FarOrder::Echo(echo))));
}

/// COT-01 to COT-04: what the far end does with the tone, and what is told of it.
#[test]
fn a_test_tells_what_came_back() {
    each_layout(|w| {
        let cases = [
            (Echo::Loop, "co1", "co1", "T/co1"),
            (Echo::Transponder, "co1", "co2", "T/co2"),
            (Echo::Transponder, "co2", "co1", "T/co1"),
            (Echo::Open, "co1(to=2000)", "co1", "T/oc(T/co1)"),
            (Echo::Stuck, "co2", "co2", "T/of(T/co2)"),
        ];
        for (far, go, back, told_of) in cases {
            echo(w, far);
            request(w, &[&format!("R: T/{back}(N),T/oc(N),T/of(N)"), &format!("S: T/{go}")]);
            w.run_for(4 * S);
            assert_eq!((told(w), audit(w, E, "S")), (told_of.into(), String::new()), "{far:?} {go}");
        }
    });
}

/// COT-11: loopback and transponder are on until they are turned off; an empty request leaves them.
#[test]
fn loopback_and_transponder_end_by_order() {
    each_layout(|w| {
        request(w, &["S: T/lb, T/ct(in=co2,out=co1,+)"]);
        let on = "T/lb,T/ct(in=co2,out=co1,+)";
        assert_eq!(audit(w, E, "S"), on);
        request(w, &[]);
        w.run_for(600 * S);
        assert_eq!(audit(w, E, "S"), on);
        request(w, &["S: T/lb(-)"]);
        assert_eq!(audit(w, E, "S"), "T/ct(in=co2,out=co1,+)");
        request(w, &["S: T/ct(in=co2,out=co1,-)"]);
        assert_eq!(audit(w, E, "S"), "");
    });
}

/// COT-12: the tones of package R are of a connection, which must be known and have a far end.
#[test]
fn tones_on_the_packet_side_need_a_connection() {
    each_layout(|w| {
        assert_eq!(code(w, "RQNT", E, &["X: 1", "S: R/co1"]), 538);
        assert_eq!(code(w, "RQNT", E, &["X: 1", "S: R/co1@0A"]), 515);
        let half = create(w, E, "A1");
        assert_eq!(code(w, "RQNT", E, &["X: 1", &format!("S: R/co1@{half}")]), 527);
        let made = w.ask("CRCX", E, &[&["C: A1", "M: sendrecv"][..], &SDP].concat());
        let whole = connection(&made);
        request(w, &[&format!("R: R/co2@{whole}(N),R/oc(N)"), &format!("S: R/co1@{whole}")]);
        w.run_for(2900 * MS);
        assert_eq!(told(w), "");
        w.run_for(200 * MS);
        assert_eq!(told(w), format!("R/oc(R/co1@{whole})"));
    });
}

/// COT-15: a channel has all test modes; what is no mode is refused.
#[test]
fn every_channel_has_the_test_modes() {
    each_layout(|w| {
        for mode in ["loopback", "conttest", "netwloop", "netwtest"] {
            let made = w.ask("CRCX", E, &[&["C: A1", &format!("M: {mode}")][..], &SDP].concat());
            assert_eq!(made.code, Some(200), "{mode}");
            assert_eq!(code(w, "DLCX", E, &["C: A1", &format!("I: {}", connection(&made))]), 250);
        }
        assert_eq!(code(w, "CRCX", E, &["C: A1", "M: data"]), 517);
    });
}

/// COT-16: no test where the span has failed.
#[test]
fn no_test_in_alarm() {
    each_layout(|w| {
        w.without_journal();
        let facility = w.facility("ds/ds1-2");
        w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present: true, at_once: true });
        w.run_for(S);
        let code = code(w, "RQNT", E, &["X: 1", "R: T/co1(N)", "S: T/co1"]);
        assert!(matches!(code, 501 | 531), "{code}");
        w.order_cards(CardOrder::Clear { facility, at_once: true });
        w.run_for(S);
        request(w, &["R: T/co1(N)", "S: T/co1"]);
    });
}

/// COT-17: an old peer takes the tones for on/off ones: it gets no `oc` it did not ask for, and a tone without end where it says so.
#[test]
fn old_peers_hear_nothing_they_did_not_ask_for() {
    each_layout(|w| {
        echo(w, Echo::Open);
        request(w, &["R: co1", "S: co2"]);
        w.run_for(10 * S);
        assert_eq!((told(w), audit(w, E, "S")), (String::new(), String::new()));
        request(w, &["R: co1", "S: co2(to=0)"]);
        w.run_for(60 * S);
        assert_eq!((told(w), audit(w, E, "S")), (String::new(), "T/co2(to=0)".into()));
        request(w, &[]);
        echo(w, Echo::Transponder);
        request(w, &["R: co1", "S: co2"]);
        w.run_for(S);
        assert_eq!(told(w), "T/co1");
    });
}
