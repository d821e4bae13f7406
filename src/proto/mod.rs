//! The pure half: protocol machines that take bytes and a timestamp and give bytes and orders.
//!
//! Nothing here does IO, reads a clock or randomness, or uses `unsafe`; nothing that arrives from outside can panic.
#![forbid(unsafe_code)]

pub mod agent;
pub mod aggregate;
pub mod base;
pub mod cac;
pub mod cas;
pub mod circuit;
pub mod codec;
pub mod core;
pub mod dahdi;
pub mod endpoint;
pub mod framer;
pub mod h248;
pub mod mgcp;
pub mod overload;
pub mod package;
pub mod plan;
pub mod pseudowire;
pub mod restart;
pub mod timer;
pub mod transaction;
pub mod trunk;
pub mod voice;
