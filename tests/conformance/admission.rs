//! Admission control in the call path: what is asked, what is refused, and that every end of a call frees its places (R15 to R23; the
//! table of cases in docs/decisions/admission.md).

use super::{MS, S, SDP, agent, block, code, connection, create, each_layout_with, fresh_id};
use std::time::Duration;
use tollgate::proto::base::{CoreId, Counter};
use tollgate::proto::cac::{Amount, Amounts, Cause, Class, Direction, Kind, Limits, Prefix, Rate, Scope, ScopeId, Tree};
use tollgate::proto::core::{AdmissionView, Answer, Ask};
use tollgate::proto::package::ChannelKind;
use tollgate::proto::package::parameters::Digits;
use tollgate::proto::plan::{Admission, Plan, Settings};
use tollgate::proto::trunk::{CardOrder, DigitKind, FarOrder, Hook};
use tollgate::sim::World;

const POOL: ScopeId = ScopeId(0);
const NORTH: ScopeId = ScopeId(1);
const SOUTH: ScopeId = ScopeId(2);
const ZONE: ScopeId = ScopeId(3);
const PEER: ScopeId = ScopeId(4);

/// A pool over two trunk groups, `ds/ds1-1` to 4 and `ds/ds1-5` to 8; a zone 192.0.2.0/24 and a peer 192.0.2.50.
fn limited(plan: &mut Plan, settings: &mut Settings, limits: [Limits; 5], change: impl Fn(&mut [Scope])) {
    let prefix = |text: &str| vec![Prefix::parse(text).expect("a prefix")];
    let mut scopes = vec![
        Scope::new(Kind::Pool, "carrier"),
        Scope::new(Kind::TrunkGroup, "north").under(POOL),
        Scope::new(Kind::TrunkGroup, "south").under(POOL),
        Scope { prefixes: prefix("192.0.2.0/24"), ..Scope::new(Kind::Zone, "core") },
        Scope { prefixes: prefix("192.0.2.50"), ..Scope::new(Kind::Peer, "sbc") },
    ];
    change(&mut scopes);
    let endpoints = plan.topology.len();
    let groups = (0..endpoints).map(|endpoint| if endpoint < endpoints / 2 { NORTH } else { SOUTH }).collect();
    plan.admission = Some(Admission {
        tree: Tree::new(scopes).expect("a tree"),
        groups,
        decide_within: Duration::from_millis(250),
        cluster: false,
        open: vec![],
    });
    settings.admission = limits.to_vec();
}

/// Runs a dialogue in every layout with these limits.
fn with_limits(limits: [Limits; 5], dialogue: impl Fn(&mut World)) {
    with_scopes(limits, |_| {}, dialogue);
}

fn with_scopes(limits: [Limits; 5], change: impl Fn(&mut [Scope]), dialogue: impl Fn(&mut World)) {
    each_layout_with(
        |plan, settings| limited(plan, settings, limits, &change),
        |w| {
            dialogue(w);
            // Whatever the story was: when all is over nothing is in use.
            w.without_journal();
            assert_eq!(code(w, "DLCX", "*", &[]), 250);
            w.run_for(S);
            for scope in [POOL, NORTH, SOUTH, ZONE, PEER] {
                assert!(used(w, scope).is_zero(), "{scope:?}: {:?}", used(w, scope));
            }
        },
    );
}

const NONE: Limits = Limits::NONE;

fn calls(limit: u32) -> Limits {
    Limits::of_calls(limit)
}

fn views(w: &mut World) -> Vec<AdmissionView> {
    let owners = w.plan.owners.clone();
    let view = |owner: &CoreId| match w.ask_core(*owner, Ask::Admission) {
        Answer::Admission(view) => view,
        other => panic!("{other:?}"),
    };
    owners.iter().map(view).collect()
}

/// What is in use over all cores.
fn used(w: &mut World, scope: ScopeId) -> Amounts {
    views(w).iter().fold(Amounts::ZERO, |sum, view| sum.plus(&view.used[usize::from(scope.0)]))
}

fn in_use(w: &mut World, scope: ScopeId) -> u32 {
    used(w, scope).get(Amount::Calls)
}

/// A connection with a remote description at this address.
fn described(address: &str) -> [String; 4] {
    ["".into(), "v=0".into(), format!("c=IN IP4 {address}"), "m=audio 40000 RTP/AVP 0".into()]
}

/// I3: as many calls as the limit, on whichever cores they are, and the place of one that ends goes to the next.
#[test]
fn a_trunk_group_takes_as_many_calls_as_its_limit() {
    with_limits([NONE, calls(5), NONE, NONE, NONE], |w| {
        let mut up = Vec::new();
        for n in 0..24 {
            let endpoint = format!("ds/ds1-{}/{}", 1 + n % 4, 1 + n / 4);
            let made = w.ask("CRCX", &endpoint, &["C: A1", "M: recvonly"]);
            match made.code {
                Some(200) => up.push((endpoint, connection(&made))),
                other => assert_eq!(other, Some(403), "{made:?}"),
            }
            assert_eq!(in_use(w, NORTH) as usize, up.len());
        }
        assert_eq!(up.len(), 5);
        assert_eq!(code(w, "CRCX", "ds/ds1-5/1", &["C: A1", "M: recvonly"]), 200);
        let (endpoint, id) = &up[0];
        assert_eq!(code(w, "DLCX", endpoint, &["C: A1", &format!("I: {id}")]), 250);
        assert_eq!(code(w, "CRCX", "ds/ds1-2/20", &["C: B2", "M: recvonly"]), 200);
        assert_eq!(code(w, "CRCX", "ds/ds1-1/21", &["C: B2", "M: recvonly"]), 403);
        assert_eq!(in_use(w, NORTH), 5);
    });
}

/// The text of a refusal says which limit it was; operators see which scope, and what it had.
#[test]
fn a_refusal_says_why() {
    with_limits([calls(1), NONE, NONE, NONE, NONE], |w| {
        create(w, "ds/ds1-1/1", "A1");
        let refused = w.ask("CRCX", "ds/ds1-6/2", &["C: AB", "M: recvonly"]);
        assert!(refused.line.contains("403") && refused.line.contains("call limit reached"), "{refused:?}");
        let denials: Vec<_> = views(w).into_iter().flat_map(|view| view.denials).collect();
        let [denial] = &denials[..] else { panic!("{denials:?}") };
        assert_eq!((denial.denial.scope, denial.denial.cause, denial.denial.used, denial.denial.limit), (POOL, Cause::Calls, 1, 1));
        assert_eq!(denial.call.to_string(), "AB");
        assert_eq!(w.counter(Counter::AdmissionRefused), 1);
    });
}

/// R45: a warning stands from its threshold on, until use is well below.
#[test]
fn much_in_use_is_an_alarm_until_it_is_little() {
    let limits = Limits { warn_percent: Some(75), clear_percent: 25, ..calls(4) };
    with_limits([NONE, limits, NONE, NONE, NONE], |w| {
        let warnings = |w: &mut World| {
            let lead = w.plan.lead();
            w.run_for(S);
            match w.ask_core(lead, Ask::Facilities) {
                Answer::Facilities(view) => view.warnings,
                other => panic!("{other:?}"),
            }
        };
        (1..=2).for_each(|line| drop(create(w, &format!("ds/ds1-{line}/1"), "A1")));
        assert_eq!(warnings(w), []);
        create(w, "ds/ds1-3/1", "A1");
        assert_eq!(warnings(w), [(NORTH, Amount::Calls)]);
        assert_eq!(code(w, "DLCX", "ds/ds1-1/1", &[]), 250);
        assert_eq!(warnings(w), [(NORTH, Amount::Calls)]);
        assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &[]), 250);
        assert_eq!(warnings(w), []);
    });
}

/// A repeat of a refused command gets the same answer, though there is room by now (R26).
#[test]
fn a_repeat_of_a_refused_command_is_refused_again() {
    with_limits([NONE, calls(1), NONE, NONE, NONE], |w| {
        create(w, "ds/ds1-1/1", "A1");
        let id = fresh_id(w);
        let command = format!("CRCX {id} ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nC: B\r\nM: recvonly\r\n");
        let first = super::raw(w, command.as_bytes());
        assert_eq!(first[0].code, Some(403));
        assert_eq!(code(w, "DLCX", "ds/ds1-1/1", &["C: A1"]), 250);
        assert_eq!(super::raw(w, command.as_bytes())[0].code, Some(403));
        assert_eq!(in_use(w, NORTH), 0);
    });
}

/// Every way a call can end frees its place: one connection, a call, an endpoint, a wildcard, the operator, the line out of service.
#[test]
fn every_end_of_a_call_frees_its_places() {
    with_limits([NONE, calls(4), NONE, NONE, NONE], |w| {
        w.without_journal();
        let full = |w: &mut World, how: &str, end: &dyn Fn(&mut World)| {
            for line in 1..=4 {
                assert_eq!(code(w, "CRCX", &format!("ds/ds1-{line}/3"), &["C: A1", "M: recvonly"]), 200, "before {how}");
            }
            assert_eq!(code(w, "CRCX", "ds/ds1-1/4", &["C: A1", "M: recvonly"]), 403, "{how}");
            end(w);
            w.run_for(S);
            assert_eq!(in_use(w, NORTH), 0, "{how}");
        };
        full(w, "each endpoint", &|w| (1..=4).for_each(|line| assert_eq!(code(w, "DLCX", &format!("ds/ds1-{line}/3"), &[]), 250)));
        full(w, "each call", &|w| (1..=4).for_each(|line| assert_eq!(code(w, "DLCX", &format!("ds/ds1-{line}/3"), &["C: A1"]), 250)));
        full(w, "a wildcard", &|w| assert_eq!(code(w, "DLCX", "*", &["C: A1"]), 250));
        full(w, "the operator", &|w| {
            for line in 1..=4 {
                let endpoint = w.plan.topology.lookup(format!("ds/ds1-{line}/3").as_bytes()).expect("an endpoint");
                w.free(endpoint);
            }
        });
        full(w, "out of service", &|w| (1..=4).for_each(|line| block(w, &format!("ds/ds1-{line}/*"), true)));
        (1..=4).for_each(|line| block(w, &format!("ds/ds1-{line}/*"), false));
        w.run_for(5 * S);
    });
}

/// A command that fails, or is undone, keeps no place: the card refuses, is too slow, or a deletion comes while it works.
#[test]
fn a_command_that_fails_keeps_no_place() {
    with_limits([NONE, calls(2), NONE, NONE, NONE], |w| {
        w.order_cards(CardOrder::Refuse(1));
        assert_eq!(code(w, "CRCX", "ds/ds1-1/1", &["C: A1", "M: recvonly"]), 403);
        w.order_cards(CardOrder::Refuse(0));
        assert_eq!(in_use(w, NORTH), 0);
        w.order_cards(CardOrder::Delay(500));
        let waits = w.command("CRCX", "ds/ds1-1/1", &["C: A1", "M: recvonly"]);
        w.run_for(100 * MS);
        assert_eq!(in_use(w, NORTH), 1);
        w.command("DLCX", "ds/ds1-1/1", &["C: A1"]);
        w.run_for(2 * S);
        assert_eq!(w.final_of(waits).code, Some(407));
        assert_eq!(in_use(w, NORTH), 0);
        w.order_cards(CardOrder::Delay(u32::MAX));
        let late = w.command("CRCX", "ds/ds1-1/1", &["C: A1", "M: recvonly"]);
        w.run_for(15 * S);
        assert_eq!(w.final_of(late).code, Some(406));
        w.order_cards(CardOrder::Delay(0));
        assert_eq!(in_use(w, NORTH), 0);
    });
}

/// Cases of the zone and the peer: by the longest prefix of the remote address; none while it is not known; taken when it is.
#[test]
fn zone_and_peer_are_those_of_the_remote_address() {
    with_limits([NONE, NONE, NONE, calls(2), calls(1)], |w| {
        let crcx = |w: &mut World, endpoint: &str, address: &str| {
            let sdp = described(address);
            let lines: Vec<&str> = ["C: A1", "M: sendrecv"].into_iter().chain(sdp.iter().map(String::as_str)).collect();
            code(w, "CRCX", endpoint, &lines)
        };
        assert_eq!(crcx(w, "ds/ds1-1/1", "192.0.2.50"), 200);
        assert_eq!((in_use(w, ZONE), in_use(w, PEER)), (1, 1));
        assert_eq!(crcx(w, "ds/ds1-2/1", "192.0.2.50"), 403);
        assert_eq!(crcx(w, "ds/ds1-2/1", "192.0.2.51"), 200);
        assert_eq!(crcx(w, "ds/ds1-3/1", "192.0.2.52"), 403);
        assert_eq!(crcx(w, "ds/ds1-3/1", "198.51.100.1"), 200);
        assert_eq!((in_use(w, ZONE), in_use(w, PEER), in_use(w, NORTH)), (2, 1, 3));
        // Not known yet: the trunk group alone; the description comes, and finds the zone full.
        let id = format!("I: {}", create(w, "ds/ds1-4/1", "A1"));
        let modify = |w: &mut World, address: &str| {
            let sdp = described(address);
            let lines: Vec<&str> = ["C: A1", &id].into_iter().chain(sdp.iter().map(String::as_str)).collect();
            code(w, "MDCX", "ds/ds1-4/1", &lines)
        };
        assert_eq!(modify(w, "192.0.2.60"), 403);
        assert_eq!((in_use(w, ZONE), in_use(w, NORTH)), (2, 4));
        assert_eq!(w.ask("AUCX", "ds/ds1-4/1", &[&id, "F: RC"]).description, "v=0\r\n");
        assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &["C: A1"]), 250);
        assert_eq!(modify(w, "192.0.2.60"), 200);
        assert_eq!((in_use(w, ZONE), in_use(w, PEER)), (2, 1));
        // It moves away again.
        assert_eq!(modify(w, "198.51.100.9"), 200);
        assert_eq!((in_use(w, ZONE), in_use(w, NORTH)), (1, 3));
    });
}

/// Cases of the direction: as the trunk group only goes; else without a remote description from the trunk, with one to it, and the
/// first half of a pair from it, the second one to it.
#[test]
fn the_direction_is_that_of_the_trunk_group_or_of_the_description() {
    let inbound = |w: &mut World, scope| used(w, scope).get(Amount::Inbound);
    let outbound = |w: &mut World, scope| used(w, scope).get(Amount::Outbound);
    with_scopes(
        [NONE; 5],
        |scopes| scopes[2].one_way = Some(Direction::Outbound),
        |w| {
            create(w, "ds/ds1-1/1", "A1");
            assert_eq!((inbound(w, NORTH), outbound(w, NORTH)), (1, 0));
            let with_description = [&["C: A1", "M: sendrecv"][..], &SDP].concat();
            assert_eq!(code(w, "CRCX", "ds/ds1-1/2", &with_description), 200);
            assert_eq!((inbound(w, NORTH), outbound(w, NORTH)), (1, 1));
            create(w, "ds/ds1-5/1", "A1");
            assert_eq!((inbound(w, SOUTH), outbound(w, SOUTH)), (0, 1));
            let pair = ["C: B2", "M: sendrecv", "Z2: ds/ds1-2/9@tgw.example.net"];
            assert_eq!(code(w, "CRCX", "ds/ds1-1/9", &pair), 200);
            assert_eq!((inbound(w, NORTH), outbound(w, NORTH)), (2, 2));
            // Nothing of a pair goes over the network.
            assert_eq!(used(w, NORTH).get(Amount::Kbits), 160);
        },
    );
    with_scopes(
        [NONE; 5],
        |scopes| scopes[1].undescribed = Direction::Outbound,
        |w| {
            create(w, "ds/ds1-1/1", "A1");
            assert_eq!((inbound(w, NORTH), outbound(w, NORTH)), (0, 1));
        },
    );
}

/// And before that, by who has seized the line.
#[test]
fn the_direction_is_that_of_the_seizure_where_the_line_shows_it() {
    each_layout_with(
        |plan, settings| {
            plan.spans.iter_mut().for_each(|span| span.signalling.kind = ChannelKind::CasMf);
            limited(plan, settings, [NONE; 5], |scopes| scopes[1].undescribed = Direction::Outbound);
        },
        |w| {
            let endpoint = w.plan.topology.lookup(b"ds/ds1-1/5").expect("an endpoint");
            let core = w.plan.owner(endpoint);
            w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, FarOrder::Seize(DigitKind::Mf, Digits::NONE))));
            w.run_for(300 * MS);
            create(w, "ds/ds1-1/5", "A1");
            assert_eq!(used(w, NORTH).get(Amount::Inbound), 1);
            create(w, "ds/ds1-2/5", "A1");
            assert_eq!(used(w, NORTH).get(Amount::Outbound), 1);
            w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, FarOrder::Show(Hook::On))));
            w.run_for(3 * S);
        },
    );
}

/// Cases of the class, R17: priority has head room, emergency passes always and counts.
#[test]
fn the_class_is_that_of_the_trunk_group() {
    let five = Limits { priority_percent: 20, ..calls(5) };
    for (class, taken) in [(Class::Normal, 5), (Class::Priority, 6), (Class::Emergency, 8)] {
        with_scopes(
            [five, NONE, NONE, NONE, NONE],
            |scopes| scopes[1].class = class,
            |w| {
                let made = (0..8).filter(|n| code(w, "CRCX", &format!("ds/ds1-{}/{}", 1 + n % 4, 1 + n), &["C: A1", "M: recvonly"]) == 200);
                assert_eq!(made.count(), taken, "{class:?}");
                assert_eq!(in_use(w, POOL) as usize, taken);
                // Normal calls have no place left.
                assert_eq!(code(w, "CRCX", "ds/ds1-5/1", &["C: A1", "M: recvonly"]), 403);
            },
        );
    }
}

/// Want of bandwidth is 404, and an agent may have another code for all refusals.
#[test]
fn want_of_bandwidth_is_404_and_agents_have_their_own_code() {
    let limits = [NONE, Limits { kbits: 170, ..NONE }, NONE, NONE, NONE];
    with_limits(limits, |w| {
        create(w, "ds/ds1-1/1", "A1");
        create(w, "ds/ds1-2/1", "A1");
        assert_eq!(code(w, "CRCX", "ds/ds1-3/1", &["C: A1", "M: recvonly"]), 404);
        assert_eq!(used(w, NORTH).get(Amount::Kbits), 160);
    });
    each_layout_with(
        |plan, settings| {
            limited(plan, settings, limits, |_| {});
            settings.agents[0].admission_code = Some(502);
        },
        |w| {
            create(w, "ds/ds1-1/1", "A1");
            create(w, "ds/ds1-2/1", "A1");
            assert_eq!(code(w, "CRCX", "ds/ds1-3/1", &["C: A1", "M: recvonly"]), 502);
            let id = fresh_id(w);
            let command = format!("CRCX {id} ds/ds1-3/1@tgw.example.net MGCP 1.0\r\nC: A1\r\nM: recvonly\r\n");
            assert_eq!(super::raw_from(w, agent(2, 2727), command.as_bytes())[0].code, Some(404));
        },
    );
}

/// R23: a change of the packetization that needs more bandwidth than there is changes nothing.
#[test]
fn a_refused_change_leaves_the_connection_as_it_was() {
    with_limits([NONE, Limits { kbits: 90, ..NONE }, NONE, NONE, NONE], |w| {
        let id = format!("I: {}", create(w, "ds/ds1-1/1", "A1"));
        assert_eq!(code(w, "MDCX", "ds/ds1-1/1", &["C: A1", &id, "L: p:10, a:PCMU"]), 404);
        assert_eq!(used(w, NORTH).get(Amount::Kbits), 80);
        assert_eq!(code(w, "MDCX", "ds/ds1-1/1", &["C: A1", &id, "L: p:30, a:PCMU"]), 200);
        assert_eq!(used(w, NORTH).get(Amount::Kbits), 75);
        w.order_cards(CardOrder::Refuse(1));
        assert_eq!(code(w, "MDCX", "ds/ds1-1/1", &["C: A1", &id, "L: p:20, a:PCMU"]), 403);
        w.order_cards(CardOrder::Refuse(0));
        assert_eq!(used(w, NORTH).get(Amount::Kbits), 75);
    });
}

/// R18.
#[test]
fn calls_that_come_too_fast_are_refused() {
    let rate = Some(Rate { per_second: 1, burst: 3 });
    with_limits([NONE, Limits { inbound_rate: rate, ..NONE }, NONE, NONE, NONE], |w| {
        let try_some = |w: &mut World, from: u32| {
            (from..from + 6).filter(|n| code(w, "CRCX", &format!("ds/ds1-{}/{n}", 1 + n % 4), &["C: A1", "M: recvonly"]) == 200).count()
        };
        let made = try_some(w, 1);
        assert!((3..=4).contains(&made), "{made}");
        w.run_for(10 * S);
        let made = try_some(w, 10);
        assert!((3..=4).contains(&made), "{made}");
    });
}

/// A pair takes a place for each of its halves, or none.
#[test]
fn a_pair_takes_two_places_or_none() {
    with_limits([NONE, calls(3), NONE, NONE, NONE], |w| {
        let pair = |w: &mut World, n: u32| {
            let second = format!("Z2: ds/ds1-3/{n}@tgw.example.net");
            code(w, "CRCX", &format!("ds/ds1-2/{n}"), &["C: A1", "M: sendrecv", &second])
        };
        assert_eq!((pair(w, 1), in_use(w, NORTH)), (200, 2));
        assert_eq!((pair(w, 2), in_use(w, NORTH)), (403, 2));
        assert_eq!(w.connections().len(), 2);
        w.run_for(S);
        assert_eq!(code(w, "DLCX", "ds/ds1-3/1", &["C: A1"]), 250);
        assert_eq!(in_use(w, NORTH), 1);
    });
}

/// An any-of name is admitted in the trunk group of the channel that was found.
#[test]
fn an_any_of_name_counts_where_its_channel_is() {
    with_limits([calls(2), NONE, NONE, NONE, NONE], |w| {
        assert_eq!(code(w, "CRCX", "ds/ds1-3/$", &["C: A1", "M: recvonly"]), 200);
        assert_eq!((in_use(w, NORTH), in_use(w, SOUTH)), (1, 0));
        assert_eq!(code(w, "CRCX", "ds/ds1-6/$", &["C: A1", "M: recvonly"]), 200);
        assert_eq!((in_use(w, NORTH), in_use(w, SOUTH)), (1, 1));
        assert_eq!(code(w, "CRCX", "ds/ds1-3/$", &["C: A1", "M: recvonly"]), 403);
    });
}

/// R21, I16: a reload lowers a limit without cutting a call, and a raised one is there for the next.
#[test]
fn a_reload_changes_limits_and_cuts_no_call() {
    with_limits([NONE, calls(4), NONE, NONE, NONE], |w| {
        (1..=4).for_each(|line| drop(create(w, &format!("ds/ds1-{line}/1"), "A1")));
        w.reload(|settings| settings.admission[1] = calls(2));
        w.run_for(S);
        assert_eq!(in_use(w, NORTH), 4);
        assert_eq!(code(w, "DLCX", "ds/ds1-1/1", &[]), 250);
        assert_eq!(code(w, "CRCX", "ds/ds1-1/2", &["C: A1", "M: recvonly"]), 403);
        w.reload(|settings| settings.admission[1] = calls(5));
        w.run_for(S);
        create(w, "ds/ds1-1/2", "A1");
        create(w, "ds/ds1-2/2", "A1");
        assert_eq!(code(w, "CRCX", "ds/ds1-3/2", &["C: A1", "M: recvonly"]), 403);
        assert_eq!(in_use(w, NORTH), 5);
    });
}

/// A core that stands still with the places keeps nobody waiting for long: 403 after a quarter of a second.
#[test]
fn a_core_that_stands_still_keeps_no_call_waiting() {
    for (decide_within, look) in [(250, 400), (100, 150)] {
        // Another core receives, so that only the claim meets the one that stands still.
        let mut w = World::new(super::setup(tollgate::sim::Layout::Split3, 1), |plan, settings| {
            limited(plan, settings, [NONE, calls(0), NONE, NONE, NONE], |_| {});
            plan.admission.as_mut().expect("limits").decide_within = Duration::from_millis(decide_within);
        });
        let other = w.plan.owners[1];
        let endpoint = (1..=4).map(|line| format!("ds/ds1-{line}/1")).find(|name| w.plan.home(name.as_bytes()) == other).expect("one");
        // Its restart is told, and what it says passes the lead core.
        assert_eq!(code(&mut w, "CRCX", &endpoint, &["C: A1", "M: recvonly"]), 403);
        w.stall(w.plan.lead(), 2 * S);
        let id = w.command("CRCX", &endpoint, &["C: A1", "M: recvonly"]);
        w.run_for(look * MS);
        let refused = w.final_of(id);
        assert!(refused.code == Some(403) && refused.line.contains("does not answer"), "{refused:?}");
        w.run_for(5 * S);
        assert_eq!(w.counter(Counter::AdmissionOverdue), 1);
    }
}
