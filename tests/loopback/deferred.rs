//! A transport for tests only that keeps the interface honest for kernel bypass (AF_XDP): datagrams begin at different places in
//! their frames, frames come in no order, and a sent slot is free again only some flushes later and out of order.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use tollgate::host::clock::Clock;
use tollgate::host::frame::{FramePool, HEADROOM, Meta};
use tollgate::host::transport::{SendSlots, Sleeper, Slot, Stats, Stray, Transport, TransportSettings, Waker};
use tollgate::proto::base::{FrameRef, Rng, Time};

/// How many flushes a sent slot stays with the "hardware" at most.
const FLUSHES_MAX: u64 = 5;
/// How often a sleeping core looks for datagrams.
const LOOK: Duration = Duration::from_micros(200);

pub struct Deferred {
    sockets: Vec<UdpSocket>,
    pool: FramePool,
    slots: SendSlots,
    queued: VecDeque<u32>,
    /// Sent slots with the flushes they are still kept for.
    sent: Vec<(u32, u64)>,
    /// Where a datagram is read into; one byte longer than a frame, to see what is too long.
    received: Vec<u8>,
    sleeper: Sleeper,
    clock: Clock,
    rng: Rng,
    stats: Stats,
}

impl Deferred {
    pub fn open(sockets: Vec<UdpSocket>, pool: FramePool, sleeper: Sleeper, clock: Clock, settings: &TransportSettings) -> Deferred {
        Deferred {
            sockets,
            received: vec![0; pool.frame_size() + 1],
            pool,
            slots: SendSlots::new(settings),
            queued: VecDeque::new(),
            sent: Vec::new(),
            sleeper,
            clock,
            rng: Rng::new(0x0def_e77e),
            stats: Stats::default(),
        }
    }

    /// One datagram from one socket, put somewhere into some free frame.
    fn receive_one(&mut self, local: usize) -> Option<FrameRef> {
        if self.pool.free() == 0 {
            self.stats.starved += 1;
            return None;
        }
        let (len, from) = match self.sockets[local].recv_from(&mut self.received) {
            Ok(received) => received,
            Err(error) => {
                self.stats.receive_errors += u64::from(error.kind() != ErrorKind::WouldBlock);
                return None;
            }
        };
        let room = self.pool.room();
        if len > room {
            self.stats.truncated += 1;
            return None;
        }
        let start = self.rng.below((HEADROOM + room - len) as u64 + 1) as usize;
        let (bytes, now) = (&self.received[..len], self.clock.now());
        self.pool.fill(|frame| {
            frame[start..start + len].copy_from_slice(bytes);
            Meta { from, arrival: now, start: start as u32, len: len as u32, local: local as u8 }
        })
    }

    /// Whether a datagram waits; its bytes stay in the socket.
    fn something_waits(&self) -> bool {
        self.pool.free() > 0 && self.slots.free() > 0 && self.sockets.iter().any(|socket| socket.peek_from(&mut [0]).is_ok())
    }
}

impl Transport for Deferred {
    fn receive(&mut self, budget: usize, into: &mut Vec<FrameRef>) -> Time {
        let limit = budget.min(self.slots.free());
        let before = into.len();
        for local in 0..self.sockets.len() {
            while into.len() - before < limit {
                match self.receive_one(local) {
                    Some(frame) => into.push(frame),
                    None => break,
                }
            }
        }
        self.stats.received += (into.len() - before) as u64;
        self.clock.now()
    }

    fn adopt(&mut self, stray: &Stray<&[u8]>) -> Option<FrameRef> {
        self.pool.copy_in(stray)
    }

    fn release(&mut self, frame: FrameRef) {
        self.stats.release_refused += u64::from(!self.pool.release(frame));
    }

    fn reserve(&mut self) -> Option<Slot> {
        self.slots.reserve()
    }

    fn buffer(&mut self, slot: &Slot) -> &mut [u8] {
        self.slots.buffer(slot)
    }

    fn send(&mut self, slot: Slot, len: usize, to: SocketAddr, local: u8) {
        let slot = self.slots.queue(slot, len, to, local);
        self.queued.push_back(slot);
    }

    fn abandon(&mut self, slot: Slot) {
        self.slots.abandon(slot);
    }

    fn free_slots(&self) -> usize {
        self.slots.free()
    }

    fn flush(&mut self) {
        let (slots, stats) = (&mut self.slots, &mut self.stats);
        self.sent.retain_mut(|(slot, flushes)| {
            *flushes -= 1;
            if *flushes == 0 {
                slots.release(*slot);
            }
            *flushes > 0
        });
        for slot in self.queued.drain(..) {
            let outgoing = slots.outgoing(slot);
            let to = outgoing.to.address().expect("queued with an address");
            match self.sockets[usize::from(outgoing.local)].send_to(slots.bytes(slot), to) {
                Ok(_) => stats.sent += 1,
                Err(_) => stats.send_errors += 1,
            }
            self.sent.push((slot, 1 + self.rng.below(FLUSHES_MAX)));
        }
    }

    fn sleep(&mut self, timeout: Option<Duration>, idle: &mut dyn FnMut() -> bool) {
        self.flush();
        let end = timeout.map(|timeout| self.clock.now() + timeout);
        self.sleeper.announce();
        if idle() {
            while !self.something_waits() && end.is_none_or(|end| self.clock.now() < end) {
                if self.sleeper.drain() {
                    self.stats.wakes += 1;
                    break;
                }
                std::thread::park_timeout(LOOK);
            }
        }
        self.sleeper.awake();
    }

    fn waker(&self) -> Waker {
        self.sleeper.waker()
    }

    fn stats(&mut self) -> Stats {
        self.stats
    }
}
