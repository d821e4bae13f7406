//! What is played and heard on the circuit, and on the packet side.

use super::world::sine;
use super::*;
use crate::proto::base::Rng;
use crate::proto::package::parameters::{Digits, MfDigit};
use crate::proto::package::{ChannelKind, EventId, PackageId, find_item, packages};
use crate::proto::trunk::{DigitKind, Measure, Sounds};
use std::time::Duration;

fn never(_: u32, _: SocketAddr, _: Kind, _: &[u8]) {}

fn signal(package: PackageId, name: &str) -> EventId {
    find_item(package, name.as_bytes()).unwrap()
}

/// So many ms of what a DS0 puts on the circuit.
fn listen(ds0: &mut Ds0, ms: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for _ in 0..ms {
        let mut octets = [0xff; 8];
        ds0.exchange(Time::ZERO, &mut octets, &mut never);
        all.extend(octets);
    }
    all
}

/// Puts octets on the circuit, and says what is told of them, with the ms at which it was.
fn put(ds0: &mut Ds0, octets: impl IntoIterator<Item = u8>) -> Vec<(u64, Event)> {
    let octets: Vec<u8> = octets.into_iter().collect();
    let mut told = Vec::new();
    for (ms, octets) in octets.chunks(8).enumerate() {
        ds0.exchange(Time::from_millis(ms as u64), &mut octets.to_vec(), &mut never);
        told.extend(std::iter::from_fn(|| ds0.poll()).map(|event| (ms as u64, event)));
    }
    told
}

/// The level of one frequency, in dBm0.
fn level_at(law: Law, octets: &[u8], hz: f64) -> f64 {
    let (mut re, mut im) = (0.0, 0.0);
    for (n, &octet) in octets.iter().enumerate() {
        let angle = n as f64 * hz / 8_000.0 * std::f64::consts::TAU;
        re += f64::from(law.decode(octet)) * angle.cos();
        im += f64::from(law.decode(octet)) * angle.sin();
    }
    let amplitude = 2.0 * re.hypot(im) / octets.len() as f64;
    20.0 * (amplitude / f64::from(law.amplitude(0.0))).log10()
}

fn is_silent(law: Law, octets: &[u8]) -> bool {
    octets.iter().all(|&octet| octet == law.idle())
}

/// T.03, T.15, G.12, DT.04 and the like: frequencies and levels within 0.2 dB, cadence to the ms.
#[test]
fn call_progress_tones_are_as_the_packages_say() {
    type Tone = (PackageId, &'static str, [f64; 2], f64, usize, usize);
    let tones: [Tone; 6] = [
        (PackageId::T, "bz", [480.0, 620.0], -24.0, 500, 500),
        (PackageId::T, "ro", [480.0, 620.0], -24.0, 250, 250),
        (PackageId::G, "cg", [480.0, 620.0], -24.0, 250, 250),
        (PackageId::G, "rt", [440.0, 480.0], -19.0, 2_000, 4_000),
        (PackageId::G, "cf", [350.0, 440.0], -13.0, 100, 100),
        (PackageId::BL, "dl", [350.0, 440.0], -13.0, 100, 0),
    ];
    for law in [Law::Mu, Law::A] {
        for (package, name, hz, dbm0, on, off) in tones {
            let mut ds0 = Ds0::new(Settings { law, ..Settings::default() });
            ds0.start_signal(None, signal(package, name), b"").unwrap();
            for _ in 0..2 {
                let octets = listen(&mut ds0, on);
                for hz in hz {
                    let heard = level_at(law, &octets, hz);
                    assert!((heard - dbm0).abs() < 0.3, "{name} {hz} Hz: {heard} dBm0");
                }
                assert!(is_silent(law, &listen(&mut ds0, off)), "{name} pauses");
            }
            ds0.stop_signal(None, signal(package, name));
            assert!(is_silent(law, &listen(&mut ds0, 10)) && ds0.is_idle(), "{name} ends");
        }
    }
}

/// T.04, T.05, T.08 to T.10, T.17: frequencies within 1 Hz.
#[test]
fn test_tones_have_their_frequencies() {
    for (name, hz, dbm0) in [
        ("co1", 2010.0, -12.0),
        ("co2", 1780.0, -12.0),
        ("nm", 1004.0, 0.0),
        ("mm", 1013.8, 0.0),
        ("om", 1000.0, 0.0),
        ("tl", 2225.0, -10.0),
    ] {
        let mut ds0 = Ds0::new(Settings::default());
        ds0.start_signal(None, signal(PackageId::T, name), b"").unwrap();
        let octets = listen(&mut ds0, 1_000);
        let heard = [hz - 1.0, hz, hz + 1.0].map(|hz| level_at(Law::Mu, &octets, hz));
        assert!((heard[1] - dbm0).abs() < 0.2 && heard[0] < dbm0 - 20.0 && heard[2] < dbm0 - 20.0, "{name}: {heard:?}");
    }
}

/// T.16, T.18, T.19.
#[test]
fn information_tones_and_patterns() {
    let mut ds0 = Ds0::new(Settings::default());
    ds0.start_signal(None, signal(PackageId::T, "sit"), b"6").unwrap();
    for (hz, ms) in [(985.2, 380), (1370.6, 274), (1776.7, 380)] {
        let heard = level_at(Law::Mu, &listen(&mut ds0, ms), hz);
        assert!((heard + 24.0).abs() < 0.2, "{hz} Hz: {heard} dBm0");
    }
    assert!(is_silent(Law::Mu, &listen(&mut ds0, 1_000)));
    listen(&mut ds0, 1);
    assert!(ds0.is_idle(), "it is played once");
    ds0.start_signal(None, signal(PackageId::T, "tp"), b"").unwrap();
    assert_eq!(listen(&mut ds0, 1), [95; 8]);
    ds0.stop_signal(None, signal(PackageId::T, "tp"));
    ds0.start_signal(None, signal(PackageId::T, "tp"), b"200").unwrap();
    assert_eq!(listen(&mut ds0, 1), [200; 8]);
    assert!(ds0.start_signal(None, signal(PackageId::T, "as"), b"").is_err(), "it has no sound");
}

/// What one DS0 sends as digits, another one hears, at -20 dB and with noise as well.
#[test]
fn digits_are_heard_as_they_were_sent() {
    let keys: &[u8] = b"0123456789*#ABCD";
    let mf = [MfDigit::KP, b'1', b'2', b'3', b'4', b'5', b'6', b'7', b'8', b'9', b'0', MfDigit::ST];
    for law in [Law::Mu, Law::A] {
        for (kind, symbols) in [(DigitKind::Dtmf, keys), (DigitKind::Mf, &mf[..])] {
            for quieter in [1, 10] {
                let settings = Settings { law, ..Settings::default() };
                let mut sender = Ds0::new(settings);
                let mut digits = Digits::NONE;
                symbols.iter().for_each(|&symbol| assert!(digits.push(symbol)));
                assert!(sender.send_digits(kind, digits));
                let octets = listen(&mut sender, symbols.len() * 150);
                assert_eq!(sender.poll(), Some(Event::Sent));
                let mut rng = Rng::new(5);
                let noise = law.amplitude(-50.0);
                let mut noisy = |octet: u8| {
                    let noise = (rng.below(2_001) as f32 - 1_000.0) / 1_000.0 * noise;
                    law.encode(i32::from(law.decode(octet)) / quieter + noise as i32)
                };
                let mut hearer = Ds0::new(settings);
                hearer.listen(Some(kind));
                let told = put(&mut hearer, octets.into_iter().map(&mut noisy));
                let began = |(_, event): &(u64, Event)| match event {
                    Event::Digit { symbol, on: true, .. } => Some(*symbol),
                    _ => None,
                };
                assert_eq!(told.iter().filter_map(began).collect::<Vec<u8>>(), symbols, "{law:?} {kind:?}");
                assert_eq!(told.len(), 2 * symbols.len(), "each ends");
            }
        }
    }
}

/// PKG-01: whatever a DS0 without signalling can be asked to play it plays, and D/T is silent: a timer and nothing else (D.22). G/rbk is
/// G/rt on a connection by the time it gets here, T/as and T/bl are of lines, and of SL its members.
#[test]
fn every_signal_of_a_trunk_can_be_played() {
    let elsewhere = ["G/rbk", "G/pat", "T/as", "T/bl", "SL/s"];
    let mut played = 0;
    for &package in packages(ChannelKind::Clear) {
        for signal in package.items().filter(|item| item.signal().is_some()) {
            let name = format!("{signal:?}");
            let parameters: &[u8] = match name.as_str() {
                "T/sit" => b"2",
                "T/ct" => b"in=co1,out=co2",
                "D/DD" | "D/DO" => b"dg=5",
                _ => b"",
            };
            let mut ds0 = Ds0::new(Settings::default());
            assert!(ds0.open(Time::ZERO, 0, &media(Mode::SendRecv, 0), 1));
            let connection = (package == PackageId::R).then_some(0);
            let begun = ds0.start_signal(connection, signal, parameters);
            assert_eq!(begun.is_ok(), !elsewhere.contains(&name.as_str()), "{name}");
            played += u32::from(begun.is_ok());
        }
    }
    assert!(played > 40, "{played}");
    let mut ds0 = Ds0::new(Settings::default());
    ds0.start_signal(None, signal(PackageId::D, "T"), b"to=5000").unwrap();
    assert!(is_silent(Law::Mu, &listen(&mut ds0, 100)));
}

fn progress(told: &[(u64, Event)]) -> Vec<Progress> {
    told.iter().filter_map(|(_, event)| if let Event::Progress(progress) = event { Some(*progress) } else { None }).collect()
}

/// What one DS0 plays as this signal, an agent of another one is told, with noise and 10 dB weaker too.
fn heard_of(law: Law, package: PackageId, name: &str, parameters: &[u8], quieter: i32, ms: usize) -> Vec<Progress> {
    let settings = Settings { law, ..Settings::default() };
    let mut sender = Ds0::new(settings);
    sender.start_signal(None, signal(package, name), parameters).unwrap();
    let octets = listen(&mut sender, ms);
    let mut rng = Rng::new(5);
    let noise = law.amplitude(-50.0);
    let noisy = octets.into_iter().map(|octet| {
        let noise = (rng.below(2_001) as f32 - 1_000.0) / 1_000.0 * noise;
        if quieter == 0 { octet } else { law.encode(i32::from(law.decode(octet)) / quieter + noise as i32) }
    });
    let mut hearer = Ds0::new(settings);
    let all = [Sounds::REORDER, Sounds::INFORMATION, Sounds::NO_CIRCUIT, Sounds::PATTERN, Sounds::FAX].into_iter().collect();
    hearer.watch(Wanted { others: all, ..Wanted::default() });
    progress(&put(&mut hearer, noisy))
}

/// T.15, T.16, T.18, T.19: reorder, each special information tone and a pattern are told of once while they last; what is like them is not.
#[test]
fn progress_tones_and_patterns_are_heard() {
    for law in [Law::Mu, Law::A] {
        for quieter in [1, 3] {
            for number in 1..=7u8 {
                let told = heard_of(law, PackageId::T, "sit", &[b'0' + number], quieter, 2_500);
                assert_eq!(told, [Progress::Information(number)], "{law:?} {quieter}");
            }
            assert_eq!(heard_of(law, PackageId::T, "zz", b"", quieter, 2_500), [Progress::Information(2)]);
            let told = heard_of(law, PackageId::T, "ro", b"", quieter, 3_000);
            assert!(!told.is_empty() && told.iter().all(|one| *one == Progress::Reorder), "{told:?}");
            for other in ["bz", "co1", "co2", "nm", "tl"] {
                assert_eq!(heard_of(law, PackageId::T, other, b"", quieter, 3_000), [], "{other}");
            }
            for other in ["rt", "it", "pt", "cf"] {
                assert_eq!(heard_of(law, PackageId::G, other, b"", quieter, 7_000), [], "{other}");
            }
        }
        assert_eq!(heard_of(law, PackageId::T, "tp", b"", 0, 1_000), [Progress::Pattern(95)]);
        assert_eq!(heard_of(law, PackageId::T, "tp", b"200", 0, 1_000), [Progress::Pattern(200)]);
        assert_eq!(heard_of(law, PackageId::T, "tp", b"200", 0, 90), [], "too short");
    }
}

/// Talk-off: a minute of something like a voice, and of noise, are no tone that goes on in any way.
#[test]
fn a_voice_is_no_progress_tone() {
    let all = [Sounds::REORDER, Sounds::INFORMATION, Sounds::NO_CIRCUIT, Sounds::PATTERN, Sounds::FAX].into_iter().collect();
    let mut rng = Rng::new(21);
    let mut uniform = move || rng.below(2_001) as f64 / 1_000.0 - 1.0;
    let mut hearer = Ds0::new(Settings::default());
    hearer.watch(Wanted { others: all, ..Wanted::default() });
    let (mut phase, mut left) = (0.0f64, 0);
    let (mut pitch, mut formants, mut voiced, mut loud) = (120.0, [500.0, 1_500.0], true, 0.0);
    let octets = (0..60 * 8_000).map(|_| {
        if left == 0 {
            left = 400 + (uniform().abs() * 2_000.0) as usize;
            (pitch, voiced) = (160.0 + 80.0 * uniform(), uniform() > -0.5);
            formants = [550.0 + 250.0 * uniform(), 1_600.0 + 500.0 * uniform()];
            loud = f64::from(Law::Mu.amplitude(-15.0)) * (0.6 + 0.4 * uniform());
        }
        left -= 1;
        phase += pitch / 8_000.0 * std::f64::consts::TAU;
        let near = |hz: f64| formants.iter().map(|formant| (-((hz - formant) / 200.0).powi(2)).exp()).sum::<f64>();
        let value = match voiced {
            true => (1..=20).map(|n| near(pitch * f64::from(n)) * (phase * f64::from(n)).sin()).sum::<f64>() / 2.0,
            false => uniform() / 4.0,
        };
        Law::Mu.encode((value * loud) as i32)
    });
    assert_eq!(progress(&put(&mut hearer, octets)), []);
}

/// G.03: the flags that a fax sends at 300 bit/s on the upper channel of V.21 before it says anything.
#[test]
fn the_preamble_of_a_fax_is_heard() {
    for (dbm0, ms, expected) in [(-13.0, 1_000, 1), (-30.0, 1_000, 1), (-13.0, 250, 0)] {
        let (mut phase, amplitude) = (0.0f64, f64::from(Law::Mu.amplitude(dbm0)));
        let octets: Vec<u8> = (0..ms * 8)
            .map(|n| {
                let bit = [false, true, true, true, true, true, true, false][n * 300 / 8_000 % 8];
                phase += (if bit { 1_650.0 } else { 1_850.0 }) / 8_000.0 * std::f64::consts::TAU;
                Law::Mu.encode((phase.sin() * amplitude) as i32)
            })
            .collect();
        let mut hearer = Ds0::new(Settings::default());
        hearer.watch(Wanted { others: Sounds::FAX, ..Wanted::default() });
        let told = progress(&put(&mut hearer, octets));
        assert_eq!(told, vec![Progress::Preamble; expected], "{dbm0} dBm0, {ms} ms");
    }
}

/// Q.24: 40 ms are a key, 20 ms are none; 10 ms of silence do not make two of one.
#[test]
fn short_tones_are_no_keys_and_short_breaks_make_no_two() {
    let key = |ms: usize| {
        let (mut low, mut high) = (sine(Law::Mu, 770.0, -8.0), sine(Law::Mu, 1336.0, -8.0));
        let sum = move |n: u64| Law::Mu.encode(i32::from(Law::Mu.decode(low(n))) + i32::from(Law::Mu.decode(high(n))));
        (0..ms as u64 * 8).map(sum)
    };
    let idle = |ms: usize| std::iter::repeat_n(0xff, ms * 8);
    let count = |octets: Vec<u8>| {
        let mut ds0 = Ds0::new(Settings::default());
        ds0.listen(Some(DigitKind::Dtmf));
        put(&mut ds0, octets).iter().filter(|(_, event)| matches!(event, Event::Digit { symbol: b'5', on: true, .. })).count()
    };
    for lead in 0..13 {
        assert_eq!(count(idle(lead).chain(key(40)).chain(idle(60)).collect()), 1, "after {lead} ms");
        assert_eq!(count(idle(lead).chain(key(20)).chain(idle(60)).collect()), 0, "after {lead} ms");
        assert_eq!(count(idle(lead).chain(key(50)).chain(idle(10)).chain(key(50)).chain(idle(60)).collect()), 1);
        assert_eq!(count(idle(lead).chain(key(50)).chain(idle(45)).chain(key(50)).chain(idle(60)).collect()), 2);
    }
}

/// Talk-off: what has other frequencies, a wrong twist or too much else in it is no key.
#[test]
fn what_is_like_a_key_is_none() {
    let hears = |waves: &[(f64, f32)]| {
        let mut sources: Vec<_> = waves.iter().map(|&(hz, dbm0)| sine(Law::Mu, hz, dbm0)).collect();
        let octets = (0..1_600).map(|n| {
            let sum = sources.iter_mut().map(|source| i32::from(Law::Mu.decode(source(n)))).sum::<i32>();
            Law::Mu.encode(sum)
        });
        let mut ds0 = Ds0::new(Settings::default());
        ds0.listen(Some(DigitKind::Dtmf));
        !put(&mut ds0, octets).is_empty()
    };
    assert!(hears(&[(770.0, -10.0), (1336.0, -10.0)]));
    for off in [0.985, 1.015] {
        assert!(hears(&[(941.0 * off, -10.0), (1477.0 * off, -10.0)]), "1.5 % off");
    }
    for off in [0.965, 1.035] {
        assert!(!hears(&[(941.0 * off, -10.0), (1477.0 * off, -10.0)]), "3.5 % off");
    }
    assert!(hears(&[(770.0, -16.0), (1336.0, -13.0)]) && hears(&[(770.0, -10.0), (1336.0, -17.0)]));
    assert!(!hears(&[(770.0, -16.0), (1336.0, -10.0)]) && !hears(&[(770.0, -8.0), (1336.0, -18.0)]));
    assert!(!hears(&[(770.0, -10.0)]) && !hears(&[(770.0, -45.0), (1336.0, -45.0)]));
    assert!(!hears(&[(770.0, -10.0), (1336.0, -10.0), (1209.0, -12.0)]), "two columns");
    assert!(!hears(&[(770.0, -10.0), (1336.0, -10.0), (300.0, -9.0), (2_400.0, -9.0)]), "voice over it");
    assert!(!hears(&[(350.0, -13.0), (440.0, -13.0)]) && !hears(&[(480.0, -24.0), (620.0, -24.0)]), "call progress");
}

/// T.04, T.05, T.08 to T.10: 30 Hz off and no more; the milliwatts are kept apart.
#[test]
fn single_tones_are_told_by_their_frequency() {
    let all = [SingleTone::Co1, SingleTone::Co2, SingleTone::OldMilliwatt, SingleTone::NewMilliwatt, SingleTone::NewestMilliwatt];
    let tones = all.into_iter().chain([SingleTone::TestLine, SingleTone::Answer]).fold(SingleTones::NONE, SingleTones::with);
    for law in [Law::Mu, Law::A] {
        for (hz, heard) in [
            (2010.0, Some(SingleTone::Co1)),
            (1981.0, Some(SingleTone::Co1)),
            (2039.0, Some(SingleTone::Co1)),
            (1972.0, None),
            (2048.0, None),
            (1780.0, Some(SingleTone::Co2)),
            (1751.0, Some(SingleTone::Co2)),
            (1809.0, Some(SingleTone::Co2)),
            (1820.0, None),
            (1000.0, Some(SingleTone::OldMilliwatt)),
            (1004.0, Some(SingleTone::NewMilliwatt)),
            (1013.8, Some(SingleTone::NewestMilliwatt)),
            (2225.0, Some(SingleTone::TestLine)),
            (2100.0, Some(SingleTone::Answer)),
            (1500.0, None),
        ] {
            let mut ds0 = Ds0::new(Settings { law, ..Settings::default() });
            ds0.watch(Wanted { tones, ..Wanted::default() });
            let mut source = sine(law, hz, -15.0);
            let told = put(&mut ds0, (0..2_400).map(&mut source).chain([law.idle(); 800]));
            let told: Vec<_> = told.iter().map(|(_, event)| *event).collect();
            let expected = |tone| [true, false].map(|on| Event::Tone { connection: None, tone, on }).to_vec();
            assert_eq!(told, heard.map(expected).unwrap_or_default(), "{hz} Hz");
        }
    }
}

/// COT-05, COT-06: conttest and T/ct answer one tone with the other, and stop when it stops. G-MOD-04.
#[test]
fn a_transponder_answers_with_the_other_tone() {
    type Begin = fn(&mut Ds0);
    let begins: [(Begin, f64, f64); 3] = [
        (|ds0| assert!(ds0.open(Time::ZERO, 0, &media(Mode::ContinuityTest, 0), 1)), 2010.0, 1780.0),
        (|ds0| ds0.start_signal(None, signal(PackageId::T, "ct"), b"+,in=co1,out=co2").unwrap(), 2010.0, 1780.0),
        (|ds0| ds0.start_signal(None, signal(PackageId::T, "ct"), b"in=co2,out=co1").unwrap(), 1780.0, 2010.0),
    ];
    for (begin, go, back) in begins {
        let mut ds0 = Ds0::new(Settings::default());
        begin(&mut ds0);
        let mut run = |source: &mut dyn FnMut(u64) -> u8, ms: u64| {
            let mut all = Vec::new();
            for step in 0..ms {
                let mut octets: Vec<u8> = (step * 8..step * 8 + 8).map(&mut *source).collect();
                ds0.exchange(Time::ZERO, &mut octets, &mut never);
                all.extend(octets);
            }
            all
        };
        let answer = run(&mut sine(Law::Mu, go, -12.0), 300);
        assert!(is_silent(Law::Mu, &answer[..300]) && level_at(Law::Mu, &answer[1_600..], back) > -12.5, "{go} Hz");
        let after = run(&mut |_| 0xff, 200);
        assert!(is_silent(Law::Mu, &after[400..]), "the answer ends 50 ms after the tone at the latest");
        let other = run(&mut sine(Law::Mu, back, -12.0), 300);
        assert!(is_silent(Law::Mu, &other), "the other tone is not answered");
    }
}

/// O35: a continuity test that begins with its connection: the tone goes out on the trunk at once, it is heard when the far end
/// returns it, and no packet leaves as long as the mode is conttest. The far end's own connection, in mode loopback, returns it.
#[test]
fn o35_the_go_tone_comes_back_and_no_packet_leaves() {
    let (mut tested, mut looped) = (Ds0::new(Settings::default()), Ds0::new(Settings::default()));
    tested.open(Time::ZERO, 0, &media(Mode::ContinuityTest, 0), 1);
    tested.start_signal(None, signal(PackageId::T, "co1"), b"").unwrap();
    tested.watch(Wanted { tones: SingleTones::NONE.with(SingleTone::Co1), ..Wanted::default() });
    looped.open(Time::ZERO, 0, &media(Mode::Loopback, 0), 2);
    let no_voice = |_: u32, _: SocketAddr, kind: Kind, _: &[u8]| assert_eq!(kind, Kind::Rtcp, "no RTP");
    let mut octets = [0xff; 8];
    let (mut sent, mut back) = (Vec::new(), Vec::new());
    for step in 0..400 {
        tested.exchange(Time::from_millis(step), &mut octets, &mut { no_voice });
        sent.extend(octets);
        looped.exchange(Time::from_millis(step), &mut octets, &mut { no_voice });
        back.extend(octets);
    }
    assert!((level_at(Law::Mu, &sent[..1_600], 2010.0) + 12.0).abs() < 0.5 && sent == back, "2010 Hz go and come");
    assert_eq!(tested.poll(), Some(Event::Tone { connection: None, tone: SingleTone::Co1, on: true }));
    looped.close(Time::from_millis(1_000), 0, &mut never);
    looped.exchange(Time::from_millis(1_000), &mut octets, &mut never);
    assert!(is_silent(Law::Mu, &octets), "the loop is removed");
}

/// COT-07, COT-11: while T/lb is on, the circuit hears itself and nothing passes between it and packets.
#[test]
fn a_loop_that_is_ordered_cuts_the_packets_off() {
    let mut ds0 = Ds0::new(Settings::default());
    ds0.open(Time::ZERO, 0, &media(Mode::SendRecv, 0), 1);
    ds0.start_signal(None, signal(PackageId::T, "lb"), b"+").unwrap();
    for step in 0..100 {
        let mut octets = [0x42; 8];
        ds0.exchange(Time::from_millis(step), &mut octets, &mut |_, _, _, _| panic!("a packet"));
        assert_eq!(octets, [0x42; 8]);
    }
    ds0.stop_signal(None, signal(PackageId::T, "lb"));
    let mut sent = 0;
    for step in 100..200 {
        ds0.exchange(Time::from_millis(step), &mut [0x42; 8], &mut |_, _, _, _| sent += 1);
    }
    assert_eq!(sent, 5);
}

/// G-SIG-11, SIG-12: what is played on the endpoint does not reach a connection; G-SIG-12: what is played on a connection goes out
/// in every mode.
#[test]
fn signals_go_where_they_were_put() {
    let ringback = signal(PackageId::G, "rt");
    for mode in Mode::ALL {
        let mut ds0 = Ds0::new(Settings::default());
        ds0.open(Time::ZERO, 0, &media(mode, 0), 1);
        let run = |ds0: &mut Ds0| {
            let (mut line, mut packets) = (Vec::new(), Vec::new());
            for step in 0..400 {
                let mut octets = [0xff; 8];
                ds0.exchange(Time::from_millis(step), &mut octets, &mut |_, _, _, packet| packets.extend_from_slice(&packet[12..]));
                line.extend(octets);
            }
            (line, packets)
        };
        ds0.start_signal(None, ringback, b"").unwrap();
        let (line, packets) = run(&mut ds0);
        assert!(level_at(Law::Mu, &line, 440.0) > -20.0 && is_silent(Law::Mu, &packets), "{mode:?}");
        ds0.stop_signal(None, ringback);
        ds0.start_signal(Some(0), ringback, b"").unwrap();
        let (line, packets) = run(&mut ds0);
        assert!(is_silent(Law::Mu, &line) && level_at(Law::Mu, &packets, 440.0) > -20.0, "{mode:?}");
        assert!(ds0.start_signal(Some(7), ringback, b"").is_err());
    }
}

/// COT-13: netwloop returns what came, netwtest answers it, and neither reaches the circuit.
#[test]
fn loops_of_the_network_side() {
    for (mode, back) in [(Mode::NetworkLoop, 2010.0), (Mode::NetworkTest, 1780.0)] {
        let mut world =
            world::World::new(4, world::Network::default(), [Settings::default(); 2], [media(Mode::SendRecv, 0), media(mode, 0)], 0);
        world.feed(0, sine(Law::Mu, 2010.0, -12.0));
        world.run(1_000);
        assert!(level_at(Law::Mu, &world.sides[0].heard[4_000..], back) > -12.5, "{mode:?}");
        assert!(is_silent(Law::Mu, &world.sides[1].heard));
    }
}

/// R.01, R.02: tones that come from a far end are told of on its connection.
#[test]
fn tones_from_the_far_end_are_heard_on_the_connection() {
    let mut world = world::World::new(5, world::Network::default(), [Settings::default(); 2], [media(Mode::SendRecv, 0); 2], 0);
    let far_tones = SingleTones::NONE.with(SingleTone::Co1);
    world.sides[1].ds0.watch(Wanted { far_tones, ..Wanted::default() });
    world.feed(0, sine(Law::Mu, 2010.0, -12.0));
    world.run(500);
    world.feed(0, |_| 0xff);
    world.run(500);
    let told: Vec<Event> = std::iter::from_fn(|| world.sides[1].ds0.poll()).filter(|event| matches!(event, Event::Tone { .. })).collect();
    assert_eq!(told, [true, false].map(|on| Event::Tone { connection: Some(0), tone: SingleTone::Co1, on }));
}

/// The time-out of media never comes before the far end has sent, nor while it is not to send; and R/rto as it was asked for.
#[test]
fn a_silent_far_end_is_told_of() {
    let settings = Settings { time_out: Duration::from_secs(5), ..Settings::default() };
    let timed_out = |mode: Mode, packet: bool| {
        let mut ds0 = Ds0::new(settings);
        ds0.open(Time::ZERO, 0, &media(mode, 0), 1);
        if packet {
            ds0.packet(Time::ZERO, 0, remote(0), Kind::Rtp, &[&[0x80; 12][..], &[0xff; 160]].concat());
            ds0.packet(Time::ZERO, 0, remote(0), Kind::Rtp, &[&[0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9][..], &[0xff; 160]].concat());
        }
        let mut at = Vec::new();
        for step in 0..60_000 {
            ds0.exchange(Time::from_millis(step), &mut [0xff; 8], &mut never);
            let told = |event| if let Event::TimedOut { again, .. } = event { Some((step, again)) } else { None };
            at.extend(std::iter::from_fn(|| ds0.poll()).filter_map(told));
        }
        at
    };
    // Who is told may be unable to act on it, so it is told again while nothing comes.
    let told = timed_out(Mode::SendRecv, true);
    assert!((11..=12).contains(&told.len()) && (5_000..5_200).contains(&told[0].0) && (10_000..10_400).contains(&told[1].0), "{told:?}");
    assert!(told.iter().enumerate().all(|(nth, (_, again))| *again == (nth > 0)), "{told:?}");
    assert!(timed_out(Mode::SendRecv, false).is_empty() && timed_out(Mode::RecvOnly, true).is_empty());

    let mut ds0 = Ds0::new(Settings::default());
    ds0.open(Time::ZERO, 0, &media(Mode::Inactive, 0), 1);
    ds0.measure(Time::ZERO, 0, Measure::Silence { seconds: 3, after_report: false });
    let told = put(&mut ds0, std::iter::repeat_n(0xff, 80_000));
    assert_eq!(told.len(), 1, "one shot");
    assert!((3_000..3_200).contains(&told[0].0) && told[0].1 == Event::Silent { connection: 0, seconds: 3 });
    ds0.measure(Time::ZERO, 0, Measure::Silence { seconds: 3, after_report: true });
    assert!(put(&mut ds0, std::iter::repeat_n(0xff, 80_000)).is_empty(), "not before the first report");
}
