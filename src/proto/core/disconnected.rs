//! Endpoints whose agent does not answer (RFC 3435 4.3, 4.4.7): a core's part of the disconnected procedure.
//!
//! The owner of an endpoint learns that a command of its own was never answered and tells the lead core; the coordinator there
//! decides whether that makes the endpoint disconnected, tells the owner so, and announces it. From then on the endpoint is like one
//! whose restart is not told: an announcement goes in front of the response to any command (announce.rs, respond.rs), a new command
//! starts or replaces the announcement, and what the endpoint wants to say itself waits.

use super::announce::Stage;
use super::outside::{Frames, Outside, Turn};
use super::{Core, Envelope};
use crate::proto::base::{Counter, EndpointIndex, EndpointRange, Time, TransactionId};
use crate::proto::codec::mgcp::CommandLine;
use crate::proto::codec::peek::Peek;
use crate::proto::endpoint::{Announcement as Told, RestartMethod};
use crate::proto::restart::{Activity, Event, Handle, REPLACE_AFTER};
use std::net::SocketAddr;

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
