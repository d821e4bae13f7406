//! The RTP ports of one core's part of the card: even ones, first free first used again.
//!
//! A port that is given back goes to the end of the queue, so that it rests as long as possible before somebody else's late packets
//! could reach its next user.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// Free RTP ports. As many as there are at construction is the most it ever holds, so it never allocates again.
#[derive(Debug)]
pub struct PortPool(VecDeque<u16>);

impl PortPool {
    /// The share number `part` (0-based) of `parts` equal ones of `range`: each port even, the next one (RTCP) in the range as well.
    /// Shares do not overlap and leave nothing over. Empty when there is no such part.
    pub fn new(range: RangeInclusive<u16>, part: u32, parts: u32) -> PortPool {
        // Port 0 is no port.
        let first = u64::from(*range.start()).max(1).div_ceil(2);
        let end = u64::from(*range.end()).div_ceil(2);
        let pairs = end.saturating_sub(first);
        let bound = |n: u64| (pairs * n).checked_div(u64::from(parts)).unwrap_or(0).min(pairs);
        let share = bound(u64::from(part))..bound(u64::from(part) + 1);
        PortPool(share.filter_map(|n| u16::try_from((first + n) * 2).ok()).collect())
    }

    /// The port that has rested longest.
    pub fn take(&mut self) -> Option<u16> {
        self.0.pop_front()
    }

    /// Gives back a port that was taken.
    pub fn give_back(&mut self, port: u16) {
        self.0.push_back(port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(range: RangeInclusive<u16>, part: u32, parts: u32) -> Vec<u16> {
        let mut pool = PortPool::new(range, part, parts);
        std::iter::from_fn(|| pool.take()).collect()
    }

    #[test]
    fn ports_are_even_and_their_rtcp_port_is_in_the_range() {
        assert_eq!(all(4000..=4005, 0, 1), [4000, 4002, 4004]);
        assert_eq!(all(4001..=4006, 0, 1), [4002, 4004]);
        assert_eq!(all(0..=3, 0, 1), [2]);
        assert_eq!(all(65530..=65535, 0, 1), [65530, 65532, 65534]);
        assert_eq!(all(4000..=4000, 0, 1), Vec::<u16>::new());
        let (first, last) = (4001, 4000);
        assert_eq!(all(first..=last, 0, 1), Vec::<u16>::new());
    }

    #[test]
    fn shares_are_disjoint_and_leave_nothing_over() {
        for parts in 1..=7 {
            let shares: Vec<Vec<u16>> = (0..parts).map(|part| all(10_001..=10_202, part, parts)).collect();
            assert_eq!(shares.concat(), all(10_001..=10_202, 0, 1));
            let sizes = shares.iter().map(Vec::len);
            assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
        }
        assert_eq!(all(4000..=4100, 3, 3), Vec::<u16>::new());
        assert_eq!(all(4000..=4100, 0, 0), Vec::<u16>::new());
    }

    #[test]
    fn a_port_rests_as_long_as_possible() {
        let mut pool = PortPool::new(4000..=4005, 0, 1);
        assert_eq!(pool.take(), Some(4000));
        pool.give_back(4000);
        assert_eq!([pool.take(), pool.take(), pool.take(), pool.take()], [Some(4002), Some(4004), Some(4000), None]);
    }
}
