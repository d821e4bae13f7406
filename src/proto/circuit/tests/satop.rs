//! The same bit by bit, with the framing of the T1.

use super::*;

fn settings(structure: Structure, format: Format, signalled: bool) -> CircuitSettings {
    let layout = Layout::new(structure, Some(RtpSettings { payload_type: 97, ssrc: None })).unwrap();
    let framing = Some(Framing { format, signalled });
    let ms = Duration::from_millis;
    CircuitSettings { layout, framing, jitter: ms(6), jitter_max: ms(60), own_clock: false, idle: 0xFF, sequence: 65_530 }
}

/// Plain and octet-aligned, with each format.
fn kinds() -> impl Iterator<Item = (Structure, Format)> {
    let structures = [Structure::Bits(192), Structure::Groups(8), Structure::Bits(500)];
    structures.into_iter().flat_map(|structure| [Format::Esf, Format::D4].map(|format| (structure, format)))
}

fn forget(pair: &mut Pair) {
    pair.ends.iter_mut().for_each(|end| (end.channels.broken, end.channels.fillers) = (0, 0));
}

#[test]
fn octets_of_each_channel_come_out_as_they_went_in() {
    for (structure, format) in kinds() {
        let mut pair = Pair::with(&settings(structure, format, false), 0.0, CLEAN);
        // Frames are found, and the store has its depth.
        pair.run(400);
        forget(&mut pair);
        pair.run(900);
        for end in &pair.ends {
            assert_eq!((end.channels.broken, end.channels.fillers), (0, 0), "{structure:?} {format:?}: {:?}", end.circuit.view());
            assert!(end.channels.came.iter().all(Option::is_some), "{structure:?}");
            assert_eq!(end.circuit.alarms(), Alarms::default());
            let CircuitCounts { violations, frame_losses, slips, .. } = end.circuit.view().counts;
            assert_eq!((violations, frame_losses, slips), (0, 0, 0), "{structure:?} {format:?}");
        }
    }
}

#[test]
fn bits_of_each_channel_come_out_as_they_went_in() {
    for (structure, format) in kinds() {
        let mut pair = Pair::with(&settings(structure, format, true), 20.0, Link { jitter: 1_000, ..CLEAN });
        for shows in [[0b0000, 0b1111, 0b0101, 0b1010], [0b1111, 0b0101, 0b1010, 0b0000]] {
            let shows: Vec<u8> = (0..24).map(|channel| shows[channel % 4]).collect();
            pair.ends[0].channels.shows.clone_from(&shows);
            let now = pair.due(0) / 1_000_000;
            pair.run(now + 200);
            assert_eq!(pair.ends[1].channels.bits, shows, "{structure:?} {format:?}");
        }
    }
}

#[test]
fn lost_packets_are_filled_in_place_and_the_frames_stay_where_they_were() {
    for (structure, format) in kinds() {
        let link = Link { loss: 30_000, jitter: 1_000, reorders: true, ..CLEAN };
        let mut pair = Pair::with(&settings(structure, format, false), 0.0, link);
        pair.run(400);
        forget(&mut pair);
        pair.run(2_000);
        for end in &pair.ends {
            let view = end.circuit.view();
            // A jump of the jitter buffer is a slip, and the frames go on behind it.
            let slips = view.counts.slips;
            assert!(end.channels.broken <= 48 * slips && view.counts.frame_losses == 0, "{structure:?} {format:?}: {view:?}");
            assert!(view.counts.buffer.lost > 3 && end.channels.fillers > 3, "{view:?}");
            assert_eq!(view.alarms, Alarms::default());
        }
    }
}

/// The clock of timestamps is 8 kHz, 193 bits a tick, whatever is in a packet (SAT-04).
#[test]
fn timestamps_count_frames_from_the_first_packet_on() {
    for (structure, of) in [(Structure::Bits(192), (|n| n * 1_536 / 193) as fn(u32) -> u32), (Structure::Groups(8), |n| n * 8)] {
        let mut circuit = Circuit::new(Time::ZERO, &settings(structure, Format::Esf, false)).unwrap();
        let mut channels = Counting::new(24);
        for n in 0..1_000 {
            let packet = circuit.play(&mut channels).to_vec();
            assert_eq!(circuit.layout.read(&packet).unwrap().timestamp, Some(of(n)), "{structure:?} {n}");
            assert_eq!(packet[4..8], of(n).to_be_bytes(), "{structure:?}");
        }
    }
}

/// What is put off or left out is so by whole packets, and a sequence begun anew tells where it is: so the frames are known.
#[test]
fn the_frames_are_known_behind_a_slip() {
    for (structure, format) in kinds() {
        let mut pair = Pair::with(&settings(structure, format, false), 0.0, CLEAN);
        pair.run(400);
        for late_ms in [0, 20, 0, 35] {
            pair.ends[1].circuit.receiver.hold(3);
            let now = pair.due(1) / 1_000_000;
            pair.run(now + 60);
            pair.ends[1].circuit.receiver.skip(2);
            // A network that stood still for a moment: what comes too late is followed as a new sequence.
            let coming = std::mem::take(&mut pair.ends[1].coming).into_iter();
            pair.ends[1].coming = coming.map(|((at, n), packet)| ((at + late_ms * 1_000_000, n), packet)).collect();
            pair.link.delay = 3 + late_ms;
            pair.run(now + 300);
            pair.link.delay = 3;
            pair.run(now + 600);
        }
        let view = pair.ends[1].circuit.view();
        assert_eq!(view.counts.frame_losses, 0, "{structure:?} {format:?}: {view:?}");
        assert!(view.counts.buffer.restarted > 0 && view.alarms == Alarms::default(), "{structure:?} {format:?}: {view:?}");
        forget(&mut pair);
        let now = pair.due(1) / 1_000_000;
        pair.run(now + 200);
        assert_eq!((pair.ends[1].channels.broken, pair.ends[1].channels.fillers), (0, 0), "{structure:?} {format:?}: {view:?}");
    }
}

#[test]
fn a_far_end_that_stops_is_packet_loss_alone_and_is_told_rai_by_the_framing() {
    for format in [Format::Esf, Format::D4] {
        let mut pair = Pair::with(&settings(Structure::Bits(192), format, false), 0.0, CLEAN);
        // D4 tells RAI by a bit of all channels, so these must not all say the same.
        pair.ends.iter_mut().for_each(|end| end.channels.next = (0..24).map(|channel| channel * 11).collect());
        pair.run(500);
        for ms in 500..3_500 {
            pair.run(ms);
            pair.ends[1].coming.clear();
        }
        assert_eq!(pair.ends[1].circuit.alarms(), Alarms { packet_loss: true, ..Alarms::default() }, "{format:?}");
        assert!(pair.ends[0].circuit.carrier.take_defects().remote_alarm, "{format:?}: by the trunk itself");
        assert_eq!(pair.ends[0].circuit.alarms(), Alarms { rai: true, ..Alarms::default() });
        // The framing tells it for another second.
        pair.run(4_300);
        assert_eq!(pair.ends[0].circuit.alarms(), Alarms { rai: true, ..Alarms::default() }, "{format:?}");
        pair.run(5_000);
        for end in &pair.ends {
            assert_eq!(end.circuit.alarms(), Alarms::default(), "{format:?}: {:?}", end.circuit.view());
        }
    }
}

/// A trunk that sends this octet over and over, without framing.
fn play(circuit: &mut Circuit, octet: u8, sequence: &mut u16, times: u32) {
    let mut packet = [0; 300];
    for _ in 0..times {
        let header = Header { sequence: *sequence, ..Header::default() };
        let data = &[octet; 192];
        let told = Packet { header, timestamp: Some(0), fragment: Fragment::Whole, data, signalling: &[] };
        let length = circuit.layout.write(&told, &mut packet).unwrap();
        circuit.receive(circuit.due(), &packet[..length]);
        let mut channels = Counting::new(24);
        circuit.play(&mut channels);
        *sequence = sequence.wrapping_add(1);
    }
}

#[test]
fn ones_are_ais_zeros_no_signal_and_anything_else_out_of_frame() {
    for (octet, ais, no_signal) in [(0xFF, true, false), (0x00, false, true), (0x5A, false, false)] {
        let mut circuit = Circuit::new(Time::ZERO, &settings(Structure::Bits(192), Format::Esf, false)).unwrap();
        let mut sequence = 0;
        play(&mut circuit, octet, &mut sequence, 60);
        let expected = Alarms { out_of_frame: true, ais, no_signal, ..Alarms::default() };
        assert_eq!(circuit.alarms(), expected, "{octet:x}");
    }
}

#[test]
fn any_octets_do_no_harm() {
    let mut rng = Rng::new(31);
    let mut circuit = Circuit::new(Time::ZERO, &settings(Structure::Groups(8), Format::D4, true)).unwrap();
    let mut channels = Counting::new(24);
    for _ in 0..2_000 {
        let mut good = circuit.play(&mut channels).to_vec();
        for _ in 0..rng.below(4) {
            let place = rng.below(good.len() as u64) as usize;
            good[place] = rng.below(256) as u8;
        }
        channels.came.fill(None);
        match rng.below(3) {
            0 => circuit.receive(circuit.due(), &good[..rng.below(good.len() as u64) as usize]),
            1 => circuit.receive(circuit.due(), &good),
            _ => drop(circuit.catch_up(circuit.due() + Duration::from_millis(rng.below(300)))),
        }
    }
}
