//! The coordinator's state, what it is told, its clock and its order of work.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::facilities::Facilities;
use super::jobs::{Job, What};
use super::ledger::{Ledger, Pace};
use super::service::{Admin, Leave, Reason, Want};
use super::sweep::Sweep;
use super::{Action, BlockHow, Event, Handle, RestartMethod, Settings};
use crate::proto::aggregate::{EndpointSet, Forms};
use crate::proto::base::{EndpointIndex, Rng, Time};
use crate::proto::trunk::performance::Signal;
use crate::proto::trunk::{Facility, Selection, SpanIndex, Topology};

/// See the module page.
pub struct Coordinator {
    pub(super) topology: Arc<Topology>,
    pub(super) settings: Settings,
    pub(super) rng: Rng,
    pub(super) facilities: Facilities,
    pub(super) phase: Phase,
    pub(super) draining: bool,
    /// Graceful blocks that are not over, by number.
    pub(super) blocks: BTreeMap<u32, Block>,
    pub(super) blocks_made: u32,
    /// The end of the wait after power-on, while it lasts.
    pub(super) power_on: Option<Time>,
    /// Whether every endpoint was announced once.
    pub(super) booted: bool,
    /// For each endpoint.
    pub(super) admin: Box<[Admin]>,
    pub(super) want: Box<[Want]>,
    pub(super) group: Box<[u16]>,
    /// For each span: the group that its endpoints have whenever they come back into service.
    pub(super) home: Box<[u16]>,
    /// For each endpoint: since when it is disconnected, [`Time::NEVER`] when it is not.
    pub(super) cut_off: Box<[Time]>,
    pub(super) ledger: Ledger,
    /// Endpoints about which something must be said.
    pub(super) dirty: EndpointSet,
    /// Endpoints that are to be out of service.
    pub(super) is_out: EndpointSet,
    /// Endpoints of blocks that are not announced yet which have no connection.
    pub(super) idle: EndpointSet,
    /// Endpoints that went out of service, perhaps only for a moment, and of which neither forced nor restart was said since.
    pub(super) lost: EndpointSet,
    /// For each span: how many endpoints operators hold out of service, or take out of it, and since when there are some.
    pub(super) held: Box<[(u32, Time)]>,
    /// Since when the gateway drains.
    pub(super) drained: Option<Time>,
    pub(super) groups: Vec<Group>,
    /// Announcements of all groups under way.
    pub(super) outstanding: u32,
    /// Something dirty waits for the outcome of what is under way.
    pub(super) held_back: bool,
    /// When the dirty endpoints are announced.
    pub(super) flush_at: Time,
    pub(super) jobs: VecDeque<Job>,
    pub(super) sweep: Sweep,
    /// The endpoints of one announcement class, while it is named.
    pub(super) class: EndpointSet,
    /// Those of them in one name.
    pub(super) scratch: EndpointSet,
    /// Announcements under way that may have become stale.
    pub(super) stale: Vec<Handle>,
    /// Announcements that wait, or were overtaken, whose endpoints are to be named anew.
    pub(super) together: Vec<u32>,
    /// Announcements under way that name endpoints whose notified entity changed.
    pub(super) moved: Vec<u32>,
    /// Counts the takings together.
    pub(super) takings: u32,
    /// Calls up, by core.
    calls: Box<[u32]>,
    pub(super) out: VecDeque<Action>,
}

/// Where the process is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Serving,
    /// Graceful was or is being said.
    Leaving {
        started: Time,
        until: Time,
    },
    /// Forced was or is being said.
    Ending {
        until: Time,
    },
    Ended,
}

/// A graceful block of an operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) selection: Selection,
    /// When it ends; `None`: for each endpoint with its last connection.
    pub(super) until: Option<Time>,
    /// Its end is being carried out.
    pub(super) over: bool,
    /// Endpoints that are leaving by it, and one more while it is being carried out. It ends with the last.
    pub(super) live: u32,
    /// Of those, how many have no connection, until it is announced; then `None`.
    pub(super) idle: Option<u32>,
    /// An owner has told of some of them.
    pub(super) reported: bool,
}

/// Endpoints that share a notified entity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) forms: Forms,
    /// The agent refused a name with a range: plain names from now on (G-EPN-14).
    pub(super) ranges_refused: bool,
    pub(super) outstanding: u16,
    /// It let the last announcement pass without an answer, and has said nothing since.
    pub(super) silent: bool,
    /// By method: the wait of announcements that were split or joined, for those made of them.
    carries: [Option<(Pace, Duration)>; 5],
}

impl Group {
    pub(super) fn new(forms: Forms) -> Group {
        Group { forms, ranges_refused: false, outstanding: 0, silent: false, carries: [None; 5] }
    }

    /// The wait that announcements of a method made now go on from.
    pub(super) fn carry(&mut self, method: RestartMethod) -> &mut Option<(Pace, Duration)> {
        &mut self.carries[method as usize]
    }
}

impl Coordinator {
    /// Just powered on at `now`: every endpoint is unblocked, without failure, in group 0, and not announced.
    pub fn new(now: Time, topology: Arc<Topology>, settings: Settings, mut rng: Rng) -> Coordinator {
        let endpoints = topology.len();
        let wait = rng.duration(Duration::ZERO, settings.power_on_wait_max);
        let n = endpoints as usize;
        let mut coordinator = Coordinator {
            settings,
            rng,
            facilities: Facilities::new(now, &topology),
            phase: Phase::Serving,
            draining: false,
            blocks: BTreeMap::new(),
            blocks_made: 0,
            power_on: Some(now + wait),
            booted: false,
            admin: vec![Admin::Unblocked; n].into(),
            want: vec![Want::Unknown; n].into(),
            group: vec![0; n].into(),
            home: vec![0; topology.spans().len()].into(),
            cut_off: vec![Time::NEVER; n].into(),
            ledger: Ledger::new(endpoints),
            dirty: EndpointSet::new(endpoints),
            is_out: EndpointSet::new(endpoints),
            idle: EndpointSet::new(endpoints),
            lost: EndpointSet::new(endpoints),
            held: vec![(0, Time::NEVER); topology.spans().len()].into(),
            drained: None,
            groups: Vec::new(),
            outstanding: 0,
            held_back: false,
            flush_at: now + wait,
            jobs: VecDeque::new(),
            sweep: Sweep::Idle,
            class: EndpointSet::new(endpoints),
            scratch: EndpointSet::new(endpoints),
            stale: Vec::new(),
            together: Vec::new(),
            moved: Vec::new(),
            takings: 0,
            calls: vec![0; 256].into(),
            out: VecDeque::new(),
            topology,
        };
        coordinator.look_at_all();
        coordinator
    }

    /// The endpoints of a span are provisioned with a group other than 0: it is theirs now, and after each restart (G-RST-12).
    pub fn provision(&mut self, span: SpanIndex, group: u16) {
        if let (Some(home), Some(known)) = (self.home.get_mut(usize::from(span.0)), self.topology.span(span)) {
            *home = group;
            self.jobs.push_back(Job::over(What::Group(group), known.endpoints));
        }
    }

    /// The performance of a span is that of this kind of signal, from now on.
    pub fn measure_as(&mut self, now: Time, span: SpanIndex, signal: Signal) {
        self.facilities.measure_as(now, Facility::Span(span), signal);
    }

    /// Back in service, an endpoint notifies its provisioned entity. Its owner says so too, but names are chosen before that is heard.
    pub(super) fn send_home(&mut self, endpoint: EndpointIndex) {
        let span = self.topology.span_of(endpoint).map_or(usize::MAX, |span| usize::from(span.0));
        self.regroup(endpoint, self.home.get(span).copied().unwrap_or(0));
    }

    /// New settings, from the next decision on.
    pub fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Takes in one change.
    pub fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::Defect { facility, defect, on, skip_integration } => {
                let change = (defect, on, skip_integration);
                let times = self.settings.integration;
                if let Some(endpoints) = self.facilities.set(now, &self.topology, facility, change, &times) {
                    self.jobs.push_back(Job::over(What::Look, endpoints));
                }
            }
            Event::Violations { facility, violations } => self.facilities.count(now, facility, &violations),
            Event::Block { selection, how } => self.block(now, selection, how),
            Event::Unblock { selection } => self.jobs.push_back(Job::over_selection(What::Unblock, selection)),
            Event::Drain => self.set_draining(now, true),
            Event::Undrain => self.set_draining(now, false),
            Event::Shutdown { until } => self.shut_down(now, until),
            Event::Group { endpoints, group } => self.jobs.push_back(Job::over(What::Group(group), endpoints)),
            Event::Forms { group, forms } => {
                let group = self.group_mut(group);
                (group.forms, group.ranges_refused) = (forms, false);
            }
            Event::Calls { core, up } => {
                if let Some(calls) = self.calls.get_mut(usize::from(core.0)) {
                    *calls = up;
                }
            }
            Event::Idle { endpoints } => {
                // Owners tell it of every endpoint that leaves; blocks with a limit wait for it only until they are announced.
                if self.blocks.values().any(|block| block.until.is_none() || block.idle.is_some()) {
                    self.jobs.push_back(Job::over(What::Idle, endpoints));
                }
            }
            // Behind what is being worked on: the endpoint may just be becoming disconnected.
            Event::Trigger { endpoint, activity } if self.jobs.is_empty() => self.trigger(now, endpoint, activity),
            Event::Trigger { endpoint, activity } => {
                self.jobs.push_back(Job::over(What::Trigger(endpoint, activity), Default::default()));
            }
            Event::Found { group } => self.jobs.push_back(Job::over(What::Found(group), Default::default())),
            Event::Outcome { handle, outcome } => {
                self.jobs.push_back(Job::over(What::Outcome(handle, outcome), Default::default()));
            }
            Event::Disconnected { endpoints } => self.jobs.push_back(Job::over(What::CutOff(now, None), endpoints)),
        }
    }

    /// The next order, `None` when there is none now. After a `None` with [`Coordinator::deadline`] passed, more work is left.
    pub fn poll(&mut self, now: Time) -> Option<Action> {
        self.poll_within(now, &mut self.settings.slice.max(1))
    }

    /// The same for several polls that share a number of endpoints to look at, about.
    pub fn poll_within(&mut self, now: Time, budget: &mut u32) -> Option<Action> {
        while self.out.is_empty() && *budget > 0 {
            match self.work(now, self.settings.slice.max(1)) {
                0 => break,
                done => *budget = budget.saturating_sub(done),
            }
        }
        self.out.pop_front()
    }

    /// When to poll again; [`Time::ZERO`] when there is work left.
    pub fn deadline(&self) -> Time {
        if !self.out.is_empty() || !self.jobs.is_empty() || self.sweep != Sweep::Idle {
            return Time::ZERO;
        }
        let blocks = self.blocks.values().filter(|block| !block.over).filter_map(|block| block.until);
        let due = self.ledger.first_due().map_or(Time::NEVER, |(due, _)| due);
        let times = [self.flush_at, due, self.facilities.deadline(), self.phase_deadline()];
        times.into_iter().chain(blocks).fold(Time::NEVER, Time::min)
    }

    /// One piece of work of about `budget` endpoints; gives its size, 0 when there was nothing to do. What was begun is finished
    /// first, so that jobs and sweeps never see each other half done.
    fn work(&mut self, now: Time, budget: u32) -> u32 {
        if self.sweep != Sweep::Idle {
            return self.sweep_on(now, budget);
        }
        if let Some(job) = self.jobs.pop_front() {
            return self.run(now, job, budget);
        }
        if let Some(endpoints) = self.facilities.advance(now, &self.topology, &self.settings.integration) {
            self.jobs.push_back(Job::over(What::Look, endpoints));
            return 1;
        }
        if let Some((&number, block)) = self.blocks.iter_mut().find(|(_, b)| !b.over && b.until.is_some_and(|until| until <= now)) {
            block.over = true;
            self.jobs.push_back(Job::over_selection(What::Expire(number), block.selection));
            return 1;
        }
        if let Some((_, slot)) = self.ledger.first_due().filter(|(due, _)| *due <= now) {
            self.resend(now, slot);
            return 1;
        }
        if self.flush_at <= now {
            self.flush_at = Time::NEVER;
            self.power_on = None;
            self.blocks.values_mut().for_each(|block| block.idle = None);
            self.sweep = Sweep::Retract;
            return 1;
        }
        self.advance_phase(now)
    }

    /// Announces what is dirty, or moved to another entity, at `at` or before, unless the gateway still waits after power-on.
    pub(super) fn schedule(&mut self, at: Time) {
        if self.power_on.is_none() && !(self.dirty.is_empty() && self.moved.is_empty()) {
            self.flush_at = self.flush_at.min(at);
        }
    }

    /// The state of a group, made with the default forms when it is new.
    pub(super) fn group_mut(&mut self, group: u16) -> &mut Group {
        let place = usize::from(group);
        if place >= self.groups.len() {
            self.groups.resize(place + 1, Group::new(self.settings.forms));
        }
        &mut self.groups[place]
    }

    /// What `endpoint` should be.
    pub(super) fn truth(&self, endpoint: EndpointIndex) -> Want {
        let admin = self.admin_of(endpoint);
        if admin == Admin::Blocked || matches!(self.phase, Phase::Ending { .. } | Phase::Ended) {
            return Want::Out(Reason::MANAGEMENT);
        }
        let failed = self.topology.span_of(endpoint).and_then(|span| self.facilities.reason(span));
        match failed {
            Some(reason) => Want::Out(reason),
            None if self.leave(endpoint) == Leave::No => Want::In,
            None => Want::Leaving,
        }
    }

    /// Which departure `endpoint` is in, as long as it is in service.
    pub(super) fn leave(&self, endpoint: EndpointIndex) -> Leave {
        match (self.phase, self.admin_of(endpoint)) {
            (Phase::Leaving { .. }, _) => Leave::Shutdown,
            (_, Admin::Leaving(number)) => Leave::Block(number),
            _ if self.draining => Leave::Drain,
            _ => Leave::No,
        }
    }

    pub(super) fn admin_of(&self, endpoint: EndpointIndex) -> Admin {
        self.admin.get(endpoint.0 as usize).copied().unwrap_or(Admin::Unblocked)
    }

    fn look_at_all(&mut self) {
        self.jobs.push_back(Job::over(What::Look, self.topology.endpoints()).urgent());
    }

    fn block(&mut self, now: Time, selection: Selection, how: BlockHow) {
        let admin = match how {
            BlockHow::Force => Admin::Blocked,
            BlockHow::Graceful(delay) => {
                self.blocks_made = self.blocks_made.wrapping_add(1);
                let until = (delay > Duration::ZERO).then(|| now + delay);
                self.blocks.insert(self.blocks_made, Block { selection, until, over: false, live: 1, idle: Some(0), reported: false });
                Admin::Leaving(self.blocks_made)
            }
        };
        self.jobs.push_back(Job::over_selection(What::Block(admin), selection));
    }

    fn set_draining(&mut self, now: Time, draining: bool) {
        self.draining = draining;
        self.drained = draining.then(|| self.drained.unwrap_or(now));
        self.look_at_all();
    }

    fn shut_down(&mut self, now: Time, until: Time) {
        if self.phase == Phase::Serving {
            self.phase = if until > now { Phase::Leaving { started: now, until } } else { self.ending(now) };
            self.power_on = None;
            self.look_at_all();
        }
    }

    fn ending(&self, now: Time) -> Phase {
        Phase::Ending { until: now + self.settings.shutdown_wait }
    }

    fn phase_deadline(&self) -> Time {
        match self.phase {
            Phase::Serving | Phase::Ended => Time::NEVER,
            Phase::Leaving { until, .. } if self.calls_up() > 0 => until,
            Phase::Leaving { .. } if self.outstanding == 0 => Time::ZERO,
            Phase::Leaving { started, until } => until.min(started + Duration::from_secs(1)),
            Phase::Ending { .. } if self.is_all_said() => Time::ZERO,
            Phase::Ending { until } => until,
        }
    }

    /// Goes on with the shutdown.
    fn advance_phase(&mut self, now: Time) -> u32 {
        if self.phase_deadline() > now {
            return 0;
        }
        match self.phase {
            Phase::Serving | Phase::Ended => return 0,
            Phase::Leaving { .. } => {
                self.phase = self.ending(now);
                self.look_at_all();
            }
            Phase::Ending { .. } => {
                self.phase = Phase::Ended;
                self.out.push_back(Action::ShutdownComplete);
            }
        }
        1
    }

    /// Whether the process was told to end.
    pub fn is_shutting_down(&self) -> bool {
        self.phase != Phase::Serving
    }

    fn is_all_said(&self) -> bool {
        self.dirty.is_empty() && self.outstanding == 0
    }

    fn calls_up(&self) -> u32 {
        self.calls.iter().fold(0, |sum, up| sum.saturating_add(*up))
    }
}
