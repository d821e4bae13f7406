//! Telephone events that arrive (RFC 4733 2.5.2): each is heard as its tone; keys are told once.

use super::g711::Law;
use super::telephone_event::TelephoneEvent;
use super::tone::{Player, Score};
use crate::proto::trunk::TelephoneEvents;

/// The shortest tone that is played, in octets: 50 ms.
const SHORTEST: u32 = 400;
/// An event of which nothing is heard for so long is over, in octets: 150 ms.
const PATIENCE: u32 = 1_200;
/// How far the timestamps of the segments of a long event lie apart.
const SEGMENT: u32 = 0xffff;

/// The events of one connection.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// The event that is played.
    now: Option<Playing>,
    /// The timestamp of the last one.
    last: Option<u32>,
}

#[derive(Debug)]
struct Playing {
    code: u8,
    player: Player,
    /// How much is to be played in all, once that is known.
    total: Option<u32>,
    played: u32,
    /// Since a packet came.
    silent: u32,
    /// Of the segments before this one.
    before: u32,
}

impl Keys {
    /// A packet came of one of `events`; the key if it is the first of a key.
    pub fn receive(&mut self, events: TelephoneEvents, timestamp: u32, payload: &[u8]) -> Option<u8> {
        let event = TelephoneEvent::read(payload)?;
        let (key, score) = match events.tone(event.code) {
            Some(tone) => (None, Score::check(tone)),
            None => (event.key(), Score::Key(event.key()?, 0)),
        };
        let ahead = self.last.map_or(1, |last| timestamp.wrapping_sub(last) as i32);
        match &mut self.now {
            // Of an event that is over, or a segment before this one.
            _ if ahead < 0 => None,
            None if ahead == 0 => None,
            Some(playing) if playing.code == event.code && (ahead == 0 || ahead as u32 == SEGMENT) => {
                playing.before += ahead as u32;
                playing.silent = 0;
                if event.end {
                    playing.total = Some((playing.before + u32::from(event.duration)).max(SHORTEST));
                }
                self.last = Some(timestamp);
                None
            }
            _ => {
                let total = event.end.then_some(u32::from(event.duration).max(SHORTEST));
                let player = Player::new(score);
                self.now = Some(Playing { code: event.code, player, total, played: 0, silent: 0, before: 0 });
                self.last = Some(timestamp);
                key
            }
        }
    }

    /// Plays the event, if there is one, in place of the voice in `out`.
    pub fn play(&mut self, law: Law, out: &mut [u8]) {
        let Some(playing) = &mut self.now else { return };
        playing.player.play(law, out);
        playing.played += out.len() as u32;
        playing.silent += out.len() as u32;
        if playing.total.is_some_and(|total| playing.played >= total) || playing.silent > PATIENCE {
            self.now = None;
        }
    }

    /// The event that is played.
    pub fn code(&self) -> Option<u8> {
        self.now.as_ref().map(|playing| playing.code)
    }

    /// Nothing is played any more.
    pub fn stop(&mut self) {
        self.now = None;
    }
}
