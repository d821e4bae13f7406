//! Received frames that stay in hand after the call that received them, by the core they wait for (G-SHD-03).
//!
//! A core may have as many as are left for the others: half of them when it is the only one behind, a third each when two are. So one
//! that stands still never holds them all, and the rest goes on being received. What comes for a core that has its share already is left
//! in the sockets for as long as that core is quick to give frames back ([`InHand::is_pressed`]); when it is not, it is dropped, and the
//! agent's repeat finds the core when it goes on.

use crate::proto::base::{CoreId, Time};
use std::time::Duration;

/// How long a core is watched to tell whether it is quick, and how many frames it gives back in that time if it is: a core that handles
/// messages gives back more, one that stands still none, and one that works on long commands a few.
const PACE: (Duration, u32) = (Duration::from_millis(10), 16);

/// The account. Allocated once.
pub(super) struct InHand {
    /// This core.
    own: CoreId,
    limit: u32,
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
        InHand { own, limit: limit.into(), total: 0, holders: vec![Holder::default(); usize::from(cores)] }
    }

    /// A frame is to wait for `core`. False: that one has its share.
    pub fn take(&mut self, now: Time, core: CoreId) -> bool {
        let left = self.left();
        let Some(holder) = self.holders.get_mut(usize::from(core.0)).filter(|holder| holder.frames < left) else { return false };
        if holder.frames == 0 {
            *holder = Holder { frames: 0, watched: now, returned: 0, quick: true };
        }
        holder.frames += 1;
        self.total += 1;
        true
    }

    /// Whether a frame may wait for `core`.
    pub fn has_room(&self, core: CoreId) -> bool {
        self.holders.get(usize::from(core.0)).is_some_and(|holder| holder.frames < self.left())
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
        // A core that has its share of all has as many as are left.
        if self.total < self.limit / 4 {
            return false;
        }
        let left = self.left();
        let pressing = |holder: &Holder| holder.frames > 0 && holder.frames + self.limit / 16 >= left && holder.is_quick(now);
        self.holders.iter().enumerate().any(|(core, holder)| core != usize::from(self.own.0) && pressing(holder))
    }

    /// How many are in hand.
    pub fn total(&self) -> u32 {
        self.total
    }

    fn left(&self) -> u32 {
        self.limit.saturating_sub(self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_that_stand_still_leave_room_for_the_others() {
        for stalled in 1..=3 {
            let mut all = InHand::new(1000, CoreId(3), 4);
            for _ in 0..1000 {
                (0..stalled).for_each(|core| _ = all.take(Time::ZERO, CoreId(core)));
            }
            let share = 1000 / (u32::from(stalled) + 1);
            assert!(all.holders[..usize::from(stalled)].iter().all(|holder| holder.frames.abs_diff(share) <= 1), "{stalled}");
            assert!(all.take(Time::ZERO, CoreId(3)), "{stalled}");
            (0..4000).for_each(|n| all.give_back(Time::ZERO, CoreId(n as u8 % 4)));
            assert_eq!(all.total(), 0);
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
