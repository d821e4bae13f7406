//! The inside view: how long messages wait, travel between cores and are handled, per core and kind of work, always on.
//!
//! A core writes its own [`Inside`], the control loop reads it at any time: cells are atomic and written by one thread, so a record
//! costs a clock read and a few plain stores (docs/decisions/inside.md). Sizes are fixed: nothing is allocated while running.
//!
//! - *waiting*: from arrival (the kernel's timestamp, where there is one) to the start of its handling, on the core that received it.
//! - *hop*: the same for a message that another core received and forwarded.
//! - *service*: the handling, to the response in its send slot. Work that is put off (a slow card, other cores) is not in it.

use crate::proto::base::Time;
use crate::proto::core::{Handled, Work};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Steps per doubling: a value is known to an eighth.
const STEPS: usize = 8;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Values are below 2 to this power, in ns: 68 s.
const VALUE_BITS: u32 = 36;
const CELLS: usize = (VALUE_BITS - STEP_BITS + 1) as usize * STEPS;

/// What times are told of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// From arrival to handling on the core that received it.
    Waiting,
    /// From arrival at another core to handling.
    Hop,
    /// The handling.
    Service,
}

impl Part {
    /// All parts, in the order a message goes through them.
    pub const ALL: [Part; 3] = [Part::Waiting, Part::Hop, Part::Service];

    /// Its name in lists and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Part::Waiting => "waiting",
            Part::Hop => "hop",
            Part::Service => "service",
        }
    }
}

/// The times of one core.
pub struct Inside {
    /// By work, then by part.
    histograms: Box<[Histogram]>,
}

impl Default for Inside {
    fn default() -> Inside {
        Inside { histograms: (0..Work::COUNT * Part::ALL.len()).map(|_| Histogram::new()).collect() }
    }
}

impl Inside {
    /// Notes a message whose handling began at `start` and ended at `end`.
    #[inline]
    pub fn record(&self, handled: Handled, start: Time, end: Time) {
        let before = if handled.forwarded { Part::Hop } else { Part::Waiting };
        for (part, time) in [(before, start.since(handled.arrival)), (Part::Service, end.since(start))] {
            if let Some(histogram) = self.histograms.get(place(handled.work, part)) {
                histogram.record(time);
            }
        }
    }

    /// What is known of one part of one kind of work.
    pub fn times(&self, work: Work, part: Part) -> Times {
        self.histograms.get(place(work, part)).map_or_else(Times::default, Histogram::times)
    }
}

fn place(work: Work, part: Part) -> usize {
    work.place() * Part::ALL.len() + part as usize
}

/// A log-linear histogram with one writer.
struct Histogram {
    cells: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Histogram {
    fn new() -> Histogram {
        Histogram { cells: (0..CELLS).map(|_| AtomicU64::new(0)).collect(), sum_ns: AtomicU64::new(0), max_ns: AtomicU64::new(0) }
    }

    #[inline]
    fn record(&self, time: Duration) {
        let value = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min((1 << VALUE_BITS) - 1);
        // One thread writes: no locked instruction is needed.
        let add = |cell: &AtomicU64, by: u64| cell.store(cell.load(Ordering::Relaxed) + by, Ordering::Relaxed);
        if let Some(cell) = self.cells.get(cell_of(value)) {
            add(cell, 1);
        }
        add(&self.sum_ns, value);
        if value > self.max_ns.load(Ordering::Relaxed) {
            self.max_ns.store(value, Ordering::Relaxed);
        }
    }

    fn times(&self) -> Times {
        let cells = self.cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect();
        Times { cells, sum_ns: self.sum_ns.load(Ordering::Relaxed), max_ns: self.max_ns.load(Ordering::Relaxed) }
    }
}

fn cell_of(value: u64) -> usize {
    if value < STEPS as u64 {
        return value as usize;
    }
    let doublings = value.ilog2() - STEP_BITS;
    (doublings as usize + 1) * STEPS + (value >> doublings) as usize - STEPS
}

/// The largest value of a cell.
fn cell_end(cell: usize) -> u64 {
    if cell < STEPS {
        return cell as u64;
    }
    let doublings = cell / STEPS - 1;
    (((cell % STEPS + STEPS + 1) as u64) << doublings).saturating_sub(1)
}

/// A histogram as it was when it was read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Times {
    cells: Vec<u64>,
    sum_ns: u64,
    max_ns: u64,
}

impl Times {
    /// Messages.
    pub fn count(&self) -> u64 {
        self.cells.iter().sum()
    }

    /// All their times together, in ns.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// The longest time, in ns.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The time that this share of the messages did not exceed, in ns, an eighth too long at most; 0 when there is none.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let rank = (self.count() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let cell = self.cells.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        cell.map_or(0, |cell| cell_end(cell).min(self.max_ns))
    }

    /// Messages whose time was below 2 to the power of each of `powers` ns and not below the one before.
    pub fn between(&self, powers: &[u32]) -> Vec<u64> {
        let mut from = 0;
        let part = |&power: &u32| {
            let to = cell_of(1 << power);
            let sum = self.cells.get(from..to).unwrap_or_default().iter().sum();
            from = to;
            sum
        };
        powers.iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::codec::mgcp::Verb;
    use proptest::prelude::*;

    const CRCX: Work = Work::Command(Some(Verb::Crcx));

    #[test]
    fn each_message_counts_once_in_two_parts_of_its_own_kind() {
        let inside = Inside::default();
        let handled = |work, forwarded| Handled { work, forwarded, arrival: Time(1000) };
        for n in 1..=100 {
            inside.record(handled(CRCX, false), Time(1000 + n * 1000), Time(1000 + n * 1000 + 1500));
        }
        inside.record(handled(CRCX, true), Time(3000), Time(3700));
        inside.record(handled(Work::Response, false), Time(500), Time(600));
        let waiting = inside.times(CRCX, Part::Waiting);
        assert_eq!((waiting.count(), waiting.max_ns(), waiting.sum_ns()), (100, 100_000, 5_050_000));
        for (share, exact) in [(0.5, 50_000), (0.99, 99_000), (1.0, 100_000)] {
            let told = waiting.quantile_ns(share);
            assert!(told >= exact && told <= exact + exact / 8, "{share}: {told}");
        }
        assert_eq!((inside.times(CRCX, Part::Service).count(), inside.times(CRCX, Part::Hop).count()), (101, 1));
        assert_eq!(inside.times(Work::Response, Part::Waiting).max_ns(), 0, "an arrival told too late is no time");
        assert_eq!(inside.times(Work::Command(None), Part::Service), Histogram::new().times());
        assert_eq!(inside.times(Work::Command(None), Part::Service).quantile_ns(0.5), 0);
    }

    #[test]
    fn the_longest_times_have_a_cell() {
        let histogram = Histogram::new();
        histogram.record(Duration::MAX);
        histogram.record(Duration::from_secs(70));
        assert_eq!((histogram.times().count(), histogram.times().max_ns()), (2, (1 << VALUE_BITS) - 1));
        assert_eq!(histogram.times().between(&[10, 30]), [0, 0]);
    }

    #[test]
    fn ranges_between_powers_hold_what_is_below() {
        let histogram = Histogram::new();
        for ns in [0, 1, 1023, 1024, 1025, 4095, 4096, 1 << 20] {
            histogram.record(Duration::from_nanos(ns));
        }
        assert_eq!(histogram.times().between(&[10, 12, 14]), [3, 3, 1]);
    }

    proptest! {
        #[test]
        fn cells_are_in_order_and_an_eighth_wide(value in 0u64..1 << VALUE_BITS) {
            let cell = cell_of(value);
            prop_assert!(cell < CELLS);
            prop_assert!(value <= cell_end(cell) && (cell == 0 || value > cell_end(cell - 1)));
            prop_assert!(cell_end(cell) - value <= value / 8);
        }
    }
}
