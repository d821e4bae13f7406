//! Work over many endpoints, cut into pieces: each job visits its endpoints once, changes what it is about, and looks again at what
//! the endpoint should be and whether something must be said.

use std::time::Duration;

use super::coordinator::{Block, Coordinator};
use super::ledger::Status;
use super::service::{Admin, Next, Told, Want, next};
use super::{Action, Activity, Handle, Outcome, RestartMethod};
use crate::proto::base::{EndpointIndex, EndpointRange, Time};
use crate::proto::trunk::{Selection, Topology, selection::Cursor};

/// Owners say within this time which endpoints of a graceful block are idle, unless they are late; then the block is announced as
/// graceful first.
const OWNERS_WITHIN: Duration = Duration::from_millis(100);

/// A change to some endpoints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    what: What,
    endpoints: Source,
    /// What it makes necessary to say is not held back for the merge time.
    urgent: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// Nothing but the look: the truth changed elsewhere.
    Look,
    Block(Admin),
    Unblock,
    /// The graceful block of this number is over.
    Expire(u32),
    Group(u16),
    Idle,
    /// Disconnected at this time; with a slot only those it covers.
    CutOff(Time, Option<u32>),
    /// The announcement in this slot was confirmed or redirected; its endpoints of the first group go to the second.
    Settle {
        slot: u32,
        group: Option<(u16, u16)>,
    },
    /// An outcome; without endpoints.
    Outcome(Handle, Outcome),
    /// The agent of a group has an address now; without endpoints.
    Found(u16),
    /// Something happened there; without endpoints.
    Trigger(EndpointIndex, Activity),
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Range(EndpointRange),
    Selection(Selection, Cursor),
}

impl Source {
    fn next(&mut self, topology: &Topology, limit: u32) -> Option<EndpointRange> {
        match self {
            Source::Selection(selection, cursor) => selection.next(topology, cursor, limit),
            Source::Range(left) => {
                let piece = EndpointRange { count: left.count.min(limit), ..*left };
                left.first += piece.count;
                left.count -= piece.count;
                (piece.count > 0).then_some(piece)
            }
        }
    }
}

impl Job {
    pub(super) fn over(what: What, endpoints: EndpointRange) -> Job {
        Job { what, endpoints: Source::Range(endpoints), urgent: false }
    }

    /// For the verbs of operators, and so urgent.
    pub(super) fn over_selection(what: What, selection: Selection) -> Job {
        Job { what, endpoints: Source::Selection(selection, Cursor::default()), urgent: true }
    }

    pub(super) fn patient(self) -> Job {
        Job { urgent: false, ..self }
    }

    pub(super) fn urgent(self) -> Job {
        Job { urgent: true, ..self }
    }
}

/// Endpoints in a row that get the same order: what they should be, and whether the agent knows that they are out.
#[derive(Default)]
struct Orders {
    run: Option<(EndpointRange, Want, bool)>,
}

impl Coordinator {
    /// Does a piece of a job; what is left goes back to the front of the queue.
    pub(super) fn run(&mut self, now: Time, mut job: Job, budget: u32) -> u32 {
        if let What::Outcome(handle, outcome) = job.what {
            self.conclude(now, handle, outcome);
            return 1;
        }
        if let What::Found(group) = job.what {
            self.found(now, group);
            return 1;
        }
        if let What::Trigger(endpoint, activity) = job.what {
            self.trigger(now, endpoint, activity);
            return 1;
        }
        let topology = self.topology.clone();
        let Some(piece) = job.endpoints.next(&topology, budget.max(1)) else {
            self.finish(now, &job);
            return 1;
        };
        let mut orders = Orders::default();
        for endpoint in piece.iter().take_while(|endpoint| endpoint.0 < topology.len()) {
            self.change(now, &job.what, endpoint);
            self.look(now, endpoint, &mut orders);
        }
        self.give(&mut orders);
        self.jobs.push_front(job);
        piece.count
    }

    /// What a job does when its endpoints are through.
    fn finish(&mut self, now: Time, job: &Job) {
        // What has no connection leaves at once and not gracefully: which those are the owners say before anything is announced.
        let asks_owners = match job.what {
            What::Block(admin) => matches!(admin, Admin::Leaving(_)),
            What::Idle => true,
            _ => false,
        };
        if let What::Block(Admin::Leaving(number)) = job.what {
            self.drop_from_block(number);
        }
        if asks_owners {
            self.end_idle_blocks();
        }
        // What is under way to an agent that is not to be told any more is put right at once.
        let misdirected = matches!(job.what, What::Group(_)) && !self.moved.is_empty();
        let merge = if job.urgent || misdirected { Duration::ZERO } else { self.settings.merge };
        self.schedule(now + if asks_owners { self.settings.merge.max(OWNERS_WITHIN) } else { merge });
    }

    fn change(&mut self, now: Time, what: &What, endpoint: EndpointIndex) {
        match *what {
            What::Look | What::Outcome(..) | What::Found(_) | What::Trigger(..) => {}
            What::Block(admin) => {
                let idle = self.want_of(endpoint).is_out() && self.ends_when_idle(admin);
                match self.admin_of(endpoint) {
                    Admin::Blocked => {}
                    _ if idle => self.set_admin(now, endpoint, Admin::Blocked),
                    _ => self.set_admin(now, endpoint, admin),
                }
                if self.want_of(endpoint).is_out() {
                    self.note_idle(endpoint, false);
                }
            }
            What::Unblock => self.set_admin(now, endpoint, Admin::Unblocked),
            What::Expire(number) => {
                if self.admin_of(endpoint) == Admin::Leaving(number) {
                    self.set_admin(now, endpoint, Admin::Blocked);
                }
            }
            What::Group(group) => self.regroup(endpoint, group),
            What::Idle => {
                self.note_idle(endpoint, true);
                if self.ends_when_idle(self.admin_of(endpoint)) {
                    self.set_admin(now, endpoint, Admin::Blocked);
                }
            }
            What::CutOff(since, slot) => {
                if slot.is_none_or(|slot| self.ledger.slot_of(endpoint) == Some(slot)) {
                    self.cut_off(endpoint, since);
                }
            }
            What::Settle { slot, group } => self.settle(endpoint, slot, group),
        }
    }

    /// Compares what the endpoint should be with what was ordered and said.
    fn look(&mut self, now: Time, endpoint: EndpointIndex, orders: &mut Orders) {
        let mut want = self.truth(endpoint);
        if want.is_out() && self.ends_when_idle(self.admin_of(endpoint)) {
            // Its connections are gone, so it has nothing to wait for.
            self.set_admin(now, endpoint, Admin::Blocked);
            want = self.truth(endpoint);
        }
        let Some(ordered) = self.want.get_mut(endpoint.0 as usize) else { return };
        if *ordered != want {
            let before = std::mem::replace(ordered, want);
            if want.is_out() {
                self.is_out.insert(endpoint);
                self.lost.insert(endpoint);
                // G-DIS-11: forced says what matters.
                self.set_cut_off(endpoint, Time::NEVER);
            } else {
                self.is_out.remove(endpoint);
                if before.is_out() {
                    self.send_home(endpoint);
                }
            }
            let told = matches!(self.ledger.told(endpoint), Told::Message { method: RestartMethod::Forced, .. });
            match &mut orders.run {
                Some((run, w, t)) if (*w, *t) == (want, told) && run.first + run.count == endpoint.0 => run.count += 1,
                _ => {
                    self.give(orders);
                    orders.run = Some((EndpointRange { first: endpoint.0, count: 1 }, want, told));
                }
            }
        }
        self.consider(endpoint);
    }

    fn give(&mut self, orders: &mut Orders) {
        if let Some((endpoints, want, told)) = orders.run.take()
            && let Some(order) = want.order(endpoints, told)
        {
            self.out.push_back(Action::Service(order));
        }
    }

    /// Notes whether something must be said about `endpoint`.
    pub(super) fn consider(&mut self, endpoint: EndpointIndex) {
        let next = self.next_for(endpoint);
        let (was_wrong, is_wrong) = (self.dirty.contains(endpoint), matches!(next, Next::Say(_)));
        if is_wrong {
            self.dirty.insert(endpoint);
        } else {
            self.dirty.remove(endpoint);
        }
        let Some(slot) = self.ledger.slot_of(endpoint) else { return };
        let Some(entry) = self.ledger.get_mut(slot) else { return };
        entry.followed |= next == Next::Later;
        entry.broken |= is_wrong;
        if was_wrong == is_wrong {
            return;
        }
        entry.wrong = if is_wrong { entry.wrong + 1 } else { entry.wrong.saturating_sub(1) };
        if entry.is_stale() {
            self.stale.push(Handle { slot, sending: entry.sending });
        }
    }

    /// What must be said next about `endpoint`.
    pub(super) fn next_for(&self, endpoint: EndpointIndex) -> Next {
        let cut_off = self.cut_off.get(endpoint.0 as usize).is_some_and(|since| *since != Time::NEVER);
        let told = match self.ledger.told(endpoint) {
            forced @ Told::Message { method: RestartMethod::Forced, .. } => forced,
            _ if self.lost.contains(endpoint) => Told::Nothing,
            told => told,
        };
        next(self.want_of(endpoint), self.leave(endpoint), told, cut_off)
    }

    pub(super) fn want_of(&self, endpoint: EndpointIndex) -> Want {
        self.want.get(endpoint.0 as usize).copied().unwrap_or(Want::Unknown)
    }

    /// Whether this administrative state ends with the endpoint's last connection.
    fn ends_when_idle(&self, admin: Admin) -> bool {
        matches!(admin, Admin::Leaving(number) if self.blocks.get(&number).is_some_and(|block| block.until.is_none()))
    }

    /// Changes the administrative state and counts the endpoints of graceful blocks.
    fn set_admin(&mut self, now: Time, endpoint: EndpointIndex, admin: Admin) {
        let Some(state) = self.admin.get_mut(endpoint.0 as usize) else { return };
        let old = std::mem::replace(state, admin);
        if let Admin::Leaving(number) = admin
            && let Some(block) = self.blocks.get_mut(&number)
        {
            block.live += 1;
        }
        if let Admin::Leaving(number) = old {
            self.forget_idle(number, endpoint);
            self.drop_from_block(number);
        }
        self.note_held(now, endpoint, old != Admin::Unblocked, admin != Admin::Unblocked);
    }

    fn note_held(&mut self, now: Time, endpoint: EndpointIndex, was: bool, is: bool) {
        let span = self.topology.span_of(endpoint).map_or(usize::MAX, |span| usize::from(span.0));
        let Some((count, since)) = self.held.get_mut(span) else { return };
        if is && *count == 0 {
            *since = now;
        }
        *count = (*count + u32::from(is)).saturating_sub(u32::from(was));
    }

    /// An endpoint of a block that is not announced yet has no connection.
    fn note_idle(&mut self, endpoint: EndpointIndex, by_owner: bool) {
        if let Admin::Leaving(number) = self.admin_of(endpoint)
            && let Some(Block { idle: Some(count), reported, .. }) = self.blocks.get_mut(&number)
        {
            *count += u32::from(!self.idle.contains(endpoint));
            *reported |= by_owner;
            self.idle.insert(endpoint);
        }
    }

    fn forget_idle(&mut self, number: u32, endpoint: EndpointIndex) {
        if self.idle.contains(endpoint)
            && let Some(Block { idle: Some(count), .. }) = self.blocks.get_mut(&number)
        {
            *count -= 1;
        }
        self.idle.remove(endpoint);
    }

    /// A block with a limit that finds no call up has nothing to wait for: forced is all there is to say. When there are some, all its
    /// endpoints are told graceful: forced for the others would cost a name for each.
    fn end_idle_blocks(&mut self) {
        let is_idle = |block: &Block| !block.over && block.reported && block.idle == Some(block.live);
        while let Some((&number, block)) = self.blocks.iter_mut().find(|(_, block)| is_idle(block)) {
            block.over = true;
            let job = Job::over_selection(What::Expire(number), block.selection);
            self.jobs.push_back(job);
        }
    }

    fn drop_from_block(&mut self, number: u32) {
        if let Some(block) = self.blocks.get_mut(&number) {
            block.live -= 1;
            if block.live == 0 {
                self.blocks.remove(&number);
            }
        }
    }

    fn settle(&mut self, endpoint: EndpointIndex, slot: u32, group: Option<(u16, u16)>) {
        if self.ledger.slot_of(endpoint) != Some(slot) {
            return;
        }
        let Some(entry) = self.ledger.get(slot) else { return };
        if entry.status == Status::Confirmed && entry.says_connected() {
            self.set_cut_off(endpoint, Time::NEVER);
        }
        if let (Some((old, new)), Some(state)) = (group, self.group.get_mut(endpoint.0 as usize))
            && *state == old
        {
            *state = new;
        }
    }
}
