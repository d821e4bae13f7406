//! The far ends of simulated channels with channel associated signalling: they seize, wink, answer, send and take digits, release,
//! collide and hang, by order or by themselves. A far end also returns continuity tones.
//!
//! It knows the kind of the channel, not the gateway's machine: it sees what the gateway shows and judges by time, as a switch does.

use crate::proto::base::{EndpointIndex, Time};
use crate::proto::package::ChannelKind;
use crate::proto::package::parameters::{Digits, MfDigit};
use crate::proto::trunk::card::{Behaviour, CheckTone, DigitKind, Echo, FarOrder, Hook, Indication, LineInput, LineOrder, LineState};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// From what the gateway shows to what the far end makes of it.
const REACTION: Duration = ms(100);
/// A wink.
const WINK: Duration = ms(200);
/// A longer off-hook of the gateway is an answer.
const WINK_MAX: Duration = ms(350);
/// An off-hook that begins so soon after its own may be a late wink: it is taken for a seizure when it is longer than one. The answer to
/// what it showed is under way for the delay of both directions of a trunk in packets, and the gateway's wink begins 150 ms behind it.
const LATE_WINK: Duration = ms(1_000);
/// A flash.
const FLASH: Duration = ms(500);
/// A far end that hears no wink for so long sends its digits: the trunk has immediate start.
const NO_WINK: Duration = ms(600);
/// The same of Feature Group D, where there is always a wink: it gives up.
const NO_WINK_EVER: Duration = ms(5_000);
/// A far end of Feature Group D that hears nothing for so long after a string asks for the next, or says that it has all.
const SILENCE: Duration = ms(400);
/// From the last digit to the answer, and from ringing to it.
const ANSWER: Duration = ms(500);
/// How long a far end that collides holds on.
const COLLISION: Duration = ms(1_000);
/// An on-hook of this length ends a call to an operator; a shorter one is a flash.
const OPERATOR_PATIENCE: Duration = ms(1_500);
/// How long it holds a key down, of the time that a digit takes.
const KEY: Duration = ms(70);
/// Delay of an echo.
const ECHO: Duration = ms(20);

/// All far ends of a card.
#[derive(Debug, Default)]
pub struct FarEnds {
    ends: BTreeMap<EndpointIndex, FarEnd>,
    steps: BinaryHeap<Reverse<(Time, u64, EndpointIndex, Step)>>,
    ordinal: u64,
    behaviour: Behaviour,
    echo: Echo,
}

/// What comes when its time has come; the number is that of the plan it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Step {
    Show(u32, bool),
    NextDigit(u32),
    Key(u8, bool),
    Silence(u32),
    Sent(u32),
    Tone(u32, bool, bool),
    PulseEnds,
}

/// Where a call is, as the far end sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Idle,
    /// The gateway called; strings heard so far.
    Called(u8),
    /// It calls: its digits wait for a wink.
    Calling,
    /// It calls, and sends or has sent its digits.
    Dialled,
}

/// One far end.
#[derive(Clone, Debug)]
struct FarEnd {
    kind: ChannelKind,
    behaviour: Option<Behaviour>,
    echo: Option<Echo>,
    phase: Phase,
    /// Off-hook, and since when it is not.
    off: bool,
    on_since: Option<Time>,
    /// What the gateway shows, and since when.
    sees: LineState,
    since: Time,
    /// Until when the gateway shows it, and what it shows then.
    pulse: Option<(Time, LineState)>,
    listens: Option<DigitKind>,
    /// Digits to send, how, and how many are gone.
    digits: Digits,
    digit_kind: DigitKind,
    gone: usize,
    /// The plan the digits are sent in, and when the one on its way has passed; `NEVER` before the first.
    dials: u32,
    dials_until: Time,
    /// Numbers of the present plan, of what the gateway sends, and of the tone.
    plan: u32,
    sending: u32,
    tone: u32,
    /// Whether a tone of the gateway is heard.
    hears_tone: bool,
}

impl FarEnd {
    fn new(kind: ChannelKind) -> FarEnd {
        FarEnd {
            kind,
            behaviour: None,
            echo: None,
            phase: Phase::Idle,
            off: false,
            on_since: None,
            sees: LineState::OnHook,
            since: Time::ZERO,
            pulse: None,
            listens: None,
            digits: Digits::NONE,
            digit_kind: DigitKind::Dtmf,
            gone: 0,
            dials: 0,
            dials_until: Time::ZERO,
            plan: 0,
            sending: 0,
            tone: 0,
            hears_tone: false,
        }
    }
}

impl FarEnd {
    /// More digits behind those that are not gone yet.
    fn append(&mut self, more: Digits) -> Result<(), &'static str> {
        let mut all = Digits::NONE;
        let left = self.digits.as_slice().get(self.gone..).unwrap_or_default();
        if !left.iter().chain(more.as_slice()).all(|&symbol| all.push(symbol)) {
            return Err("the far end has digits to send, and no room for more: try again when they are sent");
        }
        (self.digits, self.gone) = (all, 0);
        Ok(())
    }
}

impl FarEnds {
    /// The far end of `endpoint` on a channel of this kind.
    fn end(&mut self, endpoint: EndpointIndex, kind: ChannelKind) -> &mut FarEnd {
        self.ends.entry(endpoint).or_insert_with(|| FarEnd::new(kind))
    }

    /// All of them behave like this from now on, but for those told otherwise.
    pub fn behave(&mut self, behaviour: Behaviour) {
        self.behaviour = behaviour;
    }

    fn at(&mut self, at: Time, endpoint: EndpointIndex, step: Step) {
        self.ordinal += 1;
        self.steps.push(Reverse((at, self.ordinal, endpoint, step)));
    }

    /// The gateway's first digit of a string is heard, where it is not told by [`LineOrder::Send`]: silence is over.
    pub fn hear_digit(&mut self, endpoint: EndpointIndex) {
        if let Some(end) = self.ends.get_mut(&endpoint) {
            end.plan += u32::from(end.kind == ChannelKind::FeatureGroupD);
        }
    }

    /// The gateway's string is heard to its end.
    pub fn hear_string(&mut self, now: Time, endpoint: EndpointIndex) {
        self.take_string(now, endpoint);
    }

    /// An operator's order. Digits go behind those that are still to be sent.
    ///
    /// # Errors
    /// When there are too many of them.
    pub fn operate(&mut self, now: Time, endpoint: EndpointIndex, kind: ChannelKind, order: &FarOrder) -> Result<(), &'static str> {
        let end = self.end(endpoint, kind);
        match *order {
            FarOrder::Behave(behaviour) => end.behaviour = Some(behaviour),
            FarOrder::Echo(echo) => end.echo = Some(echo),
            FarOrder::Seize(digit_kind, digits) => {
                end.plan += 1;
                (end.phase, end.digits, end.digit_kind, end.gone) = (Phase::Calling, digits, digit_kind, 0);
                let plan = end.plan;
                end.dials = plan;
                self.at(now, endpoint, Step::Show(plan, true));
                let patience = if kind == ChannelKind::FeatureGroupD { NO_WINK_EVER } else { NO_WINK };
                self.at(now + patience, endpoint, Step::NextDigit(plan));
            }
            FarOrder::Digits(digit_kind, digits) => {
                if end.dials == end.plan && (end.phase == Phase::Calling || now < end.dials_until) {
                    return end.append(digits);
                }
                end.plan += 1;
                (end.digits, end.digit_kind, end.gone) = (digits, digit_kind, 0);
                let plan = end.plan;
                (end.dials, end.dials_until) = (plan, Time::NEVER);
                self.at(now, endpoint, Step::NextDigit(plan));
            }
            FarOrder::Show(hook) => {
                end.plan += 1;
                let plan = end.plan;
                self.at(now, endpoint, Step::Show(plan, hook == Hook::Off));
            }
            FarOrder::Hold(key, ms) => {
                self.at(now, endpoint, Step::Key(key, true));
                self.at(now + Duration::from_millis(ms.into()), endpoint, Step::Key(key, false));
            }
            FarOrder::Wink => self.pulse(now, endpoint, true, WINK),
            FarOrder::Flash => self.pulse(now, endpoint, false, FLASH),
        }
        Ok(())
    }

    fn pulse(&mut self, now: Time, endpoint: EndpointIndex, off: bool, length: Duration) {
        let plan = self.ends.get(&endpoint).map_or(0, |end| end.plan);
        self.at(now, endpoint, Step::Show(plan, off));
        self.at(now + length, endpoint, Step::Show(plan, !off));
    }

    /// An order of the gateway to the line.
    pub fn handle(&mut self, now: Time, endpoint: EndpointIndex, kind: ChannelKind, order: &LineOrder) {
        let end = self.end(endpoint, kind);
        match *order {
            LineOrder::Listen(listens) => end.listens = listens,
            LineOrder::Send(how, digits) => {
                end.sending += 1;
                // Silence is over.
                end.plan += u32::from(end.kind == ChannelKind::FeatureGroupD);
                let sending = end.sending;
                self.at(now + length(how, digits.as_slice()), endpoint, Step::Sent(sending));
            }
            LineOrder::StopSending => end.sending += 1,
            LineOrder::Show(state) => self.show(now, endpoint, state, None),
            LineOrder::Pulse(state, length) => {
                self.show(now, endpoint, state, Some(now + length));
                self.at(now + length, endpoint, Step::PulseEnds);
            }
        }
    }

    /// The gateway shows this, until then when it is a pulse.
    fn show(&mut self, now: Time, endpoint: EndpointIndex, state: LineState, until: Option<Time>) {
        self.end_pulse(now, endpoint);
        let Some(end) = self.ends.get_mut(&endpoint) else { return };
        let before = end.pulse.map_or(end.sees, |(_, before)| before);
        end.pulse = until.map(|until| (until, before));
        self.show_now(now, endpoint, state);
    }

    fn show_now(&mut self, now: Time, endpoint: EndpointIndex, state: LineState) {
        let Some(end) = self.ends.get_mut(&endpoint) else { return };
        let before = std::mem::replace(&mut end.sees, state);
        if before != state {
            let lasted = now.since(std::mem::replace(&mut end.since, now));
            self.see(now, endpoint, state, lasted);
        }
    }

    /// Ends a pulse of the gateway whose time has come, at that time.
    fn end_pulse(&mut self, now: Time, endpoint: EndpointIndex) {
        let pulse = self.ends.get_mut(&endpoint).and_then(|end| end.pulse.take_if(|(until, _)| *until <= now));
        if let Some((until, before)) = pulse {
            self.show_now(until, endpoint, before);
        }
    }

    /// What the gateway shows has changed; what it showed before lasted so long.
    fn see(&mut self, now: Time, endpoint: EndpointIndex, state: LineState, lasted: Duration) {
        let default = self.behaviour;
        let Some(end) = self.ends.get_mut(&endpoint) else { return };
        let behaviour = end.behaviour.unwrap_or(default);
        if behaviour == Behaviour::Manual {
            return;
        }
        let line = end.kind == ChannelKind::PbxFxs;
        match (state, end.phase) {
            (LineState::Ringing, _) if behaviour == Behaviour::Answers && !end.off => {
                end.plan += 1;
                let plan = end.plan;
                self.at(now + ANSWER, endpoint, Step::Show(plan, true));
            }
            (LineState::OnHook, Phase::Idle) if line => end.plan += 1,
            // Nobody answers when the ringing has ended.
            (LineState::OffHook, Phase::Idle) if line && !end.off => end.plan += 1,
            (LineState::OffHook, Phase::Idle) if !line && !end.off => self.called(now, endpoint, behaviour),
            (LineState::OffHook, Phase::Called(_)) => end.plan += u32::from(end.kind == ChannelKind::Operator),
            // Both ends are on-hook: it is over, whatever it was.
            (LineState::OnHook, Phase::Called(_) | Phase::Calling | Phase::Dialled) if !end.off => {
                end.plan += 1;
                end.phase = Phase::Idle;
            }
            // It has everything, or asks for more; elsewhere a wink that comes late.
            (LineState::OnHook, Phase::Dialled) if lasted <= WINK_MAX => {}
            (LineState::OnHook, Phase::Called(_) | Phase::Dialled) => {
                end.plan += 1;
                let plan = end.plan;
                if !matches!(behaviour, Behaviour::Hangs | Behaviour::Holds) {
                    let patience = if end.kind == ChannelKind::Operator { OPERATOR_PATIENCE } else { REACTION };
                    self.at(now + patience, endpoint, Step::Show(plan, false));
                }
            }
            // The end of the gateway's wink.
            (LineState::OnHook, Phase::Calling) => {
                end.plan += 1;
                end.phase = Phase::Dialled;
                let plan = end.plan;
                (end.dials, end.dials_until) = (plan, Time::NEVER);
                self.at(now + REACTION, endpoint, Step::NextDigit(plan));
            }
            _ => {}
        }
    }

    /// The gateway has seized.
    fn called(&mut self, now: Time, endpoint: EndpointIndex, behaviour: Behaviour) {
        let Some(end) = self.ends.get_mut(&endpoint) else { return };
        end.plan += 1;
        end.phase = Phase::Called(0);
        let plan = end.plan;
        let may_be_wink = end.on_since.is_some_and(|since| now.since(since) < LATE_WINK);
        match behaviour {
            Behaviour::Answers | Behaviour::NoAnswer | Behaviour::Hangs => {
                let sure = now + if may_be_wink { WINK_MAX } else { REACTION };
                self.at(sure, endpoint, Step::Show(plan, true));
                self.at(sure + WINK, endpoint, Step::Show(plan, false));
            }
            Behaviour::Collides => {
                self.at(now, endpoint, Step::Show(plan, true));
                self.at(now + COLLISION, endpoint, Step::Show(plan, false));
            }
            Behaviour::Holds => self.at(now, endpoint, Step::Show(plan, true)),
            Behaviour::Silent | Behaviour::Manual => {}
        }
    }

    /// The gateway's string has come.
    fn take_string(&mut self, now: Time, endpoint: EndpointIndex) {
        let default = self.behaviour;
        let Some(end) = self.ends.get_mut(&endpoint) else { return };
        let Phase::Called(strings) = end.phase else { return };
        end.phase = Phase::Called(strings.saturating_add(1));
        end.plan += 1;
        let plan = end.plan;
        let answers = matches!(end.behaviour.unwrap_or(default), Behaviour::Answers | Behaviour::Hangs | Behaviour::Collides);
        match end.kind {
            ChannelKind::FeatureGroupD => self.at(now + SILENCE, endpoint, Step::Silence(plan)),
            ChannelKind::Operator if strings > 0 => {}
            _ if answers => self.at(now + ANSWER, endpoint, Step::Show(plan, true)),
            _ => {}
        }
    }

    /// The next thing that is due; steps that no longer count are passed over.
    pub fn poll(&mut self, now: Time) -> Option<Indication> {
        while let Some(Reverse((at, ..))) = self.steps.peek()
            && *at <= now
        {
            let Reverse((at, _, endpoint, step)) = self.steps.pop()?;
            if let Some(input) = self.take(at, endpoint, step) {
                return Some(Indication::Line { endpoint, input, at });
            }
        }
        None
    }

    fn take(&mut self, now: Time, endpoint: EndpointIndex, step: Step) -> Option<LineInput> {
        self.end_pulse(now, endpoint);
        let default = self.behaviour;
        let end = self.ends.get_mut(&endpoint)?;
        match step {
            Step::Show(plan, off) if plan == end.plan => {
                if !off && end.sees == LineState::OnHook {
                    end.phase = Phase::Idle;
                }
                if end.off == off {
                    return None;
                }
                end.off = off;
                end.on_since = (!off).then_some(now);
                Some(LineInput::Hook(if off { Hook::Off } else { Hook::On }))
            }
            Step::NextDigit(plan) if plan == end.plan => {
                if end.phase == Phase::Calling {
                    end.phase = Phase::Dialled;
                }
                end.dials_until = now;
                let symbol = *end.digits.as_slice().get(end.gone)?;
                end.gone += 1;
                let (kind, needs_receiver) = (end.digit_kind, end.digit_kind != DigitKind::Dtmf);
                let taken = !needs_receiver || end.listens == Some(kind);
                let until = now + length(kind, &[symbol]);
                end.dials_until = until;
                if kind == DigitKind::Dtmf {
                    self.at(now + KEY, endpoint, Step::Key(symbol, false));
                }
                self.at(until, endpoint, Step::NextDigit(plan));
                taken.then_some(LineInput::Digit(kind, symbol))
            }
            Step::Key(key, true) => Some(LineInput::Digit(DigitKind::Dtmf, key)),
            Step::Key(key, false) => Some(LineInput::KeyUp(key)),
            // Either it wants the next string or has the last: both are a wink. Then the call is answered.
            Step::Silence(plan) if plan == end.plan => {
                let answers = matches!(end.behaviour.unwrap_or(default), Behaviour::Answers | Behaviour::Hangs);
                let Phase::Called(strings) = end.phase else { return None };
                self.at(now + WINK, endpoint, Step::Show(plan, false));
                if answers && strings > 1 {
                    self.at(now + WINK + ANSWER, endpoint, Step::Show(plan, true));
                }
                let end = self.ends.get_mut(&endpoint)?;
                end.off = true;
                Some(LineInput::Hook(Hook::Off))
            }
            Step::Sent(sending) if sending == end.sending => {
                self.take_string(now, endpoint);
                Some(LineInput::Sent { failed: false })
            }
            Step::Tone(tone, co1, on) if tone == end.tone => {
                Some(LineInput::Tone { tone: if co1 { CheckTone::Co1 } else { CheckTone::Co2 }, on })
            }
            _ => None,
        }
    }

    /// The gateway begins or ends a check tone.
    pub fn handle_tone(&mut self, now: Time, endpoint: EndpointIndex, kind: ChannelKind, tone: CheckTone, on: bool) {
        let default = self.echo;
        let end = self.end(endpoint, kind);
        if std::mem::replace(&mut end.hears_tone, on) == on {
            return;
        }
        let returned = match (end.echo.unwrap_or(default), tone) {
            (Echo::Open, _) => return,
            (Echo::Stuck, _) if !on => return,
            (Echo::Transponder, CheckTone::Co1) => CheckTone::Co2,
            (Echo::Transponder, CheckTone::Co2) => CheckTone::Co1,
            (Echo::Loop | Echo::Stuck, tone) => tone,
        };
        end.tone += u32::from(on);
        let number = end.tone;
        self.at(now + ECHO, endpoint, Step::Tone(number, returned == CheckTone::Co1, on));
    }

    /// When to poll again.
    pub fn deadline(&self) -> Time {
        self.steps.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at)
    }
}

/// How long digits take: tone and gap, 68 ms each for MF and 100 ms for its KP; 70 ms each for DTMF; 10 pulses a second and 700 ms
/// between digits.
fn length(kind: DigitKind, symbols: &[u8]) -> Duration {
    symbols
        .iter()
        .map(|&symbol| match (kind, symbol) {
            (DigitKind::Mf, symbol) if MfDigit::is_kp(symbol) => ms(168),
            (DigitKind::Mf, _) => ms(136),
            (DigitKind::Dtmf, _) => ms(140),
            (DigitKind::Pulse, digit @ b'1'..=b'9') => ms(700 + 100 * u64::from(digit - b'0')),
            (DigitKind::Pulse, _) => ms(1_700),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: EndpointIndex = EndpointIndex(0);

    /// When it shows what, in ms, until then.
    fn shown(ends: &mut FarEnds, until: u64) -> Vec<(u64, Hook)> {
        let hook = |indication| match indication {
            Indication::Line { input: LineInput::Hook(hook), at, .. } => Some((at.0 / 1_000_000, hook)),
            _ => None,
        };
        std::iter::from_fn(|| ends.poll(Time::from_millis(until))).filter_map(hook).collect()
    }

    fn show(ends: &mut FarEnds, at: u64, state: LineState) {
        ends.handle(Time::from_millis(at), AT, ChannelKind::CasMf, &LineOrder::Show(state));
    }

    /// Over a trunk in packets what it sees of the gateway is a tenth of a second old.
    #[test]
    fn the_wink_that_answers_its_own_is_no_call_however_late_it_comes() {
        for late in [160, 230, 500] {
            let mut ends = FarEnds::default();
            ends.operate(Time::ZERO, AT, ChannelKind::CasMf, &FarOrder::Wink).unwrap();
            assert_eq!(shown(&mut ends, late), [(0, Hook::Off), (200, Hook::On)][..if late < 200 { 1 } else { 2 }]);
            show(&mut ends, late, LineState::OffHook);
            shown(&mut ends, late + 199);
            show(&mut ends, late + 200, LineState::OnHook);
            assert_eq!(shown(&mut ends, 3_000), [], "{late}");
        }
    }

    /// What the gateway shows comes late over a trunk in packets: also when the far end has hung up again.
    #[test]
    fn a_line_answers_only_while_it_rings() {
        for at_rest in [LineState::OnHook, LineState::OffHook] {
            let mut ends = FarEnds::default();
            let mut see = |at, state| ends.handle(Time::from_millis(at), AT, ChannelKind::PbxFxs, &LineOrder::Show(state));
            see(100, LineState::Ringing);
            see(160, at_rest);
            assert_eq!(shown(&mut ends, 3_000), [], "{at_rest:?}");
            ends.handle(Time::from_millis(3_000), AT, ChannelKind::PbxFxs, &LineOrder::Show(LineState::Ringing));
            assert_eq!(shown(&mut ends, 4_000), [(3_500, Hook::Off)], "{at_rest:?}");
        }
    }

    #[test]
    fn a_call_that_comes_soon_after_the_last_is_winked_at_when_it_is_sure_to_be_one() {
        let mut ends = FarEnds::default();
        ends.operate(Time::ZERO, AT, ChannelKind::CasMf, &FarOrder::Wink).unwrap();
        shown(&mut ends, 200);
        show(&mut ends, 300, LineState::OffHook);
        assert_eq!(shown(&mut ends, 2_000), [(650, Hook::Off), (850, Hook::On)]);
        show(&mut ends, 2_000, LineState::OnHook);
        show(&mut ends, 3_000, LineState::OffHook);
        assert_eq!(shown(&mut ends, 4_000), [(3_100, Hook::Off), (3_300, Hook::On)]);
    }
}
