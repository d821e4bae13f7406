//! Transactions that wait for the card, or for the core that carries a part of it: their message and the reply as far as it is written are
//! kept, and they go on where they stopped.

use super::error::{CORE_SILENT, Failure, NO_RESOURCES, NOT_IN_CONTEXT, TIME_LIMIT};
use super::table::{NULL, Row, Termination};
use super::transaction::{Flow, Run};
use super::{Gateway, Send};
use crate::proto::base::{Counter, EndpointIndex, Time};
use crate::proto::cac::Charge;
use crate::proto::cac::share::Ticket;
use crate::proto::codec::h248::{Audit, Command, Content, Mark, Message, Transaction, Verb, Writer};
use crate::proto::endpoint::{Connection, ConnectionSlot};
use crate::proto::transaction::history::Handle;
use crate::proto::trunk::MediaAddress;

/// Transactions that wait at a time; the next is 510.
pub(super) const PARKED_MAX: usize = 256;

/// What a transaction waits for.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "there are 256 at the most, and nearly all are commands")]
pub(super) enum Until {
    /// The card to do what a command asks for.
    Done(Waiting),
    /// Places of admission; then the command begins.
    Claimed(Claimed),
    /// The cards of other cores to say, under this ticket, what so many connections have counted; then the command begins.
    Counted { ticket: u32, left: u32 },
}

/// The command that waits for places of admission. It has done nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimed {
    pub ticket: Ticket,
    /// As long as it waits.
    pub until: Time,
    pub charge: Charge,
    /// The termination it is about; `None`: still to be chosen.
    pub target: Option<Termination>,
    /// It means more terminations, and whether it has failed for one of those before.
    pub more: Option<bool>,
}

/// What of the card a command waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Media {
    /// The connection of an ephemeral termination.
    Of(ConnectionSlot),
    /// The pair of connections that joins a physical termination with its context.
    Pair(EndpointIndex),
}

/// The command that waits for the card.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub media: Media,
    /// In the name of an ephemeral termination, which an error tells when it is gone.
    pub number: u32,
    pub verb: Verb,
    pub optional: bool,
    pub undo: Undo,
    pub shown: Shown,
    pub audit: Option<Audit>,
    /// It means more terminations, and whether it has failed for one of those before.
    pub more: Option<bool>,
}

/// How the command is undone when the card refuses.
#[derive(Clone, Copy, Debug)]
pub(super) enum Undo {
    /// The termination goes.
    Add,
    /// It is as it was.
    Modify(Connection, Row),
    /// It goes back to this context, as it was; with the connection of an ephemeral one that was to be changed as well. The context is kept
    /// until then, also when nothing is in it.
    Move(u32, Row, Option<Connection>),
}

/// What the reply tells of media.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Shown {
    pub stream: Option<u16>,
    pub local: bool,
    pub remote: bool,
}

struct Entry {
    run: Run,
    until: Until,
    mark: Mark,
    text: Vec<u8>,
    reply: Box<[u8]>,
}

/// Those that wait, and memory for more.
pub(super) struct Parking {
    entries: Vec<Entry>,
    spare: Vec<(Vec<u8>, Box<[u8]>)>,
    /// How many there are with those that wait.
    made: usize,
    max_message: u16,
    /// The last ticket under which anything was asked.
    ticket: u32,
}

impl Parking {
    pub fn new(max_message: u16) -> Parking {
        Parking { entries: Vec::with_capacity(PARKED_MAX), spare: Vec::with_capacity(PARKED_MAX), made: 0, max_message, ticket: 0 }
    }

    /// Memory for one more: what was used before, as long as there is some.
    fn take(&mut self) -> Option<(Vec<u8>, Box<[u8]>)> {
        if let Some(spare) = self.spare.pop() {
            return Some(spare);
        }
        (self.made < PARKED_MAX).then(|| {
            self.made += 1;
            (Vec::new(), vec![0; usize::from(self.max_message)].into())
        })
    }

    /// Whether one more can wait.
    pub fn has_room(&self) -> bool {
        !self.spare.is_empty() || self.made < PARKED_MAX
    }

    /// Whether anything waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The claim under this ticket, and the place of its transaction.
    pub fn claim(&self, ticket: Ticket) -> Option<(usize, Claimed)> {
        self.claims().find(|(_, claimed)| claimed.ticket == ticket)
    }

    /// A claim that has waited as long as it may.
    pub fn overdue(&self, now: Time) -> Option<(usize, Claimed)> {
        self.claims().find(|(_, claimed)| claimed.until <= now)
    }

    /// When to ask [`Parking::overdue`].
    pub fn deadline(&self) -> Time {
        self.claims().map(|(_, claimed)| claimed.until).min().unwrap_or(Time::NEVER)
    }

    fn claims(&self) -> impl Iterator<Item = (usize, Claimed)> + '_ {
        self.entries.iter().enumerate().filter_map(|(place, entry)| match entry.until {
            Until::Claimed(claimed) => Some((place, claimed)),
            _ => None,
        })
    }

    /// The context that a transaction is at.
    pub fn context(&self, place: usize) -> u32 {
        self.entries.get(place).map_or(NULL, |entry| entry.run.context())
    }

    /// Whether a command waits for this.
    pub fn waits_for(&self, media: Media) -> bool {
        self.place(media).is_some()
    }

    /// The transaction whose command waits for this.
    fn place(&self, media: Media) -> Option<usize> {
        self.entries.iter().position(|entry| matches!(entry.until, Until::Done(waiting) if waiting.media == media))
    }
}

impl Waiting {
    /// The termination that the command is about.
    pub fn termination(&self) -> Termination {
        match self.media {
            Media::Of(slot) => Termination::Ephemeral(slot),
            Media::Pair(endpoint) => Termination::Physical(endpoint),
        }
    }
}

impl Gateway {
    /// Keeps a transaction until the card has answered. The reply in `buffer` is kept with it; false, and the command undone, when too
    /// many wait.
    pub(super) fn park(&mut self, text: &[u8], run: Run, until: Until, mark: Mark, buffer: Box<[u8]>) -> Result<(), Box<[u8]>> {
        let Some((mut copy, fresh)) = self.parking.take() else { return Err(buffer) };
        copy.clear();
        copy.extend_from_slice(text);
        self.reply = Some(fresh);
        self.parking.entries.push(Entry { run, until, mark, text: copy, reply: buffer });
        Ok(())
    }

    /// The card has answered an order about `slot`; `None`: it refuses.
    pub(super) fn media_answered(&mut self, now: Time, slot: ConnectionSlot, address: Option<MediaAddress>, send: Send<'_>) {
        let of = Media::Of(slot);
        let (media, done) = match (self.parking.place(of), address) {
            (Some(_), Some(address)) => {
                self.media_ready(now, slot, address);
                (of, true)
            }
            (Some(_), None) => (of, false),
            (None, _) => match self.half_answered(now, slot, address) {
                Some((endpoint, done)) => (Media::Pair(endpoint), done),
                None => return,
            },
        };
        if !done {
            self.counters.add(Counter::CardRefused);
        }
        if let Some(place) = self.parking.place(media) {
            self.go_on(now, place, if done { Ok(()) } else { Err(NO_RESOURCES) }, send);
        }
    }

    /// What these have counted is asked for where it is not known here; `None`: it is all known, or nobody can say.
    pub(super) fn ask_counts(&mut self, matches: &[Termination]) -> Option<Until> {
        let apart = self.calls.card.apart().filter(|_| self.parking.has_room())?;
        let ticket = self.parking.ticket.wrapping_add(1);
        self.parking.ticket = ticket;
        let asked = matches.iter().filter(|target| matches!(target, Termination::Ephemeral(slot) if apart.ask_report(*slot, ticket)));
        let left = asked.count() as u32;
        (left > 0).then_some(Until::Counted { ticket, left })
    }

    /// What a connection on another core has counted is known, or one of several.
    pub(super) fn counted(&mut self, now: Time, answered: u32, send: Send<'_>) {
        let waits = |entry: &Entry| matches!(entry.until, Until::Counted { ticket, .. } if ticket == answered);
        let Some(place) = self.parking.entries.iter().position(waits) else { return };
        let Some(Entry { until: Until::Counted { left, .. }, .. }) = self.parking.entries.get_mut(place) else { return };
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.go_on(now, place, Ok(()), send);
        }
    }

    /// What waits for a core that stands still ends: nothing waits until it goes on, and it undoes then what it had begun.
    pub(super) fn end_silent(&mut self, now: Time, send: Send<'_>) {
        if self.parking.is_empty() || !self.calls.card.apart().is_some_and(|apart| apart.has_silent()) {
            return;
        }
        while let Some(place) = (0..self.parking.entries.len()).find(|place| self.waits_for_silent(*place)) {
            self.go_on(now, place, Err(CORE_SILENT), send);
        }
    }

    fn waits_for_silent(&mut self, place: usize) -> bool {
        let slots = match self.parking.entries.get(place).map(|entry| entry.until) {
            Some(Until::Done(Waiting { media: Media::Of(slot), .. })) => [Some(slot), None],
            Some(Until::Done(Waiting { media: Media::Pair(endpoint), .. })) => {
                let pair = self.tables.row(Termination::Physical(endpoint)).and_then(|row| row.pair);
                [pair.map(|(far, _)| far), pair.map(|(_, own)| own)]
            }
            // What is not known is told as far as it is.
            Some(Until::Counted { ticket, .. }) => return self.calls.card.apart().is_some_and(|apart| apart.is_owed_by_silent(ticket)),
            Some(Until::Claimed(_)) | None => return false,
        };
        self.calls.card.apart().is_some_and(|apart| slots.into_iter().flatten().any(|slot| apart.is_silent(slot)))
    }

    /// A transaction has taken as long as any may: what waits is undone.
    pub(super) fn give_up(&mut self, now: Time, handle: Handle, send: Send<'_>) {
        if let Some(place) = self.parking.entries.iter().position(|entry| entry.run.handle == handle) {
            self.go_on(now, place, Err(TIME_LIMIT), send);
        }
    }

    /// A termination goes for whose card a transaction waits.
    pub(super) fn abandon(&mut self, media: Media) {
        let entry = self.parking.place(media).and_then(|place| self.parking.entries.get_mut(place));
        if let Some(entry) = entry {
            // Answered as soon as the clock looks: the message that is in hand now has the tables.
            entry.run.abandoned = true;
        }
    }

    /// Transactions whose termination went meanwhile end with an error; those whose pair another transaction has made superfluous are done.
    pub(super) fn end_abandoned(&mut self, now: Time, send: Send<'_>) {
        while let Some(place) = self.parking.entries.iter().position(|entry| entry.run.abandoned) {
            self.go_on(now, place, Err(NOT_IN_CONTEXT), send);
        }
        while let Some(place) = self.parking.entries.iter().position(|entry| self.is_superfluous(entry)) {
            self.go_on(now, place, Ok(()), send);
        }
    }

    fn is_superfluous(&self, entry: &Entry) -> bool {
        matches!(entry.until, Until::Done(Waiting { media: Media::Pair(endpoint), .. }) if !self.is_joining(endpoint))
    }

    pub(super) fn has_abandoned(&self) -> bool {
        self.parking.entries.iter().any(|entry| entry.run.abandoned || self.is_superfluous(entry))
    }

    /// Tells the sender that its transaction is being worked on (PND-01).
    pub(super) fn tell_pending(&mut self, handle: Handle, send: Send<'_>) {
        let Some(run) = self.parking.entries.iter().map(|entry| entry.run).find(|run| run.handle == handle) else { return };
        self.counters.add(Counter::Provisional);
        self.send_with(run.from, send, |w| w.pending(run.id));
    }

    /// Ends the command that waited, or begins it, and goes on with its transaction.
    pub(super) fn go_on(&mut self, now: Time, place: usize, result: Result<(), Failure>, send: Send<'_>) {
        let Entry { mut run, until, mark, text, mut reply } = self.parking.entries.swap_remove(place);
        let Some(mut shape) = self.shape.take() else { return };
        let mut w = Writer::resume(&mut reply, self.style(), mark);
        let request = match Message::parse(&text, &mut shape).and_then(|message| message.content()) {
            Ok(Content::Transactions(mut transactions)) => match transactions.nth(run.ordinal) {
                Some(Ok(Transaction::Request(request))) => Some(request),
                _ => None,
            },
            _ => None,
        };
        let flow = match until {
            Until::Done(waiting) => {
                let command = request.as_ref().and_then(|request| run.command(request));
                let flow = self.end_command(now, &run, (&waiting, command), result, &mut w);
                run.abandoned = false;
                match waiting.more {
                    Some(failed) => {
                        run.go_behind(waiting.termination(), failed || result.is_err());
                        Flow::Next
                    }
                    None => flow,
                }
            }
            Until::Counted { .. } => {
                run.begin_counted();
                Flow::Next
            }
            Until::Claimed(claimed) => match (result, request.as_ref().and_then(|request| run.command(request))) {
                (Err(failure), Some(command)) => self.end_claimed(&mut run, (&claimed, &command), failure, &mut w),
                // Whether it tells counts was looked at before it claimed.
                _ => {
                    run.begin_counted();
                    Flow::Next
                }
            },
        };
        let flow = match (flow, request) {
            (Flow::Next, Some(request)) => self.execute(now, &request, &mut run, &mut w),
            (flow, _) => flow,
        };
        match flow {
            Flow::Park(until) => {
                let mark = w.mark();
                self.parking.entries.push(Entry { run, until, mark, text, reply });
            }
            Flow::Next | Flow::Stop => {
                let length = self.close(&run, w);
                self.conclude(now, &run, &mut reply, length, send);
                self.parking.spare.push((text, reply));
            }
        }
        self.shape = Some(shape);
    }

    /// Writes the reply to a command that is not admitted.
    pub(super) fn end_claimed(
        &mut self,
        run: &mut Run,
        (claimed, command): (&Claimed, &Command<'_>),
        failure: Failure,
        w: &mut Writer<'_>,
    ) -> Flow {
        match claimed.target {
            Some(target) => self.write_failed(w, command.verb, target, failure),
            None => self.write_error(w, command.verb, command.termination, failure),
        }
        if let (Some(_), Some(target)) = (claimed.more, claimed.target) {
            run.go_behind(target, true);
            return Flow::Next;
        }
        if command.optional {
            return Flow::Next;
        }
        // A context that was made for it, and in which nothing is.
        self.tables.drop_if_empty(run.context());
        Flow::Stop
    }

    /// Writes the reply to a command that waited, or undoes it.
    fn end_command(
        &mut self,
        now: Time,
        run: &Run,
        (waiting, command): (&Waiting, Option<Command<'_>>),
        result: Result<(), Failure>,
        w: &mut Writer<'_>,
    ) -> Flow {
        let termination = waiting.termination();
        if waiting.verb == Verb::Add {
            self.note_late_add(now, termination);
        }
        let failure = match result {
            Ok(()) => {
                if let Termination::Ephemeral(slot) = termination {
                    self.commit_keys(slot);
                }
                if let (Undo::Modify(before, _) | Undo::Move(.., Some(before)), Termination::Ephemeral(slot)) = (waiting.undo, termination)
                {
                    self.places_changed(slot);
                    self.forget_text(slot, &before);
                }
                if let Some(command) = command {
                    self.ask_late(now, termination, &command);
                }
                if waiting.verb == Verb::Add {
                    self.counters.add(Counter::H248Adds);
                }
                self.write_done(now, w, waiting.verb, termination, waiting.shown, waiting.audit);
                self.end_move(waiting);
                return Flow::Next;
            }
            Err(failure) => failure,
        };
        if run.abandoned {
            self.end_move(waiting);
        } else {
            self.undo(now, waiting);
        }
        self.write_gone(w, waiting, failure);
        if waiting.optional { Flow::Next } else { Flow::Stop }
    }

    /// The context that a termination has left for good is not kept for it any more.
    fn end_move(&mut self, waiting: &Waiting) {
        if let Undo::Move(left, ..) = waiting.undo {
            self.tables.drop_if_empty(left);
        }
    }

    /// What a command that waited has done is undone.
    pub(super) fn undo(&mut self, now: Time, waiting: &Waiting) {
        let termination = waiting.termination();
        match (waiting.undo, termination) {
            (Undo::Modify(connection, row), Termination::Ephemeral(slot)) => self.restore(slot, connection, row),
            (Undo::Move(left, row, connection), _) => {
                if let (Some(connection), Termination::Ephemeral(slot)) = (connection, termination) {
                    self.restore(slot, connection, row);
                }
                self.move_back(now, termination, left, row);
            }
            _ => {
                self.remove(now, termination);
            }
        }
    }
}
