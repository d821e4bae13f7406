//! One direction of a connection's media: packets and octets as time makes them, without work per packet.
//!
//! A packet is complete at the end of each whole period since the stream began. Of the packets on the way here, a given share is
//! lost, spread evenly from a seeded start, so that the count of any later moment follows from one multiplication.

use crate::proto::base::Time;

const PER_MILLION: u32 = 1_000_000;
const NANOS_PER_MS: u64 = 1_000_000;

/// How fast a stream runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Pace {
    /// Packetization period in ms; 0: no packets, the stream is silent.
    pub(super) period_ms: u16,
    /// Payload bytes of each packet.
    pub(super) packet_bytes: u16,
    /// Packets per million that are lost.
    pub(super) loss: u32,
}

impl Pace {
    /// No packets.
    pub(super) const SILENT: Pace = Pace { period_ms: 0, packet_bytes: 0, loss: 0 };
}

/// What a stream has counted until `since`, and its pace from then on. Counts stop at the most a report can say: half a cache line
/// holds a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Stream {
    /// Packets that were not lost.
    pub(super) packets: u32,
    /// Their payload octets.
    pub(super) octets: u32,
    /// Packets that were lost.
    pub(super) lost: u32,
    /// The end of the last packet, or the start of the stream.
    since: Time,
    /// Millionths of a lost packet so far, below a million.
    loss_phase: u32,
    pace: Pace,
}

impl Stream {
    /// A silent stream; `loss_phase`, taken modulo one million, says how near the first loss is.
    pub(super) fn new(loss_phase: u32) -> Stream {
        Stream { loss_phase: loss_phase % PER_MILLION, ..Stream::default() }
    }

    /// The stream with everything counted that was complete at `now`.
    pub(super) fn at(&self, now: Time) -> Stream {
        let pace = self.pace;
        let period = u64::from(pace.period_ms) * NANOS_PER_MS;
        let Some(due) = now.0.saturating_sub(self.since.0).checked_div(period) else { return *self };
        let (lost, loss_phase) = if pace.loss == 0 { (0, self.loss_phase) } else { self.losses(due) };
        let arrived = due - lost;
        let add = |count: u32, more: u64| u32::try_from(u64::from(count).saturating_add(more)).unwrap_or(u32::MAX);
        Stream {
            packets: add(self.packets, arrived),
            octets: add(self.octets, arrived.saturating_mul(u64::from(pace.packet_bytes))),
            lost: add(self.lost, lost),
            since: Time(self.since.0 + due * period),
            loss_phase,
            pace,
        }
    }

    /// How many of the next `due` packets are lost, at most all of them, and the phase behind them.
    fn losses(&self, due: u64) -> (u64, u32) {
        let millionths = u128::from(due) * u128::from(self.pace.loss.min(PER_MILLION)) + u128::from(self.loss_phase);
        // At most `due`, because the phase is below one packet.
        ((millionths / u128::from(PER_MILLION)) as u64, (millionths % u128::from(PER_MILLION)) as u32)
    }

    /// Runs at another pace from `now` on. With the same period the packet in the making goes on, else it is discarded.
    pub(super) fn set_pace(&mut self, now: Time, pace: Pace) {
        if self.pace == pace {
            return;
        }
        *self = self.at(now);
        if self.pace.period_ms != pace.period_ms {
            self.since = now;
        }
        self.pace = pace;
    }

    #[cfg(test)]
    pub(super) fn loss_phase(&self) -> u32 {
        self.loss_phase
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn pace(period_ms: u16, packet_bytes: u16, loss: u32) -> Pace {
        Pace { period_ms, packet_bytes, loss }
    }

    #[test]
    fn counts_follow_time_over_changes_of_pace() {
        // G-STA-02: payload only, whole life of the connection.
        let mut stream = Stream::new(0);
        stream.set_pace(ms(5), pace(20, 160, 0));
        assert_eq!(stream.at(ms(24)).packets, 0);
        assert_eq!(stream.at(ms(25)).packets, 1);
        assert_eq!((stream.at(ms(2005)).packets, stream.at(ms(2005)).octets), (100, 16_000));
        // The packet in the making is discarded with its period, and goes on when only the codec changes.
        stream.set_pace(ms(2020), pace(10, 80, 0));
        assert_eq!((stream.at(ms(2029)).packets, stream.at(ms(2030)).packets), (100, 101));
        stream.set_pace(ms(2035), pace(10, 10, 0));
        assert_eq!((stream.at(ms(2040)).packets, stream.at(ms(2040)).octets), (102, 16_090));
        stream.set_pace(ms(2045), Pace::SILENT);
        assert_eq!(stream.at(ms(90_000)).packets, 102);
    }

    #[test]
    fn no_period_no_packets_and_time_never_runs_back() {
        let mut stream = Stream::new(0);
        stream.set_pace(ms(10), pace(0, 160, 0));
        assert_eq!(stream.at(Time::NEVER).packets, 0);
        stream.set_pace(ms(10), pace(20, 160, 0));
        assert_eq!(stream.at(ms(3)).packets, 0);
        assert_eq!(stream.at(Time::NEVER).octets, u32::MAX);
    }

    #[test]
    fn losses_are_exact_in_the_long_run() {
        let lost = |phase, loss, packets: u32| {
            let mut stream = Stream::new(phase);
            stream.set_pace(ms(0), pace(10, 80, loss));
            let stream = stream.at(ms(10 * u64::from(packets)));
            assert_eq!(stream.packets + stream.lost, packets);
            assert_eq!(stream.octets, stream.packets * 80);
            stream.lost
        };
        assert_eq!(lost(0, 10_000, 100_000), 1_000);
        assert_eq!((lost(0, 10_000, 99), lost(990_000, 10_000, 1)), (0, 1));
        assert_eq!((lost(999_999, 1_000_000, 7), lost(0, u32::MAX, 7), lost(999_999, 0, 7)), (7, 7, 0));
    }
}
