//! Transactions that wait for the card: their message and the reply as far as it is written are kept, and they go on where they stopped.

use super::error::{Failure, NO_RESOURCES, NOT_IN_CONTEXT, TIME_LIMIT};
use super::table::{Row, Termination};
use super::transaction::{Flow, Run};
use super::{Gateway, Send};
use crate::proto::base::{Counter, Time};
use crate::proto::codec::h248::{Audit, Command, Content, Mark, Message, Transaction, Verb, Writer};
use crate::proto::endpoint::{Connection, ConnectionSlot};
use crate::proto::transaction::history::Handle;
use crate::proto::trunk::MediaAddress;

/// Transactions that wait at a time; the next is 510.
const PARKED_MAX: usize = 256;

/// The command that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub slot: ConnectionSlot,
    /// In its name, which an error tells when it is gone.
    pub number: u32,
    pub verb: Verb,
    pub optional: bool,
    pub undo: Undo,
    pub shown: Shown,
    pub audit: Option<Audit>,
}

/// How the command is undone when the card refuses.
#[derive(Clone, Copy, Debug)]
pub(super) enum Undo {
    /// The termination goes.
    Add,
    /// It is as it was.
    Modify(Connection, Row),
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
    waiting: Waiting,
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
}

impl Parking {
    pub fn new(max_message: u16) -> Parking {
        Parking { entries: Vec::with_capacity(PARKED_MAX), spare: Vec::with_capacity(PARKED_MAX), made: 0, max_message }
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
}

impl Gateway {
    /// Keeps a transaction until the card has answered. The reply in `buffer` is kept with it; false, and the command undone, when too
    /// many wait.
    pub(super) fn park(&mut self, text: &[u8], run: Run, waiting: Waiting, mark: Mark, buffer: Box<[u8]>) -> Result<(), Box<[u8]>> {
        let Some((mut copy, fresh)) = self.parking.take() else { return Err(buffer) };
        copy.clear();
        copy.extend_from_slice(text);
        self.reply = Some(fresh);
        self.parking.entries.push(Entry { run, waiting, mark, text: copy, reply: buffer });
        Ok(())
    }

    /// The card has answered an order about `slot`; `None`: it refuses.
    pub(super) fn media_answered(&mut self, now: Time, slot: ConnectionSlot, address: Option<MediaAddress>, send: Send<'_>) {
        let Some(place) = self.parking.entries.iter().position(|entry| entry.waiting.slot == slot) else {
            return;
        };
        if address.is_none() {
            self.counters.add(Counter::CardRefused);
        }
        self.go_on(now, place, address.ok_or(NO_RESOURCES), send);
    }

    /// A transaction has taken as long as any may: what waits is undone.
    pub(super) fn give_up(&mut self, now: Time, handle: Handle, send: Send<'_>) {
        if let Some(place) = self.parking.entries.iter().position(|entry| entry.run.handle == handle) {
            self.go_on(now, place, Err(TIME_LIMIT), send);
        }
    }

    /// A termination goes for whose card a transaction waits.
    pub(super) fn abandon(&mut self, slot: ConnectionSlot) {
        if let Some(entry) = self.parking.entries.iter_mut().find(|entry| entry.waiting.slot == slot) {
            // Answered as soon as the clock looks: the message that is in hand now has the tables.
            entry.run.abandoned = true;
        }
    }

    /// Transactions whose termination went meanwhile end with an error.
    pub(super) fn end_abandoned(&mut self, now: Time, send: Send<'_>) {
        while let Some(place) = self.parking.entries.iter().position(|entry| entry.run.abandoned) {
            self.go_on(now, place, Err(NOT_IN_CONTEXT), send);
        }
    }

    pub(super) fn has_abandoned(&self) -> bool {
        self.parking.entries.iter().any(|entry| entry.run.abandoned)
    }

    /// Tells the sender that its transaction is being worked on (PND-01).
    pub(super) fn tell_pending(&mut self, handle: Handle, send: Send<'_>) {
        let Some(run) = self.parking.entries.iter().map(|entry| entry.run).find(|run| run.handle == handle) else { return };
        self.counters.add(Counter::Provisional);
        self.send_with(run.from, send, |w| w.pending(run.id));
    }

    /// Ends the command that waited, and goes on with its transaction.
    fn go_on(&mut self, now: Time, place: usize, result: Result<MediaAddress, Failure>, send: Send<'_>) {
        let Entry { mut run, waiting, mark, text, mut reply } = self.parking.entries.swap_remove(place);
        let Some(mut shape) = self.shape.take() else { return };
        let mut w = Writer::resume(&mut reply, self.style(), mark);
        let request = match Message::parse(&text, &mut shape).and_then(|message| message.content()) {
            Ok(Content::Transactions(mut transactions)) => match transactions.nth(run.ordinal) {
                Some(Ok(Transaction::Request(request))) => Some(request),
                _ => None,
            },
            _ => None,
        };
        let command = request.as_ref().and_then(|request| run.command(request));
        let flow = self.end_command(now, &run, (&waiting, command), result, &mut w);
        let flow = match (flow, request) {
            (Flow::Next, Some(request)) => self.execute(now, &request, &mut run, &mut w),
            (flow, _) => flow,
        };
        match flow {
            Flow::Park(waiting) => {
                let mark = w.mark();
                self.parking.entries.push(Entry { run, waiting, mark, text, reply });
            }
            Flow::Next | Flow::Stop => {
                let length = self.close(&run, w);
                self.conclude(now, &run, &mut reply, length, send);
                self.parking.spare.push((text, reply));
            }
        }
        self.shape = Some(shape);
    }

    /// Writes the reply to a command that waited, or undoes it.
    fn end_command(
        &mut self,
        now: Time,
        run: &Run,
        (waiting, command): (&Waiting, Option<Command<'_>>),
        result: Result<MediaAddress, Failure>,
        w: &mut Writer<'_>,
    ) -> Flow {
        let termination = Termination::Ephemeral(waiting.slot);
        let failure = match result {
            Ok(address) => {
                self.media_ready(now, waiting.slot, address);
                self.commit_keys(waiting.slot);
                if let Undo::Modify(before, _) = waiting.undo {
                    self.forget_text(waiting.slot, &before);
                }
                if let Some(command) = command {
                    self.ask_late(now, termination, &command);
                }
                self.write_done(now, w, waiting.verb, termination, waiting.shown, waiting.audit);
                return Flow::Next;
            }
            Err(failure) => failure,
        };
        if !run.abandoned {
            match waiting.undo {
                Undo::Add => {
                    self.remove(now, termination);
                }
                Undo::Modify(connection, row) => self.restore(waiting.slot, connection, row),
            }
        }
        self.write_gone(w, waiting, failure);
        if waiting.optional { Flow::Next } else { Flow::Stop }
    }
}
