//! What a core has to tell the lead core about its endpoints and spans: the newest of each, not every change. Kept as one bit for each
//! endpoint, one sum for each span and one state for each defect, and read when it is sent, so that a lead core that stands still costs
//! no memory and hears what is true when it goes on.
//!
//! A confirmation of service states ([`Envelope::Settled`]) goes behind the reports that the states caused.

use super::envelope::Envelope;
use super::outside::{Frames, Outside, Turn};
use super::{Core, UNSENT_RETRY};
use crate::proto::aggregate::EndpointSet;
use crate::proto::base::{AgentId, Counter, EndpointIndex, EndpointRange};
use crate::proto::cas::State;
use crate::proto::endpoint::{EntityId, RestartMethod};
use crate::proto::trunk::{Defect, Facility, SpanIndex, Trouble, Violations};
use std::collections::BTreeMap;

/// What is to be reported.
pub(super) struct Reports {
    /// Endpoints that may have lost their last connection while they leave.
    idle: EndpointSet,
    /// Endpoints with a command that nobody answered.
    unanswered: EndpointSet,
    /// Endpoints whose notified entity changed.
    entities: EndpointSet,
    /// Endpoints that were locked out, or are so no more.
    lockouts: EndpointSet,
    /// Connections lost, by span and reason.
    lost: BTreeMap<(SpanIndex, u16), u32>,
    /// What cards saw last: come or gone, and whether it counts at once.
    defects: BTreeMap<(Facility, Defect), (bool, bool)>,
    /// What framers counted.
    violations: BTreeMap<Facility, Violations>,
    /// The number of calls changed while the gateway drains.
    calls: bool,
    /// So many service states are to be confirmed.
    settled: Option<u64>,
}

/// What is reported of endpoints.
#[derive(Clone, Copy)]
enum About {
    Idle,
    Unanswered,
    Entity,
    Lockout,
}

/// A report about one endpoint; neighbours with the same one share an envelope.
#[derive(Clone, Copy, PartialEq)]
enum Said {
    Idle,
    Unanswered,
    /// The agent and port that its entity stands for; port 0: the provisioned addresses.
    Entity(AgentId, u16),
    /// Whether the far end holds the line after its call.
    Lockout(bool),
}

/// Why nothing more is sent now.
struct Full;

impl Reports {
    pub fn new(endpoints: u32) -> Reports {
        let none = EndpointSet::new(endpoints);
        Reports {
            idle: none.clone(),
            unanswered: none.clone(),
            entities: none.clone(),
            lockouts: none,
            lost: BTreeMap::new(),
            defects: BTreeMap::new(),
            violations: BTreeMap::new(),
            calls: false,
            settled: None,
        }
    }

    fn about(&mut self, about: About) -> &mut EndpointSet {
        match about {
            About::Idle => &mut self.idle,
            About::Unanswered => &mut self.unanswered,
            About::Entity => &mut self.entities,
            About::Lockout => &mut self.lockouts,
        }
    }

    fn is_empty(&self) -> bool {
        let endpoints = [&self.idle, &self.unanswered, &self.entities, &self.lockouts].into_iter().all(EndpointSet::is_empty);
        endpoints && self.lost.is_empty() && self.defects.is_empty() && self.violations.is_empty() && !self.calls && self.settled.is_none()
    }

    /// A card saw the line.
    pub fn note_defect(&mut self, facility: Facility, defect: Defect, on: bool, at_once: bool) {
        self.defects.insert((facility, defect), (on, at_once));
    }

    /// A card counted what a framer saw.
    pub fn note_violations(&mut self, facility: Facility, violations: &Violations) {
        self.violations.entry(facility).or_default().add(violations);
    }
}

impl Core {
    /// The notified entity of this endpoint is to be reported.
    pub(super) fn report_entity(&mut self, endpoint: EndpointIndex) {
        if self.calls.endpoints.owns(endpoint) {
            self.reports.entities.insert(endpoint);
        }
    }

    /// So many service states are applied; it is confirmed behind what they made of notified entities.
    pub(super) fn confirm_states(&mut self, states: u64) {
        self.reports.settled = self.reports.settled.max(Some(states));
    }

    /// A command that `endpoint` sent was not answered by any address of its notified entity (G-DIS-01, G-RTX-14).
    pub(super) fn note_unanswered(&mut self, endpoint: EndpointIndex) {
        if self.said(About::Unanswered, endpoint).is_some() {
            self.reports.unanswered.insert(endpoint);
        }
    }

    /// The number of calls up here changed: the lead core is told while some endpoints are leaving.
    pub(super) fn note_calls(&mut self) {
        self.reports.calls |= self.draining;
    }

    /// The signalling of an endpoint met something that operators are told of.
    pub(super) fn note_trouble(&mut self, endpoint: EndpointIndex, trouble: Trouble) {
        match trouble {
            Trouble::Glare => self.counters.add(Counter::TrunkGlare),
            Trouble::Fault => self.counters.add(Counter::TrunkFaults),
            Trouble::Lockout(began) => {
                self.counters.add_many(Counter::TrunkLockouts, began.into());
                self.reports.lockouts.insert(endpoint);
            }
        }
    }

    /// Connections of a span were lost.
    pub(super) fn note_lost(&mut self, span: SpanIndex, count: u32, reason: u16) {
        let sum = self.reports.lost.entry((span, reason)).or_default();
        *sum = sum.saturating_add(count);
    }

    /// An endpoint that is leaving may have lost its last connection (G-RSI-03).
    pub(super) fn note_idle(&mut self, endpoint: EndpointIndex) {
        if self.said(About::Idle, endpoint).is_some() {
            self.reports.idle.insert(endpoint);
        }
    }

    /// Sends what there is room for, a slice of it at most. True: something was sent to this core itself.
    pub(super) fn send_reports<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) -> bool {
        if self.reports.is_empty() {
            return false;
        }
        let before = self.to_self.len();
        let mut left = self.plan.limits.slice.max(1);
        if self.send_all_reports(turn, &mut left).is_err() {
            let retry = if left == 0 { turn.now } else { turn.now + UNSENT_RETRY };
            self.unsent_retry = self.unsent_retry.min(retry);
        }
        self.to_self.len() > before
    }

    fn send_all_reports<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, left: &mut u32) -> Result<(), Full> {
        while let Some((&(facility, defect), &(on, at_once))) = self.reports.defects.first_key_value() {
            self.report(turn, left, Envelope::Defect { facility, defect, on, at_once })?;
            self.reports.defects.pop_first();
        }
        while let Some((&facility, &violations)) = self.reports.violations.first_key_value() {
            self.report(turn, left, Envelope::Violations { facility, violations })?;
            self.reports.violations.pop_first();
        }
        while let Some((&(span, reason), &count)) = self.reports.lost.first_key_value() {
            self.report(turn, left, Envelope::Lost { span, count, reason })?;
            self.reports.lost.pop_first();
        }
        for about in [About::Idle, About::Unanswered, About::Entity, About::Lockout] {
            self.send_about(turn, left, about)?;
        }
        if self.reports.calls {
            let count = self.connections_up();
            self.report(turn, left, Envelope::Calls { count })?;
            self.reports.calls = false;
        }
        if let Some(states) = self.reports.settled {
            self.report(turn, left, Envelope::Settled { states })?;
            self.reports.settled = None;
        }
        Ok(())
    }

    fn send_about<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, left: &mut u32, about: About) -> Result<(), Full> {
        let mut from = 0;
        while let Some(first) = self.reports.about(about).next(from) {
            let Some(said) = self.said(about, first) else {
                // It is not true any more.
                self.reports.about(about).remove(first);
                continue;
            };
            from = first.0;
            let same = |core: &mut Core, next| core.reports.about(about).contains(next) && core.said(about, next) == Some(said);
            let count = (first.0..).take_while(|&next| same(self, EndpointIndex(next))).count() as u32;
            let range = EndpointRange { first: first.0, count };
            self.report(turn, left, said.envelope(range))?;
            self.reports.about(about).remove_range(range);
        }
        Ok(())
    }

    fn report<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, left: &mut u32, envelope: Envelope) -> Result<(), Full> {
        *left = left.checked_sub(1).ok_or(Full)?;
        let lead = self.plan.lead();
        if lead == self.id {
            self.to_self.push_back(envelope);
            return Ok(());
        }
        if turn.out.forward(lead, envelope) { Ok(()) } else { Err(Full) }
    }

    /// What is to be reported of an endpoint as it is now.
    fn said(&self, about: About, endpoint: EndpointIndex) -> Option<Said> {
        if let Some(gateway) = self.gateway_of(endpoint) {
            // A controller is told by its gateway; of what it has, the lead core waits for this alone.
            return (matches!(about, About::Idle) && gateway.is_leaving_and_idle(endpoint)).then_some(Said::Idle);
        }
        let state = self.calls.endpoints.get(endpoint)?;
        match about {
            About::Idle => {
                let leaves = state.service.method == RestartMethod::Graceful;
                (leaves && state.connection_slots().next().is_none()).then_some(Said::Idle)
            }
            About::Unanswered => (state.service.in_service && !self.is_disconnected(endpoint)).then_some(Said::Unanswered),
            About::Entity => {
                let named = self.calls.endpoints.entities.get(state.entity).map(|(agent, port, _)| (agent, port));
                let (agent, port) = match (named, state.entity, state.source) {
                    (Some(named), ..) => named,
                    // The agent heard last from that address has it before its others.
                    (None, EntityId::SOURCE, Some((agent, from))) => (agent, from.port()),
                    _ => (state.provisioned, 0),
                };
                Some(Said::Entity(agent, port))
            }
            About::Lockout => {
                let line = self.calls.card.line_state(endpoint).and_then(State::by_name);
                Some(Said::Lockout(line == Some(State::Lockout)))
            }
        }
    }
}

impl Said {
    fn envelope(self, range: EndpointRange) -> Envelope {
        match self {
            Said::Idle => Envelope::Idle { range },
            Said::Unanswered => Envelope::Unanswered { range },
            Said::Entity(agent, port) => Envelope::Entity { range, agent, port },
            Said::Lockout(on) => Envelope::Lockout { range, on },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::second::{Ring, say, second_core};
    use super::*;
    use crate::proto::base::{AgentId, Time};
    use crate::proto::core::announce::Stage;
    use crate::proto::endpoint::Service;

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
        let mut core = second_core(|_| {});
        let range = core.calls.endpoints.ranges().next().unwrap();
        let mut ring = Ring::default();
        for round in 0..1000 {
            for endpoint in range.iter() {
                name(&mut core, endpoint, 3000 + round % 3);
            }
            ring.tell(&mut core, Envelope::Settle { states: u64::from(round) });
        }
        let last = EndpointIndex(range.first + range.count - 1);
        core.calls.endpoints.set_entity(last, EntityId::SOURCE);
        core.note_entity(last, true);
        assert_eq!((core.unsent.len(), core.to_self.len(), core.reports.entities.count()), (0, 0, range.count));
        assert!(core.deadline() <= Time::ZERO + UNSENT_RETRY);
        for room in 1..=3 {
            ring.room = room;
            ring.turn(&mut core, UNSENT_RETRY);
            assert_eq!(ring.told.len(), room);
        }
        let told: Vec<_> = ring.told.iter().map(|envelope| format!("{envelope:?}")).collect();
        let (most, first, last) = (range.count - 1, range.first, last.0);
        assert!(told[0].contains(&format!("first: {first}, count: {most}")) && told[0].contains("port: 3000"), "{told:?}");
        assert!(told[1].contains(&format!("first: {last}, count: 1")) && told[1].contains("port: 0"), "{told:?}");
        assert!(told[2].contains("Settled { states: 999 }"), "{told:?}");
        assert!(core.reports.is_empty());
    }

    /// Whatever happens while the lead core stands still: it takes no more memory the longer it lasts, and nothing is lost.
    #[test]
    fn what_happens_does_not_pile_up_before_a_stalled_lead_core() {
        let mut core = second_core(|_| {});
        let range = core.calls.endpoints.ranges().next().unwrap();
        let span = core.plan.topology.span_of(EndpointIndex(range.first)).unwrap();
        let mut ring = Ring::default();
        for stage in [Stage::Sent, Stage::Acknowledged] {
            ring.tell(&mut core, say(RestartMethod::Restart, stage));
        }
        let leaving = Service { in_service: true, refusal: 501, method: RestartMethod::Graceful, reason: 901 };
        ring.tell(&mut core, Envelope::Drain { on: true });
        for round in 0..1000 {
            ring.tell(&mut core, Envelope::Service { range, service: leaving });
            core.reports.note_defect(Facility::Span(span), Defect::LossOfSignal, round % 2 == 0, false);
            core.reports.note_defect(Facility::Span(span), Defect::Ais, true, true);
            core.note_lost(span, 2, 905);
            core.note_calls();
            range.iter().for_each(|endpoint| core.note_unanswered(endpoint));
            ring.turn(&mut core, UNSENT_RETRY);
        }
        assert_eq!((core.unsent.len(), core.to_self.len(), ring.told.len()), (0, 0, 0));
        // The last endpoint comes back into service meanwhile.
        let last = EndpointRange { first: range.first + range.count - 1, count: 1 };
        ring.tell(&mut core, Envelope::Service { range: last, service: Service { method: RestartMethod::Restart, reason: 0, ..leaving } });
        ring.room = 100;
        ring.turn(&mut core, UNSENT_RETRY);
        let mut told: Vec<_> = ring.told.iter().map(|envelope| format!("{envelope:?}")).collect();
        told.sort();
        let expected = [
            "Calls { count: 0 }".to_owned(),
            format!("Defect {{ facility: Span(SpanIndex({})), defect: Ais, on: true, at_once: true }}", span.0),
            format!("Defect {{ facility: Span(SpanIndex({})), defect: LossOfSignal, on: false, at_once: false }}", span.0),
            format!("Idle {{ range: EndpointRange {{ first: {}, count: {} }} }}", range.first, range.count - 1),
            format!("Lost {{ span: SpanIndex({}), count: 2000, reason: 905 }}", span.0),
            format!("Unanswered {{ range: EndpointRange {{ first: {}, count: {} }} }}", range.first, range.count),
        ];
        assert_eq!(told, expected);
        assert!(core.reports.is_empty());
    }
}
