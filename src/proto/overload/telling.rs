//! The gateway's half of overload control: what a gateway of H.248 tells its controllers while its core is overloaded (H.248.11, H.248.10),
//! and when it takes no new calls at all.
//!
//! [`Load`] is what a core knows, [`Manner`] what is configured. [`Reduction`] turns the first into the share of calls that controllers
//! are asked to hold back: up while the core is overloaded, down slowly when it is not, so that a controller which cannot follow a
//! notification for each Add still leaves the gateway what it can do.

use crate::proto::base::Time;
use std::time::Duration;

/// How a core is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Load {
    /// Its detector says that it is overloaded.
    pub overloaded: bool,
    /// How long what is handled now has waited, smoothed.
    pub sojourn: Duration,
}

/// Which Adds are told of while overloaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Adds {
    /// Each (H.248.11 of 2002).
    #[default]
    Each,
    /// The first of a context (corrigendum of 2008).
    First,
    /// None.
    Off,
}

/// What is configured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manner {
    /// Which Adds are notified by `ocp/mg_overload`.
    pub adds: Adds,
    /// A notification that nobody has answered is repeated for so long, and one that could not be sent waits so long; then it is dropped: what
    /// it says is no news any more.
    pub age: Duration,
    /// New contexts are refused when messages have waited for longer, but for emergencies and contexts with priority.
    pub refuse: Duration,
    /// How much more of their calls controllers are asked to block for each second of overload, in percent (`chp/mgcon`).
    pub rise: u8,
    /// How much less for each second without.
    pub fall: u8,
}

impl Default for Manner {
    fn default() -> Manner {
        let (age, refuse) = (Duration::from_secs(1), Duration::from_millis(200));
        Manner { adds: Adds::Each, age, refuse, rise: 20, fall: 5 }
    }
}

/// How often the share is looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// The share of calls that controllers are asked to hold back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reduction {
    percent: u8,
    /// When it is looked at again; [`Time::NEVER`] while nothing is held back and nothing is wrong.
    due: Time,
}

impl Default for Reduction {
    fn default() -> Reduction {
        Reduction { percent: 0, due: Time::NEVER }
    }
}

impl Reduction {
    /// In percent; 0: none.
    pub fn percent(&self) -> u8 {
        self.percent
    }

    /// When to call [`Reduction::step`] at the latest.
    pub fn deadline(&self) -> Time {
        self.due
    }

    /// The core is like this now. What controllers are to be asked for, when that has changed.
    pub fn step(&mut self, now: Time, overloaded: bool, manner: &Manner) -> Option<u8> {
        if self.due == Time::NEVER {
            if !overloaded {
                return None;
            }
        } else if now < self.due {
            return None;
        }
        let before = self.percent;
        self.percent = match overloaded {
            true => before.saturating_add(manner.rise).min(100),
            false => before.saturating_sub(manner.fall.max(1)),
        };
        self.due = if self.percent > 0 || overloaded { now + PERIOD } else { Time::NEVER };
        (self.percent != before).then_some(self.percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_rises_by_the_second_of_overload_and_falls_slowly_to_none() {
        // OVL-06
        let manner = Manner::default();
        let mut reduction = Reduction::default();
        let mut said = Vec::new();
        for ms in (0..40_000).step_by(100) {
            let now = Time::from_millis(ms);
            said.extend(reduction.step(now, (1000..3500).contains(&ms), &manner).map(|percent| (ms / 1000, percent)));
        }
        assert_eq!(said[..4], [(1, 20), (2, 40), (3, 60), (4, 55)]);
        assert_eq!((said.len(), *said.last().unwrap(), reduction.deadline()), (15, (15, 0), Time::NEVER));
    }

    #[test]
    fn it_never_asks_for_more_than_everything() {
        let mut reduction = Reduction::default();
        let said: Vec<u8> = (0..20).filter_map(|s| reduction.step(Time::from_millis(1000 * s), true, &Manner::default())).collect();
        assert_eq!(said, [20, 40, 60, 80, 100]);
    }
}
