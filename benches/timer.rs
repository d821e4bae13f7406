//! What a timer costs: schedule and cancel (the usual fate of a retransmission timer), and schedule and fire.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;
use tollgate::proto::base::{Rng, Time};
use tollgate::proto::timer::TimerWheel;

const TICK: Duration = Duration::from_millis(1);

/// A wheel with `count` timers over the next half minute, and keys as many again for the measurement.
fn filled(count: u32) -> (TimerWheel, Rng) {
    let mut rng = Rng::new(1);
    let mut wheel = TimerWheel::new(count * 2, TICK, Time::ZERO);
    for key in 0..count {
        wheel.schedule(key, 0, Time::ZERO + rng.duration(Duration::ZERO, Duration::from_secs(30)));
    }
    (wheel, rng)
}

fn timer(c: &mut Criterion) {
    for count in [1_000, 100_000] {
        let (mut wheel, mut rng) = filled(count);
        c.bench_function(&format!("timer/schedule+cancel/{count} running"), |b| {
            b.iter(|| {
                let key = count + rng.below(u64::from(count)) as u32;
                wheel.schedule(key, 1, Time::ZERO + rng.duration(Duration::ZERO, Duration::from_secs(4)));
                black_box(wheel.cancel(key, 1))
            });
        });
        c.bench_function(&format!("timer/fire all {count}, 1 ms a step"), |b| {
            b.iter_batched(
                || filled(count).0,
                |mut wheel| {
                    let mut fired = 0;
                    for millis in 0..=30_000 {
                        let mut budget = u32::MAX;
                        while wheel.advance(Time::from_millis(millis), &mut budget).is_some() {
                            fired += 1;
                        }
                    }
                    assert_eq!(fired, count);
                    wheel
                },
                BatchSize::LargeInput,
            );
        });
    }
}

criterion_group!(benches, timer);
criterion_main!(benches);
