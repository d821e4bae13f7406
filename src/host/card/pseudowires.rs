//! The card that carries spans in pseudowires: their sockets, and when they are played.
//!
//! It works when it is polled, once a turn of its core: every span whose period is over takes what has arrived at its socket, in the
//! order and at the time it arrived, plays, and sends. Nothing wakes the core for a packet: it is due anyway when one is played.
//!
//! Invariants: nothing blocks; one turn plays [`SLICE`] periods at the most, so signalling never waits longer than that takes.

use crate::config::Wire;
use crate::host::clock::{Clock, WallClock};
use crate::host::transport::burst::{BURST, Burst};
use crate::host::transport::{SocketSettings, bind};
use crate::proto::base::{EndpointIndex, EndpointRange, Time};
use crate::proto::package::EventId;
use crate::proto::trunk::circuit::{CircuitView, Digroup, DigroupSettings};
use crate::proto::trunk::{Answer, Card, CardFault, CardOrder, Facility, Hook, Indication, LineOrder, Media, MediaAddress, MediaReport};
use anyhow::{Context, Result, anyhow};
use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

/// Periods of spans played in one turn of the core at the most.
pub const SLICE: usize = 32;
/// The receive buffer of a pseudowire: some tenths of a second, for a core that stands still.
const RECEIVE_BUFFER: usize = 512 << 10;

/// A span to carry.
pub(super) struct Carried {
    /// What it is.
    pub settings: DigroupSettings,
    /// Its endpoints.
    pub range: EndpointRange,
    /// Its pseudowire.
    pub wire: Wire,
}

/// The card.
pub(super) struct Pseudowires {
    /// In the order of their endpoints.
    groups: Box<[Group]>,
    burst: Burst,
    wall: WallClock,
    /// The turn it worked in last.
    worked: Time,
    /// The span a turn begins with.
    first: usize,
    queue: VecDeque<Indication>,
}

/// A span.
struct Group {
    digroup: Digroup,
    range: EndpointRange,
    socket: UdpSocket,
    peer: SocketAddr,
}

impl Pseudowires {
    /// Binds a socket for each span.
    ///
    /// # Errors
    /// What the machine refused.
    pub fn new(carried: Vec<Carried>, dscp: u8, clock: &Clock) -> Result<Pseudowires> {
        let now = clock.now();
        let settings = SocketSettings { receive_buffer: RECEIVE_BUFFER, send_buffer: RECEIVE_BUFFER, dscp, ..SocketSettings::media() };
        let mut longest = 0;
        let mut groups = Vec::new();
        for Carried { settings: of_span, range, wire } in carried {
            longest = longest.max(of_span.circuit.layout.packet_octets());
            let digroup = Digroup::new(now, &of_span).map_err(|problem| anyhow!("the pseudowire at {}: {problem}", wire.local))?;
            let socket = bind(&[wire.local], &settings).context("span.local")?.remove(0);
            groups.push(Group { digroup, range, socket, peer: wire.peer });
        }
        groups.sort_by_key(|group| group.range.first);
        Ok(Pseudowires {
            groups: groups.into(),
            // One octet more, so that what is too long is seen to be.
            burst: Burst::new(longest + 1),
            wall: WallClock::new(clock),
            worked: Time::ZERO,
            first: 0,
            queue: VecDeque::new(),
        })
    }

    /// Whether it has the span of `endpoint`.
    pub fn carries(&self, endpoint: EndpointIndex) -> bool {
        self.place(endpoint).is_some()
    }

    fn place(&self, endpoint: EndpointIndex) -> Option<usize> {
        let after = self.groups.partition_point(|group| group.range.first <= endpoint.0);
        let place = after.checked_sub(1)?;
        self.groups.get(place).filter(|group| group.range.contains(endpoint)).map(|_| place)
    }

    /// Plays what is due, from the span on that had to wait in the last turn.
    fn work(&mut self, now: Time) {
        self.wall.refresh(now);
        let Pseudowires { groups, burst, wall, first, queue, .. } = self;
        let count = groups.len();
        let mut budget = SLICE;
        for step in 0..count {
            let place = (*first + step) % count;
            let Some(group) = groups.get_mut(place) else { continue };
            if group.digroup.due() > now {
                continue;
            }
            group.work(now, burst, wall, &mut budget, queue);
            if budget == 0 {
                *first = place;
                return;
            }
        }
    }
}

impl Group {
    fn work(&mut self, now: Time, burst: &mut Burst, wall: &WallClock, budget: &mut usize, queue: &mut VecDeque<Indication>) {
        self.digroup.catch_up(now);
        // A burst more than there is time for would be a flood: the rest waits for the next period.
        for _ in 0..2 {
            // An error is about an earlier packet (the far end is not there): what comes, or does not, says the same.
            let count = burst.receive(self.socket.as_fd()).unwrap_or(0);
            for received in (0..count).map(|place| burst.get(place)) {
                let Some(received) = received.filter(|received| received.from == self.peer) else {
                    self.digroup.note_stray();
                    continue;
                };
                let arrival = received.arrival.map_or(now, |at| wall.time(at, now));
                while self.digroup.due() <= arrival && *budget > 0 {
                    self.play(budget, queue);
                }
                self.digroup.receive(arrival, received.octets);
            }
            if count < BURST {
                break;
            }
        }
        while self.digroup.due() <= now && *budget > 0 {
            self.play(budget, queue);
        }
    }

    fn play(&mut self, budget: &mut usize, queue: &mut VecDeque<Indication>) {
        *budget -= 1;
        let packet = self.digroup.play(queue);
        // What the kernel refuses is lost on the way, as far as the far end can see.
        let _ = self.socket.send_to(packet, self.peer);
    }
}

impl Card for Pseudowires {
    fn open(&mut self, _: Time, _: EndpointIndex, _: u32, _: &Media) -> Answer<MediaAddress> {
        Answer::Refused(CardFault::Broken)
    }

    fn modify(&mut self, _: Time, _: EndpointIndex, _: u32, _: &Media) -> Answer<MediaAddress> {
        Answer::Refused(CardFault::Broken)
    }

    fn close(&mut self, _: Time, _: EndpointIndex, _: u32) -> MediaReport {
        MediaReport::default()
    }

    fn report(&self, _: Time, _: u32) -> MediaReport {
        MediaReport::default()
    }

    fn start_signal(&mut self, _: Time, _: EndpointIndex, _: Option<u32>, _: EventId, _: &[u8]) -> Result<(), CardFault> {
        Err(CardFault::Broken)
    }

    fn stop_signal(&mut self, _: Time, _: EndpointIndex, _: Option<u32>, _: EventId) {}

    fn order_line(&mut self, now: Time, endpoint: EndpointIndex, order: &LineOrder) {
        if let Some(group) = self.place(endpoint).and_then(|place| self.groups.get_mut(place)) {
            group.digroup.order_line(now, endpoint, order, &mut self.queue);
        }
    }

    fn hook(&self, _: EndpointIndex) -> Option<Hook> {
        None
    }

    fn holds(&self, _: EndpointIndex, _: EventId) -> bool {
        false
    }

    fn circuit(&self, facility: Facility) -> Option<CircuitView> {
        self.groups.iter().find(|group| group.digroup.facility() == facility).map(|group| group.digroup.view())
    }

    fn poll(&mut self, now: Time) -> Option<Indication> {
        if self.queue.is_empty() && self.worked != now {
            self.worked = now;
            self.work(now);
        }
        self.queue.pop_front()
    }

    fn deadline(&self) -> Time {
        if !self.queue.is_empty() {
            return Time::ZERO;
        }
        self.groups.iter().map(|group| group.digroup.due()).min().unwrap_or(Time::NEVER)
    }

    fn operate(&mut self, _: Time, order: &CardOrder) -> Result<(), &'static str> {
        match order {
            CardOrder::Delay(_) | CardOrder::Refuse(_) | CardOrder::Loss(_) | CardOrder::Behave(_) => Ok(()),
            _ => Err("it is on a real card, and only the line can do that"),
        }
    }
}
