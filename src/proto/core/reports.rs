//! Changes of notified entities, reported to the lead core: one bit for each endpoint whose entity is to be reported. What is reported
//! is the entity at the time of sending, so that a lead core that stands still costs no memory and hears of the newest one only.
//!
//! A confirmation of service states ([`Envelope::Settled`]) goes behind the reports that the states caused.

use super::envelope::Envelope;
use super::outside::{Frames, Outside, Turn};
use super::{Core, UNSENT_RETRY};
use crate::proto::base::{AgentId, EndpointIndex, EndpointRange};

/// What is to be reported.
pub(super) struct Reports {
    /// By endpoint of the plan.
    bits: Vec<u64>,
    count: u32,
    /// No endpoint below is to be reported.
    first: u32,
    /// So many service states are to be confirmed.
    settled: Option<u64>,
}

impl Reports {
    pub fn new(endpoints: u32) -> Reports {
        Reports { bits: vec![0; endpoints.div_ceil(64) as usize], count: 0, first: 0, settled: None }
    }

    fn contains(&self, endpoint: u32) -> bool {
        self.bits.get(endpoint as usize / 64).is_some_and(|word| word & 1 << (endpoint % 64) != 0)
    }

    fn set(&mut self, endpoint: u32, on: bool) {
        if self.contains(endpoint) == on {
            return;
        }
        let Some(word) = self.bits.get_mut(endpoint as usize / 64) else { return };
        *word ^= 1 << (endpoint % 64);
        if on {
            self.first = if self.count == 0 { endpoint } else { self.first.min(endpoint) };
            self.count += 1;
        } else {
            self.count -= 1;
        }
    }

    /// The first endpoint to be reported.
    fn next(&mut self) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        let mut words = self.bits.iter().enumerate().skip(self.first as usize / 64);
        let (place, word) = words.find(|(_, word)| **word != 0)?;
        self.first = place as u32 * 64 + word.trailing_zeros();
        Some(self.first)
    }
}

impl Core {
    /// The notified entity of this endpoint is to be reported.
    pub(super) fn report_entity(&mut self, endpoint: EndpointIndex) {
        if self.calls.endpoints.owns(endpoint) {
            self.reports.set(endpoint.0, true);
        }
    }

    /// So many service states are applied; it is confirmed behind what they made of notified entities.
    pub(super) fn confirm_states(&mut self, states: u64) {
        self.reports.settled = self.reports.settled.max(Some(states));
    }

    /// Sends what there is room for, a slice of it at most. True: something was sent to this core itself.
    pub(super) fn send_reports<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) -> bool {
        let lead = self.plan.lead();
        let mut left = self.plan.limits.slice.max(1);
        let mut sent = false;
        while let Some(first) = self.reports.next() {
            let Some((agent, port)) = self.entity_of(EndpointIndex(first)) else {
                self.reports.set(first, false);
                continue;
            };
            if left == 0 {
                self.unsent_retry = turn.now;
                return sent;
            }
            left -= 1;
            let joins = |next: &u32| self.reports.contains(*next) && self.entity_of(EndpointIndex(*next)) == Some((agent, port));
            let count = (first..).take_while(joins).count() as u32;
            let range = EndpointRange { first, count };
            if !self.report(turn, Envelope::Entity { range, agent, port }) {
                return false;
            }
            sent = lead == self.id;
            range.iter().for_each(|endpoint| self.reports.set(endpoint.0, false));
        }
        if let Some(states) = self.reports.settled
            && self.report(turn, Envelope::Settled { states })
        {
            self.reports.settled = None;
            sent = lead == self.id;
        }
        sent
    }

    fn report<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, envelope: Envelope) -> bool {
        let lead = self.plan.lead();
        if lead == self.id {
            self.to_self.push_back(envelope);
            return true;
        }
        let sent = turn.out.forward(lead, envelope);
        if !sent {
            self.unsent_retry = self.unsent_retry.min(turn.now + UNSENT_RETRY);
        }
        sent
    }

    /// The agent and port that the entity of an endpoint stands for; port 0: the provisioned addresses.
    fn entity_of(&self, endpoint: EndpointIndex) -> Option<(AgentId, u16)> {
        let state = self.calls.endpoints.get(endpoint)?;
        let named = self.calls.endpoints.entities.get(state.entity).map(|(agent, port, _)| (agent, port));
        Some(named.unwrap_or((state.provisioned, 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Boot, exercise};
    use super::*;
    use crate::proto::base::{CoreId, Counters, FrameRef, Time};
    use crate::proto::endpoint::EntityId;
    use crate::proto::trunk::{FacilityKind, FacilityPlan};
    use std::net::SocketAddr;
    use std::sync::Arc;

    struct NoFrames;

    impl Frames for NoFrames {
        type Datagram<'a> = &'a [u8];

        fn read(&self, _: FrameRef) -> Option<(&[u8], super::super::Origin)> {
            None
        }
    }

    /// A way out with room for so many envelopes.
    #[derive(Default)]
    struct Ring {
        room: usize,
        told: Vec<Envelope>,
    }

    impl Outside for Ring {
        fn transmit(&mut self, _: SocketAddr, _: u8, _: impl FnOnce(&mut [u8]) -> usize) -> bool {
            false
        }

        fn forward(&mut self, _: CoreId, envelope: Envelope) -> bool {
            let fits = self.told.len() < self.room;
            if fits {
                self.told.push(envelope);
            }
            fits
        }

        fn release(&mut self, _: FrameRef) {}
    }

    /// The second of two cores, which owns the second of two T1s; the first one is the lead core.
    fn second_core() -> Core {
        let t1 = |unit| FacilityPlan { kind: FacilityKind::T1, unit, common_channel: false };
        let mut plan = exercise::plan(&[t1(1), t1(2)], 8, 8, 1000).unwrap();
        (plan.cores, plan.owners) = (2, vec![CoreId(0), CoreId(1)]);
        let card = Box::new(exercise::card(&plan, [192, 0, 2, 10].into(), 8, 1));
        let (plan, settings, counters) = (Arc::new(plan), Arc::new(exercise::settings()), Arc::new(Counters::new()));
        Core::new(Boot { core: CoreId(1), plan, settings, counters, card, seed: 1, now: Time::ZERO })
    }

    fn name(core: &mut Core, endpoint: EndpointIndex, port: u16) {
        let endpoints = &mut core.calls.endpoints;
        let text = format!("ca@ca.example.net:{port}");
        let entity = endpoints.entities.intern(&mut endpoints.blobs, text.as_bytes(), AgentId(0), port).unwrap();
        endpoints.set_entity(endpoint, entity);
        core.note_entity(endpoint, true);
    }

    /// However often entities change while the lead core stands still: nothing piles up, the newest are told once there is room, and
    /// only then are service states confirmed.
    #[test]
    fn changes_of_entities_do_not_pile_up_before_a_stalled_lead_core() {
        let mut core = second_core();
        let range = core.calls.endpoints.ranges().next().unwrap();
        let mut ring = Ring::default();
        for round in 0..1000 {
            for endpoint in range.iter() {
                name(&mut core, endpoint, 3000 + round % 3);
            }
            let mut turn = Turn { now: Time::ZERO, frames: &NoFrames, out: &mut ring };
            core.handle_envelope(&mut turn, CoreId(0), Envelope::Settle { states: u64::from(round) });
        }
        let last = EndpointIndex(range.first + range.count - 1);
        core.calls.endpoints.set_entity(last, EntityId::SOURCE);
        core.note_entity(last, true);
        assert_eq!((core.unsent.len(), core.to_self.len(), core.reports.count), (0, 0, range.count));
        assert!(core.deadline() <= Time::ZERO + UNSENT_RETRY);
        for room in 1..=3 {
            ring.room = room;
            core.handle_time(&mut Turn { now: Time::ZERO + UNSENT_RETRY, frames: &NoFrames, out: &mut ring });
            assert_eq!(ring.told.len(), room);
        }
        let told: Vec<_> = ring.told.iter().map(|envelope| format!("{envelope:?}")).collect();
        let (most, first, last) = (range.count - 1, range.first, last.0);
        assert!(told[0].contains(&format!("first: {first}, count: {most}")) && told[0].contains("port: 3000"), "{told:?}");
        assert!(told[1].contains(&format!("first: {last}, count: 1")) && told[1].contains("port: 0"), "{told:?}");
        assert!(told[2].contains("Settled { states: 999 }"), "{told:?}");
        assert_eq!((core.reports.count, core.reports.settled), (0, None));
    }
}
