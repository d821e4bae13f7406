//! How the central node comes to have the calls that a node has: by a sync of all of them, and by comparing what both ends have (R12,
//! R29, R33).

use super::super::charge::{Key, ScId};
use super::super::ledger::{BUCKETS, Digests};
use super::super::message::{Span, ToNode, Told};
use super::super::{Guid, Leg};
use super::nodes::{Contact, Record};
use super::sweep::Why;
use super::{Action, Central, Note};
use crate::proto::base::Time;
use std::collections::BTreeSet;

impl Central {
    /// What a node has, by digest. Of one that has not told since this central node leads, the same digests are as good as a sync.
    pub(super) fn compare(&mut self, sc: ScId, digests: &Digests) {
        let mine = self.authority.ledger().digests(sc);
        let differ: Vec<u8> = (0..BUCKETS).filter(|&place| mine[place] != digests[place]).map(|place| place as u8).collect();
        // While a sweep is under way the ends differ, and not by mistake.
        let Some(node) = self.nodes.get_mut(&sc).filter(|node| node.has_copy() && !(node.told && node.sweep.is_some())) else { return };
        let proves = differ.is_empty() && !node.told;
        node.told |= proves;
        if proves {
            let calls = self.authority.ledger().count_of(sc) as u32;
            self.note(Note::InSync(sc, calls, 0));
        }
        self.counts.differed += differ.len() as u64;
        if proves || !differ.is_empty() {
            self.send(sc, ToNode::Differ(differ));
        }
    }

    pub(super) fn sync_chunk(&mut self, now: Time, sc: ScId, generation: u32, index: u32, calls: &[Told]) {
        let credit = self.settings.credit;
        let Some(Contact::Up(session)) = self.nodes.get_mut(&sc).map(|node| &mut node.contact) else { return };
        let id = session.id;
        let Some(sync) = session.sync.as_mut().filter(|sync| sync.generation == generation && sync.chunks == index) else { return };
        sync.chunks += 1;
        sync.calls += calls.len() as u32;
        let chunks = sync.chunks + credit;
        calls.iter().for_each(|told| self.fact(now, sc, told, id));
        self.send(sc, ToNode::SyncCredit { generation, chunks });
    }

    /// "Sync complete": what the node did not speak of since its session began is gone (R12); only when nothing was lost.
    pub(super) fn sync_end(&mut self, now: Time, sc: ScId, generation: u32, chunks: u32) {
        let Some(node) = self.nodes.get_mut(&sc) else { return };
        let Contact::Up(session) = &mut node.contact else { return };
        let Some(sync) = session.sync.filter(|sync| sync.generation == generation) else { return };
        session.sync = None;
        let (ok, id) = (sync.chunks == chunks, session.id);
        node.told |= ok;
        if ok {
            self.synced(sc);
            self.begin_sweep(now, sc, id, Why::Synced(sync.calls));
        } else {
            self.actions.push_back(Action::Note(Note::SyncIncomplete(sc)));
        }
        self.send(sc, ToNode::SyncResult { generation, ok });
    }

    /// A span of one part of a node's calls as it has them: the copy becomes the same, but for calls whose request is on its way.
    pub(super) fn mend(&mut self, now: Time, sc: ScId, (bucket, span): (u8, Span), calls: &[Told], asked: &[(Guid, Leg)]) {
        if !self.nodes.get(&sc).is_some_and(Record::has_copy) {
            return;
        }
        let session = self.session_of(sc);
        let key = |told: &Told| Key { sc, guid: told.guid, leg: told.leg };
        let has: BTreeSet<Key> = calls.iter().map(key).collect();
        let pending: BTreeSet<Key> = asked.iter().map(|&(guid, leg)| Key { sc, guid, leg }).collect();
        let differs = |told: &&Told| {
            let charge = self.authority.ledger().get(&key(told)).map(|ccb| ccb.charge);
            charge != Some(told.charge) && !pending.contains(&key(told))
        };
        let lacking: Vec<Told> = calls.iter().filter(differs).copied().collect();
        let mine = self.authority.ledger().of_bucket(sc, bucket).map(|(key, _)| *key).filter(|key| span.has(key.guid, key.leg));
        let gone: Vec<Key> = mine.filter(|key| !has.contains(key) && !pending.contains(key)).collect();
        lacking.iter().for_each(|told| self.fact(now, sc, told, session));
        for key in &gone {
            self.authority.release(key);
        }
        if !lacking.is_empty() || !gone.is_empty() {
            self.actions.push_back(Action::Note(Note::Mended(sc, lacking.len() as u32, gone.len() as u32)));
        }
    }
}
