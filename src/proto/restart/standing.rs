//! What the owner of an endpoint is to know of it, whatever it was ordered before: for owners that missed orders.

use super::coordinator::{Coordinator, Group};
use super::ledger::Status;
use super::service::{Told, Want};
use super::sweep::Sweep;
use super::{Handle, RestartMethod, Service};
use crate::proto::base::{EndpointIndex, EndpointRange, Time};
use std::collections::BTreeSet;

/// All orders about an endpoint so far, in one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// What it was ordered to be last.
    pub service: Service,
    /// What its agent has heard of that.
    pub heard: Heard,
    /// Since when it is disconnected, if it is: its agent has not heard of that, or has not said so.
    pub cut_off: Option<Time>,
    /// In how many seconds it leaves service, as its agent was told; 0: it was told of no time.
    pub leaves_in_s: u32,
}

/// What an agent has heard of an endpoint, as its owner is to know it (G-RST-03, G-DIS-06).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// Its restart, or that it is out of service, is still to be announced.
    Nothing,
    /// That it was disconnected is still to be announced.
    CutOff,
    /// A RestartInProgress that goes in front of responses is under way.
    UnderWay(Handle),
    /// All there is to hear.
    All,
}

impl Coordinator {
    /// Whether everything it was told is worked in, so that [`Coordinator::standing`] is what the orders so far amount to.
    pub fn is_at_rest(&self) -> bool {
        self.out.is_empty() && self.jobs.is_empty() && self.sweep == Sweep::Idle
    }

    /// The groups that endpoints have, are provisioned with, or were told something in, when it is at rest.
    pub fn groups_in_use(&self) -> BTreeSet<u16> {
        let told = self.ledger.entries().map(|entry| entry.group);
        self.group.iter().chain(&self.home).copied().chain(told).collect()
    }

    /// A group is another notified entity from now on: nothing is known of it.
    pub fn renew_group(&mut self, group: u16) {
        *self.group_mut(group) = Group::new(self.settings.forms);
    }

    /// What the orders about `endpoint` amount to; `None`: there was none, or there is no such endpoint.
    pub fn standing(&self, now: Time, endpoint: EndpointIndex) -> Option<Standing> {
        let (want, told) = (self.want_of(endpoint), self.ledger.told(endpoint));
        let was_forced = matches!(told, Told::Message { method: RestartMethod::Forced, .. });
        let service = want.order(EndpointRange { first: endpoint.0, count: 1 }, was_forced)?;
        let entry = self.ledger.slot_of(endpoint).and_then(|slot| self.ledger.get(slot));
        let leaves = entry.filter(|entry| entry.method == RestartMethod::Graceful && want == Want::Leaving);
        let leaves_in_s = leaves.map_or(0, |entry| self.delay(now, entry));
        let heard = self.heard(endpoint, want, told);
        let tells_so = entry.is_some_and(|entry| entry.method == RestartMethod::Disconnected);
        let is_cut_off = heard == Heard::CutOff || tells_so && matches!(heard, Heard::UnderWay(_));
        let since = self.cut_off.get(endpoint.0 as usize).copied().filter(|since| *since != Time::NEVER);
        let cut_off = is_cut_off.then(|| since.or(entry.map(|entry| entry.cut_off)).unwrap_or(now).min(now));
        Some(Standing { service, heard, cut_off, leaves_in_s })
    }

    fn heard(&self, endpoint: EndpointIndex, want: Want, told: Told) -> Heard {
        let when_connected = if self.is_cut_off(endpoint) { Heard::CutOff } else { Heard::All };
        if self.lost.contains(endpoint) {
            return Heard::Nothing;
        }
        if want.is_out() {
            return match told {
                Told::Message { method: RestartMethod::Forced, confirmed: true, .. } => Heard::All,
                Told::Message { method: RestartMethod::Forced, .. } => self.under_way(endpoint).unwrap_or(Heard::Nothing),
                _ => Heard::Nothing,
            };
        }
        match told {
            Told::Nothing | Told::Message { method: RestartMethod::Forced, .. } => Heard::Nothing,
            Told::Message { method: RestartMethod::Restart, confirmed: false, .. } => self.under_way(endpoint).unwrap_or(Heard::Nothing),
            Told::Message { method: RestartMethod::Disconnected, confirmed: false, .. } => {
                self.under_way(endpoint).unwrap_or(Heard::CutOff)
            }
            Told::Unsure | Told::Message { .. } => when_connected,
        }
    }

    fn under_way(&self, endpoint: EndpointIndex) -> Option<Heard> {
        let slot = self.ledger.slot_of(endpoint)?;
        let entry = self.ledger.get(slot).filter(|entry| entry.status == Status::Outstanding)?;
        Some(Heard::UnderWay(Handle { slot, sending: entry.sending }))
    }
}
