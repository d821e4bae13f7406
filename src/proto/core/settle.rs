//! A RestartInProgress must be true when the agent has it: the lead core sends it when the owners of its endpoints have confirmed that
//! they apply the service states ordered before it (docs/decisions/lead-core.md).
//!
//! Pure book-keeping: how many states each owner was told, how many it has confirmed, and the RestartInProgress commands that wait.
//! An owner that does not confirm in time is not waited for any more until it does. The lead core is an owner like any other.

use crate::proto::aggregate::Pattern;
use crate::proto::base::{CoreId, EndpointIndex, EndpointRange, Time};
use crate::proto::mgcp::Restart;
use crate::proto::plan::Plan;
use crate::proto::restart::Handle;
use crate::proto::trunk::Cursor;

/// A RestartInProgress the coordinator ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ordered {
    pub handle: Handle,
    pub group: u16,
    pub restart: Restart,
}

/// What one owner was told and has confirmed, in service states since the start.
#[derive(Clone, Copy, Default)]
struct Owner {
    told: u64,
    asked: u64,
    confirmed: u64,
    /// It let a deadline pass, and has said nothing since.
    late: bool,
}

/// One that waits: for which owners, and for how many states of each.
struct Held {
    ordered: Ordered,
    waits: Vec<(CoreId, u64)>,
    until: Time,
}

/// See the module page.
pub(super) struct Settling {
    /// By core.
    owners: Vec<Owner>,
    /// In the order in which they came.
    held: Vec<Held>,
}

/// What becomes of a RestartInProgress.
pub(super) enum Verdict {
    /// Send it. False: an owner is late, so it may not be true there yet.
    Send(bool),
    /// It waits; these owners are to be asked, with the number of states each was told.
    Wait(Vec<(CoreId, u64)>),
}

impl Settling {
    pub fn new(plan: &Plan) -> Settling {
        Settling { owners: vec![Owner::default(); usize::from(plan.cores)], held: Vec::new() }
    }

    /// A service state of these endpoints was told to their owners.
    pub fn told(&mut self, plan: &Plan, endpoints: EndpointRange) {
        for core in owners_of(plan, endpoints) {
            if let Some(owner) = self.owners.get_mut(usize::from(core.0)) {
                owner.told += 1;
            }
        }
    }

    /// How many service states a core was told.
    pub fn told_to(&self, core: CoreId) -> u64 {
        self.owners.get(usize::from(core.0)).map_or(0, |owner| owner.told)
    }

    /// A RestartInProgress that is not to wait longer than `until`.
    pub fn order(&mut self, plan: &Plan, ordered: Ordered, until: Time) -> Verdict {
        let (mut waits, mut ask, mut late) = (Vec::new(), Vec::new(), false);
        for core in owners_of_pattern(plan, &ordered.restart.pattern) {
            let Some(owner) = self.owners.get_mut(usize::from(core.0)) else { continue };
            if owner.confirmed == owner.told {
                continue;
            }
            if owner.late {
                late = true;
                continue;
            }
            waits.push((core, owner.told));
            if owner.asked != owner.told {
                owner.asked = owner.told;
                ask.push((core, owner.told));
            }
        }
        if waits.is_empty() {
            return Verdict::Send(!late);
        }
        self.held.push(Held { ordered, waits, until });
        Verdict::Wait(ask)
    }

    /// An owner confirmed. What need not wait any more comes from [`Settling::next_settled`].
    pub fn confirmed(&mut self, core: CoreId, states: u64) {
        if let Some(owner) = self.owners.get_mut(usize::from(core.0)) {
            owner.confirmed = owner.confirmed.max(states);
            owner.late = false;
        }
        for held in &mut self.held {
            held.waits.retain(|&(other, wanted)| other != core || wanted > states);
        }
    }

    /// The next that waits for nobody.
    pub fn next_settled(&mut self) -> Option<Ordered> {
        let place = self.held.iter().position(|held| held.waits.is_empty())?;
        Some(self.held.remove(place).ordered)
    }

    /// The next that has waited long enough.
    pub fn next_overdue(&mut self, now: Time) -> Option<Ordered> {
        let place = self.held.iter().position(|held| held.until <= now)?;
        let held = self.held.remove(place);
        for (core, _) in held.waits {
            if let Some(owner) = self.owners.get_mut(usize::from(core.0)) {
                owner.late = true;
            }
        }
        Some(held.ordered)
    }

    /// Its endpoints have another notified entity.
    pub fn redirect(&mut self, handle: Handle, group: u16) {
        for held in self.held.iter_mut().filter(|held| held.ordered.handle == handle) {
            held.ordered.group = group;
        }
    }

    /// It is not true any more.
    pub fn cancel(&mut self, handle: Handle) {
        self.held.retain(|held| held.ordered.handle != handle);
    }

    /// When to ask [`Settling::next_overdue`].
    pub fn deadline(&self) -> Time {
        self.held.iter().map(|held| held.until).min().unwrap_or(Time::NEVER)
    }
}

/// The owners of the endpoints of a name, each once.
fn owners_of_pattern(plan: &Plan, pattern: &Pattern) -> Vec<CoreId> {
    let selection = pattern.selection(&plan.topology);
    let (mut owners, mut cursor) = (Vec::new(), Cursor::default());
    while owners.len() < plan.owners.len()
        && let Some(range) = selection.next(&plan.topology, &mut cursor, u32::MAX)
    {
        for core in owners_of(plan, range) {
            if !owners.contains(&core) {
                owners.push(core);
            }
        }
    }
    owners
}

/// The owners of these endpoints, each once.
fn owners_of(plan: &Plan, endpoints: EndpointRange) -> Vec<CoreId> {
    let mut owners = Vec::new();
    for (owner, _) in pieces(plan, endpoints) {
        if !owners.contains(&owner) {
            owners.push(owner);
            if owners.len() == plan.owners.len() {
                break;
            }
        }
    }
    owners
}

/// These endpoints span by span, each of which has one owner.
pub(super) fn pieces(plan: &Plan, endpoints: EndpointRange) -> impl Iterator<Item = (CoreId, EndpointRange)> {
    let (mut next, end) = (endpoints.first, endpoints.first.saturating_add(endpoints.count));
    std::iter::from_fn(move || {
        let first = EndpointIndex(next);
        let span = plan.topology.span_of(first).and_then(|span| plan.topology.span(span)).filter(|_| next < end)?;
        next = end.min(span.endpoints.first + span.endpoints.count);
        Some((plan.owner(first), EndpointRange { first: first.0, count: next - first.0 }))
    })
}
