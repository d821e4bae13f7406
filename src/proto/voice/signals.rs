//! Signals and digits that are played towards the trunk (RFC 3435 2.3.3; SIG-12): they take the place of what the connections say, and never
//! reach a connection.

use super::g711::Law;
use super::tone::{Player, Score};
use crate::proto::package::parameters::Digits;
use crate::proto::package::{EventId, PackageId};
use crate::proto::trunk::DigitKind;

/// The most signals on at once; one more takes the place of the last.
const SIGNALS: usize = 3;

/// What is played towards the trunk.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// The last one that is there is heard.
    playing: [Option<(EventId, Player)>; SIGNALS],
    digits: Option<Player>,
}

impl Signals {
    /// Begins a signal; one that is on goes on.
    pub fn start(&mut self, signal: EventId, score: Score) {
        if self.playing.iter().flatten().any(|(on, player)| *on == signal && !player.has_ended()) {
            return;
        }
        self.stop(signal);
        let place = self.playing.iter().position(Option::is_none).unwrap_or(SIGNALS - 1);
        if let Some(place) = self.playing.get_mut(place) {
            *place = Some((signal, Player::new(score)));
        }
    }

    /// Ends a signal, if it is on.
    pub fn stop(&mut self, signal: EventId) {
        let mut kept = [None; SIGNALS];
        let others = self.playing.iter().flatten().filter(|(on, _)| *on != signal);
        kept.iter_mut().zip(others).for_each(|(place, other)| *place = Some(*other));
        self.playing = kept;
    }

    /// Sends digits, in place of those that are being sent.
    pub fn send(&mut self, kind: DigitKind, digits: Digits) {
        self.digits = Some(Player::new(Score::Digits(kind, digits)));
    }

    pub fn stop_sending(&mut self) {
        self.digits = None;
    }

    /// Whether a check tone is played.
    pub fn tests_continuity(&self) -> bool {
        let is_check = |signal: EventId| signal.package() == PackageId::T && matches!(signal.item().name, "co1" | "co2");
        self.playing.iter().flatten().any(|(signal, _)| is_check(*signal))
    }

    /// Whether nothing is played.
    pub fn is_empty(&self) -> bool {
        self.digits.is_none() && self.playing[0].is_none()
    }

    /// Plays over `out`; whether the digits have all been sent just now.
    pub fn play(&mut self, law: Law, out: &mut [u8]) -> bool {
        if let Some(digits) = &mut self.digits {
            digits.play(law, out);
            let sent = digits.has_ended();
            if sent {
                self.digits = None;
            }
            return sent;
        }
        if let Some((signal, player)) = self.playing.iter_mut().rev().flatten().next() {
            player.play(law, out);
            if player.has_ended() {
                let signal = *signal;
                self.stop(signal);
            }
        }
        false
    }
}
