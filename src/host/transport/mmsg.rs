//! The `mio` transport: `recvmmsg` and `sendmmsg` move datagrams, mio (epoll) sleeps.
//!
//! Works on every Linux and is the reference the others are tested against. Costs the same as io_uring while busy (docs: 3.0 us
//! per request and response), one empty system call per socket and turn while spinning.
//!
//! Invariant: a core may sleep only when every socket was seen empty since the last event (epoll reports arrivals, not contents).

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use super::reports::{Report, Reports, may_be_a_report};
use super::runs::{Runs, SegmentControl, is_refusal};
use super::slots::{SendSlots, Slot};
use super::socket::{CONTROL_SIZE, RawAddress, receive_timestamp};
use super::watch::Watch;
use super::{BATCH, Sleeper, Stats, Stray, Transport, TransportSettings, Waker, sys};
use crate::host::clock::{Clock, WallClock};
use crate::host::frame::{FramePool, HEADROOM, Meta};
use crate::proto::base::{FrameRef, Time};

/// `recvmmsg`/`sendmmsg` transport.
pub struct Mmsg {
    lines: Vec<Line>,
    /// The socket the next batch begins with.
    turn: usize,
    pool: FramePool,
    slots: SendSlots,
    receiving: Receiving,
    sending: Sending,
    watch: Watch,
    clock: Clock,
    wall: WallClock,
    stats: Stats,
    reports: Reports,
    /// No frame was free at the last receive: only a release can help.
    starved: bool,
}

/// One listen socket.
struct Line {
    socket: UdpSocket,
    queued: Runs,
    /// The last receive emptied the socket.
    drained: bool,
}

impl Mmsg {
    /// Whether this kernel has what it takes: always.
    ///
    /// # Errors
    /// None.
    pub fn probe() -> Result<(), String> {
        Ok(())
    }

    /// Opens the transport on the calling thread.
    ///
    /// # Errors
    /// When epoll refuses.
    pub fn open(
        sockets: Vec<UdpSocket>,
        pool: FramePool,
        sleeper: Sleeper,
        clock: Clock,
        settings: &TransportSettings,
    ) -> io::Result<Mmsg> {
        if let Some(time) = settings.napi_busy_poll {
            let refused = |e: io::Error| io::Error::new(e.kind(), format!("SO_BUSY_POLL: {e} (it needs CAP_NET_ADMIN)"));
            sockets.iter().try_for_each(|socket| sys::busy_poll(socket.as_fd(), time)).map_err(refused)?;
        }
        let watched: Vec<(RawFd, usize)> = sockets.iter().map(UdpSocket::as_raw_fd).zip(0..).collect();
        let watch = Watch::new(&watched, sleeper)?;
        let slots = SendSlots::new(settings);
        let line = |socket| Line { socket, queued: Runs::new(slots.count(), settings.coalesce), drained: false };
        Ok(Mmsg {
            lines: sockets.into_iter().map(line).collect(),
            turn: 0,
            pool,
            slots,
            receiving: Receiving::new(),
            sending: Sending::new(),
            watch,
            wall: WallClock::new(&clock),
            clock,
            stats: Stats::default(),
            reports: Reports::new(),
            starved: false,
        })
    }

    /// Whether datagrams wait because a socket's send buffer was full.
    pub(super) fn has_unsent(&self) -> bool {
        self.lines.iter().any(|line| !line.queued.is_empty())
    }

    /// Receives one batch from one socket; says how many datagrams were handed out.
    fn receive_from(&mut self, place: usize, limit: usize, into: &mut Vec<FrameRef>, now: &mut Option<Time>) -> usize {
        let wanted = limit.min(BATCH);
        while self.receiving.frames.len() < wanted {
            let Some(frame) = self.pool.take() else { break };
            self.receiving.frames.push(frame);
        }
        let asked = wanted.min(self.receiving.frames.len());
        if asked == 0 {
            self.stats.starved += u64::from(!self.starved);
            self.starved = true;
            return 0;
        }
        self.starved = false;
        let Some(line) = self.lines.get_mut(place) else { return 0 };
        let count = match self.receiving.call(line.socket.as_raw_fd(), &self.pool, asked) {
            Ok(count) => count,
            Err(error) => {
                line.drained = error.kind() == ErrorKind::WouldBlock;
                let reported = error.raw_os_error().is_some_and(may_be_a_report) && self.reports.read(line.socket.as_fd());
                self.stats.receive_errors += u64::from(!line.drained && !reported && error.kind() != ErrorKind::Interrupted);
                return 0;
            }
        };
        line.drained = count < asked;
        let now = *now.get_or_insert_with(|| self.clock.now());
        self.wall.refresh(now);
        let before = into.len();
        let mut kept = 0;
        for entry in 0..count {
            let frame = self.receiving.frames[entry];
            match self.receiving.meta(entry, place as u8, &self.wall, now) {
                Some(meta) => {
                    // SAFETY: the frame was taken for `receiving`, the call that filled it has returned, and it leaves the list below.
                    into.push(unsafe { self.pool.hold(frame, meta) });
                }
                None => {
                    self.stats.truncated += 1;
                    self.receiving.frames[kept] = frame;
                    kept += 1;
                }
            }
        }
        self.receiving.frames.drain(kept..count);
        into.len() - before
    }
}

impl Transport for Mmsg {
    fn receive(&mut self, budget: usize, into: &mut Vec<FrameRef>) -> Time {
        let limit = budget.min(self.slots.free());
        let mut room = limit;
        let mut now = None;
        for step in 0..self.lines.len() {
            if room == 0 {
                break;
            }
            let place = (self.turn + step) % self.lines.len();
            room -= self.receive_from(place, room, into, &mut now);
        }
        self.turn = (self.turn + 1) % self.lines.len().max(1);
        self.stats.received += (limit - room) as u64;
        now.unwrap_or_else(|| self.clock.now())
    }

    fn adopt(&mut self, stray: &Stray<&[u8]>) -> Option<FrameRef> {
        self.pool.copy_in(stray)
    }

    fn release(&mut self, frame: FrameRef) {
        let released = self.pool.release(frame);
        self.stats.release_refused += u64::from(!released);
        self.starved &= !released;
    }

    fn reserve(&mut self) -> Option<Slot> {
        self.slots.reserve().or_else(|| {
            self.flush();
            self.slots.reserve()
        })
    }

    fn buffer(&mut self, slot: &Slot) -> &mut [u8] {
        self.slots.buffer(slot)
    }

    fn send(&mut self, slot: Slot, len: usize, to: SocketAddr, local: u8) {
        let Some(line) = self.lines.get_mut(usize::from(local)) else {
            self.stats.send_errors += 1;
            return self.slots.abandon(slot);
        };
        let slot = self.slots.queue(slot, len, to, local);
        line.queued.push(&mut self.slots, slot);
    }

    fn abandon(&mut self, slot: Slot) {
        self.slots.abandon(slot);
    }

    fn free_slots(&self) -> usize {
        self.slots.free()
    }

    fn flush(&mut self) {
        let Mmsg { lines, sending, slots, stats, reports, .. } = self;
        for line in lines {
            while let Some(&first) = line.queued.front() {
                match sending.call(line.socket.as_raw_fd(), slots, &line.queued) {
                    Ok(sent) => {
                        for run in (0..sent).map_while(|_| line.queued.pop_front()) {
                            stats.sent_coalesced += if run.count > 1 { u64::from(run.count) } else { 0 };
                            stats.sent += run.release(slots);
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        stats.send_full += 1;
                        break;
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => {
                        line.queued.pop_front();
                        let about_another = error.raw_os_error().is_some_and(may_be_a_report);
                        // About an earlier one: this was not sent yet.
                        if about_another && line.queued.put_back(first, reports.read(line.socket.as_fd())) {
                            continue;
                        }
                        if first.count > 1 && error.raw_os_error().is_some_and(is_refusal) {
                            stats.coalesce_refused += 1;
                            line.queued.refuse(slots, first);
                        } else {
                            // The error is the first one's own: unreachable, too long, refused by a filter.
                            stats.send_errors += first.release(slots);
                        }
                    }
                }
            }
        }
    }

    fn sleep(&mut self, timeout: Option<Duration>, idle: &mut dyn FnMut() -> bool) {
        self.flush();
        let drained = self.starved || self.lines.iter().all(|line| line.drained);
        if !drained && self.slots.free() > 0 {
            return;
        }
        let (unsent, lines) = (self.has_unsent(), &mut self.lines);
        let woken = self.watch.sleep(timeout, unsent, idle, |place| {
            if let Some(line) = lines.get_mut(place) {
                line.drained = false;
            }
        });
        self.stats.wakes += u64::from(woken);
    }

    fn watch(&mut self, fd: RawFd) -> io::Result<()> {
        self.watch.add(fd)
    }

    fn take_report(&mut self) -> Option<Report> {
        self.reports.take()
    }

    fn waker(&self) -> Waker {
        self.watch.waker()
    }

    fn stats(&mut self) -> Stats {
        self.stats.kernel_drops = self.lines.iter().map(|line| u64::from(sys::dropped(line.socket.as_fd()))).sum();
        self.stats
    }
}

/// What `recvmmsg` fills, reused from call to call.
struct Receiving {
    /// Frames taken from the pool, to be filled in this order.
    frames: Vec<u32>,
    headers: Box<[libc::mmsghdr]>,
    places: Box<[libc::iovec]>,
    names: Box<[Name]>,
    controls: Box<[Control]>,
}

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Name([u8; RawAddress::SIZE]);

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_SIZE]);

impl Receiving {
    fn new() -> Receiving {
        Receiving {
            frames: Vec::with_capacity(BATCH),
            headers: empty_headers(),
            places: empty_places(BATCH),
            names: vec![Name([0; RawAddress::SIZE]); BATCH].into_boxed_slice(),
            controls: vec![Control([0; CONTROL_SIZE]); BATCH].into_boxed_slice(),
        }
    }

    /// Receives up to `count` datagrams into the first frames; does not block.
    fn call(&mut self, fd: RawFd, pool: &FramePool, count: usize) -> io::Result<usize> {
        let count = count.min(self.frames.len()).min(BATCH);
        let space = pool.room();
        for entry in 0..count {
            let place = &mut self.places[entry];
            place.iov_base = pool.address(self.frames[entry]).wrapping_add(HEADROOM).cast();
            place.iov_len = space;
            let header = &mut self.headers[entry].msg_hdr;
            header.msg_name = self.names[entry].0.as_mut_ptr().cast();
            header.msg_namelen = RawAddress::SIZE as u32;
            header.msg_iov = place;
            header.msg_iovlen = 1;
            header.msg_control = self.controls[entry].0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_SIZE;
            header.msg_flags = 0;
        }
        // SAFETY: `count` headers were just filled in; each points to a name, a control block and an iovec of its own, alive and
        // unused during the call, and each iovec to the part behind the headroom of a frame that is taken by this transport.
        let result = unsafe { libc::recvmmsg(fd, self.headers.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT as _, std::ptr::null_mut()) };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }

    /// What the last call said of its datagram number `entry`; `None` when it was too long or has no sender.
    fn meta(&self, entry: usize, local: u8, wall: &WallClock, now: Time) -> Option<Meta> {
        let header = &self.headers[entry];
        if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            return None;
        }
        let from = RawAddress::parse(self.names[entry].0.get(..header.msg_hdr.msg_namelen as usize)?)?;
        let control = self.controls[entry].0.get(..header.msg_hdr.msg_controllen)?;
        let arrival = receive_timestamp(control).map_or(now, |stamp| wall.time(stamp, now));
        Some(Meta { from, arrival, start: HEADROOM as u32, len: header.msg_len, local })
    }
}

/// Datagrams of one `sendmmsg`: several runs of the most there can be.
const PLACES: usize = 4 * BATCH;

/// What `sendmmsg` reads, reused from call to call.
struct Sending {
    headers: Box<[libc::mmsghdr]>,
    controls: Box<[SegmentControl]>,
    places: Box<[libc::iovec]>,
}

impl Sending {
    fn new() -> Sending {
        let controls = vec![SegmentControl::new(); BATCH].into_boxed_slice();
        Sending { headers: empty_headers(), controls, places: empty_places(PLACES) }
    }

    /// Sends the first of the queued runs; does not block. Says how many went out (at least one), or why the first one did not.
    fn call(&mut self, fd: RawFd, slots: &SendSlots, queued: &Runs) -> io::Result<usize> {
        let (mut count, mut used) = (0, 0);
        for ((run, header), control) in queued.iter().zip(&mut self.headers).zip(&mut self.controls) {
            let Some(places) = self.places.get_mut(used..used + usize::from(run.count)) else { break };
            for (slot, place) in run.slots(slots).zip(places.iter_mut()) {
                let bytes = slots.bytes(slot);
                place.iov_base = bytes.as_ptr().cast_mut().cast();
                place.iov_len = bytes.len();
            }
            let to = &slots.outgoing(run.first).to;
            let header = &mut header.msg_hdr;
            header.msg_name = to.as_ptr().cast_mut().cast();
            header.msg_namelen = to.len();
            header.msg_iov = places.as_mut_ptr();
            header.msg_iovlen = places.len();
            (header.msg_control, header.msg_controllen) = control.fill(run);
            used += places.len();
            count += 1;
        }
        // SAFETY: `count` headers were just filled in with names, bytes of queued slots, which `slots` keeps alive and unchanged during the
        // call, and control messages and iovecs of their own; the kernel only reads them.
        let result = unsafe { libc::sendmmsg(fd, self.headers.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT as _) };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }
}

fn empty_headers() -> Box<[libc::mmsghdr]> {
    // SAFETY: all zero is a valid `mmsghdr`: null pointers and lengths of zero.
    let header = || unsafe { std::mem::zeroed() };
    (0..BATCH).map(|_| header()).collect()
}

pub(super) fn empty_places(count: usize) -> Box<[libc::iovec]> {
    vec![libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; count].into_boxed_slice()
}
