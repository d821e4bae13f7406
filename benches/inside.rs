//! What the always-on view of times costs: `cargo bench --bench inside`. Each message pays one reading of the clock and two records.
#![allow(missing_docs, reason = "a program")]

use std::hint::black_box;
use std::time::Duration;
use tollgate::host::clock::Clock;
use tollgate::host::inside::Inside;
use tollgate::proto::base::Time;
use tollgate::proto::codec::mgcp::Verb;
use tollgate::proto::core::{Handled, Work};

const MESSAGES: u32 = 2_000_000;
const ROUNDS: usize = 9;

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
    let mut times: Vec<(Duration, Duration)> = (0..ROUNDS).map(|_| (round(&read), round(&record))).collect();
    times.sort();
    let (read, record) = (times[0].0, times.iter().map(|(_, record)| *record).min().unwrap_or_default());
    println!(
        "best of {ROUNDS} rounds of {MESSAGES}: reading the clock {} ns, a record {} ns per message",
        read.as_nanos(),
        record.as_nanos()
    );
}
