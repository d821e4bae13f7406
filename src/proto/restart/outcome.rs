//! What follows an answer, or none: Table M-11.

use std::time::Duration;

use super::coordinator::{Coordinator, Phase};
use super::jobs::{Job, What};
use super::ledger::{Pace, Status};
use super::sweep::Sweep;
use super::{Action, Handle, Outcome};
use crate::proto::base::Time;

/// Redirections in a row that are followed at once; an agent that goes on is waited for like one that answers 4xx.
const REDIRECTS_AT_ONCE: u8 = 5;

/// Codes that may mean that the agent cannot read a name with a range (G-EPN-14).
const NAMING_ERRORS: [u16; 3] = [500, 503, 510];

impl Coordinator {
    /// Takes in the outcome of an announcement; one that is not awaited is ignored.
    pub(super) fn conclude(&mut self, now: Time, handle: Handle, outcome: Outcome) {
        let Some(slot) = self.ledger.awaited(handle) else { return };
        let Some(entry) = self.ledger.get_mut(slot) else { return };
        entry.reply = match outcome {
            Outcome::Success(_) => 200,
            Outcome::Redirect(_) => 521,
            Outcome::Transient(code) | Outcome::Permanent(code) => code,
            Outcome::Unanswered => 0,
        };
        let entry = *entry;
        self.release(entry.group);
        self.group_mut(entry.group).silent = outcome == Outcome::Unanswered;
        match outcome {
            Outcome::Success(group) => self.confirm(handle, slot, group),
            Outcome::Transient(_) => self.wait(now, slot, Pace::Retry),
            Outcome::Unanswered => self.unanswered(now, slot),
            Outcome::Redirect(group) => self.redirect(now, slot, group),
            Outcome::Permanent(code) if entry.pattern.has_range() && NAMING_ERRORS.contains(&code) => {
                self.group_mut(entry.group).ranges_refused = true;
                if let Some(entry) = self.ledger.get_mut(slot) {
                    entry.broken = true;
                }
                self.ledger.set_status(slot, Status::Waiting(now));
            }
            Outcome::Permanent(_) => self.ledger.set_status(slot, Status::Stopped),
        }
        // There is room for another announcement to this group.
        self.schedule(if self.held_back { now } else { now + self.settings.merge });
    }

    /// One announcement less under way to `group`.
    pub(super) fn release(&mut self, group: u16) {
        let group = self.group_mut(group);
        group.outstanding = group.outstanding.saturating_sub(1);
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    /// One announcement more under way to `group`.
    pub(super) fn occupy(&mut self, group: u16) {
        self.group_mut(group).outstanding += 1;
        self.outstanding += 1;
    }

    /// Sends a waiting announcement again, unless it is not true any more as a whole, or others that say the same wait as well: then its
    /// endpoints, and theirs, are announced anew.
    pub(super) fn resend(&mut self, now: Time, slot: u32) {
        let Some(entry) = self.ledger.get(slot).copied() else { return };
        if self.has_room(entry.group) && self.take_together(slot) {
            self.sweep = Sweep::Retract;
        } else {
            self.send_in_turn(now, slot, entry.group);
        }
    }

    /// Sends an announcement, or waits a little for room.
    pub(super) fn send_in_turn(&mut self, now: Time, slot: u32, group: u16) {
        if self.has_room(group) {
            self.send(now, slot);
        } else {
            self.ledger.set_status(slot, Status::Waiting(now + self.settings.retry));
        }
    }

    /// The work of taking all endpoints from under an announcement.
    pub(super) fn dissolve(&self, slot: u32) -> Sweep {
        let Some(entry) = self.ledger.get(slot) else { return Sweep::Retract };
        Sweep::Dissolve(slot, entry.pattern.selection(&self.topology), Default::default())
    }

    /// Whether another announcement may be under way to `group`: one at a time while its agent is silent. What is not under way when it
    /// comes back is said of the endpoints as they are then. At the end of the process there is no later.
    pub(super) fn has_room(&mut self, group: u16) -> bool {
        let most = if self.is_silent(group) { 1 } else { self.settings.outstanding_max.max(1) };
        self.group_mut(group).outstanding < most
    }

    /// Whether the agent of a group does not answer.
    pub(super) fn is_silent(&mut self, group: u16) -> bool {
        self.phase == Phase::Serving && self.group_mut(group).silent
    }

    /// Gives the orders to send an announcement under a new handle.
    pub(super) fn send(&mut self, now: Time, slot: u32) {
        let handle = self.ledger.send(now, slot);
        let Some(entry) = self.ledger.get(slot).copied() else { return };
        self.occupy(entry.group);
        let delay_s = self.delay(now, &entry);
        let (group, pattern, method, reason) = (entry.group, entry.pattern, entry.method, entry.reason.0);
        self.out.push_back(Action::Announced { handle, pattern, confirmed: false });
        self.out.push_back(Action::SendRsip { handle, group, pattern, method, delay_s, reason });
    }

    fn confirm(&mut self, handle: Handle, slot: u32, group: Option<u16>) {
        let Some(entry) = self.ledger.get_mut(slot) else { return };
        (entry.pace, entry.wait, entry.redirects) = (Pace::Fresh, Duration::ZERO, 0);
        let entry = *entry;
        self.ledger.set_status(slot, Status::Confirmed);
        *self.group_mut(entry.group).carry(entry.method) = None;
        self.out.push_back(Action::Announced { handle, pattern: entry.pattern, confirmed: true });
        if let Some(group) = group {
            self.out.push_back(Action::NotifiedEntity { pattern: entry.pattern, group });
        }
        if group.is_some() || entry.followed {
            let endpoints = entry.pattern.selection(&self.topology);
            let group = group.map(|new| (entry.group, new));
            self.jobs.push_front(Job::over_selection(What::Settle { slot, group }, endpoints).patient());
        }
    }

    fn redirect(&mut self, now: Time, slot: u32, group: u16) {
        let Some(entry) = self.ledger.get_mut(slot) else { return };
        let old = std::mem::replace(&mut entry.group, group);
        entry.redirects = entry.redirects.saturating_add(1);
        let entry = *entry;
        self.out.push_back(Action::NotifiedEntity { pattern: entry.pattern, group });
        let endpoints = entry.pattern.selection(&self.topology);
        self.jobs.push_front(Job::over_selection(What::Settle { slot, group: Some((old, group)) }, endpoints));
        // What keeps disconnects from flooding an agent holds for redirected ones too (4.4.7).
        if entry.redirects > REDIRECTS_AT_ONCE || entry.pace == Pace::Disconnected {
            self.wait(now, slot, Pace::Retry);
        } else {
            self.ledger.set_status(slot, Status::Waiting(now));
        }
    }

    /// Waits for the next attempt, twice as long as before (F-6). A wait that began with a disconnect stays as long after a 4xx.
    pub(super) fn wait(&mut self, now: Time, slot: u32, pace: Pace) {
        let longest = self.settings.disconnected_max;
        let first = self.first_wait(Duration::ZERO);
        let retry = self.settings.retry;
        let Some(entry) = self.ledger.get_mut(slot) else { return };
        let due = match (entry.pace, pace) {
            (Pace::Fresh, Pace::Retry) => {
                entry.wait = retry;
                now + self.rng.duration(retry / 2, retry)
            }
            (Pace::Retry, Pace::Retry) => {
                entry.wait = (entry.wait * 2).min(longest);
                now + self.rng.duration(entry.wait / 2, entry.wait)
            }
            // What was said before its first wait began has that wait still before it.
            (Pace::Disconnected, _) if !entry.wait.is_zero() => {
                entry.wait = (entry.wait * 2).min(longest);
                now + entry.wait
            }
            (Pace::Fresh | Pace::Retry | Pace::Disconnected, _) => {
                entry.wait = first;
                now + entry.wait
            }
        };
        entry.pace = if entry.pace == Pace::Disconnected { Pace::Disconnected } else { pace };
        entry.waiting_since = now;
        self.ledger.set_status(slot, Status::Waiting(due));
    }
}
