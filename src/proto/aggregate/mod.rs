//! Aggregation: the fewest names that stand for exactly a given set of endpoints (G-RSI-08, MAP-03).
//!
//! [`Cover`] computes them, [`Pattern`] is one of them, [`EndpointSet`] is the set.

pub mod cover;
pub mod name;
pub mod set;

pub use cover::{Cover, Forms, Widest};
pub use name::{PATTERN_NAME_MAX, Pattern};
pub use set::EndpointSet;
