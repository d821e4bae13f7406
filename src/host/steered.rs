//! Which program steers the datagrams of each listen address.

use super::transport::steer::{Program, Steered};
use crate::config::Steering;
use crate::proto::plan::Plan;
use std::net::UdpSocket;

/// Bytes a wildcard or range may make a name longer than any endpoint's.
const WILDCARD_ROOM: usize = 12;

/// Attaches the steering program to every group of sockets that has several: one group for each listen address.
pub fn steer(wanted: Steering, plan: &Plan, sockets: &[Vec<UdpSocket>]) -> Steered {
    let mut receivers = sockets.iter().filter(|sockets| !sockets.is_empty());
    let members = receivers.clone().count() as u32;
    let Some(first) = receivers.next().filter(|_| members > 1) else { return Steered::Single };
    if wanted == Steering::Off {
        return Steered::Off;
    }
    let name_max = plan.topology.longest_name() + WILDCARD_ROOM;
    let program = match Program::new(plan.owners.len() as u32, members, name_max) {
        Ok(program) => program,
        Err(reason) => return Steered::Refused(reason),
    };
    for (place, socket) in first.iter().enumerate() {
        // What comes for an H.248 gateway is all for one core.
        let program = match plan.gateway_at(place as u8) {
            Some(gateway) => &Program::always(member_of(plan, gateway, members)),
            None => &program,
        };
        if let Err(error) = program.attach(socket) {
            return Steered::Refused(format!("SO_ATTACH_REUSEPORT_CBPF: {error}"));
        }
    }
    Steered::ByName(program.instructions().len())
}

/// Which socket of a group is that of the core that runs an H.248 gateway, or of the one that receives for it.
fn member_of(plan: &Plan, gateway: u8, members: u32) -> u32 {
    let core = plan.gateways.get(usize::from(gateway)).map(|gateway| gateway.core).unwrap_or_default();
    plan.ordinal(core).unwrap_or(0) as u32 % members.max(1)
}
