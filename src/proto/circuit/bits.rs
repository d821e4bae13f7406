//! A T1 whose packets hold its bits with their framing: SAToP, with the framer on this side.

use super::carrier::Outgoing;
use super::{Channels, Framing, transpose};
use crate::proto::framer::receive::Counted;
use crate::proto::framer::{CHANNELS, Defects, Deframer, FRAME_BITS, Framer};
use crate::proto::pseudowire::packet::GROUP;
use crate::proto::pseudowire::{Fragment, Layout, Played, Structure};

/// What packets hold, both ways.
#[derive(Debug)]
pub(super) struct Bits {
    idle: u8,
    /// Whether each 193 bits are padded to whole octets.
    padded: bool,
    /// Bits of a packet.
    bits: usize,
    deframer: Deframer,
    /// The number of the packet that follows what the deframer has had.
    expected: Option<u16>,
    framer: Framer,
    /// Frames of a period, frame after frame, and channel after channel.
    frames: Box<[u8]>,
    came: Box<[u8]>,
    goes: Box<[u8]>,
    data: Box<[u8]>,
}

impl Bits {
    /// `None` for a layout of whole frames.
    pub fn new(layout: &Layout, framing: Framing, idle: u8) -> Option<Bits> {
        let (bits, padded) = match layout.structure() {
            Structure::Bits(octets) => (usize::from(octets) * 8, false),
            Structure::Groups(groups) => (usize::from(groups) * FRAME_BITS, true),
            Structure::Frames { .. } | Structure::Signalled { .. } => return None,
        };
        let octets: Box<[u8]> = vec![idle; bits.div_ceil(FRAME_BITS) * CHANNELS].into();
        let Framing { format, signalled } = framing;
        Some(Bits {
            idle,
            padded,
            bits,
            deframer: Deframer::new(format, signalled, bits),
            expected: None,
            framer: Framer::new(format, signalled, bits),
            frames: octets.clone(),
            came: octets.clone(),
            goes: octets,
            data: vec![0; layout.data_octets()].into(),
        })
    }

    /// Bits in a packet.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// What the receiving half has counted.
    pub fn counted(&self) -> &Counted {
        self.deframer.counted()
    }

    /// What is wrong, or was in this period.
    pub fn take_defects(&mut self) -> Defects {
        self.deframer.take_defects()
    }

    /// Whether the far end is told that it is not heard.
    pub fn tell_remote_alarm(&mut self, is: bool) {
        self.framer.tell_remote_alarm(is);
    }

    /// A period of all channels: as many frames as the next packet needs. What came and what did not are played one after the other.
    pub fn play(&mut self, played: Played<'_>, channels: &mut impl Channels) {
        self.receive(played, channels);
        let wanted = self.framer.frames_for(self.bits);
        let mut done = 0;
        let mut next = (wanted > 0).then(|| self.deframer.frame(wanted));
        while let Some(first) = next.take() {
            let filler = first.is_none();
            let mut count = 0;
            let mut frame = Some(first);
            while let Some(octets) = frame.take() {
                if let (Some(octets), Some(place)) = (octets, self.frames.as_chunks_mut::<CHANNELS>().0.get_mut(count)) {
                    *place = octets;
                }
                count += 1;
                done += 1;
                if done < wanted {
                    let following = self.deframer.frame(wanted - done);
                    if following.is_none() == filler { frame = Some(following) } else { next = Some(following) }
                }
            }
            self.run(count, filler, channels);
        }
    }

    fn receive(&mut self, played: Played<'_>, channels: &mut impl Channels) {
        let Bits { deframer, bits, padded, expected, .. } = self;
        let robbed = &mut |abcd: &[u8; CHANNELS]| {
            for (channel, bits) in abcd.iter().enumerate() {
                channels.take_bits(channel as u8, *bits);
            }
        };
        match played {
            Played::Packet(kept) => {
                // Packets that were left out, or a sequence that was begun anew: where it is in the stream is known, unless it is another one.
                let sequence = kept.header.sequence;
                let ahead = sequence.wrapping_sub(expected.unwrap_or(sequence)) as i16;
                if ahead != 0 {
                    deframer.jump(i64::from(ahead) * *bits as i64);
                }
                *expected = Some(sequence.wrapping_add(1));
                if *padded {
                    kept.data.chunks_exact(GROUP).for_each(|group| deframer.take(group, FRAME_BITS, robbed));
                } else {
                    deframer.take(kept.data, *bits, robbed);
                }
            }
            // A framer that got ones instead would lose its frames at each lost packet.
            Played::Fault | Played::Lost | Played::Silent => {
                deframer.lose(*bits, matches!(played, Played::Lost), robbed);
                *expected = expected.map(|sequence| sequence.wrapping_add(1));
            }
            // What is put off has not passed.
            Played::Held => {}
        }
    }

    /// So many frames that all came, or all did not.
    fn run(&mut self, count: usize, filler: bool, channels: &mut impl Channels) {
        let octets = count * CHANNELS;
        let Bits { frames, came, goes, .. } = self;
        let (Some(frames), Some(came), Some(goes)) = (frames.get_mut(..octets), came.get_mut(..octets), goes.get_mut(..octets)) else {
            return;
        };
        if filler {
            came.fill(self.idle);
        } else {
            transpose(frames, CHANNELS, came);
        }
        goes.fill(self.idle);
        for (channel, (came, goes)) in came.chunks_exact(count).zip(goes.chunks_exact_mut(count)).enumerate() {
            channels.exchange(channel as u8, came, filler, goes);
        }
        transpose(goes, count, frames);
        for frame in frames.as_chunks::<CHANNELS>().0 {
            if self.framer.wants_bits() {
                self.framer.give_bits(&std::array::from_fn(|channel| channels.give_bits(channel as u8)));
            }
            self.framer.push(*frame);
        }
    }

    /// What goes out.
    pub fn outgoing(&mut self) -> Outgoing<'_> {
        let Bits { framer, data, padded, .. } = self;
        if *padded {
            for group in data.chunks_exact_mut(GROUP) {
                framer.take_padded(group);
            }
        } else {
            framer.take(data);
        }
        Outgoing { fragment: Fragment::Whole, data, signalling: &[] }
    }
}
