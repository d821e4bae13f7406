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

/// What the scheduler did with this thread, in nanoseconds.
#[derive(Clone, Copy, Default, Debug)]
pub struct CpuTime {
    /// Time on a CPU.
    pub used: u64,
    /// Time it was ready and had no CPU.
    pub waited: u64,
}

impl CpuTime {
    /// So far; `None` where the kernel does not tell.
    pub fn now() -> Option<CpuTime> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let mut numbers = text.split_ascii_whitespace().map(str::parse);
        Some(CpuTime { used: numbers.next()?.ok()?, waited: numbers.next()?.ok()? })
    }

    /// Since `earlier`.
    pub fn since(self, earlier: CpuTime) -> CpuTime {
        CpuTime { used: self.used.saturating_sub(earlier.used), waited: self.waited.saturating_sub(earlier.waited) }
    }
}
