//! Commands of our own (RSIP, NTFY, DLCX): sent, repeated, moved to another address, given up (RFC 3435 3.5.3, 3.5.6, 4.3; M-9).
//!
//! Owns each outstanding command of one core from [`Outgoing::send`] to its final response, its bytes, the ids, and what is known about
//! the delay of each agent. Does not know what a command means: `user` is the caller's word for it and comes back with its end.
//! First copies go at the pace the agent can take ([`super::pace`]); [`Outgoing::outstanding`] tells a caller that wants to hold back
//! more. Resolves no names: it is told what is known of each agent ([`Outgoing::set_agent`]), and says whose names should be looked up
//! again ([`Outgoing::take_lookups`]).
//!
//! To drive it: [`Outgoing::send`]; at [`Outgoing::deadline`], [`Outgoing::poll`] until it yields nothing; every response that comes in
//! goes to [`Outgoing::handle_response`]. The first copy of a command comes out of `poll` too, in the order of the `send`s.
//!
//! Invariants. Every copy has the same id and bytes (G-TRX-07). Nothing leaves later than T-MAX after the first copy, whatever the
//! addresses (G-RTX-05). Every command ends exactly once: answered, unanswered, or cancelled. Memory is fixed at construction.

mod agents;
mod delivery;
mod held;
mod ids;
mod outcome;
mod slot;
mod store;
#[cfg(test)]
mod tests;

use super::Timers;
use super::pace::PaceSettings;
use super::round_trip::RoundTrip;
use crate::proto::base::id::TRANSACTION_ID_MAX;
use crate::proto::base::{AgentId, Rng, Time, TransactionId};
use crate::proto::timer::TimerWheel;
use agents::Peer;
pub use delivery::Delivery;
use ids::Ids;
use outcome::classify;
pub use outcome::{Answer, Done, Due, Older, Outcome, Outstanding};
use slot::{Phase, Slot};
use std::net::SocketAddr;
use std::time::Duration;
use store::Bodies;

/// Addresses of an agent that a command is tried at.
pub const ADDRESSES: usize = 8;
/// The longest command, in bytes (RFC 3435 3.5.4).
pub const COMMAND_MAX: usize = store::LARGE;

/// Commands that can stand in front of another one.
pub const OLDER: usize = 3;

const AGENTS: usize = 256;
const TICK: Duration = Duration::from_millis(1);
/// Timers handled in one call that yields nothing.
const POLL_BUDGET: u32 = 64;

/// What one core's own commands may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Commands outstanding at one time.
    pub commands: u32,
    /// Of these, those longer than 256 bytes.
    pub large: u32,
    /// This core's ordinal among the cores that send commands, and how many there are: id mod `owners` = `ordinal`.
    pub ordinal: u32,
    /// See `ordinal`.
    pub owners: u32,
}

/// Why a command was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// No room, or no id that has rested for three minutes.
    Full,
    /// The agent has no address.
    NoAddress,
    /// The command is longer than [`COMMAND_MAX`].
    TooLong,
}

/// One core's own commands. See the module's page.
pub struct Outgoing {
    slots: Vec<Slot>,
    bodies: Bodies,
    wheel: TimerWheel,
    ids: Ids,
    peers: Vec<Peer>,
    live: u32,
    /// Of these, those that are held.
    held: u32,
    limit: u32,
    timers: Timers,
    pace: PaceSettings,
    /// Agents whose names should be looked up, by their bits.
    lookups: u64,
    rng: Rng,
}

/// What to do with one slot whose timer has run out.
enum Step {
    Transmit { repeat: bool },
    Unanswered,
    Wait,
}

impl Outgoing {
    /// Nothing outstanding. Ids begin at a random place; memory is claimed here.
    pub fn new(now: Time, limits: &Limits, timers: Timers, rng: Rng) -> Outgoing {
        Outgoing::with_ids_up_to(TRANSACTION_ID_MAX, now, limits, timers, rng)
    }

    fn with_ids_up_to(largest: TransactionId, now: Time, limits: &Limits, timers: Timers, mut rng: Rng) -> Outgoing {
        // An id's place in the sequence decides its slot, so a response finds it without an index. Twice as many slots as commands:
        // a slot that is still taken is found soon past.
        let limit = limits.commands.clamp(1, 1 << 20);
        let slots = (limit * 2).next_power_of_two();
        Outgoing {
            slots: vec![Slot::free(&timers); slots as usize],
            bodies: Bodies::new(slots as usize, limits.large as usize),
            wheel: TimerWheel::new(slots, TICK, now),
            ids: Ids::new(limits.ordinal, limits.owners, largest, &mut rng),
            peers: vec![Peer::default(); AGENTS],
            live: 0,
            held: 0,
            limit,
            timers,
            pace: PaceSettings { rate_max: 0, ..PaceSettings::default() },
            lookups: 0,
            rng,
        }
    }

    /// New timers, from the next timer of each command on.
    pub fn set_timers(&mut self, timers: Timers) {
        self.timers = timers;
    }

    /// Takes a command for `agent`; `poll` gives its first copy. `addresses` in the order they are to be tried (G-NET-10), the first
    /// [`ADDRESSES`] count. `write` writes the whole message for the id and returns its length, or `None` when it does not fit.
    pub fn send(
        &mut self,
        now: Time,
        agent: AgentId,
        addresses: &[SocketAddr],
        user: u64,
        write: impl FnOnce(TransactionId, &mut [u8]) -> Option<usize>,
    ) -> Result<TransactionId, SendError> {
        self.send_with(now, agent, addresses, user, Delivery::default(), write)
    }

    /// The same for a command that is sent in a way of its own.
    pub fn send_with(
        &mut self,
        now: Time,
        agent: AgentId,
        addresses: &[SocketAddr],
        user: u64,
        delivery: Delivery,
        write: impl FnOnce(TransactionId, &mut [u8]) -> Option<usize>,
    ) -> Result<TransactionId, SendError> {
        if addresses.is_empty() {
            return Err(SendError::NoAddress);
        }
        if self.live >= self.limit {
            return Err(SendError::Full);
        }
        let (slots, mask) = (&self.slots, self.slots.len() as u32 - 1);
        let usable = |place: u32| slots.get((place & mask) as usize).is_some_and(|s| s.phase == Phase::Free);
        let (id, place) = self.ids.draw(now, mask + 1, usable).ok_or(SendError::Full)?;
        let key = place & mask;
        let length = write(id, self.bodies.scratch()).filter(|&length| length <= COMMAND_MAX);
        let stored = length.and_then(|length| self.bodies.keep(key, length));
        let Some(stored) = stored else {
            self.ids.complete(now, place);
            return Err(if length.is_none() { SendError::TooLong } else { SendError::Full });
        };
        let backoff = self.round_trip(agent).start(&self.timers);
        self.peer(agent).outstanding += 1;
        self.live += 1;
        let slot = &mut self.slots[key as usize];
        *slot = Slot { id, phase: Phase::Waiting, agent, user, backoff, stored, delivery, ..Slot::free(&self.timers) };
        slot.set_addresses(addresses);
        // "As soon as possible" keeps the order of the calls, which the time would not within one tick.
        self.wheel.schedule(key, id, Time::ZERO);
        Ok(id)
    }

    /// The next thing to do at `now`. When it yields nothing, [`Outgoing::deadline`] may still lie in the past: there was more work
    /// than one call may do.
    pub fn poll(&mut self, now: Time) -> Option<Due<'_>> {
        let mut budget = POLL_BUDGET;
        loop {
            let expired = self.wheel.advance(now, &mut budget)?;
            let key = expired.key;
            match self.step(now, key) {
                Step::Wait => {}
                Step::Transmit { repeat } => {
                    let slot = &self.slots[key as usize];
                    let (body, older) = (self.bodies.get(key, slot.stored), self.older(now, slot));
                    return Some(Due::Transmit { id: slot.id, to: slot.to(), agent: slot.agent, body, older, repeat });
                }
                Step::Unanswered => {
                    let Slot { id, agent, user, .. } = self.slots[key as usize];
                    self.end(now, key);
                    return Some(Due::Unanswered { id, agent, user });
                }
            }
        }
    }

    /// A response has come in: `code`, transaction id, and whether it has a `K:` line. It counts wherever it came from (G-RSL-02).
    pub fn handle_response(&mut self, now: Time, code: u16, id: TransactionId, has_ack: bool) -> Answer {
        let stray = Answer::Stray { acknowledge: false };
        let Some(key) = self.key(id) else { return stray };
        let slot = &self.slots[key as usize];
        if slot.phase == Phase::Free {
            let recent = slot.ended.is_some_and(|at| now.since(at) <= self.timers.t_hist);
            return Answer::Stray { acknowledge: recent && has_ack && code >= 200 };
        }
        // 0xx acknowledges a response and can be none to a command; what has not been sent cannot have been answered.
        let Some(first_sent) = slot.first_sent.filter(|_| code >= 100) else { return stray };
        if slot.phase == Phase::Waiting {
            self.note_first_response(now, key, first_sent);
        }
        if matches!(code, 101 | 409) {
            let (agent, settings) = (self.slots[key as usize].agent, self.pace);
            self.peer(agent).pace.slow_down(now, &settings);
        }
        let Slot { agent, user, .. } = self.slots[key as usize];
        self.peer(agent).answered = now;
        if code < 200 && self.slots[key as usize].phase == Phase::Held {
            return Answer::Provisional { user };
        }
        if code < 200 {
            self.slots[key as usize].phase = Phase::Provisional;
            if now.since(first_sent) <= self.timers.t_max {
                self.wheel.schedule(key, id, now + self.timers.longtran);
            }
            return Answer::Provisional { user };
        }
        let address = self.slots[key as usize].to();
        self.end(now, key);
        self.slots[key as usize].ended = Some(now);
        let (outcome, code) = classify(code);
        Answer::Done(Done { id, agent, user, outcome, code, address, acknowledge: has_ack })
    }

    /// The network says that this command, sent to `to`, could not be delivered: it goes to the next address instead of repeating, if
    /// there is one left. That is all a forged report does, and whoever forges one must have seen the command's id (G-RTX-13). False
    /// when the report is not about the latest copy.
    pub fn handle_unreachable(&mut self, id: TransactionId, to: SocketAddr) -> bool {
        let Some(key) = self.outstanding_key(id) else { return false };
        let slot = &mut self.slots[key as usize];
        let believed = slot.first_sent.is_some() && slot.phase == Phase::Waiting && slot.to() == to;
        slot.unreachable |= believed;
        believed
    }

    /// Another agent is in charge of the endpoints of this command: its next copy goes there at once (G-NET-13). The time since the
    /// first copy runs on. False when the command is not outstanding, is held, or `addresses` is empty.
    pub fn redirect(&mut self, id: TransactionId, agent: AgentId, addresses: &[SocketAddr]) -> bool {
        let Some(key) = self.outstanding_key(id).filter(|_| !addresses.is_empty() && !self.is_held(id)) else { return false };
        self.readdress(key, agent, addresses);
        true
    }

    /// Makes a command start at the first of these addresses, now.
    fn readdress(&mut self, key: u32, agent: AgentId, addresses: &[SocketAddr]) {
        let backoff = self.round_trip(agent).start(&self.timers);
        self.peer(agent).outstanding += 1;
        let old = self.slots[key as usize].agent;
        self.peer(old).outstanding -= 1;
        let slot = &mut self.slots[key as usize];
        (slot.agent, slot.backoff, slot.phase) = (agent, backoff, Phase::Waiting);
        (slot.current, slot.repeats, slot.moved, slot.last_hope) = (0, 0, true, false);
        // A first copy that is still to leave has no place yet among those to the new agent.
        slot.placed = false;
        slot.set_addresses(addresses);
        self.wheel.schedule(key, slot.id, Time::ZERO);
    }

    /// Drops a command: no more copies, no outcome. Its `user` when it was outstanding.
    pub fn cancel(&mut self, now: Time, id: TransactionId) -> Option<u64> {
        let key = self.outstanding_key(id)?;
        let user = self.slots[key as usize].user;
        self.end(now, key);
        Some(user)
    }

    /// When to call [`Outgoing::poll`] again.
    pub fn deadline(&self) -> Time {
        self.wheel.deadline()
    }

    /// How many commands for `agent` are outstanding.
    pub fn outstanding(&self, agent: AgentId) -> u32 {
        self.peers.get(usize::from(agent.0)).map_or(0, |p| p.outstanding)
    }

    /// How many commands are outstanding.
    pub fn len(&self) -> u32 {
        self.live
    }

    /// Whether no command is outstanding.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Whether a provisional response to this outstanding command came.
    pub fn is_provisional(&self, id: TransactionId) -> bool {
        self.outstanding_key(id).is_some_and(|key| self.slots[key as usize].phase == Phase::Provisional)
    }

    /// The bytes of an outstanding command, for a copy in front of a response.
    pub fn body(&self, id: TransactionId) -> Option<&[u8]> {
        let key = self.outstanding_key(id)?;
        Some(self.bodies.get(key, self.slots[key as usize].stored))
    }

    /// What is known about an agent's delay and loss.
    pub fn round_trip(&self, agent: AgentId) -> RoundTrip {
        self.peers.get(usize::from(agent.0)).map(|p| p.round_trip).unwrap_or_default()
    }

    /// All outstanding commands, in no order.
    pub fn iter(&self) -> impl Iterator<Item = Outstanding> {
        self.slots.iter().filter(|s| s.phase != Phase::Free).map(|s| Outstanding {
            id: s.id,
            agent: s.agent,
            user: s.user,
            to: s.to(),
            copies: s.copies,
            first_sent: s.first_sent,
            provisional: s.phase == Phase::Provisional,
        })
    }

    /// What goes in front of the command in `slot`, youngest first; nothing leaves later than T-MAX after its first copy.
    fn older(&self, now: Time, slot: &Slot) -> Older<'_> {
        let mut behind = slot.delivery.behind;
        Older(std::array::from_fn(|_| {
            let key = self.key(behind.take()?)?;
            let slot = &self.slots[key as usize];
            // One that has ended is left out, not what it was behind of.
            behind = slot.delivery.behind;
            let fresh = slot.first_sent.is_some_and(|at| now.since(at) <= self.timers.t_max);
            (fresh && slot.phase != Phase::Free).then(|| self.bodies.get(key, slot.stored))
        }))
    }

    /// The slot of an id of ours, whoever uses it now.
    fn key(&self, id: TransactionId) -> Option<u32> {
        let key = self.ids.place(id)? & (self.slots.len() as u32 - 1);
        (self.slots[key as usize].id == id).then_some(key)
    }

    fn outstanding_key(&self, id: TransactionId) -> Option<u32> {
        self.key(id).filter(|&key| self.slots[key as usize].phase != Phase::Free)
    }

    /// The timers of commands to an agent: Max1 is its own.
    fn timers_of(&self, agent: AgentId) -> Timers {
        let max1 = self.peers.get(usize::from(agent.0)).map_or(self.timers.max1, |peer| peer.round_trip.max1(&self.timers));
        Timers { max1, ..self.timers }
    }

    fn peer(&mut self, agent: AgentId) -> &mut Peer {
        &mut self.peers[usize::from(agent.0)]
    }

    /// Table M-9 for a slot whose timer has run out.
    fn step(&mut self, now: Time, key: u32) -> Step {
        let Slot { agent, first_sent, repeats, current, .. } = self.slots[key as usize];
        if first_sent.is_none() && !self.slots[key as usize].placed {
            let settings = self.pace;
            let place = self.peer(agent).pace.reserve(now, &settings);
            let slot = &mut self.slots[key as usize];
            slot.placed = place.is_ok();
            if let Ok(later) | Err(later) = place
                && later > now
            {
                self.wheel.schedule(key, slot.id, later);
                return Step::Wait;
            }
        }
        let timers = self.timers_of(agent);
        if first_sent.is_some() && current == 0 && repeats == timers.max1 && timers.query_max1 {
            self.look_up(now, agent);
        }
        let fresh = self.round_trip(agent).start(&timers);
        let slot = &mut self.slots[key as usize];
        let Some(first_sent) = slot.first_sent else {
            self.first_copies(now, key);
            return Step::Transmit { repeat: false };
        };
        if slot.last_hope && slot.phase == Phase::Waiting && !slot.untried() {
            return Step::Unanswered;
        }
        let elapsed = now.since(first_sent);
        if elapsed > timers.t_max {
            // A core that was late leaves out copies that were all due before T-MAX: the agent has been silent for as long as it takes.
            let used_up = slot.phase == Phase::Waiting && !slot.untried() && slot.repeats >= timers.max2 || slot.is_spread(&timers);
            if used_up || elapsed >= timers.give_up() {
                return Step::Unanswered;
            }
            return self.wait_to_give_up(key, first_sent);
        }
        let untried = slot.untried();
        if slot.is_spread(&timers) && now < slot.due {
            // One that answers others again need not wait for it; the last copy is kept until it is due.
            let is_back = self.peers[usize::from(agent.0)].answered > slot.last_sent && slot.repeats + 1 < timers.max2;
            if !is_back {
                self.wheel.schedule(key, slot.id, slot.due.min(now + slot.backoff.timer()));
                return Step::Wait;
            }
        }
        if slot.moved {
            slot.moved = false;
        } else if untried && (slot.repeats >= timers.max1 || slot.unreachable) {
            // The back-off begins anew: what it learnt was about the other path, and at RTO-MAX a copy, T-MAX would pass before the
            // third address is tried (G-NET-09).
            (slot.current, slot.repeats, slot.backoff, slot.last_hope) = (slot.current + 1, 0, fresh, false);
        } else if slot.repeats < timers.max2 {
            slot.repeats += 1;
            slot.backoff.repeat(&timers, &mut self.rng);
        } else if slot.phase == Phase::Provisional {
            return self.wait_to_give_up(key, first_sent);
        } else if timers.query_max2 && self.look_up(now, agent) {
            self.slots[key as usize].last_hope = true;
            self.wheel.schedule(key, self.slots[key as usize].id, now + timers.query_wait);
            return Step::Wait;
        } else {
            return Step::Unanswered;
        }
        self.transmitted(now, key);
        Step::Transmit { repeat: true }
    }

    /// O-2: something was heard, or T-MAX came first; the final may come until 2 * T-HIST.
    fn wait_to_give_up(&mut self, key: u32, first_sent: Time) -> Step {
        self.wheel.schedule(key, self.slots[key as usize].id, first_sent + self.timers.give_up());
        Step::Wait
    }

    /// The first copy of a command leaves, and with it those of the commands it must not overtake, though their turn is later: the pace
    /// may have quickened since, or they were for another agent.
    fn first_copies(&mut self, now: Time, key: u32) {
        let mut next = Some(key);
        for _ in 0..=OLDER {
            let Some(key) = next else { return };
            let slot = &mut self.slots[key as usize];
            let behind = slot.delivery.behind;
            if slot.phase != Phase::Free && slot.first_sent.is_none() {
                (slot.first_sent, slot.placed, slot.moved) = (Some(now), true, false);
                self.transmitted(now, key);
            }
            next = behind.and_then(|id| self.key(id));
        }
    }

    fn transmitted(&mut self, now: Time, key: u32) {
        let timers = self.timers_of(self.slots[key as usize].agent);
        let slot = &mut self.slots[key as usize];
        slot.copies += 1;
        slot.unreachable = false;
        slot.last_sent = now;
        slot.due = now + slot.wait(now, &timers);
        let is_spread = slot.is_spread(&timers);
        let looks = if is_spread { slot.due.min(now + slot.backoff.timer()) } else { slot.due };
        self.wheel.schedule(key, slot.id, looks);
        if is_spread && slot.repeats == timers.max1 && timers.query_max2 {
            // There may be time yet to reach another address.
            let agent = slot.agent;
            self.look_up(now, agent);
        }
    }

    fn note_first_response(&mut self, now: Time, key: u32, first_sent: Time) {
        let Slot { agent, copies, repeats, backoff, .. } = self.slots[key as usize];
        let settings = self.pace;
        let peer = self.peer(agent);
        if copies == 1 {
            peer.round_trip.answered_at_first_try(now.since(first_sent));
            peer.pace.answered(now, now.since(first_sent), &settings);
        } else {
            peer.round_trip.answered_after_repeats(u32::from(repeats), backoff.timer());
        }
    }

    fn end(&mut self, now: Time, key: u32) {
        let Slot { id, agent, stored, phase, .. } = self.slots[key as usize];
        self.wheel.cancel(key, id);
        self.held -= u32::from(phase == Phase::Held);
        self.bodies.release(stored);
        if let Some(place) = self.ids.place(id) {
            self.ids.complete(now, place);
        }
        self.peer(agent).outstanding -= 1;
        self.live -= 1;
        self.slots[key as usize].phase = Phase::Free;
    }
}
