//! Agents that act by themselves, and what passes between them and the gateway.

use crate::proto::base::Time;
use std::net::{IpAddr, SocketAddr};

/// A datagram that reached an agent without an [`Actor`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mail {
    /// When.
    pub at: Time,
    /// To which address.
    pub to: SocketAddr,
    /// From which listen address.
    pub local: u8,
    /// It.
    pub bytes: Vec<u8>,
}

/// A datagram an agent sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outbound {
    /// From which address.
    pub from: SocketAddr,
    /// To which listen address of the gateway.
    pub local: u8,
    /// It.
    pub bytes: Vec<u8>,
}

/// An agent that acts by itself.
pub trait Actor {
    /// Whether datagrams to this address are its.
    fn owns(&self, address: IpAddr) -> bool;

    /// Takes a datagram.
    fn handle(&mut self, now: Time, mail: &Mail, out: &mut Vec<Outbound>);

    /// Does what is due.
    fn poll(&mut self, now: Time, out: &mut Vec<Outbound>);

    /// When to poll again.
    fn deadline(&self) -> Time;

    /// No new transactions from now on.
    fn wind_down(&mut self, now: Time);

    /// Whether every transaction has ended and it wants nothing more.
    fn is_done(&self) -> bool;

    /// What it waits for, for a message.
    fn pending(&self) -> String;

    /// What became of its commands, for a message.
    fn summary(&self) -> String;
}
