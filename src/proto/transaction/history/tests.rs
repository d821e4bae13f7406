//! The history over virtual time, against a model that keeps everything in plain maps.

use super::*;
use std::collections::HashMap;

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);
const CA1: AgentId = AgentId(1);
const CA2: AgentId = AgentId(2);

fn limits(entries: usize, bytes: usize) -> Limits {
    Limits { entries, bytes, reserve_entries: entries / 10, reserve_bytes: bytes / 10, largest: 400 }
}

fn history_of(limits: Limits) -> History {
    History::new(limits, 30 * S, 10 * S, &mut Rng::new(8))
}

fn history() -> History {
    history_of(limits(1000, 100_000))
}

fn at(seconds: u64) -> Time {
    Time::ZERO + S * seconds as u32
}

fn command(id: TransactionId, name: u64) -> Command {
    Command { id, name, content: None }
}

fn start(command: Command, agent: AgentId) -> Start {
    Start { command, agent, class: Class::Ordinary, room: 400 }
}

/// Runs a command at once.
fn execute(history: &mut History, now: Time, command: Command, agent: AgentId, body: &[u8]) -> Handle {
    assert!(matches!(history.lookup(now, &command), Seen::New { superseded: None, .. }));
    let handle = history.begin(now, &start(command, agent)).unwrap();
    history.finish(now, handle, body).unwrap();
    handle
}

fn confirm(history: &mut History, now: Time, agent: AgentId, low: u32, high: u32) -> Confirmation {
    history.confirm_range(now, agent, low, high, &mut CONFIRM_BUDGET.clone())
}

#[test]
fn a_repeat_gets_100_while_it_runs_and_the_stored_response_afterwards() {
    // G-TRX-03, G-TRX-04, G-PRV-06.
    let mut history = history();
    let crcx = command(50, 7);
    let handle = history.begin(at(0), &start(crcx, CA1)).unwrap();
    assert_eq!(history.lookup(at(1), &crcx), Seen::Running(handle));
    assert!(!history.provisional_sent(handle));
    history.note_provisional(handle);
    assert_eq!(history.lookup(at(1), &crcx), Seen::Running(handle));
    assert!(history.provisional_sent(handle), "G-ACK-06: its final carries an empty K:");
    history.finish(at(2), handle, b"200 50 OK\r\nK:\r\n").unwrap();
    assert_eq!(history.lookup(at(3), &crcx), Seen::Finished { handle, body: b"200 50 OK\r\nK:\r\n" });
    assert_eq!(history.body(handle), Some(&b"200 50 OK\r\nK:\r\n"[..]));
    // Once finished it cannot finish again, whatever comes late (G-PRV-03).
    assert_eq!(history.finish(at(3), handle, b"406 50"), Err(FinishError::NotRunning));
    assert!(!history.provisional_sent(handle));
}

#[test]
fn the_name_belongs_to_the_key() {
    // G-TRX-02: id 50 from CA2 for another endpoint is another command.
    let mut history = history();
    execute(&mut history, at(0), command(50, 7), CA1, b"one");
    execute(&mut history, at(0), command(50, 8), CA2, b"two");
    assert!(matches!(history.lookup(at(1), &command(50, 7)), Seen::Finished { body: b"one", .. }));
    assert!(matches!(history.lookup(at(1), &command(50, 8)), Seen::Finished { body: b"two", .. }));
    assert!(matches!(history.lookup(at(1), &command(51, 7)), Seen::New { .. }));
}

#[test]
fn an_id_is_new_again_after_t_hist() {
    // G-TRX-05, also when nothing was swept, and with other timers from a reload.
    let mut history = history();
    let handle = execute(&mut history, at(0), command(1, 7), CA1, b"x");
    assert!(matches!(history.lookup(at(30) + Duration::ZERO, &command(1, 7)), Seen::New { .. }));
    assert!(matches!(history.lookup(Time(at(30).0 - 1), &command(1, 7)), Seen::Finished { .. }));
    history.set_timers(40 * S, 10 * S);
    assert!(matches!(history.lookup(at(39), &command(1, 7)), Seen::Finished { .. }));
    assert_eq!(history.deadline(), at(40));
    assert_eq!((history.expire(Time(at(40).0 - 1), 10), history.expire(at(40), 10)), (0, 1));
    assert_eq!((history.body(handle), history.deadline()), (None, Time::NEVER));
}

#[test]
fn a_confirmed_command_is_dropped_silently_until_t_hist() {
    // G-TRX-06, G-ACK-01, G-ACK-05: `K: 6234-6255, 6257`.
    let mut history = history();
    for id in 6230..6260 {
        execute(&mut history, at(0), command(id, 7), CA1, b"x");
    }
    let confirmed = |id: u32| (6234..=6255).contains(&id) || id == 6257;
    assert_eq!(confirm(&mut history, at(1), CA1, 6234, 6255), Confirmation { released: 22, ..Confirmation::default() });
    assert_eq!(confirm(&mut history, at(1), CA1, 6257, 6257).released, 1);
    assert_eq!(history.confirm_one(at(1), CA1, 6257), Confirm::Known);
    for id in 6230..6260 {
        let seen = history.lookup(at(29), &command(id, 7));
        assert_eq!(seen == Seen::Confirmed, confirmed(id), "{id}");
        assert!(confirmed(id) || matches!(seen, Seen::Finished { body: b"x", .. }));
        assert!(matches!(history.lookup(at(30), &command(id, 7)), Seen::New { .. }));
    }
}

#[test]
fn only_the_agent_that_sent_the_command_confirms_it() {
    // G-ACK-03, one by one and as an interval; G-ACK-02: what runs cannot be confirmed.
    let mut history = history();
    execute(&mut history, at(0), command(5, 7), CA1, b"x");
    history.begin(at(0), &start(command(6, 7), CA1)).unwrap();
    assert_eq!(history.confirm_one(at(1), CA2, 5), Confirm::Foreign);
    assert_eq!(history.confirm_one(at(1), CA1, 6), Confirm::Known);
    assert_eq!(history.confirm_one(at(1), CA1, 4), Confirm::Unknown);
    assert_eq!(confirm(&mut history, at(1), CA2, 4, 6), Confirmation { released: 0, foreign: 2, unknown: 0b111, kept: false });
    assert!(confirm(&mut history, at(1), CA2, 1, 999_999_999).kept);
    assert!(matches!(history.lookup(at(1), &command(5, 7)), Seen::Finished { .. }));
    assert_eq!(confirm(&mut history, at(1), CA1, 4, 6), Confirmation { released: 1, foreign: 0, unknown: 0b001, kept: false });
    assert_eq!(history.lookup(at(1), &command(5, 7)), Seen::Confirmed);
    assert!(matches!(history.lookup(at(1), &command(6, 7)), Seen::Running(_)));
}

#[test]
fn wide_ranges_hold_for_what_was_sent_before_and_cost_nothing() {
    // G-ACK-10: `K: 1-999999999`; other agents' history stays as it is.
    let mut history = history();
    for id in 1..=100 {
        execute(&mut history, at(0), command(id, 7), CA1, b"x");
        execute(&mut history, at(0), command(id, 8), CA2, b"y");
    }
    assert_eq!(confirm(&mut history, at(1), CA1, 1, 999_999_999), Confirmation { kept: true, ..Confirmation::default() });
    assert!((1..=100).all(|id| history.lookup(at(1), &command(id, 7)) == Seen::Confirmed));
    assert!((1..=100).all(|id| matches!(history.lookup(at(1), &command(id, 8)), Seen::Finished { body: b"y", .. })));
    // Sent later: not meant.
    let later = execute(&mut history, at(2), command(101, 7), CA1, b"z");
    assert_eq!(history.body(later), Some(&b"z"[..]));
    // The budget of one message: 256 ids one by one, the rest as intervals.
    let mut budget = CONFIRM_BUDGET;
    let kept: Vec<_> = (0..10).map(|i| history.confirm_range(at(3), CA1, i * 64, i * 64 + 63, &mut budget).kept).collect();
    assert_eq!(kept, [false, false, false, false, true, true, true, true, true, true]);
    assert_eq!(confirm(&mut history, at(3), CA1, 9, 8), Confirmation::default(), "an empty range");
}

#[test]
fn ranges_in_any_order_end_in_the_same_state() {
    // G-ACK-04.
    let ranges = [(1, 10), (8, 20), (100, 400), (300, 500), (90, 99), (50, 50)];
    let run = |order: &mut dyn Iterator<Item = &(u32, u32)>| -> Vec<bool> {
        let mut history = history();
        for id in 1..600 {
            execute(&mut history, at(0), command(id, 7), CA1, b"x");
        }
        for &(low, high) in order {
            confirm(&mut history, at(1), CA1, low, high);
        }
        (1..600).map(|id| history.lookup(at(2), &command(id, 7)) == Seen::Confirmed).collect()
    };
    let union: Vec<_> = (1..600).map(|id| ranges.iter().any(|&(low, high)| low <= id && id <= high)).collect();
    assert_eq!(run(&mut ranges.iter()), union);
    assert_eq!(run(&mut ranges.iter().rev()), union);
}

#[test]
fn an_aborted_command_answers_its_repeats_with_407() {
    // G-PRV-07.
    let mut history = history();
    let handle = history.begin(at(0), &start(command(9, 7), CA1)).unwrap();
    history.finish(at(1), handle, b"407 9 aborted").unwrap();
    assert!(matches!(history.lookup(at(2), &command(9, 7)), Seen::Finished { body: b"407 9 aborted", .. }));
}

#[test]
fn a_command_that_runs_too_long_is_reported_once() {
    // G-PRV-05: 406 after T-HIST - T-MAX.
    let mut history = history();
    let handles: Vec<_> = (0..5).map(|i| history.begin(at(u64::from(i)), &start(command(i, 7), CA1)).unwrap()).collect();
    history.finish(at(5), handles[1], b"200").unwrap();
    history.forget(handles[3]);
    assert_eq!((history.overdue(at(9)), history.deadline()), (None, at(10)));
    assert_eq!((history.overdue(at(12)), history.overdue(at(12)), history.overdue(at(12))), (Some(handles[0]), Some(handles[2]), None));
    assert_eq!(history.deadline(), at(14));
    assert!(matches!(history.lookup(at(12), &command(0, 7)), Seen::Running(_)));
    history.finish(at(12), handles[0], b"406 0").unwrap();
    history.finish(at(12), handles[2], b"406 2").unwrap();
    assert!(matches!(history.lookup(at(13), &command(0, 7)), Seen::Finished { body: b"406 0", .. }));
    assert_eq!((history.overdue(at(14)), history.overdue(at(99))), (Some(handles[4]), None));
    // What was forgotten (409, nothing done) is new.
    assert!(matches!(history.lookup(at(13), &command(3, 7)), Seen::New { .. }));
}

#[test]
fn other_content_under_the_same_id_is_a_new_command() {
    // O-18, `same-content`.
    let mut history = history();
    let with = |content: u64| Command { content: Some(content), ..command(1, 7) };
    let old = history.begin(at(0), &start(with(0), CA1)).unwrap();
    assert_eq!(history.lookup(at(0), &with(0)), Seen::Running(old));
    assert_eq!(history.lookup(at(0), &with(5)), Seen::New { superseded: Some(old), reused: false });
    history.finish(at(0), old, b"407 1").unwrap();
    execute(&mut history, at(0), with(5), CA1, b"200 1");
    assert!(matches!(history.lookup(at(1), &with(0)), Seen::Finished { body: b"407 1", .. }));
    assert!(matches!(history.lookup(at(1), &with(5)), Seen::Finished { body: b"200 1", .. }));
    // Without a content to compare, the newest command with this id and name is the one.
    assert!(matches!(history.lookup(at(1), &command(1, 7)), Seen::Finished { body: b"200 1", .. }));
}

#[test]
fn an_agent_that_starts_anew_with_its_old_ids_and_commands_is_served_when_no_copy_can_come_any_more() {
    let mut history = history();
    let same = |id| Command { content: Some(9), ..command(id, 7) };
    let by_id = |id| Command { content: None, ..same(id) };
    // Confirmed long after the response, one by one and in a wide range.
    for id in [1, 500] {
        execute(&mut history, at(0), same(id), CA1, b"200");
    }
    history.confirm_one(at(8), CA1, 1);
    confirm(&mut history, at(8), CA1, 100, 900);
    for id in [1, 500] {
        assert_eq!(history.lookup(at(12), &same(id)), Seen::Confirmed, "{id}");
        assert_eq!(history.lookup(at(14), &same(id)), Seen::New { superseded: None, reused: true }, "{id}");
        // One that came in time and waited behind others of its datagram is a copy (seed 179 of the random worlds).
        assert_eq!(history.lookup_arrived(at(14), at(12), &same(id)), Seen::Confirmed, "{id}");
        // For agents known by id and name the id is kept for T-HIST.
        assert_eq!(history.lookup(at(14), &by_id(id)), Seen::Confirmed, "{id}");
    }
    // Executed again it is a command like any other.
    let again = history.begin(at(14), &start(same(1), CA1)).unwrap();
    assert_eq!(history.lookup(at(14), &same(1)), Seen::Running(again));
    history.finish(at(14), again, b"201").unwrap();
    assert!(matches!(history.lookup(at(15), &same(1)), Seen::Finished { body: b"201", .. }));
    history.confirm_one(at(15), CA1, 1);
    assert_eq!(history.lookup(at(16), &same(1)), Seen::Confirmed);
}

#[test]
fn when_full_nothing_is_evicted_and_the_reserve_serves_deletions() {
    // G-TRX-08: entries, then bytes.
    for limits in [limits(100, 1_000_000), limits(10_000, 10_000)] {
        let mut history = history_of(limits);
        let mut id = 0;
        let mut fill = |history: &mut History, class: Class, now: Time| {
            let mut added = 0;
            loop {
                id += 1;
                match history.begin(now, &Start { command: command(id, 7), agent: CA1, class, room: 100 }) {
                    Ok(handle) => history.finish(now, handle, &[b'x'; 100]).unwrap(),
                    Err(full) => return (added, full),
                }
                added += 1;
            }
        };
        let (ordinary, full) = fill(&mut history, Class::Ordinary, at(0));
        assert_eq!(full, if limits.entries == 100 { Full::Entries } else { Full::Bytes });
        let (release, again) = fill(&mut history, Class::Release, at(0));
        assert!(ordinary > 80 && release >= 9 && again == full, "{ordinary} {release}");
        assert_eq!(fill(&mut history, Class::Ordinary, at(29)).0, 0);
        assert!((1..=ordinary).all(|id| matches!(history.lookup(at(29), &command(id, 7)), Seen::Finished { .. })));
        // T-HIST later there is room again without anybody having called `expire`.
        assert_eq!(fill(&mut history, Class::Ordinary, at(30)).0, ordinary);
    }
}

#[test]
fn room_is_promised_when_a_command_begins() {
    let mut history = history_of(limits(1000, 4000));
    let mut handles = Vec::new();
    let full = loop {
        match history.begin(at(0), &start(command(handles.len() as u32, 7), CA1)) {
            Ok(handle) => handles.push(handle),
            Err(full) => break full,
        }
    };
    assert!(full == Full::Bytes && handles.len() >= 7);
    // Refused as it is, none can be longer than promised, and all fit.
    assert_eq!(history.finish(at(0), handles[0], &[0; 401]), Err(FinishError::TooLong));
    for &handle in &handles {
        history.finish(at(0), handle, &[handle.slot as u8; 400]).unwrap();
    }
    assert!(handles.iter().all(|h| history.body(*h) == Some(&[h.slot as u8; 400][..])));
    // Responses shorter than promised leave the rest to others.
    assert!(history.begin(at(0), &Start { room: 400, ..start(command(99, 7), CA1) }).is_err());
    assert!(history.confirm_one(at(0), CA1, 0) == Confirm::Released && history.begin(at(0), &start(command(99, 7), CA1)).is_ok());
}

#[test]
fn confirmed_bodies_make_room_early() {
    // A ring for 100 bodies carries 10,000 when each is confirmed by the next command.
    for wide in [false, true] {
        let mut history = history_of(limits(20_000, 40_000));
        for id in 1..=10_000 {
            execute(&mut history, at(1), command(id, 7), CA1, &[b'x'; 400]);
            let confirmation = confirm(&mut history, at(1), CA1, if wide { 1 } else { id }, id);
            assert!(confirmation.kept || confirmation.released == 1);
        }
        assert!(history.stats().bytes < 2000 && history.stats().entries == 10_000);
    }
}

#[test]
fn what_expires_at_once_gives_its_bytes_back_at_once() {
    let mut history = history();
    for round in 0..3 {
        let handles: Vec<_> = (0..500).map(|id| execute(&mut history, at(round * 60), command(id, 7), CA1, &[id as u8; 90])).collect();
        assert!(handles.iter().zip(0..).all(|(h, id)| history.body(*h) == Some(&[id as u8; 90][..])));
        assert_eq!(history.expire(at(round * 60 + 30), 1000), 500);
        assert_eq!((history.stats().bytes, history.stats().entries, history.deadline()), (0, 0, Time::NEVER));
    }
}

#[test]
fn one_id_under_many_names_stays_bounded() {
    let mut history = history();
    for name in 0..SAME_ID as u64 {
        execute(&mut history, at(0), command(1, name), CA1, b"x");
    }
    assert_eq!(history.begin(at(0), &start(command(1, 9999), CA1)), Err(Full::SameId));
    assert!(history.begin(at(0), &start(command(2, 9999), CA1)).is_ok());
    assert_eq!(confirm(&mut history, at(1), CA1, 1, 1).released, 1);
    assert!((0..SAME_ID as u64).all(|name| history.lookup(at(1), &command(1, name)) == Seen::Confirmed));
}

/// G-TRX-08: what is due makes room for what comes, also when nobody has cleared it away.
#[test]
fn a_full_history_clears_away_what_is_due_before_it_refuses() {
    let mut history = history_of(Limits { reserve_entries: 0, reserve_bytes: 0, ..limits(100, 100_000) });
    for id in 0..100 {
        execute(&mut history, at(u64::from(id) / 10), command(id, 7), CA1, b"x");
    }
    assert_eq!(history.begin(at(29), &start(command(200, 7), CA1)), Err(Full::Entries));
    for id in 200..210 {
        execute(&mut history, at(30), command(id, 7), CA1, b"x");
    }
    assert_eq!(history.begin(at(30), &start(command(300, 7), CA1)), Err(Full::Entries));
    assert_eq!(history.stats().entries, 100);
}

#[test]
fn memory_is_flat_over_a_minute_at_ten_thousand_commands_a_second() {
    // G-TRX-08: two rounds of T-HIST; a twentieth of the commands is repeated, none is executed twice. Turns of 64 commands.
    let (rate, turn) = (10_000, 64);
    let mut history = history_of(Limits { entries: 310_000, bytes: 60_000_000, reserve_entries: 0, reserve_bytes: 0, largest: 400 });
    let mut rng = Rng::new(6);
    let mut now = Time::ZERO;
    let (mut peak, mut flat) = (0, 0);
    for id in 1..=60 * rate {
        now += S / rate;
        execute(&mut history, now, command(id, u64::from(id % 672)), CA1, &[b'x'; 150]);
        if rng.chance(50_000) {
            let past = id - rng.below(u64::from(id.min(25 * rate))) as u32;
            assert!(matches!(history.lookup(now, &command(past, u64::from(past % 672))), Seen::Finished { body, .. } if body.len() == 150));
        }
        if id % turn == 0 {
            history.expire(now, 256);
        }
        if id == 31 * rate {
            peak = history.stats().entries_max;
        }
        flat = history.stats().entries_max;
    }
    assert_eq!(peak, flat);
    assert!(flat <= (30 * rate + turn) as usize, "{flat}");
    assert!(history.stats().bytes <= u64::from(30 * rate + turn) * 152 + 400);
}

/// What the model knows about one command.
struct Known {
    agent: AgentId,
    handle: Handle,
    /// When it finished and with what.
    finished: Option<(Time, Vec<u8>)>,
    confirmed: bool,
    /// By a range that was kept as an interval, which may have given way to later ones.
    perhaps_confirmed: bool,
}

#[test]
fn behaves_like_a_model_that_keeps_everything() {
    for seed in 0..10 {
        let mut rng = Rng::new(seed);
        let mut history = history_of(limits(300, 40_000));
        let mut model: HashMap<(u32, u64), Known> = HashMap::new();
        let mut now = at(1);
        let (mut executed, mut repeated, mut refused) = (0, 0, 0);
        for _ in 0..20_000 {
            now += rng.duration(Duration::ZERO, 200 * MS);
            let known = command(rng.below(400) as u32, rng.below(3));
            let key = (known.id, known.name);
            let agent = AgentId(rng.below(2) as u8);
            match rng.below(10) {
                0..6 => {
                    if model.get(&key).is_some_and(|k| k.finished.as_ref().is_some_and(|(t, _)| *t + 30 * S <= now)) {
                        model.remove(&key);
                    }
                    match (history.lookup(now, &known), model.get(&key)) {
                        (Seen::New { superseded: None, .. }, None) => match history.begin(now, &start(known, agent)) {
                            Ok(handle) => {
                                executed += 1;
                                model.insert(key, Known { agent, handle, finished: None, confirmed: false, perhaps_confirmed: false });
                            }
                            Err(_) => refused += 1,
                        },
                        (Seen::Running(handle), Some(k)) => assert!(k.handle == handle && k.finished.is_none()),
                        (Seen::Confirmed, Some(k)) => assert!(k.confirmed || k.perhaps_confirmed),
                        (Seen::Finished { handle, body }, Some(k)) => {
                            assert!(k.handle == handle && !k.confirmed);
                            assert_eq!(k.finished.as_ref().map(|f| &f.1[..]), Some(body));
                            repeated += 1;
                        }
                        (seen, model) => panic!("seed {seed}: {seen:?}, the model knows it: {}", model.is_some()),
                    }
                }
                6..8 => {
                    let running = model.values_mut().filter(|k| k.finished.is_none());
                    for k in running.take(3) {
                        let body: Vec<u8> = (0..rng.below(401)).map(|_| rng.next() as u8).collect();
                        history.finish(now, k.handle, &body).unwrap();
                        k.finished = Some((now, body));
                    }
                }
                8 => {
                    let width = if rng.chance(300_000) { 200 } else { 5 };
                    let (low, high) = (known.id, known.id + rng.below(width) as u32);
                    let kept = confirm(&mut history, now, agent, low, high).kept;
                    for (key, k) in model.iter_mut() {
                        if (low..=high).contains(&key.0) && k.agent == agent && k.finished.is_some() {
                            k.confirmed |= !kept;
                            k.perhaps_confirmed |= kept;
                        }
                    }
                }
                _ => {
                    // Now and then a pause after which everything is due at once.
                    if rng.chance(20_000) {
                        now += 31 * S;
                    }
                    let budget = if rng.chance(500_000) { 1000 } else { rng.below(5) };
                    history.expire(now, budget as usize);
                }
            }
            let running = model.values().filter(|k| k.finished.is_none()).count();
            assert_eq!(history.stats().running, running);
        }
        assert!(executed > 1000 && repeated > 300 && refused > 0, "seed {seed}: {executed} {repeated} {refused}");
    }
}
