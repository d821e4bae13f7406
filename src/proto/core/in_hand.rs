//! Received frames that stay in hand after the call that received them, by the core they wait for (G-SHD-03).
//!
//! Another core may have its share of them: half where there is one, a third where there are two, else a quarter, and never more than are
//! left. So up to three that are behind take nothing from each other, however long one stands still; when more are they share evenly. What comes for a core that has its share already is left
//! in the sockets for as long as that core is quick to give frames back ([`InHand::is_pressed`]); when it is not, it is dropped, and the
//! agent's repeat finds the core when it goes on.

use crate::proto::base::{CoreId, Time};
use std::time::Duration;

/// How long a core is watched to tell whether it is quick, and how many frames it gives back in that time if it is: a core that handles
/// messages gives back more, one that stands still none, and one that works on long commands a few.
const PACE: (Duration, u32) = (Duration::from_millis(10), 16);

/// As many cores can be behind and take nothing from each other.
pub const SHARERS: u32 = 3;

/// The account. Allocated once.
pub(super) struct InHand {
    /// This core.
    own: CoreId,
    limit: u32,
    /// The most for one other core.
    share: u32,
    total: u32,
    holders: Vec<Holder>,
}

/// What waits for one core.
#[derive(Clone, Copy, Default)]
struct Holder {
    frames: u32,
    /// When it began to be watched, and how many frames it has given back since.
    watched: Time,
    returned: u32,
    /// Whether it was quick when it was watched before; at first it is thought to be.
    quick: bool,
}

impl Holder {
    fn give_back(&mut self, now: Time) {
        if now.since(self.watched) >= PACE.0 {
            *self = Holder { watched: now, returned: 0, quick: self.is_quick(now), ..*self };
        }
        self.frames -= 1;
        self.returned += 1;
    }

    fn is_quick(&self, now: Time) -> bool {
        match now.since(self.watched) {
            time if time < PACE.0 => self.quick || self.returned >= PACE.1,
            time => self.returned >= PACE.1 && time < PACE.0 * 2,
        }
    }
}

impl InHand {
    /// So many frames, on core `own` of so many.
    pub fn new(limit: u16, own: CoreId, cores: u8) -> InHand {
        let sharers = u32::from(cores).saturating_sub(1).clamp(1, SHARERS);
        InHand {
            own,
            limit: limit.into(),
            share: u32::from(limit) / (1 + sharers),
            total: 0,
            holders: vec![Holder::default(); usize::from(cores)],
        }
    }

    /// A frame is to wait for `core`. False: that one has its share.
    pub fn take(&mut self, now: Time, core: CoreId) -> bool {
        let share = self.share(core);
        let Some(holder) = self.holders.get_mut(usize::from(core.0)).filter(|holder| holder.frames < share) else { return false };
        if holder.frames == 0 {
            *holder = Holder { frames: 0, watched: now, returned: 0, quick: true };
        }
        holder.frames += 1;
        self.total += 1;
        true
    }

    /// Whether a frame may wait for `core`.
    pub fn has_room(&self, core: CoreId) -> bool {
        self.holders.get(usize::from(core.0)).is_some_and(|holder| holder.frames < self.share(core))
    }

    /// `core` needs one of its frames no longer.
    pub fn give_back(&mut self, now: Time, core: CoreId) {
        if let Some(holder) = self.holders.get_mut(usize::from(core.0)).filter(|holder| holder.frames > 0) {
            holder.give_back(now);
            self.total -= 1;
        }
    }

    /// Whether another core that is quick has its share, or nearly: what comes now had better wait in the sockets.
    #[inline]
    pub fn is_pressed(&self, now: Time) -> bool {
        if self.total < self.limit / 8 {
            return false;
        }
        let share = self.left().min(self.share);
        let pressing = |holder: &Holder| holder.frames > 0 && holder.frames + self.limit / 16 >= share && holder.is_quick(now);
        self.holders.iter().enumerate().any(|(core, holder)| core != usize::from(self.own.0) && pressing(holder))
    }

    /// How many are in hand.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// How many `core` may have at the most. What waits here takes nothing from cores that are read from the sockets.
    fn share(&self, core: CoreId) -> u32 {
        if core == self.own { self.left() } else { self.left().min(self.share) }
    }

    fn left(&self) -> u32 {
        self.limit.saturating_sub(self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Rng;

    #[test]
    fn cores_that_stand_still_leave_room_for_the_others() {
        for stalled in 1..=7 {
            let mut all = InHand::new(1000, CoreId(7), 8);
            for _ in 0..1000 {
                (0..stalled).for_each(|core| _ = all.take(Time::ZERO, CoreId(core)));
            }
            let share = (1000 / (u32::from(stalled) + 1)).min(250);
            assert!(all.holders[..usize::from(stalled)].iter().all(|holder| holder.frames.abs_diff(share) <= 1), "{stalled}");
            assert!(all.take(Time::ZERO, CoreId(7)), "{stalled}");
            (0..8000).for_each(|n| all.give_back(Time::ZERO, CoreId(n as u8 % 8)));
            assert_eq!(all.total(), 0);
        }
    }

    /// One transport core and three shards on two CPUs that others use as well, 20,000 messages a second: a shard stands still, and the
    /// others get no CPU for up to 80 ms at a time. None of their messages is lost.
    #[test]
    fn a_core_that_stands_still_costs_those_that_wait_for_a_cpu_nothing() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let mut all = InHand::new(3072, CoreId(0), 4);
            // Of each shard: until when it runs or waits for a CPU; what waits in the sockets.
            let (mut runs, mut until, mut socket) = ([false; 4], [0u64; 4], [0u32; 4]);
            let mut refused = [0; 4];
            for ms in 0..5000 {
                let now = Time::from_millis(ms);
                for shard in 1..4u8 {
                    let place = usize::from(shard);
                    if ms >= until[place] {
                        runs[place] = shard != 3 && !runs[place];
                        until[place] = ms + if runs[place] { 8 + rng.below(30) } else { 1 + rng.below(80) };
                    }
                    if runs[place] {
                        (0..60).for_each(|_| all.give_back(now, CoreId(shard)));
                    }
                    socket[place] += 6 + u32::from(ms % 3 == 0);
                }
                if all.is_pressed(now) {
                    continue;
                }
                for shard in 1..4u8 {
                    for _ in 0..std::mem::take(&mut socket[usize::from(shard)]) {
                        refused[usize::from(shard)] += u32::from(!all.take(now, CoreId(shard)));
                    }
                }
            }
            assert!(refused[1] == 0 && refused[2] == 0 && refused[3] > 20_000, "{seed}: {refused:?}");
        }
    }

    #[test]
    fn who_works_is_waited_for_and_who_does_not_is_not() {
        let at = Time::from_millis;
        for (returned, quick) in [(0, false), (5, false), (20, true)] {
            let mut all = InHand::new(64, CoreId(0), 2);
            (0..32).for_each(|_| assert!(all.take(at(0), CoreId(1))));
            assert!(!all.take(at(0), CoreId(1)) && all.take(at(0), CoreId(0)), "the rest is for others");
            assert!(all.is_pressed(at(9)), "nobody knows yet");
            for time in 9..60 {
                let again = if time % 10 == 9 { returned } else { 0 };
                (0..again).for_each(|_| all.give_back(at(time), CoreId(1)));
                (0..again).for_each(|_| assert!(all.take(at(time), CoreId(1))));
                assert!(time < 20 || all.is_pressed(at(time)) == quick, "{returned}: {time}");
            }
        }
    }

    #[test]
    fn a_core_does_not_wait_for_itself() {
        let mut all = InHand::new(64, CoreId(0), 2);
        while all.take(Time::ZERO, CoreId(0)) {}
        assert!(!all.is_pressed(Time::ZERO));
    }
}
