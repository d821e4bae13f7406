//! What a channel is listened to for, and what that is to the machines of events and lines.

use crate::proto::base::{EndpointIndex, Time};
use crate::proto::package::{EventId, PackageId, find_item};
use crate::proto::trunk::{CheckTone, DigitKind, EventText, Indication, LineInput, Sounds};
use crate::proto::voice::{Ds0, Event, Progress, SingleTone, SingleTones, Wanted};

/// What a channel is listened to for.
pub(super) fn wanted(sounds: Sounds) -> Wanted {
    let all = |pairs: &[(Sounds, SingleTone)]| {
        let wanted = pairs.iter().filter(|(sound, _)| sounds.has(*sound));
        wanted.fold(SingleTones::NONE, |tones, (_, tone)| tones.with(*tone))
    };
    Wanted {
        keys: sounds.has(Sounds::KEYS),
        tones: all(&[
            (Sounds::CO1, SingleTone::Co1),
            (Sounds::CO2, SingleTone::Co2),
            (Sounds::OLD_MILLIWATT, SingleTone::OldMilliwatt),
            (Sounds::NEW_MILLIWATT, SingleTone::NewMilliwatt),
            (Sounds::NEWEST_MILLIWATT, SingleTone::NewestMilliwatt),
            (Sounds::TEST_LINE, SingleTone::TestLine),
            (Sounds::MODEM, SingleTone::Answer),
            (Sounds::FAX, SingleTone::FaxCall),
        ]),
        others: sounds,
        far_tones: all(&[(Sounds::FAR_CO1, SingleTone::Co1), (Sounds::FAR_CO2, SingleTone::Co2)]),
    }
}

/// What is to be said of an event of the media. A check tone that comes back on a connection ends the one that was sent there, and is
/// told of when it has ended too (COT-01, COT-12).
pub(super) fn indication(now: Time, endpoint: EndpointIndex, event: Event, media: &mut Ds0) -> Option<Indication> {
    let on_line = |package, name: &[u8], text: &str| {
        let (event, parameters) = (find_item(package, name)?, EventText::new(text.as_bytes()));
        Some(Indication::Event { endpoint, connection: None, event, parameters })
    };
    let line = |input| Some(Indication::Line { endpoint, input, at: now });
    let told = |connection, event: EventId| Some(Indication::Event { endpoint, connection, event, parameters: EventText::NONE });
    let of_far_end = |connection, name: &[u8], text: &str| {
        let (event, parameters) = (find_item(PackageId::R, name)?, EventText::new(text.as_bytes()));
        Some(Indication::Event { endpoint, connection: Some(connection), event, parameters })
    };
    match event {
        Event::Digit { kind, symbol, on: true } => line(LineInput::Digit(kind, symbol)),
        Event::Digit { kind: DigitKind::Dtmf, symbol, on: false } => line(LineInput::KeyUp(symbol)),
        Event::Digit { on: false, .. } => None,
        Event::Sent => line(LineInput::Sent { failed: false }),
        Event::Tone { connection: None, tone: SingleTone::Co1, on } => line(LineInput::Tone { tone: CheckTone::Co1, on }),
        Event::Tone { connection: None, tone: SingleTone::Co2, on } => line(LineInput::Tone { tone: CheckTone::Co2, on }),
        Event::Tone { connection: None, tone, on: true } => told(None, heard(tone)?),
        Event::Tone { connection: None, .. } => None,
        Event::Tone { connection, tone, on } => {
            if !on {
                return told(connection, far(tone)?);
            }
            for sent in [SingleTone::Co1, SingleTone::Co2].into_iter().filter_map(far) {
                media.stop_signal(connection, sent);
            }
            None
        }
        Event::Progress(Progress::Reorder) => on_line(PackageId::T, b"ro", ""),
        // The second one has a name of its own too; a list that has both gets what it has first.
        Event::Progress(Progress::Information(2)) if !media.awaits(Sounds::INFORMATION) => on_line(PackageId::T, b"zz", ""),
        Event::Progress(Progress::Information(number)) => on_line(PackageId::T, b"sit", &number.to_string()),
        Event::Progress(Progress::Preamble) => on_line(PackageId::G, b"ft", ""),
        Event::Progress(Progress::Pattern(octet)) => on_line(PackageId::T, b"tp", &octet.to_string()),
        Event::Key { connection, key } => told(Some(connection), find_item(PackageId::D, &[key])?),
        Event::MediaArrived { connection } => told(Some(connection), find_item(PackageId::R, b"ma")?),
        Event::Silent { connection, seconds } => of_far_end(connection, b"rto", &seconds.to_string()),
        Event::Lossy { connection, limit } => of_far_end(connection, b"pl", &limit.to_string()),
        Event::Codec { connection, payload_type } => of_far_end(connection, b"uc", &format!("{payload_type:X}")),
        Event::Period { connection, ms } => of_far_end(connection, b"sr", &ms.to_string()),
        Event::Buffer { connection, ms } => of_far_end(connection, b"ji", &ms.to_string()),
        Event::Poor { connection } => of_far_end(connection, b"qa", ""),
        Event::TimedOut { connection, again } => Some(Indication::MediaLost { endpoint, connection, again }),
    }
}

/// The event of a tone on the line.
fn heard(tone: SingleTone) -> Option<EventId> {
    match tone {
        SingleTone::Co1 => find_item(PackageId::T, b"co1"),
        SingleTone::Co2 => find_item(PackageId::T, b"co2"),
        SingleTone::OldMilliwatt => find_item(PackageId::T, b"om"),
        SingleTone::NewMilliwatt => find_item(PackageId::T, b"nm"),
        SingleTone::NewestMilliwatt => find_item(PackageId::T, b"mm"),
        SingleTone::TestLine => find_item(PackageId::T, b"tl"),
        SingleTone::Answer => find_item(PackageId::G, b"mt"),
        SingleTone::FaxCall => find_item(PackageId::G, b"ft"),
    }
}

/// The event of a check tone on a connection.
fn far(tone: SingleTone) -> Option<EventId> {
    match tone {
        SingleTone::Co1 => find_item(PackageId::R, b"co1"),
        SingleTone::Co2 => find_item(PackageId::R, b"co2"),
        _ => None,
    }
}
