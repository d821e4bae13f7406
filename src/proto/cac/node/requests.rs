//! Requests on their way: a bounded table, a decision for each within its time, and a memory of those that were given up (R4, R5).

use super::super::charge::{Charge, Class, Guid, Leg};
use super::super::ledger::Admission;
use super::super::limits::{Cause, Denial};
use super::super::message::{Answer, Handle, Report, Request, ToCentral, Told, features};
use super::super::scope::ScopeId;
use super::{Action, Decision, Node};
use crate::proto::base::Time;
use std::collections::BTreeMap;

/// What one request is for, and how far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// A new call waits for the decision.
    New,
    /// A change of a call waits for it.
    Change,
    /// It was given up; the answer may still come.
    GivenUp,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    guid: Guid,
    leg: Leg,
    charge: Charge,
    state: State,
    due: Time,
    /// The other leg of a pair, which begins with it or not at all.
    with: Option<With>,
}

/// See [`Waiting::with`].
#[derive(Clone, Copy, Debug)]
struct With {
    guid: Guid,
    leg: Leg,
    charge: Charge,
    /// Both were asked for in one message, and are answered as one.
    joint: bool,
    /// Otherwise: whether the first, or this one, is granted.
    granted: [bool; 2],
}

impl Waiting {
    fn keys(&self) -> impl Iterator<Item = (Guid, Leg)> + use<> {
        [(self.guid, self.leg)].into_iter().chain(self.with.map(|with| (with.guid, with.leg)))
    }
}

#[derive(Debug)]
pub(super) struct Requests {
    entries: Vec<(u32, Option<Waiting>)>,
    free: Vec<u32>,
    /// Due times, with the handle: a request stands in it once.
    due: BTreeMap<(Time, u32), u32>,
    /// The requests of calls that wait for a decision.
    by_call: BTreeMap<(Guid, Leg), Handle>,
    limit: u32,
}

impl Requests {
    pub fn new(limit: u32) -> Requests {
        Requests { entries: Vec::new(), free: Vec::new(), due: BTreeMap::new(), by_call: BTreeMap::new(), limit }
    }

    pub fn len(&self) -> usize {
        self.due.len()
    }

    pub fn deadline(&self) -> Time {
        self.due.first_key_value().map_or(Time::NEVER, |(&(due, _), _)| due)
    }

    fn insert(&mut self, waiting: Waiting) -> Option<Handle> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.entries.len() < self.limit as usize => {
                self.entries.push((0, None));
                self.entries.len() as u32 - 1
            }
            None => return None,
        };
        let entry = self.entries.get_mut(slot as usize)?;
        entry.0 = entry.0.wrapping_add(1);
        entry.1 = Some(waiting);
        let handle = Handle { slot, generation: entry.0 };
        self.due.insert((waiting.due, slot), entry.0);
        self.by_call.extend(waiting.keys().map(|key| (key, handle)));
        Some(handle)
    }

    fn get(&self, handle: Handle) -> Option<Waiting> {
        self.entries.get(handle.slot as usize).filter(|entry| entry.0 == handle.generation)?.1
    }

    fn of_call(&self, guid: Guid, leg: Leg) -> Option<Handle> {
        self.by_call.get(&(guid, leg)).copied()
    }

    /// Nobody waits for the answer any more, which may still come until `until`.
    fn give_up(&mut self, handle: Handle, until: Time) {
        let Some(waiting) = self.get(handle) else { return };
        let Some(entry) = self.entries.get_mut(handle.slot as usize) else { return };
        entry.1 = Some(Waiting { state: State::GivenUp, due: until, ..waiting });
        self.due.remove(&(waiting.due, handle.slot));
        self.due.insert((until, handle.slot), handle.generation);
        for key in waiting.keys() {
            self.by_call.remove(&key);
        }
    }

    fn remove(&mut self, handle: Handle) -> Option<Waiting> {
        let waiting = self.get(handle)?;
        self.entries.get_mut(handle.slot as usize)?.1 = None;
        self.free.push(handle.slot);
        self.due.remove(&(waiting.due, handle.slot));
        for (guid, leg) in waiting.keys() {
            if self.of_call(guid, leg) == Some(handle) {
                self.by_call.remove(&(guid, leg));
            }
        }
        Some(waiting)
    }

    /// A leg of a pair whose legs are answered for themselves is granted: whether both are.
    fn half_granted(&mut self, handle: Handle, guid: Guid, leg: Leg) -> bool {
        let waiting = self.entries.get_mut(handle.slot as usize).and_then(|entry| entry.1.as_mut());
        let Some(Waiting { guid: first, leg: first_leg, with: Some(with), .. }) = waiting else { return true };
        with.granted[usize::from((*first, *first_leg) != (guid, leg))] = true;
        with.joint || with.granted == [true; 2]
    }

    fn next_due(&self, now: Time) -> Option<Handle> {
        let (&(due, slot), &generation) = self.due.first_key_value()?;
        (due <= now).then_some(Handle { slot, generation })
    }

    /// Calls whose request the central node may know of without this node having said how it ended.
    pub fn asked(&self) -> impl Iterator<Item = (Guid, Leg)> {
        self.by_call.keys().copied()
    }
}

impl Node {
    pub(super) fn ask(&mut self, now: Time, guid: Guid, leg: Leg, charge: Charge) {
        let key = self.key(guid, leg);
        if let Some(ccb) = self.calls.ledger().get(&key) {
            // Asked again, for a call that is up (R26).
            let admission = ccb.admission;
            return self.actions.push_back(Action::Decided(guid, leg, Decision::Admitted(admission)));
        }
        if self.requests.of_call(guid, leg).is_some() {
            return;
        }
        if self.calls.ledger().is_full() {
            let scope = charge.scopes().next().unwrap_or(ScopeId::NONE);
            let denial = Denial { scope, cause: Cause::Full, used: 0, limit: 0 };
            return self.actions.push_back(Action::Decided(guid, leg, Decision::Refused(denial)));
        }
        self.quota_took(guid, &charge, &Charge::EMPTY);
        if charge.class == Class::Emergency {
            return self.decide_alone(now, guid, leg, charge, Admission::Emergency);
        }
        if self.quota_lends(now, guid, leg, &charge) {
            return;
        }
        self.quota_short(now, guid, &charge);
        if !self.has_leader() {
            return self.decide_alone(now, guid, leg, charge, Admission::Disconnected);
        }
        if self.leader_is_busy() {
            self.counts.busy += 1;
            return self.decide_alone(now, guid, leg, charge, Admission::Deadline);
        }
        let waiting = Waiting { guid, leg, charge, state: State::New, due: now + self.settings.decide_within, with: None };
        match self.requests.insert(waiting) {
            Some(handle) => self.ask_leader(ToCentral::Ask(Request { handle, guid, leg, charge })),
            None => self.decide_alone(now, guid, leg, charge, Admission::Deadline),
        }
    }

    /// Both legs of a pair: in one message where the central node knows such, else in two, and both begin or none.
    pub(super) fn ask_both(&mut self, now: Time, one: (Guid, Leg, Charge), other: (Guid, Leg, Charge)) {
        let [(guid, leg, charge), (with_guid, with_leg, with_charge)] = [one, other];
        if self.told(guid, leg).is_some() || self.requests.of_call(guid, leg).is_some() {
            return self.ask(now, guid, leg, charge);
        }
        self.quota_took(guid, &charge, &Charge::EMPTY);
        self.quota_took(with_guid, &with_charge, &Charge::EMPTY);
        self.quota_short(now, guid, &charge);
        let joint = self.leader().and_then(|side| self.links.get(side)).is_some_and(|link| link.can(features::PAIRS));
        let with = With { guid: with_guid, leg: with_leg, charge: with_charge, joint, granted: [false; 2] };
        let due = now + self.settings.decide_within;
        let waiting = Waiting { guid, leg, charge, state: State::New, due, with: Some(with) };
        if !self.has_leader() {
            return self.decide_waiting_alone(now, &waiting, Admission::Disconnected);
        }
        if self.leader_is_busy() {
            self.counts.busy += 1;
            return self.decide_waiting_alone(now, &waiting, Admission::Deadline);
        }
        let Some(handle) = self.requests.insert(waiting) else { return self.decide_waiting_alone(now, &waiting, Admission::Deadline) };
        let [one, other] = [one, other].map(|(guid, leg, charge)| Request { handle, guid, leg, charge });
        if joint {
            self.ask_leader(ToCentral::AskBoth(one, other));
        } else {
            self.ask_leader(ToCentral::Ask(one));
            self.ask_leader(ToCentral::Ask(other));
        }
    }

    pub(super) fn change(&mut self, now: Time, guid: Guid, leg: Leg, charge: Charge) {
        let Some(told) = self.told(guid, leg) else { return self.change_void(guid, leg, &charge) };
        self.quota_took(guid, &charge, &told.charge);
        if charge.class == Class::Emergency || told.charge == charge {
            return self.change_decided(now, guid, leg, charge, Ok(()));
        }
        if !self.has_leader() {
            let decision = self.alone(&charge, &told.charge, true);
            return self.change_decided(now, guid, leg, charge, decision);
        }
        if self.leader_is_busy() && self.requests.of_call(guid, leg).is_none() {
            self.counts.busy += 1;
            let decision = self.alone(&charge, &told.charge, false);
            return self.change_decided(now, guid, leg, charge, decision);
        }
        self.quota_short(now, guid, &charge);
        let waiting = Waiting { guid, leg, charge, state: State::Change, due: now + self.settings.decide_within, with: None };
        let scope = charge.scopes().next().unwrap_or(ScopeId::NONE);
        let busy = Denial { scope, cause: Cause::Full, used: 0, limit: 0 };
        let handle = if self.requests.of_call(guid, leg).is_some() { None } else { self.requests.insert(waiting) };
        match handle {
            Some(handle) => self.ask_leader(ToCentral::Modify(Request { handle, guid, leg, charge })),
            None => self.change_refused(now, guid, leg, &charge, busy),
        }
    }

    /// A call is charged this, and whoever asked for something else is not listened to any more.
    pub(super) fn charged(&mut self, now: Time, guid: Guid, leg: Leg, charge: Charge) {
        let Some(told) = self.told(guid, leg) else { return };
        self.give_up_request(now, guid, leg);
        self.quota_took(guid, &charge, &told.charge);
        self.quota_freed(now, guid, &told.charge, &charge);
        self.put(now, guid, leg, charge, told.admission);
        self.report(now, Report::Fact(Told { charge, ..told }));
    }

    /// A call that may be asked for still, or was decided about without its core listening, is up.
    pub(super) fn began_alone(&mut self, now: Time, guid: Guid, leg: Leg, charge: Charge) {
        if self.told(guid, leg).is_some() {
            return;
        }
        // The places of quotas in it, which a request gives back that nobody listens to any more, are taken again.
        self.give_up_request(now, guid, leg);
        self.quota_took(guid, &charge, &Charge::EMPTY);
        self.count_alone(Admission::Deadline, 1);
        self.put(now, guid, leg, charge, Admission::Deadline);
        self.report(now, Report::Fact(Told { guid, leg, charge, admission: Admission::Deadline }));
    }

    pub(super) fn end(&mut self, now: Time, guid: Guid, leg: Leg) {
        let was_asked = self.give_up_request(now, guid, leg);
        let key = self.key(guid, leg);
        let charge = self.calls.ledger().get(&key).map_or(Charge::EMPTY, |ccb| ccb.charge);
        if self.calls.release(&key) || was_asked {
            self.quota_freed(now, guid, &charge, &Charge::EMPTY);
            self.report(now, Report::Release(guid, leg));
        }
    }

    /// Nobody listens to the answer to what this call asked for any more; whoever asked for a change is told that there is none.
    fn give_up_request(&mut self, now: Time, guid: Guid, leg: Leg) -> bool {
        let Some(handle) = self.requests.of_call(guid, leg) else { return false };
        let waiting = self.requests.get(handle);
        self.requests.give_up(handle, now + self.settings.expire_after);
        match waiting {
            Some(Waiting { state: State::Change, charge, .. }) => {
                let has = self.told(guid, leg).map_or(Charge::EMPTY, |told| told.charge);
                self.quota_freed(now, guid, &charge, &has);
                self.change_void(guid, leg, &charge);
            }
            Some(waiting) => {
                self.quota_freed(now, waiting.guid, &waiting.charge, &Charge::EMPTY);
                if let Some(with) = waiting.with {
                    self.quota_freed(now, with.guid, &with.charge, &Charge::EMPTY);
                    // The other leg does not begin without it.
                    let other = if (guid, leg) == (with.guid, with.leg) { (waiting.guid, waiting.leg) } else { (with.guid, with.leg) };
                    self.report(now, Report::Release(other.0, other.1));
                }
            }
            None => {}
        }
        true
    }

    /// A change of a call that is not up, or no longer wants it.
    fn change_void(&mut self, guid: Guid, leg: Leg, charge: &Charge) {
        let scope = charge.scopes().next().unwrap_or(ScopeId::NONE);
        let denial = Denial { scope, cause: Cause::Unreachable, used: 0, limit: 0 };
        self.actions.push_back(Action::Changed(guid, leg, Decision::Refused(denial)));
    }

    /// An answer: to a request that waits, or to one that was given up, which is then over.
    pub(super) fn replied(&mut self, now: Time, handle: Handle, guid: Guid, leg: Leg, answer: Answer) {
        let waiting = self.requests.get(handle).filter(|waiting| waiting.keys().any(|key| key == (guid, leg)));
        let Some(waiting) = waiting else {
            // Nobody knows of it: a grant must not stay (R27).
            self.counts.late += 1;
            if answer == Answer::Granted && self.told(guid, leg).is_none() && self.requests.of_call(guid, leg).is_none() {
                self.report(now, Report::Release(guid, leg));
            }
            return;
        };
        if waiting.state == State::New && answer == Answer::Granted && !self.requests.half_granted(handle, guid, leg) {
            return;
        }
        self.requests.remove(handle);
        let (guid, leg) = if waiting.with.is_some() { (waiting.guid, waiting.leg) } else { (guid, leg) };
        match (waiting.state, answer) {
            // How it ended was reported when it was given up.
            (State::GivenUp, _) => self.counts.late += 1,
            (State::New, Answer::Granted) => {
                self.counts.granted += waiting.keys().count() as u64;
                self.put(now, guid, leg, waiting.charge, Admission::Granted);
                self.copy(now, guid, leg);
                if let Some(With { guid, leg, charge, .. }) = waiting.with {
                    self.put(now, guid, leg, charge, Admission::Granted);
                    self.copy(now, guid, leg);
                }
                self.actions.push_back(Action::Decided(guid, leg, Decision::Admitted(Admission::Granted)));
            }
            (State::New, Answer::Denied(denial)) => {
                self.counts.denied += waiting.keys().count() as u64;
                self.quota_freed(now, guid, &waiting.charge, &Charge::EMPTY);
                if let Some(with) = waiting.with {
                    self.quota_freed(now, with.guid, &with.charge, &Charge::EMPTY);
                    // Asked for by itself, one of them may have been granted, or is still.
                    if !with.joint {
                        waiting.keys().for_each(|(guid, leg)| self.report(now, Report::Release(guid, leg)));
                    }
                }
                self.actions.push_back(Action::Decided(guid, leg, Decision::Refused(denial)));
            }
            (State::New, Answer::Learning) => self.decide_waiting_alone(now, &waiting, Admission::Learning),
            (State::New, Answer::Busy) => {
                self.counts.busy += 1;
                self.decide_waiting_alone(now, &waiting, Admission::Deadline);
            }
            (State::Change, Answer::Granted) => {
                self.change_applied(now, guid, leg, waiting.charge);
                self.copy(now, guid, leg);
            }
            (State::Change, Answer::Denied(denial)) => self.change_refused(now, guid, leg, &waiting.charge, denial),
            (State::Change, Answer::Learning | Answer::Busy) => {
                let decision = self.alone_change(guid, leg, &waiting.charge, false);
                self.change_decided(now, guid, leg, waiting.charge, decision);
            }
        }
    }

    /// Requests whose time is up: decided now, or forgotten.
    pub(super) fn requests_due(&mut self, now: Time) {
        while let Some(handle) = self.requests.next_due(now) {
            let Some(waiting) = self.requests.get(handle) else { return };
            let Waiting { guid, leg, charge, state, .. } = waiting;
            if state == State::GivenUp {
                self.requests.remove(handle);
                continue;
            }
            self.counts.overdue += 1;
            let until = waiting.due + self.settings.expire_after.saturating_sub(self.settings.decide_within);
            self.requests.give_up(handle, until);
            match state {
                State::Change => {
                    let decision = self.alone_change(guid, leg, &charge, false);
                    self.change_decided(now, guid, leg, charge, decision);
                }
                _ => self.decide_waiting_alone(now, &waiting, Admission::Deadline),
            }
        }
    }

    /// Contact is lost: whoever waits is decided about now.
    pub(super) fn decide_all(&mut self, now: Time) {
        let waiting: Vec<Handle> = self.requests.by_call.values().copied().collect();
        for handle in waiting {
            // The legs of a pair have one request.
            let Some(waiting) = self.requests.remove(handle) else { continue };
            let Waiting { guid, leg, charge, state, .. } = waiting;
            match state {
                State::New => self.decide_waiting_alone(now, &waiting, Admission::Disconnected),
                State::Change => {
                    let decision = self.alone_change(guid, leg, &charge, true);
                    self.change_decided(now, guid, leg, charge, decision);
                }
                State::GivenUp => {}
            }
        }
        // Answers of the session that is over will not be listened to.
        self.requests = Requests::new(self.settings.requests_max);
    }

    /// The same for a request, be it of one call or of a pair.
    fn decide_waiting_alone(&mut self, now: Time, waiting: &Waiting, admission: Admission) {
        let Waiting { guid, leg, charge, with: Some(with), .. } = *waiting else {
            return self.decide_alone(now, waiting.guid, waiting.leg, waiting.charge, admission);
        };
        let lost = admission == Admission::Disconnected;
        let legs = [(guid, leg, charge), (with.guid, with.leg, with.charge)];
        let mut denial = None;
        for (guid, leg, charge) in legs {
            match self.alone(&charge, &Charge::EMPTY, lost) {
                Ok(()) if denial.is_none() => self.put(now, guid, leg, charge, admission),
                Ok(()) => {}
                Err(why) => denial = denial.or(Some(why)),
            }
        }
        for (guid, leg, charge) in legs {
            if denial.is_some() {
                let key = self.key(guid, leg);
                self.calls.release(&key);
                self.quota_freed(now, guid, &charge, &Charge::EMPTY);
                self.report(now, Report::Release(guid, leg));
            } else {
                self.report(now, Report::Fact(Told { guid, leg, charge, admission }));
            }
        }
        let decision = match denial {
            Some(denial) => {
                self.counts.refused += 2;
                Decision::Refused(denial)
            }
            None => {
                self.count_alone(admission, 2);
                Decision::Admitted(admission)
            }
        };
        self.actions.push_back(Action::Decided(guid, leg, decision));
    }

    fn count_alone(&mut self, why: Admission, legs: u64) {
        self.counts.local += legs;
        self.counts.local_by[why as usize] += legs;
    }

    fn decide_alone(&mut self, now: Time, guid: Guid, leg: Leg, charge: Charge, admission: Admission) {
        match self.alone(&charge, &Charge::EMPTY, admission == Admission::Disconnected) {
            Ok(()) => {
                self.count_alone(admission, 1);
                self.put(now, guid, leg, charge, admission);
                self.actions.push_back(Action::Decided(guid, leg, Decision::Admitted(admission)));
                self.report(now, Report::Fact(Told { guid, leg, charge, admission }));
            }
            Err(denial) => {
                self.counts.refused += 1;
                self.quota_freed(now, guid, &charge, &Charge::EMPTY);
                self.actions.push_back(Action::Decided(guid, leg, Decision::Refused(denial)));
                self.report(now, Report::Release(guid, leg));
            }
        }
    }

    /// Whether a call may change so without the central node.
    fn alone_change(&self, guid: Guid, leg: Leg, charge: &Charge, lost: bool) -> Result<(), Denial> {
        let has = self.told(guid, leg).map_or(Charge::EMPTY, |told| told.charge);
        self.alone(charge, &has, lost)
    }

    /// A change that was decided here; the central node may have decided otherwise, and is told how it is.
    fn change_decided(&mut self, now: Time, guid: Guid, leg: Leg, charge: Charge, decision: Result<(), Denial>) {
        match decision {
            Ok(()) => self.change_applied(now, guid, leg, charge),
            Err(denial) => self.change_refused(now, guid, leg, &charge, denial),
        }
        if let Some(told) = self.told(guid, leg) {
            self.report(now, Report::Fact(told));
        }
    }

    /// A change is refused: the call has what it had.
    fn change_refused(&mut self, now: Time, guid: Guid, leg: Leg, charge: &Charge, denial: Denial) {
        if let Some(told) = self.told(guid, leg) {
            self.quota_freed(now, guid, charge, &told.charge);
        }
        self.actions.push_back(Action::Changed(guid, leg, Decision::Refused(denial)));
    }

    fn change_applied(&mut self, now: Time, guid: Guid, leg: Leg, charge: Charge) {
        let Some(told) = self.told(guid, leg) else { return };
        self.quota_freed(now, guid, &told.charge, &charge);
        self.put(now, guid, leg, charge, told.admission);
        self.actions.push_back(Action::Changed(guid, leg, Decision::Admitted(told.admission)));
    }
}
