//! Connections whose packets are protected (SRTP).

use super::world::{Network, World, tone};
use super::*;
use crate::proto::base::srtp::{Crypto, LIFETIME, MasterKey, MediaKeys, Suite};

fn crypto(suite: Suite, octet: u8) -> Crypto {
    Crypto { tag: 1, suite, key: MasterKey::new([octet; MasterKey::OCTETS]), lifetime: LIFETIME }
}

fn keys(suite: Suite, local: u8, remote: u8) -> MediaKeys {
    MediaKeys { local: Some(crypto(suite, local)), remote: Some(crypto(suite, remote)) }
}

/// Two DS0s with a protected connection between them.
fn protected(suite: Suite, network: Network) -> World {
    let mut world = World::new(5, network, [Settings::default(); 2], [media(Mode::SendRecv, 0); 2], 0);
    world.sides[0].ds0.protect(0, &keys(suite, 1, 2));
    world.sides[1].ds0.protect(0, &keys(suite, 2, 1));
    world
}

/// The payloads of what a side sent, without tags.
fn payloads(world: &World, side: usize, tag: usize) -> Vec<u8> {
    let packets = world.sides[side].sent.iter().filter(|(kind, _)| *kind == Kind::Rtp);
    packets.flat_map(|(_, packet)| packet[rtp::HEADER..packet.len() - tag].to_vec()).collect()
}

/// The tone arrives as it was said, with its reports, through loss and disorder; on the way it is noise.
#[test]
fn a_tone_passes_and_is_noise_on_the_way() {
    for suite in Suite::ALL {
        for (network, least) in [(Network::default(), 490), (Network { loss_per_million: 10_000, jitter_ms: 20 }, 470)] {
            let mut world = protected(suite, network);
            world.feed(0, tone(Law::Mu));
            world.run(10_000);
            let heard = &world.sides[1].heard;
            let loud = level(Law::Mu, &heard[40_000..]);
            assert!((loud + 10.0).abs() < 0.5, "{suite:?} {loud}");
            let report = world.sides[1].ds0.report(0);
            assert!(report.packets_received >= least && (report.replayed, report.unauthentic) == (0, 0), "{suite:?} {report:?}");
            assert!(report.latency_ms > 0 || network.jitter_ms == 0, "reports arrive: {report:?}");
            // Of noise no octet comes much more often than others: 80,000 of them are some 310 each.
            let mut counts = [0u32; 256];
            payloads(&world, 0, suite.tag_octets()).iter().for_each(|octet| counts[usize::from(*octet)] += 1);
            assert!(counts.iter().all(|count| (200..450).contains(count)), "{suite:?} {counts:?}");
        }
    }
}

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// A protected DS0, and datagrams of its far end: the far end's packets of so many ms.
fn far_end(ms: u64) -> (Ds0, Vec<Vec<u8>>) {
    let mut world = protected(Suite::Tag80, Network { loss_per_million: 1_000_000, jitter_ms: 0 });
    world.feed(1, tone(Law::Mu));
    world.run(ms);
    let packets = world.sides[1].sent.drain(..).filter(|(kind, _)| *kind == Kind::Rtp).map(|(_, packet)| packet).collect();
    let [near, _] = world.sides;
    (near.ds0, packets)
}

/// Replays, what was changed, and what is not protected are dropped and counted, and nobody hears them; neither do they count as packets.
#[test]
fn what_is_not_the_far_ends_is_dropped_and_counted() {
    let (mut ds0, packets) = far_end(200);
    assert!(packets.len() >= 8);
    for (place, packet) in packets.iter().enumerate() {
        ds0.packet(at(1_000 + place as u64), 0, remote(0), Kind::Rtp, packet);
        ds0.packet(at(1_000 + place as u64), 0, remote(0), Kind::Rtp, packet);
    }
    let mut bad = packets[3].clone();
    bad[3] ^= 0x40;
    ds0.packet(at(1_100), 0, remote(0), Kind::Rtp, &bad);
    let plain = rtp::Packet { marker: false, payload_type: 0, sequence: 900, timestamp: 5, ssrc: 3, payload: &[] }.header();
    ds0.packet(at(1_100), 0, remote(0), Kind::Rtp, &[&plain[..], &[0x20; 160]].concat());
    ds0.packet(at(1_100), 0, remote(0), Kind::Rtcp, &[0x80, 201, 0, 1, 0, 0, 0, 7]);
    let report = ds0.report(0);
    let count = packets.len() as u32;
    assert_eq!((report.packets_received, report.replayed, report.unauthentic), (count, count, 3));
    assert_eq!((report.octets_received, report.packets_lost), (count * 160, 0));
}

/// A far end may send before its answer is here: what cannot be read yet is dropped, and is nobody's attack.
#[test]
fn what_comes_before_the_key_is_no_attack() {
    let (_, packets) = far_end(200);
    let mut ds0 = Ds0::new(Settings::default());
    ds0.open(Time::ZERO, 0, &Media { remote: None, ..media(Mode::RecvOnly, 0) }, 1);
    ds0.protect(0, &MediaKeys { remote: None, ..keys(Suite::Tag80, 1, 2) });
    ds0.packet(at(1), 0, remote(0), Kind::Rtp, &packets[0]);
    ds0.modify(at(2), 0, &media(Mode::SendRecv, 0));
    ds0.protect(0, &keys(Suite::Tag80, 1, 2));
    ds0.packet(at(3), 0, remote(0), Kind::Rtp, &packets[1]);
    let report = ds0.report(0);
    assert_eq!((report.packets_received, report.replayed, report.unauthentic, ds0.counted().unknown), (1, 0, 0, 1));
}

/// Behind address translation the first one who has the key is the far end, not the first one who sends.
#[test]
fn with_symmetric_rtp_only_the_far_end_is_followed() {
    let (_, packets) = far_end(200);
    let mut ds0 = Ds0::new(Settings { symmetric: true, ..Settings::default() });
    ds0.open(Time::ZERO, 0, &media(Mode::SendRecv, 0), 1);
    ds0.protect(0, &keys(Suite::Tag80, 1, 2));
    let plain = rtp::Packet { marker: false, payload_type: 0, sequence: 1, timestamp: 5, ssrc: 3, payload: &[] }.header();
    ds0.packet(at(1), 0, remote(8), Kind::Rtp, &[&plain[..], &[0x20; 160]].concat());
    ds0.packet(at(2), 0, remote(5), Kind::Rtp, &packets[0]);
    ds0.packet(at(3), 0, remote(6), Kind::Rtp, &packets[1]);
    let mut to = None;
    ds0.exchange(at(10), &mut [0x42; 320], &mut |_, address, _, _| to = Some(address));
    assert_eq!((to, ds0.report(0).packets_received, ds0.counted().strangers), (Some(remote(5)), 1, 1));
}

/// Who is somewhere else now need not know how far the packets have come: a new source begins, under the same key.
#[test]
fn after_a_change_of_address_another_source_sends() {
    let mut ds0 = Ds0::new(Settings::default());
    ds0.open(Time::ZERO, 0, &media(Mode::SendRecv, 0), 1);
    let plays = |ds0: &mut Ds0| {
        let mut sources = Vec::new();
        ds0.exchange(at(10), &mut [0x42; 320], &mut |_, _, kind, packet| {
            if kind == Kind::Rtp {
                sources.push((packet[8..12].to_vec(), packet.len()));
            }
        });
        sources.dedup();
        assert_eq!(sources.len(), 1);
        sources.remove(0)
    };
    let plain = plays(&mut ds0);
    ds0.modify(at(20), 0, &Media { remote: Some(remote(4)), ..media(Mode::SendRecv, 0) });
    assert_eq!(plays(&mut ds0), plain, "without protection it stays");
    ds0.protect(0, &keys(Suite::Tag80, 1, 2));
    let first = plays(&mut ds0);
    assert!(first.0 != plain.0 && first.1 == plain.1 + 10, "another key, another source");
    ds0.modify(at(20), 0, &Media { remote: Some(remote(5)), ..media(Mode::SendRecv, 0) });
    ds0.protect(0, &keys(Suite::Tag80, 1, 3));
    let moved = plays(&mut ds0);
    assert_ne!(moved.0, first.0);
    ds0.protect(0, &keys(Suite::Tag80, 1, 4));
    assert_eq!(plays(&mut ds0), moved, "the far end's key is no reason");
    // Protection ends with the keys, and with the connection.
    ds0.protect(0, &MediaKeys::default());
    assert_eq!(plays(&mut ds0).1, plain.1);
    ds0.protect(0, &keys(Suite::Tag80, 1, 3));
    ds0.close(at(30), 0, &mut |_, _, _, _| {});
    ds0.open(at(40), 1, &media(Mode::SendRecv, 0), 9);
    assert_eq!(plays(&mut ds0).1, plain.1);
}

/// Digits as telephone events are protected like voice, and are notified at the other end.
#[test]
fn telephone_events_pass() {
    let payloads = Payloads { events_sent: Some(101), events_received: Some(101), events: TelephoneEvents::Keys, ..MU };
    let media = Media { payloads, ..media(Mode::SendRecv, 0) };
    let mut world = World::new(5, Network::default(), [Settings::default(); 2], [media; 2], 0);
    world.sides[0].ds0.protect(0, &keys(Suite::Tag32, 1, 2));
    world.sides[1].ds0.protect(0, &keys(Suite::Tag32, 2, 1));
    let (low, high) = (super::world::sine(Law::Mu, 770.0, -8.0), super::world::sine(Law::Mu, 1336.0, -8.0));
    let (mut low, mut high) = (low, high);
    world.feed(0, move |n| {
        let sum = i32::from(Law::Mu.decode(low(n))) + i32::from(Law::Mu.decode(high(n)));
        if (800..1_800).contains(&n) { Law::Mu.encode(sum) } else { Law::Mu.idle() }
    });
    world.run(600);
    let events: Vec<Event> = std::iter::from_fn(|| world.sides[1].ds0.poll()).collect();
    assert!(events.iter().any(|event| matches!(event, Event::Key { key, .. } if *key == b'5')), "{events:?}");
}
