//! Trunks and lines that signal (CAS, EVT, MD; hooks: SIG-14, PER-03, QUA-22): what the far end does, and what the agent asks and hears,
//! message by message.

use super::{MS, S, SDP, audit, code, connection, create, each_layout_with, notified, told};
use tollgate::proto::cas::{Direction, Signalling};
use tollgate::proto::core::Ask;
use tollgate::proto::package::ChannelKind;
use tollgate::proto::package::parameters::{Digits, MfDigit};
use tollgate::proto::plan::{Plan, Settings};
use tollgate::proto::trunk::{CardOrder, DigitKind, FarOrder, Hook};
use tollgate::sim::World;

const MF: &str = "ds/ds1-1/1";
const OPERATOR: &str = "ds/ds1-2/1";
const FGD: &str = "ds/ds1-3/1";
const PBX: &str = "ds/ds1-4/1";
const DTMF: &str = "ds/ds1-5/1";

/// One span of each kind.
fn trunks(plan: &mut Plan, _: &mut Settings) {
    let kinds = [ChannelKind::CasMf, ChannelKind::Operator, ChannelKind::FeatureGroupD, ChannelKind::PbxFxs, ChannelKind::CasDtmf];
    for (kind, span) in kinds.into_iter().zip(plan.spans.iter_mut()) {
        let direction = if kind == ChannelKind::Operator { Direction::Outgoing } else { Direction::Both };
        span.signalling = Signalling { kind, wink_start: kind != ChannelKind::PbxFxs, direction, ..Signalling::default() };
    }
}

fn each_trunk_layout(dialogue: impl Fn(&mut World)) {
    each_layout_with(trunks, dialogue);
}

fn far(w: &mut World, endpoint: &str, order: FarOrder) {
    let endpoint = w.plan.topology.lookup(endpoint.as_bytes()).unwrap();
    let core = w.plan.owner(endpoint);
    w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, order)));
}

/// The far end seizes and dials KP 5 5 5 ST.
fn seize(w: &mut World, endpoint: &str) {
    let mut digits = Digits::NONE;
    for symbol in [MfDigit::KP, b'5', b'5', b'5', MfDigit::ST] {
        assert!(digits.push(symbol));
    }
    far(w, endpoint, FarOrder::Seize(DigitKind::Mf, digits));
}

/// The events of each Notify that came since the mail was taken last, one after the other.
fn heard(w: &mut World) -> String {
    notified(w).into_iter().map(|(_, events)| events).collect::<Vec<_>>().join(" ")
}

/// Sends a command that must be done.
fn done(w: &mut World, verb: &str, endpoint: &str, parameters: &[&str]) {
    let code = code(w, verb, endpoint, parameters);
    assert!((200..300).contains(&code), "{verb} {parameters:?}: {code}");
}

/// A call out over the MF trunk that is answered, with its connection.
fn answered(w: &mut World) -> String {
    let made = w.ask("CRCX", MF, &[&["C: A1", "M: sendrecv"][..], &SDP].concat());
    done(w, "RQNT", MF, &["X: 1", "Q: loop", "R: MS/oc(N),MS/rel(N),MS/ans(N)", "S: MS/sup(addr(k0,5,5,5,s0))"]);
    w.run_for(4 * S);
    assert_eq!(heard(w), "MS/oc(MS/sup) MS/ans");
    connection(&made)
}

/// CAS-07: the release of a trunk leaves its connections, and may go with their deletion.
#[test]
fn a_release_leaves_connections() {
    each_trunk_layout(|w| {
        let id = answered(w);
        done(w, "RQNT", MF, &["X: 2", "S: MS/rel", "R: MS/rlc(N)"]);
        w.run_for(S);
        assert_eq!((heard(w), audit(w, MF, "I"), audit(w, MF, "ES")), ("MS/rlc".into(), id.clone(), "MS/rlc".into()));
        done(w, "DLCX", MF, &["C: A1", &format!("I: {id}")]);
        let id = answered(w);
        done(w, "DLCX", MF, &["C: A1", &format!("I: {id}"), "X: 2", "S: MS/rel", "R: MS/rlc(N)"]);
        assert_eq!((audit(w, MF, "I"), audit(w, MF, "X")), (String::new(), "2".into()));
        w.run_for(S);
        assert_eq!((heard(w), audit(w, MF, "ES")), ("MS/rlc".into(), "MS/rlc".into()));
    });
}

/// CAS-14: with `Q: loop` the seizure and its digits are two Notifies; with `step` the digits wait for the next request.
#[test]
fn seizure_and_digits_come_one_by_one() {
    each_trunk_layout(|w| {
        done(w, "RQNT", MF, &["X: 1", "Q: loop", "R: MS/sup(N),MS/inf(N)"]);
        seize(w, MF);
        w.run_for(3 * S);
        let both = [("1".to_owned(), "MS/sup".to_owned()), ("1".to_owned(), "MS/inf(k0,5,5,5,s0)".to_owned())];
        assert_eq!(notified(w), both);
        far(w, MF, FarOrder::Show(Hook::On));
        w.run_for(S);
        done(w, "RQNT", MF, &["X: 2", "Q: loop", "S: MS/rlc"]);
        w.take_mail();
        // What is to be quarantined has been asked for (G-EVT-06).
        done(w, "RQNT", MF, &["X: 3", "R: MS/sup(N),MS/inf(N)"]);
        seize(w, MF);
        w.run_for(3 * S);
        assert_eq!(notified(w), [("3".to_owned(), "MS/sup".to_owned())]);
        done(w, "RQNT", MF, &["X: 4", "R: MS/inf(N)"]);
        w.run_for(100 * MS);
        assert_eq!(notified(w), [("4".to_owned(), "MS/inf(k0,5,5,5,s0)".to_owned())]);
    });
}

/// CAS-15: the seizure arms the digits without a word.
#[test]
fn a_seizure_arms_the_digits() {
    each_trunk_layout(|w| {
        done(w, "RQNT", MF, &["X: 1", "R: MS/sup(E(R(MS/inf,MS/rel)))"]);
        seize(w, MF);
        w.run_for(3 * S);
        assert_eq!(notified(w), [("1".to_owned(), "MS/inf(k0,5,5,5,s0)".to_owned())]);
        assert!(audit(w, MF, "R").starts_with("MS/inf,MS/rel,"), "{}", audit(w, MF, "R"));
    });
}

/// CAS-17: RFC 3064 5.1.2.1, the originating end releases first, seen at the originating trunk and at the terminating one.
#[test]
fn the_originating_end_releases_first() {
    each_trunk_layout(|w| {
        done(w, "RQNT", MF, &["X: 1", "Q: loop", "R: MS/sup(N),MS/inf(N)"]);
        seize(w, MF);
        w.run_for(3 * S);
        let id = create(w, MF, "A1");
        let named = format!("I: {id}");
        done(w, "MDCX", MF, &[&["C: A1", &named, "M: sendrecv", "X: 2", "S: MS/ans", "R: MS/rel"][..], &SDP].concat());
        w.take_mail();
        w.run_for(S);
        far(w, MF, FarOrder::Show(Hook::On));
        w.run_for(S);
        assert_eq!(notified(w), [("2".to_owned(), "MS/rel(0)".to_owned())]);
        done(w, "DLCX", MF, &["C: A1", &format!("I: {id}"), "X: 3", "S: MS/rlc", "R: MS/sup"]);
        w.run_for(S);
        assert_eq!((heard(w), audit(w, MF, "ES")), (String::new(), "MS/rlc".into()));
        // The other trunk: A3 to A6, A9.
        let id = answered(w);
        done(w, "RQNT", MF, &["X: 4", "S: MS/rel", "R: MS/rlc"]);
        w.run_for(S);
        assert_eq!(notified(w), [("4".to_owned(), "MS/rlc".to_owned())]);
        done(w, "DLCX", MF, &["C: A1", &format!("I: {id}"), "X: 5", "R: MS/sup"]);
        assert_eq!(audit(w, MF, "I"), "");
    });
}

/// CAS-17: RFC 3064 5.1.2.2, the terminating end releases first: `sus` there, `rel` at the originating end when that follows.
#[test]
fn the_terminating_end_releases_first() {
    each_trunk_layout(|w| {
        let id = answered(w);
        done(w, "RQNT", MF, &["X: 2", "R: MS/sus"]);
        far(w, MF, FarOrder::Show(Hook::On));
        w.run_for(S);
        assert_eq!(notified(w), [("2".to_owned(), "MS/sus".to_owned())]);
        done(w, "RQNT", MF, &["X: 3", "R: MS/res"]);
        done(w, "DLCX", MF, &["C: A1", &format!("I: {id}"), "X: 4", "S: MS/rel", "R: MS/rlc"]);
        w.run_for(S);
        assert_eq!(notified(w), [("4".to_owned(), "MS/rlc".to_owned())]);
        // The originating trunk: A3, A7, A13.
        done(w, "RQNT", MF, &["X: 5", "Q: loop", "R: MS/sup(N),MS/inf(N)"]);
        seize(w, MF);
        w.run_for(3 * S);
        assert_eq!(heard(w), "MS/sup MS/inf(k0,5,5,5,s0)");
        done(w, "RQNT", MF, &["X: 6", "S: MS/ans"]);
        w.run_for(S);
        done(w, "RQNT", MF, &["X: 7", "S: MS/sus", "R: MS/rel"]);
        w.run_for(S);
        assert_eq!(notified(w), [("7".to_owned(), "MS/rel(0)".to_owned())]);
        done(w, "RQNT", MF, &["X: 8", "S: MS/rlc", "R: MS/sup"]);
        assert_eq!(audit(w, MF, "ES"), "MS/rlc");
    });
}

/// E6, RFC 3064 5.1.2.1: the other party is gone; dial tone until the line is on-hook, or 16 seconds.
#[test]
fn dial_tone_when_the_other_party_is_gone() {
    each_trunk_layout(|w| {
        for lays_down in [true, false] {
            done(w, "RQNT", PBX, &["X: 1", "R: BL/hd(N)"]);
            far(w, PBX, FarOrder::Show(Hook::Off));
            w.run_for(S);
            assert_eq!(heard(w), "BL/hd");
            done(w, "RQNT", PBX, &["X: 2", "Q: loop", "S: BL/dl", "R: BL/hu(N),BL/oc(N)"]);
            assert_eq!(audit(w, PBX, "S"), "BL/dl");
            if !lays_down {
                w.run_for(17 * S);
                assert_eq!(heard(w), "BL/oc(BL/dl)");
            }
            far(w, PBX, FarOrder::Show(Hook::On));
            w.run_for(2 * S);
            assert_eq!((heard(w), audit(w, PBX, "S"), audit(w, PBX, "ES")), ("BL/hu".into(), String::new(), "BL/hu".into()));
        }
    });
}

/// G-SIG-14, G-QUA-22, EVT-05, EVT-06, CAS-10, CAS-11: what needs a hook that is not is 401 or 402, by the hook when the request comes, and
/// leaves no trace, alone or within another command.
#[test]
fn a_request_that_needs_another_hook_is_refused_as_a_whole() {
    each_trunk_layout(|w| {
        done(w, "RQNT", PBX, &["X: 1", "R: BL/hd(N)"]);
        for list in [["X: 2", "S: BL/dl", "R:"], ["X: 2", "S:", "R: BL/hu(N)"], ["X: 2", "S:", "R: BL/hf(N)"]] {
            assert_eq!(code(w, "RQNT", PBX, &list), 402, "{list:?}");
        }
        assert_eq!((audit(w, PBX, "X"), audit(w, PBX, "S")), ("1".into(), String::new()));
        assert_eq!(code(w, "CRCX", PBX, &["C: A1", "M: recvonly", "X: 2", "R: BL/hu(N)"]), 402);
        assert_eq!((audit(w, PBX, "X"), audit(w, PBX, "I")), ("1".into(), String::new()));
        // Off-hook, and not yet told.
        far(w, PBX, FarOrder::Show(Hook::Off));
        w.run_for(S);
        for list in [["X: 2", "R: BL/hd(N)", "S:"], ["X: 2", "R:", "S: BL/rg"]] {
            assert_eq!(code(w, "RQNT", PBX, &list), 401, "{list:?}");
        }
        assert_eq!(audit(w, PBX, "X"), "1");

        done(w, "RQNT", MF, &["X: 1", "R: MS/sup(N)"]);
        seize(w, MF);
        w.run_for(3 * S);
        assert_eq!(code(w, "RQNT", MF, &["X: 2", "R: MS/sup(N)"]), 401);
        assert_eq!(code(w, "RQNT", MF, &["X: 2", "S: MS/sup(addr(k0,5,5,5,s0))"]), 401);
        let id = create(w, MF, "A1");
        assert_eq!(code(w, "DLCX", MF, &["C: A1", &format!("I: {id}"), "X: 2", "R: MS/sup(N)"]), 401);
        assert_eq!((audit(w, MF, "X"), audit(w, MF, "I"), audit(w, MF, "ES")), ("1".into(), id, "MS/sup".into()));
        // The standard flow: rel is asked for while the far end is on-hook.
        assert_eq!(code(w, "RQNT", "ds/ds1-1/2", &["X: 2", "R: MS/rel(N),MS/ans(N)", "S: MS/sup(addr(k0,5,5,5,s0))"]), 200);
        // A set-up that is listed again goes on (G-SIG-02); another one behind its end is one too many (A20).
        assert_eq!(code(w, "RQNT", "ds/ds1-1/2", &["X: 3", "R: MS/oc(N)", "S: MS/sup(addr(k0,6,s0))"]), 200);
        w.take_mail();
        w.run_for(4 * S);
        assert_eq!(told(w), "MS/oc(MS/sup)");
        assert_eq!(code(w, "RQNT", "ds/ds1-1/2", &["X: 4", "S: MS/sup(addr(k0,6,s0))"]), 530);
    });
}

/// G-RQN-06, 4.4.2: what a request needs of the hook it needs until its command is done, also while a card makes the command wait.
#[test]
fn a_hook_that_changes_before_the_commit_refuses_the_command() {
    each_trunk_layout(|w| {
        done(w, "RQNT", PBX, &["X: 1", "R:"]);
        w.order_cards(CardOrder::Delay(2500));
        for (hook, list, expected) in [(Hook::Off, "R: BL/hd(N)", 401), (Hook::On, "R: BL/hu(N)", 402)] {
            let slow = w.command("CRCX", PBX, &["C: A1", "M: recvonly", "X: 2", list]);
            w.run_for(100 * MS);
            far(w, PBX, FarOrder::Show(hook));
            assert_eq!(w.final_of(slow).code, Some(expected), "{list}");
            w.run_for(2 * S);
            assert_eq!((audit(w, PBX, "X"), w.connections().len()), ("1".into(), 0), "{list}");
        }
        w.order_cards(CardOrder::Delay(0));
    });
}

/// G-PER-03: events that are detected unasked, and those of B/PR and T, are not looked at.
#[test]
fn implicit_events_are_not_checked_against_the_hook() {
    each_trunk_layout(|w| {
        far(w, PBX, FarOrder::Show(Hook::Off));
        w.run_for(S);
        for (n, list) in [["R:", "T:"], ["R:", "B/PR: BL/hd(N)"], ["R:", "T: BL/hd"]].iter().enumerate() {
            assert_eq!(code(w, "RQNT", PBX, &[&format!("X: {}", n + 1), list[0], list[1]]), 200, "{list:?}");
        }
        assert_eq!(code(w, "RQNT", PBX, &["X: 9", "R: BL/hd(N)"]), 401);
        assert_eq!(code(w, "RQNT", PBX, &["X: 9", "R: BL/hd(N)", "B/PR:"]), 401);
    });
}

/// EVT-07: `ES` of each kind: idle, busy, blocked.
#[test]
fn event_states_say_how_the_line_is() {
    each_trunk_layout(|w| {
        let idle = [(MF, "MS/rlc"), (OPERATOR, "MO/rlc"), (FGD, "MD/rlc"), (PBX, "BL/hu"), (DTMF, "DT/rlc")];
        let busy = [(MF, "MS/sup"), (OPERATOR, "MO/rbz"), (FGD, "MD/sup"), (PBX, "BL/hd"), (DTMF, "DT/sup")];
        for (endpoint, state) in idle {
            assert_eq!(audit(w, endpoint, "ES"), state);
            far(w, endpoint, FarOrder::Show(Hook::Off));
        }
        w.run_for(S);
        for (endpoint, state) in busy {
            assert_eq!(audit(w, endpoint, "ES"), state);
            far(w, endpoint, FarOrder::Show(Hook::On));
        }
        w.run_for(2 * S);
        for endpoint in [MF, FGD, DTMF] {
            done(w, "RQNT", endpoint, &["X: 1", "S: rlc"]);
        }
        for (endpoint, state) in idle {
            assert_eq!(audit(w, endpoint, "ES"), state);
        }
    });
}

/// MD.16, MO.12, RFC 3064 5.3 C3 to C8: the start wink is told when it is asked for, and `oc` of the set-up follows all the same.
#[test]
fn a_set_up_goes_on_when_its_own_events_come() {
    each_trunk_layout(|w| {
        let setup = "S: MD/sup(ct(nda),id(k0,2,s0),addr(k0,1,s0))";
        done(w, "RQNT", FGD, &["X: 1", "Q: loop", "R: MD/swk(N),MD/oc(N),MD/awk(N),MD/ans(N)", setup]);
        w.run_for(5 * S);
        assert_eq!(heard(w), "MD/swk MD/oc(MD/sup) MD/awk MD/ans");
        let setup = "S: MO/sup(id(k0,2,s0),addr(k0,9,1,1,s2))";
        done(w, "RQNT", OPERATOR, &["X: 1", "Q: loop", "R: MO/swk(N),MO/oc(N)", setup]);
        w.run_for(5 * S);
        assert_eq!(heard(w), "MO/swk MO/ans MO/oc(MO/sup)");
        // Other signals stop with a requested event (G-SIG-09).
        done(w, "RQNT", PBX, &["X: 1", "R: BL/hd(N)", "S: BL/rg"]);
        far(w, PBX, FarOrder::Show(Hook::Off));
        w.run_for(S);
        assert_eq!((told(w), audit(w, PBX, "S")), ("BL/hd".into(), String::new()));
    });
}
