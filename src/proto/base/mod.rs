//! What every machine leans on: time, seeded randomness, identifiers, counters, the keyed hash, what texts meant before.

pub mod counters;
pub mod fnv;
pub mod hash;
pub mod id;
pub mod memo;
pub mod mode;
pub mod pace;
pub mod queue;
pub mod rng;
pub mod slab;
pub mod srtp;
pub mod time;

pub use counters::{Counter, Counters};
pub use hash::NameKey;
pub use id::{AgentId, CoreId, EndpointIndex, EndpointRange, FrameRef, HexId, TransactionId};
pub use memo::Memo;
pub use mode::Mode;
pub use queue::{Queue, QueuePool};
pub use rng::Rng;
pub use slab::Slab;
pub use time::Time;
