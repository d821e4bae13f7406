//! An H.248 gateway whose channels lie on several cores: contexts of terminations on different ones, cores that stand still, full rings.

use super::h248::{Controller, defect, world_of};
use super::{MS, S};
use std::time::Duration;
use tollgate::proto::base::{CoreId, Counter, EndpointIndex, Rng};
use tollgate::proto::core::{Answer, Ask};
use tollgate::proto::trunk::CardOrder;
use tollgate::sim::{Faults, Layout, World};

/// T1 5 to 8 are the gateway's; 5 and 6 lie on different cores wherever there are several.
fn world(layout: Layout, seed: u64) -> World {
    world_of(layout, seed, &[(4, 1), (5, 0), (6, 0), (7, 0), (8, 0)], true)
}

/// Layouts with several cores that own endpoints.
const SEVERAL: [Layout; 3] = [Layout::Two, Layout::Four, Layout::Split3];

const LOCAL: &str = "M{O{MO=SR},L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}}";
const REMOTE: &str = "M{R{\nv=0\nc=IN IP4 198.51.100.7\nm=audio 5004 RTP/AVP 0\n}}";

fn endpoint(world: &World, unit: u32, channel: u32) -> EndpointIndex {
    world.plan.topology.lookup(format!("ds/ds1-{unit}/{channel}").as_bytes()).expect("a channel")
}

/// The core that carries a T1 of the gateway, which is not the one that runs it; and a T1 of that one.
fn elsewhere(world: &World) -> (CoreId, u32, u32) {
    let carrier = |unit: u32| world.plan.carrier(endpoint(world, unit, 1));
    let runs = world.plan.gateways[0].core;
    let far = (5..=8).find(|unit| carrier(*unit) != runs).expect("several cores");
    let near = (5..=8).find(|unit| carrier(*unit) == runs).expect("it carries some itself");
    (carrier(far), far, near)
}

fn ended(world: &mut World, controller: &mut Controller) {
    controller.ask(world, "C=*{W-S=*}");
    world.run_for(2 * S);
    let Answer::Gateways(views) = world.ask_core(world.plan.gateways[0].core, Ask::Gateways) else { panic!("no answer") };
    assert_eq!((views[0].contexts, views[0].connections, world.media_open()), (0, 0, 0));
    world.check_quiet();
}

fn context_of(reply: &str) -> u32 {
    reply.strip_prefix("C=").and_then(|rest| rest.split('{').next()?.parse().ok()).unwrap_or_else(|| panic!("{reply}"))
}

/// CTX-01, CTX-10, SUB-01, MOV-01: terminations of all cores in one context, changed, audited, moved and subtracted like any others.
#[test]
fn a_context_has_terminations_on_different_cores() {
    for layout in Layout::ALL {
        let mut world = world(layout, 1);
        let mut controller = Controller::of(&mut world, 0);
        let three = "A=ds/ds1_5/1{M{O{MO=SR}}},A=ds/ds1_6/1{M{O{MO=SR}}},A=ds/ds1_7/1{M{O{MO=SR}}}";
        let reply = controller.ask(&mut world, &format!("C=${{{three},A=${{{LOCAL}}}}}"));
        let context = context_of(&reply);
        let rtp = reply.split("A=").nth(4).and_then(|rest| rest.split('{').next()).unwrap_or_else(|| panic!("{reply}")).to_owned();
        assert!(!reply.contains("ER=") && reply.contains("m=audio"), "{layout:?}: {reply}");
        // The stream, and two pairs of halves.
        assert_eq!(world.media_open(), 5, "{layout:?}");
        assert!(!controller.ask(&mut world, &format!("C={context}{{MF={rtp}{{{REMOTE}}}}}")).contains("ER="));
        world.run_for(S);
        let reply = controller.ask(&mut world, &format!("C={context}{{AV={rtp}{{AT{{SA}}}}}}"));
        assert!(reply.contains("rtp/ps=5"), "{layout:?}: {reply}");
        let reply = controller.ask(&mut world, &format!("C=${{MV=ds/ds1_6/1}},C={context}{{AV=*{{AT{{}}}}}}"));
        assert!(!reply.contains("ER=") && reply.matches("AV=").count() == 3 && !reply.contains("AV=ds/ds1_6"), "{layout:?}: {reply}");
        assert_eq!(world.media_open(), 3, "{layout:?}");
        // The first of them goes, which carried the pair: the others hear each other still.
        let reply = controller.ask(&mut world, &format!("C={context}{{A=ds/ds1_8/1,S=ds/ds1_5/1}}"));
        assert!(!reply.contains("ER="), "{layout:?}: {reply}");
        world.run_for(20 * MS);
        assert_eq!(world.media_open(), 3, "{layout:?}");
        let reply = controller.ask(&mut world, &format!("C={context}{{S=*}}"));
        assert!(reply.matches("S=").count() == 3 && reply.contains("rtp/ps=5"), "{layout:?}: {reply}");
        assert_eq!(world.counter(Counter::H248Adds), 5, "{layout:?}");
        ended(&mut world, &mut controller);
    }
}

/// NTF-01, SIG-03, SC-05: what another core's channel hears, plays and suffers is the gateway's to tell.
#[test]
fn events_signals_and_alarms_come_from_every_core() {
    for layout in SEVERAL {
        let mut world = world(layout, 2);
        let mut controller = Controller::of(&mut world, 0);
        let (_, far, _) = elsewhere(&world);
        let name = format!("ds/ds1_{far}/3");
        let events = "E=9{dd/d5,g/sc},SG{cg/rt{DR=20,NC={TO}}}";
        assert!(!controller.ask(&mut world, &format!("C=${{A={name}{{{events}}}}}")).contains("ER="));
        let id = controller.wait_request(&mut world, "g/sc{SigID=cg/rt,Meth=TO}");
        controller.send(&mut world, &format!("P={id}{{C=*{{N={name}}}}}"));
        world.occur(&format!("ds/ds1-{far}/3"), "D/5", None);
        controller.wait_request(&mut world, "dd/d5");
        world.take_mail();
        defect(&mut world, far, true);
        let id = controller.wait_request(&mut world, &format!("SC=ds/ds1_{far}/*{{SV{{MT=FO"));
        controller.answer(&mut world, id, &format!("ds/ds1_{far}/*"));
        assert!(controller.ask(&mut world, &format!("C=${{A=ds/ds1_{far}/4}}")).contains("ER=502{"));
        defect(&mut world, far, false);
        controller.wait_request(&mut world, &format!("SC=ds/ds1_{far}/*{{SV{{MT=RS"));
    }
}

/// TXN-03, G-SHD-03: what a core that stands still would have to do is refused, at once when that is known, and undone there when it goes
/// on; the other cores' terminations are served, and what is to end ends.
#[test]
fn a_core_that_stands_still_leaves_no_half_context() {
    for layout in SEVERAL {
        let mut world = world(layout, 3);
        let mut controller = Controller::of(&mut world, 0);
        let (core, far, near) = elsewhere(&world);
        let add = |unit: u32, channel: u32| format!("A=ds/ds1_{unit}/{channel}{{M{{O{{MO=SR}}}}}}");
        // One context with both, and one that is to be subtracted meanwhile.
        let reply = controller.ask(&mut world, &format!("C=${{{},{},A=${{{LOCAL}}}}}", add(far, 1), add(near, 1)));
        let mixed = context_of(&reply);
        let before = world.media_open();
        world.set_faults(Faults { missteer: 0, ..Faults::none() });
        world.stall(core, 3 * S);
        // It has just stopped: whoever waits for it gets an error soon.
        let started = world.now;
        let reply = controller.ask(&mut world, &format!("C=${{{},{}}}", add(near, 2), add(far, 2)));
        assert!(reply.contains(&format!("A=ds/ds1_{far}/2{{ER=510{{")), "{layout:?}: {reply}");
        let left = context_of(&reply);
        assert!(world.now.since(started) < 700 * MS, "{layout:?}: {:?}", world.now.since(started));
        // And then at once.
        let started = world.now;
        let reply = controller.ask(&mut world, &format!("C=${{{},{}}}", add(far, 3), add(near, 3)));
        assert!(reply.contains("ER=510{") && world.now.since(started) < 10 * MS, "{layout:?}: {reply}");
        let reply = controller.ask(&mut world, &format!("C={left}{{AV=*{{AT{{}}}}}}"));
        assert!(reply.matches("AV=").count() == 1, "{layout:?}: {reply}");
        let reply = controller.ask(&mut world, &format!("C=${{{},A=${{{LOCAL}}}}}", add(near, 4)));
        assert!(!reply.contains("ER="), "{layout:?}: {reply}");
        // A choice passes by what stands still.
        let reply = controller.ask(&mut world, &format!("C=${{A=ds/ds1_{far}/$}}"));
        assert!(reply.contains("ER=432{"), "{layout:?}: {reply}");
        let reply = controller.ask(&mut world, &format!("C={mixed}{{S=*}}"));
        assert!(reply.matches("S=").count() == 3 && !reply.contains("ER="), "{layout:?}: {reply}");
        assert!(world.now.since(started) < S && world.media_open() >= before, "it has not heard of it yet");
        world.run_for(4 * S);
        // The context with RTP beside the core that stood still.
        assert_eq!(world.media_open(), 1, "{layout:?}");
        let reply = controller.ask(&mut world, &format!("C=${{{},{}}}", add(far, 2), add(far, 3)));
        assert!(!reply.contains("ER="), "{layout:?}: {reply}");
        ended(&mut world, &mut controller);
    }
}

/// What the card of one core refuses is undone on the other.
#[test]
fn a_card_of_another_core_that_refuses_leaves_nothing_behind() {
    for layout in SEVERAL {
        for refused_there in [true, false] {
            let mut world = world(layout, 4);
            let mut controller = Controller::of(&mut world, 0);
            let (core, far, near) = elsewhere(&world);
            let context = context_of(&controller.ask(&mut world, &format!("C=${{A=ds/ds1_{near}/1}}")));
            let refuses = if refused_there { core } else { world.plan.gateways[0].core };
            world.ask_core(refuses, Ask::Card(CardOrder::Refuse(1)));
            let reply = controller.ask(&mut world, &format!("C={context}{{A=ds/ds1_{far}/1}}"));
            assert!(reply.contains("ER=510{"), "{layout:?}: {reply}");
            world.run_for(20 * MS);
            assert_eq!(world.media_open(), 0, "{layout:?}");
            assert!(controller.ask(&mut world, &format!("C=-{{AV=ds/ds1_{far}/1{{AT{{}}}}}}")).contains("AV="));
            world.ask_core(refuses, Ask::Card(CardOrder::Refuse(0)));
            let reply = controller.ask(&mut world, &format!("C={context}{{A=ds/ds1_{far}/1}}"));
            assert!(!reply.contains("ER=") && world.media_open() == 2, "{layout:?}: {reply}");
            ended(&mut world, &mut controller);
        }
    }
}

/// TRM-07, TXN-05: by a wildcard each channel is added when it is joined with the others, and what one core refuses is told of that one.
#[test]
fn an_add_by_wildcard_waits_for_each_channel() {
    for layout in SEVERAL {
        for refused in [0, 1] {
            let mut world = world(layout, 6);
            let mut controller = Controller::of(&mut world, 0);
            let (core, far, near) = elsewhere(&world);
            let context = context_of(&controller.ask(&mut world, &format!("C=${{A=ds/ds1_{near}/1}}")));
            world.ask_core(core, Ask::Card(CardOrder::Refuse(refused)));
            let reply = controller.ask(&mut world, &format!("C={context}{{O-A=ds/ds1_{far}/1*,AV=ds/ds1_{near}/1{{AT{{}}}}}}"));
            // 1 and 10 to 19.
            let (named, failed) = (reply.matches(&format!("A=ds/ds1_{far}/1")).count(), reply.matches("ER=510{").count());
            assert_eq!((named, failed), (11, refused as usize), "{layout:?}: {reply}");
            assert!(reply.contains("AV="), "what is behind it is done: {reply}");
            assert_eq!(world.media_open(), 2 * (11 - refused as usize), "{layout:?}");
            let reply = controller.ask(&mut world, &format!("C=${{MV=ds/ds1_{far}/1*}}"));
            assert_eq!(reply.matches("MV=").count(), 11 - refused as usize, "{layout:?}: {reply}");
            assert_eq!(world.media_open(), 2 * (10 - refused as usize), "{layout:?}");
            ended(&mut world, &mut controller);
        }
    }
}

/// One of the commands a controller may send about the first channels of all spans.
fn command(rng: &mut Rng, contexts: &[u32]) -> String {
    let mut one = |below: u64| rng.below(below);
    let context = match one(3) {
        0 if !contexts.is_empty() => contexts[one(contexts.len() as u64) as usize].to_string(),
        _ => "$".to_owned(),
    };
    let name = |one: &mut dyn FnMut(u64) -> u64| match one(8) {
        0 => format!("ds/ds1_{}/$", 5 + one(4)),
        _ => format!("ds/ds1_{}/{}", 5 + one(4), 1 + one(4)),
    };
    let any = if contexts.is_empty() { "*".to_owned() } else { contexts[one(contexts.len() as u64) as usize].to_string() };
    match one(10) {
        0..4 => {
            let many = 1 + one(4);
            let adds: Vec<String> = (0..many)
                .map(|_| match one(3) {
                    0 => format!("O-A=${{{LOCAL}}}"),
                    _ => format!("O-A={}{{M{{O{{MO=SR}}}}}}", name(&mut one)),
                })
                .collect();
            format!("C={context}{{{}}}", adds.join(","))
        }
        4 => format!("C={context}{{O-MV=ds/ds1_{}/{}}}", 5 + one(4), 1 + one(4)),
        5 => format!("C={any}{{O-MF=rtp/*{{{REMOTE}}}}}"),
        6 => format!("C={any}{{O-MF=*{{M{{O{{MO={}}}}}}}}}", ["SR", "RC", "IN"][one(3) as usize]),
        7 => format!("C={any}{{O-AV=*{{AT{{SA}}}}}}"),
        8 => format!("C={any}{{O-S=*}}"),
        _ => format!("C=*{{O-S=ds/ds1_{}/{}}}", 5 + one(4), 1 + one(4)),
    }
}

/// TXN-03, UDP-05: random transactions, many at a time, over lossy links, small rings that are full now and then, and cores that stand still:
/// each gets one reply, however often it is sent, and in the end no core has anything left.
#[test]
fn every_transaction_gets_one_reply_and_nothing_is_left_over() {
    let mut seen = Seen::default();
    for (seed, layout) in (0..24).zip(SEVERAL.into_iter().cycle()) {
        let mut world = world(layout, seed);
        let mut rng = Rng::new(seed);
        let mut controller = Controller::of(&mut world, 0);
        world.set_faults(Faults {
            loss: 20_000,
            duplicate: 100_000,
            link_max: 3 * MS,
            ring_max: MS,
            ring_full: 50_000,
            ring_capacity: 24,
            ..Faults::none()
        });
        if seed % 3 == 0 {
            world.order_cards(CardOrder::Delay(5));
        }
        let mut contexts: Vec<u32> = Vec::new();
        let mut open: Vec<(u32, String)> = Vec::new();
        for id in 1..=150 {
            open.push((10_000 + id, command(&mut rng, &contexts)));
            if rng.below(40) == 0 {
                let core = CoreId(rng.below(world.plan.cores.into()) as u8);
                world.stall(core, rng.duration(MS, 900 * MS));
            }
            if rng.below(20) == 0 {
                world.order_cards(CardOrder::Refuse(2));
            }
            for (id, actions) in &open {
                controller.send(&mut world, &format!("T={id}{{{actions}}}"));
            }
            world.run_for(rng.duration(MS, 40 * MS));
            contexts.extend(settle(&mut world, &controller, (&mut open, &mut seen), seed));
            let start = contexts.len().saturating_sub(6);
            contexts.drain(..start);
        }
        world.set_faults(Faults::none());
        world.order_cards(CardOrder::Refuse(0));
        world.order_cards(CardOrder::Delay(0));
        for _ in 0..200 {
            for (id, actions) in &open {
                controller.send(&mut world, &format!("T={id}{{{actions}}}"));
            }
            world.run_for(20 * MS);
            settle(&mut world, &controller, (&mut open, &mut seen), seed);
        }
        assert!(open.is_empty(), "seed {seed}: no reply to {open:?}");
        check_joined(&mut world, &mut controller, &mut seen, seed);
        ended(&mut world, &mut controller);
    }
    assert!(seen.over_cores > 10 && seen.refused > 20 && seen.counted > 100, "{seen:?}");
}

/// What the random transactions led to.
#[derive(Default, Debug)]
struct Seen {
    /// Contexts in the end with channels of several cores.
    over_cores: usize,
    /// Commands refused because a core stood still.
    refused: usize,
    /// Replies with statistics.
    counted: usize,
}

/// Every context is whole: each stream is open on a card, and each DS0 but the first has its two halves of a pair.
fn check_joined(world: &mut World, controller: &mut Controller, seen: &mut Seen, seed: u64) {
    world.run_for(3 * S);
    let list = controller.ask(world, "C=*{O-AV=*{AT{}}}");
    let wanted: usize = list
        .split("C=")
        .map(|context| {
            let physical = context.matches("AV=ds/").count();
            let spans = (5..=8).filter(|unit| context.contains(&format!("AV=ds/ds1_{unit}/")));
            let mut cores: Vec<CoreId> = spans.map(|unit| world.plan.carrier(endpoint(world, unit, 1))).collect();
            cores.dedup();
            seen.over_cores += usize::from(cores.len() > 1);
            context.matches("AV=rtp/").count() + 2 * physical.saturating_sub(1)
        })
        .sum();
    assert_eq!(world.media_open(), wanted, "seed {seed}: {list}");
}

/// Takes away transactions that were answered, and checks that all replies to one are the same: contexts that were made.
fn settle(world: &mut World, controller: &Controller, (open, seen): (&mut Vec<(u32, String)>, &mut Seen), seed: u64) -> Vec<u32> {
    let mut contexts = Vec::new();
    let mail = controller.mail(world);
    open.retain(|(id, actions)| {
        let head = format!("P={id}{{");
        let mut replies = mail.iter().filter_map(|text| text.split_once(&head)).map(|(_, body)| body.trim_start_matches("IA,"));
        let Some(first) = replies.next() else { return true };
        assert!(replies.all(|other| other == first), "seed {seed}: {actions}: two different replies");
        seen.refused += usize::from(first.contains("core that carries the termination"));
        seen.counted += usize::from(first.contains("rtp/ps="));
        contexts.extend(first.strip_prefix("C=").and_then(|rest| rest.split('{').next()?.parse::<u32>().ok()));
        false
    });
    contexts
}

/// How long a call over two cores takes: there and back once for each thing that is opened.
#[test]
fn a_call_over_two_cores_takes_two_ways_between_them() {
    let mut world = world(Layout::Two, 5);
    let mut controller = Controller::of(&mut world, 0);
    world.set_faults(Faults { link_min: MS, link_max: MS, ..Faults::none() });
    let (_, far, near) = elsewhere(&world);
    let started = world.now;
    controller.ask(&mut world, &format!("C=${{A=ds/ds1_{near}/1,A=ds/ds1_{far}/1}}"));
    assert!(world.now.since(started) <= Duration::from_millis(4), "{:?}", world.now.since(started));
    ended(&mut world, &mut controller);
}
