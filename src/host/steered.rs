//! Which program steers the datagrams of each listen address.

use super::transport::steer::{Passing, Program, Steered};
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
    let passing = Passing { members, ..Passing::default() };
    let steered = match by_name(plan, &passing) {
        Ok(program) => Steered::ByName(program.instructions().len()),
        Err(reason) => return Steered::Refused(reason),
    };
    for (place, socket) in first.iter().enumerate() {
        if let Err(reason) = attach(plan, &steered, place as u8, socket, &passing) {
            return Steered::Refused(reason);
        }
    }
    steered
}

/// Attaches the program of a listen address, which passes by the sockets that nobody reads, to its group.
///
/// # Errors
/// What the kernel says, or why there is no program.
pub fn attach(plan: &Plan, steered: &Steered, place: u8, socket: &UdpSocket, passing: &Passing) -> Result<(), String> {
    let program = match (steered, plan.gateway_at(place)) {
        (Steered::Single, _) => return Ok(()),
        // What comes for an H.248 gateway is all for one core.
        (Steered::ByName(_), Some(gateway)) => Program::always(member_of(plan, gateway, passing.members)),
        (Steered::ByName(_), None) => by_name(plan, passing)?,
        (Steered::Off | Steered::Refused(_), _) if passing.is_nobody() => {
            return Program::detach(socket).map_err(|error| format!("SO_DETACH_REUSEPORT_BPF: {error}"));
        }
        (Steered::Off | Steered::Refused(_), _) => Program::by_flow(passing),
    };
    program.attach(socket).map_err(|error| format!("SO_ATTACH_REUSEPORT_CBPF: {error}"))
}

fn by_name(plan: &Plan, passing: &Passing) -> Result<Program, String> {
    Program::passing_by(passing, plan.owners.len() as u32, plan.topology.longest_name() + WILDCARD_ROOM)
}

/// Which socket of a group is that of the core that runs an H.248 gateway, or of the one that receives for it.
fn member_of(plan: &Plan, gateway: u8, members: u32) -> u32 {
    let core = plan.gateways.get(usize::from(gateway)).map(|gateway| gateway.core).unwrap_or_default();
    plan.ordinal(core).unwrap_or(0) as u32 % members.max(1)
}
