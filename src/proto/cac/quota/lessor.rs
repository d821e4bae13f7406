//! Who gives quotas out.

use super::super::limits::UNLIMITED;
use super::super::message::QuotaUse;
use super::super::scope::ScopeId;
use std::collections::BTreeMap;

/// What one holder has of one scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Part {
    /// It may have so many calls.
    pub quota: u32,
    /// What counts for it: its quota, or more until it has said that it keeps to less.
    pub bound: u32,
    /// Calls on it, as far as it has told.
    pub live: u32,
    /// Calls that found no place.
    pub want: u32,
    /// Counts the changes of its quota.
    pub number: u32,
    /// It has seen the latest one.
    seen: bool,
}

impl Part {
    fn unused(&self) -> u32 {
        self.quota.saturating_sub(self.live)
    }

    /// Whether the next calls will find no place: an eighth is left.
    pub fn is_low(&self) -> bool {
        self.unused() < (self.quota / 8).max(1)
    }

    /// What it will no longer count for when it has got used to less.
    fn coming_back(&self) -> u32 {
        self.bound.saturating_sub(self.quota.max(self.live))
    }
}

#[derive(Debug)]
struct Holder {
    parts: Vec<Part>,
    /// It can be told, and says what it has.
    present: bool,
    /// Its quotas have changed since they were taken away to be told.
    changed: bool,
}

/// Gives places out, to holders that are known as `H`.
#[derive(Debug)]
pub struct Lessor<H> {
    holders: BTreeMap<H, Holder>,
    /// By scope, what counts for all holders.
    promised: Vec<u64>,
}

impl<H: Ord + Copy> Lessor<H> {
    /// Without holders, for so many scopes.
    pub fn new(scopes: usize) -> Lessor<H> {
        Lessor { holders: BTreeMap::new(), promised: vec![0; scopes] }
    }

    /// What counts for all holders.
    pub fn promised(&self, scope: ScopeId) -> u32 {
        self.promised.get(usize::from(scope.0)).map_or(0, |&promised| promised.min(UNLIMITED.into()) as u32)
    }

    /// What this holder has.
    pub fn part(&self, holder: H, scope: ScopeId) -> Part {
        self.holders.get(&holder).and_then(|holder| holder.parts.get(usize::from(scope.0))).copied().unwrap_or_default()
    }

    /// What each holder has of `scope`.
    pub fn parts(&self, scope: ScopeId) -> impl Iterator<Item = (H, Part)> {
        let place = usize::from(scope.0);
        self.holders.iter().filter_map(move |(&holder, has)| Some((holder, *has.parts.get(place)?)))
    }

    /// A holder is here. What counted for it goes on counting; `false` until it has said what it has.
    pub fn join(&mut self, holder: H, present: bool) {
        let scopes = self.promised.len();
        let new = || Holder { parts: vec![Part::default(); scopes], present, changed: false };
        self.holders.entry(holder).or_insert_with(new).present = present;
    }

    /// A holder cannot be told any more; what counts for it goes on counting.
    pub fn lose(&mut self, holder: H) {
        if let Some(holder) = self.holders.get_mut(&holder) {
            (holder.present, holder.changed) = (false, false);
        }
    }

    /// A holder may have nothing any more, and gets nothing until it joins again.
    pub fn empty(&mut self, holder: H) {
        self.lose(holder);
        (0..self.promised.len()).for_each(|place| self.set_quota(holder, ScopeId(place as u16), 0));
    }

    /// Nothing counts for a holder in these scopes any more: what did.
    pub fn forget(&mut self, holder: H, which: impl Fn(ScopeId) -> bool) -> Vec<(ScopeId, u32)> {
        let scopes = (0..self.promised.len()).map(|place| ScopeId(place as u16));
        let counted: Vec<(ScopeId, u32)> =
            scopes.filter(|&scope| which(scope)).map(|scope| (scope, self.part(holder, scope).bound)).collect();
        for &(scope, _) in &counted {
            self.change(holder, scope, |part| *part = Part::default());
        }
        if self.parts_of(holder).all(|part| part.bound == 0) {
            self.holders.remove(&holder);
        }
        counted.into_iter().filter(|&(_, bound)| bound > 0).collect()
    }

    /// Whether something counts for this holder.
    pub fn counts(&self, holder: H) -> bool {
        self.parts_of(holder).any(|part| part.bound > 0)
    }

    fn parts_of(&self, holder: H) -> impl Iterator<Item = &Part> {
        self.holders.get(&holder).into_iter().flat_map(|holder| &holder.parts)
    }

    /// The only way that what counts changes (R24).
    fn change<T>(&mut self, holder: H, scope: ScopeId, change: impl FnOnce(&mut Part) -> T) -> Option<T> {
        let place = usize::from(scope.0);
        let part = self.holders.get_mut(&holder)?.parts.get_mut(place)?;
        let before = u64::from(part.bound);
        let result = change(part);
        let promised = self.promised.get_mut(place)?;
        *promised = *promised - before + u64::from(part.bound);
        Some(result)
    }

    /// What a holder tells of itself: `seen`, whether it goes by the latest quotas. Whether anything is new.
    pub fn heard(&mut self, holder: H, told: &QuotaUse, seen: bool) -> bool {
        let heard = self.change(holder, told.scope, |part| {
            let before = *part;
            (part.live, part.want, part.seen) = (told.live, told.want, seen);
            part.bound = told.bound.max(if seen { part.quota } else { part.bound });
            before != *part || part.want > 0 || part.is_low()
        });
        heard.unwrap_or(false)
    }

    /// A holder that comes with quotas keeps them for now; what counted for it counts on.
    pub fn adopt(&mut self, holder: H, told: &QuotaUse) {
        let &QuotaUse { scope, live, bound, want } = told;
        self.change(holder, scope, |part| {
            *part = Part { quota: bound, bound: bound.max(part.bound), live, want, number: part.number, seen: false };
        });
    }

    /// A holder that tells nothing of itself but what begins and ends, in order, found no place.
    pub fn wants(&mut self, holder: H, scope: ScopeId) {
        self.change(holder, scope, |part| part.want = 1);
    }

    /// Such a holder goes by the change of this number.
    pub fn keeps(&mut self, holder: H, scope: ScopeId, number: u32) {
        self.change(holder, scope, |part| {
            if part.number == number {
                (part.seen, part.bound) = (true, part.quota.max(part.live));
            }
        });
    }

    /// Such a holder gets a place more, with a call on it.
    pub fn lend(&mut self, holder: H, scope: ScopeId) {
        self.change(holder, scope, |part| {
            (part.quota, part.live, part.bound) = (part.quota.saturating_add(1), part.live + 1, part.bound.saturating_add(1));
        });
    }

    /// A call of such a holder began on its quota, or ended.
    pub fn moved(&mut self, holder: H, scope: ScopeId, began: bool) {
        self.change(holder, scope, |part| {
            part.live = if began { part.live + 1 } else { part.live.saturating_sub(1) };
            // It has a place now, and says so when it lacks one again.
            part.want = if began { part.want } else { 0 };
            if part.seen {
                part.bound = part.quota.max(part.live);
            }
        });
    }

    fn set_quota(&mut self, holder: H, scope: ScopeId, quota: u32) {
        let changed = self.change(holder, scope, |part| {
            let changed = part.quota != quota;
            if changed {
                (part.quota, part.bound) = (quota, part.bound.max(quota));
                (part.number, part.seen) = (part.number.wrapping_add(1), false);
            }
            changed
        });
        if let (Some(true), Some(holder)) = (changed, self.holders.get_mut(&holder)) {
            holder.changed = true;
        }
    }

    /// The next holder whose quotas have changed.
    pub fn next_changed(&mut self) -> Option<H> {
        let (&name, holder) = self.holders.iter_mut().find(|(_, holder)| holder.changed)?;
        holder.changed = false;
        Some(name)
    }

    /// Gives out what there is of `scope`, `capacity` in all, among so many holders at the most: to those that want places, and those that
    /// soon will; or takes back what is too much, or lies idle while others want it.
    pub fn balance(&mut self, scope: ScopeId, capacity: u32, among: u32) {
        let present = |holder: &&H| self.holders.get(holder).is_some_and(|holder| holder.present);
        let present: Vec<H> = self.holders.keys().filter(present).copied().collect();
        let promised = self.promised(scope);
        if capacity >= UNLIMITED {
            return present.into_iter().for_each(|holder| self.set_quota(holder, scope, UNLIMITED));
        }
        if promised > capacity {
            return self.take_back(scope, capacity, &present);
        }
        self.give(scope, capacity - promised, among.max(present.len() as u32), &present);
        self.recall(scope, &present);
    }

    /// Too much is given out: what is unused goes first, then all are left an equal part of what they have.
    fn take_back(&mut self, scope: ScopeId, capacity: u32, present: &[H]) {
        let part = |lessor: &Self, holder: H| lessor.part(holder, scope);
        let absent: u64 = self.parts(scope).filter(|(holder, _)| !present.contains(holder)).map(|(_, part)| u64::from(part.bound)).sum();
        let room = u64::from(capacity).saturating_sub(absent);
        let given: u64 = present.iter().map(|&holder| u64::from(part(self, holder).quota)).sum();
        let unused: u64 = present.iter().map(|&holder| u64::from(part(self, holder).unused())).sum();
        let (over, used) = (given.saturating_sub(room), given - unused);
        for &holder in present {
            let part = part(self, holder);
            let (quota, idle) = (u64::from(part.quota), u64::from(part.unused()));
            let left = if over <= unused { quota - proportion(idle, over, unused) } else { (quota - idle) * room / used.max(1) };
            self.set_quota(holder, scope, left.min(quota) as u32);
        }
    }

    /// To those that want places, then to those that soon will: each what it wants, and a part of what is left.
    fn give(&mut self, scope: ScopeId, free: u32, among: u32, present: &[H]) {
        let mut free = free;
        for wanting in [true, false] {
            for &holder in present {
                let part = self.part(holder, scope);
                if if wanting { part.want == 0 } else { part.want > 0 || !part.is_low() } {
                    continue;
                }
                let wish = part.want.saturating_add((free / (2 * among.max(1))).max(1));
                // What counts for it until it has got used to less is its own again for nothing.
                let quota = part.quota.saturating_add(wish).min(part.bound.saturating_add(free));
                if quota > part.quota {
                    free -= quota.saturating_sub(part.bound);
                    self.set_quota(holder, scope, quota);
                    self.change(holder, scope, |part| part.want = 0);
                }
            }
        }
    }

    /// For those that want places still, others are left with half of what they do not use, the idlest first.
    fn recall(&mut self, scope: ScopeId, present: &[H]) {
        let parts = || present.iter().map(|&holder| (holder, self.part(holder, scope)));
        let coming: u32 = parts().map(|(_, part)| part.coming_back()).fold(0, u32::saturating_add);
        let wanted: u32 = parts().map(|(_, part)| part.want).fold(0, u32::saturating_add);
        let mut needed = wanted.saturating_sub(coming);
        let mut idle: Vec<(u32, H)> = parts().filter(|(_, part)| part.want == 0).map(|(holder, part)| (part.unused(), holder)).collect();
        idle.sort_unstable_by(|a, b| b.cmp(a));
        for (unused, holder) in idle {
            let cut = unused.div_ceil(2).min(needed);
            if cut == 0 {
                return;
            }
            needed -= cut;
            let quota = self.part(holder, scope).quota - cut;
            self.set_quota(holder, scope, quota);
        }
    }
}

/// `amount` of `part` in `whole`, rounded up; at most `amount`'s share when `part` is at most `whole`.
fn proportion(amount: u64, part: u64, whole: u64) -> u64 {
    (u128::from(amount) * u128::from(part)).div_ceil(u128::from(whole.max(1))) as u64
}
