//! What a connection says and hears by RTCP, and when (RFC 3550 6.2, 6.3): the small session of two.

use super::rtcp::{self, Heard, OCTETS_MAX, Report, Sent};
use super::sender::Sender;
use super::statistics::Statistics;
use crate::proto::base::{Rng, Time};
use std::time::Duration;

/// The shortest mean time between reports.
const INTERVAL: Duration = Duration::from_secs(5);

/// The RTCP of one connection.
#[derive(Debug)]
pub(super) struct Control {
    rng: Rng,
    name: [u8; 12],
    /// When the next report is due.
    pub due: Time,
    /// Packets sent when the last report was.
    reported: u32,
    /// The last sender report that came: the middle of its NTP time, and when.
    last: Option<(u32, Time)>,
    /// Round trips: their sum in 1/65536 s, and how many.
    trips: (u64, u32),
}

impl Control {
    pub fn new() -> Control {
        Control { rng: Rng::new(0), name: [0; 12], due: Time::NEVER, reported: 0, last: None, trips: (0, 0) }
    }

    /// A new connection: its first report comes in half the time.
    pub fn start(&mut self, now: Time, seed: u64) {
        let mut rng = Rng::new(seed);
        let (one, other) = (rng.next().to_be_bytes(), rng.next().to_be_bytes());
        self.name.iter_mut().zip(one.into_iter().chain(other)).for_each(|(place, octet)| *place = octet);
        let due = now + rng.duration(INTERVAL / 4, INTERVAL * 3 / 4);
        *self = Control { rng, due, ..Control { name: self.name, ..Control::new() } };
    }

    /// Something random of its own.
    pub fn draw(&mut self) -> u64 {
        self.rng.next()
    }

    /// LA, in ms: the mean of half the round trips (F-10); 0: none was seen.
    pub fn latency_ms(&self) -> u32 {
        let (sum, trips) = self.trips;
        let mean = sum.checked_div(u64::from(trips)).unwrap_or(0);
        u32::try_from(mean * 1_000 / 2 / 65_536).unwrap_or(u32::MAX)
    }

    /// An RTCP datagram came; false when it is none.
    pub fn receive(&mut self, now: Time, wall: u64, us: u32, octets: &[u8]) -> Option<Heard> {
        let heard = rtcp::read(octets, us)?;
        if let Some(middle) = heard.sender_report {
            self.last = Some((middle, now));
        }
        if let Some((last, delay)) = heard.about_us
            && last != 0
        {
            let trip = ((ntp(now, wall) >> 16) as u32).wrapping_sub(last).wrapping_sub(delay) as i32;
            // What comes back before it went, or after ten minutes, is no trip of ours.
            if (0..600 << 16).contains(&trip) {
                self.trips = (self.trips.0 + u64::from(trip.unsigned_abs()), self.trips.1.saturating_add(1));
            }
        }
        Some(heard)
    }

    /// Writes the report that is due; the next one comes in 2.5 to 7.5 s.
    pub fn write<'r>(
        &mut self,
        room: &'r mut [u8; OCTETS_MAX],
        (now, wall): (Time, u64),
        sender: &Sender,
        statistics: &mut Statistics,
        bye: bool,
    ) -> &'r [u8] {
        let (packets, octets) = sender.counted();
        let sent = Sent { ntp: ntp(now, wall), timestamp: sender.timestamp(), packets, octets };
        let report = statistics.block().map(|block| {
            let (last_report, at) = self.last.unwrap_or_default();
            let delay = if self.last.is_some() { (now.since(at).as_nanos() * 65_536 / 1_000_000_000) as u32 } else { 0 };
            Report { block, last_report, delay }
        });
        let sends = packets != self.reported;
        self.reported = packets;
        self.due = now + self.rng.duration(INTERVAL / 2, INTERVAL * 3 / 2);
        rtcp::write(room, sender.ssrc(), &self.name, sends.then_some(sent), report, bye)
    }
}

/// `now` as NTP time; `wall` is that of the origin.
fn ntp(now: Time, wall: u64) -> u64 {
    wall.wrapping_add(((u128::from(now.0) << 32) / 1_000_000_000) as u64)
}
