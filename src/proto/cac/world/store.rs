//! The store that gives the lease, as a central node sees it: it answers, late or never, and forgets a lease that is not renewed.

use super::*;

/// Of a lease.
pub(super) const LENGTH: Duration = Duration::from_secs(3);

/// Whom it gives the lease to.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) enum Gives {
    /// One at a time.
    #[default]
    One,
    /// Each: they ask under different names.
    Each,
    /// Each, in the same revision: it is broken.
    Same,
}

/// The store.
#[derive(Default)]
pub(super) struct Store {
    revision: u64,
    /// Which life of which central node holds the lease, and up to when.
    holder: Option<(usize, u64, Time)>,
    /// Nothing comes to it, or from it.
    pub away: bool,
    pub gives: Gives,
}

impl Office {
    pub fn deadline(&self) -> Time {
        let lease = self.lease.as_ref().map_or(Time::NEVER, lease::Lease::deadline);
        self.machine.as_ref().map_or(Time::NEVER, Central::deadline).min(lease)
    }
}

impl World {
    /// An event for the part of a central node in who leads, and all that comes of it.
    pub(super) fn step_lease(&mut self, side: usize, event: lease::Event) {
        let (now, life) = (self.now, self.offices[side].life);
        let Some(lease) = self.offices[side].lease.as_mut() else { return };
        lease.step(now, event);
        while let Some(action) = self.offices[side].lease.as_mut().and_then(lease::Lease::poll) {
            match action {
                lease::Action::Lead { epoch, until } => self.step_machine(side, central::Event::Lead(epoch, until)),
                lease::Action::Extend { until } => self.step_machine(side, central::Event::Extend(until)),
                lease::Action::StepDown => self.step_machine(side, central::Event::StepDown),
                lease::Action::Store { .. } => {}
                action => {
                    if !self.offices[side].apart && !self.store.away {
                        self.push(DELAY, Packet::ToStore(side, life, action));
                    }
                }
            }
        }
    }

    pub(super) fn noted(&mut self, side: usize, note: central::Note) {
        self.notes.push(note);
        if let central::Note::HigherEpoch(_) = note
            && self.offices[side].lease.is_some()
        {
            self.step_lease(side, lease::Event::Deposed);
        }
    }

    pub(super) fn at_store(&mut self, side: usize, life: u64, action: lease::Action) {
        if self.store.away {
            return;
        }
        let now = self.now;
        let store = &mut self.store;
        let holder = store.holder.take_if(|(_, _, until)| *until > now);
        let is_holder = holder.is_some_and(|(holder, its, _)| (holder, its) == (side, life));
        store.holder = holder;
        let answer = match action {
            // One whose own attempt was answered too late gives that lease back first.
            lease::Action::Acquire { attempt } if holder.is_some() && !is_holder && store.gives == Gives::One => {
                lease::Event::Held { attempt }
            }
            lease::Action::Acquire { attempt } => {
                store.revision += u64::from(store.gives != Gives::Same);
                store.holder = Some((side, life, now + LENGTH));
                lease::Event::Acquired { attempt, epoch: store.revision }
            }
            lease::Action::Renew { attempt } if is_holder || store.gives != Gives::One => {
                store.holder = Some((side, life, now + LENGTH));
                lease::Event::Renewed { attempt }
            }
            lease::Action::Renew { attempt } => lease::Event::Gone { attempt },
            _ => {
                if is_holder {
                    store.holder = None;
                }
                return;
            }
        };
        if !self.offices[side].apart {
            self.push(DELAY, Packet::FromStore(side, life, answer));
        }
    }

    pub(super) fn store_answers(&mut self, side: usize, life: u64, event: lease::Event) {
        if self.offices[side].paused {
            return self.push(Duration::from_millis(50), Packet::FromStore(side, life, event));
        }
        if self.offices[side].life == life && self.offices[side].machine.is_some() {
            self.step_lease(side, event);
        }
    }
}
