//! The `uring` transport: io_uring with one multishot receive per socket into a ring of frames, and one system call per batch.
//!
//! The frames *are* the kernel's provided buffers: a filled one is held where it lies, and a released one is provided again. Every
//! `io_uring_enter` both submits the responses of one batch and collects the datagrams of the next; while nothing is queued and the
//! kernel has not raised the task-run flag, receiving costs no system call.
//!
//! Rules learnt by measurement (docs: "Pitfalls"):
//! - A receive ends whenever a completion comes without the MORE flag, whatever its result (no buffer, short completion queue, an
//!   ICMP error, an empty datagram): it is armed again, as soon as there is a frame to receive into.
//! - Deferred work runs only in an enter with GETEVENTS, so every enter has it.
//! - Sends skip the completion of success, which is only safe because they never wait (MSG_DONTWAIT): when enter returns, each
//!   consumed send has been done or has posted its error. Only then are slots free.
//! - A ring is used by the thread that made it only (SINGLE_ISSUER).
//!
//! With SQPOLL a thread of the kernel, on a CPU of its own, takes submissions without a system call. Sends are then done at some later
//! time, so each posts its completion, and only then its slots are free.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::mem;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{BufRingEntry, CancelBuilder, Fd, Fixed, Napi, RecvMsgOut, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, Probe, cqueue, opcode};

use super::mmsg::empty_places;
use super::reports::{Report, Reports, may_be_a_report};
use super::runs::{Run, Runs, SegmentControl, is_refusal};
use super::slots::{SendSlots, Slot};
use super::socket::{CONTROL_SIZE, RawAddress, receive_timestamp};
use super::watch::SEND_RETRY;
use super::{Sleeper, Stats, Stray, Transport, TransportSettings, Waker, sys};
use crate::host::clock::{Clock, WallClock};
use crate::host::frame::{FramePool, HEADROOM, Memory, Meta};
use crate::proto::base::{FrameRef, Time};

/// The buffer group of the frames; a ring of ours has one.
const GROUP: u16 = 0;
/// What the kernel writes before the datagram: sizes (`io_uring_recvmsg_out`), name, control messages.
const KERNEL_HEADER: usize = 16 + RawAddress::SIZE + CONTROL_SIZE;
/// Where the kernel's part of a frame begins, so that the datagram itself begins right behind the headroom.
const KERNEL_START: usize = HEADROOM - KERNEL_HEADER;
/// The most frames that can be told apart in completions (16 bits).
const FRAMES_MAX: u32 = 65_536;
/// The most frames a provided-buffer ring takes.
const PROVIDED_MAX: u32 = 32_768;
/// No error of a send: its completion has not come.
const PENDING: i32 = -1;
/// How long closing waits for the kernel to let go of one request.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(100);

/// io_uring transport.
pub struct Uring {
    ring: IoUring,
    lines: Vec<Line>,
    buffers: Buffers,
    /// Template of every receive: how long names and control messages may be.
    receive_header: Box<libc::msghdr>,
    /// Datagrams the kernel has delivered and nobody has asked for yet: at most as many as frames.
    arrived: VecDeque<Arrival>,
    pool: FramePool,
    slots: SendSlots,
    queued: Runs,
    /// Runs whose sends are in the submission queue or done since the last look.
    in_flight: VecDeque<Run>,
    /// By first slot: the error its send ended with, 0 for none; with SQPOLL [`PENDING`] until its completion has come.
    failures: Box<[i32]>,
    /// What the kernel reads of runs in flight.
    messages: Messages,
    /// A thread of the kernel submits.
    sqpoll: bool,
    sleeper: Sleeper,
    wake_armed: bool,
    /// What is watched besides the sockets.
    watched: Option<Watched>,
    clock: Clock,
    wall: WallClock,
    stats: Stats,
    reports: Reports,
}

/// One listen socket.
struct Line {
    socket: UdpSocket,
    /// A receive is with the kernel.
    armed: bool,
}

/// A descriptor that is watched: polled for once, and again when somebody has looked.
struct Watched {
    fd: RawFd,
    /// The poll is with the kernel.
    armed: bool,
    /// It was readable, and nobody has asked since.
    ready: bool,
}

/// A filled frame.
struct Arrival {
    frame: u32,
    /// Bytes written from `KERNEL_START` on.
    written: u32,
    local: u8,
}

/// What a completion belongs to.
#[derive(Clone, Copy)]
enum Request {
    Receive(u32),
    Send(u32),
    Wake,
    Watched,
}

impl Request {
    fn user_data(self) -> u64 {
        match self {
            Request::Receive(socket) => u64::from(socket),
            Request::Send(slot) => 1 << 32 | u64::from(slot),
            Request::Wake => 2 << 32,
            Request::Watched => 3 << 32,
        }
    }

    fn parse(user_data: u64) -> Option<Request> {
        let index = user_data as u32;
        match user_data >> 32 {
            0 => Some(Request::Receive(index)),
            1 => Some(Request::Send(index)),
            2 => Some(Request::Wake),
            3 => Some(Request::Watched),
            _ => None,
        }
    }
}

impl Uring {
    /// Tries whether the kernel has and allows what is needed, by building a small ring.
    ///
    /// # Errors
    /// The reason why not.
    pub fn probe() -> Result<(), String> {
        let ring = build(8, 16, None).map_err(|e| format!("io_uring_setup: {e} (needs Linux 6.1 and leave to use io_uring)"))?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe).map_err(|e| format!("io_uring probe: {e}"))?;
        let needed = [
            (opcode::RecvMsgMulti::CODE, "RECVMSG"),
            (opcode::Send::CODE, "SEND"),
            (opcode::SendMsg::CODE, "SENDMSG"),
            (opcode::Read::CODE, "READ"),
            (opcode::PollAdd::CODE, "POLL_ADD"),
        ];
        for (code, name) in needed {
            if !probe.is_supported(code) {
                return Err(format!("io_uring has no {name}"));
            }
        }
        Buffers::new(&ring, 1).map(drop).map_err(|e| format!("io_uring buffer ring: {e}"))
    }

    /// Opens the transport on the calling thread, which must be the one that uses it.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn open(
        sockets: Vec<UdpSocket>,
        pool: FramePool,
        sleeper: Sleeper,
        clock: Clock,
        settings: &TransportSettings,
    ) -> io::Result<Uring> {
        if pool.frames() > FRAMES_MAX {
            return Err(io::Error::new(ErrorKind::InvalidInput, format!("io_uring numbers at most {FRAMES_MAX} frames")));
        }
        let slots = SendSlots::new(settings);
        let provided = settings.provided_frames.clamp(1, PROVIDED_MAX).min(pool.frames());
        let others = sockets.len() as u32 + 2;
        // Room for every send and every re-armed receive; completions for every provided frame, every failed send, and ends of receives.
        let submissions = slots.count() as u32 + others;
        let ring = build(submissions, provided + slots.count() as u32 + 2 * others, settings.sqpoll_cpu)?;
        if let Some(time) = settings.napi_busy_poll {
            let mut napi = Napi::new().set_busy_poll_timeout(time.as_micros() as u32).set_prefer_busy_poll(true);
            ring.submitter().register_napi(&mut napi).map_err(|e| io::Error::new(e.kind(), format!("IORING_REGISTER_NAPI: {e}")))?;
        }
        let fds: Vec<RawFd> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
        ring.submitter().register_files(&fds)?;
        let buffers = Buffers::new(&ring, provided)?;
        // SAFETY: all zero is a valid `msghdr`: null pointers and lengths of zero.
        let mut receive_header: Box<libc::msghdr> = Box::new(unsafe { mem::zeroed() });
        receive_header.msg_namelen = RawAddress::SIZE as u32;
        receive_header.msg_controllen = CONTROL_SIZE;
        Ok(Uring {
            ring,
            lines: sockets.into_iter().map(|socket| Line { socket, armed: false }).collect(),
            buffers,
            receive_header,
            arrived: VecDeque::with_capacity(pool.frames() as usize),
            pool,
            queued: Runs::new(slots.count(), settings.coalesce),
            in_flight: VecDeque::with_capacity(slots.count()),
            messages: Messages::new(slots.count()),
            sqpoll: settings.sqpoll_cpu.is_some(),
            failures: vec![0; slots.count()].into_boxed_slice(),
            slots,
            sleeper,
            wake_armed: false,
            watched: None,
            wall: WallClock::new(&clock),
            clock,
            stats: Stats::default(),
            reports: Reports::new(),
        })
    }

    /// Provides free frames to the kernel and arms the receives that have ended.
    fn arm(&mut self) {
        if let Some(fd) = self.watched.as_ref().filter(|watched| !watched.armed && !watched.ready).map(|watched| watched.fd) {
            let poll = opcode::PollAdd::new(Fd(fd), libc::POLLIN as u32).build();
            let armed = self.push(poll, Request::Watched);
            self.watched.iter_mut().for_each(|watched| watched.armed = armed);
        }
        self.buffers.fill(&mut self.pool);
        if self.buffers.provided == 0 {
            return;
        }
        for place in 0..self.lines.len() {
            if self.lines[place].armed {
                continue;
            }
            let receive = opcode::RecvMsgMulti::new(Fixed(place as u32), &raw const *self.receive_header, GROUP).build();
            if self.push(receive, Request::Receive(place as u32)) {
                self.lines[place].armed = true;
            }
        }
    }

    /// Puts a request into the submission queue; `false` when it is full (then the next turn tries again).
    fn push(&mut self, entry: Entry, request: Request) -> bool {
        // SAFETY: what the entry points to outlives the request: the receive header and the event value live as long as the ring;
        // slots in flight and their messages are not written to until the kernel has consumed the entry and `enter` has returned, or,
        // with SQPOLL, the completion has come; frames of the buffer ring are taken from the pool until their completion.
        unsafe { self.ring.submission().push(&entry.user_data(request.user_data())) }.is_ok()
    }

    /// Submits what is queued and runs the kernel's deferred work; does not wait.
    fn enter(&mut self) {
        let submissions = self.ring.submission().len() as u32;
        // SAFETY: no argument is passed; the entries to submit were pushed under `push`'s contract.
        let result = unsafe { self.ring.submitter().enter::<libc::sigset_t>(submissions, 0, EnterFlags::GETEVENTS.bits(), None) };
        // Interrupted, or out of memory for requests: what was not consumed stays in the queue for the next turn.
        debug_assert!(result.is_ok() || result.is_err_and(|e| e.raw_os_error() != Some(libc::EINVAL)));
    }

    /// Takes all completions: arrived datagrams are noted, ended receives marked, failed sends noted.
    fn reap(&mut self) {
        for completion in self.ring.completion() {
            let (result, flags) = (completion.result(), completion.flags());
            match Request::parse(completion.user_data()) {
                Some(Request::Receive(place)) => {
                    let Some(line) = self.lines.get_mut(place as usize) else { continue };
                    line.armed = cqueue::more(flags);
                    if let Some(frame) = cqueue::buffer_select(flags) {
                        self.buffers.provided -= 1;
                        self.arrived.push_back(Arrival { frame: u32::from(frame), written: result.max(0) as u32, local: place as u8 });
                    } else if result == -libc::ENOBUFS {
                        self.stats.starved += u64::from(self.pool.free() == 0);
                    } else if result < 0 {
                        let reported = may_be_a_report(-result) && self.reports.read(line.socket.as_fd());
                        self.stats.receive_errors += u64::from(!reported);
                    }
                }
                Some(Request::Send(slot)) => {
                    if let Some(failure) = self.failures.get_mut(slot as usize) {
                        *failure = -result.min(0);
                    }
                }
                Some(Request::Wake) => {
                    self.wake_armed = false;
                    self.stats.wakes += u64::from(result > 0);
                }
                Some(Request::Watched) => {
                    if let Some(watched) = &mut self.watched {
                        (watched.armed, watched.ready) = (false, true);
                    }
                }
                None => {}
            }
        }
    }

    /// Frees the slots of sends that are done, except those that must be sent again.
    fn settle(&mut self) {
        let done = if self.sqpoll {
            self.in_flight.iter().take_while(|run| self.failures[run.first as usize] != PENDING).count()
        } else if self.ring.submission().is_empty() {
            self.in_flight.len()
        } else {
            0
        };
        let Uring { in_flight, queued, slots, failures, stats, reports, lines, .. } = self;
        // Backwards, so that what is sent again keeps its order at the front.
        for run in in_flight.drain(..done).rev() {
            match mem::take(&mut failures[run.first as usize]) {
                libc::EAGAIN => {
                    stats.send_full += 1;
                    queued.push_front(run);
                }
                0 => {
                    stats.sent_coalesced += if run.count > 1 { u64::from(run.count) } else { 0 };
                    stats.sent += run.release(slots);
                }
                error if run.count > 1 && is_refusal(error) => {
                    stats.coalesce_refused += 1;
                    queued.refuse(slots, run);
                }
                // About an earlier one: this was not sent yet.
                error if may_be_a_report(error) && queued.put_back(run, reported(reports, lines, slots, run.first)) => {}
                _ => stats.send_errors += run.release(slots),
            }
        }
        if self.in_flight.is_empty() {
            self.messages.used = (0, 0);
        }
    }

    /// Lets the kernel work if there is work, and takes its completions.
    fn turn(&mut self) {
        let submission = self.ring.submission();
        let (pending, deferred, overflown) = (!submission.is_empty(), submission.taskrun(), submission.cq_overflow());
        let asleep = self.sqpoll && pending && submission.need_wakeup();
        drop(submission);
        self.stats.ring_overflow += u64::from(overflown);
        if asleep {
            // Only an interruption can fail here, and the next turn tries again.
            let _ = self.ring.submit();
        }
        if (pending && !self.sqpoll) || deferred || overflown {
            self.enter();
        }
        self.reap();
        self.settle();
    }

    /// Makes an arrived datagram readable, or drops it when it is cut short or nonsense.
    fn hold(&mut self, arrival: &Arrival, now: Time) -> Option<FrameRef> {
        let start = self.pool.address(arrival.frame).wrapping_add(KERNEL_START);
        let len = (arrival.written as usize).min(self.pool.frame_size() - KERNEL_START);
        // SAFETY: the frame is taken, its completion has come, so the kernel has written it and will not again; `len` is inside it.
        let written = unsafe { std::slice::from_raw_parts(start, len) };
        let meta = match RecvMsgOut::parse(written, &self.receive_header) {
            Ok(received) if received.is_payload_truncated() => {
                self.stats.truncated += 1;
                None
            }
            Ok(received) => RawAddress::parse(received.name_data()).map(|from| {
                let arrived = receive_timestamp(received.control_data()).map_or(now, |stamp| self.wall.time(stamp, now));
                let len = received.payload_data().len() as u32;
                Meta { from, arrival: arrived, start: HEADROOM as u32, len, local: arrival.local }
            }),
            Err(()) => None,
        };
        match meta {
            // SAFETY: as above: taken, completed, and no longer in the buffer ring.
            Some(meta) => Some(unsafe { self.pool.hold(arrival.frame, meta) }),
            None => {
                // SAFETY: as above.
                unsafe { self.pool.give_back(arrival.frame) };
                None
            }
        }
    }
}

/// Whether the socket that the slot was to leave by has reports.
fn reported(reports: &mut Reports, lines: &[Line], slots: &SendSlots, slot: u32) -> bool {
    lines.get(usize::from(slots.outgoing(slot).local)).is_some_and(|line| reports.read(line.socket.as_fd()))
}

impl Transport for Uring {
    fn receive(&mut self, budget: usize, into: &mut Vec<FrameRef>) -> Time {
        self.arm();
        self.turn();
        let limit = budget.min(self.slots.free());
        let now = self.clock.now();
        if limit > 0 && !self.arrived.is_empty() {
            self.wall.refresh(now);
            let before = into.len();
            while into.len() - before < limit {
                let Some(arrival) = self.arrived.pop_front() else { break };
                into.extend(self.hold(&arrival, now));
            }
            self.stats.received += (into.len() - before) as u64;
        }
        now
    }

    fn adopt(&mut self, stray: &Stray<&[u8]>) -> Option<FrameRef> {
        self.pool.copy_in(stray)
    }

    fn release(&mut self, frame: FrameRef) {
        self.stats.release_refused += u64::from(!self.pool.release(frame));
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
        if usize::from(local) >= self.lines.len() {
            self.stats.send_errors += 1;
            return self.slots.abandon(slot);
        }
        let slot = self.slots.queue(slot, len, to, local);
        self.queued.push(&mut self.slots, slot);
    }

    fn abandon(&mut self, slot: Slot) {
        self.slots.abandon(slot);
    }

    fn free_slots(&self) -> usize {
        self.slots.free()
    }

    fn flush(&mut self) {
        // Not before the sends of the last flush are settled: a slot must not overtake one that is sent again. (With SQPOLL it may, should
        // the send buffer be full: waiting for the kernel's thread would cost what it saves.)
        self.settle();
        if !self.in_flight.is_empty() && !self.sqpoll {
            return self.turn();
        }
        while let Some(&run) = self.queued.front() {
            let outgoing = self.slots.outgoing(run.first);
            let socket = Fixed(u32::from(outgoing.local));
            let send = if run.count > 1 {
                let Some(message) = self.messages.build(&self.slots, &run) else { break };
                opcode::SendMsg::new(socket, message).flags(libc::MSG_DONTWAIT as u32).build()
            } else {
                let bytes = self.slots.bytes(run.first);
                let send = opcode::Send::new(socket, bytes.as_ptr(), bytes.len() as u32).flags(libc::MSG_DONTWAIT);
                send.dest_addr(outgoing.to.as_ptr().cast()).dest_addr_len(outgoing.to.len()).build()
            };
            let send = if self.sqpoll { send } else { send.flags(Flags::SKIP_SUCCESS) };
            if !self.push(send, Request::Send(run.first)) {
                break;
            }
            self.failures[run.first as usize] = if self.sqpoll { PENDING } else { 0 };
            self.queued.pop_front();
            self.in_flight.push_back(run);
        }
        if !self.in_flight.is_empty() {
            self.turn();
        }
    }

    fn sleep(&mut self, timeout: Option<Duration>, idle: &mut dyn FnMut() -> bool) {
        self.flush();
        self.arm();
        if !self.wake_armed {
            let value = self.buffers.event_value();
            let read = opcode::Read::new(Fd(self.sleeper.event().as_raw_fd()), value, 8).build();
            self.wake_armed = self.push(read, Request::Wake);
        }
        self.reap();
        let unsent = !self.queued.is_empty() || !self.in_flight.is_empty();
        let ready = self.watched.as_ref().is_some_and(|watched| watched.ready);
        if ready || (!self.arrived.is_empty() && self.slots.free() > 0) {
            return;
        }
        let timeout = if unsent { Some(timeout.unwrap_or(SEND_RETRY).min(SEND_RETRY)) } else { timeout };
        self.sleeper.announce();
        if idle() {
            let time = Timespec::from(timeout.unwrap_or(Duration::from_secs(u64::from(u32::MAX))));
            // Submits what was pushed above and waits. Ends with the first completion, at the timeout (ETIME) or by a signal.
            let result = self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time));
            debug_assert!(result.is_ok() || result.is_err_and(|e| e.raw_os_error() != Some(libc::EINVAL)));
        }
        self.sleeper.awake();
        self.reap();
        self.settle();
    }

    fn watch(&mut self, fd: RawFd) -> io::Result<()> {
        self.watched = Some(Watched { fd, armed: false, ready: true });
        Ok(())
    }

    fn watched_is_ready(&mut self) -> bool {
        self.watched.as_mut().is_some_and(|watched| mem::take(&mut watched.ready))
    }

    fn take_report(&mut self) -> Option<Report> {
        self.reports.take()
    }

    fn waker(&self) -> Waker {
        self.sleeper.waker()
    }

    fn stats(&mut self) -> Stats {
        self.stats.kernel_drops = self.lines.iter().map(|line| u64::from(sys::dropped(line.socket.as_fd()))).sum();
        self.stats
    }
}

impl Drop for Uring {
    /// Takes every request back from the kernel before the frames it could write to may go. Should it not let go of them, their
    /// memory is given up instead.
    fn drop(&mut self) {
        let quiet = (0..self.lines.len() + 2).any(|_| {
            // Says nothing about what is left; our own account does, once the ends of the cancelled requests, deferred work, are in.
            let _ = self.ring.submitter().register_sync_cancel(Some(CANCEL_TIMEOUT.into()), CancelBuilder::any());
            self.enter();
            self.reap();
            let sent = self.in_flight.iter().all(|run| self.failures[run.first as usize] != PENDING);
            sent && !self.wake_armed && self.lines.iter().all(|line| !line.armed)
        });
        // The ring ends in the background; the sockets must not stay open that long. An error could only mean they are not registered.
        let _ = self.ring.submitter().unregister_files();
        if !quiet {
            mem::forget(Arc::clone(self.pool.table()));
            self.buffers.leak();
        }
    }
}

/// Messages of several datagrams, built for one flush and used by the kernel until its sends are done.
struct Messages {
    headers: Box<[libc::msghdr]>,
    controls: Box<[SegmentControl]>,
    places: Box<[libc::iovec]>,
    /// Headers and places in use.
    used: (usize, usize),
}

impl Messages {
    fn new(slots: usize) -> Messages {
        // SAFETY: all zero is a valid `msghdr`: null pointers and lengths of zero.
        let header = || unsafe { mem::zeroed() };
        // A message is of two datagrams at least.
        let headers = (0..slots / 2).map(|_| header()).collect();
        let controls = vec![SegmentControl::new(); slots / 2].into_boxed_slice();
        Messages { headers, controls, places: empty_places(slots), used: (0, 0) }
    }

    /// The message of a run; `None` when there is no room, which there is for all slots once.
    fn build(&mut self, slots: &SendSlots, run: &Run) -> Option<*const libc::msghdr> {
        let (number, first) = self.used;
        let header = self.headers.get_mut(number)?;
        let places = self.places.get_mut(first..first + usize::from(run.count))?;
        for (slot, place) in run.slots(slots).zip(places.iter_mut()) {
            let bytes = slots.bytes(slot);
            place.iov_base = bytes.as_ptr().cast_mut().cast();
            place.iov_len = bytes.len();
        }
        let to = &slots.outgoing(run.first).to;
        header.msg_name = to.as_ptr().cast_mut().cast();
        header.msg_namelen = to.len();
        header.msg_iov = places.as_mut_ptr();
        header.msg_iovlen = places.len();
        (header.msg_control, header.msg_controllen) = self.controls.get_mut(number)?.fill(run);
        self.used = (number + 1, first + places.len());
        Some(header)
    }
}

/// The ring of provided frames, shared with the kernel, and the 8 bytes a wake is read into.
struct Buffers {
    /// Entries, then the event value; `None` once given up.
    memory: Option<Memory>,
    entries: u32,
    tail: u16,
    /// Frames with the kernel now.
    provided: u32,
    /// Frames to have with the kernel.
    target: u32,
}

impl Buffers {
    /// Registers a ring for `target` frames (at least 1); none provided yet.
    fn new(ring: &IoUring, target: u32) -> io::Result<Buffers> {
        let entries = target.clamp(1, PROVIDED_MAX).next_power_of_two();
        let memory = Memory::new(entries as usize * mem::size_of::<BufRingEntry>() + 8)?;
        // SAFETY: the memory is page-aligned, holds `entries` entries, and is kept until the ring is closed or given up (`leak`).
        unsafe { ring.submitter().register_buf_ring_with_flags(memory.address(0) as u64, entries as u16, GROUP, 0) }?;
        Ok(Buffers { memory: Some(memory), entries, tail: 0, provided: 0, target })
    }

    /// Provides free frames up to the target; the kernel sees them all at once.
    #[inline]
    fn fill(&mut self, pool: &mut FramePool) {
        if self.provided >= self.target {
            return;
        }
        let Some(memory) = &self.memory else { return };
        let before = self.tail;
        let size = (KERNEL_HEADER + pool.room()) as u32;
        while self.provided < self.target {
            let Some(frame) = pool.take() else { break };
            let place = (u32::from(self.tail) & (self.entries - 1)) as usize * mem::size_of::<BufRingEntry>();
            // SAFETY: `place` is an entry inside the memory that the kernel does not read before the tail moves past it. Address, size and
            // number are written; the tail, which shares the first entry, is not.
            let entry = unsafe { &mut *memory.address(place).cast::<BufRingEntry>() };
            entry.set_addr(pool.address(frame).wrapping_add(KERNEL_START) as u64);
            entry.set_len(size);
            entry.set_bid(frame as u16);
            self.tail = self.tail.wrapping_add(1);
            self.provided += 1;
        }
        if self.tail != before {
            // SAFETY: the ring begins at the memory's start; this computes the place of its tail.
            let tail = unsafe { BufRingEntry::tail(memory.address(0).cast()) };
            // SAFETY: aligned, inside the memory, and only accessed atomically by the kernel and us.
            unsafe { AtomicU16::from_ptr(tail.cast_mut()) }.store(self.tail, Ordering::Release);
        }
    }

    /// Where the kernel writes what it reads from the event.
    fn event_value(&self) -> *mut u8 {
        let place = self.entries as usize * mem::size_of::<BufRingEntry>();
        self.memory.as_ref().map_or(ptr::null_mut(), |memory| memory.address(place))
    }

    /// Never unmaps the memory: the kernel might still write to it.
    fn leak(&mut self) {
        if let Some(memory) = self.memory.take() {
            memory.leak();
        }
    }
}

/// How long the kernel's submission thread looks for work before it sleeps, in milliseconds.
const SQPOLL_IDLE_MS: u32 = 50;

/// A ring with the flags of the module's rules; without NO_SQARRAY where the kernel is older than 6.6.
fn build(submissions: u32, completions: u32, sqpoll_cpu: Option<u16>) -> io::Result<IoUring> {
    let build = |no_array: bool| {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_submit_all();
        match sqpoll_cpu {
            Some(cpu) => builder.setup_sqpoll(SQPOLL_IDLE_MS).setup_sqpoll_cpu(cpu.into()),
            None => builder.setup_defer_taskrun().setup_taskrun_flag(),
        };
        builder.setup_clamp().setup_cqsize(completions.next_power_of_two().max(2 * submissions.next_power_of_two())).dontfork();
        if no_array {
            builder.setup_no_sqarray();
        }
        builder.build(submissions.next_power_of_two())
    };
    build(true).or_else(|_| build(false))
}
