//! How agents want to be spoken to: each switch of `docs/decisions/interop.md` off and on.

use super::*;
use tollgate::proto::plan::{Manners, Provisional, Version};
use tollgate::proto::trunk::CardOrder;
use tollgate::sim::Reply;

/// Runs a dialogue in every layout with the first agent's manners changed.
fn with(change: impl Fn(&mut Manners), dialogue: impl Fn(&mut World)) {
    each_layout_with(|_, settings| change(&mut settings.agents[0].manners), dialogue);
}

/// Sends a command with this version and takes the code of the answer.
fn version(world: &mut World, version: &str) -> Option<u16> {
    let id = fresh_id(world);
    let text = format!("AUEP {id} ds/ds1-1/1@tgw.example.net {version}\r\n");
    raw(world, text.as_bytes()).first().and_then(|reply| reply.code)
}

// G-SYN-05
#[test]
fn a_profile_is_taken_from_agents_that_have_it() {
    with(
        |_| {},
        |w| {
            assert_eq!((version(w, "MGCP 1.0"), version(w, "MGCP 1.0 TGCP 1.0")), (Some(200), Some(528)));
            assert_eq!((version(w, "MGCP 1.0 NCS 1.0"), version(w, "MGCP 0.1")), (Some(528), Some(528)));
        },
    );
    with(
        |manners| manners.version = Version::Tgcp,
        |w| {
            assert_eq!(
                (version(w, "MGCP 1.0"), version(w, "MGCP 1.0 TGCP 1.0"), version(w, "mgcp 1.0 tgcp 1.0")),
                (Some(200), Some(200), Some(200))
            );
            assert_eq!((version(w, "MGCP 1.0 NCS 1.0"), version(w, "MGCP 0.1 TGCP 1.0")), (Some(528), Some(528)));
        },
    );
    with(
        |manners| manners.version = Version::Any,
        |w| {
            assert_eq!((version(w, "MGCP 1.0 NCS 1.0"), version(w, "MGCP 1.0 whatever it is")), (Some(200), Some(200)));
            assert_eq!(version(w, "MGCP 2.0"), Some(528));
        },
    );
}

// G-SYN-05
#[test]
fn the_gateway_writes_the_profile_to_agents_that_have_it() {
    for (profile, behind) in [(Version::Mgcp, "MGCP 1.0"), (Version::Any, "MGCP 1.0"), (Version::Tgcp, "MGCP 1.0 TGCP 1.0")] {
        with(
            |manners| manners.version = profile,
            |w| {
                assert_eq!(code(w, "RQNT", "ds/ds1-1/1", &["X: 1", "R: D/5(N)"]), 200);
                create(w, "ds/ds1-2/1", "A1");
                w.take_mail();
                w.occur("ds/ds1-1/1", "D/5", None);
                block(w, "ds/ds1-2/*", true);
                for verb in ["NTFY", "DLCX", "RSIP"] {
                    let all = own_commands(w, verb);
                    assert!(!all.is_empty() && all.iter().all(|(_, command)| command.line.ends_with(behind)), "{verb}: {all:?}");
                }
                block(w, "ds/ds1-2/*", false);
            },
        );
    }
}

/// The messages of each datagram since the mail was taken last, by first word.
fn datagrams(world: &World) -> Vec<Vec<String>> {
    let words = |reply: Reply| reply.line.split(' ').next().unwrap_or_default().to_owned();
    world.mail().iter().map(|mail| Reply::all(&mail.bytes).into_iter().map(words).collect()).collect()
}

// G-PIG-01, G-QUA-13, G-QUA-14, G-RST-03
#[test]
fn messages_share_a_datagram_or_follow_each_other() {
    for piggyback in [true, false] {
        let mut w = World::new(Setup { told: false, ..setup(Layout::Two, 1) }, |_, settings| {
            settings.agents[0].manners.piggyback = piggyback;
        });
        // The journal expects a restart that another core announces behind a separator only.
        w.without_journal();
        let request = "X: 1\r\nR: D/[1-9](N)\r\nQ: process,loop\r\n";
        let id = fresh_id(&w);
        w.send_from(agent(1, 2727), 0, format!("RQNT {id} ds/ds1-1/1@tgw.example.net MGCP 1.0\r\n{request}").as_bytes());
        w.run_for(100 * MS);
        let came = datagrams(&w);
        if piggyback {
            assert!(came.contains(&vec!["RSIP".to_owned(), "200".to_owned()]), "the restart in front: {came:?}");
        } else {
            assert!(came.iter().all(|messages| messages.len() == 1), "{came:?}");
            let all = came.concat();
            let answered = all.iter().position(|word| word == "200").unwrap();
            assert!(all[..answered].contains(&"RSIP".to_owned()), "the restart first: {all:?}");
        }
        restarts::confirm_all(&mut w);
        // Two Notify commands, none answered: the second goes behind the first, or waits until that is answered.
        w.answer_own(false);
        w.occur("ds/ds1-1/1", "D/5", None);
        assert_eq!(code(&mut w, "RQNT", "ds/ds1-1/1", &["X: 2", "R: D/6(N)"]), 200);
        w.take_mail();
        w.occur("ds/ds1-1/1", "D/6", None);
        w.run_for(50 * MS);
        let notifies = datagrams(&w);
        assert_eq!(notifies.contains(&vec!["NTFY".to_owned(); 2]), piggyback, "{notifies:?}");
        let told = |w: &World| own_commands(w, "NTFY").into_iter().any(|(_, notify)| notify.get("X") == Some("2"));
        assert_eq!(told(&w), piggyback, "{notifies:?}");
        w.answer_own(true);
        w.run_for(10 * S);
        assert!(told(&w));
        w.check_quiet();
    }
}

// G-PRV-01, G-ACK-06
#[test]
fn what_takes_long_is_answered_for_the_time_being_or_not() {
    for (provisional, codes, asks) in
        [(Provisional::Confirmed, &[100, 200][..], true), (Provisional::Plain, &[100, 200], false), (Provisional::Off, &[200], false)]
    {
        with(
            |manners| manners.provisional = provisional,
            |w| {
                // The journal knows the RFC's way only.
                w.without_journal();
                w.order_cards(CardOrder::Delay(500));
                w.take_mail();
                let id = fresh_id(w);
                w.send_from(
                    agent(1, 2727),
                    0,
                    format!("CRCX {id} ds/ds1-1/1@tgw.example.net MGCP 1.0\r\nC: A1\r\nM: recvonly\r\n").as_bytes(),
                );
                w.run_for(2 * S);
                let all: Vec<Reply> = replies(w).into_iter().filter(|reply| reply.code.is_some()).collect();
                let mut found: Vec<u16> = all.iter().filter_map(|reply| reply.code).collect();
                found.dedup();
                assert_eq!(found, codes, "{provisional:?}");
                assert_eq!(all.last().unwrap().get("K").is_some(), asks, "{provisional:?}: {all:?}");
                w.order_cards(CardOrder::Delay(0));
                // What asked for it gets its acknowledgement.
                if asks {
                    w.send_from(agent(1, 2727), 0, format!("000 {id}\r\n").as_bytes());
                }
            },
        );
    }
}

// G-SDP-01
#[test]
fn descriptions_are_full_or_short() {
    for (full, lines) in [(true, &["v=0", "o=", "s=-", "c=IN", "t=0", "m=audio"][..]), (false, &["v=0", "c=IN", "m=audio"])] {
        with(
            |manners| manners.full_descriptions = full,
            |w| {
                let made = w.ask("CRCX", "ds/ds1-1/1", &["C: A1", "M: recvonly"]);
                let id = connection(&made);
                let audited = w.ask("AUCX", "ds/ds1-1/1", &[&format!("I: {id}"), "F: LC"]);
                for description in [&made.description, &audited.description] {
                    let kept: Vec<&str> = description.lines().filter(|line| !line.starts_with("a=")).collect();
                    let fits = kept.len() == lines.len() && kept.iter().zip(lines).all(|(line, start)| line.starts_with(start));
                    assert!(fits && description.contains("a=ptime") == full, "{description}");
                }
            },
        );
    }
}

// G-LCO-10..12
#[test]
fn options_that_cannot_be_had_are_refused_or_passed_over() {
    let cases = [("L: zz:1, a:PCMU", 541), ("L: xy/z:1, a:PCMU", 518), ("L: k:clear:abc, a:PCMU", 532), ("L: r:g, a:PCMU", 532)];
    for ignores in [false, true] {
        with(
            |manners| manners.ignores_options = ignores,
            |w| {
                for (options, refusal) in cases {
                    let made = w.ask("CRCX", "ds/ds1-1/1", &["C: A1", "M: recvonly", options]);
                    let wanted = if ignores { 200 } else { refusal };
                    assert_eq!(made.code, Some(wanted), "{options}");
                    if ignores {
                        let id = connection(&made);
                        let kept = w.ask("AUCX", "ds/ds1-1/1", &[&format!("I: {id}"), "F: L"]);
                        assert_eq!(kept.get("L"), Some("a:PCMU"), "{options}: what counts is kept");
                        assert_eq!(code(w, "DLCX", "ds/ds1-1/1", &["C: A1", &format!("I: {id}")]), 250);
                    }
                }
                // Nobody passes over what is no option at all, or what media needs.
                for (wrong, refusal) in [("L: a", 510), ("L: nt:ATM", 532), ("L: x+y:1", 541)] {
                    let found = code(w, "CRCX", "ds/ds1-1/1", &["C: A1", "M: recvonly", wrong]);
                    assert!(found >= 500 && (found == refusal || wrong != "L: nt:ATM"), "{wrong}: {found}");
                }
            },
        );
    }
}
