//! ModifyConnection (MDX).

use super::{SDP, code, connection_snapshot, create, each_layout, snapshot};
use tollgate::proto::trunk::CardOrder;
use tollgate::sim::{Reply, World};

const NAME: &str = "ds/ds1-2/1";

fn modify(w: &mut World, id: &str, more: &[&str]) -> Reply {
    w.ask("MDCX", NAME, &[&["C: A1", &format!("I: {id}")][..], more].concat())
}

/// The version in `o=`.
fn version(reply: &Reply) -> u64 {
    let origin = reply.description.lines().find(|line| line.starts_with("o=")).expect("o=");
    origin.split(' ').nth(2).unwrap().parse().unwrap()
}

/// G-MDX-01: call and connection are mandatory and belong together; no wildcards.
#[test]
fn a_modification_names_its_connection() {
    each_layout(|w| {
        let id = create(w, NAME, "A1");
        let own = format!("I: {id}");
        assert_eq!(code(w, "MDCX", NAME, &[&own, "M: inactive"]), 510);
        assert_eq!(code(w, "MDCX", NAME, &["C: A1", "M: inactive"]), 510);
        assert_eq!(code(w, "MDCX", NAME, &["C: B1", &own, "M: inactive"]), 516);
        for wrong in ["I: 1", "I: FFFFFFFFF", "I: 12345678"] {
            assert_eq!(code(w, "MDCX", NAME, &["C: A1", wrong, "M: inactive"]), 515, "{wrong}");
        }
        // Of another endpoint, on this core and on others.
        for elsewhere in ["ds/ds1-2/2", "ds/ds1-3/1"] {
            assert_eq!(code(w, "MDCX", elsewhere, &["C: A1", &own, "M: inactive"]), 515);
        }
        assert_eq!(code(w, "MDCX", "ds/ds1-2/*", &["C: A1", &own, "M: inactive"]), 503);
        assert_eq!(code(w, "MDCX", "ds/ds1-2/$", &["C: A1", &own, "M: inactive"]), 500);
        assert_eq!(w.ask("AUCX", NAME, &[&own, "F: M"]).get("M"), Some("recvonly"));
        assert_eq!(modify(w, &id.to_lowercase(), &["M: inactive"]).code, Some(200));
    });
}

/// G-MDX-03: a description comes back exactly when ours changed, with a higher version.
#[test]
fn a_description_comes_back_when_it_changed() {
    each_layout(|w| {
        let made = w.ask("CRCX", NAME, &["C: A1", "M: recvonly"]);
        let id = made.get("I").unwrap().to_owned();
        let v0 = version(&made);
        // From what both have to what the far end has.
        let changed = modify(w, &id, &SDP);
        assert!(version(&changed) > v0 && changed.description.contains(" RTP/AVP 0\r\n"), "{changed:?}");
        for same in [&["M: sendrecv"][..], &["M: inactive"], &SDP, &["L: e:off"], &["L: a:PCMU"], &["L: p:20"], &[]] {
            let reply = modify(w, &id, same);
            assert_eq!((reply.code, reply.description.as_str(), reply.parameters.len()), (Some(200), "", 0), "{same:?}");
        }
        let again = modify(w, &id, &["L: a:PCMA"]);
        assert!(version(&again) > version(&changed));
        let third = modify(w, &id, &["L: p:30"]);
        assert!(version(&third) > version(&again) && third.description.contains("a=ptime:30"));
        let audited = w.ask("AUCX", NAME, &[&format!("I: {id}"), "F: LC"]);
        assert_eq!(audited.description, third.description);
    });
}

/// G-MDX-04: modes that send need a description, in this command or before.
#[test]
fn modes_that_send_need_a_description_now_or_before() {
    each_layout(|w| {
        for mode in ["sendonly", "sendrecv", "confrnce", "netwloop", "netwtest"] {
            let mode = format!("M: {mode}");
            let id = create(w, NAME, "A1");
            assert_eq!(modify(w, &id, &[&mode]).code, Some(527), "{mode}");
            assert_eq!(modify(w, &id, &[&[mode.as_str()][..], &SDP].concat()).code, Some(200), "{mode}");
            assert_eq!(modify(w, &id, &["M: recvonly"]).code, Some(200));
            assert_eq!(modify(w, &id, &[&mode]).code, Some(200), "{mode}");
            assert_eq!(code(w, "DLCX", NAME, &[]), 250);
        }
    });
}

/// G-MDX-05: whatever it fails for, connection and endpoint are as before.
#[test]
fn a_failed_modification_changes_nothing() {
    each_layout(|w| {
        let id = create(w, NAME, "A1");
        assert_eq!(modify(w, &id, &[&["M: sendrecv", "L: a:PCMU, p:20, e:off", "X: 7", "D: (1|2)"][..], &SDP].concat()).code, Some(200));
        let (endpoint, connection) = (snapshot(w, NAME), connection_snapshot(w, NAME, &id));
        let other = ["", "v=0", "c=IN IP4 192.0.2.51", "m=audio 40002 RTP/AVP 8"];
        let carried = ["M: inactive", "X: 8", "D: (3)", "N: ca2@ca2.example.net", "B: e:A", "L: p:30, s:on"];
        let with = |more: &[&'static str]| [&carried[..], more].concat();
        for (parameters, code) in [
            (with(&["", "v=0", "c=IN IP4 192.0.2.51", "m=audio 40002 RTP/AVP 99"]), 534),
            (with(&["", "v=0", "m=audio 40002 RTP/AVP 8"]), 509),
            ([&carried[..5], &["L: a:FOO"], &other].concat(), 534),
            ([&carried[..5], &["L: nt:LOCAL"], &other].concat(), 506),
            ([&carried[..5], &["L: r:g"], &other].concat(), 532),
            ([&carried[1..], &["M: foo"], &other].concat(), 517),
            (with(&["R: L/hd(N)"]), 518),
            (with(&["M: recvonly"]), 510),
        ] {
            assert_eq!(modify(w, &id, &parameters).code, Some(code), "{parameters:?}");
        }
        w.order_cards(CardOrder::Refuse(1));
        assert_eq!(modify(w, &id, &with(&other)).code, Some(403));
        assert_eq!((snapshot(w, NAME), connection_snapshot(w, NAME, &id)), (endpoint, connection));
    });
}

/// G-MDX-06: a connection that is gone is unknown.
#[test]
fn a_deleted_connection_is_unknown() {
    each_layout(|w| {
        let id = create(w, NAME, "A1");
        assert_eq!(code(w, "DLCX", NAME, &["C: A1", &format!("I: {id}")]), 250);
        assert_eq!(modify(w, &id, &["M: inactive"]).code, Some(515));
    });
}
