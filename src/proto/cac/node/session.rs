//! The session with the central node: hello, sync, heartbeats, comparisons; and what its end means.

use super::super::charge::Key;
use super::super::ledger::bucket_of;
use super::super::message::{Framed, Header, ToCentral, ToNode, Told, VERSION};
use super::{Action, Node, Note};
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
    /// The last message sent, and heard.
    sent: u64,
    heard: u64,
    heard_at: Time,
    heartbeat_at: Time,
    compare_at: Time,
    sync: Option<Sync>,
    generation: u32,
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

/// The link to the central node.
#[derive(Debug)]
pub(super) struct Link {
    state: State,
    failures: u32,
}

impl Link {
    pub fn down(now: Time) -> Link {
        Link { state: State::Down(now), failures: 0 }
    }

    pub fn has_session(&self) -> bool {
        matches!(self.state, State::Up(_))
    }

    pub fn is_in_sync(&self) -> bool {
        matches!(&self.state, State::Up(session) if session.sync.is_none())
    }

    pub fn deadline(&self) -> Time {
        match &self.state {
            State::Down(at) | State::Connecting(at) | State::Hello(at) => *at,
            State::Up(session) => {
                let patience = session.sync.as_ref().map_or(Time::NEVER, |sync| sync.patience);
                session.heartbeat_at.min(session.compare_at).min(patience)
            }
        }
    }
}

impl Node {
    pub(super) fn send(&mut self, message: ToCentral) {
        let header = match &mut self.link.state {
            State::Up(session) => {
                session.sent += 1;
                Header { epoch: session.epoch, session: session.id, number: session.sent, ..Header::default() }
            }
            _ => Header::default(),
        };
        let header = Header { sc: self.settings.sc, incarnation: self.settings.incarnation, ..header };
        self.actions.push_back(Action::Send(Framed { header, message }));
    }

    pub(super) fn link_up(&mut self, now: Time) {
        if !matches!(self.link.state, State::Connecting(_)) {
            return;
        }
        self.attempts = self.attempts.wrapping_add(1);
        self.link.state = State::Hello(now + PATIENCE);
        self.send(ToCentral::Hello {
            version: VERSION,
            attempt: self.attempts,
            fingerprint: self.tree.fingerprint(),
            highest_epoch: self.highest_epoch,
        });
    }

    /// The connection, or the session over it, is gone: from now on the node decides alone (R13, R14).
    pub(super) fn disconnected(&mut self, now: Time) {
        let had_session = self.link.has_session();
        let pause = PAUSE_FIRST.saturating_mul(1 << self.link.failures.min(6)).min(PAUSE_LAST);
        self.link.failures = self.link.failures.saturating_add(1);
        self.link.state = State::Down(now + pause);
        if had_session {
            self.hold();
            self.reports.clear();
            self.decide_all(now);
            self.note(Note::Disconnected);
        }
    }

    fn give_up(&mut self, now: Time) {
        self.actions.push_back(Action::Disconnect);
        self.disconnected(now);
    }

    pub(super) fn received(&mut self, now: Time, framed: Framed<ToNode>) {
        let Framed { header, message } = framed;
        match (&mut self.link.state, &message) {
            (State::Hello(_), ToNode::Welcome { attempt, credit }) if *attempt == self.attempts => {
                let credit = *credit;
                return self.welcomed(now, header, credit);
            }
            (State::Hello(_), ToNode::Refused { attempt, why }) if *attempt == self.attempts => {
                self.note(Note::Refused(*why));
                self.link.failures = self.link.failures.max(6);
                return self.give_up(now);
            }
            (State::Up(session), _) if (header.epoch, header.session) == (session.epoch, session.id) && header.number > session.heard => {
                session.heard = header.number;
                session.heard_at = now;
            }
            _ => return self.counts.stale += 1,
        }
        match message {
            ToNode::Welcome { .. } | ToNode::Refused { .. } => self.counts.stale += 1,
            ToNode::Reply { handle, guid, leg, answer } => self.replied(now, handle, guid, leg, answer),
            ToNode::ReportAck(number) => self.reports.acknowledged(now, number),
            ToNode::SyncCredit { generation, chunks } => {
                if let State::Up(Session { generation: current, sync: Some(sync), .. }) = &mut self.link.state
                    && *current == generation
                {
                    sync.credit = sync.credit.max(chunks);
                    sync.patience = now + PATIENCE;
                    self.sync_on();
                }
            }
            ToNode::SyncResult { generation, ok } => self.sync_over(now, generation, ok),
            ToNode::Differ(buckets) => self.tell_buckets(&buckets),
            ToNode::Heartbeat => {}
            ToNode::Resync => {
                if self.is_in_sync() {
                    self.sync_begin(now, RESYNC_CREDIT);
                }
            }
        }
    }

    /// A session begins (R11); one of an epoch below the highest seen is none (I9).
    fn welcomed(&mut self, now: Time, header: Header, credit: u32) {
        if header.epoch < self.highest_epoch {
            self.counts.stale += 1;
            return self.give_up(now);
        }
        self.highest_epoch = header.epoch;
        self.link.failures = 0;
        self.reports.clear();
        self.link.state = State::Up(Session {
            epoch: header.epoch,
            id: header.session,
            sent: 0,
            heard: header.number,
            heard_at: now,
            heartbeat_at: now + self.settings.heartbeat,
            compare_at: now + self.settings.compare_every,
            sync: None,
            generation: 0,
        });
        self.note(Note::Connected(header.epoch));
        self.sync_begin(now, credit);
    }

    fn sync_begin(&mut self, now: Time, credit: u32) {
        let State::Up(session) = &mut self.link.state else { return };
        session.generation += 1;
        let generation = session.generation;
        session.sync = Some(Sync { cursor: None, chunks: 0, credit, ended: false, patience: now + PATIENCE });
        self.counts.syncs += 1;
        self.send(ToCentral::SyncBegin { generation });
        self.sync_on();
    }

    /// Sends chunks as far as they are allowed, each of what is up at this moment (race 5), and the end behind the last.
    fn sync_on(&mut self) {
        loop {
            let State::Up(Session { generation, sync: Some(sync), .. }) = &mut self.link.state else { return };
            let (generation, index) = (*generation, sync.chunks);
            if sync.ended || sync.chunks >= sync.credit {
                return;
            }
            let first = sync.cursor.unwrap_or(Key { sc: self.settings.sc, ..Key::default() });
            let behind = self.calls.ledger().from(first).filter(|(key, _)| Some(**key) != sync.cursor);
            let told =
                |(key, ccb): (&Key, &super::Ccb)| Told { guid: key.guid, leg: key.leg, charge: ccb.charge, admission: ccb.admission };
            let calls: Vec<Told> = behind.take(CHUNK).map(told).collect();
            let Some(last) = calls.last().copied() else {
                sync.ended = true;
                return self.send(ToCentral::SyncEnd { generation, chunks: index });
            };
            sync.cursor = Some(Key { sc: self.settings.sc, guid: last.guid, leg: last.leg });
            sync.chunks += 1;
            self.send(ToCentral::SyncChunk { generation, index, calls });
        }
    }

    fn sync_over(&mut self, now: Time, generation: u32, ok: bool) {
        let State::Up(session) = &mut self.link.state else { return };
        if session.generation != generation || session.sync.is_none() {
            return;
        }
        let credit = session.sync.as_ref().map_or(1, |sync| sync.credit.max(1));
        if ok {
            session.sync = None;
            self.note(Note::InSync);
        } else {
            self.sync_begin(now, credit.min(16));
        }
    }

    /// All that is up or asked for in these parts, so that the other end can mend its copy.
    fn tell_buckets(&mut self, buckets: &[u8]) {
        if !self.is_in_sync() {
            return;
        }
        self.note(Note::Mended(buckets.len() as u32));
        for &bucket in buckets {
            let here = |key: &Key| bucket_of(key) == bucket;
            let calls: Vec<Told> = self.all().filter(|told| here(&self.key(told.guid, told.leg))).collect();
            let asked = self.requests.asked().filter(|&(guid, leg)| here(&self.key(guid, leg))).collect();
            self.send(ToCentral::Bucket { bucket, calls, asked });
        }
    }

    pub(super) fn link_due(&mut self, now: Time) {
        let silence = self.settings.heartbeat.saturating_mul(self.settings.heartbeats_missed);
        match &mut self.link.state {
            State::Down(at) if *at <= now => {
                self.link.state = State::Connecting(now + PATIENCE);
                self.actions.push_back(Action::Connect);
            }
            State::Connecting(at) | State::Hello(at) if *at <= now => self.give_up(now),
            State::Down(_) | State::Connecting(_) | State::Hello(_) => {}
            State::Up(session) => {
                // The next heartbeat is never further away than the time that says it was the last.
                if now.since(session.heard_at) >= silence {
                    return self.give_up(now);
                }
                if session.sync.as_ref().is_some_and(|sync| sync.patience <= now) {
                    return self.sync_begin(now, 1);
                }
                let beat = session.heartbeat_at <= now;
                let compare = session.compare_at <= now;
                if beat {
                    session.heartbeat_at = now + self.settings.heartbeat;
                }
                if compare {
                    session.compare_at = now + self.settings.compare_every;
                }
                let (in_sync, before) = (session.sync.is_none(), Time(now.0.saturating_sub(self.settings.heartbeat.as_nanos() as u64)));
                if compare && in_sync {
                    let digests = self.calls.ledger().digests(self.settings.sc);
                    self.send(ToCentral::Compare(Box::new(digests)));
                }
                if beat {
                    self.send(ToCentral::Heartbeat);
                    for (number, report) in self.reports.take_overdue(now, before) {
                        self.send(ToCentral::Report { number, report });
                    }
                }
            }
        }
    }
}
