//! Which core owns a name: one pure function of the local name, one pass and no tables, so that a small kernel program can compute
//! the same (`host::transport::steer` generates it).
//!
//! A name belongs to the number that ends right before its last `/`, modulo the owners; to the first owner when there is none. So
//! consecutive spans spread evenly, a span's channels stay together, and a wildcard over the channels of one span (`ds/ds1-5/*`,
//! `ds/ds1-5/$`) is kept by the core that owns them. Numbers wrap at 32 bits.

use super::topology::Topology;
use crate::proto::base::EndpointIndex;

/// The owner, `0..owners`, of a local name; 0 when there are no owners.
#[inline]
pub fn home(local: &[u8], owners: usize) -> usize {
    let (mut key, mut number) = (0u32, 0u32);
    for &byte in local {
        match byte {
            b'0'..=b'9' => number = number.wrapping_mul(10).wrapping_add(u32::from(byte - b'0')),
            b'/' => (key, number) = (number, 0),
            _ => number = 0,
        }
    }
    (key as usize).checked_rem(owners).unwrap_or(0)
}

/// The owner of an endpoint: what [`home`] says of its name, without writing it. `None` when there is no such endpoint.
pub fn owner(topology: &Topology, endpoint: EndpointIndex, owners: usize) -> Option<usize> {
    let span = topology.span(topology.span_of(endpoint)?)?;
    Some((span.number as usize).checked_rem(owners).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::super::topology::tests::{mixed, name};
    use super::*;

    #[test]
    fn the_owner_of_an_endpoint_is_the_home_of_its_name() {
        let topology = mixed();
        for owners in 1..=7 {
            for endpoint in topology.endpoints().iter() {
                let local = name(&topology, endpoint.0);
                assert_eq!(owner(&topology, endpoint, owners), Some(home(local.as_bytes(), owners)), "{local}");
                assert_eq!(home(local.as_bytes(), owners), home(local.to_ascii_uppercase().as_bytes(), owners));
            }
        }
    }

    #[test]
    fn a_plain_name_goes_by_its_last_unit_number() {
        assert_eq!(home(b"ds/ds3-1/ds1-5/17", 4), 1);
        assert_eq!(home(b"ds/ds1-22/17", 8), 6);
        assert_eq!(home(b"ds/ds1-22/17", 1), 0);
        assert_eq!(home(b"ds/ds1-22/17", 0), 0);
        assert_eq!(home(b"ds/4294967301/1", 1000), 5);
    }

    #[test]
    fn a_wildcard_over_the_channels_of_a_span_goes_with_them() {
        for local in ["ds/ds3-1/ds1-5/*", "DS/DS1-5/$", "ds/ds1-5/[1-12]", "x/1-a5/2"] {
            assert_eq!(home(local.as_bytes(), 1009), 5, "{local}");
        }
        assert_eq!(home(b"ds/ds3-7/*", 1009), 7);
    }

    #[test]
    fn other_names_go_to_the_first_owner() {
        for local in ["", "*", "$", "5", "aaln/1", "ds/*", "ds/ds1-[1-4]/*", "ds/ds3-1/ds1-*/1", "x/1-a/2", "x/5-/2", "ds/5x/1"] {
            assert_eq!(home(local.as_bytes(), 1009), 0, "{local}");
        }
    }
}
