//! The machine-facing half: cores, frames, rings, sockets, clocks, the control loop.
//!
//! `unsafe` lives in [`frame`], [`large`] in `card::dahdi::sys` and in `transport::{sys, burst, mmsg, uring}` only, behind safe surfaces.

pub mod books;
pub mod boot;
pub mod card;
pub mod clock;
pub mod cluster;
pub mod control;
pub mod core_loop;
pub mod cores;
pub mod cpu;

pub mod detour;
pub mod dns;
pub mod entropy;
pub mod frame;
mod gateways;
pub mod inside;
pub mod large;
pub mod lines;
pub mod nic;
pub mod probe;
pub mod ring;
pub mod run;
mod steered;
pub mod tap;
pub mod transport;
mod work;
