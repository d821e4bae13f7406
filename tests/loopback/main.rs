//! The transports for real, over the loopback interface; AF_XDP over a veth pair in namespaces of its own.

mod deferred;
mod pair;
mod transport;
mod vlan;
