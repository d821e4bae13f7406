//! One channel of a far end: what it sends, and what it makes of what comes.

use super::pattern::{Errors, FREQUENCY, LEVEL, PEAK_0_DBM0, Pattern, RATE};
use crate::proto::base::Time;
use crate::proto::circuit::{Coding, Wire};
use crate::proto::package::parameters::Digits;
use crate::proto::trunk::{DigitKind, Hook, LineInput, LineState};
use crate::proto::voice::{self, Ds0, Event, Law};
use std::collections::VecDeque;
use std::f64::consts::TAU;
use std::time::Duration;

/// What it sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Task {
    /// Silence.
    Idle,
    /// A tone.
    Tone,
    /// What comes.
    Loop,
    /// A pattern of bits.
    Pattern,
}

/// What is measured at a time, in octets.
const WINDOW: u32 = 8_000;
/// A reaction of a switch to what the gateway shows.
const REACTION: Duration = Duration::from_millis(150);
/// A wink.
const WINK: Duration = Duration::from_millis(200);
/// From the wink to the answer.
const ANSWER: Duration = Duration::from_secs(2);
/// From the start to a seizure, and from the release to the end.
const SEIZE_AFTER: Duration = Duration::from_secs(1);
const RELEASE_BEFORE: Duration = Duration::from_secs(2);

/// From the start to digits on a channel that does not seize.
const DIGITS_AFTER: Duration = Duration::from_secs(2);
/// From the end of a wink to the first digit.
const AFTER_WINK: Duration = Duration::from_millis(100);

/// What a channel is to do.
pub struct Part {
    /// Its number on the trunk.
    pub number: u8,
    pub law: Law,
    pub task: Task,
    /// How it signals.
    pub coding: Option<Coding>,
    pub seizes: bool,
    pub answers: bool,
    /// Digits it sends.
    pub digits: Option<(DigitKind, Digits)>,
    /// Digits it listens for.
    pub hears: DigitKind,
}

/// A channel.
pub struct Channel {
    /// Sends and hears digits.
    media: Ds0,
    digits: Option<(DigitKind, Digits)>,
    /// When it sends them.
    dials: Time,
    heard: String,
    number: u8,
    law: Law,
    task: Task,
    /// Octets sent.
    sent: u64,
    register: Pattern,
    meter: Meter,
    errors: Errors,
    last: VecDeque<u8>,
    line: Option<Line>,
}

/// The signalling of a channel.
struct Line {
    wire: Wire,
    coding: Coding,
    began: Option<Time>,
    seizes: bool,
    answers: bool,
    /// When the gateway seized.
    called: Option<Time>,
    /// What the gateway showed, and after how many milliseconds of the run.
    hooks: Vec<(u64, Hook)>,
}

/// The longest string of digits that is remembered.
const HEARD_MAX: usize = 200;
/// What is remembered of a gateway's hooks.
const HOOKS_MAX: usize = 64;

impl Channel {
    pub fn new(part: &Part) -> Channel {
        let Part { number, law, task, coding, seizes, answers, digits, hears } = *part;
        let mut media = Ds0::new(voice::Settings { law, connections: 0, ..voice::Settings::default() });
        media.listen(Some(hears));
        let line =
            coding.map(|coding| Line { wire: Wire::new(coding), coding, began: None, seizes, answers, called: None, hooks: Vec::new() });
        let (register, errors) = (Pattern::new(), Errors::default());
        let (meter, heard, last, dials) = (Meter::default(), String::new(), VecDeque::new(), Time::NEVER);
        Channel { media, digits, dials, heard, number, law, task, sent: 0, register, meter, errors, last, line }
    }

    /// Whether it had something to do.
    pub fn is_worth_telling(&self) -> bool {
        self.task != Task::Idle
            || self.line.as_ref().is_some_and(|line| line.seizes)
            || self.meter.loudest.is_some_and(|level| level > -60.0)
    }

    pub fn exchange(&mut self, now: Time, came: &[u8], filler: bool, send: &mut [u8]) {
        if !filler {
            came.iter().for_each(|octet| self.meter.take(self.law, *octet));
        }
        match self.task {
            Task::Idle => self.talk(now, came, send),
            Task::Loop => {
                // A period later, as a switch that loops a channel does.
                if self.last.len() >= send.len() {
                    let before = self.last.drain(..send.len());
                    send.iter_mut().zip(before).for_each(|(place, octet)| *place = octet);
                }
                self.last.extend(came);
            }
            Task::Tone => {
                for octet in send.iter_mut() {
                    let phase = TAU * FREQUENCY * (self.sent as f64 / RATE);
                    self.sent += 1;
                    let value = phase.sin() * PEAK_0_DBM0 * 10f64.powf(LEVEL / 20.0);
                    *octet = self.law.encode(value.round() as i32);
                }
            }
            Task::Pattern => {
                send.iter_mut().for_each(|octet| *octet = self.register.next());
                if !filler {
                    came.iter().for_each(|octet| self.errors.take(*octet));
                }
            }
        }
    }

    /// Sends digits when it is time, and hears those that come.
    fn talk(&mut self, now: Time, came: &[u8], send: &mut [u8]) {
        if self.dials == Time::NEVER && !self.line.as_ref().is_some_and(|line| line.seizes) {
            self.dials = now + DIGITS_AFTER;
        }
        if self.dials <= now
            && let Some((kind, digits)) = self.digits.take()
        {
            self.media.send_digits(kind, digits);
        }
        send.copy_from_slice(came);
        self.media.exchange(now, send, &mut |_, _, _, _| {});
        while let Some(event) = self.media.poll() {
            if let Event::Digit { symbol, on: true, .. } = event
                && self.heard.len() < HEARD_MAX
            {
                self.heard.push(char::from(symbol));
            }
        }
    }

    pub fn take_bits(&mut self, now: Time, bits: u8) {
        let dials = &mut self.dials;
        let Some(line) = &mut self.line else { return };
        let began = *line.began.get_or_insert(now);
        line.wire.take(now, bits, &mut |input, at| {
            let LineInput::Hook(hook) = input else { return };
            if line.hooks.len() < HOOKS_MAX {
                line.hooks.push((at.since(began).as_millis() as u64, hook));
            }
            if line.seizes && hook == Hook::On && *dials == Time::NEVER {
                *dials = at + AFTER_WINK;
            }
            line.called = match hook {
                Hook::Off if !line.seizes => Some(at),
                _ => None,
            };
        });
    }

    pub fn give_bits(&mut self, now: Time, end: Time) -> u8 {
        let Some(line) = &mut self.line else { return 0 };
        let began = *line.began.get_or_insert(now);
        let off = match line.called.filter(|_| line.answers) {
            Some(called) => {
                let since = now.since(called);
                (REACTION..REACTION + WINK).contains(&since) || since >= REACTION + WINK + ANSWER
            }
            None => line.seizes && now.since(began) >= SEIZE_AFTER && end.since(now) > RELEASE_BEFORE,
        };
        line.wire.show(if off { LineState::OffHook } else { LineState::OnHook });
        line.coding.bits(line.wire.shown())
    }

    pub fn report(&self) -> serde_json::Value {
        let mut report = serde_json::json!({ "channel": self.number, "measured_s": self.meter.windows });
        let mut put = |key: &str, value: serde_json::Value| {
            if let Some(map) = report.as_object_mut() {
                map.insert(key.to_owned(), value);
            }
        };
        let round = |level: f64| serde_json::json!((level * 100.0).round() / 100.0);
        if let Some((level, tone)) = self.meter.latest {
            put("level_dbm0", round(level));
            put("tone_dbm0", round(tone));
        }
        if self.task == Task::Pattern {
            put("pattern_octets", self.errors.compared.into());
            put("bit_errors", self.errors.bits.into());
            put("pattern_losses", self.errors.resyncs.into());
        }
        if !self.heard.is_empty() {
            put("heard", self.heard.clone().into());
        }
        if let Some(line) = &self.line {
            let name = |hook: &Hook| if *hook == Hook::Off { "off" } else { "on" };
            let hooks: Vec<_> = line.hooks.iter().map(|(at, hook)| serde_json::json!([at, name(hook)])).collect();
            put("hooks", hooks.into());
        }
        report
    }
}

/// The level of what comes, and of the tone in it.
#[derive(Default)]
struct Meter {
    octets: u32,
    energy: f64,
    cosine: f64,
    sine: f64,
    windows: u32,
    /// Of the last whole window: all, and the tone's part.
    latest: Option<(f64, f64)>,
    loudest: Option<f64>,
}

impl Meter {
    fn take(&mut self, law: Law, octet: u8) {
        let value = f64::from(law.decode(octet));
        let phase = TAU * FREQUENCY * f64::from(self.octets) / RATE;
        self.energy += value * value;
        self.cosine += value * phase.cos();
        self.sine += value * phase.sin();
        self.octets += 1;
        if self.octets < WINDOW {
            return;
        }
        let count = f64::from(WINDOW);
        let dbm0 = |peak: f64| 20.0 * (peak.max(1e-3) / PEAK_0_DBM0).log10();
        let level = dbm0((2.0 * self.energy / count).sqrt());
        let tone = dbm0(2.0 * self.cosine.hypot(self.sine) / count);
        let loudest = self.loudest.map_or(level, |before| before.max(level));
        *self = Meter { windows: self.windows + 1, latest: Some((level, tone)), loudest: Some(loudest), ..Meter::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(task: Task) -> Channel {
        let (coding, digits, hears) = (None, None, DigitKind::Dtmf);
        Channel::new(&Part { number: 1, law: Law::Mu, task, coding, seizes: false, answers: false, digits, hears })
    }

    fn number(channel: &Channel, key: &str) -> f64 {
        channel.report().get(key).and_then(serde_json::Value::as_f64).unwrap_or(f64::NAN)
    }

    #[test]
    fn a_tone_that_comes_back_is_measured_at_its_level() {
        let mut tone = channel(Task::Tone);
        let mut octets = [0xFF; 80];
        for _ in 0..250 {
            let came = octets;
            tone.exchange(Time::ZERO, &came, false, &mut octets);
        }
        assert!((number(&tone, "level_dbm0") - LEVEL).abs() < 0.1, "{}", tone.report());
        assert!((number(&tone, "tone_dbm0") - LEVEL).abs() < 0.1, "{}", tone.report());
    }

    #[test]
    fn bit_errors_of_the_pattern_are_counted_and_a_gap_is_found_again() {
        let mut far = channel(Task::Pattern);
        let (mut octets, mut came) = ([0xFF; 24], [0xFF; 24]);
        for period in 0..1000 {
            far.exchange(Time::ZERO, &came, false, &mut octets);
            came = octets;
            match period {
                200 | 300 => came[5] ^= 0x10,
                // Another place of the pattern: three periods are missing.
                500..503 => far.exchange(Time::ZERO, &came, true, &mut came.clone()),
                _ => {}
            }
        }
        assert!((2.0..60.0).contains(&number(&far, "bit_errors")), "{}", far.report());
        assert!(number(&far, "pattern_octets") > 23_500.0, "{}", far.report());
    }
}
