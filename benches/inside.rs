//! What the always-on view of times costs: `cargo bench --bench inside`. Each message pays one reading of the clock and two records.
#![allow(missing_docs, reason = "a program")]

use std::hint::black_box;
use std::time::Duration;
use tollgate::host::clock::Clock;
use tollgate::host::inside::Inside;
use tollgate::proto::base::Time;
use tollgate::proto::codec::mgcp::Verb;
use tollgate::proto::core::{Handled, Work};

/// Short rounds and many: on a shared machine the best ones are those nobody else had a part of.
const MESSAGES: u32 = 20_000;
const ROUNDS: usize = 500;

fn main() {
    let (clock, inside) = (Clock::new(), Inside::default());
    let verbs = [Verb::Crcx, Verb::Mdcx, Verb::Dlcx, Verb::Auep];
    let round = |work: &dyn Fn(u32)| {
        let start = clock.now();
        (0..MESSAGES).for_each(work);
        clock.now().since(start) / MESSAGES
    };
    let read = |_| {
        black_box(clock.now());
    };
    let record = |n: u32| {
        let work = Work::Command(Some(verbs[n as usize % verbs.len()]));
        // Times as they spread in service: 1 to 9 us.
        let (arrival, start) = (Time(u64::from(n) * 1000), Time(u64::from(n) * 1000 + u64::from(n % 97) * 50));
        let end = start + Duration::from_nanos(1000 + u64::from(n.wrapping_mul(2_654_435_761) >> 19));
        inside.record(black_box(Handled { work, forwarded: false, arrival }), start, end);
    };
    let mut best = [Duration::MAX; 2];
    for _ in 0..ROUNDS {
        for (best, time) in best.iter_mut().zip([round(&read), round(&record)]) {
            *best = time.min(*best);
        }
    }
    let [read, record] = best.map(|time| time.as_nanos());
    println!("best of {ROUNDS} rounds of {MESSAGES}: reading the clock {read} ns, a record {record} ns per message");
}
