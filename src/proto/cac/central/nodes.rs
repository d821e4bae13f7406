//! What the central node knows of each gateway node: its session, or since when it is lost; and when it is forgotten.

use super::super::charge::ScId;
use super::super::message::features;
use super::sweep::{Sweep, Why};
use super::{Action, Central, Framed, Header, LinkId, NodeView, Note, Reach, Refusal, ToNode, VERSION};
use crate::proto::base::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long rules may differ before operators are told: as long as it takes to reload both ends.
const RULES_PATIENCE: Duration = Duration::from_secs(5);

/// One gateway node.
#[derive(Debug)]
pub(super) struct Record {
    pub contact: Contact,
    /// Whether it has told all it has since this central node began.
    pub told: bool,
    /// The same of its quotas; and the life that has them, and up to when they may hold.
    pub quota_told: bool,
    pub life: u32,
    pub lease_over: Time,
    /// Calls of it that are being taken out.
    pub sweep: Option<Sweep>,
    /// One that says it is this node while this node is alive (R35).
    newcomer: Option<Newcomer>,
}

/// How it can be reached.
#[derive(Debug)]
pub(super) enum Contact {
    /// A session.
    Up(Session),
    /// It is lost since then; whether the calls that need not be kept are forgotten already.
    Lost(Time, bool),
}

#[derive(Debug)]
pub(super) struct Session {
    pub link: LinkId,
    pub incarnation: u32,
    pub id: u64,
    /// The last message heard, and sent.
    pub heard: u64,
    pub sent: u64,
    pub heard_at: Time,
    /// The last report that counted.
    pub reports: u64,
    pub features: u32,
    pub sync: Option<Sync>,
    synced: bool,
    /// Whether the node has quotas; whether it has told of them in this session, and the last grant.
    pub leases: bool,
    pub reported: bool,
    pub granted: u64,
    /// Since when its rules for being alone are others, and whether operators were told.
    other_rules: Option<(Time, bool)>,
}

/// A sync under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sync {
    pub generation: u32,
    pub chunks: u32,
    pub calls: u32,
}

/// Who was sent away, and why: operators are told once, and again after a while (R45).
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<(ScId, Refusal), Time>);

impl Refusals {
    /// How long what is told goes on to be known.
    const KNOWN_FOR: Duration = Duration::from_secs(60);
    /// So many are remembered; beyond that all are news again.
    const MAX: usize = 64;

    fn is_news(&mut self, now: Time, sc: ScId, why: Refusal) -> bool {
        if self.0.get(&(sc, why)).is_some_and(|&since| now.since(since) < Refusals::KNOWN_FOR) {
            return false;
        }
        if self.0.len() >= Refusals::MAX {
            self.0.clear();
        }
        self.0.insert((sc, why), now);
        true
    }
}

/// A hello that waits for the old node to show whether it is alive, or the one that is answered at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newcomer {
    pub link: LinkId,
    pub incarnation: u32,
    pub attempt: u32,
    pub until: Time,
    /// What it can do beyond the first minor version.
    pub features: u32,
}

/// What a hello says of its node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    pub version: u16,
    pub fingerprint: u64,
    pub highest_epoch: u64,
    pub features: u32,
    pub rules: u64,
    pub cluster: u64,
}

impl Record {
    /// A node that is expected.
    pub fn missing(now: Time) -> Record {
        let contact = Contact::Lost(now, false);
        Record { contact, told: false, quota_told: false, life: 0, lease_over: Time::ZERO, sweep: None, newcomer: None }
    }

    pub fn has_told(&self) -> bool {
        self.told && self.quota_told
    }

    pub fn is_in_sync(&self) -> bool {
        self.has_told() && self.has_copy() && self.sweep.is_none()
    }

    /// Whether there is a session in which it has told all it had, be it to a standby.
    pub fn has_copy(&self) -> bool {
        matches!(&self.contact, Contact::Up(session) if session.sync.is_none() && session.synced)
    }
}

impl Central {
    /// The gateway nodes it knows, by name.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView> {
        self.nodes.iter().map(|(&sc, node)| {
            let (reach, incarnation, session) = match &node.contact {
                Contact::Up(session) if node.is_in_sync() => (Reach::InSync, session.incarnation, session.id),
                Contact::Up(session) => (Reach::Syncing, session.incarnation, session.id),
                Contact::Lost(since, _) => (Reach::Lost(*since), 0, 0),
            };
            let (calls, drained) = (self.authority.ledger().count_of(sc), self.drained.contains(&sc));
            NodeView { sc, reach, told: node.has_told(), incarnation, session, calls, drained, lease_over: node.lease_over }
        })
    }

    /// A node wants a session.
    pub(super) fn hello(&mut self, now: Time, sc: ScId, newcomer: Newcomer, said: Said) {
        let Said { version, fingerprint, highest_epoch, rules, .. } = said;
        // Another cluster's epochs say nothing about this one: to step back before them would depose both in turn for ever.
        let is_other = said.cluster != 0 && said.cluster != self.settings.cluster && highest_epoch > self.settings.epoch;
        if self.leads() && highest_epoch > self.settings.epoch && !is_other {
            self.note(Note::HigherEpoch(highest_epoch));
        }
        let why = if version.abs_diff(VERSION) > 1 {
            Some(Refusal::Version)
        } else if !self.leads() && said.features & features::COPY == 0 {
            Some(Refusal::NotLeader)
        } else if fingerprint != self.authority.tree().fingerprint() {
            Some(Refusal::Configuration)
        } else if is_other {
            Some(Refusal::OtherCluster)
        } else if !self.nodes.contains_key(&sc) && self.nodes.len() >= self.settings.nodes_max {
            Some(Refusal::Full)
        } else {
            None
        };
        if let Some(why) = why {
            return self.refuse(now, sc, &newcomer, why);
        }
        let is_told = rules != 0 && rules != self.rules;
        if is_told {
            self.note(Note::OtherRules(sc));
        }
        if !self.is_listed(sc) {
            self.note(Note::Unlisted(sc));
        }
        let link = newcomer.link;
        let until = now + self.settings.silence;
        let silence = self.settings.silence;
        let node = self.nodes.entry(sc).or_insert_with(|| Record::missing(now));
        match &node.contact {
            // The node itself, before the loss of its old connection was seen; a life before never comes back.
            Contact::Up(session)
                if session.link != newcomer.link
                    && session.incarnation != newcomer.incarnation
                    && now.since(session.heard_at) < silence =>
            {
                let before = node.newcomer.replace(Newcomer { until, ..newcomer });
                // One that says hello again by the same connection waits by it.
                if let Some(old) = before.filter(|old| old.link != link) {
                    self.refuse(now, sc, &old, Refusal::DuplicateId);
                }
                self.send(sc, ToNode::Heartbeat { load: self.load });
            }
            _ => self.welcome(now, sc, newcomer),
        }
        if let Some(Contact::Up(session)) = self.nodes.get_mut(&sc).map(|node| &mut node.contact)
            && session.link == link
        {
            session.other_rules = is_told.then_some((now, true));
        }
    }

    /// A reload changes one end first: other rules are told of when they stay, once until they are the same again.
    pub(super) fn compare_rules(&mut self, now: Time, sc: ScId, rules: u64) {
        let is_other = rules != 0 && rules != self.rules;
        let Some(Contact::Up(session)) = self.nodes.get_mut(&sc).map(|node| &mut node.contact) else { return };
        session.other_rules = is_other.then(|| session.other_rules.unwrap_or((now, false)));
        if let Some((since, told @ false)) = &mut session.other_rules
            && now.since(*since) >= RULES_PATIENCE
        {
            *told = true;
            self.note(Note::OtherRules(sc));
        }
    }

    /// Whether it is one of those that are told of at the start; where none is, all are.
    fn is_listed(&self, sc: ScId) -> bool {
        self.settings.expected.is_empty() || self.settings.expected.contains(&sc)
    }

    fn welcome(&mut self, now: Time, sc: ScId, newcomer: Newcomer) {
        let is_listed = self.is_listed(sc);
        self.sessions += 1;
        let id = self.sessions;
        let Some(node) = self.nodes.get_mut(&sc) else { return };
        if node.sweep.is_some_and(|sweep| sweep.is_of_dead()) {
            (node.told, node.quota_told) = (false, false);
        }
        // Back before all was forgotten: what is left counts until it has told.
        let kept = node.sweep.take_if(|sweep| sweep.is_overdue());
        let session = Session {
            link: newcomer.link,
            incarnation: newcomer.incarnation,
            id,
            heard: 0,
            sent: 0,
            heard_at: now,
            reports: 0,
            features: newcomer.features,
            sync: None,
            synced: false,
            // Places are given to those only whom the others count.
            leases: is_listed && newcomer.features & self.settings.features & features::QUOTAS != 0,
            reported: false,
            granted: 0,
            other_rules: None,
        };
        let leases = session.leases;
        let before = std::mem::replace(&mut node.contact, Contact::Up(session));
        if let Contact::Up(old) = before
            && old.link != newcomer.link
        {
            self.links.remove(&old.link);
            self.actions.push_back(Action::Close(old.link));
        }
        if let Some(sweep) = kept {
            self.note(Note::Forgotten(sc, sweep.removed()));
        }
        self.note(Note::Joined(sc));
        self.quota_session(now, sc, newcomer.incarnation, leases);
        let (credit, cluster) = (self.settings.credit, self.settings.cluster);
        let (leads, features) = (self.leads(), self.settings.features);
        self.send(sc, ToNode::Welcome { attempt: newcomer.attempt, credit, leads, features, cluster });
    }

    /// Sends a node away: its connection is nobody's from then on, and what it was is over.
    fn refuse(&mut self, now: Time, sc: ScId, newcomer: &Newcomer, why: Refusal) {
        self.counts.refused += 1;
        if self.refusals.is_news(now, sc, why) {
            self.note(if why == Refusal::DuplicateId { Note::DuplicateId(sc) } else { Note::Refused(sc, why) });
        }
        let header = Header { sc, incarnation: newcomer.incarnation, epoch: self.settings.epoch, session: 0, number: 0 };
        let message = ToNode::Refused { attempt: newcomer.attempt, why };
        self.actions.push_back(Action::Send(newcomer.link, Framed { header, message }));
        self.actions.push_back(Action::Close(newcomer.link));
        self.link_down(now, newcomer.link);
    }

    pub(super) fn link_down(&mut self, now: Time, link: LinkId) {
        let Some(sc) = self.links.remove(&link) else { return };
        let Some(node) = self.nodes.get_mut(&sc) else { return };
        if node.newcomer.is_some_and(|newcomer| newcomer.link == link) {
            node.newcomer = None;
        }
        if matches!(&node.contact, Contact::Up(session) if session.link == link) {
            self.lose(now, sc);
        }
    }

    /// A node is lost. Its calls count on, and are what they were before a sync that was cut (I12).
    pub(super) fn lose(&mut self, now: Time, sc: ScId) {
        let Some(node) = self.nodes.get_mut(&sc) else { return };
        node.contact = Contact::Lost(now, false);
        self.note(Note::Orphaned(sc));
        self.quota_lost(sc);
        if let Some(newcomer) = self.nodes.get_mut(&sc).and_then(|node| node.newcomer.take()) {
            self.welcome(now, sc, newcomer);
        }
    }

    /// A node is dead: its calls no longer count.
    pub(super) fn forget(&mut self, now: Time, sc: ScId) {
        let Some(node) = self.nodes.get_mut(&sc) else { return };
        // Not part of what is forgotten: it would be welcomed as soon as the old one hangs up.
        let newcomer = node.newcomer.take();
        self.hang_up(now, sc);
        if let Some(&Contact::Lost(since, _)) = self.nodes.get(&sc).map(|node| &node.contact) {
            self.begin_sweep(now, sc, self.sessions + 1, Why::Dead(since));
        }
        if let Some(newcomer) = newcomer {
            self.nodes.entry(sc).or_insert_with(|| Record::missing(now));
            self.welcome(now, sc, newcomer);
        }
    }

    pub(super) fn drop_node(&mut self, sc: ScId, removed: u32) {
        self.nodes.remove(&sc);
        self.authority.forget(sc);
        self.note(Note::Forgotten(sc, removed));
    }

    pub(super) fn node_deadline(&self, node: &Record) -> Time {
        let newcomer = node.newcomer.map_or(Time::NEVER, |newcomer| newcomer.until);
        let contact = match &node.contact {
            Contact::Up(session) => session.heard_at + self.settings.silence,
            Contact::Lost(since, false) => *since + self.settings.forget_after,
            Contact::Lost(since, true) => *since + self.settings.forget_at_last,
        };
        contact.min(newcomer)
    }

    /// Nodes that are silent, or lost for too long; newcomers whose predecessor answered, or did not.
    pub(super) fn nodes_due(&mut self, now: Time) {
        let due: Vec<ScId> = self.nodes.iter().filter(|(_, node)| self.node_deadline(node) <= now).map(|(&sc, _)| sc).collect();
        for sc in due {
            let silence = self.settings.silence;
            let Some(node) = self.nodes.get_mut(&sc) else { continue };
            match &node.contact {
                Contact::Up(session) if now.since(session.heard_at) >= silence => self.hang_up(now, sc),
                Contact::Up(_) => {
                    // It spoke after it was challenged: the newcomer is another one.
                    if let Some(newcomer) = node.newcomer.take() {
                        self.refuse(now, sc, &newcomer, Refusal::DuplicateId);
                    }
                }
                Contact::Lost(..) if node.sweep.is_some() => {}
                &Contact::Lost(since, _) => {
                    let at_last = now.since(since) >= self.settings.forget_at_last;
                    self.begin_sweep(now, sc, self.sessions + 1, Why::Overdue(since, at_last));
                }
            }
        }
    }

    /// Of a node that was lost for too long, so many calls are gone: all, `at_last`, or those that need not be kept.
    pub(super) fn forget_overdue(&mut self, now: Time, sc: ScId, at_last: bool, removed: u32) {
        let policies = std::mem::take(&mut self.policies);
        self.rest(now, sc, |scope| at_last || !policies.get(usize::from(scope.0)).is_some_and(|policy| policy.keeps_counting()));
        self.policies = policies;
        let Some(node) = self.nodes.get_mut(&sc) else { return };
        // Of one that has not told, nobody knows what it has.
        let kept = !node.told && !at_last && self.policies.iter().any(|policy| policy.keeps_counting());
        if !kept && self.authority.ledger().of_node(sc).next().is_none() && !self.quotas_count(sc) {
            self.drop_node(sc, removed);
        } else if let Some(node) = self.nodes.get_mut(&sc)
            && let Contact::Lost(_, done) = &mut node.contact
            && !std::mem::replace(done, true)
        {
            self.note(Note::Forgotten(sc, removed));
        }
    }

    /// Ends the learning when every expected node has told, or the time for it is over; keeps places for those that have not.
    pub(super) fn learned(&mut self, now: Time) {
        let missing = self.missing();
        let nodes = self.nodes.len().max(self.settings.expected.len()) as u32;
        self.authority.set_missing(missing, nodes);
        if let Some(until) = self.learning
            && (missing == 0 || until <= now)
        {
            self.learning = None;
            self.note(Note::Active(missing));
            self.give_quotas();
        }
    }

    pub(super) fn synced(&mut self, sc: ScId) {
        if let Some(Contact::Up(session)) = self.nodes.get_mut(&sc).map(|node| &mut node.contact) {
            session.synced = true;
        }
    }
}
