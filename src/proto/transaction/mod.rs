//! Transactions: commands received are executed at most once, commands of ours are repeated until they are answered.
//!
//! - [`history`]: commands of agents, running and answered; a repeat finds its response (RFC 3435 3.5.1, 3.5.2).
//! - [`finals`]: responses that wait for their `000` (RFC 3435 3.5.6).
//! - [`outgoing`]: commands of ours until they are answered or given up (RFC 3435 3.5.3, 4.3).
//! - [`pace`]: how fast new commands go to an agent (RFC 3435 4.4.8).
//! - [`round_trip`]: how long an agent takes, and how long to wait before a repeat.
//! - [`responder`] and [`requester`]: the same two for H.248 (RFC 3525 D.1), on the parts above.
//!
//! Everything here belongs to one core. No table is shared: the home core of a command is a function of its endpoint name, and
//! ids of our own tell their core by their remainder.

pub mod finals;
pub mod history;
pub mod outgoing;
pub use crate::proto::base::pace;
pub mod requester;
pub mod responder;
pub mod round_trip;

use std::time::Duration;

/// The timers and counts of RFC 3435 3.5 and 4.3. `Timers::default()` holds the values the RFC suggests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timers {
    /// T-HIST: how long a response is remembered after it was sent. At least T-MAX plus the longest time in the network (F-1).
    pub t_hist: Duration,
    /// T-MAX: nothing is repeated later than this after the first send (G-RTX-05).
    pub t_max: Duration,
    /// Repeats to one address before the next address is tried, 1..=30 (G-RTX-07).
    pub max1: u8,
    /// Whether that follows the loss to and from each agent, once it is known (G-RTX-16).
    pub max1_by_loss: bool,
    /// Repeats to the last address before the command counts as unanswered; more than `max1`, at most 31.
    pub max2: u8,
    /// The first retransmission timer while no delay has been measured (G-RTX-15).
    pub rto_initial: Duration,
    /// The shortest retransmission timer.
    pub rto_min: Duration,
    /// RTO-MAX: the longest retransmission timer.
    pub rto_max: Duration,
    /// LONGTRAN: the timer after a provisional response (G-PRV-04).
    pub longtran: Duration,
    /// Whether the names of an agent are looked up again when Max1 repeats to its first address were not answered (G-RTX-09).
    pub query_max1: bool,
    /// The same when Max2 repeats to its last one were not (G-RTX-10).
    pub query_max2: bool,
    /// How long an answer to that is waited for before the command counts as unanswered.
    pub query_wait: Duration,
    /// Whether the time to a repeat is drawn from the upper half of the back-off (F-3), or is the whole of it.
    pub jitter: bool,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            t_hist: Duration::from_secs(30),
            t_max: Duration::from_secs(20),
            max1: 5,
            max1_by_loss: false,
            max2: 7,
            rto_initial: Duration::from_millis(200),
            rto_min: Duration::from_millis(100),
            rto_max: Duration::from_secs(4),
            longtran: Duration::from_secs(5),
            query_max1: true,
            query_max2: true,
            query_wait: Duration::from_secs(3),
            jitter: true,
        }
    }
}

impl Timers {
    /// How long a command may run before it is ended with 406 (G-PRV-05, F-5): T-HIST less T-MAX, at least a second.
    pub fn longest_run(&self) -> Duration {
        self.t_hist.saturating_sub(self.t_max).max(Duration::from_secs(1))
    }

    /// How long a command of ours without a final response is waited for: 2 * T-HIST (G-RTX-06).
    pub fn give_up(&self) -> Duration {
        self.t_hist * 2
    }

    /// Whether the values can work together, or which rule they break, in words for an operator (F-1, F-5, F-12).
    pub fn validate(&self) -> Result<(), &'static str> {
        if self.t_hist <= self.t_max {
            return Err("t_hist must exceed t_max by the longest time a datagram may spend in the network");
        }
        if self.max1 == 0 || self.max2 <= self.max1 || self.max2 > 31 {
            return Err("max1 must be at least 1 and max2 larger than max1, at most 31");
        }
        if self.longtran >= self.t_hist || self.longtran.is_zero() {
            return Err("longtran must be shorter than t_hist and not zero");
        }
        if self.rto_min.is_zero() || self.rto_min > self.rto_initial || self.rto_initial > self.rto_max {
            return Err("rto_min, rto_initial and rto_max must not be zero and must be in ascending order");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_that_contradict_each_other_are_refused() {
        let good = Timers::default();
        assert_eq!(good.validate(), Ok(()));
        assert_eq!(good.longest_run(), Duration::from_secs(10));
        // G-TRX-05: T-HIST 15 with T-MAX 20. G-RTX-07: Max1 = Max2 = 7.
        assert!(Timers { t_hist: Duration::from_secs(15), ..good }.validate().is_err());
        assert!(Timers { max1: 7, max2: 7, ..good }.validate().is_err());
        assert!(Timers { longtran: Duration::from_secs(30), ..good }.validate().is_err());
        assert!(Timers { rto_min: Duration::from_millis(300), ..good }.validate().is_err());
    }
}
