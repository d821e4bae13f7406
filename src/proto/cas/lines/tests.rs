//! Whole calls on simulated spans: signals of the agent in, events out, a far end at the other side.

use super::*;
use crate::proto::cas::Direction;
use crate::proto::codec::mgcp::{EventList, ListKind};
use crate::proto::package::find_package;
use crate::proto::trunk::{Behaviour, Echo, Facility, FacilityKind, FacilityPlan, FarOrder, SimCard, SimulatedPlan, SpanIndex, Topology};
use std::net::IpAddr;

const E: EndpointIndex = EndpointIndex(3);

struct Span {
    lines: Lines,
    now: Time,
}

impl Span {
    fn new(signalling: Signalling) -> Span {
        let topology = Topology::new(&[FacilityPlan { kind: FacilityKind::T1, unit: 1, common_channel: false }]).unwrap();
        let card = SimCard::new(&SimulatedPlan {
            topology: &topology,
            kinds: &[signalling.kind],
            facilities: &[Facility::Span(SpanIndex(0))],
            address: IpAddr::from([192, 0, 2, 20]),
            ports: 16384..=32767,
            part: (0, 1),
            connections: 8,
            seed: 1,
        });
        let channels = (0..24).map(|n| (EndpointIndex(n), signalling));
        Span { lines: Lines::new(Box::new(card), channels, Times::default(), Time::ZERO), now: Time::ZERO }
    }

    fn of(kind: ChannelKind) -> Span {
        let wink_start = kind != ChannelKind::PbxFxs;
        let direction = if kind == ChannelKind::Operator { Direction::Outgoing } else { Direction::Both };
        Span::new(Signalling { kind, wink_start, direction, ..Signalling::default() })
    }

    /// The signals of a list, applied to the endpoint if they may be.
    fn apply(&mut self, signals: &str) -> Result<(), CardFault> {
        let list = EventList::parse(signals.as_bytes(), ListKind::Signals).unwrap();
        for signal in list.iter() {
            let text = std::str::from_utf8(signal.raw).unwrap();
            let (package, name) = text.split('(').next().unwrap().split_once('/').unwrap();
            let id = find_item(find_package(package.as_bytes()).unwrap(), name.as_bytes()).unwrap();
            let parameters = signal.parameters.map_or(&b""[..], |list| list.as_bytes());
            self.lines.check_signal(E, None, id, parameters)?;
            self.lines.start_signal(self.now, E, None, id, parameters)?;
        }
        Ok(())
    }

    fn far(&mut self, order: FarOrder) {
        self.lines.operate(self.now, &CardOrder::Far(E, order)).unwrap();
    }

    /// Time passes; what was seen meanwhile, in the words of a report.
    fn seen(&mut self, millis: u64) -> String {
        let end = self.now + Duration::from_millis(millis);
        let mut seen = Vec::new();
        while self.lines.deadline() <= end {
            self.now = self.lines.deadline().max(self.now);
            while let Some(indication) = self.lines.poll(self.now) {
                if matches!(indication, Indication::KeyUp { .. }) {
                    continue;
                }
                seen.push(match indication {
                    Indication::Event { endpoint, event, parameters, .. } if parameters.is_empty() => {
                        assert_eq!(endpoint, E);
                        format!("{event:?}")
                    }
                    Indication::Event { event, parameters, .. } => format!("{event:?}({parameters:?})"),
                    Indication::SignalEnded { signal, failed, .. } => format!("{}({signal:?})", if failed { "of" } else { "oc" }),
                    Indication::Trouble { endpoint, trouble } => {
                        assert_eq!(endpoint, E);
                        format!("!{trouble:?}")
                    }
                    other => panic!("{other:?}"),
                });
            }
            self.now += Duration::from_millis(1);
        }
        self.now = end.max(self.now);
        seen.join(" ")
    }

    fn state(&self) -> &'static str {
        self.lines.line_state(E).unwrap()
    }
}

fn mf(text: &str) -> FarOrder {
    FarOrder::Seize(DigitKind::Mf, Digits::mf(ParameterList::parse(text.as_bytes()).unwrap()).unwrap())
}

fn keys(text: &str) -> Digits {
    Digits::keys(ParameterList::parse(text.as_bytes()).unwrap()).unwrap()
}

/// CAS-01, CAS-05, CAS-16, CAS-19: a call out and a call in on every kind of trunk, the far end playing its part by itself.
#[test]
fn calls_go_out_on_every_kind_of_trunk() {
    let cases = [
        (ChannelKind::CasMf, "ms/sup(addr(k0,5,5,5,s0))", "oc(MS/sup) MS/ans T/as", "ms/rel", "MS/rlc"),
        (ChannelKind::CasDtmf, "dt/sup(addr(5,5,5))", "oc(DT/sup) DT/ans T/as", "dt/rel", "DT/rlc"),
        (
            ChannelKind::FeatureGroupD,
            "md/sup(ct(nda),id(k0,2,s0),addr(k0,1,s0))",
            "MD/swk oc(MD/sup) MD/awk MD/ans T/as",
            "md/rel",
            "MD/rlc",
        ),
        (
            ChannelKind::FeatureGroupD,
            "md/sup(ct(nta),ca(k0,3,s0),id(k0,2,s0),addr(k0,1,s0))",
            "MD/swk oc(MD/sup) MD/awk MD/ans T/as",
            "md/rel",
            "MD/rlc",
        ),
        (ChannelKind::Operator, "mo/sup(id(k0,2,s0),addr(k0,9,1,1,s2))", "MO/swk MO/ans T/as oc(MO/sup)", "mo/rel", "MO/rlc"),
    ];
    for (kind, setup, events, release, complete) in cases {
        let mut span = Span::of(kind);
        span.apply(setup).unwrap();
        assert_eq!(span.apply(setup), Err(CardFault::State));
        assert_eq!(span.seen(10_000), events, "{setup}");
        assert_eq!(span.state(), "answered");
        span.apply(release).unwrap();
        assert_eq!(span.seen(5_000), complete, "{setup}");
        assert_eq!(span.state(), "idle");
    }
}

/// C1 to C11, CAS-06: calls come in on wink-start and immediate-start trunks; what the far end sends before the receiver listens is lost.
#[test]
fn calls_come_in() {
    let mut span = Span::of(ChannelKind::CasMf);
    span.far(mf("k0,5,5,5,1,2,3,4,s0"));
    assert_eq!(span.seen(3_000), "MS/sup MS/inf(k0,5,5,5,1,2,3,4,s0)");
    span.apply("ms/ans").unwrap();
    assert_eq!((span.seen(1_000).as_str(), span.state()), ("", "talks"));
    span.far(FarOrder::Show(Hook::On));
    assert_eq!(span.seen(1_000), "MS/rel(0)");
    span.apply("ms/rlc").unwrap();
    assert_eq!((span.seen(1_000).as_str(), span.state()), ("", "idle"));

    let dtmf = Signalling { kind: ChannelKind::CasDtmf, ..Signalling::default() };
    let mut span = Span::new(dtmf);
    span.far(FarOrder::Seize(DigitKind::Dtmf, keys("1,2,#")));
    assert_eq!(span.seen(3_000), "DT/sup D/1 D/2 D/#");
    let mut span = Span::new(Signalling { dial_pulse: true, ..dtmf });
    span.far(FarOrder::Seize(DigitKind::Pulse, keys("9,0")));
    assert_eq!(span.seen(5_000), "DT/sup D/9 D/0");
}

/// A5 to A11, A21: far ends that misbehave; the trunk comes to rest, and its state has a name.
#[test]
fn far_ends_that_misbehave() {
    let setup = "ms/sup(addr(k0,5,s0))";
    let after = |behaviour| {
        let mut span = Span::of(ChannelKind::CasMf);
        span.far(FarOrder::Behave(behaviour));
        span.apply(setup).unwrap();
        let seen = span.seen(30_000);
        (span, seen)
    };
    let (span, seen) = after(Behaviour::Silent);
    assert_eq!((seen.as_str(), span.state()), ("of(MS/sup) MS/rel(111) !Fault", "awaits-release"));
    let (span, seen) = after(Behaviour::Collides);
    assert_eq!((seen.as_str(), span.state()), ("oc(MS/sup) MS/ans T/as", "answered"));
    let (mut span, seen) = after(Behaviour::Holds);
    assert_eq!((seen.as_str(), span.state()), ("of(MS/sup) MS/rel(44) !Glare", "releases"));
    assert_eq!((span.seen(60_000).as_str(), span.state()), ("!Lockout(true)", "lockout"));
    let (mut span, seen) = after(Behaviour::Hangs);
    assert_eq!((seen.as_str(), span.state()), ("oc(MS/sup) MS/ans T/as", "answered"));
    span.apply("ms/rel").unwrap();
    assert_eq!((span.seen(60_000).as_str(), span.state()), ("!Lockout(true)", "lockout"));
    assert_eq!(span.apply(setup), Err(CardFault::OffHook));
    span.far(FarOrder::Show(Hook::On));
    assert_eq!((span.seen(1_000).as_str(), span.state()), ("MS/rlc !Lockout(false)", "idle"));
    let (span, seen) = after(Behaviour::NoAnswer);
    assert_eq!((seen.as_str(), span.state()), ("oc(MS/sup)", "awaits-answer"));
}

/// EVT-05, CAS-02, CAS-10, CAS-11: what the hook must be when an event or a signal is asked for.
#[test]
fn events_and_signals_need_their_hook() {
    let mut span = Span::of(ChannelKind::CasMf);
    let event = |span: &Span, package, name: &[u8]| span.lines.check_event(E, find_item(package, name).unwrap());
    assert_eq!(event(&span, PackageId::MS, b"sup"), Ok(()));
    assert_eq!(event(&span, PackageId::MS, b"rel"), Ok(()), "asked for together with the set-up, while the far end is on-hook");
    assert_eq!(span.apply("g/cf"), Err(CardFault::OnHook));
    span.far(FarOrder::Show(Hook::Off));
    span.seen(500);
    assert_eq!(event(&span, PackageId::MS, b"sup"), Err(CardFault::OffHook));
    assert_eq!(span.apply("g/cf"), Ok(()));
    assert!(find_item(PackageId::MD, b"swk").is_some_and(|swk| swk.signal().is_none()), "CAS-02");
    assert!(span.lines.holds(E, find_item(PackageId::MS, b"sup").unwrap()));
    assert!(!span.lines.holds(E, find_item(PackageId::MS, b"rlc").unwrap()));
}

/// E1 to E6, CAS-12: a line of a PBX: it calls, is called, flashes; no ring while it is off-hook.
#[test]
fn a_line_of_a_pbx() {
    let mut span = Span::of(ChannelKind::PbxFxs);
    span.far(FarOrder::Behave(Behaviour::Manual));
    span.far(FarOrder::Show(Hook::Off));
    assert_eq!(span.apply("bl/rg"), Ok(()), "nothing was seen yet");
    assert_eq!(span.seen(500), "BL/hd");
    assert_eq!(span.apply("bl/rg"), Err(CardFault::OffHook));
    assert_eq!(span.apply("bl/dl"), Ok(()));
    span.far(FarOrder::Digits(DigitKind::Dtmf, keys("4,2")));
    span.far(FarOrder::Flash);
    assert_eq!(span.seen(3_000), "D/4 D/2 BL/hf");
    assert!(span.lines.holds(E, find_item(PackageId::BL, b"hd").unwrap()));
    span.apply("bl/rel").unwrap();
    span.far(FarOrder::Show(Hook::On));
    assert_eq!(span.seen(3_000), "BL/hu");
    assert_eq!(span.apply("bl/dl"), Err(CardFault::OnHook));
    // It is called; it answers by itself.
    span.far(FarOrder::Behave(Behaviour::Answers));
    span.apply("bl/rg").unwrap();
    assert_eq!(span.state(), "rings");
    assert_eq!((span.seen(3_000).as_str(), span.state()), ("BL/hd", "off-hook"));
}

/// E5: a PBX that does not hang up when the tip ground is dropped is locked out, until it does; `free` does not lie about that.
#[test]
fn a_pbx_that_keeps_a_line_is_locked_out() {
    let ground = Signalling { kind: ChannelKind::PbxFxs, ground_start: true, ..Signalling::default() };
    let mut span = Span::new(ground);
    span.far(FarOrder::Behave(Behaviour::Manual));
    span.far(FarOrder::Show(Hook::Off));
    assert_eq!(span.seen(500), "BL/hd");
    span.apply("bl/rel").unwrap();
    assert_eq!((span.seen(29_000).as_str(), span.state()), ("", "releases"));
    assert_eq!((span.seen(2_000).as_str(), span.state()), ("!Lockout(true)", "lockout"));
    assert_eq!(span.apply("bl/rg"), Err(CardFault::OffHook));
    span.lines.reset_line(span.now, E, true);
    assert_eq!((span.seen(100).as_str(), span.state()), ("", "lockout"));
    span.far(FarOrder::Show(Hook::On));
    assert_eq!((span.seen(2_000).as_str(), span.state()), ("BL/hu !Lockout(false)", "idle"));
    // One that hangs up in time is not.
    span.far(FarOrder::Show(Hook::Off));
    span.seen(500);
    span.apply("bl/rel").unwrap();
    span.far(FarOrder::Show(Hook::On));
    assert_eq!((span.seen(60_000).as_str(), span.state()), ("BL/hu", "idle"));
}

/// Ringing that stops before anybody answers is not answered.
#[test]
fn ringing_stops() {
    let mut span = Span::of(ChannelKind::PbxFxs);
    span.apply("bl/rg").unwrap();
    span.seen(200);
    span.lines.stop_signal(span.now, E, None, find_item(PackageId::BL, b"rg").unwrap());
    assert_eq!((span.seen(3_000).as_str(), span.state()), ("", "idle"));
}

/// COT-01, COT-02, COT-04: the event comes when the return tone ends; no tone, no event; a tone that does not end is a failure.
#[test]
fn continuity_tests() {
    let mut span = Span::of(ChannelKind::Clear);
    for (echo, signal, seen) in [
        (Echo::Loop, "t/co1", "T/co1"),
        (Echo::Transponder, "t/co1", "T/co2"),
        (Echo::Transponder, "t/co2", "T/co1"),
        (Echo::Open, "t/co1", ""),
        (Echo::Stuck, "t/co1", "of(T/co1)"),
    ] {
        span.far(FarOrder::Echo(echo));
        span.apply(signal).unwrap();
        assert_eq!(span.seen(2_000), seen, "{echo:?}");
        let id = find_item(PackageId::T, signal.split('/').next_back().unwrap().as_bytes()).unwrap();
        span.lines.stop_signal(span.now, E, None, id);
        assert_eq!(span.seen(2_000), "", "{echo:?}");
    }
}

/// `free`, and a span that goes out of service: everything ends without a report.
#[test]
fn a_reset_ends_everything_without_a_report() {
    let mut span = Span::of(ChannelKind::CasMf);
    span.apply("ms/sup(addr(k0,5,s0))").unwrap();
    span.seen(600);
    span.lines.reset_line(span.now, E, true);
    assert_eq!((span.seen(5_000).as_str(), span.state()), ("", "idle"));
    span.lines.reset_line(span.now, E, false);
    assert_eq!(span.apply("ms/sup(addr(k0,5,s0))"), Err(CardFault::State));
    span.lines.reset_line(span.now, E, true);
    assert_eq!(span.apply("ms/sup(addr(k0,5,s0))"), Ok(()));
}

/// The core was away for a second: the wink that came meanwhile is one all the same, for the card says when it saw the hooks.
#[test]
fn a_core_that_is_late_reads_a_wink_as_a_wink() {
    let mut span = Span::of(ChannelKind::CasMf);
    span.apply("ms/sup(addr(k0,5,5,5,s0))").unwrap();
    span.now += Duration::from_secs(1);
    assert_eq!(span.lines.poll(span.now), None);
    assert_eq!(span.state(), "sends-digits");
    assert_eq!(span.seen(3_000), "oc(MS/sup) MS/ans T/as");
}

/// The same for the wink that it gives: the card ends it in time, so the far end does not take it for an answer.
#[test]
fn a_core_that_is_late_gives_a_wink_as_a_wink() {
    for kind in [ChannelKind::CasMf, ChannelKind::FeatureGroupD] {
        let mut span = Span::of(kind);
        span.far(mf("k0,5,5,5,s0"));
        // It is away when the wink should end, and for long after the digits have come.
        span.seen(250);
        assert_eq!(span.state(), "winks", "{kind:?}");
        span.now += Duration::from_secs(2);
        let seen = span.seen(10);
        assert!(seen.ends_with("/inf(k0,5,5,5,s0)"), "{kind:?}: {seen:?}");
        assert_eq!(span.state(), "awaits-agent", "{kind:?}");
    }
}

/// A far end that has waited for the wink long enough dials without it; the receiver is attached as soon as the seizure is seen.
#[test]
fn digits_without_a_wink_are_taken() {
    for (kind, digits, event) in
        [(ChannelKind::CasMf, mf("k0,5,5,5,s0"), "MS/inf(k0,5,5,5,s0)"), (ChannelKind::CasDtmf, keys_seize(), "D/5")]
    {
        let mut span = Span::of(kind);
        span.far(digits);
        // Seen at once, and then not for so long that the wink would come behind the first digit.
        span.seen(60);
        span.now += Duration::from_millis(700);
        let seen = span.seen(3_000);
        assert!(seen.contains(event), "{kind:?}: {seen:?}");
        assert_eq!(span.state(), "awaits-agent", "{kind:?}");
    }
}

fn keys_seize() -> FarOrder {
    FarOrder::Seize(DigitKind::Dtmf, keys("5"))
}
