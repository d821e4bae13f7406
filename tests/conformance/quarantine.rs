//! Notification state, quarantine and the order of Notify commands (QUA, PIG).

use super::{MS, S, audit, block, code, each_layout, each_layout_with, notified, own_commands, snapshot, told};
use std::time::Duration;
use tollgate::proto::base::Counter;
use tollgate::sim::{Reply, World};

const E: &str = "ds/ds1-2/1";

fn request(w: &mut World, parameters: &[&str]) {
    assert_eq!(code(w, "RQNT", E, parameters), 200, "{parameters:?}");
}

fn occur(w: &mut World, events: &[&str]) {
    events.iter().for_each(|event| w.occur(E, event, None));
}

/// Answers the Notify commands that came so far.
fn answer(w: &mut World, code: u16) {
    for (to, notify) in own_commands(w, "NTFY") {
        w.send_from(to, 0, format!("{code} {} answer\r\n", notify.id).as_bytes());
    }
    w.run_for(20 * MS);
    w.take_mail();
}

/// The datagrams with a Notify in them that came so far: the request identifier of each.
fn datagrams(w: &World) -> Vec<Vec<String>> {
    let notifies = |bytes: &[u8]| {
        let all = Reply::all(bytes).into_iter().filter(|message| message.line.starts_with("NTFY"));
        all.map(|notify| notify.get("X").unwrap().to_owned()).collect::<Vec<_>>()
    };
    w.mail().iter().map(|mail| notifies(&mail.bytes)).filter(|list| !list.is_empty()).collect()
}

/// G-QUA-02, G-QUA-03, G-QUA-04, G-QUA-07, G-QUA-08, G-QUA-21: until the response and, in step mode, until the next request, events wait:
/// those of R and of the latest T, whatever their action; others are lost.
#[test]
fn events_wait_for_the_next_request() {
    each_layout(|w| {
        assert_eq!(audit(w, E, "B/NS"), "o");
        request(w, &["X: 1", "R: T/co1(N)", "T: T/nm"]);
        request(w, &["X: 2", "R: T/co1(N),T/co2(I)"]);
        assert_eq!(audit(w, E, "B/NS"), "o");
        w.answer_own(false);
        w.take_mail();
        occur(w, &["T/co1", "T/co2", "T/nm", "T/mm"]);
        assert_eq!((audit(w, E, "B/NS"), audit(w, E, "O"), datagrams(w)), ("ns".into(), "T/co1".into(), vec![vec!["2".to_owned()]]));
        answer(w, 200);
        assert_eq!((audit(w, E, "B/NS"), audit(w, E, "O")), ("ls".into(), String::new()));
        occur(w, &["T/co1"]);
        w.run_for(S);
        assert_eq!(told(w), "");
        w.answer_own(true);
        request(w, &["X: 3", "R: T/co2(A),T/nm(N),T/mm(N),T/co1(N)"]);
        w.run_for(20 * MS);
        assert_eq!(notified(w), [("3".to_owned(), "T/co2,T/nm".to_owned())]);
        // What follows the event that triggered stays.
        request(w, &["X: 4", "R: T/mm(N),T/co1(N)"]);
        w.run_for(20 * MS);
        assert_eq!(notified(w), [("4".to_owned(), "T/co1".to_owned())]);
        // What was accumulated is gone with its notification, too.
        request(w, &["X: 5", "R: T/co2(A),T/co1(N)"]);
        occur(w, &["T/co2", "T/co1"]);
        w.run_for(20 * MS);
        assert_eq!(notified(w), [("5".to_owned(), "T/co2,T/co1".to_owned())]);
        assert_eq!((audit(w, E, "B/NS"), audit(w, E, "O")), ("ls".into(), String::new()));
        request(w, &["X: 6"]);
        assert_eq!(audit(w, E, "B/NS"), "o");
    });
}

/// G-QUA-05: more events than quarantine holds are counted and told.
#[test]
fn an_overflow_of_the_quarantine_is_an_event() {
    each_layout(|w| {
        request(w, &["X: 1", "R: T/co1(N),T/co2(N)"]);
        occur(w, &["T/co1"]);
        assert_eq!(told(w), "T/co1");
        for _ in 0..37 {
            occur(w, &["T/co2"]);
        }
        assert_eq!(w.counter(Counter::QuarantineLost), 5);
        request(w, &["X: 2", "R: T/co2(A),B/qbo(N)"]);
        w.run_for(20 * MS);
        let events = told(w);
        assert!(events.starts_with("T/co2,T/co2") && events.ends_with(",B/qbo"), "{events}");
        assert_eq!(events.split(',').count(), 33);
    });
}

/// G-QUA-06: any final response ends the notification state, a provisional one does not, and the events are not sent again.
#[test]
fn any_final_response_ends_the_notification_state() {
    each_layout(|w| {
        for code in [200, 400, 500] {
            request(w, &["X: 1", "R: T/co1(N)", "Q: discard"]);
            w.answer_own(false);
            w.take_mail();
            occur(w, &["T/co1"]);
            answer(w, 100);
            assert_eq!(audit(w, E, "B/NS"), "ns");
            w.run_for(6 * S);
            answer(w, code);
            assert_eq!(audit(w, E, "B/NS"), "ls", "{code}");
            w.run_for(30 * S);
            assert_eq!(told(w), "", "{code}");
            w.answer_own(true);
        }
        assert_eq!(w.counter(Counter::NotifiesRefused), 2);
    });
}

/// G-QUA-09, G-QUA-10, G-QUA-11: in loop mode what waited is processed after each response; the mode is of one request.
#[test]
fn loop_mode_notifies_again_and_again() {
    each_layout(|w| {
        request(w, &["X: 1", "Q: loop", "R: T/co1(N),T/co2(N),T/nm(A)"]);
        w.answer_own(false);
        w.take_mail();
        occur(w, &["T/co1", "T/nm", "T/co2", "T/co1"]);
        assert_eq!(notified(w), [("1".to_owned(), "T/co1".to_owned())]);
        w.run_for(S);
        answer(w, 200);
        // The first was answered, the second is out, the third waits.
        w.run_for(6 * S);
        assert_eq!(told(w), "T/nm,T/co2");
        w.run_for(5 * S);
        w.answer_own(true);
        w.run_for(10 * S);
        let all = notified(w);
        assert_eq!(all.last(), Some(&("1".to_owned(), "T/co1".to_owned())), "{all:?}");
        assert_eq!(audit(w, E, "B/NS"), "o");
        occur(w, &["T/co2"]);
        assert_eq!(told(w), "T/co2");
        request(w, &["X: 2", "Q: discard, loop"]);
        assert_eq!(audit(w, E, "Q"), "loop,discard");
        request(w, &["X: 3"]);
        assert_eq!(audit(w, E, "Q"), "step,process");
        assert_eq!(code(w, "RQNT", E, &["X: 4", "Q: foo"]), 508);
    });
}

/// G-QUA-12, G-QUA-13, G-PIG-03: a request is taken while a Notify is out; until that is answered it stands in front of every copy of the
/// next one.
#[test]
fn unanswered_notifies_stand_in_front_of_new_ones() {
    each_layout(|w| {
        w.answer_own(false);
        request(w, &["X: 1", "R: T/co1(N)"]);
        occur(w, &["T/co1"]);
        let first = own_commands(w, "NTFY")[0].1.bytes.clone();
        request(w, &["X: 2", "R: T/co2(N)"]);
        assert_eq!(audit(w, E, "B/NS"), "o");
        w.take_mail();
        w.run_for(S);
        assert!(own_commands(w, "NTFY").iter().all(|(_, notify)| notify.bytes == first) && !datagrams(w).is_empty());
        w.take_mail();
        occur(w, &["T/co2"]);
        request(w, &["X: 3", "R: T/nm(N)"]);
        occur(w, &["T/nm"]);
        w.run_for(2 * S);
        let seen = datagrams(w);
        let one_two_three = ["1", "2", "3"].map(str::to_owned);
        assert!(seen.iter().all(|list| one_two_three.starts_with(list)), "{seen:?}");
        assert!(seen.iter().any(|list| list.len() == 2) && seen.iter().any(|list| list.len() == 3), "{seen:?}");
        // The second one is answered: the first still stands in front of the third.
        let all = own_commands(w, "NTFY");
        let (to, second) = all.iter().find(|(_, notify)| notify.get("X") == Some("2")).unwrap();
        w.send_from(*to, 0, format!("200 {} OK\r\n", second.id).as_bytes());
        w.run_for(5 * MS);
        w.take_mail();
        w.run_for(3 * S);
        let seen = datagrams(w);
        assert!(seen.iter().all(|list| *list == ["1"] || *list == ["1", "3"]), "{seen:?}");
        w.answer_own(true);
        // The last copy leaves just before T-MAX.
        w.run_for(20 * S);
        assert_eq!(audit(w, E, "B/NS"), "ls");
    });
}

/// G-QUA-14: when no more of them can stand in front, the next one waits until one is answered.
#[test]
fn a_notify_waits_for_room_in_front() {
    each_layout(|w| {
        w.answer_own(false);
        for x in 1..=5 {
            request(w, &[&format!("X: {x}"), "R: T/co1(N)"]);
            occur(w, &["T/co1"]);
        }
        w.run_for(2 * S);
        assert!(datagrams(w).iter().flatten().all(|x| x != "5"));
        assert_eq!((audit(w, E, "B/NS"), audit(w, E, "O")), ("ns".into(), "T/co1".into()));
        w.answer_own(true);
        w.run_for(10 * S);
        assert_eq!(notified(w).last(), Some(&("5".to_owned(), "T/co1".to_owned())));
        assert_eq!(audit(w, E, "B/NS"), "ls");
    });
}

/// G-QUA-15, G-QUA-16, G-DMP-11: what was not notified yet is processed by the new request, or discarded.
#[test]
fn a_new_request_processes_or_discards() {
    each_layout(|w| {
        for (handling, expected) in [("process", "T/co2"), ("discard", "")] {
            request(w, &["X: 1", "Q: discard", "R: T/co1(N)", "T: T/co2,T/nm"]);
            occur(w, &["T/co1"]);
            assert_eq!(told(w), "T/co1");
            occur(w, &["T/co1", "T/co2", "T/nm"]);
            request(w, &["X: 2", &format!("Q: {handling}"), "R: T/co2(N)"]);
            w.run_for(20 * MS);
            assert_eq!(told(w), expected);
        }
        for (handling, expected, left) in [("process", "D/1", ""), ("discard", "", "")] {
            request(w, &["X: 1", "Q: discard", "R: D/[0-9](A)"]);
            occur(w, &["D/1", "D/2"]);
            assert_eq!(audit(w, E, "O"), "D/1,D/2");
            request(w, &["X: 2", &format!("Q: {handling}"), "R: D/[0-9](N)"]);
            w.run_for(20 * MS);
            assert_eq!((told(w), audit(w, E, "O")), (expected.to_owned(), left.to_owned()));
        }
    });
}

/// G-QUA-20: a full list of observed events is an event; the events after it are lost.
#[test]
fn a_full_list_is_an_event() {
    each_layout(|w| {
        for (list, full) in [("D/[0-9](A),T/co1(N),B/oef(N)", true), ("D/[0-9](A),T/co1(N)", false)] {
            request(w, &["X: 1", "Q: discard", &format!("R: {list}")]);
            for _ in 0..33 {
                occur(w, &["D/1"]);
            }
            let events = told(w);
            assert_eq!(events.ends_with(",B/oef"), full, "{events}");
            if !full {
                occur(w, &["T/co1"]);
                let events = told(w);
                assert!(events.split(',').count() == 33 && events.ends_with(",T/co1"), "{events}");
            }
        }
    });
}

/// G-QUA-23, G-TXN-02: a request that fails leaves everything as it was, running signals included.
#[test]
fn a_failing_request_changes_nothing() {
    each_layout(|w| {
        let all = ["X: 1", "R: T/co1(A),T/oc(N)", "S: T/bz(to=5000)", "T: T/co2", "D: (xx|1T)", "Q: loop", "B/PR: G/ft(N)"];
        request(w, &[&all[..], &["N: ca2@ca2.example.net"]].concat());
        occur(w, &["G/mt"]);
        let before = snapshot(w, E);
        w.take_mail();
        let other = ["X: 2", "S: G/cg", "T: T/nm", "D: 5", "Q: step", "B/PR:", "N: ca1@ca1.example.net", "R: T/co2,T/nosuch"];
        assert_eq!(code(w, "RQNT", E, &other), 522);
        assert_eq!(snapshot(w, E), before);
        w.run_for(5 * S);
        assert_eq!(told(w), "T/oc(T/bz)");
    });
}

/// G-NTF-05: a Notify that nobody answers is repeated, and then the endpoint is disconnected; its notification state ends with that
/// (G-QUA-18, G-QUA-19).
#[test]
fn a_lost_notify_disconnects_the_endpoint() {
    each_layout(|w| {
        w.without_journal();
        request(w, &["X: 1", "R: T/co1(N),T/co2(N)"]);
        w.answer_own(false);
        w.take_mail();
        occur(w, &["T/co1", "T/co2"]);
        w.run_for(60 * S);
        assert!(own_commands(w, "NTFY").len() > 5);
        assert_eq!(w.counter(Counter::NotifiesLost), 1);
        assert_eq!(audit(w, E, "B/NS"), "ns");
        w.answer_own(true);
        w.take_mail();
        w.run_for(60 * S);
        assert!(own_commands(w, "RSIP").iter().any(|(_, restart)| restart.get("RM") == Some("disconnected")));
        assert_eq!((told(w), audit(w, E, "B/NS")), (String::new(), "ls".into()));
        request(w, &["X: 2", "R: T/co2(N)"]);
        w.run_for(20 * MS);
        assert_eq!(told(w), "T/co2");
    });
}

/// G-DIS-13: what a request makes a disconnected endpoint notify is kept, and comes when the agent knows of the disconnect.
#[test]
fn a_disconnected_endpoint_keeps_its_notify() {
    each_layout(|w| {
        w.without_journal();
        request(w, &["X: 1", "R: T/co1(N),T/co2(N)"]);
        w.answer_own(false);
        occur(w, &["T/co1", "T/co2"]);
        w.run_for(25 * S);
        assert_eq!(w.counter(Counter::NotifiesLost), 1);
        w.take_mail();
        request(w, &["X: 2", "R: T/co2(N)"]);
        w.run_for(100 * MS);
        assert_eq!((datagrams(w).len(), audit(w, E, "B/NS")), (0, "ns".into()));
        w.answer_own(true);
        w.run_for(5 * S);
        assert_eq!(notified(w), [("2".to_owned(), "T/co2".to_owned())]);
        assert_eq!(audit(w, E, "B/NS"), "ls");
    });
}

/// G-DIS-06, G-DIS-13: a Notify behind one that is lost is not sent before the disconnect is told, and is sent after it.
#[test]
fn a_notify_behind_a_lost_one_comes_after_the_disconnect() {
    each_layout(|w| {
        w.without_journal();
        w.answer_own(false);
        request(w, &["X: 1", "R: T/co1(N)"]);
        occur(w, &["T/co1"]);
        w.run_for(5 * S);
        request(w, &["X: 2", "R: T/co2(N)"]);
        occur(w, &["T/co2"]);
        until_one_is_lost(w);
        w.take_mail();
        w.answer_own(true);
        w.run_for(30 * S);
        let all: Vec<_> = w.mail().iter().flat_map(|mail| Reply::all(&mail.bytes)).filter(|message| message.code.is_none()).collect();
        assert!(all[0].line.starts_with("RSIP") && all[0].get("RM") == Some("disconnected"), "{all:?}");
        assert_eq!(notified(w), [("2".to_owned(), "T/co2".to_owned())]);
        assert_eq!((audit(w, E, "B/NS"), w.counter(Counter::NotifiesLost)), ("ls".into(), 1));
    });
}

/// Three Notify commands, one after another in so much time, to an agent that answers none.
fn three_unanswered(w: &mut World, pause: Duration) {
    for x in 1..=3 {
        request(w, &[&format!("X: {x}"), "R: T/co1(N)"]);
        occur(w, &["T/co1"]);
        w.run_for(pause);
    }
}

fn until_one_is_lost(w: &mut World) {
    while w.counter(Counter::NotifiesLost) == 0 {
        w.run_for(S);
    }
}

/// The datagram of the third one had those before it in front.
fn answer_the_third(w: &mut World) {
    let (to, third) = own_commands(w, "NTFY").into_iter().find(|(_, notify)| notify.get("X") == Some("3")).unwrap();
    w.send_from(to, 0, format!("200 {} OK\r\n", third.id).as_bytes());
}

/// G-DIS-13, G-QUA-13: all that stood behind a lost Notify comes when the agent knows of the disconnect, the oldest first, in front of
/// what happens then; only the one that T-MAX was over for is lost.
#[test]
fn all_that_stood_behind_a_lost_notify_comes_in_its_order() {
    each_layout(|w| {
        w.without_journal();
        w.answer_own(false);
        for x in 1..=3 {
            request(w, &[&format!("X: {x}"), "R: T/co1(N),T/oc(N)"]);
            occur(w, &[&format!("T/oc({x})")]);
            w.run_for(4 * S);
        }
        until_one_is_lost(w);
        // Held, and not repeated, for however long it takes.
        w.run_for(S);
        w.take_mail();
        w.run_for(100 * S);
        assert_eq!(datagrams(w).len(), 0);
        request(w, &["X: 4", "R: T/oc(N)"]);
        occur(w, &["T/oc(4)"]);
        w.take_mail();
        w.answer_own(true);
        w.run_for(60 * S);
        let told = |x: u32| (x.to_string(), format!("T/oc({x})"));
        assert_eq!(notified(w), [told(2), told(3), told(4)]);
        assert_eq!((audit(w, E, "B/NS"), w.counter(Counter::NotifiesLost)), ("ls".into(), 1));
    });
}

/// G-DIS-13: what is held is answered by an agent that has it already, and is not told again.
#[test]
fn a_held_notify_that_is_answered_late_is_not_sent_again() {
    each_layout(|w| {
        w.without_journal();
        w.answer_own(false);
        w.take_mail();
        three_unanswered(w, 4 * S);
        until_one_is_lost(w);
        answer_the_third(w);
        w.run_for(S);
        w.take_mail();
        w.answer_own(true);
        w.run_for(60 * S);
        assert_eq!((told(w), audit(w, E, "B/NS")), (String::new(), "ls".into()));
    });
}

/// G-QUA-13: when a later Notify was answered, an earlier one that stood behind a lost one is not told after it.
#[test]
fn what_the_agent_is_past_is_not_told_again() {
    each_layout(|w| {
        w.without_journal();
        w.answer_own(false);
        w.take_mail();
        three_unanswered(w, 2 * S);
        answer_the_third(w);
        until_one_is_lost(w);
        w.take_mail();
        w.answer_own(true);
        w.run_for(60 * S);
        assert_eq!((told(w), w.counter(Counter::NotifiesLost)), (String::new(), 2));
    });
}

/// G-RST-12: what is held is not said of an endpoint that has restarted since.
#[test]
fn a_held_notify_ends_with_a_restart() {
    each_layout(|w| {
        w.without_journal();
        w.answer_own(false);
        three_unanswered(w, 4 * S);
        until_one_is_lost(w);
        block(w, "ds/ds1-2/*", true);
        assert_eq!(w.counter(Counter::NotifiesLost), 3);
        block(w, "ds/ds1-2/*", false);
        w.take_mail();
        w.answer_own(true);
        w.run_for(60 * S);
        assert_eq!((told(w), audit(w, E, "B/NS")), (String::new(), "o".into()));
    });
}

/// G-QUA-14: to an agent that takes one message a datagram nothing is sent behind an unanswered Notify.
#[test]
fn without_piggybacking_one_notify_waits_for_the_other() {
    each_layout_with(
        |_, settings| settings.agents[0].manners.piggyback = false,
        |w| {
            w.answer_own(false);
            request(w, &["X: 1", "R: T/co1(N)"]);
            occur(w, &["T/co1"]);
            request(w, &["X: 2", "R: T/co2(N)"]);
            occur(w, &["T/co2"]);
            w.run_for(2 * S);
            assert!(!datagrams(w).is_empty() && datagrams(w).iter().all(|list| *list == ["1"]), "{:?}", datagrams(w));
            assert_eq!(audit(w, E, "B/NS"), "ns");
            answer(w, 200);
            w.run_for(6 * S);
            assert!(!datagrams(w).is_empty() && datagrams(w).iter().all(|list| *list == ["2"]), "{:?}", datagrams(w));
            answer(w, 200);
            assert_eq!(audit(w, E, "B/NS"), "ls");
        },
    );
}
