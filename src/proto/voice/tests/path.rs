//! What one trunk puts in comes out of the other.

use super::world::{Network, World, tone};
use super::*;

fn clean() -> Network {
    Network::default()
}

fn laws(a: Law, b: Law) -> [Settings; 2] {
    [Settings { law: a, ..Settings::default() }, Settings { law: b, ..Settings::default() }]
}

fn sent_as(coding: Coding, payload_type: u8) -> Media {
    let payloads = Payloads { sent: Some((coding, payload_type)), ..MU };
    Media { payloads, ..media(Mode::SendRecv, 0) }
}

/// G-EPC-01, for every pair of laws of two trunks and either law between them.
#[test]
fn a_tone_arrives_at_its_level() {
    for (a, b) in [(Law::Mu, Law::Mu), (Law::Mu, Law::A), (Law::A, Law::Mu), (Law::A, Law::A)] {
        for media in [sent_as(Coding::Mu, 0), sent_as(Coding::A, 8)] {
            let mut world = World::new(1, clean(), laws(a, b), [media; 2], 0);
            world.feed(0, tone(a));
            world.feed(1, tone(b));
            world.run(1_000);
            for (side, law) in [(0, a), (1, b)] {
                let heard = level(law, &world.sides[side].heard[4_000..]);
                assert!((heard + 10.0).abs() < 0.2, "{a:?} {b:?} {:?}: {heard} dBm0", media.payloads.sent);
            }
        }
    }
}

/// G-LCO-08: -3 dB towards the line, +3 dB from it.
#[test]
fn gain_is_added_towards_the_line_and_subtracted_from_it() {
    let gained = Media { gain_db: -3, ..media(Mode::SendRecv, 0) };
    let mut world = World::new(1, clean(), laws(Law::Mu, Law::Mu), [gained, media(Mode::SendRecv, 0)], 0);
    world.feed(0, tone(Law::Mu));
    world.feed(1, tone(Law::Mu));
    world.run(1_000);
    let heard = [0, 1].map(|side| level(Law::Mu, &world.sides[side].heard[4_000..]));
    assert!((heard[0] + 13.0).abs() < 0.2 && (heard[1] + 7.0).abs() < 0.2, "{heard:?}");
}

/// RFC 4040: every octet as it was, at every packet time.
#[test]
fn clearmode_is_bit_exact() {
    for period_ms in [10, 20, 30, 40, 60] {
        let media = Media { period_ms, packet_bytes: period_ms * 8, ..sent_as(Coding::Clear, 103) };
        let mut world = World::new(3, Network { jitter_ms: 15, ..clean() }, laws(Law::A, Law::Mu), [media; 2], 0);
        let octet = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        world.feed(0, octet);
        world.run(2_000);
        let heard = &world.sides[1].heard;
        let sent: Vec<u8> = (0..16_000).map(octet).collect();
        let start = (0..heard.len()).find(|&at| heard[at..].starts_with(&sent[..64])).expect("it arrives");
        let length = heard.len() - start;
        assert!(length > 12_000 && heard[start..] == sent[..length], "{period_ms} ms");
    }
}

/// H.248 moves media from one channel to another: same source, same sequence, and the voice of the other channel from then on.
#[test]
fn a_connection_that_goes_to_another_channel_carries_the_voice_of_that_one() {
    let mut world = World::new(1, clean(), laws(Law::Mu, Law::Mu), [media(Mode::SendRecv, 0); 2], 0);
    world.run(500);
    let mut other = Ds0::new(Settings::default());
    assert!(!world.sides[0].ds0.hand_over(7, &mut other), "there is none");
    assert!(!world.sides[0].ds0.hand_over(0, &mut Ds0::new(Settings { law: Law::A, ..Settings::default() })), "of another law");
    let before = world.sides[0].ds0.report(0).packets_sent;
    assert!(before > 0 && world.sides[0].ds0.hand_over(0, &mut other));
    assert!(world.sides[0].ds0.is_idle() && world.sides[0].ds0.report(0) == MediaReport::default());
    assert_eq!(other.report(0).packets_sent, before, "with what it counted");
    // The channel it left hears nothing of it, and it nothing of that channel.
    let mut left = std::mem::replace(&mut world.sides[0].ds0, other);
    let mut octets = [tone(Law::Mu)(3); 80];
    left.exchange(Time(world.now), &mut octets, &mut |_, _, _, _| panic!("nobody is there"));
    world.feed(0, tone(Law::Mu));
    world.run(1_000);
    assert!((level(Law::Mu, &world.sides[1].heard[8_000..]) + 10.0).abs() < 0.2);
    assert_eq!(world.sides[1].ds0.report(0).packets_lost, 0, "one stream");
    // As many as there may be.
    let mut full = Ds0::new(Settings { connections: 1, ..Settings::default() });
    assert!(full.open(Time::ZERO, 5, &media(Mode::SendRecv, 1), 1) && !world.sides[0].ds0.hand_over(0, &mut full));
}
