//! Whether a trunk is told that it is not heard (RAI in its framing).

/// Periods without a signal, summed up as alarms are (T1A-04): those with one count a fifth against them, so a line that comes and goes is told too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dark {
    /// So many periods without a signal are told, and so many with one end it.
    after: u32,
    hold: u32,
    /// In fifths of a period.
    gathered: u32,
    /// Periods with a signal in a row, while it is told.
    light: u32,
    is_told: bool,
}

/// What a period without a signal counts, beside one with a signal.
const WEIGHT: u32 = 5;

impl Dark {
    /// One that tells after `after` periods without a signal, until there was one for `hold`.
    pub fn new(after: u32, hold: u32) -> Dark {
        Dark { after, hold, gathered: 0, light: 0, is_told: false }
    }

    /// A period passed; whether it is told now.
    pub fn pass(&mut self, is_dark: bool) -> bool {
        match (self.is_told, is_dark) {
            (false, true) => {
                self.gathered = self.gathered.saturating_add(WEIGHT);
                (self.is_told, self.light) = (self.gathered >= self.after.saturating_mul(WEIGHT), 0);
            }
            (false, false) => self.gathered = self.gathered.saturating_sub(1),
            (true, true) => self.light = 0,
            (true, false) => {
                self.light += 1;
                if self.light >= self.hold {
                    (self.is_told, self.gathered) = (false, 0);
                }
            }
        }
        self.is_told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many of `periods` what is told changes.
    fn changes(dark: &mut Dark, periods: impl Iterator<Item = bool>) -> Vec<usize> {
        let mut was = dark.is_told;
        let told = periods.enumerate().filter_map(|(n, is_dark)| {
            let is = dark.pass(is_dark);
            (std::mem::replace(&mut was, is) != is).then_some(n + 1)
        });
        told.collect()
    }

    #[test]
    fn rai_is_told_after_its_time_and_held_beyond_the_end() {
        let mut dark = Dark::new(2_000, 1_000);
        let once = std::iter::repeat_n(true, 3_000).chain(std::iter::repeat_n(false, 3_000));
        assert_eq!(changes(&mut dark, once), [2_000, 4_000]);
        let short = std::iter::repeat_n(true, 1_999).chain(std::iter::repeat_n(false, 20_000));
        assert!(changes(&mut dark, short).is_empty());
    }

    #[test]
    fn a_line_that_comes_and_goes_is_told_without_a_break() {
        let mut dark = Dark::new(2_000, 1_000);
        // Half a second each, as frames are lost over and over: 2.5 s of dark less a fifth of what is between.
        let flaps = (0..60_000).map(|ms| ms / 500 % 2 == 0);
        assert_eq!(changes(&mut dark, flaps).len(), 1);
        // A second in six is no failure.
        let mut dark = Dark::new(2_000, 1_000);
        assert!(changes(&mut dark, (0..60_000).map(|ms| ms % 6_000 < 1_000)).is_empty());
    }
}
