//! From the packet network to the trunk: octets by their timestamps, played by the trunk's clock.
//!
//! A [`Playout`] is a ring of octets in which a timestamp is a place. What comes is put where it belongs, whatever the order; what is played
//! is the next place. The lead, how far ahead of its turn an octet comes, tells how deep the buffer has to be. When nothing is there in
//! time, what comes late is played all the same, which makes the buffer as deep as was needed; when no lead has been short for some
//! seconds, it becomes as shallow as the shortest of them allows. That is the same for jitter and for a far end whose clock is not ours,
//! so there is one correction: to leave octets out, or to play some again. It is made in silence, or, when that does not come in time,
//! where the signal is most like itself, and counted as a slip.
//!
//! Invariants: an octet is played once, but for slips and concealment; memory is fixed; a packet or a block costs the same however late or
//! wild its timestamp is.

use super::conceal::{Concealment, difference, value};
use super::g711::Law;

/// Places in the ring: 512 ms. A power of two, so that a timestamp is a place over the wrap.
pub(super) const RING: usize = 4096;
/// The furthest ahead of its turn that an octet is kept; the rest of the ring is what was played, for concealment and slips.
const AHEAD_MAX: i32 = RING as i32 - 1024;
/// The shortest lead that is left alone, in octets, beyond what is played at once: 1 ms.
const LEAD_MIN: i32 = 8;
/// The lead that a correction aims at: 3 ms.
const LEAD_AIM: i32 = 24;
/// The longest of the shortest leads that is left alone: 5 ms.
const LEAD_MAX: i32 = 40;
/// Leads are gathered for so long, in octets: 2 s.
const WINDOW: u32 = 16_000;
/// So many windows must agree before the buffer becomes shallower.
const WINDOWS: usize = 3;
/// A correction waits so long for silence, in octets: 4 s.
const PATIENCE: u32 = 32_000;
/// The most octets left out or played again at once: 10 ms.
const SLIP_MAX: i32 = 80;
/// The fewest, where it is heard: 2 ms.
const SLIP_MIN: i32 = 16;
/// Octets over which one signal becomes the other: 4 ms.
const FADE: u32 = 32;
/// So many packets in a row whose turn has passed mean that the timestamps began anew.
const LATE_MAX: u8 = 4;

/// How deep a buffer may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Depths {
    /// Lead of the first packet, in ms; at most half of `max_ms`.
    pub start_ms: u16,
    /// The most a packet may be ahead of its turn, in ms, 20 to 380.
    pub max_ms: u16,
}

impl Default for Depths {
    fn default() -> Depths {
        Depths { start_ms: 20, max_ms: 200 }
    }
}

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Played {
    /// Octets for which something was made up.
    pub concealed: u64,
    /// Packets that came when their turn had passed.
    pub late: u64,
    /// Packets that were there already.
    pub duplicate: u64,
    /// Corrections: octets were left out, or played again.
    pub slips: u64,
    /// Times the timestamps began anew.
    pub restarts: u64,
}

impl Played {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Played) -> Played {
        Played {
            concealed: self.concealed + other.concealed,
            late: self.late + other.late,
            duplicate: self.duplicate + other.duplicate,
            slips: self.slips + other.slips,
            restarts: self.restarts + other.restarts,
        }
    }
}

/// The buffer of one stream.
#[derive(Debug)]
pub struct Playout {
    octets: Box<[u8; RING]>,
    present: [u64; RING / 64],
    law: Law,
    depths: Depths,
    /// Whether octets are data, which is never made up or blended.
    data: bool,
    running: bool,
    /// Whether it does not become shallower, but deeper at once.
    keeps_deep: bool,
    /// Whether an octet of this stream was played.
    heard: bool,
    /// The timestamp to play next.
    next: u32,
    /// The one behind the last octet that came.
    newest: u32,
    /// Slips that were asked for.
    slips_told: u64,
    /// So many octets are played at once: a lead can become shorter by as much from one moment to the next.
    grain: i32,
    /// Octets to be left out, or if negative to be played again.
    correction: i32,
    /// For how many octets it has waited.
    waited: u32,
    late_in_row: u8,
    window: Window,
    concealment: Concealment,
    fade: Fade,
    counted: Played,
}

/// The shortest leads.
#[derive(Clone, Copy, Debug)]
struct Window {
    played: u32,
    shortest: i32,
    before: [i32; WINDOWS - 1],
}

impl Window {
    const NEW: Window = Window { played: 0, shortest: i32::MAX, before: [i32::MIN; WINDOWS - 1] };
}

/// One signal becomes the other.
#[derive(Clone, Copy, Debug, Default)]
struct Fade {
    /// Octets to go.
    left: u32,
    /// Where the old signal goes on; `None`: it is what was made up.
    from: Option<u32>,
}

impl Playout {
    /// A buffer into which nothing has come.
    pub fn new(law: Law, depths: Depths) -> Playout {
        let max_ms = depths.max_ms.clamp(20, (AHEAD_MAX / 8 - 4) as u16);
        Playout {
            octets: Box::new([law.idle(); RING]),
            present: [0; RING / 64],
            law,
            depths: Depths { start_ms: depths.start_ms.min(max_ms / 2), max_ms },
            data: false,
            running: false,
            keeps_deep: false,
            heard: false,
            next: 0,
            newest: 0,
            slips_told: 0,
            grain: 8,
            correction: 0,
            waited: 0,
            late_in_row: 0,
            window: Window::NEW,
            concealment: Concealment::default(),
            fade: Fade::default(),
            counted: Played::default(),
        }
    }

    /// Forgets all that came, and what was counted.
    pub fn reset(&mut self) {
        self.stop();
        self.counted = Played::default();
        self.slips_told = 0;
    }

    /// How deep it is, in ms, when it was made deeper or shallower since this was asked last (R/ji).
    pub fn resized(&mut self) -> Option<u16> {
        let before = std::mem::replace(&mut self.slips_told, self.counted.slips);
        let waiting = self.newest.wrapping_sub(self.next).cast_signed().clamp(8, RING as i32);
        (before != self.counted.slips).then_some((waiting / 8) as u16)
    }

    /// From now on octets are data (RFC 4040), or voice.
    pub fn set_data(&mut self, data: bool) {
        self.data = data;
    }

    /// From now on it does not become shallower, and becomes deeper without waiting for a silence that will not come; or it does again.
    pub fn keep_deep(&mut self, keeps: bool) {
        self.keeps_deep = keeps;
        if keeps {
            self.correction = self.correction.min(0);
        }
    }

    /// So many octets are played at once from now on.
    pub fn set_grain(&mut self, octets: usize) {
        self.grain = octets.min(AHEAD_MAX as usize / 4) as i32;
    }

    /// Waits for a first packet again: there is a new source, or nothing is to be played.
    pub fn stop(&mut self) {
        self.present = [0; RING / 64];
        (self.running, self.heard, self.correction, self.late_in_row) = (false, false, 0, 0);
        (self.concealment, self.fade, self.window) = (Concealment::default(), Fade::default(), Window::NEW);
    }

    /// What was counted since the last reset.
    pub fn counted(&self) -> Played {
        self.counted
    }

    /// Takes the octets of a packet, which begin at `timestamp`; `convert` is applied to each.
    pub fn insert(&mut self, timestamp: u32, payload: &[u8], convert: Option<&[u8; 256]>) {
        let payload = payload.get(..AHEAD_MAX as usize).unwrap_or(payload);
        let lead = self.lead(timestamp, payload.len() as i32);
        self.window.shortest = self.window.shortest.min(lead);
        let most = i32::from(self.depths.max_ms) * 8;
        if lead > most {
            self.correct(lead - most);
        }
        let end = timestamp.wrapping_add(payload.len() as u32);
        if end.wrapping_sub(self.newest).cast_signed() > 0 || self.newest.wrapping_sub(self.next).cast_signed() > RING as i32 {
            self.newest = end;
        }
        if lead >= 0 && self.is_present(timestamp) {
            self.counted.duplicate += 1;
        }
        for (at, &octet) in (lead..).zip(payload).skip(usize::try_from(-lead).unwrap_or_default()) {
            let index = self.next.wrapping_add_signed(at) as usize % RING;
            self.octets[index] = convert.map_or(octet, |table| table[usize::from(octet)]);
            self.present[index / 64] |= 1 << (index % 64);
        }
    }

    /// How far ahead of its turn a packet comes; its turn is put off when nothing is there in its place, or set when it is the first.
    fn lead(&mut self, timestamp: u32, length: i32) -> i32 {
        let lead = timestamp.wrapping_sub(self.next) as i32;
        let most = i32::from(self.depths.max_ms) * 8;
        if !self.running || lead > AHEAD_MAX - length || lead < -AHEAD_MAX {
            return self.restart(timestamp);
        }
        if lead >= 0 {
            self.late_in_row = 0;
            return lead;
        }
        self.counted.late += 1;
        if -lead <= most && self.concealment.covers(timestamp) && self.fade.left == 0 {
            self.counted.slips += 1;
            self.next = timestamp;
            self.shift_window(lead);
            return 0;
        }
        self.late_in_row = if lead + length <= 0 { self.late_in_row + 1 } else { 0 };
        if self.late_in_row >= LATE_MAX { self.restart(timestamp) } else { lead }
    }

    fn restart(&mut self, timestamp: u32) -> i32 {
        self.counted.restarts += u64::from(self.running);
        self.stop();
        self.running = true;
        let lead = i32::from(self.depths.start_ms) * 8;
        self.next = timestamp.wrapping_add_signed(-lead);
        lead
    }

    /// Plays the next octets; an idle channel's while nothing has come.
    pub fn play(&mut self, out: &mut [u8]) {
        if !self.running {
            return out.fill(self.law.idle());
        }
        if self.correction != 0 {
            self.try_slip(out.len() as u32);
        }
        let mut rest = &mut out[..];
        while !rest.is_empty() {
            let length = rest.len().min(64 - self.next as usize % 64);
            let (part, behind) = rest.split_at_mut(length);
            if !self.play_present(part) {
                part.iter_mut().for_each(|octet| *octet = self.play_one());
            }
            rest = behind;
        }
        self.window.played += out.len() as u32;
        if self.window.played >= WINDOW {
            self.end_window();
        }
    }

    /// The usual case: all octets are there, of one word of the map, and nothing is being made up.
    fn play_present(&mut self, out: &mut [u8]) -> bool {
        let (index, length) = (self.next as usize % RING, out.len());
        let (word, bit) = (index / 64, index % 64);
        if self.concealment.runs() || self.fade.left > 0 {
            return false;
        }
        let mask = (u64::MAX >> (64 - length)) << bit;
        let Some(octets) = self.octets.get(index..index + length) else { return false };
        if self.present[word] & mask != mask {
            return false;
        }
        out.copy_from_slice(octets);
        self.present[word] &= !mask;
        self.next = self.next.wrapping_add(length as u32);
        self.heard = true;
        true
    }

    fn play_one(&mut self) -> u8 {
        let (place, index) = (self.next, self.next as usize % RING);
        self.next = place.wrapping_add(1);
        if self.is_present(place) {
            self.present[index / 64] &= !(1 << (index % 64));
            self.heard = true;
            if self.concealment.runs() && self.fade.left == 0 && !self.data {
                self.fade = Fade { left: FADE, from: None };
            }
            return self.blend(index);
        }
        if !self.heard {
            return self.law.idle();
        }
        self.counted.concealed += 1;
        if !self.concealment.runs() {
            self.concealment = Concealment::begin(&self.octets, self.law, place);
        }
        self.fade.left = 0;
        let made_up = if self.data { self.law.idle() } else { self.law.encode(self.concealment.next(&self.octets, self.law)) };
        self.octets[index] = made_up;
        made_up
    }

    /// The octet at `index`, while another signal still fades.
    fn blend(&mut self, index: usize) -> u8 {
        let octet = self.octets[index];
        if self.fade.left == 0 {
            self.concealment = Concealment::default();
            return octet;
        }
        let old = match &mut self.fade.from {
            Some(place) => {
                *place = place.wrapping_add(1);
                value(&self.octets, self.law, place.wrapping_sub(1))
            }
            None => self.concealment.next(&self.octets, self.law),
        };
        let left = self.fade.left as i32;
        self.fade.left -= 1;
        if self.fade.left == 0 {
            self.concealment = Concealment::default();
        }
        let new = i32::from(self.law.decode(octet));
        self.law.encode((old * left + new * (FADE as i32 + 1 - left)) / (FADE as i32 + 1))
    }

    fn is_present(&self, place: u32) -> bool {
        let index = place as usize % RING;
        self.present[index / 64] & 1 << (index % 64) != 0
    }

    /// Leaves octets out, or plays some again if negative, as soon as that is possible.
    fn correct(&mut self, octets: i32) {
        if self.correction == 0 {
            self.waited = 0;
        }
        self.correction = octets;
    }

    fn try_slip(&mut self, played: u32) {
        self.waited = self.waited.saturating_add(played);
        let wanted = self.correction.clamp(-SLIP_MAX, SLIP_MAX);
        if self.concealment.runs() || self.fade.left > 0 {
            return;
        }
        // What is left out, or what was played and comes again, and what it is joined to.
        let (from, length) = (self.next.wrapping_add_signed(wanted.min(0)), wanted.unsigned_abs() + FADE);
        let silent = (0..length).all(|i| {
            let place = from.wrapping_add(i);
            value(&self.octets, self.law, place).abs() < 128 && (self.is_present(place) || i < wanted.min(0).unsigned_abs())
        });
        if silent && !self.data {
            self.slip(wanted);
        } else if self.waited >= PATIENCE || self.keeps_deep {
            self.slip_heard(wanted);
        }
    }

    /// A slip where it would be heard: data is cut as it is, voice where it is most like itself.
    fn slip_heard(&mut self, wanted: i32) {
        let old = self.next;
        let there = |length: u32| (0..length).all(|i| self.is_present(old.wrapping_add(i)));
        if self.data || !there(wanted.max(0).unsigned_abs().max(SLIP_MIN.unsigned_abs()) + FADE) {
            return self.slip(wanted);
        }
        let most = wanted.abs().max(SLIP_MIN);
        let unlike = |by: &i32| difference(&self.octets, self.law, (old, old.wrapping_add_signed(*by * wanted.signum())), FADE);
        let by = (SLIP_MIN..=most).min_by_key(unlike).unwrap_or(most) * wanted.signum();
        self.slip(by);
        self.fade = Fade { left: FADE, from: Some(old) };
    }

    fn slip(&mut self, by: i32) {
        self.counted.slips += 1;
        for i in 0..by.unsigned_abs() {
            let index = self.next.wrapping_add_signed(by.min(0)).wrapping_add(i) as usize % RING;
            let bit = 1 << (index % 64);
            self.present[index / 64] = if by < 0 { self.present[index / 64] | bit } else { self.present[index / 64] & !bit };
        }
        self.next = self.next.wrapping_add_signed(by);
        self.shift_window(by);
        self.waited = 0;
        let left = self.correction - by;
        // What is less than the smallest slip is left for the next time.
        self.correction = if left.signum() == by.signum() && left.abs() >= SLIP_MIN { left } else { 0 };
    }

    /// Leads are shorter by so much from now on, so those that were seen are.
    fn shift_window(&mut self, by: i32) {
        let Window { shortest, before, .. } = &mut self.window;
        for lead in before.iter_mut().chain([shortest]).filter(|lead| !matches!(**lead, i32::MAX | i32::MIN)) {
            *lead = lead.saturating_sub(by);
        }
    }

    fn end_window(&mut self) {
        let Window { shortest, before, .. } = self.window;
        self.window.played = 0;
        if shortest == i32::MAX {
            return;
        }
        let floor = before.iter().fold(shortest, |floor, &lead| floor.min(lead));
        self.window = Window { played: 0, shortest: i32::MAX, before: [before[1], shortest] };
        if shortest < LEAD_MIN + self.grain {
            self.correct(shortest - LEAD_AIM - self.grain);
        } else if floor > LEAD_MAX + self.grain && !self.keeps_deep {
            self.correct(floor - LEAD_AIM - self.grain);
        }
    }
}
