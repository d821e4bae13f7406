//! Commands that wait: for the card, for other cores, or for the restart to be announced.

use super::admission::Resume;
use super::envelope::JobId;
use super::receive::Received;
use crate::proto::base::{CoreId, EndpointIndex, Time, TransactionId};
use crate::proto::cac::Charge;
use crate::proto::codec::mgcp::Verb;
use crate::proto::endpoint::ConnectionSlot;
use crate::proto::mgcp::{CreatePlan, Created, ModifyPlan, Room};
use crate::proto::transaction::history;

/// Whose command it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    /// A transaction of this core: the response goes out from here.
    Here(history::Handle),
    /// A share of a command that another core coordinates.
    There(CoreId, JobId),
}

/// What it waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    /// The restart of this endpoint, or that it is disconnected, to be announced, otherwise than by this transaction; then it starts
    /// over.
    Restart(EndpointIndex, TransactionId),
    /// The card to open the media of a connection.
    Opening(ConnectionSlot, CreatePlan),
    /// The card to change the media of a connection.
    Modifying(ConnectionSlot, ModifyPlan),
    /// The cores from this ordinal on to vote, one after another.
    Votes(u8),
    /// So many cores to apply what was decided.
    Applying(u8),
    /// The core of this ordinal to find a free endpoint; so many cores after it are left to ask.
    Search(u8, u8),
    /// The core of this ordinal to make the second half of a pair; so many after it are left to ask.
    Second(EndpointIndex, u8, u8),
    /// The owners of endpoints to say what these are like.
    Survey,
    /// So many answers that come too late; the command is answered already, only its frame is still in use.
    Late(u8),
    /// The card to open the first half of a pair whose second half was made.
    First(ConnectionSlot, CreatePlan, Created),
    /// The bank to give what this needs beyond what it has; then it goes on.
    Claim(Charge, Resume),
    /// The core of the second half of a pair to show it; both halves are made.
    Joining(ConnectionSlot, CreatePlan, Created, Created),
}

/// One waiting command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub owner: Owner,
    pub verb: Verb,
    pub transaction: TransactionId,
    pub received: Received,
    pub wait: Wait,
    /// The endpoint it is about, when it is about one.
    pub endpoint: Option<EndpointIndex>,
    /// When 100 is due; [`Time::NEVER`] once sent or when it is not ours to send.
    pub provisional_at: Time,
    /// When what it waits for is overdue.
    pub deadline: Time,
}

impl Job {
    /// Whether its command, which waits for the card, carries a request.
    pub fn requests(&self) -> bool {
        match self.wait {
            Wait::Opening(_, plan) | Wait::First(_, plan, _) | Wait::Joining(_, plan, ..) => plan.requests(),
            Wait::Modifying(_, plan) => plan.requests(),
            _ => false,
        }
    }

    /// What is kept for its command until it goes on or ends.
    pub fn room(&self) -> Room {
        match self.wait {
            Wait::Opening(_, plan) | Wait::First(_, plan, _) | Wait::Joining(_, plan, ..) => plan.room(),
            Wait::Modifying(_, plan) => plan.room(),
            _ => Room::default(),
        }
    }

    fn next_time(&self) -> Time {
        self.provisional_at.min(self.deadline)
    }
}

/// The table of waiting commands. Deadlines are found by scanning: commands wait rarely, and the table notes its earliest deadline.
pub(super) struct Jobs {
    entries: Vec<(u32, Option<Job>)>,
    free: Vec<u16>,
    /// Not later than the earliest deadline in the table.
    earliest: Time,
    /// Jobs from which on and down to which agents are told 101 (RFC 3435 4.4.8).
    marks: (u16, u16),
    queueing: bool,
}

impl Jobs {
    pub fn new(limit: u16, marks: (u16, u16)) -> Jobs {
        let (entries, free) = (vec![(0, None); usize::from(limit)], (0..limit).rev().collect());
        Jobs { entries, free, earliest: Time::NEVER, marks, queueing: false }
    }

    /// Other marks: from which on, and down to which, agents are told 101.
    pub fn set_marks(&mut self, marks: (u16, u16)) {
        self.marks = marks;
        self.mark();
    }

    /// Whether so many wait that agents are to be told.
    pub fn is_queueing(&self) -> bool {
        self.queueing
    }

    fn mark(&mut self) {
        let (high, low) = self.marks;
        self.queueing = self.len() >= usize::from(high) || self.queueing && self.len() > usize::from(low);
    }

    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Keeps `job`; `None` when the table is full.
    pub fn insert(&mut self, job: Job) -> Option<JobId> {
        let slot = self.free.pop()?;
        self.earliest = self.earliest.min(job.next_time());
        let entry = self.entries.get_mut(usize::from(slot))?;
        entry.0 = entry.0.wrapping_add(1);
        entry.1 = Some(job);
        let generation = entry.0;
        self.mark();
        Some(JobId { slot, generation })
    }

    pub fn get(&self, id: JobId) -> Option<&Job> {
        self.entries.get(usize::from(id.slot)).filter(|entry| entry.0 == id.generation)?.1.as_ref()
    }

    /// Changes what a job waits for and until when.
    pub fn wait(&mut self, id: JobId, wait: Wait, deadline: Time) -> bool {
        self.earliest = self.earliest.min(deadline);
        let Some(job) = self.get_mut(id) else { return false };
        job.wait = wait;
        job.deadline = deadline;
        true
    }

    /// The job has answered 100, or need not.
    pub fn provisional_done(&mut self, id: JobId) {
        if let Some(job) = self.get_mut(id) {
            job.provisional_at = Time::NEVER;
        }
    }

    pub fn remove(&mut self, id: JobId) -> Option<Job> {
        self.get(id)?;
        let job = self.entries.get_mut(usize::from(id.slot))?.1.take()?;
        self.free.push(id.slot);
        self.mark();
        Some(job)
    }

    /// Every waiting command.
    pub fn iter(&self) -> impl Iterator<Item = (JobId, &Job)> {
        let id = |slot: usize, generation| JobId { slot: slot as u16, generation };
        self.entries.iter().enumerate().filter_map(move |(slot, (generation, job))| Some((id(slot, *generation), job.as_ref()?)))
    }

    /// The first waiting command that `wanted` holds for.
    pub fn find(&self, mut wanted: impl FnMut(&Job) -> bool) -> Option<JobId> {
        if self.len() == 0 {
            return None;
        }
        self.iter().find(|(_, job)| wanted(job)).map(|(id, _)| id)
    }

    /// A command whose deadline has come or that owes a 100.
    pub fn next_due(&mut self, now: Time) -> Option<JobId> {
        if now < self.earliest {
            return None;
        }
        let due = self.find(|job| job.next_time() <= now);
        if due.is_none() {
            self.earliest = self.iter().map(|(_, job)| job.next_time()).min().unwrap_or(Time::NEVER);
        }
        due
    }

    /// When to ask [`Jobs::next_due`] again.
    pub fn deadline(&self) -> Time {
        self.earliest
    }

    fn get_mut(&mut self, id: JobId) -> Option<&mut Job> {
        self.entries.get_mut(usize::from(id.slot)).filter(|entry| entry.0 == id.generation)?.1.as_mut()
    }
}
