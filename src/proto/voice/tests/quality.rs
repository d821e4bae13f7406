//! What a bad network and a clock that is not ours do to voice.

use super::world::{Network, STEP, World, sine, tone};
use super::*;
use crate::proto::trunk::{Measure, Sounds};

/// How much of what was heard is not the tone: the rest of a fit over 20 ms, against the tone, in dB; one value for each 20 ms.
fn distortion(octets: &[u8], hz: f64) -> Vec<f64> {
    octets
        .chunks_exact(160)
        .map(|block| {
            let values: Vec<f64> = block.iter().map(|&octet| f64::from(Law::Mu.decode(octet))).collect();
            let angle = |n: usize| n as f64 * hz / 8_000.0 * std::f64::consts::TAU;
            let (mut re, mut im) = (0.0, 0.0);
            for (n, value) in values.iter().enumerate() {
                re += value * angle(n).cos() / 80.0;
                im += value * angle(n).sin() / 80.0;
            }
            let rest: f64 = values.iter().enumerate().map(|(n, value)| (value - re * angle(n).cos() - im * angle(n).sin()).powi(2)).sum();
            10.0 * (rest / values.iter().map(|value| value * value).sum::<f64>().max(1.0)).log10()
        })
        .collect()
}

/// 1 % loss and 20 ms jitter: what is heard is the tone, but where packets are missing, and there it is nearly the tone.
#[test]
fn loss_and_jitter_are_concealed() {
    let network = Network { loss_per_million: 10_000, jitter_ms: 20 };
    let mut world = World::new(11, network, [Settings::default(); 2], [media(Mode::SendRecv, 0); 2], 0);
    world.feed(0, sine(Law::Mu, 400.0, -10.0));
    world.run(60_000);
    let heard = &world.sides[1].heard[8_000..];
    let counted = world.sides[1].ds0.counted().played;
    let report = world.sides[1].ds0.report(0);
    assert!((15..60).contains(&report.packets_lost), "{report:?}");
    assert!((1..=20).contains(&report.jitter_ms), "{report:?}");
    assert!(counted.concealed < u64::from(report.packets_lost) * 160 + 1_600 && counted.restarts == 0, "{counted:?}");
    let bad = distortion(heard, 400.0).into_iter().filter(|&db| db > -25.0).count();
    assert!(bad <= 4 * (report.packets_lost as usize + counted.slips as usize), "{bad} bad blocks; {counted:?} {report:?}");
    assert!((level(Law::Mu, heard) + 10.0).abs() < 0.2, "{}", level(Law::Mu, heard));
    assert_eq!(report.playout().map(u64::from), [counted.late, counted.concealed, counted.slips]);
}

/// What a modem sends once it has been answered: octets of no voice, loud and without a pause.
fn carrier(n: u64) -> u8 {
    Law::Mu.encode(((n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 8_000) as i32 - 4_000)
}

/// G-LCO-09 (RFC 3435 2.3.5): a buffer that a bad start has made deep becomes shallower under a voice, and not under what follows the answer of a modem,
/// with its phase turned every 450 ms and its level swinging, until both ends have been silent for longer than they are in between.
#[test]
fn a_modem_or_fax_loses_no_octet_to_a_buffer_that_is_too_deep() {
    for (hz, answers, is_modem) in [(2_100.0, 0, true), (2_100.0, 1, true), (2_000.0, 0, false)] {
        let network = Network { loss_per_million: 0, jitter_ms: 80 };
        let mut world = World::new(12, network, [Settings::default(); 2], [media(Mode::SendRecv, 0); 2], 0);
        let mut tone = sine(Law::Mu, hz, -12.0);
        world.feed(answers, move |n| {
            let value = f64::from(Law::Mu.decode(tone(n))) * (1.0 + 0.2 * (n as f64 / 8_000.0 * 15.0 * std::f64::consts::TAU).sin());
            Law::Mu.encode(if n / 3_600 % 2 == 0 { value } else { -value } as i32)
        });
        world.run(2_000);
        world.network.jitter_ms = 0;
        // What it has learnt of the network is corrected before the answer ends.
        world.run(2_200);
        [0, 1].into_iter().for_each(|side| world.feed(side, carrier));
        let slips = |world: &World| world.sides.each_ref().map(|side| side.ds0.counted().played.slips);
        let before = slips(&world);
        let from = world.sides[1].heard.len();
        world.run(14_000);
        let moved = slips(&world).iter().zip(before).all(|(now, before)| *now > before);
        assert_eq!((slips(&world) == before, moved), (is_modem, !is_modem), "{hz} Hz from {answers}: {before:?} {:?}", slips(&world));
        if is_modem {
            let heard = &world.sides[1].heard[from..];
            let sent: Vec<u8> = (0..112_000).map(carrier).collect();
            let delay = heard.windows(100).position(|part| part == &sent[..100]).unwrap();
            assert!((160..4_000).contains(&delay) && heard[delay..] == sent[..heard.len() - delay], "{delay}");
        }
        // A fax that waits for the other one, and the end of the call.
        for (silence, ends) in [(4_000, false), (6_000, true)].into_iter().filter(|_| answers == 1) {
            let before = slips(&world);
            [0, 1].into_iter().for_each(|side| world.feed(side, |_| 0xff));
            world.run(silence);
            [0, 1].into_iter().for_each(|side| world.feed(side, carrier));
            world.run(14_000);
            assert_eq!(slips(&world) != before, ends, "{hz} Hz: {silence} ms of silence");
        }
    }
}

/// A gap of 200 ms fades away within 60 ms, and voice goes on behind it.
#[test]
fn a_long_gap_is_silence() {
    let mut ds0 = Ds0::new(Settings::default());
    ds0.open(Time::ZERO, 0, &media(Mode::RecvOnly, 0), 1);
    let mut source = tone(Law::Mu);
    let mut heard = Vec::new();
    for step in 0..1_000u64 {
        let now = Time::from_millis(step);
        let payload: Vec<u8> = (step * 8..step * 8 + 160).map(&mut source).collect();
        if step % 20 == 0 && !(500..700).contains(&step) {
            let head = rtp::Packet {
                marker: false,
                payload_type: 0,
                sequence: (step / 20) as u16,
                timestamp: step as u32 * 8,
                ssrc: 1,
                payload: &[],
            };
            ds0.packet(now, 0, remote(0), Kind::Rtp, &[&head.header()[..], &payload].concat());
        }
        let mut octets = [0xff; STEP];
        ds0.exchange(now, &mut octets, &mut |_, _, _, _| {});
        heard.extend(octets);
    }
    let part = |from: usize, to: usize| level(Law::Mu, &heard[(from + 20) * 8..(to + 20) * 8]);
    assert!((part(400, 500) + 10.0).abs() < 0.2 && (part(500, 510) + 10.0).abs() < 0.5);
    assert!(part(540, 560) < -16.0 && part(562, 695) < -70.0, "{} {}", part(540, 560), part(562, 695));
    assert!((part(710, 900) + 10.0).abs() < 0.2);
}

/// Reordered and repeated packets change nothing.
#[test]
fn order_does_not_matter() {
    let mut ds0 = Ds0::new(Settings::default());
    ds0.open(Time::ZERO, 0, &media(Mode::RecvOnly, 0), 1);
    let packet = |n: u32| {
        let head = rtp::Packet { marker: false, payload_type: 0, sequence: n as u16, timestamp: n * 160, ssrc: 1, payload: &[] };
        [&head.header()[..], &[n as u8; 160]].concat()
    };
    let mut heard = Vec::new();
    for n in (0..100).step_by(2) {
        for arrival in [n + 1, n, n, n + 1] {
            ds0.packet(Time::from_millis(u64::from(n) * 20), 0, remote(0), Kind::Rtp, &packet(arrival));
        }
        let mut octets = [0xff; 320];
        ds0.exchange(Time::from_millis(u64::from(n) * 20), &mut octets, &mut |_, _, _, _| {});
        heard.extend(octets);
    }
    let counted = ds0.counted().played;
    assert_eq!((counted.duplicate, counted.concealed, counted.slips), (100, 0, 0), "{counted:?}");
    assert_eq!(ds0.report(0).packets_lost, 0);
    let start = heard.iter().position(|&octet| octet == 1).unwrap();
    assert!(heard[start..].chunks_exact(160).enumerate().all(|(n, chunk)| chunk.iter().all(|&octet| octet == n as u8 + 1)));
}

/// Against a far end whose clock is off, one side being faster and one slower than the other: slips are as many as the clocks call for,
/// and the delay stays where it was. 20 minutes at 300 ppm are what two hours at 50 ppm are, in a sixth of the time.
#[test]
fn clocks_that_differ_cost_slips_and_nothing_else() {
    let (ppm, minutes) = (300, 20);
    let mut world = World::new(21, Network::default(), [Settings::default(); 2], [media(Mode::SendRecv, 0); 2], ppm);
    world.step(5);
    world.sides.iter_mut().for_each(|side| side.keep = false);
    for side in 0..2 {
        // Two seconds of tone, one of silence.
        let mut source = sine(Law::Mu, 400.0, -10.0);
        let tone: Vec<u8> = (0..16_000).map(&mut source).chain([0xff; 8_000]).collect();
        world.feed(side, move |n| tone[(n % 24_000) as usize]);
    }
    world.run(minutes * 60_000);
    for side in &world.sides {
        let counted = side.ds0.counted().played;
        // 300 ppm of 20 minutes are 2,880 octets.
        assert!((2_880 / 80..=2_880 / 8).contains(&counted.slips), "{counted:?}");
        assert_eq!((counted.concealed, counted.late, counted.restarts), (0, 0, 0), "{counted:?}");
        let report = side.ds0.report(0);
        assert!(report.packets_lost == 0 && report.packets_received > 59_900, "{report:?}");
        assert_eq!(report.playout(), [0, 0, counted.slips as u32], "what an operator is shown");
    }
}

/// The same with a tone that never pauses: slips must be made where they are heard least.
#[test]
fn slips_without_silence() {
    for ppm in [200, -200] {
        let mut world = World::new(22, Network::default(), [Settings::default(); 2], [media(Mode::SendRecv, 0); 2], ppm);
        world.feed(0, tone(Law::Mu));
        world.run(180_000);
        let counted = world.sides[1].ds0.counted().played;
        assert!((4..=40).contains(&counted.slips) && counted.concealed == 0, "{ppm} ppm: {counted:?}");
        let bad = distortion(&world.sides[1].heard[8_000..], 1004.0).into_iter().filter(|&db| db > -12.0).count();
        assert_eq!(bad, 0, "{ppm} ppm");
    }
}

/// G-CRX-07: before the remote description recvonly lets media through, inactive does not; then only the described address may send, but for
/// symmetric RTP.
#[test]
fn only_the_far_end_is_heard() {
    let hears = |settings: Settings, media: &Media, sources: &[u32]| {
        let mut ds0 = Ds0::new(settings);
        ds0.open(Time::ZERO, 0, media, 1);
        for (n, &source) in sources.iter().enumerate() {
            let head =
                rtp::Packet { marker: false, payload_type: 0, sequence: n as u16, timestamp: n as u32 * 160, ssrc: source, payload: &[] };
            ds0.packet(Time::ZERO, 0, remote(source), Kind::Rtp, &[&head.header()[..], &[0x20; 160]].concat());
        }
        (ds0.report(0).packets_received, ds0.counted().strangers)
    };
    let undescribed = |mode| Media { remote: None, ..media(mode, 0) };
    let plain = Settings::default();
    assert_eq!(hears(plain, &undescribed(Mode::RecvOnly), &[3, 3, 4]), (2, 1));
    assert_eq!(hears(plain, &undescribed(Mode::Inactive), &[3, 3, 4]).0, 0);
    assert_eq!(hears(plain, &media(Mode::SendRecv, 0), &[0, 1, 0]), (2, 1));
    assert_eq!(hears(Settings { symmetric: true, ..plain }, &media(Mode::SendRecv, 0), &[5, 5, 0]), (2, 1));
    assert_eq!(hears(plain, &media(Mode::SendOnly, 0), &[0]).0, 0, "G-STA-03");
}

/// O18: as long as no far end is described nothing leaves, neither voice nor reports nor a goodbye, in no mode and whoever sends.
#[test]
fn nothing_leaves_before_the_far_end_is_described() {
    for (symmetric, mode) in [false, true].into_iter().flat_map(|symmetric| Mode::ALL.map(|mode| (symmetric, mode))) {
        let mut ds0 = Ds0::new(Settings { symmetric, ..Settings::default() });
        ds0.open(Time::ZERO, 0, &Media { remote: None, ..media(mode, 0) }, 1);
        let mut out = |_: u32, to: SocketAddr, kind: Kind, _: &[u8]| panic!("{kind:?} to {to} in {mode:?}");
        for step in 0..1_000u32 {
            let now = Time::from_millis(u64::from(step) * 20);
            let head = rtp::Packet { marker: false, payload_type: 0, sequence: step as u16, timestamp: step * 160, ssrc: 3, payload: &[] };
            ds0.packet(now, 0, remote(3), Kind::Rtp, &[&head.header()[..], &[0x20; 160]].concat());
            ds0.exchange(now, &mut [0x42; 160], &mut out);
        }
        let report = ds0.close(Time::from_millis(20_000), 0, &mut out);
        assert_eq!((report.packets_sent, report.octets_sent), (0, 0), "{mode:?}");
        assert_eq!(report.packets_received > 0, mode.receives(), "{mode:?}");
    }
}

/// A trunk packet that is lost at the start of a call is silence, not the voice of the call before: whether the channel was idle between them,
/// carried data, or one call followed the other at once.
#[test]
fn a_gap_at_the_start_of_a_call_does_not_play_the_call_before() {
    let idle = Law::Mu.idle();
    for between in ["a span", "data", "nothing"] {
        let mut ds0 = Ds0::new(Settings::default());
        let mut voice = tone(Law::Mu);
        let span = |ds0: &mut Ds0, octets: &mut [u8], filler| {
            ds0.mend(octets, filler);
            octets.to_vec()
        };
        assert!(ds0.open(Time::ZERO, 0, &media(Mode::SendRecv, 0), 1));
        let mut said: Vec<u8> = (0..800).map(&mut voice).collect();
        span(&mut ds0, &mut said, false);
        let gap = span(&mut ds0, &mut [idle; 40], true);
        assert!(level(Law::Mu, &gap) > -15.0, "inside the call the voice goes on");
        if between == "data" {
            let payloads = Payloads { sent: Some((Coding::Clear, 103)), ..MU };
            ds0.modify(Time::ZERO, 0, &Media { payloads, ..media(Mode::SendRecv, 0) });
            span(&mut ds0, &mut [0x55; 40], false);
            ds0.modify(Time::ZERO, 0, &media(Mode::SendRecv, 0));
        } else {
            ds0.close(Time::ZERO, 0, &mut |_, _, _, _| {});
            if between == "a span" {
                span(&mut ds0, &mut [idle; 40], false);
            }
            assert!(ds0.open(Time::ZERO, 1, &media(Mode::SendRecv, 0), 2));
        }
        let gap = span(&mut ds0, &mut [idle; 40], true);
        assert!(gap.iter().all(|octet| *octet == idle), "{between}: {gap:?}");
    }
}

/// Events of far ends, as somebody who waits for them is told.
fn told(ds0: &mut Ds0, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
    std::iter::from_fn(|| ds0.poll()).filter(|event| wanted(event)).collect()
}

/// Packets of these types and lengths arrive, one behind the other.
fn arrive(ds0: &mut Ds0, packets: &[(u8, usize)]) {
    for (place, &(payload_type, octets)) in packets.iter().enumerate() {
        let (sequence, timestamp) = (place as u16, place as u32 * 160);
        let packet = rtp::Packet { marker: false, payload_type, sequence, timestamp, ssrc: 1, payload: &[] };
        let octets = [&packet.header()[..], &vec![0xff; octets]].concat();
        ds0.packet(Time::from_millis(place as u64 * 20), 0, remote(0), Kind::Rtp, &octets);
    }
}

/// R.11, R.12: another payload type and another packet length are told of once, to who waits for them, the first ones not at all.
#[test]
fn what_a_far_end_changes_is_told() {
    for sounds in [Sounds::FAR_CODEC, Sounds::FAR_PERIOD, Sounds::NONE] {
        let mut ds0 = Ds0::new(Settings::default());
        ds0.open(Time::ZERO, 0, &media(Mode::SendRecv, 0), 1);
        ds0.watch(Wanted { others: sounds, ..Wanted::default() });
        arrive(&mut ds0, &[(0, 160), (0, 160), (8, 160), (8, 160), (8, 80), (0, 80), (77, 80)]);
        let seen = told(&mut ds0, |event| !matches!(event, Event::MediaArrived { .. }));
        let connection = 0;
        let expected = match sounds {
            Sounds::FAR_CODEC => vec![Event::Codec { connection, payload_type: 8 }, Event::Codec { connection, payload_type: 0 }],
            Sounds::FAR_PERIOD => vec![Event::Period { connection, ms: 10 }],
            _ => vec![],
        };
        assert_eq!(seen, expected);
    }
}

/// R.08: more loss than was asked for is told of once, for each time it is asked for; less is not, nor are packets out of order.
#[test]
fn loss_above_what_is_asked_for_is_told_once() {
    for (loss, limit, expected) in [(10_000, 100, true), (10_000, 5_000, false), (0, 1, false)] {
        let network = Network { loss_per_million: loss, jitter_ms: 30 };
        let mut world = World::new(11, network, [Settings::default(); 2], [media(Mode::SendRecv, 0); 2], 0);
        world.run(1_000);
        for _ in 0..2 {
            world.sides[1].ds0.measure(Time(world.now), 0, Measure::Loss(limit));
            world.run(20_000);
            let seen = told(&mut world.sides[1].ds0, |event| matches!(event, Event::Lossy { .. }));
            assert_eq!(seen, vec![Event::Lossy { connection: 0, limit }; usize::from(expected)], "{loss} {limit}");
        }
    }
}

/// R.04: a buffer that grows because packets come late, and shrinks when they do not any more, is told of with its depth.
#[test]
fn a_buffer_that_is_resized_is_told() {
    let mut world =
        World::new(5, Network { loss_per_million: 0, jitter_ms: 60 }, [Settings::default(); 2], [media(Mode::SendRecv, 0); 2], 0);
    world.sides[1].ds0.watch(Wanted { others: Sounds::FAR_BUFFER, ..Wanted::default() });
    world.run(10_000);
    let depths = |world: &mut World| -> Vec<u16> {
        let buffers = told(&mut world.sides[1].ds0, |event| matches!(event, Event::Buffer { .. }));
        buffers.into_iter().map(|event| if let Event::Buffer { ms, .. } = event { ms } else { 0 }).collect()
    };
    let grown = depths(&mut world);
    assert!(!grown.is_empty() && grown.iter().all(|ms| (1..=200).contains(ms)), "{grown:?}");
    world.network = Network::default();
    world.run(60_000);
    let shrunk = depths(&mut world);
    assert!(!shrunk.is_empty() && shrunk.last() < grown.last(), "{grown:?} {shrunk:?}");
    world.run(60_000);
    assert!(depths(&mut world).is_empty(), "a steady network");
}

/// R.09: poor quality is told of when it begins, and again only after it was better.
#[test]
fn a_far_end_that_is_heard_badly_is_an_alert() {
    let good = Network::default();
    for (bad, quality) in [
        (Network { loss_per_million: 100_000, jitter_ms: 0 }, Quality { delay_ms: 0, jitter_ms: 0, ..Quality::default() }),
        (Network { loss_per_million: 0, jitter_ms: 80 }, Quality { loss_per_mille: 0, delay_ms: 0, jitter_ms: 15 }),
    ] {
        let settings = Settings { quality, ..Settings::default() };
        let mut world = World::new(3, good, [settings; 2], [media(Mode::SendRecv, 0); 2], 0);
        world.sides[1].ds0.watch(Wanted { others: Sounds::FAR_QUALITY, ..Wanted::default() });
        for (network, expected) in [(good, 0), (bad, 1), (bad, 0), (good, 0), (bad, 1)] {
            world.network = network;
            world.run(20_000);
            let alerts = told(&mut world.sides[1].ds0, |event| matches!(event, Event::Poor { .. })).len();
            assert_eq!(alerts, expected, "{quality:?}");
        }
    }
}
