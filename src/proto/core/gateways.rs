//! The H.248 gateways that this core runs: what comes to their addresses, what they send, what the lead core decides of their spans.
//!
//! A gateway has endpoints and a card of its own beside those of MGCP, so neither protocol sees the other's. Its datagrams are no business
//! of anybody else: a core that receives one for a gateway of another core forwards it whole.

use super::envelope::{Envelope, Message, SINGLE};
use super::outside::{Frames, Handled, Origin, Outside, Turn, Work};
use super::{Core, parts};
use crate::proto::base::{Counter, Counters, EndpointIndex, EndpointRange, FrameRef, Time};
use crate::proto::cac::Denial;
use crate::proto::cac::share::Ticket;
use crate::proto::endpoint::Service;
use crate::proto::h248::{Answered, Gateway};
use crate::proto::mgcp::{Calls, Restart};
use crate::proto::overload::telling::Load;
use crate::proto::trunk::{Card, CardOrder};
use std::net::SocketAddr;

impl Core {
    /// A datagram that came to the address of an H.248 gateway.
    pub(super) fn open_gateway_datagram<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        (frame, length): (FrameRef, usize),
        (gateway, origin): (u8, Origin),
        bytes: &[u8],
    ) {
        let message =
            Message { frame, start: 0, end: length.min(usize::from(u16::MAX)) as u16, datagram: SINGLE, agent: Default::default() };
        let own = self.plan.gateways.get(usize::from(gateway));
        if own.is_some_and(|own| own.local() != origin.local) {
            self.counters.add(Counter::DroppedOtherTransport);
            return self.finish(message);
        }
        match own.map(|own| own.core) {
            Some(owner) if owner != self.id => {
                if self.tell(turn, owner, Envelope::Message(message)) {
                    self.counters.add(Counter::MessagesForwarded);
                    self.handled = Some(Handled { work: Work::Forward, forwarded: false, arrival: origin.arrival });
                } else {
                    self.finish(message);
                }
            }
            _ => {
                self.run_gateway(turn, gateway, origin, bytes);
                self.finish(message);
            }
        }
    }

    /// A datagram of one of this core's gateways.
    pub(super) fn run_gateway<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, gateway: u8, origin: Origin, bytes: &[u8]) {
        let load = Load { overloaded: self.detector.refuse_new(), sojourn: self.detector.sojourn() };
        let done = self.with_gateway(
            |known| known.index() == gateway,
            |gateway, counters| {
                gateway.set_load(load);
                gateway.handle_datagram(turn.now, origin.from, bytes, &mut way_out(turn, counters, origin.local));
            },
        );
        if done.is_none() {
            return self.counters.add(Counter::EnvelopeStray);
        }
        self.note_gateways();
        self.send_to_parts(turn);
    }

    /// A gateway of this core at work: while it is, it has the core's desk of admission. Whatever adds or ends terminations comes through
    /// here.
    pub(super) fn with_gateway<R>(
        &mut self,
        which: impl FnMut(&&mut Gateway) -> bool,
        work: impl FnOnce(&mut Gateway, &Counters) -> R,
    ) -> Option<R> {
        let Core { gateways, calls, counters, .. } = self;
        let gateway = gateways.iter_mut().find(which)?;
        gateway.calls.desk = calls.desk.take();
        let done = work(gateway, counters);
        calls.desk = gateway.calls.desk.take();
        Some(done)
    }

    /// The bank or the node has answered a claim of a gateway here: whose it was, if its command waits still.
    pub(super) fn gateway_claim_answered<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        (index, ticket): (u8, Ticket),
        result: Result<(), Denial>,
    ) -> Option<Answered> {
        let local = self.plan.gateways.get(usize::from(index)).map_or(0, |own| own.local());
        let answered = self.with_gateway(
            |known| known.index() == index,
            |gateway, counters| gateway.claim_answered(turn.now, ticket, result, &mut way_out(turn, counters, local)),
        )?;
        self.note_gateways();
        self.send_to_parts(turn);
        answered
    }

    /// A stream that was open has ended: whose gateway it was hears of it.
    pub fn handle_ended_stream<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, local: u8, peer: SocketAddr) {
        let Some(gateway) = self.plan.gateway_at(local) else { return };
        match self.plan.gateways.get(usize::from(gateway)).map(|own| own.core) {
            Some(owner) if owner != self.id => {
                // A ring that is full: the gateway finds out when nobody answers it.
                self.tell(turn, owner, Envelope::EndedStream { gateway, peer });
                self.deliver(turn);
            }
            _ => self.note_ended_stream(turn.now, gateway, peer),
        }
    }

    pub(super) fn note_ended_stream(&mut self, now: Time, gateway: u8, peer: SocketAddr) {
        self.with_gateway(|known| known.index() == gateway, |gateway, _| gateway.stream_ended(now, peer));
    }

    /// Everything that is due of this core's gateways.
    pub(super) fn handle_gateways<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        if self.gateways.is_empty() {
            return;
        }
        self.look_at_parts(turn);
        for place in 0..self.gateways.len() {
            let load = Load { overloaded: self.detector.refuse_new(), sojourn: self.detector.sojourn() };
            let Some(index) = self.gateways.get(place).map(Gateway::index) else { continue };
            let local = self.plan.gateways.get(usize::from(index)).map_or(0, |own| own.local());
            self.with_gateway(
                |known| known.index() == index,
                |gateway, counters| {
                    gateway.set_load(load);
                    gateway.handle_time(turn.now, &mut way_out(turn, counters, local));
                },
            );
            while let Some((facility, defect, present, at_once)) = self.gateways.get_mut(place).and_then(Gateway::take_defect) {
                self.reports.note_defect(facility, defect, present, at_once);
            }
            while let Some((facility, violations)) = self.gateways.get_mut(place).and_then(Gateway::take_violations) {
                self.reports.note_violations(facility, &violations);
            }
        }
        self.note_gateways();
        self.send_to_parts(turn);
    }

    /// Terminations that are in no context any more may be waited for by whoever takes them out of service.
    pub(super) fn note_gateways(&mut self) {
        let mut freed = false;
        for place in 0..self.gateways.len() {
            while let Some(endpoint) = self.gateways.get_mut(place).and_then(Gateway::take_freed) {
                self.note_idle(endpoint);
                freed = true;
            }
        }
        if freed {
            self.note_calls();
        }
    }

    /// When to call [`Core::handle_gateways`] again.
    pub(super) fn gateways_deadline(&self) -> Time {
        self.gateways.iter().map(Gateway::deadline).min().unwrap_or(Time::NEVER)
    }

    /// From the lead core: the service state of endpoints, as far as they are terminations of gateways here.
    pub(super) fn apply_gateway_service(&mut self, now: Time, range: EndpointRange, service: Service) {
        for place in 0..self.gateways.len() {
            let Some(index) = self.gateways.get(place).map(Gateway::index) else { continue };
            let lost = self.with_gateway(|known| known.index() == index, |gateway, _| gateway.apply_service(now, range, service));
            let lost = lost.unwrap_or(0);
            self.counters.add_many(Counter::ConnectionsLost, u64::from(lost));
        }
        if self.gateways.is_empty() {
            return;
        }
        for endpoint in range.iter() {
            if self.gateway_of(endpoint).is_some_and(|gateway| gateway.is_leaving_and_idle(endpoint)) {
                self.note_idle(endpoint);
            }
        }
    }

    /// From the lead core: what a RestartInProgress would tell an agent.
    pub(super) fn announce_to_controller<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, gateway: u8, restart: &Restart) {
        self.with_gateway(|known| known.index() == gateway, |gateway, _| gateway.announce(turn.now, restart));
        // At once: the process may be about to end.
        self.handle_gateways(turn);
    }

    /// The gateway of this core that has `endpoint`.
    pub(super) fn gateway_of(&self, endpoint: EndpointIndex) -> Option<&Gateway> {
        self.gateways.iter().find(|gateway| gateway.has(endpoint))
    }

    /// The endpoints of this core among which `endpoint` is, whichever protocol has it.
    pub(super) fn calls_of(&self, endpoint: EndpointIndex) -> &Calls {
        self.gateway_of(endpoint).map_or(&self.calls, |gateway| &gateway.calls)
    }

    /// Connections up on this core, of both protocols.
    pub(super) fn connections_up(&self) -> u32 {
        let own = self.calls.endpoints.connections.count();
        self.gateways.iter().fold(own, |sum, gateway| sum.saturating_add(gateway.in_use()))
    }

    /// An operator's order to the cards of this core: each carries it out as far as it is concerned.
    pub(super) fn operate_cards(&mut self, now: Time, order: &CardOrder) -> Result<(), &'static str> {
        let mut result = self.calls.card.operate(now, order);
        let gateways = self.gateways.iter_mut().map(|gateway| &mut *gateway.calls.card as &mut dyn Card);
        let parts = self.parts.iter_mut().map(parts::Carried::card);
        for card in gateways.chain(parts) {
            let other = card.operate(now, order);
            // What concerns one facility or endpoint is for the card that carries it.
            result = if parts::concerns_all(order) { result.and(other) } else { result.or(other) };
        }
        result
    }
}

/// Sends from a listen address; what finds no transmit frame is counted, and sent again when it is repeated.
fn way_out<'t, F: Frames, O: Outside>(turn: &'t mut Turn<'_, F, O>, counters: &'t Counters, local: u8) -> impl FnMut(SocketAddr, &[u8]) {
    move |to, bytes| {
        let sent = turn.out.transmit(to, local, |buffer| match buffer.get_mut(..bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                bytes.len()
            }
            None => 0,
        });
        if !sent {
            counters.add(Counter::TransmitFull);
        }
    }
}
