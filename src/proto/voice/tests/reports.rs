//! RTCP, and what a connection counts.

use super::world::{Network, World, tone};
use super::*;

fn reports(world: &World, side: usize) -> Vec<&[u8]> {
    world.sides[side].sent.iter().filter(|(kind, _)| *kind == Kind::Rtcp).map(|(_, octets)| &octets[..]).collect()
}

/// RFC 3550 6.2: every 5 s on average, never less than 2.5 s apart; sender reports, because it sends.
#[test]
fn reports_go_out_every_five_seconds() {
    let mut world =
        World::new(31, Network { jitter_ms: 10, ..Network::default() }, [Settings::default(); 2], [media(Mode::SendRecv, 0); 2], 0);
    world.feed(0, tone(Law::Mu));
    world.run(120_000);
    for side in 0..2 {
        let sent = reports(&world, side);
        assert!((18..34).contains(&sent.len()), "{}", sent.len());
        assert!(sent.iter().all(|packet| packet[1] == 200 && packet.len() % 4 == 0));
    }
    let report = world.sides[0].ds0.report(0);
    // Half of 10 ms there and back, and 5 ms of the jitter in each of them.
    assert!((5..=15).contains(&report.latency_ms), "{report:?}");
    assert!((1..=8).contains(&report.jitter_ms), "{report:?}");
    assert_eq!((report.packets_lost, report.packets_sent, report.octets_sent), (0, 6_000, 960_000));
}

/// Who only receives sends receiver reports; who is deleted says goodbye, and that ends nothing else.
#[test]
fn receivers_report_and_all_say_goodbye() {
    let modes = [media(Mode::SendOnly, 0), media(Mode::RecvOnly, 0)];
    let mut world = World::new(32, Network { loss_per_million: 100_000, ..Network::default() }, [Settings::default(); 2], modes, 0);
    world.run(60_000);
    assert!(reports(&world, 0).iter().all(|packet| packet[1] == 200));
    assert!(reports(&world, 1).iter().all(|packet| packet[1] == 201));
    // Loss of about a tenth is reported.
    let lost = reports(&world, 1).iter().skip(2).map(|packet| u32::from(packet[12])).collect::<Vec<_>>();
    assert!(lost.iter().sum::<u32>() / lost.len() as u32 > 15, "{lost:?}");
    let mut goodbye = Vec::new();
    let report = world.sides[1].ds0.close(Time(world.now), 0, &mut |connection, to, kind, packet| {
        assert_eq!((connection, to, kind), (0, remote(0), Kind::Rtcp));
        goodbye = packet.to_vec();
    });
    assert_eq!(&goodbye[goodbye.len() - 8..goodbye.len() - 4], [0x81, 203, 0, 1]);
    assert!(report.packets_sent == 0 && report.octets_sent == 0, "G-STA-03");
    assert!(report.packets_lost > 200 && report.packets_received + report.packets_lost >= 2_998, "{report:?}");
    assert!(world.sides[1].ds0.is_idle());
    assert_eq!(world.sides[1].ds0.report(0), Default::default());
}

/// G-STA-02: counts go on over a change of codec; G-LCO-17: no other type is sent, and none that was not agreed is taken.
#[test]
fn counts_survive_a_change_of_codec() {
    let mut world = World::new(33, Network::default(), [Settings::default(); 2], [media(Mode::SendRecv, 0); 2], 0);
    world.run(1_000);
    let to_a = Media { payloads: Payloads { sent: Some((Coding::A, 8)), events: TelephoneEvents::Keys, ..MU }, ..media(Mode::SendRecv, 0) };
    let now = Time(world.now);
    world.sides[0].ds0.modify(now, 0, &to_a);
    world.run(1_000);
    let report = world.sides[0].ds0.report(0);
    assert!((98..=100).contains(&report.packets_sent), "{report:?}");
    let types: Vec<u8> = world.sides[0].sent.iter().filter(|(kind, _)| *kind == Kind::Rtp).map(|(_, packet)| packet[1] & 0x7f).collect();
    assert_eq!((types.iter().filter(|&&t| t == 0).count(), types.iter().filter(|&&t| t == 8).count()), (50, types.len() - 50));
    assert_eq!(world.sides[1].ds0.report(0).packets_lost, 0);
    let only_mu = Media { payloads: Payloads { received: [Some(0), None, None], ..MU }, ..media(Mode::SendRecv, 0) };
    let now = Time(world.now);
    world.sides[1].ds0.modify(now, 0, &only_mu);
    let before = world.sides[1].ds0.report(0).packets_received;
    world.run(1_000);
    assert!(world.sides[1].ds0.report(0).packets_received <= before + 1 && world.sides[1].ds0.counted().unknown >= 49);
}

/// Whatever arrives: an answer or a count, never a panic, and memory as before.
#[test]
fn garbage_is_counted() {
    let mut rng = crate::proto::base::Rng::new(1);
    let mut ds0 = Ds0::new(Settings::default());
    let payloads = Payloads { events_received: Some(101), events_sent: Some(101), ..MU };
    ds0.open(Time::ZERO, 0, &Media { payloads, ..media(Mode::SendRecv, 0) }, 1);
    for step in 0..20_000u64 {
        let mut octets: Vec<u8> = (0..rng.below(400)).map(|_| rng.next() as u8).collect();
        if let Some(first) = octets.first_mut() {
            *first = *first & 0x3f | 0x80;
        }
        if let Some(second) = octets.get_mut(1) {
            *second = [0, 8, 103, 101, 200, 201][rng.below(6) as usize];
        }
        let kind = if rng.chance(200_000) { Kind::Rtcp } else { Kind::Rtp };
        ds0.packet(Time::from_millis(step), 0, remote(0), kind, &octets);
        ds0.exchange(Time::from_millis(step), &mut [step as u8; 8], &mut |_, _, _, _| {});
    }
    assert!(ds0.counted().unknown > 0);
}

/// Packets of RTCP that a far end may send, one datagram each; `us` is our source. The first one is an answer to a report of ours of NTP time
/// `last`, in 1/65536 s.
fn control_packets(us: u32, last: u32) -> Vec<Vec<u8>> {
    let packet = |count: u8, kind: u8, words: &[u32]| {
        let head = [0x80 | count, kind, 0, words.len() as u8];
        head.into_iter().chain(words.iter().flat_map(|word| word.to_be_bytes())).collect::<Vec<u8>>()
    };
    // Source, lost, highest, jitter, last report, delay since then.
    let block = |source: u32| [source, 0x40_00_00_09, 99, 4_000, last, 0];
    let receiver = packet(1, 201, &[&[7][..], &block(us)].concat());
    let sender = packet(1, 200, &[&[7, 0x9000_0000, 0x8000_0000, 160, 4_000, 640_000][..], &block(us ^ 1)].concat());
    let behind_a_report = |behind: Vec<u8>| [packet(0, 201, &[7]), behind].concat();
    let source = behind_a_report(packet(1, 202, &[7, 0x0102_6162, 0]));
    let application = behind_a_report(packet(0, 204, &[7, 0x4142_4344]));
    let goodbye = behind_a_report(packet(1, 203, &[7]));
    vec![receiver, sender, source, application, goodbye]
}

/// O41: whatever comes to the RTCP port, and RTCP that comes to the RTP port, is neither heard on the trunk nor counted as received or lost; latency comes of a report about
/// ours and of nothing else.
#[test]
fn o41_control_packets_are_not_handled_as_media() {
    let rtp = |n: u16, payload: &[u8]| {
        let head = rtp::Packet { marker: false, payload_type: 0, sequence: n, timestamp: u32::from(n) * 160, ssrc: 7, payload };
        [&head.header()[..], payload].concat()
    };
    let us = {
        let mut ds0 = Ds0::new(Settings::default());
        ds0.open(Time::ZERO, 0, &media(Mode::SendRecv, 0), 5);
        let mut sent = Vec::new();
        ds0.exchange(Time::ZERO, &mut [0x42; 160], &mut |_, _, _, packet| sent = packet.to_vec());
        u32::from_be_bytes(sent[8..12].try_into().unwrap())
    };
    // 1 s of voice both ways; what is on the trunk, what is sent, what is counted.
    let run = |disturb: &dyn Fn(&mut Ds0, Time)| {
        let mut ds0 = Ds0::new(Settings::default());
        ds0.open(Time::ZERO, 0, &media(Mode::SendRecv, 0), 5);
        let (mut heard, mut sent) = (Vec::new(), Vec::new());
        let mut voice = tone(Law::Mu);
        for ms in 0..1_000 {
            let now = Time::from_millis(ms);
            if ms % 20 == 0 {
                let payload: Vec<u8> = (ms * 8..ms * 8 + 160).map(&mut voice).collect();
                ds0.packet(now, 0, remote(0), Kind::Rtp, &rtp(ms as u16 / 20, &payload));
            }
            disturb(&mut ds0, now);
            let mut octets = [0x42; 8];
            ds0.exchange(now, &mut octets, &mut |_, _, kind, packet| {
                if kind == Kind::Rtp {
                    sent.extend_from_slice(packet);
                }
            });
            heard.extend(octets);
        }
        (heard, sent, ds0.report(0), ds0.counted().unknown)
    };
    let alone = run(&|_, _| {});
    assert_eq!((alone.2.packets_received, alone.2.octets_received, alone.2.latency_ms, alone.3), (50, 8_000, 0, 0));
    // Each but the first; copies that are cut, of another version, or not RTCP at all; RTP on this port.
    let disturbed = run(&|ds0, now| {
        for packet in &control_packets(us, 0)[1..] {
            ds0.packet(now, 0, remote(0), Kind::Rtcp, packet);
        }
        let about_us = &control_packets(us, 1)[0];
        let cut = &about_us[..about_us.len() - 4];
        let wrong_version = [&[0x41][..], &about_us[1..]].concat();
        let voice = rtp(now.0 as u16, &[0x10; 160]);
        for garbage in [cut, &wrong_version, &about_us[..3], &[], &voice] {
            ds0.packet(now, 0, remote(0), Kind::Rtcp, garbage);
        }
        for packet in control_packets(us, 1) {
            ds0.packet(now, 0, remote(0), Kind::Rtp, &packet);
        }
    });
    assert!(alone.0 == disturbed.0 && alone.1 == disturbed.1, "no octet is another one");
    assert_eq!((alone.2, 10_000), (disturbed.2, disturbed.3));
    // A report of ours 60 ms ago comes back at once.
    let answered = run(&|ds0, now| {
        if now == Time::from_millis(500) {
            ds0.packet(now, 0, remote(0), Kind::Rtcp, &control_packets(us, 440 * 65_536 / 1_000)[0]);
        }
    });
    assert_eq!((alone.0, alone.1), (answered.0, answered.1));
    assert_eq!((MediaReport { latency_ms: 30, ..alone.2 }, 0), (answered.2, answered.3));
}
