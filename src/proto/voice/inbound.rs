//! The receiving half of a connection: who may send to it, what is counted, and what is played to the trunk.

use super::g711::Law;
use super::playout::{Depths, Playout};
use super::statistics::Statistics;
use crate::proto::trunk::{Coding, Media};
use std::net::SocketAddr;

/// The receiving half.
#[derive(Debug)]
pub(super) struct Inbound {
    pub statistics: Statistics,
    pub playout: Playout,
    /// Where packets come from, once one has come and the description does not say.
    source: Option<SocketAddr>,
}

impl Inbound {
    pub fn new(law: Law, depths: Depths) -> Inbound {
        Inbound { statistics: Statistics::default(), playout: Playout::new(law, depths), source: None }
    }

    /// A new connection.
    pub fn start(&mut self) {
        self.statistics = Statistics::default();
        self.playout.reset();
        self.source = None;
    }

    /// The connection changed from `before`.
    pub fn change(&mut self, before: &Media, media: &Media) {
        if before.remote != media.remote {
            self.source = None;
        }
        let data = matches!(media.payloads.sent, Some((Coding::Clear, _)));
        self.playout.set_data(data);
        if !media.mode.receives() {
            self.playout.stop();
        }
    }

    /// Whether packets from `source` can be taken: those from the remote address; with `symmetric` those from the first one that sends, as before
    /// the remote description has come.
    pub fn accepts(&self, media: &Media, symmetric: bool, source: SocketAddr) -> bool {
        match media.remote {
            _ if media.inside => true,
            Some(remote) if !symmetric => remote == source,
            _ => self.source.is_none_or(|first| first == source),
        }
    }

    /// A packet from `source`, which can be taken, was taken by its port.
    pub fn note_source(&mut self, media: &Media, symmetric: bool, source: SocketAddr) {
        if !media.inside && (symmetric || media.remote.is_none()) {
            self.source.get_or_insert(source);
        }
    }

    /// Where to send when that follows what arrives.
    pub fn source(&self) -> Option<SocketAddr> {
        self.source
    }
}
