//! H.248 gateways whose channels lie on several cores: what the core that runs one orders of the cards of others, and what this core
//! carries of gateways that others run.

use super::Core;
use super::UNSENT_RETRY;
use super::envelope::Envelope;
use super::outside::{Frames, Outside, Turn};
use crate::proto::base::{CoreId, Counter, EndpointIndex, Time};
use crate::proto::cas::Lines;
use crate::proto::plan::Plan;
use crate::proto::trunk::apart::Seen;
use crate::proto::trunk::{Card, CardOrder, CarrierView, Facility, Part, PartAnswer, PartOrder};

/// What a core carries of a gateway that another one runs.
pub(super) struct Carried {
    gateway: u8,
    /// Who runs it.
    core: CoreId,
    part: Part,
}

impl Carried {
    /// `None`: there is no such gateway.
    pub fn new(plan: &Plan, gateway: u8, card: Box<dyn Card + Send>, now: Time) -> Option<Carried> {
        let own = plan.gateways.get(usize::from(gateway))?;
        let card = Box::new(Lines::new(card, std::iter::empty(), plan.times, now));
        Some(Carried { gateway, core: own.core, part: Part::new(card, own.connections) })
    }

    /// The card, to order.
    pub fn card(&mut self) -> &mut dyn Card {
        self.part.card_mut()
    }
}

impl Core {
    /// What a gateway here has to say to the cards of other cores.
    pub(super) fn send_to_parts<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        let mut left = false;
        for gateway in &mut self.gateways {
            let index = gateway.index();
            if let Some(apart) = gateway.calls.card.apart() {
                left |= apart.send(|core, order| turn.out.forward(core, Envelope::PartOrder { gateway: index, order }));
            }
        }
        if left {
            self.unsent_retry = self.unsent_retry.min(turn.now + UNSENT_RETRY);
        }
    }

    /// Tells a gateway here which of the cores that carry its channels stand still.
    pub(super) fn look_at_parts<F: Frames, O: Outside>(&mut self, turn: &Turn<'_, F, O>) {
        let limit = self.settings.timers.vote;
        for gateway in &mut self.gateways {
            if let Some(apart) = gateway.calls.card.apart() {
                apart.set_silent(|core| turn.out.silence(core, turn.now) >= limit);
            }
        }
    }

    /// The card of another core says something to a gateway here.
    pub(super) fn answer_gateway(&mut self, (gateway, from): (u8, CoreId), overloaded: bool, answer: PartAnswer) {
        let known = self.gateways.iter_mut().find(|known| known.index() == gateway);
        match known.and_then(|gateway| gateway.calls.card.apart()) {
            Some(apart) => apart.handle(from, overloaded, answer),
            None => self.counters.add(Counter::EnvelopeStray),
        }
    }

    /// The core that runs a gateway orders something of what this one carries of it.
    pub(super) fn order_part(&mut self, now: Time, gateway: u8, order: PartOrder) {
        match self.parts.iter_mut().find(|carried| carried.gateway == gateway) {
            Some(carried) => carried.part.handle(now, order),
            None => self.counters.add(Counter::EnvelopeStray),
        }
    }

    /// What the cards of others' gateways have to say. Defects are reported from here, as those of any line of this core.
    pub(super) fn handle_parts<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        let overloaded = self.detector.refuse_new();
        for place in 0..self.parts.len() {
            let Core { parts, reports, counters, .. } = self;
            let Some(Carried { gateway, core, part }) = parts.get_mut(place) else { continue };
            part.poll(turn.now, |seen| match seen {
                Seen::Defect(facility, defect, present, at_once) => reports.note_defect(facility, defect, present, at_once),
                Seen::Violations(facility, violations) => reports.note_violations(facility, &violations),
                Seen::Lost => counters.add(Counter::ObservedLost),
            });
            let (gateway, core) = (*gateway, *core);
            if part.send(|answer| turn.out.forward(core, Envelope::PartAnswer { gateway, overloaded, answer })) {
                self.unsent_retry = self.unsent_retry.min(turn.now + UNSENT_RETRY);
            }
        }
    }

    /// When to call [`Core::handle_parts`] again.
    pub(super) fn parts_deadline(&self) -> Time {
        self.parts.iter().map(|carried| carried.part.deadline()).min().unwrap_or(Time::NEVER)
    }

    /// How what carries a facility is, whoever's card on this core carries it.
    pub(super) fn carrier(&self, facility: Facility) -> Option<CarrierView> {
        let endpoint = EndpointIndex(self.plan.topology.endpoints_of(facility).first);
        let own = self.calls_of(endpoint).card.carrier(facility);
        own.or_else(|| self.parts.iter().find_map(|carried| carried.part.card().carrier(facility)))
    }
}

/// Whether an order is for every card, and not for the one that carries a facility or an endpoint.
pub(super) fn concerns_all(order: &CardOrder) -> bool {
    matches!(order, CardOrder::Delay(_) | CardOrder::Refuse(_) | CardOrder::Loss(_) | CardOrder::Behave(_))
}
