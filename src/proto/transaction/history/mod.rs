//! The history: which commands a core runs or has answered, so that none is executed twice (RFC 3435 3.5.1, 3.5.2, 3.5.6; M-10).
//!
//! Owns one entry per command from [`History::begin`] until T-HIST after its response, and the response's bytes as long as a repeat
//! may ask for them. Does not parse, send or execute, and keeps no timers of the commands: it says when it must be called again.
//!
//! A command is known by its transaction id together with the endpoint name as written, case folded (G-TRX-02); for agents that
//! restart their ids, by its content too.
//!
//! To drive it: [`History::lookup`] for each command; when it is new, [`History::begin`], execute, [`History::finish`] with the
//! bytes sent. `K:` goes to [`History::confirm_range`], `000` to [`History::confirm_one`]. At [`History::deadline`]:
//! [`History::expire`], and [`History::overdue`] until it has no more.
//!
//! Invariants. Memory is bounded by [`Limits`] and never grows. An entry that is answered leaves T-HIST after its response and for
//! no other reason: when there is no room `begin` refuses, so that the command is answered 409 and not executed (G-TRX-08). A command
//! that began always finds room for its response. A part of everything is reserved for [`Class::Release`].

mod bodies;
mod ranges;
mod table;
#[cfg(test)]
mod tests;

pub use table::index_bytes;

use crate::proto::base::{AgentId, Rng, Time, TransactionId};
use bodies::Bodies;
use ranges::ConfirmedRanges;
use std::time::Duration;
use table::{Entry, NONE, State, Table};

/// Ids of the `K:` of one message that are looked up one by one; what is wider is kept as intervals. The caller passes a counter
/// that starts at this for each message.
pub const CONFIRM_BUDGET: u32 = 256;

/// The widest range whose ids are looked up one by one.
pub const CONFIRM_SPAN: u32 = 64;

/// How exactly the time of a confirmation is kept, rounded up.
const CONFIRMED_STEP: Duration = Duration::from_millis(10);

/// Entries with one id under different names or contents; more are refused as [`Full::SameId`].
const SAME_ID: usize = 256;

/// Entries that `begin` clears away, when they are due, before it refuses.
const SWEEP_FULL: usize = 64;

/// Bodies that one call passes at most: a long run of confirmed ones comes back over several calls.
const SWEEP_BODIES: usize = 64;

/// Copies of a confirmed command that the network made come within this of the confirmation, which the agent sent after them all.
pub const COPIES_WITHIN: Duration = Duration::from_secs(5);

/// Expired entries are swept in steps of this; the answers are exact all the same.
const SWEEP_STEP: Duration = Duration::from_millis(100);

/// What one core's history may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Commands, running and answered: rate * T-HIST.
    pub entries: usize,
    /// Bytes of responses: rate * T-HIST * size of a response. At least two of `largest`.
    pub bytes: usize,
    /// Of `entries`, those only [`Class::Release`] may use.
    pub reserve_entries: usize,
    /// Of `bytes`, those only [`Class::Release`] may use.
    pub reserve_bytes: usize,
    /// The longest response, in bytes, at most 65,507.
    pub largest: u16,
}

/// What a command may use when the history is nearly full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Everything but the reserve.
    Ordinary,
    /// The reserve as well: DeleteConnection, which makes room elsewhere.
    Release,
}

/// A command as the history knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Its transaction id.
    pub id: TransactionId,
    /// The folded hash of the endpoint name as written ([`crate::proto::base::NameKey::fold`]).
    pub name: u64,
    /// A hash of the whole command, for agents with `duplicates = "same-content"`; `None`: id and name decide.
    pub content: Option<u64>,
}

/// The new command that [`History::begin`] is to note.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// What it is known by.
    pub command: Command,
    /// Who sent it: the only one whose confirmation counts (G-ACK-03).
    pub agent: AgentId,
    /// What it may use.
    pub class: Class,
    /// The longest response it may get, in bytes; cut to [`Limits::largest`].
    pub room: u16,
}

/// Names one command in the history; once that has been forgotten the handle is stale and names nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Handle {
    slot: u32,
    generation: u32,
}

/// What is known about a command (Table M-10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen<'a> {
    /// Nothing, or only older than T-HIST: execute it.
    New {
        /// A running command with this id and name but other content: end it with 407 first.
        superseded: Option<Handle>,
        /// The same command, content and all, was answered and confirmed longer than [`COPIES_WITHIN`] ago.
        reused: bool,
    },
    /// Being executed: answer 100 (G-TRX-04).
    Running(Handle),
    /// Answered: send `body` again, to the source of the repeat (G-TRX-03). Commands that were aborted or timed out are found here
    /// too, with the 407 or 406 they were finished with.
    Finished {
        /// The command.
        handle: Handle,
        /// The response as it was sent.
        body: &'a [u8],
    },
    /// Answered and confirmed: drop it silently (G-TRX-06). Where content is compared, only as long as the network may have made the
    /// copy: such an agent starts anew with the very ids and commands of its earlier life.
    Confirmed,
}

/// Why a command cannot be noted: answer 409, store nothing, execute nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Full {
    /// No entry is left.
    Entries,
    /// The response might not fit.
    Bytes,
    /// Too many commands with this id and other names.
    SameId,
}

/// Why [`History::finish`] stored nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FinishError {
    /// The handle names no running command.
    NotRunning,
    /// The response is longer than the room promised; the command still runs, so a short one (533) can follow.
    TooLong,
}

/// What one confirmed id meant here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Confirm {
    /// A response of this agent's was released.
    Released,
    /// This agent's command is known, but there is nothing to release: it runs, or it was confirmed before.
    Known,
    /// Only other agents' commands have this id: ignored (G-ACK-03). It may still be known to another core.
    Foreign,
    /// Not known here: another core may know it.
    Unknown,
}

/// What a range of confirmed ids meant here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Confirmation {
    /// Responses released at once.
    pub released: u32,
    /// Ids ignored here because only other agents' commands have them.
    pub foreign: u32,
    /// Bit i set: `low + i` is not known here as this agent's, and another core should be asked.
    pub unknown: u64,
    /// The range was kept as an interval: tell every other core about the whole range.
    pub kept: bool,
}

/// For operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Commands running.
    pub running: usize,
    /// Commands running or remembered, the most there ever were, and the limit.
    pub entries: usize,
    /// See `entries`.
    pub entries_max: usize,
    /// See `entries`.
    pub entries_limit: usize,
    /// Bytes of responses kept, bytes promised to running commands, and the limit.
    pub bytes: u64,
    /// See `bytes`.
    pub bytes_promised: u64,
    /// See `bytes`.
    pub bytes_limit: u64,
    /// When the oldest response that is remembered was sent.
    pub oldest: Option<Time>,
}

/// Entries in the order in which they began, or finished.
#[derive(Clone, Copy, Default)]
struct List {
    first: u32,
    last: u32,
}

/// One core's history. See the module's page.
pub struct History {
    table: Table,
    bodies: Bodies,
    ranges: ConfirmedRanges,
    /// Running commands in the order they began, without those reported overdue.
    begun: List,
    /// Answered commands in the order they finished.
    finished: List,
    /// The oldest of `finished` whose body has not been passed by the ring's tail; none when the ring is empty.
    oldest_body: u32,
    running: usize,
    limits: Limits,
    t_hist: Duration,
    longest_run: Duration,
    /// The latest time seen: times in the lists never decrease.
    latest: Time,
}

impl History {
    /// An empty history. All memory is claimed here and used as it fills. `t_hist`: how long an answered command is remembered;
    /// `longest_run`: after how long a running one is reported overdue ([`super::Timers::longest_run`]).
    pub fn new(limits: Limits, t_hist: Duration, longest_run: Duration, rng: &mut Rng) -> History {
        History {
            table: Table::new(limits.entries, rng),
            bodies: Bodies::new(limits.bytes, limits.largest),
            ranges: ConfirmedRanges::new(),
            begun: List::default(),
            finished: List::default(),
            oldest_body: NONE,
            running: 0,
            limits,
            t_hist,
            longest_run,
            latest: Time::ZERO,
        }
    }

    /// New timers, from now on, for what is already here too.
    pub fn set_timers(&mut self, t_hist: Duration, longest_run: Duration) {
        (self.t_hist, self.longest_run) = (t_hist, longest_run);
    }

    /// What is known about `command`, which comes now.
    pub fn lookup(&self, now: Time, command: &Command) -> Seen<'_> {
        self.lookup_arrived(now, now, command)
    }

    /// What is known about `command`, which came at `arrived` and may have waited since, behind others of its datagram.
    pub fn lookup_arrived(&self, now: Time, arrived: Time, command: &Command) -> Seen<'_> {
        let content = stored_content(command.content);
        let (mut superseded, mut reused) = (None, false);
        for (slot, entry) in self.table.chain(command.id) {
            if entry.name != command.name {
                continue;
            }
            let handle = Handle { slot, generation: entry.generation };
            if entry.content != content && entry.content != 0 && content != 0 {
                if entry.state.is_running() && superseded.is_none() {
                    superseded = Some(handle);
                }
                continue;
            }
            match entry.state {
                State::Free => {}
                State::Running | State::Provisional => return Seen::Running(handle),
                _ if entry.time + self.t_hist <= now => {}
                State::Finished | State::Confirmed => match self.confirmed_at(entry) {
                    None => return Seen::Finished { handle, body: self.bodies.get(entry.place, entry.length) },
                    Some(confirmed) if entry.content != 0 && content != 0 && arrived.since(confirmed) >= COPIES_WITHIN => {
                        reused = true;
                    }
                    Some(_) => return Seen::Confirmed,
                },
            }
        }
        Seen::New { superseded, reused }
    }

    /// When the response of an answered command was confirmed.
    fn confirmed_at(&self, entry: &Entry) -> Option<Time> {
        match entry.state {
            State::Confirmed => Some(entry.time + CONFIRMED_STEP * u32::from(entry.length)),
            State::Finished => self.ranges.covered_at(entry.agent, entry.id, entry.time),
            State::Free | State::Running | State::Provisional => None,
        }
    }

    /// The response in this slot was confirmed at `at`: its body goes.
    fn set_confirmed(&mut self, slot: u32, at: Time) {
        let entry = self.table.at_mut(slot);
        let steps = at.since(entry.time).as_nanos().div_ceil(CONFIRMED_STEP.as_nanos());
        (entry.state, entry.length) = (State::Confirmed, u16::try_from(steps).unwrap_or(u16::MAX));
    }

    /// Notes a command that [`History::lookup`] called new as running, with room for its response. On an error nothing changed. What is
    /// due makes room when there is none; as long as there is some, that is left to [`History::expire`].
    pub fn begin(&mut self, now: Time, start: &Start) -> Result<Handle, Full> {
        self.latest = self.latest.max(now);
        let Start { command, agent, class, room } = *start;
        let room = room.min(self.limits.largest);
        let (spare_entries, spare_bytes) = match class {
            Class::Ordinary => (self.limits.reserve_entries, self.limits.reserve_bytes),
            Class::Release => (0, 0),
        };
        let mut room_left = self.room_for(room, spare_entries, spare_bytes);
        if room_left.is_err() && self.expire(now, SWEEP_FULL) > 0 {
            room_left = self.room_for(room, spare_entries, spare_bytes);
        }
        room_left?;
        if self.table.chain(command.id).nth(SAME_ID - 1).is_some() {
            return Err(Full::SameId);
        }
        let entry = Entry {
            name: command.name,
            content: stored_content(command.content),
            time: self.latest,
            id: command.id,
            next: NONE,
            later: NONE,
            place: self.begun.last,
            generation: 0,
            length: room,
            agent,
            state: State::Running,
        };
        let slot = self.table.insert(entry).ok_or(Full::Entries)?;
        match self.begun.last {
            NONE => self.begun.first = slot,
            last => self.table.at_mut(last).later = slot,
        }
        self.begun.last = slot;
        self.bodies.reserve(room);
        self.running += 1;
        Ok(Handle { slot, generation: self.table.at(slot).generation })
    }

    /// Forgets a running command that was refused before anything was done (409): its repeat is new.
    pub fn forget(&mut self, handle: Handle) {
        if let Some(room) = self.running_entry(handle).map(|entry| entry.length) {
            self.unlink_begun(handle.slot);
            self.bodies.unreserve(room);
            self.table.remove(handle.slot);
            self.running -= 1;
        }
    }

    /// Notes that a provisional response was sent.
    pub fn note_provisional(&mut self, handle: Handle) {
        if self.running_entry(handle).is_some() {
            self.table.at_mut(handle.slot).state = State::Provisional;
        }
    }

    /// Whether a provisional response was sent for this running command: its final then carries an empty `K:`, and no other final
    /// does (G-ACK-06).
    pub fn provisional_sent(&self, handle: Handle) -> bool {
        self.running_entry(handle).is_some_and(|e| e.state == State::Provisional)
    }

    /// The longest response a running command may get, in bytes; `None` for a stale handle.
    pub fn room(&self, handle: Handle) -> Option<usize> {
        self.running_entry(handle).map(|entry| usize::from(entry.length))
    }

    /// The command has ended, was aborted (407) or ran too long (406): `body` is its final response, which repeats get from now on
    /// (G-PRV-06, G-PRV-07).
    pub fn finish(&mut self, now: Time, handle: Handle, body: &[u8]) -> Result<(), FinishError> {
        let room = self.running_entry(handle).map(|entry| entry.length).ok_or(FinishError::NotRunning)?;
        if body.len() > usize::from(room) {
            return Err(FinishError::TooLong);
        }
        self.latest = self.latest.max(now);
        self.unlink_begun(handle.slot);
        let place = self.bodies.push(room, body);
        let latest = self.latest;
        let entry = self.table.at_mut(handle.slot);
        (entry.place, entry.length, entry.later) = (place, body.len() as u16, NONE);
        (entry.time, entry.state) = (latest, State::Finished);
        match self.finished.last {
            NONE => self.finished.first = handle.slot,
            last => self.table.at_mut(last).later = handle.slot,
        }
        self.finished.last = handle.slot;
        if self.oldest_body == NONE {
            self.oldest_body = handle.slot;
            self.bodies.release_before(place);
        }
        self.running -= 1;
        Ok(())
    }

    /// The stored response of an answered command; `None` when it has been confirmed or forgotten.
    pub fn body(&self, handle: Handle) -> Option<&[u8]> {
        let entry = self.table.get(handle.slot, handle.generation)?;
        let kept = entry.state == State::Finished && !self.ranges.covers(entry.agent, entry.id, entry.time);
        kept.then(|| self.bodies.get(entry.place, entry.length))
    }

    /// `agent` has received the response to its command `id`.
    pub fn confirm_one(&mut self, now: Time, agent: AgentId, id: TransactionId) -> Confirm {
        self.latest = self.latest.max(now);
        let mut outcome = Confirm::Unknown;
        // Bounded: at most SAME_ID entries have one id.
        while let Some((slot, at_tail)) = self.confirmable(agent, id, &mut outcome) {
            outcome = Confirm::Released;
            self.set_confirmed(slot, self.latest);
            if at_tail {
                self.pass_bodies(slot, SWEEP_BODIES);
            }
        }
        outcome
    }

    /// `agent` has received the responses to its commands `low..=high`. Ranges of up to [`CONFIRM_SPAN`] ids are looked up one by one
    /// as long as `budget` (see [`CONFIRM_BUDGET`]) lasts; others are kept as they are and hold for the responses sent so far. A
    /// range that is empty means nothing.
    pub fn confirm_range(&mut self, now: Time, agent: AgentId, low: TransactionId, high: TransactionId, budget: &mut u32) -> Confirmation {
        let mut result = Confirmation::default();
        let Some(last) = high.checked_sub(low) else { return result };
        if last >= CONFIRM_SPAN || *budget <= last {
            self.latest = self.latest.max(now);
            self.ranges.add(self.latest, agent, low, high, self.t_hist);
            self.pass_bodies(self.oldest_body, SWEEP_BODIES);
            result.kept = true;
            return result;
        }
        *budget -= last + 1;
        for i in 0..=last {
            match self.confirm_one(now, agent, low + i) {
                Confirm::Released => result.released += 1,
                Confirm::Known => {}
                Confirm::Foreign => {
                    result.foreign += 1;
                    result.unknown |= 1 << i;
                }
                Confirm::Unknown => result.unknown |= 1 << i,
            }
        }
        result
    }

    /// Forgets up to `budget` commands whose response is T-HIST old (G-TRX-05). Returns how many.
    pub fn expire(&mut self, now: Time, budget: usize) -> usize {
        self.latest = self.latest.max(now);
        let (before, mut forgotten) = (self.oldest_body, 0);
        while forgotten < budget && self.finished.first != NONE {
            let slot = self.finished.first;
            let Entry { time, later, .. } = *self.table.at(slot);
            if time + self.t_hist > self.latest {
                break;
            }
            if self.oldest_body == slot {
                self.oldest_body = later;
            }
            self.finished.first = later;
            if later == NONE {
                self.finished.last = NONE;
            }
            self.table.remove(slot);
            forgotten += 1;
        }
        self.pass_bodies(before, SWEEP_BODIES);
        forgotten
    }

    /// A running command that has exceeded its time limit: undo it and finish it with 406 (G-PRV-05). Each is reported once.
    pub fn overdue(&mut self, now: Time) -> Option<Handle> {
        let slot = self.begun.first;
        if slot == NONE || self.table.at(slot).time + self.longest_run > now {
            return None;
        }
        self.unlink_begun(slot);
        self.table.at_mut(slot).time = Time::NEVER;
        Some(Handle { slot, generation: self.table.at(slot).generation })
    }

    /// When to call [`History::overdue`] and [`History::expire`] again.
    pub fn deadline(&self) -> Time {
        let overdue = if self.begun.first == NONE { Time::NEVER } else { self.table.at(self.begun.first).time + self.longest_run };
        let expiry = if self.finished.first == NONE {
            Time::NEVER
        } else {
            // Rounded up, so that an idle core does not wake for each entry.
            let exact = self.table.at(self.finished.first).time + self.t_hist;
            let step = SWEEP_STEP.as_nanos() as u64;
            Time(exact.0.div_ceil(step).saturating_mul(step))
        };
        overdue.min(expiry)
    }

    /// The state now.
    pub fn stats(&self) -> Stats {
        let (bytes, bytes_promised, bytes_limit) = self.bodies.usage();
        Stats {
            running: self.running,
            entries: self.table.len(),
            entries_max: self.table.len_max(),
            entries_limit: self.table.limit(),
            bytes,
            bytes_promised,
            bytes_limit,
            oldest: (self.finished.first != NONE).then(|| self.table.at(self.finished.first).time),
        }
    }

    fn room_for(&self, room: u16, spare_entries: usize, spare_bytes: usize) -> Result<(), Full> {
        if self.table.len() + spare_entries >= self.table.limit() {
            Err(Full::Entries)
        } else if !self.bodies.fits(room, spare_bytes) {
            Err(Full::Bytes)
        } else {
            Ok(())
        }
    }

    fn running_entry(&self, handle: Handle) -> Option<&Entry> {
        self.table.get(handle.slot, handle.generation).filter(|e| e.state.is_running())
    }

    /// The next answered command of `agent` with this id whose body is kept, and whether it is the oldest body. `outcome` learns what
    /// else the id meant.
    fn confirmable(&self, agent: AgentId, id: TransactionId, outcome: &mut Confirm) -> Option<(u32, bool)> {
        for (slot, entry) in self.table.chain(id) {
            if entry.agent != agent {
                if *outcome == Confirm::Unknown {
                    *outcome = Confirm::Foreign;
                }
            } else if entry.state == State::Finished {
                return Some((slot, slot == self.oldest_body));
            } else if *outcome != Confirm::Released {
                *outcome = Confirm::Known;
            }
        }
        None
    }

    /// Moves the ring's tail from the body of `before` over bodies that nobody will ask for, at most `budget` of them.
    fn pass_bodies(&mut self, before: u32, budget: usize) {
        for _ in 0..budget {
            if self.oldest_body == NONE {
                break;
            }
            let entry = self.table.at(self.oldest_body);
            if entry.state == State::Finished {
                let Some(at) = self.confirmed_at(entry) else { break };
                self.set_confirmed(self.oldest_body, at);
            }
            self.oldest_body = self.table.at(self.oldest_body).later;
        }
        if self.oldest_body == NONE {
            self.bodies.release_all();
        } else if self.oldest_body != before {
            self.bodies.release_before(self.table.at(self.oldest_body).place);
        }
    }

    /// Takes a running entry out of the list of those that began; one that was reported overdue is not in it.
    fn unlink_begun(&mut self, slot: u32) {
        let Entry { time, place: earlier, later, .. } = *self.table.at(slot);
        if time == Time::NEVER {
            return;
        }
        match earlier {
            NONE => self.begun.first = later,
            earlier => self.table.at_mut(earlier).later = later,
        }
        match later {
            NONE => self.begun.last = earlier,
            later => self.table.at_mut(later).place = earlier,
        }
    }
}

/// 0 stands for "not compared".
fn stored_content(content: Option<u64>) -> u64 {
    content.map_or(0, |hash| hash.max(1))
}
