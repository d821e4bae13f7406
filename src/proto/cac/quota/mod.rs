//! Leased quotas: one limit for several gateways, each with several cores, so that a call asks nobody (R31, I6).
//!
//! Whoever gives places out is a [`Lessor`]: the central node over the gateways, and in each gateway its node over the cores, with the
//! same algorithm. A holder may have as many calls as its quota; the quotas, and what counts for holders that have not yet got used to
//! less, are never more than there is. A holder that found no place, or soon will not, gets more: what it wants and a part of what is
//! left. When nothing is left, others are left with less of what they do not use; that counts only when they have said that they keep
//! to it. A core is a [`Lessee`]: it decides about a call by comparing two numbers for each scope, as long as the lease holds.
//!
//! A quota is a number of calls, so only scopes whose limit is one, too, are given out so: see [`is_leasable`].

mod lessee;
mod lessor;
#[cfg(test)]
mod tests;

pub use lessee::Lessee;
pub use lessor::{Lessor, Part};

use super::limits::{Limits, UNLIMITED};
use std::time::Duration;

/// How long a gateway may use its quotas after the report that the central node answered last.
pub const LEASE: Duration = Duration::from_secs(10);
/// Between two reports of a gateway.
pub const REPORT_EVERY: Duration = Duration::from_millis(250);
/// A gateway that is short of places reports so soon after the report before.
pub const REPORT_SOON: Duration = Duration::from_millis(20);
/// Quotas pay where each gateway's part of the limit is so many calls at least: a small part lies idle now here, now there.
pub const PART_MIN: u32 = 8;

/// Whether a scope is given out in quotas.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Giving {
    /// If its limit is large enough for so many gateways ([`PART_MIN`]).
    #[default]
    Auto,
    /// Whatever its limit.
    Always,
    /// Every call is asked for.
    Never,
}

/// Whether the limits are such that a number of calls for each gateway says all: no direction, bandwidth, rate, reservation or limit
/// for emergency calls of its own. What is not limited at all is: nobody need ask about it.
pub fn is_leasable(limits: &Limits) -> bool {
    let Limits { inbound, outbound, kbits, inbound_rate, outbound_rate, .. } = *limits;
    let reserved = limits.reserved_inbound + limits.reserved_outbound + limits.reserved_priority;
    [inbound, outbound, kbits] == [UNLIMITED; 3]
        && (inbound_rate, outbound_rate) == (None, None)
        && reserved == 0
        && !limits.emergency_limited
}

/// Whether a scope with these limits is given out in quotas to so many gateways; not when nobody knows how many there are.
pub fn is_given(giving: Giving, limits: &Limits, nodes: u32) -> bool {
    let is_large = u64::from(limits.calls) >= u64::from(PART_MIN) * u64::from(nodes);
    nodes > 0 && is_leasable(limits) && (giving == Giving::Always || giving == Giving::Auto && is_large)
}
