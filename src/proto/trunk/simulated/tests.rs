//! The rules one by one, then random orders against a model that handles each packet by itself.

use super::model::Naive;
use super::*;
use crate::proto::base::Mode;
use crate::proto::trunk::{DigitKind, FacilityKind, FacilityPlan, FarOrder, LineInput};

pub(super) const MS: u64 = 1_000_000;
const SPAN: Facility = Facility::Span(SpanIndex(0));
pub(super) const T3: Facility = Facility::T3(T3Index(0));

fn topology() -> Topology {
    let plan = |kind, unit| FacilityPlan { kind, unit, common_channel: false };
    Topology::new(&[plan(FacilityKind::T3, 1), plan(FacilityKind::T1, 1)]).unwrap()
}

/// Carries the first two T1s of the T3 (endpoints 0..48) and has ports 4000, 4002 and 4004 for four connections.
fn card(seed: u64) -> SimCard {
    SimCard::new(&SimulatedPlan {
        kinds: &[],
        topology: &topology(),
        facilities: &[Facility::Span(SpanIndex(1)), SPAN, T3],
        address: IpAddr::from([192, 0, 2, 1]),
        ports: 4000..=4005,
        part: (0, 1),
        connections: 4,
        seed,
    })
}

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn endpoint(index: u32) -> EndpointIndex {
    EndpointIndex(index)
}

fn media(mode: Mode) -> Media {
    Media { mode, packet_bytes: 160, period_ms: 20, remote: Some(([192, 0, 2, 9], 6000).into()), ..Media::default() }
}

fn inside(mode: Mode) -> Media {
    Media { remote: None, inside: true, ..media(mode) }
}

pub(super) fn at(port: u16) -> MediaAddress {
    MediaAddress { address: IpAddr::from([192, 0, 2, 1]), port }
}

fn polled(card: &mut SimCard, now: Time) -> Vec<Indication> {
    std::iter::from_fn(|| card.poll(now)).collect()
}

/// PS, OS, PR, OR, PL.
fn counts(report: MediaReport) -> [u32; 5] {
    let MediaReport { packets_sent, octets_sent, packets_received, octets_received, packets_lost, .. } = report;
    [packets_sent, octets_sent, packets_received, octets_received, packets_lost]
}

/// What a connection in this mode has counted after two seconds.
fn two_seconds(media: &Media) -> MediaReport {
    let mut card = card(1);
    assert!(matches!(card.open(ms(500), endpoint(0), 0, media), Answer::Now(_)));
    card.close(ms(2_500), endpoint(0), 0)
}

#[test]
fn counters_follow_the_mode() {
    // G-STA-02, G-STA-03
    for (mode, expected) in [
        (Mode::SendRecv, [100, 16_000, 100, 16_000, 0]),
        (Mode::Conference, [100, 16_000, 100, 16_000, 0]),
        (Mode::NetworkLoop, [100, 16_000, 100, 16_000, 0]),
        (Mode::SendOnly, [100, 16_000, 0, 0, 0]),
        (Mode::RecvOnly, [0, 0, 100, 16_000, 0]),
        (Mode::Inactive, [0; 5]),
        (Mode::Loopback, [0; 5]),
        (Mode::ContinuityTest, [0; 5]),
    ] {
        let report = two_seconds(&media(mode));
        assert_eq!(counts(report), expected, "{mode:?}");
        // G-STA-05: jitter and latency are those of packets that came.
        assert_eq!((1..=4).contains(&report.jitter_ms) && (5..=40).contains(&report.latency_ms), mode.receives(), "{mode:?}");
        assert_eq!(report.jitter_ms == 0 && report.latency_ms == 0, !mode.receives(), "{mode:?}");
    }
}

#[test]
fn nothing_is_sent_to_nobody() {
    // Field bug O18: no media before the remote address is known.
    for mode in Mode::ALL {
        assert_eq!(two_seconds(&Media { remote: None, ..media(mode) }), MediaReport::default(), "{mode:?}");
    }
}

#[test]
fn inside_the_gateway_no_port_and_no_loss() {
    // G-STA-06
    let mut card = card(1);
    card.operate(ms(0), &CardOrder::Loss(500_000)).unwrap();
    assert_eq!(card.open(ms(0), endpoint(0), 0, &inside(Mode::SendRecv)), Answer::Now(at(0)));
    assert_eq!(card.open(ms(0), endpoint(1), 1, &media(Mode::SendRecv)), Answer::Now(at(4000)));
    let report = card.report(ms(2_000), 0);
    assert_eq!(counts(report), [100, 16_000, 100, 16_000, 0]);
    assert_eq!((report.jitter_ms, report.latency_ms), (0, 0));
    assert_eq!(card.modify(ms(2_000), endpoint(0), 0, &inside(Mode::SendOnly)), Answer::Now(at(0)));
    assert_eq!(counts(card.report(ms(4_000), 0)), [200, 32_000, 100, 16_000, 0]);
    // One that leaves the gateway gets a port, and keeps it.
    card.operate(ms(4_000), &CardOrder::Loss(0)).unwrap();
    assert_eq!(card.modify(ms(4_000), endpoint(0), 0, &media(Mode::SendRecv)), Answer::Now(at(4002)));
    assert_eq!(card.modify(ms(4_000), endpoint(0), 0, &inside(Mode::SendRecv)), Answer::Now(at(4002)));
    assert_eq!(counts(card.close(ms(5_000), endpoint(0), 0)), [250, 40_000, 150, 24_000, 0]);
    assert_eq!(card.open(ms(5_000), endpoint(2), 2, &media(Mode::SendRecv)), Answer::Now(at(4004)));
    assert_eq!(card.open(ms(5_000), endpoint(3), 3, &inside(Mode::SendRecv)), Answer::Now(at(0)));
    assert_eq!(card.modify(ms(5_000), endpoint(3), 3, &media(Mode::SendRecv)), Answer::Now(at(4002)), "the one that was given back");
}

#[test]
fn counts_cover_the_whole_life() {
    // G-STA-02: over changes of mode, period and codec.
    let mut card = card(1);
    card.open(ms(0), endpoint(0), 0, &Media { remote: None, ..media(Mode::RecvOnly) });
    card.modify(ms(1_000), endpoint(0), 0, &media(Mode::SendRecv));
    card.modify(ms(2_000), endpoint(0), 0, &Media { period_ms: 10, packet_bytes: 80, ..media(Mode::SendOnly) });
    card.modify(ms(3_000), endpoint(0), 0, &Media { packet_bytes: 10, period_ms: 10, ..media(Mode::SendOnly) });
    card.modify(ms(4_000), endpoint(0), 0, &media(Mode::Inactive));
    assert_eq!(counts(card.close(ms(9_000), endpoint(0), 0)), [50 + 100 + 100, 8_000 + 8_000 + 1_000, 50, 8_000, 0]);
}

#[test]
fn ports_rest_as_long_as_possible_and_run_out() {
    let mut card = card(1);
    let open = media(Mode::Inactive);
    assert_eq!(card.open(ms(0), endpoint(0), 0, &open), Answer::Now(at(4000)));
    card.close(ms(0), endpoint(0), 0);
    assert_eq!(card.open(ms(0), endpoint(0), 0, &open), Answer::Now(at(4002)));
    assert_eq!(card.open(ms(0), endpoint(1), 1, &open), Answer::Now(at(4004)));
    assert_eq!(card.open(ms(0), endpoint(2), 2, &open), Answer::Now(at(4000)));
    assert_eq!(card.open(ms(0), endpoint(3), 3, &open), Answer::Refused(CardFault::Exhausted));
    assert_eq!(card.open(ms(0), endpoint(3), 3, &inside(Mode::Inactive)), Answer::Now(at(0)));
    card.close(ms(0), endpoint(3), 3);
    card.close(ms(0), endpoint(1), 1);
    assert_eq!(card.open(ms(0), endpoint(3), 3, &open), Answer::Now(at(4004)));
}

#[test]
fn what_it_does_not_have_it_refuses() {
    let mut card = card(1);
    let open = media(Mode::SendRecv);
    assert_eq!(card.open(ms(0), endpoint(48), 0, &open), Answer::Refused(CardFault::Broken));
    assert_eq!(card.open(ms(0), endpoint(u32::MAX), 0, &open), Answer::Refused(CardFault::Broken));
    assert_eq!(card.open(ms(0), endpoint(0), 4, &open), Answer::Refused(CardFault::Exhausted));
    assert_eq!(card.modify(ms(0), endpoint(0), 0, &open), Answer::Refused(CardFault::Broken));
    assert_eq!(card.open(ms(0), endpoint(47), 0, &open), Answer::Now(at(4000)));
    assert_eq!(card.open(ms(0), endpoint(47), 0, &open), Answer::Refused(CardFault::Broken));
    assert_eq!(card.modify(ms(0), endpoint(46), 0, &open), Answer::Refused(CardFault::Broken));
    assert_eq!(card.close(ms(1_000), endpoint(46), 0), MediaReport::default());
    assert_eq!(card.report(ms(1_000), 0).packets_sent, 50);
    assert_eq!(card.report(ms(1_000), 9), MediaReport::default());
}

#[test]
fn late_answers_come_in_order_and_take_effect_then() {
    let mut card = card(1);
    card.operate(ms(0), &CardOrder::Delay(100)).unwrap();
    assert_eq!(card.open(ms(0), endpoint(0), 0, &media(Mode::SendRecv)), Answer::Later);
    assert_eq!(card.open(ms(0), endpoint(1), 1, &media(Mode::SendRecv)), Answer::Later);
    card.operate(ms(0), &CardOrder::Delay(50)).unwrap();
    assert_eq!(card.open(ms(10), endpoint(2), 2, &media(Mode::SendRecv)), Answer::Later);
    let opened = |slot: u32, port| Indication::Opened { endpoint: endpoint(slot), connection: slot, result: Ok(at(port)) };
    assert_eq!((card.deadline(), card.poll(ms(59))), (ms(60), None));
    assert_eq!(polled(&mut card, ms(60)), [opened(2, 4004)]);
    assert_eq!(card.modify(ms(80), endpoint(2), 2, &media(Mode::RecvOnly)), Answer::Later);
    assert_eq!(card.deadline(), ms(100));
    assert_eq!(polled(&mut card, ms(100)), [opened(0, 4000), opened(1, 4002)]);
    let modified = Indication::Modified { endpoint: endpoint(2), connection: 2, result: Ok(at(4004)) };
    assert_eq!((card.deadline(), polled(&mut card, ms(160))), (ms(130), vec![modified]));
    assert_eq!(card.deadline(), Time::NEVER);
    assert_eq!(card.close(ms(1_060), endpoint(2), 2).packets_sent, 5);
    assert_eq!(card.close(ms(1_100), endpoint(0), 0).packets_sent, 50);
}

#[test]
fn closing_drops_the_late_answer() {
    let mut card = card(1);
    card.operate(ms(0), &CardOrder::Delay(100)).unwrap();
    card.open(ms(0), endpoint(0), 0, &media(Mode::SendRecv));
    assert_eq!(card.close(ms(50), endpoint(0), 0), MediaReport::default());
    assert_eq!(card.deadline(), Time::NEVER);
    // The slot is used again before the first answer was due.
    card.open(ms(60), endpoint(1), 0, &media(Mode::SendRecv));
    assert_eq!((card.deadline(), card.poll(ms(159))), (ms(160), None));
    let opened = Indication::Opened { endpoint: endpoint(1), connection: 0, result: Ok(at(4002)) };
    assert_eq!(polled(&mut card, ms(160)), [opened]);
    // Of two modifications only the second is answered.
    card.modify(ms(200), endpoint(1), 0, &media(Mode::Inactive));
    card.modify(ms(250), endpoint(1), 0, &media(Mode::SendOnly));
    let modified = Indication::Modified { endpoint: endpoint(1), connection: 0, result: Ok(at(4002)) };
    assert_eq!((card.deadline(), polled(&mut card, ms(1_000))), (ms(350), vec![modified]));
}

#[test]
fn forgotten_answers_take_no_room() {
    let mut card = card(1);
    card.operate(ms(0), &CardOrder::Delay(1_000_000)).unwrap();
    card.open(ms(0), endpoint(0), 0, &media(Mode::SendRecv));
    for now in 1..1_000 {
        card.open(ms(now), endpoint(1), 1, &media(Mode::SendRecv));
        card.close(ms(now), endpoint(1), 1);
        assert!(card.answers.len() <= 2 * card.channels.len());
    }
    assert_eq!(card.deadline(), ms(1_000_000));
}

#[test]
fn a_card_that_hangs_never_answers() {
    let mut card = card(1);
    card.operate(ms(0), &CardOrder::Delay(u32::MAX)).unwrap();
    assert_eq!(card.open(ms(0), endpoint(0), 0, &media(Mode::SendRecv)), Answer::Later);
    assert_eq!((card.deadline(), card.poll(Time::NEVER)), (Time::NEVER, None));
    card.operate(ms(0), &CardOrder::Delay(0)).unwrap();
    assert_eq!(card.poll(Time::NEVER), None);
    assert_eq!(card.close(ms(1_000), endpoint(0), 0), MediaReport::default());
    // Its port has come back.
    for (slot, port) in [4002, 4004, 4000].into_iter().enumerate() {
        assert_eq!(card.open(ms(0), endpoint(0), slot as u32, &media(Mode::SendRecv)), Answer::Now(at(port)));
    }
}

#[test]
fn refusals_at_once_and_late() {
    let mut card = card(1);
    card.open(ms(0), endpoint(0), 0, &media(Mode::SendRecv));
    card.operate(ms(0), &CardOrder::Refuse(3)).unwrap();
    assert_eq!(card.open(ms(0), endpoint(1), 1, &media(Mode::SendRecv)), Answer::Refused(CardFault::Exhausted));
    card.operate(ms(0), &CardOrder::Delay(100)).unwrap();
    assert_eq!(card.open(ms(0), endpoint(1), 1, &media(Mode::SendRecv)), Answer::Later);
    assert_eq!(card.modify(ms(0), endpoint(0), 0, &media(Mode::Inactive)), Answer::Later);
    let result = Err(CardFault::Exhausted);
    let opened = Indication::Opened { endpoint: endpoint(1), connection: 1, result };
    let modified = Indication::Modified { endpoint: endpoint(0), connection: 0, result: Err(CardFault::Exhausted) };
    assert_eq!(polled(&mut card, ms(100)), [opened, modified]);
    // A refused modification changes nothing; the slot of a refused open is free.
    assert_eq!(card.report(ms(1_000), 0).packets_sent, 50);
    card.operate(ms(0), &CardOrder::Delay(0)).unwrap();
    assert_eq!(card.open(ms(0), endpoint(1), 1, &media(Mode::SendRecv)), Answer::Now(at(4002)));
}

#[test]
fn losses_count_from_the_order_on() {
    // G-STA-04: PL = expected - received.
    let mut card = card(1);
    card.open(ms(0), endpoint(0), 0, &media(Mode::SendRecv));
    card.operate(ms(20_000), &CardOrder::Loss(100_000)).unwrap();
    card.operate(ms(40_000), &CardOrder::Loss(0)).unwrap();
    assert_eq!(counts(card.report(ms(60_000), 0)), [3_000, 480_000, 2_900, 464_000, 100]);
}

#[test]
fn defects_are_said_when_new_or_at_once() {
    let mut card = card(1);
    let order = |defect, present, at_once| CardOrder::Defect { facility: SPAN, defect, present, at_once };
    let said = |defect, present, at_once| Indication::Defect { facility: SPAN, defect, present, at_once };
    let (los, rai) = (Defect::LossOfSignal, Defect::RemoteAlarm);
    card.operate(ms(0), &order(los, true, false)).unwrap();
    card.operate(ms(0), &order(los, true, false)).unwrap();
    card.operate(ms(0), &order(los, true, true)).unwrap();
    card.operate(ms(0), &order(rai, true, false)).unwrap();
    assert_eq!(card.deadline(), Time::ZERO);
    assert_eq!(polled(&mut card, ms(0)), [said(los, true, false), said(los, true, true), said(rai, true, false)]);
    card.operate(ms(0), &CardOrder::Clear { facility: SPAN, at_once: false }).unwrap();
    assert_eq!(polled(&mut card, ms(0)), [said(los, false, false), said(rai, false, false)]);
    assert_eq!(card.deadline(), Time::NEVER);
    card.operate(ms(0), &CardOrder::Clear { facility: SPAN, at_once: true }).unwrap();
    assert_eq!(polled(&mut card, ms(0)), Defect::ALL.map(|defect| said(defect, false, true)));
    assert!(card.operate(ms(0), &CardOrder::Clear { facility: Facility::Span(SpanIndex(28)), at_once: true }).is_err());
    let mut room = 0;
    while card.operate(ms(0), &order(los, room % 2 == 0, false)).is_ok() {
        room += 1;
    }
    assert_eq!(room, indications_max(3));
    assert_eq!(polled(&mut card, ms(0)).len(), room);
}

#[test]
fn a_broken_part_carries_nothing() {
    let mut card = card(1);
    let fail = |facility, present| CardOrder::Defect { facility, defect: Defect::Equipment, present, at_once: true };
    card.open(ms(0), endpoint(0), 0, &media(Mode::SendRecv));
    card.open(ms(0), endpoint(24), 1, &media(Mode::SendRecv));
    card.operate(ms(1_000), &fail(SPAN, true)).unwrap();
    assert_eq!(card.open(ms(1_000), endpoint(1), 2, &media(Mode::SendRecv)), Answer::Refused(CardFault::Broken));
    assert_eq!(card.modify(ms(1_000), endpoint(0), 0, &media(Mode::SendRecv)), Answer::Refused(CardFault::Broken));
    card.operate(ms(2_000), &fail(T3, true)).unwrap();
    card.operate(ms(3_000), &fail(SPAN, false)).unwrap();
    card.operate(ms(4_000), &CardOrder::Clear { facility: T3, at_once: false }).unwrap();
    assert_eq!([0, 1].map(|slot| card.report(ms(5_000), slot).packets_received), [100, 150]);
}

#[test]
fn counters_stop_at_their_end() {
    // G-STA-01: never wraps (the largest value in P is the writer's).
    let mut card = card(1);
    card.open(ms(0), endpoint(0), 0, &Media { period_ms: 1, ..media(Mode::SendRecv) });
    assert_eq!(counts(card.close(Time::NEVER, endpoint(0), 0))[..4], [u32::MAX; 4]);
}

fn random_media(rng: &mut Rng) -> Media {
    let inside = rng.below(5) == 0;
    Media {
        mode: Mode::ALL[rng.below(9) as usize],
        packet_bytes: [80, 160, 10][rng.below(3) as usize],
        period_ms: [10, 20, 20, 30, 0][rng.below(5) as usize],
        remote: (rng.below(4) > 0).then(|| ([192, 0, 2, 9], 6000).into()),
        inside,
        ..Media::default()
    }
}

#[test]
fn random_orders_agree_with_a_model_that_handles_each_packet() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let (mut card, mut naive) = (card(seed), Naive::new());
        let mut now = 0;
        for step in 0..300 {
            now += match rng.below(4) {
                0 => 0,
                1 => rng.below(500 * MS),
                // Exactly where packets end.
                2 => 10 * MS * rng.below(20),
                _ => rng.below(30 * MS),
            };
            naive.advance(now);
            let (time, slot, at) = (Time(now), rng.below(5) as u32, rng.below(50) as u32);
            let at = naive.connections.get(slot as usize).and_then(|c| c.as_ref()).filter(|_| rng.below(8) > 0).map_or(at, |c| c.endpoint);
            let context = format!("seed {seed} step {step}");
            match rng.below(12) {
                0..=2 => {
                    let media = random_media(&mut rng);
                    let answer = card.open(time, EndpointIndex(at), slot, &media);
                    let phase = card.channel(slot).map_or(0, |channel| channel.received.loss_phase());
                    assert_eq!(answer, naive.open(at, slot as usize, media, phase), "{context}");
                }
                3..=5 => {
                    let media = random_media(&mut rng);
                    assert_eq!(card.modify(time, EndpointIndex(at), slot, &media), naive.modify(at, slot as usize, media), "{context}");
                }
                6 => assert_eq!(counts(card.close(time, EndpointIndex(at), slot)), naive.close(at, slot as usize), "{context}"),
                7..=8 => {
                    while let Some(indication) = naive.poll() {
                        assert_eq!(card.poll(time), Some(indication), "{context}");
                    }
                    assert_eq!(card.poll(time), None, "{context}");
                }
                9 => {
                    naive.delay = [0, 0, 5, 100, 1_000, u32::MAX][rng.below(6) as usize];
                    card.operate(time, &CardOrder::Delay(naive.delay)).unwrap();
                }
                10 if rng.below(2) == 0 => {
                    naive.refuse = rng.below(3) as u32;
                    card.operate(time, &CardOrder::Refuse(naive.refuse)).unwrap();
                }
                10 => {
                    naive.loss = [0, 10_000, 333_333, 1_000_000, u32::MAX][rng.below(5) as usize];
                    card.operate(time, &CardOrder::Loss(naive.loss)).unwrap();
                }
                _ => {
                    let facility = [T3, SPAN, Facility::Span(SpanIndex(1))][rng.below(3) as usize];
                    let present = !naive.failed.contains(&facility);
                    naive.failed.retain(|&part| part != facility);
                    naive.failed.extend(present.then_some(facility));
                    naive.settle();
                    let defect = Defect::Equipment;
                    card.operate(time, &CardOrder::Defect { facility, defect, present, at_once: false }).unwrap();
                    assert_eq!(card.poll(time), Some(Indication::Defect { facility, defect, present, at_once: false }), "{context}");
                }
            }
            for slot in 0..5 {
                assert_eq!(counts(card.report(time, slot)), naive.counts(slot as usize), "{context} slot {slot}");
            }
            assert_eq!(card.deadline(), naive.next().map_or(Time::NEVER, |(due, ..)| Time(due)), "{context}");
        }
    }
}

#[test]
fn the_seed_decides() {
    let life = |seed| {
        let mut card = card(seed);
        card.operate(ms(0), &CardOrder::Loss(123_456)).unwrap();
        let reports = (0..3).map(|slot| {
            card.open(ms(0), endpoint(slot), slot, &media(Mode::SendRecv));
            card.report(ms(300), slot)
        });
        reports.collect::<Vec<_>>()
    };
    assert_eq!(life(7), life(7));
    assert!((8..20).any(|seed| life(seed) != life(7)));
}

#[test]
fn more_digits_of_a_far_end_go_behind_those_it_still_sends() {
    let mut card = card(1);
    let digits = |text: &str| {
        let mut digits = crate::proto::package::parameters::Digits::NONE;
        assert!(text.bytes().all(|symbol| digits.push(symbol)));
        CardOrder::Far(endpoint(0), FarOrder::Digits(DigitKind::Dtmf, digits))
    };
    let heard = |card: &mut SimCard, until: Time| {
        let symbol = |indication| match indication {
            Indication::Line { input: LineInput::Digit(_, symbol), .. } => Some(char::from(symbol)),
            _ => None,
        };
        polled(card, until).into_iter().filter_map(symbol).collect::<String>()
    };
    card.operate(ms(0), &digits("123")).unwrap();
    assert_eq!(heard(&mut card, ms(150)), "12");
    card.operate(ms(160), &digits("456")).unwrap();
    assert_eq!(heard(&mut card, ms(2_000)), "3456");
    // Behind the last one as well, while it lasts; then at once.
    card.operate(ms(3_000), &digits("7")).unwrap();
    assert_eq!(heard(&mut card, ms(3_010)), "7");
    card.operate(ms(3_020), &digits("8")).unwrap();
    assert_eq!((heard(&mut card, ms(3_100)), heard(&mut card, ms(3_140))), (String::new(), "8".into()));
    let most = "1".repeat(crate::proto::package::parameters::Digits::MAX);
    card.operate(ms(5_000), &digits(&most)).unwrap();
    assert!(card.operate(ms(5_000), &digits("2")).unwrap_err().contains("no room"));
    assert_eq!(heard(&mut card, ms(60_000)), most);
}
