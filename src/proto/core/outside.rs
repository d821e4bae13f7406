//! What a core needs of the world: frames to read, and somewhere to send. The host and the simulation implement it.

use super::envelope::Envelope;
use crate::proto::base::{CoreId, FrameRef, Time};
use std::net::SocketAddr;
use std::ops::Deref;

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

    /// A received frame of this core's own is free again.
    fn release(&mut self, frame: FrameRef);
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
