//! Call admission control: whether a call may take its place in a trunk group, a zone, a peer or a pool (the requirements R1 to R48
//! and invariants I1 to I17 of docs/conformance/cac.md).
//!
//! Bottom up:
//! - [`limits`]: what a scope allows, in five counted amounts, for each class of call;
//! - [`scope`]: the tree of scopes; [`charge`]: one leg of a call and the scopes it counts in;
//! - [`ledger`]: the set of admitted calls, with counts that are derived from it and stand nowhere else;
//! - [`authority`]: decides over one ledger: the same code whether it answers one gateway or a cluster of them;
//! - [`message`], [`node`] and [`central`]: what a gateway (SC) and the central node (CS) say to each other, and their machines;
//! - [`wire`]: the same in octets;
//! - [`asker`]: a core's end of the way to the node;
//! - [`desk`]: what a core keeps of its calls: what each is charged, and the places there are for more;
//! - [`lease`]: who of a pair of central nodes leads;
//! - [`share`]: how several cores of one gateway use one limit without asking each other for every call;
//! - [`quota`]: how several gateways do.
//!
//! Nothing here knows MGCP, an endpoint or a socket.

pub mod asker;
pub mod authority;
pub mod central;
pub mod charge;
pub mod desk;
pub mod floor;
pub mod lease;
pub mod ledger;
pub mod limits;
pub mod message;
pub mod node;
pub mod policy;
pub mod prefix;
pub mod quota;
pub mod scope;
pub mod share;
pub mod threshold;
pub mod wire;

#[cfg(test)]
mod world;

pub use authority::{Authority, Verdict};
pub use charge::{Charge, Class, Direction, Guid, KBITS_MAX, Key, Leg, ScId};
pub use ledger::{Admission, Ccb, Ledger};
pub use limits::{Amount, Amounts, Cause, Denial, Denied, Limits, Rate, UNLIMITED};
pub use policy::Policy;
pub use prefix::Prefix;
pub use scope::{Kind, Scope, ScopeError, ScopeId, Tree};
