//! Random worlds: every layout, agents that meet on the same endpoints, of several machines that take over from each other and whose
//! addresses in the DNS change, strangers, links that lose, duplicate, reorder and part, cards that are slow, lines that fail, cores that
//! stall. First everything may go wrong and nothing wrong may happen; then the links are healed and
//! everything must come to its end.
//!
//! `TOLLGATE_SEED=n` runs one seed, `TOLLGATE_SEEDS=n` so many. `TOLLGATE_STEPS=n` lets things go wrong for at least so many events of
//! each; a world has some 6,000 without it.

use super::{MS, S};
use std::net::IpAddr;
use std::time::Duration;
use tollgate::proto::base::{CoreId, Counter, EndpointIndex, Rng};
use tollgate::proto::core::Administration;
use tollgate::proto::restart::BlockHow;
use tollgate::proto::trunk::{CardOrder, Defect};
use tollgate::sim::{Faults, Layout, RandomAgent, RandomPlan, Setup, Stranger, World};

/// What goes wrong beyond the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trouble {
    /// Nothing.
    None,
    /// Rings say they are full, transmit frames run out.
    Queues,
    /// Cards are slow, hang and refuse; lines fail.
    Cards,
    /// Cores stall.
    Stalls,
}

const TROUBLES: [Trouble; 4] = [Trouble::None, Trouble::Queues, Trouble::Cards, Trouble::Stalls];

pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs one seed; the digest of everything that happened.
fn run(seed: u64) -> u64 {
    let layout = Layout::ALL[seed as usize % 5];
    let trouble = TROUBLES[seed as usize / 5 % 4];
    let mut rng = Rng::new(seed).fork("scenario");
    let told = rng.below(3) > 0;
    let steps = number("TOLLGATE_STEPS").unwrap_or(0);
    let longer = if steps > 0 { format!("TOLLGATE_STEPS={steps} ") } else { String::new() };
    let replay = format!("{longer}TOLLGATE_SEED={seed} cargo test --test sim random ({trouble:?})");
    let small = rng.below(4) == 0;
    let mut more = Rng::new(seed).fork("more");
    let pairs = more.below(2) == 0;
    let mut w = World::new(Setup { told, replay, ..Setup::new(layout, seed) }, |plan, settings| {
        plan.limits.own_commands = 2048;
        plan.limits.slice = [3, 16, 200][rng.below(3) as usize];
        if small {
            plan.limits.jobs = 12;
            plan.limits.datagrams = 4;
            plan.limits.connections = 30;
            plan.limits.blob_blocks = 90;
            plan.limits.entities = 2;
        }
        settings.agents[1].refuse_while_restarting = rng.below(2) == 0;
        settings.agents[0].same_content = rng.below(4) == 0;
        if pairs {
            (0..2).for_each(|place| settings.agents[place].addresses.extend(machines(place)[1..].iter().copied()));
        }
    });
    w.tell_requests_apart();
    w.journal().in_order &= !small;
    if trouble == Trouble::Cards {
        w.lose_events();
    }
    for place in 0..1 + rng.below(2) as u8 {
        let agent = RandomPlan {
            address: IpAddr::from([192, 0, 2, 1 + place]),
            others: if pairs { machines(place.into())[1..].to_vec() } else { Vec::new() },
            spans: vec![1, 2, 3 + u32::from(place)],
            channels: 1 + rng.below(6) as u32,
            window: 1 + rng.below(30) as usize,
            pause: rng.duration(MS, 25 * MS),
            everything: rng.below(2) == 0,
            trouble: small || !told || trouble != Trouble::None,
        };
        w.add_agent(Box::new(RandomAgent::new(agent, w.now, rng.fork("agent"))));
    }
    if more.below(2) == 0 {
        let address = IpAddr::from([198, 51, 100, 7]);
        w.add_agent(Box::new(Stranger::new(address, w.now, more.fork("stranger"))));
    }
    // Safety: everything may go wrong.
    let mut rounds = 1 + rng.below(4);
    while rounds > 0 || w.steps() < steps {
        rounds = rounds.saturating_sub(1);
        w.set_faults(faults(&mut rng, trouble));
        for _ in 0..2 + rng.below(10) {
            disturb(&mut w, &mut rng, trouble);
            for _ in 0..more.below(20) {
                w.happen(EndpointIndex(24 * more.below(4) as u32 + more.below(3) as u32));
            }
            if pairs {
                disturb_pairs(&mut w, &mut more);
            }
            w.run_for(rng.duration(Duration::ZERO, 700 * MS));
        }
        for machine in [machines(0), machines(1)].concat() {
            w.partition(machine, false);
        }
    }
    // Liveness: all must end.
    w.set_faults(Faults { link_max: 5 * MS, ..Faults::none() });
    w.order_cards(CardOrder::Delay(0));
    w.order_cards(CardOrder::Refuse(0));
    for span in 1..=4 {
        let facility = w.facility(&format!("ds/ds1-{span}"));
        w.order_cards(CardOrder::Clear { facility, at_once: true });
    }
    w.administer(Administration::Unblock(w.plan.topology.select_all()));
    let now = w.now;
    w.agents().iter_mut().for_each(|agent| agent.wind_down(now));
    w.run_until_done(25 * S);
    // Finals that ask for 000 have it, timed-out cards are undone, spans are back.
    w.run_for(25 * S);
    if w.journal().unanswered() == 0 {
        w.check_quiet();
    }
    if number("TOLLGATE_SEED").is_some() {
        let lines: Vec<_> = w.agents().iter().map(|agent| agent.summary()).collect();
        println!("{layout:?} {trouble:?} {} steps, {} connections\n{}", w.steps(), w.connections().len(), lines.join("\n"));
    }
    w.clear_agents();
    w.answer_own(true);
    w.run_for(S);
    // An agent nobody played may still have to be told of the restart: asked again, as 405 wants (seed 349).
    let told = (0..5).find_map(|_| {
        Some(w.ask("DLCX", "*", &[]).code).filter(|&code| code != Some(405)).or_else(|| {
            w.run_for(S);
            None
        })
    });
    assert_eq!(told, Some(Some(250)));
    assert_eq!(w.ask("EPCF", "*", &["B: e:mu"]).code, Some(200));
    w.run_for(S);
    tell_all(&mut w, trouble);
    w.check_quiet();
    assert_eq!((w.connections().len(), w.media_open()), (0, 0));
    w.digest()
}

/// Every event that happened is told, once it is asked for again; what was lost is counted.
fn tell_all(w: &mut World, trouble: Trouble) {
    for round in 0..8 {
        if w.untold().is_empty() {
            break;
        }
        for endpoint in w.untold() {
            let name = format!("ds/ds1-{}/{}", 1 + endpoint.0 / 24, 1 + endpoint.0 % 24);
            let id = 3_000_000 + round * 1000 + endpoint.0;
            let request = format!("RQNT {id} {name}@tgw.example.net MGCP 1.0\r\nX: F{round}{:X}\r\nQ: loop\r\nR: T/oc(N)\r\n", endpoint.0);
            assert_eq!(ask_again(w, id, &request), Some(200), "{request}");
        }
        // Copies of what was sent just before may be 10 s apart.
        w.run_for(5 * S);
    }
    let lost = [Counter::NotifiesLost, Counter::QuarantineLost, Counter::ObservedLost].map(|counter| w.counter(counter));
    assert!(trouble == Trouble::Cards || lost != [0; 3] || w.untold().is_empty(), "untold: {:?}", w.untold());
}

/// Sends a command as an agent does, again and again until its final comes: its code. While Notify commands follow each other closely, a core may
/// have no frame left for it (`dropped_home_behind`).
fn ask_again(w: &mut World, id: u32, command: &str) -> Option<u16> {
    for _ in 0..8 {
        w.send_from((machines(0)[0], 2727).into(), 0, command.as_bytes());
        for _ in 0..40 {
            w.run_for(50 * MS);
            if let Some(reply) = w.replies_to(id).into_iter().find(tollgate::sim::Reply::is_final) {
                return reply.code;
            }
        }
    }
    None
}

fn faults(rng: &mut Rng, trouble: Trouble) -> Faults {
    let queues = trouble == Trouble::Queues;
    Faults {
        link_min: 200 * MS / 1000,
        link_max: rng.duration(MS, 150 * MS),
        loss: rng.below(150_000) as u32,
        burst: rng.below(6) as u32,
        duplicate: rng.below(200_000) as u32,
        ring_max: rng.duration(Duration::ZERO, 3 * MS),
        ring_capacity: if queues { 1 + rng.below(30) as usize } else { 1024 },
        ring_full: if queues { rng.below(80_000) as u32 } else { 0 },
        transmit_slots: if queues { 1 + rng.below(4) as usize } else { 1024 },
        transmit_max: if queues { rng.duration(10 * MS / 1000, 2 * MS) } else { 20 * MS / 1000 },
        missteer: rng.below(1_000_001) as u32,
    }
}

fn disturb(w: &mut World, rng: &mut Rng, trouble: Trouble) {
    match (trouble, rng.below(5)) {
        (_, 0) => w.partition(IpAddr::from([192, 0, 2, 1 + rng.below(2) as u8]), rng.below(2) == 0),
        (_, 1) => {
            let (vote, provisional) = (rng.duration(50 * MS, S), rng.duration(20 * MS, 400 * MS));
            w.reload(|settings| (settings.timers.vote, settings.timers.provisional_after) = (vote, provisional));
        }
        (Trouble::Cards, 2) => {
            let delay = [0, 1, 50, 300, 1500, u32::MAX][rng.below(6) as usize];
            w.order_cards(CardOrder::Delay(delay));
        }
        (Trouble::Cards, 3) => w.order_cards(CardOrder::Refuse(rng.below(5) as u32)),
        (Trouble::Cards, 4) if rng.below(2) == 0 => {
            let span = w.facility(&format!("ds/ds1-{}", 1 + rng.below(4)));
            let name = format!("ds/ds1-{}/*", 1 + rng.below(4));
            let selection = w.plan.topology.resolve(name.as_bytes(), false).unwrap();
            match rng.below(4) {
                0 => w.administer(Administration::Block(selection, BlockHow::Force)),
                1 => w.administer(Administration::Block(selection, BlockHow::Graceful(rng.duration(MS, 3 * S)))),
                2 => w.administer(Administration::Unblock(selection)),
                _ => {
                    let endpoints = w.plan.topology.endpoints_of(span);
                    let endpoint = EndpointIndex(endpoints.first + rng.below(6) as u32);
                    w.free(endpoint);
                }
            }
        }
        (Trouble::Cards, _) => {
            let facility = w.facility(&format!("ds/ds1-{}", 1 + rng.below(4)));
            let present = rng.below(2) == 0;
            w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present, at_once: rng.below(2) == 0 });
        }
        (Trouble::Stalls, _) => {
            let core = CoreId(rng.below(u64::from(w.plan.cores)) as u8);
            let time = [5 * MS, 100 * MS, 700 * MS, 3 * S][rng.below(4) as usize];
            w.stall(core, time);
        }
        _ => {}
    }
}

/// The machines of an agent.
fn machines(place: usize) -> [IpAddr; 3] {
    [1, 11, 21].map(|host| IpAddr::from([192, 0, 2, host + place as u8]))
}

/// Machines of agents part from the gateway, and the names agents are known by get other addresses.
fn disturb_pairs(w: &mut World, rng: &mut Rng) {
    let place = rng.below(2) as usize;
    let machine = machines(place)[rng.below(3) as usize];
    match rng.below(4) {
        0 => w.partition(machine, true),
        1 => w.partition(machine, false),
        2 => {
            let first = rng.below(3) as usize;
            let notify = (0..1 + rng.below(3) as usize).map(|n| (machines(place)[(first + n) % 3], 2727).into()).collect();
            let now = w.now;
            w.reload(|settings| (settings.agents[place].notify, settings.agents[place].resolved) = (notify, Some(now)));
        }
        _ => {}
    }
}

/// Seeds beyond the usual ones that have found something.
const FOUND: [u64; 5] = [934, 1674, 2394, 3112, 4371];

/// Every layout with every trouble, several times over.
#[test]
fn random_worlds_keep_every_rule() {
    if let Some(seed) = number("TOLLGATE_SEED") {
        run(seed);
        return;
    }
    for seed in FOUND.into_iter().chain(1..=number("TOLLGATE_SEEDS").unwrap_or(180)) {
        run(seed);
    }
}

/// The seed decides everything.
#[test]
fn a_seed_repeats_itself() {
    for seed in 1001..1011 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
    assert_ne!(run(1001), run(1006));
}
