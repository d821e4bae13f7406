//! Endpoints whose agent does not answer (RFC 3435 4.3, 4.4.7): a core's part of the disconnected procedure.
//!
//! The owner of an endpoint learns that a command of its own was never answered and tells the lead core; the coordinator there
//! decides whether that makes the endpoint disconnected, tells the owner so, and announces it. From then on the endpoint is like one
//! whose restart is not told: an announcement goes in front of the response to any command (announce.rs, respond.rs), a new command
//! starts or replaces the announcement, and what the endpoint wants to say itself waits.

use super::announce::Stage;
use super::envelope::SINGLE;
use super::outside::{Frames, Outside, Turn};
use super::preface::Preface;
use super::receive::Received;
use super::respond::Way;
use super::{Core, Envelope, Message};
use crate::proto::base::{Counter, EndpointIndex, EndpointRange, Time, TransactionId};
use crate::proto::codec::mgcp::CommandLine;
use crate::proto::codec::peek::Peek;
use crate::proto::endpoint::{Announcement as Told, RestartMethod};
use crate::proto::restart::{Activity, Event, Handle, REPLACE_AFTER};
use crate::proto::transaction::history;
use std::net::SocketAddr;

/// Responses, most of them to repeats, that wait for an announcement to stand in front of them; more are dropped, as if lost.
const REPEATS: usize = 64;

/// See [`REPEATS`]. In the order in which they came.
pub(super) struct Repeats {
    list: Vec<Repeat>,
}

struct Repeat {
    received: Received,
    answered: history::Handle,
    endpoint: EndpointIndex,
    until: Time,
}

impl Repeats {
    pub fn new() -> Repeats {
        Repeats { list: Vec::with_capacity(REPEATS) }
    }

    /// When to call [`Core::answer_repeats`] at the latest.
    pub fn deadline(&self) -> Time {
        self.list.first().map_or(Time::NEVER, |repeat| repeat.until)
    }
}

impl Core {
    /// Whether `endpoint` must not send commands of its own now: the agent has not confirmed yet that it knows of its restart, or that
    /// it was disconnected (G-DIS-06, G-RST-03). When it has, [`Told::Done`] is what `apply_announcement` sets.
    pub(super) fn is_disconnected(&self, endpoint: EndpointIndex) -> bool {
        self.calls.endpoints.get(endpoint).is_some_and(|state| state.announcement != Told::Done)
    }

    /// The network reports that a datagram of ours which begins with `sent` did not arrive at `to`. Only what begins like a command of
    /// ours that is outstanding is believed.
    pub fn handle_unreachable<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, to: SocketAddr, sent: &[u8]) {
        let Peek::Command(CommandLine { id, .. }) = Peek::at(sent) else { return self.counters.add(Counter::UnreachableIgnored) };
        let sender = self.plan.sender(id);
        // What anybody may send must not pile up before a stalled core.
        self.tell(turn, sender, Envelope::Unreachable { id, to });
        self.deliver(turn);
    }

    pub(super) fn note_unreachable(&mut self, id: TransactionId, to: SocketAddr) {
        let believed = self.outgoing.handle_unreachable(id, to);
        self.counters.add(if believed { Counter::UnreachableBelieved } else { Counter::UnreachableIgnored });
    }

    pub(super) fn lead_activity(&mut self, now: Time, endpoint: EndpointIndex) {
        self.lead_event(now, Event::Trigger { endpoint, activity: Activity::Local });
    }

    pub(super) fn lead_unanswered(&mut self, now: Time, endpoints: EndpointRange) {
        if let Some(lead) = &mut self.lead {
            lead.note_unanswered(now, endpoints);
        }
        self.lead_event(now, Event::Disconnected { endpoints });
    }

    /// Something happened on the line of `endpoint`: when its agent must hear first of its restart, or that it was disconnected, that ends
    /// the wait before it (G-RST-01), but what nobody answered is told no more often than each Tdmin (G-DIS-04, G-RST-10).
    pub(super) fn note_activity<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, endpoint: EndpointIndex) {
        if self.calls.endpoints.get(endpoint).is_some_and(|state| state.announcement == Told::Waiting && state.service.in_service) {
            // A busy line must not fill the ring to a stalled core: there will be more.
            self.tell(turn, self.plan.lead(), Envelope::Activity { endpoint });
        }
    }

    /// From the lead core: these endpoints are disconnected. Their connections go on (G-DIS-16).
    pub(super) fn apply_disconnected(&mut self, now: Time, range: EndpointRange) {
        for endpoint in range.iter() {
            if let Some(state) = self.calls.endpoints.get_mut(endpoint)
                && state.service.in_service
                && state.announcement == Told::Done
            {
                state.announcement = Told::Waiting;
                (state.disconnected, state.disconnected_at) = (true, now);
                self.counters.add(Counter::EndpointsDisconnected);
            }
        }
    }

    /// The announcement of a disconnect that is under way for `endpoint`, when a new command replaces it (4.4.7 step 3): one sent
    /// just now is as good as another.
    pub(super) fn replaceable(&self, now: Time, endpoint: EndpointIndex) -> Option<TransactionId> {
        let Told::Outstanding(number) = self.calls.endpoints.get(endpoint)?.announcement else { return None };
        let (announcement, since) = self.announcements.get(number)?;
        let disconnected = announcement.restart.method == RestartMethod::Disconnected && announcement.stage == Stage::Sent;
        (disconnected && now.since(since) >= REPLACE_AFTER).then_some(announcement.transaction)
    }

    /// A repeat of an answered command, whose response must not come before an announcement that is still to be sent (G-RST-05,
    /// G-DIS-09). True: it is held, and the announcement asked for.
    pub(super) fn hold_repeat<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        answered: history::Handle,
        preface: Preface,
    ) -> bool {
        let Preface::Endpoint(endpoint) = preface else { return false };
        if !self.owes_announcement(preface) {
            return false;
        }
        let has_room = self.repeats.list.len() < REPEATS && self.may_wait(received.message);
        if has_room {
            let until = turn.now + self.settings.timers.vote;
            self.repeats.list.push(Repeat { received, answered, endpoint, until });
        }
        // Nobody reads it again; but what follows it in its datagram waits for it.
        if !has_room || received.message.datagram == SINGLE || self.set_aside(turn, received).is_none() {
            self.finish(received.message);
        }
        self.trigger_restart(turn, endpoint, received.source());
        true
    }

    /// A final that was just written and must not come before an announcement that is still to be sent (G-RST-03): it is held like one
    /// that is asked for again. Without room it counts as lost: the command's repeat is held then.
    pub(super) fn hold_final<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        answered: Option<history::Handle>,
        preface: Preface,
    ) {
        let (Preface::Endpoint(endpoint), Some(answered)) = (preface, answered) else { return };
        if self.repeats.list.len() < REPEATS {
            // The message is whoever handles the command's to finish.
            let received = Received { message: Message { datagram: SINGLE, ..received.message }, ..received };
            self.repeats.list.push(Repeat { received, answered, endpoint, until: turn.now + self.settings.timers.vote });
        }
        self.trigger_restart(turn, endpoint, received.source());
    }

    /// Answers the repeats whose announcement is out, and drops those that waited too long.
    pub(super) fn answer_repeats<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        let mut place = 0;
        while let Some(Repeat { received, answered, endpoint, until }) = self.repeats.list.get(place) {
            let (received, answered, endpoint) = (*received, *answered, *endpoint);
            let announced = self.calls.endpoints.get(endpoint).is_some_and(|state| state.announcement != Told::Waiting);
            if !announced && *until > turn.now {
                place += 1;
                continue;
            }
            self.repeats.list.remove(place);
            if announced {
                self.respond_again(turn, Way::back(&received), answered, Preface::Endpoint(endpoint));
            }
            if received.message.datagram != SINGLE {
                self.finish(received.message);
            }
        }
    }

    /// The endpoints of a RestartInProgress have another notified entity: its next copies go there.
    pub(super) fn redirect_restart(&mut self, handle: Handle, group: u16) {
        let Some(lead) = &mut self.lead else { return };
        let Some(transaction) = lead.transaction_of(handle) else { return lead.settling.redirect(handle, group) };
        let (agent, port) = lead.group_entity(group);
        let (agent, addresses, count) = self.addresses(agent, port);
        if self.outgoing.redirect(transaction, agent, addresses.get(..count).unwrap_or_default()) {
            self.counters.add(Counter::OwnRedirected);
        }
    }
}
