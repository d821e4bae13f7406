//! The `tollgate` binary as a user and an agent meet it, over the loopback interface.
//!
//! Every test has loopback addresses, a tuning file and an operator socket of its own ([`gateway::Tuning`]), so that all run at the
//! same time. Nothing waits longer than what it waits for; children end with their guard ([`gateway::Gateway`]). What a test needs from
//! the machine and does not get (a network namespace, another user) it says, and passes.

mod admission;
mod agent;
mod alarms;
mod check;
mod cluster;
mod gateway;
mod h248;
mod hostile;
mod hosts;
#[path = "../../interop/mod.rs"]
mod interop;
mod life;
mod load;
mod loops;
mod metrics;
mod network;
mod operator;
mod outage;
#[path = "../pair.rs"]
mod pair;
mod real_trunks;
mod reload;
mod repeats;
mod satop;
mod stall;
mod starved;
mod steering;
mod streams;
mod trace;
mod trunks;
mod tuning;
mod voice_path;
mod xdp;
