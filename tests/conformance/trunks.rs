//! Calls on trunks and lines with channel associated signalling, as the agent and the far end see them (RFC 3064; CAS rows).

use super::{MS, S, SDP, audit, code, connection, each_layout_with, notified};
use tollgate::proto::cas::Signalling;
use tollgate::proto::core::Ask;
use tollgate::proto::package::ChannelKind;
use tollgate::proto::package::parameters::{Digits, MfDigit};
use tollgate::proto::plan::{Plan, Settings};
use tollgate::proto::trunk::{CardOrder, DigitKind, FarOrder, Hook};
use tollgate::sim::World;

const E: &str = "ds/ds1-2/1";

/// The second T1 has channels of this kind.
fn channels(kind: ChannelKind) -> impl Fn(&mut Plan, &mut Settings) {
    move |plan, _| plan.spans[1].signalling = Signalling { kind, ..Signalling::default() }
}

/// The far end of a channel does something; time passes.
fn far(w: &mut World, name: &str, order: FarOrder) {
    let endpoint = w.plan.topology.lookup(name.as_bytes()).unwrap();
    let core = w.plan.owner(endpoint);
    w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, order)));
    w.run_for(3 * S);
}

/// A call to 55.
fn seize(w: &mut World, name: &str) {
    let mut digits = Digits::NONE;
    assert!([MfDigit::KP, b'5', b'5', MfDigit::ST].into_iter().all(|symbol| digits.push(symbol)));
    far(w, name, FarOrder::Seize(DigitKind::Mf, digits));
}

fn request(w: &mut World, name: &str, parameters: &[&str]) {
    assert_eq!(code(w, "RQNT", name, parameters), 200, "{parameters:?}");
}

fn told(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(x, events)| ((*x).to_owned(), (*events).to_owned())).collect()
}

/// CAS-14: in loop mode seizure and digits are two Notifies of one request; in step mode the digits wait for the next one.
#[test]
fn seizure_and_digits_need_one_request_or_two() {
    each_layout_with(channels(ChannelKind::CasMf), |w| {
        request(w, E, &["X: 1", "Q: loop", "R: ms/inf(N)"]);
        seize(w, E);
        assert_eq!(notified(w), told(&[("1", "MS/sup"), ("1", "MS/inf(k0,5,5,s0)")]));
        let other = "ds/ds1-2/2";
        request(w, other, &["X: 2", "R: ms/inf(N)"]);
        seize(w, other);
        assert_eq!(notified(w), told(&[("2", "MS/sup")]));
        request(w, other, &["X: 3", "R: ms/inf(N)"]);
        w.run_for(S);
        assert_eq!(notified(w), told(&[("3", "MS/inf(k0,5,5,s0)")]));
    });
}

/// CAS-15: the seizure may activate the request for the digits by itself.
#[test]
fn the_seizure_may_ask_for_the_digits() {
    each_layout_with(channels(ChannelKind::CasMf), |w| {
        request(w, E, &["X: 4", "R: ms/sup(E(R(ms/inf,ms/rel)))"]);
        seize(w, E);
        assert_eq!(notified(w), told(&[("4", "MS/inf(k0,5,5,s0)")]));
        assert_eq!(audit(w, E, "R").split(',').next(), Some("MS/inf"));
    });
}

/// CAS-17, CAS-07: whoever releases first, the other end follows, and the line is free when both are on-hook; the connections stay until they
/// are deleted.
#[test]
fn a_call_is_released_from_either_end() {
    each_layout_with(channels(ChannelKind::CasMf), |w| {
        for agent_first in [false, true, false] {
            request(w, E, &["X: 1", "Q: loop,discard", "R: ms/inf(N)"]);
            seize(w, E);
            let made = w.ask("CRCX", E, &[&["C: A1", "M: sendrecv"][..], &SDP].concat());
            let id = format!("I: {}", connection(&made));
            request(w, E, &["X: 2", "Q: loop,discard", "S: ms/ans"]);
            w.take_mail();
            if agent_first {
                request(w, E, &["X: 3", "Q: loop", "S: ms/rel"]);
                // The far end hangs up by itself when it sees that.
                w.run_for(3 * S);
                assert_eq!((notified(w), w.connections().len()), (told(&[("3", "MS/rlc")]), 1));
                assert_eq!(code(w, "DLCX", E, &["C: A1", &id]), 250);
            } else {
                far(w, E, FarOrder::Show(Hook::On));
                assert_eq!((notified(w), w.connections().len()), (told(&[("2", "MS/rel(0)")]), 1));
                // Both in one command.
                assert_eq!(code(w, "DLCX", E, &["C: A1", &id, "X: 3", "S: ms/rlc"]), 250);
            }
            w.run_for(2 * S);
            let idle = w.ask("AUEP", E, &["BA/F: BA/S(H)"]);
            assert_eq!((idle.get("BA/S"), w.connections().len()), (Some("F"), 0), "agent first: {agent_first}");
            w.take_mail();
        }
    });
}

/// E6: a PBX that stays off-hook hears the dial tone until it hangs up, or as long as it lasts.
#[test]
fn dial_tone_lasts_until_the_line_hangs_up() {
    each_layout_with(channels(ChannelKind::PbxFxs), |w| {
        for hangs_up in [true, false] {
            request(w, E, &["X: 1", "Q: discard"]);
            far(w, E, FarOrder::Show(Hook::Off));
            assert_eq!(notified(w), told(&[("1", "BL/hd")]));
            request(w, E, &["X: 2", "Q: loop", "R: bl/hu(N),bl/oc(N)", "S: bl/dl"]);
            w.run_for(5 * S);
            assert_eq!((audit(w, E, "S"), notified(w)), ("BL/dl".into(), vec![]));
            if hangs_up {
                far(w, E, FarOrder::Show(Hook::On));
                assert_eq!(notified(w), told(&[("2", "BL/hu")]));
            } else {
                w.run_for(11 * S + 200 * MS);
                assert_eq!(notified(w), told(&[("2", "BL/oc(BL/dl)")]));
                far(w, E, FarOrder::Show(Hook::On));
                assert_eq!(notified(w), told(&[("2", "BL/hu")]));
            }
            assert_eq!(audit(w, E, "S"), "");
        }
    });
}
