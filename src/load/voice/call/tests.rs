//! Calls whose commands are refused, come to nothing or are answered late.

use super::*;
use std::net::{Ipv4Addr, SocketAddr};

/// A call between two channels without trunks, and a desk with room for so many commands at the one gateway.
struct Bench {
    pair: Pair,
    plan: Plan,
    desk: Desk,
    places: Places,
    tally: Tally,
    rng: Rng,
    pace: Pace,
}

impl Bench {
    fn new(limit: usize) -> Bench {
        let (here, mut rng) = (SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Rng::new(1));
        let mut digits = Digits::NONE;
        assert!(digits.push(b'1'));
        let plan = Plan {
            coding: "PCMU",
            signal: Signal::Tone,
            period_ms: 20,
            srtp: false,
            hold: Duration::from_secs(1),
            digits: Some(digits),
            impairment: Impairment { loss: 0.0, jitter: Duration::ZERO },
            addresses: [here.ip(); 2],
            until: Time::from_millis(60_000),
            cut: false,
        };
        let ends = [0, 1].map(|channel| (0, 0, channel, format!("ds/ds1-1/{}@gw", channel + 1)));
        let desk = Desk::open(here, &[here], limit, &mut rng).unwrap();
        Bench {
            pair: Pair::new(3, Time::ZERO, ends),
            plan,
            desk,
            places: Places::new(),
            tally: Tally::default(),
            rng,
            pace: Pace::new(Duration::ZERO),
        }
    }

    fn with(&mut self, act: impl FnOnce(&mut Pair, &mut Room<'_>)) {
        let Bench { pair, plan, desk, places, tally, rng, pace } = self;
        act(pair, &mut Room { plan, desk, trunks: &mut [], places, tally, rng, pace, recorder: None });
    }

    fn answer(&mut self, token: u32, verb: Verb, code: u16) {
        let answer = Answer { verb: Some(verb), code, connection: Some("1".into()), ..Answer::default() };
        self.with(|pair, room| pair.take(Time::ZERO, &News::Final(token, answer), room));
    }

    /// Answers what the stage waits for at this side.
    fn answer_side(&mut self, side: usize, verb: Verb, code: u16) {
        self.answer(self.pair.token_of(side), verb, code);
    }
}

/// The answer to a request that was given up because the other side refused its own is no answer to the deletion that follows.
#[test]
fn an_answer_of_an_earlier_stage_answers_nothing_of_this_one() {
    let mut bench = Bench::new(64);
    bench.with(|pair, room| pair.step(Time::ZERO, room));
    for (side, verb) in [(0, Verb::Dlcx), (1, Verb::Dlcx), (0, Verb::Crcx), (1, Verb::Crcx), (0, Verb::Mdcx)] {
        bench.answer_side(side, verb, 200);
    }
    assert_eq!((bench.pair.stage, bench.pair.waits), (Stage::Asking, 2));
    let late = bench.pair.token_of(1);
    bench.answer_side(0, Verb::Rqnt, 400);
    assert_eq!((bench.pair.stage, bench.pair.waits), (Stage::Ending, 2));
    bench.answer(late, Verb::Rqnt, 200);
    bench.answer_side(0, Verb::Dlcx, 250);
    assert_eq!((bench.pair.stage, bench.pair.waits), (Stage::Ending, 1), "the other connection is not deleted yet");
    bench.answer_side(1, Verb::Dlcx, 250);
    assert_eq!(bench.pair.stage, Stage::Again);
}

/// Who ends the load ends the calls that are up, and what had no time to say anything is not judged.
#[test]
fn a_call_that_is_cut_ends_at_once_and_fails_nothing() {
    for (talked_ms, cut, judged) in [(None, 1, 0), (Some(300), 1, 0), (Some(2_000), 0, 1)] {
        let mut bench = Bench::new(64);
        (bench.plan.digits, bench.plan.hold) = (None, Duration::from_secs(600));
        bench.with(|pair, room| pair.step(Time::ZERO, room));
        for (side, verb) in [(0, Verb::Dlcx), (1, Verb::Dlcx), (0, Verb::Crcx), (1, Verb::Crcx), (0, Verb::Mdcx)] {
            bench.answer_side(side, verb, 200);
        }
        assert_eq!(bench.pair.stage, Stage::Settling);
        let mut now = bench.pair.due;
        if let Some(ms) = talked_ms {
            bench.with(|pair, room| pair.step(now, room));
            assert_eq!(bench.pair.stage, Stage::Talking);
            now += Duration::from_millis(ms);
        }
        (bench.plan.cut, bench.plan.until) = (true, now);
        bench.with(|pair, room| pair.step(now, room));
        bench.with(|pair, room| pair.step(now, room));
        assert_eq!(bench.pair.stage, Stage::Ending, "{talked_ms:?}");
        bench.answer_side(0, Verb::Dlcx, 250);
        bench.answer_side(1, Verb::Dlcx, 250);
        let report = bench.tally.json();
        assert_eq!((&report["cut"], &report["calls"]), (&cut.into(), &judged.into()), "{talked_ms:?}: {report}");
    }
}

#[test]
fn calls_begin_at_their_rate_and_none_is_made_up_for() {
    let mut pace = Pace::new(Duration::from_millis(100));
    let mut begun = |range: std::ops::Range<u64>| range.filter(|ms| pace.begin(Time::from_millis(*ms)).is_ok()).count();
    // The first may be as late as one interval, and the second follows it then.
    assert_eq!(begun(1_000..2_000), 11);
    assert_eq!(begun(5_000..6_000), 11);
}

/// A command there is no room for is not waited for: the call goes on, or is begun anew, and ends.
#[test]
fn a_command_that_was_not_sent_is_not_waited_for() {
    let mut bench = Bench::new(1);
    bench.with(|pair, room| pair.step(Time::ZERO, room));
    assert_eq!((bench.pair.stage, bench.pair.waits), (Stage::Clearing, 1), "there was room for one of two");
    // That one is never answered at the desk, so there is room for none.
    bench.answer_side(0, Verb::Dlcx, 250);
    assert_eq!((bench.pair.stage, bench.pair.waits), (Stage::Offering, 0));
    for ms in (0..120_000).step_by(100) {
        bench.with(|pair, room| pair.step(Time::from_millis(ms), room));
    }
    assert!(bench.pair.is_over(), "{:?}", bench.pair.stage);
}
