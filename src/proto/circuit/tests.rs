//! Two circuits with a link between them that loses, delays, repeats and reorders.

use super::*;
use crate::proto::base::Rng;
use crate::proto::pseudowire::{Fragment, RtpSettings, Structure};
use std::collections::BTreeMap;

mod satop;

/// Channels that send a running number each, and remember what came.
#[derive(Default)]
struct Counting {
    /// By channel: the next octet to send.
    next: Vec<u8>,
    /// By channel: what came last, and what did not follow it.
    came: Vec<Option<u8>>,
    broken: u64,
    fillers: u64,
    bits: Vec<u8>,
    shows: Vec<u8>,
}

impl Counting {
    fn new(channels: usize) -> Counting {
        Counting {
            next: vec![0; channels],
            came: vec![None; channels],
            bits: vec![0; channels],
            shows: vec![0; channels],
            ..Counting::default()
        }
    }
}

impl Channels for Counting {
    fn exchange(&mut self, channel: u8, came: &[u8], filler: bool, send: &mut [u8]) {
        let channel = usize::from(channel);
        for octet in send.iter_mut() {
            *octet = self.next[channel];
            self.next[channel] = self.next[channel].wrapping_add(1);
        }
        if filler {
            self.fillers += u64::from(channel == 0 && self.came[0].is_some());
            assert!(came.iter().all(|octet| *octet == 0xFF));
            self.came[channel] = self.came[channel].map(|last| last.wrapping_add(came.len() as u8));
            return;
        }
        for octet in came {
            self.broken += u64::from(self.came[channel].is_some_and(|last| last.wrapping_add(1) != *octet));
            self.came[channel] = Some(*octet);
        }
    }

    fn take_bits(&mut self, channel: u8, bits: u8) {
        self.bits[usize::from(channel)] = bits;
    }

    fn give_bits(&mut self, channel: u8) -> u8 {
        self.shows[usize::from(channel)]
    }
}

fn settings(structure: Structure) -> CircuitSettings {
    let rtp = Some(RtpSettings { payload_type: 97, ssrc: None });
    let layout = Layout::new(structure, rtp).unwrap();
    let ms = Duration::from_millis;
    CircuitSettings { layout, framing: None, jitter: ms(6), jitter_max: ms(60), own_clock: false, idle: 0xFF, sequence: 65_530 }
}

/// One of the two ends. The first has the trunk's clock, the second follows.
struct End {
    circuit: Circuit,
    channels: Counting,
    /// The end's clock runs so much faster than time, as a share.
    rate: f64,
    /// Packets on their way here by when they arrive.
    coming: BTreeMap<(u64, u64), Vec<u8>>,
}

/// The link: loss per million, jitter in us, whether it may reorder.
#[derive(Clone, Copy)]
struct Link {
    loss: u64,
    jitter: u64,
    reorders: bool,
    /// The shortest time on it, in ms.
    delay: u64,
}

struct Pair {
    ends: [End; 2],
    rng: Rng,
    link: Link,
    sent: u64,
}

impl Pair {
    fn new(structure: Structure, ppm: f64, link: Link) -> Pair {
        Pair::with(&settings(structure), ppm, link)
    }

    fn with(settings: &CircuitSettings, ppm: f64, link: Link) -> Pair {
        let settings = *settings;
        let channels = settings.layout.channels();
        let end = |own_clock, ppm: f64| {
            let circuit = Circuit::new(Time::ZERO, &CircuitSettings { own_clock, ..settings }).unwrap();
            End { circuit, channels: Counting::new(channels), rate: 1.0 + ppm * 1e-6, coming: BTreeMap::new() }
        };
        Pair { ends: [end(true, ppm), end(false, 0.0)], rng: Rng::new(3), link, sent: 0 }
    }

    /// When end `place` plays next, in time.
    fn due(&self, place: usize) -> u64 {
        let end = &self.ends[place];
        (end.circuit.due().0 as f64 / end.rate) as u64
    }

    fn run(&mut self, until_ms: u64) {
        loop {
            let place = usize::from(self.due(1) < self.due(0));
            let now = self.due(place);
            if now > until_ms * 1_000_000 {
                return;
            }
            let end = &mut self.ends[place];
            while let Some(entry) = end.coming.first_entry().filter(|entry| entry.key().0 <= now) {
                let ((at, _), octets) = entry.remove_entry();
                end.circuit.receive(Time((at as f64 * end.rate) as u64), &octets);
            }
            let packet = end.circuit.play(&mut end.channels).to_vec();
            self.sent += 1;
            if self.rng.below(1_000_000) < self.link.loss {
                continue;
            }
            let other = &mut self.ends[1 - place];
            let mut at = now + self.link.delay * 1_000_000 + self.rng.below(self.link.jitter * 1000 + 1);
            if !self.link.reorders {
                at = at.max(other.coming.last_key_value().map_or(0, |((at, _), _)| *at));
            }
            other.coming.insert((at, self.sent), packet);
        }
    }
}

impl Layout {
    fn channels(&self) -> usize {
        match self.structure() {
            Structure::Frames { channels, .. } | Structure::Signalled { channels, .. } => channels.into(),
            Structure::Bits(_) | Structure::Groups(_) => 24,
        }
    }
}

const CLEAN: Link = Link { loss: 0, jitter: 0, reorders: false, delay: 3 };

#[test]
fn octets_and_bits_of_each_channel_come_out_as_they_went_in() {
    for structure in [
        Structure::Frames { channels: 24, frames: 8 },
        Structure::Frames { channels: 31, frames: 8 },
        Structure::Signalled { channels: 24, multiframe: 24, frames: 24 },
        Structure::Signalled { channels: 24, multiframe: 24, frames: 8 },
        Structure::Signalled { channels: 30, multiframe: 16, frames: 16 },
        Structure::Signalled { channels: 5, multiframe: 24, frames: 12 },
    ] {
        let mut pair = Pair::new(structure, 0.0, CLEAN);
        let shows: Vec<u8> = (0..pair.ends[0].channels.shows.len()).map(|n| (n * 7 % 16) as u8).collect();
        pair.ends[0].channels.shows.clone_from(&shows);
        pair.run(2_000);
        for end in &pair.ends {
            assert_eq!((end.channels.broken, end.channels.fillers), (0, 0), "{structure:?}");
            assert!(end.channels.came.iter().all(Option::is_some), "{structure:?}");
            assert_eq!(end.circuit.alarms(), Alarms::default());
        }
        if matches!(structure, Structure::Signalled { .. }) {
            assert_eq!(pair.ends[1].channels.bits, shows, "{structure:?}");
        }
    }
}

/// SAT-18: blocks are those of the trunk, however long packets are, and only packets that were to be played are missing in them.
#[test]
fn blocks_are_errored_by_what_did_not_come_in_its_turn() {
    let errored = |block: u64, packet: u64, lost: &[u64]| {
        let mut of_trunk = Block { bits: block, ..Block::default() };
        (0..24).map(|n| of_trunk.pass(packet, lost.contains(&n))).sum::<u64>()
    };
    let t1 = 24 * FRAME_BITS as u64;
    assert_eq!(errored(t1, t1 / 3, &[4]), 1, "packets of 1 ms");
    assert_eq!(errored(t1, t1 / 3, &[3, 4, 5, 6]), 2);
    assert_eq!(errored(t1, t1, &[4, 5]), 2, "of a multiframe");
    assert_eq!(errored(t1, 1_536, &[3]), 2, "one across two blocks");
    assert_eq!(errored(t1, 64 * FRAME_BITS as u64, &[0]), 3, "of 8 ms");
    assert_eq!(errored(8 * FRAME_BITS as u64, 16 * FRAME_BITS as u64, &[2]), 2, "of an E1");
    let structures = [
        (Structure::Frames { channels: 24, frames: 8 }, None),
        (Structure::Signalled { channels: 30, multiframe: 16, frames: 16 }, None),
        (Structure::Bits(192), Some(Framing { format: Format::D4, signalled: false })),
    ];
    for (structure, framing) in structures {
        let settings = CircuitSettings { framing, ..settings(structure) };
        let mut clean = Pair::with(&settings, 0.0, CLEAN);
        clean.run(1_000);
        assert_eq!(clean.ends[1].circuit.view().counts.errored_blocks, 0, "{structure:?}: what comes before the first packet is none");
        let mut pair = Pair::with(&settings, 0.0, Link { loss: 20_000, ..CLEAN });
        pair.run(2_000);
        let counts = pair.ends[1].circuit.view().counts;
        let (blocks, lost) = (counts.errored_blocks, counts.buffer.lost);
        assert!(lost > 3 && blocks > lost / 2 && blocks <= 2 * lost, "{structure:?}: {counts:?}");
        // The state of packet loss is a defect, not errored blocks.
        pair.link.loss = 1_000_000;
        pair.run(2_100);
        let before = pair.ends[1].circuit.view().counts.errored_blocks;
        pair.run(3_000);
        let view = pair.ends[1].circuit.view();
        assert!(view.alarms.packet_loss && view.counts.errored_blocks == before, "{structure:?}: {view:?}");
    }
}

/// The buffer of 6 ms would run empty or full after two minutes. Two hours are gone through by the clock alone ([`Playout`]'s tests).
#[test]
fn with_a_far_end_50_ppm_off_no_octet_slips_either_way() {
    for ppm in [50.0, -50.0] {
        let mut pair = Pair::new(Structure::Frames { channels: 1, frames: 64 }, ppm, Link { jitter: 2_000, ..CLEAN });
        pair.run(20_000);
        let before = pair.ends.iter().map(|end| (end.channels.broken, end.channels.fillers)).collect::<Vec<_>>();
        pair.run(300_000);
        for (end, before) in pair.ends.iter().zip(before) {
            let view = end.circuit.view();
            assert_eq!((end.channels.broken, end.channels.fillers), before, "{ppm}: {view:?}");
            assert_eq!((view.counts.slips, view.counts.buffer.lost, view.counts.buffer.overrun), (0, 0, 0), "{ppm}: {view:?}");
            assert!(end.coming.len() < 4 && view.waiting < 4, "{ppm}: {view:?}");
        }
    }
}

#[test]
fn lost_packets_are_filled_in_place_and_the_rest_stays_where_it_was() {
    let link = Link { loss: 10_000, jitter: 4_000, reorders: true, ..CLEAN };
    let mut pair = Pair::new(Structure::Signalled { channels: 4, multiframe: 24, frames: 24 }, 20.0, link);
    pair.run(10_000);
    pair.ends.iter_mut().for_each(|end| (end.channels.broken, end.channels.fillers) = (0, 0));
    pair.run(120_000);
    for end in &pair.ends {
        let view = end.circuit.view();
        // The one with the clock of its own makes room for the worst jitter by a jump, once.
        let slips = view.counts.slips;
        assert!(slips <= 1 && end.channels.broken <= 4 * slips, "{view:?}");
        let share = end.channels.fillers as f64 / (110.0 / 0.003);
        assert!((0.005..0.02).contains(&share), "{share}: {view:?}");
        assert_eq!(view.alarms, Alarms::default());
    }
}

#[test]
fn a_far_end_that_stops_is_packet_loss_and_r_tells_the_other_side() {
    let mut pair = Pair::new(Structure::Frames { channels: 24, frames: 8 }, 0.0, CLEAN);
    pair.run(500);
    // Nothing reaches end 1 any more.
    let before = pair.ends[1].circuit.view().counts.received;
    let deaf_until = |pair: &mut Pair, from: u64, to: u64| {
        for ms in from..to {
            pair.run(ms);
            pair.ends[1].coming.clear();
        }
    };
    deaf_until(&mut pair, 500, 1_500);
    assert!(pair.ends[1].circuit.view().counts.received <= before + 4);
    assert_eq!(pair.ends[1].circuit.alarms(), Alarms { packet_loss: true, ..Alarms::default() });
    assert_eq!(pair.ends[0].circuit.alarms(), Alarms::default(), "a moment is no alarm");
    deaf_until(&mut pair, 1_500, 2_700);
    assert_eq!(pair.ends[0].circuit.alarms(), Alarms { rai: true, ..Alarms::default() });
    // The gateway's own clock goes on.
    let sent = pair.ends[1].circuit.view().counts.sent;
    assert!((2_690..=2_710).contains(&sent), "{sent}");
    pair.run(3_200);
    assert!(pair.ends.iter().all(|end| end.circuit.alarms() == Alarms::default()));
}

#[test]
fn l_is_ais_and_is_answered_by_rdi() {
    let settings = settings(Structure::Frames { channels: 24, frames: 8 });
    let mut circuit = Circuit::new(Time::ZERO, &settings).unwrap();
    let mut channels = Counting::new(24);
    let mut packet = [0; 1500];
    let mut sequence = 0;
    let mut tell = |circuit: &mut Circuit, local_fault: bool, times: u32| {
        let mut last = Vec::new();
        for _ in 0..times {
            let header = Header { local_fault, sequence, ..Header::default() };
            let data: &[u8] = if local_fault { &[] } else { &[7; 192] };
            let told = Packet { header, timestamp: Some(0), fragment: Fragment::Whole, data, signalling: &[] };
            let length = settings.layout.write(&told, &mut packet).unwrap();
            circuit.receive(circuit.due(), &packet[..length]);
            last = circuit.play(&mut channels).to_vec();
            sequence += 1;
            channels.came.fill(None);
        }
        settings.layout.read(&last).unwrap().header
    };
    tell(&mut circuit, false, 20);
    assert!(!tell(&mut circuit, true, 2).remote_defect);
    assert!(tell(&mut circuit, true, 18).remote_defect);
    assert!(circuit.alarms().ais && circuit.view().counts.local_faults == 20);
    assert!(!tell(&mut circuit, false, 20).remote_defect);
}

/// An operator's AIS is L without octets, which the far end takes for AIS and answers by RDI or RAI; then channels are where they were.
#[test]
fn ais_is_sent_without_octets_and_ends_without_a_trace() {
    for structure in [
        Structure::Frames { channels: 24, frames: 8 },
        Structure::Signalled { channels: 24, multiframe: 24, frames: 8 },
        Structure::Bits(192),
        Structure::Groups(8),
    ] {
        let settings = settings(structure);
        let framing = settings.layout.is_bits().then_some(Framing { format: Format::Esf, signalled: false });
        let mut pair = Pair::with(&CircuitSettings { framing, ..settings }, 0.0, CLEAN);
        pair.run(2_000);
        pair.ends[1].circuit.send_ais(true);
        assert_eq!(pair.ends[1].circuit.play(&mut Counting::new(24)).len(), 4 + 12, "{structure:?}");
        pair.run(5_000);
        let alarms = pair.ends.each_ref().map(|end| end.circuit.alarms());
        assert_eq!((alarms[0].ais, alarms[0].packet_loss, alarms[1].rai, alarms[1].ais), (true, false, true, false), "{structure:?}");
        pair.ends[1].circuit.send_ais(false);
        pair.run(9_000);
        assert!(pair.ends.iter().all(|end| end.circuit.alarms() == Alarms::default()), "{structure:?}");
        // The period above was played apart, and is missing.
        let broken = |pair: &Pair| pair.ends.each_ref().map(|end| end.channels.broken);
        let before = broken(&pair);
        pair.run(11_000);
        assert_eq!(broken(&pair), before, "{structure:?}");
    }
}

#[test]
fn any_octets_do_no_harm_and_are_counted() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let mut circuit = Circuit::new(Time::ZERO, &settings(Structure::Signalled { channels: 24, multiframe: 24, frames: 8 })).unwrap();
        let mut channels = Counting::new(24);
        let mut good = circuit.play(&mut channels).to_vec();
        for _ in 0..2_000 {
            match rng.below(4) {
                0 => {
                    let octets: Vec<u8> = (0..rng.below(700)).map(|_| rng.below(256) as u8).collect();
                    circuit.receive(circuit.due(), &octets);
                }
                1 => {
                    let place = rng.below(good.len() as u64) as usize;
                    good[place] = rng.below(256) as u8;
                    circuit.receive(circuit.due(), &good);
                }
                2 => drop(circuit.catch_up(circuit.due() + Duration::from_millis(rng.below(300)))),
                _ => {
                    channels.came.fill(None);
                    circuit.play(&mut channels);
                }
            }
        }
        let counts = circuit.view().counts;
        assert!(counts.malformed + counts.strays > 500, "{counts:?}");
    }
}
