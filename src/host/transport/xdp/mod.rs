//! The `xdp` transport: AF_XDP sockets beside the kernel's UDP sockets.
//!
//! An XDP program (`program`) takes what agents send to our addresses out of the card's receive path, before the kernel's network
//! stack; such a datagram is parsed and held in the chunk it was received into. A response is written into a send slot, its headers
//! in front of it, and handed to the card from there. Everything else is the kernel's as ever, and reaches us through the ordinary
//! sockets, which the `mio` transport ([`Mmsg`]) serves: fragments, strangers, and in the other direction what is longer than the
//! MTU or goes to a neighbour that is not known yet.
//!
//! | file | owns |
//! |---|---|
//! | `bypass` | what the cores share: checks, the attached program, who may send |
//! | `interface` | which card serves a listen address, or why none can |
//! | `policy` | IPsec policies and packet filters that would be passed by |
//! | `program` | the XDP program |
//! | `resolver`, `paths` | how destinations are reached: the thread that asks the kernel; what a core knows |
//! | `packet` | headers and checksums |
//! | `port`, `ring`, `umem` | a socket; its rings; the memory shared with the card |
//! | `lone` | a transport for one thread that is no gateway |
//! | `netlink`, `sys` | questions to the kernel; system calls |
//!
//! Order: what goes by the kernel may be overtaken by later datagrams to the same destination, and the other way round. Nothing is lost
//! by it that UDP would keep.

pub mod bypass;
pub mod interface;
mod lone;
mod netlink;
pub mod packet;
mod paths;
mod policy;
mod port;
mod program;
mod resolver;
mod ring;
mod sys;
pub mod umem;

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::mmsg::Mmsg;
use super::reports::Report;
use super::slots::Slot;
use super::sys::boot_time_ns;
use super::watch::Watch;
use super::{Sleeper, Stats, Stray, Transport, TransportSettings, Waker, wake};
use crate::host::clock::Clock;
use crate::host::frame::{FramePool, Meta};
use crate::proto::base::{FrameRef, Time};

pub use bypass::{Bypass, BypassSettings, Seat, SourceList};
pub use lone::Lone;
pub use netlink::{Link, Netlink};

use packet::HEADERS_MAX;
use paths::Paths;
use port::Port;
use program::STAMP;
use umem::{SLOT_HEAD, Umem};

/// Slots of the kernel's socket: it sends what is rare.
const KERNEL_SLOTS: u32 = 64;
/// While the card's rings have work, the kernel's sockets are looked at once in so many turns: the look is a system call.
const KERNEL_EVERY: u32 = 16;
/// The number of the kernel's sockets among what is slept on; the others have their place in the list.
const KERNEL: usize = usize::MAX - 1;

/// AF_XDP transport.
pub struct Xdp {
    // The sockets go before the memory they use.
    ports: Vec<Port>,
    umem: Umem,
    seat: Arc<Seat>,
    /// By listen address: the port its datagrams leave by; none: by the kernel.
    exits: Vec<Option<usize>>,
    paths: Paths,
    /// The number of the next IPv4 packet.
    packet: u16,
    /// The port the next batch begins with.
    turn: usize,
    kernel: Mmsg,
    /// Datagrams for the kernel's sockets that found no slot there, oldest first.
    waiting: VecDeque<(u32, usize, SocketAddr, u8)>,
    /// Turns since the kernel's sockets were looked at.
    kernel_turns: u32,
    /// They had nothing when they were.
    kernel_quiet: bool,
    /// Their descriptors, to sleep on.
    _kernel_sockets: Vec<UdpSocket>,
    watch: Watch,
    clock: Clock,
    /// CLOCK_BOOTTIME at [`Time::ZERO`].
    origin_ns: u64,
    now: Time,
    stats: Stats,
    starved: bool,
}

impl Xdp {
    /// Whether this machine allows it at all; whether it can be used on an interface is seen by [`Bypass::start`].
    ///
    /// # Errors
    /// The reason why not.
    pub fn probe() -> Result<(), String> {
        let socket = sys::socket();
        socket.map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM) => "AF_XDP is not permitted (needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF, or root)".to_owned(),
            Some(libc::EAFNOSUPPORT) => "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS)".to_owned(),
            _ => format!("AF_XDP: {error}"),
        })?;
        program::Program::load().map(drop)
    }

    /// Opens the transport on the calling thread. The settings must hold the core's seat, the pool the chunks that
    /// [`umem::layout`] asks for.
    ///
    /// # Errors
    /// What the kernel refused, naming card and queue.
    pub fn open(
        sockets: Vec<UdpSocket>,
        mut pool: FramePool,
        sleeper: Sleeper,
        clock: Clock,
        settings: &TransportSettings,
    ) -> io::Result<Xdp> {
        let invalid = |what: &str| io::Error::new(ErrorKind::InvalidInput, what.to_owned());
        let seat = settings.bypass.clone().ok_or_else(|| invalid("no seat in the bypass"))?;
        let desk = seat.desk.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(|| invalid("the seat is taken"))?;
        let chunks = pool.split_chunks().ok_or_else(|| invalid("the frames have no chunks"))?;
        let mut umem = Umem::new(chunks, settings.send_slots, settings.slot_size).ok_or_else(|| invalid("too few chunks"))?;
        umem.touch();
        let share = umem.frames() / (seat.queues.len() as u32).max(1);
        let open = |&queue: &bypass::Queue| Port::open(&umem, &seat.shared.cards[queue.card], queue, share, &seat.settings);
        let mut ports = seat.queues.iter().map(open).collect::<io::Result<Vec<Port>>>()?;
        for (port, &queue) in ports.iter_mut().zip(&seat.queues) {
            port.fill(&mut umem);
            port.begin(&seat.shared.cards[queue.card], queue)?;
            let (card, copies) = (&seat.shared.cards[queue.card].name, if port.is_zero_copy() { "zero-copy" } else { "copies" });
            tracing::info!(
                "xdp: {card} queue {}: {copies}, memory on {} pages",
                queue.number,
                if umem.is_huge() { "huge" } else { "small" }
            );
        }
        let exits = seat.shared.lines.iter().map(|line| ports.iter().position(|port| port.card == line.card)).collect();

        let kernel_sockets = sockets.iter().map(UdpSocket::try_clone).collect::<io::Result<Vec<_>>>()?;
        let watched = kernel_sockets.iter().map(|socket| (socket.as_raw_fd(), KERNEL));
        let watched: Vec<_> = watched.chain(ports.iter().map(Port::fd).zip(0..)).collect();
        let watch = Watch::new(&watched, sleeper)?;
        // The kernel's transport never sleeps: nobody has its waker.
        let (_, unused) = wake::pair()?;
        let kernel_settings = TransportSettings { send_slots: KERNEL_SLOTS.min(settings.send_slots), ..settings.clone() };
        let kernel = Mmsg::open(sockets, pool, unused, clock, &kernel_settings)?;
        let now = clock.now();
        Ok(Xdp {
            waiting: VecDeque::with_capacity(umem.slots()),
            ports,
            umem,
            seat: seat.clone(),
            exits,
            paths: Paths::new(desk),
            packet: now.0 as u16,
            turn: 0,
            kernel,
            kernel_turns: 0,
            kernel_quiet: false,
            _kernel_sockets: kernel_sockets,
            watch,
            clock,
            origin_ns: boot_time_ns().saturating_sub(now.0),
            now,
            stats: Stats::default(),
            starved: false,
        })
    }

    /// Whether every socket of the card works without copies.
    pub fn is_zero_copy(&self) -> bool {
        !self.ports.is_empty() && self.ports.iter().all(Port::is_zero_copy)
    }

    /// Takes at most `room` datagrams from one port.
    #[inline]
    fn receive_from(&mut self, place: usize, room: usize, into: &mut Vec<FrameRef>) -> usize {
        let Xdp { ports, umem, seat, stats, .. } = self;
        let (origin_ns, now, lines) = (self.origin_ns, self.now, &seat.shared.lines);
        let port = &mut ports[place];
        let before = into.len();
        let mut any = false;
        while into.len() - before < room {
            let Some(descriptor) = port.take() else { break };
            any = true;
            let frame = umem.receive(&descriptor, |in_front, bytes| {
                let found = packet::parse(bytes)?;
                let is_to =
                    |line: &bypass::Line| line.sender.address.ip() == found.to.ip() && line.sender.address.port() == found.to.port();
                let local = lines.iter().position(|line| is_to(line) && line.place.vlan == found.vlan && line.card == port.card)?;
                let arrival = stamp(in_front).map_or(now, |ns| Time(ns.saturating_sub(origin_ns)).min(now));
                let from = with_scope(found.from, lines[local].place.logical);
                Some(Meta { from, arrival, start: found.start as u32, len: found.len as u32, local: local as u8 })
            });
            match frame {
                Some(frame) => into.push(frame),
                None => stats.bypass_invalid += 1,
            }
        }
        if any {
            port.rings.receive.done();
        }
        into.len() - before
    }

    /// Frees the slots that have been sent.
    #[inline]
    fn reap(&mut self) {
        for port in &mut self.ports {
            port.reap(&mut self.umem);
        }
    }

    /// Hands a datagram in a slot to the kernel's socket; `false` when it has no room at present.
    fn send_by_kernel(&mut self, slot: u32, len: usize, to: SocketAddr, local: u8) -> bool {
        let Some(other) = self.kernel.reserve() else { return false };
        let bytes = &self.umem.slot(slot).1;
        let len = len.min(bytes.len());
        self.kernel.buffer(&other)[..len].copy_from_slice(&bytes[..len]);
        self.kernel.send(other, len, to, local);
        self.umem.abandon(slot);
        true
    }
}

/// The time of arrival in front of a frame, in nanoseconds of CLOCK_BOOTTIME. Taken away, so that it is not read again with the next
/// frame in this chunk, should the program not be able to write one.
#[inline]
fn stamp(in_front: &mut [u8]) -> Option<u64> {
    let stamp = in_front.last_chunk_mut::<STAMP>()?;
    let ns = u64::from_ne_bytes(*stamp);
    *stamp = [0; STAMP];
    (ns != 0).then_some(ns)
}

/// A link-local address is one on an interface.
#[inline]
fn with_scope(address: SocketAddr, interface: u32) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => SocketAddrV6::new(*v6.ip(), v6.port(), 0, interface).into(),
        _ => address,
    }
}

impl Transport for Xdp {
    fn receive(&mut self, budget: usize, into: &mut Vec<FrameRef>) -> Time {
        self.paths.listen();
        self.reap();
        let mut filled = self.ports.is_empty();
        for port in &mut self.ports {
            filled |= port.fill(&mut self.umem);
            port.poke();
        }
        self.stats.starved += u64::from(!filled && !self.starved);
        self.starved = !filled;
        let limit = budget.min(self.umem.free_slots());
        let mut room = limit;
        if room > 0 {
            self.now = self.clock.now();
            for step in 0..self.ports.len() {
                let place = (self.turn + step) % self.ports.len();
                room -= self.receive_from(place, room, into);
            }
            self.turn = self.turn.wrapping_add(1) % self.ports.len().max(1);
        }
        let taken = limit - room;
        self.stats.received += taken as u64;
        self.stats.bypass_received += taken as u64;
        self.kernel_turns += 1;
        if room > 0 && (taken == 0 || !self.kernel_quiet || self.kernel_turns >= KERNEL_EVERY) {
            self.kernel_turns = 0;
            let before = into.len();
            self.now = self.kernel.receive(room, into);
            self.kernel_quiet = into.len() == before;
        } else {
            self.now = self.clock.now();
        }
        self.now
    }

    fn adopt(&mut self, stray: &Stray<&[u8]>) -> Option<FrameRef> {
        self.kernel.adopt(stray)
    }

    fn release(&mut self, frame: FrameRef) {
        if !self.umem.owns(frame) {
            return self.kernel.release(frame);
        }
        self.stats.release_refused += u64::from(!self.umem.release(frame));
    }

    fn reserve(&mut self) -> Option<Slot> {
        let slot = self.umem.reserve().or_else(|| {
            self.flush();
            self.umem.reserve()
        });
        slot.map(Slot)
    }

    fn buffer(&mut self, slot: &Slot) -> &mut [u8] {
        self.umem.slot(slot.0).1
    }

    fn send(&mut self, slot: Slot, len: usize, to: SocketAddr, local: u8) {
        let Slot(slot) = slot;
        let Some(line) = self.seat.shared.lines.get(usize::from(local)) else {
            self.stats.send_errors += 1;
            return self.umem.abandon(slot);
        };
        let exit = self.exits[usize::from(local)].filter(|_| len <= self.umem.sendable());
        if let Some(exit) = exit
            && let Some(path) = self.paths.find(local, to.ip())
        {
            let (head, body) = self.umem.slot(slot);
            let head = &mut head[SLOT_HEAD - HEADERS_MAX..];
            if let Some(headers) = packet::build(head, &body[..len], &path, &line.sender, to, self.packet) {
                self.packet = self.packet.wrapping_add(1);
                let descriptor = self.umem.queue(slot, headers, len);
                if self.ports[exit].send(descriptor) {
                    return;
                }
                self.umem.take_back(slot);
            }
        }
        if !self.waiting.is_empty() || !self.send_by_kernel(slot, len, to, local) {
            self.waiting.push_back((slot, len, to, local));
        }
    }

    fn abandon(&mut self, slot: Slot) {
        self.umem.abandon(slot.0);
    }

    fn free_slots(&self) -> usize {
        self.umem.free_slots()
    }

    fn flush(&mut self) {
        for port in &mut self.ports {
            port.flush(self.now, &mut self.stats);
        }
        while let Some(&(slot, len, to, local)) = self.waiting.front() {
            if !self.send_by_kernel(slot, len, to, local) {
                break;
            }
            self.waiting.pop_front();
        }
        self.kernel.flush();
        self.reap();
    }

    fn sleep(&mut self, timeout: Option<Duration>, idle: &mut dyn FnMut() -> bool) {
        self.flush();
        let received = self.ports.iter().any(|port| !port.rings.receive.is_empty());
        if (received || !self.kernel_quiet) && self.umem.free_slots() > 0 {
            return;
        }
        self.ports.iter().for_each(Port::poke);
        let unsent = !self.waiting.is_empty() || self.kernel.has_unsent() || self.ports.iter().any(|port| port.is_pending(self.now));
        let quiet = &mut self.kernel_quiet;
        let woken = self.watch.sleep(timeout, unsent, idle, |number| *quiet &= number != KERNEL);
        self.stats.wakes += u64::from(woken);
    }

    /// Reports come to the kernel's sockets, also for what was sent past them: the ports are theirs.
    fn take_report(&mut self) -> Option<Report> {
        self.kernel.take_report()
    }

    fn waker(&self) -> Waker {
        self.watch.waker()
    }

    fn stats(&mut self) -> Stats {
        let dropped = self.ports.iter().map(Port::dropped).sum();
        self.stats.plus(&self.kernel.stats()).plus(&Stats { kernel_drops: dropped, ..Stats::default() })
    }
}
