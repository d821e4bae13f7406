//! The card with a driver in memory: what calls, lines and operators see of it.

use super::fake::{Did, Fake};
use super::{Device, LineSettings, Wanted};
use crate::host::card::ports::Ports;
use crate::host::card::trunks::{Driven, SLICE, Trunks};
use crate::host::clock::Clock;
use crate::proto::base::{EndpointIndex, EndpointRange, Mode, Time};
use crate::proto::circuit::Coding;
use crate::proto::dahdi::SpanSettings;
use crate::proto::dahdi::abi::{self, alarm};
use crate::proto::package::{PackageId, find_item};
use crate::proto::trunk::simulated::PortPool;
use crate::proto::trunk::{
    self, Answer, Card, CardFault, CardOrder, CarrierView, Defect, DriverView, Facility, FacilityKind, Hook, Indication, LineInput,
    LineOrder, LineState, Media, Payloads, Sounds, SpanIndex,
};
use crate::proto::voice;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const CLEARMODE: u8 = 103;

/// A card, its driver, and a clock that is turned by hand.
struct Bench {
    fake: Fake,
    trunks: Trunks,
    now: Time,
}

/// Octets of a block.
const BLOCK: usize = 80;

/// A card of T1s that are all there is of a driver.
fn card(fake: &Fake, spans: u32, coding: Option<Coding>, superframe: bool, block: usize, port: u16) -> anyhow::Result<(Trunks, Time)> {
    let clock = Clock::new();
    let driven = (0..spans).map(|span| {
        let (facility, number, first) = (Facility::Span(SpanIndex(span as u16)), span as u16 + 1, span * 24);
        let endpoints = (first..first + 24).map(|n| Some(EndpointIndex(n))).collect();
        let voice = voice::Settings { grain: block, connections: 1, ..voice::Settings::default() };
        let wanted = Wanted { name: format!("ds/ds1-{number}"), number, kind: FacilityKind::T1, superframe, used: vec![true; 24], coding };
        let settings = LineSettings { span: SpanSettings { facility, number, endpoints, coding, voice }, wanted, block };
        Driven { settings, range: EndpointRange { first, count: 24 } }
    });
    let ports = Ports::new(HERE, PortPool::new(port..=port + 7, 0, 1), 8, 46)?;
    let device: Box<dyn Device> = Box::new(fake.device());
    let now = clock.now();
    Ok((Trunks::new(Vec::new(), driven.collect(), Some(device), ports, 8, 46, &clock)?, now))
}

impl Bench {
    fn new(fake: Fake, spans: u32, coding: Option<Coding>, port: u16) -> Bench {
        let (trunks, now) = card(&fake, spans, coding, false, BLOCK, port).unwrap();
        fake.world().log.clear();
        Bench { fake, trunks, now }
    }

    /// So many ms later: what the card says.
    fn later(&mut self, ms: u64) -> Vec<Indication> {
        self.now += Duration::from_millis(ms);
        let (trunks, now) = (&mut self.trunks, self.now);
        std::iter::from_fn(|| trunks.poll(now)).collect()
    }

    /// A call of data on a channel, with an end of the network: its socket.
    fn call(&mut self, channel: u32) -> (UdpSocket, SocketAddr) {
        let far = UdpSocket::bind((HERE, 0)).unwrap();
        far.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let sent = Some((trunk::Coding::Clear, CLEARMODE));
        let payloads = Payloads { sent, received: [None, None, Some(CLEARMODE)], ..Payloads::default() };
        let remote = Some(far.local_addr().unwrap());
        let media = Media { mode: Mode::SendRecv, packet_bytes: 80, period_ms: 10, remote, payloads, ..Media::default() };
        let Answer::Now(at) = self.trunks.open(self.now, EndpointIndex(channel), 0, &media) else { panic!("no connection") };
        (far, SocketAddr::new(at.address, at.port))
    }

    fn view(&self) -> DriverView {
        match self.trunks.carrier(Facility::Span(SpanIndex(0))) {
            Some(CarrierView::Driver(view)) => view,
            other => panic!("{other:?}"),
        }
    }
}

/// A block that no other one is like.
fn block(number: usize) -> Vec<u8> {
    (0..BLOCK).map(|place| (number * 7 + place * 3) as u8).collect()
}

fn defects(told: &[Indication]) -> Vec<(Defect, bool)> {
    let defect = |told: &Indication| match told {
        Indication::Defect { defect, present, .. } => Some((*defect, *present)),
        _ => None,
    };
    told.iter().filter_map(defect).collect()
}

/// DAH-01, DAH-07: a start is refused with everything that is missing, and nothing is kept of what was taken.
#[test]
fn what_is_missing_is_told_at_once_and_in_words() {
    let refused = |change: fn(&Fake), coding, superframe, words: &[&str]| {
        let fake = Fake::new(2, 24, if coding { abi::SIG_CAS } else { abi::SIG_CLEAR });
        change(&fake);
        let coding = coding.then_some(Coding::LoopStart);
        let said = card(&fake, 2, coding, superframe, BLOCK, 47_200).map(|_| ()).unwrap_err().to_string();
        words.iter().for_each(|word| assert!(said.contains(word), "{word}\n{said}"));
        assert!(fake.world().channels.iter().all(|channel| !channel.is_open), "{said}");
    };
    let absent: fn(&Fake) = |fake| fake.world().spans.truncate(1);
    refused(absent, false, false, &["the dahdi driver: ds/ds1-2: the driver has no span 2"]);
    refused(
        |fake| {
            fake.world().channels[3].signalling = abi::SIG_NONE;
            fake.world().channels[4].signalling = abi::SIG_NONE;
            fake.world().channels[23].signalling = 0x380;
            fake.world().spans[1].channels = 4;
        },
        false,
        false,
        &[
            "ds/ds1-1 (span 1, WCT1/0): channels 4-5 are not configured in the driver; /etc/dahdi/system.conf must say clear=4-5 (then",
            "channels 24 is dchan or fcshdlc in the driver; /etc/dahdi/system.conf must say clear=24",
            "ds/ds1-2 (span 2, WCT1/0): the driver says it has 4 channels; a T1 has 24",
        ],
    );
    let clear: fn(&Fake) = |fake| fake.world().channels.iter_mut().for_each(|channel| channel.signalling = abi::SIG_CLEAR);
    refused(clear, true, false, &["channels 25-48 are clear in the driver; /etc/dahdi/system.conf must say cas=25-48:0101"]);
    refused(|_| {}, false, true, &["the driver has it as ESF: framing must be \"esf\""]);
    let d4: fn(&Fake) = |fake| fake.world().spans[0].line = abi::line::D4;
    refused(d4, false, false, &["ds/ds1-1 (span 1, WCT1/0): the driver has it as D4 (superframe)"]);
    let busy: fn(&Fake) = |fake| fake.world().channels[30].is_busy = true;
    refused(busy, false, false, &["ds/ds1-2: channel 31 of the driver: somebody else has it"]);
    let files: fn(&Fake) = |fake| fake.world().files_max = 40;
    refused(files, false, false, &["ds/ds1-2: channel 41 of the driver: too many files are open"]);
    let old: fn(&Fake) = |fake| fake.world().unknown.push(abi::SPANSTAT);
    refused(old, false, false, &["the driver is too old: it tells of spans in 296 octets, and 314 are needed"]);
    let other: fn(&Fake) = |fake| fake.world().unknown.extend([abi::SPANSTAT, abi::SPANSTAT_V1]);
    refused(other, false, false, &["the driver does not tell of spans in the form that is known here"]);
    let fake = Fake::new(2, 24, abi::SIG_CLEAR);
    fake.world().channels.truncate(40);
    let said = card(&fake, 2, None, false, BLOCK, 47_200).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("ds/ds1-2 (span 2, WCT1/0): the driver has no channel at its places 17-24"), "{said}");
}

/// DAH-13, and what a channel is told when it is taken: no echo canceller ever, clear channels carry a voice, the law of silence.
#[test]
fn channels_are_taken_without_echo_cancellation() {
    for (signalling, coding) in [(abi::SIG_CLEAR, None), (abi::SIG_CAS, Some(Coding::EarAndMouth))] {
        let fake = Fake::new(1, 24, signalling);
        let (_card, _) = card(&fake, 1, coding, false, BLOCK, 47_200).unwrap();
        let world = fake.world();
        let asked = |request| {
            let asked = world.log.iter().filter_map(|(_, did)| match did {
                Did::Asked(made, number) if *made == request => Some(*number),
                _ => None,
            });
            asked.collect::<Vec<_>>()
        };
        assert_eq!((asked(abi::ECHOCANCEL), asked(abi::SETLAW)), (vec![0; 24], vec![1; 24]));
        assert_eq!(asked(abi::AUDIOMODE).len(), if coding.is_none() { 24 } else { 0 });
        assert!(world.channels.iter().all(|channel| channel.is_open && channel.buffers == (BLOCK, 4)));
    }
}

/// DAH-02, DAH-03, DAH-04: a call of data is bit-exact both ways, whatever events come in between, and these are taken first and all.
#[test]
fn a_call_carries_every_octet_both_ways_while_events_come() {
    let mut bench = Bench::new(Fake::new(1, 24, abi::SIG_CLEAR), 1, None, 47_210);
    bench.later(3);
    assert!(!bench.fake.world().log.iter().any(|(_, did)| matches!(did, Did::Read | Did::Wrote)), "an idle channel costs nothing");
    let (far, near) = bench.call(5);
    bench.later(3);
    let (mut octets, mut sent) = (Vec::new(), Vec::new());
    for number in 0..60 {
        let mut packet = vec![0x80, CLEARMODE, 0, number as u8, 0, 0, 0, 0, 0, 0, 0, 9];
        packet[4..8].copy_from_slice(&(number as u32 * 80).to_be_bytes());
        packet.extend(block(100 + number));
        far.send_to(&packet, near).unwrap();
        let mut world = bench.fake.world();
        sent.extend(world.pass(5, block(number)));
        if number % 9 == 4 {
            // As many as the kernel keeps, and one that comes between a read and a write as well.
            (0..64).for_each(|_| world.tell(5, 19));
            world.log.clear();
        }
        drop(world);
        bench.later(4);
        bench.later(6);
        let world = bench.fake.world();
        assert!(world.channels[5].events.is_empty());
        if number % 9 == 4 {
            let of_channel = |(_, did): &&(Option<usize>, Did)| !matches!(did, Did::Asked(request, _) if *request != abi::GETEVENT);
            let order: Vec<_> = world.log.iter().filter(of_channel).map(|(_, did)| matches!(did, Did::Asked(..))).collect();
            assert!(order[..65].iter().all(|event| *event) && order[65..].iter().any(|event| !event), "{order:?}");
        }
        drop(world);
        let mut packet = [0; 200];
        let length = far.recv(&mut packet).unwrap();
        octets.extend_from_slice(&packet[12..length]);
    }
    let came: Vec<u8> = (0..60).flat_map(block).collect();
    assert_eq!(octets, came[..octets.len()]);
    assert!(octets.len() >= 59 * BLOCK);
    let sent: Vec<u8> = sent.concat();
    let goes: Vec<u8> = (100..160).flat_map(block).collect();
    let at = sent.windows(200).position(|octets| octets == &goes[..200]).expect("the first octets of the far end");
    let whole = sent.len() - at;
    assert!(whole > 40 * BLOCK && sent[at..] == goes[..whole], "{whole}");
    let counts = bench.view().counts;
    assert_eq!((counts.unknown, counts.dropped, counts.refused), (7 * 64, 0, 0));
    // After the call the driver sends its own silence.
    bench.trunks.close(bench.now, EndpointIndex(5), 0);
    bench.later(3);
    bench.fake.world().log.clear();
    bench.fake.world().pass(5, block(0));
    bench.later(10);
    assert!(!bench.fake.world().log.iter().any(|(_, did)| matches!(did, Did::Read | Did::Wrote)));
}

/// DAH-11: blocks are as long as configured and sending begins when half of the buffers are full (the driver in memory holds the card to that); a
/// core that was late sends the newest two, so a voice does not stay late; what the driver could not do is counted.
#[test]
fn a_core_that_was_late_drops_what_is_old() {
    for block_ms in [10, 20, 30] {
        let fake = Fake::new(1, 24, abi::SIG_CLEAR);
        let (mut trunks, mut now) = card(&fake, 1, None, false, block_ms * 8, 47_220).unwrap();
        trunks.listen_for(now, EndpointIndex(0), Sounds::KEYS);
        now += Duration::from_millis(3);
        assert_eq!(trunks.poll(now), None);
        assert_eq!(fake.world().channels[0].buffers, (block_ms * 8, 4));
        for _ in 0..4 {
            fake.world().pass(0, vec![0xFF; block_ms * 8]);
        }
        now += Duration::from_millis(100);
        assert_eq!(trunks.poll(now), None);
        assert_eq!(fake.world().channels[0].sent.len(), 2);
        fake.world().tell(0, 29);
        fake.world().tell(0, 30);
        now += Duration::from_millis(3);
        assert_eq!(trunks.poll(now), None);
        let Some(CarrierView::Driver(view)) = trunks.carrier(Facility::Span(SpanIndex(0))) else { panic!() };
        let counts = view.counts;
        assert_eq!((counts.blocks, counts.dropped, counts.overruns, counts.underruns), (4, 2, 1, 1));
    }
}

/// DAH-06: an alarm that follows another one is no event of the driver's.
#[test]
fn an_alarm_without_an_event_is_found_within_half_a_second() {
    let mut bench = Bench::new(Fake::new(1, 24, abi::SIG_CLEAR), 1, None, 47_230);
    bench.later(1);
    bench.fake.world().spans[0].alarms = alarm::YELLOW;
    (0..24).for_each(|channel| bench.fake.world().tell(channel, 4));
    assert_eq!(defects(&bench.later(3)), [(Defect::RemoteAlarm, true)], "told by an event");
    bench.fake.world().spans[0].alarms = alarm::RED | alarm::LOS;
    let told: Vec<_> = (0..5).flat_map(|_| defects(&bench.later(100))).collect();
    assert_eq!(told, [(Defect::LossOfSignal, true), (Defect::RemoteAlarm, false)]);
    bench.fake.world().spans[0].counts = [7, 0, 0, 0, 0, 3];
    let told = bench.later(600);
    assert!(matches!(told[..], [Indication::Violations { violations, .. }] if violations.line == 7), "{told:?}");
    assert_eq!(bench.view().alarms, alarm::RED | alarm::LOS);
}

/// DAH-08 at the driver's files: the far end's bits are a seizure, and a wink goes out as bits.
#[test]
fn a_seizure_and_a_wink_are_bits_of_the_driver() {
    let mut bench = Bench::new(Fake::new(1, 24, abi::SIG_CAS), 1, Some(Coding::EarAndMouth), 47_240);
    bench.later(3);
    assert!(bench.fake.world().channels.iter().all(|channel| channel.shown == Some(0)));
    bench.fake.world().show(2, 0b1111);
    let told: Vec<_> = (0..4).flat_map(|_| bench.later(3)).collect();
    let [Indication::Line { endpoint: EndpointIndex(2), input: LineInput::Hook(Hook::Off), .. }] = told[..] else { panic!("{told:?}") };
    let wink = LineOrder::Pulse(LineState::OffHook, Duration::from_millis(200));
    bench.trunks.order_line(bench.now, EndpointIndex(2), &wink);
    bench.fake.world().log.clear();
    let shown: Vec<_> = (0..100).map(|_| (bench.later(3), bench.fake.world().channels[2].shown.unwrap()).1).collect();
    let off_hook = shown.iter().filter(|bits| **bits == 0b1111).count();
    assert!((66..=68).contains(&off_hook) && shown[0] == 0b1111 && shown[99] == 0, "{shown:?}");
    assert_eq!(bench.fake.world().count(abi::SETTXBITS), 2, "only what changes is told");
}

/// DAH-10: a device that is pulled out takes its span out of service at once, and nothing asks it again but once a second whether it is back.
#[test]
fn a_device_that_is_pulled_out_is_dead_until_it_is_back() {
    for by_event in [true, false] {
        let mut bench = Bench::new(Fake::new(2, 24, abi::SIG_CLEAR), 2, None, 47_250);
        bench.later(3);
        let (_far, _) = bench.call(5);
        bench.later(3);
        if by_event {
            bench.fake.world().tell(9, 20);
        } else {
            bench.fake.world().pull(1);
        }
        let told = bench.later(3);
        let dead = Indication::Defect { facility: Facility::Span(SpanIndex(0)), defect: Defect::Equipment, present: true, at_once: true };
        assert_eq!(told, [dead]);
        bench.fake.world().pull(1);
        assert!(bench.fake.world().channels[..24].iter().all(|channel| !channel.is_open));
        assert!(bench.fake.world().channels[24..].iter().all(|channel| channel.is_open), "the other span goes on");
        assert!(!bench.view().is_there);
        let media = Media::default();
        assert_eq!(bench.trunks.open(bench.now, EndpointIndex(6), 1, &media), Answer::Refused(CardFault::Broken));
        bench.fake.world().log.clear();
        (0..300).for_each(|_| assert_eq!(bench.later(10), []));
        assert!(bench.fake.world().count(abi::SPANSTAT) <= 3 + 7, "its own, and the other span's state");
        assert_eq!(bench.fake.world().count(abi::SPECIFY), 0);
        bench.fake.world().plug(1);
        let told: Vec<_> = (0..110).flat_map(|_| defects(&bench.later(10))).collect();
        assert_eq!(told, [(Defect::Equipment, false)]);
        assert!(bench.fake.world().channels.iter().all(|channel| channel.is_open));
        // The call that was up is the agent's to end; it goes on meanwhile.
        assert_eq!(bench.fake.world().channels[5].buffers, (BLOCK, 4));
        bench.fake.world().pass(5, block(1));
        bench.later(10);
        assert_eq!((bench.fake.world().channels[5].sent.len(), bench.view().counts.losses), (1, 1));
    }
}

/// DAH-12: T/lb is a loop of the channel's octets; the span's loop is the driver's, and ends with the gateway.
#[test]
fn loops_of_a_channel_and_of_a_span() {
    let mut bench = Bench::new(Fake::new(1, 24, abi::SIG_CLEAR), 1, None, 47_260);
    let loopback = find_item(PackageId::T, b"lb").unwrap();
    bench.trunks.start_signal(bench.now, EndpointIndex(3), None, loopback, b"").unwrap();
    bench.later(3);
    let sent: Vec<u8> = (0..20)
        .filter_map(|number| {
            let sent = bench.fake.world().pass(3, block(number));
            bench.later(10);
            sent
        })
        .flatten()
        .collect();
    assert_eq!(sent, (0..19).flat_map(block).collect::<Vec<u8>>());
    let facility = Facility::Span(SpanIndex(0));
    bench.trunks.operate(bench.now, &CardOrder::Loop { facility, on: true }).unwrap();
    assert_eq!(defects(&bench.later(3)), [(Defect::Loopback, true)]);
    drop(bench.trunks);
    assert_eq!(bench.fake.world().spans[0].loops, [abi::PAYLOAD_LOOP, abi::NO_LOOP]);
}

#[test]
fn a_driver_without_a_loop_says_so_to_the_operator() {
    let mut bench = Bench::new(Fake::new(1, 24, abi::SIG_CLEAR), 1, None, 47_270);
    bench.fake.world().unknown.push(abi::MAINT);
    let facility = Facility::Span(SpanIndex(0));
    let refused = bench.trunks.operate(bench.now, &CardOrder::Loop { facility, on: true });
    assert_eq!(refused, Err("the driver refused it"));
    let los = CardOrder::Defect { facility, defect: Defect::LossOfSignal, present: true, at_once: true };
    assert!(bench.trunks.operate(bench.now, &los).is_err());
    let t3 = CardOrder::Loop { facility: Facility::T3(trunk::T3Index(0)), on: true };
    assert_eq!(bench.trunks.operate(bench.now, &t3), Err("it has no signal of its own: loop one of its spans"));
}

/// DAH-14: a T3's worth of channels in one reactor, all with sound at once: one turn moves no more than its slice, none is left out, and what
/// signals is not put off by it.
#[test]
fn the_channels_of_28_spans_take_turns_and_signalling_goes_first() {
    let mut bench = Bench::new(Fake::new(28, 24, abi::SIG_CAS), 28, Some(Coding::EarAndMouth), 47_280);
    (0..672).for_each(|channel| bench.trunks.listen_for(bench.now, EndpointIndex(channel), Sounds::KEYS));
    bench.later(3);
    (0..672).for_each(|channel| drop(bench.fake.world().pass(channel, vec![0xFF; BLOCK])));
    bench.fake.world().log.clear();
    let (mut turns, mut blocks) = (0, 0);
    while blocks < 672 {
        if turns == 1 {
            bench.fake.world().show(671, 0b1111);
        }
        // The first look, and turns that follow it at once.
        bench.now += if turns == 0 { Duration::from_millis(3) } else { Duration::from_micros(1) };
        assert_eq!(bench.trunks.poll(bench.now), None);
        turns += 1;
        let world = bench.fake.world();
        let read = world.channels.iter().filter(|channel| channel.received.is_empty()).count();
        assert!(read - blocks <= SLICE * 192 / BLOCK + 1, "{} in a turn", read - blocks);
        blocks = read;
        drop(world);
        assert!(turns < 20 && (blocks == 672 || bench.trunks.deadline() <= bench.now));
        assert!(turns < 3 || bench.fake.world().channels[671].events.is_empty());
    }
    assert!(turns >= 672 * BLOCK / (SLICE * 192), "{turns}");
    bench.later(1);
    assert!(bench.fake.world().channels.iter().all(|channel| channel.sent.len() == 1));
}
