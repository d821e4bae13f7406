//! A span with channel associated signalling driven by bytes from anywhere: the function that fuzzers and tests call.

use super::{Direction, Lines, Signalling, Times};
use crate::proto::base::{EndpointIndex, Time};
use crate::proto::package::parameters::{Digits, MfDigit};
use crate::proto::package::{ChannelKind, EventId, default_package};
use crate::proto::trunk::{
    Behaviour, Card, CardOrder, DigitKind, Echo, Facility, FacilityKind, FacilityPlan, FarOrder, Hook, Indication, SimCard, SimulatedPlan,
    SpanIndex, Topology,
};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Parameters for signals: what fits some of them, and what fits none.
const PARAMETERS: [&[u8]; 8] = [
    b"",
    b"addr(k0,5,5,5,s0)",
    b"addr(1,2,#)",
    b"ct(nda),id(k0,2,s0),addr(k0,1,s0)",
    b"ct(nta),ca(k0,3,s0),id(k0,2,s0),addr(k0,1,s0)",
    b"id(k0,2,s0),addr(k0,9,1,1,s2)",
    b"k0,7,s0",
    b"((",
];

/// What came of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Events and ends of signals that were told.
    pub told: u32,
    /// Signals that were begun.
    pub begun: u32,
    /// Lines that are not idle though agent and far ends have long gone.
    pub stuck: u32,
}

/// Runs a T1 whose kind of channel the first byte says. Each further pair of bytes is a signal, an order to a far end, time that passes,
/// or a reset. `None`: the input is too short.
pub fn lines(input: &[u8]) -> Option<Outcome> {
    let (&first, steps) = input.split_first()?;
    let kind = *ChannelKind::ALL.get(usize::from(first) % ChannelKind::ALL.len())?;
    let directions = [Direction::Both, Direction::Incoming, Direction::Outgoing];
    let signalling = Signalling {
        kind,
        wink_start: first & 0x80 == 0,
        ground_start: first & 0x40 != 0,
        dial_pulse: first & 0x20 != 0,
        direction: if kind == ChannelKind::Operator { Direction::Outgoing } else { *directions.get(usize::from(first >> 3) % 3)? },
        yields: first & 0x10 != 0,
    };
    let topology = Topology::new(&[FacilityPlan { kind: FacilityKind::T1, unit: 1, common_channel: false }]).ok()?;
    let card = SimCard::new(&SimulatedPlan {
        topology: &topology,
        kinds: &[kind],
        facilities: &[Facility::Span(SpanIndex(0))],
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        ports: 1024..=2047,
        part: (0, 1),
        connections: 1,
        seed: 1,
    });
    let channels = topology.endpoints_of(Facility::Span(SpanIndex(0))).iter().map(|endpoint| (endpoint, signalling));
    let lines = Lines::new(Box::new(card), channels, Times::default(), Time::ZERO);
    let mut span = Span { lines, now: Time::ZERO, kind, outcome: Outcome::default() };
    for step in steps.chunks_exact(2) {
        if let [what, which] = *step {
            span.step(what, which);
        }
    }
    // Everybody goes: the far ends hang up, the agent says nothing any more but that calls end.
    for endpoint in 0..24 {
        let _ = span.lines.operate(span.now, &CardOrder::Far(EndpointIndex(endpoint), FarOrder::Behave(Behaviour::Manual)));
        let _ = span.lines.operate(span.now, &CardOrder::Far(EndpointIndex(endpoint), FarOrder::Show(Hook::On)));
        span.lines.reset_line(span.now, EndpointIndex(endpoint), true);
    }
    span.wait(Duration::from_secs(1_000));
    let idle = |endpoint| span.lines.line_state(EndpointIndex(endpoint)).is_none_or(|state| state == "idle");
    span.outcome.stuck = (0..24).filter(|&endpoint| !idle(endpoint)).count() as u32;
    Some(span.outcome)
}

struct Span {
    lines: Lines,
    now: Time,
    kind: ChannelKind,
    outcome: Outcome,
}

impl Span {
    fn step(&mut self, what: u8, which: u8) {
        // Few channels, so that things meet.
        let endpoint = EndpointIndex(u32::from(which & 3));
        let rest = which >> 2;
        match what % 8 {
            0..=2 => {
                if let Some(signal) = self.signal(rest) {
                    let parameters = PARAMETERS.get(usize::from(what / 8) % PARAMETERS.len()).copied().unwrap_or_default();
                    let may = self.lines.check_signal(endpoint, None, signal, parameters);
                    let done = self.lines.start_signal(self.now, endpoint, None, signal, parameters);
                    self.outcome.begun += u32::from(may.is_ok() && done.is_ok());
                }
            }
            3 => {
                if let Some(signal) = self.signal(rest) {
                    self.lines.stop_signal(self.now, endpoint, None, signal);
                }
            }
            4 => {
                let _ = self.lines.operate(self.now, &CardOrder::Far(endpoint, far_order(rest)));
            }
            5 => self.lines.reset_line(self.now, endpoint, rest != 1),
            _ => self.wait(Duration::from_millis(u64::from(which).pow(2))),
        }
    }

    fn signal(&self, which: u8) -> Option<EventId> {
        default_package(self.kind).items().filter(|item| item.signal().is_some()).nth(usize::from(which) % 12)
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while self.lines.deadline() <= end {
            self.now = self.lines.deadline().max(self.now);
            while let Some(indication) = self.lines.poll(self.now) {
                self.outcome.told += u32::from(!matches!(indication, Indication::Line { .. }));
            }
            // The wheel of timers may be a tick late.
            self.now += Duration::from_millis(1);
        }
        self.now = end.max(self.now);
    }
}

fn far_order(which: u8) -> FarOrder {
    let mut mf = Digits::NONE;
    [MfDigit::KP, b'5', MfDigit::ST].into_iter().for_each(|symbol| {
        mf.push(symbol);
    });
    let mut keys = Digits::NONE;
    keys.push(b'7');
    match which % 18 {
        0 | 1 => FarOrder::Seize(DigitKind::Mf, mf),
        2 => FarOrder::Seize(DigitKind::Dtmf, keys),
        3 => FarOrder::Seize(DigitKind::Pulse, keys),
        4 => FarOrder::Show(Hook::Off),
        5 => FarOrder::Show(Hook::On),
        6 => FarOrder::Wink,
        7 => FarOrder::Flash,
        8 => FarOrder::Digits(DigitKind::Mf, mf),
        9 => FarOrder::Digits(DigitKind::Dtmf, keys),
        10 => FarOrder::Behave(Behaviour::Answers),
        11 => FarOrder::Behave(Behaviour::NoAnswer),
        12 => FarOrder::Behave(Behaviour::Silent),
        13 => FarOrder::Behave(Behaviour::Collides),
        14 => FarOrder::Behave(Behaviour::Holds),
        15 => FarOrder::Behave(Behaviour::Hangs),
        16 => FarOrder::Echo(Echo::Stuck),
        _ => FarOrder::Echo(Echo::Transponder),
    }
}
