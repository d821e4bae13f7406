//! Warnings that stand while much of a limit is in use, with a gap between rise and end so that they do not flap (R16, R45).

use super::limits::{Amount, Amounts, Limits, UNLIMITED};

/// What a scope came to, or left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crossing {
    /// The warning rises: so much is in use of so much.
    Raised(Amount, u32, u32),
    /// It ends.
    Cleared(Amount, u32, u32),
}

/// For operators.
impl std::fmt::Display for Crossing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Crossing::Raised(amount, used, limit) => write!(f, "much is in use: {used} of {limit} {}", amount.text()),
            Crossing::Cleared(amount, used, limit) => write!(f, "little is in use again: {used} of {limit} {}", amount.text()),
        }
    }
}

/// Which warnings stand in one scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Threshold {
    raised: u8,
}

impl Threshold {
    /// The amounts a warning stands for.
    pub fn raised(&self) -> impl Iterator<Item = Amount> + use<> {
        let raised = self.raised;
        Amount::ALL.into_iter().filter(move |&amount| raised & 1 << amount as u8 != 0)
    }

    /// Whether any warning stands.
    pub fn is_raised(&self) -> bool {
        self.raised != 0
    }

    /// `used` is in use now: the first change there is, if there is one; ask again until there is none.
    pub fn next(&mut self, limits: &Limits, used: &Amounts) -> Option<Crossing> {
        let watched = [
            (Amount::Calls, limits.calls),
            (Amount::Inbound, limits.inbound),
            (Amount::Outbound, limits.outbound),
            (Amount::Kbits, limits.kbits),
        ];
        for (amount, limit) in watched {
            let bit = 1 << amount as u8;
            let used = used.get(amount);
            let share = |percent: u32| u64::from(limit) * u64::from(percent);
            let now = u64::from(used) * 100;
            let watches = limits.warn_percent.filter(|_| limit < UNLIMITED);
            let over = watches.is_some_and(|percent| used > 0 && now >= share(percent));
            let under = watches.is_none() || now <= share(limits.clear_percent) || used == 0;
            if self.raised & bit == 0 && over {
                self.raised |= bit;
                return Some(Crossing::Raised(amount, used, limit));
            }
            if self.raised & bit != 0 && under {
                self.raised &= !bit;
                return Some(Crossing::Cleared(amount, used, limit));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_rises_once_and_ends_well_below() {
        let limits = Limits { warn_percent: Some(80), clear_percent: 60, ..Limits::of_calls(10) };
        let mut threshold = Threshold::default();
        let mut at = |calls: u32| threshold.next(&limits, &Amounts::ZERO.with(Amount::Calls, calls));
        assert_eq!(at(7), None);
        assert_eq!(at(8), Some(Crossing::Raised(Amount::Calls, 8, 10)));
        assert_eq!(at(9), None);
        assert_eq!(at(7), None);
        assert_eq!(at(8), None);
        assert_eq!(at(6), Some(Crossing::Cleared(Amount::Calls, 6, 10)));
        assert_eq!(at(7), None);
    }

    #[test]
    fn a_warning_ends_when_its_limit_goes() {
        let limits = Limits { warn_percent: Some(50), ..Limits::of_calls(2) };
        let mut threshold = Threshold::default();
        let used = Amounts::ZERO.with(Amount::Calls, 2);
        assert!(matches!(threshold.next(&limits, &used), Some(Crossing::Raised(..))) && threshold.is_raised());
        assert!(matches!(threshold.next(&Limits::default(), &used), Some(Crossing::Cleared(..))) && !threshold.is_raised());
    }
}
