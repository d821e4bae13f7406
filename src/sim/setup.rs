//! What a world starts from, and what goes wrong in it.

use super::layout::Layout;
use crate::proto::trunk::{FacilityKind, FacilityPlan, Srtp};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);

/// What a world starts from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The cores.
    pub layout: Layout,
    /// Decides everything.
    pub seed: u64,
    /// The trunks.
    pub facilities: Vec<FacilityPlan>,
    /// Frames of a core to receive into, beside those that may stay in hand.
    pub frames: u32,
    /// Whether the restart is over, and all commands of the gateway to agents without an actor are answered with success.
    pub told: bool,
    /// Whether descriptions of the card protect media.
    pub srtp: Srtp,
    /// How a failed run is repeated.
    pub replay: String,
}

impl Setup {
    /// Eight T1s, restarts told.
    pub fn new(layout: Layout, seed: u64) -> Setup {
        let t1 = |unit| FacilityPlan { kind: FacilityKind::T1, unit, common_channel: false };
        let replay = format!("TOLLGATE_SEED={seed} cargo test --test sim");
        Setup { layout, seed, facilities: (1..=8).map(t1).collect(), frames: 256, told: true, srtp: Srtp::Off, replay }
    }
}

/// What goes wrong, and how long things take. Rates are in parts per million.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Faults {
    /// Shortest time on a link between agents and gateway.
    pub link_min: Duration,
    /// Longest; datagrams overtake each other when it differs.
    pub link_max: Duration,
    /// A datagram is lost, and begins a burst of losses.
    pub loss: u32,
    /// Longest burst, in datagrams.
    pub burst: u32,
    /// A datagram comes twice.
    pub duplicate: u32,
    /// Longest time an envelope takes between cores.
    pub ring_max: Duration,
    /// Envelopes a ring holds.
    pub ring_capacity: usize,
    /// A ring says it is full though it is not.
    pub ring_full: u32,
    /// Transmit frames of a core.
    pub transmit_slots: usize,
    /// Longest time a transmit frame is in use.
    pub transmit_max: Duration,
    /// A datagram comes to another core than its home's.
    pub missteer: u32,
}

impl Faults {
    /// Nothing goes wrong, links take half a millisecond.
    pub fn none() -> Faults {
        Faults {
            link_min: MS / 2,
            link_max: MS / 2,
            loss: 0,
            burst: 0,
            duplicate: 0,
            ring_max: 20 * US,
            ring_capacity: 1024,
            ring_full: 0,
            transmit_slots: 1024,
            transmit_max: 20 * US,
            missteer: 500_000,
        }
    }
}
