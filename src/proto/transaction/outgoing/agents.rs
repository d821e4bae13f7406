//! What is known of each agent: its addresses, when its names were looked up, its delay and the pace of what is new.

use super::slot::{Phase, Slot, UNSPECIFIED, list};
use super::{ADDRESSES, Outgoing};
use crate::proto::base::{AgentId, Time};
use crate::proto::transaction::pace::{Pace, PaceSettings};
use crate::proto::transaction::round_trip::RoundTrip;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Names that were looked up within this time are not looked up again (RFC 3435 4.3).
const RECENT: Duration = Duration::from_secs(5);

/// One agent.
#[derive(Clone, Copy)]
pub(super) struct Peer {
    pub(super) round_trip: RoundTrip,
    pub(super) pace: Pace,
    pub(super) outstanding: u32,
    /// Its addresses, as far as they are known.
    pub(super) addresses: [SocketAddr; ADDRESSES],
    pub(super) address_count: u8,
    /// When its names were last looked up; `None` when it has none.
    pub(super) resolved: Option<Time>,
    /// When this asked for that.
    pub(super) asked: Option<Time>,
    /// When it last answered a command.
    pub(super) answered: Time,
    /// The address that was heard from last.
    pub(super) heard: Option<IpAddr>,
}

impl Default for Peer {
    fn default() -> Peer {
        Peer {
            round_trip: RoundTrip::default(),
            pace: Pace::default(),
            outstanding: 0,
            addresses: [UNSPECIFIED; ADDRESSES],
            address_count: 0,
            resolved: None,
            asked: None,
            answered: Time::ZERO,
            heard: None,
        }
    }
}

impl Outgoing {
    /// How the pace towards each agent is adapted from now on; until this is called there is no limit.
    pub fn set_pace(&mut self, pace: PaceSettings) {
        self.pace = pace;
    }

    /// What is known of `agent` now: its addresses, and when its names were looked up ([`Time::ZERO`]: not yet; `None`: it has none).
    /// Addresses that were not known before are tried by the commands that are outstanding; those that are gone are tried no more.
    pub fn set_agent(&mut self, now: Time, agent: AgentId, addresses: &[SocketAddr], resolved: Option<Time>) {
        let peer = self.peer(agent);
        let (old, old_count, news) = (peer.addresses, peer.address_count, resolved != peer.resolved);
        peer.resolved = resolved;
        (peer.addresses, peer.address_count) = list(addresses);
        if resolved.is_none() || self.outstanding(agent) == 0 {
            return;
        }
        let old = old.get(..usize::from(old_count)).unwrap_or_default();
        let timers = self.timers_of(agent);
        for (key, slot) in self.slots.iter_mut().enumerate().filter(|(_, slot)| slot.phase != Phase::Free && slot.agent == agent) {
            let spread = slot.is_spread(&timers);
            slot.learn(old, addresses);
            if slot.last_hope && slot.phase == Phase::Waiting && (news || slot.untried()) || spread && slot.untried() {
                self.wheel.schedule(key as u32, slot.id, now);
            }
        }
    }

    /// Something came from this address of `agent`: it is preferred from now on (G-NET-10).
    pub fn heard(&mut self, agent: AgentId, from: IpAddr) {
        self.peer(agent).heard = Some(from);
    }

    /// The address of `agent` that was heard from last.
    pub fn preferred(&self, agent: AgentId) -> Option<IpAddr> {
        self.peers.get(usize::from(agent.0))?.heard
    }

    /// Agents whose names should be looked up again, by their bits; each is told once.
    pub fn take_lookups(&mut self) -> u64 {
        std::mem::take(&mut self.lookups)
    }

    /// New commands that may go to `agent` in a second now; `None`: no limit.
    pub fn rate(&self, now: Time, agent: AgentId) -> Option<u64> {
        self.peers.get(usize::from(agent.0))?.pace.rate(now, &self.pace)
    }

    /// Whether the names of `agent` are being looked up, or are to be from now on: not when they just were, or it has none.
    pub(super) fn look_up(&mut self, now: Time, agent: AgentId) -> bool {
        let wait = self.timers.query_wait;
        let peer = self.peer(agent);
        let Some(resolved) = peer.resolved else { return false };
        if resolved != Time::ZERO && now.since(resolved) < RECENT {
            return false;
        }
        if peer.asked.is_none_or(|asked| asked <= resolved || now.since(asked) >= wait) {
            peer.asked = Some(now);
            self.lookups |= 1u64.checked_shl(agent.0.into()).unwrap_or(0);
        }
        true
    }
}

impl Slot {
    /// Its agent has these addresses now instead of `old`: those it was not sent to are what is left to try.
    fn learn(&mut self, old: &[SocketAddr], new: &[SocketAddr]) {
        let here = self.to();
        // An address that never was one of the agent's list is where a command came from; a port of its own was named by `N:`.
        if !old.iter().any(|address| address.ip() == here.ip()) {
            return;
        }
        let own_port = !old.contains(&here);
        let mut count = usize::from(self.current) + 1;
        for address in new {
            let address = if own_port { SocketAddr::new(address.ip(), here.port()) } else { *address };
            let known = self.addresses.get(..count).is_some_and(|tried| tried.contains(&address));
            if let Some(place) = self.addresses.get_mut(count).filter(|_| !known) {
                *place = address;
                count += 1;
            }
        }
        self.address_count = count as u8;
    }
}
