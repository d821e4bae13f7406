//! What a scope allows (R15 to R19): ceilings on five counted amounts, head room for calls that matter more, reservations, and how
//! fast new calls may come.
//!
//! Reservations are ceilings too: to keep ten places for calls from the trunk, those towards it may use all but ten. That is exact, and
//! it lets every rule be one comparison per amount.

use super::charge::{Charge, Class, Direction};
use super::scope::ScopeId;
use crate::proto::base::Time;
use std::time::Duration;

/// No limit; also the largest limit that can be set (R16).
pub const UNLIMITED: u32 = i32::MAX as u32;

/// What is counted in a scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Amount {
    /// Calls.
    Calls,
    /// Calls from the trunk.
    Inbound,
    /// Calls towards the trunk.
    Outbound,
    /// Calls of class normal.
    Normal,
    /// Calls of class priority.
    Priority,
    /// Bandwidth in kbit/s.
    Kbits,
}

impl Amount {
    /// How many there are.
    pub const COUNT: usize = 6;
    /// All of them.
    pub const ALL: [Amount; Amount::COUNT] =
        [Amount::Calls, Amount::Inbound, Amount::Outbound, Amount::Normal, Amount::Priority, Amount::Kbits];

    /// As operators read it.
    pub const fn text(self) -> &'static str {
        match self {
            Amount::Calls => "calls",
            Amount::Inbound => "calls from the trunk",
            Amount::Outbound => "calls to the trunk",
            Amount::Normal => "normal calls",
            Amount::Priority => "priority calls",
            Amount::Kbits => "kbit/s",
        }
    }
}

/// One number for each [`Amount`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Amounts([u32; Amount::COUNT]);

impl Amounts {
    /// Nothing.
    pub const ZERO: Amounts = Amounts([0; Amount::COUNT]);
    /// As much as can be.
    pub const UNLIMITED: Amounts = Amounts([UNLIMITED; Amount::COUNT]);

    /// One of them.
    pub fn get(&self, amount: Amount) -> u32 {
        self.0[amount as usize]
    }

    /// Sets one of them.
    pub fn set(&mut self, amount: Amount, value: u32) {
        self.0[amount as usize] = value;
    }

    /// The same with one of them set.
    pub fn with(mut self, amount: Amount, value: u32) -> Amounts {
        self.set(amount, value);
        self
    }

    /// Each of `self` and `other` combined.
    pub fn zip(&self, other: &Amounts, mut combine: impl FnMut(u32, u32) -> u32) -> Amounts {
        let mut result = *self;
        result.0.iter_mut().zip(other.0).for_each(|(mine, other)| *mine = combine(*mine, other));
        result
    }

    /// The sum.
    pub fn plus(&self, other: &Amounts) -> Amounts {
        self.zip(other, u32::saturating_add)
    }

    /// What is left of `self` without `other`; nothing where that is more.
    pub fn minus(&self, other: &Amounts) -> Amounts {
        self.zip(other, u32::saturating_sub)
    }

    /// The smaller of each.
    pub fn at_most(&self, other: &Amounts) -> Amounts {
        self.zip(other, u32::min)
    }

    /// Whether each is at least that of `other`.
    pub fn covers(&self, other: &Amounts) -> bool {
        self.0.iter().zip(other.0).all(|(&mine, other)| mine >= other)
    }

    /// Whether there is nothing.
    pub fn is_zero(&self) -> bool {
        self.0 == [0; Amount::COUNT]
    }

    /// The first amount that `self` would have above `ceiling` and that `change` makes larger; never one without a limit.
    pub fn first_above(&self, ceiling: &Amounts, change: &Amounts) -> Option<Amount> {
        let is_above = |amount: Amount| ceiling.get(amount) < UNLIMITED && self.get(amount) > ceiling.get(amount);
        Amount::ALL.into_iter().find(|&amount| change.get(amount) > 0 && is_above(amount))
    }
}

/// How fast new calls may come in one direction: a token bucket (R18).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// Calls per second that can go on for ever, 1..=100000.
    pub per_second: u32,
    /// Calls that may come at once, at least 1.
    pub burst: u32,
}

impl Rate {
    fn interval(self) -> Duration {
        Duration::from_nanos(1_000_000_000 / u64::from(self.per_second.max(1)))
    }
}

/// The state of a [`Rate`]: when the bucket will be full again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bucket {
    full_at: Time,
}

impl Bucket {
    /// Whether a call may come now.
    pub fn allows(&self, now: Time, rate: Rate) -> bool {
        let ahead = self.full_at.since(now);
        ahead <= rate.interval().saturating_mul(rate.burst.saturating_sub(1))
    }

    /// A call has come.
    pub fn take(&mut self, now: Time, rate: Rate) {
        self.full_at = self.full_at.max(now) + rate.interval();
    }
}

/// What a scope allows; everything unlimited by default, with the head room of the field's products.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Calls, in both directions.
    pub calls: u32,
    /// Calls from the trunk.
    pub inbound: u32,
    /// Calls towards the trunk.
    pub outbound: u32,
    /// Bandwidth in kbit/s.
    pub kbits: u32,
    /// New calls from the trunk; `None`: as they come.
    pub inbound_rate: Option<Rate>,
    /// New calls towards the trunk.
    pub outbound_rate: Option<Rate>,
    /// Places that calls towards the trunk leave free for those from it.
    pub reserved_inbound: u32,
    /// Places that calls from the trunk leave free for those towards it.
    pub reserved_outbound: u32,
    /// Places that normal calls leave free for others.
    pub reserved_priority: u32,
    /// Priority calls may use so many per cent more places, 0..=100.
    pub priority_percent: u32,
    /// Emergency calls may use so many per cent more places, 0..=1000, where they are limited at all.
    pub emergency_percent: u32,
    /// And so many more places on top, 0..=40000.
    pub emergency_extra: u32,
    /// Whether emergency calls are limited, to the head room above; by default they always pass.
    pub emergency_limited: bool,
    /// Use in per cent of a limit from which on a warning stands; `None`: none does.
    pub warn_percent: Option<u32>,
    /// Use in per cent down to which the warning ends; below `warn_percent`.
    pub clear_percent: u32,
}

impl Limits {
    /// Nothing is limited.
    pub const NONE: Limits = Limits {
        calls: UNLIMITED,
        inbound: UNLIMITED,
        outbound: UNLIMITED,
        kbits: UNLIMITED,
        inbound_rate: None,
        outbound_rate: None,
        reserved_inbound: 0,
        reserved_outbound: 0,
        reserved_priority: 0,
        priority_percent: 10,
        emergency_percent: 10,
        emergency_extra: 0,
        emergency_limited: false,
        warn_percent: None,
        clear_percent: 0,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::NONE
    }
}

impl Limits {
    /// So many calls and nothing else said.
    pub fn of_calls(calls: u32) -> Limits {
        Limits { calls, ..Limits::default() }
    }

    /// What may be in use with a call of `class` among it; `None`: such a call always passes.
    ///
    /// Head room is for places, not for bandwidth: a call more on a full link harms those that are on it.
    pub fn ceiling(&self, class: Class) -> Option<Amounts> {
        let raised = |limit: u32, percent: u32, extra: u32| {
            let raised = u64::from(limit) + u64::from(limit) * u64::from(percent) / 100 + u64::from(extra);
            raised.min(u64::from(UNLIMITED)) as u32
        };
        let (percent, extra, kept) = match class {
            Class::Normal => (0, 0, 1),
            Class::Priority => (self.priority_percent, 0, 0),
            Class::Emergency if self.emergency_limited => (self.emergency_percent, self.emergency_extra, 0),
            Class::Emergency => return None,
        };
        let left = |limit: u32, reserved: u32| limit.min(self.calls.saturating_sub(reserved * kept));
        let places = |limit: u32| raised(limit, percent, extra);
        Some(
            Amounts::UNLIMITED
                .with(Amount::Calls, places(self.calls))
                .with(Amount::Inbound, places(left(self.inbound, self.reserved_outbound)))
                .with(Amount::Outbound, places(left(self.outbound, self.reserved_inbound)))
                .with(Amount::Normal, self.calls.saturating_sub(self.reserved_priority))
                .with(Amount::Kbits, self.kbits),
        )
    }

    /// What one of `nodes` may have, when each has an equal part.
    pub fn share(&self, nodes: u32) -> Amounts {
        let part = |limit: u32| if limit < UNLIMITED { limit / nodes.max(1) } else { UNLIMITED };
        self.each(part)
    }

    /// `amount` of every limit on what is in use, see [`Limits::bounds`].
    pub fn each(&self, amount: impl Fn(u32) -> u32) -> Amounts {
        self.bounds().zip(&Amounts::ZERO, |bound, _| amount(bound))
    }

    /// What is limited beside the calls of a scope, and how far: reservations for one direction are limits of the other. Head room is not
    /// in it: what is above these is for priority calls only.
    pub fn bounds(&self) -> Amounts {
        let is_limited = self.calls < UNLIMITED;
        let left = |kept: u32| self.calls.saturating_sub(kept);
        let reserved = |limit: u32, kept: u32| if is_limited && kept > 0 { limit.min(left(kept)) } else { limit };
        let normal = if is_limited { left(self.reserved_priority) } else { UNLIMITED };
        Amounts::UNLIMITED
            .with(Amount::Calls, self.calls)
            .with(Amount::Inbound, reserved(self.inbound, self.reserved_outbound))
            .with(Amount::Outbound, reserved(self.outbound, self.reserved_inbound))
            .with(Amount::Normal, normal)
            .with(Amount::Kbits, self.kbits)
    }

    /// How fast new calls in this direction may come.
    pub fn rate(&self, direction: Direction) -> Option<Rate> {
        match direction {
            Direction::Inbound => self.inbound_rate,
            Direction::Outbound => self.outbound_rate,
        }
    }

    /// Why there is no room for `change` beside `used` for a call of `class`; `None` when there is.
    pub fn refuses(&self, used: &Amounts, change: &Amounts, class: Class) -> Option<(Cause, u32, u32)> {
        let ceiling = self.ceiling(class)?;
        let after = used.plus(change);
        let amount = after.first_above(&ceiling, change)?;
        let cause = match amount {
            Amount::Calls => Cause::Calls,
            Amount::Inbound if ceiling.get(amount) >= self.inbound => Cause::Inbound,
            Amount::Outbound if ceiling.get(amount) >= self.outbound => Cause::Outbound,
            Amount::Inbound | Amount::Outbound | Amount::Normal | Amount::Priority => Cause::Reserved,
            Amount::Kbits => Cause::Bandwidth,
        };
        Some((cause, used.get(amount), ceiling.get(amount)))
    }
}

/// Why a call was refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// As many calls as there may be.
    Calls,
    /// As many calls from the trunk as there may be.
    Inbound,
    /// As many calls towards the trunk as there may be.
    Outbound,
    /// The places left are reserved for other calls.
    Reserved,
    /// Not so much bandwidth left.
    Bandwidth,
    /// Calls come faster than they may.
    Rate,
    /// The authority does not answer, and the rule for that case has no place left.
    Unreachable,
    /// A table of the authority is full.
    Full,
    /// Operators want no new calls on this node.
    Drained,
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 9] = [
        Cause::Calls,
        Cause::Inbound,
        Cause::Outbound,
        Cause::Reserved,
        Cause::Bandwidth,
        Cause::Rate,
        Cause::Unreachable,
        Cause::Full,
        Cause::Drained,
    ];

    /// In words, for operators and responses.
    pub const fn text(self) -> &'static str {
        match self {
            Cause::Calls => "call limit reached",
            Cause::Inbound => "limit of calls from the trunk reached",
            Cause::Outbound => "limit of calls to the trunk reached",
            Cause::Reserved => "places left are reserved",
            Cause::Bandwidth => "bandwidth limit reached",
            Cause::Rate => "calls come too fast",
            Cause::Unreachable => "admission authority does not answer",
            Cause::Full => "admission table is full",
            Cause::Drained => "node is drained",
        }
    }
}

/// Calls refused, by why and how much they mattered (R44).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Denied([[u64; Class::ALL.len()]; Cause::ALL.len()]);

impl Denied {
    /// One more.
    pub fn count(&mut self, cause: Cause, class: Class) {
        self.0[cause as usize][class as usize] += 1;
    }

    /// So many.
    pub fn of(&self, cause: Cause, class: Class) -> u64 {
        self.0[cause as usize][class as usize]
    }

    /// The sum.
    pub fn plus(mut self, other: &Denied) -> Denied {
        self.0.as_flattened_mut().iter_mut().zip(other.0.as_flattened()).for_each(|(mine, other)| *mine += other);
        self
    }
}

/// A refusal, as far as it explains itself (R46).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Denial {
    /// The scope without room.
    pub scope: ScopeId,
    /// Why.
    pub cause: Cause,
    /// What was in use of the amount that lacks.
    pub used: u32,
    /// What may be in use of it, for such a call.
    pub limit: u32,
}

/// Whether `charge` fits each of its scopes beside what is used, with new calls coming no faster than they may. `change` is what it
/// needs beyond what it has.
pub fn check(
    now: Time,
    charge: &Charge,
    change: impl Fn(ScopeId) -> Amounts,
    scope: impl Fn(ScopeId) -> Option<(Limits, Amounts, [Bucket; 2])>,
    is_new: bool,
) -> Result<(), Denial> {
    for id in charge.scopes() {
        let Some((limits, used, buckets)) = scope(id) else { continue };
        if let Some((cause, used, limit)) = limits.refuses(&used, &change(id), charge.class) {
            return Err(Denial { scope: id, cause, used, limit });
        }
        if is_new
            && charge.class != Class::Emergency
            && let Some(rate) = limits.rate(charge.direction)
            && !buckets[charge.direction as usize].allows(now, rate)
        {
            return Err(Denial { scope: id, cause: Cause::Rate, used: rate.burst, limit: rate.burst });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(n: u32) -> Amounts {
        Amounts::ZERO.with(Amount::Calls, n).with(Amount::Inbound, n).with(Amount::Normal, n)
    }

    /// R17: priority has its head room; emergency passes even at limit 0, unless it is limited.
    #[test]
    fn each_class_has_its_own_ceiling() {
        let limits = Limits { priority_percent: 20, emergency_percent: 50, emergency_extra: 3, ..Limits::of_calls(10) };
        let (full, one) = (calls(10), calls(1));
        assert_eq!(limits.refuses(&calls(9), &one, Class::Normal), None);
        assert_eq!(limits.refuses(&full, &one, Class::Normal), Some((Cause::Calls, 10, 10)));
        let priority = Amounts::ZERO.with(Amount::Calls, 1).with(Amount::Priority, 1);
        assert_eq!(limits.refuses(&calls(11), &priority, Class::Priority), None);
        assert_eq!(limits.refuses(&calls(12), &priority, Class::Priority), Some((Cause::Calls, 12, 12)));
        let emergency = Amounts::ZERO.with(Amount::Calls, 1);
        assert_eq!(Limits::of_calls(0).refuses(&calls(7), &emergency, Class::Emergency), None);
        let limited = Limits { emergency_limited: true, ..limits };
        assert_eq!(limited.refuses(&calls(17), &emergency, Class::Emergency), None);
        assert_eq!(limited.refuses(&calls(18), &emergency, Class::Emergency), Some((Cause::Calls, 18, 18)));
    }

    /// R19.
    #[test]
    fn what_is_reserved_is_left_for_those_it_is_reserved_for() {
        let limits = Limits { reserved_outbound: 3, reserved_priority: 2, ..Limits::of_calls(10) };
        let outbound = Amounts::ZERO.with(Amount::Calls, 1).with(Amount::Outbound, 1).with(Amount::Normal, 1);
        assert_eq!(limits.refuses(&calls(7), &calls(1), Class::Normal), Some((Cause::Reserved, 7, 7)));
        assert_eq!(limits.refuses(&calls(7), &outbound, Class::Normal), None);
        assert_eq!(limits.refuses(&calls(7).plus(&outbound), &outbound, Class::Normal), Some((Cause::Reserved, 8, 8)));
        let priority = Amounts::ZERO.with(Amount::Calls, 1).with(Amount::Inbound, 1).with(Amount::Priority, 1);
        assert_eq!(limits.refuses(&calls(7).plus(&outbound), &priority, Class::Priority), None);
    }

    /// R21: less is always allowed, whatever is in use.
    #[test]
    fn a_change_that_needs_no_more_passes_above_the_limit() {
        let limits = Limits { kbits: 100, ..Limits::of_calls(1) };
        let used = calls(5).with(Amount::Kbits, 400);
        assert_eq!(limits.refuses(&used, &Amounts::ZERO, Class::Normal), None);
        assert_eq!(limits.refuses(&used, &Amounts::ZERO.with(Amount::Kbits, 1), Class::Normal), Some((Cause::Bandwidth, 400, 100)));
    }

    /// R18: in any stretch of time no more than the burst and what the rate adds.
    #[test]
    fn a_bucket_gives_its_burst_at_once_and_its_rate_for_ever() {
        let rate = Rate { per_second: 10, burst: 5 };
        let mut bucket = Bucket::default();
        let mut taken = 0;
        for millis in 0..10_000 {
            let now = Time::from_millis(1_000 + millis);
            while bucket.allows(now, rate) {
                bucket.take(now, rate);
                taken += 1;
            }
            assert!(taken <= 5 + millis / 100, "{taken} after {millis} ms");
        }
        assert_eq!(taken, 5 + 99);
    }

    /// Much traffic is no limit: where none is set no call is refused for it.
    #[test]
    fn what_has_no_limit_refuses_nothing() {
        let used = Amounts::ZERO.with(Amount::Kbits, u32::MAX - 100);
        let change = Amounts::ZERO.with(Amount::Calls, 1).with(Amount::Kbits, 80);
        assert_eq!(Limits::of_calls(10).refuses(&used, &change, Class::Normal), None);
        let limited = Limits { kbits: 1_000, ..Limits::NONE };
        assert_eq!(limited.refuses(&used, &change, Class::Normal), Some((Cause::Bandwidth, u32::MAX - 100, 1_000)));
    }
}
