//! What another core asked to be made at an endpoint whose agent must hear first that it was disconnected: the free one that was found
//! for `$`, or the second of a pair. 405 may be seen before a restart, but not before that (RFC 3435 4.4.6, 4.4.7; G-DIS-06), so it
//! waits here until the announcement is out.

use super::Core;
use super::admission::NO_FIRST;
use super::envelope::{Envelope, JobId, Message};
use super::outside::{Frames, Outside, Turn};
use super::receive::Received;
use crate::proto::base::{CoreId, EndpointIndex, Time};
use crate::proto::endpoint::Announcement as Told;
use crate::proto::mgcp::create::Half;
use crate::proto::mgcp::{self, Refused};

/// So many can wait; more are refused.
const FOUND: usize = 64;

/// Something to be made for a command that `core` coordinates.
#[derive(Clone, Copy)]
struct Found {
    asked: (CoreId, JobId, Message),
    endpoint: EndpointIndex,
    half: Half,
    until: Time,
}

/// What waits, in the order in which it was asked for.
pub(super) struct Finds {
    list: Vec<Found>,
}

impl Finds {
    pub fn new() -> Finds {
        Finds { list: Vec::with_capacity(FOUND) }
    }

    /// When to call [`Core::make_found`] at the latest.
    pub fn deadline(&self) -> Time {
        self.list.first().map_or(Time::NEVER, |found| found.until)
    }
}

impl Core {
    /// Whether what was asked for may be made at `endpoint` now. False: it will be, or refused, when the agent was told that the endpoint
    /// was disconnected.
    pub(super) fn may_make<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        asked: (CoreId, JobId, Message),
        endpoint: EndpointIndex,
        half: Half,
    ) -> Result<bool, Refused> {
        let Some(state) = self.calls.endpoints.get(endpoint).filter(|state| state.announcement == Told::Waiting) else { return Ok(true) };
        let waits = state.disconnected && self.finds.list.len() < FOUND;
        self.trigger_restart(turn, endpoint, None);
        if !waits {
            return Err(mgcp::RESTARTING);
        }
        self.finds.list.push(Found { asked, endpoint, half, until: turn.now + self.settings.timers.vote });
        Ok(false)
    }

    /// Makes what waited for an announcement that is out, and refuses what waited too long.
    pub(super) fn make_found<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        let mut place = 0;
        while let Some(&Found { asked: (core, job, message), endpoint, half, until }) = self.finds.list.get(place) {
            let state = self.calls.endpoints.get(endpoint);
            let announced = state.is_some_and(|state| state.announcement != Told::Waiting);
            let is_idle = state.is_some_and(|state| state.is_idle());
            if !announced && until > turn.now {
                place += 1;
                continue;
            }
            self.finds.list.remove(place);
            if announced && !is_idle {
                // Another command was faster, or it was named and need not be free.
                match half {
                    Half::Whole => self.handle_try(turn, core, job, message),
                    Half::First | Half::Second => self.handle_pair(turn, (core, job, message), NO_FIRST),
                }
                continue;
            }
            let made = self.parsed(turn, message, |here, turn, command| {
                let received = Received::of(turn, message)?;
                if announced { here.make_for(turn, (core, job, received), command, endpoint, half) } else { Err(mgcp::RESTARTING) }
            });
            if let Err(refused) = made {
                self.must_tell(turn, core, Envelope::TryFailed { job, refused });
            }
        }
    }
}
