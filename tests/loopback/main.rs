//! The transports for real, over the loopback interface.

mod deferred;
mod transport;
