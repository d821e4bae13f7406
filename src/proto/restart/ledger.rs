//! The ledger of announcements: for each endpoint the RSIP that last covered it, and for each such RSIP how it stands.
//!
//! An entry lives as long as an endpoint points to it, so the ledger never has more entries than there are endpoints. Entries are
//! found by slot; a [`Handle`] also carries which sending it is about, so a late outcome of an earlier one finds nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use super::RestartMethod;
use super::service::{Leave, Reason, Told};
use super::sweep::Class;
use crate::proto::aggregate::Pattern;
use crate::proto::base::{EndpointIndex, Time};

/// One sending of one RSIP.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Handle {
    pub(super) slot: u32,
    pub(super) sending: u32,
}

/// How an announcement stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    /// Endpoints are being put under it; not sent.
    Filling,
    /// To be sent at this time.
    Waiting(Time),
    /// Sent and not answered.
    Outstanding,
    /// Answered with success.
    Confirmed,
    /// Refused for good; a command to one of its endpoints starts it again (G-RST-09).
    Stopped,
}

/// What a wait grew from: the first wait after a 4xx is short, that of a disconnect long.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Pace {
    Fresh,
    Retry,
    Disconnected,
}

/// An RSIP and the endpoints it covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announcement {
    pub(super) group: u16,
    pub(super) pattern: Pattern,
    pub(super) method: RestartMethod,
    pub(super) reason: Reason,
    pub(super) leave: Leave,
    pub(super) status: Status,
    pub(super) sending: u32,
    pub(super) sent: Time,
    /// Since when it waits.
    pub(super) waiting_since: Time,
    /// The code of the last answer, 0 when there was none.
    pub(super) reply: u16,
    /// Since when its endpoints are disconnected, the oldest of them.
    pub(super) cut_off: Time,
    pub(super) pace: Pace,
    pub(super) wait: Duration,
    /// The taking together it came out of; 0 for none.
    pub(super) taken: u32,
    pub(super) redirects: u8,
    /// How many endpoints point to it.
    pub(super) live: u32,
    /// How many of those want something else, as long as it is under way.
    pub(super) wrong: u32,
    /// Some endpoint wants, or wanted, something else: it must not be sent again as it is.
    pub(super) broken: bool,
    /// What one of its endpoints wants instead cannot wait for the answer.
    pub(super) urgent: bool,
    /// Some endpoint got another group: this goes on, but is not sent again.
    pub(super) regrouped: bool,
    /// Some endpoint wants more once this is confirmed.
    pub(super) followed: bool,
}

impl Announcement {
    /// Whether it is under way: nothing else may be said of one of its endpoints.
    pub(super) fn is_outstanding(&self) -> bool {
        self.status == Status::Outstanding
    }

    /// Whether it is to be taken back: true of no endpoint any more, or in the way. As long as it is true of some it is not, because
    /// they would have to be named anew, without the others.
    pub(super) fn is_stale(&self) -> bool {
        self.is_outstanding() && (self.urgent || self.wrong == self.live)
    }

    /// What announcements in common names must share.
    pub(super) fn class(&self) -> Class {
        Class { group: self.group, method: self.method, reason: self.reason, leave: self.leave }
    }

    /// Whether it says that its endpoints leave, or stay after all: neither starts nor ends a time of service.
    pub(super) fn is_about_leaving(&self) -> bool {
        matches!(self.method, RestartMethod::Graceful | RestartMethod::CancelGraceful)
    }
}

/// Pointers of endpoints that have no announcement.
const NOTHING: u32 = u32::MAX;
const UNSURE: u32 = u32::MAX - 1;

/// All announcements.
pub(super) struct Ledger {
    entries: Vec<Option<Announcement>>,
    free: Vec<u32>,
    /// For each endpoint: a slot, [`NOTHING`] or [`UNSURE`].
    last: Box<[u32]>,
    due: BTreeSet<(Time, u32)>,
    /// Counts sendings, so that handles never repeat.
    sendings: u32,
}

impl Ledger {
    pub(super) fn new(endpoints: u32) -> Ledger {
        Ledger { entries: Vec::new(), free: Vec::new(), last: vec![NOTHING; endpoints as usize].into(), due: BTreeSet::new(), sendings: 0 }
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Announcement> {
        self.entries.get(slot as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Announcement> {
        self.entries.get_mut(slot as usize)?.as_mut()
    }

    /// Slots there are; none goes away.
    pub(super) fn places(&self) -> u32 {
        self.entries.len() as u32
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Announcement> {
        self.slots().map(|(_, entry)| entry)
    }

    /// Every announcement with its slot.
    pub(super) fn slots(&self) -> impl Iterator<Item = (u32, &Announcement)> {
        self.entries.iter().enumerate().filter_map(|(slot, entry)| Some((slot as u32, entry.as_ref()?)))
    }

    /// The slot of the announcement awaiting an outcome under `handle`.
    pub(super) fn awaited(&self, handle: Handle) -> Option<u32> {
        let entry = self.get(handle.slot)?;
        (entry.sending == handle.sending && entry.is_outstanding()).then_some(handle.slot)
    }

    /// The slot that last covered `endpoint`.
    pub(super) fn slot_of(&self, endpoint: EndpointIndex) -> Option<u32> {
        self.last.get(endpoint.0 as usize).copied().filter(|slot| *slot < UNSURE)
    }

    pub(super) fn told(&self, endpoint: EndpointIndex) -> Told {
        match self.last.get(endpoint.0 as usize) {
            Some(&UNSURE) => Told::Unsure,
            Some(&slot) => match self.get(slot) {
                Some(entry) => Told::Message { method: entry.method, leave: entry.leave, confirmed: entry.status == Status::Confirmed },
                None => Told::Nothing,
            },
            None => Told::Nothing,
        }
    }

    /// Adds an announcement without endpoints.
    pub(super) fn open(&mut self, announcement: Announcement) -> u32 {
        let slot = self.free.pop().unwrap_or(self.entries.len() as u32);
        match self.entries.get_mut(slot as usize) {
            Some(entry) => *entry = Some(announcement),
            None => self.entries.push(Some(announcement)),
        }
        slot
    }

    /// `endpoint` is covered by `slot` from now on.
    pub(super) fn put(&mut self, endpoint: EndpointIndex, slot: u32) {
        self.point(endpoint, slot);
        if let Some(entry) = self.get_mut(slot) {
            entry.live += 1;
        }
    }

    /// `endpoint` is covered by nothing: its announcement was cut short.
    pub(super) fn take(&mut self, endpoint: EndpointIndex) {
        let Some(entry) = self.slot_of(endpoint).and_then(|slot| self.get(slot)) else { return };
        let pointer = match entry.method {
            RestartMethod::Restart | RestartMethod::Forced => NOTHING,
            RestartMethod::Graceful | RestartMethod::CancelGraceful | RestartMethod::Disconnected => UNSURE,
        };
        self.point(endpoint, pointer);
    }

    /// Moves the pointer and drops the old announcement when nobody points to it any more.
    fn point(&mut self, endpoint: EndpointIndex, pointer: u32) {
        let Some(last) = self.last.get_mut(endpoint.0 as usize) else { return };
        let old = std::mem::replace(last, pointer);
        let Some(entry) = self.get_mut(old) else { return };
        entry.live -= 1;
        entry.broken = true;
        if entry.live == 0 {
            self.close(old);
        }
    }

    /// Drops an announcement no endpoint points to.
    pub(super) fn close(&mut self, slot: u32) {
        self.set_status(slot, Status::Stopped);
        if let Some(entry) = self.entries.get_mut(slot as usize)
            && entry.take().is_some()
        {
            self.free.push(slot);
        }
    }

    /// Sets the status and keeps the list of waiting announcements.
    pub(super) fn set_status(&mut self, slot: u32, status: Status) {
        let Some(entry) = self.entries.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        if let Status::Waiting(due) = entry.status {
            self.due.remove(&(due, slot));
        }
        if let Status::Waiting(due) = status {
            self.due.insert((due, slot));
        }
        entry.status = status;
    }

    /// Marks it sent and gives the new handle.
    pub(super) fn send(&mut self, now: Time, slot: u32) -> Handle {
        self.sendings = self.sendings.wrapping_add(1);
        self.set_status(slot, Status::Outstanding);
        let sending = self.sendings;
        if let Some(entry) = self.get_mut(slot) {
            entry.sending = sending;
            entry.sent = now;
        }
        Handle { slot, sending }
    }

    /// Every announcement that waits to be sent, by its slot, the one due first before the others.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (u32, &Announcement)> {
        self.due.iter().filter_map(|&(_, slot)| Some((slot, self.get(slot)?)))
    }

    /// The waiting announcement that is due first.
    pub(super) fn first_due(&self) -> Option<(Time, u32)> {
        self.due.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Rng;

    fn announcement(method: RestartMethod) -> Announcement {
        Announcement {
            group: 0,
            pattern: Pattern::Gateway,
            method,
            reason: Reason(0),
            leave: Leave::No,
            status: Status::Filling,
            sending: 0,
            sent: Time::ZERO,
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
            waiting_since: Time::ZERO,
        }
    }

    #[test]
    fn entries_live_as_long_as_an_endpoint_points_to_them() {
        let mut rng = Rng::new(9);
        let mut ledger = Ledger::new(20);
        for _ in 0..2000 {
            let slot = ledger.open(announcement(RestartMethod::Restart));
            for _ in 0..=rng.below(6) {
                let endpoint = EndpointIndex(rng.below(20) as u32);
                if ledger.slot_of(endpoint) != Some(slot) {
                    ledger.put(endpoint, slot);
                }
            }
            ledger.set_status(slot, Status::Waiting(Time(rng.below(100))));
            ledger.take(EndpointIndex(rng.below(20) as u32));
            let live: u32 = ledger.entries().map(|entry| entry.live).sum();
            assert_eq!(live as usize, (0..20).filter(|e| ledger.slot_of(EndpointIndex(*e)).is_some()).count());
            assert!(ledger.entries().all(|entry| entry.live > 0) && ledger.entries.len() <= 21);
            let waiting = ledger.entries().filter(|entry| matches!(entry.status, Status::Waiting(_))).count();
            assert_eq!(waiting, ledger.due.len());
        }
    }

    #[test]
    fn a_late_outcome_finds_nothing() {
        let mut ledger = Ledger::new(1);
        let slot = ledger.open(announcement(RestartMethod::Forced));
        ledger.put(EndpointIndex(0), slot);
        let first = ledger.send(Time::ZERO, slot);
        assert_eq!(ledger.awaited(first), Some(slot));
        let second = ledger.send(Time::ZERO, slot);
        assert_eq!((ledger.awaited(first), ledger.awaited(second)), (None, Some(slot)));
        ledger.take(EndpointIndex(0));
        assert_eq!((ledger.awaited(second), ledger.told(EndpointIndex(0))), (None, Told::Nothing));
    }
}
