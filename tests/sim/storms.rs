//! Bad days: the agent dies under thousands of calls, all spans bounce at once, a hundred gateways restart together (G-RSI-08, G-RST-01,
//! G-DIS-12, G-NTF).

use super::{MS, S, rsips};
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;
use tollgate::proto::base::{Counter, Rng};
use tollgate::proto::core::Ask;
use tollgate::proto::package::{find_item, find_package};
use tollgate::proto::trunk::{CardOrder, Defect, EventText, FacilityKind, FacilityPlan};
use tollgate::sim::{Layout, Reply, Setup, World};

/// T3s with calls; one more has none.
const T3S: u32 = 15;

fn t3s(count: u32) -> Vec<FacilityPlan> {
    (1..=count).map(|unit| FacilityPlan { kind: FacilityKind::T3, unit, common_channel: false }).collect()
}

/// A gateway of many T3s, with room for what happens on all of them at once.
fn large() -> World {
    let mut w = World::new(Setup { facilities: t3s(T3S + 1), ..Setup::new(Layout::Four, 3) }, |plan, settings| {
        plan.limits.slice = 512;
        plan.limits.own_commands = 2048;
        plan.limits.history_entries = 40_000;
        plan.limits.blob_blocks = 60_000;
        settings.overload.enter = 10 * S;
    });
    w.without_journal();
    w
}

/// Names of the endpoints of T3 `unit`.
fn channels(unit: u32) -> impl Iterator<Item = String> {
    (1..=28).flat_map(move |t1| (1..=24).map(move |channel| format!("ds/ds3-{unit}/ds1-{t1}/{channel}")))
}

fn request(w: &mut World, id: u32) {
    for unit in 1..=T3S {
        let answer = w.ask("RQNT", &format!("ds/ds3-{unit}/*/*"), &[&format!("X: {id}"), "R: T/co1(N)"]);
        assert_eq!(answer.code, Some(200), "{answer:?}");
    }
}

/// The lines of these endpoints show an event, all at once.
fn occur(w: &mut World, names: impl Iterator<Item = String>) {
    let event = find_package(b"T").and_then(|package| find_item(package, b"co1")).unwrap();
    for name in names {
        let endpoint = w.plan.topology.lookup(name.as_bytes()).unwrap();
        let order = CardOrder::Event { endpoint, connection: None, event, parameters: EventText::new(b"") };
        w.ask_core(w.plan.owner(endpoint), Ask::Card(order));
    }
}

/// Commands of the gateway with this verb, each once: what follows the verb's id.
fn told(w: &World, verb: &str) -> Vec<(u32, String)> {
    let mut seen = BTreeSet::new();
    let commands = rsips(w).into_iter().filter(|command| command.line.starts_with(verb) && seen.insert(command.id));
    commands.map(|command| (command.id, command.line.split([' ', '@']).nth(2).unwrap().to_owned())).collect()
}

/// Issue 4, must hold 4: the agent dies under 10,000 calls. Back within T-MAX it gets every Notify; after a long time its endpoints are
/// disconnected, and it is told so in one message for each T3.
#[test]
fn an_agent_that_dies_under_ten_thousand_calls_is_told_little_when_it_is_back() {
    let mut w = large();
    let names: Vec<String> = (1..=T3S).flat_map(channels).collect();
    for batch in names.chunks(200) {
        let ids: Vec<u32> = batch.iter().map(|name| w.command("CRCX", name, &["C: A1", "M: recvonly"])).collect();
        w.run_for(20 * MS);
        assert!(ids.into_iter().all(|id| w.replies_to(id).iter().any(|reply| reply.code == Some(200))));
        w.take_mail();
    }
    assert_eq!(names.len(), 10_080);
    request(&mut w, 1);
    w.take_mail();
    w.answer_own(false);
    occur(&mut w, names.iter().step_by(10).cloned());
    w.run_for(8 * S);
    assert!(!told(&w, "NTFY").is_empty());
    w.answer_own(true);
    w.run_for(60 * S);
    let notified: BTreeSet<String> = told(&w, "NTFY").into_iter().map(|(_, name)| name).collect();
    assert_eq!((notified.len(), w.counter(Counter::NotifiesLost), told(&w, "RSIP").len()), (1008, 0, 0));
    // Now for long, and everywhere.
    request(&mut w, 2);
    w.take_mail();
    w.answer_own(false);
    occur(&mut w, names.iter().cloned());
    let died = w.now;
    while w.counter(Counter::EndpointsDisconnected) < names.len() as u64 {
        w.run_for(5 * S);
        w.take_mail();
        assert!(w.now.since(died) < Duration::from_secs(3600), "{} are disconnected", w.counter(Counter::EndpointsDisconnected));
    }
    for _ in 0..30 {
        w.run_for(60 * S);
        w.take_mail();
    }
    w.answer_own(true);
    w.run_for(1300 * S);
    let told = told(&w, "RSIP");
    let names: BTreeSet<&str> = told.iter().map(|(_, name)| name.as_str()).collect();
    let expected: Vec<String> = (1..=T3S).map(|unit| format!("ds/ds3-{unit}/*/*")).collect();
    assert_eq!(names, expected.iter().map(String::as_str).collect(), "{told:?}");
    assert!(told.len() <= T3S as usize + 1, "{told:?}");
    assert_eq!(w.connections().len(), 10_080);
    assert_eq!(w.ask("RQNT", "ds/ds3-7/ds1-3/5", &["X: 3"]).code, Some(200));
}

/// G-NTF-05, issue 4, must hold 4, with the timers as they are by default: Notifies first sent within T-MAX before the agent is back all
/// arrive, whatever the outage; older ones are lost, and counted.
#[test]
fn an_outage_loses_no_notify_younger_than_t_max() {
    let names: Vec<String> = channels(1).collect();
    for outage in [3 * S, 8 * S, 15 * S, 19 * S, 26 * S] {
        let mut w = large();
        // The delay is known: the first repeats follow each other closely.
        for id in 1..=5 {
            assert_eq!(w.ask("RQNT", "ds/ds3-1/*/*", &[&format!("X: {id}"), "R: T/co1(N)"]).code, Some(200));
            occur(&mut w, names.iter().skip(id as usize).step_by(7).cloned());
            w.run_for(S);
        }
        request(&mut w, 6);
        w.take_mail();
        w.answer_own(false);
        let died = w.now;
        // Every second a hundredth of the endpoints.
        for second in 0..outage.as_secs() as usize {
            occur(&mut w, names.iter().skip(second).step_by(100).cloned());
            w.run_for(S);
        }
        let sent: BTreeSet<u32> = told(&w, "NTFY").into_iter().map(|(id, _)| id).collect();
        assert_eq!(w.now.since(died), outage);
        w.take_mail();
        w.answer_own(true);
        w.run_for(40 * S);
        let arrived = told(&w, "NTFY");
        let of_seconds = |count: u64| (0..count as usize).map(|second| names.iter().skip(second).step_by(100).count()).sum::<usize>();
        // The first ones are as old as T-MAX or older when the agent is back.
        let (events, old) = (of_seconds(outage.as_secs()), of_seconds((outage.as_secs() + 1).saturating_sub(20)));
        assert_eq!((sent.len(), arrived.len(), w.counter(Counter::NotifiesLost)), (events, events - old, old as u64), "{outage:?}");
        assert!(arrived.iter().all(|(id, _)| sent.contains(id)), "sent anew");
        if old == 0 {
            assert_eq!(told(&w, "RSIP"), []);
        }
    }
}

/// All spans fail and come back, together and one shortly after the other: two messages, or two for each T3 at the most.
#[test]
fn spans_that_bounce_make_few_messages() {
    for spread in [0, 3000] {
        let mut w = large();
        let mut rng = Rng::new(5);
        for present in [true, false] {
            let mut order: Vec<(u64, u32)> = (1..=T3S + 1).map(|unit| (rng.below(spread + 1), unit)).collect();
            order.sort_unstable();
            let started = w.now;
            for (ms, unit) in order {
                let wait = Duration::from_millis(ms).saturating_sub(w.now.since(started));
                w.run_for(wait);
                let facility = w.facility(&format!("ds/ds3-{unit}"));
                w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present, at_once: false });
            }
            w.run_for(20 * S);
        }
        let told = told(&w, "RSIP");
        let most = if spread == 0 { 2 } else { 2 * (T3S as usize + 1) };
        assert!(told.len() <= most, "{spread}: {told:?}");
        assert_eq!(w.ask("CRCX", "ds/ds3-2/ds1-1/1", &["C: A1", "M: recvonly"]).code, Some(200));
    }
}

/// A hundred T1 gateways restart together, and share an agent that takes 10 ms for each message. The random waits spread them over MWD
/// (2.5 s): it is never far behind, and nearly nothing is repeated.
#[test]
fn gateways_that_restart_together_do_not_swamp_their_agent() {
    let t1 = FacilityPlan { kind: FacilityKind::T1, unit: 1, common_channel: false };
    let setup = |seed| Setup { facilities: vec![t1], told: false, ..Setup::new(Layout::One, seed) };
    let mut gateways: Vec<World> = (0..100).map(|n| World::new(setup(100 + n), |_, _| {})).collect();
    let mut queue: VecDeque<(usize, SocketAddr, u32)> = VecDeque::new();
    let (mut longest, mut received, mut answered) = (0, 0, BTreeSet::new());
    for _ in 0..400 {
        for (place, gateway) in gateways.iter_mut().enumerate() {
            gateway.run_for(10 * MS);
            for mail in gateway.take_mail() {
                let command = Reply::all(&mail.bytes).remove(0);
                assert_eq!((command.get("RM"), command.line.contains(" *@")), (Some("restart"), true), "{command:?}");
                queue.push_back((place, mail.to, command.id));
                received += 1;
            }
        }
        longest = longest.max(queue.len());
        if let Some((place, agent, id)) = queue.pop_front() {
            gateways[place].send_from(agent, 0, format!("200 {id} OK\r\n").as_bytes());
            answered.insert(place);
        }
    }
    assert_eq!((answered.len(), queue.len()), (100, 0));
    assert!(longest <= 20 && received <= 120, "{longest} waiting, {received} messages");
}
