//! The central node of the cluster (CS): one authority over the calls of all gateway nodes, and what it knows of each of them.
//!
//! Drive it like a [`Node`](super::node::Node): [`Central::step`] with each event, no later than [`Central::deadline`] with
//! [`Event::Time`]; then do what [`Central::poll`] says. It keeps nothing that a sync of the nodes cannot rebuild, so it may be restarted
//! at any time, with a higher epoch: it then learns what is up before it grants anything (R32).

mod lead;
mod nodes;
mod offenders;
mod quotas;
mod sweep;
mod sync;

use super::authority::{Authority, Verdict};
use super::charge::{Class, Key, ScId};
use super::floor;
use super::ledger::Ccb;
use super::limits::{Amounts, Cause, Denial, Limits};
use super::message::{Answer, Framed, Header, LOAD_MAX, Refusal, Report, Request, ToCentral, ToNode, Told, VERSION, features};
use super::policy::{self, Policy};
use super::quota::Giving;
use super::scope::{ScopeId, Tree};
use super::threshold::Crossing;
use crate::proto::base::Time;
use nodes::{Contact, Newcomer, Record, Refusals, Said, Sync};
use offenders::Offenders;
pub use offenders::{Offender, Who};
use quotas::Quotas;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Refusals remembered for operators.
const DENIALS_MAX: usize = 64;

/// A refusal, for operators who ask why (R46).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// When.
    pub at: Time,
    /// The node that asked.
    pub sc: ScId,
    /// The call.
    pub guid: super::Guid,
    /// What it wanted.
    pub charge: super::Charge,
    /// Why not.
    pub denial: Denial,
}

/// How a gateway node can be reached, for operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// It has told all it has.
    InSync,
    /// It is telling.
    Syncing,
    /// It is lost since then; its calls may still count.
    Lost(Time),
}

/// One gateway node, for operators (R46).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeView {
    /// Its name.
    pub sc: ScId,
    /// How it can be reached.
    pub reach: Reach,
    /// Whether it has told what it has since this central node began.
    pub told: bool,
    /// Its life and its session; 0 without one.
    pub incarnation: u32,
    /// See `incarnation`.
    pub session: u64,
    /// Calls that count for it.
    pub calls: usize,
    /// Whether it may have no new ones.
    pub drained: bool,
    /// Up to when its quotas may hold.
    pub lease_over: Time,
}

/// One connection to the central node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u64);

/// What a central node is told at its start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its life: larger than that of every life before. 0: one of a pair, which keeps a copy until it is told to lead (R42).
    pub epoch: u64,
    /// Nodes that may have calls: it learns until they have told.
    pub expected: Vec<ScId>,
    /// It learns no longer than this.
    pub learn_for: Duration,
    /// A node that was lost is forgotten after so long (R9), unless a scope's policy keeps counting.
    pub forget_after: Duration,
    /// And after so long even then (R41).
    pub forget_at_last: Duration,
    /// A node that said nothing for so long is lost.
    pub silence: Duration,
    /// Nodes at a time.
    pub nodes_max: usize,
    /// Calls at a time.
    pub calls_max: usize,
    /// Calls looked at in one step, where many go at once.
    pub slice: usize,
    /// Chunks of a sync that may be on their way.
    pub credit: u32,
    /// Tells its cluster from others; 0: not said.
    pub cluster: u64,
    /// Which scopes are given out in quotas, in the order of the tree; [`Giving::Never`] where there are too few.
    pub giving: Vec<Giving>,
    /// What it can do beyond the first minor version: [`features`].
    pub features: u32,
}

impl Settings {
    /// The times of the requirements, for this life, with these nodes expected.
    pub fn new(epoch: u64, expected: Vec<ScId>) -> Settings {
        Settings {
            epoch,
            expected,
            learn_for: Duration::from_secs(10),
            forget_after: Duration::from_secs(30),
            forget_at_last: Duration::from_secs(600),
            silence: Duration::from_millis(800),
            nodes_max: 1024,
            calls_max: 4_000_000,
            slice: 256,
            credit: 16,
            cluster: 0,
            giving: Vec::new(),
            features: features::COPY | features::QUOTAS | features::FLOORS | features::PAGES | features::PAIRS,
        }
    }
}

/// What happens to the central node.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A connection is there; which node it is from, its authentication says (R34).
    LinkUp(LinkId, ScId),
    /// It is gone.
    LinkDown(LinkId),
    /// A message came by it.
    Received(LinkId, Framed<ToCentral>),
    /// A node is known to be dead, or an operator says so (R41, R47).
    Forget(ScId),
    /// An operator wants a node to tell all again, or every node (R47).
    Resync(Option<ScId>),
    /// No new calls of a node but emergencies, or again (R47).
    Drain(ScId, bool),
    /// It leads in this epoch, up to then unless the time is extended (R42).
    Lead(u64, Time),
    /// It leads up to then.
    Extend(Time),
    /// It leads no more.
    StepDown,
    /// The process ends: gateways need not find out by silence.
    Goodbye,
    /// Nothing but time.
    Time,
}

/// What the central node wants done.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Send this.
    Send(LinkId, Framed<ToNode>),
    /// Close the connection, behind what is to be sent by it. There is no [`Event::LinkDown`] of it.
    Close(LinkId),
    /// Operators should know.
    Note(Note),
}

/// What operators should know of the central node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// It leads: so many nodes have a copy of their calls here.
    Leads(u64, u32),
    /// It leads no more.
    SteppedDown,
    /// All expected nodes have told, or the time for it is over: so many have not.
    Active(u32),
    /// A node began a session.
    Joined(ScId),
    /// A node has told all it has: calls kept or added, and calls removed.
    InSync(ScId, u32, u32),
    /// Parts of a sync were lost; it is done again.
    SyncIncomplete(ScId),
    /// A node is lost; its calls go on counting for now.
    Orphaned(ScId),
    /// Its calls no longer count: so many.
    Forgotten(ScId, u32),
    /// Two nodes say they are this one; the newcomer was refused (R35).
    DuplicateId(ScId),
    /// A node with another configuration or version was refused.
    Refused(ScId, Refusal),
    /// A node is none of those it was told of: under hold-last nothing is kept for it.
    Unlisted(ScId),
    /// A node has other policies, or under hold-last and share other limits: alone it may take more than is kept for it.
    OtherRules(ScId),
    /// A node of this cluster has seen a higher epoch than this one: there is another central node.
    HigherEpoch(u64),
    /// Calls of a node were added and removed because both ends differed.
    Mended(ScId, u32, u32),
    /// A scope came to a threshold, or left it.
    Threshold(ScopeId, Crossing),
    /// The table of calls is full; calls that are up are not counted.
    Full(ScId),
}

/// What the central node counts (R44).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Requests granted.
    pub granted: u64,
    /// Requests refused.
    pub denied: u64,
    /// Requests answered "learning".
    pub learning: u64,
    /// Requests answered "busy".
    pub busy: u64,
    /// Calls told of that were admitted without this node.
    pub facts: u64,
    /// Parts of calls that were found to differ from what their node has.
    pub differed: u64,
    /// Hellos refused.
    pub refused: u64,
    /// Messages of an old session, or older than the last one, or from a connection without a session.
    pub stale: u64,
}

/// The central node.
#[derive(Debug)]
pub struct Central {
    settings: Settings,
    authority: Authority,
    policies: Vec<Policy>,
    nodes: BTreeMap<ScId, Record>,
    links: BTreeMap<LinkId, ScId>,
    sessions: u64,
    /// Until when it leads; `None`: it keeps a copy only. Without a pair there is no end.
    lead_until: Option<Time>,
    /// Until when it learns; `None`: it grants, if it leads.
    learning: Option<Time>,
    /// Nodes that may have no new calls.
    drained: BTreeSet<ScId>,
    quotas: Quotas,
    /// So many calls may still be looked at in this step.
    turn: usize,
    /// What limits would refuse is counted and granted all the same.
    dry_run: bool,
    denials: VecDeque<Refused>,
    offenders: Offenders,
    load: u8,
    refusals: Refusals,
    counts: Counts,
    actions: VecDeque<Action>,
    /// Tells apart what nodes may do without it.
    rules: u64,
}

impl Central {
    /// A central node that knows of no call. `limits` and `policies` in the order of the tree.
    pub fn new(now: Time, settings: Settings, tree: Arc<Tree>, limits: Vec<Limits>, mut policies: Vec<Policy>) -> Central {
        policies.resize(tree.len(), Policy::Open);
        let mut giving = settings.giving.clone();
        giving.resize(tree.len(), Giving::Never);
        let authority = Authority::new(tree, limits, settings.calls_max);
        let missing = settings.expected.iter().map(|&sc| (sc, Record::missing(now)));
        let mut central = Central {
            rules: 0,
            nodes: missing.collect(),
            lead_until: Some(Time::NEVER),
            learning: None,
            links: BTreeMap::new(),
            sessions: 0,
            drained: BTreeSet::new(),
            quotas: Quotas::new(giving),
            turn: 0,
            dry_run: false,
            denials: VecDeque::new(),
            offenders: Offenders::default(),
            load: 0,
            refusals: Refusals::default(),
            counts: Counts::default(),
            actions: VecDeque::new(),
            authority,
            policies,
            settings,
        };
        match central.settings.epoch {
            0 => central.lead_until = None,
            _ => central.learning = Some(now + central.learn_for()),
        }
        central.set_floors();
        central.learned(now);
        central
    }

    /// The calls of all nodes.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// What it counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether it grants.
    pub fn is_active(&self) -> bool {
        self.leads() && self.learning.is_none()
    }

    /// Whether it decides about calls. A standby keeps a copy of them.
    pub fn leads(&self) -> bool {
        self.lead_until.is_some()
    }

    /// Connections: those of sessions, and of newcomers whose namesake is asked whether it is alive. So at most two for each node.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// Nodes that are expected and have not told what they have.
    pub fn missing(&self) -> u32 {
        self.nodes.values().filter(|node| !node.has_told()).count() as u32
    }

    /// Its life.
    pub fn epoch(&self) -> u64 {
        self.settings.epoch
    }

    /// The last refusals, oldest first (R46).
    pub fn denials(&self) -> impl DoubleEndedIterator<Item = &Refused> {
        self.denials.iter()
    }

    /// Who was refused most, the most first (R46).
    pub fn offenders(&self) -> Vec<(Who, Offender)> {
        self.offenders.most()
    }

    /// How busy it is, as heartbeats tell: at [`LOAD_MAX`] it answers new requests that they are better decided without it (R38).
    pub fn set_load(&mut self, load: u8) {
        self.load = load.min(LOAD_MAX);
    }

    /// See [`Central::set_load`].
    pub fn load(&self) -> u8 {
        self.load
    }

    /// Whether limits only count what they would refuse (R47).
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// See [`Central::is_dry_run`].
    pub fn set_dry_run(&mut self, on: bool) {
        self.dry_run = on;
    }

    /// Other limits (R21).
    pub fn set_limits(&mut self, limits: Vec<Limits>) {
        self.authority.set_limits(limits);
        self.set_floors();
        self.give_quotas();
        self.tell_crossings();
    }

    /// Every node that is expected has its floor in the scopes under hold-last, whether it is here or not (R41).
    fn set_floors(&mut self) {
        let nodes = &self.settings.expected;
        let floor = |(place, policy): (usize, &Policy)| match policy.keeps_counting() {
            true => floor::floor(&self.authority.limits(ScopeId(place as u16)), nodes.len() as u32),
            false => Amounts::ZERO,
        };
        let floors = self.policies.iter().enumerate().map(floor).collect();
        self.authority.set_floors(floors, nodes);
        self.rules = policy::fingerprint(&self.policies, self.authority.all_limits(), &self.settings.expected);
    }

    /// One event.
    pub fn step(&mut self, now: Time, event: Event) {
        // Before anything else: what came while it stood still is not answered on a lease that is over (race 18).
        if self.lead_until.is_some_and(|until| until <= now) {
            self.step_down(now);
        }
        self.turn = self.settings.slice;
        let is_time = event == Event::Time;
        match event {
            Event::LinkUp(link, sc) => drop(self.links.insert(link, sc)),
            Event::LinkDown(link) => self.link_down(now, link),
            Event::Received(link, framed) => self.received(now, link, framed),
            Event::Forget(sc) => self.forget(now, sc),
            Event::Resync(None) => {
                let nodes: Vec<ScId> = self.nodes.keys().copied().collect();
                nodes.into_iter().for_each(|sc| self.send(sc, ToNode::Resync));
            }
            Event::Resync(Some(sc)) => self.send(sc, ToNode::Resync),
            Event::Drain(sc, on) => {
                match on {
                    true => drop(self.drained.insert(sc)),
                    false => drop(self.drained.remove(&sc)),
                }
                self.quota_drained(sc, on);
            }
            Event::Lead(epoch, until) => self.lead(now, epoch, until),
            Event::Extend(until) => self.lead_until = self.lead_until.map(|before| before.max(until)),
            Event::StepDown => self.step_down(now),
            Event::Goodbye => self.nodes.keys().copied().collect::<Vec<_>>().into_iter().for_each(|sc| self.send(sc, ToNode::Goodbye)),
            Event::Time => {}
        }
        self.nodes_due(now);
        if is_time {
            self.sweeps_due(now);
        }
        self.learned(now);
        self.quotas_due(now);
        self.tell_crossings();
    }

    /// What is to be done next.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`Central::step`] at the latest; once a turn while it is in the past.
    pub fn deadline(&self) -> Time {
        if self.is_sweeping() {
            return Time::ZERO;
        }
        let nodes = self.nodes.values().map(|node| self.node_deadline(node)).min().unwrap_or(Time::NEVER);
        nodes.min(self.quota_deadline()).min(self.learning.unwrap_or(Time::NEVER)).min(self.lead_until.unwrap_or(Time::NEVER))
    }

    fn received(&mut self, now: Time, link: LinkId, framed: Framed<ToCentral>) {
        let Some(&sc) = self.links.get(&link) else { return self.counts.stale += 1 };
        let Framed { header, message } = framed;
        if let ToCentral::Hello { version, attempt, fingerprint, highest_epoch, features, rules, cluster } = message {
            let newcomer = Newcomer { link, incarnation: header.incarnation, attempt, until: now, features };
            return self.hello(now, sc, newcomer, Said { version, fingerprint, highest_epoch, features, rules, cluster });
        }
        let epoch = self.settings.epoch;
        let session = match self.nodes.get_mut(&sc).map(|node| &mut node.contact) {
            Some(Contact::Up(session)) if session.link == link => session,
            _ => return self.counts.stale += 1,
        };
        if (header.epoch, header.session) != (epoch, session.id) || header.number <= session.heard {
            return self.counts.stale += 1;
        }
        session.heard = header.number;
        session.heard_at = now;
        match message {
            ToCentral::Hello { .. } => {}
            ToCentral::Ask(_) | ToCentral::AskBoth(..) | ToCentral::Modify(_) if self.lead_until.is_none() => self.counts.stale += 1,
            ToCentral::Ask(request) => {
                let answer = self.decide(now, sc, &request, false);
                self.reply(sc, &request, answer);
            }
            ToCentral::Modify(request) => {
                let answer = self.decide(now, sc, &request, true);
                self.reply(sc, &request, answer);
            }
            ToCentral::AskBoth(one, other) => self.ask_both(now, sc, &one, &other),
            ToCentral::Report { number, report } => self.report(now, sc, number, report),
            ToCentral::SyncBegin { generation } => {
                session.sync = Some(Sync { generation, chunks: 0, calls: 0 });
            }
            ToCentral::SyncChunk { generation, index, calls } => self.sync_chunk(now, sc, generation, index, &calls),
            ToCentral::SyncEnd { generation, chunks } => self.sync_end(now, sc, generation, chunks),
            ToCentral::Compare(digests) => self.compare(sc, &digests),
            ToCentral::Bucket { bucket, span, calls, asked } => self.mend(now, sc, (bucket, span), &calls, &asked),
            // A standby gives nothing, and is told nothing.
            ToCentral::QuotaReport { .. } if self.lead_until.is_none() => self.counts.stale += 1,
            ToCentral::QuotaReport { number, seen, scopes } => self.quota_report(now, sc, number, seen, &scopes),
            ToCentral::Heartbeat { rules } => {
                self.compare_rules(now, sc, rules);
                self.send(sc, ToNode::Heartbeat { load: self.load });
            }
            ToCentral::Goodbye => {
                // It says so itself: nothing is admitted on its quotas any more.
                if let Some(node) = self.nodes.get_mut(&sc) {
                    node.lease_over = now;
                }
                self.forget(now, sc);
            }
        }
    }

    fn reply(&mut self, sc: ScId, request: &Request, answer: Answer) {
        let Request { handle, guid, leg, .. } = *request;
        self.send(sc, ToNode::Reply { handle, guid, leg, answer });
    }

    /// Both legs of a pair, or none.
    fn ask_both(&mut self, now: Time, sc: ScId, one: &Request, other: &Request) {
        let key = Key { sc, guid: one.guid, leg: one.leg };
        let (is_new, granted) = (self.authority.ledger().get(&key).is_none(), self.counts.granted);
        let mut answer = self.decide(now, sc, one, false);
        if answer == Answer::Granted {
            answer = self.decide(now, sc, other, false);
            if answer != Answer::Granted {
                self.counts.granted = granted;
                if is_new {
                    self.authority.release(&key);
                }
            }
        }
        self.reply(sc, one, answer);
    }

    fn decide(&mut self, now: Time, sc: ScId, request: &Request, is_change: bool) -> Answer {
        let Request { guid, leg, charge, .. } = *request;
        let key = Key { sc, guid, leg };
        let session = self.session_of(sc);
        let known = self.authority.ledger().get(&key).is_some();
        if self.drained.contains(&sc) && charge.class != Class::Emergency && !is_change && !known {
            let scope = charge.scopes().next().unwrap_or(ScopeId::NONE);
            self.denied(now, sc, request, Denial { scope, cause: Cause::Drained, used: 0, limit: 0 })
        } else if self.load >= LOAD_MAX && charge.class != Class::Emergency && (is_change || !known) {
            self.counts.busy += 1;
            self.busy(sc)
        } else if self.learning.is_some() && charge.class != Class::Emergency && (is_change || !known) {
            self.counts.learning += 1;
            Answer::Learning
        } else {
            let verdict = match is_change {
                true => self.authority.modify(now, key, charge, session),
                false => self.authority.ask(now, key, charge, session),
            };
            match verdict {
                Verdict::Granted => {
                    self.counts.granted += 1;
                    Answer::Granted
                }
                Verdict::Denied(denial) if self.dry_run && denial.cause != Cause::Full => {
                    self.denied(now, sc, request, denial);
                    self.authority.fact(now, key, charge, super::Admission::Granted, session);
                    Answer::Granted
                }
                Verdict::Denied(denial) => self.denied(now, sc, request, denial),
            }
        }
    }

    /// "Busy", in the words that the node knows.
    fn busy(&self, sc: ScId) -> Answer {
        match self.nodes.get(&sc).map(|node| &node.contact) {
            Some(Contact::Up(session)) if session.features & features::BUSY == 0 => Answer::Learning,
            _ => Answer::Busy,
        }
    }

    fn denied(&mut self, now: Time, sc: ScId, request: &Request, denial: Denial) -> Answer {
        self.counts.denied += 1;
        self.offenders.refused(now, self.authority.tree(), sc, &request.charge);
        if self.denials.len() >= DENIALS_MAX {
            self.denials.pop_front();
        }
        self.denials.push_back(Refused { at: now, sc, guid: request.guid, charge: request.charge, denial });
        Answer::Denied(denial)
    }

    /// Reports count in their order only; what is behind a gap is not acknowledged but told of, and comes again.
    fn report(&mut self, now: Time, sc: ScId, number: u64, report: Report) {
        let Some(Contact::Up(session)) = self.nodes.get_mut(&sc).map(|node| &mut node.contact) else { return };
        let id = session.id;
        let is_next = number == session.reports + 1;
        if is_next {
            session.reports = number;
        }
        let (reports, heard) = (session.reports, session.heard);
        if is_next {
            match report {
                Report::Fact(told) => {
                    self.counts.facts += 1;
                    self.fact(now, sc, &told, id);
                }
                Report::Release(guid, leg) => {
                    self.authority.release(&Key { sc, guid, leg });
                }
            }
        }
        self.send(sc, ToNode::ReportAck { number: reports, gap: if number > reports { heard } else { 0 } });
    }

    fn fact(&mut self, now: Time, sc: ScId, told: &Told, session: u64) {
        let key = Key { sc, guid: told.guid, leg: told.leg };
        if !self.authority.fact(now, key, told.charge, told.admission, session) {
            self.actions.push_back(Action::Note(Note::Full(sc)));
        }
    }

    fn session_of(&self, sc: ScId) -> u64 {
        match self.nodes.get(&sc).map(|node| &node.contact) {
            Some(Contact::Up(session)) => session.id,
            _ => 0,
        }
    }

    fn send(&mut self, sc: ScId, message: ToNode) {
        let epoch = self.settings.epoch;
        let Some(Contact::Up(session)) = self.nodes.get_mut(&sc).map(|node| &mut node.contact) else { return };
        session.sent += 1;
        let header = Header { sc, incarnation: session.incarnation, epoch, session: session.id, number: session.sent };
        self.actions.push_back(Action::Send(session.link, Framed { header, message }));
    }

    fn note(&mut self, note: Note) {
        self.actions.push_back(Action::Note(note));
    }

    fn tell_crossings(&mut self) {
        while let Some((scope, crossing)) = self.authority.next_crossing() {
            self.note(Note::Threshold(scope, crossing));
        }
    }

    /// A fault in memory: `lost` is forgotten, `ghost` appears.
    #[cfg(test)]
    pub(super) fn disturb(&mut self, now: Time, lost: &Key, ghost: Key, charge: super::Charge) {
        self.authority.release(lost);
        self.authority.fact(now, ghost, charge, super::Admission::Granted, 0);
    }

    /// Whether the calls of a lost node are kept counting (R41): those that count in a scope whose policy says so.
    fn keeps(policies: &[Policy], ccb: &Ccb) -> bool {
        ccb.charge.scopes().any(|scope| policies.get(usize::from(scope.0)).is_some_and(|policy| policy.keeps_counting()))
    }
}
