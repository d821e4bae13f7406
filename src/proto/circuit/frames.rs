//! A trunk whose packets hold whole frames without framing: CESoPSN.

use super::carrier::Outgoing;
use super::{Channels, transpose};
use crate::proto::pseudowire::{Fragment, Layout, Played, Structure};

/// What packets hold, both ways.
#[derive(Debug)]
pub(super) struct Frames {
    idle: u8,
    frames: usize,
    channels: u8,
    fragments: u8,
    /// The part of the multiframe that goes out next.
    place: u8,
    /// What came and what goes, channel after channel.
    came: Box<[u8]>,
    goes: Box<[u8]>,
    /// What goes, frame after frame, and the bits behind.
    data: Box<[u8]>,
    signalling: Box<[u8]>,
}

impl Frames {
    /// `None` for a layout of bits.
    pub fn new(layout: &Layout, idle: u8) -> Option<Frames> {
        let (channels, frames) = match layout.structure() {
            Structure::Frames { channels, frames } => (channels, usize::from(frames)),
            Structure::Signalled { channels, frames, .. } => (channels, usize::from(frames)),
            Structure::Bits(_) | Structure::Groups(_) => return None,
        };
        let octets: Box<[u8]> = vec![idle; layout.data_octets()].into();
        let signalling = vec![0; layout.signalling_octets()].into();
        let (came, goes) = (octets.clone(), octets.clone());
        Some(Frames { idle, frames, channels, fragments: layout.fragments(), place: 0, came, goes, data: octets, signalling })
    }

    /// Frames in a packet.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// A period of all channels.
    pub fn play(&mut self, played: Played<'_>, channels: &mut impl Channels) {
        let filler = match played {
            Played::Packet(kept) => {
                transpose(kept.data, self.channels.into(), &mut self.came);
                for (octet, channel) in kept.signalling.iter().zip((0..self.channels).step_by(2)) {
                    channels.take_bits(channel, octet >> 4);
                    if channel + 1 < self.channels {
                        channels.take_bits(channel + 1, octet & 0x0F);
                    }
                }
                false
            }
            // The bits stay as they were: a lost packet is no hook (RFC 5086 5.4 leaves it to us).
            Played::Fault | Played::Lost | Played::Silent | Played::Held => {
                self.came.fill(self.idle);
                true
            }
        };
        self.goes.fill(self.idle);
        let both = self.came.chunks_exact(self.frames).zip(self.goes.chunks_exact_mut(self.frames));
        for (channel, (came, goes)) in (0..self.channels).zip(both) {
            channels.exchange(channel, came, filler, goes);
        }
    }

    /// What goes out.
    pub fn outgoing(&mut self, channels: &mut impl Channels) -> Outgoing<'_> {
        transpose(&self.goes, self.frames, &mut self.data);
        let fragment = Fragment::at(self.place, self.fragments);
        self.place = (self.place + 1) % self.fragments.max(1);
        let signalling = if fragment.ends() { &mut *self.signalling } else { &mut [] };
        for (place, channel) in signalling.iter_mut().zip((0..self.channels).step_by(2)) {
            let second = if channel + 1 < self.channels { channels.give_bits(channel + 1) } else { 0 };
            *place = channels.give_bits(channel) << 4 | second & 0x0F;
        }
        Outgoing { fragment, data: &self.data, signalling }
    }
}
