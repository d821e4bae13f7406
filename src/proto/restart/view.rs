//! What operators see: states of endpoints, alarms, announcements.

use super::RestartMethod;
use super::coordinator::{Coordinator, Phase};
use super::ledger::{Announcement, Status};
use super::service::{Admin, Want};
use crate::proto::aggregate::Pattern;
use crate::proto::base::{EndpointIndex, Time};
use crate::proto::trunk::{Facility, Failure, Monitor, Performance, SpanIndex};

/// The states of one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndpointView {
    /// The administrative state.
    pub admin: Admin,
    /// The operational state: why its span or T3 is down.
    pub failure: Option<Failure>,
    /// Whether it is in service, all in all.
    pub in_service: bool,
    /// The group of its notified entity.
    pub group: u16,
    /// The announcement that last covered it.
    pub announcement: Option<AnnouncementView>,
}

/// One RSIP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnnouncementView {
    /// The endpoints it named.
    pub pattern: Pattern,
    /// How many of them nothing newer was said about.
    pub endpoints: u32,
    /// The group it went to.
    pub group: u16,
    /// RM.
    pub method: RestartMethod,
    /// E; 0 for none.
    pub reason: u16,
    /// When it was last sent; the start of time when not yet.
    pub sent: Time,
    /// The code of the last answer; 0 for none.
    pub reply: u16,
    /// How it stands.
    pub state: AnnouncementState,
}

/// How an announcement stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnnouncementState {
    /// To be sent at this time.
    Waiting(Time),
    /// Sent, no answer yet.
    Outstanding,
    /// The agent knows.
    Confirmed,
    /// Refused for good, until a command comes.
    Stopped,
}

/// A failed facility.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alarm {
    /// Which.
    pub facility: Facility,
    /// What.
    pub failure: Failure,
    /// Since when it is failed.
    pub since: Time,
    /// How grave that is.
    pub severity: Severity,
    /// Its T3 is failed too, which explains it.
    pub covered: bool,
}

/// How grave an alarm is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Explained by another alarm, or made on purpose.
    Minor,
    /// One span is down.
    Major,
    /// A T3 is down.
    Critical,
}

impl Coordinator {
    /// One endpoint; `None` when there is no such endpoint.
    pub fn endpoint(&self, endpoint: EndpointIndex) -> Option<EndpointView> {
        let span = self.topology.span_of(endpoint)?;
        let t3 = self.topology.span(span)?.t3.map(Facility::T3);
        let slot = self.ledger.slot_of(endpoint);
        Some(EndpointView {
            admin: self.admin_of(endpoint),
            failure: t3.and_then(|t3| self.facilities.failure(t3)).or(self.facilities.failure(Facility::Span(span))),
            in_service: matches!(self.want_of(endpoint), Want::In | Want::Leaving),
            group: self.group.get(endpoint.0 as usize).copied()?,
            announcement: slot.and_then(|slot| self.ledger.get(slot)).and_then(view),
        })
    }

    /// Every alarm: T3s first, then spans.
    pub fn alarms(&self) -> impl Iterator<Item = Alarm> + '_ {
        self.facilities.failed(&self.topology).map(|failed| {
            let severity = match (failed.facility, failed.failure) {
                (_, Failure::Loopback | Failure::AisSent) => Severity::Minor,
                _ if failed.covered => Severity::Minor,
                (Facility::T3(_), _) => Severity::Critical,
                (Facility::Span(_), _) => Severity::Major,
            };
            Alarm { facility: failed.facility, failure: failed.failure, since: failed.since, severity, covered: failed.covered }
        })
    }

    /// The group of an endpoint's notified entity.
    pub fn group(&self, endpoint: EndpointIndex) -> u16 {
        self.group.get(endpoint.0 as usize).copied().unwrap_or(0)
    }

    /// The administrative state of an endpoint.
    pub fn admin(&self, endpoint: EndpointIndex) -> Admin {
        self.admin_of(endpoint)
    }

    /// Since when the gateway drains, or ends.
    pub fn leaving_since(&self) -> Option<Time> {
        match self.phase {
            Phase::Leaving { started, .. } => Some(started),
            _ => self.drained,
        }
    }

    /// Since when operators hold endpoints of a span out of service, or take them out of it.
    pub fn held_since(&self, span: SpanIndex) -> Option<Time> {
        self.held.get(usize::from(span.0)).filter(|(count, _)| *count > 0).map(|(_, since)| *since)
    }

    /// How many places for announcements there are.
    pub fn announcement_places(&self) -> u32 {
        self.ledger.places()
    }

    /// The announcement in a place, if some endpoint was last covered by it.
    pub fn announcement(&self, place: u32) -> Option<AnnouncementView> {
        self.ledger.get(place).and_then(view)
    }

    /// Every announcement that some endpoint was last covered by.
    pub fn announcements(&self) -> impl Iterator<Item = AnnouncementView> + '_ {
        self.ledger.entries().filter_map(view)
    }

    /// The defects of a facility and its performance, counted until `now`.
    pub fn performance(&mut self, now: Time, facility: Facility) -> Option<(&Monitor, &Performance)> {
        self.facilities.performance(now, facility)
    }

    /// The line status word of a facility (dsx1LineStatus, dsx3LineStatus).
    pub fn line_status(&self, facility: Facility) -> u32 {
        self.facilities.line_status(facility)
    }
}

fn view(entry: &Announcement) -> Option<AnnouncementView> {
    let state = match entry.status {
        Status::Filling => return None,
        Status::Waiting(due) => AnnouncementState::Waiting(due),
        Status::Outstanding => AnnouncementState::Outstanding,
        Status::Confirmed => AnnouncementState::Confirmed,
        Status::Stopped => AnnouncementState::Stopped,
    };
    Some(AnnouncementView {
        pattern: entry.pattern,
        endpoints: entry.live,
        group: entry.group,
        method: entry.method,
        reason: entry.reason.0,
        sent: entry.sent,
        reply: entry.reply,
        state,
    })
}
