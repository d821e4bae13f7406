//! Time stamps: `yyyymmddThhmmssss`, UTC, in hundredths of a second (TXT-19).

use crate::proto::base::Time;

/// The length of a time stamp.
pub const LENGTH: usize = 17;

/// `now` as a time stamp, when the wall clock was at `epoch_ms` at [`Time::ZERO`].
pub fn stamp(epoch_ms: u64, now: Time) -> [u8; LENGTH] {
    let centis = (epoch_ms + now.since(Time::ZERO).as_millis() as u64) / 10;
    let (days, centis) = (centis / 8_640_000, centis % 8_640_000);
    let (year, month, day) = date(days);
    let mut text = [b'T'; LENGTH];
    let parts = [
        (0, 4, year),
        (4, 2, month),
        (6, 2, day),
        (9, 2, centis / 360_000),
        (11, 2, centis / 6000 % 60),
        (13, 2, centis / 100 % 60),
        (15, 2, centis % 100),
    ];
    for (at, width, mut value) in parts {
        for place in text.iter_mut().skip(at).take(width).rev() {
            *place = b'0' + (value % 10) as u8;
            value /= 10;
        }
    }
    text
}

/// Year, month and day, so many days after the first of January 1970 (Gregorian calendar, eras of 400 years that begin in March).
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (number, first) = (if month < 10 { month + 3 } else { month - 9 }, (153 * month + 2) / 5);
    (era * 400 + year + u64::from(number <= 2), number, day - first + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_dates_of_the_calendar() {
        for (seconds, expected) in [
            (0, "19700101T00000000"),
            (951_782_400, "20000229T00000000"),
            (1_767_225_599, "20251231T23595900"),
            (1_767_225_600, "20260101T00000000"),
            (4_107_542_400, "21000301T00000000"),
        ] {
            assert_eq!(stamp(seconds * 1000, Time::ZERO), expected.as_bytes(), "{seconds}");
        }
        assert_eq!(&stamp(1_767_225_600_000, Time::from_millis(12_345)), b"20260101T00001234");
    }
}
