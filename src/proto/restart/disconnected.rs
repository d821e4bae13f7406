//! The disconnected procedure (RFC 3435 4.4.7, table M-11): which endpoints are cut off from their agent, what ends the wait before
//! they say so, and how the procedures of many become one.
//!
//! Each announcement of a disconnect has a wait of its own, random at first. When one of them is due, all that wait for the same agent
//! (restarts likewise) are taken together, in the fewest names, with the delay of the oldest: an agent that was away is told by few messages, however many
//! endpoints it lost and when. Announcements that came out of one taking together keep their names until another comes in between.

use std::time::Duration;

use super::coordinator::Coordinator;
use super::jobs::{Job, What};
use super::ledger::{Announcement, Pace, Status};
use super::sweep::{Class, Sweep};
use super::{Action, Activity, Handle, REPLACE_AFTER, RestartMethod};
use crate::proto::base::{EndpointIndex, EndpointRange, Time};
use crate::proto::trunk::{Selection, selection::Cursor};

/// The shortest first wait.
const SHORTEST: Duration = Duration::from_secs(1);

impl Coordinator {
    /// Only what was announced can become disconnected; what is under way is being said again anyway.
    pub(super) fn cut_off(&mut self, endpoint: EndpointIndex, since: Time) {
        let entry = self.ledger.slot_of(endpoint).and_then(|slot| self.ledger.get(slot));
        let counts = entry.is_some_and(|entry| entry.status == Status::Confirmed || entry.is_about_leaving());
        if counts && !self.want_of(endpoint).is_out() && self.cut_off.get(endpoint.0 as usize) == Some(&Time::NEVER) {
            self.set_cut_off(endpoint, since);
            // No address of its agent answered.
            let group = self.group.get(endpoint.0 as usize).copied().unwrap_or(0);
            self.group_mut(group).silent = true;
            match self.out.back_mut() {
                Some(Action::Disconnected { endpoints: run }) if run.first + run.count == endpoint.0 => run.count += 1,
                _ => self.out.push_back(Action::Disconnected { endpoints: EndpointRange { first: endpoint.0, count: 1 } }),
            }
        }
    }

    pub(super) fn set_cut_off(&mut self, endpoint: EndpointIndex, since: Time) {
        if let Some(state) = self.cut_off.get_mut(endpoint.0 as usize) {
            *state = since;
        }
    }

    /// No address of the agent answered: a restart is said again at the pace of a disconnect (G-RST-10), and whoever was to hear of
    /// endpoints leaving, or staying after all, must hear first that they were cut off (G-DIS-06).
    pub(super) fn unanswered(&mut self, now: Time, slot: u32) {
        let Some(entry) = self.ledger.get(slot).copied() else { return };
        if entry.is_about_leaving() {
            self.ledger.set_status(slot, Status::Stopped);
            let endpoints = entry.pattern.selection(&self.topology);
            self.jobs.push_front(Job::over_selection(What::CutOff(now, Some(slot)), endpoints));
        } else {
            self.wait(now, slot, Pace::Disconnected);
        }
    }

    /// Something happened on an endpoint whose announcement is not confirmed.
    pub(super) fn trigger(&mut self, now: Time, endpoint: EndpointIndex, activity: Activity) {
        if self.power_on.take().is_some() {
            self.flush_at = now;
            return;
        }
        if activity == Activity::Command {
            let group = self.group.get(endpoint.0 as usize).copied().unwrap_or(0);
            if std::mem::take(&mut self.group_mut(group).silent) {
                self.found_again(now, group);
            }
            // It is being named anew.
            if self.ledger.slot_of(endpoint).is_some_and(|slot| self.together.contains(&slot)) {
                return;
            }
        }
        if self.dirty.contains(endpoint) {
            // What is about to wait for the first time need not.
            if activity == Activity::Command && self.is_cut_off(endpoint) {
                let group = self.group.get(endpoint.0 as usize).copied().unwrap_or(0);
                let carry = self.group_mut(group).carry(RestartMethod::Disconnected);
                *carry = (*carry).max(Some((Pace::Disconnected, Duration::ZERO)));
            }
            // What a line does is no reason to tell of each T1 by itself.
            if activity == Activity::Command {
                self.hurry(endpoint);
                self.flush_at = now;
            }
            return;
        }
        let Some(slot) = self.ledger.slot_of(endpoint) else { return };
        let Some(entry) = self.ledger.get(slot).copied() else { return };
        // An agent that answers every attempt with an error is not asked more often than at the first retry, nor is one procedure
        // replaced by the next one sooner.
        let earliest = entry.sent + REPLACE_AFTER;
        match (entry.status, activity) {
            (Status::Waiting(_) | Status::Stopped, Activity::Command) => self.ledger.set_status(slot, Status::Waiting(now.max(earliest))),
            (Status::Waiting(_), Activity::Local)
                if entry.pace == Pace::Disconnected && now.since(entry.waiting_since) >= self.settings.disconnected_min =>
            {
                self.ledger.set_status(slot, Status::Waiting(now.max(earliest)));
            }
            (Status::Outstanding, Activity::Command) if entry.pace == Pace::Disconnected && earliest <= now => {
                self.release(entry.group);
                self.out.push_back(Action::Cancel { handle: Handle { slot, sending: entry.sending } });
                self.ledger.set_status(slot, Status::Waiting(now));
            }
            _ => {}
        }
    }

    /// The agent of a group has an address and had none, so that it could not hear anything of what waits to be said again.
    pub(super) fn found(&mut self, now: Time, group: u16) {
        let lost = |entry: &Announcement| entry.group == group && entry.pace == Pace::Disconnected;
        let waiting: Vec<u32> = self.ledger.waiting().filter(|(_, entry)| lost(entry)).map(|(slot, _)| slot).collect();
        waiting.into_iter().for_each(|slot| self.ledger.set_status(slot, Status::Waiting(now)));
    }

    /// An agent that did not answer commands again: what it was to be told of endpoints that lost it is named anew, together with what was held
    /// back meanwhile, also what is under way to it unless that was sent a moment ago. Otherwise the one endpoint whose announcement was
    /// tried while it was silent would divide the name of all (G-DIS-03, G-DIS-12).
    fn found_again(&mut self, now: Time, group: u16) {
        if self.sweep != Sweep::Idle {
            return;
        }
        let lost = |entry: &Announcement| entry.group == group && entry.pace == Pace::Disconnected;
        let replaced = |entry: &Announcement| entry.is_outstanding() && entry.sent + REPLACE_AFTER <= now;
        let slots = self.ledger.slots().filter(|(_, entry)| lost(entry));
        let under_way: Vec<(u32, Announcement)> = slots.filter(|(_, entry)| replaced(entry)).map(|(slot, entry)| (slot, *entry)).collect();
        let waiting: Vec<u32> = self.ledger.waiting().filter(|(_, entry)| lost(entry)).map(|(slot, _)| slot).collect();
        // One name, and nothing that it could be joined to.
        if under_way.len() + waiting.len() < 2 && !self.held_back {
            return;
        }
        for (slot, entry) in under_way {
            self.release(group);
            self.ledger.set_status(slot, Status::Stopped);
            self.out.push_back(Action::Cancel { handle: Handle { slot, sending: entry.sending } });
            self.together.push(slot);
        }
        self.takings = self.takings.wrapping_add(1);
        self.together.extend(waiting);
        self.sweep = Sweep::Retract;
    }

    /// A command for an endpoint that serves and whose announcement is held back: the agent must have that before the response, so
    /// what is under way is taken back (G-RST-03).
    fn hurry(&mut self, endpoint: EndpointIndex) {
        let Some(slot) = self.ledger.slot_of(endpoint) else { return };
        let serves = !self.want_of(endpoint).is_out();
        if let Some(entry) = self.ledger.get_mut(slot).filter(|entry| serves && entry.is_outstanding()) {
            entry.urgent = true;
            self.stale.push(Handle { slot, sending: entry.sending });
        }
    }

    pub(super) fn is_cut_off(&self, endpoint: EndpointIndex) -> bool {
        self.cut_off.get(endpoint.0 as usize).is_some_and(|since| *since != Time::NEVER)
    }

    /// Before a waiting announcement is sent again: whether it is to be named anew, together with the others that wait to say the same.
    /// Then they are put on the list of what is dissolved.
    pub(super) fn take_together(&mut self, slot: u32) -> bool {
        let Some(entry) = self.ledger.get(slot).copied() else { return false };
        let others = |(_, other): &(u32, &Announcement)| other.class() == entry.class();
        let alone = |(other, announcement): (u32, &Announcement)| other == slot || (announcement.taken == entry.taken && entry.taken != 0);
        let divided = entry.broken || entry.regrouped || self.held_back && self.is_silent(entry.group);
        if !divided && self.ledger.waiting().filter(others).all(alone) {
            return false;
        }
        self.take_all(&entry.class());
        true
    }

    /// Puts all that waits to say the same on the list of what is dissolved.
    pub(super) fn take_all(&mut self, class: &Class) {
        self.takings = self.takings.wrapping_add(1);
        self.together.extend(self.ledger.waiting().filter(|(_, entry)| entry.class() == *class).map(|(slot, _)| slot));
    }

    /// Another notified entity. What waits is not sent again as it is; what is under way follows, or is divided (G-NET-13, G-DIS-12).
    pub(super) fn regroup(&mut self, endpoint: EndpointIndex, group: u16) {
        let Some(old) = self.group.get_mut(endpoint.0 as usize) else { return };
        if std::mem::replace(old, group) == group {
            return;
        }
        let Some(slot) = self.ledger.slot_of(endpoint) else { return };
        let Some(entry) = self.ledger.get_mut(slot) else { return };
        entry.regrouped = true;
        if entry.is_outstanding() && entry.says_connected() && !self.moved.contains(&slot) {
            self.moved.push(slot);
        }
    }

    /// The work of looking whom the endpoints of an announcement under way notify now.
    pub(super) fn look_where(&self, slot: u32) -> Sweep {
        match self.ledger.get(slot).filter(|entry| entry.is_outstanding() && entry.regrouped) {
            Some(entry) => Sweep::Moved(slot, None, entry.pattern.selection(&self.topology), Cursor::default()),
            None => Sweep::Retract,
        }
    }

    pub(super) fn moved_on(&mut self, slot: u32, mut group: Option<u16>, selection: Selection, mut cursor: Cursor, budget: u32) -> u32 {
        let topology = self.topology.clone();
        let Some(piece) = selection.next(&topology, &mut cursor, budget) else {
            self.sweep = Sweep::Retract;
            if let Some(group) = group {
                self.move_all(slot, group);
            }
            return 1;
        };
        for endpoint in piece.iter().filter(|endpoint| self.ledger.slot_of(*endpoint) == Some(slot)) {
            let here = self.group.get(endpoint.0 as usize).copied().unwrap_or(0);
            if *group.get_or_insert(here) != here {
                self.take_back(slot);
                return piece.count;
            }
        }
        self.sweep = Sweep::Moved(slot, group, selection, cursor);
        piece.count
    }

    fn move_all(&mut self, slot: u32, group: u16) {
        let Some(entry) = self.ledger.get_mut(slot) else { return };
        entry.regrouped = false;
        let old = std::mem::replace(&mut entry.group, group);
        let handle = Handle { slot, sending: entry.sending };
        if old != group {
            self.release(old);
            self.occupy(group);
            self.out.push_back(Action::Redirect { handle, group });
        }
    }

    /// The wait of a disconnect that is announced for the first time (G-DIS-02); one made of others goes on from theirs, each at
    /// its own time.
    pub(super) fn first_wait(&mut self, carried: Duration) -> Duration {
        let longest = if carried.is_zero() { self.settings.disconnected_initial } else { carried };
        let shortest = SHORTEST.max(carried / 2).min(longest);
        self.rng.duration(shortest, longest)
    }
}
