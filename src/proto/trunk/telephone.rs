//! Which telephone events (RFC 4733) an end of a connection has beside those of keys: continuity tones (RFC 5244 2.5, RFC 3660 2.10).

use super::card::CheckTone;

/// Events that an end of a connection has, as `fmtp` names them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum TelephoneEvents {
    /// None at all.
    #[default]
    None,
    /// 0 to 15, the keys.
    Keys,
    /// The keys and 121, the check tone.
    CheckTone,
    /// The keys, 121 and 122, the tone that answers it.
    CheckTones,
    /// The keys and 167, which RFC 3660 has for the check tone, and which was withdrawn before it was used (RFC 4733, appendix A).
    OldCheckTone,
}

/// The check tone, the one that answers it, and the check tone's number before.
const CHECK: u8 = 121;
const ANSWER: u8 = 122;
const OLD_CHECK: u8 = 167;

impl TelephoneEvents {
    /// What somebody has who names these: `0-15,121`; without a list the keys.
    pub fn named(list: &[u8]) -> TelephoneEvents {
        let has = |event: u8| ranges(list).flatten().any(|(low, high)| (low..=high).contains(&event));
        match (has(CHECK), has(ANSWER), has(OLD_CHECK)) {
            (true, true, _) => TelephoneEvents::CheckTones,
            (true, false, _) => TelephoneEvents::CheckTone,
            (false, _, true) => TelephoneEvents::OldCheckTone,
            (false, _, false) => TelephoneEvents::Keys,
        }
    }

    /// The same, where all of them must be had; `None`: one is not.
    pub fn all_of(list: &[u8]) -> Option<TelephoneEvents> {
        let had = |low, high| high <= 15 || (CHECK..=ANSWER).contains(&low) && high <= ANSWER || (low, high) == (OLD_CHECK, OLD_CHECK);
        ranges(list).all(|range| range.is_some_and(|(low, high)| low <= high && had(low, high))).then(|| TelephoneEvents::named(list))
    }

    /// The list, as [`TelephoneEvents::named`] reads it.
    pub const fn list(self) -> &'static str {
        match self {
            TelephoneEvents::None => "",
            TelephoneEvents::Keys => "0-15",
            TelephoneEvents::CheckTone => "0-15,121",
            TelephoneEvents::CheckTones => "0-15,121,122",
            TelephoneEvents::OldCheckTone => "0-15,167",
        }
    }

    /// Those that both ends have.
    #[must_use]
    pub fn and(self, other: TelephoneEvents) -> TelephoneEvents {
        use TelephoneEvents::{CheckTone, CheckTones, Keys, None};
        match (self, other) {
            (one, other) if one == other => one,
            (None, _) | (_, None) => None,
            (CheckTone, CheckTones) | (CheckTones, CheckTone) => CheckTone,
            _ => Keys,
        }
    }

    /// Whether there are any.
    pub fn is_some(self) -> bool {
        self != TelephoneEvents::None
    }

    /// The event of a tone.
    pub fn of_tone(self, tone: CheckTone) -> Option<u8> {
        match (self, tone) {
            (TelephoneEvents::CheckTone | TelephoneEvents::CheckTones, CheckTone::Co1) => Some(CHECK),
            (TelephoneEvents::CheckTones, CheckTone::Co2) => Some(ANSWER),
            (TelephoneEvents::OldCheckTone, CheckTone::Co1) => Some(OLD_CHECK),
            _ => None,
        }
    }

    /// The tone of an event.
    pub fn tone(self, event: u8) -> Option<CheckTone> {
        [CheckTone::Co1, CheckTone::Co2].into_iter().find(|&tone| self.of_tone(tone) == Some(event))
    }
}

/// The parts of a list, each `low-high` or one number; `None` for one that is neither.
fn ranges(list: &[u8]) -> impl Iterator<Item = Option<(u8, u8)>> {
    let number = |text: &[u8]| std::str::from_utf8(text.trim_ascii()).ok()?.parse::<u8>().ok();
    list.split(|&byte| byte == b',').map(move |part| {
        let mut ends = part.splitn(2, |&byte| byte == b'-');
        let low = number(ends.next()?)?;
        Some((low, ends.next().map_or(Some(low), number)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_say_what_an_end_has() {
        use TelephoneEvents::{CheckTone as Check, CheckTones, Keys, OldCheckTone};
        for (list, named, all) in [
            ("", Keys, None),
            ("0-15", Keys, Some(Keys)),
            ("1, 2,5-8", Keys, Some(Keys)),
            ("0-16", Keys, None),
            ("0-15,121", Check, Some(Check)),
            ("0-15,121-122", CheckTones, Some(CheckTones)),
            ("122", Keys, Some(Keys)),
            ("167", OldCheckTone, Some(OldCheckTone)),
            ("0-255", CheckTones, None),
            ("121-167", CheckTones, None),
            ("15-0", Keys, None),
            ("0-15,,121", Check, None),
            ("256,-1,121", Check, None),
        ] {
            assert_eq!((TelephoneEvents::named(list.as_bytes()), TelephoneEvents::all_of(list.as_bytes())), (named, all), "{list}");
        }
        for events in [Keys, Check, CheckTones, OldCheckTone] {
            assert_eq!(TelephoneEvents::all_of(events.list().as_bytes()), Some(events));
        }
        let both =
            [(Check, CheckTones), (CheckTones, OldCheckTone), (Keys, CheckTones)].map(|(one, other)| (one.and(other), other.and(one)));
        assert_eq!(both, [(Check, Check), (Keys, Keys), (Keys, Keys)]);
        assert_eq!((Keys.and(TelephoneEvents::None), Check.and(Check)), (TelephoneEvents::None, Check));
        assert_eq!((CheckTones.tone(122), Check.tone(122), OldCheckTone.tone(167)), (Some(CheckTone::Co2), None, Some(CheckTone::Co1)));
    }
}
