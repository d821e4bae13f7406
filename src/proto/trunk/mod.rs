//! Trunks: the hierarchy of facilities and its names, which core owns what, the orders to and indications from a card, and (in later
//! files of this folder) alarms.
//!
//! The hierarchy is fixed for the life of the process (HIE-01..05 of the trunk facts): a T3 carries 28 T1s of 24 channels, a T1 or
//! E1 may also stand alone. Everything else that needs a name, a span or a wildcard asks [`topology::Topology`].

pub mod alarm;
pub mod apart;
pub mod card;
mod circuit_view;
pub mod performance;
pub mod placement;
mod reader;
pub mod selection;
pub mod simulated;
mod sounds;
mod telephone;
pub(crate) mod text;
pub mod topology;

pub use alarm::{Defect, Failure, IntegrationTimes, Monitor};
pub use apart::{Apart, Part, PartAnswer, PartOrder};
pub use card::{
    Answer, Behaviour, Card, CardFault, CardOrder, CheckTone, Coding, DigitKind, Echo, EventText, FarOrder, Hook, Indication, LineInput,
    LineOrder, LineState, Measure, Media, MediaAddress, MediaReport, Payloads, Seizer, Srtp, Trouble,
};
pub use circuit_view::{Alarms, CarrierView, CircuitCounts, CircuitView, DriverCounts, DriverView};
pub use performance::{Counts, Performance, Signal, Violations};
pub use selection::{Cursor, NameError, Selection};
pub use simulated::{SimCard, SimulatedPlan};
pub use sounds::Sounds;
pub use telephone::TelephoneEvents;
pub use topology::{Facility, FacilityKind, FacilityPlan, SpanIndex, T3Index, Topology};
