//! What stands for the octets of the trunk that a pseudowire lost: the voice goes on for a moment, and fades.

use super::conceal::Concealment;
use super::g711::Law;
use super::playout::RING;

/// Octets over which what was made up becomes what comes again: 4 ms.
const FADE: u32 = 32;

/// What a channel said of late, and the gap that is being filled.
#[derive(Debug)]
pub(super) struct Patch {
    octets: Box<[u8; RING]>,
    /// The place of the next octet.
    at: u32,
    gap: Concealment,
    /// Octets that the end of a gap still blends.
    fading: u32,
    /// Whether there is anything to forget.
    used: bool,
}

impl Patch {
    /// What one has elsewhere, in octets.
    pub const BEHIND: usize = RING;

    pub fn new(law: Law) -> Patch {
        Patch { octets: Box::new([law.idle(); RING]), at: 0, gap: Concealment::default(), fading: 0, used: false }
    }

    /// Forgets what was said: another call must not hear it.
    pub fn forget(&mut self, law: Law) {
        if std::mem::take(&mut self.used) {
            self.octets.fill(law.idle());
            (self.gap, self.fading) = (Concealment::default(), 0);
        }
    }

    /// Takes a span of the trunk; of a lost one (`filler`) the octets are replaced. The number of octets made up.
    pub fn pass(&mut self, law: Law, octets: &mut [u8], filler: bool) -> usize {
        self.used = true;
        if filler && !self.gap.runs() {
            self.gap = Concealment::begin(&self.octets, law, self.at);
        }
        if !filler && self.gap.runs() && self.fading == 0 {
            self.fading = FADE;
        }
        for octet in octets.iter_mut() {
            if filler {
                *octet = law.encode(self.gap.next(&self.octets, law));
            } else if self.fading > 0 {
                let made_up = self.gap.next(&self.octets, law);
                let came = i32::from(law.decode(*octet));
                let left = self.fading as i32;
                *octet = law.encode((made_up * left + came * (FADE as i32 - left)) / FADE as i32);
                self.fading -= 1;
            }
            if let Some(place) = self.octets.get_mut(self.at as usize % RING) {
                *place = *octet;
            }
            self.at = self.at.wrapping_add(1);
        }
        if filler {
            self.fading = 0;
        } else if self.fading == 0 {
            self.gap = Concealment::default();
        }
        if filler { octets.len() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(at: usize) -> u8 {
        Law::Mu.encode(((at as f64 * 1004.0 / 8000.0 * std::f64::consts::TAU).sin() * 8_000.0) as i32)
    }

    fn peak(octets: &[u8]) -> i32 {
        octets.iter().map(|octet| i32::from(Law::Mu.decode(*octet)).abs()).max().unwrap_or(0)
    }

    /// A gap of 6 ms goes on with the voice, one of 100 ms fades to silence, and afterwards the octets are those that came.
    #[test]
    fn a_lost_packet_goes_on_with_the_voice_and_a_long_loss_is_silent() {
        let mut patch = Patch::new(Law::Mu);
        let mut play = |from: usize, length: usize, lost: bool| {
            let mut octets: Vec<u8> = (from..from + length).map(|at| if lost { 0xFF } else { tone(at) }).collect();
            assert_eq!(patch.pass(Law::Mu, &mut octets, lost), if lost { length } else { 0 });
            octets
        };
        play(0, 800, false);
        let short = play(800, 48, true);
        let exact = short.iter().zip(848 - 48..).map(|(octet, at)| i32::from(Law::Mu.decode(*octet)) - i32::from(Law::Mu.decode(tone(at))));
        assert!(peak(&short) > 7_000 && exact.map(i32::abs).max() < Some(3_000), "the tone goes on in its phase");
        let after = play(848, 400, false);
        assert_eq!(after[32..], (880..1248).map(tone).collect::<Vec<u8>>());
        let long = play(1248, 800, true);
        assert!(peak(&long[..80]) > 7_000 && peak(&long[480..]) == 0);
        let after = play(2048, 80, false);
        assert!(peak(&after) < 8_300 && after[32..] == (2080..2128).map(tone).collect::<Vec<u8>>());
    }
}
