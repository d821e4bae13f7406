//! Admission of connections: which scopes one counts in, and that it counts there from its creation to its end, whatever ends it
//! (the table of cases is in docs/decisions/admission.md).

use super::Calls;
use super::create::Half;
use crate::proto::base::{EndpointIndex, Time};
use crate::proto::cac::{Charge, Class, Direction, Scope};
use crate::proto::endpoint::{ConnectionSlot, LocalMedia, Remote};
use crate::proto::plan::Admission;
use crate::proto::trunk::{Card, Seizer};

/// Octets of IPv4, UDP and RTP in front of each packet's payload.
const OVERHEAD_V4: u32 = 20 + 8 + 12;
/// The same over IPv6.
const OVERHEAD_V6: u32 = 40 + 8 + 12;

/// Bandwidth in kbit/s that media of this kind takes on an IP network, one way, rounded up.
pub(in crate::proto) fn kbits(local: &LocalMedia, remote: &Remote) -> u32 {
    let overhead = match remote {
        Remote::Local(..) => return 0,
        Remote::Rtp(address, _) if address.is_ipv6() => OVERHEAD_V6,
        Remote::Rtp(..) | Remote::Unknown => OVERHEAD_V4,
    };
    let period_ms = u32::from(local.period_ms).max(1);
    let bits_per_second = local.encodings.first().map_or(0, |encoding| encoding.facts().bits_per_second);
    let packet_bits = bits_per_second / 1000 * period_ms + overhead * 8;
    packet_bits.div_ceil(period_ms)
}

/// Which way a call goes whose connection is created: as its trunk group only goes, as its line was seized, else by whether the
/// connection comes with a description of the far end.
fn direction(card: &dyn Card, endpoint: EndpointIndex, half: Half, remote: &Remote, group: Option<&Scope>) -> Direction {
    if let Some(direction) = group.and_then(|group| group.one_way) {
        return direction;
    }
    match card.seized_by(endpoint) {
        Some(Seizer::FarEnd) => return Direction::Inbound,
        Some(Seizer::Gateway) => return Direction::Outbound,
        None => {}
    }
    match (half, remote) {
        (Half::First, _) => Direction::Inbound,
        (Half::Second, _) | (Half::Whole, Remote::Rtp(..) | Remote::Local(..)) => Direction::Outbound,
        (Half::Whole, Remote::Unknown) => group.map_or(Direction::Inbound, |group| group.undescribed),
    }
}

/// The address of a far end on the network.
pub(in crate::proto) fn address(remote: &Remote) -> Option<std::net::IpAddr> {
    match remote {
        Remote::Rtp(address, _) => Some(*address),
        Remote::Unknown | Remote::Local(..) => None,
    }
}

/// What the first half of a pair would be charged at this endpoint.
pub fn first_of_pair(calls: &Calls, endpoint: EndpointIndex) -> Charge {
    let Some(admission) = &calls.plan.admission else { return Charge::EMPTY };
    charge_of(admission, &*calls.card, endpoint, Half::First, &LocalMedia::default(), &Remote::Unknown)
}

/// What a new connection is charged.
fn charge_of(admission: &Admission, card: &dyn Card, endpoint: EndpointIndex, half: Half, local: &LocalMedia, remote: &Remote) -> Charge {
    let group = admission.group(endpoint);
    let scope = admission.tree.get(group);
    let leg = Charge::new(
        direction(card, endpoint, half, remote, scope),
        scope.map_or(Class::Normal, |scope| scope.class),
        if half == Half::Whole { kbits(local, remote) } else { 0 },
    );
    admission.tree.charge(group, address(remote), leg)
}

/// Takes the places of a new connection: its charge, or what must be claimed first.
pub(super) fn take_new(
    calls: &mut Calls,
    now: Time,
    endpoint: EndpointIndex,
    half: Half,
    local: &LocalMedia,
    remote: &Remote,
) -> Result<Charge, Charge> {
    let Calls { plan, desk, card, .. } = calls;
    let (Some(desk), Some(admission)) = (desk, &plan.admission) else { return Ok(Charge::EMPTY) };
    desk.take_new(now, charge_of(admission, &**card, endpoint, half, local, remote))
}

/// The connection in `slot` is charged this from now on.
pub(super) fn keep(calls: &mut Calls, slot: ConnectionSlot, charge: Charge) {
    if let Some(desk) = &mut calls.desk {
        desk.keep(slot, charge);
    }
}

/// A connection did not come about.
pub(super) fn drop_new(calls: &mut Calls, charge: &Charge) {
    if let Some(desk) = &mut calls.desk {
        desk.drop_new(charge);
    }
}

/// The connection in `slot` is gone.
pub(super) fn ended(calls: &mut Calls, slot: ConnectionSlot) {
    if let Some(desk) = &mut calls.desk {
        desk.ended(slot);
    }
}

/// Takes what a changed connection needs beyond what it has, which it keeps too until [`changed`] or [`unchanged`]; or says what must
/// be claimed first, and what there is.
pub(super) fn take_more(
    calls: &mut Calls,
    now: Time,
    slot: ConnectionSlot,
    local: &LocalMedia,
    remote: &Remote,
) -> Result<(), (Charge, Charge)> {
    let Calls { plan, desk, endpoints, .. } = calls;
    let (Some(desk), Some(admission)) = (desk, &plan.admission) else { return Ok(()) };
    let Some(connection) = endpoints.connections.get(slot) else { return Ok(()) };
    let has = desk.charge(slot);
    let group = admission.group(connection.endpoint);
    let leg = Charge::new(has.direction, has.class, kbits(local, remote));
    desk.take_more(now, slot, admission.tree.charge(group, address(remote), leg))
}

/// The change is made: what the connection had before and needs no more is free.
pub(super) fn changed(calls: &mut Calls, slot: ConnectionSlot) {
    if let Some(desk) = &mut calls.desk {
        desk.changed(slot);
    }
}

/// The change is not made: the connection is what it was.
pub fn unchanged(calls: &mut Calls, slot: ConnectionSlot) {
    if let Some(desk) = &mut calls.desk {
        desk.unchanged(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::endpoint::Encoding;

    /// What a stream takes on the network: G.711 at 20 ms 80 kbit/s, at 10 ms 96, over IPv6 88; inside the gateway nothing.
    #[test]
    fn bandwidth_is_that_of_the_packets_on_the_network() {
        let encodings = [&b"PCMU"[..]].into_iter().filter_map(Encoding::by_name).collect();
        let local = |period_ms| LocalMedia { encodings, period_ms, ..LocalMedia::default() };
        assert_eq!(kbits(&local(20), &Remote::Unknown), 80);
        assert_eq!(kbits(&local(10), &Remote::Rtp([192, 0, 2, 1].into(), 5000)), 96);
        assert_eq!(kbits(&local(20), &Remote::Rtp(std::net::Ipv6Addr::LOCALHOST.into(), 5000)), 88);
        assert_eq!(kbits(&local(30), &Remote::Unknown), 75);
        assert_eq!(kbits(&local(20), &Remote::Local(EndpointIndex(1), Default::default())), 0);
    }
}
