//! A circuit with its channels: octets to and from the media of each DS0, bits to and from its signalling, alarms to indications.

use super::sounds;
use super::{Channels, Circuit, CircuitSettings, Coding, Wire};
use crate::proto::base::{EndpointIndex, Time};
use crate::proto::trunk::{Alarms, CircuitView, Defect, DigitKind, Facility, Indication, LineInput, LineOrder, Media, MediaReport, Sounds};
use crate::proto::voice::{self, Ds0, Kind};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// What a digroup is made of.
#[derive(Clone, Debug)]
pub struct DigroupSettings {
    /// Its circuit.
    pub circuit: CircuitSettings,
    /// Which facility it is.
    pub facility: Facility,
    /// The endpoint on each channel of the circuit, in order; none on one that carries signalling.
    pub endpoints: Vec<Option<EndpointIndex>>,
    /// How its channels signal; `None`: they do not.
    pub coding: Option<Coding>,
    /// The media of each channel.
    pub voice: voice::Settings,
}

/// Where packets of connections go: connection, the far end's RTP address for both kinds, what it is, and its octets.
pub type PacketsOut<'a> = &'a mut dyn FnMut(u32, SocketAddr, Kind, &[u8]);

/// A T1 or E1 with its channels.
#[derive(Debug)]
pub struct Digroup {
    facility: Facility,
    circuit: Circuit,
    slots: Box<[Slot]>,
    /// The alarms that were indicated.
    told: Alarms,
}

/// One channel.
#[derive(Debug)]
struct Slot {
    endpoint: Option<EndpointIndex>,
    wire: Option<Wire>,
    media: Option<Ds0>,
}

impl Digroup {
    /// One that begins to play at `now`.
    ///
    /// # Errors
    /// As [`Circuit::new`].
    pub fn new(now: Time, settings: &DigroupSettings) -> Result<Digroup, &'static str> {
        let slot = |endpoint: &Option<EndpointIndex>| Slot {
            endpoint: *endpoint,
            wire: endpoint.and(settings.coding).map(Wire::new),
            media: endpoint.map(|_| Ds0::new(settings.voice)),
        };
        Ok(Digroup {
            facility: settings.facility,
            circuit: Circuit::new(now, &settings.circuit)?,
            slots: settings.endpoints.iter().map(slot).collect(),
            told: Alarms::default(),
        })
    }

    /// Which facility it is.
    pub fn facility(&self) -> Facility {
        self.facility
    }

    /// When to play.
    pub fn due(&self) -> Time {
        self.circuit.due()
    }

    /// How its circuit is.
    pub fn view(&self) -> CircuitView {
        self.circuit.view()
    }

    /// A packet came that is not from the far end.
    pub fn note_stray(&mut self) {
        self.circuit.note_stray();
    }

    /// Octets came from the far end at `arrival`; what was due before is played.
    pub fn receive(&mut self, arrival: Time, octets: &[u8]) {
        self.circuit.receive(arrival, octets);
    }

    /// See [`Circuit::catch_up`].
    pub fn catch_up(&mut self, now: Time) -> bool {
        self.circuit.catch_up(now)
    }

    /// The media of `endpoint`; `None` when it is none of its own.
    pub fn media(&mut self, endpoint: EndpointIndex) -> Option<&mut Ds0> {
        self.slots.iter_mut().find(|slot| slot.endpoint == Some(endpoint))?.media.as_mut()
    }

    /// Begins the media of a connection; false when there are as many as there may be. See [`Ds0::open`].
    pub fn open(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media, seed: u64) -> bool {
        self.media(endpoint).is_some_and(|ds0| ds0.open(now, connection, media, seed))
    }

    /// What somebody waits for on a channel.
    pub fn listen_for(&mut self, endpoint: EndpointIndex, sounds: Sounds) {
        if let Some(media) = self.media(endpoint) {
            media.watch(sounds::wanted(sounds));
        }
    }

    /// What a connection has counted so far.
    pub fn report(&self, endpoint: EndpointIndex, connection: u32) -> MediaReport {
        let media = self.slots.iter().find(|slot| slot.endpoint == Some(endpoint)).and_then(|slot| slot.media.as_ref());
        media.map_or_else(MediaReport::default, |ds0| ds0.report(connection))
    }

    /// Plays one period: what it has to say goes to `out`, packets of connections to `packets`; the packet to send is given.
    pub fn play(&mut self, out: &mut VecDeque<Indication>, packets: PacketsOut<'_>) -> &[u8] {
        let Digroup { facility, circuit, slots, told, .. } = self;
        let now = circuit.due();
        let before = circuit.alarms();
        for (defect, is, was) in [
            (Defect::PacketLoss, before.packet_loss, &mut told.packet_loss),
            (Defect::Ais, before.ais, &mut told.ais),
            (Defect::RemoteAlarm, before.rai, &mut told.rai),
        ] {
            if *was != is {
                *was = is;
                out.push_back(Indication::Defect { facility: *facility, defect, present: is, at_once: false });
            }
        }
        circuit.play(&mut Period { now, slots, out, packets })
    }

    /// An order to the line of `endpoint`.
    pub fn order_line(&mut self, now: Time, endpoint: EndpointIndex, order: &LineOrder, out: &mut VecDeque<Indication>) {
        let slot = self.slots.iter_mut().find(|slot| slot.endpoint == Some(endpoint));
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
}

/// One period of the channels.
struct Period<'a> {
    now: Time,
    slots: &'a mut [Slot],
    out: &'a mut VecDeque<Indication>,
    packets: PacketsOut<'a>,
}

impl Period<'_> {
    /// Does something with the signalling of a channel.
    fn with_wire<T>(&mut self, channel: u8, act: impl FnOnce(&mut Wire, Time, &mut dyn FnMut(LineInput, Time)) -> T) -> Option<T> {
        let Period { now, slots, out, .. } = self;
        let slot = slots.get_mut(usize::from(channel))?;
        let (endpoint, wire) = (slot.endpoint?, slot.wire.as_mut()?);
        Some(act(wire, *now, &mut |input, at| out.push_back(Indication::Line { endpoint, input, at })))
    }
}

impl Channels for Period<'_> {
    fn exchange(&mut self, channel: u8, came: &[u8], _: bool, send: &mut [u8]) {
        let Some(Slot { endpoint: Some(endpoint), media: Some(ds0), .. }) = self.slots.get_mut(usize::from(channel)) else { return };
        send.copy_from_slice(came);
        ds0.exchange(self.now, send, &mut |connection, to, kind, octets| (self.packets)(connection, to, kind, octets));
        while let Some(event) = ds0.poll() {
            if let Some(indication) = sounds::indication(self.now, *endpoint, event, ds0) {
                self.out.push_back(indication);
            }
        }
    }

    fn take_bits(&mut self, channel: u8, bits: u8) {
        self.with_wire(channel, |wire, now, out| wire.take(now, bits, out));
    }

    fn give_bits(&mut self, channel: u8) -> u8 {
        self.with_wire(channel, |wire, now, out| wire.give(now, out)).unwrap_or(0)
    }
}
