//! Faults met in the field, replayed: each input of `tests/data/field-bugs` with the outcome its `.expect` file asks for, on one core and
//! on two. `docs/conformance/field-bugs.md` lists them all.

use super::{MS, S, connection, rsips};
use std::net::SocketAddr;
use std::time::Duration;
use tollgate::proto::base::Counter;
use tollgate::proto::package::ChannelKind;
use tollgate::proto::trunk::{Behaviour, CardOrder, Defect, FacilityKind, FacilityPlan, FarOrder, Hook};
use tollgate::sim::{Layout, Mail, Reply, Setup, World};

const AGENT: ([u8; 4], u16) = ([192, 0, 2, 1], 2727);

/// The gateway the inputs are written for: `ds/ds1-<1..28>/<1..24>`, on one core and on two.
fn gateways(scenario: impl Fn(&mut World)) {
    for layout in [Layout::One, Layout::Two] {
        let mut world = gateway(layout, true);
        scenario(&mut world);
        world.run_for(2 * S);
        world.check_quiet();
    }
}

fn gateway(layout: Layout, told: bool) -> World {
    let t1 = |unit| FacilityPlan { kind: FacilityKind::T1, unit, common_channel: false };
    World::new(Setup { facilities: (1..=28).map(t1).collect(), told, ..Setup::new(layout, 1) }, |_, _| {})
}

/// An input, with what earlier responses said put in.
fn input(name: &str, values: &[(&str, &str)]) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/field-bugs").join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text: String = bytes.into_iter().map(char::from).collect();
    for (name, value) in values {
        let swapped: String =
            value.chars().map(|c| if c.is_ascii_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() }).collect();
        text = text.replace(&format!("{{{name}}}"), value).replace(&format!("{{{name}:swapcase}}"), &swapped);
    }
    assert!(!text.contains("{I") && !text.contains("{Z") && !text.contains("{NTFY"), "a value is missing: {text}");
    text.chars().map(|c| c as u8).collect()
}

/// Sends an input and returns every message that came within a second.
fn play(w: &mut World, name: &str, values: &[(&str, &str)]) -> Vec<Reply> {
    let bytes = input(name, values);
    play_bytes(w, &bytes)
}

fn play_bytes(w: &mut World, bytes: &[u8]) -> Vec<Reply> {
    w.take_mail();
    w.send_from(SocketAddr::from(AGENT), 0, bytes);
    w.run_for(S);
    w.take_mail().iter().flat_map(|mail| Reply::all(&mail.bytes)).collect()
}

/// Sends an input that has one response.
fn one(w: &mut World, name: &str, values: &[(&str, &str)]) -> Reply {
    let mut replies = play(w, name, values);
    assert_eq!(replies.len(), 1, "{name}: {replies:?}");
    replies.remove(0)
}

fn code(w: &mut World, name: &str) -> u16 {
    one(w, name, &[]).code.unwrap()
}

#[test]
fn o01_short_datagrams_are_counted_and_do_no_harm() {
    gateways(|w| {
        let before = w.counter(Counter::DroppedUnreadable);
        let first = play(w, "O01-mgcp-parse.01.txt", &[]);
        assert!(first.is_empty() || first[0].code == Some(510), "{first:?}");
        assert_eq!(play(w, "O01-mgcp-parse.02.txt", &[]), []);
        assert_eq!(play_bytes(w, b""), []);
        let last = play(w, "O01-mgcp-parse.04.txt", &[]);
        assert_eq!(last, []);
        assert_eq!(w.counter(Counter::DroppedUnreadable) - before, 3);
    });
}

#[test]
fn o02_any_empty_line_separates_the_description() {
    gateways(|w| {
        for (name, endpoint) in [("O02-mgcp-parse.01.txt", "ds/ds1-1/1"), ("O02-mgcp-parse.02.txt", "ds/ds1-1/2")] {
            let made = one(w, name, &[]);
            assert!(made.code == Some(200) && made.description.contains("m=audio"), "{made:?}");
            let audited = w.ask("AUCX", endpoint, &[&format!("I: {}", connection(&made)), "F: RC"]);
            assert!(audited.description.contains("m=audio 40000 "), "{audited:?}");
        }
    });
}

/// Every datagram of every simulation is checked for it too.
#[test]
fn o03_every_line_of_a_reply_ends_in_crlf() {
    gateways(|w| {
        let made = one(w, "O03-mgcp-encode.txt", &[]);
        assert!(made.code == Some(200) && made.description.ends_with("\r\n"), "{made:?}");
    });
}

#[test]
fn o04_letter_case_does_not_matter() {
    gateways(|w| {
        let made = one(w, "O04-mgcp-parse.01.txt", &[]);
        assert_eq!((made.code, made.id), (Some(200), 1061));
        let id = connection(&made);
        assert_eq!(one(w, "O04-mgcp-parse.02.txt", &[("I1", &id)]).code, Some(200));
    });
}

#[test]
fn o05_identifiers_have_32_digits_at_most() {
    gateways(|w| assert!(matches!(code(w, "O05-mgcp-parse.txt"), 510 | 515)));
}

#[test]
fn o06_a_malformed_media_line_is_refused_and_leaves_nothing() {
    gateways(|w| {
        assert_eq!([code(w, "O06-mgcp-parse.01.txt"), code(w, "O06-mgcp-parse.02.txt")], [509, 509]);
        assert_eq!((w.connections().len(), w.media_open()), (0, 0));
    });
}

/// With the RestartInProgress that is out at the start in place of a NTFY.
#[test]
fn o07_a_reply_needs_no_comment() {
    for layout in [Layout::One, Layout::Two] {
        for name in ["O07-mgcp-parse.01.txt", "O07-mgcp-parse.02.txt"] {
            let mut w = gateway(layout, false);
            w.run_for(3 * S);
            let id = rsips(&w)[0].id.to_string();
            assert_eq!(play(&mut w, name, &[("NTFY-tx", &id)]), []);
            w.run_for(30 * S);
            assert_eq!(w.mail(), []);
            // The same for a Notify.
            w.answer_own(false);
            assert_eq!(w.ask("RQNT", "ds/ds1-1/1", &["X: F0", "R: T/co1(N)"]).code, Some(200));
            w.take_mail();
            w.occur("ds/ds1-1/1", "T/co1", None);
            w.run_for(5 * S);
            let told = notifies(&w.take_mail());
            assert!(told.len() > 1 && told.iter().all(|copy| copy == &told[0]), "it is repeated: {told:?}");
            assert_eq!(play(&mut w, name, &[("NTFY-tx", &told[0].id.to_string())]), []);
            w.run_for(30 * S);
            assert_eq!(w.mail(), []);
        }
    }
}

/// The Notify commands in these datagrams.
fn notifies(mail: &[Mail]) -> Vec<Reply> {
    mail.iter().flat_map(|mail| Reply::all(&mail.bytes)).filter(|message| message.line.starts_with("NTFY")).collect()
}

#[test]
fn o08_versions_are_told_apart() {
    gateways(|w| {
        let names = ["O08-mgcp-version.01.txt", "O08-mgcp-version.02.txt", "O08-mgcp-version.03.txt"];
        assert_eq!(names.map(|name| code(w, name)), [528, 200, 528]);
    });
}

#[test]
fn o09_blank_lists_are_empty_lists() {
    gateways(|w| {
        let made = one(w, "O09-mgcp-parse.01.txt", &[]);
        assert_eq!(made.code, Some(200));
        let id = connection(&made);
        assert_eq!(one(w, "O09-mgcp-parse.02.txt", &[("I1", &id)]).code, Some(250));
        assert_eq!(super::audit(w, "ds/ds1-1/13", "X"), "9A7");
    });
}

#[test]
fn o10_codecs_keep_their_order() {
    gateways(|w| {
        let made = one(w, "O10-mgcp-lco.txt", &[]);
        assert_eq!(made.code, Some(200));
        assert!(made.description.contains("RTP/AVP 8 0\r\n") && !made.description.contains(';'), "{made:?}");
    });
}

#[test]
fn o11_an_option_given_twice_is_refused() {
    gateways(|w| {
        assert!(matches!(code(w, "O11-mgcp-lco.txt"), 524 | 510 | 541));
        assert_eq!(w.connections().len(), 0);
    });
}

#[test]
fn o12_options_left_out_keep_their_value() {
    gateways(|w| {
        let made = one(w, "O12-mgcp-lco.01.txt", &[]);
        let id = connection(&made);
        assert_eq!(one(w, "O12-mgcp-lco.02.txt", &[("I1", &id)]).code, Some(200));
        let audited = one(w, "O12-mgcp-lco.03.txt", &[("I1", &id)]);
        let options = audited.get("L").unwrap();
        assert!(["e:off", "s:off", "a:PCMA", "p:10"].iter().all(|option| options.contains(option)), "{options}");
        assert_eq!(audited.get("M"), Some("sendrecv"));
    });
}

#[test]
fn o13_only_what_can_be_sent_is_offered() {
    gateways(|w| {
        let made = one(w, "O13-mgcp-codec.01.txt", &[]);
        assert!(made.description.contains("RTP/AVP 0\r\n"), "{made:?}");
        assert_eq!(code(w, "O13-mgcp-codec.02.txt"), 534);
    });
}

#[test]
fn o14_static_payload_types_need_no_rtpmap() {
    gateways(|w| {
        let made = one(w, "O14-mgcp-sdp.txt", &[]);
        assert!(made.code == Some(200) && made.description.contains("RTP/AVP 8\r\n"), "{made:?}");
    });
}

#[test]
fn o15_three_lines_of_description_are_enough() {
    gateways(|w| {
        let made = one(w, "O15-mgcp-sdp.txt", &[]);
        assert_eq!(made.code, Some(200));
        let kinds: Vec<char> = made.description.lines().filter_map(|line| line.chars().next()).collect();
        assert!(kinds.starts_with(&['v', 'o', 's', 'c', 't', 'm']), "{kinds:?}");
    });
}

#[test]
fn o16_a_critical_extension_is_refused() {
    gateways(|w| {
        assert_eq!(code(w, "O16-mgcp-ext.txt"), 511);
        assert_eq!(w.connections().len(), 0);
    });
}

#[test]
fn o17_modes_that_send_need_a_remote_description() {
    gateways(|w| {
        assert_eq!([code(w, "O17-mgcp-mode.01.txt"), code(w, "O17-mgcp-mode.02.txt")], [527, 527]);
        assert_eq!(w.connections().len(), 0);
        assert_eq!(code(w, "O17-mgcp-mode.03.txt"), 200);
    });
}

/// What the signalling shows of it: no packet is counted as sent.
#[test]
fn o18_nothing_is_sent_to_nowhere() {
    gateways(|w| {
        let made = one(w, "O18-mgcp-media.txt", &[]);
        assert_eq!(made.code, Some(200));
        w.run_for(10 * S);
        let audited = w.ask("AUCX", "ds/ds1-1/7", &[&format!("I: {}", connection(&made)), "F: P"]);
        assert!(audited.get("P").unwrap().contains("PS=0, OS=0"), "{audited:?}");
    });
}

#[test]
fn o19_each_error_has_its_code() {
    gateways(|w| {
        assert_eq!(code(w, "O19-mgcp-errors.01.txt"), 510);
        assert_eq!(code(w, "O19-mgcp-errors.02.txt"), 517);
        assert_eq!(code(w, "O19-mgcp-errors.03.txt"), 504);
        let unknown_info = code(w, "O19-mgcp-errors.04.txt");
        assert!(unknown_info == 200 || unknown_info >= 500, "{unknown_info}");
    });
}

#[test]
fn o20_a_flood_from_strangers_leaves_calls_untouched() {
    gateways(|w| {
        assert_eq!(code(w, "O20-mgcp-errors.01.txt"), 504);
        let second = play(w, "O20-mgcp-errors.02.txt", &[]);
        assert!(second.iter().all(|reply| matches!(reply.code, Some(504 | 510))), "{second:?}");
        let third = play(w, "O20-mgcp-errors.03.txt", &[]);
        assert!(third.iter().all(|reply| matches!(reply.code, Some(500 | 510 | 200))), "{third:?}");
        let text = input("O20-mgcp-errors.01.txt", &[]);
        let stranger = SocketAddr::from(([198, 51, 100, 66], 2727));
        for n in 0..1000 {
            w.send_from(stranger, 0, &text);
            w.run_for(Duration::from_micros(100));
            if n % 100 == 0 {
                w.command("CRCX", &format!("ds/ds1-2/{}", 1 + n / 100), &["C: A1", "M: recvonly"]);
            }
        }
        w.run_for(S);
        assert_eq!((w.connections().len(), w.mail().len()), (10, 10));
        assert_eq!(w.counter(Counter::DroppedUnlistedSource), 1000);
    });
}

#[test]
fn o21_a_repeat_gets_the_same_bytes() {
    gateways(|w| {
        let first = one(w, "O21-mgcp-tx.01.txt", &[]);
        assert_eq!(one(w, "O21-mgcp-tx.02.txt", &[]), first);
        w.run_for(20 * S);
        w.send_from(SocketAddr::from((AGENT.0, 40001)), 0, &input("O21-mgcp-tx.02.txt", &[]));
        w.run_for(S);
        assert_eq!((w.mail()[0].to.port(), &w.mail()[0].bytes), (40001, &first.bytes));
        assert_eq!(w.connections().len(), 1);
    });
}

/// The response leaves from the listen address the command came to, whichever core answers.
#[test]
fn o22_a_reply_comes_from_where_the_request_went() {
    gateways(|w| {
        for local in [0, 1] {
            let text = String::from_utf8(input("O22-mgcp-tx.txt", &[])).unwrap().replace("1531", &format!("153{local}"));
            w.send_from(SocketAddr::from(AGENT), local, text.as_bytes());
            w.run_for(S);
            let mail = w.take_mail();
            assert_eq!((mail.len(), mail[0].local), (1, local));
        }
    });
}

#[test]
fn o23_responses_are_never_answered() {
    gateways(|w| {
        assert_eq!(play(w, "O23-mgcp-tx.01.txt", &[]), []);
        assert_eq!(play(w, "O23-mgcp-tx.02.txt", &[]), []);
        assert_eq!(w.counter(Counter::ResponsesUnmatched), 1);
    });
}

#[test]
fn o24_no_transaction_runs_for_ever() {
    gateways(|w| {
        w.order_cards(CardOrder::Delay(u32::MAX));
        let replies = play(w, "O24-mgcp-tx.txt", &[]);
        assert_eq!(replies.iter().map(|reply| reply.code).collect::<Vec<_>>(), [Some(100)]);
        w.run_for(10 * S);
        assert_eq!(w.replies_to(1551)[0].code, Some(406));
        assert_eq!((w.connections().len(), w.media_open()), (0, 0));
        w.run_for(20 * S);
    });
}

/// With the DeleteConnections of a gateway that fails in place of NTFYs: as many ids at once from every core.
#[test]
fn o25_own_transaction_ids_are_never_given_twice() {
    gateways(|w| {
        for span in 1..=5 {
            for channel in 1..=24 {
                super::create(w, &format!("ds/ds1-{span}/{channel}"), "A1");
            }
        }
        for span in 1..=5 {
            let facility = w.facility(&format!("ds/ds1-{span}"));
            w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present: true, at_once: true });
        }
        w.run_for(5 * S);
        let ids: std::collections::HashSet<u32> = rsips(w).iter().filter(|c| c.line.starts_with("DLCX")).map(|c| c.id).collect();
        assert_eq!(ids.len(), 120);
        assert!(ids.iter().all(|id| (1..=999_999_999).contains(id)));
    });
    // An event on each channel of a T3's worth of T1s at once.
    for layout in [Layout::One, Layout::Two] {
        let mut w = gateway(layout, true);
        w.answer_own(true);
        assert_eq!(w.ask("RQNT", "*", &["X: F0", "R: T/co1(N)", "Q: loop"]).code, Some(200));
        w.take_mail();
        for _ in 0..2 {
            for name in (1..=28).flat_map(|span| (1..=24).map(move |channel| format!("ds/ds1-{span}/{channel}"))) {
                w.occur(&name, "T/co1", None);
            }
            w.run_for(20 * S);
        }
        let told = notifies(&w.take_mail());
        let mut names: std::collections::HashMap<u32, &str> = std::collections::HashMap::new();
        for notify in &told {
            assert!((1..=999_999_999).contains(&notify.id));
            // The same id is a repeat, of the same command.
            assert_eq!(*names.entry(notify.id).or_insert(&notify.line), notify.line);
        }
        assert_eq!(names.len(), 2 * 672);
    }
}

#[test]
fn o26_a_wildcard_that_may_not_stand_there_touches_nothing() {
    gateways(|w| {
        super::create(w, "ds/ds1-1/1", "A60");
        assert!(matches!(code(w, "O26-mgcp-wild.txt"), 500..=599));
        assert_eq!(w.connections().len(), 1);
    });
}

#[test]
fn o27_a_wildcard_never_modifies_or_creates() {
    gateways(|w| {
        assert!(matches!(code(w, "O27-mgcp-wild.01.txt"), 500..=599));
        assert!(matches!(code(w, "O27-mgcp-wild.02.txt"), 500..=599));
        assert_eq!(w.connections().len(), 0);
    });
}

#[test]
fn o28_the_endpoint_chosen_is_named_exactly() {
    gateways(|w| {
        let made = one(w, "O28-mgcp-wild.01.txt", &[]);
        let name = made.get("Z").unwrap().to_owned();
        let listed = one(w, "O28-mgcp-wild.02.txt", &[("Z1", &name)]);
        assert_eq!(listed.get("I"), made.get("I"));
        let mut names = std::collections::HashSet::from([name]);
        for _ in 1..24 {
            let made = w.ask("CRCX", "ds/ds1-1/$", &["C: A64", "M: recvonly"]);
            assert!(names.insert(made.get("Z").unwrap().to_owned()));
        }
        assert!((1..=24).all(|n| names.contains(&format!("ds/ds1-1/{n}@tgw.example.net"))));
    });
}

#[test]
fn o29_an_unknown_endpoint_is_refused() {
    gateways(|w| assert_eq!(code(w, "O29-mgcp-endpoint.txt"), 500));
}

#[test]
fn o30_deleting_what_is_not_there_succeeds() {
    gateways(|w| {
        assert_eq!([code(w, "O30-mgcp-endpoint.01.txt"), code(w, "O30-mgcp-endpoint.02.txt")], [250, 250]);
    });
}

#[test]
fn o31_channels_count_from_one() {
    gateways(|w| {
        let codes = ["01", "02", "03", "04", "05"].map(|step| code(w, &format!("O31-mgcp-endpoint.{step}.txt")));
        assert_eq!(codes, [500, 200, 200, 500, 500]);
        assert_eq!(w.ask("AUEP", "ds/ds1-1/01", &[]).code, Some(500));
    });
}

#[test]
fn o32_a_dead_trunk_takes_no_calls() {
    for layout in [Layout::One, Layout::Two] {
        let mut w = gateway(layout, true);
        let facility = w.facility("ds/ds1-1");
        w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present: true, at_once: true });
        w.run_for(S);
        assert!(matches!(code(&mut w, "O32-mgcp-endpoint.txt"), 501 | 531));
        assert_eq!(w.connections().len(), 0);
        w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present: false, at_once: true });
        w.run_for(S);
        super::create(&mut w, "ds/ds1-1/19", "A72");
        // At the start, before the restart is confirmed, for an agent that wants it so.
        let mut w = gateway(layout, false);
        w.reload(|settings| settings.agents[0].refuse_while_restarting = true);
        w.send_from(SocketAddr::from(AGENT), 0, &input("O32-mgcp-endpoint.txt", &[]));
        assert_eq!(w.final_of(1721).code, Some(405));
    }
}

#[test]
fn o33_wildcards_in_several_terms_are_understood_or_refused() {
    gateways(|w| {
        assert!(matches!(code(w, "O33-mgcp-wild.01.txt"), 200 | 533 | 500 | 503));
        assert_eq!(code(w, "O33-mgcp-wild.02.txt"), 533);
    });
}

#[test]
fn o34_a_port_behind_the_name_is_refused() {
    gateways(|w| assert_eq!(code(w, "O34-mgcp-endpoint.txt"), 500));
}

#[test]
fn o35_a_continuity_test_begins_with_its_connection() {
    gateways(|w| {
        let made = one(w, "O35-mgcp-events.02.txt", &[]);
        assert_eq!(made.code, Some(200));
        let id = connection(&made);
        assert_eq!(one(w, "O35-mgcp-events.03.txt", &[("I2", &id)]).code, Some(250));
        // The far end returns the tone.
        let mut replies = play(w, "O35-mgcp-events.01.txt", &[]);
        w.run_for(4 * S);
        replies.extend(w.take_mail().iter().flat_map(|mail| Reply::all(&mail.bytes)));
        let notify = replies.iter().find(|reply| reply.line.starts_with("NTFY")).expect("a Notify");
        assert_eq!((replies[0].code, notify.get("X"), notify.get("O")), (Some(200), Some("C01"), Some("T/co1")));
        let id = format!("I: {}", connection(&replies[0]));
        assert_eq!(w.ask("DLCX", "ds/ds1-1/1", &["C: A80", &id]).code, Some(250));
    });
}

/// A far end that stays off-hook after the release: the channel can be used for connections all the time, the guard's end is shown, and
/// the trunk is free as soon as the far end goes on-hook.
#[test]
fn o39_a_far_end_that_never_releases_holds_nothing_up() {
    use super::lines::{endpoint, far, line};
    for layout in [Layout::One, Layout::Two] {
        let t1 = |unit| FacilityPlan { kind: FacilityKind::T1, unit, common_channel: false };
        let mut w = World::new(Setup { facilities: (1..=28).map(t1).collect(), ..Setup::new(layout, 1) }, |plan, _| {
            plan.spans[2].signalling.kind = ChannelKind::CasMf;
        });
        w.answer_own(true);
        let (name, setup) = ("ds/ds1-3/2", ["X: F0", "R: MS/ans(N),MS/rlc(N)", "S: MS/sup(addr(k0,6,1,7,s0))"]);
        let e = endpoint(&w, name);
        far(&mut w, e, FarOrder::Behave(Behaviour::Hangs));
        assert_eq!(w.ask("RQNT", name, &setup).code, Some(200));
        w.run_for(20 * S);
        let made = one(&mut w, "O39-mgcp-cas.01.txt", &[]);
        assert_eq!(made.code, Some(200));
        assert_eq!(w.ask("RQNT", name, &["X: F1", "R: MS/rlc(N)", "S: MS/rel"]).code, Some(200));
        assert_eq!(one(&mut w, "O39-mgcp-cas.02.txt", &[("I1", &connection(&made))]).code, Some(250));
        let again = one(&mut w, "O39-mgcp-cas.03.txt", &[]);
        assert_eq!(again.code, Some(200), "{again:?}");
        assert_eq!(w.ask("DLCX", name, &["C: A89", &format!("I: {}", connection(&again))]).code, Some(250));
        w.run_for(60 * S);
        assert_eq!(line(&mut w, e), "lockout");
        assert_eq!(w.ask("RQNT", name, &setup).code, Some(401));
        far(&mut w, e, FarOrder::Show(Hook::On));
        w.run_for(2 * S);
        assert_eq!(line(&mut w, e), "idle");
        assert_eq!(w.ask("RQNT", name, &setup).code, Some(200));
        w.free(e);
        w.run_for(2 * S);
        w.check_quiet();
    }
}

/// Silence of a far end is told when somebody asked, once, and the connection stays; when the gateway gives it up by itself it says so.
#[test]
fn o40_silence_ends_no_connection_without_a_word() {
    gateways(|w| {
        w.answer_own(true);
        let made = one(w, "O40-mgcp-media.txt", &[]);
        assert_eq!(made.code, Some(200), "{made:?}");
        let id = connection(&made);
        w.occur("ds/ds1-1/10", "R/rto(3)", Some(&id));
        w.run_for(10 * S);
        let told = notifies(&w.take_mail());
        assert_eq!(told.iter().map(|notify| notify.get("O")).collect::<Vec<_>>(), [Some(format!("R/rto@{id}(3)").as_str())]);
        assert_eq!(w.connections().len(), 1);
        // The card gives up on it, as `cards.cesopsn.media_timeout` says.
        w.lose_media();
        w.run_for(2 * S);
        let said: Vec<_> = w.take_mail().iter().flat_map(|mail| Reply::all(&mail.bytes)).collect();
        let deletion = said.iter().find(|message| message.line.starts_with("DLCX")).expect("a DeleteConnection");
        assert_eq!((deletion.get("I"), deletion.get("E").map(|reason| &reason[..3])), (Some(id.as_str()), Some("902")));
        assert_eq!(w.connections().len(), 0);
    });
}

/// What is refused leaves the request as it was; the default package needs no name.
#[test]
fn o36_o37_o38_what_a_package_does_not_have_is_refused() {
    gateways(|w| {
        for (endpoint, names) in [
            ("ds/ds1-1/4", &[("O36-mgcp-events.01.txt", 538), ("O36-mgcp-events.02.txt", 200), ("O36-mgcp-events.03.txt", 510)][..]),
            ("ds/ds1-1/6", &[("O37-mgcp-events.01.txt", 200), ("O37-mgcp-events.02.txt", 200)]),
            ("ds/ds1-1/8", &[("O38-mgcp-events.01.txt", 200), ("O38-mgcp-events.02.txt", 523), ("O38-mgcp-events.03.txt", 523)]),
        ] {
            for &(name, expected) in names {
                assert_eq!(w.ask("RQNT", endpoint, &["X: 1"]).code, Some(200));
                assert_eq!(code(w, name), expected, "{name}");
                assert_eq!(super::audit(w, endpoint, "X") == "1", expected != 200, "{name}");
            }
        }
        assert_eq!(super::audit(w, "ds/ds1-1/6", "R"), "T/oc(N)");
    });
}

#[test]
fn o42_a_keepalive_that_never_confirms_takes_no_memory() {
    gateways(|w| {
        let text = String::from_utf8(input("O42-mgcp-restart.txt", &[])).unwrap();
        let mut entries = Vec::new();
        for n in 0..300 {
            let replies = play_bytes(w, text.replace("1951", &format!("{}", 20_000 + n)).as_bytes());
            assert!(replies[0].code == Some(200) && replies[0].parameters.is_empty());
            entries.push(w.remembered());
        }
        // T-HIST is 30 s: what is remembered after a minute does not grow any more.
        assert!(entries[60..].iter().all(|&n| n <= entries[60] + 2) && entries[299] <= 33, "{entries:?}");
    });
}

/// The name in RSIP is the configured one; a redirection is followed (`restart::a_redirected_restart_goes_to_the_other_agent`).
#[test]
fn o43_the_restart_uses_the_configured_name() {
    for layout in [Layout::One, Layout::Two] {
        for domain in ["[192.0.2.10]", "tgw.example.net"] {
            let change = |plan: &mut tollgate::proto::plan::Plan, _: &mut tollgate::proto::plan::Settings| {
                plan.domains = vec![domain.as_bytes().into()];
            };
            let mut w = World::new(Setup { told: false, ..Setup::new(layout, 1) }, change);
            w.run_for(3 * S);
            assert!(rsips(&w)[0].line.contains(&format!(" *@{domain} MGCP 1.0")), "{}", rsips(&w)[0].line);
        }
    }
}

/// Every form an agent can want, each paced by how many may be unanswered.
#[test]
fn o44_the_restart_has_the_form_the_agent_wants() {
    use tollgate::proto::aggregate::{Forms, Widest};
    let cases = [
        (Forms { widest: Widest::Gateway, ranges: false }, "*", 1),
        (Forms { widest: Widest::Span, ranges: false }, "ds/ds1-1/*", 28),
        (Forms { widest: Widest::Endpoint, ranges: false }, "ds/ds1-1/1", 672),
    ];
    for layout in [Layout::One, Layout::Two] {
        for (forms, sample, count) in cases {
            let mut w = gateway(layout, false);
            w.reload(|settings| settings.agents.iter_mut().for_each(|agent| agent.forms = forms));
            w.answer_own(true);
            w.run_for(20 * S);
            let told = rsips(&w);
            let names: std::collections::HashSet<_> = told.iter().map(|rsip| rsip.line.split(' ').nth(2).unwrap().to_owned()).collect();
            assert!(names.contains(&format!("{sample}@tgw.example.net")), "{names:?}");
            assert_eq!(names.len(), count);
            // So many may be unanswered at a time; the answers take a millisecond.
            let most = w.mail().iter().map(|first| {
                let soon = w.mail().iter().filter(|mail| mail.at >= first.at && mail.at.since(first.at) < Duration::from_micros(900));
                soon.count()
            });
            assert!(most.max() <= Some(32));
        }
    }
}

#[test]
fn o46_every_connection_of_an_endpoint_can_be_audited() {
    gateways(|w| {
        let ids = [super::create(w, "ds/ds1-1/12", "A1"), super::create(w, "ds/ds1-1/12", "B1")];
        let listed = one(w, "O46-mgcp-operation.01.txt", &[]);
        assert_eq!(listed.get("I").unwrap().split(", ").collect::<Vec<_>>(), ids);
        let audited = one(w, "O46-mgcp-operation.02.txt", &[("I1", &ids[0])]);
        assert_eq!(audited.code, Some(200));
        for name in ["C", "N", "L", "M", "P"] {
            assert!(audited.get(name).is_some(), "{name}: {audited:?}");
        }
        assert_eq!(audited.description.matches("v=0").count(), 2, "{audited:?}");
    });
}

/// Ports: restarts go to the provisioned port, `N:` with a port changes it, without one it means 2727; responses go to the source.
#[test]
fn o47_ports_are_those_that_were_given() {
    for layout in [Layout::One, Layout::Two] {
        let mut w = World::new(Setup { told: false, ..Setup::new(layout, 1) }, |_, settings| {
            settings.agents[0].notify = vec![SocketAddr::from(([192, 0, 2, 1], 2427))];
        });
        w.answer_own(true);
        w.run_for(3 * S);
        assert!(w.mail().iter().all(|mail| mail.to.port() == 2427) && !w.mail().is_empty());
        for (entity, port) in [("ca1@[192.0.2.1]:3000", 3000), ("ca1@[192.0.2.1]", 2727)] {
            assert_eq!(w.ask("RQNT", "ds/ds1-1/*", &["X: 1", &format!("N: {entity}")]).code, Some(200));
            w.take_mail();
            let facility = w.facility("ds/ds1-1");
            for present in [true, false] {
                w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present, at_once: true });
                w.run_for(2 * S);
            }
            let (first, last) = (w.mail()[0].to.port(), w.mail().last().unwrap().to.port());
            // A Notify goes there too.
            assert_eq!(w.ask("RQNT", "ds/ds1-2/1", &["X: F0", "R: T/co1(N)", &format!("N: {entity}")]).code, Some(200));
            w.take_mail();
            w.occur("ds/ds1-2/1", "T/co1", None);
            w.run_for(S);
            let told = w.take_mail();
            assert_eq!((told.len(), told[0].to.port(), notifies(&told).len()), (1, port, 1));
            // Out of service it is said to whom the endpoint notified; back in service to the provisioned one (G-NET-02).
            assert_eq!((first, last), (port, 2427), "{layout:?} {entity} {:?}", rsips(&w));
        }
        let from = SocketAddr::from(([192, 0, 2, 1], 5000));
        w.take_mail();
        w.send_from(from, 0, b"AUEP 9 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\n");
        w.run_for(10 * MS);
        assert_eq!(w.mail()[0].to, from);
    }
}

#[test]
fn o48_one_datagram_makes_no_flood() {
    gateways(|w| {
        let all = input("O48-mgcp-security.01.txt", &[]);
        w.send_from(SocketAddr::from(([198, 51, 100, 66], 2727)), 0, &all);
        w.run_for(S);
        assert_eq!(w.mail(), []);
        assert!(matches!(code(w, "O48-mgcp-security.01.txt"), 500 | 503));
        assert!(matches!(code(w, "O48-mgcp-security.02.txt"), 500 | 503));
        // The limit on messages of one datagram; repeats of the first one, so each gets the same.
        let replies = play(w, "O48-mgcp-security.03.txt", &[]);
        assert!(replies.len() <= 32 && replies.iter().all(|reply| reply == &replies[0]), "{}", replies.len());
        assert!(w.counter(Counter::DroppedPiggybackLimit) + w.counter(Counter::DroppedTruncated) >= 1);
    });
}
