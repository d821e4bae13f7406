//! The loop of one core: one pinned thread that moves datagrams, envelopes and time into its [`Core`] and what comes out back.
//!
//! A core with sockets receives a batch, handles it, and flushes once. A core without (role `shard`) writes responses into frames of
//! its own, which its transport core copies into send slots and gives back; its transport has no sockets and only sleeps. Nothing in
//! the loop blocks but `Transport::sleep`, and that only when a whole turn found nothing to do.

use super::books::Books;
use super::clock::Clock;
use super::cluster::gateway::CoreLink;
use super::cores::{Pulse, ToCore};
use super::frame::{Datagram, FramePool, FrameTable, Meta};
use super::inside::Inside;
use super::ring::{Receiver, Sender};
use super::tap::{Captured, Tap};
use super::transport::{BATCH, Stats, Stray, Transport, Waker};
use super::work::{Found, Work};
use crate::proto::base::{CoreId, Counter, Counters, FrameRef, Time};
use crate::proto::core::{Case, Core, Envelope, Frames, Origin, Outside, Request, Turn};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What travels in the rings between cores: what the machines say, and frames on their way out through a transport core.
#[derive(Clone, Copy, Debug)]
pub enum Entry {
    /// Between the machines.
    Envelope(Envelope),
    /// Send the datagram in this frame.
    Transmit(FrameRef),
    /// It is sent: the frame is free.
    Sent(FrameRef),
}

// Still one cache line.
const _: () = assert!(size_of::<Entry>() <= 64);

/// Entries of one ring taken per turn.
const ENTRIES: usize = 128;
/// How long at most a core sleeps, so that its beat shows that it lives.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// How soon to try again to give frames back to a core whose ring was full.
const RETURN_AGAIN: Duration = Duration::from_millis(1);
/// Turns between looks at the inbox of the control loop while busy.
const INBOX_EVERY: u32 = 16;
/// How often transport statistics go into the counters.
const STATS_EVERY: Duration = Duration::from_millis(250);

/// When a core without work stops looking for it and sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spin {
    /// At once.
    Off,
    /// After so long without work.
    For(Duration),
    /// Never.
    Always,
}

/// Where a core's datagrams leave.
pub enum Exit {
    /// Through its own sockets.
    Sockets,
    /// Through this transport core, from these frames.
    Carrier(CoreId, FramePool),
}

/// The ring towards one other core.
pub struct Outbox {
    /// The ring.
    pub ring: Sender<Entry>,
    /// Ends the other core's sleep.
    pub waker: Waker,
    /// Its signs of life.
    pub pulse: Arc<Pulse>,
}

/// What the loop of a core is made of.
pub struct CoreLoop {
    /// The machine.
    pub core: Core,
    /// Its sockets, or what it sleeps in.
    pub transport: Box<dyn Transport>,
    /// Frames of all cores, to read.
    pub table: Arc<FrameTable>,
    /// Where its datagrams leave.
    pub exit: Exit,
    /// Frames for messages that wait, of the same table; without any they wait where they were received.
    pub kept: Option<FramePool>,
    /// Rings towards the others, by core; none to itself.
    pub outboxes: Vec<Option<Outbox>>,
    /// Rings from the others.
    pub inboxes: Vec<(CoreId, Receiver<Entry>)>,
    /// From the control loop.
    pub control: crossbeam::channel::Receiver<ToCore>,
    /// Signs of life.
    pub pulse: Arc<Pulse>,
    /// Counters of the core.
    pub counters: Arc<Counters>,
    /// How long messages wait and take.
    pub inside: Arc<Inside>,
    /// When to sleep.
    pub spin: Spin,
    /// The process clock.
    pub clock: Clock,
    /// Where copies of datagrams go when somebody traces.
    pub tap: Arc<Tap>,
    /// The books of all cores about commands over many endpoints.
    pub books: Books,
    /// In a cluster: the way to the node.
    pub link: Option<CoreLink>,
}

impl CoreLoop {
    /// Runs until the control loop says stop.
    pub fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut strays: VecDeque<Vec<Stray>> = VecDeque::new();
        let mut requests: VecDeque<(Box<Request>, crossbeam::channel::Sender<Box<Request>>)> = VecDeque::new();
        let mut port = Port {
            transport: self.transport,
            exit: self.exit,
            kept: self.kept,
            outboxes: self.outboxes,
            woken: Vec::new(),
            carried: VecDeque::new(),
            returning: VecDeque::new(),
            table: self.table.clone(),
            counters: self.counters.clone(),
            tap: self.tap.clone(),
            core: self.core.id(),
            books: self.books,
            now: Time::ZERO,
        };
        let frames = TableFrames(self.table);
        let mut last_work = Time::ZERO;
        let mut stats = (Stats::default(), Time::ZERO);
        let (mut turns, mut rested, mut pressed) = (0u32, true, false);
        let (mut work, mut found, mut due) = (Work::default(), Found::default(), Time::NEVER);
        loop {
            batch.clear();
            let now = port.transport.receive(if pressed { 0 } else { BATCH }, &mut batch);
            self.core.note_work(now, work.turn(now, std::mem::take(&mut found)));
            self.pulse.beat.store(now.0, Ordering::Relaxed);
            turns = turns.wrapping_add(1);
            let mut worked = !batch.is_empty();
            // After a rest orders come before datagrams: who sent both may count on that.
            if rested || turns.is_multiple_of(INBOX_EVERY) {
                while let Ok(message) = self.control.try_recv() {
                    worked = true;
                    match message {
                        ToCore::Request(request, reply) => requests.push_back((request, reply)),
                        ToCore::Settings(settings) => self.core.set_settings(now, settings),
                        ToCore::Strays(batch) => strays.push_back(batch),
                        ToCore::Hold(time) => hold(time),
                        ToCore::Stop => return self.pulse.ended.store(true, Ordering::Release),
                    }
                }
                if now.since(stats.1) > STATS_EVERY {
                    let latest = port.transport.stats();
                    latest.publish(&stats.0, &self.counters);
                    stats = (latest, now);
                }
            }
            port.now = now;
            if !strays.is_empty() {
                worked = true;
                port.adopt(&mut strays, &mut batch);
            }
            if self.tap.is_open() {
                batch.iter().for_each(|&frame| port.tap_received(frame));
            }
            found.take(batch.len(), BATCH);
            self.core.read_ahead(&frames, &batch);
            let mut turn = Turn { now, frames: &frames, out: &mut port };
            let mut start = now;
            for &frame in &batch {
                self.core.handle_datagram(&mut turn, frame);
                start = measure(&mut self.core, &self.inside, &self.clock, start);
            }
            for (from, inbox) in &mut self.inboxes {
                let mut count = 0;
                while count < ENTRIES {
                    let Some(entry) = inbox.receive() else { break };
                    count += 1;
                    match entry {
                        Entry::Envelope(envelope) => {
                            // Only messages are measured: other envelopes do without the clock.
                            let is_message = matches!(envelope, Envelope::Message(_));
                            let start = if is_message { self.clock.now() } else { now };
                            self.core.handle_envelope(&mut turn, *from, envelope);
                            if is_message {
                                measure(&mut self.core, &self.inside, &self.clock, start);
                            }
                        }
                        Entry::Transmit(frame) => turn.out.carry(frame),
                        Entry::Sent(frame) => turn.out.sent(frame),
                    }
                }
                found.take(count, ENTRIES);
            }
            if let Some((mut request, reply)) = requests.pop_front() {
                worked = true;
                if self.core.handle_request(&mut turn, &mut request) {
                    // Who asked may have gone.
                    let _ = reply.send(request);
                } else {
                    requests.push_back((request, reply));
                }
            }
            while let Some((local, peer)) = turn.out.transport.take_ended() {
                self.core.handle_ended_stream(&mut turn, local, peer);
            }
            while let Some(report) = turn.out.transport.take_report() {
                self.core.handle_unreachable(&mut turn, report.to, report.sent());
            }
            if let Some(link) = &mut self.link {
                let mut count = 0;
                while count < ENTRIES {
                    let Some(message) = link.from.receive() else { break };
                    count += 1;
                    self.core.handle_node(&mut turn, message);
                }
                found.take(count, ENTRIES);
            }
            worked |= found.any;
            let slices = self.core.has_slices();
            found.due = slices || (due <= now && !worked);
            self.core.handle_time(&mut turn);
            if let Some(link) = &mut self.link {
                worked |= send_to_node(&mut self.core, link);
            }
            let lookups = self.core.take_lookups();
            if lookups != 0 {
                self.pulse.lookups.fetch_or(lookups, Ordering::Relaxed);
            }
            pressed = self.core.is_pressed(now);
            port.flush();
            rested = !worked;
            found.any = worked;
            due = Time::NEVER;
            if worked {
                last_work = now;
                self.pulse.turns.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let spins = match self.spin {
                Spin::Off => false,
                Spin::For(time) => now.since(last_work) < time,
                Spin::Always => true,
            };
            if found.due && !slices {
                // What was due may have been long: it is measured before the core sleeps.
                continue;
            }
            let deadline = self.core.deadline();
            due = deadline;
            if spins || deadline <= now || pressed || !port.carried.is_empty() {
                std::hint::spin_loop();
                continue;
            }
            let longest = if port.returning.is_empty() { SLEEP_MAX } else { RETURN_AGAIN };
            let timeout = deadline.since(now).min(longest);
            let (inboxes, control, link) = (&self.inboxes, &self.control, &self.link);
            let mut idle = || {
                let told = link.as_ref().is_none_or(|link| link.from.is_empty());
                told && control.is_empty() && inboxes.iter().all(|(_, inbox)| inbox.is_empty())
            };
            port.transport.sleep(Some(timeout), &mut idle);
        }
    }
}

/// Hands what the core has for the node of the cluster to its link; whether there was something.
fn send_to_node(core: &mut Core, link: &mut CoreLink) -> bool {
    let mut sent = false;
    while let Some(message) = core.for_node() {
        // A full ring: the link is behind, and gets the rest in a later turn.
        if link.to.send(message).is_err() {
            break;
        }
        core.sent_to_node();
        sent = true;
    }
    if sent {
        link.waker.wake();
    }
    sent
}

/// Notes the message that was handled since `start`, if it was one; the time now.
#[inline]
fn measure(core: &mut Core, inside: &Inside, clock: &Clock, start: Time) -> Time {
    let end = clock.now();
    if let Some(handled) = core.take_handled() {
        inside.record(handled, start, end);
    }
    end
}

/// A test's order to stand still, as a stuck core would.
#[allow(clippy::disallowed_methods)]
fn hold(time: Duration) {
    std::thread::sleep(time);
}

/// Frames as the machine reads them.
struct TableFrames(Arc<FrameTable>);

impl Frames for TableFrames {
    type Datagram<'a> = Datagram<'a>;

    #[inline]
    fn read(&self, frame: FrameRef) -> Option<(Datagram<'_>, Origin)> {
        let datagram = self.0.read(frame)?;
        let Meta { from, arrival, local, .. } = *datagram.meta();
        Some((datagram, Origin { from, local, arrival }))
    }
}

/// The way out of a core.
struct Port {
    transport: Box<dyn Transport>,
    exit: Exit,
    kept: Option<FramePool>,
    outboxes: Vec<Option<Outbox>>,
    /// Cores that got something this turn and are woken when it ends.
    woken: Vec<CoreId>,
    /// Frames of other cores that wait for a send slot.
    carried: VecDeque<FrameRef>,
    /// Frames of other cores that are sent and found the ring to their core full.
    returning: VecDeque<FrameRef>,
    table: Arc<FrameTable>,
    counters: Arc<Counters>,
    tap: Arc<Tap>,
    core: CoreId,
    /// The books of all cores about commands over many endpoints.
    books: Books,
    /// When this turn began.
    now: Time,
}

impl Port {
    #[cold]
    fn tap_received(&self, frame: FrameRef) {
        if let Some(datagram) = self.table.read(frame) {
            let Meta { from: remote, arrival: at, local, .. } = *datagram.meta();
            self.tap.take(Captured { core: self.core, at, sent: false, remote, local, bytes: datagram[..].into() });
        }
    }

    /// The next strays go behind a batch, when there are send slots for their answers.
    #[cold]
    fn adopt(&mut self, strays: &mut VecDeque<Vec<Stray>>, batch: &mut Vec<FrameRef>) {
        let room = self.transport.free_slots().saturating_sub(batch.len());
        for stray in strays.pop_front_if(|strays| strays.len() <= room).unwrap_or_default() {
            let adopted = self.transport.adopt(&stray.lent());
            self.counters.add(if adopted.is_some() { Counter::DatagramsTakenOver } else { Counter::DroppedTakenOver });
            batch.extend(adopted);
        }
    }

    /// A datagram is about to be sent.
    #[inline]
    fn tap_sent(tap: &Tap, core: CoreId, at: Time, remote: SocketAddr, local: u8, bytes: &[u8]) {
        if tap.is_open() {
            tap.take(Captured { core, at, sent: true, remote, local, bytes: bytes.into() });
        }
    }

    fn push(&mut self, to: CoreId, entry: Entry) -> bool {
        let Some(Some(outbox)) = self.outboxes.get_mut(usize::from(to.0)) else { return false };
        let sent = outbox.ring.send(entry).is_ok();
        if sent && !self.woken.contains(&to) {
            self.woken.push(to);
        }
        sent
    }

    /// A shard's datagram.
    fn carry(&mut self, frame: FrameRef) {
        self.carried.push_back(frame);
    }

    /// The transport core has sent a datagram of this core.
    fn sent(&mut self, frame: FrameRef) {
        if let Exit::Carrier(_, pool) = &mut self.exit {
            let released = pool.release(frame);
            debug_assert!(released, "a frame comes back once");
        }
    }

    /// Gives back what found the ring of its core full.
    fn give_back(&mut self) {
        for _ in 0..self.returning.len() {
            if let Some(frame) = self.returning.pop_front()
                && !self.push(frame.core, Entry::Sent(frame))
            {
                self.returning.push_back(frame);
            }
        }
    }

    fn flush(&mut self) {
        self.give_back();
        while let Some(&frame) = self.carried.front() {
            let Some(slot) = self.transport.reserve() else { break };
            let table = Arc::clone(&self.table);
            match table.read(frame) {
                Some(datagram) => {
                    let buffer = self.transport.buffer(&slot);
                    let length = datagram.len().min(buffer.len());
                    buffer[..length].copy_from_slice(&datagram[..length]);
                    let Meta { from: to, local, .. } = *datagram.meta();
                    Port::tap_sent(&self.tap, self.core, self.now, to, local, &buffer[..length]);
                    self.transport.send(slot, length, to, local);
                }
                None => self.transport.abandon(slot),
            }
            self.carried.pop_front();
            // A core that stands still must not hold up what others have to send.
            if !self.push(frame.core, Entry::Sent(frame)) {
                self.returning.push_back(frame);
            }
        }
        self.transport.flush();
        while let Some(core) = self.woken.pop() {
            if let Some(Some(outbox)) = self.outboxes.get(usize::from(core.0)) {
                let asleep = outbox.waker.wake();
                if asleep {
                    self.counters.add(Counter::WakesSent);
                }
            }
        }
    }
}

impl Outside for Port {
    fn transmit(&mut self, to: SocketAddr, local: u8, write: impl FnOnce(&mut [u8]) -> usize) -> bool {
        match &mut self.exit {
            Exit::Sockets => {
                let Some(slot) = self.transport.reserve() else { return false };
                let length = write(self.transport.buffer(&slot));
                if length == 0 {
                    self.transport.abandon(slot);
                    return true;
                }
                if self.tap.is_open() {
                    let bytes = self.transport.buffer(&slot).get(..length).unwrap_or_default();
                    Port::tap_sent(&self.tap, self.core, self.now, to, local, bytes);
                }
                self.transport.send(slot, length, to, local);
                true
            }
            Exit::Carrier(carrier, pool) => {
                let carrier = *carrier;
                let fill = |buffer: &mut [u8]| Meta { from: to, local, arrival: Time::ZERO, start: 0, len: write(buffer) as u32 };
                let Some(frame) = pool.fill(fill) else { return false };
                if !self.push(carrier, Entry::Transmit(frame)) {
                    // As if it were lost on the way: the agent's repeat finds the response in the history.
                    self.counters.add(Counter::TransmitFull);
                    self.sent(frame);
                }
                true
            }
        }
    }

    fn forward(&mut self, to: CoreId, envelope: Envelope) -> bool {
        self.push(to, Entry::Envelope(envelope))
    }

    fn release(&mut self, frame: FrameRef) {
        let Some(kept) = self.kept.as_mut().filter(|kept| kept.owns(frame)) else { return self.transport.release(frame) };
        if !kept.release(frame) {
            self.counters.add(Counter::ReleaseRefused);
        }
    }

    fn keep(&mut self, message: &[u8], origin: Origin) -> Option<FrameRef> {
        let Origin { from, local, arrival } = origin;
        let kept = self.kept.as_mut().filter(|kept| message.len() <= kept.frame_size())?;
        kept.fill(|buffer| {
            buffer[..message.len()].copy_from_slice(message);
            Meta { from, local, arrival, start: 0, len: message.len() as u32 }
        })
    }

    fn silence(&self, core: CoreId, now: Time) -> Duration {
        let outbox = self.outboxes.get(usize::from(core.0)).and_then(Option::as_ref);
        outbox.map_or(Duration::ZERO, |outbox| now.since(Time(outbox.pulse.beat.load(Ordering::Relaxed))))
    }

    fn begin(&mut self, case: &Case<'_>) -> bool {
        self.books.begin(self.core, case)
    }

    fn refuse_for(&mut self, home: CoreId, case: &Case<'_>) -> bool {
        self.books.refuse_for(home, case)
    }
}

/// Counts a core's end by panic, which the control loop sees.
pub fn guard(pulse: &Pulse, counters: &Counters, run: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
        counters.add(Counter::CorePanics);
    }
    pulse.ended.store(true, Ordering::Release);
}
