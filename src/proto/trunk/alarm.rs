//! Alarms: from defects a framer sees to the failure that takes a facility out of service.
//!
//! One [`Monitor`] per facility (RFC 4805 section 3.4, RFC 3896 section 2.4; T1A-01..09, T3A-01..07):
//! - Loss of signal, loss of frame, AIS and packet loss of a pseudowire are integrated together: a failure is declared after
//!   [`IntegrationTimes::declare`] of presence and cleared after [`IntegrationTimes::clear`] without any of them. Until then a short
//!   absence only drains what was gathered, at the rate `declare / clear` (hit integration, T1A-04), so that a line that flaps does
//!   fail; once declared, any hit starts the clearing time anew (MAP-12).
//! - Which failure it is: that of the defects present, AIS before loss of frame since an AIS line is unframed (T1A-05).
//! - RAI has times of its own on T1 and E1 and none on a T3 (T3A-06); it cannot be seen while the signal itself is bad.
//! - A loop and a dead card are failures at once (T1A-09).
//!
//! It does not know of facilities within facilities: that a T3's failure covers its T1s is decided by the restart coordinator.

use std::time::Duration;

use super::topology::FacilityKind;
use crate::proto::base::Time;

/// What a card sees wrong with a facility.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Defect {
    /// No pulses (LOS).
    LossOfSignal,
    /// The far equipment says there is no signal to send (AIS, blue).
    Ais,
    /// No framing (OOF, SEF).
    OutOfFrame,
    /// The far end does not receive us (RAI, yellow).
    RemoteAlarm,
    /// The near end is looped (T1A-09, LOOP-06).
    Loopback,
    /// The card, DSP or framer is dead.
    Equipment,
    /// A pseudowire in the state of packet loss.
    PacketLoss,
    /// AIS is sent towards the far end, because an operator wants it.
    AisSent,
}

impl Defect {
    /// All of them.
    pub const ALL: [Defect; 8] = [
        Defect::LossOfSignal,
        Defect::Ais,
        Defect::OutOfFrame,
        Defect::RemoteAlarm,
        Defect::Loopback,
        Defect::Equipment,
        Defect::PacketLoss,
        Defect::AisSent,
    ];

    /// The word operators use.
    pub const fn name(self) -> &'static str {
        match self {
            Defect::LossOfSignal => "los",
            Defect::Ais => "ais",
            Defect::OutOfFrame => "lof",
            Defect::RemoteAlarm => "rai",
            Defect::Loopback => "loopback",
            Defect::Equipment => "equipment",
            Defect::PacketLoss => "packet-loss",
            Defect::AisSent => "ais-sent",
        }
    }

    /// The defect with this word, letter case ignored.
    pub fn by_name(word: &str) -> Option<Defect> {
        Defect::ALL.into_iter().find(|defect| defect.name().eq_ignore_ascii_case(word))
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Defects that are integrated together.
const RED: u8 = 1 << Defect::LossOfSignal as u8 | 1 << Defect::Ais as u8 | 1 << Defect::OutOfFrame as u8 | 1 << Defect::PacketLoss as u8;

/// Why a facility is out of service.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Failure {
    /// The card is dead.
    Equipment,
    /// Loss of signal.
    LossOfSignal,
    /// AIS received.
    Ais,
    /// Loss of frame.
    LossOfFrame,
    /// Packet loss of a pseudowire.
    PacketLoss,
    /// Looped at the near end.
    Loopback,
    /// AIS is sent.
    AisSent,
    /// RAI received.
    RemoteAlarm,
}

impl Failure {
    /// The MGCP reason code (RFC 3435 2.5, section 9 of the trunk facts).
    pub fn reason(self) -> u16 {
        match self {
            Failure::Equipment => 900,
            Failure::PacketLoss => 902,
            Failure::Loopback | Failure::AisSent => 904,
            Failure::LossOfSignal | Failure::Ais | Failure::LossOfFrame | Failure::RemoteAlarm => 905,
        }
    }

    /// Whether it is one of the near end: RAI comes from the far end, a loop or AIS is somebody's wish.
    pub fn is_near_end(self) -> bool {
        !matches!(self, Failure::Loopback | Failure::AisSent | Failure::RemoteAlarm)
    }

    /// The word operators use.
    pub fn name(self) -> &'static str {
        match self {
            Failure::Equipment => "equipment",
            Failure::LossOfSignal => "los",
            Failure::Ais => "ais",
            Failure::LossOfFrame => "lof",
            Failure::PacketLoss => "packet-loss",
            Failure::Loopback => "loopback",
            Failure::AisSent => "ais-sent",
            Failure::RemoteAlarm => "rai",
        }
    }
}

/// How long a defect must last before it counts, and must be gone before it does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntegrationTimes {
    /// Presence until a failure is declared: 2 to 10 s by the RFCs.
    pub declare: Duration,
    /// Absence until it is cleared: up to 20 s.
    pub clear: Duration,
    /// The same for RAI on T1 and E1; the framer's detector already took up to a second.
    pub rai_declare: Duration,
    /// Absence of RAI until it is cleared, less than 5 s.
    pub rai_clear: Duration,
}

impl Default for IntegrationTimes {
    /// Common practice: 2.5 s and 10 s, RAI 500 ms and 1 s.
    fn default() -> IntegrationTimes {
        IntegrationTimes {
            declare: Duration::from_millis(2500),
            clear: Duration::from_secs(10),
            rai_declare: Duration::from_millis(500),
            rai_clear: Duration::from_secs(1),
        }
    }
}

/// One facility's defects and failures.
#[derive(Clone, Copy, Debug)]
pub struct Monitor {
    kind: FacilityKind,
    /// Bits of [`Defect`].
    present: u8,
    red: Integrator,
    rai: Integrator,
    /// The red defects last seen together: the cause while a failure is declared.
    cause: u8,
}

impl Monitor {
    /// A facility without defects.
    pub fn new(kind: FacilityKind) -> Monitor {
        Monitor { kind, present: 0, red: Integrator::default(), rai: Integrator::default(), cause: 0 }
    }

    /// A defect came or went. `skip_integration`: it counts at once.
    pub fn set(&mut self, now: Time, defect: Defect, on: bool, skip_integration: bool, times: &IntegrationTimes) {
        self.advance(now, times);
        if on {
            self.present |= defect.bit();
        } else {
            self.present &= !defect.bit();
        }
        let red = self.present & RED;
        if red != 0 {
            self.cause = red;
        }
        let rai = self.present & Defect::RemoteAlarm.bit() != 0 && red == 0;
        let is_rai = defect == Defect::RemoteAlarm;
        // One of two defects going at once does not make the other count at once.
        let skip_red = skip_integration && !is_rai && (on || red == 0);
        self.red.set(now, red != 0, skip_red, times.declare);
        self.rai.set(now, rai, skip_integration && is_rai, self.rai_times(times).0);
        self.advance(now, times);
    }

    /// Time passed: failures are declared and cleared.
    pub fn advance(&mut self, now: Time, times: &IntegrationTimes) {
        self.red.advance(now, times.declare, times.clear);
        let (declare, clear) = self.rai_times(times);
        self.rai.advance(now, declare, clear);
    }

    /// When [`Monitor::advance`] has something to do next.
    pub fn deadline(&self, times: &IntegrationTimes) -> Time {
        let (declare, clear) = self.rai_times(times);
        self.red.deadline(times.declare, times.clear).min(self.rai.deadline(declare, clear))
    }

    /// The failure that takes the facility out of service, the gravest of several.
    pub fn failure(&self) -> Option<Failure> {
        let has = |bits: u8, defect: Defect| bits & defect.bit() != 0;
        let red = if self.red.declared { self.cause } else { 0 };
        let table = [
            (has(self.present, Defect::Equipment), Failure::Equipment),
            (has(red, Defect::LossOfSignal), Failure::LossOfSignal),
            (has(red, Defect::Ais), Failure::Ais),
            (has(red, Defect::OutOfFrame), Failure::LossOfFrame),
            (has(red, Defect::PacketLoss), Failure::PacketLoss),
            (has(self.present, Defect::Loopback), Failure::Loopback),
            (has(self.present, Defect::AisSent), Failure::AisSent),
            (self.rai.declared, Failure::RemoteAlarm),
        ];
        table.iter().find(|(is, _)| *is).map(|(_, failure)| *failure)
    }

    /// Whether the card reports this defect now, failed or not.
    pub fn is_present(&self, defect: Defect) -> bool {
        self.present & defect.bit() != 0
    }

    /// Whether no usable signal arrives now.
    pub fn is_dark(&self) -> bool {
        self.present & (RED | Defect::Equipment.bit()) != 0
    }

    /// The line status word of the MIB: dsx1LineStatus (RFC 4805) for T1 and E1, dsx3LineStatus (RFC 3896) for a T3. We send RAI (bit 4) as
    /// long as our own failure lasts, by the framing, or in a pseudowire by R and RDI; a card that makes the framing itself does by its own times, two
    /// seconds and one. Packet loss of a pseudowire has no bit of its own: it is the other failure.
    pub fn line_status(&self) -> u32 {
        let red = if self.red.declared { self.cause } else { 0 };
        let has = |bits: u8, defect: Defect| bits & defect.bit() != 0;
        let (equipment, other) = if self.kind == FacilityKind::T3 { (2048, 512) } else { (16384, 4096) };
        let lost_frame = has(red, Defect::OutOfFrame) || has(red, Defect::LossOfSignal);
        let bits = [
            (self.rai.declared, 2),
            (red != 0, 4),
            (has(red, Defect::Ais), 8),
            (has(self.present, Defect::AisSent), 16),
            (lost_frame, 32),
            (has(red, Defect::LossOfSignal), 64),
            (has(self.present, Defect::Loopback), 128),
            (has(self.present, Defect::Equipment), equipment),
            (has(red, Defect::PacketLoss), other),
        ];
        let word = bits.iter().filter(|(is, _)| *is).map(|(_, bit)| bit).sum();
        if word == 0 { 1 } else { word }
    }

    fn rai_times(&self, times: &IntegrationTimes) -> (Duration, Duration) {
        match self.kind {
            FacilityKind::T3 => (Duration::ZERO, Duration::ZERO),
            FacilityKind::T1 | FacilityKind::E1 => (times.rai_declare, times.rai_clear),
        }
    }
}

/// Presence summed up over time.
#[derive(Clone, Copy, Default, Debug)]
struct Integrator {
    present: bool,
    declared: bool,
    /// Presence gathered so far, while not declared.
    gathered: Duration,
    /// The last change or reckoning.
    at: Time,
}

impl Integrator {
    /// The condition as of `now`; [`Integrator::advance`] to `now` came before.
    fn set(&mut self, now: Time, present: bool, skip: bool, declare: Duration) {
        if present != self.present {
            self.present = present;
            self.at = now;
        }
        if skip {
            self.declared = present;
            self.gathered = if present { declare } else { Duration::ZERO };
        }
    }

    fn advance(&mut self, now: Time, declare: Duration, clear: Duration) {
        let elapsed = now.since(self.at);
        match (self.declared, self.present) {
            (true, true) => self.at = now,
            (true, false) => {
                if elapsed >= clear {
                    *self = Integrator { at: now, ..Integrator::default() };
                }
            }
            (false, true) => {
                self.gathered += elapsed;
                self.at = now;
                self.declared = self.gathered >= declare;
            }
            (false, false) => {
                let drained = elapsed.as_nanos() * declare.as_nanos() / clear.as_nanos().max(1);
                self.gathered = self.gathered.saturating_sub(Duration::from_nanos(u64::try_from(drained).unwrap_or(u64::MAX)));
                self.at = now;
            }
        }
    }

    fn deadline(&self, declare: Duration, clear: Duration) -> Time {
        match (self.declared, self.present) {
            (true, false) => self.at + clear,
            (false, true) => self.at + declare.saturating_sub(self.gathered),
            (true, true) | (false, false) => Time::NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: fn() -> IntegrationTimes = IntegrationTimes::default;

    /// Plays `(ms, defect, on)` and then reads the failure at each of `(ms, failure)`, driven by deadlines alone.
    fn play(kind: FacilityKind, script: &[(u64, Defect, bool)], expected: &[(u64, Option<Failure>)]) {
        let mut monitor = Monitor::new(kind);
        let mut script = script.iter().peekable();
        for &(ms, failure) in expected {
            let until = Time::from_millis(ms);
            loop {
                let next = script.peek().map_or(Time::NEVER, |(at, ..)| Time::from_millis(*at));
                let deadline = monitor.deadline(&TIMES());
                if next.min(deadline) > until {
                    break;
                }
                if next <= deadline {
                    let (_, defect, on) = script.next().unwrap();
                    monitor.set(next, *defect, *on, false, &TIMES());
                } else {
                    monitor.advance(deadline, &TIMES());
                    assert!(monitor.deadline(&TIMES()) > deadline, "a deadline must do something");
                }
            }
            assert_eq!(monitor.failure(), failure, "at {ms} ms");
        }
    }

    #[test]
    fn a_failure_takes_2_5_s_and_clears_after_10_s() {
        // T1A-04, T3A-07, MAP-12
        for kind in [FacilityKind::T1, FacilityKind::E1, FacilityKind::T3] {
            let los = Some(Failure::LossOfSignal);
            play(
                kind,
                &[(0, Defect::LossOfSignal, true), (5000, Defect::LossOfSignal, false)],
                &[(2499, None), (2500, los), (14_999, los), (15_000, None)],
            );
        }
    }

    #[test]
    fn a_short_defect_is_no_failure_and_a_hit_restarts_the_clearing() {
        let oof = Defect::OutOfFrame;
        play(FacilityKind::T1, &[(0, oof, true), (2000, oof, false)], &[(9000, None)]);
        play(
            FacilityKind::T1,
            &[(0, oof, true), (3000, oof, false), (12_000, oof, true), (12_010, oof, false)],
            &[(13_001, Some(Failure::LossOfFrame)), (22_009, Some(Failure::LossOfFrame)), (22_010, None)],
        );
    }

    #[test]
    fn a_flapping_line_fails() {
        let script: Vec<_> =
            (0..20).flat_map(|n| [(n * 2000, Defect::OutOfFrame, true), (n * 2000 + 1000, Defect::OutOfFrame, false)]).collect();
        // Each second of presence gathers 1 s, each second without drains 0.25 s: 1, 1.75, 2.5 at 5 s.
        play(FacilityKind::T1, &script, &[(4999, None), (5000, Some(Failure::LossOfFrame)), (39_000, Some(Failure::LossOfFrame))]);
    }

    #[test]
    fn an_ais_line_is_told_as_ais() {
        // T1A-05
        play(
            FacilityKind::T1,
            &[(0, Defect::OutOfFrame, true), (200, Defect::Ais, true), (6000, Defect::LossOfSignal, true), (6000, Defect::Ais, false)],
            &[(2500, Some(Failure::Ais)), (6000, Some(Failure::LossOfSignal))],
        );
    }

    #[test]
    fn rai_has_times_of_its_own() {
        // T1A-06, T3A-06
        let rai = Some(Failure::RemoteAlarm);
        let script = [(0, Defect::RemoteAlarm, true), (2000, Defect::RemoteAlarm, false)];
        play(FacilityKind::T1, &script, &[(499, None), (500, rai), (2999, rai), (3000, None)]);
        play(FacilityKind::T3, &script, &[(0, rai), (1999, rai), (2000, None)]);
        // Not to be seen without a signal.
        play(FacilityKind::T1, &[(0, Defect::LossOfSignal, true), (0, Defect::RemoteAlarm, true)], &[(1000, None)]);
    }

    #[test]
    fn loops_dead_cards_and_orders_to_skip_count_at_once() {
        let mut monitor = Monitor::new(FacilityKind::T1);
        let now = Time::from_millis(7);
        monitor.set(now, Defect::Loopback, true, false, &TIMES());
        assert_eq!(monitor.failure(), Some(Failure::Loopback));
        monitor.set(now, Defect::Equipment, true, false, &TIMES());
        assert_eq!(monitor.failure(), Some(Failure::Equipment));
        monitor.set(now, Defect::Equipment, false, false, &TIMES());
        monitor.set(now, Defect::Loopback, false, false, &TIMES());
        assert_eq!(monitor.failure(), None);
        monitor.set(now, Defect::AisSent, true, false, &TIMES());
        assert_eq!(monitor.failure(), Some(Failure::AisSent));
        monitor.set(now, Defect::AisSent, false, false, &TIMES());
        assert_eq!(monitor.failure(), None);
        monitor.set(now, Defect::LossOfSignal, true, true, &TIMES());
        assert_eq!(monitor.failure(), Some(Failure::LossOfSignal));
        monitor.set(now, Defect::LossOfSignal, false, true, &TIMES());
        assert_eq!((monitor.failure(), monitor.deadline(&TIMES())), (None, Time::NEVER));
        monitor.set(now, Defect::OutOfFrame, true, false, &TIMES());
        monitor.set(now, Defect::Ais, true, false, &TIMES());
        monitor.set(now, Defect::Ais, false, true, &TIMES());
        assert_eq!(monitor.failure(), None);
    }

    #[test]
    fn status_words_are_those_of_the_mibs() {
        let word = |kind, defects: &[Defect]| {
            let mut monitor = Monitor::new(kind);
            defects.iter().for_each(|d| monitor.set(Time::ZERO, *d, true, true, &TIMES()));
            monitor.line_status()
        };
        assert_eq!(word(FacilityKind::T1, &[]), 1);
        assert_eq!(word(FacilityKind::T1, &[Defect::LossOfSignal]), 4 + 32 + 64);
        assert_eq!(word(FacilityKind::T1, &[Defect::OutOfFrame, Defect::Ais]), 4 + 8 + 32);
        assert_eq!(word(FacilityKind::T3, &[Defect::Ais]), 4 + 8);
        assert_eq!(word(FacilityKind::T3, &[Defect::RemoteAlarm]), 2);
        assert_eq!(word(FacilityKind::T3, &[Defect::Equipment, Defect::Loopback]), 2048 + 128);
        assert_eq!(word(FacilityKind::E1, &[Defect::Equipment]), 16384);
        assert_eq!(word(FacilityKind::T1, &[Defect::AisSent]), 16);
        assert_eq!(word(FacilityKind::T1, &[Defect::PacketLoss]), 4 + 4096, "a failure is not no alarm");
        assert_eq!(word(FacilityKind::T3, &[Defect::PacketLoss]), 4 + 512);
    }

    #[test]
    fn reasons_are_those_of_the_table() {
        assert_eq!(Failure::Equipment.reason(), 900);
        assert_eq!(Failure::PacketLoss.reason(), 902);
        assert_eq!([Failure::Loopback, Failure::AisSent].map(Failure::reason), [904; 2]);
        for failure in [Failure::LossOfSignal, Failure::Ais, Failure::LossOfFrame, Failure::RemoteAlarm] {
            assert_eq!(failure.reason(), 905);
        }
    }
}
