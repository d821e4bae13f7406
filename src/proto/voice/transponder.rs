//! A transponder of continuity tests: hears one tone, answers with the other as long as it lasts (RFC 3660 2.3; COT-05, COT-06).

use super::detect::{SingleTone, SingleTones, Singles};
use super::g711::Law;
use super::tone::{Player, Score};
use crate::proto::trunk::CheckTone;

/// A transponder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transponder {
    hears: CheckTone,
    ears: Singles,
    answer: Option<Player>,
}

impl Transponder {
    pub fn new(law: Law, hears: CheckTone) -> Transponder {
        let mut ears = Singles::new(law);
        ears.listen(SingleTones::NONE.with(single(hears)));
        Transponder { hears, ears, answer: None }
    }

    /// What it waits for.
    pub fn hears(&self) -> CheckTone {
        self.hears
    }

    /// Hears octets, and says what is to be returned.
    pub fn turn(&mut self, law: Law, heard: &[u8], out: &mut [u8]) {
        let (answer, hears) = (&mut self.answer, self.hears);
        self.ears.push(heard, &mut |_, on| *answer = on.then(|| Player::new(Score::check(other(hears)))));
        match &mut self.answer {
            Some(player) => player.play(law, out),
            None => out.fill(law.idle()),
        }
    }
}

fn single(tone: CheckTone) -> SingleTone {
    match tone {
        CheckTone::Co1 => SingleTone::Co1,
        CheckTone::Co2 => SingleTone::Co2,
    }
}

fn other(tone: CheckTone) -> CheckTone {
    match tone {
        CheckTone::Co1 => CheckTone::Co2,
        CheckTone::Co2 => CheckTone::Co1,
    }
}
