//! What the lead core ordered while a ring had no room: of each endpoint that orders were missed, not which, so that a core that
//! stands still costs no memory, however long. When there is room again its core is told what holds then ([`Envelope::Anew`]), in as few
//! words as there are different states, and no restart, loss of connections or change of entity is left out.
//!
//! One bit for each endpoint and kind of thing missed, one reason for each span, and for each core the numbers of RestartInProgress
//! commands. While a core is behind nothing is sent to it but this, so that orders do not overtake each other.

use super::announce::{Announcement, Stage, begins_contact};
use super::envelope::Envelope;
use super::lead::Lead;
use super::outside::{Frames, Outside, Turn};
use super::settle::pieces;
use super::{Core, CoreSet, UNSENT_RETRY};
use crate::proto::aggregate::{EndpointSet, Pattern};
use crate::proto::base::{AgentId, CoreId, Counter, EndpointIndex, EndpointRange, Time};
use crate::proto::endpoint::{Announcement as Told, RestartMethod, Service};
use crate::proto::mgcp::{Restart, event};
use crate::proto::plan::Plan;
use crate::proto::restart::{self, Heard};
use crate::proto::trunk::Cursor;
use std::collections::BTreeSet;
use std::time::Duration;

/// What an owner is to make of endpoints after it missed orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// They went out of service meanwhile, for this reason.
    went_out: Option<u16>,
    /// What they are now.
    service: Service,
    /// Their notified entity was changed meanwhile, to this port of this agent.
    entity: Option<(AgentId, u16)>,
    /// How far their announcement is.
    told: Told,
    /// Since when they are disconnected, if they are.
    disconnected: Option<Time>,
    /// In how many seconds they leave; 0: no time is set.
    leaves_in_s: u32,
    /// Their agent answered a RestartInProgress about them meanwhile, so what waited for that goes on (G-DIS-10).
    answered: bool,
}

/// See the module page.
pub struct Missed {
    /// Endpoints that orders were missed about.
    endpoints: EndpointSet,
    /// Those that were ordered out of service, and the latest reason by span.
    went_out: EndpointSet,
    reasons: Box<[u16]>,
    /// Those whose notified entity was changed.
    renamed: EndpointSet,
    /// Those whose restart or disconnect was answered.
    answered: EndpointSet,
    /// What else, by core, and how many of them are behind.
    cores: Box<[Others]>,
    behind: usize,
}

#[derive(Clone, Default)]
struct Others {
    /// It missed something, and has not been told everything since.
    is_behind: bool,
    /// RestartInProgress commands by number, no more than were ever out at a time.
    numbers: BTreeSet<u32>,
    drain: Option<bool>,
    /// It is to say when service states are applied.
    settles: bool,
}

impl Missed {
    pub(super) fn new(plan: &Plan) -> Missed {
        let none = EndpointSet::new(plan.topology.len());
        Missed {
            endpoints: none.clone(),
            went_out: none.clone(),
            reasons: vec![0; plan.topology.spans().len()].into(),
            renamed: none.clone(),
            answered: none,
            cores: vec![Others::default(); usize::from(plan.cores)].into(),
            behind: 0,
        }
    }

    /// Octets of it for a gateway of so many endpoints and T1s or E1s; all there is, however long a core is behind.
    pub fn memory(endpoints: u64, spans: u64) -> u64 {
        4 * endpoints.div_ceil(8) + size_of::<u16>() as u64 * spans
    }

    fn is_behind(&self, core: CoreId) -> bool {
        self.cores.get(usize::from(core.0)).is_some_and(|others| others.is_behind)
    }

    fn is_anybody_behind(&self) -> bool {
        self.behind > 0
    }

    /// Notes that a core missed this; false when it is no order.
    fn note(&mut self, plan: &Plan, core: CoreId, order: &Envelope) -> bool {
        let Some(others) = self.cores.get_mut(usize::from(core.0)) else { return false };
        match order {
            Envelope::Settle { .. } => others.settles = true,
            Envelope::Drain { on } => others.drain = Some(*on),
            Envelope::Announce(announcement) => {
                others.numbers.insert(announcement.number);
                let answered = announcement.stage == Stage::Acknowledged && begins_contact(announcement.restart.method);
                each_piece(plan, &announcement.restart.pattern, |range| {
                    self.note_endpoints(plan, core, range);
                    owned(plan, core, range).filter(|_| answered).for_each(|piece| self.answered.insert_range(piece));
                });
            }
            Envelope::NotifiedEntity { pattern, .. } => each_piece(plan, pattern, |range| {
                self.note_endpoints(plan, core, range);
                owned(plan, core, range).for_each(|piece| self.renamed.insert_range(piece));
            }),
            Envelope::Disconnected { range } => self.note_endpoints(plan, core, *range),
            Envelope::Service { range, service } => {
                self.note_endpoints(plan, core, *range);
                for piece in owned(plan, core, *range).filter(|_| !service.in_service) {
                    self.went_out.insert_range(piece);
                    // Coming back, it notifies whom it was provisioned with.
                    self.renamed.remove_range(piece);
                    if let Some(reason) = self.reasons.get_mut(span_of(plan, piece.first)) {
                        *reason = service.reason;
                    }
                }
            }
            _ => return false,
        }
        if let Some(others) = self.cores.get_mut(usize::from(core.0)) {
            self.behind += usize::from(!std::mem::replace(&mut others.is_behind, true));
        }
        true
    }

    fn note_endpoints(&mut self, plan: &Plan, core: CoreId, range: EndpointRange) {
        owned(plan, core, range).for_each(|piece| self.endpoints.insert_range(piece));
    }

    fn forget(&mut self, range: EndpointRange) {
        for set in [&mut self.endpoints, &mut self.went_out, &mut self.renamed, &mut self.answered] {
            set.remove_range(range);
        }
    }
}

/// The parts of `range` that `core` owns, each on one span.
fn owned(plan: &Plan, core: CoreId, range: EndpointRange) -> impl Iterator<Item = EndpointRange> {
    pieces(plan, range).filter(move |(owner, _)| *owner == core).map(|(_, piece)| piece)
}

fn each_piece(plan: &Plan, pattern: &Pattern, mut take: impl FnMut(EndpointRange)) {
    let (selection, mut cursor) = (pattern.selection(&plan.topology), Cursor::default());
    while let Some(range) = selection.next(&plan.topology, &mut cursor, u32::MAX) {
        take(range);
    }
}

fn span_of(plan: &Plan, endpoint: u32) -> usize {
    plan.topology.span_of(EndpointIndex(endpoint)).map_or(usize::MAX, |span| usize::from(span.0))
}

impl Lead {
    /// Tells cores that are behind what there is room for, a slice of it at most; when to go on. `full`: those with something to hear before.
    fn tell_missed<F: Frames, O: Outside>(&mut self, plan: &Plan, turn: &mut Turn<'_, F, O>, mut full: CoreSet) -> Time {
        if !self.missed.is_anybody_behind() {
            return Time::NEVER;
        }
        // What is not worked in yet would be told half.
        if !self.coordinator().is_at_rest() {
            return turn.now + UNSENT_RETRY;
        }
        for core in (0..plan.cores).map(CoreId) {
            if !full.contains(core) && !self.tell_announcements(turn, core) {
                full.insert(core);
            }
        }
        let all = self.tell_endpoints(plan, turn, &mut full);
        for core in (0..plan.cores).map(CoreId).filter(|core| all && !full.contains(*core)) {
            self.tell_others(turn, core);
        }
        match (self.missed.is_anybody_behind(), all) {
            (false, _) => Time::NEVER,
            (true, true) => turn.now + UNSENT_RETRY,
            (true, false) => turn.now,
        }
    }

    /// How far each RestartInProgress is that `core` missed something about: those that are over go in front of nothing, and what became of
    /// their endpoints is told with these. False: the ring is full.
    fn tell_announcements<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, core: CoreId) -> bool {
        while let Some(&number) = self.missed.cores.get(usize::from(core.0)).and_then(|others| others.numbers.first()) {
            let restart = Restart { pattern: Pattern::Gateway, method: RestartMethod::Restart, delay_s: 0, reason: 0 };
            let over = Announcement { number, transaction: 0, restart, stage: Stage::Withdrawn };
            if !turn.out.forward(core, Envelope::Announce(self.announcement(number).unwrap_or(over))) {
                return false;
            }
            if let Some(others) = self.missed.cores.get_mut(usize::from(core.0)) {
                others.numbers.pop_first();
            }
        }
        true
    }

    /// What endpoints are that orders were missed about. False: there is more to look at than in one turn.
    fn tell_endpoints<F: Frames, O: Outside>(&mut self, plan: &Plan, turn: &mut Turn<'_, F, O>, full: &mut CoreSet) -> bool {
        let (mut from, mut left) = (0, plan.limits.slice.max(1));
        while let Some(first) = self.missed.endpoints.next(from) {
            if left == 0 {
                return false;
            }
            let rest = EndpointRange { first: first.0, count: plan.topology.len().saturating_sub(first.0) };
            let Some((owner, rest)) = pieces(plan, rest).next() else { break };
            from = rest.first + rest.count;
            if full.contains(owner) {
                continue;
            }
            let Some(standing) = self.standing(plan, turn.now, first) else {
                self.missed.forget(EndpointRange { first: first.0, count: 1 });
                from = first.0 + 1;
                continue;
            };
            let same =
                |next: &EndpointIndex| self.missed.endpoints.contains(*next) && self.standing(plan, turn.now, *next) == Some(standing);
            let count = rest.iter().take_while(same).count() as u32;
            let range = EndpointRange { first: first.0, count };
            if turn.out.forward(owner, Envelope::Anew { range, standing }) {
                self.missed.forget(range);
                from = range.first + range.count;
            } else {
                full.insert(owner);
            }
            left = left.saturating_sub(count);
        }
        true
    }

    fn tell_others<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, core: CoreId) {
        let states = self.settling.told_to(core);
        let Some(others) = self.missed.cores.get_mut(usize::from(core.0)) else { return };
        if let Some(on) = others.drain {
            if !turn.out.forward(core, Envelope::Drain { on }) {
                return;
            }
            others.drain = None;
        }
        if others.settles && !turn.out.forward(core, Envelope::Settle { states }) {
            return;
        }
        others.settles = false;
        self.missed.behind -= usize::from(std::mem::replace(&mut others.is_behind, false));
    }

    /// What the orders about `endpoint` amount to.
    fn standing(&self, plan: &Plan, now: Time, endpoint: EndpointIndex) -> Option<Standing> {
        let known = self.coordinator().standing(now, endpoint)?;
        let restart::Service { in_service, method, reason, return_code: refusal, .. } = known.service;
        let told = match known.heard {
            Heard::UnderWay(handle) => self.number_of(handle).map_or(Told::Waiting, Told::Outstanding),
            Heard::Nothing | Heard::CutOff => Told::Waiting,
            Heard::All => Told::Done,
        };
        let reason_out = self.missed.reasons.get(span_of(plan, endpoint.0)).copied().unwrap_or_default();
        Some(Standing {
            went_out: self.missed.went_out.contains(endpoint).then_some(reason_out),
            service: Service { in_service, refusal, method, reason },
            entity: self.missed.renamed.contains(endpoint).then(|| self.group_entity(self.coordinator().group(endpoint))),
            told,
            disconnected: known.cut_off,
            leaves_in_s: known.leaves_in_s,
            answered: self.missed.answered.contains(endpoint),
        })
    }
}

impl Core {
    /// Orders something of another core. What its ring has no room for is told anew when there is, and so is what would overtake
    /// something that must arrive there first.
    pub(super) fn order_of<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, to: CoreId, order: Envelope) {
        if to == self.id {
            return self.to_self.push_back(order);
        }
        let Some(lead) = &mut self.lead else { return };
        if !self.unsent_to.contains(to) && !lead.missed.is_behind(to) && turn.out.forward(to, order) {
            return;
        }
        self.counters.add(Counter::OrdersMissed);
        if lead.missed.note(&self.plan, to, &order) {
            self.unsent_retry = self.unsent_retry.min(turn.now + UNSENT_RETRY);
        } else {
            self.must_tell(turn, to, order);
        }
    }

    /// Goes on with what cores have missed.
    pub(super) fn tell_missed<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        if let Some(lead) = &mut self.lead {
            self.unsent_retry = self.unsent_retry.min(lead.tell_missed(&self.plan, turn, self.unsent_to));
        }
    }

    /// From the lead core: what these endpoints are, behind orders that this core has not seen.
    pub(super) fn apply_anew<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, range: EndpointRange, standing: &Standing) {
        if let (Some(reason), true) = (standing.went_out, standing.service.in_service) {
            let out = Service { in_service: false, refusal: standing.service.refusal, method: RestartMethod::Forced, reason };
            self.apply_service(turn, range, out);
        }
        self.apply_service(turn, range, standing.service);
        if let Some((agent, port)) = standing.entity {
            self.apply_notified_entity(range, agent, port);
        }
        let leaves_at = (standing.leaves_in_s > 0).then(|| turn.now + Duration::from_secs(standing.leaves_in_s.into()));
        for endpoint in range.iter() {
            let Some(state) = self.calls.endpoints.get_mut(endpoint) else { continue };
            state.leaves_at = leaves_at;
            if !standing.service.in_service {
                // An agent that has confirmed what they were need not hear of the end first.
                if state.announcement != Told::Done {
                    state.announcement = standing.told;
                }
                continue;
            }
            let told = standing.told;
            let before = std::mem::replace(&mut state.announcement, told);
            if let (Some(since), false) = (standing.disconnected, state.disconnected) {
                state.disconnected_at = since;
                self.counters.add(Counter::EndpointsDisconnected);
            }
            state.disconnected = standing.disconnected.is_some();
            // It may have been in contact as far as it knew all along, though a Notify was lost: the disconnect was missed too.
            if told == Told::Done && (before != Told::Done || standing.answered) {
                event::in_contact(&mut self.calls, turn.now, endpoint);
            }
        }
        self.release_deletes(turn.now, range);
    }
}

#[cfg(test)]
mod tests;
