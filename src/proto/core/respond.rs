//! Responses: written straight into the transmit frame, remembered, and counted (RFC 3435 3.3, 3.5, 3.5.6).

use super::Core;
use super::outside::{Frames, Origin, Outside, Turn};
use super::preface::{Front, Preface, Standing};
use super::receive::Received;
use crate::proto::base::{AgentId, Counter, Time, TransactionId};
use crate::proto::codec::mgcp::{Writer, pad_first_line};
use crate::proto::endpoint::Announcement as Told;
use crate::proto::mgcp::{self, Calls, Outcome};
use crate::proto::plan::Provisional;
use crate::proto::transaction::finals::{self, Repeat};
use crate::proto::transaction::history;
use std::net::SocketAddr;

/// Where a response goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Way {
    /// The source of the command (G-NET-08).
    pub to: SocketAddr,
    /// The local address it came to (G-NET-14).
    pub local: u8,
    /// Who sent it.
    pub agent: AgentId,
}

impl Way {
    /// Back to where a message came from.
    pub fn back(received: &Received) -> Way {
        Way { to: received.origin.from, local: received.origin.local, agent: received.message.agent }
    }
}

/// A final response to write.
pub(super) struct Final<'a> {
    /// The command.
    pub received: &'a Received,
    /// Its entry in the history; `None`: not remembered.
    pub handle: Option<history::Handle>,
    /// Its transaction.
    pub id: TransactionId,
    /// What goes in front.
    pub preface: Preface,
    /// What came of it.
    pub outcome: &'a Outcome,
}

impl Core {
    /// Sends the final response to a command of this core and remembers it.
    pub(super) fn respond<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, response: Final<'_>) {
        let Final { received, handle, id, preface, outcome } = response;
        let asks_ack = handle.is_some_and(|handle| self.history.provisional_sent(handle));
        let code = outcome.code();
        let written = self.respond_with(turn, received, handle, id, preface, |writer, calls| {
            let endpoint = if let Preface::Endpoint(endpoint) = preface { Some(endpoint) } else { None };
            mgcp::write_outcome(calls, writer, id, outcome, asks_ack, endpoint);
        });
        self.count_final(received.message.agent, code, written);
        if asks_ack && let Some(handle) = handle {
            self.await_acknowledgement(turn.now, handle, id, Way::back(received), preface);
        }
    }

    /// Sends a response that `write` writes, remembers it, and says whether it fitted; one that does not fit becomes 533 (G-AUE-02).
    pub(super) fn respond_with<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: &Received,
        handle: Option<history::Handle>,
        id: TransactionId,
        preface: Preface,
        write: impl FnOnce(&mut Writer<'_>, &Calls),
    ) -> bool {
        let now = turn.now;
        let Origin { from, local, .. } = received.origin;
        let agent = self.settings.agent(received.message.agent);
        let (largest, pad) = agent.map_or((mgcp::SMALLEST_MAX_RESPONSE, false), |agent| (agent.max_response, agent.pad_responses));
        // The agent's limit may have grown since the history promised its room.
        let largest = handle.and_then(|handle| self.history.room(handle)).map_or(largest, |room| room.min(largest));
        let manners = self.settings.manners(received.message.agent);
        self.calls.manners = manners;
        let mut front = Front::Nothing;
        let standing = self.put_in_front(turn, Way::back(received), preface, &mut front);
        let Core { calls, history, counters, scratch, announcements, plan, .. } = self;
        let mut fitted = true;
        let mut write = Some(write);
        let mut fill = |buffer: &mut [u8], front: &Front| {
            let front = announcements.write(plan, front, buffer, manners);
            let rest = buffer.get_mut(front..).unwrap_or_default();
            let room = rest.len().min(largest);
            let length = write.take().and_then(|write| {
                let mut writer = Writer::new(rest.get_mut(..room)?);
                write(&mut writer, calls);
                writer.finish()
            });
            let length = length.unwrap_or_else(|| {
                fitted = false;
                mgcp::write_refusal(rest, id, mgcp::RESPONSE_TOO_LARGE)
            });
            let length = match rest.get_mut(..room) {
                Some(room) if pad => pad_first_line(room, length),
                _ => length,
            };
            if let (Some(handle), Some(body)) = (handle, rest.get(..length)) {
                // `begin` promised the room, so this stores what it is given.
                let _ = history.finish(now, handle, body);
            }
            front + length
        };
        // An announcement was withdrawn while the command was under way.
        let withdrawn = standing == Standing::Elsewhere && announcements.withdrawn_since(received.origin.arrival);
        if let Some(handle) = handle.filter(|_| standing == Standing::Owed || withdrawn) {
            fill(scratch, &Front::Nothing);
            self.hold_final(turn, *received, handle, preface);
        } else if !turn.out.transmit(from, local, |buffer| fill(buffer, &front)) {
            // The agent's repeat will find it in the history.
            counters.add(Counter::TransmitFull);
            fill(scratch, &Front::Nothing);
        }
        fitted
    }

    /// Sends a remembered response again, to the source of the repeat, with the restart in front while it is outstanding
    /// (table M-10).
    pub(super) fn respond_again<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        way: Way,
        handle: history::Handle,
        preface: Preface,
    ) {
        // One that was held may have been confirmed, or forgotten, meanwhile.
        if self.history.body(handle).is_none() {
            return;
        }
        let manners = self.settings.manners(way.agent);
        let mut front = Front::Nothing;
        self.put_in_front(turn, way, preface, &mut front);
        let Core { history, announcements, plan, .. } = self;
        let sent = turn.out.transmit(way.to, way.local, |buffer| {
            let front = announcements.write(plan, &front, buffer, manners);
            let body = history.body(handle).unwrap_or_default();
            // Without room for both the restart comes by itself.
            let front = if front + body.len() <= buffer.len() { front } else { 0 };
            match buffer.get_mut(front..front + body.len()) {
                Some(room) => {
                    room.copy_from_slice(body);
                    front + body.len()
                }
                None => 0,
            }
        });
        if !sent {
            self.counters.add(Counter::TransmitFull);
        }
    }

    /// Sends `100`: the command is being executed (G-PRV-01); `101` while many wait (G-LOD-01). Before the restart is sent it would be the first thing the agent sees of
    /// the endpoint, so nothing is sent then (G-RST-03).
    pub(super) fn respond_provisional<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        handle: history::Handle,
        id: TransactionId,
        preface: Preface,
    ) {
        if let Preface::Endpoint(endpoint) = preface
            && self.calls.endpoints.get(endpoint).is_some_and(|state| state.announcement == Told::Waiting)
        {
            return;
        }
        let manners = self.settings.manners(received.message.agent);
        if manners.provisional == Provisional::Off {
            return;
        }
        let Origin { from, local, .. } = received.origin;
        let mut front = Front::Nothing;
        self.put_in_front(turn, Way::back(&received), preface, &mut front);
        let queued = self.jobs.is_queueing();
        let (announcements, plan) = (&self.announcements, &self.plan);
        let sent = turn.out.transmit(from, local, |buffer| {
            let front = announcements.write(plan, &front, buffer, manners);
            front + mgcp::write_provisional(buffer.get_mut(front..).unwrap_or_default(), id, queued)
        });
        if sent {
            if manners.provisional == Provisional::Confirmed {
                self.history.note_provisional(handle);
            }
            self.counters.add(Counter::Provisional);
            self.counters.response(if queued { 101 } else { 100 });
        } else {
            self.counters.add(Counter::TransmitFull);
        }
    }

    /// A final that asked for an acknowledgement was sent: it is repeated until that comes (G-ACK-08). Without room it is repeated when
    /// the command is, like any other.
    pub(super) fn await_acknowledgement(&mut self, now: Time, handle: history::Handle, id: TransactionId, way: Way, preface: Preface) {
        let Way { to, local, agent } = way;
        let response = finals::Final { handle, id, agent, to, user: u64::from(local) | preface.pack() << 8 };
        self.finals.add(now, response, &self.outgoing.round_trip(agent));
    }

    /// Sends finals again that nobody acknowledged, with the restart in front while it is outstanding (G-RST-05). One that is still to be
    /// sent goes before the next copy.
    pub(super) fn repeat_finals<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        while let Some(Repeat { response, .. }) = self.finals.poll(turn.now, &self.history) {
            let finals::Final { handle, agent, to, user, .. } = response;
            let preface = Preface::unpack(user >> 8);
            if self.owes_announcement(preface) {
                continue;
            }
            self.respond_again(turn, Way { to, local: user as u8, agent }, handle, preface);
            self.counters.add(Counter::FinalRepeats);
        }
    }
}
