use super::abi::{self, Counts, Event, Params, Request, SpanInfo, alarm};
use super::{Span, SpanSettings, Wants};
use crate::proto::base::{EndpointIndex, Time};
use crate::proto::circuit::Coding;
use crate::proto::trunk::{Defect, Facility, Hook, Indication, LineInput, LineOrder, LineState, SpanIndex, Violations};
use crate::proto::voice;
use std::collections::VecDeque;
use std::time::Duration;

const FACILITY: Facility = Facility::Span(SpanIndex(3));

fn span(coding: Option<Coding>) -> Span {
    let endpoints = (0..24).map(|n| Some(EndpointIndex(n))).collect();
    Span::new(&SpanSettings { facility: FACILITY, number: 7, endpoints, coding, voice: voice::Settings::default() })
}

/// The defects that a change of alarms tells of: which, whether it is present, and whether at once.
fn defects(span: &mut Span, alarms: u32) -> Vec<(Defect, bool, bool)> {
    let mut out = VecDeque::new();
    span.take_status(&SpanInfo { alarms, ..SpanInfo::default() }, &mut out);
    let told = out.into_iter().map(|told| match told {
        Indication::Defect { facility: FACILITY, defect, present, at_once } => (defect, present, at_once),
        other => panic!("{other:?}"),
    });
    told.collect()
}

/// DAH-07, and the other requests whose structures are read or written: the number says which way and how many octets.
#[test]
fn requests_name_the_octets_of_their_structures() {
    let number = |way: u32, octets: usize, nr: u32| Request(way << 30 | (octets as u32) << 16 | 0xDA << 8 | nr);
    let (write, read, both) = (1, 2, 3);
    assert_eq!((SpanInfo::OCTETS, abi::SPANSTAT), (314, number(both, 314, 10)));
    assert_eq!(abi::SPANSTAT, Request(0xC13A_DA0A));
    assert_eq!((abi::SPANSTAT_V1, abi::SPANSTAT_V1.octets()), (number(both, 296, 10), 296));
    assert_eq!((Params::OCTETS, abi::GET_PARAMS), (136, number(both, 136, 5)));
    assert_eq!(abi::MAINT, number(write, abi::pair(1, 13).len(), 11));
    assert_eq!(abi::SET_BUFINFO, number(write, abi::buffers(80).len(), 27));
    assert_eq!(abi::GETVERSION, number(read, 160, 57));
    for (request, way, nr) in [
        (abi::GETEVENT, read, 8),
        (abi::AUDIOMODE, write, 32),
        (abi::ECHOCANCEL, write, 33),
        (abi::SPECIFY, write, 38),
        (abi::SETLAW, write, 39),
        (abi::GETRXBITS, read, 43),
        (abi::SETTXBITS, write, 43),
        (abi::BUFFER_EVENTS, write, 105),
    ] {
        assert_eq!(request, number(way, 4, nr), "{nr}");
    }
}

#[test]
fn fields_are_where_the_driver_has_them() {
    let mut octets = SpanInfo::of(9);
    assert_eq!(octets[..4], 9i32.to_ne_bytes());
    octets[4..12].copy_from_slice(b"TE2/0/1\0");
    for (at, value) in [(64, 0x108), (76, 1), (80, 2), (84, 99), (88, 3), (92, 4), (96, 5), (120, 23), (124, 24), (128, 2), (136, 0xA0)] {
        octets[at..at + 4].copy_from_slice(&u32::to_ne_bytes(value));
    }
    let counts = Counts { bipolar: 1, crc: 2, alignment: 3, framing: 4, coding: 5 };
    let info = SpanInfo { alarms: 0x108, counts, configured: 23, channels: 24, spans: 2, line: 0xA0 };
    assert_eq!((SpanInfo::read(&octets), abi::text(&octets, 4, 20)), (info, "TE2/0/1".to_owned()));
    assert_eq!(abi::alarm_words(info.alarms), "red los");
    let mut params = Params::of(31);
    for (at, value) in [(4, 2), (8, 7), (12, 0x8000)] {
        params[at..at + 4].copy_from_slice(&i32::to_ne_bytes(value));
    }
    assert_eq!(Params::read(&params), Params { channel: 31, span: 2, position: 7, signalling: abi::SIG_CAS });
    // Any octets are read without harm, a name without an end too.
    let _ = (SpanInfo::read(&[0xFF; SpanInfo::OCTETS]), abi::text(&[0xFF; 8], 4, 20), abi::signalling_word(u32::MAX));
}

/// DAH-05: what the driver has waited for counts at once, and ends as any failure does; what it sees now is integrated here.
#[test]
fn alarms_of_the_driver_are_defects() {
    use Defect::{Ais, Loopback, LossOfSignal, OutOfFrame, RemoteAlarm};
    for (alarms, defect, at_once) in [
        (alarm::RED, OutOfFrame, true),
        (alarm::RED | alarm::LFA, OutOfFrame, true),
        (alarm::RED | alarm::LOS, LossOfSignal, true),
        (alarm::LOS, LossOfSignal, false),
        (alarm::LFA, OutOfFrame, false),
        (alarm::LMFA, OutOfFrame, false),
        (alarm::BLUE, Ais, true),
        (alarm::YELLOW, RemoteAlarm, true),
        (alarm::LOOPBACK, Loopback, true),
        (alarm::NOT_OPEN, LossOfSignal, true),
        (alarm::RECOVER, OutOfFrame, true),
    ] {
        let mut span = span(None);
        assert_eq!(defects(&mut span, alarms), [(defect, true, at_once)], "{}", abi::alarm_words(alarms));
        assert_eq!(defects(&mut span, alarms), [], "told once");
        assert_eq!(defects(&mut span, 0), [(defect, false, false)], "its end is integrated");
    }
}

#[test]
fn a_span_that_recovers_is_still_down_as_it_was() {
    let mut span = span(None);
    assert_eq!(defects(&mut span, alarm::BLUE), [(Defect::Ais, true, true)]);
    assert_eq!(defects(&mut span, alarm::RECOVER), []);
    assert_eq!(defects(&mut span, 0), [(Defect::Ais, false, false)]);
    // Seen at first, then a failure, then only seen, then over.
    assert_eq!(defects(&mut span, alarm::LOS), [(Defect::LossOfSignal, true, false)]);
    assert_eq!(defects(&mut span, alarm::LOS | alarm::RED), [(Defect::LossOfSignal, true, true)]);
    assert_eq!(defects(&mut span, alarm::LOS), []);
    assert_eq!(defects(&mut span, alarm::RECOVER), []);
    assert_eq!(defects(&mut span, 0), [(Defect::LossOfSignal, false, false)]);
}

/// DAH-09: modulo 2^32, nothing at first and when the driver began anew, and by one name of two.
#[test]
fn counters_of_the_driver_are_violations_since_the_last_look() {
    let mut span = span(None);
    let mut seen = |counts: Counts| {
        let mut out = VecDeque::new();
        span.take_status(&SpanInfo { counts, ..SpanInfo::default() }, &mut out);
        out.pop_front().map(|told| match told {
            Indication::Violations { facility: FACILITY, violations } => violations,
            other => panic!("{other:?}"),
        })
    };
    let base = Counts { bipolar: u32::MAX - 1, crc: 10, alignment: 0, framing: 5, coding: u32::MAX };
    assert_eq!(seen(base), None, "what was before is nobody's");
    let more = Counts { bipolar: 3, crc: 12, framing: 6, coding: 1, ..base };
    assert_eq!(seen(more), Some(Violations { path: 3, line: 5, ..Violations::default() }));
    assert_eq!(seen(more), None);
    assert_eq!(seen(Counts::default()), None, "reset");
    assert_eq!(seen(Counts { alignment: 2, framing: 2, ..Counts::default() }).map(|seen| seen.path), Some(2));
}

#[test]
fn a_device_that_is_gone_is_dead_equipment_until_it_is_there_again() {
    let mut span = span(None);
    let mut out = VecDeque::new();
    span.lose(&mut out);
    span.lose(&mut out);
    let dead = |present| Indication::Defect { facility: FACILITY, defect: Defect::Equipment, present, at_once: true };
    assert_eq!(out, [dead(true)]);
    assert_eq!((span.view().is_there, span.view().counts.losses), (false, 1));
    out.clear();
    span.find(&mut out);
    span.find(&mut out);
    assert_eq!((out, span.view().is_there), (VecDeque::from([dead(false)]), true));
}

#[test]
fn events_say_what_to_ask_for() {
    let mut span = span(None);
    assert_eq!(Event::of(0), None);
    for (number, wants) in
        [(4, Wants::Status), (5, Wants::Status), (13, Wants::Bits), (20, Wants::End), (29, Wants::Nothing), (30, Wants::Nothing)]
    {
        assert_eq!(span.take_event(Event::of(number).unwrap()), wants, "{number}");
    }
    for number in [1, 2, 3, 9, 17, 0x1_0035, 0x2_0031, -1, i32::MAX, i32::MIN] {
        assert_eq!(span.take_event(Event::of(number).unwrap()), Wants::Nothing, "{number}");
    }
    let counts = span.view().counts;
    assert_eq!((counts.overruns, counts.underruns, counts.unknown), (1, 1, 10));
}

/// DAH-08: bits count when two looks agree, a wink is as long as it was ordered, each change goes to the driver once, and what it refuses is
/// tried again. While no signal comes the far end's bits stay as they were.
#[test]
fn bits_are_hooks_after_two_looks_and_winks_are_timed_here() {
    let mut span = span(Some(Coding::EarAndMouth));
    let (mut out, mut shown, mut busy) = (VecDeque::new(), Vec::new(), true);
    let mut looks = |span: &mut Span, from: u64, to: u64, busy: &mut bool| {
        for n in from..to {
            span.signal(Time::from_millis(3 * n), &mut out, &mut |channel, bits| {
                let taken = channel != 4 || !std::mem::take(busy);
                if taken && channel == 4 {
                    shown.push((3 * n, bits));
                }
                taken
            });
        }
        (std::mem::take(&mut out), std::mem::take(&mut shown))
    };
    assert_eq!(looks(&mut span, 0, 5, &mut busy).1, [(3, 0)], "at the second time");
    span.take_bits(4, 0b1111);
    let (told, _) = looks(&mut span, 5, 6, &mut busy);
    assert!(told.is_empty(), "one look is no hook");
    let (told, _) = looks(&mut span, 6, 8, &mut busy);
    let off = Indication::Line { endpoint: EndpointIndex(4), input: LineInput::Hook(Hook::Off), at: Time::from_millis(15) };
    assert_eq!(told, [off]);
    let order = LineOrder::Pulse(LineState::OffHook, Duration::from_millis(200));
    span.slots_mut().order_line(Time::from_millis(24), EndpointIndex(4), &order, &mut VecDeque::new());
    let (_, wink) = looks(&mut span, 8, 100, &mut busy);
    assert_eq!(wink, [(24, 0b1111), (225, 0)]);
    // AIS, in which bits are ones or anything.
    defects(&mut span, alarm::BLUE);
    span.take_bits(4, 0);
    assert!(looks(&mut span, 100, 110, &mut busy).0.is_empty());
    defects(&mut span, 0);
    assert_eq!(looks(&mut span, 110, 113, &mut busy).0.len(), 1);
}
