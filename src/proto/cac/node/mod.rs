//! A gateway node of the cluster (SC): asks the central node for each call, decides alone when it must, and tells afterwards.
//!
//! Drive it: [`Node::step`] with each event as it comes, and with [`Event::Time`] no later than [`Node::deadline`]; then do what
//! [`Node::poll`] says until it says nothing. Every request is decided within [`Settings::decide_within`] of being asked (I10), by the
//! answer, or by the [`Policy`] of its scopes. The node owns the truth about its calls: the central node's copy can be rebuilt from it
//! at any time, and is, whenever a session begins (R11).

mod quotas;
mod reports;
mod requests;
mod session;

use super::authority::Authority;
use super::charge::{Charge, Class, Guid, Key, Leg, ScId};
use super::floor;
use super::ledger::{Admission, Ccb};
use super::limits::{Amount, Amounts, Cause, Denial, Limits, UNLIMITED};
use super::message::{Framed, Refusal, Report, Side, ToCentral, ToNode, Told, features};
use super::policy::{self, Policy};
use super::scope::{ScopeId, Tree};
use crate::proto::base::Time;
pub use quotas::QuotaView;
use quotas::Quotas;
use requests::Requests;
use session::Link;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// What a node is told at its start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its name.
    pub sc: ScId,
    /// Its life: another number than every life of it before, and every other gateway that is given its name by mistake, has.
    pub incarnation: u32,
    /// A request is decided so long after it was asked, with or without an answer (R39).
    pub decide_within: Duration,
    /// So long a request that was given up is remembered, for an answer that comes late (R5).
    pub expire_after: Duration,
    /// Between heartbeats.
    pub heartbeat: Duration,
    /// So many heartbeats without a word, and the session is over.
    pub heartbeats_missed: u32,
    /// Between two comparisons of what both ends have (R33).
    pub compare_every: Duration,
    /// Requests waiting at a time, those given up included.
    pub requests_max: u32,
    /// Reports that are not acknowledged; one more ends the session, and the sync of the next one tells all.
    pub reports_max: usize,
    /// Calls at a time.
    pub calls_max: usize,
    /// Nodes of the cluster, for [`Policy::Share`] and the floors of [`Policy::HoldLast`]. None: they are not said, and there are no floors.
    pub nodes: Vec<ScId>,
    /// Central nodes of the cluster: one, or a pair of which one leads and the other keeps a copy (R42).
    pub centrals: u8,
    /// What this node can do beyond the first minor version: [`features`].
    pub features: u32,
    /// Cores that have quotas, by their numbers from 0.
    pub cores: u8,
}

impl Settings {
    /// The times of the requirements, for this life of this node.
    pub fn new(sc: ScId, incarnation: u32) -> Settings {
        Settings {
            sc,
            incarnation,
            decide_within: Duration::from_millis(250),
            expire_after: Duration::from_secs(3),
            heartbeat: Duration::from_millis(200),
            heartbeats_missed: 3,
            compare_every: Duration::from_secs(5),
            requests_max: 16_384,
            reports_max: 8_192,
            calls_max: 1_000_000,
            nodes: Vec::new(),
            centrals: 1,
            features: features::COPY | features::QUOTAS | features::BUSY,
            cores: 1,
        }
    }
}

/// What happens to a node.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// The connection asked for with [`Action::Connect`] is there.
    LinkUp(Side),
    /// It is gone, or did not come about.
    LinkDown(Side),
    /// A message came by it.
    Received(Side, Framed<ToNode>),
    /// A call wants to begin.
    Ask(Guid, Leg, Charge),
    /// Both legs of a pair want to begin, or none; the decision is told as one about the first.
    AskBoth((Guid, Leg, Charge), (Guid, Leg, Charge)),
    /// A call is to be charged otherwise.
    Change(Guid, Leg, Charge),
    /// A call is charged this from now on, whatever the limits say: it was before, or needs less.
    Fact(Guid, Leg, Charge),
    /// A call begins, which the core of its GUID admitted with places of its quotas.
    Took(Guid, Leg, Charge),
    /// A call begins: its core admitted it, as this node did not say in time whether it may.
    Alone(Guid, Leg, Charge),
    /// This core goes by the change of this number of its quota.
    Keeps(u8, ScopeId, u32),
    /// A call is over, or no longer wanted.
    End(Guid, Leg),
    /// The gateway ends, and its calls with it.
    Leave,
    /// Nothing but time.
    Time,
}

/// What a node wants done.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Connect to this central node.
    Connect(Side),
    /// Close the connection.
    Disconnect(Side),
    /// Send this by it.
    Send(Side, Framed<ToCentral>),
    /// The decision about a call that asked to begin.
    Decided(Guid, Leg, Decision),
    /// A call that asked to begin may, with these places of quotas: its core gets those that it did not have, on top of its quotas.
    Lent(Guid, Leg, Charge),
    /// The decision about a change.
    Changed(Guid, Leg, Decision),
    /// This core has this quota from now on, and says so with the number of the change. In this order with [`Action::Lease`], and never lost.
    Quota(u8, ScopeId, u32, u32),
    /// The quotas of all cores hold up to then.
    Lease(Time),
    /// Operators should know.
    Note(Note),
}

/// A decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It may.
    Admitted(Admission),
    /// It may not.
    Refused(Denial),
}

/// What operators should know of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// This central node answers and leads: a session of this epoch begins, or one goes on in it.
    Connected(Side, u64),
    /// It no longer does.
    Disconnected(Side),
    /// It is the standby: a session begins that keeps a copy of the calls there.
    Copying(Side),
    /// All calls are known to it.
    InSync(Side),
    /// It refuses a session.
    Refused(Side, Refusal),
    /// Something would not fit, and the session was ended for it (R38).
    Overflow(Side),
    /// It says it leads in the epoch of another one, or of another cluster than that: it is not listened to.
    OtherLeader(Side),
    /// Both ends did not have the same calls in so many parts.
    Mended(Side, u32),
}

/// What a node counts (R44).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Calls the central node admitted.
    pub granted: u64,
    /// Calls it refused.
    pub denied: u64,
    /// Calls admitted by its cores with quotas, which it gave.
    pub leased: u64,
    /// Calls admitted here, without it.
    pub local: u64,
    /// The same by why.
    pub local_by: [u64; Admission::ALL.len()],
    /// Calls refused here, without it.
    pub refused: u64,
    /// Requests not answered in time.
    pub overdue: u64,
    /// Calls decided here because the central node has too much to do.
    pub busy: u64,
    /// Answers to requests that were given up.
    pub late: u64,
    /// Messages of an old session, or older than the last one.
    pub stale: u64,
    /// Syncs begun.
    pub syncs: u64,
    /// Parts in which both ends were found to differ.
    pub mended: u64,
    /// The last sync that came to its end: calls told, and how long it took.
    pub synced: (u64, Duration),
}

/// A gateway node.
#[derive(Debug)]
pub struct Node {
    settings: Settings,
    tree: Arc<Tree>,
    policies: Vec<Policy>,
    /// The calls that are up here.
    calls: Authority,
    /// What calls but for emergencies had in each scope when contact was lost last.
    held: Vec<Amounts>,
    requests: Requests,
    quotas: Quotas,
    /// Tells apart what is decided here without the central node.
    rules: u64,
    /// Whether the central node that led last keeps floors free; one that is not known yet is taken for one that does.
    floors_kept: bool,
    /// One for each central node, by [`Side`].
    links: Vec<Link>,
    /// The highest epoch seen, who had it, and its cluster.
    highest: (u64, Side, u64),
    counts: Counts,
    actions: VecDeque<Action>,
}

impl Node {
    /// A node that has no call and no contact. `policies` in the order of the tree, [`Policy::Open`] where there are too few.
    pub fn new(now: Time, settings: Settings, tree: Arc<Tree>, limits: Vec<Limits>, mut policies: Vec<Policy>) -> Node {
        policies.resize(tree.len(), Policy::Open);
        let calls = Authority::new(tree.clone(), limits, settings.calls_max);
        Node {
            rules: policy::fingerprint(&policies, calls.all_limits(), &settings.nodes),
            floors_kept: true,
            held: vec![Amounts::ZERO; tree.len()],
            requests: Requests::new(settings.requests_max),
            quotas: Quotas::new(tree.len(), settings.cores),
            links: (0..settings.centrals.max(1)).map(|_| Link::down(now, &settings)).collect(),
            highest: (0, Side(0), 0),
            counts: Counts::default(),
            actions: VecDeque::new(),
            calls,
            policies,
            tree,
            settings,
        }
    }

    /// The same with calls that its last life saved: they are up already (SC switchover).
    pub fn restore(&mut self, now: Time, saved: impl IntoIterator<Item = Told>) {
        for told in saved {
            // The quotas were those of the last life.
            self.calls.fact(now, self.key(told.guid, told.leg), told.charge.unleased(), told.admission, 0);
        }
    }

    /// The calls that are up.
    pub fn calls(&self) -> &Authority {
        &self.calls
    }

    /// What it counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether the central node that leads has all calls of this one.
    pub fn is_in_sync(&self) -> bool {
        self.leader().and_then(|side| self.links.get(side)).is_some_and(Link::is_in_sync)
    }

    /// Whether there is a session with one that leads, and the highest epoch seen.
    pub fn contact(&self) -> (bool, u64) {
        (self.has_leader(), self.highest.0)
    }

    /// Whether the standby has all calls of this node.
    pub fn is_copied(&self) -> bool {
        self.links.iter().any(|link| !link.leads() && link.is_in_sync())
    }

    /// The central node that decides.
    pub fn leads(&self) -> Option<Side> {
        self.leader().map(|side| Side(side as u8))
    }

    /// What is kept for the central nodes: requests, and reports that one has not acknowledged (I14).
    pub fn queued(&self) -> (usize, usize) {
        (self.requests.len(), self.links.iter().map(Link::reports).max().unwrap_or(0))
    }

    /// Other limits, for the rules of being alone; the central node has its own.
    pub fn set_limits(&mut self, limits: Vec<Limits>) {
        self.calls.set_limits(limits);
        self.rules = policy::fingerprint(&self.policies, self.calls.all_limits(), &self.settings.nodes);
    }

    /// One event.
    pub fn step(&mut self, now: Time, event: Event) {
        match event {
            Event::LinkUp(Side(side)) => self.link_up(now, usize::from(side)),
            Event::LinkDown(Side(side)) => self.disconnected(now, usize::from(side)),
            Event::Received(Side(side), framed) => self.received(now, usize::from(side), framed),
            Event::Ask(guid, leg, charge) => self.ask(now, guid, leg, charge),
            Event::AskBoth(one, other) => self.ask_both(now, one, other),
            Event::Change(guid, leg, charge) => self.change(now, guid, leg, charge),
            Event::Fact(guid, leg, charge) => self.charged(now, guid, leg, charge),
            Event::Took(guid, leg, charge) => self.took(now, guid, leg, charge),
            Event::Alone(guid, leg, charge) => self.began_alone(now, guid, leg, charge),
            Event::Keeps(core, scope, number) => self.quota_keeps(now, core, scope, number),
            Event::End(guid, leg) => self.end(now, guid, leg),
            Event::Leave => self.leave(),
            Event::Time => {}
        }
        self.due(now);
    }

    /// What is to be done next.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`Node::step`] at the latest.
    pub fn deadline(&self) -> Time {
        let own = self.requests.deadline().min(self.quotas.deadline());
        self.links.iter().map(Link::deadline).fold(own, Time::min)
    }

    fn due(&mut self, now: Time) {
        self.requests_due(now);
        (0..self.links.len()).for_each(|side| self.link_due(now, side));
        self.quotas_due(now);
    }

    fn key(&self, guid: Guid, leg: Leg) -> Key {
        Key { sc: self.settings.sc, guid, leg }
    }

    fn told(&self, guid: Guid, leg: Leg) -> Option<Told> {
        let key = self.key(guid, leg);
        self.calls.ledger().get(&key).map(|ccb| told((&key, ccb)))
    }

    fn note(&mut self, note: Note) {
        self.actions.push_back(Action::Note(note));
    }

    /// A call is up: so it counts.
    fn put(&mut self, now: Time, guid: Guid, leg: Leg, charge: Charge, admission: Admission) {
        let key = self.key(guid, leg);
        self.calls.fact(now, key, charge, admission, 0);
    }

    /// Whether the scopes of `charge` let it in without the central node, a call that has `has` already. `lost`: there is no contact;
    /// otherwise it only does not answer, and what was freed here may be somebody else's already.
    fn alone(&self, charge: &Charge, has: &Charge, lost: bool) -> Result<(), Denial> {
        if charge.class == Class::Emergency {
            return Ok(());
        }
        for scope in charge.scopes().filter(|&scope| !charge.is_leased(scope)) {
            let ceiling = match self.policies.get(usize::from(scope.0)).copied().unwrap_or_default() {
                Policy::Open => continue,
                Policy::HoldLast if lost => self.may_hold(scope, charge.class),
                Policy::Share if lost => self.calls.limits(scope).share(self.settings.nodes.len() as u32),
                Policy::HoldLast | Policy::Share | Policy::Closed => Amounts::ZERO,
            };
            let more = floor::need(charge).minus(&if has.contains(scope) { floor::need(has) } else { Amounts::ZERO });
            let used = self.counted(scope, self.quotas.bound(scope));
            if let Some(amount) = used.plus(&more).first_above(&ceiling, &more) {
                let (used, limit) = (used.get(amount), ceiling.get(amount));
                return Err(Denial { scope, cause: Cause::Unreachable, used, limit });
            }
        }
        Ok(())
    }

    /// What may be up in a scope under hold-last with a call of `class` among it: as much of what is limited as was, or the floor (R41);
    /// and never more than the limits are now (R21).
    fn may_hold(&self, scope: ScopeId, class: Class) -> Amounts {
        let limits = self.calls.limits(scope);
        let held = self.held.get(usize::from(scope.0)).copied().unwrap_or_default();
        let nodes = &self.settings.nodes;
        // Nothing is kept for one that the others do not count.
        let floor =
            if self.floors_kept && nodes.contains(&self.settings.sc) { floor::floor(&limits, nodes.len() as u32) } else { Amounts::ZERO };
        let held = held.zip(&floor, u32::max);
        let held = held.zip(&limits.bounds(), |held, limit| if limit < UNLIMITED { held } else { UNLIMITED });
        limits.ceiling(class).map_or(held, |ceiling| held.at_most(&ceiling))
    }

    /// Notes what there can be in each scope, at the loss of contact: what is up, and what calls may still take of quotas.
    fn hold(&mut self) {
        let scopes = || (0..self.tree.len() as u16).map(ScopeId);
        self.held = scopes().map(|scope| self.counted(scope, self.quotas.bound(scope))).collect();
    }

    /// What calls but emergencies use of a scope, those on quotas as if there were so many of them.
    fn counted(&self, scope: ScopeId, quota: u32) -> Amounts {
        let ledger = self.calls.ledger();
        let (used, leased) = (ordinary(&ledger.used(scope)), ordinary(&ledger.leased(scope)));
        // They may all be normal ones.
        let with_quota = |amount| used.get(amount).saturating_sub(leased.get(amount)).saturating_add(quota).min(UNLIMITED);
        used.with(Amount::Calls, with_quota(Amount::Calls)).with(Amount::Normal, with_quota(Amount::Normal))
    }

    /// Tells every central node there is a session with; the sync of the next session tells the others.
    fn report(&mut self, now: Time, report: Report) {
        (0..self.links.len()).for_each(|side| self.report_to(now, side, report));
    }

    /// Tells those that keep a copy what the one that leads knows, because it decided so.
    fn copy(&mut self, now: Time, guid: Guid, leg: Leg) {
        let Some(told) = self.told(guid, leg) else { return };
        for side in 0..self.links.len() {
            if self.links.get(side).is_some_and(|link| !link.leads()) {
                self.report_to(now, side, Report::Fact(told));
            }
        }
    }
}

/// A call as it is told.
fn told((key, ccb): (&Key, &Ccb)) -> Told {
    Told { guid: key.guid, leg: key.leg, charge: ccb.charge, admission: ccb.admission }
}

/// What limits are about: the calls are those that are no emergencies, which do not take the place of others.
fn ordinary(used: &Amounts) -> Amounts {
    used.with(Amount::Calls, used.get(Amount::Normal) + used.get(Amount::Priority))
}
