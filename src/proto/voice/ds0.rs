//! The media of one DS0: the circuit, its connections, and who hears whom (RFC 3435 2.3.1 and appendix D).

use super::g711::Law;
use super::leg::{BLOCK, Leg};
use super::playout::Depths;
use super::rtp::Packet;
use crate::proto::base::{Mode, Time};
use crate::proto::trunk::{Media, MediaReport};
use std::net::SocketAddr;

/// What is fixed for a DS0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The law of the span's octets.
    pub law: Law,
    /// The most connections.
    pub connections: usize,
    /// How deep the buffers of connections may be.
    pub depths: Depths,
    /// Whether a connection sends to where packets come from, and takes them from wherever the first one came.
    pub symmetric: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { law: Law::Mu, connections: 4, depths: Depths::default(), symmetric: false }
    }
}

/// What a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// RTP.
    Rtp,
    /// RTCP.
    Rtcp,
}

/// The media of one DS0.
#[derive(Debug)]
pub struct Ds0 {
    settings: Settings,
    /// The first `open` ones are connections.
    legs: Box<[Leg]>,
    open: usize,
    /// What the circuit meets.
    circuit: Circuit,
    strangers: u64,
    unknown: u64,
}

/// What the circuit meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Circuit {
    /// The connections.
    Connections,
    /// Itself: a connection is in loopback.
    Itself,
    /// A transponder: a connection is in conttest.
    Transponder,
}

impl Ds0 {
    /// A DS0 without connections. All memory it will need is taken here.
    pub fn new(settings: Settings) -> Ds0 {
        Ds0 {
            settings,
            legs: (0..settings.connections).map(|_| Leg::new(&settings)).collect(),
            open: 0,
            circuit: Circuit::Connections,
            strangers: 0,
            unknown: 0,
        }
    }

    /// Begins the media of a connection; `seed` decides source, sequence and timestamp of what it sends. False when there are as many
    /// as there may be, or this one is there already.
    pub fn open(&mut self, _now: Time, connection: u32, media: &Media, seed: u64) -> bool {
        if self.leg(connection).is_some() {
            return false;
        }
        let Some(leg) = self.legs.get_mut(self.open) else { return false };
        leg.start(self.settings.law, connection, media, seed);
        self.open += 1;
        self.plan();
        true
    }

    /// Changes what a connection does.
    pub fn modify(&mut self, _now: Time, connection: u32, media: &Media) {
        let law = self.settings.law;
        if let Some(leg) = self.leg_mut(connection) {
            leg.change(law, media);
        }
        self.plan();
    }

    /// Ends a connection, and says what it counted; nothing when there is none.
    pub fn close(&mut self, now: Time, connection: u32) -> MediaReport {
        let report = self.report(now, connection);
        if let Some(place) = self.legs().iter().position(|leg| leg.connection == connection) {
            self.open -= 1;
            self.legs.swap(place, self.open);
        }
        self.plan();
        report
    }

    /// What a connection has counted so far.
    pub fn report(&self, _now: Time, connection: u32) -> MediaReport {
        self.leg(connection).map_or_else(MediaReport::default, Leg::report)
    }

    /// An RTP or RTCP packet came to the port of a connection.
    pub fn packet(&mut self, now: Time, connection: u32, source: SocketAddr, kind: Kind, octets: &[u8]) {
        let Settings { law, symmetric, .. } = self.settings;
        let Some(leg) = self.leg_mut(connection) else { return };
        if kind == Kind::Rtcp {
            return;
        }
        let Some(packet) = Packet::read(octets) else {
            self.unknown += 1;
            return;
        };
        if !leg.inbound.accepts(&leg.media, symmetric, source) {
            self.strangers += 1;
        } else if !leg.receive(law, now, &packet) {
            self.unknown += 1;
        }
    }

    /// Both directions for the same span of time, by the trunk's clock: `octets` came from the DS0, and are replaced by what goes out on
    /// it. `out` takes packets that are due, with the address they go to: the RTP port of the far end, for both kinds. Of a connection inside the
    /// gateway the address is 0.0.0.0:0, and the packet goes as it is to [`Ds0::packet`] of its other half.
    pub fn exchange(&mut self, _now: Time, octets: &mut [u8], out: &mut impl FnMut(u32, SocketAddr, Kind, &[u8])) {
        if self.open == 0 {
            return octets.fill(self.settings.law.idle());
        }
        for block in octets.chunks_mut(BLOCK) {
            self.turn(block, out);
        }
    }

    fn turn(&mut self, block: &mut [u8], out: &mut impl FnMut(u32, SocketAddr, Kind, &[u8])) {
        let law = self.settings.law;
        let mut circuit = [law.idle(); BLOCK];
        let Some(circuit) = circuit.get_mut(..block.len()) else { return };
        circuit.copy_from_slice(block);
        let legs = self.legs.get_mut(..self.open).unwrap_or_default();
        for leg in legs.iter_mut().filter(|leg| leg.media.mode.receives()) {
            leg.inbound.playout.play(leg.heard.get_mut(..block.len()).unwrap_or_default());
        }
        match self.circuit {
            Circuit::Connections => mix(law, legs, block),
            Circuit::Itself => {}
            Circuit::Transponder => block.fill(law.idle()),
        }
        let circuit = (self.circuit == Circuit::Connections).then_some(&*circuit);
        let conference = conference(law, legs, block.len());
        for leg in legs {
            send(&self.settings, leg, circuit, conference.as_ref(), block.len(), out);
        }
    }

    fn plan(&mut self) {
        let any = |mode| self.legs().iter().any(|leg| leg.media.mode == mode);
        self.circuit = match (any(Mode::Loopback), any(Mode::ContinuityTest)) {
            (true, _) => Circuit::Itself,
            (false, true) => Circuit::Transponder,
            (false, false) => Circuit::Connections,
        };
    }

    fn legs(&self) -> &[Leg] {
        self.legs.get(..self.open).unwrap_or_default()
    }

    fn leg(&self, connection: u32) -> Option<&Leg> {
        self.legs().iter().find(|leg| leg.connection == connection)
    }

    fn leg_mut(&mut self, connection: u32) -> Option<&mut Leg> {
        self.legs.get_mut(..self.open)?.iter_mut().find(|leg| leg.connection == connection)
    }
}

/// What the circuit gets of the connections: the octets of one as they are, the sum of several.
fn mix(law: Law, legs: &[Leg], block: &mut [u8]) {
    let mut feeding = legs.iter().filter(|leg| leg.feeds_circuit());
    match (feeding.next(), feeding.next()) {
        (None, _) => block.fill(law.idle()),
        (Some(leg), None) => block.copy_from_slice(leg.heard.get(..block.len()).unwrap_or_default()),
        (Some(_), Some(_)) => {
            let mut sum = [0; BLOCK];
            legs.iter().filter(|leg| leg.feeds_circuit()).for_each(|leg| add(law, &mut sum, &leg.heard));
            block.iter_mut().zip(sum).for_each(|(octet, value)| *octet = law.encode(value));
        }
    }
}

fn add(law: Law, sum: &mut [i32; BLOCK], octets: &[u8]) {
    sum.iter_mut().zip(octets).for_each(|(sum, &octet)| *sum += i32::from(law.decode(octet)));
}

/// The sum of what the connections of the conference hear; `None` when there is no other one to hear it.
fn conference(law: Law, legs: &[Leg], _length: usize) -> Option<[i32; BLOCK]> {
    let members = || legs.iter().filter(|leg| leg.media.mode == Mode::Conference);
    members().nth(1)?;
    let mut sum = [0; BLOCK];
    members().for_each(|leg| add(law, &mut sum, &leg.heard));
    Some(sum)
}

/// What goes out on a connection: the circuit, unless that meets something else, and the others of the conference; on a network loop what came in.
fn send(
    settings: &Settings,
    leg: &mut Leg,
    circuit: Option<&[u8]>,
    conference: Option<&[i32; BLOCK]>,
    length: usize,
    out: &mut impl FnMut(u32, SocketAddr, Kind, &[u8]),
) {
    let law = settings.law;
    let connection = leg.connection;
    let Some(to) = leg.destination(settings.symmetric).filter(|_| leg.media.payloads.sent.is_some()) else {
        return leg.sender.skip(length);
    };
    let mut octets = [law.idle(); BLOCK];
    let Some(octets) = octets.get_mut(..length) else { return };
    match (leg.media.mode, conference) {
        (Mode::Conference, Some(sum)) => {
            for (at, octet) in octets.iter_mut().enumerate() {
                let own = leg.heard.get(at).map_or(0, |&own| i32::from(law.decode(own)));
                let line = circuit.and_then(|circuit| circuit.get(at)).map_or(0, |&line| i32::from(law.decode(line)));
                *octet = law.encode(sum.get(at).map_or(0, |&sum| sum - own + line));
            }
        }
        (Mode::NetworkLoop, _) => octets.copy_from_slice(leg.heard.get(..length).unwrap_or_default()),
        _ if leg.sends_circuit() => match circuit {
            Some(circuit) => octets.copy_from_slice(circuit),
            None => return leg.sender.skip(length),
        },
        _ => return leg.sender.skip(length),
    }
    leg.send(law, octets, &mut |packet| out(connection, to, Kind::Rtp, packet));
}
