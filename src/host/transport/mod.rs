//! Transports: what moves datagrams between the sockets of one core and its frames and send slots.
//!
//! One [`Transport`] belongs to one core and never leaves its thread. A turn of the core's loop is: [`Transport::receive`] a batch,
//! handle each frame, write every response straight into a [`Slot`], [`Transport::flush`] once, [`Transport::release`] what is done
//! with; when there was nothing to do, [`Transport::sleep`]. Nothing is allocated after construction.
//!
//! Back-pressure instead of drops: while no send slot is free, `receive` gives nothing, and datagrams wait in the socket, where
//! their waiting time counts and the kernel counts what overflows.
//!
//! To add a transport: one file, one line in [`select`]'s `transports!`, and `tests/loopback` runs the contract test on it.

pub mod burst;
pub mod mmsg;
pub mod reports;
mod runs;
pub mod select;
pub mod slots;
pub mod socket;
pub mod steer;
pub mod streams;
pub(in crate::host) mod sys;
pub mod uring;
pub mod wake;
mod watch;
pub mod xdp;

use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use crate::proto::base::{Counter, Counters, FrameRef, Time};

pub use crate::host::frame::Stray;
pub use select::{Choice, Kind, Wanted};
pub use slots::{SendSlots, Slot};
pub use socket::{SocketSettings, bind, explain_bind};
pub use wake::{Sleeper, Waker};

/// The most datagrams moved by one system call, and a sensible budget for one turn of the loop.
pub const BATCH: usize = 64;

/// The largest UDP payload over IPv4.
pub const DATAGRAM_MAX: usize = 65_507;

/// Moves datagrams for one core.
pub trait Transport {
    /// Appends to `into` at most `budget` received datagrams, in the order of each socket, and never more than there are free send
    /// slots; does not block. Each frame stays occupied until it is released. Returns the time, read after the datagrams were
    /// taken: the `now` of this turn. Datagrams longer than a frame are dropped and counted.
    fn receive(&mut self, budget: usize, into: &mut Vec<FrameRef>) -> Time;

    /// Puts a datagram that was received elsewhere into a frame, as if it had been received here; `None` when no frame is free or it is
    /// too long for one.
    fn adopt(&mut self, stray: &Stray<&[u8]>) -> Option<FrameRef>;

    /// Gives a frame of this core back to be filled again. A frame that is not held, or still being read, is counted and left alone.
    fn release(&mut self, frame: FrameRef);

    /// A send slot, or `None` when all are on their way: then send nothing, flush, and try again in a later turn.
    fn reserve(&mut self) -> Option<Slot>;

    /// The bytes of a reserved slot, to write a datagram into.
    fn buffer(&mut self, slot: &Slot) -> &mut [u8];

    /// Queues the first `len` bytes of the slot for `to`, from the listen socket `local`. On its way with the next flush; per socket
    /// and destination in the order of the calls.
    fn send(&mut self, slot: Slot, len: usize, to: SocketAddr, local: u8);

    /// Gives a reserved slot back unsent.
    fn abandon(&mut self, slot: Slot);

    /// Slots that can be reserved now.
    fn free_slots(&self) -> usize;

    /// Hands everything queued to the kernel, in one system call where the transport can. What the kernel has no room for stays
    /// queued for the next flush.
    fn flush(&mut self);

    /// Sleeps until a datagram arrives, somebody calls the waker, or `timeout` has passed (`None`: as long as it takes). Flushes
    /// first. `idle` is asked once after the waker has been told that this core sleeps: it says whether the core's inboxes are
    /// empty, and without that question an entry sent in between would not wake anybody.
    fn sleep(&mut self, timeout: Option<Duration>, idle: &mut dyn FnMut() -> bool);

    /// A handle by which any thread ends this core's sleep.
    fn waker(&self) -> Waker;

    /// Watches another descriptor besides the sockets: the sleep ends when it becomes readable.
    ///
    /// # Errors
    /// When the kernel refuses, or this transport cannot.
    fn watch(&mut self, _fd: RawFd) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this transport watches nothing besides its sockets"))
    }

    /// Whether what is watched may have become readable since this was asked last.
    fn watched_is_ready(&mut self) -> bool {
        true
    }

    /// A stream that was open and has ended: the listen address, with [`STREAM`](crate::proto::plan::STREAM), and who was at the other end.
    fn take_ended(&mut self) -> Option<(u8, SocketAddr)> {
        None
    }

    /// A report that a datagram could not be delivered, as the network gave one. A transport that gets none has none.
    fn take_report(&mut self) -> Option<reports::Report> {
        None
    }

    /// What happened so far. Reads the sockets' overflow counts: a system call per socket, for use a few times a second.
    fn stats(&mut self) -> Stats;
}

/// What a transport needs to know besides its sockets and frames.
#[derive(Clone, Debug)]
pub struct TransportSettings {
    /// Send slots: 1..=4096.
    pub send_slots: u32,
    /// Bytes of a send slot, the longest datagram that can be sent: 64..=65,507.
    pub slot_size: u32,
    /// io_uring: how many free frames lie with the kernel at a time; more only spreads over more cache.
    pub provided_frames: u32,
    /// Datagrams of equal length to one destination leave in one send (UDP_SEGMENT) where the path allows it.
    pub coalesce: bool,
    /// io_uring: the CPU of the kernel's submission thread (SQPOLL); `None`: no such thread.
    pub sqpoll_cpu: Option<u16>,
    /// How long a receive polls the network card's queue itself (NAPI busy polling); `None`: not at all.
    pub napi_busy_poll: Option<Duration>,
    /// AF_XDP: the core's seat in the bypass.
    pub bypass: Option<Arc<xdp::Seat>>,
}

impl Default for TransportSettings {
    /// 256 slots of 4,096 bytes, 256 provided frames (docs: 32 to 256 are equally fast, 1024 cost 2-5 %).
    fn default() -> TransportSettings {
        let (coalesce, sqpoll_cpu, napi_busy_poll) = (true, None, None);
        TransportSettings { send_slots: 256, slot_size: 4096, provided_frames: 256, coalesce, sqpoll_cpu, napi_busy_poll, bypass: None }
    }
}

macro_rules! stats {
    ($($(#[doc = $help:literal])+ $name:ident => $counter:ident,)+) => {
        /// What a transport counted since it was opened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats { $($(#[doc = $help])+ pub $name: u64,)+ }

        impl Stats {
            /// Both together: of a transport that is made of two.
            pub fn plus(&self, other: &Stats) -> Stats {
                Stats { $($name: self.$name + other.$name,)+ }
            }

            /// Adds to the core's counters what happened since `before`.
            pub fn publish(&self, before: &Stats, counters: &Counters) {
                $(counters.add_many(Counter::$counter, self.$name.saturating_sub(before.$name));)+
            }
        }
    };
}

stats! {
    /// Datagrams received and handed out.
    received => DatagramsReceived,
    /// Datagrams the kernel took for sending.
    sent => DatagramsSent,
    /// Of these, datagrams that left with others in one send (UDP_SEGMENT).
    sent_coalesced => SentCoalesced,
    /// Times a path refused to take several datagrams in one send; they went one by one.
    coalesce_refused => CoalesceRefused,
    /// Datagrams dropped because they were longer than a frame.
    truncated => DroppedTruncated,
    /// Datagrams dropped by the kernel because a socket's receive buffer was full.
    kernel_drops => DroppedKernel,
    /// Times receiving paused because every frame was held.
    starved => ReceiveStarved,
    /// Receive calls that ended with an error of the socket; receiving goes on.
    receive_errors => ReceiveErrors,
    /// Datagrams the kernel refused to send.
    send_errors => SendErrors,
    /// Times a socket's send buffer was full; the datagrams stayed queued.
    send_full => SendFull,
    /// AF_XDP: datagrams received without the kernel's network stack, among those received.
    bypass_received => BypassReceived,
    /// AF_XDP: datagrams sent without it, among those sent.
    bypass_sent => BypassSent,
    /// AF_XDP: frames dropped because their headers or checksums are wrong.
    bypass_invalid => DroppedBypassInvalid,
    /// Completions the kernel had no room for in the ring (they came later; none is lost).
    ring_overflow => RingOverflow,
    /// Streams opened, by either side.
    streams_opened => StreamsOpened,
    /// Streams that ended, by either side.
    streams_ended => StreamsEnded,
    /// Streams ended because what came was no message in a TPKT, or half of one for too long.
    streams_malformed => StreamsMalformed,
    /// Messages dropped because the other side of their stream does not read, or cannot be reached.
    streams_full => StreamsFull,
    /// Streams refused: from somebody who is no controller, or one too many.
    streams_refused => StreamsRefused,
    /// Sleeps ended by a waker.
    wakes => Wakes,
    /// Releases of frames that were not held or still being read: a fault in the gateway.
    release_refused => ReleaseRefused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_get_what_was_added_since() {
        let counters = Counters::new();
        let before = Stats { received: 10, truncated: 1, ..Stats::default() };
        let after = Stats { received: 15, truncated: 1, kernel_drops: 2, ..before };
        after.publish(&before, &counters);
        assert_eq!(counters.get(Counter::DatagramsReceived), 5);
        assert_eq!(counters.get(Counter::DroppedTruncated), 0);
        assert_eq!(counters.get(Counter::DroppedKernel), 2);
    }
}
