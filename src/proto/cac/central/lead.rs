//! One of a pair: it keeps a copy of all calls until it is told to lead, and stops at the moment its time is over (R42, I9).
//!
//! Who leads is decided elsewhere ([`lease`](super::super::lease)); this is what it means. A standby has sessions like a leader, with
//! every gateway, and takes syncs and reports; it answers no request. When it begins to lead it tells so in each session, every gateway
//! compares what both have, and the same digests are as good as a sync: then it grants.

use super::super::charge::ScId;
use super::nodes::{Contact, Record};
use super::{Action, Central, Note, ToNode};
use crate::proto::base::Time;

impl Central {
    /// It leads in `epoch` up to `until`, and learns what is up first (R32).
    pub(super) fn lead(&mut self, now: Time, epoch: u64, until: Time) {
        if until <= now || epoch <= self.settings.epoch {
            return;
        }
        // The standby forgot whom it could not reach; the leader before may have reached it, and granted it calls up to now.
        for &sc in &self.settings.expected {
            self.nodes.entry(sc).or_insert_with(|| Record::missing(now));
        }
        let (mut copies, mut up) = (0, Vec::new());
        for (&sc, node) in &mut self.nodes {
            copies += u32::from(node.has_copy());
            node.told = false;
            match &mut node.contact {
                Contact::Up(session) => {
                    // Its next part would carry the old epoch: the node begins it again.
                    session.sync = None;
                    up.push(sc);
                }
                // For the same reason its time begins now.
                Contact::Lost(since, _) => *since = now,
            }
        }
        // Said in the session as it was; from then on it goes on in the new epoch.
        up.into_iter().for_each(|sc| self.send(sc, ToNode::Lead { epoch }));
        self.settings.epoch = epoch;
        self.lead_until = Some(until);
        self.learning = Some(now + self.learn_for());
        self.quotas_anew();
        self.note(Note::Leads(epoch, copies));
    }

    /// It leads no more: it answers nothing, and every gateway begins a new session, with a copy here.
    pub(super) fn step_down(&mut self, now: Time) {
        if self.lead_until.take().is_none() {
            return;
        }
        self.learning = None;
        let up: Vec<ScId> = self.nodes.iter().filter(|(_, node)| matches!(node.contact, Contact::Up(_))).map(|(&sc, _)| sc).collect();
        for sc in up {
            self.send(sc, ToNode::Goodbye);
            self.hang_up(now, sc);
        }
        self.nodes.values_mut().for_each(|node: &mut Record| node.told = false);
        self.quotas_anew();
        self.settings.epoch = 0;
        self.note(Note::SteppedDown);
    }

    /// Ends the session of a node, if it has one.
    pub(super) fn hang_up(&mut self, now: Time, sc: ScId) {
        let Some(Contact::Up(session)) = self.nodes.get(&sc).map(|node| &node.contact) else { return };
        let link = session.link;
        self.links.remove(&link);
        self.actions.push_back(Action::Close(link));
        self.lose(now, sc);
    }
}
