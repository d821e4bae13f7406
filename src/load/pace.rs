//! When commands are due: by a fixed schedule (open loop), or whenever fewer than a window are outstanding (closed loop).
//!
//! Open loop: command i is due at start + i / rate whatever the gateway does. A command that cannot go out then stays due, and its
//! latency counts from the time it was due, so that a stall of the gateway shows in full (no coordinated omission).

use std::time::Duration;

use super::player::Player;
use crate::proto::agent::Started;
use crate::proto::base::{Rng, Time};

/// A command sent more than this after it was due was late.
pub const LATE: Duration = Duration::from_millis(1);

/// The most commands started between two looks at the socket.
const BURST: usize = 128;

/// Open or closed loop.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Loop {
    /// Commands per second.
    Rate(f64),
    /// Commands outstanding.
    Window(usize),
}

/// The schedule of a run.
pub struct Pace {
    kind: Loop,
    start: Time,
    end: Time,
    /// Commands that the schedule has let out.
    next: u64,
    /// With arrivals at random (a Poisson process): what decides, and when the next one is due.
    random: Option<(Rng, Time)>,
    /// Of these, the calls that the throttle refused.
    held_back: u64,
    /// Whether commands wait because no endpoint was ready for one.
    starving: bool,
    /// Commands that waited for an endpoint (open loop), or times that the window could not be filled (closed loop).
    pub starved: u64,
    /// Commands sent more than [`LATE`] after they were due though an endpoint was ready: the generator was too slow.
    pub late: u64,
    /// The longest that the generator was late.
    pub late_max: Duration,
}

impl Pace {
    /// A schedule from `start` for `duration`.
    pub fn new(kind: Loop, start: Time, duration: Duration) -> Pace {
        let end = start + duration;
        Pace { kind, start, end, next: 0, random: None, held_back: 0, starving: false, starved: 0, late: 0, late_max: Duration::ZERO }
    }

    /// Open loop: the times between commands are random, as those between calls of many people are.
    pub fn arrive_at_random(&mut self, rng: Rng) {
        self.random = Some((rng, self.start));
        self.draw();
    }

    fn draw(&mut self) {
        if let (Some((rng, at)), Loop::Rate(rate)) = (&mut self.random, self.kind) {
            let unit = (rng.next() >> 11) as f64 / (1u64 << 53) as f64;
            *at += Duration::from_secs_f64((-(1.0 - unit).ln() / rate).min(3600.0));
        }
    }

    /// Starts the commands that are due; gives how many.
    pub(super) fn start_due(&mut self, now: Time, agent: &mut impl Player) -> usize {
        let mut count = 0;
        while count < BURST {
            let due = self.due();
            let full = matches!(self.kind, Loop::Window(window) if agent.under_way() >= window);
            if due > now || due >= self.end || full {
                self.starving = false;
                break;
            }
            let intended = if let Loop::Window(_) = self.kind { now } else { due };
            match agent.start(now, intended) {
                Started::Sent => self.note_sent(now.since(intended)),
                Started::HeldBack => {
                    self.note_sent(now.since(intended));
                    self.held_back += 1;
                }
                Started::Starved | Started::Full => {
                    if !self.starving && matches!(self.kind, Loop::Window(_)) {
                        self.starved += 1;
                    }
                    self.starving = true;
                    break;
                }
            }
            count += 1;
        }
        count
    }

    /// When the next command is due; in a closed loop only responses tell.
    pub fn deadline(&self) -> Time {
        match self.kind {
            Loop::Rate(_) if !self.starving => self.due().min(self.end),
            _ => self.end,
        }
    }

    /// Whether commands wait for an endpoint.
    pub fn is_starving(&self) -> bool {
        self.starving
    }

    /// How many commands went out.
    pub fn sent(&self) -> u64 {
        self.next - self.held_back
    }

    /// Whether the schedule has ended.
    pub fn is_over(&self, now: Time) -> bool {
        now >= self.end
    }

    /// Commands that were due before `now` and did not go out.
    pub fn unsent(&self, now: Time) -> u64 {
        match self.kind {
            // How many should have come by now is chance.
            Loop::Rate(_) if self.random.is_some() => 0,
            Loop::Rate(rate) => ((now.min(self.end).since(self.start).as_secs_f64() * rate).ceil() as u64).saturating_sub(self.next),
            Loop::Window(_) => 0,
        }
    }

    /// Ends the schedule now.
    pub fn stop(&mut self, now: Time) {
        self.end = self.end.min(now);
    }

    /// How long the schedule runs in all.
    pub fn duration(&self) -> Duration {
        self.end.since(self.start)
    }

    fn due(&self) -> Time {
        match (self.kind, &self.random) {
            (Loop::Rate(_), Some((_, at))) => *at,
            (Loop::Rate(rate), None) => self.start + Duration::from_secs_f64(self.next as f64 / rate),
            (Loop::Window(_), _) => self.start,
        }
    }

    fn note_sent(&mut self, lateness: Duration) {
        self.next += 1;
        self.draw();
        if self.starving {
            self.starved += u64::from(matches!(self.kind, Loop::Rate(_)));
        } else if lateness > LATE {
            self.late += 1;
            self.late_max = self.late_max.max(lateness);
        }
    }
}
