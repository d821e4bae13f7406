//! Which core owns a name: one pure function of the local name, one pass and no tables, so that a small kernel program can compute
//! the same (the steering program does).
//!
//! - A plain name belongs to the number at the end of the part before its last `/`, modulo the owners: consecutive spans spread
//!   evenly and a span's channels stay together. Without such a number, to the hash of that part.
//! - A name with a wildcard (`*`, `$`, `[`) belongs to the hash of the whole name: the core that keeps its transaction.
//!
//! The hash is FNV-1a, 32 bits, over the bytes with ASCII letter case folded. Numbers wrap at 32 bits. A name without `/` counts as
//! its own first part and has no number.

use super::topology::Topology;
use crate::proto::base::EndpointIndex;

const FNV_OFFSET: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// The owner, `0..owners`, of a local name; 0 when there are no owners.
pub fn home(local: &[u8], owners: usize) -> usize {
    let mut hash = FNV_OFFSET;
    let mut number = None;
    // What was known at the last `/`.
    let mut parent = None;
    let mut wildcard = false;
    for &byte in local {
        match byte {
            b'/' => {
                parent = Some((hash, number));
                number = None;
            }
            b'0'..=b'9' => {
                let digit = u32::from(byte - b'0');
                number = Some(number.map_or(digit, |n: u32| n.wrapping_mul(10).wrapping_add(digit)));
            }
            _ => {
                wildcard |= matches!(byte, b'*' | b'$' | b'[');
                number = None;
            }
        }
        hash = (hash ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(FNV_PRIME);
    }
    let key = match parent {
        _ if wildcard => hash,
        Some((_, Some(number))) => number,
        Some((hash, None)) => hash,
        None => hash,
    };
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

    fn fnv(text: &str) -> usize {
        text.bytes().fold(FNV_OFFSET, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(FNV_PRIME)) as usize
    }

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
    fn other_names_go_by_hash() {
        assert_eq!(home(b"AALN/1", 1009), fnv("aaln") % 1009);
        assert_eq!(home(b"mg", 1009), fnv("mg") % 1009);
        assert_eq!(home(b"x/1-a/2", 1009), fnv("x/1-a") % 1009);
        assert_eq!(home(b"", 1009), fnv("") % 1009);
    }

    #[test]
    fn a_wildcard_name_goes_by_the_hash_of_all_of_it() {
        for local in ["ds/ds3-1/ds1-5/*", "*", "$", "ds/ds1-1/[1-12]", "ds/*/5/1"] {
            assert_eq!(home(local.to_ascii_uppercase().as_bytes(), 1009), fnv(local) % 1009, "{local}");
        }
    }
}
