//! One AF_XDP socket: a queue of a card, with its rings.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use super::bypass::{BypassSettings, Card, Queue};
use super::ring::Rings;
use super::sys;
use super::umem::Umem;
use crate::config::XdpCopy;
use crate::host::transport::sys::set_option;
use crate::host::transport::{BATCH, Stats};
use crate::proto::base::Time;

/// Datagrams one send call copies, where the kernel lets us choose.
const SEND_BUDGET: u32 = 128;
/// Room in the kernel for datagrams that are being copied.
const SEND_BUFFER: i32 = 4 << 20;
/// How long a card that is down is left alone.
const DOWN_PAUSE: Duration = Duration::from_millis(20);

/// A bound socket.
pub struct Port {
    /// Its rings.
    pub rings: Rings,
    socket: OwnedFd,
    /// The card's place in the list.
    pub card: usize,
    zero_copy: bool,
    need_wakeup: bool,
    busy_poll: bool,
    /// Chunks to have with the card.
    target: u32,
    /// Chunks with it now.
    filled: u32,
    /// Datagrams put into the send ring since the last flush.
    unsent: u32,
    /// The card is down: not to be kicked before this.
    pause_until: Time,
}

/// How often to try a queue that is taken, and how long to wait in between: half a second in all.
const TRIES: u32 = 50;
const TRY_AGAIN: Duration = Duration::from_millis(10);

/// Binds. The kernel gives the queue of a socket that was closed free a little later, in a work queue of its own; so a gateway that starts
/// anew, or the next way that `tollgate nic` tries, finds it taken for a moment.
fn bind_when_free(bind: impl Fn() -> io::Result<()>) -> io::Result<()> {
    for _ in 1..TRIES {
        match bind() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::park_timeout(TRY_AGAIN),
            bound => return bound,
        }
    }
    bind()
}

impl Port {
    /// Binds to a queue; `share` chunks are to be with the card.
    ///
    /// # Errors
    /// Why not, naming card and queue.
    pub fn open(umem: &Umem, card: &Card, queue: Queue, share: u32, settings: &BypassSettings) -> io::Result<Port> {
        let named = |what: &str, error: io::Error| {
            let reason = match error.raw_os_error() {
                Some(libc::EBUSY) => "it is taken by another AF_XDP socket".to_owned(),
                Some(libc::EPERM) => "not permitted (needs CAP_NET_RAW)".to_owned(),
                Some(libc::EOPNOTSUPP) if settings.copy == XdpCopy::ZeroCopy => "its driver cannot do without copies".to_owned(),
                Some(libc::ENOBUFS) => "too little memory may be locked (ulimit -l)".to_owned(),
                _ => error.to_string(),
            };
            io::Error::new(error.kind(), format!("{} queue {}: {what}: {reason}", card.name, queue.number))
        };
        let socket = sys::socket().map_err(|error| named("socket", error))?;
        umem.register(socket.as_fd()).map_err(|error| named("memory", error))?;
        let (received, sent) = (umem.frames().max(1).next_power_of_two(), (umem.slots() as u32).max(1).next_power_of_two());
        let rings = Rings::new(socket.as_fd(), received, sent).map_err(|error| named("rings", error))?;
        let copy = match settings.copy {
            XdpCopy::Auto => 0,
            XdpCopy::Copy => libc::XDP_COPY,
            XdpCopy::ZeroCopy => libc::XDP_ZEROCOPY,
        };
        let wakeup = if settings.need_wakeup { libc::XDP_USE_NEED_WAKEUP } else { 0 };
        // Beyond net.core.wmem_max with CAP_NET_ADMIN; without it the default does, in more calls.
        let _ = set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BUFFER);
        sys::set_send_budget(socket.as_fd(), SEND_BUDGET);
        if let Some(time) = settings.busy_poll {
            const SO_BUSY_POLL: i32 = 46;
            const SO_PREFER_BUSY_POLL: i32 = 69;
            const SO_BUSY_POLL_BUDGET: i32 = 70;
            let options = [(SO_PREFER_BUSY_POLL, 1), (SO_BUSY_POLL, time.as_micros() as i32), (SO_BUSY_POLL_BUDGET, BATCH as i32)];
            for (option, value) in options {
                set_option(socket.as_fd(), libc::SOL_SOCKET, option, value).map_err(|error| named("busy polling", error))?;
            }
        }
        let bind = || sys::bind(socket.as_fd(), card.index, queue.number, copy | wakeup);
        bind_when_free(bind).map_err(|error| named("bind", error))?;
        Ok(Port {
            rings,
            card: queue.card,
            zero_copy: sys::is_zero_copy(socket.as_fd()),
            socket,
            need_wakeup: settings.need_wakeup,
            busy_poll: settings.busy_poll.is_some(),
            target: share.clamp(1, received),
            filled: 0,
            unsent: 0,
            pause_until: Time::ZERO,
        })
    }

    /// Lets the program hand over what comes by the queue. Not before chunks were filled in: without any it would be lost.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn begin(&self, card: &Card, queue: Queue) -> io::Result<()> {
        card.program.socket(queue.number, self.socket.as_raw_fd() as u32)
    }

    /// To wait for arrivals.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Whether frames are not copied.
    pub fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Gives free chunks to the card; `false` when it has none at all.
    #[inline]
    pub fn fill(&mut self, umem: &mut Umem) -> bool {
        if self.filled < self.target {
            let before = self.filled;
            while self.filled < self.target {
                let Some(chunk) = umem.take() else { break };
                if !self.rings.fill.put(chunk) {
                    umem.give_back(chunk);
                    break;
                }
                self.filled += 1;
            }
            if self.filled != before {
                self.rings.fill.publish();
            }
        }
        self.filled > 0
    }

    /// Lets the driver work where it does so only when called: busy polling, or asleep for want of chunks.
    #[inline]
    pub fn poke(&self) {
        if self.busy_poll || (self.zero_copy && self.need_wakeup && self.rings.fill.wants_wakeup()) {
            sys::kick_receive(self.socket.as_fd());
        }
    }

    /// The next received chunk.
    #[inline]
    pub fn take(&mut self) -> Option<libc::xdp_desc> {
        let descriptor = self.rings.receive.take()?;
        self.filled -= 1;
        Some(descriptor)
    }

    /// Takes the slots back that have been sent.
    #[inline]
    pub fn reap(&mut self, umem: &mut Umem) {
        let mut any = false;
        while let Some(address) = self.rings.completion.take() {
            let ours = umem.complete(address);
            debug_assert!(ours, "only slots are sent");
            any = true;
        }
        if any {
            self.rings.completion.done();
        }
    }

    /// Puts a datagram into the send ring. It has room for all slots.
    #[inline]
    pub fn send(&mut self, descriptor: libc::xdp_desc) -> bool {
        let put = self.rings.send.put(descriptor);
        self.unsent += u32::from(put);
        put
    }

    /// Hands what was put into the send ring to the kernel.
    #[inline]
    pub fn flush(&mut self, now: Time, stats: &mut Stats) {
        if self.unsent > 0 {
            self.rings.send.publish();
            stats.sent += u64::from(self.unsent);
            stats.bypass_sent += u64::from(self.unsent);
            self.unsent = 0;
        } else if self.rings.send.pending() == 0 {
            return;
        }
        if now < self.pause_until || (self.zero_copy && self.need_wakeup && !self.rings.send.wants_wakeup()) {
            return;
        }
        loop {
            let before = self.rings.send.pending();
            let result = sys::kick_send(self.socket.as_fd());
            let left = self.rings.send.pending();
            match result {
                // In copy mode the call has sent it all; else the driver does, in its time.
                Ok(()) => return,
                // The card took one and dropped it: its queue is full.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => stats.send_errors += 1,
                Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR)) => {
                    if left == before {
                        stats.send_full += 1;
                        return;
                    }
                }
                // Down, or gone: what is in the ring waits, new datagrams go by the kernel as soon as the resolver has said so.
                Err(_) => {
                    self.pause_until = now + DOWN_PAUSE;
                    stats.send_errors += 1;
                    return;
                }
            }
            if left == 0 {
                return;
            }
        }
    }

    /// Whether datagrams wait in the send ring, and trying again soon may help.
    pub fn is_pending(&self, now: Time) -> bool {
        now >= self.pause_until && self.rings.send.pending() > 0
    }

    /// What the kernel dropped: for want of chunks or room in the receive ring.
    pub fn dropped(&self) -> u64 {
        let statistics = sys::statistics(self.socket.as_fd());
        statistics.rx_dropped + statistics.rx_ring_full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_queue_that_is_taken_for_a_moment_is_waited_for_and_no_other_error_is() {
        let tried = Cell::new(0);
        let failing = |times: u32, code: i32| {
            tried.set(0);
            bind_when_free(|| {
                tried.set(tried.get() + 1);
                if tried.get() > times { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
            })
        };
        assert!(failing(2, libc::EBUSY).is_ok() && tried.get() == 3);
        assert!(failing(9, libc::EPERM).is_err() && tried.get() == 1);
        assert_eq!(failing(u32::MAX, libc::EBUSY).unwrap_err().raw_os_error(), Some(libc::EBUSY));
        assert_eq!(tried.get(), TRIES);
    }
}
