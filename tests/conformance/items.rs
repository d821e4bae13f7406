//! Every item of the packages that channels claim, as a peer sees it: asked for, it happens, and is notified; applied, it lasts, ends and
//! is told (PKG-01; rows of G, D, T, R, MS, DT, BL, MD, MO).

use super::{MS, S, SDP, audit, block, code, connection, each_layout, each_layout_with, setup, told};
use tollgate::proto::cas::Signalling;
use tollgate::proto::core::Ask;
use tollgate::proto::package::{ChannelKind, EventId, HookRule, PackageId, Place, SignalClass, packages};
use tollgate::proto::trunk::{CardOrder, DigitKind, FarOrder, Hook};
use tollgate::sim::{Layout, World};

const E: &str = "ds/ds1-2/1";

/// The second T1 has channels of this kind.
fn world(kind: ChannelKind) -> World {
    World::new(setup(Layout::One, 1), |plan, _| {
        plan.spans[1].signalling = Signalling { kind, ..Signalling::default() };
    })
}

/// A connection whose far end is known.
fn create_described(w: &mut World) -> String {
    let made = w.ask("CRCX", E, &[&["C: A1", "M: sendrecv"][..], &SDP].concat());
    assert_eq!(made.code, Some(200), "{made:?}");
    connection(&made)
}

/// Every item of every package of a channel of this kind, but for B, whose events come of what is done with others, and G/pat, which is for
/// what both ends were provisioned with (`private_patterns_are_not_provisioned`).
fn items(kind: ChannelKind) -> Vec<EventId> {
    let all = packages(kind).iter().filter(|&&package| package != PackageId::B).flat_map(|package| package.items());
    all.filter(|item| format!("{item:?}") != "G/pat").collect()
}

/// What has to be said in a request to have an event detected, and what is reported with it.
fn event_parameters(name: &str) -> (&'static str, &'static str) {
    match name {
        "T/sit" => ("(3)", "(3)"),
        "T/tp" => ("(7)", "(7)"),
        "R/pl" => ("(100)", "(100)"),
        "R/iu" => ("(4)", "(4)"),
        "MS/inf" | "MD/inf" => ("", "(k0,5,5,s0)"),
        "MS/rel" | "DT/rel" | "MD/rel" | "MO/rel" => ("", "(0)"),
        _ => ("", ""),
    }
}

/// PKG-01, EVT-01, EVT-10: each event is asked for, happens, and is notified, those that are persistent without being asked for.
#[test]
fn every_event_is_notified() {
    for kind in ChannelKind::ALL {
        let mut w = world(kind);
        let id = create_described(&mut w);
        let mut wrong = Vec::new();
        let mut seen = 0;
        for event in items(kind) {
            let name = format!("{event:?}");
            let Some(traits) = event.event() else { continue };
            // These come of signals.
            if name.ends_with("/oc") || name.ends_with("/of") {
                continue;
            }
            let on_connection = traits.place == Place::Connection;
            let bound = if on_connection { format!("@{id}") } else { String::new() };
            let (asked, reported) = event_parameters(&name);
            // A key of the group stands for the group.
            let happens = if name == "D/X" { "D/7".to_owned() } else { format!("{name}{reported}") };
            let expected = match happens.split_once('(') {
                Some((name, parameters)) => format!("{name}{bound}({parameters}"),
                None => format!("{happens}{bound}"),
            };
            let request = if traits.persistent { String::new() } else { format!("{name}{bound}(N){asked}") };
            let answer = code(&mut w, "RQNT", E, &["X: 1", "Q: discard", &format!("R: {request}")]);
            w.take_mail();
            if kind.has_hook() && traits.hook == HookRule::OffHook && !traits.persistent {
                assert_eq!(answer, 402, "{name}: nobody can dial on a line at rest");
                continue;
            }
            w.occur(E, &happens, on_connection.then_some(&id));
            let got = told(&mut w);
            if (answer, &got) != (200, &expected) {
                wrong.push(format!("{name}: {answer}, {got} for {expected}"));
            }
            seen += 1;
        }
        assert!(wrong.is_empty() && seen > 20, "{kind:?}, {seen} events: {wrong:#?}");
    }
}

/// What a signal is applied with.
fn signal_parameters(name: &str, id: &str) -> String {
    match name {
        "T/sit" => "2".into(),
        "T/ct" => "in=co1,out=co2".into(),
        "G/rbk" => id.into(),
        "D/DD" => "dg=5".into(),
        "D/DO" => "dg=5".into(),
        "MS/sup" => "addr(k0,5,5,s0)".into(),
        "DT/sup" => "addr(5,5)".into(),
        "MD/sup" => "ct(nda),id(k0,5,s0),addr(k0,5,s0)".into(),
        "MO/sup" => "id(k0,5,s0),addr(k0,5,s0)".into(),
        "MD/inf" => "k0,5,s0".into(),
        "SL/s" => "t/nm(to=100),t/mm(to=100)".into(),
        _ => String::new(),
    }
}

fn with(name: &str, parameters: &[&str]) -> String {
    let all: Vec<&str> = parameters.iter().copied().filter(|one| !one.is_empty()).collect();
    if all.is_empty() { name.into() } else { format!("{name}({})", all.join(",")) }
}

/// PKG-01, PKG-02, SIG-05, SIG-06, SIG-10: each signal of a channel without signalling is applied, audited, ends as its class says, and is told
/// of by the `oc` or `of` of its package, by its name alone.
#[test]
fn every_signal_is_applied_and_ends_as_its_class_says() {
    let mut w = world(ChannelKind::Clear);
    let id = create_described(&mut w);
    let mut wrong = Vec::new();
    for signal in items(ChannelKind::Clear) {
        let name = format!("{signal:?}");
        let Some(traits) = signal.signal() else { continue };
        let package = name.split_once('/').unwrap().0.to_owned();
        let bound = if traits.place == Place::Connection { format!("{name}@{id}") } else { name.clone() };
        let own = signal_parameters(&name, &id);
        let mut step = |w: &mut World, what: &str, parameters: &[&str], expected: (u16, &str), wait: u64| {
            w.take_mail();
            let answer = code(w, "RQNT", E, &[&["X: 1", "Q: discard"][..], parameters].concat());
            let shown = audit(w, E, "S");
            w.run_for(std::time::Duration::from_millis(wait));
            if (answer, shown.as_str()) != expected {
                wrong.push(format!("{name}, {what}: {answer} and {shown:?} for {expected:?}"));
            }
        };
        match traits.class {
            SignalClass::TimeOut { variable, .. } => {
                let timed = with(&bound, &[&own, if variable { "" } else { "to=200" }]);
                step(&mut w, "applied", &[&format!("S: {timed}"), &format!("R: {package}/oc(N),{package}/of(N)")], (200, &timed), 300);
                let ended = told(&mut w);
                // The card cannot play it.
                w.order_cards(CardOrder::Refuse(1));
                step(&mut w, "failed", &[&format!("S: {timed}"), &format!("R: {package}/of(N)")], (200, ""), 100);
                let failed = told(&mut w);
                w.order_cards(CardOrder::Refuse(0));
                for (got, event) in [(ended, "oc"), (failed, "of")] {
                    if got != format!("{package}/{event}({bound})") {
                        wrong.push(format!("{name}: {got:?} for {event}"));
                    }
                }
            }
            SignalClass::OnOff => {
                let on = with(&bound, &[&own, "+"]);
                step(&mut w, "on", &[&format!("S: {on}")], (200, &on), 0);
                step(&mut w, "left on", &["R: T/co1(N)"], (200, &on), 0);
                step(&mut w, "off", &[&format!("S: {}", with(&bound, &[&own, "-"]))], (200, ""), 0);
            }
            // Of lines: a channel without signalling has no hook to show (`trunk_items`).
            SignalClass::Brief { .. } if matches!(name.as_str(), "T/as" | "T/bl") => {
                step(&mut w, "refused", &[&format!("S: {name}")], (530, ""), 0)
            }
            SignalClass::Brief { .. } => step(&mut w, "played", &[&format!("S: {}", with(&bound, &[&own]))], (200, ""), 700),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// PKG-01, PKG-07: nothing that a channel claims is unknown (518, 522) or cannot be done at all (512, 513), whatever the state of the line.
#[test]
fn nothing_claimed_is_unknown() {
    for kind in ChannelKind::ALL {
        let mut w = world(kind);
        let id = create_described(&mut w);
        for item in items(kind) {
            let name = format!("{item:?}");
            if let Some(traits) = item.event() {
                let bound = if traits.place == Place::Connection { format!("@{id}") } else { String::new() };
                let answer = code(&mut w, "RQNT", E, &["X: 1", &format!("R: {name}{bound}(N){}", event_parameters(&name).0)]);
                assert!(matches!(answer, 200 | 401 | 402), "{kind:?}: R: {name}: {answer}");
            }
            if let Some(traits) = item.signal() {
                let bound = if traits.place == Place::Connection { format!("@{id}") } else { String::new() };
                let signal = with(&format!("{name}{bound}"), &[&signal_parameters(&name, &id)]);
                let answer = code(&mut w, "RQNT", E, &["X: 1", &format!("S: {signal}")]);
                assert!(matches!(answer, 200 | 401 | 402 | 530), "{kind:?}: S: {signal}: {answer}");
                assert_eq!(code(&mut w, "RQNT", E, &["X: 1"]), 200);
            }
        }
    }
}

/// PKG-04, PKG-05, PKG-10, EVT-09, EVT-10: what peers of version 0 send, with and without the prefix of the default package; groups; a parameter
/// stands behind the action.
#[test]
fn older_and_shorter_forms_are_understood() {
    each_layout(|w| {
        let id = create_described(w);
        for (list, expected) in [
            ("R: co1", 200),
            ("S: co1", 200),
            ("S: co2(to=100)", 200),
            ("S: t/lb", 200),
            ("S: t/lb(-)", 200),
            ("R: mt", 522),
            ("S: cg", 522),
            ("R: T/all", 200),
            ("R: */all@*", 200),
            ("R: */all", 200),
            ("S: T/all", 522),
            ("R: t/sit(N)(2)", 200),
            ("R: t/sit(2)", 523),
            ("R: t/co1(N)(to=5)", 538),
            ("R: d/dd(N)(to=100,dg=5)", 200),
            (&format!("S: t/mm,g/rt@{id},t/bz"), 200),
            ("S: r/co1", 538),
            (&format!("S: r/co1@{id}"), 200),
            ("R: r/co2(N)", 200),
        ] {
            assert_eq!(code(w, "RQNT", E, &["X: 1", "Q: discard", list]), expected, "{list}");
        }
        assert_eq!(code(w, "RQNT", E, &["X: 1", &format!("S: t/mm,g/rt@{id},t/bz")]), 200);
        assert_eq!(audit(w, E, "S"), format!("T/mm,G/rt@{id},T/bz"), "all of them together");
    });
}

/// The far end holds a key down.
fn hold(w: &mut World, key: u8, ms: u32) {
    let endpoint = w.plan.topology.lookup(E.as_bytes()).unwrap();
    let core = w.plan.owner(endpoint);
    w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, FarOrder::Hold(key, ms))));
}

/// D.17, D.19, RFC 3660 2.2: a key that is held is told of when it has been down for two seconds (L), for as long as was asked, or when it
/// goes up, with its length; whether it was asked for before it went down or after.
#[test]
fn keys_that_are_held_are_told_with_their_length() {
    each_layout(|w| {
        let ask = |w: &mut World, list: &str| {
            assert_eq!(code(w, "RQNT", E, &["X: 1", "Q: loop,discard", &format!("R: {list}")]), 200, "{list}");
            w.take_mail();
        };
        for (list, key, ms, expected) in [
            ("D/[0-9*#](N),D/L(N)", b'#', 2500, "D/# D/L"),
            ("D/[0-9*#](N),D/L(N)", b'#', 1500, "D/#"),
            ("D/L(N)", b'A', 2100, "D/L"),
            ("D/[0-9*#](N),D/DD(N)", b'#', 2500, "D/# D/DD(dg=#,to=2500)"),
            ("D/DD(N)(dg=#,to=2000)", b'#', 2500, "D/DD(dg=#,to=2000)"),
            ("D/DD(N)(dg=#,to=2000)", b'#', 1900, ""),
            ("D/DD(N)(dg=#,to=2000)", b'*', 2500, ""),
            ("D/DD(N)(dg=X)", b'7', 130, "D/DD(dg=7,to=130)"),
            ("D/DD(N)(dg=X)", b'*', 130, ""),
            ("D/DD(N),D/L(N)", b'1', 70_000, "D/L D/DD(dg=1,to=60000)"),
            ("D/all(N)", b'5', 2040, "D/5 D/L D/DD(dg=5,to=2040)"),
            ("D/[0-9](N)", b'5', 2500, "D/5"),
        ] {
            ask(w, list);
            hold(w, key, ms);
            w.run_for(MS * (ms + 300));
            let told: Vec<String> = super::notified(w).into_iter().map(|(_, events)| events).collect();
            assert_eq!(told.join(" "), expected, "{list}, {ms} ms");
        }
        // In step mode the length is asked for when the key is down already.
        assert_eq!(code(w, "RQNT", E, &["X: 1", "Q: discard", "R: D/#(N)"]), 200);
        hold(w, b'#', 3000);
        w.run_for(MS * 500);
        assert_eq!(told(w), "D/#");
        assert_eq!(code(w, "RQNT", E, &["X: 2", "Q: discard", "R: D/DD(N)(to=2000),D/L(A)"]), 200);
        w.run_for(MS * 1300);
        assert_eq!(told(w), "");
        w.run_for(MS * 400);
        assert_eq!(told(w), "D/L,D/DD(dg=#,to=2000)");
        w.run_for(3 * S);
        assert_eq!(told(w), "", "once");
    });
}

/// G.09: there are no patterns both ends were provisioned with, so none can be asked for, and nobody waits for one in vain.
#[test]
fn private_patterns_are_not_provisioned() {
    each_layout(|w| {
        for list in ["R: G/pat(N)(5)", "R: G/pat(N)", "S: G/pat(5)", "S: G/pat(5,+)", "R: T/co1(E(S(G/pat(5))))"] {
            assert_eq!(code(w, "RQNT", E, &["X: 1", list]), 538, "{list}");
        }
    });
}

/// G.11: the old form of ringback on a connection: what is played is that of `rt@`, whatever it is called; it needs a connection that is
/// there and has a far end, and fails with it.
#[test]
fn old_ringback_is_ringback_on_a_connection() {
    each_layout(|w| {
        let id = create_described(w);
        let ask = |w: &mut World, list: &str| code(w, "RQNT", E, &["X: 1", "R: G/oc(N),G/of(N)", "Q: loop", list]);
        assert_eq!(ask(w, &format!("S: G/rbk({id},to=2000)")), 200);
        assert_eq!((w.playing(E), audit(w, E, "S")), (format!("G/rt@{id}"), format!("G/rbk({id},to=2000)")));
        w.take_mail();
        w.run_for(3 * S);
        assert_eq!((told(w), w.playing(E)), ("G/oc(G/rbk)".into(), String::new()));
        assert_eq!(ask(w, "S: G/rbk(*)"), 200);
        assert_eq!((w.playing(E), audit(w, E, "S")), (format!("G/rt@{id}"), "G/rbk(*)".into()));
        assert_eq!(ask(w, "S:"), 200);
        assert_eq!(w.playing(E), "");
        // The carrier's own connection has its name from then on.
        let mdcx = ["C: A1", &format!("I: {id}"), "X: 2", "R: G/of(N)", "S: G/rbk($)"];
        assert_eq!(code(w, "MDCX", E, &mdcx), 200);
        assert_eq!((w.playing(E), audit(w, E, "S")), (format!("G/rt@{id}"), format!("G/rbk({id})")));
        assert_eq!(ask(w, "S: G/rbk(7FFFFFFF)"), 515);
        assert_eq!(ask(w, "S: G/rbk($)"), 510);
        let bare = super::create(w, E, "A2");
        assert_eq!(ask(w, &format!("S: G/rbk({bare})")), 527);
        assert_eq!(code(w, "DLCX", E, &["C: A1", &format!("I: {id}")]), 250);
        w.run_for(100 * MS);
        assert_eq!((told(w), w.playing(E)), ("G/of(G/rbk)".into(), String::new()));
    });
}

/// SIG-09: what the table gives no duration lasts until it is stopped.
#[test]
fn what_has_no_duration_never_ends_by_itself() {
    each_layout(|w| {
        assert_eq!(code(w, "RQNT", E, &["X: 1", "R: G/oc(N)", "S: G/cg"]), 200);
        w.run_for(4000 * S);
        assert_eq!((told(w), audit(w, E, "S")), (String::new(), "G/cg".into()));
    });
}

/// COT-11, COT-12, COT-16: loop and transponder end by `(-)` only; a test on a channel in alarm is refused.
#[test]
fn continuity_tests_end_by_order_and_need_a_line() {
    each_layout(|w| {
        for signal in ["T/lb", "T/ct"] {
            let own = signal_parameters(signal, "");
            let on = with(signal, &[&own]);
            assert_eq!(code(w, "RQNT", E, &["X: 1", &format!("S: {on}")]), 200);
            assert_eq!(code(w, "RQNT", E, &["X: 2"]), 200);
            assert_eq!(audit(w, E, "S"), on);
            assert_eq!(code(w, "RQNT", E, &["X: 3", &format!("S: {}", with(signal, &[&own, "-"]))]), 200);
            assert_eq!(audit(w, E, "S"), "");
        }
        block(w, "ds/ds1-2/*", true);
        assert_eq!(code(w, "RQNT", E, &["X: 4", "S: T/lb"]), 501);
        block(w, "ds/ds1-2/*", false);
    });
}

/// EVT-05, EVT-07, SIG-14's kind (G-SIG-14), G-QUA-22, G-PER-03, G-AUE-09: what needs a hook the line does not have is refused when it is asked for,
/// whatever is in quarantine; implicit events are not checked; `ES` tells the state.
#[test]
fn what_the_line_cannot_do_now_is_refused() {
    let lines = |plan: &mut tollgate::proto::plan::Plan, _: &mut _| {
        plan.spans[1].signalling = Signalling { kind: ChannelKind::PbxFxs, ..Signalling::default() };
    };
    each_layout_with(lines, |w| {
        let endpoint = w.plan.topology.lookup(E.as_bytes()).unwrap();
        let hook = |w: &mut World, hook| {
            let core = w.plan.owner(endpoint);
            w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, FarOrder::Show(hook))));
            w.run_for(2 * S);
        };
        let ask = |w: &mut World, list: &str| code(w, "RQNT", E, &["X: 1", list]);
        assert_eq!(audit(w, E, "ES"), "BL/hu");
        for (list, expected) in
            [("R: bl/hd(N)", 200), ("R: bl/hu(N)", 402), ("R: bl/hf(N)", 402), ("S: bl/dl", 402), ("S: bl/rg", 200), ("R:", 200)]
        {
            assert_eq!(ask(w, list), expected, "{list}, on-hook");
        }
        hook(w, Hook::Off);
        assert_eq!((told(w), audit(w, E, "ES")), ("BL/hd".into(), "BL/hd".into()));
        // It is off-hook whether or not that has been told.
        for (list, expected) in [
            ("R: bl/hd(N)", 401),
            ("S: bl/rg", 401),
            ("R: bl/hu(N),bl/hf(N)", 200),
            ("S: bl/dl", 200),
            ("T: bl/hd", 200),
            ("B/PR: bl/hd", 200),
            ("R:", 200),
        ] {
            assert_eq!(ask(w, list), expected, "{list}, off-hook");
        }
        hook(w, Hook::On);
        assert_eq!(audit(w, E, "ES"), "BL/hu");
    });
}

/// EVT-06, CAS-10: a request that the line refuses leaves no trace, also when another command carries it, which fails too.
#[test]
fn a_refused_request_leaves_no_trace() {
    let trunks = |plan: &mut tollgate::proto::plan::Plan, _: &mut _| {
        plan.spans[1].signalling = Signalling { kind: ChannelKind::CasMf, ..Signalling::default() };
    };
    each_layout_with(trunks, |w| {
        let id = format!("I: {}", create_described(w));
        assert_eq!(code(w, "RQNT", E, &["X: 1", "R: ms/inf(N)", "T: T/co1", "D: 1"]), 200);
        let endpoint = w.plan.topology.lookup(E.as_bytes()).unwrap();
        let core = w.plan.owner(endpoint);
        let digits = tollgate::proto::package::parameters::Digits::NONE;
        w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, FarOrder::Seize(DigitKind::Mf, digits))));
        w.run_for(S);
        assert_eq!(told(w), "MS/sup");
        let before = super::snapshot(w, E);
        let request = ["X: 9", "R: ms/sup(N)", "T: T/co2", "D: 2"];
        assert_eq!(code(w, "RQNT", E, &request), 401);
        assert_eq!(code(w, "CRCX", E, &[&["C: A1", "M: recvonly"][..], &request].concat()), 401);
        assert_eq!(code(w, "MDCX", E, &[&["C: A1", &id, "M: inactive"][..], &request].concat()), 401);
        assert_eq!(code(w, "DLCX", E, &[&["C: A1", &id][..], &request].concat()), 401);
        assert_eq!(super::snapshot(w, E), before);
        assert_eq!(w.connections().len(), 1);
        w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, FarOrder::Show(Hook::On))));
        w.run_for(40 * S);
        assert_eq!(code(w, "RQNT", E, &["X: 9", "S: ms/rlc"]), 200);
        w.run_for(200 * MS);
    });
}
