//! What the packets of a circuit hold: whole frames, or bits.

use super::bits::Bits;
use super::frames::Frames;
use super::{Channels, CircuitSettings};
use crate::proto::framer::receive::Counted;
use crate::proto::framer::{Defects, FRAME_BITS};
use crate::proto::pseudowire::{Fragment, Played};
use std::time::Duration;

/// Either.
#[derive(Debug)]
pub(super) enum Carrier {
    Frames(Frames),
    Bits(Box<Bits>),
}

/// What goes out in a packet.
pub(super) struct Outgoing<'a> {
    pub fragment: Fragment,
    pub data: &'a [u8],
    pub signalling: &'a [u8],
}

/// Bits of a T1 in a second.
const RATE: u64 = 1_544_000;
/// One frame.
const FRAME: Duration = Duration::from_micros(125);

impl Carrier {
    /// What carries this layout.
    ///
    /// # Errors
    /// It is one of bits, and how they are framed is not said.
    pub fn new(settings: &CircuitSettings) -> Result<Carrier, &'static str> {
        let CircuitSettings { layout, framing, idle, .. } = settings;
        if let Some(frames) = Frames::new(layout, *idle) {
            return Ok(Carrier::Frames(frames));
        }
        let bits = framing.and_then(|framing| Bits::new(layout, framing, *idle));
        bits.map(|bits| Carrier::Bits(Box::new(bits))).ok_or("how the bits are framed is not said")
    }

    /// How long a packet is on the trunk.
    pub fn period(&self) -> Duration {
        match self {
            Carrier::Frames(frames) => FRAME * frames.frames() as u32,
            Carrier::Bits(bits) => Duration::from_nanos(bits.bits() as u64 * 1_000_000_000 / RATE),
        }
    }

    /// The same, in bits of a T1 with its framing: 193 in 125 us.
    pub fn bits(&self) -> u64 {
        match self {
            Carrier::Frames(frames) => (frames.frames() * FRAME_BITS) as u64,
            Carrier::Bits(bits) => bits.bits() as u64,
        }
    }

    /// A period of all channels.
    pub fn play(&mut self, played: Played<'_>, channels: &mut impl Channels) {
        match self {
            Carrier::Frames(frames) => frames.play(played, channels),
            Carrier::Bits(bits) => bits.play(played, channels),
        }
    }

    /// What goes out, once for each period that was played.
    pub fn outgoing(&mut self, channels: &mut impl Channels) -> Outgoing<'_> {
        match self {
            Carrier::Frames(frames) => frames.outgoing(channels),
            Carrier::Bits(bits) => bits.outgoing(),
        }
    }

    /// What the framer sees, or saw in this period; nothing where there is none.
    pub fn take_defects(&mut self) -> Defects {
        match self {
            Carrier::Frames(_) => Defects::default(),
            Carrier::Bits(bits) => bits.take_defects(),
        }
    }

    /// What the framer has counted.
    pub fn counted(&self) -> Counted {
        match self {
            Carrier::Frames(_) => Counted::default(),
            Carrier::Bits(bits) => *bits.counted(),
        }
    }

    /// Whether the trunk tells its far end that it is not heard, by its framing.
    pub fn tell_remote_alarm(&mut self, is: bool) {
        if let Carrier::Bits(bits) = self {
            bits.tell_remote_alarm(is);
        }
    }
}
