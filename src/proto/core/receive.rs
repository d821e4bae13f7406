//! From a datagram to its messages, and each message to the core it belongs to (RFC 3435 3.5.5; design section 3, steps 2 and 3).

use super::Core;
use super::datagrams::Datagram;
use super::envelope::{Envelope, KEPT, Message, SINGLE};
use super::outside::{Frames, Handled, Origin, Outside, Turn, Work};
use crate::proto::base::{AgentId, Counter, FrameRef, TransactionId};
use crate::proto::codec::peek::{self, Peek};
use crate::proto::codec::scan;
use crate::proto::mgcp::{self, Refused};
use std::net::IpAddr;

/// A message and where it came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    pub message: Message,
    pub origin: Origin,
}

impl Received {
    /// Who sent it, and from where.
    pub fn source(&self) -> Option<(AgentId, IpAddr)> {
        Some((self.message.agent, self.origin.from.ip()))
    }

    /// A message that another core received.
    pub fn of<F: Frames, O: Outside>(turn: &Turn<'_, F, O>, message: Message) -> Result<Received, Refused> {
        turn.frames.read(message.frame).map(|(_, origin)| Received { message, origin }).ok_or(mgcp::CORE_SILENT)
    }
}

impl Core {
    /// A received datagram. The core now holds the frame, and releases it when its last message is finished.
    pub fn handle_datagram<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, frame: FrameRef) {
        self.open_datagram(turn, frame);
        self.deliver(turn);
    }

    fn open_datagram<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, frame: FrameRef) {
        let frames = turn.frames;
        let Some((datagram, origin)) = frames.read(frame) else {
            return self.counters.add(Counter::EnvelopeStray);
        };
        self.detector.record(turn.now, turn.now.since(origin.arrival));
        if let Some(gateway) = self.plan.gateway_at(origin.local) {
            return self.open_gateway_datagram(turn, (frame, datagram.len()), (gateway, origin), &datagram);
        }
        let message = Message { frame, start: 0, end: 0, datagram: SINGLE, agent: AgentId(0) };
        let Some(agent) = self.settings.agent_at(origin.from.ip()) else {
            self.counters.add(Counter::DroppedUnlistedSource);
            return self.finish(message);
        };
        let mut messages = peek::split(&datagram);
        let Some((range, first)) = messages.next() else {
            self.counters.add(Counter::DroppedUnreadable);
            return self.finish(message);
        };
        let message = Message { start: range.start as u16, end: range.end as u16, agent, ..message };
        if messages.next().is_none() {
            let bytes = datagram.get(range).unwrap_or_default();
            return self.route(turn, Received { message, origin }, bytes, first);
        }
        let left = self.plan.limits.messages_per_datagram;
        match self.datagrams.insert(Datagram { frame, agent, next: 0, left, waits_here: false }) {
            Some(slot) => {
                self.datagrams.finished(slot);
            }
            None => {
                self.counters.add(Counter::DroppedDatagramTable);
                self.finish(message);
            }
        }
    }

    /// Hands out the next message of a datagram, or gives up its frame when there is none.
    pub(super) fn continue_datagram<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, slot: u16) {
        let frames = turn.frames;
        let Some(in_hand) = self.datagrams.get_mut(slot) else { return };
        let Datagram { frame, agent, next, left, .. } = *in_hand;
        let message = Message { frame, start: 0, end: 0, datagram: SINGLE, agent };
        let Some((datagram, origin)) = frames.read(frame) else { return };
        let rest = datagram.get(next..).unwrap_or_default();
        match peek::split(rest).next() {
            Some((range, peeked)) if left > 0 => {
                let (start, end) = (next + range.start, next + range.end);
                in_hand.next = end;
                in_hand.left -= 1;
                let message = Message { start: start as u16, end: end as u16, datagram: slot, ..message };
                let bytes = datagram.get(start..end).unwrap_or_default();
                self.route(turn, Received { message, origin }, bytes, peeked);
            }
            more => {
                if more.is_some() {
                    self.counters.add(Counter::DroppedPiggybackLimit);
                }
                self.datagrams.remove(slot);
                self.finish(message);
            }
        }
    }

    fn route<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, received: Received, bytes: &[u8], peeked: Peek<'_>) {
        let home = match peeked {
            Peek::Unreadable => {
                self.counters.add(Counter::DroppedUnreadable);
                return self.finish(received.message);
            }
            Peek::Command(line) => self.plan.home(line.local()),
            // The id of an acknowledgement is the agent's: it is looked up here first, if anything is remembered here.
            Peek::Response { code: 0, .. } if self.plan.ordinal(self.id).is_some() => self.id,
            Peek::Response { id, .. } => self.plan.sender(id),
        };
        if home == self.id {
            return self.run(turn, received, bytes, peeked);
        }
        if let Peek::Command(line) = &peeked
            && self.refuse_for(turn, received, home, line, bytes)
        {
            return;
        }
        if !self.in_hand.take(turn.now, home) {
            self.counters.add(Counter::DroppedHomeBehind);
            return self.drop_from(received.message);
        }
        if !self.tell(turn, home, Envelope::Message(received.message)) {
            self.in_hand.give_back(turn.now, home);
            return self.drop_from(received.message);
        }
        self.counters.add(Counter::MessagesForwarded);
        self.handled = Some(Handled { work: Work::Forward, forwarded: false, arrival: received.origin.arrival });
        if let Peek::Command(line) = &peeked {
            self.watch_handed(turn.now, home, received.message, line.endpoint);
        }
    }

    /// Drops a message, and what stands behind it in its datagram, which must not come before it: the agent repeats both (G-PIG-02).
    fn drop_from(&mut self, message: Message) {
        if let Some(datagram) = self.datagrams.get_mut(message.datagram) {
            datagram.next = usize::MAX;
        }
        self.finish(message);
    }

    /// Whether a command may be put aside.
    pub(super) fn may_wait(&self, message: Message) -> bool {
        let here = match message.datagram {
            KEPT | SINGLE => true,
            slot => message.frame.core != self.id || self.datagrams.waits_here(slot) || self.in_hand.has_room(self.id),
        };
        here && !self.jobs.is_full()
    }

    /// A message that is to wait goes into a frame of this core, so that the one it was received in can be received into again; one of
    /// several in a datagram stays there, as far as frames may stay in hand. `None`: no more may wait.
    pub(super) fn set_aside<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, received: Received) -> Option<Received> {
        let Received { message, origin } = received;
        match message.datagram {
            KEPT => Some(received),
            SINGLE => {
                let (datagram, _) = turn.frames.read(message.frame)?;
                let bytes = text(&datagram, message);
                let Some(frame) = turn.out.keep(bytes, origin) else { return Some(received) };
                let kept = Message { frame, start: 0, end: bytes.len() as u16, datagram: KEPT, ..message };
                self.finish(message);
                Some(Received { message: kept, origin })
            }
            slot if message.frame.core == self.id => {
                let datagram = self.datagrams.get_mut(slot)?;
                if !datagram.waits_here {
                    datagram.waits_here = self.in_hand.take(turn.now, self.id);
                }
                datagram.waits_here.then_some(received)
            }
            // It counts where it was received.
            _ => Some(received),
        }
    }

    /// A message another core received.
    pub(super) fn handle_message<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, message: Message) {
        let frames = turn.frames;
        match frames.read(message.frame) {
            Some((datagram, origin)) => {
                // What waited for another core, or behind other work of this one, counts here: this core is to decide.
                self.detector.record(turn.now, turn.now.since(origin.arrival));
                let bytes = text(&datagram, message);
                if let Some(gateway) = self.plan.gateway_at(origin.local) {
                    self.run_gateway(turn, gateway, origin, bytes);
                    return self.finish(message);
                }
                self.run(turn, Received { message, origin }, bytes, Peek::at(bytes));
            }
            None => self.counters.add(Counter::EnvelopeStray),
        }
    }

    fn run<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, received: Received, bytes: &[u8], peeked: Peek<'_>) {
        let work = match peeked {
            Peek::Command(line) => Some(Work::Command(line.verb)),
            Peek::Response { .. } => Some(Work::Response),
            Peek::Unreadable => None,
        };
        let (forwarded, arrival) = (received.message.frame.core != self.id, received.origin.arrival);
        self.handled = work.map(|work| Handled { work, forwarded, arrival });
        match peeked {
            Peek::Command(line) => self.handle_command(turn, received, bytes, &line),
            Peek::Response { code: 0, id } => {
                self.handle_acknowledgement(turn, received.message.agent, id);
                self.finish(received.message);
            }
            Peek::Response { code, id } => {
                self.handle_response(turn, received, bytes, code, id);
                self.finish(received.message);
            }
            Peek::Unreadable => self.finish(received.message),
        }
    }

    /// Nobody needs `message` any more: before the present call returns, its datagram goes on, or its frame is given back. Not at
    /// once, because the caller may still be reading it.
    pub(super) fn finish(&mut self, message: Message) {
        self.finished.push_back(message);
    }

    /// Gives back what was finished.
    pub(super) fn give_back<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, message: Message) {
        let Message { frame, datagram, .. } = message;
        if self.waits_for_final(turn, message) {
            return;
        }
        if datagram == KEPT {
            turn.out.release(frame);
        } else if frame.core == self.id {
            self.message_done(turn, frame, datagram);
        } else {
            self.must_tell(turn, frame.core, Envelope::Done { frame, datagram });
        }
    }

    pub(super) fn message_done<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, frame: FrameRef, datagram: u16) {
        if datagram == SINGLE {
            return turn.out.release(frame);
        }
        if self.datagrams.get_mut(datagram).is_some_and(|datagram| std::mem::take(&mut datagram.waits_here)) {
            self.in_hand.give_back(turn.now, self.id);
        }
        if !self.datagrams.finished(datagram) {
            self.counters.add(Counter::EnvelopeStray);
        }
    }

    /// `000`: the agent has our final. Looked up here; unknown, it travels once to the other cores.
    fn handle_acknowledgement<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, agent: AgentId, id: TransactionId) {
        if !self.acknowledged_here(turn.now, agent, id) {
            self.tell_other_owners(turn, Envelope::Confirm { agent, low: id, high: id });
        }
    }
}

/// The local part of a name as written: what stands before the first `@`.
pub(super) fn local_of(name: &[u8]) -> &[u8] {
    match scan::find_near(name, b'@') {
        Some(at) => name.get(..at).unwrap_or_default(),
        None => name,
    }
}

/// The bytes of one message of a datagram.
pub(super) fn text(datagram: &[u8], message: Message) -> &[u8] {
    datagram.get(usize::from(message.start)..usize::from(message.end)).unwrap_or_default()
}
