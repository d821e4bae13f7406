//! Waking a core that sleeps in its transport, without a system call when it does not sleep.
//!
//! Who sends to a core first puts the entry into the ring, then calls [`Waker::wake`]. A core that is about to sleep first
//! announces it, then looks into its rings once more. Both sides put a full fence between their write and their read, so at
//! least one of them sees the other: either the core finds the entry, or the sender finds the core asleep and makes the one system call.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use super::sys;

/// Ends the sleep of one core; any thread may hold one.
#[derive(Clone)]
pub struct Waker {
    shared: Arc<Shared>,
}

/// The sleeping core's half; belongs to its transport.
pub struct Sleeper {
    shared: Arc<Shared>,
}

struct Shared {
    sleeping: AtomicBool,
    event: File,
}

/// Both halves for one core. Made before the cores start, so that each can know all wakers.
///
/// # Errors
/// When no more file descriptors can be had.
pub fn pair() -> io::Result<(Waker, Sleeper)> {
    let shared = Arc::new(Shared { sleeping: AtomicBool::new(false), event: File::from(sys::event()?) });
    Ok((Waker { shared: Arc::clone(&shared) }, Sleeper { shared }))
}

impl Waker {
    /// Ends the core's sleep if it sleeps; says whether it did. Costs a fence and a load when it does not.
    #[inline]
    pub fn wake(&self) -> bool {
        fence(Ordering::SeqCst);
        let asleep = self.shared.sleeping.load(Ordering::Relaxed) && self.shared.sleeping.swap(false, Ordering::AcqRel);
        if asleep {
            // Cannot fail for want of room: the counter takes 2^64 - 2 wakes, and a pending one wakes as well.
            let _ = (&self.shared.event).write(&1u64.to_ne_bytes());
        }
        asleep
    }
}

impl Sleeper {
    /// Tells wakers that the core is about to sleep. The inboxes must be looked at after this.
    pub fn announce(&self) {
        self.shared.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Tells wakers that the core runs.
    pub fn awake(&self) {
        self.shared.sleeping.store(false, Ordering::Relaxed);
    }

    /// The event to wait for besides the sockets; 8 bytes are read from it per wake.
    pub fn event(&self) -> BorrowedFd<'_> {
        self.shared.event.as_fd()
    }

    /// Takes note of a wake: resets the event. `false` when there was none.
    pub fn drain(&self) -> bool {
        (&self.shared.event).read(&mut [0; 8]).is_ok()
    }

    /// The other half again.
    pub fn waker(&self) -> Waker {
        Waker { shared: Arc::clone(&self.shared) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sleeper_is_woken_and_only_once() {
        let (waker, sleeper) = pair().expect("an event");
        assert!(!waker.wake());
        assert!(!sleeper.drain(), "no system call was made for a running core");
        sleeper.announce();
        assert!(waker.wake() && !waker.wake());
        assert!(sleeper.drain() && !sleeper.drain());
        sleeper.announce();
        sleeper.awake();
        assert!(!sleeper.waker().wake());
    }
}
