//! The channels of a span: the media of each DS0, and what its signalling bits mean. Where octets and bits come from is another's business.

use super::sounds;
use super::{Coding, Wire};
use crate::proto::base::{EndpointIndex, Time};
use crate::proto::trunk::{DigitKind, Indication, LineInput, LineOrder, Media, MediaReport, Sounds};
use crate::proto::voice::{self, Ds0, Kind};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Where packets of connections go: connection, the far end's RTP address for both kinds, what it is, and its octets.
pub type PacketsOut<'a> = &'a mut dyn FnMut(u32, SocketAddr, Kind, &[u8]);

/// The channels of a span, counted from 0.
#[derive(Debug)]
pub struct Slots(Box<[Slot]>);

/// One channel.
#[derive(Debug)]
struct Slot {
    endpoint: Option<EndpointIndex>,
    wire: Option<Wire>,
    media: Option<Ds0>,
}

impl Slots {
    /// Channels with these endpoints, none on one that carries signalling; `coding`: how they signal, `None`: they do not.
    pub fn new(endpoints: &[Option<EndpointIndex>], coding: Option<Coding>, voice: &voice::Settings) -> Slots {
        let slot = |endpoint: &Option<EndpointIndex>| Slot {
            endpoint: *endpoint,
            wire: endpoint.and(coding).map(Wire::new),
            media: endpoint.map(|_| Ds0::new(*voice)),
        };
        Slots(endpoints.iter().map(slot).collect())
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The media of `endpoint`; `None` when it is none of them.
    pub fn media(&mut self, endpoint: EndpointIndex) -> Option<&mut Ds0> {
        self.0.iter_mut().find(|slot| slot.endpoint == Some(endpoint))?.media.as_mut()
    }

    /// Begins the media of a connection; false when there are as many as there may be. See [`Ds0::open`].
    pub fn open(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media, seed: u64) -> bool {
        self.media(endpoint).is_some_and(|ds0| ds0.open(now, connection, media, seed))
    }

    /// A connection of `from` goes to `to`; false: it stays. See [`Ds0::hand_over`].
    pub fn hand_over(&mut self, connection: u32, from: EndpointIndex, to: EndpointIndex) -> bool {
        let place = |endpoint| self.0.iter().position(|slot| slot.endpoint == Some(endpoint));
        let (Some(before), Some(after)) = (place(from), place(to)) else { return false };
        match self.0.get_disjoint_mut([before, after]) {
            Ok([Slot { media: Some(media), .. }, Slot { media: Some(other), .. }]) => media.hand_over(connection, other),
            _ => false,
        }
    }

    /// What somebody waits for on a channel.
    pub fn listen_for(&mut self, endpoint: EndpointIndex, sounds: Sounds) {
        if let Some(media) = self.media(endpoint) {
            media.watch(sounds::wanted(sounds));
        }
    }

    /// What a connection has counted so far.
    pub fn report(&self, endpoint: EndpointIndex, connection: u32) -> MediaReport {
        let media = self.0.iter().find(|slot| slot.endpoint == Some(endpoint)).and_then(|slot| slot.media.as_ref());
        media.map_or_else(MediaReport::default, |ds0| ds0.report(connection))
    }

    /// An order to the line of `endpoint`.
    pub fn order_line(&mut self, now: Time, endpoint: EndpointIndex, order: &LineOrder, out: &mut VecDeque<Indication>) {
        let slot = self.0.iter_mut().find(|slot| slot.endpoint == Some(endpoint));
        let Some(Slot { wire: Some(wire), media, .. }) = slot else { return };
        match *order {
            LineOrder::Show(state) => wire.show(state),
            LineOrder::Pulse(state, length) => wire.show_for(now, state, length),
            LineOrder::Send(DigitKind::Pulse, digits) => wire.send(now, digits),
            LineOrder::Send(kind, digits) => {
                if !media.as_mut().is_some_and(|media| media.send_digits(kind, digits)) {
                    out.push_back(Indication::Line { endpoint, input: LineInput::Sent { failed: true }, at: now });
                }
            }
            LineOrder::StopSending => {
                wire.stop_sending();
                if let Some(media) = media {
                    media.stop_sending();
                }
            }
            LineOrder::Listen(kind) => {
                wire.listen(kind == Some(DigitKind::Pulse));
                if let Some(media) = media {
                    media.listen(kind.filter(|kind| *kind != DigitKind::Pulse));
                }
            }
        }
    }

    /// Whether a channel has nothing to do but to send idle octets.
    pub fn is_idle(&self, channel: usize) -> bool {
        self.0.get(channel).and_then(|slot| slot.media.as_ref()).is_none_or(Ds0::is_idle)
    }

    /// Some time of a channel: `octets` came, or with `filler` stand for what did not, and are replaced by those to send.
    pub fn exchange(
        &mut self,
        now: Time,
        channel: usize,
        octets: &mut [u8],
        filler: bool,
        out: &mut VecDeque<Indication>,
        packets: PacketsOut<'_>,
    ) {
        let Some(Slot { endpoint: Some(endpoint), media: Some(ds0), .. }) = self.0.get_mut(channel) else { return };
        ds0.mend(octets, filler);
        ds0.exchange(now, octets, &mut |connection, to, kind, octets| packets(connection, to, kind, octets));
        while let Some(event) = ds0.poll() {
            if let Some(indication) = sounds::indication(now, *endpoint, event, ds0) {
                out.push_back(indication);
            }
        }
    }

    /// The ABCD bits that came in a multiframe.
    pub fn take_bits(&mut self, now: Time, channel: usize, bits: u8, out: &mut VecDeque<Indication>) {
        if let Some((wire, endpoint)) = self.wire(channel) {
            wire.take(now, bits, &mut |input, at| out.push_back(Indication::Line { endpoint, input, at }));
        }
    }

    /// The ABCD bits to send in a multiframe; `None` when the channel does not signal.
    pub fn give_bits(&mut self, now: Time, channel: usize, out: &mut VecDeque<Indication>) -> Option<u8> {
        let (wire, endpoint) = self.wire(channel)?;
        Some(wire.give(now, &mut |input, at| out.push_back(Indication::Line { endpoint, input, at })))
    }

    fn wire(&mut self, channel: usize) -> Option<(&mut Wire, EndpointIndex)> {
        let slot = self.0.get_mut(channel)?;
        Some((slot.wire.as_mut()?, slot.endpoint?))
    }
}
