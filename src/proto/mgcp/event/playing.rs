//! The signals of an endpoint that are on, or wait: what is kept of each, and their places (RFC 3435 2.1.7).

use super::watch::Place;
use crate::proto::base::Time;
use crate::proto::endpoint::Blob;
use crate::proto::package::EventId;

/// Signals an endpoint can have on or waiting at a time.
pub const SIGNALS_MAX: usize = 8;

/// A signal that is on, or a brief one that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signal {
    /// What.
    pub signal: EventId,
    /// Where.
    pub place: Place,
    /// How it ends.
    pub ending: Ending,
    /// Its parameters as they were given.
    pub parameters: Blob,
}

/// How a signal ends (RFC 3435 2.1.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// On/off: by order.
    Order,
    /// Time-out: by a new list, by a requested event, when the card says so, or then. Of a signal list: when its member ends.
    TimeOut(Time),
    /// Brief and being played: then.
    Brief(Time),
    /// Brief and waiting for another one to end.
    Pending,
    /// The card could not begin it: at once, with `of`.
    Failed,
}

/// A member of a signal list (SL/s).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// Which, from 0.
    pub number: usize,
    /// What.
    pub signal: EventId,
    /// A brief one is played to its end whatever happens.
    pub brief: bool,
}

/// The signals of an endpoint, each in a numbered place that it keeps. An endpoint nearly always has none, so looking through them costs
/// nothing for places that are free.
#[derive(Clone, Copy, Debug)]
pub struct Signals {
    places: [Option<Signal>; SIGNALS_MAX],
    /// One bit for each place that is taken.
    taken: u8,
}

const _: () = assert!(SIGNALS_MAX <= u8::BITS as usize);

impl Signals {
    /// No signal.
    pub const NONE: Signals = Signals { places: [None; SIGNALS_MAX], taken: 0 };

    /// The places that are taken now, ascending.
    #[inline]
    pub fn places(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.taken;
        std::iter::from_fn(move || {
            let n = left.trailing_zeros() as usize;
            left &= left.checked_sub(1)?;
            Some(n)
        })
    }

    /// All of them, in the order of their places.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Signal> + use<'_> {
        self.places().filter_map(|n| self.get(n))
    }

    /// The place of the first that is `wanted`.
    pub fn position(&self, wanted: impl Fn(&Signal) -> bool) -> Option<usize> {
        self.places().find(|&n| self.get(n).is_some_and(|signal| wanted(&signal)))
    }

    /// The one in place `n`.
    pub fn get(&self, n: usize) -> Option<Signal> {
        *self.places.get(n)?
    }

    /// The one in place `n`, to change.
    pub fn get_mut(&mut self, n: usize) -> Option<&mut Signal> {
        self.places.get_mut(n)?.as_mut()
    }

    /// Puts a signal into the first free place; `None` when all are taken.
    pub fn add(&mut self, signal: Signal) -> Option<usize> {
        let n = self.taken.trailing_ones() as usize;
        *self.places.get_mut(n)? = Some(signal);
        self.taken |= 1 << n;
        Some(n)
    }

    /// Takes the signal out of place `n`.
    pub fn remove(&mut self, n: usize) -> Option<Signal> {
        let signal = self.places.get_mut(n)?.take()?;
        self.taken &= !(1 << n);
        Some(signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Rng;
    use crate::proto::package::{PackageId, find_item};

    /// Signals keep their places whatever comes and goes beside them.
    #[test]
    fn a_signal_keeps_its_place_and_there_are_no_more_than_the_limit() {
        let ring = find_item(PackageId::G, b"rt").unwrap();
        let signal = |at| Signal { signal: ring, place: Place::Endpoint, ending: Ending::TimeOut(Time(at)), parameters: Blob::NONE };
        let (mut signals, mut model) = (Signals::NONE, [None; SIGNALS_MAX]);
        let mut rng = Rng::new(5);
        for step in 0..2000 {
            if rng.chance(500_000) {
                let free = model.iter().position(Option::is_none);
                assert_eq!(signals.add(signal(step)), free);
                free.into_iter().for_each(|n| model[n] = Some(signal(step)));
            } else {
                let n = rng.below(SIGNALS_MAX as u64 + 1) as usize;
                assert_eq!(signals.remove(n), model.get_mut(n).and_then(Option::take));
            }
            assert!(signals.iter().eq(model.into_iter().flatten()));
            assert!((0..=SIGNALS_MAX).all(|n| signals.get(n) == model.get(n).copied().flatten()));
            let last = model.iter().rposition(Option::is_some);
            let ending = last.and_then(|n| model[n]).map(|signal| signal.ending);
            assert_eq!(signals.position(|one| Some(one.ending) == ending), last);
        }
    }
}
