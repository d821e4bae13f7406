//! The sweep: takes back announcements that became wrong, then says what must be said, class by class (one group, method, reason and
//! departure), in the fewest names. Cut into pieces; no job runs between them.
//!
//! An announcement under way that is still true of some endpoints is not taken back: they would need new names, one for each T1 where
//! there was one for the gateway. The others wait for its outcome. What waits to be repeated to a silent agent is named anew together
//! with what must be said now.

use std::time::Duration;

use super::coordinator::{Coordinator, Phase};
use super::ledger::{Announcement, Pace, Status};
use super::service::{Leave, Next, Reason, Want};
use super::{Action, Handle, RestartMethod};
use crate::proto::aggregate::cover::Step;
use crate::proto::aggregate::{Cover, Forms, Pattern, Widest};
use crate::proto::base::{EndpointIndex, EndpointRange, Time};
use crate::proto::trunk::{Selection, selection::Cursor};

/// Where a sweep is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Sweep {
    Idle,
    /// Look for announcements to take back.
    Retract,
    /// Taking the endpoints from under one.
    Dissolve(u32, Selection, Cursor),
    /// Looking whom the endpoints under one notify now: all the same, as far as is known.
    Moved(u32, Option<u16>, Selection, Cursor),
    /// Look for the next class, from this endpoint on.
    Pick(u32),
    /// Collect the endpoints of a class, from this one on.
    Gather(Class, u32),
    /// Add the endpoints that may be named with them, from this one on.
    Widen(Class, u32),
    /// Name them.
    Name(Class, Cover),
    /// Put the endpoints of a name under a new announcement.
    Fill(Class, Cover, u32, Selection, Cursor),
}

/// What announcements in common names must share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Class {
    pub(super) group: u16,
    pub(super) method: RestartMethod,
    pub(super) reason: Reason,
    pub(super) leave: Leave,
}

impl Announcement {
    /// Whether its confirmation ends a disconnect.
    pub(super) fn says_connected(&self) -> bool {
        matches!(self.method, RestartMethod::Disconnected | RestartMethod::Restart)
    }
}

impl Coordinator {
    /// Does a piece of the sweep and gives its size.
    pub(super) fn sweep_on(&mut self, now: Time, budget: u32) -> u32 {
        match self.sweep {
            Sweep::Idle => 0,
            Sweep::Retract => self.retract(),
            Sweep::Dissolve(slot, selection, cursor) => self.dissolve_on(slot, selection, cursor, budget),
            Sweep::Moved(slot, group, selection, cursor) => self.moved_on(slot, group, selection, cursor, budget),
            Sweep::Pick(from) => {
                self.held_back &= from > 0;
                self.pick(from, budget)
            }
            Sweep::Gather(class, from) => self.gather(class, from, budget),
            Sweep::Widen(class, from) => self.widen(class, from, budget),
            Sweep::Name(class, cover) => self.name(now, class, cover, budget),
            Sweep::Fill(class, cover, slot, selection, cursor) => self.fill(now, class, cover, (slot, selection, cursor), budget),
        }
    }

    fn retract(&mut self) -> u32 {
        self.sweep = Sweep::Pick(0);
        if let Some(slot) = self.together.pop() {
            self.ledger.set_status(slot, Status::Stopped);
            self.sweep = self.dissolve(slot);
        } else if let Some(handle) = self.stale.pop() {
            self.sweep = Sweep::Retract;
            if let Some(slot) = self.ledger.awaited(handle)
                && self.ledger.get(slot).is_some_and(Announcement::is_stale)
            {
                self.take_back(slot);
            }
        } else if let Some(slot) = self.moved.pop() {
            self.sweep = self.look_where(slot);
        }
        1
    }

    /// An announcement under way is not true any more.
    pub(super) fn take_back(&mut self, slot: u32) {
        let Some(entry) = self.ledger.get(slot).copied() else { return };
        self.release(entry.group);
        self.ledger.set_status(slot, Status::Stopped);
        self.out.push_back(Action::Cancel { handle: Handle { slot, sending: entry.sending } });
        self.sweep = self.dissolve(slot);
    }

    /// An announcement under way that names `endpoint` says nothing that a new, wider one does not say (only forced is widened).
    fn overtake(&mut self, endpoint: EndpointIndex) {
        let Some(slot) = self.ledger.slot_of(endpoint) else { return };
        let Some(entry) = self.ledger.get(slot).copied().filter(Announcement::is_outstanding) else { return };
        self.release(entry.group);
        self.ledger.set_status(slot, Status::Stopped);
        self.out.push_back(Action::Cancel { handle: Handle { slot, sending: entry.sending } });
        self.together.push(slot);
    }

    /// Whether something said about `endpoint` is under way.
    fn is_under_way(&self, endpoint: EndpointIndex) -> bool {
        self.ledger.slot_of(endpoint).and_then(|slot| self.ledger.get(slot)).is_some_and(Announcement::is_outstanding)
    }

    /// What a silent agent was to be told, and waits to be told it again, is put on the list of what is dissolved, to be said together
    /// with what is now to be said of other endpoints. False: there is none.
    fn take_waiting(&mut self, class: &Class) -> bool {
        let waits = self.waits_again(class);
        if waits {
            self.take_all(class);
        }
        waits
    }

    /// Whether something of this class waits to be told again to an agent that did not answer. Disconnects wait in any case, and are
    /// taken together when the first is due.
    fn waits_again(&self, class: &Class) -> bool {
        let again = |entry: &Announcement| entry.pace == Pace::Disconnected && entry.class() == *class;
        class.method != RestartMethod::Disconnected && self.ledger.waiting().any(|(_, entry)| again(entry))
    }

    fn dissolve_on(&mut self, slot: u32, selection: Selection, mut cursor: Cursor, budget: u32) -> u32 {
        let topology = self.topology.clone();
        let Some(piece) = selection.next(&topology, &mut cursor, budget) else {
            self.sweep = Sweep::Retract;
            return 1;
        };
        let Some(entry) = self.ledger.get(slot).copied() else {
            self.sweep = Sweep::Retract;
            return 1;
        };
        let carried = (entry.pace != Pace::Fresh).then_some((entry.pace, entry.wait));
        for endpoint in piece.iter() {
            if self.ledger.slot_of(endpoint) == Some(slot) {
                self.ledger.take(endpoint);
                self.consider(endpoint);
                let group = self.group.get(endpoint.0 as usize).copied().unwrap_or(0);
                let carry = self.group_mut(group).carry(entry.method);
                *carry = (*carry).max(carried);
            }
        }
        self.sweep = Sweep::Dissolve(slot, selection, cursor);
        piece.count
    }

    fn pick(&mut self, mut from: u32, budget: u32) -> u32 {
        for looked in 1..=budget {
            let Some(endpoint) = self.dirty.next(from) else {
                self.booted |= self.dirty.is_empty();
                self.forget_waits();
                self.sweep = Sweep::Idle;
                return looked;
            };
            from = endpoint.0 + 1;
            match self.class_of(endpoint) {
                None => self.consider(endpoint),
                // Its turn comes with the outcome of what is under way.
                Some(_) if self.is_under_way(endpoint) => self.held_back = true,
                Some(class) if self.may_announce(&class) => {
                    self.sweep = if self.take_waiting(&class) { Sweep::Retract } else { Sweep::Gather(class, endpoint.0) };
                    self.class.clear();
                    return looked;
                }
                // Its turn comes with the next outcome from this group.
                Some(_) => self.held_back = true,
            }
        }
        self.sweep = Sweep::Pick(from);
        budget
    }

    /// What was dissolved has its new names, unless there was no room: then it goes on from its wait when there is.
    fn forget_waits(&mut self) {
        use RestartMethod::*;
        self.takings = self.takings.wrapping_add(1);
        for group in 0..self.groups.len() as u16 {
            let room = self.has_room(group);
            for method in [Graceful, Forced, Restart, Disconnected, CancelGraceful] {
                if room || method == Disconnected {
                    *self.group_mut(group).carry(method) = None;
                }
            }
        }
    }

    fn gather(&mut self, class: Class, mut from: u32, budget: u32) -> u32 {
        for looked in 1..=budget {
            let Some(endpoint) = self.dirty.next(from) else {
                self.sweep = match class.method {
                    RestartMethod::Forced => Sweep::Widen(class, 0),
                    _ => Sweep::Name(class, Cover::new(self.forms(&class))),
                };
                return looked;
            };
            from = endpoint.0 + 1;
            if self.class_of(endpoint) == Some(class) && !self.is_under_way(endpoint) {
                self.class.insert(endpoint);
            }
        }
        self.sweep = Sweep::Gather(class, from);
        budget
    }

    /// An agent may be told once more that an endpoint is out, if that saves messages: the failure of a T3 is one, whichever of its
    /// T1s had failed before. Names of nothing but such endpoints are left out.
    fn widen(&mut self, class: Class, mut from: u32, budget: u32) -> u32 {
        for looked in 1..=budget {
            let Some(endpoint) = self.is_out.next(from) else {
                self.sweep = Sweep::Name(class, Cover::new(self.forms(&class)));
                return looked;
            };
            from = endpoint.0 + 1;
            let known = self.ledger.slot_of(endpoint).and_then(|slot| self.ledger.get(slot));
            let known = known.is_some_and(|entry| entry.method == RestartMethod::Forced);
            if known && !self.dirty.contains(endpoint) && self.group.get(endpoint.0 as usize) == Some(&class.group) {
                self.class.insert(endpoint);
            }
        }
        self.sweep = Sweep::Widen(class, from);
        budget
    }

    /// A name found for a class that was widened: `None` when nothing in it must be said; the narrower name when what must be said
    /// in it needs only one.
    fn narrowed(&mut self, class: &Class, pattern: Pattern) -> Option<Pattern> {
        let topology = self.topology.clone();
        let (selection, mut cursor) = (pattern.selection(&topology), Cursor::default());
        self.scratch.clear();
        while let Some(piece) = selection.next(&topology, &mut cursor, u32::MAX) {
            let mut from = piece.first;
            while let Some(endpoint) = self.dirty.next(from).filter(|endpoint| piece.contains(*endpoint)) {
                self.scratch.insert(endpoint);
                from = endpoint.0 + 1;
            }
        }
        let mut cover = Cover::new(self.forms(class));
        let narrow = cover.next(&topology, &self.scratch)?;
        let is_enough = cover.next(&topology, &self.scratch).is_none();
        Some(if is_enough { narrow } else { pattern })
    }

    fn name(&mut self, now: Time, class: Class, mut cover: Cover, budget: u32) -> u32 {
        if !self.may_announce(&class) {
            self.sweep = Sweep::Pick(0);
            return 1;
        }
        let facilities = (budget / 24).max(1);
        match cover.step(&self.topology, &self.class, facilities) {
            Step::Done => {
                self.sweep = Sweep::Pick(0);
                1
            }
            Step::More => {
                self.sweep = Sweep::Name(class, cover);
                budget
            }
            Step::Name(pattern) => {
                let pattern = match class.method {
                    RestartMethod::Forced => self.narrowed(&class, pattern),
                    _ => Some(pattern),
                };
                let Some(pattern) = pattern else {
                    self.sweep = Sweep::Name(class, cover);
                    return budget.div_ceil(8);
                };
                let carry = *self.group_mut(class.group).carry(class.method);
                let mut entry = announcement(now, &class, pattern);
                if let Some((pace, wait)) = carry.filter(|(pace, _)| *pace == Pace::Retry || entry.says_connected()) {
                    (entry.pace, entry.taken) = (pace, self.takings);
                    entry.wait = if pace == Pace::Retry || wait.is_zero() { wait } else { self.first_wait(wait) };
                }
                let slot = self.ledger.open(entry);
                self.sweep = Sweep::Fill(class, cover, slot, pattern.selection(&self.topology), Cursor::default());
                // Finding a name among many facilities is work too.
                budget.div_ceil(8)
            }
        }
    }

    fn fill(&mut self, now: Time, class: Class, cover: Cover, (slot, selection, mut cursor): (u32, Selection, Cursor), budget: u32) -> u32 {
        let topology = self.topology.clone();
        let Some(piece) = selection.next(&topology, &mut cursor, budget) else {
            // What is left of announcements that were overtaken is said anew.
            self.together.retain(|overtaken| self.ledger.get(*overtaken).is_some());
            self.sweep = if self.together.is_empty() { Sweep::Name(class, cover) } else { Sweep::Retract };
            self.begin(now, slot);
            return 1;
        };
        let (mut followed, mut cut_off) = (false, Time::NEVER);
        for endpoint in piece.iter() {
            self.overtake(endpoint);
            let since = self.cut_off.get(endpoint.0 as usize).copied().unwrap_or(Time::NEVER);
            cut_off = cut_off.min(since);
            self.ledger.put(endpoint, slot);
            self.dirty.remove(endpoint);
            if matches!(class.method, RestartMethod::Forced | RestartMethod::Restart) {
                self.lost.remove(endpoint);
            }
            followed |= since != Time::NEVER || self.next_for(endpoint) == Next::Later;
        }
        if let Some(entry) = self.ledger.get_mut(slot) {
            entry.followed |= followed;
            entry.cut_off = entry.cut_off.min(cut_off);
        }
        if class.method == RestartMethod::Forced {
            self.order_told(piece);
        }
        self.sweep = Sweep::Fill(class, cover, slot, selection, cursor);
        piece.count
    }

    /// Their agent is told that these endpoints are out: those that refused commands with another code until then are ordered not to. Each
    /// keeps the reason of its own, also where a wider name says another one.
    fn order_told(&mut self, endpoints: EndpointRange) {
        let mut run = (EndpointRange { first: endpoints.first, count: 0 }, Want::Unknown);
        for endpoint in endpoints.iter() {
            let want = self.want_of(endpoint);
            if want == run.1 {
                run.0.count += 1;
                continue;
            }
            self.order_run(std::mem::replace(&mut run, (EndpointRange { first: endpoint.0, count: 1 }, want)));
        }
        self.order_run(run);
    }

    fn order_run(&mut self, (endpoints, want): (EndpointRange, Want)) {
        if matches!(want, Want::Out(reason) if reason.return_code(false) != reason.return_code(true)) {
            self.out.extend(want.order(endpoints, true).map(Action::Service));
        }
    }

    /// Whether another announcement of this class may be made: those of disconnects wait anyway, also for room. What waits to be told
    /// to a silent agent again is not told sooner because there is more of it.
    fn may_announce(&mut self, class: &Class) -> bool {
        if class.method == RestartMethod::Disconnected {
            return true;
        }
        self.has_room(class.group) && !(self.is_silent(class.group) && self.waits_again(class))
    }

    /// Sends a filled announcement; that of a disconnect has a wait before it (G-DIS-02).
    fn begin(&mut self, now: Time, slot: u32) {
        let wait = self.first_wait(Duration::ZERO);
        let Some(entry) = self.ledger.get(slot).copied() else { return };
        if entry.method != RestartMethod::Disconnected {
            return self.send(now, slot);
        }
        if entry.pace == Pace::Disconnected {
            return self.send_in_turn(now, slot, entry.group);
        }
        let Some(entry) = self.ledger.get_mut(slot) else { return };
        entry.pace = Pace::Disconnected;
        entry.wait = wait;
        entry.waiting_since = now;
        let due = now + entry.wait;
        self.ledger.set_status(slot, Status::Waiting(due));
    }

    /// The class `endpoint` is announced in, `None` when there is nothing to say.
    fn class_of(&self, endpoint: EndpointIndex) -> Option<Class> {
        let Next::Say(method) = self.next_for(endpoint) else { return None };
        let (reason, leave) = match (method, self.want_of(endpoint)) {
            (RestartMethod::Forced, Want::Out(reason)) => (reason, Leave::No),
            (RestartMethod::Graceful, _) => (Reason::MANAGEMENT, self.leave(endpoint)),
            _ => (Reason(0), Leave::No),
        };
        Some(Class { group: self.group.get(endpoint.0 as usize).copied().unwrap_or(0), method, reason, leave })
    }

    /// The names the group's agent accepts. Where one facility is the whole gateway, its failure and recovery are told by its name.
    fn forms(&mut self, class: &Class) -> Forms {
        let group = *self.group_mut(class.group);
        let mut forms = Forms { ranges: group.forms.ranges && !group.ranges_refused, ..group.forms };
        let gateway_wide =
            !self.booted || self.phase != Phase::Serving || matches!(class.method, RestartMethod::Graceful | RestartMethod::CancelGraceful);
        if self.topology.has_one_facility() && !gateway_wide {
            forms.widest = forms.widest.min(Widest::Level);
        }
        forms
    }

    /// RD of an announcement sent now, in seconds (G-RSI-02, G-RSI-05).
    pub(super) fn delay(&self, now: Time, entry: &Announcement) -> u32 {
        let seconds = |duration: Duration| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX).min(999_999);
        let rounded_up = |until: Time| seconds(until.since(now) + Duration::from_nanos(999_999_999));
        match (entry.method, entry.leave, self.phase) {
            (RestartMethod::Disconnected, ..) => seconds(now.since(entry.cut_off)),
            (RestartMethod::Graceful, Leave::Shutdown, Phase::Leaving { until, .. }) => rounded_up(until),
            (RestartMethod::Graceful, Leave::Block(number), _) => {
                self.blocks.get(&number).and_then(|block| block.until).map_or(0, rounded_up)
            }
            _ => 0,
        }
    }
}

fn announcement(now: Time, class: &Class, pattern: Pattern) -> Announcement {
    Announcement {
        group: class.group,
        pattern,
        method: class.method,
        reason: class.reason,
        leave: class.leave,
        status: Status::Filling,
        sending: 0,
        sent: Time::ZERO,
        waiting_since: now,
        reply: 0,
        cut_off: Time::NEVER,
        pace: Pace::Fresh,
        wait: Duration::ZERO,
        taken: 0,
        redirects: 0,
        live: 0,
        wrong: 0,
        broken: false,
        urgent: false,
        regrouped: false,
        followed: false,
    }
}
