//! The card that carries spans with a voice: in pseudowires, with their sockets, and of the kernel's driver, with its files; and when they are
//! played.
//!
//! It works when it is polled, once a turn of its core: every pseudowire whose period is over takes what has arrived at its socket, in the
//! order and at the time it arrived, plays, and sends. Nothing wakes the core for a packet: it is due anyway when one is played. Spans of the driver
//! are looked at every 3 ms; their clock is that of the driver's card, by what it gives.
//!
//! Invariants: nothing blocks; one turn plays [`SLICE`] periods at the most, so signalling never waits longer than that takes; of spans of the
//! driver what signals comes before all that is played.

use super::dahdi::{Carry, Channels, Device, Line, LineSettings, PLACES};
use super::halves::Halves;
use super::ports::Ports;
use super::wire::{Paced, WireSocket};
use crate::config::Wire;
use crate::host::clock::{Clock, WallClock};
use crate::host::entropy;
use crate::host::transport::burst::{Burst, Received};
use crate::proto::base::srtp::{MasterKey, MediaKeys};
use crate::proto::base::{EndpointIndex, EndpointRange, Rng, Time};
use crate::proto::circuit::{Digroup, DigroupSettings, Slots};
use crate::proto::package::{EventId, PackageId, find_item};
use crate::proto::trunk::{
    Answer, Card, CardFault, CardOrder, CarrierView, EventText, Facility, Hook, Indication, LineOrder, Measure, Media, MediaAddress,
    MediaReport, Sounds, Srtp,
};
use crate::proto::voice::Ds0;
use anyhow::{Context, Result, anyhow, bail};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Periods of spans played in one turn of the core at the most.
pub const SLICE: usize = 32;
/// The longest RTP or RTCP packet that is taken, in octets: 60 ms of G.711 and more.
const RTP_MAX: usize = 1500;

/// A span in a pseudowire.
pub(super) struct Carried {
    /// What it is.
    pub settings: DigroupSettings,
    /// Its endpoints.
    pub range: EndpointRange,
    /// Its pseudowire.
    pub wire: Wire,
}

/// A span of the kernel's driver.
pub(super) struct Driven {
    /// What it is.
    pub settings: LineSettings,
    /// Its endpoints.
    pub range: EndpointRange,
}

/// The card.
pub(super) struct Trunks {
    /// In the order of their endpoints.
    groups: Box<[Group]>,
    /// The kernel's driver, when it has any of them.
    device: Option<Box<dyn Device>>,
    /// By line of the driver: its group.
    lines: Box<[usize]>,
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
    range: EndpointRange,
    carrier: Carrier,
}

/// What carries it.
enum Carrier {
    Wire(Box<Digroup>, WireSocket),
    Driver(Box<Line>),
}

impl Group {
    fn facility(&self) -> Facility {
        match &self.carrier {
            Carrier::Wire(digroup, _) => digroup.facility(),
            Carrier::Driver(line) => line.facility(),
        }
    }

    fn slots(&self) -> &Slots {
        match &self.carrier {
            Carrier::Wire(digroup, _) => digroup.slots(),
            Carrier::Driver(line) => line.span().slots(),
        }
    }

    fn slots_mut(&mut self) -> &mut Slots {
        match &mut self.carrier {
            Carrier::Wire(digroup, _) => digroup.slots_mut(),
            Carrier::Driver(line) => line.span_mut().slots_mut(),
        }
    }

    fn due(&self) -> Time {
        match &self.carrier {
            Carrier::Wire(digroup, _) => digroup.due(),
            Carrier::Driver(line) => line.due(),
        }
    }

    fn line(&self) -> Option<&Line> {
        match &self.carrier {
            Carrier::Wire(..) => None,
            Carrier::Driver(line) => Some(line),
        }
    }

    /// Whether connections can be made.
    fn is_usable(&self) -> bool {
        match &self.carrier {
            Carrier::Wire(..) => true,
            Carrier::Driver(line) => line.is_held(),
        }
    }
}

impl Trunks {
    /// Binds a socket for each pseudowire, and takes the channels of each span of the driver.
    ///
    /// # Errors
    /// What the machine refused, of the driver everything.
    pub fn new(
        carried: Vec<Carried>,
        driven: Vec<Driven>,
        mut device: Option<Box<dyn Device>>,
        ports: Ports,
        connections: u32,
        dscp: u8,
        clock: &Clock,
    ) -> Result<Trunks> {
        let seed = entropy::seed().context("no randomness from the kernel")?[0];
        let now = clock.now();
        let mut longest = RTP_MAX;
        let mut groups = Vec::new();
        for Carried { settings: of_span, range, wire } in carried {
            longest = longest.max(of_span.circuit.layout.packet_octets());
            let digroup = Digroup::new(now, &of_span).map_err(|problem| anyhow!("the pseudowire at {}: {problem}", wire.local))?;
            let wire = WireSocket::bind(wire.local, wire.peer, dscp).context("span.local")?;
            groups.push(Group { range, carrier: Carrier::Wire(Box::new(digroup), wire) });
        }
        if let Some(device) = &mut device {
            let all = Channels::of(device.as_mut());
            let mut problems = Vec::new();
            for (place, Driven { settings, range }) in driven.into_iter().enumerate() {
                match Line::new(now, settings, place, device.as_mut(), &all) {
                    Ok(line) => groups.push(Group { range, carrier: Carrier::Driver(Box::new(line)) }),
                    Err(more) => problems.extend(more),
                }
            }
            if !problems.is_empty() {
                bail!("the dahdi driver: {}", problems.join("; "));
            }
        }
        groups.sort_by_key(|group| group.range.first);
        let mut lines: Vec<(usize, usize)> =
            groups.iter().enumerate().filter_map(|(at, group)| Some((group.line()?.number(), at))).collect();
        lines.sort_unstable();
        Ok(Trunks {
            groups: groups.into(),
            device,
            lines: lines.into_iter().map(|(_, at)| at).collect(),
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
    pub fn with_srtp(mut self, srtp: Srtp) -> Trunks {
        self.srtp = srtp;
        self
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
        self.groups.get_mut(place)?.slots_mut().media(endpoint)
    }

    fn address(&self, connection: u32) -> MediaAddress {
        MediaAddress { address: self.ports.address(), port: self.ports.port(connection).unwrap_or(0) }
    }

    /// Takes what came for connections, and plays what is due, from the span on that had to wait in the last turn.
    fn work(&mut self, now: Time) {
        if self.groups.iter().all(|group| group.due() > now) {
            return;
        }
        self.wall.refresh(now);
        let Trunks { groups, device, lines, burst, wall, first, queue, ports, endpoints, .. } = self;
        let take = |connection: u32, kind, received: &Received<'_>| {
            let endpoint = endpoints.get(connection as usize).copied().flatten();
            let Some((endpoint, place)) = endpoint.and_then(|endpoint| Some((endpoint, place(groups, endpoint)?))) else { return };
            if let Some(media) = groups.get_mut(place).and_then(|group| group.slots_mut().media(endpoint)) {
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
        let ports = &*ports;
        let mut packets = |connection, to, kind, octets: &[u8]| ports.send(connection, to, kind, octets);
        if let Some(device) = device {
            device.look(&mut |at, urgent, readable| {
                let group = lines.get(at / PLACES).and_then(|group| groups.get_mut(*group));
                if let Some(Carrier::Driver(line)) = group.map(|group| &mut group.carrier) {
                    line.note(at % PLACES, urgent, readable);
                }
            });
            for group in groups.iter_mut() {
                if let Carrier::Driver(line) = &mut group.carrier {
                    line.attend(now, &mut Carry { device: device.as_mut(), queue, packets: &mut packets });
                }
            }
        }
        let count = groups.len();
        let mut budget = SLICE;
        for step in 0..count {
            let place = (*first + step) % count;
            let Some(group) = groups.get_mut(place) else { continue };
            match (&mut group.carrier, &mut *device) {
                (Carrier::Wire(digroup, wire), _) if digroup.due() <= now => {
                    wire.work(now, &mut Working { digroup, ports, queue }, burst, wall, &mut budget);
                }
                (Carrier::Driver(line), Some(device)) => {
                    line.carry(now, &mut Carry { device: device.as_mut(), queue, packets: &mut packets }, &mut budget);
                }
                _ => {}
            }
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

impl Drop for Trunks {
    /// A loop would outlive the gateway in the driver.
    fn drop(&mut self) {
        let Some(device) = &mut self.device else { return };
        for group in &mut self.groups {
            if let Carrier::Driver(line) = &mut group.carrier {
                line.end_loop(device.as_mut());
            }
        }
    }
}

impl Card for Trunks {
    fn open(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        let usable = |place: &usize| self.groups.get(*place).is_some_and(Group::is_usable);
        let Some(place) = self.place(endpoint).filter(usable) else { return Answer::Refused(CardFault::Broken) };
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
        if !self.groups.get_mut(place).is_some_and(|group| group.slots_mut().open(now, endpoint, connection, media, seed)) {
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

    fn transfer(&mut self, _: Time, from: EndpointIndex, to: EndpointIndex, connection: u32) -> bool {
        let (Some(before), Some(after)) = (self.place(from), self.place(to)) else { return false };
        let Some(endpoint) = self.endpoints.get_mut(connection as usize).filter(|endpoint| **endpoint == Some(from)) else { return false };
        let done = match self.groups.get_disjoint_mut([before, after]) {
            Ok([group, other]) if other.is_usable() => match (group.slots_mut().media(from), other.slots_mut().media(to)) {
                (Some(media), Some(other)) => media.hand_over(connection, other),
                _ => false,
            },
            Ok(_) => false,
            // Both are on one span.
            Err(_) => self.groups.get_mut(before).is_some_and(|group| group.slots_mut().hand_over(connection, from, to)),
        };
        if done {
            *endpoint = Some(to);
        }
        done
    }

    fn half_gone(&mut self, _: Time, endpoint: EndpointIndex, connection: u32, at: SocketAddr) {
        if self.halves.gone(connection, at)
            && let Some(media) = self.media(endpoint, connection)
        {
            media.leave(connection);
        }
    }

    fn close(&mut self, now: Time, endpoint: EndpointIndex, connection: u32) -> MediaReport {
        let is_its = self.endpoints.get(connection as usize).copied().flatten() == Some(endpoint);
        let Trunks { groups, ports, .. } = self;
        let group = place(groups, endpoint).filter(|_| is_its).and_then(|place| groups.get_mut(place));
        let Some(ds0) = group.and_then(|group| group.slots_mut().media(endpoint)) else { return MediaReport::default() };
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
            (Some(endpoint), Some(group)) => group.slots().report(endpoint, connection),
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
        let media = group.and_then(|group| group.slots_mut().media(endpoint)).ok_or(CardFault::Broken)?;
        media.start_signal(connection, signal, parameters)
    }

    fn stop_signal(&mut self, _: Time, endpoint: EndpointIndex, connection: Option<u32>, signal: EventId) {
        let group = self.place(endpoint).and_then(|place| self.groups.get_mut(place));
        if let Some(media) = group.and_then(|group| group.slots_mut().media(endpoint)) {
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
            group.slots_mut().listen_for(endpoint, sounds);
        }
    }

    fn order_line(&mut self, now: Time, endpoint: EndpointIndex, order: &LineOrder) {
        if let Some(group) = self.place(endpoint).and_then(|place| self.groups.get_mut(place)) {
            group.slots_mut().order_line(now, endpoint, order, &mut self.queue);
        }
    }

    fn hook(&self, _: EndpointIndex) -> Option<Hook> {
        None
    }

    fn holds(&self, _: EndpointIndex, _: EventId) -> bool {
        false
    }

    fn carrier(&self, facility: Facility) -> Option<CarrierView> {
        let group = self.groups.iter().find(|group| group.facility() == facility)?;
        Some(match &group.carrier {
            Carrier::Wire(digroup, _) => CarrierView::Wire(digroup.view()),
            Carrier::Driver(line) => CarrierView::Driver(line.span().view()),
        })
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
        self.groups.iter().map(Group::due).min().unwrap_or(Time::NEVER)
    }

    fn operate(&mut self, _: Time, order: &CardOrder) -> Result<(), &'static str> {
        match order {
            CardOrder::Loop { facility, on } => {
                let Trunks { groups, device, .. } = self;
                let group = groups.iter_mut().find(|group| group.facility() == *facility);
                match (&mut group.ok_or("it has no signal of its own: loop one of its spans")?.carrier, device) {
                    (Carrier::Wire(digroup, _), _) => digroup.set_loop(*on),
                    (Carrier::Driver(line), Some(device)) => line.set_loop(device.as_mut(), *on)?,
                    (Carrier::Driver(_), None) => {}
                }
                Ok(())
            }
            CardOrder::Ais { facility, on } => {
                let group = self.groups.iter_mut().find(|group| group.facility() == *facility);
                match &mut group.ok_or("it has no signal of its own: give the name of one of its spans")?.carrier {
                    Carrier::Wire(digroup, _) => digroup.send_ais(*on),
                    Carrier::Driver(_) => return Err("the driver has no order to send AIS"),
                }
                Ok(())
            }
            CardOrder::Delay(_) | CardOrder::Refuse(_) | CardOrder::Loss(_) | CardOrder::Behave(_) => Ok(()),
            _ => Err("it is on a real card, and only the line can do that"),
        }
    }
}
