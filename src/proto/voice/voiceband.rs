//! Modems and faxes on a DS0 with one connection (RFC 3435 2.3.5, voiceband data): known by the 2100 Hz with which they answer (V.25, V.8, T.30),
//! at either end, until both ends have been silent for longer than they ever are in between.
//!
//! While there is one the buffer of the connection does not become shallower. To a voice a slip is nothing; a modem trains anew, a fax loses lines.
//! A buffer that is too shallow becomes deeper at once, best before the answer has ended.
//! It is heard for a part of the time only: the answer lasts 2.6 s at least, and its phase may turn every 450 ms.

use super::detect::{SingleTone, SingleTones, Singles};
use super::g711::Law;

/// Octets in which it is listened for the answer, of so many: 80 of 320 ms.
const LISTENS: u32 = 640;
const EVERY: u32 = 2_560;
/// Both ends silent for so long, in octets: 5 s. A fax waits 3 s for the other one (T.30, timer T4).
const SILENCE: u32 = 40_000;

/// Listens for modems and faxes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Voiceband {
    law: Law,
    circuit: Singles,
    far: Singles,
    /// Octets since it began to listen the last time.
    clock: u32,
    /// For how long both ends have been silent; `None`: there is no modem.
    silent: Option<u32>,
}

impl Voiceband {
    pub fn new(law: Law) -> Voiceband {
        let mut ears = Singles::new(law);
        ears.listen(SingleTones::NONE.with(SingleTone::Answer));
        Voiceband { law, circuit: ears, far: ears, clock: 0, silent: None }
    }

    /// Whether there is a modem or fax.
    pub fn is_on(&self) -> bool {
        self.silent.is_some()
    }

    /// Hears what came from the circuit and from the far end; whether something changed.
    pub fn hear(&mut self, circuit: &[u8], far: &[u8]) -> bool {
        let length = circuit.len() as u32;
        if let Some(silent) = &mut self.silent {
            *silent = if self.law.is_silence(circuit) && self.law.is_silence(far) { *silent + length } else { 0 };
            let ends = *silent >= SILENCE;
            if ends {
                *self = Voiceband::new(self.law);
            }
            return ends;
        }
        if self.clock >= EVERY {
            *self = Voiceband::new(self.law);
        }
        self.clock += length;
        if self.clock > LISTENS {
            return false;
        }
        let mut heard = false;
        self.circuit.push(circuit, &mut |_, on| heard |= on);
        self.far.push(far, &mut |_, on| heard |= on);
        if heard {
            self.silent = Some(0);
        }
        heard
    }
}
