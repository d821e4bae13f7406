//! Commands of this core's own: RestartInProgress on the lead core, Notify, DeleteConnection when a span dies; and finals that wait for
//! their `000` (RFC 3435 3.5.6, 4.3).

use super::Core;
use super::outside::{Frames, Origin, Outside, Turn};
use super::receive::Received;
use crate::proto::base::{AgentId, Counter, EndpointIndex, EndpointRange, Time, TransactionId};
use crate::proto::codec::mgcp::Response;
use crate::proto::endpoint::{Connection, EntityId};
use crate::proto::mgcp;
use crate::proto::plan::AgentSettings;
use crate::proto::transaction::outgoing::{ADDRESSES, Answer, Delivery, Due, Older, Outcome, Outstanding};
use crate::proto::trunk::MediaReport;
use std::net::{IpAddr, SocketAddr};

/// What a command of ours is for, as the table of outstanding commands keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// The RestartInProgress with this number of the lead core.
    Restart(u32),
    /// A connection of this endpoint was deleted.
    Delete(EndpointIndex),
    /// Events of this endpoint.
    Notify(EndpointIndex),
}

impl Purpose {
    pub fn pack(self) -> u64 {
        match self {
            Purpose::Restart(number) => u64::from(number),
            Purpose::Delete(endpoint) => 1 << 32 | u64::from(endpoint.0),
            Purpose::Notify(endpoint) => 2 << 32 | u64::from(endpoint.0),
        }
    }

    fn unpack(word: u64) -> Purpose {
        match word >> 32 {
            0 => Purpose::Restart(word as u32),
            1 => Purpose::Delete(EndpointIndex(word as u32)),
            _ => Purpose::Notify(EndpointIndex(word as u32)),
        }
    }
}

impl Core {
    /// A response other than `000` (G-RSL-02: matched by its id alone).
    pub(super) fn handle_response<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        bytes: &[u8],
        code: u16,
        id: TransactionId,
    ) {
        let Ok(response) = Response::parse(bytes) else {
            return self.counters.add(Counter::DroppedUnreadable);
        };
        self.tallies.of(received.message.agent).heard = Some(turn.now);
        let acknowledge = match self.outgoing.handle_response(turn.now, code, id, response.asks_confirmation()) {
            Answer::Provisional { .. } => return self.counters.add(Counter::ResponsesMatched),
            Answer::Stray { acknowledge } => {
                self.counters.add(Counter::ResponsesUnmatched);
                acknowledge
            }
            Answer::Done(done) => {
                self.counters.add(Counter::ResponsesMatched);
                self.outgoing.heard(done.agent, received.origin.from.ip());
                let tally = self.tallies.of(done.agent);
                *if done.outcome == Outcome::Success { &mut tally.own_done } else { &mut tally.own_refused } += 1;
                match Purpose::unpack(done.user) {
                    Purpose::Restart(number) => {
                        let entity = response.notified_entity();
                        self.restart_answered(turn, number, done.outcome, done.code, entity);
                    }
                    Purpose::Notify(endpoint) => self.notify_answered(turn.now, endpoint, id, done.outcome),
                    Purpose::Delete(_) => {}
                }
                done.acknowledge
            }
        };
        if acknowledge {
            let Origin { from, local, .. } = received.origin;
            turn.out.transmit(from, local, |buffer| mgcp::write_acknowledgement(buffer, id));
        }
    }

    /// Sends what is due of our own commands, and finals again.
    pub(super) fn handle_own<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        for _ in 0..self.plan.limits.slice {
            match self.outgoing.poll(turn.now) {
                None => break,
                Some(Due::Transmit { to, agent, body, older, repeat, .. }) => {
                    let local = self.plan.listen_towards(to);
                    let sent = if self.settings.manners(agent).piggyback {
                        turn.out.transmit(to, local, |buffer| copy_all(&older, body, buffer))
                    } else {
                        // One message a datagram, the oldest first.
                        older.iter().chain([body]).all(|message| turn.out.transmit(to, local, |buffer| copy(message, buffer)))
                    };
                    self.counters.add(match (sent, repeat) {
                        (false, _) => Counter::TransmitFull,
                        (true, false) => Counter::OwnCommands,
                        (true, true) => Counter::OwnRepeats,
                    });
                }
                Some(Due::Unanswered { id, agent, user }) => {
                    self.counters.add(Counter::OwnLost);
                    self.tallies.of(agent).own_lost += 1;
                    match Purpose::unpack(user) {
                        Purpose::Restart(number) => self.restart_unanswered(turn, number),
                        Purpose::Delete(endpoint) => self.note_unanswered(endpoint),
                        Purpose::Notify(endpoint) => self.notify_lost(turn, endpoint, id),
                    }
                }
            }
        }
        self.repeat_finals(turn);
    }

    /// The agent has a final that was kept for it.
    pub(super) fn acknowledged_final(&mut self, agent: AgentId, id: TransactionId) {
        self.finals.acknowledge(agent, id);
    }

    /// Tells the agent that the gateway deleted a connection (RFC 3435 2.3.8), if it is one that is to be told.
    pub(super) fn send_delete(
        &mut self,
        now: Time,
        connection: &Connection,
        report: &MediaReport,
        reason: u16,
        is_told: impl Fn(&AgentSettings) -> bool,
    ) {
        let Some((agent, addresses, count)) = self.destination(connection.endpoint) else { return };
        // To an agent that has to hear first that the endpoint was disconnected, the restart method forced says all (G-DIS-11). While it
        // serves, the agent hears of this afterwards (G-DIS-13).
        let (waits, serves) = (self.is_disconnected(connection.endpoint), self.serves(connection.endpoint));
        if !self.settings.agent(agent).is_some_and(is_told) || waits && !serves {
            return;
        }
        let addresses = addresses.get(..count).unwrap_or_default();
        let (plan, manners) = (&self.plan, self.settings.manners(agent));
        let domain = self.calls.endpoints.get(connection.endpoint).map_or(0, |endpoint| endpoint.domain);
        let write = |id, buffer: &mut [u8]| mgcp::write_gateway_delete(plan, domain, buffer, id, connection, (report, reason), manners);
        let (user, delivery) = (Purpose::Delete(connection.endpoint).pack(), Delivery { until_t_max: true, ..Delivery::default() });
        match self.outgoing.send_with(now, agent, addresses, user, delivery, write) {
            Ok(_) if !waits => self.counters.add(Counter::GatewayDlcxSent),
            Ok(id) if self.outgoing.hold(id) => {}
            Ok(id) => {
                self.outgoing.cancel(now, id);
                self.counters.add(Counter::OwnFull);
            }
            Err(_) => self.counters.add(Counter::OwnFull),
        }
    }

    fn serves(&self, endpoint: EndpointIndex) -> bool {
        self.calls.endpoints.get(endpoint).is_some_and(|state| state.service.in_service)
    }

    /// Their agent has heard of the disconnect: the DeleteConnection commands that waited for that go to whom these endpoints notify now.
    /// Those of endpoints that left service go nowhere.
    pub(super) fn release_deletes(&mut self, now: Time, range: EndpointRange) {
        if self.outgoing.held() == 0 {
            return;
        }
        let held: Vec<_> = self.outgoing.iter().filter(|command| self.outgoing.is_held(command.id)).collect();
        for Outstanding { id, user, .. } in held {
            let Purpose::Delete(endpoint) = Purpose::unpack(user) else { continue };
            if !range.contains(endpoint) {
                continue;
            }
            if !self.serves(endpoint) {
                self.outgoing.cancel(now, id);
            } else if !self.is_disconnected(endpoint)
                && let Some((agent, addresses, count)) = self.destination(endpoint)
                && self.outgoing.release(id, agent, addresses.get(..count).unwrap_or_default())
            {
                self.counters.add(Counter::GatewayDlcxSent);
            }
        }
    }

    /// Whom `endpoint` notifies, and where (G-NET-01..03).
    pub(super) fn destination(&self, endpoint: EndpointIndex) -> Option<(AgentId, [SocketAddr; ADDRESSES], usize)> {
        let state = self.calls.endpoints.get(endpoint)?;
        let (agent, port) = match (self.calls.endpoints.entities.get(state.entity), state.entity, state.source) {
            (Some((agent, port, _)), ..) => (agent, port),
            (None, EntityId::SOURCE, Some((agent, from))) => return Some((agent, [from; ADDRESSES], 1)),
            _ => (state.provisioned, 0),
        };
        let (agent, mut list, count) = self.addresses(agent, port);
        if let Some((_, from)) = state.source {
            prefer(list.get_mut(..count).unwrap_or_default(), from.ip());
        }
        Some((agent, list, count))
    }

    /// Where commands for `agent` go: its addresses in order, the one that was heard from last before the others (G-NET-10), at `port`
    /// unless that is 0.
    pub(super) fn addresses(&self, agent: AgentId, port: u16) -> (AgentId, [SocketAddr; ADDRESSES], usize) {
        let notify = self.settings.agent(agent).map_or(&[][..], |agent| &agent.notify);
        let mut list = [SocketAddr::from(([0, 0, 0, 0], 0)); ADDRESSES];
        let mut count = 0;
        for (place, &address) in list.iter_mut().zip(notify) {
            *place = address;
            if port != 0 {
                place.set_port(port);
            }
            count += 1;
        }
        if let Some(heard) = self.outgoing.preferred(agent) {
            prefer(list.get_mut(..count).unwrap_or_default(), heard);
        }
        (agent, list, count)
    }

    /// Endpoints got another notified entity: their commands that are still outstanding go there (G-NET-13).
    pub(super) fn redirect_commands(&mut self, range: EndpointRange) {
        if self.outgoing.is_empty() {
            return;
        }
        let outstanding: Vec<_> = self.outgoing.iter().collect();
        for Outstanding { id, agent: old, user, to, .. } in outstanding {
            let (Purpose::Delete(endpoint) | Purpose::Notify(endpoint)) = Purpose::unpack(user) else { continue };
            if !range.contains(endpoint) {
                continue;
            }
            let Some((agent, addresses, count)) = self.destination(endpoint) else { continue };
            let addresses = addresses.get(..count).unwrap_or_default();
            if (agent != old || !addresses.contains(&to)) && self.outgoing.redirect(id, agent, addresses) {
                self.counters.add(Counter::OwnRedirected);
            }
        }
    }
}

/// Moves the address of this machine to the front; the order of the others stays.
fn prefer(list: &mut [SocketAddr], ip: IpAddr) {
    if let Some(place) = list.iter().position(|address| address.ip() == ip)
        && let Some(front) = list.get_mut(..=place)
    {
        front.rotate_right(1);
    }
}

/// A command behind older ones that have to be there before it: one datagram.
fn copy_all(older: &Older<'_>, body: &[u8], buffer: &mut [u8]) -> usize {
    let mut length = 0;
    for message in older.iter() {
        length += copy(message, buffer.get_mut(length..).unwrap_or_default());
        length += copy(b".\r\n", buffer.get_mut(length..).unwrap_or_default());
    }
    length + copy(body, buffer.get_mut(length..).unwrap_or_default())
}

fn copy(body: &[u8], buffer: &mut [u8]) -> usize {
    match buffer.get_mut(..body.len()) {
        Some(room) => {
            room.copy_from_slice(body);
            body.len()
        }
        None => 0,
    }
}
