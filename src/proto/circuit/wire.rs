//! The ABCD bits of one channel: what the far end's bits say of its hook, which bits say what the gateway shows, and dial pulses, which
//! are hooks both ways (RFC 5244 2.4 and ANSI T1.403.02; CES-12, CES-14).
//!
//! The bits come once in a multiframe (T1 3 ms, E1 2 ms). They count when two multiframes in a row agree, so a bit error is no hook; the
//! time told is that of the first of the two, so durations stay as they were on the line.

use crate::proto::base::Time;
use crate::proto::package::ChannelKind;
use crate::proto::package::parameters::Digits;
use crate::proto::trunk::{DigitKind, FacilityKind, Hook, LineInput, LineState};
use std::time::Duration;

/// Which bits mean what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// E&M, as on trunks between switches: all bits are the hook. Only A is looked at.
    EarAndMouth,
    /// The same on an E1, where B, C and D stay 1, 0 and 1 because all zeros would look like multiframe alignment (ITU-T G.704 5.1.3.2).
    EarAndMouthE1,
    /// The office's side of a line with loop start: 01 idle, 00 ringing; the line shows 11 when its loop is closed.
    LoopStart,
    /// The same with ground start: 11 idle, 01 with ground on the tip, 00 ringing; the line shows 01 only when it is idle.
    GroundStart,
}

impl Coding {
    /// How a channel of this kind is coded; `None` when it has no hook.
    pub fn of(kind: ChannelKind, ground_start: bool, span: FacilityKind) -> Option<Coding> {
        match kind {
            ChannelKind::Clear => None,
            ChannelKind::PbxFxs if ground_start => Some(Coding::GroundStart),
            ChannelKind::PbxFxs => Some(Coding::LoopStart),
            _ if span == FacilityKind::E1 => Some(Coding::EarAndMouthE1),
            _ => Some(Coding::EarAndMouth),
        }
    }

    /// ABCD, A being bit 8, for what the gateway shows.
    pub fn bits(self, state: LineState) -> u8 {
        match (self, state) {
            (Coding::EarAndMouth, LineState::OffHook) => 0b1111,
            (Coding::EarAndMouth, _) => 0b0000,
            (Coding::EarAndMouthE1, LineState::OffHook) => 0b1101,
            (Coding::EarAndMouthE1, _) => 0b0101,
            (Coding::LoopStart | Coding::GroundStart, LineState::Ringing) => 0b0000,
            (Coding::GroundStart, LineState::OnHook) => 0b1111,
            (Coding::LoopStart | Coding::GroundStart, _) => 0b0101,
        }
    }

    /// The hook that the far end's bits show.
    pub fn hook(self, bits: u8) -> Hook {
        let off = match self {
            Coding::EarAndMouth | Coding::EarAndMouthE1 | Coding::LoopStart => bits & 0b1000 != 0,
            // Off-hook as well as ground on the ring.
            Coding::GroundStart => bits & 0b1100 != 0b0100,
        };
        if off { Hook::Off } else { Hook::On }
    }

    /// The bits the far end of such a channel shows for a hook: what [`Coding::hook`] undoes.
    pub fn far_bits(self, hook: Hook) -> u8 {
        match (self, hook) {
            (Coding::EarAndMouth, Hook::On) => 0b0000,
            (Coding::EarAndMouthE1 | Coding::LoopStart | Coding::GroundStart, Hook::On) => 0b0101,
            (Coding::EarAndMouthE1, Hook::Off) => 0b1101,
            (_, Hook::Off) => 0b1111,
        }
    }
}

/// On-hook part of a dial pulse that is sent.
const BREAK: Duration = Duration::from_millis(60);
/// Off-hook part.
const MAKE: Duration = Duration::from_millis(40);
/// Between two digits that are sent.
const BETWEEN: Duration = Duration::from_millis(700);
/// The longest on-hook that is a dial pulse.
const PULSE_MAX: Duration = Duration::from_millis(120);
/// So long off-hook after a pulse ends a digit.
const DIGIT_END: Duration = Duration::from_millis(200);

/// The signalling bits of one channel.
#[derive(Clone, Debug)]
pub struct Wire {
    coding: Coding,
    shown: LineState,
    /// Until when that is shown, and what is shown then.
    pulse: Option<(Time, LineState)>,
    hook: Hook,
    /// A hook that was seen once, and when.
    maybe: Option<Time>,
    sending: Option<Sending>,
    listening: Option<Listening>,
}

/// Dial pulses on their way out.
#[derive(Clone, Copy, Debug)]
struct Sending {
    digits: Digits,
    place: usize,
    /// Pulses of the present digit that are left.
    left: u8,
    on_hook: bool,
    until: Time,
}

/// Dial pulses that come.
#[derive(Clone, Copy, Debug, Default)]
struct Listening {
    pulses: u8,
    /// The last change of the hook since it listens.
    since: Option<Time>,
}

impl Wire {
    /// Both ends on-hook.
    pub fn new(coding: Coding) -> Wire {
        Wire { coding, shown: LineState::OnHook, pulse: None, hook: Hook::On, maybe: None, sending: None, listening: None }
    }

    /// Its coding.
    pub fn coding(&self) -> Coding {
        self.coding
    }

    /// What the far end shows.
    pub fn hook(&self) -> Hook {
        self.hook
    }

    /// What the gateway shows.
    pub fn shown(&self) -> LineState {
        self.shown
    }

    /// Shows this from now on; pulses that are being sent go on.
    pub fn show(&mut self, state: LineState) {
        (self.shown, self.pulse) = (state, None);
    }

    /// Shows this for so long, then again what was shown before.
    pub fn show_for(&mut self, now: Time, state: LineState, length: Duration) {
        let before = self.pulse.map_or(self.shown, |(_, before)| before);
        (self.shown, self.pulse) = (state, Some((now + length, before)));
    }

    /// Sends digits as dial pulses; [`LineInput::Sent`] follows. What is no digit is left out.
    pub fn send(&mut self, now: Time, digits: Digits) {
        self.sending = Some(Sending { digits, place: 0, left: 0, on_hook: false, until: now });
    }

    /// Stops sending.
    pub fn stop_sending(&mut self) {
        self.sending = None;
    }

    /// Listens for dial pulses, or not.
    pub fn listen(&mut self, pulses: bool) {
        self.listening = pulses.then(Listening::default);
    }

    /// The far end's bits came.
    pub fn take(&mut self, now: Time, bits: u8, out: &mut dyn FnMut(LineInput, Time)) {
        let hook = self.coding.hook(bits);
        if hook == self.hook {
            self.maybe = None;
        } else if let Some(since) = self.maybe.take() {
            self.hook = hook;
            out(LineInput::Hook(hook), since);
            self.pulse(since);
        } else {
            self.maybe = Some(now);
        }
        if let Some(listening) = &mut self.listening
            && listening.pulses > 0
            && self.hook == Hook::Off
            && listening.since.is_none_or(|since| now.since(since) >= DIGIT_END)
        {
            let digit = b'0' + listening.pulses % 10;
            listening.pulses = 0;
            out(LineInput::Digit(DigitKind::Pulse, digit), now);
        }
    }

    /// The hook changed: maybe a pulse ended.
    fn pulse(&mut self, now: Time) {
        let Some(listening) = &mut self.listening else { return };
        let is_pulse = listening.since.replace(now).is_some_and(|since| now.since(since) <= PULSE_MAX);
        if self.hook == Hook::On {
            return;
        }
        // The first change is a seizure; ten pulses are a 0, more are none.
        listening.pulses = if is_pulse && listening.pulses < 10 { listening.pulses + 1 } else { 0 };
    }

    /// The bits to send now.
    pub fn give(&mut self, now: Time, out: &mut dyn FnMut(LineInput, Time)) -> u8 {
        if let Some(sending) = &mut self.sending
            && sending.until <= now
            && !sending.step(now)
        {
            self.sending = None;
            out(LineInput::Sent { failed: false }, now);
        }
        if let Some((_, before)) = self.pulse.take_if(|(until, _)| *until <= now) {
            self.shown = before;
        }
        let broken = self.sending.is_some_and(|sending| sending.on_hook);
        self.coding.bits(if broken { LineState::OnHook } else { self.shown })
    }
}

impl Sending {
    /// Goes on to the next part of a pulse; false at the end.
    fn step(&mut self, now: Time) -> bool {
        if self.on_hook {
            self.left -= 1;
            self.on_hook = false;
            self.until = now + if self.left == 0 { BETWEEN } else { MAKE };
            return true;
        }
        if self.left == 0 {
            let rest = self.digits.as_slice().get(self.place..).unwrap_or_default();
            let Some(skipped) = rest.iter().position(u8::is_ascii_digit) else { return false };
            self.place += skipped + 1;
            let digit = rest.get(skipped).map_or(0, |digit| digit - b'0');
            self.left = if digit == 0 { 10 } else { digit };
        }
        self.on_hook = true;
        self.until = now + BREAK;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn hooks_are_the_bits_of_their_coding() {
        use LineState::{OffHook, OnHook, Ringing};
        let of = |coding: Coding| [OnHook, OffHook, Ringing].map(|state| coding.bits(state));
        assert_eq!(of(Coding::EarAndMouth), [0b0000, 0b1111, 0b0000]);
        assert_eq!(of(Coding::EarAndMouthE1), [0b0101, 0b1101, 0b0101]);
        assert_eq!(of(Coding::LoopStart), [0b0101, 0b0101, 0b0000]);
        assert_eq!(of(Coding::GroundStart), [0b1111, 0b0101, 0b0000]);
        for coding in [Coding::EarAndMouth, Coding::EarAndMouthE1, Coding::LoopStart, Coding::GroundStart] {
            for hook in [Hook::On, Hook::Off] {
                assert_eq!(coding.hook(coding.far_bits(hook)), hook, "{coding:?}");
            }
        }
        // Of a superframe's A and B only, doubled (CES-14); and ground on the ring.
        assert_eq!(Coding::EarAndMouth.hook(0b1010), Hook::Off);
        assert_eq!(Coding::GroundStart.hook(0b0000), Hook::Off);
    }

    #[test]
    fn a_hook_counts_from_the_first_of_two_multiframes_that_agree() {
        let mut wire = Wire::new(Coding::EarAndMouth);
        let mut seen = Vec::new();
        let nibbles = [0, 15, 0, 0, 15, 15, 15, 0, 0];
        for (place, bits) in nibbles.into_iter().enumerate() {
            wire.take(ms(3 * place as u64), bits, &mut |input, at| seen.push((input, at)));
        }
        assert_eq!(seen, [(LineInput::Hook(Hook::Off), ms(12)), (LineInput::Hook(Hook::On), ms(21))]);
    }

    #[test]
    fn a_wink_is_as_long_as_it_was_ordered() {
        let mut wire = Wire::new(Coding::EarAndMouth);
        let mut off_hook = Vec::new();
        for n in 0..300 {
            match n {
                10 => wire.show_for(ms(30), LineState::OffHook, Duration::from_millis(200)),
                // The second one is told to stay.
                150 => wire.show_for(ms(450), LineState::OffHook, Duration::from_millis(200)),
                170 => wire.show(LineState::OffHook),
                _ => {}
            }
            off_hook.extend((wire.give(ms(3 * n), &mut |_, _| {}) != 0).then_some(3 * n));
        }
        let first: Vec<_> = off_hook.iter().filter(|at| **at < 400).collect();
        assert_eq!((first[0], first[first.len() - 1]), (&30, &228));
        assert_eq!(off_hook.iter().filter(|at| **at >= 450).count(), 150);
    }

    #[test]
    fn dial_pulses_that_one_wire_sends_another_reads() {
        let (mut ours, mut theirs) = (Wire::new(Coding::EarAndMouth), Wire::new(Coding::EarAndMouth));
        let mut digits = Digits::NONE;
        b"90#1".iter().for_each(|symbol| assert!(digits.push(*symbol)));
        ours.show(LineState::OffHook);
        theirs.listen(true);
        let (mut heard, mut sent) = (Vec::new(), None);
        for n in 0..2000 {
            let now = ms(3 * n);
            if n == 100 {
                ours.send(now, digits);
            }
            let bits = ours.give(now, &mut |input, at| sent = Some((input, at)));
            theirs.take(now, bits, &mut |input, _| heard.extend(matches!(input, LineInput::Digit(..)).then_some(input)));
        }
        assert_eq!(heard, [b'9', b'0', b'1'].map(|digit| LineInput::Digit(DigitKind::Pulse, digit)));
        assert!(sent.is_some_and(|(input, at)| input == LineInput::Sent { failed: false } && at > ms(300 + 2000 + 1400)), "{sent:?}");
    }
}
