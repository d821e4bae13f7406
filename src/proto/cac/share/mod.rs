//! One limit for several cores: each core holds places it may use without asking (`Holder`), and one of them, the lead core, gives
//! them out (`Bank`), so that a call costs a core no question, no lock and no shared counter, and there are never more than the limit.
//!
//! A place is a count of an [`Amount`] in a scope. At the start half of all places are spread evenly. A core
//! that has none left claims what its call needs, and gets more than that while there is plenty. When the bank has none, it recalls
//! what cores hold unused, and refuses only when all have answered and there is still none: no call is refused while another core has
//! room. A scope that was recalled is scarce: its places go back to the bank as calls end, and each call claims, until there is plenty
//! again. Rates are kept at the bank alone: in a scope with one, every new call claims.
//!
//! Both are pure; what they say to each other ([`ToBank`], [`ToHolder`]) must arrive, in its order for each pair. Invariants: the
//! places held and on their way are the places given out; a holder uses no more than it holds; given out is at most what the limits
//! allow, but for emergency calls and calls that were up when a limit was lowered.

mod bank;
mod holder;
#[cfg(test)]
mod tests;

pub use bank::Bank;
pub use holder::{Holder, Taken};

use super::charge::{Charge, Class, SCOPES_PER_CHARGE};
use super::limits::{Amount, Amounts, Denial, Limits};
use super::scope::ScopeId;

/// Whose claim it is: the holder knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ticket(pub u64);

/// From a holder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToBank {
    /// A call needs `charge`, and has `has` already; the holder lacks these places, and keeps its own for the rest.
    Claim(Ticket, Charge, Charge, Lacking),
    /// These places are not needed.
    Return(ScopeId, Amounts),
    /// The answer to a recall: these places are not needed, and no more are unused.
    Recalled(ScopeId, Amounts),
    /// These places were taken without asking, for an emergency call.
    Overdrawn(ScopeId, Amounts),
    /// So much is in use here.
    Used(ScopeId, Amounts),
}

/// To a holder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToHolder {
    /// What was claimed is the holder's.
    Granted(Ticket),
    /// It is not.
    Denied(Ticket, Denial),
    /// More places, from plenty: the scope is not scarce.
    Share(ScopeId, Amounts),
    /// The scope is scarce: return what is unused, now and as calls end.
    Recall(ScopeId),
}

/// Which amounts a holder lacks places of, in which scopes of a charge: a bit for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lacking(u32);

impl Lacking {
    fn bit(place: usize, amount: Amount) -> u32 {
        1 << (place * Amount::COUNT + amount as usize)
    }

    /// What of `need` in the scope at this place of a charge is lacking, or is not.
    fn part(self, place: usize, need: &Amounts, lacking: bool) -> Amounts {
        let wanted = |amount: &Amount| (self.0 & Lacking::bit(place, *amount) != 0) == lacking;
        Amount::ALL.into_iter().filter(wanted).fold(Amounts::ZERO, |part, amount| part.with(amount, need.get(amount)))
    }
}

// A bit for each amount in each scope a call can count in.
const _: () = assert!(SCOPES_PER_CHARGE * Amount::COUNT <= 32);

/// What `charge` needs in `scope` beyond `has`.
fn need(scope: ScopeId, charge: &Charge, has: &Charge) -> Amounts {
    charge.need_in(scope).minus(&has.need_in(scope))
}

/// What each of so many holders has at the start, under these limits.
fn initial(limits: &Limits, holders: usize) -> Amounts {
    let ceiling = ordinary(limits);
    let part = if holders <= 1 { 1 } else { 2 * holders as u32 };
    ceiling.zip(&Amounts::ZERO, |ceiling, _| ceiling / part)
}

/// What all may use with normal calls only.
fn ordinary(limits: &Limits) -> Amounts {
    limits.ceiling(Class::Normal).unwrap_or(Amounts::UNLIMITED)
}
