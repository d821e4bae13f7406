//! The MGCP 1.0 grammar (RFC 3435 appendix A), read leniently and written strictly.
//!
//! [`Command::parse`] checks what the structure of a command says: its line, the names of its parameters, which of them may and must be
//! there (table M-1), where its session description is. Values are read by typed accessors when they are wanted. Whatever is wrong is a
//! [`Refusal`]: one table gives each fault its return code and commentary.
//!
//! [`Response::parse`] reads an answer to a command of ours; [`Writer`] writes both.

mod bearer;
mod code;
mod command;
mod digit_map;
mod digits;
mod event;
mod format;
pub(crate) mod header;
mod name;
mod options;
mod refusal;
mod response;
mod value;
mod write;

pub use crate::proto::base::Mode;
pub use bearer::{BearerInformation, Encoding};
pub use code::{CODES, Code, CodeSet, Verb};
pub use command::{Command, EXTENSIONS_MAX, Extension};
pub use digit_map::{DigitMap, Position, Positions, SymbolSet};
pub use event::{
    Action, ActionList, ActionSet, ConnectionRef, EMBEDDED_MAX, Embedded, Event, EventList, EventName, Events, ListKind, NESTING_MAX,
    PackageRef, Parameter, ParameterList, ParameterValue,
};
pub use format::Format;
pub use header::CommandLine;
pub(crate) use name::ip4;
pub use name::{AGENT_PORT, Domain, EndpointName, NAME_MAX, NotifiedEntity, Term};
pub use options::{
    Capabilities, Encryption, Gain, LocalConnectionOptions, NameList, Network, PACKAGE_OPTIONS_MAX, PackageOption, Range, Reservation,
};
pub use refusal::{Fault, Refusal};
pub use response::Response;
pub use value::{
    COUNTER_MAX, ConfirmedRanges, ConnectionParameters, InfoCode, Quarantine, ReasonCode, RequestedInfo, RestartMethod, effective_code,
    parse_mode,
};
pub use write::{Mark, PADDED_TO, TEXT_MAX, Writer, pad_first_line};
