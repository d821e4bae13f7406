//! Everything around the cores that they reach: the heap of events, rings, links and transmit frames, and what goes wrong there.

use super::actor::Mail;
use super::frames::FrameTable;
use super::journal::Journal;
use super::setup::Faults;
use crate::proto::base::{CoreId, FrameRef, Rng, Time};
use crate::proto::core::{Case, Envelope, Origin, Outside, Verdicts};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

const US: Duration = Duration::from_micros(1);

pub(super) enum Event {
    /// A datagram reaches a core's socket.
    ToCore(CoreId, SocketAddr, u8, Vec<u8>),
    /// A datagram reaches an agent.
    ToAgent(Mail),
    /// A core's turn.
    Turn(CoreId),
    /// The stall watch looks at a core.
    Watch(CoreId),
    /// An agent's timer.
    Poll(usize),
}

pub(super) struct Entry {
    pub at: Time,
    pub sequence: u64,
    pub event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

#[derive(Default)]
pub(super) struct Ring {
    pub queue: VecDeque<(Time, Envelope)>,
    pub last: Time,
}

/// Everything around the cores that a core can reach.
pub(super) struct Wires {
    pub heap: BinaryHeap<Reverse<Entry>>,
    pub sequence: u64,
    pub rng: Rng,
    pub faults: Faults,
    pub cores: usize,
    /// `from * cores + to`.
    pub rings: Vec<Ring>,
    /// When each core has its next turn.
    pub turns: Vec<Time>,
    pub stalled_until: Vec<Time>,
    pub stalled_since: Vec<Time>,
    /// The book of each core.
    pub verdicts: Vec<Verdicts>,
    /// When each core's transmit frames are free again.
    pub transmitting: Vec<Vec<Time>>,
    /// Datagrams still to be lost in the present burst.
    pub burst: u32,
    /// Links that pass nothing: agents' addresses.
    pub partitioned: Vec<IpAddr>,
    pub journal: Option<Journal>,
    pub digest: u64,
    /// What the present turn of a core did.
    pub active: bool,
}

impl Wires {
    pub fn push(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        self.heap.push(Reverse(Entry { at, sequence: self.sequence, event }));
    }

    pub fn fold(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Lets `core` have a turn not later than `at`, or when it is not stalled any more.
    pub fn turn_at(&mut self, core: CoreId, at: Time) {
        let place = usize::from(core.0);
        let at = at.max(self.stalled_until[place]);
        if at < self.turns[place] {
            self.turns[place] = at;
            self.push(at, Event::Turn(core));
        }
    }

    /// For how long a core stands still.
    pub fn silence(&self, core: CoreId, now: Time) -> Duration {
        let place = usize::from(core.0);
        if now < self.stalled_until[place] { now.since(self.stalled_since[place]) } else { Duration::ZERO }
    }

    /// When a datagram sent now arrives: nothing when it is lost, twice when duplicated.
    pub fn cross_link(&mut self, now: Time, agent: IpAddr) -> Vec<Time> {
        let Faults { link_min, link_max, loss, burst, duplicate, .. } = self.faults;
        if self.partitioned.contains(&agent) {
            return Vec::new();
        }
        if self.burst > 0 {
            self.burst -= 1;
            return Vec::new();
        }
        if self.rng.chance(loss) {
            self.burst = self.rng.below(u64::from(burst) + 1) as u32;
            return Vec::new();
        }
        let copies = 1 + usize::from(self.rng.chance(duplicate));
        (0..copies).map(|_| now + self.rng.duration(link_min, link_max)).collect()
    }
}

/// A core's way out, for one turn.
pub(super) struct Out<'a> {
    pub core: CoreId,
    pub now: Time,
    pub wires: &'a mut Wires,
    pub frames: &'a FrameTable,
    /// The largest datagram it can send.
    pub size: usize,
}

impl Outside for Out<'_> {
    fn transmit(&mut self, to: SocketAddr, local: u8, write: impl FnOnce(&mut [u8]) -> usize) -> bool {
        let now = self.now;
        let wires = &mut *self.wires;
        wires.active = true;
        let in_use = &mut wires.transmitting[usize::from(self.core.0)];
        in_use.retain(|&until| until > now);
        if in_use.len() >= wires.faults.transmit_slots {
            if let Some(journal) = &mut wires.journal {
                journal.in_order = false;
            }
            return false;
        }
        in_use.push(now + wires.rng.duration(US, wires.faults.transmit_max));
        let mut buffer = vec![0xaa; self.size];
        let length = write(&mut buffer);
        assert!(length > 0, "an empty datagram");
        buffer.truncate(length);
        wires.fold(&buffer);
        if let Some(journal) = &mut wires.journal {
            journal.sent(self.core, self.now, (to, local), &buffer);
        }
        for at in wires.cross_link(now, to.ip()) {
            wires.push(at, Event::ToAgent(Mail { at, to, local, bytes: buffer.clone() }));
        }
        true
    }

    fn forward(&mut self, to: CoreId, envelope: Envelope) -> bool {
        assert_ne!(to, self.core, "a core has no ring to itself");
        let wires = &mut *self.wires;
        wires.active = true;
        let injected = wires.rng.chance(wires.faults.ring_full);
        let delay = wires.rng.duration(Duration::ZERO, wires.faults.ring_max);
        let ring = &mut wires.rings[usize::from(self.core.0) * wires.cores + usize::from(to.0)];
        if injected || ring.queue.len() >= wires.faults.ring_capacity {
            return false;
        }
        ring.last = ring.last.max(self.now + delay);
        ring.queue.push_back((ring.last, envelope));
        let at = ring.last;
        wires.turn_at(to, at);
        true
    }

    fn release(&mut self, frame: FrameRef) {
        self.wires.active = true;
        self.frames.release(self.core, frame);
    }

    fn keep(&mut self, message: &[u8], origin: Origin) -> Option<FrameRef> {
        self.frames.keep(self.core, message, origin)
    }

    fn silence(&self, core: CoreId, now: Time) -> Duration {
        self.wires.silence(core, now)
    }

    fn begin(&mut self, case: &Case<'_>) -> bool {
        self.wires.verdicts[usize::from(self.core.0)].begin(case)
    }

    fn refuse_for(&mut self, home: CoreId, case: &Case<'_>) -> bool {
        self.wires.verdicts[usize::from(home.0)].refuse(case)
    }
}
