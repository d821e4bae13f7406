//! Reading ahead: what the commands of a batch will need comes into the cache all at once.
//!
//! With 100,000 endpoints nearly every command meets rows that no cache holds. Met one after another each costs a full way to memory;
//! read together, in loops so short that the processor sees many of them at a time, they cost little more than one way. Nothing is
//! decided here: names are guessed, nobody is asked whether they may command, and whatever is wrong only costs time.

use super::Core;
use super::outside::Frames;
use crate::proto::base::{EndpointIndex, FrameRef};
use crate::proto::codec::peek;

/// Endpoints whose rows the cache of a core holds anyway.
const CACHED: u32 = 2048;

/// Commands that are looked at together.
const TOGETHER: usize = 32;

impl Core {
    /// Reads what the datagrams of `batch`, which will be handled soon, are going to need.
    pub fn read_ahead<F: Frames>(&self, frames: &F, batch: &[FrameRef]) {
        if batch.len() < 2 || self.calls.endpoints.count() <= CACHED {
            return;
        }
        for part in batch.chunks(TOGETHER) {
            let mut endpoints = [EndpointIndex::default(); TOGETHER];
            let mut count = 0;
            let named = part.iter().filter_map(|&frame| {
                let (datagram, _) = frames.read(frame)?;
                self.plan.topology.lookup(peek::local_name(&datagram)?)
            });
            for (place, endpoint) in endpoints.iter_mut().zip(named) {
                *place = endpoint;
                count += 1;
            }
            std::hint::black_box(self.calls.endpoints.read_ahead(endpoints.get(..count).unwrap_or_default()));
        }
    }
}
