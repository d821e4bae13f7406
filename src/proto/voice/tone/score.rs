//! What sounds signals have: frequencies, levels and cadences of North America (RFC 3660 2.1 to 2.6, GR-506; the rows of the packages).

use super::Part;
use crate::proto::package::parameters::{Digits, MfDigit};
use crate::proto::package::{EventId, PackageId};
use crate::proto::trunk::{CheckTone, DigitKind};

/// What is played.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Score {
    /// One sound, until it is stopped.
    Steady(Part),
    /// These parts; again and again, or once.
    Parts(&'static [Part], bool),
    /// Digits, one after the other.
    Digits(DigitKind, Digits),
    /// A key for so long, in ms, and a pause; 0: until it is stopped.
    Key(u8, u32),
    /// This octet, as a digital test pattern.
    Pattern(u8),
}

/// How long an MF digit and the pause after it are, in ms; KP is longer.
const MF: (u32, u32) = (68, 68);
const KP_MS: u32 = 100;
/// The level of each MF frequency.
const MF_DBM0: f32 = -7.0;
/// How long a key and the pause after it are when a string is sent, in ms.
const KEYS: (u32, u32) = (70, 70);
/// The levels of the lower and the upper frequency of a key.
const KEY_DBM0: (f32, f32) = (-9.0, -7.0);
/// The shortest key and the pause after it (RFC 3660 2.2).
pub const KEY_MS: u32 = 50;
const KEY_PAUSE_MS: u32 = 45;

impl Score {
    /// The part with this number; none at the end.
    pub fn part(&self, number: usize) -> Option<Part> {
        match *self {
            Score::Steady(part) => Some(part),
            Score::Parts(parts, true) => parts.get(number % parts.len().max(1)).copied(),
            Score::Parts(parts, false) => parts.get(number).copied(),
            Score::Key(key, ms) => match number {
                0 => Some(key_part(key, ms)?),
                1 => Some(Part::silence(KEY_PAUSE_MS)),
                _ => None,
            },
            Score::Digits(kind, digits) => {
                let &symbol = digits.as_slice().get(number / 2)?;
                let pause = number % 2 == 1;
                match kind {
                    DigitKind::Mf if pause => Some(Part::silence(MF.1)),
                    DigitKind::Mf => mf_part(symbol),
                    DigitKind::Dtmf | DigitKind::Pulse if pause => Some(Part::silence(KEYS.1)),
                    DigitKind::Dtmf | DigitKind::Pulse => key_part(symbol, KEYS.0),
                }
            }
            Score::Pattern(_) => None,
        }
    }

    /// A continuity tone.
    pub fn check(tone: CheckTone) -> Score {
        match tone {
            CheckTone::Co1 => Score::Steady(Part::one(2010.0, -12.0, 0)),
            CheckTone::Co2 => Score::Steady(Part::one(1780.0, -12.0, 0)),
        }
    }

    /// What a signal sounds like; `parameters` is the text in its parentheses. `None`: it has no sound of its own.
    pub fn of(signal: EventId, parameters: &[u8]) -> Option<Score> {
        let steady = |parts| Some(Score::Parts(parts, true));
        let once = |parts| Some(Score::Parts(parts, false));
        if let Some(key) = signal.symbol().filter(|&symbol| symbol != b'T') {
            return Some(Score::Key(key, KEY_MS));
        }
        match (signal.package(), signal.item().name) {
            (PackageId::T, "co1") | (PackageId::R, "co1") => Some(Score::check(CheckTone::Co1)),
            (PackageId::T, "co2") | (PackageId::R, "co2") => Some(Score::check(CheckTone::Co2)),
            (PackageId::T, "nm") => Some(Score::Steady(Part::one(1004.0, 0.0, 0))),
            (PackageId::T, "mm") => Some(Score::Steady(Part::one(1013.8, 0.0, 0))),
            (PackageId::T, "om") => Some(Score::Steady(Part::one(1000.0, 0.0, 0))),
            (PackageId::T, "tl") => Some(Score::Steady(Part::one(2225.0, -10.0, 0))),
            (PackageId::T, "qt") => Some(Score::Steady(Part::silence(0))),
            (PackageId::T, "pst") => Some(Score::Steady(Part::one(480.0, -17.0, 0))),
            (PackageId::T, "tp") => Some(Score::Pattern(u8::try_from(number(parameters).unwrap_or(95)).ok()?)),
            (PackageId::T, "sit") => once(information(number(parameters)?)?),
            (PackageId::T, "zz") => once(information(2)?),
            (PackageId::G, "cf") => once(&CONFIRMATION),
            (PackageId::G, "cg") => steady(&REORDER),
            (PackageId::G, "it") => steady(&INTERCEPT),
            (PackageId::G, "pt") => Some(Score::Steady(Part::two(440.0, 620.0, -18.0, 0))),
            (PackageId::G, "rt") => steady(&RINGBACK),
            (PackageId::CG, name) => Score::of_country(name),
            (PackageId::D, "DO") => Some(Score::Key(named_key(parameters)?, 0)),
            (PackageId::D, "DD") => Some(Score::Key(named_key(parameters)?, 0)),
            (_, "bz") => steady(&BUSY),
            (_, "ro") => steady(&REORDER),
            (_, "rt") => steady(&RINGBACK),
            (_, "dl") => Some(Score::Steady(Part::two(350.0, 440.0, -13.0, 0))),
            _ => None,
        }
    }
}

impl Score {
    /// The tones that H.248 names, with the frequencies of North America (E.5 leaves them to provisioning).
    fn of_country(name: &str) -> Option<Score> {
        match name {
            "dt" => Some(Score::Steady(Part::two(350.0, 440.0, -13.0, 0))),
            "rt" => Some(Score::Parts(&RINGBACK, true)),
            "bt" => Some(Score::Parts(&BUSY, true)),
            "ct" => Some(Score::Parts(&REORDER, true)),
            "sit" => information(3).map(|parts| Score::Parts(parts, false)),
            "wt" => Some(Score::Parts(&WARNING, true)),
            "cw" => Some(Score::Parts(&WAITING, true)),
            _ => None,
        }
    }
}

/// 1400 Hz for half a second every 15 s: the conversation is recorded.
const WARNING: [Part; 2] = [Part::one(1400.0, -19.0, 500), Part::silence(14_500)];
/// 440 Hz for 0.3 s every 10 s.
const WAITING: [Part; 2] = [Part::one(440.0, -13.0, 300), Part::silence(9_700)];

const BUSY: [Part; 2] = [Part::two(480.0, 620.0, -24.0, 500), Part::silence(500)];
const REORDER: [Part; 2] = [Part::two(480.0, 620.0, -24.0, 250), Part::silence(250)];
const RINGBACK: [Part; 2] = [Part::two(440.0, 480.0, -19.0, 2_000), Part::silence(4_000)];
const INTERCEPT: [Part; 2] = [Part::one(440.0, -14.0, 500), Part::one(620.0, -14.0, 500)];
const BURST: Part = Part::two(350.0, 440.0, -13.0, 100);
const CONFIRMATION: [Part; 6] = [BURST, Part::silence(100), BURST, Part::silence(100), BURST, Part::silence(100)];

/// Special information tones RO', RO", NC', NC", IC, VC, IO (T/sit), each with a second of silence.
fn information(number: u32) -> Option<&'static [Part]> {
    const fn three(first: (f32, u32), second: (f32, u32)) -> [Part; 4] {
        const DBM0: f32 = -24.0;
        [Part::one(first.0, DBM0, first.1), Part::one(second.0, DBM0, second.1), Part::one(1776.7, DBM0, 380), Part::silence(1_000)]
    }
    const TONES: [[Part; 4]; 7] = [
        three((913.8, 274), (1428.5, 380)),
        three((985.2, 274), (1370.6, 380)),
        three((985.2, 380), (1428.5, 380)),
        three((913.8, 380), (1370.6, 380)),
        three((913.8, 274), (1370.6, 274)),
        three((985.2, 380), (1370.6, 274)),
        three((913.8, 380), (1428.5, 274)),
    ];
    TONES.get(number.checked_sub(1)? as usize).map(<[Part; 4]>::as_slice)
}

/// The frequencies of keys: rows, and columns.
pub const ROWS: [f32; 4] = [697.0, 770.0, 852.0, 941.0];
/// The columns.
pub const COLUMNS: [f32; 4] = [1209.0, 1336.0, 1477.0, 1633.0];
/// The keys, row by row.
pub const KEYPAD: &[u8; 16] = b"123A456B789C*0#D";

fn key_part(key: u8, ms: u32) -> Option<Part> {
    let place = KEYPAD.iter().position(|known| known.eq_ignore_ascii_case(&key))?;
    let (row, column) = (ROWS.get(place / 4)?, COLUMNS.get(place % 4)?);
    Some(Part { waves: [(*row, KEY_DBM0.0), (*column, KEY_DBM0.1)], ms })
}

/// The frequencies of MF digits.
pub const MF_HZ: [f32; 6] = [700.0, 900.0, 1100.0, 1300.0, 1500.0, 1700.0];
/// The symbols by their pair of frequencies, lower and upper (RFC 5244 2.3; ST', ST'' and ST''' share theirs with KP', KP'' and code 11).
pub const MF_SYMBOLS: [(u8, usize, usize); 15] = [
    (b'1', 0, 1),
    (b'2', 0, 2),
    (b'3', 1, 2),
    (b'4', 0, 3),
    (b'5', 1, 3),
    (b'6', 2, 3),
    (b'7', 0, 4),
    (b'8', 1, 4),
    (b'9', 2, 4),
    (b'0', 3, 4),
    (MfDigit::KP, 2, 5),
    (MfDigit::ST, 4, 5),
    (MfDigit::ST + 1, 1, 5),
    (MfDigit::ST + 2, 3, 5),
    (MfDigit::ST + 3, 0, 5),
];

fn mf_part(symbol: u8) -> Option<Part> {
    // KP' and KP'' are what ST' and ST'' are.
    let symbol = if MfDigit::is_kp(symbol) && symbol != MfDigit::KP { symbol - MfDigit::KP + MfDigit::ST } else { symbol };
    let (_, low, high) = *MF_SYMBOLS.iter().find(|(known, _, _)| *known == symbol)?;
    let ms = if symbol == MfDigit::KP { KP_MS } else { MF.0 };
    Some(Part::two(*MF_HZ.get(low)?, *MF_HZ.get(high)?, MF_DBM0, ms))
}

/// The number that is a parameter.
fn number(parameters: &[u8]) -> Option<u32> {
    let first = parameters.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).find(|text| text.iter().all(u8::is_ascii_digit))?;
    std::str::from_utf8(first).ok()?.parse().ok()
}

/// The key in `dg=`.
fn named_key(parameters: &[u8]) -> Option<u8> {
    let named = |text: &[u8]| {
        let (name, value) = text.trim_ascii().split_at_checked(3)?;
        name.eq_ignore_ascii_case(b"dg=").then(|| value.first().copied())?
    };
    parameters.split(|&byte| byte == b',').find_map(named)
}
