//! A card whose spans lie on several cores. [`Apart`] stands for all of it on the core where its orders come from; what another core
//! carries of it is a [`Part`] there. Orders and answers travel between them one by one, in the order in which they were given.
//!
//! What [`Apart`] orders of a part is answered later, so a card that is apart is a slow card to whoever orders. A connection that is
//! closed is closed on its part too, however late that hears of it, and what is still said of it then is dropped: so nothing is left
//! over when nobody waits any more. While the core of a part stands still, or has not taken what it was ordered before, everything new
//! is refused there; what ends something is kept for it, which is bounded by what it had.
//!
//! No channel of such a card has signalling on its line, and what other cores carry protects no media (SRTP).

mod part;
#[cfg(test)]
mod tests;

pub use part::{Part, Seen};

use super::card::{Answer, Card, CardFault, CardOrder, EventText, Hook, Indication, Media, MediaAddress, MediaReport, Payloads, Srtp};
use super::{CarrierView, Facility, Sounds};
use crate::proto::base::srtp::{MasterKey, MediaKeys};
use crate::proto::base::{CoreId, EndpointIndex, EndpointRange, Mode, Time};
use crate::proto::package::EventId;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Orders that a part has not taken yet from which on it is ordered nothing new.
pub const BEHIND: usize = 1024;

/// A piece of a text, which belongs to what follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    length: u8,
    bytes: [u8; Piece::MAX],
}

impl Piece {
    const MAX: usize = 40;

    fn all(text: &[u8]) -> impl Iterator<Item = Piece> + '_ {
        text.chunks(Piece::MAX).map(|chunk| {
            let mut bytes = [0; Piece::MAX];
            bytes.iter_mut().zip(chunk).for_each(|(place, byte)| *place = *byte);
            Piece { length: chunk.len() as u8, bytes }
        })
    }

    fn text(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// A [`Media`] without where it sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    mode: Mode,
    packet_bytes: u16,
    period_ms: u16,
    inside: bool,
    other: Option<(EndpointIndex, u32)>,
    payloads: Payloads,
    gain_db: i16,
    type_of_service: Option<u8>,
}

impl Kept {
    fn of(media: &Media) -> (Option<SocketAddr>, Kept) {
        let Media { mode, packet_bytes, period_ms, remote, inside, other, payloads, gain_db, type_of_service } = *media;
        (remote, Kept { mode, packet_bytes, period_ms, inside, other, payloads, gain_db, type_of_service })
    }

    fn whole(self, remote: Option<SocketAddr>) -> Media {
        let Kept { mode, packet_bytes, period_ms, inside, other, payloads, gain_db, type_of_service } = self;
        Media { mode, packet_bytes, period_ms, remote, inside, other, payloads, gain_db, type_of_service }
    }
}

/// What is asked of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartOrder {
    /// Parameters of the signal that follows.
    Text(Piece),
    /// Where the connection that follows sends.
    Towards(SocketAddr),
    /// [`Card::open`]. The generation tells this connection from others that had its place.
    Open {
        /// Its endpoint.
        endpoint: EndpointIndex,
        /// It.
        connection: u32,
        /// Which of those that had its place.
        generation: u32,
        /// What it does.
        media: Kept,
    },
    /// [`Card::modify`].
    Modify {
        /// Its endpoint.
        endpoint: EndpointIndex,
        /// It.
        connection: u32,
        /// What it does.
        media: Kept,
    },
    /// [`Card::close`].
    Close {
        /// Its endpoint.
        endpoint: EndpointIndex,
        /// It.
        connection: u32,
    },
    /// [`Card::report`], answered under this ticket.
    Report {
        /// Of which connection.
        connection: u32,
        /// Who asks.
        ticket: u32,
    },
    /// [`Card::start_signal`]; what cannot be played is told as ended.
    StartSignal {
        /// Where.
        endpoint: EndpointIndex,
        /// On which of its connections.
        connection: Option<u32>,
        /// Which.
        signal: EventId,
    },
    /// [`Card::stop_signal`].
    StopSignal {
        /// Where.
        endpoint: EndpointIndex,
        /// On which of its connections.
        connection: Option<u32>,
        /// Which.
        signal: EventId,
    },
    /// [`Card::listen_for`].
    ListenFor {
        /// Where.
        endpoint: EndpointIndex,
        /// What.
        sounds: Sounds,
    },
    /// [`Card::reset_line`].
    ResetLine {
        /// Where.
        endpoint: EndpointIndex,
        /// Whether it is in service.
        in_service: bool,
    },
}

/// What a part says. Generations are those of the orders: what is said of a connection that was closed meanwhile is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartAnswer {
    /// Parameters of the event that follows.
    Text(Piece),
    /// The answer to [`PartOrder::Open`].
    Opened {
        /// The connection.
        connection: u32,
        /// Which of those that had its place.
        generation: u32,
        /// Where it receives.
        result: Result<MediaAddress, CardFault>,
    },
    /// The answer to [`PartOrder::Modify`].
    Modified {
        /// The connection.
        connection: u32,
        /// Which of those that had its place.
        generation: u32,
        /// Where it receives.
        result: Result<MediaAddress, CardFault>,
    },
    /// Goes in front of the answer to [`PartOrder::Report`]: how what came was played.
    Playout {
        /// The connection.
        connection: u32,
        /// Which of those that had its place.
        generation: u32,
        /// `late`, `concealed_octets` and `slips` of its report.
        counts: [u32; 3],
    },
    /// The answer to [`PartOrder::Report`].
    Report {
        /// The connection.
        connection: u32,
        /// Which of those that had its place.
        generation: u32,
        /// Who asked.
        ticket: u32,
        /// What of its report `P:` has: packets and octets sent, packets and octets received, packets lost, jitter, latency.
        counts: [u32; 7],
    },
    /// [`Indication::Event`].
    Event {
        /// Where.
        endpoint: EndpointIndex,
        /// On which of its connections, and which of those that had its place.
        connection: Option<(u32, u32)>,
        /// What.
        event: EventId,
    },
    /// [`Indication::MediaLost`].
    MediaLost {
        /// The connection.
        connection: u32,
        /// Which of those that had its place.
        generation: u32,
        /// Whether it was told before.
        again: bool,
    },
    /// [`Indication::SignalEnded`].
    SignalEnded {
        /// Where.
        endpoint: EndpointIndex,
        /// On which of its connections.
        connection: Option<u32>,
        /// Which.
        signal: EventId,
        /// Whether it could not be played to its end.
        failed: bool,
    },
}

/// A part on another core, as [`Apart`] sees it.
struct Far {
    core: CoreId,
    /// What it was not sent yet.
    orders: VecDeque<PartOrder>,
    /// Parameters of the event that follows.
    text: EventText,
    /// Its core stands still.
    silent: bool,
    /// Its core was overloaded when it said something last.
    overloaded: bool,
    /// Reports that were asked for and have not come, and the last ticket under which one was asked for.
    reports: (u32, u32),
}

impl Far {
    fn is_behind(&self) -> bool {
        self.silent || self.orders.len() >= BEHIND
    }
}

/// A place for a connection.
#[derive(Clone, Copy, Default)]
struct Place {
    /// The part it is on; `None`: the near one.
    far: Option<usize>,
    endpoint: EndpointIndex,
    generation: u32,
    /// What it had counted when somebody asked last.
    report: MediaReport,
}

/// See the module's page.
pub struct Apart {
    near: Box<dyn Card + Send>,
    far: Vec<Far>,
    /// The spans of other cores, ascending, and the part they are on.
    spans: Vec<(EndpointRange, usize)>,
    places: Vec<Place>,
    indications: VecDeque<Indication>,
    tickets: VecDeque<u32>,
}

impl Apart {
    /// `near` carries what no other core does; `spans` are those that other cores do, ascending; so many connections.
    pub fn new(near: Box<dyn Card + Send>, spans: impl Iterator<Item = (EndpointRange, CoreId)>, connections: u32) -> Apart {
        let mut far: Vec<Far> = Vec::new();
        let spans = spans.map(|(range, core)| {
            let place = far.iter().position(|far| far.core == core).unwrap_or_else(|| {
                let orders = VecDeque::with_capacity(BEHIND);
                far.push(Far { core, orders, text: EventText::NONE, silent: false, overloaded: false, reports: (0, 0) });
                far.len() - 1
            });
            (range, place)
        });
        let spans = spans.collect();
        let places = vec![Place::default(); connections as usize];
        Apart { near, far, spans, places, indications: VecDeque::new(), tickets: VecDeque::new() }
    }

    /// Sends what `offer` has room for, to each core in order. True: something is left.
    pub fn send(&mut self, mut offer: impl FnMut(CoreId, PartOrder) -> bool) -> bool {
        let mut left = false;
        for far in &mut self.far {
            while let Some(order) = far.orders.front().copied() {
                if !offer(far.core, order) {
                    left = true;
                    break;
                }
                far.orders.pop_front();
            }
        }
        left
    }

    /// A part on `core` says something; `overloaded`: that core is.
    pub fn handle(&mut self, core: CoreId, overloaded: bool, answer: PartAnswer) {
        let Some(far) = self.far.iter_mut().find(|far| far.core == core) else { return };
        far.overloaded = overloaded;
        let current = |connection: u32, generation: u32| {
            let place = self.places.get(connection as usize);
            place.filter(|place| place.far.is_some() && place.generation == generation).map(|place| place.endpoint)
        };
        let indication = match answer {
            PartAnswer::Text(piece) => return far.text.push(piece.text()),
            PartAnswer::Opened { connection, generation, result } => {
                current(connection, generation).map(|endpoint| Indication::Opened { endpoint, connection, result })
            }
            PartAnswer::Modified { connection, generation, result } => {
                current(connection, generation).map(|endpoint| Indication::Modified { endpoint, connection, result })
            }
            PartAnswer::MediaLost { connection, generation, again } => {
                current(connection, generation).map(|endpoint| Indication::MediaLost { endpoint, connection, again })
            }
            PartAnswer::Playout { connection, generation, counts } => {
                if current(connection, generation).is_some()
                    && let Some(place) = self.places.get_mut(connection as usize)
                {
                    place.report.set_playout(counts);
                }
                None
            }
            PartAnswer::Report { connection, generation, ticket, counts } => {
                self.tickets.push_back(ticket);
                far.reports.0 = far.reports.0.saturating_sub(1);
                if current(connection, generation).is_some()
                    && let Some(place) = self.places.get_mut(connection as usize)
                {
                    place.report.set_traffic(counts);
                }
                None
            }
            PartAnswer::Event { endpoint, connection, event } => {
                let parameters = std::mem::replace(&mut far.text, EventText::NONE);
                let is_there = connection.is_none_or(|(connection, generation)| current(connection, generation).is_some());
                let connection = connection.map(|(connection, _)| connection);
                is_there.then_some(Indication::Event { endpoint, connection, event, parameters })
            }
            PartAnswer::SignalEnded { endpoint, connection, signal, failed } => {
                Some(Indication::SignalEnded { endpoint, connection, signal, failed })
            }
        };
        self.indications.extend(indication);
    }

    /// Which cores stand still.
    pub fn set_silent(&mut self, is_silent: impl Fn(CoreId) -> bool) {
        self.far.iter_mut().for_each(|far| far.silent = is_silent(far.core));
    }

    /// Whether a core with a part stands still.
    pub fn has_silent(&self) -> bool {
        self.far.iter().any(|far| far.silent)
    }

    /// Whether the core that has this connection stands still.
    pub fn is_silent(&self, connection: u32) -> bool {
        self.far_of(connection).is_some_and(|far| far.silent)
    }

    /// Whether the core that has this connection was overloaded when it said something last.
    pub fn is_overloaded(&self, connection: u32) -> bool {
        self.far_of(connection).is_some_and(|far| far.overloaded)
    }

    fn far_of(&self, connection: u32) -> Option<&Far> {
        self.far.get(self.places.get(connection as usize)?.far?)
    }

    /// Asks what a connection has counted, to be answered under this ticket. False: that is known here, or who knows stands still.
    pub fn ask_report(&mut self, connection: u32, ticket: u32) -> bool {
        let far = self.places.get(connection as usize).and_then(|place| self.far.get_mut(place.far?));
        let Some(far) = far.filter(|far| !far.is_behind()) else { return false };
        far.orders.push_back(PartOrder::Report { connection, ticket });
        far.reports = (far.reports.0 + 1, ticket);
        true
    }

    /// Whether a core stands still that may owe a report asked for under this ticket. Tickets are consecutive numbers.
    pub fn is_owed_by_silent(&self, ticket: u32) -> bool {
        let owes = |far: &Far| far.silent && far.reports.0 > 0 && (far.reports.1.wrapping_sub(ticket) as i32) >= 0;
        self.far.iter().any(owes)
    }

    /// The ticket of a report that has come.
    pub fn take_ticket(&mut self) -> Option<u32> {
        self.tickets.pop_front()
    }

    fn part_of(&self, endpoint: EndpointIndex) -> Option<usize> {
        let after = self.spans.partition_point(|(range, _)| range.first <= endpoint.0);
        let (range, part) = self.spans.get(after.checked_sub(1)?)?;
        range.contains(endpoint).then_some(*part)
    }

    /// The part that has `endpoint`; `None`: it is near.
    fn far_at(&mut self, endpoint: EndpointIndex) -> Option<&mut Far> {
        let part = self.part_of(endpoint)?;
        self.far.get_mut(part)
    }
}

impl Card for Apart {
    fn open(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        let part = self.part_of(endpoint);
        let Some(place) = self.places.get_mut(connection as usize) else { return Answer::Refused(CardFault::Broken) };
        let generation = place.generation.wrapping_add(1);
        *place = Place { far: part, endpoint, generation, report: MediaReport::default() };
        let Some(far) = part.and_then(|part| self.far.get_mut(part)) else { return self.near.open(now, endpoint, connection, media) };
        if far.is_behind() {
            place.far = None;
            return Answer::Refused(CardFault::Broken);
        }
        let (towards, media) = Kept::of(media);
        far.orders.extend(towards.map(PartOrder::Towards));
        far.orders.push_back(PartOrder::Open { endpoint, connection, generation, media });
        Answer::Later
    }

    fn modify(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        let part = self.places.get(connection as usize).and_then(|place| place.far);
        let Some(far) = part.and_then(|part| self.far.get_mut(part)) else { return self.near.modify(now, endpoint, connection, media) };
        if far.is_behind() {
            return Answer::Refused(CardFault::Broken);
        }
        let (towards, media) = Kept::of(media);
        far.orders.extend(towards.map(PartOrder::Towards));
        far.orders.push_back(PartOrder::Modify { endpoint, connection, media });
        Answer::Later
    }

    /// A connection on another core stays there, and none goes to one.
    fn transfer(&mut self, now: Time, from: EndpointIndex, to: EndpointIndex, connection: u32) -> bool {
        let is_near = self.part_of(from).is_none() && self.part_of(to).is_none();
        let Some(place) = self.places.get_mut(connection as usize) else { return false };
        if !is_near || !self.near.transfer(now, from, to, connection) {
            return false;
        }
        place.endpoint = to;
        true
    }

    fn close(&mut self, now: Time, endpoint: EndpointIndex, connection: u32) -> MediaReport {
        let Some(place) = self.places.get_mut(connection as usize) else { return MediaReport::default() };
        place.generation = place.generation.wrapping_add(1);
        let part = place.far.take();
        let Some(far) = part.and_then(|part| self.far.get_mut(part)) else { return self.near.close(now, endpoint, connection) };
        far.orders.push_back(PartOrder::Close { endpoint, connection });
        place.report
    }

    /// What it had counted when [`Apart::ask_report`] was answered last.
    fn report(&self, now: Time, connection: u32) -> MediaReport {
        match self.places.get(connection as usize) {
            Some(place) if place.far.is_some() => place.report,
            _ => self.near.report(now, connection),
        }
    }

    fn start_signal(
        &mut self,
        now: Time,
        endpoint: EndpointIndex,
        connection: Option<u32>,
        signal: EventId,
        parameters: &[u8],
    ) -> Result<(), CardFault> {
        let Some(far) = self.far_at(endpoint) else { return self.near.start_signal(now, endpoint, connection, signal, parameters) };
        if far.is_behind() {
            return Err(CardFault::Broken);
        }
        far.orders.extend(Piece::all(parameters).map(PartOrder::Text));
        far.orders.push_back(PartOrder::StartSignal { endpoint, connection, signal });
        Ok(())
    }

    fn stop_signal(&mut self, now: Time, endpoint: EndpointIndex, connection: Option<u32>, signal: EventId) {
        match self.far_at(endpoint) {
            Some(far) => far.orders.push_back(PartOrder::StopSignal { endpoint, connection, signal }),
            None => self.near.stop_signal(now, endpoint, connection, signal),
        }
    }

    fn listen_for(&mut self, now: Time, endpoint: EndpointIndex, sounds: Sounds) {
        match self.far_at(endpoint) {
            Some(far) => far.orders.push_back(PartOrder::ListenFor { endpoint, sounds }),
            None => self.near.listen_for(now, endpoint, sounds),
        }
    }

    fn check_event(&self, endpoint: EndpointIndex, event: EventId) -> Result<(), CardFault> {
        if self.part_of(endpoint).is_some() { Ok(()) } else { self.near.check_event(endpoint, event) }
    }

    fn check_signal(&self, endpoint: EndpointIndex, connection: Option<u32>, signal: EventId, parameters: &[u8]) -> Result<(), CardFault> {
        if self.part_of(endpoint).is_some() { Ok(()) } else { self.near.check_signal(endpoint, connection, signal, parameters) }
    }

    /// A part whose core stands still is not told: what its channels play is ended one by one.
    fn reset_line(&mut self, now: Time, endpoint: EndpointIndex, in_service: bool) {
        match self.far_at(endpoint) {
            Some(far) if far.is_behind() => {}
            Some(far) => far.orders.push_back(PartOrder::ResetLine { endpoint, in_service }),
            None => self.near.reset_line(now, endpoint, in_service),
        }
    }

    fn hook(&self, endpoint: EndpointIndex) -> Option<Hook> {
        self.near.hook(endpoint)
    }

    fn holds(&self, endpoint: EndpointIndex, event: EventId) -> bool {
        self.part_of(endpoint).is_none() && self.near.holds(endpoint, event)
    }

    fn srtp(&self, endpoint: EndpointIndex) -> Srtp {
        if self.part_of(endpoint).is_some() { Srtp::Off } else { self.near.srtp(endpoint) }
    }

    fn draw_key(&mut self) -> Option<MasterKey> {
        self.near.draw_key()
    }

    fn protect(&mut self, endpoint: EndpointIndex, connection: u32, keys: &MediaKeys) {
        if self.part_of(endpoint).is_none() {
            self.near.protect(endpoint, connection, keys);
        }
    }

    fn carrier(&self, facility: Facility) -> Option<CarrierView> {
        self.near.carrier(facility)
    }

    fn poll(&mut self, now: Time) -> Option<Indication> {
        self.indications.pop_front().or_else(|| self.near.poll(now))
    }

    fn deadline(&self) -> Time {
        if self.indications.is_empty() && self.tickets.is_empty() { self.near.deadline() } else { Time::ZERO }
    }

    fn operate(&mut self, now: Time, order: &CardOrder) -> Result<(), &'static str> {
        self.near.operate(now, order)
    }

    fn stands_still(&self, endpoint: EndpointIndex) -> bool {
        self.part_of(endpoint).and_then(|part| self.far.get(part)).is_some_and(Far::is_behind)
    }

    fn apart(&mut self) -> Option<&mut Apart> {
        Some(self)
    }
}
