//! One channel of a trunk in a test of voice: what it says, and what it hears.

use super::ear::{Ear, Heard, Mouth};
use super::record::Tape;
use crate::load::far_end::pattern::{Errors, Pattern};
use crate::load::far_end::trunk::Bank;
use crate::proto::base::Time;
use crate::proto::circuit::Channels;
use crate::proto::package::parameters::Digits;
use crate::proto::trunk::DigitKind;
use crate::proto::voice::{self, Ds0, Event, Law};
use std::time::Duration;

/// What is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// The tone, over a path that is for voice.
    Tone,
    /// A pattern of bits, over one that is for data.
    Pattern,
}

/// What it does now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Does {
    Nothing,
    Talks,
    Dials,
}

/// A channel.
pub struct Probe {
    law: Law,
    signal: Signal,
    does: Does,
    mouth: Mouth,
    ear: Ear,
    pattern: Pattern,
    errors: Errors,
    /// When the next octet of the pattern that is sent, and of the one that comes, is due.
    next: (Time, Time),
    media: Ds0,
    /// Records what comes.
    tape: Option<Tape>,
}

impl Probe {
    pub fn new(law: Law, signal: Signal) -> Probe {
        let media = Ds0::new(voice::Settings { law, connections: 0, ..voice::Settings::default() });
        let (mouth, ear, pattern, errors) = (Mouth::default(), Ear::default(), Pattern::new(), Errors::default());
        Probe { law, signal, does: Does::Nothing, mouth, ear, pattern, errors, next: (Time::ZERO, Time::ZERO), media, tape: None }
    }

    /// Begins to talk and to listen.
    pub fn talk(&mut self) {
        *self = Probe { does: Does::Talks, tape: self.tape.take(), ..Probe::new(self.law, self.signal) };
    }

    /// Sends digits, and then is silent.
    pub fn dial(&mut self, digits: Digits) {
        self.does = Does::Dials;
        self.media.send_digits(DigitKind::Dtmf, digits);
    }

    /// Is silent, and deaf.
    pub fn rest(&mut self) {
        self.does = Does::Nothing;
    }

    /// Records what comes from now on.
    pub fn insert(&mut self, tape: Option<Tape>) {
        self.tape = tape;
    }

    /// Records no more: the tape, if there was one.
    pub fn eject(&mut self) -> Option<Tape> {
        self.tape.take()
    }

    /// What it heard of the tone.
    pub fn heard(&self) -> Heard {
        self.ear.heard()
    }

    /// Octets of the pattern compared, bit errors, and how often its place was lost.
    pub fn errors(&self) -> (u64, u64, u64) {
        (self.errors.compared, self.errors.bits, self.errors.resyncs)
    }

    /// How long what `other` says has taken to here, when that is known anew.
    pub fn delay_from(&mut self, other: &Probe, places: &Places) -> Option<Duration> {
        match self.signal {
            Signal::Tone => {
                let mark = self.ear.next_mark()?;
                other.mouth.mark_before(mark).map(|made| mark.since(made))
            }
            Signal::Pattern => {
                let behind = places.octets_between(self.errors.expected()?, other.pattern);
                Some(Duration::from_micros(125) * behind + self.next.1.since(other.next.0))
            }
        }
    }

    /// A period that came from `heard` on, and one that is said from `said` on.
    fn exchange(&mut self, (heard, said): (Time, Time), came: &[u8], filler: bool, send: &mut [u8]) {
        if let Some(tape) = &mut self.tape {
            tape.take(self.law, came);
        }
        match self.does {
            Does::Nothing => {}
            Does::Talks if self.signal == Signal::Tone => {
                self.ear.take(self.law, heard, came);
                self.mouth.say(self.law, said, send);
            }
            Does::Talks => {
                send.iter_mut().for_each(|octet| *octet = self.pattern.next());
                if !filler {
                    came.iter().for_each(|octet| self.errors.take(*octet));
                }
                let length = Duration::from_micros(125) * came.len() as u32;
                self.next = (said + length, heard + length);
            }
            Does::Dials => {
                send.copy_from_slice(came);
                self.media.exchange(heard, send, &mut |_, _, _, _| {});
                while let Some(event) = self.media.poll() {
                    if event == Event::Sent {
                        self.does = Does::Nothing;
                    }
                }
            }
        }
    }
}

/// Where in the pattern a register stands.
pub struct Places(Box<[u16]>);

impl Places {
    pub fn new() -> Places {
        let mut places = vec![0; 1 << 15];
        let mut pattern = Pattern::new();
        for octets in 0..PATTERN as u16 {
            if let Some(place) = places.get_mut(usize::from(pattern.register())) {
                *place = octets;
            }
            pattern.next();
        }
        Places(places.into())
    }

    /// How many octets `later` is ahead.
    fn octets_between(&self, earlier: Pattern, later: Pattern) -> u32 {
        let place = |pattern: Pattern| self.0.get(usize::from(pattern.register())).copied().map_or(0, u32::from);
        (place(later) + PATTERN - place(earlier)) % PATTERN
    }
}

/// Octets after which the pattern is where it was: its length in bits is odd.
const PATTERN: u32 = 32_767;

/// The channels of a trunk.
pub struct Probes {
    pub list: Vec<Probe>,
    /// When the period being played has ended, by the machine's clock.
    now: Time,
}

impl Probes {
    pub fn new(list: Vec<Probe>) -> Probes {
        Probes { list, now: Time::ZERO }
    }
}

impl Bank for Probes {
    fn begin(&mut self, _: Time, machine: Time) {
        self.now = machine;
    }
}

impl Channels for Probes {
    fn exchange(&mut self, channel: u8, came: &[u8], filler: bool, send: &mut [u8]) {
        let Some(probe) = self.list.get_mut(usize::from(channel)) else { return };
        // What is sent was said in the period before; what came is heard in the one that follows.
        let length = 125_000 * send.len() as u64;
        probe.exchange((self.now, Time(self.now.0.saturating_sub(length))), came, filler, send);
    }

    fn take_bits(&mut self, _: u8, _: u8) {}

    fn give_bits(&mut self, _: u8) -> u8 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_tells_the_delay_and_its_errors() {
        let places = Places::new();
        let (mut near, mut far) = (Probe::new(Law::Mu, Signal::Pattern), Probe::new(Law::Mu, Signal::Pattern));
        near.talk();
        far.talk();
        let mut way = std::collections::VecDeque::from(vec![[0xFF; 8]; 49]);
        for ms in 1..2_000 {
            let mut said = [0xFF; 8];
            near.exchange((Time::from_millis(ms), Time::from_millis(ms - 1)), &[0xFF; 8], true, &mut said);
            said[3] ^= u8::from(ms == 1_000);
            way.push_back(said);
            let came = way.pop_front().unwrap();
            far.exchange((Time::from_millis(ms), Time::from_millis(ms - 1)), &came, false, &mut [0; 8]);
        }
        assert_eq!(far.delay_from(&near, &places), Some(Duration::from_millis(50)));
        assert_eq!((far.errors().1, far.errors().2), (1, 0));
    }
}
