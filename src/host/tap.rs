//! The tap: copies of the datagrams of all cores for whoever traces them.
//!
//! One who traces at a time. While nobody does, a core reads one flag for each datagram and does nothing else. What does not fit into
//! the queue is counted and lost for the trace, never for the call.

use crate::proto::base::{CoreId, Time};
use crossbeam::channel::{Receiver, Sender, bounded};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Datagrams that wait for who traces.
const QUEUE: usize = 8192;

/// A datagram as a core received or sent it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Captured {
    /// The core with the socket.
    pub core: CoreId,
    /// When it arrived or was written.
    pub at: Time,
    /// Whether the gateway sent it.
    pub sent: bool,
    /// The other side.
    pub remote: SocketAddr,
    /// The listen address, by its place.
    pub local: u8,
    /// Its bytes.
    pub bytes: Box<[u8]>,
}

/// See the page of this module.
pub struct Tap {
    open: AtomicBool,
    lost: AtomicU64,
    sender: Sender<Captured>,
    receiver: Receiver<Captured>,
}

impl Default for Tap {
    fn default() -> Tap {
        let (sender, receiver) = bounded(QUEUE);
        Tap { open: AtomicBool::new(false), lost: AtomicU64::new(0), sender, receiver }
    }
}

impl Tap {
    /// Whether somebody traces.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Hands a copy to who traces.
    #[cold]
    pub fn take(&self, captured: Captured) {
        if self.sender.try_send(captured).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Begins a trace; `None` while another one runs. It ends when what is given is dropped.
    pub fn open(&self) -> Option<Tapped<'_>> {
        self.open.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire).ok()?;
        // What the last one left.
        while self.receiver.try_recv().is_ok() {}
        self.lost.store(0, Ordering::Relaxed);
        Some(Tapped(self))
    }
}

/// A trace.
pub struct Tapped<'a>(&'a Tap);

impl Tapped<'_> {
    /// The next datagram, or nothing within this time.
    pub fn next(&self, within: Duration) -> Option<Captured> {
        self.0.receiver.recv_timeout(within).ok()
    }

    /// How many were lost since this was asked last.
    pub fn take_lost(&self) -> u64 {
        self.0.lost.swap(0, Ordering::Relaxed)
    }
}

impl Drop for Tapped<'_> {
    fn drop(&mut self) {
        self.0.open.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(byte: u8) -> Captured {
        let remote = ([127, 0, 0, 1], 2727).into();
        Captured { core: CoreId(0), at: Time::ZERO, sent: false, remote, local: 0, bytes: [byte].into() }
    }

    #[test]
    fn one_traces_at_a_time_and_nothing_of_the_last_one_is_seen() {
        let tap = Tap::default();
        let first = tap.open().unwrap();
        assert!(tap.is_open() && tap.open().is_none());
        tap.take(captured(1));
        tap.take(captured(2));
        assert_eq!(first.next(Duration::ZERO), Some(captured(1)));
        drop(first);
        assert!(!tap.is_open());
        let second = tap.open().unwrap();
        assert_eq!(second.next(Duration::ZERO), None);
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let tap = Tap::default();
        let tapped = tap.open().unwrap();
        for _ in 0..QUEUE + 3 {
            tap.take(captured(1));
        }
        assert_eq!((tapped.take_lost(), tapped.take_lost()), (3, 0));
    }
}
