//! What is listened for on the circuit. A detector exists as long as somebody waits for what it hears.

use super::detect::{Awaited, Change, Digits, Progress, Progresses, SingleTone, SingleTones, Singles};
use super::g711::Law;
use crate::proto::trunk::DigitKind;

/// The detectors of a circuit.
#[derive(Debug)]
pub(super) struct Ears {
    law: Law,
    keys: Option<Digits>,
    mf: Option<Digits>,
    progress: Option<Progresses>,
    singles: Singles,
}

impl Ears {
    pub fn new(law: Law) -> Ears {
        Ears { law, keys: None, mf: None, progress: None, singles: Singles::new(law) }
    }

    /// Listens for these from now on.
    pub fn listen(&mut self, keys: bool, mf: bool, tones: SingleTones, awaited: Awaited) {
        let detector = |now: Option<Digits>, wanted: bool, kind| match now {
            Some(now) if wanted => Some(now),
            _ if wanted => Digits::new(kind, self.law),
            _ => None,
        };
        self.keys = detector(self.keys, keys, DigitKind::Dtmf);
        self.mf = detector(self.mf, mf, DigitKind::Mf);
        self.singles.listen(tones);
        if self.progress.map_or(Awaited::default(), |progress| progress.awaited()) != awaited {
            self.progress = (awaited != Awaited::default()).then(|| Progresses::new(self.law, awaited));
        }
    }

    /// Whether nobody listens.
    pub fn is_empty(&self) -> bool {
        self.keys.is_none() && self.mf.is_none() && self.progress.is_none() && self.singles.wanted().is_empty()
    }

    /// Hears octets of the circuit.
    pub fn push(&mut self, octets: &[u8], tell: &mut impl FnMut(Heard)) {
        for (detector, kind) in [(&mut self.keys, DigitKind::Dtmf), (&mut self.mf, DigitKind::Mf)] {
            if let Some(detector) = detector {
                detector.push(octets, &mut |change| match change {
                    Change::Began(digit) => tell(Heard::Began(kind, digit)),
                    Change::Ended(digit) => tell(Heard::Ended(kind, digit)),
                });
            }
        }
        self.singles.push(octets, &mut |tone, on| tell(Heard::Tone(tone, on)));
        if let Some(progress) = &mut self.progress {
            progress.push(octets, &mut |progress| tell(Heard::Progress(progress)));
        }
    }
}

/// What is heard on a circuit.
pub(super) enum Heard {
    /// A digit began.
    Began(DigitKind, u8),
    /// It is over.
    Ended(DigitKind, u8),
    /// A single tone began or is over.
    Tone(SingleTone, bool),
    /// What is known by how it goes on.
    Progress(Progress),
}
