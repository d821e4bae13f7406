//! The load generator's clock: the one place of `load` that reads time.

use std::time::Instant;

use crate::proto::base::Time;

/// Time since the clock was made.
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock at its origin.
    #[allow(clippy::disallowed_methods, reason = "the place of load where time enters")]
    pub fn start() -> Clock {
        Clock { origin: Instant::now() }
    }

    /// Now.
    #[allow(clippy::disallowed_methods, reason = "the place of load where time enters")]
    pub fn now(&self) -> Time {
        Time(u64::try_from(Instant::now().duration_since(self.origin).as_nanos()).unwrap_or(u64::MAX))
    }
}

/// CPU time this thread has used, in nanoseconds; `None` where the kernel does not tell.
pub fn cpu_time_ns() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}
