//! The memory for texts of agents: what fits once can be replaced, what was accepted is never lost, what does not fit is told as that
//! (G-REQ-01, G-TXN-02, G-RQN-04).

use super::{MS, S, SDP, agent, audit, code, create, each_layout_with, own_commands};
use tollgate::proto::base::Counter;
use tollgate::proto::plan::{Plan, Settings};
use tollgate::proto::trunk::CardOrder;
use tollgate::sim::World;

const TEXT: &str = "memory for descriptions, event lists and digit maps is used up";

/// A digit map of 2,040 bytes: 9 blocks.
fn long_map(digit: char) -> String {
    let branch: String = std::iter::repeat_n(digit, 16).collect();
    format!("D: ({})", vec![branch; 120].join("|"))
}

/// Memory of every core for so many blocks.
fn blocks(count: u32) -> impl Fn(&mut Plan, &mut Settings) {
    move |plan, _| plan.limits.blob_blocks = count
}

fn refused(w: &mut World, verb: &str, endpoint: &str, parameters: &[&str]) {
    let before = w.counter(Counter::TextMemoryFull);
    let reply = w.ask(verb, endpoint, parameters);
    assert!(reply.code == Some(403) && reply.line.ends_with(TEXT), "{reply:?}");
    assert!(w.counter(Counter::TextMemoryFull) > before);
}

/// A map on every endpoint is replaced by another as long, on all at once and on one, also when not a block is left.
#[test]
fn what_could_be_set_can_be_replaced() {
    // One core has all 192 endpoints, so that it is exact there.
    each_layout_with(blocks(192 * 10), |w| {
        for (n, digit) in "1234".chars().enumerate() {
            assert_eq!(code(w, "RQNT", "*", &["X: 1", &long_map(digit), "R: D/[0-9](D)"]), 200, "{n}");
            assert_eq!(code(w, "RQNT", "ds/ds1-3/7", &["X: 1", &long_map('7'), "R: D/[0-9](D),D/#(N)"]), 200, "{n}");
            assert_eq!(audit(w, "ds/ds1-4/7", "D"), long_map(digit)[3..]);
            assert_eq!(audit(w, "ds/ds1-3/7", "D"), long_map('7')[3..]);
        }
        assert_eq!(code(w, "RQNT", "*", &["X: 1", "D:"]), 200);
        assert_eq!(w.counter(Counter::TextMemoryFull), 0);
    });
}

/// A list in a request may take the room of another list that it gives up; an embedded request as well.
#[test]
fn lists_may_take_the_room_of_each_other() {
    each_layout_with(blocks(12), |w| {
        let endpoint = "ds/ds1-2/1";
        assert_eq!(code(w, "RQNT", endpoint, &["X: 1", "T: D/[0-9]", &long_map('1')]), 200);
        assert_eq!(code(w, "RQNT", endpoint, &["X: 1", "D: 1", "R: T/co1(N)", "B/PR: T/co2(N)", "T: D/#"]), 200);
        assert_eq!(code(w, "RQNT", endpoint, &["X: 1", "T:", &long_map('2'), "R: D/[0-9](D)"]), 200);
        let embedded = format!("R: T/co1(E(R(D/[0-9](D)),D({})))", &long_map('3')[3..]);
        refused(w, "RQNT", endpoint, &["X: 1", &embedded]);
        assert_eq!(code(w, "RQNT", endpoint, &["X: 1", "D: 1", &embedded]), 200);
        w.occur(endpoint, "T/co1", None);
        assert_eq!(audit(w, endpoint, "D"), long_map('3')[3..]);
        assert_eq!(w.counter(Counter::EmbeddedFailed), 0);
    });
}

/// What does not fit is refused in these words, and leaves everything as it was, on one endpoint and on all; a command that keeps no text
/// needs no room.
#[test]
fn what_does_not_fit_is_refused_in_words_that_say_so() {
    each_layout_with(blocks(96), |w| {
        let id = format!("I: {}", create(w, "ds/ds1-1/2", "A1"));
        assert_eq!(code(w, "MDCX", "ds/ds1-1/2", &[&["C: A1", &id][..], &SDP].concat()), 200);
        refused(w, "RQNT", "*", &["X: 7", &long_map('1')]);
        refused(w, "RQNT", "ds/ds1-1/*", &["X: 8", &long_map('1')]);
        for span in 1..=8 {
            for channel in 1..=24 {
                let name = format!("ds/ds1-{span}/{channel}");
                w.ask("RQNT", &name, &["X: 1", "D: 1x"]);
            }
        }
        for name in ["ds/ds1-1/24", "ds/ds1-2/24"] {
            while code(w, "CRCX", name, &[&["C: A1", "M: recvonly"][..], &SDP].concat()) == 200 {}
        }
        refused(w, "RQNT", "ds/ds1-1/24", &["X: 9", "R: D/[0-9](N)", "D: 1x"]);
        assert_eq!(audit(w, "ds/ds1-1/24", "X"), "1");
        // A description in place of one as long, a mode, and no text at all.
        assert_eq!(code(w, "MDCX", "ds/ds1-1/2", &[&["C: A1", &id][..], &SDP].concat()), 200);
        assert_eq!(code(w, "MDCX", "ds/ds1-1/2", &["C: A1", &id, "M: inactive"]), 200);
        assert_eq!(code(w, "CRCX", "ds/ds1-1/3", &["C: A1", "M: recvonly"]), 200);
    });
}

/// G-RQN-04: what a command that waits for the card will store is kept for it: others are refused, it is not.
#[test]
fn a_command_that_waits_for_the_card_finds_its_room() {
    for verb in ["CRCX", "MDCX", "pair"] {
        each_layout_with(blocks(24), |w| {
            let endpoint = "ds/ds1-2/1";
            let id = format!("I: {}", create(w, endpoint, "A1"));
            w.order_cards(CardOrder::Delay(100));
            let (x, map, entity) = ("X: 7", long_map('1'), "N: ca2@ca2.example.net:2728");
            let request: &[&str] = &[x, &map, "R: D/[0-9](D)", entity];
            let slow = match verb {
                "CRCX" => w.command("CRCX", endpoint, &[&["C: A1", "M: recvonly"], request, &SDP].concat()),
                "MDCX" => w.command("MDCX", endpoint, &[&["C: A1", &id, "M: sendrecv"], request, &SDP].concat()),
                _ => w.command("CRCX", endpoint, &[&["C: A1", "M: sendrecv", "Z2: ds/ds1-1/9@tgw.example.net"], request].concat()),
            };
            w.run_for(if verb == "pair" { 150 * MS } else { 50 * MS });
            assert!(w.replies_to(slow).is_empty());
            // The next channels of the same core take what is left.
            for channel in 2..=24 {
                let name = format!("ds/ds1-2/{channel}");
                w.ask("RQNT", &name, &["X: 1", "D: 1x"]);
            }
            assert!(w.counter(Counter::TextMemoryFull) > 0);
            assert_eq!(w.final_of(slow).code, Some(200), "{verb}");
            assert_eq!(audit(w, endpoint, "D"), long_map('1')[3..], "{verb}");
            assert_eq!(audit(w, endpoint, "N"), &entity[3..], "{verb}");
            w.order_cards(CardOrder::Delay(0));
        });
    }
}

/// A command that waits and is given up gives its room back.
#[test]
fn what_is_kept_for_a_command_is_free_when_it_ends() {
    each_layout_with(blocks(24), |w| {
        let endpoint = "ds/ds1-2/1";
        w.order_cards(CardOrder::Delay(100));
        for _ in 0..5 {
            let map = long_map('1');
            let request: &[&str] = &["C: A1", "M: recvonly", "X: 7", &map, "N: ca2@ca2.example.net:2728"];
            let slow = w.command("CRCX", endpoint, request);
            w.run_for(50 * MS);
            assert_eq!(code(w, "DLCX", endpoint, &[]), 250);
            assert_eq!(w.final_of(slow).code, Some(407));
            let pair = w.command("CRCX", endpoint, &[request, &["Z2: ds/ds1-1/9@tgw.example.net"]].concat());
            w.run_for(150 * MS);
            assert_eq!(code(w, "DLCX", endpoint, &[]), 250);
            assert_eq!(w.final_of(pair).code, Some(407));
        }
        w.order_cards(CardOrder::Delay(0));
        w.run_for(S);
        assert_eq!(code(w, "RQNT", endpoint, &["X: 1", &long_map('2'), "T: D/[0-9]", "R: D/[0-9](D)"]), 200);
        assert_eq!(own_commands(w, "NTFY").iter().filter(|(to, _)| *to == agent(2, 2728)).count(), 0);
    });
}
