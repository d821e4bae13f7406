//! Trunks and lines with channel associated signalling: what the hooks and digits of a DS0 mean, and what they are to do (RFC 3064;
//! MS, DT, MD, MO, BL and CAS rows).
//!
//! `trunk::Trunk` is the machine of one trunk, `pbx::Pbx` that of one line of a PBX: hooks and digits the card sees and signals of
//! the agent go in; hooks, digits and events of the package come out. [`Lines`] runs one for each such DS0 of a core: it stands in front
//! of the core's card and is a card itself, so the machine of events knows nothing of hooks. It has no table of requests: which event is
//! notified, and what stops a signal, is decided there.
//!
//! Invariants: every state that waits for the far end or for the agent has a timer, but for calls that are up (on hold too while an
//! operator keeps them) and for a far end that holds the line off-hook ([`State::Lockout`], an alarm); a line of a PBX rings as long as
//! its signal lasts. A machine sends digits only while it shows off-hook.

mod continuity;
pub mod exercise;
mod lines;
mod pbx;
mod trunk;

pub use lines::Lines;

use crate::proto::base::Time;
use crate::proto::package::parameters::{Digits, Setup};
use crate::proto::package::{ChannelKind, PackageId};
use crate::proto::trunk::{DigitKind, EventText, Hook, LineState, Seizer};
use std::time::Duration;

/// How a DS0 signals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signalling {
    /// What it is.
    pub kind: ChannelKind,
    /// Whether digits wait for a wink; else they follow the seizure.
    pub wink_start: bool,
    /// Whether a line of a PBX has ground start.
    pub ground_start: bool,
    /// Whether its digits are dial pulses.
    pub dial_pulse: bool,
    /// Who may seize it.
    pub direction: Direction,
    /// Whether the gateway yields when both ends seize it at once (RFC 3064 4.1).
    pub yields: bool,
}

impl Signalling {
    /// How its digits are sent.
    pub fn digits(self) -> DigitKind {
        match self.kind {
            ChannelKind::CasMf | ChannelKind::Operator | ChannelKind::FeatureGroupD => DigitKind::Mf,
            _ if self.dial_pulse => DigitKind::Pulse,
            _ => DigitKind::Dtmf,
        }
    }

    /// The package of its events and signals.
    pub fn package(self) -> PackageId {
        crate::proto::package::default_package(self.kind)
    }
}

/// Who may seize a trunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// Both ends.
    #[default]
    Both,
    /// The far end only.
    Incoming,
    /// The gateway only.
    Outgoing,
}

/// The times of signalling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// A shorter off-hook is none (C16).
    pub hook_min: Duration,
    /// A shorter on-hook is none.
    pub release_min: Duration,
    /// The shortest wink.
    pub wink_min: Duration,
    /// The longest wink; a longer off-hook is steady.
    pub wink_max: Duration,
    /// The wink we send.
    pub wink: Duration,
    /// From seizure to the wink we send.
    pub wink_delay: Duration,
    /// From the wink, or from an immediate seizure, to the first digit.
    pub digit_delay: Duration,
    /// From our seizure to the far end's wink (A11).
    pub wink_limit: Duration,
    /// How long the controlling end waits when both have seized (A7).
    pub glare: Duration,
    /// How long it holds the line after that (A9).
    pub glare_hold: Duration,
    /// From our wink to the first digit (C15).
    pub first_digit: Duration,
    /// From MF digit to MF digit (C5).
    pub between_digits: Duration,
    /// For sending one string.
    pub sending: Duration,
    /// For what the agent or the called party does before answer, and for a suspended call.
    pub answer: Duration,
    /// For the agent to complete a release we told it of.
    pub release: Duration,
    /// For the far end to go on-hook.
    pub guard: Duration,
    /// From the end of a call, both ends on-hook, to our next seizure.
    pub rest: Duration,
    /// The shortest flash of a PBX.
    pub flash_min: Duration,
    /// The longest flash; a longer on-hook is one.
    pub flash_max: Duration,
    /// The flash we send.
    pub flash: Duration,
}

impl Default for Times {
    fn default() -> Times {
        let ms = Duration::from_millis;
        Times {
            hook_min: ms(40),
            release_min: ms(150),
            wink_min: ms(100),
            wink_max: ms(350),
            wink: ms(200),
            wink_delay: ms(150),
            digit_delay: ms(150),
            wink_limit: ms(5_000),
            glare: ms(4_000),
            glare_hold: ms(16_000),
            first_digit: ms(10_000),
            between_digits: ms(4_000),
            sending: ms(30_000),
            answer: ms(300_000),
            release: ms(60_000),
            guard: ms(30_000),
            rest: ms(400),
            flash_min: ms(300),
            flash_max: ms(1_000),
            flash: ms(500),
        }
    }
}

macro_rules! states {
    ($($(#[doc = $help:literal])+ $variant:ident = $name:literal,)+) => {
        /// What a machine waits for.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum State { $($(#[doc = $help])+ $variant,)+ }

        impl State {
            /// Every one.
            pub const ALL: &'static [State] = &[$(State::$variant,)+];

            /// It in words for a display.
            pub const fn name(self) -> &'static str {
                match self { $(State::$variant => $name,)+ }
            }
        }
    };
}

states! {
    /// Both ends are on-hook.
    Idle = "idle",
    /// Ours: the last call has ended too short a time ago for the far end to see that this is another one.
    Resting = "rests",
    /// Ours: seized, the far end's wink is to come (A4).
    AwaitWink = "awaits-wink",
    /// Ours: both ends have seized, we control and wait (A5).
    Glare = "glare",
    /// Ours: the far end did not give way; the call is lost, the line still held (A7).
    GlareHold = "glare-hold",
    /// Ours: digits will be sent in a moment.
    DigitDelay = "before-digits",
    /// Ours: digits are being sent.
    Sending = "sends-digits",
    /// Ours: the first string is sent, a wink asks for the next.
    AwaitNextWink = "awaits-next-wink",
    /// Ours, operator service: the address is sent, off-hook asks for the calling number (D3).
    AwaitOffHook = "awaits-off-hook",
    /// Ours: everything is sent.
    AwaitAnswer = "awaits-answer",
    /// Ours: answered.
    Answered = "answered",
    /// Ours: the called party went on-hook (A16).
    Suspended = "suspended",
    /// Theirs: seized, our wink is to come.
    Seized = "seized",
    /// Theirs: our wink is being sent.
    Winking = "winks",
    /// Theirs: digits are to come.
    Collecting = "awaits-digits",
    /// Theirs: the agent is to say what happens.
    AwaitAgent = "awaits-agent",
    /// Theirs: we have answered.
    Talking = "talks",
    /// We show on-hook in a call that is up (`sus`).
    OnHold = "on-hold",
    /// We told the agent of a release; it is to complete it (C10).
    AwaitRelease = "awaits-release",
    /// We are on-hook, the far end is not yet (A21); or we were set back while it was off-hook.
    Releasing = "releases",
    /// The far end stayed off-hook though the call is over: no call can be made until it goes on-hook.
    Lockout = "lockout",
    /// We hold the line off-hook so that nobody seizes it (B1).
    Blocking = "blocks",
    /// The far end does (B3, B5).
    Blocked = "far-blocked",
    /// A line of a PBX: it rings.
    Ringing = "rings",
    /// A line of a PBX: off-hook.
    OffHook = "off-hook",
    /// Out of service.
    Out = "out",
}

impl State {
    /// Which end began the call that is on the line; `None` where there is none, or it does not show any more.
    pub const fn seized_by(self) -> Option<Seizer> {
        match self {
            State::AwaitWink
            | State::DigitDelay
            | State::Sending
            | State::AwaitNextWink
            | State::AwaitOffHook
            | State::AwaitAnswer
            | State::Answered
            | State::Suspended => Some(Seizer::Gateway),
            State::Seized | State::Winking | State::Collecting | State::AwaitAgent | State::Talking => Some(Seizer::FarEnd),
            _ => None,
        }
    }

    /// Whether no call can be or come there because of what one of the ends does, though the channel is in service.
    pub const fn is_held(self) -> bool {
        matches!(self, State::Lockout | State::Blocking | State::Blocked)
    }

    /// Whether a call is there, or begins or ends.
    pub const fn is_busy(self) -> bool {
        !self.is_held() && !matches!(self, State::Idle | State::Out)
    }

    /// The one with this name.
    pub fn by_name(name: &str) -> Option<State> {
        State::ALL.iter().copied().find(|state| state.name() == name)
    }
}

/// What a signal of a package tells a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// Show answer to the caller.
    Answer,
    /// Hold the idle line off-hook.
    Block,
    /// End the call, or the blocking.
    Release,
    /// Off-hook again.
    Resume,
    /// Complete a release that was reported.
    ReleaseComplete,
    /// Seize and send these digits.
    Setup(Setup),
    /// On-hook, the call stays.
    Suspend,
    /// Send these digits.
    Digits(Digits),
    /// Acknowledge that all digits came.
    AcknowledgeWink,
    /// Ask for more digits.
    ContinueWink,
    /// Call the operator back.
    Recall,
    /// Ring.
    Ring,
}

/// Why a machine refuses an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// The line is off-hook: 401.
    OffHook,
    /// Not in this state, or not on such a trunk: 400.
    State,
}

/// What a machine tells its surroundings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Output {
    /// Show this to the line.
    Show(LineState),
    /// Show it for so long, and then again what was shown before.
    Pulse(LineState, Duration),
    /// Send these digits, and say when they are sent.
    Send(Digits),
    /// Stop sending.
    StopSending,
    /// Listen for digits, or not.
    Listen(bool),
    /// An event of the package of the trunk.
    Event(&'static str, EventText),
    /// A signal that ends with its work has ended.
    Ended { signal: &'static str, failed: bool },
}

/// Where the outputs of a machine go.
type Outputs<'a> = &'a mut dyn FnMut(Output);

/// A hook that changes: the raw one as the card sees it, and the one that has lasted long enough to count.
#[derive(Clone, Copy, Debug)]
struct Debounced {
    /// As it was seen last.
    raw: Hook,
    since: Time,
    /// As it counts.
    hook: Hook,
    /// When the raw one counts; [`Time::NEVER`] when it does already.
    due: Time,
}

impl Debounced {
    const ON: Debounced = Debounced { raw: Hook::On, since: Time::ZERO, hook: Hook::On, due: Time::NEVER };

    /// The card sees `raw`, which counts when it has lasted for `steady`. `Some`: it was the other one only for so long.
    fn see(&mut self, now: Time, raw: Hook, steady: Duration) -> Option<Duration> {
        if raw == self.raw {
            return None;
        }
        let lasted = now.since(self.since);
        (self.raw, self.since) = (raw, now);
        if raw == self.hook {
            self.due = Time::NEVER;
            return Some(lasted);
        }
        self.due = now + steady;
        None
    }

    /// Whether it changes now.
    fn settle(&mut self, now: Time) -> bool {
        if self.due > now {
            return false;
        }
        (self.hook, self.due) = (self.raw, Time::NEVER);
        true
    }
}
