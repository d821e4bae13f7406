//! The machine of one line of a PBX: BL (RFC 3064 2.3, 4.2; table E of the CAS rows).

use super::{Debounced, Fault, Order, Output, Outputs, Signalling, State, Times};
use crate::proto::base::Time;
use crate::proto::trunk::{EventText, Hook, LineState};

/// One line. See the page of [`super`].
#[derive(Clone, Debug)]
pub(super) struct Pbx {
    signalling: Signalling,
    state: State,
    sees: Debounced,
    /// When a PBX that was told to release has had time for that.
    guard: Time,
}

impl Pbx {
    /// A line that is on-hook.
    pub fn new(signalling: Signalling) -> Pbx {
        Pbx { signalling, state: State::Idle, sees: Debounced::ON, guard: Time::NEVER }
    }

    /// What it waits for.
    pub fn state(&self) -> State {
        self.state
    }

    /// When the state has lasted too long.
    pub fn limit(&self) -> Time {
        self.guard
    }

    /// The hook of the PBX.
    pub fn far_hook(&self) -> Hook {
        self.sees.raw
    }

    /// Whether the PBX is on-hook.
    pub fn is_on_hook(&self) -> bool {
        self.sees.hook == Hook::On
    }

    /// Whether the state that this event reports is the present one.
    pub fn holds(&self, event: &str) -> bool {
        match event {
            "hd" => self.sees.hook == Hook::Off,
            "hu" => self.sees.hook == Hook::On,
            _ => false,
        }
    }

    /// When to call [`Pbx::handle_time`].
    pub fn deadline(&self) -> Time {
        self.sees.due.min(self.guard)
    }

    /// Lets time pass.
    pub fn handle_time(&mut self, now: Time, out: Outputs<'_>) {
        if self.sees.settle(now) && self.state != State::Out {
            self.hook_changed(out);
        }
        if self.guard <= now {
            self.guard = Time::NEVER;
            self.state = State::Lockout;
        }
    }

    fn hook_changed(&mut self, out: Outputs<'_>) {
        self.guard = Time::NEVER;
        match self.sees.hook {
            Hook::Off => {
                // Ring trip, or the ground on the tip that a ground-start line waits for.
                self.state = State::OffHook;
                out(Output::Show(self.at_rest()));
                out(Output::Listen(true));
                out(Output::Event("hd", EventText::NONE));
            }
            Hook::On => {
                self.state = State::Idle;
                out(Output::Show(LineState::OnHook));
                out(Output::Listen(false));
                out(Output::Event("hu", EventText::NONE));
            }
        }
    }

    /// What the line shows while it is neither ringing nor idle.
    fn at_rest(&self) -> LineState {
        if self.signalling.ground_start && self.state == State::OffHook { LineState::OffHook } else { LineState::OnHook }
    }

    /// The card sees this hook.
    pub fn handle_hook(&mut self, now: Time, hook: Hook, times: &Times, out: Outputs<'_>) {
        let steady = if hook == Hook::Off { times.hook_min } else { times.flash_max };
        if let Some(lasted) = self.sees.see(now, hook, steady)
            && hook == Hook::Off
            && self.state == State::OffHook
            && (times.flash_min..=times.flash_max).contains(&lasted)
        {
            out(Output::Event("hf", EventText::NONE));
        }
    }

    /// Whether `order` would be carried out: ringing only while nobody is off-hook, not even for a moment (CAS-12).
    pub fn check(&self, order: &Order) -> Result<(), Fault> {
        match order {
            Order::Ring if self.sees.raw == Hook::Off || self.sees.hook == Hook::Off => Err(Fault::OffHook),
            Order::Ring | Order::Release if self.state != State::Out => Ok(()),
            _ => Err(Fault::State),
        }
    }

    /// Carries `order` out, if [`Pbx::check`] allows it.
    pub fn handle_order(&mut self, now: Time, order: &Order, times: &Times, out: Outputs<'_>) -> Result<(), Fault> {
        self.check(order)?;
        match order {
            Order::Ring => {
                self.state = State::Ringing;
                out(Output::Show(LineState::Ringing));
            }
            // A loop-start line has no way to tell the PBX (E5).
            _ if !self.signalling.ground_start => {}
            _ => {
                out(Output::Show(LineState::OnHook));
                if self.state == State::OffHook {
                    out(Output::Listen(false));
                    (self.state, self.guard) = (State::Releasing, now + times.guard);
                }
            }
        }
        Ok(())
    }

    /// Ringing ends.
    pub fn stop_ringing(&mut self, out: Outputs<'_>) {
        if self.state == State::Ringing {
            self.state = State::Idle;
            out(Output::Show(LineState::OnHook));
        }
    }

    /// Everything on-hook at our end, no report (`free`, out of service). A PBX that holds the line does so still.
    pub fn reset(&mut self, in_service: bool, out: Outputs<'_>) {
        out(Output::Show(LineState::OnHook));
        out(Output::Listen(false));
        let releases = matches!(self.state, State::Releasing | State::Lockout);
        self.sees = Debounced { hook: self.sees.raw, due: Time::NEVER, ..self.sees };
        self.state = match (in_service, self.sees.raw) {
            (false, _) => State::Out,
            (true, Hook::On) => State::Idle,
            (true, Hook::Off) if releases => return,
            (true, Hook::Off) => State::OffHook,
        };
        self.guard = Time::NEVER;
    }
}
