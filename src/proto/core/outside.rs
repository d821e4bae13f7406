//! What a core needs of the world: frames to read, and somewhere to send. The host and the simulation implement it.

use super::envelope::Envelope;
use super::verdicts::Case;
use crate::proto::base::{CoreId, FrameRef, Time};
use crate::proto::codec::mgcp::Verb;
use std::net::SocketAddr;
use std::ops::Deref;
use std::time::Duration;

/// Where a datagram came from and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The sender.
    pub from: SocketAddr,
    /// Which of our listen addresses it came to.
    pub local: u8,
    /// When it arrived, as well as the transport knows.
    pub arrival: Time,
}

/// Received frames of all cores. A frame's bytes stay as they are until its owner is told that nobody reads it any more.
pub trait Frames {
    /// A datagram while it is read; its frame must not be released before this is dropped.
    type Datagram<'a>: Deref<Target = [u8]>
    where
        Self: 'a;

    /// The datagram in `frame` and where it came from; `None` when the frame holds none.
    fn read(&self, frame: FrameRef) -> Option<(Self::Datagram<'_>, Origin)>;
}

/// Where output goes. Nothing here may block.
pub trait Outside {
    /// Sends one datagram from listen address `local`: `write` fills the transmit frame and says how many bytes. False, and `write`
    /// not called, when no frame is free.
    fn transmit(&mut self, to: SocketAddr, local: u8, write: impl FnOnce(&mut [u8]) -> usize) -> bool;

    /// Tells another core something; false when the ring to it is full.
    fn forward(&mut self, to: CoreId, envelope: Envelope) -> bool;

    /// A frame of this core's own, received or kept, is free again.
    fn release(&mut self, frame: FrameRef);

    /// Copies a message that is to wait into a frame of this core's own, which every core can read until it is released; `None` when there
    /// is no room: it waits where it is.
    fn keep(&mut self, _message: &[u8], _origin: Origin) -> Option<FrameRef> {
        None
    }

    /// For how long another core has not gone round its loop; zero when nobody can know.
    fn silence(&self, _core: CoreId, _now: Time) -> Duration {
        Duration::ZERO
    }

    /// This core begins a command over many endpoints, unless somebody refused it in its place: then false.
    fn begin(&mut self, _case: &Case<'_>) -> bool {
        true
    }

    /// Whether a command over many endpoints is refused in place of another core, its home, that stands still. False: that one may
    /// have begun it, or nobody can know.
    fn refuse_for(&mut self, _home: CoreId, _case: &Case<'_>) -> bool {
        false
    }
}

/// What a core did with a message, for whoever measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handled {
    /// What it was.
    pub work: Work,
    /// Another core received it.
    pub forwarded: bool,
    /// When it arrived.
    pub arrival: Time,
}

/// A kind of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// A command; `None` for a verb that is not known.
    Command(Option<Verb>),
    /// A response.
    Response,
    /// Handing a message to its core.
    Forward,
}

impl Work {
    /// How many kinds there are.
    pub const COUNT: usize = Verb::ALL.len() + 3;

    /// All kinds.
    pub fn all() -> impl Iterator<Item = Work> {
        Verb::ALL.map(|verb| Work::Command(Some(verb))).into_iter().chain([Work::Command(None), Work::Response, Work::Forward])
    }

    /// Its place among them.
    pub fn place(self) -> usize {
        match self {
            Work::Command(Some(verb)) => verb as usize,
            Work::Command(None) => Verb::ALL.len(),
            Work::Response => Verb::ALL.len() + 1,
            Work::Forward => Verb::ALL.len() + 2,
        }
    }

    /// Its name in lists and metrics: a verb, or what it is.
    pub fn name(self) -> &'static str {
        match self {
            Work::Command(Some(verb)) => verb.name(),
            Work::Command(None) => "other command",
            Work::Response => "response",
            Work::Forward => "forward",
        }
    }
}

/// One turn of a core: the time it was given and the world around it.
pub struct Turn<'a, F: Frames, O: Outside> {
    /// The time, read once for the batch.
    pub now: Time,
    /// Received frames.
    pub frames: &'a F,
    /// Output.
    pub out: &'a mut O,
}
