//! For tests of one core among others: one of two, and what it tells the other.

use super::announce::{Announcement, Stage};
use super::{Boot, Core, Envelope, Frames, Origin, Outside, Turn, exercise};
use crate::proto::aggregate::Pattern;
use crate::proto::base::{CoreId, Counters, FrameRef, Time};
use crate::proto::endpoint::RestartMethod;
use crate::proto::mgcp::Restart;
use crate::proto::plan::Plan;
use crate::proto::trunk::{FacilityKind, FacilityPlan};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub(super) struct NoFrames;

impl Frames for NoFrames {
    type Datagram<'a> = &'a [u8];

    fn read(&self, _: FrameRef) -> Option<(&[u8], Origin)> {
        None
    }
}

/// The way to the other core, with room for so many envelopes.
#[derive(Default)]
pub(super) struct Ring {
    pub room: usize,
    pub told: Vec<Envelope>,
}

impl Ring {
    /// The lead core says something.
    pub fn tell(&mut self, core: &mut Core, envelope: Envelope) {
        core.handle_envelope(&mut Turn { now: Time::ZERO, frames: &NoFrames, out: self }, CoreId(0), envelope);
    }

    /// Does something to a core at that time.
    pub fn with<R>(&mut self, now: Time, act: impl FnOnce(&mut Turn<'_, NoFrames, Ring>) -> R) -> R {
        act(&mut Turn { now, frames: &NoFrames, out: self })
    }

    /// One turn of the loop at that time.
    pub fn turn(&mut self, core: &mut Core, at: Duration) {
        core.handle_time(&mut Turn { now: Time::ZERO + at, frames: &NoFrames, out: self });
    }
}

impl Outside for Ring {
    fn transmit(&mut self, _: SocketAddr, _: u8, _: impl FnOnce(&mut [u8]) -> usize) -> bool {
        false
    }

    fn forward(&mut self, _: CoreId, envelope: Envelope) -> bool {
        let fits = self.told.len() < self.room;
        if fits {
            self.told.push(envelope);
        }
        fits
    }

    fn release(&mut self, _: FrameRef) {}
}

/// The second of two cores, which owns the second of two T1s.
pub(super) fn second_core(change: impl FnOnce(&mut Plan)) -> Core {
    core_of_two(CoreId(1), change)
}

/// One of two cores, each of which owns a T1.
pub(super) fn core_of_two(core: CoreId, change: impl FnOnce(&mut Plan)) -> Core {
    core_of(2, core, change)
}

/// One of so many cores, each of which owns a T1.
pub(super) fn core_of(cores: u8, core: CoreId, change: impl FnOnce(&mut Plan)) -> Core {
    let t1 = |unit| FacilityPlan { kind: FacilityKind::T1, unit, common_channel: false };
    let spans: Vec<_> = (1..=cores.into()).map(t1).collect();
    let mut plan = exercise::plan(&spans, 8, 8, 1000).unwrap();
    (plan.cores, plan.owners) = (cores, (0..cores).map(CoreId).collect());
    change(&mut plan);
    let card = Box::new(exercise::card(&plan, [192, 0, 2, 10].into(), 8, 1));
    let (plan, settings, counters) = (Arc::new(plan), Arc::new(exercise::settings()), Arc::new(Counters::new()));
    Core::new(Boot { core, plan, settings, counters, card, gateway_cards: Vec::new(), seed: 1, now: Time::ZERO })
}

/// What the lead core says of an RSIP for the whole gateway.
pub(super) fn say(method: RestartMethod, stage: Stage) -> Envelope {
    let restart = Restart { pattern: Pattern::Gateway, method, delay_s: 0, reason: 0 };
    Envelope::Announce(Announcement { number: 0, transaction: 7, restart, stage })
}
