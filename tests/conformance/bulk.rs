//! Bulk audit, package BA (RFC 3624).

use super::{MS, S, SDP, agent, block, code, create, each_layout, each_layout_with, large_world, raw, setup};
use tollgate::proto::base::Counter;
use tollgate::proto::cas::Signalling;
use tollgate::proto::core::Ask;
use tollgate::proto::package::ChannelKind;
use tollgate::proto::package::parameters::Digits;
use tollgate::proto::trunk::{CardOrder, DigitKind, FacilityKind, FacilityPlan, FarOrder, Hook};
use tollgate::sim::{Faults, Layout, Reply, Setup, World};

/// The package's parameters of a response, by name, in order.
fn report(reply: &Reply) -> Vec<(&str, &str)> {
    reply.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn ask(w: &mut World, endpoint: &str, parameters: &[&str]) -> Reply {
    let reply = w.ask("AUEP", endpoint, parameters);
    assert_eq!(reply.code, Some(200), "{endpoint} {parameters:?}: {reply:?}");
    reply
}

/// BA-01, BA-10, BA-11, BA-12: names in ranges, of all, of a part, and of one; channels of trunks are all there are.
#[test]
fn names_come_in_ranges() {
    each_layout(|w| {
        for (endpoint, names) in [
            ("*", "ds/ds1-[1-8]/[1-24]"),
            ("ds/*/*", "ds/ds1-[1-8]/[1-24]"),
            ("ds/*/7", "ds/ds1-[1-8]/7"),
            ("ds/ds1-3/*", "ds/ds1-3/[1-24]"),
            ("ds/ds1-3/9", "ds/ds1-3/9"),
        ] {
            assert_eq!(report(&ask(w, endpoint, &["BA/F: BA/Z"])), [("BA/Z", names)], "{endpoint}");
            assert_eq!(report(&ask(w, endpoint, &["ba/f: ba/x, ba/z"])), [("BA/Z", names), ("BA/X", names)], "{endpoint}");
        }
        let part = ask(w, "*", &["BA/F: BA/Z", "BA/SE: ds/ds1-3/5", "BA/NU: 50"]);
        let expected = [("BA/Z", "ds/ds1-3/[5-24]"), ("BA/Z", "ds/ds1-4/[1-24]"), ("BA/Z", "ds/ds1-5/[1-6]"), ("BA/NE", "ds/ds1-5/7")];
        assert_eq!(report(&part), expected);
    });
    let facilities = vec![
        FacilityPlan { kind: FacilityKind::T3, unit: 1, common_channel: false },
        FacilityPlan { kind: FacilityKind::E1, unit: 5, common_channel: true },
        FacilityPlan { kind: FacilityKind::E1, unit: 6, common_channel: true },
        FacilityPlan { kind: FacilityKind::E1, unit: 8, common_channel: true },
    ];
    let mut w = World::new(Setup { facilities, ..setup(Layout::Two, 1) }, |_, _| {});
    let names = ask(&mut w, "*", &["BA/F: BA/Z"]);
    let names: Vec<&str> = names.values("BA/Z");
    assert_eq!(names, ["ds/ds3-1/ds1-[1-28]/[1-24]", "ds/e1-[5-6]/[1-15,17-31]", "ds/e1-8/[1-15,17-31]"]);
}

/// BA-13, BA-14, BA-16, BA-17: connections and their modes, behind the names they are of; both lists are of the same endpoints.
#[test]
fn connections_are_counted() {
    each_layout(|w| {
        create(w, "ds/ds1-2/1", "A1");
        for mode in ["sendrecv", "inactive", "recvonly", "sendonly"] {
            let parameters = ["C: A1", &format!("M: {mode}")];
            assert_eq!(code(w, "CRCX", "ds/ds1-3/2", &[&parameters[..], &SDP].concat()), 200);
        }
        let all = ask(w, "*", &["BA/F: BA/C,BA/M"]);
        let mut lines = report(&all).into_iter();
        for span in 1..=8 {
            let name = format!("ds/ds1-{span}/[1-24]");
            let zeros = "0".repeat(24);
            let (counts, modes) = match span {
                2 => (format!("1{}", &zeros[1..]), format!("R{}", &zeros[1..])),
                3 => (format!("04{}", &zeros[2..]), format!("04BIRS{}", &zeros[2..])),
                _ => (zeros.clone(), zeros),
            };
            let expected = [("BA/EL", name.as_str()), ("BA/C", &counts), ("BA/M", &modes)];
            assert_eq!([lines.next().unwrap(), lines.next().unwrap(), lines.next().unwrap()], expected);
        }
        assert_eq!(lines.next(), None);
        // A few of them, and only those the name covers.
        let few = ask(w, "*", &["BA/F: BA/C", "BA/SE: ds/ds1-2/24", "BA/NU: 4"]);
        let expected = [("BA/EL", "ds/ds1-2/24"), ("BA/C", "0"), ("BA/EL", "ds/ds1-3/[1-3]"), ("BA/C", "040"), ("BA/NE", "ds/ds1-3/4")];
        assert_eq!(report(&few), expected);
        let cut = ask(w, "ds/ds1-2/*", &["BA/F: BA/C", "BA/SE: ds/ds1-2/23", "BA/NU: 12"]);
        assert_eq!(report(&cut), [("BA/EL", "ds/ds1-2/[23-24]"), ("BA/C", "00")]);
        let columns = ask(w, "ds/*/2", &["BA/F: BA/C"]);
        assert_eq!(columns.values("BA/C").concat(), "00400000");
        assert_eq!(ask(w, "ds/ds1-3/2", &["BA/F: BA/C"]).values("BA/C"), ["4"]);
    });
}

/// BA-06, BA-07: each type of state, alone and together; out of service is told whatever is asked.
#[test]
fn states_are_true_false_or_out_of_service() {
    each_layout(|w| {
        let state = |w: &mut World, types: &str| {
            let reply = ask(w, "ds/ds1-2/*", &[&format!("BA/F: BA/S({types})"), "BA/NU: 6"]);
            assert_eq!(reply.values("BA/EL"), ["ds/ds1-2/[1-6]"]);
            reply.values("BA/S").concat()
        };
        assert_eq!((state(w, "I"), state(w, "D,N,L,S,H")), ("TTTTTT".into(), "FFFFFF".into()));
        // The second waits for the answer to its Notify, the third for a request, the fourth plays, the fifth is looped.
        for channel in [2, 3] {
            let name = format!("ds/ds1-2/{channel}");
            assert_eq!(code(w, "RQNT", &name, &["X: 1", "R: T/co1(N)"]), 200);
            if channel == 2 {
                w.partition(agent(1, 0).ip(), true);
            }
            w.occur(&name, "T/co1", None);
            if channel == 2 {
                w.partition(agent(1, 0).ip(), false);
                assert_eq!(state(w, "N"), "FTFFFF");
                w.run_for(2 * S);
            }
        }
        assert_eq!(code(w, "RQNT", "ds/ds1-2/4", &["X: 1", "S: T/bz"]), 200);
        assert_eq!(code(w, "RQNT", "ds/ds1-2/5", &["X: 1", "S: T/lb"]), 200);
        assert_eq!((state(w, "n"), state(w, "L"), state(w, "s")), ("FFFFFF".into(), "FTTFFF".into(), "FFFTTF".into()));
        block(w, "ds/ds1-2/6", true);
        assert_eq!((state(w, "L, S"), state(w, "I"), state(w, "H")), ("FTTTTO".into(), "TTTTTO".into(), "FFFFFO".into()));
        block(w, "ds/ds1-2/6", false);
    });
}

/// BA-08: a line is busy when its far end is off-hook, or its machine is not idle.
#[test]
fn a_line_in_use_is_not_idle() {
    let trunks = |plan: &mut tollgate::proto::plan::Plan, _: &mut _| {
        plan.spans[1].signalling = Signalling { kind: ChannelKind::CasMf, ..Signalling::default() };
    };
    each_layout_with(trunks, |w| {
        let endpoint = w.plan.topology.lookup(b"ds/ds1-2/2").unwrap();
        let core = w.plan.owner(endpoint);
        let busy = |w: &mut World| ask(w, "ds/ds1-2/*", &["BA/F: BA/S(H)", "BA/NU: 3"]).values("BA/S").concat();
        assert_eq!(busy(w), "FFF");
        w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, FarOrder::Seize(DigitKind::Mf, Digits::NONE))));
        w.run_for(100 * MS);
        assert_eq!(busy(w), "FTF");
        w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, FarOrder::Show(Hook::On))));
        w.run_for(S);
        assert_eq!(busy(w), "FTF", "the agent has not released it");
        assert_eq!(code(w, "RQNT", "ds/ds1-2/2", &["X: 1", "S: ms/rlc"]), 200);
        w.run_for(S);
        assert_eq!(busy(w), "FFF");
    });
}

/// BA-05, BA-09, BA-19, PKG-12, G-PKG-10: what is wrong with a bulk audit has codes of the package.
#[test]
fn what_is_wrong_has_codes_of_the_package() {
    each_layout(|w| {
        let cases: &[(&[&str], u16)] = &[
            (&["BA/F:"], 802),
            (&["BA/SE: ds/ds1-2/1"], 802),
            (&["BA/F: BA/Z,BA/C"], 802),
            (&["BA/F: BA/Z,BA/S(I)"], 802),
            (&["BA/F: BA/C,BA/C"], 802),
            (&["BA/F: BA/S(I),BA/S(D)"], 802),
            (&["BA/F: BA/Q"], 802),
            (&["BA/F: C"], 802),
            (&["BA/F: BA/S"], 802),
            (&["BA/F: BA/C", "BA/XY: 1"], 802),
            (&["BA/F: BA/S(Q)"], 803),
            (&["BA/F: BA/S()"], 803),
            (&["BA/F: BA/S(I,)"], 803),
            (&["BA/F: BA/C", "BA/SE: ds/ds1-2/*"], 801),
            (&["BA/F: BA/C", "BA/SE: ds/ds1-2/1@tgw.example.net"], 801),
            (&["BA/F: BA/C", "BA/SE: ds/ds1-[1-2]/1"], 801),
            (&["BA/F: BA/C", "BA/SE: ds/ds1-9/1"], 806),
            (&["BA/F: BA/C", "BA/SE: ds/ds1-3/1"], 805),
            (&["BA/F: BA/C", "BA/NU: 0"], 805),
            (&["BA/F: BA/C", "BA/NU: 65536"], 805),
            (&["BA/F: BA/C", "BA/NU: x"], 805),
        ];
        for (parameters, expected) in cases {
            let reply = w.ask("AUEP", "ds/ds1-2/*", parameters);
            assert_eq!(reply.code, Some(*expected), "{parameters:?}: {reply:?}");
            assert!(reply.line.contains(&format!(" {} /BA ", reply.id)), "{reply:?}");
        }
        assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &["X: 1", "BA/F: BA/C"]), 510);
        assert_eq!(code(w, "AUEP", "ds/ds1-2/$", &["BA/F: BA/C"]), 500);
    });
}

/// BA-02, BA-15, BA-20: a report longer than the agent takes ends where the next one begins; a T3 is told in one, or in few.
#[test]
fn a_report_goes_on_where_it_ended() {
    let t3 = |unit| FacilityPlan { kind: FacilityKind::T3, unit, common_channel: false };
    let facilities = vec![t3(1), t3(2)];
    for layout in super::LAYOUTS {
        let mut w = World::new(Setup { facilities: facilities.clone(), ..setup(layout, 1) }, |_, _| {});
        create(&mut w, "ds/ds3-2/ds1-28/24", "A1");
        let whole = ask(&mut w, "ds/ds3-2/*", &["BA/F: BA/C,BA/M,BA/S(I)"]);
        assert_eq!((whole.values("BA/EL").len(), whole.values("BA/NE").len()), (28, 0));
        assert_eq!((whole.values("BA/C").concat(), whole.values("BA/S").concat()), (format!("{}1", "0".repeat(671)), "T".repeat(672)));
        assert_eq!(code(&mut w, "AUEP", "ds/ds3-2/*", &[]), 533);
        // Two of them do not fit.
        let (mut told, mut modes, mut next, mut reports) = (String::new(), String::new(), None, 0);
        loop {
            let start = next.map(|name| format!("BA/SE: {name}"));
            let reply = ask(&mut w, "*", &[&["BA/F: BA/C,BA/M,BA/S(D,N,L)"][..], start.as_deref().as_slice()].concat());
            told.push_str(&reply.values("BA/C").concat());
            modes.push_str(&reply.values("BA/M").concat());
            reports += 1;
            next = reply.values("BA/NE").first().map(|name| (*name).to_owned());
            if next.is_none() {
                break;
            }
        }
        assert_eq!((told, modes), (format!("{}1", "0".repeat(1343)), format!("{}R", "0".repeat(1343))));
        assert_eq!(reports, 2);
        w.run_for(3 * S);
        w.check_quiet();
    }
    let mut w = large_world(Layout::Two);
    assert_eq!(ask(&mut w, "*", &["BA/F: BA/C,BA/M,BA/S(D,N,L)"]).values("BA/EL").len(), 28);
}

/// BA-01, G-AUE-16, G-SHD-03: a report waits for no command and for no restart; a core that stands still fails it; a repeat gets it again.
#[test]
fn a_report_needs_every_core_of_its_endpoints() {
    for layout in [Layout::Two, Layout::Split3] {
        let mut w = World::new(setup(layout, 1), |_, _| {});
        let silent = *w.plan.owners.last().unwrap();
        let home = w.plan.owners[0];
        let local = (1..=8).map(|n| format!("ds/ds1-{n}/*")).find(|name| w.plan.home(name.as_bytes()) == home).unwrap();
        w.set_faults(Faults { missteer: 0, ..Faults::none() });
        let text = format!("AUEP 77 {local}@tgw.example.net MGCP 1.0\r\nBA/F: BA/C\r\n");
        let first = raw(&mut w, text.as_bytes());
        assert_eq!((first.len(), first[0].code), (1, Some(200)));
        assert_eq!(raw(&mut w, text.as_bytes()), first);
        w.stall(silent, 3 * S);
        assert_eq!(code(&mut w, "AUEP", &local, &["BA/F: BA/C"]), 200);
        let name = ["*", "ds/*/*", "ds/*/1", "ds/*/2", "ds/*/3"].into_iter().find(|name| w.plan.home(name.as_bytes()) == home);
        if let Some(name) = name {
            let stalled = w.counter(Counter::VoteTimeout);
            assert_eq!(code(&mut w, "AUEP", name, &["BA/F: BA/C"]), 400);
            assert_eq!(w.counter(Counter::VoteTimeout), stalled + 1);
        }
        w.run_for(5 * S);
        w.check_quiet();
    }
    let mut w = World::new(Setup { told: false, ..setup(Layout::Two, 1) }, |_, settings| {
        settings.timers.max_waiting_delay = Some(60 * S);
    });
    let reply = raw(&mut w, b"AUEP 7 ds/ds1-2/*@tgw.example.net MGCP 1.0\r\nBA/F: BA/S(I)\r\n");
    assert_eq!((reply.len(), reply[0].code), (1, Some(200)), "nothing in front of it: {reply:?}");
}
