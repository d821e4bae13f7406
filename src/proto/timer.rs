//! A hierarchical timer wheel: one timer for each key, scheduled and cancelled in constant time.
//!
//! Owns the times and nothing else: what a key stands for is the owner's business. Keys are small numbers, `0..capacity`, such as the
//! slots of the owner's table; the generation given with a key comes back with it, so that an owner that uses a slot again can tell an
//! old timer from a new one. After construction nothing is allocated.
//!
//! To drive it: [`TimerWheel::schedule`]; at [`TimerWheel::deadline`], call [`TimerWheel::advance`] until it yields nothing.
//!
//! Invariants. A timer never fires early, and at most one tick late when the wheel is driven on time. Timers fire in the order of
//! their ticks; within one tick, timers scheduled directly into it keep their order. A timer for a time past fires at the next
//! `advance`. The work of one `advance` is bounded by its budget.
//!
//! A tick number is read as digits of six bits. A timer stands in the level of the highest digit in which its tick differs from the
//! wheel's current tick, in the slot of that digit's value; so everything in a lower level fires before everything in a higher one,
//! and the first occupied slot of the lowest occupied level is next. When the current tick reaches a slot of a higher level, its
//! timers move down.

use crate::proto::base::Time;
use std::time::Duration;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
/// Enough digits for every `Time`: 2^64 ns are fewer than 2^48 ticks of [`TICK_MIN`].
const LEVELS: usize = 8;
const TICK_MIN: Duration = Duration::from_micros(100);
/// "No key", and "in no slot".
const NONE: u32 = u32::MAX;

/// A timer that has fired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expired {
    /// The key it was scheduled for.
    pub key: u32,
    /// The generation it was scheduled with.
    pub generation: u32,
    /// The time it was scheduled for.
    pub at: Time,
}

#[derive(Clone, Copy)]
struct Node {
    at: Time,
    generation: u32,
    /// Neighbours in the slot's list.
    next: u32,
    previous: u32,
    /// Level * SLOTS + slot, or `NONE` when not scheduled.
    place: u32,
}

#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

/// The wheel. See the module's page.
pub struct TimerWheel {
    nodes: Vec<Node>,
    lists: Vec<List>,
    /// One bit for each slot of a level that is not empty.
    occupied: [u64; LEVELS],
    tick: u64,
    /// Every timer of an earlier tick has fired.
    current: u64,
    /// The list whose timers are being moved to lower levels; its slot begins at `current`.
    moving: Option<u32>,
    scheduled: usize,
}

impl TimerWheel {
    /// A wheel for the keys `0..capacity` that begins at `now`. `tick` is its resolution, at least 100 microseconds.
    pub fn new(capacity: u32, tick: Duration, now: Time) -> TimerWheel {
        let tick = u64::try_from(tick.max(TICK_MIN).as_nanos()).unwrap_or(u64::MAX);
        let idle = Node { at: Time::NEVER, generation: 0, next: NONE, previous: NONE, place: NONE };
        TimerWheel {
            nodes: vec![idle; capacity.min(NONE - 1) as usize],
            lists: vec![List { first: NONE, last: NONE }; LEVELS * SLOTS],
            occupied: [0; LEVELS],
            tick,
            current: now.0 / tick,
            moving: None,
            scheduled: 0,
        }
    }

    /// Starts the timer of `key`, or moves it when it runs. False, and no change, when the key is out of range.
    pub fn schedule(&mut self, key: u32, generation: u32, at: Time) -> bool {
        let Some(node) = self.nodes.get(key as usize) else { return false };
        if node.place != NONE {
            self.unlink(key);
        }
        let node = &mut self.nodes[key as usize];
        (node.at, node.generation) = (at, generation);
        self.link(key);
        true
    }

    /// Stops the timer of `key` if it runs for this generation. Whether it did.
    #[inline]
    pub fn cancel(&mut self, key: u32, generation: u32) -> bool {
        let runs = self.nodes.get(key as usize).is_some_and(|n| n.place != NONE && n.generation == generation);
        if runs {
            self.unlink(key);
        }
        runs
    }

    /// When the timer of `key` fires, if it runs.
    pub fn scheduled_at(&self, key: u32) -> Option<Time> {
        self.nodes.get(key as usize).filter(|n| n.place != NONE).map(|n| n.at)
    }

    /// How many timers run.
    pub fn len(&self) -> usize {
        self.scheduled
    }

    /// Whether no timer runs.
    pub fn is_empty(&self) -> bool {
        self.scheduled == 0
    }

    /// The next timer that is due at `now`. Each timer that fires or moves costs one of `budget`; when the budget is used up there may
    /// be more, and [`TimerWheel::deadline`] says so.
    pub fn advance(&mut self, now: Time, budget: &mut u32) -> Option<Expired> {
        let now = now.0 / self.tick;
        loop {
            if let Some(place) = self.moving {
                let key = self.lists[place as usize].first;
                if key == NONE {
                    self.moving = None;
                } else {
                    *budget = budget.checked_sub(1)?;
                    self.unlink(key);
                    self.link(key);
                }
                continue;
            }
            let next = self.next_slot().filter(|&(_, start)| start <= now);
            let Some((place, start)) = next else {
                self.current = self.current.max(now);
                return None;
            };
            self.current = start;
            if place as usize >= SLOTS {
                self.moving = Some(place);
                continue;
            }
            *budget = budget.checked_sub(1)?;
            let key = self.lists[place as usize].first;
            self.unlink(key);
            let Node { at, generation, .. } = self.nodes[key as usize];
            return Some(Expired { key, generation, at });
        }
    }

    /// When to call [`TimerWheel::advance`] again: not after the first timer is due. It may lie before that, when timers must move.
    pub fn deadline(&self) -> Time {
        // Those that were to move may have been cancelled since.
        if self.moving.is_some_and(|place| self.lists[place as usize].first != NONE) {
            return Time(self.current.saturating_mul(self.tick));
        }
        self.next_slot().map_or(Time::NEVER, |(_, start)| Time(start.saturating_mul(self.tick)))
    }

    /// The occupied slot that comes first, and its first tick.
    #[inline]
    fn next_slot(&self) -> Option<(u32, u64)> {
        let level = self.occupied.iter().position(|&bits| bits != 0)?;
        let slot = self.occupied[level].trailing_zeros();
        let shift = BITS * level as u32;
        let above = self.current >> (shift + BITS) << (shift + BITS);
        Some(((level * SLOTS) as u32 + slot, above | (u64::from(slot) << shift)))
    }

    fn link(&mut self, key: u32) {
        let tick = self.nodes[key as usize].at.0.div_ceil(self.tick).max(self.current);
        let differing = (tick ^ self.current) | (SLOTS as u64 - 1);
        let level = (differing.ilog2() / BITS).min(LEVELS as u32 - 1);
        let slot = (tick >> (BITS * level)) & (SLOTS as u64 - 1);
        let place = level * SLOTS as u32 + slot as u32;
        let last = self.lists[place as usize].last;
        let node = &mut self.nodes[key as usize];
        (node.next, node.previous, node.place) = (NONE, last, place);
        if last == NONE {
            self.lists[place as usize].first = key;
            self.occupied[level as usize] |= 1 << slot;
        } else {
            self.nodes[last as usize].next = key;
        }
        self.lists[place as usize].last = key;
        self.scheduled += 1;
    }

    fn unlink(&mut self, key: u32) {
        let Node { next, previous, place, .. } = self.nodes[key as usize];
        self.nodes[key as usize].place = NONE;
        let list = &mut self.lists[place as usize];
        if previous == NONE {
            list.first = next;
        }
        if next == NONE {
            list.last = previous;
        }
        if list.first == NONE {
            self.occupied[place as usize / SLOTS] &= !(1 << (place as usize % SLOTS));
        }
        if previous != NONE {
            self.nodes[previous as usize].next = next;
        }
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
        self.scheduled -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Rng;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const TICK: Duration = Duration::from_millis(1);

    fn drain(wheel: &mut TimerWheel, now: Time) -> Vec<Expired> {
        let mut budget = u32::MAX;
        std::iter::from_fn(|| wheel.advance(now, &mut budget)).collect()
    }

    /// Timers by key, and nothing clever.
    #[derive(Default)]
    struct Model(BTreeMap<u32, (u32, Time)>);

    #[derive(Clone, Debug)]
    enum Step {
        Schedule { key: u32, generation: u32, after: u64 },
        Cancel { key: u32, generation: u32 },
        Advance { by: u64, budget: u32 },
    }

    fn step() -> impl Strategy<Value = Step> {
        // Delays of every magnitude, from below a tick to years.
        let delay = (0u32..56, any::<u64>()).prop_map(|(bits, value)| value & ((1u64 << bits) - 1));
        prop_oneof![
            4 => (0u32..40, 0u32..3, delay.clone()).prop_map(|(key, generation, after)| Step::Schedule { key, generation, after }),
            1 => (0u32..40, 0u32..3).prop_map(|(key, generation)| Step::Cancel { key, generation }),
            3 => (delay, prop_oneof![Just(u32::MAX), 0u32..6]).prop_map(|(by, budget)| Step::Advance { by, budget }),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_a_naive_model(origin in 0u64..1 << 60, steps in prop::collection::vec(step(), 1..200)) {
            let mut now = Time(origin);
            let mut wheel = TimerWheel::new(32, TICK, now);
            let mut model = Model::default();
            let tick_of = |at: Time| at.0.div_ceil(1_000_000);
            for step in steps {
                match step {
                    Step::Schedule { key, generation, after } => {
                        let at = now + Duration::from_nanos(after);
                        prop_assert_eq!(wheel.schedule(key, generation, at), key < 32);
                        if key < 32 {
                            model.0.insert(key, (generation, at));
                        }
                    }
                    Step::Cancel { key, generation } => {
                        let runs = model.0.get(&key).is_some_and(|&(g, _)| g == generation);
                        prop_assert_eq!(wheel.cancel(key, generation), runs);
                        if runs {
                            model.0.remove(&key);
                        }
                    }
                    Step::Advance { by, budget } => {
                        now += Duration::from_nanos(by);
                        let mut left = budget;
                        let mut last = 0;
                        while let Some(expired) = wheel.advance(now, &mut left) {
                            prop_assert_eq!(model.0.remove(&expired.key), Some((expired.generation, expired.at)));
                            prop_assert!(expired.at <= now);
                            prop_assert!(tick_of(expired.at) >= last, "out of order");
                            last = tick_of(expired.at);
                            // Nothing that still waits was due in an earlier tick.
                            prop_assert!(model.0.values().all(|&(_, at)| tick_of(at) >= last));
                        }
                        if left > 0 {
                            // Drained: whatever was due a tick ago has fired.
                            prop_assert!(model.0.values().all(|&(_, at)| tick_of(at) > now.0 / 1_000_000));
                            prop_assert!(wheel.deadline() > now);
                        }
                    }
                }
                prop_assert_eq!(wheel.len(), model.0.len());
                let first = model.0.values().map(|&(_, at)| tick_of(at)).min();
                prop_assert_eq!(first.is_none(), wheel.deadline() == Time::NEVER);
                if let Some(first) = first {
                    prop_assert!(wheel.deadline().0 <= first.max(now.0 / 1_000_000 + 1).saturating_mul(1_000_000));
                }
                for (&key, &(_, at)) in &model.0 {
                    prop_assert_eq!(wheel.scheduled_at(key), Some(at));
                }
            }
        }
    }

    #[test]
    fn cancelled_while_they_move_they_need_no_wake_up() {
        let mut wheel = TimerWheel::new(2, TICK, Time::ZERO);
        (0..2).for_each(|key| assert!(wheel.schedule(key, 0, Time::from_millis(5000))));
        let mut budget = 1;
        assert_eq!((wheel.advance(Time::from_millis(4500), &mut budget), budget), (None, 0));
        assert_eq!(wheel.deadline(), Time::from_millis(4096));
        assert!(wheel.cancel(0, 0) && wheel.cancel(1, 0));
        assert_eq!((wheel.deadline(), wheel.is_empty()), (Time::NEVER, true));
    }

    #[test]
    fn timers_of_one_tick_fire_in_the_order_they_were_scheduled() {
        let mut wheel = TimerWheel::new(100, TICK, Time::from_millis(7));
        for key in [5, 3, 99, 0] {
            assert!(wheel.schedule(key, 1, Time::ZERO));
        }
        let keys: Vec<_> = drain(&mut wheel, Time::from_millis(7)).iter().map(|e| e.key).collect();
        assert_eq!(keys, [5, 3, 99, 0]);
    }

    #[test]
    fn a_timer_for_the_end_of_time_never_fires() {
        let mut wheel = TimerWheel::new(1, TICK, Time::ZERO);
        assert!(wheel.schedule(0, 0, Time::NEVER));
        assert!(drain(&mut wheel, Time(u64::MAX - 2_000_000)).is_empty());
        assert_eq!(wheel.len(), 1);
    }

    #[test]
    fn a_hundred_thousand_due_at_once_come_in_bounded_batches() {
        let mut wheel = TimerWheel::new(100_000, TICK, Time::ZERO);
        let mut rng = Rng::new(5);
        for key in 0..100_000 {
            assert!(wheel.schedule(key, 0, Time::from_millis(60_000 + rng.below(5))));
        }
        let now = Time::from_millis(70_000);
        let (mut fired, mut batches) = (0, 0);
        while wheel.deadline() <= now {
            let mut budget = 1000;
            while wheel.advance(now, &mut budget).is_some() {
                fired += 1;
            }
            batches += 1;
        }
        // Each timer fires once and moves at most once per level on the way.
        assert_eq!(fired, 100_000);
        assert!((100..=100 * LEVELS).contains(&batches), "{batches}");
    }
}
