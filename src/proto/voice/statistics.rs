//! What is counted of the packets that arrive (RFC 3550 6.4.1, appendices A.3 and A.8; G-STA-02 to G-STA-05).

use super::rtp::Packet;
use crate::proto::base::Time;

/// Nanoseconds of one octet at 64 kbit/s.
pub(super) const OCTET_NS: u64 = 125_000;

/// Counts of one connection, over all sources it had.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statistics {
    /// Packets and payload octets.
    pub packets: u32,
    pub octets: u32,
    /// Of sources before the present one.
    lost_before: i64,
    source: Option<Source>,
}

/// The present source.
#[derive(Clone, Copy, Debug)]
struct Source {
    ssrc: u32,
    first: u16,
    /// The highest sequence number, extended by how often it wrapped.
    highest: u32,
    received: u32,
    /// Arrival less timestamp of the last packet, in octets.
    transit: u32,
    /// Times 16, in octets.
    jitter: u32,
    /// Expected and received at the last report.
    reported: (u32, u32),
}

/// What a report block says of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Block {
    pub ssrc: u32,
    pub fraction_lost: u8,
    pub lost: i32,
    pub highest: u32,
    pub jitter: u32,
}

impl Statistics {
    /// Counts a packet; whether it is the first of its source.
    pub fn note(&mut self, now: Time, packet: &Packet<'_>) -> bool {
        self.packets = self.packets.saturating_add(1);
        self.octets = self.octets.saturating_add(packet.payload.len() as u32);
        let transit = ((now.0 / OCTET_NS) as u32).wrapping_sub(packet.timestamp);
        match &mut self.source {
            Some(source) if source.ssrc == packet.ssrc => {
                source.note(packet.sequence, transit);
                false
            }
            _ => {
                self.lost_before += self.source.map_or(0, |source| source.lost());
                self.source = Some(Source {
                    ssrc: packet.ssrc,
                    first: packet.sequence,
                    highest: packet.sequence.into(),
                    received: 1,
                    transit,
                    jitter: 0,
                    reported: (0, 0),
                });
                true
            }
        }
    }

    /// PL: never below zero (G-STA-04).
    pub fn lost(&self) -> u32 {
        let lost = self.lost_before + self.source.map_or(0, |source| source.lost());
        u32::try_from(lost.max(0)).unwrap_or(u32::MAX)
    }

    /// JI, in ms (F-10).
    pub fn jitter_ms(&self) -> u32 {
        self.source.map_or(0, |source| (source.jitter / 16 + 4) / 8)
    }

    /// What a report says of the time since the last one.
    pub fn block(&mut self) -> Option<Block> {
        let source = self.source.as_mut()?;
        let (expected, received) = (source.expected(), source.received);
        let (expected_now, received_now) = (expected.wrapping_sub(source.reported.0), received.wrapping_sub(source.reported.1));
        source.reported = (expected, received);
        let lost_now = i64::from(expected_now) - i64::from(received_now);
        let fraction = if lost_now > 0 && expected_now > 0 { (lost_now * 256 / i64::from(expected_now)).min(255) } else { 0 };
        Some(Block {
            ssrc: source.ssrc,
            fraction_lost: fraction as u8,
            lost: source.lost().clamp(-0x80_0000, 0x7f_ffff) as i32,
            highest: source.highest,
            jitter: source.jitter / 16,
        })
    }
}

impl Source {
    fn note(&mut self, sequence: u16, transit: u32) {
        self.received = self.received.wrapping_add(1);
        let ahead = sequence.wrapping_sub(self.highest as u16) as i16;
        if ahead > 0 {
            self.highest = self.highest.wrapping_add(u32::from(ahead.unsigned_abs()));
        }
        let change = transit.wrapping_sub(self.transit) as i32;
        self.transit = transit;
        // A clock that jumps is no jitter.
        if change.unsigned_abs() < 8_000 * 2 {
            self.jitter = self.jitter.saturating_add(change.unsigned_abs()).saturating_sub((self.jitter + 8) / 16);
        }
    }

    fn expected(&self) -> u32 {
        self.highest.wrapping_sub(self.first.into()).wrapping_add(1)
    }

    fn lost(&self) -> i64 {
        i64::from(self.expected()) - i64::from(self.received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(sequence: u16) -> Packet<'static> {
        let timestamp = u32::from(sequence) * 160;
        Packet { marker: false, payload_type: 0, sequence, timestamp, ssrc: 7, payload: &[0; 160] }
    }

    fn arrive(statistics: &mut Statistics, sequence: u16, late_ms: u64) {
        statistics.note(Time::from_millis(u64::from(sequence) * 20 + late_ms), &packet(sequence));
    }

    #[test]
    fn what_is_missing_is_lost() {
        let mut statistics = Statistics::default();
        (0..100).filter(|n| n % 10 != 5).for_each(|n| arrive(&mut statistics, n, 0));
        assert_eq!((statistics.packets, statistics.octets, statistics.lost()), (90, 90 * 160, 10));
        let block = statistics.block().unwrap();
        assert_eq!((block.fraction_lost, block.lost, block.highest), (25, 10, 99));
        assert_eq!(statistics.block().unwrap().fraction_lost, 0, "nothing has come since");
    }

    /// G-STA-04: late packets count as received, and duplicates do not make it less than nothing.
    #[test]
    fn loss_is_never_below_zero() {
        let mut statistics = Statistics::default();
        [0, 2, 1, 3].into_iter().for_each(|n| arrive(&mut statistics, n, 0));
        assert_eq!(statistics.lost(), 0);
        (0..10).for_each(|_| arrive(&mut statistics, 3, 0));
        assert_eq!(statistics.lost(), 0);
        assert_eq!(statistics.block().unwrap().lost, -10);
    }

    #[test]
    fn sequence_numbers_wrap_and_sources_change() {
        let mut statistics = Statistics::default();
        let at = |statistics: &mut Statistics, sequence: u16, ssrc| statistics.note(Time::ZERO, &Packet { ssrc, ..packet(sequence) });
        assert!(at(&mut statistics, 0xfffe, 1));
        assert!(!at(&mut statistics, 0xffff, 1) && !at(&mut statistics, 1, 1));
        assert_eq!(statistics.lost(), 1);
        assert!(at(&mut statistics, 40_000, 2));
        assert_eq!((statistics.lost(), statistics.packets, statistics.block().unwrap().ssrc), (1, 4, 2));
    }

    /// G-STA-05: every other packet 20 ms late converges to a jitter of 20 ms.
    #[test]
    fn jitter_is_in_milliseconds() {
        let mut statistics = Statistics::default();
        (0..2_000).for_each(|n| arrive(&mut statistics, n, u64::from(n % 2) * 20));
        assert_eq!(statistics.jitter_ms(), 20);
    }
}
