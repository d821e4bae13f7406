//! How lines signal, from the words of the configuration to those of the machines.

use crate::config;
use crate::proto::cas::{Direction, Signalling, Times};
use crate::proto::package::ChannelKind;

/// How the channels of a span signal, in the words of the machines.
pub fn signalling(span: &config::Span) -> Signalling {
    use config::Signalling as Configured;
    let (kind, wink_start) = match span.signalling {
        Configured::Clear => (ChannelKind::Clear, false),
        Configured::MfWink => (ChannelKind::CasMf, true),
        Configured::MfImmediate => (ChannelKind::CasMf, false),
        Configured::DtmfWink | Configured::PulseWink => (ChannelKind::CasDtmf, true),
        Configured::DtmfImmediate | Configured::PulseImmediate => (ChannelKind::CasDtmf, false),
        Configured::FeatureGroupD => (ChannelKind::FeatureGroupD, true),
        Configured::Operator => (ChannelKind::Operator, true),
        Configured::LoopStart | Configured::GroundStart => (ChannelKind::PbxFxs, false),
    };
    let direction = match (span.direction, kind) {
        (config::Direction::Outgoing, _) | (_, ChannelKind::Operator) => Direction::Outgoing,
        (config::Direction::Incoming, _) => Direction::Incoming,
        (config::Direction::Both, _) => Direction::Both,
    };
    Signalling {
        kind,
        wink_start,
        ground_start: span.signalling == Configured::GroundStart,
        dial_pulse: matches!(span.signalling, Configured::PulseWink | Configured::PulseImmediate),
        direction,
        yields: span.yields,
    }
}

/// The times of channel associated signalling.
pub(super) fn times(cas: &config::Cas) -> Times {
    let config::Cas { hook_min, release_min, wink_min, wink_max, wink, wink_delay, digit_delay, wink_limit, glare, glare_hold, .. } = *cas;
    let config::Cas { first_digit, between_digits, sending, answer, release, guard, rest, flash_min, flash_max, flash, .. } = *cas;
    Times {
        hook_min,
        release_min,
        wink_min,
        wink_max,
        wink,
        wink_delay,
        digit_delay,
        wink_limit,
        glare,
        glare_hold,
        first_digit,
        between_digits,
        sending,
        answer,
        release,
        guard,
        rest,
        flash_min,
        flash_max,
        flash,
    }
}
