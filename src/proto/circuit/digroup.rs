//! A circuit with its channels: octets to and from the media of each DS0, bits to and from its signalling, alarms to indications.

use super::slots::{PacketsOut, Slots};
use super::{Channels, Circuit, CircuitSettings, Coding};
use crate::proto::base::{EndpointIndex, Time};
use crate::proto::trunk::{Alarms, CircuitCounts, CircuitView, Defect, Facility, Indication, Violations};
use crate::proto::voice;
use std::collections::VecDeque;
use std::time::Duration;

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

/// A T1 or E1 with its channels.
#[derive(Debug)]
pub struct Digroup {
    facility: Facility,
    circuit: Circuit,
    slots: Slots,
    /// The alarms that were indicated.
    told: Alarms,
    /// The slips and the violations that were indicated, and when to look again.
    counted: CircuitCounts,
    tell: Time,
    /// While it is looped.
    mirror: Option<Mirror>,
    told_of_loop: bool,
    /// Whether AIS is sent, and that was told.
    ais: (bool, bool),
}

/// Channels that give back what comes: the octets at once, the bits as they came last.
#[derive(Debug)]
struct Mirror(Box<[u8]>);

impl Channels for Mirror {
    fn exchange(&mut self, _: u8, came: &[u8], _: bool, send: &mut [u8]) {
        send.copy_from_slice(came);
    }

    fn take_bits(&mut self, channel: u8, bits: u8) {
        if let Some(place) = self.0.get_mut(usize::from(channel)) {
            *place = bits;
        }
    }

    fn give_bits(&mut self, channel: u8) -> u8 {
        self.0.get(usize::from(channel)).copied().unwrap_or(0)
    }
}

/// What was counted is indicated so often.
const TELL: Duration = Duration::from_millis(500);

impl Digroup {
    /// One that begins to play at `now`.
    ///
    /// # Errors
    /// As [`Circuit::new`].
    pub fn new(now: Time, settings: &DigroupSettings) -> Result<Digroup, &'static str> {
        let circuit = Circuit::new(now, &settings.circuit)?;
        let voice = voice::Settings { grain: circuit.frames(), ..settings.voice };
        Ok(Digroup {
            facility: settings.facility,
            circuit,
            slots: Slots::new(&settings.endpoints, settings.coding, &voice),
            told: Alarms::default(),
            counted: CircuitCounts::default(),
            tell: now,
            mirror: None,
            told_of_loop: false,
            ais: (false, false),
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

    /// What comes from the far end goes back to it, or not any more. Connections and lines stand still meanwhile.
    pub fn set_loop(&mut self, on: bool) {
        self.mirror = on.then(|| Mirror(vec![0; self.slots.count()].into()));
    }

    /// See [`Circuit::send_ais`].
    pub fn send_ais(&mut self, on: bool) {
        self.ais.0 = on;
        self.circuit.send_ais(on);
    }

    /// See [`Circuit::catch_up`].
    pub fn catch_up(&mut self, now: Time) -> bool {
        self.circuit.catch_up(now)
    }

    /// Its channels.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Its channels.
    pub fn slots_mut(&mut self) -> &mut Slots {
        &mut self.slots
    }

    /// Plays one period: what it has to say goes to `out`, packets of connections to `packets`; the packet to send is given.
    pub fn play(&mut self, out: &mut VecDeque<Indication>, packets: PacketsOut<'_>) -> &[u8] {
        let Digroup { facility, circuit, slots, told, counted, tell, mirror, told_of_loop, ais } = self;
        let now = circuit.due();
        if now >= *tell {
            // By its own clock, so each second has its two; what was left out is told once.
            *tell += TELL;
            if *tell <= now {
                *tell = now + TELL;
            }
            let counts = circuit.view().counts;
            let new = |now: u64, before: u64| u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX);
            let violations = Violations {
                slips: new(counts.slips, counted.slips),
                path: new(counts.violations, counted.violations),
                blocks: new(counts.errored_blocks, counted.errored_blocks),
                ..Violations::default()
            };
            *counted = counts;
            if violations != Violations::default() {
                out.push_back(Indication::Violations { facility: *facility, violations });
            }
        }
        let before = circuit.alarms();
        for (defect, is, was) in [
            (Defect::PacketLoss, before.packet_loss, &mut told.packet_loss),
            (Defect::Ais, before.ais, &mut told.ais),
            (Defect::OutOfFrame, before.out_of_frame, &mut told.out_of_frame),
            (Defect::LossOfSignal, before.no_signal, &mut told.no_signal),
            (Defect::RemoteAlarm, before.rai, &mut told.rai),
            (Defect::Loopback, mirror.is_some(), told_of_loop),
            (Defect::AisSent, ais.0, &mut ais.1),
        ] {
            if *was != is {
                *was = is;
                out.push_back(Indication::Defect { facility: *facility, defect, present: is, at_once: false });
            }
        }
        match mirror {
            Some(mirror) => circuit.play(mirror),
            None => circuit.play(&mut Period { now, slots, out, packets }),
        }
    }
}

/// One period of the channels.
struct Period<'a> {
    now: Time,
    slots: &'a mut Slots,
    out: &'a mut VecDeque<Indication>,
    packets: PacketsOut<'a>,
}

impl Channels for Period<'_> {
    fn exchange(&mut self, channel: u8, came: &[u8], filler: bool, send: &mut [u8]) {
        send.copy_from_slice(came);
        self.slots.exchange(self.now, channel.into(), send, filler, self.out, self.packets);
    }

    fn take_bits(&mut self, channel: u8, bits: u8) {
        self.slots.take_bits(self.now, channel.into(), bits, self.out);
    }

    fn give_bits(&mut self, channel: u8) -> u8 {
        self.slots.give_bits(self.now, channel.into(), self.out).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Mode;
    use crate::proto::pseudowire::{Layout, Structure};
    use crate::proto::trunk::{self, Media, Payloads, SpanIndex};
    use crate::proto::voice::{Kind, Law};

    /// A T1 of its own clock with a call on its first channel.
    fn digroup(sent: (trunk::Coding, u8)) -> Digroup {
        let layout = Layout::new(Structure::Frames { channels: 24, frames: 8 }, None).unwrap();
        let (jitter, jitter_max) = (Duration::from_millis(3), Duration::from_millis(20));
        let circuit = CircuitSettings { layout, framing: None, jitter, jitter_max, own_clock: true, idle: 0xFF, sequence: 0 };
        let endpoints = (0..24).map(|n| Some(EndpointIndex(n))).collect();
        let facility = Facility::Span(SpanIndex(0));
        let settings = DigroupSettings { circuit, facility, endpoints, coding: None, voice: voice::Settings::default() };
        let mut digroup = Digroup::new(Time::ZERO, &settings).unwrap();
        let payloads = Payloads { sent: Some(sent), received: [Some(0), None, Some(103)], ..Payloads::default() };
        let remote = Some(([192, 0, 2, 1], 6_000).into());
        let media = Media { mode: Mode::SendRecv, packet_bytes: 80, period_ms: 10, remote, payloads, ..Media::default() };
        assert!(digroup.slots_mut().open(Time::ZERO, EndpointIndex(0), 0, &media, 1));
        digroup
    }

    /// Plays so many periods with a loud tone from the trunk, of which the packets `lost` says are; the RTP octets.
    fn rtp(digroup: &mut Digroup, periods: u16, lost: impl Fn(u16) -> bool) -> Vec<u8> {
        let (mut out, mut octets) = (VecDeque::new(), Vec::new());
        for period in 0..periods {
            let mut packet = vec![0, 0, 0, 0];
            packet[2..].copy_from_slice(&period.to_be_bytes());
            let tone = |frame: u16| (f64::from(period * 8 + frame) * 0.785).sin() * 8_000.0;
            packet.extend((0..192).map(|place| Law::Mu.encode(tone(place / 24) as i32)));
            let due = digroup.due();
            if !lost(period) {
                digroup.receive(due, &packet);
            }
            digroup.play(&mut out, &mut |_, _, kind, packet| {
                if kind == Kind::Rtp {
                    octets.extend_from_slice(&packet[12..]);
                }
            });
        }
        octets
    }

    fn quiet(octets: &[u8]) -> usize {
        octets.chunks(8).filter(|octets| octets.iter().all(|octet| Law::Mu.decode(*octet).abs() < 500)).count()
    }

    /// A lost packet of the trunk is a voice that goes on, not a hole; of data it is left idle, for nobody may make data up.
    #[test]
    fn a_lost_packet_of_the_trunk_is_no_hole_in_a_voice() {
        let lost = |period: u16| period % 50 == 40;
        let mut voice = digroup((trunk::Coding::Mu, 0));
        let octets = rtp(&mut voice, 500, lost);
        assert!(octets.len() > 3_900 && quiet(&octets[400..]) == 0, "{}", quiet(&octets[400..]));
        assert!(voice.slots_mut().media(EndpointIndex(0)).unwrap().counted().mended >= 9 * 8);
        let mut data = digroup((trunk::Coding::Clear, 103));
        let octets = rtp(&mut data, 500, lost);
        assert!((9..=11).contains(&quiet(&octets[400..])), "{}", quiet(&octets[400..]));
    }

    /// LOOP-01, LOOP-06: octets and bits go back while it is looped, which is a defect meanwhile.
    #[test]
    fn a_looped_span_gives_back_what_comes_and_says_so() {
        let layout = Layout::new(Structure::Signalled { channels: 24, multiframe: 24, frames: 24 }, None).unwrap();
        let mut digroup = digroup((trunk::Coding::Mu, 0));
        let (jitter, jitter_max) = (Duration::from_millis(3), Duration::from_millis(20));
        let circuit = CircuitSettings { layout, framing: None, jitter, jitter_max, own_clock: true, idle: 0xFF, sequence: 0 };
        digroup.circuit = Circuit::new(Time::ZERO, &circuit).unwrap();
        let mut out = VecDeque::new();
        let mut sequence = 0u16;
        let mut play = |digroup: &mut Digroup, out: &mut VecDeque<Indication>| {
            let mut packet = vec![0, 0, 0, 0];
            packet[2..].copy_from_slice(&sequence.to_be_bytes());
            packet.extend((0..588).map(|place| (place % 251) as u8));
            sequence += 1;
            let due = digroup.due();
            digroup.receive(due, &packet);
            digroup.play(out, &mut |_, _, _, _| {})[4..] == packet[4..]
        };
        let told = |out: &mut VecDeque<Indication>| {
            let loops = out.drain(..).filter_map(|told| match told {
                Indication::Defect { defect: Defect::Loopback, present, .. } => Some(present),
                _ => None,
            });
            loops.collect::<Vec<_>>()
        };
        assert!((0..20).all(|_| !play(&mut digroup, &mut out)) && told(&mut out).is_empty());
        digroup.set_loop(true);
        assert!((0..20).all(|_| play(&mut digroup, &mut out)));
        assert_eq!(told(&mut out), [true]);
        digroup.set_loop(false);
        assert!((0..20).all(|_| !play(&mut digroup, &mut out)));
        assert_eq!(told(&mut out), [false]);
    }

    /// What a machine that stood still left out is counted as slips, and told of (T1P-05).
    #[test]
    fn slips_are_indicated() {
        let mut digroup = digroup((trunk::Coding::Mu, 0));
        let mut out = VecDeque::new();
        let slips = |digroup: &mut Digroup, out: &mut VecDeque<Indication>| {
            for _ in 0..600 {
                digroup.play(out, &mut |_, _, _, _| {});
            }
            let told = out.drain(..).filter_map(|told| match told {
                Indication::Violations { violations, .. } => Some(violations.slips),
                _ => None,
            });
            told.sum::<u32>()
        };
        assert_eq!(slips(&mut digroup, &mut out), 0);
        let later = digroup.due() + Duration::from_millis(400);
        assert!(digroup.catch_up(later));
        assert_eq!(slips(&mut digroup, &mut out), 400);
        assert_eq!(slips(&mut digroup, &mut out), 0);
    }
}
