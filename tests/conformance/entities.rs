//! Notified entities and addresses (NET). What tells them is the gateway's own DeleteConnection when an endpoint is taken away.

use super::{MS, S, agent, audit, block, code, create, each_layout, own_commands, raw_from, setup};
use std::net::SocketAddr;
use tollgate::proto::core::Administration;
use tollgate::proto::restart::BlockHow;
use tollgate::sim::{Reply, World};

const FIRST: &str = "ca1@[192.0.2.1]:2727";

/// Creates a connection, takes the endpoint away, and says where the DeleteConnection went. The endpoint is given back.
fn told_at(w: &mut World, endpoint: &str) -> SocketAddr {
    let id = create(w, endpoint, "C1");
    told(w, endpoint, &id)
}

fn told(w: &mut World, endpoint: &str, id: &str) -> SocketAddr {
    w.take_mail();
    block(w, endpoint, true);
    let sent = own_commands(w, "DLCX");
    let (to, command) = sent.first().unwrap_or_else(|| panic!("no DLCX for {endpoint}"));
    assert_eq!(command.get("I"), Some(id));
    let to = *to;
    block(w, endpoint, false);
    to
}

/// G-NET-01: each endpoint has its own.
#[test]
fn each_endpoint_notifies_its_own_entity() {
    each_layout(|w| {
        assert_eq!(code(w, "RQNT", "ds/ds1-1/2", &["X: 1", "N: ca2@ca2.example.net"]), 200);
        let ids = ["ds/ds1-1/1", "ds/ds1-1/2"].map(|endpoint| create(w, endpoint, "C1"));
        w.take_mail();
        block(w, "ds/ds1-1/*", true);
        let mut sent: Vec<_> =
            own_commands(w, "DLCX").into_iter().map(|(to, command)| (to, command.get("I").unwrap().to_owned())).collect();
        sent.sort();
        let mut expected = vec![(agent(1, 2727), ids[0].clone()), (agent(2, 2727), ids[1].clone())];
        expected.sort();
        assert_eq!(sent, expected);
    });
}

/// G-NET-02: provisioned at first, changed by N, kept over calls, provisioned again after a restart.
#[test]
fn the_entity_changes_by_n_and_reverts_on_restart() {
    each_layout(|w| {
        assert_eq!(audit(w, "ds/ds1-2/1", "N"), FIRST);
        assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &["X: 1", "N: ca2@ca2.example.net:5000"]), 200);
        let id = create(w, "ds/ds1-2/1", "A1");
        assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &["C: A1", &format!("I: {id}")]), 250);
        assert_eq!(audit(w, "ds/ds1-2/1", "N"), "ca2@ca2.example.net:5000");
        assert_eq!(told_at(w, "ds/ds1-2/1"), agent(2, 5000));
        assert_eq!(audit(w, "ds/ds1-2/1", "N"), FIRST);
        assert_eq!(told_at(w, "ds/ds1-2/1"), agent(1, 2727));
    });
}

/// G-NET-03: an empty N clears it; then the source of the latest successful command counts, and audits and failures are none.
#[test]
fn a_cleared_entity_is_the_source_of_the_latest_successful_command() {
    each_layout(|w| {
        let id = create(w, "ds/ds1-2/1", "C1");
        let name = "ds/ds1-2/1@tgw.example.net MGCP 1.0\r\n";
        let cleared = raw_from(w, agent(2, 4000), format!("RQNT 70 {name}X: 1\r\nN:\r\n").as_bytes());
        assert_eq!(cleared[0].code, Some(200));
        assert_eq!(audit(w, "ds/ds1-2/1", "N"), "");
        assert_eq!(raw_from(w, agent(1, 4001), format!("AUEP 71 {name}F: N\r\n").as_bytes())[0].code, Some(200));
        assert_eq!(raw_from(w, agent(1, 4002), format!("AUCX 72 {name}I: {id}\r\n").as_bytes())[0].code, Some(200));
        for failing in ["CRCX 73 ", "MDCX 74 "] {
            let reply = raw_from(w, agent(1, 4003), format!("{failing}{name}C: 1\r\nI: 77\r\nM: sendrecv\r\n").as_bytes());
            assert!(reply[0].code >= Some(500));
        }
        assert_eq!(told(w, "ds/ds1-2/1", &id), agent(2, 4000));
    });
}

/// G-NET-03: what an endpoint without a notified entity announces goes there as well, and follows the next command.
#[test]
fn announcements_go_to_the_source_of_the_latest_successful_command() {
    each_layout(|w| {
        w.without_journal();
        let name = "ds/ds1-2/1@tgw.example.net MGCP 1.0\r\n";
        let sources = [(70, agent(2, 4000), "N:\r\n"), (71, agent(2, 4001), ""), (72, agent(1, 4002), "")];
        for (id, source, entity) in sources {
            let reply = raw_from(w, source, format!("RQNT {id} {name}X: 1\r\n{entity}").as_bytes());
            assert_eq!(reply[0].code, Some(200));
            assert_eq!(raw_from(w, agent(1, 4003), format!("AUEP 1{id} {name}F: N\r\n").as_bytes())[0].code, Some(200));
            w.run_for(S);
            for blocked in [true, false] {
                w.take_mail();
                block(w, "ds/ds1-2/1", blocked);
                let to: Vec<_> = own_commands(w, "RSIP").into_iter().map(|(to, _)| to).collect();
                // After a restart it is the provisioned one.
                let expected = if blocked { source } else { agent(1, 2727) };
                assert_eq!(to, [expected], "{id} {blocked}");
            }
            let reply = raw_from(w, source, format!("RQNT 2{id} {name}X: 1\r\nN:\r\n").as_bytes());
            assert_eq!(reply[0].code, Some(200));
        }
    });
}

/// G-NET-03 for a command over many endpoints.
#[test]
fn a_wildcard_command_is_a_successful_command_of_each_endpoint() {
    each_layout(|w| {
        let id = create(w, "ds/ds1-2/1", "C1");
        let cleared = raw_from(w, agent(2, 4000), b"RQNT 70 ds/*/*@tgw.example.net MGCP 1.0\r\nX: 1\r\nN: \r\n");
        assert_eq!(cleared[0].code, Some(200));
        assert_eq!(told(w, "ds/ds1-2/1", &id), agent(2, 4000));
    });
}

/// G-NET-04: N of a command that fails has no effect.
#[test]
fn a_failing_command_names_nobody() {
    each_layout(|w| {
        let n = "N: ca2@ca2.example.net";
        assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &["X: 1", n, "R: zz/a(N)"]), 518);
        assert_eq!(code(w, "CRCX", "ds/ds1-2/1", &["C: 1", "M: sendrecv", n]), 527);
        assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &["C: 1", "I: 5", n]), 515);
        assert_eq!(audit(w, "ds/ds1-2/1", "N"), FIRST);
    });
}

/// G-NET-05: whoever is listed may command, and is not made the notified entity by that.
#[test]
fn any_agent_may_command() {
    each_layout(|w| {
        let reply = raw_from(w, agent(2, 2727), b"RQNT 70 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 1\r\n");
        assert_eq!(reply[0].code, Some(200));
        assert_eq!(audit(w, "ds/ds1-2/1", "X"), "1");
        assert_eq!(told_at(w, "ds/ds1-2/1"), agent(1, 2727));
    });
}

/// G-NET-06, G-NET-07: the forms of N, and its port.
#[test]
fn the_forms_of_a_notified_entity() {
    each_layout(|w| {
        let forms = [("ca@ca2.example.net", 2727), ("[192.0.2.2]", 2727), ("ca2.example.net:2727", 2727), ("x@[192.0.2.2]:5678", 5678)];
        for (form, port) in forms {
            assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &["X: 1", &format!("N: {form}")]), 200, "{form}");
            assert_eq!(audit(w, "ds/ds1-2/1", "N"), form);
            assert_eq!(told_at(w, "ds/ds1-2/1"), agent(2, port), "{form}");
        }
        for form in ["ca2.example.net:123456", "ca2.example.net:", "@ca2.example.net", "ca@", "a@b@ca2.example.net", "[192.0.2.2"] {
            assert!(code(w, "RQNT", "ds/ds1-2/1", &["X: 1", &format!("N: {form}")]) >= 500, "{form}");
        }
        // A host that is no agent of this gateway.
        assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &["X: 1", "N: ca@evil.example.net"]), 539);
    });
}

/// G-NET-12: N in the answer to a RestartInProgress names another entity for the endpoints named; in other answers it says nothing.
#[test]
fn the_answer_to_a_restart_may_name_the_entity() {
    for layout in super::LAYOUTS {
        let mut w = World::new(tollgate::sim::Setup { told: false, ..setup(layout, 1) }, |_, _| {});
        w.run_for(S);
        let (to, restart) = own_commands(&w, "RSIP")[0].clone();
        assert_eq!(to, agent(1, 2727));
        w.take_mail();
        w.send_from(to, 0, format!("521 {} go\r\nN: ca2@ca2.example.net\r\n", restart.id).as_bytes());
        w.run_for(3 * S);
        let (to, again) = own_commands(&w, "RSIP")[0].clone();
        assert_eq!((to, again.get("RM")), (agent(2, 2727), Some("restart")));
        assert_ne!(again.id, restart.id);
        w.send_from(to, 0, format!("200 {} OK\r\nN: ca1@[192.0.2.1]:5000\r\n", again.id).as_bytes());
        w.run_for(S);
        for endpoint in ["ds/ds1-1/1", "ds/ds1-2/2", "ds/ds1-8/24"] {
            assert_eq!(audit(&mut w, endpoint, "N"), "ca1@[192.0.2.1]:5000", "{layout:?}");
        }
        // The answer to a DeleteConnection names nobody.
        create(&mut w, "ds/ds1-2/1", "C1");
        w.take_mail();
        block(&mut w, "ds/ds1-2/1", true);
        let (to, delete) = own_commands(&w, "DLCX")[0].clone();
        assert_eq!(to, agent(1, 5000));
        w.send_from(to, 0, format!("250 {} OK\r\nN: ca2@ca2.example.net\r\n", delete.id).as_bytes());
        w.run_for(100 * MS);
        create(&mut w, "ds/ds1-2/2", "C1");
        w.take_mail();
        block(&mut w, "ds/ds1-2/2", true);
        assert_eq!(own_commands(&w, "DLCX")[0].0, agent(1, 5000));
    }
}

/// G-NET-12, G-NET-01: whatever another command named meanwhile, all that an endpoint says goes to one entity afterwards.
#[test]
fn the_answer_to_an_announcement_counts_for_all_that_is_told_afterwards() {
    each_layout(|w| {
        w.without_journal();
        let id = create(w, "ds/ds1-2/5", "C1");
        w.answer_own(false);
        w.take_mail();
        let selection = w.plan.topology.resolve(b"ds/ds1-2/*", false).unwrap();
        w.administer(Administration::Block(selection, BlockHow::Graceful(3600 * S)));
        w.run_for(S);
        let (to, graceful) = own_commands(w, "RSIP").remove(0);
        assert_eq!(graceful.get("RM"), Some("graceful"));
        assert_eq!(code(w, "RQNT", "ds/ds1-2/5", &["X: 1", "N: ca2@ca2.example.net"]), 200);
        w.run_for(S);
        w.send_from(to, 0, format!("200 {} OK\r\nN: ca1@[192.0.2.1]:5000\r\n", graceful.id).as_bytes());
        w.run_for(S);
        assert_eq!(audit(w, "ds/ds1-2/5", "N"), "ca1@[192.0.2.1]:5000");
        w.answer_own(true);
        w.take_mail();
        block(w, "ds/ds1-2/5", true);
        let told: Vec<_> = ["RSIP", "DLCX"].into_iter().flat_map(|verb| own_commands(w, verb)).map(|(to, _)| to).collect();
        assert_eq!(told, [agent(1, 5000); 2], "{id}");
    });
}

/// G-NET-14: a repeat over the other address of the gateway meets the same history, and is answered from there.
#[test]
fn a_repeat_over_another_address_gets_the_same_response() {
    each_layout(|w| {
        let text = b"CRCX 70 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\n";
        for local in [0, 1] {
            w.send_from(agent(1, 2727), local, text);
            w.run_for(S);
        }
        let mail = w.take_mail();
        assert_eq!((mail[0].local, mail[1].local), (0, 1));
        assert_eq!(mail[0].bytes, mail[1].bytes);
        assert_eq!(Reply::all(&mail[0].bytes)[0].code, Some(200));
        assert_eq!(w.connections().len(), 1);
    });
}

/// G-NET-10: of several addresses the one the last request came from is preferred; from any other address, any.
#[test]
fn the_address_the_last_request_came_from_is_preferred() {
    let addresses = |settings: &mut tollgate::proto::plan::Settings| {
        settings.agents[0].addresses.extend([11, 12].map(|last| std::net::IpAddr::from([192, 0, 2, last])));
        settings.agents[0].notify.push(agent(11, 2727));
    };
    super::each_layout_with(
        |_, settings| addresses(settings),
        |w| {
            for (from, expected) in [(11, 11), (1, 1), (11, 11), (12, 1)] {
                let id = create(w, "ds/ds1-2/1", "C1");
                let text = format!("RQNT {} ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 1\r\n", 5000 + w.steps());
                assert_eq!(raw_from(w, agent(from, 4000), text.as_bytes())[0].code, Some(200));
                assert_eq!(told(w, "ds/ds1-2/1", &id), agent(expected, 2727), "from {from}");
            }
        },
    );
}
