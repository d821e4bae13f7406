//! Packages (PKG): what belongs to one that the endpoint does not have is refused with 518 and the list of those it has.

use super::{audit, code, create, each_layout, snapshot};

/// What a channel without signalling has.
const PACKAGES: &str = "T:1,G:1,D:1,R:1,SL:0,DM1:0,FM:0,BA:0,B:0";

/// G-PKG-03, G-PKG-04, G-RTN-03: in every place a package can be named; nothing changes.
#[test]
fn what_belongs_to_an_unknown_package_is_518() {
    each_layout(|w| {
        let id = format!("I: {}", create(w, "ds/ds1-2/1", "A1"));
        let before = snapshot(w, "ds/ds1-2/1");
        let crcx: &[&str] = &["C: A1", "M: recvonly"];
        let cases: &[(&str, &[&str])] = &[
            ("RQNT", &["X: 5", "R: ZZ/a(N)"]),
            ("RQNT", &["X: 5", "S: x-foo/bar"]),
            ("RQNT", &["X: 5", "T: zz/a"]),
            ("RQNT", &["X: 5", "R: zz/all(N)"]),
            ("RQNT", &["X: 5", "R: zz/a@ffff(N)"]),
            ("RQNT", &["X: 5", "zz/foo: 1"]),
            ("RQNT", &["X: 5", "B/PR: L/hd(N)"]),
            ("RQNT", &["X: 5", "B: zz/a:1"]),
            ("CRCX", &[crcx, &["L: zz/a:1"]].concat()),
            ("CRCX", &["C: A1", "M: zz/foo"]),
            ("CRCX", &[crcx, &["X: 5", "R: zz/a(N)"]].concat()),
            ("CRCX", &[crcx, &["zz/foo: 1"]].concat()),
            ("MDCX", &["C: A1", &id, "M: zz/foo"]),
            ("MDCX", &["C: A1", &id, "L: p:10, zz/a"]),
            ("DLCX", &["C: A1", &id, "zz/foo: 1"]),
            ("DLCX", &["C: A1", "zz/foo: 1"]),
            ("DLCX", &["zz/foo:"]),
            ("EPCF", &["B: zz/a:1"]),
            ("EPCF", &["zz/foo: 1"]),
            ("AUEP", &["F: I", "zz/foo: 1"]),
            ("AUCX", &[&id, "zz/foo: 1"]),
        ];
        for (verb, parameters) in cases {
            let reply = w.ask(verb, "ds/ds1-2/1", parameters);
            assert_eq!((reply.code, reply.get("PL")), (Some(518), Some(PACKAGES)), "{verb} {parameters:?}: {reply:?}");
            assert_eq!(reply.parameters.len(), 1);
        }
        for verb in ["RQNT", "EPCF", "DLCX"] {
            assert_eq!(code(w, verb, "ds/ds1-2/*", &["X: 5", "zz/foo: 1"][usize::from(verb != "RQNT")..]), 518, "{verb}");
        }
        assert_eq!(snapshot(w, "ds/ds1-2/1"), before);
        assert_eq!(w.connections().len(), 1);
    });
}

/// PKG-01: what a trunk gateway need not have, or this one does not do, is as unknown as what nobody has.
#[test]
fn what_is_not_claimed_is_518() {
    each_layout(|w| {
        for list in [
            "R: M/k0(N)",
            "S: M/wk",
            "R: DO/rg(N)",
            "R: SST/cd(N)",
            "S: A/ann(x)",
            "R: RES/re(N)",
            "R: FXR/t38(N)",
            "R: IT/ft(N)",
            "R: L/hd(N)",
        ] {
            let reply = w.ask("RQNT", "ds/ds1-2/1", &["X: 5", list]);
            assert_eq!((reply.code, reply.get("PL")), (Some(518), Some(PACKAGES)), "{list}");
        }
        let reply = w.ask("CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly", "L: fxr/fx:off"]);
        assert_eq!((reply.code, reply.get("PL")), (Some(518), Some(PACKAGES)));
        assert_eq!(w.connections().len(), 0);
    });
}

/// G-PKG-01: a package has letters, digits and hyphens inside; anything else is no package name, and no reason for 518.
#[test]
fn names_of_packages() {
    each_layout(|w| {
        for (list, expected) in [("t/co1(N)", 200), ("T/CO1(N)", 200), ("a-b/x(N)", 518), ("x-foo/x(N)", 518)] {
            assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &["X: 5", &format!("R: {list}")]), expected, "{list}");
        }
        for list in ["-t/x(N)", "t-/x(N)", "t_u/x(N)", "/x(N)", "t/(N)"] {
            assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &["X: 5", &format!("R: {list}")]), 510, "{list}");
        }
        assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &["X: 5", "-t/x: 1"]), 510);
    });
}

/// G-AUE-11, G-AUE-05, G-PKG-05, G-PKG-11: an audit lists the packages with their versions, the default one first.
#[test]
fn an_audit_lists_the_packages() {
    each_layout(|w| {
        assert_eq!(audit(w, "ds/ds1-2/1", "PL"), PACKAGES);
        let audited = w.ask("AUEP", "ds/ds1-2/1", &["F: B/PR,B/NS,zz/par"]);
        assert_eq!((audited.get("B/PR"), audited.get("B/NS"), audited.parameters.len()), (Some(""), Some("o"), 2));
    });
}
