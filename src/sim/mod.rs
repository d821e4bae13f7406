//! The simulation: several real cores, the rings between them, links that fail, agents and cards, under one seed.
//!
//! [`World`] owns the time. One heap of events ordered by time and sequence decides what happens next and one seed decides every
//! delay, loss and choice, so a run is repeated exactly by its seed. Faults are switched by [`Faults`] while it runs: a safety phase
//! with faults, then [`Faults::none`] and a liveness phase in which everything must come to an end.
//!
//! The [`Journal`] stands at the gateway's boundary and checks what may never happen, whoever drives the agents; what can only be
//! judged when all is quiet is checked by [`World::check_quiet`]. A failed check panics; the world then prints the seed, the step and
//! the command that repeats the run.
//!
//! Not here: sockets, threads, clocks (`host` has them), and what the checks mean (RFC 3435; each check names its requirement).

mod actor;
mod agent;
mod card;
mod frames;
mod hostile;
mod inspect;
mod journal;
mod layout;
mod notified;
mod reply;
mod script;
mod setup;
mod told;
mod unchanged;
mod wires;
mod world;

pub use actor::{Actor, Mail, Outbound};
pub use agent::{RandomAgent, RandomPlan};
pub use card::CardWatch;
pub use frames::{FrameTable, SimDatagram};
pub use hostile::Stranger;
pub use journal::Journal;
pub use layout::{Layout, plan, settings};
pub use reply::Reply;
pub use setup::{Faults, Setup};
pub use world::World;
