//! What the alarms of the driver are as defects (DAH-05).

use super::abi::alarm;
use crate::proto::trunk::Defect;

/// A defect: not there, there, or there and counted at once, because the driver has waited already.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum Presence {
    #[default]
    None,
    Raw,
    Failure,
}

/// The defects that a driver's alarms can be.
pub(super) const KINDS: [Defect; 5] = [Defect::LossOfSignal, Defect::Ais, Defect::OutOfFrame, Defect::RemoteAlarm, Defect::Loopback];

/// Which of [`KINDS`] are present.
pub(super) type Told = [Presence; KINDS.len()];

/// What `alarms` say, after `before`. RED, BLUE and YELLOW are what the driver has debounced: they count at once. LOS, LFA and LMFA by
/// themselves are what it sees now, and are integrated here.
pub(super) fn read(alarms: u32, before: &Told) -> Told {
    let has = |bits: u32| alarms & bits != 0;
    let of = |failure: bool, raw: bool| match (failure, raw) {
        (true, _) => Presence::Failure,
        (false, true) => Presence::Raw,
        (false, false) => Presence::None,
    };
    let red = has(alarm::RED);
    let no_signal = has(alarm::LOS);
    let mut now = [
        of(has(alarm::NOT_OPEN) || red && no_signal, no_signal),
        of(has(alarm::BLUE), false),
        of(red && !no_signal, has(alarm::LFA | alarm::LMFA)),
        of(has(alarm::YELLOW), false),
        of(has(alarm::LOOPBACK), false),
    ];
    let [los, ais, lof, ..] = before;
    // It is over, but not yet for long enough: still down, as before.
    if has(alarm::RECOVER) && !red && !has(alarm::BLUE | alarm::NOT_OPEN) {
        let was_down = [los, ais, lof].into_iter().any(|was| *was != Presence::None);
        now[0] = now[0].max(*los);
        now[1] = now[1].max(*ais);
        now[2] = now[2].max(if was_down { *lof } else { Presence::Failure });
    }
    now
}

/// Whether no usable signal comes.
pub(super) fn is_dark(told: &Told) -> bool {
    let [los, ais, lof, ..] = told;
    [los, ais, lof].into_iter().any(|presence| *presence != Presence::None)
}
