//! Who hears whom for one block (RFC 3435 2.3.1 and appendix D).

use super::g711::Law;
use super::leg::{BLOCK, Leg};
use crate::proto::base::Mode;
use crate::proto::trunk::CheckTone;

/// What the circuit meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Circuit {
    /// The connections.
    #[default]
    Connections,
    /// Itself: a connection is in loopback, or T/lb is on.
    Itself,
    /// A transponder that waits for this tone: a connection is in conttest, or T/ct is on.
    Transponder(CheckTone),
}

/// What the circuit gets of the connections: the octets of one as they are, the sum of several.
pub(super) fn mix(law: Law, legs: &[Leg], block: &mut [u8]) {
    let mut feeding = legs.iter().filter(|leg| leg.feeds_circuit());
    match (feeding.next(), feeding.next()) {
        (None, _) => block.fill(law.idle()),
        (Some(leg), None) => block.copy_from_slice(leg.heard.get(..block.len()).unwrap_or_default()),
        (Some(_), Some(_)) => {
            let mut sum = [0; BLOCK];
            legs.iter().filter(|leg| leg.feeds_circuit()).for_each(|leg| add(law, &mut sum, &leg.heard));
            block.iter_mut().zip(sum).for_each(|(octet, value)| *octet = law.encode(value));
        }
    }
}

fn add(law: Law, sum: &mut [i32; BLOCK], octets: &[u8]) {
    sum.iter_mut().zip(octets).for_each(|(sum, &octet)| *sum += i32::from(law.decode(octet)));
}

/// The sum of what the connections of the conference hear; `None` when there is no other one to hear it.
pub(super) fn conference(law: Law, legs: &[Leg]) -> Option<[i32; BLOCK]> {
    let members = || legs.iter().filter(|leg| leg.media.mode == Mode::Conference);
    members().nth(1)?;
    let mut sum = [0; BLOCK];
    members().for_each(|leg| add(law, &mut sum, &leg.heard));
    Some(sum)
}

/// What a member of the conference gets: the others, and the circuit unless that meets something else.
pub(super) fn share(law: Law, sum: &[i32; BLOCK], own: &[u8; BLOCK], circuit: Option<&[u8]>, out: &mut [u8]) {
    for (at, (octet, (sum, &own))) in out.iter_mut().zip(sum.iter().zip(own)).enumerate() {
        let line = circuit.and_then(|circuit| circuit.get(at)).map_or(0, |&line| i32::from(law.decode(line)));
        *octet = law.encode(sum - i32::from(law.decode(own)) + line);
    }
}
