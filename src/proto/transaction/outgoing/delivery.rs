//! How a command is sent, beside what it says; and how long it waits between two copies.

use super::{Phase, Slot};
use crate::proto::base::{Time, TransactionId};
use crate::proto::transaction::Timers;
use std::time::Duration;

/// The last copy of a command that is sent until T-MAX leaves this long before: a timer that is late must not cost it.
const MARGIN: Duration = Duration::from_millis(200);

/// How a command is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delivery {
    /// The outstanding command it must not arrive before, nor before the one that one is behind of: as long as they are unanswered each
    /// copy has them in front of it, the first [`OLDER`](super::OLDER) of them (G-QUA-13, G-PIG-03).
    pub behind: Option<TransactionId>,
    /// It is said once, and lost when nobody answers: at its last address the copies after Max1 are spread over what is left of T-MAX,
    /// and the last one leaves just before it, so that an agent that is back by then gets one; one that
    /// answers other commands again gets it at once. Without this Max2 copies may be used up long before T-MAX.
    pub until_t_max: bool,
}

impl Slot {
    /// Whether what is left of its copies is spread over what is left of T-MAX.
    pub(super) fn is_spread(&self, timers: &Timers) -> bool {
        let waits = self.delivery.until_t_max && self.phase == Phase::Waiting && self.first_sent.is_some();
        waits && self.repeats >= timers.max1 && !self.untried()
    }

    /// How long to wait after the copy that has just left.
    pub(super) fn wait(&self, now: Time, timers: &Timers) -> Duration {
        if self.phase == Phase::Provisional {
            return timers.longtran;
        }
        let timer = self.backoff.timer();
        let Some(first_sent) = self.first_sent.filter(|_| self.delivery.until_t_max) else { return timer };
        let last = timers.t_max.saturating_sub(MARGIN).saturating_sub(now.since(first_sent));
        let left = u32::from(timers.max2.saturating_sub(self.repeats));
        if left == 0 || last < timers.rto_min {
            return timer;
        }
        if self.is_spread(timers) { timer.max(last / left).min(last) } else { timer.min(last) }
    }
}
