//! Names as operators write them: an endpoint, a facility (all below it), a name with wildcards or ranges, with or without the
//! gateway's domain; and, for lists, any text with `*`.

use super::protocol::{Failure, FailureKind};
use crate::proto::base::EndpointIndex;
use crate::proto::plan::Plan;
use crate::proto::trunk::topology::NAME_MAX;
use crate::proto::trunk::{Facility, NameError, Selection, Topology};

/// The longest name or pattern, in bytes (RFC 3435 3.2.1.3: a local name has at most 255).
const PATTERN_MAX: usize = 255;

/// The endpoints `name` stands for.
///
/// # Errors
/// When it stands for none.
pub fn select(plan: &Plan, name: &str) -> Result<Selection, Failure> {
    let local = local(plan, name)?;
    let below = plan.topology.lookup_facility(local.as_bytes()).map(|_| format!("{local}/*"));
    let selection = plan.topology.resolve(below.as_deref().unwrap_or(local).as_bytes(), true);
    selection.map_err(|error| unknown(name, error))
}

/// The one endpoint with this name.
///
/// # Errors
/// When there is none.
pub fn endpoint(plan: &Plan, name: &str) -> Result<EndpointIndex, Failure> {
    let local = local(plan, name)?;
    let none = || Failure::new(FailureKind::Unknown, format!("{name}: no endpoint has this name (one looks like {})", example(plan)));
    plan.topology.lookup(local.as_bytes()).ok_or_else(none)
}

/// The facility with this name.
///
/// # Errors
/// When there is none.
pub fn facility(plan: &Plan, name: &str) -> Result<Facility, Failure> {
    let local = local(plan, name)?;
    let first = plan.topology.facilities().next().map(|facility| facility_name(&plan.topology, facility)).unwrap_or_default();
    let none = || Failure::new(FailureKind::Unknown, format!("{name}: no facility has this name (one is {first})"));
    plan.topology.lookup_facility(local.as_bytes()).ok_or_else(none)
}

/// The local name of an endpoint.
pub fn endpoint_name(topology: &Topology, endpoint: EndpointIndex) -> String {
    let mut name = [0; NAME_MAX];
    let length = topology.write_name(endpoint, &mut name);
    String::from_utf8_lossy(name.get(..length).unwrap_or_default()).into_owned()
}

/// The local name of a facility.
pub fn facility_name(topology: &Topology, facility: Facility) -> String {
    let mut name = [0; NAME_MAX];
    let length = topology.write_facility_name(facility, &mut name);
    String::from_utf8_lossy(name.get(..length).unwrap_or_default()).into_owned()
}

/// Whether `name` fits `pattern`, in which each `*` stands for any text. Letter case is ignored.
pub fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    // Where to go on when what follows the latest `*` does not fit here: that `*` takes one byte more.
    let mut retry = None;
    let (mut p, mut n) = (0, 0);
    loop {
        match (pattern.get(p), name.get(n)) {
            (Some(b'*'), _) => {
                p += 1;
                retry = Some((p, n));
            }
            (None, None) => return true,
            (Some(a), Some(b)) if a.eq_ignore_ascii_case(b) => (p, n) = (p + 1, n + 1),
            _ => match retry {
                Some((after, from)) if from < name.len() => {
                    (p, n) = (after, from + 1);
                    retry = Some((after, from + 1));
                }
                _ => return false,
            },
        }
    }
}

/// `name` without the gateway's domain.
fn local<'a>(plan: &Plan, name: &'a str) -> Result<&'a str, Failure> {
    if name.len() > PATTERN_MAX {
        return Err(Failure::new(FailureKind::Unknown, format!("a name has at most {PATTERN_MAX} characters")));
    }
    match name.split_once('@') {
        None => Ok(name),
        Some((local, domain)) if plan.domains.iter().any(|own| own.eq_ignore_ascii_case(domain.as_bytes())) => Ok(local),
        Some((_, domain)) => Err(Failure::new(FailureKind::Unknown, format!("{name}: this gateway is not {domain}"))),
    }
}

fn unknown(name: &str, error: NameError) -> Failure {
    let why = match error {
        NameError::Unknown => "no endpoint has such a name",
        NameError::Malformed => "not a name: `*` stands for a whole term, `[1-12]` for numbers",
        NameError::TooComplex => "too many numbers in a range",
    };
    Failure::new(FailureKind::Unknown, format!("{name}: {why}"))
}

fn example(plan: &Plan) -> String {
    endpoint_name(&plan.topology, EndpointIndex(0))
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, name) in
            [("*", ""), ("*", "ds/ds3-1"), ("ds/*/3", "ds/ds3-1/ds1-5/3"), ("DS/*-1", "ds/ds3-1"), ("a*a", "aa"), ("**b*", "abc")]
        {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("", "x"), ("x", ""), ("a*a", "a"), ("ds/*/3", "ds/ds3-1/33"), ("*b", "abc"), ("a?c", "abc")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
        // The worst a pattern of legal length can do stays small: no recursion, no product of all stars.
        assert!(!fits(&"*a".repeat(127), &"a".repeat(126)));
    }

    #[test]
    fn operators_name_endpoints_facilities_and_patterns() {
        let plan = plan(2);
        let count = |name: &str| select(&plan, name).map(|selection| selection.count(&plan.topology)).map_err(|failure| failure.message);
        assert_eq!(count("ds/ds1-1/3"), Ok(1));
        assert_eq!(count("ds/ds1-1"), Ok(24), "a facility is all below it");
        assert_eq!(count("DS/ds1-2@TGW.example.net"), Ok(24));
        assert_eq!((count("*"), count("ds/ds1-[1-2]/[1-12]")), (Ok(48), Ok(24)));
        for bad in ["", "ds/ds1-9", "ds/ds1-*", "ds/ds1-1/25", "ds/ds1-1/1@elsewhere", "é", &"x".repeat(300)] {
            assert!(!count(bad).unwrap_err().is_empty(), "{bad}");
        }
        assert_eq!(endpoint(&plan, "ds/ds1-2/1"), Ok(EndpointIndex(24)));
        assert!(endpoint(&plan, "ds/ds1-2").unwrap_err().message.contains("ds/ds1-1/1"));
        assert!(facility(&plan, "ds/ds1-2").is_ok() && facility(&plan, "ds/ds1-2/1").is_err());
    }
}
