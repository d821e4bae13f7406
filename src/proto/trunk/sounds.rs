//! Sounds that somebody waits for: a card listens for nothing else.

use crate::proto::package::{EventId, PackageId};

/// A set of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sounds(u64);

/// The keys of a telephone, in the order of the bits that say that they are kept off connections.
const KEYPAD: &[u8; 16] = b"0123456789ABCD*#";

impl Sounds {
    /// None.
    pub const NONE: Sounds = Sounds(0);
    /// The keys of a telephone (D).
    pub const KEYS: Sounds = Sounds(1);
    /// T/co1.
    pub const CO1: Sounds = Sounds(1 << 1);
    /// T/co2.
    pub const CO2: Sounds = Sounds(1 << 2);
    /// T/om.
    pub const OLD_MILLIWATT: Sounds = Sounds(1 << 3);
    /// T/nm.
    pub const NEW_MILLIWATT: Sounds = Sounds(1 << 4);
    /// T/mm.
    pub const NEWEST_MILLIWATT: Sounds = Sounds(1 << 5);
    /// T/tl.
    pub const TEST_LINE: Sounds = Sounds(1 << 6);
    /// G/mt.
    pub const MODEM: Sounds = Sounds(1 << 7);
    /// G/ft.
    pub const FAX: Sounds = Sounds(1 << 8);
    /// R/co1, on the connections.
    pub const FAR_CO1: Sounds = Sounds(1 << 9);
    /// R/co2, on the connections.
    pub const FAR_CO2: Sounds = Sounds(1 << 10);

    /// R/rto, R/pl and R/iu: of which connections, and how much, is told by [`super::Card::measure`].
    pub const FAR_MEASURED: Sounds = Sounds(1 << 11);
    /// R/uc: the codec of a far end.
    pub const FAR_CODEC: Sounds = Sounds(1 << 12);
    /// R/sr: the length of its packets.
    pub const FAR_PERIOD: Sounds = Sounds(1 << 13);
    /// R/ji: how deep the buffer of a connection is.
    pub const FAR_BUFFER: Sounds = Sounds(1 << 14);
    /// R/qa: how well a far end is heard.
    pub const FAR_QUALITY: Sounds = Sounds(1 << 15);

    /// T/ro.
    pub const REORDER: Sounds = Sounds(1 << 32);
    /// T/sit.
    pub const INFORMATION: Sounds = Sounds(1 << 33);
    /// T/zz, one of them.
    pub const NO_CIRCUIT: Sounds = Sounds(1 << 34);
    /// T/tp.
    pub const PATTERN: Sounds = Sounds(1 << 35);

    /// Keys that are kept off the connections while they are heard (`su=true` of D/DD).
    pub fn suppressing(keys: impl Fn(u8) -> bool) -> Sounds {
        let bits = KEYPAD.iter().enumerate().filter(|(_, key)| keys(**key)).map(|(place, _)| 1 << (16 + place));
        Sounds(bits.sum())
    }

    /// Whether this key is kept off the connections.
    pub fn suppresses(self, key: u8) -> bool {
        KEYPAD.iter().position(|one| one.eq_ignore_ascii_case(&key)).is_some_and(|place| self.0 >> (16 + place) & 1 != 0)
    }

    /// What must be listened for, so that `event` is seen; nothing for one that is no sound.
    pub fn of(event: EventId) -> Sounds {
        match (event.package(), event.item().name) {
            (PackageId::D, "T" | "oc" | "of") => Sounds::NONE,
            (PackageId::D, _) => Sounds::KEYS,
            (PackageId::T, "co1") => Sounds::CO1,
            (PackageId::T, "co2") => Sounds::CO2,
            (PackageId::T, "om") => Sounds::OLD_MILLIWATT,
            (PackageId::T, "nm") => Sounds::NEW_MILLIWATT,
            (PackageId::T, "mm") => Sounds::NEWEST_MILLIWATT,
            (PackageId::T, "tl") => Sounds::TEST_LINE,
            (PackageId::T, "ro") => Sounds::REORDER,
            (PackageId::T, "sit") => Sounds::INFORMATION,
            (PackageId::T, "zz") => Sounds::NO_CIRCUIT,
            (PackageId::T, "tp") => Sounds::PATTERN,
            (PackageId::G, "mt") => Sounds::MODEM,
            (PackageId::G, "ft") => Sounds::FAX,
            (PackageId::R, "co1") => Sounds::FAR_CO1,
            (PackageId::R, "co2") => Sounds::FAR_CO2,
            (PackageId::R, "rto" | "pl" | "iu") => Sounds::FAR_MEASURED,
            (PackageId::R, "uc") => Sounds::FAR_CODEC,
            (PackageId::R, "sr") => Sounds::FAR_PERIOD,
            (PackageId::R, "ji") => Sounds::FAR_BUFFER,
            (PackageId::R, "qa") => Sounds::FAR_QUALITY,
            _ => Sounds::NONE,
        }
    }

    /// These and those.
    #[must_use]
    pub const fn and(self, others: Sounds) -> Sounds {
        Sounds(self.0 | others.0)
    }

    /// Whether all of `others` are among them.
    pub const fn has(self, others: Sounds) -> bool {
        self.0 & others.0 == others.0
    }
}

impl FromIterator<Sounds> for Sounds {
    fn from_iter<I: IntoIterator<Item = Sounds>>(iter: I) -> Sounds {
        iter.into_iter().fold(Sounds::NONE, Sounds::and)
    }
}
