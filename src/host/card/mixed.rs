//! The card of a core that has simulated spans and real ones: each order goes to the card it concerns.

use super::trunks::Trunks;
use crate::proto::base::srtp::{MasterKey, MediaKeys};
use crate::proto::base::{EndpointIndex, Time};
use crate::proto::package::EventId;
use crate::proto::trunk::CarrierView;
use crate::proto::trunk::{
    Answer, Card, CardFault, CardOrder, Facility, Hook, Indication, LineOrder, Measure, Media, MediaAddress, MediaReport, SimCard, Sounds,
    Srtp,
};
use std::net::SocketAddr;

/// Both kinds of card.
pub(super) struct Mixed {
    sim: SimCard,
    real: Trunks,
    /// By slot: whether the connection is the real card's.
    is_real: Box<[bool]>,
}

impl Mixed {
    pub fn new(sim: SimCard, real: Trunks, connections: u32) -> Mixed {
        Mixed { sim, real, is_real: (0..connections).map(|_| false).collect() }
    }

    fn of(&self, endpoint: EndpointIndex) -> &dyn Card {
        if self.real.carries(endpoint) { &self.real } else { &self.sim }
    }

    fn of_mut(&mut self, endpoint: EndpointIndex) -> &mut dyn Card {
        if self.real.carries(endpoint) { &mut self.real } else { &mut self.sim }
    }
}

impl Card for Mixed {
    fn open(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        if let Some(place) = self.is_real.get_mut(connection as usize) {
            *place = self.real.carries(endpoint);
        }
        self.of_mut(endpoint).open(now, endpoint, connection, media)
    }

    fn modify(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        self.of_mut(endpoint).modify(now, endpoint, connection, media)
    }

    /// Nothing goes from one card to the other.
    fn transfer(&mut self, now: Time, from: EndpointIndex, to: EndpointIndex, connection: u32) -> bool {
        self.real.carries(from) == self.real.carries(to) && self.of_mut(from).transfer(now, from, to, connection)
    }

    fn half_gone(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, at: SocketAddr) {
        self.of_mut(endpoint).half_gone(now, endpoint, connection, at);
    }

    fn close(&mut self, now: Time, endpoint: EndpointIndex, connection: u32) -> MediaReport {
        self.of_mut(endpoint).close(now, endpoint, connection)
    }

    fn report(&self, now: Time, connection: u32) -> MediaReport {
        match self.is_real.get(connection as usize) {
            Some(true) => self.real.report(now, connection),
            _ => self.sim.report(now, connection),
        }
    }

    fn srtp(&self, endpoint: EndpointIndex) -> Srtp {
        self.of(endpoint).srtp(endpoint)
    }

    /// One that is good for the real card.
    fn draw_key(&mut self) -> Option<MasterKey> {
        self.real.draw_key()
    }

    fn protect(&mut self, endpoint: EndpointIndex, connection: u32, keys: &MediaKeys) {
        self.of_mut(endpoint).protect(endpoint, connection, keys);
    }

    fn start_signal(
        &mut self,
        now: Time,
        endpoint: EndpointIndex,
        connection: Option<u32>,
        signal: EventId,
        parameters: &[u8],
    ) -> Result<(), CardFault> {
        self.of_mut(endpoint).start_signal(now, endpoint, connection, signal, parameters)
    }

    fn stop_signal(&mut self, now: Time, endpoint: EndpointIndex, connection: Option<u32>, signal: EventId) {
        self.of_mut(endpoint).stop_signal(now, endpoint, connection, signal);
    }

    fn listen_for(&mut self, now: Time, endpoint: EndpointIndex, sounds: Sounds) {
        self.of_mut(endpoint).listen_for(now, endpoint, sounds);
    }

    fn measure(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, what: Measure) {
        self.of_mut(endpoint).measure(now, endpoint, connection, what);
    }

    fn check_event(&self, endpoint: EndpointIndex, event: EventId) -> Result<(), CardFault> {
        self.of(endpoint).check_event(endpoint, event)
    }

    fn check_signal(&self, endpoint: EndpointIndex, connection: Option<u32>, signal: EventId, parameters: &[u8]) -> Result<(), CardFault> {
        self.of(endpoint).check_signal(endpoint, connection, signal, parameters)
    }

    fn order_line(&mut self, now: Time, endpoint: EndpointIndex, order: &LineOrder) {
        self.of_mut(endpoint).order_line(now, endpoint, order);
    }

    fn reset_line(&mut self, now: Time, endpoint: EndpointIndex, in_service: bool) {
        self.of_mut(endpoint).reset_line(now, endpoint, in_service);
    }

    fn hook(&self, endpoint: EndpointIndex) -> Option<Hook> {
        self.of(endpoint).hook(endpoint)
    }

    fn holds(&self, endpoint: EndpointIndex, event: EventId) -> bool {
        self.of(endpoint).holds(endpoint, event)
    }

    fn carrier(&self, facility: Facility) -> Option<CarrierView> {
        self.real.carrier(facility)
    }

    fn poll(&mut self, now: Time) -> Option<Indication> {
        self.real.poll(now).or_else(|| self.sim.poll(now))
    }

    fn deadline(&self) -> Time {
        self.real.deadline().min(self.sim.deadline())
    }

    /// Orders are for simulated spans; those about a facility or endpoint on the real card are refused by it.
    fn operate(&mut self, now: Time, order: &CardOrder) -> Result<(), &'static str> {
        match order {
            CardOrder::Far(endpoint, _) | CardOrder::Event { endpoint, .. } => self.of_mut(*endpoint).operate(now, order),
            CardOrder::Defect { facility, .. }
            | CardOrder::Clear { facility, .. }
            | CardOrder::Loop { facility, .. }
            | CardOrder::Ais { facility, .. }
                if self.real.carrier(*facility).is_some() =>
            {
                self.real.operate(now, order)
            }
            _ => self.sim.operate(now, order),
        }
    }
}
