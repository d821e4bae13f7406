//! The machine of one CAS trunk: MS, DT, MD and MO (RFC 3064 2.7, 3, 4.1; tables A to D of the CAS rows).

use super::{Debounced, Direction, Fault, Order, Output, Outputs, Signalling, State, Times};
use crate::proto::base::Time;
use crate::proto::package::ChannelKind;
use crate::proto::package::parameters::{Digits, MfDigit, Setup};
use crate::proto::trunk::{DigitKind, EventText, Hook, LineState};
use std::time::Duration;

/// The most strings of a set-up: country, identity, address.
const STRINGS: usize = 3;

/// Causes of `rel` (RFC 3064 table 12).
const NORMAL: &[u8] = b"0";
pub(super) const NO_CIRCUIT: &[u8] = b"44";
pub(super) const PROTOCOL: &[u8] = b"111";

/// What the agent ordered, and is told the end of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Work {
    /// `sup`.
    SetUp,
    /// `inf`.
    Digits,
}

/// One trunk. See the page of [`super`].
#[derive(Clone, Debug)]
pub(super) struct Trunk {
    signalling: Signalling,
    state: State,
    /// What we show.
    shows: Hook,
    /// What the far end shows.
    sees: Debounced,
    /// When the state has lasted too long.
    guard: Time,
    /// When the wink or flash we send ends.
    pulse: Time,
    /// Whether the call is theirs.
    incoming: bool,
    /// When it may be seized again.
    rested: Time,
    /// The strings to send, those sent already left out, and what the first waits for.
    strings: [Digits; STRINGS],
    /// When the first digit was begun; [`Time::NEVER`] before.
    began: Time,
    /// Whether a wink asks for the second string.
    tandem: bool,
    /// The signal whose work is going on.
    work: Option<Work>,
    /// MF digits that came, from the latest KP on.
    heard: Digits,
}

impl Trunk {
    /// An idle trunk.
    pub fn new(signalling: Signalling) -> Trunk {
        Trunk {
            signalling,
            state: State::Idle,
            shows: Hook::On,
            sees: Debounced::ON,
            guard: Time::NEVER,
            pulse: Time::NEVER,
            incoming: false,
            rested: Time::ZERO,
            strings: [Digits::NONE; STRINGS],
            began: Time::NEVER,
            tandem: false,
            work: None,
            heard: Digits::NONE,
        }
    }

    /// What it waits for.
    pub fn state(&self) -> State {
        self.state
    }

    /// When the state has lasted too long.
    pub fn limit(&self) -> Time {
        self.guard
    }

    /// The hook of the far end.
    pub fn far_hook(&self) -> Hook {
        self.sees.raw
    }

    /// Whether neither end has seized it.
    pub fn is_on_hook(&self) -> bool {
        self.shows == Hook::On && self.sees.hook == Hook::On
    }

    /// Whether the state that this event reports is the present one.
    pub fn holds(&self, event: &str) -> bool {
        match event {
            "rlc" => self.state == State::Idle,
            // On a trunk for calls out a far end that holds the line is that, whatever it held it for at first.
            "bl" | "rbz" => match self.state {
                State::Lockout => self.signalling.direction == Direction::Outgoing,
                state => matches!(state, State::Blocking | State::Blocked),
            },
            "sup" => !matches!(self.state, State::Idle | State::Blocking | State::Blocked | State::Lockout | State::Out),
            _ => false,
        }
    }

    /// When to call [`Trunk::handle_time`].
    pub fn deadline(&self) -> Time {
        self.guard.min(self.pulse).min(self.sees.due)
    }

    /// Lets time pass.
    pub fn handle_time(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        if self.pulse <= now {
            self.pulse = Time::NEVER;
            self.end_pulse(now, times, out);
        }
        if self.sees.settle(now) {
            match self.sees.hook {
                Hook::Off => self.far_off_hook(now, times, out),
                Hook::On => self.far_on_hook(now, times, out),
            }
        }
        if self.guard <= now {
            self.guard = Time::NEVER;
            self.expire(now, times, out);
        }
    }

    /// The card sees this hook.
    pub fn handle_hook(&mut self, now: Time, hook: Hook, times: &Times, out: Outputs<'_>) {
        let steady = match hook {
            // A wink may come, so what is steady is longer than one.
            Hook::Off if self.may_be_winked() => times.wink_max,
            Hook::Off => times.hook_min,
            Hook::On if self.signalling.kind == ChannelKind::Operator && self.state == State::Answered => times.wink_max,
            Hook::On => times.release_min,
        };
        if let Some(lasted) = self.sees.see(now, hook, steady)
            && (times.wink_min..=times.wink_max).contains(&lasted)
        {
            match hook {
                Hook::On => self.winked(now, times, out),
                Hook::Off if self.signalling.kind == ChannelKind::Operator && self.state == State::Answered => event(out, "orbk"),
                Hook::Off => {}
            }
        }
    }

    fn may_be_winked(&self) -> bool {
        matches!(self.state, State::AwaitWink | State::AwaitNextWink | State::AwaitAnswer | State::Sending | State::DigitDelay)
    }

    /// A digit came.
    pub fn handle_digit(&mut self, now: Time, kind: DigitKind, symbol: u8, times: &Times, out: Outputs<'_>) {
        let own = (kind == DigitKind::Mf) == (self.signalling.digits() == DigitKind::Mf);
        if own && self.incoming && matches!(self.state, State::Seized | State::Winking) {
            // The far end does not wait for our wink, or no longer: the receiver is attached, and what is dialled counts.
            self.pulse = Time::NEVER;
            self.end_pulse(now, times, out);
            self.enter(State::Collecting, now + times.first_digit);
        }
        if !own || !self.incoming || !matches!(self.state, State::Collecting | State::AwaitAgent) {
            return;
        }
        if kind != DigitKind::Mf {
            // Its digits are events of package D; the agent says when there are enough.
            return self.enter(State::AwaitAgent, now + times.answer);
        }
        if MfDigit::is_kp(symbol) {
            self.heard.clear();
        } else if self.heard.is_empty() {
            return;
        }
        if !self.heard.push(symbol) {
            return self.fail(now, PROTOCOL, times, out);
        }
        if MfDigit::is_st(symbol) {
            return self.report_digits(now, times, out);
        }
        self.enter(State::Collecting, now + times.between_digits);
    }

    /// The string is complete, or as long as it gets (C4, C5).
    fn report_digits(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        let mut text = EventText::NONE;
        for (n, symbol) in self.heard.as_slice().iter().enumerate() {
            text.push(if n == 0 { b"" } else { b"," });
            text.push(MfDigit::name(*symbol).as_bytes());
        }
        self.heard.clear();
        self.enter(State::AwaitAgent, now + times.answer);
        out(Output::Event("inf", text));
    }

    /// The digits we sent are out, or could not be sent.
    pub fn handle_sent(&mut self, now: Time, failed: bool, times: &Times, out: Outputs<'_>) {
        if self.state != State::Sending {
            return;
        }
        if failed {
            return self.fail(now, PROTOCOL, times, out);
        }
        self.strings.rotate_left(1);
        let [next, _, last] = &mut self.strings;
        last.clear();
        if !next.is_empty() {
            return match self.signalling.kind {
                ChannelKind::Operator if self.sees.hook == Hook::On => self.enter(State::AwaitOffHook, now + times.wink_limit),
                ChannelKind::Operator => {
                    event(out, "ans");
                    self.enter(State::DigitDelay, now + times.digit_delay);
                }
                ChannelKind::FeatureGroupD if std::mem::take(&mut self.tandem) => {
                    self.enter(State::AwaitNextWink, now + times.wink_limit);
                }
                _ => self.enter(State::DigitDelay, now + times.digit_delay),
            };
        }
        self.end_work(false, out);
        if self.signalling.kind == ChannelKind::Operator {
            return self.enter(State::Answered, Time::NEVER);
        }
        self.enter(State::AwaitAnswer, now + times.answer);
        if self.sees.hook == Hook::Off {
            self.answered(out);
        }
    }

    /// Whether `order` would be carried out.
    pub fn check(&self, order: &Order) -> Result<(), Fault> {
        let outgoing = !self.incoming;
        let may = match order {
            Order::Setup(_) => match self.state {
                State::Idle if self.sees.raw == Hook::Off => return Err(Fault::OffHook),
                State::Idle => self.signalling.direction != Direction::Incoming,
                State::Blocked | State::Lockout => return Err(Fault::OffHook),
                // A call of theirs, however far it is (G-QUA-22).
                _ if self.incoming && self.sees.raw == Hook::Off => return Err(Fault::OffHook),
                _ => false,
            },
            Order::Block => self.state == State::Blocking || self.state == State::Idle && self.signalling.direction == Direction::Incoming,
            Order::Answer => self.incoming && matches!(self.state, State::Collecting | State::AwaitAgent | State::Talking),
            Order::AcknowledgeWink | Order::ContinueWink => {
                self.incoming && matches!(self.state, State::Collecting | State::AwaitAgent) && self.pulse == Time::NEVER
            }
            Order::Suspend => match self.signalling.kind {
                ChannelKind::Operator => matches!(self.state, State::Answered | State::OnHold),
                _ => matches!(self.state, State::Talking | State::OnHold),
            },
            Order::Resume => matches!(self.state, State::OnHold | State::Talking) || self.is_up_to_operator(),
            Order::Digits(_) => outgoing && matches!(self.state, State::AwaitAnswer),
            Order::Recall => self.is_up_to_operator() && self.pulse == Time::NEVER,
            Order::ReleaseComplete => {
                matches!(self.state, State::Idle | State::AwaitRelease | State::Releasing | State::GlareHold | State::Lockout)
            }
            Order::Release => self.state != State::Out,
            Order::Ring => false,
        };
        if may { Ok(()) } else { Err(Fault::State) }
    }

    fn is_up_to_operator(&self) -> bool {
        self.signalling.kind == ChannelKind::Operator && self.state == State::Answered
    }

    /// Carries `order` out, if [`Trunk::check`] allows it.
    pub fn handle_order(&mut self, now: Time, order: &Order, times: &Times, out: Outputs<'_>) -> Result<(), Fault> {
        self.check(order)?;
        match order {
            Order::Setup(setup) => self.set_up(now, setup, times, out),
            Order::Block => {
                self.show(Hook::Off, out);
                self.enter(State::Blocking, Time::NEVER);
            }
            Order::Answer => {
                self.show(Hook::Off, out);
                out(Output::Listen(false));
                self.pulse = Time::NEVER;
                self.enter(State::Talking, Time::NEVER);
            }
            Order::AcknowledgeWink => self.wink(now, times, out),
            Order::ContinueWink => {
                self.wink(now, times, out);
                self.enter(State::Collecting, now + times.first_digit);
            }
            Order::Suspend => {
                self.show(Hook::On, out);
                self.pulse = Time::NEVER;
                // An operator keeps the call as long as it wants (MO.07).
                let operator = self.signalling.kind == ChannelKind::Operator;
                self.enter(State::OnHold, if operator { Time::NEVER } else { now + times.answer });
            }
            Order::Resume => {
                self.show(Hook::Off, out);
                self.enter(if self.incoming { State::Talking } else { State::Answered }, Time::NEVER);
            }
            Order::Digits(digits) => {
                self.strings = [*digits, Digits::NONE, Digits::NONE];
                self.work = Some(Work::Digits);
                self.send(now, times, out);
            }
            Order::Recall => {
                self.show_for(now, Hook::On, times.flash, out);
            }
            Order::ReleaseComplete => {
                if self.state == State::AwaitRelease {
                    self.hang_up(now, times, out);
                    if self.sees.hook == Hook::On {
                        self.idle(now, times, out);
                    }
                }
            }
            Order::Release => self.release(now, times, out),
            Order::Ring => {}
        }
        Ok(())
    }

    /// A1, A2, D1.
    fn set_up(&mut self, now: Time, setup: &Setup, times: &Times, out: Outputs<'_>) {
        self.incoming = false;
        self.work = Some(Work::SetUp);
        self.began = Time::NEVER;
        self.tandem = setup.tandem == Some(true) && !setup.country.is_empty();
        let strings = match self.signalling.kind {
            ChannelKind::Operator => [setup.address, setup.identity, Digits::NONE],
            ChannelKind::FeatureGroupD if self.tandem => [setup.country, setup.identity, setup.address],
            ChannelKind::FeatureGroupD => [setup.identity, setup.address, Digits::NONE],
            _ => [setup.address, Digits::NONE, Digits::NONE],
        };
        self.strings = strings;
        if now < self.rested {
            self.enter(State::Resting, self.rested);
        } else {
            self.seize(now, times, out);
        }
    }

    fn seize(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        self.show(Hook::Off, out);
        if self.signalling.wink_start {
            self.enter(State::AwaitWink, now + times.wink_limit);
        } else {
            self.enter(State::DigitDelay, now + times.digit_delay);
        }
    }

    fn send(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        self.began = self.began.min(now);
        self.enter(State::Sending, now + times.sending);
        if let Some(digits) = self.strings.first() {
            out(Output::Send(*digits));
        }
    }

    /// A15, B2, C14, D9. It is answered by `rlc` when both ends are on-hook.
    fn release(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        match self.state {
            State::Idle => event(out, "rlc"),
            State::Blocking => {
                self.show(Hook::On, out);
                event(out, "rlc");
                self.idle(now, times, out);
            }
            // The far end is to move first: on-hook now might look like a wink (RFC 3064 4.1).
            State::GlareHold | State::Releasing | State::Lockout | State::Blocked | State::Out => {}
            _ => {
                self.hang_up(now, times, out);
                if self.sees.hook == Hook::On {
                    event(out, "rlc");
                    self.idle(now, times, out);
                }
            }
        }
    }

    /// On-hook at our end; the far end's is waited for.
    fn hang_up(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        if matches!(self.state, State::Sending) {
            out(Output::StopSending);
        }
        out(Output::Listen(false));
        self.work = None;
        self.show(Hook::On, out);
        self.pulse = Time::NEVER;
        self.enter(State::Releasing, now + times.guard);
    }

    /// Back to idle: what the far end has begun meanwhile is seen now.
    fn idle(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        self.incoming = false;
        self.heard.clear();
        self.strings = [Digits::NONE; STRINGS];
        self.rested = now + times.rest;
        self.enter(State::Idle, Time::NEVER);
        if self.sees.hook == Hook::Off {
            self.far_off_hook(now, times, out);
        }
    }

    /// Ends the call as far as it is in hand: everything on-hook, no report (`free`, out of service). A far end that is off-hook has the
    /// usual time to see that the call is over; one that holds the line already does so still.
    pub fn reset(&mut self, now: Time, in_service: bool, times: &Times, out: Outputs<'_>) {
        out(Output::StopSending);
        out(Output::Listen(false));
        let signalling = self.signalling;
        let (before, sees) = (self.state, self.sees);
        let sees = Debounced { hook: sees.raw, due: Time::NEVER, ..sees };
        *self = Trunk { sees, rested: now + times.rest, ..Trunk::new(signalling) };
        out(Output::Show(LineState::OnHook));
        match (in_service, sees.raw, before) {
            (false, ..) => self.enter(State::Out, Time::NEVER),
            (true, Hook::On, _) => self.enter(State::Idle, Time::NEVER),
            (true, Hook::Off, State::Lockout | State::Blocked) => self.enter(before, Time::NEVER),
            (true, Hook::Off, _) => self.enter(State::Releasing, now + times.guard),
        }
    }

    fn far_off_hook(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        match self.state {
            State::Idle if self.signalling.direction == Direction::Outgoing => {
                self.enter(State::Blocked, Time::NEVER);
                event(out, if self.signalling.kind == ChannelKind::Operator { "rbz" } else { "bl" });
            }
            State::Idle => {
                self.incoming = true;
                out(Output::Listen(true));
                event(out, "sup");
                if self.signalling.wink_start {
                    self.enter(State::Seized, now + times.wink_delay);
                } else {
                    self.enter(State::Collecting, now + times.first_digit);
                }
            }
            // We have not seized yet, so the far end's call, or its block, wins.
            State::Resting => {
                self.end_work(true, out);
                out(Output::Event("rel", EventText::new(NO_CIRCUIT)));
                self.idle(now, times, out);
            }
            State::DigitDelay if self.signalling.wink_start => {}
            State::AwaitWink | State::DigitDelay => self.collide(now, times, out),
            // Where no wink comes, what began before the first digit is no answer to it.
            State::Sending | State::AwaitAnswer if !self.signalling.wink_start && self.sees.since < self.began => {
                self.collide(now, times, out);
            }
            State::AwaitNextWink => self.fail(now, PROTOCOL, times, out),
            State::AwaitOffHook => {
                event(out, "ans");
                self.enter(State::DigitDelay, now + times.digit_delay);
            }
            State::AwaitAnswer => self.answered(out),
            State::Suspended => {
                self.enter(State::Answered, Time::NEVER);
                event(out, "res");
            }
            _ => {}
        }
    }

    fn answered(&mut self, out: Outputs<'_>) {
        self.enter(State::Answered, Time::NEVER);
        event(out, "ans");
    }

    /// Both ends have seized the trunk (RFC 3064 4.1, table 12).
    fn collide(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        if self.state == State::Sending {
            out(Output::StopSending);
        }
        match self.state {
            _ if self.signalling.yields => self.yield_line(now, times, out),
            // All digits went nowhere, and the agent was told that they are sent.
            State::AwaitAnswer => self.fail(now, NO_CIRCUIT, times, out),
            _ => self.enter(State::Glare, now + times.glare),
        }
    }

    /// A10: the far end's call wins. It sees us go on-hook and sends its digits, so there is no wink any more.
    fn yield_line(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        self.show(Hook::On, out);
        self.end_work(true, out);
        out(Output::Event("rel", EventText::new(NO_CIRCUIT)));
        self.incoming = true;
        self.heard.clear();
        out(Output::Listen(true));
        event(out, "sup");
        self.enter(State::Collecting, now + times.first_digit);
    }

    fn far_on_hook(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        match self.state {
            State::Glare => {
                self.began = Time::NEVER;
                self.enter(State::DigitDelay, now + times.digit_delay);
            }
            State::GlareHold => {
                self.show(Hook::On, out);
                event(out, "rlc");
                self.idle(now, times, out);
            }
            State::Releasing | State::Lockout | State::Blocked => {
                event(out, "rlc");
                self.idle(now, times, out);
            }
            State::Answered if self.signalling.kind == ChannelKind::Operator => self.far_released(now, times, out),
            State::OnHold if !self.incoming => self.far_released(now, times, out),
            State::Sending | State::DigitDelay if self.signalling.kind == ChannelKind::Operator => self.fail(now, PROTOCOL, times, out),
            State::Answered => {
                self.enter(State::Suspended, now + times.answer);
                event(out, "sus");
            }
            State::Seized | State::Winking | State::Collecting | State::AwaitAgent | State::Talking | State::OnHold => {
                self.far_released(now, times, out);
            }
            _ => {}
        }
    }

    /// The end that controls the call has released it (C10, D7).
    fn far_released(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        if self.pulse != Time::NEVER {
            self.pulse = Time::NEVER;
            // The wink or flash we are sending ends with what it is part of.
            self.show(if self.incoming { Hook::On } else { Hook::Off }, out);
        }
        out(Output::Listen(false));
        self.enter(State::AwaitRelease, now + times.release);
        out(Output::Event("rel", EventText::new(NORMAL)));
    }

    /// The far end winked.
    fn winked(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        match self.state {
            State::AwaitWink => {
                if matches!(self.signalling.kind, ChannelKind::FeatureGroupD | ChannelKind::Operator) {
                    event(out, "swk");
                }
                self.enter(State::DigitDelay, now + times.digit_delay);
            }
            State::AwaitNextWink => self.enter(State::DigitDelay, now + times.digit_delay),
            State::AwaitAnswer if self.signalling.kind == ChannelKind::FeatureGroupD => event(out, "awk"),
            _ => {}
        }
    }

    fn wink(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        self.show_for(now, Hook::Off, times.wink, out);
    }

    fn end_pulse(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        // Our hook returns to what it was: on-hook before answer, off-hook towards an operator.
        self.show(if self.incoming { Hook::On } else { Hook::Off }, out);
        if self.state == State::Winking {
            self.enter(State::Collecting, now + times.first_digit);
        }
    }

    /// The state has lasted too long.
    fn expire(&mut self, now: Time, times: &Times, out: Outputs<'_>) {
        match self.state {
            // What the far end shows may be its seizure, and counts in a moment.
            State::Resting if self.sees.raw == Hook::Off => self.enter(State::Resting, now + times.hook_min),
            State::Resting => self.seize(now, times, out),
            State::DigitDelay => self.send(now, times, out),
            State::Seized => {
                self.wink(now, times, out);
                self.enter(State::Winking, Time::NEVER);
            }
            State::Collecting if !self.heard.is_empty() => self.report_digits(now, times, out),
            State::Glare => {
                self.end_work(true, out);
                self.enter(State::GlareHold, now + times.glare_hold);
                out(Output::Event("rel", EventText::new(NO_CIRCUIT)));
            }
            State::GlareHold => self.hang_up(now, times, out),
            State::AwaitRelease => {
                self.hang_up(now, times, out);
                if self.sees.hook == Hook::On {
                    event(out, "rlc");
                    self.idle(now, times, out);
                }
            }
            State::Releasing => self.enter(State::Lockout, Time::NEVER),
            _ => self.fail(now, PROTOCOL, times, out),
        }
    }

    /// The call cannot go on (A11, A13, C15); the agent is to release it.
    fn fail(&mut self, now: Time, cause: &[u8], times: &Times, out: Outputs<'_>) {
        if self.state == State::Sending {
            out(Output::StopSending);
        }
        out(Output::Listen(false));
        self.end_work(true, out);
        self.enter(State::AwaitRelease, now + times.release);
        out(Output::Event("rel", EventText::new(cause)));
    }

    fn end_work(&mut self, failed: bool, out: Outputs<'_>) {
        if let Some(work) = self.work.take() {
            let signal = if work == Work::SetUp { "sup" } else { "inf" };
            out(Output::Ended { signal, failed });
        }
    }

    fn show(&mut self, hook: Hook, out: Outputs<'_>) {
        // A pulse ends by itself, unless it is told to stay.
        if self.shows != hook || self.pulse != Time::NEVER {
            self.shows = hook;
            out(Output::Show(line_state(hook)));
        }
    }

    /// A wink or a flash. The card ends it; what follows here waits as long.
    fn show_for(&mut self, now: Time, hook: Hook, length: Duration, out: Outputs<'_>) {
        if self.shows != hook {
            self.shows = hook;
            out(Output::Pulse(line_state(hook), length));
        }
        self.pulse = now + length;
    }

    fn enter(&mut self, state: State, guard: Time) {
        self.state = state;
        self.guard = guard;
    }
}

fn line_state(hook: Hook) -> LineState {
    if hook == Hook::Off { LineState::OffHook } else { LineState::OnHook }
}

fn event(out: Outputs<'_>, name: &'static str) {
    out(Output::Event(name, EventText::NONE));
}

#[cfg(test)]
mod tests;
