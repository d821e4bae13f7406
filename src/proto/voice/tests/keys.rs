//! Keys as telephone events (RFC 4733), from trunk to trunk.

use super::world::{Network, World};
use super::*;
use crate::proto::package::parameters::Digits;
use crate::proto::package::{PackageId, find_item};
use crate::proto::trunk::{DigitKind, Sounds};

fn with_events() -> Media {
    let media = media(Mode::SendRecv, 0);
    Media {
        payloads: Payloads { events_sent: Some(101), events_received: Some(101), events: TelephoneEvents::Keys, ..media.payloads },
        ..media
    }
}

/// Dials on the first trunk as a far end would; what the second one tells, and what went over the network.
fn dial(network: Network, keys: &[u8], media: Media) -> (Vec<Event>, World) {
    let mut dialler = Ds0::new(Settings::default());
    let mut digits = Digits::NONE;
    keys.iter().for_each(|&key| assert!(digits.push(key)));
    dialler.send_digits(DigitKind::Dtmf, digits);
    let mut world = World::new(9, network, [Settings::default(); 2], [media; 2], 0);
    world.sides[1].ds0.listen(Some(DigitKind::Dtmf));
    world.feed(0, move |_| {
        let mut octet = [0xff];
        dialler.exchange(Time::ZERO, &mut octet, &mut |_, _, _, _| {});
        octet[0]
    });
    world.run(300 + 140 * keys.len() as u64 + 500);
    let told = std::iter::from_fn(|| world.sides[1].ds0.poll()).collect();
    (told, world)
}

fn keys_of(told: &[Event]) -> Vec<u8> {
    told.iter().filter_map(|event| if let Event::Key { key, .. } = event { Some(*key) } else { None }).collect()
}

const ALL: &[u8] = b"0123456789*#ABCD";

#[test]
fn keys_arrive_as_digits_and_once() {
    for network in [Network::default(), Network { loss_per_million: 50_000, jitter_ms: 20 }] {
        let (told, _) = dial(network, ALL, with_events());
        assert_eq!(keys_of(&told), ALL);
    }
}

/// RFC 4733 2.5.1: marker on the first packet, duration in every one, the end three times; the tone itself is cut off.
#[test]
fn events_are_sent_as_the_rfc_says() {
    let (_, world) = dial(Network::default(), b"5", with_events());
    let packets: Vec<_> =
        world.sides[0].sent.iter().filter(|(kind, _)| *kind == Kind::Rtp).map(|(_, octets)| rtp::Packet::read(octets).unwrap()).collect();
    let events: Vec<_> = packets.iter().filter(|packet| packet.payload_type == 101).collect();
    let read: Vec<_> = events.iter().map(|packet| TelephoneEvent::read(packet.payload).unwrap()).collect();
    assert!(read.iter().all(|event| event.code == 5));
    assert_eq!(events.iter().map(|packet| packet.marker).collect::<Vec<_>>()[..2], [true, false]);
    assert!(events.iter().all(|packet| packet.timestamp == events[0].timestamp));
    let ends: Vec<_> = read.iter().filter(|event| event.end).map(|event| event.duration).collect();
    assert_eq!(ends.len(), 3);
    assert!(ends.iter().all(|&end| end == ends[0] && (400..=720).contains(&end)), "{ends:?}");
    let growing: Vec<_> = read.iter().filter(|event| !event.end).map(|event| event.duration).collect();
    assert!(growing.windows(2).all(|pair| pair[1] == pair[0] + 160) && growing.len() >= 2, "{growing:?}");
    for pair in packets.windows(2) {
        assert_eq!(pair[1].sequence, pair[0].sequence.wrapping_add(1));
    }
    let voice: u32 =
        packets.iter().filter(|packet| packet.payload_type == 0).filter(|packet| level(Law::Mu, packet.payload) > -30.0).count() as u32;
    assert!(voice <= 2, "the tone is heard for 40 ms at most before it is known: {voice} packets");
}

/// What was an event is a tone again on the other trunk, long enough for any switch; and keys not agreed on stay in the voice.
#[test]
fn the_other_trunk_gets_tones() {
    for media in [with_events(), media(Mode::SendRecv, 0)] {
        let (told, world) = dial(Network::default(), b"159#", media);
        assert_eq!(keys_of(&told).is_empty(), media.payloads.events_sent.is_none());
        let mut switch = Ds0::new(Settings::default());
        switch.listen(Some(DigitKind::Dtmf));
        let mut heard = Vec::new();
        for octets in world.sides[1].heard.chunks(8) {
            switch.exchange(Time::ZERO, &mut octets.to_vec(), &mut |_, _, _, _| {});
            heard.extend(std::iter::from_fn(|| switch.poll()));
        }
        let began = |event: &Event| if let Event::Digit { symbol, on: true, .. } = event { Some(*symbol) } else { None };
        assert_eq!(heard.iter().filter_map(began).collect::<Vec<_>>(), b"159#");
    }
}

/// `su=true` of D/DD: the keys that were asked for do not go out on connections, once they are known; others do.
#[test]
fn suppressed_keys_do_not_go_out() {
    let mut dialler = Ds0::new(Settings::default());
    let mut digits = Digits::NONE;
    b"57".iter().for_each(|&key| assert!(digits.push(key)));
    dialler.send_digits(DigitKind::Dtmf, digits);
    let mut world = World::new(9, Network::default(), [Settings::default(); 2], [media(Mode::SendRecv, 0); 2], 0);
    let others = Sounds::suppressing(|key| key == b'5');
    world.sides[0].ds0.watch(Wanted { keys: true, others, ..Wanted::default() });
    world.feed(0, move |_| {
        let mut octet = [0xff];
        dialler.exchange(Time::ZERO, &mut octet, &mut |_, _, _, _| {});
        octet[0]
    });
    world.run(600);
    let loud = world.sides[1].heard.chunks(8).filter(|octets| level(Law::Mu, octets) > -30.0).count();
    // 70 ms of the second key, and what is heard of the first one before it is known.
    assert!((95..=125).contains(&loud), "{loud} ms");
}

/// Events of a stream, each run of the same code once, and how often the end of each was said.
fn runs(sent: &[(Kind, Vec<u8>)]) -> Vec<(u8, usize)> {
    let mut runs: Vec<(u8, usize)> = Vec::new();
    let packets = sent.iter().filter(|(kind, _)| *kind == Kind::Rtp).map(|(_, octets)| rtp::Packet::read(octets).unwrap());
    for event in packets.filter(|packet| packet.payload_type == 101).map(|packet| TelephoneEvent::read(packet.payload).unwrap()) {
        match runs.last_mut().filter(|(code, _)| *code == event.code) {
            Some((_, ends)) => *ends += usize::from(event.end),
            None => runs.push((event.code, usize::from(event.end))),
        }
    }
    runs
}

/// COT-14 (RFC 3660 2.10, RFC 5244 2.5): where both ends have its event, a check tone towards a far end that loops back goes and comes back as
/// that and not as a tone; where they have not, as a tone. Who sent it hears it begin and end.
#[test]
fn a_check_tone_goes_and_comes_back_as_an_event() {
    use TelephoneEvents::{CheckTone, CheckTones, Keys, OldCheckTone};
    let answers = [(Keys, "co1", None), (CheckTone, "co1", Some(121)), (CheckTones, "co2", Some(122)), (OldCheckTone, "co1", Some(167))];
    for (events, name, code) in answers.into_iter().chain([(CheckTone, "co2", None)]) {
        for network in [Network::default(), Network { loss_per_million: 50_000, jitter_ms: 20 }] {
            let payloads = Payloads { events, ..with_events().payloads };
            let ends = [Mode::SendRecv, Mode::NetworkLoop].map(|mode| Media { payloads, ..media(mode, 0) });
            let mut world = World::new(9, network, [Settings::default(); 2], ends, 0);
            let tone = if name == "co1" { SingleTone::Co1 } else { SingleTone::Co2 };
            world.sides[0].ds0.watch(Wanted { far_tones: SingleTones::NONE.with(tone), ..Wanted::default() });
            let signal = find_item(PackageId::R, name.as_bytes()).unwrap();
            world.sides[0].ds0.start_signal(Some(0), signal, b"").unwrap();
            world.run(1_000);
            // What is done to the DS0 meanwhile does not end it.
            world.sides[0].ds0.listen(None);
            world.run(200);
            world.sides[0].ds0.stop_signal(Some(0), signal);
            world.run(1_000);
            let told: Vec<_> =
                std::iter::from_fn(|| world.sides[0].ds0.poll()).filter(|event| matches!(event, Event::Tone { .. })).collect();
            assert_eq!(told, [true, false].map(|on| Event::Tone { connection: Some(0), tone, on }), "{events:?} {name}");
            let is_voice = |side: usize| {
                let packets = world.sides[side]
                    .sent
                    .iter()
                    .filter(|(kind, _)| *kind == Kind::Rtp)
                    .map(|(_, octets)| rtp::Packet::read(octets).unwrap());
                packets.filter(|packet| packet.payload_type == 0 && level(Law::Mu, packet.payload) > -30.0).count() > 40
            };
            assert_eq!([is_voice(0), is_voice(1)], [code.is_none(); 2], "{events:?} {name}");
            let went = code.map(|code| (code, 3));
            assert_eq!(
                [runs(&world.sides[0].sent), runs(&world.sides[1].sent)],
                [Vec::from_iter(went), Vec::from_iter(went)],
                "{events:?} {name}"
            );
        }
    }
}

/// Keys that come to a connection in mode netwloop go back as they came.
#[test]
fn keys_are_looped_as_events() {
    let mut dialler = Ds0::new(Settings::default());
    let mut digits = Digits::NONE;
    b"55#".iter().for_each(|&key| assert!(digits.push(key)));
    dialler.send_digits(DigitKind::Dtmf, digits);
    let ends = [with_events(), Media { mode: Mode::NetworkLoop, ..with_events() }];
    let mut world = World::new(9, Network::default(), [Settings::default(); 2], ends, 0);
    world.feed(0, move |_| {
        let mut octet = [0xff];
        dialler.exchange(Time::ZERO, &mut octet, &mut |_, _, _, _| {});
        octet[0]
    });
    world.run(1_500);
    let told: Vec<_> = std::iter::from_fn(|| world.sides[0].ds0.poll()).collect();
    assert_eq!(keys_of(&told), b"55#");
    assert_eq!(runs(&world.sides[1].sent), [(5, 6), (11, 3)]);
}

/// A key held for 20 s is one event in segments (RFC 4733 2.5.1.3), and one key at the other end.
#[test]
fn a_long_key_is_one_key() {
    let mut world = World::new(9, Network::default(), [Settings::default(); 2], [with_events(); 2], 0);
    let (mut low, mut high) = (world::sine(Law::Mu, 697.0, -8.0), world::sine(Law::Mu, 1209.0, -8.0));
    world.feed(
        0,
        move |n| if n < 160_000 { Law::Mu.encode(i32::from(Law::Mu.decode(low(n))) + i32::from(Law::Mu.decode(high(n)))) } else { 0xff },
    );
    world.run(21_000);
    let told: Vec<_> = std::iter::from_fn(|| world.sides[1].ds0.poll()).collect();
    assert_eq!(keys_of(&told), b"1");
    let heard = &world.sides[1].heard;
    assert!(level(Law::Mu, &heard[80_000..150_000]) > -7.0 && level(Law::Mu, &heard[164_000..]) < -60.0);
}
