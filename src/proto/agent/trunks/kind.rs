//! Kinds of trunks.

use super::script::{Call, Script};
use super::scripts;

/// What kind of trunks these are, and so which calls are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// MF digits in one stage (package MS).
    Ms,
    /// DTMF digits or dial pulses (DT).
    Dt,
    /// Feature Group D (MD).
    Md,
    /// Operator services, outgoing only (MO).
    Mo,
    /// Lines of a PBX (BL).
    Bl,
    /// Continuity tests and calls on channels that are signalled elsewhere (T).
    Cot,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 6] = [Kind::Ms, Kind::Dt, Kind::Md, Kind::Mo, Kind::Bl, Kind::Cot];

    /// The package of its events and signals.
    pub const fn package(self) -> &'static str {
        match self {
            Kind::Ms => "MS",
            Kind::Dt => "DT",
            Kind::Md => "MD",
            Kind::Mo => "MO",
            Kind::Bl => "BL",
            Kind::Cot => "T",
        }
    }

    pub(super) fn calls(self) -> &'static [Call] {
        match self {
            Kind::Ms => scripts::ms::CALLS,
            Kind::Dt => scripts::dt::CALLS,
            Kind::Md => scripts::md::CALLS,
            Kind::Mo => scripts::mo::CALLS,
            Kind::Bl => scripts::bl::CALLS,
            Kind::Cot => scripts::cot::CALLS,
        }
    }

    pub(super) fn reset(self) -> Script {
        match self {
            Kind::Bl => scripts::RESET_LINE,
            Kind::Cot => scripts::RESET_CLEAR,
            _ => scripts::RESET_TRUNK,
        }
    }

    /// The event that `ES` shows while a trunk is idle; `None`: it has no state.
    pub(super) const fn idle(self) -> Option<&'static str> {
        match self {
            Kind::Ms | Kind::Dt | Kind::Md | Kind::Mo => Some("rlc"),
            Kind::Bl => Some("hu"),
            Kind::Cot => None,
        }
    }
}
