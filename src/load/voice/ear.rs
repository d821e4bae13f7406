//! What a channel makes of the test tone that comes: its level, how much of it is impaired, and the marks in it.
//!
//! The tone turns its phase by half a period every two seconds. Such a mark changes no level, is found to half a millisecond, and says how
//! long the way is. The tone is judged in blocks of 10 ms; a block with a mark in it is not judged.

use crate::load::far_end::pattern::{FREQUENCY, LEVEL, PEAK_0_DBM0, RATE};
use crate::proto::base::Time;
use crate::proto::voice::Law;
use std::collections::VecDeque;
use std::f64::consts::TAU;
use std::time::Duration;

/// Octets of a block.
const BLOCK: u32 = 80;
/// Nearly a period of the tone, in octets.
const PERIOD: usize = 8;
/// A block is the tone when so much of its energy is, and its level is so near.
const SHARE: f64 = 0.97;
const NEAR_DB: f64 = 1.0;
/// Octets between two marks.
pub const MARK_EVERY: u64 = 16_000;
/// Marks that wait to be matched.
const MARKS: usize = 8;
/// One octet.
const OCTET: Duration = Duration::from_micros(125);

/// Sends the tone.
#[derive(Clone, Debug, Default)]
pub struct Mouth {
    sent: u64,
    marks: VecDeque<Time>,
}

impl Mouth {
    /// Fills a period that begins at `from`.
    pub fn say(&mut self, law: Law, from: Time, octets: &mut [u8]) {
        for (place, octet) in (0..).zip(octets) {
            let turned = if (self.sent / MARK_EVERY) % 2 == 1 { 0.5 } else { 0.0 };
            if self.sent > 0 && self.sent.is_multiple_of(MARK_EVERY) {
                self.marks.truncate(MARKS - 1);
                self.marks.push_front(from + OCTET * place);
            }
            let phase = TAU * (FREQUENCY * (self.sent as f64 / RATE) + turned);
            self.sent += 1;
            *octet = law.encode((phase.sin() * PEAK_0_DBM0 * 10f64.powf(LEVEL / 20.0)).round() as i32);
        }
    }

    /// When it made the last mark before `heard`.
    pub fn mark_before(&self, heard: Time) -> Option<Time> {
        self.marks.iter().copied().find(|mark| *mark <= heard)
    }
}

/// What was heard of the tone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heard {
    /// Blocks that were the tone, and their energy.
    pub good: u64,
    energy: f64,
    /// Blocks that were not, once the tone had come.
    pub impaired: u64,
    /// The loudest block, in dBm0.
    pub loudest: f64,
}

impl Heard {
    /// The mean level of the tone, in dBm0.
    pub fn level(&self) -> Option<f64> {
        (self.good > 0).then(|| dbm0(self.energy / self.good as f64))
    }

    /// How much was impaired.
    pub fn impaired_share(&self) -> f64 {
        self.impaired as f64 / (self.good + self.impaired).max(1) as f64
    }
}

/// The level of a mean square.
fn dbm0(mean_square: f64) -> f64 {
    20.0 * ((2.0 * mean_square).sqrt().max(1e-3) / PEAK_0_DBM0).log10()
}

/// Listens.
#[derive(Clone, Debug, Default)]
pub struct Ear {
    heard: Heard,
    /// The last samples, the newest at `place`.
    last: [f64; 2 * PERIOD],
    place: usize,
    count: u32,
    energy: f64,
    wave: (f64, f64),
    /// The block before, when it is not judged yet: whether it is the tone, and its mean square.
    before: Option<(bool, f64)>,
    marked: bool,
    /// Octets since the last mark.
    since_mark: u64,
    marks: VecDeque<Time>,
}

impl Ear {
    /// Takes a period that begins at `from`.
    pub fn take(&mut self, law: Law, from: Time, octets: &[u8]) {
        for (place, octet) in (0..).zip(octets) {
            self.sample(f64::from(law.decode(*octet)), from + OCTET * place);
        }
    }

    /// What was heard so far.
    pub fn heard(&self) -> Heard {
        self.heard
    }

    /// The next mark that was heard.
    pub fn next_mark(&mut self) -> Option<Time> {
        self.marks.pop_front()
    }

    fn sample(&mut self, value: f64, at: Time) {
        self.place = (self.place + 1) % self.last.len();
        self.last[self.place] = value;
        self.since_mark += 1;
        if self.is_turned() && self.since_mark > MARK_EVERY / 2 {
            self.marked = true;
            self.since_mark = 0;
            if self.heard.good > 10 && self.marks.len() < MARKS {
                // Seen when three quarters of a period are turned.
                self.marks.push_back(Time(at.0.saturating_sub(6 * OCTET.as_nanos() as u64)));
            }
            if self.count < 2 * PERIOD as u32 {
                self.before = None;
            }
        }
        let phase = TAU * FREQUENCY * f64::from(self.count) / RATE;
        self.energy += value * value;
        self.wave.0 += value * phase.cos();
        self.wave.1 += value * phase.sin();
        self.count += 1;
        if self.count == BLOCK {
            self.end_block();
        }
    }

    /// Whether this period is the last one upside down.
    fn is_turned(&self) -> bool {
        let length = self.last.len();
        let at = |back: usize| self.last[(self.place + length - back) % length];
        let (mut same, mut energy) = (0.0, 0.0);
        for back in 0..PERIOD {
            same += at(back) * at(back + PERIOD);
            energy += at(back) * at(back);
        }
        energy > PEAK_0_DBM0 && same < -0.5 * energy
    }

    fn end_block(&mut self) {
        let count = f64::from(BLOCK);
        let mean = self.energy / count;
        let wave = 2.0 * (self.wave.0.powi(2) + self.wave.1.powi(2)) / (count * count);
        let is_tone = wave > SHARE * mean && (dbm0(mean) - LEVEL).abs() < NEAR_DB;
        if let Some((was_tone, mean)) = self.before.take() {
            self.judge(was_tone, mean);
        }
        self.before = (!self.marked).then_some((is_tone, mean));
        (self.count, self.energy, self.wave, self.marked) = (0, 0.0, (0.0, 0.0), false);
    }

    fn judge(&mut self, is_tone: bool, mean: f64) {
        let heard = &mut self.heard;
        if is_tone {
            heard.good += 1;
            heard.energy += mean;
        } else if heard.good > 0 {
            heard.impaired += 1;
        }
        if heard.good > 0 {
            heard.loudest = if heard.good + heard.impaired == 1 { dbm0(mean) } else { heard.loudest.max(dbm0(mean)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says `seconds` of the tone in periods of 1 ms, changed by `change`, heard 30 ms later.
    fn heard(seconds: u64, mut change: impl FnMut(u64, &mut [u8])) -> (Heard, Vec<u64>) {
        let (mut mouth, mut ear) = (Mouth::default(), Ear::default());
        let mut delays = Vec::new();
        for ms in 0..seconds * 1_000 {
            let mut octets = [0; 8];
            mouth.say(Law::Mu, Time::from_millis(ms), &mut octets);
            change(ms, &mut octets);
            ear.take(Law::Mu, Time::from_millis(ms + 30), &octets);
            while let Some(mark) = ear.next_mark() {
                delays.push(mark.since(mouth.mark_before(mark).unwrap()).as_micros() as u64);
            }
        }
        (ear.heard(), delays)
    }

    #[test]
    fn a_tone_that_arrives_has_its_level_and_its_marks_tell_the_delay() {
        let (heard, delays) = heard(11, |_, _| {});
        assert!((heard.level().unwrap() - LEVEL).abs() < 0.05 && heard.impaired == 0, "{heard:?}");
        assert_eq!(delays.len(), 5);
        assert!(delays.iter().all(|delay| (29_000..31_000).contains(delay)), "{delays:?}");
    }

    #[test]
    fn what_is_missing_is_impaired_and_no_mark() {
        let (heard, delays) = heard(11, |ms, octets| {
            if (3_000..3_040).contains(&ms) || ms % 1_000 > 980 {
                octets.fill(0xFF);
            }
        });
        assert!((20..60).contains(&heard.impaired), "{heard:?}");
        assert!((heard.level().unwrap() - LEVEL).abs() < 0.1 && heard.loudest < LEVEL + 0.5, "{heard:?}");
        assert!(delays.iter().all(|delay| (29_000..31_000).contains(delay)), "{delays:?}");
    }

    #[test]
    fn another_level_is_told() {
        let half = |octets: &mut [u8]| octets.iter_mut().for_each(|o| *o = Law::Mu.encode((f64::from(Law::Mu.decode(*o)) * 0.94) as i32));
        let (heard, _) = heard(3, |_, octets| half(octets));
        assert!((heard.level().unwrap() + 10.54).abs() < 0.05, "{heard:?}");
    }
}
