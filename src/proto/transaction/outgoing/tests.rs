//! Own commands over virtual time: a network of addresses that answer, lose or stay silent.

use super::*;
use std::collections::HashMap;

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);
const LIMITS: Limits = Limits { commands: 1024, large: 4, ordinal: 1, owners: 3 };
const CA: AgentId = AgentId(0);

fn address(n: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 2727 + n))
}

fn addresses(count: u16) -> Vec<SocketAddr> {
    (0..count).map(address).collect()
}

fn steady() -> Timers {
    Timers { jitter: false, ..Timers::default() }
}

fn machine(timers: Timers) -> Outgoing {
    Outgoing::new(Time::ZERO, &LIMITS, timers, Rng::new(1))
}

fn write(id: TransactionId, place: &mut [u8]) -> Option<usize> {
    let text = format!("NTFY {id} ds/ds3-1/ds1-1/1@tgw MGCP 1.0\r\n");
    place.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
    Some(text.len())
}

/// One thing that came out of the machine.
#[derive(Clone, PartialEq, Debug)]
enum Out {
    Copy { at: Duration, to: SocketAddr },
    Unanswered { at: Duration, user: u64 },
}

/// Drives the machine until `end`, each time at its deadline.
fn run(machine: &mut Outgoing, from: Time, end: Time) -> Vec<Out> {
    let mut log = Vec::new();
    let mut now = from;
    let mut bodies: HashMap<TransactionId, Vec<u8>> = HashMap::new();
    loop {
        while let Some(due) = machine.poll(now) {
            match due {
                Due::Transmit { id, to, body, repeat, .. } => {
                    // G-TRX-07: same id, same bytes.
                    assert!(repeat || !bodies.contains_key(&id));
                    assert_eq!(bodies.entry(id).or_insert_with(|| body.to_vec()), body);
                    log.push(Out::Copy { at: now.since(Time::ZERO), to });
                }
                Due::Unanswered { user, .. } => log.push(Out::Unanswered { at: now.since(Time::ZERO), user }),
            }
        }
        let next = machine.deadline();
        if next > end {
            return log;
        }
        now = next.max(now);
    }
}

fn copies(log: &[Out]) -> Vec<(Duration, SocketAddr)> {
    log.iter().filter_map(|o| if let Out::Copy { at, to } = o { Some((*at, *to)) } else { None }).collect()
}

fn end_of(log: &[Out]) -> Option<Duration> {
    log.iter().find_map(|o| if let Out::Unanswered { at, .. } = o { Some(*at) } else { None })
}

#[test]
fn a_silent_agent_is_asked_eight_times_with_growing_gaps_and_then_given_up() {
    // G-RTX-01, G-RTX-08, G-RTX-12, G-RTX-15: one address, 1 + 7 copies, gaps 0.2 0.4 0.8 1.6 3.2 4 4, then O-2.
    let mut machine = machine(steady());
    machine.send(Time::ZERO, CA, &addresses(1), 7, write).unwrap();
    let log = run(&mut machine, Time::ZERO, Time::ZERO + 100 * S);
    let at: Vec<_> = copies(&log).iter().map(|c| c.0.as_millis()).collect();
    assert_eq!(at, [0, 200, 600, 1400, 3000, 6200, 10_200, 14_200]);
    assert_eq!(log.last(), Some(&Out::Unanswered { at: Duration::from_millis(18_200), user: 7 }));
    assert!(machine.is_empty() && machine.outstanding(CA) == 0 && machine.deadline() == Time::NEVER);
}

const UNTIL_T_MAX: Delivery = Delivery { behind: None, until_t_max: true };

#[test]
fn what_is_said_once_is_repeated_until_t_max_however_near_the_agent_was() {
    // G-RTX-05, G-RTX-08, G-RTX-12: no more than 1 + 7 copies to the last address, its last one just before T-MAX.
    for seed in 0..60 {
        let (delay, count) = ([1, 20, 300][seed as usize % 3], 1 + seed as u16 / 3 % 3);
        let mut machine = Outgoing::new(Time::ZERO, &LIMITS, Timers::default(), Rng::new(seed));
        let mut now = Time::ZERO;
        for _ in 0..20 {
            let id = machine.send_with(now, CA, &addresses(1), 0, UNTIL_T_MAX, write).unwrap();
            run(&mut machine, now, now);
            now += delay * MS;
            machine.handle_response(now, 200, id, false);
        }
        machine.send_with(now, CA, &addresses(count), 7, UNTIL_T_MAX, write).unwrap();
        let log = run(&mut machine, now, now + 100 * S);
        let start = now.since(Time::ZERO);
        let sent: Vec<Duration> = copies(&log).iter().map(|copy| copy.0 - start).collect();
        assert!(sent.windows(2).all(|pair| pair[1] - pair[0] <= 10 * S), "{sent:?}");
        assert!((19_700 * MS..=20 * S).contains(sent.last().unwrap()), "{sent:?}");
        for address in addresses(count) {
            assert!(copies_to(&log, address) <= 8);
        }
        if count == 1 {
            assert_eq!(sent.len(), 8);
            assert!((20 * S..=24 * S).contains(&(end_of(&log).unwrap() - start)), "{log:?}");
        }
    }
}

#[test]
fn an_agent_that_answers_again_gets_what_waits_without_delay() {
    // G-RTX-03: within one time-out of the answer to another command, and the last copy is kept for later.
    let (mut machine, start) = (machine(Timers { rto_initial: 100 * MS, ..steady() }), Time::ZERO);
    machine.send_with(start, CA, &addresses(1), 7, UNTIL_T_MAX, write).unwrap();
    assert_eq!(run(&mut machine, start, start + 7 * S).len(), 6);
    let other = machine.send(start + 7 * S, CA, &addresses(1), 8, write).unwrap();
    run(&mut machine, start + 7 * S, start + 7 * S);
    machine.handle_response(start + 7 * S, 200, other, false);
    let log = run(&mut machine, start + 7 * S, start + 100 * S);
    let at: Vec<_> = copies(&log).iter().map(|copy| copy.0.as_millis()).collect();
    assert_eq!(at, [9500, 19_800]);
}

#[test]
fn an_address_that_is_found_while_there_is_time_gets_what_is_said_once() {
    // G-RTX-10: at the last address the names are looked up once more before T-MAX, and what they bring is tried at once.
    let timers = Timers { rto_max: S, ..steady() };
    let (mut machine, start) = (named(timers, &addresses(2)), Time::ZERO + 10 * S);
    machine.send_with(start, CA, &addresses(2), 7, UNTIL_T_MAX, write).unwrap();
    run(&mut machine, start, start + S);
    machine.set_agent(start + S, CA, &addresses(2), Some(start + S));
    let log = run(&mut machine, start + S, start + 12 * S);
    assert_eq!((copies_to(&log, address(1)), machine.take_lookups()), (6, 1), "{log:?}");
    machine.set_agent(start + 12 * S, CA, &[address(0), address(5)], Some(start + 12 * S));
    let log = run(&mut machine, start + 12 * S, start + 20 * S);
    assert_eq!(copies(&log)[0], (22 * S, address(5)));
    assert_eq!(copies_to(&log, address(5)), 8);
}

#[test]
fn the_next_address_is_tried_after_max1_repeats() {
    // G-RTX-08, G-NET-09: 1 + 5 copies to the first of two, the rest to the second.
    let mut machine = machine(Timers { rto_initial: 100 * MS, ..steady() });
    machine.send(Time::ZERO, CA, &addresses(2), 0, write).unwrap();
    let log = run(&mut machine, Time::ZERO, Time::ZERO + 100 * S);
    let to: Vec<_> = copies(&log).iter().map(|c| c.1).collect();
    assert_eq!(to[..6], [address(0); 6]);
    assert!(to.len() > 6 && to[6..].iter().all(|&a| a == address(1)));
}

#[test]
fn an_agent_behind_a_lossy_network_is_repeated_to_more_often_before_its_next_address() {
    // G-RTX-16: one copy in ten was lost so far; where Max1 follows the loss it is as large as Max2 allows.
    for (max1_by_loss, copies_first) in [(false, 6), (true, 7)] {
        let timers = Timers { max1_by_loss, rto_max: S, ..steady() };
        let (mut machine, mut now) = (machine(timers), Time::ZERO);
        for n in 0..200 {
            let id = machine.send(now, CA, &addresses(1), 0, write).unwrap();
            run(&mut machine, now, now);
            if n % 10 == 0 {
                assert_eq!(run(&mut machine, now, now + 250 * MS).len(), 1, "a repeat");
                now += 250 * MS;
            }
            now += MS;
            machine.handle_response(now, 200, id, false);
        }
        let loss = machine.round_trip(CA).loss_ppm().unwrap();
        assert!((80_000..100_000).contains(&loss), "{loss}");
        machine.send(now, CA, &addresses(2), 7, write).unwrap();
        let log = run(&mut machine, now, now + 60 * S);
        assert_eq!(copies_to(&log, address(0)), copies_first, "{log:?}");
        assert!(copies_to(&log, address(1)) > 3);
    }
}

#[test]
fn a_core_that_is_late_at_t_max_gives_up_what_is_said_once_all_the_same() {
    // G-RTX-05, G-RTX-06: without the last copy too, and not only after 2 * T-HIST.
    let mut machine = machine(steady());
    machine.send_with(Time::ZERO, CA, &addresses(1), 0, UNTIL_T_MAX, write).unwrap();
    assert_eq!(run(&mut machine, Time::ZERO, Time::ZERO + 19 * S).len(), 7);
    let late = Time::ZERO + 20 * S + 100 * MS;
    let log = run(&mut machine, late, late);
    assert_eq!(log, [Out::Unanswered { at: 20 * S + 100 * MS, user: 0 }]);
}

#[test]
fn five_dead_addresses_never_outlast_t_max() {
    // G-RTX-05, G-RTX-06: the clock runs on across addresses; T-MAX ends the copies, 2 * T-HIST the command.
    for seed in 0..50 {
        let timers = Timers { rto_max: S, ..Timers::default() };
        let mut machine = Outgoing::new(Time::ZERO, &LIMITS, timers, Rng::new(seed));
        machine.send(Time::ZERO, CA, &addresses(5), 0, write).unwrap();
        let log = run(&mut machine, Time::ZERO, Time::ZERO + 100 * S);
        let sent = copies(&log);
        assert!(sent.iter().all(|c| c.0 <= 20 * S), "seed {seed}: {sent:?}");
        assert!(sent.iter().any(|c| c.1 == address(3)));
        // T-MAX came before the last address had had its Max2 repeats: O-2.
        let end = end_of(&log).unwrap();
        assert!(end >= 60 * S && end < 61 * S, "seed {seed}: {end:?}");
    }
}

#[test]
fn a_provisional_response_means_long_repeats_and_a_long_wait() {
    // G-PRV-04: every 5 s, none after 20 s. G-RTX-06: disconnected at 60 s.
    let mut machine = machine(steady());
    let id = machine.send(Time::ZERO, CA, &addresses(1), 3, write).unwrap();
    run(&mut machine, Time::ZERO, Time::from_millis(50));
    let at = Time::from_millis(100);
    assert_eq!(machine.handle_response(at, 100, id, false), Answer::Provisional { user: 3 });
    assert_eq!(machine.round_trip(CA).average(), Some(100 * MS));
    let mut log = Vec::new();
    while let Some(due) = {
        let now = machine.deadline();
        (now < Time::ZERO + 100 * S).then(|| machine.poll(now).map(|d| (now, matches!(d, Due::Unanswered { .. }))))
    } {
        log.extend(due);
    }
    let at: Vec<_> = log.iter().map(|(t, ended)| (t.since(Time::ZERO).as_millis(), *ended)).collect();
    assert_eq!(at, [(5100, false), (10_100, false), (15_100, false), (60_000, true)]);
}

#[test]
fn provisional_responses_without_end_do_not_move_the_end() {
    // G-RTX-06: 60 s, though a 100 comes every second; G-PRV-04: and each puts the next copy off.
    let mut machine = machine(steady());
    let id = machine.send(Time::ZERO, CA, &addresses(1), 3, write).unwrap();
    let (mut copies, mut end) = (0, None);
    for millis in (0..70_000).step_by(10) {
        let now = Time::from_millis(millis);
        while let Some(due) = machine.poll(now) {
            match due {
                Due::Transmit { .. } => copies += 1,
                Due::Unanswered { .. } => end = Some(millis),
            }
        }
        if millis % 1000 == 100 {
            machine.handle_response(now, 100, id, false);
        }
    }
    assert_eq!((copies, end), (1, Some(60_000)));
}

#[test]
fn a_final_ends_the_command_and_asks_for_000_when_it_carries_k() {
    // G-ACK-07: 100, then 200 with K:; the copy of that final, sent because our 000 was lost, is acknowledged again.
    let mut machine = machine(steady());
    let id = machine.send(Time::ZERO, CA, &addresses(1), 3, write).unwrap();
    assert_eq!(machine.handle_response(Time::ZERO, 200, id, false), Answer::Stray { acknowledge: false }, "not sent yet");
    run(&mut machine, Time::ZERO, Time::ZERO);
    machine.handle_response(Time::from_millis(20), 100, id, false);
    let Answer::Done(done) = machine.handle_response(Time::from_millis(900), 200, id, true) else { panic!() };
    assert_eq!((done.user, done.outcome, done.acknowledge, done.address), (3, Outcome::Success, true, address(0)));
    // The first response measured the delay, the final does not (G-RTX-02).
    assert_eq!(machine.round_trip(CA).average(), Some(20 * MS));
    let again = |machine: &mut Outgoing, at, id, ack| machine.handle_response(at, 200, id, ack);
    assert_eq!(again(&mut machine, Time::from_millis(1200), id, true), Answer::Stray { acknowledge: true });
    assert_eq!(again(&mut machine, Time::from_millis(1200), id, false), Answer::Stray { acknowledge: false });
    assert_eq!(again(&mut machine, Time::ZERO + 40 * S, id, true), Answer::Stray { acknowledge: false });
    // Never answer a response to what we never sent.
    for id in [0, 1, id + 1, id + 3, 999_999_999, u32::MAX] {
        assert_eq!(again(&mut machine, Time::from_millis(1200), id, true), Answer::Stray { acknowledge: false });
    }
    assert_eq!(run(&mut machine, Time::from_millis(1200), Time::ZERO + 100 * S), []);
}

#[test]
fn codes_we_do_not_know_count_as_their_class() {
    // G-RSL-04.
    let meant = [
        (299, Outcome::Success, 200),
        (250, Outcome::Success, 250),
        (333, Outcome::Redirected, 521),
        (521, Outcome::Redirected, 521),
        (499, Outcome::Transient, 400),
        (405, Outcome::Transient, 405),
        (777, Outcome::Permanent, 510),
        (501, Outcome::Permanent, 501),
        (999, Outcome::Permanent, 510),
    ];
    let mut machine = machine(steady());
    for (code, outcome, taken) in meant {
        let id = machine.send(Time::ZERO, CA, &addresses(1), 0, write).unwrap();
        run(&mut machine, Time::ZERO, Time::ZERO);
        assert_eq!(machine.handle_response(Time::ZERO, 0, id, true), Answer::Stray { acknowledge: false });
        let Answer::Done(done) = machine.handle_response(Time::ZERO, code, id, false) else { panic!("{code}") };
        assert_eq!((done.outcome, done.code), (outcome, taken), "{code}");
    }
}

#[test]
fn one_lost_copy_moves_no_estimate() {
    // G-RTX-04: lose one copy -> AAD unchanged, the next command's RTO equals the last one.
    let mut machine = machine(steady());
    let mut now = Time::ZERO;
    for _ in 0..20 {
        let id = machine.send(now, CA, &addresses(1), 0, write).unwrap();
        assert!(machine.poll(now).is_some());
        now += 150 * MS;
        assert!(matches!(machine.handle_response(now, 200, id, false), Answer::Done(_)));
    }
    let before = machine.round_trip(CA);
    let id = machine.send(now, CA, &addresses(1), 0, write).unwrap();
    assert!(machine.poll(now).is_some());
    loop {
        now = machine.deadline();
        if let Some(due) = machine.poll(now) {
            assert!(matches!(due, Due::Transmit { repeat: true, .. }));
            break;
        }
    }
    now += 150 * MS;
    assert!(matches!(machine.handle_response(now, 200, id, false), Answer::Done(_)));
    let after = machine.round_trip(CA);
    assert_eq!((after.average(), after.deviation()), (before.average(), before.deviation()));
    // The timer that ran when the repeat was answered: twice the delay and the spread.
    let spread = before.rto(&steady()) - before.average().unwrap();
    assert_eq!(after.rto(&steady()), before.average().unwrap() * 2 + spread);
    let id = machine.send(now, CA, &addresses(1), 0, write).unwrap();
    assert!(machine.poll(now).is_some());
    machine.handle_response(now + 150 * MS, 200, id, false);
    assert!(machine.round_trip(CA).rto(&steady()).abs_diff(before.rto(&steady())) < 5 * MS);
}

#[test]
fn an_unreachable_address_is_left_but_a_forged_report_ends_nothing() {
    // G-RTX-13.
    let mut machine = machine(steady());
    let id = machine.send(Time::ZERO, CA, &addresses(2), 0, write).unwrap();
    assert!(!machine.handle_unreachable(id, address(0)), "nothing was sent yet");
    run(&mut machine, Time::ZERO, Time::ZERO);
    assert!(!machine.handle_unreachable(id + 3, address(0)) && !machine.handle_unreachable(id, address(1)), "about something else");
    assert!(machine.handle_unreachable(id, address(0)));
    let log = run(&mut machine, Time::from_millis(1), Time::from_millis(700));
    assert_eq!(copies(&log).iter().map(|c| c.1).collect::<Vec<_>>(), [address(1); 2]);
    // Both reported, again and again: the last address still gets all its repeats.
    for i in 0..100 {
        machine.handle_unreachable(id, address(i % 20));
    }
    let log = run(&mut machine, Time::from_millis(700), Time::ZERO + 100 * S);
    assert!(copies(&log).len() >= 5 && end_of(&log).unwrap() > 15 * S);
    // A report about a copy that was answered provisionally says nothing.
    let id = machine.send(Time::ZERO + 200 * S, CA, &addresses(2), 0, write).unwrap();
    run(&mut machine, Time::ZERO + 200 * S, Time::ZERO + 200 * S);
    machine.handle_response(Time::ZERO + 200 * S, 100, id, false);
    assert!(!machine.handle_unreachable(id, address(0)));
}

#[test]
fn a_new_agent_gets_the_outstanding_command_at_once_with_the_same_id() {
    // G-NET-13, and G-RTX-05: T runs on.
    let ca2 = AgentId(200);
    let mut machine = machine(steady());
    let id = machine.send(Time::ZERO, CA, &addresses(1), 5, write).unwrap();
    run(&mut machine, Time::ZERO, Time::ZERO + 10 * S);
    let at = Time::ZERO + 10 * S;
    assert!(machine.redirect(id, ca2, &[address(9)]) && !machine.redirect(id + 3, ca2, &[address(9)]));
    assert_eq!((machine.outstanding(CA), machine.outstanding(ca2)), (0, 1));
    let mut sent = Vec::new();
    let mut now = at;
    while now < Time::ZERO + 100 * S {
        while let Some(due) = machine.poll(now) {
            if let Due::Transmit { id: copy, to, .. } = due {
                assert_eq!((copy, to), (id, address(9)));
                sent.push(now.since(Time::ZERO).as_millis());
            }
        }
        now = machine.deadline();
    }
    assert_eq!(sent, [10_000, 10_200, 10_600, 11_400, 13_000, 16_200]);
    assert!(machine.is_empty());
}

#[test]
fn room_ids_and_long_bodies_are_bounded_and_come_back() {
    let mut machine = machine(steady());
    let long = |_: TransactionId, place: &mut [u8]| place.get_mut(..3000).map(|p| p.fill(b'x')).map(|()| 3000);
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(machine.send(Time::ZERO, CA, &addresses(1), 0, long).unwrap());
    }
    assert_eq!(machine.send(Time::ZERO, CA, &addresses(1), 0, long), Err(SendError::Full));
    assert_eq!(machine.send(Time::ZERO, CA, &addresses(1), 0, |_, _| None), Err(SendError::TooLong));
    assert_eq!(machine.send(Time::ZERO, CA, &addresses(1), 0, |_, _| Some(4001)), Err(SendError::TooLong));
    assert_eq!(machine.send(Time::ZERO, CA, &[], 0, write), Err(SendError::NoAddress));
    for _ in 4..LIMITS.commands {
        ids.push(machine.send(Time::ZERO, CA, &addresses(1), 0, write).unwrap());
    }
    assert_eq!(machine.send(Time::ZERO, CA, &addresses(1), 0, write), Err(SendError::Full));
    assert!(ids.iter().all(|id| id % 3 == 1));
    assert_eq!(machine.iter().count(), 1024);
    assert_eq!(machine.body(ids[0]).map(<[u8]>::len), Some(3000));
    for id in ids {
        assert_eq!(machine.cancel(Time::ZERO, id), Some(0));
        assert_eq!(machine.cancel(Time::ZERO, id), None);
    }
    assert!(machine.is_empty() && machine.poll(Time::ZERO).is_none());
    assert!(machine.send(Time::ZERO, CA, &addresses(1), 0, long).is_ok());
}

#[test]
fn first_copies_leave_in_the_order_of_the_calls() {
    // A whole T3's DLCX at once, bounded work per call.
    let mut machine = machine(steady());
    let ids: Vec<_> = (0..672).map(|n| machine.send(Time::from_millis(3), CA, &addresses(1), n, write).unwrap()).collect();
    let mut sent = Vec::new();
    while let Some(Due::Transmit { id, .. }) = machine.poll(Time::from_millis(3)) {
        sent.push(id);
    }
    assert_eq!(sent, ids);
}

#[test]
fn a_lossy_network_ends_every_command_exactly_once() {
    // Seeds; a tenth of the copies and of the responses lost, two of three addresses alive, provisional responses now and then.
    for seed in 0..20u64 {
        let mut rng = Rng::new(seed);
        let mut machine = Outgoing::new(Time::ZERO, &LIMITS, Timers::default(), rng.fork("machine"));
        let (mut started, mut ended, mut lost) = (0u64, HashMap::new(), 0);
        // Responses on their way: (arrival, id, code).
        let mut flying: Vec<(Time, TransactionId, u16)> = Vec::new();
        let mut first: HashMap<TransactionId, Time> = HashMap::new();
        let mut now = Time::ZERO;
        while now < Time::ZERO + 90 * S {
            if now < Time::ZERO + 20 * S {
                for _ in 0..rng.below(4) {
                    let start = rng.below(3) as u16;
                    let list: Vec<_> = (0..3).map(|i| address((start + i) % 3)).collect();
                    if machine.send(now, CA, &list, started, write).is_ok() {
                        started += 1;
                    }
                }
            }
            loop {
                match machine.poll(now) {
                    Some(Due::Transmit { id, to, repeat, .. }) => {
                        assert_eq!(first.contains_key(&id), repeat);
                        assert!(now.since(*first.entry(id).or_insert(now)) <= 20 * S);
                        if to != address(0) && !rng.chance(100_000) {
                            let slow = rng.chance(50_000);
                            let back = now + rng.duration(5 * MS, 40 * MS);
                            if slow {
                                flying.push((back, id, 100));
                            }
                            if !rng.chance(100_000) {
                                flying.push((if slow { back + S } else { back }, id, 200));
                            }
                        }
                    }
                    Some(Due::Unanswered { user, .. }) => {
                        assert!(ended.insert(user, false).is_none());
                        lost += 1;
                    }
                    None => break,
                }
            }
            flying.retain(|&(at, id, code)| {
                let answer = (at <= now).then(|| machine.handle_response(now, code, id, false));
                if let Some(Answer::Done(done)) = answer {
                    assert!(ended.insert(done.user, true).is_none());
                }
                at > now
            });
            now += 10 * MS;
        }
        assert!(machine.is_empty() && machine.deadline() == Time::NEVER, "seed {seed}");
        assert_eq!(ended.len() as u64, started, "seed {seed}");
        assert!(started > 1000 && lost < started / 100, "seed {seed}: {lost} of {started}");
    }
}

#[test]
fn ids_are_not_used_again_early_and_incoming_ids_do_not_matter() {
    // G-TRX-01 with a number space of 4000 ids: 3 minutes after completion at the earliest.
    let mut machine = Outgoing::with_ids_up_to(12_000, Time::ZERO, &LIMITS, steady(), Rng::new(2));
    let mut last: HashMap<TransactionId, Time> = HashMap::new();
    let (mut now, mut refused) = (Time::ZERO, 0);
    for _ in 0..30_000 {
        match machine.send(now, CA, &addresses(1), 0, write) {
            Ok(id) => {
                assert!(last.insert(id, now).is_none_or(|at| now.since(at) >= 180 * S));
                assert!(machine.poll(now).is_some());
                assert!(matches!(machine.handle_response(now, 200, id, false), Answer::Done(_)));
            }
            Err(error) => {
                assert_eq!(error, SendError::Full);
                refused += 1;
            }
        }
        now += 20 * MS;
    }
    assert!(refused > 0 && last.len() == 4000);
}

/// An agent with names, looked up at 0.001 s.
fn named(timers: Timers, known: &[SocketAddr]) -> Outgoing {
    let mut machine = machine(timers);
    machine.set_agent(Time::ZERO, CA, known, Some(Time::from_millis(1)));
    machine
}

fn copies_to(log: &[Out], wanted: SocketAddr) -> usize {
    log.iter().filter(|out| matches!(out, Out::Copy { to, .. } if *to == wanted)).count()
}

#[test]
fn an_agent_that_does_not_answer_is_looked_up_after_max1_repeats() {
    // G-RTX-09: the record was changed meanwhile.
    let (mut machine, start) = (named(steady(), &addresses(1)), Time::ZERO + 10 * S);
    machine.send(start, CA, &addresses(1), 7, write).unwrap();
    let before = run(&mut machine, start, start + 8 * S);
    assert_eq!((before.len(), machine.take_lookups()), (6, 0), "five repeats");
    let rest = run(&mut machine, start + 8 * S, start + 11 * S);
    assert_eq!((rest.len(), machine.take_lookups(), machine.take_lookups()), (1, 1, 0));
    machine.set_agent(start + 11 * S, CA, &[address(9)], Some(start + 11 * S));
    let after = run(&mut machine, start + 11 * S, start + 20 * S);
    assert_eq!(copies_to(&after, address(9)), after.len());
    assert!(after.len() > 3, "{after:?}");
}

#[test]
fn before_a_command_is_given_up_the_names_are_looked_up_once_more() {
    // G-RTX-10, G-RTX-12: without an answer, with one that brings nothing, with one that brings an address.
    let timers = Timers { rto_max: S, ..steady() };
    for found in [None, Some(addresses(1)), Some(vec![address(0), address(5)])] {
        let (mut machine, start) = (named(Timers { query_max1: false, ..timers }, &addresses(1)), Time::ZERO + 10 * S);
        machine.send(start, CA, &addresses(1), 7, write).unwrap();
        let first = run(&mut machine, start, start + 7 * S);
        assert_eq!((first.len(), machine.take_lookups()), (8, 1), "{first:?}");
        let asked = start + 7 * S;
        let is_known = found.is_some();
        if let Some(found) = &found {
            machine.set_agent(asked, CA, found, Some(asked));
        }
        let rest = run(&mut machine, asked, start + 12 * S);
        match found.map_or(0, |found| found.len()) {
            2 => assert!(copies_to(&rest, address(5)) > 2 && copies_to(&rest, address(0)) == 0, "{rest:?}"),
            _ => {
                let [Out::Unanswered { at, user: 7 }] = rest[..] else { panic!("{rest:?}") };
                assert_eq!(at < 17_100 * MS, is_known, "{at:?}");
            }
        }
    }
}

#[test]
fn a_new_agent_gets_what_waited_for_the_names_of_the_old_one() {
    // G-NET-13: it came while the names were looked up for the last time; T runs on.
    let (mut machine, start) = (named(Timers { rto_max: S, query_max1: false, ..steady() }, &addresses(1)), Time::ZERO + 10 * S);
    let id = machine.send(start, CA, &addresses(1), 7, write).unwrap();
    run(&mut machine, start, start + 7 * S);
    assert_eq!(machine.take_lookups(), 1);
    assert!(machine.redirect(id, AgentId(3), &[address(9)]));
    let log = run(&mut machine, start + 7 * S, start + 61 * S);
    assert_eq!((copies(&log)[0], copies_to(&log, address(9))), ((17 * S, address(9)), 8), "{log:?}");
}

#[test]
fn lookups_can_be_switched_off_and_are_not_made_twice_in_a_row() {
    // G-RTX-11, G-RTX-09: off; just done; no names.
    let off = Timers { query_max1: false, query_max2: false, ..steady() };
    let start = Time::ZERO + 10 * S;
    let mut silent = named(off, &addresses(1));
    silent.send(start, CA, &addresses(1), 7, write).unwrap();
    assert!(matches!(run(&mut silent, start, start + 61 * S).last(), Some(Out::Unanswered { .. })));
    assert_eq!(silent.take_lookups(), 0);
    let mut recent = named(Timers { query_max2: false, ..steady() }, &addresses(1));
    recent.send(start, CA, &addresses(1), 7, write).unwrap();
    run(&mut recent, start, start + 8 * S);
    recent.set_agent(start + 8 * S, CA, &addresses(1), Some(start + 8 * S));
    run(&mut recent, start + 8 * S, start + 61 * S);
    assert_eq!(recent.take_lookups(), 0);
    let mut listed = machine(steady());
    listed.set_agent(start, CA, &addresses(1), None);
    listed.send(start, CA, &addresses(1), 7, write).unwrap();
    run(&mut listed, start, start + 61 * S);
    assert_eq!(listed.take_lookups(), 0);
}

#[test]
fn an_address_that_is_gone_from_the_names_is_not_tried() {
    let (mut machine, start) = (named(steady(), &addresses(3)), Time::ZERO + 10 * S);
    machine.send(start, CA, &addresses(3), 7, write).unwrap();
    run(&mut machine, start, start + S);
    machine.set_agent(start + S, CA, &[address(0), address(2)], Some(start + S));
    let log = run(&mut machine, start + S, start + 61 * S);
    assert_eq!(copies_to(&log, address(1)), 0);
    assert!(copies_to(&log, address(2)) > 3, "{log:?}");
}

#[test]
fn first_copies_go_at_the_pace_the_agent_can_take() {
    // G-LOD-02: 101 and 409 slow down what is new; repeats keep their own timers.
    let mut machine = machine(steady());
    machine.set_pace(PaceSettings { rate_max: 100, rate_min: 2, step: 1, ..PaceSettings::default() });
    let mut now = Time::from_millis(1000);
    let first = |machine: &mut Outgoing, now: &mut Time, time: Duration| {
        let until = *now + time;
        let mut sent = Vec::new();
        while *now < until {
            while let Some(due) = machine.poll(*now) {
                if let Due::Transmit { id, repeat: false, .. } = due {
                    sent.push(id);
                }
            }
            *now = machine.deadline().max(*now + MS).min(until);
        }
        sent
    };
    for _ in 0..600 {
        machine.send(now, CA, &addresses(1), 7, write).unwrap();
    }
    let sent = first(&mut machine, &mut now, S);
    assert!((95..=115).contains(&sent.len()), "{}", sent.len());
    for id in sent {
        machine.handle_response(now, 409, id, false);
        now += 20 * MS;
    }
    let slow = first(&mut machine, &mut now, 2 * S).len();
    assert!(slow <= 10, "{slow}");
}

#[test]
fn what_must_not_be_overtaken_goes_along_though_its_turn_is_later() {
    // G-QUA-13: the pace of one agent holds the first back; the second is for another agent (seed 3 of the random worlds).
    let mut machine = machine(steady());
    machine.set_pace(PaceSettings { rate_max: 1, rate_min: 1, step: 1, ..PaceSettings::default() });
    let mut now = Time::from_millis(1000);
    for _ in 0..50 {
        machine.send(now, CA, &addresses(1), 7, write).unwrap();
    }
    while machine.poll(now).is_some() {}
    let first = machine.send_with(now, CA, &addresses(1), 8, UNTIL_T_MAX, write).unwrap();
    while machine.poll(now).is_some() {}
    now += MS;
    let behind = Delivery { behind: Some(first), ..UNTIL_T_MAX };
    let second = machine.send_with(now, AgentId(1), &addresses(1), 9, behind, write).unwrap();
    let body = machine.body(first).unwrap().to_vec();
    let Some(Due::Transmit { id, older, repeat: false, .. }) = machine.poll(now) else { panic!("nothing is sent") };
    assert_eq!((id, older.iter().collect::<Vec<_>>()), (second, vec![&body[..]]));
    // It was sent, so that it can be answered, and is not sent for the first time again.
    assert!(matches!(machine.handle_response(now + MS, 200, first, false), Answer::Done(_)));
}

/// G-DIS-06, G-DIS-13: what is held leaves no copy and does not end but by an answer, and it is a part of the places only.
#[test]
fn held_commands_wait_for_an_answer_or_an_order() {
    let mut machine = Outgoing::new(Time::ZERO, &Limits { commands: 8, ..LIMITS }, steady(), Rng::new(1));
    let ids: Vec<_> = (0..4).map(|user| machine.send(Time::ZERO, CA, &addresses(2), user, write).unwrap()).collect();
    assert_eq!(copies(&run(&mut machine, Time::ZERO, Time::ZERO + S)).len(), 12);
    assert_eq!(ids.iter().map(|&id| machine.hold(id)).collect::<Vec<_>>(), [true, true, false, false]);
    assert!(machine.hold(ids[0]) && !machine.hold(12345));
    machine.cancel(Time::ZERO + S, ids[2]);
    machine.cancel(Time::ZERO + S, ids[3]);
    // A provisional response, a report of the network, another agent: none of them starts copies again.
    assert_eq!(machine.handle_response(Time::ZERO + S, 100, ids[0], false), Answer::Provisional { user: 0 });
    assert!(!machine.handle_unreachable(ids[0], address(0)) && !machine.redirect(ids[0], CA, &addresses(1)));
    machine.set_agent(Time::ZERO + S, CA, &addresses(3), Some(Time::ZERO + S));
    assert_eq!(run(&mut machine, Time::ZERO + S, Time::ZERO + 1000 * S), []);
    assert!(machine.is_held(ids[0]) && machine.body(ids[1]).is_some() && machine.outstanding(CA) == 2);
    assert!(matches!(machine.handle_response(Time::ZERO + 1000 * S, 200, ids[0], false), Answer::Done(done) if done.user == 0));
    assert_eq!(machine.cancel(Time::ZERO + 1000 * S, ids[1]), Some(1));
    assert!(machine.is_empty() && !machine.is_held(ids[0]) && machine.outstanding(CA) == 0);
    // Both places are free again.
    let more: Vec<_> = (0..2).map(|user| machine.send(Time::ZERO + 1000 * S, CA, &addresses(1), user, write).unwrap()).collect();
    assert!(more.iter().all(|&id| machine.hold(id)));
}
