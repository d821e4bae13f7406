//! Trunks: the hierarchy of facilities and its names, which core owns what, and (in later files of this folder) alarms and the
//! orders to and indications from a card.
//!
//! The hierarchy is fixed for the life of the process (HIE-01..05 of the trunk facts): a T3 carries 28 T1s of 24 channels, a T1 or
//! E1 may also stand alone. Everything else that needs a name, a span or a wildcard asks [`topology::Topology`].

pub mod card;
pub mod placement;
mod reader;
pub mod selection;
pub(crate) mod text;
pub mod topology;

pub use card::{Answer, Card, CardFault, CardOrder, Defect, Indication, Media, MediaAddress, MediaReport};
pub use selection::{Cursor, NameError, Selection};
pub use topology::{Facility, FacilityKind, FacilityPlan, SpanIndex, T3Index, Topology};
