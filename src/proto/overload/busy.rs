//! How much of the last while a core had work: the share of a window that slides in ten steps.
//!
//! Where a core fetches datagrams from the network card itself (AF_XDP with busy polling) they get their time of arrival only then, and where a
//! driver has no room for it in front of a frame they get none: the wait in front of a core is not seen, and a core that never comes to rest
//! is the only sign of it. The window is a second at most: a share that is older says nothing of now (clause 9.3 of H.248.11 leaves the choice).

use crate::proto::base::Time;
use std::time::Duration;

/// Steps of the window.
const STEPS: usize = 10;

/// The share of the latest window that was work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    /// Length of one step.
    step: Duration,
    /// Work in each step, the latest ones of [`STEPS`], round about.
    done: [Duration; STEPS],
    /// The step that runs: where it lies, when it began.
    place: usize,
    began: Option<Time>,
    /// Work in the step that runs.
    work: Duration,
    /// The share of the ended steps.
    per_mille: u16,
}

impl Busy {
    pub(super) fn new(window: Duration) -> Busy {
        let step = (window / STEPS as u32).max(Duration::from_micros(1));
        Busy { step, done: [Duration::ZERO; STEPS], place: 0, began: None, work: Duration::ZERO, per_mille: 0 }
    }

    /// Another window; it begins empty when its length changes.
    pub(super) fn set_window(&mut self, window: Duration) {
        let new = Busy::new(window);
        if new.step != self.step {
            *self = new;
        }
    }

    /// Until `now`, which never falls, there was work for `work`; whether the share may have changed.
    #[inline]
    pub(super) fn worked(&mut self, now: Time, work: Duration) -> bool {
        self.work = self.work.saturating_add(work);
        let began = *self.began.get_or_insert(now);
        if now.since(began) < self.step {
            return false;
        }
        self.turn(now.since(began));
        self.began = Some(now);
        true
    }

    /// Steps have ended, `since` after the running one began: what was done in that time is spread over them.
    #[cold]
    fn turn(&mut self, since: Duration) {
        let ended = (since.as_nanos() / self.step.as_nanos().max(1)).clamp(1, STEPS as u128);
        let share = self.step.as_nanos() * self.work.min(since).as_nanos() / since.as_nanos().max(1);
        let share = Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX));
        for _ in 0..ended {
            if let Some(step) = self.done.get_mut(self.place) {
                *step = share;
            }
            self.place = (self.place + 1) % STEPS;
        }
        self.work = Duration::ZERO;
        let (sum, whole) = (self.done.iter().sum::<Duration>().as_nanos(), self.step.as_nanos() * STEPS as u128);
        self.per_mille = ((sum * 1000 + whole / 2) / whole.max(1)).min(1000) as u16;
    }

    /// Thousandths of the window that were work.
    pub(super) fn per_mille(&self) -> u16 {
        self.per_mille
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// So many milliseconds of which each has `work`; the share then.
    fn run(busy: &mut Busy, now: &mut Time, milliseconds: u32, work: Duration) -> u16 {
        for _ in 0..milliseconds {
            *now += MS;
            busy.worked(*now, work);
        }
        busy.per_mille()
    }

    #[test]
    fn the_share_is_that_of_the_last_window_only() {
        let (mut busy, mut now) = (Busy::new(Duration::from_secs(1)), Time::from_millis(5));
        assert_eq!(run(&mut busy, &mut now, 510, MS), 500, "half a window of work");
        assert_eq!(run(&mut busy, &mut now, 600, MS), 1000);
        let less = run(&mut busy, &mut now, 2000, MS * 7 / 10);
        assert!((690..=700).contains(&less), "{less}");
        assert_eq!(run(&mut busy, &mut now, 1100, Duration::ZERO), 0);
    }

    #[test]
    fn long_turns_and_long_pauses_count_as_what_they_were() {
        let (mut busy, mut now) = (Busy::new(Duration::from_secs(1)), Time::from_millis(5));
        busy.worked(now, Duration::ZERO);
        now += Duration::from_secs(3);
        busy.worked(now, Duration::from_secs(3));
        assert_eq!(busy.per_mille(), 1000);
        now += Duration::from_millis(500);
        busy.worked(now, Duration::ZERO);
        assert_eq!(busy.per_mille(), 500);
        now += Duration::from_secs(100);
        busy.worked(now, Duration::from_secs(1));
        assert!(busy.per_mille() <= 10, "a second of a hundred: {}", busy.per_mille());
        busy.worked(Time::NEVER, Duration::MAX);
        busy.set_window(Duration::ZERO);
        busy.worked(Time::ZERO, Duration::MAX);
        busy.worked(Time::NEVER, Duration::MAX);
        assert!(busy.per_mille() <= 1000);
    }
}
