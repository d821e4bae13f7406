//! From a datagram to its messages, and each message to the core it belongs to (RFC 3435 3.5.5; design section 3, steps 2 and 3).

use super::Core;
use super::datagrams::Datagram;
use super::envelope::{Envelope, Message, SINGLE};
use super::outside::{Frames, Outside, Turn};
use crate::proto::base::{AgentId, CoreId, Counter, FrameRef, TransactionId};
use crate::proto::codec::peek::{self, Peek};

impl Core {
    /// A received datagram. The core now holds the frame, and releases it when its last message is finished.
    pub fn handle_datagram<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, frame: FrameRef) {
        self.counters.add(Counter::DatagramsReceived);
        let origin = turn.frames.origin(frame);
        self.detector.record(turn.now, turn.now.since(origin.arrival));
        match self.settings.agent_at(origin.from.ip()) {
            Some(agent) => self.open_datagram(turn, frame, agent),
            None => {
                self.counters.add(Counter::DroppedUnlistedSource);
                turn.out.release(frame);
            }
        }
        self.deliver(turn);
    }

    fn open_datagram<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, frame: FrameRef, agent: AgentId) {
        let bytes = turn.frames.bytes(frame);
        let mut messages = peek::split(bytes);
        let Some((range, first)) = messages.next() else {
            self.counters.add(Counter::DroppedUnreadable);
            turn.out.release(frame);
            return;
        };
        let single = Message { frame, start: range.start as u16, end: range.end as u16, datagram: SINGLE, agent };
        if messages.clone().next().is_none() {
            self.route(turn, single, first);
            return;
        }
        let left = self.plan.limits.messages_per_datagram;
        match self.datagrams.insert(Datagram { frame, agent, next: 0, left }) {
            Some(slot) => {
                self.datagrams.finished(slot);
            }
            None => {
                self.counters.add(Counter::DroppedDatagramTable);
                turn.out.release(frame);
            }
        }
    }

    /// Hands out the next message of a datagram, or releases its frame when there is none.
    pub(super) fn continue_datagram<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, slot: u16) {
        let Some(datagram) = self.datagrams.get_mut(slot) else { return };
        let Datagram { frame, agent, next, left } = *datagram;
        let rest = turn.frames.bytes(frame).get(next..).unwrap_or_default();
        match peek::split(rest).next() {
            Some((range, peeked)) if left > 0 => {
                datagram.next = next + range.end;
                datagram.left -= 1;
                let message = Message { frame, start: (next + range.start) as u16, end: (next + range.end) as u16, datagram: slot, agent };
                self.route(turn, message, peeked);
            }
            more => {
                if more.is_some() {
                    self.counters.add(Counter::DroppedPiggybackLimit);
                }
                self.datagrams.remove(slot);
                turn.out.release(frame);
            }
        }
    }

    fn route<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, message: Message, peeked: Peek<'_>) {
        let home = match peeked {
            Peek::Unreadable => {
                self.counters.add(Counter::DroppedUnreadable);
                self.finish(turn, message);
                return;
            }
            Peek::Command { endpoint, .. } => self.plan.home(local_of(endpoint)),
            // The id of an acknowledgement is the agent's: it is looked up here first, if anything is remembered here.
            Peek::Response { code: 0, .. } if self.plan.ordinal(self.id).is_some() => self.id,
            Peek::Response { id, .. } => self.plan.sender(id),
        };
        if home == self.id {
            self.run(turn, message, peeked);
        } else if self.tell(turn, home, Envelope::Message(message)) {
            self.counters.add(Counter::MessagesForwarded);
        } else {
            self.finish(turn, message);
        }
    }

    /// A message another core received.
    pub(super) fn handle_message<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, message: Message) {
        let peeked = Peek::at(text(turn.frames, message));
        self.run(turn, message, peeked);
    }

    fn run<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, message: Message, peeked: Peek<'_>) {
        match peeked {
            Peek::Command { verb, id, endpoint } => self.handle_command(turn, message, verb, id, endpoint),
            Peek::Response { code: 0, id } => {
                self.handle_acknowledgement(turn, message.agent, id);
                self.finish(turn, message);
            }
            Peek::Response { code, id } => {
                self.handle_response(turn, message, code, id);
                self.finish(turn, message);
            }
            Peek::Unreadable => self.finish(turn, message),
        }
    }

    /// Nobody reads `message` any more: its datagram goes on, or its frame is free.
    pub(super) fn finish<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, message: Message) {
        let Message { frame, datagram, .. } = message;
        if frame.core == self.id {
            self.message_done(turn, frame, datagram);
        } else {
            self.must_tell(turn, frame.core, Envelope::Done { frame, datagram });
        }
    }

    pub(super) fn message_done<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, frame: FrameRef, datagram: u16) {
        if datagram == SINGLE {
            turn.out.release(frame);
        } else if !self.datagrams.finished(datagram) {
            self.counters.add(Counter::EnvelopeStray);
        }
    }

    /// `000`: the agent has our final. Looked up here; unknown, it travels once to the other cores.
    fn handle_acknowledgement<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, agent: AgentId, id: TransactionId) {
        if !self.acknowledged_here(agent, id) {
            self.tell_other_owners(turn, Envelope::Confirm { agent, low: id, high: id });
        }
    }

    /// Sends `envelope` to the other cores that own endpoints.
    pub(super) fn tell_other_owners<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, envelope: Envelope) {
        for ordinal in 0..self.plan.owners.len() {
            let owner: CoreId = self.plan.owner_at(ordinal);
            if owner != self.id {
                self.must_tell(turn, owner, envelope);
            }
        }
    }
}

/// The local part of a name as written: what stands before the last `@`.
pub(super) fn local_of(name: &[u8]) -> &[u8] {
    match memchr::memrchr(b'@', name) {
        Some(at) => name.get(..at).unwrap_or_default(),
        None => name,
    }
}

/// The bytes of one message.
pub(super) fn text<F: Frames>(frames: &F, message: Message) -> &[u8] {
    frames.bytes(message.frame).get(usize::from(message.start)..usize::from(message.end)).unwrap_or_default()
}
