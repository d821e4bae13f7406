//! A simulated trunk card, one core's part of it: what the gateway has for a card where no hardware is, and what tests order about.
//!
//! It owns RTP port numbers, the state of media as ordered, and the defects an operator put on its lines. It moves no media: what it
//! reports (RFC 3435 2.3.7 and 3.2.2.7, G-STA-01..06) follows from time, mode, packetization period and packet size, computed
//! when asked. What integration times, alarms and commands make of its answers is decided elsewhere.
//!
//! Invariants:
//! - The same seed and the same orders at the same times give the same answers.
//! - Nothing is sent or received before the far end is known (RTP to nowhere does not count), nor while the card or its part with
//!   the endpoint has [`Defect::Equipment`].
//! - An order takes effect when it is answered. There is at most one answer to come per connection: a later order replaces it.
//! - Tables are sized at construction.
//!
//! [`CardOrder::Loss`] and the orders about defects look at each connection of the card once; everything else costs the same however
//! many there are (logarithmic for delayed answers).

pub mod far;
#[cfg(test)]
mod model;
mod ports;
mod stream;
#[cfg(test)]
mod tests;

use self::far::FarEnds;
pub use self::ports::PortPool;
use self::stream::{Pace, Stream};
use super::Defect;
use super::card::{Answer, Card, CardFault, CardOrder, CheckTone, Hook, Indication, LineOrder, Media, MediaAddress, MediaReport, Srtp};
use super::{Facility, SpanIndex, T3Index, Topology};
use crate::proto::base::srtp::MasterKey;
use crate::proto::base::{EndpointIndex, EndpointRange, Rng, Time};
use crate::proto::package::{ChannelKind, EventId, PackageId};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

/// What a simulated card is made of.
pub struct SimulatedPlan<'a> {
    /// What facilities are.
    pub topology: &'a Topology,
    /// What the channels of each span of the topology are.
    pub kinds: &'a [ChannelKind],
    /// The facilities this core's part of the card carries. Endpoints are those of the spans named here; a T3 named here takes
    /// orders about its own defects, and its spans are not implied.
    pub facilities: &'a [Facility],
    /// Where all connections receive.
    pub address: IpAddr,
    /// RTP and RTCP ports of all cores together.
    pub ports: RangeInclusive<u16>,
    /// Which part of the ports, 0-based, of how many equal ones is this core's.
    pub part: (u32, u32),
    /// The most connections; their slots are below it.
    pub connections: u32,
    /// Decides jitter, latency and which packets are lost.
    pub seed: u64,
}

/// The simulated card.
pub struct SimCard {
    address: IpAddr,
    ports: PortPool,
    channels: Box<[Option<Channel>]>,
    /// In the order of their endpoints.
    spans: Box<[CarriedSpan]>,
    /// One bit for each endpoint up to the last one carried: whether it is carried by a part that works.
    served: Box<[u64]>,
    /// In the order of facilities.
    lines: Box<[Line]>,
    rng: Rng,
    /// What [`CardOrder::Delay`] set last, in ms.
    delay: u32,
    /// How many orders are still to be refused.
    refuse: u32,
    /// Packets lost per million.
    loss: u32,
    /// Numbers delayed answers; the last one given.
    ordinal: u64,
    /// Answers to come, and some that nobody waits for any more: at most twice as many as connections.
    answers: BinaryHeap<Reverse<Delayed>>,
    /// Indications of defects and events, oldest first, at most [`indications_max`].
    indications: VecDeque<Indication>,
    far: FarEnds,
    /// What a connection costs.
    work: Option<Box<dyn FnMut() + Send>>,
    srtp: Srtp,
}

/// A span it carries.
#[derive(Clone, Copy)]
struct CarriedSpan {
    endpoints: EndpointRange,
    span: SpanIndex,
    t3: Option<T3Index>,
    /// What its channels are.
    kind: ChannelKind,
    /// Whether the part of the card that carries it has failed.
    broken: bool,
}

/// The defects of a facility.
#[derive(Clone, Copy)]
struct Line {
    facility: Facility,
    /// One [`bit`] for each defect.
    present: u8,
}

/// An open, or still opening, connection. Two cache lines at most.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Channel {
    endpoint: EndpointIndex,
    /// The ordinal of the answer that is to come; 0 when none is.
    awaits: u64,
    opened: bool,
    /// 0: none was needed.
    port: u16,
    task: Task,
    sent: Stream,
    received: Stream,
    jitter_ms: u8,
    latency_ms: u8,
}

/// What a connection does, as far as it matters for counting.
#[derive(Clone, Copy)]
struct Task {
    sends: bool,
    receives: bool,
    inside: bool,
    packet_bytes: u16,
    period_ms: u16,
}

/// An answer that comes later.
#[derive(Clone, Copy)]
struct Delayed {
    due: Time,
    ordinal: u64,
    connection: u32,
    order: Order,
}

#[derive(Clone, Copy)]
enum Order {
    Open(Result<(), CardFault>),
    Modify(Result<Task, CardFault>),
}

impl SimCard {
    /// A card without connections and defects, which answers at once.
    pub fn new(plan: &SimulatedPlan<'_>) -> SimCard {
        let SimulatedPlan { topology, kinds, facilities, address, part: (part, parts), connections, seed, .. } = *plan;
        let mut lines: Vec<Line> = facilities.iter().map(|&facility| Line { facility, present: 0 }).collect();
        lines.sort_by_key(|line| line.facility);
        lines.dedup_by_key(|line| line.facility);
        // In the order of facilities spans are in the order of their endpoints.
        let carried = |line: &Line| match line.facility {
            Facility::T3(_) => None,
            Facility::Span(span) => topology.span(span).map(|facts| CarriedSpan {
                endpoints: facts.endpoints,
                span,
                t3: facts.t3,
                kind: kinds.get(usize::from(span.0)).copied().unwrap_or_default(),
                broken: false,
            }),
        };
        let spans: Box<[CarriedSpan]> = lines.iter().filter_map(carried).collect();
        let end = spans.iter().map(|span| span.endpoints.first.saturating_add(span.endpoints.count)).max().unwrap_or(0);
        let mut served = vec![0; (end as usize).div_ceil(64)];
        spans.iter().for_each(|span| set_bits(&mut served, span.endpoints, true));
        SimCard {
            address,
            ports: PortPool::new(plan.ports.clone(), part, parts),
            channels: (0..connections).map(|_| None).collect(),
            spans,
            served: served.into(),
            indications: VecDeque::with_capacity(indications_max(lines.len())),
            far: FarEnds::default(),
            work: None,
            srtp: Srtp::Off,
            lines: lines.into(),
            rng: Rng::new(seed),
            delay: 0,
            refuse: 0,
            loss: 0,
            ordinal: 0,
            answers: BinaryHeap::with_capacity(2 * connections as usize),
        }
    }

    /// The same card, whose descriptions say that media is protected. There is none, so its keys protect nothing: anybody may guess them.
    #[must_use]
    pub fn with_srtp(mut self, srtp: Srtp) -> SimCard {
        self.srtp = srtp;
        self
    }

    /// The same card, on which opening a connection takes `work`: what a gateway of a known capacity is made of.
    #[must_use]
    pub fn with_work(mut self, work: Box<dyn FnMut() + Send>) -> SimCard {
        self.work = Some(work);
        self
    }

    fn channel(&self, connection: u32) -> Option<&Channel> {
        self.channels.get(connection as usize)?.as_ref()
    }

    fn channel_mut(&mut self, connection: u32) -> Option<&mut Channel> {
        self.channels.get_mut(connection as usize)?.as_mut()
    }

    /// The span of `endpoint`; `None` when the card does not carry it, or what carries it has failed.
    fn working(&self, endpoint: EndpointIndex) -> Option<&CarriedSpan> {
        let after = self.spans.partition_point(|span| span.endpoints.first <= endpoint.0);
        let span = after.checked_sub(1).and_then(|place| self.spans.get(place))?;
        (!span.broken && span.endpoints.contains(endpoint)).then_some(span)
    }

    /// Whether the card cannot serve `endpoint`: it does not carry it, or what carries it has failed.
    fn is_broken(&self, endpoint: EndpointIndex) -> bool {
        let word = self.served.get(endpoint.0 as usize / 64);
        word.is_none_or(|word| word & (1 << (endpoint.0 % 64)) == 0)
    }

    /// A check tone begins or ends.
    fn note_tone(&mut self, now: Time, endpoint: EndpointIndex, signal: EventId, on: bool) {
        let tone = match (signal.package(), signal.item().name) {
            (PackageId::T, "co1") => CheckTone::Co1,
            (PackageId::T, "co2") => CheckTone::Co2,
            _ => return,
        };
        if let Some(span) = self.working(endpoint) {
            let kind = span.kind;
            self.far.handle_tone(now, endpoint, kind, tone, on);
        }
    }

    /// Refuses an order for `endpoint` that must not be carried out.
    fn accept(&mut self, endpoint: EndpointIndex) -> Result<(), CardFault> {
        if self.is_broken(endpoint) {
            return Err(CardFault::Broken);
        }
        match self.refuse.checked_sub(1) {
            Some(left) => {
                self.refuse = left;
                Err(CardFault::Exhausted)
            }
            None => Ok(()),
        }
    }

    /// Lets `order` be answered after the delay; gives the ordinal its connection has to wait for.
    fn delay_order(&mut self, now: Time, connection: u32, order: Order) -> u64 {
        self.ordinal += 1;
        if self.delay != u32::MAX {
            if self.answers.len() >= 2 * self.channels.len() {
                // Each connection waits for one answer at most, so half of them go.
                let channels = &self.channels;
                self.answers.retain(|Reverse(answer)| is_awaited(channels, answer));
            }
            let due = now + Duration::from_millis(u64::from(self.delay));
            self.answers.push(Reverse(Delayed { due, ordinal: self.ordinal, connection, order }));
        }
        self.ordinal
    }

    /// Removes answers nobody waits for from the front, so that the next one to come is there.
    fn drop_stale_answers(&mut self) {
        while let Some(Reverse(next)) = self.answers.peek()
            && !is_awaited(&self.channels, next)
        {
            self.answers.pop();
        }
    }

    /// Lets a connection run as its task, its state and the card's say from `now` on.
    fn run(&mut self, now: Time, connection: u32) {
        let Some(channel) = self.channel(connection) else { return };
        let runs = channel.opened && !self.is_broken(channel.endpoint);
        let loss = self.loss;
        if let Some(channel) = self.channel_mut(connection) {
            let Task { sends, receives, inside, packet_bytes, period_ms } = channel.task;
            let pace = |on, loss| if on { Pace { period_ms, packet_bytes, loss } } else { Pace::SILENT };
            channel.sent.set_pace(now, pace(runs && sends, 0));
            channel.received.set_pace(now, pace(runs && receives, if inside { 0 } else { loss }));
        }
    }

    fn run_all(&mut self, now: Time) {
        for connection in 0..self.channels.len() as u32 {
            self.run(now, connection);
        }
    }

    /// Forgets a connection and gives its port back.
    fn free(&mut self, connection: u32) {
        if let Some(channel) = self.channels.get_mut(connection as usize).and_then(Option::take)
            && channel.port != 0
        {
            self.ports.give_back(channel.port);
        }
    }

    /// Carries out an order whose answer is due.
    fn answer(&mut self, now: Time, Delayed { connection, order, .. }: Delayed) -> Option<Indication> {
        let address = self.address;
        let channel = self.channel_mut(connection)?;
        let (endpoint, port) = (channel.endpoint, channel.port);
        channel.awaits = 0;
        let indication = match order {
            Order::Open(result) => {
                channel.opened = result.is_ok();
                Indication::Opened { endpoint, connection, result: result.map(|()| MediaAddress { address, port }) }
            }
            Order::Modify(result) => {
                channel.task = result.unwrap_or(channel.task);
                Indication::Modified { endpoint, connection, result: result.map(|_| MediaAddress { address, port }) }
            }
        };
        if matches!(order, Order::Open(Err(_))) {
            self.free(connection);
        }
        self.run(now, connection);
        Some(indication)
    }

    /// Makes defects present or not, and says so where that is new, or has to be acted on at once.
    fn set_defects(&mut self, now: Time, facility: Facility, which: &[Defect], present: bool, at_once: bool) -> Result<(), &'static str> {
        let room = indications_max(self.lines.len()).saturating_sub(self.indications.len());
        let place = self.lines.binary_search_by_key(&facility, |line| line.facility);
        let Some(line) = place.ok().and_then(|place| self.lines.get_mut(place)) else {
            return Err("the card does not carry this facility");
        };
        if room < which.len() {
            return Err("too many indications are waiting");
        }
        for &defect in which {
            if (line.present & bit(defect) != 0) != present {
                line.present ^= bit(defect);
            } else if !at_once {
                continue;
            }
            self.indications.push_back(Indication::Defect { facility, defect, present, at_once });
        }
        self.note_failures(now);
        Ok(())
    }

    /// Stops or restarts the media of spans whose part of the card has failed or works again.
    fn note_failures(&mut self, now: Time) {
        let lines = &self.lines;
        let failed = |facility: Facility| {
            let place = lines.binary_search_by_key(&facility, |line| line.facility);
            place.ok().and_then(|place| lines.get(place)).is_some_and(|line| line.present & bit(Defect::Equipment) != 0)
        };
        let mut changed = false;
        for span in &mut self.spans {
            let broken = failed(Facility::Span(span.span)) || span.t3.is_some_and(|t3| failed(Facility::T3(t3)));
            if span.broken != broken {
                changed = true;
                span.broken = broken;
                set_bits(&mut self.served, span.endpoints, !broken);
            }
        }
        if changed {
            self.run_all(now);
        }
    }
}

impl Card for SimCard {
    /// Refuses what it does not carry, a slot in use or beyond its table, and when no port is left.
    fn open(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        if let Some(work) = &mut self.work {
            work();
        }
        match self.channels.get(connection as usize) {
            Some(None) => {}
            Some(Some(_)) => return Answer::Refused(CardFault::Broken),
            None => return Answer::Refused(CardFault::Exhausted),
        }
        let port = match self.accept(endpoint) {
            Ok(()) if media.inside => Ok(0),
            Ok(()) => self.ports.take().ok_or(CardFault::Exhausted),
            Err(fault) => Err(fault),
        };
        let later = self.delay != 0;
        match port {
            Err(fault) if !later => return Answer::Refused(fault),
            _ => {}
        }
        let awaits = if later { self.delay_order(now, connection, Order::Open(port.map(drop))) } else { 0 };
        let channel = Channel {
            endpoint,
            awaits,
            opened: !later,
            port: port.unwrap_or(0),
            task: Task::new(media),
            sent: Stream::default(),
            received: Stream::new(self.rng.next() as u32),
            jitter_ms: 1 + self.rng.below(4) as u8,
            latency_ms: 5 + self.rng.below(36) as u8,
        };
        if let Some(place) = self.channels.get_mut(connection as usize) {
            *place = Some(channel);
        }
        self.run(now, connection);
        if later { Answer::Later } else { Answer::Now(MediaAddress { address: self.address, port: channel.port }) }
    }

    /// Refuses what is not open, and leaving the gateway when no port is left for a connection that was opened inside.
    fn modify(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        let mut port = match self.channel(connection) {
            Some(channel) if channel.opened && channel.endpoint == endpoint => channel.port,
            _ => return Answer::Refused(CardFault::Broken),
        };
        let result = self.accept(endpoint).and_then(|()| {
            if port == 0 && !media.inside {
                port = self.ports.take().ok_or(CardFault::Exhausted)?;
            }
            Ok(Task::new(media))
        });
        let later = self.delay != 0;
        let awaits = if later { self.delay_order(now, connection, Order::Modify(result)) } else { 0 };
        if let Some(channel) = self.channel_mut(connection) {
            channel.awaits = awaits;
            channel.port = port;
            if let (false, Ok(task)) = (later, result) {
                channel.task = task;
            }
        }
        self.run(now, connection);
        self.drop_stale_answers();
        match (later, result) {
            (true, _) => Answer::Later,
            (false, Ok(_)) => Answer::Now(MediaAddress { address: self.address, port }),
            (false, Err(fault)) => Answer::Refused(fault),
        }
    }

    /// Refuses to take one to what it does not carry, or what is broken.
    fn transfer(&mut self, now: Time, from: EndpointIndex, to: EndpointIndex, connection: u32) -> bool {
        let is_usable = !self.is_broken(to);
        let Some(channel) = self.channel_mut(connection).filter(|channel| is_usable && channel.endpoint == from) else { return false };
        channel.endpoint = to;
        self.run(now, connection);
        true
    }

    /// Nothing, and an empty report, when there is no such connection.
    fn close(&mut self, now: Time, endpoint: EndpointIndex, connection: u32) -> MediaReport {
        if self.channel(connection).is_none_or(|channel| channel.endpoint != endpoint) {
            return MediaReport::default();
        }
        let report = self.report(now, connection);
        self.free(connection);
        self.drop_stale_answers();
        report
    }

    fn report(&self, now: Time, connection: u32) -> MediaReport {
        self.channel(connection).map_or_else(MediaReport::default, |channel| channel.report(now))
    }

    fn srtp(&self, _: EndpointIndex) -> Srtp {
        self.srtp
    }

    fn draw_key(&mut self) -> Option<MasterKey> {
        let mut octets = [0; MasterKey::OCTETS];
        octets.chunks_mut(8).for_each(|part| part.iter_mut().zip(self.rng.next().to_be_bytes()).for_each(|(place, octet)| *place = octet));
        Some(MasterKey::new(octets))
    }

    /// Nobody hears the tone but the far end, which knows check tones.
    fn start_signal(
        &mut self,
        now: Time,
        endpoint: EndpointIndex,
        connection: Option<u32>,
        signal: EventId,
        _: &[u8],
    ) -> Result<(), CardFault> {
        if connection.is_some_and(|connection| self.channel(connection).is_none_or(|channel| channel.endpoint != endpoint)) {
            return Err(CardFault::Broken);
        }
        self.accept(endpoint)?;
        if connection.is_none() {
            self.note_tone(now, endpoint, signal, true);
        }
        Ok(())
    }

    fn stop_signal(&mut self, now: Time, endpoint: EndpointIndex, connection: Option<u32>, signal: EventId) {
        if connection.is_none() {
            self.note_tone(now, endpoint, signal, false);
        }
    }

    fn order_line(&mut self, now: Time, endpoint: EndpointIndex, order: &LineOrder) {
        if let Some(span) = self.working(endpoint) {
            let kind = span.kind;
            self.far.handle(now, endpoint, kind, order);
        }
    }

    fn hook(&self, _: EndpointIndex) -> Option<Hook> {
        None
    }

    fn holds(&self, _: EndpointIndex, _: EventId) -> bool {
        false
    }

    /// Defects and events first, then answers by the time they are due.
    fn poll(&mut self, now: Time) -> Option<Indication> {
        if let Some(indication) = self.indications.pop_front() {
            return Some(indication);
        }
        while let Some(indication) = self.far.poll(now) {
            // What a broken span says is not heard.
            if !matches!(indication, Indication::Line { endpoint, .. } if self.is_broken(endpoint)) {
                return Some(indication);
            }
        }
        self.answers.peek().filter(|Reverse(next)| next.due <= now)?;
        let Reverse(next) = self.answers.pop()?;
        let indication = self.answer(now, next);
        self.drop_stale_answers();
        indication
    }

    fn deadline(&self) -> Time {
        if !self.indications.is_empty() {
            return Time::ZERO;
        }
        self.answers.peek().map_or(Time::NEVER, |Reverse(next)| next.due).min(self.far.deadline())
    }

    /// Loss above one million is all; a delay concerns later orders only. The error says that the card does not carry the facility,
    /// or has said too much nobody polled for.
    fn operate(&mut self, now: Time, order: &CardOrder) -> Result<(), &'static str> {
        match *order {
            CardOrder::Defect { facility, defect, present, at_once } => self.set_defects(now, facility, &[defect], present, at_once),
            CardOrder::Clear { facility, at_once } => self.set_defects(now, facility, &Defect::ALL, false, at_once),
            CardOrder::Loop { facility, on } => self.set_defects(now, facility, &[Defect::Loopback], on, true),
            CardOrder::Ais { facility, on } => self.set_defects(now, facility, &[Defect::AisSent], on, true),
            CardOrder::Delay(millis) => {
                self.delay = millis;
                Ok(())
            }
            CardOrder::Refuse(orders) => {
                self.refuse = orders;
                Ok(())
            }
            CardOrder::Loss(per_million) => {
                self.loss = per_million;
                self.run_all(now);
                Ok(())
            }
            CardOrder::Far(endpoint, order) => {
                let kind = self.working(endpoint).ok_or("the card does not carry this endpoint, or what carries it has failed")?.kind;
                self.far.operate(now, endpoint, kind, &order)
            }
            CardOrder::Behave(behaviour) => {
                self.far.behave(behaviour);
                Ok(())
            }
            CardOrder::Event { endpoint, connection, event, parameters } => {
                if self.is_broken(endpoint) {
                    return Err("the card does not carry this endpoint, or what carries it has failed");
                }
                if self.indications.len() >= indications_max(self.lines.len()) {
                    return Err("too many indications are waiting");
                }
                self.indications.push_back(Indication::Event { endpoint, connection, event, parameters });
                Ok(())
            }
        }
    }
}

impl Channel {
    /// G-STA-01..06. Jitter and latency are seen on packets that arrive from outside.
    fn report(&self, now: Time) -> MediaReport {
        let (sent, received) = (self.sent.at(now), self.received.at(now));
        let timed = received.packets > 0 && !self.task.inside;
        MediaReport {
            packets_sent: sent.packets,
            octets_sent: sent.octets,
            packets_received: received.packets,
            octets_received: received.octets,
            packets_lost: received.lost,
            jitter_ms: if timed { self.jitter_ms.into() } else { 0 },
            latency_ms: if timed { self.latency_ms.into() } else { 0 },
            ..MediaReport::default()
        }
    }
}

impl Task {
    /// The far end of a connection inside the gateway is always known.
    fn new(media: &Media) -> Task {
        let known = media.inside || media.remote.is_some();
        Task {
            sends: known && media.mode.sends(),
            receives: known && media.mode.receives(),
            inside: media.inside,
            packet_bytes: media.packet_bytes,
            period_ms: media.period_ms,
        }
    }
}

impl Ord for Delayed {
    /// By time, then in the order they were given.
    fn cmp(&self, other: &Delayed) -> std::cmp::Ordering {
        (self.due, self.ordinal).cmp(&(other.due, other.ordinal))
    }
}

impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Delayed) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Delayed {
    fn eq(&self, other: &Delayed) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Delayed {}

/// Whether the connection still waits for this very answer.
fn is_awaited(channels: &[Option<Channel>], answer: &Delayed) -> bool {
    let channel = channels.get(answer.connection as usize).and_then(Option::as_ref);
    channel.is_some_and(|channel| channel.awaits == answer.ordinal)
}

/// The most indications that wait to be polled: room for some changes of each defect of each of `lines`.
const fn indications_max(lines: usize) -> usize {
    (lines + 1) * 4 * Defect::ALL.len()
}

/// The bit of a defect among those present.
fn bit(defect: Defect) -> u8 {
    1 << defect as u8
}

/// Sets or clears the bits of these endpoints.
fn set_bits(words: &mut [u64], endpoints: EndpointRange, on: bool) {
    for endpoint in endpoints.iter() {
        if let Some(word) = words.get_mut(endpoint.0 as usize / 64) {
            let bit = 1 << (endpoint.0 % 64);
            *word = if on { *word | bit } else { *word & !bit };
        }
    }
}
