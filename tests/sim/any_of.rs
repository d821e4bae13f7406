//! CreateConnection with `$`: every layout finds the free endpoints, each once (G-CRX-04, G-SHD-04).

use super::{MS, connection, create, each_layout};
use std::collections::HashSet;

#[test]
fn a_span_is_used_up_endpoint_by_endpoint() {
    each_layout(|w| {
        create(w, "ds/ds1-5/10", "B");
        let mut names = HashSet::new();
        for _ in 0..23 {
            let made = w.ask("CRCX", "ds/ds1-5/$", &["C: A1", "M: recvonly"]);
            assert_eq!(made.code, Some(200), "{made:?}");
            let name = made.get("Z").unwrap().to_owned();
            assert!(w.ask("AUEP", name.split('@').next().unwrap(), &["F: I"]).get("I") == made.get("I"));
            assert!(names.insert(name));
        }
        assert!(!names.contains("ds/ds1-5/10@tgw.example.net") && names.contains("ds/ds1-5/24@tgw.example.net"));
        assert_eq!(w.ask("CRCX", "ds/ds1-5/$", &["C: A1", "M: recvonly"]).code, Some(410));
        assert_eq!(w.ask("DLCX", "ds/ds1-5/3", &[]).code, Some(250));
        let made = w.ask("CRCX", "ds/ds1-5/$", &["C: A1", "M: recvonly"]);
        assert_eq!(made.get("Z"), Some("ds/ds1-5/3@tgw.example.net"));
    });
}

/// 220 at once for the 192 endpoints of eight spans: each endpoint once, the rest 410.
#[test]
fn many_at_once_get_different_endpoints() {
    each_layout(|w| {
        let names = ["$", "ds/$/$", "ds/ds1-$/$", "ds/ds1-7/$"];
        let usable: Vec<_> = names.into_iter().filter(|name| w.plan.topology.resolve(name.as_bytes(), false).is_ok()).collect();
        assert!(usable.len() >= 2);
        let ids: Vec<u32> = (0..220)
            .map(|n| {
                w.run_for(MS / 10);
                w.command("CRCX", usable[n % usable.len()], &["C: A1", "M: recvonly"])
            })
            .collect();
        let finals: Vec<_> = ids.into_iter().map(|id| w.final_of(id)).collect();
        let (made, refused): (Vec<_>, Vec<_>) = finals.iter().partition(|reply| reply.code == Some(200));
        let chosen: HashSet<_> = made.iter().map(|reply| reply.get("Z").unwrap()).collect();
        let connections: HashSet<_> = made.iter().map(|reply| connection(reply)).collect();
        assert_eq!((chosen.len(), connections.len()), (made.len(), made.len()));
        assert!(refused.iter().all(|reply| reply.code == Some(410)), "{refused:?}");
        assert_eq!(w.connections().len(), made.len());
        // Names of one span are used up before the gateway is.
        while w.ask("CRCX", "$", &["C: A1", "M: recvonly"]).code == Some(200) {}
        assert_eq!(w.connections().len(), 192);
        assert_eq!(w.ask("DLCX", "*", &[]).code, Some(250));
        assert_eq!(w.connections().len(), 0);
    });
}

/// G-EPN-05: the domain in `Z:` is the one the command used.
#[test]
fn the_chosen_name_has_the_domain_of_the_command() {
    each_layout(|w| {
        for _ in 0..4 {
            let made = w.ask("CRCX", "$@[192.0.2.10]", &["C: A1", "M: recvonly"]);
            assert!(made.get("Z").is_some_and(|name| name.ends_with("@[192.0.2.10]")), "{}", made.line);
            // The endpoint knows it from now on, on its own core.
            assert_eq!(w.ask("AUEP", made.get("Z").unwrap(), &["F: I"]).get("I"), made.get("I"));
        }
    });
}

/// G-TXN-02: `$` in anything but CreateConnection is refused and changes nothing; `*` in CreateConnection too (G-CRX-04).
#[test]
fn wildcards_where_they_may_not_stand_change_nothing() {
    each_layout(|w| {
        let id = create(w, "ds/ds1-1/1", "A1");
        for verb in ["DLCX", "MDCX", "RQNT", "EPCF", "AUEP", "AUCX"] {
            let id = format!("I: {id}");
            let parameters: &[&str] = match verb {
                "DLCX" => &["C: A1"],
                "MDCX" => &["C: A1", &id, "M: inactive"],
                "AUCX" => &[&id],
                "RQNT" => &["X: 5"],
                "EPCF" => &["B: e:A"],
                _ => &[],
            };
            let code = w.ask(verb, "ds/ds1-1/$", parameters).code;
            assert!(code.is_some_and(|code| (500..600).contains(&code)), "{verb}: {code:?}");
        }
        assert_eq!(w.ask("CRCX", "ds/ds1-1/*", &["C: A1", "M: recvonly"]).code, Some(503));
        assert_eq!(w.connections().len(), 1);
    });
}
