//! The text encoding of H.248.1 (RFC 3525 Annex B), read leniently and written strictly.
//!
//! [`Shape`] finds the braces of a message in one pass; [`Message::parse`] reads its header. From there everything is an iterator over
//! the receive frame: transactions, actions, commands, descriptors. Nothing is copied. What is malformed is a [`Refusal`] whose error
//! code says how much of the message is lost; what stands before it can still be done (8.2.2). [`Command::check`] reads a command whole.
//! [`Writer`] writes, pretty or compact.
//!
//! The reader takes both spellings of every keyword in any letter case, white space and comments wherever the grammar has them, and of
//! what the field does beyond it: empty braces (`SG{}`, `E{}`, `SA{}`), keywords alone for empty lists, hyphens in termination names,
//! several session descriptions in Local. Versions 1 to 3; what only 2 or 3 have is refused as 501.

pub mod binary;
mod descriptor;
pub mod exercise;
mod fault;
mod lex;
mod message;
mod name;
pub mod rewrite;
mod shape;
mod token;
mod value;
mod write;

pub use descriptor::*;
pub use fault::{Fault, Refusal};
pub use lex::Relation;
pub use message::{
    Acknowledgement, Action, ActionPart, ActionParts, Actions, Authentication, Command, Content, ContextAudit, ContextId, Header, Message,
    Reply, ReplyActions, ReplyPart, Request, Transaction, Transactions, VERSION_MAX, Verb,
};
pub use name::{MessageId, NAME_MAX, TerminationId};
pub use shape::{BLOCKS_MAX, DEPTH_MAX, MESSAGE_MAX, Shape};
pub use token::{Style, Token};
pub use value::{PackagedName, Parameter, ParameterValue, Property, Value, Values};
pub use write::{Mark, Writer};
