//! Responses and their codes (RSL, RTN).

use super::{MS, S, agent, block, code, create, each_layout, own_commands, raw, setup};
use tollgate::proto::trunk::{CardOrder, Defect};
use tollgate::sim::{Setup, World};

/// G-RSL-02: responses to our commands are known by their id, wherever they come from.
#[test]
fn responses_are_known_by_their_id() {
    for layout in super::LAYOUTS {
        let mut w = World::new(Setup { told: false, ..setup(layout, 1) }, |_, _| {});
        w.run_for(S);
        let (_, restart) = own_commands(&w, "RSIP").remove(0);
        w.take_mail();
        w.send_from(agent(2, 40000), 1, format!("200 {} OK\r\n", restart.id).as_bytes());
        w.run_for(100 * S);
        assert!(own_commands(&w, "RSIP").is_empty(), "{layout:?}");
        assert_eq!(raw(&mut w, b"RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 1\r\n").len(), 1);
    }
}

/// G-RSL-04: codes we do not know count as their class.
#[test]
fn unknown_codes_count_as_their_class() {
    for (answer, told_again, at) in
        [("299 %", false, 1), ("333 % x\r\nN: ca2@ca2.example.net", true, 2), ("499 %", true, 1), ("777 %", false, 1)]
    {
        let mut w = World::new(Setup { told: false, ..setup(super::Layout::Two, 1) }, |_, _| {});
        w.run_for(S);
        let (to, restart) = own_commands(&w, "RSIP").remove(0);
        w.take_mail();
        w.send_from(to, 0, format!("{}\r\n", answer.replace('%', &restart.id.to_string())).as_bytes());
        w.run_for(10 * S);
        let again = own_commands(&w, "RSIP");
        assert_eq!(!again.is_empty(), told_again, "{answer}");
        assert!(again.iter().all(|(to, command)| to.ip() == agent(at, 0).ip() && command.id != restart.id), "{answer}");
        // 2xx confirmed it, 7xx stopped it: then a command starts it again.
        if !told_again {
            raw(&mut w, b"RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 1\r\n");
            assert_eq!(own_commands(&w, "RSIP").is_empty(), answer.starts_with('2'), "{answer}");
        }
    }
}

/// G-RTN-01, G-RTN-02, G-RTN-04, G-MSG-03: each situation and its code.
#[test]
fn each_situation_has_its_code() {
    each_layout(|w| {
        let crcx: &[&str] = &["C: A1", "M: recvonly"];
        // No such endpoint, nothing to choose from, verbs a gateway does not get.
        assert_eq!(code(w, "CRCX", "ds/ds1-9/1", crcx), 500);
        assert_eq!(code(w, "CRCX", "ds/zz/$", crcx), 500);
        for verb in ["XPER", "NTFY", "RSIP", "MESG", "ABCD"] {
            assert_eq!(code(w, verb, "ds/ds1-2/1", &[]), 504, "{verb}");
        }
        // Taken out by management.
        block(w, "ds/ds1-3/1", true);
        assert_eq!(code(w, "CRCX", "ds/ds1-3/1", crcx), 501);
        // The card has nothing left: a temporary matter.
        w.order_cards(CardOrder::Refuse(1));
        assert_eq!(code(w, "CRCX", "ds/ds1-2/1", crcx), 403);
        w.order_cards(CardOrder::Refuse(0));
        // All in use.
        for n in 1..=24 {
            create(w, &format!("ds/ds1-4/{n}"), "B1");
        }
        assert_eq!(code(w, "CRCX", "ds/ds1-4/$", crcx), 410);
        // The span has failed; the agent was told or will be in a moment.
        let facility = w.facility("ds/ds1-5");
        w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present: true, at_once: true });
        w.run_for(10 * MS);
        assert_eq!(code(w, "CRCX", "ds/ds1-5/1", crcx), 531);
        w.run_for(S);
        assert_eq!(code(w, "CRCX", "ds/ds1-5/1", crcx), 501);
        assert_eq!(code(w, "CRCX", "ds/ds1-5/$", crcx), 410);
    });
}

/// G-RTN-04: 409 when no further transaction can be remembered; deletions have a reserve.
#[test]
fn a_full_history_is_409() {
    for layout in super::LAYOUTS {
        let mut w = World::new(setup(layout, 1), |plan, _| plan.limits.history_entries = 32);
        while code(&mut w, "AUEP", "ds/ds1-2/2", &[]) == 200 {}
        assert_eq!(code(&mut w, "CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly"]), 409);
        assert_eq!(code(&mut w, "DLCX", "ds/ds1-2/1", &[]), 250);
    }
}

/// Appendix A, responseString: with `pad_responses` final responses are a multiple of 16 long, by blanks behind the comment only, and a
/// repeat gets the same bytes.
#[test]
fn padded_responses_differ_in_blanks_only() {
    for layout in super::LAYOUTS {
        let told = |padded: bool| {
            let mut w = World::new(setup(layout, 1), |_, settings| settings.agents[0].pad_responses = padded);
            let commands = [
                "CRCX 70 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\n",
                "AUEP 71 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nF: I, N\r\n",
                "AUEP 72 ds/ds1-99/1@tgw.example.net MGCP 1.0\r\n",
                "DLCX 73 ds/ds1-2/*@tgw.example.net MGCP 1.0\r\n",
                "DLCX 73 ds/ds1-2/*@tgw.example.net MGCP 1.0\r\n",
            ];
            commands.map(|command| {
                w.take_mail();
                w.send_from(agent(1, 2727), 0, command.as_bytes());
                w.run_for(100 * MS);
                String::from_utf8(w.mail()[0].bytes.clone()).unwrap()
            })
        };
        let (plain, padded) = (told(false), told(true));
        for (plain, padded) in plain.iter().zip(&padded) {
            assert!(padded.len() % 16 == 0 && padded.len() - plain.len() < 16, "{padded:?}");
            let (first, rest) = padded.split_once("\r\n").unwrap();
            assert_eq!(format!("{}\r\n{rest}", first.trim_end()), *plain);
        }
        assert_eq!(padded[3], padded[4]);
    }
}
