//! The tables of CAS trunks, line by line: inputs at times, outputs in words.

use super::*;
use crate::proto::cas::Debounced;
use crate::proto::codec::mgcp::ParameterList;
use crate::proto::package::parameters::setup;
use std::time::Duration;

/// A trunk and what it said, in words.
struct Rig {
    trunk: Trunk,
    now: Time,
    times: Times,
    said: Vec<String>,
}

fn wink(kind: ChannelKind) -> Signalling {
    Signalling { kind, wink_start: true, ..Signalling::default() }
}

fn word(output: Output) -> String {
    match output {
        Output::Show(state) | Output::Pulse(state, _) => format!("{state:?}"),
        Output::Send(digits) => {
            let name = |digit: u8| match MfDigit::name(digit) {
                "" => char::from(digit).to_string(),
                name => name.to_owned(),
            };
            format!("send {}", digits.as_slice().iter().map(|&digit| name(digit)).collect::<Vec<_>>().join(","))
        }
        Output::StopSending => "stop".into(),
        Output::Listen(on) => if on { "listen" } else { "deaf" }.into(),
        Output::Event(name, text) if text.is_empty() => name.into(),
        Output::Event(name, text) => format!("{name}({})", String::from_utf8_lossy(text.as_bytes())),
        Output::Ended { signal, failed } => format!("{}({signal})", if failed { "of" } else { "oc" }),
    }
}

impl Rig {
    fn new(signalling: Signalling) -> Rig {
        Rig { trunk: Trunk::new(signalling), now: Time::ZERO, times: Times::default(), said: Vec::new() }
    }

    fn act<T>(&mut self, act: impl FnOnce(&mut Trunk, Time, &Times, Outputs<'_>) -> T) -> T {
        let Rig { trunk, now, times, said } = self;
        act(trunk, *now, times, &mut |output| said.push(word(output)))
    }

    /// Time passes; the machine is called at its deadlines.
    fn wait(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while self.trunk.deadline() <= end {
            self.now = self.trunk.deadline().max(self.now);
            self.act(|trunk, now, times, out| trunk.handle_time(now, times, out));
        }
        self.now = end;
    }

    /// The far end shows a hook, for so long.
    fn far(&mut self, hook: Hook, millis: u64) {
        self.act(|trunk, now, times, out| trunk.handle_hook(now, hook, times, out));
        self.wait(millis);
    }

    fn wink(&mut self) {
        self.far(Hook::Off, 200);
        self.far(Hook::On, 0);
    }

    fn digits(&mut self, symbols: &str) {
        let list = format!("k0,{symbols}");
        for &symbol in Digits::mf(ParameterList::parse(list.as_bytes()).unwrap()).unwrap().as_slice() {
            self.act(|trunk, now, times, out| trunk.handle_digit(now, DigitKind::Mf, symbol, times, out));
            self.wait(136);
        }
    }

    fn sent(&mut self) {
        self.act(|trunk, now, times, out| trunk.handle_sent(now, false, times, out));
    }

    fn order(&mut self, order: Order) -> Result<(), Fault> {
        self.act(|trunk, now, times, out| trunk.handle_order(now, &order, times, out))
    }

    fn set_up(&mut self, parameters: &str) -> Result<(), Fault> {
        let keys = self.trunk.signalling.kind == ChannelKind::CasDtmf;
        self.order(Order::Setup(setup(ParameterList::parse(parameters.as_bytes()).unwrap(), keys).unwrap()))
    }

    /// What was said since the last call, and the state.
    #[track_caller]
    fn says(&mut self, said: &str, state: State) {
        assert_eq!(self.said.join(" "), said);
        assert_eq!(self.trunk.state(), state);
        self.said.clear();
    }
}

const ADDRESS: &str = "addr(k0,5,5,5,s0)";

/// A1, A4, A12, A14 to A18, A21; CAS-06, CAS-07, CAS-16: an outgoing call on a wink-start trunk, the called party hangs up first.
#[test]
fn a_call_goes_out_is_answered_suspended_and_released() {
    let mut rig = Rig::new(wink(ChannelKind::CasMf));
    assert!(rig.trunk.holds("rlc") && !rig.trunk.holds("sup"));
    rig.set_up(ADDRESS).unwrap();
    rig.says("OffHook", State::AwaitWink);
    rig.wait(300);
    rig.wink();
    rig.says("", State::DigitDelay);
    rig.wait(150);
    rig.says("send k0,5,5,5,s0", State::Sending);
    assert!(rig.trunk.holds("sup") && !rig.trunk.holds("rlc"));
    assert_eq!(rig.set_up(ADDRESS), Err(Fault::State), "A20");
    rig.sent();
    rig.says("oc(sup)", State::AwaitAnswer);
    rig.far(Hook::Off, 400);
    rig.says("ans", State::Answered);
    rig.far(Hook::On, 400);
    rig.says("sus", State::Suspended);
    rig.far(Hook::Off, 400);
    rig.says("res", State::Answered);
    rig.far(Hook::On, 400);
    rig.says("sus", State::Suspended);
    rig.order(Order::Release).unwrap();
    rig.says("deaf OnHook rlc", State::Idle);
    assert_eq!(rig.trunk.deadline(), Time::NEVER);
}

/// A2, A15, A21: immediate start; the calling party hangs up first; no `res` after `rel` (CAS-08).
#[test]
fn an_immediate_start_trunk_sends_without_a_wink() {
    let mut rig = Rig::new(Signalling { wink_start: false, ..wink(ChannelKind::CasDtmf) });
    rig.set_up("addr(1,2,#)").unwrap();
    rig.wait(90);
    rig.says("OffHook", State::DigitDelay);
    rig.wait(60);
    rig.says("send 1,2,#", State::Sending);
    rig.sent();
    rig.far(Hook::Off, 400);
    rig.says("oc(sup) ans", State::Answered);
    rig.order(Order::Release).unwrap();
    rig.says("deaf OnHook", State::Releasing);
    assert_eq!(rig.order(Order::Resume), Err(Fault::State));
    rig.far(Hook::On, 200);
    rig.says("rlc", State::Idle);
    // Nobody has answered yet.
    rig.wait(400);
    rig.set_up("addr(1,2,#)").unwrap();
    rig.wait(150);
    rig.sent();
    rig.says("OffHook send 1,2,# oc(sup)", State::AwaitAnswer);
    rig.order(Order::Release).unwrap();
    rig.says("deaf OnHook rlc", State::Idle);
}

/// A3, B7, CAS-10: a trunk that the far end has seized is not seized.
#[test]
fn a_trunk_that_is_off_hook_is_not_seized() {
    let mut rig = Rig::new(wink(ChannelKind::CasMf));
    rig.far(Hook::Off, 1);
    assert_eq!(rig.set_up(ADDRESS), Err(Fault::OffHook));
    rig.says("", State::Idle);
    let mut rig = Rig::new(Signalling { direction: Direction::Outgoing, ..wink(ChannelKind::CasMf) });
    rig.far(Hook::Off, 100);
    rig.says("bl", State::Blocked);
    assert!(rig.trunk.holds("bl"));
    assert_eq!(rig.set_up(ADDRESS), Err(Fault::OffHook));
    rig.far(Hook::On, 200);
    rig.says("rlc", State::Idle);
    let mut rig = Rig::new(Signalling { direction: Direction::Incoming, ..wink(ChannelKind::CasMf) });
    assert_eq!(rig.set_up(ADDRESS), Err(Fault::State));
}

/// A5, A6, CAS-13: the controlling end waits, and goes on when the other gives way.
#[test]
fn the_controlling_end_goes_on_when_the_other_gives_way() {
    let mut rig = Rig::new(wink(ChannelKind::CasMf));
    rig.set_up(ADDRESS).unwrap();
    rig.far(Hook::Off, 400);
    rig.says("OffHook", State::Glare);
    rig.far(Hook::On, 300);
    rig.says("send k0,5,5,5,s0", State::Sending);
}

/// A7, A8, A9: when the other does not give way the call is lost, and the trunk is held until that can not look like a wink.
#[test]
fn glare_that_lasts_loses_the_call() {
    let lost = || {
        let mut rig = Rig::new(wink(ChannelKind::CasMf));
        rig.set_up(ADDRESS).unwrap();
        rig.far(Hook::Off, 4_400);
        rig.says("OffHook of(sup) rel(44)", State::GlareHold);
        rig.order(Order::ReleaseComplete).unwrap();
        rig.says("", State::GlareHold);
        rig
    };
    let mut rig = lost();
    rig.far(Hook::On, 200);
    rig.says("OnHook rlc", State::Idle);
    let mut rig = lost();
    rig.wait(16_000);
    rig.says("deaf OnHook", State::Releasing);
    rig.wait(30_000);
    rig.says("", State::Lockout);
    rig.far(Hook::On, 200);
    rig.says("rlc", State::Idle);
}

/// A10: the yielding end gives its call up and takes the other one, without a wink.
#[test]
fn the_yielding_end_takes_the_other_call() {
    let mut rig = Rig::new(Signalling { yields: true, ..wink(ChannelKind::CasMf) });
    rig.set_up(ADDRESS).unwrap();
    rig.far(Hook::Off, 400);
    rig.says("OffHook OnHook of(sup) rel(44) listen sup", State::Collecting);
    rig.digits("7,s0");
    rig.says("inf(k0,7,s0)", State::AwaitAgent);
}

/// RFC 3064 table 12: what the far end begins on an immediate-start trunk before the first digit, and goes on with, is a seizure of its own, not
/// an answer.
#[test]
fn a_seizure_before_the_first_digit_is_glare() {
    let immediate = Signalling { wink_start: false, ..wink(ChannelKind::CasMf) };
    let seized = |signalling, before| {
        let mut rig = Rig::new(signalling);
        rig.set_up(ADDRESS).unwrap();
        rig.wait(before);
        rig.far(Hook::Off, 0);
        rig
    };
    for before in [20, 130] {
        let mut rig = seized(immediate, before);
        rig.wait(400);
        rig.says("OffHook send k0,5,5,5,s0 stop", State::Glare);
        rig.far(Hook::On, 300);
        rig.says("send k0,5,5,5,s0", State::Sending);
        rig.sent();
        rig.far(Hook::Off, 400);
        rig.says("oc(sup) ans", State::Answered);
        let mut rig = seized(Signalling { yields: true, ..immediate }, before);
        rig.wait(400);
        rig.says("OffHook send k0,5,5,5,s0 stop OnHook of(sup) rel(44) listen sup", State::Collecting);
        // Few digits, which are all gone by then.
        let mut rig = seized(immediate, before);
        rig.wait(200);
        rig.sent();
        rig.wait(200);
        rig.says("OffHook send k0,5,5,5,s0 oc(sup) deaf rel(44)", State::AwaitRelease);
        // A wink that nobody wants, and an answer as soon as the first digit.
        let mut rig = seized(immediate, before);
        rig.wait(200);
        rig.far(Hook::On, 500);
        rig.says("OffHook send k0,5,5,5,s0", State::Sending);
        rig.far(Hook::Off, 400);
        rig.sent();
        rig.says("oc(sup) ans", State::Answered);
    }
}

/// D6, D7: a call that an operator keeps while the caller is on-hook stays up for as long as the operator wants.
#[test]
fn an_operator_keeps_a_call_that_is_on_hold() {
    let mut rig = Rig::new(Signalling { direction: Direction::Outgoing, ..wink(ChannelKind::Operator) });
    rig.set_up("id(k0,1,s0),addr(k0,9,1,1,s2)").unwrap();
    rig.wink();
    rig.wait(150);
    rig.sent();
    rig.far(Hook::Off, 400);
    rig.sent();
    rig.order(Order::Suspend).unwrap();
    rig.said.clear();
    rig.wait(3_600_000);
    rig.says("", State::OnHold);
    rig.far(Hook::On, 400);
    rig.says("deaf rel(0)", State::AwaitRelease);
}

/// `free`, and a span that comes back: a far end that is off-hook has the usual time to hang up; then it counts as one that hangs.
#[test]
fn a_far_end_has_time_to_see_a_reset() {
    for out_of_service in [false, true] {
        let mut rig = Rig::new(wink(ChannelKind::CasMf));
        rig.far(Hook::Off, 1_000);
        if out_of_service {
            rig.act(|trunk, now, times, out| trunk.reset(now, false, times, out));
        }
        rig.act(|trunk, now, times, out| trunk.reset(now, true, times, out));
        rig.said.clear();
        assert_eq!(rig.set_up(ADDRESS), Err(Fault::State));
        rig.wait(29_000);
        rig.says("", State::Releasing);
        rig.wait(1_000);
        rig.says("", State::Lockout);
        rig.far(Hook::On, 200);
        rig.says("rlc", State::Idle);
    }
    // One that holds an idle trunk for calls out goes on blocking it.
    let mut rig = Rig::new(Signalling { direction: Direction::Outgoing, ..wink(ChannelKind::CasMf) });
    rig.far(Hook::Off, 100);
    rig.act(|trunk, now, times, out| trunk.reset(now, true, times, out));
    rig.says("bl stop deaf OnHook", State::Blocked);
}

/// A call behind another one: the far end sees us on-hook in between, for longer than a wink is.
#[test]
fn a_trunk_rests_between_two_calls() {
    let mut rig = Rig::new(wink(ChannelKind::CasMf));
    rig.far(Hook::Off, 100);
    rig.far(Hook::On, 200);
    rig.says("listen sup OffHook OnHook deaf rel(0)", State::AwaitRelease);
    rig.order(Order::ReleaseComplete).unwrap();
    rig.says("deaf", State::Idle);
    rig.set_up(ADDRESS).unwrap();
    rig.wait(399);
    rig.says("", State::Resting);
    rig.wait(1);
    rig.says("OffHook", State::AwaitWink);
    // It is given up before it has begun.
    rig.order(Order::Release).unwrap();
    rig.set_up(ADDRESS).unwrap();
    rig.says("deaf OnHook rlc", State::Resting);
    rig.order(Order::Release).unwrap();
    rig.says("deaf rlc", State::Idle);
    // The far end calls meanwhile: nobody has seized but it.
    rig.set_up(ADDRESS).unwrap();
    rig.wait(390);
    rig.far(Hook::Off, 39);
    rig.says("", State::Resting);
    rig.wait(1);
    rig.says("of(sup) rel(44) listen sup", State::Seized);
    assert!(rig.set_up(ADDRESS).is_err());
    // One that blinks does not.
    let mut rig = Rig::new(wink(ChannelKind::CasMf));
    rig.act(|trunk, now, times, out| trunk.reset(now, true, times, out));
    rig.set_up(ADDRESS).unwrap();
    rig.wait(390);
    rig.far(Hook::Off, 20);
    rig.far(Hook::On, 100);
    rig.says("stop deaf OnHook OffHook", State::AwaitWink);
}

/// A11, A13, C11: no wink, digits that cannot be sent, and an agent that does not complete the release.
#[test]
fn a_call_that_cannot_go_on_is_told_and_released() {
    let mut rig = Rig::new(wink(ChannelKind::CasMf));
    rig.set_up(ADDRESS).unwrap();
    rig.wait(5_000);
    rig.says("OffHook deaf of(sup) rel(111)", State::AwaitRelease);
    rig.order(Order::ReleaseComplete).unwrap();
    rig.says("deaf OnHook", State::Idle);
    rig.wait(400);
    rig.set_up(ADDRESS).unwrap();
    rig.wink();
    rig.wait(200);
    rig.act(|trunk, now, times, out| trunk.handle_sent(now, true, times, out));
    rig.says("OffHook send k0,5,5,5,s0 stop deaf of(sup) rel(111)", State::AwaitRelease);
    rig.wait(60_000);
    rig.says("deaf OnHook rlc", State::Idle);
    // A wink that is too short or too long is none.
    rig.wait(400);
    rig.set_up(ADDRESS).unwrap();
    rig.far(Hook::Off, 60);
    rig.far(Hook::On, 100);
    rig.says("OffHook", State::AwaitWink);
}

/// C1 to C5, C9 to C11; CAS-01: an incoming call; the wink needs nobody, the digits go up to ST or to the time-out.
#[test]
fn a_call_comes_in_is_answered_and_released_by_the_caller() {
    let mut rig = Rig::new(wink(ChannelKind::CasMf));
    rig.far(Hook::Off, 40);
    rig.says("listen sup", State::Seized);
    rig.wait(150);
    rig.says("OffHook", State::Winking);
    rig.wait(200);
    rig.says("OnHook", State::Collecting);
    rig.digits("5,5,5,1,2,3,4,s0");
    rig.says("inf(k0,5,5,5,1,2,3,4,s0)", State::AwaitAgent);
    rig.order(Order::Answer).unwrap();
    rig.says("OffHook deaf", State::Talking);
    rig.order(Order::Suspend).unwrap();
    rig.order(Order::Resume).unwrap();
    rig.says("OnHook OffHook", State::Talking);
    rig.far(Hook::On, 200);
    rig.says("deaf rel(0)", State::AwaitRelease);
    assert!(rig.trunk.holds("sup"));
    rig.order(Order::ReleaseComplete).unwrap();
    rig.says("deaf OnHook", State::Idle);
}

/// C5, C15, C16: what ends without ST, what brings no digits, what is too short to be a call.
#[test]
fn digits_that_stop_or_never_come() {
    let mut rig = Rig::new(wink(ChannelKind::CasMf));
    rig.far(Hook::Off, 30);
    rig.far(Hook::On, 500);
    rig.says("", State::Idle);
    rig.far(Hook::Off, 500);
    rig.said.clear();
    rig.digits("5,5,5");
    rig.wait(4_000);
    rig.says("inf(k0,5,5,5)", State::AwaitAgent);
    // The rest may still come, as a string of its own.
    rig.digits("1,s3");
    rig.says("inf(k0,1,s3)", State::AwaitAgent);
    rig.wait(300_000);
    rig.says("deaf rel(111)", State::AwaitRelease);
    rig.far(Hook::On, 200);
    rig.order(Order::Release).unwrap();
    rig.says("deaf rlc", State::Idle);
    rig.far(Hook::Off, 20_000);
    rig.says("listen sup OffHook OnHook deaf rel(111)", State::AwaitRelease);
}

/// C14, CAS-08: the agent ends the call; the caller stays off-hook for ever; `free` does not lie about that.
#[test]
fn a_far_end_that_hangs_is_locked_out() {
    let mut rig = Rig::new(wink(ChannelKind::CasMf));
    rig.far(Hook::Off, 1_000);
    rig.digits("1,s0");
    rig.order(Order::Answer).unwrap();
    rig.said.clear();
    rig.order(Order::Release).unwrap();
    rig.says("deaf OnHook", State::Releasing);
    rig.wait(30_000);
    rig.says("", State::Lockout);
    assert_eq!(rig.set_up(ADDRESS), Err(Fault::OffHook));
    rig.act(|trunk, now, times, out| trunk.reset(now, true, times, out));
    rig.says("stop deaf OnHook", State::Lockout);
    rig.far(Hook::On, 200);
    rig.says("rlc", State::Idle);
    rig.act(|trunk, now, times, out| trunk.reset(now, false, times, out));
    rig.far(Hook::Off, 200);
    assert_eq!((rig.trunk.state(), rig.set_up(ADDRESS)), (State::Out, Err(Fault::State)));
}

/// B1, B2, B6: a one-way incoming trunk is blocked and given back; a two-way trunk cannot be.
#[test]
fn only_one_way_trunks_are_blocked() {
    let mut rig = Rig::new(Signalling { direction: Direction::Incoming, ..wink(ChannelKind::CasMf) });
    rig.order(Order::Block).unwrap();
    rig.says("OffHook", State::Blocking);
    assert!(rig.trunk.holds("bl"));
    rig.order(Order::Block).unwrap();
    rig.order(Order::Release).unwrap();
    rig.says("OnHook rlc", State::Idle);
    assert_eq!(Rig::new(wink(ChannelKind::CasMf)).order(Order::Block), Err(Fault::State));
}

/// C7, C8, CAS-05: Feature Group D in: country, our wink, identity, address, our acknowledgement.
#[test]
fn feature_group_d_comes_in_over_two_stages() {
    let mut rig = Rig::new(wink(ChannelKind::FeatureGroupD));
    rig.far(Hook::Off, 500);
    rig.digits("1,3,8,9,s0");
    rig.said.clear();
    rig.order(Order::ContinueWink).unwrap();
    rig.wait(200);
    rig.says("OffHook OnHook", State::Collecting);
    rig.digits("0,5,s0");
    rig.digits("5,5,s0");
    rig.says("inf(k0,0,5,s0) inf(k0,5,5,s0)", State::AwaitAgent);
    rig.order(Order::AcknowledgeWink).unwrap();
    assert_eq!(rig.order(Order::AcknowledgeWink), Err(Fault::State));
    rig.wait(200);
    rig.says("OffHook OnHook", State::AwaitAgent);
    rig.order(Order::Answer).unwrap();
}

/// CAS-05, CAS-16: Feature Group D out: EANA, EAIN, and overlapped.
#[test]
fn feature_group_d_goes_out() {
    let mut rig = Rig::new(wink(ChannelKind::FeatureGroupD));
    rig.set_up("ct(nda),addr(k0,1,s0),id(k0,2,s0)").unwrap();
    rig.wink();
    rig.wait(150);
    rig.sent();
    rig.wait(150);
    rig.says("OffHook swk send k0,2,s0 send k0,1,s0", State::Sending);
    rig.sent();
    rig.wink();
    rig.says("oc(sup) awk", State::AwaitAnswer);
    rig.far(Hook::Off, 400);
    rig.says("ans", State::Answered);

    let mut rig = Rig::new(wink(ChannelKind::FeatureGroupD));
    rig.set_up("ct(nta),ca(k0,3,s0),id(k0,2,s0)").unwrap();
    rig.wink();
    rig.wait(150);
    rig.sent();
    rig.says("OffHook swk send k0,3,s0", State::AwaitNextWink);
    rig.wink();
    rig.wait(150);
    rig.sent();
    rig.says("send k0,2,s0 oc(sup)", State::AwaitAnswer);
    rig.order(Order::Digits(Digits::mf(ParameterList::parse(b"k0,9,s0").unwrap()).unwrap())).unwrap();
    rig.sent();
    rig.says("send k0,9,s0 oc(inf)", State::AwaitAnswer);
    // Without the second wink it fails.
    let mut rig = Rig::new(wink(ChannelKind::FeatureGroupD));
    rig.set_up("ct(nta),ca(k0,3,s0),id(k0,2,s0),addr(k0,1,s0)").unwrap();
    rig.wink();
    rig.wait(150);
    rig.sent();
    rig.wait(5_000);
    rig.says("OffHook swk send k0,3,s0 deaf of(sup) rel(111)", State::AwaitRelease);
}

/// D1 to D9, B5: an operator service trunk: address, off-hook, identity; the operator controls the call.
#[test]
fn an_operator_controls_the_call() {
    let operator = Signalling { direction: Direction::Outgoing, ..wink(ChannelKind::Operator) };
    let mut rig = Rig::new(operator);
    rig.set_up("id(k0,1,s0),addr(k0,9,1,1,s2)").unwrap();
    rig.wink();
    rig.wait(150);
    rig.sent();
    rig.says("OffHook swk send k0,9,1,1,s2", State::AwaitOffHook);
    rig.far(Hook::Off, 400);
    rig.says("ans send k0,1,s0", State::Sending);
    rig.sent();
    rig.says("oc(sup)", State::Answered);
    rig.far(Hook::On, 200);
    rig.far(Hook::Off, 400);
    rig.says("orbk", State::Answered);
    rig.order(Order::Recall).unwrap();
    rig.wait(500);
    rig.says("OnHook OffHook", State::Answered);
    rig.order(Order::Suspend).unwrap();
    rig.order(Order::Resume).unwrap();
    rig.says("OnHook OffHook", State::Answered);
    rig.far(Hook::On, 400);
    rig.says("deaf rel(0)", State::AwaitRelease);
    rig.order(Order::ReleaseComplete).unwrap();
    rig.says("deaf OnHook", State::Idle);
    rig.far(Hook::Off, 100);
    rig.says("rbz", State::Blocked);
    assert!(rig.trunk.holds("rbz"));
    let mut rig = Rig::new(operator);
    rig.set_up("id(k0,1,s0),addr(k0,9,1,1,s2)").unwrap();
    rig.order(Order::Release).unwrap();
    rig.says("OffHook deaf OnHook rlc", State::Idle);
    // D9: an operator who is still there has to hang up first.
    rig.wait(400);
    rig.set_up("id(k0,1,s0),addr(k0,9,1,1,s2)").unwrap();
    rig.wink();
    rig.wait(150);
    rig.sent();
    rig.far(Hook::Off, 400);
    rig.said.clear();
    rig.order(Order::Release).unwrap();
    rig.says("stop deaf OnHook", State::Releasing);
    rig.far(Hook::On, 400);
    rig.says("rlc", State::Idle);
}

/// A hook counts when it has lasted.
#[test]
fn hooks_are_debounced() {
    let mut hook = Debounced::ON;
    assert_eq!(hook.see(Time::ZERO, Hook::Off, Duration::from_millis(40)), None);
    assert!(!hook.settle(Time::from_millis(39)));
    assert_eq!(hook.see(Time::from_millis(39), Hook::On, Duration::from_millis(40)), Some(Duration::from_millis(39)));
    assert_eq!((hook.due, hook.hook), (Time::NEVER, Hook::On));
}

/// No state waits for ever but those of a call that is up, of a far end that holds the line, and of nobody at all: whatever happens, a
/// trunk comes to rest by itself.
#[test]
fn no_trunk_stays_stuck() {
    use crate::proto::base::Rng;
    let kinds = [
        wink(ChannelKind::CasMf),
        Signalling { yields: true, ..wink(ChannelKind::CasMf) },
        Signalling { wink_start: false, ..wink(ChannelKind::CasDtmf) },
        wink(ChannelKind::FeatureGroupD),
        Signalling { direction: Direction::Outgoing, ..wink(ChannelKind::Operator) },
        Signalling { direction: Direction::Incoming, ..wink(ChannelKind::CasMf) },
    ];
    let mut reached = std::collections::BTreeSet::new();
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let signalling = kinds[(seed % 6) as usize];
        let mut rig = Rig::new(signalling);
        let parameters = match signalling.kind {
            ChannelKind::CasDtmf => "addr(1,2)",
            ChannelKind::FeatureGroupD => "ct(nta),ca(k0,3,s0),id(k0,2,s0),addr(k0,1,s0)",
            ChannelKind::Operator => "id(k0,1,s0),addr(k0,9,1,1,s2)",
            _ => ADDRESS,
        };
        for _ in 0..60 {
            let _ = match rng.below(14) {
                0 | 1 => rig.set_up(parameters),
                2 => rig.order(Order::Release),
                3 => rig.order(Order::ReleaseComplete),
                4 => rig.order(Order::Answer),
                5 => rig.order(Order::Suspend),
                6 => rig.order(Order::Resume),
                7 => rig.order([Order::Block, Order::Recall, Order::ContinueWink, Order::AcknowledgeWink][rng.below(4) as usize]),
                8 | 9 => {
                    rig.sent();
                    Ok(())
                }
                10 => {
                    rig.wink();
                    Ok(())
                }
                11 => {
                    rig.digits("1,s0");
                    Ok(())
                }
                12 => {
                    rig.far(Hook::Off, rng.below(1_000));
                    Ok(())
                }
                _ => {
                    rig.far(Hook::On, rng.below(1_000));
                    Ok(())
                }
            };
            let patience = [0, 50, 200, 1_000, 6_000, 40_000][rng.below(6) as usize];
            rig.wait(patience);
            reached.insert(rig.trunk.state().name());
            let state = rig.trunk.state();
            let rests = matches!(
                state,
                State::Idle | State::Answered | State::Talking | State::Lockout | State::Blocking | State::Blocked | State::Out
            );
            let rests = rests || state == State::OnHold && signalling.kind == ChannelKind::Operator;
            assert!(rests || rig.trunk.deadline() != Time::NEVER, "seed {seed}: {state:?} has no timer");
            if rig.trunk.shows == Hook::On {
                assert_ne!(state, State::Sending, "seed {seed}");
            }
        }
        // The agent and the far end are gone: whatever was going on ends.
        rig.far(Hook::On, 1_000_000);
        let _ = rig.order(Order::Release);
        rig.wait(1_000_000);
        let state = rig.trunk.state();
        assert!(matches!(state, State::Idle), "seed {seed}: {state:?}");
        rig.said.clear();
    }
    assert!(reached.len() >= 20, "{reached:?}");
}
