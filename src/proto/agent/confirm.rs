//! The identifiers whose final responses arrived and are still to be confirmed by a `K:` of a later command (RFC 3435 3.5.2).
//!
//! Each identifier is confirmed at most once and never later than T-HIST after its response (G-ACK-02). The set is small and
//! bounded: confirming is optional, so when it is full the oldest range is given up.

use std::time::Duration;

use super::text::Text;
use crate::proto::base::{Time, TransactionId};

/// The most ranges remembered.
const RANGES_MAX: usize = 32;

/// The most ranges written into one `K:`; RFC 3435 3.5.2 wants the lists short.
const RANGES_PER_LINE: usize = 3;

/// The longest `K:` line written, in bytes.
pub const LINE_MAX: usize = 3 + RANGES_PER_LINE * 21 + 2;

#[derive(Clone, Copy, Debug)]
struct Range {
    low: TransactionId,
    high: TransactionId,
    since: Time,
}

/// Identifiers to confirm.
#[derive(Debug)]
pub struct Confirmations {
    ranges: Vec<Range>,
    given_up: u64,
}

impl Default for Confirmations {
    fn default() -> Confirmations {
        Confirmations::new()
    }
}

impl Confirmations {
    /// Nothing to confirm.
    pub fn new() -> Confirmations {
        Confirmations { ranges: Vec::with_capacity(RANGES_MAX), given_up: 0 }
    }

    /// The final response of `id` has arrived.
    pub fn add(&mut self, now: Time, id: TransactionId) {
        // Responses come nearly in the order of the commands: the youngest range is the likely one.
        let Some(at) = self.ranges.iter().rposition(|r| id == r.high + 1 || id + 1 == r.low) else {
            if self.ranges.len() == RANGES_MAX {
                self.ranges.remove(0);
                self.given_up += 1;
            }
            self.ranges.push(Range { low: id, high: id, since: now });
            return;
        };
        let grown = &mut self.ranges[at];
        grown.low = grown.low.min(id);
        grown.high = grown.high.max(id);
        let (low, high) = (grown.low, grown.high);
        if let Some(neighbour) = self.ranges.iter().position(|r| r.low == high + 1 || r.high + 1 == low) {
            let other = self.ranges[neighbour];
            let kept = &mut self.ranges[at];
            kept.low = kept.low.min(other.low);
            kept.high = kept.high.max(other.high);
            kept.since = Time(kept.since.0.min(other.since.0));
            self.ranges.remove(neighbour);
        }
    }

    /// Writes one `K:` line, or nothing when there is nothing to confirm, and forgets what it wrote.
    pub fn write(&mut self, now: Time, history: Duration, out: &mut Text<'_>) {
        self.ranges.retain(|r| now.since(r.since) < history);
        let count = self.ranges.len().min(RANGES_PER_LINE);
        for (i, range) in self.ranges.drain(..count).enumerate() {
            out.push(if i == 0 { b"K: " } else { b", " });
            out.number(range.low);
            if range.high > range.low {
                out.push(b"-");
                out.number(range.high);
            }
        }
        if count > 0 {
            out.push(b"\r\n");
        }
    }

    /// Ranges given up because the set was full.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(set: &mut Confirmations, now: Time) -> String {
        let mut bytes = [0; LINE_MAX];
        let mut text = Text::new(&mut bytes);
        set.write(now, Duration::from_secs(30), &mut text);
        String::from_utf8(text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn ranges_grow_join_and_are_confirmed_once() {
        let mut set = Confirmations::new();
        for id in [5, 7, 8, 6, 20, 19, 40] {
            set.add(Time::ZERO, id);
        }
        assert_eq!(line(&mut set, Time::ZERO), "K: 5-8, 19-20, 40\r\n");
        assert_eq!(line(&mut set, Time::ZERO), "");
    }

    #[test]
    fn lists_are_short_and_old_ranges_are_dropped() {
        let mut set = Confirmations::new();
        for id in [999_999_990, 999_999_992, 999_999_994, 999_999_996] {
            set.add(Time::ZERO, id);
            set.add(Time::ZERO, id + 1_000);
        }
        let text = line(&mut set, Time::ZERO);
        assert_eq!(text.matches(',').count() + 1, RANGES_PER_LINE);
        assert_eq!(line(&mut set, Time::from_millis(30_000)), "");
    }

    #[test]
    fn a_full_set_gives_up_its_oldest_range() {
        let mut set = Confirmations::new();
        for id in 0..=RANGES_MAX as u32 {
            set.add(Time::ZERO, 1 + 2 * id);
        }
        assert_eq!(set.given_up(), 1);
        assert!(line(&mut set, Time::ZERO).starts_with("K: 3, 5, 7"));
    }
}
