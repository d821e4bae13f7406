//! The sessions with the central nodes: hello, sync, heartbeats, comparisons; and what their end means.
//!
//! One central node decides. With a pair the other has a session too, which keeps a copy of the calls there: the same messages but for
//! requests. When the copy's keeper begins to lead it says so, the session goes on, and both ends compare (R42).

use super::super::charge::{Guid, Key, Leg};
use super::super::ledger::{Admission, bucket_of};
use super::super::message::{Framed, Header, LOAD_MAX, Report, Side, Span, ToCentral, ToNode, Told, VERSION, features};
use super::reports::Reports;
use super::{Action, Node, Note, Settings, told};
use crate::proto::base::Time;
use std::time::Duration;

/// Calls in one chunk of a sync (R30).
const CHUNK: usize = 512;
/// Chunks of a sync that may be sent before the central node allows more, when it did not say how many.
const RESYNC_CREDIT: u32 = 16;
/// How long a hello, or the next step of a sync, is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// The first pause between two attempts, doubled each time up to the last.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_LAST: Duration = Duration::from_secs(2);

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    epoch: u64,
    id: u64,
    /// Whether the other end decides about calls.
    leads: bool,
    /// What it can do beyond the first minor version.
    features: u32,
    /// Whether it is known to have all calls: false from the moment it begins to lead until both ends have compared.
    proved: bool,
    /// The last message sent, and heard.
    sent: u64,
    heard: u64,
    heard_at: Time,
    heartbeat_at: Time,
    compare_at: Time,
    /// When what differed was told last, and compared again at once.
    mended_at: Time,
    sync: Option<Sync>,
    generation: u32,
    cluster: u64,
    /// How busy the other end says it is.
    load: u8,
}

/// What a welcome says.
#[derive(Clone, Copy, Debug)]
struct Greeting {
    credit: u32,
    leads: bool,
    features: u32,
    cluster: u64,
}

/// A sync under way.
#[derive(Debug)]
struct Sync {
    /// The last call told; those behind it follow.
    cursor: Option<Key>,
    chunks: u32,
    credit: u32,
    ended: bool,
    patience: Time,
    began: Time,
    calls: u64,
}

#[derive(Debug)]
enum State {
    /// No connection; the next attempt comes then.
    Down(Time),
    /// The connection is being made.
    Connecting(Time),
    /// Hello was said.
    Hello(Time),
    /// There is a session.
    Up(Session),
}

/// The link to a central node.
#[derive(Debug)]
pub(super) struct Link {
    state: State,
    failures: u32,
    attempts: u32,
    reports: Reports,
}

impl Link {
    pub fn down(now: Time, settings: &Settings) -> Link {
        let reports = Reports::new(settings.reports_max, settings.heartbeat);
        Link { state: State::Down(now), failures: 0, attempts: 0, reports }
    }

    fn has_session(&self) -> bool {
        matches!(self.state, State::Up(_))
    }

    /// Whether the other end decides about calls.
    pub fn leads(&self) -> bool {
        matches!(&self.state, State::Up(session) if session.leads)
    }

    /// Whether the other end has so much to do that it is not asked.
    pub fn is_busy(&self) -> bool {
        matches!(&self.state, State::Up(session) if session.load >= LOAD_MAX)
    }

    /// Whether the other end can do this.
    pub fn can(&self, feature: u32) -> bool {
        matches!(&self.state, State::Up(session) if session.features & feature != 0)
    }

    /// A call as the other end understands it: of a minor version before quotas, as one that was granted.
    fn told(&self, told: Told) -> Told {
        if self.can(features::QUOTAS) || told.admission != Admission::Lease && told.charge == told.charge.unleased() {
            return told;
        }
        let admission = if told.admission == Admission::Lease { Admission::Granted } else { told.admission };
        Told { charge: told.charge.unleased(), admission, ..told }
    }

    pub fn is_in_sync(&self) -> bool {
        matches!(&self.state, State::Up(session) if session.sync.is_none() && session.proved)
    }

    /// Reports that the other end has not acknowledged.
    pub fn reports(&self) -> usize {
        self.reports.len()
    }

    pub fn deadline(&self) -> Time {
        match &self.state {
            State::Down(at) | State::Connecting(at) | State::Hello(at) => *at,
            State::Up(session) => {
                let patience = session.sync.as_ref().map_or(Time::NEVER, |sync| sync.patience);
                session.heartbeat_at.min(session.compare_at).min(patience).min(self.reports.deadline())
            }
        }
    }
}

impl Node {
    /// The link to the central node that decides.
    pub(super) fn leader(&self) -> Option<usize> {
        self.links.iter().position(Link::leads)
    }

    pub(super) fn has_leader(&self) -> bool {
        self.leader().is_some()
    }

    /// Whether the central node that decides has too much to do.
    pub(super) fn leader_is_busy(&self) -> bool {
        self.leader().and_then(|side| self.links.get(side)).is_some_and(Link::is_busy)
    }

    pub(super) fn ask_leader(&mut self, message: ToCentral) {
        if let Some(side) = self.leader() {
            self.send(side, message);
        }
    }

    fn session(&mut self, side: usize) -> Option<&mut Session> {
        match self.links.get_mut(side).map(|link| &mut link.state) {
            Some(State::Up(session)) => Some(session),
            _ => None,
        }
    }

    fn send(&mut self, side: usize, message: ToCentral) {
        let header = match self.session(side) {
            Some(session) => {
                session.sent += 1;
                Header { epoch: session.epoch, session: session.id, number: session.sent, ..Header::default() }
            }
            None => Header::default(),
        };
        let header = Header { sc: self.settings.sc, incarnation: self.settings.incarnation, ..header };
        self.actions.push_back(Action::Send(Side(side as u8), Framed { header, message }));
    }

    /// Tells one central node, when there is a session with it.
    pub(super) fn report_to(&mut self, now: Time, side: usize, report: Report) {
        let Some(link) = self.links.get_mut(side).filter(|link| link.has_session()) else { return };
        let report = match report {
            Report::Fact(told) => Report::Fact(link.told(told)),
            release => release,
        };
        match link.reports.push(report) {
            true => self.send_reports(now, side),
            false => {
                self.note(Note::Overflow(Side(side as u8)));
                self.give_up(now, side);
            }
        }
    }

    fn send_reports(&mut self, now: Time, side: usize) {
        while let Some((number, report)) = self.links.get_mut(side).and_then(|link| link.reports.next(now)) {
            self.send(side, ToCentral::Report { number, report });
        }
    }

    pub(super) fn link_up(&mut self, now: Time, side: usize) {
        let (highest_epoch, _, cluster) = self.highest;
        let Some(link) = self.links.get_mut(side).filter(|link| matches!(link.state, State::Connecting(_))) else { return };
        link.attempts = link.attempts.wrapping_add(1);
        link.state = State::Hello(now + PATIENCE);
        let attempt = link.attempts;
        let (fingerprint, features) = (self.tree.fingerprint(), self.settings.features);
        let rules = self.rules;
        self.send(side, ToCentral::Hello { version: VERSION, attempt, fingerprint, highest_epoch, features, rules, cluster });
    }

    /// The connection, or the session over it, is gone. If that one decided, the node decides alone from now on (R13, R14).
    pub(super) fn disconnected(&mut self, now: Time, side: usize) {
        let Some(link) = self.links.get_mut(side) else { return };
        let led = link.leads();
        let pause = PAUSE_FIRST.saturating_mul(1 << link.failures.min(6)).min(PAUSE_LAST);
        link.failures = link.failures.saturating_add(1);
        link.state = State::Down(now + pause);
        link.reports.clear();
        if led {
            self.hold();
            self.decide_all(now);
            self.note(Note::Disconnected(Side(side as u8)));
        }
    }

    fn give_up(&mut self, now: Time, side: usize) {
        self.actions.push_back(Action::Disconnect(Side(side as u8)));
        self.disconnected(now, side);
    }

    /// The last word to every central node.
    pub(super) fn leave(&mut self) {
        self.quotas_end();
        for side in 0..self.links.len() {
            if self.session(side).is_some() {
                self.send(side, ToCentral::Goodbye);
            }
        }
    }

    pub(super) fn received(&mut self, now: Time, side: usize, framed: Framed<ToNode>) {
        let Framed { header, message } = framed;
        let Some(link) = self.links.get_mut(side) else { return };
        let attempts = link.attempts;
        match (&mut link.state, &message) {
            (State::Hello(_), &ToNode::Welcome { attempt, credit, leads, features, cluster }) if attempt == attempts => {
                return self.welcomed(now, side, header, Greeting { credit, leads, features, cluster });
            }
            (State::Hello(_), ToNode::Refused { attempt, why }) if *attempt == attempts => {
                link.failures = link.failures.max(6);
                self.note(Note::Refused(Side(side as u8), *why));
                return self.give_up(now, side);
            }
            (State::Up(session), _) if (header.epoch, header.session) == (session.epoch, session.id) && header.number > session.heard => {
                session.heard = header.number;
                session.heard_at = now;
            }
            _ => return self.counts.stale += 1,
        }
        match message {
            ToNode::Welcome { .. } | ToNode::Refused { .. } => self.counts.stale += 1,
            ToNode::Reply { handle, guid, leg, answer } if self.leader() == Some(side) => self.replied(now, handle, guid, leg, answer),
            ToNode::Reply { .. } => self.counts.stale += 1,
            ToNode::ReportAck { number, gap } => {
                if let Some(Link { state: State::Up(session), reports, .. }) = self.links.get_mut(side) {
                    reports.acknowledged(now, number, gap, session.sent);
                }
                self.send_reports(now, side);
            }
            ToNode::QuotaGrant { number, answers, lease, quotas } if self.leader() == Some(side) => {
                self.quota_granted(now, number, answers, lease, &quotas);
            }
            ToNode::QuotaGrant { .. } => self.counts.stale += 1,
            ToNode::SyncCredit { generation, chunks } => {
                if let Some(Session { generation: current, sync: Some(sync), .. }) = self.session(side)
                    && *current == generation
                {
                    sync.credit = sync.credit.max(chunks);
                    sync.patience = now + PATIENCE;
                    self.sync_on(side);
                }
            }
            ToNode::SyncResult { generation, ok } => self.sync_over(now, side, generation, ok),
            ToNode::Differ(buckets) => self.differ(now, side, &buckets),
            ToNode::Heartbeat { load } => {
                if let Some(session) = self.session(side) {
                    session.load = load;
                }
            }
            ToNode::Resync => {
                if self.session(side).is_some_and(|session| session.sync.is_none()) {
                    self.sync_begin(now, side, RESYNC_CREDIT);
                }
            }
            ToNode::Lead { epoch } => self.led(now, side, epoch),
            ToNode::Goodbye => self.give_up(now, side),
        }
    }

    /// A session begins (R11); one that leads in an epoch below the highest seen is none (I9).
    fn welcomed(&mut self, now: Time, side: usize, header: Header, greeting: Greeting) {
        let Greeting { credit, leads, features, cluster } = greeting;
        if leads && !self.obey(now, side, header.epoch, cluster) {
            return;
        }
        if leads {
            self.floors_kept = features & features::FLOORS != 0;
        }
        let (heartbeat_at, compare_at) = (now + self.settings.heartbeat, now + self.settings.compare_every);
        let Some(link) = self.links.get_mut(side) else { return };
        link.failures = 0;
        link.reports.clear();
        link.state = State::Up(Session {
            epoch: header.epoch,
            id: header.session,
            leads,
            features,
            proved: true,
            sent: 0,
            heard: header.number,
            heard_at: now,
            heartbeat_at,
            compare_at,
            mended_at: Time::ZERO,
            sync: None,
            generation: 0,
            cluster,
            load: 0,
        });
        let side_name = Side(side as u8);
        self.note(if leads { Note::Connected(side_name, header.epoch) } else { Note::Copying(side_name) });
        if leads {
            // Before the calls on them.
            self.quotas_begin(now);
        }
        self.sync_begin(now, side, credit);
    }

    /// Whether the central node of this epoch is listened to: no other of a higher one was heard of. Whoever led before leads no more.
    fn obey(&mut self, now: Time, side: usize, epoch: u64, cluster: u64) -> bool {
        let name = Side(side as u8);
        let (highest, who, its_cluster) = self.highest;
        // One epoch has one leader (I9): whatever gave it to two, the first is listened to.
        if epoch < highest || epoch == highest && who != name {
            self.counts.stale += 1;
            if epoch == highest || cluster != its_cluster {
                self.note(Note::OtherLeader(name));
            }
            self.give_up(now, side);
            return false;
        }
        self.highest = (epoch, name, cluster);
        if let Some(deposed) = self.leader().filter(|&leader| leader != side) {
            self.give_up(now, deposed);
        }
        true
    }

    /// The standby leads from now on: it has a copy, which both ends compare, and only what differs is told anew (R42).
    fn led(&mut self, now: Time, side: usize, epoch: u64) {
        let Some(cluster) = self.session(side).map(|session| session.cluster) else { return };
        if !self.obey(now, side, epoch, cluster) {
            return;
        }
        let Some(session) = self.session(side) else { return };
        (session.epoch, session.leads, session.proved) = (epoch, true, false);
        let (syncing, floors_kept) = (session.sync.is_some(), session.features & features::FLOORS != 0);
        self.floors_kept = floors_kept;
        self.note(Note::Connected(Side(side as u8), epoch));
        self.quotas_begin(now);
        match syncing {
            // What is on its way carries the old epoch and counts for nothing.
            true => self.sync_begin(now, side, RESYNC_CREDIT),
            false => self.compare(side),
        }
    }

    fn compare(&mut self, side: usize) {
        let digests = self.calls.ledger().digests(self.settings.sc);
        self.send(side, ToCentral::Compare(Box::new(digests)));
    }

    /// The other end has other calls in these parts; none: it has the same, and knows so.
    fn differ(&mut self, now: Time, side: usize, buckets: &[u8]) {
        let Some(session) = self.session(side).filter(|session| session.sync.is_none()) else { return };
        if buckets.is_empty() {
            if !session.proved {
                session.proved = true;
                self.note(Note::InSync(Side(side as u8)));
            }
            return;
        }
        let proved = session.proved;
        // As much as a sync sends at once, and one at least: what is left the next comparison finds.
        let digests = self.calls.ledger().digests(self.settings.sc);
        let mut room = CHUNK * RESYNC_CREDIT as usize;
        let fits = |bucket: &&u8| {
            let count = digests[usize::from(**bucket)].count as usize;
            room.checked_sub(count).map(|left| room = left).is_some()
        };
        let (fitting, all) = (buckets.iter().take_while(fits).count().max(1), buckets.len());
        self.counts.mended += fitting as u64;
        self.note(Note::Mended(Side(side as u8), fitting as u32));
        buckets.iter().take(fitting).for_each(|&bucket| self.tell_bucket(side, bucket));
        let heartbeat = self.settings.heartbeat;
        let Some(session) = self.session(side).filter(|_| !proved || fitting < all) else { return };
        // Where the other end cannot take what it is told, both would go on without a pause.
        if now.since(session.mended_at) >= heartbeat {
            session.mended_at = now;
            self.compare(side);
        } else {
            session.compare_at = session.compare_at.min(now + heartbeat);
        }
    }

    fn sync_begin(&mut self, now: Time, side: usize, credit: u32) {
        let Some(session) = self.session(side) else { return };
        session.generation += 1;
        let generation = session.generation;
        session.sync = Some(Sync { cursor: None, chunks: 0, credit, ended: false, patience: now + PATIENCE, began: now, calls: 0 });
        self.counts.syncs += 1;
        self.send(side, ToCentral::SyncBegin { generation });
        self.sync_on(side);
    }

    /// Sends chunks as far as they are allowed, each of what is up at this moment (race 5), and the end behind the last.
    fn sync_on(&mut self, side: usize) {
        let sc = self.settings.sc;
        loop {
            let Some(Session { generation, sync: Some(sync), .. }) = self.session(side) else { return };
            let (generation, index, cursor) = (*generation, sync.chunks, sync.cursor);
            if sync.ended || sync.chunks >= sync.credit {
                return;
            }
            let first = cursor.unwrap_or(Key { sc, ..Key::default() });
            let behind = self.calls.ledger().from(first).filter(|(key, _)| Some(**key) != cursor);
            let Some(link) = self.links.get(side) else { return };
            let calls: Vec<Told> = behind.take(CHUNK).map(|entry| link.told(told(entry))).collect();
            let Some(Session { sync: Some(sync), .. }) = self.session(side) else { return };
            let Some(last) = calls.last().copied() else {
                sync.ended = true;
                return self.send(side, ToCentral::SyncEnd { generation, chunks: index });
            };
            sync.cursor = Some(Key { sc, guid: last.guid, leg: last.leg });
            sync.chunks += 1;
            sync.calls += calls.len() as u64;
            self.send(side, ToCentral::SyncChunk { generation, index, calls });
        }
    }

    fn sync_over(&mut self, now: Time, side: usize, generation: u32, ok: bool) {
        let Some(session) = self.session(side) else { return };
        if session.generation != generation {
            return;
        }
        let Some(sync) = &session.sync else { return };
        let (credit, synced) = (sync.credit.max(1), (sync.calls, now.since(sync.began)));
        if ok {
            self.counts.synced = synced;
            let Some(session) = self.session(side) else { return };
            (session.sync, session.proved) = (None, true);
            self.note(Note::InSync(Side(side as u8)));
        } else {
            self.sync_begin(now, side, credit.min(RESYNC_CREDIT));
        }
    }

    /// All that is up or asked for in this part, so that the other end can mend its copy: as many calls in one message as in a chunk of
    /// a sync, where the other end knows that there may be more messages than one.
    fn tell_bucket(&mut self, side: usize, bucket: u8) {
        // Only the one that decides knows of calls that are asked for.
        let is_asked = self.leader() == Some(side);
        let mut asked: Vec<(Guid, Leg)> = self.requests.asked().filter(|_| is_asked).collect();
        asked.retain(|&(guid, leg)| bucket_of(&self.key(guid, leg)) == bucket);
        let Some(link) = self.links.get(side) else { return };
        let calls: Vec<Told> = self.calls.ledger().of_bucket(self.settings.sc, bucket).map(|entry| link.told(told(entry))).collect();
        let size = if link.can(features::PAGES) { CHUNK } else { calls.len().max(1) };
        let (mut left, mut after) = (&calls[..], None);
        loop {
            let (page, behind) = left.split_at(size.min(left.len()));
            let upto = page.last().map(|told| (told.guid, told.leg)).filter(|_| !behind.is_empty());
            let span = Span { after, upto };
            let asked = asked.iter().copied().filter(|&(guid, leg)| span.has(guid, leg)).collect();
            self.send(side, ToCentral::Bucket { bucket, span, calls: page.to_vec(), asked });
            if behind.is_empty() {
                return;
            }
            (left, after) = (behind, upto);
        }
    }

    pub(super) fn link_due(&mut self, now: Time, side: usize) {
        let Some(link) = self.links.get_mut(side) else { return };
        match &mut link.state {
            State::Down(at) if *at <= now => {
                link.state = State::Connecting(now + PATIENCE);
                self.actions.push_back(Action::Connect(Side(side as u8)));
            }
            State::Connecting(at) | State::Hello(at) if *at <= now => self.give_up(now, side),
            State::Down(_) | State::Connecting(_) | State::Hello(_) => {}
            State::Up(_) => self.session_due(now, side),
        }
    }

    fn session_due(&mut self, now: Time, side: usize) {
        let (heartbeat, compare_every) = (self.settings.heartbeat, self.settings.compare_every);
        let silence = heartbeat.saturating_mul(self.settings.heartbeats_missed);
        let Some(session) = self.session(side) else { return };
        // The next heartbeat is never further away than the time that says it was the last.
        if now.since(session.heard_at) >= silence {
            return self.give_up(now, side);
        }
        if session.sync.as_ref().is_some_and(|sync| sync.patience <= now) {
            return self.sync_begin(now, side, 1);
        }
        let (beat, messages) = (session.heartbeat_at <= now, session.sent);
        let compare = session.compare_at <= now;
        if beat {
            session.heartbeat_at = now + heartbeat;
        }
        if compare {
            session.compare_at = now + compare_every;
        }
        // Until it is proved that both ends have the same, every heartbeat asks.
        let compares = session.sync.is_none() && (compare || beat && !session.proved);
        let Some(link) = self.links.get_mut(side) else { return };
        link.reports.go_back(now, messages);
        self.send_reports(now, side);
        // What waits here the other end cannot have.
        if compares && self.links.get(side).is_some_and(|link| link.reports.are_sent()) {
            self.compare(side);
        }
        if beat {
            self.send(side, ToCentral::Heartbeat { rules: self.rules });
        }
    }
}
