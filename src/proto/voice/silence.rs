//! How long nothing has come from a far end (R/rto; the time-out of media).

use crate::proto::base::{Mode, Time};
use std::time::Duration;

/// The watch over one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silence {
    /// The last packet that came while both ends were to send; none before the first one.
    last: Option<Time>,
    /// Since then it was told that nothing comes.
    told: bool,
    /// What an agent asked for: seconds, and from when; no time before the first report, when it is to be measured from that.
    asked: Option<(u16, Option<Time>)>,
}

impl Silence {
    /// An agent asks to be told of so many seconds of silence, from now or from the next report on; or does not ask any more.
    pub fn ask(&mut self, now: Time, asked: Option<(u16, bool)>) {
        self.asked = asked.map(|(seconds, after_report)| (seconds, (!after_report).then_some(now)));
    }

    /// A packet came.
    pub fn note(&mut self, now: Time, mode: Mode, report: bool) {
        if matches!(mode, Mode::SendRecv | Mode::Conference) && (!report || self.last.is_some()) {
            (self.last, self.told) = (Some(now), false);
        }
        if let Some((_, from)) = &mut self.asked
            && (from.is_some() || report)
        {
            *from = Some(now);
        }
    }

    /// The far end is not expected to send, or begins anew to be.
    pub fn disarm(&mut self) {
        (self.last, self.told) = (None, false);
    }

    /// The seconds that an agent wanted to be told of; once.
    pub fn asked_is_over(&mut self, now: Time) -> Option<u16> {
        let (seconds, Some(from)) = self.asked? else { return None };
        if now.since(from) < Duration::from_secs(seconds.into()) {
            return None;
        }
        self.asked = None;
        Some(seconds)
    }

    /// Nothing has come for so long, and whether that was told before: after as long again it is told again, because who was told may have
    /// been unable to act on it.
    pub fn is_over(&mut self, now: Time, limit: Duration) -> Option<bool> {
        self.last.filter(|last| limit > Duration::ZERO && now.since(*last) >= limit)?;
        self.last = Some(now);
        Some(std::mem::replace(&mut self.told, true))
    }
}
