//! From the trunk to the packet network: octets become packets of one period (RFC 3550, RFC 3551), digits telephone events (RFC 4733).
//!
//! Invariants: the timestamp grows by one for each octet of the trunk, whether it is sent or not; the sequence number by one for each packet
//! that is; a packet holds one period, as it was when its first octet came.

use super::rtp::{HEADER, Packet};
use super::telephone_event::TelephoneEvent;

/// The most octets in a packet: 200 ms, the longest period there is.
pub(super) const OCTETS_MAX: usize = 1_600;
/// How loud an event is said to be: -10 dBm0.
const VOLUME: u8 = 10;
/// How often the end of an event is said (RFC 4733 2.5.1.4).
const ENDS: u8 = 3;
/// The longest duration that is said of an event; a longer one goes on as a new segment (RFC 4733 2.5.1.3).
const SEGMENT: u32 = 0xffff;

/// How octets become packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Format {
    pub payload_type: u8,
    /// Octets of a packet.
    pub octets: u16,
    /// The payload type of telephone events.
    pub events: Option<u8>,
}

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct Sender {
    room: Box<[u8; HEADER + OCTETS_MAX]>,
    filled: usize,
    format: Format,
    ssrc: u32,
    sequence: u16,
    /// Of the first octet in `room`.
    timestamp: u32,
    /// Whether the next packet is the first after a pause.
    marker: bool,
    /// The event that lasts.
    event: Option<Sending>,
    /// The end of an event, and how often it is to be said again.
    ended: Option<(Sending, u8)>,
    packets: u32,
    octets: u32,
}

#[derive(Clone, Copy, Debug)]
struct Sending {
    code: u8,
    timestamp: u32,
    duration: u32,
    /// Whether it was not said yet.
    first: bool,
}

impl Sender {
    pub fn new() -> Sender {
        Sender {
            room: Box::new([0; HEADER + OCTETS_MAX]),
            filled: 0,
            format: Format::default(),
            ssrc: 0,
            sequence: 0,
            timestamp: 0,
            marker: true,
            event: None,
            ended: None,
            packets: 0,
            octets: 0,
        }
    }

    /// Begins a stream of its own; the seed decides source, first sequence number and first timestamp.
    pub fn start(&mut self, format: Format, seed: u64) {
        (self.ssrc, self.sequence, self.timestamp) = (seed as u32, (seed >> 32) as u16 & 0x7fff, (seed >> 16) as u32 ^ 0x5bd1_e995);
        (self.filled, self.marker, self.event, self.ended) = (0, true, None, None);
        (self.packets, self.octets) = (0, 0);
        self.set_format(format);
    }

    /// Sends like this from now on; what was gathered for the packet of another form is not sent.
    pub fn set_format(&mut self, format: Format) {
        let octets = format.octets.clamp(8, OCTETS_MAX as u16);
        let same = self.format.octets == octets && self.format.payload_type == format.payload_type;
        self.format = Format { octets, ..format };
        if !same {
            self.drop_gathered();
        }
        if format.events.is_none() {
            (self.event, self.ended) = (None, None);
        }
    }

    /// Goes on as another source, with numbers of its own.
    pub fn renew(&mut self, seed: u64) {
        (self.ssrc, self.sequence) = (seed as u32, (seed >> 32) as u16 & 0x7fff);
        self.drop_gathered();
    }

    pub fn ssrc(&self) -> u32 {
        self.ssrc
    }

    /// Packets and payload octets sent.
    pub fn counted(&self) -> (u32, u32) {
        (self.packets, self.octets)
    }

    /// The timestamp of now.
    pub fn timestamp(&self) -> u32 {
        self.timestamp.wrapping_add(self.filled as u32)
    }

    /// Sends octets of the trunk, each converted.
    pub fn push(&mut self, mut octets: &[u8], convert: Option<&[u8; 256]>, emit: &mut impl FnMut(&[u8])) {
        while !octets.is_empty() {
            let room = usize::from(self.format.octets).saturating_sub(self.filled).max(1);
            let (part, rest) = octets.split_at(octets.len().min(room));
            let from = HEADER + self.filled;
            if self.event.is_none()
                && let Some(place) = self.room.get_mut(from..from + part.len())
            {
                match convert {
                    None => place.copy_from_slice(part),
                    Some(table) => place.iter_mut().zip(part).for_each(|(place, &octet)| *place = table[usize::from(octet)]),
                }
            }
            self.filled += part.len();
            if self.filled >= usize::from(self.format.octets) {
                self.end_period(emit);
            }
            octets = rest;
        }
    }

    /// Nothing is sent for so many octets.
    pub fn skip(&mut self, octets: usize) {
        self.drop_gathered();
        self.timestamp = self.timestamp.wrapping_add(octets as u32);
        (self.event, self.ended) = (None, None);
    }

    fn drop_gathered(&mut self) {
        self.timestamp = self.timestamp();
        (self.filled, self.marker) = (0, true);
    }

    /// A key is pressed, in place of whose sound an event is sent, if events are agreed.
    pub fn begin_event(&mut self, code: u8) {
        if self.format.events.is_some() {
            self.drop_gathered();
            self.event = Some(Sending { code, timestamp: self.timestamp, duration: 0, first: true });
        }
    }

    /// The event that is sent.
    pub fn event(&self) -> Option<u8> {
        self.event.map(|event| event.code)
    }

    /// Nobody will say when the key is released.
    pub fn drop_event(&mut self) {
        self.event = None;
    }

    /// The key is released.
    pub fn end_event(&mut self, emit: &mut impl FnMut(&[u8])) {
        let Some(mut event) = self.event.take() else { return };
        event.duration += self.filled as u32;
        self.drop_gathered();
        self.say(&mut event, true, emit);
        self.ended = Some((event, ENDS - 1));
    }

    fn end_period(&mut self, emit: &mut impl FnMut(&[u8])) {
        let period = self.filled;
        if let Some(mut event) = self.event.take() {
            event.duration += period as u32;
            if event.duration > SEGMENT {
                event.timestamp = event.timestamp.wrapping_add(SEGMENT);
                event.duration -= SEGMENT;
            }
            self.say(&mut event, false, emit);
            self.event = Some(event);
        } else {
            let header = self.head(self.format.payload_type, self.marker, self.timestamp);
            self.room[..HEADER].copy_from_slice(&header);
            if let Some(packet) = self.room.get(..HEADER + period) {
                emit(packet);
            }
            self.count(period);
            self.marker = false;
        }
        self.timestamp = self.timestamp.wrapping_add(period as u32);
        self.filled = 0;
        if let Some((mut event, left)) = self.ended.take() {
            self.say(&mut event, true, emit);
            self.ended = left.checked_sub(1).filter(|left| *left > 0).map(|left| (event, left));
        }
    }

    fn say(&mut self, event: &mut Sending, end: bool, emit: &mut impl FnMut(&[u8])) {
        let Some(payload_type) = self.format.events else { return };
        let payload = TelephoneEvent { code: event.code, end, volume: VOLUME, duration: event.duration.min(SEGMENT) as u16 }.write();
        let mut packet = [0; HEADER + TelephoneEvent::OCTETS];
        packet[..HEADER].copy_from_slice(&self.head(payload_type, event.first, event.timestamp));
        packet[HEADER..].copy_from_slice(&payload);
        event.first = false;
        emit(&packet);
        self.count(TelephoneEvent::OCTETS);
    }

    fn head(&self, payload_type: u8, marker: bool, timestamp: u32) -> [u8; HEADER] {
        Packet { marker, payload_type, sequence: self.sequence, timestamp, ssrc: self.ssrc, payload: &[] }.header()
    }

    fn count(&mut self, octets: usize) {
        self.sequence = self.sequence.wrapping_add(1);
        self.packets = self.packets.saturating_add(1);
        self.octets = self.octets.saturating_add(octets as u32);
    }
}
