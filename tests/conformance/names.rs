//! Endpoint names and wildcards (EPN).

use super::{LAYOUTS, audit, block, code, create, each_layout, each_layout_with, fresh_id, large_world, own_commands, raw};
use std::collections::HashSet;

/// G-EPN-01: neither half of a name knows letter case.
#[test]
fn letter_case_of_names_does_not_matter() {
    each_layout(|w| {
        let id = create(w, "ds/ds1-1/1", "A1");
        assert_eq!(w.ask("AUEP", "DS/Ds1-1/1@TGW.Example.NET", &["F: I"]).get("I"), Some(id.as_str()));
    });
}

/// G-EPN-02: terms of visible characters between single slashes; `[ ] + # -` are ordinary, so such a name is only unknown.
#[test]
fn names_that_are_none_are_refused() {
    each_layout(|w| {
        for name in ["ds//ds1-1/1", "/ds/ds1-1/1", "ds/ds1-1/1/", "ds/ds1-*", "ds/ds1-1/$1", "*ds/1", ""] {
            assert_eq!(code(w, "AUEP", &format!("{name}@tgw.example.net"), &[]), 500, "{name}");
        }
        for name in ["X35V3+A4/13", "[1]/a#b"] {
            let reply = w.ask("AUEP", name, &[]);
            assert_eq!(reply.line.split_once("500 ").map(|(_, rest)| rest.contains("no such endpoint")), Some(true), "{reply:?}");
        }
    });
}

/// G-EPN-03: 255 characters on either side.
#[test]
fn names_have_255_characters_at_most() {
    each_layout(|w| {
        let name = |local: usize, domain: usize| format!("{}@{}", "a".repeat(local), "b".repeat(domain));
        for (local, domain, what) in [(255, 255, "domain is not"), (256, 10, "longer than 255"), (10, 256, "longer than 255")] {
            let reply = w.ask("AUEP", &name(local, domain), &[]);
            assert_eq!(reply.code, Some(500));
            assert!(reply.line.contains(what), "{}", reply.line);
        }
    });
}

/// G-EPN-04: a DNS name, an IPv4 address, an IPv6 address, a number.
#[test]
fn domains_have_four_forms() {
    let own = |plan: &mut tollgate::proto::plan::Plan, _: &mut _| plan.domains.push(b"[2001:db8::10]"[..].into());
    each_layout_with(own, |w| {
        for domain in ["tgw.example.net", "[192.0.2.10]", "[2001:DB8::10]"] {
            assert_eq!(code(w, "AUEP", &format!("ds/ds1-1/1@{domain}"), &[]), 200, "{domain}");
        }
        // Read as a domain, and not ours.
        for domain in ["#123", "[192.0.2.11]", "elsewhere.example.net"] {
            let reply = w.ask("AUEP", &format!("ds/ds1-1/1@{domain}"), &[]);
            assert!(reply.code == Some(500) && reply.line.contains("not this gateway's"), "{}", reply.line);
        }
        for domain in ["[1.2.3]", "#", "a_b c", "[::1"] {
            let id = fresh_id(w);
            assert!(raw(w, format!("AUEP {id} ds/ds1-1/1@{domain} MGCP 1.0\r\n").as_bytes())[0].code >= Some(500), "{domain}");
        }
    });
}

/// G-EPN-05: what the gateway sends about an endpoint uses the spelling of the domain it was last addressed by.
#[test]
fn the_domain_last_used_is_kept() {
    each_layout(|w| {
        assert_eq!(code(w, "CRCX", "ds/ds1-2/1@[192.0.2.10]", &["C: A1", "M: recvonly"]), 200);
        create(w, "ds/ds1-1/1", "A1");
        // An audit, and a list of names, speak of the gateway as the command did.
        let names = w.ask("AUEP", "ds/ds1-1/*@[192.0.2.10]", &[]);
        assert!(names.values("Z").iter().all(|name| name.ends_with("@[192.0.2.10]")), "{names:?}");
        block(w, "*", true);
        let lines: HashSet<_> = own_commands(w, "DLCX").into_iter().map(|(_, c)| c.line.split(' ').nth(2).unwrap().to_owned()).collect();
        assert_eq!(lines, HashSet::from(["ds/ds1-2/1@[192.0.2.10]".into(), "ds/ds1-1/1@tgw.example.net".into()]));
    });
}

/// The same for a command over many endpoints.
#[test]
fn the_domain_of_a_wildcard_command_is_kept_too() {
    each_layout(|w| {
        create(w, "ds/ds1-2/1", "A1");
        assert_eq!(code(w, "RQNT", "*@[192.0.2.10]", &["X: 1"]), 200);
        block(w, "ds/ds1-2/1", true);
        assert!(own_commands(w, "DLCX")[0].1.line.contains(" ds/ds1-2/1@[192.0.2.10] "));
    });
}

/// G-EPN-06: `*` covers endpoints in and out of service, `$` only those in service.
#[test]
fn all_of_covers_what_is_out_of_service_and_any_of_does_not() {
    each_layout(|w| {
        block(w, "ds/ds1-3/*", true);
        w.take_mail();
        assert_eq!(w.ask("AUEP", "ds/ds1-3/*", &[]).values("Z").len(), 24);
        assert_eq!(code(w, "CRCX", "ds/ds1-3/$", &["C: A1", "M: recvonly"]), 410);
        for _ in 0..30 {
            let made = w.ask("CRCX", "$", &["C: A1", "M: recvonly"]);
            assert!(made.code == Some(200) && !made.get("Z").unwrap().starts_with("ds/ds1-3/"), "{made:?}");
        }
    });
}

/// G-EPN-07, G-EPN-11, G-AUE-02: `*` alone is every endpoint of the gateway; names follow the hierarchy; a list that does not fit
/// is 533.
#[test]
fn all_of_alone_is_the_whole_gateway() {
    for layout in LAYOUTS {
        let mut w = large_world(layout);
        let names = w.ask("AUEP", "*", &[]);
        let list = names.values("Z");
        assert_eq!((names.code, list.len()), (Some(200), 672));
        assert_eq!((list[0], list[671]), ("ds/ds3-1/ds1-1/1@tgw.example.net", "ds/ds3-1/ds1-28/24@tgw.example.net"));
        for deep in ["ds/*/*/*", "*/*/*/*", "ds/ds3-1/*"] {
            assert_eq!(w.ask("AUEP", deep, &[]).values("Z"), list, "{deep}");
        }
        // G-EPN-12.
        assert!(list.iter().all(|name| !name.contains("-0") && !name.contains("/0")));
        w.reload(|settings| settings.agents[0].max_response = 4000);
        assert_eq!(code(&mut w, "AUEP", "*", &[]), 533);
        assert_eq!(code(&mut w, "AUEP", "ds/ds3-1/ds1-4/*", &[]), 200);
    }
}

/// G-EPN-08: wildcards in any place; all-of in the middle, any-of from left to right.
#[test]
fn wildcards_stand_in_any_place() {
    each_layout(|w| {
        for span in 1..=8 {
            for channel in [1, 2] {
                create(w, &format!("ds/ds1-{span}/{channel}"), "A1");
            }
        }
        assert_eq!(code(w, "DLCX", "ds/*/1", &[]), 250);
        let left = w.connections();
        assert_eq!(left.len(), 8);
        assert!(left.iter().all(|(_, endpoint)| endpoint.0 % 24 == 1));
        let spans: HashSet<_> =
            (0..8).map(|_| w.ask("CRCX", "ds/$/3", &["C: B", "M: recvonly"]).get("Z").expect("an endpoint").to_owned()).collect();
        assert_eq!(spans.len(), 8);
        assert!(spans.iter().all(|name| name.contains("/3@")));
    });
}

/// G-EPN-10: a name or pattern that matches nothing is 500.
#[test]
fn what_matches_nothing_is_500() {
    each_layout(|w| {
        for name in ["ds/ds1-9/1", "ds/ds1-1/25", "ds/ds1-9/*", "ds/ds3-1/*", "zz/*", "ds/*/25"] {
            assert_eq!(code(w, "AUEP", name, &[]), 500, "{name}");
        }
        for name in ["ds/ds1-9/$", "ds/zz/$"] {
            assert_eq!(code(w, "CRCX", name, &["C: A1", "M: recvonly"]), 500, "{name}");
        }
    });
}

/// G-EPN-12: numbers have no leading zeros.
#[test]
fn leading_zeros_name_nothing() {
    each_layout(|w| {
        for name in ["ds/ds1-1/01", "ds/ds1-01/1", "ds/ds1-1/0"] {
            assert_eq!(code(w, "AUEP", name, &[]), 500, "{name}");
        }
    });
}

/// G-EPN-13: ranges where the agent may use them, and ordinary characters where not.
#[test]
fn ranges_stand_where_all_of_may() {
    for allowed in [true, false] {
        each_layout_with(
            |_, settings| settings.agents[0].ranges = allowed,
            |w| {
                // The journal reads no ranges.
                w.without_journal();
                for (span, channel) in [(1, 1), (1, 2), (1, 3), (2, 20), (2, 19), (2, 24), (3, 1)] {
                    create(w, &format!("ds/ds1-{span}/{channel}"), "A1");
                }
                assert_eq!(code(w, "DLCX", "ds/ds1-[1-2]/[1,3,20-24]", &[]), if allowed { 250 } else { 500 });
                assert_eq!(w.connections().len(), if allowed { 3 } else { 7 });
                assert_eq!(audit(w, "ds/ds1-2/19", "I").len(), 8);
                for broken in ["ds/ds1-[2-1]/1", "ds/ds1-[1-/1", "ds/ds1-[]/1", "ds/ds1-[1, 2]/1"] {
                    let id = fresh_id(w);
                    let replies = raw(w, format!("DLCX {id} {broken}@tgw.example.net MGCP 1.0\r\n").as_bytes());
                    assert!(replies[0].code >= Some(500), "{broken}: {replies:?}");
                }
            },
        );
    }
}
