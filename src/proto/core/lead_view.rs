//! What operators see of the lead core: states of endpoints, facilities, alarms, announcements, agents that do not answer. Answered in
//! slices.

use super::Core;
use super::lead::Lead;
use super::operator::{Answer, Ask, Request};
use crate::proto::base::{AgentId, EndpointIndex, EndpointRange, Time};
use crate::proto::cac::{Amount, ScopeId};
use crate::proto::restart::{self, Admin};
use crate::proto::trunk::{Facility, SpanIndex};

/// What the restart coordinator knows of facilities.
#[derive(Clone, Debug, Default)]
pub struct FacilitiesView {
    /// Every facility with its line status word (dsx1LineStatus, dsx3LineStatus).
    pub facilities: Vec<(Facility, u32)>,
    /// What has failed.
    pub alarms: Vec<restart::Alarm>,
    /// What was announced, and to whom: the agent and its port, 0 for the provisioned addresses.
    pub announcements: Vec<(restart::AnnouncementView, AgentId, u16)>,
    /// Spans with endpoints an operator has taken out of service.
    pub held: Vec<HeldView>,
    /// Spans with endpoints whose far end holds the line off-hook after its call.
    pub lockouts: Vec<LockoutView>,
    /// Agents (and ports) that did not answer a command of ours within T-MAX and have answered no RestartInProgress since; since when.
    pub unanswering: Vec<(AgentId, u16, Time)>,
    /// Whether the gateway takes no new calls.
    pub draining: bool,
    /// Since when.
    pub draining_since: Option<Time>,
    /// Scopes of admission of which much is in use: of what.
    pub warnings: Vec<(ScopeId, Amount)>,
}

/// Calls of one span that ended because it went out of service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossView {
    /// Which.
    pub span: SpanIndex,
    /// Why, 900..=905.
    pub reason: u16,
    /// How many connections.
    pub connections: u32,
}

/// The end of the process, as far as agents must be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShutdownView {
    /// It was ordered.
    pub begun: bool,
    /// Nothing more will be said.
    pub complete: bool,
    /// Agents (and ports) that have not confirmed what they were told last.
    pub untold: Vec<(AgentId, u16)>,
}

/// A span with channels that no call can be made on, because their far ends hold the line off-hook after a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockoutView {
    /// Which.
    pub span: SpanIndex,
    /// How many of its endpoints.
    pub locked: u32,
    /// All its endpoints.
    pub endpoints: u32,
    /// Since when there are some of them.
    pub since: Time,
}

/// A span an operator holds out of service, or some of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldView {
    /// Which.
    pub span: SpanIndex,
    /// Endpoints blocked.
    pub blocked: u32,
    /// Endpoints leaving.
    pub leaving: u32,
    /// All its endpoints.
    pub endpoints: u32,
    /// Since when there are some of them.
    pub since: Option<Time>,
}

impl Core {
    /// Answers what only the lead core knows; true when the answer is whole.
    pub(super) fn lead_answer(&self, request: &mut Request) -> bool {
        let Some(lead) = &self.lead else {
            request.answer = Answer::Refused("only the lead core knows");
            return true;
        };
        let slice = self.plan.limits.slice.max(1);
        match &request.ask {
            Ask::Shutdown => request.answer = Answer::Shutdown(lead.shutdown_view()),
            Ask::States(selection) => {
                let range = selection.next(&self.plan.topology, &mut request.cursor, slice);
                let states = range.into_iter().flat_map(EndpointRange::iter).filter_map(|e| Some((e, lead.coordinator().endpoint(e)?)));
                match &mut request.answer {
                    Answer::States(list) => list.extend(states),
                    answer => *answer = Answer::States(states.collect()),
                }
                return range.is_none();
            }
            _ => {
                let mut view = match std::mem::replace(&mut request.answer, Answer::Done) {
                    Answer::Facilities(view) => view,
                    _ => FacilitiesView::default(),
                };
                let progress = self.facilities_slice(lead, &mut view, request.position, slice);
                if matches!(progress, Progress::Done) {
                    view.warnings = self.admissions.warnings();
                }
                request.answer = Answer::Facilities(view);
                match progress {
                    Progress::Next(announcement, endpoint) => request.position = (announcement, endpoint),
                    Progress::Done => return true,
                }
                return false;
            }
        }
        true
    }

    /// The next slice: announcements, then endpoints, then all that is short. True when nothing is left.
    fn facilities_slice(&self, lead: &Lead, view: &mut FacilitiesView, (place, first): (u32, u32), slice: u32) -> Progress {
        let (coordinator, topology) = (lead.coordinator(), &self.plan.topology);
        let places = coordinator.announcement_places();
        if place < places {
            let end = places.min(place.saturating_add(slice));
            for announcement in (place..end).filter_map(|place| coordinator.announcement(place)) {
                let (agent, port) = lead.group_entity(announcement.group);
                view.announcements.push((announcement, agent, port));
            }
            return Progress::Next(end, first);
        }
        if first < topology.len() {
            let range = EndpointRange { first, count: slice.min(topology.len() - first) };
            range.iter().for_each(|endpoint| self.note_held(lead, view, endpoint));
            return Progress::Next(place, first + range.count);
        }
        view.facilities = topology.facilities().map(|facility| (facility, coordinator.line_status(facility))).collect();
        view.alarms = coordinator.alarms().collect();
        view.lockouts = lead.lockouts(&self.plan).collect();
        view.unanswering = lead.unanswering();
        view.draining = self.draining;
        view.draining_since = coordinator.leaving_since();
        Progress::Done
    }

    fn note_held(&self, lead: &Lead, view: &mut FacilitiesView, endpoint: EndpointIndex) {
        let (blocked, leaving) = match lead.coordinator().admin(endpoint) {
            Admin::Unblocked => return,
            Admin::Blocked => (1, 0),
            Admin::Leaving(_) => (0, 1),
        };
        let Some(span) = self.plan.topology.span_of(endpoint) else { return };
        match view.held.last_mut() {
            Some(held) if held.span == span => {
                held.blocked += blocked;
                held.leaving += leaving;
            }
            _ => {
                let endpoints = self.plan.topology.endpoints_of(Facility::Span(span)).count;
                let since = lead.coordinator().held_since(span);
                view.held.push(HeldView { span, blocked, leaving, endpoints, since });
            }
        }
    }
}

/// How far an answer is.
enum Progress {
    /// Go on with this announcement and this endpoint.
    Next(u32, u32),
    Done,
}
