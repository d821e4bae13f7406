//! One span of time of a DS0: what came from the circuit goes to the connections, and what came from these to the circuit.

use super::circuit::{Circuit, conference, mix, share};
use super::ds0::Ds0;
use super::ears::Heard;
use super::event::Event;
use super::leg::{BLOCK, Leg};
use super::settings::Settings;
use super::telephone_event::TelephoneEvent;
use crate::proto::base::{Mode, Time};
use crate::proto::trunk::{DigitKind, Sounds};
use std::net::SocketAddr;
use std::time::Duration;

/// What a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// RTP.
    Rtp,
    /// RTCP.
    Rtcp,
}

/// How often it is looked whether reports are due or far ends silent.
const LOOK: Duration = Duration::from_millis(100);

impl Ds0 {
    /// Both directions for the same span of time, by the trunk's clock: `octets` came from the DS0, and are replaced by what goes out on
    /// it. `out` takes packets that are due, with the address they go to: the RTP port of the far end, for both kinds. Of a connection inside the
    /// gateway the address is 0.0.0.0:0, and the packet goes as it is to [`Ds0::packet`] of its other half.
    pub fn exchange(&mut self, now: Time, octets: &mut [u8], out: &mut impl FnMut(u32, SocketAddr, Kind, &[u8])) {
        if self.is_idle() {
            return octets.fill(self.settings.law.idle());
        }
        // Those of a period may come in several runs.
        let grain = self.settings.grain.max(octets.len());
        self.legs.iter_mut().take(self.open).for_each(|leg| leg.inbound.playout.set_grain(grain));
        for block in octets.chunks_mut(BLOCK) {
            self.turn(block, out);
        }
        if now >= self.look {
            self.look = now + LOOK;
            self.look(now, out);
        }
    }

    fn turn(&mut self, block: &mut [u8], out: &mut impl FnMut(u32, SocketAddr, Kind, &[u8])) {
        let law = self.settings.law;
        let mut circuit = [law.idle(); BLOCK];
        let Some(circuit) = circuit.get_mut(..block.len()) else { return };
        circuit.copy_from_slice(block);
        if !self.ears.is_empty() {
            self.listen_to(circuit, out);
            if self.key.is_some_and(|key| self.wanted.others.suppresses(key)) {
                circuit.fill(law.idle());
            }
        }
        self.hear_legs(block.len());
        let legs = self.legs.get_mut(..self.open).unwrap_or_default();
        if let [leg] = legs
            && self.voiceband.hear(circuit, leg.heard.get(..block.len()).unwrap_or_default())
        {
            leg.inbound.playout.keep_deep(self.voiceband.is_on());
        }
        match (self.circuit, &mut self.transponder) {
            (Circuit::Connections, _) => mix(law, legs, block),
            (Circuit::Transponder(_), Some(transponder)) => transponder.turn(law, circuit, block),
            (Circuit::Itself | Circuit::Transponder(_), _) => {}
        }
        let circuit = (self.circuit == Circuit::Connections).then_some(&*circuit);
        let conference = conference(law, legs);
        for leg in legs {
            send(&self.settings, leg, circuit, conference.as_ref(), block.len(), out);
        }
        if !self.signals.is_empty() && self.signals.play(law, block) {
            self.events.push(Event::Sent);
        }
    }

    /// What the far ends say.
    fn hear_legs(&mut self, length: usize) {
        let law = self.settings.law;
        let Ds0 { legs, events, open, .. } = self;
        for leg in legs.iter_mut().take(*open).filter(|leg| leg.media.mode.receives()) {
            leg.hear(law, length);
            let Leg { ears, heard, connection, .. } = leg;
            let connection = Some(*connection);
            ears.push(heard.get(..length).unwrap_or_default(), &mut |tone, on| events.push(Event::Tone { connection, tone, on }));
        }
    }

    /// What the circuit says, for those who listen; keys go out as telephone events where that is agreed.
    fn listen_to(&mut self, octets: &[u8], out: &mut impl FnMut(u32, SocketAddr, Kind, &[u8])) {
        let Ds0 { settings, ears, legs, open, events, listened, wanted, key, .. } = self;
        // One key may end and the next begin in the same block.
        let mut relay = [None; 2];
        ears.push(octets, &mut |heard| {
            let (kind, symbol, on) = match heard {
                Heard::Began(kind, symbol) => (kind, symbol, true),
                Heard::Ended(kind, symbol) => (kind, symbol, false),
                Heard::Tone(tone, on) => return events.push(Event::Tone { connection: None, tone, on }),
                Heard::Progress(progress) => return events.push(Event::Progress(progress)),
            };
            if kind == DigitKind::Dtmf {
                *key = on.then_some(symbol);
                relay[usize::from(on)] = Some((symbol, on));
            }
            if *listened == Some(kind) || wanted.keys && kind == DigitKind::Dtmf {
                events.push(Event::Digit { kind, symbol, on });
            }
        });
        for (symbol, on) in relay.into_iter().flatten() {
            for leg in legs.iter_mut().take(*open).filter(|leg| leg.relays_keys()) {
                let (connection, Some(to)) = (leg.connection, leg.destination(settings.symmetric)) else { continue };
                match TelephoneEvent::of_key(symbol) {
                    Some(code) if on => leg.sender.begin_event(code),
                    _ => leg.end_event(&mut |packet| out(connection, to, Kind::Rtp, packet)),
                }
            }
        }
    }

    /// Reports that are due, and far ends that are silent.
    fn look(&mut self, now: Time, out: &mut impl FnMut(u32, SocketAddr, Kind, &[u8])) {
        let Ds0 { settings, legs, open, events, wanted, .. } = self;
        for leg in legs.iter_mut().take(*open) {
            let connection = leg.connection;
            let poor = leg.grade(now, &settings.quality);
            if poor && wanted.others.has(Sounds::FAR_QUALITY) {
                events.push(Event::Poor { connection });
            }
            let resized = leg.inbound.playout.resized();
            if let Some(ms) = resized.filter(|_| wanted.others.has(Sounds::FAR_BUFFER)) {
                events.push(Event::Buffer { connection, ms });
            }
            if let Some(limit) = leg.loss.is_over(&leg.inbound.statistics) {
                events.push(Event::Lossy { connection, limit });
            }
            if now >= leg.control.due {
                control(settings, now, leg, false, out);
            }
            if let Some(seconds) = leg.silence.asked_is_over(now) {
                events.push(Event::Silent { connection, seconds });
            }
            if let Some(again) = leg.silence.is_over(now, settings.time_out) {
                events.push(Event::TimedOut { connection, again });
            }
        }
    }
}

/// What goes out on a connection: its signal; else what its mode says of the circuit, the conference and what came in.
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
    let emit = &mut |packet: &[u8]| out(connection, to, Kind::Rtp, packet);
    leg.hold_event(emit);
    let mut octets = [law.idle(); BLOCK];
    let Some(octets) = octets.get_mut(..length) else { return };
    let circuit_goes_out = leg.sends_circuit();
    match (&mut leg.signal, leg.media.mode, conference, circuit) {
        (Some((_, player)), _, _, _) => player.play(law, octets),
        (None, Mode::Conference, Some(sum), _) => share(law, sum, &leg.heard, circuit, octets),
        (None, Mode::NetworkLoop | Mode::NetworkTest, _, _) => return leg.send_back(law, length, emit),
        (None, _, _, Some(circuit)) if circuit_goes_out => return leg.send(law, circuit, emit),
        (None, _, _, _) => return leg.sender.skip(length),
    }
    leg.send(law, octets, emit);
}

/// Sends a report, or the last one with a goodbye; none inside the gateway.
pub(super) fn control(settings: &Settings, now: Time, leg: &mut Leg, bye: bool, out: &mut impl FnMut(u32, SocketAddr, Kind, &[u8])) {
    let to = leg.destination(settings.symmetric).filter(|_| !leg.media.inside);
    let connection = leg.connection;
    leg.report_control((now, settings.wall), bye, &mut |packet| {
        if let Some(to) = to {
            out(connection, to, Kind::Rtcp, packet);
        }
    });
}
