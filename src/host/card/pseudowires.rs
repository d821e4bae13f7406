//! The card that carries spans in pseudowires: their sockets, and when they are played.
//!
//! It works when it is polled, once a turn of its core: every span whose period is over takes what has arrived at its socket, in the
//! order and at the time it arrived, plays, and sends. Nothing wakes the core for a packet: it is due anyway when one is played.
//!
//! Invariants: nothing blocks; one turn plays [`SLICE`] periods at the most, so signalling never waits longer than that takes.

use super::halves::Halves;
use super::ports::Ports;
use super::wire::{Paced, WireSocket};
use crate::config::Wire;
use crate::host::clock::{Clock, WallClock};
use crate::host::entropy;
use crate::host::transport::burst::{Burst, Received};
use crate::proto::base::srtp::{MasterKey, MediaKeys};
use crate::proto::base::{EndpointIndex, EndpointRange, Rng, Time};
use crate::proto::circuit::{Digroup, DigroupSettings};
use crate::proto::package::{EventId, PackageId, find_item};
use crate::proto::trunk::{
    Answer, Card, CardFault, CardOrder, CircuitView, EventText, Facility, Hook, Indication, LineOrder, Measure, Media, MediaAddress,
    MediaReport, Sounds, Srtp,
};
use crate::proto::voice::Ds0;
use anyhow::{Context, Result, anyhow};
use std::collections::VecDeque;

/// Periods of spans played in one turn of the core at the most.
pub const SLICE: usize = 32;
/// The longest RTP or RTCP packet that is taken, in octets: 60 ms of G.711 and more.
const RTP_MAX: usize = 1500;
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
    ports: Ports,
    /// By connection: its endpoint.
    endpoints: Box<[Option<EndpointIndex>]>,
    halves: Halves,
    burst: Burst,
    srtp: Srtp,
    rng: Rng,
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
    wire: WireSocket,
}

impl Pseudowires {
    /// Binds a socket for each span.
    ///
    /// # Errors
    /// What the machine refused.
    pub fn new(carried: Vec<Carried>, ports: Ports, connections: u32, dscp: u8, clock: &Clock) -> Result<Pseudowires> {
        let seed = entropy::seed().context("no randomness from the kernel")?[0];
        let now = clock.now();
        let mut longest = RTP_MAX;
        let mut groups = Vec::new();
        for Carried { settings: of_span, range, wire } in carried {
            longest = longest.max(of_span.circuit.layout.packet_octets());
            let digroup = Digroup::new(now, &of_span).map_err(|problem| anyhow!("the pseudowire at {}: {problem}", wire.local))?;
            let wire = WireSocket::bind(wire.local, wire.peer, dscp).context("span.local")?;
            groups.push(Group { digroup, range, wire });
        }
        groups.sort_by_key(|group| group.range.first);
        Ok(Pseudowires {
            groups: groups.into(),
            ports,
            endpoints: (0..connections).map(|_| None).collect(),
            halves: Halves::new(connections),
            srtp: Srtp::Off,
            rng: Rng::new(seed),
            // One octet more, so that what is too long is seen to be.
            burst: Burst::new(longest + 1),
            wall: WallClock::new(clock),
            worked: Time::ZERO,
            first: 0,
            queue: VecDeque::new(),
        })
    }

    /// The same card, which protects media.
    #[must_use]
    pub fn with_srtp(self, srtp: Srtp) -> Pseudowires {
        Pseudowires { srtp, ..self }
    }

    /// Whether it has the span of `endpoint`.
    pub fn carries(&self, endpoint: EndpointIndex) -> bool {
        self.place(endpoint).is_some()
    }

    fn place(&self, endpoint: EndpointIndex) -> Option<usize> {
        place(&self.groups, endpoint)
    }

    /// The media of `endpoint`, when `connection` is its.
    fn media(&mut self, endpoint: EndpointIndex, connection: u32) -> Option<&mut Ds0> {
        let is_its = self.endpoints.get(connection as usize).copied().flatten() == Some(endpoint);
        let place = self.place(endpoint).filter(|_| is_its)?;
        self.groups.get_mut(place)?.digroup.media(endpoint)
    }

    fn address(&self, connection: u32) -> MediaAddress {
        MediaAddress { address: self.ports.address(), port: self.ports.port(connection).unwrap_or(0) }
    }

    /// Takes what came for connections, and plays what is due, from the span on that had to wait in the last turn.
    fn work(&mut self, now: Time) {
        if self.groups.iter().all(|group| group.digroup.due() > now) {
            return;
        }
        self.wall.refresh(now);
        let Pseudowires { groups, burst, wall, first, queue, ports, endpoints, .. } = self;
        let take = |connection: u32, kind, received: &Received<'_>| {
            let endpoint = endpoints.get(connection as usize).copied().flatten();
            let Some((endpoint, place)) = endpoint.and_then(|endpoint| Some((endpoint, place(groups, endpoint)?))) else { return };
            if let Some(media) = groups.get_mut(place).and_then(|group| group.digroup.media(endpoint)) {
                media.packet(now, connection, received.from, kind, received.octets);
            }
        };
        ports.receive(burst, take, |connection, count, code| {
            let endpoint = endpoints.get(connection as usize).copied().flatten();
            if let (Some(endpoint), Some(event)) = (endpoint, find_item(PackageId::R, b"iu")) {
                let parameters = EventText::new(format!("{count},{code}").as_bytes());
                queue.push_back(Indication::Event { endpoint, connection: Some(connection), event, parameters });
            }
        });
        let count = groups.len();
        let mut budget = SLICE;
        for step in 0..count {
            let place = (*first + step) % count;
            let Some(group) = groups.get_mut(place) else { continue };
            if group.digroup.due() > now {
                continue;
            }
            let Group { digroup, wire, .. } = group;
            wire.work(now, &mut Working { digroup, ports, queue }, burst, wall, &mut budget);
            if budget == 0 {
                *first = place;
                return;
            }
        }
    }
}

/// The span of `endpoint`.
fn place(groups: &[Group], endpoint: EndpointIndex) -> Option<usize> {
    let after = groups.partition_point(|group| group.range.first <= endpoint.0);
    let place = after.checked_sub(1)?;
    groups.get(place).filter(|group| group.range.contains(endpoint)).map(|_| place)
}

/// A span, with what it works with.
struct Working<'a> {
    digroup: &'a mut Digroup,
    ports: &'a Ports,
    queue: &'a mut VecDeque<Indication>,
}

impl Paced for Working<'_> {
    fn due(&self) -> Time {
        self.digroup.due()
    }

    fn catch_up(&mut self, now: Time) {
        self.digroup.catch_up(now);
    }

    fn receive(&mut self, arrival: Time, octets: &[u8]) {
        self.digroup.receive(arrival, octets);
    }

    fn note_stray(&mut self) {
        self.digroup.note_stray();
    }

    fn play(&mut self) -> Option<&[u8]> {
        let Working { digroup, ports, queue } = self;
        Some(digroup.play(queue, &mut |connection, to, kind, octets| ports.send(connection, to, kind, octets)))
    }
}

impl Card for Pseudowires {
    fn open(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        let Some(place) = self.place(endpoint) else { return Answer::Refused(CardFault::Broken) };
        match self.endpoints.get(connection as usize) {
            Some(None) => {}
            Some(Some(_)) => return Answer::Refused(CardFault::Broken),
            None => return Answer::Refused(CardFault::Exhausted),
        }
        if self.ports.open(connection, media.type_of_service).is_none() {
            return Answer::Refused(CardFault::Exhausted);
        }
        let seed = self.rng.next();
        let media = &self.halves.outward(connection, media);
        if !self.groups.get_mut(place).is_some_and(|group| group.digroup.open(now, endpoint, connection, media, seed)) {
            self.ports.close(connection);
            return Answer::Refused(CardFault::Exhausted);
        }
        if let Some(slot) = self.endpoints.get_mut(connection as usize) {
            *slot = Some(endpoint);
        }
        Answer::Now(self.address(connection))
    }

    fn modify(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        let media = &self.halves.outward(connection, media);
        let Some(ds0) = self.media(endpoint, connection) else { return Answer::Refused(CardFault::Broken) };
        ds0.modify(now, connection, media);
        self.ports.mark(connection, media.type_of_service);
        Answer::Now(self.address(connection))
    }

    fn close(&mut self, now: Time, endpoint: EndpointIndex, connection: u32) -> MediaReport {
        let is_its = self.endpoints.get(connection as usize).copied().flatten() == Some(endpoint);
        let Pseudowires { groups, ports, .. } = self;
        let group = place(groups, endpoint).filter(|_| is_its).and_then(|place| groups.get_mut(place));
        let Some(ds0) = group.and_then(|group| group.digroup.media(endpoint)) else { return MediaReport::default() };
        let report = ds0.close(now, connection, &mut |connection, to, kind, octets| ports.send(connection, to, kind, octets));
        self.ports.close(connection);
        self.halves.forget(connection);
        if let Some(slot) = self.endpoints.get_mut(connection as usize) {
            *slot = None;
        }
        report
    }

    fn report(&self, _: Time, connection: u32) -> MediaReport {
        let endpoint = self.endpoints.get(connection as usize).copied().flatten();
        let group = endpoint.and_then(|endpoint| self.groups.get(self.place(endpoint)?));
        match (endpoint, group) {
            (Some(endpoint), Some(group)) => group.digroup.report(endpoint, connection),
            _ => MediaReport::default(),
        }
    }

    fn srtp(&self, _: EndpointIndex) -> Srtp {
        self.srtp
    }

    fn draw_key(&mut self) -> Option<MasterKey> {
        entropy::key().ok()
    }

    fn protect(&mut self, endpoint: EndpointIndex, connection: u32, keys: &MediaKeys) {
        if let Some(media) = self.media(endpoint, connection) {
            media.protect(connection, keys);
        }
    }

    fn start_signal(
        &mut self,
        _: Time,
        endpoint: EndpointIndex,
        connection: Option<u32>,
        signal: EventId,
        parameters: &[u8],
    ) -> Result<(), CardFault> {
        let group = self.place(endpoint).and_then(|place| self.groups.get_mut(place));
        let media = group.and_then(|group| group.digroup.media(endpoint)).ok_or(CardFault::Broken)?;
        media.start_signal(connection, signal, parameters)
    }

    fn stop_signal(&mut self, _: Time, endpoint: EndpointIndex, connection: Option<u32>, signal: EventId) {
        let group = self.place(endpoint).and_then(|place| self.groups.get_mut(place));
        if let Some(media) = group.and_then(|group| group.digroup.media(endpoint)) {
            media.stop_signal(connection, signal);
        }
    }

    fn measure(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, what: Measure) {
        let Some(media) = self.media(endpoint, connection) else { return };
        match what {
            Measure::Unreachable(count) => self.ports.count_undelivered(connection, count),
            _ => media.measure(now, connection, what),
        }
    }

    fn listen_for(&mut self, _: Time, endpoint: EndpointIndex, sounds: Sounds) {
        if let Some(group) = self.place(endpoint).and_then(|place| self.groups.get_mut(place)) {
            group.digroup.listen_for(endpoint, sounds);
        }
    }

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
            CardOrder::Loop { facility, on } => {
                let group = self.groups.iter_mut().find(|group| group.digroup.facility() == *facility);
                group.ok_or("it has no signal of its own: loop one of its spans")?.digroup.set_loop(*on);
                Ok(())
            }
            CardOrder::Delay(_) | CardOrder::Refuse(_) | CardOrder::Loss(_) | CardOrder::Behave(_) => Ok(()),
            _ => Err("it is on a real card, and only the line can do that"),
        }
    }
}
