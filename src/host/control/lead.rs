//! What only the lead core knows and does: administrative state, failures of facilities, restart messages.

use super::Gateway;
use super::protocol::{Failure, How};
use super::view::RestartRow;
use crate::proto::aggregate::{PATTERN_NAME_MAX, Pattern};
use crate::proto::base::{EndpointIndex, Time};
use crate::proto::core::{Administration, Answer, Ask, FacilitiesView};
use crate::proto::plan::Plan;
use crate::proto::restart::{Admin, AnnouncementState, AnnouncementView, BlockHow, EndpointView};
use crate::proto::trunk::Selection;
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

impl Gateway {
    /// Takes endpoints out of service.
    pub(super) fn block(&self, name: &str, selection: Selection, how: How) -> Result<String, Failure> {
        let (how, when) = match how {
            How::Idle => (BlockHow::Graceful(Duration::ZERO), "each leaves service when its calls have ended".to_owned()),
            How::Graceful(0) | How::Force => (BlockHow::Force, "out of service".to_owned()),
            How::Graceful(seconds) => (
                BlockHow::Graceful(Duration::from_secs(seconds.into())),
                format!("out of service in {seconds} s, whatever calls are up then; at once if there are none now"),
            ),
        };
        self.administer(Administration::Block(selection, how))?;
        Ok(format!("{name}: {}: {when}", self.counted(&selection)))
    }

    /// Gives endpoints back.
    pub(super) fn unblock(&self, name: &str, selection: Selection) -> Result<String, Failure> {
        self.administer(Administration::Unblock(selection))?;
        Ok(format!("{name}: {}: unblocked", self.counted(&selection)))
    }

    /// No new calls anywhere, or takes them again.
    pub(super) fn drain(&self, on: bool) -> Result<String, Failure> {
        self.administer(Administration::Drain(on))?;
        Ok(if on { "no new calls are taken; those that are up stay".into() } else { "new calls are taken".into() })
    }

    /// States of these endpoints as the lead core has them; none when it is silent.
    pub(super) fn states(&self, selection: Selection, silent: &mut Vec<u8>) -> BTreeMap<EndpointIndex, EndpointView> {
        match self.ask(&[self.cores.plan.lead()], &Ask::States(selection), silent).pop() {
            Some((_, Answer::States(list))) => list.into_iter().collect(),
            _ => BTreeMap::new(),
        }
    }

    /// Facilities, alarms and announcements; nothing when the lead core is silent.
    pub(super) fn facilities(&self, silent: &mut Vec<u8>) -> Option<FacilitiesView> {
        match self.ask(&[self.cores.plan.lead()], &Ask::Facilities, silent).pop() {
            Some((_, Answer::Facilities(view))) => {
                *self.last_known.lock().unwrap_or_else(PoisonError::into_inner) = Some(view.clone());
                Some(view)
            }
            _ => None,
        }
    }

    /// The same; while the lead core is silent what it said last.
    pub(super) fn facilities_as_known(&self, silent: &mut Vec<u8>) -> Option<FacilitiesView> {
        self.facilities(silent).or_else(|| self.last_known.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn administer(&self, order: Administration) -> Result<(), Failure> {
        self.order(self.cores.plan.lead(), Ask::Administer(order)).map(drop)
    }

    fn counted(&self, selection: &Selection) -> String {
        match selection.count(&self.cores.plan.topology) {
            1 => "1 endpoint".into(),
            count => format!("{count} endpoints"),
        }
    }
}

/// The word for an administrative state.
pub fn admin_word(admin: Admin) -> &'static str {
    match admin {
        Admin::Unblocked => "unblocked",
        Admin::Leaving(_) => "leaving",
        Admin::Blocked => "blocked",
    }
}

/// An announcement.
pub fn restart_row(plan: &Plan, now: Time, view: &AnnouncementView, port: u16) -> RestartRow {
    let (state, due) = match view.state {
        AnnouncementState::Waiting(due) => ("waiting", Some(due)),
        AnnouncementState::Outstanding => ("sent", None),
        AnnouncementState::Confirmed => ("told", None),
        AnnouncementState::Stopped => ("refused", None),
    };
    RestartRow {
        name: pattern_name(plan, &view.pattern),
        endpoints: view.endpoints,
        method: view.method.keyword().into(),
        reason: view.reason,
        state: state.into(),
        port: (port != 0).then_some(port),
        reply: (view.reply != 0).then_some(view.reply),
        due_ms: due.map(|due| due.since(now).as_millis() as u64),
        sent_s: (view.sent != Time::ZERO).then(|| now.since(view.sent).as_secs()),
    }
}

/// The name of endpoints as an agent is told it.
pub fn pattern_name(plan: &Plan, pattern: &Pattern) -> String {
    let mut name = [0; PATTERN_NAME_MAX];
    let length = pattern.write_name(&plan.topology, &mut name);
    String::from_utf8_lossy(name.get(..length).unwrap_or_default()).into_owned()
}
