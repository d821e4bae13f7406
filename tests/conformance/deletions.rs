//! DeleteConnection and connection parameters (DLX, STA).

use super::{S, SDP, agent, block, code, connection, create, each_layout, own_commands, raw};
use tollgate::proto::trunk::CardOrder;
use tollgate::sim::{Reply, World};

const NAME: &str = "ds/ds1-2/1";

/// The counters of a `P:`.
fn counters(reply: &Reply) -> Vec<(String, u32)> {
    let text = reply.get("P").unwrap_or_else(|| panic!("no P: {reply:?}"));
    let item = |item: &str| {
        let (name, value) = item.split_once('=').expect("name=value");
        assert!(value.len() <= 9 && !value.is_empty(), "{text}");
        (name.to_owned(), value.parse().expect("a number"))
    };
    text.split(", ").map(item).collect()
}

fn counter(reply: &Reply, name: &str) -> u32 {
    counters(reply).into_iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no {name}: {reply:?}")).1
}

/// A connection to a far end, for two seconds; its counters.
fn call(w: &mut World, mode: &str, l: &str) -> Reply {
    let made = w.ask("CRCX", NAME, &[&["C: A1", &format!("M: {mode}"), &format!("L: {l}")][..], &SDP].concat());
    let id = format!("I: {}", connection(&made));
    w.run_for(2 * S);
    w.ask("DLCX", NAME, &["C: A1", &id])
}

/// G-DLX-01: one connection: unknown 515, another call's 516, no wildcards.
#[test]
fn a_deletion_names_its_connection() {
    each_layout(|w| {
        let id = format!("I: {}", create(w, NAME, "A1"));
        assert_eq!(code(w, "DLCX", NAME, &["C: A1", "I: 12345678"]), 515);
        assert_eq!(code(w, "DLCX", NAME, &["C: B1", &id]), 516);
        assert_eq!(code(w, "DLCX", "ds/ds1-3/1", &["C: A1", &id]), 515);
        assert_eq!(code(w, "DLCX", NAME, &[&id]), 510);
        for wild in ["ds/ds1-2/*", "ds/ds1-2/$"] {
            assert!(code(w, "DLCX", wild, &["C: A1", &id]) >= 500);
        }
        assert_eq!(w.connections().len(), 1);
        assert_eq!(code(w, "DLCX", NAME, &["C: a1", &id.to_lowercase()]), 250);
    });
}

/// G-DLX-02, G-STA-01, G-RSL-03: 250 with counters; media is given back.
#[test]
fn a_deletion_tells_what_was_counted() {
    each_layout(|w| {
        let deleted = call(w, "sendrecv", "p:20");
        assert_eq!((deleted.code, deleted.parameters.len()), (Some(250), 1));
        let names: Vec<_> = counters(&deleted).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["PS", "OS", "PR", "OR", "PL", "JI", "LA"]);
        // Two seconds of 20 ms, and payload only: 160 bytes each.
        assert!((99..=102).contains(&counter(&deleted, "PS")), "{deleted:?}");
        assert_eq!(counter(&deleted, "OS"), counter(&deleted, "PS") * 160);
        assert_eq!(w.media_open(), 0);
    });
}

/// G-STA-02: the count goes on over a change of codec or period.
#[test]
fn counts_cover_the_life_of_the_connection() {
    each_layout(|w| {
        let made = w.ask("CRCX", NAME, &[&["C: A1", "M: sendrecv", "L: p:20"][..], &SDP].concat());
        let id = format!("I: {}", connection(&made));
        w.run_for(2 * S);
        assert_eq!(code(w, "MDCX", NAME, &["C: A1", &id, "L: p:10"]), 200);
        w.run_for(2 * S);
        let live = w.ask("AUCX", NAME, &[&id, "F: P"]);
        let deleted = w.ask("DLCX", NAME, &["C: A1", &id]);
        let (packets, octets) = (counter(&deleted, "PS"), counter(&deleted, "OS"));
        assert!((298..=304).contains(&packets), "{deleted:?}");
        assert!((31_700..=32_400).contains(&octets), "{deleted:?}");
        // G-AUC-02: reading resets nothing.
        assert!(counter(&live, "PS") <= packets && counter(&live, "PS") > 290);
    });
}

/// G-STA-03: what only receives has sent nothing, what only sends has received nothing.
#[test]
fn one_way_connections_count_one_way() {
    each_layout(|w| {
        let deleted = call(w, "recvonly", "p:20");
        assert_eq!((counter(&deleted, "PS"), counter(&deleted, "OS")), (0, 0));
        assert!(counter(&deleted, "PR") > 0);
        let deleted = call(w, "sendonly", "p:20");
        for name in ["PR", "OR", "PL", "JI"] {
            assert_eq!(counter(&deleted, name), 0, "{name}");
        }
        assert!(counter(&deleted, "PS") > 0);
    });
}

/// G-STA-06: a connection inside the gateway counts octets.
#[test]
fn a_connection_inside_counts_octets() {
    each_layout(|w| {
        let made = w.ask("CRCX", NAME, &["C: A1", "M: sendrecv", "Z2: ds/ds1-3/1@tgw.example.net"]);
        w.run_for(2 * S);
        let deleted = w.ask("DLCX", NAME, &["C: A1", &format!("I: {}", connection(&made))]);
        assert!(counter(&deleted, "OS") > 0 && counter(&deleted, "OR") > 0, "{deleted:?}");
        assert_eq!(code(w, "DLCX", "ds/ds1-3/1", &[]), 250);
    });
}

/// G-DLX-03, G-TXN-02: many: by call or endpoint, with all-of; no counters, and success although nothing matched.
#[test]
fn deletions_of_many_have_no_counters() {
    each_layout(|w| {
        for parameters in [&[][..], &["C: A1"]] {
            for name in [NAME, "ds/ds1-2/*", "*"] {
                let reply = w.ask("DLCX", name, parameters);
                assert_eq!((reply.code, reply.parameters.len()), (Some(250), 0), "{name} {parameters:?}");
            }
        }
        assert_eq!(code(w, "DLCX", "ds/ds1-9/*", &[]), 500);
        create(w, NAME, "A1");
        for carried in ["X: 1", "B: e:A", "N: ca2@ca2.example.net"] {
            for name in [NAME, "ds/ds1-2/*"] {
                assert_eq!(code(w, "DLCX", name, &[carried]), 510, "{carried}");
            }
        }
        assert_eq!(code(w, "DLCX", "ds/ds1-2/*", &["X: 1", "R: L/hd(N)"]), 510);
        assert_eq!(code(w, "DLCX", "ds/ds1-2/$", &[]), 500);
        assert_eq!(w.connections().len(), 1);
        create(w, NAME, "B1");
        assert_eq!(code(w, "DLCX", NAME, &["C: A1"]), 250);
        assert_eq!(w.connections().len(), 1);
        assert_eq!(code(w, "DLCX", NAME, &[]), 250);
        assert_eq!(w.connections().len(), 0);
    });
}

/// G-DLX-06: a span that dies: one DeleteConnection for each connection, with call, reason and counters; the answer changes nothing,
/// and an error is no reason to repeat it.
#[test]
fn the_gateway_deletes_what_a_dead_span_carried() {
    each_layout(|w| {
        w.without_journal();
        let id = create(w, NAME, "A1");
        let facility = w.facility("ds/ds1-2");
        w.take_mail();
        let defect = tollgate::proto::trunk::Defect::LossOfSignal;
        w.order_cards(CardOrder::Defect { facility, defect, present: true, at_once: true });
        w.run_for(S);
        let sent = own_commands(w, "DLCX");
        assert_eq!(sent.len(), 1, "{sent:?}");
        let (to, command) = &sent[0];
        assert_eq!((*to, command.get("C"), command.get("I")), (agent(1, 2727), Some("A1"), Some(id.as_str())));
        assert!(command.line.contains(" ds/ds1-2/1@tgw.example.net MGCP 1.0"));
        assert!(command.get("E").is_some_and(|e| e.starts_with("905 ") || e.starts_with("902 ")), "{command:?}");
        assert!(command.get("P").is_some_and(|p| p.starts_with("PS=")));
        assert_eq!(w.connections().len(), 0);
        w.run_for(60 * S);
        assert_eq!(own_commands(w, "DLCX").len(), 1);
    });
}

/// G-DLX-06: an error for an answer.
#[test]
fn an_error_ends_the_gateways_deletion_too() {
    for layout in super::LAYOUTS {
        let mut w = World::new(tollgate::sim::Setup { told: false, ..super::setup(layout, 1) }, |_, _| {});
        super::restarts::confirm_all(&mut w);
        create(&mut w, NAME, "A1");
        w.take_mail();
        block(&mut w, NAME, true);
        let (to, command) = own_commands(&w, "DLCX").remove(0);
        w.take_mail();
        w.send_from(to, 0, format!("515 {} gone\r\n", command.id).as_bytes());
        w.run_for(60 * S);
        assert!(own_commands(&w, "DLCX").is_empty());
        assert_eq!(w.connections().len(), 0);
    }
}

/// G-DLX-07: P in an agent's DeleteConnection is refused; E is not looked at (open point O-12).
#[test]
fn counters_are_not_the_agents_to_give() {
    each_layout(|w| {
        let id = format!("I: {}", create(w, NAME, "A1"));
        assert_eq!(code(w, "DLCX", NAME, &["C: A1", &id, "P: PS=1"]), 539);
        assert_eq!(w.connections().len(), 1);
        assert_eq!(code(w, "DLCX", NAME, &["C: A1", &id, "E: nonsense 1"]), 250);
        create(w, NAME, "A1");
        let replies = raw(w, b"DLCX 77 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nE: 900\r\n");
        assert_eq!(replies[0].code, Some(250));
        assert_eq!(w.connections().len(), 0);
    });
}
