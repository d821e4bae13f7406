//! What a core has: quotas, and what is on them.

use super::super::charge::{Charge, Class};
use super::super::scope::ScopeId;
use crate::proto::base::Time;

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    quota: u32,
    live: u32,
}

/// The quotas of one core.
#[derive(Debug)]
pub struct Lessee {
    places: Vec<Place>,
    until: Time,
}

impl Lessee {
    /// A core that has none, of a tree of so many scopes.
    pub fn new(scopes: usize) -> Lessee {
        Lessee { places: vec![Place::default(); scopes], until: Time::ZERO }
    }

    /// Its quota, and the calls on it.
    pub fn place(&self, scope: ScopeId) -> (u32, u32) {
        self.places.get(usize::from(scope.0)).map_or((0, 0), |place| (place.quota, place.live))
    }

    /// Up to when the quotas hold.
    pub fn until(&self) -> Time {
        self.until
    }

    /// It has this quota from now on; calls on more than that stay.
    pub fn set_quota(&mut self, scope: ScopeId, quota: u32) {
        if let Some(place) = self.places.get_mut(usize::from(scope.0)) {
            place.quota = quota;
        }
    }

    /// A place more wherever `charge` has one and `has` has not, taken by this call: it was asked for.
    pub fn lend(&mut self, charge: &Charge, has: &Charge) {
        for scope in charge.leases().filter(|&scope| !has.is_leased(scope)) {
            if let Some(place) = self.places.get_mut(usize::from(scope.0)) {
                (place.quota, place.live) = (place.quota.saturating_add(1), place.live + 1);
            }
        }
    }

    /// The quotas hold up to then.
    pub fn set_until(&mut self, until: Time) {
        self.until = until;
    }

    /// `charge` with a place of the quotas wherever there is one, which is taken: where `has`, what the call has already, has one, that
    /// one. In other scopes, and for emergency calls, it is for others to decide.
    #[inline]
    pub fn lease(&mut self, now: Time, charge: &Charge, has: &Charge) -> Charge {
        let mut leased = charge.unleased();
        // Looked at for every call: whoever stood still for longer than the lease admits nothing on it (race 18, I15).
        let may_take = now < self.until && charge.class != Class::Emergency;
        for scope in charge.scopes() {
            if has.is_leased(scope) || may_take && !has.contains(scope) && self.take(scope) {
                leased = leased.lease(scope);
            }
        }
        leased
    }

    #[inline]
    fn take(&mut self, scope: ScopeId) -> bool {
        let Some(place) = self.places.get_mut(usize::from(scope.0)) else { return false };
        let is_free = place.live < place.quota;
        place.live += u32::from(is_free);
        is_free
    }

    /// The places that `charge` has and `keeps` has not are free.
    #[inline]
    pub fn give_back(&mut self, charge: &Charge, keeps: &Charge) {
        for scope in charge.leases().filter(|&scope| !keeps.is_leased(scope)) {
            if let Some(place) = self.places.get_mut(usize::from(scope.0)) {
                place.live = place.live.saturating_sub(1);
            }
        }
    }
}
