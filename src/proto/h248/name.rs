//! Names of terminations (RFC 3525 6.2.2, B.1): the hierarchy of the trunks with `_` for the `-` that H.248 has not, and `rtp/number`.

use super::table::{Tables, Termination};
use crate::proto::codec::h248::{NAME_MAX, TerminationId};
use crate::proto::trunk::Topology;

/// What names of ephemeral terminations begin with.
const EPHEMERAL: &[u8] = b"rtp/";

/// Room for a name.
pub type Room = [u8; NAME_MAX];

/// Writes the name of `termination` into `room`.
pub fn write<'r>(topology: &Topology, tables: &Tables, termination: Termination, room: &'r mut Room) -> &'r [u8] {
    let length = match termination {
        Termination::Root => room.get_mut(..4).map_or(0, |room| {
            room.copy_from_slice(b"ROOT");
            4
        }),
        Termination::Physical(endpoint) => topology.write_name(endpoint, room),
        Termination::Ephemeral(_) => {
            use std::io::Write as _;
            let number = tables.row(termination).map_or(0, |row| row.number);
            let whole = room.len();
            let mut rest = &mut room[..];
            // A number of 32 bits behind four letters fits.
            let _ = write!(rest, "rtp/{number}");
            whole - rest.len()
        }
    };
    let name = room.get_mut(..length).unwrap_or_default();
    underscores(name);
    name
}

/// In place of hyphens.
pub fn underscores(name: &mut [u8]) {
    name.iter_mut().filter(|byte| **byte == b'-').for_each(|byte| *byte = b'_');
}

/// The termination that a name without wildcards means.
pub fn find(topology: &Topology, tables: &Tables, name: &[u8]) -> Option<Termination> {
    if let Some(digits) = ephemeral(name) {
        let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
        return tables.ephemeral(number).filter(|_| digits.first() != Some(&b'0') && digits.first() != Some(&b'+'));
    }
    let mut room = [0; NAME_MAX];
    let local = room.get_mut(..name.len())?;
    local.copy_from_slice(name);
    local.iter_mut().filter(|byte| **byte == b'_').for_each(|byte| *byte = b'-');
    let found = Termination::Physical(topology.lookup(local)?);
    tables.row(found).map(|_| found)
}

/// What stands behind `rtp/`.
pub fn ephemeral(name: &[u8]) -> Option<&[u8]> {
    let (head, rest) = name.split_at_checked(EPHEMERAL.len())?;
    head.eq_ignore_ascii_case(EPHEMERAL).then_some(rest)
}

/// Whether `$` in this name asks for a new ephemeral termination; else for a physical one.
pub fn chooses_ephemeral(id: &TerminationId<'_>) -> bool {
    match id {
        TerminationId::Choose => true,
        TerminationId::Name(name) => ephemeral(name) == Some(b"$"),
        _ => false,
    }
}

/// Whether `name` fits `pattern`, in which `*` and `$` stand for any run of characters (TRM-10: it is string matching).
pub fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let same = |a: u8, b: u8| a.eq_ignore_ascii_case(&b) || matches!((a, b), (b'-' | b'_', b'-' | b'_'));
    let (mut p, mut n, mut retry) = (0, 0, None);
    while n < name.len() {
        match (pattern.get(p), name.get(n)) {
            (Some(b'*' | b'$'), _) => {
                retry = Some((p + 1, n));
                p += 1;
            }
            (Some(&a), Some(&b)) if same(a, b) => (p, n) = (p + 1, n + 1),
            // Each retry begins one further: at most 64 times 64 steps.
            _ => match &mut retry {
                Some((behind, from)) => {
                    *from += 1;
                    (p, n) = (*behind, *from);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|byte| matches!(byte, b'*' | b'$'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::{EndpointIndex, EndpointRange};
    use crate::proto::trunk::{FacilityKind, FacilityPlan};

    #[test]
    fn names_have_no_hyphens_and_are_found_in_any_letter_case() {
        // TRM-03, TRM-12; a hyphen is read as well, because the field writes it.
        let plan = FacilityPlan { kind: FacilityKind::T3, unit: 1, common_channel: false };
        let topology = Topology::new(&[plan]).unwrap();
        let mut tables = Tables::new([EndpointRange { first: 24, count: 24 }].into_iter(), 2);
        let termination = Termination::Physical(EndpointIndex(30));
        let mut room = [0; NAME_MAX];
        assert_eq!(write(&topology, &tables, termination, &mut room), b"ds/ds3_1/ds1_2/7");
        for name in ["ds/ds3_1/ds1_2/7", "DS/DS3_1/ds1_2/7", "ds/ds3-1/ds1-2/7"] {
            assert_eq!(find(&topology, &tables, name.as_bytes()), Some(termination), "{name}");
        }
        // Another gateway's, and none.
        for name in ["ds/ds3_1/ds1_1/7", "ds/ds3_1/ds1_2/25", "rtp/1", "rtp/", "rtp/0", "x", ""] {
            assert_eq!(find(&topology, &tables, name.as_bytes()), None, "{name}");
        }
        tables.make_ephemeral(1);
        let name = write(&topology, &tables, Termination::Ephemeral(1), &mut room).to_vec();
        assert_eq!((&name[..], find(&topology, &tables, b"RTP/2")), (&b"rtp/2"[..], Some(Termination::Ephemeral(1))));
        assert_eq!(find(&topology, &tables, b"rtp/02"), None);
        assert_eq!(write(&topology, &tables, Termination::Root, &mut room), b"ROOT");
    }

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        // TRM-10
        for (pattern, name, fit) in [
            ("*", "ds/ds1_1/7", true),
            ("ds/ds1_1*", "ds/ds1_10/7", true),
            ("ds/ds1_1/*", "ds/ds1_10/7", false),
            ("ds/ds1_1/*", "ds/ds1_1/7", true),
            ("DS/*/7", "ds/ds3_1/ds1_1/7", true),
            ("*/*7", "ds/ds1_1/17", true),
            ("ds/ds1_5/$", "ds/ds1_5/3", true),
            ("ds/ds1-5/*", "ds/ds1_5/3", true),
            ("ds/*/8", "ds/ds1_1/7", false),
            ("ds/ds1_1/7", "ds/ds1_1/7", true),
            ("ds/ds1_1/7", "ds/ds1_1/77", false),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), fit, "{pattern} {name}");
        }
    }
}
