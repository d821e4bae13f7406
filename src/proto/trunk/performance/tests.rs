use super::*;
use crate::proto::base::Rng;

const CLEAR: Duration = Duration::from_secs(10);

fn at(seconds: f64) -> Time {
    Time((seconds * 1e9) as u64)
}

fn severe() -> Violations {
    Violations { path: 320, ..Violations::default() }
}

/// A facility whose second `n` had `violations(n)`, read when all of `seconds` are counted.
fn play(signal: Signal, seconds: u32, violations: impl Fn(u32) -> Violations) -> History {
    let mut facility = Performance::new(Time::ZERO, signal);
    for second in 0..seconds {
        facility.count(at(f64::from(second) + 0.5), &violations(second));
    }
    facility.read(at(f64::from(seconds) + 10.0)).clone()
}

/// `(seconds, severe?)` runs of an ESF signal.
fn runs(runs: &[(u32, bool)]) -> Counts {
    let all: Vec<bool> = runs.iter().flat_map(|(seconds, severe)| vec![*severe; *seconds as usize]).collect();
    let history = play(Signal::Esf, all.len() as u32, |n| if all[n as usize] { severe() } else { Violations::default() });
    history.current().0
}

#[test]
fn nine_severely_errored_seconds_are_available_time() {
    // T1P-09, test vector (a)
    let counts = runs(&[(9, true), (20, false)]);
    assert_eq!((counts.es, counts.ses, counts.uas, counts.pcv), (9, 9, 0, 9 * 320));
}

#[test]
fn ten_severely_errored_seconds_are_unavailable_from_the_first() {
    // T1P-09, T1P-13, test vector (b)
    let counts = runs(&[(5, false), (10, true), (20, false)]);
    assert_eq!(counts, Counts { uas: 10, ..Counts::default() });
}

#[test]
fn a_failure_makes_unavailable_from_the_onset_of_its_defect_and_of_what_came_before_it() {
    // T1P-09, test vector (c): LOS at 0, failure at 2.5 s; here three severely errored seconds precede it.
    let mut facility = Performance::new(Time::ZERO, Signal::Esf);
    for second in [17.5, 18.5, 19.5] {
        facility.count(at(second), &severe());
    }
    facility.set(at(20.0), |defect| defect == Defect::LossOfSignal, false, CLEAR);
    facility.set(at(22.5), |defect| defect == Defect::LossOfSignal, true, CLEAR);
    facility.set(at(24.2), |_| false, true, CLEAR);
    facility.set(at(34.2), |_| false, false, CLEAR);
    let (counts, elapsed) = facility.read(at(60.0)).current();
    assert_eq!((elapsed, counts), (50, Counts { uas: 8, ..Counts::default() }), "from 17 to 25");
    assert!(facility.is_available());
}

#[test]
fn a_short_defect_without_failure_counts_as_errors() {
    let mut facility = Performance::new(Time::ZERO, Signal::Esf);
    facility.set(at(1.9), |defect| defect == Defect::Ais, false, CLEAR);
    facility.set(at(3.1), |_| false, false, CLEAR);
    let (counts, _) = facility.read(at(30.0)).current();
    assert_eq!(counts, Counts { es: 3, ses: 3, sefs: 3, ..Counts::default() });
}

#[test]
fn unavailable_time_across_the_edge_of_an_interval_counts_in_both() {
    // T1P-12, test vector (d)
    let history = play(Signal::Esf, 930, |n| if (895..905).contains(&n) { severe() } else { Violations::default() });
    let past: Vec<_> = history.intervals().collect();
    assert_eq!(past, [&Counts { uas: 5, ..Counts::default() }]);
    assert_eq!(history.current(), (Counts { uas: 5, ..Counts::default() }, 30));
}

#[test]
fn nine_clean_seconds_within_unavailable_time_stay_unavailable() {
    // T1P-10, test vector (e)
    let counts = runs(&[(12, true), (9, false), (1, true), (10, false)]);
    assert_eq!(counts, Counts { uas: 22, ..Counts::default() });
    assert_eq!(runs(&[(12, true), (10, false), (3, true), (10, false)]), Counts { uas: 12, es: 3, ses: 3, pcv: 960, ..Counts::default() });
}

#[test]
fn a_failure_that_clears_slowly_is_over_when_it_is_cleared_but_from_where_the_clearing_began() {
    // T1P-10: clearing 20 s. Defects end at 5; the failure is cleared at 25.
    let (mut facility, slow) = (Performance::new(Time::ZERO, Signal::Esf), Duration::from_secs(20));
    facility.set(at(0.0), |defect| defect == Defect::OutOfFrame, false, slow);
    facility.set(at(2.5), |defect| defect == Defect::OutOfFrame, true, slow);
    facility.set(at(5.0), |_| false, true, slow);
    facility.count(at(15.5), &Violations { path: 1, ..Violations::default() });
    facility.set(at(25.001), |_| false, false, slow);
    let (counts, _) = facility.read(at(100.0)).current();
    assert_eq!(counts, Counts { uas: 5, es: 1, pcv: 1, ..Counts::default() });
    assert_eq!(facility.delay(), Duration::from_secs(21));
}

#[test]
fn blocks_that_packets_are_missing_of_count_as_the_document_of_pseudowires_says() {
    // SAT-18: an errored second by one block, a severely errored one by 30 % of them.
    let one = |signal, blocks| {
        let (c, _) = play(signal, 1, |_| Violations { blocks, ..Violations::default() }).current();
        (c.es, c.ses, c.bes, c.pcv)
    };
    for (signal, few, many) in [(Signal::Esf, 99, 100), (Signal::D4, 99, 100), (Signal::E1, 299, 300), (Signal::E1Crc, 299, 300)] {
        assert_eq!((one(signal, 1), one(signal, few), one(signal, many)), ((1, 0, 0, 0), (1, 0, 0, 0), (1, 1, 0, 0)), "{signal:?}");
    }
    let (counts, _) = play(Signal::D4, 30, |n| Violations { blocks: if n < 10 { 100 } else { 0 }, ..Violations::default() }).current();
    assert_eq!((counts.es, counts.uas), (0, 10), "ten of them are unavailable");
}

#[test]
fn a_second_counts_as_its_signal_says() {
    // T1P-01..08, T3P-01..05
    let one = |signal, path, line, c_bit, slips| {
        let history = play(signal, 1, |_| Violations { path, line, c_bit, slips, ..Violations::default() });
        let (c, _) = history.current();
        (c.es, c.ses, c.bes, c.les, c.css, c.ces, c.cses)
    };
    assert_eq!(one(Signal::Esf, 1, 0, 0, 0), (1, 0, 0, 0, 0, 0, 0));
    assert_eq!(one(Signal::Esf, 2, 0, 0, 0), (1, 0, 1, 0, 0, 0, 0));
    assert_eq!(one(Signal::Esf, 319, 1, 0, 1), (1, 0, 1, 1, 1, 0, 0));
    assert_eq!(one(Signal::Esf, 320, 0, 0, 0), (1, 1, 0, 0, 0, 0, 0));
    assert_eq!(one(Signal::Esf, 0, 9999, 0, 0), (0, 0, 0, 1, 0, 0, 0), "line violations alone are no error of the path");
    assert_eq!(one(Signal::Esf, 0, 0, 0, 7), (1, 0, 0, 0, 1, 0, 0), "slips are never severe");
    assert_eq!(one(Signal::D4, 0, 1, 0, 0), (1, 0, 0, 1, 0, 0, 0));
    assert_eq!(one(Signal::D4, 1, 0, 0, 0), (1, 1, 0, 0, 0, 0, 0), "any framing error");
    assert_eq!(one(Signal::D4, 0, 1543, 0, 0).1, 0);
    assert_eq!(one(Signal::D4, 0, 1544, 0, 0).1, 1);
    assert_eq!(one(Signal::E1Crc, 831, 0, 0, 0), (1, 0, 0, 0, 0, 0, 0), "bursts are of ESF");
    assert_eq!(one(Signal::E1Crc, 832, 0, 0, 0).1, 1);
    assert_eq!(one(Signal::E1, 0, 2048, 0, 0).1, 1);
    assert_eq!(one(Signal::T3CBit, 43, 0, 43, 5), (1, 0, 0, 0, 0, 1, 0));
    assert_eq!(one(Signal::T3CBit, 44, 2, 44, 0), (1, 1, 0, 1, 0, 1, 1));
    assert_eq!(one(Signal::T3M23, 44, 0, 44, 0), (1, 1, 0, 0, 0, 0, 0), "M23 has no parity in its C-bits");
}

#[test]
fn a_t3_without_signal_has_line_errored_seconds() {
    // T3P-02
    let mut facility = Performance::new(Time::ZERO, Signal::T3CBit);
    facility.set(at(0.1), |defect| defect == Defect::LossOfSignal, false, CLEAR);
    facility.set(at(0.2), |_| false, false, CLEAR);
    let counts = facility.read(at(11.0)).current().0;
    assert_eq!(counts, Counts { es: 1, ses: 1, sefs: 1, les: 1, ces: 1, cses: 1, ..Counts::default() });
}

#[test]
fn far_end_alarms_and_loops_leave_the_near_end_available() {
    let mut facility = Performance::new(Time::ZERO, Signal::Esf);
    facility.set(at(0.1), |defect| matches!(defect, Defect::RemoteAlarm | Defect::Loopback), false, CLEAR);
    assert_eq!(facility.read(at(100.0)).current(), (Counts::default(), 90));
}

#[test]
fn a_day_is_kept_and_read_in_one_step() {
    // T1P-11
    let mut facility = Performance::new(Time::ZERO, Signal::Esf);
    facility.count(at(3.5), &severe());
    facility.set(at(100.0 * 900.0), |defect| defect == Defect::LossOfSignal, true, CLEAR);
    let history = facility.read(at(100.0 * 900.0 + 10.0 + 95.0 * 900.0));
    assert_eq!((history.intervals().len(), history.current().1), (INTERVALS, 0));
    assert_eq!(history.total(), Counts { uas: 95 * 900, ..Counts::default() }, "the severe second is older than a day");
    assert_eq!(history.intervals().last(), Some(&Counts::default()));
    assert_eq!(facility.read(at(1e9)).total().uas, 96 * 900);
}

#[test]
fn catching_up_in_one_step_counts_what_second_by_second_counts() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let mut lazy = Performance::new(Time::ZERO, Signal::Esf);
        let mut eager = lazy.clone();
        let (mut now, mut second) = (Time::ZERO, 0.0);
        for _ in 0..60 {
            let wait = if rng.below(4) == 0 { rng.below(2_000_000) } else { rng.below(15_000) };
            now += Duration::from_millis(wait);
            while at(second) < now {
                eager.read(at(second));
                second += 1.0;
            }
            let (defect, failed, path) = (rng.below(3) == 0, rng.below(3) == 0, rng.below(600) as u32);
            for facility in [&mut lazy, &mut eager] {
                if path < 400 {
                    facility.count(now, &Violations { path, ..Violations::default() });
                } else {
                    facility.set(now, |d| defect && d == Defect::Ais, failed, CLEAR);
                }
            }
        }
        let end = now + Duration::from_secs(40);
        let (lazy, eager) = (lazy.read(end), eager.read(end));
        assert_eq!(lazy.current(), eager.current(), "seed {seed}");
        assert!(lazy.intervals().eq(eager.intervals()), "seed {seed}");
    }
}
