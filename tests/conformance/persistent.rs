//! Persistent events: of packages, and by B/PR (PER).

use super::{MS, audit, code, create, each_layout, each_layout_with, notified, told};
use tollgate::proto::package::ChannelKind;

const E: &str = "ds/ds1-2/1";

/// G-PER-02, G-PER-05, G-PER-07: B/PR stays from request to request; a list may say otherwise while it lasts; it is audited by itself.
#[test]
fn persistent_events_outlast_requests() {
    each_layout(|w| {
        assert_eq!(code(w, "RQNT", E, &["X: 1", "B/PR: co1(N), B/qbo"]), 200);
        assert_eq!((audit(w, E, "B/PR"), audit(w, E, "R")), ("T/co1(N),B/qbo".into(), String::new()));
        assert_eq!(code(w, "RQNT", E, &["X: 2"]), 200);
        w.take_mail();
        w.occur(E, "T/co1", None);
        assert_eq!(notified(w), [("2".to_owned(), "T/co1".to_owned())]);
        assert_eq!(code(w, "RQNT", E, &["X: 3", "R: T/co1(I)"]), 200);
        w.occur(E, "T/co1", None);
        assert_eq!(told(w), "");
        assert_eq!(code(w, "RQNT", E, &["X: 4"]), 200);
        w.occur(E, "T/co1", None);
        assert_eq!(told(w), "T/co1");
        assert_eq!(code(w, "RQNT", E, &["X: 5", "B/PR:"]), 200);
        w.occur(E, "T/co1", None);
        assert_eq!((told(w), audit(w, E, "B/PR")), (String::new(), String::new()));
        assert_eq!(code(w, "CRCX", E, &["C: A1", "M: recvonly", "B/PR: T/co1"]), 510);
    });
}

/// G-PER-06: a persistent event on a connection that is gone is in the way of the next request.
#[test]
fn persistent_events_on_a_deleted_connection_are_515() {
    each_layout(|w| {
        let id = create(w, E, "A1");
        assert_eq!(code(w, "RQNT", E, &["X: 1", &format!("B/PR: R/qa@{id}(N)")]), 200);
        assert_eq!(code(w, "RQNT", E, &["X: 2"]), 200);
        assert_eq!(code(w, "DLCX", E, &["C: A1", &format!("I: {id}")]), 250);
        assert_eq!(code(w, "RQNT", E, &["X: 3"]), 515);
        assert_eq!(audit(w, E, "X"), "2");
        assert_eq!(code(w, "RQNT", E, &["X: 3", "B/PR: R/qa@*(N)"]), 200);
        assert_eq!(code(w, "RQNT", E, &["X: 4"]), 200);
    });
}

/// G-PER-01, G-PER-02, G-PER-07, G-PKG-02: what a package detects by itself waits for a request, counts as asked for with N, and is audited
/// so.
#[test]
fn what_a_package_detects_by_itself_needs_a_request() {
    let trunks = |plan: &mut tollgate::proto::plan::Plan, _: &mut _| plan.spans[1].signalling.kind = ChannelKind::CasMf;
    each_layout_with(trunks, |w| {
        let all = audit(w, E, "R");
        assert!(all.contains("MS/ans(N)") && all.contains("MS/rel(N)"), "{all}");
        assert!(audit(w, E, "T").contains("MS/ans,"));
        w.occur(E, "MS/ans", None);
        assert_eq!((told(w), audit(w, E, "B/NS")), (String::new(), "o".into()));
        assert_eq!(code(w, "RQNT", E, &["X: 1"]), 200);
        w.run_for(20 * MS);
        assert_eq!(notified(w), [("1".to_owned(), "MS/ans".to_owned())]);
        assert_eq!(code(w, "RQNT", E, &["X: 2", "R: ans(I),inf(N)"]), 200);
        assert!(audit(w, E, "R").starts_with("MS/ans(I),MS/inf(N),MS/rel(N)"));
        w.occur(E, "MS/ans", None);
        assert_eq!(told(w), "");
        w.occur(E, "MS/inf(k0,1,2,s0)", None);
        assert_eq!(told(w), "MS/inf(k0,1,2,s0)");
        assert_eq!(code(w, "RQNT", E, &["X: 3"]), 200);
        w.occur(E, "MS/ans", None);
        assert_eq!(notified(w), [("3".to_owned(), "MS/ans".to_owned())]);
        // A package of version 0 has no time-out parameter (G-SIG-08).
        assert_eq!(code(w, "RQNT", E, &["X: 4", "S: rt(to=5000)"]), 538);
    });
}
